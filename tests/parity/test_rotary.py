"""RoPE and xPos: queries and keys as six public implementations turn them."""

import functools

import pytest
import rotary_embedding_torch
import torch
from transformers.models.gpt_neox import modeling_gpt_neox as neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.roformer import modeling_roformer as roformer
from x_transformers import x_transformers

from tutorial_lib.attention import scores
from tutorial_lib.encodings import (
    Frequencies,
    NTKAware,
    PositionInterpolation,
    Rotary,
    XPos,
    permute_projection,
)

from .layers import close

F64 = torch.float64


# ---- the rotation: six functions of (q, k, positions [B, L], base, d channels that turn) ----


def of_llama(q, k, positions, base, d):
    parameters = {"rope_type": "default", "rope_theta": base}
    config = llama.LlamaConfig(head_dim=d, rope_parameters=parameters)
    return llama.apply_rotary_pos_emb(q, k, *llama.LlamaRotaryEmbedding(config)(q, positions))


def of_neox(q, k, positions, base, d):
    parameters = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": d / q.shape[-1]}
    config = neox.GPTNeoXConfig(hidden_size=q.shape[-1], num_attention_heads=1, rope_parameters=parameters)
    return neox.apply_rotary_pos_emb(q, k, *neox.GPTNeoXRotaryEmbedding(config)(q, positions))


def of_gptj(q, k, positions, base, d):
    """Its heads stand behind the length, and the caller cuts off the channels that stay."""
    sin, cos = gptj.create_sinusoidal_positions(5000, d)[positions].to(q.dtype).chunk(2, -1)

    def turned(x):
        y = gptj.apply_rotary_pos_emb(x[..., :d].transpose(1, 2), sin, cos).transpose(1, 2)
        return torch.cat([y, x[..., d:]], -1)

    return turned(q), turned(k)


@functools.cache
def roformer_table(d):
    return roformer.RoFormerSinusoidalPositionalEmbedding(5000, d).create_weight()


def of_roformer(q, k, positions, base, d):
    sin_cos = roformer_table(d)[positions][:, None].to(q.dtype)
    return roformer.RoFormerSelfAttention.apply_rotary_position_embeddings(sin_cos, q, k)


def of_x_transformers(q, k, positions, base, d):
    angles, _ = x_transformers.RotaryEmbedding(d, base=base)(positions)
    return tuple(x_transformers.apply_rotary_pos_emb(x, angles) for x in (q, k))


def of_rotary_embedding_torch(q, k, positions, base, d):
    """It counts by itself, from an offset on."""
    embedding = rotary_embedding_torch.RotaryEmbedding(d, theta=base)
    return tuple(embedding.rotate_queries_or_keys(x, offset=positions[0, 0].item()) for x in (q, k))


# Its layout, and what it cannot do. "pair": it divides by d − 2. "far bfloat16": it counts in the dtype of q.
ROTATIONS = {
    "llama": (of_llama, "half", {"partial"}),
    "gpt-neox": (of_neox, "half", set()),
    "gpt-j": (of_gptj, "interleaved", {"base"}),
    "roformer": (of_roformer, "interleaved", {"base", "partial"}),
    "x-transformers": (of_x_transformers, "interleaved", {"pair"}),
    "rotary-embedding-torch": (
        of_rotary_embedding_torch,
        "interleaved",
        {"gaps", "rows", "pair", "far bfloat16"},
    ),
}
SHAPES = [  # B, H, H_kv, L, head_dim, d
    (1, 1, 1, 1, 2, 2),
    (2, 3, 1, 5, 8, 8),
    (1, 4, 2, 33, 64, 64),
    (2, 2, 2, 62, 128, 128),
    (2, 2, 1, 9, 8, 4),
    (1, 3, 3, 12, 96, 24),
    (2, 4, 2, 31, 64, 48),
]
POSITIONS = {
    "start": lambda rows, length: torch.arange(length).expand(rows, -1),
    "behind": lambda rows, length: torch.arange(length).expand(rows, -1) + 150,
    "far": lambda rows, length: torch.arange(length).expand(rows, -1) + 4000,
    "gaps": lambda rows, length: torch.arange(length).expand(rows, -1) ** 2,
    "rows": lambda rows, length: torch.randint(0, 4000, (rows, length)),
}
CASES = [
    (peer, where, dtype)
    for peer in ROTATIONS
    for where in POSITIONS
    for dtype in ("float32", "float64", "bfloat16")
    if not {where, f"{where} {dtype}"} & ROTATIONS[peer][2]
]


def tolerance(peer, positions, dtype):
    """Theirs has θ and angles in float32 (RoFormer does not): an error that grows with the position."""
    if dtype == torch.bfloat16:  # two units in the last place of the largest numbers; some round twice
        return 0.07
    return 1e-6 if peer == "roformer" else 1e-6 * (5 + 2 * positions.max().item())


@pytest.mark.parametrize("peer, where, dtype", CASES)
def test_the_rotation(peer, where, dtype):
    (theirs, layout, cannot), dtype = ROTATIONS[peer], getattr(torch, dtype)
    for B, H, H_kv, L, head_dim, d in SHAPES:
        if (d < head_dim and "partial" in cannot) or (d == 2 and "pair" in cannot):
            continue
        q, k = torch.randn(B, H, L, head_dim, dtype=dtype), torch.randn(B, H_kv, L, head_dim, dtype=dtype)
        p = POSITIONS[where](B, L)
        for base in [10_000.0] if "base" in cannot else [10_000.0, 500_000.0, 100.0]:
            partial = {"frequencies": Frequencies(head_dim, base, rotary_dim=d)}
            rotary = Rotary(head_dim, layout=layout, **({"base": base} if d == head_dim else partial))
            expected = theirs(q, k, p, base, d)
            for ours, their in zip(rotary.rotate(q, k, p, p), expected, strict=True):
                close(ours, their, tolerance(peer, p, dtype))


@pytest.mark.parametrize("d", [8, 32])
def test_permuted_weights_carry_one_public_model_into_another(d):
    """Interleaved weights in x-transformers, and the same ones permuted in GPT-NeoX: the same scores."""
    W, x, p = torch.randn(2, 3 * 32, 20, dtype=F64), torch.randn(1, 17, 20, dtype=F64), torch.arange(17)[None]

    def heads(weights):
        return [(x @ w.T).view(1, 17, 3, 32).transpose(1, 2) for w in weights]

    permuted = [permute_projection(w, 32, source="interleaved", target="half", rotary_dim=d) for w in W]
    (q, k), (q2, k2) = of_x_transformers(*heads(W), p, 1e4, d), of_neox(*heads(permuted), p, 1e4, d)
    close(q @ k.mT, q2 @ k2.mT, 1e-11)


# ---- scaled and xPos, in the two packages that have them in one class ----


def of_x(q, k, p, d, *, interpolate=1.0, rescale=1.0, **xpos):
    embedding = x_transformers.RotaryEmbedding(
        d, interpolation_factor=interpolate, base_rescale_factor=rescale, use_xpos=bool(xpos), **xpos
    )
    angles, scale = embedding(p)
    return (
        x_transformers.apply_rotary_pos_emb(q, angles, scale),
        x_transformers.apply_rotary_pos_emb(k, angles, scale**-1),
    )


def of_lucid(q, k, p, d, *, interpolate=1.0, rescale=1.0, **xpos):
    embedding = rotary_embedding_torch.RotaryEmbedding(
        d,
        interpolate_factor=interpolate,
        theta_rescale_factor=rescale,
        use_xpos=bool(xpos),
        **{f"xpos_{name}": value for name, value in xpos.items()},
    )
    if xpos:
        return embedding.rotate_queries_and_keys(q, k)
    return embedding.rotate_queries_or_keys(q), embedding.rotate_queries_or_keys(k)


PACKAGES = pytest.mark.parametrize(
    "theirs", [of_x, of_lucid], ids=["x-transformers", "rotary-embedding-torch"]
)


@pytest.mark.parametrize("head_dim, d", [(8, 8), (64, 64), (64, 32)])
@pytest.mark.parametrize("s", [1.0, 2.0, 7.5])
@PACKAGES
def test_interpolation_and_ntk(theirs, s, head_dim, d):
    q, k, p = *torch.randn(2, 2, 3, 50, head_dim, dtype=F64), torch.arange(50)
    for options, scaling in (({"interpolate": s}, PositionInterpolation(s)), ({"rescale": s}, NTKAware(s))):
        rotary = Rotary(head_dim, frequencies=Frequencies(head_dim, rotary_dim=d, scaling=scaling))
        for ours, their in zip(rotary.rotate(q, k, p, p), theirs(q, k, p, d, **options), strict=True):
            close(ours, their, 7e-5)


@pytest.mark.parametrize("head_dim, d", [(8, 8), (64, 64), (64, 32)])
@pytest.mark.parametrize("scale_base", [512, 64])
@pytest.mark.parametrize("length", [1, 50, 301])
@PACKAGES
def test_xpos(theirs, length, scale_base, head_dim, d):
    """Theirs grows from the place length // 2 on, ours from the middle of the positions: in a score
    that common place is gone."""
    q, k, p = *torch.randn(2, 2, 3, length, head_dim, dtype=F64), torch.arange(length)
    xpos = XPos(head_dim, frequencies=Frequencies(head_dim, rotary_dim=d), scale_base=scale_base)
    q2, k2 = theirs(q, k, p, d, scale_base=scale_base)
    close(scores(q, k, xpos, p, p).tril() * head_dim**0.5, (q2 @ k2.mT).tril(), 4e-6 * length)


def test_xpos_with_interpolation():
    """x-transformers slows the rotation alone, as ours; rotary-embedding-torch slows the decay as well."""
    q, k, p = *torch.randn(2, 2, 3, 50, 16, dtype=F64), torch.arange(50)
    slow = Frequencies(16, scaling=PositionInterpolation(4))
    for theirs, scale_base in ((of_x, 64), (of_lucid, 4 * 64)):
        q2, k2 = theirs(q, k, p, 16, interpolate=4.0, scale_base=64)
        xpos = XPos(16, frequencies=slow, scale_base=scale_base)
        close(scores(q, k, xpos, p, p).tril() * 4, (q2 @ k2.mT).tril(), 2e-5)
