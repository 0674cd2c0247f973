"""The picture beside the first words of a side quest: what its question is about, not the answer.

Drawn as those of the lessons' cards are, in units of ``landing.WIDE`` by ``landing.HIGH``.
"""

from __future__ import annotations

from collections.abc import Callable

from landing import drawn, grid, line, text

PICTURES: dict[str, Callable[[], str]] = {}


def of(quest: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """The next function draws the picture of that side quest."""
    return lambda draw: PICTURES.setdefault(quest, draw)


def picture(quest: str) -> str:
    return drawn(PICTURES[quest]())


# ---- 04 ----
@of("04_clipping")
def clipped() -> str:
    """A map of offsets that is flat beyond two steps."""
    values = [[1 - 0.3 * min(2, abs(i - j)) for j in range(11)] for i in range(11)]
    ends = text(205, 94, "−2") + text(249, 94, "0") + text(293, 94, "2")
    level = line([(196, 64), (204, 64), (249, 22), (294, 64), (310, 64)], "relative", 3)
    return grid(22, 16, 13, values, "relative") + level + ends
