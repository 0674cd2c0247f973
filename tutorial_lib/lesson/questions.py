"""Questions to the reader: a prediction before a result, and the concept check at the end."""

from __future__ import annotations

import functools
import html
import re
import tomllib
from importlib.resources import files

import ipywidgets as widgets

from ..stored import StoredBox
from .progress import read, record

FOLDER = files(__package__) / "questions"


def notebooks() -> list[str]:
    """The numbers of the notebooks that ask questions: ``["00", "01", …]``."""
    return sorted(file.name.removesuffix(".toml") for file in FOLDER.iterdir()
                  if file.name.endswith(".toml"))


@functools.cache
def questions(number: str) -> dict:
    """All questions of one notebook: ``title``, ``predict`` by name, ``check`` by name.

    Raises KeyError, naming the notebooks that there are, for an unknown number.
    """
    file = FOLDER / f"{number}.toml"
    if not file.is_file():
        raise KeyError(f"no questions for notebook {number!r}; there are {', '.join(notebooks())}")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _find(kind: str, key: str) -> dict:
    number, _, name = key.partition(".")
    asked = questions(number).get(kind, {})
    if name not in asked:
        raise KeyError(f"notebook {number} has no question {name!r}; it has {', '.join(asked)}")
    return asked[name]


def _log_key(kind: str, key: str) -> str:
    """``("predict", "01.swap")`` stands in the log as ``01.predict.swap``."""
    number, _, name = key.partition(".")
    return f"{number}.{kind}.{name}"


class Question(StoredBox):
    """A question with one button per choice; a click is logged.

    Without a kernel the stored text stands: the question and its choices.
    """

    def __init__(self, key: str, kind: str, asked: dict, number: int | None = None):
        self.key, self.asked = _log_key(kind, key), asked
        self.label = f"Question {number}" if number else "Predict"
        self.buttons = {
            name: widgets.Button(description=text, tooltip=text,
                                 layout=widgets.Layout(width="auto", max_width="100%", height="auto"))
            for name, text in asked["choices"].items()
        }
        for name, button in self.buttons.items():
            button.on_click(lambda _button, name=name: self.choose(name))
        self.status = widgets.HTML()
        self.status.add_class("tutorial-status")
        super().__init__([widgets.HTML(self._text()), *self.buttons.values(), self.status])

    def _text(self) -> str:
        return f"<b>{self.label}.</b> {self.asked['question']}"

    def choose(self, name: str) -> None:
        """Commit to a choice, as a click does."""
        raise NotImplementedError

    def stored(self):
        choices = "".join(f"<li>{html.escape(text, quote=False)}</li>"
                          for text in self.asked["choices"].values())
        plain = re.sub("<.*?>", "", self.asked["question"])
        return {"text/html": f"<p>{self._text()}</p><ul>{choices}</ul>",
                "text/plain": f"{self.label}: {plain}"}, {}


class Prediction(Question):
    """A question whose answer the next cell measures."""

    def choose(self, name):
        for button in self.buttons.values():
            button.disabled = True
        self.buttons[name].icon = "check"
        record(self.key, choice=name)
        self.status.value = "Noted. Now run the next cell."


class Check(Question):
    """A question of the concept check: each choice has its explanation. The first click counts."""

    def choose(self, name):
        right = name == self.asked["answer"]
        if "choice" not in read().get(self.key, {}):
            record(self.key, choice=name, right=right)
        self.buttons[name].icon = "check" if right else "times"
        verdict = "Right." if right else "Not quite."
        self.status.value = f"<b>{verdict}</b> {self.asked['why'][name]}"


class ConceptCheck(StoredBox):
    """All questions of a notebook's concept check."""

    def __init__(self, number: str):
        asked = questions(number)["check"]
        self.questions = [Check(f"{number}.{name}", "check", question, n)
                          for n, (name, question) in enumerate(asked.items(), 1)]
        super().__init__(self.questions)

    def stored(self):
        each = [question.stored()[0] for question in self.questions]
        note = "<p><i>Run this cell to answer: each choice has its explanation.</i></p>"
        return {"text/html": "".join(one["text/html"] for one in each) + note,
                "text/plain": "\n".join(one["text/plain"] for one in each)}, {}


def predict(key: str) -> Prediction:
    """Ask the reader to commit to an answer: ``predict("01.swap")``.

    Raises KeyError for an unknown question.
    """
    return Prediction(key, "predict", _find("predict", key))


def reveal(key: str, measured: str) -> None:
    """Print the measured answer to :func:`predict`, beside what the reader said.

    ``measured`` is the name of one of the choices, computed by the cell that calls this.

    Raises KeyError for an unknown question, ValueError for an unknown choice.
    """
    asked = _find("predict", key)
    if measured not in asked["choices"]:
        raise ValueError(f"{measured!r} is no choice of {key}; it has {', '.join(asked['choices'])}")
    logged = _log_key("predict", key)
    said = read().get(logged, {}).get("choice")
    print(f"Measured: {asked['choices'][measured]}")
    if said is None:
        print("You made no prediction.")
    elif said == measured:
        print("You predicted this.")
    else:
        print(f"You predicted: {asked['choices'].get(said, said)}")
    if said is not None:
        record(logged, right=said == measured)


def concept_check(number: str) -> ConceptCheck:
    """The five questions at the end of a notebook: ``concept_check("01")``."""
    return ConceptCheck(number)
