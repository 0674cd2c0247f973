"""Where the course teaches what popular introductions teach: ``python -m workshop.coverage``.

Reads ``docs/coverage.toml`` and writes ``docs/coverage.md``. Whatever a row names has to be there.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import re
import tomllib
from typing import NamedTuple

import nbformat

from . import ROOT

SOURCE, PAGE = ROOT / "docs" / "coverage.toml", ROOT / "docs" / "coverage.md"
HEAD = """# What is taught where

What four popular introductions to positional encoding claim, where this course teaches or judges it, and
which test checks it.

A to D are four such introductions, read closely and left unnamed: claims are judged here, not authors.
"""
TABLE = """
## {}

| claim | lesson | test |
|---|---|---|
"""
NAMED = "Named, and not explained"


class Row(NamedTuple):
    """``notebook`` is its number, or ``deeper/02_fusion`` for a side quest; ``object`` stands in
    ``tutorial_lib`` if it does not begin with ``course``, ``test`` in ``tests``."""

    id: str
    topic: str
    notebook: str
    section: str
    object: str
    test: str


def rows() -> list[Row]:
    return [Row(*row) for row in tomllib.loads(SOURCE.read_text(encoding="utf-8"))["rows"]]


@functools.cache
def headings(number: str) -> tuple[str, list[str]]:
    """File name and headings of a notebook; ValueError if there is none with this number."""
    folder = ROOT / "notebooks"
    for path in [*folder.glob(f"{number}_*.ipynb"), *folder.glob(f"{number}.ipynb")]:
        prose = "\n".join(
            cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"
        )
        name = path.relative_to(folder).as_posix()
        return name, re.findall(r"^#+ +(.+?)\s*$", prose, re.MULTILINE)
    raise ValueError(f"there is no notebook {number}")


def problem(row: Row) -> str:
    """What the row names and the course does not have; empty if all is there."""
    try:
        _, sections = headings(row.notebook)
    except ValueError as missing:
        return f"{row.id}: {missing}"
    if row.section not in sections:
        return f"{row.id}: notebook {row.notebook} has no section {row.section!r}; it has {sections}"
    room, _, rest = row.object.partition(".")
    module, found = importlib.import_module(room if room == "course" else "tutorial_lib"), None
    for name in (rest if room == "course" else row.object).split("."):
        try:
            found = getattr(found or module, name, None) or importlib.import_module(
                f"{(found or module).__name__}.{name}"
            )
        except (ImportError, AttributeError):
            return f"{row.id}: the library has no {row.object}"
    file, _, test = row.test.partition("::")
    path = ROOT / "tests" / file
    if not path.is_file() or not re.search(rf"^def {test}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
        return f"{row.id}: there is no test {row.test}"
    return ""


def page() -> str:
    """The page, as text."""
    text = HEAD
    for group, found in itertools.groupby(rows(), lambda row: row.id[0]):
        text += TABLE.format(NAMED if group == "N" else f"Introduction {group}")
        for row in found:
            name, _ = headings(row.notebook)
            side, number = re.fullmatch(r"(deeper/)?(\d+).*", row.notebook).groups()  # type: ignore[union-attr]
            lesson = f"{number} side quest" if side else number
            section = row.section.removeprefix(f"{number} · ")  # a title says its number by itself
            test = row.test.partition("::test_")[2].replace("_", " ")
            text += (
                f"| {row.id} · {row.topic} | [{lesson} · {section}](../notebooks/{name}) | "
                f"<small>{test}</small> |\n"
            )
    return f"{text}\n*Made by `python -m workshop.coverage`.*\n"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    problems = list(filter(None, map(problem, rows())))
    if problems:
        raise SystemExit("\n".join(problems))
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
