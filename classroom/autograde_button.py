"""nbgrader's "Autograde" button in a class folder: it enters the marks we already have, and runs nothing."""

from __future__ import annotations

from pathlib import Path

from nbconvert.preprocessors import Preprocessor
from traitlets import Bool

from . import gradebook, rules


def _marks(resources) -> tuple[Path, str, str, dict]:
    root = Path(resources["metadata"]["path"]).parents[2]  # <root>/submitted/<student>/<assignment>
    assignment, student = resources["nbgrader"]["assignment"], resources["nbgrader"]["student"]
    marks = gradebook.load_marks(root, assignment).get(student)
    if marks is None:
        raise RuntimeError(
            f"{student} has no marks for {assignment} yet: run "
            f"`python -m classroom grade --root {root}` first"
        )
    return root, assignment, student, marks


class Graft(Preprocessor):
    """The student's answers in the released notebook."""

    enabled = Bool(True)

    def preprocess(self, nb, resources):
        return gradebook.marked_copy(*_marks(resources)), resources


class Enter(Preprocessor):
    """Marks from their JSON into the gradebook."""

    enabled = Bool(True)

    def preprocess(self, nb, resources):
        root, assignment, student, marks = _marks(resources)
        with gradebook.gradebook(root, resources["nbgrader"]["db_url"]) as book:
            gradebook.enter(book, root, assignment, student, marks, rules.load(root, assignment))
        return nb, resources
