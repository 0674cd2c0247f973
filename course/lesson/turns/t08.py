"""The turns of notebook 08: the arc of a hand, its first new angle, another base, only the slow pairs."""

from __future__ import annotations

import math

import torch

from ...checks.question import Case, Draw, Question, Variant, Wrong

DIAL = '08, section "The dial"'
BREAKS = '08, section "Why raw RoPE breaks"'
NTK = '08, section "NTK-aware: change the base"'
YARN = '08, section "YaRN: to each pair what it needs"'


def _theta(d: int, base: float):
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


# ---- arc ----
def arc(theta, length):
    """How far a hand gets in a text of this length, in degrees; a full turn, 360, is the most."""
    return torch.rad2deg(length * theta).clamp(max=360)


def _arc_cases(draw: Draw) -> list[Case]:
    return [
        Case((_theta(16, 10_000.0), 100 + draw.integer(0, 50)), "a head of 8 pairs, a short text"),
        Case((_theta(64, 100_000.0), 8192), "SmolLM2's 32 pairs, the length of its training"),
        Case((_theta(64, 100_000.0)[20:], 16_000 + draw.integer(0, 4000)), "slow pairs, a long text"),
    ]


ARC = Question(
    name="arc",
    exercise="08",
    title="The arc that a hand passes in a text.",
    returns="a tensor of the shape of theta, in degrees",
    section=DIAL,
    draw=_arc_cases,
    reference=arc,
    picture="lines",
    wrong=(
        Wrong(
            "radians",
            lambda theta, length: (length * theta).clamp(max=2 * math.pi),
            "Right, in radians. The dial is marked in degrees.",
        ),
        Wrong(
            "radians, capped at 360",
            lambda theta, length: (length * theta).clamp(max=360),
            "θ is in radians per position, and you take its numbers for degrees.",
        ),
        Wrong(
            "no limit",
            lambda theta, length: torch.rad2deg(length * theta),
            "A fast hand passes the same places again and again. After a full turn there is nothing more "
            "to see, so the arc never exceeds 360.",
        ),
        Wrong(
            "where the hand stops",
            lambda theta, length: torch.rad2deg(length * theta) % 360,
            "This is where the hand stops. A hand that has gone round and a little further has still seen "
            "the whole dial.",
        ),
        Wrong(
            "a share",
            lambda theta, length: (length * theta / (2 * math.pi)).clamp(max=1),
            "You give the arc as a share of a turn; here a full turn is 360.",
        ),
        Wrong(
            "one step",
            lambda theta, length: torch.rad2deg(theta),
            "This is one step of the hand. The text has many.",
        ),
    ),
    hints=(
        "θ says how far the hand goes in one position. How far does it go in all of them?",
        "Three things to do: multiply, convert radians to degrees, stop at 360.",
        "torch.rad2deg converts, and a tensor's .clamp(max=360) stops.",
    ),
)


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


# ---- slower ----
def slower(base, new_base, t, d):
    """By which factor pair t turns more slowly, when the base of a head of d channels is changed."""
    return (new_base / base) ** (2 * t / d)


def _slower_cases(draw: Draw) -> list[Case]:
    larger = 400_000.0 + draw.integer(0, 9000)
    return [
        Case((100_000.0, larger, torch.arange(32), 64), "all pairs of 64 channels"),
        Case((10_000.0, 500_000.0, 63, 128), "the last pair of 128 channels"),
        Case((10_000.0, 1_000_000.0, draw.integer(10, 40), 128), "one pair in the middle"),
    ]


SLOWER = Question(
    name="slower",
    exercise="08",
    title="What another base does to pair t.",
    returns="a factor: a number, or a tensor of the shape of t",
    section=NTK,
    draw=_slower_cases,
    reference=slower,
    picture="lines",
    wrong=(
        Wrong(
            "the ratio of the bases",
            lambda base, new_base, t, d: new_base / base + 0 * t,
            "That would be the same for every pair. Pair 0 has the exponent 0: no base can change it.",
        ),
        Wrong(
            "upside down",
            lambda base, new_base, t, d: (base / new_base) ** (2 * t / d),
            "With a larger base the pair turns more slowly, so the factor has to be above 1.",
        ),
        Wrong(
            "t over d",
            lambda base, new_base, t, d: (new_base / base) ** (t / d),
            "The exponent of pair t is 2t / d. With t / d, the last pair would be changed like one in the "
            "middle.",
        ),
        Wrong(
            "minus in the exponent twice",
            lambda base, new_base, t, d: new_base ** (-2 * t / d) + 0 * t,
            "This is the new θ. By which factor is it smaller than the old one?",
        ),
        Wrong(
            "a difference",
            lambda base, new_base, t, d: base ** (-2 * t / d) - new_base ** (-2 * t / d),
            "You subtract the two speeds. How many *times* as slow is the new one?",
        ),
        Wrong(
            "one exponent for all",
            lambda base, new_base, t, d: (new_base / base) ** ((d - 2) / d) + 0 * t,
            "This is right for the last pair only. The others have smaller exponents.",
        ),
    ),
    variants=(
        Variant(
            "old speed over new speed",
            lambda base, new_base, t, d: base ** (-2 * t / d) / new_base ** (-2 * t / d),
            "Two powers with the same exponent.",
        ),
    ),
    hints=(
        "Write down θ of pair t with the old base, and with the new one.",
        "Old speed over new speed. Both are powers with the same exponent.",
        "The new base over the old one, to the power 2 * t / d.",
    ),
)


# ---- only_slow ----
def only_slow(theta, s, L):
    """θ′: pairs without a full turn in L tokens are divided by s, the others keep their speed."""
    return torch.where(L * theta < 2 * math.pi, theta / s, theta)


def _only_slow_cases(draw: Draw) -> list[Case]:
    return [
        Case((_theta(64, 100_000.0), draw.number(2, 6), 8192), "SmolLM2's pairs"),
        Case((_theta(16, 10_000.0), draw.number(2, 6), 100 + draw.integer(0, 50)), "a small model"),
        Case((_theta(32, 10_000.0), draw.number(2, 6), 2048), "16 pairs, L = 2048"),
    ]


def _stepped(slow, other=lambda theta, s: theta / s):
    return lambda theta, s, L: torch.where(slow(theta, L), other(theta, s), theta)


def _slow(theta, L):
    return L * theta < 2 * math.pi


ONLY_SLOW = Question(
    name="only_slow",
    exercise="08",
    title="Slow down only the pairs that need it.",
    returns="a tensor of the shape of theta",
    section=YARN,
    draw=_only_slow_cases,
    reference=only_slow,
    tolerance=(1e-4, 1e-10),
    picture="lines",
    axes=("pair t", "θ′/θ"),
    drawn=lambda new, case: new / case.args[0],
    wrong=(
        Wrong(
            "all of them",
            lambda theta, s, L: theta / s,
            "That is position interpolation: the fast pairs are slowed, too.",
        ),
        Wrong(
            "the fast ones",
            _stepped(lambda theta, L: ~_slow(theta, L)),
            "You slow the pairs that made a full turn, and leave those that didn't. It should be the other "
            "way round.",
        ),
        Wrong(
            "faster",
            _stepped(_slow, lambda theta, s: theta * s),
            "The slow pairs turn faster now, and leave their arcs even sooner.",
        ),
        Wrong(
            "a radian for a turn",
            _stepped(lambda theta, L: L * theta < 1),
            "You ask for less than one radian. A full turn is 2π, so some slow pairs are left out.",
        ),
        Wrong(
            "degrees for a turn",
            _stepped(lambda theta, L: L * theta < 360),
            "You compare radians with 360 degrees. A full turn is 2π radians, so fast pairs are slowed, too.",
        ),
        Wrong(
            "stopped",
            _stepped(_slow, lambda theta, s: 0 * theta),
            "The slow pairs stand still now. They should turn, s times as slowly.",
        ),
        Wrong(
            "half of them",
            lambda theta, s, L: torch.where(torch.arange(len(theta)) >= len(theta) // 2, theta / s, theta),
            "You cut in the middle. Which pairs are slow depends on L and θ.",
        ),
        Wrong(
            "slow in the new length",
            lambda theta, s, L: torch.where(s * L * theta < 2 * math.pi, theta / s, theta),
            "You ask which pairs make a full turn in the longer text. What counts is what they have seen "
            "in training.",
        ),
    ),
    hints=(
        "Which pairs have seen all of their angles? You decided that in first_new.",
        "One condition, two outcomes: the divided speed, or the old one.",
        "torch.where(L * theta < 2 * math.pi, …, …).",
    ),
)

QUESTIONS = (ARC, FIRST_NEW, SLOWER, ONLY_SLOW)
