"""An exercise as a student meets it: in a real JupyterLab, in a real browser."""

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe

from course.checks import questions
from course.checks.question import Question
from workshop import exercises

NAME = "ex06_rope"
ASKED = questions.load("06")
WRONG: Question = next(q for q in ASKED if q.picture == "heat")

ALL_RAN = """() => __panel.content.model.toJSON().cells.every(
    cell => cell.cell_type !== 'code' || !cell.source || cell.execution_count)"""


@pytest.fixture(scope="module")
def notebook(lab):
    """The exercise, run from top to bottom: one answer is right, one a catalogued mistake, the rest stubs."""
    book = nbformat.read(exercises.path(NAME, "exercises"), as_version=4)
    right = next(q for q in ASKED if q is not WRONG)
    where = {cell.metadata.nbgrader.grade_id: cell for cell in book.cells if "nbgrader" in cell.metadata}
    for question, answer in ((right, "reference"), (WRONG, "wrong[0].answer")):
        where[question.name].source = (
            "from course.checks import questions\n"
            f"{question.name} = questions.find('{question.name}').{answer}"
        )
    nbformat.write(book, lab.folder / "mine.ipynb")
    notebook = lab.open("mine.ipynb")
    notebook.right = right
    notebook.begin()
    # JupyterLab calls the run finished at the first check that fails; the rest is still to come.
    notebook.page.wait_for_function(ALL_RAN, timeout=300e3, polling=500)
    notebook.idle()
    yield notebook
    notebook.close()


def outputs(notebook, grade_id):
    """``(place, text, outputs)`` of one cell."""
    for n, cell in enumerate(notebook.cells()):
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id:
            text = "".join("".join(output.get("text", "")) for output in cell["outputs"])
            return n, text, cell["outputs"]
    raise AssertionError(grade_id)


def seen(notebook):
    """What became of each code cell, to be read when something is wrong."""
    return "\n".join(
        f"{cell['execution_count']} {cell['source'][:50]!r} {str(cell['outputs'])[:300]}"
        for cell in notebook.cells()
        if cell["cell_type"] == "code"
    )


def test_run_all_goes_on_and_each_check_that_fails_shows_one_line(notebook):
    code = [cell for cell in notebook.cells() if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code), seen(notebook)
    for question in ASKED:
        n, text, shown = outputs(notebook, f"check_{question.name}")
        errors = [output for output in shown if output["output_type"] == "error"]
        if question is notebook.right:
            assert text.startswith(f"✓ {question.name}: Right") and not errors, seen(notebook)
        else:
            assert text.startswith(f"✗ {question.name}: ") and len(errors) == 1, seen(notebook)
            assert len(errors[0]["traceback"]) == 1 and "\n" not in errors[0]["traceback"][0]
            if question is not WRONG:
                assert "NotImplementedError" not in notebook.cell(n).inner_text() or "not written yet" in text


def test_a_wrong_answer_is_named_with_a_picture_that_says_what_it_shows(notebook):
    n, text, shown = outputs(notebook, f"check_{WRONG.name}")
    assert WRONG.wrong[0].says in text and "Read again: 06" in text, seen(notebook)
    cell = notebook.cell(n)
    cell.scroll_into_view_if_needed()
    picture = cell.locator("img")
    picture.first.wait_for()
    assert "Target beside your answer" in picture.first.get_attribute("alt")


def test_the_progress_panel_knows_what_is_passed(notebook):
    last = [cell for cell in notebook.cells() if "progress" in cell["metadata"].get("tags", [])][-1]
    text = "".join(last["outputs"][0]["data"]["text/plain"])
    rows = dict(line.split(" | ", 1) for line in text.split("\n")[1:])
    assert {name for name, row in rows.items() if "| yes |" in row} == {notebook.right.name}, text


def test_axe_finds_nothing_serious(notebook):
    found = Axe().run(notebook.page, context={"include": [[".jp-Notebook .jp-OutputArea"]]}).response
    assert not [rule["help"] for rule in found["violations"] if rule["impact"] in ("serious", "critical")]
    assert not notebook.noticed
