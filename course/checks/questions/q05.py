"""Exercise 05: absolute and relative positions in one model."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import gelu

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong

TERMS = 'deeper/04_memory, section "Four terms"'
LETTERS = 'deeper/05_formulas, section "What the letters mean"'
CANCELS = '05, section "What a softmax does not see"'
CONCAT = 'deeper/05_formulas, section "The concatenation"'
EXPERTS = 'deeper/05_both, section "The two numbers of [CLS]"'
WORKS = 'deeper/05_both, section "What does work"'
BY_HAND = 'deeper/05_both, section "TUPE, by hand"'


# ---- memory_scores ----
def _memory_scores_cases(draw: Draw) -> list[Case]:
    cases = []
    sizes_of = (0, 5, 4, 3), (draw.integer(2, 3), 4, 5, 4), (6, 3, 6, 5), (7, 1, 3, 2), (4, 6, 7, 6)
    for memory, new, d, d_h in sizes_of:
        sizes = (new, d), (memory, d), (d, d_h), (d, d_h), (d_h,), (d_h,), (memory + new, d_h)
        cases.append(
            Case(
                tuple(draw.normal(*size) for size in sizes),
                _("M = {M}, L = {L}, d = {d}, d_h = {d_h}").format(M=memory, L=new, d=d, d_h=d_h),
            )
        )
    return cases


def _memory_with(context=None, distance=None, terms=None, scale=None, mask=None):
    """Transformer-XL's scores, with one of their parts replaced."""
    context = context or (lambda x, memory: torch.cat([memory, x]))
    distance = distance or (lambda i, j: i - j)
    scale = scale or (lambda x, d_h: d_h**-0.5)
    mask = mask or (lambda i, j: j > i)
    terms = terms or (lambda q, k, u, v, r: (q + u) @ k.T + torch.einsum("id,ijd->ij", q + v, r))

    def answer(x, memory, W_Q, W_K, u, v, R):
        keys = context(x, memory)
        i, j = len(keys) - len(x) + torch.arange(len(x))[:, None], torch.arange(len(keys))
        r = R[distance(i, j).clamp(0, len(R) - 1)]
        scores = terms(x @ W_Q, keys @ W_K, u, v, r) * scale(x, W_Q.shape[1])
        return scores.masked_fill(mask(i, j), -torch.inf)

    return answer


def _length(i, j):
    return j.shape[0]


_memory_scores_usual = _memory_with()


def _memory_scores(x, memory, W_Q, W_K, u, v, R):
    return _memory_scores_usual(x, memory, W_Q, W_K, u, v, R)


def _memory_in_loops(x, memory, W_Q, W_K, u, v, R):
    texts, M = torch.cat([memory, x]), len(memory)
    out = x.new_full((len(x), len(texts)), -torch.inf)
    for i, one in enumerate(x):
        for j in range(M + i + 1):
            q, k = one @ W_Q, texts[j] @ W_K
            out[i, j] = ((q + u) @ k + (q + v) @ R[M + i - j]) / math.sqrt(len(q))
    return out


def _all_rows(x, memory, W_Q, W_K, u, v, R):
    """The memory asks, too: one row for each token, remembered or new."""
    whole = torch.cat([memory, x])
    return _memory_scores(whole, memory[:0], W_Q, W_K, u, v, R)


def _by_distances_first(x, memory, W_Q, W_K, u, v, R):
    """Each query meets each distance once; then every row is read from its own place on."""
    q, keys = x @ W_Q, torch.cat([memory, x]) @ W_K
    asked, place = (q + v) @ R.T, torch.arange(len(keys))
    far = len(memory) + torch.arange(len(x))[:, None] - place
    scores = (q + u) @ keys.T + asked.gather(1, far.clamp(min=0))
    return (scores / math.sqrt(q.shape[1])).where(far >= 0, -torch.inf)


MEMORY_SCORES = Question(
    name="memory_scores",
    exercise="05",
    title="Transformer-XL's scores of a segment with its memory: content and distance, each with a bias.",
    returns="a tensor of shape [L, M + L], −inf where the key comes after the query",
    section=TERMS,
    draw=_memory_scores_cases,
    reference=_memory_scores,
    picture="heat",
    axes=("key: memory, then segment", "query"),
    wrong=(
        Wrong(
            "distance without the memory",
            _memory_with(distance=lambda i, j: (i - i[0] - j).clamp(min=0)),
            "The distances count as if the segment began at 0, while its memory stands before it. A key of "
            "the memory then looks nearer than the tokens that came after it.",
        ),
        Wrong(
            "memory behind the segment",
            _memory_with(context=lambda x, memory: torch.cat([x, memory])),
            "The keys begin with the segment and end with the memory. The memory is the text *before*.",
        ),
        Wrong(
            "memory of no use",
            _memory_with(mask=lambda i, j: (j > i) | (j < i[0])),
            "The memory is hidden. It is the past of every query of the segment: the mask hides what comes "
            "after a query, and nothing else.",
        ),
        Wrong(
            "the mask of a text that begins here",
            _memory_with(mask=lambda i, j: j > i - i[0]),
            "The mask takes row 0 for key 0. With M remembered tokens, the first query is key number M, "
            "and it may see all keys up to that one.",
        ),
        Wrong(
            "no mask",
            _memory_with(mask=lambda i, j: (j > i) & False),
            "Nothing is hidden: a query also reads the tokens that it should predict.",
        ),
        Wrong(
            "u and v exchanged",
            _memory_with(terms=lambda q, k, u, v, r: (q + v) @ k.T + torch.einsum("id,ijd->ij", q + u, r)),
            "The two biases have changed places: u belongs to contents, v to distances.",
        ),
        Wrong(
            "no bias for distances",
            _memory_with(terms=lambda q, k, u, v, r: (q + u) @ k.T + torch.einsum("id,ijd->ij", q, r)),
            "Term (d), the liked distance, is missing: it depends on the offset alone, like a table of "
            "biases.",
        ),
        Wrong(
            "no bias for contents",
            _memory_with(terms=lambda q, k, u, v, r: q @ k.T + torch.einsum("id,ijd->ij", q + v, r)),
            "Term (c), the liked content, is missing. It does not cancel: it differs from key to key.",
        ),
        Wrong(
            "no term asks for a distance",
            _memory_with(terms=lambda q, k, u, v, r: (q + u) @ k.T + (r @ v)),
            "Term (b) is missing: the query meets contents only, and the distance counts the same for "
            "every query.",
        ),
        Wrong(
            "contents alone",
            _memory_with(terms=lambda q, k, u, v, r: q @ k.T),
            "Only term (a) is there: contents. The distances are missing, and both biases.",
        ),
        Wrong(
            "no biases",
            _memory_with(terms=lambda q, k, u, v, r: q @ k.T + torch.einsum("id,ijd->ij", q, r)),
            "Only the terms (a) and (b) are there. Both biases are missing: u, for contents, and v, for "
            "distances.",
        ),
        Wrong(
            "u meets the query",
            _memory_with(
                terms=lambda q, k, u, v, r: q @ k.T + (q @ u)[:, None] + torch.einsum("id,ijd->ij", q + v, r)
            ),
            "u is multiplied with the query. That is one number for each row, which a softmax does not see; "
            "term (c) says which *keys* are liked.",
        ),
        Wrong(
            "key minus query",
            _memory_with(distance=lambda i, j: j - i),
            "The distance is counted as key minus query. Row n of R belongs to n = query minus key; with the "
            "other sign, all keys of the past fall on one row.",
        ),
        Wrong(
            "own key hidden",
            _memory_with(mask=lambda i, j: j >= i),
            "A query does not see its own key. It may: the distance is 0 there.",
        ),
        Wrong(
            "hidden keys get 0",
            lambda *args: _memory_scores(*args).nan_to_num(neginf=0.0),
            "Keys after the query get the score 0. That is no low score: after the softmax, hidden keys "
            "should have the weight 0.",
        ),
        Wrong(
            "distances from far to near",
            _memory_with(distance=lambda i, j: i.max() - (i - j)),
            "The table is read from the other end. R[0] belongs to the token itself.",
        ),
        Wrong(
            "one step too far",
            _memory_with(distance=lambda i, j: i - j + 1),
            "Each distance is one too large: a token is 0 away from itself.",
        ),
        Wrong(
            "scale forgotten",
            _memory_with(scale=lambda x, d_h: 1.0),
            "The division by the root of the head's width is missing; it is meant for all four terms.",
        ),
        Wrong(
            "only contents are scaled",
            _memory_with(
                terms=lambda q, k, u, v, r: (
                    (q + u) @ k.T + torch.einsum("id,ijd->ij", q + v, r) * q.shape[1] ** 0.5
                )
            ),
            "The distances are added after the division. All four terms stand under one root.",
        ),
        Wrong(
            "scaled by the width of the model",
            _memory_with(scale=lambda x, d_h: x.shape[1] ** -0.5),
            "The scores are divided by the root of the width of x. A product of query and key has as many "
            "terms as the head is wide.",
        ),
        Wrong(
            "the memory asks, too",
            _all_rows,
            "There is a row for each token of the memory as well. The memory has asked when it was the "
            "segment; now it only answers.",
        ),
        Wrong(
            "distances with a minus",
            _memory_with(distance=lambda i, j: -(i - j).clamp(min=0) % _length(i, j)),
            "You read R at *minus* the distance, so that all but the token itself come from the far end of "
            "the table. Query minus key is not negative where anything may be seen.",
        ),
        Wrong(
            "key minus query, in the mask, too",
            _memory_with(distance=lambda i, j: (j - i).clamp(min=0), mask=lambda i, j: j < i),
            "Key and query have changed places, in the distance and in the mask: the past is hidden and what "
            "comes after is read.",
        ),
    ),
    variants=(
        Variant("two loops", _memory_in_loops, "One pair at a time gives the same numbers."),
        Variant(
            "distances first",
            _by_distances_first,
            "This is the paper's own trick: no tensor of all pairs of vectors is formed.",
        ),
    ),
    hints=(
        "Queries come from the segment alone; keys come from the memory and the segment, in the order of the "
        "text.",
        "Give every key its number in the text that begins with the memory. Then query i of the segment is "
        "key number M + i, and both the mask and the distances follow from these numbers.",
        "(a) and (c) share the keys, (b) and (d) share R: so two products are enough, one with a query "
        "plus u and one with a query plus v.",
    ),
)


# ---- moved_mass ----
def _moved_mass_cases(draw: Draw) -> list[Case]:
    def sometimes(queries, keys):
        allowed = draw.uniform(queries, keys) > 0.4
        allowed[:, draw.integer(1, keys - 1)] = True
        allowed[:, 0] = False
        return allowed

    def case(what, heads, queries, keys, term, allowed):
        scores, term = draw.normal(heads, queries, keys), draw.normal(*term)
        return Case(
            (scores, term, allowed),
            _("H = {heads}, {queries} queries, {keys} keys, {what}").format(
                heads=heads, queries=queries, keys=keys, what=what
            ),
        )

    return [
        case(_("a term for each pair, all keys allowed"), 2, 4, 6, (4, 6), torch.ones(4, 6) > 0),
        case(_("a term of the query, some keys allowed"), 3, 4, 5, (4, 1), sometimes(4, 5)),
        case(_("a term of the key, causal"), 2, 5, 7, (1, 7), torch.ones(5, 7).tril(2) > 0),
        case(_("a term for each head, some keys allowed"), 3, 6, 5, (3, 6, 5), sometimes(6, 5)),
        case(_("a term for each pair, causal"), 4, 3, 8, (3, 8), torch.ones(3, 8).tril(5) > 0),
    ]


def _masked_softmax(scores, allowed):
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


def _moved_mass(scores, term, allowed):
    change = _masked_softmax(scores + term, allowed) - _masked_softmax(scores, allowed)
    return change.abs().sum(-1).mean(-1) / 2


def _moved(
    change=lambda with_term, without: (with_term - without).abs().sum(-1).mean(-1) / 2,
    weights=_masked_softmax,
):
    """moved_mass with another comparison, or with other weights."""
    return lambda scores, term, allowed: change(weights(scores + term, allowed), weights(scores, allowed))


MOVED_MASS = Question(
    name="moved_mass",
    exercise="05",
    title="The share of its attention that a head moves to other keys when a term is added to its scores.",
    returns="a tensor of shape [H], each number from 0 to 1",
    section=CANCELS,
    draw=_moved_mass_cases,
    reference=_moved_mass,
    picture="lines",
    axes=("head", "share moved"),
    wrong=(
        Wrong(
            "softmax over the queries",
            _moved(weights=lambda e, ok: e.masked_fill(~ok, -math.inf).softmax(-2).nan_to_num(0)),
            "Your softmax runs over the queries. Each query shares out its attention among the keys, so "
            "the weights of a row must sum to 1; yours do so along the columns.",
            CANCELS,
        ),
        Wrong(
            "softmax over the queries, with NaN",
            _moved(weights=lambda e, ok: e.masked_fill(~ok, -math.inf).softmax(-2)),
            "Your softmax runs over the queries. A key that no query may read gives NaN there: the sign "
            "that it is the wrong axis. Each query shares out its attention among the keys.",
            CANCELS,
        ),
        Wrong(
            "mask after the softmax",
            _moved(weights=lambda e, ok: e.softmax(-1) * ok),
            "The forbidden keys are set to 0 after the softmax. What they had taken is lost, so the rest "
            "does not sum to 1. A row with one allowed key shows it: its weight must be 1.",
        ),
        Wrong(
            "mask forgotten",
            _moved(weights=lambda e, ok: e.softmax(-1)),
            "Forbidden keys get a share of the attention, too. With a causal mask, the first queries show "
            "it: they seem to read ahead.",
        ),
        Wrong(
            "mask the wrong way round",
            _moved(weights=lambda e, ok: e.masked_fill(ok, -math.inf).softmax(-1)),
            "Your mask closes what is allowed and opens what is not: `allowed` is True where a query may "
            "read. Where all keys are allowed nothing is left, hence NaN.",
        ),
        Wrong(
            "mask with 0",
            _moved(weights=lambda e, ok: e.masked_fill(~ok, 0).softmax(-1)),
            "Forbidden scores are set to 0. But exp(0) is 1, so these keys still get weight: as much as "
            "any key with a score of 0.",
        ),
        Wrong(
            "mass counted twice",
            _moved(lambda a, b: (a - b).abs().sum(-1).mean(-1)),
            "What leaves one key arrives at another, and your sum counts both. So it can reach 2, and a "
            "share can't be more than 1.",
        ),
        Wrong(
            "gains and losses cancel",
            _moved(lambda a, b: (a - b).sum(-1).mean(-1) / 2),
            "Gains and losses are summed with their signs. Both rows of weights sum to 1, so this is 0 "
            "whatever the term does.",
        ),
        Wrong(
            "mean over the keys",
            _moved(lambda a, b: (a - b).abs().mean((-2, -1)) / 2),
            "The change is averaged over the keys, so the same move counts less in a longer text. The "
            "shares of a query belong together: over the keys they are summed.",
        ),
        Wrong(
            "mean over the keys, not halved",
            _moved(lambda a, b: (a - b).abs().mean((-2, -1))),
            "The change is averaged over the keys, so the same move counts less in a longer text. Over the "
            "keys, shares are summed (and each that moves shows up twice).",
        ),
        Wrong(
            "sum over the queries",
            _moved(lambda a, b: (a - b).abs().sum((-2, -1)) / 2),
            "The queries are summed, so the number grows with the text and passes 1. The question asks for "
            "the share that a query moves on average.",
        ),
        Wrong(
            "largest change",
            _moved(lambda a, b: (a - b).abs().amax((-2, -1))),
            "This is the largest change of a single weight. The question asks how much moves in all: many "
            "small changes count as one large one.",
        ),
        Wrong(
            "squared change",
            _moved(lambda a, b: (a - b).square().sum(-1).mean(-1) / 2),
            "Squares of changes are not shares of the mass: a move of one half would count as a quarter.",
        ),
        Wrong(
            "scores compared, not weights",
            lambda scores, term, allowed: ((scores + term - scores).abs() * allowed).sum(-1).mean(-1) / 2,
            "You compare scores. A term that raises all scores of a query changes many scores and no "
            "weight; the model sees weights only.",
            CANCELS,
        ),
        Wrong(
            "weights of the term alone",
            lambda scores, term, allowed: (
                (_masked_softmax(0 * scores + term, allowed) - _masked_softmax(scores, allowed))
                .abs()
                .sum(-1)
                .mean(-1)
                / 2
            ),
            "You compare the weights of the term alone with those of the scores. The term is *added* to "
            "the scores: a term of 0 must move nothing.",
        ),
        Wrong(
            "last query only",
            _moved(lambda a, b: (a - b).abs().sum(-1)[:, -1] / 2),
            "Only the last query is counted. Take the mean over all queries of a head.",
        ),
        Wrong(
            "−1 in place of −inf",
            lambda scores, term, allowed: (
                (
                    (scores + term).masked_fill(~allowed, -1).softmax(-1)
                    - scores.masked_fill(~allowed, -1).softmax(-1)
                )
                .abs()
                .sum(-1)
                .mean(-1)
                / 2
            ),
            "What is forbidden gets the score −1, which is no lower than many a real one: it keeps a share. "
            "Only minus infinity gives a weight of 0.",
        ),
    ),
    variants=(
        Variant(
            "what the gaining keys gain",
            _moved(lambda a, b: (a - b).clamp(min=0).sum(-1).mean(-1)),
            "What all gaining keys gain together is what moves: it needs no half.",
        ),
        Variant(
            "one minus the overlap",
            _moved(lambda a, b: 1 - torch.minimum(a, b).sum(-1).mean(-1)),
            "What two distributions do not share is what has moved.",
        ),
        Variant(
            "exp by hand",
            _moved(weights=lambda e, ok: e.exp() * ok / (e.exp() * ok).sum(-1, keepdim=True)),
            "Masking before the division by the sum is the same as masking with −∞.",
        ),
    ),
    hints=(
        "Compute the weights twice, with and without the term, and compare them query by query.",
        "Close the forbidden keys before the softmax, with the number whose exponential is 0. Then: "
        "difference, sizes, a sum over one axis, a mean over another.",
        "Half of the summed sizes along the keys is what one query moves, since each share that moves "
        "leaves one place and arrives at another.",
    ),
)


# ---- paint_head ----
# Pictures of weights to reproduce. Many numbers give the same picture, so the weights are compared.
PICTURES = ("first", "two back", "both", "even", "fading")


def _target(picture, n):
    """The weights [n, n] of a picture, as the exercise draws them."""
    i, j = torch.arange(n)[:, None], torch.arange(n)
    weights = {
        "first": (j == 0) * (i >= 0),
        "two back": j == (i - 2).clamp(min=0),
        "both": (j == 0) | (j == i - 2),
        "even": (j % 2 == 0) & (j <= i),
        "fading": (j <= i) * 0.5 ** (i - j) * torch.where(j == 0, 8, 1),
    }[picture].double()
    return weights / weights.sum(-1, keepdim=True)


def _paint_head_cases(draw: Draw) -> list[Case]:
    few, many = draw.integer(4, 7), draw.integer(20, 40)  # numbers for many tokens are no numbers for nine
    cases = [(picture, n) for picture in PICTURES for n in (few, many)]
    return [
        Case(cases[m], _("the picture {picture!r} of {n} tokens").format(picture=cases[m][0], n=cases[m][1]))
        for m in draw.permutation(len(cases))
    ]


def _painted(value, n):
    """The weights of two lists of numbers, or None when they are not such lists."""
    parts = value if isinstance(value, list) and len(value) == 2 else (None, None)
    try:
        places, offsets = (torch.as_tensor(part, dtype=torch.float64) for part in parts)
    except (TypeError, ValueError, RuntimeError):
        return None
    if places.shape != (n,) or offsets.shape != (2 * n - 1,):
        return None
    r = torch.arange(n) - torch.arange(n)[:, None]
    return (places + offsets[r + n - 1]).softmax(-1)


def _paint_head_says(value, case: Case) -> str:
    picture, n = case.args
    want, got = _target(picture, n), _painted(value, n)
    if got is None:
        return _("Two lists of numbers are asked for, one of n and one of 2n − 1: here {n} and {m}.").format(
            n=n, m=2 * n - 1
        )
    off = ((got - want).abs() > 0.01).any(-1) | got.isnan().any(-1)
    if not off.any():
        return ""
    row = int(off.double().argmax())
    key = int(((got - want)[row].abs().nan_to_num(1)).argmax())
    return _("Query {row} gives key {key} the weight {yours:.2f}; in the picture it is {asked:.2f}.").format(
        row=row, key=key, yours=float(got[row, key]), asked=float(want[row, key])
    )


def _paint_head(picture, n):
    r = torch.arange(1 - n, n)
    places, offsets = torch.zeros(n), torch.zeros(2 * n - 1)
    if picture in ("first", "two back", "both"):
        places[0] = 40
    if picture in ("two back", "both"):
        offsets[r == -2] = 40 if picture == "both" else 80
    if picture == "even":
        places[::2] = 40
    if picture == "fading":
        places[0], offsets = math.log(8), r * math.log(2)
    if picture in ("even", "fading"):
        offsets[r > 0] = -80
    return places, offsets


def _paint_with(places=lambda s, picture, n: s, offsets=lambda t, picture, n: t):
    """The painted head, with one of its two lists replaced."""

    def answer(picture, n):
        s, t = _paint_head(picture, n)
        return places(s, picture, n), offsets(t, picture, n)

    return answer


def _open_future(t, picture, n):
    r = torch.arange(1 - n, n)
    return t.where(r <= 0, r * math.log(2) if picture == "fading" else 0.0)


PAINT_HEAD = Question(
    name="paint_head",
    exercise="05",
    title="The numbers of a head whose weights are given as a picture.",
    returns="two lists (or tensors): n numbers for the keys and 2n − 1 for the offsets",
    section=WORKS,
    draw=_paint_head_cases,
    reference=_paint_head,
    faults=_paint_head_says,
    same=lambda value, case: _painted(value, case.args[1]),
    wrong=(
        Wrong(
            "offsets turned round",
            _paint_with(offsets=lambda t, picture, n: t.flip(0)),
            "Left and right have changed places: your list of offsets begins with the farthest key ahead. "
            "Its first entry belongs to the offset −(n − 1), the farthest key behind.",
            LETTERS,
        ),
        Wrong(
            "offset 0 at the beginning",
            _paint_with(offsets=lambda t, picture, n: t.roll(1 - n)),
            "Your list of offsets begins with offset 0. Its middle is offset 0; its first entry belongs to "
            "−(n − 1), the farthest key behind.",
            LETTERS,
        ),
        Wrong(
            "too pale",
            _paint_with(lambda s, picture, n: s.clamp(-2, 2), lambda t, picture, n: t.clamp(-2, 2)),
            "The right keys get the most weight, but the others keep a visible share of it. What a score "
            "of 2 is worth beside a score of 0, the softmax says: 7.4 to 1.",
            CANCELS,
        ),
        Wrong(
            "nothing for the keys",
            _paint_with(lambda s, picture, n: 0 * s),
            "Your numbers for the keys make no difference: only the offset decides. No offset can stand for "
            "the first key: it is another one for each query.",
            WORKS,
        ),
        Wrong(
            "nothing for the offsets",
            _paint_with(offsets=lambda t, picture, n: 0 * t),
            "Your offsets make no difference: all queries read the same keys, and the picture has stripes "
            "from top to bottom only.",
            WORKS,
        ),
        Wrong(
            "the future is open",
            _paint_with(offsets=_open_future),
            "Keys ahead of the query get weight. There is no mask here, so it is the offsets that must "
            "keep them out.",
            WORKS,
        ),
        Wrong(
            "8 in place of its logarithm",
            _paint_with(
                lambda s, picture, n: torch.cat([torch.tensor([8.0]), s[1:]]) if picture == "fading" else s
            ),
            "The first key's number is 8. But a softmax takes e to the power of a score, so its weight "
            "grows by a factor of 2981, not of 8.",
            CANCELS,
        ),
        Wrong(
            "logarithm to the base 2",
            _paint_with(
                lambda s, picture, n: s / math.log(2) if picture == "fading" else s,
                lambda t, picture, n: t.where(t < -79, t / math.log(2)) if picture == "fading" else t,
            ),
            "A score of 1 less halves nothing: a softmax takes e to the power of a score, not 2. Only the "
            "natural logarithm undoes it.",
            CANCELS,
        ),
        Wrong(
            "the offset outshouts the first key",
            _paint_with(offsets=lambda t, picture, n: 2 * t if picture == "both" else t),
            "Where both the first key and the one two back are to be read, one of them gets all of the "
            "weight. Equal shares need equal scores.",
            CANCELS,
        ),
        Wrong(
            "two equals",
            _paint_with(offsets=lambda t, picture, n: t / 2 if picture == "two back" else t),
            "In 'two back' the first key keeps half of the weight of every later query. It should be read "
            "only where nothing stands two back, so its score must be the smaller one.",
            CANCELS,
        ),
        Wrong(
            "odd keys",
            _paint_with(lambda s, picture, n: s.roll(1) if picture == "even" else s),
            "In 'even' the keys 1, 3, 5, … are read. Keys are counted from 0, so the first one is even.",
            LETTERS,
        ),
    ),
    variants=(
        Variant(
            "infinitely far away",
            lambda picture, n: (lambda s, t: (s, t.where(t > -79, -math.inf)))(*_paint_head(picture, n)),
            "−∞ shuts a key out altogether.",
        ),
        Variant(
            "tilted",
            lambda picture, n: (lambda s, t: (s + 0.5 * torch.arange(n), t - 0.5 * torch.arange(1 - n, n)))(
                *_paint_head(picture, n)
            ),
            "What grows with the key and falls with the offset depends on the query only, and the softmax "
            "takes it out.",
        ),
        Variant(
            "lists",
            lambda picture, n: tuple(part.tolist() for part in _paint_head(picture, n)),
            "Lists will do.",
        ),
    ),
    hints=(
        "Look for stripes. A stripe from top to bottom is a key; a slanted one is an offset. Say for each "
        "picture which stripes it has before you write a number.",
        "A score far above all others gets all of the weight, two equal ones share it. Where two stripes "
        "cross, their numbers add up.",
        "40 is far above 0. For 'two back' the first key needs a number that wins against 0 and loses "
        "against the offset. 'fading' asks for exact shares, and the logarithm turns shares into scores.",
    ),
)


# ---- concat_bias ----
def _concat_bias_cases(draw: Draw) -> list[Case]:
    def case(queries, keys, d, hidden):
        shapes = (queries, d), (queries, keys), (hidden, d + 1), (hidden,), (hidden,)
        return Case(
            tuple(draw.normal(*shape) for shape in shapes),
            _("{queries} queries, {keys} keys, d = {d}, hidden = {hidden}").format(
                queries=queries, keys=keys, d=d, hidden=hidden
            ),
        )

    return [
        case(4, 4, 6, 9),
        case(3, draw.choice([5, 7]), 4, 8),
        case(1, 6, 3, 10),
        case(5, 2, draw.integer(3, 6), 12),
    ]


def _concat_bias(PE, r, W_o, c, W_2):
    places = PE[:, None, :].expand(*r.shape, -1)
    stacked = torch.cat([places, r[..., None]], dim=-1)
    return torch.relu(stacked @ W_o.T + c) @ W_2


def _concat_of(
    out, place=lambda PE, W: (PE @ W[:, :-1].T)[:, None], offset=lambda r, W: r[..., None] * W[:, -1]
):
    """concat_bias with another way of joining its two linear parts."""
    return lambda PE, r, W_o, c, W_2: out(place(PE, W_o), offset(r, W_o), c, W_2)


CONCAT_BIAS = Question(
    name="concat_bias",
    exercise="05",
    title="Repair the non-linear concatenation: a colleague's faster version no longer sees PE.",
    returns="a tensor of shape [Lq, Lk]",
    section=WORKS,
    draw=_concat_bias_cases,
    reference=_concat_bias,
    picture="heat",
    wrong=(
        Wrong(
            "relu before the sum",
            _concat_of(lambda a, b, c, W_2: torch.relu(a) @ W_2 + torch.relu(b + c) @ W_2),
            "Place and offset pass the relu apart and are added afterwards. So the part of PE_i is again "
            "one number for all keys of a query, and the softmax removes it.",
            CONCAT,
        ),
        Wrong(
            "relu before the sum, c with the place",
            _concat_of(lambda a, b, c, W_2: torch.relu(a + c) @ W_2 + torch.relu(b) @ W_2),
            "The constant has moved, but place and offset still pass the relu apart. Whatever is computed "
            "from PE_i alone is the same for all keys of a query.",
            CONCAT,
        ),
        Wrong(
            "relu before the sum, c in both",
            _concat_of(lambda a, b, c, W_2: torch.relu(a + c) @ W_2 + torch.relu(b + c) @ W_2),
            "Place and offset still pass the relu apart, now each with the constant. Whatever is computed "
            "from PE_i alone is the same for all keys of a query.",
            CONCAT,
        ),
        Wrong(
            "no relu at all",
            _concat_of(lambda a, b, c, W_2: (a + b + c) @ W_2),
            "Without a relu, two linear layers are one linear layer, and a linear layer over a "
            "concatenation is a sum: the part of PE_i cancels.",
            CONCAT,
        ),
        Wrong(
            "relu on the score",
            _concat_of(lambda a, b, c, W_2: torch.relu((a + b + c) @ W_2)),
            "The relu comes after the second layer. The two layers before it are one linear layer, and no "
            "score can be negative.",
            WORKS,
        ),
        Wrong(
            "relu twice",
            _concat_of(lambda a, b, c, W_2: torch.relu(torch.relu(a + b + c) @ W_2)),
            "There is a second relu, after the last layer. No score can then be negative: the head can "
            "favour keys and never disfavour one.",
            WORKS,
        ),
        Wrong(
            "c added twice",
            _concat_of(lambda a, b, c, W_2: torch.relu(a + c + b + c) @ W_2),
            "The constant c is added to both parts before they are joined, so it counts twice.",
            WORKS,
        ),
        Wrong(
            "c left out",
            _concat_of(lambda a, b, c, W_2: torch.relu(a + b) @ W_2),
            "The constant c is missing. Every bend of the relu then passes through the origin.",
            WORKS,
        ),
        Wrong(
            "c outside of the relu",
            _concat_of(lambda a, b, c, W_2: (torch.relu(a + b) + c) @ W_2),
            "c is added after the relu. There it only raises all scores alike, which a softmax ignores; "
            "before the relu it decides where the bend is.",
            WORKS,
        ),
        Wrong(
            "place of the key",
            _concat_of(
                lambda a, b, c, W_2: torch.relu(a + b + c) @ W_2, place=lambda PE, W: (PE @ W[:, :-1].T)[None]
            ),
            "PE is laid along the keys. With as many keys as queries nothing raises, and the place of the "
            "key stands for that of the query. Sizes that are all different show it.",
            'deeper/05_formulas, section "Find the bug"',
        ),
        Wrong(
            "offset first",
            _concat_of(
                lambda a, b, c, W_2: torch.relu(a + b + c) @ W_2,
                place=lambda PE, W: (PE @ W[:, 1:].T)[:, None],
                offset=lambda r, W: r[..., None] * W[:, 0],
            ),
            "W_o is cut in the wrong place: the stack is [PE_i; r_ij], so the number r_ij meets the last "
            "column, not the first one.",
            CONCAT,
        ),
        Wrong(
            "place left out",
            _concat_of(lambda a, b, c, W_2: torch.relu(b + c) @ W_2),
            "PE plays no part: this is a relative bias that has passed a layer.",
            WORKS,
        ),
        Wrong(
            "mean in place of W_2",
            _concat_of(lambda a, b, c, W_2: torch.relu(a + b + c).mean(-1)),
            "The hidden numbers are averaged. The second layer weighs each of them with its W_2.",
            WORKS,
        ),
        Wrong(
            "another non-linearity",
            _concat_of(lambda a, b, c, W_2: gelu(a + b + c) @ W_2),
            "You use a gelu. It would work as well in training, but this question asks for the relu, and "
            "weights that were trained with one do not fit the other.",
            WORKS,
        ),
        *(
            Wrong(
                name,
                _concat_of(lambda a, b, c, W_2: torch.relu(a + b + c) @ W_2, **part),
                "W_o is cut in two places that do not fit: one column meets both parts, and another none. "
                "The first d columns belong to PE_i, the last one to r_ij.",
            )
            for name, part in (
                ("the first column taken twice", {"offset": lambda r, W: r[..., None] * W[:, 0]}),
                ("the last column taken twice", {"place": lambda PE, W: (PE @ W[:, 1:].T)[:, None]}),
            )
        ),
    ),
    variants=(
        Variant(
            "two parts, added before the relu",
            _concat_of(lambda a, b, c, W_2: torch.relu(a + b + c) @ W_2),
            "The stack is never built: its two linear parts are added before the relu. That is what the "
            "faster version wanted.",
        ),
        Variant(
            "pair by pair",
            lambda PE, r, W_o, c, W_2: torch.stack(
                [
                    torch.stack(
                        [
                            W_2 @ (W_o @ torch.cat([PE[i], r[i, j].view(1)]) + c).clamp(min=0)
                            for j in range(r.shape[1])
                        ]
                    )
                    for i in range(r.shape[0])
                ]
            ),
            "Two loops are slow and right.",
        ),
        Variant(
            "einsum",
            lambda PE, r, W_o, c, W_2: torch.einsum(
                "qkh,h->qk",
                (
                    torch.einsum("qd,hd->qh", PE, W_o[:, :-1])[:, None] + r.unsqueeze(-1) * W_o[:, -1] + c
                ).relu(),
                W_2,
            ),
            "The sums are the same, written as einsum.",
        ),
    ),
    hints=(
        "Write the broken version as a formula. Which of its terms has no j? What does a softmax over j do "
        "with it?",
        "To cut W_o in two is fine: a linear layer over a stack is a sum of two parts. What must happen to "
        "the two parts before anything bends?",
        "The formula of the notebook has one relu. All that is linear before it stands inside of it.",
    ),
)


# ---- tupe_scores ----
def _tupe_cases(draw: Draw) -> list[Case]:
    def case(batch, length, D, d):
        shapes = (batch, length, D), (length, D), *[(D, d)] * 4, (length, length)
        args = [draw.normal(*shape) for shape in shapes]
        theta = draw.uniform(2, low=1.5, high=2.5) * torch.tensor([1, -1])
        return Case(
            (*args, theta),
            _("B = {batch}, L = {length}, D = {D}, d = {d}").format(batch=batch, length=length, D=D, d=d),
        )

    return [case(2, 4, 6, 3), case(3, draw.integer(5, 6), 4, 8), case(1, 3, 5, 2), case(2, 6, 3, 5)]


def _tupe_scores(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    scale = (2 * W_Q.shape[1]) ** -0.5
    words = (x @ W_Q) @ (x @ W_K).mT * scale
    places = (p @ U_Q) @ (p @ U_K).T * scale + b
    places[:, 0] = theta[1]
    places[0] = theta[0]
    return words + places


def _reset(places, theta):
    places = places.clone()
    places[:, 0] = theta[1]
    places[0] = theta[0]
    return places


def _tupe(
    scale=lambda D, d: (2 * d) ** -0.5,
    scale_places=None,
    reset=_reset,
    words=lambda x, W_Q, W_K: (x @ W_Q) @ (x @ W_K).mT,
    places=lambda p, U_Q, U_K: (p @ U_Q) @ (p @ U_K).T,
    join=None,
):
    """tupe_scores in parts, each of which can be replaced."""

    def answer(x, p, W_Q, W_K, U_Q, U_K, b, theta):
        s = scale(*W_Q.shape)
        t = s if scale_places is None else scale_places(*W_Q.shape)
        a, v = words(x, W_Q, W_K) * s, places(p, U_Q, U_K) * t
        return join(a, v, b, theta, s) if join else a + reset(v + b, theta)

    return answer


def _tied(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    return _tupe_scores(x, p, W_Q, W_K, W_Q, W_K, b, theta)


def _added_at_the_input(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    h = x + p
    return (h @ W_Q) @ (h @ W_K).mT / (2 * W_Q.shape[1]) ** 0.5 + _reset(b, theta)


def _written(order):
    """A reset that writes row and column in this order and with these numbers of theta."""

    def reset(places, theta):
        places = places.clone()
        for where, n in order:
            if where == "row":
                places[0] = theta[n]
            else:
                places[:, 0] = theta[n]
        return places

    return reset


def _reset_at_the_end(places, theta):
    places = places.clone()
    places[:, -1] = theta[1]
    places[-1] = theta[0]
    return places


def _stacked(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    p = torch.cat([0 * p[:1], p[1:]]).expand(len(x), -1, -1)
    q, k = torch.cat([x @ W_Q, p @ U_Q], -1), torch.cat([x @ W_K, p @ U_K], -1)
    return q @ k.mT / (2 * W_Q.shape[1]) ** 0.5 + _reset(b, theta)


def _without_row_means(value, case):
    return value - value.mean(-1, keepdim=True)


TUPE_SCORES = Question(
    name="tupe_scores",
    exercise="05",
    title="Scores of TUPE: words and places with matrices of their own, and [CLS] with its own numbers.",
    returns="a tensor of shape [B, L, L]",
    section=BY_HAND,
    draw=_tupe_cases,
    reference=_tupe_scores,
    same=_without_row_means,
    equivalent="Your scores differ from ours by one number for each query. A softmax over the keys does not "
    "see that, so the weights are the same.",
    picture="heat",
    bonus=True,
    wrong=(
        Wrong(
            "places through the words' matrices",
            _tied,
            "Places are projected with W^Q and W^K. TUPE is called *untied* because they are not: words "
            "and places ask different questions, so places have U^Q and U^K.",
            BY_HAND,
        ),
        Wrong(
            "added at the input",
            _added_at_the_input,
            "Words and places are added before the projection. Then the product has four terms, two of "
            "them between a word and a place; TUPE drops these two.",
            BY_HAND,
        ),
        Wrong(
            "scaled for one term",
            _tupe(scale=lambda D, d: d**-0.5),
            "Both products are divided by √d, as if each stood alone. Two terms of like size are summed, "
            "so the scores come out too large by √2.",
            BY_HAND,
        ),
        Wrong(
            "scaled by the model's width",
            _tupe(scale=lambda D, d: (2 * D) ** -0.5),
            "The scale is taken from the width D of the model. A product runs over the d channels of a "
            "head, and its size depends on d.",
            BY_HAND,
        ),
        Wrong(
            "places not scaled",
            _tupe(scale_places=lambda D, d: 1.0),
            "The product of places is not scaled, so places drown the words. Both products run over d "
            "channels, and both get the same factor.",
            BY_HAND,
        ),
        Wrong(
            "words scaled for one term",
            _tupe(scale=lambda D, d: d**-0.5, scale_places=lambda D, d: (2 * d) ** -0.5),
            "The product of words is scaled as in plain attention, that of places as in TUPE. In TUPE both "
            "have the same factor, so that neither starts ahead.",
            BY_HAND,
        ),
        Wrong(
            "bias scaled",
            _tupe(join=lambda a, v, b, theta, s: a + _reset(v + b * s, theta)),
            "The relative bias is scaled, too. It is a learned number, not a product of d channels: it is "
            "added as it is.",
            BY_HAND,
        ),
        Wrong(
            "no reset",
            _tupe(reset=lambda places, theta: places),
            "The [CLS] token keeps the position scores of place 0, and theta is never used. [CLS] stands "
            "for the whole text: no place should be nearer to it than another.",
            EXPERTS,
        ),
        Wrong(
            "only the column is reset",
            _tupe(reset=_written([("column", 1)])),
            "The other tokens have their number for [CLS], but [CLS] itself still prefers some places over "
            "others: its row is not reset.",
            EXPERTS,
        ),
        Wrong(
            "only the row is reset",
            _tupe(reset=_written([("row", 0)])),
            "[CLS] reads all places alike, but the other tokens still see it at place 0: their scores for "
            "[CLS] are not reset.",
            EXPERTS,
        ),
        Wrong(
            "the two numbers exchanged",
            _tupe(reset=_written([("column", 0), ("row", 1)])),
            "The two numbers have changed places. From [CLS] to every token it is the first one; from the "
            "others to [CLS] the second. (Only one of the two mistakes is visible after a softmax.)",
            EXPERTS,
        ),
        Wrong(
            "the corner belongs to the column",
            _tupe(reset=_written([("row", 0), ("column", 1)])),
            "The score of [CLS] with itself gets the second number: your column overwrites the corner. The "
            "corner is a score *from* [CLS], and with it the row must be constant.",
            EXPERTS,
        ),
        Wrong(
            "words reset, too",
            _tupe(join=lambda a, v, b, theta, s: torch.stack([_reset(each, theta) for each in a + v + b])),
            "The whole scores of [CLS] are overwritten, words included. Then [CLS] can't choose by content "
            "at all. Only what comes from positions is reset.",
            EXPERTS,
        ),
        Wrong(
            "bias added after the reset",
            _tupe(join=lambda a, v, b, theta, s: a + _reset(v, theta) + b),
            "The relative bias is added after the reset, so [CLS] still has a place in it. Both position "
            "terms are reset together.",
            EXPERTS,
        ),
        Wrong(
            "numbers added in place of set",
            _tupe(join=lambda a, v, b, theta, s: a + v + b + _reset(torch.zeros_like(b), theta)),
            "theta is added to the position scores of [CLS]. It should stand in their place: the scores of "
            "place 0 are still there.",
            EXPERTS,
        ),
        Wrong(
            "[CLS] at the end",
            _tupe(reset=_reset_at_the_end),
            "The last token is treated as [CLS]. It stands at the beginning, at position 0.",
            EXPERTS,
        ),
        Wrong(
            "query and key exchanged",
            _tupe(
                words=lambda x, W_Q, W_K: (x @ W_K) @ (x @ W_Q).mT,
                places=lambda p, U_Q, U_K: (p @ U_K) @ (p @ U_Q).T,
            ),
            "Keys ask and queries answer: both products are transposed. Rows belong to queries, which "
            "are made with W^Q and U^Q.",
            BY_HAND,
        ),
        Wrong(
            "words alone",
            lambda x, p, W_Q, W_K, *_rest: (x @ W_Q) @ (x @ W_K).mT * (2 * W_Q.shape[1]) ** -0.5,
            "Only the words are left: no place has any effect, and neither has theta.",
        ),
    ),
    variants=(
        Variant(
            "θ_1 left out",
            _tupe(reset=lambda places, theta: _reset(places, torch.stack([0 * theta[0], theta[1]]))),
            "You left out θ_1: it is one number for all keys of [CLS], and a softmax does not see it.",
        ),
        Variant(
            "one product of stacked channels",
            _stacked,
            "Words and places side by side in one vector give both products at once.",
        ),
        Variant(
            "chosen with where",
            _tupe(
                reset=lambda places, theta: torch.where(
                    torch.arange(len(places))[:, None] == 0,
                    theta[0],
                    torch.where(torch.arange(len(places)) == 0, theta[1], places),
                )
            ),
            "Choosing with `where` needs no copy.",
        ),
    ),
    hints=(
        "Two products that never meet, each with a pair of matrices of its own, and one factor for both.",
        "Build the position part [L, L] completely first: product, factor, bias. Then overwrite what belongs "
        "to [CLS], and only then add the words.",
        "A score from [CLS] lies in row 0, a score to [CLS] in column 0. They share one corner: decide whose "
        "it is by making the row constant.",
    ),
)

QUESTIONS = (MEMORY_SCORES, MOVED_MASS, PAINT_HEAD, CONCAT_BIAS, TUPE_SCORES)
