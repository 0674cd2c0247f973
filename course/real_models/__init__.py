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

from .alibi import short_and_long
from .animals import who_chases
from .board import two_clocks
from .buckets import trained_buckets
from .dials import clocks, read_clocks
from .lineup import Lineup
from .minilm import minilm_tables, ruler, term_by_term
from .smollm2 import BUGS, RopeInSmolLM2, after_a_gap
from .souvenir import keep, missing, ready

__all__ = [
    "BUGS",
    "Lineup",
    "RopeInSmolLM2",
    "after_a_gap",
    "clocks",
    "keep",
    "minilm_tables",
    "missing",
    "read_clocks",
    "ready",
    "ruler",
    "short_and_long",
    "term_by_term",
    "trained_buckets",
    "two_clocks",
    "who_chases",
]
