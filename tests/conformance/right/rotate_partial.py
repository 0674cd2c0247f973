"""RoPE as in GPT-NeoX: only the first half of a head's channels turns, the rest passes."""

import torch

ABOUT = {"kind": "rotate", "layout": "half", "base": 10000.0, "fraction": 0.5}
HIDDEN = 320


def turned(x, cos, sin):
    a, b = x.split(x.shape[-1] // 2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def rotate(x, positions):
    rotary = x.shape[-1] // 2
    part = slice(0, rotary)
    exponents = torch.arange(0, rotary, 2, dtype=torch.float32) / rotary
    inv_freq = torch.pow(10000.0, -exponents)
    angles = positions.float().unsqueeze(-1) * inv_freq
    if positions.dim() > 1:
        angles = angles.unsqueeze(1)
    out = x.clone()
    out[..., part] = turned(x[..., part].float(), angles.cos(), angles.sin()).to(x.dtype)
    return out
