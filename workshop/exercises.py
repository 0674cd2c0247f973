"""The graded notebooks: ``solutions/`` is their source, ``exercises/`` what a student gets.

In a solution, tags say what a cell is, and :func:`mark` writes what nbgrader needs from them:

=====================  ==============================================================
tag                    cell
=====================  ==============================================================
``answer:NAME``        the learner's function, its solution between ``### BEGIN SOLUTION`` and
                       ``### END SOLUTION``
``check:NAME``         ``check.NAME(NAME)``, locked; its points are those of the question
``explain:NAME:2``     a written answer (markdown) for 2 points, marked by a person
=====================  ==============================================================

:func:`release` writes ``exercises/`` with nbgrader's own steps.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat

from classroom.assignments import names, number, path

from . import ROOT

__all__ = ["api", "course", "mark", "names", "number", "path", "points", "release", "unmark"]
GOES_ON = "raises-exception"  # Run All goes on after a check that fails


# ---- from tags to what nbgrader reads ----
def mark(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Write nbgrader's metadata from the tags, in place. Raises ValueError for a tag that says nothing."""
    from course.checks import questions

    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        tags = [tag for tag in cell.metadata.get("tags", []) if ":" in tag]
        if not tags:
            continue
        kind, _, name = tags[0].partition(":")
        entry = {"grade": False, "locked": False, "schema_version": 3, "solution": False, "task": False}
        if kind == "answer":
            entry |= {"grade_id": questions.find(name).name, "solution": True}
        elif kind == "check":
            entry |= {
                "grade_id": f"check_{name}",
                "grade": True,
                "locked": True,
                "points": questions.find(name).points,
            }
            cell.metadata.tags = sorted({*cell.metadata.tags, GOES_ON})
        elif kind == "explain" and name.count(":") == 1:
            name, points = name.split(":")
            entry |= {"grade_id": f"explain_{name}", "grade": True, "solution": True, "points": int(points)}
        else:
            raise ValueError(
                f"the tag {tags[0]!r} says nothing; there are answer:NAME, check:NAME and explain:NAME:POINTS"
            )
        cell.metadata["nbgrader"] = nbformat.from_dict(entry)
    return notebook


def unmark(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Take away what :func:`mark` writes, in place, so that the notebook can be edited as text."""
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        if any(":" in tag for tag in cell.metadata.get("tags", [])):
            cell.metadata.tags = [tag for tag in cell.metadata.tags if tag != GOES_ON]
    return notebook


def points(notebook: nbformat.NotebookNode) -> dict[str, int]:
    """The points of each graded cell, by its id: ``{"check_rope_angles": 4, "explain_layouts": 2, …}``."""
    entries = (cell.metadata.get("nbgrader", {}) for cell in notebook.cells)
    return {entry["grade_id"]: entry["points"] for entry in entries if entry.get("grade")}


# ---- with nbgrader's own steps ----
def course(folder: Path, only: list[str] | None = None) -> Path:
    """Make ``folder`` an nbgrader course with the sources of the given exercises; returns it."""
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    for name in names() if only is None else only:
        target = folder / "solutions" / name
        target.mkdir(parents=True)
        shutil.copy(path(name), target)
    return folder


def api(folder: Path):
    """nbgrader's interface to the course in ``folder``."""
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config, PyFileConfigLoader

    programs = str(Path(sys.executable).parent)  # nbgrader calls `alembic` by name to lay out its database
    if programs not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([programs, os.environ["PATH"]])
    config: Config = PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config()
    config.CourseDirectory.root = str(folder)
    config.Application.log_level = logging.WARNING
    return NbGraderAPI(CourseDirectory(config=config), config=config)


def release(only: list[str], into: Path = ROOT / "exercises") -> list[Path]:
    """Write the student's version of the given exercises into ``exercises/``; returns their paths.

    Raises RuntimeError with nbgrader's own words when it refuses.
    """
    written = []
    with tempfile.TemporaryDirectory() as scratch:
        interface = api(course(Path(scratch), only))
        for name in only:
            result = interface.generate_assignment(name)
            if not result["success"]:
                raise RuntimeError(f"{name}: {result.get('error') or result.get('log')}")
            target = into / name / f"{name}.ipynb"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(scratch, "exercises", name, f"{name}.ipynb"), target)
            written.append(target)
    return written
