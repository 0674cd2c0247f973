"""Written answers: pages with question, rubric, sample answers and what the class wrote; marks from a table.

`write` makes a page for each question and one table for all; whoever marks fills in the table, and `enter`
brings it into the gradebook. The table comes back from a spreadsheet, which takes some texts for numbers and
days: 0012345 becomes 12345, 1e5 becomes 1.00E+05, 3-4 becomes a day in April.
"""

from __future__ import annotations

import csv
import hashlib
import html
import io
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from course import files, places

from . import assignments, gradebook, reports, safe_html
from .student_version import WRITTEN

COLUMNS = ("student", "question", "points", "max", "comment", "answer")
TABLE = "marks.csv"
SAMPLES = Path("docs") / "instructor" / "written.toml"
KEY = re.compile(r"x[0-9a-f]{10}")  # of an answer; the letter keeps spreadsheets from taking it for a number
EARLIER = re.compile(r"[0-9a-f]{8}")  # what was there in earlier versions
# a number as a spreadsheet writes it, and as it may stand in a text
NUMBER = re.compile(r"(?:0|[1-9]\d*)(?:[.,]\d+)?(?P<power>e[+-]?\d{1,3})?", re.I | re.A)
TEXT = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?", re.I | re.A)


def samples(question: str) -> list[Mapping]:
    """Sample answers to a question: ``points``, ``text`` and ``why``; none in a copy that lacks them."""
    path = places.ROOT / SAMPLES
    if not path.exists():
        return []
    return tomllib.loads(path.read_text(encoding="utf-8")).get(question.removeprefix("explain_"), [])


# ---- pages and table ----
def write(root: Path, assignment: str, db: str | None = None) -> list[Path]:
    """Write ``written/<assignment>/``: a page for each question, and `TABLE`; returns the paths.

    ValueError while the table holds marks that are not in the gradebook. Marks for texts that are not there
    any more (`outdated`) stay in a copy of the table, ``….earlier``.
    """
    root = Path(root)
    waiting, old = _changes(root, assignment, db)
    if waiting:
        raise ValueError(
            f"{_table(root, assignment)} holds {len(waiting)} marks that are not in the "
            "gradebook: run the same command with --enter, or delete the file"
        )
    if old:
        files.replace(
            _table(root, assignment).with_suffix(".csv.earlier"), _table(root, assignment).read_bytes()
        )
    rows, paths = _rows(root, assignment, db), []
    for name, question in assignments.written(gradebook.source(root, assignment)).items():
        own = [row for row in rows if row["question"] == name]
        path = root / "written" / assignment / f"{name}.html"
        page = reports.PAGE.format(
            title=html.escape(f"{assignment}: {question.title}"), body=_page(assignment, name, question, own)
        )
        files.replace(path, page.encode("utf-8", "replace"))
        paths.append(path)
    kept = [row | {"comment": _guarded(row["comment"] or "")} for row in rows]
    files.replace(_table(root, assignment), reports.table(COLUMNS, kept).encode("utf-8-sig"))
    return [*paths, _table(root, assignment)]


def _table(root: Path, assignment: str) -> Path:
    return Path(root) / "written" / assignment / TABLE


def _rows(root: Path, assignment: str, db: str | None) -> list[dict]:
    """A row (`COLUMNS`) for each answer; ``cell`` is the student's, ``earlier`` a mark for an older text.

    ``digest``: of the text; in tables of earlier versions ``answer`` was its first eight letters.
    ``own``: what the student wrote elsewhere, where any of it could be meant as an answer.
    """
    marks, rows = gradebook.load_marks(root, assignment), []
    with gradebook.gradebook(root, db) as book:
        for submission in sorted(book.find_assignment(assignment).submissions, key=lambda s: s.student_id):
            if (own := marks.get(submission.student_id)) is None:
                continue
            shown = gradebook.marked_copy(root, assignment, submission.student_id, own)
            digests = gradebook.digests(shown)
            cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in shown.cells}
            own = gradebook.own(shown)
            (notebook,) = submission.notebooks
            comments = {one.name: one.manual_comment for one in notebook.comments}
            for grade in notebook.grades:
                if grade.name not in {cell.name for cell in notebook.notebook.solution_cells}:
                    continue
                mark = grade.auto_score if grade.manual_score is None else grade.manual_score
                rows.append(
                    {
                        "student": submission.student_id,
                        "question": grade.name,
                        "max": grade.max_score,
                        "points": None if grade.needs_manual_grade else mark,
                        "comment": comments.get(grade.name),
                        "answer": _key(submission.student_id, grade.name, digests[grade.name]),
                        "digest": digests[grade.name],
                        "cell": cells[grade.name],
                        "own": own,
                        "earlier": mark if grade.needs_manual_grade else None,
                    }
                )
    return rows


def _page(assignment: str, name: str, question: assignments.Written, rows: Sequence[Mapping]) -> str:
    model = [
        f"<h2>Question</h2>{safe_html.page(question.text)}<h2>Answer and rubric</h2>",
        safe_html.page(question.model),
    ]
    for one in samples(name):
        model.append(
            f"<h2>A sample worth {reports.points(one['points'])}</h2>"
            f'<div class="answer">{safe_html.page(one["text"])}</div>{safe_html.page(one["why"])}'
        )
    waiting = sum(row["points"] is None for row in rows)
    answers = [f"<p>{len(rows)} answers, {waiting} to mark, in {TABLE} beside this page.</p>"]
    for row in rows:
        said = html.escape(row["student"])
        said += f": {reports.points(row['points'])} of {reports.points(row['max'])}"
        if row["earlier"] is not None:
            said += f" (an earlier text had {reports.points(row['earlier'])})"
        answers.append(f"<section><h3>{said}</h3>{_shown(row['cell'])}{_beside(row)}</section>")
    return (
        f"<h1>{html.escape(f'{assignment}, {question.title}')}</h1>"
        f'<div class="two"><div>{"".join(model)}</div><div>{"".join(answers)}</div></div>'
    )


def _beside(row: Mapping) -> str:
    """What the student wrote elsewhere in the notebook, unfolded if the place for the answer is empty."""
    if not (count := len(row["own"])):
        return ""
    empty = " open" if row["cell"].source == WRITTEN else ""
    said = f"{count} {'cell' if count == 1 else 'cells'} of their own elsewhere in the notebook"
    return f"<details{empty}><summary>{said}</summary>{''.join(map(_shown, row['own']))}</details>"


def _shown(cell) -> str:
    """What a student wrote; also as it was typed if Markdown leaves out words, such as comments."""
    text = reports.answer(cell)
    source = re.sub(r"<[a-z][^<>]*>", " ", cell.source, flags=re.I)  # words in a dropped tag do not matter
    typed, seen, names = (
        set(re.findall(r"\w+", one))
        for one in (source, html.unescape(text), " ".join(cell.get("attachments", {})))
    )
    if not typed - seen - names - {"attachment"}:
        return text
    return f"{text}<p>As it was typed, since some of it does not show:</p>{safe_html.plain(cell.source)}"


# ---- marks from the table ----
def enter(root: Path, assignment: str, db: str | None = None) -> list[dict]:
    """Bring what was filled in into the gradebook; returns the rows that changed something.

    An empty cell changes nothing, nor does a mark for a text that is not there any more (`outdated`).
    ValueError lists all that is wrong, before anything is entered.
    """
    changed, _ = _changes(root, assignment, db)
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


def outdated(root: Path, assignment: str, db: str | None = None) -> list[str]:
    """The marks of the table that are for a text which its author has replaced, in words."""
    return [
        f"{row['student']} has sent another text for {row['question']} since; "
        f"{reports.points(row['points'])} is not entered: look at the new page"
        for row in _changes(root, assignment, db)[1]
    ]


def rename(root: Path, assignment: str, old: str, new: str, do: bool, db: str | None = None) -> int:
    """Give ``old``'s lines of the table to ``new``; with "" they go. The pages that name ``old`` go, too.

    Returns how many lines there are. A mark counts for ``new`` if the text that was read is now theirs.
    """
    table, count = _table(root, assignment), 0
    own = [row for row in _rows(root, assignment, db) if row["student"] == old] if table.exists() else []
    keys = {row["answer"]: _key(new, row["question"], row["digest"]) for row in own}
    for path in filter(Path.exists, (table, table.with_suffix(".csv.earlier"))):
        lines = [row for _, row in _read(path)]
        theirs = [row for row in lines if row["student"] == old or row["answer"] in keys]
        count += len(theirs)
        if do and theirs:
            kept = [row for row in lines if new or row not in theirs]
            for row in theirs:
                row |= {"student": new, "answer": keys.get(row["answer"], row["answer"])}
            files.replace(path, reports.table(COLUMNS, kept).encode("utf-8-sig"))
    for page in table.parent.glob("*.html") if do else ():
        if f"<h3>{html.escape(old)}:" in page.read_text(encoding="utf-8"):
            page.unlink()
    return count


def _changes(root: Path, assignment: str, db: str | None) -> tuple[list[dict], list[dict]]:
    """The rows of the table that differ from the gradebook, and those whose text is there no more."""
    path = _table(root, assignment)
    if not path.exists():
        return [], []
    now = _rows(root, assignment, db)
    changed, old, wrong = [], [], []
    for line, row in _read(path):
        if not (row["points"] or row["comment"]):
            continue
        try:
            known, read = _meant(row, now)
            points, comment = _points(row["points"], known["max"]), _plain(row["comment"])
            told = comment.split() in ([], (known["comment"] or "").split())  # line ends may differ
            if points in (None, known["points"]) and told:
                continue
            if not read and (KEY.fullmatch(row["answer"]) or EARLIER.fullmatch(row["answer"])):
                old.append({**known, "points": points})
                continue
            if not read:
                raise ValueError(_not_read(row["answer"]))
            comment = "" if told else comment
            changed.append({**known, "points": points, "comment": comment})
        except ValueError as problem:
            wrong.append(f"line {line} ({row['student']}, {row['question']}): {problem}")
    if wrong:
        raise ValueError(f"{path}: {'; '.join(wrong)}. Nothing was entered")
    return changed, old


def _key(student: str, question: str, digest: str) -> str:
    """What tells one student's one text from all others."""
    return "x" + hashlib.sha256(f"{student}/{question}/{digest}".encode()).hexdigest()[:10]


def _meant(line: Mapping, now: Sequence[Mapping]) -> tuple[Mapping, bool]:
    """The answer that a line of the table is about, and whether it still is the text that was read.

    ValueError where that is not certain: nobody gets somebody else's mark.
    """
    asked = [row for row in now if row["question"] == line["question"]]
    named = [row for row in asked if _same(line["student"], row["student"])]
    keyed = [row for row in asked if line["answer"] == row["answer"]]
    read = keyed or [row for row in asked if _same(line["answer"], row["digest"][:8])]
    both = [row for row in read if row in named]
    if not named:  # a spreadsheet made the id a day, which names nobody, but the key does
        both = [row for row in keyed if _guarded(row["student"]) != row["student"]]
    if keyed and not both:
        raise ValueError(
            f"this is the answer of {keyed[0]['student']}, so the columns do not belong "
            "together: were some of them sorted without the others?"
        )
    if not (found := both or named):
        raise ValueError("there is no such answer")
    if len(found) > 1:
        names = " or ".join(row["student"] for row in found)
        raise ValueError(
            f"{line['student']!r} may be {names}, since a spreadsheet takes ids for numbers; "
            "delete this line, and mark this answer in a new table"
        )
    return found[0], bool(both)


def _not_read(key: str) -> str:
    """Why the mark of a line is not entered."""
    what = f"holds {key!r}" if key else "is empty"
    return f"the cell 'answer' {what}, so no text is known to be read; delete this line, look at the new page"


def _same(cell: str, text: str) -> bool:
    """Is a cell what a spreadsheet may have made of a text?

    >>> [_same(*pair) for pair in (("12345", "0012345"), ("9,24E+27", "92365e23"), ("12345", "12346"))]
    [True, True, False]
    """
    if cell == text:
        return True
    seen = NUMBER.fullmatch(cell)
    if not seen or not TEXT.fullmatch(text):
        return False
    shown, true = Decimal(cell.replace(",", ".")), Decimal(text)
    if not seen["power"] and len(text) <= 15:  # digits that a spreadsheet keeps
        return shown == true
    return abs(shown - true) <= max(
        Decimal((0, (1,), shown.as_tuple().exponent)) / 2 if seen["power"] else 0, true * Decimal("1e-14")
    )


def _read(path: Path) -> list[tuple[int, dict]]:
    """The lines of the table, with their numbers; a spreadsheet may have changed the separator."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not stored as UTF-8. In Excel, save it as “CSV UTF-8”") from None
    first = next(iter(text.splitlines()), "")
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    if missing := set(COLUMNS) - {"max"} - set(reader.fieldnames or ()):
        raise ValueError(f"{path} has no column {sorted(missing)[0]!r}")
    return [
        (line, {key: (row[key] or "").strip() for key in COLUMNS if key in row})
        for line, row in enumerate(reader, 2)
    ]


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


def _guarded(comment: str) -> str:
    """A comment with an apostrophe before it, if a spreadsheet would turn it into a formula, number or day.

    >>> [_guarded(text) for text in ("Well said.", "1/2", "=nearly", "true")]
    ['Well said.', "'1/2", "'=nearly", "'true"]
    """
    number = len(comment) < 40 and any(letter.isdigit() for letter in comment)
    guarded = number or comment.startswith("'") or comment.lower() in ("true", "false")
    return f"'{comment}" if guarded else reports.inert(comment)


def _plain(comment: str) -> str:
    """A comment without the apostrophe that `_guarded` has put before it."""
    return comment[1:] if comment.startswith("'") and _guarded(comment[1:]) == comment else comment
