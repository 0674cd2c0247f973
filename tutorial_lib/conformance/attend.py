"""``attend(q, k, v)``: one attention with its positions, or which bug it has."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..encodings.alibi import slopes
from . import bias as biases
from .bias import Added, Bias
from .evidence import TOLERANCE, changed
from .report import FAILED, Finding, Report, passed, undecided
from .rope import BASES, Rope, Turn, mutations

ENCODINGS = ("rope", "alibi", "none")
FAR = 320  # bfloat16 holds no odd number above 256
LATE = 128  # the queries that are asked in 16 bits: the last, if fewer than keys may be asked
CALLS = ((12, 12), (40, 40), (FAR, FAR), (1, 12), (5, 12))


@dataclass(frozen=True)
class Attention:
    """A prediction in float64: the whole equation, with a place for each bug."""

    turn_q: Turn | None = None
    turn_k: Turn | None = None
    turn_v: Turn | None = None
    undone: bool = False
    added: Added | None = None
    power: float = -0.5  # of d, the scale
    inside: bool = False  # the bias is added before the scale
    mask: str = "causal"  # or none, strict (not oneself), top (with a cache), reversed
    late: str = ""  # with a cache queries count from 0 (restart), one too few (lag), or all as the last

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        (n, d), m = q.shape[-2:], k.shape[-2]
        ahead = torch.arange(m) - torch.arange(m - n, m)[:, None]
        at_q, at_k = torch.arange(m - n, m), torch.arange(m)
        if self.late == "last":
            at_q = torch.full((n,), m - 1)
        elif n < m and self.late:
            at_q = at_q - (m - n if self.late == "restart" else 1)
        q = q if self.turn_q is None else self.turn_q(q, at_q)
        k = k if self.turn_k is None else self.turn_k(k, at_k)
        v = v if self.turn_v is None else self.turn_v(v, at_k)
        bias = torch.zeros(()) if self.added is None else self.added(n, m)
        s, scale = q @ k.mT, d**self.power
        s = (s + bias) * scale if self.inside else s * scale + bias
        hidden = {
            "causal": ahead > 0,
            "none": ahead > m,
            "strict": ahead >= 0,
            "top": torch.arange(m) > torch.arange(n)[:, None],
            "reversed": ahead < 0,
        }[self.mask]
        y: Tensor = s.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num(0) @ v
        if self.undone and self.turn_v is not None:
            y = changed(self.turn_v, {"sign": -self.turn_v.sign})(y, at_q)
        return y


@dataclass(frozen=True)
class _Call:
    q: Tensor
    k: Tensor
    v: Tensor
    y: Tensor

    def error(self, attention: Attention) -> float:
        y = attention(*(x.double()[0] for x in (self.q, self.k, self.v)))
        rows = slice(1, None) if attention.mask == "strict" and len(self.q[0, 0]) > 1 else slice(None)
        return float((y - self.y[0].double())[:, rows].abs().nan_to_num(math.inf, math.inf, math.inf).max())

    def fits(self, attention: Attention) -> bool:
        exact = attention.turn_q is None and self.y.dtype.itemsize >= 4  # no angles that lose digits
        share = 0.1 if exact else 30 if _rounds(attention) else 3
        return self.error(attention) <= TOLERANCE[self.y.dtype] * share


def check_attend(
    function: Callable[..., Any],
    rope: Rope,
    encoding: str | None,
    n_heads: int,
    causal: bool,
    values: bool = False,
) -> Report:
    """The report on ``function(q, k, v)``, all ``[B, H, L, D]``; fewer queries are the last keys."""
    if encoding not in (None, *ENCODINGS):
        raise ValueError(f"encoding={encoding!r}: it must be 'rope', 'alibi', 'none' or None (measured)")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 2, n_heads, FAR, rope.head_dim, generator=generator).clamp(-2, 2)
    calls: dict[tuple[int, int], _Call] = {}
    errors: dict[tuple[int, int], str] = {}
    for n, m in CALLS:
        q, k, v = x[0][..., m - n : m, :], x[1][..., :m, :], x[2][..., :m, :]
        try:
            calls[n, m] = _Call(q, k, v, _asked(function, q, k, v))
        except Exception as error:
            errors[n, m] = f"{type(error).__name__}: {error}"[:200]
    if (12, 12) not in calls:
        raise ValueError(
            f"attend(q, k, v) with q, k, v [2, {n_heads}, 12, {rope.head_dim}] failed ({errors[12, 12]}): "
            "give n_heads=… and head_dim=…, or wrap it"
        )
    whole = [call for (n, m), call in calls.items() if n == m]
    late = [call for (n, m), call in calls.items() if n < m]
    report = Report("attend(q, k, v)")
    search = _Search(rope, encoding, n_heads, causal, values)
    golden = search.golden(whole, late, report.measured)
    own = "attend(q, k, v) is told no positions"
    report.findings = [
        golden,
        undecided("shift", f"{own}: give its rotation, rotate(x, positions)"),
        _causality(function, whole[0], causal, golden),
        _cache(search, calls, errors, golden),
        undecided("padding", f"{own} and no mask"),
        undecided("packing", f"{own} and no mask"),
        _dtype(function, whole[-1]),
    ]
    return report


def _asked(function: Callable[..., Any], *given: Tensor) -> Tensor:
    with torch.no_grad():
        y = function(*(x.clone() for x in given))
    y = y[0] if isinstance(y, tuple) else y
    if not isinstance(y, Tensor) or y.shape != given[0].shape:
        raise ValueError(f"it returned {getattr(y, 'shape', type(y).__name__)}, not the shape of q")
    return y


class _Search:
    def __init__(self, rope: Rope, encoding: str | None, n_heads: int, causal: bool, values: bool = False):
        self.rope, self.n_heads, self.causal, self.values = rope, n_heads, causal, values
        self.mask = "causal" if causal else "none"
        names = ENCODINGS if encoding is None else (encoding,)
        self.rights = [attention for name in names for attention in self._right(name)]

    def _right(self, name: str) -> Iterator[Attention]:
        if name == "none":
            yield Attention(mask=self.mask)
        if name == "alibi":
            m = slopes(self.n_heads)
            yield Attention(
                added=biases._alibi(m) if self.causal else Added(biases._absolute(m)), mask=self.mask
            )
        if name == "rope":
            for layout in (self.rope.layout,) if self.rope.layout else ("half", "interleaved"):
                for base in (self.rope.base,) if self.rope.base is not None else BASES:
                    turn = self.rope.turn(base, layout)
                    turn_v = turn if self.values else None
                    yield Attention(turn, turn, turn_v, undone=self.values, mask=self.mask)

    def golden(self, whole: Sequence[_Call], late: Sequence[_Call], measured: dict[str, Any]) -> Finding:
        for right in self.rights:
            if all(call.fits(right) for call in whole):
                measured["encoding"] = described = _described(right)
                return passed("golden values", f"The output is that of attention with {described}.")
        names, also = self.names([*whole, *late])
        if not names:
            names, also = self.names(whole)
        best = min(self.rights, key=lambda right: whole[0].error(right))
        wrong = whole[0].y[0].double() - best(*(x.double()[0] for x in (whole[0].q, whole[0].k, whole[0].v)))
        i = int((wrong.abs().amax((0, 2)) > 1e-3).nonzero()[0]) if bool((wrong.abs() > 1e-3).any()) else 0
        says = "The output is that of a known bug." if names else "This is not one of the known bugs."
        says = "The output is that of two known bugs at once." if also else says
        shown = f"12 tokens; the output is wrong from token {i} on"
        return Finding("golden values", FAILED, says, names, also, shown, whole[0].error(best))

    def names(self, calls: Sequence[_Call]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        usual = [right for right in self.rights if right.turn_q is None or right.turn_q.base in BASES[:3]]
        rights = usual if self.rope.base is None else self.rights
        found: list[str] = []
        for right in rights:
            found += [
                name for name, changes in self.mutations(right) if _fit(replace(right, **changes), calls)
            ]
        if found:
            return tuple(dict.fromkeys(found)), ()
        first, second = [], []
        for right in rights[:4]:
            for (a, one), (b, two) in itertools.combinations(list(self.mutations(right)), 2):
                if a != b and not one.keys() & two.keys() and _fit(replace(right, **one, **two), calls):
                    first.append(a)
                    second.append(b)
        return tuple(dict.fromkeys(first)), tuple(n for n in dict.fromkeys(second) if n not in first)

    def mutations(self, right: Attention) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "scale missing", {"power": 0.0}
        yield "scale twice", {"power": -1.0}
        if self.causal:
            yield "future seen", {"mask": "none"}
            yield "future seen", {"mask": "reversed"}
            yield "own token hidden", {"mask": "strict"}
            yield "mask starts at the top", {"mask": "top"}
        else:
            yield "future seen", {"mask": "causal"}
        turn = right.turn_q
        if turn is not None:
            back = changed(turn, {"sign": -turn.sign})
            yield "no position", {"turn_q": None, "turn_k": None, "turn_v": None}
            yield "only queries turned", {"turn_k": None}
            yield "only keys turned", {"turn_q": None}
            yield "queries against keys", {"turn_k": back}
            yield "queries against keys", {"turn_q": back}
            yield "values turned", {"undone": False} if self.values else {"turn_v": turn}
            yield "positions restart", {"late": "restart"}
            yield "positions lag by one", {"late": "lag"}
            yield "positions lag by one", {"turn_q": changed(turn, {"shift": -1.0})}
            yield "positions from 1", {"turn_q": changed(turn, {"shift": 1.0})}
            yield "one position for the chunk", {"late": "last"}
            yield "one position for the chunk", {"turn_q": changed(turn, {"counts": "first"})}
            for base in BASES if self.rope.base is not None else ():
                if base != turn.base:
                    yield "base", self._everywhere(self.rope.turn(base, turn.layout))
            for name, changes in mutations(turn, self.rope):
                if changes.get("counts") not in ("stale", "heads"):
                    yield name, self._everywhere(changed(turn, changes))
        if right.added is not None:
            yield "no position", {"added": None}
            yield "bias before the scale", {"inside": True}
            wrongs = biases._wrong_alibi(self.n_heads, Bias(causal=self.causal, head_dim=self.rope.head_dim))
            for name, added in wrongs:
                yield name, {"added": added}

    def _everywhere(self, turn: Turn) -> dict[str, Any]:
        return {"turn_q": turn, "turn_k": turn} | ({"turn_v": turn} if self.values else {})


def _fit(attention: Attention, calls: Iterable[_Call]) -> bool:
    return all(call.fits(attention) for call in calls)


def _rounds(attention: Attention) -> bool:
    return attention.turn_q is not None and any(attention.turn_q.rounds)


def _described(right: Attention) -> str:
    if right.turn_q is not None:
        return f"RoPE of layout {right.turn_q.layout!r} and base {right.turn_q.base:g}"
    return "ALiBi" if right.added is not None else "no positions"


def _causality(function: Callable[..., Any], call: _Call, causal: bool, golden: Finding) -> Finding:
    if not causal:
        return undecided("causality", "it was declared that all tokens see each other")
    k, v = call.k.clone(), call.v.clone()
    k[..., -1, :] += 1
    v[..., -1, :] += 1
    change = float((_asked(function, call.q, k, v) - call.y)[..., :-1, :].nan_to_num(0).abs().max())
    if change <= 1e-5:
        return passed("causality", "No token's output depends on the tokens behind it.")
    says = f"Changing the last key and value changes earlier outputs by {change:.3g}."
    names = golden.bugs if "future seen" in golden.bugs else ("future seen",)
    return Finding("causality", FAILED, says, names, shown="12 tokens", error=change)


def _cache(
    search: _Search,
    calls: dict[tuple[int, int], _Call],
    errors: dict[tuple[int, int], str],
    golden: Finding,
) -> Finding:
    for shape in ((1, 12), (5, 12)):
        if shape not in calls:
            return undecided("cache", f"{shape[0]} queries for 12 keys raised {errors[shape]}")
        error = float((calls[shape].y - calls[12, 12].y[..., -shape[0] :, :]).abs().max())
        if not error <= 1e-3:
            names, also = search.names(list(calls.values()))
            if not names:
                names, also = golden.bugs, golden.also
            says = f"{shape[0]} late queries do not get what they get among all 12."
            return Finding("cache", FAILED, says, names, also, f"{shape[0]} queries, 12 keys", error)
    return passed("cache", "Late queries get what they get among all others.")


def _dtype(function: Callable[..., Any], call: _Call) -> Finding:
    given, whole = (call.q[..., -LATE:, :], call.k, call.v), call.y
    try:
        whole = _asked(function, *given)
    except Exception:  # it takes as many queries as keys
        given = call.q, call.k, call.v
    for dtype in (torch.bfloat16, torch.float16):
        try:
            y = _asked(function, *(x.to(dtype) for x in given))
        except Exception as error:
            return undecided("dtype", f"16 bits raised {type(error).__name__}: {error}"[:200])
        far = float((y.double() - whole.double()).nan_to_num(0).abs().mean())
        if not far <= TOLERANCE[dtype] / 2:
            says = f"In {str(dtype)[6:]} the output is off by {far:.3g} on average."
            bugs = ("angles in half precision", "positions in bf16")
            return Finding("dtype", FAILED, says, bugs, shown=f"{call.k.shape[-2]} tokens", error=far)
    return passed(
        "dtype", f"With {FAR} tokens 16 bits give what float32 does; more are tested on a rotation."
    )
