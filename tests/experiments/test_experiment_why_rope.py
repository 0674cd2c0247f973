"""The picture that answers why nearly all models use RoPE: it shows what its records hold."""

import pytest
from matplotlib.colors import to_hex

from course import experiments
from course.experiments import cost, long_range, scale, why_rope
from course.experiments.record import Record, Run
from course.experiments.sweep import spoken
from tutorial_lib.plots import png


def made(module, values) -> Record:
    """A record with ``values(cell)`` in every cell, for each of two seeds."""
    settings = {key: x for key, x in module.EXPERIMENT.presets["full"].items() if key != "protocol"}
    record = Record(module.EXPERIMENT.name, "full", "", settings, [0, 1], "cpu", 1, {})
    record.runs = [Run(cell, seed, values(cell), 0.0) for cell in module.cells(settings) for seed in (0, 1)]
    return record


@pytest.fixture(scope="module")
def records():
    return {
        "lengths": experiments.load("lengths"),
        "scale": made(
            scale,
            lambda cell: {
                "validation": 2.0,
                "tail": [2.0, 2.5],
                "mean": [2.0 + (cell["encoding"] != "rotary") * (1 + cell["size"]), 2.5],
            },
        ),
        "long_range": made(
            long_range,
            lambda cell: {
                "again": [1.0] * 5,
                "cut": [2.0] * 5,
                "new": [1.25 + (cell["encoding"] == "t5")] * 5,
            },
        ),
        "cost": made(
            cost,
            lambda cell: {
                f"{what} {way}": 3.0 * 2**20 if what == "held" else 1.5
                for what in ("time", "held")
                for way in ("none", "alibi, dense")
            },
        ),
    }


def drawn(ax):
    """What the panel's lines show, by their names."""
    return {line.get_label(): line.get_ydata().tolist() for line in ax.get_lines()}


def test_each_record_adds_its_panels(records):
    for count, names in ((2, ["lengths"]), (3, ["lengths", "long_range"]), (6, [*records])):
        some = {name: records[name] for name in names}
        fig = why_rope.figure(some)
        assert sum(bool(ax.get_title()) for ax in fig.axes) == count
        assert len(png(fig)) > 20_000
        words = why_rope.alt(some)
        assert words == " ".join(why_rope.alt({name: records[name]}) for name in names) and words.endswith(
            "."
        )


def test_every_panel_shows_its_numbers(records):
    at_L, beyond, size, use, step, memory = why_rope.figure(records).axes
    shown = {x.get_text() for x in at_L.get_yticklabels()}
    losses = records["lengths"].values("mean", encoding="rotary")
    assert f"RoPE  {sum(x[0] for x in losses) / len(losses):.2f}" in shown
    tails = records["lengths"].values("tail", encoding="rotary", scaling="YaRN")
    assert drawn(beyond)["RoPE + YaRN"] == pytest.approx([sum(x) / 5 for x in zip(*tails, strict=True)])
    assert drawn(size)["RoPE"] == [0.0] * 4 and drawn(size)["T5"] == [1.0, 2.0, 3.0, 4.0]
    assert drawn(use)["T5"] == [1.25] * 5 and drawn(use)["ALiBi"] == [0.25] * 5
    assert set(drawn(step)["ALiBi, dense"]) == {1.5} and set(drawn(memory)["ALiBi, dense"]) == {3.0}


def test_the_sentences_have_the_numbers_of_the_panels(records):
    said = {name: why_rope.alt({name: record}) for name, record in records.items()}
    assert "T5 from +1.00 to +4.00" in said["scale"] and "RoPE from" not in said["scale"]
    assert "T5 from 1.25 to 1.25" in said["long_range"] and "ALiBi, dense from 1.50 to 1.50" in said["cost"]
    at_L = {name: why_rope.at_length(records["lengths"], name) for name in why_rope.AT_L}
    lowest = min(at_L, key=at_L.get)
    assert f"lowest for {spoken(lowest)}, {at_L[lowest]:.2f}" in said["lengths"]
    assert "T5 moves most" in said["lengths"]


def test_an_encoding_has_one_colour_in_all_panels():
    loaded = {name: experiments.load(name) for name in why_rope.RECORDS}
    _, beyond, size, use, step, memory = why_rope.figure(loaded).axes
    for name in ("RoPE", "ALiBi", "T5"):
        colours = {
            to_hex(line.get_color())
            for ax in (beyond, size, use, step, memory)
            for line in ax.get_lines()
            if line.get_label() == name
        }
        assert len(colours) == 1, name


def test_one_rate_for_all_is_drawn_beside(records):
    own, of_all = (
        why_rope.at_length(one, "t5") for one in (records["lengths"], records["lengths"].at_one_rate())
    )
    (at_L, *_) = why_rope.figure({"lengths": records["lengths"]}).axes
    shown = {line.get_label(): line.get_xdata().tolist() for line in at_L.get_lines()}
    assert own in shown["its own rates"] and of_all in shown["one rate for all"] and of_all > own + 0.1
