"""The steps of "Add an encoding" (docs/contributing.md), walked with a made-up one: no file knows it."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from tutorial_lib.experiments import RESULTS, Record

ROOT = Path(__file__).parents[2]
PLUGIN = '''
"""Steps 1 and 3: a class, its name in the registry, its cells in a copy of the record."""
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
        return -r.abs().double().sqrt().to(encodings.base.result_dtype(r)).expand(self.n_heads, *r.shape)


REGISTRY["made-up"] = encodings.MadeUp = MadeUp
encodings.__all__.append("MadeUp")

from tutorial_lib import experiments

experiments.load.__defaults__ = ("full", Path({folder!r}))
experiments.run("scoreboard", "full", out=Path({folder!r}) / "scoreboard-full.json", progress=False)
'''


def test_one_line_of_the_registry_is_enough(tmp_path):
    """The general tests run over it, the board has it, nobody's count is wrong, and only it is measured."""
    for name in ("scoreboard", "lengths", "tasks"):
        shutil.copy(RESULTS / f"{name}-full.json", tmp_path)
    (tmp_path / "made_up.py").write_text(textwrap.dedent(PLUGIN).format(folder=str(tmp_path)))
    files = [ROOT / "tests" / "unit" / f"test_{name}.py" for name in (
        "every_encoding", "relative", "experiment_lengths", "experiment_scoreboard", "explorer_scoreboard")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "made_up", "-n0", "-q", "-rA", *files,
         "-k", "made-up or registry or the_board or said"], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    assert done.returncode == 0, done.stdout
    for test in ("test_every_path_gives_the_same_numbers[made-up-7-7-True]", "test_build[made-up]",
                 "test_the_board_joins_three_records", "test_long_lists_are_whole_and_empty_ones_said"):
        assert f"::{test}" in done.stdout
    old, new = (json.loads((folder / "scoreboard-full.json").read_text())["runs"]
                for folder in (RESULTS, tmp_path))
    assert [run for run in new if run["cell"] != {"encoding": "made-up"}] == old
    assert len(new) == len(old) + len(Record.load(tmp_path / "scoreboard-full.json").seeds)
