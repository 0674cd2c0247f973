"""Judge what an answer returned: is it right, and if not, which mistake is it?

This runs where the answer can't reach: in the judging process of a notebook (:mod:`.oracle`), or in
the marking process of a class. It draws the inputs again from their seed, computes what is expected,
and compares the outcomes (:func:`.answer.collect`) first with that, then with the question's catalogue
of wrong answers, which are run on the same inputs (:mod:`.catalogue`). What these return is kept: a
class, and all tests of a question, have the same inputs.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from dataclasses import replace

import torch

from .answer import collect
from .catalogue import Found, composed, search
from .question import Case, Question, Verdict

KINDS = ("value", "none", "foreign", "raised", "stub", "slow")
TOLERANCE = {torch.float64: (1e-7, 1e-9), torch.complex128: (1e-7, 1e-9),
             torch.bfloat16: (2e-2, 2e-2), torch.float16: (4e-3, 4e-3)}
PICTURE = 48  # rows and columns at most


HIDDEN = {
    "raised": "the answer raises an error.",
    "type": "the answer returns something of another kind.",
    "shape": "the result has the wrong shape.",
    "dtype": "the result has the wrong dtype.",
    "device": "the result is on another device.",
    "nan": "the result holds NaN.",
    "symptom": "the numbers are wrong.",
}


def judge(question: Question, seed: int, outcomes: list[dict], hidden: bool = False) -> Verdict:
    """The verdict on the outcomes of one answer for the inputs of ``seed``.

    ``hidden``: the verdict says nothing of the inputs, and no word that the answer could have chosen; a
    check in the notebook says it. Raises Malformed when ``outcomes`` are not what
    :func:`.answer.collect` gives for these inputs.
    """
    known = _known(question, seed)
    cases = known.cases
    outcomes = _checked(outcomes, known.inputs)

    def say(kind: str, text: str, passed: bool = False, **more) -> Verdict:
        return Verdict(question.name, passed, kind, text, **more)

    if any(one["kind"] == "stub" for one in outcomes):
        other = re.match(r"(\w+) is not written yet", next(one["message"] for one in outcomes
                                                          if one["kind"] == "stub"))
        if not hidden and other and other[1] != question.name:
            return say("stub", f"{question.name} calls {other[1]}, which is not written yet. Write that "
                               "first.", reread=question.section)
        return say("stub", f"{question.name} is not written yet: it raises NotImplementedError. "
                           f"{question.title} `check.hint(\"{question.name}\")` gives a hint.",
                   reread=question.section)
    if borrowed := sorted({name for one in outcomes for name in one["borrowed"]}):
        which = "" if hidden else f" ({', '.join(borrowed[:3])})"
        return say("borrowed", f"This calls the course's own code{which}. Write it yourself: plain PyTorch "
                               "is enough.", reread=question.section)

    expected = known.outcomes(question.reference)
    assert all(one["kind"] == "value" for one in expected), (question.name, expected)
    found = [_compare(question, case, want["value"], got)
             for case, want, got in zip(cases, expected, outcomes, strict=True)]
    changed = any(one["modified"] for one in outcomes)
    if not changed and all(fault is None for fault, _ in found):
        notes = list(dict.fromkeys(note for _, note in found if note))
        if notes:
            return say("equivalent", f"Right, for {len(cases)} inputs. " + " ".join(notes), True,
                       name=_name_of(question.variants, outcomes, known))
        which = "" if hidden else f": {_list([case.what for case in cases])}"
        return say("right", f"Right, for {len(cases)} inputs{which}.", True)
    if (not changed and all(one["kind"] == "value" for one in outcomes)
            and (variant := _first(question.variants, outcomes, known))):
        return say("equivalent", f"Right, for {len(cases)} inputs. {variant.why}", True, name=variant.name)

    n = next((n for n, (fault, _) in enumerate(found) if fault is not None), 0)
    picture = None if hidden else _picture(question, cases[n], expected[n]["value"], outcomes[n])
    wrong = [m for m, (fault, _) in enumerate(found) if fault is not None]
    if mistake := search(known, outcomes, wrong):
        return say("mistake", _says(mistake, known, outcomes, hidden), name=mistake.name,
                   reread=mistake.entries[0].reread or question.section, picture=picture)
    if found[n][0] is None:  # all numbers are right, but …
        which = next(one["modified"] for one in outcomes if one["modified"])
        return say("modified", f"The numbers are right, but the answer changes its own input (argument "
                               f"{which[0] + 1}). Whoever calls it loses what they had: work on a copy, or "
                               "write operations that return a new tensor.", reread=question.section)
    kind, text = found[n][0]
    if hidden:
        return say(kind, f"For some inputs, {HIDDEN.get(kind, text)} The check in the notebook says more.",
                   reread=question.section)
    if kind == "symptom":
        right = [case.what for case, (fault, _) in zip(cases, found, strict=True) if fault is None]
        if right:
            text += f" It is right for {_list(right)}: what is different here?"
    elif kind in ("shape", "dtype", "device", "type", "none", "nan", "raised"):
        text += f" {question.name} returns {question.returns}."
    return say(kind, f"With {cases[n].what}: {text}", reread=question.section, picture=picture)


def blamed(names) -> str:
    """What is said where another answer was replaced, because the mistake is there."""
    names = [f"`{name}`" for name in sorted(names)]
    one = len(names) == 1
    return (f"Your {' and '.join(names)} {'has' if one else 'have'} not passed yet; here "
            f"{'it was' if one else 'they were'} replaced by ours.")


def _list(words: list[str]) -> str:
    words = list(dict.fromkeys(words))
    return "; ".join(words[:4]) + (f"; and {len(words) - 4} more" if len(words) > 4 else "")


class Malformed(ValueError):
    """Outcomes that :func:`.answer.collect` never gives."""


def _checked(outcomes, inputs: list[tuple]) -> list[dict]:
    """Outcomes with every field in place; they may come from a process that is not to be trusted."""
    if not isinstance(outcomes, (list, tuple)) or len(outcomes) != len(inputs):
        raise Malformed(f"there must be {len(inputs)} outcomes")
    checked = []
    for one, args in zip(outcomes, inputs, strict=True):
        if not isinstance(one, dict) or type(one.get("kind")) is not str or one["kind"] not in KINDS:
            raise Malformed("this is not an outcome")
        if one["kind"] == "value" and "value" not in one:
            raise Malformed("this is not an outcome")
        text = {key: str(one.get(key, ""))[:500] for key in ("device", "type", "error", "message", "line")}
        modified, borrowed = one.get("modified", []), one.get("borrowed", [])
        if not all(isinstance(each, list) for each in (modified, borrowed)):
            raise Malformed("this is not an outcome")
        changed = {n for n in modified if type(n) is int}
        checked.append({"kind": one["kind"], "value": one.get("value"), **text,
                        "modified": [n for n in range(len(args)) if n in changed],
                        "borrowed": [str(name)[:100] for name in borrowed][:20]})
    return checked


# ---- the catalogue ----
class _Known:
    """The inputs of one seed, and what the question's own answers return for them: each is run once."""

    def __init__(self, question: Question, seed: int):
        self.question, self.cases = question, question.cases(seed)
        # A mistake can make numbers large: two ways to make it differ by more than two right answers do.
        self.loose = replace(question, tolerance=(10 * question.tolerance[0], 10 * question.tolerance[1]))
        self.inputs = [case.args for case in self.cases]
        self._single: dict[tuple[Callable, int], dict] = {}
        self._composed: list | None = None

    def outcomes(self, answer: Callable) -> list[dict]:
        return [self.outcome(answer, n) for n in range(len(self.inputs))]

    def outcome(self, answer: Callable, n: int) -> dict:
        """The outcome for one input: most wrong answers differ from the learner's at once."""
        if (answer, n) not in self._single:
            inputs = self.inputs[n:n + 1]
            self._single[answer, n] = _checked(self._collect(answer, inputs), inputs)[0]
        return self._single[answer, n]

    def _collect(self, answer: Callable, inputs: list[tuple]) -> list[dict]:
        with warnings.catch_warnings():  # a wrong answer may deserve one; nobody wrote it
            warnings.simplefilter("ignore")
            return collect(answer, inputs, self.question.seconds, ours=True)

    def by_size(self) -> list[int]:
        """The numbers of the inputs, small ones first."""
        def size(args) -> int:
            return sum(one.numel() if isinstance(one, torch.Tensor) else 1 for one in args)

        return sorted(range(len(self.inputs)), key=lambda n: size(self.inputs[n]))

    def expected(self) -> list[dict]:
        return self.outcomes(self.question.reference)

    def composed(self) -> list[tuple]:
        """Two mistakes at once (:func:`.catalogue.composed`)."""
        if self._composed is None:
            self._composed = list(composed(self.question))
        return self._composed

    def same(self, n: int, theirs: dict, ours: dict, loose: bool = False) -> bool:
        """Are two outcomes of input ``n`` one and the same?"""
        return _same_outcome(self.loose if loose else self.question, self.inputs[n], theirs, ours)


_known = functools.lru_cache(maxsize=64)(_Known)  # a class needs five


def _first(variants, outcomes, known: _Known):
    """The first entry whose answer gives these very outcomes."""
    return next((entry for entry in variants if all(
        known.same(n, one, ours) for n, (one, ours) in enumerate(zip(known.outcomes(entry.answer), outcomes,
                                                                     strict=True)))), None)


def _name_of(variants, outcomes, known: _Known) -> str:
    entry = _first(variants, outcomes, known)
    return entry.name if entry else ""


def _says(mistake: Found, known: _Known, outcomes: list[dict], hidden: bool) -> str:
    """What the learner reads of one mistake, of two, and of what there is besides."""
    said = [entry.says for entry in mistake.entries]
    if mistake.cases and not hidden:
        said = [f"With {_list([known.cases[n].what for n in cases])}: {text}"
                for cases, text in zip(mistake.cases, said, strict=True)]
    if len(said) > 1:
        said = ["Two mistakes at once.", f"(1) {said[0]}", f"(2) {said[1]}"]
    what = "for some inputs" if hidden else f"with {known.cases[mistake.at].what}"
    ours, want = outcomes[mistake.at], known.expected()[mistake.at]
    if mistake.besides == "dtype":
        said.append(f"Besides, {what} the result is {_short(ours['value'])}; it should be "
                    f"{_short(want['value'])}.")
    elif mistake.besides == "raised":
        why = "" if hidden else f": {ours['error']}: {ours['message']}" + (
            f" — in the line `{ours['line']}`" if ours["line"] else "")
        said.append(f"Besides, {what} the answer raises an error{why}.")
    elif mistake.besides == "factor":
        said.append(f"Besides, {what} every number is then still {_number(mistake.factor)} times as large "
                    "as it should be.")
    return " ".join(said)


def _same_outcome(question: Question, args: tuple, a: dict, b: dict) -> bool:
    if a["kind"] != b["kind"] or a["modified"] != b["modified"]:
        return False
    if a["kind"] == "raised":
        return a["error"] == b["error"]
    if a["kind"] != "value":
        return a["kind"] in ("none", "slow") or a["type"] == b["type"]
    if "meta" in a["device"] + b["device"]:
        return a["device"] == b["device"]
    fault, _ = _compare(question, Case(args, ""), a["value"], b, exact=True)
    return fault is None


# ---- one case ----
def _compare(question: Question, case: Case, want, got: dict, exact: bool = False):
    """``(fault, note)``: None or ``(kind, text)``. ``exact``: NaN equals NaN."""
    simple = {
        "none": ("none", "the answer returns None. Is the `return` missing?"),
        "raised": ("raised", f"the answer raises {got['error']}: {got['message']}"
                             + (f" — in the line `{got['line']}`." if got["line"] else "")),
        "foreign": ("type", f"the answer returns a {got['type']}, which can't be read as numbers."),
        "slow": ("slow", f"the answer takes more than {question.seconds:g} s; the reference takes a small "
                         "part of that. Is there a loop that never ends, or one over every number?"),
        "stub": ("stub", "the answer is not written yet."),
    }
    if got["kind"] in simple:
        return simple[got["kind"]], ""
    if got["device"] and got["device"] != "cpu":
        return ("device", f"the result is on the device \"{got['device']}\", the inputs are on \"cpu\". "
                          "Create tensors on the device of the input."), ""
    if question.faults is not None:
        return _faults(question, case, want, got["value"], exact), ""
    fault = _values(question, want, got["value"], exact)
    if fault is None:
        return None, _wider(want, got["value"])
    if question.same is not None and fault[0] in ("symptom", "nan"):
        try:
            if _values(question, question.same(want, case), question.same(got["value"], case), exact) is None:
                return None, question.equivalent
        except Exception:  # a value of another kind has no such form
            return fault, ""
    return fault, ""


def _faults(question: Question, case: Case, want, got, exact: bool):
    """As :func:`_values` where many answers are right. ``exact``: have both the same fault, or none?"""
    assert question.faults is not None
    text = question.faults(got, case)
    if exact:
        return None if text == question.faults(want, case) else ("symptom", "")
    return ("symptom", text) if text else None


def _values(question: Question, want, got, exact: bool = False, where: str = ""):
    """None when two values agree, else ``(kind, text)``."""
    if isinstance(want, dict):
        if not isinstance(got, dict) or got.keys() != want.keys():
            return "type", f"{where or 'the result'} should be a dict with the keys {', '.join(want)}."
        name = where or "the result"
        pairs = [(want[key], got[key], f"{name}[{key!r}]") for key in want]
        return next((f for f in (_values(question, a, b, exact, w) for a, b, w in pairs) if f), None)
    if isinstance(want, list) and isinstance(got, torch.Tensor) and got.ndim and all(
            isinstance(one, (int, float, bool)) for one in want):
        got = got.tolist()
    if isinstance(want, list):
        if not isinstance(got, list):
            return "type", f"{where or 'the result'} should be a sequence of {len(want)}, it is {_kind(got)}."
        if len(got) != len(want):
            return "shape", f"{where or 'the result'} has {len(got)} entries; there should be {len(want)}."
        name = where or "the result"
        pairs = [(a, b, f"{name}[{n}]") for n, (a, b) in enumerate(zip(want, got, strict=True))]
        return next((f for f in (_values(question, a, b, exact, w) for a, b, w in pairs) if f), None)
    if isinstance(want, str):
        if not isinstance(got, str):
            return "type", f"{where or 'the result'} should be a text, it is {_kind(got)}."
        wrong = "symptom", f"{where or 'the result'} is {got[:60]!r}, which is wrong."
        return None if got == want else wrong
    if isinstance(want, (bool, int, float)):
        if isinstance(got, torch.Tensor) and got.ndim == 0 and not got.is_complex():
            got = got.item()
        if not isinstance(got, (bool, int, float)) or isinstance(want, bool) != isinstance(got, bool):
            return "type", f"{where or 'the result'} should be {_kind(want)}, it is {_kind(got)}."
        return _numbers(question, _double(want), _double(got), where, exact, question.tolerance)
    if isinstance(got, list) or isinstance(got, (bool, int, float)) and want.ndim == 0:
        try:
            got = _as_tensor(got, want.dtype)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            return "type", f"{where or 'the result'} should be a tensor, it is {_kind(got)}."
    if not isinstance(got, torch.Tensor):
        return "type", f"{where or 'the result'} should be a tensor, it is {_kind(got)}."
    if got.shape != want.shape:
        return "shape", (f"{where or 'the result'} has the shape {list(got.shape)}; it should be "
                         f"{list(want.shape)}.")
    if not _dtype_fits(want.dtype, got.dtype, question.exact_dtype):
        return "dtype", f"{where or 'the result'} is {_short(got)}; it should be {_short(want)}."
    return _numbers(question, want, got, where, exact, TOLERANCE.get(want.dtype, question.tolerance))


def _as_tensor(plain, dtype: torch.dtype) -> torch.Tensor:
    """Numbers as a tensor of ``dtype``, or of their own where that would cut something off."""
    if dtype.is_floating_point or dtype.is_complex:
        return torch.tensor(plain, dtype=dtype)
    own = torch.tensor(plain)
    own = torch.tensor(plain, dtype=torch.float64) if own.is_floating_point() else own
    return own.to(dtype) if torch.equal(own.to(dtype).to(own.dtype), own) else own


def _double(number) -> torch.Tensor:
    try:
        return torch.tensor(float(number), dtype=torch.float64)
    except OverflowError:
        return torch.tensor(float("inf") if number > 0 else -float("inf"), dtype=torch.float64)


def _kind(value) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}"
    names = {"bool": "True or False", "int": "a number", "float": "a number", "str": "a text",
             "list": "a sequence", "dict": "a dict"}
    return names.get(type(value).__name__, f"a {type(value).__name__}")


def _short(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _dtype_fits(want: torch.dtype, got: torch.dtype, exact: bool) -> bool:
    whole = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    wider = (want, got) in ((torch.float32, torch.float64), (torch.complex64, torch.complex128))
    return want == got or not exact and (wider or want in whole and got in whole)


def _wider(want, got) -> str:
    if isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor) and want.dtype != got.dtype:
        return f"(The result is {_short(got)}, asked for is {_short(want)}; that is accepted here.)"
    return ""


def _numbers(question: Question, want: torch.Tensor, got: torch.Tensor, where: str, exact: bool, tolerance):
    wide = torch.complex128 if want.is_complex() or got.is_complex() else torch.float64
    a, b = want.to(wide), got.to(wide)
    if not exact and bool((b.isnan() & ~a.isnan()).any()):
        return "nan", f"{where or 'the result'} holds NaN ({int(b.isnan().sum())} of {b.numel()} numbers)."
    close = torch.isclose(b, a, rtol=tolerance[0], atol=tolerance[1], equal_nan=True)
    if bool(close.all()):
        return None
    if exact:  # only whether they agree is asked
        return "symptom", ""
    return "symptom", f"{where or 'the result'} is wrong. {symptom(a, b, close, tolerance)}"


# ---- a mistake without a name ----
def symptom(want: torch.Tensor, got: torch.Tensor, close: torch.Tensor, tolerance=(1e-4, 1e-5)) -> str:
    """What can be said of wrong numbers: a factor, a sign, an axis, or the place where they begin."""

    def equal(a, b):
        return a.shape == b.shape and bool(torch.isclose(a, b, rtol=tolerance[0], atol=tolerance[1],
                                                         equal_nan=True).all())

    if want.ndim == 0:
        return f"It is {_number(got)}, it should be {_number(want)}."
    finite = want.isfinite() & got.isfinite()
    if finite.any() and bool((want.isfinite() == got.isfinite()).all()):
        a, b = want[finite], got[finite]
        top = a.abs().argmax()
        if a[top].abs() > 0 and b[top].abs() > 0 and equal(a * (b[top] / a[top]), b):
            factor = b[top] / a[top]
            return ("Every number has the wrong sign." if equal(-a, b)
                    else f"Every number is {_number(factor)} times what it should be.")
        if a.numel() > 1 and equal(a + (b[0] - a[0]), b):
            return f"Every number is off by {_number(b[0] - a[0])}."
        if a.numel() > 1 and equal(a.abs(), b.abs()):
            return "The sizes are right, the signs are not."
    if want.ndim >= 2 and equal(want.transpose(-1, -2), got):
        return "It is transposed: the last two axes have changed places."
    for one in range(want.ndim - 2):
        for other in range(one + 1, want.ndim):
            if want.shape[one] == want.shape[other] and equal(want.transpose(one, other), got):
                return f"Axis {one} and axis {other} have changed places."
    for axis in range(want.ndim):
        if want.shape[axis] > 1:
            if equal(want.flip(axis), got):
                return f"It is in reverse order along axis {axis}."
            for step in (1, -1):
                if equal(want.roll(step, axis), got):
                    return f"It is shifted by one along axis {axis}."
    for axis in range(want.ndim):
        others = [n for n in range(want.ndim) if n != axis]
        wrong = (~close).any(dim=others) if others else ~close
        rows = wrong.nonzero().flatten().tolist()
        if want.shape[axis] > 2 and 0 < len(rows) <= 2:
            place = (~close).nonzero()[0].tolist()
            names = ["the last index" if n == want.shape[axis] - 1 else f"index {n}" for n in rows]
            are = "is" if len(rows) == 1 else "are"
            return (f"Along axis {axis} only {' and '.join(names)} {are} wrong: at {place} stands "
                    f"{_number(got[tuple(place)])}, it should be {_number(want[tuple(place)])}.")
    return _where(want, got, close, equal)


def _where(want: torch.Tensor, got: torch.Tensor, close: torch.Tensor, equal: Callable) -> str:
    """The part that is wrong: rows, columns, a corner, places that follow a rule, or the first one."""
    place = (~close).nonzero()[0].tolist()
    first = (f"The first wrong number is at {place}: {_number(got[tuple(place)])}, it should be "
             f"{_number(want[tuple(place)])}.")
    finite = want.isfinite() & got.isfinite()
    if bool((want.isinf() != got.isinf()).any()):
        extra, less = int((got.isinf() & ~want.isinf()).sum()), int((want.isinf() & ~got.isinf()).sum())
        what = [f"{n} number{'s are' if n > 1 else ' is'} {words}" for n, words in (
            (extra, "infinite and should not be"), (less, "finite and should be infinite")) if n]
        return f"{' and '.join(what)}. {'The others are right. ' if close[finite].all() else ''}{first}"
    if want.ndim >= 2 and min(want.shape[-2:]) > 1:
        square = ~close
        for name, part in (("on the diagonal of the last two axes", square.tril().triu()),
                           ("below the diagonal of the last two axes", square.tril(-1)),
                           ("above the diagonal of the last two axes", square.triu(1))):
            if torch.equal(part, square):
                return f"What is wrong stands {name}; the rest is right. {first}"
    for axis in range(want.ndim):
        if (text := _slices(want, got, axis, equal)) or (text := _half(close, axis)):
            return f"{text} {first}"
    offset = (got - want)[finite]
    if want.numel() > 2 and equal(want.sort(-1).values, got.sort(-1).values):
        return f"The numbers of each row are right, but not their order. {first}"
    near = len(offset) > 2 and float(offset.abs().max()) < 0.05 * float(want[finite].abs().max())
    if near and not bool(close.any()):
        return f"Every number is nearly right: the largest error is {_number(offset.abs().max())}. {first}"
    return f"{float((~close).double().mean()):.0%} of its numbers differ. {first}"


def _slices(want: torch.Tensor, got: torch.Tensor, axis: int, equal: Callable) -> str:
    """Along one axis: are all slices wrong by a factor or a constant of their own?"""
    if want.ndim < 2 or want.shape[axis] < 2 or want.numel() // want.shape[axis] < 3:
        return ""
    a, b = (x.movedim(axis, 0).flatten(1) for x in (want, got))
    if not bool((a.isfinite() & b.isfinite()).all()):
        return ""
    top = a.abs().argmax(1, keepdim=True)
    factor = b.gather(1, top) / a.gather(1, top)
    if bool(factor.isfinite().all()) and equal(a * factor, b):
        some = ", ".join(_number(one) for one in factor.flatten()[:3])
        return f"Each slice along axis {axis} is wrong by a factor of its own: {some}, …"
    constant = (b - a)[:, :1]
    if equal(a + constant, b):
        some = ", ".join(_number(one) for one in constant.flatten()[:3])
        return f"Each slice along axis {axis} is off by a constant of its own: {some}, …"
    return ""


def _half(close: torch.Tensor, axis: int) -> str:
    """Along one axis: only from or up to some index, or every second one?"""
    others = [n for n in range(close.ndim) if n != axis]
    wrong = (~close).any(dim=others) if others else ~close
    rows, n = wrong.nonzero().flatten().tolist(), len(wrong)
    if n < 4 or len(rows) in (0, n):
        return ""
    if rows == list(range(rows[0], n)):
        return f"Along axis {axis} all is right up to index {rows[0] - 1}, and wrong from index {rows[0]} on."
    if rows == list(range(rows[-1] + 1)):
        last = rows[-1]
        return f"Along axis {axis} all is wrong up to index {last}, and right from index {last + 1} on."
    if rows in (list(range(0, n, 2)), list(range(1, n, 2))):
        return f"Along axis {axis} every second index is wrong, from index {rows[0]} on."
    return ""


def _number(value) -> str:
    value = value.item() if isinstance(value, torch.Tensor) else value
    return f"{value:.4g}"


def _picture(question: Question, case: Case, want, got: dict) -> dict | None:
    """Target and answer as two pictures of at most two axes, where there is something to see."""
    if not question.picture or got["kind"] != "value":
        return None
    value = got["value"]
    if isinstance(want, list) and isinstance(value, list) and len(want) == len(value):
        want, value = next(((a, b) for a, b in zip(want, value, strict=True)
                            if _values(question, a, b) is not None), (None, None))
    if not (isinstance(want, torch.Tensor) and isinstance(value, torch.Tensor) and want.shape == value.shape
            and want.ndim and not want.is_complex() and not value.is_complex() and want.numel() > 1):
        return None
    want, value = want.double(), value.double()
    if question.drawn is not None:
        want, value = question.drawn(want, case), question.drawn(value, case)
    while want.ndim > 2:
        if want.shape[0] == 0:
            return None
        n = next((n for n in range(len(want)) if not torch.allclose(want[n], value[n], equal_nan=True)), 0)
        want, value = want[n], value[n]
    cut = tuple(slice(0, PICTURE) for _ in range(want.ndim))
    kind = "lines" if want.ndim == 1 else "heat"
    return {"kind": kind, "target": want[cut].clone(), "yours": value[cut].clone(), "what": case.what,
            "axes": list(question.axes)}
