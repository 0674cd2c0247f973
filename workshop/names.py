"""What readers call a method: in lists, in charts and in tables."""

from __future__ import annotations

import re

from tutorial_lib.encodings.method import Method
from tutorial_lib.encodings.registry import METHODS as EVERY
from tutorial_lib.encodings.registry import told
from tutorial_lib.language import _

METHODS = {method.page: method for method in EVERY if method.page}

CALLED = {
    "table": "Table of offsets",
    "clipped": "Clipped table",
    "t5-far": "T5 bias, farther",
    "alibi-asymmetric": "ALiBi, two-sided",
}
"""Encodings of the records that share a page, or have none."""

ALONE = re.compile(r"(?<![\w-])(rotary|alibi|t5|shaw|xpos|kerple|cope|tupe|deberta)(?![\w-])")
"""Names that are no other word, wherever they stand."""


def on_board(page: Method) -> list[str]:
    """The names of a page's methods, as the scoreboard has them."""
    return [name for method in told(page) for name in (*method.names, *method.variants)]


def short(name: str) -> str:
    """What a page is called in a list: the title up to its colon."""
    return re.split("[:：]", _(METHODS[name].title))[0]


def called(name: str) -> str:
    """What readers call an encoding of the record.

    >>> called("fire"), called("rotary + PI"), called("clipped")
    ('FIRE', 'RoPE + PI', 'Clipped table')
    """
    first, plus, scaling = name.partition(" + ")
    page = next((key for key, page in METHODS.items() if first in on_board(page)), "")
    return CALLED.get(name) or f"{short(page)}{plus}{scaling}"


def spoken(text: str) -> str:
    """A name in a record, or words with names in them, as readers say it.

    >>> spoken("sinusoidal"), spoken("learned + t5"), spoken("the better of alibi or t5"), spoken("k = 1")
    ('Sinusoidal positions', 'learned + T5 bias', 'the better of ALiBi or T5 bias', 'k = 1')
    """
    if text in CALLED or any(text in page.names for page in METHODS.values()):
        return called(text)
    return ALONE.sub(lambda name: called(name[1]), text)
