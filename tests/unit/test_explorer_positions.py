"""The explorer of notebook 00: its record is what the model does."""

import pytest

from tutorial_lib.explorers import positions
from tutorial_lib.explorers.positions import LENGTH, MODES, TEXTS, PositionsExplorer
from workshop import front


def test_the_record_is_what_the_model_expects():
    measured = positions.measure()
    assert list(measured) == list(TEXTS)
    for name, rows in measured.items():
        for row, kept in zip(rows, positions.record()[name], strict=True):
            assert row[:2] == kept[:2] and len(kept) >= 2 + positions.SHOWN
            found = {guess[0]: guess[1:] for guess in row[2:]}
            for word, *both in kept[2:]:
                if word in found:  # the last of the likely ones may be another one elsewhere
                    assert found[word] == pytest.approx(both, abs=0.02), (name, row[0], word)


@pytest.mark.parametrize("name", TEXTS)
def test_the_record_has_the_whole_text(name):
    rows = positions.record()[name]
    assert len(rows) == LENGTH - 1
    assert " ".join([rows[0][0], *(row[1] for row in rows)]).replace(" ,", ",") == TEXTS[name]
    assert all(row[2][0] == row[1] for row in rows)


def test_before_anything_stands_before_it_a_position_makes_no_difference():
    for rows in positions.record().values():
        assert all(on == off for _, on, off in rows[0][2:])


def test_switching_off_costs_the_last_word_most_of_its_probability():
    for name, loser in (("cat → dog", "cat"), ("dog → cat", "dog")):
        before, after = (
            front.seen(PositionsExplorer, positions=mode, text=name).description for mode in MODES
        )
        assert f"expects “{loser}” with 0.9" in before and f"“{loser}” comes next" in after
        _, on, off = positions.record()[name][-1][2]
        assert on > 0.9 and off < 0.1


def test_the_challenge_asks_for_a_better_guess_without_positions():
    assert not front.seen(PositionsExplorer, word=2).reached
    said = front.seen(PositionsExplorer, word=2, positions="switched off")
    assert said.reached == "“the” had 0.166 as trained, and has 0.177 now."
