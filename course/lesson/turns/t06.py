"""The turns of notebook 06: one pair, RoPE; of its side quest: a sign, two layouts, a repair, numbers for a
cache."""

from __future__ import annotations

import math

import torch

from ...checks.question import Case, Draw, Question, Wrong

PAIR = '06, section "One pair, by hand"'
BUILD = '06, section "Build: RoPE"'
SIGNS = 'deeper/06_bugs, section "Signs"'
LAYOUTS = 'deeper/06_bugs, section "Which channels make a pair"'
CACHES = 'deeper/06_bugs, section "Caches and decoding"'


# ---- turn ----
def turn(pair, angle):
    """The pair (a, b), turned counter-clockwise by an angle in radians; each may be a tensor."""
    a, b = pair
    new_a = a * torch.cos(angle) - b * torch.sin(angle)
    new_b = a * torch.sin(angle) + b * torch.cos(angle)
    return new_a, new_b


def _pair(draw: Draw, *shape: int):
    return draw.normal(*shape, dtype=torch.float64), draw.normal(*shape, dtype=torch.float64)


def _angle(draw: Draw, low: float, high: float):
    return torch.tensor(draw.number(low, high), dtype=torch.float64)


def _turn_cases(draw: Draw) -> list[Case]:
    return [
        Case((_pair(draw), _angle(draw, 0.3, 1.2)), "one arrow, a small turn"),
        Case((_pair(draw, 4), _angle(draw, 1.8, 2.9)), "four arrows, a large turn"),
        Case(
            (_pair(draw, 5), -draw.uniform(5, low=0.4, high=1.4, dtype=torch.float64)),
            "five arrows, each turned back by an angle of its own",
        ),
    ]


def _mixed(first, second):
    """``first`` and ``second`` take a, b, the cosine and the sine."""

    def answer(pair, angle):
        given = *pair, torch.cos(angle), torch.sin(angle)
        return first(*given), second(*given)

    return answer


def _first(a, b, cos, sin):
    return a * cos - b * sin


def _second(a, b, cos, sin):
    return a * sin + b * cos


TURN = Question(
    name="turn",
    exercise="06",
    title="One pair, turned by an angle.",
    returns="two numbers or two tensors: the new a and the new b",
    section=PAIR,
    draw=_turn_cases,
    reference=turn,
    wrong=(
        Wrong(
            "clockwise",
            _mixed(lambda a, b, cos, sin: a * cos + b * sin, lambda a, b, cos, sin: b * cos - a * sin),
            "Your arrows turn clockwise. Try (1, 0) and a small angle: the arrow should rise.",
        ),
        Wrong(
            "no minus sign",
            _mixed(lambda a, b, cos, sin: a * cos + b * sin, _second),
            "The new b is right. The new a is not: (0, 1) leans to the left when it turns "
            "counter-clockwise, and yours leans to the right, so lengths change.",
        ),
        Wrong(
            "both differences",
            _mixed(_first, lambda a, b, cos, sin: a * sin - b * cos),
            "The new a is right. The new b changes its sign even when the angle is 0: that is a mirror.",
        ),
        Wrong(
            "the new a is used at once",
            _mixed(_first, lambda a, b, cos, sin: _first(a, b, cos, sin) * sin + b * cos),
            "The new b is made from the new a. It needs the old one, so keep that under another name.",
        ),
        Wrong(
            "radians taken for degrees",
            lambda pair, angle: turn(pair, angle * math.pi / 180),
            "The angle is in radians already; you have converted it once more, and hardly anything turns.",
        ),
        Wrong(
            "rows and columns exchanged",
            _mixed(_second, _first),
            "Both numbers are there, but in the wrong order: a, the way to the right, comes first.",
        ),
        Wrong(
            "only stretched",
            _mixed(lambda a, b, cos, sin: a * cos, lambda a, b, cos, sin: b * sin),
            "Each number has only been multiplied. In a turn, each new number takes something of both.",
        ),
    ),
    hints=(
        "The arrow (a, b) is a times (1, 0) plus b times (0, 1). Both of these have been turned for you.",
        "Collect what goes to the right (the first numbers) and what goes up (the second numbers).",
        "Two lines under new names, each with two products; torch.cos and torch.sin take the angle. One of "
        "the four products has a minus.",
    ),
)


# ---- rope ----
def rope(x, positions, theta):
    """Turn x [B, H, L, d]; channels 2t, 2t + 1 are pair t. positions: [L], theta: [d/2], per position."""
    angles = positions[:, None] * theta
    a, b = turn((x[..., 0::2], x[..., 1::2]), angles)
    return torch.stack([a, b], -1).flatten(-2)


def _rope_cases(draw: Draw) -> list[Case]:
    def case(B, H, L, d, first, what):
        theta = draw.uniform(d // 2, low=0.2, high=1.4, dtype=torch.float64)
        return Case((draw.normal(B, H, L, d, dtype=torch.float64), first + torch.arange(L), theta), what)

    return [
        case(1, 1, 3, 4, 0, "two pairs, from place 0"),
        case(2, 3, 4, 6, draw.integer(5, 30), "two texts, three heads, later places"),
        case(1, 2, 1, 8, draw.integer(40, 90), "one new token"),
        case(2, 2, 4, 8, 2, "as many pairs as tokens"),
    ]


def _roped(
    angles=lambda x, positions, theta: positions[:, None] * theta,
    split=lambda x: (x[..., 0::2], x[..., 1::2]),
    turned=turn,
    join=lambda a, b: torch.stack([a, b], -1).flatten(-2),
):
    """RoPE in parts, each of which can be replaced."""
    return lambda x, positions, theta: join(*turned(split(x), angles(x, positions, theta)))


def _halves(x):
    return x.chunk(2, -1)


def _in_a_row(a, b):
    return torch.cat([a, b], -1)


ROPE = Question(
    name="rope",
    exercise="06",
    title="RoPE, for all heads and tokens of a batch.",
    returns="a tensor of the shape of x",
    section=BUILD,
    draw=_rope_cases,
    reference=rope,
    wrong=(
        Wrong(
            "halves",
            _roped(split=_halves, join=_in_a_row),
            "You pair channel t with channel t + d/2. That is RoPE, too, and you will meet it; here "
            "neighbours are a pair.",
        ),
        Wrong(
            "in a row",
            _roped(join=_in_a_row),
            "Everything is turned as it should be, but then all first channels come first, and all second "
            "ones after them. Each channel must go back to its place.",
        ),
        Wrong(
            "rows counted",
            _roped(angles=lambda x, positions, theta: torch.arange(len(positions))[:, None] * theta),
            "You count rows from 0 and don't look at positions. The text begins anywhere, and one new token "
            "is always row 0.",
        ),
        Wrong(
            "backwards",
            _roped(angles=lambda x, positions, theta: -positions[:, None] * theta),
            "Your pairs turn clockwise. A model can be trained with that, too, but the others turn the other "
            "way.",
        ),
        Wrong(
            "one step for all",
            _roped(angles=lambda x, positions, theta: theta.expand(len(positions), -1)),
            "Every token is turned by one step, wherever it stands. The angle is position times theta.",
        ),
        Wrong(
            "one speed for all pairs",
            _roped(angles=lambda x, positions, theta: positions[:, None] * theta[0].expand(len(theta))),
            "All pairs turn at the speed of pair 0. Each has its own theta.",
        ),
        Wrong(
            "speeds turned round",
            _roped(angles=lambda x, positions, theta: positions[:, None] * theta.flip(0)),
            "The first pair turns at the speed of the last one. Pair t turns at theta[t].",
        ),
        Wrong(
            "position and step added",
            _roped(angles=lambda x, positions, theta: positions[:, None] + theta),
            "You have added position and theta. A hand that moves theta at each step has moved position "
            "times theta.",
        ),
        Wrong(
            "both differences",
            _roped(turned=lambda pair, f: (turn(pair, f)[0], -turn(pair, -f)[1])),
            "The first channel of each pair is right. The second one changes its sign even at position 0.",
        ),
        Wrong(
            "no minus sign",
            _roped(turned=lambda pair, f: (turn(pair, -f)[0], turn(pair, f)[1])),
            "The second channel of each pair is right. In the first one a minus is missing, so lengths "
            "change.",
        ),
        Wrong(
            "only stretched",
            _roped(turned=lambda pair, f: (pair[0] * torch.cos(f), pair[1] * torch.sin(f))),
            "Each channel has only been multiplied. In a turn, each takes something of both.",
        ),
        Wrong(
            "heads by heads",
            lambda x, positions, theta: _roped(
                angles=lambda x, positions, theta: torch.arange(x.shape[1])[:, None, None] * theta
            )(x, positions, theta),
            "You turn each head by its own number. All heads turn alike; the third axis of x is the tokens.",
        ),
        Wrong(
            "nothing turned",
            lambda x, positions, theta: x,
            "That is x as it came. Nothing has been turned.",
        ),
    ),
    hints=(
        "Three steps: an angle for each token and pair, [L, d/2]; your turn, on all pairs at once; and every "
        "channel back to its place.",
        "positions[:, None] * theta are the angles. x[:, :, :, 0::2] has the first channels of all pairs, "
        "[B, H, L, d/2], so your turn fits by broadcasting.",
        "To put two tensors [B, H, L, d/2] together like a zip: torch.stack([a, b], -1) has one more axis, "
        "of length 2, and .flatten(-2) makes one axis of the last two.",
    ),
)


# ---- score ----
def score(q, k, r, theta):
    """q · k when the key stands r positions after its query; r may be a tensor."""
    a, b = turn(k, r * theta)
    return q[0] * a + q[1] * b


def _score_cases(draw: Draw) -> list[Case]:
    offsets = torch.arange(-3, 4, dtype=torch.float64)
    return [
        Case(
            (
                _pair(draw),
                _pair(draw),
                torch.tensor(-2.0 - draw.integer(0, 3), dtype=torch.float64),
                draw.number(0.3, 0.6),
            ),
            "a key in the past",
        ),
        Case(
            (
                _pair(draw),
                _pair(draw),
                torch.tensor(1.0 + draw.integer(0, 3), dtype=torch.float64),
                draw.number(0.3, 0.6),
            ),
            "a key ahead",
        ),
        Case((_pair(draw), _pair(draw), offsets, draw.number(0.2, 0.5)), "offsets of both signs"),
    ]


def _dot(q, k):
    return q[0] * k[0] + q[1] * k[1]


SCORE = Question(
    name="score",
    exercise="06",
    title="The score of a query and a key, from their offset alone.",
    returns="a number, or a tensor of the shape of r",
    section=SIGNS,
    draw=_score_cases,
    reference=score,
    picture="lines",
    wrong=(
        Wrong(
            "the other sign",
            lambda q, k, r, theta: score(q, k, -r, theta),
            "The sign is the other one: you give the key before the query the score of the key after it. "
            "Put the query at 0; by how much has the key turned, and in which direction?",
        ),
        Wrong(
            "both turned, or none",
            lambda q, k, r, theta: _dot(turn(q, r * theta), turn(k, r * theta)),
            "This is the score at offset 0, whatever r is: you have turned neither of the two, or both by "
            "the same angle, which leaves the angle between them as it was.",
        ),
        Wrong(
            "one step",
            lambda q, k, r, theta: _dot(q, turn(k, torch.as_tensor(theta))) + 0 * r,
            "The key is turned by a single step. It stands r steps away.",
        ),
        Wrong(
            "theta forgotten",
            lambda q, k, r, theta: score(q, k, r, 1.0),
            "You turn the key by r radians. Each step turns it by theta.",
        ),
        Wrong(
            "times a cosine",
            lambda q, k, r, theta: _dot(q, k) * torch.cos(r * theta),
            "A factor cos(rθ) is right when q and k point the same way. In general, where the key points "
            "before it turns matters, too.",
        ),
        Wrong(
            "both turned apart",
            lambda q, k, r, theta: _dot(turn(q, -r * theta), turn(k, r * theta)),
            "You turn the key forwards and the query back, by r steps each: that makes 2r steps between "
            "them. Leave one of the two where it is.",
        ),
        Wrong(
            "product of the sizes",
            lambda q, k, r, theta: _dot(q, q) ** 0.5 * _dot(k, k) ** 0.5 * torch.cos(r * theta),
            "|q| |k| cos(rθ) is right when q and k point the same way before they turn. In general, the "
            "angle that is between them already matters, too.",
        ),
        Wrong(
            "not added up",
            lambda q, k, r, theta: torch.stack(
                [x * y + 0.0 * r for x, y in zip(q, turn(k, r * theta), strict=True)]
            ),
            "First with first, second with second: that is right so far. A dot product adds the two.",
        ),
        Wrong(
            "crossed",
            lambda q, k, r, theta: q[0] * turn(k, r * theta)[1] + q[1] * turn(k, r * theta)[0],
            "The key is turned as it should be, but then first meets second. In a dot product first meets "
            "first.",
        ),
        Wrong(
            "the turned key itself",
            lambda q, k, r, theta: sum(turn(k, r * theta)) + 0 * q[0],
            "The query plays no part in this. A score is a dot product of the two.",
        ),
    ),
    hints=(
        "Only the offset counts, so you may put the query wherever it is easiest.",
        "Put the query at 0, where nothing is turned. Then the key stands at position r.",
        "Turn the key with your turn, by r times theta; then multiply first with first, second with second, "
        "and add.",
    ),
)


# ---- partners ----
def partners(t, d, layout):
    """The two channels of pair t in a head of d channels; layout is "interleaved" or "half"."""
    if layout == "interleaved":
        return 2 * t, 2 * t + 1
    return t, t + d // 2


def _partners_cases(draw: Draw) -> list[Case]:
    return [
        Case((draw.integer(2, 7), 16, "interleaved"), "interleaved, 16 channels"),
        Case((draw.integer(2, 7), 16, "half"), "half, 16 channels"),
        Case((draw.integer(9, 31), 64, "interleaved"), "interleaved, 64 channels"),
        Case((draw.integer(9, 31), 64, "half"), "half, 64 channels"),
    ]


def _partners(interleaved=lambda t, d: (2 * t, 2 * t + 1), half=lambda t, d: (t, t + d // 2)):
    return lambda t, d, layout: interleaved(t, d) if layout == "interleaved" else half(t, d)


PARTNERS = Question(
    name="partners",
    exercise="06",
    title="Which two channels turn together.",
    returns="two channel numbers",
    section=LAYOUTS,
    exact_dtype=True,
    draw=_partners_cases,
    reference=partners,
    wrong=(
        Wrong(
            "layouts exchanged",
            _partners(lambda t, d: (t, t + d // 2), lambda t, d: (2 * t, 2 * t + 1)),
            "The two layouts have changed places: interleaved pairs are neighbours.",
        ),
        Wrong(
            "always neighbours",
            _partners(half=lambda t, d: (2 * t, 2 * t + 1)),
            "Both layouts give you neighbours. In “half” the second channel stands half a head further.",
        ),
        Wrong(
            "always halves",
            _partners(interleaved=lambda t, d: (t, t + d // 2)),
            "Both layouts give you channels half a head apart. Interleaved pairs are neighbours.",
        ),
        Wrong(
            "pairs that overlap",
            _partners(interleaved=lambda t, d: (t, t + 1)),
            "Your interleaved pairs overlap: channel 1 would be in pair 0 and in pair 1.",
        ),
        Wrong(
            "paired from both ends",
            _partners(half=lambda t, d: (t, d - 1 - t)),
            "In “half” you pair the first channel with the last, the second with the last but one. The "
            "two halves stand in the same order.",
        ),
        Wrong(
            "pairs counted from 1",
            _partners(interleaved=lambda t, d: (2 * t - 1, 2 * t)),
            "Pair 0 would have a channel −1. Pairs and channels are both counted from 0.",
        ),
        Wrong(
            "a fraction",
            _partners(half=lambda t, d: (t, t + d / 2)),
            "In “half” your second channel is a number with a point, and no tensor takes such an index. In "
            "Python / makes a fraction even where nothing is left over; // makes a whole number.",
        ),
        Wrong(
            "d apart",
            _partners(half=lambda t, d: (t, t + d)),
            "In “half” your second channel is outside of the head: it has only d channels.",
        ),
    ),
    hints=(
        "Write down the pairs of a head with 8 channels, for both layouts.",
        "Interleaved: 0 1 | 2 3 | 4 5 | 6 7. Half: the first half of the channels, each with its fellow in "
        "the second half.",
        "An if for the layout; in each case return two numbers that you make from t, and for one of them d.",
    ),
)


# ---- order ----
def order(d):
    """The channels of an interleaved head, in the order in which code for "half" expects them."""
    firsts = [partners(t, d, "interleaved")[0] for t in range(d // 2)]
    seconds = [partners(t, d, "interleaved")[1] for t in range(d // 2)]
    return firsts + seconds


def _order_cases(draw: Draw) -> list[Case]:
    return [
        Case((6,), "a head of 6 channels"),
        Case((2 * draw.integer(4, 7),), "a longer head"),
        Case((64,), "a head of SmolLM2"),
    ]


def _flat(rows):
    return [channel for row in rows for channel in row]


ORDER = Question(
    name="order",
    exercise="06",
    title="The repair: in which order the channels must stand.",
    returns="d numbers: which old channel comes first, which second, and so on",
    section=LAYOUTS,
    draw=_order_cases,
    reference=order,
    picture="lines",
    wrong=(
        Wrong(
            "nothing moved",
            lambda d: list(range(d)),
            "Everything stays where it was: channel 1, the partner of 0, would now be turned with another "
            "one.",
        ),
        Wrong(
            "the way back",
            lambda d: _flat([t, t + d // 2] for t in range(d // 2)),
            "That is the way back: it makes neighbours out of halves. Our weights are interleaved already, "
            "and the code wants halves.",
        ),
        Wrong(
            "second channels first",
            lambda d: order(d)[d // 2 :] + order(d)[: d // 2],
            "The two halves are there, but the second channels come first. Then each pair turns the wrong "
            "way.",
        ),
        Wrong(
            "second half backwards",
            lambda d: order(d)[: d // 2] + order(d)[d // 2 :][::-1],
            "The second half runs backwards, so the fastest pair would get the partner of the slowest.",
        ),
        Wrong(
            "all backwards",
            lambda d: list(range(d))[::-1],
            "You have turned the head around. Neighbours are still neighbours.",
        ),
    ),
    hints=(
        "Code for “half” turns the channel at place t together with the one at place t + d/2. Who belongs "
        "there?",
        "First the first channel of every pair, then the second channel of every pair.",
        'Go through t in range(d // 2) with partners(t, d, "interleaved"), once for [0] and once for [1], '
        "and join the two lists.",
    ),
)


# ---- numbers ----
def numbers(cached, new):
    """The positions of new tokens that come after those in the cache: a tensor [new]."""
    return cached + torch.arange(new)


def _numbers_cases(draw: Draw) -> list[Case]:
    return [
        Case((0, draw.integer(3, 6)), "an empty cache"),
        Case((draw.integer(5, 40), 1), "one new token"),
        Case((draw.integer(50, 90), draw.integer(3, 7)), "several new tokens"),
    ]


NUMBERS = Question(
    name="numbers",
    exercise="06",
    title="Numbers for new tokens, with a cache behind them.",
    returns="an int64 tensor [new]",
    section=CACHES,
    draw=_numbers_cases,
    reference=numbers,
    wrong=(
        Wrong(
            "from 0",
            lambda cached, new: torch.arange(new),
            "The new tokens get the numbers of the very first ones. Those are taken: the first new token "
            "comes after everything in the cache.",
        ),
        Wrong(
            "one too far",
            lambda cached, new: cached + 1 + torch.arange(new),
            "One number is left out: with an empty cache, the first token should get 0.",
        ),
        Wrong(
            "one too early",
            lambda cached, new: cached - 1 + torch.arange(new),
            "The first new token gets the number of the last one in the cache.",
        ),
        Wrong(
            "ends at the number of new tokens",
            lambda cached, new: torch.arange(cached, new),
            "The second number of arange is where it ends, not how many there are: it should end at "
            "cached + new.",
        ),
        Wrong(
            "as many as in the cache",
            lambda cached, new: new + torch.arange(cached),
            "cached and new have changed places: as many numbers as there are new tokens, and they begin "
            "where the cache ends.",
        ),
        Wrong(
            "the whole text",
            lambda cached, new: torch.arange(cached + new),
            "Those are the numbers of the whole text. The tokens in the cache have theirs already.",
        ),
        Wrong(
            "one number for all",
            lambda cached, new: torch.full((new,), cached),
            "All new tokens get the same number, so their order is lost.",
        ),
        Wrong(
            "new tokens counted twice",
            lambda cached, new: cached + new + torch.arange(new),
            "The numbers begin at the length of the whole text, new tokens included.",
        ),
    ),
    hints=(
        "With 9 tokens in the cache, the numbers 0 to 8 are taken.",
        "torch.arange(new) counts the new tokens from 0. Where should it begin?",
        "Add the number of cached tokens.",
    ),
)

QUESTIONS = (TURN, ROPE, SCORE, PARTNERS, ORDER, NUMBERS)
