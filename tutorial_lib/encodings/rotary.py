r"""Rotary position embedding, RoPE (Su et al. 2021, §3.2, eq. 14–16).

Queries and keys are cut into pairs, and the pair t of position p is turned by the angle p·θ_t:

.. math:: \tilde q_m = R_m q_m, \quad \tilde k_n = R_n k_n, \quad
          \tilde q_m^\top \tilde k_n = q_m^\top R_{n-m} k_n, \qquad \theta_t = 10000^{-2t/d}

so a score depends on positions only through their difference n − m.

From top to bottom: θ, the angles, the rotation, and :class:`Rotary`, which turns the queries and keys of
each layer; then what it can be asked for.

Which channels form a pair is a convention, and weights trained with one do not fit the other:
``"interleaved"`` pairs (0, 1), (2, 3), … as in the paper, GPT-J and Meta's Llama code; ``"half"`` pairs
(t, t + d/2) as in GPT-NeoX and Hugging Face's Llama. :func:`permute_projection` carries weights from one
to the other.

Elsewhere: other θ, for longer texts or a part of the channels (:mod:`tutorial_lib.encodings.scaling`), and
the same rotation in fewer passes over memory (:mod:`tutorial_lib.encodings.fast_rotation`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from .base import PositionalEncoding, check_above_0, check_head_dim, check_one_of, check_pairs
from .fast_rotation import fast_form, fast_pays, turn_fast
from .method import Method, Row
from .positions import Device, Positions, Where, at, pair, readable, result_dtype, widest, widest_float


def plain_theta(d: int, base: float = 10_000.0, device: Device = None) -> Tensor:
    """θ_t = base^(−2t/d) for t = 0 … d/2 − 1, in radians per position: float64 ``[d/2]`` (float32 on MPS)."""
    return torch.pow(float(base), torch.arange(0, -d, -2, dtype=widest(device), device=device) / d)


def angles(positions: Tensor, theta: Tensor) -> Tensor:
    """p·θ_t, float64 ``[*positions.shape, d/2]``: a float32 angle of 1e6 radians would be off by 0.03."""
    return widest_float(positions).unsqueeze(-1) * theta


def cos_sin(angle: Tensor, dtype: torch.dtype, factor: float = 1.0) -> tuple[Tensor, Tensor]:
    """Cosine and sine times ``factor``, rounded to ``dtype`` at the end."""
    cos, sin = angle.cos(), angle.sin()
    if factor != 1:
        cos, sin = factor * cos, factor * sin
    return cos.to(dtype), sin.to(dtype)


def turn_plainly(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """(a, b) → (a·cos − b·sin, a·sin + b·cos), pairwise: ``x [..., L, d]``, cos and sin ``[..., L, d/2]``."""
    a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.chunk(2, -1)
    turned = a * cos - b * sin, a * sin + b * cos
    return torch.stack(turned, -1).flatten(-2) if layout == "interleaved" else torch.cat(turned, -1)


class Rotary(PositionalEncoding):
    """RoPE on queries and keys, in every layer.

    Args:
        head_dim: channels per head, even.
        base: 10000 in the paper and by default; 100000 in SmolLM2.
        layout: ``"interleaved"`` or ``"half"``; it must be the one the weights were trained with.
        frequencies: the angles to turn by, in place of ``base``, such as ``Frequencies(64, scaling=…)``.

    Raises ValueError as :class:`Angles`, for another ``layout``, and for a ``base`` beside ``frequencies``.
    """

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        if not q.shape[-1] == k.shape[-1] == self.head_dim:
            check_head_dim(self.head_dim, q=q, k=k)
        queries, keys = pair(self, q_positions, k_positions, q, k, offset=offset)
        turn_q, turn_k = keys.once(self._turns, queries, keys, result_dtype(q, k), fast_pays(q))
        return turn_q(q), turn_k(k)

    def _turns(self, queries: Positions, keys: Positions, dtype: torch.dtype, fast: bool) -> tuple[Turn, ...]:
        """The rotations of queries and of keys, the same for all layers."""
        m, n = queries.tensor, keys.tensor
        dtype, length = torch.promote_types(dtype, result_dtype(m, n)), self.frequencies.length(m, n)
        turns = [
            Turn(*self._cos_sin(p, length, dtype), self.layout, fast)
            for p in ((n,) if queries is keys else (m, n))
        ]
        return turns[0], turns[-1]

    def _cos_sin(self, p: Tensor, length: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        return self.frequencies.cos_sin(p, length, dtype)

    def __init__(
        self,
        head_dim: int,
        *,
        base: float | None = None,
        layout: str = "interleaved",
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

    def changes(self, before: Where, now: Where) -> Tensor | None:
        before, now = (at(self, p).tensor for p in (before, now))
        lengths = [self.frequencies.length(p) for p in (before, now)]
        if lengths[0] is None:
            return None
        one = now.new_ones(1 if self.axes == 1 else (1, self.axes))
        old, new = (torch.cat(self.frequencies.cos_sin(one, length), -1) for length in lengths)
        return (old != new).flatten(-2).any(-1)

    def extra_repr(self) -> str:
        its, shown = self.frequencies, ""
        if not isinstance(its, Angles):
            return f"{self.head_dim}, frequencies={its}, layout={self.layout!r}"
        for option in fields(its)[2:]:  # after head_dim and base
            value = getattr(its, option.name)
            shown += f"{option.name}={value}, " if value != option.default else ""
        return f"{self.head_dim}, base={its.base:g}, {shown}layout={self.layout!r}"


@dataclass(frozen=True)
class Angles:
    """p·θ_t for each pair of channels of a head. :class:`tutorial_lib.encodings.Frequencies` has options.

    Raises ValueError for an odd ``head_dim``, or a ``base`` that is not above 0.
    """

    head_dim: int
    base: float = 10_000.0

    def __post_init__(self) -> None:
        check_above_0(base=self.base)
        check_pairs(head_dim=self.head_dim)

    @property
    def attention_factor(self) -> float:
        """What cosines and sines are multiplied by."""
        return 1.0

    @property
    def axes(self) -> int:
        """How many numbers make up a position."""
        return 1

    @property
    def d(self) -> int:
        """The number of channels that turn."""
        return self.head_dim

    def theta(self, length: Tensor | None = None, device: Device = None) -> Tensor:
        """θ, float64 ``[d/2]`` (float32 on MPS); ``[B, d/2]`` if each row has a θ of its own."""
        return plain_theta(self.d, self.base, device)

    def length(self, *positions: Tensor) -> Tensor | None:
        """The current length l of each row, ``[]`` or ``[B]``; None when no angle depends on it."""
        return None

    def cos_sin(
        self, positions: Tensor, length: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> tuple[Tensor, Tensor]:
        """Cosine and sine of each angle, times the attention factor, ``[*positions.shape, d/2]``."""
        return cos_sin(self.angle(positions, length), dtype, self.attention_factor)

    def angle(self, positions: Tensor, length: Tensor | None = None) -> Tensor:
        """p·θ_t, float64 ``[*positions.shape, d/2]`` (float32 on MPS)."""
        if type(self) is Angles and readable(positions):
            return angles(positions, _kept_theta(self.d, self.base))
        theta = self.theta(length, positions.device)
        return angles(positions, theta if theta.ndim == 1 else theta[:, None])


_kept: dict[tuple[int, float], Tensor] = {}


def _kept_theta(d: int, base: float) -> Tensor:
    """RoPE's own θ, computed once: nothing else affects them, and no caller gets them to change."""
    theta = _kept.get((d, base))
    if theta is None:
        theta = plain_theta(d, base, "cpu")
        if type(theta) is Tensor and not theta.is_inference():  # it can serve every later call
            _kept[d, base] = theta
    return theta


LAYOUTS = ("interleaved", "half")


class Turn:
    """The rotation of ``x [B, H, L, D]`` by angles whose ``cos`` and ``sin`` all layers share.

    They are ``[L, d/2]`` or ``[B, L, d/2]``. The first d channels turn, the others stay as they are; the
    result has the dtype of ``x``.
    """

    def __init__(self, cos: Tensor, sin: Tensor, layout: str, fast: bool):
        self.d, self.dtype, self.layout, self.fast = 2 * cos.shape[-1], cos.dtype, layout, fast
        if cos.ndim == 3:  # room for the heads
            cos, sin = cos[:, None], sin[:, None]
        self.tensors = fast_form(cos, sin, layout) if fast else (cos, sin)

    def __call__(self, x: Tensor) -> Tensor:
        all_turn, same = self.d == x.shape[-1], self.dtype == x.dtype
        turning = x if all_turn else x[..., : self.d]
        turning = turning if same else turning.to(self.dtype)
        if self.fast:
            turned = turn_fast(turning, *self.tensors)
        else:
            cos, sin = self.tensors
            turned = turn_plainly(turning, cos, sin, self.layout)
        turned = turned if same else turned.to(x.dtype)
        return turned if all_turn else torch.cat([turned, x[..., self.d :]], -1)


def turn(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """``x [B, H, L, D]`` turned by these cosines and sines, as :class:`Turn`.

    Raises ValueError for an unknown ``layout``.
    """
    check_one_of(LAYOUTS, layout=layout)
    return Turn(cos, sin, layout, fast_pays(x))(x)


def rotate(
    x: Tensor,
    positions: Where = None,
    *,
    offset: int = 0,
    base: float = 10_000.0,
    layout: str,
    frequencies: Angles | None = None,
) -> Tensor:
    """Turn each channel pair of ``x [B, H, L, D]`` by its angle; ``positions`` are [L] or [B, L].

    ``frequencies`` takes the place of ``base``. Cosines and sines are float32, or float64 when the
    positions or ``x`` are; the result has the dtype of ``x``. Without YaRN, norms are unchanged.

    Raises ValueError for odd channels, an unknown ``layout``, or positions that do not fit ``x``.
    """
    frequencies = Angles(x.shape[-1], base) if frequencies is None else frequencies
    check_head_dim(frequencies.head_dim, x=x)
    p = at(frequencies, positions, x, offset=offset).tensor
    return turn(x, *frequencies.cos_sin(p, frequencies.length(p), result_dtype(x, p)), layout)


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
    reordered: Tensor = weight.unflatten(0, (-1, head_dim))[:, order].flatten(0, 1)
    return reordered


METHODS = [
    Method(
        names={"rotary": Rotary},
        relative=True,
        lesson="06_rope",
        page="rope",
        title="RoPE: rotary position embedding",
        says=(
            "Queries and keys are cut into pairs of channels, and each pair is turned by an angle "
            "that grows with the position. So a score depends on the distance of two tokens "
            "alone."
        ),
        where=(
            "q_m is the query at place m, k_n the key at n. R_m turns pair t of the channels by "
            "the angle m·θ_t; d is the number of channels."
        ),
        words=("rope", "rotary", "rotation", "roformer"),
        code=(plain_theta, Angles.cos_sin, turn_plainly),
        make="Rotary(16)",
        year=2021,
        arxiv="2104.09864",
        row=Row(
            name="RoPE",
            formula=(
                r"$(R_m q)^\top (R_n k)=q^\top R_{n-m}\,k$",
                r"$R_m$ turns pair $t$ by $m\,\theta_t,\quad \theta_t=10000^{-2t/d}$",
            ),
            parameters="0",
            cost="if fused: q and k read\nand written once a layer",
            longer="breaks, unless it\nis stretched",
            used_by="LLaMA, Mistral, Qwen,\nGemma; ModernBERT,\nEuroBERT (encoders)",
            picture="hands",
        ),
        papers=("RoPE",),
        live="rotary",
        glossary="rotary-position-embedding",
        claims="RoPE",
        released="^base|base of|turn",
    ),
]
