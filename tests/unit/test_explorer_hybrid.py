"""The mixer of hybrid scores against sums and a softmax written the slow way."""

import math

import numpy as np
import pytest

from tutorial_lib.explorers import HybridExplorer
from tutorial_lib.explorers.hybrid import HALVES, MIXED, NAMES, terms

OFF = dict.fromkeys(MIXED, 0)
IGNORED = {"query", "concat_half"}


def softmax(row):
    return [math.exp(x) / sum(math.exp(y) for y in row) for x in row]


def mixed(scales):
    return sum(scale * terms()[name].numpy() for name, scale in scales.items())


@pytest.mark.parametrize("without", NAMES)
def test_the_views_show_the_sum_and_the_change(without):
    scales = dict(zip(MIXED, (1, 4, 2, 3, 0, 1, 2), strict=True))
    views = HybridExplorer.scene(**scales, without=without).views
    e = mixed(scales)
    np.testing.assert_allclose(views["logits"].array(), e, rtol=1e-5, atol=1e-6)
    rest = e - scales[without.removesuffix("_half")] * terms()[without].numpy()
    change = [np.subtract(softmax(a), softmax(b)) for a, b in zip(e, rest, strict=True)]
    np.testing.assert_allclose(views["change"].array(), change, atol=1e-6)
    assert views["logits"].mark == views["change"].mark == (1, 2)
    readout = views["logits"].readout
    assert "q·k + 4·PE_i + 2·r_ij + 3·W_o[PE_i; r_ij] + TUPE + 2·MLP[PE_i; r_ij] = " in readout
    assert float(readout.rsplit("= ", 1)[1]) == pytest.approx(e[1, 2], abs=0.0051)
    numbers = readout.split("= ")[-2].replace(" - ", " + -").split(" + ")
    assert sum(map(float, numbers)) == pytest.approx(e[1, 2], abs=0.04)
    assert f"weight {softmax(e[1])[2]:.4f}, without {softmax(rest[1])[2]:.4f}" in views["change"].readout


def test_the_softmax_ignores_what_is_the_same_for_all_keys():
    for name, term in terms().items():
        constant = bool(((term - term[:, :1]).abs() < 1e-12).all())
        assert constant == (name in IGNORED), name
        assert term.abs().max() > 0.5, name
        scales = OFF | {"content": 1, "relative": 1, name.removesuffix("_half"): 4}
        scene = HybridExplorer.scene(**scales, without=name)
        change = scene.views["change"].array()
        assert (not change.any()) == (name in IGNORED), name
        assert ("the softmax does not see it" in scene.description) == (name in IGNORED)
        assert (abs(change).max() > 0.05) == (name not in IGNORED), name


def test_a_key_side_term_is_the_same_for_all_queries():
    key = terms()["key"]
    assert (key - key[:1]).abs().max() < 1e-12 < (key[0] - key[0, 0]).abs().max()


def test_a_linear_concatenation_is_the_sum_of_its_halves():
    """W_o[PE_i; r_ij] less its half PE_i depends on r alone; the network does not come apart."""
    for name, comes_apart in (("concat", True), ("mlp", False)):
        rest = (terms()[name] - terms()[f"{name}_half"]).numpy()
        for r in range(-3, 4):
            assert np.ptp(rest.diagonal(r)) < 1e-12
        half = terms()[f"{name}_half"].numpy()
        assert (np.ptp(half, axis=1).max() < 1e-12) == comes_apart


def test_what_is_off_changes_nothing():
    for name in NAMES:
        scene = HybridExplorer.scene(**OFF, without=name)
        assert "e_ij = 0;" in scene.description and f"{NAMES[name]} is off" in scene.description
        assert not scene.views["change"].array().any() and not scene.views["logits"].array().any()


def test_the_colours_hold_the_largest_logit_and_stay_where_they_can():
    limits = [HybridExplorer.scene(query=scale).views["logits"].limits for scale in range(5)]
    assert limits == [(-4, 4)] * 3 + [(-8, 8)] * 2


def test_the_challenge_is_measured():
    for name in NAMES:
        for scale in range(5):
            scales = OFF | {"relative": 2} | {name.removesuffix("_half"): scale}
            said = HybridExplorer.reached(**scales, without=name)
            least = scale * terms()[name].abs().min().item()
            assert bool(said) == (name in IGNORED and least > 1), (name, scale)
            assert not said or f"{NAMES[name]} changes every logit by {least:.2f} or more" in said
    assert {"query", "concat_half"} == IGNORED and set(HALVES) < set(NAMES)
