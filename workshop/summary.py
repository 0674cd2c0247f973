"""All methods on one page: ``python -m workshop.summary`` writes ``docs/summary.pdf``.

The words of a row stand with its method, in ``METHODS`` at the end of its file in ``tutorial_lib/encodings``.
The two numbers of a row are read from the record ``lengths``; the small pictures are drawn from the library.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from course import experiments
from tutorial_lib import plots
from tutorial_lib.encodings import (
    KERPLE,
    ALiBi,
    ClippedBias,
    Frequencies,
    NTKAware,
    PositionInterpolation,
    Sandwich,
    XPos,
    YaRN,
    bucket,
    sinusoidal,
)
from tutorial_lib.encodings.method import Method
from tutorial_lib.encodings.registry import METHODS, doors

from . import ROOT

PAGE = ROOT / "docs" / "summary.pdf"
A4 = 297 / 25.4, 210 / 25.4
"""Width and height of the page in inches."""

MARGIN, TOP, BOTTOM = 0.3, 0.74, 0.34
COLUMNS = {
    "door": 1.12,
    "picture": 0.58,
    "name": 0.98,
    "formula": 3.16,
    "parameters": 1.18,
    "cost": 1.3,
    "longer": 1.27,
    "tail": 0.4,
    "used_by": 1.1,
}
"""Widths in inches."""

HEADS = {
    "door": "door",
    "name": "method",
    "formula": "formula",
    "parameters": "parameters",
    "cost": "cost",
    "longer": "longer texts",
    "used_by": "used by",
}
DOORS = {
    "embed": "the token vectors,\nonce, before the first\nlayer",
    "rotate": "queries and keys are\nturned, in every layer",
    "content_bias": "a term of the raw\nscores, which knows\nthe words",
    "bias": "a term of the scaled\nscores, which knows\npositions only",
    "values": "a term of the output",
    "none": "all doors stay shut",
}
COLOURS = {
    "embed": "#005F99",
    "rotate": "#AA4400",
    "content_bias": "#00705A",
    "bias": "#8F4A74",
    "values": "#7A6000",
    "none": "#555555",
}
SMALL, TEXT, FORMULA = 5.8, 6.4, 7.6
SETTINGS = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 3,
    "path.simplify": False,
    "axes.unicode_minus": True,
    "text.usetex": False,
}
FOOT = (
    "L: training length; d: width of a head (in the first two rows: of the model); H: heads; "
    "i, m: place of the query; j, n: place of the key; t: pair of channels; s: how many times as long; "
    "λ: wavelength; – : the course names none. "
    "L and 16 L:\nloss in nats on the same last 32 characters, of small models trained on L = 64 "
    "characters, when they read L and 16 L (mean of the seeds, record “lengths”). The learned "
    "table was stretched; of table and clipped, it is clipped."
)


def table() -> dict[str, list[Method]]:
    """The methods of each door that have a row and are compared in the lessons: others have no numbers.

    A method that opens several doors is listed under the last, and the others are named beside it.
    """
    methods = [each for each in METHODS if each.row and each.compared]
    return {door: [each for each in methods if (doors(each) or ("none",))[-1] == door] for door in DOORS}


def tail(method: Method) -> tuple[str, ...]:
    """Loss at the trained length and at 16 times it, from the record ``lengths``, if it has the method."""
    record, name = experiments.load("lengths"), next(iter(method.names), "")
    if name not in record.settings["encodings"]:
        return ()
    losses = record.values("tail", encoding=name)
    return tuple(f"{statistics.fmean(loss[place] for loss in losses):.2f}" for place in (0, -1))


# ---- the pictures: each draws on axes of its own ----
def _heat(ax: Axes, z) -> None:
    ax.pcolormesh(np.asarray(z), cmap=plots.SIGNED, vmin=-1, vmax=1, linewidth=0.05, edgecolor="face")
    ax.invert_yaxis()


def _line(ax: Axes, y, **style) -> None:
    ax.plot(np.arange(len(y)), np.asarray(y), linewidth=0.9, **style)


def waves(ax):
    _heat(ax, sinusoidal(torch.arange(12), 16))


def table_of_numbers(ax):
    _heat(ax, np.random.RandomState(0).uniform(-1, 1, (12, 16)).round(3))


def hands(ax):
    """A clock with a fast and a slow hand."""
    ax.add_patch(Circle((0, 0), 1, fill=False, linewidth=0.6))
    for angle, length, colour in ((1.9, 0.95, "#D55E00"), (0.5, 0.6, "#0072B2")):
        ax.plot([0, length * np.cos(angle)], [0, length * np.sin(angle)], color=colour, linewidth=1.2)
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")


def fade(ax):
    """What is left of the first and of the middle pair, 1,024 tokens on."""
    for zeta, colour in zip(XPos(64).zeta()[[0, 16]].tolist(), ("#D55E00", "#0072B2"), strict=True):
        _line(ax, zeta ** (np.arange(0, 1025, 64) / 512), color=colour)
    ax.set_ylim(0, 1.1)


def _scaled(ax, scaling):
    """θ′/θ of each pair, from the fastest to the slowest."""
    _line(ax, np.ones(32), color="#777777", linestyle=":")
    _line(ax, Frequencies(64, scaling=scaling).theta() / Frequencies(64).theta(), color="#D55E00")
    ax.set_ylim(0, 1.15)


def interpolation(ax):
    _scaled(ax, PositionInterpolation(4))


def ntk(ax):
    _scaled(ax, NTKAware(4))


def yarn(ax):
    _scaled(ax, YaRN(4, L=4096))


def clip(ax):
    """Which entry an offset gets."""
    clipped = ClippedBias(1, 4)
    clipped.b.data[:] = torch.arange(-4.0, 5.0)
    _line(ax, clipped.of(torch.arange(-8, 9)).detach()[0], color="#0072B2", drawstyle="steps-mid")


def buckets(ax):
    _line(ax, bucket(-torch.arange(0, 160)), color="#0072B2", drawstyle="steps-post")


def window(ax):
    """Offsets of a window: one entry for each pair of a row and a column offset."""
    _heat(ax, np.random.RandomState(3).uniform(-1, 1, (7, 7)).round(3))
    ax.set_aspect("equal")


def slopes(ax):
    for line in ALiBi(4).of(-torch.arange(0, 17)).tolist():
        _line(ax, line, color="#0072B2")
    ax.set_ylim(-4, 0.3)


def logarithm(ax):
    kerple = KERPLE(3)
    kerple.r_1.data, kerple.r_2.data = torch.tensor([0.5, 1.0, 1.5]), torch.tensor([1.0, 1.0, 0.5])
    for line in kerple.of(-torch.arange(0, 17)).tolist():
        _line(ax, line, color="#0072B2")


def waves_summed(ax):
    for line in Sandwich(3).of(-torch.arange(0, 65)).tolist():
        _line(ax, line, color="#0072B2")


def mask(ax):
    _heat(ax, 0.6 * np.tri(6))
    ax.set_aspect("equal")


PICTURES = {
    "waves": waves,
    "table": table_of_numbers,
    "hands": hands,
    "fade": fade,
    "interpolation": interpolation,
    "ntk": ntk,
    "yarn": yarn,
    "clip": clip,
    "buckets": buckets,
    "window": window,
    "slopes": slopes,
    "logarithm": logarithm,
    "waves_summed": waves_summed,
    "mask": mask,
}


# ---- the page ----
@contextlib.contextmanager
def _settings():
    """Matplotlib's defaults with SETTINGS; the caller's own settings are left alone."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


class _Page:
    """A figure on which everything is placed in inches from the upper left corner."""

    def __init__(self):
        self.figure = Figure(figsize=A4, facecolor="white")
        self.left = dict(zip(COLUMNS, MARGIN + np.cumsum([0, *COLUMNS.values()]), strict=False))

    def write(self, text, x, y, size=TEXT, **style):
        width, height = A4
        style = {"va": "center", "linespacing": 1.25} | style
        return self.figure.text(x / width, 1 - y / height, text, fontsize=size, **style)

    def box(self, x, y, w, h, **style):
        width, height = A4
        self.figure.add_artist(Rectangle((x / width, 1 - (y + h) / height), w / width, h / height, **style))

    def picture(self, name, y, h):
        width, height = A4
        w, ax_h = COLUMNS["picture"] - 0.1, h - 0.09
        ax = self.figure.add_axes(
            [self.left["picture"] / width, 1 - (y + h - 0.045) / height, w / width, ax_h / height], label=name
        )
        PICTURES[name](ax)
        ax.set(xticks=[], yticks=[])
        for side in ax.spines.values():
            side.set_linewidth(0.3)

    def row(self, method, y, h):
        middle, left = y + h / 2, self.left
        row = method.row
        if row.picture:
            self.picture(row.picture, y, h)
        self.write(row.name, left["name"], middle, TEXT + 0.6, weight="bold")
        step = 0.175
        for n, line in enumerate(row.formula):
            self.write(line, left["formula"], middle + (n - (len(row.formula) - 1) / 2) * step, FORMULA)
        for column in ("parameters", "cost", "longer", "used_by"):
            self.write(getattr(row, column), left[column], middle)
        for n, number in enumerate(tail(method)):
            self.write(number, left["tail"], middle + (n - 0.5) * 0.125, weight="bold" if n else "normal")


def draw() -> Figure:
    """The page. Its texts, in the order in which they are drawn, are ``figure.texts``."""
    with _settings(), torch.random.fork_rng(devices=[]):
        methods, page = table(), _Page()
        page.write("How Transformers know order: every method on one page", MARGIN, 0.36, 12, weight="bold")
        page.write(
            r"$\mathrm{softmax}((q^\prime k^{\prime\top}+\mathtt{content\_bias})\cdot 1/\sqrt{d}"
            r"+\mathtt{bias})\,v+\mathtt{values}\qquad q^\prime,k^\prime$: behind the door "
            r"$\mathtt{rotate}$",
            A4[0] - MARGIN,
            0.36,
            8.5,
            ha="right",
        )
        for column, text in HEADS.items():
            page.write(text, page.left[column], TOP - 0.1, TEXT, weight="bold")
        page.write("L\n16 L", page.left["tail"], TOP - 0.14, TEXT, weight="bold")
        x_rows, y, h = page.left["picture"], TOP, (A4[1] - TOP - BOTTOM) / sum(map(len, methods.values()))
        for door, says in DOORS.items():
            rows = methods[door]
            inside = {"color": "white"}
            page.box(MARGIN, y + 0.015, COLUMNS["door"] - 0.09, len(rows) * h - 0.03, color=COLOURS[door])
            also = [f"and {other}" for method in rows for other in doors(method)[:-1]]
            name = "no door" if door == "none" else door
            middle, x = y + len(rows) * h / 2, MARGIN + 0.06
            lines = says.count("\n") + 1 + len(also)
            page.write(name, x, middle - 0.055 * lines, TEXT + 1.2, weight="bold", **inside)
            page.write("\n".join([*also, says]), x, middle + 0.07, SMALL, **inside)
            for n, method in enumerate(rows):
                if n:
                    page.box(x_rows, y, A4[0] - MARGIN - x_rows, 0, color="#DDDDDD", linewidth=0.4)
                page.row(method, y, h)
                y += h
            page.box(MARGIN, y, A4[0] - 2 * MARGIN, 0, color="#888888", linewidth=0.6)
        page.write(FOOT, MARGIN, A4[1] - BOTTOM / 2 - 0.02, SMALL - 0.3, color="#333333")
        return page.figure


def pdf() -> bytes:
    """The page as a PDF, without a date or the name of a program: the same from run to run."""
    with _settings():
        file = io.BytesIO()
        about = {
            "Title": "How Transformers know order: every method on one page",
            "CreationDate": None,
            "Creator": None,
            "Producer": None,
        }
        draw().savefig(file, format="pdf", metadata=about)
        return file.getvalue()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_bytes(pdf())
    print(PAGE.relative_to(ROOT))
