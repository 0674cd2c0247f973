"""How the tests are dealt out to processes, and what is said at the end."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]
TESTS = """
import os, time, pytest
@pytest.mark.parametrize("n", range(3))
@pytest.mark.parametrize("question", ["q01-a", "q01-b", "q02-a", "q02-b", "other"])
def test_some(question, n):
    time.sleep(0.05)
    with open("log", "a") as log:
        print(os.environ["PYTEST_XDIST_WORKER"], __name__.rpartition(".")[2], question, n, file=log)
"""


def test_questions_of_a_notebook_stay_together_and_what_is_long_begins_first(tmp_path):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    for name in ("house", "browser"):  # the second is among those that begin first
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / f"test_{name}.py").write_text(TESTS)
    (command,) = re.findall(r"^PYTEST = -m pytest (.*) \$\(ARGS\)$", (ROOT / "Makefile").read_text(), re.M)
    options = command.replace("-n auto", "-n 2").split()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "tests"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"SKIPS_FAIL": ""},
    )
    assert done.returncode == 0 and "30 passed" in done.stdout, done.stdout
    ran = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    where = {}
    for worker, module, question, _ in ran:
        where.setdefault((module, question.split("-")[0]), set()).add(worker)
    assert len(where) == 6 and all(len(workers) == 1 for workers in where.values()), where
    assert len(set.union(*where.values())) == 2
    order = [module for _, module, _, _ in ran]
    assert order.index("test_house") > 6


def test_what_make_test_runs_asks_for_no_browser(tmp_path):
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    for name in ("conftest.py", "pyproject.toml", "tests/conftest.py", "tests/notebooks/sanitize.cfg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "unit" / "test_it.py").write_text("def test_it(browser): ...")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 4 and "move them out of `make test`: ['tests/unit/test_it.py" in done.stderr


def test_a_long_run_says_where_the_time_went():
    spec = importlib.util.spec_from_file_location("course_conftest", ROOT / "conftest.py")
    spec.loader.exec_module(conftest := importlib.util.module_from_spec(spec))
    times, lines = conftest.Times(), []
    reporter = SimpleNamespace(section=lines.append, write_line=lines.append)
    times.pytest_terminal_summary(reporter)
    assert not lines
    times.begun -= 90
    for name, seconds in (("a.py::x", 1), ("b.py::x[::]", 2), ("b.py::y", 3), ("c.ipynb::Cell 0", 4)):
        times.pytest_runtest_logreport(SimpleNamespace(nodeid=name, duration=seconds))
    times.pytest_terminal_summary(reporter)
    assert [line.split() for line in lines[1:4]] == [["5", "b.py"], ["4", "c.ipynb"], ["1", "a.py"]]
    assert re.fullmatch(r"All of it took 1\.5 minutes, and .* for \d+\.\d core-minutes, .*", lines[4])


def test_what_begins_first_is_there():
    spec = importlib.util.spec_from_file_location("course_conftest", ROOT / "conftest.py")
    spec.loader.exec_module(conftest := importlib.util.module_from_spec(spec))
    assert all(list(ROOT.glob(f"{start}*")) or (ROOT / start).is_dir() for start in conftest.FIRST)
