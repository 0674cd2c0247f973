"""The explorer of notebook 09: the scoreboard of all encodings, filtered and sorted."""

from __future__ import annotations

import functools
import math

from ..encodings import DOORS
from ..language import _
from .measured import measured
from .parts import Choice, Heat, Index, LiveExplorer, Scene

SHORT = {
    "parameters": "para-\nmeters",
    "held": "bytes\nheld",
    "time": "time",
    "apart": "places\napart",
    "shift": "shift\nerror",
    "toeplitz": "Toeplitz\nerror",
    "loss": "loss\nat L",
    "tail": "rise of\nthe tail",
    "won": "tasks\nwon",
}
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
    """A number of the board in words, short: ``65,536``, ``2.5 KiB``, ``1.32 ×``, ``+0.42``, ``–``."""
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
def left(sort: str, door: str, shift: str, longer: str) -> tuple[str, ...]:
    """The encodings that the filters leave, the best in the column ``sort`` first, those without it last."""

    def fits(row):
        return (
            (door == "any" or door in row["doors"])
            and (shift == "any" or "shift" in row and (row["shift"] == 0) == (shift == "relative"))
            and (longer == "any" or "tail" in row)
            and (longer != "steady" or row["tail"] < STEADY)
        )

    names = [name for name, row in rows().items() if fits(row)]
    return tuple(sorted(names, key=lambda name: -scores(sort).get(name, -1)))


OPEN = left("tail", "any", "any", "any")
"""All of them, in the order in which the explorer opens."""


def filtered(params) -> tuple[str, ...]:
    return left(*(params[name] for name in ("sort", "door", "shift", "longer")))


def many(params) -> int:
    """How many rows can be marked: at least one, also where nothing is left."""
    return max(1, len(filtered(params)))


def named(name: str, column: str) -> str:
    """An encoding, its doors, and its number in a column, in words."""
    row = rows()[name]
    doors = _(", ").join(_(door) for door in row["doors"]) or _("no door")
    return _("{0} ({1}), {2} {3}").format(name, doors, _(TITLES[column]), shown(column, row.get(column)))


class ScoreboardExplorer(LiveExplorer):
    """Encodings by measures, each column by rank; two of them are marked and compared."""

    front = "scoreboard"
    parameters = {
        "sort": Choice(tuple(SHORT), "tail", label="sort by", text=TITLES.__getitem__, menu=True),
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
                "values": [float(f"{row[key]:.10g}") if key in row else None for key in SHORT],
                "texts": [shown(key, row.get(key)) for key in SHORT],
            }
            for name, row in rows().items()
        ]
        return {
            "columns": {key: _(TITLES[key]) for key in SHORT},
            "large": LARGE,
            "board": board,
            "steady": STEADY,
        }

    @staticmethod
    def render(*, sort, door, shift, longer, row, other):
        names, columns = left(sort, door, shift, longer), list(SHORT)
        z = [[scores(key).get(name, math.nan) for key in columns] for name in names]
        numbers = {name: rows()[name][sort] for name in names if sort in rows()[name]}
        if names:
            says = _("{0} of {1} encodings are left, {2}; marked is {3}; beside it {4}.")
            marked = [named(names[n], sort) for n in (row, other)]
        else:
            says = _("{0} of {1} encodings are left, {2}; loosen a filter.")
            z, marked = [[0.0] * len(columns)], []
        ends = list(numbers)
        ends = [f"{name} ({shown(sort, numbers[name])})" for name in (ends[0], ends[-1])] if ends else []
        by = _("by {0} from {1} to {2}") if ends else _("none of them has a {0}")
        order = by.format(_(TITLES[sort]), *ends)
        return Scene(
            {
                "board": Heat(
                    z,
                    "bright: better than the others",
                    "measure",
                    "encoding",
                    limits=(0, 1),
                    cmap="viridis",
                    xticks=list(SHORT.values()),
                    yticks=list(names) or ["none"],
                    mark=(row, columns.index(sort)) if names else None,
                ),
            },
            says.format(len(names), len(rows()), order, *marked),
        )

    @classmethod
    def figure(cls, **some):
        """One heat map, wide enough for the names of its columns."""
        fig = super().figure(**some)
        fig.set_size_inches(12, fig.get_figheight() + 0.6)
        fig.axes[0].set_aspect("auto")
        return fig

    @staticmethod
    def reached(*, row, other, **filters):
        names = filtered(filters)
        if not names or not all("loss" in rows()[names[n]] for n in (row, other)):
            return ""
        a, b = names[row], names[other]
        both = [scores(column) for column in SHORT if a in scores(column) and b in scores(column)]
        better = sum(of[a] > of[b] for of in both)
        if not better or any(of[a] < of[b] for of in both):
            return ""
        return _("{0} is better than {1} in {2} of {3} columns, and worse in none.").format(
            a, b, better, len(both)
        )
