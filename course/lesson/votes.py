"""What a class thinks: a learner shares a prediction, and the teacher sees how many chose what.

Nothing leaves a learner's machine by itself. :func:`share` shows what would leave, and writes one small file
when its button is pressed: into the folder ``$TUTORIAL_VOTES``, where the class has one, else into ``votes/``
beside the notebook, to be handed in with the homework. :func:`vote` counts what is in the class's folder.

A vote is a JSON object with the ``KEYS``, in a file that is named after it (:func:`name_of`). ``code`` is
drawn anew for each question: it ties a learner's two votes on that question together, and nothing else.

A class's scoreboard is counted in the same way: its question is ``BOARD``, and an answer to it is a design
with what came of it. The best design stands first.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
import secrets
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anywidget
import ipywidgets as widgets
import traitlets

from tutorial_lib import __version__
from tutorial_lib.language import _
from tutorial_lib.stored_widgets import Stored, StoredBox

from ..progress import read, record
from . import predictions, questions

KEYS = ("question", "vote", "choice", "right", "version", "code")
NAME = re.compile(r"vote-(\d\d\.\w{1,40})-([12])-([0-9a-f]{16})\.json", re.ASCII)
BESIDE = "votes"  # the folder beside the notebook, where the class has none
FEWEST = 5  # votes, before any count is shown
MOST_BYTES = 2_000  # of a file
MOST_FILES = 20_000  # that are opened in a folder
WILDEST = 1e100  # a number beyond it is counted as this one: with 1e308 the ranges would be infinite
DATE = 946_684_800  # of each file: the first day of 2000; a zip file could not hold 1970
BINS = 5  # ranges of a number that was asked for
BOARD = "10.two_clocks"  # the designs of exercise 10
MOST_LAYERS, MOST_DESIGNS = 8, 25  # of a design; that a board names


# ---- one vote ----
def class_folder() -> Path | None:
    """The folder that the class votes into, ``$TUTORIAL_VOTES``; None where there is none."""
    given = os.environ.get("TUTORIAL_VOTES")
    return Path(given).expanduser() if given else None


def name_of(vote: dict) -> str:
    """The name of a vote's file: the question, first or second vote, and the code."""
    return f"vote-{vote['question']}-{vote['vote']}-{vote['code']}.json"


def check(vote: object) -> dict:
    """The vote, if it is one; ValueError for anything else, whatever it is."""
    if not isinstance(vote, dict) or set(vote) != set(KEYS):
        raise ValueError(f"a vote has the keys {', '.join(KEYS)}")
    texts = [vote["question"], vote["version"], vote["code"]]
    if not all(isinstance(text, str) and len(text) <= 50 for text in texts) or type(vote["vote"]) is not int:
        raise ValueError("question, version and code of a vote are short texts, and vote is 1 or 2")
    if not NAME.fullmatch(name_of(vote)) or not any(vote["right"] is known for known in (None, True, False)):
        raise ValueError(f"{name_of(vote)} is the name of no vote")
    asked = _asked(vote["question"])
    kind = (predictions.KINDS | {Design.kind: Design})[asked.get("kind", "choice")]
    wanted = {"choice": (str,), "number": (int, float)}.get(kind.kind, (list,))
    if not isinstance(vote["choice"], wanted) or isinstance(vote["choice"], bool):
        raise ValueError(f"{vote['question']} is not answered in this way")
    try:
        choice = kind.check(asked, vote["choice"])
    except (TypeError, OverflowError) as problem:
        raise ValueError(str(problem)) from None
    numbers = {"choice": [], "number": [choice]}.get(kind.kind, choice)
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a vote holds numbers that are finite")
    return vote | {"choice": choice}


class Design:
    """An entry of the board: window, pairs and wave of each layer, and two accuracies, in one list."""

    kind = "design"

    @staticmethod
    def check(asked: dict, answer) -> list[float]:
        """The entry as it is counted; ValueError for anything else."""
        values = [float(value) for value in answer]
        if len(values) not in range(5, 3 * MOST_LAYERS + 3, 3) or min(values) < 0 or max(values[-2:]) > 1:
            raise ValueError(
                f"a design has 3 dials for each layer, 0 or more, and 2 accuracies, not {answer!r}"
            )
        return values

    @staticmethod
    def words(values: Sequence[float]) -> str:
        """
        >>> Design.words([8, 4, 50, 0, 0, 0, 1, 0.47])
        '8/4/50 0/0/0: 1.00, 0.47'
        """
        *dials, near, far = values
        layers = " ".join("/".join(f"{x:g}" for x in dials[n : n + 3]) for n in range(0, len(dials), 3))
        return f"{layers}: {near:.2f}, {far:.2f}"


def asked_of(key: str) -> dict:
    """The prediction ``key``, or what a board asks; KeyError where there is neither."""
    if key == BOARD:
        words = _(
            "Two clocks: window, turning pairs and slowest wave of each layer; accuracy of 5 back, induction"
        )
        return {"question": words, "kind": Design.kind}
    return questions.find("predict", key)


def _asked(key: str) -> dict:
    """The same; ValueError where there is neither."""
    try:
        return asked_of(key)
    except KeyError as problem:
        raise ValueError(problem.args[0]) from None


def parse(data: bytes) -> dict:
    """The vote in a file; ValueError for anything else."""
    try:
        return check(json.loads(data.decode("utf-8")))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write(vote: dict, folder: Path) -> Path:
    """Put a vote into ``folder`` in one step, without listing it; returns the file.

    Voting again in the same round replaces the earlier vote. The file's date is always the same, so
    that it does not tell when somebody voted. Raises OSError where the folder cannot be written to.
    """
    path = folder / name_of(check(vote))
    handle, temporary = tempfile.mkstemp(prefix=".vote-", dir=folder)  # names with a dot are not counted
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(vote, file)
        os.chmod(temporary, 0o644)
        os.utime(temporary, (DATE, DATE))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


# ---- the learner shares ----
class Share(StoredBox):
    """What would leave the machine, and the button that lets it."""

    def __init__(self, key: str):
        self.key, self._code = key, ""
        self.shown: dict | None = None
        self.round = widgets.RadioButtons(
            options=[
                (_("my first vote"), 1),
                (_("my second vote, after the discussion"), 2),
            ],
            layout=widgets.Layout(width="auto"),
        )
        self.preview, self.status = widgets.HTML(), widgets.HTML()
        self.status.add_class("tutorial-status")
        self.button = widgets.Button(description=_("Share this"))
        self.button.on_click(lambda _button: self.press())
        self.round.observe(lambda _change: self.look(), "value")
        super().__init__(
            [
                widgets.HTML(_("<b>Share</b> your answer to {key} as").format(key=html.escape(key))),
                self.round,
                self.preview,
                self.button,
                self.status,
            ]
        )
        if key in predictions._asking:  # a new answer on the card above is seen at once
            predictions._asking[key].observe(lambda _change: self.look(), "said")
        self.look()

    def vote(self) -> dict | None:
        """What would leave; None where the question has not been answered."""
        entry = read().get(questions.log_key("share" if self.key == BOARD else "predict", self.key), {})
        card = predictions._asking.get(self.key)
        said = entry.get("choice") if card is None or card.said is None else card.said
        if said is None:
            return None
        right = entry.get("right") if entry.get("choice") == said else None
        try:
            return check(
                {
                    "question": self.key,
                    "vote": self.round.value,
                    "choice": said,
                    "right": right,
                    "version": __version__,
                    "code": self.code(),
                }
            )
        except ValueError:  # the question has been changed since
            return None

    def code(self) -> str:
        """A random code for this question, the same for both votes."""
        kept = read().get(questions.log_key("share", self.key), {}).get("code")
        self._code = kept or self._code or secrets.token_hex(8)
        return self._code

    def look(self) -> None:
        """Show what would leave now."""
        self.shown, self.status.value = self.vote(), ""
        place = class_folder()
        where = (
            _(
                "into your class's folder, where your teacher sees counts. If you have an account of your "
                "own on this machine, the system notes it as the owner of the file"
            )
            if place
            else _("into the folder <code>{folder}</code> beside this notebook, for you to hand in").format(
                folder=BESIDE
            )
        )
        self.button.disabled = self.shown is None
        self.preview.value = (
            _("You have not answered yet. Commit to an answer first.")
            if self.shown is None
            else _("This leaves, and nothing else: {where}.").format(where=where)
            + f"<pre>{html.escape(json.dumps(self.shown, indent=1))}</pre>"
        )

    def press(self) -> None:
        """Write what is shown. If something else would leave now, show that first."""
        shown = self.shown
        self.look()
        if shown != self.shown or shown is None:
            self.status.value = _("Your answer has changed. Look at it, and press again.")
            return
        place = class_folder() or Path(BESIDE)
        try:
            if class_folder() is None:
                place.mkdir(exist_ok=True)
            write(shown, place)
        except OSError as problem:
            self.status.value = html.escape(
                _("Nothing was shared: {problem}.").format(problem=problem.strerror or problem)
            )
        else:
            record(questions.log_key("share", self.key), code=shown["code"])
            self.status.value = _("Shared, as your vote {n}. To change it, answer and share again.").format(
                n=shown["vote"]
            )

    def stored(self):
        words = _("Run this cell to see what would be shared of your answer to {key}.").format(key=self.key)
        return {"text/html": f"<p>{html.escape(words)}</p>", "text/plain": words}, {}


class Ballot(StoredBox):
    """A prediction, and below it, once the reader has committed to an answer, what :func:`share` shows."""

    def __init__(self, card: predictions.Prediction):
        self.card, self.choose = card, card.choose
        self.share = Share(card.key)
        card.observe(lambda _change: self.look(), "said")
        super().__init__([card, self.share])
        self.look()

    def look(self) -> None:
        self.share.layout.display = "none" if self.card.said is None else None

    def stored(self):
        return self.card.stored()


def share(key: str | None = None) -> Share:
    """Show what would leave if you shared your answer: ``share("06.random")``. Nothing does until you press.

    Without ``key``, it is the last prediction that was asked in this notebook. Raises KeyError for an unknown
    one.
    """
    if key is None:
        if not predictions._asking:
            raise KeyError('no prediction has been asked yet: run its cell, or name it: share("06.random")')
        key = list(predictions._asking)[-1]
    asked_of(key)
    return Share(key)


# ---- the teacher counts ----
@dataclass
class Votes:
    """The votes on one question by code, first and second; and how many files were not votes."""

    times: dict[int, dict[str, dict]] = field(default_factory=lambda: {1: {}, 2: {}})
    ignored: int = 0


def gather(key: str, folder: Path) -> Votes:
    """Read the votes on ``key`` in ``folder``, which anybody may have written to.

    What is not a vote in a file of its own name is ignored and counted: links, pipes, large files, broken
    JSON, unknown questions, impossible answers, a code that has voted already. Votes on other questions are
    left alone.
    """
    from .. import files  # late: a learner never needs it

    found, opened = Votes(), 0
    with os.scandir(folder) as entries:
        for entry in entries:
            named = NAME.fullmatch(entry.name)
            if entry.name.startswith(".") or named and named[1] != key and known(named[1]):
                continue
            try:
                if not named or named[1] != key or opened == MOST_FILES:
                    raise ValueError("not a vote")
                opened += 1  # other names are only counted: any number of them hides no vote
                vote = parse(files.read(Path(entry.path), MOST_BYTES, Path(folder)))
                if name_of(vote) != entry.name:
                    raise ValueError("a vote under another one's name")
                found.times[vote["vote"]][vote["code"]] = vote
            except (ValueError, OSError):
                found.ignored += 1
    return found


def known(key: str) -> bool:
    """Is there a prediction of this name?"""
    try:
        return bool(_asked(key))
    except ValueError:
        return False


def rows(key: str, votes: Votes, measured=None) -> list[list]:
    """``[words, first votes, second votes, was this measured]`` for each answer, in the question's order.

    A number is counted in one of five ranges, the same for both votes, and a curve under one of four shapes.
    A count is None where fewer than five have voted: four votes are nearly names.
    """
    asked = asked_of(key)
    said = {n: [vote["choice"] for vote in votes.times[n].values()] for n in (1, 2)}
    labels, place = _PLACES[asked.get("kind", "choice")](asked, said[1] + said[2])
    counts = [Counter(map(place, said[n])) if len(said[n]) >= FEWEST else None for n in (1, 2)]
    right = None if measured is None else place(measured)
    return [
        [label, *(None if each is None else each[n] for each in counts), n == right]
        for n, label in enumerate(labels)
    ]


# For each kind of question: the labels of its rows, and the row in which an answer is counted.
def _of_choices(asked: dict, _said: list):
    names = list(asked["choices"])
    return list(asked["choices"].values()), names.index


def _of_numbers(asked: dict, said: list[float]):
    """Five ranges; the outermost ones are open, so that one wild number spoils nothing."""
    said = [min(max(number, -WILDEST), WILDEST) for number in said]
    low, middle, high = statistics.quantiles(said, n=4, method="inclusive") if len(said) > 1 else (0, 0, 0)
    step = 2 * (high - low or abs(middle) / 10 or 1) / BINS
    edges = [float(f"{middle + step * (n - BINS / 2):.3g}") for n in range(1, BINS)]
    between = [f"{a:g} to {b:g}" for a, b in zip(edges, edges[1:], strict=False)]
    ranges = [f"below {edges[0]:g}", *between, f"{edges[-1]:g} or more"]
    labels = [f"{words} {asked['unit']}" for words in ranges]
    return labels, lambda number: sum(number >= edge for edge in edges)


def _of_curves(asked: dict, _said: list):
    """Four shapes, as far as a curve that counts as right may be off (``within``)."""
    within = asked["within"]
    labels = [
        "It stays level.",
        "It ends lower than it begins.",
        "It ends higher than it begins.",
        "It bends, and ends about where it begins.",
    ]

    def places(curve):
        if max(curve) - min(curve) <= 2 * within:
            return 0
        rise = curve[-1] - curve[0]
        return 1 if rise < -within else 2 if rise > within else 3

    return labels, places


def _of_designs(_asked: dict, said: list):
    """Each design that was entered, the best mean of its two accuracies first."""
    best = sorted({tuple(each) for each in said}, key=lambda each: (-each[-1] - each[-2], each))
    shown = best[:MOST_DESIGNS]
    labels = [Design.words(each) for each in shown] + ["all others"] * (len(best) > len(shown))
    return labels, lambda entry: min(best.index(tuple(entry)), MOST_DESIGNS)


_PLACES = {"choice": _of_choices, "number": _of_numbers, "sketch": _of_curves, "design": _of_designs}


class Count(Stored, anywidget.AnyWidget):
    """The teacher's card. Counts reach the browser, and a saved notebook, only while they are revealed."""

    _esm = predictions.HERE / "vote.js"
    _css = predictions.HERE / "card.css"
    shown: traitlets.Dict = traitlets.Dict().tag(sync=True)

    def __init__(self, key: str, folder: Path):
        self.key, self.folder, self.revealed = key, Path(folder), False
        super().__init__()
        self.on_msg(lambda _self, content, _buffers: self.look(content.get("open")))
        self.look()

    def look(self, reveal: bool | None = None) -> None:
        """Count again, as the card asks every other second; ``reveal`` shows the counts, or hides them."""
        self.revealed = self.revealed if reveal is None else bool(reveal)
        card = predictions._asking.get(self.key)
        measured = card.told.get("measured") if card else None
        try:
            votes, problem = gather(self.key, self.folder), ""
        except OSError as error:
            votes, problem = Votes(), f"{self.folder} cannot be read: {error.strerror}"
        numbers = [len(each) for each in votes.times.values()]
        enough = max(numbers) >= FEWEST
        self.shown = {
            "question": self.key,
            "asked": predictions.plain(asked_of(self.key)["question"]),
            "open": self.revealed,
            "votes": numbers,
            "ignored": votes.ignored,
            "rows": rows(self.key, votes, measured) if self.revealed and enough else [],
            "problem": problem,
            "fewest": FEWEST,
        }

    def stored(self):
        words = f"Run this cell in class: it counts the votes on {self.key}."
        return {"text/html": f"<p>{html.escape(words)}</p>", "text/plain": words}, {}


def vote(key: str, folder: Path | None = None) -> Count:
    """What the class thinks, for the teacher: ``vote("06.random")``, counts only, hidden until revealed.

    ``folder`` is the class's (default: ``$TUTORIAL_VOTES``). Raises KeyError for an unknown question, and
    ValueError without a folder.
    """
    asked_of(key)
    folder = folder or class_folder()
    if folder is None:
        raise ValueError(
            "there is no folder with votes: set TUTORIAL_VOTES before you start JupyterLab, or "
            'name the folder, as in vote("06.random", "votes")'
        )
    return Count(key, folder)
