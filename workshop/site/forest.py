"""Rows over one axis, for records and methods: intervals, the ground where a claim would hold, ticks."""

from __future__ import annotations

import re
import statistics
from typing import NamedTuple, Protocol

from matplotlib.ticker import MaxNLocator

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Interval(Protocol):
    """A mean with its interval."""

    mean: float
    low: float
    high: float


def signed(x: float, form: str = "g") -> str:
    """As it is printed, with a minus; what rounds to zero has no sign.

    >>> signed(-1.5), signed(-0.0004, ".3f")
    ('−1.5', '0.000')
    """
    return minus(format(x, form))


def minus(text: str) -> str:
    """A text whose numbers are as :func:`signed` writes them, and powers of ten as in print.

    >>> minus("-0.000 (-0.02 to +0.000), 3.8e-07").replace("\\u00a0", " ")
    '0.000 (−0.02 to 0.000), 3.8 × 10⁻⁷'
    """
    ten = "\u00a0×\u00a010"
    text = re.sub(r"(?<=\d)e([-+]\d+)", lambda its: f"{ten}{str(int(its[1])).translate(RAISED)}", text)
    return re.sub(
        r"(?<![\w`−+-])[-+](?=\d)(0\.0+(?!\d))?", lambda sign: sign[1] or sign[0].replace("-", "−"), text
    )


def _limit(left: float, right: float, said: str) -> str:
    """Words above a ground, as near to its limit as there is room: from it on, up to it, or about both.

    >>> _limit(50, 100, "a"), _limit(0, 20, "b"), _limit(40, 60, "c")
    ... # doctest: +NORMALIZE_WHITESPACE
    ('<span class="limit" style="--at:50.0%">a</span>',
     '<span class="limit" style="--at:0.0%">b</span>',
     '<span class="limit mid" style="--at:50.0%">c</span>')
    """
    if left == 0:
        at, side = (right, " end") if right > 45 else (0, "")
    elif right == 100:
        at, side = (left, "") if left < 55 else (100, " end")
    else:
        middle = (left + right) / 2
        at, side = (left, "") if middle < 20 else (right, " end") if middle > 80 else (middle, " mid")
    return f'<span class="limit{side}" style="--at:{at:.1f}%">{said}</span>'


class Axis(NamedTuple):
    """A scale, by its ends."""

    low: float
    high: float

    @classmethod
    def over(cls, numbers: list[float], more: tuple[bool, bool] = (False, False)) -> Axis:
        """From the least to the most, with some room at both ends; ``more``: with that of an arrow."""
        low, high = min(numbers), max(numbers)
        room = 0.08 * (high - low or 1)
        return cls(low - room * (1 + 2 * more[0]), high + room * (1 + 2 * more[1]))

    @classmethod
    def around(cls, several: list[Interval], fixed: list[float]) -> Axis:
        """Over all intervals but those that would squeeze the others into a corner, and ``fixed`` numbers.

        >>> from course.experiments.statistics import Interval
        >>> [round(x, 2) for x in Axis.around([Interval(x, x - 1, x + 1) for x in (1, 2, 3, 90)], [0])]
        [-0.32, 4.96]
        """
        middle = statistics.median(its.mean for its in several)
        kept = sorted(several, key=lambda its: abs(its.mean - middle))

        def numbers(some: list[Interval]) -> list[float]:
            return [*fixed, *(x for its in some for x in (its.low, its.high))]

        def wide(some: list[Interval]) -> float:
            return max(numbers(some)) - min(numbers(some))

        while len(kept) > 2 and len(kept) > 0.7 * len(several) and wide(kept) > 4 * wide(kept[:-1]) > 0:
            kept = kept[:-1]
        inside, all_of_them = numbers(kept), numbers(several)
        return cls.over(inside, (min(all_of_them) < min(inside), max(all_of_them) > max(inside)))

    def at(self, x: float) -> float:
        """Where a number stands, in per cent of the width; what lies beyond stands at an end."""
        return 100 * (min(max(x, self.low), self.high) - self.low) / (self.high - self.low)

    def track(
        self,
        its: Interval | None,
        ground: tuple[float, float] | None = None,
        tag: str = "span",
        said: str = "",
    ) -> str:
        """A cell with an interval and its mean over ``ground``, whose limits are lines; ``said``: of it.

        A mean beyond the axis is an arrow, which its interval leads to.

        >>> Axis(0, 2).track(None, (1, 3)), Axis(0, 2).track(None, (2, 2), "td")
        ... # doctest: +NORMALIZE_WHITESPACE
        ('<span class="track"><u style="--at:50.0%;--wide:50.0%" data-from></u></span>',
         '<td class="track"><u class="exact" style="--at:100.0%;--wide:0.0%"></u></td>')
        >>> Axis(0, 2).track(None, (1, 3), said="above 1")[-60:]
        '<span class="limit" style="--at:50.0%">above 1</span></span>'
        """
        zero = f' style="--zero:{self.at(0):.1f}%"' if self.low < 0 < self.high else ""
        inside = ""
        if ground:
            left, right = map(self.at, ground)
            exact = ' class="exact"' * (right - left < 2)  # to be seen at all
            limits = " data-from" * (0 < left and not exact) + " data-to" * (right < 100 and not exact)
            inside = f'<u{exact} style="--at:{left:.1f}%;--wide:{right - left:.1f}%"{limits}></u>'
            if said:
                inside += _limit(left, right, said)
        if its:
            mean, left, right = map(self.at, (its.mean, its.low, its.high))
            inside += f'<i style="--at:{left:.1f}%;--wide:{right - left:.1f}%"></i>'
            if self.low <= its.mean <= self.high:
                inside += f'<b style="--at:{mean:.1f}%"></b>'
            else:
                inside += f"<em{' class=low>←' if its.mean < self.low else '>→'}</em>"
        return f'<{tag} class="track"{zero}>{inside}</{tag}>'

    def numbers(self, most: int = 3) -> list[float]:
        """Round numbers on it, with at most so many steps between them."""
        found = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(self.low, self.high).round(9)
        return [x for x in found.tolist() if self.low <= x <= self.high]

    def most(self) -> int:
        """How many steps there is room for between numbers that are as long as these."""
        return 6 if max(len(signed(x, ",g")) for x in self.numbers(6)) < 7 else 4

    def grid(self, most: int = 3) -> str:
        """Where these numbers stand, for lines through all rows; "" if there is one alone.

        >>> Axis(-1, 4).grid()
        '--first:20.00%;--step:40.00%'
        """
        first, *others = [self.at(x) for x in self.numbers(most)] or [0]
        return f"--first:{first:.2f}%;--step:{others[0] - first:.2f}%" if others else ""

    def ticks(self, most: int = 3) -> str:
        """These numbers at their places."""
        return "".join(
            f'<small style="--at:{self.at(x):.1f}%">{signed(x, ",g")}</small>' for x in self.numbers(most)
        )
