"""The relative offset r = k_position − q_position of every pair, and what may be asked of it."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import check_positions, length_axis, result_dtype, widest_float


def offsets(q_positions: Tensor, k_positions: Tensor, axes: int = 1) -> Tensor:
    """r = k − q for every pair: ``[Lq, Lk]``, or ``[B, Lq, Lk]`` if a side is ``[B, L]``.

    For positions of several axes, ``[…, L, axes]``, it is ``[…, Lq, Lk, axes]``.

    >>> offsets(torch.tensor([2, 3]), torch.arange(4))
    tensor([[-2, -1,  0,  1],
            [-3, -2, -1,  0]])
    """
    check_positions(q_positions, axes, "q_positions")
    check_positions(k_positions, axes, "k_positions")
    length = length_axis(axes)
    rows = {p.shape[0] for p in (q_positions, k_positions) if p.ndim > -length} - {1}
    if len(rows) > 1:
        raise ValueError(
            f"q_positions {tuple(q_positions.shape)} and k_positions {tuple(k_positions.shape)} "
            "must have the same number of rows"
        )
    q, k = q_positions.unsqueeze(length), k_positions.unsqueeze(length - 1)
    if q.is_floating_point() or k.is_floating_point():
        return (widest_float(k) - widest_float(q)).to(result_dtype(q, k))
    return k.long() - q.long()  # a uint8 has no negative offsets


def integer_offsets(r: Tensor) -> Tensor:
    """Offsets as integers, for a table; ValueError for one that lies between two entries."""
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
