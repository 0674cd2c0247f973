"""Every picture can be read: large enough, dark enough, and without its colours."""

import itertools
import re
from pathlib import Path

import matplotlib
import matplotlib.style
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from course import experiments
from tutorial_lib import plots, readability

Z = torch.linspace(-1, 1, 6).view(2, 3)
X = [1, 2, 3]
RECORDS = sorted(path.stem.removesuffix("-full") for path in experiments.RESULTS.glob("*-full.json"))


@plots.styled
def faults(fig):
    plots.png(fig)
    return readability.faults(fig)


@plots.styled
def dim(fig, drawn=False):
    """Texts with less than 4.5:1 to a pixel behind them: the figure is painted without its texts.

    A text with a halo stands on the halo. A figure that is ``drawn`` has its final layout.
    """
    if not drawn:
        plots.png(fig)
    texts = list(readability.texts(fig))
    boxes = [text.get_window_extent(fig.canvas.get_renderer()).extents for text in texts]
    colours = [text.get_color() for text in texts]
    for text in texts:
        text.set_alpha(0)
    fig.canvas.draw()
    page = np.asarray(fig.canvas.buffer_rgba()) / 255
    found = []
    for text, colour, (left, bottom, right, top) in zip(texts, colours, boxes, strict=True):
        behind = page[
            max(0, len(page) - int(top)) : len(page) - int(bottom), max(0, int(left)) : int(right) + 1
        ]
        behind = np.ones((1, 1, 3)) if text.get_path_effects() else behind
        if (least := readability.contrast(to_rgb(colour), behind).min()) < 4.5:
            found.append(f"{text.get_text()!r}: {least:.2f}")
    return found


def light(rgb):
    """The lightness L*, 0 ... 100."""
    y = readability.luminance(rgb)
    return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)


# What readers without red and without green cones see (Machado, Oliveira and Fernandes 2009), in linear RGB.
BLIND = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


def seen(rgb, kind):
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ np.array(BLIND[kind]).T
    linear = linear.clip(0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


# ---- every picture of the course ----
@pytest.mark.parametrize("name", RECORDS)
def test_the_picture_of_a_record_is_legible(name):
    record, experiment = experiments.load(name), experiments.find(name)
    fig = experiment.figure(record)
    assert faults(fig) == [] and dim(fig, drawn=True) == []
    assert readability.alt_fault(experiment.alt(record)) == ""


@pytest.mark.parametrize("cmap", ["signed", "weights"])
def test_the_numbers_in_cells_can_be_read_on_every_colour(cmap):
    ramp = np.linspace(-1, 1, 64).reshape(8, 8)
    assert dim(plots.heat(ramp, values=".1f", cmap=cmap, mark_cell=(3, 3), size=(9, 6))) == []


def test_the_words_of_every_drawing_can_be_read():
    levels = {"level": 0.5}
    for fig in (
        plots.lines(
            X,
            {"a": [0.5] * 3, "b": [1, 0.5, 0], "c": X},
            levels=levels,
            title="t",
            mark_x=2,
            spread={"b": ([0, 0.1, 0], [1, 1, 1])},
            xlabel="x",
            ylabel="y",
        ),
        plots.bars({"a": 0.4, "b": 1}, levels=levels, spread={"a": (0.3, 0.6), "b": (1, 1)}),
        plots.vectors({"a": [1, 0], "b": [0, 1]}),
    ):
        assert faults(fig) == [] and dim(fig, drawn=True) == []


# ---- colours ----
def cycle():
    with matplotlib.style.context(plots.STYLE):
        return list(matplotlib.rcParams["axes.prop_cycle"])


def test_lines_stand_out_from_the_page_and_differ_without_colour():
    styles = cycle()
    assert len(styles) == len({str(style["linestyle"]) for style in styles}) == len(set(plots.MARKERS)) == 7
    for style in styles:
        assert readability.contrast(style["color"], "white") >= 3, style
    for kind in BLIND:  # neighbours in the cycle; the dashes tell the others apart
        for one, two in itertools.pairwise(styles):
            one, two = (seen(np.array(to_rgb(style["color"])), kind) for style in (one, two))
            assert np.abs(one - two).max() > 0.15, (kind, one, two)


@pytest.mark.parametrize("cmap, way", [("signed", 1), ("weights", -1)])  # more is lighter, or darker
def test_a_colour_says_its_number_in_grey_and_to_the_colour_blind(cmap, way):
    ramp = matplotlib.colormaps[cmap](np.linspace(0, 1, 11))[:, :3]
    for colours in (ramp, *(seen(ramp, kind) for kind in BLIND)):
        assert (way * np.diff(light(colours)) > 2).all()  # two are about what can be told apart side by side
    assert not readability.one_way("RdBu_r") and readability.one_way(cmap)


def test_zero_has_no_colour():
    below, zero, above = (plots.SIGNED(x)[:3] for x in (0.45, 0.5, 0.55))
    assert np.ptp(zero) == 0 and plots.SIGNED(0.499)[:3] == zero == plots.SIGNED(0.501)[:3]
    assert below[2] > below[0] + 0.2 and above[0] > above[2] + 0.2  # blue, and yellow


def test_no_weight_is_white_and_a_tenth_is_seen():
    none, tenth = plots.WEIGHTS([0.0, 0.1])[:, :3]
    assert (none == 1).all() and light(tenth) < 95


# ---- alternative texts ----
@pytest.mark.parametrize(
    "alt, fault",
    [
        ("条形图：三个模型的准确率，前两个停在一半。", ""),
        ("条形图：三个模型的准确率，前两个停在一半", "end as a sentence does"),
        ("三个模型的准确率，前两个停在一半，最后一个是一。", "name the kind of picture"),
        ("条形图：三个模型的准确率。", "words, not 8"),
        ("Bars of accuracy, which is not translated yet.", ""),
    ],
)
def test_an_alternative_text_without_spaces_says_as_much(alt, fault):
    found = readability.alt_fault(alt, "条形图|热图")
    assert fault in found if fault else not found


# ---- what is found ----
def hidden(fig):
    fig.axes[0].legend(loc="center")
    return fig


FAULTS = {
    "cut": (lambda: plots.bars({"a name that is much too long for it": 1}, size=(2, 2)), "is cut off"),
    "small": (
        lambda: plots.lines(X, {"": X}, size=(24, 5), levels={"level": 1}),
        "'level' is 6.9 pixels high on a page 1000 pixels wide, less than 12",
    ),
    "words on words": (lambda: plots.heat(Z, xticks=["a long name"] * 3, size=(4, 3)), "lie on each other"),
    "numbers on numbers": (lambda: plots.heat(np.ones((3, 30)), values=".3f"), "'1.000' and '1.000' lie"),
    "too many lines": (
        lambda: plots.lines(X, {f"line {n}": [n, n, n] for n in range(8)}),
        "'line 0' and 'line 7' look the same",
    ),
    "a hidden line": (
        lambda: hidden(plots.lines(X, {"a": [1, 2, 3], "b": [3, 2, 1]}, legend=False, size=(2.4, 2))),
        "the legend lies on the line",
    ),
    "no scale": (lambda: plots.heat(Z, title="Z", colorbar=None), "have neither a colour bar nor numbers"),
    "red and blue": (lambda: plots.heat(Z, cmap="RdBu_r"), "in grey, the ends of the colour map 'RdBu_r'"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name):
    draw, words = FAULTS[name]
    found = faults(draw())
    assert any(words in fault for fault in found), found


def test_a_scale_next_to_it_is_enough():
    fig, axes = plots.panels(1, 2, size=(8, 3))
    plots.heat(Z, ax=axes[0], colorbar=None)
    plots.heat(Z, ax=axes[1], colorbar="both")
    assert faults(fig) == []


def test_pale_words_are_found():
    fig = plots.lines(X, {"": X}, title="pale")
    fig.axes[0].title.set_color("0.6")
    assert dim(fig) == ["'pale': 2.85"]


def test_notebooks_choose_no_colours_of_their_own():
    """So the tests above hold for their pictures too. nbval holds that none is shown with a warning."""
    for path in sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\b(color|cmap)=(?!\\\"weights|colour\b|plots\.[A-Z]+)", text), path.name
        assert not re.search(r"\"#[0-9a-fA-F]{6}\\\"", text), path.name
