"""Each encoding against its equation, written the slow way."""

import math

import pytest
import torch
from torch import nn

from tutorial_lib.attention import scores
from tutorial_lib.encodings import (
    DOORS,
    Absolute,
    Add,
    ALiBi,
    AxialRotary,
    Compose,
    Concatenate,
    Learned,
    MRoPE,
    Multiply,
    NoPosition,
    PositionalEncoding,
    PositionMatrix,
    Rotary,
    Sinusoidal,
    frequencies,
    sinusoidal,
)
from tutorial_lib.encodings.rotary import rotate

F64 = torch.float64


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


# ---- sinusoidal ----


def paper(p, d, base):
    """Vaswani et al. 2017, §3.5, one entry at a time."""
    return [(math.cos if i % 2 else math.sin)(p / base ** (2 * (i // 2) / d)) for i in range(d)]


def released(p, d, base):
    """The released code: exp of evenly spaced logarithms, all sines, all cosines, a zero if d is odd."""
    n = d // 2
    step = math.log(base) / max(n - 1, 1)
    angles = [p * math.exp(-step * t) for t in range(n)]
    return [math.sin(a) for a in angles] + [math.cos(a) for a in angles] + [0.0] * (d % 2)


SLOW = {"interleaved": paper, "concatenated": released}


@pytest.mark.parametrize("base", [10_000.0, 50.0])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 64])
@pytest.mark.parametrize("layout", SLOW)
def test_sinusoidal_is_its_equation(layout, d, base):
    positions = [0, 1, 2, 2.5, -3, 1000]
    expected = torch.tensor([SLOW[layout](p, d, base) for p in positions], dtype=F64)
    actual = sinusoidal(torch.tensor(positions, dtype=F64), d, base=base, layout=layout)
    close(actual, expected, 1e-11)


@pytest.mark.parametrize("layout", SLOW)
def test_the_module_passes_its_options_on(layout):
    p = torch.tensor([3.0, 40.0])
    expected = torch.tensor([SLOW[layout](x, 6, 50.0) for x in p.tolist()])
    close(Sinusoidal(6, base=50.0, layout=layout).vectors(p), expected, 1e-5)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float16, torch.bfloat16])
def test_vectors_are_the_same_whatever_the_dtype_of_positions(dtype):
    """The formula takes what it gets: that half precision merges positions can be shown with it."""
    p = torch.tensor([0, 3, 200])  # every dtype holds these exactly
    close(sinusoidal(p.to(dtype), 6), sinusoidal(p, 6), 0)


@pytest.mark.parametrize("layout", SLOW)
def test_sinusoidal_takes_positions_of_any_shape(layout):
    p = torch.tensor([[0, 3, 5], [7, 1, 2]])
    whole = sinusoidal(p, 6, layout=layout)
    assert whole.shape == (2, 3, 6) and whole.dtype == torch.float32
    close(whole[1, 0], sinusoidal(torch.tensor(7), 6, layout=layout), 0)
    close(whole[0], sinusoidal(p[0].double(), 6, layout=layout).float(), 1e-6)


@pytest.mark.parametrize("positions", [10**6 + 1, 10**7 + 1, 2**24 + 1, 10**9 + 7])
@pytest.mark.parametrize("layout", SLOW)
def test_a_million_positions_away(layout, positions):
    """Integers are exact at any distance: float32 holds an angle of 1e6 radians to about 0.03 only, and
    counts no further than 2^24."""
    expected = torch.tensor(SLOW[layout](positions, 16, 1e4), dtype=F64)
    close(sinusoidal(torch.tensor(positions, dtype=F64), 16, layout=layout), expected, 1e-5 * positions / 1e9)
    close(sinusoidal(torch.tensor(positions), 16, layout=layout), expected.float(), 2e-7 + positions / 1e15)
    here, there = sinusoidal(torch.tensor([positions, positions - 1]), 16, layout=layout)
    assert (here - there).abs().max() > 0.1


@pytest.mark.parametrize("k", [1, -4, 2.5, 1000])
def test_shift_is_one_block_rotation(k):
    """PE(p + k) = M_k PE(p) with the same M_k for every p."""
    d, p = 10, torch.tensor([0.0, 1, 17, 300], dtype=F64)
    blocks = []
    for t in range(d // 2):
        a = k / 10_000 ** (2 * t / d)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]], dtype=F64))
    close(sinusoidal(p + k, d), sinusoidal(p, d) @ torch.block_diag(*blocks).T, 1e-11)


def test_dot_products_do_not_know_the_direction():
    p = torch.arange(20, dtype=F64)
    gram = sinusoidal(p, 8) @ sinusoidal(p, 8).T
    close(gram[3, 10], gram[10, 3])
    close(gram[0, 7], gram[12, 5], 1e-10)


def test_frequencies_start_at_one_and_fall():
    omega = frequencies(512)
    assert omega[0] == 1 and (omega.diff() < 0).all()
    close(1 / omega[1].item(), 1.0366, 1e-4)  # the second pair is 10000^(2/512), not 10000²
    close(frequencies(512, layout="concatenated")[-1].item(), 1e-4)


def test_half_precision_modules_keep_their_angles():
    module = Sinusoidal(8)
    x, p = torch.zeros(1, 600, 8), torch.arange(600)
    before = module.embed(x, p)
    for dtype in (torch.bfloat16, torch.float16):
        half = module.to(dtype).embed(x.to(dtype), p)
        assert half.dtype == dtype
        close(half, before.to(dtype), 0)
    assert not torch.equal(half[0, 256], half[0, 257])  # bfloat16 positions would collapse here
    close(module.to(torch.float32).embed(x, p), before, 0)


def test_autocast_leaves_angles_alone():
    p, q = torch.arange(500, 520), torch.randn(1, 1, 20, 8)
    expected = sinusoidal(p, 8), rotate(q, p, layout="half")
    with torch.autocast("cpu", torch.bfloat16):
        close(sinusoidal(p, 8), expected[0], 0)
        close(rotate(q, p, layout="half"), expected[1], 0)


# ---- learned ----


def test_learned_gives_its_rows():
    module = Learned(5, 3)
    close(module.vectors(torch.tensor([[0, 4], [2, 2]])).flatten(0, 1), module.table[[0, 4, 2, 2]], 0)
    close(module.embed(torch.ones(2, 1, 3), torch.tensor([3])), 1 + module.table[3].expand(2, 1, 3), 0)


def test_learned_lies_on_the_line_between_rows():
    module = Learned(4, 3).double()
    between = module.vectors(torch.tensor([1.25, 3.0, 0.0], dtype=F64))
    close(between[0], 0.75 * module.table[1] + 0.25 * module.table[2])
    close(between[1:], module.table[[3, 0]])
    between[0].sum().backward()
    close(module.table.grad[:, 0], torch.tensor([0, 0.75, 0.25, 0], dtype=F64))


@pytest.mark.parametrize("position", [-1, 4, -0.5, 3.001, math.nan])
def test_learned_never_wraps(position):
    positions = torch.tensor([0, position])
    module = Learned(4, 3)
    with pytest.raises(ValueError, match=r"positions run from .* rows 0 to 3.*resized|are not all finite"):
        module.vectors(positions)
    first, other = torch.compile(module.vectors, backend="aot_eager")(positions)  # which can't raise by value
    assert torch.equal(first, module.table[0]) and other.isnan().all()


@pytest.mark.parametrize("new_length", [7, 4, 2, 1, 13])
def test_resized_stretches_the_table(new_length):
    old = Learned(4, 3)
    new = old.resized(new_length)
    assert new.max_length == new_length and new.table.shape == (new_length, 3)
    for i in range(new_length):
        at = i * 3 / max(new_length - 1, 1)
        low = min(int(at), 2)
        close(new.table[i], old.table[low] + (at - low) * (old.table[low + 1] - old.table[low]), 1e-6)


def test_resized_is_trainable_and_independent():
    old = Learned(4, 3, std=0.3).to(torch.bfloat16)
    new = old.resized(6)
    assert new.table.dtype == torch.bfloat16 and new.std == 0.3
    new.vectors(torch.tensor([5])).sum().backward()
    assert new.table.grad is not None and old.table.grad is None


@pytest.mark.parametrize("std", [0.02, 0.5])
def test_initial_spread(std):
    table = Learned(2000, 64, **({} if std == 0.02 else {"std": std})).table
    close(table.std().item(), std, 0.02)
    assert abs(table.mean().item()) < 0.02 * std
    noise = PositionMatrix(200, 25, **({} if std == 0.02 else {"std": std})).matrices - torch.eye(25)
    close(noise.std().item(), std / 5, 0.02)


# ---- fusion ----

X, P = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)), torch.arange(5)


def test_add():
    close(Add(Sinusoidal(8), token_scale=3.0).embed(X, P), 3 * X + sinusoidal(P, 8), 1e-6)
    close(Add(Sinusoidal(8)).embed(X, P), Sinusoidal(8).embed(X, P), 0)


def test_multiply_deletes_the_sine_dimensions_of_position_0():
    y = Multiply(Sinusoidal(8)).embed(X, P)
    close(y, X * sinusoidal(P, 8), 1e-6)
    assert (y[:, 0, 0::2] == 0).all() and (y[:, 0, 1::2] == X[:, 0, 1::2]).all()


def test_concatenate():
    module = Concatenate(Learned(9, 3))
    y = module.embed(X, P)
    assert module.token_dim(11) == 8
    close(y[..., :8], X, 0)
    close(y[1, :, 8:], module.position.table[:5], 0)


def test_concatenate_inside_compose():
    """The last part sees the full width, so the token vectors give up both."""
    both = Compose(Concatenate(Sinusoidal(2)), Sinusoidal(10), Concatenate(Sinusoidal(4)))
    assert both.token_dim(14) == 8
    y = both.embed(X, P)
    assert y.shape == (2, 5, 14)
    close(y[..., :10], torch.cat([X, sinusoidal(P, 2).expand(2, 5, 2)], -1) + sinusoidal(P, 10), 1e-6)
    with pytest.raises(ValueError, match="d_model=4 leaves no room"):
        both.token_dim(4)


def test_position_matrix():
    module = PositionMatrix(9, 8, std=0.0)
    close(module.embed(X, P), X, 0)  # starts as the identity
    module = PositionMatrix(9, 8, std=1.0)
    p = torch.tensor([[8, 0, 3, 3, 1], [1, 2, 3, 4, 5]])
    expected = torch.stack(
        [
            torch.stack([module.matrices[i] @ x for i, x in zip(row, xs, strict=True)])
            for row, xs in zip(p, X, strict=True)
        ]
    )
    close(module.embed(X, p), expected, 1e-5)


@pytest.mark.parametrize("positions", [torch.arange(5) - 1, torch.arange(5) + 5, torch.arange(5.0)])
def test_position_matrix_has_no_other_positions(positions):
    with pytest.raises(ValueError, match=r"positions (run from|have dtype torch.float).*integer 0 to 8"):
        PositionMatrix(9, 8).embed(X, positions)


# ---- composition ----


class Tiny(PositionalEncoding):
    """Multiplies at the first two doors and gives the constant n at the other three."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def embed(self, x, positions):
        return self.n * (x + 1)

    def rotate(self, q, k, *positions):
        return q * self.n + 1, k * self.n

    def content_bias(self, q, k, *positions):
        return torch.full((1,), float(self.n))

    def bias(self, *positions):
        return torch.full((1,), 10.0 * self.n)

    def values(self, weights, *positions):
        return weights * self.n


def test_compose_chains_two_doors_and_sums_three():
    both = Compose(Tiny(2), NoPosition(), Tiny(3))
    one, p = torch.ones(1), torch.arange(1)
    assert both.embed(one, p) == 3 * (2 * (1 + 1) + 1)
    q, k = both.rotate(one, one, p, p)
    assert (q, k) == (3 * (2 + 1) + 1, 6)
    assert both.content_bias(one, one, p, p) == 5
    assert both.bias(p, p) == 50
    assert both.values(one, p, p) == 5


def test_compose_of_nothing_is_no_position():
    for empty in (Compose(), Compose(NoPosition(), NoPosition())):
        p = torch.arange(5)
        assert empty.embed(X, p) is X and empty.doors == ()
        assert empty.content_bias(X, X, p, p) is None
        assert empty.bias(p, p) is None and empty.values(X, p, p) is None


def test_compose_has_one_scale():
    a, b, c = Tiny(1), Tiny(1), Tiny(1)
    assert Compose(a, b).scale is None
    a.scale = c.scale = 0.5
    assert Compose(a, b, c).scale == 0.5
    b.scale = 1.0
    with pytest.raises(ValueError, match=r"scales \[0.5, 1.0\]"):
        Compose(a, b)
    with pytest.raises(TypeError, match="not Linear"):
        Compose(a, nn.Linear(1, 1))


@pytest.mark.parametrize(
    "module, doors",
    [
        (NoPosition(), ()),
        (Sinusoidal(4), ("embed",)),
        (Learned(4, 4), ("embed",)),
        (Concatenate(Sinusoidal(4)), ("embed",)),
        (Rotary(4), ("rotate",)),
        (Tiny(1), DOORS),
        (Compose(Rotary(4), Sinusoidal(4)), ("embed", "rotate")),
    ],
    ids=str,
)
def test_doors(module, doors):
    assert module.doors == doors


# ---- rotary ----


def pairs(d, layout):
    return [(2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + d // 2) for t in range(d // 2)]


@pytest.mark.parametrize("base", [10_000.0, 7.0])
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_rotary_is_a_2x2_matrix_for_each_pair(layout, base):
    d, positions = 6, torch.tensor([0, 1, -2, 2.5, 40], dtype=F64)
    q, k = torch.randn(2, 3, 2, 5, d, dtype=F64)
    module = Rotary(d, base=base, layout=layout)
    for x, y in zip((q, k), module.rotate(q, k, positions, positions), strict=True):
        for n, p in enumerate(positions.tolist()):
            for t, (i, j) in enumerate(pairs(d, layout)):
                a = p * base ** (-2 * t / d)
                turn = torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]], dtype=F64)
                close(y[:, :, n, [i, j]], x[:, :, n, [i, j]] @ turn.T, 1e-11)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_rotary_is_a_complex_multiplication(layout):
    d, p = 8, torch.arange(5)
    x = torch.randn(2, 3, 5, d)
    i, j = torch.tensor(pairs(d, layout)).T
    turned = torch.complex(x[..., i], x[..., j]) * torch.polar(
        torch.ones(5, d // 2), torch.outer(p, 10_000.0 ** -(torch.arange(0, d, 2) / d))
    )
    y = rotate(x, p, layout=layout)
    close(y[..., i], turned.real, 1e-5)
    close(y[..., j], turned.imag, 1e-5)


def test_layouts_differ_by_an_order_of_the_channels():
    x, p = torch.randn(1, 2, 5, 8), torch.arange(5)
    order = torch.cat([torch.arange(0, 8, 2), torch.arange(1, 8, 2)])
    close(rotate(x[..., order], p, layout="half"), rotate(x, p, layout="interleaved")[..., order], 1e-6)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_rotary_keeps_norms_and_row_positions(layout):
    x, p = torch.randn(3, 2, 5, 8), torch.randint(1000, (3, 5))
    y = rotate(x, p, layout=layout)
    close(y.norm(dim=-1), x.norm(dim=-1), 1e-5)
    for row in range(3):
        close(y[row : row + 1], rotate(x[row : row + 1], p[row], layout=layout), 1e-6)
    close(rotate(x, p[:1], layout=layout), rotate(x, p[0], layout=layout), 0)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_queries_get_float32_angles(dtype, layout):
    """So only the result is rounded: 4001 and 4002 are one number in bfloat16."""
    x, p = torch.randn(1, 1, 3, 8).to(dtype), torch.tensor([4001, 4002, 4003])
    exact = rotate(x.float(), p, layout=layout)
    close(rotate(x, p, layout=layout), exact.to(dtype), 0)


def test_float64_queries_get_float64_angles():
    x, p = torch.randn(1, 1, 5, 8, dtype=F64), torch.arange(100, 105)
    close(rotate(x, p, layout="half"), rotate(x, p.double(), layout="half"), 0)


@pytest.mark.parametrize("offset", [1, -7, 1000, 1_000_000])
def test_relative_scores_do_not_shift(relative, positions_for, offset):
    """To rounding: also for float32 queries the angles are float64."""
    q, k = torch.randn(2, 1, 2, 6, 8, dtype=F64)
    p = positions_for(relative, 6)
    moved = p + (
        offset if relative.axes == 1 else torch.tensor([3, offset, 5 - 2 * offset])[-relative.axes :]
    )
    expected = scores(q, k, relative, p, p)
    close(scores(q, k, relative, moved, moved), expected, 1e-8)
    rough = scores(q.float(), k.float(), relative, moved, moved)
    close(rough, expected.float(), 3e-6)


# ---- rules that every encoding keeps ----


def inputs(encoding, dtype=torch.float32, d_model=16, length=6):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(2, length, encoding.token_dim(d_model), generator=g).to(dtype)
    q, k = (torch.randn(2, 2, length, 8, generator=g).to(dtype) for _ in "qk")
    return x, q, k


def test_shapes_and_dtypes_stay(encoding, positions_for):
    p = positions_for(encoding, 6)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, F64):
        encoding.to(dtype)
        x, q, k = inputs(encoding, dtype)
        y, (q2, k2) = encoding.embed(x, p), encoding.rotate(q, k, p, p)
        assert y.shape == (2, 6, 16) and q2.shape[:-1] == q.shape[:-1] and k2.shape[:-1] == k.shape[:-1]
        assert q2.shape[-1] == k2.shape[-1] == 8 or encoding.scale == 8**-0.5, "else √d would be another"
        assert y.dtype == q2.dtype == k2.dtype == dtype


def test_a_call_in_half_precision_spoils_nothing(encoding, positions_for):
    p = positions_for(encoding, 6)

    def call(dtype):
        x, q, k = inputs(encoding, dtype)
        return encoding.embed(x, p), *encoding.rotate(q, k, p, p)

    before = call(torch.float32)
    call(torch.bfloat16)
    for one, other in zip(before, call(torch.float32), strict=True):
        close(one, other, 0)


def test_rows_may_have_positions_of_their_own(encoding, positions_for):
    x, q, k = inputs(encoding)
    p = torch.stack([positions_for(encoding, 6), positions_for(encoding, 6) + 9])
    y, (q2, k2) = encoding.embed(x, p), encoding.rotate(q, k, p, p)
    bias = encoding.bias(p, p)
    for row in range(2):
        one = slice(row, row + 1)
        close(y[one], encoding.embed(x[one], p[row]), 1e-6)
        expected = encoding.rotate(q[one], k[one], p[row], p[row])
        close(q2[one], expected[0], 1e-6)
        close(k2[one], expected[1], 1e-6)
        if bias is not None:
            close(bias[one], encoding.bias(p[row], p[row])[None], 1e-6)


def test_only_parameters_are_stored(encoding):
    assert set(encoding.state_dict()) == {name for name, _ in encoding.named_parameters()}


def test_what_can_be_computed_is_not_stored():
    for module in (NoPosition(), Sinusoidal(8), Rotary(8), Compose(Multiply(Sinusoidal(8)), Rotary(4))):
        assert not module.state_dict()


# ---- wrong inputs: the message names the argument, the value and what is allowed ----

Q = torch.zeros(2, 1, 3, 4)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Sinusoidal(0), "dim=0.*positive integer"),
        (lambda: Sinusoidal(8.0), "dim=8.0.*positive integer"),
        (lambda: Sinusoidal(True), "dim=True.*positive integer"),
        (lambda: Sinusoidal(8, base=0), "base=0.*above 0"),
        (lambda: Sinusoidal(8, base=-2.0), "base=-2.0.*above 0"),
        (lambda: frequencies(8, base=math.inf), "base=inf.*finite"),
        (lambda: Sinusoidal(8, layout="half"), "layout='half'.*'interleaved', 'concatenated'"),
        (lambda: sinusoidal(torch.arange(2), -2), "dim=-2"),
        (lambda: Learned(0, 4), "max_length=0"),
        (lambda: Learned(4, -1), "dim=-1"),
        (lambda: Learned(4, 4).resized(0), "new_length=0"),
        (lambda: PositionMatrix(4, 0), "dim=0"),
        (lambda: Rotary(0), "head_dim=0"),
        (lambda: Rotary(7), "head_dim=7.*even"),
        (lambda: Rotary(8, layout="concatenated"), "layout='concatenated'.*'interleaved', 'half'"),
        (lambda: Rotary(8, base=math.nan), "base=nan"),
        (lambda: Rotary(8).rotate(Q, Q, torch.arange(3), torch.arange(3)), "head_dim=8.*(2, 1, 3, 4)"),
        (lambda: rotate(Q[..., :3], torch.arange(3), layout="half"), "head_dim=3.*even"),
        (lambda: rotate(Q, torch.arange(1), layout="half"), r"shape \(1,\).*length 3"),
        (lambda: rotate(Q, torch.tensor(1), layout="half"), r"shape \(\).*\[L\] or \[B, L\]"),
        (lambda: rotate(Q, torch.zeros(5, 3), layout="half"), r"shape \(5, 3\)"),
        (lambda: rotate(Q, torch.zeros(2, 1, 3), layout="half"), r"shape \(2, 1, 3\)"),
        (lambda: Sinusoidal(8).embed(Q, torch.arange(3)), r"Sinusoidal.*width 8.*\(2, 1, 3, 4\)"),
        (lambda: Multiply(Learned(3, 8)).embed(Q, torch.arange(3)), "Learned.*width 8"),
        (lambda: PositionMatrix(3, 8).embed(Q, torch.arange(3)), "PositionMatrix.*width 8"),
        (lambda: Concatenate(Sinusoidal(8)).token_dim(8), "d_model=8 leaves no room.*8 dim"),
    ],
)
def test_errors_say_what_is_allowed(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_an_absolute_encoding_must_give_vectors():
    class Empty(Absolute):
        dim = 4

    with pytest.raises(NotImplementedError, match="Empty must give vectors"):
        Empty().embed(Q, torch.arange(3))


@pytest.mark.parametrize(
    "positions, missing",
    [
        (torch.tensor([5.0, 1000.0, math.nan]), [False, True, True]),
        (torch.tensor([5, 200], dtype=torch.uint8), [False, False]),
        (torch.tensor([-1, 5], dtype=torch.int8), [True, False]),
    ],
    ids=["float32", "uint8", "int8"],
)
def test_a_learned_table_has_nan_for_what_it_lacks_where_nobody_can_ask(positions, missing):
    table = Learned(1000, 4)
    rows = torch.func.vmap(table.vectors)(positions[None])[0]
    assert rows.isnan().any(-1).tolist() == missing


def test_frequencies_of_several_axes_turn_by_hand_and_have_a_name():
    x, p = torch.randn(1, 1, 8, 16), torch.arange(24).view(8, 3)
    angles = MRoPE(16, sections=(4, 2, 2))
    turned = Rotary(16, frequencies=angles, layout="half").rotate(x, x, p, p)[0]
    assert torch.equal(rotate(x, p, layout="half", frequencies=angles), turned)
    axial = Rotary(16, frequencies=AxialRotary(16).frequencies)
    assert "AxialFrequencies" in repr(axial)
    for wrong in (ALiBi(8), Rotary(16), Rotary):
        with pytest.raises(ValueError, match="frequencies=.*give Frequencies"):
            Rotary(16, frequencies=wrong)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_table_is_stretched_exactly_whatever_dtype_is_the_default(dtype):
    """A default of half precision would read rows at places that it does not hold."""
    old = Learned(400, 2, std=1.0)
    expected = old.resized(1000).table
    torch.set_default_dtype(dtype)
    try:
        close(old.resized(1000).table, expected, 1e-6)
    finally:
        torch.set_default_dtype(torch.float32)
