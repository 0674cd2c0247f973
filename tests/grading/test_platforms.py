"""Marks as Canvas and Moodle read them: by rules that stand in their sources."""

import csv
import io
import re
import zipfile

import nbformat
import pytest

from classroom import __main__ as command
from classroom import gradebook, intake, people, platforms, reports

LIST = """id,name,email,group,canvas_id,sis_id,login,moodle_id
li,"Li, Na",li@uni.example,A,48213,S1,nali,M1
wang1,王小明,wang@uni.example,B,48215,,,
x,=1+1,x@uni.example,,,,,
"""


@pytest.fixture
def exported(room):
    """Of three, li has 3 of 4 and a written answer that waits; a stranger is not in the list."""
    (room.root / "roster.csv").write_text(LIST, encoding="utf-8")
    for student in ("li", "stranger"):
        room.send(student)
        room.marks(student)
    room.merge()
    reports.export(room.root)
    return room


def read(room, name, encoding="utf-8"):
    return list(csv.reader(io.StringIO((room.root / "exports" / name).read_bytes().decode(encoding))))


def test_canvas_reads_its_file(exported):
    head, possible, *rows = read(exported, "canvas.csv")
    # GradebookImporter#row_has_student_headers?, #update_column_count, #last_student_info_column
    assert "Student" in head[0] and "ID" in head[1]
    assert head[2:5] == ["SIS User ID", "SIS Login ID", "Section"]
    assert head[5:] == ["ex06_rope"] and "Points Possible" in possible[0] and possible[5:] == ["6"]
    assert rows == [
        ["Li, Na", "48213", "S1", "nali", "A", "3"],
        ["王小明", "48215", "", "", "B", ""],
        ["'=1+1", "", "", "", "", ""],
    ]


def test_canvas_gets_questions_if_asked(exported, capsys):
    assert command.main(["export", "--root", str(exported.root), "--questions"]) == 0
    assert "canvas.csv, moodle.csv, questions.csv" in capsys.readouterr().out
    head, possible, first, *_ = read(exported, "canvas.csv")
    assert head[5:] == ["ex06_rope", "ex06_rope: answer", "ex06_rope: explain_why"]
    assert (possible[5:], first[5:]) == (["6", "4", "2"], ["3", "3", ""])


def test_moodle_reads_its_file(exported):
    head, *rows = read(exported, "moodle.csv")
    assert head == [
        "Email address",
        "ID number",
        "Username",
        "Full name",
        "ex06_rope",
        "ex06_rope: answer",
        "ex06_rope: explain_why",
        "ex06_rope: feedback",
    ]
    assert rows[0] == ["li@uni.example", "M1", "nali", "Li, Na", "3", "3", "-", "answer 3"]
    assert rows[1] == ["wang@uni.example", "", "", "王小明", "-", "-", "-", ""]


@pytest.mark.parametrize("name", ["canvas.csv", "moodle.csv"])
def test_no_mark_stands_before_the_first_cell(exported, name):
    assert not (exported.root / "exports" / name).read_bytes().startswith(b"\xef\xbb\xbf")


def test_excel_is_told_that_the_tables_are_utf8(exported):
    for name in ("grades.csv", "questions.csv"):
        assert (exported.root / "exports" / name).read_bytes().startswith(b"\xef\xbb\xbf")
    assert any(row[1] == "王小明" for row in read(exported, "grades.csv", "utf-8-sig"))


def test_each_answer_has_a_row(exported):
    head, *rows = read(exported, "questions.csv", "utf-8-sig")
    assert tuple(head) == reports.ANSWERS
    assert ["li", "Li, Na", "A", "ex06_rope", "answer", "3", "4"] in rows and len(rows) == 4


def test_without_a_list_there_is_nothing_to_import(room):
    room.send("li")
    room.marks("li")
    room.merge()
    reports.export(room.root)
    assert sorted(path.name for path in (room.root / "exports").iterdir()) == ["grades.csv", "questions.csv"]


def test_points_are_written_as_platforms_show_them():
    assert [platforms._number(value) for value in (0.0, 18.333333, 20, None)] == ["0", "18.33", "20", ""]


def test_feedback_goes_back_under_the_names_that_the_platforms_gave(room, capsys):
    """Read as they read it: a folder's parts in Moodle, the first two numbers of a file's name in Canvas."""
    (room.root / "roster.csv").write_text("id,name,canvas_id\ntom,Tom Berg,48214\nzoe,Zoë Müller,\n")
    notebook, sent = nbformat.writes(room.released()), room.root / "inbox" / "submissions"
    for name in (
        "Zoë Müller_5530121_assignsubmission_file/ex06_rope.ipynb",
        "Lena Fischer_5530122_assignsubmission_file_/ex06_rope.ipynb",
        "Lena Fischer_5530123_assignsubmission_file_/ex06_rope.ipynb",
        "王小明_5530124_assignsubmission_file_ex06_rope.ipynb",
        "bergtom_LATE_48214_1190443_ex06_rope-1.ipynb",
        "fischerpeter_48215_1190444_ex06_rope.zip",
        "mailed/ex06_rope.ipynb",
    ):
        (sent.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (sent.parent / name).write_text("no notebook" if name.startswith("王") else notebook)
    intake.take_in(sent.parent, room.root, [room.name])
    for student in gradebook.students(room.root):
        if not (room.root / "marks" / room.name / f"{student}.json").exists():
            room.marks(student)
    room.merge()
    assert command.main(["feedback", room.name, "--root", str(room.root)]) == 0
    said = capsys.readouterr().out
    assert "7 pages" in said and "moodle.zip: 4 of them" in said and "canvas.zip: 2 of them" in said
    found = {}
    with zipfile.ZipFile(room.root / "exports" / f"feedback-{room.name}-moodle.zip") as packed:
        for name in packed.namelist():
            folder, file = name.split("/")
            _full, number, kind, plugin, _rest = folder.split("_", 4)
            assert (kind, plugin, file) == ("assignsubmission", "file", "ex06_rope.html")
            found[number] = packed.read(name).decode()
    names = {number: re.search(r"<p>(.*?): ", page)[1] for number, page in found.items()}
    assert names["5530121"] == "Zoë Müller" and names["5530124"] == "王小明"
    assert names["5530122"] == "Lena Fischer 5530122" and names["5530123"] == "Lena Fischer 5530123"
    assert "not taken in" in found["5530124"] and "王小明" not in found["5530121"]
    with zipfile.ZipFile(room.root / "exports" / f"feedback-{room.name}-canvas.zip") as packed:
        by_numbers = {tuple(re.findall(r"(?<=_)\d+(?=_)", name)[:2]): name for name in packed.namelist()}
        assert by_numbers.keys() == {("48214", "1190443"), ("48215", "1190444")}
        page = nbformat.reads(packed.read(by_numbers["48214", "1190443"]).decode(), as_version=4)
        assert by_numbers["48215", "1190444"].endswith("_ex06_rope.html")
    (output,) = page.cells[0].outputs
    assert "Tom Berg: graded" in output.data["text/html"] and "<style" not in output.data["text/html"]
    people.forget(room.root, "tom", do=True)
    assert not [*room.root.glob("taken/*/tom*")]
