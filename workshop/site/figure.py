"""Scores as a map and as lines with names, in the letters and the colours of the page around them."""

from __future__ import annotations

import html

import numpy as np
from forest import Axis, signed

from tutorial_lib.plots import apart

SIDE, LEFT, TOP, BELOW, APART = 220, 40, 6, 40, 17
"""Of a plot: how high it is, and the room around it; between the names of two lines."""


def _svg(wide: float, inside: str) -> str:
    return f'<svg viewBox="0 0 {wide} {TOP + SIDE + BELOW}">{inside}</svg>'


def _text(x: float, y: float, said: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:.4g}"{more}>{said}</text>'


def shades(z: np.ndarray, picture: str) -> str:
    """A map of queries and keys, with a scale; ``picture`` has its pixels, and how much colour each has."""
    step, low, high = SIDE / len(z), np.nanmin(z), np.nanmax(z)
    right, bottom = LEFT + SIDE, TOP + SIDE
    frame = f'x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}"'
    bar = f'x="{right + 12}" y="{TOP}" width="10" height="{SIDE}"'
    ticks = "".join(
        _text(LEFT - 7, TOP + (n + 0.5) * step, str(n), ' class="end"')
        + _text(LEFT + (n + 0.5) * step, bottom + 14, str(n), ' class="mid"')
        for n in range(0, len(z), 10)
    )
    return _svg(
        LEFT + SIDE + 70,
        f'<mask id="shades"><image {frame} href="{picture}" preserveAspectRatio="none"/></mask>'
        '<linearGradient id="scale" x2="0" y1="1" y2="0"><stop stop-opacity=".06"/><stop offset="1"/>'
        f'</linearGradient><rect {frame} class="colour" mask="url(#shades)"/><rect {frame} class="frame"/>'
        f'<rect {bar} fill="url(#scale)"/><rect {bar} class="frame"/>{ticks}'
        + "".join(
            _text(right + 28, y, signed(x, ".2g"))
            for x, y in ((high, TOP + 6), (low, bottom - 6))
            if low < high
        )
        + _text(LEFT + SIDE / 2, bottom + 31, "key", ' class="mid"')
        + _text(-TOP - SIDE / 2, 9, "query", ' class="mid" transform="rotate(-90)"'),
    )


def lines(z: np.ndarray) -> str:
    """The scores of a query by distance, a line for each head ``[H, L]``, with its name at its end."""
    right, bottom, far = LEFT + 250, TOP + SIDE, z.shape[1] - 1
    axis = Axis.over(z.ravel().tolist())

    def at(score: float) -> float:
        return SIDE * (1 - axis.at(score) / 100) + TOP

    x = np.linspace(LEFT, right, far + 1)
    names = apart([at(line[-1]) for line in z], APART, TOP, bottom)
    grid = "".join(
        f'<path d="M{LEFT} {at(number):.4g}H{right}"/>'
        + _text(LEFT - 7, at(number), signed(number), ' class="end"')
        for number in axis.numbers(6)
    )
    ticks = "".join(_text(x[n], bottom + 14, str(n), ' class="mid"') for n in range(0, far, 10))
    drawn = "".join(
        f'<polyline points="{" ".join(f"{a:.4g},{at(b):.4g}" for a, b in zip(x, line, strict=True))}"/>'
        f'<path d="M{right + 2} {at(line[-1]):.4g}L{right + 14} {name:.4g}"/>'
        + _text(right + 18, name, f"head {head}")
        for head, (line, name) in enumerate(zip(z, names, strict=True), 1)
    )
    said = _text((LEFT + right) / 2, bottom + 31, "places back", ' class="mid"')
    return _svg(right + 70, f'<g class="grid">{grid}</g>{ticks}{said}<g class="heads">{drawn}</g>')


def figure(panels: dict[str, str], alt: str, caption: str, kind: str) -> str:
    """Panels below their titles, in one frame."""
    parts = "".join(f"<div><b>{title}</b>{drawn}</div>" for title, drawn in panels.items())
    return (
        f'<figure class="course-picture c-{kind}"><div role="img" aria-label="{html.escape(alt)}">{parts}'
        f"</div><figcaption>{caption}</figcaption></figure>"
    )
