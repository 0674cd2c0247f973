"""What the reader believes, before the course and after it: the same questions twice.

The questions stand in ``inventory.toml``. Each wrong choice is a belief that is often met.
"""

from __future__ import annotations

import functools
import html
import tomllib
from collections.abc import Callable
from importlib.resources import files

import ipywidgets as widgets

from tutorial_lib.language import _, joined, translated

from ..progress import read, record
from . import questions

FILE = files(__package__) / "inventory.toml"
TIMES = ("before", "after")


@functools.cache
def load() -> dict[str, dict]:
    """All questions by name, in the order in which they are asked."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def _log_key(when: str, name: str) -> str:
    return f"inventory.{when}.{name}"


def first(when: str, name: str, log: dict[str, dict]) -> str | None:
    """The choice that counts, from the log; None if the question has not been answered."""
    choice = log.get(_log_key(when, name), {}).get("choice")
    return choice if choice in load()[name]["choices"] else None


def score(choices: dict[str, str | None]) -> str:
    """``12 of 18 right (2 not answered)``, from the choice that counts for each question."""
    right = sum(choice == load()[name]["answer"] for name, choice in choices.items())
    missing = list(choices.values()).count(None)
    said = _("{right} of {all} right ({missing} not answered)") if missing else _("{right} of {all} right")
    return said.format(right=right, all=len(choices), missing=missing)


class Item(questions.Check):
    """A question after the course: each click is explained, and the first one counts."""

    def __init__(self, when: str, name: str, label: str, log: dict[str, dict], changed: Callable[[], None]):
        self.when, self.name, self.changed = when, name, changed
        super().__init__(f"inventory.{name}", when, translated(load()[name]), label)
        self.first = first(when, name, log)
        if self.first:
            self.explain(self.first)

    def choose(self, answer):
        # The log may know of a click in another view of this question; without a disk it knows nothing.
        self.first = self.first or first(self.when, self.name, read())
        if self.first is None:
            self.first = answer
            record(self.key, choice=answer, right=answer == self.asked["answer"])
        self.explain(answer)
        self.changed()

    @property
    def missed(self) -> bool:
        """Answered, and wrongly."""
        return self.first not in (None, self.asked["answer"])

    @property
    def where(self) -> str:
        """The place in the course that settles it, as HTML."""
        return _("notebook {number}, <i>{section}</i>").format(
            number=self.asked["notebook"], section=html.escape(self.asked["section"])
        )


class Sealed(Item):
    """A question before the course: the answer is noted, and nothing is said about it."""

    def explain(self, answer):
        for button in self.buttons.values():
            button.disabled = True
        self.buttons[self.first].icon = "check"
        self.status.value = _("Noted.")


class Inventory(questions.QuestionList):
    """All questions, and a line below them that says how it went."""

    item: type[Item]

    def __init__(self, when: str, *below: widgets.Widget):
        log, self.result = read(), widgets.HTML()
        self.result.add_class("tutorial-status")
        super().__init__(
            [
                self.item(when, name, _("Question {n}").format(n=n), log, self.changed)
                for n, name in enumerate(load(), 1)
            ],
            *below,
            self.result,
        )
        self.changed()

    def changed(self) -> None:
        """Called after each answer."""
        raise NotImplementedError(f"{type(self).__name__} must give changed()")

    def score(self) -> str:
        return score({item.name: item.first for item in self.questions})

    def list_missed(self, says: Callable[[Item], str]) -> str:
        """A list of the questions that were answered wrongly, as HTML."""
        lines = "".join(f"<li>{says(item)}</li>" for item in self.questions if item.missed)
        return lines and f"<ul>{lines}</ul>"


class Before(Inventory):
    """Says nothing until all questions are answered, or the reader asks; even then it gives no answers."""

    NOTE = "Run this cell to answer. Nothing is explained yet: that is what the course is for."
    item = Sealed

    def __init__(self):
        self.opened = False
        self.button = widgets.Button(description=_("Show my score"))
        self.button.on_click(lambda _button: self.show())
        super().__init__("before", self.button)

    def show(self) -> None:
        """Show the score, as the button does."""
        self.opened = True
        self.changed()

    def changed(self):
        if not self.opened and any(item.first is None for item in self.questions):
            return
        settled = self.list_missed(
            lambda item: _("{question}: {where}").format(question=item.label, where=item.where)
        )
        said = "<b>{}</b>".format(_("Before the course: {score}.").format(score=self.score()))
        self.result.value = joined((said, settled and _("These will be settled in:") + settled))


class After(Inventory):
    """Explains each answer; the score stands beside the one from before the course."""

    item = Item

    def __init__(self):
        super().__init__("after")

    def changed(self):
        if all(item.first is None for item in self.questions):
            return
        log = read()
        before = {item.name: first("before", item.name, log) for item in self.questions}
        earlier = score(before) if any(before.values()) else _("not answered")
        remain = self.list_missed(
            lambda item: _("“{belief}”: {where}").format(
                belief=html.escape(item.asked["misconception"][item.first]), where=item.where
            )
        )
        said = _("After the course: {score}. Before: {earlier}.").format(score=self.score(), earlier=earlier)
        self.result.value = joined((f"<b>{said}</b>", remain and _("Misconceptions that remain:") + remain))


def inventory(when: str) -> Inventory:
    """The questions on what the reader believes: ``inventory("before")`` or ``inventory("after")``.

    Before the course, answers are noted and not explained. After it they are explained, and the two
    scores stand side by side. The first click on each question counts.

    Raises ValueError for any other time.
    """
    if when not in TIMES:
        raise ValueError(
            f"inventory({when!r}): it is asked before the course and after it; "
            f"allowed are {' and '.join(map(repr, TIMES))}"
        )
    return Before() if when == "before" else After()
