"""RoPE as the paper draws it: a 2x2 matrix per position and pair of neighbours, an einsum, float64."""

import torch

ABOUT = {"kind": "rotate", "layout": "interleaved", "base": 10000.0}
EMBED = 384


def matrices(positions, dim):
    theta = torch.tensor([10000.0 ** (-2 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
    m = positions.to(torch.float64)
    angle = torch.einsum("...l,p->...lp", m, theta)
    cos, sin = torch.cos(angle), torch.sin(angle)
    return torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)


def rotate(x, positions):
    if positions.dim() == 1:
        positions = positions.expand(x.shape[0], -1)
    turn = matrices(positions, x.shape[-1])
    pairs = x.to(torch.float64).unflatten(-1, (-1, 2))
    turned = torch.einsum("blpij,bhlpj->bhlpi", turn, pairs)
    return turned.flatten(-2).to(x.dtype)
