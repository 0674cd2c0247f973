"""RoPE in attention layers, and in a whole Llama: what a user of those models computes."""

import pytest
import torch
from transformers.cache_utils import DynamicCache
from transformers.models.gpt_neox import modeling_gpt_neox as neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from x_transformers import x_transformers

from tutorial_lib.attention import attention
from tutorial_lib.encodings import (
    DynamicNTK,
    Frequencies,
    Llama3,
    PositionInterpolation,
    Rotary,
    XPos,
    YaRN,
    permute_projection,
)
from tutorial_lib.model import Cache, Config, Transformer

from .layers import close, heads, merged

F64 = torch.float64


# ---- attention layers ----


def causal_mask(L, dtype):
    return torch.full((L, L), torch.finfo(dtype).min, dtype=dtype).triu(1)


def in_neox(x, p, d, head_dim):
    """One projection to [H, 3, head_dim], and biases."""
    parameters = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": d / head_dim}
    config = neox.GPTNeoXConfig(hidden_size=3 * head_dim, num_attention_heads=3, rope_parameters=parameters)
    layer = neox.GPTNeoXAttention(config, layer_idx=0).to(x.dtype).eval()
    angles = neox.GPTNeoXRotaryEmbedding(config)(x, p)
    out, _ = layer(x, causal_mask(x.shape[1], x.dtype), position_embeddings=angles)
    return heads(layer.query_key_value(x), 3).chunk(3, -1), layer.dense, out


def in_gptj(x, p, d, head_dim):
    config = gptj.GPTJConfig(n_embd=3 * head_dim, n_head=3, rotary_dim=d, n_positions=200)
    layer = gptj.GPTJAttention(config, layer_idx=0).to(x.dtype).eval()
    out, _ = layer(x, attention_mask=causal_mask(x.shape[1], torch.float32), position_ids=p)
    return [heads(f(x), 3) for f in (layer.q_proj, layer.k_proj, layer.v_proj)], layer.out_proj, out


def in_x_transformers(x, p, d, head_dim, **xpos):
    layer = x_transformers.Attention(3 * head_dim, dim_head=head_dim, heads=3, causal=True).to(x.dtype)
    embedding = x_transformers.RotaryEmbedding(d, **xpos)
    out = layer(x, rotary_pos_emb=embedding(p))
    return [heads(f(x), 3) for f in (layer.to_q, layer.to_k, layer.to_v)], layer.to_out, out


def in_x_transformers_xpos(x, p, d, head_dim):
    return in_x_transformers(x, p, d, head_dim, use_xpos=True)


@pytest.mark.parametrize(
    "dtype, tolerance",
    [
        (torch.float32, 2e-6),
        (F64, 1e-6),
        (torch.bfloat16, 0.03),  # their angles and softmax are float32 always
    ],
    ids=str,
)
@pytest.mark.parametrize("head_dim, d", [(16, 16), (16, 4), (32, 24)])
@pytest.mark.parametrize(
    "theirs, make",
    [
        (in_neox, lambda d, f: Rotary(d, layout="half", frequencies=f)),
        (in_gptj, lambda d, f: Rotary(d, frequencies=f)),
        (in_x_transformers, lambda d, f: Rotary(d, frequencies=f)),
        (in_x_transformers_xpos, lambda d, f: XPos(d, frequencies=f)),
    ],
    ids=["gpt-neox", "gpt-j", "x-transformers", "x-transformers-xpos"],
)
def test_an_attention_layer(theirs, make, head_dim, d, dtype, tolerance):
    encoding = make(head_dim, Frequencies(head_dim, rotary_dim=d))
    x = torch.randn(2, 40, 3 * head_dim, dtype=dtype)
    p = torch.stack([torch.arange(40) + 5, torch.arange(40) * 3])
    with torch.no_grad():
        (q, k, v), last, out = theirs(x, p, d, head_dim)
        for backend in ("eager", "sdpa"):
            y = attention(q, k, v, encoding, p, p, causal=True, backend=backend)
            close(last(merged(y)), out, tolerance)


# ---- a whole Llama ----

SCALINGS = {
    "plain": ({"rope_type": "default"}, None),
    "linear": ({"rope_type": "linear", "factor": 4.0}, PositionInterpolation(4.0)),
    "dynamic": ({"rope_type": "dynamic", "factor": 2.0}, DynamicNTK(32, 2.0)),
    "yarn": (
        {"rope_type": "yarn", "factor": 8.0, "beta_fast": 4.0},
        YaRN(8.0, L=32, beta=4.0, ramp="rounded index"),
    ),
    "llama3": (
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        Llama3(L=32),
    ),
}


def two_llamas(name, layout, d_model=48, n_heads=6, n_kv_heads=2, n_layers=3):
    """Theirs with random weights, also in the norms, and ours with the same."""
    parameters, scaling = SCALINGS[name]
    theirs = (
        llama.LlamaForCausalLM(
            llama.LlamaConfig(
                vocab_size=97,
                hidden_size=d_model,
                intermediate_size=80,
                num_hidden_layers=n_layers,
                num_attention_heads=n_heads,
                num_key_value_heads=n_kv_heads,
                rms_norm_eps=1e-5,
                max_position_embeddings=32,
                rope_parameters={"rope_theta": 500.0, **parameters},
            )
        )
        .double()
        .eval()
        .requires_grad_(False)
    )
    d = d_model // n_heads
    weights = {}
    for key, w in theirs.state_dict().items():
        w.copy_(torch.randn_like(w) / w.shape[-1] ** 0.5 + (w.ndim == 1))
        for old, new in (
            ("model.layers", "blocks"),
            ("model.embed_tokens", "tokens"),
            ("model.norm", "norm"),
            ("lm_head", "head"),
            ("self_attn.o_proj", "attention.out"),
            ("self_attn", "attention"),
            ("mlp", "feed_forward"),
            ("input_layernorm", "norm1"),
            ("post_attention_layernorm", "norm2"),
            ("_proj", ""),
        ):
            key = key.replace(old, new)
        turns = key.endswith(("attention.q.weight", "attention.k.weight"))
        weights[key] = permute_projection(w, d, source="half", target=layout) if turns else w
    ours = Transformer(
        Config(
            97,
            d_model=d_model,
            n_layers=n_layers,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            d_ff=80,
            norm="rms",
            mlp="swiglu",
            norm_eps=1e-5,
        ),
        Rotary(d, layout=layout, frequencies=Frequencies(d, 500.0, scaling=scaling)),
    ).double()
    ours.load_state_dict(weights)
    return theirs, ours.requires_grad_(False)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize(
    "sizes",
    [{}, {"n_kv_heads": 6}, {"n_kv_heads": 1}, {"d_model": 128, "n_heads": 2, "n_layers": 1}],
    ids=str,
)
@pytest.mark.parametrize("name", SCALINGS)
def test_a_llama(name, sizes, layout):
    """At several lengths up to four times L = 32; at other positions; and with padding on the left."""
    theirs, ours = two_llamas(name, layout, **sizes)
    for length in (1, 20, 33, 128):
        tokens = torch.randint(97, (2, length))
        for backend in ("eager", "sdpa"):
            close(ours(tokens, backend=backend), theirs(tokens).logits, 1e-4)
    theirs(tokens[:, :1])  # a short text ends the memory of a dynamic length
    far = torch.arange(20) * 3 + 7
    close(ours(tokens[:, :20], far), theirs(tokens[:, :20], position_ids=far[None]).logits, 1e-4)
    keep = torch.ones(2, 30, dtype=torch.bool)
    keep[1, :11] = False
    positions = (keep.cumsum(1) - 1).clamp(min=0)
    logits = theirs(tokens[:, :30], attention_mask=keep.long(), position_ids=positions).logits
    close(ours(tokens[:, :30], keep=keep)[keep], logits[keep], 1e-4)


@pytest.mark.parametrize("name", [name for name in SCALINGS if name != "dynamic"])
def test_a_llama_token_by_token(name):
    """Their cache holds turned keys, ours unturned ones; with a dynamic length that makes a difference."""
    theirs, ours = two_llamas(name, "half")
    tokens, cache, their_cache = torch.randint(97, (2, 40)), Cache(), DynamicCache()
    for step in (tokens[:, :25], *tokens[:, 25:].split(1, 1)):
        close(ours(step, cache=cache), theirs(step, past_key_values=their_cache).logits, 2e-5)
    close(ours.generate(tokens, 9), theirs.generate(tokens, max_new_tokens=9, do_sample=False), 0)
