"""The colours of the course: one table for figures, explorers, lanes, slides and pages.

``ROLES`` are for what happens inside one mechanism, ``ENCODINGS`` for methods side by side; never both in one
figure. Any two encodings can be told apart with each kind of colour blindness, on light and on dark pages: a
test measures it. Each has a mark as well, because colour is never alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["ENCODINGS", "ROLES", "Colour", "encoding", "rules"]


class Colour(NamedTuple):
    """On light pages, on dark ones, and the mark of matplotlib beside it."""

    light: str
    dark: str
    mark: str = "o"

    @property
    def css(self) -> str:
        """Both, for a style sheet."""
        return f"light-dark({self.light}, {self.dark})"


ROLES = {
    "query": Colour("#0b63b8", "#62b5ff"),
    "key": Colour("#b84a06", "#ff9a52"),
    "between": Colour("#08765a", "#3fd6a5"),
}
ENCODINGS = {
    "none": Colour("#2d2e30", "#aeaeae", "o"),
    "sinusoidal": Colour("#1294f3", "#6592ea", "o"),
    "learned": Colour("#780f72", "#cd096d", "s"),
    "relative": Colour("#137f6f", "#89fee1", "s"),
    "hybrid": Colour("#b78b27", "#ecda1e", "D"),
    "rope": Colour("#b44703", "#f68426", "D"),
    "alibi": Colour("#703dba", "#525cd4", "^"),
}
OTHER = Colour("#5f6670", "#a7afbe", "v")
"""What stands beside encodings and is none."""
LANES = {
    "sin": "sinusoidal",
    "learned": "learned",
    "relative": "relative",
    "hybrid": "hybrid",
    "rope": "rope",
    "alibi": "alibi",
}
"""How lanes of the playground and drawings of slides name an encoding."""
# The first that fits counts: “RoPE + ALiBi” is a hybrid.
WORDS = (
    ("hybrid", r" \+ (?!yarn|pi\b|ntk)|hybrid|^key-side$"),
    ("none", r"^(none|no position|no positions|without positions)\b"),
    ("rope", r"rope|rotary|xpos|yarn|\bpi\b|ntk|^raw$"),
    ("alibi", r"alibi|kerple|forgetting|fading"),
    (
        "relative",
        r"\bt5|relative|clipped|shaw|deberta|transformer-xl|\bcope\b|\bfire\b|sandwich|^swin|^raster|^table$",
    ),
    ("sinusoidal", r"sinusoid"),
    ("learned", r"^learned|learned (table|positions)|^absolute$|tupe"),
)


def encoding(label: str) -> str:
    """The encoding that a label names, as a key of ``ENCODINGS``, or ``""``.

    >>> [encoding(each) for each in ("rotary + YaRN", "RoPE + ALiBi", "t5-far", "loss")]
    ['rope', 'hybrid', 'relative', '']
    """
    return next((name for name, words in WORDS if re.search(words, label, re.IGNORECASE)), "")


def rules(of: str = ".pg-{}") -> str:
    """The style sheet's rules for what names an encoding: ``--c`` is its colour."""
    return " ".join(f"{of.format(lane)} {{ --c: {ENCODINGS[name].css}; }}" for lane, name in LANES.items())
