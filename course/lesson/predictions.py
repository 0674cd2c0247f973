"""Predict, then measure: a card that asks, and in the next cell a card that tells.

The cell that asks shows the question alone. The cell that measures is stored folded, code and output, so
that nothing on the screen gives the answer away. Its card says what was measured, whether the reader was
right, and what the answer that they chose would have meant.
"""

from __future__ import annotations

import contextlib
import html
import re
from pathlib import Path

import anywidget
import traitlets
from IPython.display import display

from tutorial_lib.language import ENGLISH, _, language
from tutorial_lib.stored_widgets import Stored, StoredBox

from ..progress import now, read, record
from . import questions

HERE = Path(__file__).parent
SHOWN = ("question", "unit", "x", "xlabel", "ylabel", "ylim")
FOLDED = "What was measured:"
"""The first line of a stored answer: JupyterLab shows it in place of a folded output."""


def texts() -> dict[str, str]:
    """What the cards themselves say, in the reader's language; nothing where that is English."""
    return {} if language() == ENGLISH else {text: _(text) for text in said()}


def said() -> list[str]:
    """The texts that the script of the cards shows, in English."""
    return re.findall(r'\bsay\("([^"]+)"\)', (HERE / "card.js").read_text(encoding="utf-8"))


class Card(Stored, anywidget.AnyWidget):
    """One prediction, as ``role`` ``"ask"`` or ``"tell"``."""

    _esm = HERE / "card.js"
    _css = HERE / "card.css"
    role = traitlets.Unicode().tag(sync=True)
    asked: traitlets.Dict = traitlets.Dict().tag(sync=True)
    said = traitlets.Any(None, allow_none=True).tag(sync=True)
    earlier = traitlets.Bool(False).tag(sync=True)
    told: traitlets.Dict = traitlets.Dict().tag(sync=True)
    texts: traitlets.Dict = traitlets.Dict().tag(sync=True)


def plain(text: str) -> str:
    """HTML as text."""
    return html.unescape(re.sub("<.*?>", "", text))


# ---- the card that asks ----
class Prediction(Card):
    """One of several choices. ``measured`` is the name of the right one."""

    kind = "choice"

    def __init__(self, key: str, asked: dict):
        self.key, self.question = key, asked
        shown = {name: asked[name] for name in SHOWN if name in asked}
        # pairs, because a saved state sorts the keys of a dictionary
        shown |= {"kind": self.kind, "choices": [[*pair] for pair in asked.get("choices", {}).items()]}
        super().__init__(role="ask", asked=shown, texts=texts())
        self.on_msg(lambda _self, content, _buffers: self.choose(content["commit"]))

    def choose(self, answer) -> None:
        """Commit to an answer, as the button does."""
        self.said, self.earlier = self.check(self.question, answer), False
        key = questions.log_key("predict", self.key)
        unknown = {name: None for name in ("right", "reason") if name in read().get(key, {})}
        record(key, choice=self.said, at=now(), **unknown)  # they belonged to another answer

    def recall(self) -> Prediction:
        """Show what the reader answered another day, if that is still a valid answer; returns itself."""
        with contextlib.suppress(TypeError, ValueError):  # the question has been changed since
            said = read().get(questions.log_key("predict", self.key), {}).get("choice")
            if said is not None:
                self.said, self.earlier = self.check(self.question, said), True
        return self

    def stored(self):
        items = "".join(f"<li>{html.escape(text, quote=False)}</li>" for _key, text in self.asked["choices"])
        question = self.question["question"]
        return {
            "text/html": f"<p><b>{_('Predict.')}</b> {question}</p>" + (items and f"<ul>{items}</ul>"),
            "text/plain": _("Predict: {question}").format(question=plain(question)),
        }, {}

    # What a kind of question says about two answers; ``asked`` as in the file of questions.
    @staticmethod
    def check(asked: dict, answer):
        """``answer`` in the form that is compared; ValueError if it can't be one."""
        if answer not in asked["choices"]:
            raise ValueError(f"{answer!r} is no choice; there are {', '.join(asked['choices'])}")
        return answer

    @staticmethod
    def words(asked: dict, answer) -> str:
        """An answer, said or measured, in words."""
        return asked["choices"].get(answer, answer)

    @staticmethod
    def short(answer):
        """An answer with no more digits than ``words`` shows, so that a stored notebook stays as it is."""
        return answer

    @classmethod
    def compare(cls, asked: dict, said, measured) -> tuple[bool, str, str]:
        """Whether it is right, what to say about it, and the name of the belief behind it."""
        right = said == measured
        verdict = (
            _("You predicted this.")
            if right
            else _("You predicted: {words}").format(words=cls.words(asked, said))
        )
        return right, verdict, said


class NumberPrediction(Prediction):
    """A number, in ``unit``; right if it is at most ``within`` from the measured one."""

    kind = "number"

    @staticmethod
    def check(asked, answer):
        return float(answer)

    @staticmethod
    def words(asked, answer):
        return f"{answer:.4g} {asked['unit']}"

    @staticmethod
    def short(answer):
        return float(f"{answer:.4g}")

    @classmethod
    def compare(cls, asked, said, measured):
        words, off = cls.words(asked, said), abs(said - measured)
        if off <= asked["within"]:
            return True, _("You predicted {words}: close enough.").format(words=words), "right"
        text = (
            _("You predicted {words}: {off} too low.")
            if said < measured
            else _("You predicted {words}: {off} too high.")
        )
        return False, text.format(words=words, off=f"{off:.4g}"), "low" if said < measured else "high"


class SketchPrediction(Prediction):
    """A curve over the points ``x``; right if it is nowhere more than ``within`` off."""

    kind = "sketch"

    @staticmethod
    def check(asked, answer):
        values = [float(v) for v in answer]
        if len(values) != len(asked["x"]):
            raise ValueError(
                f"{len(values)} values; there are {len(asked['x'])} points: {', '.join(map(str, asked['x']))}"
            )
        return values

    @staticmethod
    def words(asked, answer):
        points = (
            _("{value} at {x}").format(value=f"{v:.3g}", x=x) for x, v in zip(asked["x"], answer, strict=True)
        )
        return f"{asked['ylabel']} " + ", ".join(points)

    @staticmethod
    def short(answer):
        return [float(f"{value:.3g}") for value in answer]

    @classmethod
    def compare(cls, asked, said, measured):
        off = [abs(a - b) for a, b in zip(said, measured, strict=True)]
        worst = max(range(len(off)), key=off.__getitem__)
        right = off[worst] <= asked["within"]
        verdict = _("Your curve is farthest away at {x}: {said}, measured {measured}.")
        return (
            right,
            verdict.format(x=asked["x"][worst], said=f"{said[worst]:.3g}", measured=f"{measured[worst]:.3g}"),
            "right" if right else "wrong",
        )


KINDS = {kind.kind: kind for kind in (Prediction, NumberPrediction, SketchPrediction)}
_asking: dict[str, Prediction] = {}


def predict(key: str) -> Prediction | StoredBox:
    """Ask the reader to commit to an answer: ``predict("01.swap")``.

    Raises KeyError for an unknown question.
    """
    asked = questions.find("predict", key)
    _asking[key] = KINDS[asked.get("kind", "choice")](key, asked).recall()
    from . import votes  # late: it needs this module

    return _asking[key] if votes.class_folder() is None else votes.Ballot(_asking[key])


# ---- the card that tells ----
def in_words(key: str, measured) -> str:
    """A measured answer as the card says it, in HTML; ``measured`` may be what a stored notebook keeps."""
    asked = questions.find("predict", key)
    kind = KINDS[asked.get("kind", "choice")]
    return html.escape(str(kind.words(asked, measured)), quote=False)


class Answer(Card):
    """What was measured, beside what the reader said. Who was wrong is asked why; the reason is noted."""

    def __init__(self, key: str, **state):
        super().__init__(role="tell", texts=texts(), **state)
        entry = questions.log_key("predict", key)
        self.on_msg(lambda _self, content, _buffers: record(entry, reason=str(content["reason"])))

    def stored(self):
        told = self.told
        measured = KINDS[self.asked["kind"]].short(told["measured"])
        others = [*([["", told["belief"]]] if told["belief"] else []), *told["others"]]
        more = "".join(f"<li><i>{words}</i> {why}</li>" for words, why in others)
        verdict = f"<p>{told['verdict']}</p>" if told["verdict"] else ""
        result = "<p>" + _("Measured: {words}").format(words=f"<b>{told['words']}</b>") + "</p>"
        result += told["meaning"] and f"<p>{told['meaning']}</p>"
        words = (_(FOLDED), plain(told["words"]), plain(told["verdict"]))
        return {
            "text/html": f"{_(FOLDED)}\n<details><summary>{_('Show the answer')}</summary>"
            f"{verdict}{result}{more and f'<ul>{more}</ul>'}</details>",
            "text/plain": "\n".join(filter(None, words)),
        }, {"measured": {"key": told["key"], "value": measured}}


def reveal(key: str, measured) -> None:
    """Show the measured answer to :func:`predict` beside what the reader said, and respond to it.

    ``measured``, computed by the cell that calls this, is the name of one of the choices, the number asked
    for, or the values of the curve. ``why`` in the file of questions says what each answer means: of a choice
    by its name, of a number ``low``, ``high`` and ``right``, of a curve ``wrong`` and ``right``. ``reasons``
    lists, for a wrong one, pairs of a reason that is often given and the answer to it; for any other reason,
    and where there is no list, that is ``why``.

    Raises KeyError for an unknown question, ValueError for what can't be an answer to it.
    """
    asked = questions.find("predict", key)
    kind = KINDS[asked.get("kind", "choice")]
    try:
        measured = kind.check(asked, measured)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"the answer to {key}: {problem}") from None
    said = read().get(questions.log_key("predict", key), {}).get("choice")
    if said is None and key in _asking:
        said = _asking[key].said  # a disk that cannot be written to
    right, verdict, belief, why = None, "", "", asked.get("why", {})
    reasons: list[list[str]] = []
    with contextlib.suppress(TypeError, ValueError):  # the question was another one when it was answered
        if said is not None:
            said = kind.check(asked, said)
            right, verdict, name = kind.compare(asked, said, measured)
            belief = "" if right else why.get(name, "")
            reasons = [] if right else asked.get("reasons", {}).get(name, [])
            record(questions.log_key("predict", key), right=right)
    if right is None:
        said = None
    meaning = why.get(measured if kind is Prediction else "right", "")
    others = [
        [html.escape(words, quote=False), why[name]]
        for name, words in asked.get("choices", {}).items()
        if name in why and name not in (measured, said)
    ]
    told = {
        "key": key,
        "measured": measured,
        "said": said,
        "right": right,
        "verdict": html.escape(verdict, quote=False),
        "words": in_words(key, measured),
        "belief": belief,
        "reasons": reasons,
        "reason": read().get(questions.log_key("predict", key), {}).get("reason") or "",
        "meaning": meaning,
        "others": others,
    }
    if key in _asking:
        _asking[key].told = told
    display(Answer(key, asked=kind(key, asked).asked, said=said, told=told))
