"""A grid of positions read at any place by `grid_sample`, as NaFlex-like models do it."""

import torch
from torch.nn import functional as F

ABOUT = {"kind": "resize", "mode": "bilinear"}


def centres(n):
    return (2 * torch.arange(n) + 1) / n - 1


def resize(table, size):
    y, x = torch.meshgrid(centres(size[0]), centres(size[1]), indexing="ij")
    where = torch.stack((x, y), dim=-1)[None]
    image = table.permute(2, 0, 1)[None]
    read = F.grid_sample(image, where, mode="bilinear", padding_mode="border", align_corners=False)
    return read[0].permute(1, 2, 0)
