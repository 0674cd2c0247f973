"""Sparse attention where both parts share a big rotation matrix, made pair by pair."""

import torch

ABOUT = {"kind": "indexer", "layout": "half", "base": 10000.0}


def matrix(position, pairs):
    d = 2 * len(pairs)
    m = torch.zeros(d, d, dtype=torch.float64)
    for i, (a, b) in enumerate(pairs):
        angle = torch.as_tensor(position, dtype=torch.float64) * 10000.0 ** (-2 * i / d)
        m[a, a] = m[b, b] = angle.cos()
        m[b, a], m[a, b] = angle.sin(), -angle.sin()
    return m


def halves(d):
    return [(i, i + d // 2) for i in range(d // 2)]


def neighbours(d):
    return [(i, i + 1) for i in range(0, d, 2)]


def turned(x, positions, pairs):
    positions = positions.expand(x.shape[0], x.shape[2])
    m = torch.stack([torch.stack([matrix(p, pairs) for p in row]) for row in positions])
    return torch.einsum("blij,bhlj->bhli", m, x.double()).to(x.dtype)


def rotate(x, positions):
    return turned(x, positions, pairs=halves(x.shape[-1]))


def index_rotate(x, positions):
    return turned(x, positions, halves(x.shape[-1]))
