"""Nobody stays in the tables under a name that is gone: `merge`, `forget`, and who `take-in` says is left."""

import csv
import json

import pytest

from classroom import __main__ as command
from classroom import assignments, marking, rules
from course.lesson import votes


@pytest.fixture
def teacher(room, monkeypatch, capsys):
    """`Zoe M` has sent something, was marked by hand, and has the id zoe in the class list."""
    monkeypatch.setattr(assignments, "path", lambda name, folder="": room.root / "solution.ipynb")
    monkeypatch.setattr(marking, "mark_all", lambda *args, **more: [])

    def run(*line) -> str:
        assert command.main([*map(str, line), "--root", str(room.root)]) == 0
        said = capsys.readouterr()
        return said.out + said.err

    room.run = run
    (room.root / "roster.csv").write_text("id,name\nann,Ann\nzoe,Zoë Müller\n")
    room.send("ann")
    room.send("zoe-m")
    for student in ("ann", "zoe-m"):
        room.marks(student)
    run("grade", room.name, "--extend", "zoe-m", "2d")
    room.grade("zoe-m", "explain_why", manual_score=1.5, needs_manual_grade=False)
    room.comment("zoe-m", "explain_why", "Well said.")
    return room


def grades(room) -> dict[str, dict]:
    room.run("export")
    with open(room.root / "exports" / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def everything(room) -> dict:
    return {path: path.read_bytes() for path in room.root.rglob("*") if path.is_file()}


def test_merge_says_first_and_then_moves_all(teacher):
    assert "Not in roster.csv: zoe-m" in teacher.run("take-in", teacher.root / "inbox")
    before = everything(teacher)
    said = teacher.run("merge", "zoe-m", "zoe")
    assert "what zoe-m sent on Tuesday, 14 November 2023" in said and "Nothing was done" in said
    assert "1 marks by hand and 1 comments become zoe's" in said and everything(teacher) == before
    teacher.run("merge", "zoe-m", "zoe", "--yes")
    teacher.marks("zoe")
    teacher.run("grade", teacher.name)
    teacher.run("feedback", teacher.name)
    found = grades(teacher)
    assert set(found) == {"ann", "zoe"}
    assert (found["zoe"]["coded"], found["zoe"]["written"], found["zoe"]["to mark"]) == ("3", "1.5", "0")
    assert rules.load(teacher.root, teacher.name).extensions == {"zoe": "2d"}
    page = teacher.root / "feedback" / "zoe" / teacher.name / f"{teacher.name}.html"
    assert "Well said." in page.read_text()
    left = {path.parts[-2] for path in teacher.root.rglob("zoe-m*")}
    assert left <= {"inbox", "zoe-m"}, "what was uploaded is the teacher's"


def test_what_comes_later_under_the_old_name_is_theirs(teacher):
    teacher.run("merge", "zoe-m", "zoe", "--yes")
    teacher.send("zoe-m", code="def answer(x): return 2", seconds=1_700_000_100)
    said = teacher.run("take-in", teacher.root / "inbox")
    assert "2 taken" in said and "Not in" not in said and not (teacher.root / "submitted" / "zoe-m").exists()
    assert "zoe-m" not in json.loads((teacher.root / "students.json").read_text())


def test_after_a_renaming_the_old_row_is_named_and_its_marks_move(teacher):
    (teacher.root / "inbox" / "zoe-m").rename(teacher.root / "inbox" / "zoe")
    said = teacher.run("take-in", teacher.root / "inbox")
    assert "Neither in roster.csv nor in the inbox, but in the tables: zoe-m" in said
    teacher.marks("zoe")
    teacher.run("grade", teacher.name)
    assert "is older than that of zoe" in teacher.run("merge", "zoe-m", "zoe", "--yes")
    found = grades(teacher)
    assert set(found) == {"ann", "zoe"} and (found["zoe"]["written"], found["zoe"]["to mark"]) == ("1.5", "0")
    assert "in the tables" not in teacher.run("take-in", teacher.root / "inbox")


def test_a_mark_for_another_text_is_to_be_given_again(teacher):
    teacher.send("zoe", why="Another reason.", seconds=1_700_000_100)
    teacher.marks("zoe")
    teacher.run("grade", teacher.name)
    teacher.run("merge", "zoe-m", "zoe", "--yes")
    found = teacher.grade("zoe", "explain_why")
    assert found["manual_score"] == 1.5 and found["needs_manual_grade"]
    teacher.run("grade", teacher.name)
    assert teacher.grade("zoe", "explain_why")["needs_manual_grade"]
    kept = teacher.root / "submitted" / "zoe" / teacher.name / f"{teacher.name}.ipynb.earlier"
    assert "Since the angles" in kept.read_text()


def test_what_the_id_has_from_a_person_stays(teacher):
    teacher.send("zoe", seconds=1_600_000_000)
    teacher.marks("zoe")
    teacher.run("grade", teacher.name)
    teacher.grade("zoe", "explain_why", manual_score=0.5, needs_manual_grade=False)
    teacher.run("merge", "zoe-m", "zoe", "--yes")
    assert teacher.grade("zoe", "explain_why")["manual_score"] == 0.5


def filled_in(room) -> None:
    """Everybody's written answer gets a mark in the table, which nobody has entered yet."""
    room.run("written", room.name)
    table = room.root / "written" / room.name / "marks.csv"
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = [
            row | {"points": {"ann": "2", "zoe-m": "0.5"}[row["student"]]} for row in csv.DictReader(file)
        ]
    with table.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0], quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)


def test_marks_in_a_table_follow_a_merge(teacher):
    """Until now the name that was gone stopped the marks of all others, too."""
    filled_in(teacher)
    assert "1 lines of marks.csv become zoe’s" in teacher.run("merge", "zoe-m", "zoe", "--yes")
    teacher.marks("zoe")
    teacher.run("grade", teacher.name)
    teacher.run("written", teacher.name, "--enter")
    assert {name: row["written"] for name, row in grades(teacher).items()} == {"ann": "2", "zoe": "0.5"}


def test_a_student_who_is_forgotten_leaves_the_tables(teacher):
    filled_in(teacher)
    said = teacher.run("forget", "zoe-m", "--yes")
    assert "1 lines of marks.csv go" in said
    teacher.run("written", teacher.name, "--enter")
    assert grades(teacher)["ann"]["written"] == "2"
    assert not [path for path in (teacher.root / "written").rglob("*.*") if "zoe-m" in path.read_text()]


def test_forget_says_first_and_then_nothing_is_left(teacher):
    vote = {
        "question": "06.layout",
        "vote": 1,
        "choice": "same",
        "right": None,
        "version": "1",
        "code": "0" * 16,
    }
    for student in ("ann", "zoe-m"):
        (teacher.root / "inbox" / student / votes.name_of(vote)).write_text(json.dumps(vote))
    teacher.run("take-in", teacher.root / "inbox")
    teacher.run("feedback", teacher.name)
    before = everything(teacher)
    assert "Nothing was done" in teacher.run("forget", "zoe-m") and everything(teacher) == before
    teacher.run("forget", "zoe-m", "--yes")
    assert set(grades(teacher)) == {"ann", "zoe"} and len(list((teacher.root / "votes").iterdir())) == 1
    left = [path for path in teacher.root.rglob("*") if "inbox" not in path.parts and "zoe-m" in path.name]
    assert not left and "zoe-m" not in (teacher.root / "students.json").read_text()
    assert not rules.load(teacher.root, teacher.name).extensions


@pytest.mark.parametrize(
    "line", [("merge", "nobody", "zoe"), ("merge", "zoe-m", "nobody"), ("forget", "nobody")]
)
def test_a_name_that_is_nobodys_is_refused(teacher, capsys, line):
    assert command.main([*line, "--root", str(teacher.root)]) == 2
    assert "there is no student 'nobody'; there are ann, zoe, zoe-m" in capsys.readouterr().err
