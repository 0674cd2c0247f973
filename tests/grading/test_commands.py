"""``python -m classroom``: a class from its uploads to its grades, run again, and refused."""

import csv
import datetime
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from classroom import __main__ as command
from classroom import marking, sandbox
from course.checks import questions
from workshop import exercises

NAME = "ex06_rope"
MISSING = sandbox.probe()
contained = pytest.mark.skipif(bool(MISSING), reason=MISSING)
ODD = "we=ird, $(id) `id`\nname"
DUE = datetime.datetime(2026, 3, 1, 12, 0)
LATE = ("--due", DUE.isoformat(), "--late-per-day", "0.1")


def notebook(folder: str, **changed: str) -> bytes:
    found = json.loads(exercises.path(NAME, folder).read_bytes())
    for cell in found["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        cell["source"] = changed.get(grade_id, cell["source"])
    return json.dumps(found).encode()


def upload(inbox: Path, student: str, data: bytes, late: int = -1, name: str = "") -> None:
    path = inbox / (name or f"{student}/{NAME}.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    seconds = (DUE + datetime.timedelta(days=late)).timestamp()
    os.utime(path, (seconds, seconds))


EVE = {
    "rope_angles": "def rope_angles(positions, dim, base):\n"
    "    return positions[:, None].float() * base ** (-torch.arange(dim // 2).float() / dim)",
    "rope_rotate": "from tutorial_lib import leaked_31415\n\ndef rope_rotate(x, angles, layout):\n"
    "    return leaked_31415(x)",
    "rope_shift_error": "def rope_shift_error(q, k, angles, shifted):\n    raise ValueError('leaked-31415')",
}


@pytest.fixture(scope="module")
def klass(tmp_path_factory):
    """Five uploads, one of them from Canvas, taken in and graded with one command; two more are listed."""
    folder = tmp_path_factory.mktemp("teacher")
    root, inbox = folder / "class", folder / "inbox"
    root.mkdir()
    (root / "roster.csv").write_text(
        "id,name,email,canvas_id\nada,Ada Lovelace,ada@uni.example,48213\n"
        "eve,Eve,eve@uni.example,\nmax,王小明,max@uni.example,48214\n",
        encoding="utf-8",
    )
    upload(inbox, "ada", notebook("solutions"), late=1, name=f"lovelaceada_LATE_48213_77_{NAME}-1.ipynb")
    upload(inbox, ODD, notebook("exercises", explain_rope_layout="<script>alert(1)</script> They agree."))
    upload(inbox, "eve", notebook("solutions", **EVE))
    upload(inbox, "cut", notebook("solutions")[:2000])
    (inbox / "link").mkdir()
    (inbox / "link" / f"{NAME}.ipynb").symlink_to(root / "gradebook.db")
    done = subprocess.run(
        [sys.executable, "-m", "classroom", "take-in", str(inbox), "--root", str(root)],
        capture_output=True,
        text=True,
        cwd=exercises.ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "5 uploads: 2 rejected, 3 taken" in done.stdout and "truncated" in done.stdout
    assert "Nothing in the inbox from 1 of 3: max" in done.stdout
    assert command.main(["all", "--root", str(root), "--workers", "2", *LATE]) == 0
    return root


@pytest.fixture
def without_bwrap(tmp_path, monkeypatch):
    """A machine on which bubblewrap has not been installed."""
    monkeypatch.setenv("PATH", str(tmp_path))


def run(*arguments) -> int:
    return command.main([str(one) for one in arguments])


def grades(root: Path) -> dict[str, dict]:
    with open(root / "exports" / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file) if row["assignment"] == NAME}


def student_of(root: Path, begins: str) -> str:
    return next(name for name in grades(root) if name.startswith(begins))


def stored(root: Path) -> dict[str, str]:
    """All that marking and the gradebook hold."""
    found = {path.name: path.read_text() for path in (root / "marks" / NAME).glob("*.json")}
    with sqlite3.connect(root / "gradebook.db") as book:
        for (table,) in book.execute("select name from sqlite_master where type = 'table'").fetchall():
            found[table] = sorted(map(repr, book.execute(f'select * from "{table}"')))
    return found


# ---- one class, from end to end ----
@contained
def test_everybody_gets_what_they_earned(klass):
    rows = grades(klass)
    assert len(rows) == 6
    odd = student_of(klass, "we")
    assert {name: (row["state"], row["coded"]) for name, row in rows.items()} == {
        "ada": ("graded", "18"),
        odd: ("graded", "0"),
        "eve": ("graded", "6"),
        "cut": ("rejected", "0"),
        "link": ("rejected", "0"),
        "max": ("not handed in", ""),
    }
    assert float(rows["ada"]["late penalty"]) > 0 and not float(rows["eve"]["late penalty"] or 0)
    marks = json.loads((klass / "marks" / NAME / "eve.json").read_text())
    kinds = {name: entry["kind"] for name, entry in marks["questions"].items()}
    assert kinds["rope_angles"] == "mistake" and kinds["rope_rotate"] == "borrowed"
    assert marks["questions"]["rope_rotate"]["tried_library"] == ["tutorial_lib.leaked_31415"]


@contained
def test_the_platforms_get_what_everybody_earned(klass):
    with open(klass / "exports" / "canvas.csv", encoding="utf-8", newline="") as file:
        _, possible, *rows = csv.reader(file)
    assert possible[5] == "20"
    assert [(row[0], row[1], row[5]) for row in rows] == [
        ("Ada Lovelace", "48213", "16"),
        ("Eve", "", "6"),
        ("王小明", "48214", ""),
    ]  # a day late: 2 of 20
    with open(klass / "exports" / "moodle.csv", encoding="utf-8", newline="") as file:
        (ada, _, max_) = csv.DictReader(file)
    assert (ada["Email address"], ada[NAME], ada[f"{NAME}: rope_sort_rows"]) == ("ada@uni.example", "16", "2")
    assert max_[NAME] == "-"


@contained
def test_the_pages_say_what_is_wrong_and_nothing_more(klass):
    pages = {path.parts[-3]: path.read_text() for path in (klass / "feedback").glob("*/*/*.html")}
    assert len(pages) == 5 and not any("<script" in page for page in pages.values())
    says = {wrong.name: wrong.says for wrong in questions.find("rope_angles").wrong}
    assert says["exponent counts pairs, not channels"][:40] in pages["eve"]
    assert "leaked" not in pages["eve"] and "31415" not in pages["eve"]
    assert "truncated" in pages["cut"] and "link" in pages["link"]
    assert not (klass / "submitted" / "link").exists()
    report = (klass / "report" / NAME / "report.md").read_text()
    assert "exponent counts pairs, not channels" in report and "31415" not in report


@contained
def test_a_second_run_marks_nothing_and_changes_nothing(klass, monkeypatch, capsys):
    """Nor does it forget what lateness costs, which was said the first time."""
    before = stored(klass)
    pages = {path: path.read_bytes() for path in (klass / "feedback").rglob("*.html")}

    def never(*args, **more):
        raise AssertionError("this is marked already")

    monkeypatch.setattr(marking, "self_test", never)
    monkeypatch.setattr(marking, "_mark", never)
    assert run("all", "--root", klass, "--workers", 1) == 0
    assert stored(klass) == before
    assert {path: path.read_bytes() for path in (klass / "feedback").rglob("*.html")} == pages
    assert f"{NAME}: 3 graded, 1 not handed in, 2 rejected" in capsys.readouterr().out


@contained
def test_a_dask_cluster_gives_the_same_marks(klass, monkeypatch):
    distributed = pytest.importorskip("distributed")
    before = stored(klass)
    monkeypatch.setattr(marking, "self_test", lambda assignment, trusted: None)  # was done above
    for path in (klass / "marks" / NAME).glob("*.json"):
        if json.loads(path.read_text())["state"] == "graded":
            path.unlink()
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None
    ) as cluster:
        assert run("grade", NAME, "--root", klass, "--scheduler", cluster.scheduler_address) == 0
    assert stored(klass) == before


@contained
def test_a_grader_error_is_reported_and_is_no_zero(klass, capsys):
    path = klass / "marks" / NAME / "zoe.json"
    marks = json.loads((klass / "marks" / NAME / "ada.json").read_text())
    path.write_text(
        json.dumps(
            marks
            | {"student": "zoe", "state": "grader error", "questions": {}, "reason": "The sandbox fell over."}
        )
    )
    try:
        assert run("all", NAME, "--root", klass, "--workers", 1) == 1
        assert "zoe: The sandbox fell over." in capsys.readouterr().err
        row = grades(klass)["zoe"]
        assert row["state"] == "grader error" and row["coded"] == ""
        page = (klass / "feedback" / "zoe" / NAME / f"{NAME}.html").read_text()
        assert "fell over" not in page  # the teacher's own trouble
    finally:
        path.unlink()


# ---- without a sandbox ----
def test_without_a_sandbox_it_refuses_in_words(tmp_path, without_bwrap, capsys):
    upload(tmp_path / "inbox", "ada", notebook("solutions"))
    (tmp_path / "class").mkdir()
    assert run("take-in", tmp_path / "inbox", "--root", tmp_path / "class") == 0
    assert run("all", "--root", tmp_path / "class") == 2
    said = capsys.readouterr().err
    assert "bubblewrap" in said and "Traceback" not in said
    assert not (tmp_path / "class" / "marks" / NAME).exists()
    assert not (tmp_path / "class" / "exports").exists()


def test_trusted_notebooks_need_no_sandbox(tmp_path, without_bwrap, capsys):
    upload(tmp_path / "inbox", "ada", notebook("solutions"))
    (tmp_path / "class").mkdir()
    assert run("take-in", tmp_path / "inbox", "--root", tmp_path / "class") == 0
    assert run("grade", NAME, "--root", tmp_path / "class", "--trusted", "--workers", 1) == 0
    assert "Without a sandbox" in capsys.readouterr().err
    marks = json.loads((tmp_path / "class" / "marks" / NAME / "ada.json").read_text())
    assert sum(entry["points"] for entry in marks["questions"].values()) == 18


# ---- what was asked for cannot be done ----
def test_an_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "submitted" / "a" / NAME).mkdir(parents=True)

    def stop(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(marking, "mark_all", stop)
    assert run("grade", "--root", tmp_path) == 130
    assert "goes on from here" in capsys.readouterr().err


def test_windows_is_told_what_grading_needs(tmp_path):
    """Also without the modules that only other systems have."""
    program = (
        "import sys; sys.modules.update(fcntl=None, resource=None, pwd=None, grp=None)\n"
        "from classroom.__main__ import main\n"
        "sys.platform = 'win32'; sys.exit(main(['grade']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(exercises.ROOT)},
    )
    assert done.returncode == 2 and "needs Linux" in done.stderr and "WSL 2" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch, capsys):
    def missing(given):
        raise ModuleNotFoundError("No module named 'nbgrader'")

    monkeypatch.setitem(command.STEPS, "export", missing)
    assert run("export", "--root", tmp_path) == 2
    said = capsys.readouterr().err
    assert "nbgrader" in said and "teach" in said


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["grade", "ex99_none"], "there are ex01_order"),
        (["grade"], "nothing has been handed in yet"),
        (["all", "--root", "nowhere"], "there is no class folder"),
        (["take-in", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_a_command_that_makes_no_sense_is_answered_in_words(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--due", "tomorrow"], "no date"),
        (["--late-per-day", "10"], "from 0 to 1"),
        (["--late-per-day", "nan"], "from 0 to 1"),
        (["--late-per-day", "much"], "from 0 to 1"),
    ],
)
def test_a_date_or_a_share_is_refused_before_anything_is_marked(arguments, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        run("grade", NAME, "--root", tmp_path, *arguments)
    assert stopped.value.code == 2 and words in capsys.readouterr().err
