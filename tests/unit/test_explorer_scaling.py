"""The explorer of notebook 08: which methods win its challenge, and the loss under its dials."""

import math

import numpy as np

from course import experiments
from tutorial_lib.explorers import ScalingExplorer
from tutorial_lib.explorers.scaling import METHODS
from workshop import front


def test_what_the_methods_do_at_the_nominal_factor():
    won = {
        times: {
            method
            for method in METHODS
            if front.seen(ScalingExplorer, method=method, s=4, times=times).reached
        }
        for times in (3, 4, 6)
    }
    assert won == {3: set(), 4: {"YaRN", "Llama 3"}, 6: set()}  # 3 L is not far enough, 6 L too far for s = 4


def test_a_model_with_fewer_pairs_has_a_shorter_slider():
    explorer = ScalingExplorer(model="Llama 2 7B", pair=63)
    explorer.move(model="a small one")
    assert explorer.params["pair"] == 7


def test_yarn_says_its_factor():
    text = front.seen(ScalingExplorer, method="YaRN", s=16).description
    assert text.endswith(f"cosines and sines are multiplied by {0.1 * math.log(16) + 1:.3f}.")
    assert "multiplied" not in front.seen(ScalingExplorer, method="PI", s=16).description


def test_the_loss_under_the_dials_is_the_recorded_one():
    record = experiments.load("position_gap")
    gaps, again = record.settings["gaps"], record.values("repeat", scaling="YaRN, s = 4")
    said = front.seen(ScalingExplorer, method="YaRN", s=4, times=1, loss="shown")
    x, y = said.views["loss"]
    np.testing.assert_allclose(x * 1000, [gap + record.settings["length"] for gap in gaps])
    np.testing.assert_allclose(y, np.mean(again, 0).round(3))
    low, high = (np.mean(again, 0)[gaps.index(gap)] for gap in (7000, 9000))  # 8,192 lies between
    at = low + (8192 - 7160) / 2000 * (high - low)
    assert f"loss {at:.2f} at this distance" in said.description
    for other in ({"method": "Llama 3"}, {"s": 2, "method": "PI"}, {"model": "Llama 3 8B"}):
        said = front.seen(ScalingExplorer, **other, loss="shown")
        assert "loss" not in said.views
        assert said.description.endswith("SmolLM2's loss is not measured here.")
    assert "loss" not in front.seen(ScalingExplorer, method="YaRN").views
