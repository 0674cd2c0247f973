"""The picture beside the first words of a side quest: what its question is about, not the answer.

Drawn as those of the lessons' cards are, in units of ``landing.WIDE`` by ``landing.HIGH``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from landing import drawn, grid, hand, line, text, words

from course import experiments
from tutorial_lib.encodings import Frequencies, YaRN

PICTURES: dict[str, Callable[[], str]] = {}


def of(quest: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """The next function draws the picture of that side quest."""
    return lambda draw: PICTURES.setdefault(quest, draw)


def picture(quest: str) -> str:
    return drawn(PICTURES[quest]())


BOX = 'class="box"'


def box(x: float, y: float, w: float, h: float, more: str = BOX, turn: float = 0) -> str:
    turned = f' transform="rotate({turn:g} {x + w / 2:g} {y + h / 2:g})"' if turn else ""
    return f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="5" {more}{turned}/>'


def full(colour: str) -> str:
    return f'fill="var(--{colour})"'


def curve(d: str, colour: str, width: float = 3, more: str = "") -> str:
    return f'<path d="{d}" fill="none" stroke="var(--{colour})" stroke-width="{width:g}"{more}/>'


def arc(start: float, end: float, y: float, high: float, colour: str, head: float = 6) -> str:
    """From above one token to above another, with the head of an arrow."""
    way = f"M{start:g} {y:g}C{start:g} {y - high:g} {end:g} {y - high:g} {end:g} {y:g}"
    return curve(f"{way}m{-head:g} {-head:g} {head:g} {head:g} {head:g} {-head:g}", colour)


def fixed(seed: int, count: int) -> list[float]:
    """Numbers between 0 and 1 that look random and are the same each time."""
    draws = random.Random(seed)
    return [draws.random() for _i in range(count)]


# ---- 01 ----
@of("01_sets")
def line_or_bag() -> str:
    """Three numbers one after the other, and the same three loose in a bag; the largest is marked."""
    parts = ['<circle cx="244" cy="88" r="66" class="box"/>', '<path d="M52 88H120" class="axis"/>']
    for n, x, y, turn in ((3, 270, 84, 10), (9, 222, 60, -14), (4, 226, 116, 16)):
        first, more = {3: 14, 9: 66, 4: 118}[n], 'class="between"' if n == 9 else BOX
        parts += [box(first, 69, 38, 38, more), text(first + 19, 94.5, f"{n}")]
        parts += [box(x - 18, y - 18, 36, 36, more, turn), text(x, y + 6.5, f"{n}")]
    return "".join(parts)


# ---- 02 ----
@of("02_details")
def slower_and_slower() -> str:
    """The ways of three hands up to the same position: each turns a fifth as far as the one before."""
    parts = []
    for cx, turns in ((60, 3.5), (160, 0.7), (260, 0.14)):
        way = []
        for s in (turns * n / 90 for n in range(91)):
            far, angle = 34 - 7 * (turns - s), math.tau * s
            way.append((cx + far * math.sin(angle), 88 - far * math.cos(angle)))
        parts.append(f'<circle cx="{cx}" cy="88" r="45" class="box"/>')
        parts += [line(way, "sinusoidal", 2.4), hand(cx, 88, 90 - 360 * turns, "sinusoidal", 34)]
    return "".join(parts)


@of("02_fusion")
def four_ways() -> str:
    """The numbers of a word and those of a position, and four signs that could join them."""
    word, place = (0.9, 0.35, 0.7, 0.2, 1, 0.5), [0.55 + 0.45 * math.sin(1.1 * n) for n in range(6)]
    joins = "".join(
        f'<path d="M76 88C114 88 104 {y} 160 {y}S206 88 244 88" class="way"/>'
        f'<circle cx="160" cy="{y}" r="17" class="box"/>{text(160, y + 6.5, sign)}'
        for y, sign in zip((25, 67, 109, 151), "+×;W", strict=True)
    )
    left, right = ([[value] for value in values] for values in (word, place))
    return joins + grid(50, 22, 22, left, "none") + grid(248, 22, 22, right, "sinusoidal")


@of("02_scores")
def between_two_hands() -> str:
    """Two hands have walked on together, by 75°; now a matrix stands between them."""
    parts = ['<path d="M110 88h100" class="axis"/>', box(133, 61, 54, 54), text(160, 94.5, "W")]
    for cx, degrees, colour in ((62, 130, "q"), (258, 70, "k")):
        before, after = hand(cx, 88, degrees, colour, 36), hand(cx, 88, degrees - 75, colour, 36)
        parts.append(f'<circle cx="{cx}" cy="88" r="50" class="box"/><g opacity=".3">{before}</g>{after}')
    return "".join(parts)


# ---- 03 ----
@of("03_cost")
def weighed() -> str:
    """A seesaw: a table of many numbers, and a wave."""
    draws = fixed(3, 30)
    table = grid(40, 50, 14, [draws[6 * n : 6 * n + 6] for n in range(4)], "learned")
    wave = [(208 + 64 * n / 40, 80 - 11 * math.sin(math.tau * n / 20)) for n in range(41)]
    plank = line([(26, 109), (294, 109)], "ink", 4, ' stroke-linecap="round"')
    sheet = box(198, 55, 84, 51) + line(wave, "sinusoidal", 3)
    held = f'<g transform="rotate(-7 160 109)">{table}{sheet}{plank}</g>'
    return f'{held}<path d="M160 111L142 145H178Z" class="dot"/><path d="M70 146H250" class="axis"/>'


@of("03_images")
def finer() -> str:
    """An image of sixteen patches with a row each, and of thirty-six: only the corners have one."""
    small = [[0.1 + 0.17 * j + 0.08 * i for j in range(4)] for i in range(4)]
    parts = [grid(22, 42, 23, small, "learned"), '<path d="M125 88h24m-7-6 7 6-7 6" class="axis"/>']
    for n in range(36):
        i, j = divmod(n, 6)
        if i % 5 or j % 5:
            parts.append(box(162 + 23 * j, 19 + 23 * i, 22, 22, full("line")))
        else:
            parts.append(grid(162 + 23 * j, 19 + 23 * i, 23, [[small[i * 3 // 5][j * 3 // 5]]], "learned"))
    for x, y, size in ((22, 42, 1), (162, 19, 1.5)):
        three = "M28 20H64L44 42C70 40 72 73 46 73 37 73 30 69 27 63"
        parts.append(f'<g transform="translate({x} {y}) scale({size})">{curve(three, "ink", 6)}</g>')
    return "".join(parts)


@of("03_tables")
def lens() -> str:
    """A table of random numbers, and a lens that looks for a wave in it."""
    draws = fixed(1, 22 * 11)
    table = grid(17, 17, 13, [draws[22 * n : 22 * n + 22] for n in range(11)], "learned")
    wave = [(114 + 72 * n / 48, 82 - 15 * math.sin(math.tau * n / 24)) for n in range(49)]
    glass = '<circle cx="150" cy="82" r="50" class="box" style="stroke-width:5"/>'
    handle = line([(187, 119), (224, 156)], "ink", 10, ' stroke-linecap="round"')
    return table + handle + glass + line(wave, "learned", 4, ' stroke-dasharray="8 6"')


# ---- 04 ----
@of("04_axes")
def two_steps() -> str:
    """From one patch to another: rows up, then columns to the right. The canvas may become wider."""
    parts = []
    for n in range(24):
        i, j = divmod(n, 6)
        more = BOX if j < 4 else 'class="axis" stroke-dasharray="3 4"'
        parts.append(box(60 + 34 * j, 21 + 34 * i, 30, 30, more))
    parts += [box(60, 123, 30, 30, full("q")), box(162, 55, 30, 30, full("k"))]
    return "".join(parts) + curve("M75 118V70H154m-7-6 7 6-7 6", "relative", 4)


@of("04_clipping")
def short_ruler() -> str:
    """A query looks far back; its ruler ends after three steps."""
    row = "".join(box(17 + 24 * n, 72, 20, 20, full("q") if n == 11 else BOX) for n in range(12))
    key = box(41, 72, 20, 20, full("k"))
    ruler = box(207, 102, 96, 24, full("relative"))
    ticks = "".join(f"M{219 + 24 * n} 102v10" for n in range(4))
    rest = '<path d="M207 126H20V102H207" class="axis" stroke-dasharray="3 4"/>'
    marks = text(216, 150, "−3") + text(291, 150, "0") + text(51, 120, "?")
    return f"{row}{key}{rest}{ruler}{curve(ticks, 'card', 2.4)}{marks}{arc(291, 51, 66, 62, 'ink')}"


@of("04_cost")
def projected() -> str:
    """A few numbers, thrown onto a wall of all pairs."""
    strength = [1 - 0.3 * math.log2(1 + d) for d in range(14)]
    wall = [[max(0.05, strength[abs(i - j)]) for j in range(14)] for i in range(14)]
    light = '<path d="M84 82L156 14V161L84 94Z" class="tint"/>'
    return light + grid(18, 82, 13, [strength[4::-1]], "relative") + grid(158, 14, 10.5, wall, "relative")


@of("04_memory")
def remembered() -> str:
    """The last word of a piece looks at words kept from the piece before. What are their places?"""
    parts = ['<path d="M160 74V152" class="axis" stroke-dasharray="3 4"/>']
    for n in range(8):
        x = 29 + 36 * n + (10 if n > 3 else 0)
        own = full("q") if n == 7 else BOX
        parts.append(box(x - 15, 76, 30, 30, own if n > 3 else full("k")))
        parts.append(
            text(x, 134, str(n - 4)) if n > 3 else f'<path d="M291 70C291 20 {x} 20 {x} 70" class="way"/>'
        )
    return "".join(parts) + '<path d="M14 116v6H152v-6" class="axis"/>' + text(83, 146, "?")


@of("04_signs")
def mirrored() -> str:
    """A table of offsets, and the same table read from its other end."""
    heights = (0.3, 0.5, 1, 0.4, 0.2, 0.12, 0.16)
    up = "".join(box(73 + 26 * n, 82 - 64 * h, 18, 64 * h, full("relative")) for n, h in enumerate(heights))
    down = "".join(box(229 - 26 * n, 94, 18, 64 * h, full("k")) for n, h in enumerate(heights))
    return f'{up}{down}<path d="M60 88H260" class="axis"/>{text(258, 56, "j − i")}{text(62, 130, "i − j")}'


@of("04_vectors")
def wishes() -> str:
    """One word asks for its neighbour, another for a word far back."""
    row = "".join(box(16 + 26.5 * n, 124, 22, 22, full("q") if n in (4, 10) else BOX) for n in range(11))
    return row + arc(133, 106.5, 118, 46, "relative") + arc(292, 53.5, 118, 120, "relative")


# ---- 05 ----
@of("05_both")
def slot_or_back() -> str:
    """Above, each token looks two steps back; below, all look at one place."""
    xs = [31 + 43 * n for n in range(7)]
    row = "".join(box(x - 14, 74, 28, 28, full("learned") if x == 160 else BOX) for x in xs)
    backs = "".join(arc(x, x - 86, 68, 56, "relative", 5) for x in xs[2:])
    ways = (
        f"M{x} 108C{x} {108 + 0.44 * abs(x - 160):g} 160 {125 + 0.3 * abs(x - 160):g} 160 110" for x in xs
    )
    return backs + curve("".join(ways) + "M154 117L160 110L166 117", "learned", 2.4) + row


@of("05_evidence")
def without_interval() -> str:
    """Two results of a paper (GLUE: BERT-A and BERT-R in TUPE's Table 1), as bars from zero."""
    bars = "".join(
        line([(x, 158), (x, 158 - 1.3 * result)], colour, 46) + text(x, 38, f"{result:.1f}")
        for x, result, colour in ((100, 82.96, "learned"), (220, 83.66, "hybrid"))
    )
    return f'{bars}<path d="M56 158H264" class="axis"/>{text(160, 110, "± ?")}'


@of("05_formulas")
def shapes() -> str:
    """A number plus a vector plus a number."""
    vector = [[0.5 + 0.5 * f(x)] for x in (1, 0.01) for f in (math.sin, math.cos)]
    return (
        grid(20, 72, 32, [[0.8]], "none")
        + text(79, 95, "+")
        + grid(106, 24, 32, vector, "sinusoidal")
        + text(165, 95, "+")
        + grid(192, 72, 32, [[0.9]], "relative")
        + text(251, 95, "=")
        + text(286, 95, "?")
    )


# ---- 06 ----
@of("06_bugs")
def partners() -> str:
    """Eight channels: above, neighbours are a pair, and below, fellows four places apart."""
    x = [34 + 36 * n for n in range(8)]
    boxes = "".join(f'<rect x="{at - 14}" y="55" width="28" height="28" rx="7" class="box"/>' for at in x)
    ways = ""
    for colour, up, ends in (("mix", 1, (0, 2, 4, 6)), ("k", 0, (0, 1, 2, 3))):
        y, wide, high = (47, 36, 26) if up else (91, 144, 64)
        arcs = "".join(f"M{x[n]} {y}a{wide / 2:g} {high} 0 0 {up} {wide} 0" for n in ends)
        ways += f'<path d="{arcs}" fill="none" stroke="var(--{colour})" stroke-width="3"/>'
    return boxes + ways


@of("06_cost")
def stopwatch() -> str:
    """Queries and keys go through a dial that is a stopwatch."""
    levels = (0.9, 0.3, 0.6, 0.2, 0.75, 0.45)
    q, k = ([[levels[(i + j * 3 + n) % 6] for j in range(2)] for i in range(6)] for n in (0, 2))
    watch = (
        '<path d="M160 34V20M148 18h24M203 51l8 -8" stroke="var(--ink)" stroke-width="5" '
        'stroke-linecap="round"/><circle cx="160" cy="97" r="62" class="box"/>'
        '<path d="M160 45v8M212 97h-8M160 149v-8M108 97h8" class="axis"/>'
        '<path d="M160 97V71A26 26 0 0 1 182.5 110Z" class="between"/>'
    )
    return grid(20, 31, 22, q, "q") + watch + hand(160, 97, -30, "rope", 46) + grid(257, 31, 22, k, "k")


@of("06_pairs")
def swept() -> str:
    """How far eight pairs of SmolLM2 turn within 48 tokens, fast ones first."""
    dials = []
    for n in range(8):
        cx, cy, angle = 47 + 75.3 * (n % 4), 48 + 80 * (n // 4), 48 * 100_000 ** (-n / 8)
        x, y = cx + 30 * math.sin(angle), cy - 30 * math.cos(angle)
        dials.append(f'<circle cx="{cx:g}" cy="{cy}" r="31" class="{"box" if angle < 6.28 else "between"}"/>')
        if angle < 6.28:
            dials.append(f'<path d="M{cx:g} {cy}v-30A30 30 0 0 1 {x:.4g} {y:.4g}Z" class="between"/>')
        dials.append(hand(cx, cy, 90 - math.degrees(angle), "rope", 22))
    return "".join(dials)


@of("06_xpos")
def spirals() -> str:
    """Where pair 16 of xPos points: the query's hand gets shorter as it turns, and the key's longer."""
    zeta, theta, parts = (16 / 32 + 0.4) / 1.4, 10_000 ** (-16 / 32), []
    for cx, colour, start, sign in ((86, "q", 68, 1), (234, "k", 13.4, -1)):

        def tip(m, cx=cx, start=start, sign=sign):
            r = start * zeta ** (sign * m / 512)
            return cx - sign * r * math.cos(theta * m), 88 + sign * r * math.sin(theta * m)

        spokes = "".join(
            f"M{cx} 88L{x:.4g} {y:.4g}" for x, y in (tip(math.pi * n) for n in range(0, 600, 20))
        )
        parts.append(f'<path d="{spokes}" stroke="var(--{colour})" stroke-width="1.6" opacity=".3"/>')
        x, y = tip(600 * math.pi)
        parts.append(line([tip(m * math.pi) for m in range(0, 601, 6)], colour, 3))
        parts.append(f'<circle cx="{x:.4g}" cy="{y:.4g}" r="6" fill="var(--{colour})"/>')
    return "".join(parts)


# ---- 07 ----
@of("07_cost")
def window() -> str:
    """A row of the matrix of biases is a window of one line."""
    row = [1 - abs(r) / 7 for r in range(-6, 7)]
    square = grid(104, 51, 16, [row[6 - i : 13 - i] for i in range(7)], "alibi")
    frames = "M102.5 12.5h114v20h-114ZM102.5 96.5h114v20h-114Z"
    return (
        grid(56, 15, 16, [row], "alibi")
        + square
        + f'<path d="{frames}" fill="none" stroke="var(--ink)" stroke-width="2.4"/>'
        + '<path d="M102.5 34V96M216.5 34V96" class="axis" stroke-dasharray="3 4"/>'
    )


@of("07_relatives")
def bent() -> str:
    """From the reader on the right back: a straight line, and KERPLE's with three numbers."""
    curves = [
        [(296 - 276 * d / 64, 30 + 126 * math.log1p(r * d) / math.log1p(r * 64)) for d in range(0, 65, 2)]
        for r in (0.03, 0.15, 1)
    ]
    bows = "".join(line(curve, "alibi", 2.4, ' stroke-dasharray="7 6"') for curve in curves)
    return (
        '<path d="M20 30H300" class="axis"/>'
        + bows
        + line([(296, 30), (20, 156)], "alibi", 4)
        + '<circle cx="296" cy="30" r="7" class="dot"/>'
    )


# ---- 08 ----
@of("08_caches")
def stale() -> str:
    """Keys at 64, 128 and 192 as dynamic scaling turned them when they came, and dashed, as at 256."""
    parts = []
    for n in range(3):
        cx, place = 57 + 103 * n, 64 * (n + 1)
        then, now = (place * (10_000 * s ** (16 / 14)) ** (-3 / 8) for s in (n + 1, 4))
        (x0, y0), (x, y) = ((cx + r * math.cos(a), 88 - r * math.sin(a)) for r, a in ((26, now), (36, now)))
        x1, y1 = cx + 26 * math.cos(then), 88 - 26 * math.sin(then)
        parts.append(f'<rect x="{cx - 46}" y="42" width="92" height="92" rx="12" class="box"/>')
        parts.append(f'<circle cx="{cx}" cy="88" r="36" class="axis"/>')
        parts.append(
            f'<path d="M{cx} 88L{x0:.4g} {y0:.4g}A26 26 0 0 0 {x1:.4g} {y1:.4g}Z" fill="var(--mix2)"/>'
        )
        parts.append(line([(cx, 88), (x, y)], "mix", 3, ' stroke-dasharray="6 4"'))
        parts.append(hand(cx, 88, math.degrees(then), "k", 36))
    return "".join(parts)


@of("08_edge")
def cliff() -> str:
    """What SmolLM2 gains from a first copy, over the distance: gone before the trained length ends."""
    record = experiments.load("position_gap")
    first, again = (record.values(key, scaling="raw")[0] for key in ("first", "repeat"))
    gained = zip(record.settings["gaps"][:6], again[:6], strict=True)
    shore = [(20 + gap * 280 / 12_000, 140 - 100 * max(0, 1 - loss / first)) for gap, loss in gained]
    land = "L".join(f"{x:.4g} {y:.4g}" for x, y in [*shore, (300, 160), (20, 160)])
    return (
        '<rect x="20" y="16" width="191" height="144" class="tint"/>'
        f'<path d="M{land}Z" fill="var(--rope)" opacity=".3"/>{line(shore, "rope", 4)}'
        f'<path d="M211 12V164" class="axis" stroke-dasharray="3 4"/>{text(193, 76, "?")}'
    )


@of("08_tuning")
def springs() -> str:
    """Eight coils, one for each pair: as trained, stretched by PI, and by YaRN."""
    yarn = (Frequencies(16).theta() / YaRN(4, L=64, alpha=0.5, beta=4).theta(10_000, 16)).tolist()
    parts = ['<rect x="16" y="14" width="6" height="148" fill="var(--ink)"/>']
    for y, factors in ((40, (1,) * 8), (88, (4,) * 8), (136, yarn)):
        x, points = 22.0, []
        for factor in factors:
            points += [(x + 8.3 * factor * t / 12, y - 16 * math.sin(math.pi * t / 6)) for t in range(12)]
            x += 8.3 * factor
        parts.append(line([*points, (x, y)], "rope", 3))
        parts.append(f'<circle cx="{x:.4g}" cy="{y}" r="7" class="dot"/>')
    return "".join(parts)


# ---- 09 ----
@of("09_museum")
def exhibit() -> str:
    """Code in a frame on a wall, and a magnifying glass."""
    lines = ((86, 72, 78), (100, 92, 124), (100, 112, 124), (100, 132, 62))
    code = "".join(f'<rect x="{x}" y="{y}" width="{w}" height="8" rx="4" class="code"/>' for x, y, w in lines)
    return (
        '<path d="M98 50L160 16L222 50" class="axis"/><circle cx="160" cy="16" r="5" class="dot"/>'
        '<rect x="60" y="50" width="200" height="112" rx="2" fill="var(--card)" stroke="var(--hybrid)" '
        f'stroke-width="8"/>{code}<circle cx="186" cy="100" r="28" fill="var(--card)"/>'
        '<rect x="164" y="84" width="44" height="12" rx="6" class="code"/>'
        '<rect x="164" y="104" width="34" height="12" rx="6" class="code"/>'
        '<circle cx="186" cy="100" r="29" fill="none" stroke="var(--ink)" stroke-width="4"/>'
        '<path d="M208 122l18 18" stroke="var(--ink)" stroke-width="9" stroke-linecap="round"/>'
    )


@of("09_stars")
def starred() -> str:
    """Stars for speed, as tables give them: two for RoPE, three for ALiBi."""
    star = "L".join(
        f"{r * math.sin(math.pi * n / 5):.3g} {-r * math.cos(math.pi * n / 5):.3g}"
        for n, r in enumerate((24, 10.5) * 5)
    )
    rows = [text(28, 63, "RoPE", "start"), text(28, 129, "ALiBi", "start")]
    for n, colour in enumerate(("rope", "rope", "", *["alibi"] * 3)):
        look = f'fill="var(--{colour})"' if colour else 'class="axis"'
        at = f"{140 + 64 * (n % 3)} {57 + 66 * (n // 3)}"
        rows.append(f'<path d="M{star}Z" transform="translate({at})" {look}/>')
    return "".join(rows)


# ---- 10 ----
@of("10_new_ways")
def broken() -> str:
    """Five rulers, and a crack through all of them."""
    parts = []
    for n, colour in enumerate(("alibi", "mix", "k", "sinusoidal", "ink")):
        y, cut = 14 + 28 * n, (176, 150, 168, 140, 158)[n]
        halves = (f"M20 {y}H{cut}l-7 6 9 5 -5 7H20Z", f"M{cut} {y}H290v18H{cut - 3}l5 -7 -9 -5Z")
        for half, ends, move in zip(
            halves, ((32, cut - 8), (cut + 9, 286)), ("", f"translate(8 0)rotate(5 {cut} {y})"), strict=True
        ):
            ticks = "".join(f"M{x} {y}v7" for x in range(*ends, 12))
            parts.append(f'<g transform="{move}"><path d="{half}" fill="var(--{colour})"/>')
            parts.append(f'<path d="{ticks}" stroke="var(--face)" stroke-width="2"/></g>')
    return "".join(parts)


@of("10_nope")
def unnumbered() -> str:
    """Words that look back at those before them, and no numbers below."""
    arcs = "M152 72C146 44 79 44 73 72M247 72C241 44 174 44 168 72M259 72C252 4 68 4 61 72"
    heads = "M73 72l-3 -9m3 9 7 -6M168 72l-3 -9m3 9 7 -6M61 72l-4 -9m4 9 6 -7"
    empty = "".join(
        f'<circle cx="{x}" cy="146" r="15" class="axis" stroke-dasharray="3 4"/>' for x in (65, 160, 255)
    )
    looks = f'<path d="{arcs}{heads}" fill="none" stroke="var(--q)" stroke-width="2.4"/>'
    return looks + words(80, ("dog", "chases", "cat")) + empty


@of("10_pictures")
def patches() -> str:
    """A picture cut into patches, with a row and a column."""
    scene = (
        '<rect x="88" y="40" width="160" height="120" fill="var(--mix2)"/>'
        '<circle cx="208" cy="76" r="18" fill="var(--hybrid)"/>'
        '<path d="M88 160V132L142 78L188 128L208 110L248 146V160Z" fill="var(--mix)"/>'
    )
    cuts = "".join(f"M{x} 38V162" for x in (128, 168, 208)) + "".join(f"M86 {y}H250" for y in (80, 120))
    return (
        f'{scene}<path d="{cuts}" stroke="var(--face)" stroke-width="4"/>'
        '<path d="M88 26H246m-6 -5 6 5 -6 5M74 40V158m-5 -6 5 6 5 -6" class="axis"/>'
        + text(262, 32, "j")
        + text(58, 160, "i")
    )
