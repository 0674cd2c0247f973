"""What a slide draws beside its words: eight forms, as SVG in the colours of the course.

A plan (``workshop/decks/06.toml``) says ``draw`` for a slide, with one of the keys of :data:`FORMS`::

    draw.rows = [{ name = "as trained", words = "cat:q sat", under = "0 1", below = "place",
                   arcs = [[0, 1, "2:mix"]], end = "loss 3.86" }]  # what comes of a row, large behind it
                                                    # values = [[0.9, 0.1]], as measured, are words in shades;
                                                    # shift = 3 leaves so many columns free
    draw.flow = [["$x$", "$W_Q$", "$q$:q", "turn by $m$"], ["$x$", "$W_K$", "$k$:k", "turn by $n$"]]
    draw.into = "score:mix"                         # where the lanes of a flow meet
    draw.dials = [{ name = "fast", hands = [[90, "$q$:q"], [30, "$k$:k"]], arc = [30, 90, "60°"],
                    seen = [0, 246] }]              # a sector; across = [40, "mirror:off"]: a line
    draw.grids = [{ rule = "offset", n = 4, name = "a bias of the offset", words = "cat chases the dog" }]
                                                    # or values = [[0.9, 0.1], [0.2, 0.8]], as measured,
                                                    # and across = "cat chases", if columns have other words;
                                                    # down = "queries", top = "keys": what both are;
                                                    # ring = [-1, "$r$ = −1:mix"]: a diagonal, and its name
    draw.line = { to = 1024, spans = [[0, 512, "trained"], [512, 1024, "new:new"]], marks = [[600, "q:q"]],
                  name = "gap, tokens" }            # at its end
    draw.curves = [{ rule = "fade", by = 0.5, name = "steep:k" },
                   { points = [[0, 1.92], [16, 2.5, "2.5"]], name = "measured:mix", of = "losses[x]" },
                   { rule = "level", by = 2, name = "a limit:off", dash = true }]  # "↓" behind "2.5": below;
                                                    # dots = false: a line alone, through its points
    draw.x = [0, 16, "distance"]                    # the axis of curves; draw.log = true counts doublings
    draw.ticks = [0, 8, [16, "far"]]                # what stands below it, if anything
    draw.y = [0, 3, "loss, nats"]                   # and at its left: two ends, what they count
    draw.border = 8                                 # after it nothing was trained
    draw.bars = [["shuffled:k", "5.23", "5.1", "5.4"], ["backwards:mix", "4.64"]]  # a number, and its range;
                                                    # [] between two groups is a gap, ["no mask"] a gap
                                                    # with the group's name, "?" not known yet
    draw.unit = "nats"                              # what bars count
    draw.most = 6                                   # where they could end
    draw.mark = ["4.86", "switched off"]            # a line across them
    draw.arrows = [[1, 0, "$q$:q"], [0.87, 0.5, "$q'$:q"]]

``of`` says how points, or values, come from what the notebook's cells compute: a test runs them and compares.
``draw.also`` is a second drawing, below the first. A word may end with a role, ``:q`` (query), ``:k`` (key),
``:mix`` (result), ``:new`` (beyond the training) or ``:off`` (stands back), or, where several encodings stand
side by side, with one: ``:sin``, ``:learned``, ``:relative``, ``:hybrid``, ``:rope``, ``:alibi``. ``:bare``
has no box.
``$…$`` is set as a formula of letters, ``_`` and ``^``. Words are messages of the deck's catalog.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Callable, Iterator

from tutorial_lib import colours

WIDE = 1160  # pixels of a slide
ROOM = 420  # and so many of its height, where nobody says how much its words leave
JOINS = set("+−×÷=≠≤≥·→↑")  # what stands between two boxes has none
ROLE = re.compile(rf":(q|k|mix|new|off|bare|{'|'.join(colours.LANES)})$")
UNSAID = ("rule", "of")
SPOKEN = re.compile(r"[^\W\d_]{2}|[\u4e00-\u9fff]")  # else it is a number or a letter, the same everywhere


def words(drawing: dict) -> Iterator[str]:
    """What a drawing says in words, without roles: ``words`` in one piece, as languages order them.

    >>> list(words({"rows": [{"name": "moved:q", "words": "cat:q sat", "under": "0 1"}], "into": "$q$"}))
    ['moved', 'cat sat']
    """
    for value in [v for k, v in drawing.items() if k not in UNSAID] if isinstance(drawing, dict) else drawing:
        if isinstance(value, dict | list):
            yield from words(value)
        elif isinstance(value, str):
            text = " ".join(ROLE.sub("", word) for word in value.split(" "))
            if SPOKEN.search(re.sub(r"\$[^$]*\$", "", text)):
                yield text


def said(drawing: dict, say: Callable[[str], str]) -> dict:
    """The same drawing in another language; ValueError where ``words`` become fewer or more."""

    def one(value):
        if isinstance(value, dict):
            return {key: each if key in UNSAID else one(each) for key, each in value.items()}
        if isinstance(value, list):
            return [one(each) for each in value]
        if not isinstance(value, str) or not list(words([value])):
            return value
        bare, roles = zip(
            *((ROLE.sub("", word), ROLE.search(word)) for word in value.split(" ")), strict=True
        )
        theirs = say(" ".join(bare))
        if len(bare) == 1 or not any(roles[:-1]):
            return theirs + (roles[-1][0] if roles[-1] else "")
        if len(theirs.split(" ")) != len(bare):
            raise ValueError(
                f"{theirs!r} should have {len(bare)} words with spaces between, as {value!r} has"
            )
        return " ".join(a + (b[0] if b else "") for a, b in zip(theirs.split(" "), roles, strict=True))

    return one(drawing)


# ---- marks ----
def _within(low: float, value: float, high: float) -> float:
    return max(low, min(value, high))


def _minus(number: str) -> str:
    return number.replace("-", "−")


def _cut(text: str) -> tuple[str, str]:
    """Its words, and its role as a class of SVG."""
    role = ROLE.search(text)
    return ROLE.sub("", text), f" {role[1]}" if role else ""


def _long(text: str, size: float) -> float:
    """About as many pixels as a text is wide."""
    bare = re.sub(r"[$_^{}]", "", ROLE.sub("", text))
    return size * sum(1.02 if unicodedata.east_asian_width(c) in "WF" else 0.61 for c in bare)


def _text(x: float, y: float, text: str, role: str = "", size: int = 30, anchor: str = "middle") -> str:
    """Words at a place, in their own role or in this; ``y`` is their middle."""
    text, own = _cut(text)
    inside, drop = "", 0.0  # how far below its line the text stands
    for part in re.split(r"(\$[^$]+\$)", text):
        marks = r"([_^]?)(?:\{([^}]*)\}|(cos|sin|[^_^]))" if part.startswith("$") else "()()(.)"
        for mark, braced, letter in re.findall(marks, part.strip("$")):
            to = {"_": 0.22, "^": -0.34}.get(mark, 0.0) * size
            letters = braced or letter
            upright = not letters[:1].isalpha() or letter in ("cos", "sin")
            kind = "plain" if not part.startswith("$") else "math up" if upright else "math"
            small, index = (f' font-size="{0.72 * size:.0f}"', " lv-index") if to else ("", "")
            moved = f' dy="{to - drop:.1f}"' if to != drop else ""
            shown = html.escape(letters, quote=False)
            inside += f'<tspan class="{kind}{index}"{moved}{small}>{shown}</tspan>'
            drop = to
    inside = re.sub(r'(<tspan class="(?:math|math up|plain)">)([^<]*)</tspan>(?=\1)', r"\1\2", inside)
    while (joined := re.sub(r'(<tspan class="[\w ]+">)([^<]*)\1', r"\1\2", inside)) != inside:
        inside = joined
    return (
        f'<text class="w{own or role}" x="{x:.0f}" y="{y + 0.36 * size:.0f}" font-size="{size}" '
        f'text-anchor="{anchor}">{inside}</text>'
    )


def _box(x: float, y: float, w: float, h: float, role: str = "") -> str:
    return f'<rect class="box{role}" x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="12"/>'


def _boxed(x: float, y: float, w: float, h: float, word: str, size: int) -> str:
    """A box with a word, in its role; what joins two boxes, as a plus does, has none."""
    bare, role = _cut(word)
    if role == " bare":
        return _text(x + w / 2, y + h / 2, bare, " soft", min(size, 28))
    if bare in JOINS:
        return _text(x + w / 2, y + h / 2, word, " soft", size + 6)
    return _box(x, y, w, h, role) + _text(x + w / 2, y + h / 2, word, size=size)


def _arrow(x1: float, y1: float, x2: float, y2: float, role: str = "", wide: float = 4) -> str:
    """A line with a head."""
    along = math.atan2(y2 - y1, x2 - x1)
    size = 5 * wide
    wings = " ".join(
        f"{x2 - size * math.cos(along + turn):.1f},{y2 - size * math.sin(along + turn):.1f}"
        for turn in (0.45, -0.45)
    )
    x3, y3 = x2 - 0.8 * size * math.cos(along), y2 - 0.8 * size * math.sin(along)
    return (
        f'<g class="arrow{role}"><path d="M{x1:.1f} {y1:.1f}L{x3:.1f} {y3:.1f}" stroke-width="{wide}"/>'
        f'<polygon points="{x2:.1f},{y2:.1f} {wings}"/></g>'
    )


def _turn(middle: tuple[float, float], radius: float, start: float, end: float, label: str) -> str:
    """An arc between two angles, in degrees, with its name."""

    def at(angle, far):
        turn = math.radians(angle)
        return f"{middle[0] + far * math.cos(turn):.1f} {middle[1] - far * math.sin(turn):.1f}"

    r = 0.45 * radius
    way = f"{r:.1f} {r:.1f} 0 {int(abs(end - start) > 180)} {int(end < start)}"
    x, y = map(float, at((start + end) / 2, r + 34).split())
    role = _cut(label)[1] or " mix"
    return f'<path class="arc{role}" d="M{at(start, r)}A{way} {at(end, r)}"/>{_text(x, y, label, role, 26)}'


# ---- forms: each returns its marks, its width and its height ----
def _rows(rows: list[dict], room: float, **_) -> tuple[str, float, float]:
    """Words in boxes, below each other; numbers below, arcs above, and what a row is called before it."""

    rows = [
        row | {"words": " ".join(_minus(f"{v:.2f}") for v in row["values"][0])} if "values" in row else row
        for row in rows
    ]

    def above(row):  # room for its arcs
        return 6 + max((32 + 26 * abs(b - a) ** 0.8 for a, b, *_ in row.get("arcs", [])), default=-6)

    taken = sum(above(row) + 36 * ("under" in row) for row in rows)
    between = 26 if (room - taken) / len(rows) > 82 else 12
    tall = _within(46, (room - taken) / len(rows) - between, 104)
    size = int(_within(30, 0.42 * tall, 38))
    left = 0.93 * max(_long(row.get(each, ""), 28) for row in rows for each in ("name", "below")) + 30
    left = left if left > 30 else 0
    right = WIDE - max((_long(row["end"], 34) + 24 for row in rows if "end" in row), default=0)
    longest = max(_long(word, size) for row in rows for word in row["words"].split(" ")) + 36
    most = max(len(row["words"].split(" ")) + row.get("shift", 0) for row in rows)
    longest = max(longest, 1.2 * tall)
    gap = 14
    lines = [[""] * row.get("shift", 0) + row["words"].split(" ") for row in rows]
    columns = [{_cut(line[n])[0] for line in lines if n < len(line)} - {""} for n in range(most)]
    thin = [bool(column) and column <= JOINS for column in columns]  # they hold no box
    room, boxes = right - left - (56 + gap) * sum(thin), most - sum(thin)
    while boxes * (longest + gap) > room and size > 26:
        size, longest = size - 2, longest * (size - 2) / size
    wide = min(longest, room / boxes - gap)
    widths = [56 if each else wide for each in thin]
    places = [(left + sum(widths[:n]) + n * gap, widths[n]) for n in range(most)]
    end = left + sum(widths) + most * gap
    out, y = [], 6.0
    for row in rows:
        arcs = row.get("arcs", [])
        y += above(row)
        x = places[row.get("shift", 0) :]
        middle = [a + w / 2 for a, w in x]
        if name := row.get("name"):
            out.append(_text(left - 20, y + tall / 2, name, " soft", 28, "end"))
        shades = row.get("values", [[]])[0]
        for n, word in enumerate(row["words"].split(" ")):
            if shades:
                share = 0.08 + 0.6 * shades[n] / max(shades)
                at = f'x="{x[n][0]:.0f}" y="{y:.0f}" width="{x[n][1]:.0f}" height="{tall:.0f}"'
                out.append(f'<rect class="cell weight" {at} rx="12" fill-opacity="{share:.2f}"/>')
                out.append(_text(x[n][0] + x[n][1] / 2, y + tall / 2, word, size=min(size, 30)))
            elif _cut(word)[0]:
                out.append(_boxed(x[n][0], y, x[n][1], tall, word, size))
        if "end" in row:
            out.append(_text(end + 10, y + tall / 2, row["end"], "", 34, "start"))
        for a, b, label in arcs:
            x1, x2, high = middle[a], middle[b], 26 * abs(b - a) ** 0.8
            low, top = f"{y - 4:.0f}", f"{y - 4 - 1.33 * high:.0f}"
            way = f"M{x1:.0f} {low}C{x1:.0f} {top} {x2:.0f} {top} {x2:.0f} {low}"
            out += [f'<path class="arc{_cut(label)[1]}" d="{way}"/>'] * (a != b)
            out.append(_text((x1 + x2) / 2, y - high - 24, label, size=26))
        y += tall
        if under := row.get("under"):
            y += 22
            if below := row.get("below"):
                out.append(_text(left - 20, y, below, " soft", 28, "end"))
            for n, number in enumerate(under.split(" ")):
                out.append(_text(middle[n], y, number, " soft", 28))
            y += 14
        if n := row.get("border"):
            edge = x[n][0] - gap / 2
            out.append(f'<path class="border" d="M{edge:.0f} {y - tall - 52:.0f}V{y + 8:.0f}"/>')
        y += between
    return "".join(out), end - gap + 4 + WIDE - right, y - between + 6


def _flow(lanes: list[list[str]], room: float, into: str = "", **_) -> tuple[str, float, float]:
    """Boxes with arrows from each to the next; several lanes may meet in a last one."""
    size, tall, gap = 36, _within(80, (room + 44) / len(lanes) - 44, 124), 54
    ends = [into] if into else []
    columns = max(map(len, lanes))

    def widths(size):
        return [
            max(max((_long(lane[n], size) for lane in lanes if n < len(lane)), default=0) + 44, 96)
            for n in range(columns)
        ] + [max(_long(text, size) + 44, 96) for text in ends]

    while sum(widths(size)) + gap * (columns + len(ends) - 1) + 30 > WIDE and (size > 25 or gap > 34):
        size, gap = max(size - 1, 25), max(gap - 4, 34)
    wide = widths(size)
    out, x = [], [sum(wide[:n]) + gap * n + 2 for n in range(len(wide))]
    if into:
        x[-1] += 30  # lanes bend before they meet
    step = tall + 44
    for m, lane in enumerate(lanes):
        y = 4 + m * step
        for n, word in enumerate(lane):
            out.append(_boxed(x[n], y, wide[n], tall, word, size))
            if n:
                out.append(_arrow(x[n - 1] + wide[n - 1] + 6, y + tall / 2, x[n] - 6, y + tall / 2))
    high = (len(lanes) - 1) * step + tall + 8
    if into:
        y = (high - tall) / 2
        out.append(_boxed(x[-1], y, wide[-1], tall, into, size))
        middle, bend = y + tall / 2, x[-1] - 44
        for m, lane in enumerate(lanes):
            start, end = 4 + m * step + tall / 2, x[len(lane) - 1] + wide[len(lane) - 1] + 6
            way = f"M{end:.0f} {start:.0f}H{bend:.0f}V{middle:.0f}"
            out.append(f'<g class="arrow"><path stroke-width="4" d="{way}"/></g>')
        out.append(_arrow(bend, middle, x[-1] - 6, middle))
    return "".join(out), x[-1] + wide[-1] + 4, high


def _dials(dials: list[dict], room: float, **_) -> tuple[str, float, float]:
    """Clocks: hands at their angles (0 is to the right, as in a plane), a turn as an arc, a name below."""
    named = any("name" in dial for dial in dials)
    apart = min(WIDE / len(dials), 480)
    labels = any(_cut(label)[0] for dial in dials for _, label in dial.get("hands", []))
    radius = _within(70, min(apart / 2 - (46 if labels else 14), (room - (124 if named else 90)) / 2), 180)
    out, middle = [], radius + 44
    for n, dial in enumerate(dials):
        x = (n + 0.5) * apart

        def at(angle, share, x=x):
            turn = math.radians(angle)
            return x + share * radius * math.cos(turn), middle - share * radius * math.sin(turn)

        rim = f'cx="{x:.0f}" cy="{middle:.0f}" r="{radius:.0f}"'
        out.append(f'<circle class="dial" {rim}/>')
        if seen := dial.get("seen"):
            (a, b), (c, d) = at(seen[0], 1), at(seen[1], 1)
            way = f"{radius:.0f} {radius:.0f} 0 {int(seen[1] - seen[0] > 180)} 0 {c:.1f} {d:.1f}"
            out.append(f'<path class="seen" d="M{x:.1f} {middle:.1f}L{a:.1f} {b:.1f}A{way}Z"/>')
            out.append(f'<circle class="dial rim" {rim}/>')
        for tick in range(0, 360, 30):
            (a, b), (c, d) = at(tick, 0.93), at(tick, 1)
            out.append(f'<path class="tick" d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"/>')
        if arc := dial.get("arc"):
            out.append(_turn((x, middle), radius, *arc))
        if across := dial.get("across"):
            (a, b), (c, d) = at(across[0], 1.1), at(across[0] + 180, 1.1)
            out.append(f'<path class="border" d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"/>')
            out.append(_text(a + 12, b - 8, across[1], size=28, anchor="start"))
        for angle, label in dial.get("hands", []):
            role = _cut(label)[1]
            out.append(_arrow(x, middle, *at(angle, 0.96), role, 6 if "off" not in role else 4))
            far = 24 + max(_long(label, 28) / 2 - 14, 0) * abs(math.cos(math.radians(angle)))
            out.append(_text(*at(angle, 1 + far / radius), label, size=28))
        if name := dial.get("name"):
            out.append(_text(x, 2 * radius + 96, name, " soft", 28))
    return "".join(out), apart * len(dials), 2 * radius + (124 if named else 90)


MAPS = {  # the value of a cell, from query i, key j and a number; None is an empty cell
    "offset": lambda i, j, by: j - i,
    "past": lambda i, j, by: j - i if j <= i else None,
    "distance": lambda i, j, by: abs(j - i),
    "clip": lambda i, j, by: max(-by, min(by, j - i)),
    "row": lambda i, j, by: i,
    "column": lambda i, j, by: j,
}
LINES = {  # the height of a curve, from x and a number
    "fade": lambda x, by: math.exp(-by * x),
    "wave": lambda x, by: math.sin(by * x),
    "cosine": lambda x, by: math.cos(by * x),
    "ramp": lambda x, by: by * x,
    "level": lambda x, by: by,
    # the mean score of vectors that agree at a distance, with RoPE in 64 channels: Su et al. 2021, eq. 16
    "agree": lambda x, by: sum(math.cos((x - by) * 10000 ** (-t / 32)) for t in range(32)) / 32,
}


def _cells(text: str) -> list[str]:
    """Words with spaces between; within one, a no-break space may stand."""
    return text.split(" ") if text else []


def _grids(grids: list[dict], room: float, **_) -> tuple[str, float, float]:
    """Queries in rows, keys in columns; equal numbers have equal colours, before blue and after orange.

    What was measured is green. Columns have the words of the rows, or those of ``across``. A grid whose name
    is ``:off`` stands back.
    """
    apart = WIDE / len(grids)
    down, top = 40 * any("down" in grid for grid in grids), 36 * any("top" in grid for grid in grids)
    out, high, end = [], 0.0, 0.0
    for m, grid in enumerate(grids):
        values = grid.get("values") or [
            [MAPS[grid["rule"]](i, j, grid.get("by", 0)) for j in range(grid["n"])] for i in range(grid["n"])
        ]
        n, across, names = len(values), len(values[0]), _cells(grid.get("words", ""))
        above = _cells(grid.get("across", grid.get("words", "")))
        label = max((_long(name, 26) for name in names), default=0) + 16
        widest = (apart - label - down - 50) / across
        lines = any("name" in each for each in grids) + any("ring" in each for each in grids)
        tall = min(widest, (room - 50 - top - 54 * lines) / n, 84)
        longest = max((_long(name, 26) for name in above), default=0) + 16
        wide = min(max(tall, label, longest), widest)  # a column has room for its word
        half = _long(grid.get("name", ""), 28) / 2 - across * wide / 2  # how far its name sticks out
        x0, y0 = m * apart + max(label + down, half), (44.0 if names else 6.0) + top
        most = max(abs(v) for row in values for v in row if v is not None) or 1
        if "top" in grid:
            out.append(_text(x0 + across * wide / 2, 16, grid["top"], " soft", 26))
        if "down" in grid:
            at = f"{x0 - label - 16:.0f} {y0 + n * tall / 2:.0f}"
            out.append(
                f'<g transform="translate({at}) rotate(-90)">{_text(0, 0, grid["down"], " soft", 26)}</g>'
            )
        ink = 0.3 if "off" in _cut(grid.get("name", ""))[1] else 1
        if wide > longest - 20:
            out += [_text(x0 + (j + 0.5) * wide, y0 - 22, word, size=26) for j, word in enumerate(above)]
        for i in range(n):
            if names:
                out.append(_text(x0 - 12, y0 + (i + 0.5) * tall, names[i], "", 26, "end"))
            for j, value in enumerate(values[i]):
                x, y = x0 + j * wide, y0 + i * tall
                sign = (
                    "empty" if value is None else "before" if value < 0 else "after" if value > 0 else "same"
                )
                sign = "weight" if sign == "after" and "values" in grid else sign
                said = value is not None and tall > 44 and (value or "rule" in grid)
                shades = 0.4 if said else 0.62  # its digits are dark
                share = 0 if value is None else ink * (0.18 + shades * abs(value) / most)
                out.append(
                    f'<rect class="cell {sign}" x="{x + 1.5:.1f}" y="{y + 1.5:.1f}" width="{wide - 3:.1f}" '
                    f'height="{tall - 3:.1f}" rx="5" fill-opacity="{share:.2f}"/>'
                )
                if said:
                    out.append(_text(x + wide / 2, y + tall / 2, _minus(f"{value}"), "", 26))
        if "ring" in grid:
            offset, label = grid["ring"]
            for i in range(max(0, -offset), min(n, across - offset)):
                x, y = x0 + (i + offset) * wide, y0 + i * tall
                out.append(f'<rect class="ring" x="{x}" y="{y}" width="{wide}" height="{tall}" rx="7"/>')
            if offset > 0:
                out.append(_text(x0 + across * wide + 20, y + tall / 2, label, "", 30, "start"))
            else:
                middle, edge = x + wide / 2, y + tall + 2
                out.append(f'<path class="arc{_cut(label)[1]}" d="M{middle:.0f} {edge:.0f}v16"/>')
                out.append(_text(middle, edge + 36, label, size=30))
        bottom = y0 + n * tall + 54 * ("ring" in grid)
        if name := grid.get("name"):
            out.append(_text(x0 + across * wide / 2, bottom + 34, name, " soft", 28))
            bottom += 54
        high = max(high, bottom)
        end = max(x0 + across * wide + 30, x0 + across * wide / 2 + _long(grid.get("name", ""), 28) / 2)
    return "".join(out), end, high + 6


def _line(line: dict, **_) -> tuple[str, float, float]:
    """A line of numbers: spans above it, marks that point to it, its ends and its name below."""
    left, right, y = 30, WIDE - 40, 106.0

    def x(value):
        share = value / line["to"]
        if line.get("log"):
            share = math.log1p(value) / math.log1p(line["to"])
        return left + (right - left) * share

    out = []
    for start, end, label in line.get("spans", []):
        out.append(_boxed(x(start) + 2, y - 100, x(end) - x(start) - 4, 84, label, 32))
    out.append(_arrow(left, y, right + 34, y, "", 3))
    ticks = line.get("ticks", sorted({0, line["to"], *(e for _, e, _ in line.get("spans", []))}))
    for value in ticks:
        out.append(f'<path class="tick" d="M{x(value):.0f} {y - 8:.0f}v16"/>')
        out.append(_text(x(value), y + 32, f"{value:,}", " soft", 26))
    for n, (value, label) in enumerate(line.get("marks", [])):
        near = any(abs(x(value) - x(tick)) < 40 for tick in ticks)  # its number stands there
        below = y + 86 + 44 * (n % 2) + 20 * near
        out.append(_arrow(x(value), below - 24, x(value), y + (50 if near else 8), _cut(label)[1]))
        half = _long(label, 28) / 2
        out.append(_text(min(max(x(value), half), WIDE - half), below, label, size=28))
    if "name" in line:
        out.append(_text(WIDE, y + 64, line["name"], " soft", 26, "end"))
    marks = len(line.get("marks", []))
    return "".join(out), WIDE, y + (56 if not marks else 136 if marks == 1 else 180)


def _curves(
    curves: list[dict],
    room: float,
    x: list,
    border: float | None = None,
    log: bool = False,
    ticks: list | None = None,
    y: list | None = None,
    **_,
) -> tuple[str, float, float]:
    """Curves over one axis, by a rule or through points, with names at their ends.

    Before the border was training.
    """
    start, end, label = x
    sides = [f"{each:,}" if abs(each) >= 1e5 else f"{each:g}" for each in y[:2]] if y else []
    left = max((_long(each, 26) + 16 for each in sides), default=20)
    right = WIDE - max(_long(c["name"], 28) for c in curves) - 24
    top = 56 if y else 16
    tall = _within(160, room - top - 56 - 32 * bool(ticks), 400)

    def along(at):
        at, low, high = (math.log2(each) if log else each for each in (at, start, end))
        return left + (right - left) * (at - low) / (high - low)

    steps = [start + (end - start) * m / 200 for m in range(201)]
    drawn = [c.get("points") or [(at, LINES[c["rule"]](at, c["by"])) for at in steps] for c in curves]
    heights = [point[1] for points in drawn for point in points]
    low, high = y[:2] if y else (min(heights), max(heights))
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)

    def up(value):
        return top + tall * (high - value) / (high - low)

    base = up(max(low, min(0, high)))
    out = [f'<path class="axis" d="M{left:.0f} {base:.0f}H{right:.0f}"/>']
    if y:
        marked = [*zip(y[:2], sides, strict=True), *[(0, "0")] * (y[0] < 0 < y[1])]
        out += [_text(left - 10, up(at), _minus(each), " soft", 26, "end") for at, each in marked]
        out += [
            _text(0, 16, y[2], " soft", 26, "start"),
            f'<path class="axis" d="M{left:.0f} {top}V{top + tall}"/>',
        ]
    if border is not None:
        edge = along(border)
        size = f'width="{right - edge:.0f}" height="{tall + 16}"'
        out.append(f'<rect class="beyond" x="{edge:.0f}" y="{top - 8}" {size}/>')
        out.append(f'<path class="border" d="M{edge:.0f} {top - 8}V{top + tall + 8}"/>')
    ends, names = [], []  # names stand over all curves
    for curve, points in zip(curves, drawn, strict=True):
        at = [(along(a), up(b)) for a, b, *_ in points]
        path = "".join(f"{'L' if m else 'M'}{a:.1f} {b:.1f}" for m, (a, b) in enumerate(at))
        role = _cut(curve["name"])[1]
        dash = " dash" if curve.get("dash") else ""
        out.append(f'<path class="curve{role}{dash}" d="{path}"/>')
        if "points" in curve:
            size = 9 if len(at) < 12 else 5
            dots = at if curve.get("dots", len(at) < 40) else []  # so many are a curve
            out += [f'<circle class="bar{role}" cx="{a:.1f}" cy="{b:.1f}" r="{size}"/>' for a, b in dots]
            for (a, b), (_, _, *said) in zip(at, points, strict=True):
                below = said[1:] == ["↓"]
                names += [_text(a, b + (30 if below else -28), text, role, 28) for text in said[:1]]
        if _cut(curve["name"])[0]:
            ends.append([at[-1][1], curve["name"]])
    ends.sort()
    for a, b in zip(ends, ends[1:], strict=False):
        b[0] = max(b[0], a[0] + 36)
    out += names + [_text(right + 18, at, name, "", 28, "start") for at, name in ends]
    below = top + tall + 30
    for tick in ticks or []:
        at, name = tick if isinstance(tick, list) else (tick, _minus(f"{tick:,}"))
        out.append(_text(max(along(at), _long(name, 26) / 2), below, name, " soft", 26))
    out.append(_text(right, below + 6 + 32 * bool(ticks), label, " soft", 26, "end"))
    return "".join(out), WIDE, below + 26 + 32 * bool(ticks)


def _bars(
    bars: list[list[str]], room: float, unit: str = "", most: float = 0, mark: list | None = None, **_
) -> tuple[str, float, float]:
    """Bars with their names before and their numbers behind; a range is a thin line, a mark a dashed one.

    A number that the mark would cross stands in its bar.
    """

    def value(text):
        return 0.0 if text == "?" else float(re.sub(r"[^\d.-]", "", text.replace("−", "-")))

    given = [bar for bar in bars if bar[1:]]
    rows = len(given) + 0.5 * (len(bars) - len(given))
    step = _within(54, (room - 20) / rows, 124)
    thick = (0.8 if len(given) < len(bars) else 0.6) * step
    left = max(_long(name, 30) for name, *_ in given) + 24
    room = WIDE - left - max(_long(text, 32) for _, text, *_ in given) - 24
    most = most or max(value(text) for _, *row in given for text in row) or 1
    x = {text: left + room * value(text) / most for _, *row in given for text in (*row, *(mark or [])[:1])}
    top, out = (44 - (step - thick) / 2 if mark or unit else 4), []  # what they count stands at the first
    if unit:
        out.append(_text(left, 16, unit, " soft", 26, "start"))
    y = top - step / 2
    for bar in bars:
        y += step if bar[1:] else step / 2
        if not bar[1:]:
            out += [_text(0, y + step / 4, name, "", 28, "start") for name in bar]
            continue
        name, number, *ends = bar
        role = _cut(name)[1]
        out.append(_text(left - 20, y, name, "", 30, "end"))
        wide = max(x[number] - left, 3)
        out.append(f'<rect class="bar{role}" x="{left:.0f}" y="{y - thick / 2:.0f}" width="{wide:.0f}" '
                   f'height="{thick:.0f}" rx="{min(6, wide / 3):.0f}"/>')  # fmt: skip
        far = x[number]
        if number == "?":  # it may end anywhere
            pieces, high = "", f"{y - thick / 2:.0f}"
            for n in range(9):  # it fades
                b = left + (0.3 + 0.025 * n) * room
                a = b - 0.025 * room if n else left
                sides = f"H{a:.0f}v{thick:.0f}H{b:.0f}" if n == 0 else f"H{a:.0f}m0 {thick:.0f}H{b:.0f}"
                pieces += (f'<g opacity="{1 - 0.1 * n:.1f}"><path stroke="none" d="M{b:.0f} {high}H{a:.0f}'
                           f'v{thick:.0f}H{b:.0f}z"/><path d="M{b:.0f} {high}{sides}"/></g>')  # fmt: skip
            out[-1] = f'<g class="box new">{pieces}</g>'
            out.append(_text(left + room / 4, y, number, role, 32))
            continue
        if ends:
            low, far = (x[end] for end in ends)
            out.append(f'<path class="range" d="M{low:.0f} {y:.0f}H{far:.0f}M{low:.0f} {y - 9:.0f}v18'
                       f'M{far:.0f} {y - 9:.0f}v18"/>')  # fmt: skip
        if mark and far < x[mark[0]] < far + 18 + _long(number, 32):
            shade = "ink" if role == " off" else "page"
            inside = _text(far - 14, y, number, "", 32, "end")
            out.append(inside.replace("<text", f'<text style="fill:var(--{shade});stroke:none"', 1))
            continue
        out.append(_text(max(far, left) + 14, y, number, role, 32, "start"))
    if mark:
        at = x[mark[0]]
        out.append(f'<path class="border" d="M{at:.0f} {top - 6}V{top + step * rows:.0f}"/>')
        said = f"{mark[1]} {mark[0]}"
        side, anchor = (8, "start") if at + 8 + _long(said, 26) < WIDE else (-8, "end")
        out.append(_text(at + side, 16, said, "", 26, anchor))
    return "".join(out), WIDE, top + step * rows + 4


def _arrows(arrows: list[list], room: float, arc: list | None = None, **_) -> tuple[str, float, float]:
    """Vectors of a plane from one point, each with its name at its tip."""
    far = max(math.hypot(a, b) for a, b, *_ in arrows)
    low = max(0.2, *(-b / far for _, b, _ in arrows))  # how far down it goes
    radius = min((room - 78) / (1 + low), 0.3 * WIDE)
    middle, level = radius + 220, radius + 46  # names have room at the sides
    out = [
        f'<path class="axis" d="M{middle - radius - 16:.0f} {level:.0f}H{middle + radius + 16:.0f}'
        f'M{middle:.0f} {level - radius - 16:.0f}V{level + low * radius:.0f}"/>'
    ]
    if arc:
        out.append(_turn((middle, level), radius, *arc))
    for a, b, label in arrows:
        tip = middle + radius * a / far, level - radius * b / far
        out.append(_arrow(middle, level, *tip, _cut(label)[1], 6))
        long = math.hypot(a, b) or 1
        if abs(a) < 0.05 * long:  # not on the axis
            out.append(_text(tip[0] + 18, tip[1] + (6 if b > 0 else -6), label, "", 28, "start"))
            continue
        along = 26 + _long(label, 28) / 2 * abs(a) / long
        out.append(_text(tip[0] + along * a / long, tip[1] - 26 * b / long, label, size=28))
    return "".join(out), 2 * middle, level + low * radius + 32


FORMS = {
    "rows": _rows, "flow": _flow, "dials": _dials, "grids": _grids,
    "line": _line, "curves": _curves, "bars": _bars, "arrows": _arrows,
}  # fmt: skip


def _marks(drawing: dict, room: float) -> tuple[str, float, float]:
    forms = [each for each in FORMS if each in drawing]
    if len(forms) != 1:
        raise ValueError(f"a drawing has one of {', '.join(FORMS)}; this one has {', '.join(drawing)}")
    (form,) = forms
    room = (room - 30) / 2 if "also" in drawing else room
    try:
        marks, wide, high = FORMS[form](
            drawing[form], room=room, **{k: v for k, v in drawing.items() if k != form}
        )
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        raise ValueError(f"the drawing {form} = {drawing[form]!r} can't be drawn: {problem!r}") from None
    if "also" in drawing:
        more, width, height = _marks(drawing["also"], room)
        most, below = max(wide, width), high + 30
        marks = (
            f'<g transform="translate({(most - wide) / 2:.0f} 0)">{marks}</g>'
            f'<g transform="translate({(most - width) / 2:.0f} {below:.0f})">{more}</g>'
        )
        wide, high = most, below + height
    return marks, wide, high


def svg(drawing: dict, room: float = ROOM) -> str:
    """A drawing as SVG, about as high as its ``room``; ValueError, with the forms there are, for another.

    >>> svg({"flow": [["$x$", "score"]]}).count("<rect"), svg({"bars": [["cat", "0.5"]]}).count("<rect")
    (2, 1)
    >>> asked = svg({"bars": [["cat", "0.5"], [], ["dog", "?"]]})
    >>> asked.count('class="bar'), asked.count('class="box new"')
    (1, 1)
    """
    marks, wide, high = _marks(drawing, room)
    most = f"max-width: min(100%, {1.15 * wide:.0f}px)"  # its words are as large as on other slides
    return (
        f'<svg class="drawing" style="{most}" viewBox="0 0 {wide:.0f} {high:.0f}" role="presentation">'
        f"{marks}</svg>"
    )
