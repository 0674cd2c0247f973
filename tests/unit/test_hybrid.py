"""Hybrids against their equations, one pair at a time in float64; and what a softmax makes of them."""

import copy

import pytest
import torch

from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings import (
    TUPE,
    Absolute,
    ALiBi,
    ClippedBias,
    Compose,
    HybridConcat,
    HybridSum,
    KeySide,
    Learned,
    Shaw,
    Sinusoidal,
    Sinusoidal2D,
    SwinBias,
    T5Bias,
    TableBias,
    grid,
)
from tutorial_lib.model import Config, Transformer

F64 = torch.float64


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


class Smooth(Absolute):
    """Vectors by a plain formula that a loop can repeat, in float64."""

    dim = 5

    def vectors(self, positions):
        return torch.stack([(positions.double() * w / 3 + w).sin() for w in range(1, 6)], -1)


def pe(p):
    return Smooth().vectors(torch.tensor(p))


def relative():
    return ClippedBias(3, 2, std=1.0)


def r(e, i, j):
    """One number per head."""
    return e.relative.b[:, max(-2, min(2, j - i)) + 2]


def concat(e, i, j):
    return e.W_o.weight @ torch.cat([pe(i), r(e, i, j)])


def tupe(e, h, i, j):
    """Eq. 7 and 8: the two position terms of head h, of width 4."""
    rows, products = slice(4 * h, 4 * h + 4), []
    for p, U in ((pe(i), e.U_Q), (pe(j), e.U_K)):
        p = (p - p.mean()) / (p.var(correction=0) + e.norm.eps).sqrt() * e.norm.weight + e.norm.bias
        products.append(U.weight[rows] @ p)
    b = r(e, i, j)[h] if e.relative is not None else 0
    return products[0] @ products[1] / 8**0.5 + b


HYBRIDS = {  # how to make it, and its bias at head h, positions i and j
    "sum": (
        lambda: HybridSum(Smooth(), relative()),
        lambda e, h, i, j: e.w.weight[h] @ pe(i) + r(e, i, j)[h],
    ),
    "key-side": (
        lambda: KeySide(Smooth(), relative()),
        lambda e, h, i, j: e.w.weight[h] @ pe(j) + r(e, i, j)[h],
    ),
    "concat": (lambda: HybridConcat(Smooth(), relative()), lambda e, h, i, j: concat(e, i, j)[h]),
    "mlp": (
        lambda: HybridConcat(Smooth(), relative(), hidden=7),
        lambda e, h, i, j: e.W_2.weight[h] @ (concat(e, i, j) + e.W_o.bias).relu(),
    ),
    "tupe-a": (lambda: TUPE(Smooth(), 3, 4), tupe),
    "tupe-r": (lambda: TUPE(Smooth(), 3, 4, relative=relative()), tupe),
    "tupe-cls": (
        lambda: TUPE(Smooth(), 3, 4, relative=relative(), untie_cls=True),
        lambda e, h, i, j: 0 if i == 0 else e.theta_2[h] if j == 0 else tupe(e, h, i, j),
    ),
}
NULL, WORKING = ("sum", "concat"), ("key-side", "mlp", "tupe-a", "tupe-r", "tupe-cls")
POSITIONS = {
    "square": (torch.arange(5), torch.arange(5)),
    "decode": (torch.arange(6, 7), torch.arange(7)),
    "chunk": (torch.arange(2) + 3, torch.arange(5)),
    "gaps": (torch.tensor([3, 4, 9]), torch.tensor([2, 5, 1, 20])),
    "rows": (torch.tensor([[0, 1, 2], [0, 0, 1]]), torch.tensor([[0, 1, 2], [0, 0, 1]])),
    "rows of keys": (torch.arange(2), torch.tensor([[0, 1, 2], [5, 7, 9]])),
    "rows of queries": (torch.tensor([[0, 1], [5, 9]]), torch.arange(3)),
}


def made(name):
    """In float64, with every parameter in motion: LayerNorm and θ start at 1 and 0."""
    encoding = HYBRIDS[name][0]().double()
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.add_(torch.randn_like(parameter) / 2)
    return encoding


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("name", HYBRIDS)
def test_a_hybrid_is_its_equation(name, positions):
    encoding, formula, (q, k) = made(name), HYBRIDS[name][1], POSITIONS[positions]
    rows = max(p.shape[0] if p.ndim == 2 else 1 for p in (q, k))
    with torch.no_grad():
        expected = torch.tensor(
            [
                [
                    [
                        [float(formula(encoding, h, i, j)) for j in k.expand(rows, -1)[b].tolist()]
                        for i in q.expand(rows, -1)[b].tolist()
                    ]
                    for h in range(3)
                ]
                for b in range(rows)
            ],
            dtype=F64,
        )
    actual = encoding.bias(q, k)
    close(actual, expected if q.ndim + k.ndim > 2 else expected[0])
    assert encoding.doors == ("bias",)


# ---- what a softmax sees ----


def weights(encoding, causal, grads=False):
    torch.manual_seed(2)
    q, k, v = torch.randn(3, 1, 3, 6, 4, dtype=F64)
    out, weights = attention(q, k, v, encoding, causal=causal, backend="eager", return_weights=True)
    return torch.autograd.grad(out.square().sum(), encoding.parameters()) if grads else weights


@pytest.mark.parametrize("causal", [True, False])
def test_the_popular_sum_is_its_relative_part(causal):
    encoding = made("sum")
    close(weights(encoding, causal), weights(encoding.relative, causal))
    absolute, relative_ = weights(encoding, causal, grads=True)[::-1]
    assert absolute.abs().max() < 1e-14 < 1e-3 < relative_.abs().max()
    assert absolute.shape == encoding.w.weight.shape


@pytest.mark.parametrize("causal", [True, False])
def test_the_popular_concatenation_is_a_mix_of_its_relative_part(causal):
    encoding = made("concat")
    mixed = copy.deepcopy(encoding.relative)
    mixed.b.data = encoding.W_o.weight[:, 5:] @ mixed.b  # W_r r
    close(weights(encoding, causal), weights(mixed, causal))
    absolute, mix = weights(encoding, causal, grads=True)[1].split([5, 3], 1)
    assert absolute.abs().max() < 1e-14 < 1e-3 < mix.abs().max()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", WORKING)
def test_other_hybrids_see_absolute_positions(name, causal):
    encoding = made(name)
    for gradient in weights(encoding, causal, grads=True):
        assert gradient.abs().max() > 1e-3
    for i in range(2, 6):  # more than the relative part: rows differ when both positions move
        one, other = (encoding.bias(p[-1:], p).softmax(-1) for p in (torch.arange(i), torch.arange(i) + 7))
        assert (one - other).abs().max() > 1e-3


@pytest.mark.parametrize("name", HYBRIDS)
def test_only_the_popular_forms_do_not_shift(name):
    """With absolute vectors in it, and yet the model cannot say where a text begins."""
    torch.manual_seed(0)
    model = Transformer(Config(11, d_model=12, n_heads=3), made(name)).double()
    tokens, p = torch.randint(11, (2, 7)), torch.arange(7)
    shift = (model(tokens, p + 100) - model(tokens, p)).abs().max()
    assert shift < 1e-12 if name in NULL else shift > 1e-3


def test_absolute_on_the_input_and_a_relative_bias_is_a_composition():
    hybrid = Compose(Learned(9, 12), ClippedBias(3, 2))
    assert hybrid.doors == ("embed", "bias")
    learned, bias = hybrid.parts
    x, p = torch.randn(1, 9, 12), torch.arange(9)
    close(hybrid.embed(x, p), x + learned.table, 0)
    close(hybrid.bias(p, p), bias.bias(p, p), 0)


# ---- scales, sharing, dtypes ----


def test_hybrids_of_images():
    """The parts of a pair get the same places of a grid, row and column."""
    p, position, relative = grid(3, 2), Sinusoidal2D(8), SwinBias(2, (3, 3), std=1.0)
    for make in (HybridSum, KeySide, HybridConcat):
        encoding = make(position, relative)
        q = torch.randn(1, 2, 6, 4)
        weights = attention(q, q, q, encoding, p, p, backend="eager", return_weights=True)[1]
        s = scores(q, q, None) + encoding.bias(p, p)
        torch.testing.assert_close(weights, s.softmax(-1))
        assert encoding.axes == 2 and encoding.bias(p, p).shape == (2, 6, 6)
    tupe = TUPE(position, 2, 4, relative=relative)
    PE = tupe.norm(position.vectors(p))
    k_q, k_k = (U(PE).unflatten(-1, (2, 4)).transpose(0, 1) for U in (tupe.U_Q, tupe.U_K))
    torch.testing.assert_close(tupe.bias(p, p), k_q @ k_k.mT * 8**-0.5 + relative.bias(p, p))


def test_scales():
    """TUPE's own wins; the others take that of their relative part."""
    t5, clipped = T5Bias(3), relative()
    for make in (HybridSum, KeySide, HybridConcat):
        assert make(Smooth(), t5).scale == 1.0 and make(Smooth(), clipped).scale is None
    assert TUPE(Smooth(), 3, 8).scale == TUPE(Smooth(), 3, 8, relative=t5).scale == 1 / 4


@pytest.mark.parametrize("name", ["tupe-a", "tupe-r"])
def test_tupe_scales_content_and_positions_alike(name):
    """Eq. 7 and 8 as a whole: q·k and the position term over √(2d), b over nothing."""
    encoding, p = made(name), torch.arange(4)
    q, k, v = torch.randn(3, 1, 3, 4, 4, dtype=F64)
    with torch.no_grad():
        alpha = torch.tensor(
            [
                [
                    [float(q[0, h, i] @ k[0, h, j] / 8**0.5 + tupe(encoding, h, i, j)) for j in range(4)]
                    for i in range(4)
                ]
                for h in range(3)
            ],
            dtype=F64,
        )
    for backend in ("eager", "sdpa"):
        close(attention(q, k, v, encoding, p, p, backend=backend)[0], alpha.softmax(-1) @ v[0], 1e-11)


def test_the_first_theta_would_cancel():
    encoding, p = made("tupe-cls"), torch.arange(5)
    v = encoding.bias(p, p)
    with_theta_1 = v.clone()
    with_theta_1[:, 0] += 3.7
    close(v.softmax(-1), with_theta_1.softmax(-1))
    assert "theta_2" in dict(TUPE(Smooth(), 3, 4, untie_cls=True).named_parameters())
    assert "theta_2" not in dict(TUPE(Smooth(), 3, 4).named_parameters())


def test_options_are_shown():
    assert "hidden=7" in repr(HYBRIDS["mlp"][0]()) and "hidden=None" in repr(HYBRIDS["concat"][0]())
    assert "3, 4, untie_cls=True" in repr(HYBRIDS["tupe-cls"][0]())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_modules_keep_their_angles(dtype):
    """Only vectors and weights are rounded, not positions: neighbours far out stay apart."""
    encoding = KeySide(Sinusoidal(8), ALiBi(1)).to(dtype)
    exact = copy.deepcopy(encoding).double()
    p = torch.arange(4000, 4004)
    close(encoding.read(p).double(), exact.read(p.double()), 0.02)
    assert encoding.read(p).unique().numel() == 4


# ---- wrong inputs ----


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: HybridSum(ALiBi(2), ALiBi(2)), TypeError, "HybridSum takes .*position vectors.*not ALiBi"),
        (lambda: HybridSum(Smooth(), Smooth()), TypeError, "HybridSum takes a relative bias.*not Smooth"),
        (lambda: KeySide(Smooth(), Shaw(4, 2)), TypeError, "KeySide takes a relative bias.*not Shaw"),
        (lambda: HybridConcat(None, ALiBi(2)), TypeError, "HybridConcat takes .*not NoneType"),
        (lambda: HybridConcat(Smooth(), None), TypeError, "HybridConcat takes a relative bias.*NoneType"),
        (lambda: HybridSum(Sinusoidal, ALiBi(2)), TypeError, "not the class Sinusoidal"),
        (lambda: HybridSum(Sinusoidal2D(8), ALiBi(2)), ValueError, "1 and 2 axes"),
        (lambda: HybridConcat(Smooth(), SwinBias(2, (3, 3))), ValueError, "1 and 2 axes"),
        (lambda: TUPE(Sinusoidal2D(8), 2, 4, untie_cls=True), ValueError, "untie_cls=True.*2 axes"),
        (lambda: HybridConcat(Smooth(), ALiBi(2), hidden=0), ValueError, "hidden=0.*positive integer"),
        (lambda: HybridConcat(Smooth(), ALiBi(2), hidden=1.5), ValueError, "hidden=1.5"),
        (lambda: TUPE(ALiBi(2), 2, 4), TypeError, "TUPE takes .*position vectors.*not ALiBi"),
        (
            lambda: TUPE(Smooth(), 2, 4, relative=Smooth()),
            TypeError,
            "TUPE takes a relative bias.*not Smooth",
        ),
        (lambda: TUPE(Smooth(), 0, 4), ValueError, "n_heads=0"),
        (lambda: TUPE(Smooth(), 2, 0), ValueError, "head_dim=0"),
        (
            lambda: TUPE(Smooth(), 2, 4, relative=ALiBi(1)),
            ValueError,
            r"n_heads=2, but relative=ALiBi\(1.*agree",
        ),
        (
            lambda: HybridSum(Learned(4, 5), TableBias(2, 9)).bias(torch.arange(5), torch.arange(5)),
            ValueError,
            "rows 0 to 3",
        ),
    ],
)
def test_errors_say_what_is_allowed(call, error, words):
    with pytest.raises(error, match=words):
        call()
