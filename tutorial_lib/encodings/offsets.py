"""The relative offset r = k_position − q_position of every pair, and what a table makes of it."""

from __future__ import annotations

import torch
from torch import Tensor

from .positions import Positions, readable


def offsets(q_positions: Tensor | Positions, k_positions: Tensor | Positions, axes: int = 1) -> Tensor:
    """r = k − q for every pair: ``[Lq, Lk]``, or ``[B, Lq, Lk]`` if a side is ``[B, L]``.

    For positions of several axes, ``[…, L, axes]``, it is ``[…, Lq, Lk, axes]``.

    >>> offsets(torch.tensor([2, 3]), torch.arange(4))
    tensor([[-2, -1,  0,  1],
            [-3, -2, -1,  0]])
    """
    queries, keys = (
        p if isinstance(p, Positions) else Positions(p, axes, name=name)
        for name, p in (("q_positions", q_positions), ("k_positions", k_positions))
    )
    return queries.offsets_to(keys)


def integer_offsets(r: Tensor) -> Tensor:
    """Offsets as integers, for a table; ValueError for one that lies between two entries."""
    if not r.is_floating_point():
        return r.long()
    if readable(r) and not torch.equal(r, r.round()):
        raise ValueError("positions have fractional offsets: a table has entries for whole ones only")
    return r.round().long()


def between_entries(r: Tensor) -> Tensor | None:
    """Where :func:`integer_offsets` had to round and could not say so; None for nowhere."""
    return r != r.round() if r.is_floating_point() and not readable(r) else None


def nan_where(missing: Tensor | None, x: Tensor) -> Tensor:
    """``x``, with NaN where something is ``missing``; None for nowhere."""
    return x if missing is None else x.masked_fill(missing, torch.nan)
