"""As the paper writes it: a matrix for each position."""

import torch


def given(x, positions):
    d = x.shape[-1]
    t = torch.arange(d // 2)
    angle = positions[..., None].double() * 10_000.0 ** (-2.0 * t / d)
    r = torch.zeros(*angle.shape[:-1], d, d, dtype=torch.float64)
    r[..., 2 * t, 2 * t] = r[..., 2 * t + 1, 2 * t + 1] = angle.cos()
    r[..., 2 * t, 2 * t + 1], r[..., 2 * t + 1, 2 * t] = -angle.sin(), angle.sin()
    r = r[:, None] if positions.ndim == 2 else r
    return (r @ x.double()[..., None])[..., 0].to(x.dtype)


DECLARED = {"layout": "interleaved", "base": 10_000.0}
BUGS = set()
