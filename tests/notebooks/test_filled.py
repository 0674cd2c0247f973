"""Notebooks with their blanks filled in run whole, on the learner's code. Empty they run in nbval."""

import ast

import nbformat
import pytest

from tutorial_lib.course import authoring
from tutorial_lib.lesson import turns

PATHS = [path for path in authoring.known() if path.parent.name != "solutions" and path.exists()
         and "your_turn(" in path.read_text(encoding="utf-8")]


def filled(source):
    """A cell with a blank, with the course's own version in its place."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and f"{node.name} = lesson.your_turn(" in source:
            key = source.split("lesson.your_turn(")[1].split('"')[1]
            lines = source.splitlines()
            lines[node.lineno - 1:node.end_lineno] = turns.solution(turns.find(key)).splitlines()
            return "\n".join(lines)
    raise ValueError(source)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_runs_on_the_learners_code(path):
    notebook = nbformat.read(path, as_version=4)
    asked = [cell for cell in notebook.cells if "lesson.your_turn(" in cell.source]
    assert len(asked) >= 1
    for cell in asked:
        cell.source = filled(cell.source)
    authoring.execute(notebook, path.parent)
    for cell in asked:
        said = "".join(output.data["text/plain"] for output in cell.outputs if "data" in output)
        assert "✔ Right." in said, cell.source
