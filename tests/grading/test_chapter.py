"""The commands of docs/instructor/grading.md, as they stand there, on a class of two."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from classroom import sandbox
from workshop import exercises

CHAPTER = Path(__file__).parents[2] / "docs" / "instructor" / "grading.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", CHAPTER.read_text(encoding="utf-8"), re.DOTALL)
EXERCISE = "ex06_rope"


@pytest.mark.skipif(bool(sandbox.probe()), reason=sandbox.probe() or "the sandbox works")
def test_the_commands_of_the_chapter_grade_a_class(tmp_path):
    first, *rest = BLOCKS
    assert len(rest) >= 3 and 'mkdir -p "$CLASS/inbox"' in first
    environment = os.environ | {
        "HOME": str(tmp_path),
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }

    def run(commands):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=exercises.ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(first)
    (class_folder,) = tmp_path.iterdir()
    for student, folder in (("ada", "solutions"), ("bob", "exercises")):
        target = class_folder / "inbox" / student
        target.mkdir()
        shutil.copy(exercises.path(EXERCISE, folder), target)
    said = "".join(run(first + block) for block in rest)
    assert "2 uploads: 2 taken" in said and f"{EXERCISE}: 2 graded" in said
    rows = list(csv.DictReader((class_folder / "exports" / "grades.csv").open(encoding="utf-8-sig")))
    coded = {row["student"]: float(row["coded"]) for row in rows if row["assignment"] == EXERCISE}
    assert coded == {"ada": 18.0, "bob": 0.0}
    pages = list((class_folder / "feedback").glob(f"*/{EXERCISE}/*.html"))
    assert len(pages) == 2 and all("<script" not in page.read_text(encoding="utf-8") for page in pages)
    report = (class_folder / "report" / EXERCISE / "report.md").read_text(encoding="utf-8")
    assert "2 graded" in report


def test_the_python_line_of_the_chapter_runs():
    (line,) = re.findall(r'`python -c "(.*?)"`', CHAPTER.read_text(encoding="utf-8"))
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
