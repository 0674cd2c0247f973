"""Questions to the reader: a prediction before a result, and the concept check at the end."""

from __future__ import annotations

import contextlib
import functools
import html
import re
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from .. import plots
from ..extras import needs
from ..fallback import StoredBox
from ..progress import now, read, record

with needs("course"):
    import anywidget
    import ipywidgets as widgets
    import traitlets

FOLDER = files(__package__) / "questions"
HERE = Path(__file__).parent


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
    """A question, the widgets to answer it with, and a line that says what became of the answer.

    Without a kernel the stored text stands: the question, and its choices.
    """

    def __init__(self, key: str, kind: str, asked: dict, label: str = "Predict"):
        self.key, self.asked, self.label = _log_key(kind, key), asked, label
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
        """Show what the reader answered another day, if that still is an answer; returns itself."""
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
        """``answer`` as it is compared; ValueError if it can't be one."""
        if answer not in asked["choices"]:
            raise ValueError(f"{answer!r} is no choice; there are {', '.join(asked['choices'])}")
        return answer

    def stored(self):
        choices = "".join(f"<li>{html.escape(text, quote=False)}</li>"
                          for text in self.asked.get("choices", {}).values())
        plain = re.sub("<.*?>", "", self.asked["question"])
        return {"text/html": f"<p>{self._text()}</p>" + (f"<ul>{choices}</ul>" if choices else ""),
                "text/plain": f"{self.label}: {plain}"}, {}


def _button(text: str) -> widgets.Button:
    return widgets.Button(description=text, tooltip=text,
                          layout=widgets.Layout(width="auto", max_width="100%", height="auto"))


# ---- predictions: the next cell measures the answer ----
class Prediction(Question):
    """One of several choices. ``measured`` is the name of the right one."""

    EARLIER = "You chose this before. Choose again, or run the next cell."

    def show(self, answer):
        self.buttons[answer].icon = "check"
        self.status.value = self.EARLIER

    def choose(self, answer):
        for button in self.buttons.values():
            button.disabled, button.icon = True, ""
        self.buttons[answer].icon = "check"
        self._commit(answer)

    def _commit(self, answer) -> None:
        record(self.key, choice=answer, at=now())
        self.status.value = "Noted. Now run the next cell."

    @staticmethod
    def words(asked: dict, answer) -> str:
        """An answer, said or measured, in words."""
        return asked["choices"].get(answer, answer)

    @staticmethod
    def compare(asked: dict, said, measured) -> tuple[bool, str]:
        """Is it right, and what is to be said about it?"""
        right = said == measured
        return right, "You predicted this." if right else f"You predicted: {Prediction.words(asked, said)}"


class Commit(anywidget.AnyWidget):
    """A button that calls ``then`` with the ``trait`` of the widget ``answered``, as the reader sees it."""

    _esm = HERE / "commit.js"
    answered = traitlets.Unicode().tag(sync=True)
    trait = traitlets.Unicode().tag(sync=True)
    description = traitlets.Unicode().tag(sync=True)
    disabled = traitlets.Bool(False).tag(sync=True)

    def __init__(self, description: str, answered: widgets.Widget, trait: str, then: Callable):
        super().__init__(description=description, answered=answered.model_id, trait=trait)
        self.on_msg(lambda _self, content, _buffers: then(content["commit"]))


class NumberPrediction(Prediction):
    """A number, in ``unit``; right if it is at most ``within`` from the measured one."""

    def _answers(self):
        self.number = widgets.FloatText(description="your number:", style={"description_width": "auto"})
        self.button = Commit("Commit", self.number, "value", self.choose)
        return [widgets.HBox([self.number, widgets.Label(self.asked["unit"]), self.button])]

    def show(self, answer):
        self.number.value, self.status.value = answer, self.EARLIER

    def choose(self, answer):
        self.number.value = answer
        self.number.disabled = self.button.disabled = True
        self._commit(self.number.value)

    @staticmethod
    def check(asked, measured):
        return float(measured)

    @staticmethod
    def words(asked, answer):
        return f"{answer:.4g} {asked['unit']}"

    @staticmethod
    def compare(asked, said, measured):
        said, words = float(said), NumberPrediction.words(asked, float(said))
        off = abs(said - measured)
        if off <= asked["within"]:
            return True, f"You predicted {words}: close enough."
        return False, f"You predicted {words}: {off:.4g} too {'low' if said < measured else 'high'}."


class Sketch(anywidget.AnyWidget):
    """A curve to draw: ``values`` at each of ``x``, from ``ylim[0]`` to ``ylim[1]``."""

    _esm = HERE / "sketch.js"
    _css = HERE / "sketch.css"
    x: traitlets.List = traitlets.List().tag(sync=True)
    xlabel = traitlets.Unicode().tag(sync=True)
    ylabel = traitlets.Unicode().tag(sync=True)
    ylim: traitlets.List = traitlets.List().tag(sync=True)
    values: traitlets.List = traitlets.List().tag(sync=True)
    committed = traitlets.Bool(False).tag(sync=True)


class SketchPrediction(Prediction):
    """A curve over the points ``x``; right if it is nowhere more than ``within`` off."""

    def _answers(self):
        low, high = self.asked["ylim"]
        self.sketch = Sketch(values=[(low + high) / 2] * len(self.asked["x"]),
                             **{name: self.asked[name] for name in ("x", "xlabel", "ylabel", "ylim")})
        self.button = Commit("Commit to this curve", self.sketch, "values", self.choose)
        return [widgets.HTML("Draw with the mouse, or move its points with the arrow keys."),
                self.sketch, self.button]

    def show(self, answer):
        self.sketch.values, self.status.value = answer, self.EARLIER

    def choose(self, answer):
        self.sketch.values = self.check(self.asked, answer)
        self.sketch.committed = self.button.disabled = True
        self._commit(self.sketch.values)

    @staticmethod
    def check(asked, measured):
        values = [float(v) for v in measured]
        if len(values) != len(asked["x"]):
            raise ValueError(f"{len(values)} values; there are {len(asked['x'])} points: "
                             f"{', '.join(map(str, asked['x']))}")
        return values

    @staticmethod
    def words(asked, answer):
        points = (f"{v:.3g} at {x}" for x, v in zip(asked["x"], answer, strict=True))
        return f"{asked['ylabel']} " + ", ".join(points)

    @staticmethod
    def compare(asked, said, measured):
        said = SketchPrediction.check(asked, said)
        off = [abs(a - b) for a, b in zip(said, measured, strict=True)]
        worst = max(range(len(off)), key=off.__getitem__)
        text = (f"Your curve is farthest away at {asked['x'][worst]}: {said[worst]:.3g}, "
                f"measured {measured[worst]:.3g}.")
        places = range(len(said))
        fig = plots.lines(places, {"your sketch": said, "measured": measured}, xlabel=asked["xlabel"],
                          ylabel=asked["ylabel"], markers=True, legend="beside")
        fig.axes[0].set_xticks(places, [str(x) for x in asked["x"]])
        plots.show(fig, f"Two lines, your sketch and the measured curve. {text}")
        return off[worst] <= asked["within"], text


KINDS = {"choice": Prediction, "number": NumberPrediction, "sketch": SketchPrediction}


def predict(key: str) -> Prediction:
    """Ask the reader to commit to an answer: ``predict("01.swap")``.

    Raises KeyError for an unknown question.
    """
    asked = _find("predict", key)
    return KINDS[asked.get("kind", "choice")](key, "predict", asked).recall()


def reveal(key: str, measured) -> None:
    """Print the measured answer to :func:`predict`, beside what the reader said.

    ``measured``, computed by the cell that calls this, is the name of one of the choices, the
    number asked for, or the values of the curve. Of a curve, both are also drawn.

    Raises KeyError for an unknown question, ValueError for what can't be an answer to it.
    """
    asked = _find("predict", key)
    kind, logged = KINDS[asked.get("kind", "choice")], _log_key("predict", key)
    try:
        measured = kind.check(asked, measured)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"the answer to {key}: {problem}") from None
    print(f"Measured: {kind.words(asked, measured)}")
    said = read().get(logged, {}).get("choice")
    try:
        right, text = kind.compare(asked, said, measured) if said is not None else (None, "")
    except (TypeError, ValueError):  # the question was of another kind when it was answered
        right, text = None, ""
    print(text or "You made no prediction.")
    if right is not None:
        record(logged, right=right)


# ---- the concept check ----
class Check(Question):
    """A question of the concept check: each choice has its explanation. The first click counts."""

    def choose(self, answer):
        if "choice" not in read().get(self.key, {}):
            record(self.key, choice=answer, right=answer == self.asked["answer"], at=now())
        self.explain(answer)

    def show(self, answer):
        self.explain(answer)

    def explain(self, answer) -> None:
        """Mark a choice as right or wrong, and say why."""
        right = answer == self.asked["answer"]
        self.buttons[answer].icon = "check" if right else "times"
        verdict = "Right." if right else "Not quite."
        self.status.value = f"<b>{verdict}</b> {self.asked['why'][answer]}"


class QuestionList(StoredBox):
    """Questions below each other, and what stands below them."""

    NOTE = "Run this cell to answer: each choice has its explanation."

    def __init__(self, questions: list[Question], *below: widgets.Widget):
        self.questions = questions
        super().__init__([*questions, *below])

    def stored(self):
        each = [question.stored()[0] for question in self.questions]
        note = f"<p><i>{self.NOTE}</i></p>"
        return {"text/html": "".join(one["text/html"] for one in each) + note,
                "text/plain": "\n".join(one["text/plain"] for one in each)}, {}


def concept_check(number: str) -> QuestionList:
    """The five questions at the end of a notebook: ``concept_check("01")``."""
    asked = questions(number)["check"]
    return QuestionList([Check(f"{number}.{name}", "check", question, f"Question {n}").recall()
                         for n, (name, question) in enumerate(asked.items(), 1)])
