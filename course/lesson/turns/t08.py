"""The turns of notebook 08: a hand's first new angle, a ramp of speeds."""

from __future__ import annotations

import math

import torch

from ...checks.question import Case, Draw, Question, Variant, Wrong

BREAKS = '08, section "Why raw RoPE breaks"'
BUILD = '08, section "Build: a ramp"'


def _theta(d: int, base: float):
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


# ---- first_new ----
def first_new(theta, new, L):
    """The distance at which each hand first meets an angle it has not seen in training, or math.inf."""
    seen = L * theta
    return torch.where(seen < 2 * math.pi, seen / new, math.inf)


def _first_new_cases(draw: Draw) -> list[Case]:
    cases = []
    for what, d, base, L in (
        ("as trained", 64, 100_000.0, 8192),
        ("all slowed alike", 16, 10_000.0, 128),
        ("each slowed by another factor", 32, 10_000.0, 2048),
    ):
        theta = _theta(d, base)
        slowed = {"as trained": 1.0, "all slowed alike": draw.number(2, 5)}.get(
            what, draw.number(2, 5) ** (torch.arange(d // 2) / (d // 2))
        )
        cases.append(Case((theta, theta / slowed, L), f"{what}: d = {d}, L = {L}"))
    return cases


def _mixed(far, slow=lambda theta, L: L * theta < 2 * math.pi):
    return lambda theta, new, L: torch.where(slow(theta, L), far(theta, new, L), math.inf)


def _distance(theta, new, L):
    return L * theta / new


FIRST_NEW = Question(
    name="first_new",
    exercise="08",
    title="Where each hand meets its first new angle.",
    returns="a tensor of the shape of theta, in tokens",
    section=BREAKS,
    draw=_first_new_cases,
    reference=first_new,
    wrong=(
        Wrong(
            "fast hands, too",
            _distance,
            "A hand that made a full turn in training has seen every angle. It never meets a new one, so "
            "its distance is math.inf.",
        ),
        Wrong(
            "full turn in radians forgotten",
            _mixed(_distance, lambda theta, L: L * theta < 1),
            "You call a hand slow if it goes less than 1 radian. A full turn is 2π.",
        ),
        Wrong(
            "the other hands",
            _mixed(_distance, lambda theta, L: L * theta >= 2 * math.pi),
            "It is the slow hands that run out of known angles. You give a distance to the fast ones.",
        ),
        Wrong(
            "judged by the new speed",
            lambda theta, new, L: torch.where(L * new < 2 * math.pi, L * theta / new, math.inf),
            "Whether a hand has seen all angles was decided in training, at the old speed.",
        ),
        Wrong(
            "speeds exchanged",
            _mixed(lambda theta, new, L: L * new / theta),
            "A slower hand takes longer to leave its arc. With yours it leaves it sooner.",
        ),
        Wrong(
            "the trained length",
            _mixed(lambda theta, new, L: L + 0 * theta),
            "That is right for hands that keep their speed. The new speed must play a part.",
        ),
        Wrong(
            "an angle",
            _mixed(lambda theta, new, L: L * theta),
            "This is the arc known from training, in radians. At which distance does the hand, at its new "
            "speed, come to the end of it?",
        ),
        Wrong(
            "one number for all",
            lambda theta, new, L: first_new(theta, new, L).min(),
            "This is the first of all hands. Give one number for each.",
        ),
    ),
    hints=(
        "In training the hand came as far as L·θ. At its new speed, how many tokens does it need for that?",
        "An angle divided by a speed is a distance. And those that made a full turn, 2π, never leave.",
        "torch.where(condition, distance, math.inf), with L * theta < 2 * math.pi as the condition.",
    ),
)


# ---- ramp ----
def ramp(theta, s, fast, slow):
    """New speeds: as they are up to pair fast, divided by s from pair slow on, and a ramp in between."""
    t = torch.arange(len(theta))
    return theta / s ** ((t - fast) / (slow - fast)).clamp(0, 1)


def _ramp_cases(draw: Draw) -> list[Case]:
    return [
        Case((_theta(64, 100_000.0), draw.number(2, 6), 10, 20), "SmolLM2's pairs, from 10 to 20"),
        Case((_theta(64, 100_000.0), draw.number(2, 6), 0, 31), "from the first pair to the last"),
        Case((_theta(32, 10_000.0), draw.number(2, 6), 6, 7), "16 pairs, a single step from 6 to 7"),
        Case((_theta(16, 10_000.0), draw.number(2, 6), 2, draw.integer(4, 6)), "8 pairs, from 2 on"),
    ]


def _share(theta, fast, slow):
    """How far up the ramp each pair stands, 0 to 1."""
    return ((torch.arange(len(theta)) - fast) / (slow - fast)).clamp(0, 1)


def _ramped(speeds, share=_share):
    return lambda theta, s, fast, slow: speeds(theta, s, share(theta, fast, slow))


def _by_ratio(theta, s, share):
    return theta / s**share


RAMP = Question(
    name="ramp",
    exercise="08",
    title="Speeds with a ramp: fast hands as they are, slow ones divided by s.",
    returns="a tensor of the shape of theta",
    section=BUILD,
    draw=_ramp_cases,
    reference=ramp,
    tolerance=(1e-4, 1e-10),
    picture="lines",
    axes=("pair t", "θ′/θ"),
    drawn=lambda new, case: new / case.args[0],
    wrong=(
        Wrong(
            "all of them",
            lambda theta, s, fast, slow: theta / s,
            "That is position interpolation: the fast hands are slowed, too.",
        ),
        Wrong(
            "a step at slow",
            lambda theta, s, fast, slow: torch.where(torch.arange(len(theta)) >= slow, theta / s, theta),
            "There is a step at the pair `slow`. The hands in between should change little by little.",
        ),
        Wrong(
            "a step after fast",
            lambda theta, s, fast, slow: torch.where(torch.arange(len(theta)) > fast, theta / s, theta),
            "There is a step after the pair `fast`. The hands in between should change little by little.",
        ),
        Wrong(
            "not limited",
            _ramped(_by_ratio, lambda theta, fast, slow: (torch.arange(len(theta)) - fast) / (slow - fast)),
            "The ramp goes on beyond its ends: hands before `fast` turn faster than they did, and those "
            "after `slow` are slowed by more than s. Outside it should be flat.",
        ),
        Wrong(
            "no floor",
            _ramped(
                _by_ratio,
                lambda theta, fast, slow: ((torch.arange(len(theta)) - fast) / (slow - fast)).clamp(max=1),
            ),
            "Hands before `fast` turn faster than they did. They should keep their speed.",
        ),
        Wrong(
            "no ceiling",
            _ramped(
                _by_ratio,
                lambda theta, fast, slow: ((torch.arange(len(theta)) - fast) / (slow - fast)).clamp(min=0),
            ),
            "The ramp goes on after `slow`: the last hands are slowed by more than s.",
        ),
        Wrong(
            "upside down",
            _ramped(lambda theta, s, share: theta / s ** (1 - share)),
            "Your ramp is upside down: the fast hands are slowed by s, and the slow ones keep their speed.",
        ),
        Wrong(
            "faster",
            _ramped(lambda theta, s, share: theta * s**share),
            "The slow hands turn faster now, so they leave known ground even sooner.",
        ),
        Wrong(
            "equal steps of the factor",
            _ramped(lambda theta, s, share: theta / (1 + (s - 1) * share)),
            "The ends are as they should be. In between, your factor grows by the same *amount* from hand to "
            "hand; it should grow by the same ratio.",
        ),
        Wrong(
            "speeds mixed",
            _ramped(lambda theta, s, share: (1 - share) * theta + share * theta / s),
            "The ends are as they should be. In between, you mix old and new speed, which is what YaRN does. "
            "Here each hand is slowed by the same *ratio* more than the one before it.",
        ),
        Wrong(
            "s at every hand",
            lambda theta, s, fast, slow: theta / s ** (torch.arange(len(theta)) - fast).clamp(0, slow - fast),
            "Each hand is s times as slow as the one before it. All the hands of the ramp together should "
            "come to s.",
        ),
        Wrong(
            "from the first to the last",
            lambda theta, s, fast, slow: theta / s ** (torch.arange(len(theta)) / (len(theta) - 1)),
            "Your ramp runs over all the hands. It should begin at `fast` and end at `slow`.",
        ),
        Wrong(
            "one hand late",
            _ramped(_by_ratio, lambda theta, fast, slow: _share(theta, fast + 1, slow + 1)),
            "The ramp is one hand late. Pair `fast` is the last to keep its speed, and pair `slow` is "
            "the first with the whole factor.",
        ),
        Wrong(
            "one hand early",
            _ramped(_by_ratio, lambda theta, fast, slow: _share(theta, fast - 1, slow - 1)),
            "The ramp is one hand early. Pair `fast` is the last to keep its speed, and pair `slow` is "
            "the first with the whole factor.",
        ),
        Wrong(
            "factors",
            _ramped(lambda theta, s, share: s**share),
            "Those are the factors. The new speeds are asked for.",
        ),
    ),
    variants=(
        Variant(
            "logarithms",
            _ramped(lambda theta, s, share: torch.exp(theta.log() - share * math.log(s))),
            "Equal ratios are equal steps of the logarithm.",
        ),
    ),
    hints=(
        "How far up the ramp does each hand stand? 0 up to `fast`, 1 from `slow` on.",
        "By which factor is a hand in the middle slower? Equal ratios: s to the power of that share.",
        "The share of pair t is (t - fast) / (slow - fast), and .clamp(0, 1) makes it flat at both ends.",
    ),
)

QUESTIONS = (FIRST_NEW, RAMP)
