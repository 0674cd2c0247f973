"""Exercise 01: what attention does with order, and what a mask and a mean do with it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import torch

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong

LEAK = '01, section "The leak, by hand"'
POOLING = '01, section "Invariant after pooling"'
MASK = '01, section "The causal mask"'
EQUIVARIANT = '01, section "Equivariant, not invariant"'
CEILING = '01, section "How much does it cost?"'


# ---- mask_shares ----
def _mask_shares_cases(draw: Draw) -> list[Case]:
    window = draw.integer(2, 3)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    near = torch.ones(7, 7, dtype=torch.bool).tril().triu(1 - window)
    padded = torch.ones(6, 6, dtype=torch.bool).tril()
    padded[:, 0] = False
    padded[0, 0] = True  # padding sees itself, so that no row is empty
    any_mask = draw.uniform(4, 4) < 0.6
    any_mask[[0, 1, 2], [0, 1, 2]] = False  # nobody promised that a token reads itself, or only its past
    any_mask[[0, 1, 2, 3], [2, 0, 3, 3]] = True
    share = draw.choice((0.25, 0.5, 0.75))
    return [
        Case((causal, 2, 0.0), _("a causal mask, 5 tokens, 2 layers, no residual")),
        Case((causal[:3, :3], 1, 0.5), _("3 tokens, 1 layer, half of it residual")),
        Case(
            (near, 3, share),
            _("a window of {window}, 7 tokens, 3 layers, residual {share:g}").format(
                window=window, share=share
            ),
        ),
        Case((padded, 4, 0.25), _("padding in front, 6 tokens, 4 layers, residual 0.25")),
        Case((any_mask, 5, 0.5), _("any mask, 4 tokens, 5 layers, residual 0.5")),
    ]


def _layer(allowed):
    return allowed.float() / allowed.sum(1, keepdim=True)


def _mask_shares(allowed, layers, residual):
    mixed = (1 - residual) * _layer(allowed) + residual * torch.eye(len(allowed))
    return torch.linalg.matrix_power(mixed, layers)


def _shares_with(layer=_layer, times=lambda n: n, residual=lambda r: r):
    """The right answer, with one of its parts replaced."""
    return lambda allowed, layers, r: torch.linalg.matrix_power(
        (1 - residual(r)) * layer(allowed) + residual(r) * torch.eye(len(allowed)), times(layers)
    )


def _words_come_back(allowed, layers, residual):
    shares = torch.eye(len(allowed))
    for _layer_number in range(layers):
        shares = residual * torch.eye(len(allowed)) + (1 - residual) * _layer(allowed) @ shares
    return shares


def _shares_of_words(allowed, layers, residual):
    x = torch.eye(len(allowed), dtype=torch.float64)
    for _layer_number in range(layers):
        means = [x[row].mean(0) for row in allowed]
        x = residual * x + (1 - residual) * torch.stack(means)
    return x


def _shares_by_attention(allowed, layers, residual):
    x = torch.eye(len(allowed))
    for _layer_number in range(layers):
        weights = torch.zeros_like(x).masked_fill(~allowed, -torch.inf).softmax(-1)
        x = torch.lerp(weights @ x, x, residual)
    return x


MASK_SHARES = Question(
    name="mask_shares",
    exercise="01",
    title="How much of each word is in each row, when a mask is all that tells words apart.",
    returns="a float32 tensor [L, L] whose rows add up to 1",
    section=LEAK,
    draw=_mask_shares_cases,
    reference=_mask_shares,
    picture="heat",
    axes=("word", "row"),
    wrong=(
        Wrong(
            "columns add up to 1",
            _shares_with(layer=lambda a: a.float() / a.sum(0)),
            "The columns add up to 1, so each word shares itself out. It is the query that has one unit of "
            "attention to give: rows add up to 1.",
        ),
        Wrong(
            "divided by L",
            _shares_with(layer=lambda a: a.float() / len(a)),
            "Each row is divided by the number of all tokens, as if hidden ones had got their share and it "
            "was thrown away. A query that sees three words gives each a third.",
        ),
        Wrong(
            "transposed",
            lambda allowed, layers, r: _mask_shares(allowed, layers, r).T,
            "Rows and columns have changed places: row i should say what token i is made of.",
        ),
        Wrong(
            "what is hidden is read",
            _shares_with(layer=lambda a: _layer(~a).nan_to_num(0)),
            "The mask is turned round: True marks what a query may read.",
        ),
        Wrong(
            "every token reads itself",
            lambda allowed, layers, r: _mask_shares(
                allowed | torch.eye(len(allowed), dtype=torch.bool), layers, r
            ),
            "You let every token read itself. Most masks do; this one may forbid it, and `residual` is what "
            "stays of a word anyway.",
        ),
        Wrong(
            "only the past is read",
            lambda allowed, layers, r: _mask_shares(allowed.tril(), layers, r).nan_to_num(0),
            "You hide what stands after the query, whatever the mask says. Not every mask is causal: "
            "`allowed` alone decides.",
        ),
        Wrong(
            "divided by the counts of other rows",
            _shares_with(layer=lambda a: a.float() / a.sum(1)),
            "The numbers of readable words are counted for each row, but laid along the columns: row i is "
            "divided by the counts of all rows. Keep the axis that you sum over.",
        ),
        Wrong(
            "the residual brings back the words",
            _words_come_back,
            "In each layer you mix in the words as they were at the beginning. What stays in a layer is the "
            "row as the layer before left it.",
        ),
        Wrong(
            "softmax of the mask itself",
            _shares_with(layer=lambda a: a.float().softmax(1)),
            "You take a softmax over ones and zeros: a hidden word still gets a share. Its score has to be "
            "−inf, not 0.",
        ),
        Wrong(
            "one layer",
            _shares_with(times=lambda n: 1),
            "This is a single layer, however many there are. The second layer reads what the first one "
            "has written.",
        ),
        Wrong(
            "one layer short",
            _shares_with(times=lambda n: n - 1),
            "One layer is missing: with one layer, this leaves every word as it was.",
        ),
        Wrong("one layer too many", _shares_with(times=lambda n: n + 1), "This is one layer too many."),
        Wrong(
            "no residual",
            _shares_with(residual=lambda r: 0.0),
            "The residual share has no effect: each layer keeps that part of a row as it was.",
        ),
        Wrong(
            "residual and layer exchanged",
            _shares_with(residual=lambda r: 1 - r),
            "The two shares have changed places: `residual` is what stays, not what is read.",
        ),
        Wrong(
            "residual at the end",
            lambda allowed, layers, r: (
                (1 - r) * torch.linalg.matrix_power(_layer(allowed), layers) + r * torch.eye(len(allowed))
            ),
            "The residual is taken once, around all layers. Each layer has its own.",
        ),
        Wrong(
            "residual added on top",
            lambda allowed, layers, r: torch.linalg.matrix_power(
                _layer(allowed) + r * torch.eye(len(allowed)), layers
            ),
            "The residual is added to a whole layer, so that the rows add up to more than 1. What stays "
            "and what is read share one unit.",
        ),
        Wrong(
            "layers side by side",
            lambda allowed, layers, r: layers * _shares_with()(allowed, 1, r),
            "The layers are added up. They stand one after the other: each reads the rows of the one before.",
        ),
        Wrong(
            "each number to the power",
            lambda allowed, layers, r: ((1 - r) * _layer(allowed) + r * torch.eye(len(allowed))) ** layers,
            "Every number is raised to the power of the layers by itself. The next layer mixes rows, so it "
            "is the *matrix* that is multiplied: `**` does not do that.",
        ),
    ),
    variants=(
        Variant(
            "words through layers",
            _shares_of_words,
            "Give each word a column of its own and let it run through the layers: the same numbers.",
        ),
        Variant("with a softmax", _shares_by_attention, "Equal scores, a mask and a softmax are this mean."),
    ),
    hints=(
        "Give each word a column of its own: row i of the identity is word i, unmixed. What does one layer "
        "make of these rows?",
        "With equal scores, the weights of a query are 1 over the number of words that it sees. As a matrix, "
        "a layer is multiplied from the left, once for each layer.",
        "A layer with a residual is a mean of two matrices: the weights, and the identity.",
    ),
)


# ---- pool_tokens ----
def _pool_tokens_cases(draw: Draw) -> list[Case]:
    cases = []
    for batch, length, d, side, dtype in (
        (3, 6, 4, "right", torch.float32),
        (2, 7, 3, "left", torch.float32),
        (4, 5, 6, "both", torch.float32),
        (2, 4, 5, "none", torch.float32),
        (3, 8, 2, "right", torch.float64),
    ):
        counts = [2 + (n + draw.integer(0, 1)) % (length - 3) for n in range(batch)]
        place = torch.arange(length)
        starts = {
            "right": lambda n: 0,
            "left": lambda n, length=length: length - n,
            "both": lambda n: 1,
            "none": lambda n: 0,
        }[side]
        if side == "none":
            counts = [length] * batch
        is_token = torch.stack([(place >= starts(n)) & (place < starts(n) + n) for n in counts])
        padding = {
            "none": _("no padding"),
            "both": _("padding on both sides"),
            "left": _("padding on the left"),
            "right": _("padding on the right"),
        }[side]
        what = _("B = {batch}, L = {length}, d = {d}, {padding}, {dtype}").format(
            batch=batch, length=length, d=d, padding=padding, dtype=str(dtype).split(".")[1]
        )
        cases.append(Case((draw.normal(batch, length, d, dtype=dtype) + 1, is_token), what))
    return cases


def _pool_tokens(h, is_token):
    return torch.stack([sentence[real].mean(0) for sentence, real in zip(h, is_token, strict=True)])


def _kept(h, is_token):
    return h * is_token[:, :, None]


POOL_TOKENS = Question(
    name="pool_tokens",
    exercise="01",
    title="The mean over the tokens of each sentence, without its padding.",
    returns="a tensor of shape [B, d], in the dtype of h",
    section=POOLING,
    draw=_pool_tokens_cases,
    reference=_pool_tokens,
    picture="heat",
    wrong=(
        Wrong(
            "padding is averaged, too",
            lambda h, is_token: h.mean(1),
            "All L rows are averaged, padding included. The same sentence then gets another vector as "
            "soon as it stands in a batch with a longer one.",
        ),
        Wrong(
            "divided by L",
            lambda h, is_token: _kept(h, is_token).sum(1) / h.shape[1],
            "The padding adds nothing to the sum, but it is still counted in what you divide by: short "
            "sentences get short vectors.",
        ),
        Wrong(
            "a sum, not a mean",
            lambda h, is_token: _kept(h, is_token).sum(1),
            "This is a sum. It does not care for order either, but it grows with the length of the sentence.",
        ),
        Wrong(
            "one count for the whole batch",
            lambda h, is_token: _kept(h, is_token).sum(1) / is_token.sum(),
            "Every sentence is divided by the number of tokens in the whole batch. Each sentence has a "
            "count of its own.",
        ),
        Wrong(
            "averaged over the batch",
            lambda h, is_token: (_kept(h, is_token).sum((0, 1)) / is_token.sum()).expand(len(h), -1),
            "All sentences get one and the same vector: the mean runs over the batch axis, too.",
        ),
        Wrong(
            "padding is taken to be on the right",
            lambda h, is_token: torch.stack(
                [one[:n].mean(0) for one, n in zip(h, is_token.sum(1).tolist(), strict=True)]
            ),
            "The first n rows are averaged. That is right only if all padding stands on the right; "
            "batches for generation are padded on the left.",
        ),
        Wrong(
            "the padding is pooled",
            lambda h, is_token: _pool_tokens(h, ~is_token),
            "The mask is turned round: what is averaged is the padding. Where there is none, this gives NaN.",
        ),
        Wrong(
            "the largest number instead of the mean",
            lambda h, is_token: h.masked_fill(~is_token[:, :, None], -torch.inf).amax(1),
            "This takes the largest number of each feature. It is invariant to order as well, but it is "
            "not the mean.",
        ),
        Wrong(
            "the largest number, padding included",
            lambda h, is_token: h.amax(1),
            "This takes the largest number of each feature, and padding may win. Take the mean over the "
            "tokens instead.",
        ),
        Wrong(
            "the first row",
            lambda h, is_token: h[:, 0],
            "This reads the first row of each sentence. It depends on which token stands first, and with "
            "padding on the left it is no token at all.",
        ),
        Wrong(
            "the last row",
            lambda h, is_token: h[:, -1],
            "This reads the last row of each sentence. It depends on which token stands last, and with "
            "padding on the right it is no token at all.",
        ),
        Wrong(
            "the first token alone",
            lambda h, is_token: h[torch.arange(len(h)), is_token.int().argmax(1)],
            "Only the first token of each sentence counts; the others could be any. All of them belong to "
            "the mean.",
        ),
        Wrong(
            "one token too few",
            lambda h, is_token: _kept(h, is_token).sum(1) / (is_token.sum(1, keepdim=True) - 1),
            "The sum is divided by one less than the number of tokens.",
        ),
    ),
    variants=(
        Variant(
            "a weighted sum",
            lambda h, is_token: torch.einsum(
                "bld,bl->bd", h, is_token.to(h.dtype) / is_token.sum(1, keepdim=True)
            ),
            "The mask, divided by its row sums, gives the weights of the mean.",
        ),
        Variant(
            "NaN for padding",
            lambda h, is_token: h.masked_fill(~is_token[:, :, None], torch.nan).nanmean(1),
            "A mean that skips NaN is a mean over the tokens, as long as no token is NaN itself.",
        ),
    ),
    hints=(
        "Padding must count neither in the sum nor in the number that you divide by.",
        "The mask is [B, L] and h is [B, L, d]: give the mask one more axis before you multiply.",
        "Each sentence is divided by its own number of tokens, a column of shape [B, 1].",
    ),
)


# ---- causal_attention ----
def _causal_attention_cases(draw: Draw) -> list[Case]:
    start = draw.integer(20, 60)
    order = draw.permutation(5)
    keys_shuffled = torch.cat([order[order != 0], order[order == 0]]) + 11  # the earliest key stands last
    later = torch.arange(5) + start
    settings = (
        (_("a whole text from position 0"), 2, torch.arange(6), torch.arange(6), torch.float32),
        (_("one new token after six cached ones"), 3, torch.tensor([6]), torch.arange(7), torch.float32),
        (
            _("three queries at {first} … {last}, keys from {start}").format(
                first=start + 4, last=start + 6, start=start
            ),
            1,
            torch.arange(start + 4, start + 7),
            torch.arange(start, start + 7),
            torch.float32,
        ),
        (_("keys that are stored out of order"), 2, torch.arange(11, 15), keys_shuffled, torch.float32),
        (_("a whole text in float64"), 2, later, later, torch.float64),
    )
    cases = []
    sizes = (4, 3), (5, 3), (8, 2), (3, 4), (6, 5)
    for (what, heads, q_positions, k_positions, dtype), (d_k, d_v) in zip(settings, sizes, strict=True):
        lq, lk = len(q_positions), len(k_positions)
        q, k, v = (draw.normal(heads, n, d, dtype=dtype) for n, d in ((lq, d_k), (lk, d_k), (lk, d_v)))
        cases.append(Case((q, k, v, q_positions, k_positions), what))
    return cases


def _scores(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


def _causal_attention(q, k, v, q_positions, k_positions):
    future = k_positions.unsqueeze(0) > q_positions.unsqueeze(1)
    return torch.where(future, -torch.inf, _scores(q, k)).softmax(2).matmul(v)


def _before(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def _after(scores, mask):
    return scores.softmax(-1) * mask


def _by_row(diagonal):
    def mask(q_positions, k_positions):
        lq, lk = len(q_positions), len(k_positions)
        return torch.ones(lq, lk, dtype=torch.bool).tril(diagonal(lq, lk))

    return mask


def _by_position(q_positions, k_positions):
    return k_positions <= q_positions[:, None]


def _masked(weights, mask, scores=_scores):
    """Attention with a mask that is made and applied in one of many ways."""
    return lambda q, k, v, q_positions, k_positions: weights(scores(q, k), mask(q_positions, k_positions)) @ v


def _one_query_at_a_time(q, k, v, q_positions, k_positions):
    rows = []
    for n, position in enumerate(q_positions):
        seen = k_positions <= position
        rows.append(_scores(q[:, n : n + 1], k[:, seen]).softmax(-1) @ v[:, seen])
    return torch.cat(rows, dim=1)


CAUSAL_ATTENTION = Question(
    name="causal_attention",
    exercise="01",
    title="Attention in which no query sees a key from its future.",
    returns="a tensor of shape [H, Lq, d_v], in the dtype of v",
    section=MASK,
    draw=_causal_attention_cases,
    reference=_causal_attention,
    picture="heat",
    wrong=(
        Wrong(
            "row numbers, and the mask after the softmax",
            _masked(_after, _by_row(lambda lq, lk: 0)),
            "Both faults are still there. For the first, add up the weights of a row. For the second, "
            "compare the last row of a whole text with the same token asked alone: they should agree.",
        ),
        Wrong(
            "mask after the softmax",
            _masked(_after, _by_position),
            "The right keys are hidden, but too late: the softmax has already given them a share, which "
            "is then thrown away. Add up the weights of a row to see what is missing.",
        ),
        Wrong(
            "row numbers instead of positions",
            _masked(_before, _by_row(lambda lq, lk: 0)),
            "The triangle compares row numbers with column numbers. It is right for a whole text only. A "
            "new token that comes after a cache is row 0, and sees one key.",
        ),
        Wrong(
            "rows counted from the end",
            _masked(_before, _by_row(lambda lq, lk: lk - lq)),
            "The triangle is aligned at the last key. That serves a cache, but it still asks where a key "
            "is stored and not what position it has.",
        ),
        Wrong(
            "a token may not see itself",
            _masked(_before, lambda p, r: r < p[:, None]),
            "A key at the query's own position is hidden. The first token then sees nothing at all, and "
            "its row is NaN.",
        ),
        *[
            Wrong(
                f"a token may not see itself, {how}",
                _masked(weights, lambda p, r: r < p[:, None]),
                "A key at the query's own position is hidden. The first token then has no key left that it "
                "may see, and every row is wrong: a token may see itself.",
            )
            for how, weights in (
                ("with a low number", lambda s, m: s.masked_fill(~m, -1e9).softmax(-1)),
                ("NaN made 0", lambda s, m: _before(s, m).nan_to_num()),
            )
        ],
        Wrong(
            "past and future exchanged",
            _masked(_before, lambda p, r: r >= p[:, None]),
            "The mask is turned round: each token sees itself and its future, and its past is hidden.",
        ),
        Wrong(
            "zero instead of minus infinity",
            _masked(lambda s, mask: (s * mask).softmax(-1), _by_position),
            "Scores of the future are set to 0. A score of 0 is not a weight of 0: the softmax turns it into "
            "exp(0) = 1, often more than a real key gets.",
        ),
        Wrong(
            "no mask",
            _masked(lambda s, mask: s.softmax(-1), _by_position),
            "Every query sees all keys. Change the last token and look at the first output: it moves.",
        ),
        Wrong(
            "True added to the scores",
            _masked(lambda s, mask: (s + mask).softmax(-1), _by_position),
            "The mask is added as it is, as ones and zeros. What is allowed gets a little more weight, and "
            "nothing is hidden.",
        ),
        Wrong(
            "softmax over the queries",
            _masked(lambda s, mask: s.masked_fill(~mask, -torch.inf).softmax(-2).nan_to_num(), _by_position),
            "The softmax runs along the wrong axis: the weights of a query do not add up to 1.",
        ),
        *[
            Wrong(
                f"scores divided by {what}",
                _masked(_before, _by_position, scores=lambda q, k, size=size: q @ k.mT / size(q)),
                "The scores are divided by something else than the square root of the number of channels of "
                "a head.",
            )
            for what, size in (
                ("d", lambda q: q.shape[-1]),
                ("the root of H", lambda q: q.shape[0] ** 0.5),
                ("the root of L", lambda q: q.shape[1] ** 0.5),
            )
        ],
        Wrong(
            "one key too many",
            _masked(_before, lambda p, r: r <= p[:, None] + 1),
            "Each query sees the next position, too. That is the token which it should predict.",
        ),
        Wrong(
            "a number that hides too little",
            _masked(lambda s, mask: s.masked_fill(~mask, -1.0).softmax(-1), _by_position),
            "What is hidden gets a score of −1, which is low but no lower than real scores: it keeps a "
            "share. Only minus infinity gives a weight of 0.",
        ),
        Wrong(
            "scale forgotten",
            _masked(_before, _by_position, scores=lambda q, k: q @ k.mT),
            "The division of the scores has been lost on the way.",
        ),
        Wrong(
            "scaled by the width of the values",
            lambda q, k, v, *places: _masked(
                _before, _by_position, lambda q, k: q @ k.mT / v.shape[-1] ** 0.5
            )(q, k, v, *places),
            "The scores are divided by the root of the width of the values. A product of query and key has "
            "as many terms as *they* are wide.",
        ),
    ),
    variants=(
        Variant(
            "weights made to add up to 1 again",
            _masked(lambda s, mask: _after(s, mask) / _after(s, mask).sum(-1, keepdim=True), _by_position),
            "Cutting after the softmax and dividing by what is left gives the same weights. It can fail for "
            "large scores, where what is left may be 0 in floating point.",
        ),
        Variant("one query at a time", _one_query_at_a_time, "Hiding a key is the same as not having it."),
        Variant(
            "a large negative number",
            _masked(lambda s, mask: (s + (~mask) * -1e9).softmax(-1), _by_position),
            "A score of −1e9 is as good as minus infinity here. In float16 it would be minus infinity.",
        ),
    ),
    hints=(
        "Look at one row of weights for a query with two allowed keys. What do they add up to?",
        "Who may see whom is a comparison of two position tensors, a column and a row. Row numbers play no "
        "part.",
        "What is hidden must be minus infinity before the softmax. A token may see itself.",
    ),
)


# ---- order_errors ----
def _cycle(draw: Draw, length: int) -> torch.Tensor:
    """An order that moves every row, and differs from its own inverse."""
    places = draw.permutation(length)
    order = torch.empty_like(places)
    order[places] = places.roll(1)
    return order


def _order_errors_cases(draw: Draw) -> list[Case]:
    cases = []
    for length, d, what, made, dtype in (
        (5, 3, _("an output that moves along"), lambda old, moved, noise: moved, torch.float32),
        (7, 4, _("an output that does not move"), lambda old, moved, noise: old.clone(), torch.float32),
        (
            4,
            6,
            _("an output that moves along and changes"),
            lambda old, moved, noise: 1.5 * moved + noise,
            torch.float32,
        ),
        (6, 2, _("another output altogether"), lambda old, moved, noise: 4 * noise, torch.float32),
        (
            8,
            3,
            _("an output that moves along, nearly"),
            lambda old, moved, noise: moved + 0.3 * noise,
            torch.float64,
        ),
    ):
        order = _cycle(draw, length)
        output = draw.normal(length, d, dtype=dtype) * draw.number(2, 5)
        noise = draw.normal(length, d, dtype=dtype)
        what = _("L = {length}, d = {d}, {what}").format(length=length, d=d, what=what)
        cases.append(Case((output, made(output, output[order], noise), order), what))
    return cases


def _error(actual, expected):
    return (actual - expected).abs().max().item() / expected.abs().max().item()


def _order_errors(output, shuffled, order):
    return _error(shuffled, output[order]), _error(shuffled, output)


def _both(error, moved=lambda output, order: output[order]):
    return lambda output, shuffled, order: (error(shuffled, moved(output, order)), error(shuffled, output))


ORDER_ERRORS = Question(
    name="order_errors",
    exercise="01",
    title="How far an output is from equivariance, and how far from invariance.",
    returns="two numbers: the equivariance error and the invariance error",
    section=EQUIVARIANT,
    draw=_order_errors_cases,
    reference=_order_errors,
    wrong=(
        Wrong(
            "the two are exchanged",
            lambda output, shuffled, order: _order_errors(output, shuffled, order)[::-1],
            "The numbers are right, their order is not. Equivariant means that the output moves along "
            "with the input; invariant means that it stays.",
        ),
        Wrong(
            "shuffled back the wrong way",
            _both(_error, lambda output, order: output[order.argsort()]),
            "The rows go into the inverse order, or the shuffled output is shuffled once more. For an "
            "exchange of two tokens that is the same; for three tokens that move round it is not.",
        ),
        Wrong(
            "nothing is shuffled back",
            lambda output, shuffled, order: (
                _error(shuffled[order], output[order]),
                _error(shuffled, output),
            ),
            "Both outputs are put into the new order, or neither is: the first number compares row with "
            "row, just as the second does. Only one of the two has to be reordered.",
        ),
        Wrong(
            "columns are reordered",
            lambda output, shuffled, order: (
                _error(shuffled, output[:, order % output.shape[1]]),
                _error(shuffled, output),
            ),
            "The new order is applied to the columns, which are features. Tokens are rows.",
        ),
        Wrong(
            "not relative",
            _both(lambda a, b: (a - b).abs().max().item()),
            "These are the largest differences as they are. Divide by the size of the output; without it, "
            "an output that is ten times as large looks ten times as wrong.",
        ),
        Wrong(
            "relative to the shuffled output",
            _both(lambda a, b: _error(b, a)),
            "You divide by the largest number of the shuffled output. What counts is the size of what it "
            "should be.",
        ),
        Wrong(
            "the mean difference",
            _both(lambda a, b: ((a - b).abs().mean() / b.abs().max()).item()),
            "You take the mean difference. A single wrong row then hardly shows; the largest difference "
            "is asked.",
        ),
        Wrong(
            "the mean difference by the mean size",
            _both(lambda a, b: ((a - b).abs().mean() / b.abs().mean()).item()),
            "You compare means: of the differences and of the sizes. A single wrong row then hardly "
            "shows; the largest difference by the largest size is asked.",
        ),
        Wrong(
            "lengths instead of largest numbers",
            _both(lambda a, b: ((a - b).norm() / b.norm()).item()),
            "You compare the lengths (root of the sum of squares) of difference and output. That is a fair "
            "measure as well, but the notebook's is the largest difference by the largest number.",
        ),
        Wrong(
            "the sign is kept",
            _both(lambda a, b: ((a - b).max() / b.max()).item()),
            "Negative differences are overlooked: the largest number is not the number of the largest size.",
        ),
        Wrong(
            "each number relative to itself",
            _both(lambda a, b: ((a - b) / b).abs().max().item()),
            "Each difference is divided by its own number. A number that happens to lie near 0 then "
            "decides everything.",
        ),
        Wrong(
            "yes or no",
            _both(lambda a, b: float(not torch.allclose(a, b))),
            "This only says whether there is a difference. How large it is should be measured.",
        ),
    ),
    variants=(
        Variant(
            "undo the order",
            lambda output, shuffled, order: (
                _error(shuffled[order.argsort()], output),
                _error(shuffled, output),
            ),
            "Putting the shuffled output back is the same as shuffling the other one.",
        ),
        Variant(
            "one tensor",
            lambda output, shuffled, order: torch.stack(
                [torch.dist(shuffled, each, torch.inf) / each.abs().max() for each in (output[order], output)]
            ),
            "Two numbers in one tensor are fine; torch.dist with p = inf is the largest difference.",
        ),
    ),
    hints=(
        "Equivariant: f(PX) = P f(X). Invariant: f(PX) = f(X). The left side is the same in both.",
        "Write one small function for the relative error of two tensors, and use it twice.",
        "P f(X) means: the rows of the output, taken in the new order. Divide the largest difference by the "
        "largest size in the right-hand side.",
    ),
)


# ---- bag_ceiling ----
def _bag_ceiling_cases(draw: Draw) -> list[Case]:
    many = draw.integer(190, 230)
    sentences, answers = draw.integers(0, 3, many, 3), draw.integers(0, 3, many)  # a 0 spoils products
    return [
        *(
            _bag_ceiling_case(draw, extra, copies, longer)
            for extra, copies, longer in ((0, 1, 0), (2, 1, 1), (5, 2, 0), (3, 3, 2))
        ),
        Case((sentences, answers), _("{n} sentences of 3 words, drawn at random").format(n=many)),
    ]


def _bag_ceiling_case(draw: Draw, extra: int, copies: int, longer: int) -> Case:
    """Bags that only the right way of grouping tells apart; the order within a bag matters, too."""
    a, b, c, d, e, filler = (10 * draw.permutation(6) + draw.integers(4, 6, 6)).tolist()
    w, x, y, z = (draw.permutation(4) + draw.integer(0, 5)).tolist()
    orders = ((c, d, e), (c, e, d), (e, d, c), (d, c, e), (e, c, d), (d, e, c))
    rows = [(orders[n % 6], answer) for n, answer in enumerate((y, x, x, y, x, x, y, x, z))]  # 5 of 9
    orders = ((a, a, b), (a, b, a), (b, a, a))
    rows += [(orders[n % 3], answer) for n, answer in enumerate((y, x, y, y, x, y, y, y, y))]  # 7 of 9
    rows += [((a, b, b), x), ((b, a, b), x), ((b, b, a), x)] * copies  # all; the same set as above
    rows += [((c + 3, d - 3, e), w)]  # all; the same sum as the first bag
    # all; pairs of bags that become the same number when ids are read as digits
    alike = (
        ((1, 1, 213), (1, 12, 13)),
        ((2, 3, 14), (2, 4, 4)),
        ((2, 3, 14), (2, 13, 13)),
        ((2, 3, 114), (2, 4, 14)),
    )
    rows += [(words, answer) for pair in alike for words, answer in zip(pair, (x, z), strict=True)]
    rows += [((100 + n, a, c), (x, y, z)[n % 3]) for n in range(extra)]  # all
    length = 3 + longer
    sentences = torch.tensor([list(words) + [filler] * longer for words, _answer in rows])
    answers = torch.tensor([answer for _words, answer in rows])
    return Case((sentences, answers), _("{n} sentences of {length} words").format(n=len(rows), length=length))


def _grouped(sentences, answers, key):
    groups = defaultdict(list)
    for sentence, answer in zip(sentences.tolist(), answers.tolist(), strict=True):
        groups[key(sentence)].append(answer)
    return list(groups.values())


def _bag(sentence):
    return tuple(sorted(sentence))


def _top(group):
    return max(Counter(group).values())


def _bag_ceiling(sentences, answers):
    return sum(map(_top, _grouped(sentences, answers, _bag))) / len(answers)


def _ceiling_of(key=_bag, right=_top):
    def answer(sentences, answers):
        return sum(right(group) for group in _grouped(sentences, answers, key)) / len(answers)

    return answer


def _mean_over_bags(sentences, answers):
    groups = _grouped(sentences, answers, _bag)
    return sum(_top(group) / len(group) for group in groups) / len(groups)


def _bag_ceiling_torch(sentences, answers):
    _words, bags = sentences.sort(dim=1).values.unique(dim=0, return_inverse=True)
    table = torch.zeros(int(bags.max()) + 1, int(answers.max()) + 1)
    table.index_put_((bags, answers), torch.ones(len(answers)), accumulate=True)
    return table.amax(1).sum() / len(answers)


BAG_CEILING = Question(
    name="bag_ceiling",
    exercise="01",
    title="The best accuracy that a model without order can reach.",
    returns="a number from 0 to 1",
    section=CEILING,
    draw=_bag_ceiling_cases,
    reference=_bag_ceiling,
    bonus=True,
    wrong=(
        Wrong(
            "order is kept",
            _ceiling_of(key=tuple),
            "Sentences are grouped word by word, in their order. A model without order cannot tell the "
            "orders of a bag apart, so they belong in one group.",
        ),
        Wrong(
            "sets instead of bags",
            _ceiling_of(key=frozenset),
            "Repeated words count once. But a model without order still sees how often a word occurs: "
            "“a a b” and “a b b” have different means.",
        ),
        Wrong(
            "words are added up",
            _ceiling_of(key=sum),
            "Sentences are grouped by the sum of their ids. Different words may have the same sum, and "
            "then two bags are taken for one.",
        ),
        Wrong(
            "words are multiplied",
            _ceiling_of(key=math.prod),
            "Sentences are grouped by the product of their ids. Different words may have the same product "
            "(with the id 0 it is always 0), and then two bags are taken for one.",
        ),
        Wrong(
            "one answer for everything",
            lambda sentences, answers: _top(answers.tolist()) / len(answers),
            "This is the share of the most frequent answer over all sentences. A model may look at the "
            "words; it gives each bag an answer of its own.",
        ),
        Wrong(
            "mean over bags",
            _mean_over_bags,
            "Each bag counts the same, however many sentences it has. Accuracy is counted per sentence.",
        ),
        Wrong(
            "drawing from the answers",
            _ceiling_of(right=lambda group: sum(n * n for n in Counter(group).values()) / len(group)),
            "This is what you get from a model that draws its answer at random, each answer as often as it "
            "occurs in the bag. Always giving the most frequent answer does better.",
        ),
        Wrong(
            "guessing among the answers",
            _ceiling_of(right=lambda group: len(group) / len(set(group))),
            "This takes all answers of a bag as equally likely. If one is more frequent, a model can do "
            "better than that.",
        ),
        Wrong(
            "only bags with one answer",
            _ceiling_of(right=lambda group: len(group) if len(set(group)) == 1 else 0),
            "Bags with two answers count as lost. But one of their answers can still be had.",
        ),
        Wrong(
            "the last answer of a bag",
            _ceiling_of(right=lambda group: group.count(group[-1])),
            "Each bag keeps the answer that came last, as a dict does when it is written to again. The "
            "best answer is the most frequent one.",
        ),
        Wrong(
            "the first answer of a bag",
            _ceiling_of(right=lambda group: group.count(group[0])),
            "Each bag keeps the answer that came first. The best answer is the most frequent one.",
        ),
        Wrong(
            "one right sentence per bag",
            _ceiling_of(right=lambda group: 1),
            "Each bag counts for one right sentence. If the most frequent answer occurs three times, three "
            "sentences are right.",
        ),
        Wrong(
            "a count, not a share",
            lambda sentences, answers: sum(map(_top, _grouped(sentences, answers, _bag))),
            "This is the number of sentences that can be right. Accuracy is a share of all sentences.",
        ),
        Wrong(
            "divided by the number of bags",
            lambda sentences, answers: (
                sum(map(_top, groups := _grouped(sentences, answers, _bag))) / len(groups)
            ),
            "The right sentences are divided by the number of bags, so that more than 1 may come out. A "
            "share of the sentences is asked for.",
        ),
    ),
    variants=(
        Variant("unique rows", _bag_ceiling_torch, "Sorted rows and a table of counts give the same."),
        Variant(
            "counters as keys",
            lambda sentences, answers: _ceiling_of(key=lambda words: frozenset(Counter(words).items()))(
                sentences, answers
            ),
            "Words with their counts name a bag as well as sorted words do.",
        ),
    ),
    hints=(
        "A model without order must give one answer to all sentences with the same words. Which answer is "
        "the best for such a group?",
        "Sentences with the same words become equal when each is sorted. Collect the answers of each group.",
        "Per group, count how often its most frequent answer occurs. Add up, and divide by the number of "
        "sentences.",
    ),
)

QUESTIONS = (POOL_TOKENS, CAUSAL_ATTENTION, ORDER_ERRORS, MASK_SHARES, BAG_CEILING)
