"""What a teacher has decided for one exercise: late days, extensions, questions that are dropped or given.

The rules are kept in ``marks/<assignment>/.rules``, the zone of the class in ``marks/.zone``. They hold for
all later runs, until they are changed. The teacher may write all dates into one file, ``due.toml``.
"""

from __future__ import annotations

import datetime
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from course import files

from . import clock, roster

DUE = "due.toml"
PARTS = {"whole": math.ceil, "share": float, "none": math.floor}  # what a part of a day counts


@dataclass(frozen=True)
class Rules:
    """``late_per_day`` is a share of the maximum, 0 to 1; ``extensions`` are such as 3d, by student.

    ``zone`` is that of the class, for all its exercises; "" is this machine's. ``groups`` are dates of their
    own, as ISO 8601 writes them, for groups of the class list.

    A ``dropped`` question counts for nobody: neither its points nor its share of the maximum. A ``given`` one
    counts in full for everybody whose notebook could be read.
    """

    late_per_day: float = 0.0
    part_of_day: str = "whole"
    extensions: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    zone: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        if not 0 <= self.late_per_day <= 1:
            raise ValueError(
                f"late_per_day={self.late_per_day}: give a share of the maximum per day, from 0 to 1"
            )
        if self.part_of_day not in PARTS:
            raise ValueError(
                f"{self.part_of_day!r} says not what a part of a day counts; say one of {', '.join(PARTS)}"
            )

    def with_questions(self, known: Iterable[str], drop=(), give=(), restore=()) -> Rules:
        """These rules, with questions dropped, given to all, or counted as usual again (``restore``).

        ValueError for a name that is not in ``known``, or that is to be two things at once.
        """
        asked, known = [*drop, *give, *restore], list(known)
        for name in asked:
            if name not in known:
                raise ValueError(
                    f"{name!r} is no coded question of this exercise; there are {', '.join(known)}"
                )
            if asked.count(name) > 1:
                raise ValueError(f"{name!r} cannot be dropped, given and restored at once: say one of them")
        return replace(
            self,
            dropped=tuple(sorted({*self.dropped, *drop} - {*give, *restore})),
            given=tuple(sorted({*self.given, *give} - {*drop, *restore})),
        )

    def renamed(self, old: str, new: str) -> Rules:
        """With the extension of ``old`` as that of ``new``, if that has none; "" for nobody's."""
        rest = {student: time for student, time in self.extensions.items() if student != old}
        return replace(self, extensions={new: self.extensions[old], **rest} if new else rest)

    def extension(
        self, student: str, listed: roster.Roster, due: datetime.datetime | None
    ) -> datetime.timedelta | None:
        """A student's extra time: that for this exercise, or else that in the class list; None for none.

        It begins at the date of the student's group, if that has one of its own.
        """
        text, zone = self.extensions.get(student) or listed.extension(student), clock.zone(self.zone)
        own = self.groups.get(listed.group(student))
        if not text and not own:
            return None
        due = due or datetime.datetime(1970, 1, 1)  # nothing is late yet, and any day has 24 hours
        begins = clock.utc(datetime.datetime.fromisoformat(own), zone) if own else due
        return clock.extended(begins, text or "0", zone) - due

    def late_share(self, due: datetime.datetime, sent: datetime.datetime) -> float:
        """The share of the maximum that is lost by sending something then. Both are in UTC, without a zone.

        >>> due = datetime.datetime(2031, 12, 1, 18)
        >>> rules, hour = Rules(late_per_day=0.1), datetime.timedelta(hours=1)
        >>> rules.late_share(due, due + hour), replace(rules, part_of_day="none").late_share(due, due + hour)
        (0.1, 0.0)
        >>> round(replace(rules, part_of_day="share", zone="UTC").late_share(due, due + 36 * hour), 6)
        0.15
        """
        late = clock.days(due, sent, clock.zone(self.zone))
        return min(1.0, PARTS[self.part_of_day](late) * self.late_per_day)


def dates(root: Path, known: Iterable[str]) -> tuple[str, dict[str, dict[str, datetime.datetime]]]:
    """What ``due.toml`` says: the zone, and the dates of each exercise by group; "" is for all others.

    An exercise has a date, or a table with one for each group and ``all``. ValueError names what is wrong.
    """
    path = Path(root) / DUE
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return "", {}
    except ValueError as problem:
        raise ValueError(f"{path} cannot be read: {problem}") from None
    zone = found.pop("zone", "")
    if not isinstance(zone, str):
        raise ValueError(f'{path}: zone is {zone!r}; write it like "Europe/Berlin"')
    try:
        clock.zone(zone)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    exercises = {}
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"{path}: {name!r} is no exercise; there are {', '.join(known)}")
        groups = value if isinstance(value, dict) else {"all": value}
        for group, when in groups.items():
            if not isinstance(when, datetime.datetime) or not 2000 <= when.year <= 2200:
                raise ValueError(
                    f"{path}: {name}, {group} is {when!s}; write day and time, such as 2031-12-01T18:00:00"
                )
        if "all" not in groups:
            raise ValueError(f"{path}: {name} has dates of groups; give one for all others, too: all = …")
        exercises[name] = {"" if group == "all" else group: when for group, when in groups.items()}
    return zone, exercises


def load(root: Path, assignment: str) -> Rules:
    """The rules of an exercise; the usual ones where none were written."""
    path, zone = _path(root, assignment), ""
    if _zone(root).exists():
        zone = _zone(root).read_text(encoding="utf-8", errors="replace").strip()
        try:
            clock.zone(zone)
        except ValueError as problem:
            raise ValueError(f"{_zone(root)}: {problem}. Delete it, and give --zone once more") from None
    earlier = path.with_name(".late-per-day")  # all that was kept before there were rules
    if not path.exists():
        return Rules(float(earlier.read_text()) if earlier.exists() else 0.0, zone=zone)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        extensions = {student: _text(kept) for student, kept in found["extensions"].items()}
        return Rules(
            **{
                **found,
                "dropped": tuple(found["dropped"]),
                "given": tuple(found["given"]),
                "extensions": extensions,
                "zone": zone,
            }
        )
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ValueError(
            f"{path} cannot be read ({problem}). Delete it, and give --late-per-day, --extend, "
            "--drop and --give once more."
        ) from None


def save(root: Path, assignment: str, rules: Rules) -> None:
    kept = asdict(rules)
    if zone := kept.pop("zone"):
        files.replace(_zone(root), f"{zone}\n".encode())
    files.replace(_path(root, assignment), (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())


def _text(kept: str | float) -> str:
    """An extension as teachers write it; seconds, kept by earlier versions, become days where they can."""
    if isinstance(kept, str):
        return kept
    return f"{kept / 86_400:g}d" if kept and kept % 86_400 == 0 else f"{kept / 3_600:.9g}h"


def _zone(root: Path) -> Path:
    return Path(root) / "marks" / ".zone"


def _path(root: Path, assignment: str) -> Path:
    return Path(root) / "marks" / assignment / ".rules"
