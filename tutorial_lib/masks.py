"""Who may look at whom: booleans, True where a query may look at a key."""

from __future__ import annotations

import torch
from torch import Tensor

from .encodings.base import broadcasts

__all__ = ["allowed_pairs", "check_mask"]


def allowed_pairs(q: Tensor, k: Tensor, causal: bool, mask: Tensor | None) -> Tensor | None:
    """Both masks in one, broadcastable to ``[B, H, Lq, Lk]``; None where all see all.

    Causal goes by the order of the tensors, in which the queries are the last keys.
    """
    if not causal:
        return mask
    # SDPA's own is_causal aligns the first query with the first key; a cache needs the last ones
    q_place = torch.arange(k.shape[-2] - q.shape[-2], k.shape[-2], device=q.device)
    past = torch.arange(k.shape[-2], device=q.device) <= q_place[:, None]
    return past if mask is None else past & mask


def check_mask(mask: Tensor, full: tuple[int, ...], name: str = "mask") -> None:
    """Raise ValueError unless ``mask`` holds booleans and is broadcastable to the shape ``full``; TypeError
    for anything but a tensor."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name} is a {type(mask).__name__}: give a tensor of booleans")
    if mask.dtype != torch.bool:
        raise ValueError(f"{name} has dtype {mask.dtype}: give booleans, True where a query may look")
    if not broadcasts(mask, full):
        raise ValueError(f"{name} has shape {tuple(mask.shape)}: it must be broadcastable to {full}")
