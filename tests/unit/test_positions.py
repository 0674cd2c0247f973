"""Where tokens stand: made and checked once, handed on as it is, and plain tensors for whoever wants them."""

import inspect
import os
import re
import sys
import types

import pytest
import torch
from torch._subclasses import FakeTensorMode

import tutorial_lib
from tutorial_lib.attention import attention
from tutorial_lib.encodings import (
    ALiBi,
    Compose,
    Learned,
    PositionalEncoding,
    Positions,
    Raster,
    Rotary,
    Shaw,
    Sinusoidal,
    SwinBias,
    T5Bias,
    alibi,
    grid,
    positions,
    rotary,
)
from tutorial_lib.model import Cache, Config, Transformer

Q, K = torch.randn(2, 2, 2, 3, 8)
LIBRARY = os.path.dirname(tutorial_lib.__file__)


def close(actual, expected, tolerance=1e-6):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def model_of(encoding, layers=4):
    return Transformer(Config(11, 16, n_layers=layers, n_heads=2), encoding)


# ---- once ----


def calls(run):
    """How many functions of the library a run enters."""
    n = 0

    def count(frame, event, _):
        nonlocal n
        n += event == "call" and frame.f_code.co_filename.startswith(LIBRARY)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return n


@pytest.mark.parametrize("encoding", [Rotary(8), Rotary(8, layout="half"), ALiBi(2)], ids=str)
def test_a_forward_of_four_layers_is_121_calls_into_the_library(encoding):
    model, tokens = model_of(encoding), torch.randint(11, (2, 6))
    assert 40 < calls(lambda: model(tokens)) <= 121


@pytest.mark.parametrize(
    "given", [None, torch.arange(6), torch.arange(12.0).view(2, 6)], ids=["none", "a row", "rows"]
)
def test_positions_are_checked_once_in_a_call_of_the_model(given, monkeypatch):
    made, init = [], Positions.__init__
    monkeypatch.setattr(Positions, "__init__", lambda self, *a, **k: made.append(1) or init(self, *a, **k))
    model = model_of(Compose(Sinusoidal(16), Rotary(8), Shaw(8, 2), T5Bias(2)))
    tokens, cache = torch.randint(11, (2, 6)), Cache()
    model(tokens, given)
    assert len(made) == 1
    model(tokens, given, cache=cache)
    made.clear()
    model(tokens[:, :1], cache=cache)
    assert len(made) <= 4  # the past, which somebody may have changed, the new token, and the last of each


def test_offsets_are_computed_once_for_all_layers(monkeypatch):
    computed, compute = [], positions._offsets
    monkeypatch.setattr(positions, "_offsets", lambda *a: computed.append(1) or compute(*a))
    for encoding in (Shaw(8, 2), Compose(T5Bias(2), Shaw(8, 2))):
        computed.clear()
        model_of(encoding)(torch.randint(11, (2, 6)), torch.arange(0, 12, 2))
        assert len(computed) == 1


def test_nothing_is_pinned_on_a_tensor():
    p, tokens, cache = torch.arange(6), torch.randint(11, (2, 6)), Cache()
    for encoding in (Rotary(8), ALiBi(2), Learned(9, 16)):
        model_of(encoding)(tokens, p)
        model_of(encoding)(tokens, p, cache=cache.copy())
        attention(Q, K, K, encoding, p[:3], p[:3])
    assert not vars(p)


def test_positions_that_were_made_before_pass_through(encoding, positions_for):
    """With the same numbers as from tensors; and shared ones serve many layers."""
    p, module = positions_for(encoding, 6), encoding.double()
    q, k, v = torch.randn(3, 2, 2, 6, 8, dtype=torch.float64)
    expected = attention(q, k, v, module, p, p, causal=True)
    given = Positions(p, encoding.axes)
    for where in (given, given.shared()):
        for _ in range(2):
            close(attention(q, k, v, module, where, where, causal=True), expected, 1e-12)
    model, tokens = model_of(module, 1).double(), torch.arange(12).view(2, 6) % 11
    close(model(tokens, given), model(tokens, p), 1e-12)


# ---- 0 … L − 1, if nobody says otherwise ----


def test_doors_count_by_themselves(encoding):
    """From 0 on, or from an offset; queries are the last keys."""
    if encoding.axes > 1 or any(
        not type(part).__module__.startswith("tutorial_lib")
        for part in encoding.modules()
        if isinstance(part, PositionalEncoding)
    ):
        return
    module, g = encoding.double(), torch.Generator().manual_seed(0)
    q, k, weights = (
        torch.randn(2, 2, *shape, generator=g, dtype=torch.float64) for shape in ((3, 8), (5, 8), (3, 5))
    )
    x = torch.randn(2, 5, module.token_dim(16), generator=g, dtype=torch.float64)
    for offset in (0, 4):
        p = torch.arange(offset, offset + 5)
        where = p[-3:], p
        for actual, expected in (
            (module.rotate(q, k, offset=offset), module.rotate(q, k, *where)),
            (module.content_bias(q, k, offset=offset), module.content_bias(q, k, *where)),
            (module.bias(3, 5, offset=offset), module.bias(*where)),
            (module.values(weights, offset=offset), module.values(weights, *where)),
            (module.embed(x, offset=offset), module.embed(x, p)),
        ):
            assert (actual is None) == (expected is None)
            if actual is not None:
                close(actual, expected, 1e-12)


def test_an_encoding_of_one_door_is_called_by_itself():
    close(Rotary(8)(Q, K, offset=2), Rotary(8).rotate(Q, K, *[torch.arange(2, 5)] * 2))
    close(ALiBi(8)(128, 128), ALiBi(8).bias(*[torch.arange(128)] * 2))
    close(Sinusoidal(8)(Q[0]), Sinusoidal(8).embed(Q[0], torch.arange(3)))
    close(rotary.rotate(Q, layout="half"), rotary.rotate(Q, torch.arange(3), layout="half"))


# ---- classes of others ----


class Theirs(PositionalEncoding):
    """Computes with tensors at every door, and says so if it gets anything else."""

    def _seen(self, *where):
        assert all(type(p) is torch.Tensor and p.dtype == torch.long for p in where)
        self.n = getattr(self, "n", 0) + 1

    def embed(self, x, positions):
        self._seen(positions)
        return x

    def rotate(self, q, k, q_positions, k_positions):
        self._seen(q_positions, k_positions)
        return q, k

    def content_bias(self, q, k, *where):
        self._seen(*where)

    def bias(self, q_positions, k_positions):
        self._seen(q_positions, k_positions)
        return torch.where(q_positions[..., :, None] - k_positions[..., None, :] >= 2, -1.0, 0.0)[None]


class Doubled(Rotary):
    def rotate(self, q, k, q_positions, k_positions):
        assert type(q_positions) is torch.Tensor
        return super().rotate(q, k, 2 * q_positions, 2 * k_positions)


class Nowhere(Sinusoidal):
    def vectors(self, positions):
        assert type(positions) is torch.Tensor
        return 0 * super().vectors(positions)


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_encodings_of_others_get_tensors(backend):
    tokens = torch.randint(11, (2, 6))
    for make, axes in (
        (lambda: Theirs(), 1),
        (lambda: Compose(Rotary(8), Theirs()), 1),
        (lambda: Raster(Theirs(), 3), 2),
    ):
        encoding = make()
        model_of(encoding)(tokens, None if axes == 1 else grid(2, 3), backend=backend)
        assert sum(getattr(part, "n", 0) for part in encoding.modules()) == 1 + 3 * 4
    close(model_of(Nowhere(16))(tokens).shape, (2, 6, 11))
    close(Doubled(8).rotate(Q, K, *[torch.arange(3)] * 2), Rotary(8).rotate(Q, K, *[2 * torch.arange(3)] * 2))
    where = Positions(3)
    close(Doubled(8).rotate(Q, K, where, where), Rotary(8).rotate(Q, K, *[2 * torch.arange(3)] * 2))


# ---- the value ----


def test_a_value_is_nobody_elses_tensor():
    p = torch.arange(3, dtype=torch.uint8)
    where, wide = Positions(p, offset=254), torch.arange(3)
    assert where.tensor.tolist() == [254, 255, 256] and where.first == 254
    given = Positions(wide)
    wide += 5
    assert given.tensor.tolist() == [0, 1, 2]


def test_a_part_knows_what_the_whole_does():
    whole = Positions(10, offset=3)
    for part, numbers in (
        (whole.narrow(2, 4), range(5, 9)),
        (whole.narrow(0, 10), range(3, 13)),
        (whole.narrow(0, 2).followed_by(whole.narrow(2, 3)), range(3, 8)),
    ):
        assert part.tensor.tolist() == [*numbers] and part._first == part.first == numbers[0]
        assert part.bounds() == (numbers[0], numbers[-1])
    apart = whole.narrow(0, 2).followed_by(whole.narrow(4, 2))
    assert apart.first is None and apart.bounds() == (3, 8)
    assert whole.narrow(3, 0).first is None and whole.narrow(3, 0).bounds() is None
    assert whole.narrow(9, 1).line_to(whole).tolist() == [*range(-9, 1)]
    assert apart.line_to(whole) is None


def test_rows_meet_one_row():
    one, rows = Positions(2), Positions(torch.tensor([[2, 3], [7, 8]]))
    assert one.followed_by(rows).tensor.tolist() == [[0, 1, 2, 3], [0, 1, 7, 8]]
    assert rows.followed_by(one).tensor.tolist() == [[2, 3, 0, 1], [7, 8, 0, 1]]
    assert one.offsets_to(rows).tolist() == [[[2, 3], [1, 2]], [[7, 8], [6, 7]]]


def test_a_fake_tensor_is_not_kept(monkeypatch):
    """θ that were first asked for without numbers serve nobody else."""
    monkeypatch.setattr(rotary, "_kept", {})
    p = torch.arange(3)
    with FakeTensorMode(allow_non_fake_inputs=True):
        rotary.Angles(8).angle(p)
    with torch.inference_mode():
        rotary.Angles(8).angle(p)
    assert type(rotary.Angles(8).angle(p)) is torch.Tensor and not rotary.Angles(8).angle(p).is_inference()
    x = torch.randn(1, 1, 3, 8, requires_grad=True)
    Rotary(8).rotate(x, x)[0].sum().backward()
    before = rotary.Angles(8).theta()
    before.zero_()
    assert rotary.Angles(8).angle(p)[1, 0] == 1 == rotary.Angles(8).theta()[0]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: Positions(-1), ValueError, "positions=-1.*0 or more"),
        (lambda: Positions(None), TypeError, "positions are a NoneType.*tensor.*length"),
        (lambda: Positions(True), TypeError, "positions are a bool"),
        (lambda: Positions(3, offset=0.5), TypeError, "offset=0.5.*integer"),
        (lambda: Positions(3, axes=2), ValueError, r"positions=3.*2 axes.*\[L, 2\]"),
        (lambda: Positions(torch.zeros(2, 2, 3)), ValueError, r"shape \(2, 2, 3\).*\[B, L\]"),
        (
            lambda: Rotary(8).rotate(Q, K, Positions(4), Positions(3)),
            ValueError,
            r"q_positions have shape \(4,\).*length 3",
        ),
        (
            lambda: Rotary(8).rotate(Q, K, Positions(3), Positions(4)),
            ValueError,
            r"k_positions have shape \(4,\).*length 3",
        ),
        (lambda: Rotary(8).rotate(Q, K, 4, 3), ValueError, "q has 4 tokens and k 3"),
        (lambda: Rotary(8).rotate(Q, K, 2, 3), ValueError, r"q_positions have shape \(2,\).*length 3"),
        (
            lambda: Rotary(8).rotate(Q, K, Positions(3), Positions(3), offset=2),
            ValueError,
            "offset=2.*Positions.0 … 2.*begin",
        ),
        (lambda: Positions(torch.tensor([2.0**24 - 1]), offset=1), ValueError, "positions reach 16777216"),
        (lambda: Rotary(8).rotate(Q, K, offset="2"), TypeError, "offset='2'.*integer"),
        (lambda: Rotary(8).rotate(Q.long(), K), ValueError, "q has dtype torch.int64: give floats"),
        (
            lambda: Rotary(8).rotate(Q[:, 0], K[:, 0], *[torch.arange(6).view(2, 3)] * 2),
            ValueError,
            r"k_positions have 2 rows.*k \(2, 3, 8\).*no batch or no heads.*\[B, H, L, D\]",
        ),
        (lambda: ALiBi(2).bias(-1, 3), ValueError, "q_positions=-1.*0 or more"),
        (lambda: Sinusoidal(8)(torch.arange(8)), ValueError, r"x has dtype torch.int64.*vectors\(positions"),
        (lambda: Rotary(8).rotate(Q, K[:, :, :2]), ValueError, "q has 3 tokens and k 2.*q_positions"),
        (lambda: ALiBi(2).bias(3, 2), ValueError, "q has 3 tokens and k 2.*q_positions"),
        (lambda: ALiBi(2).bias(3, [0, 1]), TypeError, "k_positions are a list.*tensor.*length"),
        (lambda: ALiBi(2).bias(None, 3), TypeError, "q_positions are a NoneType"),
        (
            lambda: ALiBi(2).bias(Positions(grid(2, 2), 2), 3),
            ValueError,
            "q_positions have 2 axes.*ALiBi reads 1",
        ),
        (
            lambda: SwinBias(2, (2, 2)).bias(4, 4),
            ValueError,
            "SwinBias reads positions of 2 axes.*give k_positions.*grid",
        ),
        (
            lambda: Sinusoidal(8).embed(Q[0], Positions(2)),
            ValueError,
            r"positions have shape \(2,\).*length 3",
        ),
        (
            lambda: Learned(4, 8).embed(torch.zeros(1, 5, 8)),
            ValueError,
            "positions run from 0 to 4.*rows 0 to 3",
        ),
        (lambda: Shaw(8, 2)(Q, K), TypeError, "Shaw opens content_bias and values.*call the door"),
        (lambda: Compose()(Q), TypeError, "Compose opens no door"),
        (
            lambda: model_of(Rotary(8))(torch.zeros(2, 3, dtype=torch.long), Positions(4)),
            ValueError,
            r"positions have shape \(4,\).*length 3",
        ),
    ],
)
def test_mistakes_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ---- what a reader sees ----


@pytest.mark.parametrize(
    "module, last",
    [(rotary, "return turn_q(q), turn_k(k)"), (alibi, "return _per_head(self.m, r)")],
    ids=["RoPE", "ALiBi"],
)
def test_the_plain_way_fits_on_a_screen(module, last):
    assert isinstance(module, types.ModuleType)
    source = inspect.getsource(module).split('"""', 2)[2]
    assert source[: source.index(last)].count("\n") <= 60
    assert re.search(r"\.cos\(\), angle\.sin\(\)", source[: source.index(last)]) or module is alibi
