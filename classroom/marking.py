"""From a submission to its marks: a pure function, run for a class by worker processes or on Dask.

The submission's cells run in the sandbox, its answers are called there on inputs drawn here, and what
they return is compared here (:func:`course.checks.judge.judge`). Nothing that a submission prints,
displays or stores counts.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock, Timeout

from course import files
from course.checks import messaging, questions
from course.checks.judge import Malformed, blamed, judge
from course.checks.question import Question
from course.places import ROOT
from tutorial_lib.language import of_notebook, speaking
from tutorial_lib.workers import ignoring_ctrl_c, pool

from . import assignments, sandbox

INSIDE = "/course"  # where the sandbox finds its small copy of the rooms
NEEDED = (
    "course/checks/messaging.py",
    "course/checks/answer.py",
    "classroom/runner.py",
    "classroom/stub_modules.py",
    "tutorial_lib/workers.py",
)
CELL_SECONDS = 60.0
ATTEMPTS = 5  # runs of one submission: each leaves out what stopped the one before
MOST_FRAMES, READING = 20_000, 60.0  # messages of one run that are read, and seconds for reading them
MOST = 64 * 2**20  # bytes of one frame
MOST_TREE = 4 * 2**20  # bytes of it that are not tensors: as Python objects they take 30 times as much
ASIDE = ".preview"  # the folder beside the marks for those of a preview
MOST_REMARKS = 4  # on cells that were too slow or left out: cells can choose which
WALL = 900.0  # seconds for all runs of one submission together
LIMITS = sandbox.Limits(wall=600.0, cpu=300.0, start=300.0, output=256 * 2**20, memory=3 * 2**30)

# Without a sandbox: what bubblewrap does with --die-with-parent, and the runner.
BARE = """\
import importlib, os, runpy, signal, sys
parent, folder, channel = sys.argv[1:]
os.dup2(int(channel), 3)
sys.path.insert(0, folder)
workers = importlib.import_module("tutorial_lib.workers")
workers.end_with_parent(int(parent), lambda: os.killpg(0, signal.SIGKILL))
runpy.run_module("classroom.runner", run_name="__main__")
"""

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
def version(assignment: str) -> str:
    """A short name for the version of an exercise's marking: it changes with its questions and any check."""
    digest = hashlib.sha256()
    sources = [*(ROOT / "course" / "checks").rglob("*.py"), *(ROOT / "classroom").glob("*.py")]
    number = assignments.number(assignment)
    own = [
        path for path in sources if path.parent.name != "questions" or path.stem in ("__init__", f"q{number}")
    ]
    for path in sorted(own):
        digest.update(path.name.encode() + path.read_bytes())
    for cell in json.loads(assignments.path(assignment).read_bytes())["cells"]:
        if cell["cell_type"] == "code":  # texts and points are no part of it
            digest.update("".join(cell["source"]).encode())
    return digest.hexdigest()[:12]


# ---- one submission ----
def mark(
    data: bytes,
    assignment: str,
    student: str,
    secret: str = "",
    trusted: bool = False,
    limits: sandbox.Limits = LIMITS,
    cell_seconds: float = CELL_SECONDS,
    seeds: Mapping[str, int] | None = None,
    hidden: bool = True,
) -> dict:
    """The marks of one submission, as plain JSON.

    ``data`` is the notebook; ``secret`` decides the inputs (`seeds_of`), unless ``seeds`` gives them, by
    question. ``hidden``: the texts are for the student, and say nothing of the inputs. The result has
    ``assignment``, ``student``, ``state`` ("graded", "timed out", "rejected", "grader error"), ``reason``,
    ``sha256``, ``checks_version``, ``questions`` (by name: ``points``, ``max``, ``passed``, ``kind``,
    ``name``, ``text``, ``reread``, ``tried_library``), ``written`` and ``remarks``.
    ``trusted`` runs the submission without a sandbox.
    """
    marks = _blank(assignment, student, data)
    try:
        cells, written, remarks = grafted(data, assignment)
    except ValueError as problem:
        return marks | {"state": "rejected", "reason": str(problem)}
    marks |= {"written": written, "remarks": remarks}
    asked = questions.load(assignments.number(assignment))
    seeds = seeds or seeds_of(secret, assignment, student, data)
    ends = time.monotonic() + WALL
    try:
        found = _collect(cells, asked, seeds, trusted, limits, cell_seconds, ends)
        for question in asked:
            marks["questions"][question.name] = _entry(question, found, seeds, hidden)
        for question, others in _blamed(cells, asked, marks["questions"]):
            again = _collect(
                [*cells, *(_model_answer(assignment, name) for name in others)],
                [question],
                seeds,
                trusted,
                limits,
                cell_seconds,
                ends,
            )
            if again.ended:  # the clock of the whole submission
                found.late = True
                found.remark(again.remarks[-1])
                break
            entry = _entry(question, again, seeds, hidden)
            if entry["kind"] not in ("missing", "forged"):
                marks["questions"][question.name] = entry | {"text": f"{blamed(others)} {entry['text']}"}
    except GraderError as problem:
        return marks | {"state": "grader error", "reason": str(problem), "questions": {}}
    marks["remarks"] += found.remarks
    if found.late:
        marks |= {
            "state": "timed out",
            "reason": "A part of the notebook took too long; what was finished counts.",
        }
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
        raise ValueError(
            "This file can't be read as a notebook. Open it in JupyterLab, save it, and hand it in again."
        ) from None
    cells, ours, stubs = [], {}, {}  # id: (cell type, what nbgrader knows about it)
    for cell in json.loads(assignments.path(assignment, "exercises").read_bytes())["cells"]:
        source, kind, grade_id = _cell(cell)
        if grade_id:
            ours[grade_id] = kind, cell["metadata"]["nbgrader"]
            stubs[grade_id] = source
        elif kind == "code":
            cells.append(source)
    shared, remarks, seen = set(cells), [], []
    for cell in found:
        source, kind, grade_id = _cell(cell)
        if grade_id in ours and not ours[grade_id][1]["solution"]:
            continue  # a check: ours is what counts
        if assignments.given_out(cell):
            source = stubs.get(grade_id, "")  # what was given out in another language
        if kind == "code" and source.strip() and source not in shared:
            cells.append(source)
        if grade_id in ours:
            seen.append(grade_id)
            if kind != ours[grade_id][0]:
                remarks.append(f"The cell of {grade_id} has become a {kind or 'nameless'} cell.")
    for grade_id, (kind, entry) in ours.items():
        words = kind == "markdown"
        if entry["solution"] and grade_id not in seen:
            instead = "; what stands in its place is read" if words else ""
            remarks.append(f"The cell of {grade_id} is not there any more{instead}.")
        elif (count := seen.count(grade_id)) > 1:
            which = "all of them are read" if words else "the last counts"
            remarks.append(f"The cell of {grade_id} is there {count} times; {which}.")
    written = [grade_id for grade_id, (_, entry) in ours.items() if entry["grade"] and entry["solution"]]
    return cells, written, remarks


def _cell(cell) -> tuple[str, str, str]:
    """``(source, cell type, nbgrader's id)``, whatever a student put in their places."""
    if not isinstance(cell, dict):
        return "", "", ""
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    metadata = cell.get("metadata")
    entry = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = entry.get("grade_id", "") if isinstance(entry, dict) else ""
    return (
        source if isinstance(source, str) else "",
        str(cell.get("cell_type", ""))[:20],
        grade_id if isinstance(grade_id, str) else "",
    )


def seeds_of(secret: str, assignment: str, student: str, data: bytes) -> dict[str, int]:
    """The seed of each question's inputs, for one student's one notebook.

    Another student has others, and so does the next attempt: what you learn about the inputs of one notebook
    is of no use in another. The same notebook always has the same ones. Without the secret, nobody can
    predict them.
    """
    attempt = hashlib.sha256(data).hexdigest()

    def seed(question: Question) -> int:
        text = f"{assignment}/{question.name}/{student}/{attempt}"
        return int.from_bytes(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()[:6], "big")

    return {question.name: seed(question) for question in questions.load(assignments.number(assignment))}


@dataclass
class _Found:
    """What came out of a submission. It may all be forged, except the names: those are ours."""

    answers: dict[str, list] = field(default_factory=dict)  # outcomes by question
    stopped: dict[str, str] = field(default_factory=dict)  # by question: why there are none
    remarks: list[str] = field(default_factory=list)
    late: bool = False
    ended: bool = False  # by the clock of the whole submission

    def remark(self, text: str) -> None:
        if text not in self.remarks and len(self.remarks) < MOST_REMARKS:
            self.remarks.append(text)


def _collect(cells, asked, seeds, trusted, limits, cell_seconds, ends: float) -> _Found:
    """Run, and run again without what stopped it; ``ends`` is when time is up for the whole submission."""
    found, killed = _Found(), False
    cells = [source for source in cells if source.strip()]
    for _attempt in range(ATTEMPTS):
        left = ends - time.monotonic()
        if left < 1:
            found.late = found.ended = True
            found.remarks.append(
                f"The notebook did not come to its end in {WALL / 60:g} minutes, all runs together."
            )
            break
        pending = [q for q in asked if q.name not in found.answers and q.name not in found.stopped]
        if not pending:
            break
        message = {
            "cells": cells,
            "cell_seconds": cell_seconds,
            "questions": [
                {
                    "name": question.name,
                    "seconds": question.seconds,
                    "inputs": [case.args for case in _cases(question, seeds)],
                }
                for question in pending
            ],
        }
        outcome = _run(messaging.pack(message), trusted, replace(limits, wall=min(limits.wall, left)))
        if outcome.ended == "start":
            raise GraderError(f"The sandbox did not start ({outcome.stderr[-300:] or outcome.status}).")
        cell, asking, ended = _read(outcome.frames, cells, {question.name for question in pending}, found)
        if ended:
            break
        if outcome.ended == "killed" and outcome.status == 128 + signal.SIGKILL and not killed:
            killed = True  # by itself, or by a machine that ran out of memory: try the same again
            continue
        why = STOPPED[outcome.ended]
        found.late |= outcome.ended == "time"
        if asking and asking not in found.answers:
            found.stopped[asking] = f"When it was called, {why}."
            found.remark(f"{asking}: when it was called, {why}.")
        elif not asking and cell is not None:  # this cell never finished
            found.remark(f"Cell {_named(cells[cell])}: {why}. It was left out.")
            del cells[cell]
        elif not asking:
            found.remark(f"The notebook did not run: {why}.")
    return found


def _blamed(cells: list[str], asked, entries: dict) -> list[tuple[Question, list[str]]]:
    """Answers that failed, each with the other failed answers that its cell names: the fault may be there."""
    failed = [
        name
        for name, entry in entries.items()
        if not entry["passed"] and entry["kind"] not in ("missing", "forged")
    ]
    found = []
    for question in asked:
        own = [source for source in cells if re.search(rf"^def {question.name}\b", source, re.MULTILINE)]
        others = [
            name
            for name in failed
            if name != question.name and any(re.search(rf"(?<!def )\b{name}\b", source) for source in own)
        ]
        if question.name in failed and others:
            found.append((question, others))
    return found


def _model_answer(assignment: str, name: str) -> str:
    """The cell of the solution that defines an answer."""
    notebook = json.loads(assignments.path(assignment, "solutions").read_bytes())
    return next(source for source, _, grade_id in map(_cell, notebook["cells"]) if grade_id == name)


def _cases(question: Question, seeds: Mapping[str, int]) -> list:
    try:
        return question.cases(seeds[question.name])
    except Exception as problem:
        raise GraderError(f"{question.name} draws no inputs ({type(problem).__name__}).") from problem


def _read(data: bytes, cells: list[str], names: set[str], found: _Found) -> tuple[int | None, str, bool]:
    """Add what the frames hold; returns the cell and question where they broke off, and whether they end."""
    cell, asking = None, ""
    for frame in _frames(data):
        if type(frame.get("cell")) is int and 0 <= frame["cell"] < len(cells):
            cell = frame["cell"]
            if frame.get("late") is True:
                found.late = True
                found.remark(f"Cell {_named(cells[cell])}: it took too long, and was left.")
        elif isinstance(frame.get("asking"), str) and frame["asking"] in names:
            asking = frame["asking"]
        elif isinstance(frame.get("question"), str) and frame["question"] in names:
            found.answers.setdefault(frame["question"], frame.get("outcomes"))
        elif frame.get("end") is True:
            return cell, asking, True
    return cell, asking, False


def _named(source: str) -> str:
    return f'that begins with "{source.strip().splitlines()[0][:40]}"'


def _frames(data: bytes) -> Iterator[dict]:
    """The messages in ``data``, up to the first bytes that are not one."""
    at, begun, count = 0, time.monotonic(), 0
    while at + 16 <= len(data) and count < MOST_FRAMES and time.monotonic() - begun < READING:
        count += 1
        end = at + 8 + int.from_bytes(data[at : at + 8], "little")
        if end > len(data) or end - at > MOST or int.from_bytes(data[at + 8 : at + 16], "little") > MOST_TREE:
            return
        try:
            message = messaging.unpack(data[at:end])
        except messaging.BadMessage:
            return
        if isinstance(message, dict):
            yield message
        at = end


def _entry(question: Question, found: _Found, seeds: Mapping[str, int], hidden: bool = True) -> dict:
    """The marks of one question."""
    stopped = found.stopped.get(question.name)
    entry = {
        "points": 0.0,
        "max": float(question.points),
        "passed": False,
        "kind": "missing",
        "name": "",
        "text": stopped or "No result came from this question: the notebook ended before it.",
        "reread": question.section,
        "tried_library": [],
    }
    if question.name not in found.answers:
        return entry
    outcomes = found.answers[question.name]
    try:
        verdict = judge(question, seeds[question.name], outcomes, hidden)
    except Malformed:
        return entry | {"kind": "forged", "text": "What came back here is not what a function returned."}
    except Exception as problem:  # the check's own fault
        raise GraderError(f"The check of {question.name} fails ({type(problem).__name__}).") from problem
    tried = {
        name
        for one in outcomes
        for name in one.get("borrowed", [])
        if isinstance(name, str) and re.fullmatch(r"(tutorial_lib|course)[\w.]{1,100}", name)
    }
    return entry | {
        "points": entry["max"] if verdict.passed else 0.0,
        "passed": verdict.passed,
        "kind": verdict.kind,
        "name": verdict.name,
        "text": verdict.text,
        "reread": "" if verdict.passed else verdict.reread,
        "tried_library": sorted(tried)[:10],
    }


# ---- in the sandbox, or without one ----
@contextlib.contextmanager
def _small_copy() -> Iterator[Path]:
    """The part of the course that the sandbox sees: no question, no reference, no encoding."""
    with tempfile.TemporaryDirectory(prefix="marking-") as scratch:
        for name in NEEDED:
            target = Path(scratch, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
            for folder in (target.parent, Path(scratch, Path(name).parts[0])):
                (folder / "__init__.py").touch()
        yield Path(scratch)


def _run(message: bytes, trusted: bool, limits: sandbox.Limits) -> sandbox.Outcome:
    with _small_copy() as folder:
        try:
            if trusted:
                return _bare(folder, message, limits)
            return sandbox.run(
                ["-m", "classroom.runner"], mounts={folder: INSIDE}, limits=limits, message=message
            )
        except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as problem:
            raise GraderError(f"The sandbox does not work: {problem}") from problem


def _bare(folder: Path, message: bytes, limits: sandbox.Limits) -> sandbox.Outcome:
    """Run without a sandbox: only for your own notebooks."""
    command = [sys.executable, "-c", BARE, str(os.getpid()), str(folder)]
    # Files, not pipes: a process that it leaves behind could hold a pipe open forever.
    with (
        tempfile.TemporaryDirectory() as work,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as frames,
        tempfile.TemporaryFile() as said,
    ):
        given.write(message)
        given.seek(0)
        process = subprocess.Popen(
            [*command, str(frames.fileno())],
            pass_fds=[frames.fileno()],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=said,
            cwd=work,
            start_new_session=True,
        )
        late, begun, ready = False, time.monotonic(), False
        try:
            while process.poll() is None and not late:
                time.sleep(0.05)
                if not ready and os.fstat(frames.fileno()).st_size:
                    ready, begun = True, time.monotonic()
                late = time.monotonic() - begun > (limits.wall if ready else limits.start)
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for file in (frames, said):
            file.seek(0)
        data, stderr = frames.read(limits.output), said.read()[-2000:].decode(errors="replace")
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    ended = "start" if not data else "time" if late else "killed" if status > 128 else "done"
    return sandbox.Outcome(data, ended, status, stderr)


# ---- once more, for the teacher's eyes ----
def replay(
    root: Path, assignment: str, student: str, seed: int | None = None, trusted: bool = False
) -> tuple[dict[str, int], dict]:
    """``(seeds, marks)`` of a submission in ``root``, with verdicts that hide nothing.

    The inputs are those that it was marked with, or those of ``seed``, for all questions. Nothing is kept.
    Raises ValueError where there is no such submission.
    """
    path = root / "submitted" / student / assignment / f"{assignment}.ipynb"
    if not path.is_file():
        raise ValueError(f"{student!r} has handed in nothing for {assignment} that could be run")
    data = files.read(path, MOST, root / "submitted")
    seeds = seeds_of(secret_of(root), assignment, student, data)
    seeds = seeds if seed is None else dict.fromkeys(seeds, seed)
    return seeds, mark(data, assignment, student, trusted=trusted, seeds=seeds, hidden=False)


# ---- a class ----
def self_test(assignment: str, trusted: bool = False) -> None:
    """Mark the solution and the released stub; GraderError unless one earns everything, the other nothing.

    A broken sandbox or interpreter shows up here, before it gives a whole class zeros.
    """
    for folder, right in (("solutions", True), ("exercises", False)):
        data = assignments.path(assignment, folder).read_bytes()
        marks = mark(data, assignment, folder, secrets.token_hex(8), trusted)
        off = [
            f"{name}: {entry['text']}"
            for name, entry in marks["questions"].items()
            if entry["passed"] != right
        ]
        if marks["state"] != "graded" or off:
            what, due = ("solution", "full marks") if right else ("stub", "zero")
            raise GraderError(
                f"{assignment} is not marked: its own {what} does not get {due}. "
                f"{marks['reason']} {' '.join(off)}".strip()
            )


def secret_of(root: Path) -> str:
    """The secret of a class, made once: it decides the inputs, so that a second run gives the same marks."""
    path = root / "marks" / ".secret"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, secrets.token_hex(16).encode(), 0o600)
    secret = path.read_text(encoding="utf-8", errors="replace").strip()
    if len(secret) < 16:
        raise GraderError(
            f"{path} holds no secret, so anybody could foretell the inputs. Put back a copy of it. Without "
            "one, delete it: a new one is made, `grade --again` marks by it, and earlier verdicts cannot be "
            "replayed any more."
        )
    return secret


def own_secret(root: Path, assignment: str, student: str) -> str:
    """A secret for one student's submission, always the same, that nobody can guess without the class's."""
    text = f"feedback/{assignment}/{student}"
    return hmac.new(secret_of(root).encode(), text.encode(), hashlib.sha256).hexdigest()


def mark_all(
    root: Path,
    assignment: str,
    workers: int | None = None,
    scheduler: str = "",
    trusted: bool = False,
    again: bool = False,
    preview: bool = False,
    progress=None,
) -> list[dict]:
    """Mark what is in ``root/submitted`` and is not marked yet; returns the marks of all.

    ``workers`` processes (default: one per core), or the Dask cluster at ``scheduler``. Each result is
    written at once, so that an interrupted run continues where it stopped. A changed submission is marked
    again. Marks by another version of the checks stay, unless ``again`` marks everything again. ``preview``
    leaves the marks as they are, and keeps new ones aside for the next such run without it. ``progress`` is
    called with ``(done, all)``. An exception ends all processes of the run at once, and so does the end of
    this one. Raises GraderError when the sandbox or the checks do not work, and while another run marks here.
    """
    if not trusted and (problem := sandbox.probe()):
        raise GraderError(problem)
    with _alone(root):
        marks = _mark_all(root, assignment, workers, scheduler, trusted, again, preview, progress)
        if not preview:
            shutil.rmtree(root / "marks" / assignment / ASIDE, ignore_errors=True)
        return marks


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One run at a time in a class folder: two would share the machine and mark everything twice."""
    path = root / "marks" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(path).acquire(timeout=0)
    except Timeout:
        raise GraderError(
            f"Another run is marking in {root}. Wait until it is done, or end it (Ctrl-C); "
            "what it has marked is kept."
        ) from None
    with held:
        yield


def _mark_all(root, assignment, workers, scheduler, trusted, again, preview, progress) -> list[dict]:
    jobs, done = [], []
    secret, submitted = secret_of(root), root / "submitted"
    for path in sorted(submitted.glob(f"*/{assignment}/{assignment}.ipynb")):
        student = path.parts[-3]
        try:
            data = files.read(path, MOST, submitted)
        except files.Refused as problem:  # taking in leaves no such file: it is not read, and stops nobody
            marks = _blank(assignment, student, b"") | {"state": "rejected", "reason": str(problem)}
            _store(root, marks, preview)
            done.append(marks)
            continue
        stored = _fresh(root, assignment, student, data, again)
        if stored:
            if not preview:
                _store(root, stored, False)  # it may have been kept aside
            done.append(stored)
        else:
            jobs.append(
                {
                    "data": data,
                    "assignment": assignment,
                    "student": student,
                    "secret": secret,
                    "trusted": trusted,
                }
            )
    if jobs:
        self_test(assignment, trusted)
    run = _on_dask(jobs, scheduler) if scheduler else _on_processes(jobs, workers or os.cpu_count() or 1)
    if progress:
        progress(len(done), len(done) + len(jobs))
    with contextlib.closing(run):
        for marks in run:
            _store(root, marks, preview)
            done.append(marks)
            if progress:
                progress(len(done), None)
    return sorted(done, key=lambda marks: marks["student"])


def _store(root: Path, marks: dict, aside: bool) -> None:
    text = json.dumps(marks, indent=1, sort_keys=True, ensure_ascii=False)
    folder = root / "marks" / marks["assignment"] / (ASIDE if aside else "")
    files.replace(folder / f"{marks['student']}.json", text.encode("utf-8", "replace"))


def _fresh(root: Path, assignment: str, student: str, data: bytes, again: bool) -> dict | None:
    """The marks of exactly this notebook, if there are any: an update of the course changes none.

    Those kept aside count if they are by exactly these checks, and ``again`` takes no others.
    """
    for folder in (ASIDE,) if again else ("", ASIDE):
        try:
            path = root / "marks" / assignment / folder / f"{student}.json"
            stored = json.loads(path.read_text(encoding="utf-8"))
            known = not folder or stored["checks_version"] == version(assignment)
            same = stored["sha256"] == hashlib.sha256(data).hexdigest()
            if known and same and stored["state"] != "grader error":
                return stored
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _mark(job: dict) -> dict:
    """:func:`mark` in the notebook's language, with any failure of the marking itself as a named state."""
    try:
        with speaking(of_notebook(job["data"])):
            return mark(**job)
    except Exception as problem:
        return _failed(job, f"{type(problem).__name__}: {problem}")


def _failed(job: dict, why: str) -> dict:
    return _blank(job["assignment"], job["student"], job["data"]) | {"state": "grader error", "reason": why}


def _blank(assignment: str, student: str, data: bytes) -> dict:
    """Marks before anything is known."""
    return {
        "assignment": assignment,
        "student": student,
        "state": "graded",
        "reason": "",
        "sha256": hashlib.sha256(data).hexdigest(),
        "checks_version": version(assignment),
        "questions": {},
        "written": [],
        "remarks": [],
    }


def _on_processes(jobs: list[dict], count: int) -> Iterator[dict]:
    """Marks as they come. A job whose worker dies is tried once more, alone; then it is a grader error."""
    left = {job["student"]: job for job in jobs}
    for most in (count, count, 1):
        if not left:
            return
        with pool(min(most, len(left))) as workers:
            with ignoring_ctrl_c():
                futures = {workers.submit(_mark, job): name for name, job in left.items()}
            for future in as_completed(futures):
                with contextlib.suppress(BrokenProcessPool):
                    marks = future.result()
                    del left[futures[future]]
                    yield marks
    for job in list(left.values()):  # one by one: only the one that kills its worker is lost
        with pool(1) as workers:
            try:
                with ignoring_ctrl_c():
                    future = workers.submit(_mark, job)
                yield future.result()
            except BrokenProcessPool:
                yield _failed(job, "The process that marks this submission died each time.")


def _on_dask(jobs: list[dict], scheduler: str) -> Iterator[dict]:
    from distributed import Client
    from distributed import as_completed as completed

    with Client(scheduler) as client:
        futures = {client.submit(_mark, job, pure=False, retries=2): job for job in jobs}
        for future in (ended := completed(futures)):
            if future.status == "finished":
                yield future.result()
            elif future.status in ("lost", "pending"):  # its worker died with the marks: they are made again
                ended.add(future)
            else:
                yield _failed(futures[future], f"The cluster gave no result: {future.exception()}")
