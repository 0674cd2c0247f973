"""The benchmarks: cases that compute the same, times and bytes that are what they say."""

import json
import math
import os
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
import torch

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from workshop.benchmarks import __main__ as command
from workshop.benchmarks import grading, latency, mistakes, notebooks
from workshop.benchmarks.cases import Table, Target
from workshop.benchmarks.measure import interleaved, peak_bytes, ratio

CPU = torch.device("cpu")


def test_rounds_are_interleaved_and_the_first_is_not_counted():
    order = []
    seconds = interleaved({name: lambda name=name: order.append(name) for name in "abc"}, 9, CPU)
    assert order[0::2] == order[1::2]  # each runs twice
    rounds = [tuple(order[n : n + 6 : 2]) for n in range(0, len(order), 6)]
    assert {tuple(sorted(names)) for names in rounds} == {("a", "b", "c")} and len(set(rounds)) > 3
    assert [len(x) for x in seconds.values()] == [9, 9, 9]


def test_a_ratio_is_the_median_of_the_rounds():
    """A slow moment that hits a whole round does not count."""
    assert ratio({"slow": [2.0, 20.0, 2.0], "fast": [1.0, 10.0, 1.0]}, "slow", "fast") == 2.0


def test_peak_bytes():
    x = torch.zeros(1000, 1000)
    assert 4_000_000 <= peak_bytes(lambda: (x + 1).sum(), CPU) < 4_001_000
    assert 8_000_000 <= peak_bytes(lambda: ((x + 1) * 2).sum(), CPU) < 8_001_000


def test_a_result_says_what_was_met():
    def sleeps(seconds):
        return lambda: time.sleep(seconds)

    table = Table(
        "sleep",
        {"long": sleeps(0.02), "short": sleeps(0.002)},
        unit="short",
        targets=[Target("long", "short", 2), Target("short", "long", 1)],
    )
    result = command.measured(table, 3, CPU)
    assert result["rows"]["short"]["ratio"] == 1 and 3 < result["rows"]["long"]["ratio"] < 12
    text = command.show(result)
    assert "met" in text and "MISSED" in text and "long: at least 2 times as long as short" in text


def test_latency_targets_are_held_against_what_was_measured(monkeypatch):
    times = {
        latency.OURS: [50.0, 60.0, 40.0],
        latency.IPYMPL: [100.0, 240.0, 100.0],
        latency.INLINE: [100.0, 240.0, 100.0],
    }
    monkeypatch.setattr(latency, "peers", lambda lab, rounds: times)
    each = {"A": {"x": [30.0, 90.0, 40.0]}, "B": {"y": [110.0, 120.0, 10.0], "z": [1.0, 1.0, 1.0]}}
    monkeypatch.setattr(latency, "controls", lambda lab, rounds: (each, {"A": 59.5}))
    monkeypatch.setattr(
        latency,
        "computing",
        lambda lab, rounds: {"A": {"idle": 40.0, "computing": 42.0}, "B": {"idle": 40.0, "computing": 60.0}},
    )
    result = latency.measured(None, 3)
    assert [(t["most"], t["measured"]) for t in result["targets"]] == [
        (60, 50),
        (100, 110),
        (0.5, 0.4),
        (0.2, 0.4),
        (1.3, 1.5),
    ]
    assert result["controls"] == {"A": {"x": 40}, "B": {"y": 110, "z": 1}}
    assert "B, y" in result["targets"][1]["target"]
    text = latency.show(result)
    assert text.count("MISSED") == 3 and text.count("met   ") == 2 and "A, x" in text


@pytest.mark.parametrize("mistake", grading.MISTAKES, ids=lambda mistake: mistake[1])
def test_the_mistakes_of_the_made_up_class_are_those_of_the_catalogue(mistake):
    """Run here, without a sandbox: the changed solution is named as the benchmark expects."""
    question, space = questions.find(mistake[0]), {"torch": torch, "math": math}
    for cell in json.loads(grading.submission(mistake))["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution") and cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    outcomes = collect(space[question.name], [case.args for case in question.cases(5)])
    assert judge(question, 5, outcomes).name == mistake[1]
    with pytest.raises(ValueError, match="any more"):
        grading.submission((*mistake[:2], "is not there", ""))


def test_every_mistake_of_every_question_is_written_out():
    for question in questions.everything():
        written = [what for what, _path, _new in mistakes._edits(mistakes.tree_of(question))]
        assert written and all(" → " in what for what in written), question.name


def test_marks_that_are_off_stop_the_benchmark(tmp_path):
    given = grading.hand_in(tmp_path, 4)
    assert [bool(mistake) for mistake in given.values()] == [False, True, False, True]

    def marks(student, name="", points=4.0):
        entry = {"points": points, "max": 4.0, "name": name}
        return {"student": student, "state": "graded", "questions": {"rope_angles": entry}}

    names = list(given)
    right = [
        marks(names[0]),
        marks(names[1], grading.MISTAKES[0][1], 0.0),
        marks(names[2]),
        marks(names[3], grading.MISTAKES[1][1], 0.0),
    ]
    grading.check(right, given)
    for off in (
        right[:3],
        [marks(names[0], points=0.0), *right[1:]],
        [*right[:3], marks(names[3], points=0.0)],
        [right[0] | {"state": "timed out"}, *right[1:]],
    ):
        with pytest.raises(RuntimeError):
            grading.check(off, given)


def test_grading_is_held_against_its_imports():
    found = grading.result(10, 2, (90.0, 110.0), (115.0, 5.0), 3 * 2**30)
    assert found["targets"][0]["measured"] == pytest.approx(1.2) and found["seconds a submission"] == 12
    text = grading.show(found)
    assert "met" in text and "MISSED" not in text and "3.00 GiB" in text
    assert "MISSED" in grading.show(grading.result(10, 2, (90.0, 90.0), (115.0, 5.0), 1))


@pytest.mark.skipif(sys.platform != "linux", reason="shares of pages are Linux's")
def test_the_memory_of_all_processes_below_is_counted():
    holds = "data = b'x' * 50_000_000; print(1, flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        assert child.pid in [process.pid for process in grading.family(os.getpid())]
        with grading.Memory() as memory:
            while not memory.peak:
                time.sleep(0.01)
        assert memory.peak > grading._pss(psutil.Process()) / 2 + 50_000_000
    finally:
        child.communicate(b"\n")


def test_the_seconds_of_notebooks_are_recorded_and_some_can_be_measured_again(monkeypatch, tmp_path, capsys):
    times = iter(range(2, 100))
    found = lambda path: {"code": "", "seconds": (seconds := next(times)), "cells": {"a": seconds, "b": 1.5}}  # noqa: E731
    monkeypatch.setattr(notebooks, "measured", found)
    save = ["--save", str(tmp_path / "new" / "notebooks.json")]
    notebooks.main([*save, "00", "ex06"])
    notebooks.main([*save, "00", "--again"])
    said = capsys.readouterr().out
    assert "  3.0 s  ex06_rope" in said and said.endswith(
        "  7.0 s  all 2\n\nThe slowest cells:\n  4.0 s  00_start_here, cell a\n  3.0 s  ex06_rope, cell a\n"
        "  1.5 s  ex06_rope, cell b\n  1.5 s  00_start_here, cell b\n"
    )
    record = json.loads((tmp_path / "new" / "notebooks.json").read_text())
    assert {name: one["seconds"] for name, one in record["notebooks"].items()} == {
        "00_start_here": 4,
        "ex06_rope": 3,
    }
    assert record["cores"] == os.cpu_count() and record["versions"]["torch"] == torch.__version__
    notebooks.main([*save, "00"])  # 5 s of a slower hour: a and b are as they were
    record = json.loads((tmp_path / "new" / "notebooks.json").read_text())
    assert record["notebooks"]["00_start_here"]["seconds"] == round(5 * (4 + 1.5) / (5 + 1.5), 1)
    monkeypatch.setattr(notebooks, "head", lambda: {"cores": 64})
    for wrong, words in (
        ([*save, "00"], "measure all"),
        ([*save, "77"], "no notebook starts with '77'"),
    ):
        with pytest.raises(SystemExit):
            notebooks.main(wrong)
        assert words in capsys.readouterr().err


def test_a_cell_costs_what_the_processor_does_and_not_what_it_waits(tmp_path):
    wait = nbformat.v4.new_code_cell("import time; time.sleep(1.5)")
    work = nbformat.v4.new_code_cell(
        "start = time.process_time()\nwhile time.process_time() < start + 1.2: pass"
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[wait, work]), tmp_path / "01_x.ipynb")
    found = notebooks.measured(tmp_path / "01_x.ipynb")
    assert found["cells"] == {work.id: pytest.approx(1.2, abs=0.2)}
    assert sum(found["cells"].values()) <= found["seconds"] < 10


def test_what_a_kernel_has_done_for_it_costs_too(tmp_path):
    """The judging process of an exercise lives as long as its kernel."""
    loop = "import time\nwhile time.process_time() < 1.2: pass\nprint(flush=True)\ninput()"
    asked = nbformat.v4.new_code_cell(
        "import subprocess, sys\n"
        f"kept = subprocess.Popen([sys.executable, '-c', {loop!r}], stdin=-1, stdout=-1, stderr=-3)\n"
        "kept.stdout.readline();"
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[asked]), tmp_path / "01_x.ipynb")
    found = notebooks.measured(tmp_path / "01_x.ipynb")
    assert 1.2 <= found["cells"][asked.id] < 5
