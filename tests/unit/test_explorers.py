"""The explorers without a browser: every scene, every control, every message to the reader."""

import base64
import itertools
import json
import math
import re

import ipywidgets
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from tutorial_lib import explorers, plots
from tutorial_lib.encodings.sinusoidal import frequencies, sinusoidal
from tutorial_lib.explorers import SinusoidalExplorer
from tutorial_lib.explorers.parts import (
    Choice,
    Control,
    Explorer,
    Heat,
    Index,
    Lines,
    Scene,
    Steps,
    Vectors,
    View,
)

ALL = [getattr(explorers, name) for name in explorers.__all__]
every_explorer = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
every_old_explorer = pytest.mark.parametrize("kind", [kind for kind in ALL if issubclass(kind, Explorer)],
                                             ids=lambda kind: kind.__name__)  # the others: test_live.py


class Toy(Explorer):
    """All kinds of parameters, and a render that fails where it is told to."""

    parameters = {
        "size": Steps((4, 8), 8),
        "sign": Choice((1, -1), 1),
        "fails": Choice((False, True), False, menu=True),
        "row": Index("size", 6),
        "column": Index(3, 1, hidden=True),
    }
    challenge = "Make the marked value −2 or less."

    @staticmethod
    def render(*, size, sign, fails, row, column):
        if fails:
            raise ZeroDivisionError("no such picture")
        z = sign * np.arange(3.0 * size).reshape(size, 3)
        return Scene(
            {"grid": Heat(z, limits=(-24, 24), mark=(row, column), pick=("row", "column"),
                          readout=f"{z[row, column]}"),
             "curve": Lines(range(size), {"a": z[:, 0], "b": z[:, 1]}, mark=row, pick="row"),
             "still": Lines(range(3), {"": z[row]}),
             "arrows": Vectors({"a": (sign, 0), "b": (row, 1), "c": (0, 1)}, mark=column, pick="column")},
            f"A grid of {size} rows with sign {sign}.")

    @staticmethod
    def reached(*, sign, row, column, **_):
        value = sign * (3 * row + column)
        return f"it is {value}." if value <= -2 else ""


@pytest.fixture
def messages(monkeypatch):
    """What widgets send to the browser from here on: a list of (state, buffers by name)."""
    import comm

    sent = []

    def publish(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        if (data or {}).get("method") == "update":
            names = [path[0] for path in data["buffer_paths"]]
            sent.append((data["state"], dict(zip(names, buffers or [], strict=True))))

    monkeypatch.setattr(comm.DummyComm, "publish_msg", publish)
    return sent


def drawn(view: View) -> np.ndarray:
    """The array that the browser has."""
    return np.frombuffer(view.data, np.float32).reshape(view.spec["shape"])


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
        assert list(scene.views) == names
        assert len(scene.description.split()) >= 4 and scene.description.endswith("."), params
        for view in scene.views.values():
            array, spec = view.array(), view.spec()
            assert array.dtype == np.float32 and array.ndim == 2 and not np.isinf(array).any(), params
            assert view.title and view.xlabel, params
            if spec["kind"] == "heat":
                assert view.ylabel or view.yticks, params
                low, high = view.limits
                cells = array[~np.isnan(array)]  # the others stay empty
                assert low <= cells.min() and cells.max() <= high, (params, cells.min(), cells.max())
                inside = view.mark is None or all(0 <= i < n for i, n in zip(view.mark, array.shape,
                                                                             strict=True))
            else:
                assert view.ylabel and not np.isnan(array).any(), params
                inside = view.mark is None or 0 <= view.mark < array.shape[1]
                if spec["kind"] == "vectors":
                    assert array.shape == (2, len(spec["labels"])), params
                    assert view.reach is None or np.hypot(*array).max() <= view.reach, params
                else:
                    assert not view.logy or array[1:].min() > 0, params
            assert inside, params


@every_old_explorer
def test_every_control_redraws_through_its_whole_range(kind):
    explorer = kind()
    for name, control in explorer.controls.items():
        explorer.move(**kind.settings())
        changed = 0
        for index in range(len(kind.parameters[name].allowed(explorer.params))):
            before = [(view.data, view.spec) for view in explorer.views.values()]
            was, control.index = control.index, index
            expected = kind.render(**explorer.params)
            for view, scene in zip(explorer.views.values(), expected.views.values(), strict=True):
                np.testing.assert_array_equal(drawn(view), scene.array())
                json.dumps(view.spec)
            assert explorer.status.description == expected.description
            changed += was != index and before != [
                (view.data, view.spec) for view in explorer.views.values()]
        assert changed, f"{name} changes nothing that is seen"


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
    assert data["text/html"].count("<img alt=") == 1 and "alt=\"\"" not in data["text/html"]
    assert metadata["image/png"]["alt"].endswith(description)
    assert description in data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in data


@every_explorer
def test_a_challenge_is_neither_won_at_the_start_nor_out_of_reach(kind):
    assert kind.challenge
    assert not kind.reached(**kind.settings())
    assert any(kind.reached(**params) for params in kind.grid())


@every_old_explorer
def test_controls_have_names(kind):
    for name, control in kind().controls.items():
        assert control.label if isinstance(control, Control) else control.description, name


# ---- the parts ----
def test_array_and_shape_travel_in_one_message(messages):
    view = View()
    view.show(Heat(np.ones((2, 3)), mark=(1, 2)))
    ((state, buffers),) = messages
    assert state["spec"]["shape"] == [2, 3] and state["picked"] == [1, 2]
    assert np.frombuffer(buffers["data"], np.float32).tolist() == [1.0] * 6
    assert len(buffers["palette"]) == 3 * 256


def test_blue_is_low_and_red_is_high():
    view = View()
    view.show(Heat(np.zeros((1, 1))))
    (r_low, _, b_low), (r_high, _, b_high) = view.palette[:3], view.palette[-3:]
    assert b_low > r_low and r_high > b_high


def test_lines_send_x_and_every_line():
    lines = Lines([1, 2], {"a": torch.tensor([3.0, 4.0]), "b": [5, 6]}, levels={"top": 7})
    assert lines.array().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert lines.spec()["labels"] == ["a", "b"] and lines.spec()["levels"] == {"top": 7.0}


def test_vectors_send_the_ends_of_the_arrows():
    vectors = Vectors({"q": (3, 4), "k": torch.tensor([1.0, -2.0])}, reach=6, mark=1)
    assert vectors.array().tolist() == [[3, 1], [4, -2]] and vectors.array().dtype == np.float32
    assert vectors.spec() == {"kind": "vectors", "labels": ["q", "k"], "reach": 6}
    view = View()
    view.show(vectors)
    assert view.spec["shape"] == [2, 2] and view.picked == [1] and drawn(view).tolist() == [[3, 1], [4, -2]]
    ax = plots.panels()[1]
    vectors.draw(ax)
    tips = [line.get_xydata()[1].tolist() for line in ax.lines[:2]]
    assert tips == [[3, 4], [1, -2]] and ax.get_aspect() == 1
    assert ax.get_ylim() == (-6, 6) and len(ax.lines) == 3  # the third is the ring


def test_a_moved_control_redraws_once(messages, monkeypatch):
    explorer, render, calls = Toy(), Toy.render, []
    monkeypatch.setattr(Toy, "render", staticmethod(
        lambda **params: calls.append(params) or render(**params)))
    messages.clear()
    explorer.controls["size"].index = 0  # the row 6 is no more: it becomes the last, 3
    assert explorer.params["size"] == 4 and explorer.params["row"] == 3
    assert explorer.controls["row"].count == 4
    assert calls == [explorer.params]
    pictures = [state["spec"]["shape"] for state, buffers in messages if "spec" in state]
    assert sorted(pictures) == [[2, 3], [2, 3], [3, 4], [4, 3]]


def test_a_click_sets_the_parameters_that_the_view_names():
    explorer = Toy()
    explorer.views["grid"].picked = [2, 0]
    assert (explorer.params["row"], explorer.params["column"]) == (2, 0)
    assert explorer.views["grid"].spec["readout"] == "6.0"
    assert explorer.views["curve"].picked == [2]  # the other view follows
    explorer.views["curve"].picked = [5]
    assert explorer.params["row"] == 5 and explorer.views["grid"].picked == [5, 0]
    explorer.views["arrows"].picked = [2]  # an arrow
    assert explorer.params["column"] == 2 and explorer.views["grid"].picked == [5, 2]
    explorer.views["still"].picked = [1]  # names none: only read
    assert explorer.params["row"] == 5


def test_the_live_controls_are_those_that_are_not_hidden():
    explorer = Toy()
    shown = explorer.children[0].children
    assert [*shown] == [explorer.controls[name] for name in ("size", "sign", "fails", "row")]
    assert isinstance(explorer.controls["sign"], ipywidgets.ToggleButtons)
    assert explorer.controls["fails"].menu and explorer.controls["fails"].texts == ["False", "True"]


def test_what_fails_is_shown_and_raised():
    explorer = Toy()
    with pytest.raises(ZeroDivisionError):
        explorer.controls["fails"].index = 1
    assert "no such picture" in explorer.status.error
    assert "size=8, sign=1, fails=True, row=6, column=1" in explorer.status.error
    with pytest.raises(ZeroDivisionError):  # and again: the first has broken nothing
        explorer.controls["row"].index = 2
    assert "row=2" in explorer.status.error
    explorer.controls["fails"].index = 0
    assert explorer.status.error == "" and explorer.params["row"] == 2
    assert drawn(explorer.views["still"])[1].tolist() == [6, 7, 8]


def test_a_challenge_is_checked_live():
    explorer = Toy()
    assert explorer.status.challenge.endswith("−2 or less. Not reached yet.")
    explorer.controls["sign"].index = 1
    assert explorer.status.challenge.endswith("✔ Reached: it is -19.")
    explorer.move(row=0)
    assert explorer.status.challenge.endswith("Not reached yet.")


def test_the_grid_has_every_combination():
    grid = list(Toy.grid())
    assert len(grid) == 2 * 2 * 2 * 2 * 2 == len({tuple(params.items()) for params in grid})
    assert {params["row"] for params in grid if params["size"] == 4} == {0, 3}


@pytest.mark.parametrize(("params", "says"), [
    ({"size": 7.5}, r"size=7\.5: it must be one of 4, 8"),
    ({"sign": "minus"}, r"sign='minus': it must be one of 1, -1"),
    ({"row": 8}, r"row=8: it must be one of the whole numbers 0 … 7"),
    ({"row": 1.5}, r"row=1\.5: it must be one of the whole numbers 0 … 7"),
    ({"row": -1}, r"row=-1: it must be"),
    ({"size": 4, "row": 6}, r"row=6: it must be one of the whole numbers 0 … 3"),
    ({"rows": 1}, r"Toy has no parameter rows; it has size, sign"),
])
def test_a_wrong_value_is_named(params, says):
    for call in (Toy, Toy.scene, Toy.figure, Toy().move):
        with pytest.raises(ValueError, match=says):
            call(**params)


def test_a_start_can_be_given():
    explorer = Toy(size=4.0, sign=-1)
    assert explorer.params["size"] == 4 and isinstance(explorer.params["size"], int)
    assert explorer.params["row"] == 3  # the usual start, 6, is too far
    assert explorer.controls["sign"].value == "-1"


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
                d_model=d_model, positions=20, base=base, layout=layout, position=position,
                dimension=dimension).views["table"]
            p, j, wave, again, b, top, bottom, value = READOUT.fullmatch(heat.readout).groups()
            assert (int(p), int(j), int(again), int(b)) == (position, dimension, position, base)
            computed = getattr(math, wave)(position / base ** (int(top) / int(bottom)))
            assert abs(float(value) - computed) < 6e-5
            close(computed, reference[position, dimension], 1e-12)
            close(heat.array()[position, dimension], computed)


def test_the_description_says_what_is_set():
    for params in SinusoidalExplorer.grid():
        text = SinusoidalExplorer.render(**params).description
        for part in ("{positions} positions × {d_model} dimensions", "base {base},",
                     "{layout} layout", "position {position}, dimension {dimension};"):
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
    close(similarity[9 - 9:9], similarity[10:19][::-1])  # even in the offset


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_challenge_is_measured(layout):
    def cosines(d_model, positions, base):
        pe = sinusoidal(torch.arange(positions).double(), d_model, base=base, layout=layout)
        return pe @ pe[0] / (d_model / 2)  # each row has the length √(d/2)

    for d_model, positions, base in itertools.product((4, 8, 16, 64), (20, 64), (10, 1000, 1_000_000)):
        cosine = cosines(d_model, positions, base)
        best = 2 + int(cosine[2:].argmax())
        said = SinusoidalExplorer.reached(**SinusoidalExplorer.settings(
            d_model=d_model, positions=positions, base=base, layout=layout))
        near = cosine[best] >= 0.99
        assert said == (f"position {best}, cosine {cosine[best]:.4f}." if near else "")
