"""The turns of notebook 07: how a key fades, the slopes, the window of a head, two sides for an encoder."""

from __future__ import annotations

import math

import torch

from ...checks.question import Case, Draw, Question, Wrong

LINE = '07, section "One line"'
SLOPES = '07, section "The slopes"'
HORIZON = '07, section "How far does a head see?"'
SIDES = '07, section "An encoder sees both sides"'


# ---- fade ----
def fade(m, distance):
    """The weight of keys this far back, as a share of the weight of the query's own key."""
    return torch.exp(-m * distance)


def _fade_cases(draw: Draw) -> list[Case]:
    near = torch.arange(6, dtype=torch.float64)
    return [
        Case((0.5, near), "m = 1/2, the six nearest keys"),
        Case((draw.number(0.05, 0.4), near + draw.integer(1, 9)), "another slope, keys farther back"),
        Case((1 / 256, near * draw.integer(20, 60)), "m = 1/256, keys far apart"),
    ]


FADE = Question(
    name="fade",
    exercise="07",
    title="How much a key fades with its distance.",
    returns="a tensor of the shape of distance",
    section=LINE,
    draw=_fade_cases,
    reference=fade,
    picture="lines",
    wrong=(
        Wrong(
            "the bias itself",
            lambda m, x: -m * x,
            "That is the bias, which is added to the score. What does the softmax make of a score that is "
            "lower by so much?",
        ),
        Wrong(
            "one minus the penalty",
            lambda m, x: 1 - m * x,
            "You have taken the penalty off the weight. It comes off the score, before the softmax; with "
            "yours, far keys get negative weights.",
        ),
        Wrong(
            "sign turned",
            lambda m, x: torch.exp(m * x),
            "Your keys get stronger with the distance. The bias is negative.",
        ),
        Wrong("powers of two", lambda m, x: 2.0 ** (-m * x), "The softmax takes powers of e, not of 2."),
        Wrong(
            "power without the distance",
            lambda m, x: math.exp(-m) + 0 * x,
            "That is the step from one key to the next, the same for all keys. A key that is five back has "
            "lost five such steps.",
        ),
        Wrong(
            "divided by the sum",
            lambda m, x: torch.softmax(-m * x, -1),
            "These weights add up to 1. Asked for is each weight beside that of the query's own key, whose "
            "distance is 0: at distance 0 the answer is 1.",
        ),
        Wrong(
            "hyperbola",
            lambda m, x: 1 / (1 + m * x),
            "This falls, but too slowly: each step back should cost the same factor.",
        ),
    ),
    hints=(
        "By how much is the score of a key lower than that of the query's own key, if only the bias counts?",
        "A softmax turns differences of scores into ratios of weights: two scores that differ by x give "
        "weights with the ratio e to the x.",
        "torch.exp, of the bias at this distance. Mind the minus sign.",
    ),
)


# ---- geometric ----
def geometric(n):
    """The slopes of n heads, a tensor [n], for n = 2, 4, 8, 16, …"""
    return 2.0 ** (-8 * torch.arange(1, n + 1) / n)


def _geometric_cases(draw: Draw) -> list[Case]:
    return [
        Case((8,), "8 heads"),
        Case((draw.choice([2, 4]),), "fewer heads"),
        Case((16,), "16 heads"),
        Case((draw.choice([32, 64]),), "many heads"),
    ]


def _powers(of):
    """Powers of two, or of another base, with an exponent for each head 1 … n."""
    return lambda n: of(torch.arange(1, n + 1).double(), n)


GEOMETRIC = Question(
    name="geometric",
    exercise="07",
    title="The slopes of n heads, for a power of two.",
    returns="a tensor of shape [n]",
    section=SLOPES,
    draw=_geometric_cases,
    reference=geometric,
    tolerance=(1e-4, 1e-7),
    wrong=(
        Wrong(
            "halved from head to head",
            _powers(lambda h, n: 2.0**-h),
            "You halve from head to head. With 8 heads that ends at 1/256, with others it does not: the "
            "factor depends on how many steps there are.",
        ),
        Wrong(
            "starts at 1",
            _powers(lambda h, n: 2.0 ** (-8 * (h - 1) / n)),
            "Your first slope is 1, and the last one has not come down to 1/256 yet: you count the steps "
            "from 0.",
        ),
        Wrong(
            "from 1 to 1/256",
            _powers(lambda h, n: 2.0 ** (-8 * (h - 1) / max(n - 1, 1))),
            "The last slope is right, but yours begin at 1. The first slope is already one step down.",
        ),
        Wrong(
            "equal steps",
            lambda n: torch.linspace(1 / 2, 1 / 256, n),
            "Your slopes go down by equal differences. Wanted are equal factors.",
        ),
        Wrong(
            "steepest last",
            _powers(lambda h, n: 2.0 ** (-8 * (n + 1 - h) / n)),
            "These are the right numbers in the wrong order: the steepest head comes first.",
        ),
        Wrong(
            "powers of e",
            _powers(lambda h, n: torch.exp(-8 * h / n)),
            "The last of your slopes is e to the −8. 1/256 is 2 to the −8.",
        ),
        Wrong(
            "n and 8 swapped",
            _powers(lambda h, n: 2.0 ** (-n * h / 8)),
            "With 8 heads this is right. With more heads your factors get smaller, though there are more "
            "steps on the same way.",
        ),
    ),
    hints=(
        "There are n equal factors between 1 and 1/256. How large is one?",
        "1/256 is 2 to the −8. One step of n takes the n-th part of that exponent, head h has made h steps.",
        "2.0 ** (…), with torch.arange(1, n + 1) in the exponent.",
    ),
)


# ---- window ----
def window(m, n):
    """How many keys a text of n tokens seems to have for a head with slope m: all fades, added up."""
    return fade(m, torch.arange(n)).sum()


def _window_cases(draw: Draw) -> list[Case]:
    return [
        Case((0.5, draw.integer(4, 9)), "m = 1/2, a few keys"),
        Case((1 / 16, draw.integer(20, 60)), "m = 1/16"),
        Case((1 / 256, draw.integer(100, 300)), "m = 1/256, a longer text"),
    ]


WINDOW = Question(
    name="window",
    exercise="07",
    title="How many keys a head seems to have.",
    returns="one number",
    section=HORIZON,
    draw=_window_cases,
    reference=window,
    wrong=(
        Wrong(
            "own key left out",
            lambda m, n: fade(m, torch.arange(1, n)).sum(),
            "Your keys begin at distance 1. The query's own key, at distance 0, counts, too, and in full.",
        ),
        Wrong(
            "own key left out, one more behind",
            lambda m, n: fade(m, torch.arange(1, n + 1)).sum(),
            "Your distances run from 1 to n. The nearest key is the query's own, at distance 0.",
        ),
        Wrong(
            "one key too many",
            lambda m, n: fade(m, torch.arange(n + 1)).sum(),
            "You have added n + 1 keys. The farthest of n keys is n − 1 back.",
        ),
        Wrong(
            "mean instead of sum",
            lambda m, n: fade(m, torch.arange(n)).mean(),
            "You have taken the mean. Asked for is how many full keys all of them together make.",
        ),
        Wrong(
            "not faded",
            lambda m, n: torch.tensor(float(n)),
            "You count every key in full. A key far back counts only as much as it has left.",
        ),
        Wrong(
            "an endless text",
            lambda m, n: torch.tensor(1 / (1 - math.exp(-m))),
            "That is the sum for a text that never ends. This one has n keys.",
        ),
        Wrong(
            "distances added",
            lambda m, n: (-m * torch.arange(n)).sum(),
            "You have added up the penalties. Add up what is left of each key.",
        ),
        Wrong(
            "every key kept apart",
            lambda m, n: fade(m, torch.arange(n)),
            "That is what is left of each key, n numbers. Put them together into one.",
        ),
    ),
    hints=(
        "A key that has faded to 0.6 counts as 0.6 of a key. Add up all n of them.",
        "The distances are 0, 1, … n − 1, and your function fade takes them all at once.",
        "fade of torch.arange(n), and its sum.",
    ),
)


# ---- two_sides ----
def two_sides(r, behind, ahead):
    """The bias of keys at offsets r = k − q: the slope is ``behind`` for r < 0, and ``ahead`` for r > 0."""
    return torch.where(r < 0, behind * r, -ahead * r)


def _two_sides_cases(draw: Draw) -> list[Case]:
    def slopes():
        return draw.number(0.2, 0.9), draw.number(0.01, 0.15)

    n = draw.integer(3, 6)
    row = torch.arange(-n, n + 1, dtype=torch.float64)
    table = torch.arange(5) - torch.arange(5)[:, None]
    return [
        Case((row, *slopes()), f"offsets from −{n} to {n}"),
        Case((table.double(), *slopes()), "all offsets of 5 tokens, 5 × 5"),
        Case((row * draw.integer(2, 5), *slopes()[::-1]), "steeper ahead than behind"),
    ]


TWO_SIDES = Question(
    name="two_sides",
    exercise="07",
    title="A bias that tells behind from ahead.",
    returns="a tensor of the shape of r",
    section=SIDES,
    draw=_two_sides_cases,
    reference=two_sides,
    picture="lines",
    wrong=(
        Wrong(
            "one slope for both",
            lambda r, behind, ahead: -behind * r.abs(),
            "Both sides have the same slope, so behind and ahead look alike. `ahead` plays no part.",
        ),
        Wrong(
            "sides swapped",
            lambda r, behind, ahead: torch.where(r < 0, ahead * r, -behind * r),
            "The two slopes have changed sides. The offset is k − q, so a key behind the query has a "
            "negative one.",
        ),
        Wrong(
            "reward ahead",
            lambda r, behind, ahead: torch.where(r < 0, behind * r, ahead * r),
            "Keys ahead get a positive bias, the more the farther they are. They should lose, too.",
        ),
        Wrong(
            "reward behind",
            lambda r, behind, ahead: torch.where(r < 0, -behind * r, -ahead * r),
            "Keys behind get a positive bias: their offset is negative already, and minus times minus is "
            "plus.",
        ),
        Wrong(
            "both rewarded",
            lambda r, behind, ahead: torch.where(r < 0, -behind * r, ahead * r),
            "All your biases are positive: what is far is rewarded on both sides. None should be above 0.",
        ),
        Wrong(
            "both slopes added",
            lambda r, behind, ahead: -(behind + ahead) * r.abs(),
            "Every key pays both slopes, so the two sides are alike again. Each side has one of its own.",
        ),
        Wrong(
            "ahead hidden",
            lambda r, behind, ahead: torch.where(r > 0, -math.inf, behind * r),
            "You hide what is ahead. This is an encoder: it sees both sides, only not equally well.",
        ),
    ),
    hints=(
        "Draw the row of one query: 0 at its own place, and a line that falls to each side.",
        "torch.where(condition, a, b) takes a where the condition is true, and b elsewhere.",
        "The condition is r < 0. There r is negative already, so one of the two lines needs no minus sign.",
    ),
)

QUESTIONS = (FADE, GEOMETRIC, WINDOW, TWO_SIDES)
