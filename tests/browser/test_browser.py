"""Every notebook and every explorer in a real JupyterLab, in a real browser.

That all cells run, and print what is stored, is nbval's to say; here the first notebook is run whole, and of
the others what a reader moves or answers. All of it is one module: one server and one browser serve all.
"""

import math
import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from benchmarks import latency
from tutorial_lib import explorers
from tutorial_lib.course import authoring, browser
from tutorial_lib.explorers.parts import Heat, Index, Vectors

NOTEBOOKS = sorted(path.name for path in authoring.NOTEBOOKS.glob("*.ipynb"))
LIVE = re.compile(r"^(\w+Explorer|lesson\.(predict|concept_check|inventory)|museum\.(visit|gallery))\(", re.M)
SEEN = "e => { const box = e.getBoundingClientRect(); return 0 < box.bottom && box.top < innerHeight; }"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
KEYS = (("ArrowDown", 0, 1), ("ArrowUp", 0, -1), ("Home", -1, 0), ("ArrowRight", -1, 1), ("End", -1, 0),
        ("ArrowLeft", -1, -1))
# those that are not live; the others: test_live_pages.py, and below
OLD = [name for name in explorers.__all__ if not getattr(getattr(explorers, name), "front", "")]
every_explorer = pytest.mark.parametrize("name", OLD)


def serious(page, where):
    """What axe finds there that is serious or critical: ``{rule: first place}``."""
    found = Axe().run(page, context={"include": [[where]]}).response["violations"]
    return {rule["id"]: (rule["help"], rule["nodes"][0]["html"][:200]) for rule in found
            if rule["impact"] in ("serious", "critical")}


# ---- the watch itself ----
def test_whatever_goes_wrong_is_noticed(lab, write_notebook):
    write_notebook("broken.ipynb", [
        "import anywidget, ipywidgets as w, sys\nfrom IPython.display import HTML\n"
        "def fail(change): raise LookupError('in a callback')\n"
        "box = w.IntText(value=1); box.observe(fail, 'value'); box",
        "class Bad(anywidget.AnyWidget):\n"
        "    _esm = 'export default { render() { throw new Error(\"in a render\"); } }'\n"
        "Bad()",
        "print('to stderr', file=sys.stderr)",
        "HTML('<img src=\"http://example.org/x.png\" alt=\"\">')",
        "HTML('<script>setTimeout(() => { throw new Error(\"in a script\"); })</script>')",
        "1 / 0",
        "print('never reached')",
    ])
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
    for sign in ("LookupError: in a callback", "in a render", "to stderr", "example.org", "in a script",
                 "cell 5: ZeroDivisionError", "cell 6 did not run"):
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
    live = [n for n, cell in enumerate(reader.cells())
            if cell["cell_type"] == "code" and LIVE.search(cell["source"])]
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
        "all => all.map(e => [e.complete && e.naturalWidth, e.alt])")
    assert all(width > 300 and len(words.split()) > 5 for width, words in found), found
    return found


def comes_alive(cell):
    """A widget stands in the cell; an explorer says something, and something else after a key."""
    widget = cell.locator(".jupyter-widgets, .live").first
    widget.wait_for()  # a page may lag behind its kernel
    for explorer in cell.locator(".live").all():
        said, slider = explorer.locator(".lv-more p"), explorer.locator("[role=slider]").last
        before = said.text_content()
        slider.press("ArrowRight" if slider.get_attribute("aria-valuenow") == "0" else "ArrowLeft")
        cell.page.wait_for_function("([e, t]) => e.textContent && e.textContent !== t",
                                    arg=[said.element_handle(), before])
    for explorer in cell.locator(".order-explorer").all():
        said = explorer.locator(".order-description")
        before, control = said.inner_text(), explorer.locator(".order-controls > *").first
        assert before
        if control.locator("input, select").count():
            box = control.locator("input, select").first
            box.press("ArrowLeft" if int(box.input_value()) else "ArrowRight")
        else:
            control.locator("button:not(.mod-active)").first.press("Enter")
        cell.page.wait_for_function("([e, t]) => e.innerText && e.innerText !== t",
                                    arg=[said.element_handle(), before])


def test_after_a_break_the_panel_opens_the_notebook(reader, write_notebook):
    write_notebook("notebooks/panel.ipynb", [
        "import os, pathlib, tempfile\nfrom tutorial_lib import lesson, progress\n"
        "os.environ['TUTORIAL_PROGRESS'] = str(pathlib.Path(tempfile.mkdtemp()) / 'progress.json')\n"
        "progress.record('06.predict.pairs', choice='x', at=progress.now())\n"
        "lesson.progress()"])
    reader.turn("notebooks/panel.ipynb")
    reader.run()
    assert not reader.problems()
    reader.page.get_by_role("link", name="06 RoPE, Two layouts").click()
    reader.page.locator('h2[data-jupyter-id="Two-layouts"]:visible').wait_for()  # there is such an anchor
    assert reader.page.evaluate("() => jupyterapp.shell.currentWidget.title.label") == "06_rope.ipynb"


def test_a_term_is_explained_under_the_mouse_and_opens_the_glossary(reader):
    reader.turn("notebooks/06_rope.ipynb")
    term = reader.page.locator(browser.SEEN).get_by_role("link", name="cache", exact=True)
    assert term.get_attribute("title").startswith("键值缓存: Keys and values ")
    term.click()
    row = reader.page.locator("tr:visible", has_text="KV cache")
    row.wait_for()
    reader.page.wait_for_function(SEEN, arg=row.element_handle())


# ---- explorers ----
def test_a_live_explorer_tells_python_its_parameters_and_keeps_the_keys(reader, write_notebook):
    write_notebook("live.ipynb", [
        "from tutorial_lib.explorers import RotaryExplorer\nexplorer = RotaryExplorer(m=3)\nexplorer",
        "explorer.params['m'], explorer.verdict", "explorer.move(m=7)", "explorer"])
    reader.turn("live.ipynb")
    reader.run()
    live, again = (reader.cell(number).locator(".live") for number in (0, 3))
    grip = live.locator("[data-key=m]")
    grip.focus()  # which makes its cell the active one
    active = reader.page.evaluate("() => __panel.content.activeCellIndex")
    grip.press("End")
    grip.press("ArrowLeft")
    assert reader.page.evaluate("() => __panel.content.activeCellIndex") == active
    reader.page.wait_for_function("e => e.getAttribute('aria-valuenow') === '39'",  # one model, two views
                                  arg=again.locator("[data-key=m]").element_handle())
    reader.run_cell(1)
    told = "".join(reader.cells()[1]["outputs"][0]["data"]["text/plain"])
    assert " ".join(told.split()).startswith("(39, 'Challenge: ")
    reader.run_cell(2)
    reader.page.wait_for_function("e => e.getAttribute('aria-valuenow') === '7'", arg=grip.element_handle())
    ids = reader.page.evaluate("() => [...document.querySelectorAll('.live [id]')].map(node => node.id)")
    assert len(ids) == len(set(ids)) >= 2
    assert not reader.problems()


@pytest.fixture(scope="module")
def page(lab):
    """The notebook that has every explorer, run."""
    notebook = lab.open("explorers.ipynb")
    notebook.run()
    assert not notebook.problems()
    yield notebook
    assert not notebook.problems()
    notebook.close()


@pytest.fixture(scope="module")
def all_shown(page, shown):
    return {name: shown(page, number, getattr(explorers, name))
            for number, name in enumerate(explorers.__all__, 1) if name in OLD}


@pytest.fixture
def explorer(page, all_shown, name):
    yield all_shown[name]
    assert not page.problems()


@every_explorer
def test_every_control_moves_the_picture_as_the_model_says(explorer):
    explorer.check()
    start = explorer.params()
    for name in explorer.names:
        label = explorer.control(name).inner_text()
        assert (explorer.kind.parameters[name].label or name) in label
        seen = set()
        for _ in explorer.steps(name):
            seen.add(explorer.check()[name])
        allowed = explorer.kind.parameters[name].allowed(explorer.params())
        assert {allowed[0], allowed[-1]} <= seen and len(seen) >= min(len(allowed), 3)
        if start[name] in allowed:
            explorer.put(name, start[name])
            explorer.check()


@every_explorer
def test_another_scene_would_be_noticed(explorer):
    """The comparison that all tests here lean on is not blind."""
    params = explorer.check()
    now = explorer.kind.scene(**params)
    for other in explorer.kind.grid():
        scene = explorer.kind.scene(**other)
        for name, view in scene.views.items():
            mine = now.views[name]
            if type(view) is type(mine) and view.array().shape == mine.array().shape \
                    and abs(view.array() - mine.array()).max() > 0.2 * abs(mine.array()).max() > 0:
                swapped = now._replace(views=now.views | {name: view})
                assert explorer.differs(swapped).startswith(f"{name}: ")
                return
    pytest.fail("no scene of the same shape differs")


@every_explorer
def test_clicks_hovers_and_keys_in_a_picture(explorer):
    for name in explorer.views:
        view = explorer.kind.scene(**explorer.check()).views[name]
        shape = view.array().shape
        cells = ([(0, 0), (shape[0] - 1, shape[1] // 2), (shape[0] // 2, shape[1] - 1)]
                 if isinstance(view, Heat) else [(0,), (shape[1] - 1,), (shape[1] // 2,)])
        for cell in cells:
            explorer.page.mouse.click(*explorer.spot(name, cell))
            explorer.picked(name, cell)
            if view.pick:
                params = explorer.check()
                names = (view.pick,) if isinstance(view.pick, str) else view.pick
                assert tuple(params[each] for each in names) == cell
            else:
                explorer.check()
                if not (view.readout and tuple(np.atleast_1d(view.mark)) == cell):
                    reads_value(explorer.views[name].locator(".order-readout"), value_at(view, cell))
            view = explorer.kind.scene(**explorer.params()).views[name]
            explorer.page.mouse.move(*explorer.spot(name, cell))
            tip = explorer.views[name].locator(".order-tip")
            tip.wait_for()
            reads_value(tip, value_at(view, cell))
            if view.array().shape != shape:
                break  # the click has changed the size of the picture
        if view.pick:
            canvas = explorer.views[name].locator("canvas")
            active = explorer.page.evaluate("() => __panel.content.activeCellIndex")
            for key, axis, move in KEYS if isinstance(view, Heat) else KEYS[2:]:
                view = explorer.kind.scene(**explorer.params()).views[name]
                mark = np.atleast_1d(view.mark).tolist()
                last = view.array().shape[axis] - 1
                mark[axis] = {"Home": 0, "End": last}.get(key, min(max(mark[axis] + move, 0), last))
                canvas.press(key)
                explorer.picked(name, tuple(mark))
                params = explorer.check()
                names = (view.pick,) if isinstance(view.pick, str) else view.pick
                assert [params[each] for each in names] == mark
            assert explorer.page.evaluate("() => __panel.content.activeCellIndex") == active
    explorer.page.mouse.move(2, 2)


def value_at(view, cell):
    """The number with which a read-out of this cell ends; of an arrow, its angle in degrees."""
    if isinstance(view, Vectors):
        x, y = view.array()[:, cell[0]]
        return math.degrees(math.atan2(y, x))
    return float(view.array()[cell] if isinstance(view, Heat) else view.array()[-1][cell[0]])


def reads_value(place, value):
    """The text ends with this number, as it is rounded there."""
    if math.isnan(value):
        assert place.inner_text().endswith("none")
        return
    last = NUMBER.findall(place.inner_text().replace("−", "-"))[-1]
    digits = len(last.split(".")[1]) if "." in last and "e" not in last else 0
    assert abs(float(last) - value) <= max(0.51 * 10**-digits, 6e-3 * abs(value)), (last, value)


@every_explorer
def test_the_challenge_can_be_won_with_the_controls(explorer):
    kind = explorer.kind
    targets = (kind.settings(**{name: params[name] for name in explorer.names}) for params in kind.grid())
    target = next(params for params in targets if kind.reached(**params))
    told = explorer.root.locator(".order-challenge")
    assert kind.challenge in told.inner_text()
    for name in explorer.names:
        explorer.put(name, target[name])
    params = explorer.check()
    assert {name: params[name] for name in explorer.names} == {n: target[n] for n in explorer.names}
    assert told.inner_text().endswith(f"✔ Reached: {kind.reached(**params)}")
    assert told.get_attribute("role") == "status"


@every_explorer
def test_play_pause_and_speed(explorer):
    playing = [name for name, p in explorer.kind.parameters.items() if getattr(p, "play", False)]
    for name in playing:
        explorer.put(name, explorer.kind.parameters[name].allowed(explorer.params())[0])
        control = explorer.control(name)
        speed, button = control.locator("select"), control.locator("button")
        speed.select_option("20")
        assert button.get_attribute("aria-label").startswith("Play")
        button.press("Enter")
        assert button.get_attribute("aria-label").startswith("Pause")
        explorer.page.wait_for_function("([e, n]) => +e.value >= n", arg=[
            control.locator("input").element_handle(),
            min(5, len(explorer.kind.parameters[name].allowed(explorer.params())) - 1)],
            timeout=3500)  # five steps at 20 per second; at one per second they take five seconds
        button.press("Space")
        assert button.get_attribute("aria-label").startswith("Play")
        rest = explorer.check()[name]
        explorer.page.wait_for_timeout(200)
        assert explorer.check()[name] == rest
        speed.select_option("5")


@every_explorer
def test_keys_alone_reach_every_control(explorer):
    """Tab goes through all controls and pictures, and a focused one is seen to be."""
    wanted = explorer.root.locator("input, select, button, canvas").element_handles()
    wanted[0].focus()
    for handle in wanted:
        assert handle.evaluate("e => e === document.activeElement"), handle.evaluate("e => e.outerHTML")
        assert handle.evaluate("e => getComputedStyle(e).outlineStyle") != "none" or handle.evaluate(
            "e => getComputedStyle(e).boxShadow") != "none"
        explorer.page.keyboard.press("Tab")


@every_explorer
def test_nothing_is_cut_off_at_the_size_of_a_projector(explorer):
    """At 1280 × 720 nothing is wider than the page, and no two parts lie on each other."""
    parts = explorer.root.evaluate("""root => {
        const all = [...root.querySelectorAll('.order-controls > *, .order-views > *, .order-status')];
        return all.map(e => { const b = e.getBoundingClientRect();
                              return [e.className, b.left, b.top, b.right, b.bottom]; }); }""")
    page = explorer.page.viewport_size["width"]
    for n, (name, left, top, right, bottom) in enumerate(parts):
        assert right <= page and left >= 0 and right - left > 20 and bottom - top > 10, name
        for other, *box in parts[n + 1:]:
            apart = min(right, box[2]) - max(left, box[0]), min(bottom, box[3]) - max(top, box[1])
            assert min(apart) < 2, (name, other)
    wide = explorer.root.evaluate("""root => [...root.querySelectorAll('*')].filter(
        e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible'
             && !e.classList.contains('order-hidden')).map(e => e.outerHTML.slice(0, 200))""")
    assert not wide


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_in_the_explorers(page, shown, dark):
    page.theme(dark)
    try:
        for number in range(len(explorers.__all__)):
            page.page.locator(".order-explorer").nth(number).scroll_into_view_if_needed()
        assert not serious(page.page, ".jp-Notebook .jp-OutputArea")
    finally:
        page.theme(dark=False)


def test_explorers_live_in_notebook_7_too(lab, shown):
    notebook = lab.open("explorers.ipynb", front="notebook")
    try:
        notebook.run()
        for number, name in enumerate(explorers.__all__, 1):
            explorer = shown(notebook, number, getattr(explorers, name))
            explorer.check()
            moving = next(each for each in explorer.names
                          if isinstance(explorer.kind.parameters[each], Index) or each == explorer.names[-1])
            next(explorer.steps(moving))
            explorer.check()
        assert not notebook.problems()
    finally:
        notebook.close()


def test_the_explorer_is_faster_than_a_figure_drawn_anew(lab):
    """The measurement of ``make latency`` in small, with much room for a busy machine."""
    pytest.importorskip("ipympl", reason="one of the peers")
    found = latency.peers(lab, rounds=2)
    assert {name: len(times) for name, times in found.items()} == dict.fromkeys(latency.PEERS, 2)
    assert 0 < min(found[latency.OURS]) < min(found[latency.INLINE])
