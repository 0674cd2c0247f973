"""The steps of "Add an encoding" (docs/contributing.md), walked with a made-up one: no file knows it."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from course.experiments import RESULTS, Record

ROOT = Path(__file__).parents[2]
PLUGIN = '''
"""Steps 1 and 3: a class, its name in the registry, its cells in copies of the records."""
from dataclasses import replace
from pathlib import Path

from tutorial_lib import encodings
from tutorial_lib.encodings import REGISTRY, RelativeBias
from tutorial_lib.encodings.base import check_positive


class MadeUp(RelativeBias):
    """Each head loves what is near."""

    def __init__(self, n_heads: int):
        super().__init__()
        check_positive(n_heads=n_heads)
        self.n_heads = n_heads

    def of(self, r):
        return -r.abs().double().sqrt().to(encodings.positions.result_dtype(r)).expand(self.n_heads, *r.shape)


REGISTRY["made-up"] = encodings.MadeUp = MadeUp
encodings.__all__.append("MadeUp")

from course import experiments
from course.experiments import rates, sweep

rates.RECORDS = Path({folder!r})
experiments.load.__defaults__ = ("full", rates.RECORDS)


def untrained(settings, cell, seed, device):
    """In the place of a training: whatever rates it gets, the slowest come out best."""
    return {{"loss": 100 * cell["rates"][0]}} if "of" in cell else {{"mean": [2.0] * 5, "tail": [2.0] * 5}}


for name in {steps}:
    experiment = experiments.find(name)
    if name != "scoreboard":  # which trains nothing
        experiment = replace(experiment, measure=untrained)
    sweep.run(experiment, "full", device="cpu", out=rates.RECORDS / f"{{name}}-full.json", progress=False)
'''
GUIDE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
STEPS = re.findall(r"experiments run (\w+)`", GUIDE.split("## Add an encoding")[1].split("\n## ")[0])
CELLS = {
    "tuning": [{"of": "lengths", "encoding": "made-up", "rates": [lr, lr]} for lr in (0.005, 0.015, 0.045)],
    "lengths": [{"encoding": "made-up"}, {"encoding": "made-up", "rates": [0.005, 0.005]}],
    "scoreboard": [{"encoding": "made-up"}],
}
"""What is measured of it: every rate of the grid; at one rate for all and at its own; once."""


def runs(folder, name):
    return json.loads((folder / f"{name}-full.json").read_text())["runs"]


def test_one_line_of_the_registry_is_enough(tmp_path):
    """The general tests run over it, the board has it, nobody's count is wrong, and only it is measured."""
    for name in ("scoreboard", "lengths", "tasks", "tuning"):
        shutil.copy(RESULTS / f"{name}-full.json", tmp_path)
    (tmp_path / "made_up.py").write_text(textwrap.dedent(PLUGIN).format(folder=str(tmp_path), steps=STEPS))
    files = [
        ROOT / "tests" / "unit" / f"test_{name}.py"
        for name in (
            "every_encoding",
            "relative",
            "experiment_lengths",
            "experiment_scoreboard",
            "explorer_scoreboard",
        )
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "made_up",
            "-n0",
            "-q",
            "-rA",
            *files,
            "-k",
            "made-up or registry or the_board or said",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0, done.stdout
    for test in (
        "test_every_path_gives_the_same_numbers[made-up-7-7-True]",
        "test_build[made-up]",
        "test_the_board_joins_three_records",
        "test_long_lists_are_whole_and_empty_ones_said",
    ):
        assert f"::{test}" in done.stdout
    assert set(STEPS) == CELLS.keys()
    for name, cells in CELLS.items():
        new = [run for run in runs(tmp_path, name) if run["cell"]["encoding"] == "made-up"]
        assert [run for run in runs(tmp_path, name) if run not in new] == runs(RESULTS, name)
        seeds = Record.load(tmp_path / f"{name}-full.json").seeds
        wanted = [(cell, seed) for seed in seeds for cell in cells]
        assert [(run["cell"], run["seed"]) for run in new] == wanted
