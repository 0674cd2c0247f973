"""Without torch inside, in float64, with the length before the heads."""

import numpy as np
import torch


def rotate(x, positions, base=10_000.0):
    half = x.shape[-1] // 2
    inv_freq = 1.0 / base ** (np.arange(half) / half)
    angle = np.expand_dims(positions[..., None] * inv_freq, -2)
    c, s = np.cos(angle), np.sin(angle)
    x1, x2 = x[..., :half], x[..., half:]
    return np.concatenate([x1 * c - x2 * s, x1 * s + x2 * c], -1)


def given(x, positions):
    return torch.from_numpy(rotate(x.double().numpy(), positions.numpy())).to(x.dtype)


DECLARED = {"layout": "half", "base": 10_000.0, "axes": "blhd"}
BUGS = set()
