"""A class with one exercise: a coded question (4 points) and a written one (2)."""

import functools
import json
import os
import shutil
from pathlib import Path

import nbformat
import pytest

from classroom import gradebook, intake, marking

NAME = "ex06_rope"


def cell(kind: str, source: str, name: str, **given):
    """A cell with nbgrader's metadata."""
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    new = make(source, id=name)
    new.metadata["nbgrader"] = {
        "grade_id": name,
        "schema_version": 3,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
        **given,
    }
    return new


def solution():
    """The notebook with its solution."""
    return nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# Rotations", id="title"),
            cell(
                "code",
                "def answer(x):\n    ### BEGIN SOLUTION\n    return 41 + x\n    ### END SOLUTION",
                "answer",
                solution=True,
            ),
            cell("code", "check.answer(answer)", "check_answer", grade=True, locked=True, points=4),
            cell("markdown", "Because it is so.", "explain_why", grade=True, solution=True, points=2),
        ],
        metadata={"kernelspec": intake.KERNEL},
    )


class Classroom:
    """A class folder, and what a test does with it."""

    name = NAME
    cell = staticmethod(cell)

    def __init__(self, root: Path):
        self.root = root

    def released(self):
        return nbformat.read(self.root / "release" / NAME / f"{NAME}.ipynb", as_version=4)

    def send(
        self,
        student: str,
        why: str = "Since the angles add up.",
        code: str = "def answer(x): return x",
        seconds: int = 1_700_000_000,
        change=None,
    ):
        """A student's upload is taken in."""
        notebook = self.released()
        for one in notebook.cells:
            name = one.metadata.get("nbgrader", {}).get("grade_id")
            one.source = {"answer": code, "explain_why": why}.get(name, one.source)
        if change:
            change(notebook)
        path = self.root / "inbox" / student / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        os.utime(path, (seconds, seconds))
        return intake.take_in(self.root / "inbox", self.root, [NAME])

    def marks(self, student: str, points: float = 3.0, state: str = "graded", **verdict) -> dict:
        """Marks as the grader writes them, also into their file."""
        found = {
            "points": points,
            "max": 4.0,
            "passed": points == 4,
            "kind": "mistake",
            "name": "",
            "text": "",
            "reread": "",
            "tried_library": [],
            **verdict,
        }
        marks = {
            "assignment": NAME,
            "student": student,
            "state": state,
            "reason": "",
            "sha256": "",
            "checks_version": "1",
            "questions": {"answer": found} if state == "graded" else {},
            "written": ["explain_why"],
            "remarks": [],
        }
        path = self.root / "marks" / NAME / f"{student}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(marks))
        return marks

    def merge(self, marks: dict | None = None, **options):
        gradebook.merge(
            self.root, NAME, gradebook.load_marks(self.root, NAME) if marks is None else marks, **options
        )

    def grade(self, student: str, cell: str, db: str | None = None, **change) -> dict:
        """One grade as nbgrader has it, after ``change``, which is what formgrader does."""
        with gradebook.gradebook(self.root, db) as book:
            grade = book.find_grade(cell, NAME, NAME, student)
            for key, value in change.items():
                setattr(grade, key, value)
            book.db.commit()
            return grade.to_dict()

    def comment(self, student: str, cell: str, text: str):
        with gradebook.gradebook(self.root) as book:
            book.find_comment(cell, NAME, NAME, student).manual_comment = text
            book.db.commit()

    def dump(self, db: str | None = None) -> dict:
        """Every table, with names in place of random ids and without times."""
        from sqlalchemy import inspect, text

        with gradebook.gradebook(self.root, db) as book:
            with book.engine.connect() as connection:
                found = {
                    table: list(connection.execute(text(f'SELECT * FROM "{table}"')).mappings())
                    for table in inspect(book.engine).get_table_names()
                }
        names = {}
        for table in ("assignment", "notebook", "base_cell", "source_cell"):
            names |= {row["id"]: f"{table} {row['name']} {row.get('type', '')}" for row in found[table]}
        for table, owner in (("submitted_assignment", "student_id"), ("submitted_notebook", "assignment_id")):
            names |= {row["id"]: f"{table} of {names.get(row[owner], row[owner])}" for row in found[table]}

        def plain(table, row):
            if "duedate" in row:
                row = dict(row) | {"duedate": str(row["duedate"])[:19]}  # SQLite gives text
            row = {
                key: int(value) if isinstance(value, bool) else names.get(value, value)
                for key, value in row.items()
                if key != "timestamp"
            }
            if table in ("grade", "comment"):
                del row["id"]  # random, and no other table speaks of it
            return str(sorted(row.items()))

        return {table: sorted(plain(table, row) for row in rows) for table, rows in found.items()}


@pytest.fixture(scope="session", autouse=True)
def tested_once():
    """The marker tests itself before each run, in two sandboxes: here once for each exercise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marking, "self_test", functools.cache(marking.self_test))
        yield


@pytest.fixture(scope="module")
def marked_here():
    """Marking in this process: what has the same code runs once, since all have the inputs of one student.

    For classes of which something else is asked. Workers and inputs: test_commands.py, test_marking.py.
    """
    seeds_of = marking.seeds_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marking, "seeds_of", lambda secret, name, student, data: seeds_of("", name, "", b""))
        patch.setattr(marking, "_run", functools.cache(marking._run))
        patch.setattr(marking, "_on_processes", lambda jobs, count: (marking._mark(job) for job in jobs))
        yield


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """A class folder without submissions; never used itself, only copied."""
    root = tmp_path_factory.mktemp("prepared")
    nbformat.write(solution(), root / "solution.ipynb")
    gradebook.prepare(root, {NAME: root / "solution.ipynb"})
    return root


@pytest.fixture
def room(prepared, tmp_path) -> Classroom:
    shutil.copytree(prepared, tmp_path / "class")
    return Classroom(tmp_path / "class")
