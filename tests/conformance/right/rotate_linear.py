"""RoPE with linear scaling by 4 (position interpolation), on halves seen as a dimension of two."""

import torch

ABOUT = {"kind": "rotate", "layout": "half", "base": 10000.0, "scaling": {"type": "linear", "factor": 4.0}}
FACTOR = 4.0
D_MODEL = 1024


def rotate(x, positions):
    half = x.shape[-1] // 2
    inv_freq = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    t = positions.double() / FACTOR
    angles = (t.unsqueeze(-1) * inv_freq).unsqueeze(-3)
    c, s = angles.cos(), angles.sin()
    u, v = x.double().unflatten(-1, (2, half)).unbind(-2)
    return torch.stack((u * c - v * s, u * s + v * c), dim=-2).flatten(-2).to(x.dtype)
