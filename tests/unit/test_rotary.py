"""RoPE's frequencies and rotation, and xPos, against formulas written one number at a time."""

import gc
import math
import unittest.mock
import weakref

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings import (
    AxialRotary,
    Compose,
    DynamicNTK,
    Frequencies,
    Llama3,
    LongRoPE,
    MRoPE,
    NTKAware,
    PositionInterpolation,
    Rotary,
    T5Bias,
    XPos,
    YaRN,
    grid,
    permute_projection,
)
from tutorial_lib.encodings.positions import Positions
from tutorial_lib.encodings.rotary import Angles, Turn, rotate, turn, turn_plainly
from tutorial_lib.encodings.scaling import Scaling
from tutorial_lib.model import Cache, Config, Transformer

F64 = torch.float64
LAYOUTS = ["interleaved", "half"]


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def numbers(values):
    return torch.tensor(values, dtype=F64)


# ---- the scalings, one θ at a time ----


def plain(b, d):
    return [1 / b ** (2 * t / d) for t in range(d // 2)]


def turns(theta, L):
    wavelength = 2 * math.pi / theta
    return L / wavelength


def parts(thetas, gammas, s):
    return [(1 - g) * theta / s + g * theta for theta, g in zip(thetas, gammas, strict=True)]


def yarn(b, d, s, L, alpha, beta):
    gammas = []
    for theta in plain(b, d):
        r = turns(theta, L)
        gammas.append(0 if r < alpha else 1 if r > beta else (r - alpha) / (beta - alpha))
    return parts(plain(b, d), gammas, s)


def yarn_released(b, d, s, L, alpha, beta, rounded):
    """Between the real index where r = β and the one where r = α, found by bisection."""

    def index(r):
        low, high = -float(d), 2.0 * d
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if turns(b ** (-2 * middle / d), L) > r else (low, middle)
        return low

    first, last = index(beta), index(alpha)
    if rounded:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(0, first), min(d - 1, last)
    gammas = [1 if t < first else 0 if t > last else 1 - (t - first) / (last - first) for t in range(d // 2)]
    return parts(plain(b, d), gammas, s)


def llama3(b, d, s, L, low, high):
    out = []
    for theta in plain(b, d):
        wavelength = 2 * math.pi / theta
        if wavelength < L / high:
            out.append(theta)
        elif wavelength > L / low:
            out.append(theta / s)
        else:
            smooth = (L / wavelength - low) / (high - low)
            out.append((1 - smooth) * theta / s + smooth * theta)
    return out


@pytest.mark.parametrize("b", [10_000.0, 500_000.0, 50.0])
@pytest.mark.parametrize("d", [4, 16, 64, 128])
def test_each_scaling_is_its_formula(b, d):
    def theta(scaling):
        return Frequencies(d, b, scaling=scaling).theta()

    close(theta(None), numbers(plain(b, d)))
    close(theta(PositionInterpolation(2.5)), numbers([x / 2.5 for x in plain(b, d)]))
    close(theta(NTKAware(3.0)), numbers(plain(b * 3.0 ** (d / (d - 2)), d)))
    close(theta(YaRN(16, L=2048)), numbers(yarn(b, d, 16, 2048, 1, 32)))
    close(theta(YaRN(3, L=600, alpha=2, beta=20)), numbers(yarn(b, d, 3, 600, 2, 20)))
    close(theta(Llama3()), numbers(llama3(b, d, 8, 8192, 1, 4)))
    close(theta(Llama3(s=32, L=1000, low=2, high=9)), numbers(llama3(b, d, 32, 1000, 2, 9)))
    for ramp in ("index", "rounded index"):
        rounded = ramp == "rounded index"
        close(theta(YaRN(16, L=2048, ramp=ramp)), numbers(yarn_released(b, d, 16, 2048, 1, 32, rounded)))
        close(
            theta(YaRN(3, L=600, alpha=2, beta=20, ramp=ramp)),
            numbers(yarn_released(b, d, 3, 600, 2, 20, rounded)),
        )


def test_longrope_is_its_formula():
    """One list of factors up to L, the other beyond, for each row of its own length."""
    short, long = [1.0, 1.5, 2.0, 4.0], [1.0, 3.0, 9.0, 27.0]
    f = Frequencies(8, 500.0, scaling=LongRoPE(short, long, L=64, s=8))
    up_to_L, beyond = ([x / y for x, y in zip(plain(500.0, 8), by, strict=True)] for by in (short, long))
    for length, expected in ((None, up_to_L), (1, up_to_L), (64, up_to_L), (65, beyond), (9999, beyond)):
        close(f.theta(None if length is None else torch.tensor(length)), numbers(expected))
    close(f.theta(torch.tensor([65, 64])), numbers([beyond, up_to_L]))
    assert f.attention_factor == pytest.approx(math.sqrt(1 + 3 / 6))
    assert LongRoPE(short, long, L=64, s=8, attention=1.0).attention_factor == 1


@pytest.mark.parametrize("s", [1.0, 2.0])
def test_dynamic_ntk_is_its_formula(s):
    b, d, L = 10_000.0, 16, 100
    f = Frequencies(d, b, scaling=DynamicNTK(L, s))
    for length in (1, 99, 100, 101, 250, 4000):
        stretched = b * (s * max(length, L) / L - (s - 1)) ** (d / (d - 2))
        close(f.theta(torch.tensor(length)), numbers(plain(stretched, d)))
    close(f.theta(), Frequencies(d, b).theta(), 0)
    rows = f.theta(torch.tensor([50, 250]))
    close(rows, torch.stack([f.theta(torch.tensor(50)), f.theta(torch.tensor(250))]), 0)


def test_ntk_keeps_the_highest_frequency_and_interpolates_the_lowest():
    theta, raw = Frequencies(64, scaling=NTKAware(8)).theta(), Frequencies(64).theta()
    close(raw[0] / theta[0], numbers(1.0))
    close(raw[-1] / theta[-1], numbers(8.0), 1e-11)


@pytest.mark.parametrize(
    "scaling",
    [
        PositionInterpolation(1),
        NTKAware(1),
        YaRN(1, L=64),
        YaRN(1, L=64, ramp="index"),
        Llama3(1, L=64),
    ],
    ids=str,
)
def test_a_factor_of_1_changes_nothing(scaling):
    f = Frequencies(16, scaling=scaling)
    close(f.theta(), Frequencies(16).theta())
    assert f.attention_factor == 1


def test_a_yarn_ramp_without_width():
    """Both ends of the index ramp round to one index: no 0/0."""
    scaling = YaRN(4, L=8, ramp="rounded index")  # so short that no pair turns 32 times
    close(Frequencies(4, 1e30, scaling=scaling).theta(), numbers([1.0, 1e-15 / 4]), 1e-14)
    assert Frequencies(4, 1e30, scaling=YaRN(4, L=1, ramp="rounded index")).theta().isfinite().all()


def test_paper_and_released_yarn_differ():
    paper, released = (
        Frequencies(64, scaling=YaRN(32, L=4096, ramp=ramp)).theta()
        for ramp in ("wavelength", "rounded index")
    )
    assert 0.2 < (paper / released).min() < 0.3  # at worst a factor of four


# ---- the rotation ----


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partial_rotation_leaves_the_rest(layout):
    x, p = torch.randn(2, 3, 5, 10), torch.arange(5) + 3
    y = rotate(x, p, frequencies=Frequencies(10, rotary_dim=6), layout=layout)
    close(y[..., :6], rotate(x[..., :6], p, layout=layout), 0)
    close(y[..., 6:], x[..., 6:], 0)
    assert not torch.allclose(y[..., 4:6], x[..., 4:6])


@pytest.mark.parametrize("share, turning", [(0.0, 0), (0.5, 2), (0.7, 2), (0.75, 3), (1.0, 4)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_p_rope_turns_the_highest_frequencies_only(layout, share, turning):
    x, p = torch.randn(2, 3, 5, 8), torch.arange(5) + 1
    y, full = rotate(x, p, frequencies=Frequencies(8, p=share), layout=layout), rotate(x, p, layout=layout)
    pairs = torch.arange(8).view(4, 2) if layout == "interleaved" else torch.arange(8).view(2, 4).T
    turned, rest = pairs[:turning].flatten(), pairs[turning:].flatten()
    close(y[..., turned], full[..., turned], 0)
    close(y[..., rest], x[..., rest], 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_attention_factor_of_yarn_is_in_the_rotation(layout):
    """On q and on k, so a score is multiplied by its square, 1/t."""
    scaling = YaRN(8, L=64)
    factor = 0.1 * math.log(8) + 1
    with_it = Rotary(8, layout=layout, frequencies=Frequencies(8, scaling=scaling))
    without = Rotary(8, layout=layout, frequencies=Frequencies(8, scaling=YaRN(8, L=64, attention=1.0)))
    q, k, p = *torch.randn(2, 1, 2, 6, 8, dtype=F64), torch.arange(6)
    close(scores(q, k, with_it, p, p), scores(q, k, without, p, p) * factor**2)
    close(with_it.rotate(q, k, p, p)[0].norm(dim=-1), q.norm(dim=-1) * factor)
    close(without.rotate(q, k, p, p)[1].norm(dim=-1), k.norm(dim=-1))
    half = Rotary(8, frequencies=Frequencies(8, rotary_dim=4, scaling=scaling))
    close(half.rotate(q, k, p, p)[0][..., 4:], q[..., 4:], 0)


@pytest.mark.parametrize("offset", [0, 1_000_000])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_float32_queries_get_exact_angles(layout, offset):
    """The same numbers as in float64, but for the last rounding, a million positions away too."""
    x, p = torch.randn(1, 2, 64, 64), torch.arange(64) + offset
    close(rotate(x, p, layout=layout), rotate(x.double(), p, layout=layout).float(), 2e-6)
    assert rotate(x, p, layout=layout).dtype == torch.float32


def test_queries_and_keys_may_have_other_positions_and_dtypes():
    module, q, k = Rotary(8), torch.randn(2, 1, 3, 8), torch.randn(2, 1, 5, 8)
    p, n = torch.tensor([7, 8, 9]), torch.randint(99, (2, 5))
    q2, k2 = module.rotate(q, k, p, n)
    close(q2, rotate(q, p, layout="interleaved"), 0)
    close(k2, rotate(k, n, layout="interleaved"), 0)
    q2, k2 = module.rotate(q, q.double(), p, p)
    close(k2, rotate(q.double(), p, layout="interleaved"), 0)


# ---- dynamic length ----

DYNAMIC = Frequencies(8, scaling=DynamicNTK(16))


def test_dynamic_is_plain_up_to_L_and_stretched_beyond():
    x = torch.randn(1, 2, 40, 8, dtype=F64)
    p = torch.arange(40)
    module, plain_one = Rotary(8, frequencies=DYNAMIC), Rotary(8)
    for length in (1, 15, 16):
        part = x[..., :length, :]
        close(
            module.rotate(part, part, p[:length], p[:length])[0],
            plain_one.rotate(part, part, p[:length], p[:length])[0],
            1e-14,
        )
    stretched = Rotary(8, base=10_000.0 * (40 / 16) ** (8 / 6))
    for one, other in zip(module.rotate(x, x, p, p), stretched.rotate(x, x, p, p), strict=True):
        close(one, other)
    # the last query alone, with the keys not yet turned in the cache: the same length, the same θ
    close(module.rotate(x[..., -1:, :], x, p[-1:], p)[1], stretched.rotate(x, x, p, p)[1])
    close(module.rotate(x[..., :3, :], x, p[:3], p)[0], stretched.rotate(x[..., :3, :], x, p[:3], p)[0])
    # and the query's position counts as much as the keys'
    close(
        module.rotate(x[..., -1:, :], x[..., :3, :], p[-1:], p[:3])[1],
        stretched.rotate(x, x[..., :3, :], p, p[:3])[1],
    )


def test_dynamic_lengths_are_of_each_row_and_nothing_is_remembered():
    x, p = torch.randn(2, 2, 20, 8), torch.arange(20)
    module, rows = Rotary(8, frequencies=DYNAMIC), torch.stack([p, p + 30])
    both = module.rotate(x, x, rows, rows)[0]
    for row in (1, 0):
        one = x[row : row + 1]
        close(both[row : row + 1], module.rotate(one, one, rows[row], rows[row])[0], 0)
    close(DYNAMIC.length(rows), numbers([20, 50]), 0)
    close(DYNAMIC.length(p, rows), numbers([20, 50]), 0)
    close(DYNAMIC.length(torch.tensor([4000, 4001]).bfloat16()), numbers(4001), 0)  # its neighbour
    empty = torch.empty(1, 1, 0, 8)
    assert module.rotate(empty, empty, p[:0], p[:0])[0].shape == empty.shape
    assert Frequencies(8).length(p) is None


# ---- the layout of weights ----


@pytest.mark.parametrize("rotary_dim", [None, 4])
@pytest.mark.parametrize("source, target", [LAYOUTS, LAYOUTS[::-1]])
def test_permuted_weights_give_the_same_scores(source, target, rotary_dim):
    heads, d, width, p = 3, 8, 5, torch.arange(6)
    x, f = torch.randn(6, width, dtype=F64), Frequencies(d, rotary_dim=rotary_dim)
    weights, biases = torch.randn(2, heads * d, width, dtype=F64), torch.randn(2, heads * d, dtype=F64)

    def s(layout, weights, biases):
        q, k = (
            (x @ w.T + b).view(1, 6, heads, d).transpose(1, 2) for w, b in zip(weights, biases, strict=True)
        )
        return scores(q, k, Rotary(d, layout=layout, frequencies=f), p, p)

    def moved(tensors):
        how = {"source": source, "target": target, "rotary_dim": rotary_dim}
        return [permute_projection(t, d, **how) for t in tensors]

    close(s(target, moved(weights), moved(biases)), s(source, weights, biases))
    assert not torch.allclose(s(target, weights, biases), s(source, weights, biases))
    back = permute_projection(moved(weights)[0], d, source=target, target=source, rotary_dim=rotary_dim)
    close(back, weights[0], 0)
    if rotary_dim:
        rest = torch.arange(heads * d).view(heads, d)[:, rotary_dim:]
        close(moved(weights)[0][rest], weights[0][rest], 0)
    close(permute_projection(weights[0], d, source=source, target=source), weights[0], 0)


def test_permuting_is_what_the_converter_of_llama_does():
    """Its words: ``w.view(n_heads, dim1 // n_heads // 2, 2, dim2).transpose(1, 2).reshape(dim1, dim2)``."""
    w = torch.randn(24, 5)
    close(
        permute_projection(w, 8, source="interleaved", target="half"),
        w.view(3, 4, 2, 5).transpose(1, 2).reshape(24, 5),
        0,
    )


# ---- M-RoPE ----

READS = {  # the axis that each pair reads
    ("chunked", (4, 2, 2)): [0, 0, 0, 0, 1, 1, 2, 2],
    ("interleaved", (4, 2, 2)): [0, 1, 2, 0, 1, 2, 0, 0],
    ("chunked", (1, 7)): [0, 1, 1, 1, 1, 1, 1, 1],
    ("interleaved", (4, 4)): [0, 1, 0, 1, 0, 1, 0, 1],
    ("interleaved", (3, 3, 2)): [0, 1, 2, 0, 1, 2, 0, 1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order, sections", READS)
def test_each_pair_of_m_rope_reads_its_axis(order, sections, layout):
    q, p = torch.randn(2, 1, 5, 16, dtype=F64), torch.randint(-9, 50, (2, 5, len(sections)))
    encoding = Rotary(16, layout=layout, frequencies=MRoPE(16, 500.0, sections=sections, order=order))
    assert encoding.axes == len(sections)
    y = encoding.rotate(q, q, p, p)[1]
    for t, axis in enumerate(READS[order, sections]):
        pair = [2 * t, 2 * t + 1] if layout == "interleaved" else [t, t + 8]
        angle = p[..., axis].double() * 500.0 ** (-2 * t / 16)
        expected = torch.complex(*q[:, 0, :, pair].unbind(-1)) * torch.polar(torch.ones_like(angle), angle)
        close(torch.complex(*y[:, 0, :, pair].unbind(-1)), expected)


def test_m_rope_of_a_text_is_rope_whatever_the_scaling():
    for scaling in (None, YaRN(4, L=32), DynamicNTK(8), LongRoPE([1.0] * 4, [2.0] * 4, L=8)):
        f = Frequencies(12, 500.0, rotary_dim=8, scaling=scaling)
        m = MRoPE(12, 500.0, rotary_dim=8, scaling=scaling, sections=(2, 1, 1), order="interleaved")
        q, p = torch.randn(2, 1, 5, 12), torch.stack([torch.arange(5), torch.arange(5) + 20])
        expected = Rotary(12, frequencies=f).rotate(q, q, p, p)
        close(Rotary(12, frequencies=m).rotate(q, q, *[p[..., None].expand(-1, -1, 3)] * 2), expected, 0)
    wide = torch.tensor([[0, 0, 0], [0, 1, 40]])
    assert MRoPE(8, scaling=DynamicNTK(8), sections=(2, 1, 1)).length(wide) == 41


# ---- xPos ----


def zeta(i, d, gamma=0.4):
    return (i / (d / 2) + gamma) / (1 + gamma)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", [{}, {"gamma": 1.5, "scale_base": 64.0}], ids=str)
def test_xpos_is_its_formula(layout, options):
    """Each pair: a complex number, turned and multiplied by ζ^((m − n)/512)."""
    d, gamma, B = 8, options.get("gamma", 0.4), options.get("scale_base", 512)
    q, k = torch.randn(2, 1, 2, 5, d, dtype=F64)
    m, n = torch.tensor([3, 700, 5, 0, 1000]), torch.tensor([900, 2, 3, 4, 77])
    actual = scores(q, k, XPos(d, layout=layout, **options), m, n) * d**0.5
    pairs = [(2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + d // 2) for i in range(d // 2)]
    expected = torch.zeros(1, 2, 5, 5, dtype=F64)
    for i, (a, b) in enumerate(pairs):
        x, y = torch.complex(q[..., a], q[..., b]), torch.complex(k[..., a], k[..., b])
        r = (m[:, None] - n[None, :]).double()
        factor = torch.polar(zeta(i, d, gamma) ** (r / B), r * 10_000.0 ** (-2 * i / d))
        expected += (x[..., :, None] * y[..., None, :].conj() * factor).real
    close(actual, expected, 1e-11)


def still(d=8, **options):
    return XPos(d, frequencies=Frequencies(d, p=0.0), **options)  # the rotation is off


@pytest.mark.parametrize("i", range(4))
def test_xpos_decays_as_zeta_to_the_distance(i):
    """Rotation off, one pair at a time; ahead it grows without bound, so: causal only."""
    q = torch.zeros(1, 1, 1, 8, dtype=F64)
    q[..., 2 * i] = 1
    n = torch.tensor([0, 512, 1000, 5000])
    m = torch.tensor([1000])
    s = scores(q, q.expand(1, 1, 4, 8), still(), m, n)[0, 0, 0] * 8**0.5
    close(s, numbers([zeta(i, 8) ** ((1000 - x) / 512) for x in n.tolist()]))
    assert s[0] < s[1] < s[2] == pytest.approx(1) and s[3] > 1
    if i == 0:
        ahead = scores(q, q, still(), m, m + 4096).item() * 8**0.5
        assert ahead == pytest.approx(3.5**8) and round(ahead) == 22519


@pytest.mark.parametrize("offset", [0, 1_000_000])
def test_xpos_does_not_overflow_in_float16(offset):
    """4096 positions, whose magnitudes as written leave float16 for 1e6 positions on."""
    d, p = 64, torch.arange(4096) + offset
    q, k = torch.randn(2, 1, 1, 4096, d).half()
    q2, k2 = XPos(d).rotate(q, k, p, p)
    assert q2.dtype == k2.dtype == torch.float16 and q2.isfinite().all() and k2.isfinite().all()
    assert q2.abs().amax() < 2000 and k2.abs().amax() < 2000  # far from 65504
    right = XPos(d).rotate(q.double(), k.double(), p, p)[0]  # half precision rounds twice: 2 · 2⁻¹¹
    torch.testing.assert_close(q2.double(), right, rtol=1.02 / 1024, atol=1e-5)
    some = torch.tensor([0, 1, 100, 2047, 2048, 4000, 4095])
    s = q2[..., some, :].float() @ k2[..., some, :].float().mT
    exact = q[..., some, :].double() @ torch.eye(d, dtype=F64)
    exact = scores(exact, k[..., some, :].double(), XPos(d), some, some) * d**0.5
    close(s.tril(), exact.float().tril(), 0.05)
    v = torch.randn(1, 1, 4096, 8).half()
    assert attention(q, k, v, XPos(d), p, p, causal=True).isfinite().all()
    if not offset:  # where the uncentred form breaks: 4533 positions from 0
        assert torch.tensor(zeta(0, d) ** (-4532 / 512)).half().isfinite()
        assert torch.tensor(zeta(0, d) ** (-4533 / 512)).half().isinf()


def xpos_scores(q, k, m, n, d):
    """Those of keys in the past, one pair of channels at a time, each factor from its own distance."""
    r, (q, k) = (
        (m[:, None] - n).double(),
        (torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous()) for x in (q, k)),
    )
    return sum(
        (
            q[..., :, None, i]
            * k[..., None, :, i].conj()
            * torch.polar(zeta(i, d) ** (r.clamp(min=0) / 512), r * 10_000.0 ** (-2 * i / d))
        ).real
        for i in range(d // 2)
    )


FAR = {torch.float16: 0.004, torch.bfloat16: 0.03, torch.float32: 2e-6, F64: 1e-11}


@pytest.mark.parametrize("span", [4000, 9500, 40_000, 80_000, 300_000, 10_000_000])
@pytest.mark.parametrize("dtype", FAR, ids=str)
def test_xpos_far_apart(dtype, span):
    """Right for the last tokens of any text, as a cache asks for them. All tokens at once are right, too, as
    long as the dtype holds the factors, and refused beyond: by each back end, with padding and without."""
    d, p = 64, torch.linspace(0, span, 9, dtype=F64).long()
    p = torch.cat([p, p + 1, p + 30]).sort().values
    q, k, v = torch.randn(3, 1, 2, len(p), d, dtype=F64).to(dtype)
    visible = torch.ones(2, len(p), len(p), dtype=torch.bool).tril()
    visible[1, 1:, 0] = False
    exact_scores = xpos_scores(q, k, p, p, d) / d**0.5
    weights = exact_scores.masked_fill(~visible[:, None, None], -torch.inf).softmax(-1)
    for backend in ("eager", "sdpa"):
        for mask, exact in zip((None, visible[1]), weights @ v.double(), strict=True):

            def rows(first, backend=backend, mask=mask):
                part = None if mask is None else mask[first:]
                return attention(
                    q[:, :, first:], k, v, XPos(d), p[first:], p, causal=True, mask=part, backend=backend
                )

            close(rows(len(p) - 3).double(), exact[:, :, -3:], FAR[dtype])
            if span < {torch.float16: 7000, F64: 250_000}.get(dtype, 30_000):
                close(rows(0).double(), exact, FAR[dtype])
            else:
                with pytest.raises(ValueError, match=rf"positions .* {span + 30:,} apart.*{dtype}.*Cache"):
                    rows(0)


def test_xpos_blames_no_position_for_a_query_that_is_none():
    q, p = torch.full((1, 1, 3, 8), math.nan), torch.arange(3)
    assert XPos(8).rotate(q, q, p, p)[0].isnan().all()


def test_xpos_reads_a_long_text_in_parts():
    """What the message advises: the numbers of one pass in float64."""
    model, ids, cache, parts = *small(XPos(8)), Cache(), []
    ids, p = ids[:, torch.arange(60) % 3], torch.arange(60) * 3000
    with pytest.raises(ValueError, match="177,000 apart"):
        model(ids, p)
    for at in range(0, 60, 4):
        parts.append(model(ids[:, at : at + 4], p[at : at + 4], cache=cache))
    close(torch.cat(parts, 1).double(), model.double()(ids, p), 1e-4)


def test_xpos_keeps_positions_and_rows_apart():
    """Each row has its own middle."""
    q, p = torch.randn(2, 1, 4, 8, dtype=F64), torch.tensor([1, 3, 250, 4016])
    rows = torch.stack([p, p + 10_000])
    both = XPos(8).rotate(q, q, rows, rows)
    for row in range(2):
        one = slice(row, row + 1)
        for x, y in zip(both, XPos(8).rotate(q[one], q[one], rows[row], rows[row]), strict=True):
            close(x[one], y, 0)
    empty = q[..., :0, :]
    assert XPos(8).rotate(empty, empty, p[:0], p[:0])[0].shape == empty.shape


def test_xpos_of_some_channels_leaves_the_rest():
    q, p = torch.randn(1, 1, 4, 8), torch.arange(4) * 500
    y, _ = XPos(8, frequencies=Frequencies(8, rotary_dim=6), layout="half").rotate(q, q, p, p)
    close(y[..., 6:], q[..., 6:], 0)
    close(y[..., :6], XPos(6, layout="half").rotate(q[..., :6], q[..., :6], p, p)[0], 0)


# ---- how they show themselves, and wrong inputs ----


def test_repr():
    assert repr(Rotary(8)) == "Rotary(8, base=10000, layout='interleaved')"
    f = Frequencies(8, rotary_dim=4, scaling=PositionInterpolation(2), p=0.5)
    assert repr(Rotary(8, frequencies=f)) == (
        "Rotary(8, base=10000, rotary_dim=4, scaling=PositionInterpolation(s=2), p=0.5, layout='interleaved')"
    )
    assert repr(XPos(8)) == "XPos(8, base=10000, layout='interleaved', gamma=0.4, scale_base=512)"


Q, P = torch.zeros(2, 1, 3, 4), torch.arange(3)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Frequencies(0), "head_dim=0.*positive integer"),
        (lambda: Frequencies(7), "head_dim=7.*even"),
        (lambda: Frequencies(8, base=-1.0), "base=-1.0.*above 0"),
        (lambda: Frequencies(8, rotary_dim=3), "rotary_dim=3.*even"),
        (lambda: Frequencies(8, rotary_dim=0), "rotary_dim=0.*positive integer"),
        (lambda: Frequencies(8, rotary_dim=10), "rotary_dim=10.*at most head_dim=8"),
        (lambda: Frequencies(8, p=1.5), "p=1.5.*0 to 1"),
        (lambda: Frequencies(8, p=math.nan), "p=nan.*0 to 1"),
        (lambda: Frequencies(8, scaling=4.0), r"scaling=4.0.*None or a Scaling.*YaRN"),
        (lambda: Frequencies(2, scaling=NTKAware(2)), "rotary_dim=2.*at least 4"),
        (lambda: Frequencies(8, base=0.5, scaling=YaRN(2, L=9, ramp="index")), "base=0.5.*above 1"),
        (lambda: PositionInterpolation(0.5), "s=0.5.*at least 1"),
        (lambda: NTKAware(math.inf), "s=inf.*finite"),
        (lambda: DynamicNTK(0), "L=0.*positive integer"),
        (lambda: DynamicNTK(8, s=0), "s=0.*at least 1"),
        (lambda: YaRN(0, L=8), "s=0.*at least 1"),
        (lambda: YaRN(2, L=8.5), "L=8.5.*positive integer"),
        (lambda: YaRN(2, L=8, alpha=32, beta=1), "alpha=32, beta=1.*0 < alpha < beta"),
        (lambda: YaRN(2, L=8, ramp="linear"), "ramp='linear'.*'wavelength', 'index', 'rounded index'"),
        (lambda: YaRN(2, L=8, attention=-1.0), "attention=-1.0.*at least 0"),
        (lambda: Frequencies(8, scaling=YaRN), "scaling=<class.*None or a Scaling"),
        (lambda: Rotary(8, frequencies=Frequencies), r"frequencies=<class.*give Frequencies\(8, …\)"),
        (lambda: Rotary(8, frequencies=0.5), r"frequencies=0.5: give Frequencies\(8, …\)"),
        (lambda: Rotary(8, base=10**400), "base=1000.*finite"),
        (lambda: LongRoPE((1.0,), (1.0,), L=1), "L=1.*at least 2"),
        (lambda: LongRoPE(1.0, (1.0,), L=9), "short=1.0.*a list"),
        (lambda: LongRoPE((1.0,), (1.0, 0), L=9), r"long\[1\]=0.*above 0"),
        (lambda: LongRoPE((1.0,), (1.0,), L=9, s=0.5), "s=0.5.*at least 1"),
        (
            lambda: Frequencies(8, scaling=LongRoPE([1.0] * 4, [1.0] * 3, L=9)),
            "long has 3 factors, but 4 pairs",
        ),
        (lambda: MRoPE(8, sections=(4,)), r"sections=\(4,\).*pairs of each axis"),
        (lambda: MRoPE(8, sections=4), r"sections=4.*pairs of each axis"),
        (lambda: MRoPE(8, sections=(4, 0)), r"sections\[1\]=0.*positive integer"),
        (lambda: MRoPE(8, sections=(2, 1)), r"sections=\(2, 1\).*4 pairs"),
        (lambda: MRoPE(8, sections=(2, 2), order="half"), "order='half'.*'chunked', 'interleaved'"),
        (lambda: MRoPE(16, sections=(1, 5, 2), order="interleaved"), "can't be interleaved"),
        (lambda: XPos(8, frequencies=MRoPE(8, sections=(2, 2))), "xPos fades along one axis"),
        (lambda: Llama3(low=4.0, high=4.0), "low=4.0, high=4.0.*0 < low < high"),
        (lambda: Llama3(s=0.1), "s=0.1"),
        (lambda: Llama3(L=-1), "L=-1"),
        (lambda: Rotary(8, base=9.0, frequencies=Frequencies(8)), "base=9.0 and frequencies=.*one of them"),
        (lambda: Rotary(8, frequencies=Frequencies(4)), "head_dim=8.*head_dim=4.*agree"),
        (lambda: Rotary(4).rotate(Q, Q[..., :2], P, P), r"head_dim=4, but k has shape \(2, 1, 3, 2\)"),
        (lambda: Rotary(4).rotate(Q, Q, P, P[:2]), r"k_positions have shape \(2,\).*length 3"),
        (lambda: rotate(Q, P, frequencies=Frequencies(8), layout="half"), r"head_dim=8, but x has shape"),
        (
            lambda: permute_projection(torch.zeros(9, 2), 4, source="half", target="half"),
            r"\(9, 2\).*head_dim=4",
        ),
        (lambda: permute_projection(torch.zeros(()), 4, source="half", target="half"), r"\(\).*head_dim=4"),
        (
            lambda: permute_projection(Q, 4, source="neox", target="half"),
            "source='neox'.*'interleaved', 'half'",
        ),
        (lambda: permute_projection(Q, 4, source="half", target="gptj"), "target='gptj'"),
        (lambda: permute_projection(Q, 7, source="half", target="half"), "head_dim=7.*even"),
        (lambda: XPos(8, gamma=0), "gamma=0.*above 0"),
        (lambda: XPos(8, scale_base=math.inf), "scale_base=inf.*finite"),
        (lambda: XPos(8, layout="neox"), "layout='neox'"),
    ],
)
def test_errors_say_what_is_allowed(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_scaling_must_give_theta():
    with pytest.raises(NotImplementedError, match="Scaling must give theta"):
        Frequencies(8, scaling=Scaling())


class Stretched(Scaling):
    """What somebody writes who tunes by hand, or learns, the factor of an interpolation."""

    def __init__(self, s):
        self.s = s

    def theta(self, b, d, length=None, device=None):
        return Frequencies(d, b).theta(device=device) / self.s


def small(encoding):
    """A model of two layers, and a text for it."""
    return Transformer(Config(9, 16, n_heads=2), encoding), torch.tensor([[1, 2, 3]])


@pytest.mark.parametrize("encoding", [Rotary(8), Rotary(8, layout="half"), XPos(8)], ids=str)
def test_positions_changed_behind_the_back_of_a_tensor(encoding):
    """Neither numpy nor ``.data`` moves the counter of a tensor's versions."""
    q, array = torch.randn(1, 2, 3, 8), np.arange(3)
    p, model, ids = torch.from_numpy(array), *small(encoding)
    for change in (lambda: None, lambda: np.add(array, 100, out=array), lambda: p.data.add_(100)):
        change()
        close(encoding.rotate(q, q, p, p), encoding.rotate(q, q, p.clone(), p.clone()), 0)
        close(model(ids, p), model(ids, p.clone()), 0)


def test_a_scaling_that_changes():
    stretch, q, p = Stretched(1.0), torch.randn(1, 2, 3, 8), torch.arange(3)
    encoding = Rotary(8, frequencies=Frequencies(8, scaling=stretch))
    model, ids = small(encoding)
    before = encoding.rotate(q, q, p, p)[0], model(ids, p)
    stretch.s = 3.0
    close(encoding.rotate(q, q, p, p)[0], Rotary(8).rotate(q, q, p / 3, p / 3)[0], 1e-6)
    assert (encoding.rotate(q, q, p, p)[0] - before[0]).abs().max() > 0.1
    assert (model(ids, p) - before[1]).abs().max() > 1e-4


def test_a_factor_that_is_learned():
    """A graph is used up by its backward pass: the next step needs angles of its own, evaluation too."""
    factor = torch.tensor(2.0, dtype=F64, requires_grad=True)
    encoding = Rotary(8, frequencies=Frequencies(8, scaling=Stretched(factor)))
    (model, ids), p = small(encoding), torch.arange(3)
    q, gradients = torch.randn(1, 2, 3, 8), []
    for _ in range(2):
        with torch.no_grad():
            model(ids, p)
        for loss in (model(ids, p).square().sum(), encoding.rotate(q, q, p, p)[0].mul(q.flip(-1)).sum()):
            gradients += torch.autograd.grad(loss, factor)
    assert gradients[0] == gradients[2] and gradients[1] == gradients[3] and 0 not in gradients


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_computes_angles_again(use_reentrant):
    """It runs a part of a forward once more, in the backward pass, and wants the same graph."""

    def again_later(forward):
        def call(*args, **options):
            return checkpoint(lambda *args: forward(*args, **options), *args, use_reentrant=use_reentrant)

        return call

    factor = torch.tensor(2.0, dtype=F64, requires_grad=True)
    model, ids = small(Rotary(8, frequencies=Frequencies(8, scaling=Stretched(factor))))
    p, gradients = torch.arange(3), []
    for again in (False, True):
        if again:
            for block in model.blocks:
                block.forward = again_later(block.forward)
        model.zero_grad()
        factor.grad = None
        model(ids, p).square().sum().backward()
        gradients.append([factor.grad, *(w.grad for w in model.parameters())])
    close(*gradients, 1e-6)


@pytest.mark.parametrize(
    "make, turns",
    [
        (lambda: Rotary(8), 1),
        (lambda: Rotary(8, layout="half"), 1),
        (lambda: XPos(8), 1),
        (lambda: Rotary(8, frequencies=DYNAMIC), 1),
        (lambda: AxialRotary(8), 2),
    ],
    ids=["rotary", "half", "xpos", "dynamic", "axial"],
)
def test_angles_are_computed_once_for_all_layers(make, turns, monkeypatch):
    """Of a forward; one for each axis. With a cache, once for the queries and once for the keys. (Whether the
    angles of a cache change is asked at one position.)"""
    calls, compute = [], Angles.cos_sin

    def counting(self, positions, *options):
        calls.extend([1] * (len(positions) > 1))
        return compute(self, positions, *options)

    monkeypatch.setattr(Angles, "cos_sin", counting)
    encoding = make()
    model, ids = Transformer(Config(9, 16, n_layers=12, n_heads=2), encoding), torch.randint(9, (2, 6))
    p = torch.arange(6) if encoding.axes == 1 else grid(2, 3)

    def counted(*args, **options):
        calls.clear()
        model(*args, **options)
        return len(calls)

    assert [counted(ids, p), counted(ids, p)] == [turns, turns]
    cache = Cache()
    assert counted(ids[:, :4], p[:4], cache=cache) == turns
    assert counted(ids[:, 4:], p[4:], cache=cache) == 2 * turns
    calls.clear()
    encoding.rotate(*[torch.randn(2, 2, 6, 8)] * 2, p, p)
    assert len(calls) == turns


def test_nothing_is_kept_that_nobody_asked_for():
    """Positions keep what is computed of them if they are shared, and only with themselves."""

    def compute(p):
        return p + 1

    p = torch.arange(3)
    for positions, kept in ((Positions(p), False), (Positions(p).shared(), True)):
        first = positions.once(compute, p)
        assert (positions.once(compute, p) is first) == kept
        assert positions.once(compute, p.clone()) is not first
        assert positions.shared().once(compute, p) is not first
        assert Positions(3).shared().once(compute, p) is not first


def test_what_is_kept_serves_the_same_objects_in_the_same_mode_only():
    once, factor, p = Positions(3).shared().once, torch.tensor(2.0, requires_grad=True), torch.arange(3.0)

    def scaled(p):
        return p * factor

    with torch.no_grad():
        assert not once(scaled, p).requires_grad
    assert once(scaled, p).requires_grad
    with torch.inference_mode(), torch.enable_grad():
        assert once(torch.sin, p).is_inference()
    assert not once(torch.sin, p).is_inference()
    for n in range(20):  # a tensor that is gone gives its id to the next one
        assert once(torch.sqrt, torch.tensor(n**2)) == n


def test_a_forward_leaves_nothing_behind():
    """No circle of references waits for a collector: what layers shared is gone with the forward."""
    model, ids = small(Compose(Rotary(8), T5Bias(2)))
    seen, was = [], gc.isenabled()
    keep = Turn.__init__
    gc.disable()
    try:
        with unittest.mock.patch.object(
            Turn, "__init__", lambda self, *a: seen.append(weakref.ref(self)) or keep(self, *a)
        ):
            for backend in ("eager", "sdpa"):
                model(ids, backend=backend)
        assert len(seen) == 2 and not any(turn() for turn in seen)
    finally:
        if was:
            gc.enable()


def test_angles_of_evaluation_serve_in_training():
    """Tensors made in inference mode may not be saved for a backward pass."""
    encoding, p = Rotary(8), torch.arange(3)
    with torch.inference_mode():
        encoding.rotate(*[torch.randn(1, 2, 3, 8)] * 2, p, p)
        encoding.rotate(*[torch.randn(1, 2, 3, 8)] * 2, *[torch.arange(3)] * 2)
    q = torch.randn(1, 2, 3, 8, requires_grad=True)
    for _ in range(2):
        encoding.rotate(q, q, p, p)[0].sum().backward()
    positions = torch.arange(3.0, requires_grad=True)
    for _ in range(2):  # a graph is used up by its backward pass
        encoding.rotate(q, q, positions, positions)[0].square().mul(torch.randn(8)).sum().backward()
    assert (positions.grad != 0).any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_queries_and_of_positions(layout):
    encoding, x = Rotary(8, layout=layout), torch.randn(1, 2, 3, 8, dtype=F64, requires_grad=True)
    positions = torch.rand(3, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, p: encoding.rotate(x, x, p, p), (x, positions))
    assert torch.autograd.gradgradcheck(lambda x, p: encoding.rotate(x, x, p, p), (x, positions))


@pytest.mark.parametrize(
    "encoding",
    [
        Rotary(8),
        Rotary(8, layout="half"),
        XPos(8, layout="half"),
        AxialRotary(8, layout="half"),
        Rotary(8, layout="half", frequencies=MRoPE(8, sections=(2, 1, 1))),
    ],
    ids=str,
)
def test_transforms_over_queries_and_over_positions(encoding):
    """vmap of queries, of positions, of both; each against a loop."""
    q = torch.randn(3, 1, 2, 5, 8, dtype=F64)
    p = torch.randint(0, 50, (3, 5) if encoding.axes == 1 else (3, 5, encoding.axes))

    def turned(q, p):
        return encoding.rotate(q, q, p, p)[0]

    for q_axis, p_axis in ((0, None), (None, 0), (0, 0)):
        some_q, some_p = q if q_axis == 0 else q[0], p if p_axis == 0 else p[0]
        expected = torch.stack(
            [turned(q[i] if q_axis == 0 else q[0], p[i] if p_axis == 0 else p[0]) for i in range(3)]
        )
        close(torch.vmap(turned, (q_axis, p_axis))(some_q, some_p), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", ["whole", "odd stride", "odd offset", "transposed", "channels apart"])
def test_the_fast_rotation_is_the_plain_one(which, layout):
    """In any memory layout: where channels 2t and 2t + 1 stand together, they are one complex number."""
    x = {
        "whole": torch.randn(2, 3, 5, 8),
        "odd stride": torch.randn(2, 3, 5, 9)[..., :8],
        "odd offset": torch.randn(2, 3, 5, 10)[..., 1:9],
        "transposed": torch.randn(2, 5, 3, 8).transpose(1, 2),
        "channels apart": torch.randn(2, 3, 8, 5).mT,
    }[which]
    cos, sin = Frequencies(8).cos_sin(torch.arange(5))
    before = x.clone()
    torch.testing.assert_close(turn(x, cos, sin, layout), turn_plainly(x, cos, sin, layout))
    assert torch.equal(x, before)


def test_the_plain_rotation_serves_compilers():
    x, cos_sin = torch.randn(2, 3, 5, 8), Frequencies(8).cos_sin(torch.arange(5))
    for layout in LAYOUTS:
        compiled = torch.compile(turn, backend="aot_eager", fullgraph=True)(x, *cos_sin, layout)
        torch.testing.assert_close(compiled, turn_plainly(x, *cos_sin, layout))
