"""Scores as a map and as lines with names, in the letters and the colours of the page around them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import numpy as np
from forest import Axis, signed

from tutorial_lib.plots import apart

SIDE, LEFT, TOP, BELOW, APART = 220, 40, 6, 40, 17
"""Of a plot: how high it is, and the room around it; between the names of two lines."""


def drawing(wide: float, inside: str, high: float = TOP + SIDE + BELOW, start: float = 0) -> str:
    """A plot of this size; ``start`` below zero leaves room for long names at the left."""
    return f'<svg viewBox="{start} 0 {wide} {high:g}">{inside}</svg>'


def word(x: float, y: float, said: str, more: str = "") -> str:
    """A text in a plot; ``more`` are its attributes."""
    return f'<text x="{x:g}" y="{y:.4g}"{more}>{said}</text>'


def scale(low: float, high: float, most: float = 1, name: str = "scale") -> str:
    """What the shades of a map mean, at its right; ``name`` is used once on a page."""
    bar = f'x="{LEFT + SIDE + 12}" y="{TOP}" width="10" height="{SIDE}"'
    return (
        f'<linearGradient id="{name}" x2="0" y1="1" y2="0"><stop stop-opacity=".06"/>'
        f'<stop offset="1" stop-opacity="{most}"/></linearGradient>'
        f'<rect {bar} fill="url(#{name})"/><rect {bar} class="frame"/>'
        + "".join(
            word(LEFT + SIDE + 28, y, signed(x, ".2g"))
            for x, y in ((high, TOP + 6), (low, TOP + SIDE - 6))
            if low < high
        )
    )


def shades(z: np.ndarray, picture: str) -> str:
    """A map of queries and keys, with a scale; ``picture`` has its pixels, and how much colour each has."""
    step, low, high = SIDE / len(z), np.nanmin(z), np.nanmax(z)
    bottom = TOP + SIDE
    frame = f'x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}"'
    ticks = "".join(
        word(LEFT - 7, TOP + (n + 0.5) * step, str(n), ' class="end"')
        + word(LEFT + (n + 0.5) * step, bottom + 14, str(n), ' class="mid"')
        for n in range(0, len(z), 10)
    )
    return drawing(
        LEFT + SIDE + 70,
        f'<mask id="shades"><image {frame} href="{picture}" preserveAspectRatio="none"/></mask>'
        f'<rect {frame} class="colour" mask="url(#shades)"/><rect {frame} class="frame"/>{ticks}'
        + scale(low, high)
        + word(LEFT + SIDE / 2, bottom + 31, "key", ' class="mid"')
        + word(-TOP - SIDE / 2, 4, "query", ' class="mid" transform="rotate(-90)"'),
    )


def lines(
    z: np.ndarray,
    heads: Sequence[str] = (),
    x: np.ndarray | None = None,
    across: str = "places back",
    marks: Sequence[float] = (),
    ends: Sequence[float] = (),
) -> str:
    """Numbers by distance, a line for each head ``[H, L]``, with its name at its end.

    ``x`` has other places for them, ``[L]`` or ``[H, L]``; ``across`` and ``marks`` are what stands below.
    ``ends`` are numbers that the axis has in any case, so that two plots have one.
    """
    right, bottom = LEFT + 250, TOP + SIDE
    x = np.broadcast_to(np.arange(z.shape[1]) if x is None else x, z.shape)
    far = x.max()
    axis = Axis.over([*z.ravel().tolist(), *ends])

    def at(score: float) -> float:
        return SIDE * (1 - axis.at(score) / 100) + TOP

    def along(place: float) -> float:
        return LEFT + (right - LEFT) * place / far

    def points(places: np.ndarray, line: np.ndarray) -> str:
        return " ".join(f"{along(a):.4g},{at(b):.4g}" for a, b in zip(places, line, strict=True))

    def named(head: str, x: float, y: float, height: float) -> str:
        if x < right - 1:
            return word(x, y + 10, head, ' class="mid"')
        return f'<path d="M{right + 2} {y:.4g}L{right + 14} {height:.4g}"/>' + word(right + 18, height, head)

    heads = heads or [f"head {head}" for head in range(1, len(z) + 1)]
    names = apart([at(line[-1]) for line in z], APART, TOP, bottom)
    grid = "".join(
        f'<path d="M{LEFT} {at(number):.4g}H{right}"/>'
        + word(LEFT - 7, at(number), signed(number), ' class="end"')
        for number in axis.numbers(6)
    )
    marks = marks or range(0, int(far), 10 if far > 12 else 2)
    ticks = "".join(word(along(n), bottom + 14, f"{n:g}", ' class="mid"') for n in marks)
    drawn = "".join(
        f'<polyline points="{points(places, line)}"/>' + named(head, along(places[-1]), at(line[-1]), name)
        for head, places, line, name in zip(heads, x, z, names, strict=True)
    )
    said = word((LEFT + right) / 2, bottom + 31, across, ' class="mid"')
    return drawing(right + 70, f'<g class="grid">{grid}</g>{ticks}{said}<g class="heads">{drawn}</g>')


def bars(z: np.ndarray, names: Sequence[str], wide: float, end: int, across: float = 0.44) -> str:
    """Numbers by distance ``[rows, L]``, a row of bars for each name; a line where they ``end``.

    Bars of two plots can be compared, whatever room is at the right: three rows fill the height. Names stand
    ``across`` the width, where bars are low.
    """
    left, high, right = 0, SIDE / 3, LEFT + SIDE + 56
    bottom, step, drawn = TOP + high * len(z), right / z.shape[1], ""
    for n, (name, row) in enumerate(zip(names, z / z.max(), strict=True)):
        floor = TOP + high * (n + 1)
        drawn += word(across * right, floor - high + 16, name, ' class="mid ink"')
        drawn += f'<path d="M{left} {floor:.4g}H{right}" class="rule"/>'
        drawn += "".join(
            f'<rect x="{left + step * k:.4g}" y="{floor - (high - 12) * x:.4g}" width="{step - 1:.3g}" '
            f'height="{(high - 12) * x:.3g}" class="colour"/>'
            for k, x in enumerate(row.tolist())
            if x > 0.002
        )
    at = left + step * end - 0.5
    ticks = "".join(
        word(left + step * (k + 0.5), bottom + 14, str(k), ' class="mid"') for k in range(0, end + 8, 8)
    )
    said = word(right / 2, bottom + 31, "places back", ' class="mid"')
    end = f'<path d="M{at:.4g} {TOP}V{bottom:.4g}" class="end-of"/>'
    return drawing(wide, f"{drawn}{end}{ticks}{said}", bottom + BELOW)


def figure(panels: dict[str, str], alt: str, caption: str, kind: str) -> str:
    """Panels below their titles, in one frame; all are drawn to one scale."""
    wide = [float(re.match(r'<svg viewBox="\S+ \S+ (\S+)', drawn)[1]) for drawn in panels.values()]
    parts = "".join(f"<div><b>{title}</b>{drawn}</div>" for title, drawn in panels.items())
    size = f"--columns:{' '.join(f'{each:g}fr' for each in wide)};--first:{100 * wide[0] / max(wide):.1f}%"
    return (
        f'<figure class="course-picture c-{kind}"><div role="img" aria-label="{html.escape(alt)}" '
        f'style="{size}">{parts}</div><figcaption>{caption}</figcaption></figure>'
    )
