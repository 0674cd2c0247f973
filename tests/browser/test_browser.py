"""Every notebook and every explorer in a real JupyterLab, in a real browser.

That all cells run, and print what is stored, is nbval's to say; here the first notebook is run whole, and of
the others what a reader moves or answers. All of it is one module: one server and one browser serve all.
"""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from course.lesson.museum import EXHIBITS
from tutorial_lib import explorers
from workshop import authoring, browser, front
from workshop.benchmarks import latency

NOTEBOOKS = sorted(path.name for path in authoring.NOTEBOOKS.glob("*.ipynb"))
LIVE = re.compile(r"^(\w+Explorer|lesson\.(predict|concept_check|inventory)|museum\.(visit|gallery))\(", re.M)
SEEN = "e => { const box = e.getBoundingClientRect(); return 0 < box.bottom && box.top < innerHeight; }"


def serious(page, where):
    """What axe finds there that is serious or critical: ``{rule: first place}``."""
    found = Axe().run(page, context={"include": [[where]]}).response["violations"]
    return {
        rule["id"]: (rule["help"], rule["nodes"][0]["html"][:200])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    }


# ---- the watch itself ----
def test_whatever_goes_wrong_is_noticed(lab, write_notebook):
    write_notebook(
        "broken.ipynb",
        [
            "import anywidget, ipywidgets as w, sys\nfrom IPython.display import HTML\n"
            "def fail(change): raise LookupError('in a callback')\n"
            "box = w.IntText(value=1); box.observe(fail, 'value'); box",
            "class Bad(anywidget.AnyWidget):\n"
            "    _esm = 'export default { render() { throw new Error(\"in a render\"); } }'\n"
            "Bad()",
            "print('to stderr', file=sys.stderr)",
            'HTML(\'<img src="http://example.org/x.png" alt="">\')',
            "HTML('<script>setTimeout(() => { throw new Error(\"in a script\"); })</script>')",
            "1 / 0",
            "print('never reached')",
        ],
    )
    write_notebook("whole.ipynb", ["6 * 7"])
    notebook = lab.open("whole.ipynb")
    notebook.run()
    assert not notebook.problems()
    notebook.turn("broken.ipynb")
    notebook.run()
    notebook.page.locator("input[type=number]").press("ArrowUp")
    notebook.page.wait_for_function("() => window.__failed.length > 1")
    problems = "\n".join(notebook.problems())
    notebook.turn("whole.ipynb")
    notebook.run()
    assert not notebook.problems()
    notebook.close()
    for sign in (
        "LookupError: in a callback",
        "in a render",
        "to stderr",
        "example.org",
        "in a script",
        "cell 5: ZeroDivisionError",
        "cell 6 did not run",
    ):
        assert sign in problems, f"{sign!r} is not in:\n{problems}"


# ---- notebooks ----
@pytest.fixture(scope="module")
def reader(lab):
    """The first notebook, run whole. Others follow in its page, on its kernel."""
    notebook = lab.open(f"notebooks/{NOTEBOOKS[0]}")
    notebook.run()
    yield notebook
    notebook.close()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_shows_what_is_stored_and_what_a_reader_moves_comes_alive(reader, name):
    if name != NOTEBOOKS[0]:
        reader.turn(f"notebooks/{name}")
        reader.page.evaluate("() => jupyterapp.commands.execute('notebook:show-all-cell-outputs')")
    live = [
        n
        for n, cell in enumerate(reader.cells())
        if cell["cell_type"] == "code"
        and LIVE.search(cell["source"])
        and "lesson.reveal(" not in cell["source"]
    ]  # what measures needs the cells before it
    if name != NOTEBOOKS[0]:
        assert pictures(reader)
        for number in live:
            reader.run_cell(number)
    outputs = {n: cell.get("outputs", []) for n, cell in enumerate(reader.cells())}
    for number in live:
        assert any(authoring.WIDGET in output["data"] for output in outputs[number] if "data" in output)
        comes_alive(reader.cell(number))
    assert live and not serious(reader.page, f"{browser.SEEN} .jp-OutputArea")
    assert not reader.problems()


def pictures(notebook):
    """The words of each picture, which is there."""
    found = notebook.page.locator(f"{browser.SEEN} .jp-OutputArea img").evaluate_all(
        "all => all.map(e => [e.complete && e.naturalWidth, e.alt])"
    )
    assert all(width > 300 and len(words.split()) > 5 for width, words in found), found
    return found


def comes_alive(cell):
    """A widget stands in the cell; an explorer says something else after a key."""
    widget = cell.locator(".jupyter-widgets, .live, .order-card").first
    widget.wait_for()  # a page may lag behind its kernel
    for explorer in cell.locator(".live").all():
        said, slider = explorer.locator(".lv-more p"), explorer.locator("[role=slider]").last
        before = said.text_content()
        slider.press("ArrowRight" if slider.get_attribute("aria-valuenow") == "0" else "ArrowLeft")
        cell.page.wait_for_function(
            "([e, t]) => e.textContent && e.textContent !== t", arg=[said.element_handle(), before]
        )


def test_after_a_break_the_panel_opens_the_notebook(reader, write_notebook):
    write_notebook(
        "notebooks/panel.ipynb",
        [
            "import os, pathlib, tempfile\nfrom course import lesson, progress\n"
            "os.environ['TUTORIAL_PROGRESS'] = str(pathlib.Path(tempfile.mkdtemp()) / 'progress.json')\n"
            "progress.record('06.predict.pairs', choice='x', at=progress.now())\n"
            "lesson.progress()"
        ],
    )
    reader.turn("notebooks/panel.ipynb")
    reader.run()
    assert not reader.problems()
    reader.page.get_by_role("link", name="06 RoPE, Two layouts").click()
    reader.page.locator('h2[data-jupyter-id="Two-layouts"]:visible').wait_for()  # there is such an anchor
    assert reader.page.evaluate("() => jupyterapp.shell.currentWidget.title.label") == "06_rope.ipynb"


def test_a_term_is_explained_under_the_mouse_and_opens_the_glossary(reader):
    reader.turn("notebooks/06_rope.ipynb")
    term = reader.page.locator(browser.SEEN).get_by_role("link", name="half", exact=True)
    assert term.get_attribute("title").startswith("对半布局（前后两半配对）: RoPE pairs ")
    term.click()
    row = reader.page.locator("tr:visible", has_text="half-split layout")
    row.wait_for()
    reader.page.wait_for_function(SEEN, arg=row.element_handle())


# ---- explorers ----
def test_a_live_explorer_tells_python_its_parameters_and_keeps_the_keys(reader, write_notebook):
    write_notebook(
        "live.ipynb",
        [
            "from tutorial_lib.explorers import RotaryExplorer\nexplorer = RotaryExplorer(m=3)\nexplorer",
            "explorer.params['m'], explorer",
            "explorer.move(m=7)",
            "explorer",
        ],
    )
    reader.turn("live.ipynb")
    reader.run()
    live, again = (reader.cell(number).locator(".live") for number in (0, 3))
    grip = live.locator("[data-key=m]")
    grip.focus()  # which makes its cell the active one
    active = reader.page.evaluate("() => __panel.content.activeCellIndex")
    grip.press("End")
    grip.press("ArrowLeft")
    assert reader.page.evaluate("() => __panel.content.activeCellIndex") == active
    reader.page.wait_for_function(
        "e => e.getAttribute('aria-valuenow') === '39'",  # one model, two views
        arg=again.locator("[data-key=m]").element_handle(),
    )
    for _again in range(5):  # the page knows it before Python does
        reader.run_cell(1)
        told = " ".join("".join(reader.cells()[1]["outputs"][0]["data"]["text/plain"]).split())
        if told.startswith("(39, "):
            break
    assert told.startswith("(39, RotaryExplorer(m=39))")
    reader.run_cell(2)
    reader.page.wait_for_function("e => e.getAttribute('aria-valuenow') === '7'", arg=grip.element_handle())
    ids = reader.page.evaluate("() => [...document.querySelectorAll('.live [id]')].map(node => node.id)")
    assert len(ids) == len(set(ids)) >= 2
    assert not reader.problems()


def test_the_menu_of_the_museum_keeps_its_keys(reader, write_notebook):
    write_notebook("gallery.ipynb", ["from course.lesson import museum\nmuseum.gallery()", "1"])
    reader.turn("gallery.ipynb")
    reader.run()
    menu = reader.page.get_by_role("combobox", name="exhibit")
    menu.focus()
    active = reader.page.evaluate("() => __panel.content.activeCellIndex")
    menu.press("ArrowDown")
    menu.press("ArrowDown")
    reader.cell(0).get_by_text(list(EXHIBITS.values())[2].title + ". Something is wrong").wait_for()
    assert reader.page.evaluate("() => __panel.content.activeCellIndex") == active


def test_explorers_live_in_notebook_7_too(lab):
    notebook = lab.open("explorers.ipynb", front="notebook")
    try:
        notebook.run()
        for number, name in enumerate(explorers.__all__, 1):
            said = notebook.cell(number).locator(".live .lv-more p")
            said.wait_for(state="attached")
            assert said.text_content() == front.seen(getattr(explorers, name)).description
        assert not notebook.problems()
    finally:
        notebook.close()


def test_the_explorer_is_faster_than_a_figure_drawn_anew(lab):
    """The measurement of ``make latency`` in small, with much room for a busy machine.

    Without ipympl: on a busy machine its canvas may stop to draw.
    """
    found = latency.peers(lab, rounds=2, names=(latency.OURS, latency.INLINE))
    assert {name: len(times) for name, times in found.items()} == {latency.OURS: 2, latency.INLINE: 2}
    assert 0 < min(found[latency.OURS]) < min(found[latency.INLINE])
