"""The explorer of notebook 09: what the filters leave, in which order, and what is marked."""

import numpy as np
import pytest

from tutorial_lib.encodings import DOORS
from tutorial_lib.explorers import ScoreboardExplorer as Explorer
from tutorial_lib.explorers.scoreboard import TITLES, filtered, rows
from workshop import front

COLUMNS = list(TITLES)


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
    said = front.seen(Explorer, sort="tail", longer="tested", door="bias", row=1, other=0)
    z, left = said.views["board"], names(sort="tail", longer="tested", door="bias")
    assert z.shape == (len(left), len(TITLES))
    assert np.isnan(z[:, COLUMNS.index("won")]).tolist() == ["won" not in rows()[name] for name in left]
    assert f"marked is {left[1]} (bias), rise of the tail loss +" in said.description
    assert f"beside it {left[0]} (bias), rise" in said.description
    tail = z[:, COLUMNS.index("tail")].tolist()
    assert tail == sorted(tail, reverse=True)


def test_it_opens_on_the_two_of_the_puzzle():
    start = Explorer.settings()
    assert [names()[start[which]] for which in ("row", "other")] == ["alibi", "rotary"]


def test_a_board_of_three_has_one_that_loses_in_every_column():
    three = {"which": "three", "other": names(which="three").index("rotary")}
    assert set(names(which="three")) == {"alibi", "t5", "rotary"}
    assert not front.seen(Explorer, **three, row=0).reached  # ALiBi has a higher loss at L
    said = front.seen(Explorer, **three, row=names(which="three").index("t5")).reached
    assert said == "t5 is better than rotary in 4 of 4 columns, and worse in none."


def test_long_lists_are_whole_and_empty_ones_said():
    assert len(front.seen(Explorer).views["board"]) == len(names()) == len(rows())
    empty = front.seen(Explorer, door="values", shift="absolute").description
    assert f"0 of {len(rows())} encodings" in empty and "loosen a filter" in empty


def test_what_the_browser_gets_is_the_board():
    """In any order of columns and rows: nothing of it stands in the browser's code."""
    sent = Explorer.constants()
    assert sent["columns"] == TITLES
    for row, (name, own) in zip(sent["board"], rows().items(), strict=True):
        assert row["name"] == name and row["doors"] == list(own["doors"])
        for value, text, key in zip(row["values"], row["texts"], TITLES, strict=True):
            assert (value is None) == (text == "–") == (key not in own)
            assert value is None or value == pytest.approx(own[key], rel=1e-9)


def test_the_challenge():
    """One that is nowhere worse; not one that is worse somewhere, nor itself, nor without a loss."""
    at = {name: n for n, name in enumerate(names())}

    def reached(a, b):
        return front.seen(Explorer, row=at[a], other=at[b]).reached

    assert not front.seen(Explorer).reached
    assert reached("kerple", "cope") == "kerple is better than cope in 5 of 8 columns, and worse in none."
    assert not reached("cope", "kerple") and not reached("kerple", "kerple")
    assert not reached("clipped", "alibi")  # which needs no parameters
    assert not reached("none", "sinusoidal-2d") and not reached("rotary", "rotary-axial")  # no loss at L
    assert not front.seen(Explorer, door="values", shift="absolute").reached
