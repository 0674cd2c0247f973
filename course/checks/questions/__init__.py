"""The questions of the exercises: ``q06.py`` holds those of exercise 06."""

from __future__ import annotations

import functools
import importlib
from importlib.resources import files
from pathlib import Path

from ..question import Question


@functools.cache
def exercises() -> tuple[str, ...]:
    """The numbers of the exercises: ``("01", "02", …)``."""
    names = (file.name for file in files(__package__).iterdir())
    return tuple(sorted(name[1:3] for name in names if name.startswith("q") and name.endswith(".py")))


@functools.cache
def load(exercise: str) -> tuple[Question, ...]:
    """All questions of one exercise, in its order. KeyError lists the exercises that there are."""
    if exercise not in exercises():
        raise KeyError(f"no exercise {exercise!r}; there are {', '.join(exercises())}")
    return importlib.import_module(f"{__package__}.q{exercise}").QUESTIONS


def everything() -> tuple[Question, ...]:
    """All questions of the course."""
    return tuple(question for number in exercises() for question in load(number))


def find(name: str) -> Question:
    """The question of that name. KeyError lists the questions that there are."""
    for question in everything():
        if question.name == name:
            return question
    raise KeyError(f"no question {name!r}; there are {', '.join(q.name for q in everything())}")


def package_root() -> str:
    """The folder that holds the package."""
    return str(Path(__file__).parents[3])
