r"""Where position can enter attention: five doors, one interface.

Every positional encoding of the course is a module that opens one or more of these doors:

=============================  ===========================================================
``embed(x, positions)``        token vectors, before the first layer
``rotate(q, k, ...)``          queries and keys
``content_bias(q, k, ...)``    scores before the scale; depends on content
``bias(...)``                  scores after the scale; content-free
``values(weights, ...)``       the weighted sum of values
=============================  ===========================================================

and attention computes, for every method alike (Vaswani et al. 2017, eq. 1, with the doors put in)

.. math:: \mathrm{softmax}\big((q' k'^\top + \text{content\_bias})\cdot\text{scale}
          + \text{bias} + \text{mask}\big)\, v + \text{values}

A door takes positions as a tensor ``[L]``, or ``[B, L]`` (one row for each of a batch), as a length, or as
:class:`Positions`, into which attention and the model turn them; by default tokens count from 0. Where a
position is n > 1 numbers, such as (row, column), there is one more dimension at the end: ``[L, n]`` or
``[B, L, n]``. How many numbers make up a position is up to the encoding (``axes``), never to the shape. A
relative offset is always ``r = k_position − q_position``: negative looks back, positive looks ahead.

**An encoding of your own** gets plain tensors at its doors, whoever opens them.

Some encodings are tables, and have nothing for a position outside, or between two entries. Where the numbers
can be read at no cost (:func:`.positions.readable`), such a position raises ValueError; where they can't (in
compiled code, under ``torch.func``, on a GPU), it gives NaN. It never gives another entry.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from .calls import explained
from .method import Method, Row
from .positions import Device, Positions, Where, at

DOORS = ("embed", "rotate", "content_bias", "bias", "values")
READERS = (*DOORS, "bias_by_offset", "dense", "vectors", "changes")  # of positions


def _with_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def plain(self: PositionalEncoding, *arguments: Any, **named: Any) -> Any:
        plainly = [x.tensor if isinstance(x, Positions) else x for x in arguments]
        named = {name: x.tensor if isinstance(x, Positions) else x for name, x in named.items()}
        return method(self, *plainly, **named)

    return plain


class PositionalEncoding(nn.Module):
    """Opens no door: the identity. A method overrides just the doors that it uses.

    Shapes: ``x`` is ``[B, L, d_model]``; ``q`` is ``[B, H, Lq, d_head]``; ``k`` is
    ``[B, H_kv, Lk, d_head]``; ``weights`` is ``[B, H, Lq, Lk]``.
    """

    scale: float | None = None
    """Factor on the scores; ``None`` stands for the usual ``1 / sqrt(d_head)``."""

    axes: int = 1
    """How many numbers a position is: 1 in a text, 2 in an image."""

    _doors: tuple[str, ...] = ()

    by_place: bool = False
    """Whether it goes by the order of the tensor too, where the queries are the last keys."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Explain calls that do not fit, and give classes outside this package positions as tensors."""
        super().__init_subclass__(**options)
        shut = PositionalEncoding
        cls._doors = tuple(door for door in DOORS if getattr(cls, door) is not getattr(shut, door))
        outside = not cls.__module__.startswith(__package__)
        for name in ("__init__", *READERS):
            method = vars(cls).get(name)
            if inspect.isfunction(method):
                method = _with_tensors(method) if outside and name in READERS else method
                setattr(cls, name, explained(method, cls.__name__))

    @property
    def reach(self) -> int | None:
        """The offset beyond which content_bias, bias and values no longer change: on each side, all keys from
        there on get what the key at this offset gets, whatever their content. None where there is none."""
        return None

    def changes(self, before: Where, now: Where) -> Tensor | None:
        """Whether the encoding treats the tokens at the positions ``before`` differently once the text has
        grown to the positions ``now``: ``[]`` or ``[B]``. None: never, so any model can keep a past."""
        return None

    def embed(self, x: Tensor, positions: Where = None, *, offset: int = 0) -> Tensor:
        """Token vectors with position mixed in, ``[B, L, d_model]``."""
        return x

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Queries and keys turned by their positions; only the number of channels of both may change."""
        return q, k

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor | None:
        """A term of the raw scores, broadcastable to ``[B, H, Lq, Lk]``; ``None`` adds nothing."""
        return None

    def bias(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor | None:
        """A term of the scaled scores, broadcastable to ``[B, H, Lq, Lk]``; ``None`` adds nothing."""
        return None

    def bias_by_offset(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor | None:
        """``bias`` without repetition, ``[H, Lq + Lk − 1]``, if it depends on offsets and these count
        up by 1: entry n belongs to r = k_positions[0] − q_positions[-1] + n. Otherwise None."""
        return None

    def values(
        self, weights: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor | None:
        """A term of the output, ``[B, H, Lq, d_head]``; ``None`` adds nothing."""
        return None

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """The door of an encoding that opens one: ``Rotary(64)(q, k)`` is ``Rotary(64).rotate(q, k)``."""
        if len(self.doors) != 1:
            what = " and ".join(self.doors) or "no door"
            raise TypeError(f"{type(self).__name__} opens {what}: call the door, not the encoding")
        return getattr(self, self.doors[0])(*arguments, **options)

    def token_dim(self, d_model: int) -> int:
        """Width of the token vectors that ``embed`` turns into vectors of width ``d_model``."""
        return d_model

    @property
    def doors(self) -> tuple[str, ...]:
        """The doors that this encoding opens.

        >>> NoPosition().doors
        ()
        """
        return self._doors


def doors_of(kind: type[PositionalEncoding]) -> tuple[str, ...]:
    """The doors that a class of encodings overrides."""
    return kind._doors


class NoPosition(PositionalEncoding):
    """No positional encoding (NoPE): all five doors stay shut (Haviv et al. 2022)."""


class Compose(PositionalEncoding):
    """Several encodings at once: the first two doors are chained, the other three are summed.

    A hybrid encoding is literally a composition: ``Compose(Learned(512, 64), bias)``.

    Raises ValueError when two parts ask for different scales (one softmax has one scale), or when
    those that open a door read positions of different ``axes``.
    """

    parts: Sequence[PositionalEncoding]

    def __init__(self, *parts: PositionalEncoding):
        super().__init__()
        for part in parts:
            if not isinstance(part, PositionalEncoding):
                raise TypeError(
                    f"Compose takes PositionalEncoding modules, not {type(part).__name__}: "
                    "build each part first, for instance Compose(Sinusoidal(64), NoPosition())"
                )
        scales = {part.scale for part in parts if part.scale is not None}
        if len(scales) > 1:
            raise ValueError(
                f"the parts ask for different scales {sorted(scales)}, but a softmax has one: "
                "set the attribute `scale` of one part to None"
            )
        its: Any = nn.ModuleList(parts)
        self.parts = its
        self.scale = scales.pop() if scales else None
        self.axes = common_axes(part for part in parts if part.doors)
        self.by_place = any(part.by_place for part in parts)

    @property
    def reach(self) -> int | None:
        reaches = [part.reach for part in self.parts if {"content_bias", "bias", "values"} & set(part.doors)]
        known = [reach for reach in reaches if reach is not None]
        return max(known, default=None) if len(known) == len(reaches) else None

    def embed(self, x: Tensor, positions: Where = None, **offset: int) -> Tensor:
        for part in self.parts:
            x = part.embed(x, positions, **offset)
        return x

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, **offset: int
    ) -> tuple[Tensor, Tensor]:
        for part in self.parts:
            q, k = part.rotate(q, k, q_positions, k_positions, **offset)
        return q, k

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, **offset: int
    ) -> Tensor | None:
        return _sum(part.content_bias(q, k, q_positions, k_positions, **offset) for part in self.parts)

    def bias(self, q_positions: Where, k_positions: Where, **offset: int) -> Tensor | None:
        return _sum(part.bias(q_positions, k_positions, **offset) for part in self.parts)

    def bias_by_offset(self, q_positions: Where, k_positions: Where, **offset: int) -> Tensor | None:
        terms = [
            part.bias_by_offset(q_positions, k_positions, **offset)
            for part in self.parts
            if "bias" in part.doors
        ]
        return None if any(term is None for term in terms) else _sum(terms)

    def changes(self, before: Where, now: Where) -> Tensor | None:
        return _sum(part.changes(before, now) for part in self.parts)  # of booleans: any of them

    def values(
        self, weights: Tensor, q_positions: Where = None, k_positions: Where = None, **offset: int
    ) -> Tensor | None:
        return _sum(part.values(weights, q_positions, k_positions, **offset) for part in self.parts)

    def token_dim(self, d_model: int) -> int:
        for part in reversed(self.parts):
            d_model = part.token_dim(d_model)
        return d_model

    @property
    def doors(self) -> tuple[str, ...]:
        return tuple(door for door in DOORS if any(door in part.doors for part in self.parts))


def _sum(terms: Iterable[Tensor | None]) -> Tensor | None:
    there = [term for term in terms if term is not None]
    return sum(there[1:], there[0]) if there else None


class Absolute(PositionalEncoding):
    """An encoding with one vector per position; by itself it is added to the token vector.

    A subclass gives ``vectors(positions)``. For other ways for a vector to meet its token, see
    :mod:`tutorial_lib.encodings.fusion`.
    """

    in_words = "an encoding with position vectors, such as Sinusoidal(64) or Learned(512, 64)"
    dim: int

    def vectors(self, positions: Where, *, offset: int = 0) -> Tensor:
        """The position vectors, ``[L, dim]`` or ``[B, L, dim]``."""
        raise NotImplementedError(f"{type(self).__name__} must give vectors(positions)")

    def embed(self, x: Tensor, positions: Where = None, *, offset: int = 0) -> Tensor:
        check_width(self, x, self.dim)
        return x + self.vectors(at(self, positions, x, offset=offset)).to(x.dtype)


def check_encoding(encoding: object, name: str = "encoding") -> None:
    """Raise TypeError unless it is an instance of :class:`PositionalEncoding`."""
    if isinstance(encoding, type) and issubclass(encoding, PositionalEncoding):
        what = encoding.__name__
        raise TypeError(f"{name} is the class {what}: give an instance of it, {what}(...)")
    if not isinstance(encoding, PositionalEncoding):
        raise TypeError(
            f"{name} is a {type(encoding).__name__}: give a PositionalEncoding, such as ALiBi(n_heads=8); "
            "build(name, ...) makes one by its name"
        )


def check_part(whole: PositionalEncoding, part: object, kind: Any) -> None:
    """Raise TypeError unless ``part`` is of this ``kind``, a class that has a name ``in_words``."""
    if not isinstance(part, kind):
        given = f"the class {part.__name__}" if isinstance(part, type) else type(part).__name__
        raise TypeError(f"{type(whole).__name__} takes {kind.in_words}, not {given}")


def check_width(encoding: PositionalEncoding, x: Tensor, dim: int) -> None:
    """Raise ValueError unless ``x`` are token vectors whose last axis has size ``dim``."""
    if not x.is_floating_point():
        raise ValueError(
            f"x has dtype {x.dtype}, but {type(encoding).__name__} embeds vectors [B, L, {dim}] of floats: "
            "call vectors(positions) for those of positions"
        )
    if x.shape[-1] != dim:
        raise ValueError(
            f"{type(encoding).__name__} was built for token vectors of width {dim}, but x has "
            f"shape {tuple(x.shape)}: give the encoding the width of the model's embeddings"
        )


def common_axes(parts: Iterable[PositionalEncoding]) -> int:
    """The axes of encodings that get the same positions; ValueError if they differ."""
    axes = {part.axes for part in parts}
    if len(axes) > 1:
        raise ValueError(
            f"the parts read positions of {' and '.join(map(str, sorted(axes)))} axes, but all get the "
            "same ones: let a part with 1 axis read a grid row by row, as Raster(part, width)"
        )
    return axes.pop() if axes else 1


def check_heads(encoding: PositionalEncoding, q: Tensor, head_dim: int, n_heads: int | None = None) -> None:
    """Raise ValueError unless ``q [B, H, L, D]`` has heads of this width (and number, if one is given)."""
    if q.shape[-1] != head_dim or n_heads not in (None, q.shape[1]):
        sizes = f"head_dim={head_dim}" if n_heads is None else f"n_heads={n_heads} and head_dim={head_dim}"
        raise ValueError(
            f"this {type(encoding).__name__} was built for {sizes}, but q has shape {tuple(q.shape)}: "
            "give it the heads of the model"
        )


def check_term(encoding: PositionalEncoding, door: str, term: Tensor | None, q: Tensor, k: Tensor) -> None:
    """Raise ValueError if ``term`` would spread the scores over more heads or rows than there are."""
    if term is not None and not broadcasts(term, (*q.shape[:-1], k.shape[-2])):
        raise ValueError(
            f"{type(encoding).__name__} has a {door} of shape {tuple(term.shape)}, which does not fit q "
            f"{tuple(q.shape)}, k {tuple(k.shape)}: build it for the heads of q, {q.shape[1]} of them"
        )


def repeat_heads(x: Tensor, q: Tensor) -> Tensor:
    """Keys or values ``[B, H_kv, L, D]``, each head repeated for every head of ``q`` that shares it."""
    return x if x.shape[1] == q.shape[1] else x.repeat_interleave(q.shape[1] // x.shape[1], 1)


def broadcasts(x: Tensor, full: tuple[int, ...]) -> bool:
    """Whether ``x`` can be expanded to the shape ``full``."""
    if x.ndim > len(full):
        return False
    ends = zip(x.shape, full[len(full) - x.ndim :], strict=True)  # torch 2.6 compiles no other zip
    for size, wanted in ends:
        if size not in (1, wanted):
            return False
    return True


def check_head_dim(head_dim: int, **tensors: Tensor) -> None:
    """Raise ValueError, naming the argument, unless each ``[B, H, L, D]`` has heads of this width."""
    for name, x in tensors.items():
        if x.shape[-1] != head_dim:
            raise ValueError(
                f"this rotation was built for head_dim={head_dim}, but {name} has shape "
                f"{tuple(x.shape)}: give it the width of one head"
            )


def check_pairs(head_dim: int, rotary_dim: int | None = None) -> int:
    """How many channels of a head turn; ValueError, naming the argument, unless they form pairs within it."""
    name, d = ("head_dim", head_dim) if rotary_dim is None else ("rotary_dim", rotary_dim)
    check_positive(**{"head_dim": head_dim, name: d})
    if d > head_dim:
        raise ValueError(f"rotary_dim={d}: it must be at most head_dim={head_dim}")
    if d % 2:
        raise ValueError(f"{name}={d}: a rotation needs pairs, so it must be even")
    return d


def check_one_of(allowed: tuple[str, ...], **values: str) -> None:
    """Raise ValueError, naming the argument, unless every value is one of those that are allowed."""
    for name, value in values.items():
        if value not in allowed:
            raise ValueError(f"{name}={value!r}: it must be one of {', '.join(map(repr, allowed))}")


def check_positive(**sizes: int) -> None:
    """Raise ValueError, naming the argument, unless every size is a positive integer."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name}={size!r}: it must be a positive integer")


def check_not_negative(**sizes: int) -> None:
    """Raise ValueError, naming the argument, unless every size is an integer, 0 or more."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ValueError(f"{name}={size!r}: it must be an integer, 0 or more")


def is_number(value: object) -> bool:
    """Whether ``value`` is a finite real number that a float can hold; True and False do not count."""
    most: Any = sys.float_info.max
    return isinstance(value, Real) and not isinstance(value, bool) and abs(value) <= most


def check_above_0(**values: float) -> None:
    """Raise ValueError, naming the argument, unless every value is a finite number above 0."""
    for name, value in values.items():
        if not (is_number(value) and value > 0):
            raise ValueError(f"{name}={value!r}: it must be a finite number above 0")


def check_std(std: float) -> None:
    """Raise ValueError unless ``std`` is a finite number, 0 or more."""
    if not (is_number(std) and std >= 0):
        raise ValueError(f"std={std!r}: it must be a finite number, 0 or more")


def constant(values: Sequence[float], device: Device = None) -> Tensor:
    """Numbers as a tensor in the widest float of the device, without waiting for a GPU."""
    device = torch.device(device or "cpu")
    dtype = torch.float32 if device.type == "mps" else torch.float64
    return torch.tensor(values, dtype=dtype, device="cpu").to(device, non_blocking=device.type == "cuda")


METHODS = [
    Method(
        names={"none": NoPosition},
        relative=True,
        lesson="10_frontier",
        page="nope",
        title="NoPE: no positions at all",
        says=(
            "A decoder finds out some order without any positional encoding, because its mask "
            "lets each token see one key more than the last. An encoder without positions reads a "
            "bag of words."
        ),
        where=("q_i is a query, k_j a key that it may see, d the width of a head: no position occurs."),
        words=("nope", "none"),
        code=(PositionalEncoding.rotate, PositionalEncoding.bias),
        make="NoPosition()",
        year=2022,
        arxiv="2203.16634",
        formula=r"$\mathrm{softmax}\big(q_i^\top k_j/\sqrt{d}\big),\qquad j\le i$",
        source="The plain decoder; Haviv et al. 2022, and Kazemnejad et al. 2023.",
        row=Row(
            name="No positions",
            formula=(
                r"$\mathrm{softmax}(q_i^\top k_j/\sqrt{d})$, with the causal mask",
                "an encoder knows no order; a decoder leaks it in",
            ),
            parameters="0",
            cost="nothing",
            longer="weaker at L; hardly\nminds more",
            later="hardly changes",
            used_by="Command R7B, Llama 4,\nSmolLM3: some layers",
            picture="mask",
        ),
        papers=("NoPE", "Mixed layers"),
        live="permutation",
        glossary="no-position-encoding",
        claims="[Ww]ithout (a )?position|NoPE|[Nn]o position",
        released="one without|no positions|without `rope`",
    ),
    Method(names={"compose": lambda *, parts: Compose(*parts)}, joins="hybrid"),
]
