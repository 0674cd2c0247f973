"""Small real images as sequences of patches: 1,797 handwritten digits of 8 × 8 pixels."""

from __future__ import annotations

import functools
import gzip

import torch
from torch import Tensor

from .sources import SOURCES

LEVELS = 17
"""Grey levels of a pixel, 0 (paper) … 16 (ink)."""


@functools.cache
def digits() -> tuple[Tensor, Tensor]:
    """Images, int64 ``[1797, 8, 8]`` of 0 … 16, and the digits that they show ``[1797]``.

    Raises FileNotFoundError, with the command that fixes it, when the package is missing.
    """
    with gzip.open(SOURCES["digits"].path(), "rt") as file:
        table = torch.tensor([[int(number) for number in line.split(",")] for line in file])
    return table[:, :-1].unflatten(1, (8, 8)), table[:, -1]


def patches(images: Tensor) -> Tensor:
    """The 2 × 2 patches of images ``[N, H, W]``, row by row, as ids ``[N, H·W/4]``.

    An id is the patch's four pixels as the digits of a number in base 17, so that nothing is lost.

    >>> patches(torch.tensor([[[0, 0, 0, 1], [0, 2, 0, 0]]]))
    tensor([[  2, 289]])

    Raises ValueError for images of odd height or width.
    """
    if images.ndim != 3 or images.shape[1] % 2 or images.shape[2] % 2:
        raise ValueError(f"images have shape {tuple(images.shape)}: give [N, H, W] with even H and W")
    pixels = images.unfold(1, 2, 2).unfold(2, 2, 2).flatten(3).flatten(1, 2)
    return (pixels * LEVELS ** torch.arange(3, -1, -1)).sum(-1)


def pixels(ids: Tensor) -> Tensor:
    """The four pixels ``[…, 4]`` of patches with these ids ``[…]``; the inverse of :func:`patches`."""
    return ids[..., None] // LEVELS ** torch.arange(3, -1, -1, device=ids.device) % LEVELS
