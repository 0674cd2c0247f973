"""The copy of the course that a teacher gives away: without the answers, and it works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from course.checks import questions

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "instructor" / "README.md"
ASKED = questions.load("06")[0]
STUDENT = f"""
import tutorial_lib
from course import checks, lesson
from course.checks import questions
print(tutorial_lib.__file__)
question = questions.find({ASKED.name!r})
checks.{ASKED.name}(question.reference)
checks.progress("06")
lesson.inventory("before"), lesson.predict("06.tries"), lesson.concept_check("06"), lesson.progress()
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """What the guide's command makes of the last commit, unpacked."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    (command,) = re.findall(r"^git archive .*$", GUIDE.read_text(encoding="utf-8"), re.M)
    folder = tmp_path_factory.mktemp("copy")
    assert " -o course.zip " in command
    command = command.replace("course.zip", str(folder / "course.zip"))
    subprocess.run(["bash", "-c", command], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", "course.zip", "."], cwd=folder, check=True)
    return folder / "course"


def test_it_has_the_course_and_no_answers(copy):
    assert {"notebooks", "exercises", "tutorial_lib", "course", "docs", "README.md"} <= set(os.listdir(copy))
    assert not {"solutions", "tests", ".git"} & set(os.listdir(copy))
    assert not (copy / "docs" / "instructor").exists() and not (copy / "workshop" / "decks").exists()
    translated = {path.stem for path in (copy / "workshop" / "locale").rglob("*.po")}
    assert "readme" in translated and not [name for name in translated if name.startswith("slides")]
    assert not [*(copy / "workshop" / "locale").glob("*/instructor/*")]


def test_whoever_makes_a_copy_without_the_answers_leaves_out_the_same():
    """The guide's command for students, and the hub's for a class."""
    left = [
        re.findall(r"':!([^']+)'", (GUIDE.parent / name).read_text(encoding="utf-8"))
        for name in ("README.md", "hub.md")
    ]
    assert left[0] == left[1] and len(left[0]) == 6


def test_checks_predictions_and_the_inventory_work_there(copy, tmp_path):
    own = {"PYTHONPATH": str(copy), "TUTORIAL_PROGRESS": str(tmp_path / "progress.json")}
    done = subprocess.run(
        [sys.executable, "-c", STUDENT], cwd=copy, capture_output=True, text=True, env=os.environ | own
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(copy)) and f"✓ {ASKED.name}: Right" in done.stdout
