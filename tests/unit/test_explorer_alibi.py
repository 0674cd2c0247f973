"""The explorer of notebook 07: its numbers against e^(−m·distance), pair by pair."""

import math

import numpy as np
import pytest

from tutorial_lib.encodings.alibi import AsymmetricALiBi, slopes
from tutorial_lib.explorers import ALiBiExplorer
from tutorial_lib.explorers.alibi import FORMS


def sides(heads, head, form):
    """The slopes of a head behind and ahead; infinite where it may not look."""
    if form == "asymmetric":
        return AsymmetricALiBi(heads).left[head], AsymmetricALiBi(heads).right[head]
    m = float(slopes(heads)[head])
    return m, m if form == "symmetric" else math.inf


def by_hand(heads, head, length, form):
    """Bias and weights, pair by pair; a masked bias is NaN."""
    behind, ahead = sides(heads, head, form)
    bias, w = np.full((2, length, length), np.nan)
    for i in range(length):
        for j in range(length):
            m = behind if j <= i else ahead
            w[i, j] = math.exp(-m * abs(i - j))
            if m < math.inf:
                bias[i, j] = m * j if form == "released" else -m * abs(i - j)
    return bias, w / w.sum(1, keepdims=True)


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("heads", "head"), [(8, 1), (3, 2), (12, 10)])
def test_bias_and_weights(heads, head, form):
    here = dict(heads=heads, head=head, length=8, form=form, query=5, key=3)
    bias, w = by_hand(heads, head, 8, form)
    scene = ALiBiExplorer.scene(**here)
    left, right = scene.views["bias"], scene.views["beside"]
    close(left.array(), bias)
    close(right.array(), w / w.max(1, keepdims=True))
    assert left.readout == f"query 5, key 3: bias {bias[5, 3]:.4g}"
    assert right.readout == f"query 5, key 3: weight {w[5, 3]:.4g}"
    assert f"a bias of {bias[5, 3]:.4g} and a weight of {w[5, 3]:.4g} for the key at 3" in scene.description
    assert left.mark == right.mark == (5, 3) and left.pick == right.pick == ("query", "key")
    line = ALiBiExplorer.scene(**here, view="one query").views["beside"]
    close(line.array(), [np.arange(8), w[5]])
    assert (line.mark, line.pick) == (3, "key")
    assert line.levels == {"equal shares": 1 / (6 if form in ("penalty", "released") else 8)}


def test_the_penalty_and_the_released_code_leave_the_same_weights():
    views = [ALiBiExplorer.scene(form=form).views for form in ("penalty", "released")]
    close(*[each["beside"].array() for each in views])
    low, high = [each["bias"].limits for each in views]
    assert low[1] == high[0] == 0 and low[0] < 0 < high[1]


def test_a_key_that_is_masked_has_no_bias():
    scene = ALiBiExplorer.scene(query=4, key=9)
    assert scene.views["bias"].readout == "query 4, key 9: masked"
    assert "may not look at the key at 9" in scene.description
    assert scene.views["beside"].readout == "query 4, key 9: weight 0"
    assert ALiBiExplorer.scene(query=4, key=4).views["bias"].readout == "query 4, key 4: bias 0"


def test_the_colours_of_all_heads_can_be_compared():
    assert len({ALiBiExplorer.scene(head=head).views["bias"].limits for head in range(8)}) == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("heads", [3, 8, 12])
def test_slopes_and_horizons(heads, form):
    m = np.array([sides(heads, head, form) for head in range(heads)]).T
    lines = m[:1] if form in ("penalty", "released") else m
    views = {view: ALiBiExplorer.scene(heads=heads, head=2, form=form, view=view).views["beside"]
             for view in ("slopes", "horizons")}
    close(views["slopes"].array(), [np.arange(heads), *lines])
    close(views["horizons"].array()[1:], np.log(10_000) / lines)
    for view in views.values():
        low, high = view.ylim
        assert low < view.array()[1:].min() and view.array()[1:].max() < high
        assert (view.mark, view.pick) == (2, "head")
    assert views["horizons"].levels == {"the 32 tokens shown": 32}
    for distance in np.log(10_000) / lines[:, 2]:
        assert f"{distance:,.0f} tokens" in ALiBiExplorer.scene(
            heads=heads, head=2, form=form).description


def test_the_description_says_who_is_a_mirror():
    texts = {form: ALiBiExplorer.scene(form=form).description for form in FORMS}
    assert texts["symmetric"].endswith("a key behind and one as far ahead weigh the same.")
    assert texts["asymmetric"].endswith("a key behind and one as far ahead weigh differently.")


def test_the_challenge_is_measured():
    found = set()
    for heads in (3, 4, 8, 12, 16):
        for head in range(heads):
            for form in FORMS:
                said = ALiBiExplorer.reached(**ALiBiExplorer.settings(heads=heads, head=head, form=form))
                far = math.log(10_000) / sides(heads, head, form)[0]
                assert bool(said) == (100 <= far <= 110)
                if said:
                    found.add((heads, head, form == "asymmetric"))
                    assert said.endswith(f"the horizon {far:.0f}.")
    assert found == {(12, 11, False), (16, 6, False), (8, 3, True)}
