"""The atlas of positions: what each layer of each decoder in Transformers does about order.

``python -m workshop.atlas`` measures it on small random models; here its record is read and drawn.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import Any

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tutorial_lib import plots
from tutorial_lib.language import _

from .places import RECORDS

FILE = RECORDS / "atlas.json"


KINDS = {  # what a layer does about order: its letter, its colours on white and on black, and its lesson
    "full": ("R", "#b44703", "#f68426", "06_rope"),
    "part": ("r", "#6b2a00", "#ffcfa3", "10_frontier"),
    "both": ("B", "#8a6d1a", "#ecda1e", "10_frontier"),
    "bias": ("b", "#137f6f", "#89fee1", "07_alibi"),
    "state": ("s", "#0b63b8", "#62b5ff", "10_frontier"),
    "added": ("a", "#780f72", "#e05fd8", "03_learnable"),
    "absolute": ("A", "#b0124a", "#ff7a9c", "08_long_context"),
    "none": ("N", "#3f4450", "#a7afbe", "deeper/10_nope"),
    "sharp": ("T", "#3d4a8a", "#9db0ff", "08_long_context"),
    "alone": ("·", "#6b7280", "#7d8696", "10_frontier"),
}


def says(kind: str) -> str:
    """What a layer of this kind does, in words."""
    return {
        "full": _("turns queries and keys"),
        "part": _("turns a part of the channels"),
        "both": _("turns, and is a recurrence as well"),
        "bias": _("adds a bias to the scores"),
        "state": _("a recurrence or a convolution"),
        "added": _("reads positions that were added to the tokens"),
        "absolute": _("counts from the beginning of what it is given"),
        "none": _("attends without any order"),
        "sharp": _("attends without any order, more sharply further on"),
        "alone": _("reads no other token"),
    }[kind]


@functools.cache
def record() -> dict[str, Any]:
    """All that was measured, with versions and date."""
    stored: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return stored


@functools.cache
def _rows() -> dict[str, dict[str, Any]]:
    return {each["type"]: each for each in record()["rows"]}


def row(name: str) -> dict[str, Any]:
    """What the atlas has of a model type, or a ValueError that says why it has nothing.

    >>> row("bloom")["runs"][0][1]
    'bias'
    """
    rows = _rows()
    its = rows.get(name)
    if its is not None and "text" in its:
        return row(its["text"])
    if its is None or "runs" not in its:
        why = its["why"] if its else "Transformers has no decoder of this name"
        there = ", ".join(each for each, what in rows.items() if "runs" in what)
        raise ValueError(f"{name!r} is not in the atlas: {why}. It has {there}")
    return its


def layers(name: str) -> list[tuple[str, bool]]:
    """For each layer of a type its kind, and whether a window ends what it sees."""
    return [
        (kind, reach is not None)
        for n, kind, _share, reach, _said in row(name)["runs"]
        for _layer in range(n)
    ]


def in_words(name: str) -> str:
    """The strip as a sentence.

    >>> in_words("bloom")
    '2 layers: 2 × adds a bias to the scores'
    """
    counted = Counter(layers(name))
    parts = [
        (_("{n} × {what}, in a window") if window else _("{n} × {what}")).format(n=n, what=says(kind))
        for (kind, window), n in counted.items()
    ]
    return _("{n} layers: {parts}").format(n=counted.total(), parts="; ".join(parts))


def pale(kind: str) -> tuple[float, ...]:
    """The colour of a kind, half way to white: letters on it can be read."""
    return tuple(0.5 + each / 2 for each in to_rgb(KINDS[kind][1]))


@plots.styled
def strips(*names: str) -> Figure:
    """Each type as a strip of its layers, the first at the left.

    Colour and letter say what a layer does about order; one that sees only a window is half as high.
    """
    rows = {name: layers(name) for name in names}
    longest = max(map(len, rows.values()))
    size = max(9.7, min(12, 400 / longest))  # what can be read
    fig = Figure(figsize=(11, 0.65 * len(names) + 0.9), layout="constrained")
    ax = fig.subplots()
    for y, its in enumerate(rows.values()):
        for x, (kind, window) in enumerate(its):
            high = 0.45 if window else 0.85
            ax.add_patch(Rectangle((x, y + 0.42 - high), 0.92, high, facecolor=pale(kind)))
            if not x or its[x - 1] != its[x]:  # it says so for all that are alike
                middle = (x + 0.46, y + 0.42 - high / 2)
                ax.annotate(KINDS[kind][0], middle, ha="center", va="center", size=size)
    used = dict.fromkeys(kind for its in rows.values() for kind, _window in its)
    key = [
        Rectangle((0, 0), 1, 1, facecolor=pale(kind), label=f"{KINDS[kind][0]}: {says(kind)}")
        for kind in used
    ]
    fig.legend(handles=key, loc="outside lower left", ncols=2, frameon=False)
    ax.set(xlim=(0, longest), ylim=(len(names) - 0.45, -0.55), xticks=[], yticks=range(len(names)))
    ax.set_yticklabels(names)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return fig
