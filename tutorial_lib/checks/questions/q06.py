"""Exercise 06: rotary position embedding."""

from __future__ import annotations

import torch

from ..question import Case, Draw, Question, Variant, Wrong

ANGLES = '06, section "One frequency per pair"'


# ---- rope_angles ----
def _rope_angles_cases(draw: Draw) -> list[Case]:
    cases = []
    starts = ("from position 0", "positions that start later", "positions out of order")
    for dim, what in zip((8, 16, 6), starts, strict=True):
        length = draw.integer(4, 9)
        positions = {"from position 0": torch.arange(length),
                     "positions that start later": draw.integer(3, 40) + torch.arange(length),
                     "positions out of order": draw.permutation(length) + draw.integer(1, 30)}[what]
        base = draw.choice([10_000.0, 500_000.0])
        cases.append(Case((positions, dim, base), f"d_h = {dim}, L = {length}, base {base:g}, {what}"))
    return cases


def _rope_angles(positions, dim, base):
    return positions[:, None].float() * base ** (-torch.arange(0, dim, 2).float() / dim)


def _base_to_the_wrong_power(positions, dim, base):
    return positions[:, None].float() * base ** (-torch.arange(0, dim // 2).float() / dim)


ROPE_ANGLES = Question(
    name="rope_angles",
    exercise="06",
    title="The angle of each pair at each position.",
    returns="a float32 tensor of shape [L, d_h / 2], in radians",
    section=ANGLES,
    draw=_rope_angles_cases,
    reference=_rope_angles,
    picture="heat",
    wrong=(
        Wrong("exponent counts pairs, not channels", _base_to_the_wrong_power,
              "The exponent runs over t / d, not over 2t / d: pair t is made of channels 2t and 2t + 1, so "
              "the slowest pair turns far too fast.", ANGLES),
        Wrong("only the frequencies", lambda positions, dim, base:
              (base ** (-torch.arange(0, dim, 2).float() / dim)).expand(len(positions), -1),
              "Every row is the same: these are the frequencies. An angle is a frequency times a position."),
        Wrong("row number instead of position", lambda positions, dim, base:
              _rope_angles(torch.arange(len(positions)), dim, base),
              "Row i is rotated by i, whatever `positions` says. That breaks as soon as a cache, padding or "
              "a shifted window gives positions that do not count from 0."),
    ),
    variants=(
        Variant("outer product", lambda positions, dim, base:
                torch.outer(positions.double(), torch.pow(base, -2 * torch.arange(dim // 2).double() / dim)),
                "An outer product in float64 gives the same angles."),
        Variant("a loop", lambda positions, dim, base:
                [[float(p) * base ** (-2 * t / dim) for t in range(dim // 2)] for p in positions.tolist()],
                "A loop is slow and right."),
    ),
    hints=(
        "A pair t turns by a fixed angle per step. What is the angle after p steps?",
        "You need a column of positions and a row of frequencies; broadcasting makes the table.",
        "The frequency of pair t is base to the power −2t / d_h, with t = 0 … d_h / 2 − 1.",
    ),
)

QUESTIONS = (ROPE_ANGLES,)
