"""The questions of each notebook, and the concept check at its end."""

from __future__ import annotations

import contextlib
import functools
import html
import re
import tomllib
from collections.abc import Callable
from importlib.resources import files

import ipywidgets as widgets

from tutorial_lib.language import ENGLISH, NAMES, _, language, translated
from tutorial_lib.stored_widgets import StoredBox

from ..progress import now, read, record
from .wrong import link

__all__ = [
    "NAMES",
    "Check",
    "Question",
    "QuestionList",
    "concept_check",
    "find",
    "load",
    "log_key",
    "notebooks",
    "questions",
]
FOLDER = files(__package__) / "questions"
UNSURE = "unsure"
"""The choice that every question of a concept check has, besides its own."""


def notebooks() -> list[str]:
    """The numbers of the notebooks that ask questions: ``["00", "01", …]``."""
    return sorted(file.name.removesuffix(".toml") for file in FOLDER.iterdir() if file.name.endswith(".toml"))


def questions(number: str) -> dict:
    """All questions of one notebook, as the reader sees them: ``title``, ``predict`` and ``check`` by name.

    Raises KeyError, naming the notebooks that there are, for an unknown number.
    """
    asked = load(number) if language() == ENGLISH else translated(load(number))
    return {**asked, "check": {name: _unsure(each) for name, each in asked.get("check", {}).items()}}


def _unsure(asked: dict) -> dict:
    """A question with the choice "I don't know.": it explains the answer, unless it has a text of its own."""
    return {
        **asked,
        "choices": {**asked["choices"], UNSURE: _("I don't know.")},
        "why": {UNSURE: asked["why"][asked["answer"]], **asked["why"]},
    }


@functools.cache
def load(number: str) -> dict:
    """The same in English, as they are written."""
    file = FOLDER / f"{number}.toml"
    if not file.is_file():
        raise KeyError(f"no questions for notebook {number!r}; there are {', '.join(notebooks())}")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def find(kind: str, key: str) -> dict:
    """One question: ``find("predict", "01.swap")``. Raises KeyError, naming what there is, for any other."""
    number, _dot, name = key.partition(".")
    asked = questions(number).get(kind, {})
    if name not in asked:
        raise KeyError(f"notebook {number} has no question {name!r}; it has {', '.join(asked)}")
    return asked[name]


def log_key(kind: str, key: str) -> str:
    """``("predict", "01.swap")`` stands in the log as ``01.predict.swap``."""
    number, _dot, name = key.partition(".")
    return f"{number}.{kind}.{name}"


class Question(StoredBox):
    """A question, the widgets to answer it with, and a line that says what became of the answer.

    Without a kernel the stored text is shown: the question, and its choices.
    """

    def __init__(self, key: str, kind: str, asked: dict, label: str = ""):
        self.key, self.asked, self.label = log_key(kind, key), asked, label or _("Predict")
        self.status = widgets.HTML()
        self.status.add_class("tutorial-status")
        super().__init__([widgets.HTML(self._text()), *self._answers(), self.status])

    def _text(self) -> str:
        return f"<b>{self.label}.</b> {self.asked['question']}"

    def _answers(self) -> list[widgets.Widget]:
        """The widgets to answer with: one button per choice."""
        self.buttons = {name: _button(text) for name, text in self.asked["choices"].items()}
        for name, button in self.buttons.items():
            button.on_click(lambda _button, name=name: self.choose(name))
        return list(self.buttons.values())

    def choose(self, answer) -> None:
        """Commit to an answer, as a click does."""
        raise NotImplementedError

    def recall(self) -> Question:
        """Show what the reader answered another day, if that is still a valid answer; returns itself."""
        said = read().get(self.key, {}).get("choice")
        with contextlib.suppress(TypeError, ValueError):  # the question has been changed since
            if said is not None:
                self.show(self.check(self.asked, said))
        return self

    def show(self, answer) -> None:
        """Show an earlier answer."""
        raise NotImplementedError

    @staticmethod
    def check(asked: dict, answer):
        """``answer`` in the form that is compared; ValueError if it can't be one."""
        if answer not in asked["choices"]:
            raise ValueError(f"{answer!r} is no choice; there are {', '.join(asked['choices'])}")
        return answer

    def stored(self):
        choices = "".join(
            f"<li>{html.escape(text, quote=False)}</li>" for text in self.asked.get("choices", {}).values()
        )
        plain = re.sub("<.*?>", "", self.asked["question"])
        return {
            "text/html": f"<p>{self._text()}</p>" + (f"<ul>{choices}</ul>" if choices else ""),
            "text/plain": f"{self.label}: {plain}",
        }, {}


def _button(text: str) -> widgets.Button:
    return widgets.Button(
        description=text, tooltip=text, layout=widgets.Layout(width="auto", max_width="100%", height="auto")
    )


# ---- the concept check ----
class Check(Question):
    """A question of the concept check: each choice has its explanation. The first click counts."""

    after: Callable[[], None] = staticmethod(lambda: None)

    def choose(self, answer):
        if "choice" not in read().get(self.key, {}):
            record(self.key, choice=answer, right=answer == self.asked["answer"], at=now())
        self.explain(answer)
        self.after()

    def show(self, answer):
        self.explain(answer)

    def explain(self, answer) -> None:
        """Mark a choice as right or wrong, and say why; after "I don't know.", say what is right."""
        right = answer == self.asked["answer"]
        self.buttons[answer].icon = "question" if answer == UNSURE else "check" if right else "times"
        verdict = _("Right.") if right else _("Not quite.")
        if answer == UNSURE:
            words = html.escape(self.asked["choices"][self.asked["answer"]], quote=False)
            verdict = _("The answer: {words}").format(words=words)
        self.status.value = f"<b>{verdict}</b> {self.asked['why'][answer]}"


class QuestionList(StoredBox):
    """Questions below each other, and what stands below them."""

    NOTE = "Run this cell to answer: each choice has its explanation."

    def __init__(self, questions: list[Question], *below: widgets.Widget):
        self.questions = questions
        super().__init__([*questions, *below])

    def stored(self):
        each = [question.stored()[0] for question in self.questions]
        note = f"<p><i>{_(self.NOTE)}</i></p>"
        return {
            "text/html": "".join(one["text/html"] for one in each) + note,
            "text/plain": "\n".join(one["text/plain"] for one in each),
        }, {}


def concept_check(number: str) -> QuestionList:
    """The five questions at the end of a notebook: ``concept_check("01")``."""
    from .warm_up import due  # late: it asks these questions again

    asked = questions(number)["check"]
    wrong = link(f"notebook {number}")  # is not stored with the notebook: the host is the reader's setting
    shown, again = [], widgets.HTML()

    def after():
        again.value = due(read())

    for n, (name, question) in enumerate(asked.items(), 1):
        each = Check(f"{number}.{name}", "check", question, _("Question {n}").format(n=n)).recall()
        each.after = after
        shown.append(each)
    after()
    below = [widgets.HTML(wrong.replace("<a ", '<a target="_blank" '))] if wrong else []
    return QuestionList(shown, again, *below)
