"""Pictures of live explorers, for notebooks: what GitHub, print, and a page without a script show.

An output that says ``{"live": {"name": …, "params": …}}`` in its metadata has a line of text when it is run.
:func:`renew` puts a picture of the explorer in its place, as Chromium prints it, with its own words.

``python -m workshop.pictures docs`` writes ``course.gif``, the moving picture of the README, into
the folder ``docs``: the explorer of RoPE while both of its tokens walk on.
"""

from __future__ import annotations

import argparse
import html
import time
from base64 import b64encode
from io import BytesIO
from pathlib import Path

import nbformat

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


def picture(page, name: str, params: dict, small: bool | str = False) -> bytes:
    """A PNG of the explorer ``name`` as it is printed: on white, without controls."""
    script = live.script(kind for kind in live.everyone() if kind.front == name)
    place = live.place(name, params, small=small)
    style = live.style()
    if language() != ENGLISH:  # what is drawn before the font has loaded may not be redrawn
        style = face() + style
        script = f"Promise.all([...document.fonts].map(font => font.load())).then(() => {{ {script} }});"
    page.set_content(PAGE.format(style=style, place=place, script=script))
    page.locator(".live[data-frame]").wait_for()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.locator(".live").screenshot(animations="disabled")


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
            own = output.metadata["live"]
            png = b64encode(picture(page, own["name"], own["params"])).decode()
            alt = html.escape(page.evaluate("() => document.querySelector('.live').live.alt"))
            image = f'<img alt="{alt}" src="data:image/png;base64,{png}" style="max-width: 100%">'
            output.data |= {"text/html": FIGURE.format(image), "image/png": png}
    return len(outputs)


# ---- the moving picture of the README ----
FILE = "course.gif"
WALK = {"m": 8, "n": 2}  # where both tokens begin
LAST, STEP = 18, 80  # where the query turns back, and the milliseconds of a frame
REST = 600  # at both ends
WIDE, COLOURS = 640, 48
CAPTION = "Both tokens move on: q and k turn, but the angle between them stays, and so does their score."


def film(page) -> list[bytes]:
    """PNGs of RoPE's explorer, one each ``STEP`` ms, from ``WALK`` until the query stands at ``LAST``.

    The page's clock advances only between two of them, so a slow machine gives the same frames.
    """
    page.clock.install()
    picture(page, "rotary", WALK, small="toy")
    page.clock.pause_at(time.time() + 60)
    place = page.locator(".live")
    place.evaluate(
        """(place, words) => {
        const caption = document.createElement("p");
        caption.className = "lv-lesson";
        caption.textContent = words;
        place.append(caption);
    }""",
        CAPTION,
    )
    frames = [place.screenshot()]
    place.locator(".lv-play").first.evaluate("button => button.click()")
    while place.evaluate("place => place.live.params.m") < LAST:
        page.clock.run_for(STEP)
        frames.append(place.screenshot())
    return frames


def moving() -> bytes:
    """The film, there and back in an endless loop, as a GIF; its frames share one palette."""
    from PIL import Image

    with browser.launch() as chromium:
        page = chromium.new_page(
            viewport={"width": WIDE, "height": 900}, device_scale_factor=SHARP, color_scheme="light"
        )
        page.emulate_media(media="print")
        frames = [Image.open(BytesIO(data)).convert("RGB") for data in film(page)]
    palette = Image.new("RGB", (frames[0].width, 3 * frames[0].height))
    for i, frame in enumerate((frames[0], frames[len(frames) // 2], frames[-1])):
        palette.paste(frame, (0, i * frame.height))
    shades = palette.quantize(COLOURS).getpalette()[: 3 * COLOURS]
    for i in range(0, len(shades), 3):
        if sum(shades[i : i + 3]) > 750:  # nearly white is paper
            shades[i : i + 3] = [255] * 3
    palette = Image.new("P", (1, 1))
    palette.putpalette(shades)
    few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    there, back = few, few[-2:0:-1]
    times = [REST] + [STEP] * (len(there) - 2) + [REST] + [STEP] * len(back)
    out = BytesIO()
    there[0].save(out, "GIF", save_all=True, append_images=[*there[1:], *back], duration=times, loop=0)
    return out.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    (parser.parse_args().folder / FILE).write_bytes(moving())
