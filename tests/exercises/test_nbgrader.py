"""nbgrader's own commands on every exercise: generate, autograde, feedback, export, Validate."""

import csv
import shutil

import pytest

from tutorial_lib.course import exercises
from tutorial_lib.checks import questions

NAMES = exercises.names()


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with two students: one hands in the solutions, one the stubs. All is graded once."""
    folder = exercises.course(tmp_path_factory.mktemp("course"))
    interface = exercises.api(folder)
    for name in NAMES:
        result = interface.generate_assignment(name)
        assert result["success"], result
        for student, source in (("ada", "solutions"), ("stub", "exercises")):
            target = folder / "submitted" / student / name
            target.mkdir(parents=True)
            shutil.copy(exercises.path(name, source), target)
    return folder, interface


def scores(course, name, student):
    folder, interface = course
    with interface.gradebook as book:
        if student not in {one.id for one in book.students}:
            book.update_or_create_student(student)
    result = interface.autograde(name, student)
    assert result["success"], result
    with interface.gradebook as book:
        notebook = book.find_submission_notebook(name, name, student)
        return {grade.name: grade.auto_score for grade in notebook.grades if grade.name.startswith("check_")}


@pytest.mark.parametrize("name", NAMES)
def test_autograde_feedback_and_validate(course, name):
    """Full marks for the solution, none for the stub; feedback for both; Validate agrees."""
    folder, interface = course
    full = {f"check_{q.name}": q.points for q in questions.load(exercises.number(name))}
    assert scores(course, name, "ada") == full
    assert set(scores(course, name, "stub").values()) == {0}
    for student in ("ada", "stub"):
        result = interface.generate_feedback(name, student)
        assert result["success"], result
        assert (folder / "feedback" / student / name / f"{name}.html").stat().st_size > 1000
    validator = validate(exercises.path(name))
    assert "failed" not in validator and "error" not in validator, validator


def validate(path):
    from nbgrader.validator import Validator

    found = Validator().validate(str(path))
    assert isinstance(found, dict)
    return found


def test_validate_names_what_fails_in_a_stub():
    name = NAMES[0]
    found = validate(exercises.path(name, "exercises"))
    assert len(found["failed"]) >= 4
    assert "is not written yet" in str(found["failed"])


def test_export_lists_every_student_and_exercise(course, tmp_path):
    from nbgrader.plugins import CsvExportPlugin

    folder, interface = course
    target = tmp_path / "grades.csv"
    plugin = CsvExportPlugin()
    plugin.to = str(target)
    with interface.gradebook as book:
        plugin.export(book)
    rows = list(csv.DictReader(target.open()))
    assert {row["assignment"] for row in rows} == set(NAMES)
