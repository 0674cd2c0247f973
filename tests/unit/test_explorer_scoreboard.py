"""The explorer of notebook 09: what the filters leave, in which order, and what is marked."""

import numpy as np
import pytest

from tutorial_lib.encodings import DOORS
from tutorial_lib.explorers import ScoreboardExplorer as Explorer
from tutorial_lib.explorers.scoreboard import SHORT, TITLES, filtered, rows

COLUMNS = list(SHORT)


def names(**some):
    return filtered(Explorer.settings(**some))


@pytest.mark.parametrize("door", DOORS)
def test_a_door_leaves_those_that_open_it(door):
    assert set(names(door=door)) == {name for name, row in rows().items() if door in row["doors"]}


def test_the_other_filters():
    tried = {name for name, row in rows().items() if "shift" in row}
    assert set(names(shift="relative")) | set(names(shift="absolute")) == tried
    assert set(names()) == set(rows())
    assert "hybrid-sum" in names(shift="relative") and "fire" in names(shift="absolute")
    assert set(names(longer="tested")) == {name for name, row in rows().items() if "tail" in row}
    steady = names(longer="steady")
    assert "alibi" in steady and "rotary" not in steady and "table" not in steady
    assert names(door="values", shift="absolute") == ()


@pytest.mark.parametrize("sort", COLUMNS)
def test_the_best_come_first_and_those_without_a_number_last(sort):
    order = [rows()[name].get(sort) for name in names(sort=sort)]
    numbers = [x for x in order if x is not None]
    assert numbers == sorted(numbers, reverse=sort in ("apart", "won"))
    assert order[len(numbers) :] == [None] * (len(order) - len(numbers))


def test_the_board_shows_ranks():
    scene = Explorer.scene(sort="tail", longer="tested", door="bias", row=1, other=0)
    heat = scene.views["board"]
    left = names(sort="tail", longer="tested", door="bias")
    assert list(heat.yticks) == list(left) and np.shape(heat.z) == (len(left), len(SHORT))
    place = COLUMNS.index("won")
    assert [np.isnan(row[place]) for row in heat.z] == ["won" not in rows()[name] for name in left]
    assert heat.mark == (1, COLUMNS.index("tail"))
    assert f"marked is {left[1]} (bias), rise of the tail loss +" in scene.description
    assert f"beside it {left[0]} (bias), rise" in scene.description
    tail = COLUMNS.index("tail")
    assert [row[tail] for row in heat.z] == sorted((row[tail] for row in heat.z), reverse=True)


def test_it_opens_on_the_two_of_the_puzzle():
    start = Explorer.settings()
    assert [names()[start[which]] for which in ("row", "other")] == ["alibi", "rotary"]


def test_the_picture_without_a_browser_has_every_name_and_no_hole():
    """What was not measured is hatched, on a ground of its own: not white, nor what lies behind the page."""
    (ax, _bar) = Explorer.figure().axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(names())
    assert len({tick.get_text() for tick in ax.get_xticklabels()} - {""}) == len(SHORT)
    assert ax.patch.get_hatch() and ax.patch.get_facecolor()[:3] != (1, 1, 1)
    assert not Explorer.figure(door="rotate", longer="tested", shift="absolute").axes[0].patch.get_hatch()


def test_long_lists_are_whole_and_empty_ones_said():
    heat = Explorer.scene().views["board"]
    assert list(heat.yticks) == list(names()) and len(heat.yticks) == len(rows())
    empty = Explorer.scene(door="values", shift="absolute")
    assert empty.views["board"].yticks == ["none"] and empty.views["board"].mark is None
    assert f"0 of {len(rows())} encodings" in empty.description and "loosen a filter" in empty.description


def test_what_the_browser_gets_is_the_board():
    """In any order of columns and rows: nothing of it stands in the browser's code."""
    sent = Explorer.constants()
    assert sent["columns"] == {key: TITLES[key] for key in SHORT}
    for row, (name, own) in zip(sent["board"], rows().items(), strict=True):
        assert row["name"] == name and row["doors"] == list(own["doors"])
        for value, text, key in zip(row["values"], row["texts"], SHORT, strict=True):
            assert (value is None) == (text == "–") == (key not in own)
            assert value is None or value == pytest.approx(own[key], rel=1e-9)


def test_the_challenge():
    """One that is nowhere worse; not one that is worse somewhere, nor itself, nor without a loss."""
    at = {name: n for n, name in enumerate(names())}

    def reached(a, b):
        return Explorer.reached(**Explorer.settings(row=at[a], other=at[b]))

    assert not Explorer.reached(**Explorer.settings())
    assert reached("kerple", "cope") == "kerple is better than cope in 5 of 8 columns, and worse in none."
    assert not reached("cope", "kerple") and not reached("kerple", "kerple")
    assert not reached("clipped", "alibi")  # which needs no parameters
    assert not reached("none", "sinusoidal-2d") and not reached("rotary", "rotary-axial")  # no loss at L
    assert not Explorer.reached(**Explorer.settings(door="values", shift="absolute"))
