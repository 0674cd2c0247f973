"""From marks to nbgrader's gradebook and out again."""

import csv
import io
import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest

from classroom import gradebook, reports, rules, written
from classroom.rules import Rules
from classroom.student_version import WRITTEN

DUE = "2023-11-14T22:13:20+00:00"  # the second that uploads of these tests are sent at
DAY = 86_400


# ---- the course ----


def test_prepared_class(room):
    sources = [cell.source for cell in room.released().cells]
    assert 'raise NotImplementedError("answer is not written yet")' in sources[1]
    assert "41" not in "".join(sources)
    assert "Because" not in "".join(sources)
    with gradebook.gradebook(room.root) as book:
        (assignment,) = book.assignments
        assert (assignment.name, assignment.max_score, assignment.max_written_score) == (room.name, 6.0, 2.0)


def test_preparing_again_changes_nothing(room):
    release = room.root / "release" / room.name / f"{room.name}.ipynb"
    before, when = room.dump(), release.stat().st_mtime_ns
    gradebook.prepare(room.root, {room.name: room.root / "solution.ipynb"})
    assert room.dump() == before and release.stat().st_mtime_ns == when


def test_a_cell_with_a_comment_cannot_go_after_submissions(room):
    room.send("li")
    room.marks("li")
    room.merge()
    room.comment("li", "answer", "Nice.")
    notebook = nbformat.read(room.root / "solution.ipynb", as_version=4)
    notebook.cells[1].metadata.nbgrader.grade_id = "renamed"
    nbformat.write(notebook, room.root / "solution.ipynb")
    for _ in range(2):  # it is not taken for done the second time
        with pytest.raises(ValueError, match="has no answer any more, but 1 marks or comments"):
            gradebook.prepare(room.root, {room.name: room.root / "solution.ipynb"})
    assert gradebook.source(room.root, room.name).exists() and room.released().cells


def test_a_folder_that_was_moved_finds_its_database(room, tmp_path):
    shutil.move(room.root, tmp_path / "moved")
    assert gradebook.database(tmp_path / "moved") == f"sqlite:///{tmp_path}/moved/gradebook.db"


# ---- scores ----


def score(room, state="graded", points=3.0, **options):
    room.send("li")
    marks = room.marks("li", points, state)
    room.merge({"li": marks}, **options)
    return room.grade("li", "check_answer")


@pytest.mark.parametrize(("points", "expected"), [(3, 3.0), (0, 0.0), (4.0, 4.0), (1e9, 4.0), (-5, 0.0)])
def test_points_stay_within_what_a_question_gives(room, points, expected):
    found = score(room, points=points)
    assert (found["auto_score"], found["needs_manual_grade"]) == (expected, False)


@pytest.mark.parametrize("points", [float("nan"), float("inf"), "4", None, True])
def test_what_is_no_number_is_no_score(room, points):
    found = score(room, points=points)
    assert (found["auto_score"], found["needs_manual_grade"]) == (None, True)


def test_grader_error_is_never_a_zero(room):
    assert score(room)["auto_score"] == 3.0
    found = score(room, "grader error")
    assert (found["auto_score"], found["needs_manual_grade"]) == (None, True)
    (row,) = rows(room)
    assert (row["state"], row["coded"], row["total"]) == ("grader error", "", "")


def test_timed_out_keeps_finished_questions(room):
    found = score(room, "timed out")
    assert (found["auto_score"], found["needs_manual_grade"]) == (0.0, False)
    marks = room.marks("li", 3.0) | {"state": "timed out"}
    room.merge({"li": marks})
    assert room.grade("li", "check_answer")["auto_score"] == 3.0


def test_rejected_has_a_page_to_mark_by_hand(room):
    (room.root / "inbox/li").mkdir(parents=True)
    (room.root / f"inbox/li/{room.name}.ipynb").write_bytes(b"")
    gradebook_marks = room.send("bo") and gradebook.load_marks(room.root, room.name)
    room.merge(gradebook_marks)
    assert room.grade("li", "check_answer")["auto_score"] == 0.0
    shown = nbformat.read(room.root / f"autograded/li/{room.name}/{room.name}.ipynb", 4)
    assert "The file is empty" in shown.cells[0].source
    room.grade("li", "check_answer", manual_score=2.0)
    room.merge(gradebook_marks)
    assert room.grade("li", "check_answer")["manual_score"] == 2.0


def test_broken_marks_are_a_grader_error(room):
    room.marks("li")
    for text in (
        "{",
        "[]",
        "{}",
        '{"state": "great", "questions": {}}',
        '{"state": "graded", "questions": []}',
    ):
        (room.root / f"marks/{room.name}/li.json").write_text(text)
        assert gradebook.load_marks(room.root, room.name)["li"]["state"] == "grader error"


def test_merge_asks_for_what_it_needs(room, tmp_path):
    with pytest.raises(FileNotFoundError, match="call prepare first"):
        gradebook.merge(tmp_path, room.name, {})
    with pytest.raises(ValueError, match="known are: ex06_rope"):
        gradebook.merge(room.root, "ex99", {})
    with pytest.raises(ValueError, match="from 0"):
        room.merge({}, rules=Rules(late_per_day=10))


# ---- what a person gave ----


def test_manual_marks_survive(room):
    room.send("li")
    room.marks("li")
    room.merge()
    assert room.grade("li", "explain_why")["needs_manual_grade"]
    room.grade("li", "explain_why", manual_score=1.5, needs_manual_grade=False)  # as formgrader does
    room.grade("li", "check_answer", extra_credit=0.5)
    room.comment("li", "explain_why", "Well said.")
    before = room.dump()
    room.merge()
    assert room.dump() == before
    (row,) = rows(room)
    assert (row["coded"], row["written"], row["total"], row["to mark"]) == ("3.5", "1.5", "5", "0")


def test_a_changed_answer_is_asked_for_again(room):
    room.send("li")
    room.marks("li")
    room.merge()
    room.grade("li", "explain_why", manual_score=1.5, needs_manual_grade=False)
    room.send("li", code="def answer(x): return 2", seconds=1_700_000_100)  # the written answer is the same
    room.merge()
    assert not room.grade("li", "explain_why")["needs_manual_grade"]
    room.send("li", why="Another reason.", seconds=1_700_000_200)
    room.merge()
    found = room.grade("li", "explain_why")
    assert found["needs_manual_grade"] and found["manual_score"] == 1.5


def test_an_overruled_check_is_asked_for_again_when_it_changes_its_mind(room):
    score(room)
    room.grade("li", "check_answer", manual_score=4.0, needs_manual_grade=False)
    assert not score(room)["needs_manual_grade"]
    found = score(room, points=2.0)
    assert found["needs_manual_grade"] and found["manual_score"] == 4.0


def test_no_response_scores_nothing(room):
    room.send("li", why=WRITTEN)
    room.marks("li")
    room.merge()
    found = room.grade("li", "explain_why")
    assert (found["auto_score"], found["needs_manual_grade"]) == (0.0, False)


# ---- the copy that is marked ----


def test_ids_points_and_tests_stay_the_teachers(room):
    def tamper(notebook):
        for cell in notebook.cells[1:]:
            cell.metadata.nbgrader.points = 100
            cell.metadata.nbgrader.locked = False
            cell.metadata.tags = ["skip-execution"]
        notebook.cells[2].source = "print('passed')"
        notebook.cells[3].cell_type = "raw"
        notebook.cells.insert(1, nbformat.v4.new_code_cell("def helper(): pass"))
        notebook.cells.insert(0, nbformat.v4.new_raw_cell("<script>alert(1)</script>"))
        notebook.cells.append(nbformat.v4.new_markdown_cell("A note below."))

    room.send("li", change=tamper)
    room.marks("li")
    room.merge()
    shown = nbformat.read(room.root / f"autograded/li/{room.name}/{room.name}.ipynb", 4)
    nbformat.validate(shown)
    assert [cell.source for cell in shown.cells] == [
        "<script>alert(1)</script>",
        "# Rotations",
        "def helper(): pass",
        "def answer(x): return x",
        "check.answer(answer)",
        "print('passed')",
        "Since the angles add up.\n\nA note below.",
    ]
    ours = [cell for cell in shown.cells if "nbgrader" in cell.metadata]
    assert {cell.cell_type for cell in shown.cells if cell not in ours} == {"markdown", "code"}
    for one, other in zip(ours, room.released().cells[1:], strict=True):
        assert one.metadata == other.metadata and one.cell_type == other.cell_type


def test_a_deleted_cell_is_put_back(room):
    room.send("li", change=lambda notebook: notebook.cells.pop(3))
    room.marks("li")
    room.merge()
    shown = nbformat.read(room.root / f"autograded/li/{room.name}/{room.name}.ipynb", 4)
    assert len(shown.cells) == 4
    assert room.grade("li", "explain_why")["auto_score"] == 0.0


def test_thousands_of_extra_cells_do_not_drown_the_teacher(room):
    def pile(notebook):
        notebook.cells[:0] = [nbformat.v4.new_markdown_cell("a" * 1000) for _ in range(1000)]

    room.send("li", change=pile)
    room.marks("li")
    room.merge()
    shown = nbformat.read(room.root / f"autograded/li/{room.name}/{room.name}.ipynb", 4)
    assert len(shown.cells) <= 5 + gradebook.MOST_EXTRA_CELLS
    assert f"{1004 - len(shown.cells) + 1} more cells" in shown.cells[0].source


# ---- late ----


@pytest.mark.parametrize(
    ("late", "penalty"), [(0, None), (1, 0.6), (DAY, 0.6), (DAY + 1, 1.2), (100 * DAY, 6.0)]
)
def test_late_penalty(room, late, penalty):
    room.send("li", seconds=1_700_000_000 + late)
    room.marks("li", 4.0)
    for _ in range(2):
        room.merge(due=DUE, rules=Rules(late_per_day=0.1))
        with gradebook.gradebook(room.root) as book:
            notebook = book.find_submission_notebook(room.name, room.name, "li")
            assert notebook.late_submission_penalty == penalty
    (row,) = rows(room)
    assert float(row["late penalty"]) == (penalty or 0) and float(row["total"]) == max(0, 4 - (penalty or 0))


def test_extension_counts(room):
    room.send("li", seconds=1_700_000_000 + DAY)
    room.marks("li")
    room.merge(due=DUE, rules=Rules(late_per_day=0.1))
    with gradebook.gradebook(room.root) as book:
        book.grant_extension(room.name, "li", days=1)
    room.merge(rules=Rules(late_per_day=0.1))  # the due date stays
    (row,) = rows(room)
    assert row["late penalty"] == "0"


# ---- the same inputs, the same gradebook ----


def fill(room):
    for n, student in enumerate(("li", "bo", "Zoë", "eve")):
        room.send(student, seconds=1_700_000_000 + n * DAY)
    students = json.loads((room.root / "students.json").read_text())
    for n, student in enumerate(sorted(students)):
        room.marks(student, n, ["graded", "timed out", "grader error", "graded"][n])
    room.merge(due=DUE, rules=Rules(late_per_day=0.1))


def test_same_inputs_same_gradebook(room, prepared, tmp_path):
    fill(room)
    first = room.dump()
    assert sum(map(len, first.values())) > 30  # the dump sees rows
    room.merge(due=DUE, rules=Rules(late_per_day=0.1))
    assert room.dump() == first
    shutil.copytree(prepared, tmp_path / "other")
    other = type(room)(tmp_path / "other")
    fill(other)
    assert other.dump() == first
    assert (other.root / "exports").exists() is False
    assert reports.export(other.root).read_bytes() == reports.export(room.root).read_bytes()


def test_two_writers_wait_for_each_other(room):
    for student in "abcd":
        room.send(student)
        room.marks(student)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: room.merge(), range(4)))
    assert [row["coded"] for row in rows(room)] == ["3"] * 4


def test_formgraders_buttons(room, tmp_path, monkeypatch):
    """Autograde enters the same marks and runs nothing; nbgrader's own lists see the submission."""
    from nbgrader.apps import NbGraderAPI
    from nbgrader.apps.baseapp import NbGrader

    ran = tmp_path / "ran"
    room.send("li", code=f"open({str(ran)!r}, 'w')\ndef answer(x): return x")
    room.marks("li")
    rules.save(room.root, room.name, Rules(late_per_day=0.1))
    room.merge(due=DUE)
    room.grade("li", "explain_why", manual_score=1.0, needs_manual_grade=False)
    before = room.dump()
    monkeypatch.chdir(room.root)
    app = NbGrader()
    app.load_config_file()
    api = NbGraderAPI(config=app.config)
    result = api.autograde(room.name, "li")
    assert result["success"], result
    assert room.dump() == before and not ran.exists()
    (found,) = api.get_submissions(room.name)
    assert (found["student"], found["score"], found["autograded"]) == ("li", 4.0, True)
    assert len(api.get_notebook_submissions(room.name, room.name)) == 1
    (room.root / f"marks/{room.name}/li.json").unlink()
    result = api.autograde(room.name, "li")
    assert not result["success"] and "has no marks" in result["log"]


# ---- PostgreSQL ----


@pytest.fixture
def postgres():
    """The URL of a server of its own, on a socket in a folder of its own."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        pytest.skip("PostgreSQL is not installed")
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    prefix = []
    if os.getuid() == 0:  # the server refuses to run as root
        shutil.chown(home, "postgres")
        prefix = ["runuser", "-u", "postgres", "--"]

    def call(program, *arguments):
        done = subprocess.run(
            [*prefix, folders[-1] / program, "-D", home / "data", *arguments],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert done.returncode == 0, (home / "log").read_text() if (home / "log").exists() else program

    try:
        call("initdb", "-A", "trust", "-U", "teacher", "-E", "UTF8", "--no-sync")
        call(
            "pg_ctl",
            "-w",
            "-t",
            "120",
            "-l",
            home / "log",
            "-o",
            f"-k {home} -c listen_addresses='' -c fsync=off",
            "start",
        )
        try:
            yield f"postgresql://teacher@/postgres?host={home}"
        finally:
            call("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_postgresql_holds_the_same_as_sqlite(room, tmp_path, postgres):
    fill(room)
    other = type(room)(tmp_path / "other")
    gradebook.prepare(other.root, {room.name: room.root / "solution.ipynb"}, db=postgres)
    assert (other.root / "nbgrader_config.py").stat().st_mode & 0o77 == 0  # a URL may hold a password
    fill(other)  # the URL is known from the folder
    assert not (other.root / "gradebook.db").exists()
    assert other.dump() == room.dump()
    assert reports.export(other.root).read_bytes() == reports.export(room.root).read_bytes()


# ---- grades as a table, and the report ----


def rows(room) -> list[dict]:
    return list(csv.DictReader(io.StringIO(reports.export(room.root).read_bytes().decode())))


def test_table_of_grades(room):
    formula = '=HYPERLINK("x","a,b")\n'
    room.send(formula)
    room.send("li")
    (room.root / "inbox/no one").mkdir()
    room.send("bo", why="+1")
    room.marks("li")
    room.merge()
    found = {row["name"]: row for row in rows(room)}
    assert set(found) == {f"'{formula}", "li", "bo", "no one"}
    assert (found["li"]["coded"], found["li"]["max"], found["li"]["to mark"]) == ("3", "6", "1")
    assert (found["bo"]["state"], found["bo"]["total"]) == ("not handed in", "")  # taken in, not graded yet
    text = reports.export(room.root).read_text()
    for line in csv.reader(io.StringIO(text)):
        assert len(line) == len(reports.COLUMNS)
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in line)


@pytest.mark.parametrize("start", list("=+-@\t\r"))
def test_formulas_are_inert(start):
    text = f'{start}1+1, "x"\nnext'
    ((cell,),) = csv.reader(io.StringIO(reports.table(["a"], [{"a": text}]).split("\r\n", 1)[1], newline=""))
    assert cell == f"'{text}"


def test_report_names_beliefs_and_no_student(room):
    for n in range(5):
        name = ["off by one", "swapped | pairs", "swapped | pairs", "swapped | pairs", ""][n]
        room.marks(f"student{n}", 1 if name else 4, name=name)
    room.marks("student5", state="grader error")
    path = reports.report(room.root, room.name)
    text = path.read_text()
    assert "5 graded, 1 grader error" in text and "student4" not in text
    assert "| answer | 5 | 20% | 40% |  | 0 |" in text
    assert "| answer | swapped \\| pairs | 3 | 60% |" in text
    assert "![Bar chart of 2 misconceptions" in text
    assert (path.parent / "misconceptions.png").read_bytes().startswith(b"\x89PNG")
    held = list(csv.DictReader(open(path.parent / "misconceptions.csv", newline="")))
    found = [(row["misconception"], row["students"]) for row in held]
    assert found == [("swapped | pairs", "3"), ("off by one", "1")]


def test_reports_of_an_empty_class(room):
    assert "No answer has been graded" in reports.report(room.root, room.name).read_text()
    assert reports.feedback(room.root, room.name) == []
    assert rows(room) == []
    room.merge({})
    room.marks("li", state="rejected")
    assert "1 rejected" in reports.report(room.root, room.name).read_text()


def test_a_question_of_the_teachers_own_may_come_while_hand_ins_are_in(room, tmp_path):
    """With an id of nbgrader's toolbar. Marks by hand stay, and nobody gets a 0 for what they never saw."""
    for student in ("ada", "ben"):
        room.send(student)
        room.marks(student, 3.0)
    room.merge()
    room.grade("ada", "explain_why", manual_score=1.5, needs_manual_grade=False)
    room.comment("ada", "explain_why", "Nearly.")

    def prepared(change):
        notebook = nbformat.read(gradebook.source(room.root, room.name), as_version=4)
        change(notebook.cells)
        nbformat.write(notebook, tmp_path / "own.ipynb")
        gradebook.prepare(room.root, {room.name: tmp_path / "own.ipynb"})
        room.merge()

    asked = nbformat.v4.new_markdown_cell("### Where have you met this? (3 points)", id="asked")
    own = room.cell("markdown", "In a bag of words.", "cell-4711", grade=True, solution=True, points=3)
    prepared(lambda cells: cells.extend([asked, own]))
    waits = room.grade("ada", "cell-4711")
    assert waits["needs_manual_grade"] and waits["auto_score"] is None and waits["max_score"] == 3
    assert room.grade("ada", "explain_why")["manual_score"] == 1.5
    assert gradebook.unseen(room.root, room.name, "ada") == {"cell-4711"}
    room.send("cy")  # who has the new notebook, and leaves it empty
    room.marks("cy")
    room.merge()
    assert room.grade("cy", "cell-4711")["auto_score"] == 0 and not gradebook.unseen(
        room.root, room.name, "cy"
    )
    assert "Where have you met this?" in reports.feedback(room.root, room.name)[0].read_text()
    assert (room.root / "written" / room.name / "cell-4711.html") in written.write(room.root, room.name)

    prepared(lambda cells: cells.__delitem__(slice(-2, None)))  # and goes again
    with pytest.raises(ValueError, match="1 marks or comments that were given by hand.*--drop explain_why"):
        prepared(lambda cells: cells.__delitem__(slice(-1, None)))
    own.metadata.nbgrader.task = True
    with pytest.raises(ValueError, match="cell-4711 is a “Manually graded task”"):
        prepared(lambda cells: cells.extend([asked, own]))
