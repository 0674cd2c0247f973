"""The explorers without a browser: every scene, every setting, what is stored and what is refused."""

import base64
import itertools
import math
import re

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from tutorial_lib import explorers, plots
from tutorial_lib.encodings.sinusoidal import frequencies, sinusoidal
from tutorial_lib.explorers import SinusoidalExplorer
from tutorial_lib.explorers.parts import (
    Choice,
    Heat,
    Index,
    Lines,
    LiveExplorer,
    Scene,
    Steps,
    Vectors,
    palette,
)

ALL = [getattr(explorers, name) for name in explorers.__all__]
every_explorer = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


class Toy(LiveExplorer):
    """All kinds of parameters."""

    _esm = "export default {}"
    parameters = {
        "size": Steps((4, 8), 8),
        "sign": Choice((1, -1), 1),
        "row": Index("size", 6),
    }
    challenge = "Make the marked value −2 or less."

    @staticmethod
    def render(*, size, sign, row):
        z = sign * np.arange(3.0 * size).reshape(size, 3)
        return Scene({"grid": Heat(z, limits=(-24, 24), mark=(row, 1))}, f"A grid of {size} rows.")

    @staticmethod
    def reached(*, sign, row, **_):
        value = sign * (3 * row + 1)
        return f"it is {value}." if value <= -2 else ""


def close(actual, expected, tolerance=1e-6):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), atol=tolerance, rtol=1e-5)


# ---- every explorer, every setting ----
@every_explorer
def test_every_setting_renders(kind):
    names, grid = None, list(kind.grid())
    assert len(grid) > 1
    for params in grid:
        scene = kind.render(**params)
        names = names or list(scene.views)
        assert len(scene.views) == len(names)
        assert list(scene.views)[0] == names[0]  # the one beside it may give way to another
        assert len(scene.description.split()) >= 4 and scene.description.endswith("."), params
        for view in scene.views.values():
            array = view.array()
            assert array.dtype == np.float32 and array.ndim == 2 and not np.isinf(array).any(), params
            assert view.title and view.xlabel, params
            if isinstance(view, Heat):
                assert view.ylabel or view.yticks, params
                low, high = view.limits
                cells = array[~np.isnan(array)]  # the others stay empty
                assert low <= cells.min() and cells.max() <= high, (params, cells.min(), cells.max())
                inside = view.mark is None or all(
                    0 <= i < n for i, n in zip(view.mark, array.shape, strict=True)
                )
            else:
                assert view.ylabel and not np.isnan(array).any(), params
                inside = view.mark is None or 0 <= view.mark < array.shape[1]
                if isinstance(view, Vectors):
                    assert array.shape == (2, len(view.ends)), params
                    assert view.reach is None or np.hypot(*array).max() <= view.reach, params
                else:
                    assert not view.logy or array[1:].min() > 0, params
            assert inside, params


@every_explorer
def test_the_static_figure_shows_the_same_scene(kind):
    scene, figure = kind.scene(), kind.figure()
    assert isinstance(figure, Figure)
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == [view.title for view in scene.views.values()]


@every_explorer
def test_a_device_without_a_kernel_gets_picture_and_words(kind):
    data, metadata = kind()._repr_mimebundle_()
    description = kind.scene().description
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/html"].count("<img alt=") == 1 and 'alt=""' not in data["text/html"]
    assert metadata["image/png"]["alt"].endswith(description)
    assert description in data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in data


@every_explorer
def test_a_challenge_is_neither_won_at_the_start_nor_out_of_reach(kind):
    assert kind.challenge
    assert not kind.reached(**kind.settings())
    assert any(kind.reached(**params) for params in kind.grid())


# ---- the parts ----
def test_the_palette_goes_from_blue_to_yellow():
    colours = palette("signed", 64)
    (r_low, _, b_low), (r_high, _, b_high) = colours[:3], colours[-3:]
    assert len(colours) == 3 * 64 and b_low > r_low and r_high > b_high


def test_the_numbers_of_lines_are_x_and_every_line():
    lines = Lines([1, 2], {"a": torch.tensor([3.0, 4.0]), "b": [5, 6]})
    assert lines.array().tolist() == [[1, 2], [3, 4], [5, 6]]


def test_vectors_are_drawn_to_the_ends_of_the_arrows():
    vectors = Vectors({"q": (3, 4), "k": torch.tensor([1.0, -2.0])}, reach=6, mark=1)
    assert vectors.array().tolist() == [[3, 1], [4, -2]] and vectors.array().dtype == np.float32
    ax = plots.panels()[1]
    vectors.draw(ax)
    tips = [line.get_xydata()[1].tolist() for line in ax.lines[:2]]
    assert tips == [[3, 4], [1, -2]] and ax.get_aspect() == 1
    assert ax.get_ylim() == (-6, 6) and len(ax.lines) == 3  # the third is the ring


def test_a_challenge_is_checked_at_the_settings_of_the_moment():
    explorer = Toy()
    assert explorer.verdict.endswith("−2 or less. Not reached yet.")
    explorer.move(sign=-1)
    assert explorer.verdict.endswith("✔ Reached: it is -19.")
    explorer.move(row=0)
    assert explorer.verdict.endswith("Not reached yet.")


def test_an_index_past_the_end_of_what_has_become_shorter_is_the_last():
    explorer = Toy()
    explorer.move(size=4)
    assert explorer.params == {"size": 4, "sign": 1, "row": 3}


def test_the_grid_has_every_combination():
    grid = list(Toy.grid())
    assert len(grid) == 2 * 2 * 2 == len({tuple(params.items()) for params in grid})
    assert {params["row"] for params in grid if params["size"] == 4} == {0, 3}


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"size": 7.5}, r"size=7\.5: it must be one of 4, 8"),
        ({"sign": "minus"}, r"sign='minus': it must be one of 1, -1"),
        ({"row": 8}, r"row=8: it must be one of the whole numbers 0 … 7"),
        ({"row": 1.5}, r"row=1\.5: it must be one of the whole numbers 0 … 7"),
        ({"row": -1}, r"row=-1: it must be"),
        ({"size": 4, "row": 6}, r"row=6: it must be one of the whole numbers 0 … 3"),
        ({"rows": 1}, r"Toy has no parameter rows; it has size, sign"),
    ],
)
def test_a_wrong_value_is_named(params, says):
    for call in (Toy, Toy.scene, Toy.figure, Toy().move):
        with pytest.raises(ValueError, match=says):
            call(**params)


def test_a_start_can_be_given():
    explorer = Toy(size=4.0, sign=-1)
    assert explorer.params["size"] == 4 and isinstance(explorer.params["size"], int)
    assert explorer.params["row"] == 3  # the usual start, 6, is too far
    assert explorer.params["sign"] == -1


# ---- the sinusoidal explorer ----
LAYOUTS = ("interleaved", "concatenated")
READOUT = re.compile(r"PE\((\d+), (\d+)\) = (sin|cos)\((\d+) / (\d+)\^\((\d+)/(\d+)\)\) = (-?\d\.\d{4})")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("base", [10, 10_000, 1_000_000])
@pytest.mark.parametrize("d_model", [4, 8, 64])
def test_the_formula_gives_the_value_in_the_table(layout, base, d_model):
    reference = sinusoidal(torch.arange(20).double(), d_model, base=base, layout=layout)
    for position in (0, 7, 19):
        for dimension in range(d_model):
            heat = SinusoidalExplorer.scene(
                d_model=d_model,
                positions=20,
                base=base,
                layout=layout,
                position=position,
                dimension=dimension,
            ).views["table"]
            p, j, wave, again, b, top, bottom, value = READOUT.fullmatch(heat.readout).groups()
            assert (int(p), int(j), int(again), int(b)) == (position, dimension, position, base)
            computed = getattr(math, wave)(position / base ** (int(top) / int(bottom)))
            assert abs(float(value) - computed) < 6e-5
            close(computed, reference[position, dimension], 1e-12)
            close(heat.array()[position, dimension], computed)


def test_the_description_says_what_is_set():
    for params in SinusoidalExplorer.grid():
        text = SinusoidalExplorer.render(**params).description
        for part in (
            "{positions} positions × {d_model} dimensions",
            "base {base},",
            "{layout} layout",
            "position {position}, dimension {dimension};",
        ):
            assert part.format(**params) in text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_views_show_the_reference_numbers(layout):
    params = dict(d_model=16, positions=32, base=1000, layout=layout, position=9, dimension=5)
    pe = sinusoidal(torch.arange(32).double(), 16, base=1000, layout=layout)

    def beside(view):
        return SinusoidalExplorer.scene(**params, view=view).views["beside"]

    scene = SinusoidalExplorer.scene(**params)
    close(scene.views["table"].array(), pe)
    assert scene.views["table"].mark == (9, 5) and scene.views["table"].limits == (-1, 1)
    close(beside("vector").array(), [np.arange(16), pe[9]])
    waves = 2 * math.pi / frequencies(16, base=1000, layout=layout)
    close(beside("wavelengths").array()[1], waves)
    assert beside("wavelengths").logy
    assert beside("wavelengths").mark == (2 if layout == "interleaved" else 5)

    similarity = beside("similarity").array()[1]
    close(similarity, [pe[9] @ row for row in pe])
    assert similarity.argmax() == 9 and math.isclose(similarity[9], 8, rel_tol=1e-6)
    close(similarity[9 - 9 : 9], similarity[10:19][::-1])  # even in the offset


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_challenge_is_measured(layout):
    def cosines(d_model, positions, base):
        pe = sinusoidal(torch.arange(positions).double(), d_model, base=base, layout=layout)
        return pe @ pe[0] / (d_model / 2)  # each row has the length √(d/2)

    for d_model, positions, base in itertools.product((4, 8, 16, 64), (20, 64), (10, 1000, 1_000_000)):
        cosine = cosines(d_model, positions, base)
        best = 2 + int(cosine[2:].argmax())
        said = SinusoidalExplorer.reached(
            **SinusoidalExplorer.settings(d_model=d_model, positions=positions, base=base, layout=layout)
        )
        near = cosine[best] >= 0.99
        assert said == (f"position {best}, cosine {cosine[best]:.4f}." if near else "")
