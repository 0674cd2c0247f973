"""What outlives a kernel: hints that were read, written answers that were committed to. And the heads."""

import os
import re
import subprocess
import sys

import nbformat
import pytest

from course import checks, progress
from course.checks import questions, report
from workshop import exercises

NAMES = exercises.names()
MINE = "Both layouts keep lengths and offsets, so none of the three tests sees it."


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))


def written(name, folder="solutions"):
    """``{name: cell}`` of the written answers."""
    cells = nbformat.read(exercises.path(name, folder), as_version=4).cells
    return {
        cell.metadata.nbgrader.grade_id.removeprefix("explain_"): cell
        for cell in cells
        if cell.metadata.get("nbgrader", {}).get("grade_id", "").startswith("explain_")
    }


# ---- hints ----
def in_a_new_kernel(code, log_file):
    """What a fresh process prints."""
    space = os.environ | {"TUTORIAL_PROGRESS": str(log_file)}
    code = f"from course import checks as check\n{code}"
    run = subprocess.run(
        [sys.executable, "-c", code], env=space, capture_output=True, text=True, check=True, timeout=300
    )
    return run.stdout


def test_hints_that_were_read_survive_a_restart(tmp_path):
    first = in_a_new_kernel('check.hint("axis_angles"); check.hint("axis_angles")', tmp_path / "log.json")
    assert re.findall(r"Hint (\d) of 3", first) == ["1", "2"]
    second = in_a_new_kernel(
        'print(repr(check.progress("08"))); check.hint("axis_angles")', tmp_path / "log.json"
    )
    assert "axis_angles | 4 | not yet | 2 of 3" in second and "Hint 3 of 3" in second


# ---- written answers ----
@pytest.mark.parametrize("name", NAMES)
def test_each_written_question_has_a_model_answer_and_a_rubric_below_it(name):
    cells = nbformat.read(exercises.path(name), as_version=4).cells
    given = nbformat.read(exercises.path(name, "exercises"), as_version=4).cells
    found = written(name)
    assert len(found) == 2
    for key, cell in found.items():
        assert re.search(r"2 points", cell.source) and re.search(r"1 point\b", cell.source), key
        call = f'check.model_answer("{key}", "")'
        assert cells[[one.id for one in cells].index(cell.id) + 1].source == call
        assert sum(one.source == call for one in given) == 1


def test_nothing_is_shown_before_somebody_has_committed(log, capsys):
    for empty in ("", "yes", " " * 50):
        checks.model_answer("rope_layout", empty)
        assert capsys.readouterr().out.startswith("Commit first: ")
    assert progress.read() == {}


def test_who_has_committed_gets_the_model_answer_the_rubric_and_the_place(log, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(report, "_render", shown.append)
    checks.model_answer("rope_layout", MINE)
    said = capsys.readouterr().out
    assert f"You wrote: {MINE}" in said and "solutions/ex06_rope/ex06_rope.ipynb" in said
    (text,) = shown
    source = written("ex06_rope")["rope_layout"].source
    assert text in source and "**2 points:**" in text and "SOLUTION" not in text
    checks.model_answer("rope_layout")  # a new kernel, with the cell as it is stored
    assert f"You wrote: {MINE}" in capsys.readouterr().out and len(shown) == 2


def test_every_model_answer_is_found(log, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(report, "_render", shown.append)
    keys = [key for name in NAMES for key in written(name)]
    for key in keys:
        checks.model_answer(key, MINE)
    assert len(shown) == len(keys) == 20 and len(set(shown)) == 20
    with pytest.raises(KeyError, match="no written question 'nothing'"):
        checks.model_answer("nothing", MINE)


def test_a_class_that_has_no_solutions_asks_its_teacher(log, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(report, "SOLUTIONS", tmp_path)
    checks.model_answer("rope_layout", MINE)
    assert "Your teacher has the model answers" in capsys.readouterr().out


# ---- one style ----
@pytest.mark.parametrize("name", NAMES)
def test_all_heads_have_one_style(name):
    """Title, promise, time, table; then what is needed, and how it works."""
    cells = nbformat.read(exercises.path(name), as_version=4).cells
    number, head = exercises.number(name), cells[0].source
    form = (
        rf"# Exercise {number} · .+\n\n\*\*.+\*\*\n\n"
        r"\*Time: \d+ to \d+ minutes\. Points: 20, and 2 for the bonus\. "
        rf"It belongs to \[notebook {number}\]\(.+\).*\.\*\n\n"
        r"\| question \| what you write \| level \| minutes \| points \|\n\|---\|---\|---\|---\|---\|\n"
    )
    assert re.match(form, head), head[:300]
    assert [cell.source.split("\n")[0] for cell in cells[1:3]] == [
        "### What you need from the notebook",
        "### How it works",
    ]
    assert any(cell.source.startswith("## What you can do now") for cell in cells)


@pytest.mark.parametrize("name", NAMES)
def test_table_and_headings_name_the_questions_in_their_order_with_level_and_points(name):
    cells = nbformat.read(exercises.path(name), as_version=4).cells
    rows = re.findall(
        r"^\| (`\w+`|in words) \| .+? \| (★+) \| (\d+) \| (\d)( bonus)? \|$", cells[0].source, re.M
    )
    asked = [(question.name, question.points) for question in questions.load(exercises.number(name))]
    assert [(row[0].strip("`"), int(row[3])) for row in rows if row[0] != "in words"] == asked
    low, high = map(int, re.search(r"Time: (\d+) to (\d+)", cells[0].source).groups())
    assert low <= sum(int(row[2]) for row in rows) <= high + 5
    tags = [tag.split(":") for cell in cells for tag in cell.metadata.get("tags", []) if ":" in tag]
    order = [tag[1] if tag[0] == "answer" else "in words" for tag in tags if tag[0] != "check"]
    assert [row[0].strip("`") for row in rows] == order
    heads = re.findall(
        r"^## (?:(\d) ·|Bonus ·) (In words: )?.*?\((?:(★+), )?(\d) points\)$",
        "\n".join(cell.source for cell in cells if cell.cell_type == "markdown"),
        re.M,
    )
    assert [(head[0], head[3]) for head in heads] == [
        (str(n) if not row[4] else "", row[3]) for n, row in enumerate(rows, 1)
    ]
    assert [bool(head[1]) for head in heads] == [row[0] == "in words" for row in rows]
    assert [head[2] for head in heads if not head[1]] == [row[1] for row in rows if row[0] != "in words"]
