"""The turns of notebook 02: one hand, turning it, the whole table; of its side quests: a wavelength, and two
positions compared."""

from __future__ import annotations

import math

import torch

from tutorial_lib.language import _

from ...checks.question import Case, Draw, Question, Variant, Wrong

EQUATION = '02, section "The equation"'
BUILD = '02, section "Build: the whole encoding"'
WAVELENGTHS = 'deeper/02_details, section "Wavelengths and the base"'
ROTATION = '02, section "Regular: a shift is a rotation"'
SCORES = 'deeper/02_scores, section "What two positions say to each other"'


# ---- angle ----
def angle(p, t, d):
    """How far the hand of clock t has turned at position p, in radians; d channels make d / 2 clocks."""
    return p * 10000 ** (-2 * t / d)


def _angle_cases(draw: Draw) -> list[Case]:
    many = torch.arange(5, dtype=torch.float64) + draw.integer(2, 30)
    return [
        Case((draw.integer(5, 60), 2, 16), _("clock 2 of 8")),
        Case((draw.integer(100, 900), 3, 8), _("the last of 4 clocks")),
        Case((draw.integer(2, 40), 0, 64), _("the first clock")),
        Case((many, draw.integer(3, 9), 64), _("several positions at once, in a tensor")),
    ]


ANGLE = Question(
    name="angle",
    exercise="02",
    title="How far one hand has turned.",
    returns="a number of radians, or a tensor of them",
    section=EQUATION,
    draw=_angle_cases,
    reference=angle,
    wrong=(
        Wrong(
            "exponent without the 2",
            lambda p, t, d: p * 10000 ** (-t / d),
            "The hands slow down only half as fast as they should: d counts channels, and each clock has "
            "two of them.",
        ),
        Wrong(
            "hands that get faster",
            lambda p, t, d: p * 10000 ** (2 * t / d),
            "Your hands get faster from clock to clock. No hand should turn by more than 1 radian per "
            "position.",
        ),
        Wrong(
            "rounded exponent",
            lambda p, t, d: p * 10000.0 ** (-2 * t // d),
            "The exponent is rounded to a whole number: // cuts off what / keeps. Nearly all clocks then "
            "run at the same speed.",
        ),
        Wrong(
            "position left out",
            lambda p, t, d: p * 0 + 10000 ** (-2 * t / d),
            "That is the angle of a single step, whatever the position is.",
        ),
        Wrong(
            "no position",
            lambda p, t, d: 10000 ** (-2 * t / d),
            "p does not occur in it: this is the angle of a single step. At position p the hand has made p "
            "of them.",
        ),
        Wrong(
            "brackets forgotten",
            lambda p, t, d: p * 10000**-2 * t / d,
            "A power binds more tightly than a product: Python reads 10000 ** -2, and multiplies the result "
            "by t / d. Put the whole exponent in brackets.",
        ),
        Wrong(
            "turns instead of radians",
            lambda p, t, d: 2 * math.pi * p * 10000 ** (-2 * t / d),
            "There is a 2π too much. The first hand moves by 1 radian per position; with yours it makes a "
            "full turn each time, and stands still.",
        ),
        Wrong(
            "sine of the angle",
            lambda p, t, d: torch.sin(torch.as_tensor(p * 10000 ** (-2 * t / d))),
            "You have taken a sine already. The angle itself is wanted; its sine and cosine come later.",
        ),
    ),
    hints=(
        "At position p the hand has made p equal steps. How large is one step of clock t?",
        "The frequency in the equation is the angle of one step. In Python a power is written with two "
        "stars.",
        "Multiply the position by the frequency. Put the whole exponent in brackets, with its minus sign.",
    ),
)


# ---- wavelength ----
def wavelength(t, d):
    """How many positions clock t needs for one full turn."""
    return 2 * math.pi / angle(1, t, d)


def _wavelength_cases(draw: Draw) -> list[Case]:
    return [
        Case((0, 16), _("the first clock")),
        Case((draw.integer(1, 6), 16), "d = 16"),
        Case((draw.integer(40, 200), 512), "d = 512"),
        Case((31, 64), _("the last clock, d = 64")),
    ]


def _speed(t, d):
    return 10000 ** (-2 * t / d)


WAVELENGTH = Question(
    name="wavelength",
    exercise="02",
    title="How many positions a hand needs for one full turn.",
    returns="a number of positions",
    section=WAVELENGTHS,
    draw=_wavelength_cases,
    reference=wavelength,
    wrong=(
        Wrong(
            "one radian instead of a turn",
            lambda t, d: 1 / _speed(t, d),
            "After that many positions the hand has turned by 1 radian, which is less than a sixth of a "
            "full turn.",
        ),
        Wrong(
            "turns per position",
            lambda t, d: _speed(t, d) / (2 * math.pi),
            "That is the share of a turn that one position brings. It is upside down: slow clocks should "
            "get large numbers.",
        ),
        Wrong(
            "turn times speed",
            lambda t, d: 2 * math.pi * _speed(t, d),
            "Your slow clocks have short wavelengths. The slower a hand, the more positions a turn takes.",
        ),
        Wrong(
            "degrees",
            lambda t, d: 360 / _speed(t, d),
            "A full turn has 360 degrees, but the angle is measured in radians.",
        ),
        Wrong(
            "half a turn",
            lambda t, d: math.pi / _speed(t, d),
            "That brings the hand to the opposite side of its circle: half a turn.",
        ),
    ),
    hints=(
        "How far does the hand move in one position? How far must it go?",
        "Your function angle says how far the hand has turned at position 1.",
        "A full turn is 2 * math.pi radians. How often does one step fit into it?",
    ),
)


# ---- turn ----
def turn(pair, by):
    """The (sine, cosine) of a hand that has been turned further by an angle; each may be a tensor."""
    sine, cosine = pair
    new_sine = sine * math.cos(by) + cosine * math.sin(by)
    new_cosine = cosine * math.cos(by) - sine * math.sin(by)
    return new_sine, new_cosine


def _turn_cases(draw: Draw) -> list[Case]:
    cases = []
    for many, by, what in (
        (4, draw.number(0.3, 1.2), _("a small turn of {n} hands")),
        (6, draw.number(1.8, 2.9), _("a large turn of {n} hands")),
        (3, -draw.number(0.4, 1.0), _("a turn back of {n} hands")),
    ):
        start = draw.uniform(many, low=-3, high=3, dtype=torch.float64)
        cases.append(Case(((start.sin(), start.cos()), by), what.format(n=many)))
    return cases


def _turned(first, second):
    """``first`` and ``second`` take sine, cosine and those of the turn."""

    def answer(pair, by):
        given = *pair, math.sin(by), math.cos(by)
        return first(*given), second(*given)

    return answer


def _new_sine(s, c, sin, cos):
    return s * cos + c * sin


def _new_cosine(s, c, sin, cos):
    return c * cos - s * sin


TURN = Question(
    name="turn",
    exercise="02",
    title="A hand turned on by an angle, from its sine and cosine alone.",
    returns="two numbers or two tensors: the new sine and the new cosine",
    section=ROTATION,
    draw=_turn_cases,
    reference=turn,
    wrong=(
        Wrong(
            "turned back",
            _turned(lambda s, c, sin, cos: s * cos - c * sin, lambda s, c, sin, cos: c * cos + s * sin),
            "Your hand turns the wrong way: it goes back by the angle. The two signs have changed places.",
        ),
        Wrong(
            "no minus sign",
            _turned(_new_sine, lambda s, c, sin, cos: c * cos + s * sin),
            "The new sine is right. In the new cosine a sign is wrong; as it is, the hand gets longer or "
            "shorter on the way.",
        ),
        Wrong(
            "the new sine is used at once",
            _turned(_new_sine, lambda s, c, sin, cos: c * cos - (s * cos + c * sin) * sin),
            "The new cosine is computed from the new sine. It needs the old one, so keep that under a name "
            "of its own.",
        ),
        Wrong(
            "cosine first",
            _turned(_new_cosine, _new_sine),
            "Both numbers are right, but in the wrong order: the sine comes first in each pair.",
        ),
        Wrong(
            "angle added to both numbers",
            lambda pair, by: (pair[0] + by, pair[1] + by),
            "You have added the angle to the sine and to the cosine. Angles add; their sines do not.",
        ),
        Wrong(
            "sines added",
            _turned(lambda s, c, sin, cos: s + sin, lambda s, c, sin, cos: c + cos),
            "You have added the two sines and the two cosines. That is a sum of two hands, longer than "
            "each of them.",
        ),
    ),
    hints=(
        "The addition formulas stand above the cell: a is where the hand stood, b the angle to turn by.",
        "sine and cosine are those of a. Those of b are math.sin(by) and math.cos(by).",
        "Two lines, one for each formula, under new names; then return both, the sine first.",
    ),
)


# ---- dot ----
def dot(r, d):
    """The dot product of two position vectors whose positions differ by r, a tensor of offsets."""
    return sum(torch.cos(angle(r, t, d)) for t in range(d // 2))


def _dot_cases(draw: Draw) -> list[Case]:
    both = torch.arange(-3, 4, dtype=torch.float64)
    return [
        Case((both * draw.integer(1, 3), 8), _("d = 8, offsets of both signs")),
        Case((torch.arange(6, dtype=torch.float64) + draw.integer(1, 20), 16), "d = 16"),
        Case((torch.arange(4, dtype=torch.float64) * draw.integer(20, 90), 64), _("d = 64, far apart")),
    ]


def _dot_of(wave=torch.cos, clocks=lambda d: range(d // 2)):
    def answer(r, d):
        return sum(wave(angle(r, t, d)) for t in clocks(d))

    return answer


DOT = Question(
    name="dot",
    exercise="02",
    title="The dot product of two position vectors, from their offset alone.",
    returns="a tensor of the shape of r",
    section=SCORES,
    draw=_dot_cases,
    reference=dot,
    tolerance=(1e-4, 1e-3),  # an offset of 270 times a frequency in float32, 32 cosines of it
    picture="lines",
    wrong=(
        Wrong(
            "one clock",
            _dot_of(clocks=lambda d: [0]),
            "This is what the first clock contributes. All d / 2 of them count.",
        ),
        Wrong(
            "sines instead of cosines",
            _dot_of(wave=torch.sin),
            "At r = 0 you get 0. But a vector agrees with itself as much as it can: which wave is largest "
            "at 0?",
        ),
        Wrong(
            "mean instead of sum",
            lambda r, d: dot(r, d) / (d // 2),
            "You have taken the mean of the clocks. A dot product adds up what its parts contribute.",
        ),
        Wrong(
            "d clocks",
            _dot_of(clocks=range),
            "You have added d terms. There are d channels, so only half as many clocks.",
        ),
        Wrong(
            "wave of the sum",
            lambda r, d: torch.cos(sum(angle(r, t, d) for t in range(d // 2))),
            "You have added the angles of all clocks and taken one cosine. Each clock has its own.",
        ),
        Wrong(
            "length of the offset",
            lambda r, d: sum(angle(r, t, d) for t in range(d // 2)),
            "You have added the angles. Each pair contributes the cosine of its angle.",
        ),
    ),
    hints=(
        "Every clock contributes one number, which depends on r alone. The dot product is their sum.",
        "The angle between the hands of clock t, r positions apart, is angle(r, t, d).",
        "Take torch.cos of that angle, for every t in range(d // 2), and add up.",
    ),
)


# ---- clocks ----
def clocks(p, d):
    """The vectors [L, d] of the positions p [L]: clock t has its sine in column 2t, its cosine in 2t + 1."""
    hands = angle(p[:, None], torch.arange(d // 2), d)
    table = torch.empty(len(p), d)
    table[:, 0::2], table[:, 1::2] = hands.sin(), hands.cos()
    return table


def _clocks_cases(draw: Draw) -> list[Case]:
    start = draw.integer(20, 300)
    return [
        Case((torch.arange(draw.integer(4, 6)), 8), _("d = 8, from position 0")),
        Case(
            (torch.arange(5) + start, 6),
            _("d = 6, from position {start}").format(start=start),
        ),
        Case((draw.permutation(7) + draw.integer(2, 9), 16), _("d = 16, positions out of order")),
    ]


def _hands(p, d):
    return angle(p[:, None].double(), torch.arange(d // 2), d)


def _side_by_side(left, right):
    """A table in which ``left`` and ``right`` of the angles alternate."""
    return lambda p, d: torch.stack([left(_hands(p, d)), right(_hands(p, d))], 2).flatten(1).float()


def _clocks_by_loop(p, d):
    table = torch.zeros(len(p), d)
    for t in range(d // 2):
        table[:, 2 * t], table[:, 2 * t + 1] = angle(p, t, d).sin(), angle(p, t, d).cos()
    return table


def _column_by_column(p, d):
    waves = (torch.sin, torch.cos)
    return torch.stack([waves[c % 2](angle(p, c, d)) for c in range(d)], 1).float()


CLOCKS = Question(
    name="clocks",
    exercise="02",
    title="The sinusoidal encoding of any positions: sine and cosine side by side.",
    returns="a tensor of shape [L, d]",
    section=BUILD,
    draw=_clocks_cases,
    reference=clocks,
    tolerance=(1e-3, 1e-3),  # an angle of 300 radians in float32
    picture="heat",
    axes=("column", "position"),
    wrong=(
        Wrong(
            "all sines first",
            lambda p, d: torch.cat([_hands(p, d).sin(), _hands(p, d).cos()], 1).float(),
            "All sines stand first, then all cosines. Here the two numbers of a clock stand side by side: "
            "columns 2t and 2t + 1.",
        ),
        Wrong(
            "cosine before sine",
            _side_by_side(torch.cos, torch.sin),
            "Each clock begins with its cosine. At position 0 the row must read 0, 1, 0, 1, …",
        ),
        Wrong(
            "sines only",
            _side_by_side(torch.sin, torch.sin),
            "Both columns of a clock hold its sine. The second one is for the cosine: without it, a hand on "
            "its way up looks like one on its way down.",
        ),
        Wrong(
            "angles, no waves",
            _side_by_side(lambda hand: hand, lambda hand: hand),
            "These are the angles themselves, and they grow without end. What goes into the table are their "
            "sine and cosine.",
        ),
        Wrong(
            "a clock for each column",
            _column_by_column,
            "Each of your columns has a clock of its own. There are only d / 2 clocks, and each fills two "
            "columns.",
        ),
        Wrong(
            "rows counted from 0",
            lambda p, d: clocks(torch.arange(len(p)), d),
            "Your rows are those of the positions 0, 1, 2, …, whatever positions were asked for. A text may "
            "begin anywhere: use p, and not the number of the row.",
        ),
        Wrong(
            "one row for each column",
            lambda p, d: clocks(p, d).T,
            "Your table lies on its side: [d, L]. Each position is a row.",
        ),
        Wrong(
            "one column for each clock",
            lambda p, d: _hands(p, d).sin().float(),
            "Your table has d / 2 columns, one for each clock. Each clock fills two: its sine and its "
            "cosine.",
        ),
    ),
    variants=(
        Variant("a loop over the clocks", _clocks_by_loop, "Clock by clock, two columns each, is the same."),
        Variant(
            "stacked, then flattened",
            _side_by_side(torch.sin, torch.cos),
            "Pairs in a new last dimension, flattened, alternate by themselves.",
        ),
    ),
    hints=(
        "First the angles: a row for each position, a column for each clock. Then two columns of the table "
        "come from each column of the angles.",
        "angle(p[:, None], torch.arange(d // 2), d) has all angles. torch.empty(len(p), d) is a table.",
        "The sines of all angles go into table[:, 0::2], the cosines into table[:, 1::2]. Return the table.",
    ),
)

QUESTIONS = (ANGLE, TURN, CLOCKS, WAVELENGTH, DOT)
