"""Causal attention with ALiBi, one query and one head at a time."""

import torch

ABOUT = {"kind": "attend", "encoding": "alibi"}


def slope(h, heads):
    whole = 1 << (heads.bit_length() - 1)  # the power of two at or below
    if h < whole:
        return 2.0 ** (-8 * (h + 1) / whole)
    return 2.0 ** (-8 * (2 * (h - whole) + 1) / (2 * whole))


def attend(q, k, v, offset=0):
    out = torch.zeros_like(q)
    for h in range(q.shape[1]):
        for row in range(q.shape[2]):
            i = offset + row
            seen = min(offset + row + 1, k.shape[2])
            score = (k[:, h, :seen] @ q[:, h, row, :, None])[..., 0]
            distance = i - torch.arange(seen)
            score = score * q.shape[-1] ** -0.5 - slope(h, q.shape[1]) * distance
            out[:, h, row] = torch.einsum("bk,bkd->bd", score.softmax(-1).to(v.dtype), v[:, h, :seen])
    return out
