"""What comes out of a class: a page for each student, a table of grades, and what the class believes."""

from __future__ import annotations

import csv
import html
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tutorial_lib.grading import files, safe
from tutorial_lib.grading.gradebook import gradebook, load_marks, marked_copy, question_of
from tutorial_lib.grading.intake import UNKNOWN

COLUMNS = ("student", "name", "assignment", "state", "reason", "coded", "written", "late penalty", "total",
           "max", "to mark")
SAID = {"graded": "graded", "rejected": "not taken in", "timed out": "stopped: it took too long",
        "grader error": "not graded yet", "not handed in": "not handed in"}
ERROR = "Something went wrong on the teacher's side. This is no fault of yours, and it costs no points."
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;\
 style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }}
table {{ border-collapse: collapse; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid #bbb; }}
td.number {{ text-align: right; white-space: nowrap; }}
.says, pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
.answer, .comment {{ border-left: 4px solid #767676; padding-left: 1rem; margin: .5rem 0; overflow: auto; }}
.comment {{ border-color: #0072b2; }}
img {{ max-width: 100%; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def points(value: float | None) -> str:
    """A score without needless digits; "–" for none.

    >>> points(3.0), points(2.25), points(None)
    ('3', '2.25', '–')
    """
    return "–" if value is None else f"{round(value, 2):g}"


def given(grade) -> float | None:
    """The score of one of nbgrader's grades with extra credit; None where nobody has given one yet."""
    score = grade.auto_score if grade.manual_score is None else grade.manual_score
    return None if score is None else score + (grade.extra_credit or 0.0)


def _rows(root: Path, book) -> list[dict]:
    """One row per student and exercise, also where nothing was handed in."""
    names = _names(root)
    exercises = sorted(book.assignments, key=lambda a: a.name)
    students = sorted(set(names) | {student.id for student in book.students})
    rows = []
    for exercise in exercises:
        marks = load_marks(root, exercise.name)
        submissions = {s.student_id: s for s in exercise.submissions}
        rows += [{"student": student, "name": names.get(student, student), "assignment": exercise.name,
                  **_row(marks.get(student), submissions.get(student), exercise.max_score)}
                 for student in students]
    rows += [{"student": student, "name": names.get(student, student), "assignment": "",
              "state": found["state"], "reason": found["reason"]}
             for student, found in load_marks(root, UNKNOWN).items()]
    return sorted(rows, key=lambda row: (row["student"], row["assignment"]))


def _row(marks: Mapping | None, submission, most: float) -> dict:
    """The state and the numbers of one submission; None for a number that nobody has given yet."""
    row = {"state": marks["state"] if marks else "not handed in", "reason": marks["reason"] if marks else "",
           "coded": None, "written": None, "late penalty": None, "total": None, "max": most, "to mark": 0}
    if submission is None:
        return row
    (notebook,) = submission.notebooks
    written = {cell.name for cell in notebook.notebook.solution_cells}
    parts = {"coded": [], "written": []}
    for grade in notebook.grades:
        parts["written" if grade.name in written else "coded"].append(given(grade))
        row["to mark"] += grade.needs_manual_grade
    for kind, scores in parts.items():
        # a coded part is complete or not there; a written one is marked answer by answer
        known = [score for score in scores if score is not None]
        if known and (kind == "written" or len(known) == len(scores)):
            row[kind] = sum(known)
    row["late penalty"] = notebook.late_submission_penalty or 0.0
    if row["coded"] is not None or not parts["coded"]:
        row["total"] = max(0.0, (row["coded"] or 0.0) + (row["written"] or 0.0) - row["late penalty"])
    return row


def _names(root: Path) -> dict[str, str]:
    path = Path(root) / "students.json"
    return json.loads(path.read_text()) if path.exists() else {}


# ---- the table of grades ----

def inert(value) -> str:
    """A cell that a spreadsheet shows and does not compute.

    >>> inert("=HYPERLINK(1)"), inert("Li"), inert(2.5), inert(None)
    ("'=HYPERLINK(1)", 'Li', '2.5', '')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{round(value, 4):g}"
    text = str(value).encode("utf-8", "replace").decode()
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def table(columns: Sequence[str], rows: Iterable[Mapping]) -> str:
    """CSV (RFC 4180) of rows by column name; every cell is `inert`."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(columns)
    writer.writerows([inert(row.get(column)) for column in columns] for row in rows)
    return buffer.getvalue()


def export(root: Path, db: str | None = None) -> Path:
    """Write ``exports/grades.csv``: one row per student and exercise, with the columns in `COLUMNS`.

    A number that nobody has given is an empty cell and not a zero: a grader error, a submission that has
    not been graded. "to mark" counts the answers that wait for a person. Upload names that belong to no
    exercise have a row of their own. Returns the path.
    """
    path = Path(root) / "exports" / "grades.csv"
    with gradebook(root, db) as book:
        files.replace(path, table(COLUMNS, _rows(Path(root), book)).encode())
    return path


# ---- a page for each student ----

def feedback(root: Path, assignment: str, db: str | None = None) -> list[Path]:
    """Write ``feedback/<student>/<assignment>/<assignment>.html`` for everybody who sent something.

    Marks and what the checks say, per question; the written answers with their marks; comments; the late
    penalty. The page runs nothing, loads nothing, and says nothing of hidden inputs or other students.
    Returns the paths.
    """
    root, paths = Path(root), []
    with gradebook(root, db) as book:
        exercise = book.find_assignment(assignment)
        submissions = {s.student_id: s for s in exercise.submissions}
        for student, marks in load_marks(root, assignment).items():
            submission = submissions.get(student)
            row = _row(marks, submission, exercise.max_score)
            body = _body(root, assignment, student, marks, submission, row)
            title = html.escape(f"{assignment}: feedback")
            path = root / "feedback" / student / assignment / f"{assignment}.html"
            files.replace(path, PAGE.format(title=title, body=body).encode("utf-8", "replace"))
            paths.append(path)
    return paths


def _body(root: Path, assignment: str, student: str, marks: Mapping, submission, row: Mapping) -> str:
    name = html.escape(_names(root).get(student, student))
    reason = ERROR if marks["state"] == "grader error" else marks["reason"]  # its own words are the teacher's
    pieces = [f"<h1>{html.escape(assignment)}</h1>", f"<p>{name}: {html.escape(SAID[marks['state']])}.</p>"]
    if reason:
        pieces.append(f'<p class="says"><strong>{html.escape(reason)}</strong></p>')
    pieces += [f'<p class="says">{html.escape(str(remark))}</p>'
               for remark in _remarks(root, assignment, student, marks)]
    pieces.append(_total(row))
    if submission is not None:
        (notebook,) = submission.notebooks
        grades = {grade.name: grade for grade in notebook.grades}
        comments = {comment.name: comment.manual_comment for comment in notebook.comments}
        pieces.append("<h2>Questions</h2>")
        shown = marked_copy(root, assignment, student, marks)
        for cell in shown.cells:
            grade = grades.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if grade is not None and cell.metadata.nbgrader.get("solution"):
                pieces.append(_written(grade, cell, comments.get(grade.name)))
            elif grade is not None:
                question = question_of(grade.name)
                pieces.append(_coded(grade, question, marks["questions"].get(question) or {},
                                     comments.get(question)))
    return "\n".join(pieces)


def _remarks(root: Path, assignment: str, student: str, marks: Mapping) -> list[str]:
    """What taking in and grading noted, each once."""
    try:
        path = root / "submitted" / student / assignment / "upload.json"
        noted = json.loads(path.read_text())["remarks"]
    except (OSError, ValueError, KeyError):
        noted = []
    return list(dict.fromkeys([*noted, *marks["remarks"]]))


def _total(row: Mapping) -> str:
    cells = [("Coded questions", points(row["coded"])), ("Written answers", points(row["written"]))]
    if row["late penalty"]:
        cells.append(("Late penalty", f"−{points(row['late penalty'])}"))
    cells.append(("Total", f"{points(row['total'])} of {points(row['max'])}"))
    rows = "".join(f'<tr><th scope="row">{key}</th><td class="number">{value}</td></tr>'
                   for key, value in cells)
    waiting = "<p>Some answers have not been marked yet.</p>" if row["to mark"] else ""
    return f"<table>{rows}</table>{waiting}"


def _head(grade, title: str) -> str:
    return (f"<section><h3>{html.escape(title)}: {points(given(grade))} of {points(grade.max_score)}"
            f"{' points' if grade.max_score != 1 else ' point'}</h3>")


def _comment(text: str | None) -> str:
    return f'<div class="comment"><p>Comment:</p>{safe.render(text)}</div>' if text else ""


def _coded(grade, question: str, found: Mapping, comment: str | None) -> str:
    pieces = [_head(grade, question)]
    if found.get("text"):
        pieces.append(f'<p class="says">{html.escape(str(found["text"]))}</p>')
    elif found.get("passed"):
        pieces.append("<p>Right.</p>")
    if found.get("reread"):
        pieces.append(f'<p class="says">Read again: {html.escape(str(found["reread"]))}</p>')
    return "".join([*pieces, _comment(comment), "</section>"])


def _written(grade, cell, comment: str | None) -> str:
    answer = safe.render(cell.source, cell.get("attachments")) if cell.cell_type == "markdown" \
        else safe.plain(cell.source)
    waiting = "<p>Not marked yet.</p>" if given(grade) is None else ""
    return "".join([_head(grade, grade.name), waiting, f'<div class="answer">{answer}</div>',
                    _comment(comment), "</section>"])


# ---- what the class believes ----

def statistics(marks: Mapping[str, Mapping]) -> tuple[list[dict], list[dict]]:
    """``(questions, misconceptions)`` of one exercise, as rows.

    Per question: how many answers were graded, the share that passed, the mean share of the points, and
    how many gave no answer. Per misconception: the question, its name, how many hold it, and their share
    of the graded answers. A question that somebody's time ran out for, or that the grader failed on, is
    not counted for that student.
    """
    verdicts: dict[str, list[Mapping]] = {}
    for found in marks.values():
        if found["state"] in ("graded", "timed out"):
            for question, verdict in found["questions"].items():
                if isinstance(verdict, Mapping):
                    verdicts.setdefault(question, []).append(verdict)
    questions, held = [], []
    for question, found in sorted(verdicts.items()):
        shares = [share for verdict in found if (share := _share(verdict)) is not None]
        questions.append({
            "question": question, "answers": len(found),
            "passed": sum(bool(v.get("passed")) for v in found) / len(found),
            "mean share of points": sum(shares) / len(shares) if shares else None,
            "no answer": sum(v.get("kind") in ("stub", "none") for v in found)})
        names = Counter(str(v["name"]) for v in found if v.get("name") and not v.get("passed"))
        held += [{"question": question, "misconception": name, "students": count, "share": count / len(found)}
                 for name, count in sorted(names.items())]
    return questions, sorted(held, key=lambda row: (-row["students"], row["question"], row["misconception"]))


def _share(verdict: Mapping) -> float | None:
    try:
        share = float(verdict["points"]) / float(verdict["max"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    return share if math.isfinite(share) else None


def _markdown(columns: Sequence[str], rows: Sequence[Mapping]) -> str:
    def cell(value) -> str:
        text = f"{value:.0%}" if isinstance(value, float) else inert(value)
        return html.escape(text, quote=False).replace("|", "\\|").replace("\n", " ")

    lines = [columns, ["---"] * len(columns), *([cell(row[key]) for key in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(root: Path, assignment: str) -> Path:
    """Write ``report/<assignment>/``: ``report.md`` with a figure, and its two tables as CSV.

    Names no student. Needs only the marks, not the gradebook; an empty class gives an empty report.
    Returns the path of ``report.md``.
    """
    from tutorial_lib import plots

    marks = load_marks(root, assignment)
    questions, held = statistics(marks)
    states = Counter(found["state"] for found in marks.values())
    folder = Path(root) / "report" / assignment
    asked = ["question", "answers", "passed", "mean share of points", "no answer"]
    believed = ["question", "misconception", "students", "share"]
    files.replace(folder / "questions.csv", table(asked, questions).encode())
    files.replace(folder / "misconceptions.csv", table(believed, held).encode())
    counted = ", ".join(f"{states[state]} {state}" for state in sorted(states)) or "none"
    parts = [f"# {assignment}", f"Submissions: {counted}.", "## Questions",
             _markdown(asked, questions) if questions else "No answer has been graded.",
             "## What the class believes",
             _markdown(believed, held) if held else "No known misconception was found."]
    picture = folder / "misconceptions.png"
    if held:
        top = held[:12]
        fig = plots.bars({f"{row['question']}: {row['misconception']}": row["students"] for row in top},
                         title=f"{assignment}: what the class believes", xlabel="students", values=".0f",
                         size=(9, 1.5 + 0.5 * len(top)))
        files.replace(picture, plots.png(fig))
        first = top[0]
        alt = (f"Bar chart of {len(top)} misconceptions by the number of students who hold them; the most "
               f"common is {first['misconception']} in {first['question']}, with {first['students']}.")
        parts.append(f"![{alt.replace('[', '(').replace(']', ')')}](misconceptions.png)")
    else:
        picture.unlink(missing_ok=True)
    path = folder / "report.md"
    files.replace(path, ("\n\n".join(parts) + "\n").encode())
    return path
