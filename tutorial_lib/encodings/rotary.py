r"""Rotary position embedding, RoPE (Su et al. 2021, §3.2, eq. 14–16).

Queries and keys are cut into pairs, and the pair t of position p is turned by the angle p·θ_t:

.. math:: \tilde q_m = R_m q_m, \quad \tilde k_n = R_n k_n, \quad
          \tilde q_m^\top \tilde k_n = q_m^\top R_{n-m} k_n, \qquad \theta_t = 10000^{-2t/d}

so a score depends on positions only through their difference n − m.

Which angles θ there are, and how they are scaled for longer texts, stands in
:mod:`tutorial_lib.encodings.scaling`. Here is the rotation, :func:`turn`. Which channels form a
pair is a convention, and weights trained with one do not fit the other: ``"interleaved"`` pairs
(0, 1), (2, 3), … as in the paper, GPT-J and Meta's Llama code; ``"half"`` pairs (t, t + d/2) as in
GPT-NeoX and Hugging Face's Llama. :func:`permute_projection` carries weights from one to the other.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .base import PositionalEncoding, check_positions, result_dtype
from .scaling import Frequencies

PAIRINGS = ("interleaved", "half")


def turn(x: Tensor, cos: Tensor, sin: Tensor, layout: str, cis: Tensor | None = None) -> Tensor:
    """Turn the first channels of ``x [B, H, L, D]`` in pairs; the others stay as they are.

    ``cos`` and ``sin`` are ``[L, d/2]`` or ``[B, L, d/2]`` with d ≤ D; ``cis`` is cos + i·sin, if it is
    at hand. The result has the dtype of ``x``. Raises ValueError for an unknown ``layout``.
    """
    _check_layout(layout=layout)
    if cos.ndim == 3:  # make room for the heads
        cos, sin, cis = cos[:, None], sin[:, None], None if cis is None else cis[:, None]
    d = 2 * cos.shape[-1]
    turning = x[..., :d].to(cos.dtype)
    # a compiler makes one pass over memory of the plain form, and of that form only
    plain = torch.compiler.is_compiling() or x.device.type not in ("cpu", "cuda")
    if plain:
        turned = turn_plainly(turning, cos, sin, layout)
    else:
        turned = _turn_fast(turning, cos, sin, layout, cis)
    turned = turned.to(x.dtype)
    return turned if d == x.shape[-1] else torch.cat([turned, x[..., d:]], -1)


def turn_plainly(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """The rotation itself, (a, b) → (a·cos − b·sin, a·sin + b·cos), for pairs in either layout."""
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def _turn_fast(x, cos, sin, layout, cis):
    """The same in few passes over memory: (a + ib)·e^{ipθ}, and whole rows in place of halves."""
    if layout == "interleaved":
        cis = torch.complex(cos, sin) if cis is None else cis
        return torch.view_as_real(_as_complex(x) * cis).flatten(-2)
    a, b = x.chunk(2, -1)
    turned = torch.cat([b, a], -1).mul_(torch.cat([-sin, sin], -1))
    return turned.addcmul_(x, torch.cat([cos, cos], -1))


def _as_complex(x: Tensor) -> Tensor:
    """Channels (0, 1), (2, 3), … as a + ib; a copy only where memory does not hold them as pairs."""
    pairs = x.unflatten(-1, (-1, 2))
    if pairs.storage_offset() % 2 or pairs.stride(-1) != 1 or any(n % 2 for n in pairs.stride()[:-1]):
        pairs = pairs.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(pairs)


def rotate(
    x: Tensor, positions: Tensor, *, base: float = 10_000.0, layout: str,
    frequencies: Frequencies | None = None,
) -> Tensor:
    """Turn each channel pair of ``x [B, H, L, D]`` by its angle; ``positions`` is [L] or [B, L].

    ``frequencies`` takes the place of ``base``. Cosines and sines are float32, or float64 when the
    positions or ``x`` are; the result has the dtype of ``x``. Without YaRN norms are unchanged.

    Raises ValueError for odd channels, an unknown ``layout``, or positions that do not fit ``x``.
    """
    if frequencies is None:
        if x.shape[-1] % 2:
            raise ValueError(
                f"x has {x.shape[-1]} channels: a rotation needs pairs, so an even number of them"
            )
        frequencies = Frequencies(x.shape[-1], base)
    _check_fit(x, positions, frequencies.head_dim, "x")
    length = frequencies.length(positions)
    return turn(x, *frequencies.cos_sin(positions, length, result_dtype(x, positions)), layout)


def _check_layout(**layouts):
    for name, layout in layouts.items():
        if layout not in PAIRINGS:
            raise ValueError(f"{name}={layout!r}: it must be one of {', '.join(map(repr, PAIRINGS))}")


def _check_fit(x, positions, head_dim, name, axes=1):
    if x.shape[-1] != head_dim:
        raise ValueError(
            f"this rotation was built for head_dim={head_dim}, but {name} has shape "
            f"{tuple(x.shape)}: give it the width of one head"
        )
    argument = "positions" if name == "x" else f"{name}_positions"
    check_positions(positions, axes, argument, (x.shape[0], x.shape[-2]))


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
    _check_layout(source=source, target=target)
    d = Frequencies(head_dim, rotary_dim=rotary_dim).d
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


class Remembered:
    """Cosines and sines of the last two positions tensors: all layers of a model turn by the same ones.

    They cost more than the rotation itself. A tensor that was changed in place is a new one.
    """

    def __init__(self):
        self.entries = []

    def __call__(self, frequencies: Frequencies, positions: Tensor, length: Tensor | None, dtype) -> dict:
        """What :func:`turn` needs beside ``x`` and its layout."""
        fixed = length is None and not positions.requires_grad
        if not fixed or torch.compiler.is_compiling() or positions.is_inference():
            cos, sin = frequencies.cos_sin(positions, length, dtype)
            return {"cos": cos, "sin": sin}
        key = frequencies, positions._version, dtype
        for seen, seen_key, turns in self.entries:
            if seen is positions and seen_key == key:
                return turns
        with torch.inference_mode(False):  # what is remembered may be needed for training
            cos, sin = frequencies.cos_sin(positions, dtype=dtype)
            turns = {"cos": cos, "sin": sin}
            if positions.device.type in ("cpu", "cuda"):
                turns["cis"] = torch.complex(cos, sin)
        self.entries = [(positions, key, turns), *self.entries[:1]]
        return turns

    def __reduce__(self):  # a copy, or a file, begins with nothing
        return Remembered, ()


class Rotary(PositionalEncoding):
    """RoPE on queries and keys, in every layer.

    Args:
        head_dim: channels per head, even.
        base: 10000 in the paper and if it is not given, 100000 in SmolLM2.
        layout: ``"interleaved"`` or ``"half"``; it must be the one the weights were trained with.
        frequencies: which angles, in place of ``base``.

    Raises ValueError for what :class:`Frequencies` refuses, an unknown ``layout``, and both a
    ``base`` and ``frequencies``.
    """

    def __init__(
        self, head_dim: int, *, base: float | None = None, layout: str = "interleaved",
        frequencies: Frequencies | None = None,
    ):
        super().__init__()
        _check_layout(layout=layout)
        if frequencies is None:
            frequencies = Frequencies(head_dim, 10_000.0 if base is None else base)
        elif not hasattr(frequencies, "cos_sin"):
            raise ValueError(f"frequencies={frequencies!r}: give Frequencies({head_dim}, …), or a base")
        elif base is not None:
            raise ValueError(f"base={base!r} and frequencies={frequencies}: give one of them")
        elif frequencies.head_dim != head_dim:
            raise ValueError(f"head_dim={head_dim}, but frequencies={frequencies}: they must agree")
        self.head_dim, self.layout, self.frequencies = head_dim, layout, frequencies
        self._turns = Remembered()

    def rotate(self, q, k, q_positions, k_positions):
        _check_fit(q, q_positions, self.head_dim, "q", self.axes)
        _check_fit(k, k_positions, self.head_dim, "k", self.axes)
        length = self.frequencies.length(q_positions, k_positions)
        return tuple(
            turn(x, **self._turns(self.frequencies, p, length, result_dtype(x, p)), layout=self.layout)
            for x, p in ((q, q_positions), (k, k_positions))
        )

    def extra_repr(self):
        f = self.frequencies
        more = [f"{name}={value}" for name, value, default in
                (("rotary_dim", f.rotary_dim, None), ("scaling", f.scaling, None), ("p", f.p, 1.0))
                if value != default]
        return ", ".join([str(self.head_dim), f"base={f.base:g}", *more, f"layout={self.layout!r}"])
