"""Exercise 07: ALiBi."""

from __future__ import annotations

import math

import torch

from ..question import Case, Draw, Question, Variant, Wrong

LINE = '07, section "One line"'
SLOPES = '07, section "The slopes"'
HORIZON = '07, section "How far does a head see?"'
RELEASED = '07, section "A bug in the released code?"'
MIRROR = '07, section "An encoder: the mirror"'
BUG = '07, section "Find the bug"'
WINDOW = '07, section "How much of the text does it use?"'


# ---- alibi_slopes ----
def _alibi_slopes_cases(draw: Draw) -> list[Case]:
    groups = {"a power of two": (4, 16, 32, 64), "8 heads": (8,), "no power of two": (12, 20, 24, 40, 48),
              "an odd number": (3, 5, 7, 11, 13), "one head": (1,)}
    return [Case((n,), f"{n} heads" if what == "8 heads" else f"n = {n}, {what}")
            for what, n in ((what, draw.choice(numbers)) for what, numbers in groups.items())]


def _lower(n):
    return 2 ** (n.bit_length() - 1)


def _geometric(n, of=None):
    return [2.0 ** (-8 * h / (of or n)) for h in range(1, n + 1)]


def _alibi_slopes(n_heads):
    low = _lower(n_heads)
    more = _geometric(2 * low)[0::2]
    return torch.tensor(_geometric(low) + more[:n_heads - low])


def _filled_up(n_heads, more):
    """The slopes of the lower power of two, and others behind them."""
    return torch.tensor((_geometric(_lower(n_heads)) + more)[:n_heads])


def _released_slopes(n_heads):
    def of(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n_heads).is_integer():
        return of(n_heads)
    closest = 2 ** math.floor(math.log2(n_heads))
    return of(closest) + _released_slopes(2 * closest)[0::2][:n_heads - closest]


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
    wrong=(
        Wrong("the formula for any n", lambda n: torch.tensor(_geometric(n)),
              "For powers of two this is right. For another number of heads the released code does not put n "
              "into the formula: it mixes two lists. A model with 12 heads would get other slopes than the "
              "ones it was trained with, and no error would tell you."),
        Wrong("counted from 0", lambda n: torch.tensor([2.0 ** (-8 * h / n) for h in range(n)]),
              "The first slope is 1 and the last one is missing: h runs from 0 here. With 8 heads the list "
              "begins with 1/2."),
        Wrong("halved from head to head", lambda n: torch.tensor([2.0**-h for h in range(1, n + 1)]),
              "Each slope is half of the one before, whatever n is. That is right for 8 heads only: the last "
              "slope of every power of two is 1/256, so more heads lie closer together."),
        Wrong("natural base", lambda n: torch.tensor([math.exp(-8 * h / n) for h in range(1, n + 1)]),
              "These are powers of e. The slopes are powers of 2; with 8 heads the first one is 1/2, not "
              "0.37."),
        Wrong("growing slopes", lambda n: torch.tensor([2.0 ** (8 * h / n) for h in range(1, n + 1)]),
              "The exponent has lost its minus: slopes go up to 256. A head like that sees no key but its "
              "own."),
        Wrong("evenly spaced", lambda n: torch.linspace(2.0 ** (-8 / n), 2.0**-8, n),
              "The slopes go down in equal steps. They are a geometric row: the ratio of neighbours is the "
              "same, so that some heads see near and some far."),
        Wrong("8 and n swapped", lambda n: torch.tensor([2.0 ** (-n * h / 8) for h in range(1, n + 1)]),
              "With 8 heads this is right. With more heads the slopes fall faster, and they should fall more "
              "slowly: the last one of a power of two is always 1/256."),
        Wrong("the 8 left out", lambda n: torch.tensor([2.0 ** (-h / n) for h in range(1, n + 1)]),
              "All slopes lie between 1/2 and 1, so every head is near-sighted. The flattest one of a power "
              "of two should be 1/256: a factor is missing in the exponent."),
        Wrong("the first n of the next power of two", lambda n: torch.tensor(
                  _geometric(n if n == _lower(n) else 2 * _lower(n))[:n]),
              "For other numbers of heads you take the list of the next higher power of two and cut it off: "
              "the flattest heads are lost. The released code begins with the next lower one."),
        Wrong("the missing ones in order", lambda n: _filled_up(n, _geometric(2 * _lower(n))),
              "You begin with the right list. What is missing comes from the right list, too, but you take "
              "it without gaps. Compare with the printed slopes of 12 heads."),
        Wrong("slopes twice", lambda n: _filled_up(n, _geometric(2 * _lower(n))[1::2]),
              "Some slopes appear twice, so two heads see the same. What fills the list up is the shorter "
              "list again, which is one half of the longer one; the other half is needed."),
        Wrong("sorted", lambda n: _alibi_slopes(n).sort(descending=True).values,
              "These are the right numbers in another order. Head h of a trained model expects its own "
              "slope: with 12 heads the released list is not sorted."),
        Wrong("longer list "
              "first", lambda n: _alibi_slopes(n).roll(n - _lower(n)),
              "These are the right numbers, but the ones that fill up stand in front. Head h of a trained "
              "model expects its own slope."),
    ),
    variants=(
        Variant("as in the released code", _released_slopes,
                "This is how the authors' code writes it, with a start that is also the ratio."),
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
        Case((slopes(4), whole, whole), f"{len(whole)} tokens from position 0"),
        Case((slopes(3), cached[-1:], cached), f"one query and {len(cached)} keys in a cache"),
        Case((slopes(5), later[-3:], later), f"the last 3 of {len(later)} tokens, from position {later[0]}"),
        Case((slopes(2), gaps[-4:], gaps), "positions with gaps, as after keys were thrown away"),
        Case((slopes(6, torch.float64), wide, wide), "float64, positions with gaps"),
    ]


def _bias(slopes, q_positions, k_positions, of=lambda r: r, hidden=lambda r: r > 0, fill=-math.inf):
    r = k_positions - q_positions[:, None]
    bias = slopes[:, None, None] * of(r).to(slopes.dtype)
    return bias.masked_fill(hidden(r), fill)


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
        Wrong("sign turned", lambda m, q, k: _bias(m, q, k, of=lambda r: -r),
              "The bias grows with the distance: the oldest key is rewarded most. Give all keys the same "
              "content and look at the weights of the last query; they should rise towards its own "
              "key.", BUG),
        Wrong("future not hidden", lambda m, q, k: _bias(m, q, k, hidden=_nothing_hidden),
              "Keys after the query get a positive bias, the more the farther. A decoder may not see them at "
              "all."),
        Wrong("distance to both sides, nothing hidden",
              lambda m, q, k: _bias(m, q, k, of=lambda r: -r.abs(), hidden=_nothing_hidden),
              "This is the bias of an encoder. Here keys after the query must be hidden."),
        Wrong("rows counted from 0", lambda m, q, k: _bias(m, _from_zero(q), _from_zero(k)),
              "Row 0 is taken for position 0, for queries as for keys. With a cache, the one new query is "
              "the last token; your bias treats it as the first, so that it sees one key only."),
        Wrong("tokens counted, positions ignored",
              lambda m, q, k: _bias(m, torch.arange(len(k) - len(q), len(k)), _from_zero(k)),
              "The distances are differences of row numbers. Where positions have gaps, neighbouring rows "
              "are farther apart than 1: use the positions that are given."),
        Wrong("mask by rows, bias by positions", lambda m, q, k: _bias(
                  m, q, k, hidden=lambda r: torch.ones_like(r, dtype=torch.bool).triu(1)),
              "The distances are right, but the mask goes by row numbers. With a cache, the one new query is "
              "row 0 and the last token: it sees the oldest key only. Compare positions for the mask, too."),
        Wrong("own key hidden", lambda m, q, k: _bias(m, q, k, hidden=lambda r: r >= 0),
              "A query does not see its own key. The query at position 0 then sees nothing, and its softmax "
              "gives NaN."),
        Wrong("past hidden", lambda m, q, k: _bias(m, q, k, hidden=lambda r: r < 0),
              "The mask hides the keys before the query and shows those after it: it is the wrong triangle."),
        Wrong("one slope for all heads", lambda m, q, k: _bias(m[:1].expand(len(m)), q, k),
              "All heads have the same bias. Each head has a slope of its own: the first axis of the result "
              "counts heads."),
        Wrong("slopes made anew", lambda m, q, k: _bias(
                  torch.tensor(_geometric(len(m)), dtype=m.dtype), q, k),
              "You work with 2^(−8h/n), whatever is given. The function has to use the slopes that it gets.",
              SLOPES),
        Wrong("hidden keys get 0", lambda m, q, k: _bias(m, q, k, fill=0.0),
              "Keys after the query get the bias 0, the best one there is. A bias of 0 hides nothing; after "
              "the softmax, hidden keys should have the weight 0."),
        Wrong("a small penalty for a mask", lambda m, q, k: _bias(m, q, k, fill=-1.0),
              "Hidden keys get −1. That is a small penalty, not a mask: after the softmax they keep a part "
              "of the attention."),
        Wrong("squared distance", lambda m, q, k: _bias(m, q, k, of=lambda r: -r * r),
              "The penalty grows with the square of the distance. ALiBi is linear: each token more costs the "
              "same."),
        Wrong("only a mask", lambda m, q, k: _bias(m, q, k, of=torch.zeros_like),
              "All visible keys have the same bias. This is a causal mask without ALiBi."),
        Wrong("first slope times head number", lambda m, q, k: torch.stack(
                  [_bias(m[:1], q, k)[0] * (h + 1) for h in range(len(m))]),
              "Head h has h times the bias of the first head. Each head has its own number in `slopes`."),
        Wrong("softmax already taken", lambda m, q, k: _alibi_bias(m, q, k).softmax(-1),
              "These are weights, not a bias: each row sums to 1. The softmax comes later, after the bias "
              "was added to the scores."),
        Wrong("heads on the last axis", lambda m, q, k: _alibi_bias(m, q, k).permute(1, 2, 0),
              "The heads stand on the last axis. Scores have the shape [H, Lq, Lk], so the bias has to have "
              "the heads in front."),
        Wrong("queries along the columns", lambda m, q, k: _alibi_bias(m, q, k).mT,
              "Queries and keys have changed places: rows of the bias belong to queries, columns to keys."),
    ),
    variants=(
        Variant("positive, as in the released "
                "code", lambda m, q, k: _bias(m, 0 * q, k, hidden=_nothing_hidden)
                .masked_fill(k > q[:, None], -math.inf),
                "m·j is the same for all queries, and differs from the paper by a constant per query."),
        Variant("a very low number", lambda m, q, k: _bias(m, q, k, fill=-1e9),
                "A number far below all scores hides a key as well as −inf does."),
        Variant("a loop", lambda m, q, k: [[[-float(s) * float(a - b) if b <= a else -math.inf for b in k]
                                            for a in q] for s in m], "A loop is slow and right."),
        Variant("absolute distance under a mask", lambda m, q, k: _bias(m, q, k, of=lambda r: -r.abs()),
                "Under a causal mask, the absolute distance is the distance."),
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
    sizes = {"a text at once": (2, 3, 6, 6, 8), "one new query and a cache": (1, 4, 1, 9, 6),
             "3 new queries and a cache": (3, 2, 3, 8, 4), "float64, 2 new queries": (2, 5, 2, 11, 16)}
    cases = []
    for what, (batch, heads, queries, keys, dim) in sizes.items():
        dtype = torch.float64 if "float64" in what else torch.float32
        keys += draw.integer(0, 2) if queries < keys else 0
        q = 2 * draw.normal(batch, heads, queries, dim, dtype=dtype)
        k, v = (draw.normal(batch, heads, keys, dim, dtype=dtype) for _ in range(2))
        slopes = draw.uniform(heads, low=0.3, high=0.9, dtype=dtype)
        cases.append(Case((q, k, v, slopes), f"{what} (Lq = {queries}, Lk = {keys}, d = {dim})"))
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
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = (q @ k.mT + bias) * scale if inside else q @ k.mT * scale + bias
    if masked:
        scores = scores.masked_fill(j > i + late, -math.inf)
    return scores.softmax(axis) @ v


def _bias_behind_the_softmax(q, k, v, slopes):
    places = torch.arange(k.shape[-2])
    return (_weights(q, k, 0 * slopes) + _bias(slopes, places[-q.shape[-2]:], places, fill=0)) @ v


def _weights(q, k, slopes, masked=True):
    eye = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], k.shape[-2])
    return _attend(q, k, eye, slopes, masked=masked)


def _hidden_after_the_softmax(q, k, v, slopes):
    i, j = torch.arange(k.shape[-2] - q.shape[-2], k.shape[-2])[:, None], torch.arange(k.shape[-2])
    return _weights(q, k, slopes, masked=False).masked_fill(j > i, 0) @ v


def _with_torch(q, k, v, slopes):
    places = torch.arange(k.shape[-2])
    mask = _alibi_bias(slopes, places[-q.shape[-2]:], places).expand(len(q), -1, -1, -1)
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
        Wrong("as it was given", lambda *x: _attend(*x, start=0, inside=True),
              "This is still what the given code does. Two things are wrong with it. One shows on any input: "
              "compare the weight ratio of two neighbouring keys with e^(−m), for equal contents. The other "
              "one shows only when there are fewer queries than keys."),
        Wrong("bias inside of the scale", lambda *x: _attend(*x, inside=True),
              "The cache is right now. But the bias is divided by √d together with the scores. A learned "
              "bias could make up for that; a fixed slope is √d times too flat."),
        Wrong("queries counted from 0", lambda *x: _attend(*x, start=0),
              "The bias stands outside of the scale now. But the first query of a call is taken for token 0. "
              "With a cache it comes after all older keys; here it sees the oldest key only.", RELEASED),
        Wrong("scores not scaled", lambda *x: _attend(*x, scale=1.0),
              "The factor 1/√d is gone. It belongs to the scores; only the bias stays without it."),
        Wrong("scaled by d", lambda *x: _attend(*x, scale=1 / x[0].shape[-1]),
              "The scores are divided by d. It is the square root of d, so that their spread stays near 1."),
        Wrong("scaled by the number of heads", lambda *x: _attend(*x, scale=x[0].shape[1] ** -0.5),
              "The scores are divided by the square root of the number of heads: that is the wrong axis. It "
              "is the number of channels of a head that counts."),
        Wrong("sign turned", lambda *x: _attend(*x, sign=1),
              "Old keys are rewarded instead of penalised. Test a bias with equal contents: weights have to "
              "fall with the distance.", BUG),
        Wrong("nothing hidden", lambda *x: _attend(*x, masked=False),
              "A query sees keys that come after it, and the bias rewards them. Change the last key: the "
              "output of the first query must not move."),
        Wrong("mask one step late", lambda *x: _attend(*x, late=1),
              "Each query sees one key too many: the next token. A model trained like this learns to copy."),
        Wrong("own key hidden", lambda *x: _attend(*x, late=-1),
              "A query does not see its own key. The first query of a text then sees nothing, and its "
              "softmax gives NaN."),
        Wrong("hidden after the softmax", _hidden_after_the_softmax,
              "The mask is applied to the weights. Hidden keys have taken their share by then, and the rest "
              "of a row no longer sums to 1."),
        Wrong("softmax over the queries", lambda *x: _attend(*x, axis=-2),
              "Each column of weights sums to 1. A query shares its attention among the keys, so each row "
              "has to."),
        Wrong("bias behind the softmax", _bias_behind_the_softmax,
              "The bias is added to the weights. It belongs to the scores: only there does it become a "
              "factor e^(−m) per token."),
        Wrong("no bias", lambda q, k, v, m: _attend(q, k, v, 0 * m),
              "This is plain causal attention: the slopes play no part."),
    ),
    variants=(
        Variant("torch's own attention", _with_torch,
                "An additive mask goes into the scores after the scale, so the bias can travel in it."),
        Variant("positive bias", lambda q, k, v, m: (
                    q @ k.mT / q.shape[-1] ** 0.5 + m[:, None, None] * torch.arange(k.shape[-2])
                    + torch.full((q.shape[-2], k.shape[-2]), -math.inf, dtype=q.dtype)
                    .triu(k.shape[-2] - q.shape[-2] + 1)).softmax(-1) @ v,
                "m·j is enough, since a softmax sees no constant per row."),
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
    def toeplitz(heads, n, dtype):
        left, right = (draw.uniform(heads, low=0.1, high=1.0, dtype=dtype) for _ in range(2))
        right[0] = left[0]
        r = torch.arange(n) - torch.arange(n)[:, None]
        return left[:, None, None] * r.clamp(max=0) - right[:, None, None] * r.clamp(min=0)

    def constants(heads, n):
        return 2 * draw.normal(heads, n, 1)

    n = draw.integer(4, 7)
    return [
        Case((toeplitz(3, 5, torch.float32),), "3 heads, the first one with equal slopes for both sides"),
        Case((toeplitz(2, 2 * n, torch.float32) + constants(2, 2 * n),), "a constant for each query besides"),
        Case((draw.normal(4, n, n),), f"any table of {n} × {n}"),
        Case((draw.normal(5, 7, 7, dtype=torch.float64) + toeplitz(5, 7, torch.float64),), "float64, 7 × 7"),
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
    return [max(float(abs(w[i, j] - w[n - 1 - i, n - 1 - j])) for i in range(n) for j in range(n))
            for w in weights]


MIRROR_GAP = Question(
    name="mirror_gap",
    exercise="07",
    title="How much a bias tells an encoder about the direction of reading.",
    returns="a tensor of shape [H]",
    section=MIRROR,
    draw=_mirror_gap_cases,
    reference=_mirror_gap,
    wrong=(
        Wrong("transposed", _gap_of(lambda w: w.mT),
              "You compare the weights with their transpose: query and key change places. Reading from the "
              "other end is another change: token i becomes token n − 1 − i, as a query and as a key. "
              "Weights of a bias −m·|i − j| are not even symmetric, since each row has its own sum."),
        Wrong("transposed before the "
              "softmax", lambda b: (b.softmax(-1) - b.mT.softmax(-1)).abs().amax((-1, -2)),
              "You compare with the transposed bias. For a bias of the offset alone that gives the same; for "
              "any other one it does not. Reversing the text renumbers queries and keys."),
        Wrong("biases compared", lambda b: (b - b.flip(-1, -2)).abs().amax((-1, -2)),
              "You compare the biases themselves. Two of them that differ by a constant per query give the "
              "same attention, but your number says that they differ.", RELEASED),
        Wrong("keys reversed alone", _gap_of(lambda w: w.flip(-1)),
              "Only the keys are reversed. In a reversed text every query stands at another place, too."),
        Wrong("queries reversed alone", _gap_of(lambda w: w.flip(-2)),
              "Only the queries are reversed. In a reversed text every key stands at another place, too."),
        Wrong("heads reversed, too", _gap_of(lambda w: w.flip(0, 1, 2)),
              "The heads are reversed as well, so that each head is compared with another one. Only the axes "
              "of tokens change when a text is read from the other end."),
        Wrong("transposed and reversed", _gap_of(lambda w: w.mT.flip(-1, -2)),
              "Queries and keys change places, and are reversed besides. In a reversed text a query stays a "
              "query."),
        Wrong("mean, not largest", _mean_gap,
              "This is the mean of the differences. A few places that differ much are lost in it as the text "
              "grows; the largest one is asked for."),
        Wrong("one number for all heads", lambda b: _mirror_gap(b).amax(),
              "This is one number for the whole layer. One head per number is asked for: you want to see "
              "which head can tell the direction."),
        Wrong("softmax over the queries", _gap_of(lambda w: w.flip(-1, -2), axis=-2),
              "The softmax runs over the queries: each column sums to 1. A query shares its attention among "
              "the keys."),
        Wrong("future hidden", _causal_gap,
              "You hide the keys after each query. An encoder has no mask; a decoder never has this "
              "mirror.",),
        Wrong("sums of "
              "rows", lambda b: (b.softmax(-1).sum(-2) - b.softmax(-1).sum(-2).flip(-1)).abs().amax(-1),
              "You compare how much attention each key gets in all. Two weight tables can differ although "
              "these sums agree."),
    ),
    variants=(
        Variant("a loop", _gap_by_loop, "Place by place, and with a softmax by hand."),
        Variant("without absolute "
                "values", lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).amax((-1, -2)),
                "The difference changes its sign under the mirror, so its largest value is the largest "
                "size."),
        Variant("reversed first", lambda b: (b.softmax(-1) - b.flip(-1).flip(-2).softmax(-1)).flatten(1).abs()
                .max(1).values, "Reversing the bias and then taking the softmax is the same."),
    ),
    hints=(
        "Read the text from the other end: which token is then query i, and which one is key j?",
        "Softmax first: what a bias says is what it does to the weights. Then compare them with themselves, "
        "renumbered.",
        "Both axes of tokens are reversed, the axis of heads is not. Then take the largest size over both.",
    ),
)


# ---- attention_window ----
def _attention_window_cases(draw: Draw) -> list[Case]:
    sizes = {"a whole text": (4, 21, 21, 0.6, torch.float32), "one query, a "
                                                              "cache": (5, 1, 24, 0.75, torch.float32),
             "5 queries, a cache": (6, 5, 30, 0.9, torch.float32), "float64": (3, 12, 26, 0.5, torch.float64)}
    cases = []
    for what, (heads, queries, keys, share, dtype) in sizes.items():
        share = round(share + draw.number(-0.04, 0.04), 3)
        while True:  # until no sum of weights lies at the very share
            weights = _some_weights(draw, heads, queries, keys, dtype)
            if bool(((_mass_within(weights) - share).abs() > 1e-4).all()):
                break
        cases.append(Case((weights, share), f"{what}, Lq = {queries}, Lk = {keys}, share {share}"))
    return cases


def _some_weights(draw, heads, queries, keys, dtype):
    behind = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    slopes = draw.uniform(heads, low=0.02, high=0.2, dtype=dtype)[:, None, None]
    scores = draw.normal(heads, queries, keys, dtype=dtype) - slopes * behind
    return scores.masked_fill(behind < 0, -math.inf).softmax(-1)


def _mass_within(weights):
    """[H, Lk]: the weight of the 1, 2, … nearest keys, in the mean over the queries."""
    queries, keys = weights.shape[-2:]
    behind = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return torch.stack([(weights * (behind < w)).sum(-1).mean(-1) for w in range(1, keys + 1)], -1)


def _attention_window(weights, share):
    reached = _mass_within(weights) >= share
    return reached.int().argmax(-1) + 1


def _reach(mass, share):
    """The number of steps until a growing ``mass`` reaches ``share``."""
    return (mass < share).sum(-1) + 1


def _per_query(weights, share):
    """[H, Lq]: the window of each query alone."""
    queries, keys = weights.shape[-2:]
    return torch.stack([_attention_window(weights[:, n:n + 1, :keys - queries + n + 1], share)
                        for n in range(queries)], -1)


def _rows_from_zero(weights, share):
    behind = torch.arange(weights.shape[1])[:, None] - torch.arange(weights.shape[2])
    mass = torch.stack([(weights * ((behind < w) & (behind >= 0))).sum(-1).mean(-1)
                        for w in range(1, weights.shape[2] + 1)], -1)
    return _reach(mass, share).clamp(max=weights.shape[2])


def _rolled(weights, share):
    """With each row moved to the right until its own key is the last."""
    queries, keys = weights.shape[-2:]
    rows = [weights[:, n].roll(queries - 1 - n, -1) for n in range(queries)]
    return _reach(torch.stack(rows, 1).flip(-1).cumsum(-1).mean(1), share)


ATTENTION_WINDOW = Question(
    name="attention_window",
    exercise="07",
    title="How many of the nearest keys hold a given share of each head's attention.",
    returns="an int64 tensor of shape [H]",
    section=HORIZON,
    draw=_attention_window_cases,
    reference=_attention_window,
    bonus=True,
    wrong=(
        Wrong("same columns for all queries", lambda w, s: _reach(w.mean(1).flip(-1).cumsum(-1), s),
              "You sum the last columns of the table, the same ones for each query. For an early query they "
              "are the future: its nearest keys stand in other columns."),
        Wrong("counted from the oldest key", lambda w, s: _reach(w.mean(1).cumsum(-1), s),
              "You start at the first key of the text. The window starts at the query and goes back."),
        Wrong("rows counted from 0", _rows_from_zero,
              "Row n is taken for token n. With a cache, the queries are the last tokens: row n stands at "
              "Lk − Lq + n, and its own key stands there, too.", RELEASED),
        Wrong("own key not counted", lambda w, s: _attention_window(w, s) - 1,
              "You return the distance of the farthest key that is needed. The window counts keys, and the "
              "query's own key is one of them."),
        Wrong("one key too many", lambda w, s: _attention_window(w, s) + 1,
              "One key fewer is enough to reach the share."),
        Wrong("largest weights instead of nearest", lambda w, s: _reach(
                  w.sort(-1, descending=True).values.cumsum(-1).mean(1), s),
              "You count how many keys are needed if the largest weights come first. That says how sharp the "
              "attention is, not how far back it goes."),
        *[Wrong("mean of the windows" + how,
                lambda w, s, whole=whole: whole(_per_query(w, s).to(w.dtype).mean(-1)),
                "You find the window of each query, and average the windows. Asked for is one window that "
                "holds the share in the mean over the queries: average first, then look for the window.")
          for how, whole in (("", lambda mean: mean), (", rounded", lambda mean: mean.round().long()),
                             (", rounded up", lambda mean: mean.ceil().long()),
                             (", cut off", lambda mean: mean.long()))],
        Wrong("widest window", lambda w, s: _per_query(w, s).amax(-1),
              "This is the window of the query that looks farthest. Asked for is the one that holds the "
              "share in the mean over the queries."),
        Wrong("last query only", lambda w, s: _attention_window(w[:, -1:], s),
              "This looks at the last query alone."),
        Wrong("the rest instead of the share", lambda w, s: _attention_window(w, 1 - s),
              "You stop when 1 − share is reached."),
        Wrong("one window for all heads", lambda w, s: _attention_window(w.mean(0, keepdim=True), s)[0],
              "The heads are averaged. Their slopes differ, so do their windows: one number per head."),
        Wrong("one number, "
              "repeated", lambda w, s: _attention_window(w.mean(0, keepdim=True), s).expand(len(w)),
              "The heads are averaged, so that all have the same window. Their slopes differ."),
        Wrong("a single weight above the share", lambda w, s: (w.amax((-1, -2)) >= s).long() + 1,
              "You compare single weights with the share. The weights of the window are to be summed."),
    ),
    variants=(
        Variant("rows moved", _rolled, "Each row is moved until its own key is the last; then one cumulative "
                                       "sum."),
        Variant("numbers in a list", lambda w, s: [next(n for n, mass in enumerate(head, 1) if mass >= s)
                                                   for head in _mass_within(w).tolist()],
                "A search from 1 upwards."),
    ),
    hints=(
        "The nearest keys of query row n lie just before column Lk − Lq + n. Which of them belong to a "
        "window of w?",
        "Make a table of distances [Lq, Lk]. For each w: sum the weights with a distance below w, average "
        "over the queries. The result grows with w.",
        "Stop at the first w whose mean is at least `share`. In a tensor of yes and no, argmax finds the "
        "first yes; and a window counts from 1.",
    ),
)

QUESTIONS = (ALIBI_SLOPES, ALIBI_BIAS, ALIBI_ATTENTION, MIRROR_GAP, ATTENTION_WINDOW)
