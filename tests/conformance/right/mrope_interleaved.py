"""M-RoPE as in Qwen3-VL: time, height and width take turns from pair to pair, and time has what is left."""

import torch

ABOUT = {"kind": "mrope", "layout": "half", "base": 5000000.0, "sections": "t h w t h w t t", "dim": 16}


def rotate(x, positions):
    inv_freq = 5000000.0 ** (-torch.arange(8).float() / 8)
    freqs = positions[..., None].float() * inv_freq
    mixed = freqs[0].clone()
    mixed[..., 1:6:3] = freqs[1][..., 1:6:3]
    mixed[..., 2:6:3] = freqs[2][..., 2:6:3]
    cos, sin = mixed.cos()[:, None], mixed.sin()[:, None]
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)
