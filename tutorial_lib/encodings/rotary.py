r"""Rotary position embedding, RoPE (Su et al. 2021, §3.2, eq. 14–16).

Queries and keys are cut into pairs, and the pair t of position p is turned by the angle p·θ_t:

.. math:: \tilde q_m = R_m q_m, \quad \tilde k_n = R_n k_n, \quad
          \tilde q_m^\top \tilde k_n = q_m^\top R_{n-m} k_n, \qquad \theta_t = 10000^{-2t/d}

so a score depends on positions only through their difference n − m.

Which channels form a pair is a convention, and weights trained with one do not fit the other:
``"interleaved"`` pairs (0, 1), (2, 3), … as in the paper, GPT-J and Meta's Llama code;
``"half"`` pairs (t, t + d/2) as in GPT-NeoX and Hugging Face's Llama.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .base import PositionalEncoding, check_positive, wide
from .sinusoidal import frequencies

PAIRINGS = ("interleaved", "half")


def rotate(x: Tensor, positions: Tensor, *, base: float = 10_000.0, layout: str) -> Tensor:
    """Turn each channel pair of ``x [B, H, L, d]`` by its angle; ``positions`` is [L] or [B, L].

    Angles are float32, or float64 when the positions or ``x`` are; the result has the dtype of
    ``x``. Norms are unchanged.

    Raises ValueError for an odd ``d``, an unknown ``layout``, or positions that do not fit ``x``.
    """
    d, length = x.shape[-1], x.shape[-2]
    if d % 2:
        raise ValueError(f"x has {d} channels: a rotation needs pairs, so an even number of them")
    if layout not in PAIRINGS:
        raise ValueError(f"layout={layout!r}: it must be one of {', '.join(map(repr, PAIRINGS))}")
    if tuple(positions.shape) not in ((length,), (1, length), (x.shape[0], length)):
        raise ValueError(
            f"positions have shape {tuple(positions.shape)}, but x {tuple(x.shape)} has length "
            f"{length}: give one position per token, [L] or [B, L]"
        )
    p = wide(positions)
    p = p.to(torch.promote_types(p.dtype, x.dtype))
    angle = p[..., None] * frequencies(d, base=base, device=x.device).to(p.dtype)
    if angle.ndim == 3:  # [B, L, d/2]: make room for the heads
        angle = angle[:, None]
    cos, sin = angle.cos(), angle.sin()
    if layout == "interleaved":
        a, b = x.unflatten(-1, (-1, 2)).to(cos.dtype).unbind(-1)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).to(x.dtype)
    a, b = x.to(cos.dtype).chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1).to(x.dtype)


class Rotary(PositionalEncoding):
    """RoPE on all channels of queries and keys, in every layer.

    Args:
        head_dim: channels per head, even.
        base: 10000 in the paper, 100000 in SmolLM2.
        layout: ``"interleaved"`` or ``"half"``; it must be the one the weights were trained with.
    """

    def __init__(self, head_dim: int, *, base: float = 10_000.0, layout: str = "interleaved"):
        super().__init__()
        check_positive(head_dim=head_dim)
        if head_dim % 2:
            raise ValueError(f"head_dim={head_dim}: a rotation needs pairs, so it must be even")
        probe = torch.zeros(1, 1, 1, head_dim, device="cpu")
        rotate(probe, torch.zeros(1, device="cpu"), base=base, layout=layout)
        self.head_dim, self.base, self.layout = head_dim, base, layout

    def rotate(self, q, k, q_positions, k_positions):
        if q.shape[-1] != self.head_dim:
            raise ValueError(
                f"this Rotary was built for head_dim={self.head_dim}, but q has shape "
                f"{tuple(q.shape)}: give it the width of one head"
            )
        turn = {"base": self.base, "layout": self.layout}
        return rotate(q, q_positions, **turn), rotate(k, k_positions, **turn)

    def extra_repr(self):
        return f"{self.head_dim}, base={self.base:g}, layout={self.layout!r}"
