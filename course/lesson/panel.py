"""The progress panel: what the reader's log says, notebook by notebook."""

from __future__ import annotations

from tutorial_lib.language import _, joined
from tutorial_lib.stored_widgets import table

from ..progress import read
from . import questions, turns
from .resume import next_place
from .warm_up import due


class Panel:
    """Where to go on, and what the reader has predicted, answered and solved, notebook by notebook."""

    HEAD = (
        "Notebook",
        "Predictions made",
        "Turns passed",
        "Questions answered",
        "Right first time",
        "Exercise passed",
    )
    FOOT = "Predictions and blanks of the side quests are counted, too."

    def rows(self) -> list[tuple[str, ...]]:
        """One row for each notebook, as under ``HEAD``."""
        log = read()
        rows: list[tuple[str, ...]] = []
        for number in questions.notebooks():
            asked = questions.questions(number)
            entries = {
                kind: [log.get(f"{number}.{kind}.{name}") for name in asked.get(kind, {})]
                for kind in ("predict", "check")
            }
            done = {kind: [e for e in found if e and "choice" in e] for kind, found in entries.items()}
            right = sum(bool(e.get("right")) for e in done["check"])
            rows.append(
                (
                    asked["title"],
                    _of(len(done["predict"]), len(entries["predict"])),
                    _turns(number, log),
                    _of(len(done["check"]), len(entries["check"])),
                    _of(right, len(done["check"])) if done["check"] else "–",
                    _exercise(number, log),
                )
            )
        return rows

    def _repr_html_(self) -> str:
        what, place = next_place(read())
        head = [_(each) for each in self.HEAD]
        return (
            f"<p>{what}{f': {place.link()}' if place else _('.')}</p>{table(head, self.rows())}"
            f"<p>{joined((_(self.FOOT), due(read())))}</p>"
        )

    def __repr__(self) -> str:
        what, place = next_place(read())
        return "\n".join(
            [
                f"{what}{f': {place}' if place else _('.')}",
                *(" | ".join(row) for row in ([_(each) for each in self.HEAD], *self.rows())),
                joined((_(self.FOOT), due(read()))),
            ]
        )


def _of(done: int, wanted: int) -> str:
    return _("{number} of {all}").format(number=done, all=wanted)


def _turns(number: str, log: dict[str, dict]) -> str:
    """How many of the blanks of a lesson were filled in rightly; a dash where it has none."""
    asked = turns.load(number)
    passed = sum(log.get(f"{number}.turn.{name}", {}).get("passed") is True for name in asked)
    return _of(passed, len(asked)) if asked else "–"


def _exercise(number: str, log: dict[str, dict]) -> str:
    """How many questions of the graded exercise are passed; a dash where there is no exercise."""
    try:
        from ..checks import questions as graded  # late: only this table needs them

        asked = graded.load(number)
    except KeyError:
        return "–"
    passed = [q for q in asked if log.get(f"{number}.exercise.{q.name}", {}).get("passed") is True]
    needed = sum(not q.bonus for q in asked)
    bonus = f" + {_('bonus')}" if any(q.bonus for q in passed) else ""
    return _of(sum(not q.bonus for q in passed), needed) + bonus


def progress() -> Panel:
    """The reader's progress panel; run the cell again to refresh it."""
    return Panel()
