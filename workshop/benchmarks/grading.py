"""What marking a class costs beside its imports: ``python -m workshop.benchmarks.grading --submissions 200``.

A class of ``ex06_rope`` is made up: every second student hands in the solution, the others one with a
mistake from the catalogue. Timed are, one after the other: the imports alone, once for each submission
in a sandbox of its own, on all cores; then marking (the test of the sandbox and the checks included) and
entering all marks into the gradebook; then the imports again. Marks that are not as they should be stop
it. ``--save FILE`` names the record (``results/benchmarks/grading.json``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

from classroom import gradebook, marking, sandbox

from .. import exercises
from .measure import machine

NAME = "ex06_rope"
PACKAGES = ("torch", "nbgrader", "nbformat", "safetensors", "numpy")
MOST = 1.3  # times the imports
LOOK = 1.0  # seconds between two looks at the memory
RECORD = exercises.ROOT / "results" / "benchmarks" / "grading.json"

#: A mistake of the catalogue: the question, the mistake's name, and what to change in the solution.
MISTAKES = (
    ("rope_angles", "base always 10000", "= base **", "= 10_000.0 **"),
    ("rope_angles", "positions counted from 1", "return positions[", "return (positions + 1)["),
    (
        "rope_rotate",
        "clockwise",
        "a * cos - b * sin, a * sin + b * cos",
        "a * cos + b * sin, b * cos - a * sin",
    ),
    ("rope_shift_error", "not a share", " / old.abs().amax((-2, -1))", ""),
    ("cached_scores", "no scale", " / math.sqrt(q.shape[-1])", ""),
    ("cached_scores", "new keys first", "[cached, turn(k)]", "[turn(k), cached]"),
    ("rope_sort_rows", "always to half", 'if target == "half":', "if True:"),
)


def submission(mistake: tuple[str, str, str, str] | None) -> bytes:
    """A notebook as it is handed in. Raises ValueError where the solution has nothing to change."""
    notebook = json.loads(exercises.path(NAME).read_bytes())
    if mistake:
        question, name, old, new = mistake
        (cell,) = [
            cell
            for cell in notebook["cells"]
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == question
        ]
        source = "".join(cell["source"])
        if old not in source:
            raise ValueError(f"{question}, {name}: the solution has no {old!r} any more")
        cell["source"] = source.replace(old, new)
    return json.dumps(notebook).encode()


def hand_in(root: Path, count: int) -> dict[str, tuple | None]:
    """Make a class of ``count`` students; returns what is wrong with each one's answers."""
    given = {}
    for n in range(count):
        student = f"student{n:04d}"
        given[student] = MISTAKES[n // 2 % len(MISTAKES)] if n % 2 else None
        path = root / "submitted" / student / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(submission(given[student]))
    return given


def imports(count: int, workers: int) -> float:
    """Seconds that ``count`` sandboxes take to import what the marking runs in each."""
    ready = "import os, classroom.runner; os.write(3, bytes(8)); os._exit(0)"

    def one(_):
        outcome = sandbox.run(["-c", ready], mounts={folder: marking.INSIDE}, limits=marking.LIMITS)
        if outcome.frames != bytes(8):
            raise RuntimeError(f"the imports fail in the sandbox: {outcome.stderr}")

    with marking._small_copy() as folder, ThreadPoolExecutor(workers) as pool:
        begun = time.perf_counter()
        list(pool.map(one, range(count)))
        return time.perf_counter() - begun


def grade(root: Path, workers: int) -> tuple[float, float, list[dict]]:
    """``(seconds of marking, seconds of entering, marks)``."""
    begun = time.perf_counter()
    marks = marking.mark_all(root, NAME, workers=workers)
    marked = time.perf_counter()
    gradebook.merge(root, NAME, {one["student"]: one for one in marks})
    return marked - begun, time.perf_counter() - marked, marks


def check(marks: list[dict], given: dict[str, tuple | None]) -> None:
    """Raise RuntimeError unless every right answer has full marks, and every mistake its name."""
    for one in marks:
        mistake = given[one["student"]]
        earned = sum(entry["points"] for entry in one["questions"].values())
        most = sum(entry["max"] for entry in one["questions"].values())
        named = mistake and one["questions"].get(mistake[0], {}).get("name")
        if one["state"] != "graded" or (named != mistake[1] if mistake else earned != most):
            raise RuntimeError(f"{one['student']} ({mistake}) got {json.dumps(one, indent=1)}")
    if len(marks) != len(given):
        raise RuntimeError(f"{len(given)} submissions have {len(marks)} marks")


class Memory:
    """The most that this process and its descendants hold; shared pages count in part (PSS, Linux)."""

    def __init__(self):
        self.peak, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *error) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self.peak = max(self.peak, sum(map(_pss, family(os.getpid()))))
            self._over.wait(LOOK)


def family(pid: int) -> list[psutil.Process]:
    """A process and its descendants."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _pss(process: psutil.Process) -> int:
    try:
        found = process.memory_full_info()
    except psutil.Error:  # it has ended
        return 0
    return found.pss + found.swap


def measured(count: int, workers: int) -> dict:
    """The record of one class."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        given = hand_in(root, count)
        gradebook.prepare(root, {NAME: exercises.path(NAME)})
        before = imports(count, workers)
        with Memory() as memory:
            marking_seconds, entering, marks = grade(root, workers)
        after = imports(count, workers)
    check(marks, given)
    return result(count, workers, (before, after), (marking_seconds, entering), memory.peak)


def result(
    count: int, workers: int, bare: tuple[float, float], grading: tuple[float, float], peak: int
) -> dict:
    """What was measured, in seconds and bytes, and what became of the target."""
    ratio = sum(grading) / statistics.mean(bare)
    return {
        "submissions": count,
        "workers": workers,
        "seconds": {
            "imports before": bare[0],
            "imports after": bare[1],
            "marking": grading[0],
            "entering": grading[1],
        },
        "seconds a submission": sum(grading) / count,
        "peak bytes of all processes": peak,
        "targets": [
            {"target": "marking and entering beside the imports alone", "most": MOST, "measured": ratio}
        ],
    }


def show(found: dict) -> str:
    """The result as lines of text."""
    lines = [f"{found['submissions']} submissions of {NAME}, {found['workers']} at a time"]
    lines += [f"  {name:16} {seconds:8.1f} s" for name, seconds in found["seconds"].items()]
    lines.append(f"  {'a submission':16} {found['seconds a submission']:8.2f} s")
    lines.append(f"  {'peak memory':16} {found['peak bytes of all processes'] / 2**30:8.2f} GiB")
    for target in found["targets"]:
        met = "met   " if target["measured"] <= target["most"] else "MISSED"
        lines.append(f"  {met} {target['measured']:7.2f}  {target['target']}: at most {target['most']}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.benchmarks.grading",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--submissions", type=int, default=200, help="how many students there are (200)")
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        help="how many at a time (as many as there are cores)",
    )
    parser.add_argument("--save", type=Path, default=RECORD, help="where the record is written")
    given = parser.parse_args(arguments)
    if given.submissions < 2 or given.workers < 1:
        parser.error("there must be at least two submissions and one worker")
    if problem := sandbox.probe():
        parser.error(problem)
    found = measured(given.submissions, given.workers)
    print(show(found))
    record = {
        "machine": f"{machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "date": datetime.now(UTC).date().isoformat(),
        **found,
    }
    given.save.parent.mkdir(parents=True, exist_ok=True)
    given.save.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
