"""The graded notebooks: ``solutions/`` is their source, ``exercises/`` what a student gets."""

from __future__ import annotations

from pathlib import Path

from .. import clone


def names(folder: str = "solutions") -> list[str]:
    """The exercises, in reading order: ``["ex01_order", …]``. FileNotFoundError outside of a clone."""
    return sorted(path.stem for path in (clone.root("grading") / folder).glob("ex*/ex*.ipynb"))


def path(name: str, folder: str = "solutions") -> Path:
    """Where an exercise stands: nbgrader asks for one folder for each."""
    return clone.root("grading") / folder / name / f"{name}.ipynb"


def number(name: str) -> str:
    """``"ex06_rope"`` is exercise ``"06"``."""
    return name[2:4]
