"""What comes out of a class: a page for each student, a table of grades, and what the class believes."""

from __future__ import annotations

import contextlib
import csv
import datetime
import html
import io
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from course import certificate, files
from course.checks.report import _section as section
from course.lesson import questions
from tutorial_lib.language import ENGLISH, _, language, of_notebook, speaking, tag

from . import assignments, intake, items, platforms, roster, rules, safe_html, similarity
from .gradebook import added, given, gradebook, load_marks, marked_copy, question_of, source
from .intake import UNKNOWN

COLUMNS = (
    "student",
    "name",
    "group",
    "assignment",
    "state",
    "reason",
    "coded",
    "written",
    "late penalty",
    "total",
    "max",
    "to mark",
)
ANSWERS = ("student", "name", "group", "assignment", "question", "points", "max")
CERTIFIED = (
    "has handed in {number} graded {exercises} on positional encoding in Transformers, "
    "with {points} of {most} points."
)
MEANS = (
    "Marked in a class, by its teacher. The code is made of all that stands here and of the class's secret."
)
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
.answer, .comment, .model {{ border-left: 4px solid #767676; padding-left: 1rem; margin: .5rem 0;
  overflow: auto; }}
.comment {{ border-color: #0072b2; }}
.model {{ border-color: #009e73; }}
.two {{ display: grid; grid-template-columns: 2fr 3fr; gap: 2rem; width: min(92vw, 90rem);
  margin-left: calc(50% - min(46vw, 45rem)); }}
.two > :first-child {{ position: sticky; top: 0; max-height: 100vh; overflow: auto; align-self: start; }}
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


def _rows(root: Path, book) -> list[dict]:
    """One row per student and exercise, even where nothing was handed in."""
    names = _names(root)
    exercises = sorted(book.assignments, key=lambda a: a.name)
    students = sorted(set(names) | {student.id for student in book.students})
    rows = []
    for exercise in exercises:
        marks = load_marks(root, exercise.name)
        noted = {student: _remarks(root, exercise.name, student, own) for student, own in marks.items()}
        submissions, late = {s.student_id: s for s in exercise.submissions}, added(root, exercise.name)
        rows += [
            {
                "student": student,
                "name": names.get(student, student),
                "assignment": exercise.name,
                **_row(
                    marks.get(student),
                    submissions.get(student),
                    exercise.max_score,
                    noted.get(student, ()),
                    late,
                ),
            }
            for student in students
        ]
    rows += [
        {
            "student": student,
            "name": names.get(student, student),
            "assignment": "",
            "state": found["state"],
            "reason": found["reason"],
            "answers": {},
        }
        for student, found in load_marks(root, UNKNOWN).items()
    ]
    groups = {person.id: person.group for person in roster.read(root).people.values()}
    rows = [row | {"group": groups.get(row["student"], "")} for row in rows]
    return sorted(rows, key=lambda row: (row["student"], row["assignment"]))


def _row(
    marks: Mapping | None,
    submission,
    most: float,
    remarks: Sequence[str] = (),
    late: Collection[str] = (),
) -> dict:
    """The state and the numbers of one submission; None for a number that nobody has given yet.

    ``late`` are cells that the exercise got while submissions were in: without them, a part is complete, too.
    """
    row = {
        "state": marks["state"] if marks else "not handed in",
        "reason": " ".join(filter(None, [marks["reason"] if marks else "", *remarks])),
        "coded": None,
        "written": None,
        "late penalty": None,
        "total": None,
        "max": most,
        "to mark": 0,
        "answers": {},
    }  # question: its points, and what it adds to the maximum
    if submission is None:
        return row
    (notebook,) = submission.notebooks
    written = {cell.name for cell in notebook.notebook.solution_cells}
    parts = {"coded": [], "written": []}
    for grade in notebook.grades:
        if given(grade) is not None or grade.name not in late:
            parts["written" if grade.name in written else "coded"].append(given(grade))
        row["answers"][question_of(grade.name)] = given(grade), grade.max_score
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
    """Id to name, for the class list and everybody else who sent something."""
    listed = {person.id: person.name or person.id for person in roster.read(root).people.values()}
    return intake.names(Path(root)) | listed


# ---- the table of grades ----


def inert(value) -> str:
    """A cell that a spreadsheet shows, but does not compute.

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
    """CSV (RFC 4180) of rows by column name; every cell is `inert`.

    Every cell is quoted: a spreadsheet that splits at semicolons must not find a formula inside one.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows([inert(row.get(column)) for column in columns] for row in rows)
    return buffer.getvalue()


def export(root: Path, db: str | None = None, questions: bool = False) -> Path:
    """Write ``exports/grades.csv``: one row per student and exercise, with the columns in `COLUMNS`.

    Beside it ``questions.csv``, with a row for each answer; and, where there is a class list, ``canvas.csv``
    and ``moodle.csv`` (see `platforms`). ``questions``: each question has a column in Canvas's file, too.

    A number that nobody has given is an empty cell and not a zero: a grader error, a submission that has
    not been graded. "to mark" counts the answers that wait for a person. Upload names that belong to no
    exercise have a row of their own. Returns the path.
    """
    path = Path(root) / "exports" / "grades.csv"
    with gradebook(root, db) as book:
        rows = _rows(Path(root), book)
    answers = [
        row | {"question": question, "points": score, "max": most}
        for row in rows
        for question, (score, most) in row["answers"].items()
    ]
    # Excel needs the byte order mark to read names such as 王小明
    files.replace(path, table(COLUMNS, rows).encode("utf-8-sig"))
    files.replace(path.with_name("questions.csv"), table(ANSWERS, answers).encode("utf-8-sig"))
    if listed := roster.read(root):
        files.replace(path.with_name("canvas.csv"), platforms.canvas(listed, rows, questions).encode())
        files.replace(path.with_name("moodle.csv"), platforms.moodle(listed, rows).encode())
    return path


# ---- a page for each student ----


def feedback(root: Path, assignment: str, db: str | None = None) -> list[Path]:
    """Write ``feedback/<student>/<assignment>/<assignment>.html`` for everybody who sent something.

    It has marks and what the checks say, per question; the written answers with their marks, and with ours
    once marking has begun; comments; the late penalty. The page runs nothing, loads nothing, and says nothing
    about hidden inputs or other students. Returns the paths.
    """
    root, paths = Path(root), []
    with gradebook(root, db) as book:
        exercise = book.find_assignment(assignment)
        submissions = {s.student_id: s for s in exercise.submissions}
        begun = {
            grade.name
            for submission in submissions.values()
            for notebook in submission.notebooks
            for grade in notebook.grades
            if grade.manual_score is not None
        }
        for student, marks in load_marks(root, assignment).items():
            submission = submissions.get(student)
            row = _row(marks, submission, exercise.max_score, late=added(root, assignment))
            with speaking(_language(root, assignment, student)):
                body = _body(root, assignment, student, marks, submission, row, begun)
                page = PAGE.format(title=html.escape(f"{assignment}: {_('feedback')}"), body=body)
                page = page.replace('lang="en"', f'lang="{tag(language())}"', 1)
            path = root / "feedback" / student / assignment / f"{assignment}.html"
            files.replace(path, page.encode("utf-8", "replace"))
            for name, otherwise in _beside(root, assignment, student).items():
                text = otherwise
                with contextlib.suppress(files.Refused, OSError, UnicodeDecodeError):
                    sent = root / "submitted" / student / assignment / name
                    text = files.read(sent, 10_000, root / "submitted").decode()
                files.replace(path.with_name(name), text.encode())
            if (name := _collected_as(root, assignment, student)) != path.stem:
                files.replace(path.with_name(f"{name}.html"), path.read_bytes())
            paths.append(path)
    return paths


def _language(root: Path, assignment: str, student: str) -> str:
    """The language of the notebook that a student has handed in."""
    path = root / "submitted" / student / assignment / f"{assignment}.ipynb"
    with contextlib.suppress(files.Refused, OSError):
        return of_notebook(files.read(path, intake.MOST_BYTES, root / "submitted"))
    return ENGLISH


def _collected_as(root: Path, assignment: str, student: str) -> str:
    """The name of the notebook that nbgrader collected: the student gets the feedback under that name."""
    name = Path(str(intake.record(root, assignment, student).get("from", ""))).name
    raw = root / "submitted" / student / assignment / f"{assignment}.ipynb.collected"
    return name.removesuffix(".ipynb") if name.endswith(".ipynb") and raw.exists() else assignment


def _beside(root: Path, assignment: str, student: str) -> dict[str, str]:
    """The files that `nbgrader release_feedback` needs beside a page, made here where nothing was collected.

    It stops at the first student without them: one upload by mail, and nobody would get a page.
    """
    from .marking import own_secret

    seconds = intake.record(root, assignment, student).get("seconds_of_upload", 0.0)
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return {
        "timestamp.txt": f"{when:%Y-%m-%d %H:%M:%S.%f} UTC",
        "submission_secret.txt": own_secret(root, assignment, student),
    }


def _said(state: str) -> str:
    """What a student reads of a state."""
    return {
        "graded": _("graded"),
        "rejected": _("not taken in"),
        "timed out": _("stopped: it took too long"),
        "grader error": _("not graded yet"),
        "not handed in": _("not handed in"),
    }[state]


def _body(
    root: Path,
    assignment: str,
    student: str,
    marks: Mapping,
    submission,
    row: Mapping,
    begun: Collection[str],
) -> str:
    name = html.escape(_names(root).get(student, student))
    reason = marks["reason"]
    if marks["state"] == "grader error":  # the details are for the teacher
        reason = _(
            "Something went wrong on the teacher's side. This is no fault of yours, and it costs no points."
        )
    state = html.escape(_said(marks["state"]))
    pieces = [f"<h1>{html.escape(assignment)}</h1>", f"<p>{name}{_(': ')}{state}{_('.')}</p>"]
    if reason:
        pieces.append(f'<p class="says"><strong>{html.escape(reason)}</strong></p>')
    pieces += [
        f'<p class="says">{html.escape(str(remark))}</p>'
        for remark in _remarks(root, assignment, student, marks)
    ]
    pieces.append(_total(row))
    if submission is not None:
        (notebook,) = submission.notebooks
        grades = {grade.name: grade for grade in notebook.grades}
        comments = {comment.name: comment.manual_comment for comment in notebook.comments}
        pieces.append(f"<h2>{_('Questions')}</h2>")
        shown, decided = marked_copy(root, assignment, student, marks), rules.load(root, assignment)
        asked = assignments.written(source(root, assignment))
        before = ""
        for cell in shown.cells:
            grade = grades.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if grade is not None and cell.metadata.nbgrader.get("solution"):
                own = asked[grade.name]
                if language() != ENGLISH:  # the question as the student has read it
                    title, text = assignments.question(before, grade.name)
                    own = replace(own, title=title, text=text)
                pieces.append(_written(grade, cell, comments.get(grade.name), own, grade.name in begun))
            elif grade is not None:
                question = question_of(grade.name)
                pieces.append(
                    _coded(
                        grade,
                        question,
                        marks["questions"].get(question) or {},
                        comments.get(question),
                        decided,
                    )
                )
            before = cell.source if cell.cell_type == "markdown" else ""
    return "\n".join(pieces)


def _remarks(root: Path, assignment: str, student: str, marks: Mapping) -> list[str]:
    """What taking in and grading noted, each once."""
    noted = intake.record(root, assignment, student).get("remarks", [])
    return list(dict.fromkeys([*noted, *marks["remarks"]]))


def _total(row: Mapping) -> str:
    cells = [(_("Coded questions"), points(row["coded"])), (_("Written answers"), points(row["written"]))]
    if row["late penalty"]:
        cells.append((_("Late penalty"), f"−{points(row['late penalty'])}"))
    total = _("{points} of {most}").format(points=points(row["total"]), most=points(row["max"]))
    cells.append((_("Total"), total))
    rows = "".join(
        f'<tr><th scope="row">{key}</th><td class="number">{value}</td></tr>' for key, value in cells
    )
    waiting = f"<p>{_('Some answers have not been marked yet.')}</p>" if row["to mark"] else ""
    return f"<table>{rows}</table>{waiting}"


def _head(grade, title: str, kind: str = "") -> str:
    counts = kind or _("{points} of {most} points")
    if not kind and grade.max_score == 1:
        counts = _("{points} of 1 point")
    if not kind and not grade.max_score:
        counts = _("{points} points of a bonus")
    said = counts.format(points=points(given(grade)), most=points(grade.max_score))
    return f"<section><h3>{html.escape(title)}{_(': ')}{said}</h3>"


def _comment(text: str | None) -> str:
    return f'<div class="comment"><p>{_("Comment:")}</p>{safe_html.page(text)}</div>' if text else ""


def _coded(grade, question: str, found: Mapping, comment: str | None, decided: rules.Rules) -> str:
    dropped = _("{points} points; it was dropped") if question in decided.dropped else ""
    pieces = [_head(grade, question, dropped)]
    if question in decided.dropped:
        pieces.append(f"<p>{_('This question counts for nobody.')}</p>")
    elif question in decided.given:
        pieces.append(f"<p>{_('Everybody got the points of this question.')}</p>")
    if found.get("text"):
        pieces.append(f'<p class="says">{html.escape(str(found["text"]))}</p>')
    elif found.get("passed"):
        pieces.append(f"<p>{_('Right.')}</p>")
    if found.get("reread"):
        again = _("Read again: {section}.").format(section=section(str(found["reread"])))
        pieces.append(f'<p class="says">{html.escape(again)}</p>')
    return "".join([*pieces, _comment(comment), "</section>"])


def _written(grade, cell, comment: str | None, asked: assignments.Written, begun: bool) -> str:
    """The question, the answer and its mark; our answer below, once marking this question has ``begun``."""
    marked = given(grade) is not None and not grade.needs_manual_grade
    theirs = f"<p>{_('Your answer:')}</p>{answer(cell)}"
    pieces = [_head(grade, asked.title), safe_html.page(asked.text), theirs]
    if not marked:
        pieces.append(f"<p>{_('Not marked yet.')}</p>")
    pieces.append(_comment(comment))
    if marked and begun:  # nobody gets our answer for the next attempt by leaving theirs empty
        pieces.append(
            f'<p>{_("A model answer, and how it is marked:")}</p><div class="model">'
            f"{safe_html.page(asked.model)}</div>"
        )
    return "".join([*pieces, "</section>"])


def answer(cell) -> str:
    """What a student wrote, as HTML that is safe."""
    text = (
        safe_html.page(cell.source, cell.get("attachments"))
        if cell.cell_type == "markdown"
        else safe_html.plain(cell.source)
    )
    return f'<div class="answer">{text}</div>'


def certify(root: Path, student: str, db: str | None = None) -> Path:
    """Write ``certificates/<student>.html``: the points of each exercise, with a code of the class.

    Returns its path. ValueError where nothing of the student has been marked.
    """
    from .marking import secret_of

    root = Path(root)
    with gradebook(root, db) as book:
        rows = [row for row in _rows(root, book) if row["student"] == student and row["total"] is not None]
    if not rows:
        raise ValueError(
            f"nothing of {student!r} has been marked, so there is nothing to certify: run `grade`"
        )
    numbers = [assignments.number(row["assignment"]) for row in rows]
    facts = {
        "name": _names(root).get(student, student),
        "date": datetime.date.today().isoformat(),
        "did": CERTIFIED.format(
            number=len(rows),
            exercises="exercise" if len(rows) == 1 else "exercises",
            points=points(sum(row["total"] for row in rows)),
            most=points(sum(row["max"] for row in rows)),
        ),
        "rows": [
            [
                questions.questions(number)["title"],
                f"{points(row['total'])} of {points(row['max'])} points",
                min(1.0, row["total"] / row["max"]) if row["max"] else 0.0,
            ]
            for number, row in zip(numbers, rows, strict=True)
        ],
    }
    path = root / "certificates" / f"{student}.html"
    seal = certificate.digest(facts, secret_of(root))
    files.replace(path, certificate.page(facts, seal, MEANS, sign=True).encode("utf-8", "replace"))
    return path


def archives(root: Path, assignment: str, pages: Iterable[Path]) -> dict[Path, int]:
    """Write the ``pages`` of `feedback` into ``exports/``, packed as each platform takes them back.

    ``{path: how many}``, for each platform that anything came from.
    """
    packed: dict[str, dict[str, bytes]] = {}
    for page in pages:
        address = intake.address(root, assignment, page.parts[-3])
        if address.exists():
            back = address.read_text(encoding="utf-8", errors="replace")
            platform, name, data = platforms.returned(back, assignment, page.read_text(encoding="utf-8"))
            packed.setdefault(platform, {})[name] = data
    made = {}
    for platform, members in packed.items():
        path = Path(root) / "exports" / f"feedback-{assignment}-{platform}.zip"
        files.replace(path, platforms.zipped(members))
        made[path] = len(members)
    return made


# ---- what the class believes ----


def _markdown(columns: Sequence[str], rows: Sequence[Mapping]) -> str:
    def cell(name: str, value) -> str:
        kind = ".2f" if name in items.CORRELATIONS else ".0%"
        text = format(value, kind) if isinstance(value, float) else inert(value)
        return html.escape(text, quote=False).replace("|", "\\|").replace("\n", " ")

    lines = [columns, ["---"] * len(columns), *([cell(key, row[key]) for key in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(root: Path, assignment: str, db: str | None = None) -> Path:
    """Write ``report/<assignment>/``: ``report.md`` with a figure, and its tables as CSV.

    It names no student, and needs only the marks; where there is a gradebook, the written answers come from
    it. An empty class gives an empty report. Returns the path of ``report.md``.
    """
    from tutorial_lib import plots

    marks = load_marks(root, assignment)
    questions, held = items.questions(marks), items.beliefs(marks)
    written = _written_answers(root, assignment, db)
    states = Counter(found["state"] for found in marks.values())
    states["not handed in"] = len(set(roster.read(root).people) - set(marks))
    folder = Path(root) / "report" / assignment
    counted = ", ".join(f"{states[state]} {state}" for state in sorted(+states)) or "none"
    parts = [
        f"# {assignment}",
        f"Submissions: {counted}.",
        "## Questions",
        _markdown(items.ASKED, questions) if questions else "No answer has been graded.",
        "## Written answers",
        _markdown(items.WRITTEN, written) if written else "None has been marked.",
        "## What the class believes",
        _markdown(items.BELIEVED, held) if held else "No known misconception was found.",
    ]
    for name, columns, rows in (
        ("questions", items.ASKED, questions),
        ("written", items.WRITTEN, written),
        ("misconceptions", items.BELIEVED, held),
    ):
        files.replace(folder / f"{name}.csv", table(columns, rows).encode("utf-8-sig"))
    picture = folder / "misconceptions.png"
    if held:
        top = held[:12]
        fig = plots.bars(
            {f"{row['question']}: {row['misconception']}": row["students"] for row in top},
            title=f"{assignment}: what the class believes",
            xlabel="students",
            values=".0f",
            size=(9, 1.5 + 0.5 * len(top)),
        )
        files.replace(picture, plots.png(fig))
        first = top[0]
        alt = (
            f"Bar chart of {len(top)} misconceptions by the number of students who hold them; the most "
            f"common is {first['misconception']} in {first['question']}, with {first['students']}."
        )
        parts.append(f"![{alt.replace('[', '(').replace(']', ')')}](misconceptions.png)")
    else:
        picture.unlink(missing_ok=True)
    path = folder / "report.md"
    files.replace(path, ("\n\n".join(parts) + "\n").encode())
    return path


def _written_answers(root: Path, assignment: str, db: str | None) -> list[dict]:
    """A row for each written question: how many were marked, how many wait, the mean share of the points."""
    if not (Path(root) / "nbgrader_config.py").exists():
        return []
    found: dict[str, list] = {}
    with gradebook(root, db) as book:
        for submission in book.find_assignment(assignment).submissions:
            (notebook,) = submission.notebooks
            written = {cell.name for cell in notebook.notebook.solution_cells}
            for grade in notebook.grades:
                if grade.name in written:
                    found.setdefault(grade.name, []).append(grade)
        return [
            items.written(
                name,
                [given(grade) for grade in grades if not grade.needs_manual_grade],
                sum(grade.needs_manual_grade for grade in grades),
                grades[0].max_score,
            )
            for name, grades in sorted(found.items())
        ]


def trend(root: Path, assignments: Sequence[str]) -> Path:
    """Write ``report/trend.md`` and ``trend.csv``: a row for each exercise. Returns the path of the first."""
    listed = set(roster.read(root).people)
    rows = [items.summary(name, load_marks(root, name), listed) for name in assignments]
    path = Path(root) / "report" / "trend.md"
    files.replace(path.with_suffix(".csv"), table(items.TREND, rows).encode("utf-8-sig"))
    files.replace(path, f"# From exercise to exercise\n\n{_markdown(items.TREND, rows)}\n".encode())
    return path


def inventory(root: Path, folder: Path) -> Path:
    """Write ``report/inventory.md``: what the class believed before and after, from the logs in ``folder``.

    It names no student. Returns the path; see `items.inventory` for what is refused.
    """
    pairs, left_out = items.logs(folder)
    found = items.inventory(pairs)
    said = (
        f"{len(pairs)} students answered both times; {left_out} did not, and are left out. Right before: "
        f"{found.before:.0%}, after: {found.after:.0%}. Normalised gain: {found.gain:.2f} "
        f"(95% interval {found.low:.2f} to {found.high:.2f})."
    )
    path = Path(root) / "report" / "inventory.md"
    table_of = _markdown(items.PAIRED, items.by_question(pairs))
    files.replace(path, f"# The concept inventory\n\n{said}\n\n{table_of}\n".encode())
    return path


def alike(root: Path, assignment: str) -> Path:
    """Write ``likeness/<assignment>.md``: pairs of submissions to look at, by name. Returns its path."""
    rows = similarity.compare(root, assignment)
    found = _markdown(similarity.COLUMNS, rows) if rows else "No two are alike."
    path = Path(root) / "likeness" / f"{assignment}.md"
    text = f"# {assignment}: submissions that are alike\n\n{similarity.CAVEATS}\n{found}\n"
    files.replace(path, text.encode())
    return path
