"""``bias(Lq, Lk)``: which bias on the scores it is, or which bug it has.

A softmax does not see what is added to a whole row, so every row is compared after its own entry (r = 0) is
taken away; and in a causal model nobody sees the keys ahead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..encodings.alibi import slopes
from ..encodings.t5 import bucket
from .report import FAILED, OPEN, Finding, Report, passed, undecided

KINDS = ("alibi", "t5", "clipped")
DIMENSIONS = (8, 16, 32, 40, 48, 64, 80, 96, 128, 256)
FAR = 300
Index = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Bias:
    """What your weights were trained with; None is measured where it can be.

    Args:
        kind: ``"alibi"``, ``"t5"`` (buckets) or ``"clipped"`` (one entry for each offset up to ±k).
        causal: whether a mask hides the keys ahead.
        head_dim: for a bias that is divided by √head_dim by mistake.
        table: the learned table ``[heads, entries]``; without it only the borders of buckets are tested.
        n_buckets, max_distance: those of T5.

    Raises ValueError for an unknown kind.
    """

    kind: str | None = None
    causal: bool = True
    head_dim: int | None = None
    table: Tensor | None = None
    n_buckets: int = 32
    max_distance: int = 128

    def __post_init__(self) -> None:
        if self.kind not in (None, *KINDS):
            raise ValueError(f"kind={self.kind!r}: it must be 'alibi', 't5', 'clipped' or None (measured)")


@dataclass(frozen=True)
class Added:
    """A prediction: ``of(r)`` gives ``[H, *r.shape]`` (or entries of a table) for offsets r."""

    of: Callable[[Tensor], Tensor]
    late: str = ""  # queries count from 0 (restart), one too few with a cache (lag), or all as the last
    ahead: str = ""  # keys ahead count as the query itself (clamped), or are hidden
    mirrored: bool = False
    scale: float = 1.0
    dtype: torch.dtype | None = None  # in which positions are held, their differences, or both
    rounds: tuple[bool, bool] = (False, False)

    def __call__(self, n: int, m: int) -> Tensor:
        i, j = torch.arange(m - n, m)[:, None], torch.arange(m)
        if self.late == "restart":
            i = i - (m - n)
        elif self.late == "lag" and n < m:
            i = i - 1
        elif self.late == "last":
            i = i * 0 + m - 1
        r = self._rounded(j, 0) - self._rounded(i, 0)
        r = self._rounded(r, 1) * (-1 if self.mirrored else 1)
        ahead = r > 0
        y = self.scale * self.of(r.clamp(max=0) if self.ahead == "clamped" else r).double()
        return y.masked_fill(ahead, -torch.inf) if self.ahead == "hidden" else y

    def _rounded(self, x: Tensor, which: int) -> Tensor:
        return x.to(self.dtype).double() if self.dtype is not None and self.rounds[which] else x


def check_bias(function: Callable[..., Any], declared: Bias) -> Report:
    """The report on ``function(Lq, Lk)``."""
    evidence = _Evidence(function, declared.causal)
    report = Report("bias(Lq, Lk)")
    report.findings = [evidence.golden(declared, report.measured)]
    own = "a bias is told two lengths, and no positions"
    report.findings += [
        evidence.shift(report.findings[0]),
        undecided("causality", "a bias does not say which keys are masked"),
        evidence.cache(report.findings[0]),
        undecided("padding", own + ": hide the padding by a mask"),
        undecided("packing", own + ": hide other documents by a mask"),
        evidence.dtype(),
    ]
    return report


class _Evidence:
    def __init__(self, function: Callable[..., Any], causal: bool):
        self.function, self.causal = function, causal
        self.far = (8 if causal else FAR, FAR)  # in a causal model late rows see all that there is
        self.shapes = [(12, 12), (40, 40), (1, 12), (5, 12), self.far, (1, FAR)]
        self.errors: dict[tuple[int, int], str] = {}
        self.given: dict[tuple[int, int], Tensor] = {}
        for shape in self.shapes:
            try:
                with torch.no_grad():
                    self.given[shape] = _heads(function(*shape), shape)
            except Exception as error:
                self.errors[shape] = f"{type(error).__name__}: {error}"[:200]
        if (12, 12) not in self.given:
            raise ValueError(
                f"bias(12, 12) failed ({self.errors[12, 12]}): it must take the numbers of queries and keys "
                "and return [H, Lq, Lk]"
            )
        self.n_heads = len(self.given[12, 12])

    def seen(self, shape: tuple[int, int], bias: Tensor | None = None) -> Tensor:
        """The entries that matter, each less that of its query's own place."""
        less, visible = self.less(shape, self.given[shape] if bias is None else bias)
        return less[:, visible]

    def less(self, shape: tuple[int, int], bias: Tensor) -> tuple[Tensor, Tensor]:
        n, m = shape
        own = torch.arange(m - n, m)
        if n > 64:  # three rows tell enough
            few = torch.tensor([0, n // 2, n - 1])
            bias, own = bias[:, few], own[few]
        bias = bias.double()
        its = bias.gather(-1, own[:, None].expand(len(bias), len(own), 1))
        less = bias - its.where(its.isfinite(), bias[..., :1])
        visible = (
            torch.arange(m) <= own[:, None] if self.causal else torch.ones(len(own), m, dtype=torch.bool)
        )
        return less, visible

    def tolerance(self, shape: tuple[int, int]) -> float:
        top = float(self.seen(shape).abs().nan_to_num(0, 0, 0).max())
        dtype = self.given[shape].dtype
        return (1e-5 if dtype.itemsize >= 4 else 2 * torch.finfo(dtype).eps) * top + 1e-9

    def fits(self, added: Added, shapes: Sequence[tuple[int, int]] | None = None) -> bool:
        for shape in self.shapes if shapes is None else shapes:
            if shape in self.given:
                try:
                    yours, theirs = self.seen(shape), self.seen(shape, added(*shape))
                except (IndexError, ValueError, RuntimeError):
                    return False
                near = (yours - theirs).abs() <= self.tolerance(shape)
                if not bool((near | (yours == theirs)).all()):  # infinities, too
                    return False
        return True

    def same_classes(self, added: Added) -> bool:
        """Whether the same entries are equal, where nobody knows the table."""
        for shape in self.given:
            if not torch.equal(_classes(self.seen(shape)), _classes(self.seen(shape, added(*shape)))):
                return False
        return True

    # ---- promises ----
    def golden(self, declared: Bias, measured: dict[str, Any]) -> Finding:
        kind = declared.kind or self.kind()
        measured |= {"kind": kind, "heads": self.n_heads}
        if float(self.seen((12, 12)).abs().max()) == 0:
            names = ("no position", "table read i − j")
            if declared.kind == "alibi" or (
                declared.table is not None and declared.table.unique().numel() > 1
            ):
                says = "The bias is the same for all keys that a query sees."
                return Finding("golden values", FAILED, says, names, shown="bias(12, 12)")
            because = "the bias is the same everywhere (an untrained table, or only ahead of the query?)"
            return undecided("golden values", because, names)
        if kind == "alibi":
            return self._alibi(declared)
        return self._table(declared, kind)

    def kind(self) -> str:
        row = self.given[12, 12][:, -1].double()
        steps = row.diff()
        if bool(((steps - steps.mean(-1, keepdim=True)).abs() <= 1e-2 * row.abs().max() + 1e-9).all()):
            return "alibi"
        near = self.given.get((40, 40), self.given[12, 12])[:, -1]
        entries = len(torch.unique(near, dim=-1).T)
        exact = near[:, 1:].T.flip(0)[: entries - 1]
        clipped = entries < near.shape[-1] - 1 and len(torch.unique(exact, dim=0)) == len(exact)
        return "clipped" if clipped and not self._is_t5() else "t5"

    def _is_t5(self) -> bool:
        return any(self.same_classes(_t5(Bias(causal=causal), None)) for causal in (True, False))

    def _alibi(self, declared: Bias) -> Finding:
        right = _alibi(slopes(self.n_heads))
        if self.causal and self.fits(right):
            return passed(
                "golden values", f"The numbers are ALiBi's with the slopes of {self.n_heads} heads."
            )
        if not self.causal and self.fits(Added(_absolute(slopes(self.n_heads)))):
            says = "−m·|i − j| is what some encoders have, and it does not tell left from right"
            return undecided(
                "golden values", f"{says}: compare with how yours was trained", ("bias is a mirror",)
            )
        found = [name for name, wrong in _wrong_alibi(self.n_heads, declared) if self.fits(wrong)]
        also: list[str] = []
        if not found:
            for (a, one), (b, two) in itertools.combinations(_changes(declared), 2):
                if not one.keys() & two.keys() and self.fits(replace(right, **one, **two)):
                    found.append(a)
                    also.append(b)
            for a, m in _slopes(self.n_heads):
                for b, two in _changes(declared):
                    if self.fits(replace(_alibi(m), **two)):
                        found.append(a)
                        also.append(b)
        return self._finding(right, found, also)

    def _table(self, declared: Bias, kind: str) -> Finding:
        table = declared.table
        if table is not None and table.shape[0] != self.n_heads:
            table = table.T
        rights = [_t5(declared, table)] if kind == "t5" else list(_clipped(table))
        fits = self.fits if table is not None else self.same_classes
        if any(fits(right) for right in rights):
            if kind == "t5" and self.far in self.errors and (40, 40) in self.given:
                says = f"bias{self.far} failed: {self.errors[self.far]}. T5 has no longest text."
                return Finding("golden values", FAILED, says, ("bucket overflow",), shown=f"bias{self.far}")
            says = f"The {'buckets are T5s' if kind == 't5' else 'offsets are clipped as they should be'}"
            if table is None:
                says += "; its entries, their order and their sign need table=…, and were not tested"
            return passed("golden values", says + ".")
        wrong = list(_wrong_table(declared, table, kind, rights))
        found = [name for name, added in wrong if fits(added)]
        if not found and table is not None and kind == "t5" and declared.causal and self._half_read(table):
            found = ["bidirectional buckets"]
        also: list[str] = []
        if not found and table is not None:
            for name, added in wrong:
                for other, change in _changes(declared):
                    if fits(replace(added, **change)):
                        found.append(name)
                        also.append(other)
        return self._finding(rights[0] if rights else None, found, also, table is not None)

    def _half_read(self, table: Tensor) -> bool:
        """Whether far keys, too, have entries of the first half of the table."""
        row = self.given[1, FAR][:, 0].double() if (1, FAR) in self.given else table[:, :1].double()
        off, entry = (row[:, :, None] - table[:, None].double()).abs().amax(0).min(-1)
        return float(off.max()) < 1e-5 and 0 < int(entry.max()) < table.shape[1] // 2

    def _finding(self, right: Added | None, found: list[str], also: list[str], shown: bool = True) -> Finding:
        says = "The numbers are those of a known bug." if found else "This is not one of the known bugs."
        text, error = "", None
        for shape in self.given if right is not None and shown else ():
            assert right is not None
            (yours, visible), (theirs, _) = (
                self.less(shape, self.given[shape]),
                self.less(shape, right(*shape)),
            )
            off = ((yours - theirs).abs() > self.tolerance(shape)) & visible
            if bool(off.any()):
                error = float((yours - theirs).abs()[off].max())
                h, i, j = off.nonzero()[0].tolist()
                text = f"bias{shape}[{h}, {i}, {j}] less that of the query's own place: "
                text += f"yours {yours[h, i, j]:.5g}, right {theirs[h, i, j]:.5g}"
                break
        unique = tuple(dict.fromkeys(found))
        return Finding(
            "golden values",
            FAILED,
            says,
            unique,
            tuple(n for n in dict.fromkeys(also) if n not in unique),
            text,
            error,
        )

    def shift(self, golden: Finding) -> Finding:
        bias, tolerance = self.given[12, 12].double(), self.tolerance((12, 12))
        less = bias - bias.diagonal(dim1=-2, dim2=-1)[..., None]
        visible = (
            torch.ones(11, 11, dtype=torch.bool).tril()
            if self.causal
            else torch.ones(11, 11, dtype=torch.bool)
        )
        error = float((less[:, 1:, 1:] - less[:, :-1, :-1])[:, visible].abs().max())
        if error <= 2 * tolerance:
            return passed("shift", "Only the offset j − i counts.")
        return Finding(
            "shift",
            FAILED,
            f"The same offset has biases that differ by {error:.3g}.",
            golden.bugs,
            error=error,
        )

    def cache(self, golden: Finding) -> Finding:
        missing = [shape for shape in ((1, 12), (5, 12)) if shape not in self.given]
        if missing:
            return undecided("cache", f"bias{missing[0]} raised {self.errors[missing[0]]}")
        worst = 0.0
        for shape in ((1, 12), (5, 12)):
            late = self.seen(shape, self.given[12, 12][:, -shape[0] :])
            worst = max(worst, float((self.seen(shape) - late).abs().nan_to_num(math.inf).max()))
        raw, rows = self.given[1, 12][:, 0], self.given[12, 12]
        if bool((raw == rows[:, 0]).all()) and not bool((raw == rows[:, -1]).all()):
            says = "bias(1, 12) is the first row of bias(12, 12), not the last."
            if worst <= 2 * self.tolerance((12, 12)):
                says += " Here they differ by a constant, which a softmax does not see"
                return Finding("cache", OPEN, says + ", but anything else would.", ("bias restarts",))
            return Finding("cache", FAILED, says, ("bias restarts",), (), "bias(1, 12)", worst)
        if worst <= 2 * self.tolerance((12, 12)):
            return passed("cache", "bias(1, Lk) is the last row of bias(Lk, Lk).")
        says = "bias(1, 12) or bias(5, 12) is not what bias(12, 12) ends with."
        return Finding("cache", FAILED, says, golden.bugs, golden.also, "bias(1, 12)", worst)

    def dtype(self) -> Finding:
        if (1, FAR) not in self.given:
            return undecided("dtype", f"bias(1, {FAR}) raised {self.errors[1, FAR]}")
        row = self.given[1, FAR]
        if row.dtype.itemsize >= 4:
            return passed("dtype", f"The bias is {str(row.dtype).removeprefix('torch.')}.")
        steps = row[..., -12:].double().diff()
        if self.kind() != "alibi" or bool((steps.abs() > 0).all()):
            return passed("dtype", "Near the query neighbours still differ in 16 bits.")
        says = f"At {FAR} keys neighbours next to the query get the same bias: 16 bits do not hold it."
        return Finding("dtype", FAILED, says, ("positions in bf16",), shown=f"bias(1, {FAR})")


def _heads(given: Any, shape: tuple[int, int]) -> Tensor:
    if not isinstance(given, Tensor):
        raise TypeError(f"it returned a {type(given).__name__}, not a tensor")
    bias: Tensor = given.detach()
    while bias.ndim > 3:
        bias = bias[0]
    bias = bias[None] if bias.ndim == 2 else bias
    if bias.shape[1:] == (1, shape[1]) and shape[0] > 1:  # m·j, one row for all queries
        bias = bias.expand(-1, *shape)
    if tuple(bias.shape[1:]) != shape:
        raise ValueError(f"it returned {tuple(bias.shape)}")
    return bias


def _classes(entries: Tensor) -> Tensor:
    """For each place, the first place with the same entries in all heads."""
    rounded = (entries / (entries.abs().max() + 1e-30) * 1e5).round()
    _, inverse = torch.unique(rounded, dim=-1, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(inverse)).scatter_reduce(
        0, inverse, torch.arange(len(inverse)), "amin"
    )
    return torch.take(first, inverse)


# ---- ALiBi ----
def _alibi(m: Tensor) -> Added:
    return Added(lambda r: m.view(-1, *[1] * r.ndim) * r.double())


def _absolute(m: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda r: -m.view(-1, *[1] * r.ndim) * r.double().abs()


def _slopes(n: int) -> Iterator[tuple[str, Tensor]]:
    h = torch.arange(1, n + 1, dtype=torch.float64)
    lower = 2 ** (n.bit_length() - 1)
    yield "slopes", 2 ** (-8 * h / n)
    yield "slopes", slopes(2 * lower)[:n]
    yield "slopes", torch.cat([slopes(lower), slopes(2 * lower)])[:n]
    yield "slopes", torch.cat([slopes(lower), slopes(2 * lower)[1::2]])[:n]
    yield "slopes", torch.cat([slopes(2 * lower)[0::2][: n - lower], slopes(lower)])
    yield "slopes", slopes(n).sort(descending=True).values
    yield "slopes", slopes(n).flip(0)
    yield "slopes", 2 ** (-8 * h / lower)
    yield "slopes", torch.cat([slopes(lower), (2 ** (-8 * h / n))[lower:]])
    yield "slopes", 2 ** (-h)
    yield "slopes", 2 ** (-4 * h / n)
    yield "slopes from 1", 2 ** (-8 * (h - 1) / n)
    early = slopes(lower) * 2 ** (8 / lower), slopes(2 * lower)[0::2][: n - lower] * 2 ** (4 / lower)
    yield "slopes from 1", torch.cat(early)
    if n > 1:
        yield "slopes from 1", 2 ** (-8 * (h - 1) / (n - 1))


def _changes(declared: Bias) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "bias sign", {"scale": -1.0}
    yield "table read i − j", {"mirrored": True}
    yield "bias restarts", {"late": "restart"}
    for ahead in ("", "clamped", "hidden") if declared.causal else ("",):
        yield "positions lag by one", {"late": "lag", "ahead": ahead}
        yield "one position for the chunk", {"late": "last", "ahead": ahead}
    for d in (declared.head_dim,) if declared.head_dim else DIMENSIONS:
        yield "bias before the scale", {"scale": d**-0.5}
    for dtype in (torch.bfloat16, torch.float16):
        for rounds in ((True, False), (True, True), (False, True)):
            yield "positions in bf16", {"dtype": dtype, "rounds": rounds}


def _wrong_alibi(n: int, declared: Bias) -> Iterator[tuple[str, Added]]:
    right = _alibi(slopes(n))
    if not declared.causal:
        yield "bias signed in both directions", right
        right = replace(right, of=_absolute(slopes(n)))
    for name, m in _slopes(n):
        if not torch.equal(m, slopes(n)):
            yield name, _alibi(m) if declared.causal else Added(_absolute(m))
    for name, changes in _changes(declared):
        yield name, replace(right, **changes)


# ---- tables ----
def _read(table: Tensor | None, index: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The entries of a table; without one, numbers that are all different stand for them."""

    def of(r: Tensor) -> Tensor:
        entries = index(r.long())
        if table is not None:
            return table.double()[:, entries]
        return torch.sin(entries.double() * 12.9898 + 78.233)[None]

    return of


def _t5(declared: Bias, table: Tensor | None, **changes: Any) -> Added:
    options: dict[str, Any] = {"n_buckets": declared.n_buckets, "max_distance": declared.max_distance}
    options |= {"bidirectional": not declared.causal} | changes
    return Added(_read(table, lambda r: bucket(r, **options)))


@dataclass(frozen=True)
class _Buckets:
    """T5's buckets with something else about them."""

    declared: Bias
    first: int = 0  # one more or fewer exact ones
    share: float = 0.5  # of a side's buckets that are exact
    less: int = 1  # from the number of a side's buckets to the last one; 0: no last one
    how: Callable[[Tensor], Tensor] = torch.floor
    own: bool = False  # r = 0 counts as ahead
    nearer: int = 0  # what is taken from each distance,
    near_by: int = 0  # and added to the bucket of near keys
    far_by: int = 0  # and of far ones

    def __call__(self, r: Tensor) -> Tensor:
        causal, buckets = self.declared.causal, self.declared.n_buckets
        side = buckets if causal else buckets // 2
        first = int(side * self.share) + self.first
        n = r.abs() if not causal else (-r).clamp(min=0)
        n = (n - self.nearer).clamp(min=0)
        far = torch.log(n.clamp(min=1).double() / first) / math.log(self.declared.max_distance / first)
        far = first + self.how(far * (side - first)).long()
        far = far.clamp(max=side - self.less) if self.less else far
        far = (far + self.far_by).clamp(max=side - 1) if self.far_by else far
        ahead = side * ((r >= 0) if self.own else (r > 0)) if not causal else 0
        near = (n + self.near_by).clamp(min=0)
        return (ahead + torch.where(n < first, near, far)).clamp(max=buckets - 1)


def _wrong_table(
    declared: Bias, table: Tensor | None, kind: str, rights: Sequence[Added]
) -> Iterator[tuple[str, Added]]:
    for right in rights:
        for name, changes in _changes(declared):
            if name == "bias sign" and table is None:
                continue
            if name != "bias before the scale" or table is not None:
                yield name, replace(right, **changes)
        for one_sided in (_mirror(right.of, 1), _mirror(right.of, -1)) if not declared.causal else ():
            yield "bias is a mirror", replace(right, of=one_sided)
    if kind == "t5":
        yield from _wrong_buckets(declared, table, rights[0])
        return
    for k in _sizes(table):
        for index in _wrong_clips(k):
            yield "clipped after the shift", Added(_read(table, index))


def _wrong_buckets(declared: Bias, table: Tensor | None, right: Added) -> Iterator[tuple[str, Added]]:
    other = "bidirectional buckets" if declared.causal else "causal buckets"
    yield other, _t5(declared, table, bidirectional=declared.causal)
    for less, how, first in itertools.product((1, 0), (torch.floor, torch.ceil, torch.round), (0, 1, -1)):
        if less or not declared.causal:
            wrong = _Buckets(declared, first, 0.5, less, how)
            yield ("buckets" if less else "bucket overflow"), Added(_read(table, wrong))
    options: list[dict[str, Any]] = [{"share": 0.25}, {"share": 0.75}, {"less": 2}, {"own": True}]
    for by in (-1, 1):
        options += [{"nearer": by}, {"near_by": by}, {"far_by": by}, {"near_by": by, "far_by": by}]
        yield "buckets", replace(right, of=_moved(right.of, by))
    for each in options:
        yield "buckets", Added(_read(table, _Buckets(declared, **each)))
    for distance in (64, 127, 129, 256, 512):
        yield "buckets", _t5(declared, table, max_distance=distance)
    for n in (16, 64):
        yield "buckets", _t5(declared, table, n_buckets=n)


def _moved(of: Index, step: int) -> Index:
    return lambda r: of(r + step)


def _mirror(of: Index, side: int) -> Index:
    return lambda r: of(side * r.abs())


def _wrong_clips(k: int) -> list[Index]:
    n = 2 * k + 1  # a negative index counts from the end
    return [
        lambda r: (r + k).clamp(-k, k) % n,
        lambda r: (r + k).clamp(0, k),
        lambda r: (r.clamp(max=k) + k) % n,
        lambda r: (r.clamp(min=-k) + k).clamp(max=2 * k - 1),
        lambda r: r.clamp(-k, k) % n,
        lambda r: (r + k) % n,
    ]


def _sizes(table: Tensor | None) -> Sequence[int]:
    return range(1, 40) if table is None else ((table.shape[1] - 1) // 2,)


def _clipped(table: Tensor | None) -> Iterator[Added]:
    for k in _sizes(table):
        yield Added(_read(table, _clip(k)))


def _clip(k: int) -> Index:
    return lambda r: r.clamp(-k, k) + k
