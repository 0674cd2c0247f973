"""Exercise 06: rotary position embedding."""

from __future__ import annotations

import itertools
import math

import torch

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong

PAIR = '06, section "One pair, by hand"'
BLOCKS = '06, section "Many pairs: blocks"'
RELATIVE = '06, section "Is it relative? Measured"'
LAYOUTS = 'deeper/06_bugs, section "Which channels make a pair"'
SIGNS = 'deeper/06_bugs, section "Signs"'
PARTIAL = 'deeper/06_pairs, section "Who leaves them unturned"'
CACHES = 'deeper/06_bugs, section "Caches and decoding"'
BUGS = 'deeper/06_bugs, section "Find the bugs"'


# ---- rope_angles ----
def _rope_angles_cases(draw: Draw) -> list[Case]:
    def case(dim, positions, base, what):
        return Case(
            (positions, dim, base),
            _("d_h = {dim}, L = {length}, base {base:g}, {what}").format(
                dim=dim, length=len(positions), base=base, what=what
            ),
        )

    length = draw.integer(4, 9)
    late = draw.integer(3, 40) + torch.arange(length + 1)
    return [
        case(8, torch.arange(length), 10_000.0, _("from position 0")),
        case(16, late, draw.choice([500_000.0, 250_000.0]), _("positions that start later")),
        case(6, draw.permutation(length) + draw.integer(1, 30), 100_000.0, _("positions out of order")),
        case(12, draw.integer(3000, 4000) + torch.arange(5), 1000.0, _("far from the beginning")),
        case(4, torch.tensor([draw.integer(5, 60)]), 10_000.0, _("one new token")),
        case(10, torch.arange(6) - draw.integer(3, 40), 10_000.0, _("positions below 0")),
    ]


def _rope_angles(positions, dim, base):
    return positions[:, None].float() * base ** (-torch.arange(0, dim, 2).float() / dim)


def _angles_with(
    exponent=lambda dim: -torch.arange(0, dim, 2).double() / dim,
    place=lambda p: p.double(),
    power=lambda base, exponent: base**exponent,
    whole=lambda angles: angles,
):
    """rope_angles in parts, each of which can be replaced."""
    return lambda positions, dim, base: whole(place(positions)[:, None] * power(base, exponent(dim))).float()


ROPE_ANGLES = Question(
    name="rope_angles",
    exercise="06",
    title="The angle of each pair at each position.",
    returns="a float32 tensor of shape [L, d_h / 2], in radians",
    section=BLOCKS,
    draw=_rope_angles_cases,
    reference=_rope_angles,
    picture="heat",
    wrong=(
        Wrong(
            "exponent counts pairs, not channels",
            _angles_with(lambda dim: -torch.arange(dim // 2) / dim),
            "The exponent runs over t / d, not over 2t / d: pair t is made of channels 2t and 2t + 1. Your "
            "slowest pair turns far too fast.",
            BLOCKS,
        ),
        Wrong(
            "exponent twice as large",
            _angles_with(lambda dim: -torch.arange(0, dim, 2) / (dim // 2)),
            "The exponent reaches almost −2: channel numbers are divided by the number of *pairs*. Your "
            "slowest pair turns far too slowly.",
        ),
        Wrong(
            "exponent divided as whole numbers",
            _angles_with(lambda dim: -(torch.arange(0, dim, 2) // dim).double()),
            "Your exponent is a division of whole numbers, so it is 0 throughout and all pairs turn at the "
            "same speed.",
        ),
        Wrong(
            "slowest pair at 1 / base",
            _angles_with(lambda dim: -torch.linspace(0, 1, dim // 2, dtype=torch.float64)),
            "Your exponents reach −1, so the last pair has exactly the frequency 1 / base. Some sinusoids "
            "are laid out like this; in RoPE the exponent stops one step before.",
        ),
        Wrong(
            "pairs counted from 1",
            _angles_with(lambda dim: -torch.arange(2, dim + 2, 2).double() / dim),
            "Pairs are counted from 1 in the paper, but there the exponent has t − 1. The first pair turns "
            "by one radian per step: look at the angle at position 1.",
        ),
        Wrong(
            "frequencies that grow",
            _angles_with(lambda dim: torch.arange(0, dim, 2).double() / dim),
            "The exponent has the wrong sign: your frequencies grow up to almost the base, thousands of "
            "radians per step. The first pair is the fastest, with one radian.",
        ),
        Wrong(
            "a power and a product, without brackets",
            _angles_with(
                lambda dim: torch.arange(dim // 2).double() / dim, power=lambda base, ramp: base**-2 * ramp
            ),
            "A power binds tighter than a product: without brackets, base ** −2 is taken first, and then "
            "multiplied and divided. The whole exponent needs brackets.",
        ),
        Wrong(
            "e in place of the base",
            _angles_with(power=lambda base, exponent: exponent.exp()),
            "You raise e, not the base, to the exponent. With exp you must put the logarithm of the base "
            "into it; without it, all pairs turn at almost the same speed.",
        ),
        Wrong(
            "base always 10000",
            _angles_with(power=lambda base, exponent: 10_000.0**exponent),
            "The base is always 10000, whatever the argument says. Today's models use others; a model's "
            "weights fit its own base only.",
            SIGNS,
        ),
        Wrong(
            "only the frequencies",
            lambda positions, dim, base: (base ** (-torch.arange(0, dim, 2).float() / dim)).expand(
                len(positions), -1
            ),
            "Every row is the same: these are the frequencies. An angle is a frequency times a position.",
            PAIR,
        ),
        Wrong(
            "row number instead of position",
            lambda positions, dim, base: _rope_angles(torch.arange(len(positions)), dim, base),
            "Row i is rotated by i, whatever `positions` says. That breaks as soon as a cache, padding or "
            "a shifted window gives positions that do not count from 0.",
            CACHES,
        ),
        Wrong(
            "counted from the first position",
            _angles_with(place=lambda p: p.double() - p[0]),
            "Your positions are counted from the first one that is given. Scores within this window stay "
            "right, since they are relative; with keys of an earlier window they do not fit.",
            CACHES,
        ),
        Wrong(
            "positions counted from 1",
            _angles_with(place=lambda p: p.double() + 1),
            "Each position is one too high: position 0 is turned already. Scores stay right as long as all "
            "count like this, but tokens from a cache that was made otherwise are one step off.",
            CACHES,
        ),
        Wrong(
            "positions in half precision",
            _angles_with(place=lambda p: p.bfloat16().double()),
            "Positions pass through bfloat16. It keeps eight significant bits, so beyond 256 several "
            "positions share one angle: compare the rows of a case that is far from the beginning.",
            BUGS,
        ),
        Wrong(
            "angles in half precision",
            _angles_with(whole=lambda angles: angles.bfloat16()),
            "Angles pass through bfloat16, which keeps eight significant bits: an angle of 1000 radians is "
            "then off by up to two. Cosines and sines may be rounded; angles may not.",
            BUGS,
        ),
        Wrong(
            "degrees",
            _angles_with(whole=lambda angles: angles * (180 / math.pi)),
            "These are degrees. Cosine and sine of PyTorch take radians, and θ is in radians per step.",
            PAIR,
        ),
        Wrong(
            "turned backwards",
            _angles_with(whole=lambda angles: -angles),
            "All angles are negative: everything turns the other way. That is just as relative, but "
            "trained weights want their own direction.",
            SIGNS,
        ),
        Wrong(
            "whole turns taken off",
            _angles_with(whole=lambda angles: angles % (2 * math.pi)),
            "You have taken off whole turns. The rotations are the same, but asked is the angle itself: "
            "an angle without its turns can't be scaled later on, and its neighbours jump.",
            BLOCKS,
        ),
        Wrong(
            "a column for each channel, in halves",
            _angles_with(whole=lambda a: torch.cat([a, a], -1)),
            "There are d_h columns, each angle twice. Some implementations keep such a table of cosines, "
            "but a pair has one angle: the table has d_h / 2 columns.",
            LAYOUTS,
        ),
        Wrong(
            "a column for each channel, in pairs",
            _angles_with(whole=lambda a: a.repeat_interleave(2, -1)),
            "There are d_h columns, each angle twice in a row. A pair has one angle: the table has d_h / 2 "
            "columns.",
            LAYOUTS,
        ),
    ),
    variants=(
        Variant(
            "outer product",
            lambda positions, dim, base: torch.outer(
                positions.double(), torch.pow(base, -2 * torch.arange(dim // 2).double() / dim)
            ),
            "An outer product in float64 gives the same angles.",
        ),
        Variant(
            "a loop",
            lambda positions, dim, base: [
                [float(p) * base ** (-2 * t / dim) for t in range(dim // 2)] for p in positions.tolist()
            ],
            "A loop is slow and right.",
        ),
        Variant(
            "exp of a logarithm",
            lambda positions, dim, base: (
                positions.unsqueeze(1) * torch.exp(torch.arange(0, dim, 2) * (-math.log(base) / dim))
            ),
            "A power is the exponential of a logarithm.",
        ),
    ),
    hints=(
        "A pair t turns by a fixed angle per step. What is the angle after p steps?",
        "You need a column of positions and a row of frequencies; broadcasting makes the table.",
        "The frequency of pair t is base to the power −2t / d_h, with t = 0 … d_h / 2 − 1.",
    ),
)


# ---- rope_rotate ----
def _angles_drawn(draw: Draw, length: int, dim: int, first: int = 0) -> torch.Tensor:
    return _rope_angles(first + torch.arange(length), dim, draw.choice([50.0, 100.0, 200.0]))


def _rope_rotate_cases(draw: Draw) -> list[Case]:
    plain = _("{layout} pairs, x {shape}")

    def case(shape, layout, first=0, dtype=torch.float32, what=plain):
        angles = _angles_drawn(draw, shape[-2], shape[-1], first)
        return Case(
            (draw.normal(*shape, dtype=dtype), angles, layout), what.format(layout=layout, shape=list(shape))
        )

    return [
        case((2, 3, 5, 8), "interleaved"),
        case((3, draw.integer(4, 7), 6), "half", draw.integer(1, 20)),
        case((1, 10), "interleaved", draw.integer(3, 9), what=_("{layout} pairs, x {shape}, one token")),
        case((2, 4, 12), "half", draw.integer(1, 9)),
        case(
            (2, 6, 8),
            "interleaved",
            draw.integer(300, 400),
            torch.bfloat16,
            _("{layout} pairs, x {shape}, bfloat16"),
        ),
    ]


def _split(x, layout):
    return (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.chunk(2, dim=-1)


def _join(a, b, layout):
    return torch.stack([a, b], dim=-1).flatten(-2) if layout == "interleaved" else torch.cat([a, b], dim=-1)


def _rope_rotate(x, angles, layout):
    a, b = _split(x.float(), layout)
    cos, sin = angles.cos(), angles.sin()
    return _join(a * cos - b * sin, a * sin + b * cos, layout).to(x.dtype)


def _turned(turn, split=_split, join=_join):
    """rope_rotate with another rule for a pair, or other pairs."""

    def answer(x, angles, layout):
        a, b = split(x.float(), layout)
        return join(*turn(a, b, angles.cos(), angles.sin()), layout).to(x.dtype)

    return answer


def _counter_clockwise(a, b, cos, sin):
    return a * cos - b * sin, a * sin + b * cos


def _other(layout):
    return "half" if layout == "interleaved" else "interleaved"


def _written_while_read(x, angles, layout):
    a, b = _split(x, layout)
    a[:] = a * angles.cos().to(x.dtype) - b * angles.sin().to(x.dtype)
    b[:] = a * angles.sin().to(x.dtype) + b * angles.cos().to(x.dtype)
    return x


def _first_reused(a, b, cos, sin):
    a = a * cos - b * sin
    return a, a * sin + b * cos


def _minus_in_the_wrong_half(x, angles, layout):
    return _rope_rotate(x, -angles if layout == "half" else angles, layout)


def _angles_of_the_other_layout(x, angles, layout):
    """Pairs of one layout, a table of cosines of the other: no longer a rotation."""
    full = torch.cat([angles, angles], -1) if layout == "interleaved" else angles.repeat_interleave(2, -1)
    a, b = _split(x.float(), layout)
    return (x * full.cos() + _join(-b, a, layout) * full.sin()).to(x.dtype)


ROPE_ROTATE = Question(
    name="rope_rotate",
    exercise="06",
    title="Turn the pairs of each vector by their angles, in either layout.",
    returns="a tensor with the shape and the dtype of x",
    section=BLOCKS,
    draw=_rope_rotate_cases,
    reference=_rope_rotate,
    picture="heat",
    wrong=(
        Wrong(
            "clockwise",
            _turned(lambda a, b, cos, sin: (a * cos + b * sin, b * cos - a * sin)),
            "You turn the other way round. Lengths are kept and scores are relative, so nothing looks "
            "wrong; but trained weights want their own direction. Turn (1, 0) by 90°: it must become "
            "(0, 1).",
            SIGNS,
        ),
        Wrong(
            "both signs plus",
            _turned(lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)),
            "Both new channels are sums. That is no rotation: the length of a vector changes. Compare the "
            "lengths before and after.",
            BLOCKS,
        ),
        Wrong(
            "both signs minus",
            _turned(lambda a, b, cos, sin: (a * cos - b * sin, a * sin - b * cos)),
            "Both new channels are differences. That is a mirror, not a rotation: even an angle of 0 "
            "changes the sign of the second channel.",
            BLOCKS,
        ),
        Wrong(
            "minus in both lines",
            _turned(lambda a, b, cos, sin: (a * cos - b * sin, b * cos - a * sin)),
            "The sine has a minus in both new channels. That is no rotation: the length of a vector "
            "changes. In the 2 × 2 matrix of a rotation the two sines have different signs.",
            BLOCKS,
        ),
        Wrong(
            "cosine and sine exchanged",
            _turned(lambda a, b, cos, sin: (a * sin - b * cos, a * cos + b * sin)),
            "Cosine and sine have changed places. At position 0 nothing should be turned; yours is turned "
            "by 90°.",
            BLOCKS,
        ),
        Wrong(
            "the new first channel used for the second",
            _turned(_first_reused),
            "The second channel is computed from the first one after it has been turned. Both need the old "
            "pair: lengths are not kept.",
            BLOCKS,
        ),
        Wrong(
            "written while it is read",
            _written_while_read,
            "You write into x while you still read from it: slices are views, not copies. The second "
            "channel sees the turned first one, and the caller's x is lost.",
            BLOCKS,
        ),
        Wrong(
            "layouts exchanged",
            lambda x, angles, layout: _rope_rotate(x, angles, _other(layout)),
            "The two layouts have changed places: interleaved pairs are neighbours, half pairs stand d / 2 "
            "channels apart.",
            LAYOUTS,
        ),
        Wrong(
            "always interleaved",
            lambda x, angles, layout: _rope_rotate(x, angles, "interleaved"),
            "Pairs are always neighbours, whatever the layout says. No shape shows that; weights that were "
            "trained in the other layout do.",
            LAYOUTS,
        ),
        Wrong(
            "always half",
            lambda x, angles, layout: _rope_rotate(x, angles, "half"),
            "Pairs always stand d / 2 channels apart, whatever the layout says. No shape shows that; "
            "weights that were trained in the other layout do.",
            LAYOUTS,
        ),
        Wrong(
            "pairs not put back",
            _turned(_counter_clockwise, join=lambda a, b, layout: torch.cat([a, b], -1)),
            "Interleaved pairs are turned rightly, but come back sorted: all first channels, then all "
            "second ones. At position 0 the vector should be as it was.",
            LAYOUTS,
        ),
        Wrong(
            "halves come back interleaved",
            _turned(_counter_clockwise, join=lambda a, b, layout: torch.stack([a, b], -1).flatten(-2)),
            "Half pairs are turned rightly, but come back as neighbours. At position 0 the vector should "
            "be as it was.",
            LAYOUTS,
        ),
        Wrong(
            "pairs of one layout, angles of the other",
            _angles_of_the_other_layout,
            "The pairs are of one layout, the table of angles is laid out for the other. So the two "
            "channels of a pair get different angles, and lengths are not kept.",
            LAYOUTS,
        ),
        Wrong(
            "halves swapped, angles doubled in pairs",
            lambda x, angles, layout: (
                x * angles.repeat_interleave(2, -1).cos()
                + _join(-_split(x, "half")[1], _split(x, "half")[0], "half")
                * angles.repeat_interleave(2, -1).sin()
            ).to(x.dtype),
            "You swap the halves of the vector, as Hugging Face's rotate_half does, but your table of "
            "angles has each angle twice in a row, as for neighbours. Then the two channels of a pair "
            "get different angles.",
            LAYOUTS,
        ),
        Wrong(
            "minus in the wrong half",
            _minus_in_the_wrong_half,
            "Interleaved pairs are right, half pairs turn the other way: the minus stands in the wrong "
            "half of the swapped vector.",
            SIGNS,
        ),
        Wrong(
            "angles rounded",
            lambda x, angles, layout: _rope_rotate(x, angles.to(x.dtype).float(), layout),
            "The angles are rounded to the dtype of x. In bfloat16 an angle of 300 radians is off by up to "
            "one. Cosine and sine may be rounded, angles may not.",
            BUGS,
        ),
        Wrong(
            "angles of the first row for all",
            lambda x, angles, layout: _rope_rotate(x, angles[:1].expand_as(angles), layout),
            "All tokens are turned by the angles of the first one. Then order is as unknown as before.",
            PAIR,
        ),
        Wrong(
            "turned twice as far",
            lambda x, angles, layout: _rope_rotate(x, 2 * angles, layout),
            "Each pair is turned by twice its angle.",
            PAIR,
        ),
        Wrong(
            "only the cosine",
            _turned(lambda a, b, cos, sin: (a * cos, b * cos)),
            "Each channel is multiplied with a cosine and nothing of its partner is added. That shrinks "
            "vectors; it does not turn them.",
            BLOCKS,
        ),
    ),
    variants=(
        Variant(
            "complex numbers",
            lambda x, angles, layout: _join(
                *torch.view_as_real(
                    torch.complex(*(one.float().contiguous() for one in _split(x, layout)))
                    * torch.polar(torch.ones_like(angles), angles)
                ).unbind(-1),
                layout,
            ).to(x.dtype),
            "Multiplying by e^{i angle} is turning.",
        ),
        Variant(
            "rotated copy",
            lambda x, angles, layout: (
                x * _join(angles, angles, layout).cos()
                + _join(*(one for one in (-_split(x, layout)[1], _split(x, layout)[0])), layout)
                * _join(angles, angles, layout).sin()
            ).to(x.dtype),
            "A table with each cosine twice, and a copy with swapped partners, do the same.",
        ),
        Variant(
            "cosines in the dtype of x",
            lambda x, angles, layout: _join(
                *_counter_clockwise(*_split(x, layout), angles.cos().to(x.dtype), angles.sin().to(x.dtype)),
                layout,
            ),
            "Cosines and sines may be rounded to the dtype of x; the angles were not.",
        ),
    ),
    hints=(
        "Take the two channels of each pair apart into a and b. How does a rotation mix them?",
        "The two layouts differ in which channels are a and which are b, before and after. What stands "
        "between is the same.",
        "Interleaved: every second channel, and `stack` with `flatten` to put them back. Half: `chunk` and "
        "`cat`. Bring the result to the dtype of x at the end.",
    ),
)


# ---- rope_shift_error ----
def _shift_cases(draw: Draw) -> list[Case]:
    def case(heads, length, dim, shifted, what):
        angles = _rope_angles(torch.arange(length), dim, 100.0)
        return Case(
            (draw.normal(heads, length, dim), draw.normal(heads, length, dim), angles, shifted(angles, dim)),
            _("H = {heads}, L = {length}, d_h = {dim}, {what}").format(
                heads=heads, length=length, dim=dim, what=what
            ),
        )

    by = torch.tensor([draw.integer(5, 40)])

    def moved(angles, dim):
        return angles + _rope_angles(by, dim, 100.0)

    return [
        case(2, 5, 8, moved, _("all positions moved on")),
        case(
            3,
            draw.integer(6, 8),
            4,
            lambda angles, dim: moved(angles, dim).bfloat16().float(),
            _("angles in bfloat16"),
        ),
        case(
            4, 5, 6, lambda angles, dim: angles * draw.uniform(1, low=1.5, high=2.5), _("positions stretched")
        ),
        case(1, 7, 10, lambda angles, dim: angles + draw.normal(*angles.shape), _("angles in disorder")),
    ]


def _pairs_turned(x, angles):
    return _rope_rotate(x, angles, "interleaved")


def _rope_shift_error(q, k, angles, shifted):
    before = _pairs_turned(q, angles) @ _pairs_turned(k, angles).mT
    after = _pairs_turned(q, shifted) @ _pairs_turned(k, shifted).mT
    return (after - before).abs().amax((-2, -1)) / before.abs().amax((-2, -1))


def _largest_share(new, old):
    return (new - old).abs().amax((-2, -1)) / old.abs().amax((-2, -1))


def _old_and_new(x, angles, shifted):
    return _pairs_turned(x, angles), _pairs_turned(x, shifted)


def _shift(compare=_largest_share, query=_old_and_new, key=_old_and_new, scores=lambda q, k: q @ k.mT):
    """rope_shift_error with another comparison, other rotations or other scores."""

    def answer(q, k, angles, shifted):
        (q_old, q_new), (k_old, k_new) = query(q, angles, shifted), key(k, angles, shifted)
        return compare(scores(q_new, k_new), scores(q_old, k_old))

    return answer


def _in_halves(x, angles, shifted):
    return _rope_rotate(x, angles, "half"), _rope_rotate(x, shifted, "half")


ROPE_SHIFT_ERROR = Question(
    name="rope_shift_error",
    exercise="06",
    title="How much the scores change when all positions get other angles.",
    returns="a tensor of shape [H]: the largest change of a score, as a share of the largest score",
    section=RELATIVE,
    draw=_shift_cases,
    reference=_rope_shift_error,
    picture="lines",
    axes=("head", "share of the largest score"),
    tolerance=(1e-4, 2e-5),
    wrong=(
        Wrong(
            "only the queries move",
            _shift(key=lambda k, a, s: (_pairs_turned(k, a),) * 2),
            "Only the queries get the new angles. Then the offsets change, and of course the scores do. "
            "The question is what happens when queries and keys move together.",
            RELATIVE,
        ),
        Wrong(
            "only the keys move",
            _shift(query=lambda q, a, s: (_pairs_turned(q, a),) * 2),
            "Only the keys get the new angles. Then the offsets change, and of course the scores do. The "
            "question is what happens when queries and keys move together.",
            RELATIVE,
        ),
        Wrong(
            "only the queries are turned",
            _shift(key=lambda k, a, s: (k, k)),
            "The keys are not turned at all. A score is relative only if both turn, each by its own place.",
            PAIR,
        ),
        Wrong(
            "keys turned backwards",
            _shift(key=lambda k, a, s: _old_and_new(k, -a, -s)),
            "Queries turn forward, keys backward. Then the score belongs to the *sum* of the two "
            "positions, and even an exact shift changes it.",
            BUGS,
        ),
        Wrong(
            "the other layout",
            _shift(query=_in_halves, key=_in_halves),
            "Your pairs stand half a head apart. Here they are neighbours: the angles belong to the "
            "channels (0, 1), (2, 3), …",
            LAYOUTS,
        ),
        Wrong(
            "not a share",
            _shift(lambda new, old: (new - old).abs().amax((-2, -1))),
            "This is the change itself. It grows with the length of the vectors, so two models could not "
            "be compared: it must be measured against the size of the scores.",
            RELATIVE,
        ),
        Wrong(
            "share of each score",
            _shift(lambda new, old: ((new - old).abs() / old.abs()).amax((-2, -1))),
            "Each change is divided by its own score. A score near 0 makes that as large as you like, "
            "though nothing that matters has changed.",
            RELATIVE,
        ),
        Wrong(
            "mean change",
            _shift(lambda new, old: (new - old).abs().mean((-2, -1)) / old.abs().amax((-2, -1))),
            "This is the mean change. A few pairs that are badly wrong disappear in it; asked is the "
            "largest.",
            RELATIVE,
        ),
        Wrong(
            "mean change by the mean score",
            _shift(lambda new, old: (new - old).abs().mean((-2, -1)) / old.abs().mean((-2, -1))),
            "You compare means: of the changes and of the scores. A few pairs that are badly wrong "
            "disappear in it; asked is the largest change by the largest score.",
            RELATIVE,
        ),
        Wrong(
            "share of the new scores",
            _shift(lambda new, old: (new - old).abs().amax((-2, -1)) / new.abs().amax((-2, -1))),
            "You divide by the largest score *after* the move. The change is to be divided by the largest "
            "score before the move.",
            RELATIVE,
        ),
        Wrong(
            "sizes compared",
            _shift(lambda new, old: (new.abs() - old.abs()).abs().amax((-2, -1)) / old.abs().amax((-2, -1))),
            "You compare the sizes of the scores. A score that changes its sign is then taken for one that "
            "stayed.",
            RELATIVE,
        ),
        Wrong(
            "signs kept",
            _shift(lambda new, old: (new - old).amax((-2, -1)) / old.amax((-2, -1))),
            "The largest value is taken with its sign, so a score that falls by much counts for nothing.",
            RELATIVE,
        ),
        Wrong(
            "each query with its own key only",
            _shift(
                lambda new, old: (new - old).abs().amax(-1) / old.abs().amax(-1),
                scores=lambda q, k: (q * k).sum(-1),
            ),
            "You compare each query with the key of the same place. Both are turned by the same angle, so "
            "nothing can ever change. All pairs [L, L] are asked.",
            RELATIVE,
        ),
        Wrong(
            "weights compared",
            _shift(scores=lambda q, k: (q @ k.mT).softmax(-1)),
            "You compare weights, after a softmax. Compare scores: a softmax hides what is the same for "
            "all keys.",
            RELATIVE,
        ),
        Wrong(
            "turned vectors compared",
            _shift(scores=lambda q, k: q),
            "You compare turned queries, not scores. Of course they move: the point is that the products "
            "of two of them do not.",
            RELATIVE,
        ),
        Wrong(
            "one number for all heads",
            lambda q, k, angles, shifted: (
                _shift(lambda new, old: (new - old).abs().amax())(q, k, angles, shifted)
                / (_pairs_turned(q, angles) @ _pairs_turned(k, angles).mT).abs().amax()
            ).expand(len(q)),
            "All heads get the same number: the largest over the heads. Each head has scores of its own.",
            RELATIVE,
        ),
    ),
    variants=(
        Variant(
            "scaled scores",
            _shift(scores=lambda q, k: q @ k.mT / math.sqrt(q.shape[-1])),
            "A share does not notice the factor 1/√d_h.",
        ),
        Variant(
            "complex numbers",
            lambda q, k, angles, shifted: _largest_share(
                *(
                    torch.view_as_real(
                        torch.einsum(
                            "hit,hjt->hij",
                            *(
                                torch.view_as_complex(x.unflatten(-1, (-1, 2)))
                                * torch.polar(torch.ones_like(a), sign * a)
                                for x, sign in (
                                    (q, 1),
                                    (k.unflatten(-1, (-1, 2)).mul(torch.tensor([1, -1])).flatten(-2), -1),
                                )
                            ),
                        )
                    )[..., 0]
                    for a in (shifted, angles)
                )
            ),
            "With complex numbers a score is the real part of q times the mirrored k.",
        ),
        Variant(
            "head by head",
            lambda q, k, angles, shifted: torch.stack(
                [_rope_shift_error(q[h : h + 1], k[h : h + 1], angles, shifted)[0] for h in range(len(q))]
            ),
            "A loop over the heads gives the same.",
        ),
    ),
    hints=(
        "Compute the scores twice: both sides turned by the old angles, both sides turned by the new ones.",
        "Your own rope_rotate may do the turning. Then: the difference of two [H, L, L] tensors, its size, "
        "and the largest of each head.",
        "`amax` takes several axes at once. Divide by the largest size among the scores before the move.",
    ),
)


# ---- cached_scores ----
def _cached_cases(draw: Draw) -> list[Case]:
    def case(heads, past, new, dim, dtype=torch.float32):
        base = draw.choice([100.0, 300.0, 1000.0])
        cached = _turned_at(draw.normal(heads, past, dim) / 2, torch.arange(past), base)
        q, k = (draw.normal(heads, new, dim, dtype=dtype) / 2 for _each in range(2))
        what = (
            _("{past} tokens in the cache, {new} new, d_h = {dim}, bfloat16")
            if dtype == torch.bfloat16
            else _("{past} tokens in the cache, {new} new, d_h = {dim}")
        )
        return Case((q, k, cached.to(dtype), base), what.format(past=past, new=new, dim=dim))

    return [
        case(2, 0, 5, 8),
        case(3, draw.integer(6, 9), 1, 6),
        case(2, draw.integer(4, 6), 3, 10),
        case(2, draw.integer(300, 400), 3, 8, torch.bfloat16),
    ]


def _turned_at(x, positions, base):
    return _pairs_turned(x, _rope_angles(positions, x.shape[-1], base))


def _cached_scores(q, k, cached, base):
    past, new = cached.shape[-2], q.shape[-2]
    positions = past + torch.arange(new)
    keys = torch.cat([cached, _turned_at(k, positions, base)], dim=-2)
    return _turned_at(q, positions, base) @ keys.mT / math.sqrt(q.shape[-1])


def _cached(
    query=lambda past, new: past + torch.arange(new),
    key=lambda past, new: past + torch.arange(new),
    again=False,
    rounded=False,
    turn=_turned_at,
    join=lambda cached, k: torch.cat([cached, k], -2),
    scale=lambda d: math.sqrt(d),
):
    """cached_scores with other positions, another order or rotation; ``again``: the cache is turned, too."""

    def answer(q, k, cached, base):
        past, new, d = cached.shape[-2], *q.shape[-2:]

        def place(x, positions):
            if rounded:
                return _pairs_turned(x, _rope_angles(positions, d, base).to(x.dtype))
            return turn(x, positions, base)

        k = place(k, key(past, new))
        cached = place(cached, torch.arange(past)) if again else cached
        return place(q, query(past, new)) @ join(cached, k).mT / scale(d)

    return answer


def _all_moved_on(q, k, cached, base):
    """The same with all positions moved on by P. But for rounding, nobody could tell the two apart."""

    def place(x):
        angles = _rope_angles(cached.shape[-2] + torch.arange(x.shape[-2]), x.shape[-1], base)
        return _pairs_turned(x, angles.to(x.dtype))

    return place(q) @ place(torch.cat([cached, k], dim=-2)).mT / math.sqrt(q.shape[-1])


def _from_zero(past, new):
    return torch.arange(new)


FAULTS = {
    "again": (
        "the cache turned twice",
        "The keys in the cache are turned a second time. They were turned when they came in, so now "
        "they stand at twice their position.",
    ),
    "query": (
        "queries counted from 0",
        "The new queries count from 0. Their row is not their place: with a cache, the first new token "
        "comes after all that is in it.",
    ),
    "rounded": (
        "angles in the dtype of q",
        "Angles are rounded to the dtype of q. In bfloat16, an angle beyond 256 radians is off by up "
        "to one, so neighbours share it; float32 tests never show it.",
    ),
}


def _fault_left(faults: tuple[str, ...]) -> Wrong:
    """The broken version with some of its three faults still in it."""
    answer = _cached(**{fault: _from_zero if fault == "query" else True for fault in faults})
    if len(faults) == len(FAULTS):
        return Wrong(
            "as given",
            answer,
            "This does what the given version does: it is right with an empty "
            "cache, and wrong with a full one. Three faults are in it; follow one cached key and "
            "one new query by hand.",
            CACHES,
        )
    if faults == ("again", "query"):
        return Wrong(
            "the cache turned twice and queries counted from 0",
            answer,
            "The cached keys are turned a second time, and a new query stands P places before its "
            "own key. (To move both on together mends nothing: scores are relative.)",
            CACHES,
        )
    says = FAULTS[faults[0]][1] + (" One more fault is left." if len(faults) > 1 else "")
    return Wrong(
        " and ".join(FAULTS[fault][0] for fault in faults),
        answer,
        says,
        BUGS if faults == ("rounded",) else CACHES,
    )


CACHED_SCORES = Question(
    name="cached_scores",
    exercise="06",
    title="Repair the scores of new tokens with a cache of keys.",
    returns="a tensor of shape [H, n, P + n], in the dtype of q",
    section=CACHES,
    draw=_cached_cases,
    reference=_cached_scores,
    picture="heat",
    wrong=(
        *[_fault_left(faults) for count in (3, 2, 1) for faults in itertools.combinations(FAULTS, count)],
        Wrong(
            "as given, all positions moved on",
            _all_moved_on,
            "You have moved *all* positions on, those of the list of keys, too. Scores are relative, so "
            "that mends nothing. Which of the keys have been turned before they come here?",
            CACHES,
        ),
        Wrong(
            "new keys counted from 0",
            _cached(key=_from_zero),
            "The new keys count from 0, the queries do not. A new token should see itself at offset 0: "
            "look at the last columns.",
        ),
        Wrong(
            "new tokens counted from 0",
            _cached(_from_zero, _from_zero),
            "Queries and new keys both count from 0. Among themselves they fit; to the cache they stand at "
            "its very beginning, so the first columns are wrong.",
        ),
        Wrong(
            "one position too far",
            _cached(*[lambda past, new: past + 1 + torch.arange(new)] * 2),
            "The new tokens stand one place too far: the cache ends at position P − 1. With an empty "
            "cache the first token must stand at 0.",
        ),
        Wrong(
            "all at the last position",
            _cached(*[lambda past, new: torch.full((new,), past + new - 1)] * 2),
            "All new tokens get the last position. That is right for one new token and wrong for several: "
            "they come one after the other.",
        ),
        Wrong(
            "all at the length of the cache",
            _cached(*[lambda past, new: torch.full((new,), past)] * 2),
            "All new tokens get the same position, the first one after the cache. That is right for one "
            "new token and wrong for several: they come one after the other.",
        ),
        Wrong(
            "queries one before",
            _cached(lambda past, new: past - 1 + torch.arange(new)),
            "The queries stand one place before the keys of the same tokens. A token should see itself at "
            "offset 0.",
        ),
        Wrong(
            "new keys first",
            _cached(join=lambda cached, k: torch.cat([k, cached], -2)),
            "The new keys stand before those of the cache. The text goes on after it, so their columns "
            "are the last ones.",
        ),
        Wrong(
            "new keys not turned",
            lambda q, k, cached, base: (
                _turned_at(q, cached.shape[-2] + torch.arange(q.shape[-2]), base)
                @ torch.cat([cached, k], -2).mT
                / math.sqrt(q.shape[-1])
            ),
            "The new keys are not turned at all. Those of the cache are, so the two kinds do not fit.",
        ),
        Wrong(
            "queries not turned",
            lambda q, k, cached, base: (
                q
                @ torch.cat(
                    [cached, _turned_at(k, cached.shape[-2] + torch.arange(q.shape[-2]), base)], -2
                ).mT
                / math.sqrt(q.shape[-1])
            ),
            "The queries are not turned. Then the score depends on the place of the key alone.",
            PAIR,
        ),
        Wrong(
            "positions in the dtype of q",
            _cached(turn=lambda x, positions, base: _turned_at(x, positions.to(x.dtype).float(), base)),
            "Positions are rounded to the dtype of q. In bfloat16, neighbours beyond 256 stand at one "
            "place; float32 tests never show it.",
            BUGS,
        ),
        Wrong(
            "future hidden",
            lambda q, k, cached, base: _cached_scores(q, k, cached, base).masked_fill(
                torch.ones(q.shape[-2], cached.shape[-2] + q.shape[-2], dtype=torch.bool).triu(
                    cached.shape[-2] + 1
                ),
                -math.inf,
            ),
            "The scores are right, but those of later keys are hidden. No mask is asked for here: all "
            "P + n keys get a score.",
        ),
        Wrong(
            "no scale",
            _cached(scale=lambda d: 1),
            "The division by √d_h, which the given version had, is gone: the softmax becomes too sharp.",
        ),
        Wrong(
            "the other layout",
            _cached(
                turn=lambda x, positions, base: _rope_rotate(
                    x, _rope_angles(positions, x.shape[-1], base), "half"
                )
            ),
            "You turn pairs that stand half a head apart; the keys in the cache were turned as "
            "neighbours. The two layouts can't be mixed.",
            LAYOUTS,
        ),
        Wrong(
            "one position short",
            _cached(*[lambda past, new: past - 1 + torch.arange(new)] * 2),
            "The new tokens stand one place too early: the first of them takes the place of the last one in "
            "the cache.",
        ),
    ),
    variants=(
        Variant(
            "the cache turned back first",
            lambda q, k, cached, base: (
                _turned_at(q, cached.shape[-2] + torch.arange(q.shape[-2]), base)
                @ _turned_at(
                    torch.cat(
                        [_turned_at(cached.float(), -torch.arange(cached.shape[-2]), base), k.float()], -2
                    ),
                    torch.arange(cached.shape[-2] + q.shape[-2]),
                    base,
                )
                .to(q.dtype)
                .mT
                / math.sqrt(q.shape[-1])
            ),
            "Turning the cache back and then everything anew costs time, and gives the same scores.",
        ),
        Variant(
            "positions of all, cut at the cache",
            _cached(*[lambda past, new: torch.arange(past + new)[past:]] * 2),
            "Counting the whole text and taking its end gives the same positions.",
        ),
        Variant(
            "computed in float32 throughout",
            lambda q, k, cached, base: _cached_scores(q.float(), k.float(), cached.float(), base).to(q.dtype),
            "More digits on the way, rounded at the end, are welcome.",
        ),
    ),
    hints=(
        "The given version passes with an empty cache in float32. Try it with a cache, and with bfloat16 at "
        "positions beyond 256: there are three faults.",
        "At which positions do the new tokens stand, and has everything in the list of keys still to be "
        "turned? In which dtype is an angle computed?",
        "New queries and new keys share their positions, which begin at the number of cached tokens. Angles "
        "are float32 until cosine and sine have been taken.",
    ),
)


# ---- rope_sort_rows ----
def _sort_rows_cases(draw: Draw) -> list[Case]:
    def case(heads, head_dim, rotary_dim, columns, target, dtype=torch.float32):
        shape = (heads * head_dim, *columns)
        what = (
            _('a weight of {heads} heads of {head_dim} channels, {rotary_dim} of them turned, to "{target}"')
            if columns
            else _(
                'a bias of {heads} heads of {head_dim} channels, {rotary_dim} of them turned, to "{target}"'
            )
        )
        return Case(
            (draw.normal(*shape, dtype=dtype), head_dim, rotary_dim, target),
            what.format(heads=heads, head_dim=head_dim, rotary_dim=rotary_dim, target=target),
        )

    return [
        case(3, 8, 8, (5,), "half"),
        case(2, 10, 6, (draw.integer(3, 7),), "half"),
        case(4, 6, 6, (24,), "interleaved"),
        case(3, 12, 8, (), "interleaved", torch.float64),
        case(1, 10, 10, (2,), draw.choice(["half", "interleaved"]), torch.bfloat16),
    ]


def _sorted_channels(rotary_dim, target):
    channels = torch.arange(rotary_dim)
    if target == "half":
        return torch.cat([channels[0::2], channels[1::2]])
    return channels.reshape(2, -1).T.flatten()


def _rope_sort_rows(weight, head_dim, rotary_dim, target):
    order = torch.cat([_sorted_channels(rotary_dim, target), torch.arange(rotary_dim, head_dim)])
    return weight.unflatten(0, (-1, head_dim))[:, order].flatten(0, 1)


def _ordered(order):
    """rope_sort_rows with another order of the channels of a head."""
    return lambda weight, head_dim, rotary_dim, target: weight.unflatten(0, (-1, head_dim))[
        :, order(head_dim, rotary_dim, target)
    ].flatten(0, 1)


def _with_rest(order):
    return _ordered(lambda d, r, target: torch.cat([order(r, target), torch.arange(r, d)]))


def _first_head_only(weight, head_dim, rotary_dim, target):
    done = _rope_sort_rows(weight[:head_dim], head_dim, rotary_dim, target)
    return torch.cat([done, weight[head_dim:]])


ROPE_SORT_ROWS = Question(
    name="rope_sort_rows",
    exercise="06",
    title="Sort the rows of W_Q or W_K for the other layout, where only part of each head is turned.",
    returns="a tensor with the shape and the dtype of the weight",
    section=LAYOUTS,
    draw=_sort_rows_cases,
    reference=_rope_sort_rows,
    picture="heat",
    bonus=True,
    wrong=(
        Wrong(
            "the other direction",
            _with_rest(lambda r, target: _sorted_channels(r, _other(target))),
            "You sort the wrong way round: rows that are interleaved are sorted as if they were halves. A "
            "head of four channels hides it, since there both ways are the same.",
            LAYOUTS,
        ),
        Wrong(
            "always to half",
            _with_rest(lambda r, target: _sorted_channels(r, "half")),
            "The rows always go to the half layout, whatever `target` says. Sorting there and back must "
            "give the old weight.",
            LAYOUTS,
        ),
        Wrong(
            "always to interleaved",
            _with_rest(lambda r, target: _sorted_channels(r, "interleaved")),
            "The rows always go to the interleaved layout, whatever `target` says. Sorting there and back "
            "must give the old weight.",
            LAYOUTS,
        ),
        Wrong(
            "across the heads",
            lambda weight, head_dim, rotary_dim, target: weight[_sorted_channels(len(weight), target)],
            "The rows are sorted across all heads, so heads get rows of other heads. Each head is sorted "
            "for itself. With one head the two are the same.",
            LAYOUTS,
        ),
        Wrong(
            "unturned channels sorted, too",
            _ordered(lambda d, r, target: _sorted_channels(d, target)),
            "All channels of a head are sorted. Only the first `rotary_dim` of them have partners; the "
            "others are never turned and stay where they are.",
            PARTIAL,
        ),
        Wrong(
            "all channels, and always to half",
            _ordered(lambda d, r, target: _sorted_channels(d, "half")),
            "Each head is sorted as a whole, and always to the half layout: `rotary_dim` and `target` play "
            "no part. (Llama's converter does the same: its model turns all channels.)",
            PARTIAL,
        ),
        Wrong(
            "the last channels sorted",
            _ordered(
                lambda d, r, target: torch.cat([torch.arange(d - r), d - r + _sorted_channels(r, target)])
            ),
            "You sort the last channels of each head. The turned ones are the first.",
            PARTIAL,
        ),
        Wrong(
            "unturned channels first",
            _ordered(lambda d, r, target: torch.cat([torch.arange(r, d), _sorted_channels(r, target)])),
            "The channels that are not turned have moved to the front of the head. They should stay where "
            "they are.",
            PARTIAL,
        ),
        Wrong(
            "unturned channels dropped",
            _ordered(lambda d, r, target: _sorted_channels(r, target)),
            "The channels that are not turned are gone: each head has become narrower. They carry content, "
            "so they stay.",
            PARTIAL,
        ),
        Wrong(
            "unturned channels set to 0",
            lambda weight, head_dim, rotary_dim, target: (
                _rope_sort_rows(weight, head_dim, rotary_dim, target).unflatten(0, (-1, head_dim))
                * (torch.arange(head_dim) < rotary_dim).to(weight.dtype).view(1, -1, *[1] * (weight.ndim - 1))
            ).flatten(0, 1),
            "The rows that are not turned are 0. They carry content, so they stay as they were.",
            PARTIAL,
        ),
        Wrong(
            "second of each pair first",
            _with_rest(
                lambda r, target: (
                    _sorted_channels(r, target).view(2, -1).flip(0).flatten()
                    if target == "half"
                    else _sorted_channels(r, target).view(-1, 2).flip(1).flatten()
                )
            ),
            "The second channel of each pair stands first. Then each pair is turned the wrong way round.",
            SIGNS,
        ),
        Wrong(
            "columns in place of rows",
            lambda weight, head_dim, rotary_dim, target: (
                _rope_sort_rows(weight.mT, head_dim, rotary_dim, target).mT
            ),
            "You sort columns. Columns belong to what comes in; the channels of q and k are the rows of "
            "W_Q and W_K. A bias, which has one axis, shows it at once.",
            LAYOUTS,
        ),
        Wrong(
            "heads and channels exchanged",
            lambda weight, head_dim, rotary_dim, target: weight.unflatten(0, (head_dim, -1))[
                torch.cat([_sorted_channels(rotary_dim, target), torch.arange(rotary_dim, head_dim)])
            ].flatten(0, 1),
            "You cut the rows into channels first, heads second. They lie head after head: the first d_h "
            "rows are the first head.",
            LAYOUTS,
        ),
        Wrong(
            "first head only",
            _first_head_only,
            "Only the first head is sorted. The others keep the old layout.",
            LAYOUTS,
        ),
        Wrong(
            "nothing done",
            lambda weight, head_dim, rotary_dim, target: weight.clone(),
            "The rows are as they were. Shapes fit, and the model would read each channel with another "
            "partner.",
            LAYOUTS,
        ),
    ),
    variants=(
        Variant(
            "index of all rows",
            lambda weight, head_dim, rotary_dim, target: weight[
                torch.cat(
                    [
                        start
                        + torch.tensor([*_sorted_channels(rotary_dim, target), *range(rotary_dim, head_dim)])
                        for start in range(0, len(weight), head_dim)
                    ]
                )
            ],
            "One long list of rows is as good as a reshape.",
        ),
        Variant(
            "written into an empty copy",
            lambda weight, head_dim, rotary_dim, target: torch.empty_like(weight).index_copy(
                0,
                torch.cat(
                    [
                        start
                        + torch.cat(
                            [_sorted_channels(rotary_dim, _other(target)), torch.arange(rotary_dim, head_dim)]
                        )
                        for start in range(0, len(weight), head_dim)
                    ]
                ),
                weight,
            ),
            "Saying where each row goes is the inverse of saying where it comes from.",
        ),
        Variant(
            "view and transpose",
            lambda weight, head_dim, rotary_dim, target: torch.cat(
                [
                    torch.cat(
                        [
                            head[:rotary_dim]
                            .reshape(*((-1, 2) if target == "half" else (2, -1)), *head.shape[1:])
                            .transpose(0, 1)
                            .reshape(rotary_dim, *head.shape[1:]),
                            head[rotary_dim:],
                        ]
                    )
                    for head in weight.split(head_dim)
                ]
            ),
            "A reshape and a transpose sort without any index.",
        ),
    ),
    hints=(
        "First cut the rows into heads. Then the question is one of a single head: in which order do its "
        "channels come?",
        "To half: first all first channels, then all second ones. To interleaved: the inverse. What is not "
        "turned keeps its place at the end of each head.",
        "Write down the order of six channels for both targets and check that one undoes the other. Then "
        "index the channel axis with it.",
    ),
)

QUESTIONS = (ROPE_ANGLES, ROPE_ROTATE, ROPE_SHIFT_ERROR, CACHED_SCORES, ROPE_SORT_ROWS)
