"""A table of marks that has been through a spreadsheet: by `written`, and `written --enter`."""

import csv
import datetime
import hashlib
import io
import re

import pytest

from classroom import __main__ as command
from classroom import written

# what a spreadsheet takes for a number when it opens a table
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
DAY = re.compile(r"(\d\d?)[-./](\d\d?)")
KINDS = {  # decimal comma, separator, end of a line, mark at the beginning, quotes
    "Excel, German": (True, ";", "\r\n", "\ufeff", csv.QUOTE_MINIMAL),
    "Excel": (False, ",", "\r\n", "\ufeff", csv.QUOTE_MINIMAL),
    "Excel, Unicode text": (False, "\t", "\r\n", "utf-16", csv.QUOTE_MINIMAL),
    "Excel for Macintosh": (False, ";", "\r", "\ufeff", csv.QUOTE_MINIMAL),
    "Calc": (False, ",", "\n", "", csv.QUOTE_NONNUMERIC),
    "Google": (False, ",", "\r\n", "", csv.QUOTE_MINIMAL),
}


def shown(cell: str, comma: bool) -> str:
    """What is stored of a cell that nobody touched."""
    if NUMBER.fullmatch(cell) and abs(float(cell)) < 1e308:
        value = float(cell)
        text = f"{value:.2E}" if "e" in cell.lower() else f"{value:.10g}".replace("e", "E")
        return text.replace(".", ",") if comma else text
    if (day := DAY.fullmatch(cell)) and 0 < int(day[2]) < 13 and 0 < int(day[1]) < 29:
        return f"{datetime.date(2026, int(day[2]), int(day[1])):%d.%m.%Y}"
    return "TRUE" if cell.lower() == "true" else cell


def saved(text: str, kind: str, fill) -> bytes:
    """A table as a program stores it; ``fill`` changes rows between opening and saving."""
    comma, separator, end, mark, quoting = KINDS[kind]
    rows = [
        {key: shown(cell, comma) for key, cell in row.items()}
        for row in csv.DictReader(io.StringIO(text, newline=""))
    ]
    for row in rows:
        fill(row)
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, rows[0].keys(), delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode("utf-16") if mark == "utf-16" else (mark + out.getvalue()).encode()


def reason(pattern: str, student: str = "") -> str:
    """An answer whose digest, which tables of earlier versions hold, begins like this; or a student's key."""
    for n in range(100_000):
        text = f"Reason {n}: the angles add up."
        digest = hashlib.sha256(text.encode()).hexdigest()
        key = hashlib.sha256(f"{student}/explain_why/{digest}".encode()).hexdigest()
        if re.match(pattern, key if student else digest):
            return text
    raise AssertionError(pattern)


ANSWERS = {
    "max": reason(r"0\d{9}", "max"),
    "li": reason(r"[1-9]\d{4}e\d\d"),
    "0012345": reason(r"0[1-9]\d{6}"),
    "1e5": reason(r"[1-9]\d{7}"),
    "3-4": reason(r"\d{3}e\d{4}"),
    "true": "Because.",
    "12345678901234567890": reason(r"\d{6}e\d"),
    "12345": "Because.",
    "2.10": reason(r".*[a-df].*"),
}


@pytest.fixture
def klass(room):
    for student, why in ANSWERS.items():
        room.send(student, why=why)
        room.marks(student)
    room.merge()
    room.path = room.root / "written" / room.name / written.TABLE
    room.run = lambda *more: command.main(["written", room.name, "--root", str(room.root), *more])
    assert room.run() == 0
    return room


def points(room) -> dict:
    return {student: room.grade(student, "explain_why")["manual_score"] for student in ANSWERS}


GIVEN = {student: n / 4 for n, student in enumerate(ANSWERS)}


def by_order(kind):
    """Fill in points, line by line: what a person reads of an id may be anything."""
    order = iter(sorted(ANSWERS))

    def fill(row):
        number = f"{GIVEN[next(order)]:g}"
        row["points"] = number.replace(".", ",") if KINDS[kind][0] else number
        row["comment"] = "Gut; aber „warum“,\nund “wo”?"

    return fill


@pytest.mark.parametrize("kind", KINDS)
def test_marks_come_through_a_spreadsheet(klass, capsys, kind):
    klass.path.write_bytes(saved(klass.path.read_text(encoding="utf-8-sig"), kind, by_order(kind)))
    assert klass.run("--enter") == 0, capsys.readouterr().err
    assert points(klass) == GIVEN
    with open(klass.path, encoding="utf-8-sig", newline="") as file:
        assert {row["comment"] for row in csv.DictReader(file)} == {"Gut; aber „warum“,\nund “wo”?"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_an_earlier_version_is_taken_where_it_can_be(klass, capsys, kind):
    rows = list(csv.DictReader(io.StringIO(klass.path.read_text(encoding="utf-8-sig"), newline="")))
    for row in rows:
        row["answer"] = hashlib.sha256(ANSWERS[row["student"]].encode()).hexdigest()[:8]
    rows = [row for row in rows if row["student"] not in ("3-4", "true")]  # a day, and a truth, name nobody
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    order = iter(row["student"] for row in rows)

    def fill(row):
        row["points"] = f"{GIVEN[next(order)]:g}".replace(".", "," if KINDS[kind][0] else ".")

    klass.path.write_bytes(saved(out.getvalue(), kind, fill))
    assert klass.run("--enter") == 0, capsys.readouterr().err
    assert points(klass) == GIVEN | {"3-4": None, "true": None}


def change(room, **columns):
    """Other cells in the line of li, who gets 2 points."""
    rows = list(csv.DictReader(io.StringIO(room.path.read_text(encoding="utf-8-sig"), newline="")))
    for row in rows:
        if row["student"] == "li":
            row |= {"points": "2", **columns}
    with open(room.path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return {row["student"]: row["answer"] for row in rows}


@pytest.mark.parametrize(
    "columns, words",
    [
        ({"answer": ""}, "the cell 'answer' is empty"),
        ({"answer": "xyz"}, "the cell 'answer' holds 'xyz'"),
        ({"student": "nobody", "answer": "xyz"}, "there is no such answer"),
    ],
)
def test_what_cannot_be_told_is_said_as_it_is(klass, capsys, columns, words):
    change(klass, **columns)
    assert klass.run("--enter") == 2
    said = capsys.readouterr().err
    assert words in said and "Nothing was entered" in said
    assert set(points(klass).values()) == {None}


@pytest.mark.parametrize("answer", ["x0123456789", "0123abcd"])
def test_a_text_that_is_there_no_more_is_named(klass, capsys, answer):
    change(klass, answer=answer)
    assert klass.run("--enter") == 0
    assert "li has sent another text" in capsys.readouterr().out and set(points(klass).values()) == {None}


def test_two_who_may_be_meant_are_named(room, capsys):
    for student in ("0012345", "12345", "li"):
        room.send(student, why="Because.")
        room.marks(student)
    room.merge()
    room.path = room.root / "written" / room.name / written.TABLE
    room.run = lambda *more: command.main(["written", room.name, "--root", str(room.root), *more])
    assert room.run() == 0
    digest = hashlib.sha256(b"Because.").hexdigest()[:8]
    kept = change(room, student="12345", answer=digest)
    assert room.run("--enter") == 2
    assert "'12345' may be 0012345 or 12345" in capsys.readouterr().err
    room.path.unlink()
    assert room.run() == 0
    change(room, student="12345", answer=kept["0012345"])  # the key says which
    text = room.path.read_text(encoding="utf-8")
    assert room.run("--enter") == 0, text
    assert room.grade("0012345", "explain_why")["manual_score"] == 2
    assert room.grade("12345", "explain_why")["manual_score"] is None


def test_columns_that_were_sorted_apart_give_nobody_anothers_mark(klass, capsys):
    answers = change(klass)
    change(klass, answer=answers["12345"])
    assert klass.run("--enter") == 2
    assert "this is the answer of 12345" in capsys.readouterr().err
    change(klass, answer=answers["li"], student="Lena")  # nothing makes that of li but a person
    assert klass.run("--enter") == 2
    assert "this is the answer of li" in capsys.readouterr().err


def test_a_comment_that_looks_like_a_number_stays_one(klass):
    for student, comment in (("li", "1/2"), ("12345", "1e5"), ("true", "'tis so"), ("2.10", "007")):
        klass.comment(student, "explain_why", comment)
    assert klass.run() == 0
    klass.path.write_bytes(saved(klass.path.read_text(encoding="utf-8-sig"), "Excel", lambda row: None))
    assert klass.run("--enter") == 0
    with open(klass.path, encoding="utf-8-sig", newline="") as file:
        found = {row["student"]: written._plain(row["comment"]) for row in csv.DictReader(file)}
    assert {found[one] for one in ("li", "12345", "true", "2.10")} == {"1/2", "1e5", "'tis so", "007"}
