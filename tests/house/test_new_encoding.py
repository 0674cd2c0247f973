"""The steps of "Add an encoding" (docs/contributing.md) with a made-up one: a file that no other knows."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course.experiments import RESULTS, Record

ROOT = Path(__file__).parents[2]
MADE_UP = r'''
r"""Made up (Nobody 2025, eq. 1).

.. math:: q_i^\top k_j - \sqrt{|i - j|}
"""

from .base import check_positive
from .method import Method, Row
from .positions import result_dtype
from .relative import RelativeBias


class MadeUp(RelativeBias):
    """Each head loves what is near."""

    def __init__(self, n_heads: int):
        super().__init__()
        check_positive(n_heads=n_heads)
        self.n_heads = n_heads

    def of(self, r):
        return -r.abs().double().sqrt().to(result_dtype(r)).expand(self.n_heads, *r.shape)


METHODS = [
    Method(
        names={"made-up": MadeUp},
        compared=COMPARED,
        lesson="07_alibi",
        title="Made up: near is dear",
        says="Each head loves what is near.",
        where="q_i and k_j are query and key.",
        words=("made-up",),
        code=(MadeUp.__init__, MadeUp.of),
        make="MadeUp(4)",
        year=2025,
        arxiv="2501.00001",
        row=Row(name="Made up", formula=(r"$-\sqrt{|i-j|}$",), parameters="0", cost="little",
                longer="steady"),
    )
]
'''
PLUGIN = '''
"""The file stands in the package, as far as Python sees."""
import importlib.util
import sys

import tutorial_lib

spec = importlib.util.find_spec("tutorial_lib.encodings")
sys.modules[spec.name] = tutorial_lib.encodings = package = importlib.util.module_from_spec(spec)
package.__path__.append({folder!r})
spec.loader.exec_module(package)
'''
MEASURED = '''
from dataclasses import replace
from pathlib import Path

from course import experiments
from course.experiments import rates, sweep

rates.RECORDS = Path({records!r})
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
FOUND = """
import sys
import made_up_is_there
import tutorial_lib
from tutorial_lib.encodings import build
from workshop import ROOT, documents, summary

sys.path.insert(0, str(ROOT / "workshop" / "site"))
import methods

assert isinstance(build("made-up", n_heads=2), tutorial_lib.MadeUp) and "MadeUp" in tutorial_lib.__all__
assert "Made up: near is dear" in [text for text, _, _ in documents.messages("methods")]
assert methods.search_words()["made-up"] == ["notebooks/07_alibi", "methods/made-up"]
assert "[Made up: near is dear]" in methods.listed() or "Made up: near is dear <" in methods.listed()
print(methods.text("made-up", ""))
print([each.row.name for each in summary.table()["bias"]])
"""
GUIDE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
STEPS = re.findall(r"experiments run\s+(\w+)`", GUIDE.split("## Add an encoding")[1].split("\n## ")[0])
CELLS = {
    "tuning": [{"of": "lengths", "encoding": "made-up", "rates": [lr, lr]} for lr in (0.005, 0.015, 0.045)],
    "lengths": [{"encoding": "made-up"}, {"encoding": "made-up", "rates": [0.005, 0.005]}],
    "scoreboard": [{"encoding": "made-up"}],
}
"""What is measured of it: every rate of the grid; at one rate for all and at its own; once."""


def runs(folder, name):
    return json.loads((folder / f"{name}-full.json").read_text())["runs"]


@pytest.fixture
def python(tmp_path):
    """python(compared, plugin, *arguments): what a Python said in whose package the file stands."""

    def call(compared, plugin, *arguments):
        folder = tmp_path / "encodings"
        folder.mkdir()
        (folder / "made_up.py").write_text(MADE_UP.replace("COMPARED", str(compared)))
        (tmp_path / "made_up_is_there.py").write_text(PLUGIN.format(folder=str(folder)) + plugin)
        path = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, env=path
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


PYTEST = ("-m", "pytest", "-p", "made_up_is_there", "-n0", "-q", "-rA")


def test_a_new_file_is_found_by_all_that_tell_of_it(python):
    said = python(False, "", "-c", FOUND)
    for words in (
        "# Made up: near is dear",
        "\\sqrt{|i - j|}",
        "class MadeUp(RelativeBias):",
        "<dt>Work</dt><dd>\n\nlittle\n",
        "| shift error | 0 (1st of 32) |",
        "arXiv:2501.00001",
        "`MadeUp(4)`",
    ):
        assert words in said
    assert "'ALiBi'" in said and "'Made up'" not in said, "the sheet has the records' numbers of each"


def test_a_new_file_alone_leaves_nothing_red(python):
    files = [
        ROOT / "tests" / name
        for name in (
            "unit/test_every_encoding.py",
            "unit/test_relative.py",
            "experiments/test_experiment_lengths.py",
            "unit/test_experiment_scoreboard.py",
            "house/test_papers.py",
            "house/test_results.py",
            "site/test_methods.py",
        )
    ]
    done = python(
        False,
        "",
        *PYTEST,
        *files,
        "-k",
        "made-up or registry or of_the_board or stored_page or record_is or page_is_what",
    )
    for test in (
        "test_every_path_gives_the_same_numbers[made-up-7-7-True]",
        "test_build[made-up]",
        "test_a_page_is_whole[made-up]",
        "test_the_stored_page_is_what_is_generated",
        "test_each_record_is_what_its_command_would_measure",
    ):
        assert f"::{test}" in done


def test_measured_it_stands_beside_the_others(python, tmp_path):
    """The board and the sheet have it, nobody's count is wrong, and only it is measured."""
    for name in ("scoreboard", "lengths", "tasks", "tuning"):
        shutil.copy(RESULTS / f"{name}-full.json", tmp_path)
    measured = MEASURED.format(records=str(tmp_path), steps=STEPS) + (
        "from workshop import summary\n"
        "(row,) = [each for each in summary.table()['bias'] if each.row.name == 'Made up']\n"
        "assert summary.tail(row) == ('2.00', '2.00')\n"
    )
    files = [
        ROOT / "tests" / f"{name}.py"
        for name in (
            "experiments/test_experiment_lengths",
            "unit/test_experiment_scoreboard",
            "unit/test_explorer_scoreboard",
        )
    ]
    done = python(True, measured, *PYTEST, *files, "-k", "registry or the_board or said")
    for test in ("test_the_board_joins_three_records", "test_long_lists_are_whole_and_empty_ones_said"):
        assert f"::{test}" in done
    assert set(STEPS) == CELLS.keys()
    for name, cells in CELLS.items():
        new = [run for run in runs(tmp_path, name) if run["cell"]["encoding"] == "made-up"]
        assert [run for run in runs(tmp_path, name) if run not in new] == runs(RESULTS, name)
        seeds = Record.load(tmp_path / f"{name}-full.json").seeds
        wanted = [(cell, seed) for seed in seeds for cell in cells]
        assert [(run["cell"], run["seed"]) for run in new] == wanted
