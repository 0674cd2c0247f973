"""Modules of version 0.2 that have moved or been renamed. The old names work, with a warning, until 0.4.

A notebook that a learner has changed keeps its imports, so ``from tutorial_lib import lesson`` must still
mean what it meant.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from types import ModuleType
from typing import Any

COURSE = ("checks", "doctor", "experiments", "lesson", "progress", "setup", "timing", "verdicts")
MOVED = {
    "tutorial_lib.course": "workshop",
    "tutorial_lib.grading": "classroom",
    **{f"tutorial_lib.{name}": f"course.{name}" for name in COURSE},
    **{f"{room}.desk": "course.lab" for room in ("tutorial_lib", "course")},
    **{f"{room}.endings": "course.real_models" for room in ("tutorial_lib", "course")},
    "course.experiments.far": "course.experiments.long_range",
    "course.experiments.gap": "course.experiments.position_gap",
    "course.experiments.order": "course.experiments.word_order",
    "course.experiments.why": "course.experiments.why_rope",
    "classroom.merging": "classroom.autograde_button",  # stands in the nbgrader_config.py of a class's folder
    "classroom.safe": "classroom.safe_html",
    "tutorial_lib.encodings.once": "tutorial_lib.encodings.deprecated",
    "tutorial_lib.explorers.formula": "tutorial_lib.explorers.hybrid",
    "tutorial_lib.extras": "tutorial_lib.optional",
    "tutorial_lib.fallback": "tutorial_lib.stored_widgets",
    "tutorial_lib.legible": "tutorial_lib.readability",
}
"""The new name of each module that had another one."""


def new_name(name: str) -> str | None:
    """Where a module is now, if it, or a package that it is in, has moved.

    >>> new_name("tutorial_lib.experiments.gap"), new_name("tutorial_lib.model")
    ('course.experiments.gap', None)
    """
    old, rest = name, ""
    while old and old not in MOVED:
        old, _, last = old.rpartition(".")
        rest = f".{last}{rest}"
    return MOVED[old] + rest if old else None


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``tutorial_lib.lesson.votes`` as ``course.lesson.votes``: one module under two names."""

    def find_spec(self, name, path=None, target=None):
        new = new_name(name)
        if new is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=new, is_package=True)

    def create_module(self, spec) -> ModuleType:
        new = spec.origin
        try:
            module = importlib.import_module(new)
        except ModuleNotFoundError as error:
            if error.name not in ("course", "classroom", "workshop"):
                raise
            raise ModuleNotFoundError(
                f"{spec.name} has moved to {new}, which needs a clone of the course: get it with "
                "`git clone`, and run `make lab` in its folder",
                name=spec.name,
            ) from None
        warnings.warn(
            f"{spec.name} has moved: import {new}. The old name goes with version 0.4.",
            FutureWarning,
            stacklevel=2,
        )
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        alias: Any = module.__spec__
        module.__spec__ = alias.loader_state  # it has run under its new name, and keeps that


def install() -> None:
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())  # before the one that would find parts of a moved package anew
