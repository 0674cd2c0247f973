"""An autograder for Gradescope: its harness (``setup.sh``, ``run_autograder``) around this course's marking.

`write` makes the zip file to upload; there, ``run_autograder`` calls `main` for one submission.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path

from course import files, places

from . import assignments, gradebook, intake, marking, platforms, sandbox

ROOMS = ("tutorial_lib", "course", "classroom")
BESIDE = ("pyproject.toml", "requirements.lock", "README.md", "LICENSE", "nbgrader_config.py")
HARNESS = {
    "setup.sh": """\
#!/usr/bin/env bash
set -e
apt-get update
apt-get install -y python3-venv bubblewrap
python3 -m venv /autograder/venv
/autograder/venv/bin/pip install uv
/autograder/venv/bin/uv pip install --python /autograder/venv/bin/python --torch-backend cpu \\
    -c /autograder/source/requirements.lock -e '/autograder/source[teach,cluster]'
""",
    "run_autograder": """\
#!/usr/bin/env bash
base="${AUTOGRADER:-/autograder}"
cd "$base/source" || exit 1
PATH="$base/venv/bin:$PATH" PYTHONPATH=$PWD exec python3 -m classroom.gradescope
""",
}


def write(root: Path, assignment: str, trusted: bool = False) -> Path:
    """Write ``exports/autograder-<assignment>.zip``; returns its path.

    ``trusted``: it marks without a sandbox where there is none.
    """
    members = {name: text.encode() for name, text in HARNESS.items()}
    members["autograder.json"] = json.dumps({"assignment": assignment, "trusted": trusted}).encode()
    both = [assignments.path(assignment, folder) for folder in ("solutions", "exercises")]
    paths = [path for room in ROOMS for path in sorted((places.ROOT / room).rglob("*")) if path.is_file()]
    for path in [*paths, *(places.ROOT / name for name in BESIDE), *both]:
        if "__pycache__" not in path.parts:
            members[path.relative_to(places.ROOT).as_posix()] = path.read_bytes()
    path = Path(root) / "exports" / f"autograder-{assignment}.zip"
    files.replace(path, platforms.zipped(members, programs=HARNESS))
    return path


def main(arguments: list[str] | None = None) -> None:
    """Mark what lies in ``submission/``, and write ``results/results.json`` as Gradescope reads it."""
    argparse.ArgumentParser(prog="python -m classroom.gradescope", description=main.__doc__).parse_args(
        arguments
    )
    base = Path(os.environ.get("AUTOGRADER", "/autograder"))
    asked = json.loads((base / "source" / "autograder.json").read_text(encoding="utf-8"))
    files.replace(base / "results" / "results.json", json.dumps(results(base, **asked)).encode())


def results(base: Path, assignment: str, trusted: bool) -> dict:
    """The results of the one submission below ``base``."""
    if (missing := sandbox.probe()) and not trusted:
        return {"score": 0, "output": f"This autograder has no sandbox: tell your teacher. {missing}"}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "class")
        shutil.copytree(base / "submission", root / "inbox" / "student")
        gradebook.prepare(root, {assignment: assignments.path(assignment)})
        said = " ".join(one.reason for one in intake.take_in(root / "inbox", root, [assignment]))
        marking.mark_all(root, assignment, workers=1, trusted=bool(missing))
        marks = gradebook.load_marks(root, assignment).get("student")
    if marks["state"] == "grader error" if marks else not said:
        said = f"{said} It could not be marked: tell your teacher.".strip()
    asked = [question.name for question in marking.questions.load(assignments.number(assignment))]
    answers = sorted((marks or {"questions": {}})["questions"].items(), key=lambda one: asked.index(one[0]))
    tests = [
        {
            "name": name,
            "score": found["points"],
            "max_score": found["max"],
            "output": "\n".join(filter(None, (found.get("text"), found.get("reread")))),
        }
        for name, found in answers
    ]
    return {"output": said, "tests": tests} if tests else {"output": said, "score": 0, "tests": []}


if __name__ == "__main__":
    main()
