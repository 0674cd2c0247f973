"""RoPE as in Meta's Llama: two neighbours are one complex number, and a multiplication turns it."""

import torch

ABOUT = {"kind": "rotate", "layout": "interleaved", "base": 10000.0}
MODEL_DIM = 512


def frequencies(dim, base=10000.0):
    return 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))


def spin(x, turn):
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)


def rotate(x, positions):
    inv_freq = frequencies(x.shape[-1])
    angles = positions[..., None].float() * inv_freq
    if angles.dim() == 3:
        angles = angles[:, None]  # [B, 1, L, D/2]: the heads of one text share its positions
    return spin(x.float(), torch.polar(torch.ones_like(angles), angles)).to(x.dtype)
