"""A grid of positions made larger by two matrices of bilinear weights, written out."""

import torch

ABOUT = {"kind": "resize", "mode": "bilinear"}


def weights(new, old):
    at = (torch.arange(new) + 0.5) * old / new - 0.5
    at = at.clamp(0, old - 1)
    low = at.floor().long().clamp(max=old - 2)
    w = torch.zeros(new, old)
    w[torch.arange(new), low] = 1 - (at - low)
    w[torch.arange(new), low + 1] = at - low
    return w


def resize(table, size):
    rows, columns = weights(size[0], table.shape[0]), weights(size[1], table.shape[1])
    return torch.einsum("ya,xb,abd->yxd", rows, columns, table)
