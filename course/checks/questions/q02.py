"""Exercise 02: the sinusoidal encoding, its layouts, its rotation and its precision."""

from __future__ import annotations

import math

import torch

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong

EQUATION = '02, section "The equation"'
PRECISION = 'deeper/02_details, section "Find the bug"'
ROTATION = '02, section "Regular: a shift is a rotation"'
SCORES = 'deeper/02_scores, section "What two positions say to each other"'
LAYOUTS = 'deeper/02_details, section "Two layouts"'
#: Twenty times what float32 loses at the positions drawn here, and half of what 16 bits lose.
EXACT = (2e-4, 3e-5)


# ---- sinusoid_table ----
def _sinusoid_table_cases(draw: Draw) -> list[Case]:
    length = draw.integer(4, 7)
    return [
        Case(
            (torch.arange(length), 8, 10_000.0),
            _("d = 8, L = {length}, from position 0").format(length=length),
        ),
        Case((torch.arange(5) + draw.integer(9, 40), 6, 10_000.0), _("d = 6, positions that start later")),
        Case(
            (draw.permutation(6) + draw.integer(3, 20), 12, draw.choice([50.0, 500.0])),
            _("d = 12, positions out of order, another base"),
        ),
        Case((torch.arange(4) + draw.integer(2, 9), 7, 10_000.0), _("an odd width, d = 7")),
        Case(
            (torch.arange(5).float() * 20.77 + draw.number(0.3, 0.7) - 30, 4, 100.0),
            _("d = 4, fractional and negative positions, base 100"),
        ),
    ]


def _table_of(angle, d):
    """Interleaved sines and cosines of the angles [L, pairs], cut to d columns."""
    return torch.stack([angle.sin(), angle.cos()], 2).reshape(len(angle), -1)[:, :d]


def _angles(positions, d, base):
    exponents = torch.arange(0, d, 2, dtype=torch.float64) / d
    return (positions.double().unsqueeze(1) * base**-exponents).float()


def _sinusoid_table(positions, d, base):
    return _table_of(_angles(positions, d, base), d)


def _spaced(exponents):
    """The table with other exponents: ``exponents(t, d)`` of pair t."""

    def answer(positions, d, base):
        t = torch.arange((d + 1) // 2, dtype=torch.float64)
        return _table_of((positions.double()[:, None] * base ** -exponents(t, d)).float(), d)

    return answer


def _concatenated(positions, d, base):
    angle = _angles(positions, d, base)
    return torch.cat([angle.sin(), angle[:, : d // 2].cos()], 1)


def _even_widths_only(positions, d, base):
    table, angle = torch.empty(len(positions), d), _angles(positions, d, base)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


def _a_frequency_per_column(positions, d, base):
    angle = positions[:, None].double() * base ** -(torch.arange(d).double() / d)
    return torch.where(torch.arange(d) % 2 == 0, angle.sin(), angle.cos()).float()


def _odd_column_empty(positions, d, base):
    table, angle = torch.zeros(len(positions), d), _angles(positions, d, base)[:, : d // 2]
    table[:, 0 : d // 2 * 2 : 2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


def _sinusoid_table_loop(positions, d, base):
    wave = (math.sin, math.cos)
    return [[wave[c % 2](p / base ** ((c - c % 2) / d)) for c in range(d)] for p in positions.tolist()]


SINUSOID_TABLE = Question(
    name="sinusoid_table",
    exercise="02",
    title="The sinusoidal encoding of any positions, in the layout of the paper.",
    returns="a float32 tensor of shape [L, d]",
    section=EQUATION,
    draw=_sinusoid_table_cases,
    reference=_sinusoid_table,
    picture="heat",
    tolerance=EXACT,
    wrong=(
        Wrong(
            "exponent counts pairs, not columns",
            _spaced(lambda t, d: t / d),
            "The exponent runs over t / d, not over 2t / d. The hands then get slower by half the steps, "
            "and the slowest one is about a hundred times too fast for base 10000.",
        ),
        Wrong(
            "a frequency for each column",
            _a_frequency_per_column,
            "Each column has a frequency of its own. A sine and a cosine share one: only together do they "
            "say where the hand stands on its circle.",
        ),
        Wrong(
            "the spacing of the released code",
            _spaced(lambda t, d: t / max(len(t) - 1, 1)),
            "The last frequency is exactly 1 / base. That is how the released code spaces them; in the "
            "paper's equation the last hand is a little faster than that.",
        ),
        Wrong(
            "frequencies rise",
            lambda positions, d, base: (  # float32: such large angles depend on the dtype
                _table_of(positions.float()[:, None] * base ** (torch.arange(0, d, 2) / float(d)), d)
            ),
            "The sign of the exponent is missing: the frequencies rise up to nearly the base. No hand may "
            "turn faster than 1 radian per position.",
        ),
        Wrong(
            "all sines first",
            _concatenated,
            "The columns are right, their order is not: all sines, then all cosines. In the paper sine and "
            'cosine alternate. See "Two layouts" in the side quest on details.',
        ),
        Wrong(
            "cosine before sine",
            lambda positions, d, base: torch.stack(
                [_angles(positions, d, base).cos(), _angles(positions, d, base).sin()], 2
            ).flatten(1)[:, :d],
            "Each pair starts with its cosine. At position 0 the row must read 0, 1, 0, 1, …",
        ),
        Wrong(
            "sines only",
            lambda positions, d, base: _angles(positions, d, base).sin().repeat_interleave(2, 1)[:, :d],
            "Both columns of a pair are sines. One sine has the same value on its way up and on its way "
            "down; the second column is there to tell them apart.",
        ),
        Wrong(
            "angles, not their sines",
            lambda positions, d, base: _angles(positions, d, base).repeat_interleave(2, 1)[:, :d],
            "These are the angles. They grow with the position, so the table is not bounded.",
        ),
        Wrong(
            "full turns instead of radians",
            lambda positions, d, base: _table_of(2 * math.pi * _angles(positions, d, base), d),
            "The angles are multiplied by 2π: the first hand makes one full turn per position, so it "
            "stands still at whole positions. The equation has radians.",
        ),
        *[
            Wrong(
                name,
                lambda positions, d, base, factor=factor: _table_of(factor * _angles(positions, d, base), d),
                "Degrees and radians are mixed up. The angle p ω is in radians already, and torch.sin "
                "takes radians: nothing is to be converted.",
            )
            for name, factor in (("degrees", 180 / math.pi), ("angles taken for degrees", math.pi / 180))
        ],
        Wrong(
            "positions counted from 1",
            lambda positions, d, base: _sinusoid_table(positions + 1, d, base),
            "Every position is one too high. At position 0 the row must read 0, 1, 0, 1, …",
        ),
        Wrong(
            "logarithm to the base 2",
            _spaced(lambda t, d: 2 * t / d / math.log(2)),
            "The frequencies fall too fast: a logarithm to the base 2 stands where the exponential needs "
            "the natural one. exp undoes ln, not log2.",
        ),
        Wrong(
            "row number instead of position",
            lambda positions, d, base: _sinusoid_table(torch.arange(len(positions)), d, base),
            "Row i holds the encoding of i, whatever `positions` says. A text that is continued from a "
            "cache would start again at 0.",
        ),
        Wrong(
            "base fixed at 10000",
            lambda positions, d, base: _sinusoid_table(positions, d, 10_000.0),
            "The table does not depend on the argument `base`: it is right for 10000 only.",
        ),
        Wrong(
            "positions cut to whole numbers",
            lambda positions, d, base: _sinusoid_table(positions.long(), d, base),
            "Positions lose their fraction. A sine is defined between two whole numbers, too, and "
            "interpolated positions need it.",
        ),
        Wrong(
            "even widths only",
            _even_widths_only,
            "For an odd d there is one sine more than there are cosines, and the assignment of the columns "
            "fails. The last frequency keeps its sine and loses its cosine.",
        ),
        Wrong(
            "odd width left empty",
            _odd_column_empty,
            "For an odd d the last column is 0 everywhere. There is a frequency left for it: it gets a "
            "sine without a cosine.",
        ),
        Wrong(
            "one column too many, then cut",
            _spaced(lambda t, d: 2 * t / (2 * len(t))),
            "For an odd d you build the table of width d + 1 and cut it. Then all frequencies but the "
            "first are those of d + 1.",
        ),
        *(
            Wrong(
                name,
                lambda positions, d, base, step=step: _table_of(
                    (
                        positions.double()[:, None]
                        * (base**-2 * torch.arange(0, step * -(-d // 2), step) / d)
                    ).float(),
                    d,
                ),
                "A power binds tighter than a product: without brackets, base ** −2 is taken first, and then "
                "multiplied and divided. The whole exponent needs brackets.",
            )
            for name, step in (
                ("a power and a product, without brackets", 1),
                ("a power and a product, without brackets, by columns", 2),
            )
        ),
        Wrong(
            "pairs counted from 1",
            _spaced(lambda t, d: 2 * (t + 1) / d),
            "The pairs are counted from 1. With t = 0 the first hand turns by one radian for each position.",
        ),
    ),
    variants=(
        Variant("column by column", _sinusoid_table_loop, "One number at a time gives the same table."),
        Variant(
            "complex numbers",
            lambda positions, d, base: (
                torch.view_as_real(torch.polar(torch.ones(()), _angles(positions, d, base)))
                .flip(-1)
                .flatten(1)[:, :d]
            ),
            "A hand on a clock is a complex number of size 1; its parts are cosine and sine.",
        ),
        Variant(
            "exp of a logarithm",
            lambda positions, d, base: _table_of(
                torch.outer(positions.float(), torch.exp(-math.log(base) / d * torch.arange(0, d, 2))), d
            ),
            "exp(−2t ln(base) / d) is the same frequency.",
        ),
    ),
    hints=(
        "Pair t has one frequency and fills two columns. How many pairs begin within d columns?",
        "A column of positions times a row of frequencies gives the angles. Then the sine goes to the even "
        "columns, the cosine to the odd ones.",
        "There are ceil(d / 2) frequencies and floor(d / 2) cosines. Cut the cosines to the columns that "
        "there are.",
    ),
)


# ---- sinusoid_add ----
def _sinusoid_add_cases(draw: Draw) -> list[Case]:
    settings = (
        (_("float32, from position 0"), 2, 6, 8, 0, torch.float32),
        (_("float32, a text that goes on from a cache"), 3, 4, 6, draw.integer(20, 50), torch.float32),
        (_("bfloat16, from position 0"), 2, 5, 8, 0, torch.bfloat16),
        (_("bfloat16, beyond position 256"), 1, 9, 12, draw.integer(1500, 1900), torch.bfloat16),
        (_("float16, beyond position 2048"), 2, 7, 10, draw.integer(2100, 2900), torch.float16),
    )
    cases = []
    for what, batch, length, d, start, dtype in settings:
        x = draw.uniform(batch, length, d, low=-1, high=1).to(dtype)
        what = _("{what}, B = {batch}, L = {length}, d = {d}").format(
            what=what, batch=batch, length=length, d=d
        )
        cases.append(Case((x, torch.arange(length) + start), what))
    return cases


def _sinusoid_add(x, positions):
    return (x.float() + _sinusoid_table(positions, x.shape[-1], 10_000.0)).to(x.dtype)


def _rounded_add(positions_in=torch.float32, omega_in=torch.float32, angle_in=torch.float32):
    """Adds the encoding; where None stands for a dtype, that step runs in the dtype of x."""

    def answer(x, positions):
        d = x.shape[-1]
        omega = 10000 ** (-torch.arange(0, d, 2, dtype=omega_in or x.dtype) / d)
        angle = positions.to(positions_in or x.dtype)[:, None] * omega
        angle = angle.to(angle_in or x.dtype)
        return x + torch.stack([angle.sin(), angle.cos()], -1).flatten(1).to(x.dtype)

    return answer


def _added(table):
    return lambda x, positions: (x.float() + table(x, positions)).to(x.dtype)


SINUSOID_ADD = Question(
    name="sinusoid_add",
    exercise="02",
    title="Position vectors added to token vectors of any dtype.",
    returns="a tensor of the shape and the dtype of x",
    section=PRECISION,
    draw=_sinusoid_add_cases,
    reference=_sinusoid_add,
    picture="heat",
    tolerance=EXACT,
    wrong=(
        Wrong(
            "everything in the dtype of the model",
            _rounded_add(None, None, None),
            "Far into a text, neighbouring tokens still get the same vector in 16 bits. In float32 nobody "
            "notices. Print each step of the code for the positions 1501 and 1502, in both dtypes.",
        ),
        Wrong(
            "only the positions are rounded",
            _rounded_add(positions_in=None),
            "The frequencies are exact now, the positions are not: in bfloat16 several neighbours are "
            "rounded to one number, and so share one vector.",
        ),
        Wrong(
            "only the frequencies are rounded",
            _rounded_add(omega_in=None),
            "The positions are exact now, the frequencies are rounded to the dtype of x. That is a small "
            "error per step, and it is multiplied by the position.",
        ),
        Wrong(
            "the angles are rounded",
            _rounded_add(angle_in=None),
            "Positions and frequencies are exact, but the angle is rounded before its sine is taken. An "
            "angle of 1501 radians that is rounded to 1504 is another angle.",
        ),
        Wrong(
            "the result has another dtype",
            lambda x, positions: x + _sinusoid_table(positions, x.shape[-1], 10_000.0),
            "The numbers are right, but the result is float32 whatever x is. All layers after it would "
            "run in float32, or fail.",
        ),
        Wrong(
            "row number instead of position",
            lambda x, positions: _sinusoid_add(x, torch.arange(len(positions))),
            "Row i gets the vector of i, whatever `positions` says. That hides the rounding, too: small "
            "numbers are exact in every dtype.",
        ),
        Wrong(
            "positions of the batch",
            _added(
                lambda x, positions: _sinusoid_table(
                    positions[torch.arange(len(x)) % len(positions)], x.shape[-1], 10_000.0
                )[:, None]
            ),
            "Each sentence gets one vector for all its tokens: the table is laid along the batch axis.",
        ),
        Wrong(
            "all sines first",
            _added(lambda x, positions: _concatenated(positions, x.shape[-1], 10_000.0)),
            "The precision is right, but the layout has changed: all sines, then all cosines. Weights that "
            "were trained with the other one do not fit.",
        ),
        Wrong(
            "the token is lost",
            lambda x, positions: _sinusoid_table(positions, x.shape[-1], 10_000.0).expand_as(x).to(x.dtype),
            "These are the position vectors alone. The token vectors have to be added.",
        ),
        Wrong(
            "tokens scaled",
            lambda x, positions: _sinusoid_add(x * x.shape[-1] ** 0.5, positions),
            "The tokens are multiplied by √d. That belongs to some models, but it is not asked here.",
        ),
        Wrong(
            "cosine before sine",
            lambda x, positions: (
                x.float()
                + _sinusoid_table(positions, x.shape[-1], 1e4).unflatten(1, (-1, 2)).flip(2).flatten(1)
            ).to(x.dtype),
            "The precision is right, but each pair starts with its cosine now. Weights that were trained "
            "with the other order do not fit.",
        ),
    ),
    variants=(
        Variant(
            "float64 inside",
            lambda x, positions: (
                x.double()
                + torch.tensor(_sinusoid_table_loop(positions, x.shape[-1], 10_000.0), dtype=torch.float64)
            ).to(x.dtype),
            "Wider than needed, and right: what counts is that rounding comes last.",
        ),
        Variant(
            "the table is rounded, then added",
            lambda x, positions: x + _sinusoid_table(positions, x.shape[-1], 10_000.0).to(x.dtype),
            "Rounding the finished table is harmless: its entries lie between −1 and 1.",
        ),
    ),
    hints=(
        "Which numbers in the code become large? Print `torch.arange(1500, 1510).bfloat16()`.",
        "Everything up to the sine has to run in 32 bits; a sine is small and may be rounded.",
        "Choose the dtype of positions and of frequencies yourself, and convert once, at the end, to the "
        "dtype of x.",
    ),
)


# ---- shift_matrix ----
def _shift_matrix_cases(draw: Draw) -> list[Case]:
    return [
        Case((2 * draw.integer(1, 4) + 1, 6, 10_000.0), _("d = 6, some steps forward")),
        Case((-draw.integer(1, 12), 8, 10_000.0), _("d = 8, steps back")),
        Case(
            (draw.integer(0, 3) + draw.number(0.3, 0.7), 4, 100.0), _("d = 4, a fraction of a step, base 100")
        ),
        Case(
            (2 * draw.integer(10, 25), 10, draw.choice([30.0, 500.0])), _("d = 10, many steps, another base")
        ),
        Case((draw.integer(1, 3), 2, 10_000.0), _("d = 2, a single pair")),
    ]


def _shift_matrix(k, d, base):
    matrix = torch.zeros(d, d, dtype=torch.float64)
    for t in range(d // 2):
        angle = k / base ** (2 * t / d)
        sine, cosine, even, odd = math.sin(angle), math.cos(angle), 2 * t, 2 * t + 1
        matrix[even, even] = matrix[odd, odd] = cosine
        matrix[even, odd], matrix[odd, even] = sine, -sine
    return matrix.float()


def _blocks(block, angle=lambda k, t, d, base: k * base ** (-2 * t / d)):
    """A block-diagonal matrix: ``block(cos, sin)`` of the angle of each pair."""

    def answer(k, d, base):
        angles = [angle(k, t, d, base) for t in range(d // 2)]
        return torch.block_diag(*(torch.tensor(block(math.cos(a), math.sin(a))) for a in angles))

    return answer


def _right(c, s):
    return [[c, s], [-s, c]]


def _matrix_concatenated(k, d, base):
    angle = k * base ** -(torch.arange(0, d, 2) / d)
    c, s = angle.cos().diag(), angle.sin().diag()
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)], 0)


def _matrix_exponential(k, d, base):
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    omega = base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.linalg.matrix_exp(k * torch.kron(omega.diag(), turn)).float()


def _only_first_pair(k, d, base):
    matrix = torch.eye(d)
    matrix[:2, :2] = torch.tensor(_right(math.cos(k), math.sin(k)))
    return matrix


SHIFT_MATRIX = Question(
    name="shift_matrix",
    exercise="02",
    title="The matrix that moves every position vector k steps on.",
    returns="a float32 tensor of shape [d, d]",
    section=ROTATION,
    draw=_shift_matrix_cases,
    reference=_shift_matrix,
    picture="heat",
    tolerance=EXACT,
    wrong=(
        Wrong(
            "turned the other way",
            _blocks(lambda c, s: [[c, -s], [s, c]]),
            "This moves k steps back, not on: the two sines have exchanged their signs. The usual rotation "
            "matrix is for (cos, sin); in this encoding the sine comes first. Test it on two rows of a "
            "table.",
        ),
        Wrong(
            "one angle for all pairs",
            _blocks(_right, lambda k, t, d, base: k),
            "Each pair is turned by k radians. That is right for the first pair only; the others have "
            "slower hands.",
        ),
        Wrong(
            "only the first pair is turned",
            _only_first_pair,
            "Only the first pair moves. With k steps, each hand of the clock moves by its own angle.",
        ),
        Wrong(
            "exponent counts pairs, not columns",
            _blocks(_right, lambda k, t, d, base: k * base ** (-t / d)),
            "The frequencies belong to t / d, not to 2t / d, so the matrix does not fit the table.",
        ),
        Wrong(
            "frequencies rise",
            _blocks(_right, lambda k, t, d, base: k * base ** (2 * t / d)),
            "The sign of the exponent is missing: later pairs turn faster and faster. They should be the "
            "slow ones.",
        ),
        Wrong(
            "for all sines first",
            _matrix_concatenated,
            "This is the matrix of the other layout: it joins column t with column t + d / 2. Here the two "
            "columns of a pair are neighbours.",
        ),
        Wrong(
            "no minus sign",
            _blocks(lambda c, s: [[c, s], [s, c]]),
            "Both sines have the same sign. That is no rotation: lengths change. Compare the matrix times "
            "its transpose with the identity.",
        ),
        Wrong(
            "both sines negative",
            _blocks(lambda c, s: [[c, -s], [-s, c]]),
            "Both sines are negative. That is no rotation: lengths change. One of the two signs has to "
            "differ; the addition formula of the sine has a plus.",
        ),
        Wrong(
            "a reflection",
            _blocks(lambda c, s: [[c, s], [s, -c]]),
            "The blocks mirror instead of turning: their determinant is −1. With k = 0 nothing may change.",
        ),
        Wrong(
            "sine and cosine exchanged",
            _blocks(lambda c, s: [[s, c], [-c, s]]),
            "Sine and cosine have changed places. With k = 0 the matrix must be the identity.",
        ),
        Wrong(
            "cosines only",
            _blocks(lambda c, s: [[c, 0.0], [0.0, c]]),
            "The matrix is diagonal. It shortens both parts of a pair instead of mixing them.",
        ),
        Wrong(
            "whole steps only",
            lambda k, d, base: _shift_matrix(math.trunc(k), d, base),
            "k is cut to a whole number. Half a step is an angle as well.",
        ),
        Wrong(
            "base fixed at 10000",
            lambda k, d, base: _shift_matrix(k, d, 10_000.0),
            "The matrix does not depend on the argument `base`: it is right for 10000 only.",
        ),
        Wrong(
            "entries are moved",
            lambda k, d, base: torch.eye(d).roll(math.trunc(k), 0),
            "This moves the entries of the vector to other columns. The shift is one of positions: it "
            "turns each pair, and each column keeps its place.",
        ),
    ),
    variants=(
        Variant("block_diag", _blocks(_right), "Blocks along the diagonal, put together by PyTorch."),
        Variant(
            "matrix exponential",
            _matrix_exponential,
            "A rotation is the exponential of k times a fixed matrix: k steps are one step, k times.",
        ),
    ),
    hints=(
        "A pair (sin pω, cos pω) has to become (sin (p + k)ω, cos (p + k)ω). Write both with the addition "
        "formulas.",
        "The matrix is 0 outside of blocks of 2 × 2 along the diagonal, one block per pair.",
        "The first row of a block gives the new sine, sin pω cos kω + cos pω sin kω; the second the new "
        "cosine.",
    ),
)


# ---- offset_profile ----
def _offset_profile_cases(draw: Draw) -> list[Case]:
    return [
        Case((draw.normal(lq, lk, dtype=dtype) + 1,), f"Lq = {lq}, Lk = {lk}, {str(dtype).split('.')[1]}")
        for lq, lk, dtype in (
            (5, 5, torch.float32),
            (3, 6, torch.float32),
            (7, 4, torch.float32),
            (1, 5, torch.float32),
            (6, 8, torch.float64),
        )
    ]


def _offset_profile(scores):
    lq, lk = scores.shape
    return torch.stack([torch.diagonal(scores, r).mean() for r in range(1 - lq, lk)])


def _profile(value, offset=lambda i, j: j - i):
    """One number per offset, from a list of all scores at that offset."""

    def answer(scores):
        groups: dict[int, list] = {}
        for i, row in enumerate(scores):
            for j, score in enumerate(row):
                groups.setdefault(offset(i, j), []).append(score)
        return torch.stack([value(torch.stack(groups[r]), scores) for r in sorted(groups)])

    return answer


def _mean(group, scores):
    return group.mean()


def _profile_scatter(scores):
    lq, lk = scores.shape
    place = (torch.arange(lk) - torch.arange(lq)[:, None] + lq - 1).flatten()
    total = scores.new_zeros(lq + lk - 1).index_add(0, place, scores.flatten())
    return total / torch.bincount(place)


def _rolled_to_zero(scores):
    return _offset_profile(scores).roll(1 - scores.shape[0])


OFFSET_PROFILE = Question(
    name="offset_profile",
    exercise="02",
    title="The mean score of each offset.",
    returns="a tensor of shape [Lq + Lk − 1], in the dtype of the scores",
    section=SCORES,
    draw=_offset_profile_cases,
    reference=_offset_profile,
    picture="lines",
    axes=("offset, from the smallest", "mean score"),
    wrong=(
        Wrong(
            "query minus key",
            _profile(_mean, lambda i, j: i - j),
            "The profile runs backwards: the first entry belongs to the key that stands furthest behind "
            "the query. The offset is key position minus query position.",
        ),
        Wrong(
            "sums, not means",
            _profile(lambda group, scores: group.sum()),
            "These are sums. An offset that occurs often looks large, whatever its scores are.",
        ),
        Wrong(
            "divided by the number of queries",
            _profile(lambda group, scores: group.sum() / scores.shape[0]),
            "Each sum is divided by Lq. Most offsets occur less often than that: the ends are pulled towards "
            "0.",
        ),
        Wrong(
            "divided by the number of keys",
            _profile(lambda group, scores: group.sum() / scores.shape[1]),
            "Each sum is divided by Lk. Most offsets occur less often than that: the ends are pulled towards "
            "0.",
        ),
        Wrong(
            "one score per offset",
            _profile(lambda group, scores: group[0]),
            "Of each diagonal only one score is read. That is the mean only where the scores depend on "
            "nothing but the offset, and whether they do is what you want to find out.",
        ),
        Wrong(
            "sums of positions",
            _profile(_mean, lambda i, j: i + j),
            "The scores are grouped by p + q: these are the diagonals from the upper right to the lower "
            "left. An offset is a difference.",
        ),
        Wrong(
            "before and after taken together",
            _profile(_mean, lambda i, j: abs(j - i)),
            "Offsets of both signs are averaged together, so this cannot show whether before and after "
            "differ.",
        ),
        Wrong(
            "keys behind the query only",
            lambda scores: _offset_profile(scores)[scores.shape[0] - 1 :],
            "The profile starts at offset 0. The keys in front of the query are missing.",
        ),
        Wrong(
            "square scores only",
            lambda scores: torch.stack(
                [scores.diagonal(r).mean() for r in range(1 - scores.shape[0], scores.shape[0])]
            ),
            "The offsets run from 1 − Lq to Lq − 1. With more keys than queries some are missing; with "
            "fewer, you read diagonals that do not exist.",
        ),
        Wrong(
            "the number of keys on both sides",
            lambda scores: torch.stack(
                [
                    scores.diagonal(r).mean()
                    for r in range(1 - scores.shape[1], scores.shape[1])
                    if r > -scores.shape[0]
                ]
            ),
            "The offsets start at 1 − Lk. How far a key can stand in front of the query is a matter of the "
            "number of queries.",
        ),
        Wrong(
            "offset 0 first",
            _rolled_to_zero,
            "The means are right, but they start at offset 0, and the negative offsets come last. They "
            "should rise from the smallest to the largest.",
        ),
        Wrong(
            "means over keys",
            lambda scores: scores.mean(0),
            "This is the mean of each column: one number per key, not one per offset.",
        ),
        Wrong(
            "means over queries",
            lambda scores: scores.mean(1),
            "This is the mean of each row: one number per query, not one per offset.",
        ),
        Wrong(
            "query minus key, from the range of key minus query",
            lambda scores: torch.stack(
                [torch.diagonal(scores, -r).mean() for r in range(1 - scores.shape[0], scores.shape[1])]
            ),
            "You read the offset query − key where r = key − query is meant. For square scores the profile "
            "comes out backwards; for others you ask for offsets that do not exist.",
        ),
    ),
    variants=(
        Variant("scatter", _profile_scatter, "Adding each score into the bin of its offset is the same."),
        Variant("score by score", _profile(_mean), "A dictionary from offset to scores is slow and right."),
    ),
    hints=(
        "Where do all scores with the same offset stand in the matrix?",
        "`torch.diagonal` takes an offset of its own. Which is the lowest, which the highest one that "
        "exists?",
        "From −(Lq − 1) to Lk − 1, both included; one mean for each.",
    ),
)


# ---- sinusoid_concat ----
def _sinusoid_concat_cases(draw: Draw) -> list[Case]:
    return [
        Case((torch.arange(draw.integer(4, 7)), 8), _("d = 8, from position 0")),
        Case((torch.arange(5) + draw.integer(9, 40), 10), _("d = 10, positions that start later")),
        Case((draw.permutation(6) + draw.integer(3, 20), 7), _("an odd width, d = 7")),
        Case((torch.arange(4) + draw.integer(2, 9), 2), _("a single frequency, d = 2")),
        Case((torch.arange(3) + draw.integer(2, 9), 3), _("a single frequency and an odd width, d = 3")),
    ]


def _concat_of(frequencies, last=lambda sines, cosines, d: torch.zeros(len(sines), d % 2)):
    """Sines, cosines, and what comes after them, for ``frequencies(h, d)``, h = floor(d / 2)."""

    def answer(positions, d):
        angle = positions[:, None].double() * frequencies(d // 2, d)
        sines, cosines = angle.sin().float(), angle.cos().float()
        return torch.cat([sines, cosines, last(sines, cosines, d)], 1)

    return answer


def _ramp(h):
    return torch.arange(h, dtype=torch.float64)


def _released(h, d):
    return 10_000.0 ** -(_ramp(h) / max(h - 1, 1))


def _sinusoid_concat(positions, d):
    half = d // 2
    rates = torch.logspace(0, -4, half, dtype=torch.float64) if half > 1 else torch.ones(1)
    angle = torch.outer(positions.double(), rates.double()).float()
    return torch.nn.functional.pad(torch.cat([angle.sin(), angle.cos()], dim=1), (0, d % 2))


def _fails_for_one_frequency(h, d):
    return 10_000.0 ** -(_ramp(h) * (1 / (h - 1)))


def _concat_then(change):
    return lambda positions, d: change(_concat_of(_released)(positions, d), d)


def _zero_between(table, d):
    h = d // 2
    return torch.cat([table[:, :h], table[:, 2 * h :], table[:, h : 2 * h]], 1)


def _concat_row_by_row(positions, d):
    h = d // 2
    rates = [1e4 ** (-t / (h - 1)) if t else 1.0 for t in range(h)]
    return [
        [math.sin(p * w) for w in rates] + [math.cos(p * w) for w in rates] + [0.0] * (d % 2)
        for p in positions.tolist()
    ]


SINUSOID_CONCAT = Question(
    name="sinusoid_concat",
    exercise="02",
    title="The table of the released code, for any width.",
    returns="a float32 tensor of shape [L, d]",
    section=LAYOUTS,
    draw=_sinusoid_concat_cases,
    reference=_sinusoid_concat,
    picture="heat",
    tolerance=EXACT,
    bonus=True,
    wrong=(
        Wrong(
            "the paper's frequencies",
            _concat_of(lambda h, d: 10_000.0 ** -(2 * _ramp(h) / d)),
            "The sines stand first, but the frequencies are those of the paper. The released code spaces "
            "them so that the last one is exactly 1/10000.",
        ),
        Wrong(
            "the paper's frequencies, counted in halves",
            _concat_of(lambda h, d: 10_000.0 ** -(_ramp(h) / h)),
            "The exponent is divided by the number of frequencies. Then the last one is not 1/10000: from "
            "the first to the last there is one step less.",
        ),
        Wrong(
            "frequencies spaced by a difference",
            _concat_of(lambda h, d: torch.linspace(1, 1e-4, h, dtype=torch.float64)),
            "The first and the last frequency are right. But between them you take steps of equal size: from "
            "one frequency to the next it should always be the same factor.",
        ),
        Wrong(
            "divided by zero, NaN",
            _concat_of(lambda h, d: 10_000.0 ** -(_ramp(h) / (h - 1))),
            "With a single frequency, d = 2 or 3, you divide 0 by 0: the table is NaN. The one frequency "
            "there is, is 1.",
        ),
        Wrong(
            "divided by zero",
            _concat_of(_fails_for_one_frequency),
            "With a single frequency, d = 2 or 3, you divide by 0. The one frequency there is, is 1.",
        ),
        Wrong(
            "half of an odd width is a fraction",
            _concat_of(lambda h, d: 10_000.0 ** -(_ramp(h) / max(d / 2 - 1, 0.5))),
            "For an odd d your divisor, d / 2 − 1, is not a whole number. Round d / 2 down first: it counts "
            "frequencies.",
        ),
        Wrong(
            "sine and cosine alternate",
            lambda positions, d: torch.nn.functional.pad(
                _table_of((positions[:, None].double() * _released(d // 2, d)).float(), d - d % 2), (0, d % 2)
            ),
            "The frequencies are those of the released code, the layout is the paper's: sine and cosine "
            "alternate. A trained model would read most columns as something else.",
        ),
        Wrong(
            "cosines first",
            _concat_then(
                lambda table, d: torch.cat(
                    [table[:, d // 2 : d // 2 * 2], table[:, : d // 2], table[:, d // 2 * 2 :]], 1
                )
            ),
            "The cosines stand in front. At position 0 the first half of the row must be 0, the second 1.",
        ),
        Wrong(
            "odd width, one column missing",
            _concat_then(lambda table, d: table[:, : d - d % 2]),
            "For an odd d the table is one column short: it does not fit the token vectors.",
        ),
        Wrong(
            "odd width, zeros in the middle",
            _concat_then(_zero_between),
            "For an odd d the zeros stand between sines and cosines. They belong in the last column.",
        ),
        Wrong(
            "odd width, zeros in front",
            _concat_then(lambda table, d: table.roll(d % 2, 1)),
            "For an odd d the zeros stand in the first column. They belong in the last one.",
        ),
        Wrong(
            "odd width, a column twice",
            _concat_of(
                _released, lambda sines, cosines, d: cosines[:, : d % 2 * len(cosines)][:, -1:][:, : d % 2]
            ),
            "For an odd d your last column repeats the last cosine. It should be 0.",
        ),
        Wrong(
            "one sine more than cosines",
            lambda positions, d: torch.cat(
                [
                    f(positions[:, None].double() * _released((d + 1) // 2, d)).float()[:, :n]
                    for f, n in ((torch.sin, (d + 1) // 2), (torch.cos, d // 2))
                ],
                1,
            ),
            "For an odd d you keep one more sine than cosines, as the paper's layout does. The released code "
            "has floor(d / 2) of each, and a column of zeros.",
        ),
        Wrong(
            "row number instead of position",
            lambda positions, d: _sinusoid_concat(torch.arange(len(positions)), d),
            "Row i holds the encoding of i, whatever `positions` says.",
        ),
    ),
    variants=(
        Variant("row by row", _concat_row_by_row, "One number at a time gives the same table."),
        Variant(
            "exp of a logarithm",
            _concat_of(lambda h, d: torch.exp(-math.log(1e4) / max(h - 1, 1) * _ramp(h))),
            "This is how the released code writes it.",
        ),
    ),
    hints=(
        "There are floor(d / 2) frequencies, spaced evenly on a logarithmic scale, from 1 to 1/10000.",
        "From the first of n frequencies to the last there are n − 1 steps. What if n is 1?",
        "All sines, then all cosines, then a column of zeros if d is odd.",
    ),
)

QUESTIONS = (SINUSOID_TABLE, SINUSOID_ADD, SHIFT_MATRIX, OFFSET_PROFILE, SINUSOID_CONCAT)
