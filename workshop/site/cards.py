"""The picture that is shown where a link to a page is shared: its title, and its first figure, if any."""

import functools
import io
import math
import re
from base64 import b64decode
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

from tutorial_lib.language import ENGLISH
from workshop import FONTS

SIZE, EDGE, MIDDLE = (1200, 630), 64, 640  # pixels: what hosts ask for, the margin, where the figure begins
PAPER, INK, FAINT, NIGHT = "#ffffff", "#ffffff", "#b9d3e4", "#0b3d5c"
WAVES = ("#1294f3", "#f0a04b", "#3fd6a5", "#c9b3f5")
COLOURS = 96
FIGURE = re.compile(r'<img[^>]*\ssrc="(data:image/png;base64,([^"]+)|[^"]*_images/([^"]+\.png))"')


@functools.cache
def font(language: str, size: int) -> ImageFont.FreeTypeFont:
    """A font that has the characters of a language: that of the figures."""
    own = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans-Bold.ttf"
    return ImageFont.truetype(own if language == ENGLISH else next(FONTS.glob("*.otf")), size)


@functools.cache
def night() -> Image.Image:
    """The ground: waves that slow down, as those of the first Transformer."""
    ground = Image.new("RGB", SIZE, NIGHT)
    draw = ImageDraw.Draw(ground)
    for n, colour in enumerate(WAVES):
        turn = 2 * math.pi / (90 * 2.2**n)
        line = [(x, SIZE[1] - 62 - 34 * math.cos(turn * x)) for x in range(0, SIZE[0] + 8, 8)]
        draw.line(line, colour, 5, joint="curve")
    return ground


def lines(text: str, face: ImageFont.FreeTypeFont, wide: float) -> list[str]:
    """Text cut into lines: between words, or, where a word is too long or has no spaces, between letters."""
    found = [""]
    for part in re.findall(r"[^\s\u2e80-\uffef]+\s?|[\u2e80-\uffef]|\s", text):
        if found[-1] and face.getlength((found[-1] + part).rstrip()) > wide:
            found.append("")
        while face.getlength(part.rstrip()) > wide:
            most = next(n for n in range(len(part), 0, -1) if face.getlength(part[:n]) <= wide)
            found[-1], part = part[:most], part[most:]
            found.append("")
        found[-1] += part
    return [line.rstrip() for line in found if line.strip()]


def draw(title: str, course: str, figure: Image.Image | None = None, language: str = ENGLISH) -> bytes:
    """The picture as a PNG of 1200 × 630 pixels."""
    image = night().copy()
    pen, wide = ImageDraw.Draw(image), (MIDDLE if figure else SIZE[0]) - 2 * EDGE
    pen.text((EDGE, EDGE), "\n".join(lines(course, font(language, 30), wide)), FAINT, font(language, 30))
    for size in (76, 64, 54, 46, 38, 32):
        face = font(language, size)
        cut = lines(title, face, wide)
        if len(cut) * size * 1.2 <= 330:
            break
    pen.multiline_text((EDGE, EDGE + 88), "\n".join(cut), INK, face, spacing=size * 0.2)
    if figure:
        right, gap = SIZE[0] - 40, 24
        figure = figure.convert("RGBA")
        figure.thumbnail((right - MIDDLE - 2 * gap, SIZE[1] - 2 * EDGE - 2 * gap), reducing_gap=2)
        left, top = (MIDDLE + right - figure.width) // 2, (SIZE[1] - figure.height) // 2
        pen.rounded_rectangle((MIDDLE, top - gap, right, top + figure.height + gap), 18, PAPER)
        image.paste(figure, (left, top), figure)
    out = io.BytesIO()
    image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE).save(out, "PNG")
    return out.getvalue()


def first(body: str, images: dict[str, str]) -> Image.Image | None:
    """The first figure of a page; ``images`` says where those of ``_images`` come from."""
    found = FIGURE.search(body)
    if not found:
        return None
    if found[2]:
        return Image.open(io.BytesIO(b64decode(found[2])))
    return Image.open(images[found[3]]) if found[3] in images else None
