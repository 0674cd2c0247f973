"""Where tokens stand: one value, made and checked once, at the outermost door.

:class:`tutorial_lib.model.Transformer` makes it in each call, and so do
:func:`tutorial_lib.attention.attention` and the doors of an encoding that are called directly with a
tensor, a length or nothing. From there on it is passed along unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, TypeGuard, TypeVar

import torch
from torch import Tensor, nn

Device: TypeAlias = torch.device | str | None
T = TypeVar("T")

WITHOUT_WAITING = ("cpu",)  # devices that answer at once
SMALL = (torch.int8, torch.uint8, torch.int16)  # too small to number the tokens of a long text


class Positions:
    """Positions of L tokens: ``[L]``, or ``[B, L]`` where each row of a batch has its own.

    Where a position is several numbers, such as (row, column), ``[L, axes]`` or ``[B, L, axes]``.

    Args:
        values: a length, for 0 … L − 1, or a tensor. Integers become int64.
        axes: how many numbers make up a position.
        offset: is added to all of them: after 99 tokens the next one has ``Positions(1, offset=99)``.
        device: that of a length.
        name: what messages call it.
        wait: whether to read the numbers even from a GPU, which first finishes all work under way.
        own: whether to copy the tensor, so that nobody else changes it.

    Raises ValueError for another shape, a length for several axes, numbers that are not finite, and a dtype
    that does not hold them; TypeError for anything but a tensor or a length.

    >>> Positions(3, offset=5)
    Positions(5 … 7)
    >>> Positions(torch.tensor([0, 1, 4])).first is None
    True
    """

    _first: Any  # an int, None, or ... until somebody asks

    def __init__(
        self,
        values: Tensor | int,
        axes: int = 1,
        *,
        offset: int = 0,
        device: Device = None,
        name: str = "positions",
        wait: bool = False,
        own: bool = True,
    ):
        if not _is_count(offset):
            raise TypeError(f"offset={offset!r}: it must be an integer, the position of the first token")
        if not isinstance(values, Tensor) and not _is_count(values):
            what = type(values).__name__
            raise TypeError(f"{name} are a {what}: give a tensor, such as torch.arange(8), or a length")
        first: Any = ...
        if isinstance(values, Tensor):
            _check_tensor(values, axes, name, wait)
            # a uint8 has no offsets below 0
            tensor = values.to(values.dtype if values.is_floating_point() else torch.long, copy=own)
            if offset:
                tensor = tensor + offset
                _check_tensor(tensor, axes, name, wait)
        elif axes > 1:
            raise ValueError(f"{name}={values}, but of {axes} axes: give a tensor {_form(axes)}")
        elif values < 0:
            raise ValueError(f"{name}={values}: a length is 0 or more")
        else:
            tensor, first = torch.arange(offset, offset + values, device=device), offset if values else None
        self._set(tensor, axes, first, None)
        if wait:
            self._first = self._asked(wait)

    def _set(self, tensor: Tensor, axes: int, first: Any, kept: dict[Any, Any] | None) -> Positions:
        self.tensor, self.axes, self._first, self._kept = tensor, axes, first, kept
        *rows, self.length = tensor.shape if axes == 1 else tensor.shape[:-1]
        self.rows = rows[0] if rows else 1
        return self

    def _like(self, tensor: Tensor, first: Any = ..., kept: dict[Any, Any] | None = None) -> Positions:
        return Positions.__new__(Positions)._set(tensor, self.axes, first, kept)

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        if isinstance(self._first, int):
            return f"Positions({self._first} … {self._first + self.length - 1})"
        return f"Positions(of shape {list(self.tensor.shape)})"

    @property
    def first(self) -> int | None:
        """The first position, if they count up by 1, and we know or can read that at no cost; else None."""
        if torch.compiler.is_compiling():
            return None
        if self._first is ...:
            self._first = self._asked()
        first: int | None = self._first
        return first

    def _asked(self, wait: bool = False) -> int | None:
        x = self.tensor
        if x.ndim != 1 or x.is_floating_point() or not len(x) or not readable(x, wait=wait):
            return None
        first, counts = torch.stack([x[0], (x.diff() == 1).all().long()]).tolist()  # one read, not two
        return first if counts else None

    def copy(self) -> Positions:
        """The same, with a tensor of their own."""
        return self._like(self.tensor.clone(), self._first)

    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest number, or None if there are none, or they can't be read."""
        if not torch.compiler.is_compiling() and isinstance(self._first, int):
            return self._first, self._first + self.length - 1
        return bounds(self.tensor)

    def narrow(self, start: int, n: int) -> Positions:
        """The positions of n tokens, from the one at ``start`` on."""
        if n == self.length:
            return self
        first = self._first + start if isinstance(self._first, int) and n else ...
        return self._like(self.tensor.narrow(-1 if self.axes == 1 else -2, start, n), first)

    def followed_by(self, more: Positions) -> Positions:
        """Both, one after the other. If only one of them has rows, the other is repeated for each."""
        along, parts = -1 if self.axes == 1 else -2, [self.tensor, more.tensor]
        if parts[0].shape[:along] != parts[1].shape[:along]:
            rows = torch.broadcast_shapes(*(x.shape[:along] for x in parts))
            parts = [x.expand(*rows, *x.shape[along:]) for x in parts]
        both = torch.cat(parts, along)
        counts_on = isinstance(self._first, int) and more._first == self._first + self.length
        return self._like(both, self._first if counts_on else ...)

    def offsets_to(self, keys: Positions) -> Tensor:
        """r = key − query for every pair: ``[Lq, Lk]``, or ``[B, Lq, Lk]`` if a side has rows; with several
        axes ``[…, Lq, Lk, axes]``.

        >>> Positions(2, offset=2).offsets_to(Positions(4))
        tensor([[-2, -1,  0,  1],
                [-3, -2, -1,  0]])
        """
        return keys.once(_offsets, self, keys)

    def line_to(self, keys: Positions) -> Tensor | None:
        """The different offsets in order, ``[Lq + Lk − 1]``, if both sides are known to count up by 1: the
        row of the last query begins at the first of them, the one before it at the next."""
        if self.first is None or keys.first is None:
            return None
        lowest = keys.first - self.first - self.length + 1
        return torch.arange(lowest, lowest + self.length + keys.length - 1, device=keys.tensor.device)

    def shared(self) -> Positions:
        """The same positions, for all layers of one forward: what is computed :meth:`once` is kept with them.

        So let go of them when the forward ends, and change no encoding before that.
        """
        return self._like(self.tensor, self._first, None if torch.compiler.is_compiling() else {})

    def once(self, compute: Callable[..., T], *arguments: Any) -> T:
        """``compute(*arguments)``, or what a call with these very objects gave before, if it is kept.

        What takes part in a gradient is not kept: when a checkpoint runs one layer again, no other layer is
        there to take it from.
        """
        if self._kept is None:
            return compute(*arguments)
        key = (compute, *map(id, arguments), torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        if key not in self._kept:
            result = compute(*arguments)
            if _takes_part(result):
                return result
            # keep the arguments alive, so that no other object gets one of their ids
            self._kept[key] = result, [x for x in arguments if x is not self]
        kept: T = self._kept[key][0]
        return kept


Where: TypeAlias = Positions | Tensor | int | None
"""What a door takes for positions: a value made before, a tensor, a length, or nothing: 0 … L − 1."""


def pair(
    encoding: Any,
    q_positions: Where,
    k_positions: Where,
    q: Tensor | None = None,
    k: Tensor | None = None,
    *,
    offset: int = 0,
    names: tuple[str, str] = ("q_positions", "k_positions"),
) -> tuple[Positions, Positions]:
    """Positions of queries and keys ``[B, …, L, D]``, as ``encoding`` reads them: by default keys count from
    ``offset`` on, and the queries are the last of them. ValueError if they do not fit."""
    heads = q is not None and names[0] != names[1]  # and no token vectors, of which :func:`at` asks
    if isinstance(k_positions, Positions) and not offset:
        keys = k_positions
    else:
        if heads:
            _check_heads(q=q, k=k)
        keys = _made(encoding, k_positions, k, offset, names[1])
    if isinstance(q_positions, Positions) and not offset:
        queries = q_positions
    elif q_positions is k_positions and (q is k or isinstance(q_positions, Tensor)):
        queries = keys
    elif q_positions is None and q is not None:
        queries = _last(q.shape[-2], keys)
    elif isinstance(q_positions, int) and _is_count(q_positions):
        queries = _last(q_positions, keys)
    else:
        queries = _made(encoding, q_positions, q, offset, names[0])
    for name, its, x in ((names[1], keys, k), (names[0], queries, q)):
        if (
            its.axes != encoding.axes
            or x is not None
            and (
                its.length != x.shape[-2]
                or its.rows not in (1, x.shape[0])
                or its.tensor.device != x.device
                # rows for a batch, but heads without a batch: each would broadcast over the other
                or its.rows > 1
                and x.ndim == 3
                and heads
            )
        ):
            _refuse(name, its, encoding, x)
    return queries, keys


def at(encoding: Any, positions: Where, x: Tensor | None = None, *, offset: int = 0) -> Positions:
    """The positions of the tokens ``x [B, …, L, D]``, by default counted from ``offset`` on. ValueError if
    they do not fit."""
    return pair(encoding, positions, positions, x, x, offset=offset, names=("positions", "positions"))[1]


def _check_heads(**heads: Tensor | None) -> None:
    """For a door that is called directly: attention has already checked its own."""
    for name, x in heads.items():
        if x is not None and not x.is_floating_point():
            raise ValueError(f"{name} has dtype {x.dtype}: give floats")


def _made(encoding: Any, given: Where, x: Tensor | None, offset: int, name: str) -> Positions:
    if isinstance(given, Positions):
        raise ValueError(f"offset={offset}, but {name} are {given}: let those begin there")
    if encoding.axes > 1 and (given is None or _is_count(given)):
        raise ValueError(
            f"{type(encoding).__name__} reads positions of {encoding.axes} axes, and those have no default: "
            f"give {name}, for instance grid(7, 7) for an image of 7 × 7 tokens"
        )
    values: Any = x.shape[-2] if given is None and x is not None else given
    device = None if x is None else x.device
    return Positions(values, encoding.axes, offset=offset, device=device, name=name, own=False)


def _last(n_q: int, keys: Positions) -> Positions:
    if n_q < 0:
        raise ValueError(f"q_positions={n_q}: a length is 0 or more")
    if n_q > keys.length:
        raise ValueError(
            f"q has {n_q} tokens and k {keys.length}: queries that are not the last keys have no default "
            "positions, so give q_positions"
        )
    return keys.narrow(keys.length - n_q, n_q)


def _refuse(name: str, its: Positions, encoding: Any, x: Any) -> NoReturn:
    if its.axes != encoding.axes:
        reader, axes = type(encoding).__name__, encoding.axes
        raise ValueError(f"{name} have {its.axes} axes, but {reader} reads {axes}: give {_form(axes)}")
    if its.tensor.device != x.device:
        where = its.tensor.device
        raise ValueError(f"{name} are on {where}, but the tokens are on {x.device}: move them there")
    if its.rows == x.shape[0] and its.length == x.shape[-2]:
        raise ValueError(
            f"{name} have {its.rows} rows, but {name[0]} {tuple(x.shape)} has no batch or no heads: give it "
            f"as [B, H, L, D], such as {name[0]}.unsqueeze(1) for one head"
        )
    raise ValueError(
        f"{name} have shape {tuple(its.tensor.shape)}, but the batch has {x.shape[0]} rows of length "
        f"{x.shape[-2]}: give one position per token, {_form(its.axes)}"
    )


def _check_tensor(positions: Tensor, axes: int, name: str, wait: bool) -> None:
    dtype, shape = positions.dtype, tuple(positions.shape)
    if dtype == torch.bool or dtype.is_complex:
        raise ValueError(f"{name} have dtype {dtype}: they must be integers or floats")
    if dtype.is_floating_point:
        _check_floats(positions, name, wait)
    if len(shape) not in ((1, 2) if axes == 1 else (2, 3)) or axes > 1 and shape[-1] != axes:
        raise ValueError(f"{name} have shape {shape}: they must be {_form(axes)}")
    if axes == 1 and dtype in SMALL and shape[-1] > torch.iinfo(dtype).max + 1:
        raise ValueError(
            f"{name} are {shape[-1]} numbers of dtype {dtype}, which counts to {torch.iinfo(dtype).max} and "
            f"then starts again from below: give int64, such as torch.arange({shape[-1]})"
        )


def _check_floats(positions: Tensor, name: str, wait: bool) -> None:
    """Half precision can't hold all whole numbers; wider floats can, below 2²⁴ and 2⁵³."""
    dtype = positions.dtype
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"{name} have dtype {dtype}, which merges neighbours (257 is 256 in bfloat16, 2049 is 2048 in "
            "float16): give integers, such as torch.arange(8), or floats of 32 or 64 bits, and never convert "
            "them with a model"
        )
    limit = 2 / torch.finfo(dtype).eps
    if readable(positions, wait=wait) and not (positions.abs() < limit).all():
        if not positions.isfinite().all():
            raise ValueError(f"{name} are not all finite: NaN and infinity are no places")
        raise ValueError(
            f"{name} reach {positions.abs().max().item():.0f}, but {dtype} merges neighbours from "
            f"{limit:.0f} on: give integers, such as torch.arange(8)"
        )


def _form(axes: int) -> str:
    return "[L] or [B, L]" if axes == 1 else f"[L, {axes}] or [B, L, {axes}]"


def _takes_part(result: Any) -> bool:
    """Whether it is, or holds, a tensor that wants a gradient."""
    if isinstance(result, Tensor):
        return result.requires_grad
    parts = result if isinstance(result, tuple) else getattr(result, "tensors", ())
    return any(map(_takes_part, parts))


def _is_count(x: object) -> TypeGuard[int]:
    return isinstance(x, int) and not isinstance(x, bool)


def _offsets(queries: Positions, keys: Positions) -> Tensor:
    if queries.rows != keys.rows and 1 not in (queries.rows, keys.rows):
        raise ValueError(
            f"q_positions {tuple(queries.tensor.shape)} and k_positions {tuple(keys.tensor.shape)} "
            "must have the same number of rows"
        )
    along = -1 if keys.axes == 1 else -2
    q, k = queries.tensor.unsqueeze(along), keys.tensor.unsqueeze(along - 1)
    if q.is_floating_point() or k.is_floating_point():
        return (widest_float(k) - widest_float(q)).to(result_dtype(q, k))
    return k - q


def readable(x: Tensor, *, wait: bool = False) -> bool:
    """Whether the numbers of ``x`` can be read, and at once: on a GPU each read waits for all work under way,
    which ``wait`` allows. In compiled code, under ``torch.func``, on "meta" and in a FakeTensor there are no
    numbers to read.
    """
    return (
        not torch.compiler.is_compiling()
        and (wait or x.device.type in WITHOUT_WAITING)
        and not x.is_meta
        and type(x) in (Tensor, nn.Parameter)
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def bounds(x: Tensor) -> tuple[float, float] | None:
    """The lowest and the highest number, or None if there are none, or they can't be read."""
    if not readable(x) or not x.numel():
        return None
    low, high = x.aminmax()
    return low.item(), high.item()


def widest_float(x: Tensor) -> Tensor:
    """Numbers in the widest float of their device, float64 (float32 on MPS): for all that is computed
    from positions. A float32 angle of 1e6 radians is off by 0.03, and bfloat16 keeps 769 of the integers
    0…4095 apart.
    """
    return x.to(widest(x.device))


def widest(device: torch.device | str | None) -> torch.dtype:
    """The dtype of :func:`widest_float`."""
    device = torch.get_default_device() if device is None else torch.device(device)
    return torch.float32 if device.type == "mps" else torch.float64


def result_dtype(*tensors: Tensor) -> torch.dtype:
    """What the result is rounded to in the end: float64 if a tensor has it, otherwise float32.

    >>> result_dtype(torch.arange(3), torch.zeros(3, dtype=torch.bfloat16))
    torch.float32
    """
    for x in tensors:
        if x.dtype == torch.float64:
            return torch.float64
    return torch.float32
