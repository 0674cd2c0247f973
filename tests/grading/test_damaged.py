"""One damaged file is named, with what to do, and stops nobody else: by the teacher's commands."""

import csv
import sqlite3

import pytest

from classroom import __main__ as command
from classroom import assignments, marking


@pytest.fixture
def graded(room, monkeypatch, capsys):
    """Two students with points, one of them marked by hand; `grade` enters the marks that are there."""
    monkeypatch.setattr(assignments, "path", lambda name, folder="": room.root / "solution.ipynb")
    monkeypatch.setattr(marking, "mark_all", lambda *args, **more: [])
    for student, points in (("ann", 3), ("ben", 4)):
        room.send(student)
        room.marks(student, points)

    def run(*line) -> tuple[int, str]:
        """The command's exit and what it says."""
        returned = command.main([*map(str, line), "--root", str(room.root)])
        said = capsys.readouterr()
        return returned, said.out + said.err

    room.run = run
    assert run("grade", room.name)[0] == 0
    room.grade("ann", "explain_why", manual_score=1.0, needs_manual_grade=False)
    return room


def coded(room) -> dict[str, str]:
    assert room.run("export")[0] == 0
    with open(room.root / "exports" / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return {row["student"]: row["coded"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("data", [b"", b"[1]", b'{"ann": "A', b"\xff\xfe\x00"])
def test_a_damaged_list_of_names_is_set_aside(graded, data):
    path = graded.root / "students.json"
    path.write_bytes(data)
    returned, said = graded.run("take-in", graded.root / "inbox")
    assert returned == 0 and f"{path} is damaged" in said and "2 taken" in said
    assert path.with_name("students.json.damaged").read_bytes() == data and "ben" in path.read_text()
    assert coded(graded) == {"ann": "3", "ben": "4"}


def test_damaged_marks_stop_no_taking_in_and_are_made_again(graded):
    path = graded.root / "marks" / graded.name / "ann.json"
    path.write_text('{"state": "gra')
    returned, said = graded.run("grade", graded.name)
    assert returned == 1 and f"ann: The marks in {path} cannot be read" in said and "marks what was" in said
    assert coded(graded) == {"ann": "", "ben": "4"}, "no zero"
    for step in ("feedback", "report"):
        assert f"ann: The marks in {path} cannot be read" in graded.run(step, graded.name)[1]
    graded.send("ann", code="def answer(x): return 2", seconds=1_700_000_100)
    path.write_text('{"state": "gra')
    returned, said = graded.run("take-in", graded.root / "inbox")
    assert returned == 0 and f"{path} is damaged" in said and "2 taken" in said


def test_a_damaged_submission_stops_no_newer_one(graded):
    (graded.root / "submitted" / "ann" / graded.name / f"{graded.name}.ipynb").write_text('{"cells": [')
    graded.send("ann", code="def answer(x): return 2", seconds=1_700_000_100)
    assert "2 taken" in graded.run("take-in", graded.root / "inbox")[1]


def test_what_was_entered_last_may_be_damaged(graded):
    path = graded.root / "marks" / graded.name / ".entered" / "ann.json"
    path.write_text("{")
    returned, said = graded.run("grade", graded.name)
    assert returned == 0 and f"{path} is damaged" in said and "2 graded" in said
    found = graded.grade("ann", "explain_why")
    assert found["manual_score"] == 1.0 and found["needs_manual_grade"], (
        "whether the text is the same is unknown"
    )
    assert graded.run("grade", graded.name) == (0, f"{graded.name}: 2 graded\n")


@pytest.mark.parametrize("step", ["grade", "feedback", "export", "report", "written"])
def test_a_gradebook_that_is_cut_is_named(graded, step):
    path = graded.root / "gradebook.db"
    data = path.read_bytes()
    for broken in (data[:5000], b"x" * 5000):
        path.write_bytes(broken)
        returned, said = graded.run(step, *([graded.name] if step != "export" else []))
        assert returned == 2 and f"The gradebook {path} is damaged" in said and "by hand" in said
    path.write_bytes(data)
    assert coded(graded) == {"ann": "3", "ben": "4"}


def test_a_gradebook_that_is_held_is_named(graded):
    with sqlite3.connect(graded.root / "gradebook.db") as held:
        held.execute("BEGIN EXCLUSIVE")
        returned, said = graded.run("grade", graded.name)
        held.rollback()
    assert returned == 2 and "cannot be used now (database is locked)" in said


@pytest.mark.parametrize(
    "name, data, words",
    [
        ("marks/.secret", "", "holds no secret"),
        ("marks/.secret", "\n", "holds no secret"),
        ("marks/.zone", "Berlin", "'Berlin' is no time zone"),
        ("nbgrader_config.py", "c = get_", "Delete it: `grade` writes it again"),
        ("release/{}/{}.ipynb", "", "Delete it: `grade` makes it again"),
        ("release/{}/{}.ipynb", '{"cells', "Delete it: `grade` makes it again"),
    ],
)
def test_what_a_class_needs_is_named_and_can_be_mended(graded, monkeypatch, name, data, words):
    path = graded.root / name.format(graded.name, graded.name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(data)
    if "secret" in name:
        monkeypatch.setattr(marking, "mark_all", lambda root, *args, **more: marking.secret_of(root) and [])
    returned, said = graded.run("grade", graded.name)
    assert returned == 2 and str(path) in said and words in said and said.count("\n") == 1
    path.unlink()
    assert graded.run("grade", graded.name)[0] == 0 and coded(graded) == {"ann": "3", "ben": "4"}
