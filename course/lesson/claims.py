"""*Claims tested*: a popular sentence, the reader's verdict, a measurement, and the verdict it leads to.

The words of a verdict, and the rule for intervals, are those of :mod:`course.verdicts`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field

import ipywidgets as widgets

from tutorial_lib.language import _
from tutorial_lib.stored_widgets import table

from ..progress import now, read, record
from ..verdicts import FAILS, HOLDS, IDENTITY, OPEN, SIGNS, Outcome, fact
from . import questions

HALF = "half true"
VERDICTS = (HOLDS, HALF, FAILS, OPEN)
"""What a reader may say of a claim."""
DECIDE = "What do you say of each sentence? Decide, then open what was measured."


@dataclass(frozen=True)
class Claim:
    text: str
    conditions: Mapping[str, Outcome]
    measured: str
    instead: str
    source: str

    @property
    def word(self) -> str:
        """One word of :mod:`course.verdicts`, or ``half true``."""
        return HALF if len(found := {each.verdict for each in self.conditions.values()}) > 1 else found.pop()

    @property
    def verdict(self) -> str:
        """The same with its sign, in the reader's language; ``half true`` with what holds and what not."""
        if self.word != HALF:
            return f"{SIGNS[self.word]} {_(self.word)}"
        parts = "; ".join(f"{SIGNS[outcome.verdict]} {name}" for name, outcome in self.conditions.items())
        return f"◐ {_('half true')}: {parts}"


class Asked(questions.Question):
    """A claim that the reader judges; then the record is shown. The first click is noted, not graded."""

    def __init__(self, claim: Claim):
        choices = {word: _(word) for word in VERDICTS}
        super().__init__("", "claim", {"question": html.escape(f"“{claim.text}”"), "choices": choices}, " ")
        self.key, self.claim = f"claim.{claim.text}", claim

    def _text(self) -> str:
        return f"<b>{self.asked['question']}</b>"

    def choose(self, answer):
        if "choice" not in read().get(self.key, {}):
            record(self.key, choice=answer, right=answer == self.right, at=now())
        self.show(answer)

    @property
    def right(self) -> str:
        return HOLDS if self.claim.word == IDENTITY else self.claim.word

    def show(self, answer):
        self.buttons[answer].icon = "check" if answer == self.right else "times"
        claim = self.claim
        rows = (("Measured here", claim.measured), ("Say instead", claim.instead), ("Source", claim.source))
        more = "".join(f"<br><b>{_(head)}:</b> {html.escape(text)}" for head, text in rows if text)
        self.status.value = f"<b>{html.escape(claim.verdict)}</b>{more}"


@dataclass
class Claims:
    """A growing table of claims: each is asked, then told. Stored as a folded table, printed as text.

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

    def _repr_mimebundle_(self, **kwargs):
        asked = widgets.VBox([Asked(row).recall() for row in self.rows])._repr_mimebundle_(**kwargs)
        live = asked[0] if isinstance(asked, tuple) else asked or {}  # a pair or a dictionary, by its version
        return {**live, "text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        return f"<details><summary>{_(DECIDE)}</summary>{self.table()}</details>"

    def table(self) -> str:
        return table(
            (_("Claim"), _("Verdict"), _("Measured here"), _("Say instead"), _("Source")),
            ((f"“{row.text}”", row.verdict, row.measured, row.instead, row.source) for row in self.rows),
        )

    def __repr__(self) -> str:
        return "\n".join(f"“{row.text}” — {row.verdict}. {row.measured}" for row in self.rows)
