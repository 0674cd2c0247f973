"""The explorer of learned tables: its numbers come from the real table, and what was seen there is there."""

import math
import re

import numpy as np
import pytest
import torch

from course import experiments
from tutorial_lib.data import load_minilm_positions
from tutorial_lib.encodings import sinusoidal
from tutorial_lib.explorers import LearnedExplorer
from tutorial_lib.explorers.learned import TABLES
from workshop import front


def original(name):
    if name == "MiniLM":
        return load_minilm_positions().numpy()
    return sinusoidal(torch.arange(512).double(), 384).numpy() if name == "sinusoids" else None


def interpolated(rows, length):
    """The rows at ``length`` places spread evenly from the first to the last, column by column."""
    at = np.linspace(0, len(rows) - 1, length)
    return np.stack([np.interp(at, np.arange(len(rows)), column) for column in rows.T], 1)


def cosine(a, b):
    return a @ b / math.sqrt((a @ a) * (b @ b))


@pytest.mark.parametrize("length", [512, 1024, 2048])
@pytest.mark.parametrize("name", ["MiniLM", "sinusoids"])
def test_the_views_show_the_table(name, length):
    params = {"name": name, "length": length, "shown": 32, "position": 9, "other": 30}
    rows = interpolated(original(name), length)
    scenes = {
        view: front.seen(LearnedExplorer, **params, view=view).views
        for view in ("cosine", "norm", "neighbours")
    }
    z, tolerance = scenes["cosine"]["cosines"], {"atol": 3e-3 if name == "MiniLM" else 1e-6}  # 8 bits
    said = front.seen(LearnedExplorer, **params).description
    np.testing.assert_allclose(z, [[cosine(a, b) for b in rows[:32]] for a in rows[:32]], **tolerance)
    marked = re.search(r"its cosine with row 30, ([−\d.]+);", said)[1].replace("−", "-")
    assert abs(float(marked) - cosine(rows[9], rows[30])) < 8e-3
    beside = {view: views["beside"][1] for view, views in scenes.items()}
    np.testing.assert_allclose(beside["cosine"], z[9], **tolerance)
    np.testing.assert_allclose(beside["norm"], [math.sqrt(a @ a) for a in rows[:32]], rtol=2e-3)
    np.testing.assert_allclose(
        beside["neighbours"], [cosine(rows[p], rows[p + 1]) for p in range(32)], **tolerance
    )


def test_many_rows_are_shown_by_every_second_or_fourth():
    for shown, every in ((128, 1), (256, 2), (512, 4)):
        heat = front.seen(LearnedExplorer, shown=shown, position=9, other=101).views["cosines"]
        assert heat.shape == (128, 128)
        rows = original("MiniLM")
        assert abs(heat[5, 31] - cosine(rows[5 * every], rows[31 * every])) < 3e-3


def test_the_last_row_of_a_table_has_no_next_one():
    views = front.seen(LearnedExplorer, shown=512, view="neighbours", position=511).views
    assert views["beside"].shape == (2, 511)
    longer = front.seen(LearnedExplorer, length=1024, shown=512, view="neighbours", position=511).views
    assert longer["beside"].shape == (2, 512)


def test_random_tables_differ_in_size_only():
    at = {name: front.seen(LearnedExplorer, name=name, view="norm") for name in TABLES if "random" in name}
    small, large = (scene.views for scene in at.values())
    np.testing.assert_allclose(large["cosines"], small["cosines"], atol=1e-5)
    norms = [views["beside"][1].mean() for views in (small, large)]
    np.testing.assert_allclose(norms, [0.02 * math.sqrt(384), math.sqrt(384)], rtol=0.02)
    np.testing.assert_allclose(large["beside"][2], 0.02 * math.sqrt(384), rtol=1e-6)


def test_the_challenge_is_measured():
    """One row of all tables, at any length, is so much longer than both its neighbours."""
    norms = {
        (name, 512): np.linalg.norm(rows, axis=1)
        for name in ("MiniLM", "sinusoids")
        for rows in [original(name)]
    }
    norms["MiniLM", 1024] = np.linalg.norm(interpolated(original("MiniLM"), 1024), axis=1)
    for (name, length), norm in norms.items():
        for position in [*range(0, 120, 9), *range(120, 135), *range(500, 512, 3), 511]:
            said = front.seen(
                LearnedExplorer, name=name, length=length, shown=512, position=position, look="waves"
            ).reached  # what is beside it does not count
            found = 0 < position < length - 1 and norm[position] >= 1.4 * max(
                norm[position - 1], norm[position + 1]
            )
            assert bool(said) == found == (name == "MiniLM" and (length, position) == (512, 127))
    assert said == ""
    said = front.seen(LearnedExplorer, shown=128, position=127).reached
    assert said == (
        "row 127 has the norm 0.69, its neighbours 0.45 and 0.48; the median of all rows before "
        "it is 0.42, of all after it 0.48."
    )


def test_more_rows_make_neighbours_alike():
    near = [
        front.seen(LearnedExplorer, length=length, shown=512).description.split("cosine is ")[1][:4]
        for length in (512, 1024, 2048)
    ]
    assert float(near[0]) < 0.86 and float(near[0]) < float(near[1]) < float(near[2])
    assert float(near[2]) >= 0.98


def test_the_hands_are_the_rows_in_the_planes_of_the_waves():
    """Each hand against a Fourier sum, written the slow way; a table stretched twice turns half as fast."""
    rows = original("MiniLM")
    scene = front.seen(LearnedExplorer, look="waves", shown=128, position=20)
    found = scene.views["beside"]
    for k, turns in enumerate((90, 30, 9, 3, 1)):
        angle = 2 * np.pi * turns * np.arange(509) / 509
        planes = [rows[1:510].T @ wave(angle) for wave in (np.cos, np.sin)]
        ends = np.stack([rows @ plane for plane in planes], 1)
        ends -= ends[1:510].mean(0)
        size = math.sqrt((ends[1:510] ** 2).sum(1).mean())
        np.testing.assert_allclose(found[:, k], ends[20] / size, atol=0.02)  # 8 bits
    assert "five hands, for waves of 6, 17, 57, 170, 509 rows" in scene.description
    stretched = front.seen(
        LearnedExplorer, look="waves", name="sinusoids", length=1024, shown=512, position=200
    )
    plain = front.seen(LearnedExplorer, look="waves", name="sinusoids", shown=512, position=100)
    np.testing.assert_allclose(stretched.views["beside"], plain.views["beside"], atol=0.15)


def test_the_hands_of_minilm_turn_once_a_period():
    """In 300 rows, a third of which say it, and only there: random rows jump."""

    def turned(name, wave):
        ends = [
            complex(
                *front.seen(LearnedExplorer, look="waves", name=name, shown=512, position=p).views["beside"][
                    :, wave
                ]
            )
            for p in range(150, 451, 3)
        ]
        steps = np.angle(np.array(ends[1:]) / np.array(ends[:-1]))
        return steps.sum() / (2 * np.pi), steps.std()

    for wave, period in ((1, 17), (2, 57)):
        turns, jump = turned("MiniLM", wave)
        assert abs(turns - 300 / period) < 2 and jump < 0.3
    assert turned("random, std 1", 1)[1] > 1


def test_stretching_costs_what_the_record_says():
    tails = experiments.load("lengths").values("tail", encoding="learned")
    for n, length in enumerate((512, 1024, 2048)):
        loss = np.mean([each[n] for each in tails])
        assert front.seen(LearnedExplorer, length=length).description.endswith(f"loss {loss:.2f} nats.")
