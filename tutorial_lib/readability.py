"""What makes a picture hard to read, or impossible to read without colour. A Figure in, sentences out."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from .language import _, words
from .optional import needs

with needs("experiments"):
    import matplotlib
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

PAGE = 1000  # pixels: the page of JupyterLab on a small laptop; a wider picture is shrunk to it
SMALLEST = 12  # pixels: a line of text there; browsers themselves set 16, and notes in 12 or 13
KINDS = "arrow|bar|curve|digit|heat map|line|staircase|table"
"""Words for kinds of pictures. Their translation names those of another language."""


def alt_fault(alt: str, kinds: str = "") -> str:
    """What an alternative text lacks, or ``""``. ``kinds`` names the kinds of pictures in its language.

    >>> alt_fault("Bars of accuracy")
    'it has 3 words, not 8 or more'
    >>> alt_fault("条形图：三个模型的准确率，前两个停在一半。", "条形图|热图")
    ''
    """
    if (count := words(alt)) < 8:
        return f"it has {count} words, not 8 or more"
    if not any(
        re.search(rf"(?<![A-Za-z])({each})s?(?![A-Za-z])", alt, re.IGNORECASE)
        for each in (KINDS, kinds or _(KINDS))
    ):  # what is not translated yet is English
        return "it does not name the kind of picture, such as bars, lines, arrows, a heat map or a table"
    if not re.search(r"[.!?…。！？]\W*$", alt):
        return "it does not end as a sentence does"
    return ""


def luminance(colour) -> np.ndarray:
    """The relative luminance, 0 … 1, of a colour or of RGB(A) values ``[..., 3 or 4]`` (WCAG 2.2)."""
    rgb = np.asarray(to_rgb(colour) if isinstance(colour, str) else colour, dtype=float)[..., :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, other) -> np.ndarray:
    """The contrast ratio, 1 … 21, of two colours, or of arrays of colours ``[..., 3 or 4]``.

    >>> float(contrast("black", "white"))
    21.0
    """
    one, other = luminance(one), luminance(other)
    return (np.maximum(one, other) + 0.05) / (np.minimum(one, other) + 0.05)


@functools.cache
def one_way(cmap: str) -> bool:
    """Whether a colour map only gets lighter, or only darker: then it can be read in grey as well."""
    steps = np.diff(luminance(matplotlib.colormaps[cmap](np.linspace(0, 1, 64))))
    return bool((steps >= 0).all() or (steps <= 0).all())


def texts(fig: Figure) -> Iterator[Text]:
    """Every text of a figure that can be seen."""
    for text in [*fig.texts, *(text for ax in fig.axes for text in _of_axes(ax))]:
        if text.get_visible() and text.get_text().strip():
            yield text


def _of_axes(ax: Axes) -> Iterator[Text]:
    yield ax.title
    yield from ax.texts
    if legend := ax.get_legend():
        yield from legend.get_texts()
    if not ax.axison:
        return
    for axis in (ax.xaxis, ax.yaxis):
        yield axis.label
        yield axis.offsetText
        low, high = sorted(axis.get_view_interval())
        room = 1e-6 * (high - low)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if low - room <= tick.get_loc() <= high + room:
                yield tick.label1


def faults(fig: Figure) -> list[str]:
    """What is wrong with a figure that was drawn with matplotlib's Agg; an empty list if nothing is.

    The settings of matplotlib must be those of the drawing: they decide how many ticks there are.

    Text too small, cut off, or over other text; lines of one plot that look the same in grey, or lie
    behind the legend; colours without a scale or numbers, or on a scale that is lost in grey.
    """
    renderer, found = fig.canvas.get_renderer(), []  # type: ignore[attr-defined]  # Agg has it
    shown = list(texts(fig))
    sharp = fig.dpi / 100  # pixels of the drawing for each of a page
    boxes = np.array([text.get_window_extent(renderer).extents for text in shown]).reshape(-1, 4) / sharp
    wide, high = fig.bbox.width / sharp, fig.bbox.height / sharp
    for text, (left, bottom, right, top) in zip(shown, boxes, strict=True):
        if min(left, bottom, wide - right, high - top) < -1:
            found.append(f"{_quoted(text)} is cut off")
    if shown:
        smallest = min(shown, key=Text.get_fontsize)
        size = renderer.points_to_pixels(smallest.get_fontsize()) / sharp * min(1, PAGE / wide)
        if size < SMALLEST:
            found.append(
                f"{_quoted(smallest)} is {size:.1f} pixels high on a page {PAGE} pixels wide, "
                f"less than {SMALLEST}"
            )
    common = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - np.maximum(
        boxes[:, None, :2], boxes[None, :, :2]
    )
    for i, j in np.argwhere(np.triu((common > 1).all(-1), 1)):
        found.append(f"{_quoted(shown[i])} and {_quoted(shown[j])} lie on each other")
    scales = {_scale(image) for ax in fig.axes for image in ax.images if image.colorbar}
    for ax in fig.axes:
        found += _lines(ax, renderer)
        for image in ax.images:
            if not one_way(image.cmap.name):
                found.append(f"in grey, the ends of the colour map {image.cmap.name!r} look the same")
            if _scale(image) not in scales and len(ax.texts) < np.asarray(image.get_array()).size:
                found.append(
                    f"the colours of {ax.get_title() or 'the heat map'!r} have neither a colour "
                    "bar nor numbers"
                )
    return found


def _lines(ax: Axes, renderer) -> Iterator[str]:
    named = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    looks: dict[tuple, str] = {}
    for line in named:
        # for a custom pattern, matplotlib says only "--"
        dashes = line._unscaled_dash_pattern  # type: ignore[attr-defined]
        look = (str(dashes), line.get_linestyle(), line.get_marker())
        if look in looks:
            yield f"without colour, the lines {looks[look]!r} and {line.get_label()!r} look the same"
        looks[look] = str(line.get_label())
    if legend := ax.get_legend():
        box = Bbox.intersection(legend.get_window_extent(renderer), ax.bbox)
        for line in named:
            path = line.get_transform().transform_path(line.get_path())
            if box and path.intersects_bbox(box, filled=False):
                yield f"the legend lies on the line {line.get_label()!r}"


def _scale(image) -> tuple:
    return image.cmap.name, *image.get_clim()


def _quoted(text: Text) -> str:
    return repr(text.get_text())
