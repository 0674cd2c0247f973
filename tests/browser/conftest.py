"""One JupyterLab in headless Chromium for all tests here, and pages with live explorers."""

import json
import shutil

import pytest

from tutorial_lib import explorers
from tutorial_lib.explorers import live
from workshop import authoring, navigation
from workshop.browser import Lab, write


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    """A lab whose folder has ``notebooks``, ``docs``, and ``explorers.ipynb`` with every explorer."""
    folder = tmp_path_factory.mktemp("course")
    for part in (authoring.NOTEBOOKS, navigation.GLOSSARY.parent):
        shutil.copytree(part, folder / part.name)
    write(
        folder / "explorers.ipynb",
        ["from tutorial_lib.explorers import *"] + [f"{name}()" for name in explorers.__all__],
    )
    with Lab(folder) as lab:
        yield lab


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


class Pages:
    """Pages of a browser, by the options of their context. To open one takes three times as long as to go on
    in one that was left, so those are kept, on an empty page."""

    def __init__(self, browser):
        self.browser, self.kept = browser, {}

    def take(self, options):
        kept = self.kept.setdefault(json.dumps(options, sort_keys=True), [])
        return kept.pop() if kept else self.browser.new_context(**options).new_page()

    def leave(self, page, options):
        """For the next one, as if new: nothing runs, and what a test may have changed is as it was."""
        page.goto("about:blank")
        page.emulate_media(**{name: options.get(name, usual) for name, usual in MEDIA.items()})
        page.set_viewport_size(options["viewport"])
        page.mouse.move(0, 0)
        self.kept[json.dumps(options, sort_keys=True)].append(page)


MEDIA = {"color_scheme": "light", "reduced_motion": "no-preference", "forced_colors": "none"}


@pytest.fixture(scope="session")
def kept(browser):
    return Pages(browser)


@pytest.fixture
def watched(kept):
    """``watched(url, …)``: a page; at the end nothing may have gone wrong there, or been fetched."""
    opened, faults, own = [], [], ("file:", "data:", "blob:")
    watches = {
        "pageerror": lambda error: faults.append(str(error)),
        "console": lambda said: said.type in ("error", "warning") and faults.append(said.text),
        "request": lambda asked: asked.url.startswith(own) or faults.append(asked.url),
    }

    def open_(url, **options):
        page = kept.take(options)
        opened.append((page, options))
        for event, watch in watches.items():
            page.on(event, watch)
        page.goto(url)
        return page

    yield open_
    for page, options in opened:
        for event, watch in watches.items():
            page.remove_listener(event, watch)
        kept.leave(page, options)
    assert not faults


@pytest.fixture
def visit(folder, watched):
    """``visit(name, …)``: a page of one explorer, watched.

    Nothing glides there, so that nobody waits for it, unless ``reduced_motion="no-preference"`` is given.
    Folded settings are open, unless ``folded=True`` is given.
    """

    def open_(name, query="", folded=False, **options):
        given = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce", **options}
        page = watched(f"{(folder / name).as_uri()}.html{query}", **given)
        if not folded:
            page.evaluate("for (const fold of document.querySelectorAll('.lv-fold')) fold.open = true")
        return page

    return open_


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
