"""The graded notebooks: ``solutions/`` is their source, ``exercises/`` what a student gets."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from course import places

COURSE = "transformer-order"
"""The course's name for nbgrader: in the clone, in each class folder, and in the exchange of a hub."""

WRITTEN = "*Write your answer here.*"
"""What stands in the place of a written answer."""

PROSE = "prose"
"""Where a cell of an edition in another language has the fingerprint of its text: what a student has added to
it is told from what was given out, whichever edition that was."""


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def given_out(cell) -> bool:
    """Is it a cell of the course in another language, with its text or code as it was given out?"""
    if not isinstance(cell, Mapping) or not isinstance(cell.get("metadata"), Mapping):
        return False
    source = cell.get("source", "")
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return cell["metadata"].get(PROSE) == fingerprint(text)


def names(folder: str = "solutions") -> list[str]:
    """The exercises, in reading order: ``["ex01_order", …]``."""
    return sorted(path.stem for path in (places.ROOT / folder).glob("ex*/ex*.ipynb"))


def path(name: str, folder: str = "solutions") -> Path:
    """Where an exercise is: nbgrader wants a folder for each."""
    return places.ROOT / folder / name / f"{name}.ipynb"


def number(name: str) -> str:
    """``"ex06_rope"`` is exercise ``"06"``."""
    return name[2:4]


# ---- questions that are answered in words ----
TITLE = re.compile(r"^#+ (.+?)(?: \([^()]*points?\))?$", re.M)


@dataclass(frozen=True)
class Written:
    """A question that is answered in words. ``text`` and ``model`` (our answer, its rubric) are Markdown."""

    title: str
    text: str
    model: str


def question(text: str, name: str) -> tuple[str, str]:
    """Title and text of a written question, from its cell; where it has no heading, from nbgrader's id."""
    title = TITLE.search(text)
    said = title[1] if title else name.removeprefix("explain_").replace("_", " ")
    return said, TITLE.sub("", text, count=1).strip()


def written(source: Path) -> dict[str, Written]:
    """The written questions of a notebook with solutions, in their order, by nbgrader's id of the answer.

    The cell before the answer holds the question; if it has no heading, the title is made from the id.
    """
    found, before = {}, ""
    for cell in json.loads(source.read_bytes())["cells"]:
        text, entry = "".join(cell["source"]), cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown" and entry.get("grade"):
            model = re.sub(r"### (BEGIN|END) SOLUTION", "", text).strip()
            found[entry["grade_id"]] = Written(*question(before, entry["grade_id"]), model)
        before = text if cell["cell_type"] == "markdown" else ""
    return found
