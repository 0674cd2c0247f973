"""The warm-up of a lesson: two questions of earlier lessons, asked again when they are due.

The rule: **what you got wrong or did not know comes first, then what is due, then what you were never asked.
A right answer rests for a day, and each further one twice as long as the one before.** The two are never both
of the lesson just before, unless there is no other.

The questions are those of the concept checks. What was said there stays as it is, and counts as the first
answer; what is said in a warm-up stands under a key of its own: ``01.again.pool``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import ipywidgets as widgets

from tutorial_lib.language import _

from ..progress import now, read, record
from . import questions

FIRST_REST = timedelta(days=1)
WRONG, DUE, NEW, RESTING = range(4)


class Memory(NamedTuple):
    """What the log knows of a question; sorted, they stand in the order in which they are asked."""

    rank: int
    since: str
    """When it was due, in the form of :func:`course.progress.now`; ``""`` if it was never asked."""
    turn: tuple[int, int]
    number: str
    name: str


def streak(entry: Mapping) -> int:
    """How often a question was answered rightly, the last times in a row."""
    return int(entry.get("streak", bool(entry.get("right")))) if entry.get("right") else 0


def remembered(log: Mapping[str, dict], numbers: list[str], today: str) -> Iterator[Memory]:
    """The questions of these lessons' concept checks; of those never asked, the latest come first."""
    for lesson, number in enumerate(numbers):
        names = list(questions.questions(number).get("check", {}))
        for n, name in enumerate(names):
            turn = (-lesson, (n + len(numbers)) % len(names))  # another one in each lesson
            entries = (
                log.get(questions.log_key(kind, f"{number}.{name}"), {}) for kind in ("again", "check")
            )
            entry = next((each for each in entries if "choice" in each), None)
            if entry is None:
                yield Memory(NEW, "", turn, number, name)
                continue
            at, right = str(entry.get("at", "")), streak(entry)
            since = _after(at, FIRST_REST * 2 ** (right - 1)) if right else at
            yield Memory(
                WRONG if not right else DUE if since <= today else RESTING, since, turn, number, name
            )


def _after(at: str, rest: timedelta) -> str:
    try:
        return (datetime.fromisoformat(at).astimezone(UTC) + rest).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):  # a log of an earlier version has no times
        return ""


def pick(number: str, log: Mapping[str, dict], today: str = "") -> list[tuple[str, str]]:
    """The two questions for the start of a lesson: ``[("00", "softmax"), …]``; none for the first one."""
    earlier = [each for each in questions.notebooks() if each < number]
    if not (found := sorted(remembered(log, earlier, today or now()))):
        return []
    first, *rest = found
    other = [each for each in rest if {first.number, each.number} != {earlier[-1]}]
    return [(each.number, each.name) for each in (first, *(other or rest)[:1])]


def due(log: Mapping[str, dict], today: str = "") -> str:
    """What is due in the next warm-up, in a sentence; ``""`` if nothing is."""
    found = remembered(log, questions.notebooks(), today or now())
    ready = [each.number for each in found if each.rank in (WRONG, DUE)]
    lessons = ", ".join(dict.fromkeys(ready))
    said = _("To be asked again in a warm-up: {n}, of lesson {lessons}.")
    return said.format(n=len(ready), lessons=lessons) if ready else ""


class Again(questions.Check):
    """A question of an earlier lesson; the first click counts, each time that it is asked."""

    def __init__(self, number: str, name: str, n: int):
        asked = questions.questions(number)["check"][name]
        label = _("Warm-up {n}, from lesson {number}").format(n=n, number=number)
        super().__init__(f"{number}.{name}", "again", asked, label)
        self.first, self.answered = questions.log_key("check", f"{number}.{name}"), False

    def choose(self, answer):
        if not self.answered:
            log, right = read(), answer == self.asked["answer"]
            before = log.get(self.key) or log.get(self.first, {})
            record(self.key, choice=answer, right=right, streak=streak(before) + 1 if right else 0, at=now())
        self.answered = True
        self.explain(answer)


class WarmUp(questions.QuestionList):
    RULE = (
        "What you got wrong or did not know comes first. A right answer rests for a day, "
        "and each further one twice as long."
    )


def warm_up(number: str) -> WarmUp:
    """Two questions of earlier lessons, at the start of lesson ``number``: ``warm_up("02")``.

    Raises KeyError for a lesson that there is not, ValueError for the first one.
    """
    questions.load(number)
    if not (asked := pick(number, read())):
        raise ValueError(f"warm_up({number!r}): no lesson comes before it; call it from 01 on")
    return WarmUp(
        [Again(*key, n) for n, key in enumerate(asked, 1)], widgets.HTML(f"<i>{_(WarmUp.RULE)}</i>")
    )
