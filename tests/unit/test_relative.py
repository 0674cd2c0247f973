"""The relative methods against their equations, written the slow way in float64."""

import copy
import inspect
import math

import pytest
import torch

from tutorial_lib import encodings, fast_attention
from tutorial_lib.attention import attention
from tutorial_lib.encodings import (
    REGISTRY,
    ALiBi,
    AsymmetricALiBi,
    ClippedBias,
    Compose,
    Learned,
    NoPosition,
    PositionalEncoding,
    RelativeBias,
    Rotary,
    Sandwich,
    Shaw,
    Sinusoidal,
    T5Bias,
    TableBias,
    bucket,
    build,
    sinusoidal,
    slopes,
)
from tutorial_lib.encodings.offsets import offsets
from tutorial_lib.encodings.registry import usual
from tutorial_lib.model import Cache, Config, Transformer

F64 = torch.float64


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


# ---- every bias, one pair at a time ----


def slow_bucket(r, bidirectional, n_buckets, max_distance):
    """By thresholds: how many bucket borders lie at or below the distance."""
    side = n_buckets // 2 if bidirectional else n_buckets
    exact = side // 2
    n = abs(r) if bidirectional else max(-r, 0)
    borders = [exact * (max_distance / exact) ** (b / (side - exact)) for b in range(1, side - exact)]
    number = n if n < exact else exact + sum(n >= border - 1e-9 for border in borders)
    return number + (side if bidirectional and r > 0 else 0)


M = [1 / 16, 1 / 256, 1 / 4]  # ALiBi's slopes of 3 heads
BIASES = {  # how to make it, and its value at head h and offset r
    "clipped": (lambda: ClippedBias(3, 2), lambda e, h, r: e.b[h, max(-2, min(2, r)) + 2]),
    "clipped-0": (lambda: ClippedBias(3, 0), lambda e, h, r: e.b[h, 0]),
    "table": (lambda: TableBias(3, 30), lambda e, h, r: e.W_r[h, r + 29]),
    "alibi": (lambda: ALiBi(3), lambda e, h, r: M[h] * r),
    "alibi-symmetric": (lambda: ALiBi(3, symmetric=True), lambda e, h, r: -M[h] * abs(r)),
    "alibi-asymmetric": (
        lambda: AsymmetricALiBi(3, left=[1, 2, 0], right=(0.5, 3, 4)),
        lambda e, h, r: -(-r * [1, 2, 0][h] if r < 0 else r * [0.5, 3, 4][h]),
    ),
    "sandwich": (
        lambda: Sandwich(3, dim=6),
        lambda e, h, r: 3 / (8 * (h + 1)) * sum(math.cos(r / 10_000 ** (2 * t / 6)) - 1 for t in range(3)),
    ),
    "t5": (lambda: T5Bias(3), lambda e, h, r: e.b[h, slow_bucket(r, False, 32, 128)]),
    "t5-small": (
        lambda: T5Bias(3, n_buckets=6, max_distance=9, bidirectional=True),
        lambda e, h, r: e.b[h, slow_bucket(r, True, 6, 9)],
    ),
}
POSITIONS = {
    "square": (torch.arange(5), torch.arange(5)),
    "decode": (torch.arange(6, 7), torch.arange(7)),
    "chunk": (torch.arange(4, 7), torch.arange(7)),
    "more queries": (torch.arange(7), torch.arange(3)),
    "far": (torch.arange(5) + 10**6, torch.arange(5) + 10**6 + 3),
    "far back": (torch.arange(5) - 10**6, torch.arange(5) - 10**6 - 2),
    "gaps": (torch.tensor([3, 4, 9]), torch.tensor([0, 1, 2, 20])),
    "backwards": (torch.arange(4).flip(0), torch.arange(4)),
    "rows": (torch.tensor([[0, 1, 2], [0, 0, 1]]), torch.tensor([[0, 1, 2], [0, 0, 1]])),
    "rows of keys": (torch.arange(2), torch.tensor([[0, 1, 2], [5, 7, 9]])),
    "rows of queries": (torch.tensor([[0, 1], [5, 9]]), torch.arange(3)),
    "one row": (torch.arange(3)[None], torch.arange(4)),
    "floats": (torch.arange(3.0), torch.arange(4.0, dtype=F64)),
    "uint8": (torch.arange(3, dtype=torch.uint8), torch.arange(4, dtype=torch.uint8)),
    "int32": (torch.arange(3, dtype=torch.int32), torch.arange(4, dtype=torch.int32)),
}


def by_loop(encoding, formula, q_positions, k_positions):
    one_d = q_positions.ndim == k_positions.ndim == 1
    rows = max(p.shape[0] if p.ndim == 2 else 1 for p in (q_positions, k_positions))
    q, k = (p.expand(rows, -1).long().tolist() for p in (q_positions, k_positions))
    with torch.no_grad():
        full = torch.tensor(
            [
                [[[float(formula(encoding, h, kj - qi)) for kj in k[b]] for qi in q[b]] for h in range(3)]
                for b in range(rows)
            ],
            dtype=F64,
        )
    return full[0] if one_d else full


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("name", BIASES)
def test_a_bias_is_its_equation(name, positions):
    make, formula = BIASES[name]
    encoding, (q, k) = make().double(), POSITIONS[positions]
    expected = by_loop(encoding, formula, q, k)
    for actual in (encoding.bias(q, k), encoding.dense(q, k)):
        close(actual.double(), expected, 1e-9 if actual.dtype is F64 else 1e-6)
    assert encoding.doors == ("bias",)


def test_offsets_of_integers_and_floats_are_rounded_once():
    """2²⁴ + 1 is no float32: rounded before it is subtracted, it would be its neighbour."""
    far = torch.tensor([2**24 + 1])
    assert offsets(far.double() - 0.5, far).item() == 0.5
    assert offsets(torch.tensor([2.0**24 - 1]), far).item() == 2
    assert offsets(torch.tensor([2.0**24 - 1]), far).dtype == torch.float32


@pytest.mark.parametrize("n_q, n_k", [(6, 6), (1, 6), (3, 6), (6, 2), (1, 1)])
@pytest.mark.parametrize("name", BIASES)
def test_the_short_way_equals_the_dense_one(name, n_q, n_k):
    """Gradients, too; and it asks for Lq + Lk − 1 offsets where the dense way asks for Lq · Lk."""
    encoding = BIASES[name][0]().double()
    q, k, asked = torch.arange(n_q) + 11, torch.arange(n_k) + 9, []
    plain = encoding.of
    encoding.of = lambda r: asked.append(r.numel()) or plain(r)
    upstream, results = torch.randn(3, n_q, n_k, dtype=F64), []
    for way in (encoding.bias, encoding.dense):
        out = way(q, k)
        own = list(encoding.parameters())
        results.append([out, *(torch.autograd.grad((out * upstream).sum(), own) if own else ())])
    for short, dense in zip(*results, strict=True):
        close(short, dense)
    assert asked[0] == n_q + n_k - 1
    assert asked[1:] == ([] if name == "sandwich" else [n_q * n_k])  # a product of vectors asks for none


def test_only_consecutive_integers_go_the_short_way():
    encoding, asked = ClippedBias(1, 2), []
    plain = encoding.of
    encoding.of = lambda r: asked.append(r.shape) or plain(r)
    p = torch.arange(4)
    for other in (p * 2, p.flip(0), torch.tensor([0, 1, 2, 2]), p.double(), p[None], p.new_zeros(0)):
        encoding.bias(other, p)
        encoding.bias(p, other)
    assert all(len(shape) > 1 for shape in asked) and len(asked) == 12


@pytest.mark.parametrize("learns", [False, True])
def test_all_layers_ask_for_a_bias_once(learns):
    asked, counts = [], []
    encoding = T5Bias(2) if learns else ALiBi(2)
    plain, model = encoding.of, Transformer(Config(11, 16, n_layers=3, n_heads=2), encoding)
    encoding.of = lambda r: asked.append(r.numel()) or plain(r)
    for grad in (False, True):
        asked.clear()
        with torch.set_grad_enabled(grad):
            model(torch.randint(11, (2, 9)))
        counts.append(len(asked))
    assert counts == [1, 3 if learns else 1]  # one that takes part in a gradient belongs to its layer


def test_alibi_takes_fractional_positions():
    p = torch.tensor([0, 0.5, 2.25])
    close(ALiBi(8).bias(p, p)[0], 0.5 * (p - p[:, None]), 0)
    close(ALiBi(8, symmetric=True).bias(p, p)[1], -0.25 * (p - p[:, None]).abs(), 0)


def test_a_table_grows_with_its_offsets_only():
    assert {name: value.shape for name, value in TableBias(2, 4).named_parameters()} == {"W_r": (2, 7)}
    assert ClippedBias(2, 5).b.shape == (2, 11) and T5Bias(2, n_buckets=9).b.shape == (2, 9)
    assert Shaw(8, 3).w_K.shape == Shaw(8, 3).w_V.shape == (7, 8)


@pytest.mark.parametrize(
    "q, k",
    [
        (torch.arange(6), torch.arange(6)),  # plain indexing would wrap at i = 5, j = 0: 0 − 5 + 3 = −2
        (torch.tensor([5]), torch.tensor([0])),
        (torch.tensor([0]), torch.tensor([4])),
        (torch.arange(4)[None], torch.arange(5)[None]),
    ],
)
def test_a_table_never_wraps(q, k):
    table = TableBias(2, 4)
    with pytest.raises(ValueError, match=r"offsets run from .*length=4 .*-3 to 3.*larger length"):
        table.bias(q, k)
    compiled = torch.compile(table.bias, backend="aot_eager", fullgraph=True)
    out, outside = compiled(q, k), offsets(q, k).abs() > 3
    assert out.isnan().equal((outside if q.ndim == 1 else outside[:, None]).expand_as(out))


@pytest.mark.parametrize("make", [ClippedBias, TableBias])
@pytest.mark.parametrize("std", [0.02, 0.5])
def test_initial_spread(make, std):
    (table,) = make(20, 2000, **({} if std == 0.02 else {"std": std})).parameters()
    close(table.std().item(), std, 0.02 * std)


def test_initial_spread_of_the_others():
    close(T5Bias(500, n_buckets=128).b.std().item(), 0.02, 4e-4)
    close(T5Bias(500, n_buckets=128, std=0.3).b.std().item(), 0.3, 0.006)
    for table in (Shaw(64, 1000).w_K, Shaw(64, 1000).w_V):
        close(table.std().item(), 1 / 8, 0.002)
    close(Shaw(64, 1000, std=0.5).w_V.std().item(), 0.5, 0.01)


@pytest.mark.parametrize(
    "encoding",
    [
        ClippedBias(2, 2, std=1.0),
        ALiBi(2),
        Shaw(8, 2, std=1.0),
        T5Bias(2, n_buckets=4, max_distance=3, std=1.0),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_attention_adds_a_bias_after_the_scale(encoding, backend):
    """T5 has no scale at all; Shaw's term for the keys comes before it."""
    encoding = copy.deepcopy(encoding).double()
    q, k, v = torch.randn(3, 1, 2, 4, 8, dtype=F64)
    expected = torch.zeros(1, 2, 4, 8, dtype=F64)
    for h in range(2):
        for i in range(4):
            logits = []
            for j in range(i + 1):
                c = max(-2, j - i) + 2
                logit = (q[0, h, i] @ k[0, h, j]).item()
                if isinstance(encoding, Shaw):
                    logit += (q[0, h, i] @ encoding.w_K[c]).item()
                logit *= 1.0 if isinstance(encoding, T5Bias) else 1 / math.sqrt(8)
                if isinstance(encoding, ClippedBias):
                    logit += encoding.b[h, c].item()
                elif isinstance(encoding, ALiBi):
                    logit -= [1 / 16, 1 / 256][h] * (i - j)
                elif isinstance(encoding, T5Bias):
                    logit += encoding.b[h, min(i - j, 3)].item()  # borders 0, 1, 2 and 2·√1.5 = 2.4
                logits.append(logit)
            total = sum(map(math.exp, logits))
            for j, logit in enumerate(logits):
                value = v[0, h, j]
                if isinstance(encoding, Shaw):
                    value = value + encoding.w_V[max(-2, j - i) + 2].detach()
                expected[0, h, i] += math.exp(logit) / total * value
    close(attention(q, k, v, encoding, causal=True, backend=backend), expected, 1e-10)


# ---- ALiBi ----


def test_slopes_of_a_power_of_two():
    for n in (1, 2, 4, 8, 16, 64):
        close(slopes(n), torch.tensor([2 ** (-8 * h / n) for h in range(1, n + 1)], dtype=F64), 1e-15)


def test_slopes_of_any_number():
    for n in range(1, 140):
        m = slopes(n)
        assert m.shape == (n,) and len(set(m.tolist())) == n and (m > 0).all() and (m < 1).all()


@pytest.mark.parametrize("n_heads", [3, 8])
def test_the_positive_form_is_the_same_under_a_causal_softmax(n_heads):
    s, j = torch.randn(n_heads, 6, 6, dtype=F64), torch.arange(6)
    future = torch.ones(6, 6).triu(1).bool()
    released = (s + slopes(n_heads)[:, None, None] * j).masked_fill(future, -math.inf).softmax(-1)
    ours = (s + ALiBi(n_heads).bias(j.double(), j.double())).masked_fill(future, -math.inf).softmax(-1)
    close(ours, released)
    flipped = (s - ALiBi(n_heads).bias(j, j)).masked_fill(future, -math.inf).softmax(-1)
    assert (flipped - released).abs().max() > 0.1


def test_symmetric_and_causal_agree_where_a_causal_mask_lets_one_look():
    p = torch.arange(9)
    close(ALiBi(4, symmetric=True).bias(p, p).tril(), ALiBi(4).bias(p, p).tril(), 0)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4])
def test_a_symmetric_encoder_cannot_tell_a_sentence_from_its_reversal(n_heads):
    config = Config(11, d_model=8 * n_heads, n_heads=n_heads, causal=False, pool="mean")
    tokens = torch.randint(11, (4, 7))

    def difference(encoding):
        torch.manual_seed(0)
        model = Transformer(config, encoding).double()
        return (model(tokens) - model(tokens.flip(1))).abs().max().item()

    assert difference(ALiBi(n_heads, symmetric=True)) < 1e-12
    assert difference(AsymmetricALiBi(n_heads)) > 1e-4


def test_asymmetric_slopes_differ_in_every_head():
    for n in (1, 2, 3, 5, 8, 12, 13):
        alibi = AsymmetricALiBi(n)
        assert len(set(alibi.left + alibi.right)) == 2 * n
        assert sorted(alibi.left + alibi.right) == sorted(slopes(2 * n).tolist())
        dealt = [m for pair in zip(alibi.left, alibi.right, strict=True) for m in pair]
        assert dealt == sorted(dealt, reverse=True)
    assert AsymmetricALiBi(1).left == (1 / 16,) and AsymmetricALiBi(1).right == (1 / 256,)
    p = torch.arange(4)
    close(
        AsymmetricALiBi(2, left=slopes(2), right=slopes(2)).bias(p, p), ALiBi(2, symmetric=True).bias(p, p), 0
    )


@pytest.mark.parametrize("encoding", [ALiBi(12), ALiBi(12, symmetric=True), AsymmetricALiBi(3)], ids=str)
def test_half_precision_modules_keep_their_slopes(encoding):
    p = torch.arange(600)
    before = encoding.bias(p, p)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        close(encoding.to(dtype).bias(p, p), before, 0)
    assert before.dtype == torch.float32 and encoding.bias(p.double(), p).dtype == F64
    close(encoding.bias(p.double(), p).float(), before, 1e-6)


# ---- T5 ----


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(
    "n_buckets, max_distance",
    [
        (32, 128),
        (8, 20),
        (33, 100),
        (5, 3),
        (4, 3),
        (64, 1000),
    ],
)
def test_buckets_against_their_borders(bidirectional, n_buckets, max_distance):
    r = torch.arange(-1100, 1101)
    expected = [slow_bucket(x, bidirectional, n_buckets, max_distance) for x in r.tolist()]
    assert (
        bucket(r, bidirectional=bidirectional, n_buckets=n_buckets, max_distance=max_distance).tolist()
        == expected
    )


@pytest.mark.parametrize("bidirectional, border, last", [(False, 113, 31), (True, 91, 15)])
def test_buckets_saturate_before_max_distance(bidirectional, border, last):
    r = torch.tensor([-border + 1, -border, -128, -(10**6)])
    assert bucket(r, bidirectional=bidirectional).tolist() == [last - 1, last, last, last]


def test_bidirectional_bucket_16_is_never_used():
    r = torch.arange(-2000, 2001)
    assert set(range(32)) - set(bucket(r, bidirectional=True).tolist()) == {16}
    assert set(bucket(r).tolist()) == set(range(32))


def test_the_module_passes_its_options_on():
    encoding = T5Bias(1, bidirectional=True, n_buckets=8, max_distance=20)
    assert "bidirectional=True, n_buckets=8, max_distance=20" in repr(encoding)
    assert "symmetric=True" in repr(ALiBi(2, symmetric=True))
    assert "left=(1.0,), right=(0.5,)" in repr(AsymmetricALiBi(1, left=[1], right=[0.5]))


def test_t5_does_not_scale():
    assert T5Bias(2).scale == 1.0
    assert Compose(Learned(4, 4), T5Bias(2)).scale == 1.0
    assert bucket(torch.zeros(2, 3, 0)).shape == (2, 3, 0)


# ---- Sandwich ----


@pytest.mark.parametrize("dim", [2, 6, 128])
def test_sandwich_is_the_inner_product_of_sinusoids(dim):
    """Less that of a vector with itself, d̄/2; over 8h/H for head h = 1 … H. Any positions, in float64."""
    q, k = torch.tensor([0, 2.5, 1e6], dtype=F64), torch.tensor([-3, 0, 999_999.0], dtype=F64)
    plain = sinusoidal(q, dim) @ sinusoidal(k, dim).T
    bias = Sandwich(4, dim=dim).bias(q, k)
    for h in range(4):
        close(bias[h] * 2 * (h + 1) + dim / 2, plain, 1e-8)
    assert bias.dtype == F64 and bias.max() <= 0


def test_sandwich_falls_about_as_a_logarithm():
    """Eight times the distance: ln 8 / ln 10000 of the 64 cosines more no longer count."""
    falls = Sandwich(1).of(-(8 ** torch.arange(1, 5)))[0].diff()
    close(falls, torch.full((3,), -64 / 8 * math.log(8) / math.log(10_000)), 0.25)


def test_sandwich_keeps_far_places_apart_in_half_precision(largest):
    p = torch.arange(4001, 4007)
    close(Sandwich(2).half().bias(p, p), Sandwich(2).bias(p - 4001, p - 4001), 0)
    rows = torch.arange(96).expand(2, 96)
    with largest() as ours:
        Sandwich(2).bias(rows, rows)
    assert ours.elements <= 2 * 2 * 96 * 128  # a vector for each place, none for each pair


# ---- Shaw ----


def naive_shaw(q, k, v, encoding, q_positions, k_positions, seen=None):
    """Eq. 3 and 4 with the vectors a_ij written out, [.., Lq, Lk, d]; causal by position, or as ``seen``."""
    r = k_positions[..., None, :] - q_positions[..., :, None]
    row = r.clamp(-encoding.max_distance, encoding.max_distance) + encoding.max_distance
    a_K, a_V = encoding.w_K[row], encoding.w_V[row]
    if row.ndim == 3:
        a_K, a_V, r = a_K[:, None], a_V[:, None], r[:, None]
    e = (q[..., :, None, :] * (k[..., None, :, :] + a_K)).sum(-1) / q.shape[-1] ** 0.5
    alpha = e.masked_fill(r > 0 if seen is None else ~seen, -math.inf).softmax(-1)
    return (alpha[..., None] * (v[..., None, :, :] + a_V)).sum(-2)


@pytest.mark.parametrize("max_distance", [0, 1, 3, 20])
@pytest.mark.parametrize("n_q, rows", [(6, False), (2, False), (1, False), (6, True)])
def test_shaw_is_its_equation_with_gradients(n_q, rows, max_distance):
    encoding = Shaw(8, max_distance).double()
    q, k, v = (torch.randn(2, 3, n, 8, dtype=F64, requires_grad=True) for n in (n_q, 6, 6))
    p = torch.stack([torch.arange(6), torch.arange(6) * 2]) if rows else torch.arange(6)
    p_q, leaves = p[..., 6 - n_q :], (q, k, v, *encoding.parameters())
    upstream = torch.randn(2, 3, n_q, 8, dtype=F64)
    for backend in ("eager", "sdpa"):
        actual = attention(q, k, v, encoding, p_q, p, causal=True, backend=backend)
        expected = naive_shaw(q, k, v, encoding, p_q, p)
        close(actual, expected, 1e-11)
        ours, slow = (torch.autograd.grad((out * upstream).sum(), leaves) for out in (actual, expected))
        for one, other in zip(ours, slow, strict=True):
            close(one, other, 1e-11)
        assert max_distance == 0 or ours[3].abs().max() > 1e-2 and ours[4].abs().max() > 1e-2
    assert encoding.doors == ("content_bias", "values")


@pytest.fixture
def far(monkeypatch):
    """Chunks of 4 queries, so that a short text has keys out of reach; how many texts went that way."""
    monkeypatch.setattr(fast_attention, "CHUNK", 8)
    texts, way = [], fast_attention.by_reach
    monkeypatch.setattr("tutorial_lib.attention.by_reach", lambda *given: texts.append(given) or way(*given))
    return texts


@pytest.mark.parametrize("max_distance", [0, 1, 3])
@pytest.mark.parametrize(
    "n_q, first",
    [
        (29, 0),
        (29, 10**6),
        (6, 23),
        (1, 28),
        (29, 9),
        (29, -9),
        (6, 60),
        (6, -60),
    ],
)
@pytest.mark.parametrize("causal", [True, False])
@torch.no_grad()
def test_shaw_with_far_keys_as_one(n_q, first, causal, max_distance, far):
    """In a text, after a cache, and wherever else the queries say that they are."""
    encoding = Shaw(8, max_distance).double()
    q, k, v = (torch.randn(2, 3, n, 8, dtype=F64) * 2 for n in (n_q, 29, 29))
    p_q, p = torch.arange(n_q) + first, torch.arange(29) + (first if first == 10**6 else 0)
    seen = torch.ones(n_q, 29).tril(29 - n_q).bool() if causal else torch.ones(n_q, 29).bool()
    for scale in (1, 30):  # 30: the weights of far keys are next to nothing, or everything
        close(
            attention(q * scale, k, v, encoding, p_q, p, causal=causal),
            naive_shaw(q * scale, k, v, encoding, p_q, p, seen),
            1e-11,
        )
    assert len(far) == 2


@pytest.mark.parametrize("causal", [True, False])
@torch.no_grad()
def test_the_doors_see_near_pairs_only(causal, far, monkeypatch):
    encoding, asked, content_bias = Shaw(8, 2), [], Shaw.content_bias
    monkeypatch.setattr(
        Shaw,
        "content_bias",
        lambda self, q, k, *where: (
            asked.append((q.shape[-2], k.shape[-2])),
            content_bias(self, q, k, *where),
        )[1],
    )
    q, k, v = torch.randn(3, 1, 2, 64, 8)
    attention(q, k, v, encoding, causal=causal)
    size = 4 if causal else 8
    assert asked[0][0] == size and len(asked) == 64 / size
    assert max(n for _, n in asked) == size + 2 * encoding.reach - (2 if causal else 0)


@torch.no_grad()
def test_far_keys_in_float32_grouped_composed_and_through_other_memory(far):
    q, (k, v) = torch.randn(2, 4, 40, 8), torch.randn(2, 2, 2, 40, 8)
    for encoding in (Shaw(8, 3), Compose(Rotary(8), Shaw(8, 3), NoPosition(), Shaw(8, 1))):
        expected = attention(q, k, v, encoding, causal=True, backend="eager")
        for x in (q, q.mT.contiguous().mT):
            close(attention(x, k, v, encoding, causal=True), expected, 1e-5)
    assert len(far) == 4
    assert Compose(Learned(9, 8), Shaw(8, 3)).reach == 3 and Compose(Shaw(8, 3), Shaw(8, 4)).reach == 4
    assert Compose(Shaw(8, 3), ALiBi(4)).reach is None and Compose(Rotary(8)).reach is None


def test_what_keeps_shaw_from_summing_far_keys(far):
    """Masks, padded rows, gaps, gradients and transforms go through the doors for every pair."""
    encoding, p = Shaw(8, 2).double(), torch.arange(30)
    q, k, v = torch.randn(3, 2, 3, 30, 8, dtype=F64)
    rows = torch.stack([p, (p - 4).clamp(min=0)])
    mask = torch.ones(2, 1, 1, 30, dtype=torch.bool)
    mask[1, ..., :4] = False
    with torch.no_grad():
        close(
            attention(q, k, v, encoding, causal=True, mask=mask)[1, :, 4:],
            naive_shaw(q, k, v, encoding, p, p, torch.ones(30, 30).tril().bool() & mask)[1, :, 4:],
        )
        close(
            attention(q, k, v, encoding, rows, rows),
            naive_shaw(q, k, v, encoding, rows, rows, torch.ones(30, 30).bool()),
        )
        for gaps in (p * 2, p.flip(0), p.double()):
            for where in ((gaps, gaps), (gaps, p), (p, gaps)):
                close(
                    attention(q, k, v, encoding, *where),
                    naive_shaw(q, k, v, encoding, *(x.long() for x in where), torch.ones(30, 30).bool()),
                )
        one = torch.func.vmap(lambda q, k, v: attention(q[None], k[None], v[None], encoding)[0])(q, k, v)
        close(one, attention(q, k, v, encoding, backend="eager"))
        with pytest.raises(ValueError, match="fractional"):
            attention(q, k, v, encoding, p / 2, p)
    assert not far
    out = attention(q, k, v, encoding)
    out.sum().backward()
    with torch.no_grad():
        close(attention(q, k, v, encoding), out.detach())
    assert encoding.w_V.grad.abs().max() > 0 and len(far) == 1


@torch.no_grad()
def test_shaw_reads_in_pieces_what_it_reads_at_once(far):
    model = Transformer(Config(11, 16, n_heads=2), Shaw(8, 2)).double()
    tokens, cache = torch.randint(11, (2, 40)), Cache()
    pieces = [model(x, cache=cache) for x in (tokens[:, :17], tokens[:, 17:39], tokens[:, 39:])]
    close(torch.cat(pieces, 1), model(tokens), 1e-10)
    assert len(far) == 2 * 4


def test_shaw_with_grouped_keys():
    """Its vectors belong to query heads, so shared keys change nothing."""
    encoding, p = Shaw(8, 2).double(), torch.arange(5)
    q, k, v = torch.randn(1, 4, 5, 8, dtype=F64), *torch.randn(2, 1, 2, 5, 8, dtype=F64)
    wide = [x.repeat_interleave(2, 1) for x in (k, v)]
    close(attention(q, k, v, encoding, p, p, causal=True), naive_shaw(q, *wide, encoding, p, p))


@pytest.mark.parametrize("rows", [False, True])
def test_shaw_never_forms_a_vector_per_pair(rows, largest):
    L, d = 96, 64
    encoding = Shaw(d, 4)
    q, k, v = (torch.randn(1, 2, L, d, requires_grad=True) for _ in "qkv")
    p = torch.arange(L)[None] if rows else torch.arange(L)
    with largest() as ours:
        attention(q, k, v, encoding, p, p, causal=True).sum().backward()
    with largest() as naive:
        naive_shaw(q, k, v, encoding, p, p)
    assert ours.elements <= 2 * L * L  # one number per head and pair
    assert naive.elements >= L * L * d


# ---- the registry ----

CONFIGS = {
    "none": {},
    "sinusoidal": {"dim": 8},
    "learned": {"max_length": 9, "dim": 8, "std": 0.1},
    "add": {"position": Sinusoidal(8), "token_scale": 2.0},
    "multiply": {"position": Sinusoidal(8)},
    "matrix": {"max_length": 9, "dim": 8},
    "concatenate": {"position": Sinusoidal(8)},
    "rotary": {"head_dim": 8, "layout": "half"},
    "clipped": {"n_heads": 2, "max_distance": 3},
    "xpos": {"head_dim": 8},
    "table": {"n_heads": 2, "length": 9},
    "shaw": {"head_dim": 8, "max_distance": 3},
    "sinusoidal-2d": {"dim": 8, "base": 50.0},
    "rotary-axial": {"head_dim": 8, "layout": "half"},
    "swin": {"n_heads": 2, "window": (3, 2), "std": 0.1},
    "raster": {"encoding": Sinusoidal(8), "width": 3},
    "t5": {"n_heads": 2, "bidirectional": True},
    "alibi": {"n_heads": 2, "symmetric": True},
    "transformer-xl": {"n_heads": 2, "head_dim": 4, "dim": 6},
    "alibi-asymmetric": {"n_heads": 2},
    "kerple": {"n_heads": 2, "variant": "power"},
    "hybrid-sum": {"position": Sinusoidal(8), "relative": ALiBi(2)},
    "hybrid-concat": {"position": Sinusoidal(8), "relative": ALiBi(2), "hidden": 3},
    "key-side": {"position": Sinusoidal(8), "relative": ALiBi(2)},
    "tupe": {"position": Sinusoidal(8), "n_heads": 2, "head_dim": 4, "relative": ALiBi(2), "untie_cls": True},
    "fire": {"n_heads": 2, "hidden": 3, "L": 9.0},
    "deberta": {"n_heads": 2, "head_dim": 4, "max_distance": 3, "released": True},
    "cope": {"head_dim": 8, "n_positions": 3, "std": 0.1},
    "forgetting": {"n_heads": 2, "head_dim": 8, "std": 0.1},
    "temperature": {"floor_scale": 3, "attn_scale": 0.2},
    "compose": {"parts": [Sinusoidal(8), NoPosition()]},
}
CONFIGS |= {name: usual(name, d_model=8, n_heads=2, length=9) for name in REGISTRY if name not in CONFIGS}


@pytest.mark.parametrize("name", REGISTRY)
def test_build(name):
    encoding = build(name, **CONFIGS[name])
    assert isinstance(encoding, PositionalEncoding)
    for key, value in CONFIGS[name].items():
        if name != "compose":
            assert getattr(encoding, key) is value or getattr(encoding, key) == value


@pytest.mark.parametrize("name", REGISTRY)
def test_every_size_and_number_is_checked(name):
    wrong = {int: (-1, 2.5, True, "3", [2]), float: (math.nan, math.inf, True, "3", [2])}
    for key, parameter in inspect.signature(REGISTRY[name]).parameters.items():
        for value in wrong.get(type(CONFIGS[name].get(key, parameter.default)), ()):
            with pytest.raises(ValueError, match=rf"{key}="):
                build(name, **{**CONFIGS[name], key: value})


def test_build_knows_every_encoding():
    classes = [getattr(encodings, name) for name in encodings.__all__]
    methods = {c for c in classes if isinstance(c, type) and issubclass(c, PositionalEncoding)}
    built = {type(build(name, **CONFIGS[name])) for name in REGISTRY}
    assert methods - built == {PositionalEncoding, encodings.Absolute, RelativeBias} and built <= methods
    parts = build("compose", parts=[build("learned", max_length=4, dim=4), build("t5", n_heads=2)]).parts
    assert [type(part) for part in parts] == [Learned, T5Bias]


def test_build_says_what_it_knows():
    with pytest.raises(ValueError, match="name='rope'.*" + ".*".join(map(repr, REGISTRY))):
        build("rope", head_dim=8)
    with pytest.raises(TypeError, match="'alibi'.*no argument 'heads' and a value for 'n_heads'.*symmetric"):
        build("alibi", heads=8)
    with pytest.raises(TypeError, match="'none'.*no argument 'dim'.*takes nothing"):
        build("none", dim=8)
    with pytest.raises(ValueError, match="n_heads=0"):
        build("alibi", n_heads=0)


# ---- wrong inputs: the message names the argument, the value and what is allowed ----

P = torch.arange(3)
Q = torch.zeros(2, 1, 3, 4)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ClippedBias(0, 2), "n_heads=0.*positive integer"),
        (lambda: ClippedBias(2, -1), "max_distance=-1.*integer, 0 or more"),
        (lambda: ClippedBias(2, 1.5), "max_distance=1.5.*integer"),
        (lambda: ClippedBias(2, True), "max_distance=True.*integer"),
        (lambda: ClippedBias(2, 1, std=-0.1), "std=-0.1.*finite number, 0 or more"),
        (lambda: ClippedBias(2, 1, std=math.nan), "std=nan.*finite number"),
        (lambda: ClippedBias(2, 1, std=math.inf), "std=inf.*finite number"),
        (lambda: TableBias(2, 0), "length=0.*positive integer"),
        (lambda: TableBias(2, 3, std=-1), "std=-1"),
        (lambda: slopes(0), "n_heads=0.*positive integer"),
        (lambda: ALiBi(2.0), "n_heads=2.0.*positive integer"),
        (lambda: AsymmetricALiBi(-1), "n_heads=-1"),
        (lambda: AsymmetricALiBi(2, left=[1]), r"left=\(1.0,\).*2 finite slopes"),
        (lambda: AsymmetricALiBi(1, right=[-1]), r"right=\(-1.0,\).*0 or more"),
        (lambda: AsymmetricALiBi(2, left=0.5), "left=0.5.*2 finite slopes"),
        (lambda: AsymmetricALiBi(1, right=[math.nan]), r"right=\(nan,\)"),
        (lambda: Sandwich(0), "n_heads=0"),
        (lambda: Sandwich(2, dim=7), "dim=7.*even"),
        (lambda: T5Bias(0), "n_heads=0"),
        (lambda: T5Bias(2, std=-1), "std=-1"),
        (lambda: T5Bias(2, n_buckets=1), "n_buckets=1.*at least 2 with bidirectional=False"),
        (
            lambda: T5Bias(2, n_buckets=3, bidirectional=True),
            "n_buckets=3.*at least 4 with bidirectional=True",
        ),
        (lambda: T5Bias(2, max_distance=16), "max_distance=16.*exceed the 16 exact"),
        (lambda: bucket(P, max_distance=8, bidirectional=True), "max_distance=8.*exceed the 8 exact"),
        (lambda: bucket(P, n_buckets=0), "n_buckets=0.*positive"),
        (lambda: bucket(P, max_distance=-3), "max_distance=-3.*positive"),
        (lambda: bucket(P / 2), "fractional offsets.*whole"),
        (lambda: ClippedBias(2, 1).bias(P / 2, P), "fractional offsets.*whole"),
        (lambda: ClippedBias(2, 1).bias(P * math.nan, P), "q_positions are not all finite"),
        (lambda: ClippedBias(2, 1).bias(P[0], P), r"q_positions have shape \(\).*\[B, L\]"),
        (lambda: ALiBi(2).bias(P, P[None, None]), r"k_positions have shape \(1, 1, 3\).*\[B, L\]"),
        (lambda: ALiBi(2).bias(P.expand(2, 3), P.expand(4, 3)), r"\(2, 3\).*\(4, 3\).*number of rows"),
        (lambda: Shaw(0, 2), "head_dim=0"),
        (lambda: Shaw(4, -1), "max_distance=-1"),
        (lambda: Shaw(4, 1, std=-1.0), "std=-1.0"),
        (lambda: Shaw(8, 1).content_bias(Q, Q, P, P), r"head_dim=8.*\(2, 1, 3, 4\).*heads of the model"),
    ],
)
def test_errors_say_what_is_allowed(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_relative_bias_must_give_of():
    class Empty(RelativeBias):
        pass

    with pytest.raises(NotImplementedError, match="Empty must give of"):
        Empty().bias(P, P)


class Leaning(Shaw):
    """Shaw with a bias besides, which tells far keys apart."""

    def bias(self, q_positions, k_positions):
        return -0.1 * offsets(q_positions, k_positions).abs()


def wider():
    encoding = Shaw(8, 4)
    encoding.max_distance = 8
    encoding.w_K, encoding.w_V = (torch.nn.Parameter(torch.randn(17, 8)) for _ in range(2))
    return encoding


@pytest.mark.parametrize(
    "encoding",
    [Leaning(8, 4), wider(), Compose(Leaning(8, 4), ALiBi(2))],
    ids=["a bias of its own", "a larger k", "composed"],
)
def test_the_reach_is_what_the_encoding_does_now(encoding):
    encoding = encoding.double()
    q, k, v = (torch.randn(1, 2, n, 8, dtype=torch.float64) for n in (300, 500, 500))
    with torch.no_grad():
        close(
            attention(q, k, v, encoding, causal=True),
            attention(q, k, v, encoding, causal=True, backend="eager"),
        )
