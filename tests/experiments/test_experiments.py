"""Experiments lose no finished run, write no broken record, and say no more than their seeds allow."""

import json
import math
import os
import signal
import statistics as python_statistics
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import dask
import distributed
import matplotlib.pyplot as plt
import psutil
import pytest
import torch

from course import experiments
from course.experiments import EXPERIMENTS, __main__, report, sweep
from course.experiments.record import Record, Run
from course.experiments.statistics import Interval, difference, interval, t_975
from course.experiments.sweep import Experiment, Finding
from course.verdicts import above, below, fact, unmeasured
from tutorial_lib import training

CELLS = [{"encoding": name, "length": n} for name in ("a", "b") for n in (1, 2)]
COLUMN = [[0.5], [1.5]]


def measure(settings, cell, seed, device):
    return {"loss": settings["steps"] * cell["length"] + seed / 7, "column": COLUMN}


def findings(record):
    short, long = (record.values("loss", encoding="a", length=n) for n in (1, 2))
    gain = difference(long, short)
    return [
        Finding("Longer is worse", "A. 2020", "1.0", str(gain), above(gain, 0)),
        Finding("Shorter is worse", "B. 2021", "", str(gain), below(gain, 0), "too small"),
    ]


def figure(record):
    fig, ax = plt.subplots()
    ax.plot(record.values("loss", encoding="a", length=1))
    return fig


TINY = Experiment(
    "tiny",
    "A tiny one",
    presets={"live": {"steps": 2}, "full": {"steps": 3}},
    seeds={"live": (0, 1), "full": (0, 1, 2)},
    cells=lambda settings: [dict(cell) for cell in CELLS],
    measure=measure,
    figure=figure,
    alt=lambda record: "A line.",
    findings=findings,
)


def tiny(**changes):
    return replace(TINY, **changes)


def numbers(record):
    """All of a record but what the clock gives."""
    data = record.plain() | {"seconds": 0}
    return data | {"runs": [run | {"seconds": 0} for run in data["runs"]]}


class Counted:
    """A measurement that counts, and raises ``error`` once, at call number ``at``."""

    def __init__(self, at=None, error=None):
        self.calls, self.at, self.error = [], at, error

    def __call__(self, settings, cell, seed, device):
        self.calls.append((cell, seed))
        if len(self.calls) - 1 == self.at:
            raise self.error
        return measure(settings, cell, seed, device)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "tiny", TINY)
    return TINY


# ---- the record ----


def test_a_record_comes_back_as_it_was(tmp_path):
    path = tmp_path / "new" / "tiny-live.json"
    record = sweep.run(TINY, out=path)
    assert Record.load(path) == record and len(record.runs) == 8
    assert [run.seed for run in record] == [0] * 4 + [1] * 4 and record.cells() == CELLS
    assert os.listdir(path.parent) == ["tiny-live.json"]
    assert record.command == "python -m course.experiments run tiny --preset live"
    assert record.versions.keys() == {"python", "torch", "numpy", "tutorial_lib"}
    assert (record.settings, record.device, record.threads) == ({"steps": 2}, "cpu", torch.get_num_threads())


def test_a_record_holds_no_path(tmp_path):
    path = tmp_path / "tiny-live.json"
    sweep.run(TINY, out=path)
    text = path.read_text()
    assert str(tmp_path) not in text and str(Path.home()) not in text and str(sys.prefix) not in text


def test_the_command_says_all_that_numbers_depend_on():
    record = sweep.run(TINY, seeds=(3, 1), device="cpu")
    assert record.command.endswith("run tiny --preset live --seeds 3,1 --device cpu")


BROKEN = {
    "a missing key": (lambda d: d.pop("threads"), r"at \$: must contain \['threads'\]"),
    "an extra key": (lambda d: d.update(host="x"), r"at \$: must not contain \{'host'\}"),
    "a wrong type": (lambda d: d.update(seeds="0"), r"at \$\.seeds: '0' must be array"),
    "no seed": (lambda d: d.update(seeds=[]), r"at \$\.seeds: "),
    "a seed twice": (lambda d: d.update(seeds=[0, 0]), r"at \$\.seeds: "),
    "a negative time": (lambda d: d.update(seconds=-1.0), r"at \$\.seconds: "),
    "no threads": (lambda d: d.update(threads=0), r"at \$\.threads: "),
    "a boolean for a number": (
        lambda d: d["runs"][1]["values"].update(loss=True),
        r"runs\[1\].values.loss: True must be number",
    ),
    "text for a number": (
        lambda d: d["runs"][0]["values"].update(loss="2"),
        r"runs\[0\].values.loss: '2' must be number",
    ),
    "no version of torch": (
        lambda d: d["versions"].pop("torch"),
        r"at \$\.versions: must contain \['torch'\]",
    ),
    "an extra key in a run": (
        lambda d: d["runs"][0].update(a=1),
        r"at \$\.runs\[0\]: must not contain \{'a'\}",
    ),
    "a run without values": (
        lambda d: d["runs"][2].pop("values"),
        r"at \$\.runs\[2\]: must contain \['values'\]",
    ),
    "NaN": (
        lambda d: d["runs"][0]["values"].update(loss=math.nan),
        r"at \$\.runs\[0\]\.values\.loss: nan is",
    ),
    "NaN in a list": (
        lambda d: d["runs"][0]["values"]["column"][1].append(-math.inf),
        r"at \$\.runs\[0\]\.values\.column\[1\]\[1\]: -inf is",
    ),
    "NaN in the settings": (
        lambda d: d.update(settings={"a": [math.nan]}),
        r"at \$\.settings\.a\[0\]: nan is",
    ),
    "NaN in a cell": (
        lambda d: d["runs"][0].update(cell={"a": math.nan}),
        r"at \$\.runs\[0\]\.cell\.a: nan is",
    ),
    "NaN seconds": (lambda d: d.update(seconds=math.nan), r"at \$\.seconds: nan is"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_record_is_refused_with_its_place(what, tmp_path):
    path, (spoil, message) = tmp_path / "tiny-live.json", BROKEN[what]
    record = sweep.run(TINY)
    data = record.plain()
    data["runs"][0]["values"]["column"] = [[0.5], [1.5]]
    spoil(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=f"tiny-live.json .*{message}"):
        Record.load(path)


def test_a_run_that_stands_twice_or_has_a_seed_of_its_own_is_refused(tmp_path):
    path, record = tmp_path / "x.json", sweep.run(TINY)
    for runs, at in ((record.runs + record.runs[:1], 8), ([replace(record.runs[0], seed=9)], 0)):
        replace(record, runs=runs).save(path)
        with pytest.raises(ValueError, match=rf"\$.runs\[{at}\]"):
            Record.load(path)


@pytest.mark.parametrize("text", ["", "{", "\xff"])
def test_what_is_no_json_is_refused(text, tmp_path):
    path = tmp_path / "tiny-live.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="tiny-live.json is no JSON"):
        Record.load(path)


def test_a_missing_record_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="no record shift-2d-full.json.*run shift-2d --preset full"):
        Record.load(tmp_path / "shift-2d-full.json")


def test_a_record_in_the_wrong_file_is_refused(tmp_path, registered):
    sweep.run(TINY, out=tmp_path / "word_order-full.json")
    with pytest.raises(ValueError, match="word_order-full.json holds 'tiny' with the preset 'live'"):
        experiments.load("word_order", folder=tmp_path)


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "tiny-live.json"
    record = sweep.run(TINY, out=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="runs"):
        replace(record, runs=[Run({}, 0, {"loss": math.nan}, 0.0)]).save(path)
    write = Path.write_text

    def torn(self, text, *args, **kwargs):
        write(self, text[:100], *args, **kwargs)
        raise OSError("the disk is full")

    monkeypatch.setattr(Path, "write_text", torn)
    with pytest.raises(OSError, match="full"):
        replace(record, device="other").save(path)
    assert path.read_bytes() == before


def test_values():
    record = sweep.run(TINY)
    assert record.values("loss", encoding="b", length=2) == [4.0, 4 + 1 / 7]
    with pytest.raises(KeyError, match="2 cells of 'tiny' fit {'encoding': 'a'}; there are"):
        record.values("loss", encoding="a")
    with pytest.raises(KeyError, match="0 cells of 'tiny' fit"):
        record.values("loss", encoding="c")
    with pytest.raises(KeyError, match="measured no 'los' in .*: there is 'loss', 'column'"):
        record.values("los", encoding="a", length=1)
    record.runs.pop()
    with pytest.raises(KeyError, match="lacks .* with seed 1: finish the sweep"):
        record.values("loss", encoding="b", length=2)


def test_values_come_in_the_order_of_the_seeds_and_a_whole_cell_goes_first():
    record = sweep.run(tiny(cells=lambda settings: [{"length": 1, "more": [2]}, {"length": 1}]), seeds=(5, 2))
    record.runs.reverse()
    assert record.values("loss", length=1) == [2 + 5 / 7, 2 + 2 / 7]
    assert record.values("loss", more=[2]) == [2 + 5 / 7, 2 + 2 / 7]


# ---- the sweep ----


def test_unknown_presets_and_seeds_are_refused():
    with pytest.raises(ValueError, match="preset='gpu': 'tiny' has 'live', 'full'"):
        sweep.run(TINY, "gpu")
    for seeds in ((), (1, 1)):
        with pytest.raises(ValueError, match="seeds="):
            sweep.run(TINY, seeds=seeds)


@pytest.mark.parametrize(
    "bad, where",
    [
        (math.nan, "values.loss: nan"),
        ([[1.0], [math.inf]], r"values.loss\[1\]"),
        ("much", "values.loss"),
        (torch.ones(1), "Tensor is not JSON"),
    ],
)
def test_a_measurement_that_is_no_number_is_refused_at_once(bad, where, tmp_path):
    counted = Counted()

    def third_is_bad(*run):
        return counted(*run) | ({"loss": bad} if len(counted.calls) == 3 else {})

    broken = tiny(measure=third_is_bad)
    with pytest.raises(ValueError, match=where) as caught:
        sweep.run(broken, out=tmp_path / "x.json")
    assert caught.value.__notes__ == ["This happened in {'encoding': 'b', 'length': 1} with seed 0."]
    assert len(journal(tmp_path)) == 2


def test_tuples_are_lists_at_once_and_not_only_when_read_back(tmp_path):
    wrapped = tiny(
        presets={"live": {"steps": 2, "n": (1, 2)}},
        cells=lambda settings: [{"length": 1, "at": (3, 4)}],
        measure=lambda *run: {"pair": (1.0, 2.0)},
    )
    record = sweep.run(wrapped, out=tmp_path / "x.json")
    assert Record.load(tmp_path / "x.json") == record
    assert record.settings["n"] == [1, 2] and record.values("pair", at=[3, 4]) == [[1.0, 2.0]] * 2


def journal(folder):
    """The finished runs that stand beside a record."""
    (path,) = folder.glob("*.partial.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("at", [0, 3, 7])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("broken")])
def test_a_sweep_that_ends_early_goes_on_where_it_was(at, error, tmp_path, capsys):
    path, whole = tmp_path / "tiny-live.json", sweep.run(TINY)
    first, second = Counted(at, error), Counted()
    if isinstance(error, KeyboardInterrupt):
        record = sweep.run(tiny(measure=first), out=path)
        assert f"Stopped after {at} of 8 runs" in capsys.readouterr().out
        assert numbers(record)["runs"] == numbers(whole)["runs"][:at]
    else:
        with pytest.raises(RuntimeError, match="broken") as caught:
            sweep.run(tiny(measure=first), out=path)
        assert "with seed" in caught.value.__notes__[0]
    assert not path.exists() and len(journal(tmp_path)) == at
    resumed = sweep.run(tiny(measure=second), out=path)
    assert len(second.calls) == 8 - at and second.calls == first.calls[at:] + second.calls[1:]
    assert numbers(resumed) == numbers(whole) == numbers(Record.load(path))
    assert os.listdir(tmp_path) == [path.name]


def test_an_interrupt_inside_training_ends_the_sweep_and_half_a_run_does_not_count(tmp_path):
    """`train` by itself keeps what it has and returns: in a sweep that would be a wrong number."""
    steps = []

    def trained(settings, cell, seed, device):
        def batch(generator):
            steps.append(1)
            if len(steps) == 8:
                raise KeyboardInterrupt
            return torch.ones(4, 2), torch.zeros(4, dtype=torch.long)

        history = training.train(torch.nn.Linear(2, 3), batch, 3, progress=False)
        return {"loss": history.final}

    sweep.run(tiny(measure=trained), out=tmp_path / "x.json")
    assert len(journal(tmp_path)) == 2 and len(steps) == 8
    assert training.train(torch.nn.Linear(2, 3), interrupted, 3, progress=False).interrupted


def interrupted(generator):
    raise KeyboardInterrupt


def interrupt(path, at, **changes):
    sweep.run(tiny(measure=Counted(at, KeyboardInterrupt()), **changes), out=path)


@pytest.mark.parametrize("torn", ['{"cell": {"enco', '{"cell": {"encoding": "a"}', "{}", "7", "\x00\x00"])
def test_a_torn_last_line_costs_one_run(torn, tmp_path):
    path = tmp_path / "x.json"
    interrupt(path, 3)
    with path.with_suffix(".partial.jsonl").open("a") as file:
        file.write(torn)
    counted = Counted()
    assert numbers(sweep.run(tiny(measure=counted), out=path)) == numbers(sweep.run(TINY))
    assert len(counted.calls) == 5


@pytest.mark.parametrize("torn", ["", "{", "[]\n"])
def test_a_torn_first_line_costs_all_but_raises_nothing(torn, tmp_path):
    path = tmp_path / "x.json"
    path.with_suffix(".partial.jsonl").write_text(torn)
    assert numbers(sweep.run(TINY, out=path)) == numbers(sweep.run(TINY))


@pytest.mark.parametrize("what", ["settings", "versions", "threads"])
def test_runs_of_another_kind_are_kept_aside(what, tmp_path, monkeypatch, capsys):
    path, aside = tmp_path / "x.json", [tmp_path / f"x.partial.old{n}" for n in (1, 2)]
    changes = {}
    if what == "settings":
        changes["presets"] = {"live": {"steps": 5}}
    elif what == "versions":
        monkeypatch.setattr(sweep, "versions", lambda: {"python": "1", "torch": "2", "tutorial_lib": "3"})
    else:
        monkeypatch.setattr(torch, "get_num_threads", lambda: 17)
    interrupt(path, 3, **changes)
    old = path.with_suffix(".partial.jsonl").read_text()
    monkeypatch.undo()
    aside[0].write_text("an older one")
    counted = Counted()
    assert numbers(sweep.run(tiny(measure=counted), out=path)) == numbers(sweep.run(TINY))
    assert len(counted.calls) == 8 and "kept as x.partial.old2" in capsys.readouterr().out
    assert [file.read_text() for file in aside] == ["an older one", old]


def test_more_seeds_continue_what_is_there(tmp_path):
    path, counted = tmp_path / "x.json", Counted()
    interrupt(path, 6)
    record = sweep.run(tiny(measure=counted), seeds=(2, 1, 0), out=path)
    assert len(counted.calls) == 12 - 6 and record.seeds == [2, 1, 0]
    assert numbers(record) == numbers(sweep.run(TINY, seeds=(2, 1, 0)))


# ---- a record that is there already ----


def listing(*names, **changes):
    """The tiny experiment with these encodings, as the larger ones have them in their settings."""
    settings = {"encodings": list(names), "steps": 2}
    return tiny(
        presets={"live": settings},
        cells=lambda settings: [
            {"encoding": name, "length": n} for name in settings["encodings"] for n in (1, 2)
        ],
        **changes,
    )


def test_a_new_encoding_measures_its_own_cells_only(tmp_path):
    """They stand in their places; the others are byte for byte what they were."""
    path, counted = tmp_path / "tiny-live.json", Counted()
    before = sweep.run(listing("a", "c"), out=path)
    old = [json.dumps(run, indent=1) for run in before.plain()["runs"]]
    record = sweep.run(listing("a", "b", "c", measure=counted), out=path)
    assert counted.calls == [({"encoding": "b", "length": n}, seed) for seed in (0, 1) for n in (1, 2)]
    assert [run.cell["encoding"] for run in record] == list("aabbcc") * 2
    assert record.settings["encodings"] == ["a", "b", "c"] and Record.load(path) == record
    assert [run for run in record if run.cell["encoding"] != "b"] == before.runs
    assert [
        json.dumps(run, indent=1)
        for run in json.loads(path.read_text())["runs"]
        if run["cell"]["encoding"] != "b"
    ] == old
    assert record.seconds == pytest.approx(sum(run.seconds for run in record))
    assert os.listdir(tmp_path) == [path.name]


def test_one_that_is_gone_leaves_the_record(tmp_path):
    path, counted = tmp_path / "tiny-live.json", Counted()
    sweep.run(listing("a", "b", "c"), out=path)
    assert [
        cell["encoding"] for cell in sweep.run(listing("c", "a", measure=counted), out=path).cells()
    ] == list("ccaa")
    assert counted.calls == [] and Record.load(path).settings["encodings"] == ["c", "a"]


def test_an_interrupted_addition_goes_on(tmp_path):
    path, counted = tmp_path / "tiny-live.json", Counted()
    before = sweep.run(listing("a"), out=path)
    partly = sweep.run(listing("a", "b", measure=Counted(3, KeyboardInterrupt())), out=path)
    assert Record.load(path) == before and len(partly.runs) == 4 + 3
    record = sweep.run(listing("a", "b", "c", measure=counted), out=path)
    assert len(counted.calls) == 1 + 4 and len(record.runs) == 12


def test_a_whole_record_is_left_alone_unless_again(tmp_path, capsys):
    path, counted = tmp_path / "tiny-live.json", Counted()
    before = sweep.run(TINY, out=path)
    text = path.read_text()
    assert sweep.run(tiny(measure=counted), out=path) == before
    assert sweep.run(tiny(measure=counted), out=path, seeds=(1,)) == before
    assert counted.calls == [] and path.read_text() == text
    assert "tiny-live.json is there already, and lacks nothing; `--again`" in capsys.readouterr().out
    sweep.run(tiny(measure=counted), out=path, again=True)
    assert len(counted.calls) == 8


def test_more_seeds_are_added(tmp_path):
    path, counted = tmp_path / "tiny-live.json", Counted()
    sweep.run(TINY, out=path)
    record = sweep.run(tiny(measure=counted), out=path, seeds=(0, 5))
    assert record.seeds == [0, 1, 5] and {seed for _, seed in counted.calls} == {5}
    assert record.command.endswith("--seeds 0,1,5")
    assert numbers(record) == numbers(sweep.run(TINY, seeds=(0, 1, 5)))


@pytest.mark.parametrize(
    "what, old", [("settings", {"settings": {"steps": 7}}), ("device", {"device": "a GPU", "runs": []})]
)
def test_what_would_not_fit_the_record_is_refused(what, old, tmp_path, capsys):
    path = tmp_path / "tiny-live.json"
    replace(sweep.run(TINY), **old).save(path)
    text = path.read_text()
    with pytest.raises(ValueError, match=f"tiny-live.json was measured with {what} .*--again"):
        sweep.run(TINY, out=path)
    assert path.read_text() == text
    sweep.run(TINY, out=path, again=True)
    assert numbers(Record.load(path)) == numbers(sweep.run(TINY))


def test_what_is_added_says_with_what_and_runs_on_as_many_threads(tmp_path, monkeypatch):
    path, threads = tmp_path / "tiny-live.json", []
    before = replace(sweep.run(listing("a")), threads=torch.get_num_threads() + 1)
    before.save(path)
    newer = before.versions | {"torch": "9.9"}
    monkeypatch.setattr(sweep, "versions", lambda: newer)

    def counting(*arguments):
        threads.append(torch.get_num_threads())
        return measure(*arguments)

    record = sweep.run(listing("a", "b", measure=counting), out=path)
    assert record.versions == before.versions and record.threads == before.threads == threads[0]
    assert [run.versions for run in record] == [None, None, newer, newer] * 2 and len(set(threads)) == 1
    assert torch.get_num_threads() == before.threads - 1
    assert Record.load(path) == record and record.made_with("torch") == f"{torch.__version__}, 9.9"


def test_the_journal_survives_a_crash_while_it_is_written_anew(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    interrupt(path, 3)
    monkeypatch.setattr(Path, "write_text", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sweep.run(TINY, out=path)
    assert len(journal(tmp_path)) == 3


def test_nothing_is_written_without_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep.run(TINY)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "progress, variable, shown", [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_the_bar(progress, variable, shown, monkeypatch, capsys):
    monkeypatch.setenv("TQDM_DISABLE", variable)
    sweep.run(TINY, progress=progress)
    assert ("A tiny one" in capsys.readouterr().err) == shown


def test_a_claim_that_fails_needs_a_reason():
    with pytest.raises(ValueError, match="'x' does not hold: say why"):
        Finding("x", "", "", "", fact(False, "it is so"))
    assert Finding("x", "", "", "", fact(True, "it is so"), why="unused").reason == ""
    assert "over the limit" in Finding("x", "", "", "", unmeasured("more"), why="unused").reason
    assert Finding("x", "", "", "", fact(False, "it is so"), why="too short").reason == "too short"


def test_git_does_not_see_what_is_unfinished():
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        pytest.skip("not a git clone")
    for name, ignored in (
        ("word_order-full.partial.jsonl", True),
        ("word_order-full.partial.old1", True),
        ("word_order-full.json.tmp", True),
        ("word_order-full.json", False),
    ):
        command = ["git", "check-ignore", "-q", f"results/{name}"]
        assert (subprocess.run(command, cwd=root).returncode == 0) == ignored, name


# ---- statistics ----


# Abramowitz and Stegun's and every textbook's table
@pytest.mark.parametrize(
    "freedom, t",
    [
        (1, 12.706),
        (2, 4.303),
        (4, 2.776),
        (9, 2.262),
        (10, 2.228),
        (11, 2.201),
        (12, 2.179),
        (15, 2.131),
        (20, 2.086),
        (30, 2.042),
        (40, 2.021),
        (60, 2.000),
        (120, 1.980),
        (100_000, 1.960),
    ],
)
def test_student_t(freedom, t):
    assert t_975(freedom) == pytest.approx(t, abs=6e-4)


@pytest.mark.parametrize("freedom", [1, 3, 10, 11, 25])
def test_student_t_leaves_two_and_a_half_percent_beyond(freedom):
    """The density, integrated."""
    x = torch.linspace(-t_975(freedom), t_975(freedom), 200_001, dtype=torch.float64)
    log = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    density = (log - (freedom + 1) / 2 * torch.log1p(x * x / freedom)).exp()
    assert torch.trapezoid(density, x).item() == pytest.approx(0.95, abs=1e-4)


def test_intervals_by_hand():
    got = interval([1.0, 2.0, 6.0])
    half = 4.303 * math.sqrt(7) / math.sqrt(3)
    assert (got.mean, got.low, got.high) == pytest.approx((3, 3 - half, 3 + half))
    pairs = difference([5.0, 7.0, 9.0], [1.0, 2.0, 3.0])
    assert pairs == interval([4.0, 5.0, 6.0])
    with pytest.raises(ValueError, match="1 value"):
        interval([1.0])
    with pytest.raises(ValueError):
        difference([1.0, 2.0], [1.0])


def test_intervals_hold_the_mean_as_often_as_they_say():
    draws = torch.randn(4000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    held = python_statistics.fmean(interval(row).low < 0 < interval(row).high for row in draws.tolist())
    assert held == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(
    "low, high, positive, negative, within",
    [
        (0.1, 0.2, True, False, True),
        (-0.2, -0.1, False, True, True),
        (-0.1, 0.1, False, False, True),
        (0.0, 0.1, False, False, True),
        (-0.1, 0.0, False, False, True),
        (0.1, 0.4, True, False, False),
        (-0.4, -0.1, False, True, False),
    ],
)
def test_what_an_interval_says(low, high, positive, negative, within):
    got = Interval((low + high) / 2, low, high)
    assert (got.positive, got.negative, got.within(0.3)) == (positive, negative, within)
    assert str(Interval(1, -0.25, 2.25)) == "+1.000 (-0.250 to +2.250)"


# ---- the command line ----


def command(*arguments):
    return __main__.main([str(x) for x in arguments])


def test_list(registered, capsys):
    assert command("list") == 0
    out = capsys.readouterr().out
    assert "tiny         A tiny one: live (4 cells × 2 seeds), full (4 cells × 3 seeds)" in out
    assert all(name in out for name in EXPERIMENTS)


def test_run_show_results(registered, tmp_path, capsys):
    assert command("run", "tiny", "--folder", tmp_path) == 0
    assert "tiny-full.json: 12 runs, 0 s" in capsys.readouterr().out
    assert command("show", "tiny", "--folder", tmp_path, "--figure", tmp_path / "x.png") == 0
    out = capsys.readouterr().out
    assert "run tiny --preset full" in out and "seeds [0, 1, 2]" in out
    assert "encoding=b, length=2: loss 6.143" in out
    assert "Holds: Longer is worse\n  here: +3.000 (+3.000 to +3.000)" in out
    assert "Does not hold: Shorter is worse" in out
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert command("results", tmp_path / "docs" / "page.md", "--folder", tmp_path) == 0
    assert (tmp_path / "docs" / "page.md").read_text() == report.page(tmp_path)


def test_a_record_is_checked_by_measuring_some_of_it_again(registered, tmp_path, capsys):
    assert command("run", "tiny", "--folder", tmp_path) == 0
    assert command("check", "--runs", 5, "--folder", tmp_path) == 0
    out = capsys.readouterr().out
    assert out.count("tiny (library") == out.count(": the same") == 5 and "difference: 0, as" in out
    record = json.loads((tmp_path / "tiny-full.json").read_text())
    for run in record["runs"]:
        run["values"]["loss"] *= 1.5
    (tmp_path / "tiny-full.json").write_text(json.dumps(record))
    assert command("check", "--runs", 5, "--folder", tmp_path) == 0
    assert "the same" not in (out := capsys.readouterr().out) and out.count("loss apart by 0.3") == 5


def test_seeds_of_your_own(registered, tmp_path):
    assert command("run", "tiny", "--preset", "live", "--seeds", "4,2", "--folder", tmp_path) == 0
    assert experiments.load("tiny", "live", tmp_path).seeds == [4, 2]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("run", "tyni"), "name='tyni': it must be one of 'tuning', 'word_order'"),
        (("run", "tiny", "--preset", "gpu"), "preset='gpu': 'tiny' has 'live', 'full'"),
        (("run", "tiny", "--seeds", "1,1"), "seeds=(1, 1)"),
        (("run", "tiny", "--device", "cuda:77"), "device 'cuda:77' is not available"),
        (("run", "all", "--preset", "gpu"), "no experiment has the preset 'gpu'"),
        (("show", "tiny"), "`python -m course.experiments run tiny --preset full` makes it"),
    ],
)
def test_errors_are_one_line(arguments, message, registered, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(__main__, "EXPERIMENTS", {"tiny": TINY})
    assert command(*arguments, "--folder", tmp_path) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and message in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("run", "tiny", "--seeds", "1,x"), ("run",), (), ("run", "tiny", "--preset", "x")]
)
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        command(*arguments)
    assert caught.value.code == 2 and "error:" in capsys.readouterr().err


def test_a_record_that_lacks_what_its_experiment_now_asks(registered, tmp_path, monkeypatch, capsys):
    command("run", "tiny", "--folder", tmp_path)
    changed = tiny(findings=lambda record: record.values("new", length=1, encoding="a"))
    monkeypatch.setitem(EXPERIMENTS, "tiny", changed)
    assert command("results", tmp_path / "x.md", "--folder", tmp_path) == 2
    assert "error: 'tiny' measured no 'new'" in capsys.readouterr().err


def test_a_measurement_that_raises_shows_where(registered, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(EXPERIMENTS, "tiny", tiny(measure=Counted(2, ValueError("a matrix is singular"))))
    assert command("run", "tiny", "--folder", tmp_path) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err and "a matrix is singular\nThis happened in {'encoding': 'b'" in err
    assert len(journal(tmp_path)) == 2


def test_run_all_goes_on_after_an_interruption(tmp_path, monkeypatch, capsys):
    first, second = Counted(), Counted(3, KeyboardInterrupt())
    known = {name: tiny(name=name, measure=counted) for name, counted in (("one", first), ("two", second))}
    known["live-only"] = tiny(name="live-only", presets={"live": {}}, measure=None)
    monkeypatch.setattr(experiments, "EXPERIMENTS", known)
    monkeypatch.setattr(__main__, "EXPERIMENTS", known)
    assert command("run", "all", "--folder", tmp_path) == 130
    assert "The same command goes on from here." in capsys.readouterr().out
    assert command("run", "all", "--folder", tmp_path) == 0
    assert "one-full.json is there already, and lacks nothing" in capsys.readouterr().out
    assert len(first.calls) == 12 and len(second.calls) == 12 + 1
    assert sorted(os.listdir(tmp_path)) == ["one-full.json", "two-full.json"]


SCRIPT = """
import sys, time
from dataclasses import replace
sys.path.insert(0, {tests!r})
from test_experiments import TINY, measure
from course.experiments import EXPERIMENTS
from course.experiments.__main__ import main

def slow(settings, cell, seed, device):
    time.sleep({seconds} if seed else 0)
    return measure(settings, cell, seed, device)

if __name__ == "__main__":
    EXPERIMENTS["tiny"] = replace(TINY, measure=slow)
    sys.exit(main(sys.argv[1:]))
"""


def start(folder, *arguments, seconds=300, launcher=()):
    """The command line with an experiment that takes its time from the second seed on, in a process group of
    its own."""
    script = folder / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), seconds=seconds))
    return subprocess.Popen(
        [sys.executable, *launcher, str(script), *map(str, arguments)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        # a shell's background jobs ignore Ctrl-C, and so would what they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(condition, process=None, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end and (process is None or process.poll() is None), "it did not happen"
        time.sleep(0.05)


def finished(folder):
    return sum(len(path.read_text().splitlines()) - 1 for path in folder.glob("*.partial.jsonl"))


@pytest.mark.parametrize("scheduler", [(), ("--scheduler", "local")], ids=["here", "dask"])
def test_ctrl_c(scheduler, tmp_path):
    arguments = "run", "tiny", "--preset", "live", "--folder", tmp_path, *scheduler
    process = start(tmp_path, *arguments)
    wait_for(lambda: finished(tmp_path) >= 2, process)
    below = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
    out, err = process.communicate(timeout=120)
    assert not psutil.wait_procs(below, timeout=20)[1]
    assert process.returncode == 130 and "Traceback" not in err, err
    kept = finished(tmp_path)
    assert 2 <= kept <= 4 and f"Stopped after {kept} of 8 runs" in out
    assert "The same command goes on from here." in out
    process = start(tmp_path, *arguments[:6], seconds=0)  # without a scheduler
    assert process.wait(120) == 0
    assert numbers(Record.load(tmp_path / "tiny-live.json")) == numbers(sweep.run(TINY)) | {"threads": 1}


TORCHRUN = "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"


@pytest.mark.parametrize(
    "launcher, scheduler", [((), ("--scheduler", "local")), (TORCHRUN, ())], ids=["dask", "torchrun"]
)
def test_after_sigkill_nothing_goes_on(launcher, scheduler, tmp_path):
    """Nothing is measured any more, and the file is free for the next."""
    process = start(
        tmp_path, "run", "tiny", "--preset", "live", "--folder", tmp_path, *scheduler, launcher=launcher
    )
    wait_for(lambda: finished(tmp_path) >= 1, process)
    below = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    left = psutil.wait_procs(below, timeout=20)[1]
    for one in left:
        one.kill()
    assert len(below) >= 2 and not left and finished(tmp_path) <= 4
    with sweep._alone(tmp_path / "tiny-live.json"):
        pass


def test_one_sweep_at_a_time_for_a_file(tmp_path, registered, capsys):
    path = tmp_path / "tiny-full.json"
    with sweep._alone(path):
        with pytest.raises(BlockingIOError, match="is measuring for tiny-full.json: wait .* is kept"):
            sweep.run(TINY, "full", out=path)
        assert command("run", "tiny", "--folder", tmp_path) == 2
        assert "error: another process is measuring" in capsys.readouterr().err
        sweep.run(TINY, "live", out=tmp_path / "tiny-live.json")
    sweep.run(TINY, "full", out=path)
    assert sorted(os.listdir(tmp_path)) == ["tiny-full.json", "tiny-live.json"]


# ---- on a cluster ----


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, as somebody may have started them elsewhere."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL"
        ) as cluster,
    ):
        yield cluster.scheduler_address


def sent(act=lambda cell, seed: None, seconds=0.0, folder=None):
    """A measurement that goes to a worker by value, and leaves a line there for each call."""

    def measure(settings, cell, seed, device):
        if folder is not None:
            with (folder / "calls").open("a") as file:
                file.write(json.dumps([cell, seed, os.getpid(), torch.get_num_threads()]) + "\n")
        time.sleep(seconds)
        act(cell, seed)
        return {"loss": settings["steps"] * cell["length"] + seed / 7, "column": [[0.5], [1.5]]}

    return tiny(measure=measure)


def calls(folder):
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def test_a_cluster_gives_the_same_record(cluster, tmp_path):
    path = tmp_path / "tiny-live.json"
    record = sweep.run(sent(folder=tmp_path, seconds=0.05), out=path, scheduler=cluster)
    assert numbers(record) == numbers(sweep.run(TINY)) | {"threads": 1} and Record.load(path) == record
    processes = {process for _, _, process, _ in calls(tmp_path)}
    assert len(processes) == 2 and os.getpid() not in processes
    assert {threads for *_, threads in calls(tmp_path)} == {1}


def test_a_worker_computes_on_one_thread():
    """The environment of the tests says so anyway, so this process stands in for a worker."""
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        run = sweep._by_worker(
            lambda *run: {"threads": torch.get_num_threads()}, {}, {}, 0, "cpu", sweep.versions()
        )
    finally:
        torch.set_num_threads(threads)
    assert run.values == {"threads": 1}


def test_an_experiment_of_the_course_gives_the_same_numbers_on_a_cluster(cluster):
    small = {"live": {"encodings": ["none", "rotary"], "steps": 3, "batch": 8}}
    order = replace(EXPERIMENTS["word_order"], presets=small)
    here, there = (sweep.run(order, scheduler=scheduler) for scheduler in (None, cluster))
    assert numbers(there)["runs"] == numbers(here)["runs"]


def test_a_worker_that_is_killed_loses_no_run(cluster, tmp_path):
    """SIGKILL in the fourth run: it is measured again, the finished ones are not."""
    flag = tmp_path / "died"

    def received():
        begun = len(calls(tmp_path))  # this one, and at most one at the other worker
        return len(journal(tmp_path)) >= begun - 2 and [CELLS[0], 0] in [
            [run["cell"], run["seed"]] for run in journal(tmp_path)
        ]

    def die_once(cell, seed):
        if (cell, seed) == (CELLS[3], 0) and not flag.exists():
            wait_for(received)  # what has not come back dies with the worker
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    path = tmp_path / "tiny-live.json"
    record = sweep.run(sent(die_once, 0.2, tmp_path), out=path, scheduler=cluster)
    assert numbers(record) == numbers(sweep.run(TINY)) | {"threads": 1}
    made = [[cell, seed] for cell, seed, *_ in calls(tmp_path)]
    assert made.count([CELLS[3], 0]) == 2 and made.count([CELLS[0], 0]) == 1 and len(made) <= 10


def test_a_run_that_kills_every_worker_ends_the_sweep(cluster, tmp_path):
    def die(cell, seed):
        if cell == CELLS[3]:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match="several workers died in .*'b', 'length': 2.*enough memory"):
        sweep.run(sent(die), seeds=(0,), out=tmp_path / "x.json", scheduler=cluster)
    assert not (tmp_path / "x.json").exists()


def test_a_measurement_that_raises_on_a_cluster(cluster, tmp_path):
    def fail(cell, seed):
        if (cell, seed) == (CELLS[1], 1):
            time.sleep(0.5)
            raise ArithmeticError("a matrix is singular")

    with pytest.raises(ArithmeticError, match="a matrix is singular") as caught:
        sweep.run(sent(fail), out=tmp_path / "x.json", scheduler=cluster)
    assert caught.value.__notes__ == [f"This happened in {CELLS[1]} with seed 1."]
    assert 1 <= len(journal(tmp_path)) < 8
    kept = len(journal(tmp_path))
    sweep.run(sent(folder=tmp_path), out=tmp_path / "x.json", scheduler=cluster)
    assert len(calls(tmp_path)) == 8 - kept


def test_a_worker_of_other_versions_is_refused(cluster, monkeypatch):
    monkeypatch.setattr(sweep, "versions", lambda: {"python": "1", "torch": "2", "tutorial_lib": "3"})
    with pytest.raises(RuntimeError, match="a worker has .* install the same everywhere"):
        sweep.run(sent(), scheduler=cluster)


def test_the_command_takes_an_address_and_leaves_that_cluster_alone(cluster, tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "tiny", sent())
    for preset in ("live", "full"):
        assert command("run", "tiny", "--preset", preset, "--folder", tmp_path, "--scheduler", cluster) == 0
        assert len(experiments.load("tiny", preset, tmp_path).runs) in (8, 12)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "http://127.0.0.1:9"])
def test_an_address_where_nothing_answers(address, registered, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sweep, "PATIENCE", 0.5)
    began = time.monotonic()
    assert command("run", "tiny", "--folder", tmp_path, "--scheduler", address) == 2
    err = capsys.readouterr().err
    assert f"error: scheduler={address!r}: no Dask cluster with a worker answers there" in err
    assert time.monotonic() - began < 30 and "Traceback" not in err  # Dask alone would take that long


def test_a_cluster_without_workers(registered, monkeypatch):
    monkeypatch.setattr(sweep, "PATIENCE", 1)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        with pytest.raises(ConnectionError, match="no Dask cluster with a worker"):
            sweep.run(TINY, scheduler=empty.scheduler_address)


def test_local_workers_keep_what_a_step_of_training_frees(monkeypatch):
    """With Dask's own 64 KiB, half of the time went to the kernel."""
    seen = []

    def cluster(**_):
        seen.append(dask.config.get("distributed.nanny.pre-spawn-environ")["MALLOC_TRIM_THRESHOLD_"])
        raise InterruptedError

    monkeypatch.setattr(distributed, "LocalCluster", cluster)
    before = dask.config.get("distributed.nanny.pre-spawn-environ")["MALLOC_TRIM_THRESHOLD_"]
    with pytest.raises(InterruptedError):
        sweep.run(TINY, scheduler="local")
    assert seen == [2**32] and before != 2**32
    assert dask.config.get("distributed.nanny.pre-spawn-environ")["MALLOC_TRIM_THRESHOLD_"] == before


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match="--no-deps -r requirements.lock"):
        sweep.run(TINY, scheduler="local")


# ---- the page ----


def test_the_page(registered, tmp_path):
    assert report.page(tmp_path) == report.HEAD
    sweep.run(TINY, "full", out=tmp_path / "tiny-full.json")
    sweep.run(TINY, "live", out=tmp_path / "tiny-live.json")
    text = report.page(tmp_path)
    assert text == report.page(tmp_path) and text.startswith(report.HEAD)
    assert text.split("## A tiny one\n\n")[1].split("\n", 2)[2] == textwrap.dedent("""\
        **Longer is worse** (A. 2020)

        - In the paper: 1.0
        - Measured here: +3.000 (+3.000 to +3.000)
        - Asked for: above 0
        - **Holds**

        **Shorter is worse** (B. 2021)

        - Measured here: +3.000 (+3.000 to +3.000)
        - Asked for: below 0
        - **Does not hold**: too small
        """)
    assert "`python -m course.experiments run tiny --preset full` — cpu, torch" in text
    assert "3 seeds, 0 s." in text and text.count("## ") == 1


def test_the_page_says_what_was_trained(registered, tmp_path, monkeypatch):
    """From the settings of the record, in a line below the command."""
    spoken = tiny(setup=sweep.in_words("{steps} steps, {colour}", colour="red"))
    monkeypatch.setitem(EXPERIMENTS, "tiny", spoken)
    sweep.run(spoken, "full", out=tmp_path / "tiny-full.json")
    assert " s.\n\n3 steps, red.\n\n**Longer is worse**" in report.page(tmp_path)


@pytest.mark.parametrize(
    "settings, said",
    [
        (
            {"layers": 2, "lr": 0.01},
            "2 layers of width 8; 1,000 steps of 4 texts; one learning rate for all, 0.01",
        ),
        (
            {"layers": [1, 2], "protocol": ["own"]},
            "1 or 2 layers of width 8; 1,000 steps of 4 texts; each encoding at its own learning rates",
        ),
        (
            {"layers": 1, "protocol": ["one", "own"], "batch": 2},
            "1 layer of width 8; 1,000 steps of 2 texts; "
            "each encoding at its own learning rates, and at one learning rate for all, 0.5",
        ),
    ],
)
def test_settings_in_words(settings, said):
    """What a preset says goes before what the module says."""
    known = {"d_model": 8, "steps": 1000, "batch": 4, "lr": 0.5}
    assert sweep.in_words("{training}", examples="texts", **known)(settings) == said


# ---- every experiment of the course ----


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_is_whole(name):
    experiment = experiments.find(name)
    assert experiment.name == name and {"live", "full"} <= set(experiment.presets) <= set(sweep.PRESETS)
    least = 2 if name == "tuning" else 3  # a search, whose seeds are not reported
    assert set(experiment.seeds) == set(experiment.presets) and len(experiment.seeds["full"]) >= least
    for settings in experiment.presets.values():
        cells = experiment.cells(json.loads(json.dumps(settings)))
        assert cells and len({json.dumps(cell, sort_keys=True) for cell in cells}) == len(cells)
        said = experiment.setup(settings)  # for the page of results
        assert "{" not in said and len(said.split()) > 8
