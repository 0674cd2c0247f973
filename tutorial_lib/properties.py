"""Measured properties: what a claim about a positional encoding is checked against.

Errors are maxima of absolute differences divided by the largest absolute value, so that 0 means
"exactly" and 1 means "as large as the thing itself".
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = [
    "equivariance_error",
    "invariance_error",
    "parameters",
    "relative_error",
    "shift_error",
    "toeplitz_error",
]


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """Largest difference, relative to the largest entry of ``expected``.

    >>> relative_error(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    0.5
    """
    if actual.shape != expected.shape:
        raise ValueError(f"shapes differ: {tuple(actual.shape)} and {tuple(expected.shape)}")
    top = expected.abs().max().item()
    difference = (actual - expected).abs().max().item()
    return difference / top if top else difference


def equivariance_error(f: Callable[[Tensor], Tensor], x: Tensor, order: Tensor) -> float:
    """How far f is from ``f(x[order]) = f(x)[order]``; ``x`` is ``[L, d]``, ``order [L]``."""
    return relative_error(f(x[order]), f(x)[order])


def invariance_error(f: Callable[[Tensor], Tensor], x: Tensor, order: Tensor) -> float:
    """How far f is from ``f(x[order]) = f(x)``; ``x`` is ``[L, d]``, ``order [L]``."""
    return relative_error(f(x[order]), f(x))


def shift_error(scores: Callable[[Tensor], Tensor], length: int, offset: float) -> float:
    """How much scores ``[..., L, L]`` of positions p change when every position moves by ``offset``.

    ``scores`` takes positions ``[L]``. 0 for a relative method.
    """
    p = torch.arange(length)
    return relative_error(scores(p + offset), scores(p))


def toeplitz_error(scores: Tensor) -> float:
    """Share of the variance of ``scores [L, L]`` that the offset j − i does *not* explain.

    0: constant along each diagonal, so a pure function of the offset. About 1: the offset
    explains nothing.
    """
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise ValueError(f"scores must be a square matrix [L, L], not {tuple(scores.shape)}")
    s = scores.double()
    i = torch.arange(len(s), device=s.device)
    offset = (i - i[:, None] + len(s) - 1).flatten()
    count = torch.zeros(2 * len(s) - 1, dtype=s.dtype, device=s.device).index_add(
        0, offset, torch.ones_like(offset, dtype=s.dtype)
    )
    mean = torch.zeros_like(count).index_add(0, offset, s.flatten()) / count
    total = s.var(correction=0)
    return ((s.flatten() - mean[offset]).square().mean() / total).item() if total else 0.0


def parameters(module: nn.Module) -> int:
    """Number of trained numbers in a module."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
