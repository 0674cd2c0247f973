"""Written answers: what the class wrote beside question, rubric and sample answers, and marks from a table.

`write` makes a page for each question and one table for all; whoever marks fills in the table, and `enter`
brings it into the gradebook.
"""

from __future__ import annotations

import csv
import html
import io
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from course import files, places

from . import assignments, gradebook, reports, safe

COLUMNS = ("student", "question", "points", "max", "comment", "answer")
TABLE = "marks.csv"
SAMPLES = Path("docs") / "instructor" / "written.toml"



def samples(question: str) -> list[Mapping]:
    """Sample answers to a question: ``points``, ``text`` and ``why``; none in a copy that lacks them."""
    path = places.ROOT / SAMPLES
    if not path.exists():
        return []
    return tomllib.loads(path.read_text(encoding="utf-8")).get(question.removeprefix("explain_"), [])


# ---- pages and table ----
def write(root: Path, assignment: str, db: str | None = None) -> list[Path]:
    """Write ``written/<assignment>/``: a page for each question, and `TABLE`; returns the paths.

    ValueError while the table holds marks that are not in the gradebook.
    """
    root = Path(root)
    if waiting := _changes(root, assignment, db):
        raise ValueError(f"{_table(root, assignment)} holds {len(waiting)} marks that are not in the "
                         "gradebook: run the same command with --enter, or delete the file")
    rows, paths = _rows(root, assignment, db), []
    for name, question in assignments.written(gradebook.source(root, assignment)).items():
        own = [row for row in rows if row["question"] == name]
        path = root / "written" / assignment / f"{name}.html"
        page = reports.PAGE.format(title=html.escape(f"{assignment}: {question.title}"),
                                   body=_page(assignment, name, question, own))
        files.replace(path, page.encode("utf-8", "replace"))
        paths.append(path)
    files.replace(_table(root, assignment), reports.table(COLUMNS, rows).encode("utf-8-sig"))
    return [*paths, _table(root, assignment)]


def _table(root: Path, assignment: str) -> Path:
    return Path(root) / "written" / assignment / TABLE


def _rows(root: Path, assignment: str, db: str | None) -> list[dict]:
    """A row (`COLUMNS`) for each answer; ``cell`` is the student's, ``earlier`` a mark for an older text."""
    marks, rows = gradebook.load_marks(root, assignment), []
    with gradebook.gradebook(root, db) as book:
        for submission in sorted(book.find_assignment(assignment).submissions, key=lambda s: s.student_id):
            if (own := marks.get(submission.student_id)) is None:
                continue
            shown = gradebook.marked_copy(root, assignment, submission.student_id, own)
            digests = gradebook.digests(shown)
            cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in shown.cells}
            (notebook,) = submission.notebooks
            comments = {one.name: one.manual_comment for one in notebook.comments}
            for grade in notebook.grades:
                if grade.name not in {cell.name for cell in notebook.notebook.solution_cells}:
                    continue
                mark = grade.auto_score if grade.manual_score is None else grade.manual_score
                rows.append({
                    "student": submission.student_id, "question": grade.name, "max": grade.max_score,
                    "points": None if grade.needs_manual_grade else mark, "comment": comments.get(grade.name),
                    "answer": digests[grade.name][:8], "cell": cells[grade.name],
                    "earlier": mark if grade.needs_manual_grade else None})
    return rows


def _page(assignment: str, name: str, question: assignments.Written, rows: Sequence[Mapping]) -> str:
    model = [f"<h2>Question</h2>{safe.render(question.text)}<h2>Answer and rubric</h2>",
             safe.render(question.model)]
    for one in samples(name):
        model.append(f"<h2>A sample worth {reports.points(one['points'])}</h2>"
                     f'<div class="answer">{safe.render(one["text"])}</div>{safe.render(one["why"])}')
    waiting = sum(row["points"] is None for row in rows)
    answers = [f"<p>{len(rows)} answers, {waiting} to mark, in {TABLE} beside this page.</p>"]
    for row in rows:
        said = html.escape(row["student"])
        said += f": {reports.points(row['points'])} of {reports.points(row['max'])}"
        if row["earlier"] is not None:
            said += f" (an earlier text had {reports.points(row['earlier'])})"
        answers.append(f"<section><h3>{said}</h3>{reports.answer(row['cell'])}</section>")
    return (f"<h1>{html.escape(f'{assignment}, {question.title}')}</h1>"
            f'<div class="two"><div>{"".join(model)}</div><div>{"".join(answers)}</div></div>')


# ---- marks from the table ----
def enter(root: Path, assignment: str, db: str | None = None) -> list[dict]:
    """Bring what was filled in into the gradebook; returns the rows that changed something.

    An empty cell changes nothing. ValueError, with all that is wrong, before anything is entered.
    """
    changed = _changes(root, assignment, db)
    with gradebook.alone(root), gradebook.gradebook(root, db) as book:
        for row in changed:
            which = row["question"], assignment, assignment, row["student"]
            grade = book.find_grade(*which)
            if row["points"] is not None:
                grade.manual_score, grade.needs_manual_grade = row["points"], False
            if row["comment"]:
                book.find_comment(*which).manual_comment = row["comment"]
        book.db.commit()
    return changed


def _changes(root: Path, assignment: str, db: str | None) -> list[dict]:
    """The rows of the table that say something else than the gradebook does."""
    path = _table(root, assignment)
    if not path.exists():
        return []
    now = {(row["student"], row["question"]): row for row in _rows(root, assignment, db)}
    changed, wrong = [], []
    for line, row in _read(path):
        if not (row["points"] or row["comment"]):
            continue
        try:
            known = now.get((row["student"], row["question"]))
            if known is None:
                raise ValueError("there is no such answer")
            points, comment = _points(row["points"], known["max"]), _plain(row["comment"])
            if points in (None, known["points"]) and comment in ("", known["comment"]):
                continue
            if row["answer"] != known["answer"]:
                raise ValueError("the student has handed in another text since; delete this line, and look "
                                 "at the new page")
            changed.append({**known, "points": points, "comment": comment})
        except ValueError as problem:
            wrong.append(f"line {line} ({row['student']}, {row['question']}): {problem}")
    if wrong:
        raise ValueError(f"{path}: {'; '.join(wrong)}. Nothing was entered")
    return changed


def _read(path: Path) -> list[tuple[int, dict]]:
    """The lines of the table, with their numbers; a spreadsheet may have changed the separator."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not stored as UTF-8. In Excel, save it as “CSV UTF-8”") from None
    first = text.split("\n", 1)[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    if missing := set(COLUMNS) - {"max"} - set(reader.fieldnames or ()):
        raise ValueError(f"{path} has no column {sorted(missing)[0]!r}")
    return [(line, {key: (row[key] or "").strip() for key in COLUMNS if key in row})
            for line, row in enumerate(reader, 2)]


def _points(text: str, most: float) -> float | None:
    if not text:
        return None
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points <= most:
        raise ValueError(f"{text!r} is no number from 0 to {reports.points(most)}")
    return points


def _plain(comment: str) -> str:
    """A comment without the sign that `reports.inert` has put before it."""
    return comment[1:] if comment.startswith("'") and reports.inert(comment[1:]) == comment else comment
