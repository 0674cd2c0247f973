"""The checks of an exercise's answers.

    from course import checks as check

    check.rope_rotate(rope_rotate)   # runs your function on fresh inputs and says what it found
    check.hint("rope_rotate")        # three hints, one at a time
    check.progress("06")             # what you have passed
    check.model_answer("rope_layout", "…")  # a written answer: ours, once you have committed to yours

What is expected is computed in a process of its own, from inputs that change with every call.
"""

from __future__ import annotations

from importlib import import_module

from tutorial_lib.optional import needs

with needs("experiments"):
    from . import messaging, questions

__all__ = ["NotYet", "hint", "messaging", "model_answer", "progress", "questions", "verdict"]


def __getattr__(name: str):
    if name.startswith("_"):
        raise AttributeError(name)
    report = import_module(f"{__name__}.report")  # draws and counts; judging alone doesn't need it
    if name in __all__:
        return getattr(report, name)
    try:
        return report.Check(questions.find(name))
    except KeyError as problem:
        raise AttributeError(problem.args[0]) from None


def __dir__():
    return sorted({*globals(), *__all__, *(question.name for question in questions.everything())})
