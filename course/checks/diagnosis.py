"""Which known mistakes explain what an answer returned: one, one and something besides, or two at once.

A question's right and wrong answers run on the same inputs as the learner's. The search first wants full
agreement. Then it allows another dtype, a constant factor, or some inputs that fail; then it combines two
mistakes; and at last it looks at each input on its own. What the catalogue does not explain may be one step
away from the right answer (:mod:`.near`).
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .near import Near, one_place
from .question import Question, Wrong

ENOUGH = 4  # numbers of one input that can't agree by chance


@dataclass
class Found:
    """One or two mistakes that explain an answer, and anything besides.

    ``cases`` are the inputs that show them, unless all wrong ones look alike; ``besides`` is "" or one of
    "dtype", "factor", "raised", "modified", "nan", for the input number ``at``.
    """

    entries: tuple[Wrong, ...]
    cases: tuple[tuple[int, ...], ...] = ()
    besides: str = ""
    at: int = 0
    factor: float = 1.0

    @property
    def name(self) -> str:
        return " + ".join(dict.fromkeys(entry.name for entry in self.entries))


# ---- two mistakes in one answer ----
def composed(question: Question) -> Iterator[tuple[Wrong, Wrong, Callable]]:
    """Answers with two mistakes of the catalogue at once, where the two combine.

    They do when the same builder makes both with different options, or when one of them calls the
    reference: then it calls the other instead.
    """
    for a, b in itertools.combinations(question.wrong, 2):
        if both := _with_both_options(a.answer, b.answer, question):
            yield a, b, both
    name = question.reference.__name__
    for a, b in itertools.permutations(question.wrong, 2):
        if inside := _calling(b.answer, name, a.answer):
            yield a, b, inside


def _with_both_options(a: Any, b: Any, question: Question) -> Callable | None:
    """What the builder of both makes of the options of both, which are what its answers close over."""
    if not _options(a) or a.__code__ is not getattr(b, "__code__", None):
        return None
    made = [*(one.answer for one in question.wrong), *(one.answer for one in question.variants)]
    alike = [_options(one) for one in made if getattr(one, "__code__", None) is a.__code__]
    both: dict[str, Any] = {}
    for name, mine in _options(a).items():
        theirs, usual = _options(b)[name], _usual([options[name] for options in alike])
        if isinstance(mine, dict) and isinstance(theirs, dict):  # the builder's **options
            if mine.keys() & theirs.keys():
                return None
            both |= mine | theirs
        elif _alike(mine, usual) or _alike(mine, theirs):
            both[name] = theirs
        elif _alike(theirs, usual):
            both[name] = mine
        else:
            return None
    return a.__globals__[a.__qualname__.partition(".")[0]](**both)


def _options(answer: Any) -> dict[str, Any]:
    return dict(inspect.getclosurevars(answer).nonlocals) if inspect.isfunction(answer) else {}


def _usual(values: list):
    """The value of an option that most answers share: the right one."""
    return max(values, key=lambda one: sum(_alike(one, other) for other in values))


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, types.FunctionType) and isinstance(b, types.FunctionType):
        return a is b or a.__code__ is b.__code__ and a.__closure__ == b.__closure__
    return type(a) is type(b) and not isinstance(a, torch.Tensor) and bool(a == b)


def _calling(answer: Any, name: str, other: Callable) -> Callable | None:
    """``answer`` with ``other`` in place of the function of that name; None where it calls none."""
    if not isinstance(answer, types.FunctionType) or name not in names_of(answer.__code__):
        return None
    changed = types.FunctionType(
        answer.__code__,
        answer.__globals__ | {name: other},
        answer.__name__,
        answer.__defaults__,
        answer.__closure__,
    )
    changed.__kwdefaults__ = answer.__kwdefaults__
    return changed


def names_of(code: types.CodeType) -> set[str]:
    """The names that a function looks up, and the functions inside of it."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(names_of, inner))


# ---- how two outcomes of one input compare ----
def relation(known, n: int, theirs: dict, ours: dict) -> tuple[str, float]:
    """("same", 1), ("dtype", 1), ("factor", c), ("raised", 1), ("modified", 1), ("nan", 1), or ("", 1)."""
    if known.same(n, theirs, ours, loose=True):
        return "same", 1.0
    if ours["kind"] == "raised" and theirs["kind"] == "value":
        return "raised", 1.0
    if not (theirs["kind"] == ours["kind"] == "value" and not theirs["modified"]):
        return "", 1.0
    if ours["modified"] and known.same(n, theirs, {**ours, "modified": []}, loose=True):
        return "modified", 1.0
    a, b = theirs["value"], ours["value"]
    tensors = all(isinstance(one, torch.Tensor) and one.is_floating_point() for one in (a, b))
    if not tensors or a.shape != b.shape or 1 in (a.itemsize, b.itemsize):  # 8 bits can't be reckoned with
        return "", 1.0
    lost = ~a.isfinite() & ~b.isfinite() & (a.isnan() | b.isnan())  # too large for both
    if bool(lost.any()):
        return relation(
            known, n, {**theirs, "value": a.masked_fill(lost, 0)}, {**ours, "value": b.masked_fill(lost, 0)}
        )
    if bool((b.isnan() & ~a.isnan()).any()) and int((~b.isnan()).sum()) >= ENOUGH:
        filled = {**ours, "value": torch.where(b.isnan(), a.to(b.dtype), b)}
        return ("nan" if known.same(n, theirs, filled, loose=True) else ""), 1.0
    if a.dtype != b.dtype:
        # The coarser of the two decides how far they may be apart.
        coarse = a.dtype if torch.finfo(a.dtype).eps > torch.finfo(b.dtype).eps else b.dtype
        rounded = {**ours, "value": b.to(coarse), "modified": []}
        if known.same(n, {**theirs, "value": a.to(coarse)}, rounded, loose=True):
            return "same" if known.dtype_fits(n, b.dtype) else "dtype", 1.0
    factor = _factor(a.double().flatten(), b.double().flatten())
    if factor and known.same(n, {**theirs, "value": (a.double() * factor).to(a.dtype)}, ours, loose=True):
        return "factor", factor
    return "", 1.0


def _factor(a: torch.Tensor, b: torch.Tensor) -> float:
    """What all numbers of ``a`` would have to be multiplied by, or 0."""
    finite = a.isfinite() & b.isfinite()
    a, b = a[finite], b[finite]
    if len(a) < 2 * ENOUGH or len(a.unique()) < ENOUGH:
        return 0.0
    top = int(a.abs().argmax())
    factor = float(b[top] / a[top]) if a[top] else 0.0
    return factor if 1e-4 < abs(factor) < 1e4 and not 0.99 < factor < 1.01 else 0.0


# ---- the search ----
def search(known, outcomes: list[dict], wrong: list[int]) -> Found | None:
    """What explains the outcomes; ``wrong`` are the numbers of the inputs whose outcome is not right."""
    catalogue = known.question.wrong
    whole = range(len(outcomes))
    silent = [n for n in wrong if _silent(outcomes[n])]
    if wrong and len(silent) == len(wrong):
        return None  # NaN and nothing else has too many causes
    for entry in catalogue:
        if all(known.same(n, known.outcome(entry.answer, n), outcomes[n], loose=True) for n in whole):
            return Found((entry,))
    if found := _exactly(known.as_if, known, outcomes, wrong):
        return found
    shown = [n for n in known.by_size() if n in wrong and n not in silent and outcomes[n]["kind"] == "value"]
    if not shown or not _telling(outcomes, shown):
        return None
    parts = [entry for entry in catalogue if not entry.whole]
    alone = [((entry,), functools.partial(known.outcome, entry.answer)) for entry in parts]
    pairs = (
        ((a, b), functools.partial(known.outcome, answer))
        for a, b, answer in known.composed()
        if not a.whole and not b.whole
    )
    usual = "same", "dtype", "raised", "modified", "nan"

    def explained(answers, allowed) -> Iterator[Found | None]:
        return (_aside(entries, known, theirs, outcomes, shown, allowed) for entries, theirs in answers)

    here = _input_by_input(known, outcomes, shown)
    ways = (
        explained(alone, usual),
        [here if here and len(here.entries) == 1 else None],
        explained(pairs, usual),
        (_exactly(lambda: one_place(known.question), known, outcomes, wrong) for _once in (1,)),
        explained(alone, (*usual, "factor")),
        [here],
    )
    return next((found for found in itertools.chain.from_iterable(ways) if found), None)


def _exactly(
    nears: Callable[[], Iterable[Near]], known, outcomes: list[dict], wrong: list[int]
) -> Found | None:
    """What is one step away and explains all outcomes without any rest.

    So many are tried that too few different numbers would fit one of them by chance.
    """
    values = [n for n in wrong if outcomes[n]["kind"] == "value"]
    if known.question.faults or not values or not _telling(outcomes, values):
        return None
    if _different(outcomes[n]["value"] for n in values) < (ENOUGH if values == wrong else 3 * ENOUGH):
        return None
    if all(relation(known, n, known.expected()[n], outcomes[n])[0] in ("dtype", "modified") for n in wrong):
        return None
    order = sorted(range(len(outcomes)), key=lambda n: (n not in wrong, known.by_size().index(n)))
    for near in nears():
        if all(known.same(n, known.tried(near.answer, n), outcomes[n], loose=True) for n in order):
            return Found((near.wrong(),))
    return None


def _different(values: Iterable) -> int:
    """How many different numbers there are."""
    found: set[float] = set()
    for value in values:
        for one in _parts_of(value):
            if isinstance(one, torch.Tensor):
                found |= set(one.double().flatten().unique().tolist())
            else:
                found.add(
                    float(one) if abs(one) < sys.float_info.max else (math.inf if one > 0 else -math.inf)
                )
    return len(found)


def _parts_of(value) -> Iterator:
    """The tensors and numbers of a value."""
    if isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _parts_of(one)
    elif isinstance(value, (torch.Tensor, int, float)) and not (
        isinstance(value, torch.Tensor) and value.is_complex()
    ):
        yield value


def _silent(outcome: dict) -> bool:
    """Nothing but NaN?"""
    value = outcome.get("value")
    return isinstance(value, torch.Tensor) and value.numel() > 0 and bool(value.isnan().all())


def _telling(outcomes: list[dict], shown: list[int]) -> bool:
    """Are there too many numbers for a mistake to fit by chance? Booleans and words tell too little."""

    def numbers(value) -> int:
        if isinstance(value, torch.Tensor):
            if value.dtype == torch.bool:
                return 0
            count = int((~value.isnan()).sum())
            return count if value.is_floating_point() or value.is_complex() else count // 4
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            return sum(map(numbers, value))
        return 2 if isinstance(value, float) else 1 if type(value) is int else 0

    return sum(numbers(outcomes[n]["value"]) for n in shown) >= ENOUGH


def _aside(entries, known, theirs: Callable, outcomes, shown, allowed) -> Found | None:
    """The mistakes explain all inputs, but for one deviation that is of the same kind wherever it appears."""
    besides, at, factor = "", 0, 1.0
    order = [*shown, *(n for n in known.by_size() if n not in shown)]
    explained = 0
    for n in order:
        kind, c = relation(known, n, theirs(n), outcomes[n])
        if kind not in allowed:
            return None
        if n in shown and (kind == "factor") != (besides == "factor") and explained:
            return None  # one factor for all, or none
        if kind == "factor" and besides == "factor" and abs(c / factor - 1) > 0.02:  # 16-bit rounding
            return None
        if kind != "same" and not (kind == "dtype" and besides == "raised"):
            besides, at, factor = kind, n, c
        # A mistake shows only where it differs from the right answer.
        if n in shown and kind != "raised":
            right = relation(known, n, known.expected()[n], outcomes[n])[0]
            explained += right not in ("same", "dtype", "factor")
    if besides == "factor" and explained < 2:  # one number of one input may fit by chance
        return None
    return Found(entries, (), besides, at, factor) if explained else None


def _input_by_input(known, outcomes, shown: list[int]) -> Found | None:
    """One or two mistakes, each of which fully explains some of the wrong inputs."""
    fits = {}
    # Right numbers in another dtype are not a mistake from the catalogue.
    shown = [n for n in shown if relation(known, n, known.expected()[n], outcomes[n])[0] == ""]
    if not shown:
        return None
    for entry in (entry for entry in known.question.wrong if not entry.whole):
        cases = tuple(
            n
            for n in sorted(shown)
            if _telling(outcomes, [n])
            and relation(known, n, known.outcome(entry.answer, n), outcomes[n])[0] in ("same", "dtype")
        )
        if cases and cases not in fits:
            fits[cases] = entry
    if everywhere := fits.get(tuple(sorted(shown))):
        return Found((everywhere,), (tuple(sorted(shown)),))
    for (cases, a), (others, b) in itertools.combinations(fits.items(), 2):
        if {*cases, *others} == set(shown):
            return Found((a, b), (cases, tuple(n for n in others if n not in cases)))
    return None
