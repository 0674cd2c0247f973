"""From a submission to its marks: a pure function, run for a class by worker processes or on Dask.

The submission's cells run in the sandbox, its answers are called there on inputs drawn here, and what
they return is compared here (:func:`tutorial_lib.checks.judge.judge`). Nothing that a submission prints,
displays or stores counts.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import json
import multiprocessing
import multiprocessing.pool
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import nbformat

from .. import exercises
from ..checks import questions, wire
from ..checks.judge import judge
from ..checks.question import Question
from . import files, sandbox

PACKAGE = Path(__file__).parents[1]
INSIDE = "/course"  # where the sandbox finds its small copy of the package
NEEDED = ("checks/wire.py", "checks/answer.py", "grading/runner.py", "grading/standin.py")
CELL_SECONDS = 60.0
ATTEMPTS = 4  # runs of one submission: each leaves out what stopped the last one
MOST = 64 * 2**20  # bytes of one frame
LIMITS = sandbox.Limits(wall=600.0, cpu=300.0, start=300.0, output=256 * 2**20, memory=3 * 2**30)

STOPPED = {
    "time": "it took too long",
    "memory": "it used too much memory",
    "processes": "it started too many processes",
    "output": "it sent too much",
    "killed": "it crashed the whole notebook",
    "done": "it ended the whole notebook",
}


class GraderError(RuntimeError):
    """The marking itself does not work. Never a student's fault, and never a zero."""


@functools.cache
def version() -> str:
    """A short name of what marks: it changes with any check, question or exercise."""
    digest = hashlib.sha256()
    sources = [*(PACKAGE / "checks").rglob("*.py"), *(PACKAGE / "grading").glob("*.py")]
    for path in [*sorted(sources), *(exercises.path(name) for name in exercises.names())]:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


# ---- one submission ----
def mark(data: bytes, assignment: str, student: str, secret: str = "", trusted: bool = False,
         limits: sandbox.Limits = LIMITS, cell_seconds: float = CELL_SECONDS) -> dict:
    """The marks of one submission, as plain JSON.

    ``data`` is the notebook; ``secret`` decides the inputs (the same secret, the same inputs). The
    result has ``assignment``, ``student``, ``state`` ("graded", "timed out", "rejected", "grader error"),
    ``reason``, ``sha256``, ``checks_version``, ``questions`` (by name: ``points``, ``max``, ``passed``,
    ``kind``, ``name``, ``text``, ``reread``, ``tried_library``), ``written`` and ``remarks``.
    ``trusted`` runs the submission without a sandbox.
    """
    marks = {"assignment": assignment, "student": student, "state": "graded", "reason": "",
             "sha256": hashlib.sha256(data).hexdigest(), "checks_version": version(), "questions": {},
             "written": [], "remarks": []}
    try:
        cells, written, remarks = grafted(data, assignment)
    except ValueError as problem:
        return marks | {"state": "rejected", "reason": str(problem)}
    marks |= {"written": written, "remarks": remarks}
    asked = questions.load(exercises.number(assignment))
    try:
        answers, stopped = _collect(cells, asked, assignment, secret, trusted, limits, cell_seconds)
    except GraderError as problem:
        return marks | {"state": "grader error", "reason": str(problem)}
    for question in asked:
        marks["questions"][question.name] = _entry(question, answers.get(question.name), secret, assignment,
                                                   stopped.get(question.name, ""))
    marks["remarks"] += [text for text in stopped.values() if text]
    if any("too long" in text for text in stopped.values()):
        marks |= {"state": "timed out",
                  "reason": "A part of the notebook took too long; what was finished counts."}
    return marks


def grafted(data: bytes, assignment: str) -> tuple[list[str], list[str], list[str]]:
    """``(sources of code cells, ids of written answers, remarks)`` of a submission.

    What is not an answer comes from the teacher's copy: its own code cells run first, the student's
    cells after them, without the checks. Raises ValueError, in words for the student, when the
    notebook can't be read.
    """
    try:
        notebook = json.loads(data)
        found = notebook["cells"]
        if not isinstance(found, list):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("This file can't be read as a notebook. Open it in JupyterLab, save it, and hand it "
                         "in again.") from None
    released = nbformat.read(exercises.path(assignment, "exercises"), as_version=4)
    ours = {cell.metadata.nbgrader.grade_id: cell for cell in released.cells if "nbgrader" in cell.metadata}
    cells = [cell.source for cell in released.cells
             if cell.cell_type == "code" and "nbgrader" not in cell.metadata]
    shared, remarks, seen = set(cells), [], []
    for cell in found:
        source, kind, grade_id = _cell(cell)
        if grade_id in ours and not ours[grade_id].metadata.nbgrader.solution:
            continue  # a check: ours is what counts
        if kind == "code" and source.strip() and source not in shared:
            cells.append(source)
        if grade_id in ours:
            seen.append(grade_id)
            if kind != ours[grade_id].cell_type:
                remarks.append(f"The cell of {grade_id} has become a {kind or 'nameless'} cell.")
    for grade_id, cell in ours.items():
        if cell.metadata.nbgrader.solution and grade_id not in seen:
            remarks.append(f"The cell of {grade_id} is not there any more.")
        elif seen.count(grade_id) > 1:
            remarks.append(f"The cell of {grade_id} is there {seen.count(grade_id)} times; the last counts.")
    written = [grade_id for grade_id, cell in ours.items()
               if cell.metadata.nbgrader.grade and cell.metadata.nbgrader.solution]
    return cells, written, remarks


def _cell(cell) -> tuple[str, str, str]:
    """``(source, cell type, nbgrader's id)``, whatever stands in their places."""
    if not isinstance(cell, dict):
        return "", "", ""
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    metadata = cell.get("metadata")
    entry = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = entry.get("grade_id", "") if isinstance(entry, dict) else ""
    return (source if isinstance(source, str) else "", str(cell.get("cell_type", ""))[:20],
            grade_id if isinstance(grade_id, str) else "")


def seed(secret: str, question: Question, assignment: str) -> int:
    """The seed of a question's inputs: nobody who does not know the secret can tell it."""
    key = hmac.new(secret.encode(), f"{assignment}/{question.name}".encode(), hashlib.sha256)
    return int.from_bytes(key.digest()[:6], "big")


def _collect(cells, asked, assignment, secret, trusted, limits, cell_seconds):
    """``(outcomes by question, what stopped a part of it)``: run, and again without what stopped it."""
    pending, cells, stopped, answers = list(asked), list(cells), {}, {}
    for _attempt in range(ATTEMPTS):
        message = {"cells": cells, "cell_seconds": cell_seconds, "questions": [
            {"name": question.name, "seconds": question.seconds,
             "inputs": [case.args for case in question.cases(seed(secret, question, assignment))]}
            for question in pending]}
        outcome = _run(wire.pack(message), trusted, limits)
        if outcome.ended == "start":
            raise GraderError(f"The sandbox did not start ({outcome.stderr[-300:] or outcome.status}).")
        cell, asking, ended = None, None, False
        for frame in _frames(outcome.frames):
            if type(frame.get("cell")) is int and 0 <= frame["cell"] < len(cells):
                cell = frame["cell"]
                if str(frame.get("error", "")).startswith("time:"):
                    stopped[f"cell {cell}"] = f"Cell {_named(cells[cell])}: it took too long, and was left."
            elif isinstance(frame.get("asking"), str):
                asking = frame["asking"]
            elif "outcomes" in frame and isinstance(frame.get("question"), str):
                answers.setdefault(frame["question"], frame["outcomes"])
            ended = ended or frame.get("end") is True
        if ended:
            break
        why = STOPPED[outcome.ended]
        if asking is None and cell is not None:  # this cell never came to its end
            stopped[f"left out {len(cells)}"] = f"Cell {_named(cells[cell])}: {why}. It was left out."
            del cells[cell]
        elif asking is not None:
            name = asking if asking not in answers else ""
            stopped[name or "end"] = f"{asking}: when it was called, {why}."
            pending = [q for q in pending if q.name not in answers and q.name != name]
            if not pending:
                break
        elif not cells:
            break
        else:
            stopped["begin"] = f"The notebook did not run: {why}."
    return answers, stopped


def _named(source: str) -> str:
    return f'that begins with "{source.strip().splitlines()[0][:40]}"'


def _frames(data: bytes) -> Iterator[dict]:
    """The messages in ``data``, up to the first bytes that are none."""
    at = 0
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at:at + 8], "little")
        if end > len(data) or end - at > MOST:
            return
        try:
            message = wire.unpack(data[at:end])
        except wire.BadMessage:
            return
        if isinstance(message, dict):
            yield message
        at = end


def _entry(question: Question, outcomes, secret: str, assignment: str, stopped: str) -> dict:
    """The marks of one question."""
    entry = {"points": 0.0, "max": float(question.points), "passed": False, "kind": "missing", "name": "",
             "text": stopped or "No result came from this question: the notebook ended before it.",
             "reread": question.section, "tried_library": []}
    if outcomes is None:
        return entry
    try:
        verdict = judge(question, seed(secret, question, assignment), outcomes, hidden=True)
    except (ValueError, TypeError, OverflowError, RuntimeError):
        return entry | {"kind": "forged", "text": "What came back here is not what a function returned."}
    tried = sorted({name for one in outcomes if isinstance(one, dict)
                    for name in one.get("borrowed") or [] if isinstance(name, str)})
    return entry | {"points": entry["max"] if verdict.passed else 0.0, "passed": verdict.passed,
                    "kind": verdict.kind, "name": verdict.name, "text": verdict.text,
                    "reread": "" if verdict.passed else verdict.reread, "tried_library": tried[:10]}


# ---- in the sandbox, or without one ----
@contextlib.contextmanager
def _small_copy() -> Iterator[Path]:
    """The folder that the sandbox sees of the package: no question, no reference, no encoding."""
    with tempfile.TemporaryDirectory(prefix="marking-") as scratch:
        for name in NEEDED:
            target = Path(scratch, PACKAGE.name, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PACKAGE / name, target)
            (target.parent / "__init__.py").touch()
        Path(scratch, PACKAGE.name, "__init__.py").touch()
        yield Path(scratch)


def _run(message: bytes, trusted: bool, limits: sandbox.Limits) -> sandbox.Outcome:
    with _small_copy() as folder:
        if trusted:
            return _bare(folder, message, limits)
        return sandbox.run(["-m", f"{PACKAGE.name}.grading.runner"], mounts={folder: INSIDE}, limits=limits,
                           message=message)


def _bare(folder: Path, message: bytes, limits: sandbox.Limits) -> sandbox.Outcome:
    """Run without a sandbox: for notebooks of one's own only."""
    read, write = os.pipe()
    first = ("import os, sys; os.dup2(int(sys.argv[1]), 3); sys.path.insert(0, sys.argv[2]); "
             f"import runpy; runpy.run_module('{PACKAGE.name}.grading.runner', run_name='__main__')")
    with tempfile.TemporaryDirectory() as work:
        process = subprocess.Popen([sys.executable, "-c", first, str(write), str(folder)], pass_fds=[write],
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   cwd=work, start_new_session=True)
        os.close(write)
        channel = multiprocessing.pool.ThreadPool(1)
        frames = channel.apply_async(_all_of, (read,))
        ended = "done"
        try:
            _, stderr = process.communicate(message, timeout=limits.wall + limits.start)
        except subprocess.TimeoutExpired:
            ended = "time"
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, 9)
            if ended == "time":
                _, stderr = process.communicate()
        data = frames.get()
        channel.terminate()
    if not data:
        ended = "start"
    return sandbox.Outcome(data, ended, process.returncode, stderr[-2000:].decode(errors="replace"))


def _all_of(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as file:
        return file.read()


# ---- a class ----
def self_test(assignment: str, trusted: bool = False) -> None:
    """Mark the solution and the released stub; GraderError unless they earn everything and nothing.

    A broken sandbox or interpreter shows here, before it could become a class of zeros.
    """
    for folder, right in (("solutions", True), ("exercises", False)):
        data = exercises.path(assignment, folder).read_bytes()
        marks = mark(data, assignment, folder, secrets.token_hex(8), trusted)
        off = [f"{name}: {entry['text']}" for name, entry in marks["questions"].items()
               if entry["passed"] != right]
        if marks["state"] != "graded" or off:
            what, due = ("solution", "full marks") if right else ("stub", "zero")
            raise GraderError(f"{assignment} is not marked: its own {what} does not get {due}. "
                              f"{marks['reason']} {' '.join(off)}".strip())


def secret_of(root: Path) -> str:
    """The secret of a class, made once: it decides the inputs, so that a second run marks alike."""
    path = root / "marks" / ".secret"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, secrets.token_hex(16).encode())
        path.chmod(0o600)
    return path.read_text(encoding="utf-8").strip()


def mark_all(root: Path, assignment: str, workers: int | None = None, scheduler: str = "",
             trusted: bool = False, again: bool = False, progress=None) -> list[dict]:
    """Mark what stands in ``root/submitted`` and is not marked yet; returns the marks of all.

    ``workers`` processes (default: one a core), or the Dask cluster at ``scheduler``. Each result is
    written at once, so that an interrupted run goes on where it stopped. ``again`` marks everything
    anew; a submission or a check that has changed is always marked anew. ``progress`` is called with
    ``(done, all)``. Raises GraderError when the sandbox or the checks do not work.
    """
    if not trusted and (problem := sandbox.probe()):
        raise GraderError(problem)
    jobs, done = [], []
    for path in sorted((root / "submitted").glob(f"*/{assignment}/{assignment}.ipynb")):
        student = path.parts[-3]
        data = files.read(path, MOST)
        stored = _stored(root, assignment, student)
        fresh = stored and stored.get("sha256") == hashlib.sha256(data).hexdigest() and (
            stored.get("checks_version") == version() and stored.get("state") != "grader error")
        if fresh and not again:
            done.append(stored)
        else:
            jobs.append({"data": data, "assignment": assignment, "student": student,
                         "secret": secret_of(root), "trusted": trusted})
    if jobs:
        self_test(assignment, trusted)
    run = _on_dask(jobs, scheduler) if scheduler else _on_processes(jobs, workers or os.cpu_count() or 1)
    if progress:
        progress(len(done), len(done) + len(jobs))
    for marks in run:
        target = root / "marks" / assignment / f"{marks['student']}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        files.replace(target, json.dumps(marks, indent=1, sort_keys=True, ensure_ascii=False).encode())
        done.append(marks)
        if progress:
            progress(len(done), None)
    return sorted(done, key=lambda marks: marks["student"])


def _stored(root: Path, assignment: str, student: str) -> dict | None:
    try:
        stored = json.loads((root / "marks" / assignment / f"{student}.json").read_text(encoding="utf-8"))
        return stored if isinstance(stored, dict) else None
    except (OSError, ValueError):
        return None


def _mark(job: dict) -> dict:
    """:func:`mark`, with any failure of the marking itself as a named state."""
    try:
        return mark(**job)
    except Exception as problem:
        return _failed(job, f"{type(problem).__name__}: {problem}")


def _failed(job: dict, why: str) -> dict:
    return {"assignment": job["assignment"], "student": job["student"], "state": "grader error",
            "reason": why, "sha256": hashlib.sha256(job["data"]).hexdigest(), "checks_version": version(),
            "questions": {}, "written": [], "remarks": []}


def _on_processes(jobs: list[dict], workers: int) -> Iterator[dict]:
    """Marks as they come. A job whose worker dies is tried once more, alone; then it is a grader error."""
    context = multiprocessing.get_context("spawn")
    left = {job["student"]: job for job in jobs}
    for count in (workers, workers, 1):
        if not left:
            return
        with ProcessPoolExecutor(min(count, len(left)), mp_context=context) as pool:
            futures = {pool.submit(_mark, job): name for name, job in left.items()}
            try:
                for future in as_completed(futures):
                    with contextlib.suppress(BrokenProcessPool):
                        marks = future.result()
                        del left[futures[future]]
                        yield marks
            except BaseException:  # interrupted: what has not begun does not begin
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    for job in list(left.values()):  # one by one: only the one that kills its worker is lost
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            try:
                yield pool.submit(_mark, job).result()
            except BrokenProcessPool:
                yield _failed(job, "The process that marks this submission died each time.")


def _on_dask(jobs: list[dict], scheduler: str) -> Iterator[dict]:
    from distributed import Client
    from distributed import as_completed as completed

    with Client(scheduler) as client:
        futures = {client.submit(_mark, job, pure=False, retries=2): job for job in jobs}
        for future in completed(futures):
            if future.status == "finished":
                yield future.result()
            else:
                yield _failed(futures[future], f"The cluster gave no result: {future.exception()}")
