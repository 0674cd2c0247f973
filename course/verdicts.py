"""One rule for all verdicts: what a measurement says of a claim.

A claim comes with a condition on something that was measured, such as "the loss rises by less than 0.05
nats". What was measured has a 95 % interval, or is exact. The claim

- **holds** if the condition is met everywhere in the interval;
- **does not hold** if it is met nowhere in it;
- is **not shown** if it is met in a part of it only, or if nothing was measured that could decide;
- holds **by construction** if it follows from definitions. The number then shows that the code does what
  the definition says; if it does not, the claim does not hold.

A claim with several conditions holds if all of them do, and does not hold as soon as one does not.

>>> below(0.02, 0.05)
Outcome(verdict='holds', condition='below +0.05')
>>> all_of(below(0.02, 0.05), above(-1.0, 0))
Outcome(verdict='does not hold', condition='below +0.05, and above 0')
"""

from __future__ import annotations

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
    """A verdict, and the condition that it is about, in words: ``below +0.05``."""

    verdict: str
    condition: str

    @property
    def holds(self) -> bool:
        return self.verdict in (HOLDS, IDENTITY)

    def of(self, number: str) -> Outcome:
        """The same, with the name of what was measured: for a claim about several numbers.

        >>> below(0.02, 0.05).of("the rise").condition
        'the rise below +0.05'
        """
        return self._replace(condition=f"{number} {self.condition}")

    def __str__(self) -> str:
        return f"{SIGNS[self.verdict]} {self.verdict}"


def below(x: Measured | float, limit: float) -> Outcome:
    """x < limit."""
    low, high = _ends(x)
    return _outcome(high < limit, low >= limit, f"below {_number(limit)}")


def above(x: Measured | float, limit: float) -> Outcome:
    """x > limit."""
    low, high = _ends(x)
    return _outcome(low > limit, high <= limit, f"above {_number(limit)}")


def within(x: Measured | float, margin: float) -> Outcome:
    """−margin < x < margin: equal for this purpose. "No significant difference" would not show that."""
    low, high = _ends(x)
    return _outcome(
        -margin < low and high < margin,
        low >= margin or high <= -margin,
        f"between {_number(-margin)} and {_number(margin)}",
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
    return Outcome(verdict, ", and ".join(dict.fromkeys(outcome.condition for outcome in outcomes)))


def _ends(x: Measured | float) -> tuple[float, float]:
    return (float(x), float(x)) if isinstance(x, (int, float)) else (x.low, x.high)


def _outcome(met: bool, missed: bool, condition: str) -> Outcome:
    return Outcome(HOLDS if met else FAILS if missed else OPEN, condition)


def _number(limit: float) -> str:
    return f"{limit:+.3g}" if limit else "0"
