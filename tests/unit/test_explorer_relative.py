"""The explorers of relative biases and of segment recurrence against the formulas and a real model."""

import itertools

import numpy as np
import pytest
import torch

from tutorial_lib.encodings import ALiBi, ClippedBias, T5Bias, TableBias
from tutorial_lib.explorers import RecurrenceExplorer, RelativeBiasExplorer
from tutorial_lib.explorers.recurrence import LENGTH
from tutorial_lib.explorers.relative import METHODS, SIGNS
from tutorial_lib.model import Config, Memory, Transformer
from tutorial_lib.training import seeded
from workshop import front


# ---- relative biases ----
def test_the_wrong_sign_swaps_past_and_future():
    for method in METHODS:
        right, wrong = (
            front.seen(RelativeBiasExplorer, method=method, tokens=8, sign=sign) for sign in SIGNS
        )
        z, swapped = right.views["bias"], wrong.views["bias"]
        np.testing.assert_array_equal(swapped, z.T)
        assert (method == "ALiBi") == np.array_equal(swapped, z)
        assert ("learned for the other" in wrong.description) == (method != "ALiBi")
        assert "learned for the other" not in right.description
        if method != "ALiBi":
            assert (np.tril(z, -1)[np.tril_indices(8, -1)] < 0).all() and (z[np.triu_indices(8, 1)] > 0).all()


@pytest.mark.parametrize(
    ("method", "made"),
    [
        ("full table", lambda: TableBias(12, 32)),
        ("clipped", lambda: ClippedBias(12, 16)),
        ("T5 buckets", lambda: T5Bias(12, bidirectional=True, n_buckets=32)),
        ("ALiBi", lambda: ALiBi(12)),
    ],
)
def test_the_costs_are_those_of_real_tensors(method, made):
    encoding, p = made(), torch.arange(32)
    params = {"method": method, "tokens": 32, "size": 16, "view": "memory"}
    drawn = front.seen(RelativeBiasExplorer, **params).views["beside"]
    kept, square, line = drawn[1:, drawn[0].tolist().index(32)]
    sizes = [t.numel() * t.element_size() for t in encoding.parameters()]
    assert kept == (sum(sizes) if sizes else 4 * len(encoding.m))
    for tensor, said in ((encoding.dense(p, p), square), (encoding.bias_by_offset(p, p), line)):
        assert tensor.dtype == torch.float32 and tensor.numel() * 4 == said
    assert drawn[2, drawn[0].tolist().index(4096)] == 805_306_368  # 12 · 4096² · 4


def test_numbers_are_told_apart_as_the_description_says():
    for method, different in (("full table", 255), ("clipped", 33), ("T5 buckets", 31), ("ALiBi", 128)):
        params = {"method": method, "tokens": 128, "size": 16, "far": 16}
        assert (
            f"the 255 offsets have {different} different numbers"
            in front.seen(RelativeBiasExplorer, **params).description
        )


@pytest.mark.parametrize("sign", SIGNS)
def test_the_bias_challenge_is_measured(sign):
    asked = [
        {"method": method, "tokens": tokens, "size": size, "far": far, "sign": sign}
        for method, tokens, size, far in itertools.product(METHODS, (32, 128), (4, 8, 16), (16, 128))
    ]
    told = front.ask(RelativeBiasExplorer, *asked)
    won = [(params, said.reached) for params, said in zip(asked, told, strict=True) if said.reached]
    assert {(params["method"], params["size"], params["far"]) for params, _said in won} == {
        ("clipped", 16, 16),
        ("clipped", 16, 128),
        ("T5 buckets", 16, 16),
    }
    assert all(params["tokens"] == 128 for params, _said in won)
    assert won[0][1] == "33 numbers serve 255 offsets; from distance 16 on, they all share one."


# ---- segment recurrence ----
@pytest.mark.parametrize(
    ("segment", "memory", "layers"),
    [(4, 0, 2), (4, 1, 6), (4, 4, 2), (2, 4, 3), (8, 1, 3), (8, 16, 1), (2, 16, 1)],
)
def test_a_real_model_reaches_what_is_drawn(segment, memory, layers):
    """Read segment by segment with a Memory, a token changes exactly the outputs that depend on it."""
    model = seeded(lambda: Transformer(Config(30, 16, n_layers=layers, n_heads=1)), 0).double()

    @torch.no_grad()
    def read(tokens):
        past, found = Memory(memory), []
        for start in range(0, LENGTH, segment):
            found.append(model(tokens[:, start : start + segment], memory=past))
        return torch.cat(found, 1)

    tokens = torch.arange(LENGTH)[None].repeat(LENGTH + 1, 1)
    tokens[torch.arange(LENGTH), torch.arange(LENGTH)] = 29  # row n: another token at n
    out = read(tokens)
    change = (out[:-1] - out[-1]).abs().amax(-1).T  # [query, token]
    changed = change > 1e-13
    assert change[changed].min() > 1e-9 > 1e4 * change[~changed].max()
    for query in range(LENGTH):
        drawn = front.seen(RecurrenceExplorer, segment=segment, memory=memory, layers=layers, query=query)
        assert (drawn.views["states"][-1] > 0).tolist() == changed[query].tolist(), query


def test_the_states_are_told_apart():
    said = front.seen(RecurrenceExplorer, segment=4, memory=4, layers=2, query=14)
    z = said.views["states"]
    assert z.shape == (3, LENGTH)
    assert z[0].nonzero()[0].tolist() == [14]
    assert z[1].tolist() == [0] * 8 + [2] * 4 + [3] * 3 + [0] * 9
    assert z[2].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 3 + [0] * 9
    early = front.seen(RecurrenceExplorer, segment=4, memory=8, layers=1, query=5).views["states"]
    assert early[1].tolist() == [2] * 4 + [3] * 2 + [0] * 18
    for part in (
        "looks at 7 keys, from 8 on,",
        "2 layers depends on 11 tokens, from 4 on,",
        "from 12 on pass gradients",
        "2 × 4 states",
        "7 offsets, but 4 positions",
        "3 collisions.",
    ):
        assert part in said.description


def test_gradients_stop_where_the_description_says():
    model, past = seeded(lambda: Transformer(Config(30, 16, n_heads=1)), 0), Memory(4)
    entered = []
    model.tokens.register_forward_hook(lambda _module, _ids, x: entered.append(x) or x.retain_grad())
    for start in (8, 12):
        out = model(torch.arange(start, start + 4)[None], memory=past)
    out[0, 2].sum().backward()  # token 14, with the segment 12 … 15
    assert entered[0].grad is None
    assert entered[1].grad.abs().sum(-1)[0].gt(0).tolist() == [True, True, True, False]


@pytest.mark.parametrize(("segment", "memory"), list(itertools.product((2, 4, 8), (0, 1, 4, 16))))
def test_restarted_positions_collide_and_offsets_do_not(segment, memory):
    for query in (0, 3, 14, 23):
        said = front.seen(RecurrenceExplorer, segment=segment, memory=memory, query=query)
        keys = list(range(max(0, query // segment * segment - memory), query + 1))
        collisions = len(keys) - len({j % segment for j in keys})
        assert f"{collisions or 'no'} collision" in said.description
        twin = next(j for j in keys if j % segment == query % segment)
        assert (": a collision" in said.readouts["scores"]) == (twin != query)
        assert f"r = {twin - query}: " in said.readouts["scores"]


def test_the_recurrence_challenge_is_measured():
    cases = list(itertools.product((2, 4, 8), (0, 1, 2, 4, 8, 16), (1, 2, 3, 4, 6)))
    asked = [
        {"segment": segment, "memory": memory, "layers": layers, "query": query}
        for segment, memory, layers in cases
        for query in (22, 23)
    ]
    won = [
        tuple(params.values())
        for params, said in zip(asked, front.ask(RecurrenceExplorer, *asked), strict=True)
        if said.reached
    ]
    assert won == [(4, 1, 6, 23), (8, 1, 3, 23), (8, 1, 4, 23), (8, 1, 6, 23), (8, 2, 3, 23)]
    assert front.seen(RecurrenceExplorer, segment=8, memory=1, layers=3, query=23).reached == (
        "3 × 1 = 3 states, and a token 23 places back is reached, though each layer looks back 8 places at "
        "most."
    )
