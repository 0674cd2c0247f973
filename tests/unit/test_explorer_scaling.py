"""The explorer of notebook 08: θ and θ′ from the papers' formulas, pair by pair."""

import math

import numpy as np
import pytest

from course import experiments
from tutorial_lib.explorers import ScalingExplorer
from tutorial_lib.explorers.scaling import LONGROPE, METHODS, MODELS


def theta(model, t):
    d, base, _ = MODELS[model]
    return base ** (-2 * t / d)


def scaled(model, method, s, times, t):
    """θ′ of pair t."""
    d, base, L = MODELS[model]
    th = theta(model, t)
    if method == "LongRoPE":  # a list for one model; as long as every text here is beyond L, the long one
        return th / LONGROPE.long[t] if model == "Phi-3.5-mini" else th
    ramp = {"YaRN": (1, 32), "Llama 3": (1, 4)}.get(method)
    if ramp:
        gamma = min(1, max(0, (L * th / (2 * math.pi) - ramp[0]) / (ramp[1] - ramp[0])))
        return (1 - gamma) * th / s + gamma * th
    if method == "dynamic NTK":
        s = s * times - (s - 1)
    return {"none": th, "PI": th / s, "larger base": (50 * base) ** (-2 * t / d)}.get(
        method, (base * s ** (d / (d - 2))) ** (-2 * t / d)
    )


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-5)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_the_views(method, model):
    d, _, L = MODELS[model]
    for s, times in ((2, 8), (8, 4)):
        here = dict(model=model, method=method, s=s, times=times, pair=d // 2 - 3)
        scene, ratio = (ScalingExplorer.scene(**here, view=view) for view in ("turns", "θ′/θ"))
        old = np.array([theta(model, t) for t in range(d // 2)])
        new = np.array([scaled(model, method, s, times, t) for t in range(d // 2)])
        x, both = np.arange(d // 2), 2 * math.pi / np.array([old, new])
        left, turns, ratio = scene.views["wavelengths"], scene.views["beside"], ratio.views["beside"]
        close(left.array(), [x, *both])
        close(turns.array(), [x, L / both[0], times * L / both[1]])
        close(ratio.array(), [x, new / old])
        assert list(left.levels.values()) == [L, times * L] and left.logy and turns.logy
        assert list(turns.levels.values()) == [1] and ratio.levels == {f"1/s = {1 / s:.4g}": 1 / s}
        assert {view.mark for view in (left, turns, ratio)} == {d // 2 - 3}
        slow = L / both[0] < 1
        unseen = slow & (times * new > old * (1 + 1e-6))
        assert (
            f"{slow.sum()} of {d // 2} pairs make less than a whole turn in training, and "
            f"{unseen.sum()} reach angles that they never saw"
        ) in scene.description
        assert turns.readout.endswith("angles never seen." if unseen[-3] else "no angle is new.")
        fast = (new / old)[: d // 8].min() >= 0.99
        said = ScalingExplorer.reached(**ScalingExplorer.settings(**here))
        assert bool(said) == (not unseen.any() and bool(fast)), (s, times)


def test_what_the_methods_do_at_the_nominal_factor():
    won = {
        times: {
            method
            for method in METHODS
            if ScalingExplorer.reached(**ScalingExplorer.settings(method=method, s=4, times=times))
        }
        for times in (3, 4, 6)
    }
    assert won == {3: set(), 4: {"YaRN", "Llama 3"}, 6: set()}  # 3 L is not far enough, 6 L too far for s = 4


def test_a_model_with_fewer_pairs_has_a_shorter_slider():
    explorer = ScalingExplorer(model="Llama 2 7B", pair=63)
    explorer.move(model="a small one")
    assert explorer.params["pair"] == 7


def test_yarn_says_its_factor():
    text = ScalingExplorer.scene(method="YaRN", s=16).description
    assert text.endswith(f"cosines and sines are multiplied by {0.1 * math.log(16) + 1:.3f}.")
    assert "multiplied" not in ScalingExplorer.scene(method="PI", s=16).description


def test_the_loss_under_the_dials_is_the_recorded_one():
    record = experiments.load("position_gap")
    gaps, again = record.settings["gaps"], record.values("repeat", scaling="YaRN, s = 4")
    scene = ScalingExplorer.scene(method="YaRN", s=4, times=1, loss="shown")
    x, y = scene.views["loss"].array()
    close(x * 1000, [gap + record.settings["length"] for gap in gaps])
    close(y, np.mean(again, 0).round(3))
    low, high = (np.mean(again, 0)[gaps.index(gap)] for gap in (7000, 9000))  # 8,192 lies between
    at = low + (8192 - 7160) / 2000 * (high - low)
    assert f"loss {at:.2f} at this distance" in scene.description
    for other in ({"method": "Llama 3"}, {"s": 2, "method": "PI"}, {"model": "Llama 3 8B"}):
        scene = ScalingExplorer.scene(**other, loss="shown")
        assert "loss" not in scene.views
        assert scene.description.endswith("SmolLM2's loss is not measured here.")
    assert "loss" not in ScalingExplorer.scene(method="YaRN").views
