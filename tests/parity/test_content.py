"""Methods whose term depends on content: DeBERTa, Transformer-XL by way of XLNet, and CoPE."""

import functools

import pytest
import torch
from transformers.models.deberta import modeling_deberta as deberta
from transformers.models.deberta_v2 import modeling_deberta_v2 as deberta_v2
from transformers.models.xlnet import modeling_xlnet as xlnet
from x_transformers import x_transformers

from tutorial_lib.attention import attention
from tutorial_lib.encodings import CoPE, DeBERTa, TransformerXL
from tutorial_lib.encodings.deberta import log_bucket

from .layers import close, heads, merged

F64 = torch.float64
H, D = 3, 8


@pytest.fixture(params=[(torch.float32, 3e-6), (F64, 1e-6)], ids=["float32", "float64"])
def dtype_and_tolerance(request):
    return request.param


# ---- DeBERTa ----


def noise(module):
    """Every parameter random, biases too."""
    for p in module.parameters():
        p.data.normal_(std=0.3)
    return module.eval()


def of_v1(dtype, k):
    """All of one projection, per head [q, k, v], a bias beside it. The projection of P for queries has a bias
    that neither the paper nor ours has."""
    config = deberta.DebertaConfig(
        hidden_size=H * D,
        num_attention_heads=H,
        max_relative_positions=k,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
    )
    layer = noise(deberta.DisentangledSelfAttention(config)).to(dtype)
    layer.pos_q_proj.bias.data.zero_()
    relative = deberta.build_relative_position

    def project(x):
        q, key, v = heads(layer.in_proj(x), H).chunk(3, -1)
        return q + heads(layer.q_bias[None, None], H), key, v + heads(layer.v_bias[None, None], H)

    return layer, relative, project, layer.pos_q_proj.weight, layer.pos_proj.weight


def of_v2(dtype, k, share=False, buckets=-1):
    """``position_buckets=-1``: every offset has a row. Shared projections are those of the content."""
    config = deberta_v2.DebertaV2Config(
        hidden_size=H * D,
        num_attention_heads=H,
        max_relative_positions=k,
        relative_attention=True,
        position_buckets=buckets,
        share_att_key=share,
        pos_att_type=["c2p", "p2c"],
    )
    layer = noise(deberta_v2.DisentangledSelfAttention(config)).to(dtype)
    pair = (layer.query_proj, layer.key_proj) if share else (layer.pos_query_proj, layer.pos_key_proj)
    for projection in pair:
        projection.bias.data.zero_()

    def project(x):
        return [heads(f(x), H) for f in (layer.query_proj, layer.key_proj, layer.value_proj)]

    relative = functools.partial(deberta_v2.build_relative_position, bucket_size=buckets, max_position=k)
    return layer, relative, project, *(f.weight for f in pair)


@pytest.mark.parametrize(
    "n_buckets, max_position",
    [
        (2, 3),
        (2, 100),
        (4, 5),
        (6, 12),
        (7, 12),
        (32, 128),
        (32, 32),
        (256, 512),
        (512, 1024),
        (256, 130),
    ],
)
def test_the_logarithmic_buckets_of_deberta(n_buckets, max_position):
    """Every offset, whatever side of a border float32 puts it on."""
    r = torch.arange(-3 * max_position, 3 * max_position + 1)
    theirs = deberta_v2.make_log_bucket_position(r, n_buckets, max_position)
    assert log_bucket(r, n_buckets, max_position).equal(theirs.long())


@pytest.mark.parametrize(
    "k, n_buckets", [(3, None), (12, None), (40, None), (5, 4), (11, 6), (40, 8), (512, 256)]
)
@pytest.mark.parametrize(
    "version",
    [of_v1, of_v2, lambda dtype, k, **options: of_v2(dtype, k, share=True, **options)],
    ids=["v1", "v2", "v2, shared keys"],
)
def test_deberta(version, k, n_buckets, dtype_and_tolerance):
    """The released third term, that is. Theirs counts query − key. Ours does not have biases in the
    projections of P, or one term without the other. Only v2 has buckets."""
    if n_buckets and version is of_v1:
        return
    dtype, tolerance = dtype_and_tolerance
    layer, relative, project, W_qr, W_kr = version(dtype, k, **({"buckets": n_buckets} if n_buckets else {}))
    x, P = torch.randn(2, 12, H * D, dtype=dtype), torch.randn(2 * (n_buckets or k), H * D, dtype=dtype)
    ours = DeBERTa(H, D, k, n_buckets=n_buckets, released=True).to(dtype)
    ours.P.data, ours.W_qr.weight.data, ours.W_kr.weight.data = P, W_qr.data, W_kr.data
    keep = torch.ones(2, 12, dtype=torch.bool)
    keep[1, :4] = False
    mask = keep[:, None, None] & keep[:, None, :, None]
    with torch.no_grad():
        q, key, v = project(x)
        theirs, _ = layer(x, mask, relative_pos=relative(q, key), rel_embeddings=P)
        for backend in ("eager", "sdpa"):
            y = merged(attention(q, key, v, ours, mask=mask, backend=backend))
            close(y[keep], theirs[keep], 10 * tolerance)
        ours.released = False  # the paper's third term is another one
        assert (merged(attention(q, key, v, ours, mask=mask)) - theirs)[keep].abs().max() > 0.05


# ---- Transformer-XL ----


@pytest.mark.parametrize("n_memory", [0, 5])
@pytest.mark.parametrize("causal", [True, False])
def test_the_relative_attention_of_xlnet(causal, n_memory, dtype_and_tolerance):
    """The nearest public peer: r is W_{k,R} as [d_model, H, d_head], r_w_bias is u, r_r_bias v; R has its
    sines first, at the distances from Lk down. Its length stands first, and its segment term is left out."""
    dtype, tolerance = dtype_and_tolerance
    config = xlnet.XLNetConfig(
        vocab_size=9,
        d_model=H * D,
        n_head=H,
        n_layer=1,
        d_inner=8,
        dropout=0.0,
        attn_type="uni" if causal else "bi",
    )
    model = xlnet.XLNetModel(config)
    layer = noise(xlnet.XLNetRelativeAttention(config)).to(dtype)
    ours = TransformerXL(H, D).to(dtype)
    ours.W_kR.data, ours.u.data, ours.v.data = layer.r.permute(1, 2, 0), layer.r_w_bias, layer.r_r_bias
    n, past = 7, n_memory
    h, memory = torch.randn(n, 2, H * D, dtype=dtype), torch.randn(past, 2, H * D, dtype=dtype)
    R = model.relative_positional_encoding(n, n + past, bsz=2).to(dtype)
    future = torch.ones(n, n + past).triu(1 + past)[..., None, None].to(dtype)
    with torch.no_grad():
        theirs, _ = layer(h, None, future if causal else None, None, R, None, mems=memory if past else None)
        everything = torch.cat([memory, h])
        q, k, v = (
            torch.einsum("ibh,hnd->bnid", x, w)
            for x, w in ((h, layer.q), (everything, layer.k), (everything, layer.v))
        )
        for backend in ("eager", "sdpa"):
            y = attention(q, k, v, ours, causal=causal, backend=backend).permute(2, 0, 1, 3)
            close(layer.post_attention(h, y), theirs, 10 * tolerance)


# ---- CoPE ----


@pytest.mark.parametrize("n_positions", [1, 4, 30])
def test_cope_in_the_attention_of_x_transformers(n_positions, dtype_and_tolerance):
    """It adds q·e as it is; ours, as the released code, divides that by √d, so our e is √d times theirs."""
    dtype, tolerance = dtype_and_tolerance
    layer = x_transformers.Attention(
        H * D, dim_head=D, heads=H, causal=True, use_cope=True, cope_max_pos=n_positions
    ).to(dtype)
    theirs = layer.attend.cope
    ours, x = CoPE(D, n_positions).to(dtype), torch.randn(2, 20, H * D, dtype=dtype)
    ours.e.data = torch.nn.init.normal_(theirs.pos_emb.data) * D**0.5
    with torch.no_grad():
        q, k, v = (heads(f(x), H) for f in (layer.to_q, layer.to_k, layer.to_v))
        for backend in ("eager", "sdpa"):
            y = attention(q, k, v, ours, causal=True, backend=backend)
            close(layer.to_out(merged(y)), layer(x), tolerance)
