"""M-RoPE as in Qwen2-VL: cos and sin are cut into time, height and width. Positions are [3, B, L]."""

import torch

SECTION = [2, 3, 3]  # of the 8 pairs of a head of 16
ABOUT = {"kind": "mrope", "layout": "half", "base": 1000000.0, "sections": SECTION, "dim": 16}


def rotate_half(x):
    x1, x2 = x.chunk(2, -1)
    return torch.cat((-x2, x1), -1)


def rotate(x, positions):
    inv_freq = 1.0 / (1000000.0 ** (torch.arange(0, 16, 2).float() / 16))
    freqs = positions[..., None].float() * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    parts = emb.split(SECTION * 2, dim=-1)
    emb = torch.cat([part[i % 3] for i, part in enumerate(parts)], dim=-1).unsqueeze(1)
    return (x * emb.cos() + rotate_half(x) * emb.sin()).to(x.dtype)
