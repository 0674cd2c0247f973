"""How an exercise ends: the learner's own functions at work in a real model.

Nothing here is graded. An ending runs with whatever functions there are, right or wrong, and where one
of them is not written yet it says so in a sentence and stops there, without an exception::

    from course import real_models

    if real_models.ready(rope_angles, rope_rotate, cached_scores):
        smollm2 = real_models.RopeInSmolLM2(rope_angles, rope_rotate, cached_scores)
        smollm2.talk("The cat chased the dog, and")

Where a class is marked, this module is absent and :func:`ready` is False: marking runs no model.
"""

from __future__ import annotations

from collections.abc import Callable

from tutorial_lib.language import _

from ..checks import questions
from ..checks.answer import collect
from .alibi import short_and_long
from .board import two_clocks
from .lineup import Lineup
from .minilm import minilm_tables
from .smollm2 import BUGS, RopeInSmolLM2, after_a_gap
from .souvenir import keep

__all__ = [
    "BUGS",
    "Lineup",
    "RopeInSmolLM2",
    "after_a_gap",
    "keep",
    "minilm_tables",
    "missing",
    "ready",
    "short_and_long",
    "two_clocks",
]


def missing(*functions: Callable) -> str:
    """What keeps these answers from running, in a sentence; "" when each of them returns something."""
    for function in functions:
        name = getattr(function, "__name__", "")
        try:
            first = questions.find(name).cases(0)[0]
        except KeyError:  # a helper of the learner's
            continue
        outcome = collect(function, [first.args])[0]
        if outcome["kind"] in ("stub", "none"):
            return _("This ending waits for your `{name}`: write it first, then run this cell again.").format(
                name=name
            )
        if outcome["kind"] != "value":
            return _(
                "This ending needs a `{name}` that returns something; its check says what is wrong now."
            ).format(name=name)
    return ""


def ready(*functions: Callable) -> bool:
    """Can these answers be called? If not, one sentence is printed that says which one is missing."""
    text = missing(*functions)
    if text:
        print(text)
    return not text
