# ruff: noqa: E501
"""What the text of a question promises, and the input that reaches it in every draw."""

import inspect
import math

import pytest
import torch

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from workshop.benchmarks.slips import SLIPS, docstring, slips

#: question: {words of its docstring: what some input of each draw has to be}; the names are the arguments
PROMISES = {
    "pool_tokens": {
        "[B, L, d], float": "h.dtype == torch.float64",
        "False for padding": "not is_token[:, 0].all() or not is_token[:, -1].all()",
        "at least one token": "is_token.all()",
    },
    "causal_attention": {
        "not always from 0": "q_positions.min() > 0 and k_positions.min() > 0",
        "keys may be stored in any order": "(k_positions.diff() < 0).any()",
        "all float": "q.dtype == torch.float64",
    },
    "order_errors": {"both float": "output.dtype == torch.float64", "int64: row i": "(order[order] != torch.arange(len(order))).any()"},
    "mask_shares": {
        "True where query i (the row) may read key j": "not allowed.diagonal().all() and allowed.triu(1).any()",
        "at least one in each row": "(allowed.sum(1) == 1).any()",
        "at least 1": "layers == 1",
        "from 0 to 1": "residual == 0",
    },
    "bag_ceiling": {
        "not always from 0": "sentences.min() > 0",
        "a word may occur twice": "any(len(set(row)) < len(row) for row in sentences.tolist())",
    },
    "sinusoid_table": {
        "int64 or float32": "positions.dtype == torch.float32",
        "fractional": "(positions % 1 != 0).any() and (positions.half().float() - positions).abs().max() > 1e-3",
        "negative": "(positions < 0).any()",
        "out of order": "(positions.diff() < 0).any()",
        "odd or even": "d % 2",
        "base: 10000 in the paper": "base != 10000",
    },
    "sinusoid_add": {
        "bfloat16": "x.dtype == torch.bfloat16 and positions.max() > 256",
        "float16": "x.dtype == torch.float16 and positions.max() > 2048",
    },
    "shift_matrix": {"may be negative": "k < 0", "int or float": "k % 1 != 0", "the width": "d == 2", "base:": "base != 10000"},
    "offset_profile": {"[Lq, Lk]": "scores.shape[0] > scores.shape[1]", "in the dtype of the scores": "scores.dtype == torch.float64"},
    "sinusoid_concat": {"odd or even": "d % 2", "at least 2": "d == 2"},
    "longer_table": {"not only multiples": "rows % len(P)"},
    "resize_grid": {"each at least 2": "min(old) == 2", "(H, W)": "new[0] < old[0]"},
    "t5_bucket": {"of any shape": "r.ndim > 1", "False for a decoder": "not bidirectional and (r > 0).any()", "a multiple of 4": "n_buckets % 8"},
    "shaw_attention": {"q_positions": "q_positions[0] > 0 and (k_positions > q_positions.max()).any()", "[Lk, d_v]": "v.shape[1] != q.shape[1]"},
    "offset_mass": {"rows of the window": "height > width", "its columns": "width > height"},
    "relative_shift": {"[…, Lq, Lk]": "x.ndim == 4", "Lq ≤ Lk": "x.shape[-1] > x.shape[-2]"},
    "memory_scores": {"M may be 0": "len(memory) == 0", "[M, d]": "len(memory) > len(x)"},
    "moved_mass": {"any shape that broadcasts": "term.ndim == 3", "at least one in each row": "not allowed.all()"},
    "paint_head": {"at least 4": "n <= 7", "the number of tokens": "n >= 20"},
    "concat_bias": {"[Lq, Lk]": "r.shape[0] > r.shape[1]"},
    "tupe_scores": {"[B, L, D]": "len(x) > 1", "d channels of the head": "W_Q.shape[0] < W_Q.shape[1]"},
    "rope_angles": {"they may begin anywhere": "positions[0] > 2048", "a number such as": "base != 10000"},
    "rope_rotate": {"bfloat16": "x.dtype == torch.bfloat16 and angles.max() > 256", "[..., L, d_h]": "x.ndim == 4", '"half"': "layout == 'half'"},
    "cached_scores": {"bfloat16": "q.dtype == torch.bfloat16 and cached.shape[1] > 256", "[H, P, d_h]": "cached.shape[1] == 0"},
    "rope_sort_rows": {"for a bias": "weight.ndim == 1", "at most d_h": "rotary_dim < head_dim"},
    "alibi_slopes": {"at least 1": "n_heads == 1", "any number of heads": "n_heads % 2 and n_heads > 1"},
    "alibi_bias": {"float64": "slopes.dtype == torch.float64", "ascending": "(k_positions.diff() > 1).any()"},
    "alibi_attention": {"the last Lq of Lk tokens": "q.shape[2] < k.shape[2]"},
    "mirror_gap": {"[H, L, L]": "len(bias) != bias.shape[1]"},
    "xpos_scores": {
        "any start": "q_positions.min() > 0",
        "texts may be long": "(gamma / (1 + gamma)) ** (q_positions.max().item() / scale_base) < 1e-308",
        "−inf where": "(k_positions > q_positions[:, None]).any()",
    },
    "axis_angles": {
        "each of A axes": "positions.shape[1] == 3",
        "int64 [n, A]": "(positions.half().long() != positions).any()",
        "at least 1": "(stretch == 1).any()",
    },
    "dynamic_ntk_theta": {"up to L those of training": "length < L"},
    "dynamic_scores": {"L: the trained length": "len(keys) <= L"},
    "ntk_factor": {"at least 4": "dim == 4", "every pair makes a full turn": "L * base ** (2 / dim - 1) > 2 * math.pi"},
    "forget_bias": {
        "float64": "gates.dtype == torch.float64",
        "Texts may be long": "gates.log2().sum(-1).min() < -149",
        "gates close to 0": "gates.min() < 1e-8",
        "how many of the last tokens": "queries < gates.shape[1]",
    },
    "tempered_queries": {
        "bfloat16": "q.dtype == torch.bfloat16 and ((positions.bfloat16() + 1) // config['floor_scale'] != (positions + 1) // config['floor_scale']).any()",
        "int64 [B, L]": "len(positions) > 1",
        "(a list)": "config['no_rope_layers'][layer] != ((layer + 1) % 4 != 0)",
        "(True or False)": "not config['attn_temperature_tuning']",
    },
    "layer_dials": {
        "rope_parameters": "config['rope_parameters']['sliding_attention'] is None",
        "where a layer sees everything": "config['rope_parameters']['full_attention'] is None",
        "shares give whole pairs": "(config['rope_parameters']['full_attention'] or {}).get('partial_rotary_factor') == 0.75",
        "layer_types": "config['layer_types']",
    },
    "grid_angles": {
        "[L, axes]": "positions.shape[1] == 2",
        "int64": "(positions.half().long() != positions).any()",
        "a number for each axis": "interleaved and min(sections) + 1 < sorted(sections)[1]",
    },
    "sink_attention": {
        "share head 0 of k": "q.shape[1] > k.shape[1]",
        "0: all keys up to its own": "window == 0 and q.shape[2] < k.shape[2]",
        "float64": "q.dtype == torch.float64",
        "scores may be large": "(q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT).max() > 89 * q.shape[-1] ** 0.5",
    },
}  # fmt: skip

#: Another size, or nothing but the shapes that every input of a question has.
PLAIN = {"lookup_test", "sum_similarity", "untrained_rows", "bias_test", "rope_shift_error", "yarn_theta"}
OURS = [question for question in questions.everything() if question.exercise != "09"]


def named(question):
    return pytest.param(question, id=question.name)


@pytest.mark.parametrize("question", [named(question) for question in OURS])
def test_each_promise_of_a_text_is_reached_in_every_draw(question):
    promised = PROMISES.get(question.name, {})
    assert promised or question.name in PLAIN
    names = list(inspect.signature(next(slips(question, [("", "")]))[1]).parameters)
    text = docstring(question)
    for words, reached in promised.items():
        assert words in text, f"{words!r} is not in the docstring of {question.name}"
        for seed in range(8):
            given = [dict(zip(names, case.args, strict=True)) for case in question.cases(seed)]
            assert any(eval(reached, {"torch": torch, "math": math} | one) for one in given), (words, seed)


@pytest.mark.parametrize("question", [named(question) for question in OURS])
def test_no_input_may_be_changed(question):
    def spoils(value):
        if isinstance(value, dict):
            value["spoilt"] = 1
        elif isinstance(value, torch.Tensor) and value.numel():
            value.zero_() if value.any() else value.fill_(1)
        return isinstance(value, dict) or isinstance(value, torch.Tensor) and value.numel() > 0

    count = len(question.cases(1)[0].args)
    for n in range(count):
        touched = []

        def answer(*args, n=n, touched=touched):
            result = question.reference(*args)
            result = result.clone() if isinstance(result, torch.Tensor) else result
            touched.append(spoils(args[n]))
            return result

        verdict = judge(question, 1, collect(answer, [case.args for case in question.cases(1)]))
        assert verdict.passed != any(touched), f"argument {n + 1}"


@pytest.mark.parametrize("question", [named(question) for question in OURS if question.name in SLIPS])
def test_no_slip_passes(question):
    for what, answer in slips(question):
        verdict = judge(question, 1, collect(answer, [case.args for case in question.cases(1)], 0.5))
        assert not verdict.passed, what
