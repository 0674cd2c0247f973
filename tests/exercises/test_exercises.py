"""The graded notebooks: complete, in normal form, and nothing of a solution in what a student gets."""

import re
from pathlib import Path

import nbformat
import pytest

from classroom import student_version
from course.checks import questions
from workshop import authoring, exercises

NAMES = exercises.names()
NOTEBOOKS = {path.stem[:2]: path for path in authoring.NOTEBOOKS.glob("[0-9]*.ipynb")}
QUESTS = {f"deeper/{path.stem}": path for path in authoring.NOTEBOOKS.glob("deeper/[0-9]*.ipynb")}


def read(name, folder="solutions"):
    return nbformat.read(exercises.path(name, folder), as_version=4)


def tagged(notebook, kind):
    """``{name: (place, cell)}`` of the cells with a tag of that kind."""
    found = {}
    for n, cell in enumerate(notebook.cells):
        for tag in cell.metadata.get("tags", []):
            if tag.startswith(kind + ":"):
                assert tag.split(":")[1] not in found, f"{tag} twice"
                found[tag.split(":")[1]] = n, cell
    return found


def solution_lines(notebook):
    """The lines that only an instructor may see."""
    for cell in notebook.cells:
        source, entry = cell.source, cell.metadata.get("nbgrader", {})
        if entry.get("solution") and cell.cell_type == "markdown":
            yield from source.split("\n")
        for block in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", source, re.DOTALL):
            yield from (line for line in block.split("\n") if not student_version.GIVEN.match(line))


def test_there_is_one_for_each_notebook_from_01_on():
    assert [exercises.number(name) for name in NAMES] == sorted(set(NOTEBOOKS) - {"00"})
    assert exercises.names("exercises") == NAMES
    assert [exercises.number(name) for name in NAMES] == list(questions.exercises())


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_is_in_normal_form(name):
    assert authoring.check(exercises.path(name)) == ""
    marked = exercises.mark(exercises.unmark(read(name)))
    assert [cell.metadata for cell in marked.cells] == [cell.metadata for cell in read(name).cells]


@pytest.mark.parametrize("name", NAMES)
def test_it_asks_every_question_and_checks_it_after_its_answer(name):
    notebook = read(name)
    answers, checks = tagged(notebook, "answer"), tagged(notebook, "check")
    asked = [question.name for question in questions.load(exercises.number(name))]
    assert list(answers) == list(checks) == asked
    for question in asked:
        assert answers[question][0] < checks[question][0]
        assert checks[question][1].source == f"check.{question}({question})"
        assert f"def {question}(" in answers[question][1].source
    assert len(tagged(notebook, "explain")) == 2


@pytest.mark.parametrize("name", NAMES)
def test_its_points_are_twenty_and_a_bonus_of_two(name):
    given = exercises.points(read(name))
    bonus = {f"check_{q.name}" for q in questions.load(exercises.number(name)) if q.bonus}
    assert sum(points for key, points in given.items() if key not in bonus) == 20
    assert sum(given[key] for key in bonus) == 2
    assert exercises.points(read(name, "exercises")) == given


@pytest.mark.parametrize("name", NAMES)
def test_each_question_sends_back_to_a_section_that_exists(name):
    number = exercises.number(name)
    text = {
        key: "\n".join(
            cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"
        )
        for key, path in (NOTEBOOKS | QUESTS).items()
    }
    for question in questions.load(number):
        for where in {question.section, *(wrong.reread for wrong in question.wrong if wrong.reread)}:
            match = re.fullmatch(r'(\d\d|deeper/\w+), section "(.+)"', where)
            assert match, where
            headings = [
                line.lstrip("# ").strip() for line in text[match[1]].split("\n") if line.startswith("#")
            ]
            assert match[2] in headings, f"{question.name}: {where}"


@pytest.mark.parametrize("name", NAMES)
def test_its_cells_are_short_and_its_links_lead_somewhere(name):
    notebook = read(name)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert len(cell.source.split("\n")) <= 40, cell.source[:80]
        else:
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", cell.source):
                assert (exercises.path(name).parent / link).exists(), link
    assert any(f"notebooks/{exercises.number(name)}_" in cell.source for cell in notebook.cells)


# ---- what a student gets ----
def test_the_students_versions_are_what_the_solutions_give(tmp_path):
    """Generated anew, byte by byte: nobody has edited exercises/, or forgotten to release."""
    for path in exercises.release(NAMES, tmp_path):
        assert path.read_bytes() == exercises.path(path.stem, "exercises").read_bytes(), (
            f"run `python -m workshop.authoring release {path.stem}`"
        )


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_solution_is_in_it(name):
    solution, given = read(name), read(name, "exercises")
    text = "\n".join(cell.source for cell in given.cells)
    assert "SOLUTION" not in text and "#~" not in text and "HIDDEN TESTS" not in text
    assert not any(cell.get("outputs") for cell in given.cells)
    assert not any("attachments" in cell for cell in given.cells)
    private = [line.strip() for line in solution_lines(solution) if len(line.strip()) > 18]
    assert len(private) > 10
    assert not [line for line in private if line in text]
    raw = Path(exercises.path(name, "exercises")).read_text(encoding="utf-8")
    assert "solutions/" not in raw and "questions/q" not in raw


@pytest.mark.parametrize("name", NAMES)
def test_each_answer_is_a_stub_or_the_broken_code_that_is_to_be_repaired(name):
    broken = 0
    for question, (_, cell) in tagged(read(name, "exercises"), "answer").items():
        stub = f'raise NotImplementedError("{question} is not written yet")' in cell.source
        compile(cell.source, question, "exec")
        broken += not stub
    assert broken <= 1
    for _, cell in tagged(read(name, "exercises"), "explain").values():
        assert cell.source == student_version.WRITTEN


# ---- how a stub is made ----
def cell(source, kind="code"):
    new = nbformat.v4.new_code_cell(source) if kind == "code" else nbformat.v4.new_markdown_cell(source)
    new.metadata["nbgrader"] = {"grade_id": "what", "solution": True, "grade": False}
    return new


def given(source):
    one = cell(source)
    assert student_version.GivenSolutions()._replace_solution_region(one, "python")
    return one.source


def test_a_solution_becomes_a_stub():
    assert given("def f():\n    '''Doc.'''\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION") == (
        "def f():\n    '''Doc.'''\n    raise NotImplementedError(\"what is not written yet\")"
    )


def test_broken_code_is_given():
    assert (
        given(
            "def f():\n    ### BEGIN SOLUTION\n    #~ if True:\n    #~     return 2\n    return 1\n"
            "    ### END SOLUTION\n# after"
        )
        == "def f():\n    if True:\n        return 2\n# after"
    )


@pytest.mark.parametrize(
    "source",
    [
        "### BEGIN SOLUTION\n1",
        "1\n### END SOLUTION",
        "### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION",
    ],
)
def test_a_region_without_its_end_is_an_error(source):
    with pytest.raises(RuntimeError, match="what"):
        given(source)


def test_a_tag_that_says_nothing_is_an_error():
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("1", metadata={"tags": ["anwser:x"]})]
    )
    with pytest.raises(ValueError, match="anwser:x"):
        exercises.mark(notebook)
