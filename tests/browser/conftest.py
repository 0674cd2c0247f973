"""One JupyterLab in headless Chromium for all tests here, and explorers looked at as pictures."""

import base64
import io
import shutil
import time

import matplotlib
import numpy as np
import pytest
from PIL import Image

from tutorial_lib import explorers
from tutorial_lib.course import authoring, navigation
from tutorial_lib.course.browser import Lab, write
from tutorial_lib.explorers import live
from tutorial_lib.explorers.parts import Choice, Heat, Index, Lines, Vectors

# The colours of view.js, light theme: what is on the canvas is held against them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87F00", "#3A8FC2", "#000000")


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    """A lab whose folder has ``notebooks``, ``docs``, and ``explorers.ipynb`` with every explorer."""
    folder = tmp_path_factory.mktemp("course")
    for part in (authoring.NOTEBOOKS, navigation.GLOSSARY.parent):
        shutil.copytree(part, folder / part.name)
    write(folder / "explorers.ipynb", ["from tutorial_lib.explorers import *"]
          + [f"{name}()" for name in explorers.__all__])
    with Lab(folder) as lab:
        yield lab


# ---- a picture against the scene that it should show ----
def rgb(colour):
    return np.array([int(colour[i:i + 2], 16) for i in (1, 3, 5)], dtype=float)


def near(image, colour, tolerance=40.0):
    """Where ``image`` ``[rows, columns, 4]`` is painted in ``colour``: bool ``[rows, columns]``."""
    return (np.abs(image[..., :3] - colour).max(-1) < tolerance) & (image[..., 3] > 200)


def looks(cells, start, end, pixels):
    """Where to look along a side with ``cells`` cells from pixel ``start`` to ``end``.

    At the middle of each cell; or, of cells thinner than two pixels, at stripes of 12 pixels.
    Returns the places ``[looks, 2]`` (from, to), and what each look sees as weighted means, of
    pixels ``[looks, pixels]`` and of cells ``[looks, cells]``.
    """
    step = (end - start) / cells
    if step >= 2:
        middles = (start + (np.arange(cells) + 0.5) * step).astype(int)
        return np.stack([middles, middles + 1], 1), np.eye(pixels)[middles], np.eye(cells)
    first = int(np.ceil(start))
    places = np.array([(x, x + 12) for x in range(first, int(end) - 12, 12)])
    edges = start + np.arange(cells + 1) * step
    overlap = np.minimum(edges[1:], places[:, 1:]) - np.maximum(edges[:-1], places[:, :1])
    of_pixels = np.array([[lo <= x < hi for x in range(pixels)] for lo, hi in places]) / 12
    return places, of_pixels, overlap.clip(0) / 12


def heat_differs(view, image, plot, picked):
    """Empty if the canvas shows the heat map ``view``, else what is wrong."""
    left, top, right, bottom = plot
    z = view.array()
    rows, columns = z.shape
    colour = matplotlib.colormaps[view.cmap](matplotlib.colors.Normalize(*view.limits)(z))[..., :3] * 255
    ys, see_y, mean_y = looks(rows, top, bottom, image.shape[0])
    xs, see_x, mean_x = looks(columns, left, right, image.shape[1])
    empty = mean_y @ np.isnan(z) @ mean_x.T  # a share of cells that hold nothing: transparent
    expected = np.stack([mean_y @ colour[..., c] @ mean_x.T for c in range(3)], -1)
    seen = np.stack([see_y @ image[..., c] @ see_x.T for c in range(3)], -1)
    clear = (empty == 0) | (empty == 1)  # looks that no frame covers
    if picked:
        high, wide = (bottom - top) / rows, (right - left) / columns
        y0, x0 = top + picked[0] * high, left + picked[1] * wide
        for a, b, width, height in ((left, y0, right - left, high), (x0, y0, wide, high)):
            px, py = max(0, 6 - width) / 2 + 4, max(0, 6 - height) / 2 + 4
            outside = ((ys[:, 1] < b - py) | (ys[:, 0] > b + height + py))[:, None] | (
                (xs[:, 1] < a - px) | (xs[:, 0] > a + width + px))[None]
            inside = ((ys[:, 0] > b + 4) & (ys[:, 1] < b + height - 4))[:, None] & (
                (xs[:, 0] > a + 4) & (xs[:, 1] < a + width - 4))[None]
            clear &= outside | inside
        middles = [(y0, x0 + wide / 2), (y0 + high, x0 + wide / 2), (y0 + high / 2, x0),
                   (y0 + high / 2, x0 + wide)]
        for y, x in middles:  # a frame never smaller than six pixels: black, with a white halo
            around = image[max(0, int(y) - 5):int(y) + 6, max(0, int(x) - 5):int(x) + 6]
            if not near(around, 0.0).any():
                return f"no frame around the picked cell {picked}"
    exact = len(ys) == rows and len(xs) == columns
    wrong = clear & ((np.abs(seen - expected).max(-1) > (8 if exact else 25))
                     | (np.abs(see_y @ image[..., 3] @ see_x.T - 255 * (1 - empty)) > 2))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        return f"{wrong.sum()} of {clear.sum()} looks, first ({i}, {j}): {seen[i, j]} not {expected[i, j]}"
    return "" if clear.any() else "no cell can be seen"


def lines_differ(view, image, plot, limits, picked):
    """Empty if the canvas shows the lines of ``view`` and no others, else what is wrong."""
    left, top, right, bottom = plot
    x, *ys = view.array().astype(float)
    x_lo, x_hi, y_lo, y_hi = limits
    if not (x_lo <= x.min() and x.max() <= x_hi):
        return f"x from {x_lo} to {x_hi} does not hold {x.min()} … {x.max()}"
    if view.ylim and not np.allclose((y_lo, y_hi), view.ylim):
        return f"y from {y_lo} to {y_hi}, not {view.ylim}"

    def place(v, lo, hi, start, end, log):
        share = np.log(v / lo) / np.log(hi / lo) if log else (v - lo) / (hi - lo)
        return start + (end - start) * share

    px = place(x, x_lo, x_hi, left, right, view.logx)
    with np.errstate(divide="ignore", invalid="ignore"):
        py = [place(y, y_lo, y_hi, bottom, top, view.logy) for y in ys]
    inks = [rgb(COLOURS[k % len(COLOURS)]) for k in range(len(ys))]
    shown = [near(image, ink) for ink in inks]
    for k, heights in enumerate(py):
        # Each point: the line's colour, or that of a line drawn over it, is close by.
        for j in np.unique(np.linspace(0, len(x) - 1, 40).astype(int)):
            if not (np.isfinite(heights[j]) and top + 2 < heights[j] < bottom - 2):
                continue
            box = np.s_[max(0, int(heights[j]) - 9):int(heights[j]) + 10,
                        max(0, int(px[j]) - 9):int(px[j]) + 10]
            if not any(mask[box].any() for mask in shown):
                return f"line {k} is not seen at its point {j}, ({px[j]:.0f}, {heights[j]:.0f})"
        # Each painted pixel: the line is close by.
        legend = int(top) + 1
        for column in np.linspace(left + 3, right - 3, 60).astype(int):
            painted = np.flatnonzero(shown[k][legend:int(bottom) - 1, column]) + legend
            if not len(painted):
                continue
            window = np.append(px[np.abs(px - column) < 8], [column - 8, column + 8])
            around = np.interp(window, px, np.nan_to_num(heights, posinf=top, neginf=bottom))
            spread = painted.min() < around.min() - 9 or painted.max() > around.max() + 9
            if spread and not (inks[k] == 0).all():  # black is also the ink of ticks and levels
                return (f"line {k} at x pixel {column}: painted {painted.min()} … {painted.max()}, "
                        f"expected {around.min():.0f} … {around.max():.0f}")
    if picked and picked[0] < len(x):
        at = int(px[picked[0]])
        strip = image[int(top) + 2:int(bottom) - 2, max(0, at - 1):at + 2, 3]
        if (strip.max(1) > 60).mean() < 0.9:
            return f"no upright line at the picked point {picked[0]}"
    return ""


def vectors_differ(view, image, plot, limits, picked):
    """Empty if the canvas shows the arrows of ``view`` and no others, else what is wrong."""
    left, top, right, bottom = plot
    x_lo, x_hi, y_lo, y_hi = limits
    if not np.isclose((x_hi - x_lo) / (right - left), (y_hi - y_lo) / (bottom - top)):
        return "the two axes have different scales"
    tips = np.stack([left + (view.array()[0] - x_lo) / (x_hi - x_lo) * (right - left),
                     bottom - (view.array()[1] - y_lo) / (y_hi - y_lo) * (bottom - top)], -1)
    centre = np.array([left + right, top + bottom]) / 2
    shown = [near(image, rgb(COLOURS[k % len(COLOURS)])) for k in range(len(tips))]
    for k, tip in enumerate(tips):
        for share in (0.3, 0.5, 0.7, 0.9, 1.0):
            x, y = (centre + share * (tip - centre)).astype(int)
            box = np.s_[max(0, y - 8):y + 9, max(0, x - 8):x + 9]
            if not any(mask[box].any() for mask in shown):
                return f"arrow {k} is not seen at {share} of its length"
        rows, columns = np.nonzero(shown[k][int(top):int(bottom), int(left):int(right)])
        places = np.stack([columns + int(left), rows + int(top)], -1) - centre
        along = (places @ (tip - centre) / max(((tip - centre) ** 2).sum(), 1e-9)).clip(0, 1)
        off = np.linalg.norm(places - along[:, None] * (tip - centre), axis=-1)
        if len(off) and off.max() > 12:
            return f"arrow {k} is painted {off.max():.0f} pixels from where it should be"
    if picked:
        around = np.linspace(0, 2 * np.pi, 24, endpoint=False)
        ring = [image[max(0, v - 1):v + 2, max(0, u - 1):u + 2, 3].max() > 100 for u, v in zip(
            (tips[picked[0]][0] + 9 * np.cos(around)).astype(int),
            (tips[picked[0]][1] + 9 * np.sin(around)).astype(int), strict=True)]
        if sum(ring) < 22:
            return f"no ring at the picked arrow {picked[0]}"
    return ""


# ---- an explorer on a page ----
class Shown:
    """An explorer as a reader has it: moved by keys and clicks, read from labels and pixels."""

    def __init__(self, notebook, cell, kind):
        self.notebook, self.page, self.kind = notebook, notebook.page, kind
        self.root = notebook.cell(cell).locator(".order-explorer")
        self.root.wait_for()
        self.names = [name for name, p in kind.parameters.items() if not p.hidden]
        self.controls = self.root.locator(".order-controls > *")
        self.hidden = {name: p.start for name, p in kind.parameters.items() if p.hidden}
        self.own = {}  # cells picked in a view that sets no parameter
        views = self.root.locator(".order-view[data-plot]")
        views.nth(len(kind.scene().views) - 1).wait_for()  # a page may lag behind its kernel
        self.views = dict(zip(kind.scene().views, self.root.locator(".order-views > *").all(), strict=True))
        self.controls.nth(len(self.names) - 1).wait_for()
        assert self.controls.count() == len(self.names)

    def control(self, name):
        return self.controls.nth(self.names.index(name))

    def index(self, name):
        """The step at which the control stands, as the page shows it."""
        control = self.control(name)
        if isinstance(self.kind.parameters[name], Choice) and not self.kind.parameters[name].menu:
            return control.locator("button").evaluate_all(
                "all => all.findIndex(b => b.classList.contains('mod-active'))")
        return int(control.locator("input, select.order-menu").first.input_value())

    def params(self):
        params = {}
        for name, parameter in self.kind.parameters.items():
            allowed = parameter.allowed(params)
            if parameter.hidden:
                value = self.hidden[name] = min(self.hidden[name], allowed[-1])
                params[name] = value
            else:
                params[name] = allowed[min(self.index(name), len(allowed) - 1)]
        return params

    def picture(self, name):
        """``(image, plot, limits)``: RGBA as float, one pixel for one of the page's."""
        url, plot, limits = self.views[name].evaluate("""el => {
            const view = el.matches('.order-view') ? el : el.querySelector('.order-view');
            return [view.querySelector('canvas').toDataURL(), view.dataset.plot, view.dataset.limits]; }""")
        image = Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))).convert("RGBA")
        return (np.asarray(image).astype(float), [float(v) for v in plot.split(",")],
                [float(v) for v in limits.split(",")] if limits else [])

    def differs(self, scene):
        """Empty if words and pictures are those of ``scene``, else what is wrong."""
        said = self.root.locator(".order-description").inner_text()
        if said != scene.description:
            return f"says {said!r}, not {scene.description!r}"
        for name, view in scene.views.items():
            image, plot, limits = self.picture(name)
            picked = self.own.get(name) or ([] if view.mark is None else np.atleast_1d(view.mark).tolist())
            if isinstance(view, Heat):
                problem = heat_differs(view, image, plot, picked)
            elif isinstance(view, Lines):
                problem = lines_differ(view, image, plot, limits, picked)
            elif isinstance(view, Vectors):
                problem = vectors_differ(view, image, plot, limits, picked)
            else:
                problem = f"no test knows a {type(view).__name__}"
            if not problem and view.readout and name not in self.own:
                readout = self.views[name].locator(".order-readout").inner_text()
                if readout.split() != view.readout.split():
                    problem = f"reads {readout!r}, not {view.readout!r}"
            if problem:
                return f"{name}: {problem}"
        error = self.root.locator(".order-error").inner_text()
        return f"error: {error}" if error else ""

    def check(self, seconds=8.0):
        """Wait until the page shows what the model says for the settings that the page shows."""
        end = time.monotonic() + seconds
        while True:
            params = self.params()
            problem = self.differs(self.kind.scene(**params))
            if not problem:
                return params
            assert time.monotonic() < end, f"{self.kind.__name__} at {params}: {problem}"
            time.sleep(0.03)

    def steps(self, name):
        """Move the control by keys alone, and stop at each choice; of a slider, at a few places."""
        self.own = {}
        control, parameter = self.control(name), self.kind.parameters[name]
        if isinstance(parameter, Choice) and not parameter.menu:
            for n, button in enumerate(control.locator("button").all()):
                button.focus()
                button.press("Space" if n % 2 else "Enter")
                yield
            return
        box = control.locator("input, select.order-menu").first
        last = len(parameter.allowed(self.params())) - 1
        menu = parameter_is_menu(parameter)
        back, on = ("ArrowUp", "ArrowDown") if menu else ("ArrowLeft", "ArrowRight")
        keys = ["Home", *[on] * (last if menu else min(last, 1))]
        keys += ["PageUp"] * (last > 16 and not menu) + ["End", back]
        box.focus()
        for key in keys:
            before = self.index(name)
            box.press(key)
            now = self.index(name)
            assert {"Home": now == 0, "End": now == last, on: now == before + 1, "PageUp": now > before + 1,
                    back: now == max(before - 1, 0)}[key], f"{name}: {key} goes from {before} to {now}"
            yield

    def put(self, name, value):
        """Set one parameter, by whatever way is quickest."""
        self.own = {}
        params, parameter = self.params(), self.kind.parameters[name]
        index = list(parameter.allowed(params)).index(value)
        control = self.control(name)
        if isinstance(parameter, Choice) and not parameter.menu:
            control.locator("button").nth(index).click()
        elif parameter_is_menu(parameter):
            control.locator("select.order-menu").first.select_option(index=index)
        else:
            control.locator("input").fill(str(index))

    def spot(self, name, cell):
        """Where on the page the middle of a cell (or point) of a view is: ``(x, y)``."""
        view = self.kind.scene(**self.params()).views[name]
        _, (left, top, right, bottom), limits = self.picture(name)
        if isinstance(view, Heat):
            rows, columns = view.array().shape
            x = left + (cell[1] + 0.5) * (right - left) / columns
            y = top + (cell[0] + 0.5) * (bottom - top) / rows
        elif isinstance(view, Vectors):
            end = view.array()[:, cell[0]]
            x = left + (end[0] - limits[0]) / (limits[1] - limits[0]) * (right - left)
            y = bottom - (end[1] - limits[2]) / (limits[3] - limits[2]) * (bottom - top)
        else:
            lo, hi, v = limits[0], limits[1], float(view.x[cell[0]])
            share = np.log(v / lo) / np.log(hi / lo) if view.logx else (v - lo) / (hi - lo)
            x, y = left + share * (right - left), (top + bottom) / 2
        canvas = self.views[name].locator("canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        return box["x"] + float(x), box["y"] + float(y)

    def picked(self, name, cell):
        """Tell which cell of a view the reader has picked: hidden parameters follow it."""
        pick = self.kind.scene(**self.params()).views[name].pick
        self.own = {} if pick else self.own | {name: list(cell)}  # a new scene forgets them
        for parameter, value in zip((pick,) if isinstance(pick, str) else pick or (), cell, strict=False):
            if parameter in self.hidden:
                self.hidden[parameter] = value


def parameter_is_menu(parameter):
    return not isinstance(parameter, Index) and getattr(parameter, "menu", False)


@pytest.fixture(scope="session")
def shown():
    """The class :class:`Shown`."""
    return Shown


@pytest.fixture
def write_notebook(lab):
    """``write_notebook(name, sources)``: a notebook of these code cells in the lab's folder."""
    return lambda name, sources: write(lab.folder / name, sources)


# ---- pages with live explorers ----
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Explorers</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<link rel="stylesheet" href="live.css"><style>:root { color-scheme: light dark } body { max-width: 960px;
margin: 4px auto; padding: 0 6px }</style></head>
<body><main>%s</main><script src="live.js"></script></body></html>"""
PICTURE = '<img src="data:," alt="The picture that stands here without a script.">'


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A page of every live explorer, and one with two, in a folder on the disk."""
    folder = tmp_path_factory.mktemp("pages")
    live.write(folder)
    for kind in live.everyone():
        page = PAGE % live.place(kind.front, {}, PICTURE)
        (folder / f"{kind.front}.html").write_text(page, encoding="utf-8")
    two = live.place("rotary", {}, PICTURE) + live.place("rotary", {"m": 3}, PICTURE)
    (folder / "two.html").write_text(PAGE % two, encoding="utf-8")
    return folder


@pytest.fixture
def visit(folder, browser):
    """``visit(name, …)``: a page of one explorer; at the end nothing may have gone wrong, or been fetched."""
    opened, faults = [], []

    def open_(name, query="", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 720}, **options})
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: said.type in ("error", "warning") and faults.append(said.text))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or faults.append(asked.url))
        page.goto(f"{(folder / name).as_uri()}.html{query}")
        return page

    yield open_
    for context in opened:
        context.close()
    assert not faults


@pytest.fixture
def hands():
    """What a reader does to a page with one live explorer, and sees of it."""
    return Hands


class Hands:
    @staticmethod
    def params(page):
        return page.evaluate("() => document.querySelector('[data-live]').live.params")

    @staticmethod
    def rest(page):
        """Wait until nothing moves any more."""
        page.wait_for_function("() => document.querySelector('.live').live.still", polling=30)

    @staticmethod
    def pull(page, thing, right, down, steps=4):
        """Drag a thing, grabbed at its middle, by CSS pixels."""
        box = thing.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + right, y + down, steps=steps)
        page.mouse.up()
        Hands.rest(page)
