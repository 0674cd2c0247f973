"""The normal form of a notebook: nothing in it changes from run to run, and nothing wrong gets in."""

import copy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.lesson import questions
from workshop import authoring, navigation
from workshop.authoring import WIDGET, normalise


def code(source="1 + 1", *outputs, count=7, **kwargs):
    return new_code_cell(source, outputs=list(outputs), execution_count=count, **kwargs)


def result(**data):
    return new_output(
        "execute_result", data={"text/plain": "2", **data}, execution_count=7, metadata={"isolated": True}
    )


@pytest.fixture
def messy():
    """As Jupyter leaves it: other counts, other metadata, cut streams, live widgets."""
    cells = [
        new_markdown_cell("\n# Title\n\n", id="0123456789", metadata={"collapsed": True, "tags": ["a"]}),
        code("print(1)", new_output("stream", text="1"), new_output("stream", text="\n2\n"), id="random-id"),
        code("1 + 1", result()),
        code("1 + 1", new_output("display_data", data={WIDGET: {"model_id": "x"}, "text/html": "<p>"})),
        code("1 + 1", metadata={"trusted": True, "execution": {"iopub.execute_input": "now"}}),
    ]
    notebook = new_notebook(
        cells=cells,
        metadata={"kernelspec": {"name": "mine", "display_name": "Mine"}, "widgets": {"state": {}}},
    )
    notebook.cells[2].id = notebook.cells[0].id
    notebook.metadata["language_info"] = {"name": "python", "version": "3.11.9"}
    return notebook


def test_the_normal_form(messy):
    before = copy.deepcopy(messy)
    normal = normalise(messy)
    assert messy == before  # the notebook that was given stays as it is
    assert normal.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    title, printed, two, widget, last = normal.cells
    assert title.source == "# Title" and title.metadata == {"tags": ["a"]}
    assert [c.execution_count for c in normal.cells[1:]] == [1, 2, 3, 4]
    assert printed.outputs == [new_output("stream", text="1\n2\n")]
    assert two.outputs == [new_output("execute_result", data={"text/plain": "2"}, execution_count=2)]
    assert widget.outputs == [new_output("display_data", data={"text/html": "<p>"})]
    assert last.metadata == {} and last.outputs == []


def test_normalising_twice_changes_nothing(messy):
    normal = normalise(messy)
    assert nbformat.writes(normalise(normal)) == nbformat.writes(normal)


def test_ids_are_kept_when_they_are_good_and_distinct_always(messy):
    ids = [cell.id for cell in normalise(messy).cells]
    assert ids[0] == "0123456789" and len(set(ids)) == 5
    assert all(len(i) == 10 and set(i) <= set("0123456789abcdef") for i in ids)
    assert ids == [cell.id for cell in normalise(messy).cells]
    messy.cells.insert(1, new_markdown_cell("New text"))
    again = [cell.id for cell in normalise(messy).cells]
    assert again[0] == ids[0] and again[2] == ids[1]  # others do not move when one is put in


def test_different_streams_are_not_mixed(messy):
    messy.cells[1].outputs.insert(1, result())
    kinds = [output.output_type for output in normalise(messy).cells[1].outputs]
    assert kinds == ["stream", "execute_result", "stream"]


@pytest.mark.parametrize(
    "cell, words",
    [
        (
            code("x", new_output("stream", name="stderr", text="UserWarning: old")),
            "cell 1 .*UserWarning: old",
        ),
        (code("x", new_output("error", ename="E", evalue="it broke", traceback=[])), "cell 1 .*it broke"),
        (code("never_run()", count=None), r"cell 1 has not been executed: 'never_run\(\)'"),
    ],
)
def test_what_is_wrong_does_not_get_in(cell, words):
    with pytest.raises(ValueError, match=words):
        normalise(new_notebook(cells=[new_markdown_cell("# Title"), cell]))


# ---- on disk ----


@pytest.fixture
def folder(tmp_path, monkeypatch, messy):
    monkeypatch.setattr(authoring, "NOTEBOOKS", tmp_path)
    nbformat.write(normalise(messy), tmp_path / "01_first.ipynb")
    (tmp_path / "02_second.py").write_text("# %%\n1 + 1\n")
    return tmp_path


def test_check_finds_what_is_not_in_normal_form(folder, messy, capsys):
    path = folder / "01_first.ipynb"
    assert authoring.check(path) == "" and authoring.main(["check"]) == 0
    path.write_text(path.read_text().replace('"execution_count": 2', '"execution_count": 5'))
    assert "build 01_first" in authoring.check(path) and authoring.main(["check"]) == 1
    assert "01_first.ipynb: is not in normal form" in capsys.readouterr().err
    messy.cells[1].execution_count, messy.cells[2].id = None, "0000000000"
    nbformat.write(messy, path)
    assert "cell 1 has not been executed" in authoring.check(path)


def test_a_question_that_was_reworded_is_found_and_stored_anew(folder, capsys):
    """Without running the notebook: until now only that found it."""
    path = folder / "01_first.ipynb"
    old = new_output("execute_result", data={"text/html": "<p>Old?</p>", "text/plain": "Old?"})
    nbformat.write(normalise(new_notebook(cells=[code('x = 1\nlesson.predict("06.tries")', old)])), path)
    assert authoring.main(["check"]) == 1 and "other words than it stores" in capsys.readouterr().err
    assert authoring.sign(path) and authoring.check(path) == ""
    (said,) = nbformat.read(path, 4).cells[0].outputs
    asked = questions.find("predict", "06.tries")["question"]
    assert said.execution_count == 1 and asked[:40] in said.data["text/html"], said.data


def test_find(folder):
    assert authoring.find("01") == authoring.find("01_first.ipynb") == folder / "01_first.ipynb"
    assert authoring.find("02") == folder / "02_second.ipynb"
    with pytest.raises(ValueError, match="no notebook starts with '03'; there are 01_first, 02_second"):
        authoring.find("03")


def test_build_runs_edits_and_keeps_ids(folder):
    """Through a real kernel: text → edit → build."""
    pytest.importorskip("jupytext")
    path = folder / "01_first.ipynb"
    source = authoring.text(path)
    source.write_text(source.read_text().replace("print(1)", "print(6 * 7)"))
    ids = [cell.id for cell in nbformat.read(path, 4).cells]
    assert "01_first.ipynb" in authoring.build(path) and authoring.check(path) == ""
    assert "of 01" not in source.read_text()  # a strip is not to be edited
    title, strip, *cells, last = nbformat.read(path, 4).cells
    assert strip.source == last.source == navigation.strip(path)
    cells = [title, *cells]
    assert cells[1].outputs[0].text == "42\n" and cells[2].outputs[0].data["text/plain"] == "2"
    assert cells[0].id == ids[0]
