"""How nbval runs a notebook here: trained numbers may be near; a blank runs empty, then filled in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course.lesson import turns

ROOT = Path(__file__).parents[2]
TABLE = "from IPython.display import HTML\nHTML('''<td>{}</td>''')"
CASES = [  # tags, what the cell prints, what is stored, whether that passes
    (["trained"], "print('near, none: 0.65, 1.1e-05')", "near, none: 0.74, 1.1e-05\n", True),
    (["trained"], "print('loss 3.1, 24% of 1,024')", "loss 2.9, 27% of 1,024\n", True),
    (["trained"], "print('accuracy 0.65')", "accuracy 0.85\n", False),
    (["trained"], "print('loss 3.1')", "loss -3.1\n", False),
    (["trained"], "print('near, none: 0.65')", "none, near: 0.65\n", False),
    (["trained"], "print('0.65 0.7')", "0.65\n", False),
    ([], "print('near, none: 0.65')", "near, none: 0.66\n", False),
    (["trained"], TABLE.format("0.65"), "<td>0.7</td>", True),
    (
        ["trained"],
        TABLE.format('<img src="data:,1a" alt="at 2: 3.1">'),
        '<td><img src="data:,7" alt="at 2: 3.0"></td>',
        True,
    ),
    (["trained"], TABLE.format("✔ 0.65"), "<td>✘ 0.65</td>", False),
]


def cell(tags, source, text):
    made = nbformat.v4.new_code_cell(source, metadata={"tags": tags}, execution_count=1)
    if not text:
        made.outputs = []
    elif text.startswith("<"):
        plain = "<IPython.core.display.HTML object>"
        made.outputs = [nbformat.v4.new_output("execute_result", {"text/html": text, "text/plain": plain})]
    else:
        made.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return made


def store(book, path):
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)


def blank(key, arguments, line="..."):
    """A cell with the blank of this turn, and the output of an empty one."""
    question = turns.find(key)
    empty = turns.Turn(question, turns.EMPTY, turns.INSTEAD)
    source = (
        f"def {question.name}({arguments}):\n    {line}\n\n"
        f'{question.name} = lesson.your_turn("{key}", {question.name})'
    )
    made = nbformat.v4.new_code_cell(source, execution_count=1)
    made.outputs = [
        nbformat.v4.new_output("display_data", {"text/plain": repr(empty), "text/html": empty._repr_html_()})
    ]
    return made


WHOSE = "print(backwards.__module__)"
TURNS = [
    (cell([], "from course import lesson", ""), True),
    (blank("00.backwards", "positions"), True),
    (cell([], WHOSE, "__main__\n"), True),  # from there on it is the learner's
    (cell([], "from course.progress import read\nprint(read())", "{}\n"), True),  # that is not passed
    (cell([], WHOSE, "course.lesson.turns.t00\n"), False),
    (blank("00.backwards", "positions", "return positions.flip(0)"), False),  # what is stored is compared
    (blank("06.numbers", "cached, new"), False),  # filled in, it knows no `torch`
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What pytest says of two notebooks."""
    folder = tmp_path_factory.mktemp("nbval")
    shutil.copy(ROOT / "conftest.py", folder)
    store(nbformat.v4.new_notebook(cells=[cell(*case[:3]) for case in CASES]), folder / "trained.ipynb")
    store(nbformat.v4.new_notebook(cells=[each for each, _ in TURNS]), folder / "turns.ipynb")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--nbval",
        "--nbval-current-env",
        "-rA",
        "trained.ipynb",
        "turns.ipynb",
    ]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ).stdout


def test_only_a_trained_cell_may_print_other_numbers_and_only_near_ones(ran):
    for number, (*_, passes) in enumerate(CASES):
        assert f"{'PASSED' if passes else 'FAILED'} trained.ipynb::Cell {number}" in ran, CASES[number]


def test_a_blank_is_run_as_it_is_stored_and_then_filled_in(ran):
    for number, (each, passes) in enumerate(TURNS):
        assert f"{'PASSED' if passes else 'FAILED'} turns.ipynb::Cell {number}" in ran, (each.source, ran)
