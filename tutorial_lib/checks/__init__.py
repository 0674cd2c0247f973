"""What the answers of an exercise are held against.

    from tutorial_lib import checks as check

    check.rope_rotate(rope_rotate)   # runs your function on fresh inputs and says what it found
    check.hint("rope_rotate")        # three hints, one at a time
    check.progress("06")             # what you have passed

What is expected is computed in a process of its own, from inputs that change with every call.
"""

from __future__ import annotations

from . import questions
from .report import Check, NotYet, hint, progress, verdict

__all__ = ["NotYet", "hint", "progress", "verdict"]


def __getattr__(name: str):
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return Check(questions.find(name))
    except KeyError as problem:
        raise AttributeError(problem.args[0]) from None


def __dir__():
    return sorted({*globals(), *(question.name for question in questions.everything())})
