"""Data in, Figure out. Nothing else in the course draws a static picture.

Each function draws on the given ``ax``, or makes a figure of its own, and returns the Figure. Its words are
shown in the reader's language (:mod:`tutorial_lib.language`): names that are keys of the data stay as they
are in the code.
``show`` puts a Figure into a notebook, always with an alternative text.
"""

from __future__ import annotations

import base64
import functools
import html
import io
import itertools
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from . import colours, readability
from .language import _
from .optional import needs

__all__ = [
    "HALO",
    "Picture",
    "SIGNED",
    "WEIGHTS",
    "bars",
    "dials",
    "forest",
    "heat",
    "lines",
    "panels",
    "png",
    "show",
    "styled",
    "vectors",
]

with needs("experiments"):
    import matplotlib
    import matplotlib.font_manager
    import matplotlib.style
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

# Pixels per inch of a page; those of a picture for each in which it is shown; the most shades that it has
HUNDRED, SHARP, COLOURS = 100, 2, 256
STYLE = Path(__file__).with_name("course.mplstyle")
# A letter comes from the first that has it. Matplotlib's own has arrows; the third, in a clone, Chinese.
FAMILIES = ["Open Sans", "DejaVu Sans"]
matplotlib.font_manager.fontManager.addfont(STYLE.with_name("fonts") / "OpenSans-course.ttf")
for _font in sorted(STYLE.parents[1].glob("course/fonts/*.otf")):
    matplotlib.font_manager.fontManager.addfont(_font)
    FAMILIES.append(matplotlib.font_manager.fontManager.ttflist[-1].name)
# Blue below zero, grey at zero, yellow above. Each colour is lighter than the one before it, so that the
# sign is seen in grey as well: red and blue ends of the same lightness would be lost there.
SIGNED = matplotlib.colors.LinearSegmentedColormap.from_list(
    "signed",
    list(
        zip(
            (0, 0.25, 0.43, 0.49, 0.51, 0.57, 0.75, 1),
            ("#08113d", "#1d4da3", "#5f8fd3", "#949494", "#949494", "#de8f2c", "#f8c45c", "#fffbe0"),
            strict=True,
        )
    ),
)
# What cannot be negative, attention weights first of all: white is nothing, and more is a darker green, that
# of what is between query and key, as in the explorers. It falls fastest at first, so that 0.1 is not white.
WEIGHTS = matplotlib.colors.LinearSegmentedColormap.from_list(
    "weights",
    list(
        zip(
            (0, 0.1, 0.25, 0.5, 0.75, 1),
            ("#ffffff", "#d2ede2", "#a0d6c0", "#4aa586", "#08765a", "#00281d"),
            strict=True,
        )
    ),
)
for _map in (SIGNED, WEIGHTS):
    if _map.name not in matplotlib.colormaps:  # it is there already if a tool imports this file again
        matplotlib.colormaps.register(_map)  # by its name, as all other colour maps
MARKERS = "os^Dv<>"
BESIDE = 12  # points from a plot to the names of its lines
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (9, 3)), (0, (3, 1, 1, 1, 1, 1)))
PALER = (0, 0.3, -0.5, 0.4, -0.25)  # of lines of one encoding, how much white (or black) is in each
CROWD = 3  # more lines than these have whiskers, as bands would cover each other
QUERY, KEY, BETWEEN = (colours.ROLES[name].light for name in ("query", "key", "between"))
HALO = [withStroke(linewidth=4, foreground="white")]  # sets a line or a text off from what is behind it


def styled(draw):
    """Run ``draw`` under the course's style, and leave the reader's own settings alone."""

    @functools.wraps(draw)
    def inner(*args, **kwargs):
        with matplotlib.style.context([STYLE, {"font.family": FAMILIES}]):
            return draw(*args, **kwargs)

    return inner


def _titled(ax: Axes, title: str, pad: float | None = None) -> None:
    """A title begins where its plot does."""
    ax.set_title(title, pad=pad)
    ax.title.set(x=0, horizontalalignment="left")


@styled
def panels(rows: int = 1, columns: int = 1, size: tuple[float, float] | None = None, **kwargs):
    """An empty styled figure: ``(fig, axes)`` with axes as ``Figure.subplots`` gives them."""
    fig = Figure(figsize=size)
    return fig, fig.subplots(rows, columns, **kwargs)


def _axes(ax: Axes | None, size: tuple[float, float] | None) -> tuple[Figure, Axes]:
    if ax is not None:
        return cast(Figure, ax.figure), ax
    fig = Figure(figsize=size)
    return fig, fig.subplots()


def _numbers(values) -> np.ndarray:
    """An array of floats from a list, an array or a tensor on any device."""
    if isinstance(values, (list, tuple)):
        values = [_numbers(value) for value in values]
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=float)


def _written(number: float, form: str) -> str:
    """A number as it is printed, with a minus and no hyphen; what rounds to 0 has no sign."""
    text = format(number, form)
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")


@styled
def heat(
    z,
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    limits: tuple[float, float] | None = (-1.0, 1.0),
    cmap: str = "signed",
    colorbar: str | None = "",
    xticks: Sequence[str] | None = None,
    yticks: Sequence[str] | None = None,
    values: str | None = None,
    mark_row: int | None = None,
    mark_cell: tuple[int, int] | None = None,
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """A heat map of ``z`` with shape ``[rows, columns]``; row 0 is at the top.

    ``limits`` are the ends of the colour scale (``None``: those of the data). ``cmap`` is ``"signed"``, for
    numbers of both signs, from blue over grey at zero to yellow; or ``"weights"``, for what is 0 or more,
    from white to dark green. ``values`` is a format such as ``".2f"`` that writes each number into its cell.
    ``mark_row`` frames one row, ``mark_cell`` one ``(row, column)``. ``colorbar=None`` leaves out
    the colour bar, which names the ends and the middle of signed limits.
    """
    z = _numbers(z)
    if z.ndim != 2:
        raise ValueError(f"heat draws an array of shape [rows, columns], not one of shape {z.shape}")
    fig, ax = _axes(ax, size)
    low, high = limits if limits is not None else (None, None)
    image = ax.imshow(z, cmap=cmap, vmin=low, vmax=high)
    ax.grid(False)
    ax.spines[:].set(visible=True, color="0.75", linewidth=1)  # a map that begins with white has an edge
    ax.set(xlabel=_(xlabel), ylabel=_(ylabel))
    _titled(ax, _(title))
    for axis in (ax.xaxis, ax.yaxis):
        # no ticks between two rows
        axis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 5, 10), integer=True, min_n_ticks=1))
    if xticks is not None:
        ax.set_xticks(range(z.shape[1]), list(map(_, xticks)))
    if yticks is not None:
        ax.set_yticks(range(z.shape[0]), list(map(_, yticks)))
    if values is not None:
        white = readability.contrast(image.to_rgba(z), "white") > readability.contrast(
            image.to_rgba(z), "black"
        )
        for (i, j), number in np.ndenumerate(z):
            ax.text(
                j,
                i,
                _written(number, values),
                ha="center",
                va="center",
                fontsize=12,
                color="white" if white[i, j] else "black",
            )
    if mark_row is not None:
        ax.add_patch(
            matplotlib.patches.Rectangle(
                (-0.5, mark_row - 0.5),
                z.shape[1],
                1,
                fill=False,
                edgecolor="black",
                linewidth=2,
                path_effects=[withStroke(linewidth=5, foreground="white")],
            )
        )
    if mark_cell is not None:
        row, column = mark_cell
        ax.add_patch(
            matplotlib.patches.Rectangle(
                (column - 0.5, row - 0.5),
                1,
                1,
                fill=False,
                edgecolor="black",
                linewidth=4,
                path_effects=[withStroke(linewidth=7, foreground="white")],
            )
        )
    if colorbar is not None:
        middle = [low, 0, high] if low and high and low == -high else None
        fig.colorbar(image, ax=ax, label=_(colorbar), ticks=middle)
    return fig


@styled
def lines(
    x,
    ys: Mapping[str, Sequence[float]],
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    logx: bool | int = False,
    logy: bool = False,
    spread: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    levels: Mapping[str, float] | None = None,
    levels_end: bool = False,
    mark_x: float | None = None,
    border: float | None = None,
    markers: bool = False,
    ylim: tuple[float, float] | None = None,
    legend: bool | str = True,
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Lines over a common ``x``: ``ys`` maps a label to its values (label ``""``: no legend entry).

    ``spread`` maps a label to ``(low, high)`` and draws a band, for more than three lines whiskers.
    ``levels`` maps a text to the height of a dotted reference line, named at its left end, with
    ``levels_end=True`` beyond the right one, where no line can cross the name. ``logx`` may be a number:
    the base of the axis.
    ``mark_x`` draws a thin vertical line, ``border`` the end of the lengths that training had: what is beyond
    is shaded. Each line has its name at its end; ``legend=False`` leaves the names out, for when a plot next
    to it has the same. Where some lines are named after encodings, those have the encodings' colours.
    """
    fig, ax = _axes(ax, size)
    x = _numbers(x)
    looks, named = _looks(ys, markers), []
    for (label, y), marker, look in zip(ys.items(), itertools.cycle(MARKERS), looks, strict=False):
        (line,) = ax.plot(
            x, _numbers(y), label=_(label) or None, **({"marker": marker} if markers else {}) | look
        )
        if not markers:
            line.set_marker("")
        if label and legend:
            named.append(line)
        if spread and label in spread:
            low, high = (_numbers(edge) for edge in spread[label])
            if len(spread) > CROWD:
                ax.vlines(x, low, high, color=line.get_color(), linewidth=1.5, alpha=0.7)
                continue
            ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
            for edge in (low, high):  # the band alone is too pale
                ax.plot(x, edge, color=line.get_color(), linestyle="-", linewidth=0.8)
    for text, level in (levels or {}).items():
        ax.axhline(level, color="0.35", linestyle=":", linewidth=2)
        ax.annotate(
            _(text),
            (1.01 if levels_end else 0.01, level),
            xycoords=("axes fraction", "data"),
            va="center" if levels_end else "bottom",
            fontsize=12,
            color="0.25",
            path_effects=HALO,
        )
    if mark_x is not None:
        ax.axvline(mark_x, color="0.35", linewidth=1.5)
    if logx:
        ax.set_xscale("log", base=10 if logx is True else logx)
    if logx and logx is not True:
        ax.set_xticks(x, [f"{value:g}" for value in x])
    if logy:
        ax.set_yscale("log")
    if ylim is not None:
        ax.set_ylim(*ylim)
    ax.set(xlabel=_(xlabel), ylabel=_(ylabel))
    _titled(ax, _(title))
    if border is not None:
        _border(ax, border)
    if len(named) > 1:
        _name(ax, named)
    return fig


def _looks(labels: Iterable[str], markers: bool) -> list[dict]:
    """Colour, dashes and mark of each line. Lines of one encoding differ in dashes and shade."""
    names = [colours.encoding(label) for label in labels]
    if not any(names) or len(set(names)) == 1 and len(names) > len(PALER):  # too many of one: other colours
        return [{} for _label in names]
    seen: Counter[str] = Counter()
    used: set[tuple] = set()
    out = []
    for name in names:
        colour = colours.ENCODINGS.get(name, colours.OTHER)
        pale = PALER[min(seen[name], len(PALER) - 1)]
        rgb = matplotlib.colors.to_rgb(colour.light)
        shade = [(1 - abs(pale)) * part + max(pale, 0) for part in rgb]
        mark = colour.mark if markers else ""
        free = [dash for dash in DASHES[seen[name] :] + DASHES if (mark, dash) not in used]
        out.append({"color": shade, "marker": colour.mark, "linestyle": free[0] if free else DASHES[0]})
        used.add((mark, out[-1]["linestyle"]))
        seen[name] += 1
    return out


def _ink(colour):
    """A colour as type on white: darker until it can be read."""
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    while readability.contrast(rgb, "white") < 4.5:
        rgb = rgb * 0.9
    return tuple(rgb)


def _border(ax: Axes, at: float) -> None:
    """The end of training's lengths, the same in every figure: dashed, and what is beyond is shaded."""
    low, high = ax.get_xlim()
    ax.axvspan(at, max(high, at), color="#b78b27", alpha=0.09, linewidth=0, zorder=0)
    ax.axvline(at, color="#2d2e30", linewidth=1.5, linestyle=(0, (4, 3)), zorder=1)
    ax.set_xlim(low, max(high, at))
    place = ax.transAxes.inverted().transform(ax.transData.transform((at, ax.get_ylim()[0])))[0]
    if place > 0.1:  # else nothing shorter is shown, and there is no room for the word
        ax.annotate(
            _("trained"), (at, 1), (-5, 3), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="right", va="bottom", fontsize=12, color="0.25",
        )  # fmt: skip
    ax.annotate(
        _("longer"), (at, 1), (5, 3), xycoords=("data", "axes fraction"), textcoords="offset points",
        ha="left", va="bottom", fontsize=12, color="0.25",
    )  # fmt: skip
    _titled(ax, ax.get_title(), pad=22)


def _name(ax: Axes, named: list) -> None:
    """Write the name of each line at its end; :func:`_spread` moves those apart that would touch."""
    for line in named:
        x, y = line.get_xdata(), line.get_ydata()
        if not (there := np.flatnonzero(np.isfinite(y))).size:
            continue
        text = ax.annotate(
            line.get_label(),
            (1, y[there[-1]]),
            (BESIDE, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=12,
            color=_ink(line.get_color()),
            annotation_clip=False,
        )
        text.set_gid("end")
        text.set_url(json.dumps([float(x[there[-1]]), float(y[there[-1]])]))  # where its line ends


def apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places near to those given, a ``gap`` between any two; from ``low`` to ``high``, if there is room.

    >>> apart([50, 51, 9], 10, 0, 90), apart([89, 90], 10, 0, 90)
    ([50, 60, 9], [80, 90])
    """
    order = sorted(range(len(places)), key=lambda n: places[n])
    found: list[float] = []
    for n in order:
        at = min(max(places[n], low), high)
        found.append(max(at, found[-1] + gap) if found else at)
    found[-1] = min(found[-1], max(high, low + gap * (len(found) - 1)))
    for k in range(len(found) - 2, -1, -1):  # down again, as far as those below have room
        found[k] = min(found[k], found[k + 1] - gap)
    return [found[order.index(n)] for n in range(len(places))]


def _spread(fig: Figure) -> None:
    """Move names at the ends of lines apart; they stand in a row at the right edge of the plot."""
    for text in (text for ax in fig.axes for text in ax.texts if text.get_gid() == "end"):
        text.set_position((BESIDE, 0))
    fig.draw_without_rendering()
    renderer = fig.canvas.get_renderer()  # type: ignore[attr-defined]  # Agg has it
    for ax in fig.axes:
        named = [text for text in ax.texts if text.get_gid() == "end"]
        for old in [line for line in ax.lines if line.get_gid() == "leader"]:
            old.remove()
        if not named:
            continue
        high = 1.05 * max(text.get_window_extent(renderer).height for text in named)
        want = [ax.transData.transform(json.loads(text.get_url() or "")) for text in named]
        places = apart([y for _x, y in want], high, ax.bbox.y0, ax.bbox.y1)
        right, points = ax.bbox.x1, 72 / fig.dpi
        for text, (x, y), place in zip(named, want, places, strict=True):
            text.set_position((BESIDE, (place - y) * points))
            if abs(place - y) > 4 or right - x > BESIDE / points:
                near = right + (BESIDE - 2) / points
                ends = ax.transAxes.inverted().transform([(x + 5, y), (near, place)])
                ax.plot(
                    *ends.T,
                    transform=ax.transAxes,
                    color=text.get_color(),
                    linewidth=0.8,
                    linestyle="-",
                    marker="",
                    clip_on=False,
                    label="_leader",
                    gid="leader",
                )


def _rows(ax: Axes, means: Mapping[str, float], spread, values: str | None, bar=False, colour="") -> None:
    """A mark in its encoding's colour for each row, the first on top, with its interval and its number."""
    named = [colours.encoding(colour or label) for label in means]
    other = colours.OTHER if len({*named} - {"", "none"}) else colours.ROLES["query"]
    for y, (label, name) in enumerate(zip(means, named, strict=True)):
        mean = float(_numbers(means[label]))
        low, high = map(float, _numbers((spread or {}).get(label, (mean, mean))))
        colour = colours.ENCODINGS.get(name, other)
        if bar:
            ax.barh(y, mean, color=colour.light, alpha=0.22, height=0.5, linewidth=0)
        ax.plot([low, high], [y, y], color=colour.light, linewidth=3, linestyle="-", solid_capstyle="butt")
        ax.plot([mean], [y], colour.mark if name else "o", color=colour.light, markersize=9, clip_on=False)
        if values is not None:
            left = mean < 0  # a negative number stands on its left: no line at 0 crosses it
            ax.annotate(
                _written(mean, values),
                (min(low, mean) if left else max(high, mean), y),
                xytext=(-9 if left else 9, 0),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                fontsize=12,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},  # a level may pass behind it
            )
    ax.set_yticks(range(len(means)), list(map(_, means)))
    ax.tick_params(axis="y", length=0, pad=11)  # a mark at 0 stands clear of its name
    ax.set_ylim(-0.6, len(means) - 0.4)
    ax.yaxis.set_inverted(True)  # set, not toggled: axes that share it would flip it back
    ax.grid(False, axis="y")
    ax.margins(x=0.18 if min(means.values(), default=0) < 0 else 0.12)


def _level(ax: Axes, text: str, at: float, side: str = "center") -> None:
    """A line that rows are compared with, named above it."""
    ax.axvline(at, color="#2d2e30", linewidth=1.5, linestyle="-", zorder=0.5)
    ax.annotate(
        text,
        (at, 1.01),
        xycoords=("data", "axes fraction"),
        ha=side,
        va="bottom",
        fontsize=12,
        color="0.25",
    )


@styled
def forest(
    means: Mapping[str, float],
    *,
    spread: Mapping[str, tuple[float, float]],
    title: str = "",
    xlabel: str = "",
    level: tuple[str, float] | None = None,
    better: str = "",
    values: str | None = ".2f",
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """A mark and an interval for each row, the first on top: what is measured, and how surely.

    ``spread`` maps a label to ``(low, high)``. ``level`` is the text and the place of what all are compared
    with; ``better`` says on which side of it, ``"left"`` or ``"right"``, a row is better.
    """
    fig, ax = _axes(ax, size)
    _rows(ax, means, spread, values)
    if level is not None:
        text = _(level[0])
        arrow = {"left": f"← {_('better')}   {text}", "right": f"{text}   {_('better')} →"}
        sides = {"left": "right", "right": "left"}
        _level(ax, arrow.get(better, text), level[1], sides.get(better, "center"))
    ax.set_xlabel(_(xlabel))
    _titled(ax, _(title), pad=24 if level else None)
    return fig


@styled
def dials(
    angles: Mapping[str, Sequence[float]],
    *,
    columns: Sequence[str] = (),
    title: str = "",
    values: str | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Clocks: a row for each label, a hand for each of its angles, in radians, from the right, upwards.

    The arc from 0 is filled. ``columns`` names the clocks of a row; ``values`` writes the angle's cosine.
    """
    rows = {label: _numbers(row) for label, row in angles.items()}
    wide = max(len(row) for row in rows.values())
    fig, grid = panels(len(rows), wide, size=size or (1.5 * wide + 1.4, 1.5 * len(rows) + 0.5), squeeze=False)
    for line, (label, row) in zip(grid, rows.items(), strict=True):
        for n, ax in enumerate(line):
            ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
            ax.grid(False)
            ax.spines[:].set_visible(False)
            if n == 0:
                ax.set_ylabel(_(label), rotation=0, ha="right", va="center")
            if n >= len(row):
                continue
            turned = float(np.remainder(row[n] + np.pi, 2 * np.pi) - np.pi)
            ax.add_patch(
                matplotlib.patches.Wedge(
                    (0, 0), 0.55, *sorted((0, np.degrees(turned))), color=BETWEEN, alpha=0.25
                )
            )
            ax.add_patch(matplotlib.patches.Circle((0, 0), 1, fill=False, edgecolor="0.6", linewidth=1.2))
            ax.plot([0, 1], [0, 0], color=KEY, linestyle="-")
            ax.plot([0, np.cos(turned)], [0, np.sin(turned)], color=QUERY, linestyle="-")
            if values is not None:
                ax.text(0, -1.12, _written(np.cos(turned), values), ha="center", va="top", fontsize=12)
    for ax, name in zip(grid[0], columns, strict=False):
        ax.set_xlabel(_(name), labelpad=8)  # a title would begin at the left
        ax.xaxis.set_label_position("top")
    if title:
        fig.suptitle(_(title), fontsize=16)
    return fig


@styled
def vectors(
    ends: Mapping[str, Sequence[float]],
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    reach: float | None = None,
    mark: int | None = None,
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Arrows from the origin, and the unit circle: ``ends`` maps a label to a point ``(x, y)``.

    Both axes have the same scale, at least from −``reach`` to ``reach`` (``None``: as far as the arrows
    go). ``mark`` is the index of an arrow whose end gets a ring.
    """
    fig, ax = _axes(ax, size)
    points = _numbers(list(ends.values()))
    reach = 1.1 * max(1, np.linalg.norm(points, axis=-1).max()) if reach is None else reach
    ax.add_patch(
        matplotlib.patches.Circle((0, 0), 1, fill=False, edgecolor="0.35", linestyle=":", linewidth=1.5)
    )
    for label, (x, y) in zip(ends, points, strict=True):
        (shaft,) = ax.plot([0, x], [0, y], label=_(label))
        ax.annotate(
            "",
            (x, y),
            (0.9 * x, 0.9 * y),
            arrowprops={
                "arrowstyle": "-|>",
                "color": shaft.get_color(),
                "shrinkA": 0,
                "shrinkB": 0,
                "mutation_scale": 24,
            },
        )
    if mark is not None:
        ax.plot(*points[mark], "o", markersize=15, fillstyle="none", color="black", markeredgewidth=2)
    several = len(ends) > 1  # then the legend needs room on the right
    _titled(ax, _(title))
    ax.set(
        xlabel=_(xlabel),
        ylabel=_(ylabel),
        aspect="equal",
        ylim=(-reach, reach),
        xlim=(-reach, 1.8 * reach if several else reach),
    )
    if several:
        ax.legend(loc="center right", handlelength=2.5)
    return fig


@styled
def bars(
    heights: Mapping[str, float],
    *,
    title: str = "",
    xlabel: str = "",
    spread: Mapping[str, tuple[float, float]] | None = None,
    levels: Mapping[str, float] | None = None,
    values: str | None = ".2f",
    xlim: tuple[float, float] | None = None,
    colour: str = "",
    size: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Horizontal bars that end in a mark, the first on top; ``spread`` maps a label to ``(low, high)``.

    What is written beside a bar may stand beyond ``xlim``: a share ends at 1.
    ``levels`` maps a text to the place of a reference line. A row has the colour of the encoding that its
    label names, or that ``colour`` does.
    """
    fig, ax = _axes(ax, size)
    _rows(ax, heights, spread, values, True, colour)
    for text, level in (levels or {}).items():
        _level(ax, _(text), level)
    if xlim is not None:
        ax.set_xlim(*xlim)
    ax.set_xlabel(_(xlabel))
    _titled(ax, _(title), pad=24 if levels else None)
    return fig


class Picture:
    """A figure as a notebook shows it: an ``<img>`` with alternative text, and the plain PNG."""

    def __init__(self, fig: Figure, alt: str):
        if fault := readability.alt_fault(alt):
            raise ValueError(f"alt={alt!r} does not say what the figure shows: {fault}")
        self.alt = alt
        self.png = png(fig)
        if faults := styled(readability.faults)(fig):
            warnings.warn(
                f"Hard to read: {'; '.join(faults)}. Try another size, or fewer or shorter words.",
                stacklevel=3,
            )

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = base64.b64encode(self.png).decode()
        width, height = (int.from_bytes(self.png[at : at + 4]) // SHARP for at in (16, 20))
        # JupyterLab shows the first line where the reader has not opened the output yet
        figure = (
            "<!-- Run the cell to see the figure. -->\n"
            f'<figure><img alt="{html.escape(self.alt, quote=True)}" '
            f'src="data:image/png;base64,{data}" width="{width}" style="max-width: 100%"></figure>'
        )
        shown = {"text/html": figure, "image/png": data, "text/plain": f"Figure: {self.alt}"}
        return shown, {"image/png": {"width": width, "height": height}}


def _keep_titles(fig: Figure) -> None:
    """A title that a lesson set begins where its plot does, too; one too long for its room, farther left."""
    titled = [ax for ax in fig.axes if ax.get_title()]
    for ax in titled:
        if ax.title.get_horizontalalignment() == "center":
            ax.title.set(x=0, horizontalalignment="left")
    renderer = cast(FigureCanvasAgg, fig.canvas).get_renderer()
    wide = [ax.title.get_window_extent(renderer).width / ax.get_window_extent().width for ax in titled]
    if max(wide, default=0) < 0.8:  # where axes will stand is known when they are drawn, which takes a while
        return
    fig.draw_without_rendering()
    for ax in titled:
        if (over := ax.title.get_window_extent(renderer).x1 - fig.bbox.width) > 1:
            ax.title.set_x(-(over + 2) / ax.get_window_extent().width)


@styled
def png(fig: Figure) -> bytes:
    """The figure as PNG bytes; the same figure drawn anew gives the same bytes.

    It has ``SHARP`` times 100 pixels per inch, which stand in its ``pHYs``, and at most ``COLOURS`` shades.
    Where its only title stands, in hundredths of an inch from the upper left, its text ``Title`` says.
    """
    buffer = io.BytesIO()
    fig.set_dpi(HUNDRED)
    FigureCanvasAgg(fig)  # the figure keeps it, and with it where everything stands
    _keep_titles(fig)
    if any(text.get_gid() == "end" for ax in fig.axes for text in ax.texts):
        _spread(fig)
    fig.set_dpi(dpi := SHARP * HUNDRED)  # and stays so: labels keep the pixels in which they were drawn
    fig.savefig(buffer, format="png", dpi=dpi)
    image = Image.open(buffer).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    shades = np.asarray(image.getpalette()).reshape(-1, 3)
    image.putpalette(np.where(shades.sum(1, keepdims=True) > 750, 255, shades).ravel().tolist())
    about, told = PngInfo(), io.BytesIO()
    if box := _title(fig):
        about.add_text("Title", " ".join(map(str, box)))
    image.save(told, "PNG", optimize=True, dpi=(dpi, dpi), pnginfo=about)
    return told.getvalue()


def _title(fig: Figure) -> tuple[int, ...] | None:
    """Left, top, right and bottom of the only title, if a line is enough for it."""
    titles = [ax.title for ax in fig.axes if ax.get_title()]
    if len(titles) != 1 or "\n" in titles[0].get_text() or fig.get_suptitle():
        return None
    box, high = titles[0].get_window_extent(), fig.bbox.height
    return tuple(round(side / SHARP) for side in (box.x0, high - box.y1, box.x1, high - box.y0))


def show(fig: Figure, alt: str) -> None:
    """Show ``fig`` in a notebook; ``alt`` tells a reader who cannot see it what it shows.

    Raises ValueError for an alternative text that is too short, is not a sentence, or does not name
    the kind of picture. Warns of what is hard to read in the figure, as :mod:`tutorial_lib.readability` sees
    it.
    """
    with needs("course"):
        from IPython.display import display

    display(Picture(fig, alt))
