r"""Rotary position embedding, RoPE (Su et al. 2021, §3.2, eq. 14–16).

Queries and keys are cut into pairs, and the pair t of position p is turned by the angle p·θ_t:

.. math:: \tilde q_m = R_m q_m, \quad \tilde k_n = R_n k_n, \quad
          \tilde q_m^\top \tilde k_n = q_m^\top R_{n-m} k_n, \qquad \theta_t = 10000^{-2t/d}

so a score depends on positions only through their difference n − m. From top to bottom: θ, the angles, the
rotation, and :class:`Rotary`, which turns the queries and keys of each layer.

Which channels form a pair is a convention, and weights trained with one do not fit the other:
``"interleaved"`` pairs (0, 1), (2, 3), … as in the paper, GPT-J and Meta's Llama code; ``"half"`` pairs
(t, t + d/2) as in GPT-NeoX and Hugging Face's Llama. :func:`permute_projection` carries weights from one
to the other.

Elsewhere: other θ, for longer texts or a part of the channels (:mod:`tutorial_lib.encodings.scaling`), the
same rotation in fewer passes over memory (:mod:`tutorial_lib.encodings.fast_rotation`), and angles that
are computed once for all layers (:mod:`tutorial_lib.encodings.once`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from .base import (
    PositionalEncoding,
    check_above_0,
    check_one_of,
    check_pairs,
    check_turn,
    result_dtype,
    widest_float,
)
from .fast_rotation import fast_pays, turn_fast, with_heads
from .once import once

LAYOUTS = ("interleaved", "half")


def plain_theta(d: int, base: float = 10_000.0, device=None) -> Tensor:
    """θ_t = base^(−2t/d) for t = 0 … d/2 − 1, in radians per position: float64 ``[d/2]``.

    >>> plain_theta(8)
    tensor([1.0000, 0.1000, 0.0100, 0.0010], dtype=torch.float64)
    """
    t = widest_float(torch.arange(d // 2, device=device))
    return float(base) ** (-2 * t / d)


@dataclass(frozen=True)
class Angles:
    """p·θ_t for each pair of channels of a head. :class:`tutorial_lib.encodings.Frequencies` has options.

    Raises ValueError for an odd ``head_dim``, or a ``base`` that is not above 0.
    """

    head_dim: int
    base: float = 10_000.0

    attention_factor = 1.0
    """What cosines and sines are multiplied by."""

    axes = 1
    """How many numbers a position is."""

    def __post_init__(self):
        check_above_0(base=self.base)
        check_pairs(head_dim=self.head_dim)

    @property
    def d(self) -> int:
        """The number of channels that turn."""
        return self.head_dim

    def theta(self, length: Tensor | None = None, device=None) -> Tensor:
        """θ, float64 ``[d/2]`` (float32 on MPS); ``[B, d/2]`` if each row has a θ of its own."""
        return plain_theta(self.d, self.base, device)

    def length(self, *positions: Tensor) -> Tensor | None:
        """The current length l of each row, ``[]`` or ``[B]``; None when no angle depends on it."""
        return None

    def cos_sin(
        self, positions: Tensor, length: Tensor | None = None, dtype=torch.float32
    ) -> tuple[Tensor, Tensor]:
        """Cosine and sine of each angle times the attention factor, ``[*positions.shape, d/2]``.

        The angle itself is float64 (float32 on MPS, which has no float64): a float32 angle of 1e6
        radians would be off by 0.03. Only its cosine and sine are rounded to ``dtype``.
        """
        angle = self.angle(positions, length)
        cos, sin = ((self.attention_factor * f).to(dtype) for f in (angle.cos(), angle.sin()))
        return cos, sin

    def angle(self, positions: Tensor, length: Tensor | None = None) -> Tensor:
        """p·θ_t, float64 ``[*positions.shape, d/2]`` (float32 on MPS)."""
        theta = self.theta(length, positions.device)
        return widest_float(positions)[..., None] * (theta if theta.ndim == 1 else theta[:, None])


def turn_plainly(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """The rotation itself, (a, b) → (a·cos − b·sin, a·sin + b·cos), for pairs in either layout.

    ``x`` is ``[..., L, d]``, and so is the result; ``cos`` and ``sin`` have a number for each pair,
    ``[..., L, d/2]`` or what broadcasts to that.
    """
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def turn(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Turn the first channels of ``x [B, H, L, D]`` in pairs; the others stay as they are.

    ``cos`` and ``sin`` are ``[L, d/2]`` or ``[B, L, d/2]`` with d ≤ D. The result has the dtype of ``x``.
    Raises ValueError for an unknown ``layout``.
    """
    check_one_of(LAYOUTS, layout=layout)
    d = 2 * cos.shape[-1]
    turning, rest = x[..., :d].to(cos.dtype), x[..., d:]
    if fast_pays(x):
        turned = turn_fast(turning, cos, sin, layout)
    else:
        turned = turn_plainly(turning, with_heads(cos), with_heads(sin), layout)
    turned = turned.to(x.dtype)
    return torch.cat([turned, rest], -1) if rest.shape[-1] else turned


class Rotary(PositionalEncoding):
    """RoPE on queries and keys, in every layer.

    Args:
        head_dim: channels per head, even.
        base: 10000 in the paper and if it is not given, 100000 in SmolLM2.
        layout: ``"interleaved"`` or ``"half"``; it must be the one the weights were trained with.
        frequencies: which angles, in place of ``base``, such as ``Frequencies(64, scaling=…)``.

    Raises ValueError for what :class:`Angles` refuses, an unknown ``layout``, and both a ``base`` and
    ``frequencies``.
    """

    def __init__(
        self, head_dim: int, *, base: float | None = None, layout: str = "interleaved",
        frequencies: Angles | None = None,
    ):
        super().__init__()
        check_one_of(LAYOUTS, layout=layout)
        if frequencies is None:
            frequencies = Angles(head_dim, 10_000.0 if base is None else base)
        elif isinstance(frequencies, type) or not hasattr(frequencies, "cos_sin"):
            raise ValueError(f"frequencies={frequencies!r}: give Frequencies({head_dim}, …), or a base")
        elif base is not None:
            raise ValueError(f"base={base!r} and frequencies={frequencies}: give one of them")
        elif frequencies.head_dim != head_dim:
            raise ValueError(f"head_dim={head_dim}, but frequencies={frequencies}: they must agree")
        self.head_dim, self.layout, self.frequencies = head_dim, layout, frequencies
        self.axes = frequencies.axes

    def rotate(self, q, k, q_positions, k_positions):
        check_turn(q, q_positions, self.head_dim, "q", self.axes)
        check_turn(k, k_positions, self.head_dim, "k", self.axes)
        length = once(self.frequencies.length, q_positions, k_positions)
        dtype = result_dtype(q, k, q_positions, k_positions)
        of_q = once(self.frequencies.cos_sin, q_positions, length, dtype)
        of_k = of_q if k_positions is q_positions else once(
            self.frequencies.cos_sin, k_positions, length, dtype)
        return turn(q, *of_q, self.layout), turn(k, *of_k, self.layout)

    def changes(self, before, now):
        lengths = [self.frequencies.length(p) for p in (before, now)]
        if lengths[0] is None:
            return None
        one = now.new_ones(1 if self.axes == 1 else (1, self.axes))
        old, new = (torch.cat(self.frequencies.cos_sin(one, length), -1) for length in lengths)
        return (old != new).flatten(-2).any(-1)

    def extra_repr(self):
        angles, shown = self.frequencies, ""
        if not isinstance(angles, Angles):
            return f"{self.head_dim}, frequencies={angles}, layout={self.layout!r}"
        for option in fields(angles)[2:]:  # after head_dim and base
            value = getattr(angles, option.name)
            shown += f"{option.name}={value}, " if value != option.default else ""
        return f"{self.head_dim}, base={angles.base:g}, {shown}layout={self.layout!r}"


def rotate(
    x: Tensor, positions: Tensor, *, base: float = 10_000.0, layout: str,
    frequencies: Angles | None = None,
) -> Tensor:
    """Turn each channel pair of ``x [B, H, L, D]`` by its angle; ``positions`` is [L] or [B, L].

    ``frequencies`` takes the place of ``base``. Cosines and sines are float32, or float64 when the
    positions or ``x`` are; the result has the dtype of ``x``. Without YaRN norms are unchanged.

    Raises ValueError for odd channels, an unknown ``layout``, or positions that do not fit ``x``.
    """
    frequencies = Angles(x.shape[-1], base) if frequencies is None else frequencies
    check_turn(x, positions, frequencies.head_dim, "x", frequencies.axes)
    length = frequencies.length(positions)
    return turn(x, *frequencies.cos_sin(positions, length, result_dtype(x, positions)), layout)


def permute_projection(
    weight: Tensor, head_dim: int, *, source: str, target: str, rotary_dim: int | None = None
) -> Tensor:
    """The rows of W_q or W_k (or their bias) in the order of another layout.

    A model with layout ``source`` and its weights computes the same scores as one with layout
    ``target`` and these. ``weight`` is ``[H·head_dim, ...]``; channels from ``rotary_dim`` on stay.

    Raises ValueError for an unknown layout, sizes that do not fit, or an odd number of channels.

    >>> permute_projection(torch.arange(6), 6, source="interleaved", target="half")
    tensor([0, 2, 4, 1, 3, 5])
    """
    check_one_of(LAYOUTS, source=source, target=target)
    d = check_pairs(head_dim=head_dim, rotary_dim=rotary_dim)
    if weight.ndim == 0 or weight.shape[0] % head_dim:
        raise ValueError(
            f"weight has shape {tuple(weight.shape)}: its first axis must be a multiple of "
            f"head_dim={head_dim}"
        )
    if source == target:
        return weight.clone()
    order = torch.arange(d, device=weight.device).view(-1, 2).T.flatten()  # 0, 2, 4, … 1, 3, 5, …
    order = order if target == "half" else order.argsort()
    order = torch.cat([order, torch.arange(d, head_dim, device=weight.device)])
    return weight.unflatten(0, (-1, head_dim))[:, order].flatten(0, 1)
