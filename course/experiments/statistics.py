"""What may be said from a few seeds: a mean difference with its interval, never a single number."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tutorial_lib.language import _

T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % points of Student's t with 1 … 10 degrees of freedom."""


def t_975(freedom: int) -> float:
    """The 97.5 % point of Student's t.

    From the table, and past it by the expansion about the normal one (Abramowitz and Stegun 1964,
    26.7.5), which is right to four decimals there.

    >>> round(t_975(2), 3), round(t_975(20), 3), round(t_975(10**9), 3)
    (4.303, 2.086, 1.96)
    """
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    z, n = statistics.NormalDist().inv_cdf(0.975), freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % confidence interval, and the values behind it, one for each seed."""

    mean: float
    low: float
    high: float
    values: tuple[float, ...] = field(default=(), repr=False, compare=False)

    @property
    def positive(self) -> bool:
        """The whole interval lies above 0."""
        return self.low > 0

    @property
    def negative(self) -> bool:
        """The whole interval lies below 0."""
        return self.high < 0

    def within(self, margin: float) -> bool:
        """The whole interval lies between −margin and margin: equal for this purpose.

        "No significant difference" would not show that.
        """
        return -margin < self.low and self.high < margin

    def __str__(self):
        return _("{mean} ({low} to {high})").format(
            mean=f"{self.mean:+.3f}", low=f"{self.low:+.3f}", high=f"{self.high:+.3f}"
        )


def interval(values: Sequence[float]) -> Interval:
    """Mean and 95 % interval of values that were measured with different seeds (Student's t).

    >>> print(interval([1.0, 2.0, 3.0]))
    +2.000 (-0.484 to +4.484)

    Raises ValueError for fewer than 2 values: one seed has no spread.
    """
    n = len(values)
    if n < 2:
        raise ValueError(f"{n} value(s): an interval needs at least 2 seeds")
    mean, half = statistics.fmean(values), t_975(n - 1) * statistics.stdev(values) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, tuple(values))


def difference(a: Sequence[float], b: Sequence[float]) -> Interval:
    """a − b, seed by seed: the same seed means the same data in both.

    >>> print(difference([2.1, 2.2, 2.3], [2.0, 2.1, 2.2]))
    +0.100 (+0.100 to +0.100)
    """
    return interval([x - y for x, y in zip(a, b, strict=True)])
