"""One rule for all verdicts: what a measurement says of a claim.

A claim comes with a condition on something that was measured, such as "the loss rises by less than 0.05
nats". What was measured has a 95 % interval, or is exact. The claim

- **holds** if the condition is met everywhere in the interval;
- **does not hold** if it is met nowhere in it;
- is **not shown** if it is met in a part of it only, or if nothing was measured that could decide;
- holds **by construction** if it follows from definitions. The number then shows that the code does what
  the definition says; if it does not, the claim does not hold.

A claim with several conditions holds if all of them do, and does not hold as soon as one does not.

>>> below(0.02, 0.05).verdict
'holds'
>>> print(all_of(below(0.02, 0.05), above(-1.0, 0)))
✘ does not hold

Who judges many claims is wrong about some. What was measured with several seeds has a p, too, and
:func:`discoveries` tells which of many verdicts outlast a correction for their number.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple, Protocol

HOLDS, FAILS, OPEN, IDENTITY = "holds", "does not hold", "not shown", "by construction"
SIGNS = {HOLDS: "✔", FAILS: "✘", OPEN: "◌", IDENTITY: "≡"}


class Measured(Protocol):
    """A number with its interval."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


class Outcome(NamedTuple):
    """A verdict, and the condition that it is about, in words: ``below 0.05``."""

    verdict: str
    condition: str
    p: float | None = None
    """The chance of a mean as far from its limit, or farther, if it were the limit; None: nothing random."""

    @property
    def holds(self) -> bool:
        return self.verdict in (HOLDS, IDENTITY)

    def of(self, number: str) -> Outcome:
        """The same, with the name of what was measured: for a claim about several numbers.

        >>> below(0.02, 0.05).of("the rise").condition
        'the rise below 0.05'
        """
        return self._replace(condition=f"{number} {self.condition}")

    def __str__(self) -> str:
        return f"{SIGNS[self.verdict]} {self.verdict}"


def below(x: Measured | float, limit: float) -> Outcome:
    """x < limit."""
    low, high = _ends(x)
    return _outcome(high < limit, low >= limit, f"below {limit:.3g}", _chance(x, limit))


def above(x: Measured | float, limit: float) -> Outcome:
    """x > limit."""
    low, high = _ends(x)
    return _outcome(low > limit, high <= limit, f"above {limit:.3g}", _chance(x, limit))


def within(x: Measured | float, margin: float) -> Outcome:
    """−margin < x < margin: equal for this purpose. "No significant difference" would not show that."""
    low, high = _ends(x)
    return _outcome(
        -margin < low and high < margin,
        low >= margin or high <= -margin,
        f"between {-margin:.3g} and {margin:+.3g}",
        _chance(x, margin if low + high > 0 else -margin),  # the nearer end decides, inside and outside
    )


def fact(holds: bool, condition: str) -> Outcome:
    """What is counted or compared exactly, such as "4 of 4 texts"."""
    return _outcome(holds, not holds, condition)


def identity(x: Measured | float, rounding: float) -> Outcome:
    """x = 0 by definition, and measured 0 but for ``rounding``."""
    low, high = _ends(x)
    exact = max(abs(low), abs(high)) <= rounding
    return Outcome(IDENTITY if exact else FAILS, f"0 by definition, and at most {rounding:g} as measured")


def unmeasured(what: str) -> Outcome:
    """Nothing here could decide it; ``what`` says what would: "a model of code"."""
    return Outcome(OPEN, f"to be measured with {what}")


def all_of(*outcomes: Outcome) -> Outcome:
    """What all of them say together. Raises ValueError for none."""
    if not outcomes:
        raise ValueError("a claim without a condition: measure something")
    found = {outcome.verdict for outcome in outcomes}
    verdict = FAILS if FAILS in found else OPEN if OPEN in found else HOLDS if HOLDS in found else IDENTITY
    random = [outcome.p for outcome in outcomes if outcome.verdict == verdict and outcome.p is not None]
    certain = verdict == FAILS and any(each.verdict == FAILS and each.p is None for each in outcomes)
    p = None
    if random and not certain:  # all have to hold; to fail, one of so many is enough
        p = min(1.0, len(outcomes) * min(random)) if verdict == FAILS else max(random)
    return Outcome(verdict, ", and ".join(dict.fromkeys(outcome.condition for outcome in outcomes)), p)


def discoveries(outcomes: Sequence[Outcome], share: float = 0.05) -> float:
    """The largest p of a verdict that outlasts the correction of Benjamini and Hochberg (1995).

    Of the verdicts with such a p or a smaller one, at most ``share`` are wrong, on average.

    >>> discoveries([below(0.0, 1)]), discoveries([Outcome(HOLDS, "", p) for p in (0.001, 0.02, 0.04, 0.9)])
    (0.0, 0.02)
    """
    found = sorted(outcome.p for outcome in outcomes if outcome.p is not None)
    return max((p for n, p in enumerate(found, 1) if p <= share * n / len(found)), default=0.0)


def _ends(x: Measured | float) -> tuple[float, float]:
    return (float(x), float(x)) if isinstance(x, (int, float)) else (x.low, x.high)


def _chance(x: Measured | float, limit: float) -> float | None:
    """Student's two-sided p of the values behind ``x``, if there are any: is their mean the limit?"""
    values = getattr(x, "values", ())
    if len(values) < 2:
        return None
    error = statistics.stdev(values) / math.sqrt(len(values))
    distance, freedom = abs(statistics.fmean(values) - limit), len(values) - 1
    if not error:
        return 0.0 if distance else 1.0
    # with t = √n · tan a the density is that of cos^(n − 1) a: Simpson's rule, from a to a right angle
    start, steps = math.atan(distance / error / math.sqrt(freedom)), 200
    width = (math.pi / 2 - start) / steps
    at = [math.cos(start + width * n) ** (freedom - 1) for n in range(steps + 1)]
    area = width / 3 * (at[0] + at[-1] + 4 * sum(at[1::2]) + 2 * sum(at[2:-1:2]))
    return 2 * area * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)


def _outcome(met: bool, missed: bool, condition: str, p: float | None = None) -> Outcome:
    return Outcome(HOLDS if met else FAILS if missed else OPEN, condition, p)
