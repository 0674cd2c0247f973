"""A class folder as an nbgrader course, and the one place that writes marks into its gradebook.

nbgrader keeps the points, the written answers' marking (formgrader) and the comments. It never runs a
submission: marks come from ``marks/<assignment>/<student>.json``.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import functools
import hashlib
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import nbformat
from filelock import FileLock

from course import files

from . import assignments, clock, intake, kept, roster
from . import rules as _rules
from .assignments import COURSE
from .intake import MOST_BYTES
from .rules import Rules

STATES = ("graded", "rejected", "timed out", "grader error")
MOST_EXTRA_CELLS, MOST_EXTRA_LETTERS = 50, 40_000  # of a student's own cells, in the copy that is marked
CONFIG = """\
# Written by classroom; start JupyterLab in this folder to mark written answers in formgrader.
from pathlib import Path

c = get_config()
root = Path(__file__).resolve().parent
c.CourseDirectory.root = str(root)
c.CourseDirectory.course_id = {course!r}
c.CourseDirectory.db_url = {db}
# What a student wrote is shown without anything that could run in the teacher's browser.
c.TemplateExporter.filters = {{"markdown2html": "classroom.safe_html.markdown2html"}}
# "Autograde" enters the marks that are there already; nbgrader itself never runs a submission.
c.Autograde.sanitize_preprocessors = ["classroom.autograde_button.Graft"]
c.Autograde.autograde_preprocessors = ["classroom.autograde_button.Enter"]
"""


def database(root: Path, db: str | None = None) -> str:
    """The database's URL: ``db``, else the one that the class folder was prepared with, else SQLite in it.

    >>> database(Path("/class"), "postgresql://me@host/grades")
    'postgresql+psycopg://me@host/grades'
    """
    config = Path(root) / "nbgrader_config.py"
    if db is None and config.exists():
        from traitlets.config import PyFileConfigLoader

        try:
            db = PyFileConfigLoader(config.name, path=str(config.parent)).load_config().CourseDirectory.db_url
        except Exception as problem:  # it is a program
            raise ValueError(
                f"{config} cannot be read ({problem}). Delete it: `grade` writes it again. If the gradebook "
                "was not in this folder, say once more where it is, with --db."
            ) from None
    if db is None:
        db = f"sqlite:///{Path(root).resolve() / 'gradebook.db'}"
    kind, rest = db.split(":", 1)
    return f"postgresql+psycopg:{rest}" if kind in ("postgres", "postgresql") else db


@contextlib.contextmanager
def _usable(url: str) -> Iterator[None]:
    """Say what to do about a database that is held by another program, or damaged."""
    from sqlalchemy.exc import DatabaseError, OperationalError

    try:
        yield
    except OperationalError as problem:
        raise RuntimeError(
            f"The gradebook cannot be used now ({problem.orig}). If formgrader or another "
            "program has it open, close that, and run the command again."
        ) from None
    except DatabaseError as problem:
        if type(problem) is not DatabaseError:
            raise  # a fault of ours
        raise RuntimeError(
            f"The gradebook {url.removeprefix('sqlite:///')} is damaged ({problem.orig}). Put back a copy "
            "of it. Without one, move it away: `grade` makes a new one of what is in marks/, where the marks "
            "and comments that you gave by hand are missing."
        ) from None


@contextlib.contextmanager
def gradebook(root: Path, db: str | None = None) -> Iterator:
    """nbgrader's Gradebook of a class folder, closed at the end; FileNotFoundError before `prepare`.

    Raises RuntimeError while another program holds the database, and for one that is damaged.
    """
    from nbgrader.api import Gradebook

    if not (Path(root) / "nbgrader_config.py").exists():
        raise FileNotFoundError(f"{root} is no class folder yet: call prepare first")
    url = database(root, db)
    with _usable(url), Gradebook(url, COURSE) as book:
        yield book


def _create(url: str) -> None:
    """The tables of a new database, as nbgrader makes them.

    nbgrader itself would start the program `alembic`, which it finds only in an activated environment.
    """
    from alembic.script import ScriptDirectory
    from nbgrader.api import Base
    from nbgrader.dbutil import ALEMBIC_DIR
    from sqlalchemy import create_engine, inspect, text

    engine = create_engine(url)
    try:
        if inspect(engine).get_table_names():
            return
        version = ScriptDirectory(ALEMBIC_DIR).get_current_head()
        with engine.begin() as connection:
            Base.metadata.create_all(connection)
            connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
            connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": version})
    finally:
        engine.dispose()


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """One writer at a time; a second one waits."""
    with FileLock(Path(root) / ".gradebook.lock"):
        yield


def load_marks(root: Path, assignment: str) -> dict[str, dict]:
    """The marks JSON of every student who has one; one that cannot be read is a grader error."""
    marks = {}
    for path in sorted((Path(root) / "marks" / assignment).glob("*.json")):
        try:
            found = json.loads(files.read(path, MOST_BYTES))
            if found["state"] not in STATES or not isinstance(found["questions"], dict):
                raise ValueError("not in the form of marks")
        except (ValueError, KeyError, TypeError, OSError) as problem:
            found = {
                "assignment": assignment,
                "student": path.stem,
                "state": "grader error",
                "sha256": "",
                "reason": f"The marks in {path} cannot be read ({problem}). `grade` marks what was handed in "
                "again; if it was an upload that could not be read, `take-in` says so again.",
                "checks_version": "",
                "questions": {},
                "written": [],
                "remarks": [],
            }
        marks[path.stem] = {"reason": "", "remarks": [], **found}
    return marks


def students(root: Path) -> list[str]:
    """The ids of all students that are known: in the class list, or with something handed in."""
    sent = {path.name for path in (Path(root) / "submitted").glob("*") if path.is_dir()}
    marked = {path.stem for path in (Path(root) / "marks").glob("ex*/*.json")}
    return sorted(set(roster.read(root).people) | sent | marked)


# ---- the course ----


def prepare(root: Path, released: Mapping[str, Path], db: str | None = None) -> None:
    """Make ``root`` an nbgrader course with the exercises ``released`` (name → notebook with solutions).

    Writes ``nbgrader_config.py``, ``source/`` and ``release/`` (by nbgrader itself, which also enters the
    cells and their points into the database). An exercise that is already there, unchanged, is left alone.
    ``db`` is a SQLAlchemy URL; ``postgresql://`` is enough. Questions may be added and removed while
    submissions are in (`_fit`). Raises ValueError for a question that cannot be marked here, and RuntimeError
    with nbgrader's log if nbgrader refuses.
    """
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    url = database(root, db)
    inside = url == f"sqlite:///{root.resolve() / 'gradebook.db'}"  # then the folder may be moved
    config = CONFIG.format(
        db="f\"sqlite:///{root / 'gradebook.db'}\"" if inside else repr(url), course=COURSE
    )
    files.replace(root / "nbgrader_config.py", config.encode(), 0o600)  # the URL may hold a password
    with alone(root), _usable(url):
        _create(url)
        with gradebook(root, url) as book:
            there = {assignment.name for assignment in book.assignments}
        for name, notebook in sorted(released.items()):
            path, cells = source(root, name), _graded(Path(notebook))
            before = path.read_bytes() if path.exists() else None
            changed = files.replace(path, Path(notebook).read_bytes())
            if changed or name not in there or not _released(root, name).exists():
                try:
                    if name in there:
                        with gradebook(root, url) as book:
                            _fit(book, root, name, cells)
                    _generate(root, url, name)
                except BaseException:
                    path.unlink()  # so that the next call tries again
                    if before is not None:
                        files.replace(path, before)
                    raise
            with gradebook(root, url) as book:
                _weigh(book, root, name, _rules.load(root, name))


def _graded(notebook: Path) -> dict[str, nbformat.NotebookNode]:
    """The cells that nbgrader knows, by their ids. ValueError for what cannot be marked here."""
    cells = {_id(cell): cell for cell in nbformat.read(notebook, as_version=4).cells if _id(cell)}
    for name, cell in cells.items():
        if cell.metadata.nbgrader.get("task"):
            raise ValueError(
                f"{notebook.name}: {name} is a “Manually graded task”. Make it a “Manually graded answer”, "
                "in the cell below the text of the question."
            )
    return cells


def _fit(book, root: Path, assignment: str, cells: Mapping[str, nbformat.NotebookNode]) -> None:
    """Give the gradebook the questions of a changed notebook while submissions are in: nbgrader refuses to.

    All marks stay. What is new is noted, since who had handed in before has never seen it (`unseen`).
    ValueError where one is gone that has marks or comments by hand.
    """
    from nbgrader.api import Comment, Grade, GradeCell, SolutionCell, SourceCell

    (stored,) = book.find_assignment(assignment).notebooks
    if not stored.submissions:
        return
    graded = {name for name, cell in cells.items() if cell.metadata.nbgrader.get("grade")}
    solved = {name for name, cell in cells.items() if cell.metadata.nbgrader.get("solution")}
    locked = {name for name, cell in cells.items() if cell.metadata.nbgrader.get("locked")}
    new: set[str] = set()
    for kind, row, there, wanted in (
        (GradeCell, Grade, stored.grade_cells, graded),
        (SolutionCell, Comment, stored.solution_cells, solved),
        (SourceCell, None, stored.source_cells, graded | solved | locked),
    ):
        for cell in [cell for cell in there if cell.name not in wanted]:
            rows = book.db.query(row).filter(row.cell_id == cell.id).all() if row else []
            if by_hand := sum(
                one.manual_score is not None or bool(one.extra_credit)
                if row is Grade
                else bool(one.manual_comment)
                for one in rows
            ):
                raise ValueError(
                    f"{assignment} has no {cell.name} any more, but {by_hand} marks or comments that were "
                    "given by hand. Put it back; "
                    f"`grade {assignment} --drop {question_of(cell.name)}` lets a question count for nobody."
                )
            for one in [*rows, cell]:
                book.db.delete(one)
        for name in sorted(wanted - {cell.name for cell in there}):
            fields = {"cell_type": cells[name].cell_type} if kind is not SolutionCell else {}
            if kind is GradeCell:
                fields["max_score"] = float(cells[name].metadata.nbgrader.points)
                new.add(name)
            cell = kind(name=name, notebook=stored, **fields)
            book.db.add(cell)
            book.db.flush()
            book.db.add_all(row(cell_id=cell.id, notebook=one) for one in stored.submissions if row)
    if new:
        files.replace(_added(root, assignment), json.dumps(sorted({*added(root, assignment), *new})).encode())
    book.db.commit()


def _added(root: Path, assignment: str) -> Path:
    return Path(root) / "marks" / ".added" / f"{assignment}.json"


def added(root: Path, assignment: str) -> list[str]:
    """The graded cells that an exercise got after submissions had come in."""
    path = _added(root, assignment)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def unseen(root: Path, assignment: str, student: str) -> set[str]:
    """The graded cells that a student's notebook was given out without."""
    if not (late := added(root, assignment)):
        return set()
    path = Path(root) / "submitted" / student / assignment / f"{assignment}.ipynb"
    if not path.exists():
        return set(late)
    submitted = nbformat.reads(files.read(path, MOST_BYTES).decode(), as_version=4)
    return set(late) - {_id(cell) for cell in submitted.cells}


def source(root: Path, assignment: str) -> Path:
    """The class's copy of an exercise with its solutions."""
    return Path(root) / "source" / assignment / f"{assignment}.ipynb"


def _released(root: Path, assignment: str) -> Path:
    return Path(root) / "release" / assignment / f"{assignment}.ipynb"


def _release(root: Path, assignment: str):
    """The notebook as it was released."""
    path = _released(root, assignment)
    try:
        return nbformat.read(path, as_version=4)
    except ValueError as problem:
        raise ValueError(f"{path} is damaged ({problem}). Delete it: `grade` makes it again.") from None


def _points(root: Path, assignment: str) -> dict[str, float]:
    """The points that each graded cell can give, as it was released."""
    cells = _release(root, assignment).cells
    return {
        _id(cell): float(cell.metadata.nbgrader.points)
        for cell in cells
        if _id(cell) and cell.metadata.nbgrader.get("grade")
    }


def other_points(root: Path, assignment: str) -> dict[str, tuple[float, float]]:
    """Coded questions that give other points in the class's notebook than in the course: (theirs, ours)."""
    from course.checks import questions

    points, number = _points(root, assignment), assignments.number(assignment)
    asked = questions.load(number) if number in questions.exercises() else ()
    return {
        one.name: (points[cell], float(one.points))
        for one in asked
        if (cell := f"check_{one.name}") in points and points[cell] != one.points
    }


def coded_questions(root: Path, assignment: str) -> list[str]:
    """The questions of an exercise that a program marks, in the order of the exercise."""
    cells = _release(root, assignment).cells
    return [
        question_of(_id(cell))
        for cell in cells
        if _id(cell) and cell.metadata.nbgrader.get("grade") and not cell.metadata.nbgrader.get("solution")
    ]


def _bonus(assignment: str) -> set[str]:
    """The questions that are a bonus."""
    from course.checks import questions

    number = assignments.number(assignment)
    asked = questions.load(number) if number in questions.exercises() else ()
    return {question.name for question in asked if question.bonus}


def _weights(root: Path, assignment: str, rules: Rules) -> dict[str, float]:
    """What each graded cell adds to the maximum: nothing, if it is a bonus or was dropped."""
    none = _bonus(assignment) | set(rules.dropped)
    return {
        name: 0.0 if question_of(name) in none else points
        for name, points in _points(root, assignment).items()
    }


def _weigh(book, root: Path, assignment: str, rules: Rules) -> None:
    """Set the gradebook's maximum to that of the rules. nbgrader itself knows no bonus."""
    (notebook,) = book.find_assignment(assignment).notebooks
    weights = _weights(root, assignment, rules)
    for cell in notebook.grade_cells:
        if cell.max_score != weights[cell.name]:
            cell.max_score = weights[cell.name]
    book.db.commit()


def _generate(root: Path, url: str, name: str) -> None:
    """nbgrader's `generate_assignment`: the version without solutions, and its cells in the database."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.preprocessors import ClearSolutions
    from nbgrader.utils import capture_log
    from traitlets.config import Config

    from .student_version import GivenSolutions

    config = Config()
    config.CourseDirectory.root = str(root.resolve())
    config.CourseDirectory.db_url = url
    config.CourseDirectory.course_id = COURSE
    config.CourseDirectory.assignment_id = name
    course = CourseDirectory(config=config)
    app = GenerateAssignment(coursedir=course, config=config)
    app.preprocessors = [GivenSolutions if step is ClearSolutions else step for step in app.preprocessors]
    app.force = app.create_assignment = True
    result = capture_log(app)
    if not result["success"]:
        raise RuntimeError(
            f"nbgrader could not release {name}:\n{result.get('log', '')}{result.get('error', '')}"
        )


# ---- one submission ----


def _id(cell) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def graft(released, submitted):
    """The released notebook with a student's answers: ids, points, tags and locks stay the teacher's.

    It holds everything that the student wrote. A written answer is all of its pieces: its cells, however many
    there are, what was typed into the question's cell, and cells that stand where the answer should. Whatever
    else the student added or changed follows the cell that it followed, marked as `own`; outputs are left
    out. The prose of a notebook in another language is shown as the student read it. Notebooks are
    NotebookNodes; none is changed.
    """
    ours = {cell.id: cell for cell in released.cells}
    written = {_id(cell) for cell in released.cells if _is_written(cell)}
    asks = {before.id: _id(cell) for before, cell in itertools.pairwise(released.cells) if _is_written(cell)}
    given: dict[str, str] = {}  # a text that we gave out: the id of its cell
    for cell in itertools.chain(released.cells, filter(assignments.given_out, submitted.cells)):
        if cell.get("id") in ours:
            given.setdefault(cell.source.strip(), cell.id)
    home = functools.partial(_home, ours, given)
    labels = Counter(_id(cell) for cell in submitted.cells)
    answers, pieces, others, read = {}, {name: [] for name in written}, [], {}  # others: what each follows
    at = place = None  # the released cell that came last, and the answer that would stand here
    for cell in submitted.cells:
        source, which = cell.source.strip(), home(cell)
        name = _id(ours[which]) if which else ""
        if name in written and labels[name] > 1 and place not in (None, name):
            name = place  # a copy that the student took along to another question
        elif which:
            at, place = which, name if name in written else asks.get(which)
        if not name and which and source in given and cell.cell_type == "markdown":
            read[which] = cell.source
        if (not source or source in given) and "attachments" not in cell:
            continue
        if name in written:
            pieces[name].append(cell)
        elif name and ours[which].metadata.nbgrader.get("solution"):
            if name in answers:  # the last one counts
                others.append((which, answers[name]))
            answers[name] = cell
        elif which in asks and ours[which].cell_type == "markdown":
            pieces[asks[which]].append(_below(cell, [text for text in given if given[text] == which]))
        elif place and not which:
            pieces[place].append(cell)
        else:
            others.append((at, cell))
    return _assembled(released, pieces, answers, read, _extras(others))


def _assembled(released, pieces: Mapping, answers: Mapping, read: Mapping, extras: Mapping):
    """The released notebook with all of these in their places; no two cells share an id."""
    result = copy.deepcopy(released)
    result.cells = extras.get(None, [])
    for cell in copy.deepcopy(released.cells):
        if pieces.get(_id(cell)):
            _join(cell, pieces[_id(cell)])
        elif _id(cell) in answers:
            cell.source = answers[_id(cell)].source
        cell.source = read.get(cell.id, cell.source)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        result.cells += [cell, *extras.get(cell.id, [])]
    seen = set()
    for n, cell in enumerate(result.cells):
        if cell.get("id") in seen:
            cell.id = f"{cell.id[:50]}-{n}"
        seen.add(cell.get("id"))
    return result


def _is_written(cell) -> bool:
    entry = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "markdown" and bool(entry.get("grade") and entry.get("solution"))


def _home(ours: Mapping, given: Mapping[str, str], cell) -> str | None:
    """The id of the released cell that a student's cell is, by nbgrader's id, its own id, or its text."""
    for which, known in ours.items():
        if _id(cell) and _id(known) == _id(cell):
            return which
    if cell.get("id") in ours:
        return cell.id
    which = given.get(cell.source.strip())
    return None if which is None or _is_written(ours[which]) else which  # all empty answers are alike


def _below(cell, given: Iterable[str]):
    """What was typed into a question's cell below the question; all of it where the question was changed."""
    cell = copy.deepcopy(cell)
    for text in given:
        cell.source = cell.source.strip().removeprefix(text)
    return cell


def _join(answer, pieces) -> None:
    """Fill an answer's cell with its pieces, one below the other, with the pictures of each."""
    texts, attachments = [], {}
    for piece in pieces:
        text = piece.source.strip() if len(pieces) > 1 else piece.source
        if piece.cell_type == "code":
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            text = f"{fence}\n{text}\n{fence}"
        for name, picture in piece.get("attachments", {}).items():
            new = name
            while attachments.get(new, picture) != picture:
                new = f"{len(attachments)}-{new}"
            attachments[new] = picture
            text = text.replace(f"attachment:{name}", f"attachment:{new}")
        texts.append(text)
    answer.source = "\n\n".join(texts)
    if attachments:
        answer.attachments = attachments


def _extras(others) -> dict[str | None, list]:
    """What a student wrote elsewhere, by the id of the cell that it follows; no more than one can read."""
    extras: dict[str | None, list] = {}
    cells = letters = left = 0
    for at, cell in others:
        cells, letters = cells + 1, letters + len(cell.source)
        if cells > MOST_EXTRA_CELLS or letters > MOST_EXTRA_LETTERS:
            left += 1
        else:
            extras.setdefault(at, []).append(_plain(cell))
    if left:
        extras.setdefault(None, []).insert(
            0,
            _plain(
                nbformat.v4.new_markdown_cell(
                    f"**{left} more cells of the student's own are not shown here.** Look at the notebook "
                    "as it was "
                    "handed in, in the folder `submitted`.",
                    id="not-shown",
                )
            ),
        )
    return extras


def _plain(cell):
    """A cell of the student's own, without anything of ours; a raw cell is shown as text."""
    if cell.cell_type == "code":
        return nbformat.v4.new_code_cell(cell.source, id=cell.id, metadata={"own": True})
    return nbformat.v4.new_markdown_cell(
        cell.source, id=cell.id, metadata={"own": True}, attachments=cell.get("attachments", {})
    )


def own(shown) -> list:
    """The cells of a `graft` that are a student's own, and are not part of an answer."""
    return [cell for cell in shown.cells if cell.metadata.get("own")]


def marked_copy(root: Path, assignment: str, student: str, marks: Mapping):
    """The notebook that formgrader shows for a submission, whatever its state."""
    released = _release(root, assignment)
    path = Path(root) / "submitted" / student / assignment / f"{assignment}.ipynb"
    if marks["state"] != "rejected" and path.exists():
        submitted = nbformat.reads(files.read(path, MOST_BYTES).decode(), as_version=4)
        return graft(released, submitted)
    released.cells.insert(
        0,
        nbformat.v4.new_markdown_cell(
            f"**This submission was not taken in.** {marks.get('reason', '')}", id="not-taken-in"
        ),
    )
    return released


def _number(found: Mapping, most: float) -> float | None:
    """A question's points, within what it can give; None for anything but a number.

    What it can give stands in the notebook. Where a check has another maximum, the share of it counts.
    """
    value, of = found.get("points"), found.get("max")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    if isinstance(of, (int, float)) and math.isfinite(of) and of > 0:
        value = value * most / of
    return min(max(float(value), 0.0), most)


def coded(marks: Mapping, question: str, most: float) -> float | None:
    """The automatic score of one coded question; None is "no score": somebody has to look.

    A rejected submission scores 0, and so does a question for which time ran out. A grader error
    never does.
    """
    found = marks["questions"].get(question)
    if marks["state"] == "grader error":
        return None
    if marks["state"] == "rejected" or (found is None and marks["state"] == "timed out"):
        return 0.0
    return _number(found, most) if isinstance(found, Mapping) else None


def _score(marks: Mapping, cell: str, points: Mapping[str, float], rules: Rules) -> float | None:
    """`coded`, under the rules."""
    question, most = question_of(cell), points[cell]
    if question in rules.dropped:
        return 0.0
    if question in rules.given and marks["state"] in ("graded", "timed out"):
        return most
    return coded(marks, question, most)


def given(grade) -> float | None:
    """The score of one of nbgrader's grades with extra credit; None where nobody has given one yet."""
    return _with_hand(grade, grade.auto_score)


def _with_hand(grade, auto: float | None) -> float | None:
    """What the score would be with the automatic part ``auto``: what a person gave takes precedence."""
    score = auto if grade.manual_score is None else grade.manual_score
    return None if score is None else score + (grade.extra_credit or 0.0)


def question_of(cell: str) -> str:
    """The question that a graded cell belongs to: ``check_<name>`` is the test of ``<name>``."""
    return cell.removeprefix("check_")


def _seconds(root: Path, assignment: str, student: str) -> datetime.datetime | None:
    """When the submission that counts was sent, in UTC without a zone, as nbgrader stores it."""
    seconds = intake.record(root, assignment, student).get("seconds_of_upload")
    if seconds is None:
        return None
    return clock.moment(seconds)


def _utc(due: datetime.datetime | str, rules: Rules) -> datetime.datetime:
    """A due date in UTC without a zone; one that names no zone is in that of the class."""
    if isinstance(due, str):
        due = datetime.datetime.fromisoformat(due)
    return clock.utc(due, clock.zone(rules.zone))


def _penalty(sent, due, extension: datetime.timedelta | None, rules: Rules, most: float) -> float | None:
    """The points that being late costs; None for none. Times are in UTC without a zone.

    A share of the maximum, not of the score, so that it does not depend on what is still to be marked.
    """
    if sent is None or due is None:
        return None
    return round(rules.late_share(due + (extension or datetime.timedelta()), sent) * most, 2) or None


def enter(
    book,
    root: Path,
    assignment: str,
    student: str,
    marks: Mapping,
    rules: Rules,
    listed: roster.Roster | None = None,
) -> None:
    """Write one submission into the gradebook, and the copy for formgrader into ``autograded/``.

    What a person gave (scores, extra credit, comments) is never touched. A written answer that was marked
    needs marking again only when its text has changed, and a coded one when its automatic score has. An empty
    one is scored 0 automatically, unless the student wrote something elsewhere that may be the answer.
    An extension that was given in nbgrader holds where neither ``rules`` nor the class list has one.
    """
    shown = marked_copy(root, assignment, student, marks)
    released = digests(_release(root, assignment))
    now, last = digests(shown), Path(root) / "marks" / assignment / ".entered" / f"{student}.json"
    before = kept.load(last, f"Answers of {student} that you have marked are to be marked again.")
    sent, points = _seconds(root, assignment, student), _points(root, assignment)
    book.update_or_create_student(student)
    with book.db.no_autoflush:
        submission = book.update_or_create_submission(assignment, student, timestamp=sent)
    (notebook,) = submission.notebooks
    written = {cell.name for cell in notebook.notebook.solution_cells}
    untouched = {name for name in now if now[name] == released[name]} - (written if own(shown) else set())
    untouched -= unseen(root, assignment, student)
    for grade in notebook.grades:
        if grade.name in written:
            _enter_written(
                grade, marks["state"], grade.name in untouched, before.get(grade.name) != now[grade.name]
            )
        else:
            _enter_coded(grade, _score(marks, grade.name, points, rules))
    for comment in notebook.comments:
        comment.auto_comment = _comment(marks, comment.name, comment.name in untouched)
    listed, due = roster.read(root) if listed is None else listed, submission.assignment.duedate
    extension = rules.extension(student, listed, due)
    if extension is not None:
        submission.extension = extension
    notebook.late_submission_penalty = _penalty(
        submission.timestamp, due, submission.extension, rules, notebook.max_score
    )
    book.db.commit()
    files.replace(last, (json.dumps(now, indent=1, sort_keys=True) + "\n").encode())
    path = Path(root) / "autograded" / student / assignment / f"{assignment}.ipynb"
    files.replace(path, (nbformat.writes(shown) + "\n").encode())
    if sent is not None:
        files.replace(path.with_name("timestamp.txt"), f"{sent:%Y-%m-%d %H:%M:%S.%f} UTC".encode())


def digests(notebook) -> dict[str, str]:
    """A digest of each cell with an id, pictures included."""
    return {
        _id(cell): hashlib.sha256(f"{cell.source}{cell.get('attachments') or ''}".encode()).hexdigest()
        for cell in notebook.cells
        if _id(cell)
    }


def _enter_written(grade, state: str, untouched: bool, changed: bool) -> None:
    grade.auto_score = 0.0 if untouched and state != "grader error" else None
    if grade.manual_score is None:
        grade.needs_manual_grade = grade.auto_score is None
    elif changed:
        grade.needs_manual_grade = True


def _enter_coded(grade, score: float | None) -> None:
    changed = grade.auto_score != score
    grade.auto_score = score
    if grade.manual_score is None:
        grade.needs_manual_grade = score is None
    elif changed:
        grade.needs_manual_grade = True


def _comment(marks: Mapping, name: str, untouched: bool) -> str | None:
    """The automatic comment on an answer: the check's diagnosis, or that there is no answer."""
    found = marks["questions"].get(name)
    text = found.get("text") if isinstance(found, Mapping) else None
    if text:
        return str(text).replace("\0", "�")
    return "No response." if untouched and marks["state"] != "grader error" else None


def merge(
    root: Path,
    assignment: str,
    marks: Mapping[str, Mapping],
    *,
    due: datetime.datetime | str | None = None,
    rules: Rules | None = None,
    db: str | None = None,
) -> dict[str, str]:
    """Enter the marks of a class (student → marks JSON) for one exercise.

    ``due`` is the time from which submissions are late (without a zone: in the class's); None keeps the one
    that is set, for instance in formgrader. ``rules`` are by default those kept for the exercise. Entering
    the same marks again changes nothing. A student who cannot be entered becomes a grader error with the
    reason, and all others are entered: returns ``{student: reason}`` of the failures. Raises ValueError for
    an exercise that `prepare` has not seen, RuntimeError while another program holds the database.
    """
    from sqlalchemy.exc import OperationalError

    rules, listed = rules or _rules.load(root, assignment), roster.read(root)
    with alone(root), gradebook(root, db) as book:
        found = _assignment(book, assignment)
        if due is not None:
            found.duedate = _utc(due, rules)
            book.db.commit()
        _weigh(book, root, assignment, rules)
        failed = {}
        for student in sorted(marks):
            try:
                enter(book, root, assignment, student, marks[student], rules, listed)
            except OperationalError:
                raise  # nobody's submission is to blame
            except Exception as problem:  # one submission must not stop the class
                book.db.rollback()
                failed[student] = (
                    f"It could not be entered into the gradebook ({type(problem).__name__}: "
                    f"{problem}). Look at the notebook, and grade again."
                )
                files.replace(
                    Path(root) / "marks" / assignment / f"{student}.json",
                    json.dumps(
                        {**marks[student], "state": "grader error", "reason": failed[student]}, indent=1
                    ).encode(),
                )
        return failed


def _assignment(book, name: str):
    """nbgrader's record of an exercise; ValueError where `prepare` has not seen it."""
    from nbgrader.api import MissingEntry

    try:
        return book.find_assignment(name)
    except MissingEntry:
        known = ", ".join(sorted(a.name for a in book.assignments)) or "none"
        raise ValueError(
            f"{name!r} is no exercise of this class; known are: {known}. Call prepare first."
        ) from None


def changes(
    root: Path,
    assignment: str,
    marks: Mapping[str, Mapping],
    rules: Rules,
    *,
    due: datetime.datetime | str | None = None,
    db: str | None = None,
) -> list[dict]:
    """What `merge` with the same arguments would change for those who have points; writes nothing.

    One row for each student whose points would change: ``student``, ``before`` and ``after`` (points of all
    answers that have been marked, less the late penalty), ``because`` (from the name of a question, or "late
    penalty", to the points before and after; None where there are none).
    """
    points, listed = _points(root, assignment), roster.read(root)
    most = sum(_weights(root, assignment, rules).values())
    rows = []
    with gradebook(root, db) as book:
        found = _assignment(book, assignment)
        due = found.duedate if due is None else _utc(due, rules)
        for submission in found.submissions:
            if (own := marks.get(submission.student_id)) is None:
                continue
            (notebook,) = submission.notebooks
            written = {cell.name for cell in notebook.notebook.solution_cells}
            pairs = {
                question_of(grade.name): (
                    given(grade),
                    given(grade)
                    if grade.name in written
                    else _with_hand(grade, _score(own, grade.name, points, rules)),
                )
                for grade in notebook.grades
            }
            extension = rules.extension(submission.student_id, listed, due)
            late = _penalty(
                _seconds(root, assignment, submission.student_id),
                due,
                submission.extension if extension is None else extension,
                rules,
                most,
            )
            pairs["late penalty"] = (0.0 - (notebook.late_submission_penalty or 0.0), 0.0 - (late or 0.0))
            before, after = (max(0.0, sum(pair[n] or 0.0 for pair in pairs.values())) for n in (0, 1))
            if because := {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}:
                rows.append(
                    {"student": submission.student_id, "before": before, "after": after, "because": because}
                )
    return sorted(rows, key=lambda row: row["student"])
