"""The explorer of notebook 07: linear biases, the weights that they leave, and how far a head sees."""

from __future__ import annotations

from ..language import _
from .parts import Choice, Index, LiveExplorer, Steps

FORMS = {
    "penalty": "causal −m(i−j)",
    "released": "causal m·j",
    "symmetric": "both ways −m|i−j|",
    "asymmetric": "both ways, two slopes",
}
FAINT = 1e-4  # times the weight that a query gives to itself
WANTED = (100, 110)
TEXT = (  # 64 words of the King James Bible, Genesis 1
    "In the beginning God created the heaven and the earth. And the earth was without form, and void; and "
    "darkness was upon the face of the deep. And the Spirit of God moved upon the face of the waters. And "
    "God said, Let there be light: and there was light. And God saw the light, that it was good: and God "
    "divided the light"
)


class ALiBiExplorer(LiveExplorer):
    """A text whose words fade with distance: the bias of one query, and the weights in all heads."""

    front = "alibi"
    parameters = {
        "heads": Steps((3, 4, 8, 12, 16), 8),
        "head": Index("heads", 1),
        "length": Steps((8, 32, 64), 64, label="words"),
        "form": Choice(tuple(FORMS), "penalty", label="bias‖of a score", text=FORMS.__getitem__, menu=True),
        "query": Index("length", 48, label="query i"),
        "key": Index("length", 31, label="key j"),
    }
    challenge = (
        f"Find a head whose horizon lies between {WANTED[0]} and {WANTED[1]} tokens: so far back, "
        f"the weight has fallen to 1/{1 / FAINT:,.0f}."
    )

    @classmethod
    def constants(cls):
        return {
            "text": TEXT,
            "forms": {name: _(text) for name, text in FORMS.items()},
            "faint": FAINT,
            "wanted": WANTED,
        }
