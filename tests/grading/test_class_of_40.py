"""A class of forty, of all kinds, on both routes: from what was sent to book, feedback and imports.

Their uploads come from Canvas, from Moodle and by mail, each fault once; `-rP` shows the table of all.
"""

import contextlib
import csv
import datetime
import io
import json
import os
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from classroom import __main__ as command
from classroom import gradebook, history, sandbox
from workshop import exercises

NAME, OTHER = "ex06_rope", "ex07_alibi"
MISSING = sandbox.probe()
contained = pytest.mark.skipif(bool(MISSING), reason=MISSING)
DUE = datetime.datetime(2026, 3, 1, 12, 0, tzinfo=datetime.UTC)
HOUR = 3600
SECRET = "leaked-31415"
UNSEEN = "I am not sure, and I say so up here."
CANVAS, MOODLE = "submissions.zip!", "Positions-Exercise 6-5530.zip!"  # each with a whole class in it


# ---- what they hand in ----
def notebook(
    folder: str = "solutions", name: str = NAME, change=None, extra=(), note="", **answers: str
) -> bytes:
    """An exercise with some answers changed, by nbgrader's id, and cells of the student's own in front.

    A note makes it another file with the same code.
    """
    found = json.loads(exercises.path(name, folder).read_bytes())
    for cell in found["cells"]:
        cell["source"] = answers.get(cell["metadata"].get("nbgrader", {}).get("grade_id"), cell["source"])
    found["cells"][:0] = [
        {
            "cell_type": "code",
            "id": f"own-{n}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for n, source in enumerate(extra)
    ]
    if note:
        found["cells"][:0] = [{"cell_type": "markdown", "id": "note", "metadata": {}, "source": note}]
    if change:
        change(found)
    return json.dumps(found).encode()


def stored_as(code: str, text: str) -> bytes:
    """With these words, in a code that no notebook should have."""
    told = json.dumps(json.loads(notebook(**words(text))), ensure_ascii=False)
    return told.encode(code, "xmlcharrefreplace")


def words(text: str) -> dict[str, str]:
    return {"explain_rope_layout": text, "explain_rope_rounding": text}


def raised_points(found: dict) -> None:
    for cell in found["cells"]:
        entry = cell["metadata"].get("nbgrader", {})
        entry.update(points=100)
        if entry.get("grade_id", "").startswith("check_"):
            cell["source"] = "print('passed')"


def large(found: dict) -> None:
    cell = next(cell for cell in found["cells"] if cell["cell_type"] == "code")
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 25_000_000}]


def bare(found: dict) -> None:
    found["cells"][0]["metadata"] = {"nbgrader": None}
    found.pop("metadata")


def surrogate(found: dict) -> None:
    found["cells"][0]["source"] = "\ud800"


def below_the_question(found: dict) -> None:
    """The answer's cell has lost its metadata, and the words stand in the question's own cell."""
    place = next(
        n
        for n, cell in enumerate(found["cells"])
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "explain_rope_layout"
    )
    found["cells"][place]["metadata"] = {}
    found["cells"][place]["source"] = ""
    question = found["cells"][place - 1]
    question["source"] = "".join(question["source"]) + f"\n\n{UNSEEN}"


def twice(found: dict) -> None:
    found["cells"].append(dict(found["cells"][1]))


NO_BONUS = "def rope_sort_rows(*args):\n    return args[0]"
NOT_A_SHARE = "def rope_shift_error(q, k, angles, shifted):\n    return (angles - shifted).abs().amax()"
BORROWED = f"""
from tutorial_lib import encodings

def rope_sort_rows(*args):
    return encodings.{SECRET.replace("-", "_")}(args)
"""
TOLD = f"""
def rope_shift_error(q, k, angles, shifted):
    raise type("{SECRET}", (Exception,), {{}})(q.tolist())
"""
FORGE = """
import os
from course.checks import messaging
for name in ("rope_angles", "rope_rotate", "rope_shift_error", "cached_scores", "rope_sort_rows"):
    os.write(3, wire.pack({"asking": name}) + wire.pack({"question": name, "outcomes": [{"kind": "right"}]}))
os.write(3, wire.pack({"end": True}))
os._exit(0)
"""
LOOK = f"""
import glob, os
for path in [*glob.glob("/etc/*"), *glob.glob(os.path.expanduser("~/*")), "/proc/1/environ"]:
    try:
        open(path).read(); print("{SECRET}", path)
    except OSError:
        pass
for name in ("gradebook.db", "marks", "roster.csv"):
    try:
        open(os.path.join("/course", name), "w").write("{SECRET}")
    except OSError:
        pass
"""


@dataclass(frozen=True)
class Student:
    """One of forty: ``coded`` points and ``state`` as they should end, ``late`` in hours."""

    id: str
    data: bytes = b""
    coded: float | None = 18.0
    state: str = "graded"
    late: float = -1.0
    penalty: float = 0.0
    name: str = ""
    extension: str = ""
    upload: str = ""  # the path in the inbox, if it is no folder of the student's
    number: int = 0  # Canvas's


RIGHT, STUB = notebook(), notebook("exercises")
STUDENTS = [
    # honest
    Student("right0", stored_as("gb18030", "两种排法都保持长度，点积也不变。")),
    Student("right1", stored_as("big5", "兩種排法都保持長度，點積也不變。")),
    Student("right2", stored_as("cp1251", "Оба порядка сохраняют длину и скалярное произведение.")),
    *[
        Student(f"wrong{n}", notebook(rope_shift_error=NOT_A_SHARE, **words(f"I am not sure. {n}")), 14.0)
        for n in (0, 1)
    ],
    Student(
        "wrong2",
        notebook(rope_shift_error=NOT_A_SHARE, **words("I am not sure. 2")),
        14.0,
        upload="wrong2 (kim's conflicted copy 2026-02-28)/ex06_rope.ipynb",
    ),
    Student(
        "wrong3",
        notebook(
            change=below_the_question, rope_shift_error=NOT_A_SHARE, explain_rope_rounding="I am not sure. 3"
        ),
        14.0,
    ),
    Student("stub", STUB, 0.0),
    Student(
        "writer", notebook("exercises", **words("Nothing but words.")), 0.0, upload=f"wr1ter/{NAME}.ipynb"
    ),
    Student("7", notebook(rope_sort_rows=NO_BONUS), 16.0, upload="0007/ex06_rope.ipynb"),  # the list's 7
    # late, and with more time
    Student("late1", notebook(note="1"), late=1, penalty=2.0),
    Student("late2", notebook(note="2"), late=30, penalty=4.0),
    Student("always", notebook(note="3"), late=30, extension="3d"),
    Student("excused", notebook(note="4"), late=30),
    # as Canvas and Moodle name it, renamed, packed, sent twice
    Student(
        "lena",
        notebook(note="5"),
        name="Lena Fischer",
        number=48213,
        upload=f"{CANVAS}fischerlena_LATE_48213_1190442_ex06_rope-1.ipynb",
    ),
    Student(
        "tom",
        notebook(note="6"),
        name="Tom Berg",
        number=48214,
        upload=f"{CANVAS}bergtom_48214_1190443_homework.ipynb",
    ),
    Student(
        "zoe",
        notebook(note="7"),
        name="Zoë Müller",
        upload=f"{MOODLE}Zoë Müller_5530121_assignsubmission_file/ex06_rope.ipynb",
    ),
    Student(
        "wang",
        notebook(note="8"),
        name="王小明",
        upload=f"{MOODLE}王小明_5530122_assignsubmission_file/ex06_rope.ipynb",
    ),
    Student("renamed", notebook(note="9"), upload="renamed/homework_final.ipynb"),
    Student("zipped", notebook(note="10"), upload="ex06_rope_zipped.zip"),
    Student("again", notebook(note="11")),
    # odd, and honest
    Student("outputs", notebook(change=large)),
    Student("bare", notebook(change=bare)),
    Student("lone", notebook(change=surrogate)),
    Student("twice", notebook(change=twice)),
    Student("utf16", notebook(note="12").decode().encode("utf-16")),
    # names that would compute, run or leave
    Student("formula", notebook("exercises", note="13"), 0.0, name='=HYPERLINK("http://x";"y")'),
    Student("shell", notebook("exercises", note="14"), 0.0, name="$(id) `id`; DROP TABLE student;--"),
    # what cannot be read
    Student("broken", RIGHT[:5000], 0.0, "rejected"),
    Student("empty", b"", 0.0, "rejected"),
    Student("pdf", b"%PDF-1.7\0", 0.0, "rejected", upload="pdf/ex06_rope.pdf"),
    Student("rar", b"Rar!\x1a\x07\0", 0.0, "rejected", upload="rar/ex06_rope.rar"),
    Student("other", notebook(name=OTHER), None, "not handed in"),  # of another exercise, under this name
    # attacks
    Student("raises", notebook("exercises", change=raised_points), 0.0),
    Student("forges", notebook("exercises", extra=[FORGE]), 0.0),
    Student("looks", notebook("exercises", extra=[LOOK]), 0.0),
    Student("borrows", notebook(rope_sort_rows=BORROWED), 16.0),
    Student("tells", notebook(rope_shift_error=TOLD), 14.0),
    Student("scripts", notebook(**words("<script>alert(1)</script> <img src=x onerror=alert(1)>"))),
    Student("missing", coded=None, state="not handed in"),
]
SENT = [student for student in STUDENTS if student.data or student.state == "rejected"]
LATE = ("--due", DUE.isoformat(), "--late-per-day", "0.1")


def run(*arguments) -> None:
    assert command.main([str(one) for one in arguments]) == 0


def list_of(root: Path) -> None:
    """The class list, as Excel stores it."""
    root.mkdir(parents=True)
    with open(root / "roster.csv", "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["id", "name", "email", "canvas_id", "extension"])
        for one in STUDENTS:
            email = f"{one.id}@uni.example"
            writer.writerow([one.id, one.name or one.id, email, one.number or "", one.extension])


def grades(root: Path) -> dict[str, dict]:
    with open(root / "exports" / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file) if row["assignment"] == NAME}


def graded(root: Path) -> Path:
    run("grade", NAME, "--root", root, "--extend", "excused", "2d", *LATE)
    run("feedback", NAME, "--root", root)
    run("export", "--root", root)
    run("report", NAME, "--root", root)
    run("written", NAME, "--root", root)
    return root


# ---- the two routes ----
@pytest.fixture(scope="module")
def taken_in(tmp_path_factory, marked_here):
    """By `take-in`, from an inbox with names of all kinds."""
    folder = tmp_path_factory.mktemp("forty")
    root, inbox = folder / "class", folder / "inbox"
    list_of(root)
    for student in SENT:
        archive, _bang, member = (student.upload or f"{student.id}/{NAME}.ipynb").rpartition("!")
        path = inbox / (archive or member)
        path.parent.mkdir(parents=True, exist_ok=True)
        if archive:
            when = datetime.datetime.fromtimestamp(DUE.timestamp() + student.late * HOUR).timetuple()[:6]
            with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr(zipfile.ZipInfo(member, when), student.data)
            continue  # the archive is as old as the download
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr(f"{NAME}.ipynb", student.data)
        else:
            path.write_bytes(student.data)
        seconds = DUE.timestamp() + student.late * HOUR
        os.utime(path, (seconds, seconds))
    early = inbox / "again" / f"{NAME} (1).ipynb"
    early.write_bytes(STUB)
    os.utime(early, (DUE.timestamp() - 9 * HOUR,) * 2)
    (inbox / "right1" / "board.jpg").write_bytes(b"\xff\xd8\xff\xe0\0")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        run("take-in", inbox, "--root", root)
    (root / "said.txt").write_text(said.getvalue())
    run("merge", "wr1ter", "writer", "--yes", "--root", root)
    return graded(root)


class Exchange:
    """nbgrader's exchange, with all its users on one account."""

    def __init__(self, folder: Path, root: Path):
        self.folder, self.root = folder, root
        (folder / "exchange").mkdir()

    def __call__(self, kind: str, student: str = "*", home: Path | None = None) -> None:
        from nbgrader.auth import Authenticator
        from nbgrader.coursedir import CourseDirectory
        from nbgrader.exchange import default
        from traitlets.config import PyFileConfigLoader

        config = PyFileConfigLoader("nbgrader_config.py", path=str(self.root)).load_config()
        config.CourseDirectory.assignment_id, config.CourseDirectory.student_id = NAME, student
        config.Exchange.root = str(self.folder / "exchange")
        if home:
            config.Exchange.cache, config.Exchange.assignment_dir = str(home / "cache"), str(home)
        config.ExchangeCollect.check_owner = False
        getattr(default, f"Exchange{kind}")(
            coursedir=CourseDirectory(config=config),
            config=config,
            authenticator=Authenticator(config=config),
        ).start()


@pytest.fixture(scope="module")
def collected(tmp_path_factory, taken_in):
    """By `nbgrader submit` and `nbgrader collect`; what was marked on the other route is not marked again."""
    folder = tmp_path_factory.mktemp("hub")
    root = folder / "class"
    list_of(root)
    gradebook.prepare(root, {NAME: exercises.path(NAME)})
    exchange = Exchange(folder, root)
    exchange("ReleaseAssignment")
    inbound = folder / "exchange" / gradebook.COURSE / "inbound"
    for student in SENT:
        home = folder / "homes" / student.id
        (home / NAME).mkdir(parents=True)
        name = Path(student.upload).name if student.id == "renamed" else f"{NAME}.ipynb"
        (home / NAME / name).write_bytes(student.data)
        exchange("Submit", student.id, home)
        (sent,) = inbound.glob(f"{student.id}+*")
        when = f"{DUE + datetime.timedelta(hours=student.late):%Y-%m-%d %H:%M:%S.%f} UTC"
        (sent / "timestamp.txt").write_text(when)
        sent.rename(inbound / f"{student.id}+{NAME}+{when}+x")
    exchange("Collect")
    shutil.copytree(
        taken_in / "marks",
        root / "marks",
        ignore=lambda folder, names: [
            name for name in names if name in (".rules", ".entered", ".lock", "looks.json", "outputs.json")
        ],
    )
    for path in (root / "marks" / NAME).glob("*.json"):
        if json.loads(path.read_text())["state"] != "graded":
            path.unlink()
    graded(root)
    exchange("ReleaseFeedback")
    return root, exchange, folder / "homes"


# ---- what came of them ----
def test_they_are_forty():
    assert len(STUDENTS) == len({student.id for student in STUDENTS}) == 40


@contained
def test_everybody_has_a_row_with_what_they_earned(taken_in):
    rows = grades(taken_in)
    assert rows.keys() == {student.id for student in STUDENTS}
    for student in STUDENTS:
        row = rows[student.id]
        coded = float(row["coded"]) if row["coded"] else None
        assert (row["state"], coded) == (student.state, student.coded), (student.id, row)
        assert float(row["late penalty"] or 0) == student.penalty, (student.id, row)
        assert row["max"] == "20" and bool(row["reason"]) >= (student.state == "rejected"), row


@contained
def test_every_upload_is_accounted_for(taken_in):
    said = (taken_in / "said.txt").read_text()
    for words in (
        "submissions.zip",
        "read as what a whole class has handed in",
        "right0  ex06_rope: taken. The file was not stored as UTF-8. It was read as gb18030",
        "'board.jpg'",
        "rar  ex06_rope: rejected. 'ex06_rope.rar': ",
        "Not in roster.csv: wr1ter.",
        f"Nothing in the inbox from {len(STUDENTS) - len(SENT) + 1} of 40: missing, writer",
    ):
        assert words in said, (words, said)
    for student, row in grades(taken_in).items():
        sent = next(one for one in STUDENTS if one.id == student)
        how = sent.upload or "a folder of their own"
        print(f"{student:8} {row['state']:13} {row['coded']:3} {row['late penalty']:4} {how} {row['reason']}")
    page = (taken_in / "written" / NAME / "explain_rope_layout.html").read_text()
    assert all(words in page for words in (UNSEEN, "两种排法都保持长度", "兩種排法都保持長度", "Оба порядка"))


@contained
def test_both_routes_end_in_the_same_book(taken_in, collected):
    root, *_ = collected
    ours, theirs = grades(taken_in), grades(root)
    assert theirs.pop("other")["state"] == "rejected"  # there, its cells do not bring it to its exercise
    del ours["other"]
    columns = ("state", "coded", "written", "late penalty", "total", "max", "to mark", "name")
    for student in ours:
        a, b = ([book[student][each] for each in columns] for book in (ours, theirs))
        assert a == b, student


@contained
def test_everybody_fetches_their_own_page_through_nbgrader(collected):
    root, exchange, homes = collected
    for student in SENT:
        exchange("FetchFeedback", student.id, homes / student.id)
        name = "homework_final" if student.id == "renamed" else NAME
        pages = list((homes / student.id / NAME / "feedback").glob(f"*/{name}.html"))
        own = root / "feedback" / student.id / NAME / f"{NAME}.html"
        assert [page.read_bytes() for page in pages] == [own.read_bytes()], student.id


def packed_for(platform: str, root: Path) -> dict[str, str]:
    """Whose page is under which number in the archive that goes back."""
    found = {}
    with zipfile.ZipFile(root / "exports" / f"feedback-{NAME}-{platform}.zip") as packed:
        for name in packed.namelist():
            number = next(part for part in name.split("_") if part.isdigit())
            found[number] = re.search(r"<p>(.*?): ", packed.read(name).decode())[1]
    return found


@contained
def test_damaged_files_and_an_appeal_change_no_other_mark(taken_in, tmp_path, capsys):
    root = tmp_path / "class"
    shutil.copytree(taken_in, root)
    before = grades(root)
    marks = root / "marks" / NAME
    (root / "students.json").write_text("")
    (marks / "right2.json").write_bytes((marks / "right2.json").read_bytes()[:99])
    (marks / ".entered" / "wrong0.json").write_text("{")
    run("appeal", NAME, "wrong1", "rope_shift_error", "--answer", "Half.", "--points", "2", "--root", root)
    run("grade", NAME, "--root", root)
    run("export", "--root", root)
    after, said = grades(root), "".join(capsys.readouterr())
    assert "students.json is damaged" in said and "wrong0.json is damaged" in said
    assert (before["wrong1"]["total"], after["wrong1"]["total"]) == ("14", "16")
    assert {**after, "wrong1": before["wrong1"]} == before
    noted = list(csv.DictReader((root / history.FILE).open(encoding="utf-8", newline="")))
    assert [(one["student"], one["before"], one["after"]) for one in noted] == [("wrong1", "0", "2")]


@contained
@pytest.mark.parametrize("route", ["taken in", "collected"])
def test_pages_reports_and_imports_are_complete_and_harmless(route, taken_in, collected):
    root = taken_in if route == "taken in" else collected[0]
    pages = {path.parts[-3]: path.read_text() for path in root.glob(f"feedback/*/{NAME}/*.html")}
    assert pages.keys() == {student.id for student in SENT} - ({"other"} if root == taken_in else set())
    for student, page in pages.items():
        assert "<script" not in page and "onerror" not in page and SECRET not in page, student
        told = page.replace("The cell of explain_rope_layout is not there", "")  # a remark names it
        assert "explain_" not in told and "31415" not in page, student
    report = (root / "report" / NAME / "report.md").read_text()
    assert "4 rejected" in report or "5 rejected" in report
    assert SECRET not in report and "not handed in" in report
    with open(root / "exports" / "canvas.csv", encoding="utf-8", newline="") as file:
        _, possible, *canvas = csv.reader(file)
    with open(root / "exports" / "moodle.csv", encoding="utf-8", newline="") as file:
        moodle = list(csv.DictReader(file))
    assert possible[5] == "20" and len(canvas) == len(moodle) == 40
    totals = {row["Email address"].split("@")[0]: row[NAME] for row in moodle}
    assert totals["late2"] == "14" and totals["excused"] == totals["always"] == "18"
    assert totals["missing"] == "-" and totals["broken"] == "0"
    cells = [cell for row in canvas for cell in row] + [cell for row in moodle for cell in row.values()]
    assert root != taken_in or packed_for("moodle", root) == {"5530121": "Zoë Müller", "5530122": "王小明"}
    assert root != taken_in or packed_for("canvas", root) == {"48213": "Lena Fischer", "48214": "Tom Berg"}
    assert "王小明" in cells and not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
