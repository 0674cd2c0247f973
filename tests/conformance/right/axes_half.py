"""RoPE in two dimensions as in Qwen's vision tower: a table of angles per axis, read by row and by column."""

import torch

ABOUT = {"kind": "rotate_2d", "layout": "half", "base": 10000.0, "order": "row, column"}


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)


def rotate(x, positions):
    dim = x.shape[-1] // 2
    inv_freq = 1.0 / (10000.0 ** (torch.arange(0, dim, 2).float() / dim))
    table = torch.outer(torch.arange(int(positions.max()) + 1).float(), inv_freq)
    angles = table[positions].flatten(1)
    emb = torch.cat((angles, angles), dim=-1)
    return (x * emb.cos() + rotate_half(x) * emb.sin()).to(x.dtype)
