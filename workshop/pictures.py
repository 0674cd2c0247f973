"""Pictures of live explorers, for notebooks: what GitHub, print, and a page without a script show.

An output that says ``{"live": {"name": …, "params": …}}`` in its metadata has a line of text when it is run.
:func:`renew` puts a picture of the explorer in its place, as Chromium prints it, with its own words.

``python -m workshop.pictures docs`` writes ``course.gif``, the moving picture of the README, into
the folder ``docs``: two lanes of the playground while they learn.
"""

from __future__ import annotations

import argparse
import html
from base64 import b64encode
from io import BytesIO
from pathlib import Path

import nbformat

from course import playground
from tutorial_lib.explorers import live
from tutorial_lib.explorers.parts import FIGURE
from tutorial_lib.language import ENGLISH, language

from . import FONTS, browser

WIDTH, SHARP = 960, 1.5  # in CSS pixels, and device pixels for each of them
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>{style} body, .live {{ border: 0; margin: 0 }}
</style>{place}<script>{script}</script>"""


def face() -> str:
    """CSS that brings a font for other scripts, since the browser of this machine may have none."""
    (font,) = FONTS.glob("*.otf")
    return (
        '@font-face { font-family: "Source Sans 3"; unicode-range: U+2E80-9FFF, U+FF00-FFEF; '
        f"src: url(data:font/otf;base64,{b64encode(font.read_bytes()).decode()}) }}\n"
    )


def picture(page, name: str, params: dict) -> tuple[bytes, str]:
    """A PNG of lanes, or of the explorer ``name`` as it is printed, and an alternative text."""
    if name == playground.NAME:
        return learned(page, params)
    script = live.script(kind for kind in live.everyone() if kind.front == name)
    place = playground.place(name, params)
    style = live.style()
    if language() != ENGLISH:  # what is drawn before the font has loaded may not be redrawn
        style = face() + style
        script = f"Promise.all([...document.fonts].map(font => font.load())).then(() => {{ {script} }});"
    page.set_content(PAGE.format(style=style, place=place, script=script))
    page.locator(".live[data-frame]").wait_for()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    alt = page.evaluate("() => document.querySelector('.live').live.alt")
    return page.locator(".live").screenshot(animations="disabled"), alt


LEARNING = """<!DOCTYPE html><meta charset="utf-8"><style>{style} body {{ margin: 0 }}
.pg-lanes {{ padding: 8px }} .pg-more, .pg-say {{ display: none }}</style>
{place}<script>{script}</script>"""


def set_up(page, params: dict) -> None:
    """Show lanes of the playground, which have not begun."""
    style, place = playground.style(), playground.place(playground.NAME, params)
    if language() != ENGLISH:
        style = f'{face()}{style} .pg {{ font-family: "Source Sans 3", system-ui }}'
    page.set_content(LEARNING.format(style=style, place=place, script=playground.started()))
    page.wait_for_function("() => document.querySelector('.pg').live.lanes.every(lane => lane.shares)")


def learned(page, params: dict) -> tuple[bytes, str]:
    """A PNG of lanes that have learned, or have not begun where readers guess, and an alternative text."""
    set_up(page, params)
    if not params.get("guess"):
        page.locator(".pg-start").click()
        page.wait_for_function("() => document.querySelector('.pg').live.lanes.every(lane => lane.done)")
    page.wait_for_timeout(300)  # one lane is drawn a frame
    said = page.locator(".pg-unseen").text_content()
    return page.locator(".pg-lanes").screenshot(), playground.alt(said)


def renew(notebook: nbformat.NotebookNode) -> int:
    """Take anew the pictures of all live explorers in ``notebook``; returns how many.

    Raises RuntimeError, saying how to get one, where there is no Chromium.
    """
    outputs = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "live" in output.get("metadata", {})
    ]
    if not outputs:
        return 0
    with browser.launch() as chromium:
        page = chromium.new_page(
            viewport={"width": WIDTH, "height": 900},
            device_scale_factor=SHARP,
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.emulate_media(media="print")
        for output in outputs:
            data, alt = picture(page, **output.metadata["live"])
            png = b64encode(data).decode()
            image = (
                f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{png}" style="max-width: 100%">'
            )
            output.data |= {"text/html": FIGURE.format(image), "image/png": png}
    return len(outputs)


# ---- the moving picture of the README ----
FILE = "course.gif"
LANES = "pace=10&lane=none&lane=offset"
STEPS, FRAMES = 3, 32  # of training from one frame to the next, and how many of these
PAUSE, REST = 160, 1500  # milliseconds of a frame, and of the last one
WIDE, COLOURS = 700, 48


def film(page) -> list[bytes]:
    """PNGs of two lanes of the playground, one each few steps: a machine of any speed gives the same."""
    set_up(page, {"settings": LANES, "small": True})
    frames = []
    for step in range(FRAMES * STEPS):
        page.wait_for_function(
            "s => document.querySelector('.pg').live.lanes.every(lane => lane.shares && lane.s === s)",
            arg=step,
        )
        if step % STEPS == 1:
            page.wait_for_timeout(100)  # a lane is drawn in the frame after
            frames.append(page.locator(".pg-lanes").screenshot())
        page.get_by_role("button", name="Step").click()
    return frames


def moving() -> bytes:
    """The film as a GIF in an endless loop; its frames share one palette."""
    from PIL import Image

    with browser.launch() as chromium:
        page = chromium.new_page(
            viewport={"width": WIDE, "height": 900}, device_scale_factor=SHARP, color_scheme="light"
        )
        frames = [Image.open(BytesIO(data)).convert("RGB") for data in film(page)]
    shades = frames[-1].quantize(COLOURS).getpalette()[: 3 * COLOURS]
    for i in range(0, len(shades), 3):
        if sum(shades[i : i + 3]) > 750:  # nearly white is paper
            shades[i : i + 3] = [255] * 3
    palette = Image.new("P", (1, 1))
    palette.putpalette(shades)
    few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    times = [PAUSE] * (len(few) - 1) + [REST]
    out = BytesIO()
    few[0].save(out, "GIF", save_all=True, append_images=few[1:], duration=times, loop=0)
    return out.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    (parser.parse_args().folder / FILE).write_bytes(moving())
