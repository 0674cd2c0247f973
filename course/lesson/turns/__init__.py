"""Your turn: two to five lines that the learner writes in a lesson, judged at once, in this kernel.

``t01.py`` holds the turns of notebook 01 as questions of :mod:`course.checks`. Nothing is graded and
nothing is secret here: whoever leaves a blank empty, or gets it wrong, goes on with the course's own version.
So a notebook runs whole as it is stored; and no question of an exercise is a turn, because here the solution
is shown.
"""

from __future__ import annotations

import functools
import html
import importlib
import inspect
import secrets
import textwrap
from collections.abc import Callable, Iterator
from importlib.resources import files

from IPython.display import display

from tutorial_lib.language import _, joined

from ...checks.answer import collect
from ...checks.judge import judge
from ...checks.question import Question, Verdict
from ...progress import now, read, record
from ..questions import log_key

EMPTY = "Not written yet."
INSTEAD = "From here on the lesson uses its own version."


@functools.cache
def notebooks() -> tuple[str, ...]:
    """The numbers of the notebooks that have turns: ``("00", "01", …)``."""
    names = (file.name for file in files(__package__).iterdir())
    return tuple(sorted(name[1:3] for name in names if name.startswith("t") and name.endswith(".py")))


@functools.cache
def load(number: str) -> dict[str, Question]:
    """The turns of one notebook by name; none where it has none."""
    if number not in notebooks():
        return {}
    return {turn.name: turn for turn in importlib.import_module(f"{__package__}.t{number}").QUESTIONS}


def find(key: str) -> Question:
    """``find("01.attend")``. Raises KeyError, naming what there is, for an unknown one."""
    number, _dot, name = key.partition(".")
    if name not in load(number):
        raise KeyError(f"notebook {number} has no turn {name!r}; it has {', '.join(load(number)) or 'none'}")
    return load(number)[name]


def reference(question: Question) -> Callable:
    """The course's own version of what the learner writes: a function, or a class."""
    return inspect.unwrap(question.reference) if question.use else question.reference


def solution(question: Question) -> str:
    """The reference as a learner would have written it in the blank."""
    return textwrap.dedent(inspect.getsource(reference(question))).strip()


def _said(question: Question) -> str:
    """The same with its docstring as the notebook has it, in the reader's language."""
    ours, code = reference(question), solution(question)
    for part in (ours, *vars(ours).values()) if inspect.isclass(ours) else (ours,):
        if callable(part) and (text := part.__doc__):
            code = code.replace(text, _(text))
    return code


def texts(question: Question) -> Iterator[tuple[str, str]]:
    """``(place, text)`` of what a learner may read of a question."""
    yield from (("title", question.title), ("returns", question.returns))
    yield from ((f"hint {n}", hint) for n, hint in enumerate(question.hints, 1))
    yield from ((wrong.name, wrong.says) for wrong in question.wrong)
    yield from ((variant.name, variant.why) for variant in question.variants)
    if question.equivalent:
        yield "equivalent", question.equivalent
    yield from (("axis", label) for label in question.axes if label)


class Turn:
    """How a turn went, with the hints and one way to write it, folded."""

    def __init__(self, question: Question, verdict: str, text: str):
        self.question, self.verdict, self.text = question, verdict, text

    def _repr_html_(self) -> str:
        hints = "".join(
            f"<details><summary>{_('Hint {n}').format(n=n)}</summary><p>{html.escape(_(hint))}</p></details>"
            for n, hint in enumerate(self.question.hints, 1)
        )
        code = (
            f"<details><summary>{_('One way to write it')}</summary>"
            f"<pre>{html.escape(_said(self.question))}</pre></details>"
        )
        return f"<p><b>{html.escape(self.verdict)}</b> {html.escape(self.text)}</p>{hints}{code}"

    def __repr__(self) -> str:
        return f"{self.verdict} {self.text}"


def _is_empty(answer: Callable, outcomes: list[dict]) -> bool:
    """Is the blank as it was given, with a line ``...`` that nobody has replaced?"""
    nothing = all(one["kind"] in ("none", "stub") or one.get("type") == "ellipsis" for one in outcomes)
    return nothing and _has_dots(answer)


def _has_dots(answer: Callable) -> bool:
    """Is one of the lines of its source ``...``, or ``return ...``? Of a class: of its methods' source."""
    methods = vars(answer).values() if inspect.isclass(answer) else (answer,)
    parts = [part for part in methods if inspect.isroutine(part)]
    try:
        lines = [line for part in parts for line in inspect.getsource(part).splitlines()]
    except (OSError, TypeError):
        return False
    return any(line.split("#")[0].strip().removeprefix("return ") == "..." for line in lines)


def your_turn(key: str, answer: Callable, seed: int | None = None, build: bool = False) -> Callable:
    """Judge what the learner wrote, and say what is wrong with it, in words.

    ``build`` marks the one that is built from an empty cell; it takes longer (``workshop/navigation.py``).
    Returns their function if it is right, else the reference, so that the lesson goes on either way. Nothing
    that a learner may write makes it raise. ``seed`` draws the inputs; without it they are new each time.

    Raises KeyError for an unknown turn, TypeError for what can't be called.
    """
    question = find(key)
    if not callable(answer):
        raise TypeError(
            f"your_turn({key!r}, …) takes your function itself, not what it returns; given was a "
            f"{type(answer).__name__}"
        )
    seed = secrets.randbits(48) if seed is None else seed
    asked = question.use(answer) if question.use else answer
    outcomes = collect(asked, [case.args for case in question.cases(seed)], question.seconds)
    verdict = judge(question, seed, outcomes)
    entry = log_key("turn", key)
    if verdict.passed:
        record(entry, passed=True, choice="written", at=now())
        display(Turn(question, _("✔ Right."), _("From here on the lesson runs on your code.")))
        return answer
    if _is_empty(answer, outcomes):
        display(Turn(question, _(EMPTY), _(INSTEAD)))
        return reference(question)
    passed = bool(read().get(entry, {}).get("passed"))
    record(entry, passed=passed, last=verdict.name or verdict.kind, at=now())
    display(Turn(question, _("✘ Not yet."), joined([verdict.text, _(INSTEAD)])))
    _draw(question, verdict)
    return reference(question)


def _draw(question: Question, verdict: Verdict) -> None:
    if verdict.picture:
        from ...checks.report import show_picture  # late: a right answer needs no picture

        show_picture(question, verdict)
