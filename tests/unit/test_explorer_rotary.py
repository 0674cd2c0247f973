"""The explorer of notebook 06: turned by hand in complex numbers, it is the same."""

import cmath
import math
import re

import numpy as np
import pytest

from tutorial_lib.explorers import RotaryExplorer
from tutorial_lib.explorers.rotary import CONTENTS, contents

LAYOUTS = ("interleaved", "half")


def channels(t, pairs, layout):
    return (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + pairs)


def by_hand(m, n, pairs, base, layout, content="random"):
    """q and k as complex numbers, one for each pair, turned and not: four lists."""
    numbers = []
    for x in contents(content, pairs, base, layout):
        x = x.flatten().tolist()
        numbers.append([complex(x[a], x[b]) for a, b in (channels(t, pairs, layout) for t in range(pairs))])
    turned = [
        [z * cmath.exp(1j * p * base ** (-t / pairs)) for t, z in enumerate(x)]
        for x, p in zip(numbers, (m, n), strict=True)
    ]
    return [*turned, *numbers]


def score(q, k, pairs):
    return sum((q[t] * k[t].conjugate()).real for t in pairs)


def close(actual, expected, tolerance=2e-6):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), atol=tolerance, rtol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pairs", [2, 16])
def test_the_arrows_are_the_pair_before_and_after_turning(pairs, layout):
    for m, n, pair in ((20, 12, 1), (0, 32, pairs - 1), (37, 0, 0)):
        scene = RotaryExplorer.scene(m=m, n=n, pairs=pairs, pair=pair, base=10, layout=layout)
        plane = scene.views["plane"]
        q, k, q_before, k_before = (x[pair] for x in by_hand(m, n, pairs, 10, layout))
        assert list(plane.ends) == ["q, turned", "k, turned", "q", "k"]
        close(plane.array(), np.array([[z.real, z.imag] for z in (q, k, q_before, k_before)]).T)
        assert (plane.xlabel, plane.ylabel) == tuple(f"channel {c}" for c in channels(pair, pairs, layout))
        own, all_of_them = map(
            float,
            re.fullmatch(rf"q·k of pair {pair}: (\S+); of all {pairs} pairs: (\S+)", plane.readout).groups(),
        )
        one, both = by_hand(m, n, pairs, 10, layout)[:2]
        close([own, all_of_them], [score(one, both, [pair]), score(one, both, range(pairs))], 6e-5)
        degrees = math.degrees(10 ** (-pair / pairs))
        assert f"q has turned by {m * degrees:.1f}° and k by {n * degrees:.1f}°" in scene.description


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("content", CONTENTS)
def test_the_scores_are_those_of_every_key(content, layout):
    view = RotaryExplorer.scene(m=9, pairs=4, pair=2, base=1000, layout=layout, content=content, n=5).views[
        "beside"
    ]
    expected = []
    for n in range(33):
        q, k = by_hand(9, n, 4, 1000, layout, content)[:2]
        expected.append([score(q, k, range(4)), score(q, k, [2])])
    close(view.array(), [np.arange(33), *np.array(expected).T])
    assert view.mark == 5
    lo, hi = view.ylim
    assert lo < view.array()[1:].min() and view.array()[1:].max() < hi


def test_the_axis_stands_still_while_positions_move():
    limits = {RotaryExplorer.scene(m=m, n=n).views["beside"].ylim for m in (0, 20, 40) for n in (0, 32)}
    assert len(limits) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_query_may_be_made_to_meet_a_key_eight_back(layout):
    for m in (8, 20, 40):
        scores = RotaryExplorer.scene(m=m, pairs=16, layout=layout, content="best 8 back").views["beside"]
        assert scores.array()[1].argmax() == m - 8
    alike = RotaryExplorer.scene(m=20, pairs=16, layout=layout, content="alike").views["beside"]
    assert alike.array()[1].argmax() == 20


def test_the_angles_of_all_pairs():
    view = RotaryExplorer.scene(m=20, n=12, pairs=16, pair=5, base=10, view="angles").views["beside"]
    for t in range(16):
        for line, p in zip(view.array()[1:], (20, 12, -8), strict=True):
            assert math.isclose(
                line[t], math.degrees(cmath.phase(cmath.exp(1j * p * 10 ** (-t / 16)))), abs_tol=1e-4
            )
    assert view.mark == 5


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_matrix_mixes_the_channels_of_a_pair(layout):
    view = RotaryExplorer.scene(pairs=4, pair=3, layout=layout, view="channels").views["beside"]
    expected = np.eye(8)
    for a, b in (channels(t, 4, layout) for t in range(4)):
        expected[a, b], expected[b, a] = -1, 1  # (a, b) → (a·cos − b·sin, a·sin + b·cos)
    close(view.array(), expected * math.sqrt(0.5))
    assert view.mark == channels(3, 4, layout)


@pytest.mark.parametrize("base", [1000, 10_000])
@pytest.mark.parametrize("pairs", [2, 4])
def test_the_challenge_is_measured(pairs, base):
    for m in range(41):
        for n in range(33):
            said = RotaryExplorer.reached(**RotaryExplorer.settings(m=m, n=n, pairs=pairs, base=base))
            assert bool(said) == (m >= 30 and n - m == -8), (m, n)
    mirrored = RotaryExplorer.settings(m=30, n=22, content="alike", layout="half")
    assert RotaryExplorer.reached(**mirrored).endswith(
        "with m = 30 and n = 22, as with m = 20 and n = 12: n − m is -8 both times."
    )
