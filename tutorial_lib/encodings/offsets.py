"""The relative offset r = k_position − q_position of every pair, and what may be asked of it."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import check_positions, length_axis, readable, result_dtype, widest_float


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
    if readable(r) and not torch.equal(r, r.round()):
        raise ValueError("positions have fractional offsets: a table has entries for whole ones only")
    return r.round().long()


def between_entries(r: Tensor) -> Tensor | None:
    """Where :func:`integer_offsets` had to round and could not say so; None for nowhere."""
    return r != r.round() if r.is_floating_point() and not readable(r) else None


def nan_where(missing: Tensor | None, x: Tensor) -> Tensor:
    """``x``, with NaN where something is ``missing``; None for nowhere."""
    return x if missing is None else x.masked_fill(missing, torch.nan)


def counted(first: int, n: int, device=None) -> Tensor:
    """The n integers first, first + 1, …; nobody has to ask a GPU whether they are that."""
    return _in_a_row(torch.arange(first, first + n, device=device), first)


def recognised(positions: Tensor) -> Tensor:
    """A copy, which nobody else changes. If it counts up by 1, it is known to: a GPU is asked once."""
    positions = positions.clone()
    if positions.ndim != 1 or positions.is_floating_point() or not len(positions):
        return positions
    if not readable(positions, wait=True):
        return positions
    first, counts = torch.stack([positions[0].long(), _counts_up(positions).long()]).tolist()
    return _in_a_row(positions, first) if counts else positions


def stretch(positions: Tensor, start: int, n: int, axes: int = 1) -> Tensor:
    """n tokens' positions from the one at ``start`` on."""
    first, part = first_of(positions), positions.narrow(length_axis(axes), start, n)
    return part if first is None else _in_a_row(part, first + start)


def followed_by(positions: Tensor, more: Tensor, axes: int = 1) -> Tensor:
    """Both, one after the other."""
    both, first = torch.cat([positions, more], length_axis(axes)), first_of(positions)
    return both if first is None or first_of(more) != first + len(positions) else _in_a_row(both, first)


def _in_a_row(positions, first):
    if not torch.compiler.is_compiling():
        positions.in_a_row = first, None if positions.is_inference() else positions._version
    return positions


def first_of(positions: Tensor) -> int | None:
    """The first number of what is known to count up by 1, or None."""
    if torch.compiler.is_compiling():
        return None
    first, version = getattr(positions, "in_a_row", (None, None))
    return first if version is None or version == positions._version else None


def consecutive(positions: Tensor) -> bool:
    """Whether they are integers p, p + 1, p + 2, …; no where that is not known and can't be asked."""
    if torch.compiler.is_compiling() or positions.ndim != 1 or positions.is_floating_point():
        return False
    if not len(positions) or first_of(positions) is not None:
        return len(positions) > 0
    return readable(positions) and bool(_counts_up(positions))


def _counts_up(positions):
    return (positions.long().diff() == 1).all()  # the difference of uint8 0 and 255 is 1, too


def bounds(x: Tensor) -> tuple[float, float] | None:
    """The lowest and the highest number, or None if there is none, or it can't be asked for."""
    first = first_of(x)
    if first is not None and len(x):
        return first, first + len(x) - 1
    if not readable(x) or not x.numel():
        return None
    low, high = x.aminmax()
    return low.item(), high.item()
