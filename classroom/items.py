"""What the answers of a class say about its questions: difficulty, discrimination, beliefs, trend, gain.

Pure functions of marks (see `marking.mark`) and logs. A share is a number from 0 to 1; None stands where
there are too few students for a number.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from course import files

ASKED = ("question", "answers", "passed", "mean share of points", "discrimination", "no answer")
WRITTEN = ("question", "marked", "to mark", "mean share of points")
BELIEVED = ("question", "misconception", "students", "share")
TREND = ("exercise", "handed in", "not handed in", "mean share of points", "no answer", "most common mistake")
PAIRED = ("question", "right before", "right after", "gain", "most common belief afterwards", "students")
CORRELATIONS = ("discrimination", "gain")  # columns that hold numbers, not shares
UNCHANGED = ("as given", "as it was given")  # code to be mended that was left alone: no mistake of theirs
FEWEST = 10  # students, for a correlation or a gain
MOST_LOG = 5_000_000  # bytes of one log
ENOUGH = 2 / 3  # of the inventory's questions, answered both times


# ---- one exercise ----


def _graded(marks: Mapping[str, Mapping]) -> dict[str, dict[str, Mapping]]:
    """Student to question to verdict, without rejected students and questions for which time ran out."""
    return {
        student: {
            question: verdict
            for question, verdict in found["questions"].items()
            if isinstance(verdict, Mapping)
        }
        for student, found in marks.items()
        if found["state"] in ("graded", "timed out")
    }


def _share(verdict: Mapping) -> float | None:
    """The share of its points that an answer got."""
    try:
        share = float(verdict["points"]) / float(verdict["max"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    return share if math.isfinite(share) else None


def questions(marks: Mapping[str, Mapping]) -> list[dict]:
    """A row (`ASKED`) for each coded question.

    "passed" is the difficulty of classical test theory, the share that got it right (a high one is easy).
    "discrimination" is the correlation of the question's points with those of all other questions together:
    near 0, passing it says nothing about the rest; below 0, better students fail it: look at the question.
    """
    graded, rows = _graded(marks), []
    for name in sorted({name for found in graded.values() for name in found}):
        verdicts = [found[name] for found in graded.values() if name in found]
        shares = [share for verdict in verdicts if (share := _share(verdict)) is not None]
        rows.append(
            {
                "question": name,
                "answers": len(verdicts),
                "passed": sum(bool(v.get("passed")) for v in verdicts) / len(verdicts),
                "mean share of points": sum(shares) / len(shares) if shares else None,
                "discrimination": _discrimination(graded, name),
                "no answer": sum(v.get("kind") in ("stub", "none") for v in verdicts),
            }
        )
    return rows


def _discrimination(graded: Mapping[str, Mapping[str, Mapping]], name: str) -> float | None:
    """The correlation of one question with the rest; None below `FEWEST` students, or where all are equal."""
    pairs = []
    for found in graded.values():
        shares = {question: _share(verdict) for question, verdict in found.items()}
        rest = [share for question, share in shares.items() if question != name and share is not None]
        if shares.get(name) is not None and rest:
            pairs.append((shares[name], sum(rest)))
    if len(pairs) < FEWEST or any(len(set(column)) == 1 for column in zip(*pairs, strict=True)):
        return None
    return float(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1])


def beliefs(marks: Mapping[str, Mapping]) -> list[dict]:
    """A row (`BELIEVED`) for each misconception, the most common first.

    One cause counts once: a student who shows the same misconception in several questions counts as one, and
    these questions share a row.
    """
    graded = _graded(marks)
    held: dict[str, dict[str, set[str]]] = {}  # misconception to question to students
    for student, found in graded.items():
        for question, verdict in found.items():
            if verdict.get("name") not in (None, "", *UNCHANGED) and not verdict.get("passed"):
                held.setdefault(str(verdict["name"]), {}).setdefault(question, set()).add(student)
    rows = []
    for name, where in held.items():
        students = set().union(*where.values())
        asked = sum(any(question in found for question in where) for found in graded.values())
        rows.append(
            {
                "question": ", ".join(sorted(where)),
                "misconception": name,
                "students": len(students),
                "share": len(students) / asked,
            }
        )
    return sorted(rows, key=lambda row: (-row["students"], row["question"], row["misconception"]))


def written(name: str, scores: Sequence[float | None], waiting: int, most: float) -> dict:
    """A row (`WRITTEN`) for one written question."""
    known = [score for score in scores if score is not None]
    share = sum(known) / len(known) / most if known and most else None
    return {"question": name, "marked": len(known), "to mark": waiting, "mean share of points": share}


def summary(exercise: str, marks: Mapping[str, Mapping], listed: set[str]) -> dict:
    """A row (`TREND`) for one exercise; ``listed`` are the ids of the class list."""
    rows, held = questions(marks), beliefs(marks)
    shares = [row["mean share of points"] for row in rows if row["mean share of points"] is not None]
    answers = sum(row["answers"] for row in rows)
    most = f"{held[0]['misconception']} ({held[0]['question']}), {held[0]['students']}" if held else ""
    return {
        "exercise": exercise,
        "handed in": len(marks),
        "not handed in": len(listed - set(marks)),
        "mean share of points": sum(shares) / len(shares) if shares else None,
        "no answer": sum(row["no answer"] for row in rows) / answers if answers else None,
        "most common mistake": most,
    }


# ---- the concept inventory, before and after ----

Choices = Mapping[str, str]  # question to choice


@dataclass(frozen=True)
class Gain:
    """Shares of right answers before and after, the gain, and its 95% interval."""

    before: float
    after: float
    gain: float
    low: float
    high: float


def asked() -> dict[str, dict]:
    """The inventory's questions by name."""
    path = resources.files("course") / "lesson" / "inventory.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def logs(folder: Path) -> tuple[list[tuple[Choices, Choices]], int]:
    """``(before, after)`` for each student who answered both times, and how many files are left out.

    A file is a learner's ``progress.json``, under any name. A pair holds the questions that were answered
    both times; with fewer than two thirds of all, it is left out. ValueError where there is no such file.
    """
    folder = Path(folder)
    paths = [path for path in sorted(folder.rglob("*.json")) if path.is_file()]
    if not paths:
        raise ValueError(
            f"there is no .json file in {folder}: collect the students' progress.json there, "
            "one for each, under any names"
        )
    pairs = [pair for path in paths if (pair := _pair(path, folder))]
    return pairs, len(paths) - len(pairs)


def _pair(path: Path, folder: Path) -> tuple[Choices, Choices] | None:
    try:
        log = json.loads(files.read(path, MOST_LOG, folder))
        before, after = (dict(_choices(log, when)) for when in ("before", "after"))
    except (ValueError, OSError, AttributeError, RecursionError):
        return None
    both = before.keys() & after.keys()
    if len(both) < ENOUGH * len(asked()):
        return None
    return {name: before[name] for name in both}, {name: after[name] for name in both}


def _choices(log: Mapping, when: str) -> Iterator[tuple[str, str]]:
    for name, question in asked().items():
        choice = log.get(f"inventory.{when}.{name}", {}).get("choice")
        if isinstance(choice, str) and choice in question["choices"]:
            yield name, choice


def inventory(pairs: Sequence[tuple[Choices, Choices]]) -> Gain:
    """The class's gain. ValueError below ten pairs: the interval would say more than is known."""
    if len(pairs) < FEWEST:
        raise ValueError(
            f"{len(pairs)} students have answered the inventory before and after; a gain needs "
            f"at least {FEWEST} of them. Look at the questions with a show of hands instead"
        )
    right = {name: question["answer"] for name, question in asked().items()}
    shares = [
        [sum(right[name] == choice for name, choice in choices.items()) / len(choices) for choices in pair]
        for pair in pairs
    ]
    return gain(*zip(*shares, strict=True))


def gain(before: Sequence[float], after: Sequence[float], draws: int = 10_000) -> Gain:
    """The normalised gain of matched pairs: what was learned, as a share of what could be.

    g = (⟨after⟩ − ⟨before⟩) / (1 − ⟨before⟩), from the class's means (Hake 1998, Am. J. Phys. 66, 64). The
    interval is the percentile bootstrap's: students are drawn with replacement, each with both scores.

    >>> found = gain([0.2] * 10, [0.6] * 10)
    >>> round(found.gain, 6), round(found.low, 6)
    (0.5, 0.5)
    """
    pre, post = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    if pre.mean() >= 1:
        raise ValueError("everybody had everything right before: there was nothing to gain")
    drawn = np.random.default_rng(0).integers(0, len(pre), (draws, len(pre)))
    first, second = pre[drawn].mean(1), post[drawn].mean(1)
    some = first < 1
    low, high = np.percentile((second - first)[some] / (1 - first[some]), [2.5, 97.5])
    return Gain(
        float(pre.mean()),
        float(post.mean()),
        float((post.mean() - pre.mean()) / (1 - pre.mean())),
        float(low),
        float(high),
    )


def by_question(pairs: Sequence[tuple[Choices, Choices]]) -> list[dict]:
    """A row (`PAIRED`) for each question: those who answered it both times, and what is still believed."""
    rows = []
    for name, question in asked().items():
        both = [(before[name], after[name]) for before, after in pairs if name in before]
        if not both:
            continue
        first, second = (sum(pair[n] == question["answer"] for pair in both) / len(both) for n in (0, 1))
        wrong = Counter(choice for _, choice in both if choice != question["answer"])
        choice, count = wrong.most_common(1)[0] if wrong else ("", 0)
        rows.append(
            {
                "question": name,
                "right before": first,
                "right after": second,
                "gain": (second - first) / (1 - first) if first < 1 else None,
                "most common belief afterwards": question["misconception"].get(choice, ""),
                "students": count,
            }
        )
    return rows
