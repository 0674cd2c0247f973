"""What takes the place of the rest of the course in the sandbox: modules whose functions do nothing.

A submission may import the checks, draw a figure or look at its progress; none of that is needed to
mark it. The course's own encodings are not there: an answer that calls them gets nothing, and the
call is noted.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types

ROOMS = ("tutorial_lib", "course", "classroom", "workshop")
# What a notebook uses besides its answers.
FREE = ("checks", "lesson", "log", "plots", "explorers", "stored", "real_models")

called: list[str] = []


class NotYet(AssertionError):
    """As in the checks."""


class Nothing:
    """It can be called, has any attribute you ask for, and does nothing."""

    def __init__(self, name: str):
        self._name = name

    def __call__(self, *args, **kwargs):
        if self._name.split(".")[1] not in FREE:
            called.append(self._name)
        return self

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return Nothing(f"{self._name}.{name}")

    def __bool__(self):
        return False  # so `if real_models.ready(…)` leaves an ending out: marking runs no model

    def __iter__(self):
        return iter(())

    def __getitem__(self, key):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __repr__(self):
        return ""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if "." not in name or name.partition(".")[0] not in ROOMS:
            return None
        return importlib.machinery.PathFinder.find_spec(name, path, target) or importlib.machinery.ModuleSpec(
            name, self, is_package=True
        )

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        empty(module)


def empty(module: types.ModuleType) -> None:
    """Give a module something that does nothing for every name that it lacks."""

    def get(name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return NotYet if name == "NotYet" else Nothing(f"{module.__name__}.{name}")

    module.__getattr__ = get


def install() -> None:
    """Make the missing parts of the course importable.

    Before all other finders: that of an editable installation would find the rest of the package.
    """
    sys.meta_path.insert(0, _Finder())
    for name in ("tutorial_lib", "course", "course.checks"):
        empty(importlib.import_module(name))
