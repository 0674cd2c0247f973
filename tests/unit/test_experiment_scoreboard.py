"""The scoreboard: each column against what is known of an encoding, and the join with the trained records."""

import math

import pytest
import torch

from course import experiments
from course.experiments import scoreboard, sweep
from course.experiments.record import Record, Run
from course.timing import interleaved, ratio
from course.verdicts import FAILS, HOLDS, OPEN
from tutorial_lib import plots
from tutorial_lib.encodings import Compose, Learned, NoPosition, TableBias, build
from tutorial_lib.encodings.registry import COMPARED

SMALL = {
    "d_model": 16,
    "layers": 1,
    "heads": 2,
    "length": 64,
    "rounds": 1,
    "encodings": list(scoreboard.ENCODINGS),
}
IMAGES = {"sinusoidal-2d", "rotary-axial", "swin", "raster"}


@pytest.fixture(scope="module")
def relative(relative_names):
    """On the board stand some that are relative because their parts are."""
    return relative_names | {"hybrid-sum", "hybrid-concat", "raster"}


@pytest.fixture(scope="module")
def exact():
    return {name: scoreboard.exact(name, SMALL) for name in scoreboard.ENCODINGS}


def test_every_encoding_of_the_registry_that_the_lessons_compare_is_on_it(exact):
    assert sorted(scoreboard.ENCODINGS) == sorted(COMPARED)
    for name, found in exact.items():
        assert set(found) == {"parameters", "apart", "shift"} | (set() if name in IMAGES else {"toeplitz"})


def test_shift_error_is_0_for_what_is_relative_and_for_nothing_else(exact, relative):
    assert {name for name, found in exact.items() if found["shift"] == 0} == relative
    assert all(found["shift"] > 0.01 for name, found in exact.items() if name not in relative | {"fire"})
    assert all(found["shift"] <= 1 for found in exact.values())


def test_so_is_the_toeplitz_error(exact, relative):
    of_offset = {name for name, found in exact.items() if found.get("toeplitz", 1) == 0}
    assert of_offset == relative - IMAGES
    # FIRE divides by a place beyond its threshold
    assert all(exact[name]["toeplitz"] > 0.5 for name in exact if name not in relative | IMAGES | {"fire"})


def test_places_told_apart(exact):
    """Offsets 0 … k of a clipped bias, one for each bucket of T5; nothing without positions."""
    L, k = SMALL["length"], SMALL["length"] // 4
    assert exact["none"]["apart"] == 1
    assert {exact[name]["apart"] for name in ("clipped", "shaw")} == {k + 1}
    assert exact["t5"]["apart"] == exact["hybrid-sum"]["apart"] == exact["hybrid-concat"]["apart"] <= 32
    whole = (
        "sinusoidal",
        "learned",
        "rotary",
        "xpos",
        "table",
        "alibi",
        "kerple",
        "tupe",
        "swin",
        "rotary-axial",
    )
    assert {exact[name]["apart"] for name in whole} == {L}


def test_the_shift_error_is_the_largest_change_of_a_weight():
    """By loops, for a learned table."""
    made = scoreboard.drawn("learned", SMALL, 3)
    n, d, heads = SMALL["length"] // 4, SMALL["d_model"], SMALL["heads"]
    x = scoreboard.tokens_of(made, SMALL, n, 3, equal=False)
    worst = 0.0
    for h in range(heads):
        weights = []
        for first in (0, SMALL["length"] // 2):
            q, k = (y[0, h] for y in scoreboard.heads_of(x + made.table[first : first + n], SMALL, 3))
            weights.append(
                [[math.exp(q[i] @ k[j] / (d / heads) ** 0.5) for j in range(i + 1)] for i in range(n)]
            )
        for before, after in zip(*weights, strict=True):
            for a, b in zip(before, after, strict=True):
                worst = max(worst, abs(a / sum(before) - b / sum(after)))
    assert scoreboard.shift_error(made, SMALL, 3) == pytest.approx(worst, rel=1e-9)


def test_weights_drawn_for_it_are_not_those_of_the_start():
    assert scoreboard.drawn("cope", SMALL, 0).e.abs().mean() > 0.1  # it starts at 0
    a, b, c = (scoreboard.drawn("t5", SMALL, seed).b for seed in (0, 0, 1))
    assert torch.equal(a, b) and not torch.equal(a, c) and a.dtype == torch.float64


def test_a_record(tmp_path):
    names = ["none", "sinusoidal", "rotary", "alibi", "t5", "shaw", "swin", "learned"]
    experiment = sweep.Experiment(
        **{**vars(scoreboard.EXPERIMENT), "presets": {"live": SMALL | {"encodings": names}}}
    )
    record = sweep.run(experiment, seeds=(0, 1), device="cpu", out=tmp_path / "r.json", progress=False)
    assert Record.load(tmp_path / "r.json") == record and len(record.runs) == 16
    assert record.values("stored", encoding="learned") == [64 * 16 * 4] * 2
    assert record.values("parameters", encoding="shaw")[0] * 4 == record.values("stored", encoding="shaw")[0]
    assert min(record.values("held", encoding="shaw")) > max(record.values("held", encoding="none"))
    assert all(0.1 < x < 10 for x in record.values("time", encoding="none"))
    assert plots.png(experiment.figure(record)).startswith(b"\x89PNG")
    assert "shift error, which is 0 for 6" in experiment.alt(record)
    assert "times as many bytes" in experiment.findings(record)[-1].why


def test_time_is_a_ratio_to_no_position(monkeypatch):
    """Not the reverse: with made-up seconds."""
    monkeypatch.setattr(
        scoreboard,
        "interleaved",
        lambda runs, rounds, device: {name: [1.0 if name == "none" else 3.0] * rounds for name in runs},
    )
    assert scoreboard.measure(SMALL, {"encoding": "t5"}, 0, torch.device("cpu"))["time"] == 3.0


def times(spread=0.001, **values):
    record = Record("scoreboard", "full", "", {"encodings": list(values), "length": 64}, [0, 1], "cpu", 1, {})
    record.runs = [
        Run({"encoding": name}, seed, {"time": value + spread * seed * (n + 1)}, 1.0)
        for n, (name, value) in enumerate(values.items())
        for seed in (0, 1)
    ]
    return record


def test_findings_follow_the_times():
    def verdicts(**values):
        return [finding.verdict for finding in scoreboard.findings(times(**values))]

    # RoPE, ALiBi, T5 beside sinusoids, T5 beside none, Shaw
    as_said = {"sinusoidal": 0.3, "rotary": 1.02, "alibi": 1.01, "t5": 1.02, "shaw": 1.05}
    assert verdicts(**as_said) == [HOLDS] * 5 and verdicts(**as_said, spread=0.5) == [OPEN] * 5
    assert verdicts(sinusoidal=1.0, rotary=1.3, alibi=1.2, t5=1.2, shaw=4.0) == [FAILS] * 5
    # the record beside it says whether the vectors cost memory, too: this one does not
    assert "bytes" not in scoreboard.findings(times(sinusoidal=1, rotary=1, alibi=1, t5=1, shaw=4))[-1].why


def test_t5_is_timed_beside_sinusoids_seed_by_seed():
    record = times(spread=1.0, sinusoidal=1.0, t5=4.0)  # 4 : 1, then 6 : 2
    assert scoreboard.cost(record, "t5", "sinusoidal").values == (4.0, 3.0)
    assert scoreboard.cost(record, "t5").values == (4.0, 6.0)


# ---- the board ----
@pytest.fixture(scope="module")
def rows():
    return scoreboard.board(*map(experiments.load, ("scoreboard", "lengths", "tasks")))


def test_the_board_joins_three_records(rows):
    lengths, tasks = experiments.load("lengths"), experiments.load("tasks")
    scaled = [f"rotary + {name}" for name in lengths.settings["scalings"]]
    assert list(rows) == [*scoreboard.ENCODINGS, *scaled] and "rotary + YaRN" in scaled
    for name in scaled:
        assert rows[name]["doors"] == ("rotate",)
        assert set(rows[name]) == {"doors", "axes", "loss", "mean", "tail"}
    yarn = lengths.values("mean", encoding="rotary", scaling="YaRN")
    assert rows["rotary + YaRN"]["loss"] == pytest.approx(sum(x[0] for x in yarn) / len(yarn))
    assert "loss" in rows["table"] and rows["table"]["loss"] < rows["none"]["loss"]
    assert rows["shaw"]["doors"] == ("content_bias", "values") and rows["swin"]["axes"] == 2
    for what in ("mean", "tail"):
        values = lengths.values(what, encoding="rotary")
        assert rows["rotary"][what] == pytest.approx(sum(x[-1] - x[0] for x in values) / len(values))
    assert {name for name, row in rows.items() if "won" in row} == set(tasks.settings["encodings"])
    assert "tail" not in rows["table"] and "tail" not in rows["swin"]  # one length alone, and none
    won = sum("none" in experiments.tasks.winners(tasks, task) for task in experiments.tasks.TASKS)
    assert rows["none"]["won"] == won


def test_the_board_has_both_protocols(rows):
    of_all = scoreboard.board(
        *(one.at_one_rate() for one in map(experiments.load, ("scoreboard", "lengths", "tasks")))
    )
    assert list(of_all) == list(rows)
    assert of_all["t5"]["loss"] > rows["t5"]["loss"] + 0.1 and of_all["none"]["time"] == rows["none"]["time"]


def test_the_record_that_comes_with_the_course_is_what_is_measured():
    record = experiments.load("scoreboard")
    for name in ("hybrid-sum", "fire", "rotary-axial"):
        for key, value in scoreboard.exact(name, record.settings).items():
            assert record.values(key, encoding=name)[0] == pytest.approx(value, rel=1e-6, abs=1e-9)


def test_ranks():
    rows = {"a": {"time": 1.0, "won": 1}, "b": {"time": 3.0, "won": 4}, "c": {"time": 1.0}, "d": {"won": 2}}
    assert scoreboard.ranks(rows, "time") == {"a": 1.0, "b": 0.0, "c": 1.0}
    assert scoreboard.ranks(rows, "won") == {"a": 0.0, "b": 1.0, "d": 0.5}
    assert scoreboard.ranks({"a": {"won": 1}}, "won") == {"a": 0.0} and scoreboard.ranks({}, "won") == {}


@pytest.mark.parametrize(
    "column, value, text",
    [
        ("tail", None, "–"),
        ("tail", 0.0, "+0.00"),
        ("mean", -0.014, "-0.01"),
        ("stored", 0, "0"),
        ("stored", 32, "32 B"),
        ("stored", 2560, "2.5 KiB"),
        ("held", 3 * 2**20, "3.0 MiB"),
        ("time", 1.1, "1.10 ×"),
        ("shift", 0.0, "0"),
        ("shift", 0.002, "< 0.01"),
        ("toeplitz", 0.994, "0.99"),
        ("parameters", 65536, "65,536"),
        ("won", 0, "0"),
        ("loss", 1.896, "1.90"),
    ],
)
def test_a_number_in_words(column, value, text):
    assert scoreboard.shown(column, value) == text


def test_a_composition_is_built_of_what_it_says():
    made = scoreboard.encoding("compose", SMALL)
    assert isinstance(made, Compose) and isinstance(made.parts[0], Learned)
    assert isinstance(scoreboard.encoding("raster", SMALL).encoding, TableBias)
    assert isinstance(scoreboard.encoding("none", SMALL), NoPosition) and build("none").doors == ()


def test_timing_takes_turns():
    calls = []
    cases = {name: lambda name=name: calls.append(name) for name in "ab"}
    seconds = interleaved(cases, 4, torch.device("cpu"))
    assert [len(x) for x in seconds.values()] == [4, 4] and len(calls) == 2 * 2 * 5
    assert all(set(calls[n : n + 4]) == {"a", "b"} for n in range(0, 20, 4))
    assert ratio({"a": [2.0, 9.0, 4.0], "b": [1.0, 3.0, 1.0]}, "a", "b") == 3.0
