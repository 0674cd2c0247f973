"""What a teacher has decided for one exercise: late days, extensions, questions that are dropped or given.

The rules stand in ``marks/<assignment>/.rules`` and hold for all later runs, until they are changed.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from course import files

from . import roster

DAY = 86_400.0
PARTS = {"whole": math.ceil, "share": float, "none": math.floor}  # what a part of a day counts


@dataclass(frozen=True)
class Rules:
    """``late_per_day`` is a share of the maximum, 0 to 1; ``extensions`` are seconds by student.

    A ``dropped`` question counts for nobody: neither its points nor its share of the maximum. A ``given`` one
    counts in full for everybody whose notebook could be read.
    """

    late_per_day: float = 0.0
    part_of_day: str = "whole"
    extensions: Mapping[str, float] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def __post_init__(self):
        if not 0 <= self.late_per_day <= 1:
            raise ValueError(f"late_per_day={self.late_per_day}: give a share of the maximum per day, from 0 "
                             "to 1")
        if self.part_of_day not in PARTS:
            raise ValueError(f"{self.part_of_day!r} says not what a part of a day counts; say one of "
                             f"{', '.join(PARTS)}")

    def with_questions(self, known: Iterable[str], drop=(), give=(), restore=()) -> Rules:
        """These rules, with questions dropped, given to all, or counted as usual again (``restore``).

        ValueError for a name that is not in ``known``, or that is asked to be two things at once.
        """
        asked, known = [*drop, *give, *restore], list(known)
        for name in asked:
            if name not in known:
                raise ValueError(f"{name!r} is no coded question of this exercise; there are "
                                 f"{', '.join(known)}")
            if asked.count(name) > 1:
                raise ValueError(f"{name!r} cannot be dropped, given and restored at once: say one of them")
        return replace(self, dropped=tuple(sorted({*self.dropped, *drop} - {*give, *restore})),
                       given=tuple(sorted({*self.given, *give} - {*drop, *restore})))

    def extension(self, student: str, listed: roster.Roster) -> datetime.timedelta | None:
        """The time that a student has: that for this exercise, else that of the class list; None for none."""
        if student in self.extensions:
            return datetime.timedelta(seconds=self.extensions[student])
        return listed.extension(student)

    def late_share(self, seconds: float) -> float:
        """The share of the maximum that so many seconds after the due time cost.

        >>> rules = Rules(late_per_day=0.1)
        >>> rules.late_share(3_600), replace(rules, part_of_day="none").late_share(3_600)
        (0.1, 0.0)
        >>> round(replace(rules, part_of_day="share").late_share(1.5 * 86_400), 6)
        0.15
        """
        return min(1.0, PARTS[self.part_of_day](max(0.0, seconds) / DAY) * self.late_per_day)


def load(root: Path, assignment: str) -> Rules:
    """The rules of an exercise; the usual ones where none were written."""
    path = _path(root, assignment)
    earlier = path.with_name(".late-per-day")  # all that was kept before there were rules
    if not path.exists():
        return Rules(float(earlier.read_text())) if earlier.exists() else Rules()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Rules(**{**found, "dropped": tuple(found["dropped"]), "given": tuple(found["given"])})
    except (ValueError, TypeError, KeyError) as problem:
        raise ValueError(f"{path} cannot be read ({problem}). Delete it, and give --late-per-day, --extend, "
                         "--drop and --give once more.") from None


def save(root: Path, assignment: str, rules: Rules) -> None:
    text = json.dumps(asdict(rules), indent=1, sort_keys=True) + "\n"
    files.replace(_path(root, assignment), text.encode())


def _path(root: Path, assignment: str) -> Path:
    return Path(root) / "marks" / assignment / ".rules"
