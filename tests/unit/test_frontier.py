"""Forgetting attention and the two temperatures against their equations, one pair at a time in float64."""

import math

import pytest
import torch

from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings import (
    ALiBi,
    Compose,
    Forgetting,
    Rotary,
    ScalableSoftmax,
    T5Bias,
    Temperature,
    slopes,
)
from tutorial_lib.model import Cache, Config, Memory, Transformer

F64 = torch.float64


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


# ---- a forget gate ----


def forgotten(e, q, k):
    """D_ij = Σ log σ(w·k_l + b) over l = j + 1 … i."""
    (batch, heads, n_q, _), n_k = q.shape, k.shape[-2]
    out = q.new_zeros(batch, heads, n_q, n_k)
    for b, h, n, j in torch.cartesian_prod(*map(torch.arange, out.shape)).tolist():
        keys, i = k[b, h * k.shape[1] // heads], n + n_k - n_q
        out[b, h, n, j] = sum(
            math.log(1 / (1 + math.exp(-(e.w[h] @ keys[m] + e.b[h])))) for m in range(j + 1, i + 1)
        )
    return out


def gate(heads=4, d=3):
    made = Forgetting(heads, d, std=1.0).double()
    torch.nn.init.normal_(made.b)
    return made


@pytest.mark.parametrize("n_q, n_k", [(6, 6), (1, 6), (3, 6)])
def test_forgetting_is_its_equation(n_q, n_k):
    encoding = gate()
    q, k = torch.randn(2, 4, n_q, 3, dtype=F64), torch.randn(2, 2, n_k, 3, dtype=F64)
    with torch.no_grad():
        expected = forgotten(encoding, q, k)
        close(encoding.content_bias(q, k, None, None) / 3**0.5, expected)
        close(scores(q, k, encoding), q @ k.repeat_interleave(2, 1).mT / 3**0.5 + expected)
    assert encoding.doors == ("content_bias",) and (expected <= 0).all() and expected.amin() < -3


@pytest.mark.parametrize("dtype, tolerance", [(F64, 1e-12), (torch.float32, 1e-6)])
def test_with_w_at_0_it_is_alibi(dtype, tolerance):
    """Its slope is −log σ(b): a b for each of ALiBi's slopes, and nothing of the text is left."""
    q, k, v = torch.randn(3, 2, 4, 9, 8, dtype=dtype)
    encoding = Forgetting(4, 8, std=0).to(dtype)
    encoding.b.data = -torch.expm1(slopes(4)).log().to(dtype)
    with torch.no_grad():
        close(scores(q, k, encoding).tril(), scores(q, k, ALiBi(4)).tril(), 4 * tolerance)
        for backend in ("eager", "sdpa"):
            one, two = (attention(q, k, v, e, causal=True, backend=backend) for e in (encoding, ALiBi(4)))
            close(one, two, tolerance)


def test_a_closed_gate_hides_what_lies_behind_it_and_open_ones_hide_nothing():
    encoding, (q, v) = Forgetting(1, 1), torch.randn(2, 1, 1, 6, 1)
    encoding.w.data.fill_(1)
    k = torch.full((1, 1, 6, 1), 40.0)
    close(encoding.content_bias(q, k, None, None), torch.zeros(1, 1, 6, 6), 1e-12)
    k[0, 0, 3] = -40.0  # a chapter begins
    _, weights = attention(q * 0, k, v, encoding, causal=True, backend="eager", return_weights=True)
    close(weights[0, 0, 5], torch.tensor([0, 0, 0, 1 / 3, 1 / 3, 1 / 3]), 1e-6)
    close(weights[0, 0, 2], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0, 0, 0]), 1e-6)


def test_forgetting_reads_no_positions_and_nothing_ahead():
    encoding, p = gate(2), torch.arange(6)
    q, k = torch.randn(2, 1, 2, 6, 3, dtype=F64)
    other = k.clone()
    other[:, :, 4:] += 1
    one, two = (encoding.content_bias(q, x, p, p) for x in (k, other))
    close(one, encoding.content_bias(q, k, p * 0, p.flip(0)), 0)
    assert (one.triu(1) == 0).all()
    close(one[:, :, :4], two[:, :, :4], 0)
    assert not torch.equal(one[:, :, 4:], two[:, :, 4:])


def test_forgetting_by_a_cache_by_padding_and_by_a_memory():
    """Token by token, behind padding and in segments: the same logits as in one go."""
    model = Transformer(Config(11, 16, n_heads=4, n_kv_heads=2), [gate(4, 4), gate(4, 4)]).double().eval()
    tokens, cache, memory = torch.randint(11, (1, 8)), Cache(), Memory(8)
    with torch.no_grad():
        whole = model(tokens)
        close(torch.cat([model(t, cache=cache) for t in tokens.split([3, 1, 2, 1, 1], 1)], 1), whole, 1e-10)
        padded = model(torch.cat([tokens[:, :2], tokens], 1), keep=torch.arange(10) > 1)
        close(padded[:, 2:], whole, 1e-10)
        segments = [model(t, memory=memory) for t in tokens.split(4, 1)]
        close(torch.cat(segments, 1), whole, 1e-10)


def test_a_masked_key_between_forgets_all_the_same():
    encoding, (q, k, v) = gate(2), torch.randn(3, 1, 2, 5, 3, dtype=F64)
    mask = torch.arange(5) != 2
    s = scores(q, k, encoding).masked_fill(~(mask & torch.ones(5, 5).tril().bool()), -math.inf)
    close(attention(q, k, v, encoding, causal=True, mask=mask), s.softmax(-1) @ v)


def test_gradcheck():
    encoding, p = gate(3, 2), torch.arange(5)
    q, k = (torch.randn(1, *shape, 2, dtype=F64, requires_grad=True) for shape in ((3, 3), (1, 5)))
    assert torch.autograd.gradcheck(
        lambda *_: scores(q, k, encoding, p[2:], p), (q, k, *encoding.parameters())
    )


def test_gates_start_at_one_half_as_in_the_released_code():
    encoding = Forgetting(500, 200)
    close(encoding.w.std().item(), 0.02, 1e-3)
    close(encoding.log_gates(torch.zeros(1, 500, 1, 200)).exp(), torch.full((1, 500, 1), 0.5), 1e-6)


# ---- a temperature ----


def of_llama_4(p, L, alpha):
    return math.log(math.floor((p + 1) / L) + 1) * alpha + 1


@pytest.mark.parametrize("L, alpha", [(8192, 0.1), (3, 0.5), (1, 1.0)])
def test_temperature_is_its_equation(L, alpha):
    p = torch.tensor([[0, 1, 2, 3, 8190, 8191, 8192], [5, 16382, 16383, 10**6, 10**7 + 1, 2, 2]])
    expected = torch.tensor([[of_llama_4(x, L, alpha) for x in row] for row in p.tolist()], dtype=F64)
    q, k = torch.randn(2, 2, 3, 7, 4, dtype=F64)
    encoding = Temperature(L, alpha)
    close(encoding.factor(p), expected)
    turned, same = encoding.rotate(q, k, p, p)
    close(turned, q * expected[:, None, :, None])
    close(encoding.rotate(q, k, p[0], p)[0], q * expected[0][:, None])
    assert same is k and encoding.doors == ("rotate",)


def test_scalable_softmax_is_its_equation():
    p, encoding = torch.tensor([[0, 1, 2], [9, 99, 10**7]]), ScalableSoftmax(3).double()
    close(encoding.s.data, torch.full((3,), 0.43, dtype=F64), 1e-6)
    encoding.s.data = torch.tensor([0.1, 1, 2], dtype=F64)
    q, k = torch.randn(2, 2, 3, 3, 4, dtype=F64)
    with torch.no_grad():
        turned, same = encoding.rotate(q, k, p, p)
        for b, h, i in torch.cartesian_prod(*[torch.arange(n) for n in q.shape[:3]]).tolist():
            n = p[b, i].item() + 1
            close(turned[b, h, i], q[b, h, i] * (encoding.s[h].item() * math.log(n)))
        close(encoding.rotate(q, k, p[1], p[1])[0][1], turned[1])
    assert same is k and encoding.doors == ("rotate",)


@pytest.mark.parametrize("p", [-1, -5, -9000])
def test_before_position_0_nothing_is_undefined(p):
    q, where = torch.randn(1, 2, 1, 4), torch.tensor([p])
    close(Temperature().rotate(q, q, where, where)[0], q, 0)
    assert (ScalableSoftmax(2).rotate(q, q, where, where)[0] == 0).all()


@pytest.mark.parametrize("kind", [Temperature, ScalableSoftmax])
def test_a_factor_on_the_query_is_a_temperature(kind):
    """It multiplies all scores of a query, whatever turns them, but not what is added behind the scale."""
    encoding = kind(2)
    q, k, v = torch.randn(3, 1, 2, 6, 8, dtype=F64)
    p = torch.arange(6) + 30
    c = encoding.factor(p).double().expand(2, 6)[..., None].detach()
    for parts in ((encoding, Rotary(8)), (Rotary(8), encoding)):
        close(scores(q, k, Compose(*parts), p, p), c * scores(q, k, Rotary(8), p, p), 1e-9)
    both = Compose(encoding, ALiBi(2))
    close(scores(q, k, both, p, p), c * scores(q, k, None, p, p) + ALiBi(2).bias(p, p), 1e-6)
    expected = (c * scores(q, k, None, p, p)).masked_fill(~torch.ones(6, 6).tril().bool(), -math.inf)
    close(attention(q, k, v, encoding, p, p, causal=True), expected.softmax(-1) @ v, 1e-6)


@pytest.mark.parametrize("n", [10, 1_000, 100_000])
def test_figure_1_of_scalable_softmax(n):
    """One score at +3 among n − 1 at −2: softmax lets it fade, s = 0.43 keeps its weight close to 1."""
    k = torch.full((1, 1, n, 1), -2.0, dtype=F64)
    k[..., -1, :] = 3
    q, p = torch.ones(1, 1, 1, 1, dtype=F64), torch.arange(n)
    with torch.no_grad():
        kept = scores(q, k, ScalableSoftmax(1), p[-1:], p).softmax(-1)[0, 0, 0, -1]
    assert kept > 0.99 - 1 / n
    faded = scores(q, k, None, p[-1:], p).softmax(-1)[0, 0, 0, -1]
    close(faded.item(), 1 / (1 + (n - 1) * math.exp(-5)), 1e-9)
    assert n < 1_000 or faded < 0.2


# ---- wrong inputs ----

X = torch.zeros(1, 2, 3, 4)
P = torch.arange(3)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Forgetting(0, 4), "n_heads=0.*positive integer"),
        (lambda: Forgetting(2, 4, std=-1), "std=-1.*0 or more"),
        (
            lambda: Forgetting(2, 8).content_bias(X, X, P, P),
            r"n_heads=2 and head_dim=8.*\(1, 2, 3, 4\).*heads",
        ),
        (
            lambda: Forgetting(2, 4).content_bias(X, X[:, :, :2], P, P),
            "q has 3 tokens and k 2.*at least as many",
        ),
        (lambda: Compose(Forgetting(2, 4), T5Bias(2)), r"different scales \[0.5, 1.0\]"),
        (lambda: Temperature(0), "floor_scale=0.*positive integer"),
        (lambda: Temperature(8, 0.0), "attn_scale=0.0.*above 0"),
        (lambda: Temperature().rotate(X, X, P[:2], P), r"q_positions have shape \(2,\)"),
        (lambda: ScalableSoftmax(2, s=0.0), "s=0.0.*above 0"),
        (lambda: ScalableSoftmax(3).rotate(X, X, P, P), "n_heads=3.*heads"),
        (lambda: ScalableSoftmax(2).rotate(X, X, P[:2], P), r"q_positions have shape \(2,\)"),
    ],
)
def test_errors_say_what_is_allowed(call, words):
    with pytest.raises(ValueError, match=words):
        call()
