"""Every exercise with its solution passes all of its checks, and as a student gets it none."""

import nbformat
import pytest

from course.checks import NotYet, questions
from workshop import exercises


@pytest.mark.parametrize("name", exercises.names())
@pytest.mark.parametrize("source", ["solutions", "exercises"])
def test_checks_pass_in_the_solution_and_fail_in_the_stub(name, source, monkeypatch, tmp_path):
    """nbgrader gives the points of a cell that raises nothing."""
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))
    for module in ("alibi", "board", "buckets"):  # what is learned in an ending gives no points
        monkeypatch.setattr(f"course.real_models.{module}.STEPS", 10)
    passed, failed, namespace = set(), {}, {"__name__": "__main__", "display": print}
    for cell in nbformat.read(exercises.path(name, source), as_version=4).cells:
        if cell.cell_type == "code":
            which = cell.metadata.get("nbgrader", {}).get("grade_id", cell.id)
            try:
                exec(compile(cell.source, which, "exec"), namespace)
                passed.add(which)
            except Exception as error:
                failed[which] = error
    checks = {f"check_{q.name}" for q in questions.load(exercises.number(name))}
    if source == "solutions":
        assert not failed and passed >= checks
    else:
        assert not passed & checks and {type(failed[check]) for check in checks} == {NotYet}
