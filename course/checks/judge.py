"""Judge what an answer returned: is it right, and if not, which mistake is it?

This runs where the answer can't reach: in the judging process of a notebook (:mod:`.judge_process`), or in
the marking process of a class. It draws the inputs again from their seed, computes what is expected,
and compares the outcomes (:func:`.answer.collect`) first with that, then with the question's catalogue
of wrong answers, which are run on the same inputs (:mod:`.diagnosis`). What these return is kept,
because a class, and all tests of a question, share their inputs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from tutorial_lib.language import ENGLISH, _, joined, language, speaking

from .answer import collect
from .diagnosis import Found, composed, search
from .near import Near, as_if
from .question import Case, Question, Verdict

KINDS = ("value", "none", "foreign", "raised", "stub", "slow", "syntax")
TOLERANCE = {torch.bfloat16: (2e-2, 2e-2), torch.float16: (4e-3, 4e-3)}  # float64 promises no more digits
NOT_WRITTEN = "{name} is not written yet"
"""What a stub says in its NotImplementedError, in English or in the language of the notebook."""
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

    ``hidden``: the verdict reveals nothing about the inputs, nor any word that the answer could have chosen;
    a check in the notebook does. Raises Malformed when ``outcomes`` are not what
    :func:`.answer.collect` gives for these inputs.
    """
    known = _known(question, seed, language())
    cases = known.cases
    outcomes = _checked(outcomes, known.inputs)

    def say(kind: str, text: str, passed: bool = False, **more) -> Verdict:
        return Verdict(question.name, passed, kind, text, **more)

    if unwritten := _unwritten(question, outcomes, hidden):
        return say(*unwritten, reread=question.section)
    borrowed = sorted({name for one in outcomes for name in one["borrowed"]})
    if borrowed and not question.library:
        which = "" if hidden else f" ({', '.join(borrowed[:3])})"
        return say(
            "borrowed",
            _("This calls the course's own code{which}. Write it yourself: plain PyTorch is enough.").format(
                which=which
            ),
            reread=question.section,
        )

    expected = known.outcomes(question.reference)
    assert all(one["kind"] == "value" for one in expected), (question.name, expected)
    faults, notes = zip(
        *(
            _compare(question, case, want["value"], got)
            for case, want, got in zip(cases, expected, outcomes, strict=True)
        ),
        strict=True,
    )
    changed = any(one["modified"] for one in outcomes)
    if not changed and not any(faults):
        trial, values = question.trial, [one["value"] for one in outcomes]
        tried, lines = trial(values, cases, seed) if trial else ("", [])
        if tried:
            entry = next(one for one in question.wrong if one.name == tried)
            text, reread = "\n".join([_(entry.says), *lines]), entry.reread or question.section
            return say("mistake", text, name=tried, reread=reread)
        if any(notes):
            return say(
                "equivalent",
                joined([_right(cases), *dict.fromkeys(filter(None, notes))]),
                True,
                name=_name_of(question.variants, outcomes, known),
            )
        text = (
            _right(cases)
            if hidden
            else _("Right, for {n} inputs: {which}.").format(
                n=len(cases), which=_list([case.what for case in cases])
            )
        )
        return say("right", "\n".join([text, *lines]), True)
    if (
        not changed
        and all(one["kind"] == "value" for one in outcomes)
        and (variant := _first(question.variants, outcomes, known))
    ):
        return say("equivalent", joined([_right(cases), _(variant.why)]), True, name=variant.name)

    wrong = [n for n, fault in enumerate(faults) if fault]
    n = wrong[0] if wrong else 0
    picture = None if hidden else _picture(question, cases[n], expected[n]["value"], outcomes[n])
    if mistake := search(known, outcomes, wrong):
        return say(
            "mistake" if mistake.entries[0] in question.wrong else "near",
            faults[n][1]
            if question.own_words and faults[n]
            else _says(mistake, known, outcomes, hidden, wrong),
            name=mistake.name,
            reread=mistake.entries[0].reread or question.section,
            picture=picture,
        )
    if not wrong:  # all numbers are right, but …
        which = next(one["modified"] for one in outcomes if one["modified"])
        return say(
            "modified",
            _(
                "The numbers are right, but the answer changes its own input (argument "
                "{n}). Whoever calls it loses what they had: work on a copy, or write "
                "operations that return a new tensor."
            ).format(n=which[0] + 1),
            reread=question.section,
        )
    kind, text = faults[n]
    rule = _rule(known, outcomes, wrong) if kind == "symptom" and not question.faults else ""
    if hidden:
        text = _(HIDDEN[kind]) if kind in HIDDEN else text
        return say(
            kind,
            _("For some inputs, {text} The check in the notebook says more.").format(text=text),
            reread=question.section,
        )
    if kind == "symptom":
        right = [case.what for case, fault in zip(cases, faults, strict=True) if not fault]
        if right:
            text = joined(
                [text, _("It is right for {which}: what is different here?").format(which=_list(right))]
            )
    elif kind in ("shape", "dtype", "device", "type", "none", "nan", "raised"):
        text = joined(
            [text, _("{name} returns {what}.").format(name=question.name, what=_(question.returns))]
        )
    return say(
        "near" if rule else kind,
        _("With {which}: {text}").format(which=cases[n].what, text=text),
        name=rule.rstrip("."),
        reread=question.section,
        picture=picture,
    )


def _unwritten(question: Question, outcomes: list[dict], hidden: bool) -> tuple[str, str] | None:
    """Kind and text, where there is no answer yet, or none that Python can read."""
    if outcomes and outcomes[0]["kind"] == "syntax":
        return "syntax", _(
            "Python can't read the cell of {name}: it stops in line {line}, at "
            "character {character}. Look there and just before it for a bracket that is not closed, a "
            "missing colon, or a full-width sign such as ， （ ） ： in place of , ( ) :"
        ).format(
            name=question.name,
            line=_digits(outcomes[0]["line"]),
            character=_digits(outcomes[0]["message"]),
        )
    said = next((one["message"] for one in outcomes if one["kind"] == "stub"), None)
    if said is None:
        return None
    stubs = (re.escape(text).replace(r"\{name\}", r"(\w+)") for text in (NOT_WRITTEN, _(NOT_WRITTEN)))
    other = re.match("|".join(stubs), said, re.A)
    called = other and (other[1] or other[2])
    if not hidden and called and called != question.name:
        return "stub", _("{name} calls {other}, which is not written yet. Write that first.").format(
            name=question.name, other=called
        )
    return "stub", _(
        "{name} is not written yet: it raises NotImplementedError. {title} "
        '`check.hint("{name}")` gives a hint.'
    ).format(name=question.name, title=_(question.title))


def _digits(text: str) -> str:
    """A number that came from elsewhere, and nothing else."""
    return text if text.isdecimal() and len(text) < 7 else "?"


def blamed(names) -> str:
    """What to say when another answer was replaced because the mistake is in that one."""
    names = [f"`{name}`" for name in sorted(names)]
    text = (
        _("Your {names} has not passed yet; here it was replaced by ours.")
        if len(names) == 1
        else _("Your {names} have not passed yet; here they were replaced by ours.")
    )
    return text.format(names=_(" and ").join(names))


def _right(cases: list[Case]) -> str:
    return _("Right, for {n} inputs.").format(n=len(cases))


def _list(words: list[str]) -> str:
    words = list(dict.fromkeys(words))
    text = _("; ").join(words[:4])
    return text if len(words) <= 4 else _("{words}; and {n} more").format(words=text, n=len(words) - 4)


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
        checked.append(
            {
                "kind": one["kind"],
                "value": one.get("value"),
                **text,
                "modified": [n for n in range(len(args)) if n in changed],
                "borrowed": [str(name)[:100] for name in borrowed][:20],
            }
        )
    return checked


# ---- the catalogue ----
class _Known:
    """The inputs of one seed, and what the question's own answers return for them: each is run once.

    It describes what is special about each input in one language, so every language has its own.
    """

    def __init__(self, question: Question, seed: int, language: str = ENGLISH):
        self.question, self.cases = question, question.cases(seed)
        # A mistake can make numbers large: then two ways to make it differ more than two right answers do.
        self.loose = replace(question, tolerance=(10 * question.tolerance[0], 10 * question.tolerance[1]))
        self.inputs = [case.args for case in self.cases]
        self._single: dict[tuple[Callable, int], dict] = {}
        self._composed: list | None = None
        self._as_if: list[Near] | None = None

    def outcomes(self, answer: Callable) -> list[dict]:
        return [self.outcome(answer, n) for n in range(len(self.inputs))]

    def outcome(self, answer: Callable, n: int) -> dict:
        """The outcome for one input, run when asked for: most wrong answers are ruled out by the first."""
        if (answer, n) not in self._single:
            self._single[answer, n] = self.tried(answer, n)
        return self._single[answer, n]

    def tried(self, answer: Callable, n: int) -> dict:
        """The same, of one of thousands that are tried once: their outcomes would fill the memory."""
        inputs = self.inputs[n : n + 1]
        return _checked(self._collect(answer, inputs), inputs)[0]

    def _collect(self, answer: Callable, inputs: list[tuple]) -> list[dict]:
        with warnings.catch_warnings():  # a wrong answer may cause one, but the learner didn't write it
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
        """Two mistakes at once (:func:`.diagnosis.composed`)."""
        if self._composed is None:
            self._composed = list(composed(self.question))
        return self._composed

    def as_if(self) -> list[Near]:
        """The reference for other inputs (:func:`.near.as_if`)."""
        if self._as_if is None:
            self._as_if = list(as_if(self.question, self.inputs))
        return self._as_if

    def dtype_fits(self, n: int, dtype: torch.dtype) -> bool:
        """May the result for input ``n`` have that dtype?"""
        return dtype_fits(self.question, self.expected()[n]["value"].dtype, dtype)

    def same(self, n: int, theirs: dict, ours: dict, loose: bool = False) -> bool:
        """Are two outcomes of input ``n`` one and the same?"""
        return _same_outcome(self.loose if loose else self.question, self.inputs[n], theirs, ours)


_known = functools.lru_cache(maxsize=64)(_Known)  # a class needs five


def _first(variants, outcomes, known: _Known):
    """The first entry whose answer gives exactly these outcomes."""
    return next(
        (
            entry
            for entry in variants
            if all(
                known.same(n, one, ours)
                for n, (one, ours) in enumerate(zip(known.outcomes(entry.answer), outcomes, strict=True))
            )
        ),
        None,
    )


def _name_of(variants, outcomes, known: _Known) -> str:
    entry = _first(variants, outcomes, known)
    return entry.name if entry else ""


def _says(mistake: Found, known: _Known, outcomes: list[dict], hidden: bool, wrong: list[int]) -> str:
    """What the learner reads of one mistake, of two, and of what there is besides."""
    said = [_(entry.says) for entry in mistake.entries]
    if mistake.cases and not hidden:
        said = [
            _("With {which}: {text}").format(which=_list([known.cases[n].what for n in cases]), text=text)
            for cases, text in zip(mistake.cases, said, strict=True)
        ]
    if wrong and not hidden and all(one["kind"] == "raised" for n, one in enumerate(outcomes) if n in wrong):
        text = _no_value(known.question, outcomes[wrong[0]])[1]  # an error can have other causes: say which
        said.append(text[:1].upper() + text[1:])
    if len(said) > 1 and len(mistake.entries) > 1:
        said = [_("Two mistakes at once."), f"(1) {said[0]}", f"(2) {said[1]}"]
    what = _("for some inputs") if hidden else _("with {which}").format(which=known.cases[mistake.at].what)
    ours, want = outcomes[mistake.at], known.expected()[mistake.at]
    if mistake.besides == "dtype":
        said.append(
            _("Besides, {what} the result is {got}; it should be {want}.").format(
                what=what, got=_short(ours["value"]), want=_short(want["value"])
            )
        )
    elif mistake.besides == "raised" and hidden:
        said.append(_("Besides, {what} the answer raises an error.").format(what=what))
    elif mistake.besides == "raised":
        line = _(" — in the line `{line}`").format(line=ours["line"]) if ours["line"] else ""
        said.append(
            _("Besides, {what} the answer raises an error: {error}{line}.").format(
                what=what, error=f"{ours['error']}: {ours['message']}", line=line
            )
        )
    elif mistake.besides == "modified":
        said.append(
            _("Besides, the answer changes its own input (argument {n}).").format(n=ours["modified"][0] + 1)
        )
    elif mistake.besides == "nan":
        said.append(
            _("Besides, {what} the result holds NaN ({n} of {all} numbers).").format(
                what=what, n=int(ours["value"].isnan().sum()), all=ours["value"].numel()
            )
        )
    elif mistake.besides == "factor":
        said.append(
            _("Besides, {what} every number is then still {factor} times as large as it should be.").format(
                what=what, factor=_number(mistake.factor)
            )
        )
    return joined(said)


def _same_outcome(question: Question, args: tuple, a: dict, b: dict) -> bool:
    if a["kind"] != b["kind"] or a["modified"] != b["modified"]:
        return False
    if a["kind"] == "raised":  # all of them are of a few classes: the words tell more
        return a["error"] == b["error"] and _words(a["message"]) == _words(b["message"])
    if a["kind"] != "value":
        return a["kind"] in ("none", "slow") or a["type"] == b["type"]
    if "meta" in a["device"] + b["device"]:
        return a["device"] == b["device"]
    return _compare(question, Case(args, ""), a["value"], b, exact=True)[0] is None


def _words(message: str) -> str:
    """An error's message without its numbers and their kind, which not every Python names."""
    return re.sub(r"\d+", "#", message.removeprefix("float "))


# ---- one case ----
def _no_value(question: Question, got: dict) -> tuple[str, str]:
    """What is said of an answer that returns nothing to compare."""
    if got["kind"] == "none":
        return "none", _("the answer returns None. Is the `return` missing?")
    if got["kind"] == "raised":
        text = (
            _("the answer raises {error} — in the line `{line}`.")
            if got["line"]
            else _("the answer raises {error}.")
        )
        return "raised", text.format(error=f"{got['error']}: {got['message']}", line=got["line"])
    if got["kind"] == "foreign":
        return "type", _("the answer returns something that can't be read as numbers: {type}.").format(
            type=got["type"]
        )
    if got["kind"] == "slow":
        return "slow", _(
            "the answer takes more than {seconds:g} s; the reference takes a small part of "
            "that. Is there a loop that never ends, or one over every number?"
        ).format(seconds=question.seconds)
    return "stub", _("the answer is not written yet.")


def _compare(question: Question, case: Case, want, got: dict, exact: bool = False):
    """``(fault, note)``: None or ``(kind, text)``. ``exact``: NaN equals NaN."""
    if got["kind"] != "value":
        return _no_value(question, got), ""
    if got["device"] and got["device"] != "cpu":
        return (
            "device",
            _(
                'the result is on the device "{device}", the inputs are on "cpu". Create '
                "tensors on the device of the input."
            ).format(device=got["device"]),
        ), ""
    if question.faults is not None:
        return _faults(question, case, want, got["value"], exact), ""
    fault = _values(question, want, got["value"], exact)
    if fault is None:
        return None, _wider(want, got["value"]) if question.names_dtype else ""
    if question.same is not None and fault[0] in ("symptom", "nan"):
        try:
            if _values(question, question.same(want, case), question.same(got["value"], case), exact) is None:
                return None, _(question.equivalent)
        except Exception:  # another kind of value has no normal form
            return fault, ""
    return fault, ""


def _faults(question: Question, case: Case, want, got, exact: bool):
    """Like :func:`_values`, where many answers are right. ``exact``: do both have the same fault, or none?"""
    assert question.faults is not None
    text = question.faults(got, case)
    if exact and question.same is not None:  # the words are too coarse to tell two answers apart
        a, b = question.same(want, case), question.same(got, case)
        return (
            None
            if a is b or a is not None and b is not None and torch.allclose(a, b, 0.02, 2e-3)
            else ("symptom", "")
        )
    if exact:
        return None if text == question.faults(want, case) else ("symptom", "")
    return ("symptom", text) if text else None


def _values(question: Question, want, got, exact: bool = False, where: str = ""):
    """None when two values agree, else ``(kind, text)``."""
    name, got = where or _("the result"), _as_expected(want, got)
    if isinstance(want, dict) and (not isinstance(got, dict) or got.keys() != want.keys()):
        return "type", _("{what} should be a dict with the keys {keys}.").format(
            what=name, keys=", ".join(want)
        )
    if _form(got) != _form(want):
        if isinstance(got, list) and len(got) == 1 and _form(got[0]) == _form(want):
            return "type", _(
                "{what} is a sequence of one. Is there a comma too many at the end of a line?"
            ).format(what=name)
        kind = (
            _("a tensor")
            if isinstance(want, torch.Tensor)
            else _("a sequence of {n}").format(n=len(want))
            if isinstance(want, list)
            else _kind(want)
        )
        return "type", _("{what} should be {kind}, it is {other}.").format(
            what=name, kind=kind, other=_kind(got)
        )
    if isinstance(want, (dict, list)):
        if len(got) != len(want):
            return "shape", _("{what} has {n} entries; there should be {wanted}.").format(
                what=name, n=len(got), wanted=len(want)
            )
        keys = want if isinstance(want, dict) else range(len(want))
        faults = (_values(question, want[key], got[key], exact, f"{name}[{key!r}]") for key in keys)
        return next((fault for fault in faults if fault), None)
    if isinstance(want, str):
        wrong = (
            _("{what} is {text!r}, which is wrong.")
            if f'"{got}"' in question.returns or '"' not in question.returns
            else _("{what} is {text!r}, which is none of the answers that are asked for.")
        ).format(what=name, text=got[:60])
        return None if got == want else ("symptom", wrong)
    if question.exact_dtype and type(want) is int and isinstance(got, float):
        return "type", _("{what} should be a whole number, it is {value!r}: divide with //.").format(
            what=name, value=got
        )
    if not isinstance(want, torch.Tensor):
        return _numbers(question, _double(want), _double(got), where, exact, question.tolerance)
    if got.shape != want.shape:
        return "shape", _("{what} has the shape {shape}; it should be {wanted}.").format(
            what=name, shape=list(got.shape), wanted=list(want.shape)
        )
    if not dtype_fits(question, want.dtype, got.dtype):
        return "dtype", _("{what} is {dtype}; it should be {wanted}.").format(
            what=name, dtype=_short(got), wanted=_short(want)
        )
    return _numbers(question, want, got, where, exact, TOLERANCE.get(want.dtype, question.tolerance))


def _form(value) -> int:
    """Which of these a value is; True and False do not count as numbers here."""
    forms: tuple[Any, ...] = (dict, list, str, bool, (int, float), torch.Tensor)
    return next((n for n, form in enumerate(forms) if isinstance(value, form)), len(forms))


def _as_expected(want, got):
    """A tensor as the list or number that is expected, or the reverse, where that is possible."""
    if isinstance(got, torch.Tensor):
        if (
            isinstance(want, list)
            and got.ndim
            and all(isinstance(one, (int, float, torch.Tensor)) for one in want)
        ):
            return list(got) if isinstance(want[0], torch.Tensor) else got.tolist()
        if isinstance(want, (int, float)) and got.ndim == 0 and not got.is_complex():
            return got.item()
    elif isinstance(want, torch.Tensor) and (
        isinstance(got, list) or isinstance(got, (int, float)) and want.ndim == 0
    ):
        with contextlib.suppress(TypeError, ValueError, RuntimeError, OverflowError):
            return _as_tensor(got, want.dtype)
    return got


def _as_tensor(plain, dtype: torch.dtype) -> torch.Tensor:
    """Numbers as a tensor of ``dtype``, or of their own dtype where that one would lose something."""
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
        return _("a tensor of shape {shape}").format(shape=list(value.shape))
    names = {
        "bool": _("True or False"),
        "int": _("a number"),
        "float": _("a number"),
        "str": _("a text"),
        "list": _("a sequence"),
        "dict": _("a dict"),
    }
    return names.get(type(value).__name__, _("a {type}").format(type=type(value).__name__))


def _short(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def dtype_fits(question: Question, want: torch.dtype, got: torch.dtype) -> bool:
    """Is that dtype right? Float32 and float64 count as one; if the text names one, only a wider one does."""
    if want == got or question.exact_dtype:
        return want == got
    whole = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}
    pairs = (torch.float32, torch.float64), (torch.complex64, torch.complex128)
    if question.names_dtype:
        return {want, got} <= whole or (want, got) in pairs
    return any({want, got} <= set(alike) for alike in (whole, *pairs))


def _wider(want, got) -> str:
    if isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor) and want.dtype != got.dtype:
        return _("(The result is {dtype}, asked for is {wanted}; that is accepted here.)").format(
            dtype=_short(got), wanted=_short(want)
        )
    return ""


def _numbers(question: Question, want: torch.Tensor, got: torch.Tensor, where: str, exact: bool, tolerance):
    wide = torch.complex128 if want.is_complex() or got.is_complex() else torch.float64
    a, b = want.to(wide), got.to(wide)
    if not exact and bool((b.isnan() & ~a.isnan()).any()):
        return "nan", _("{what} holds NaN ({n} of {all} numbers).").format(
            what=where or _("the result"), n=int(b.isnan().sum()), all=b.numel()
        )
    close = torch.isclose(b, a, rtol=tolerance[0], atol=tolerance[1], equal_nan=True)
    if bool(close.all()):
        return None
    if exact:  # the only question is whether they agree
        return "symptom", ""
    what = _("{what} is wrong.").format(what=where or _("the result"))
    return "symptom", joined([what, symptom(a, b, close, tolerance)])


# ---- a mistake without a name ----
def symptom(want: torch.Tensor, got: torch.Tensor, close: torch.Tensor, tolerance=(1e-4, 1e-5)) -> str:
    """What can be said of wrong numbers: a factor, a sign, an axis, or the place where they begin."""

    def equal(a, b):
        return a.shape == b.shape and bool(
            torch.isclose(a, b, rtol=tolerance[0], atol=tolerance[1], equal_nan=True).all()
        )

    if want.ndim == 0:
        return _("It is {got}, it should be {want}.").format(**_apart(got, want))
    return (
        _everywhere(want, got, equal)
        or _moved(want, got, equal)
        or _few(want, got, close)
        or _where(want, got, close, equal)
    )


def _rule(known: _Known, outcomes: list[dict], wrong: list[int]) -> str:
    """What holds for all numbers of all wrong inputs, in English; "" if nothing does."""
    found = set()
    with speaking(ENGLISH):
        for n in wrong:
            want, got = (
                known.expected()[n]["value"],
                _as_expected(known.expected()[n]["value"], outcomes[n].get("value")),
            )
            if not all(isinstance(one, torch.Tensor) for one in (want, got)) or want.shape != got.shape:
                return ""
            relative, absolute = TOLERANCE.get(want.dtype, known.question.tolerance)

            def equal(a, b, relative=relative, absolute=absolute):
                return a.shape == b.shape and torch.allclose(b, a, relative, absolute, equal_nan=True)

            if want.is_complex() or got.is_complex():
                return ""
            found.add(
                _everywhere(want.double(), got.double(), equal) or _moved(want.double(), got.double(), equal)
            )
    return found.pop() if len(found) == 1 else ""


def _everywhere(want: torch.Tensor, got: torch.Tensor, equal: Callable) -> str:
    """One rule for all numbers: a factor, a difference, or their signs?"""
    finite = want.isfinite() & got.isfinite()
    a, b = want[finite], got[finite]
    if instead := _for_infinity(want, got, equal):
        return instead
    if not a.numel() or not torch.equal(want.isfinite(), got.isfinite()) or equal(a, b):
        return ""
    if torch.equal(a + b, torch.ones_like(a)) and torch.equal(a, a * a) and not bool((a == a[0]).all()):
        return _("True and False have changed places.")
    top = a.abs().argmax()
    if a[top].abs() > 0 and b[top].abs() > 0 and equal(a * (b[top] / a[top]), b):
        return (
            _("Every number has the wrong sign.")
            if equal(-a, b)
            else _("Every number is {factor} times what it should be.").format(
                factor=_apart(b[top] / a[top], 1.0)["got"]
            )
        )
    if a.numel() > 1 and equal(a + (b[0] - a[0]), b):
        return _("Every number is off by {difference}.").format(difference=_number(b[0] - a[0]))
    if a.numel() > 1 and equal(a.abs(), b.abs()):
        return _("The sizes are right, the signs are not.")
    if a.numel() > 2 and equal(a * a, b):
        return _("Every number is the square of what it should be.")
    return _("Every number is the root of what it should be.") if a.numel() > 2 and equal(a, b * b) else ""


def _for_infinity(want: torch.Tensor, got: torch.Tensor, equal: Callable) -> str:
    """One number in the place of all −inf, and no other mistake?"""
    hidden = want == -torch.inf
    if not bool(hidden.any()) or not equal(want[~hidden], got[~hidden]):
        return ""
    instead = got[hidden]
    if not bool((instead == instead[0]).all() & instead[0].isfinite()):
        return ""
    return _("{number} stands where −inf belongs; the other numbers are right.").format(
        number=_number(instead[0])
    )


def _moved(want: torch.Tensor, got: torch.Tensor, equal: Callable) -> str:
    """The right numbers, with their axes swapped, in reverse order, or shifted by one place?"""
    if want.ndim >= 2 and equal(want.transpose(-1, -2), got):
        return _("It is transposed: the last two axes have changed places.")
    for one, other in itertools.combinations(range(want.ndim), 2):
        if equal(want.transpose(one, other), got):
            return _("Axis {one} and axis {other} have changed places.").format(one=one, other=other)
    for axis in (axis for axis, length in enumerate(want.shape) if length > 1):
        if equal(want.flip(axis), got):
            return _("It is in reverse order along axis {axis}.").format(axis=axis)
        if any(equal(want.roll(step, axis), got) for step in (1, -1)):
            return _("It is shifted by one along axis {axis}.").format(axis=axis)
    return ""


def _few(want: torch.Tensor, got: torch.Tensor, close: torch.Tensor) -> str:
    """Along one axis: only one index, or two?"""
    for axis, length in enumerate(want.shape):
        rows = _rows(close, axis)
        if length > 2 and len(rows) <= 2:
            place = (~close).nonzero()[0].tolist()
            names = [_("the last index") if n == length - 1 else _("index {n}").format(n=n) for n in rows]
            text = (
                _("Along axis {axis} only {where} is wrong: at {place} stands {got}, it should be {want}.")
                if len(rows) == 1
                else _(
                    "Along axis {axis} only {where} are wrong: at {place} stands {got}, it should be {want}."
                )
            )
            return text.format(
                axis=axis,
                where=_(" and ").join(names),
                place=place,
                **_apart(got[tuple(place)], want[tuple(place)]),
            )
    return ""


def _rows(close: torch.Tensor, axis: int) -> list[int]:
    """The indices along one axis at which something is wrong."""
    return sorted(set((~close).nonzero()[:, axis].tolist()))


def _where(want: torch.Tensor, got: torch.Tensor, close: torch.Tensor, equal: Callable) -> str:
    """The part that is wrong: rows, columns, a corner, places that follow a rule, or the first one."""
    place = (~close).nonzero()[0].tolist()
    first = _("The first wrong number is at {place}: {got}, it should be {want}.").format(
        place=place, **_apart(got[tuple(place)], want[tuple(place)])
    )
    finite = want.isfinite() & got.isfinite()
    if bool((want.isinf() != got.isinf()).any()):
        rest = [_("The others are right.")] if close[finite].all() else []
        return joined([_infinities(want, got), *rest, first])
    if want.ndim >= 2 and min(want.shape[-2:]) > 1:
        square = ~close
        for name, part in (
            (
                _("What is wrong stands on the diagonal of the last two axes; the rest is right."),
                square.tril().triu(),
            ),
            (
                _("What is wrong stands below the diagonal of the last two axes; the rest is right."),
                square.tril(-1),
            ),
            (
                _("What is wrong stands above the diagonal of the last two axes; the rest is right."),
                square.triu(1),
            ),
        ):
            if torch.equal(part, square):
                return joined([name, first])
    for axis in range(want.ndim):
        if (text := _slices(want, got, axis, equal)) or (text := _half(close, axis)):
            return joined([text, first])
    offset = (got - want)[finite]
    if want.numel() > 2 and equal(want.sort(-1).values, got.sort(-1).values):
        return joined([_("The numbers of each row are right, but not their order."), first])
    near = len(offset) > 2 and float(offset.abs().max()) < 0.05 * float(want[finite].abs().max())
    if near and not bool(close.any()):
        return joined(
            [
                _("Every number is nearly right: the largest error is {error}.").format(
                    error=_number(offset.abs().max())
                ),
                first,
            ]
        )
    share = float((~close).double().mean())
    return joined([_("{share:.0%} of its numbers differ.").format(share=share), first])


def _infinities(want: torch.Tensor, got: torch.Tensor) -> str:
    """How many numbers are infinite and should not be, or should be and are not."""
    extra, less = int((got.isinf() & ~want.isinf()).sum()), int((want.isinf() & ~got.isinf()).sum())
    found = []
    if extra:
        found.append(
            (
                _("{n} number is infinite and should not be")
                if extra == 1
                else _("{n} numbers are infinite and should not be")
            ).format(n=extra)
        )
    if less:
        found.append(
            (
                _("{n} number is finite and should be infinite")
                if less == 1
                else _("{n} numbers are finite and should be infinite")
            ).format(n=less)
        )
    return _(" and ").join(found) + _(".")


def _slices(want: torch.Tensor, got: torch.Tensor, axis: int, equal: Callable) -> str:
    """Along one axis: is each slice wrong by its own factor or constant?"""
    if want.ndim < 2 or want.shape[axis] < 2 or want.numel() // want.shape[axis] < 3:
        return ""
    a, b = (x.movedim(axis, 0).flatten(1) for x in (want, got))
    if not bool((a.isfinite() & b.isfinite()).all()):
        return ""
    top = a.abs().argmax(1, keepdim=True)
    factor = b.gather(1, top) / a.gather(1, top)
    if bool(factor.isfinite().all()) and equal(a * factor, b):
        return _("Each slice along axis {axis} is wrong by a factor of its own: {some}, …").format(
            axis=axis, some=", ".join(_number(one) for one in factor.flatten()[:3])
        )
    constant = (b - a)[:, :1]
    if equal(a + constant, b):
        return _("Each slice along axis {axis} is off by a constant of its own: {some}, …").format(
            axis=axis, some=", ".join(_number(one) for one in constant.flatten()[:3])
        )
    return ""


def _half(close: torch.Tensor, axis: int) -> str:
    """Along one axis: only from or up to some index, or every second one?"""
    rows, n = _rows(close, axis), close.shape[axis]
    if n < 4 or len(rows) in (0, n):
        return ""
    if rows == list(range(rows[0], n)):
        return _(
            "Along axis {axis} all is right up to index {last}, and wrong from index {first} on."
        ).format(axis=axis, last=rows[0] - 1, first=rows[0])
    if rows == list(range(rows[-1] + 1)):
        return _(
            "Along axis {axis} all is wrong up to index {last}, and right from index {first} on."
        ).format(axis=axis, last=rows[-1], first=rows[-1] + 1)
    if rows in (list(range(0, n, 2)), list(range(1, n, 2))):
        return _("Along axis {axis} every second index is wrong, from index {first} on.").format(
            axis=axis, first=rows[0]
        )
    return ""


def _number(value, digits: int = 4) -> str:
    value = value.item() if isinstance(value, torch.Tensor) else value
    return f"{value:.{digits}g}"


def _apart(got, want) -> dict[str, str]:
    """Two numbers as text, with enough digits to tell them apart."""
    for digits in range(4, 18):
        said = {"got": _number(got, digits), "want": _number(want, digits)}
        if said["got"] != said["want"]:
            break
    return said


def _picture(question: Question, case: Case, want, got: dict) -> dict | None:
    """Target and answer as two pictures of at most two axes, where there is something to see."""
    if not question.picture or got["kind"] != "value":
        return None
    value = got["value"]
    if isinstance(want, list) and isinstance(value, list) and len(want) == len(value):
        want, value = next(
            ((a, b) for a, b in zip(want, value, strict=True) if _values(question, a, b) is not None),
            (None, None),
        )
    if not (
        isinstance(want, torch.Tensor)
        and isinstance(value, torch.Tensor)
        and want.shape == value.shape
        and want.ndim
        and not want.is_complex()
        and not value.is_complex()
        and want.numel() > 1
    ):
        return None
    want, value = want.double(), value.double()
    if question.drawn is not None:
        want, value = question.drawn(want, case), question.drawn(value, case)
    while want.ndim > 2:
        if want.shape[0] == 0:
            return None
        n = next((n for n in range(len(want)) if not torch.allclose(want[n], value[n], equal_nan=True)), 0)
        want, value = want[n], value[n]
    cut = tuple(slice(0, PICTURE) for _each in range(want.ndim))
    kind = "lines" if want.ndim == 1 else "heat"
    return {
        "kind": kind,
        "target": want[cut].clone(),
        "yours": value[cut].clone(),
        "what": case.what,
        "axes": list(question.axes),
    }
