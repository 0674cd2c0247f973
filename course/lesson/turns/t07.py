"""The turns of notebook 07: how a key fades, and the biases of all heads."""

from __future__ import annotations

import math

import torch

from ...checks.question import Case, Draw, Question, Wrong

LINE = '07, section "One line"'
BUILD = '07, section "Build: ALiBi"'


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


# ---- alibi ----
def alibi(n_heads, n):
    """The biases of all heads [n_heads, n, n], query first. n_heads is a power of two."""
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    back = torch.arange(n)[:, None] - torch.arange(n)
    return -slopes[:, None, None] * back


def _slopes(n_heads):
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)


def _back(n):
    """How far each key is behind each query: 0 on the diagonal."""
    return torch.arange(n)[:, None] - torch.arange(n)


def _bias(n_heads, n, slopes=_slopes, of=lambda back: -back):
    return slopes(n_heads)[:, None, None] * of(_back(n))


def _slopes_of(exponent, base=2.0):
    """The biases with other slopes: a base to an exponent for each head 1 … H."""
    return lambda H, n: _bias(H, n, lambda H: base ** exponent(torch.arange(1, H + 1), H))


def _seen(bias, case):
    """What a causal softmax sees: no keys ahead, and nothing that is the same for all keys of a query."""
    bias = bias.masked_fill(_back(bias.shape[-1]) < 0, -math.inf)
    return bias - bias.amax(-1, keepdim=True)


def _alibi_cases(draw: Draw) -> list[Case]:
    return [
        Case((8, draw.integer(5, 7)), "8 heads, a few tokens"),
        Case((draw.choice([2, 4]), draw.integer(8, 10)), "fewer heads"),
        Case((16, 4), "16 heads"),
    ]


ALIBI = Question(
    name="alibi",
    exercise="07",
    title="ALiBi: what is added to the scores, for all heads.",
    returns="a tensor [n_heads, n, n]",
    section=BUILD,
    draw=_alibi_cases,
    reference=alibi,
    same=_seen,
    equivalent="Your biases differ from −m·(i − j) by a number for each query at most, apart from keys "
    "ahead. A causal softmax sees neither.",
    tolerance=(1e-4, 1e-7),
    picture="heat",
    wrong=(
        Wrong(
            "sign turned",
            lambda H, n: _bias(H, n, of=lambda back: back),
            "Your bias grows with the distance, so that the oldest key gets the most. What is far should "
            "lose.",
        ),
        Wrong(
            "weights",
            lambda H, n: _bias(H, n).exp(),
            "You have taken e to the bias. The softmax does that; what is added to the score is asked for.",
        ),
        Wrong(
            "one slope for all heads",
            lambda H, n: _bias(H, n, lambda H: _slopes(H)[:1].expand(H)),
            "All your heads have the same slope. From head to head, it shrinks.",
        ),
        Wrong(
            "halved from head to head",
            _slopes_of(lambda h, H: -h),
            "You halve from head to head. With 8 heads that ends at 1/256, with others it does not: the "
            "factor depends on how many steps there are.",
        ),
        Wrong(
            "starts at 1",
            _slopes_of(lambda h, H: -8 * (h - 1) / H),
            "Your first slope is 1, and the last one has not come down to 1/256 yet: you count the steps "
            "from 0.",
        ),
        Wrong(
            "from 1 to 1/256",
            _slopes_of(lambda h, H: -8 * (h - 1) / (H - 1)),
            "The last slope is right, but yours begin at 1. The first slope is already one step down.",
        ),
        Wrong(
            "equal steps",
            lambda H, n: _bias(H, n, lambda H: torch.linspace(2 ** (-8 / H), 1 / 256, H)),
            "Your slopes go down by equal differences. Wanted are equal factors.",
        ),
        Wrong(
            "steepest last",
            lambda H, n: _bias(H, n).flip(0),
            "These are the right numbers in the wrong order: the steepest head comes first.",
        ),
        Wrong(
            "powers of e",
            _slopes_of(lambda h, H: -8 * h / H, math.e),
            "The last of your slopes is e to the −8. 1/256 is 2 to the −8.",
        ),
        Wrong(
            "n_heads and 8 swapped",
            _slopes_of(lambda h, H: -H * h / 8),
            "With 8 heads this is right. With more heads your factors get smaller, though there are more "
            "steps on the same way.",
        ),
        Wrong(
            "distances without slopes",
            lambda H, n: _bias(H, n, lambda H: torch.ones(H)),
            "Each head loses 1 for each token of distance. The slopes are missing.",
        ),
    ),
    hints=(
        "Two parts: a slope for each head, and how far each key is behind each query. The bias is their "
        "product, with a minus sign.",
        "There are n_heads equal factors between 1 and 1/256, which is 2 to the −8. Head h has made h such "
        "steps. Distances: torch.arange(n), once as a column and once as a row.",
        "m = 2.0 ** (…), with torch.arange(1, n_heads + 1) in the exponent. Then -m[:, None, None] * "
        "distances.",
    ),
)

QUESTIONS = (FADE, ALIBI)
