"""The turns of notebook 05: what a softmax sees, Transformer-XL's four terms; of its side quests: a repaired
score, what is secretly relative, two doors."""

from __future__ import annotations

import torch

from ...checks.question import Case, Draw, Question, Wrong

TYPE = 'deeper/05_formulas, section "The first error: a type"'
CANCELS = '05, section "What a softmax does not see"'
SECRET = 'deeper/05_formulas, section "Secretly relative"'
WORKS = 'deeper/05_both, section "What does work"'
BUILD = '05, section "Build: Transformer-XL\'s four terms"'


# ---- score ----
def score(i, j, c, p, w, W_r):
    """Score of query i for key j. c: [N, N], p: [N, d], w: [d], W_r: [2N - 1], offset -(N - 1) first."""
    N = len(c)
    return c[i, j] + w @ p[i] + W_r[j - i + N - 1]


def _score_cases(draw: Draw) -> list[Case]:
    def case(i, j, N, d, what):
        shapes = (N, N), (N, d), (d,), (2 * N - 1,)
        return Case((i, j, *(draw.normal(*shape) for shape in shapes)), f"N = {N}, d = {d}, {what}")

    return [
        case(1, 2, 4, 6, "one word ahead"),
        case(3, 1, 5, 3, "two words back"),
        case(0, draw.integer(1, 3), 6, 8, "the first word looks ahead"),
        case(4, 0, 7, 5, "four words back"),
    ]


def _score_of(
    place=lambda i, j, p, w: w @ p[i], index=lambda i, j, N: j - i + N - 1, c_of=lambda c, i, j: c[i, j]
):
    return lambda i, j, c, p, w, W_r: c_of(c, i, j) + place(i, j, p, w) + W_r[index(i, j, len(c))]


SCORE = Question(
    name="score",
    exercise="05",
    title="The repaired sum: content, the place of the query as a head reads it, and the bias.",
    returns="one number",
    section=TYPE,
    draw=_score_cases,
    reference=score,
    wrong=(
        Wrong(
            "the key's place",
            _score_of(place=lambda i, j, p, w: w @ p[j]),
            "You read the place of the key. The formula asks for that of the query, whose number is i. "
            "(Keep yours in mind for later.)",
        ),
        Wrong(
            "offset turned round",
            _score_of(index=lambda i, j, N: i - j + N - 1),
            "Past and future have changed places in the bias. An offset is key minus query.",
        ),
        Wrong(
            "offset not shifted",
            _score_of(index=lambda i, j, N: j - i),
            "The bias is read at the offset itself. Entry 0 of the table belongs to the offset that looks "
            "furthest back, and Python counts a negative number from the end without a warning.",
        ),
        Wrong(
            "one entry too far",
            _score_of(index=lambda i, j, N: j - i + N),
            "The bias is read one entry too far. The offset -(N - 1) should land on entry 0.",
        ),
        Wrong(
            "vector not read",
            _score_of(place=lambda i, j, p, w: p[i]),
            "Your score is a vector: the place has been added as it is. A head reads it first, with w.",
        ),
        Wrong(
            "read without w",
            _score_of(place=lambda i, j, p, w: p[i].sum()),
            "You have added up the entries of the vector. w says how much each of them counts.",
        ),
        Wrong(
            "place left out",
            _score_of(place=lambda i, j, p, w: 0.0),
            "The absolute part is missing: this is the score of the relative bias alone.",
        ),
        Wrong(
            "content of the pair turned round",
            _score_of(c_of=lambda c, i, j: c[j, i]),
            "The content is that of key j asking query i. Rows belong to queries.",
        ),
    ),
    hints=(
        "Three numbers are added: one from c, one from p and w, one from W_r.",
        "w @ v is the dot product of two vectors. Which row of p belongs to the query?",
        "The table of biases has its middle, offset 0, at entry N - 1. Go on from there by the offset j - i.",
    ),
)


# ---- remains ----
def remains(e):
    """What is left of each query's scores when their mean over the keys is taken out. e: [queries, keys]."""
    return e - e.mean(-1, keepdim=True)


def _tables(draw: Draw) -> list[Case]:
    return [
        Case((draw.normal(rows, columns) + draw.normal(rows, 1) * 3,), f"{rows} queries, {columns} keys")
        for rows, columns in ((3, 5), (6, 4), (2, draw.integer(7, 9)))
    ]


REMAINS = Question(
    name="remains",
    exercise="05",
    title="What a softmax can see of a table of scores.",
    returns="a tensor [queries, keys]",
    section=CANCELS,
    draw=_tables,
    reference=remains,
    picture="heat",
    wrong=(
        Wrong(
            "mean over the queries",
            lambda e: e - e.mean(0, keepdim=True),
            "You have taken the mean over the queries. The softmax runs along the keys, so the mean of "
            "each row is wanted.",
        ),
        Wrong(
            "one mean for all",
            lambda e: e - e.mean(),
            "You have taken out one number from the whole table. Every query has a mean of its own.",
        ),
        Wrong(
            "the mean itself",
            lambda e: e.mean(-1, keepdim=True) + 0 * e,
            "That is what is taken out. What remains is the rest.",
        ),
        Wrong(
            "divided by the mean",
            lambda e: e / e.mean(-1, keepdim=True),
            "You have divided by the mean. What a softmax ignores is a number that is added.",
        ),
        Wrong(
            "softmax",
            lambda e: e.softmax(-1),
            "Those are the weights. We want scores again, without the part that a softmax ignores.",
        ),
        Wrong(
            "another anchor",
            lambda e: e - e[:, :1],
            "That leaves all weights as they are, too, so the idea is right; but you have taken out the "
            "score of the first key. With the mean, what is left of each row adds up to 0.",
        ),
        Wrong(
            "the largest taken out",
            lambda e: e - e.amax(-1, keepdim=True),
            "That leaves all weights as they are, too, so the idea is right; but you have taken out the "
            "largest score. With the mean, what is left of each row adds up to 0.",
        ),
    ),
    hints=(
        "Each row is a query. Its mean is one number, which is taken out of all its keys.",
        "e.mean(-1) is the mean over the last axis, the keys. It has lost that axis, and a subtraction "
        "needs it.",
        "keepdim=True keeps the axis with length 1. Subtract that from e.",
    ),
)


# ---- beyond_offset ----
def beyond_offset(e):
    """Subtract e[i, i] from row i; then return the largest spread, max - min, on a diagonal. e: [N, N]."""
    e = e - e.diagonal()[:, None]
    lines = [e.diagonal(r) for r in range(1 - len(e), len(e))]
    return max(line.max() - line.min() for line in lines)


def _square_cases(draw: Draw) -> list[Case]:
    def relative(N):
        numbers = draw.normal(2 * N - 1)
        i = torch.arange(N)
        return numbers[i[None, :] - i[:, None] + N - 1]

    def own(N):
        return draw.normal(N, 1) * 3

    back, ahead = relative(5) + own(5), relative(6) + own(6)
    back[3, 1] += 2 + draw.number(1, 2)
    ahead[1, 3] += 2 + draw.number(1, 2)
    return [
        Case((relative(4) + own(4),), "a relative bias, and a number for each query"),
        Case((back,), "a relative bias, but for one pair that looks back"),
        Case((ahead,), "a relative bias, but for one pair that looks ahead"),
        Case((draw.normal(6, 6),), "any scores"),
        Case((relative(6) + own(6) + draw.normal(6),), "a relative bias, and a number for each key"),
    ]


def _spread(e, offsets=None):
    offsets = range(1 - len(e), len(e)) if offsets is None else offsets
    return max(e.diagonal(r).max() - e.diagonal(r).min() for r in offsets)


def _out(e):
    return e - e.diagonal()[:, None]


BEYOND_OFFSET = Question(
    name="beyond_offset",
    exercise="05",
    title="How far scores are from depending on the offset alone, as a softmax sees it.",
    returns="one number",
    section=SECRET,
    draw=_square_cases,
    reference=beyond_offset,
    wrong=(
        Wrong(
            "nothing taken out",
            _spread,
            "Nothing has been taken out of the rows. So a number for each query, which no softmax sees, "
            "looks like absolute position.",
        ),
        Wrong(
            "the mean taken out",
            lambda e: _spread(e - e.mean(-1, keepdim=True)),
            "You have taken out the mean of each row. The rows see different offsets (the first word "
            "looks ahead, the last one back), so their means differ even where only the offset counts.",
        ),
        Wrong(
            "the key's own score",
            lambda e: _spread(e - e.diagonal()),
            "The diagonal has been laid along the keys: each column lost e[j, j]. Give it an axis, so "
            "that it runs down the rows.",
        ),
        Wrong(
            "only keys ahead",
            lambda e: _spread(_out(e), range(len(e))),
            "You look at the diagonals from 0 on, where keys lie ahead. Offsets are negative, too.",
        ),
        Wrong(
            "only keys behind",
            lambda e: _spread(_out(e), range(1 - len(e), 1)),
            "You look at the diagonals up to 0, where keys lie behind. There are those ahead, too.",
        ),
        Wrong(
            "weights compared",
            lambda e: _spread(e.softmax(-1)),
            "You compare weights. Each query sees other offsets, so each divides by another sum, "
            "even where only the offset counts.",
        ),
        Wrong(
            "spread of the whole",
            lambda e: _out(e).max() - _out(e).min(),
            "You have taken the spread of the whole table. Different offsets may have different scores: "
            "look at each diagonal by itself.",
        ),
        Wrong(
            "sum of the spreads",
            lambda e: sum(
                _out(e).diagonal(r).max() - _out(e).diagonal(r).min() for r in range(1 - len(e), len(e))
            ),
            "You have added up the spreads of all diagonals. The largest one is wanted.",
        ),
    ),
    hints=(
        "Two steps: first each row minus its own e[i, i], then one diagonal after the other.",
        "e.diagonal() holds the scores with oneself, [N]. With [:, None] it becomes a column, one number "
        "for each row. Offsets go from 1 - N to N - 1.",
        "For each r in range(1 - len(e), len(e)) take e.diagonal(r).max() - e.diagonal(r).min(), and return "
        "the largest.",
    ),
)


# ---- input_and_bias ----
def input_and_bias(x, p, r, W_Q, W_K):
    """Scores [L, L] without a scale. x, p: [L, d] tokens and places, r: [L, L] biases, W_Q, W_K: [d, d]."""
    h = x + p
    return (h @ W_Q) @ (h @ W_K).T + r


def _compose_cases(draw: Draw) -> list[Case]:
    def case(L, d):
        shapes = (L, d), (L, d), (L, L), (d, d), (d, d)
        return Case(tuple(draw.normal(*shape) for shape in shapes), f"L = {L}, d = {d}")

    return [case(4, 6), case(draw.integer(5, 7), 3), case(3, 8)]


def _composed(queries=lambda x, p: x + p, keys=lambda x, p: x + p, more=lambda x, p, r, W_Q, W_K: r):
    return lambda x, p, r, W_Q, W_K: (queries(x, p) @ W_Q) @ (keys(x, p) @ W_K).T + more(x, p, r, W_Q, W_K)


def _x(x, p):
    return x


INPUT_AND_BIAS = Question(
    name="input_and_bias",
    exercise="05",
    title="Two encodings by two doors: places on the input, a bias on the scores.",
    returns="a tensor [L, L]",
    section=WORKS,
    draw=_compose_cases,
    reference=input_and_bias,
    picture="heat",
    wrong=(
        Wrong(
            "no bias",
            _composed(more=lambda *_: 0.0),
            "The relative part is missing: this is attention with absolute positions alone.",
        ),
        Wrong(
            "no places",
            _composed(_x, _x),
            "The absolute part is missing: this is attention with a relative bias alone.",
        ),
        Wrong(
            "places in the query only",
            _composed(keys=_x),
            "Only the queries know their place. At the input, a place is added to the token, and queries "
            "and keys are both made from that.",
        ),
        Wrong(
            "places in the key only",
            _composed(queries=_x),
            "Only the keys know their place. At the input, a place is added to the token, and queries "
            "and keys are both made from that.",
        ),
        Wrong(
            "places apart",
            _composed(_x, _x, lambda x, p, r, W_Q, W_K: (p @ W_Q) @ (p @ W_K).T + r),
            "Words and places pass the matrices apart and never meet in a product. That is close to "
            "TUPE; added at the input, there are two mixed terms as well.",
        ),
        Wrong(
            "places after the matrices",
            lambda x, p, r, W_Q, W_K: (x @ W_Q + p) @ (x @ W_K + p).T + r,
            "The places are added to queries and keys. The door `embed` comes earlier: the matrices see "
            "the sum.",
        ),
        Wrong(
            "bias twice", _composed(more=lambda x, p, r, W_Q, W_K: 2 * r), "The bias has been added twice."
        ),
        Wrong(
            "keys ask",
            lambda x, p, r, W_Q, W_K: ((x + p) @ W_K) @ ((x + p) @ W_Q).T + r,
            "Queries and keys have changed places. Rows belong to queries, which are made with W_Q.",
        ),
    ),
    hints=(
        "By the first door the places enter the token vectors; by the second, the biases enter the scores.",
        "Make h, tokens with their places. Queries are h @ W_Q, keys h @ W_K.",
        "Queries times the transposed keys gives [L, L]. Then add r.",
    ),
)


# ---- four_terms ----
def four_terms(q, k, R, u, v):
    """Scores [B, L, L], no scale. q, k: [B, L, d]; R: [L, L, d], query first; u, v: [d]."""
    return (q + u) @ k.mT + torch.einsum("bid,ijd->bij", q + v, R)


def _terms_cases(draw: Draw) -> list[Case]:
    def case(B, L, d):
        shapes = (B, L, d), (B, L, d), (L, L, d), (d,), (d,)
        return Case(tuple(draw.normal(*shape) for shape in shapes), f"B = {B}, L = {L}, d = {d}")

    return [case(1, 3, 4), case(2, 4, 3), case(3, draw.integer(5, 6), 8), case(4, 4, 4)]


def _weighed(asked=1.0, word=1.0, distance=1.0):
    """The four terms, the last three times a number each."""
    return lambda q, k, R, u, v: (
        q @ k.mT + asked * torch.einsum("bid,ijd->bij", q, R) + word * (k @ u)[:, None] + distance * (R @ v)
    )


FOUR_TERMS = Question(
    name="four_terms",
    exercise="05",
    title="Transformer-XL's scores: four terms, no scale.",
    returns="a tensor [B, L, L]",
    section=BUILD,
    draw=_terms_cases,
    reference=four_terms,
    picture="heat",
    wrong=(
        Wrong(
            "content only",
            lambda q, k, R, u, v: q @ k.mT,
            "That is word · word alone, as in attention without positions. Three terms are missing.",
        ),
        Wrong(
            "no asked distance",
            _weighed(asked=0),
            "The second term is missing: each query meets the vectors R[i, j] of its own row.",
        ),
        Wrong(
            "no liked word",
            _weighed(word=0),
            "The third term is missing: u meets every key, whoever asks.",
        ),
        Wrong(
            "no liked distance",
            _weighed(distance=0),
            "The fourth term is missing: v meets R[i, j], whatever the words are.",
        ),
        Wrong(
            "u asks the queries",
            lambda q, k, R, u, v: q @ k.mT + torch.einsum("bid,ijd->bij", q + v, R) + (q @ u)[..., None],
            "u meets the queries. That is one number for all keys of a query, so a softmax would not see it. "
            "In the formula u meets the key.",
        ),
        Wrong(
            "u along the queries",
            lambda q, k, R, u, v: _weighed(word=0)(q, k, R, u, v) + (k @ u)[..., None],
            "u · k_j is laid along the queries: row j got the number of key j. Keys are columns.",
        ),
        Wrong(
            "u and v exchanged",
            lambda q, k, R, u, v: (q + v) @ k.mT + torch.einsum("bid,ijd->bij", q + u, R),
            "u and v have changed places. u is for words, v is for distances.",
        ),
        Wrong(
            "key meets R",
            lambda q, k, R, u, v: (q + u) @ k.mT + torch.einsum("bjd,ijd->bij", k, R) + R @ v,
            "In your second term it is the key that meets R. The query asks for a distance.",
        ),
        Wrong(
            "R turned round",
            lambda q, k, R, u, v: (q + u) @ k.mT + torch.einsum("bid,jid->bij", q + v, R),
            "R is read at [j, i], so that past and future have changed places. Its first axis is the query.",
        ),
        Wrong(
            "one row of R for all",
            lambda q, k, R, u, v: (q + u) @ k.mT + (q + v) @ R[0].mT,
            "All queries read the row of query 0. Query i has the distances R[i].",
        ),
        Wrong(
            "scaled",
            lambda q, k, R, u, v: four_terms(q, k, R, u, v) / q.shape[-1] ** 0.5,
            "You have divided by √d. The model does that later, to all four terms.",
        ),
        Wrong(
            "softmax",
            lambda q, k, R, u, v: four_terms(q, k, R, u, v).softmax(-1),
            "Those are the weights. The scores are asked for.",
        ),
    ),
    hints=(
        "Write the four terms one below the other, and look at the shape of each: [B, L, L] twice, and then "
        "two that fit by broadcasting.",
        "The first is q @ k.mT. For the third, k @ u has one number for each key, [B, L]; give it an axis "
        "so that keys are columns. R @ v is [L, L].",
        'For the second: torch.einsum("bid,ijd->bij", q, R), or (q[:, :, None] * R).sum(-1).',
    ),
)

QUESTIONS = (REMAINS, FOUR_TERMS, SCORE, BEYOND_OFFSET, INPUT_AND_BIAS)
