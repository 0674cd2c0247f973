"""Exercise 07: ALiBi."""

from __future__ import annotations

import math

import torch

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong

LINE = '07, section "One line"'
SLOPES = '07, section "The slopes"'
HORIZON = '07, section "How far does a head see?"'
RELEASED = '05, section "What a softmax does not see"'
MIRROR = '07, section "An encoder sees both sides"'
BUG = 'deeper/07_cost, section "Find the bug"'
XPOS = 'deeper/06_xpos, section "xPos: turned, and scaled"'


# ---- alibi_slopes ----
def _alibi_slopes_cases(draw: Draw) -> list[Case]:
    groups = (
        (_("n = {n}, a power of two"), (4, 16, 32, 64)),
        (_("8 heads"), (8,)),
        (_("12 heads"), (12,)),
        (_("n = {n}, no power of two"), (20, 24, 40, 48)),
        (_("n = {n}, an odd number"), (5, 7, 11, 13)),
        (_("n = {n}, one head"), (1,)),
    )
    return [
        Case((n,), what.format(n=n)) for what, n in ((what, draw.choice(numbers)) for what, numbers in groups)
    ]


def _lower(n):
    return 2 ** (n.bit_length() - 1)


def _geometric(n, of=None):
    return [2.0 ** (-8 * h / (of or n)) for h in range(1, n + 1)]


def _alibi_slopes(n_heads):
    low = _lower(n_heads)
    more = _geometric(2 * low)[0::2]
    return torch.tensor(_geometric(low) + more[: n_heads - low])


def _filled_up(n_heads, more):
    """The slopes of the lower power of two, followed by others."""
    return torch.tensor((_geometric(_lower(n_heads)) + more)[:n_heads])


def _mixed(n_heads, list_of, low=None):
    """Two lists of slopes put together, as in the released code."""
    low = low or _lower(n_heads)
    return torch.tensor(list_of(low) + list_of(2 * low)[0::2][: n_heads - low])


def _released_slopes(n_heads):
    def of(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n_heads).is_integer():
        return of(n_heads)
    closest = 2 ** math.floor(math.log2(n_heads))
    return of(closest) + _released_slopes(2 * closest)[0::2][: n_heads - closest]


ALIBI_SLOPES = Question(
    name="alibi_slopes",
    exercise="07",
    title="The official slopes of any number of heads.",
    returns="a float32 tensor of shape [n_heads]",
    section=SLOPES,
    draw=_alibi_slopes_cases,
    reference=_alibi_slopes,
    tolerance=(1e-4, 1e-7),
    picture="lines",
    axes=("head", "slope"),
    wrong=(
        Wrong(
            "the formula for any n",
            lambda n: torch.tensor(_geometric(n)),
            "The formula is for powers of two. For another number of heads the released code does not put n "
            "into it: it mixes two lists. A model with such a number would get other slopes than "
            "the ones it was trained with, and no error would tell you.",
        ),
        Wrong(
            "counted from 0",
            lambda n: torch.tensor([2.0 ** (-8 * h / n) for h in range(n)]),
            "The first slope is 1 and the last one is missing: h runs from 0 here. With 8 heads the list "
            "begins with 1/2.",
        ),
        Wrong(
            "halved from head to head",
            lambda n: torch.tensor([2.0**-h for h in range(1, n + 1)]),
            "Each slope is half of the one before, whatever n is. That is right for 8 heads only: the last "
            "slope of every power of two is 1/256, so more heads lie closer together.",
        ),
        Wrong(
            "natural base",
            lambda n: torch.tensor([math.exp(-8 * h / n) for h in range(1, n + 1)]),
            "These are powers of e. The slopes are powers of 2; with 8 heads the first one is 1/2, not 0.37.",
        ),
        Wrong(
            "growing slopes",
            lambda n: torch.tensor([2.0 ** (8 * h / n) for h in range(1, n + 1)]),
            "The exponent has lost its minus: slopes go up to 256. A head like that sees no key but its own.",
        ),
        Wrong(
            "evenly spaced",
            lambda n: torch.linspace(2.0 ** (-8 / n), 2.0**-8, n),
            "The slopes go down in equal steps. They are a geometric sequence: the ratio of neighbours is "
            "the same, so that some heads see near and some far.",
        ),
        Wrong(
            "8 and n swapped",
            lambda n: torch.tensor([2.0 ** (-n * h / 8) for h in range(1, n + 1)]),
            "With 8 heads this is right. With more heads the slopes fall faster, and they should fall more "
            "slowly: the last one of a power of two is always 1/256.",
        ),
        Wrong(
            "the 8 left out",
            lambda n: torch.tensor([2.0 ** (-h / n) for h in range(1, n + 1)]),
            "All slopes lie between 1/2 and 1, so every head is near-sighted. The flattest one of a power "
            "of two should be 1/256: a factor is missing in the exponent.",
        ),
        Wrong(
            "the first n of the next power of two",
            lambda n: torch.tensor(_geometric(n if n == _lower(n) else 2 * _lower(n))[:n]),
            "For other numbers of heads you take the list of the next higher power of two and cut it off: "
            "the flattest heads are lost. The released code begins with the next lower one.",
        ),
        Wrong(
            "the missing ones in order",
            lambda n: _filled_up(n, _geometric(2 * _lower(n))),
            "You begin with the right list. What is missing comes from the right list, too, but you take "
            "it without gaps. Compare with the printed slopes of 12 heads.",
        ),
        Wrong(
            "slopes twice",
            lambda n: _filled_up(n, _geometric(2 * _lower(n))[1::2]),
            "Some slopes appear twice, so two heads see the same. You fill the list up with slopes of the "
            "longer list that are in the shorter one, too. Take the others.",
        ),
        Wrong(
            "sorted",
            lambda n: _alibi_slopes(n).sort(descending=True).values,
            "These are the right numbers in another order. Head h of a trained model expects its own "
            "slope: with 12 heads the released list is not sorted.",
        ),
        Wrong(
            "longer list first",
            lambda n: _alibi_slopes(n).roll(n - _lower(n)),
            "These are the right numbers, but the ones that fill up stand in front. Head h of a trained "
            "model expects its own slope.",
        ),
        *(
            Wrong(name, lambda n, list_of=list_of: _mixed(n, list_of), says)
            for name, list_of, says in (
                (
                    "counted from 0, in both lists",
                    lambda n: [2.0 ** (-8 * h / n) for h in range(n)],
                    "Both lists begin with a slope of 1: h runs from 0 here. With 8 heads the list begins "
                    "with 1/2.",
                ),
                (
                    "the 8 forgotten",
                    lambda n: [2.0 ** (-h / n) for h in range(1, n + 1)],
                    "The exponents are an eighth of what they should be: the last slope of a power of two is "
                    "1/256, not 1/2.",
                ),
            )
        ),
        Wrong(
            "a power of two below itself",
            lambda n: _mixed(n, _geometric, max(1, 1 << (n - 1).bit_length() - 1)),
            "For a power of two you begin with the list of half as many heads, and mix. That is for "
            "the other numbers; here the formula itself gives the list.",
        ),
    ),
    variants=(
        Variant(
            "as in the released code",
            _released_slopes,
            "This is how the authors' code writes it, with a start that is also the ratio.",
        ),
        Variant("float64", lambda n: _alibi_slopes(n).double(), "More digits do no harm."),
    ),
    hints=(
        "Do powers of two first. What do you get for 8 heads and for 16? Which of the 16 are also among the "
        "8?",
        "Find the largest power of two that is not above n. If it is n, you are done; if not, you need two "
        "lists.",
        "The second list belongs to twice that power of two. A slice with a step picks every second slope; "
        "take as many as are missing.",
    ),
)


# ---- alibi_bias ----
def _with_gaps(draw: Draw, n: int):
    """Ascending positions that are not evenly spaced."""
    steps = draw.integers(2, 5, n)
    steps[n // 2] = 1
    return steps.cumsum(0)


def _alibi_bias_cases(draw: Draw) -> list[Case]:
    def slopes(heads, dtype=torch.float32):
        return draw.uniform(heads, low=0.05, high=0.7, dtype=dtype)

    whole, cached, chunk = (torch.arange(draw.integer(*reach)) for reach in ((6, 9), (7, 10), (9, 12)))
    later, gaps, wide = chunk + draw.integer(3, 200), _with_gaps(draw, 7), _with_gaps(draw, 5)
    return [
        Case((slopes(4), whole, whole), _("{n} tokens from position 0").format(n=len(whole))),
        Case((slopes(3), cached[-1:], cached), _("one query and {n} keys in a cache").format(n=len(cached))),
        Case(
            (slopes(5), later[-3:], later),
            _("the last 3 of {n} tokens, from position {first}").format(n=len(later), first=later[0]),
        ),
        Case((slopes(2), gaps[-4:], gaps), _("positions with gaps, as after keys were thrown away")),
        Case((slopes(6, torch.float64), wide, wide), _("float64, positions with gaps")),
    ]


def _bias(slopes, q_positions, k_positions, of=lambda r: r, hidden=lambda r: r > 0, fill=-math.inf):
    r = k_positions - q_positions[:, None]
    bias = slopes[:, None, None] * of(r).to(slopes.dtype)
    return bias.masked_fill(hidden(r), fill)


def _biased(
    slopes=lambda m: m, place=lambda q, k: (q, k), of=lambda r: r, hidden=lambda r: r > 0, fill=-math.inf
):
    """alibi_bias in parts, each of which can be replaced."""
    return lambda m, q, k: _bias(slopes(m), *place(q, k), of, hidden, fill)


def _alibi_bias(slopes, q_positions, k_positions):
    behind = (q_positions[:, None] - k_positions).to(slopes.dtype)
    return (-slopes[:, None, None] * behind).masked_fill(behind < 0, -math.inf)


def _nothing_hidden(r):
    return torch.zeros_like(r, dtype=torch.bool)


def _from_zero(x):
    return torch.arange(len(x))


def _without_row_constants(bias, case):
    bias = bias.masked_fill(bias < -1e4, -math.inf)  # a very low number hides a key, too
    return bias - bias.amax(-1, keepdim=True)


ALIBI_BIAS = Question(
    name="alibi_bias",
    exercise="07",
    title="The causal bias of each head, for queries and keys at any positions.",
    returns="a tensor of shape [H, Lq, Lk], of the dtype of the slopes, with −inf where a key is hidden",
    section=LINE,
    draw=_alibi_bias_cases,
    reference=_alibi_bias,
    same=_without_row_constants,
    equivalent="Your bias differs from −m·(i − j) by a constant per query at most, and hides the same keys. "
    "A softmax over the keys does not see such a constant.",
    picture="heat",
    wrong=(
        Wrong(
            "sign turned",
            _biased(of=lambda r: -r),
            "The bias grows with the distance: the oldest key is rewarded most. Give all keys the same "
            "content and look at the weights of the last query; they should rise towards its own "
            "key.",
            BUG,
        ),
        Wrong(
            "future not hidden",
            _biased(hidden=_nothing_hidden),
            "Keys after the query get a positive bias, the more the farther. A decoder may not see them at "
            "all.",
        ),
        Wrong(
            "distance to both sides, nothing hidden",
            _biased(of=lambda r: -r.abs(), hidden=_nothing_hidden),
            "This is the bias of an encoder. Here keys after the query must be hidden.",
        ),
        Wrong(
            "rows counted from 0",
            _biased(place=lambda q, k: (_from_zero(q), _from_zero(k))),
            "Row 0 is taken for position 0, for queries as for keys. With a cache, the one new query is "
            "the last token; your bias treats it as the first, so that it sees one key only.",
        ),
        Wrong(
            "tokens counted, positions ignored",
            _biased(place=lambda q, k: (torch.arange(len(k) - len(q), len(k)), _from_zero(k))),
            "The distances are differences of row numbers. Where positions have gaps, neighbouring rows "
            "are farther apart than 1: use the positions that are given.",
        ),
        Wrong(
            "mask by rows, bias by positions",
            _biased(hidden=lambda r: torch.ones_like(r, dtype=torch.bool).triu(1)),
            "The distances are right, but the mask goes by row numbers. With a cache, the one new query is "
            "row 0 and the last token: it sees the oldest key only. Compare positions for the mask, too.",
        ),
        Wrong(
            "own key hidden",
            _biased(hidden=lambda r: r >= 0),
            "A query does not see its own key. The query at position 0 then sees nothing, and its softmax "
            "gives NaN.",
        ),
        Wrong(
            "past hidden",
            _biased(hidden=lambda r: r < 0),
            "The mask hides the keys before the query and shows those after it: it is the wrong triangle.",
        ),
        Wrong(
            "one slope for all heads",
            _biased(slopes=lambda m: m[:1].expand(len(m))),
            "All heads have the same bias. Each head has a slope of its own: the first axis of the result "
            "counts heads.",
        ),
        Wrong(
            "slopes made anew",
            _biased(slopes=lambda m: torch.tensor(_geometric(len(m)), dtype=m.dtype)),
            "You work with 2^(−8h/n), whatever is given. The function has to use the slopes that it gets.",
            SLOPES,
        ),
        Wrong(
            "hidden keys get 0",
            _biased(fill=0.0),
            "Keys after the query get the bias 0, the best one there is. A bias of 0 hides nothing; after "
            "the softmax, hidden keys should have the weight 0.",
        ),
        Wrong(
            "a small penalty for a mask",
            _biased(fill=-1.0),
            "Hidden keys get −1. That is a small penalty, not a mask: after the softmax they keep a part "
            "of the attention.",
        ),
        Wrong(
            "squared distance",
            _biased(of=lambda r: -r * r),
            "The penalty grows with the square of the distance. ALiBi is linear: each token more costs the "
            "same.",
        ),
        Wrong(
            "only a mask",
            _biased(of=torch.zeros_like),
            "All visible keys have the same bias. This is a causal mask without ALiBi.",
        ),
        Wrong(
            "first slope times head number",
            lambda m, q, k: torch.stack([_bias(m[:1], q, k)[0] * (h + 1) for h in range(len(m))]),
            "Head h has h times the bias of the first head. Each head has its own number in `slopes`.",
        ),
        Wrong(
            "softmax already taken",
            lambda m, q, k: _alibi_bias(m, q, k).softmax(-1),
            "These are weights, not a bias: each row sums to 1. The softmax comes later, after the bias "
            "was added to the scores.",
        ),
        Wrong(
            "heads on the last axis",
            lambda m, q, k: _alibi_bias(m, q, k).permute(1, 2, 0),
            "The heads stand on the last axis. Scores have the shape [H, Lq, Lk], so the bias has to have "
            "the heads in front.",
        ),
        Wrong(
            "queries along the columns",
            lambda m, q, k: _alibi_bias(m, q, k).mT,
            "Queries and keys have changed places: rows of the bias belong to queries, columns to keys.",
        ),
    ),
    variants=(
        Variant(
            "positive, as in the released code",
            lambda m, q, k: _bias(m, 0 * q, k, hidden=_nothing_hidden).masked_fill(k > q[:, None], -math.inf),
            "m·j is the same for all queries, and differs from the paper by a constant per query.",
        ),
        Variant(
            "a very low number",
            _biased(fill=-1e9),
            "A number far below all scores hides a key as well as −inf does.",
        ),
        Variant(
            "a loop",
            lambda m, q, k: [
                [[-float(s) * float(a - b) if b <= a else -math.inf for b in k] for a in q] for s in m
            ],
            "A loop is slow and right.",
        ),
        Variant(
            "absolute distance under a mask",
            _biased(of=lambda r: -r.abs()),
            "Under a causal mask, the absolute distance is the distance.",
        ),
    ),
    hints=(
        "Which keys does a query see, and what does each of them lose? Write down the row of one query by "
        "hand.",
        "A column of query positions and a row of key positions make a table of distances. One slope per "
        "head multiplies the whole table; hidden places are filled in at the end.",
        "Give the slopes two more axes of size 1, so that they meet the table as [H, 1, 1]. Hide a key when "
        "its position is greater than the query's.",
    ),
)


# ---- alibi_attention ----
def _alibi_attention_cases(draw: Draw) -> list[Case]:
    sizes = (
        (_("a text at once"), 2, 3, 6, 6, 8),
        (_("one new query and a cache"), 1, 4, 1, 9, 6),
        (_("3 new queries and a cache"), 3, 2, 3, 8, 4),
        (_("2 new queries and a cache"), 2, 5, 2, 11, 16),
    )
    cases = []
    for what, batch, heads, queries, keys, dim in sizes:
        keys += draw.integer(0, 2) if queries < keys else 0
        q = 2 * draw.normal(batch, heads, queries, dim)
        k, v = (draw.normal(batch, heads, keys, dim) for _each in range(2))
        slopes = draw.uniform(heads, low=0.3, high=0.9)
        what = _("{what} (Lq = {queries}, Lk = {keys}, d = {d})").format(
            what=what, queries=queries, keys=keys, d=dim
        )
        cases.append(Case((q, k, v, slopes), what))
    return cases


def _alibi_attention(q, k, v, slopes):
    i = torch.arange(k.shape[-2] - q.shape[-2], k.shape[-2], device=q.device)[:, None]
    j = torch.arange(k.shape[-2], device=q.device)
    scores = q @ k.mT / math.sqrt(q.shape[-1]) - slopes[:, None, None] * (i - j)
    return scores.masked_fill(j > i, -math.inf).softmax(-1) @ v


def _attend(q, k, v, slopes, *, start=None, scale=None, inside=False, sign=-1, masked=True, axis=-1, late=0):
    """Attention with ALiBi and one thing or another done differently."""
    start = k.shape[-2] - q.shape[-2] if start is None else start
    i, j = start + torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    bias = sign * slopes[:, None, None] * (i - j)
    scale = q.shape[-1] ** -0.5 if scale is None else scale(q)
    scores = (q @ k.mT + bias) * scale if inside else q @ k.mT * scale + bias
    if masked:
        scores = scores.masked_fill(j > i + late, -math.inf)
    return scores.softmax(axis) @ v


def _attended(**options):
    return lambda *args: _attend(*args, **options)


def _bias_behind_the_softmax(q, k, v, slopes):
    places = torch.arange(k.shape[-2])
    return (_weights(q, k, 0 * slopes) + _bias(slopes, places[-q.shape[-2] :], places, fill=0)) @ v


def _weights(q, k, slopes, masked=True):
    eye = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], k.shape[-2])
    return _attend(q, k, eye, slopes, masked=masked)


def _hidden_after_the_softmax(q, k, v, slopes):
    i, j = torch.arange(k.shape[-2] - q.shape[-2], k.shape[-2])[:, None], torch.arange(k.shape[-2])
    return _weights(q, k, slopes, masked=False).masked_fill(j > i, 0) @ v


def _with_torch(q, k, v, slopes):
    places = torch.arange(k.shape[-2])
    mask = _alibi_bias(slopes, places[-q.shape[-2] :], places).expand(len(q), -1, -1, -1)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


ALIBI_ATTENTION = Question(
    name="alibi_attention",
    exercise="07",
    title="Causal attention with ALiBi, also for new queries and a cache of keys; the given code is broken.",
    returns="a tensor of shape [B, H, Lq, d]",
    section=LINE,
    draw=_alibi_attention_cases,
    reference=_alibi_attention,
    wrong=(
        Wrong(
            "as it was given",
            _attended(start=0, inside=True),
            "This is still what the given code does. Two things are wrong with it. One shows on any input: "
            "compare the weight ratio of two neighbouring keys with e^(−m), for equal contents. The other "
            "one shows only when there are fewer queries than keys.",
        ),
        Wrong(
            "bias inside of the scale",
            _attended(inside=True),
            "The cache is right now. But the bias is divided by √d together with the scores. A learned "
            "bias could make up for that; a fixed slope is √d times too flat.",
        ),
        Wrong(
            "queries counted from 0",
            _attended(start=0),
            "The bias stands outside of the scale now. But the first query of a call is taken for token 0. "
            "With a cache it comes after all older keys; here it sees the oldest key only.",
            RELEASED,
        ),
        Wrong(
            "scores not scaled",
            _attended(scale=lambda x: 1.0),
            "The factor 1/√d is gone. It belongs to the scores; only the bias stays without it.",
        ),
        Wrong(
            "scaled by d",
            _attended(scale=lambda x: 1 / x.shape[-1]),
            "The scores are divided by d. It is the square root of d, so that their spread stays near 1.",
        ),
        Wrong(
            "scaled by the number of heads",
            _attended(scale=lambda x: x.shape[1] ** -0.5),
            "The scores are divided by the square root of the number of heads: that is the wrong axis. It "
            "is the number of channels of a head that counts.",
        ),
        Wrong(
            "sign turned",
            _attended(sign=1),
            "Old keys are rewarded instead of penalised. Test a bias with equal contents: weights have to "
            "fall with the distance.",
            BUG,
        ),
        Wrong(
            "nothing hidden",
            _attended(masked=False),
            "A query sees keys that come after it, and the bias rewards them. Change the last key: the "
            "output of the first query must not move.",
        ),
        Wrong(
            "nothing hidden, distance to both sides",
            lambda q, k, v, m: (
                (
                    q @ k.mT / math.sqrt(q.shape[-1])
                    - m[:, None, None]
                    * (
                        torch.arange(k.shape[-2] - q.shape[-2], k.shape[-2])[:, None]
                        - torch.arange(k.shape[-2])
                    ).abs()
                ).softmax(-1)
                @ v
            ),
            "A query sees keys that come after it, at the price of their distance: that is an encoder. "
            "In a decoder they are hidden. Change the last key: the output of the first query must not "
            "move.",
        ),
        Wrong(
            "mask one step late",
            _attended(late=1),
            "Each query sees one key too many: the next token. A model trained like this learns to copy.",
        ),
        Wrong(
            "own key hidden",
            _attended(late=-1),
            "A query does not see its own key. The first query of a text then sees nothing, and its "
            "softmax gives NaN.",
        ),
        Wrong(
            "hidden after the softmax",
            _hidden_after_the_softmax,
            "The mask is applied to the weights. Hidden keys have taken their share by then, and the rest "
            "of a row no longer sums to 1.",
        ),
        Wrong(
            "softmax over the queries",
            _attended(axis=-2),
            "Each column of weights sums to 1. A query shares its attention among the keys, so each row "
            "has to.",
        ),
        Wrong(
            "bias behind the softmax",
            _bias_behind_the_softmax,
            "The bias is added to the weights. It belongs to the scores: only there does it become a "
            "factor e^(−m) per token.",
        ),
        Wrong(
            "no bias",
            lambda q, k, v, m: _attend(q, k, v, 0 * m),
            "This is plain causal attention: the slopes play no part.",
        ),
        Wrong(
            "neither bias nor mask",
            lambda q, k, v, slopes: _attend(q, k, v, 0 * slopes, masked=False),
            "This is attention without positions: no slope has any effect, and each query sees all keys.",
        ),
    ),
    variants=(
        Variant(
            "torch's own attention",
            _with_torch,
            "An additive mask goes into the scores after the scale, so the bias can travel in it.",
        ),
        Variant(
            "positive bias",
            lambda q, k, v, m: (
                (
                    q @ k.mT / q.shape[-1] ** 0.5
                    + m[:, None, None] * torch.arange(k.shape[-2])
                    + torch.full((q.shape[-2], k.shape[-2]), -math.inf, dtype=q.dtype).triu(
                        k.shape[-2] - q.shape[-2] + 1
                    )
                ).softmax(-1)
                @ v
            ),
            "m·j is enough, since a softmax sees no constant per row.",
        ),
    ),
    hints=(
        "Try it with equal contents (all zeros for q): which weights do you expect? Then ask for the last "
        "row alone, with the keys of the whole text.",
        "One query against a cache has to give the last row of the whole text. Where does the first of Lq "
        "queries stand when there are Lk keys?",
        "The queries are the last Lq of Lk tokens, so their positions end at Lk − 1. And the root of d "
        "divides one of the two terms, not both.",
    ),
)


# ---- mirror_gap ----
def _mirror_gap_cases(draw: Draw) -> list[Case]:
    def toeplitz(heads, n):
        left, right = (draw.uniform(heads, low=0.1, high=1.0) for _each in range(2))
        right[0] = left[0]
        r = torch.arange(n) - torch.arange(n)[:, None]
        return left[:, None, None] * r.clamp(max=0) - right[:, None, None] * r.clamp(min=0)

    def constants(heads, n):
        return 2 * draw.normal(heads, n, 1)

    n = draw.integer(4, 7)
    return [
        Case((toeplitz(3, 5),), _("3 heads, the first one with equal slopes for both sides")),
        Case((toeplitz(2, 2 * n) + constants(2, 2 * n),), _("a constant for each query besides")),
        Case((draw.normal(4, n, n),), _("any table of {n} × {n}").format(n=n)),
        Case((draw.normal(5, 7, 7) + toeplitz(5, 7),), _("a slope for each side, plus any table")),
    ]


def _mirror_gap(bias):
    weights = bias.softmax(-1)
    return (weights - weights.flip(-1, -2)).abs().amax((-1, -2))


def _gap_of(change, axis=-1):
    def answer(bias):
        weights = bias.softmax(axis)
        return (weights - change(weights)).abs().amax((-1, -2))

    return answer


def _mean_gap(bias):
    weights = bias.softmax(-1)
    return (weights - weights.flip(-1, -2)).abs().mean((-1, -2))


def _causal_gap(bias):
    hidden = torch.ones(bias.shape[-2:], dtype=torch.bool).triu(1)
    return _mirror_gap(bias.masked_fill(hidden, -math.inf))


def _gap_by_loop(bias):
    n, weights = bias.shape[-1], torch.exp(bias - bias.amax(-1, keepdim=True))
    weights = weights / weights.sum(-1, keepdim=True)
    return [
        max(float(abs(w[i, j] - w[n - 1 - i, n - 1 - j])) for i in range(n) for j in range(n))
        for w in weights
    ]


MIRROR_GAP = Question(
    name="mirror_gap",
    exercise="07",
    title="How much a bias tells an encoder about the direction of reading.",
    returns="a tensor of shape [H]",
    section=MIRROR,
    draw=_mirror_gap_cases,
    reference=_mirror_gap,
    wrong=(
        Wrong(
            "transposed",
            _gap_of(lambda w: w.mT),
            "You compare the weights with their transpose: query and key change places. Reading from the "
            "other end is another change: token i becomes token n − 1 − i, as a query and as a key. "
            "Weights of a bias −m·|i − j| are not even symmetric, since each row has its own sum.",
        ),
        Wrong(
            "transposed before the softmax",
            lambda b: (b.softmax(-1) - b.mT.softmax(-1)).abs().amax((-1, -2)),
            "You compare with the transposed bias. For a bias of the offset alone that gives the same; for "
            "any other one it does not. Reversing the text renumbers queries and keys.",
        ),
        Wrong(
            "biases compared",
            lambda b: (b - b.flip(-1, -2)).abs().amax((-1, -2)),
            "You compare the biases themselves. Two of them that differ by a constant per query give the "
            "same attention, but your number says that they differ.",
            RELEASED,
        ),
        Wrong(
            "keys reversed alone",
            _gap_of(lambda w: w.flip(-1)),
            "Only the keys are reversed. In a reversed text every query stands at another place, too.",
        ),
        Wrong(
            "queries reversed alone",
            _gap_of(lambda w: w.flip(-2)),
            "Only the queries are reversed. In a reversed text every key stands at another place, too.",
        ),
        Wrong(
            "heads reversed, too",
            _gap_of(lambda w: w.flip(0, 1, 2)),
            "The heads are reversed as well, so that each head is compared with another one. Only the axes "
            "of tokens change when a text is read from the other end.",
        ),
        Wrong(
            "transposed and reversed",
            _gap_of(lambda w: w.mT.flip(-1, -2)),
            "Queries and keys change places, and are reversed besides. In a reversed text a query stays a "
            "query.",
        ),
        Wrong(
            "mean, not largest",
            _mean_gap,
            "This is the mean of the differences. A few places that differ much are lost in it as the text "
            "grows; the largest one is asked for.",
        ),
        Wrong(
            "one number for all heads",
            lambda b: _mirror_gap(b).amax(),
            "This is one number for the whole layer. One number for each head is asked for: you want to "
            "see which head can tell the direction.",
        ),
        Wrong(
            "softmax over the queries",
            _gap_of(lambda w: w.flip(-1, -2), axis=-2),
            "The softmax runs over the queries: each column sums to 1. A query shares its attention among "
            "the keys.",
        ),
        Wrong(
            "future hidden",
            _causal_gap,
            "You hide the keys after each query. An encoder has no mask; a decoder never has this mirror.",
        ),
        Wrong(
            "sums of rows",
            lambda b: (b.softmax(-1).sum(-2) - b.softmax(-1).sum(-2).flip(-1)).abs().amax(-1),
            "You compare how much attention each key gets in all. Two weight tables can differ although "
            "these sums agree.",
        ),
    ),
    variants=(
        Variant("a loop", _gap_by_loop, "Place by place, and with a softmax by hand."),
        Variant(
            "without absolute values",
            lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).amax((-1, -2)),
            "The difference changes its sign under the mirror, so its largest value is the largest size.",
        ),
        Variant(
            "reversed first",
            lambda b: (b.softmax(-1) - b.flip(-1).flip(-2).softmax(-1)).flatten(1).abs().max(1).values,
            "Reversing the bias and then taking the softmax is the same.",
        ),
    ),
    hints=(
        "Read the text from the other end: which token is then query i, and which one is key j?",
        "Softmax first: what a bias says is what it does to the weights. Then compare them with themselves, "
        "renumbered.",
        "Both axes of tokens are reversed, the axis of heads is not. Then take the largest size over both.",
    ),
)


# ---- xpos_scores ----
def _xpos_scores_cases(draw: Draw) -> list[Case]:
    far = draw.integer(420, 480)  # ζ^(−n/B) is beyond even float64 here, and angles are still exact
    cases = []
    for heads, d, q_positions, k_positions, base, gamma, scale, what in (
        (2, 8, torch.arange(6), torch.arange(6), 1e4, 0.4, 16.0, _("{n} tokens from position 0").format(n=6)),
        (1, 12, torch.tensor([40]), torch.arange(2, 41), 1e3, 0.4, 24.0, _("one query and 39 cached keys")),
        (
            3,
            6,
            torch.tensor([3, far + 6, far + 7, far + 8]),
            torch.arange(9) + far,
            1e4,
            0.1,
            1.2,
            _("9 keys from position {first}, an early query and 3 late ones").format(first=far),
        ),
        (2, 10, torch.arange(0, 35, 5), torch.arange(0, 35, 7), 5e2, 1.0, 12.0, _("positions with gaps")),
    ):
        q, k = draw.normal(heads, len(q_positions), d), draw.normal(heads, len(k_positions), d)
        what = _("{what}, d = {d}").format(what=what, d=d)
        cases.append(Case((q, k, q_positions, k_positions, base, gamma, scale), what))
    return cases


def _zeta(pairs, gamma):
    return (torch.arange(pairs) / pairs + gamma) / (1 + gamma)


def _xpos_with(
    zeta=_zeta,
    away=lambda m, n: m - n,
    turned=1,
    hidden=lambda m, n: n > m,
    scale=None,
    root=0.5,
    exponent=2,
):
    """Scores of xPos by complex numbers and offsets, with one of their parts replaced."""

    def answer(q, k, q_positions, k_positions, base, gamma, scale_base):
        pairs = q.shape[-1] // 2
        m, n = q_positions[:, None].double(), k_positions.double()
        speeds = base ** (-exponent * torch.arange(pairs).double() / (2 * pairs))
        fade = zeta(pairs, gamma).double() ** (away(m, n)[..., None] / (scale or scale_base))
        turn = torch.polar(fade, turned * (m - n)[..., None] * speeds)
        a, b = (torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous()) for x in (q, k))
        scores = torch.einsum("hit,hjt,ijt->hij", a, b.conj(), turn).real / q.shape[-1] ** root
        return scores.float().masked_fill(hidden(m, n), -torch.inf)

    return answer


_xpos_usual = _xpos_with()


def _xpos_scores(q, k, q_positions, k_positions, base, gamma, scale_base):
    return _xpos_usual(q, k, q_positions, k_positions, base, gamma, scale_base)


def _xpos_each(middle):
    """Queries and keys grow and shrink by their own positions, counted from a common place."""

    def answer(q, k, q_positions, k_positions, base, gamma, scale_base):
        pairs = q.shape[-1] // 2
        theta, c = base ** (-torch.arange(pairs) / pairs), middle(k_positions)

        def sized(x, places, sign):
            angle = (places - c)[:, None] * theta
            size = _zeta(pairs, gamma) ** (sign * (places - c)[:, None] / scale_base)
            a, b = x[..., 0::2], x[..., 1::2]
            cos, sin = size * angle.cos(), size * angle.sin()
            return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

        scores = sized(q, q_positions, 1) @ sized(k, k_positions, -1).mT / q.shape[-1] ** 0.5
        return scores.masked_fill(k_positions > q_positions[:, None], -torch.inf)

    return answer


def _xpos_in_halves(q, k, *rest):
    """Neighbours are made of what stands half a head apart."""
    q, k = (torch.stack(x.chunk(2, -1), -1).flatten(-2) for x in (q, k))
    return _xpos_scores(q, k, *rest)


XPOS_SCORES = Question(
    name="xpos_scores",
    exercise="07",
    title="xPos: scores of RoPE whose pairs fade with the distance.",
    returns="a float32 tensor [H, Lq, Lk], −inf where the key comes after the query",
    section=XPOS,
    draw=_xpos_scores_cases,
    reference=_xpos_scores,
    tolerance=(1e-4, 1e-4),
    picture="heat",
    axes=("key", "query"),
    bonus=True,
    wrong=(
        Wrong(
            "sizes by absolute positions",
            _xpos_each(lambda k_positions: 0),
            "Sizes are counted from the beginning of the text, or from a query that is far from the keys. "
            "There the numbers leave what float32 can hold: a query shrinks to 0 and a key grows to "
            "infinity, though their product is harmless. Only the difference of positions counts.",
        ),
        Wrong(
            "halves far apart",
            _xpos_in_halves,
            "Your pairs stand half a head apart. Here they are neighbours: (0, 1), (2, 3), …",
        ),
        Wrong(
            "γ forgotten",
            _xpos_with(zeta=lambda pairs, gamma: torch.arange(pairs) / pairs),
            "γ is missing, so the first pair has ζ = 0: it vanishes at every distance but 0, and below 0 it "
            "is infinite.",
        ),
        Wrong(
            "γ divided alone",
            _xpos_with(zeta=lambda pairs, gamma: torch.arange(pairs) / pairs + gamma / (1 + gamma)),
            "Only γ is divided by 1 + γ. The whole sum 2t / d + γ should be: brackets.",
        ),
        Wrong(
            "distance not divided by B",
            _xpos_with(scale=1.0),
            "The distance is not divided by B, so everything fades B times as fast.",
        ),
        Wrong(
            "angles by t / d",
            _xpos_with(exponent=1),
            "The exponent of the angles runs over t / d, not over 2t / d: your slowest pair turns far too "
            "fast.",
        ),
        Wrong(
            "queries and keys fade alike",
            _xpos_with(away=lambda m, n: m + n - 2 * n.amax()),
            "Queries and keys have sizes with the same sign in the exponent, so the sum of their positions "
            "counts. For a distance, the key needs the reciprocal.",
        ),
        Wrong(
            "no fading",
            _xpos_with(zeta=lambda pairs, gamma: torch.ones(pairs)),
            "Nothing fades: this is plain RoPE.",
        ),
        Wrong(
            "growing with the distance",
            _xpos_with(away=lambda m, n: n - m),
            "Far keys count more, not less: the exponent has the wrong sign. ζ is below 1, and the "
            "distance of a key in the past is positive.",
        ),
        Wrong(
            "fading without the base of the scale",
            _xpos_with(scale=512.0),
            "The distance is always divided by 512, the number of the paper. Here it is an argument.",
        ),
        Wrong(
            "pairs counted from 1",
            _xpos_with(zeta=lambda pairs, gamma: ((torch.arange(pairs) + 1) / pairs + gamma) / (1 + gamma)),
            "The pairs are counted from 1, so the last one does not fade at all and the first one too "
            "little.",
        ),
        Wrong(
            "a share of the channels",
            _xpos_with(zeta=lambda pairs, gamma: (torch.arange(pairs) / (2 * pairs) + gamma) / (1 + gamma)),
            "You divide t by the number of channels. The formula has 2t / d, so t is divided by the number "
            "of pairs.",
        ),
        Wrong(
            "not divided by 1 + γ",
            _xpos_with(zeta=lambda pairs, gamma: torch.arange(pairs) / pairs + gamma),
            "The division by 1 + γ is missing, so the slow pairs grow with the distance.",
        ),
        Wrong(
            "slow pairs fade most",
            _xpos_with(zeta=lambda pairs, gamma: _zeta(pairs, gamma).flip(0)),
            "The order is turned round: it is the fast pairs, with small t, that should fade most.",
        ),
        Wrong(
            "not turned",
            _xpos_with(turned=0),
            "The pairs fade, but they do not turn: xPos is a rotation besides.",
        ),
        Wrong(
            "query and key turned against each other",
            _xpos_with(turned=-1),
            "The angle of a pair has the wrong sign: with the formula above, the score turns by (m − n)θ.",
        ),
        Wrong(
            "nothing hidden",
            _xpos_with(hidden=lambda m, n: (n > m) & False),
            "Keys after the query are not hidden, and they are the ones that xPos makes large.",
        ),
        Wrong(
            "own key hidden",
            _xpos_with(hidden=lambda m, n: n >= m),
            "A query may see the key at its own position.",
        ),
        Wrong("no root", _xpos_with(root=0), "The division by √d is missing."),
        Wrong("divided by d", _xpos_with(root=1), "The scores are divided by d, not by its root."),
        Wrong(
            "γ below alone",
            _xpos_with(zeta=lambda pairs, gamma: torch.arange(pairs) / pairs / (1 + gamma)),
            "γ stands below the line only. Above it, it is missing, so the first pair has ζ = 0: it "
            "vanishes at every distance but 0, and below 0 it is infinite.",
        ),
    ),
    variants=(
        Variant(
            "from the middle",
            _xpos_each(lambda k: (k.min() + k.max()) // 2),
            "Any common place may be taken off both positions; from the middle the sizes stay smallest.",
        ),
        Variant(
            "from the first key",
            _xpos_each(lambda k_positions: k_positions.min()),
            "Any common place may be taken off both positions.",
        ),
    ),
    hints=(
        "A score depends on m − n alone, in its angle and in its size. So you may count positions from "
        "anywhere, as long as queries and keys count from the same place.",
        "Turn as in RoPE, with positions that are counted from the first key, and multiply both channels "
        "of a pair by its size.",
        "A query has the size ζ to the power of its place over the scale, a key the reciprocal. Hide what "
        "comes after the query at the end.",
    ),
)

QUESTIONS = (ALIBI_SLOPES, ALIBI_BIAS, ALIBI_ATTENTION, MIRROR_GAP, XPOS_SCORES)
