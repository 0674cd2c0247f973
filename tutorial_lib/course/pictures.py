"""Pictures of live explorers, for notebooks: what GitHub, print, and a page without a script show.

An output that says ``{"live": {"name": …, "params": …}}`` in its metadata has a picture by matplotlib when it
is run. :func:`renew` puts a picture of the explorer itself in its place, as Chromium prints it.
"""

from __future__ import annotations

from base64 import b64encode

import nbformat

from ..explorers import live
from . import browser

WIDTH, SHARP = 960, 1.5  # in CSS pixels, and pixels for each of them
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>{style} body, .live {{ border: 0; margin: 0 }}
</style>{place}<script>{script}</script>"""


def picture(page, name: str, params: dict) -> bytes:
    """A PNG of the explorer ``name`` as it is printed: on white, without controls."""
    script = live.script(kind for kind in live.everyone() if kind.front == name)
    page.set_content(PAGE.format(style=live.style(), place=live.place(name, params), script=script))
    page.locator(".live[data-frame]").wait_for()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.locator(".live").screenshot(animations="disabled")


def renew(notebook: nbformat.NotebookNode) -> int:
    """Take anew the pictures of all live explorers in ``notebook``; returns how many.

    Raises RuntimeError, saying how to get one, where there is no Chromium.
    """
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])
               if "live" in output.get("metadata", {})]
    if not outputs:
        return 0
    with browser.launch() as chromium:
        page = chromium.new_page(viewport={"width": WIDTH, "height": 900}, device_scale_factor=SHARP,
                                 color_scheme="light", reduced_motion="reduce")
        page.emulate_media(media="print")
        for output in outputs:
            own = output.metadata["live"]
            old = output.data["image/png"].strip()
            new = b64encode(picture(page, own["name"], own["params"])).decode()
            output.data["text/html"] = output.data["text/html"].replace(old, new)
            output.data["image/png"] = new
    return len(outputs)
