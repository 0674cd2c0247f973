"""What a learner sees of a check: a text, sometimes target beside answer, and one line on failure."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import secrets
import textwrap
import types
from collections.abc import Callable, Iterator

from tutorial_lib import plots
from tutorial_lib.language import ENGLISH, _, joined, language, words
from tutorial_lib.stored_widgets import table

from ..places import ROOT
from ..progress import read, record
from . import judge_process, questions
from .answer import collect
from .diagnosis import names_of
from .judge import blamed
from .question import Question, Verdict

WIDE = 44  # characters of a title


class _OneLine(Exception):
    """A notebook shows it as one line, not as a traceback."""

    def _render_traceback_(self):
        return [f"{type(self).__name__}: {self}"]


class NotYet(_OneLine, AssertionError):
    """An answer that is not right yet."""


class NotAFunction(_OneLine, TypeError):
    """A check was given something other than the answer itself."""


class Check:
    """The check of one question: call it with your function."""

    def __init__(self, question: Question):
        self.question = question
        returns = _("Returns {what}.").format(what=_(question.returns))
        self.__doc__ = f"{_(question.title)}\n\n{returns}"

    def __call__(self, answer: Callable) -> None:
        """Run ``answer`` on fresh inputs and say what came of it.

        Returns None when it is right; raises NotYet when it is not, NotAFunction for what can't be called.
        """
        if not callable(answer):
            name = self.question.name
            raise NotAFunction(
                _(
                    "check.{name}({name}) takes your function itself, not what it returns; given was a {type}"
                ).format(name=name, type=type(answer).__name__)
            )
        show(self.question, verdict(self.question, answer))

    def __repr__(self) -> str:
        return f"<check.{self.question.name}: {_(self.question.title)}>"


def verdict(question: Question, answer: Callable, seed: int | None = None) -> Verdict:
    """Call the answer here, and let the judging process judge what it returned.

    If it is wrong and calls another answer of the exercise that is wrong, too, ours takes the place of that
    one, so that a mistake counts where it was made.
    """
    seed = secrets.randbits(48) if seed is None else seed
    found = _judged(question, answer, seed)
    others = {} if found.passed else _called(question, answer)
    others = {
        name: other for name, other in others.items() if not _judged(questions.find(name), other, seed).passed
    }
    if not others:
        return found
    with _replaced(answer, others):
        found = _judged(question, answer, seed)
    found.text = joined([blamed(others), found.text])
    return found


def _judged(question: Question, answer: Callable, seed: int) -> Verdict:
    cases = question.cases(seed)
    outcomes = collect(answer, [case.args for case in cases], question.seconds)
    if question.trial and all(one["kind"] == "value" for one in outcomes):
        _seal(
            question,
            sorted(f"{case.what}: {one['value']}" for case, one in zip(cases, outcomes, strict=True)),
        )
    reply = judge_process.ask(
        {"question": question.name, "seed": seed, "outcomes": outcomes, "language": language()}
    )
    return Verdict(**reply["verdict"])


def _seal(question: Question, said: list[str]) -> None:
    """Write down what is predicted before anything can be measured; the first seal stays in the log.

    It binds nobody, since the log is the learner's own. It reminds them of what they once thought.
    """
    code = hashlib.sha256("\n".join(said).encode()).hexdigest()[:8]
    entry = f"{question.exercise}.sealed.{question.name}"
    first = read().get(entry, {}).get("first", [code, *said])
    record(entry, first=first, last=[code, *said])
    print(_("Sealed as {code}, before anything is tried.").format(code=code))
    if first[0] != code:
        print("\n".join([_("Your first seal was {code}:").format(code=first[0]), *first[1:]]))


def _called(question: Question, answer: Callable) -> dict[str, Callable]:
    """Other answers of the exercise that this one calls, directly or through another function."""
    names = {other.name for other in questions.load(question.exercise)} - {question.name}
    space = getattr(answer, "__globals__", {})
    found: dict[str, Callable] = {}
    seen, ahead = set(), [answer]
    while ahead:
        one = ahead.pop()
        if not isinstance(one, types.FunctionType) or one in seen or one.__globals__ is not space:
            continue
        seen.add(one)
        for name in names_of(one.__code__):
            if name in names and callable(space.get(name)):
                found[name] = space[name]
            elif name in space:
                ahead.append(space[name])
    return found


@contextlib.contextmanager
def _replaced(answer: Callable, others: dict[str, Callable]) -> Iterator[None]:
    """Put the references under the names of these functions temporarily."""
    space = getattr(answer, "__globals__", {})
    space.update({name: _ours(name, other) for name, other in others.items()})
    try:
        yield
    finally:
        space.update(others)


def _ours(name: str, theirs: Callable) -> Callable:
    """The reference, called as the learner's function is called."""
    reference = questions.find(name).reference
    try:
        signature = inspect.signature(theirs)
    except (TypeError, ValueError):
        return reference
    return lambda *args, **named: reference(*signature.bind(*args, **named).args)


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
        print("  " + _("Read again: {section}.").format(section=_section(verdict.reread)))
    show_picture(question, verdict)
    text = (
        _('{name} is not written yet; the text above says why. `check.hint("{name}")` helps.')
        if verdict.kind == "stub"
        else _('{name} is not right yet; the text above says why. `check.hint("{name}")` helps.')
    )
    raise NotYet(text.format(name=question.name))


def _section(where: str) -> str:
    """``06, section "Signs"`` with the heading as the reader's notebook has it."""
    notebook, _comma, rest = where.partition(', section "')
    return _('{notebook}, section "{heading}"').format(notebook=notebook, heading=_(rest.removesuffix('"')))


def show_picture(question: Question, verdict: Verdict) -> None:
    """Draw the picture, if there is one. The feedback stands without it, so nothing is raised."""
    if verdict.picture is None:
        return
    try:
        draw(question, verdict)
    except Exception as problem:
        print(
            _(
                "The picture could not be drawn ({problem}). The feedback above is complete without it."
            ).format(problem=f"{type(problem).__name__}: {problem}")
        )


def draw(question: Question, verdict: Verdict) -> None:
    """Target beside answer, for the case that the verdict is about."""
    assert verdict.picture is not None
    target, yours, what = (verdict.picture[key] for key in ("target", "yours", "what"))
    along, up = verdict.picture["axes"]
    kind = _("Two lines.") if verdict.picture["kind"] == "lines" else _("Two heat maps.")
    beside = _("Target beside your answer for {which}.").format(which=what)
    alt = joined([kind, beside, verdict.text])
    if verdict.picture["kind"] == "lines":
        wide = WIDE if language() == ENGLISH else WIDE // 2
        fig = plots.lines(
            range(len(target)),
            {_("target"): target, _("yours"): yours},
            title=textwrap.fill(what, wide),
            xlabel=along or _("index"),
            ylabel=up or _("value"),
            markers=True,
            legend="beside",
            size=(7.2, 3.4),
        )
    else:
        finite = target[target.isfinite()].abs()
        reach = float(finite.max()) if finite.numel() and finite.max() > 0 else 1.0
        fig, axes = plots.panels(1, 2, size=(8, 3.4))
        names = {"xlabel": along or _("last axis"), "ylabel": up or _("axis before it")}
        plots.heat(target, title=_("target"), limits=(-reach, reach), colorbar=None, ax=axes[0], **names)
        plots.heat(yours, title=_("yours"), limits=(-reach, reach), colorbar="", ax=axes[1], **names)
    plots.show(fig, alt)


def hint(name: str) -> None:
    """Print the next of three hints: the idea, the shape of the code, the last mile. They are free.

    Raises KeyError for an unknown question.
    """
    question = questions.find(name)
    entry = f"{question.exercise}.exercise.{name}"
    step = min(_read(read().get(entry, {})), 2)
    print(joined([_("Hint {n} of 3.").format(n=step + 1), _(question.hints[step])]))
    record(entry, hints=step + 1)


SOLUTIONS = ROOT / "solutions"
LEAST = 8  # words of an answer that somebody has committed to


def model_answer(name: str, yours: str = "") -> None:
    """Show our answer to a written question and its rubric, once you have committed to yours.

    ``yours`` is your answer in a sentence or two; the log keeps it, so that the next call needs none. Raises
    KeyError for an unknown question.
    """
    path, text = _written(name)
    if path is None:
        print(_("This copy of the course has no solutions. Your teacher has the model answers."))
        return
    entry = f"{path.stem[2:4]}.written.{name}"
    if words(yours) >= LEAST:
        record(entry, answer=yours)
    kept = read().get(entry, {}).get("answer")
    if not isinstance(kept, str):
        print(
            _(
                "Commit first: write your answer between the quotes, in {n} words or more. Then run this "
                "cell again: it shows a model answer and how it is marked."
            ).format(n=LEAST)
        )
        return
    print(_("You wrote: {text}").format(text=kept) + "\n")
    _render(text.replace("### BEGIN SOLUTION", "").replace("### END SOLUTION", "").strip())
    print(
        _("All model answers of this exercise: {path}").format(
            path=path.relative_to(SOLUTIONS.parent).as_posix()
        )
    )


def _written(name: str):
    """The notebook that holds the model answer, and its text; ``(None, "")`` where there are no solutions."""
    paths = sorted(SOLUTIONS.glob("ex*/ex*.ipynb"))
    for path in paths:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if any(tag.startswith(f"explain:{name}:") for tag in cell["metadata"].get("tags", [])):
                return path, "".join(cell["source"])
    if paths:
        raise KeyError(f"no written question {name!r}")
    return None, ""


def _render(text: str) -> None:
    """Markdown in a notebook, plain text elsewhere."""
    try:
        from IPython.display import Markdown, display
    except ImportError:
        print(text)
    else:
        display(Markdown(text))


def _read(entry: dict) -> int:
    """How many hints were read, whatever is in the log."""
    used = entry.get("hints", 0)
    return min(max(used, 0), 3) if type(used) is int else 0


class Progress:
    """What the log says about one exercise."""

    HEAD = ("Question", "Points", "Passed", "Hints read")

    def __init__(self, exercise: str):
        self.exercise = exercise
        questions.load(exercise)

    def rows(self) -> list[tuple[str, str, str, str]]:
        entries, rows = read(), []
        for question in questions.load(self.exercise):
            entry = entries.get(f"{self.exercise}.exercise.{question.name}", {})
            points = f"{question.points}" + (f" {_('bonus')}" if question.bonus else "")
            passed = _("yes") if entry.get("passed") is True else _("not yet")
            read_so_far = _("{number} of {all}").format(number=_read(entry), all=3)
            rows.append((question.name, points, passed, read_so_far))
        return rows

    def _repr_html_(self) -> str:
        return table([_(each) for each in self.HEAD], self.rows())

    def __repr__(self) -> str:
        return "\n".join(" | ".join(row) for row in ([_(each) for each in self.HEAD], *self.rows()))


def progress(exercise: str) -> Progress:
    """The questions of an exercise that you have passed: ``check.progress("06")``.

    Raises KeyError for an unknown exercise.
    """
    return Progress(exercise)
