"""Exercise 08: RoPE, stretched to long texts."""

from __future__ import annotations

import math

import torch

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong

BREAKS = '08, section "Why raw RoPE breaks"'
PI = '08, section "Position interpolation"'
AXES = 'deeper/04_axes, section "Two rotations"'
BLOCKS = '06, section "Many pairs: blocks"'
NTK = '08, section "The ramps of others"'
YARN = '08, section "The ramps of others"'
DYNAMIC = 'deeper/08_caches, section "Dynamic scaling, and stale keys"'
BUGS = 'deeper/08_caches, section "Find the bugs"'
#: Frequencies go down to 1e-6; the usual absolute tolerance would let anything pass there.
SMALL = (1e-4, 1e-10)


def _theta(dim, base):
    return base ** (-torch.arange(0, dim, 2).double() / dim)


# ---- axis_angles ----
def _axis_angles_cases(draw: Draw) -> list[Case]:
    cases = []
    for n, axes, dim, base, stretch, what in (
        (5, 1, 8, 1e4, (4.0,), _("one axis, squeezed by 4")),
        (6, 2, 12, 100.0, (1.0, 2.0), _("rows as trained, columns squeezed by 2")),
        (4, 3, 18, 1e5, (draw.choice((2.0, 4.0)), 1.0, 1.5), _("time, row and column")),
        (7, 2, 16, 1e3, (1.25, 3.0), _("two axes, both squeezed")),
        (8, 2, 20, 1e4, (2.0, 8.0), _("far out on both axes")),
    ):
        positions = draw.integers(0, 60, n, axes)
        positions = (
            2 * positions + 2049 if n == 8 else positions
        )  # odd and beyond 2048: 16 bits can't hold them
        cases.append(
            Case(
                (positions, dim, base, torch.tensor(stretch, dtype=torch.float32)),
                _("n = {n}, d = {d}, base {base:g}, {what}").format(n=n, d=dim, base=base, what=what),
            )
        )
    return cases


def _pairs_of(positions, dim):
    """The pairs that an axis has."""
    return dim // 2 // positions.shape[1]


def _axes_with(theta=None, place=None, order=None):
    """The angles, with one of their parts replaced."""
    theta = theta or (lambda pairs, axes, base: base ** (-torch.arange(pairs) / pairs))
    place = place or (lambda positions, stretch: positions / stretch)
    order = order or (lambda angles: angles.flatten(1))

    def answer(positions, dim, base, stretch):
        pairs, axes = _pairs_of(positions, dim), positions.shape[1]
        return order(place(positions, stretch)[:, :, None] * theta(pairs, axes, base))

    return answer


_axis_angles_usual = _axes_with()


def _axis_angles(positions, dim, base, stretch):
    return _axis_angles_usual(positions, dim, base, stretch)


def _axis_by_axis(positions, dim, base, stretch):
    block = dim // positions.shape[1]
    theta = torch.tensor([base ** (-2 * t / block) for t in range(block // 2)])
    return torch.cat([torch.outer(p / s, theta) for p, s in zip(positions.T, stretch, strict=True)], dim=1)


def _pair_by_pair(positions, dim, base, stretch):
    pairs, out = _pairs_of(positions, dim), []
    for place in positions.tolist():
        out.append(
            [
                p / float(s) * base ** (-t / pairs)
                for p, s in zip(place, stretch, strict=True)
                for t in range(pairs)
            ]
        )
    return torch.tensor(out)


AXIS_ANGLES = Question(
    name="axis_angles",
    exercise="08",
    title="The angles of RoPE on several axes, each of which may be squeezed.",
    returns="a float32 tensor [n, d / 2], in radians: the pairs of axis 0 first",
    section=AXES,
    draw=_axis_angles_cases,
    reference=_axis_angles,
    picture="heat",
    axes=("pair", "token"),
    wrong=(
        Wrong(
            "squeezed the wrong way",
            _axes_with(place=lambda p, s: p * s),
            "The positions are multiplied by the stretch: an axis that should fit into the trained range "
            "becomes longer still.",
        ),
        Wrong(
            "not squeezed",
            _axes_with(place=lambda p, s: p.float()),
            "The stretch has no effect: the last tokens stand beyond the places of training.",
        ),
        Wrong(
            "one stretch for all axes",
            _axes_with(place=lambda p, s: p / s[0]),
            "All axes are squeezed like the first one. An image may be four times as wide and no higher.",
        ),
        Wrong(
            "positions counted from the smallest",
            _axes_with(place=lambda p, s: (p - p.min()) / s),
            "Positions are counted from the smallest one that is given. They say where a token stands; keys "
            "of another call would no longer fit.",
        ),
        *[
            Wrong(
                f"positions in {what}",
                _axes_with(place=lambda p, s, dtype=dtype: (p.to(dtype) / s.to(dtype)).float()),
                "Positions pass through 16 bits. Far out, such numbers can't tell neighbours apart: keep "
                "positions whole, or in float32.",
            )
            for what, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16))
        ],
        Wrong(
            "whole positions",
            _axes_with(place=lambda p, s: (p / s).floor()),
            "The squeezed positions are cut down to whole numbers, so that neighbours fall on one place. "
            "RoPE takes fractions.",
        ),
        Wrong(
            "frequencies counted through",
            lambda positions, dim, base, stretch: (
                (positions / stretch).repeat_interleave(_pairs_of(positions, dim), 1)
                * base ** (-2 * torch.arange(positions.shape[1] * _pairs_of(positions, dim)) / dim)
            ),
            "The frequencies run on from axis to axis, so the second axis has slow pairs only. Each axis "
            "begins again with the fastest one.",
        ),
        Wrong(
            "frequencies of the whole head",
            _axes_with(theta=lambda pairs, axes, base: base ** (-torch.arange(pairs) / (pairs * axes))),
            "The exponent is divided by the pairs of the whole head. An axis has fewer, and should get "
            "down to nearly 1/base with these.",
        ),
        Wrong(
            "axes take turns",
            _axes_with(order=lambda angles: angles.mT.flatten(1)),
            "The axes take turns from pair to pair. Asked for are blocks: all pairs of axis 0 first.",
        ),
        Wrong(
            "axes added up",
            lambda positions, dim, base, stretch: (
                (positions / stretch).sum(1)[:, None] * base ** (-2 * torch.arange(dim // 2) / dim)
            ),
            "The positions of a token are added up before the turn. (2, 3) and (3, 2) then are one place.",
        ),
        Wrong(
            "only the first axis",
            lambda positions, dim, base, stretch: (
                (positions / stretch)[:, :1] * base ** (-2 * torch.arange(dim // 2) / dim)
            ),
            "All pairs turn by the first axis; where a token stands on the others, nobody can tell.",
        ),
        Wrong(
            "last axis first",
            _axes_with(order=lambda angles: angles.flip(1).flatten(1)),
            "The blocks stand in reverse order: axis 0 should have the first pairs.",
        ),
        Wrong(
            "exponent doubled",
            _axes_with(theta=lambda pairs, axes, base: base ** (-2 * torch.arange(pairs) / pairs)),
            "The exponent falls twice as fast: an axis with d / axes channels has half as many pairs.",
        ),
        Wrong(
            "a power and a product, without brackets",
            _axes_with(theta=lambda pairs, axes, base: base**-1 * torch.arange(pairs) / pairs),
            "A power binds tighter than a product: without brackets, base ** −2 is taken first, and then "
            "multiplied and divided. The whole exponent needs brackets.",
        ),
        Wrong(
            "growing frequencies",
            _axes_with(theta=lambda pairs, axes, base: base ** (torch.arange(pairs) / pairs)),
            "The sign of the exponent is wrong: pairs get faster where they should get slower.",
        ),
        Wrong(
            "exponent divided by the channels",
            _axes_with(theta=lambda pairs, axes, base: base ** (-torch.arange(pairs) / (2 * pairs * axes))),
            "The exponent is divided by the number of channels of the whole head. It is N, the pairs of one "
            "axis, that it is divided by.",
        ),
    ),
    variants=(
        Variant(
            "axis by axis", _axis_by_axis, "Each axis is a RoPE of its own; the blocks stand side by side."
        ),
        Variant("pair by pair", _pair_by_pair, "Loops over tokens, axes and pairs give the same numbers."),
    ),
    hints=(
        "Each axis is a RoPE of its own, on its share of the channels. With one axis this is the RoPE that "
        "you know.",
        "An axis has d / (2 · axes) pairs, and its frequencies begin at 1 again. Position interpolation only "
        "changes what is turned by: a fraction of the position.",
        "Positions divided by the stretch are [n, axes]; times the frequencies of an axis that becomes "
        "[n, axes, pairs]; the last two axes are then one.",
    ),
)


# ---- dynamic_ntk_theta ----
def _dynamic_ntk_theta_cases(draw: Draw) -> list[Case]:
    cases = []
    for what, dim, base, low, high in (
        (_("a text shorter than L"), 8, 10_000.0, 0.3, 0.8),
        (_("a little beyond L"), 16, 100_000.0, 1.1, 1.6),
        (_("far beyond L"), 6, 500_000.0, 3.2, 3.8),
        (_("far beyond L"), 64, 10_000.0, 4.1, 4.9),
    ):
        L = draw.integer(100, 5000)
        length = int(L * draw.number(low, high))
        cases.append(
            Case(
                (dim, base, L, length),
                _("{what}: d = {d}, L = {L}, l = {length}").format(what=what, d=dim, L=L, length=length),
            )
        )
    return cases


def _dynamic_ntk_theta(dim, base, L, length):
    s = max(1.0, length / L)
    new_base = base * s ** (dim / (dim - 2))
    return _theta(dim, new_base).float()


def _dynamic(of, factor=lambda L, n: max(1.0, n / L)):
    """Frequencies ``of`` the dimension, the base and the factor."""
    return lambda dim, base, L, length: of(dim, base, factor(L, length)).float()


def _ntk(dim, base, s):
    return _theta(dim, base * s ** (dim / (dim - 2)))


DYNAMIC_NTK_THETA = Question(
    name="dynamic_ntk_theta",
    exercise="08",
    title="The frequencies of NTK-aware scaling with a factor that follows the length of the text.",
    returns="a float32 tensor of shape [d / 2], in radians per position",
    section=NTK,
    draw=_dynamic_ntk_theta_cases,
    reference=_dynamic_ntk_theta,
    tolerance=SMALL,
    picture="lines",
    axes=("pair t", "θ′/θ"),
    drawn=lambda theta, case: theta / _theta(*case.args[:2]),
    wrong=(
        Wrong(
            "base times the factor",
            _dynamic(lambda d, b, s: _theta(d, b * s)),
            "You multiply the base by the factor itself. Then the slowest pair is divided by less than the "
            "factor. Look at the last frequency: it has to be divided by exactly s.",
            BUGS,
        ),
        Wrong(
            "short texts change, too",
            _dynamic(_ntk, lambda L, n: n / L),
            "For a text shorter than L the factor is below 1, so the pairs turn faster than in training. "
            "Up to L nothing may change.",
            DYNAMIC,
        ),
        Wrong(
            "base times length over L",
            _dynamic(lambda d, b, s: _theta(d, b * s), lambda L, n: n / L),
            "You multiply the base by l/L, for short texts, too. Up to L nothing may change; beyond it, "
            "the slowest pair has to be divided by exactly s, and with this base it is divided by "
            "less.",
            BUGS,
        ),
        Wrong(
            "exponent upside down",
            _dynamic(lambda d, b, s: _theta(d, b * s ** ((d - 2) / d))),
            "The exponent of the factor is upside down. It has to make up for the last pair's own "
            "exponent, which is a little below 1; so it is a little above 1.",
        ),
        Wrong(
            "all pairs divided",
            _dynamic(lambda d, b, s: _theta(d, b) / s),
            "Every pair is divided by the factor: that is position interpolation. Here the fastest pair "
            "keeps its speed.",
            PI,
        ),
        Wrong(
            "base made smaller",
            _dynamic(lambda d, b, s: _theta(d, b * s ** (-d / (d - 2)))),
            "The new base is smaller than the old one: the slow pairs turn faster, and meet new angles "
            "sooner.",
        ),
        Wrong(
            "brackets missing in the exponent",
            _dynamic(lambda d, b, s: _theta(d, b * s ** (d / d - 2))),
            "The base becomes smaller: your exponent is −1. That is what d / d − 2 gives; the subtraction "
            "has to come first, so d − 2 needs brackets.",
        ),
        Wrong(
            "raw",
            _dynamic(lambda d, b, s: _theta(d, b)),
            "These are the frequencies of training, for any length of the text.",
        ),
        Wrong(
            "factor upside down",
            _dynamic(_ntk, lambda L, n: max(1.0, L / n)),
            "The factor is L over the length. Short texts are stretched with it and long ones are not; it "
            "has to be the other way round.",
            DYNAMIC,
        ),
        Wrong(
            "whole factor",
            _dynamic(_ntk, lambda L, n: float(max(1, n // L))),
            "The factor is a whole number, so nothing changes until the text is twice as long as in "
            "training.",
            DYNAMIC,
        ),
        Wrong(
            "factor rounded up",
            _dynamic(_ntk, lambda L, n: float(max(1, math.ceil(n / L)))),
            "The factor is rounded up to a whole number. It follows the length smoothly.",
            DYNAMIC,
        ),
        Wrong(
            "excess instead of length",
            _dynamic(_ntk, lambda L, n: max(1.0, (n - L) / L)),
            "You count the tokens beyond L and divide those by L. The factor is the whole length over L.",
            DYNAMIC,
        ),
        Wrong(
            "one more than the factor",
            _dynamic(_ntk, lambda L, n: max(1.0, 1 + n / L)),
            "Your factor is 1 + l/L. At the trained length that is 2 already; it should be 1, and grow "
            "from there.",
            DYNAMIC,
        ),
        Wrong(
            "d counts pairs in the exponent",
            _dynamic(lambda d, b, s: _theta(d, b * s ** (d // 2 / max(d // 2 - 2, 1)))),
            "In the exponent of the factor you use the number of pairs where the number of channels belongs.",
        ),
        Wrong(
            "exponent counts pairs, not channels",
            _dynamic(lambda d, b, s: (b * s ** (d / (d - 2))) ** (-torch.arange(d // 2).double() / d)),
            "The new base is right. But the exponent of pair t is t / d here, and not 2t / d.",
            BLOCKS,
        ),
        Wrong(
            "base and frequencies",
            _dynamic(lambda d, b, s: _ntk(d, b, s) / s),
            "The base is changed, and the frequencies are divided besides. One of the two is enough.",
        ),
        Wrong(
            "only the new base",
            _dynamic(lambda d, b, s: torch.tensor(b * s ** (d / (d - 2)))),
            "This is the base. The frequencies of all pairs are asked for.",
        ),
        Wrong(
            "the base to the power, too",
            _dynamic(lambda d, b, s: _theta(d, (b * s) ** (d / (d - 2)))),
            "You raise the product of base and factor to the power. Only the factor has the exponent, so up "
            "to L nothing changes.",
        ),
        Wrong(
            "the factor taken twice",
            _dynamic(lambda d, b, s: _ntk(d, b, s * s - (s - 1))),
            "The factor of the length is multiplied by itself, as in code that also takes a fixed factor "
            "from its configuration. Here s is the length over L, and nothing else.",
        ),
    ),
    variants=(
        Variant(
            "without a base",
            lambda d, b, L, n: _theta(d, b) * max(n / L, 1) ** (-2 * torch.arange(d // 2).double() / (d - 2)),
            "Pair t is divided by the factor to the power 2t / (d − 2).",
        ),
        Variant(
            "logarithms",
            lambda d, b, L, n: torch.exp(
                -torch.arange(0, d, 2) / d * (math.log(b) + d / (d - 2) * math.log(max(1.0, n / L)))
            ),
            "A product of powers is a sum of logarithms.",
        ),
        Variant(
            "a list",
            lambda d, b, L, n: [
                (b * max(1.0, n / L) ** (d / (d - 2))) ** (-2 * t / d) for t in range(d // 2)
            ],
            "A list of numbers will do.",
        ),
    ),
    hints=(
        "What should happen at l = L, and what at l = L/2? And by how much is the slowest pair divided at l "
        "= 3L?",
        "Three steps: the factor, which is never below 1; the new base; the frequencies of that base.",
        "The factor enters the base to the power d/(d − 2), because the slowest pair has the exponent "
        "−(d − 2)/d.",
    ),
)


# ---- dynamic_scores ----
def _dynamic_scores_cases(draw: Draw) -> list[Case]:
    cases = []
    for what, dim, n, L in (
        (_("a text within L"), 8, 9, 20),
        (_("a text of about 2 L"), 6, 13, 6),
        (_("a text of about 4 L"), 16, 18, 4),
        (_("a text of about 3 L"), 4, 11, 4),
    ):
        n += draw.integer(0, 3)
        base = draw.choice([100.0, 1000.0, 10_000.0])
        cases.append(
            Case(
                (draw.normal(dim), draw.normal(n, dim), base, L),
                _("{what}: n = {n}, L = {L}, d = {d}, base {base:g}").format(
                    what=what, n=n, L=L, d=dim, base=base
                ),
            )
        )
    return cases


def _turn(x, angles):
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


def _dynamic_scores(q, keys, base, L):
    n, d = keys.shape
    new_base = base * max(1.0, n / L) ** (d / (d - 2))
    theta = (new_base ** (-torch.arange(0, d, 2, device=q.device).double() / d)).to(q.dtype)
    turned = _turn(keys, torch.arange(n, device=q.device)[:, None] * theta)
    return turned @ _turn(q, (n - 1) * theta) / math.sqrt(d)


def _scores(
    *,
    stale=False,
    place=-1,
    factor=lambda L, n: max(1.0, n / L),
    of=_ntk,
    layout=_turn,
    scale=True,
    turn_q=True,
    turn_k=True,
    reverse=False,
    query=None,
):
    """Scores against a cache, with one thing or another done differently."""

    def answer(q, keys, base, L):
        n, d = keys.shape
        theta = (
            torch.stack([of(d, base, factor(L, p + 1)) for p in range(n)])
            if stale
            else of(d, base, factor(L, n)).expand(n, -1)
        ).to(q.dtype)
        now = theta[-1] if query is None else of(d, base, query(L, n)).to(q.dtype)
        places = torch.arange(n).flip(0) if reverse else torch.arange(n)
        k = layout(keys, places[:, None] * theta) if turn_k else keys
        turned = layout(q, (n + place) * now) if turn_q else q
        return k @ turned / (math.sqrt(d) if scale else 1.0)

    return answer


def _turn_halves(x, angles):
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def _turn_back(x, angles):
    return _turn(x, -angles)


def _each_at_its_own_speed(q, keys, base, L):
    n, d = keys.shape
    theta = torch.stack([_ntk(d, base, max(1.0, (p + 1) / L)) for p in range(n)]).to(q.dtype)
    return (_turn(keys, torch.arange(n)[:, None] * theta) * _turn(q, (n - 1) * theta)).sum(-1) / math.sqrt(d)


DYNAMIC_SCORES = Question(
    name="dynamic_scores",
    exercise="08",
    title="The newest query's scores against a cache, with dynamic NTK-aware scaling; the given code is "
    "broken.",
    returns="a float32 tensor of shape [n]",
    section=DYNAMIC,
    draw=_dynamic_scores_cases,
    reference=_dynamic_scores,
    picture="lines",
    axes=("key", "score"),
    wrong=(
        Wrong(
            "as it was given",
            _scores(stale=True, place=0),
            "This is still what the given code does. Two things are wrong with it. One shows even in a "
            "short text: look at the score of the query's own key. The other one shows beyond L only: ask "
            "each key which length its angles belong to.",
        ),
        Wrong(
            "stale keys",
            _scores(stale=True),
            "The place of the query is right now. But each key is turned by the frequencies of the length "
            "that the text had when this key came. Query and key turn at different speeds, so a score no "
            "longer depends on their distance. Compare with the same text read in one go.",
        ),
        Wrong(
            "query turned at each key's speed",
            _each_at_its_own_speed,
            "Query and key now turn at one speed, but it is that of the text when the key came, so it "
            "differs from key to key. Read in one go, the whole text has one set of frequencies, that of "
            "its length now.",
        ),
        Wrong(
            "length one short",
            _scores(factor=lambda L, n: max(1.0, (n - 1) / L)),
            "The factor is computed from n − 1. The last position is n − 1, but the text has n tokens.",
        ),
        Wrong(
            "query one place too far",
            _scores(place=0),
            "The keys are fresh now. But the query stands one place behind its own key, which is in the "
            "cache already: there the distance is 0.",
        ),
        Wrong(
            "frequencies of training",
            _scores(factor=lambda L, n: 1.0),
            "Nothing is stretched: queries and keys turn as in training, for any length. The keys are "
            "fresh, but their slow pairs meet new angles beyond L.",
            NTK,
        ),
        Wrong(
            "short texts change, too",
            _scores(factor=lambda L, n: n / L),
            "For a text shorter than L the factor falls below 1, and the pairs turn faster than in "
            "training. Up to L nothing may change.",
        ),
        Wrong(
            "keys not turned",
            _scores(turn_k=False),
            "The keys are taken from the cache as they are. They are kept unturned, so they have to be "
            "turned when they are used.",
        ),
        Wrong(
            "query not turned",
            _scores(turn_q=False),
            "Only the keys are turned. A score depends on the distance only if both are.",
        ),
        Wrong(
            "neither is turned",
            _scores(turn_q=False, turn_k=False),
            "Nothing is turned: the order of the keys plays no part.",
        ),
        Wrong(
            "query of training, keys of now",
            _scores(query=lambda L, n: 1.0),
            "Keys turn at the speed of this length, the query turns as in training. Within L that is the "
            "same, beyond it the own key no longer has the distance 0.",
        ),
        Wrong(
            "keys of training, query of now",
            _scores(factor=lambda L, n: 1.0, query=lambda L, n: max(1.0, n / L)),
            "The query turns at the speed of this length, the keys turn as in training. Both need the same "
            "frequencies, those of now.",
        ),
        Wrong(
            "all pairs divided",
            _scores(of=lambda d, b, s: _theta(d, b) / s),
            "You divide all frequencies by the factor: that is position interpolation. NTK-aware scaling "
            "changes the base.",
            PI,
        ),
        Wrong(
            "base times the factor",
            _scores(of=lambda d, b, s: _theta(d, b * s)),
            "The exponent of the factor got lost, so the slowest pair is divided by less than it has to be.",
            NTK,
        ),
        Wrong("scores not scaled", _scores(scale=False), "The factor 1/√d is gone."),
        Wrong(
            "halves instead of neighbours",
            _scores(layout=_turn_halves),
            "You pair channel t with channel t + d/2. The given code pairs neighbours; a model's weights "
            "fit one of the two only.",
        ),
        Wrong(
            "turned backwards",
            _scores(layout=_turn_back),
            "Query and key turn the other way round. The sizes of the angles are right, but the given "
            "`turn` fixes the direction for the whole model.",
        ),
        Wrong(
            "order of the keys reversed",
            _scores(reverse=True),
            "The newest key is taken for position 0. The cache begins with the oldest token.",
        ),
    ),
    variants=(
        Variant(
            "turned by the distance",
            lambda q, keys, base, L: (
                _turn(
                    keys,
                    (torch.arange(len(keys))[:, None] - len(keys) + 1)
                    * _ntk(len(q), base, max(1, len(keys) / L)).to(q.dtype),
                )
                @ q
                / len(q) ** 0.5
            ),
            "Only the distance counts, so the query may stay and the keys turn by what is between them.",
        ),
        Variant(
            "complex numbers",
            lambda *x: _complex_scores(*x),
            "A pair of channels is a complex number, and a rotation is a product.",
        ),
    ),
    hints=(
        "Read a short text first: is the score of the query's own key what it would be without any rotation? "
        "Then a text beyond L: do all keys turn at the same speed?",
        "The cache has to hold keys as they are. What you turn them by depends on the length of the text "
        "now, not on the length at the time when they came.",
        "One set of frequencies for this call, from n. Positions of the keys are 0 … n − 1, and the query "
        "stands at the last of them.",
    ),
)


def _complex_scores(q, keys, base, L):
    n, d = keys.shape
    angles = torch.outer(torch.arange(n).double() - (n - 1), _ntk(d, base, max(1.0, n / L)))
    turn = torch.polar(torch.ones_like(angles), angles)
    k = torch.view_as_complex(keys.double().reshape(n, d // 2, 2)) * turn
    query = torch.view_as_complex(q.double().reshape(d // 2, 2))
    return ((k * query.conj()).real.sum(-1) / math.sqrt(d)).to(q.dtype)


# ---- yarn_theta ----
def _yarn_theta_cases(draw: Draw) -> list[Case]:
    cases = []
    for what, dim, base, L, alpha, beta in (
        (_("SmolLM2's numbers"), 64, 100_000.0, 8192, 1.0, 32.0),
        (_("a small model"), 16, 10_000.0, 64, 0.5, 4.0),
        (_("Llama 3's bounds"), 32, 500_000.0, 8192, 1.0, 4.0),
        (_("other bounds"), 48, 10_000.0, 2048, 2.0, 20.0),
    ):
        s = round(draw.number(2, 9), 2)
        L += draw.integer(0, L // 16)
        cases.append(
            Case(
                (dim, base, s, L, alpha, beta),
                _("{what}: d = {d}, s = {s}, L = {L}, α = {alpha}, β = {beta}").format(
                    what=what, d=dim, s=s, L=L, alpha=alpha, beta=beta
                ),
            )
        )
    return cases


def _yarn_theta(dim, base, s, L, alpha, beta):
    theta = _theta(dim, base)
    turns = L * theta / (2 * math.pi)
    gamma = ((turns - alpha) / (beta - alpha)).clamp(0, 1)
    return ((1 - gamma) * theta / s + gamma * theta).float()


def _by_parts(gamma, mix=lambda theta, s, g: (1 - g) * theta / s + g * theta, theta=_theta):
    """YaRN with another ramp over (turns, alpha, beta, L, s), or another mixture."""

    def answer(dim, base, s, L, alpha, beta):
        f = theta(dim, base)
        return mix(f, s, gamma(L * f / (2 * math.pi), alpha, beta, L, s)).float()

    return answer


def _ramp(r, a, b, *_rest):
    return ((r - a) / (b - a)).clamp(0, 1)


def _index_ramp(r, a, b, *_rest):
    t = torch.arange(len(r)).double()
    last, first = (r >= a).sum() - 1, (r > b).sum()
    return 1 - ((t - first) / (last - first)).clamp(0, 1)


def _released_yarn(dim, base, s, L, alpha, beta):
    """The ramp of the released code: linear in the number of the pair, between bounds rounded outwards."""

    def pair(turns):
        return dim * math.log(L / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(pair(beta)), 0), min(math.ceil(pair(alpha)), dim - 1)
    slow = ((torch.arange(dim // 2).double() - low) / max(high - low, 1e-3)).clamp(0, 1)
    return (_theta(dim, base) * (1 - slow + slow / s)).float()


def _llama_3(dim, base, s, L, low, high):
    """As in the released code of Llama 3.1: three cases by wavelength."""
    theta = []
    for f in _theta(dim, base).tolist():
        wavelength = 2 * math.pi / f
        if wavelength < L / high:
            theta.append(f)
        elif wavelength > L / low:
            theta.append(f / s)
        else:
            smooth = (L / wavelength - low) / (high - low)
            theta.append((1 - smooth) * f / s + smooth * f)
    return torch.tensor(theta)


YARN_THETA = Question(
    name="yarn_theta",
    exercise="08",
    title="The frequencies of YaRN: slow pairs divided, fast ones kept, a ramp between them.",
    returns="a float32 tensor of shape [d / 2], in radians per position",
    section=YARN,
    draw=_yarn_theta_cases,
    reference=_yarn_theta,
    tolerance=SMALL,
    picture="lines",
    axes=("pair t", "θ′/θ"),
    drawn=lambda theta, case: theta / _theta(*case.args[:2]),
    wrong=(
        Wrong(
            "fast pairs divided",
            _by_parts(_ramp, lambda f, s, g: g * f / s + (1 - g) * f),
            "The ramp is upside down: the fast pairs are slowed and the slow ones stay. That spoils what "
            "heads for neighbours need, and leaves the pairs that meet new angles as they were. (α and β "
            "swapped do the same.)",
        ),
        Wrong(
            "ramp not limited",
            _by_parts(lambda r, a, b, *_rest: (r - a) / (b - a)),
            "The ramp goes on below 0 and above 1: the fastest pairs become even faster, the slowest ones "
            "may turn backwards. Outside of the two bounds it is flat.",
        ),
        Wrong(
            "ramp limited below only",
            _by_parts(lambda r, a, b, *_rest: ((r - a) / (b - a)).clamp(min=0)),
            "Above the upper bound the ramp goes on, so fast pairs become faster than in training.",
        ),
        Wrong(
            "ramp limited above only",
            _by_parts(lambda r, a, b, *_rest: ((r - a) / (b - a)).clamp(max=1)),
            "Below the lower bound the ramp goes on, so slow pairs are divided by more than s, or turn "
            "backwards.",
        ),
        Wrong(
            "turns in the new length",
            _by_parts(lambda r, a, b, L, s: _ramp(r * s, a, b)),
            "You count turns in the new length. What counts is what a pair showed in training: pairs that "
            "need a change pass for fast ones here.",
            BUGS,
        ),
        Wrong(
            "length divided by s",
            _by_parts(lambda r, a, b, L, s: _ramp(r / s, a, b)),
            "You divide the length by s before you count turns. L is the trained length already; so fast "
            "pairs pass for slow ones.",
            BUGS,
        ),
        Wrong(
            "ramp over the wavelength",
            _by_parts(lambda r, a, b, *_rest: ((1 / r - 1 / a) / (1 / b - 1 / a)).clamp(0, 1)),
            "Your ramp is linear in the wavelength. It is linear in the number of turns, which is the "
            "length over the wavelength.",
        ),
        Wrong(
            "radians for turns",
            _by_parts(lambda r, a, b, *_rest: _ramp(r * 2 * math.pi, a, b)),
            "You compare angles in radians with bounds that count full turns: a factor is missing, and "
            "pairs pass for six times as fast as they are.",
            BREAKS,
        ),
        Wrong(
            "wavelength without 2π turned over",
            _by_parts(lambda r, a, b, *_rest: _ramp(r / (2 * math.pi), a, b)),
            "There is one factor 2π too many: a full turn is 2π radians, once.",
        ),
        Wrong(
            "all pairs divided",
            _by_parts(lambda r, *_rest: 0 * r),
            "Every pair is divided by s: that is position interpolation. It slows the fast pairs, too.",
            PI,
        ),
        Wrong(
            "a step at one turn",
            _by_parts(lambda r, *_rest: (r >= 1).double()),
            "Pairs below one full turn are divided, all others stay, and there is nothing between. That is "
            "the step that the ramp replaces; the bounds play no part.",
        ),
        Wrong(
            "a step at the lower bound",
            _by_parts(lambda r, a, *_rest: (r >= a).double()),
            "There is a step at α. Between α and β the change has to be gradual.",
        ),
        Wrong(
            "a step at the upper bound",
            _by_parts(lambda r, a, b, *_rest: (r >= b).double()),
            "There is a step at β. Between α and β the change has to be gradual.",
        ),
        Wrong(
            "ramp over the index",
            _by_parts(_index_ramp),
            "Your ramp is linear in the index of the pair, as in the released code (but for its rounding). "
            "Here, as in the paper, it is linear in the number of turns.",
        ),
        *[
            Wrong(
                f"ramp over the pair's number, {end} first",
                _by_parts(
                    lambda r, a, b, *_rest, turned=turned: (
                        ((torch.arange(len(r)) - a) / (b - a)).clamp(0, 1) - turned
                    ).abs()
                ),
                "You compare the number of the pair with α and β. These are numbers of turns: count how "
                "often each pair turns within L.",
            )
            for end, turned in (("slow", 0), ("fast", 1))
        ],
        Wrong(
            "ramp over the logarithm",
            _by_parts(lambda r, a, b, *_rest: (torch.log(r / a) / math.log(b / a)).clamp(0, 1)),
            "Your ramp is linear in the logarithm of the turns. It is linear in the turns themselves.",
        ),
        Wrong(
            "wavelengths mixed",
            _by_parts(_ramp, lambda f, s, g: 1 / ((1 - g) * s / f + g / f)),
            "You mix the wavelengths, and turn the result over. At both ends of the ramp that is the same; "
            "between them it is not. The frequencies are mixed.",
        ),
        Wrong(
            "multiplied instead of divided",
            _by_parts(_ramp, lambda f, s, g: (1 - g) * f * s + g * f),
            "The slow pairs become faster: they leave their range s times earlier. They have to be slowed.",
        ),
        Wrong(
            "raw",
            _by_parts(_ramp, lambda f, s, g: f),
            "These are the frequencies of training: nothing is stretched.",
        ),
        Wrong(
            "attention factor in the frequencies",
            _by_parts(_ramp, lambda f, s, g: ((1 - g) / s + g) * f * (0.1 * math.log(s) + 1)),
            "The factor 0.1 ln s + 1 multiplies the frequencies here. It belongs to queries and keys, and "
            "leaves the angles alone.",
            'deeper/08_caches, section "The attention factor"',
        ),
        Wrong(
            "exponent counts pairs, not channels",
            _by_parts(_ramp, theta=lambda d, b: b ** (-torch.arange(d // 2).double() / d)),
            "The exponent of pair t is t / d here, and not 2t / d.",
            BLOCKS,
        ),
        Wrong(
            "the ramp of the released code",
            _released_yarn,
            "Your ramp is linear in the number of the *pair*, as in the released code. The paper's, and the "
            "one asked for here, is linear in the number of turns.",
        ),
    ),
    variants=(
        Variant(
            "three cases, as in Llama 3",
            _llama_3,
            "Llama 3.1 writes the same formula with three cases of the wavelength, and other bounds.",
        ),
        Variant(
            "a factor per pair",
            _by_parts(_ramp, lambda f, s, g: f * (1 / s + g * (1 - 1 / s))),
            "The ramp goes from 1/s to 1.",
        ),
        Variant(
            "torch.lerp", _by_parts(_ramp, lambda f, s, g: torch.lerp(f / s, f, g)), "A lerp is this mixture."
        ),
    ),
    hints=(
        "Which pairs have shown all their angles in training, and which have not? Count the turns that each "
        "makes within L.",
        "Frequencies, then turns per pair, then γ between 0 and 1, then the mixture of θ/s and θ.",
        "A pair makes L·θ/2π turns in training. γ is 0 at α turns and 1 at β turns, and limited to that "
        "range.",
    ),
)


# ---- ntk_factor ----
def _ntk_factor_cases(draw: Draw) -> list[Case]:
    cases = []
    models = (64, 100_000.0, 8192), (16, 10_000.0, 64), (128, 10_000.0, 4096), (32, 500_000.0, 8192)
    for dim, base, L in models:
        L += draw.integer(0, L // 16)
        new_L = int(L * draw.number(2.1, 6.9))
        cases.append(
            Case(
                (dim, base, L, new_L),
                _("d = {d}, base {base:g}, from L = {L} to {new}").format(d=dim, base=base, L=L, new=new_L),
            )
        )
    few = draw.integer(20, 40)  # d = 4: the last pair is the only slow one
    cases.append(
        Case(
            (4, 10_000.0, few, 3 * few),
            _("d = {d}, base {base:g}, from L = {L} to {new}").format(d=4, base=1e4, L=few, new=3 * few),
        )
    )
    short = draw.integer(300, 350)  # one pair more would be slow
    cases.append(Case((8, 10.0, short, 3 * short), _("a model whose pairs all make full turns in training")))
    return cases


def _slow_pairs(dim, base, L, turn=2 * math.pi):
    return [t for t, theta in enumerate(_theta(dim, base).tolist()) if L * theta < turn]


def _ntk_factor(dim, base, L, new_L):
    slow = _slow_pairs(dim, base, L)
    needed = [(new_L / L) ** ((dim - 2) / (2 * t)) for t in slow]
    return max(needed, default=1.0)


def _factor_at(choose, power=lambda d, t: (d - 2) / (2 * t), turn=2 * math.pi):
    def answer(dim, base, L, new_L):
        slow = _slow_pairs(dim, base, L, turn)
        return (new_L / L) ** power(dim, max(choose(slow), 1)) if slow else 1.0

    return answer


def _first(slow):
    return slow[0]


def _by_search(dim, base, L, new_L):
    """By bisection on the first new distance itself."""
    theta = _theta(dim, base)
    slow = L * theta < 2 * math.pi
    if not slow.any():
        return 1.0
    low, high = 1.0, 1e6
    for _step in range(80):
        s = math.sqrt(low * high)
        first = (L * theta / _ntk(dim, base, s))[slow].min()
        low, high = (low, s) if first >= new_L else (s, high)
    return high


NTK_FACTOR = Question(
    name="ntk_factor",
    exercise="08",
    title="The smallest factor with which NTK-aware scaling meets no new angle up to a given distance.",
    returns="a number, at least 1",
    section=BREAKS,
    draw=_ntk_factor_cases,
    reference=_ntk_factor,
    bonus=True,
    wrong=(
        Wrong(
            "the stretch itself",
            lambda d, b, L, N: N / L if _slow_pairs(d, b, L) else 1.0,
            "You take the stretch as the factor, or look at the slowest pair, which comes to the same. "
            "That pair is divided by the whole factor; the others by less, and one of them leaves its "
            "range first.",
            NTK,
        ),
        Wrong(
            "the stretch, whatever the pairs",
            lambda d, b, L, N: N / L,
            "You take the stretch as the factor for any model. Where all pairs made full turns in "
            "training, no angle is new at any distance; elsewhere a pair that is divided by less than the "
            "factor leaves its range first.",
            NTK,
        ),
        Wrong(
            "all pairs",
            lambda d, b, L, N: (N / L) ** ((d - 2) / 2),
            "You ask it of the fast pairs, too. They have shown all their angles in training and never "
            "meet a new one; that makes your factor enormous.",
        ),
        Wrong(
            "radians for turns",
            _factor_at(_first, turn=1.0),
            "You call a pair slow when it turns by less than one radian in L tokens. A full turn is 2π "
            "radians, so some pairs that meet new angles are left out.",
        ),
        Wrong(
            "half a turn is enough",
            _factor_at(_first, turn=math.pi),
            "You call a pair fast from half a turn on. Only a full turn shows all angles.",
        ),
        Wrong(
            "one pair too early",
            lambda d, b, L, N: _factor_at(lambda slow: slow[0] - 1)(d, b, L, N),
            "You start with the last pair that makes a full turn in training. The first one that does not "
            "is needed.",
        ),
        Wrong(
            "one pair too late",
            _factor_at(lambda slow: slow[min(1, len(slow) - 1)]),
            "The first slow pair is left out. It is divided by less than the others, so it decides.",
        ),
        Wrong(
            "base times the factor",
            _factor_at(_first, lambda d, t: d / (2 * t)),
            "This is the factor for a base that is multiplied by s itself. In NTK-aware scaling the base "
            "is multiplied by a power of s.",
            NTK,
        ),
        Wrong(
            "the new base",
            lambda d, b, L, N: b * _ntk_factor(d, b, L, N) ** (d / (d - 2)),
            "This is the new base. The factor s is asked for.",
        ),
        Wrong(
            "a whole factor",
            lambda d, b, L, N: float(math.ceil(_ntk_factor(d, b, L, N))),
            "You round up to a whole number. That is safe, but it is not the smallest factor.",
        ),
        Wrong(
            "turns in the new length",
            lambda d, b, L, N: max(
                [(N / L) ** ((d - 2) / (2 * t)) for t in _slow_pairs(d, b, N)], default=1.0
            ),
            "You call a pair slow when it makes no full turn in the new length. What counts is training: "
            "there more pairs are slow.",
        ),
        Wrong(
            "exponent counts pairs, not channels",
            _factor_at(_first, lambda d, t: (d - 2) / t),
            "Pair t is slowed by a power of s; your exponent for it is half of what it should be, and so "
            "the factor is the square of what is needed.",
            NTK,
        ),
        Wrong(
            "exponent upside down",
            _factor_at(_first, lambda d, t: 2 * t / (d - 2)),
            "This is by how much the first slow pair is divided if s is the stretch. You have to solve for "
            "s.",
            NTK,
        ),
        Wrong(
            "the average pair",
            lambda d, b, L, N: (
                sum((N / L) ** ((d - 2) / (2 * t)) for t in _slow_pairs(d, b, L))
                / max(len(_slow_pairs(d, b, L)), 1)
            ),
            "You average over the slow pairs. One pair with a new angle is enough to do harm: the one that "
            "needs most decides.",
        ),
        Wrong(
            "half the exponent",
            lambda dim, base, L, new_L: _ntk_factor(dim, base**0.5, L, new_L),
            "Your pairs turn by base^(−t/d). With 2t / d they are slower, and more of them make no full "
            "turn.",
        ),
        Wrong(
            "the last pair left out",
            lambda dim, base, L, new_L: max(
                [(new_L / L) ** ((dim - 2) / (2 * t)) for t in _slow_pairs(dim, base, L) if t < dim // 2 - 1],
                default=1.0,
            ),
            "The last pair is left out: pairs are numbered from 0 to d/2 − 1. With few pairs it may be the "
            "only slow one.",
        ),
    ),
    variants=(
        Variant("by bisection", _by_search, "A search finds the same number as the formula."),
        Variant(
            "from the frequencies",
            lambda d, b, L, N: torch.where(
                L * _theta(d, b) < 2 * math.pi,
                (N / L) ** ((d - 2) / (2 * torch.arange(d // 2)).clamp(min=1)),
                1.0,
            ).max(),
            "One number per pair, 1 for the fast ones; the largest decides.",
        ),
    ),
    hints=(
        "Which pairs can meet a new angle at all? And up to which distance does one of these get when it is "
        "slowed by a factor f?",
        "Pair t is divided by s to the power 2t/(d − 2). Solve for the s that one slow pair needs; then "
        "think of all slow pairs.",
        "A pair is slow if L·θ is below 2π. It needs to be divided by at least L′/L; the pair that needs the "
        "largest s decides. Without slow pairs the answer is 1.",
    ),
)

QUESTIONS = (AXIS_ANGLES, DYNAMIC_NTK_THETA, DYNAMIC_SCORES, YARN_THETA, NTK_FACTOR)
