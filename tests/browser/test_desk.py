"""The desk in a browser: what a learner sees when `make lab` opens, and that nothing is in the way."""

import json
import subprocess
import sys

import pytest

from course.lab import working_copy
from course.lesson import resume
from course.places import ROOT
from workshop.browser import Lab, write

FIRST = working_copy.FIRST


class Desk(Lab):
    """The server that `make lab` starts, in a scratch folder."""

    def command(self):
        return [sys.executable, "-m", "course.lab", f"--mine={self.folder}"]


@pytest.fixture(scope="module")
def desk(chromium, tmp_path_factory):
    with Desk(tmp_path_factory.mktemp("mine")) as desk:
        yield desk


@pytest.fixture(scope="module")
def page(desk):
    """The first screen, as the browser opens it."""
    page = desk.context.new_page()
    page.set_default_timeout(90e3)
    page.goto(f"{desk.url}/lab?token={desk.token}")
    page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for()
    page.wait_for_function("() => document.body.dataset.courseDesk === 'on'")
    page.wait_for_function("""() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status
                                    === 'idle'""")
    yield page
    page.close()


def test_the_first_notebook_and_its_contents_are_open_and_nothing_is_in_the_way(page):
    assert "00_start_here" in page.locator(".lm-DockPanel-tabBar .lm-mod-current").inner_text()
    contents = page.locator("#table-of-contents")
    contents.get_by_text("A puzzle").wait_for()
    assert contents.bounding_box()["width"] > 250
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0
    asked = page.evaluate("() => performance.getEntriesByType('resource').map(each => each.name)")
    assert len(asked) > 20 and not [url for url in asked if "/api/build" in url], "nothing is to be built"


@pytest.mark.parametrize(
    "words", ["Nbgrader", "Create Assignment", "Validate", "Debugger", "Extension Manager"]
)
def test_nothing_of_a_teachers_or_developers_is_shown(page, words):
    shown = page.evaluate(
        "() => document.body.innerText + [...document.querySelectorAll('[title]')]"
        ".map(node => node.title).join(' ')"
    )
    assert words.lower() not in shown.lower()


def test_every_code_cell_is_trusted_and_the_notebook_is_not_dirty(page):
    counts = page.evaluate("""() => { const cells = [...jupyterapp.shell.currentWidget.content.model.cells];
        const code = cells.filter(cell => cell.type === 'code');
        return [code.length, code.filter(cell => cell.trusted).length,
                jupyterapp.shell.currentWidget.context.model.dirty]; }""")
    assert counts[0] > 5 and counts[0] == counts[1] and counts[2] is False


def status():
    return subprocess.check_output(["git", "status", "--short"], cwd=ROOT)


def test_saving_changes_the_copy_and_leaves_the_clone_alone(page, desk):
    before = status()
    page.evaluate("""async () => {
        const panel = jupyterapp.shell.currentWidget;
        panel.content.activeCellIndex = 0;
        await jupyterapp.commands.execute('notebook:insert-cell-below');
        await panel.context.save(); }""")
    assert working_copy.changed(desk.folder) == [FIRST]
    assert status() == before


def test_answers_and_results_are_there_the_next_day(desk):
    """Opened again, on no kernel that knows them."""
    write(
        desk.folder / "again.ipynb",
        ["from course import lesson", 'lesson.predict("09.won")', 'lesson.reveal("09.won", "all")'],
    )
    notebook = desk.open("again.ipynb")
    notebook.run_cell(0)
    notebook.run_cell(1)
    notebook.cell(1).locator(".order-card input").nth(1).check()
    notebook.cell(1).get_by_role("button", name="Commit").click()
    notebook.run_cell(2)
    said = notebook.cell(2).locator(".order-told").inner_text()
    notebook.page.evaluate("async () => { await __panel.context.save(); }")
    notebook.close()
    notebook = desk.open("again.ipynb")
    notebook.cell(2).locator(".order-told").wait_for()
    assert notebook.cell(2).locator(".order-told").inner_text() == said
    assert notebook.cell(1).locator(".order-card input").nth(1).is_checked()
    assert "Error displaying" not in notebook.page.locator(".jp-Notebook").inner_text()
    broken = notebook.page.evaluate(
        "() => [...document.querySelectorAll('.jupyter-widgets-disconnected')]"
        ".map(node => getComputedStyle(node, '::before').display)"
    )
    assert broken and set(broken) == {"none"}, "no red icon at what is only stored"
    notebook.close()


def test_a_name_that_an_earlier_cell_makes_is_told_with_that_cell(desk):
    write(desk.folder / "names.ipynb", ["# The tools of this lesson.\nimport math", "math.pi", "maths.pi"])
    notebook = desk.open("names.ipynb")
    notebook.run_cell(2)
    notebook.run_cell(1)
    told, unknown = (notebook.cells()[n]["outputs"][0] for n in (1, 2))
    assert told["ename"] == "NameError" and len(told["traceback"]) == 1
    assert "“math” comes from an earlier cell" in told["traceback"][0]
    assert "begins “# The tools of this lesson.”" in told["traceback"][0]
    assert len(unknown["traceback"]) > 1 and "maths" in unknown["evalue"], "no cell makes it: Python's words"
    notebook.close()


def test_the_next_day_begins_where_the_reader_was(desk):
    """The course's own page, in place of the launcher: where to go on, what is done, what is next."""
    order = resume.places()
    first = [place for place in order if place.file == order[0].file]
    last = len(first) + 1
    answers = {
        place.key: {"choice": "x", "at": f"2026-01-01T00:{n:02}"} for n, place in enumerate(order[:last])
    }
    desk.progress.write_text(json.dumps(answers))
    page = desk.context.new_page()
    page.set_default_timeout(90e3)
    page.goto(f"{desk.url}/lab?token={desk.token}")
    rows = page.locator(".course-desk li")
    rows.nth(10).wait_for()
    assert "lm-mod-current" in page.locator(
        ".lm-DockPanel-tabBar .lm-TabBar-tab", has_text="The course"
    ).get_attribute("class")
    assert rows.nth(0).get_by_role("img", name="Done").count() == 1
    assert rows.nth(1).get_by_role("img", name="Next").count() == 1
    go, goal = page.locator(".cd-go"), order[last]
    assert goal.section in go.inner_text() and goal.title in go.inner_text()
    go.click()
    page.wait_for_function(
        """section => { const panel = jupyterapp.shell.currentWidget, cell = panel.content?.activeCell;
            const top = thing => thing.node.getBoundingClientRect().top;
            return cell?.model.sharedModel.getSource().includes(section)
                && Math.abs(top(cell) - top(panel.content)) < 90 }""",
        arg=goal.section,
    )
    page.evaluate("() => jupyterapp.commands.execute('application:close-all')")
    rows.nth(10).wait_for()
    assert page.locator(".jp-Launcher").count() == 0
    kernels = "async () => { const { kernels } = jupyterapp.serviceManager; await kernels.refreshRunning(); "
    for _ in range(50):  # the kernels of what was closed end, too
        if page.evaluate(kernels + "return [...kernels.running()].length; }") <= 1:
            break
        page.wait_for_timeout(200)
    desk.progress.unlink()
    page.close()


def test_a_closed_notebook_takes_its_kernel_along(page):
    kernels = (
        "async () => (await jupyterapp.serviceManager.kernels.refreshRunning(), "
        "[...jupyterapp.serviceManager.kernels.running()].length)"
    )
    assert page.evaluate(kernels) == 1
    page.evaluate("() => jupyterapp.commands.execute('application:close')")
    page.wait_for_function("() => jupyterapp.shell.currentWidget?.sessionContext === undefined")
    for _ in range(50):
        if page.evaluate(kernels) == 0:
            break
        page.wait_for_timeout(200)
    assert page.evaluate(kernels) == 0


class Translated(Desk):
    """The same for a language; what was built in it has one small notebook here."""

    def command(self):
        start = (
            "import pathlib, sys; from course.lab import __main__ as desk; "
            "desk.ROOT = pathlib.Path(sys.argv[1]); desk.main(sys.argv[2:])"
        )
        return [
            sys.executable,
            "-c",
            start,
            str(self.folder),
            f"--mine={self.folder / 'mine'}",
            "--language",
            "zh",
        ]


def test_the_menus_of_the_lab_speak_the_language(chromium, tmp_path):
    built = tmp_path / "build" / "zh" / "notebooks"
    built.mkdir(parents=True)
    write(built / "00_start_here.ipynb", ["1 + 1"])
    with Translated(tmp_path) as desk:
        page = desk.context.new_page()
        page.set_default_timeout(90e3)
        page.goto(f"{desk.url}/lab?token={desk.token}")
        menus = page.locator("#jp-MainMenu .lm-MenuBar-itemLabel")
        menus.first.wait_for()
        assert menus.first.inner_text() == "文件" and not [
            text for text in menus.all_inner_texts() if text.isascii() and text
        ]
