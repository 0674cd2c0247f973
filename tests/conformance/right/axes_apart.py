"""RoPE in two dimensions as in CroCo and MASt3R: each half of a head has a RoPE of its own."""

import torch

ABOUT = {"kind": "rotate_2d", "layout": "half of each half", "base": 100.0, "order": "row, column"}


def rope1d(x, pos):
    d = x.shape[-1]
    inv_freq = 100.0 ** (-torch.arange(0, d, 2).float() / d)
    angle = pos.float()[:, None] * inv_freq
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def rotate(x, positions):
    rows, columns = x.float().chunk(2, dim=-1)
    rows = rope1d(rows, positions[:, 0])
    columns = rope1d(columns, positions[:, 1])
    return torch.cat((rows, columns), dim=-1).to(x.dtype)
