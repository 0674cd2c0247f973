"""From a key, or a drag, to the painted picture, in JupyterLab: ``python -m workshop.benchmarks.latency``.

First the same scene, a heat map of 128 × 128 cells and a line, as the course's explorer, as an
ipympl figure whose artists get new data, and as an inline matplotlib figure drawn anew; the three
take turns. Then every slider and every handle of every explorer, frames a second of those that play,
and some sliders once more while the kernel computes. ``--save FILE`` keeps a record.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from tutorial_lib import explorers

from ..browser import Lab, Notebook, write
from .measure import machine

PACKAGES = ("jupyterlab", "ipywidgets", "anywidget", "ipympl", "matplotlib")
OURS, IPYMPL, INLINE = "explorer (drawn by the browser)", "ipympl, new data", "inline matplotlib"
SCENE = "dict(d_model=128, positions=128, view='similarity')"
NUMBERS = """
import ipywidgets
import torch
from tutorial_lib import plots
from tutorial_lib.encodings.sinusoidal import sinusoidal
from tutorial_lib.explorers.sinusoidal import BASES
slider = ipywidgets.IntSlider(value=6, max=len(BASES) - 1)
def numbers():
    pe = sinusoidal(torch.arange(128), 128, base=BASES[slider.value])
    return pe, pe @ pe[20]
"""
PEERS = {
    OURS: f"from tutorial_lib.explorers import SinusoidalExplorer\nSinusoidalExplorer(**{SCENE})",
    IPYMPL: NUMBERS
    + """
from ipympl.backend_nbagg import Canvas, FigureManager
from matplotlib.figure import Figure
fig = Figure(figsize=(10, 4))
manager = FigureManager(Canvas(fig), 0)
axes, (table, dots) = fig.subplots(1, 2), numbers()
image = axes[0].imshow(table, cmap="signed", vmin=-1, vmax=1, aspect="auto")
(line,) = axes[1].plot(dots)
fig.colorbar(image)
def redraw(change):
    table, dots = numbers()
    image.set_data(table)
    line.set_ydata(dots)
    fig.canvas.draw_idle()
slider.observe(redraw, "value")
ipywidgets.VBox([slider, fig.canvas])""",
    INLINE: "%matplotlib inline"
    + NUMBERS
    + """
from IPython.display import display
out = ipywidgets.Output()
def draw_anew(change):
    (table, dots), (fig, axes) = numbers(), plots.panels(1, 2, size=(12.4, 4.6))
    plots.heat(table, ax=axes[0])
    plots.lines(range(128), {"dot product": dots}, ax=axes[1])
    with out:
        out.clear_output(wait=True)
        display(fig)
slider.observe(draw_anew, "value")
draw_anew(None)
ipywidgets.VBox([slider, out])""",
}

BESIDE = ["SinusoidalExplorer", "RotaryExplorer", "ScalingExplorer"]
"""Explorers that are moved once more while the kernel computes."""

FRAMES = """(root, ms) => new Promise(done => {
    const end = performance.now() + ms, view = root.querySelector('.live');
    let last = view.dataset.frame, count = 0;
    const tick = () => {
        if (view.dataset.frame !== last) { last = view.dataset.frame; count += 1; }
        if (performance.now() > end) return done(count);
        requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
})"""
COMPUTE = """() => {
    __panel.sessionContext.session.kernel.requestExecute({ code: 'while True: sum(range(1000))' });
}"""
DRAGGED = "all => all.map(each => each.dataset.drag)"
REST = 400  # milliseconds: the picture glides on for a while
WATCH = """
window.__seen = root => {  // a rough print of all pictures below root
    window.__small ??= new OffscreenCanvas(16, 16).getContext('2d', { willReadFrequently: true });
    const small = window.__small;
    let print = '';
    for (const node of root.querySelectorAll('canvas, img')) {
        const ready = node.tagName === 'IMG' ? node.complete && node.naturalWidth : node.width && node.height;
        if (!ready) return null;
        small.clearRect(0, 0, 16, 16);
        small.drawImage(node, 0, 0, 16, 16);
        print += small.getImageData(0, 0, 16, 16).data.join() + ';';
    }
    return print || null;
};
window.__frames = root => [...root.querySelectorAll('.live')].map(view => view.dataset.frame).join();
window.__latency = (root, seen, event) => new Promise(done => {
    const before = seen(root), end = performance.now() + 20000;
    let start = null;
    document.addEventListener(event, () => { start = performance.now(); }, { capture: true, once: true });
    const tick = () => {
        if (performance.now() > end) return done(null);
        const now = start === null ? before : seen(root);
        if (now !== null && now !== before)
            return requestAnimationFrame(() => done(performance.now() - start));
        requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
});
"""


def painted(
    notebook: Notebook, root, seen: str, event: str, act: Callable, *given, idle: bool = True
) -> float | None:
    """Milliseconds from the event that ``act`` makes to the frame after the new picture, or None."""
    notebook.page.evaluate(
        f"root => {{ window.__done = __latency(root, __{seen}, '{event}'); }}", root.element_handle()
    )
    act(*given)
    milliseconds = notebook.page.evaluate("() => window.__done")
    if idle:
        notebook.idle()
    notebook.page.wait_for_timeout(60)
    return milliseconds


def opened(lab: Lab, name: str, sources: list[str]) -> Notebook:
    write(lab.folder / name, sources)
    notebook = lab.open(name)
    notebook.run()
    assert not notebook.problems(), notebook.problems()
    notebook.page.evaluate(f"() => {{ {WATCH} }}")
    return notebook


def peers(lab: Lab, rounds: int, names: Iterable[str] = PEERS) -> dict[str, list[float]]:
    """Milliseconds of each of these :data:`PEERS` in each round; the first two rounds are not counted."""
    found = {name: [] for name in names}
    notebook = opened(lab, "peers.ipynb", [PEERS[name] for name in found])
    for number in range(rounds + 2):
        for cell, name in enumerate(found):
            root = notebook.cell(cell).locator(".jp-OutputArea").first
            box = root.get_by_role("combobox", name="base") if name == OURS else root.locator(".noUi-handle")
            box.focus()
            key = "ArrowRight" if number % 2 else "ArrowLeft"
            milliseconds = painted(notebook, root, "seen", "keydown", box.press, key)
            assert milliseconds is not None, f"{name} shows no new picture"
            if number >= 2:
                found[name].append(milliseconds)
    notebook.close()
    return found


def keys(notebook: Notebook, root, name: str, rounds: int, idle: bool = True) -> dict[str, list[float]]:
    """Milliseconds for each slider of an explorer, moved by a key; the first round is not counted."""
    found = {}
    for slider in root.locator(".live [role=slider]").all():
        parameter = slider.get_attribute("data-key")
        found[parameter] = times = []
        for number in range(rounds + 1):
            low = slider.get_attribute("aria-valuenow") == "0"
            key = "ArrowRight" if low or number % 2 == 0 else "ArrowLeft"
            slider.focus()
            times.append(painted(notebook, root, "frames", "keydown", slider.press, key, idle=idle))
            assert times[-1] is not None, f"{name}, {parameter}: no new picture"
            notebook.page.wait_for_timeout(REST)
        del times[0]
    return found


def drags(notebook: Notebook, root, rounds: int) -> dict[str, list[float]]:
    """The same for each thing to drag; one that paints nothing when its middle is grabbed is left out."""
    found, mouse = {}, notebook.page.mouse
    for parameter in dict.fromkeys(root.locator("[data-drag]").evaluate_all(DRAGGED)):
        found[parameter] = times = []
        for number in range(rounds + 1):
            handle = root.locator(f'[data-drag="{parameter}"]').last
            handle.scroll_into_view_if_needed()
            box, way = handle.bounding_box(), 1 if number % 2 else -1
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            mouse.move(x, y)
            mouse.down()
            notebook.page.wait_for_timeout(REST)
            times.append(
                painted(notebook, root, "frames", "pointermove", mouse.move, x + 20 * way, y - 20 * way)
            )
            mouse.up()
            notebook.page.wait_for_timeout(REST)
        del times[0]
    return {parameter: times for parameter, times in found.items() if None not in times}


def shown(names: list[str]) -> list[str]:
    return [f"from tutorial_lib.explorers import {name}\n{name}()" for name in names]


def output(notebook: Notebook, cell: int):
    return notebook.cell(cell).locator(".jp-OutputArea").first


def controls(lab: Lab, rounds: int) -> tuple[dict[str, dict[str, list[float]]], dict[str, float]]:
    """Milliseconds for each slider of each explorer and for each thing to drag; frames a second in play."""
    names = explorers.__all__
    notebook = opened(lab, "controls.ipynb", shown(names))
    found, playing = {}, {}
    for cell, name in enumerate(names):
        root = output(notebook, cell)
        found[name] = keys(notebook, root, name, rounds)
        found[name] |= {
            f"{parameter}, dragged": times for parameter, times in drags(notebook, root, rounds).items()
        }
        if root.locator(".lv-play").count():
            playing[name] = rate(root)
    notebook.close()
    return found, playing


def rate(root) -> float:
    """Frames a second of the first thing that an explorer plays: new pictures in two seconds."""
    button = root.locator(".lv-play").first
    button.click()
    frames = root.evaluate(FRAMES, 2000)
    button.click()
    return frames / 2


def computing(lab: Lab, rounds: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of the sliders of some explorers, the kernel idle and computing."""
    notebook = opened(lab, "computing.ipynb", shown(BESIDE))
    found: dict[str, dict[str, float]] = {name: {} for name in BESIDE}
    for state in ("idle", "computing"):
        if state == "computing":
            notebook.page.evaluate(COMPUTE)
            notebook.page.wait_for_function("() => __panel.sessionContext.session.kernel.status === 'busy'")
        for cell, name in enumerate(BESIDE):
            times = keys(notebook, output(notebook, cell), name, rounds, idle=state == "idle")
            found[name][state] = statistics.median(sum(times.values(), []))
    notebook.close()
    return found


def measured(lab: Lab, rounds: int) -> dict:
    """The record: medians, and what became of each target."""
    beside, (each, playing) = peers(lab, rounds), controls(lab, max(3, rounds // 2))
    busy = computing(lab, max(3, rounds // 2))
    medians = {
        name: {p: statistics.median(times) for p, times in found.items()} for name, found in each.items()
    }
    slowest, where = max(
        (value, f"{name}, {p}") for name, found in medians.items() for p, value in found.items()
    )
    ours = statistics.median(beside[OURS])

    def quotient(peer):
        return statistics.median(a / b for a, b in zip(beside[OURS], beside[peer], strict=True))

    targets = [
        ("heat map of 128 × 128, median ms", 60, ours),
        (f"slowest control of all explorers ({where}), median ms", 100, slowest),
        ("time beside ipympl", 0.5, quotient(IPYMPL)),
        ("time beside inline matplotlib", 0.2, quotient(INLINE)),
        (
            "slowest of some explorers, kernel computing beside idle",
            1.3,
            max(times["computing"] / times["idle"] for times in busy.values()),
        ),
    ]
    return {
        "rounds": rounds,
        "ms": {name: statistics.median(times) for name, times in beside.items()},
        "controls": medians,
        "frames a second in play": playing,
        "kernel computing": busy,
        "targets": [{"target": text, "most": most, "measured": value} for text, most, value in targets],
    }


def show(result: dict) -> str:
    """The result as lines of text."""
    lines = ["From a key, or a drag, to the painted picture, median ms"]
    lines += [f"  {name:42} {value:7.0f}" for name, value in result["ms"].items()]
    for name, found in result["controls"].items():
        lines += [f"  {f'{name}, {parameter}':42} {value:7.0f}" for parameter, value in found.items()]
    lines += [
        f"  {f'{name}, frames a second in play':42} {value:7.0f}"
        for name, value in result["frames a second in play"].items()
    ]
    lines += [
        f"  {f'{name}, kernel {state}':42} {value:7.0f}"
        for name, times in result["kernel computing"].items()
        for state, value in times.items()
    ]
    for target in result["targets"]:
        met = "met   " if target["measured"] <= target["most"] else "MISSED"
        lines.append(f"  {met} {target['measured']:7.2f}  {target['target']}: at most {target['most']}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m workshop.benchmarks.latency", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how often each case is timed (15)")
    parser.add_argument("--save", type=Path, help="also write a JSON record to this file")
    given = parser.parse_args(arguments)
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds}: it must be at least 1")
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder)) as lab:
        result = measured(lab, given.rounds)
        browser = lab.browser.version
    print(show(result))
    if given.save:
        record = {
            "machine": machine(),
            "chromium": browser,
            "versions": {name: metadata.version(name) for name in PACKAGES},
            "date": datetime.now(UTC).date().isoformat(),
            **result,
        }
        given.save.parent.mkdir(parents=True, exist_ok=True)
        given.save.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
