"""What a teacher decides for an exercise: late days, extensions, questions dropped or given; previews."""

import datetime
import json

import nbformat
import pytest

from classroom import __main__ as command
from classroom import assignments, gradebook, marking, reports, rules
from classroom.rules import Rules
from course.checks import questions

DUE = datetime.datetime.fromtimestamp(1_700_000_000, datetime.UTC)
DAY = 86_400


@pytest.fixture
def graded(room, monkeypatch):
    """Two students, a day late, with 3 and 4 of 4 points; `grade` enters the marks that are there."""
    for student, points in (("ann", 3), ("ben", 4)):
        room.send(student, seconds=1_700_000_000 + DAY)
        room.marks(student, points)
    (room.root / room.name).mkdir()
    monkeypatch.setattr(assignments, "path", lambda name, folder="": room.root / "solution.ipynb")
    monkeypatch.setattr(marking, "mark_all", lambda *args, **more: [])
    room.run = lambda *more: command.main(["grade", room.name, "--root", str(room.root), *map(str, more)])
    return room


def totals(room):
    with gradebook.gradebook(room.root) as book:
        return {row["student"]: (row["total"], row["max"]) for row in reports._rows(room.root, book)}


# ---- late days ----
@pytest.mark.parametrize(
    "part, days, share",
    [
        ("whole", 1.2, 0.2),
        ("share", 1.2, 0.12),
        ("none", 1.2, 0.1),
        ("whole", 0, 0),
        ("share", 99, 1),
        ("none", -3, 0),
    ],
)
def test_a_part_of_a_day_counts_as_the_rule_says(part, days, share):
    due = DUE.replace(tzinfo=None)
    found = Rules(late_per_day=0.1, part_of_day=part, zone="UTC").late_share(
        due, due + datetime.timedelta(days)
    )
    assert found == pytest.approx(share)


def test_an_extension_is_given_by_a_command(graded):
    late = ("--due", DUE.isoformat(), "--late-per-day", 0.1)
    assert graded.run(*late, "--extend", "ben", "1d") == 0
    assert totals(graded) == {"ann": (pytest.approx(2.4), 6), "ben": (4, 6)}
    assert graded.run() == 0  # it is kept
    assert totals(graded)["ben"] == (4, 6)
    assert graded.run("--extend", "ben", "0") == 0
    assert totals(graded)["ben"] == (pytest.approx(3.4), 6)


def test_an_extension_of_the_class_list_holds_for_every_exercise(graded):
    (graded.root / "roster.csv").write_text("id,extension\nben,36h\nann,\nzoe,\n")
    assert graded.run("--due", DUE.isoformat(), "--late-per-day", 0.1) == 0
    assert totals(graded)["ben"] == (4, 6) and totals(graded)["ann"][0] == pytest.approx(2.4)


def test_an_extension_can_be_given_before_anything_is_handed_in(graded):
    (graded.root / "roster.csv").write_text("id\nann\nben\nzoe\n")
    assert graded.run("--extend", "zoe", "2d", "--due", DUE.isoformat(), "--late-per-day", 0.1) == 0
    graded.send("zoe", seconds=1_700_000_000 + 2 * DAY)
    graded.marks("zoe")
    assert graded.run() == 0 and totals(graded)["zoe"] == (3, 6)


@pytest.mark.parametrize(
    "more, words",
    [
        (("--extend", "bem", "3d"), "no student 'bem'; is it ben"),
        (("--extend", "ben", "soon"), "'soon' is no length"),
        (("--drop", "why"), "'why' is no coded question of this exercise; there are answer"),
        (("--drop", "answer", "--give", "answer"), "cannot be dropped, given and restored at once"),
    ],
)
def test_what_does_not_fit_is_said_and_changes_nothing(graded, capsys, more, words):
    assert graded.run(*more) == 2
    assert words in capsys.readouterr().err
    assert rules.load(graded.root, graded.name) == Rules() and not totals(graded)["ann"][0]


def test_a_rule_for_one_exercise_needs_its_name(graded, capsys, monkeypatch):
    monkeypatch.setattr(command, "_assignments", lambda root, named: [graded.name, "ex07_alibi"])
    assert graded.run("--drop", "answer") == 2
    assert "are for one exercise" in capsys.readouterr().err


def test_what_a_class_had_set_before_there_were_rules_holds(graded):
    (graded.root / "marks" / graded.name / ".late-per-day").write_text("0.2")
    assert graded.run("--due", DUE.isoformat()) == 0
    assert totals(graded)["ben"][0] == pytest.approx(4 - 0.2 * 6)


def test_rules_that_cannot_be_read_are_named(graded, capsys):
    (graded.root / "marks" / graded.name / ".rules").write_text("{")
    assert graded.run() == 2
    assert ".rules cannot be read" in capsys.readouterr().err


# ---- points that a teacher has changed in the notebook, as nbgrader's users do ----
def test_points_of_the_notebook_count(tmp_path, monkeypatch, capsys):
    name, usual = "ex06_rope", assignments.path
    notebook = nbformat.read(usual(name), as_version=4)
    for cell in notebook.cells:
        entry = cell.metadata.get("nbgrader", {})
        if changed := {"check_rope_angles": 6, "check_rope_sort_rows": 1}.get(entry.get("grade_id")):
            entry.points = changed
    nbformat.write(notebook, tmp_path / "changed.ipynb")
    monkeypatch.setattr(
        assignments,
        "path",
        lambda one, folder="solutions": (
            tmp_path / "changed.ipynb" if folder == "solutions" else usual(one, folder)
        ),
    )
    wrong = nbformat.read(usual(name), as_version=4)
    for cell in wrong.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "rope_angles":
            cell.source = "def rope_angles(positions, dim, base):\n    return positions"
    for student, one in (("model", nbformat.read(usual(name), as_version=4)), ("wrong", wrong)):
        (tmp_path / "inbox" / student).mkdir(parents=True)
        nbformat.write(one, tmp_path / "inbox" / student / f"{name}.ipynb")
    root = ("--root", str(tmp_path))
    assert command.main(["take-in", str(tmp_path / "inbox"), *root]) == 0
    assert command.main(["grade", name, *root, "--trusted", "--workers", "1"]) == 0
    assert "rope_angles gives 6 points, as its notebook says; in the course, 4." in capsys.readouterr().out
    with gradebook.gradebook(tmp_path) as book:
        found = {row["student"]: (row["coded"], row["max"]) for row in reports._rows(tmp_path, book)}
    assert found == {"model": (6 + 3 * 4 + 1, 22), "wrong": (3 * 4 + 1, 22)}


# ---- the bonus ----
def test_a_bonus_is_no_part_of_the_maximum(tmp_path):
    name = "ex06_rope"
    gradebook.prepare(tmp_path, {name: assignments.path(name)})
    asked = questions.load("06")
    right = {question.name: {"points": float(question.points), "passed": True} for question in asked}
    marks = {
        "assignment": name,
        "student": "li",
        "state": "graded",
        "reason": "",
        "sha256": "",
        "remarks": [],
        "checks_version": "1",
        "written": [],
        "questions": right,
    }
    path = tmp_path / "submitted" / "li" / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(nbformat.read(tmp_path / "release" / name / f"{name}.ipynb", 4), path)
    noted = tmp_path / "taken" / name / "li.json"
    noted.parent.mkdir(parents=True)
    noted.write_text(json.dumps({"sha256": "", "remarks": [], "seconds_of_upload": DUE.timestamp() + 3600}))
    gradebook.merge(tmp_path, name, {"li": marks}, due=DUE, rules=Rules(late_per_day=0.1))
    with gradebook.gradebook(tmp_path) as book:
        (row,) = reports._rows(tmp_path, book)
    assert (row["max"], row["coded"], row["late penalty"]) == (20, 18, 2)
    page = reports.feedback(tmp_path, name)
    assert page == []  # there are no marks on disk
    (tmp_path / "marks" / name / "li.json").write_text(json.dumps(marks))
    (page,) = reports.feedback(tmp_path, name)
    assert "rope_sort_rows: 2 points of a bonus" in page.read_text() and "of 20" in page.read_text()


# ---- dropping and giving ----
def test_a_question_is_dropped_given_and_restored(graded, capsys):
    assert graded.run() == 0
    assert totals(graded) == {"ann": (3, 6), "ben": (4, 6)}
    capsys.readouterr()
    assert graded.run("--give", "answer") == 0
    said = capsys.readouterr().out
    assert "ann: 3 → 4 (answer 3 → 4)" in said and "ben" not in said and "change for 1" in said
    assert totals(graded) == {"ann": (4, 6), "ben": (4, 6)}
    assert graded.run("--drop", "answer") == 0
    assert totals(graded) == {"ann": (0, 2), "ben": (0, 2)}
    (page, _) = reports.feedback(graded.root, graded.name)
    assert "counts for nobody" in page.read_text()
    assert graded.run("--restore", "answer") == 0
    assert totals(graded) == {"ann": (3, 6), "ben": (4, 6)}


def test_nothing_is_given_to_who_sent_nothing_that_can_be_read(graded):
    graded.marks("ann", state="rejected")
    graded.marks("ben", state="grader error")
    graded.run("--give", "answer")
    assert totals(graded)["ann"][0] == 0 and totals(graded)["ben"][0] is None


def test_a_preview_says_whose_points_change_and_keeps_nothing(graded, capsys):
    assert graded.run() == 0
    before, capsys_before = graded.dump(), capsys.readouterr()
    graded.grade("ben", "check_answer", manual_score=2.5, needs_manual_grade=False)
    before = graded.dump()
    graded.marks("ann", 1)
    graded.marks("ben", 0)  # what was given by hand stays
    assert graded.run("--preview", "--due", DUE.isoformat(), "--late-per-day", 0.1) == 0
    said = capsys.readouterr().out
    assert "ann: 3 → 0.4 (answer 3 → 1, late penalty 0 → -0.6)" in said
    assert "ben: 2.5 → 1.9 (late penalty 0 → -0.6)" in said and "nothing was entered" in said
    assert graded.dump() == before and rules.load(graded.root, graded.name) == Rules()
    assert "change" not in capsys_before.out  # who has no points yet is not listed


def test_marks_of_a_preview_stand_aside_until_they_are_wanted(room, monkeypatch):
    asked = []

    def mark_jobs(jobs, count):
        asked.append([job["student"] for job in jobs])
        for job in jobs:
            yield marking._failed(job, "") | {"state": "graded", "reason": f"run {len(asked)}"}

    def run(**more):
        found = marking.mark_all(room.root, room.name, trusted=True, **more)
        kept = gradebook.load_marks(room.root, room.name)
        return {one["student"]: one["reason"] for one in found}, {name: kept[name]["reason"] for name in kept}

    monkeypatch.setattr(marking, "_on_processes", mark_jobs)
    monkeypatch.setattr(marking, "self_test", lambda *args: None)
    room.send("ann")
    assert run() == ({"ann": "run 1"}, {"ann": "run 1"})
    room.send("ben")
    assert run(preview=True, again=True) == ({"ann": "run 2", "ben": "run 2"}, {"ann": "run 1"})
    assert run() == ({"ann": "run 1", "ben": "run 2"},) * 2
    assert asked == [["ann"], ["ann", "ben"], []]
    assert not (room.root / "marks" / room.name / marking.ASIDE).exists()
