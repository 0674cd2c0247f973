"""The explorer of notebook 07: its numbers against e^(−m·distance), pair by pair."""

import math

import numpy as np
import pytest

from tutorial_lib.encodings.alibi import AsymmetricALiBi, slopes
from tutorial_lib.explorers import ALiBiExplorer
from tutorial_lib.explorers.alibi import FORMS, TEXT


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
    left, right = scene.views["bias"], scene.views["weights"]
    seen = 6 if form in ("penalty", "released") else 8
    close(left.array(), [np.arange(seen), bias[5, :seen]])
    close(right.array()[head], w[5] / w[5].max())
    assert right.array().shape == (heads, 8)
    assert left.readout == f"query 5, key 3: bias {bias[5, 3]:.4g}"
    assert right.readout == f"head {head}, key 3: weight {w[5, 3]:.4g}"
    assert f"a bias of {bias[5, 3]:.4g} and a weight of {w[5, 3]:.4g} for the key at 3" in scene.description
    assert (left.mark, right.mark) == (3, (head, 3))
    for distance in np.log(10_000) / np.array([m for m in sides(heads, head, form) if m < math.inf]):
        assert f"{distance:,.0f} tokens" in scene.description


def test_the_penalty_and_the_released_code_leave_the_same_weights():
    penalty, released = (ALiBiExplorer.scene(form=form).views for form in ("penalty", "released"))
    close(penalty["weights"].array(), released["weights"].array())
    assert penalty["bias"].ys["bias"].max() == 0 < released["bias"].ys["bias"].max()


def test_a_key_that_is_masked_has_no_bias():
    scene = ALiBiExplorer.scene(query=4, key=9)
    assert scene.views["bias"].readout == "query 4, key 9: masked"
    assert "may not look at the key at 9" in scene.description and scene.views["bias"].mark is None
    assert scene.views["weights"].readout == "head 1, key 9: weight 0"
    for form in FORMS:
        own = {"released": "1"}.get(form, "0")
        views = ALiBiExplorer.scene(query=4, key=4, form=form).views
        assert views["bias"].readout == f"query 4, key 4: bias {own}"


def test_there_is_a_word_for_each_position():
    assert len(TEXT.split()) == max(ALiBiExplorer.parameters["length"].values)


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
