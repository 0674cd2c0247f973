"""YaRN with factor 4, pair by pair as in its paper: its turns within the old length decide."""

import math

import torch

S, OLD, ALPHA, BETA = 4.0, 2048, 1, 32
ABOUT = {
    "kind": "rotate",
    "layout": "half",
    "base": 10000.0,
    "scaling": {"type": "yarn", "factor": S, "original": OLD, "truncate": True},
}


def place(turns, d):
    return d * math.log(OLD / (2 * math.pi * turns)) / (2 * math.log(10000.0))


def rotate(x, positions):
    d = x.shape[-1]
    begin, end = math.floor(place(BETA, d)), math.ceil(place(ALPHA, d))
    begin, end = max(begin, 0), min(end, d - 1)
    sqrt_t = 0.1 * math.log(S) + 1
    out = torch.empty_like(x, dtype=torch.float64)
    for i in range(d // 2):
        theta = 10000.0 ** (-2 * i / d)
        slow = min(max((i - begin) / (end - begin), 0), 1)
        theta = slow * theta / S + (1 - slow) * theta
        angle = (positions.double() * theta).unsqueeze(-2)
        c, s = torch.cos(angle) * sqrt_t, torch.sin(angle) * sqrt_t
        out[..., i] = x[..., i] * c - x[..., i + d // 2] * s
        out[..., i + d // 2] = x[..., i] * s + x[..., i + d // 2] * c
    return out.to(x.dtype)
