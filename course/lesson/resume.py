"""Where to go on after a break: the first open question after the last one answered."""

from __future__ import annotations

import functools
import html
import json
import re
from pathlib import Path
from typing import NamedTuple

from tutorial_lib.language import _

from ..places import DEEPER, ROOT
from . import questions


class Place(NamedTuple):
    """A question: its key in the log, its notebook's file and title, its section."""

    key: str
    file: str
    title: str
    section: str

    def __str__(self) -> str:
        return f"{_(self.title)}, {_(self.section)}"

    def link(self) -> str:
        """The place as HTML, seen from another notebook.

        JupyterLab scrolls to the section only where the notebook is already open, so the link names it, too.
        """
        target = html.escape(f"{self.file}#{_(self.section).replace(' ', '-')}")
        return f'<a href="{target}">{html.escape(_(self.title))}, <i>{html.escape(_(self.section))}</i></a>'


def notebooks(root: Path = ROOT) -> list[Path]:
    """The notebooks of the course, in reading order."""
    return sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def quests(root: Path = ROOT) -> list[Path]:
    """The side quests; each belongs to the notebook of its number."""
    return sorted((root / "notebooks" / DEEPER).glob("[0-9][0-9]_*.ipynb"))


def cells(path: Path) -> list[tuple[str, str]]:
    """``(type, source)`` of each cell. They are read as JSON: importing nbformat takes as long as torch."""
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def title(path: Path) -> str:
    """``# 06 · RoPE: positions that turn`` is ``06 RoPE``."""
    heading = cells(path)[0][1].split("\n")[0]
    return heading.lstrip("# ").split(":")[0].replace(" · ", " ")


@functools.cache
def places() -> tuple[Place, ...]:
    """All predictions and concept checks in reading order, as the notebooks ask them."""
    found = []
    quest = quests()
    for path in sorted([*notebooks(), *quest], key=lambda path: (path.stem[:2], path in quest)):
        name, section = title(path), ""
        for kind, source in cells(path):
            if kind == "markdown":
                section = (re.findall(r"^#+ +(.+?)\s*$", source, re.MULTILINE) or [section])[-1]
                continue
            keys = [
                f"{number}.predict.{name}"
                for number, name in re.findall(r"\blesson\.predict\(\"(\d\d)\.(\w+)\"", source)
            ]
            for number in re.findall(r"\blesson\.concept_check\(\"(\d\d)\"", source):
                keys += [f"{number}.check.{name}" for name in questions.questions(number)["check"]]
            file = path.relative_to(notebooks()[0].parent).as_posix()
            found += [Place(key, file, name, section) for key in keys]
    return tuple(found)


def next_place(log: dict[str, dict]) -> tuple[str, Place | None]:
    """``("Go on", place)``, by the log; no place if nothing is done yet, or if everything is.

    Entries without a time, from an earlier version, count as older than all others, and are
    in reading order among themselves. Answers to questions that no longer exist are ignored.
    """
    order = places()
    done = [n for n, place in enumerate(order) if "choice" in log.get(place.key, {})]
    last = max(done, key=lambda n: (str(log[order[n].key].get("at", "")), n), default=-1)
    ahead = [n for n in (*range(last + 1, len(order)), *range(last + 1)) if n not in done]
    if not done:
        return _("Begin at the top: nothing has been predicted yet"), None
    if not ahead:
        return _("All predictions are made, and all questions answered"), None
    return _("Go on"), order[ahead[0]]
