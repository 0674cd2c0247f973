"""Positions of several axes, and the methods that read them, against loops in float64."""

import math

import pytest
import torch
import torch.nn.functional as F

from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings import (
    Add,
    ALiBi,
    AxialRotary,
    Compose,
    Concatenate,
    DynamicNTK,
    Frequencies,
    Learned,
    Multiply,
    NoPosition,
    Raster,
    Rotary,
    Sinusoidal,
    Sinusoidal2D,
    SwinBias,
    T5Bias,
    XPos,
    YaRN,
    grid,
    sinusoidal,
    window_index,
)
from tutorial_lib.encodings.offsets import offsets
from tutorial_lib.model import Cache, Config, Transformer

F64 = torch.float64


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


# ---- axes ----


def test_a_grid_is_read_row_by_row():
    expected = [[row, column] for row in range(3) for column in range(4)]
    assert grid(3, 4).tolist() == expected and grid(3, 4).dtype == torch.int64
    assert grid(1, 1).tolist() == [[0, 0]]


PAIRS = {  # positions of queries and keys
    "window": (grid(2, 3), grid(2, 3)),
    "decode": (grid(2, 3)[5:], grid(2, 3)),
    "two queries": (grid(2, 3)[1:3], grid(2, 3)),  # [2, 2] is two tokens, never two rows of a batch
    "moved": (grid(2, 3) + torch.tensor([10**6, -(10**6)]), grid(2, 3) + torch.tensor([10**6 - 1, -(10**6)])),
    "gaps": (torch.tensor([[3, 1], [4, 0]]), torch.tensor([[5, 2], [3, 0], [4, 3]])),
    "rows": (torch.stack([grid(2, 3), grid(2, 3) + 7]), torch.stack([grid(2, 3), grid(2, 3) + 8])),
    "rows of keys": (grid(1, 2), torch.stack([grid(2, 2), grid(2, 2).flip(0)])),
    "rows of queries": (torch.stack([grid(2, 2), grid(2, 2).flip(0)]), grid(1, 2)),
    "floats": (grid(2, 2).float(), grid(2, 3).double()),
    "uint8": (grid(2, 2).to(torch.uint8), grid(2, 3).to(torch.uint8)),
}


def by_pair(q, k, f):
    """f(Δrow, Δcolumn) for every pair: nested lists [Lq][Lk], or [B][Lq][Lk]."""
    if q.ndim == k.ndim == 2:
        return [[f(int(kj[0] - qi[0]), int(kj[1] - qi[1])) for kj in k.tolist()] for qi in q.tolist()]
    rows = max(len(p) for p in (q, k) if p.ndim == 3)
    return [by_pair(q[b] if q.ndim == 3 else q, k[b] if k.ndim == 3 else k, f) for b in range(rows)]


@pytest.mark.parametrize("pair", PAIRS)
def test_offsets_of_two_axes(pair):
    q, k = PAIRS[pair]
    expected = torch.tensor(by_pair(q, k, lambda row, column: (row, column)))
    close(offsets(q, k, axes=2).long(), expected, 0)


def test_the_encoding_says_what_a_2_by_2_tensor_is():
    p = torch.tensor([[0, 1], [1, 3]])
    assert ALiBi(1).bias(p, p).shape == (2, 1, 2, 2) and SwinBias(1, (2, 3)).bias(p, p).shape == (1, 2, 2)
    q = torch.randn(2, 1, 2, 4)
    close(scores(q, q, Rotary(4), p, p)[1:], scores(q[1:], q[1:], Rotary(4), p[1], p[1]), 1e-6)
    close(scores(q, q, AxialRotary(4), p, p)[1:], scores(q[1:], q[1:], AxialRotary(4), p, p), 1e-6)


@pytest.mark.parametrize(
    "encoding", [SwinBias(2, (2, 3)), AxialRotary(8), Raster(ALiBi(2), 3)], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_queries_are_the_last_keys_by_default(encoding, backend):
    q, (k, v), p = torch.randn(2, 2, 2, 8), torch.randn(2, 2, 2, 6, 8), grid(2, 3)
    for p_k in (p, torch.stack([p, p.flip(0)])):
        close(
            attention(q, k, v, encoding, k_positions=p_k, backend=backend),
            attention(q, k, v, encoding, p_k[..., 4:, :], p_k, backend=backend),
            0,
        )
    close(scores(q, k, encoding, k_positions=p), scores(q, k, encoding, p[4:], p), 0)


def test_compose_has_the_axes_of_its_open_parts():
    assert Compose().axes == Compose(NoPosition(), Rotary(4)).axes == 1
    assert Compose(NoPosition(), Compose(SwinBias(1, (2, 2))), Sinusoidal2D(4)).axes == 2
    three = AxialRotary(8, frequencies=[Frequencies(2)] * 3)
    assert three.axes == Compose(three).axes == 3
    with pytest.raises(ValueError, match=r"positions of 1 and 2 axes.*Raster\(part, width\)"):
        Compose(SwinBias(1, (2, 2)), Rotary(4))


@pytest.mark.parametrize("fusion", [Add, Multiply, Concatenate])
def test_a_fusion_has_the_axes_of_its_positions(fusion):
    assert fusion(Sinusoidal2D(4)).axes == 2 and fusion(Sinusoidal(4)).axes == 1


def model(encoding, **options):
    torch.manual_seed(0)
    return Transformer(Config(11, d_model=16, n_heads=2, **options), encoding).double()


def test_a_cache_counts_tokens():
    tokens, p = torch.randint(11, (3, 6)), grid(2, 3)
    for positions in (p, p.expand(3, -1, -1)):
        cache = Cache()
        model(SwinBias(2, (2, 3)))(tokens, positions, cache=cache)
        assert len(cache) == 6


@pytest.mark.parametrize("first, then", [(False, True), (True, False)])
def test_a_cache_of_one_row_of_positions_meets_one_of_each(first, then):
    tokens, p = torch.randint(11, (3, 6)), grid(2, 3)
    own, one, cache = p.expand(3, -1, -1), model(SwinBias(2, (2, 3))), Cache()
    parts = [
        one(tokens[:, part], (own if rows else p)[..., part, :], cache=cache)
        for part, rows in ((slice(0, 2), first), (slice(2, 6), then))
    ]
    close(torch.cat(parts, 1), one(tokens, p), 1e-9)


def test_generation_needs_positions_for_each_new_token():
    tokens = torch.randint(11, (2, 4))
    one = model(SwinBias(2, (2, 3)))
    new = one.generate(tokens, 1, positions=grid(2, 2))[:, 4]
    assert torch.equal(new, one(tokens, grid(2, 2))[:, -1].argmax(-1))
    with pytest.raises(ValueError, match="no default: give positions"):
        one.generate(tokens, 2, positions=grid(2, 2))


# ---- Swin ----


def test_the_map_of_a_small_window_by_hand():
    """Row of the token itself: the middle. One to the right: +1. One row down: + (2·M_w − 1)."""
    p = grid(2, 2)
    assert window_index(offsets(p, p, axes=2), (2, 2)).tolist() == [
        [4, 5, 7, 8],
        [3, 4, 6, 7],
        [1, 2, 4, 5],
        [0, 1, 3, 4],
    ]
    p = grid(2, 3)
    assert window_index(offsets(p, p, axes=2), (2, 3)).tolist() == [
        [7, 8, 9, 12, 13, 14],
        [6, 7, 8, 11, 12, 13],
        [5, 6, 7, 10, 11, 12],
        [2, 3, 4, 7, 8, 9],
        [1, 2, 3, 6, 7, 8],
        [0, 1, 2, 5, 6, 7],
    ]


def released_index(M_h, M_w):
    """relative_position_index of the released code: query − key, moved to start at 0, row · (2·M_w − 1)."""
    tokens = [(row, column) for row in range(M_h) for column in range(M_w)]
    return [[(a - c + M_h - 1) * (2 * M_w - 1) + (b - d + M_w - 1) for c, d in tokens] for a, b in tokens]


@pytest.mark.parametrize("window", [(1, 1), (2, 2), (2, 3), (5, 1), (7, 7)])
def test_a_released_table_gives_the_released_bias(window):
    M_h, M_w = window
    table, p, index = torch.randn((2 * M_h - 1) * (2 * M_w - 1), 4), grid(*window), released_index(*window)
    bias = SwinBias.from_released(table, window)
    assert bias.B_hat.shape == (4, 2 * M_h - 1, 2 * M_w - 1) and bias.window == window
    close(bias.bias(p, p), table[torch.tensor(index)].permute(2, 0, 1), 0)
    assert window_index(offsets(p, p, axes=2), window).T.tolist() == index
    bias.B_hat.data.zero_()
    assert table.any() and SwinBias.from_released(table.double(), window).B_hat.dtype == F64


@pytest.mark.parametrize("pair", PAIRS)
def test_swin_is_its_table(pair):
    q, k = PAIRS[pair]
    bias = SwinBias(2, (4, 5)).double()
    entry = bias.B_hat.tolist()
    heads = [by_pair(q, k, lambda row, column, h=h: entry[h][row + 3][column + 4]) for h in range(2)]
    close(bias.bias(q, k), torch.tensor(heads, dtype=F64).movedim(0, -3), 0)
    assert bias.doors == ("bias",)


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_attention_in_a_window_is_equation_4(backend):
    bias, p = SwinBias(2, (2, 3), std=1.0).double(), grid(2, 3)
    q, k, v = torch.randn(3, 1, 2, 6, 8, dtype=F64)
    expected = torch.zeros(1, 2, 6, 8, dtype=F64)
    for h in range(2):
        for i, (a, b) in enumerate(p.tolist()):
            B = [bias.B_hat[h, c - a + 1, d - b + 2].item() for c, d in p.tolist()]
            weight = [math.exp((q[0, h, i] @ k[0, h, j]).item() / math.sqrt(8) + B[j]) for j in range(6)]
            expected[0, h, i] = sum(w / sum(weight) * v[0, h, j] for j, w in enumerate(weight))
    close(attention(q, k, v, bias, p, p, backend=backend), expected, 1e-10)


def test_an_entry_learns_from_every_pair_with_its_offset():
    bias, p = SwinBias(1, (3, 4)), grid(3, 4)
    bias.bias(p, p).sum().backward()
    pairs = [[(3 - abs(a)) * (4 - abs(b)) for b in range(-3, 4)] for a in range(-2, 3)]
    assert bias.B_hat.grad[0].tolist() == pairs


@pytest.mark.parametrize(
    "q, k",
    [
        (grid(3, 4), grid(3, 4)),  # a flat index would read (0, 3) as (1, −2)
        (torch.tensor([[0, 0]]), torch.tensor([[0, 3]])),
        (torch.tensor([[0, 0]]), torch.tensor([[2, 0]])),
        (torch.tensor([[2, 0]]), torch.tensor([[0, 0]])),
        (grid(2, 4)[None], grid(2, 4)[None]),
    ],
)
def test_a_window_never_wraps(q, k):
    bias = SwinBias(2, (2, 3))
    with pytest.raises(ValueError, match=r"offsets run from \(.*\) to \(.*=\(2, 3\).*\(-1, -2\) to \(1, 2\)"):
        bias.bias(q, k)
    out = torch.compile(bias.bias, backend="aot_eager", fullgraph=True)(q, k)
    r = offsets(q, k, axes=2).abs()
    outside = (r[..., 0] > 1) | (r[..., 1] > 2)
    assert out.isnan().equal((outside if q.ndim == 2 else outside[:, None]).expand_as(out)) and outside.any()


def cubic(x, a=-0.75):
    """The kernel of Keys 1981, with PyTorch's parameter."""
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def read(table, row, column):
    """A table at a fractional place; beyond its border stands the border."""
    n_rows, n_columns, total = len(table), len(table[0]), 0.0
    for i in range(math.floor(row) - 2, math.floor(row) + 4):
        for j in range(math.floor(column) - 2, math.floor(column) + 4):
            value = table[min(max(i, 0), n_rows - 1)][min(max(j, 0), n_columns - 1)]
            total += cubic(row - i) * cubic(column - j) * value
    return total


@pytest.mark.parametrize(
    "window, new",
    [
        ((3, 3), (5, 5)),
        ((4, 2), (2, 6)),
        ((7, 7), (12, 12)),
        ((1, 3), (2, 1)),
    ],
)
def test_resized_is_bicubic(window, new):
    old = SwinBias(2, window, std=1.0).double()
    actual = old.resized(new)
    assert actual.window == new and actual.B_hat.shape == (2, 2 * new[0] - 1, 2 * new[1] - 1)
    s = [(2 * M - 1) / (2 * N - 1) for M, N in zip(window, new, strict=True)]
    for h, table in enumerate(old.B_hat.tolist()):
        expected = [
            [
                read(table, a * s[0] + window[0] - 1, b * s[1] + window[1] - 1)
                for b in range(1 - new[1], new[1])
            ]
            for a in range(1 - new[0], new[0])
        ]
        close(actual.B_hat[h], torch.tensor(expected, dtype=F64), 1e-10)
    close(actual.of(torch.zeros(2)), old.of(torch.zeros(2)), 1e-10)


def test_resized_is_what_loading_a_checkpoint_does():
    table = torch.randn(169, 3)
    square = table.T.view(1, 3, 13, 13)
    loaded = F.interpolate(square, size=(23, 23), mode="bicubic").view(3, 23 * 23).T
    close(
        SwinBias.from_released(table, (7, 7)).resized((12, 12)).B_hat,
        SwinBias.from_released(loaded, (12, 12)).B_hat,
        1e-5,
    )


def test_resized_is_trainable_and_independent():
    old = SwinBias(2, (3, 4), std=0.3).to(torch.bfloat16)
    same, new = old.resized((3, 4)), old.resized((5, 2))
    assert torch.equal(same.B_hat, old.B_hat) and same.B_hat is not old.B_hat
    assert new.B_hat.dtype == torch.bfloat16 and new.std == 0.3 and new.n_heads == 2
    new.bias(grid(5, 2), grid(5, 2)).sum().backward()
    assert new.B_hat.grad is not None and old.B_hat.grad is None


def test_initial_spread():
    close(SwinBias(500, (7, 7)).B_hat.std().item(), 0.02, 4e-4)
    B_hat = SwinBias(500, (7, 7), std=1.0).B_hat
    assert 1.99 < B_hat.abs().max() <= 2 and not SwinBias(2, (7, 7), std=0.0).B_hat.any()


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
@pytest.mark.parametrize("height, width, window, shift", [(6, 6, (3, 3), (1, 1)), (4, 9, (2, 3), (1, 2))])
def test_shifted_windows_need_a_mask_and_nothing_else(height, width, window, shift, backend):
    """Cyclic shift, windows, mask, and back, against each token with its neighbours at their true places."""
    (M_h, M_w), (s_h, s_w), L = window, shift, height * width
    bias = SwinBias(2, window, std=1.0).double()
    qkv, p = torch.randn(3, 2, L, 8, dtype=F64), grid(height, width)

    def windows(x):  # [..., L, d] to [windows, ..., M_h · M_w, d]
        x = x.unflatten(-2, (height, width)).roll((-s_h, -s_w), (-3, -2))
        x = x.unflatten(-2, (-1, M_w)).unflatten(-4, (-1, M_h)).transpose(-4, -3)
        return x.flatten(-3, -2).flatten(-4, -3).movedim(-3, 0)

    region = torch.stack(
        [(p[:, 0] - s_h).div(M_h, rounding_mode="floor"), (p[:, 1] - s_w).div(M_w, rounding_mode="floor")], -1
    )
    q, k, v = (windows(x) for x in qkv)
    mask = (windows(region)[:, :, None] == windows(region)[:, None]).all(-1)[:, None]
    out = attention(q, k, v, bias, grid(*window), grid(*window), mask=mask, backend=backend)

    place = windows(torch.arange(L, dtype=F64)[:, None]).flatten().long()
    actual = torch.empty(2, L, 8, dtype=F64)
    actual[:, place] = out.transpose(0, 1).flatten(1, 2)
    assert not mask.all()
    for each in region.unique(dim=0):
        here = (region == each).all(-1)
        q, k, v = qkv[:, None, :, here]
        close(actual[None, :, here], attention(q, k, v, bias, p[here], p[here]), 1e-10)


# ---- the sinusoid of two axes ----

POINTS = [(0, 0), (0, 1), (3, 0), (2.5, -4), (1000, 7.25)]


@pytest.mark.parametrize("base", [10_000.0, 50.0])
@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("dim", [4, 6, 16])
def test_each_axis_has_half_of_the_sinusoid(layout, dim, base):
    module = Sinusoidal2D(dim, base=base, layout=layout)
    p, options = torch.tensor(POINTS, dtype=F64), {"base": base, "layout": layout}
    expected = torch.stack(
        [
            torch.cat([sinusoidal(torch.tensor(x, dtype=F64), dim // 2, **options) for x in point])
            for point in POINTS
        ]
    )
    close(module.vectors(p), expected)
    close(module.vectors(torch.stack([p, p + 1]))[0], expected)
    close(module.embed(torch.ones(2, 5, dim), p), 1 + expected.float().expand(2, -1, -1), 1e-4)


def test_detr_and_mae_have_the_same_channels():
    """The formulas of their released code, entry by entry, on a grid of 2 × 3."""
    d, (height, width) = 12, (2, 3)
    detr, mae = [], []
    for y, x in grid(height, width).tolist():
        row, column = (y + 1) / height * 2 * math.pi, (x + 1) / width * 2 * math.pi
        detr.append(
            [
                (math.cos if i % 2 else math.sin)(v / 10_000 ** (2 * (i // 2) / (d // 2)))
                for v in (row, column)
                for i in range(d // 2)
            ]
        )
        mae.append(
            [
                f(v / 10_000 ** (t / (d / 4)))
                for v in (x, y)
                for f in (math.sin, math.cos)
                for t in range(d // 4)
            ]
        )
    module, p = Sinusoidal2D(d), grid(height, width).double()
    scaled = (p + 1) / torch.tensor([height, width]) * 2 * math.pi
    close(module.vectors(scaled), torch.tensor(detr, dtype=F64))
    order = [half + 2 * t + cosine for half in (6, 0) for cosine in (0, 1) for t in range(3)]
    close(module.vectors(p)[:, order], torch.tensor(mae, dtype=F64))


# ---- the rotation of several axes ----


def turned(x, angles, layout):
    """Each pair t of one head vector turned by angles[t]; the other channels stay."""
    y, n = x.clone(), len(angles)
    for t, a in enumerate(angles):
        i, j = (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + n)
        y[i] = math.cos(a) * x[i] - math.sin(a) * x[j]
        y[j] = math.sin(a) * x[i] + math.cos(a) * x[j]
    return y


def ladder(d, base):
    return [base ** (-2 * t / d) for t in range(d // 2)]


ROTATIONS = {  # head_dim, arguments, and the θ of each axis
    "default": (8, {}, [ladder(4, 100.0)] * 2),
    "base": (12, {"base": 7.0}, [ladder(6, 7.0)] * 2),
    "unequal": (
        12,
        {"frequencies": (Frequencies(8, 50.0), Frequencies(4))},
        [ladder(8, 50.0), ladder(4, 1e4)],
    ),
    "left over": (12, {"frequencies": [Frequencies(4)] * 2}, [ladder(4, 1e4)] * 2),
    "partial": (8, {"frequencies": [Frequencies(6, rotary_dim=4)] * 2}, [ladder(4, 1e4)] * 2),
    "three": (
        12,
        {"frequencies": (Frequencies(2), Frequencies(6, 9.0), Frequencies(4))},
        [[1.0], ladder(6, 9.0), ladder(4, 1e4)],
    ),
}


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("name", ROTATIONS)
def test_each_axis_turns_its_own_pairs(name, layout):
    d, options, thetas = ROTATIONS[name]
    module = AxialRotary(d, layout=layout, **options)
    q, k = torch.randn(2, 2, 3, 5, d, dtype=F64)
    p = torch.rand(2, 5, len(thetas), dtype=F64) * 40 - 20
    assert module.axes == len(thetas) and module.doors == ("rotate",)
    for positions in (p, p[0]):
        for x, y in zip((q, k), module.rotate(q, k, positions, positions), strict=True):
            for b in range(2):
                for n in range(5):
                    place = (positions[b, n] if positions.ndim == 3 else positions[n]).tolist()
                    angles = [m * t for m, theta in zip(place, thetas, strict=True) for t in theta]
                    for h in range(3):
                        close(y[b, h, n], turned(x[b, h, n], angles, layout), 1e-11)


def test_rope_vit_puts_the_column_first():
    """compute_axial_cis of its released code: complex numbers, all of x, then all of y."""
    d, p, x = 12, grid(2, 3), torch.randn(1, 2, 6, 12, dtype=F64)
    theta = 1.0 / 100.0 ** (torch.arange(0, d, 4, dtype=F64) / d)
    angle = torch.cat([torch.outer(p[:, 1].double(), theta), torch.outer(p[:, 0].double(), theta)], -1)
    cis = torch.polar(torch.ones_like(angle), angle)
    released = torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * cis).flatten(-2)
    close(AxialRotary(d).rotate(x, x, *[p.flip(-1)] * 2)[0], released)


def test_qwen2_vl_turns_halves_of_the_whole_head():
    """Its image encoder: the angles of row and column beside each other, twice; and rotate_half."""
    d, p, x = 16, grid(2, 3), torch.randn(1, 2, 6, 16, dtype=F64)
    theta = 1.0 / 10_000 ** (torch.arange(0, d // 2, 2, dtype=F64) / (d // 2))
    angle = (p.double()[..., None] * theta).flatten(1).repeat(1, 2)
    rotate_half = torch.cat([-x[..., d // 2 :], x[..., : d // 2]], -1)
    released = x * angle.cos() + rotate_half * angle.sin()
    close(AxialRotary(d, base=1e4, layout="half").rotate(x, x, p, p)[0], released)


def test_scalings_work_axis_by_axis():
    """YaRN's factor lengthens the pairs of its axis; a dynamic θ grows with the length of its axis."""
    frequencies = Frequencies(4, scaling=YaRN(4, L=32)), Frequencies(4)
    q, p = torch.randn(2, 1, 6, 8), grid(2, 3)
    y = AxialRotary(8, frequencies=frequencies).rotate(q, q, p, p)[0]
    length = y.unflatten(-1, (2, 4)).norm(dim=-1) / q.unflatten(-1, (2, 4)).norm(dim=-1)
    close(length[..., 0], torch.full((2, 1, 6), 0.1 * math.log(4) + 1), 1e-5)
    close(length[..., 1], torch.ones(2, 1, 6), 1e-5)
    dynamic = AxialRotary(8, frequencies=(Frequencies(4), Frequencies(4, scaling=DynamicNTK(4))))
    rows = torch.stack([p, p + torch.tensor([30, 3])])  # columns up to 2 and 5, so lengths 3 and 6
    y, _ = dynamic.rotate(q, q, rows[0], rows)
    for b, base in enumerate([1e4, 1e4 * 1.5**2]):
        plain = AxialRotary(8, frequencies=(Frequencies(4), Frequencies(4, base)))
        close(y[b : b + 1], plain.rotate(q[b : b + 1], q[b : b + 1], p, p)[0], 1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_queries_get_exact_angles(dtype):
    x, p = torch.randn(1, 1, 3, 8).to(dtype), torch.tensor([[4001, 1], [4002, 3001], [3, 3002]])
    close(AxialRotary(8).rotate(x, x, p, p)[0], AxialRotary(8).rotate(x.float(), x, p, p)[0].to(dtype), 0)
    with torch.autocast("cpu", dtype):
        close(Sinusoidal2D(8).to(dtype).vectors(p), sinusoidal(p, 4).flatten(-2), 0)


@pytest.mark.parametrize("encoding", [Sinusoidal2D(8), AxialRotary(8)], ids=lambda e: type(e).__name__)
def test_an_image_of_twice_the_resolution(encoding):
    """Read at half steps, every second place of every second row is an old one."""
    x = torch.randn(1, 1, 6, 8)
    old = [encoding.embed(x[0], grid(2, 3)), encoding.rotate(x, x, grid(2, 3), grid(2, 3))[0]]
    at = (grid(4, 6) % 2 == 0).all(-1)
    fine = x.new_zeros(1, 1, 24, 8)
    fine[:, :, at] = x
    p = grid(4, 6) / 2
    close(encoding.embed(fine[0], p)[:, at], old[0], 0)
    close(encoding.rotate(fine, fine, p, p)[0][:, :, at], old[1], 0)


# ---- a grid read row by row ----


def test_raster_counts_row_by_row():
    raster = Raster(Sinusoidal(8), 5)
    assert raster.index(grid(3, 5)).tolist() == list(range(15))
    assert raster.index(torch.tensor([[[2.0, 1.0]], [[-1.0, 4.0]]])).tolist() == [[11], [-1]]
    assert raster.index(torch.tensor([[200, 4]], dtype=torch.uint8)).tolist() == [1004]


def test_raster_opens_the_doors_of_its_encoding(open_doors):
    inner = Compose(Concatenate(Sinusoidal(4)), open_doors(2, 8))
    raster, p = Raster(inner, 3), torch.stack([grid(2, 3), grid(2, 3) + torch.tensor([1, 0])])
    n = p[..., 0] * 3 + p[..., 1]
    x, q, k, weights = (torch.randn(2, *shape) for shape in ((6, 12), (2, 2, 8), (2, 6, 8), (2, 2, 6)))
    close(raster.embed(x, p), inner.embed(x, n), 0)
    p, n = (p[:, 4:], p), (n[:, 4:], n)
    for one, other in zip(raster.rotate(q, k, *p), inner.rotate(q, k, *n), strict=True):
        close(one, other, 0)
    close(raster.content_bias(q, k, *p), inner.content_bias(q, k, *n), 0)
    close(raster.bias(*p), inner.bias(*n), 0)
    if "values" in inner.doors:
        close(raster.values(weights, *p), inner.values(weights, *n), 0)
    assert (raster.doors, raster.scale, raster.token_dim(16)) == (inner.doors, 0.3, 12)
    assert Raster(T5Bias(2), 3).scale == 1.0 and Raster(NoPosition(), 3).doors == ()


def test_swin_with_absolute_positions_is_a_composition():
    tokens, p = torch.randint(11, (2, 6)), grid(2, 3)
    table, bias = Learned(6, 16, std=1.0), SwinBias(2, (2, 3), std=1.0)
    both = model(Compose(Raster(table, 3), bias), causal=False)
    expected = model(bias, causal=False)
    expected.tokens.register_forward_hook(lambda module, args, x: x + table.table)
    close(both(tokens, p), expected(tokens, p), 1e-9)
    assert (model(bias, causal=False)(tokens, p) - expected(tokens, p)).abs().max() > 1e-3
    none = model(Raster(NoPosition(), 3), causal=False)
    close(none(tokens, p), model(None, causal=False)(tokens), 0)


# ---- wrong inputs: the message names the argument, the value and what is allowed ----

P = grid(2, 3)
Q, TOKENS = torch.zeros(2, 2, 6, 8), torch.zeros(2, 6).long()
SWIN = SwinBias(2, (2, 3))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: grid(0, 3), "height=0.*positive integer"),
        (lambda: grid(2, 1.5), "width=1.5.*positive integer"),
        (lambda: attention(Q, Q, Q, SWIN), r"SwinBias.*2 axes.*give k_positions.*grid\(7, 7\)"),
        (lambda: scores(Q, Q, AxialRotary(8), q_positions=P), "AxialRotary.*give k_positions"),
        (lambda: attention(Q, Q, Q, SWIN, P, P[:, 0]), r"k_positions have shape \(6,\).*\[B, L, 2\]"),
        (
            lambda: attention(Q, Q, Q, SWIN, P[1:], P),
            r"q_positions have shape \(5, 2\).*\[L, 2\] or \[B, L, 2\]",
        ),
        (lambda: attention(Q, Q, Q, SWIN, P, P.expand(3, 6, 2)), r"k_positions have shape \(3, 6, 2\)"),
        (lambda: attention(Q, Q, Q, ALiBi(2), P, P), r"k_positions have shape \(6, 2\).*\[L\] or \[B, L\]"),
        (lambda: model(SWIN)(TOKENS), r"SwinBias.*give positions, for instance grid"),
        (lambda: model(SWIN)(TOKENS, keep=torch.ones(2, 6) > 0), "no default"),
        (lambda: model(Sinusoidal2D(16))(TOKENS, P[:5]), r"positions have shape \(5, 2\).*length 6"),
        (lambda: model(Sinusoidal(16))(TOKENS, P), r"positions have shape \(6, 2\).*\[L\] or \[B, L\]"),
        (lambda: SWIN.bias(P[:, 0], P), r"q_positions have shape \(6,\).*\[L, 2\] or \[B, L, 2\]"),
        (lambda: SWIN.bias(P, P[:, :1]), r"k_positions have shape \(6, 1\)"),
        (
            lambda: SWIN.bias(P.expand(2, 6, 2), P.expand(3, 6, 2)),
            r"\(2, 6, 2\).*\(3, 6, 2\).*number of rows",
        ),
        (lambda: SWIN.bias(P / 2, P), "fractional offsets.*whole"),
        (lambda: SwinBias(0, (2, 3)), "n_heads=0"),
        (lambda: SwinBias(2, (2, 3), std=-1), "std=-1"),
        (lambda: SwinBias(2, 7), r"window=7.*two positive integers \(rows, columns\)"),
        (lambda: SwinBias(2, (2, 0)), r"window=\(2, 0\).*two positive"),
        (lambda: SwinBias(2, (2, 3, 4)), r"window=\(2, 3, 4\).*two positive"),
        (lambda: SWIN.resized((2, True)), r"window=\(2, True\)"),
        (
            lambda: SwinBias.from_released(torch.zeros(16, 2), (2, 3)),
            r"table has shape \(16, 2\).*\[15, heads\]",
        ),
        (lambda: SwinBias.from_released(torch.zeros(15), (2, 3)), r"table has shape \(15,\)"),
        (lambda: Sinusoidal2D(7), "dim=7.*even"),
        (lambda: Sinusoidal2D(0), "dim=0"),
        (lambda: Sinusoidal2D(8, layout="half"), "layout='half'"),
        (lambda: Sinusoidal2D(8).vectors(torch.arange(6)), r"positions have shape \(6,\).*\[L, 2\]"),
        (lambda: AxialRotary(6), "head_dim=6.*multiple of 4"),
        (lambda: AxialRotary(0), "head_dim=0"),
        (lambda: AxialRotary(8, base=math.nan), "base=nan"),
        (lambda: AxialRotary(8, layout="neox"), "layout='neox'"),
        (lambda: AxialRotary(8, base=9.0, frequencies=[Frequencies(4)] * 2), "base=9.0.*one of them"),
        (lambda: AxialRotary(8, frequencies=[Frequencies(4)]), "frequencies=.*one per axis"),
        (lambda: AxialRotary(8, frequencies=[Frequencies(4)] * 3), r"turn 4 \+ 4 \+ 4 channels.*head_dim=8"),
        (lambda: AxialRotary(8).rotate(Q, Q, P[:, 0], P), r"q_positions have shape \(6,\).*\[L, 2\]"),
        (lambda: AxialRotary(8).rotate(Q, Q, P, P[:4]), r"k_positions have shape \(4, 2\)"),
        (lambda: AxialRotary(4).rotate(Q, Q, P, P), "head_dim=4, but q"),
        (lambda: Raster(Sinusoidal(8), 0), "width=0"),
        (lambda: Raster(Sinusoidal(8), 2).index(P), "columns from 0 to 2.*width=2.*columns 0 to 1"),
        (lambda: Raster(Sinusoidal(8), 3).index(P - 1), "columns from -1 to 1"),
        (lambda: Raster(Sinusoidal(8), 3).index(P / 2), "whole rows.*Sinusoidal2D"),
        (lambda: Raster(Sinusoidal(8), 3).index(P * math.nan), "not all finite"),
        (lambda: Raster(Sinusoidal(8), 3).index(torch.arange(3)), r"positions have shape \(3,\).*\[L, 2\]"),
    ],
)
def test_errors_say_what_is_allowed(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("part", [SwinBias(2, (2, 3)), torch.nn.Linear(2, 2)], ids=lambda x: type(x).__name__)
def test_raster_takes_encodings_of_one_axis(part):
    with pytest.raises(TypeError, match=rf"not {type(part).__name__}\(.*2 axes reads a grid by itself"):
        Raster(part, 3)


def test_names_show_their_options():
    assert repr(SwinBias(2, (2, 3))) == "SwinBias(2, (2, 3), std=0.02)"
    assert "frequencies=(Frequencies(head_dim=4, base=100.0" in repr(AxialRotary(8, layout="half"))
    assert "layout='half'" in repr(AxialRotary(8, layout="half")) and "width=3" in repr(Raster(XPos(4), 3))
