"""What a learner sees of a check: a text, sometimes target beside answer, and one line on failure."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from .. import plots
from ..fallback import table
from ..progress import read, record
from . import oracle, questions
from .answer import collect
from .question import Question, Verdict


class _OneLine(Exception):
    """A notebook shows it as one line, not as a traceback."""

    def _render_traceback_(self):
        return [f"{type(self).__name__}: {self}"]


class NotYet(_OneLine, AssertionError):
    """An answer that is not right yet."""


class NotAFunction(_OneLine, TypeError):
    """Something else than the answer itself was given to a check."""


class Check:
    """The check of one question: call it with your function."""

    def __init__(self, question: Question):
        self.question = question
        self.__doc__ = f"{question.title}\n\nReturns {question.returns}."

    def __call__(self, answer: Callable) -> None:
        """Run ``answer`` on fresh inputs and say what came of it.

        Returns None when it is right; raises NotYet when it is not, NotAFunction for what can't be called.
        """
        if not callable(answer):
            name = self.question.name
            raise NotAFunction(f"check.{name}({name}) takes your function itself, not what it returns; given "
                            f"was a {type(answer).__name__}")
        show(self.question, verdict(self.question, answer))

    def __repr__(self) -> str:
        return f"<check.{self.question.name}: {self.question.title}>"


def verdict(question: Question, answer: Callable, seed: int | None = None) -> Verdict:
    """Call the answer here, and let the judging process judge what it returned."""
    seed = secrets.randbits(48) if seed is None else seed
    outcomes = collect(answer, [case.args for case in question.cases(seed)], question.seconds)
    reply = oracle.ask({"question": question.name, "seed": seed, "outcomes": outcomes})
    return Verdict(**reply["verdict"])


def show(question: Question, verdict: Verdict) -> None:
    """Print a verdict, draw its picture, log it; raise NotYet unless it is passed."""
    entry = f"{question.exercise}.exercise.{question.name}"
    if verdict.passed:
        record(entry, passed=True)
        print(f"✓ {question.name}: {verdict.text}")
        return
    record(entry, passed=bool(read().get(entry, {}).get("passed")), last=verdict.name or verdict.kind)
    print(f"✗ {question.name}: {verdict.text}")
    if verdict.reread:
        print(f"  Read again: {verdict.reread}.")
    if verdict.picture:
        draw(question, verdict)
    state = "written" if verdict.kind == "stub" else "right"
    raise NotYet(f"{question.name} is not {state} yet; the text above says why. "
                 f"`check.hint(\"{question.name}\")` helps.")


def draw(question: Question, verdict: Verdict) -> None:
    """Target beside answer, for the case that the verdict speaks of."""
    assert verdict.picture is not None
    target, yours, what = (verdict.picture[key] for key in ("target", "yours", "what"))
    kind = "Two lines" if verdict.picture["kind"] == "lines" else "Two heat maps"
    alt = f"{kind}. Target beside your answer for {what}. {verdict.text}"
    if verdict.picture["kind"] == "lines":
        fig = plots.lines(range(len(target)), {"target": target, "yours": yours}, title=what, xlabel="index",
                          markers=True, legend="beside", size=(7.2, 3.2))
    else:
        finite = target[target.isfinite()].abs()
        reach = float(finite.max()) if finite.numel() and finite.max() > 0 else 1.0
        fig, axes = plots.panels(1, 2, size=(8, 3.4))
        plots.heat(target, title="target", limits=(-reach, reach), colorbar=None, ax=axes[0])
        plots.heat(yours, title="yours", limits=(-reach, reach), colorbar="", ax=axes[1])
    plots.show(fig, alt)


def hint(name: str) -> None:
    """Print the next of three hints: the idea, the shape of the code, the last mile. They cost nothing.

    Raises KeyError for an unknown question.
    """
    question = questions.find(name)
    entry = f"{question.exercise}.exercise.{name}"
    step = min(_read(read().get(entry, {})), 2)
    print(f"Hint {step + 1} of 3. {question.hints[step]}")
    record(entry, hints=step + 1)


def _read(entry: dict) -> int:
    """How many hints were read, whatever somebody has written into the log."""
    used = entry.get("hints", 0)
    return min(max(used, 0), 3) if type(used) is int else 0


class Progress:
    """What the log says of one exercise."""

    HEAD = ("Question", "Points", "Passed", "Hints read")

    def __init__(self, exercise: str):
        self.exercise = exercise
        questions.load(exercise)

    def rows(self) -> list[tuple[str, str, str, str]]:
        entries, rows = read(), []
        for question in questions.load(self.exercise):
            entry = entries.get(f"{self.exercise}.exercise.{question.name}", {})
            points = f"{question.points}" + (" bonus" if question.bonus else "")
            passed = "yes" if entry.get("passed") is True else "not yet"
            rows.append((question.name, points, passed, f"{_read(entry)} of 3"))
        return rows

    def _repr_html_(self) -> str:
        return table(self.HEAD, self.rows())

    def __repr__(self) -> str:
        return "\n".join(" | ".join(row) for row in (self.HEAD, *self.rows()))


def progress(exercise: str) -> Progress:
    """The questions of an exercise that you have passed: ``check.progress("06")``.

    Raises KeyError for an unknown exercise.
    """
    return Progress(exercise)
