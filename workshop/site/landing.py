"""The made parts of the first page: the toy, a card for each lesson, models as strips, methods by door.

The words around them stand in ``index.md``. Pictures on cards are drawn from the formula or the record that
the lesson is about; their colours are those of ``course.css``, so they follow light and dark.
"""

from __future__ import annotations

import functools
import html
import io
import json
import math
import re
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path

import atlas
import editions
import methods

from course import experiments
from tutorial_lib.explorers import RotaryExplorer, live
from tutorial_lib.language import ENGLISH, _
from workshop import ROOT, documents, translation

HERE = Path(__file__).parent
WIDE, HIGH = 320, 176
"""Of a card's picture, in its own units."""
STRIPS = {
    "llama": "Llama 2",
    "llama4_text": "Llama 4",
    "smollm3": "SmolLM3",
    "cohere2": "Command R7B",
    "gemma3_text": "Gemma 3",
    "gpt_oss": "gpt-oss",
    "qwen3_next": "Qwen3-Next",
}
"""Types of the atlas, and a model of each: one whose layers are all alike, and some whose layers are not."""
BOARD = ("none", "learned", "sinusoidal", "alibi", "t5", "shaw", "tupe")


# ---- drawing ----
def text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{words}</text>'


def line(points: Iterable[tuple[float, float]], colour: str, width: float = 2.4, more: str = "") -> str:
    d = "L".join(f"{x:.4g} {y:.4g}" for x, y in points)
    return f'<path d="M{d}" fill="none" stroke="var(--{colour})" stroke-width="{width:g}"{more}/>'


def grid(x: float, y: float, step: float, values: list[list[float]], colour: str) -> str:
    """Squares, one path of wide lines for each of nine strengths; ``values`` lie between 0 and 1."""
    paths: dict[int, str] = {}
    size = step - 1
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            level = max(0, min(8, round(8 * value)))
            paths[level] = (
                paths.get(level, "") + f"M{x + j * step:.4g} {y + i * step + size / 2:.4g}h{size:g}"
            )
    return "".join(
        f'<path d="{d}" stroke="var(--{colour})" stroke-width="{size:g}" '
        f'stroke-opacity="{0.1 + 0.11 * level:.2g}"/>'
        for level, d in sorted(paths.items())
    )


def words(y: float, order: Iterable[str]) -> str:
    return "".join(
        f'<rect x="{28 + 95 * i}" y="{y}" width="74" height="30" rx="8" class="box"/>'
        f"{text(65 + 95 * i, y + 21, word)}"
        for i, word in enumerate(order)
    )


def hand(cx: float, cy: float, degrees: float, colour: str, length: float = 52) -> str:
    x, y = cx + length * math.cos(math.radians(degrees)), cy - length * math.sin(math.radians(degrees))
    return line([(cx, cy), (x, y)], colour, 4, ' stroke-linecap="round"') + (
        f'<circle cx="{x:.4g}" cy="{y:.4g}" r="6" fill="var(--{colour})"/>'
    )


# ---- a picture for each lesson ----
def places_change() -> str:
    cross = '<path d="M65 68C65 92 255 84 255 108M255 68C255 92 65 84 65 108" class="way"/>'
    return words(34, ("cat", "chases", "dog")) + words(112, ("dog", "chases", "cat")) + cross


def bag() -> str:
    ways = "".join(f'<path d="M106 {y}C140 {y} 134 88 168 88" class="way"/>' for y in (32, 88, 144))
    left = "".join(
        f'<rect x="14" y="{y}" width="92" height="38" rx="8" class="box"/>{text(60, y + 25, word)}'
        for y, word in ((13, "dog"), (69, "cat"), (125, "chases"))
    )
    mean = grid(242, 40, 32, [[v] for v in (0.9, 0.3, 0.6)], "q") + grid(
        274, 40, 32, [[v] for v in (0.2, 0.75, 0.45)], "q"
    )
    return f'{ways}{left}<circle cx="196" cy="88" r="28" class="box"/>{text(196, 95, "Σ")}{mean}'


def waves() -> str:
    drawn = []
    for n, (turns, steps) in enumerate(((9, 96), (4, 48), (1.8, 32), (0.8, 16))):

        def at(x, y=32 + 38 * n, turns=turns):
            return x, y - 14 * math.sin(2 * math.pi * turns * (x - 16) / 288)

        drawn.append(line([at(16 + 288 * i / steps) for i in range(steps + 1)], "sinusoidal"))
        drawn.append(f'<circle cx="178" cy="{at(178)[1]:.4g}" r="5" class="dot"/>')
    return '<path d="M178 12V166" class="axis" stroke-dasharray="3 4"/>' + "".join(drawn)


def table() -> str:
    values = [
        [0.5 + 0.5 * math.sin(2 * math.pi * i * (0.09 if j < 6 else 0.035) + 1.1 * j) for i in range(17)]
        for j in range(12)
    ]
    wall = f'<rect x="224" y="16" width="6" height="144" fill="var(--ink)"/>{text(266, 94, "?")}'
    return grid(22, 17, 12, [row[:17] for row in values], "learned") + wall


def offsets() -> str:
    strength = [1 - 0.28 * math.log2(1 + d) for d in range(11)]
    square = [[strength[i - j] if j <= i else 0 for j in range(11)] for i in range(11)]
    bars = "".join(
        f'<rect x="{286 - 22 * d}" y="{96 - 70 * s:.4g}" width="15" height="{70 * s:.4g}" rx="2" '
        'fill="var(--relative)"/>'
        for d, s in enumerate(strength[:5])
    )
    return grid(22, 16, 13, square, "relative") + bars + text(205, 120, "−4") + text(293, 120, "0")


def sum_of_two() -> str:
    columns = [[(0.2, 0.9, 0.45, 0.7, 0.1, 0.6, 0.3)[j] for j in range(7)] for _i in range(7)]
    stripes = [[max(0.05, 1 - 0.28 * abs(i - j)) for j in range(7)] for i in range(7)]
    both = [[(a + b) / 2 for a, b in zip(*rows, strict=True)] for rows in zip(columns, stripes, strict=True)]
    return (
        grid(12, 46, 12, columns, "learned")
        + text(105, 95, "+")
        + grid(118, 46, 12, stripes, "relative")
        + text(211, 95, "=")
        + grid(224, 46, 12, both, "hybrid")
    )


def dials() -> str:
    """Query and key 70° apart, and again 128° later."""
    parts = []
    for cx, k, q in ((84, 24, 94), (236, 152, 222)):
        (x0, y0), (x1, y1) = (
            (cx + 26 * math.cos(math.radians(a)), 88 - 26 * math.sin(math.radians(a))) for a in (k, q)
        )
        parts += [
            f'<circle cx="{cx}" cy="88" r="66" class="box"/>',
            f'<path d="M{cx} 88L{x0:.4g} {y0:.4g}A26 26 0 0 0 {x1:.4g} {y1:.4g}Z" class="between"/>',
            hand(cx, 88, k, "k"),
            hand(cx, 88, q, "q"),
        ]
    return "".join(parts) + '<path d="M153 88h14m-6-5 6 5-6 5" class="axis"/>'


def slopes() -> str:
    """ALiBi's slopes of eight heads."""
    fall = (line([(296, 30), (20, min(160, 30 + 276 * 2.0**-h))], "alibi") for h in range(1, 7))
    first = line([(296, 30), (296 - 130, 160)], "alibi")
    reader = '<path d="M20 30H300" class="axis"/><circle cx="296" cy="30" r="7" class="dot"/>'
    return f"{first}{''.join(fall)}{reader}"


def longer() -> str:
    """RoPE beyond the length of training, as it is and stretched by YaRN: nats, from the record."""
    record = experiments.load("lengths")
    xs = [64 * n for n in record.settings["multiples"]]
    scale = [20 + 280 * math.log2(x / 64) / 4 for x in xs]
    curves = {}
    for name, cell in (("plain", {}), ("stretched", {"scaling": "YaRN"})):
        found = record.values("tail", encoding="rotary", **cell)
        curves[name] = [sum(each) / len(each) for each in zip(*found, strict=True)]
    low, high = min(map(min, curves.values())), max(map(max, curves.values()))
    plain, stretched = (
        [(x, 150 - 122 * (v - low) / (high - low)) for x, v in zip(scale, curve, strict=True)]
        for curve in curves.values()
    )
    border = '<path d="M36 12V164" class="axis" stroke-dasharray="3 4"/>'
    trained = f'<rect x="4" y="12" width="32" height="152" class="tint"/>{border}'
    return trained + line(plain, "rope", 3) + line(stretched, "rope", 3, ' stroke-dasharray="7 6"')


def board() -> str:
    """How much more each encoding loses than RoPE, at the length of training: from the record."""
    shown = [one for one in methods.beside("rotary")["mean"] if one.name in BOARD]
    low, high = min(one.its.low for one in shown), max(one.its.high for one in shown)

    def x(value):
        return 24 + 272 * (value - low) / (high - low)

    rows = [f'<path d="M{x(0):.4g} 10V166" class="axis" stroke-dasharray="3 4"/>']
    for n, one in enumerate(reversed(shown)):
        y, colour = 24 + 22 * n, methods.kind(one.name)
        rows.append(line([(x(one.its.low), y), (x(one.its.high), y)], colour, 3))
        rows.append(f'<circle cx="{x(one.its.mean):.4g}" cy="{y}" r="6" fill="var(--{colour})"/>')
    return "".join(rows)


def layers() -> str:
    """The layers of three models, from the record of the atlas."""
    from course.atlas import row

    rows = []
    for y, name in ((20, "llama4_text"), (72, "gemma3_text"), (124, "qwen3_next")):
        kinds = [(kind, reach) for n, kind, _share, reach, *_more in row(name)["runs"] for _i in range(n)][
            :18
        ]
        for i, (kind, reach) in enumerate(kinds):
            high = 32 if reach is None and kind != "state" else 18
            rows.append(
                f'<rect x="{18 + 16 * i}" y="{y + 32 - high}" width="13" height="{high}" rx="2.5" '
                f'class="at-{kind}"/>'
            )
    return "".join(rows)


def checked() -> str:
    """Lines of code, and the one that is wrong."""
    grey = "".join(
        f'<rect x="{x}" y="{y}" width="{w}" height="8" rx="4" class="code"/>'
        for x, y, w in ((42, 46, 120), (60, 68, 170), (60, 112, 150))
    )
    wrong = '<rect x="60" y="90" width="96" height="8" rx="4" fill="var(--k)"/>'
    sign = '<path d="M166 94h16m8-9 18 18m0-18-18 18" class="wrong"/>'
    return f'<rect x="22" y="26" width="276" height="116" rx="10" class="box"/>{grey}{wrong}{sign}'


PICTURES: dict[str, Callable[[], str]] = {
    "00": places_change,
    "01": bag,
    "02": waves,
    "03": table,
    "04": offsets,
    "05": sum_of_two,
    "06": dials,
    "07": slopes,
    "08": longer,
    "09": board,
    "10": layers,
    "✓": checked,
}


def drawn(inside: str) -> str:
    return f'<svg class="course-drawn" viewBox="0 0 {WIDE} {HIGH}" aria-hidden="true">{inside}</svg>'


def picture(number: str) -> str:
    """That of a lesson, on its card and beside its exercise."""
    return drawn(PICTURES[number]())


# ---- what the page holds ----
def lessons() -> list[tuple[str, str, str]]:
    """``(path, title, what you find out)`` of each lesson, from the README's table."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if editions.LANGUAGE != ENGLISH:
        readme = translation.document(documents.README, translation.speakers(editions.LANGUAGE))
    rows = re.finditer(r"^\| \[(\d\d .+?)\]\((notebooks/.+?)\.ipynb\) \| (.+?) \|$", readme, re.M)
    found = [(row[2], row[1], row[3]) for row in rows]
    own = (
        _("✓ Exercises"),
        _("One for each lesson from 01 on; its checks say which mistake your answer shows"),
    )
    return [*found, ("exercises/ex01_order/ex01_order", *own)]


@functools.cache
def minutes(path: str) -> int:
    """What the first cell of a notebook says it takes."""
    cells = json.loads((ROOT / f"{path}.ipynb").read_text(encoding="utf-8"))["cells"]
    return int(re.search(r"about (\d+) minutes", "".join(cells[0]["source"]))[1])


def cards() -> str:
    """A card for each lesson: a picture, how long it takes, and what you find out."""
    made = []
    for path, title, says in lessons():
        number, name = title.split(" ", 1)
        took = _("{n} min").format(n=minutes(path)) if number.isdigit() else ""
        made.append(
            f'<li><a href="{path}.html" data-page="{path}">'
            f"{picture(number)}"
            f"<small><span>{number}</span><span>{took}</span></small>"
            f"<b>{name}</b><span>{says}</span></a></li>"
        )
    return f'<ol class="course-cards">{"".join(made)}</ol>'


def toy() -> str:
    """RoPE's explorer in its smallest form, with what to do first."""
    asks = _("Drag {q} along its line. Then find the place for {k} where the {angle} is what it was.").format(
        q='<b class="q">q</b>', k='<b class="k">k</b>', angle=f'<b class="mix">{_("green angle")}</b>'
    )
    inside = f"<p>{_('It moves where scripts are allowed.')}</p>"
    place = live.place("rotary", RotaryExplorer.settings(), inside, small="toy")
    return f'<div class="course-toy"><p>{asks}</p>{place}</div>'


def strips() -> str:
    """Some models of the atlas, a box for each run of layers that are alike."""
    lines = "".join(f"<li><b>{said}</b>{atlas.strip(name)}</li>" for name, said in STRIPS.items())
    key = atlas.key(STRIPS, more=f"<li>{_('R3: three such layers in a row')}</li>")
    return f'<div data-atlas>{key}<ul class="course-strips">{lines}</ul></div>'


def doors() -> str:
    """All methods, by the door that each opens first; a mark has the colour of its kind."""
    parts = []
    up = editions.address("", ENGLISH, "index").removesuffix(".html")
    for title, names in methods.by_door():
        chips = "".join(
            f'<a href="{up}methods/{name}.html" class="c-{methods.kind(name)}">{methods.short(name)}</a>'
            for name in names
        )
        parts.append(f"<div><h3>{title}</h3><p>{chips}</p></div>")
    return f'<div class="course-doors">{"".join(parts)}</div>'


def report() -> str:
    """What the tool says of the function that the page shows, behind a click: the reader looks first."""
    page = (HERE / "index.md").read_text(encoding="utf-8")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(re.search("```python\n(.*?)```", page, re.S)[1], {})
    says = html.escape(printed.getvalue(), quote=False)
    return f'<details class="course-report"><summary>{_("The tool did")}</summary><pre>{says}</pre></details>'


def parts() -> dict[str, Callable[[], str]]:
    """What ``index.md`` names in ``<div data-made="…"></div>``, and what makes it."""
    return {"toy": toy, "cards": cards, "strips": strips, "doors": doors, "report": report}


ALONE = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n"
"""The first page has nothing beside it, so its toy has room (``html_sidebars`` of conf.py)."""


def filled(source: str) -> str:
    """``index.md`` with its parts."""
    return ALONE + re.sub(
        r'^<div data-made="(\w+)"></div>$',
        lambda found: f"```{{raw}} html\n{parts()[found[1]]()}\n```",
        source,
        flags=re.M,
    )
