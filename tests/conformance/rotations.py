"""RoPE written in one way, with a place for each bug: what the tests of the tool are made of."""

import math

import torch


def rope(
    layout="half",
    base=10_000.0,
    theta=None,
    positions=lambda p: p,
    angles=lambda a: a,
    pair=None,
    factor=1.0,
    turning=None,
    rows=True,
):
    """``rotate(x [B, H, L, D], positions [L] or [B, L])``; each argument replaces one step of it."""

    def rotate(x, p):
        d = turning or x.shape[-1]
        x, still = x[..., :d], x[..., d:]
        freqs = base ** (-torch.arange(0, d, 2, dtype=torch.float32) / d) if theta is None else theta(d)
        p = positions(p)
        a = angles(p[..., None].float() * freqs)
        if a.ndim == 3 and rows:
            a = a[:, None]
        cos, sin = factor * a.cos(), factor * a.sin()
        if pair is not None:
            return torch.cat([pair(x, cos, sin), still], -1).to(x.dtype)
        if layout == "half":
            x1, x2 = x.chunk(2, -1)
            y = torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], -1)
        else:
            x1, x2 = x[..., 0::2], x[..., 1::2]
            y = torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)
        return torch.cat([y, still], -1).to(x.dtype)

    return rotate


def cached(x, p, table={}):  # noqa: B006
    """Angles kept by length alone, as rotary-embedding-torch#11."""
    p = table.setdefault(x.shape[-2], p)
    return rope()(x, p)


def yarn_theta(d, s=4.0, trained=2048, low=1.0, high=32.0, truncate=True, base=10_000.0):
    """The released code's ramp, written anew."""
    t = torch.arange(0, d, 2, dtype=torch.float32)
    inv_freq = base ** (-t / d)
    first, last = (d * math.log(trained / (r * 2 * math.pi)) / (2 * math.log(base)) for r in (high, low))
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    ramp = ((torch.arange(d // 2) - first) / (last - first)).clamp(0, 1)
    return inv_freq / s * ramp + inv_freq * (1 - ramp)


def mixed(x, cos, sin):
    cos, sin = (part.repeat_interleave(2, -1) for part in (cos, sin))
    x1, x2 = x.chunk(2, -1)
    return x * cos + torch.cat([-x2, x1], -1) * sin


def no_minus(x, cos, sin):
    x1, x2 = x.chunk(2, -1)
    return torch.cat([x1 * cos + x2 * sin, x2 * cos + x1 * sin], -1)


def unpermuted(x, cos, sin):
    """Pairs of neighbours that come out as halves."""
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1)


def stretched(d, by=1.0, base=10_000.0):
    return base ** (-torch.arange(0, d, 2) / d) / by


def wavelengths(d):
    """The paper's ramp, in the number of turns."""
    theta = stretched(d)
    gamma = ((2048 * theta / (2 * math.pi) - 1) / 31).clamp(0, 1)
    return theta / 4 * (1 - gamma) + theta * gamma


FACTOR = 0.1 * math.log(4) + 1
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "rope_theta": 1e4}
LINEAR = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e4}
HALF = {"layout": "half", "base": 1e4}
BROKEN = {  # the name: (the function, what is declared)
    "layout": (rope("interleaved"), HALF),
    "mixed layouts": (rope(pair=mixed), {}),
    "permuted channels": (rope(pair=unpermuted), {}),
    "sign": (rope(angles=lambda a: -a), {}),
    "minus lost": (rope(pair=no_minus), {}),
    "cosine for sine": (rope(pair=lambda x, c, s: swapped(x, c, s)), {}),
    "turned twice": (lambda x, p: rope()(rope()(x, p), p), {}),
    "positions doubled": (rope(positions=lambda p: 2 * p), {}),
    "positions from 1": (rope("interleaved", positions=lambda p: p + 1), {}),
    "positions lag by one": (rope(positions=lambda p: p - 1), {}),
    "positions restart": (lambda x, p: rope()(x, torch.arange(x.shape[-2])), {}),
    "stale angles": (cached, {}),
    "one position for the chunk": (rope(positions=lambda p: p[..., -1:].expand(p.shape)), {}),
    "packing": (rope(positions=lambda p: p[..., :1] + torch.arange(p.shape[-1])), {}),
    "rows share positions": (lambda x, p: rope()(x, p if p.ndim == 1 else p[0]), {}),
    "along the heads": (
        lambda x, p: rope()(x.transpose(1, 2), torch.arange(x.shape[1])).transpose(1, 2),
        {"axes": "bhld"},
    ),
    "angles in half precision": (rope(angles=lambda a: a.bfloat16().float()), {}),
    "positions in bf16": (rope(positions=lambda p: p.bfloat16()), {}),
    "inv_freq never filled": (rope(theta=lambda d: torch.zeros(d // 2)), {}),
    "base": (rope(base=500_000.0), {"base": 10_000.0}),
    "frequencies with d/2": (rope(theta=lambda d: 1e4 ** (-torch.arange(0, d, 2) * 2 / d)), {"base": 1e4}),
    "frequencies with 2d": (rope(theta=lambda d: 1e4 ** (-torch.arange(d // 2) / d)), HALF),
    "d − 1 for d": (rope(theta=lambda d: 1e4 ** (-torch.arange(d // 2) / (d // 2 - 1))), HALF),
    "model's dimension": (rope(theta=lambda d: 1e4 ** (-torch.arange(0, d, 2) / (8 * d))), HALF),
    "frequencies reversed": (rope(theta=lambda d: stretched(d).flip(0)), {}),
    "partial part": (
        lambda x, p: torch.cat([x[..., :48], rope()(x[..., 48:], p)], -1),
        {"rotary_dim": 16, **HALF},
    ),
    "whole head turned": (rope(), {"rotary_dim": 16, **HALF}),
    "scaling missing": (rope(), {"scaling": LINEAR}),
    "scaling unexpected": (rope(theta=lambda d: stretched(d, 8)), HALF),
    "factor twice": (rope(theta=lambda d: stretched(d, 64)), {"scaling": LINEAR}),
    "factor inverted": (rope(theta=lambda d: stretched(d, 1 / 8)), {"scaling": LINEAR}),
    "attention factor forgotten": (rope(theta=yarn_theta), {"scaling": YARN}),
    "attention factor squared": (rope(theta=yarn_theta, factor=FACTOR**2), {"scaling": YARN}),
    "ramp not truncated": (
        rope(theta=lambda d: yarn_theta(d, truncate=False), factor=FACTOR),
        {"scaling": YARN},
    ),
    "attention factor unexpected": (rope(factor=1.2), HALF),
    "ramp over wavelengths": (rope(theta=wavelengths, factor=FACTOR), {"scaling": YARN}),
    "ramp truncated": (rope(theta=yarn_theta, factor=FACTOR), {"scaling": YARN | {"truncate": False}}),
}


def swapped(x, cos, sin):
    x1, x2 = x.chunk(2, -1)
    return torch.cat([x1 * sin - x2 * cos, x2 * sin + x1 * cos], -1)
