"""The explorer of notebook 06: where its scores are largest, and what wins its challenge."""

import itertools

import pytest

from tutorial_lib.explorers import RotaryExplorer
from workshop import front

LAYOUTS = ("interleaved", "half")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_query_may_be_made_to_meet_a_key_eight_back(layout):
    for m in (8, 20, 40):
        met = front.seen(RotaryExplorer, m=m, pairs=16, layout=layout, content="best 8 back")
        assert met.views["beside"][1].argmax() == m - 8
    alike = front.seen(RotaryExplorer, m=20, pairs=16, layout=layout, content="alike")
    assert alike.views["beside"][1].argmax() == 20


def test_what_stays_as_it_is_is_said():
    """Two of four pairs turn, or none of the marked one."""
    said = {
        turning: front.seen(RotaryExplorer, turning=turning, pair=3, view="channels").description
        for turning in ("all", "partial", "p-RoPE")
    }
    assert "only" not in said["all"] and "6 and 7 are mixed" in said["all"]
    assert "only the first 4 of 8 channels turn" in said["partial"] and "stay as they are" in said["partial"]
    assert "only the fastest 2 of 4 pairs turn" in said["p-RoPE"] and "stay as they are" in said["p-RoPE"]


@pytest.mark.parametrize("base", [1000, 10_000])
@pytest.mark.parametrize("pairs", [2, 4])
def test_the_challenge_is_measured(pairs, base):
    asked = [
        {"m": m, "n": n, "pairs": pairs, "base": base} for m, n in itertools.product(range(41), range(33))
    ]
    for params, said in zip(asked, front.ask(RotaryExplorer, *asked), strict=True):
        m, n = params["m"], params["n"]
        assert bool(said.reached) == (m >= 30 and n - m == -8), (m, n)
    mirrored = front.seen(RotaryExplorer, m=30, n=22, content="alike", layout="half")
    assert mirrored.reached.endswith(
        "with m = 30 and n = 22, as with m = 20 and n = 12: n − m is -8 both times."
    )
