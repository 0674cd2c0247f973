"""The table *Claims tested*: a popular sentence, a measurement, and the verdict it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..fallback import table


@dataclass(frozen=True)
class Claim:
    text: str
    conditions: Mapping[str, bool]
    measured: str
    instead: str
    source: str

    @property
    def verdict(self) -> str:
        """``holds``, ``does not hold``, or ``half true`` with what holds and what does not."""
        results = set(self.conditions.values())
        if results == {True}:
            return "✔ holds"
        if results == {False}:
            return "✘ does not hold"
        parts = "; ".join(f"{'✔' if ok else '✘'} {name}" for name, ok in self.conditions.items())
        return f"◐ half true: {parts}"


@dataclass
class Claims:
    """A growing table of claims; displayed as HTML, printed as text.

    >>> claims = Claims()
    >>> claims.test("2 is even", holds=2 % 2 == 0, measured="2 mod 2 is 0")
    >>> claims.rows[0].verdict
    '✔ holds'
    """

    rows: list[Claim] = field(default_factory=list)

    def test(
        self, text: str, holds: bool | Mapping[str, bool], measured: str, instead: str = "",
        source: str = "",
    ) -> None:
        """Add a claim.

        Args:
            text: the claim as people say it.
            holds: the outcome of a measurement, or several named ones; mixed outcomes make the
                claim half true.
            measured: what was measured, in words and numbers.
            instead: the sentence that is true.
            source: paper with equation, table or section.
        """
        conditions = dict(holds) if isinstance(holds, Mapping) else {"": holds}
        if not conditions:
            raise ValueError(f"the claim {text!r} has no condition: measure something")
        conditions = {name: bool(value) for name, value in conditions.items()}
        self.rows.append(Claim(text, conditions, measured, instead, source))

    def _repr_html_(self) -> str:
        return table(("Claim", "Verdict", "Measured here", "Say instead", "Source"), (
            (f"“{row.text}”", row.verdict, row.measured, row.instead, row.source) for row in self.rows))

    def __repr__(self) -> str:
        return "\n".join(f"“{row.text}” — {row.verdict}. {row.measured}" for row in self.rows)
