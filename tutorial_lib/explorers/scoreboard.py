"""The explorer of notebook 09: the scoreboard of all encodings, filtered and sorted."""

from __future__ import annotations

import functools

from ..encodings import DOORS
from ..language import _
from .measured import measured
from .parts import Choice, Index, LiveExplorer

TITLES = {
    "parameters": "parameters",
    "held": "bytes held",
    "time": "time",
    "apart": "places told apart",
    "shift": "shift error",
    "toeplitz": "Toeplitz error",
    "loss": "loss at L",
    "tail": "rise of the tail loss",
    "won": "tasks won",
}
LONGER = {"any": "any", "tested": "tested at 16 L", "steady": "tail rises by less than 0.1"}
SHIFT = {"any": "any", "relative": "0 (relative)", "absolute": "above 0"}
STEADY = 0.1
WHICH = {"all": "all", "three": "three to begin with"}
THREE = ("alibi", "t5", "rotary")
SHORT = {"alibi": "ALiBi", "t5": "T5", "rotary": "RoPE"}
"""What a few of them are called where there is room for few."""
FEW = ("time", "loss", "tail", "won")
"""Rows and columns of a board that is met for the first time."""
LARGE = ("apart", "won")
"""Columns in which more is better; in all others less is."""


def rows() -> dict[str, dict]:
    """The board of the records that come with the course."""
    return measured()["board"]


def ranks(rows: dict[str, dict], column: str) -> dict[str, float]:
    """Each row's place in a column as a number from 0 (the worst) to 1 (the best); equal ones share it."""
    values = {name: row[column] for name, row in rows.items() if column in row}
    sign = 1 if column in LARGE else -1
    below = {
        name: sum(sign * other < sign * value for other in values.values()) for name, value in values.items()
    }
    top = max(below.values(), default=0) or 1
    return {name: count / top for name, count in below.items()}


def shown(column: str, value: float | None) -> str:
    """A number on the board, in short: ``65,536``, ``2.5 KiB``, ``1.32 ×``, ``+0.42``, ``–``."""
    if value is None:
        return "–"
    if not value and column not in ("mean", "tail"):
        return "0"
    if column in ("stored", "held") and value < 100:
        return f"{value:.0f} B"
    if column in ("stored", "held"):
        return f"{value / 2**10:,.1f} KiB" if value < 2**20 else f"{value / 2**20:,.1f} MiB"
    if column == "time":
        return f"{value:.2f} ×"
    if column in ("mean", "tail"):
        return f"{value:+.2f}"
    if column == "loss":
        return f"{value:.2f}"
    if column in ("shift", "toeplitz"):
        return f"{value:.2f}" if value >= 0.01 else "< 0.01"
    return f"{value:,.0f}"


@functools.cache
def scores(column: str) -> dict[str, float]:
    return ranks(rows(), column)


@functools.cache
def left(sort: str, door: str, shift: str, longer: str, which: str = "all") -> tuple[str, ...]:
    """The encodings that the filters leave, the best in the column ``sort`` first, those without it last."""

    def fits(name, row):
        return (
            (which == "all" or name in THREE)
            and (door == "any" or door in row["doors"])
            and (shift == "any" or "shift" in row and (row["shift"] == 0) == (shift == "relative"))
            and (longer == "any" or "tail" in row)
            and (longer != "steady" or row["tail"] < STEADY)
        )

    names = [name for name, row in rows().items() if fits(name, row)]
    return tuple(sorted(names, key=lambda name: -scores(sort).get(name, -1)))


OPEN = left("tail", "any", "any", "any")
"""All of them, in the order in which the explorer opens."""


def filtered(params) -> tuple[str, ...]:
    return left(*(params[name] for name in ("sort", "door", "shift", "longer", "which")))


def many(params) -> int:
    """How many rows can be marked: at least one, even if nothing is left."""
    return max(1, len(filtered(params)))


class ScoreboardExplorer(LiveExplorer):
    """Encodings by measures, each column by rank; two of them are marked and compared.

    ``which="three"`` shows three of them, in four columns; the reader asks for the rest.
    """

    front = "scoreboard"
    parameters = {
        "which": Choice(tuple(WHICH), "all", label="encodings", text=WHICH.__getitem__, menu=True),
        "sort": Choice(tuple(TITLES), "tail", label="sort by", text=TITLES.__getitem__, menu=True),
        "door": Choice(("any", *DOORS), "any", menu=True),
        "shift": Choice(tuple(SHIFT), "any", label="shift error", text=SHIFT.__getitem__, menu=True),
        "longer": Choice(tuple(LONGER), "any", label="longer texts", text=LONGER.__getitem__, menu=True),
        "row": Index(many, OPEN.index("alibi"), label="marked encoding"),
        "other": Index(many, OPEN.index("rotary"), label="compared encoding"),
    }
    challenge = "Find two encodings, both with a loss at L, of which a is worse than b in no column."

    @classmethod
    def constants(cls):
        board = [
            {
                "name": name,
                "doors": list(row["doors"]),
                "values": [float(f"{row[key]:.10g}") if key in row else None for key in TITLES],
                "texts": [shown(key, row.get(key)) for key in TITLES],
            }
            for name, row in rows().items()
        ]
        return {
            "columns": {key: _(title) for key, title in TITLES.items()},
            "large": LARGE,
            "three": THREE,
            "few": FEW,
            "short": SHORT,
            "board": board,
            "steady": STEADY,
        }
