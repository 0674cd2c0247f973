"""What is said of an answer that is one step from a right one: what was done, and only what was tried."""

import ast
import math

import pytest
import torch

from course.checks import near, questions
from course.checks.answer import collect
from course.checks.judge import judge

SEEDS = (1, 20)


def ours(name, change):
    """Our answer, given the arguments as ``change`` makes them."""
    return lambda *args: questions.find(name).reference(*change(*args))


NEAR = {
    "another argument": (
        "sinusoid_table",
        ours("sinusoid_table", lambda p, d, b: (p, d, b * b)),
        "`base` is squared",
    ),
    "16 bits": (
        "sinusoid_table",
        ours("sinusoid_table", lambda p, d, b: (p.half().float(), d, b)),
        "`positions` is rounded to float16",
    ),
    "one for another": (
        "memory_scores",
        ours("memory_scores", lambda x, m, Q, K, u, v, R: (x, m, Q, K, v, v, R)),
        "`v` stands for `u`",
    ),
    "always the same": (
        "xpos_scores",
        ours("xpos_scores", lambda q, k, m, n, b, gamma, B: (q, k, m, n, b, 0.4, B)),
        "`gamma` is always 0.4",
    ),
    "a function": (
        "mirror_gap",
        lambda bias: (bias.softmax(-1) - bias.softmax(-1).flip(-1, -2)).abs().sum((-1, -2)),
        "`sum` stands where `amax` belongs",
    ),
    "an operation": (
        "dynamic_ntk_theta",
        lambda d, b, L, n: (b * max(1, n / L) ** (d / (d + 2))) ** (-torch.arange(0, d, 2) / d),
        "a sum stands where a difference belongs (next to `dim`)",
    ),
    "what is left out": (
        "rope_shift_error",
        lambda q, k, f, g: questions.find("rope_shift_error").reference(q, k, 0 * f, g),
        "`angles` is 0 everywhere",
    ),
    "instead of minus infinity": (
        "alibi_bias",
        lambda *args: questions.find("alibi_bias").reference(*args).clamp(min=-1e3),
        "-1000 stands where −inf belongs",
    ),
}


@pytest.mark.parametrize("name, answer, said", NEAR.values(), ids=NEAR)
def test_what_differs_in_one_step_is_told(name, answer, said):
    question = questions.find(name)
    for seed in SEEDS:
        found = judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]))
        assert (found.passed, found.kind) == (False, "near") and said in found.text, (found.kind, found.text)
        assert said.split(";")[0] in found.name


FEW = {
    "words": ("which_encoding", lambda scores: "rotary"),
    "True and False": ("untrained_rows", lambda start, end: (end - start).abs().sum(1) < 1e-3),
    "one number": ("ntk_factor", lambda d, base, L, N: 1.0),
    "another kind of number": (
        "rope_rotate",
        lambda *args: questions.find("rope_rotate").reference(*args).float(),
    ),
}


@pytest.mark.parametrize("name, answer", FEW.values(), ids=FEW)
def test_what_could_fit_by_chance_is_not_told(name, answer):
    question = questions.find(name)
    for seed in SEEDS:
        found = judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]))
        assert not found.passed and found.kind != "near", found.text


def test_what_is_left_out_is_named_by_what_was_left_out():
    def told(before, after):
        return near._change(before, after, frozenset({"rows"}))

    difference = ast.parse("a * b - rows", mode="eval").body
    assert told(difference, difference.left) == "`rows` is left out of a difference"
    assert told(difference, difference.right) == "one side of a difference is left out"
    changed = ast.parse("rows - a * b", mode="eval").body
    assert told(difference, changed) == "the two sides of a difference change places"
    call = ast.parse("x.abs()", mode="eval").body
    assert told(call, call.func.value) == "`abs` is left out"


def test_only_the_learners_own_names_are_used():
    """In the buckets of T5, ``k`` is where a table ends; in Shaw's attention it is the keys."""
    question = questions.find("shaw_attention")
    parts = near._parts(question.reference)
    asked = ("q", "k", "v", "w_K", "w_V", "q_positions", "k_positions")
    assert near._meant(parts, "_shaw_attention", question.reference, asked) == set(asked)
    for name in parts.keys() - {"_shaw", "_shaw_attention"}:
        assert "k" not in near._meant(parts, name, question.reference, asked), name


def test_nan_and_changed_input_silence_no_other_diagnosis():
    def attention(q, k, v, slopes):
        i = torch.arange(k.shape[2] - q.shape[2], k.shape[2])[:, None]
        j = torch.arange(k.shape[2])
        bias = (slopes[:, None, None] * (i - j)).masked_fill(j > i, math.inf)
        return (q @ k.mT / math.sqrt(q.shape[-1]) + bias).softmax(-1) @ v

    def shares(allowed, layers, residual):
        allowed |= torch.eye(len(allowed), dtype=torch.bool)
        return questions.find("mask_shares").reference(allowed, layers, residual)

    for name, answer, besides in (
        ("alibi_attention", attention, "the result holds NaN ("),
        ("mask_shares", shares, "the answer changes its own input (argument 1)"),
    ):
        question = questions.find(name)
        found = judge(question, 1, collect(answer, [case.args for case in question.cases(1)]))
        assert found.kind == "mistake" and "Besides, " in found.text and besides in found.text, found.text
