"""Who changed which mark, when and why: ``changes.csv`` in the class folder. And answers to appeals.

The commands compare the gradebook with what it was when they last looked, before and after they work. So what
was changed in formgrader is noted as well, at the next command.
"""

from __future__ import annotations

import csv
import datetime
import getpass
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

from course import files

from . import gradebook, kept, reports

FILE = "changes.csv"
COLUMNS = ("when", "who", "student", "assignment", "question", "before", "after", "why")
ELSEWHERE = "outside of these commands, for example in Formgrader"
LATE = "late penalty"


def note(root: Path, why: str, db: str | None = None) -> int:
    """Add a line for each mark that is another one than when this was last called; returns how many.

    First marks are noted where a person gave them.
    """
    root = Path(root)
    file = gradebook.database(root, db).partition("sqlite:///")[2]
    if not (root / "nbgrader_config.py").exists() or file and not Path(file).exists():
        return 0  # a gradebook is made by `grade`
    last = root / "marks" / ".last.json"
    with gradebook.alone(root):
        known, now = kept.load(last, "Changes are noted from here on."), _marks(root, db)
        when = datetime.datetime.now(datetime.UTC).isoformat(" ", "seconds")
        who = os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
        lines = [
            dict(zip(COLUMNS, (when, who, *key.split("/", 2), known.get(key), after, why), strict=True))
            for key, (after, by_hand) in sorted(now.items())
            if known.get(key) != after and (key in known or by_hand)
        ]
        if lines:
            table = reports.table(COLUMNS, lines)
            if (path := root / FILE).exists():
                table = path.read_bytes().decode("utf-8", "replace") + table.partition("\r\n")[2]
            files.replace(path, table.encode("utf-8", "replace"))
        files.replace(last, json.dumps({key: after for key, (after, _hand) in now.items()}).encode())
    return len(lines)


def rename(root: Path, old: str, new: str) -> None:
    """Lines about ``old`` are about ``new``; with "" they go."""
    last, path = Path(root) / "marks" / ".last.json", Path(root) / FILE
    if last.exists():
        marks = kept.load(last, "Changes are noted from here on.")
        files.replace(last, json.dumps({k: v for k, v in marks.items() if k.split("/")[0] != old}).encode())
    if path.exists():
        head, *rows = csv.reader(io.StringIO(path.read_bytes().decode("utf-8", "replace"), newline=""))
        at, out = COLUMNS.index("student"), io.StringIO()
        rows = [[*row[:at], new if row[at] == old else row[at], *row[at + 1 :]] for row in rows]
        csv.writer(out, quoting=csv.QUOTE_ALL).writerows([head, *(row for row in rows if row[at])])
        files.replace(path, out.getvalue().encode())


def appeal(
    root: Path,
    assignment: str,
    student: str,
    question: str,
    answer: str,
    says: str = "",
    points: float | None = None,
    db: str | None = None,
) -> tuple[float | None, float | None]:
    """Answer a student's appeal: the answer, below what they say, becomes a comment on their page.

    With ``points`` the mark becomes these. Returns the mark before and after. ValueError where there is no
    such student, question or mark.
    """
    with gradebook.alone(root), gradebook.gradebook(root, db) as book:
        found = gradebook._assignment(book, assignment)
        (own,) = [one for one in found.submissions if one.student_id == student] or [None]
        if own is None:
            raise ValueError(f"{student!r} has handed in no {assignment}")
        (notebook,) = own.notebooks
        grades = {gradebook.question_of(grade.name): grade for grade in notebook.grades}
        if question not in grades:
            raise ValueError(f"{question!r} is no question of {assignment}; there are {', '.join(grades)}")
        grade, most = grades[question], gradebook._points(Path(root), assignment)
        if points is not None and not 0 <= points <= most[grade.name]:
            raise ValueError(f"{points:g} is no number from 0 to {most[grade.name]:g}")
        before = gradebook.given(grade)
        if points is not None:
            grade.manual_score, grade.needs_manual_grade = points, False
        for comment in notebook.comments:
            if comment.name == question:
                quoted = "\n".join(f"> {line}" for line in says.splitlines())
                texts = [comment.manual_comment, quoted, answer]
                comment.manual_comment = "\n\n".join(text for text in texts if text)
        book.db.commit()
        return before, gradebook.given(grade)


def _marks(root: Path, db: str | None) -> dict[str, tuple[float | None, bool]]:
    """``student/exercise/question`` to its points, and whether a person gave them."""
    from nbgrader import api

    with gradebook.gradebook(root, db) as book:
        sent, part = api.SubmittedAssignment, api.SubmittedNotebook

        def of(*columns, join: Callable = lambda query: query):
            query = book.db.query(sent.student_id, api.Assignment.name, *columns).select_from(part)
            query = query.join(sent, part.assignment_id == sent.id)
            return join(query.join(api.Assignment, sent.assignment_id == api.Assignment.id)).all()

        grades = of(
            api.BaseCell.name,
            api.Grade.auto_score,
            api.Grade.manual_score,
            api.Grade.extra_credit,
            join=lambda query: query.join(api.Grade, api.Grade.notebook_id == part.id).join(
                api.BaseCell, api.Grade.cell_id == api.BaseCell.id
            ),
        )
        marks: dict[str, tuple[float | None, bool]] = {}
        for student, name, cell, auto, by_hand, extra in grades:
            score = auto if by_hand is None else by_hand
            points = None if score is None else score + (extra or 0.0)
            marks[f"{student}/{name}/{gradebook.question_of(cell)}"] = points, by_hand is not None
        for student, name, penalty in of(part.late_submission_penalty):
            marks[f"{student}/{name}/{LATE}"] = 0.0 - (penalty or 0.0), False
        return marks
