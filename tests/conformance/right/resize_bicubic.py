"""A ViT's learned grid of positions, made larger as DINO does it: one interpolation, corners not aligned."""

from torch.nn import functional as F

ABOUT = {"kind": "resize", "mode": "bicubic"}


def resize(table, size):
    """[rows, columns, d] -> [*size, d]"""
    image = table.permute(2, 0, 1)[None]
    image = F.interpolate(image, size=size, mode="bicubic", align_corners=False)
    return image[0].permute(1, 2, 0)
