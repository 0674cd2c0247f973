"""KERPLE, FIRE, DeBERTa and CoPE against their equations, one pair at a time in float64."""

import copy
import math

import pytest
import torch

from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings import FIRE, KERPLE, ALiBi, Compose, CoPE, DeBERTa, NoPosition, Rotary

F64 = torch.float64


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def psi(x, c):
    return math.log(c * x + 1)


def fire(e, h, i, j):
    c, L = e.c.item(), abs(e.L_multiplier.item() * e.L)
    x = psi(abs(i - j), c) / (psi(max(L, i), c) + 1e-6)
    return sum(e.W_2.weight[h, w] * max(e.W_1.weight[w, 0] * x + e.W_1.bias[w], 0) for w in range(e.hidden))


BIASES = {  # how to make it, and its value at head h, positions i and j
    "log": (lambda: KERPLE(3), lambda e, h, i, j: -e.r_1[h] * math.log(1 + e.r_2[h] * abs(i - j))),
    "power": (lambda: KERPLE(3, variant="power"), lambda e, h, i, j: -e.r_1[h] * abs(i - j) ** e.r_2[h]),
    "fire": (lambda: FIRE(3, hidden=4, L=3.0), fire),
}
POSITIONS = {
    "square": (torch.arange(6), torch.arange(6)),
    "decode": (torch.arange(6, 7), torch.arange(7)),
    "gaps": (torch.tensor([3, 4, 9]), torch.tensor([0, 1, 2, 20])),
    "rows": (torch.tensor([[0, 1, 2], [0, 0, 1]]), torch.tensor([[0, 1, 2], [0, 0, 1]])),
    "rows of keys": (torch.arange(2) + 6, torch.tensor([[0, 1, 2], [5, 7, 9]])),
    "rows of queries": (torch.tensor([[0, 1], [5, 9]]), torch.arange(3)),
    "fractions": (torch.tensor([0, 0.5, 8], dtype=F64), torch.tensor([0.25, 6], dtype=F64)),
}


def in_motion(encoding):
    """In float64, with parameters off their starting values, but inside KERPLE's borders."""
    encoding = encoding.double()
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.mul_(0.8).add_(0.05 + torch.rand_like(parameter) / 10)
    return encoding


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("name", BIASES)
def test_a_bias_is_its_equation(name, positions):
    make, formula = BIASES[name]
    encoding, (q, k) = in_motion(make()), POSITIONS[positions]
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
    close(encoding.bias(q, k), expected if q.ndim + k.ndim > 2 else expected[0])
    assert encoding.doors == ("bias",) and encoding.scale is None


@pytest.mark.parametrize("name", BIASES)
def test_half_precision_modules_keep_their_distances(name):
    """The bias of 3001 and 3002 is told apart; only the learned numbers are rounded."""
    encoding = BIASES[name][0]()
    q, k = torch.tensor([3003]), torch.arange(3003)
    for dtype in (torch.bfloat16, torch.float16):
        half = encoding.to(dtype)
        bias = half.bias(q, k)
        assert bias.dtype == torch.float32 and half.bias(q.double(), k).dtype == F64
        close(bias, copy.deepcopy(half).float().bias(q, k), 0)
        assert bias[0].unique().numel() > 2900 or name == "fire" and bias.unique().numel() > 2900


@pytest.mark.parametrize(
    "make",
    [
        *(make for make, _ in BIASES.values()),
        lambda: CoPE(2, 3, std=1.0),
        lambda: DeBERTa(3, 2, 2, std=1.0),
        lambda: DeBERTa(3, 2, 2, std=1.0, released=True),
    ],
    ids=[*BIASES, "cope", "deberta", "deberta-released"],
)
def test_gradcheck(make):
    encoding, p = in_motion(make()), torch.arange(5)
    q, k = (torch.randn(1, *shape, 2, dtype=F64, requires_grad=True) for shape in ((3, 3), (1, 5)))
    leaves = (q, k, *encoding.parameters())
    assert torch.autograd.gradcheck(lambda *_: scores(q, k, encoding, p[2:], p), leaves)


# ---- KERPLE ----


def test_kerple_starts_as_the_released_code_does():
    for variant, tops in (("log", (2, 1)), ("power", (1, 2))):
        encoding = KERPLE(4000, variant=variant)
        for parameter, top in zip((encoding.r_1, encoding.r_2), tops, strict=True):
            assert parameter.min() >= 0 and top * 0.99 < parameter.max() < top
            close(parameter.mean().item(), top / 2, top * 0.02)


@pytest.mark.parametrize("variant", ["log", "power"])
def test_kerple_stays_inside_its_borders_and_can_come_back(variant):
    encoding = KERPLE(2, variant=variant).double()
    r = torch.arange(9)
    top = 7.0 if variant == "log" else 2.0
    for stored, counts_as in (((-3.0, 0.005), (0.01, 0.01)), ((0.5, 7.0), (0.5, top))):
        results = []
        for r_1, r_2 in (stored, counts_as):
            encoding.r_1.data[:], encoding.r_2.data[:] = r_1, r_2
            bias = encoding.of(r)
            assert (encoding.r_1 == r_1).all() and (encoding.r_2 == r_2).all()
            results.append((bias, *torch.autograd.grad(bias.sum(), [encoding.r_1, encoding.r_2])))
        for beyond, border in zip(*results, strict=True):
            close(beyond, border)
        r_1, r_2 = counts_as
        expected = -r_1 * (torch.log(1 + r_2 * r) if variant == "log" else r**r_2)
        close(results[0][0], expected.double().expand(2, -1), 1e-6)
        assert all((gradient != 0).all() for gradient in results[0][1:])


@pytest.mark.parametrize("variant", ["log", "power"])
def test_kerple_at_offset_0_adds_nothing_to_a_gradient(variant):
    encoding = KERPLE(2, variant=variant).double()
    r = torch.tensor([3.0, -5.0, 0.0], dtype=F64, requires_grad=True)
    assert (encoding.of(r)[:, -1] == 0).all()
    without, with_0 = (
        torch.autograd.grad(encoding.of(part).sum(), [r, *encoding.parameters()]) for part in (r[:2], r)
    )
    assert without[0][-1] == 0 and (without[0][:2] != 0).all()
    for ours, expected in zip(with_0, without, strict=True):
        close(ours, expected)


def test_kerple_power_1_is_alibi_with_learned_slopes():
    alibi, encoding, p = ALiBi(2, symmetric=True), KERPLE(2, variant="power"), torch.arange(12)
    alibi.m = (0.5, 0.0625)
    encoding.r_1.data, encoding.r_2.data = torch.tensor(alibi.m), torch.ones(2)
    close(encoding.bias(p, p), alibi.bias(p, p), 1e-6)


def test_kerple_log_is_linear_close_by_and_flat_far_away():
    encoding = KERPLE(1).double()
    encoding.r_1.data[:], encoding.r_2.data[:] = 2.0, 0.01
    close(encoding.of(torch.tensor([1, 2]))[0], torch.tensor([-0.02, -0.04], dtype=F64), 5e-4)
    near, far = encoding.of(torch.tensor([10**6, 10**7]))[0]
    close(far - near, torch.tensor(-2 * math.log(10), dtype=F64), 1e-3)


# ---- FIRE ----


def simple_fire(slope, c, L):
    """f_θ(x) = slope · x."""
    encoding = FIRE(1, hidden=1, c=c, L=L).double()
    for parameter, value in ((encoding.W_1.weight, 1), (encoding.W_1.bias, 0), (encoding.W_2.weight, slope)):
        parameter.data.fill_(value)
    return encoding


def test_fire_up_to_its_threshold_is_kerple():
    p, kerple = torch.arange(20), KERPLE(1).double()
    kerple.r_1.data[:], kerple.r_2.data[:] = 1.5, 0.3
    close(simple_fire(-1.5 * psi(30, 0.3), 0.3, 30.0).bias(p, p), kerple.bias(p, p), 1e-5)


def test_fire_with_small_c_is_alibi():
    p = torch.arange(20)
    bias = simple_fire(-0.5 * 30, 1e-4, 30.0).bias(p, p)[0]
    close(bias.tril(), 0.5 * (p - p[:, None]).double().tril(), 0.01)


def test_fire_interpolates_at_any_length():
    """The argument of f_θ: 0 at the query itself, 1 at the first key from L on, less before."""
    encoding = simple_fire(1.0, 0.1, 50.0)
    for i in (10, 50, 51, 10**6):
        x = encoding.bias(torch.tensor([i]), torch.tensor([i, i - 3, 0]))[0, 0]
        assert x[0] == 0 < x[1] < x[2] <= 1 and (x[2] > 1 - 1e-6) == (i >= 50)


def test_fire_needs_the_position_itself():
    encoding, p = FIRE(2, L=4.0), torch.arange(9)
    shift = (encoding.bias(p + 5, p + 5) - encoding.bias(p, p)).abs()
    assert shift.max() > 1e-3 and shift.diagonal(dim1=1, dim2=2).max() < 1e-6


def test_fire_stands_numbers_that_change_sign():
    """|c| and |L| count; at 0, the term 1e-6 keeps 0/0 away."""
    encoding, p = FIRE(2, L=4.0), torch.arange(9)
    before = encoding.bias(p, p)
    encoding.c.data, encoding.L_multiplier.data = -encoding.c.data, -encoding.L_multiplier.data
    close(encoding.bias(p, p), before, 0)
    encoding.L_multiplier.data.zero_()
    assert encoding.bias(p, p).isfinite().all()


# ---- DeBERTa ----


def disentangled(e, q, k, q_positions, k_positions):
    """The second and third term of eq. 4; each head of k serves a group of heads of q."""
    K_r, Q_r = e.P @ e.W_kr.weight.T, e.P @ e.W_qr.weight.T
    span, d, group = e.max_distance, e.head_dim, q.shape[1] // k.shape[1]

    def delta(i, j):
        return 0 if i - j <= -span else 2 * span - 1 if i - j >= span else i - j + span

    out = q.new_zeros(*q.shape[:-1], k.shape[-2])
    for b, h, n, m in torch.cartesian_prod(*map(torch.arange, out.shape)).tolist():
        i, j = ((p if p.ndim == 1 else p[b])[at].item() for p, at in ((q_positions, n), (k_positions, m)))
        head = slice(h * d, h * d + d)
        third = delta(i, j) if e.released else delta(j, i)
        out[b, h, n, m] = q[b, h, n] @ K_r[delta(i, j), head] + k[b, h // group, m] @ Q_r[third, head]
    return out


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("max_distance", [1, 2, 20])
@pytest.mark.parametrize("positions", [name for name in POSITIONS if name != "fractions"])
def test_deberta_is_its_equation(positions, max_distance, released):
    encoding = DeBERTa(4, 3, max_distance, released=released, std=1.0).double()
    q_positions, k_positions = POSITIONS[positions]
    q = torch.randn(2, 4, q_positions.shape[-1], 3, dtype=F64)
    k = torch.randn(2, 2, k_positions.shape[-1], 3, dtype=F64)
    with torch.no_grad():
        expected = disentangled(encoding, q, k, q_positions, k_positions)
        close(encoding.content_bias(q, k, q_positions, k_positions), expected)
        s = (q @ k.repeat_interleave(2, 1).mT + expected) / 3
        close(scores(q, k, encoding, q_positions, k_positions), s)
    assert encoding.doors == ("content_bias",)


def test_deberta_has_two_rows_for_each_distance():
    encoding = DeBERTa(4, 3, 5)
    assert encoding.P.shape == (10, 12) and encoding.W_qr.weight.shape == (12, 12)
    close(DeBERTa(8, 64, 512).P.std().item(), 0.02, 2e-4)
    close(DeBERTa(8, 64, 512, std=0.3).P.std().item(), 0.3, 3e-3)
    assert "4, 3, 5, released=False, std=0.02" in repr(encoding)


@pytest.mark.parametrize("rows", [False, True])
def test_deberta_never_forms_a_vector_per_pair(rows, largest):
    L, d = 96, 64
    encoding = DeBERTa(2, d, 40)
    q, k, v = (torch.randn(1, 2, L, d, requires_grad=True) for _ in "qkv")
    p = torch.arange(L)[None] if rows else torch.arange(L)
    with largest() as ours:
        attention(q, k, v, encoding, p, p).sum().backward()
    assert ours.elements <= 2 * L * L  # one number per head and pair


# ---- CoPE ----


def counted(e, q, k):
    """q_i · e[p_ij] with p_ij the sum of the gates from j to i."""
    (batch, heads, n_q, d), n_k = q.shape, k.shape[-2]
    out = q.new_zeros(batch, heads, n_q, n_k)
    for b, h, n, j in torch.cartesian_prod(*map(torch.arange, out.shape)).tolist():
        i, keys = n + n_k - n_q, k[b, h * k.shape[1] // heads]
        p = sum(1 / (1 + math.exp(-(q[b, h, n] @ keys[m]).item() / d**0.5)) for m in range(j, i + 1))
        p = min(p, len(e) - 1)
        share, below = p - math.floor(p), e[math.floor(p)]
        out[b, h, n, j] = q[b, h, n] @ (share * e[math.ceil(p)] + (1 - share) * below)
    return out


@pytest.mark.parametrize("n_positions", [1, 2, 4, 50])
@pytest.mark.parametrize("n_q, n_k", [(6, 6), (1, 6), (3, 6), (6, 2)])
def test_cope_is_its_equation(n_q, n_k, n_positions):
    encoding = CoPE(3, n_positions, std=1.0).double()
    q, k = torch.randn(2, 4, n_q, 3, dtype=F64), torch.randn(2, 2, n_k, 3, dtype=F64)
    p_q, p_k = torch.arange(n_q), torch.arange(n_k)
    with torch.no_grad():
        expected = counted(encoding.e, q, k)
        close(encoding.content_bias(q, k, p_q, p_k), expected)
        close(scores(q, k, encoding, p_q, p_k), (q @ k.repeat_interleave(2, 1).mT + expected) / 3**0.5)
    assert encoding.doors == ("content_bias",) and encoding.e.shape == (n_positions, 3)


def test_cope_with_open_gates_is_a_relative_position():
    encoding, p = CoPE(2, 9, std=1.0).double(), torch.arange(5)
    q = k = torch.full((1, 1, 5, 2), 40.0, dtype=F64)
    distance = (p[:, None] - p + 1).clamp(min=0)
    close(encoding.counts(q, k)[0, 0], distance.double())
    close(encoding.content_bias(q, k, p, p)[0, 0], (encoding.e @ q[0, 0, 0])[distance])


def test_cope_counts_what_matters_and_does_not_read_positions():
    """Keys 1 and 4 are full stops: what lies behind them is one, two sentences back."""
    encoding, p = CoPE(1, 9), torch.arange(6)
    q, k = torch.full((1, 1, 6, 1), 30.0), torch.tensor([-30, 30, -30, -30, 30, -30.0]).view(1, 1, 6, 1)
    assert encoding.counts(q, k)[0, 0, -1].tolist() == [2, 2, 1, 1, 1, 0]
    encoding = CoPE(1, 9, std=1.0)
    close(encoding.content_bias(q, k, p, p), encoding.content_bias(q, k, p * 0, p.flip(0)), 0)


def test_cope_never_counts_ahead():
    encoding, p = CoPE(3, 5, std=1.0), torch.arange(6)
    q, k = torch.randn(2, 1, 2, 6, 3)
    other = k.clone()
    other[:, :, 4:] += 1
    one, two = (encoding.content_bias(q, x, p, p) for x in (k, other))
    close(one[:, :, :4], two[:, :, :4], 0)
    assert not torch.equal(one[:, :, 4:], two[:, :, 4:])


def test_cope_counts_hidden_keys_between_but_not_behind():
    """As its page says: a mask in the middle is not seen, padding on the left makes no difference."""
    encoding, p = CoPE(3, 9, std=1.0).double(), torch.arange(6)
    q, k, v = torch.randn(3, 1, 2, 6, 3, dtype=F64)

    def out(hidden, k):
        mask = torch.ones(6, dtype=torch.bool)
        mask[hidden] = False
        return attention(q, k, v, encoding, p, p, causal=True, mask=mask)[:, :, -1]

    behind, between = k.clone(), k.clone()
    behind[:, :, :2], between[:, :, 3] = 5.0, 5.0
    close(out([0, 1], behind), out([0, 1], k))
    assert (out([3], between) - out([3], k)).abs().max() > 1e-3


def test_cope_starts_as_no_position():
    q, k, v = torch.randn(3, 1, 2, 6, 8)
    close(attention(q, k, v, CoPE(8, 5), causal=True), attention(q, k, v, NoPosition(), causal=True), 1e-6)
    assert not CoPE(8, 5).e.any()
    close(CoPE(64, 1000, std=0.5).e.std().item(), 0.5, 0.01)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_cope_counts_in_float32(dtype):
    """301 open gates are 301, which is no bfloat16."""
    encoding = CoPE(1, 400, std=1.0).to(dtype)
    q = k = torch.full((1, 1, 301, 1), 6.0, dtype=dtype)
    assert encoding.counts(q, k).max().item() == 301
    assert encoding.content_bias(q, k, None, None).dtype == dtype


def test_cope_takes_turned_queries():
    """In a composition the gates see what the scores see."""
    both, p = Compose(Rotary(4), CoPE(4, 5, std=1.0)), torch.arange(6)
    q, k = torch.randn(2, 1, 2, 6, 4)
    turned = Rotary(4).rotate(q, k, p, p)
    close(scores(q, k, both, p, p), scores(*turned, both.parts[1], p, p), 1e-6)


# ---- wrong inputs ----

P, Q = torch.arange(3), torch.zeros(2, 2, 3, 4)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: KERPLE(0), "n_heads=0.*positive integer"),
        (lambda: KERPLE(2, variant="gauss"), "variant='gauss'.*'log', 'power'"),
        (lambda: FIRE(0), "n_heads=0"),
        (lambda: FIRE(2, hidden=0), "hidden=0"),
        (lambda: FIRE(2, c=0.0), "c=0.0.*above 0"),
        (lambda: FIRE(2, L=math.inf), "L=inf.*finite"),
        (lambda: FIRE(2, L=math.nan), "L=nan"),
        (lambda: FIRE(2).bias(P[0], P), r"q_positions have shape \(\).*\[B, L\]"),
        (lambda: DeBERTa(0, 4, 2), "n_heads=0"),
        (lambda: DeBERTa(2, 0, 2), "head_dim=0"),
        (lambda: DeBERTa(2, 4, 0), "max_distance=0"),
        (lambda: DeBERTa(2, 4, 2, std=-1.0), "std=-1.0"),
        (lambda: DeBERTa(2, 8, 2).content_bias(Q, Q, P, P), r"n_heads=2 and head_dim=8.*\(2, 2, 3, 4\)"),
        (lambda: DeBERTa(1, 4, 2).content_bias(Q, Q, P, P), r"n_heads=1 and head_dim=4.*\(2, 2, 3, 4\)"),
        (lambda: DeBERTa(2, 4, 2).content_bias(Q, Q, P / 2, P), "fractional offsets"),
        (lambda: CoPE(0, 2), "head_dim=0"),
        (lambda: CoPE(4, 0), "n_positions=0"),
        (lambda: CoPE(4, 2, std=math.nan), "std=nan"),
        (lambda: CoPE(8, 2).content_bias(Q, Q, P, P), r"head_dim=8.*\(2, 2, 3, 4\).*heads of the model"),
    ],
)
def test_errors_say_what_is_allowed(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_options_are_shown():
    assert "2, variant='power'" in repr(KERPLE(2, variant="power"))
    assert "2, hidden=3, c=0.2, L=9" in repr(FIRE(2, hidden=3, c=0.2, L=9.0))
    assert "8, 5, std=0.1" in repr(CoPE(8, 5, std=0.1))
