"""The picture beside the first words of a side quest: what its question is about, not the answer.

Drawn as those of the lessons' cards are, in units of ``landing.WIDE`` by ``landing.HIGH``.
"""

from __future__ import annotations

import math
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


# ---- 04 ----
@of("04_clipping")
def clipped() -> str:
    """A map of offsets that is flat beyond two steps."""
    values = [[1 - 0.3 * min(2, abs(i - j)) for j in range(11)] for i in range(11)]
    ends = text(205, 94, "−2") + text(249, 94, "0") + text(293, 94, "2")
    level = line([(196, 64), (204, 64), (249, 22), (294, 64), (310, 64)], "relative", 3)
    return grid(22, 16, 13, values, "relative") + level + ends


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
