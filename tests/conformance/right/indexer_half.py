"""Sparse attention's two rotations: its own, and that of the indexer which chooses keys. Both on halves."""

import torch

ABOUT = {"kind": "indexer", "layout": "half", "base": 10000.0}


def angles(x, positions):
    d = x.shape[-1]
    angle = positions.float()[..., None, :, None] * 10000.0 ** (-torch.arange(0, d, 2).float() / d)
    return angle.cos(), angle.sin()


def neox(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def gptj(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)


def rotate(x, positions):
    return neox(x, *angles(x, positions)).to(x.dtype)


def index_rotate(x, positions):
    return neox(x, *(angles(x, positions))).to(x.dtype)
