"""Nothing that a student wrote goes unseen: in pieces, without nbgrader's metadata, in the wrong place.

By the commands, from the inbox to the pages that a teacher marks by.
"""

import csv
import html
import re

import nbformat
import pytest

from classroom import __main__ as command
from classroom import assignments
from workshop import translation

NAME = "ex06_rope"
FIRST, SECOND = "explain_rope_layout", "explain_rope_rounding"
STUB = "*Write your answer here.*"


def at(notebook, name: str) -> int:
    """The place of the cell of a written answer."""
    return next(
        n
        for n, cell in enumerate(notebook.cells)
        if cell.metadata.get("nbgrader", {}).get("grade_id") == name
    )


def text(source: str, **more):
    return nbformat.v4.new_markdown_cell(source, **more)


def again(notebook, name: str, source: str):
    """A copy of an answer's cell below it, as JupyterLab copies and splits cells."""
    place = at(notebook, name)
    notebook.cells.insert(place + 1, text(source, metadata=notebook.cells[place].metadata))


# ---- the ways; each has words for the first question and for the second ----
def pieces(notebook):
    notebook.cells[at(notebook, FIRST)].source = "One alpha: lengths stay."
    again(notebook, FIRST, "Two beta: both turn alike.")
    notebook.cells[at(notebook, SECOND)].source = "Three gamma: the positions."
    again(notebook, SECOND, "")
    again(notebook, SECOND, STUB)


def stripped(notebook):
    notebook.cells[at(notebook, FIRST)] |= {"source": "One delta: lengths stay.", "metadata": {}}
    notebook.cells[at(notebook, SECOND)] = text("Two epsilon: the positions.")


def bare(notebook):
    """No metadata and no ids, as other programs store a notebook."""
    notebook.cells[at(notebook, FIRST)].source = "One zeta: lengths stay."
    for cell in notebook.cells:
        cell.metadata = {}
        del cell["id"]
    notebook.nbformat_minor = 4


def beside(notebook):
    """Below the question, in its own cell; and between the quotes of `check.model_answer`."""
    notebook.cells[at(notebook, FIRST) - 1].source += "\n\nOne eta: lengths stay."
    notebook.cells[
        at(notebook, SECOND) + 1
    ].source = 'check.model_answer("rope_rounding", "Two theta: the positions.")'


def kinds(notebook):
    place = at(notebook, FIRST)
    notebook.cells[place] = nbformat.v4.new_code_cell("One iota: lengths stay.")
    notebook.cells[at(notebook, SECOND)] |= {"cell_type": "raw", "source": "Two kappa: the positions."}


def elsewhere(notebook):
    notebook.cells.append(text("One lambda and two lambda: they stay."))


def copied(notebook):
    """The cell of the first answer, copied to where the second one was."""
    place = at(notebook, FIRST)
    notebook.cells[place].source = "One mu: lengths stay."
    label = notebook.cells[place].metadata
    notebook.cells[at(notebook, SECOND)] = text("Two nu: the positions.", metadata=label)


def chinese(notebook):
    notebook.cells = translation.translate(NAME, translation.speakers("zh")).cells
    for name in (FIRST, SECOND):
        notebook.cells[at(notebook, name)].source = STUB
    notebook.cells[at(notebook, FIRST)].source = "One xi: lengths stay."


def nothing(notebook):
    again(notebook, FIRST, STUB)


WAYS = {
    way.__name__: way for way in (pieces, stripped, bare, beside, kinds, elsewhere, copied, chinese, nothing)
}


@pytest.fixture(scope="module")
def root(tmp_path_factory, marked_here):
    root = tmp_path_factory.mktemp("class")
    for student, way in WAYS.items():
        notebook = nbformat.read(assignments.path(NAME, "exercises"), as_version=4)
        way(notebook)
        paths = [root / "inbox" / student / f"{NAME}.ipynb"]
        if way is bare:  # and as nbgrader collects it
            paths.append(root / "submitted" / "collected" / NAME / f"{NAME}.ipynb")
        for path in paths:
            path.parent.mkdir(parents=True)
            path.write_text(nbformat.writes(notebook), encoding="utf-8")
    for given in (
        ["take-in", str(root / "inbox")],
        ["grade", NAME, "--trusted"],
        ["written", NAME],
        ["feedback", NAME],
    ):
        assert command.main([*given, "--root", str(root)]) == 0
    return root


def seen(root, question: str, student: str) -> str:
    """What the page of a question shows of a student."""
    page = (root / "written" / NAME / f"{question}.html").read_text(encoding="utf-8")
    (section,) = re.findall(rf"<section><h3>{student}: .*?</section>", page, re.DOTALL)
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", section)).split())


def waiting(root) -> set[tuple[str, str]]:
    with open(root / "written" / NAME / "marks.csv", encoding="utf-8-sig", newline="") as file:
        return {(row["student"], row["question"]) for row in csv.DictReader(file) if not row["points"]}


@pytest.mark.parametrize(
    "student, first, second",
    [
        (
            "pieces",
            ["One alpha: lengths stay.", "Two beta: both turn alike."],
            ["Three gamma: the positions."],
        ),
        ("stripped", ["One delta: lengths stay."], ["Two epsilon: the positions."]),
        ("bare", ["One zeta: lengths stay."], []),
        ("collected", ["One zeta: lengths stay."], []),
        ("beside", ["One eta: lengths stay."], ["Two theta: the positions."]),
        ("kinds", ["One iota: lengths stay."], ["Two kappa: the positions."]),
        ("elsewhere", ["One lambda and two lambda: they stay."], ["One lambda and two lambda: they stay."]),
        ("copied", ["One mu: lengths stay."], ["Two nu: the positions."]),
        ("chinese", ["One xi: lengths stay."], []),
        ("nothing", [], []),
    ],
)
def test_the_marker_sees_all_that_was_written(root, student, first, second):
    for question, words in ((FIRST, first), (SECOND, second)):
        shown = seen(root, question, student)
        assert all(one in shown for one in words), shown
        assert ((student, question) in waiting(root)) == bool(words), question
    assert "Two nu" not in seen(root, FIRST, "copied")


def test_pieces_come_in_their_order_and_an_answer_is_no_note_beside(root):
    shown = seen(root, FIRST, "pieces")
    assert shown.index("One alpha") < shown.index("Two beta") and "of their own" not in shown
    assert "of their own" not in seen(root, SECOND, "chinese") + seen(root, FIRST, "nothing")
    assert "1 cell of their own elsewhere in the notebook" in seen(root, SECOND, "elsewhere")
    assert "A colleague loads" not in seen(root, FIRST, "beside")  # the question that it was typed below


def test_the_student_sees_what_was_marked(root):
    page = (root / "feedback" / "pieces" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "One alpha" in page and "Two beta" in page and "all of them are read" in page
    page = (root / "feedback" / "stripped" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "Two epsilon" in page and "what stands in its place is read" in page


def test_formgraders_copy_holds_all_of_it_once(root):
    for student, words in (
        ("pieces", ["One alpha", "Two beta"]),
        ("beside", ["One eta", "Two theta"]),
        ("bare", ["One zeta"]),
        ("kinds", ["One iota", "Two kappa"]),
    ):
        path = root / "autograded" / student / NAME / f"{NAME}.ipynb"
        shown = nbformat.read(path, as_version=4)
        nbformat.validate(shown)
        for one in words:
            assert sum(one in cell.source for cell in shown.cells) == 1, (student, one)
