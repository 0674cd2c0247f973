"""What nbgrader collects itself: raw notebooks in ``submitted/``, some odd, and a student's own files."""

import datetime
import json
import os
import shutil

import nbformat
import pytest
from sqlalchemy import create_engine, text

from classroom import gradebook, intake, reports
from classroom.rules import Rules

SENT = "2025-12-02 09:09:00.000000 UTC"
DUE = datetime.datetime(2025, 12, 2, 8, tzinfo=datetime.UTC)


def collect(room, student, change=None, data=None, sent=SENT, **more):
    """A submission as `nbgrader collect` leaves it."""
    folder = room.root / "submitted" / student / room.name
    folder.mkdir(parents=True, exist_ok=True)
    notebook = json.loads(nbformat.writes(room.released()))
    for cell in notebook["cells"]:
        if cell["id"] == "explain_why":
            cell["source"] = "Since the angles add up."
    if change:
        change(notebook)
    data = json.dumps(notebook).encode() if data is None else data
    (folder / f"{room.name}.ipynb").write_bytes(data)
    (folder / "timestamp.txt").write_text(sent)
    for name, content in more.items():
        (folder / name.replace("__", ".")).write_text(content)
    return folder


def grade(room, **options):
    """Taking in and merging, with marks of 3 points for all that was taken; who failed."""
    for taken in intake.adopt(room.root, room.name):
        if taken.state == "taken":
            room.marks(taken.student)
    return gradebook.merge(room.root, room.name, gradebook.load_marks(room.root, room.name), **options)


def first(notebook, **change):
    notebook["cells"][0] |= change


ODD = {
    "nbgrader is null": lambda n: first(n, metadata={"nbgrader": None}),
    "no metadata": lambda n: n["cells"][0].pop("metadata"),
    "no metadata of its own": lambda n: n.pop("metadata"),
    "lone surrogate": lambda n: first(n, source="\ud800"),
    "format in words": lambda n: n.update(nbformat="four"),
    "cells are no list": lambda n: n.update(cells={}),
    "a cell is null": lambda n: n["cells"].insert(0, None),
    "source is a number": lambda n: first(n, source=3),
    "large outputs": lambda n: n["cells"][2].update(
        outputs=[{"output_type": "stream", "name": "stdout", "text": "x" * 30_000_000}]
    ),
    "no outputs": lambda n: n["cells"][2].pop("outputs"),
    "ids twice": lambda n: n["cells"].append(dict(n["cells"][1])),
}


def test_odd_notebooks_stop_nobody(room):
    collect(room, "aaa")
    for n, change in enumerate(ODD.values()):
        collect(room, f"odd{n:02}", change)
    collect(room, "odd98", data=b"")
    collect(room, "odd99", data=b"[1]")
    collect(room, "zzz")
    assert grade(room) == {}
    marks = gradebook.load_marks(room.root, room.name)
    assert marks["aaa"]["state"] == marks["zzz"]["state"] == "graded"
    assert len(marks) == len(ODD) + 4
    for student, found in marks.items():
        assert found["state"] == "graded" or found["state"] == "rejected" and found["reason"], student
    for large in ("large outputs", "nbgrader is null", "no metadata"):
        assert marks[f"odd{list(ODD).index(large):02}"]["state"] == "graded", large
    assert room.grade("zzz", "explain_why")["needs_manual_grade"]


def test_a_collected_notebook_that_is_late_costs_what_a_late_one_costs(room):
    collect(room, "li")
    grade(room, due=DUE, rules=Rules(late_per_day=0.1))
    with gradebook.gradebook(room.root) as book:
        assert book.find_submission(room.name, "li").late_submission_penalty == pytest.approx(0.6)


@pytest.mark.parametrize(
    "content",
    [
        '{"seconds_of_upload": "x"}',
        '{"seconds_of_upload": 1e300}',
        "[]",
        '{"sha256": "", "seconds_of_upload": 0, "remarks": []}',
    ],
)
def test_a_students_own_record_counts_nothing(room, content):
    collect(room, "li", upload__json=content)
    grade(room, due=DUE, rules=Rules(late_per_day=0.1))
    with gradebook.gradebook(room.root) as book:
        assert book.find_submission(room.name, "li").timestamp == datetime.datetime(2025, 12, 2, 9, 9)


def test_a_second_run_changes_nothing_and_a_new_submission_counts(room):
    folder = collect(room, "li")
    sent = (folder / f"{room.name}.ipynb").read_bytes()
    assert [one.state for one in intake.adopt(room.root, room.name)] == ["taken"]
    assert (folder / f"{room.name}.ipynb.collected").read_bytes() == sent
    assert intake.adopt(room.root, room.name) == []
    collect(room, "li", lambda n: first(n, source="another title"), sent="2025-12-02 07:00:00.000000 UTC")
    (taken,) = intake.adopt(room.root, room.name)  # earlier than before: what is here now counts
    assert datetime.datetime.fromtimestamp(taken.seconds_of_upload, datetime.UTC).hour == 7


def test_what_was_taken_in_is_not_taken_in_again(room):
    room.send("li")
    assert intake.adopt(room.root, room.name) == []


def test_another_exercise_is_refused_and_set_aside(room):
    folder = collect(
        room,
        "li",
        data=nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])).encode(),
    )
    (taken,) = intake.adopt(room.root, room.name)
    assert taken.state == "rejected" and "another notebook" in taken.reason
    assert (folder / f"{room.name}.ipynb.refused").exists()


def test_a_notebook_under_another_name_counts_and_nobody_is_forgotten(room):
    """`nbgrader submit` only warns of a name that it does not expect."""
    for student, name in (("ann", "final.ipynb"), ("ben", "notes.ipynb"), ("cem", "")):
        folder = collect(room, student, data=b"[]" if student == "ben" else None)
        path = folder / f"{room.name}.ipynb"
        path.rename(path.with_name(name)) if name else path.unlink()
    found = {one.student: one for one in intake.adopt(room.root, room.name)}
    assert [(name, one.state) for name, one in sorted(found.items())] == [
        ("ann", "taken"),
        ("ben", "rejected"),
        ("cem", "rejected"),
    ]
    assert "none that holds its cells" in found["cem"].reason
    assert intake.adopt(room.root, room.name) == []
    room.marks("ann")
    room.merge()
    reports.feedback(room.root, room.name)
    folder = room.root / "feedback" / "ann" / room.name  # by its own name, nbgrader finds it for the student
    assert (folder / "final.html").read_bytes() == (folder / f"{room.name}.html").read_bytes()


def test_a_link_is_not_followed_and_nothing_outside_is_moved(room, tmp_path):
    elsewhere = tmp_path / "elsewhere" / room.name
    elsewhere.mkdir(parents=True)
    (elsewhere / f"{room.name}.ipynb").write_text("{}")
    (room.root / "submitted").mkdir()
    (room.root / "submitted" / "li").symlink_to(elsewhere.parent)
    (taken,) = intake.adopt(room.root, room.name)
    assert taken.state == "rejected" and (elsewhere / f"{room.name}.ipynb").exists()


def test_nbgrader_finds_beside_the_page_what_it_asks_for(room):
    collect(room, "li", submission_secret__txt="abc")
    grade(room)
    (page,) = reports.feedback(room.root, room.name)
    assert page.with_name("submission_secret.txt").read_text() == "abc"
    assert page.with_name("timestamp.txt").read_text() == SENT


def test_one_upload_by_mail_or_one_odd_file_keeps_nobody_from_a_page(room):
    """`nbgrader release_feedback` stops at the first page that has no time or no secret beside it."""
    (room.root / "inbox" / "none").mkdir(parents=True)
    (room.root / "inbox" / "none" / f"{room.name}.ipynb").write_bytes(b"")
    room.send("mail")
    room.marks("mail")
    folder = collect(room, "odd", submission_secret__txt="abc")
    (folder / "submission_secret.txt").write_bytes(b"\xff\xfe")
    (folder / "timestamp.txt").unlink()
    grade(room)
    pages = reports.feedback(room.root, room.name)
    before = [
        page.with_name(name).read_text()
        for page in pages
        for name in ("timestamp.txt", "submission_secret.txt")
    ]
    assert len(pages) == 3 and all(before) and len(set(before[1::2])) == 3
    assert reports.feedback(room.root, room.name) == pages
    assert before == [
        page.with_name(name).read_text()
        for page in pages
        for name in ("timestamp.txt", "submission_secret.txt")
    ]


# ---- one student's failure is that student's ----
def test_who_cannot_be_entered_has_a_row_with_the_reason(room, monkeypatch):
    for student in ("ann", "ben", "cem"):
        room.send(student)
        room.marks(student)
    right = gradebook.marked_copy

    def fails(root, assignment, student, marks):
        if student == "ben":
            raise ValueError("some of it")
        return right(root, assignment, student, marks)

    monkeypatch.setattr(gradebook, "marked_copy", fails)
    failed = gradebook.merge(room.root, room.name, gradebook.load_marks(room.root, room.name))
    assert list(failed) == ["ben"] and "some of it" in failed["ben"]
    marks = gradebook.load_marks(room.root, room.name)
    assert [marks[student]["state"] for student in marks] == ["graded", "grader error", "graded"]
    assert room.grade("cem", "check_answer")["auto_score"] == 3


def test_a_gradebook_that_is_in_use_is_said_in_words(room):
    room.send("li")
    room.marks("li")
    engine = create_engine(gradebook.database(room.root))
    with engine.connect() as other:
        other.execute(text("BEGIN EXCLUSIVE"))
        with pytest.raises(RuntimeError, match="formgrader or another program"):
            room.merge()
    engine.dispose()


# ---- odd things in the inbox ----
def test_a_file_from_the_year_9999_stops_nobody(room):
    room.send("ann", seconds=253_500_000_000)
    taken = room.send("ben", seconds=-5)
    assert [one.state for one in taken] == ["taken", "taken"]
    assert all(0 <= one.seconds_of_upload <= datetime.datetime.now().timestamp() for one in taken)


def test_names_with_a_dot_and_linked_folders_have_a_row(room, tmp_path):
    room.send(".li")
    (room.root / "inbox" / ".cache").mkdir()
    (room.root / "inbox" / ".DS_Store").write_bytes(b"\0")
    (tmp_path / "mae").mkdir()
    (room.root / "inbox" / "mae").symlink_to(tmp_path / "mae")
    found = {one.student: one for one in intake.take_in(room.root / "inbox", room.root, [room.name])}
    assert sorted(one.state for one in found.values()) == ["rejected", "taken"]
    (linked,) = [one for one in found.values() if one.state == "rejected"]
    assert linked.student == "mae" and "link" in linked.reason


def test_the_cells_say_which_exercise_it_is(room):
    room.send("li")
    path = room.root / "inbox" / "li" / f"{room.name}.ipynb"
    shutil.rmtree(room.root / "submitted")
    os.rename(path, path.with_name("homework_final.ipynb"))
    (taken,) = intake.take_in(room.root / "inbox", room.root, [room.name])
    assert (taken.assignment, taken.state) == (room.name, "taken")
    assert "its cells are those of" in taken.reason
    shutil.rmtree(room.root / "submitted")
    os.rename(path.with_name("homework_final.ipynb"), path.with_name("ex07_alibi.ipynb"))
    (taken,) = intake.take_in(room.root / "inbox", room.root, [room.name, "ex07_alibi"])
    assert taken.assignment == room.name


def test_an_honest_notebook_with_large_outputs_is_taken(room):
    output = nbformat.v4.new_output("stream", text="x" * 30_000_000)
    (taken,) = room.send("li", change=lambda notebook: notebook.cells[1].outputs.append(output))
    assert taken.state == "taken" and taken.path.stat().st_size < 10_000


def test_a_formula_behind_a_semicolon_is_inside_quotes():
    assert reports.table(["a"], [{"a": "a;=1+1;"}]).splitlines()[1] == '"a;=1+1;"'
