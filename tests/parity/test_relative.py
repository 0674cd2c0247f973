"""T5's buckets and ALiBi's slopes against Hugging Face and x-transformers, alone and in attention."""

import pytest
import torch
from transformers.cache_utils import DynamicCache
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.mpt import modeling_mpt as mpt
from transformers.models.t5 import modeling_t5 as t5
from x_transformers import x_transformers

from tutorial_lib.attention import attention
from tutorial_lib.encodings import ALiBi, AsymmetricALiBi, T5Bias, bucket, slopes

from .layers import close, heads, merged

F64 = torch.float64


def additive(allowed, dtype):
    return torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, torch.finfo(dtype).min)


# ---- T5 ----

BUCKETS = [(32, 128), (32, 20), (64, 1000), (33, 100), (10, 50), (8, 20), (6, 9), (5, 3), (4, 3), (320, 800)]
FAR = torch.tensor([10_000, 65_536, 10**6, 2**31 - 1])
R = torch.cat([torch.arange(-3000, 3001), FAR, -FAR])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("n_buckets, max_distance", BUCKETS)
def test_every_offset_falls_into_the_same_bucket(n_buckets, max_distance, bidirectional):
    """They too take r = key − query."""
    ours = bucket(R, bidirectional=bidirectional, n_buckets=n_buckets, max_distance=max_distance)
    sizes = {"num_buckets": n_buckets, "max_distance": max_distance}
    assert ours.equal(t5.T5Attention._relative_position_bucket(R, bidirectional, **sizes))
    assert ours.equal(
        x_transformers.RelativePositionBias._relative_position_bucket(R, not bidirectional, **sizes)
    )


def t5_layer(bidirectional, n_buckets, max_distance, dtype):
    config = t5.T5Config(
        d_model=24,
        d_kv=8,
        num_heads=3,
        relative_attention_num_buckets=n_buckets,
        relative_attention_max_distance=max_distance,
        is_decoder=not bidirectional,
        dropout_rate=0.0,
    )
    config._attn_implementation = "eager"
    layer = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).to(dtype)
    ours = T5Bias(3, bidirectional=bidirectional, n_buckets=n_buckets, max_distance=max_distance)
    ours.b.data = layer.relative_attention_bias.weight.T  # theirs is [n_buckets, H]
    return layer, ours


@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float32, 2e-6), (F64, 1e-14), (torch.bfloat16, 0.03)], ids=str
)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("n_buckets, max_distance", BUCKETS[:5])
def test_t5_attention(n_buckets, max_distance, bidirectional, dtype, tolerance):
    """Scores are not scaled there either; at once, and the second half from a cache."""
    layer, encoding = t5_layer(bidirectional, n_buckets, max_distance, dtype)
    x = torch.randn(2, 40, 24, dtype=dtype)
    mask = None if bidirectional else additive(torch.ones(40, 40).tril().bool(), dtype)
    with torch.no_grad():
        q, k, v = (heads(f(x), 3) for f in (layer.q, layer.k, layer.v))
        theirs, bias, _ = layer(x, mask=mask)
        close(encoding.bias(torch.arange(40), torch.arange(40)), bias[0], 0)
        for backend in ("eager", "sdpa"):
            ours = attention(q, k, v, encoding, causal=not bidirectional, backend=backend)
            close(layer.o(merged(ours)), theirs, tolerance)
        if not bidirectional:
            cache = DynamicCache()
            layer(x[:, :25], mask=mask[:25, :25], past_key_values=cache)
            theirs, *_ = layer(x[:, 25:], mask=mask[25:], past_key_values=cache)
            close(layer.o(merged(attention(q[:, :, 25:], k, v, encoding, causal=True))), theirs, tolerance)


# ---- ALiBi ----


@pytest.mark.parametrize(
    "theirs",
    [
        lambda n: bloom._get_alibi_slopes(n, "cpu"),
        lambda n: mpt.build_mpt_alibi_tensor(n, 2)[:, 0, 1] - mpt.build_mpt_alibi_tensor(n, 2)[:, 0, 0],
        lambda n: torch.tensor(x_transformers.AlibiPositionalBias._get_slopes(n), dtype=F64),
    ],
    ids=["bloom", "mpt", "x-transformers"],
)
def test_slopes_of_any_number_of_heads(theirs):
    for n in range(1, 130):
        torch.testing.assert_close(slopes(n), theirs(n).double(), atol=0, rtol=5e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8, 12])
@pytest.mark.parametrize(
    "dtype, tolerance",
    [
        (torch.float32, 2e-6),
        (F64, 1e-6),
        (torch.bfloat16, 0.03),  # its softmax is float32 always
    ],
    ids=str,
)
def test_bloom_attention(dtype, tolerance, n):
    """Its bias is the positive m·j, with j counted over the tokens that are not padding: for each query
    another constant than ours, which a softmax does not see."""
    config = bloom.BloomConfig(hidden_size=8 * n, n_head=n, hidden_dropout=0.0, attention_dropout=0.0)
    layer = bloom.BloomAttention(config, layer_idx=0).to(dtype)
    keep = torch.ones(3, 20, dtype=torch.bool)
    keep[1, :7], keep[2, :13] = False, False
    p = (keep.cumsum(1) - 1).clamp(min=0)
    alibi, x = bloom.build_alibi_tensor(keep.long(), n, dtype), torch.randn(3, 20, 8 * n, dtype=dtype)
    allowed = torch.ones(20, 20).tril().bool() & keep[:, None, None]
    with torch.no_grad():
        q, k, v = layer._reshape(layer.query_key_value(x))
        theirs, _ = layer(x, torch.zeros_like(x), alibi, additive(allowed, dtype))
        for backend in ("eager", "sdpa"):
            y = attention(q, k, v, ALiBi(n), p, p, causal=True, mask=keep[:, None, None], backend=backend)
            close(layer.dense(merged(y))[keep], theirs[keep], tolerance)
        moved = bloom.build_alibi_tensor(keep.long(), n, F64).view(3, n, 1, 20) - ALiBi(n).bias(p, p)
        inside = (keep[:, :, None] & keep[:, None])[:, None]
        close((moved - moved[..., -1:]).where(inside, 0.0), torch.zeros(3, n, 20, 20, dtype=F64), 1e-5)


@pytest.mark.parametrize("n", [1, 4, 6, 12])
def test_mpt_attention(n):
    """Its bias counts from the last key: our last row for every query."""
    config = mpt.MptConfig(d_model=8 * n, n_heads=n)
    layer, x = mpt.MptAttention(config).double(), torch.randn(2, 20, 8 * n, dtype=F64)
    future = torch.ones(20, 20).triu(1).bool()
    with torch.no_grad():
        q, k, v = (y.unflatten(-1, (n, -1)).transpose(1, 2) for y in layer.Wqkv(x).chunk(3, -1))
        alibi, p = mpt.build_mpt_alibi_tensor(n, 20), torch.arange(20)
        close(ALiBi(n).bias(p, p)[:, -1:], alibi, 1e-6)
        theirs, _ = layer(x, alibi, attention_mask=future)
        close(layer.out_proj(merged(attention(q, k, v, ALiBi(n), causal=True))), theirs, 1e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 12])
@pytest.mark.parametrize("n_q, n_k", [(7, 7), (1, 9), (300, 300), (4, 10)])
def test_alibi_of_x_transformers(n_q, n_k, n):
    """Theirs is −m·|i − j| always; only its first heads may have it, the others have slope 0."""
    ours, q, k = ALiBi(n, symmetric=True), torch.arange(n_k - n_q, n_k), torch.arange(n_k)
    close(ours.bias(q, k), x_transformers.AlibiPositionalBias(n)(n_q, n_k), 3e-5)
    p = torch.randint(0, 1000, (3, 8))
    close(ours.bias(p, p), x_transformers.AlibiPositionalBias(n).forward_custom_pos(p), 1e-4)
    m = slopes(n).tolist() + [0.0] * 3
    some = AsymmetricALiBi(n + 3, left=m, right=m)
    close(some.bias(q, k), x_transformers.AlibiPositionalBias(n, total_heads=n + 3)(n_q, n_k), 3e-5)


# ---- in the attention of x-transformers ----


def x_layer(causal):
    return x_transformers.Attention(24, dim_head=8, heads=3, causal=causal).double()


def ours_in(layer, x, encoding, causal):
    q, k, v = (heads(f(x), 3) for f in (layer.to_q, layer.to_k, layer.to_v))
    return layer.to_out(merged(attention(q, k, v, encoding, causal=causal)))


@pytest.mark.parametrize("causal", [False, True])
def test_biases_in_the_attention_of_x_transformers(causal):
    layer, x = x_layer(causal), torch.randn(2, 30, 24, dtype=F64)
    theirs = x_transformers.RelativePositionBias(8**0.5, causal=causal, heads=3, num_buckets=16).double()
    t5_bias = T5Bias(3, bidirectional=not causal, n_buckets=16).double()
    # It keeps the factor 1/√d of the scores, and multiplies the bias by √d.
    t5_bias.scale, t5_bias.b.data = None, theirs.relative_attention_bias.weight.T * 8**0.5
    with torch.no_grad():
        close(ours_in(layer, x, t5_bias, causal), layer(x, rel_pos=theirs), 1e-6)
        alibi, theirs = ALiBi(3, symmetric=True), x_transformers.AlibiPositionalBias(3)
        close(ours_in(layer, x, alibi, causal), layer(x, rel_pos=theirs), 1e-6)
        if causal:
            close(ours_in(layer, x, ALiBi(3), causal), layer(x, rel_pos=theirs), 1e-6)
