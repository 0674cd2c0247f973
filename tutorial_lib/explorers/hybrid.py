"""The explorer of notebook 05: type a score, and see what of each term a softmax leaves."""

from __future__ import annotations

from ..language import _
from ..optional import needs
from . import formula
from .formula import WORDS, N, Refused
from .parts import Choice, Heat, Index, LiveExplorer, Scene, Text, palette

with needs("course"):
    import numpy as np

START = "x_i·x_j + r_ij"
SAMPLES = (
    START,
    "x_i·x_j + w·p_i + r_ij",
    "x_i·x_j + w·[p_i; r_ij]",
    "x_i·x_j + PE_i + r_ij",
    "w·p_j",
    "-2w·p_j + r_ij",
    "p_i·p_j",
    "(w·p_i) r_ij",
    "x_j·p_i - relu(w·[p_i; r_ij]) + 0.5",
    "(x_i + p_i)·(x_j + p_j) + r_ij",
    "relu(w·p_i) + 2*r_ij",
    "-(r_ij - 3 p_i·x_i) w·[x_j; -p_i; r_ij]",
    "x_i +",
    "w·r_ij",
    "p_i·[p_j; 1]",
    "tanh(r_ij)",
    "4w·p_j - 0.5 r_ij - x_j·x_j",
    "",
    "900 r_ij r_ij 4",
)
COUNTS = {
    "gone": "is the same for all keys",
    "offset": "counts by the offset alone",
    "key": "counts by the key alone",
    "pair": "counts pair by pair",
}
LIMITS = (1, 2, 4, 8, 16, 64, 256, 1024)
SEEN = 0.0005
"""The smallest change of a weight that is written down."""
CLEAR = 0.05
"""By how much the largest weight must lead."""


class HybridExplorer(LiveExplorer):
    """The summands of a typed score, each with what is the same for all keys and what remains."""

    front = "hybrid"
    parameters = {
        "guess": Choice(
            ("first", "off"),
            "first",
            label="results",
            text=lambda way: {"first": "guess first", "off": "show at once"}[way],
        ),
        "query": Index(N, 1, label="query i"),
        "score": Text(
            START,
            label="score e_ij =",
            most=formula.MOST_CHARACTERS,
            samples=SAMPLES,
            keys=(*formula.SIZES, "·", "+", "−", "[ ; ]", "relu( )"),
        ),
    }
    said = (
        *COUNTS.values(),
        *formula.SAYS.values(),
        formula.READS,
        *(text for text in formula.MEANT.values() if " or " in text),
    )
    challenge = "Without x: make all four queries give their largest weight to the same key."

    @classmethod
    def constants(cls):
        names = ("N", "X", "P", "W", "W_R", "SIZES", "SAME", "WORDS", "MOST_TERMS", "DEEPEST", "LARGEST")
        words = {
            name: {sign: _(text) for sign, text in getattr(formula, name).items()}
            for name in ("MEANT", "SAYS")
        }
        return (
            {name: getattr(formula, name) for name in names}
            | words
            | {
                "READS": _(formula.READS),
                "COUNTS": {way: _(text) for way, text in COUNTS.items()},
                "SIGNS": {chr(old): new for old, new in formula.SIGNS.items()},
                "LIMITS": LIMITS,
                "palette": palette("signed", 64).hex(),
            }
        )

    @staticmethod
    def render(*, guess, query, score):
        try:
            terms, refused = formula.terms(score), ""
        except Refused as why:
            terms, refused = [], str(why)
        e = formula.total(terms)
        rest, weights = formula.remains(e), formula.softmax(e[query])
        largest = max(abs(v) for row in e + rest for v in row)
        limit = next(limit for limit in (*LIMITS, LIMITS[-1] * formula.MOST_TERMS) if largest <= limit)
        look = {
            "limits": (-limit, limit),
            "xlabel": "key j",
            "ylabel": "query i",
            "xticks": WORDS,
            "yticks": WORDS,
        }
        seen = ", ".join(f"{weight:.2f}" for weight in weights)
        shown = {
            "scores": Heat(
                np.array(e),
                "scores e_ij",
                mark=(query, 2),
                readout=f"i = {query}, j = 2: {e[query][2]:.2f}",
                **look,
            ),
            "remains": Heat(
                np.array(rest),
                "what remains of each row",
                mark=(query, 2),
                readout=f"i = {query}: weights {seen}",
                **look,
            ),
        }
        if refused:
            return Scene(shown, _("“{0}” is no score. {1}").format(score, refused))
        return Scene(
            shown,
            _("Score of four tokens, e_ij = {0}: {1}; query {2} gives the weights {3}.").format(
                _joined(terms), _told(terms, e, guess), query, seen
            ),
        )

    @staticmethod
    def reached(*, score, **_rest):
        try:
            terms = formula.terms(score)
        except Refused:
            return ""
        rows = [formula.softmax(row) for row in formula.total(terms)]
        best = [row.index(max(row)) for row in rows]
        lead = min(sorted(row)[-1] - sorted(row)[-2] for row in rows)
        if "x_" in score or len(set(best)) > 1 or lead < CLEAR:
            return ""
        return _("“{0}” gets {1} or more of each query's attention.").format(
            WORDS[best[0]], f"{min(map(max, rows)):.2f}"
        )


def _joined(terms) -> str:
    """The summands in one line."""
    first, *more = (term.text for term in terms)
    return first + "".join(f" − {text[1:]}" if text[0] == "−" else f" + {text}" for text in more)


def _told(terms, e, guess) -> str:
    """What each summand does, or how many there are to guess."""
    if guess == "first":
        return _("{0} to guess").format(len(terms)) if len(terms) > 1 else _("one to guess")
    found = []
    for term in terms:
        change = formula.moved(e, term.values)
        says = _("{0} {1} (without it, a weight changes by {2})") if change > SEEN else _("{0} {1}")
        found.append(says.format(term.text, _(COUNTS[formula.kind(term.values)]), f"{change:.2f}"))
    return _(", ").join(found)
