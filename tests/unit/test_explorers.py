"""The explorers without a browser: every scene, every setting, what is stored and what is refused."""

import itertools
import math
import re

import numpy as np
import pytest
import torch

from tutorial_lib import explorers
from tutorial_lib.encodings.sinusoidal import sinusoidal
from tutorial_lib.explorers import SinusoidalExplorer
from tutorial_lib.explorers.parts import Choice, Index, LiveExplorer, Steps, palette
from workshop import front

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


# ---- every explorer ----
@every_explorer
def test_every_setting_renders(kind):
    first = None
    for params, said in zip(settings := front.settings(kind), front.ask(kind, *settings), strict=True):
        first = first or list(said.views)
        assert list(said.views)[0] == first[0]  # the one beside it may give way to another
        assert len(said.views) == len(first), params
        assert len(said.description.split()) >= 4 and said.description.endswith("."), params
        for view in said.views.values():
            assert view.ndim == 2 and view.size and not np.isinf(view).any(), params


@every_explorer
def test_an_output_names_the_explorer_and_says_where_it_moves(kind):
    """Words for where no browser draws it; the picture comes when the notebook is built."""
    start, settings = kind(), kind.settings()
    data, metadata = start._repr_mimebundle_()
    assert metadata == {"live": {"name": kind.front, "params": settings}}
    assert ">A browser draws this explorer: run its cell " in data["text/html"] and "image/png" not in data
    assert data["text/plain"] == f"{kind.__name__}()"
    assert "application/vnd.jupyter.widget-view+json" in data
    for name, parameter in kind.parameters.items():
        other = kind(**{name: parameter.allowed(settings)[-1]})
        assert eval(repr(other), {kind.__name__: kind}).params == other.params


@every_explorer
def test_a_challenge_is_neither_won_at_the_start_nor_out_of_reach(kind):
    assert kind.challenge and not front.seen(kind).reached
    assert any(said.reached for said in front.ask(kind, *front.settings(kind)))


# ---- the parts ----
def test_the_palette_goes_from_blue_to_yellow():
    colours = bytes.fromhex(palette(64))
    (r_low, _, b_low), (r_high, _, b_high) = colours[:3], colours[-3:]
    assert len(colours) == 3 * 64 and b_low > r_low and r_high > b_high


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
    for call in (Toy, Toy.settings, Toy().move):
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
    asked = [
        {
            "d_model": d_model,
            "positions": 20,
            "base": base,
            "layout": layout,
            "position": position,
            "dimension": dimension,
        }
        for position in (0, 7, 19)
        for dimension in range(d_model)
    ]
    for params, said in zip(asked, front.ask(SinusoidalExplorer, *asked), strict=True):
        p, j, wave, again, b, top, bottom, value = READOUT.fullmatch(said.readouts["table"]).groups()
        here = params["position"], params["dimension"]
        assert (int(p), int(j), int(again), int(b)) == (*here, here[0], base)
        computed = getattr(math, wave)(here[0] / base ** (int(top) / int(bottom)))
        assert abs(float(value) - computed) < 6e-5
        np.testing.assert_allclose(said.views["table"][here], computed, atol=1e-12)


def test_the_description_says_what_is_set():
    for params, said in zip(
        asked := front.settings(SinusoidalExplorer), front.ask(SinusoidalExplorer, *asked), strict=True
    ):
        for part in (
            "{positions} positions × {d_model} dimensions",
            "base {base},",
            "{layout} layout",
            "position {position}, dimension {dimension};",
        ):
            assert part.format(**params) in said.description


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_views_show_the_reference_numbers(layout):
    """Those of the library's own table; a dot product is even in the offset."""
    params = dict(d_model=16, positions=32, base=1000, layout=layout, position=9, dimension=5)
    pe = sinusoidal(torch.arange(32).double(), 16, base=1000, layout=layout)
    views = front.seen(SinusoidalExplorer, **params, view="similarity").views
    np.testing.assert_allclose(views["table"], pe, atol=1e-9)
    similarity = views["beside"][1]
    np.testing.assert_allclose(similarity, [pe[9] @ row for row in pe], atol=1e-9)
    assert similarity.argmax() == 9 and math.isclose(similarity[9], 8, rel_tol=1e-6)
    np.testing.assert_allclose(similarity[:9], similarity[10:19][::-1], atol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_challenge_is_measured(layout):
    for d_model, positions, base in itertools.product((4, 8, 16, 64), (20, 64), (10, 1000, 1_000_000)):
        pe = sinusoidal(torch.arange(positions).double(), d_model, base=base, layout=layout)
        cosine = pe @ pe[0] / (d_model / 2)  # each row has the length √(d/2)
        best = 2 + int(cosine[2:].argmax())
        said = front.seen(SinusoidalExplorer, d_model=d_model, positions=positions, base=base, layout=layout)
        near = cosine[best] >= 0.99
        assert said.reached == (f"position {best}, cosine {cosine[best]:.4f}." if near else "")
