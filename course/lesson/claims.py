"""The table *Claims tested*: a popular sentence, a measurement, and the verdict it leads to.

The words of a verdict, and the rule for intervals, are those of :mod:`course.verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tutorial_lib.language import _
from tutorial_lib.stored_widgets import table

from ..verdicts import SIGNS, Outcome, fact


@dataclass(frozen=True)
class Claim:
    text: str
    conditions: Mapping[str, Outcome]
    measured: str
    instead: str
    source: str

    @property
    def verdict(self) -> str:
        """One word of :mod:`course.verdicts`, or ``half true`` with what holds and what does not."""
        if len({outcome.verdict for outcome in self.conditions.values()}) == 1:
            outcome = next(iter(self.conditions.values()))
            return f"{SIGNS[outcome.verdict]} {_(outcome.verdict)}"
        parts = "; ".join(f"{SIGNS[outcome.verdict]} {name}" for name, outcome in self.conditions.items())
        return f"◐ {_('half true')}: {parts}"


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
        self,
        text: str,
        holds: bool | Outcome | Mapping[str, bool | Outcome],
        measured: str,
        instead: str = "",
        source: str = "",
    ) -> None:
        """Add a claim.

        Args:
            text: the claim as people say it.
            holds: the outcome of a measurement, a bool where it is exact, or several named ones; mixed
                outcomes make the claim half true.
            measured: what was measured, in words and numbers.
            instead: the sentence that is true.
            source: paper with equation, table or section.
        """
        conditions = dict(holds) if isinstance(holds, Mapping) else {"": holds}
        if not conditions:
            raise ValueError(f"the claim {text!r} has no condition: measure something")
        found = {
            name: value if isinstance(value, Outcome) else fact(bool(value), name)
            for name, value in conditions.items()
        }
        self.rows.append(Claim(text, found, measured, instead, source))

    def _repr_html_(self) -> str:
        return table(
            (_("Claim"), _("Verdict"), _("Measured here"), _("Say instead"), _("Source")),
            ((f"“{row.text}”", row.verdict, row.measured, row.instead, row.source) for row in self.rows),
        )

    def __repr__(self) -> str:
        return "\n".join(f"“{row.text}” — {row.verdict}. {row.measured}" for row in self.rows)
