"""Names of version 0.2 that left the library for the course's rooms. They work, with a warning, until 0.4.

A notebook that a learner has changed keeps its imports, so ``from tutorial_lib import lesson`` must go on to
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

COURSE = ("checks", "desk", "doctor", "endings", "experiments", "lesson", "progress", "setup", "timing",
          "verdicts")
ROOMS = {"course": "workshop", "grading": "classroom"} | {name: f"course.{name}" for name in COURSE}
"""The new place of each first part of a name."""


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``tutorial_lib.lesson.votes`` as ``course.lesson.votes``: one module under two names."""

    def find_spec(self, name, path=None, target=None):
        library, _, rest = name.partition(".")
        first, _, inner = rest.partition(".")
        if library != __package__ or first not in ROOMS:
            return None
        new = ROOMS[first] + (inner and f".{inner}")
        return importlib.machinery.ModuleSpec(name, self, origin=new, is_package=True)

    def create_module(self, spec) -> ModuleType:
        new = spec.origin
        try:
            module = importlib.import_module(new)
        except ModuleNotFoundError as error:
            if error.name != new.partition(".")[0]:
                raise
            raise ModuleNotFoundError(
                f"{spec.name} has moved to {new}, which needs a clone of the course: get it with "
                "`git clone`, and run `make lab` in its folder", name=spec.name) from None
        warnings.warn(f"{spec.name} has moved: import {new}. The old name goes with version 0.4.",
                      FutureWarning, stacklevel=2)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        alias: Any = module.__spec__
        module.__spec__ = alias.loader_state  # it has run under its new name, and keeps that


def install() -> None:
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())  # before the one that would find parts of a moved package anew
