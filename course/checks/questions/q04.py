"""Exercise 04: relative positions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong
from .q03 import green, told_green, whole

CLIPPED = 'deeper/04_clipping, section "Beyond the table: clipping"'
SIGN = 'deeper/04_signs, section "Which way round?"'
FOUND = '04, section "Find the bug"'
BUCKETS = 'deeper/04_clipping, section "T5: buckets"'
SHAW = 'deeper/04_vectors, section "Shaw 2018: a vector for each offset"'
ROOT = 'deeper/04_cost, section "Inside or outside of √d?"'
SWIN = 'deeper/04_axes, section "Swin: two axes"'
TERMS = 'deeper/04_memory, section "Four terms"'


def _r(q_positions, k_positions):
    return k_positions[None, :] - q_positions[:, None]


def _row(table, q_positions, k_positions):
    """The row, 0 … 2k, of each pair in a table of 2k + 1 rows."""
    k = (len(table) - 1) // 2
    return _r(q_positions, k_positions).clamp(-k, k) + k


def _numbered(*lengths):
    return tuple(torch.arange(length) for length in lengths)


# ---- bias_test ----
# A test that the learner writes: it is good when none of these biases gets the right numbers on it.
def _clipped_bias(W, q_positions, k_positions):
    return W[:, _row(W[0], q_positions, k_positions)]


def _in_a_row(positions):
    """The same number of consecutive positions, starting from the first."""
    return positions[0] + torch.arange(len(positions))


def _ahead_as_itself(W, q, k_positions):
    k = len(W[0]) // 2
    return W[:, _r(q, k_positions).clamp(-k, 0) + k]


def _edge_left_out(W, q, k_positions):
    return _clipped_bias(W, q, k_positions) * (_r(q, k_positions) != -(len(W[0]) // 2))


def _round_again(W, q, k_positions):
    k = len(W[0]) // 2
    return W[:, (_r(q, k_positions).clamp(min=-k) + k) % len(W[0])]


def _only_the_size(W, q, k_positions):
    k = len(W[0]) // 2
    return W[:, _r(q, k_positions).abs().clamp(max=k) + k]


def _broken_biases():
    """The broken biases, each by what it does, in the words that the reader sees."""
    return {
        _("takes query − key"): lambda W, q, k: _clipped_bias(W, -q, -k),
        _("takes the size of the offset, without its sign"): _only_the_size,
        _("gives every key ahead the number of offset 0"): _ahead_as_itself,
        _("adds nothing for a key exactly k behind"): _edge_left_out,
        _("starts again at the other end of the table for keys more than k ahead"): _round_again,
        _("numbers the keys one by one from the first of them"): lambda W, q, k: _clipped_bias(
            W, q, _in_a_row(k)
        ),
        _("sorts the keys before it looks"): lambda W, q, k: _clipped_bias(W, q, k.sort().values),
        _("keeps the bias of the first query for all others"): lambda W, q, k: _clipped_bias(
            W, q[:1].expand_as(q), k
        ),
    }


NO_POSITION = "A position lies outside of the text: positions go from 0 to 999."


def _limit(q: torch.Tensor | None, keys: torch.Tensor | None) -> str:
    """Which limit of the positions is broken, as a learner reads it, or ""."""
    if q is None or keys is None:
        return _("Two lists of whole numbers are asked for: positions of the queries, and of the keys.")
    for positions, what, most in ((q, _("queries"), 3), (keys, _("keys"), 5)):
        if len(positions) > most:
            return _("There are {n} {what}, and {most} are the most.").format(
                n=len(positions), what=what, most=most
            )
    if len(keys.unique()) < len(keys):
        return _("Two keys stand at the same position: each key needs its own.")
    return _(NO_POSITION) if min(q.min(), keys.min()) < 0 or max(q.max(), keys.max()) > 999 else ""


def _bias_test_cases(draw: Draw) -> list[Case]:
    return [Case((int(k),), f"k = {int(k)}") for k in 2 + draw.permutation(6)]


def _passing_biases(q: torch.Tensor, keys: torch.Tensor, k: int) -> list[str]:
    """The broken biases that give the right numbers for these positions."""
    W = Draw(k).normal(2, 2 * k + 1)
    right = _clipped_bias(W, q, keys)
    return [what for what, broken in _broken_biases().items() if torch.allclose(broken(W, q, keys), right)]


def _bias_test_says(value, case: Case) -> str:
    q, keys = (
        whole(part, 1) for part in (value if isinstance(value, list) and len(value) == 2 else (None, None))
    )
    if limit := _limit(q, keys):
        return limit
    assert q is not None and keys is not None
    found = _passing_biases(q, keys, *case.args)
    return told_green(*found) if found else ""


def _bias_test(k):
    return [k + 2, k + 3], [k + 4, 2, 2 * k + 5]


_UNTOUCHED = ("numbers the keys one by one from the first of them", "sorts the keys before it looks")

BIAS_TEST = Question(
    name="bias_test",
    exercise="04",
    title="Positions on which eight broken clipped biases are all found out.",
    returns="two lists (or tensors): positions of the queries and positions of the keys",
    section=CLIPPED,
    draw=_bias_test_cases,
    reference=_bias_test,
    faults=_bias_test_says,
    own_words=True,
    wrong=(
        Wrong(
            "one query",
            lambda k: ([k + 2], _bias_test(k)[1]),
            green("keeps the bias of the first query for all others"),
        ),
        Wrong(
            "keys in order, without a gap",
            lambda k: ([0, 2 * k], [k - 1 + n for n in range(5)]),
            green(*_UNTOUCHED),
        ),
        Wrong(
            "keys in order",
            lambda k: ([k + 2, k + 3], [2, k + 4, 2 * k + 5]),
            green("sorts the keys before it looks"),
        ),
        Wrong(
            "nothing ahead",
            lambda k: ([3 * k + 8, 3 * k + 9], [2 * k + 9, 2 * k + 8, 0]),
            green(
                "gives every key ahead the number of offset 0",
                "starts again at the other end of the table for keys more than k ahead",
            ),
        ),
        Wrong(
            "nothing far ahead",
            lambda k: ([k + 2, k + 3], [k + 4, 2, 1]),
            green("starts again at the other end of the table for keys more than k ahead"),
        ),
        Wrong(
            "nothing exactly k behind",
            lambda k: ([k + 2, k + 3], [k + 4, 0, 2 * k + 5]),
            green("adds nothing for a key exactly k behind"),
        ),
        Wrong(
            "nothing behind",
            lambda k: ([0, 1], [2, k + 2, 1]),
            green(
                "takes the size of the offset, without its sign", "adds nothing for a key exactly k behind"
            ),
        ),
        Wrong("positions that do not exist", lambda k: ([-1, 0], _bias_test(k)[1]), NO_POSITION),
    ),
    variants=(
        Variant(
            "three queries, five keys",
            lambda k: (torch.tensor([40, 60, 20]), torch.tensor([59, 40 - k, 19, 41, 90])),
            "Positions far apart find them as well.",
        ),
        Variant(
            "queries in falling order",
            lambda k: ([2 * k + 9, k + 9], [k + 10, 4 * k + 20, 9]),
            "Which query comes first does not matter, as long as two differ.",
        ),
    ),
    hints=(
        "Take the broken versions one by one: for which positions do they happen to be right? Yours must be "
        "none of these.",
        "Three of the eight go wrong at some offsets only: ahead, far ahead, and at one end of the table. "
        "With k from the argument you can hit each of them.",
        "Two different queries, and three keys that are out of order: one a step or two ahead, one exactly "
        "k behind one of the queries, one more than k ahead.",
    ),
)


# ---- t5_bucket ----
def _t5_bucket_cases(draw: Draw) -> list[Case]:
    cases = []
    for n_buckets, max_distance, bidirectional, count in (
        (32, 128, False, 30),
        (32, 128, True, 24),
        (16, 50, False, 20),
        (12, 40, True, 22),
        (8, 90, True, 18),
    ):
        side = n_buckets // 2 if bidirectional else n_buckets
        exact = side // 2
        last = next(
            n for n in range(exact, max_distance + 1) if side - 1 <= _place(n, exact, side, max_distance)
        )
        near, middle, far = (
            draw.integers(low, high, count)
            for low, high in ((0, exact), (exact + 1, last), (max_distance, 3 * max_distance))
        )
        n = torch.cat([near, middle, far, torch.tensor([0, 1, max_distance + 1])])
        clear = [x <= exact or _off_the_edges(_place(x, exact, side, max_distance)) for x in n.tolist()]
        n = n[torch.tensor(clear)]
        r = torch.cat([-n, n[draw.permutation(len(n))]])
        r = r[: len(r) // 6 * 6].view(6, -1) if bidirectional else r
        what = (
            _("{n} buckets up to {far}, encoder") if bidirectional else _("{n} buckets up to {far}, decoder")
        ).format(n=n_buckets, far=max_distance)
        cases.append(Case((r, n_buckets, max_distance, bidirectional), what))
    return cases


def _place(n, exact, side, max_distance):
    """The bucket of a far distance, as a fraction."""
    return exact + (side - exact) * math.log(n / exact) / math.log(max_distance / exact)


def _off_the_edges(place):
    """On an edge, the bucket would depend on rounding."""
    return abs(place - round(place)) > 1e-3


def _bucket(
    r,
    n_buckets,
    max_distance,
    bidirectional,
    *,
    distance=None,
    ahead=lambda r: r > 0,
    last=-1,
    logs=(torch.log, math.log),
    exact=None,
    whole=torch.floor,
    halved=True,
):
    side = n_buckets // 2 if bidirectional and halved else n_buckets
    first = ahead(r) * side if bidirectional else torch.zeros_like(r)
    if distance is None:
        distance = torch.abs if bidirectional else (lambda r: (-r).clamp(min=0))
    n = distance(r)
    exact = side // 2 if exact is None else exact(n_buckets)
    place = logs[0](n / exact) / logs[1](max_distance / exact) * (side - exact)
    far = exact + whole(place.nan_to_num(0, 1e6, 0)).long()
    far = far if last is None else far.clamp(max=side + last)
    return first + torch.where(n < exact, n, far)


def _t5_bucket(r, n_buckets, max_distance, bidirectional):
    return _bucket(r, n_buckets, max_distance, bidirectional)


def _but(**options):
    """The reference with some things done differently."""
    return lambda r, n_buckets, max_distance, bidirectional: _bucket(
        r, n_buckets, max_distance, bidirectional, **options
    )


def _unclamped(bidirectional):
    return torch.abs if bidirectional else torch.neg


def _half_repaired(future=False, end=False, sides=False):
    """The broken code with some of its three bugs repaired."""

    def answer(r, n_buckets, max_distance, bidirectional):
        return _bucket(
            r,
            n_buckets,
            max_distance,
            bidirectional,
            distance=None if future else _unclamped(bidirectional),
            last=-1 if end else None,
            ahead=(lambda r: r > 0) if sides else (lambda r: r < 0),
        )

    return answer


def _abs_everywhere(r, n_buckets, max_distance, bidirectional):
    return _bucket(r, n_buckets, max_distance, bidirectional, distance=torch.abs)


def _end_of_the_sum(count):
    """All repaired, but the limit comes last, for past and future together."""
    return lambda r, n_buckets, max_distance, bidirectional: _bucket(
        r, n_buckets, max_distance, bidirectional, last=None
    ).clamp(max=count(n_buckets, bidirectional) - 1)


def _looped_bucket(r, n_buckets, max_distance, bidirectional):
    def one(r):
        side, first, n = n_buckets, 0, max(0, -r)
        if bidirectional:
            side //= 2
            first, n = (side if r > 0 else 0), abs(r)
        if n < side // 2:
            return first + n
        grown = math.log2(n / (side // 2)) / math.log2(max_distance / (side // 2))
        return first + min(side - 1, side // 2 + int((side - side // 2) * grown))

    return torch.tensor([one(x) for x in r.flatten().tolist()]).view(r.shape)


def _by_edges(r, n_buckets, max_distance, bidirectional):
    side = n_buckets // 2 if bidirectional else n_buckets
    exact = side // 2
    steps = torch.arange(side - exact, dtype=torch.float64) / (side - exact)
    edges = torch.cat([torch.arange(1, exact), exact * (max_distance / exact) ** steps - 1e-9])
    n = r.abs() if bidirectional else r.neg().clamp(min=0)
    return torch.bucketize(n.double(), edges, right=True) + (r > 0) * side * bidirectional


T5_BUCKET = Question(
    name="t5_bucket",
    exercise="04",
    title="The bucket of each offset, as in T5's released code.",
    returns="an int64 tensor of the shape of r, with numbers from 0 to n_buckets − 1",
    section=BUCKETS,
    draw=_t5_bucket_cases,
    reference=_t5_bucket,
    picture="heat",
    wrong=(
        Wrong(
            "nothing repaired",
            _half_repaired(),
            "This is what the broken code returns. Call it with offsets from −200 to 200, for a decoder "
            "and for an encoder: which numbers are no buckets, and which side is which?",
        ),
        Wrong(
            "only the future repaired",
            _half_repaired(future=True),
            "Keys ahead of a decoder are right now. Two things are left: how large can a bucket's number "
            "become, and which half of an encoder's buckets belongs to keys ahead?",
        ),
        Wrong(
            "only the end repaired",
            _half_repaired(end=True),
            "The last bucket has an end now. Two things are left: what does a decoder give to keys ahead, "
            "and which half of an encoder's buckets belongs to keys ahead?",
        ),
        Wrong(
            "only the sides repaired",
            _half_repaired(sides=True),
            "The two halves of an encoder are right now. Two things are left: what does a decoder give to "
            "keys ahead, and how large can a bucket's number become?",
        ),
        Wrong(
            "keys ahead of a decoder",
            _half_repaired(end=True, sides=True),
            "An encoder is right. In a decoder, keys ahead still get a number below 0, which would index "
            "the table from its end. They all share the bucket of the token itself.",
        ),
        Wrong(
            "no end",
            _half_repaired(future=True, sides=True),
            "Far offsets still get numbers beyond the last bucket: in an encoder the far past runs into "
            "the buckets of the future, in a decoder out of the table.",
        ),
        Wrong(
            "sides exchanged",
            _half_repaired(future=True, end=True),
            "A decoder is right. In an encoder, past and future have changed places: remember that a "
            "positive offset is a key ahead, and see which half it gets in the notebook's picture.",
        ),
        Wrong(
            "distance in a decoder",
            _abs_everywhere,
            "A decoder now treats keys ahead like keys behind, with the size of the offset. It has no "
            "buckets for the future: all of it shares bucket 0.",
        ),
        Wrong(
            "future instead of past",
            lambda r, n_buckets, max_distance, bidirectional: _t5_bucket(
                -r, n_buckets, max_distance, bidirectional
            ),
            "The offset is turned round: keys behind are taken for keys ahead. In a decoder, the whole "
            "past falls into bucket 0.",
            SIGN,
        ),
        Wrong(
            "buckets not halved",
            _but(halved=False),
            "An encoder has to share its buckets among two sides. Here each side gets all of them, so "
            "there are twice as many as the table has rows.",
        ),
        Wrong(
            "two kinds of logarithm",
            _but(logs=(torch.log2, math.log)),
            "Numerator and denominator have logarithms of different bases, so the buckets grow too fast. "
            "A quotient of logarithms does not depend on the base only if both have the same.",
        ),
        Wrong(
            "rounded to the nearest",
            _but(whole=torch.round),
            "The place among the wide buckets is rounded to the nearest; T5 takes the whole part, so each "
            "bucket begins a little later.",
        ),
        Wrong(
            "end for both sides together",
            _end_of_the_sum(lambda n_buckets, bidirectional: n_buckets),
            "A decoder is right. In an encoder, the far past still runs into the buckets of the future: "
            "each side has a last bucket of its own.",
        ),
        Wrong(
            "end after the sides are joined",
            _end_of_the_sum(lambda n_buckets, bidirectional: n_buckets // (1 + bidirectional)),
            "A decoder is right. In an encoder, the limit of one side cuts off the other side's buckets, "
            "too. Where in the code does a number still count the buckets of its own side?",
        ),
        Wrong(
            "the token itself counted as ahead",
            _but(ahead=lambda r: r >= 0),
            "In an encoder, offset 0 is counted among the keys ahead. These begin at offset 1; the token "
            "itself has bucket 0.",
        ),
        Wrong(
            "one bucket too many",
            _but(last=0),
            "The last number is too large by one: buckets are counted from 0. In an encoder, the far past "
            "falls into the future's first bucket.",
        ),
        Wrong(
            "last bucket never used",
            _but(last=-2),
            "The end comes one bucket too early, so the last row of each side is never used.",
        ),
        Wrong(
            "exact range not halved",
            _but(exact=lambda n_buckets: n_buckets // 2),
            "Half of all buckets is exact, in an encoder, too. There each side has only half of them, and "
            "half of that is exact.",
        ),
        Wrong(
            "a quarter of the buckets exact",
            lambda *args: _bucket(*args, exact=lambda n: n // (8 if args[3] else 4)),
            "Only a quarter of the buckets of a side is exact. It is half of them.",
        ),
    ),
    variants=(
        Variant("a loop", _looped_bucket, "One offset after the other gives the same buckets."),
        Variant("a list of edges", _by_edges, "The places where buckets begin say the same as the formula."),
    ),
    hints=(
        "Plot it: offsets from −200 to 200 against buckets, for both kinds. The notebook has the picture "
        "that it should be.",
        "There are three bugs: one in the decoder, for keys ahead; one in the encoder, for the two sides; "
        "one at the far end of both.",
        "A decoder never sees the future, so its distance never falls below 0. A bucket's number never "
        "exceeds that of the last one of its side. Keys ahead have r > 0.",
    ),
)


# ---- shaw_attention ----
def _shaw_attention_cases(draw: Draw) -> list[Case]:
    cases = []
    for what, cached, n_q, n_k, d, width, k in (
        (_("a text from position 0"), False, 5, 5, 8, 8, 2),
        (_("two new queries and a cache"), True, 2, 9, 6, 4, 3),
        (_("keys before and after the queries"), False, 4, 7, 4, 5, 1),
        (_("keys before and after the queries"), False, 3, 6, 5, 3, 2),
    ):
        at = draw.integer(4, 30)
        q_positions = torch.arange(n_q) + (0 if n_q == n_k else n_k - n_q if cached else at)
        k_positions = torch.arange(n_k) + (0 if n_q == n_k or cached else at - 2)
        tensors = (
            draw.normal(*shape)
            for shape in ((n_q, d), (n_k, d), (n_k, width), (2 * k + 1, d), (2 * k + 1, width))
        )
        cases.append(
            Case(
                (*tensors, q_positions, k_positions),
                _("Lq = {n_q}, Lk = {n_k}, clipped at {k}, {what}").format(n_q=n_q, n_k=n_k, k=k, what=what),
            )
        )
    return cases


def _shaw(q, k, v, w_K, w_V, q_positions, k_positions, *, keys=True, values=True, root=None, axis=-1):
    row = _row(w_K, q_positions, k_positions)
    e = q @ k.T
    if keys:
        e = e + torch.einsum("id,ijd->ij", q, w_K[row])
    weights = (e / (q.shape[1] ** 0.5 if root is None else root(q, v))).softmax(axis)
    z = weights @ v
    return z + torch.einsum("ij,ijd->id", weights, w_V[row]) if values else z


def _shaw_attention(q, k, v, w_K, w_V, q_positions, k_positions):
    return _shaw(q, k, v, w_K, w_V, q_positions, k_positions)


def _shaw_but(**options):
    return lambda *args: _shaw(*args, **options)


def _looked_up(q, k, v, w_K, w_V, q_positions, k_positions):
    """Queries meet the table once; weights of equal offsets are summed."""
    row = _row(w_K, q_positions, k_positions)
    weights = ((q @ k.T + (q @ w_K.T).gather(1, row)) / q.shape[1] ** 0.5).softmax(-1)
    return weights @ v + weights.new_zeros(len(q), len(w_V)).scatter_add(1, row, weights) @ w_V


def _looped_shaw(q, k, v, w_K, w_V, q_positions, k_positions):
    m, out = len(w_K) // 2, []
    for query, i in zip(q, q_positions.tolist(), strict=True):
        rows = [max(-m, min(m, j - i)) + m for j in k_positions.tolist()]
        e = torch.stack([query @ (key + w_K[n]) for key, n in zip(k, rows, strict=True)]) / len(query) ** 0.5
        out.append(sum(a * (value + w_V[n]) for a, value, n in zip(e.softmax(0), v, rows, strict=True)))
    return torch.stack(out)


def _outside(q, k, v, w_K, w_V, q_positions, k_positions):
    row = _row(w_K, q_positions, k_positions)
    e = q @ k.T / q.shape[1] ** 0.5 + torch.einsum("id,ijd->ij", q, w_K[row])
    weights = e.softmax(-1)
    return weights @ v + torch.einsum("ij,ijd->id", weights, w_V[row])


def _key_meets_vector(q, k, v, w_K, w_V, q_positions, k_positions):
    row = _row(w_K, q_positions, k_positions)
    weights = ((q @ k.T + torch.einsum("jd,ijd->ij", k, w_K[row])) / q.shape[1] ** 0.5).softmax(-1)
    return weights @ v + torch.einsum("ij,ijd->id", weights, w_V[row])


def _vector_as_bias(q, k, v, w_K, w_V, q_positions, k_positions):
    row = _row(w_K, q_positions, k_positions)
    weights = ((q @ k.T + w_K.sum(-1)[row]) / q.shape[1] ** 0.5).softmax(-1)
    return weights @ v + torch.einsum("ij,ijd->id", weights, w_V[row])


def _unweighted_values(q, k, v, w_K, w_V, q_positions, k_positions):
    row = _row(w_K, q_positions, k_positions)
    return _shaw(q, k, v, w_K, w_V, q_positions, k_positions, values=False) + w_V[row].sum(1)


def _mean_values(q, k, v, w_K, w_V, q_positions, k_positions):
    row = _row(w_K, q_positions, k_positions)
    return _shaw(q, k, v, w_K, w_V, q_positions, k_positions, values=False) + w_V[row].mean(1)


def _unclipped(q, k, v, w_K, w_V, q_positions, k_positions):
    row = _r(q_positions, k_positions) + len(w_K) // 2
    weights = ((q @ k.T + torch.einsum("id,ijd->ij", q, w_K[row])) / q.shape[1] ** 0.5).softmax(-1)
    return weights @ v + torch.einsum("ij,ijd->id", weights, w_V[row])


def _future_hidden(q, k, v, w_K, w_V, q_positions, k_positions):
    row = _row(w_K, q_positions, k_positions)
    e = (q @ k.T + torch.einsum("id,ijd->ij", q, w_K[row])) / q.shape[1] ** 0.5
    weights = e.masked_fill(_r(q_positions, k_positions) > 0, -1e9).softmax(-1)
    return weights @ v + torch.einsum("ij,ijd->id", weights, w_V[row])


SHAW_ATTENTION = Question(
    name="shaw_attention",
    exercise="04",
    title="Attention of one head with Shaw's vectors for keys and values.",
    returns="a tensor of shape [Lq, d_v]",
    section=SHAW,
    draw=_shaw_attention_cases,
    reference=_shaw_attention,
    picture="heat",
    tolerance=(1e-4, 1e-4),
    wrong=(
        Wrong(
            "value vectors forgotten",
            _shaw_but(values=False),
            "The scores are right. But the values get no vector, so the output cannot tell from how far a "
            "message came (eq. 3).",
        ),
        Wrong(
            "key vectors forgotten",
            _shaw_but(keys=False),
            "The scores are plain content: the weights do not depend on any offset (eq. 4). Only the "
            "values have their vectors.",
        ),
        Wrong(
            "both vectors forgotten",
            _shaw_but(keys=False, values=False),
            "This is attention without any positions: neither the scores nor the values get a vector.",
        ),
        Wrong(
            "query minus key",
            lambda q, k, v, w_K, w_V, i, j: _shaw_attention(q, k, v, w_K.flip(0), w_V.flip(0), i, j),
            "The offset is turned round: you take query − key, so the past gets the vectors of the "
            "future. This course says r = key − query, as Shaw's paper does.",
            SIGN,
        ),
        Wrong(
            "row numbers instead of positions",
            lambda q, k, v, w_K, w_V, i, j: _shaw_attention(q, k, v, w_K, w_V, *_numbered(len(i), len(j))),
            "Queries and keys are both counted from 0, whatever their positions are. With a cache, the "
            "newest query takes itself for the first token.",
            FOUND,
        ),
        Wrong(
            "clipped one too early",
            lambda q, k, v, w_K, w_V, i, j: _shaw_attention(
                q, k, v, *(torch.cat([w[1:2], w[1:-1], w[-2:-1]]) for w in (w_K, w_V)), i, j
            ),
            "Offsets are clipped at m − 1: the first and the last vector of each table are never read. A "
            "table of 2m + 1 vectors holds the offsets −m … m.",
        ),
        Wrong(
            "key vectors outside of the root",
            _outside,
            "Only the content is divided by √d. Shaw's vector is a part of the key, so its product with "
            "the query is inside the same bracket.",
            ROOT,
        ),
        Wrong(
            "no root",
            _shaw_but(root=lambda q, v: 1.0),
            "The scores are not divided by √d, so the softmax is far too sharp.",
            ROOT,
        ),
        Wrong(
            "root of the wrong width",
            _shaw_but(root=lambda q, v: v.shape[1] ** 0.5),
            "The scores are divided by the root of the values' width. What counts is how many products "
            "are summed in one score: the width of queries and keys.",
            ROOT,
        ),
        Wrong(
            "softmax over the queries",
            _shaw_but(axis=0),
            "The weights of each key sum to 1 over the queries. Each query distributes its attention over "
            "the keys: a row should sum to 1.",
        ),
        Wrong(
            "vectors meet the keys",
            _key_meets_vector,
            "The vector of an offset meets the key instead of the query. Then a token cannot ask for a "
            "distance; only the keys can say how far away they like to be.",
        ),
        Wrong(
            "a number for each offset",
            _vector_as_bias,
            "The vector is summed up to a number and added to the score, so it is the same for every "
            "query. That is a scalar bias like T5's; Shaw's vector meets the query.",
        ),
        Wrong(
            "value vectors without weights",
            _unweighted_values,
            "The vectors of all keys are simply added up. They belong to the values, so each counts only "
            "as much as its key gets attention.",
        ),
        Wrong(
            "value vectors averaged",
            _mean_values,
            "The mean of all value vectors is added. They belong to the values, so each counts only as "
            "much as its key gets attention.",
        ),
        Wrong(
            "clipping forgotten",
            _unclipped,
            "Offsets beyond ±k are not clipped. Some leave the table, and some, quietly, count from its end.",
            CLIPPED,
        ),
        Wrong(
            "future hidden",
            _future_hidden,
            "You hide the keys after each query. There is no mask in this question, and half of the vectors "
            "are for keys ahead.",
        ),
        Wrong(
            "half of the table one too small",
            lambda q, k, v, w_K, w_V, *places: _shaw(q, k, v, w_K[:-2], w_V[:-2], *places),
            "You clip one offset too early and count from there, so offset 0 meets the vector of −1. A "
            "table of 2m + 1 rows has m of them on each side of the middle.",
        ),
    ),
    variants=(
        Variant(
            "looked up",
            _looked_up,
            "Each query meets the table once, and weights of equal offsets are summed: nothing of size "
            "[Lq, Lk, d] is formed.",
        ),
        Variant("a loop", _looped_shaw, "Query by query gives the same output."),
    ),
    hints=(
        "Eq. 4 and 3 are attention with one change each: a vector is added to the key, and one to the "
        "value. Both depend on the clipped offset of the pair.",
        "The index of the rows is [Lq, Lk], so `w_K[index]` is [Lq, Lk, d]: one vector for each pair. An "
        "einsum brings it together with the queries; another one brings the weights to the value vectors.",
        'Add to q kᵀ the product of each query with its own vectors ("id,ijd->ij"), divide the sum by √d. '
        'For the output, "ij,ijd->id" does the same with weights.',
    ),
)


# ---- offset_mass ----
def _offset_mass_cases(draw: Draw) -> list[Case]:
    cases = []
    for height, width in ((3, 3), (2, 5), (4, 3), (3, 4)):
        alpha = (2 * draw.normal(height * width, height * width)).softmax(-1)
        cases.append(
            Case(
                (alpha, height, width),
                _("a window of {height} × {width} patches").format(height=height, width=width),
            )
        )
    return cases


def _places(height, width):
    n = torch.arange(height * width)
    return n // width, n % width


def _sums(alpha, height, width, places=None, sign=1):
    """Sum of the weights of each offset, and how many pairs have it."""
    row, column = (sign * (p[None, :] - p[:, None]) for p in places or _places(height, width))
    index = ((row + height - 1) * (2 * width - 1) + column + width - 1).flatten()
    total = alpha.new_zeros((2 * height - 1) * (2 * width - 1))
    count = total.index_add(0, index, torch.ones_like(alpha).flatten())
    total = total.index_add(0, index, alpha.flatten())
    return total.view(2 * height - 1, -1), count.view(2 * height - 1, -1)


def _offset_mass(alpha, height, width):
    total, count = _sums(alpha, height, width)
    return total / count


def _looped_mass(alpha, height, width):
    out = torch.zeros(2 * height - 1, 2 * width - 1, dtype=alpha.dtype)
    for a in range(1 - height, height):
        for b in range(1 - width, width):
            found = [
                alpha[r * width + c, (r + a) * width + c + b]
                for r in range(height)
                for c in range(width)
                if 0 <= r + a < height and 0 <= c + b < width
            ]
            out[a + height - 1, b + width - 1] = sum(found) / len(found)
    return out


def _windows_mass(alpha, height, width):
    four = alpha.view(height, width, height, width)
    out = alpha.new_zeros(2 * height - 1, 2 * width - 1)
    count = torch.zeros_like(out)
    for r in range(height):
        for c in range(width):
            at = slice(height - 1 - r, 2 * height - 1 - r), slice(width - 1 - c, 2 * width - 1 - c)
            out[at] += four[r, c]
            count[at] += 1
    return out / count


def _centre_forgotten(alpha, height, width):
    return _offset_mass(alpha, height, width).roll((1 - height, 1 - width), (0, 1))


def _overwritten(alpha, height, width):
    row, column = (p[None, :] - p[:, None] for p in _places(height, width))
    out = alpha.new_zeros(2 * height - 1, 2 * width - 1)
    out[row + height - 1, column + width - 1] = alpha
    return out


def _wrong_stride(alpha, height, width):
    row, column = (p[None, :] - p[:, None] for p in _places(height, width))
    index = ((row + height - 1) * (2 * height - 1) + column + width - 1).flatten()
    total = alpha.new_zeros(max((2 * height - 1) * (2 * width - 1), int(index.max()) + 1))
    count = total.index_add(0, index, torch.ones_like(alpha).flatten()).clamp(min=1)
    mean = total.index_add(0, index, alpha.flatten()) / count
    return mean[: (2 * height - 1) * (2 * width - 1)].view(2 * height - 1, -1)


def _by_size(alpha, height, width):
    """One entry for each pair of distances, whatever the direction."""
    row, column = ((p[None, :] - p[:, None]).abs() for p in _places(height, width))
    index = (row * width + column).flatten()
    total = alpha.new_zeros(height * width)
    count = total.index_add(0, index, torch.ones_like(alpha).flatten())
    return (total.index_add(0, index, alpha.flatten()) / count).view(height, width)


def _along_the_line(alpha, height, width):
    n = height * width
    return torch.stack([alpha.diagonal(r).mean() for r in range(1 - n, n)])


OFFSET_MASS = Question(
    name="offset_mass",
    exercise="04",
    title="How much weight a head gives to each offset of a window, on average.",
    returns="a tensor of shape [2·height − 1, 2·width − 1]",
    section=SWIN,
    draw=_offset_mass_cases,
    reference=_offset_mass,
    picture="heat",
    wrong=(
        Wrong(
            "sum instead of mean",
            lambda alpha, height, width: _sums(alpha, height, width)[0],
            "These are sums. Many pairs have the offset (0, 1), only one pair has the farthest: a sum says "
            "first how often an offset occurs, and only then how much the head likes it.",
        ),
        Wrong(
            "query minus key",
            lambda alpha, height, width: _offset_mass(alpha, height, width).flip(0, 1),
            "The table is turned by half a turn: you take query − key, as Swin's released code does. Here "
            "a key below its query belongs below the middle, one to the right belongs to the right.",
            SIGN,
        ),
        Wrong(
            "patches counted column by column",
            lambda alpha, height, width: (lambda total, count: total / count)(
                *_sums(
                    alpha,
                    height,
                    width,
                    (torch.arange(height * width) % height, torch.arange(height * width) // height),
                )
            ),
            "Patch 1 is taken for the one below patch 0. Patches are counted line by line, so it is the "
            "one to the right. In a square window the table would only be transposed.",
        ),
        Wrong(
            "height and width exchanged",
            lambda alpha, height, width: _offset_mass(alpha, width, height),
            "Height and width have changed places. Where does a line of patches end?",
        ),
        Wrong(
            "rows and columns of the table exchanged",
            lambda alpha, height, width: _offset_mass(alpha, height, width).T,
            "The table is transposed: row offsets belong to its rows.",
        ),
        Wrong(
            "mean over the queries",
            lambda alpha, height, width: _sums(alpha, height, width)[0] / len(alpha),
            "Each sum is divided by the number of queries. But not every query has a key at every offset: "
            "one at the edge has nothing beyond it. How many pairs have this offset?",
        ),
        Wrong(
            "middle forgotten",
            _centre_forgotten,
            "The offset itself is the index, so negative ones count from the end, and (0, 0) is in a "
            "corner. The offset (0, 0) belongs to the middle of the table.",
        ),
        Wrong(
            "equal offsets overwritten",
            _overwritten,
            "Each offset keeps the weight of a single pair. An indexed assignment does not add up: when "
            "an index occurs twice, one of the two is lost, also with +=.",
        ),
        Wrong(
            "lines of the wrong length",
            _wrong_stride,
            "The flat index counts lines of 2·height − 1 entries. In a window that is not square, several "
            "offsets then share an entry. How many column offsets are there?",
        ),
        Wrong(
            "distance without a direction",
            _by_size,
            "Up and down, left and right are thrown together. Offsets have a direction, so each axis has "
            "2M − 1 of them.",
        ),
        Wrong(
            "one axis only",
            _along_the_line,
            "Patches are compared by their numbers alone, as in a text. The last patch of a line and the "
            "first of the next have numbers one apart, but are not neighbours.",
        ),
        Wrong(
            "normalised",
            lambda alpha, height, width: (
                _offset_mass(alpha, height, width) / _offset_mass(alpha, height, width).sum()
            ),
            "The table was made to sum to 1. A mean weight per pair has no reason to: leave it as it is, "
            "so that windows and heads can be compared.",
        ),
        Wrong(
            "both directions in one",
            lambda alpha, height, width: torch.nn.functional.pad(
                _by_size(alpha, height, width), (width - 1, 0, height - 1, 0)
            ),
            "You take the sizes of the offsets, so that keys above and below count as one, and three "
            "quarters of the table stay empty. The sign says the direction.",
        ),
        Wrong(
            "rows upside down",
            lambda alpha, height, width: _offset_mass(alpha, height, width).flip(0),
            "The columns are right, but the rows are upside down: a key *below* its query has a positive row "
            "offset.",
        ),
    ),
    variants=(
        Variant("a loop over offsets", _looped_mass, "Offset by offset gives the same means."),
        Variant(
            "moved windows",
            _windows_mass,
            "Each query's map of weights is laid into the table at its own place: the same sums.",
        ),
    ),
    hints=(
        "Patch n stands in row n // width and column n % width. Two patches give an offset, and an offset "
        "gives a place in the table; (0, 0) is the middle.",
        "Make the two matrices of offsets, then collect two tables: the sum of the weights of each offset, "
        "and the number of its pairs. Loops are allowed; `index_add` on a flat table is faster.",
        "The flat index is the notebook's: (Δr + M_h − 1)(2·M_w − 1) + Δc + M_w − 1. Fill one table with the "
        "weights and one with ones, and divide.",
    ),
)


# ---- relative_shift ----
def _relative_shift_cases(draw: Draw) -> list[Case]:
    cases = []
    for shape, what in (
        ((4, 4), _("no memory")),
        ((3, 2, 6), _("3 heads, 4 tokens in memory")),
        ((2, 3, 5, 8), _("2 texts, 3 heads, 3 tokens in memory")),
        ((5, 1, 7), _("a single query")),
        ((2, 4, 7), _("2 heads, 3 tokens in memory")),
    ):
        cases.append(
            Case(
                (draw.normal(*shape),),
                _("Lq = {n_q}, Lk = {n_k}, {what}").format(n_q=shape[-2], n_k=shape[-1], what=what),
            )
        )
    return cases


def _ahead(n_q, n_k, diagonal=1):
    return torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + diagonal)


def _pick(x, column, hidden=float("-inf"), diagonal=1):
    """x at column(i, j) of row i; keys ahead hidden. A column outside counts as the nearest."""
    n_q, n_k = x.shape[-2:]
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    index = torch.as_tensor(column(i, j, n_q, n_k)).expand(n_q, n_k).clamp(0, n_k - 1)
    out = x.gather(-1, index.expand_as(x))
    return out if hidden is None else out.masked_fill(_ahead(n_q, n_k, diagonal), hidden)


def _relative_shift(x):
    return _pick(x, lambda i, j, n_q, n_k: j + n_q - 1 - i)


def _padded_and_folded(x, hide=True):
    """The trick of the paper's code: one column in front, then the same numbers cut into rows anew."""
    n_q, n_k = x.shape[-2:]
    folded = F.pad(x, (1, 0)).reshape(*x.shape[:-2], n_k + 1, n_q)[..., 1:, :].reshape(x.shape)
    return folded.masked_fill(_ahead(n_q, n_k), float("-inf")) if hide else folded


def _row_by_row(x):
    n_q, n_k = x.shape[-2:]
    out = torch.full_like(x, float("-inf"))
    for i in range(n_q):
        seen = n_k - n_q + i + 1
        out[..., i, :seen] = x[..., i, n_k - seen :]
    return out


def _rows_that_see(seen):
    """The last ``seen(i, n_q, n_k)`` numbers of row i, moved to its beginning; the rest is hidden."""

    def answer(x):
        n_q, n_k = x.shape[-2:]
        out = torch.full_like(x, float("-inf"))
        for i in range(n_q):
            out[..., i, : seen(i, n_q, n_k)] = x[..., i, n_k - seen(i, n_q, n_k) :]
        return out

    return answer


def _rolled(x):
    n_q = x.shape[-2]
    return torch.stack([x[..., i, :].roll(i + 1 - n_q, -1) for i in range(n_q)], -2)


def _masked_first(x):
    n_q, n_k = x.shape[-2:]
    return _rolled(x.masked_fill(_ahead(n_q, n_k), float("-inf")))


RELATIVE_SHIFT = Question(
    name="relative_shift",
    exercise="04",
    title="From one column per distance to one column per key, as in Transformer-XL.",
    returns="a tensor of the shape of x, −inf for keys ahead",
    section=TERMS,
    draw=_relative_shift_cases,
    reference=_relative_shift,
    picture="heat",
    bonus=True,
    wrong=(
        Wrong(
            "nothing moved",
            lambda x: x.masked_fill(_ahead(*x.shape[-2:]), float("-inf")),
            "Keys ahead are hidden, but the rows stand where they were: each query still has the same "
            "distance in the same column. Only for the last query does a column already belong to a key.",
        ),
        Wrong(
            "keys ahead not hidden",
            lambda x: _padded_and_folded(x, hide=False),
            "All that a query may see is right. But what the trick leaves at keys ahead are numbers of "
            "the next query's row: they must become −inf.",
        ),
        Wrong(
            "keys ahead not hidden, rows rolled",
            _rolled,
            "All that a query may see is right. But what left a row on one side came back on the other: "
            "keys ahead get the scores of the farthest distances. They must become −inf.",
        ),
        Wrong(
            "zero for keys ahead",
            lambda x: _pick(x, lambda i, j, n_q, n_k: j + n_q - 1 - i, hidden=0.0),
            "Keys ahead get 0. A score of 0 is an ordinary score, and the softmax gives it weight; −inf "
            "gives none.",
        ),
        Wrong(
            "hidden before moving",
            _masked_first,
            "The mask came first and was then moved along with the rows. So it hides some of the past, "
            "and leaves some of the future open.",
        ),
        Wrong(
            "memory forgotten",
            lambda x: _pick(x, lambda i, j, n_q, n_k: j + n_k - 1 - i),
            "Each query is counted from 0, as if there were no memory. The queries are the last of the "
            "keys: the first of them already has a past.",
        ),
        Wrong(
            "moved by one too little",
            lambda x: _pick(x, lambda i, j, n_q, n_k: j + n_q - 2 - i),
            "Every row is off by one: a token finds the score of distance 1 at itself.",
        ),
        Wrong(
            "moved by one too much",
            lambda x: _pick(x, lambda i, j, n_q, n_k: j + n_q - i),
            "Every row is off by one: a token finds the score of distance 0 at the key before it.",
        ),
        *[
            Wrong(
                f"{name}, rolled",
                lambda x, step=step: torch.stack(
                    [x[..., i, :].roll(i + step - x.shape[-2], -1) for i in range(x.shape[-2])], -2
                ).masked_fill(_ahead(*x.shape[-2:]), float("-inf")),
                f"Every row is off by one: a token finds the score of distance {far}. What left the row on "
                f"one side came back on the other.",
            )
            for name, step, far in (
                ("moved by one too much", 0, "0 at the key before it"),
                ("moved by one too little", 2, "1 at itself"),
            )
        ],
        Wrong(
            "hidden one step late",
            lambda x: _pick(x, lambda i, j, n_q, n_k: j + n_q - 1 - i, diagonal=2),
            "The key right ahead of each query is not hidden. Its distance is −1, for which there is no "
            "column.",
        ),
        Wrong(
            "moved the wrong way",
            lambda x: _pick(x, lambda i, j, n_q, n_k: j - (n_q - 1 - i)),
            "Rows move to the right instead of to the left. Distance 0 stands in the last column; for an "
            "early query, that key is not the last.",
        ),
        Wrong(
            "later rows move",
            lambda x: _pick(x, lambda i, j, n_q, n_k: j + i),
            "The first query stays and the later ones move. It is the last query for which column and key "
            "agree.",
        ),
        Wrong(
            "columns from near to far",
            lambda x: _pick(x, lambda i, j, n_q, n_k: n_k - n_q + i - j),
            "Column 0 is read as distance 0. Here the columns begin with the farthest distance, and "
            "distance 0 is the last.",
        ),
        Wrong(
            "the token itself hidden",
            lambda x: _pick(x, lambda i, j, n_q, n_k: j + n_q - 1 - i, diagonal=0),
            "The mask also hides each token from itself. Distance 0 is not the future.",
        ),
        Wrong(
            "one key too few",
            _rows_that_see(lambda i, n_q, n_k: n_k - n_q + i),
            "Each query sees one key too few, and its numbers are moved by one too much. A token has the "
            "distance 0 to itself.",
        ),
        Wrong(
            "counted from 0, the memory hidden",
            _rows_that_see(lambda i, n_q, n_k: i + 1),
            "Row i sees i + 1 keys, as if there were no memory. With one, query i is key number Lk − Lq + i.",
        ),
        Wrong(
            "the mask of a text without memory",
            lambda x: _relative_shift(x).masked_fill(
                torch.ones(x.shape[-2:], dtype=torch.bool).triu(1), float("-inf")
            ),
            "The numbers stand where they should, but the mask counts the queries from 0 and hides most of "
            "the memory.",
        ),
    ),
    variants=(
        Variant(
            "padded and folded",
            _padded_and_folded,
            "One column in front and other row lengths: this is the trick of the paper's code, and it "
            "copies no number twice.",
        ),
        Variant("row by row", _row_by_row, "Each query takes the last of its columns, as many as it sees."),
    ),
    hints=(
        "Take 2 queries and 3 keys, and write down by hand which distance each pair has. In which column of "
        "x does it stand?",
        "Query i is key number Lk − Lq + i. Its distance to key j says the column of x; distance 0 is the "
        "last one. `gather` along the last axis, or a loop over the rows, moves the numbers.",
        "Each row moves to the left, the first query's most, the last one's not at all. Hide the keys ahead "
        "after moving; for the index alone, clamp columns that do not exist.",
    ),
)

QUESTIONS = (BIAS_TEST, T5_BUCKET, SHAW_ATTENTION, OFFSET_MASS, RELATIVE_SHIFT)
