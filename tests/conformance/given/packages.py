"""Rotations of installed packages: several in one file, by their names."""

import rotary_embedding_torch
import torch
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.roformer import modeling_roformer as roformer
from x_transformers import x_transformers

LLAMA = llama.LlamaRotaryEmbedding(llama.LlamaConfig(head_dim=64))
SINUSOID = gptj.create_sinusoidal_positions(8192, 64)
TABLE = roformer.RoFormerSinusoidalPositionalEmbedding(8192, 64).create_weight()
X = x_transformers.RotaryEmbedding(64)
LUCID = rotary_embedding_torch.RotaryEmbedding(64)


def of_llama(q, k, positions):
    rows = positions if positions.ndim == 2 else positions[None]
    return llama.apply_rotary_pos_emb(q, k, *LLAMA(q, rows))


def of_gptj(x, positions):
    sin, cos = SINUSOID[positions].to(x.dtype).chunk(2, -1)
    rows = (sin, cos) if positions.ndim == 2 else (sin[None], cos[None])
    return gptj.apply_rotary_pos_emb(x.transpose(1, 2), *rows).transpose(1, 2)


def of_roformer(x, positions):
    table = TABLE[positions].to(x.dtype)
    table = table[:, None] if positions.ndim == 2 else table[None, None]
    return roformer.RoFormerSelfAttention.apply_rotary_position_embeddings(table, x, x)[0]


def of_x_transformers(x, positions):
    return x_transformers.apply_rotary_pos_emb(x, X(positions)[0])


def of_rotary_embedding_torch(x, positions):
    """It counts by itself, from an offset on, so it is asked for nothing else."""
    first = int(positions.flatten()[0])
    if positions.ndim > 1 or not positions.equal(torch.arange(first, first + len(positions))):
        raise NotImplementedError("positions that do not count up")
    return LUCID.rotate_queries_or_keys(x, offset=first)


given = {
    "llama": of_llama,
    "gpt-j": of_gptj,
    "roformer": of_roformer,
    "x-transformers": of_x_transformers,
    "rotary-embedding-torch": of_rotary_embedding_torch,
}
DECLARED = {"base": 10_000.0}
# It makes positions in the dtype of x: that of test_rotary.py's "far bfloat16", not a false alarm.
BUGS = dict.fromkeys(given, ()) | {"rotary-embedding-torch": ("positions in bf16",)}
