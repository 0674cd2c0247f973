"""Exercise 05: absolute and relative positions in one model."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import gelu

from ..question import Case, Draw, Question, Variant, Wrong

TERMS = 'deeper/04_memory, section "Four terms"'
LETTERS = '05, section "What the letters mean"'
CANCELS = '05, section "The second error"'
CONCAT = '05, section "The concatenation"'
EXPERTS = '05, section "It happens to experts, too"'
WORKS = '05, section "What does work"'
BY_HAND = '05, section "TUPE, by hand"'


# ---- memory_scores ----
def _memory_scores_cases(draw: Draw) -> list[Case]:
    cases = []
    sizes_of = ((0, 5, 4, 3, torch.float32), (draw.integer(2, 3), 4, 5, 4, torch.float32),
                (6, 3, 6, 5, torch.float32), (7, 1, 3, 2, torch.float32), (4, 6, 7, 6, torch.float64))
    for memory, new, d, d_h, dtype in sizes_of:
        sizes = (new, d), (memory, d), (d, d_h), (d, d_h), (d_h,), (d_h,), (memory + new, d_h)
        cases.append(Case(tuple(draw.normal(*size, dtype=dtype) for size in sizes),
                          f"M = {memory}, L = {new}, d = {d}, d_h = {d_h}, {str(dtype).split('.')[1]}"))
    return cases


def _memory_with(context=None, distance=None, terms=None, scale=None, mask=None):
    """Transformer-XL's scores, with one of their parts exchanged."""
    context = context or (lambda x, memory: torch.cat([memory, x]))
    distance = distance or (lambda i, j: i - j)
    scale = scale or (lambda x, d_h: d_h ** -0.5)
    mask = mask or (lambda i, j: j > i)
    terms = terms or (lambda q, k, u, v, r: (q + u) @ k.T + torch.einsum("id,ijd->ij", q + v, r))

    def answer(x, memory, W_Q, W_K, u, v, R):
        keys = context(x, memory)
        i, j = len(keys) - len(x) + torch.arange(len(x))[:, None], torch.arange(len(keys))
        r = R[distance(i, j).clamp(0, len(R) - 1)]
        scores = terms(x @ W_Q, keys @ W_K, u, v, r) * scale(x, W_Q.shape[1])
        return scores.masked_fill(mask(i, j), -torch.inf)

    return answer


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
    returns="a tensor of shape [L, M + L], −inf where the key comes after the query, in the dtype of x",
    section=TERMS,
    draw=_memory_scores_cases,
    reference=_memory_scores,
    picture="heat",
    axes=("key: memory, then segment", "query"),
    wrong=(
        Wrong("distance without the memory", _memory_with(
            distance=lambda i, j: (i - i[0] - j).clamp(min=0)),
              "The distances count as if the segment began at 0, while its memory stands before it. A key of "
              "the memory then looks nearer than the tokens that came after it."),
        Wrong("memory behind the segment", _memory_with(context=lambda x, memory: torch.cat([x, memory])),
              "The keys begin with the segment and end with the memory. The memory is the text *before*."),
        Wrong("memory of no use", _memory_with(mask=lambda i, j: (j > i) | (j < i[0])),
              "The memory is hidden. It is the past of every query of the segment: the mask hides what comes "
              "after a query, and nothing else."),
        Wrong("the mask of a text that begins here", _memory_with(mask=lambda i, j: j > i - i[0]),
              "The mask takes row 0 for key 0. With M remembered tokens, the first query is key number M, "
              "and it may see all keys up to that one."),
        Wrong("no mask", _memory_with(mask=lambda i, j: (j > i) & False),
              "Nothing is hidden: a query also reads the tokens that it should predict."),
        Wrong("u and v exchanged", _memory_with(terms=lambda q, k, u, v, r: (
            q + v) @ k.T + torch.einsum("id,ijd->ij", q + u, r)),
              "The two biases have changed places: u belongs to contents, v to distances."),
        Wrong("no bias for distances", _memory_with(terms=lambda q, k, u, v, r: (
            q + u) @ k.T + torch.einsum("id,ijd->ij", q, r)),
              "Term (d), the liked distance, is missing: it depends on the offset alone, like a table of "
              "biases."),
        Wrong("no bias for contents", _memory_with(terms=lambda q, k, u, v, r: q @ k.T + torch.einsum(
            "id,ijd->ij", q + v, r)),
              "Term (c), the liked content, is missing. It does not cancel: it differs from key to key."),
        Wrong("no term asks for a distance", _memory_with(terms=lambda q, k, u, v, r: (
            q + u) @ k.T + (r @ v)),
              "Term (b) is missing: the query meets contents only, and the distance counts the same for "
              "every query."),
        Wrong("distances from far to near", _memory_with(distance=lambda i, j: i.max() - (i - j)),
              "The table is read from the other end. R[0] belongs to the token itself."),
        Wrong("one step too far", _memory_with(distance=lambda i, j: i - j + 1),
              "Each distance is one too large: a token is 0 away from itself."),
        Wrong("scale forgotten", _memory_with(scale=lambda x, d_h: 1.0),
              "The division by the root of the head's width is missing; it is meant for all four terms."),
        Wrong("only contents are scaled", _memory_with(terms=lambda q, k, u, v, r: (
            q + u) @ k.T + torch.einsum("id,ijd->ij", q + v, r) * q.shape[1] ** 0.5),
              "The distances are added after the division. All four terms stand under one root."),
        Wrong("scaled by the width of the model", _memory_with(scale=lambda x, d_h: x.shape[1] ** -0.5),
              "The scores are divided by the root of the width of x. A product of query and key has as many "
              "terms as the head is wide."),
        Wrong("the memory asks, too", _all_rows,
              "There is a row for each token of the memory as well. The memory has asked when it was the "
              "segment; now it only answers."),
    ),
    variants=(
        Variant("two loops", _memory_in_loops, "One pair at a time gives the same numbers."),
        Variant("distances first", _by_distances_first,
                "This is the paper's own trick: no tensor of all pairs of vectors is formed."),
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

    def case(what, heads, queries, keys, term, allowed, dtype=torch.float32):
        scores, term = draw.normal(heads, queries, keys, dtype=dtype), draw.normal(*term, dtype=dtype)
        return Case((scores, term, allowed), f"H = {heads}, {queries} queries, {keys} keys, {what}")

    return [case("a term for each pair, all keys allowed", 2, 4, 6, (4, 6), torch.ones(4, 6) > 0),
            case("a term of the query, some keys allowed", 3, 4, 5, (4, 1), sometimes(4, 5)),
            case("a term of the key, causal", 2, 5, 7, (1, 7), torch.ones(5, 7).tril(2) > 0),
            case("a term for each head, some keys allowed", 3, 6, 5, (3, 6, 5), sometimes(6, 5)),
            case("float64, causal", 4, 3, 8, (3, 8), torch.ones(3, 8).tril(5) > 0, torch.float64)]


def _masked_softmax(scores, allowed):
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


def _moved_mass(scores, term, allowed):
    change = _masked_softmax(scores + term, allowed) - _masked_softmax(scores, allowed)
    return change.abs().sum(-1).mean(-1) / 2


def _moved(change=lambda with_term, without: (with_term - without).abs().sum(-1).mean(-1) / 2,
           weights=_masked_softmax):
    """moved_mass with another comparison, or with other weights."""
    return lambda scores, term, allowed: change(weights(scores + term, allowed), weights(scores, allowed))


MOVED_MASS = Question(
    name="moved_mass",
    exercise="05",
    title="The share of its attention that a head moves to other keys when a term is added to its scores.",
    returns="a tensor of shape [H], each number from 0 to 1, in the dtype of the scores",
    section=CANCELS,
    draw=_moved_mass_cases,
    reference=_moved_mass,
    picture="lines",
    axes=("head", "share moved"),
    wrong=(
        Wrong("softmax over the queries", _moved(weights=lambda e, ok: e.masked_fill(~ok, -math.inf)
                                                 .softmax(-2).nan_to_num(0)),
              "Your softmax runs over the queries. Each query shares out its attention among the keys, so "
              "the weights of a row must sum to 1; yours do so along the columns.", CANCELS),
        Wrong("softmax over the queries, with NaN", _moved(weights=lambda e, ok: e.masked_fill(~ok, -math.inf)
                                                           .softmax(-2)),
              "Your softmax runs over the queries. A key that no query may read gives NaN there: the sign "
              "that it is the wrong axis. Each query shares out its attention among the keys.", CANCELS),
        Wrong("mask after the softmax", _moved(weights=lambda e, ok: e.softmax(-1) * ok),
              "The forbidden keys are set to 0 after the softmax. What they had taken is lost, so the rest "
              "does not sum to 1. A row with one allowed key shows it: its weight must be 1."),
        Wrong("mask forgotten", _moved(weights=lambda e, ok: e.softmax(-1)),
              "Forbidden keys get a share of the attention, too. With a causal mask, the first queries show "
              "it: they seem to read ahead."),
        Wrong("mask the wrong way round", _moved(weights=lambda e, ok: e.masked_fill(ok, -math.inf)
                                                 .softmax(-1)),
              "Your mask closes what is allowed and opens what is not: `allowed` is True where a query may "
              "read. Where all keys are allowed nothing is left, hence NaN."),
        Wrong("mask with 0", _moved(weights=lambda e, ok: e.masked_fill(~ok, 0).softmax(-1)),
              "Forbidden scores are set to 0. But exp(0) is 1, so these keys still get weight: as much as "
              "any key with a score of 0."),
        Wrong("mass counted twice", _moved(lambda a, b: (a - b).abs().sum(-1).mean(-1)),
              "What leaves one key arrives at another, and your sum counts both. So it can reach 2, and a "
              "share can't be more than 1."),
        Wrong("gains and losses cancel", _moved(lambda a, b: (a - b).sum(-1).mean(-1) / 2),
              "Gains and losses are summed with their signs. Both rows of weights sum to 1, so this is 0 "
              "whatever the term does."),
        Wrong("mean over the keys", _moved(lambda a, b: (a - b).abs().mean((-2, -1)) / 2),
              "The change is averaged over the keys, so the same move counts less in a longer text. The "
              "shares of a query belong together: over the keys they are summed."),
        Wrong("mean over the keys, not halved", _moved(lambda a, b: (a - b).abs().mean((-2, -1))),
              "The change is averaged over the keys, so the same move counts less in a longer text. Over the "
              "keys, shares are summed (and each that moves shows up twice)."),
        Wrong("sum over the queries", _moved(lambda a, b: (a - b).abs().sum((-2, -1)) / 2),
              "The queries are summed, so the number grows with the text and passes 1. Asked is the share "
              "that a query moves on average."),
        Wrong("largest change", _moved(lambda a, b: (a - b).abs().amax((-2, -1))),
              "This is the largest change of a single weight. Asked is how much moves in all: many small "
              "changes count as one large one."),
        Wrong("squared change", _moved(lambda a, b: (a - b).square().sum(-1).mean(-1) / 2),
              "Squares of changes are not shares of the mass: a move of one half would count as a quarter."),
        Wrong("scores compared, not weights", lambda scores, term, allowed:
              ((scores + term - scores).abs() * allowed).sum(-1).mean(-1) / 2,
              "You compare scores. A term that raises all scores of a query changes many scores and no "
              "weight; the model sees weights only.", CANCELS),
        Wrong("weights of the term alone", lambda scores, term, allowed:
              (_masked_softmax(0 * scores + term, allowed) - _masked_softmax(scores, allowed))
              .abs().sum(-1).mean(-1) / 2,
              "You compare the weights of the term alone with those of the scores. The term is *added* to "
              "the scores: a term of 0 must move nothing."),
        Wrong("last query only", _moved(lambda a, b: (a - b).abs().sum(-1)[:, -1] / 2),
              "Only the last query is counted. Asked is the mean over all queries of a head."),
    ),
    variants=(
        Variant("what the gaining keys gain", _moved(lambda a, b: (a - b).clamp(min=0).sum(-1).mean(-1)),
                "What all gaining keys gain together is what moves: it needs no half."),
        Variant("one minus the overlap", _moved(lambda a, b: 1 - torch.minimum(a, b).sum(-1).mean(-1)),
                "What two distributions do not share is what has moved."),
        Variant("exp by hand", _moved(weights=lambda e, ok: e.exp() * ok / (e.exp() * ok)
                                      .sum(-1, keepdim=True)),
                "Masking before the division by the sum is the same as masking with −∞."),
    ),
    hints=(
        "Compute the weights twice, with and without the term, and compare them query by query.",
        "Close the forbidden keys before the softmax, with the number whose exponential is 0. Then: "
        "difference, sizes, a sum over one axis, a mean over another.",
        "Half of the summed sizes along the keys is what one query moves, since each share that moves "
        "leaves one place and arrives at another.",
    ),
)


# ---- key_side_scores ----
def _key_side_cases(draw: Draw) -> list[Case]:
    def case(what, heads, d_head, d, q_positions, k_positions, dtype=torch.float32):
        N = int(max(q_positions.max(), k_positions.max())) + 2
        shapes = ((heads, len(q_positions), d_head), (heads, len(k_positions), d_head), (N + 1, d),
                  (heads, d), (heads, 2 * N - 1))
        args = *(draw.normal(*shape, dtype=dtype) for shape in shapes), q_positions, k_positions
        return Case(args, f"H = {heads}, d_h = {d_head}, d = {d}, {what}")

    n, late = draw.integer(4, 6), draw.integer(3, 8)
    return [case("one text from position 0", 2, 3, 7, torch.arange(n), torch.arange(n)),
            case("two new queries after a cache", 3, 4, 5, torch.tensor([6, 7]), torch.arange(8)),
            case("a window that starts later", 2, 8, 3, late + torch.arange(5), late + torch.arange(5)),
            case("keys out of order, float64", 3, 10, 5, torch.arange(4) + 2, draw.permutation(6) + 1,
                 torch.float64)]


def _key_side(content=lambda q, k: q @ k.mT / math.sqrt(q.shape[-1]),
              absolute=lambda PE, w, i, j: (w @ PE[j].T)[:, None, :],
              relative=lambda table, i, j: table[:, j - i[:, None] + table.shape[1] // 2],
              whole=lambda content, absolute, relative, d: content + absolute + relative):
    """key_side_scores in parts, each of which can be another one."""
    return lambda q, k, PE, w, table, i, j: whole(
        content(q, k), absolute(PE, w, i, j), relative(table, i, j), q.shape[-1])


def _key_side_scores(q, k, PE, w, table, q_positions, k_positions):
    content = q @ k.mT / math.sqrt(q.shape[-1])
    absolute = (PE[k_positions] @ w.T).T[:, None, :]
    offset = k_positions[None, :] - q_positions[:, None]
    return content + absolute + table[:, offset + table.shape[1] // 2]


KEY_SIDE_SCORES = Question(
    name="key_side_scores",
    exercise="05",
    title="Scores from content, the absolute position of the key, and the offset.",
    returns="a tensor of shape [H, Lq, Lk], in the dtype of q",
    section=WORKS,
    draw=_key_side_cases,
    reference=_key_side_scores,
    picture="heat",
    wrong=(
        Wrong("position of the query", _key_side(absolute=lambda PE, w, i, j: (w @ PE[i].T)[:, :, None]),
              "The absolute term is read from the position of the query. Then it is the same number for all "
              "keys of a row, and the softmax does not see it.", CANCELS),
        Wrong("offset turned round", _key_side(
            relative=lambda table, i, j: table[:, i[:, None] - j + table.shape[1] // 2]),
              "Your offset is query minus key. In this course it is key minus query: looking back is "
              "negative. Left and right change places; the diagonal alone stays right.", LETTERS),
        Wrong("offsets not moved to row 0", _key_side(relative=lambda table, i, j: table[:, j - i[:, None]]),
              "The offset itself is used as the index. Negative ones count from the end of the table, so "
              "nothing raises; but offset 0 belongs in the middle of the table, not at its beginning.",
              LETTERS),
        Wrong("middle of the table missed by one", _key_side(
            relative=lambda table, i, j: table[:, j - i[:, None] + table.shape[1] // 2 + 1]),
              "Each pair reads the entry beside its own. The table has 2N − 1 entries and offset 0 is its "
              "middle: look at what the diagonal reads.", LETTERS),
        Wrong("N taken from the number of keys", _key_side(
            relative=lambda table, i, j: table[:, j - i[:, None] + len(j) - 1]),
              "You take the number of keys for N. But N belongs to the table, which has 2N − 1 entries and "
              "may be longer than this text needs: offset 0 is its middle.", LETTERS),
        Wrong("distance in place of offset", _key_side(
            relative=lambda table, i, j: table[:, (j - i[:, None]).abs() + table.shape[1] // 2]),
              "The sign of the offset is dropped, so one step back reads the same entry as one step ahead, "
              "and half of the table is never used.", LETTERS),
        Wrong("row numbers in place of positions", _key_side(
            absolute=lambda PE, w, i, j: (w @ PE[:len(j)].T)[:, None, :],
            relative=lambda table, i, j: table[:, torch.arange(len(j)) - torch.arange(len(i))[:, None]
                                               + table.shape[1] // 2]),
              "Your answer counts rows and columns from 0 and never looks at the positions. With a cache, a "
              "window that starts later, or keys out of order, that is another text.", WORKS),
        Wrong("row numbers for the offsets", _key_side(
            relative=lambda table, i, j: table[:, torch.arange(len(j)) - torch.arange(len(i))[:, None]
                                               + table.shape[1] // 2]),
              "The offsets are counted from row and column numbers. With a cache, the first new query is "
              "row 0, but does not stand at position 0.", LETTERS),
        Wrong("row numbers for the places", _key_side(
            absolute=lambda PE, w, i, j: (w @ PE[:len(j)].T)[:, None, :]),
              "The absolute term takes the first rows of PE, whatever the positions of the keys are. It is "
              "right only for keys that start at 0 and stand in order.", WORKS),
        Wrong("no scale", _key_side(content=lambda q, k: q @ k.mT),
              "The product of q and k is not divided by √d_h. Scores grow with the width of a head, and the "
              "softmax becomes too sharp.", WORKS),
        Wrong("divided by d_h", _key_side(content=lambda q, k: q @ k.mT / q.shape[-1]),
              "The product is divided by d_h in place of its square root, so the content hardly counts "
              "beside the positions.", WORKS),
        Wrong("everything scaled", _key_side(whole=lambda content, absolute, relative, d:
                                             content + (absolute + relative) / math.sqrt(d)),
              "The position terms are divided by √d_h, too. The scale makes up for the length of a product "
              "of d_h terms; a learned number needs none.", WORKS),
        Wrong("one head's w for all", _key_side(absolute=lambda PE, w, i, j:
                                                (w[:1] @ PE[j].T)[:, None, :]),
              "All heads read the positions with the vector of head 0. Each head has a w of its own.", WORKS),
        Wrong("absolute term left out", _key_side(absolute=lambda PE, w, i, j: 0),
              "The positions of the keys play no part: this is the relative bias alone.", WORKS),
        Wrong("relative term left out", _key_side(relative=lambda table, i, j: 0),
              "The offset plays no part: this is content with the position of the key alone.", WORKS),
        Wrong("weights in place of scores", _key_side(whole=lambda content, absolute, relative, d:
                                                      (content + absolute + relative).softmax(-1)),
              "These are weights, after the softmax. Asked are the scores that go into it."),
    ),
    variants=(
        Variant("pair by pair", lambda q, k, PE, w, table, i, j: torch.stack([torch.stack([torch.stack([
            q[h, a] @ k[h, b] / q.shape[-1] ** 0.5 + w[h] @ PE[j[b]]
            + table[h, int(j[b] - i[a]) + (table.shape[1] - 1) // 2] for b in range(len(j))])
            for a in range(len(i))]) for h in range(len(q))]), "Three loops are slow and right."),
        Variant("einsum", lambda q, k, PE, w, table, i, j: torch.einsum("hqc,hkc->hqk", q, k)
                * q.shape[-1] ** -0.5 + torch.einsum("hd,kd->hk", w, PE[j]).unsqueeze(1)
                + table[:, j.view(1, -1) - i.view(-1, 1) + (table.shape[-1] - 1) // 2],
                "The sums are the same, written as einsum."),
        Variant("absolute term inside the product", lambda q, k, PE, w, table, i, j: torch.cat(
            [q * q.shape[-1] ** -0.5, torch.ones_like(q[..., :1])], -1)
            @ torch.cat([k, (PE[j] @ w.T).T[..., None]], -1).mT
            + table[:, j - i[:, None] + table.shape[1] // 2],
            "A key-side term can ride in the product: one more channel of the key, and a 1 in the query."),
    ),
    hints=(
        "Three terms of shapes [H, Lq, Lk], [H, 1, Lk] and [H, Lq, Lk]: which axis does the absolute one "
        "not have?",
        "Pick the rows of PE that belong to the keys, let each head read them with its w, and give the "
        "result an axis for the queries. Index the table with a whole [Lq, Lk] matrix of offsets.",
        "A row of key positions minus a column of query positions gives the offsets; the table's middle, "
        "entry N − 1, belongs to offset 0.",
    ),
)


# ---- concat_bias ----
def _concat_bias_cases(draw: Draw) -> list[Case]:
    def case(queries, keys, d, hidden, dtype=torch.float32):
        shapes = (queries, d), (queries, keys), (hidden, d + 1), (hidden,), (hidden,)
        return Case(tuple(draw.normal(*shape, dtype=dtype) for shape in shapes),
                    f"{queries} queries, {keys} keys, d = {d}, hidden = {hidden}"
                    + (", float64" if dtype == torch.float64 else ""))

    return [case(4, 4, 6, 9), case(3, draw.choice([5, 7]), 4, 8), case(1, 6, 3, 10),
            case(5, 2, draw.integer(3, 6), 12, torch.float64)]


def _concat_bias(PE, r, W_o, c, W_2):
    places = PE[:, None, :].expand(*r.shape, -1)
    stacked = torch.cat([places, r[..., None]], dim=-1)
    return torch.relu(stacked @ W_o.T + c) @ W_2


def _concat_of(out, place=lambda PE, W: (PE @ W[:, :-1].T)[:, None],
               offset=lambda r, W: r[..., None] * W[:, -1]):
    """concat_bias with another way of joining its two linear parts."""
    return lambda PE, r, W_o, c, W_2: out(place(PE, W_o), offset(r, W_o), c, W_2)


CONCAT_BIAS = Question(
    name="concat_bias",
    exercise="05",
    title="Repair the non-linear concatenation: a colleague's faster version no longer sees PE.",
    returns="a tensor of shape [Lq, Lk], in the dtype of r",
    section=WORKS,
    draw=_concat_bias_cases,
    reference=_concat_bias,
    picture="heat",
    wrong=(
        Wrong("relu before the sum", _concat_of(
            lambda a, b, c, W_2: torch.relu(a) @ W_2 + torch.relu(b + c) @ W_2),
              "Place and offset pass the relu apart and are added afterwards. So the part of PE_i is again "
              "one number for all keys of a query, and the softmax removes it.", CONCAT),
        Wrong("relu before the sum, c with the place", _concat_of(
            lambda a, b, c, W_2: torch.relu(a + c) @ W_2 + torch.relu(b) @ W_2),
              "The constant has moved, but place and offset still pass the relu apart. Whatever is computed "
              "from PE_i alone is the same for all keys of a query.", CONCAT),
        Wrong("relu before the sum, c in both", _concat_of(
            lambda a, b, c, W_2: torch.relu(a + c) @ W_2 + torch.relu(b + c) @ W_2),
              "Place and offset still pass the relu apart, now each with the constant. Whatever is computed "
              "from PE_i alone is the same for all keys of a query.", CONCAT),
        Wrong("no relu at all", _concat_of(lambda a, b, c, W_2: (a + b + c) @ W_2),
              "Without a relu, two linear layers are one linear layer, and a linear layer over a "
              "concatenation is a sum: the part of PE_i cancels.", CONCAT),
        Wrong("relu on the score", _concat_of(lambda a, b, c, W_2: torch.relu((a + b + c) @ W_2)),
              "The relu comes after the second layer. The two layers before it are one linear layer, and no "
              "score can be negative.", WORKS),
        Wrong("relu twice", _concat_of(lambda a, b, c, W_2: torch.relu(torch.relu(a + b + c) @ W_2)),
              "A second relu stands behind the last layer. No score can then be negative: the head can "
              "favour keys and never disfavour one.", WORKS),
        Wrong("c added twice", _concat_of(lambda a, b, c, W_2: torch.relu(a + c + b + c) @ W_2),
              "The constant c is added to both parts before they are joined, so it counts twice.", WORKS),
        Wrong("c left out", _concat_of(lambda a, b, c, W_2: torch.relu(a + b) @ W_2),
              "The constant c is missing. Every bend of the relu then passes through the origin.", WORKS),
        Wrong("c outside of the relu", _concat_of(lambda a, b, c, W_2: (torch.relu(a + b) + c) @ W_2),
              "c is added behind the relu. There it only raises all scores alike, which a softmax ignores; "
              "before the relu it decides where the bend is.", WORKS),
        Wrong("place of the key", _concat_of(
            lambda a, b, c, W_2: torch.relu(a + b + c) @ W_2, place=lambda PE, W: (PE @ W[:, :-1].T)[None]),
              "PE is laid along the keys. With as many keys as queries nothing raises, and the place of the "
              "key stands for that of the query. Sizes that are all different show it.",
              '05, section "Find the bug"'),
        Wrong("offset first", _concat_of(
            lambda a, b, c, W_2: torch.relu(a + b + c) @ W_2,
            place=lambda PE, W: (PE @ W[:, 1:].T)[:, None], offset=lambda r, W: r[..., None] * W[:, 0]),
              "W_o is cut in the wrong place: the stack is [PE_i; r_ij], so the number r_ij meets the last "
              "column, not the first one.", CONCAT),
        Wrong("place left out", _concat_of(lambda a, b, c, W_2: torch.relu(b + c) @ W_2),
              "PE plays no part: this is a relative bias that has passed a layer.", WORKS),
        Wrong("mean in place of W_2", _concat_of(lambda a, b, c, W_2: torch.relu(a + b + c).mean(-1)),
              "The hidden numbers are averaged. The second layer weighs each of them with its W_2.", WORKS),
        Wrong("another non-linearity", _concat_of(lambda a, b, c, W_2: gelu(a + b + c) @ W_2),
              "You use a gelu. It would work as well in training, but this question asks for the relu, and "
              "weights that were trained with one do not fit the other.", WORKS),
    ),
    variants=(
        Variant("two parts, added before the relu", _concat_of(lambda a, b, c, W_2:
                                                               torch.relu(a + b + c) @ W_2),
                "The stack is never built: its two linear parts are added before the relu. That is what the "
                "faster version wanted."),
        Variant("pair by pair", lambda PE, r, W_o, c, W_2: torch.stack([torch.stack([
            W_2 @ (W_o @ torch.cat([PE[i], r[i, j].view(1)]) + c).clamp(min=0) for j in range(r.shape[1])])
            for i in range(r.shape[0])]), "Two loops are slow and right."),
        Variant("einsum", lambda PE, r, W_o, c, W_2: torch.einsum("qkh,h->qk", (
            torch.einsum("qd,hd->qh", PE, W_o[:, :-1])[:, None] + r.unsqueeze(-1) * W_o[:, -1] + c)
            .relu(), W_2), "The sums are the same, written as einsum."),
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
    def case(batch, length, D, d, dtype=torch.float32):
        shapes = (batch, length, D), (length, D), *[(D, d)] * 4, (length, length)
        args = [draw.normal(*shape, dtype=dtype) for shape in shapes]
        theta = draw.uniform(2, low=1.5, high=2.5, dtype=dtype) * torch.tensor([1, -1])
        return Case((*args, theta), f"B = {batch}, L = {length}, D = {D}, d = {d}"
                                    + (", float64" if dtype == torch.float64 else ""))

    return [case(2, 4, 6, 3), case(3, draw.integer(5, 6), 4, 8), case(1, 3, 5, 2),
            case(2, 6, 3, 5, torch.float64)]


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


def _tupe(scale=lambda D, d: (2 * d) ** -0.5, scale_places=None, reset=_reset,
          words=lambda x, W_Q, W_K: (x @ W_Q) @ (x @ W_K).mT,
          places=lambda p, U_Q, U_K: (p @ U_Q) @ (p @ U_K).T, join=None):
    """tupe_scores in parts, each of which can be another one."""
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
    returns="a tensor of shape [B, L, L], in the dtype of x",
    section=BY_HAND,
    draw=_tupe_cases,
    reference=_tupe_scores,
    same=_without_row_means,
    equivalent="Your scores differ from ours by one number for each query. A softmax over the keys does not "
               "see that, so the weights are the same.",
    picture="heat",
    bonus=True,
    wrong=(
        Wrong("places through the words' matrices", _tied,
              "Places are projected with W^Q and W^K. TUPE is called *untied* because they are not: words "
              "and places ask different questions, so places have U^Q and U^K.", BY_HAND),
        Wrong("added at the input", _added_at_the_input,
              "Words and places are added before the projection. Then the product has four terms, two of "
              "them between a word and a place; TUPE drops these two.", BY_HAND),
        Wrong("scaled for one term", _tupe(scale=lambda D, d: d ** -0.5),
              "Both products are divided by √d, as if each stood alone. Two terms of like size are summed, "
              "so the scores come out too large by √2.", BY_HAND),
        Wrong("scaled by the model's width", _tupe(scale=lambda D, d: (2 * D) ** -0.5),
              "The scale is taken from the width D of the model. A product runs over the d channels of a "
              "head, and its size depends on d.", BY_HAND),
        Wrong("places not scaled", _tupe(scale_places=lambda D, d: 1.0),
              "The product of places is not scaled, so places drown the words. Both products run over d "
              "channels, and both get the same factor.", BY_HAND),
        Wrong("words scaled for one term", _tupe(scale=lambda D, d: d ** -0.5,
                                                 scale_places=lambda D, d: (2 * d) ** -0.5),
              "The product of words is scaled as in plain attention, that of places as in TUPE. In TUPE both "
              "have the same factor, so that neither starts ahead.", BY_HAND),
        Wrong("bias scaled", _tupe(join=lambda a, v, b, theta, s: a + _reset(v + b * s, theta)),
              "The relative bias is scaled, too. It is a learned number, not a product of d channels: it is "
              "added as it is.", BY_HAND),
        Wrong("no reset", _tupe(reset=lambda places, theta: places),
              "The [CLS] token keeps the position scores of place 0, and theta is never used. [CLS] stands "
              "for the whole text: no place should be nearer to it than another.", EXPERTS),
        Wrong("only the column is reset", _tupe(reset=_written([("column", 1)])),
              "The other tokens have their number for [CLS], but [CLS] itself still prefers some places over "
              "others: its row is not reset.", EXPERTS),
        Wrong("only the row is reset", _tupe(reset=_written([("row", 0)])),
              "[CLS] reads all places alike, but the other tokens still see it at place 0: their scores for "
              "[CLS] are not reset.", EXPERTS),
        Wrong("the two numbers exchanged", _tupe(reset=_written([("column", 0), ("row", 1)])),
              "The two numbers have changed places. From [CLS] to every token it is the first one; from the "
              "others to [CLS] the second. (Only one of the two mistakes is visible after a softmax.)",
              EXPERTS),
        Wrong("the corner belongs to the column", _tupe(reset=_written([("row", 0), ("column", 1)])),
              "The score of [CLS] with itself gets the second number: your column overwrites the corner. The "
              "corner is a score *from* [CLS], and with it the row must be constant.", EXPERTS),
        Wrong("words reset, too", _tupe(join=lambda a, v, b, theta, s: torch.stack(
            [_reset(each, theta) for each in a + v + b])),
              "The whole scores of [CLS] are overwritten, words included. Then [CLS] can't choose by content "
              "at all. Only what comes from positions is reset.", EXPERTS),
        Wrong("bias added after the reset", _tupe(join=lambda a, v, b, theta, s: a + _reset(v, theta) + b),
              "The relative bias is added after the reset, so [CLS] still has a place in it. Both position "
              "terms are reset together.", EXPERTS),
        Wrong("numbers added in place of set", _tupe(join=lambda a, v, b, theta, s: a + v + b + _reset(
            torch.zeros_like(b), theta)),
              "theta is added to the position scores of [CLS]. It should stand in their place: the scores of "
              "place 0 are still there.", EXPERTS),
        Wrong("[CLS] at the end", _tupe(reset=_reset_at_the_end),
              "The last token is treated as [CLS]. It stands at the beginning, at position 0.", EXPERTS),
        Wrong("query and key exchanged", _tupe(words=lambda x, W_Q, W_K: (x @ W_K) @ (x @ W_Q).mT,
                                               places=lambda p, U_Q, U_K: (p @ U_K) @ (p @ U_Q).T),
              "Keys ask and queries answer: both products are transposed. Rows belong to queries, which "
              "are made with W^Q and U^Q.", BY_HAND),
    ),
    variants=(
        Variant("θ_1 left out", _tupe(reset=lambda places, theta: _reset(
            places, torch.stack([0 * theta[0], theta[1]]))),
            "You left out θ_1: it is one number for all keys of [CLS], and a softmax does not see it."),
        Variant("one product of stacked channels", _stacked,
                "Words and places side by side in one vector give both products at once."),
        Variant("chosen with where", _tupe(reset=lambda places, theta: torch.where(
            torch.arange(len(places))[:, None] == 0, theta[0], torch.where(
                torch.arange(len(places)) == 0, theta[1], places))),
            "Choosing with `where` needs no copy."),
    ),
    hints=(
        "Two products that never meet, each with a pair of matrices of its own, and one factor for both.",
        "Build the position part [L, L] completely first: product, factor, bias. Then overwrite what belongs "
        "to [CLS], and only then add the words.",
        "A score from [CLS] lies in row 0, a score to [CLS] in column 0. They share one corner: decide whose "
        "it is by making the row constant.",
    ),
)

QUESTIONS = (MEMORY_SCORES, MOVED_MASS, KEY_SIDE_SCORES, CONCAT_BIAS, TUPE_SCORES)
