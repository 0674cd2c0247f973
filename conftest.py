"""What every test run shares, notebooks included: a quiet environment, no silent skips, processes, times."""

import ast
import gc
import itertools
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

import nbformat
import psutil
import pytest
from xdist.scheduler import LoadScopeScheduling

# The tests themselves run side by side. Said here, because the first conftest.py below imports torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")
PROGRESS = pytest.StashKey[Path]()  # the folder of the tests' progress

# a notebook edited as text is not a module to import
collect_ignore_glob = ["notebooks/*.py", "solutions/*/*.py", "classroom/*/*", "workshop/*/*"]


def pytest_configure(config):
    """Set the environment that the tests, and the notebooks' kernels, inherit."""
    folder = tempfile.mkdtemp(prefix="course-tests-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    config.stash[PROGRESS] = Path(folder)  # not the reader's own
    os.environ["TQDM_DISABLE"] = "1"  # a progress bar's text is different in every run
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times())


def pytest_collection_modifyitems(items):
    """Each process must know a test by the same name, and an address is another one in each."""
    addresses = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if addresses:
        raise pytest.UsageError(f"give these tests names (ids=…) without an address: {addresses[:5]}")
    for item in items:
        if hasattr(item, "output_timeout"):  # nbval's: its five seconds are few on a busy machine
            item.output_timeout = 120
            if "trained" in item.cell.metadata.get("tags", []):
                item.compare_outputs = near(item.compare_outputs)
            if TURN in item.cell.source:
                item.runtest = empty_then_filled(item)
    items.sort(
        key=lambda item: next(
            (n for n, start in enumerate(FIRST) if item.nodeid.startswith(start)), len(FIRST)
        )
    )


def pytest_collection_finish(session):
    """Thousands of tests and what they import stay: no search for garbage goes through them again."""
    gc.collect()
    gc.freeze()


# ---- a cell with a blank: a notebook runs once, and from there on it runs on the learner's code ----
TURN = "lesson.your_turn("


def filled(source):
    """A cell with a blank, with the course's own version in its place."""
    from course.lesson import turns  # late: it needs torch

    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and f"{node.name} = {TURN}" in source:
            key = source.split(TURN)[1].split('"')[1]
            lines = source.splitlines()
            lines[node.lineno - 1 : node.end_lineno] = turns.solution(turns.find(key)).splitlines()
            return "\n".join(lines)
    raise ValueError(source)


def empty_then_filled(item):
    """Run nbval's cell as it is stored, and compare; then filled in, as a learner leaves it."""
    run = item.runtest

    def runtest():
        run()
        item.cell = nbformat.from_dict({**item.cell, "source": filled(item.cell.source)})
        item.options = {**item.options, "check": False}
        log = Path(os.environ["TUTORIAL_PROGRESS"])  # the kernel's, too: the run as stored goes on in it
        before = log.read_bytes() if log.exists() else None
        run()
        log.unlink(missing_ok=True) if before is None else log.write_bytes(before)
        said = "".join(output.data["text/plain"] for output in item.test_outputs if "data" in output)
        if "✔ Right." not in said:
            item.raise_cell_error(f"Filled in it is not right: {said}")

    return runtest


# ---- numbers of a model that was trained in the cell ----
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NEAR = 0.15  # of the number, or of 1 if that is more
PICTURE = re.compile(r'src="data:[^"]*"')


def near(compare):
    """A comparison of outputs that takes a number for the stored one where it is near.

    Another kind of processor adds in another order, and a training enlarges the difference. So a cell that is
    tagged ``trained`` has the same words on every machine, and numbers that are near.
    """

    def compared(test, ref, skip_compare=None):
        found = [stored(new, old) for new, old in itertools.zip_longest(test, ref) if new is not None]
        return compare(found, ref, skip_compare)

    return compared


def stored(new, old):
    """``new``, an output or a text of one; or ``old``, if its words are the same and its numbers near."""
    if isinstance(new, dict) and isinstance(old, dict):
        return type(new)({key: stored(value, old.get(key)) for key, value in new.items()})
    if not (isinstance(new, str) and isinstance(old, str)):
        return new
    texts = [PICTURE.sub("", text) for text in (new, old)]
    words, numbers = ([find(text) for text in texts] for find in (NUMBER.split, NUMBER.findall))
    if words[0] != words[1]:
        return new
    pairs = zip(*(map(float, each) for each in numbers), strict=True)
    return old if all(abs(a - b) <= NEAR * max(1, abs(b)) for a, b in pairs) else new


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Each file has a progress of its own: what one passes, another must not find passed."""
    name = item.path.relative_to(item.path.anchor).with_suffix(".json")
    os.environ["TUTORIAL_PROGRESS"] = str(item.config.stash[PROGRESS] / name)


def must_run(report):
    """True for a skip that is a failure: SKIPS_FAIL is set where every test has to run (CI)."""
    return bool(os.environ.get("SKIPS_FAIL")) and report.skipped and not hasattr(report, "wasxfail")


def fail(report):
    reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"Skipped where every test has to run (SKIPS_FAIL is set): {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if must_run(report) and not item.get_closest_marker("gpu"):
        fail(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector):
    report = yield
    if must_run(report):
        fail(report)
    return report


# ---- several processes, and what they take ----
# The slowest begin first, so that no process is left waiting at the end.
FIRST = (
    "tests/browser",
    "notebooks/10",
    "tests/exercises/test_questions",
    "notebooks/02",
    "tests/site",
    "tests/unit/test_compiled",
    "notebooks/07",
    "tests/house/test_commands",
    "notebooks/03",
    "notebooks/04",
    "tests/grading/test_nbgrader",
    "tests/house/test_translation",
    "notebooks/",
    "tests/grading",
    "tests/slides",
    "tests/parity",
    "tests/experiments",
    "tests/house",
    "tests/exercises",
)


class Units(LoadScopeScheduling):
    """A process gets a whole module, for what its tests share; of the questions, those of one notebook."""

    def _split_scope(self, nodeid):
        module, _, test = nodeid.partition("::")
        questions = re.search(r"\[(q\d\d)\b", test)
        return f"{module}::{questions[1]}" if questions else module


@pytest.hookimpl(optionalhook=True, wrapper=True)  # it is xdist's
def pytest_xdist_auto_num_workers():
    """One process more than there are cores: many a test waits for a browser, a server or a sandbox."""
    return (yield) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Units(config, log) if config.getoption("dist") == "loadscope" else None


class Times:
    """At the end of a run of more than a minute: what took longest, and what all of it took."""

    def __init__(self):
        self.begun, self.busy, self.modules = time.perf_counter(), busy(), Counter()

    def pytest_runtest_logreport(self, report):
        self.modules[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter):
        minutes = (time.perf_counter() - self.begun) / 60
        if minutes < 1:
            return
        terminalreporter.section("seconds of the longest modules")
        for module, seconds in self.modules.most_common(20):
            terminalreporter.write_line(f"{seconds:7.0f}  {module}")
        worked = (busy() - self.busy) / 60
        terminalreporter.write_line(
            f"All of it took {minutes:.1f} minutes, and this machine worked for "
            f"{worked:.1f} core-minutes, other programs included."
        )


def busy():
    """Seconds that all cores have worked: of a browser's processes, not even their parent knows them."""
    spent = psutil.cpu_times()
    return spent.user + spent.system
