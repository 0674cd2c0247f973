"""The relative offset r = k_position − q_position of every pair, and what may be asked of it."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import wide


def offsets(q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """r = k − q for every pair: ``[Lq, Lk]``, or ``[B, Lq, Lk]`` if a side is ``[B, L]``.

    >>> offsets(torch.tensor([2, 3]), torch.arange(4))
    tensor([[-2, -1,  0,  1],
            [-3, -2, -1,  0]])
    """
    shapes = {"q_positions": q_positions.shape, "k_positions": k_positions.shape}
    for name, shape in shapes.items():
        if len(shape) not in (1, 2):
            raise ValueError(f"{name} have shape {tuple(shape)}: they must be [L] or [B, L]")
    rows = {shape[0] for shape in shapes.values() if len(shape) == 2} - {1}
    if len(rows) > 1:
        raise ValueError(
            f"q_positions {tuple(shapes['q_positions'])} and k_positions "
            f"{tuple(shapes['k_positions'])} must have the same number of rows"
        )
    if q_positions.is_floating_point() or k_positions.is_floating_point():
        q_positions, k_positions = wide(q_positions), wide(k_positions)
    else:  # a uint8 has no negative offsets
        q_positions, k_positions = q_positions.long(), k_positions.long()
    return k_positions[..., None, :] - q_positions[..., :, None]


def whole(r: Tensor) -> Tensor:
    """Offsets as integers for a table; ValueError for one that lies between two entries."""
    if not r.is_floating_point():
        return r.long()
    if not torch.compiler.is_compiling() and not torch.equal(r, r.round()):
        raise ValueError("positions have fractional offsets: a table has entries for whole ones only")
    return r.round().long()


def consecutive(positions: Tensor) -> bool:
    """Whether they are integers p, p + 1, p + 2, …; compiled code does not ask for values."""
    if torch.compiler.is_compiling() or positions.ndim != 1 or positions.is_floating_point():
        return False
    return len(positions) > 0 and bool((positions.diff() == 1).all())
