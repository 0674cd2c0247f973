"""Marks as Canvas and Moodle import them: files for the whole class, made from the table of grades.

Both identify a student by what is in the class list; without one there is nothing to go by.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence

import nbformat

from .intake import KERNEL
from .roster import MOODLE, Roster

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def canvas(listed: Roster, rows: Sequence[Mapping], questions: bool = False) -> str:
    """The file for *Grades → Import* in Canvas. ``questions`` adds a column for each question.

    `lib/gradebook_importer.rb <https://github.com/instructure/canvas-lms/blob/master/lib/gradebook_importer.rb>`_
    reads "Student", "ID", "SIS User ID", "SIS Login ID" and "Section" in this order, then a column for each
    assignment, and a second row with the points possible. It looks for the student by ID, then by the SIS
    ids, then by name. A column that is not the title of an assignment becomes a new one, or is left out:
    Canvas asks. An empty cell clears the grade that is there.
    """
    columns = _columns(rows, questions)
    lines = [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *map(_title, columns)],
        ["    Points Possible", "", "", "", "", *(_number(most) for most in columns.values())],
    ]
    for person in listed.people.values():
        grades = _grades(rows, person.id)
        lines.append(
            [
                person.name or person.id,
                person.canvas_id,
                person.sis_id,
                person.login,
                person.group,
                *(_number(grades.get(column)) for column in columns),
            ]
        )
    return _csv(lines)


def moodle(listed: Roster, rows: Sequence[Mapping]) -> str:
    """The file for *Grades → Import → CSV file* in Moodle, with a column for each exercise and question.

    `Grade import <https://docs.moodle.org/311/en/Grade_import>`_: whoever imports says which column names the
    student ("Email address" as ``useremail``, or "ID number" as ``useridnumber``), and what each other column
    is; those that are mapped to nothing are left out. "-" means no grade (``grade/import/csv`` of Moodle).
    Feedback must be mapped together with its grade, or that is lost. A grade above the maximum, as with a
    bonus, needs ``unlimitedgrades`` in the settings of the site.
    """
    columns = _columns(rows, questions=True)
    exercises = [name for name, question in columns if not question]
    lines = [
        [
            "Email address",
            "ID number",
            "Username",
            "Full name",
            *map(_title, columns),
            *(f"{name}: feedback" for name in exercises),
        ]
    ]
    for person in listed.people.values():
        grades = _grades(rows, person.id)
        said = [
            "; ".join(
                f"{question} {_number(points)}"
                for (other, question), points in grades.items()
                if other == name and question and points is not None
            )
            for name in exercises
        ]
        lines.append(
            [
                person.email,
                person.moodle_id,
                person.login,
                person.name or person.id,
                *(_number(grades.get(column), "-") for column in columns),
                *said,
            ]
        )
    return _csv(lines)


def returned(back: str, assignment: str, page: str) -> tuple[str, str, bytes]:
    """Platform, name in its archive, and content of a feedback ``page`` for what was sent as ``back``.

    Moodle (``mod/assign/feedback/file/importziplib.php``) reads the folder's name as it wrote it itself: the
    full name, a number of this assignment, the plugin. Canvas (``infer_comment_context_from_filename`` in
    ``app/models/assignment.rb``) takes the first two parts that are numbers for the student and the file that
    was handed in; the student sees the page under *that* file's name, so it has to be a notebook.
    """
    if found := MOODLE.fullmatch(back):
        folder = f"{found['name']}_{found['number']}_assignsubmission_file_"
        return "moodle", f"{folder}/{assignment}.html", page.encode()
    if not back.endswith(".ipynb"):
        return "canvas", f"{back.rpartition('.')[0]}.html", page.encode()
    body = page.partition("<main>")[2].partition("</main>")[0]
    shown = nbformat.v4.new_output("display_data", data={"text/html": body})
    hidden = {"jupyter": {"source_hidden": True}}
    cell = nbformat.v4.new_code_cell("", id="feedback", outputs=[shown], metadata=hidden)
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": KERNEL})
    return "canvas", back, nbformat.writes(notebook).encode()


def zipped(members: Mapping[str, bytes], programs: Collection[str] = ()) -> bytes:
    """A zip file that depends on nothing else; ``programs`` are the members that can be run."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, data in sorted(members.items()):
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o755 if name in programs else 0o644) << 16
            packed.writestr(info, data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _columns(rows: Iterable[Mapping], questions: bool) -> dict[tuple[str, str], float]:
    """``(exercise, question)`` to the maximum; the question is "" for the exercise itself."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        if row["assignment"]:
            found[row["assignment"], ""] = row["max"]
            for question, (_, most) in row["answers"].items() if questions else ():
                found[row["assignment"], question] = most
    return dict(sorted(found.items(), key=lambda item: item[0][0]))  # questions stay in their order


def _grades(rows: Iterable[Mapping], student: str) -> dict[tuple[str, str], float | None]:
    grades: dict[tuple[str, str], float | None] = {}
    for row in rows:
        if row["student"] == student and row["assignment"]:
            grades[row["assignment"], ""] = row["total"]
            grades |= {
                (row["assignment"], question): points for question, (points, _) in row["answers"].items()
            }
    return grades


def _title(column: tuple[str, str]) -> str:
    return ": ".join(filter(None, column))


def _number(value: float | None, none: str = "") -> str:
    """Two decimals at most, as both platforms show.

    >>> _number(18.0), _number(2.125), _number(None, "-")
    ('18', '2.12', '-')
    """
    return none if value is None else f"{round(value, 2):g}"


def _csv(lines: Iterable[Sequence[str]]) -> str:
    """UTF-8 without a byte order mark, which Canvas's reader could take for part of the first cell."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(
        [f"'{cell}" if cell.startswith(FORMULA) and cell != "-" else cell for cell in line] for line in lines
    )
    return buffer.getvalue()
