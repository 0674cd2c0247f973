"""The commands of docs/instructor/grading.md, as they stand there, on a class of two."""

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from classroom import __main__ as command
from classroom import sandbox
from workshop import exercises

CHAPTER = Path(__file__).parents[2] / "docs" / "instructor" / "grading.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", CHAPTER.read_text(encoding="utf-8"), re.DOTALL)
EXERCISE = "ex06_rope"


@pytest.mark.skipif(bool(sandbox.probe()), reason=sandbox.probe() or "the sandbox works")
def test_the_commands_of_the_chapter_grade_a_class(tmp_path, marked_here, monkeypatch, capsys):
    """In one process: each of its own would import PyTorch, seventeen times."""
    monkeypatch.setenv("CLASS", str(tmp_path / "class-2026"))
    first, *rest = BLOCKS
    lines = "".join(rest).splitlines()
    assert len(lines) > 12 and first == 'export CLASS=~/class-2026\nmkdir -p "$CLASS/inbox"\n'
    inbox = tmp_path / "class-2026" / "inbox"
    for student, folder in (("ada", "solutions"), ("bob", "exercises")):
        target = inbox / student
        target.mkdir(parents=True)
        shutil.copy(exercises.path(EXERCISE, folder), target)
    for line in lines:
        program, *given = shlex.split(os.path.expandvars(line.replace("python -m classroom ", "classroom ")))
        assert program == "classroom" and command.main(given) == 0, line
    said = capsys.readouterr().out
    class_folder = inbox.parent
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
