"""Calls of what was given, and how far a prediction is from them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from .rope import Turn

TOLERANCE = {torch.float64: 2e-4, torch.float32: 2e-4, torch.float16: 0.012, torch.bfloat16: 0.06}
"""For numbers up to 2: what the roundings of a right implementation leave."""
ANGLE = 2e-6  # what a float32 angle loses per radian, three roundings
SHARE = 0.97  # of the numbers must fit where the order of roundings is a matter of style


@dataclass(frozen=True)
class Call:
    """``y`` is what came back for ``x [B, H, L, D]`` at ``positions``; None if ``error`` was raised."""

    x: Tensor
    positions: Tensor
    y: Tensor | None
    error: str = ""
    first: Tensor | None = None  # the positions of the first call of this length

    def predicted(self, turn: Turn, whole: bool = False) -> Tensor:
        x = self.x.double() if whole else self.x[:1, 0 if turn.counts == "heads" else -1 :].double()
        if turn.counts == "heads":
            heads = torch.arange(x.shape[1]).view(-1, *[1] * (self.positions.ndim - 1))
            heads = heads.expand(-1, *self.positions.shape[1:])
            return turn(x.transpose(1, 2), heads).transpose(1, 2)[:, 0 if whole else -1 :]
        if turn.counts == "stale":
            return turn(x, self.positions if self.first is None else self.first)
        return turn(x, self.positions)

    def tolerance(self, turn: Turn) -> float:
        radians = float(self.positions.abs().max()) * float(turn.theta.abs().max()) * abs(turn.times)
        dtype = self.x.dtype if self.y is None or self.x.dtype.itemsize < 4 else self.y.dtype
        return (TOLERANCE[dtype] + ANGLE * radians) * max(1.0, abs(turn.factor))

    def fits(self, turn: Turn, whole: bool = False) -> bool:
        if self.y is None:
            return False
        actual = self.y if whole else self.y[:1, -1:]
        far = (actual.double() - self.predicted(turn, whole)).abs()
        if any(turn.rounds):
            return bool((far <= max(0.03, self.tolerance(turn))).double().mean() >= SHARE)
        return bool((far <= self.tolerance(turn)).all())  # a NaN fits nothing


def fit(turn: Turn, calls: Iterable[Call], whole: bool = False) -> bool:
    return all(call.fits(turn, whole) for call in calls)


class Subject:
    """``function(x, positions)`` with its axes: it is asked with ``[B, H, L, D]`` whatever it takes itself.

    Raises ValueError if it takes none of the known orders of axes.
    """

    def __init__(self, function: Callable[..., Any], head_dim: int, axes: str | None, numbers: int = 1):
        self.function, self.numbers, self.head_dim = function, numbers, head_dim
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(2, 3, 12, head_dim, generator=generator).clamp(-2, 2)
        self.firsts: dict[int, Tensor] = {}
        errors = []
        for order in [axes] if axes else ["bhld", "blhd", "bld", "ld"]:
            self.axes = order
            call = self(self.x[..., :5, :], self.where(3, 5))
            if call.y is not None:
                return
            errors.append(f"{order}: {call.error}")
        raise ValueError(
            f"it raised an error for x with {head_dim} channels at positions 3 … 7 ({'; '.join(errors)}): "
            "give head_dim=…, and axes='bhld' ('blhd', 'bld', 'ld') for the order of its axes, or wrap it"
        )

    def where(self, start: int, length: int) -> Tensor:
        """Positions from ``start`` on; with several axes each runs through numbers of its own."""
        p = torch.arange(start, start + length)
        if self.numbers == 1:
            return p
        n = torch.arange(length)
        return torch.stack(
            [start + (n * (2 * axis + 1)) % (7 + 4 * axis) for axis in range(self.numbers)], -1
        )

    def __call__(self, x: Tensor, positions: Tensor, function: Callable[..., Any] | None = None) -> Call:
        given = x.clone()
        if self.axes == "blhd":
            given = given.transpose(1, 2).contiguous()
        elif self.axes in ("bld", "ld"):
            given = given[:, 0] if self.axes == "bld" else given[0, 0]
        first = self.firsts.setdefault(x.shape[-2], positions)
        try:
            with torch.no_grad():
                y = (function or self.function)(given, positions.clone())
        except Exception as error:
            return Call(x, positions, None, f"{type(error).__name__}: {error}"[:200], first)
        if not isinstance(y, Tensor):
            return Call(x, positions, None, f"it returned a {type(y).__name__}, not a tensor", first)
        if y.shape != given.shape:
            said = f"it returned the shape {tuple(y.shape)} for x {tuple(given.shape)}"
            return Call(x, positions, None, said, first)
        y = y.transpose(1, 2) if self.axes == "blhd" else y
        if self.axes in ("bld", "ld"):
            y = y[:, None] if self.axes == "bld" else y[None, None]
            x = x[:, :1] if self.axes == "bld" else x[:1, :1]
        return Call(x, positions, y, first=first)

    def chunk(self, start: int, length: int = 12, dtype: torch.dtype = torch.float32) -> Call:
        return self(self.x[..., :length, :].to(dtype), self.where(start, length))

    def reach(self, farthest: Sequence[int] = (8180, 4090, 2030, 1000, 500, 110, 37)) -> list[Call]:
        """Chunks of 12 tokens, from 37 on first and as far as no error is raised."""
        calls = [self.chunk(start) for start in (37, 0, 250)]
        calls += [call for start in farthest[:4] if (call := self.chunk(start)).y is not None]
        return [call for call in calls if call.y is not None]

    def cast(self, dtype: torch.dtype, start: int) -> Call | None:
        """A module's copy in another dtype; None if it is no module."""
        if not isinstance(self.function, nn.Module):
            return None
        return self(self.x.to(dtype), self.where(start, 12), copy.deepcopy(self.function).to(dtype))


def changed(turn: Turn, *changes: dict[str, Any]) -> Turn:
    return replace(turn, **{key: value for each in changes for key, value in each.items()})
