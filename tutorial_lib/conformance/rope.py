"""What RoPE should do, and what it does with a bug in it: both predicted in float64.

:class:`Rope` is what somebody declares. :class:`Turn` is one exact prediction; :func:`mutations` lists what
a bug changes in it, so that two bugs are two changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..encodings import Frequencies, Llama3, MRoPE, PositionInterpolation, YaRN
from ..encodings.rotary import LAYOUTS, plain_theta
from ..encodings.scaling import Scaling

BASES = (1e4, 5e5, 1e6, 1e5, 1e7, 5e6, 100.0, 1e3, 4e4, 5e4, 1.5e5, 1.6e5, 2.5e5, 6e5, 2e6, 8e6, 1e9, 1e11)
"""Bases that released models or papers use, the usual ones first."""


@dataclass(frozen=True)
class Rope:
    """What your weights were trained with. What is None is measured where it can be.

    Args:
        head_dim: channels of a head.
        base: ``rope_theta``.
        layout: ``"half"`` or ``"interleaved"``.
        rotary_dim: how many channels turn.
        part: whether those are the first or the last ones.
        scaling: one of the library's (``YaRN(4, L=2048)``, …) or the dict of a ``config.json``.
        sections: pairs for each axis of positions ``[L, axes]``.
        order: of M-RoPE's pairs, ``"chunked"`` or ``"interleaved"``; ``"axial"`` if each axis has its own θ,
            ``"apart"`` if it also has channels of its own, in which the layout holds.

    Raises ValueError for a layout, part, order or ``rope_type`` that it does not know.
    """

    head_dim: int = 64
    base: float | None = None
    layout: str | None = None
    rotary_dim: int | None = None
    part: str = "first"
    scaling: Scaling | Mapping[str, Any] | None = None
    sections: tuple[int, ...] | None = None
    order: str = "chunked"

    def __post_init__(self) -> None:
        if self.layout not in (None, *LAYOUTS):
            raise ValueError(f"layout={self.layout!r}: it must be 'half', 'interleaved' or None (measured)")
        if self.part not in ("first", "last"):
            raise ValueError(f"part={self.part!r}: it must be 'first' or 'last', the channels that turn")
        if self.order not in ("chunked", "interleaved", "axial", "apart"):
            raise ValueError(f"order={self.order!r}: it must be 'chunked', 'interleaved', 'axial' or 'apart'")
        if isinstance(self.scaling, Mapping):
            base = self.scaling.get("rope_theta", self.base)
            share = self.scaling.get("partial_rotary_factor")
            if share is not None and self.rotary_dim is None:
                object.__setattr__(self, "rotary_dim", int(self.head_dim * share))
            object.__setattr__(self, "base", base)
            object.__setattr__(self, "scaling", scaling_of(self.scaling))

    def frequencies(self, base: float, rotary_dim: int | None = None) -> Any:
        scaling = self.scaling if isinstance(self.scaling, Scaling) else None
        d = rotary_dim or self.rotary_dim
        if self.sections is not None:
            options: dict[str, Any] = {
                "sections": self.sections,
                "order": "interleaved" if self.order == "interleaved" else "chunked",
            }
            return MRoPE(self.head_dim, base, d, scaling, **options)
        return Frequencies(self.head_dim, base, d, scaling)

    def turn(self, base: float, layout: str, rotary_dim: int | None = None, part: str = "") -> Turn:
        """The right prediction for one choice of what was left open."""
        its = self.frequencies(base, rotary_dim)
        theta, reads = its.theta(), tuple(its.reads()) if isinstance(its, MRoPE) else None
        if self.axial:
            theta = torch.cat([plain_theta(2 * pairs, base) for pairs in self.sections or ()])
        return Turn(
            theta,
            layout,
            self.head_dim,
            part or self.part,
            its.attention_factor,
            base=base,
            reads=reads,
            order=self._channels() if self.order == "apart" and layout == "half" else None,
        )

    @property
    def axial(self) -> bool:
        """Whether each axis has a list of θ of its own."""
        return self.sections is not None and self.order in ("axial", "apart")

    def _channels(self) -> Tensor:
        """The channels of axes that stand apart, in the order that they would have in two halves."""
        parts = torch.arange(self.head_dim).split([2 * pairs for pairs in self.sections or ()])
        return torch.cat([part.chunk(2)[half] for half in (0, 1) for part in parts])


def scaling_of(parameters: Mapping[str, Any]) -> Scaling | None:
    """The scaling that ``rope_parameters`` (or ``rope_scaling``) of a config.json asks for."""
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    kept: dict[str, Any] = {key: value for key, value in parameters.items() if value is not None}
    trained = kept.get("original_max_position_embeddings")
    if kind in ("default", "mrope"):
        return None
    if kind == "linear":
        return PositionInterpolation(kept["factor"])
    if kind == "llama3":
        return Llama3(
            kept["factor"],
            kept["original_max_position_embeddings"],
            kept["low_freq_factor"],
            kept["high_freq_factor"],
        )
    if kind == "yarn" and trained:
        s, attention = float(kept["factor"]), kept.get("attention_factor")
        if attention is None and "mscale" in kept and "mscale_all_dim" in kept:
            parts = (0.1 * kept[name] * math.log(s) + 1 for name in ("mscale", "mscale_all_dim"))
            attention = next(parts) / next(parts)
        ramp = "rounded index" if kept.get("truncate", True) else "index"
        low, high = kept.get("beta_slow", 1.0), kept.get("beta_fast", 32.0)
        return YaRN(s, trained, low, high, ramp=ramp, attention=attention)
    raise ValueError(f"rope_type={kind!r} in {dict(parameters)}: default, linear, llama3 and yarn are known")


@dataclass(frozen=True)
class Turn:
    """One way to turn ``x [..., L, D]`` at positions ``[L]`` (or ``[L, axes]``), right or with bugs in it."""

    theta: Tensor
    layout: str
    head_dim: int
    part: str = "first"
    factor: float = 1.0
    base: float = 1e4
    reads: tuple[int, ...] | None = None
    laid: str = ""  # the layout of the angles, if it is another one than that of the pairs
    out: str = ""  # the layout in which channels come out, if it is another one
    half: tuple[
        str, ...
    ] = ()  # x·cos + h(x)·sin, where h splits by one layout, joins by another; angles by a third
    times: float = 1.0  # what positions are multiplied by
    sign: float = 1.0  # of the sine, at last
    shift: float = 0.0
    counts: str = "given"  # from where: given, restart, on (from the first), first or last (one for all)
    form: str = "rotation"
    rounds: tuple[torch.dtype | None, ...] = (None, None, None)  # of positions, θ and angles
    swap: tuple[int, ...] | None = None  # the order in which the axes of positions are read
    order: Tensor | None = None  # of the channels, where axes stand apart
    theta_b: Tensor | None = None  # of the second channel of each pair, if it is another one

    def angles(self, positions: Tensor, theta: Tensor | None = None) -> Tensor:
        p = positions.double()
        if self.swap is not None:
            p = p[..., list(self.swap)]
        n = torch.arange(p.shape[0], dtype=p.dtype).view(-1, *[1] * (p.ndim - 1)).expand_as(p)
        places = {
            "given": p,
            "restart": n,
            "on": p[:1] + n,
            "stale": p,
            "heads": n,
            "lag": (p - 1).clamp(min=0),
        }
        p = (
            places[self.counts]
            if self.counts in places
            else p[[-self.counts.startswith("last")]].expand_as(p)
        )
        p = self.times * p + self.shift
        p = _rounded(p, self.rounds[0])
        theta = _rounded(self.theta if theta is None else theta, self.rounds[1])
        p = p[..., None] if self.reads is None else p[..., list(self.reads)]
        return _rounded(p * theta, self.rounds[2])

    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        if self.order is not None:
            turned = replace(self, order=None)(x[..., self.order], positions)
            return turned[..., self.order.argsort()]
        angle, d = self.angles(positions), 2 * len(self.theta)
        cos, sin = self.factor * angle.cos(), self.factor * angle.sin()
        if self.form == "sine rounded":
            cos = self.factor * replace(self, rounds=(None, None, None)).angles(positions).cos()
        if self.form == "swapped":
            cos, sin = sin, cos
        sin = self.sign * sin
        rest = x.shape[-1] - d
        turning, still = (x[..., :d], x[..., d:]) if self.part == "first" else (x[..., rest:], x[..., :rest])
        if self.half:
            split, join, laid = self.half
            a, b = _split(turning, split)
            turned = turning * _join(cos, cos, laid) + _join(-b, a, join) * _join(sin, sin, laid)
            return torch.cat([turned, still] if self.part == "first" else [still, turned], -1)
        cos_b, sin_b = cos, sin
        if self.theta_b is not None:
            angle = self.angles(positions, self.theta_b)
            cos_b, sin_b = self.factor * angle.cos(), self.factor * self.sign * angle.sin()
        if self.laid:  # a and b of a pair get the angles of two other pairs
            cos, cos_b = _split(_join(cos, cos, self.laid), self.layout)
            sin, sin_b = _split(_join(sin, sin, self.laid), self.layout)
        a, b = _split(turning, self.layout)
        first, second = {"plus, plus": (1, 1), "minus, minus": (-1, -1)}.get(self.form, (-1, 1))
        parts = a * cos + first * b * sin, b * cos_b + second * a * sin_b
        turned = _join(*parts, self.out or self.layout)
        return torch.cat([turned, still] if self.part == "first" else [still, turned], -1)


def _split(x: Tensor, layout: str) -> tuple[Tensor, Tensor]:
    if layout == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    return x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]


def _join(a: Tensor, b: Tensor, layout: str) -> Tensor:
    return torch.stack([a, b], -1).flatten(-2) if layout == "interleaved" else torch.cat([a, b], -1)


def _rounded(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    return x if dtype is None else x.to(dtype).double()


@dataclass(frozen=True)
class Measured:
    """What was seen of a function itself: its base, how many channels turn, how much lengths grow."""

    base: float | None = None
    channels: int | None = None
    factor: float = 1.0


NOTHING = Measured()


def mutations(
    turn: Turn, rope: Rope, measured: Measured = NOTHING, bases: tuple[float, ...] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """``(name, changes)`` of each bug that applies: ``replace(turn, **changes)`` is what it computes.

    ``bases`` are tried where a base can't be measured.
    """
    other = {"half": "interleaved", "interleaved": "half"}[turn.layout]
    if rope.layout is not None:
        yield "layout", {"layout": other}
    yield "mixed layouts", {"laid": other}
    yield "mixed layouts", {"layout": other, "laid": turn.layout}
    for split, join, laid in itertools.product(LAYOUTS, repeat=3):
        if split != join:
            yield "mixed layouts", {"half": (split, join, laid)}
    if turn.reads is not None:  # θ in the other layout, and the axes in that of the pairs
        first, second = _split(_join(turn.theta, turn.theta, other), turn.layout)
        yield "mixed layouts", {"theta": first, "theta_b": second}
    yield "permuted channels", {"out": other}
    yield "permuted channels", {"layout": other, "out": turn.layout}
    yield "sign", {"sign": -1.0}
    yield "minus lost", {"form": "plus, plus"}
    yield "minus lost", {"form": "minus, minus"}
    yield "cosine for sine", {"form": "swapped"}
    yield "turned twice", {"times": 2.0, "factor": turn.factor**2}
    yield "positions doubled", {"times": 2.0}
    yield "positions from 1", {"shift": 1.0}
    yield "positions lag by one", {"shift": -1.0}
    yield "positions lag by one", {"counts": "lag"}
    yield "positions restart", {"counts": "restart"}
    yield "stale angles", {"counts": "stale"}
    yield "along the heads", {"counts": "heads"}
    yield "packing", {"counts": "on"}
    yield "one position for the chunk", {"counts": "first"}
    yield "one position for the chunk", {"counts": "last"}
    yield from _other_angles(turn, rope, measured.base, bases)
    yield from _rounded_ones(turn, rope.scaling is None)
    yield from _other_parts(turn, rope, measured.channels)
    if all(abs(measured.factor / turn.factor**n - 1) > 0.01 for n in (0, 1, 2)):
        yield "attention factor unexpected", {"factor": measured.factor}
    if turn.factor != 1:
        yield "attention factor forgotten", {"factor": 1.0}
        yield "attention factor squared", {"factor": turn.factor**2}
    if turn.reads is not None and rope.sections is not None:
        yield from _other_axes(rope, len(turn.theta))


def _rounded_ones(turn: Turn, plain: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for dtype in (torch.bfloat16, torch.float16):
        yield "positions in bf16", {"rounds": (dtype, None, None)}
        t, d = torch.arange(len(turn.theta), dtype=torch.float64), 2 * len(turn.theta)
        power = torch.pow(turn.base, -_rounded(2 * t / d, dtype))
        for theta in (_rounded(1 / _rounded(1 / turn.theta, dtype), dtype), power, _rounded(power, dtype)):
            if plain and not torch.allclose(theta, turn.theta, rtol=1e-6):
                for positions, angles in itertools.product((dtype, None), repeat=2):
                    changes = {"theta": theta, "rounds": (positions, None, angles)}
                    yield "angles in half precision", changes
        for rounds in itertools.product((dtype, None), repeat=3):
            if rounds[1:] != (None, None):
                yield "angles in half precision", {"rounds": rounds}
        yield "angles in half precision", {"rounds": (None, None, dtype), "form": "sine rounded"}


def _other_angles(
    turn: Turn, rope: Rope, measured_base: float | None, bases: tuple[float, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    theta, b = turn.theta, turn.base
    pairs = rope.sections if rope.axial and rope.sections else (len(theta),)
    t, d = torch.cat([torch.arange(n, dtype=torch.float64) for n in pairs]), 2 * pairs[0]
    scaling: Any = rope.scaling
    plain = torch.pow(b, -2 * t / d)
    yield "inv_freq never filled", {"theta": t * 0}
    yield "no position", {"theta": t * 0}
    yield "inv_freq never filled", {"theta": t * 0 + 1}
    yield "frequencies reversed", {"theta": theta.flip(0)}
    if scaling is not None:
        scaled = theta / plain
        yield "scaling missing", {"theta": plain, "factor": 1.0}
        yield "scaling missing", {"theta": plain}
        yield "factor twice", {"theta": plain * scaled**2}
        yield "factor inverted", {"theta": plain / scaled}
        if isinstance(scaling, PositionInterpolation):
            yield "factor twice", {"theta": theta, "times": 1 / scaling.s}
        if isinstance(scaling, YaRN):
            names = {
                "rounded index": "ramp truncated",
                "index": "ramp not truncated",
                "wavelength": "ramp over wavelengths",
            }
            for ramp, name in names.items():
                if ramp != scaling.ramp:
                    turned: Any = replace(scaling, ramp=ramp)
                    yield name, {"theta": turned.theta(b, d)}
            yield "factor twice", {"times": 1 / scaling.s}
            squared: Any = replace(scaling, s=scaling.s**2)
            yield "factor twice", {"theta": squared.theta(b, d)}
            yield "scaling missing", {"theta": plain / scaling.s}
            yield "attention factor unexpected", {"factor": 0.1 * math.log(scaling.s) + 1}
    else:
        for s in (2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 64.0):
            yield "scaling unexpected", {"theta": plain / s}
    if measured_base is not None and abs(measured_base / b - 1) > 1e-3:
        bases = (*bases, measured_base)
        wide = round(d * math.log(b) / math.log(measured_base))  # b^(−2t/wide) falls as measured
        if wide % 2 == 0:
            yield "model's dimension", {"theta": torch.pow(b, -2 * t / wide) * (theta / plain)}
    for name, exponent in _exponents(t, d, rope):
        yield name, {"theta": torch.pow(b, -exponent) * (theta / plain)}
    for other in bases:
        if abs(other / b - 1) > 1e-3:
            yield "base", {"theta": torch.pow(other, -2 * t / d) * (theta / plain)}
            if scaling is not None:  # the ramp follows the base
                try:
                    yield "base", {"theta": scaling.theta(other, d)}
                except ValueError:  # no ramp for such a base
                    pass


def _exponents(t: Tensor, d: int, rope: Rope) -> Iterator[tuple[str, Tensor]]:
    yield "frequencies with d/2", 4 * t / d
    yield "frequencies with 2d", t / d
    if d > 2:
        yield "d − 1 for d", 2 * t / (d - 2)
        yield "d − 1 for d", 2 * t / (d - 1)
    if d != rope.head_dim:
        yield "model's dimension", 2 * t / rope.head_dim
    for heads in (2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64):
        yield "model's dimension", 2 * t / (heads * rope.head_dim)


def _other_parts(turn: Turn, rope: Rope, channels: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    d = 2 * len(turn.theta)
    if channels and channels % 2 == 0 and channels not in (d, turn.head_dim):
        yield "partial part", {"theta": rope.frequencies(turn.base, channels).theta()}
    if d < turn.head_dim:
        yield "partial part", {"part": "last" if turn.part == "first" else "first"}
        if rope.rotary_dim is not None:
            t = torch.arange(turn.head_dim // 2, dtype=torch.float64)
            yield "whole head turned", {"theta": torch.pow(turn.base, -2 * t / turn.head_dim)}
            # the first pairs of the whole head turn, the others have θ = 0
            kept = torch.pow(turn.base, -2 * t / turn.head_dim) * (t < d // 2)
            yield "partial part", {"theta": kept}


def _other_axes(rope: Rope, pairs: int) -> Iterator[tuple[str, dict[str, Any]]]:
    sections = rope.sections or ()
    n = len(sections)
    for order in itertools.permutations(range(n)):
        if order != tuple(range(n)):
            yield "axes swapped", {"swap": order}
            yield "sections", {"swap": order}
            cut = [axis for axis in order for _ in range(sections[axis])]
            yield "sections", {"reads": tuple(cut)}
            sizes = [sections[axis] for axis in order]
            yield "sections", {"reads": tuple(axis for axis in range(n) for _ in range(sizes[axis]))}
    chunked = tuple(axis for axis in range(n) for _ in range(sections[axis]))
    dealt = tuple(t % n if t < n * sections[t % n] else 0 for t in range(pairs))
    yield "sections", {"reads": chunked if rope.order == "interleaved" else dealt}
    yield "sections", {"reads": tuple(t % n for t in range(pairs))}
    yield "no position", {"reads": (0,) * pairs}
