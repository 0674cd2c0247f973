"""The explorers of relative biases and of segment recurrence against the formulas and a real model."""

import itertools
import re

import numpy as np
import pytest
import torch

from tutorial_lib.encodings import ALiBi, ClippedBias, T5Bias, TableBias, TransformerXL, bucket, sinusoidal
from tutorial_lib.explorers import RecurrenceExplorer, RelativeBiasExplorer
from tutorial_lib.explorers.recurrence import LENGTH, reach
from tutorial_lib.explorers.relative import METHODS, SIGNS, costs
from tutorial_lib.model import Config, Memory, Transformer
from tutorial_lib.training import seeded


# ---- relative biases ----
def expected(method, n, size, far, r):
    """The bias that a table of this method has at the offset that it is asked for."""
    if method == "full table":
        return r / (n - 1)
    if method == "clipped":
        return max(-size, min(size, r)) / size
    if method == "ALiBi":
        return -abs(r) / n
    b = int(bucket(torch.tensor(r), bidirectional=True, n_buckets=2 * size, max_distance=far))
    return -b / (size - 1) if b < size else (b - size) / (size - 1)


CASES = list(itertools.product(METHODS, (4, 32), (4, 16), (16, 128), SIGNS))


@pytest.mark.parametrize(("method", "n", "size", "far", "sign"), CASES)
def test_every_cell_is_the_number_of_its_offset(method, n, size, far, sign):
    params = {"method": method, "tokens": n, "size": size, "far": far, "sign": sign, "i": 3, "j": 1}
    views, turn = RelativeBiasExplorer.scene(**params).views, 1 if sign == "j − i" else -1
    full = [[expected(method, n, size, far, turn * (j - i)) for j in range(n)] for i in range(n)]
    np.testing.assert_allclose(views["bias"].array(), full, atol=1e-6)
    looks = np.exp(full[3]) / np.exp(full[3]).sum()  # what the query at 3 gives to each key
    np.testing.assert_allclose(views["beside"].array(), [range(-3, n - 3), looks], atol=1e-6)
    assert views["bias"].mark == (3, 1)
    assert views["beside"].array()[:, views["beside"].mark] == pytest.approx([-2, looks[1]])
    assert f"key 1 gets {looks[1]:.2f}" in views["beside"].readout


@pytest.mark.parametrize(("method", "n", "size", "far", "sign"), CASES)
def test_the_readout_can_be_computed(method, n, size, far, sign):
    """The computation that it names, done again, gives the index and the number."""
    turn = 1 if sign == "j − i" else -1
    for i, j in ((0, 3), (1, 2), (2, 2), (3, 0)):
        said = (
            RelativeBiasExplorer.scene(method=method, tokens=n, size=size, far=far, sign=sign, i=i, j=j)
            .views["bias"]
            .readout
        )
        side = "future" if j > i else "past" if j < i else "the token itself"
        assert said.startswith(f"i = {i}, j = {j} ({side}): ")
        value = float(said.rsplit("= ", 1)[1])
        assert abs(value - expected(method, n, size, far, turn * (j - i))) < 0.0051
        if method == "ALiBi":
            assert f"−1/{n} · {abs(i - j)} = " in said
            continue
        first, second = (j, i) if turn == 1 else (i, j)
        assert f"{first} − {second}" in said
        inside = re.search(r"\[(.*)\] = \w+\[(\d+)\]", said)
        code, index = inside[1].replace("−", "-"), int(inside[2])
        assert index == eval(
            code,
            {
                "clip": lambda r, k: max(-k, min(k, r)),
                "bucket": lambda r: int(
                    bucket(torch.tensor(r), bidirectional=True, n_buckets=2 * size, max_distance=far)
                ),
            },
        )
        if method == "full table":
            assert index == turn * (j - i) + n - 1


def test_the_wrong_sign_swaps_past_and_future():
    for method in METHODS:
        right, wrong = (RelativeBiasExplorer.scene(method=method, tokens=8, sign=sign) for sign in SIGNS)
        z, swapped = right.views["bias"].array(), wrong.views["bias"].array()
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
    kept, square, line = costs(method, 32, 16).values()
    sizes = [t.numel() * t.element_size() for t in encoding.parameters()]
    assert kept == (sum(sizes) if sizes else 4 * len(encoding.m))
    for tensor, said in ((encoding.dense(p, p), square), (encoding.bias_by_offset(p, p), line)):
        assert tensor.dtype == torch.float32 and tensor.numel() * 4 == said
    params = {"method": method, "tokens": 32, "size": 16, "view": "memory"}
    view = RelativeBiasExplorer.scene(**params).views["beside"]
    drawn = view.array()
    assert drawn[:, view.mark].tolist() == [32, kept, square, line]
    at_4096 = drawn[:, drawn[0].tolist().index(4096)]
    assert at_4096[2] == 805_306_368  # 12 · 4096² · 4
    assert view.logx and view.logy


def test_numbers_are_told_apart_as_the_description_says():
    for method, different in (("full table", 255), ("clipped", 33), ("T5 buckets", 31), ("ALiBi", 128)):
        params = {"method": method, "tokens": 128, "size": 16, "far": 16}
        assert (
            f"the 255 offsets have {different} different numbers"
            in RelativeBiasExplorer.scene(**params).description
        )


@pytest.mark.parametrize("sign", SIGNS)
def test_the_bias_challenge_is_measured(sign):
    won = []
    for method, tokens, size, far in itertools.product(METHODS, (32, 128), (4, 8, 16), (16, 128)):
        said = RelativeBiasExplorer.reached(
            **RelativeBiasExplorer.settings(method=method, tokens=tokens, size=size, far=far, sign=sign)
        )
        past = [expected(method, tokens, size, far, -n) for n in range(128)]
        own = all(past.count(past[n]) == 1 for n in range(9))
        assert bool(said) == (tokens == 128 and past[20] == past[90] and own)
        won += [(method, size, far, said)] if said else []
    assert {case[:3] for case in won} == {("clipped", 16, 16), ("clipped", 16, 128), ("T5 buckets", 16, 16)}
    assert won[0][3] == "33 numbers serve 255 offsets; from distance 16 on, they all share one."


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
        assert torch.equal(reach(segment, memory, layers, query)[0], changed[query]), query


def test_the_states_are_told_apart():
    scene = RecurrenceExplorer.scene(segment=4, memory=4, layers=2, query=14)
    z = scene.views["states"].array()
    assert z.shape == (3, LENGTH)
    assert z[0].nonzero()[0].tolist() == [14]
    assert z[1].tolist() == [0] * 8 + [2] * 4 + [3] * 3 + [0] * 9
    assert z[2].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 3 + [0] * 9
    assert scene.views["states"].mark == (2, 4)
    early = RecurrenceExplorer.scene(segment=4, memory=8, layers=1, query=5).views["states"].array()
    assert early[1].tolist() == [2] * 4 + [3] * 2 + [0] * 18
    for part in (
        "looks at 7 keys, from 8 on,",
        "2 layers depends on 11 tokens, from 4 on,",
        "from 12 on pass gradients",
        "2 × 4 states",
        "7 offsets, but 4 positions",
        "3 collisions.",
    ):
        assert part in scene.description


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
        scene = RecurrenceExplorer.scene(segment=segment, memory=memory, query=query)
        view, start = scene.views["scores"], query // segment * segment
        keys = list(range(max(0, start - memory), query + 1))
        r, relative, restarted = view.array()
        assert r.tolist() == [j - query for j in keys]
        R, PE = TransformerXL(1, 16).R, sinusoidal
        for n, j in enumerate(keys):
            assert relative[n] == pytest.approx(float(R(torch.tensor(query - j)) @ R(torch.tensor(0))) / 8)
            own, other = (PE(torch.tensor(float(p % segment)), 16) for p in (query, j))
            assert restarted[n] == pytest.approx(float(own @ other) / 8, abs=1e-6)
        collisions = len(keys) - len({j % segment for j in keys})
        assert f"{collisions or 'no'} collision" in scene.description
        twin = next(n for n, j in enumerate(keys) if j % segment == query % segment)
        assert view.mark == twin and restarted[twin] == pytest.approx(1)
        assert (": a collision" in view.readout) == (keys[twin] != query)
        assert f"r = {keys[twin] - query}: " in view.readout


def test_the_recurrence_challenge_is_measured():
    won = []
    for segment, memory, layers in itertools.product((2, 4, 8), (0, 1, 2, 4, 8, 16), (1, 2, 3, 4, 6)):
        settings = RecurrenceExplorer.settings(segment=segment, memory=memory, layers=layers, query=23)
        said = RecurrenceExplorer.reached(**settings)
        assert bool(said) == (bool(reach(segment, memory, layers, 23)[0, 0]) and layers * memory <= 6)
        assert not RecurrenceExplorer.reached(**settings | {"query": 22})
        won += [(segment, memory, layers)] if said else []
    assert won == [(4, 1, 6), (8, 1, 3), (8, 1, 4), (8, 1, 6), (8, 2, 3)]
    assert RecurrenceExplorer.reached(segment=8, memory=1, layers=3, query=23) == (
        "3 × 1 = 3 states, and a token 23 places back is reached, though each layer looks back 8 places at "
        "most."
    )
