"""Predictions in a browser: from the question to the result with Shift+Enter, by mouse and by keys."""

import json

import pytest

from workshop.browser import SEEN

ASK = """
from course import lesson
from course.lesson import questions
known = {"predict": {
    "swap": {"question": "Which <b>one</b>?", "choices": {"a": "A", "b": "B", "c": "C"},
             "why": {"a": "A is what came.", "b": "B would need more.", "c": "C never comes."},
             "reasons": {"b": [["I saw B.", "That was a mirror."], ["B is usual.", "Not here."]]}},
    "size": {"kind": "number", "question": "How large?", "unit": "nats", "within": 1},
    "curve": {"kind": "sketch", "question": "Draw it.", "x": [1, 2, 4, 8, 16], "within": 1,
              "xlabel": "length", "ylabel": "loss", "ylim": [-2, 4]}}}
questions.questions = lambda number: known"""
REVEAL = "# Run this cell: it measures the answer.\nlesson.reveal({!r}, {})\nprint('the picture')"
DISCUSSION = "<details><summary>Why?</summary>\n\nBecause of *that*.\n\n</details>"


def cell(source, folded=False):
    import nbformat

    made = nbformat.v4.new_code_cell(source)
    if folded:
        made.metadata = {"tags": ["reveal"], "jupyter": {"source_hidden": True, "outputs_hidden": True}}
    return made


@pytest.fixture(scope="module", params=["lab", "notebook"])
def opened(lab, request):
    import nbformat

    book = nbformat.v4.new_notebook(
        cells=[
            cell(ASK),
            cell('lesson.predict("99.swap")'),
            cell(REVEAL.format("99.swap", "'a'"), True),
            nbformat.v4.new_markdown_cell(DISCUSSION),
            cell('lesson.predict("99.size")'),
            cell(REVEAL.format("99.size", "2.0"), True),
            cell('lesson.predict("99.curve")'),
            cell(REVEAL.format("99.curve", "[0, 1, 2, 3, 4]"), True),
            cell("print('the end')"),
        ]
    )
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    name = f"predictions-{request.param}.ipynb"
    nbformat.write(book, lab.folder / name)
    notebook = lab.open(name, request.param)
    yield notebook
    notebook.close()


@pytest.fixture
def lesson_page(opened, lab):
    """The notebook as it lies on the disk, with nothing answered, in the page of the test before."""
    lab.progress.unlink(missing_ok=True)
    opened.noticed.clear()
    opened.page.evaluate("() => __panel.context.revert()")
    opened.idle()
    assert opened.problems() == [f"cell {n} did not run" for n in (0, 1, 2, 4, 5, 6, 7, 8)]
    return opened


def go_on(notebook):
    """Shift+Enter, wherever the focus is."""
    notebook.page.keyboard.press("Shift+Enter")
    notebook.idle()


def active(notebook):
    return notebook.page.evaluate("() => __panel.content.activeCellIndex")


def until_active(notebook, n):
    notebook.page.wait_for_function("n => __panel.content.activeCellIndex === n", arg=n)


def test_from_the_question_to_the_result_with_shift_enter(lesson_page, lab):
    notebook, page = lesson_page, lesson_page.page
    notebook.cell(0).locator(".jp-InputArea").click()
    page.keyboard.press("Escape")
    go_on(notebook)
    until_active(notebook, 1)
    go_on(notebook)
    card = notebook.cell(1).locator(".order-card")
    card.wait_for()
    until_active(notebook, 2)
    shown = " ".join(page.locator(f"{SEEN} .jp-Cell").all_inner_texts()[1:])
    assert "A is what came" not in shown and "would need" not in shown, "nothing tells before"
    assert not page.locator(f"{SEEN} .jp-MarkdownCell details").evaluate("one => one.open")

    # by the mouse: an empty commitment is refused in words; a choice selects the next cell
    card.get_by_role("button", name="Commit").click()
    assert "Choose one first" in card.inner_text()
    card.get_by_text("B", exact=True).click()
    card.get_by_role("button", name="Commit").click()
    until_active(notebook, 2)
    assert "jp-Cell" in page.evaluate("() => document.activeElement.className")
    go_on(notebook)
    told = notebook.cell(2).locator(".order-told")
    told.wait_for()
    for words in ("✘ You predicted: B", "Measured: A", "Why did you think so?", "B is usual.", "I guessed."):
        assert words in told.inner_text()
    assert "A is what came." not in told.inner_text() and "mirror" not in told.inner_text(), "it asks first"
    assert not page.locator(f"{SEEN} .jp-MarkdownCell details").evaluate("one => one.open")
    told.get_by_role("button", name="I saw B.").click()
    for words in ("You thought so because: I saw B.", "That was a mirror.", "A is what came."):
        assert words in told.inner_text()
    for words in ("B would need more", "Not here", "C never comes"):
        assert words not in told.inner_text()
    page.wait_for_function("() => document.querySelector('.jp-MarkdownCell details').open")
    notebook.cell(2).locator(".jp-InputArea-editor").wait_for()  # the code is open, too
    assert "✘" in card.inner_text()
    until_active(notebook, 3)
    go_on(notebook)

    # by keys alone: a number
    go_on(notebook)
    field = notebook.cell(4).locator("input[type=number]")
    field.wait_for()
    field.focus()
    page.keyboard.type("2.5")
    page.keyboard.press("Enter")
    until_active(notebook, 5)
    go_on(notebook)
    assert "✔ You predicted 2.5 nats: close enough." in notebook.cell(5).locator(".order-told").inner_text()
    go_on(notebook)

    # a curve: not committed unchanged; drawn by the mouse and by keys; Shift+Enter in it commits
    curve = notebook.cell(6).locator(".order-card")
    curve.get_by_role("button", name="Commit").click()
    assert "Draw your curve first" in curve.inner_text()
    handles = curve.get_by_role("slider")
    boxes = [handle.bounding_box() for handle in handles.all()]
    places = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
    page.mouse.move(places[0][0], places[0][1] - 20)
    page.mouse.down()
    page.mouse.move(places[2][0], places[2][1] - 60, steps=20)
    page.mouse.up()
    handles.nth(4).focus()
    page.keyboard.press("End")
    drawn = [float(handle.get_attribute("aria-valuenow")) for handle in handles.all()]
    assert 0 < drawn[0] < drawn[1] < drawn[2] and drawn[3:] == [0, 4]
    assert page.evaluate("() => String(getSelection())") == ""
    page.keyboard.press("Shift+Enter")
    until_active(notebook, 7)
    go_on(notebook)
    assert "farthest away at 8" in notebook.cell(7).locator(".order-told").inner_text()
    assert notebook.cell(7).locator(".order-told polyline").count() == 2
    go_on(notebook)
    page.wait_for_function("() => __panel.content.widgets[8].model.executionCount")
    log = json.loads(lab.progress.read_text(encoding="utf-8"))
    assert [log[f"99.predict.{key}"]["choice"] for key in ("swap", "size", "curve")] == ["b", 2.5, drawn]
    assert log["99.predict.swap"]["reason"] == "I saw B."
    assert notebook.problems() == []


def test_nobody_gets_stuck_and_who_only_reads_opens_everything(lesson_page):
    notebook, page = lesson_page, lesson_page.page
    notebook.run_cell(0)
    notebook.run_cell(1)
    card = notebook.cell(1).locator(".order-card")
    card.locator("input").first.focus()
    page.keyboard.press("Shift+Enter")  # without an answer
    until_active(notebook, 2)
    go_on(notebook)
    told = notebook.cell(2).locator(".order-told")
    told.wait_for()
    assert "Measured: A" in told.inner_text() and "no prediction" not in told.inner_text()
    notebook.run_cell(4)
    notebook.cell(4).get_by_role("button", name="Just reading? Open every answer").click()
    notebook.cell(5).locator(".jp-InputArea-editor").wait_for()
    notebook.cell(7).locator(".jp-InputArea-editor").wait_for()
    assert notebook.problems() == [f"cell {n} did not run" for n in (5, 6, 7, 8)]


def test_a_busy_kernel_takes_the_answer_that_the_reader_saw(lesson_page, lab):
    notebook, page = lesson_page, lesson_page.page
    notebook.run_cell(0)
    notebook.run_cell(4)
    go = lab.folder / "go"
    page.evaluate(
        """code => {
        __panel.content.model.cells.get(8).sharedModel.setSource(code);
        __panel.content.activeCellIndex = 8;
        window.__run = jupyterapp.commands.execute('notebook:run-cell'); }""",
        f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)",
    )
    try:
        field = notebook.cell(4).locator("input[type=number]")
        for typed in ("1", "-0.5", "2.5"):
            field.fill(typed)
        notebook.cell(4).get_by_role("button", name="Commit").click()
        assert not lab.progress.exists()
    finally:
        go.touch()
        notebook.finish()
        go.unlink()
    for _ in range(100):
        if lab.progress.exists():
            break
        page.wait_for_timeout(100)
    assert json.loads(lab.progress.read_text(encoding="utf-8"))["99.predict.size"]["choice"] == 2.5
