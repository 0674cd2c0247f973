"""What a method does, drawn small where a map of its scores would show numbers that nobody has learned.

The library's own classes compute it, from weights that a rule beside the picture states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from figure import LEFT, SIDE, TOP, bars, drawing, lines, scale, word
from forest import signed
from torch import Tensor

from tutorial_lib.attention import scores
from tutorial_lib.encodings import (
    FIRE,
    KERPLE,
    TUPE,
    Absolute,
    Add,
    AxialRotary,
    Concatenate,
    CoPE,
    DeBERTa,
    Forgetting,
    LeRoPE,
    Multiply,
    PoPE,
    PositionMatrix,
    QueryBias,
    Rotary,
    Shaw,
    Sinusoidal,
    SwinBias,
    XPos,
    grid,
)

NARROW, WIDE = LEFT + SIDE + 70, LEFT + SIDE + 100
"""The left panel of a figure, and the right one."""

M = 5
MARKED = (2, 3)
"""A window has M rows and columns; its query patch stands in this row and column."""
ROOM = 14
"""More at the left of a plot whose rows have words for names."""
STORY = ["We", "came", ".", "We", "saw", "the", "cat", ".", "It", "slept"]
REPEATS = ["the", "dog", "saw", "the", "cat", "and", "the", "bird"]


class Idea(NamedTuple):
    """Panels by their titles, what they show in a sentence or two, and the same for who can't see them."""

    panels: dict[str, str]
    said: str
    alt: str


MOST = 0.5
"""Of a colour, on which a text can be read."""


def _cell(x: float, y: float, side: float, share: float, most: float = MOST) -> str:
    """A square with that share of the colour."""
    return (
        f'<rect x="{x:.4g}" y="{y:.4g}" width="{side - 1:.4g}" height="{side - 1:.4g}" class="colour" '
        f'opacity="{0.06 + (most - 0.06) * share:.2g}"/>'
    )


def _frame(x: float, y: float, side: float) -> str:
    return f'<rect x="{x:.4g}" y="{y:.4g}" width="{side:.4g}" height="{side:.4g}" class="mark"/>'


def _map(
    z: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    named: tuple[str, str],
    *,
    said: Callable[[int, int], str] | None = None,
    ends: Tensor | None = None,
    most: float = MOST,
) -> str:
    """Numbers as shades from ``ends``, with names of rows and columns; ``said``: what stands in a cell."""
    low, high = (z if ends is None else ends).aminmax()
    side, inside = SIDE / len(z), ""
    for i, row in enumerate(((z - low) / (high - low)).tolist()):
        for j, share in enumerate(row):
            x, y = LEFT + side * j, TOP + side * i
            inside += _cell(x, y, side, share, most)
            if said:
                inside += word(x + side / 2 - 0.5, y + side / 2, said(i, j), ' class="mid ink"')
    return inside + _names(rows, columns, named)


def _names(rows: Sequence[str], columns: Sequence[str], named: tuple[str, str]) -> str:
    """Names of rows and columns at a square plot, and what both are."""
    side, inside = SIDE / len(rows), ""
    for i, (row, column) in enumerate(zip(rows, columns, strict=True)):
        inside += word(LEFT - 7, TOP + side * (i + 0.5), row, ' class="end"')
        inside += word(LEFT + side * (i + 0.5), TOP + SIDE + 14, column, ' class="mid"')
    x = 9 if max(map(len, rows)) < 3 else 9 - ROOM
    inside += word(LEFT + SIDE / 2, TOP + SIDE + 31, named[1], ' class="mid"')
    return inside + word(-TOP - SIDE / 2, x, named[0], ' class="mid" transform="rotate(-90)"')


def _dot(full: bool, x: float, y: float) -> str:
    return f'<circle cx="{x:g}" cy="{y:.4g}" r="7" class="{"colour" if full else "frame"}"/>'


def _patch(at: tuple[int, int], side: float) -> str:
    return _frame(LEFT + side * at[1] - 0.5, TOP + side * at[0] - 0.5, side)


# ---- images ----
def swin() -> Idea:
    """A window around a query, and where its offsets stand in the table."""
    encoding = SwinBias(1, (M, M), std=0)
    steps = torch.arange(1 - M, M)
    with torch.no_grad():
        encoding.B_hat[0] = -torch.hypot(steps[:, None].float(), steps.float())
        p, (row, column) = grid(M, M), MARKED
        seen = encoding.bias(p, p)[0, row * M + column].unflatten(0, (M, M))
    table, side, names = encoding.B_hat[0].detach(), SIDE / len(steps), [signed(n) for n in steps.tolist()]

    def offset(i: int, j: int) -> str:
        return (
            f"{signed(i - row, '+d' if i != row else 'd')} {signed(j - column, '+d' if j != column else 'd')}"
        )

    numbers = [str(n) for n in range(M)]
    frame = _frame(LEFT + side * (M - 1 - column) - 0.5, TOP + side * (M - 1 - row) - 0.5, side * M)
    center = _frame(LEFT + side * (M - 1) - 0.5, TOP + side * (M - 1) - 0.5, side)
    window = _map(seen, numbers, numbers, ("row", "column"), said=offset, ends=table)
    whole = _map(table, names, names, ("rows down", "columns to the right"))
    return Idea(
        {
            "Offsets from the marked patch": drawing(NARROW, window + _patch(MARKED, SIDE / M)),
            f"The table: {len(steps)} × {len(steps)} numbers": drawing(
                WIDE, whole + frame + center + scale(float(table.min()), float(table.max()) + 0.0, MOST)
            ),
        },
        "A patch has the number of its offset, rows before columns: the marked one reads the framed part of "
        "the table. Training sets the numbers; here each is minus the distance.",
        f"Two heat maps: a window of {M} by {M} patches, each with its offset in rows and columns from a "
        f"marked one, and the table of {len(steps)} by {len(steps)} numbers, where those offsets are a "
        "framed square.",
    )


def two_axes() -> Idea:
    """Two hands for each patch, and the scores of one of them."""
    encoding, p, side = AxialRotary(16), grid(M, M), SIDE / M
    cos, sin = encoding.frequencies.cos_sin(p, None)
    slow = cos.shape[-1] // 2  # the first pair of the columns
    hands = ""
    for n, (row, column) in enumerate(p.tolist()):
        x, y = LEFT + side * (column + 0.5), TOP + side * (row + 0.5)
        hands += f'<circle cx="{x:.4g}" cy="{y:.4g}" r="15" class="frame"/>'
        for pair, kind in ((0, "row"), (slow, "column")):
            c, s = 14 * float(cos[n, pair]), 14 * float(sin[n, pair])
            hands += f'<path d="M{x:.4g} {y:.4g}l{c:.3g} {-s:.3g}" class="hand {kind}"/>'
    numbers = [str(n) for n in range(M)]
    hands += _names(numbers, numbers, ("row", "column"))
    for y, kind in ((TOP + 18, "row"), (TOP + 40, "column")):
        hands += f'<path d="M{LEFT + SIDE + 13} {y}h11" class="hand {kind}"/>'
        hands += word(LEFT + SIDE + 30, y, kind, ' class="ink"')
    x = torch.ones(1, 1, M * M, 16)
    z = scores(x, x, encoding, p, p)[0, 0, MARKED[0] * M + MARKED[1]].unflatten(0, (M, M))
    near = _map(z, numbers, numbers, ("row", "column"), said=lambda i, j: signed(float(z[i, j]), ".1f"))
    return Idea(
        {
            "Two hands for each patch": drawing(NARROW, hands),
            "Near patches score high": drawing(WIDE, near + _patch(MARKED, side)),
        },
        "Along a row only the thin hand moves, down a column only the thick one. With the same content "
        "everywhere, near patches score high.",
        f"Clocks beside a heat map: {M} by {M} patches, each with a hand that turns with its row and one "
        "that turns with its column; beside them the scores of one patch, which fall to all sides.",
    )


# ---- words ----
def fusion() -> Idea:
    """One token vector and one position vector become one in four ways; what their products contain."""
    place, e = 2, torch.tensor([1, 0.5, -0.5, 1])
    position = Sinusoidal(4)
    ways = {
        "add": Add(position),
        "multiply": Multiply(position),
        "concatenate": Concatenate(position),
        "matrix": PositionMatrix(8, 4, std=0),
    }
    with torch.no_grad():
        for n in range(8):
            ways["matrix"].matrices[n] = torch.eye(4).roll(n, 0)
        given = {"word e": e, "place p": position.vectors(torch.tensor([place]))[0]}
        made = {name: way.embed(e[None, None], torch.tensor([place]))[0, 0] for name, way in ways.items()}
    left, wide, high, strips = 86, 31, 36, ""
    for n, (name, numbers) in enumerate((given | made).items()):
        y = TOP + high * n + 14 * (n >= len(given))
        strips += word(0, y + wide / 2 - 1, name, ' class="ink"')
        for k, x in enumerate(numbers.tolist()):
            part = _cell(left + wide * k, y, wide - 1, min(abs(x) / 2, 1))
            strips += part.replace("colour", "colour" if x >= 0 else "below")
            strips += word(
                left + wide * (k + 0.5) - 1.5,
                y + wide / 2 - 1,
                signed(x, ".1f"),
                ' class="mid ink" font-size="11"',
            )
    names = ("word with word", "word with place", "place with place", "all at once")
    left, wide, high, dots = 96, 66, 44, ""
    for k, title in enumerate(names):
        for n, line in enumerate(title.replace(" with ", " with|").replace("all ", "all |").split("|")):
            dots += word(left + wide * (k + 0.5), TOP + 8 + 15 * n, line, ' class="mid"')
    found = {name: products(way, e, place) for name, way in ways.items()}
    for n, (name, there) in enumerate(found.items()):
        y = TOP + 66 + high * n
        dots += (
            word(0, y, name, ' class="ink"') + f'<path d="M0 {y + high / 2}H{left + 4 * wide}" class="rule"/>'
        )
        for k, its in enumerate(there):
            dots += _dot(its, left + wide * (k + 0.5), y)
    told = "; ".join(
        f"{name}: {', '.join(title for title, its in zip(names, there, strict=True) if its)}"
        for name, there in found.items()
    )
    return Idea(
        {
            f"A word at place {place}, joined in four ways": drawing(344, strips, 238),
            "What a product of two such vectors holds": drawing(left + 4 * wide, dots, 230),
        },
        "Four numbers of a word meet the sinusoid of its place; the matrix here moves them on by the place. "
        "A full dot is a product that is there before queries and keys mix the numbers.",
        "A table of numbers beside a table of dots, about what the product of two fused vectors holds: "
        f"{told}.",
    )


def products(way, e: Tensor, place: int) -> tuple[bool, bool, bool, bool]:
    """Which terms the product of two fused vectors has: words alone, each with a place, places, or all four.

    A word or a place is left out by zeros in its stead.

    >>> products(Add(Sinusoidal(4)), torch.ones(4), 2), products(Multiply(Sinusoidal(4)), torch.ones(4), 2)
    ((True, True, True, False), (False, False, False, True))
    """
    p = torch.tensor([place])

    def fused(word: bool, where: bool) -> Tensor:
        h = way.embed(e[None, None] * word, p)[0, 0].detach()
        if where:
            return h
        if isinstance(way, PositionMatrix):
            return torch.zeros_like(h)
        zeros = Zeros(way.position.dim)
        return type(way)(zeros).embed(e[None, None] * word, p)[0, 0]

    only_e, only_p, both = fused(True, False), fused(False, True), fused(True, True)
    rest = both @ both - (only_e + only_p) @ (only_e + only_p)
    terms = (only_e @ only_e, only_e @ only_p, only_p @ only_p, rest)
    return tuple(abs(float(x)) > 1e-5 for x in terms)


class Zeros(Absolute):
    """No place has a vector."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def vectors(self, positions, *, offset: int = 0) -> Tensor:
        return torch.zeros(len(positions), self.dim)


def tupe() -> Idea:
    """The products of words, and those of places, which are the same in any sentence."""
    words = list(dict.fromkeys(REPEATS))
    encoding = TUPE(Sinusoidal(16), 1, 16)
    x = 4 * torch.eye(len(words), 16)[[words.index(each) for each in REPEATS]][None, None]
    with torch.no_grad():
        for U in (encoding.U_Q, encoding.U_K):
            U.weight.copy_(torch.eye(16))
        p = torch.arange(len(REPEATS))
        places = encoding.bias(p, p)[0]
        both = scores(x, x, encoding, p, p)[0, 0]
    ends = torch.stack([both - places, places])
    numbers = [str(n) for n in range(len(REPEATS))]

    def shades(z: Tensor, names: list[str]) -> str:
        return _map(z, names, names, ("query", "key"), ends=ends, most=1)

    plus = word(LEFT + SIDE + 38, TOP + SIDE / 2, "+", ' class="mid ink" font-size="30"')
    bar = scale(*map(float, ends.aminmax()))
    return Idea(
        {
            "Words ask words": drawing(NARROW, shades(ends[0], REPEATS) + plus, start=-ROOM),
            "Places ask places": drawing(WIDE, shades(ends[1], numbers) + bar, start=-ROOM),
        },
        "A score is the sum of both: words differ from text to text, places do not. Here equal words match "
        "and places ask for near ones; training sets both.",
        f"Two heat maps, query by key, for “{' '.join(REPEATS)}”: in one, equal words have high scores; in "
        "the other, near places have.",
    )


def query_bias() -> Idea:
    """Two profiles, and what three queries make of them."""
    encoding, m = QueryBias(1, 2, 32, rank=2), torch.arange(32)
    asks = {"query A": (1.0, 0.0), "query B": (0.0, 1.0), "half each": (0.5, 0.5)}
    with torch.no_grad():
        encoding.P[0], encoding.P[1] = torch.exp(-((m - 3) ** 2) / 2), 1 - m / 40
        encoding.W_r[0] = torch.eye(2)
        far = torch.tensor([40])
        q = torch.tensor(list(asks.values()))[None, None]
        k = torch.zeros(1, 1, 41, 2)
        b = (
            encoding.content_bias(q, k, far.expand(len(asks)), torch.arange(41))[0, 0].flip(-1)
            * encoding.scale
        )
        profiles = torch.cat([encoding.P, torch.zeros(2, 9)], 1)
    return Idea(
        {
            "The bank: two profiles": bars(profiles.numpy(), ["profile 1", "profile 2"], NARROW, 32),
            "What three queries add to a score": bars(b.numpy(), list(asks), WIDE, 32),
        },
        "Query A asks for profile 1, three places back; query B for profile 2, all that is near; training "
        "sets the profiles.",
        "Bars by distance: two profiles, one with a peak at 3 and one that falls slowly, and what three "
        "queries mix from them; all end 32 places back.",
    )


def shaw() -> Idea:
    """What two queries find in the vectors of the keys, and what those of the values tell."""
    k, far = 12, torch.tensor([20])
    encoding, m = Shaw(2, k), torch.arange(2 * k + 1) - k  # offsets, key minus query
    asks = {"query A: 3 back": (1.0, 0.0), "query B: near": (0.0, 1.0)}
    with torch.no_grad():
        encoding.w_K[:, 0], encoding.w_K[:, 1] = 0.15 + torch.exp(-((m + 3) ** 2) / 2), 1 - m.abs() / 16
        encoding.w_V[:, 0] = m.abs()
        q, keys = torch.tensor(list(asks.values()))[None, None], torch.zeros(1, 1, 21, 2)
        asked = encoding.content_bias(q, keys, far.expand(2), torch.arange(21))[0, 0].flip(-1)
        one = torch.eye(21).flip(0)[None, None]  # all weight on one key, each in turn
        told = encoding.values(one, far.expand(21), torch.arange(21))[0, 0, :, 0]
    return Idea(
        {
            "Keys: a query asks for a distance": bars(asked.numpy(), list(asks), NARROW, k, 0.8),
            "Values: the output hears the distance": bars(
                told[None].numpy(), ["all weight on one key"], WIDE, k, 0.24
            ),
        },
        "One vector joins the keys and so a score, the other the values and so the output. Here both are "
        "made by hand; training sets them.",
        "Bars by distance: what two queries find in the key vectors, one a peak at 3, the other a slow fall, "
        "and the number that the values add, which grows up to 12; from there on all bars are alike.",
    )


def deberta() -> Idea:
    """One term is chosen by the word of the row, the other by the word of the column."""
    nouns, verb = ("dog", "cat", "bird"), "saw"
    encoding, n = DeBERTa(1, 2, len(REPEATS)), len(REPEATS)
    offset = torch.arange(2 * n) - n  # query minus key in the table of keys
    with torch.no_grad():
        encoding.P[:, 0], encoding.P[:, 1] = (offset == 1).float(), (1 - offset.abs() / 3).clamp(0)
        encoding.W_kr.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
        encoding.W_qr.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
        q = torch.tensor([[float(each in nouns), 0.0] for each in REPEATS])[None, None]
        k = torch.tensor([[0.0, float(each == verb)] for each in REPEATS])[None, None]
        p, none = torch.arange(n), torch.zeros(1, 1, n, 2)
        asks = encoding.content_bias(q, none, p, p)[0, 0]
        asked = encoding.content_bias(none, k, p, p)[0, 0]

    def shades(z: Tensor) -> str:
        return _map(z, REPEATS, REPEATS, ("query", "key"), ends=asks, most=1)

    plus = word(LEFT + SIDE + 38, TOP + SIDE / 2, "+", ' class="mid ink" font-size="30"')
    return Idea(
        {
            "Query: nouns look one back": drawing(NARROW, shades(asks) + plus, start=-ROOM),
            f"Key: “{verb}” is seen from near": drawing(WIDE, shades(asked) + scale(0.0, 1.0), start=-ROOM),
        },
        "Both are added to the product of the words. The wishes are made up here; training sets them.",
        f"Two heat maps, query by key, for “{' '.join(REPEATS)}”: in one the rows of the nouns have a mark "
        f"at the word before, in the other the column of “{verb}” is dark near it.",
    )


def _reading(columns: Sequence[tuple[str, float, Callable[[int], str]]]) -> str:
    """The story as rows, the query last; columns have a title, a place, and what they draw at a row."""
    step, inside = SIDE / len(STORY), ""
    for n, each in enumerate(STORY):
        y = TOP + 24 + step * n
        query = n == len(STORY) - 1
        inside += word(0, y, each, ' class="ink" font-weight="700"' if query else ' class="ink"')
        inside += f'<path d="M0 {y + step / 2:.4g}H310" class="rule"/>'
        inside += "".join(draw(n, x, y) for _title, x, draw in columns)
    inside += word(0, TOP + 2, "key") + word(48, TOP + 24 + step * (len(STORY) - 1), "= the query", "")
    return inside + "".join(word(x, TOP + 2, title, ' class="mid"') for title, x, _draw in columns)


def cope() -> Idea:
    """The same sentence counted twice: by gates that are all open, and by those of the full stops."""
    encoding, stops = CoPE(1, 64), torch.tensor([each == "." for each in STORY])
    q = torch.ones(1, 1, 1, 1)

    def counted(opened: Tensor) -> Tensor:
        k = torch.where(opened, 40.0, -40.0)[None, None, :, None]
        return encoding.counts(q, k)[0, 0, 0].round(decimals=4)

    tokens, sentences = counted(torch.ones_like(stops)), counted(stops)
    z = torch.stack([sentences, tokens]).flip(-1).numpy()
    rows = _reading(
        [
            ("gate", 150, lambda n, x, y: _dot(bool(stops[n]), x, y)),
            (
                "full stops",
                215,
                lambda n, x, y: word(x, y, f"{sentences[n]:g}", ' class="mid ink" font-weight="700"'),
            ),
            ("all open", 282, lambda n, x, y: word(x, y, f"{tokens[n]:g}", ' class="mid"')),
        ]
    )
    return Idea(
        {
            f"Positions, counted back from “{STORY[-1]}”": drawing(330, rows),
            "By distance: a step at each full stop": lines(z, ["full stops", "all open"]),
        },
        "A position is the sum of the gates from the key to the query; here each is open or shut.",
        f"A table beside lines: the words of “{' '.join(STORY)}” with their gates, and their positions as "
        "the last word counts them: by words up to 10, by full stops up to 2.",
    )


def forgetting() -> Idea:
    """What is left of each key: by gates that full stops close, and by the same gate everywhere."""
    encoding, stops = Forgetting(1, 1, std=0), torch.tensor([each == "." for each in STORY])

    def kept(f: Tensor) -> tuple[Tensor, Tensor]:
        k = f.logit()[None, None, :, None]
        with torch.no_grad():
            encoding.w.fill_(1.0)
            return encoding.log_gates(k)[0, 0].exp(), (
                encoding.content_bias(k, k)[0, 0, -1] * encoding.scale
            ).exp()

    gates, left = kept(torch.where(stops, 0.3, 0.97))
    _same, even = kept(torch.full((len(STORY),), float(left[0]) ** (1 / (len(STORY) - 1))))

    def bar(n: int, x: float, y: float) -> str:
        share = float(left[n])
        return (
            f'<rect x="{x - 60}" y="{y - 6:.4g}" width="{75 * share:.3g}" height="12" class="colour"/>'
            + word(x + 60, y, f"{100 * share:.0f} %", ' class="end ink"')
        )

    rows = _reading(
        [
            ("gate f", 150, lambda n, x, y: word(x, y, f"{gates[n]:.2f}", ' class="mid"')),
            ("what is kept", 250, bar),
        ]
    )
    z = 100 * torch.stack([left, even]).flip(-1).numpy()
    return Idea(
        {
            f"What “{STORY[-1]}” keeps of each key": drawing(330, rows),
            "In %, by distance: a fall at each full stop": lines(z, ["by word", "same gate"]),
        },
        "A key is kept by the product of all gates after it, the query's own included; here those of full "
        "stops close.",
        f"A table beside lines: the words of “{' '.join(STORY)}”, their gates, and how much of each the "
        "last word keeps: a step down at each full stop, beside a smooth fall for a gate that is the same "
        "everywhere.",
    )


# ---- distances ----
def fire() -> Idea:
    """One head from three places: over the distance three curves, over its share of the text one."""
    encoding = FIRE(1, hidden=2, L=1)
    places, steps = (12, 24, 48), torch.linspace(0, 1, 49)
    with torch.no_grad():
        encoding.W_1.weight.copy_(torch.tensor([[-2.0], [-1.0]]))
        encoding.W_1.bias.copy_(torch.tensor([1.0, 1.0]))
        encoding.W_2.weight.copy_(torch.tensor([[1.0, 1.0]]))
        c = encoding.c.abs()
        z, back, share = [], [], []
        for i in places:
            distance = torch.expm1(steps * torch.log1p(c * i)) / c  # even steps of ψ
            its = encoding.bias(torch.tensor([float(i)]), i - distance)[0, 0]
            z.append(its)
            back.append(distance)
            share.append(torch.log1p(c * distance) / torch.log1p(c * i))
    names, seen = [f"query {i}" for i in places], torch.stack(z).numpy()
    over_distance, over_share = torch.stack(back).numpy(), torch.stack(share).numpy()
    return Idea(
        {
            "By distance: three curves": lines(seen, names, over_distance, marks=(0, *places)),
            "By share of the way back: one": lines(
                seen, names, over_share, "share of the way back, on a logarithmic scale", (0, 0.5, 1)
            ),
        },
        "What is added to the scores of queries at places 12, 24 and 48. The network is given the share; "
        "here its curve bends at a half, and training sets it.",
        "Lines of the bias for queries at 12, 24 and 48: over the distance three curves of one height, each "
        "stretched as far as its text reaches; over the share of the distance they are one line with a bend.",
    )


def kerple() -> Idea:
    """The logarithm of four heads, and beside it the straight line of ALiBi."""
    encoding, near = KERPLE(4), torch.arange(36.0)
    with torch.no_grad():
        encoding.r_1.fill_(1.0)
        encoding.r_2.copy_(torch.tensor([4.0, 1.0, 0.25, 0.0625]))
        heads = encoding.of(near)
    slope = heads[0, 5] / 5
    return Idea(
        {
            "A straight penalty, and one that bends": lines(
                torch.stack([heads[0], near * slope]).numpy(), ["KERPLE", "ALiBi"]
            ),
            "The number r₂ sets each head's bend": lines(heads.numpy()),
        },
        "What is added to a score. Here r₁ = 1, and r₂ is 4, 1, 1/4 and 1/16; training sets both. Five "
        "places back, ALiBi's line costs as much as head 1.",
        "Lines of the bias by distance: that of ALiBi falls straight, that of KERPLE flattens; beside them "
        "four heads, from a steep start to hardly any fall.",
    )


def xpos() -> Idea:
    """One pair of channels: a wave of one height in RoPE, one that sinks to nothing in xPos."""
    p, z = torch.linspace(0, 36, 145), []
    q = torch.tensor([1.0, 0.0]).expand(1, 1, len(p), 2)
    for encoding in (XPos(2, scale_base=16.0), Rotary(2)):
        z.append(scores(q, q, encoding, p, p)[0, 0, -1].flip(0).detach())
    ends = [float(z[1].min()), float(z[1].max())]
    marks = (0, 12, 24, 36)
    drawn = [
        lines(each[None].numpy(), [name], p.numpy(), marks=marks, ends=ends)
        for each, name in zip(z, ("xPos", "RoPE"), strict=True)
    ]
    return Idea(
        {"RoPE: a wave of one height": drawn[1], "xPos: the same wave fades": drawn[0]},
        "A query's score with the same word at each distance, from one pair of channels. xPos is drawn with "
        "16 in place of 512, so that it fades within the picture.",
        "Lines of scores by distance for one pair of channels: in RoPE a wave of one height, in xPos the "
        "same wave, which sinks to nothing.",
    )


def lerope() -> Idea:
    """The speeds of the pairs before and after, and a score with both."""
    encoding, alpha = LeRoPE(8), (-0.6, -0.6, 0.6, 0.6)
    plain, x, p = Rotary(8), torch.ones(1, 1, 36, 8), torch.arange(36)
    with torch.no_grad():
        encoding.alpha.copy_(torch.tensor(alpha))
        z = torch.stack([scores(x, x, its, p, p)[0, 0, -1].flip(0) for its in (encoding, plain)])
        before, after = plain.frequencies.theta().log10(), encoding.theta().log10()
    low, wide, high, inside = -3.6, 270, SIDE / len(alpha), ""

    def along(speed: float) -> float:
        return LEFT + wide * (speed - low) / (0.2 - low)

    for power in range(-3, 1):
        inside += f'<path d="M{along(power):.4g} {TOP}v{SIDE}" class="rule"/>'
        inside += word(along(power), TOP + SIDE + 14, f"{10.0**power:g}", ' class="mid"')
    for t, (old, new) in enumerate(zip(before.tolist(), after.tolist(), strict=True)):
        y = TOP + high * (t + 0.5)
        inside += word(LEFT - 7, y, str(t), ' class="end"')
        inside += f'<path d="M{along(old):.4g} {y:.4g}H{along(new):.4g}" class="hand"/>'
        inside += f'<circle cx="{along(old):.4g}" cy="{y:.4g}" r="7" class="start"/>' + _dot(
            True, along(new), y
        )
    inside += word(LEFT + wide / 2, TOP + SIDE + 31, "turn for each place, in radians", ' class="mid"')
    inside += word(-TOP - SIDE / 2, 9, "pair", ' class="mid" transform="rotate(-90)"')
    return Idea(
        {
            "Speeds of four pairs: ○ RoPE, ● learned": drawing(NARROW, inside),
            "A score by distance, with equal tokens": lines(z.numpy(), ["learned", "RoPE"]),
        },
        "Each pair starts at its speed in RoPE and is changed by a factor of its own. Here fast pairs are "
        "slowed and slow ones sped up, by 1.8; training sets the factors.",
        "Dots beside lines: four pairs whose speeds move from those of RoPE, and the score of equal "
        "tokens by distance before and after.",
    )


def pope() -> Idea:
    """One pair and two words: in RoPE a word moves the wave, in PoPE it sets its height."""
    p = torch.linspace(0, 24, 97)
    words = {"word A": (2.0, 0.5), "word B": (-0.5, 1.0)}
    found = {}
    with torch.no_grad():
        for name, encoding, take in (("RoPE", Rotary(2), 2), ("PoPE", PoPE(1, 1), 1)):
            z = []
            for k in words.values():
                q = torch.tensor([1.0, 0.0][:take]).expand(1, 1, len(p), take)
                keys = torch.tensor(k[:take]).expand(1, 1, len(p), take)
                z.append(scores(q, keys, encoding, p, p)[0, 0, -1].flip(0))
            found[name] = torch.stack(z).numpy()
    ends = [float(z.min()) for z in found.values()] + [float(z.max()) for z in found.values()]
    found = {
        name: lines(z, list(words), p.numpy(), marks=(0, 6, 12, 18, 24), ends=ends)
        for name, z in found.items()
    }
    return Idea(
        {"RoPE: a word moves the wave": found["RoPE"], "PoPE: a word sets its height": found["PoPE"]},
        "One query meets two words at each distance. In RoPE a word decides where its crests lie; in PoPE "
        "they lie at the same distances for all words.",
        "Lines of scores by distance for two words: in RoPE the crests lie at different distances, in "
        "PoPE at the same ones, and one wave is higher.",
    )


IDEAS: dict[str, Callable[[], Idea]] = {
    "swin": swin,
    "two-axes": two_axes,
    "fusion": fusion,
    "tupe": tupe,
    "shaw": shaw,
    "deberta": deberta,
    "query-bias": query_bias,
    "cope": cope,
    "forgetting": forgetting,
    "fire": fire,
    "kerple": kerple,
    "xpos": xpos,
    "lerope": lerope,
    "pope": pope,
}
"""By the name of a page."""
