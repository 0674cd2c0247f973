"""Exercise 09: choosing an encoding, and measuring what it does."""

from __future__ import annotations

import functools

import numpy as np
import torch

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong

MEASURED = 'deeper/09_stars, section "The whole board"'
BOARD = '09, section "The scoreboard"'
GUIDE = '09, section "A decision guide"'
BUGS = 'deeper/09_museum, section "The bug museum"'


# ---- position_bytes ----
KINDS = ("learned", "rotary", "alibi", "clipped", "t5", "shaw")


def _position_bytes_cases(draw: Draw) -> list[Case]:
    cases = []
    for encoding in KINDS:
        # No two of the numbers are equal, so that none can stand for another.
        kv_heads, layers, k = draw.integer(2, 4), draw.choice([5, 7, 11, 13]), draw.integer(17, 31)
        heads = kv_heads * draw.integer(2, 3)
        dim, length = heads * draw.choice([16, 32]), 2 * draw.integer(50, 200) + 1
        bytes_each = draw.choice([n for n in (2, 4, 8) if n not in (kv_heads, heads)])
        args = (encoding, length, dim, heads, kv_heads, layers, k, bytes_each)
        cases.append(
            Case(
                args,
                _("{encoding}, {length} tokens, d = {dim}, {heads} heads").format(
                    encoding=encoding, length=length, dim=dim, heads=heads
                ),
            )
        )
    return cases


def _count(
    encoding,
    length,
    dim,
    heads,
    kv_heads,
    layers,
    k,
    bytes_each,
    *,
    learned_layers=False,
    slopes=0,
    offsets=1,
    bias_layers=True,
    t5_layers=False,
    shaw_sides=2,
    shaw_heads=False,
    formed_layers=False,
    formed_heads=True,
    formed_shaw_heads=False,
    key_value=2,
    cache_layers=True,
    cache_heads=False,
    cache_wide=False,
    in_bytes=True,
    square=True,
    causal=False,
    formed_by_kv=False,
    rope_stored=False,
    rope_formed=False,
    learned_formed=False,
    t5_heads=True,
    order=1,
):
    """Right as it is; each option turns one thing into a mistake."""
    head_dim = dim // heads
    tables = layers if bias_layers else 1
    stored = {
        "learned": length * dim * (layers if learned_layers else 1),
        "rotary": head_dim // 2 * rope_stored,
        "alibi": slopes * heads,
        "clipped": (2 * k + offsets) * heads * tables,
        "t5": k * (heads if t5_heads else 1) * (layers if t5_layers else 1),
        "shaw": shaw_sides * (2 * k + offsets) * head_dim * tables * (heads if shaw_heads else 1),
    }[encoding]
    pairs = length * (length + 1) // 2 if causal else length * (length if square else 1)
    bias = pairs * ((kv_heads if formed_by_kv else heads) if formed_heads else 1)
    vectors = shaw_sides * pairs * head_dim * (heads if formed_shaw_heads else 1)
    formed = {
        "learned": length * dim * learned_formed,
        "rotary": length * head_dim * rope_formed,
        "shaw": vectors,
    }.get(encoding, bias)
    formed *= layers if formed_layers else 1
    cache = key_value * length * (heads if cache_heads else kv_heads) * (dim if cache_wide else head_dim)
    cache *= layers if cache_layers else 1
    return tuple(number * (bytes_each if in_bytes else 1) for number in (stored, formed, cache))[::order]


def _position_bytes(encoding, length, dim, heads, kv_heads, layers, k, bytes_each):
    return _count(encoding, length, dim, heads, kv_heads, layers, k, bytes_each)


def _counting(**options):
    return lambda *args: _count(*args, **options)


def _by_building(encoding, length, dim, heads, kv_heads, layers, k, bytes_each):
    """Make meta tensors of the shapes, and count their numbers."""

    def size(*shape):
        return torch.empty(shape, device="meta").numel() * bytes_each

    head_dim = dim // heads
    stored = {
        "learned": lambda: size(length, dim),
        "clipped": lambda: size(layers, 2 * k + 1, heads),
        "t5": lambda: size(k, heads),
        "shaw": lambda: size(layers, 2, 2 * k + 1, head_dim),
    }
    formed = {"learned": lambda: 0, "rotary": lambda: 0, "shaw": lambda: size(2, length, length, head_dim)}
    return (
        stored.get(encoding, lambda: 0)(),
        formed.get(encoding, lambda: size(heads, length, length))(),
        size(layers, 2, kv_heads, length, head_dim),
    )


POSITION_BYTES = Question(
    name="position_bytes",
    exercise="09",
    title="What an encoding costs: bytes stored, bytes formed for all pairs, bytes of the cache.",
    returns="three whole numbers of bytes: (stored, formed, cache)",
    section=BOARD,
    draw=_position_bytes_cases,
    reference=_position_bytes,
    tolerance=(1e-12, 0.0),
    wrong=(
        Wrong(
            "the cache holds one tensor",
            _counting(key_value=1),
            "The cache is half as large as it should be. Each token leaves two vectors behind in each "
            "layer: one is compared with later queries, the other is what they read.",
        ),
        Wrong(
            "a cache for every query head",
            _counting(cache_heads=True),
            "The cache has a vector for each *query* head. With grouped heads, several queries share one "
            "head of keys and values, and only those are kept.",
        ),
        Wrong(
            "the cache of one layer",
            _counting(cache_layers=False),
            "This is the cache of a single layer. Every layer has keys and values of its own.",
        ),
        Wrong(
            "each head of keys as wide as a token",
            _counting(cache_wide=True),
            "The cache is as many times too large as there are query heads. A head of keys or values is d / H"
            " wide, not d.",
        ),
        Wrong(
            "the lines in reverse order",
            _counting(order=-1),
            "The three lines come in reverse order. First stored, then formed, then the cache.",
        ),
        Wrong(
            "RoPE's angles stored",
            _counting(rope_stored=True),
            "You count RoPE's frequencies as stored. They are worked out from the base; nothing is trained, "
            "and no checkpoint needs them.",
        ),
        Wrong(
            "RoPE's turns formed",
            _counting(rope_formed=True),
            "You count RoPE's sines and cosines under *formed*. That line is for what is written down for "
            "all pairs of a query and a key; RoPE turns each token once, and forms nothing for pairs.",
        ),
        Wrong(
            "half of the pairs",
            _counting(causal=True),
            "You count only the pairs that a causal mask leaves. The line asks for a matrix of all L² pairs: "
            "the hidden ones take memory, too.",
        ),
        Wrong(
            "a bias for each head of keys",
            _counting(formed_by_kv=True),
            "You count a bias for each head of *keys*. Queries that share a head of keys still have scores, "
            "and so a bias, of their own.",
        ),
        Wrong(
            "T5's buckets without heads",
            _counting(t5_heads=False),
            "T5's table has one number for each bucket here. In each bucket, each head has a number of its "
            "own.",
        ),
        Wrong(
            "offset 0 forgotten",
            _counting(offsets=0),
            "A clipped table has an entry too few. Offsets run from −k to k; a token that looks at itself "
            "has an offset, too.",
        ),
        Wrong(
            "an offset too many",
            _counting(offsets=2),
            "A clipped table has an entry too many. Count the offsets from −k to k for a small k: what lies "
            "beyond shares the outermost ones.",
        ),
        Wrong(
            "T5's table in each layer",
            _counting(t5_layers=True),
            "T5's table is counted once per layer. All layers of T5 share one.",
        ),
        Wrong(
            "one table for all layers",
            _counting(bias_layers=False),
            "Clipped biases and Shaw's vectors are counted once for the whole model. Here each layer "
            "learns its own; only T5's layers share.",
        ),
        Wrong(
            "a learned table in each layer",
            _counting(learned_layers=True),
            "The learned table is counted once per layer. It is added to the embeddings, before the first "
            "layer, and never again.",
        ),
        Wrong(
            "ALiBi's slopes are trained",
            _counting(slopes=1),
            "You count a trained number per head for ALiBi. Its slopes are fixed: they follow from the "
            "number of heads.",
            '07, section "Why are the slopes fixed?"',
        ),
        Wrong(
            "Shaw's vectors on the keys alone",
            _counting(shaw_sides=1),
            "You count one table of Shaw's vectors per layer. Position enters there twice: where queries "
            "meet keys, and where values are summed.",
        ),
        Wrong(
            "Shaw's vectors for each head",
            _counting(shaw_heads=True, formed_shaw_heads=True),
            "Shaw's vectors are counted for each head. The heads of a layer share them, as the question "
            "says: a vector has d_h numbers, not d.",
        ),
        Wrong(
            "one bias for all heads",
            _counting(formed_heads=False),
            "The bias that is formed has one matrix. Each head has a bias of its own: its own slope, or "
            "its own column of the table.",
        ),
        Wrong(
            "a bias for each offset, not for each pair",
            _counting(square=False),
            "You count one entry for each token where the term of *all pairs* is asked for: every query "
            "meets every key.",
        ),
        Wrong(
            "formed in all layers at once",
            _counting(formed_layers=True),
            "What is formed is counted for all layers. The question asks what *one* layer forms; when it "
            "is done, the memory is free for the next.",
        ),
        Wrong(
            "numbers, not bytes",
            _counting(in_bytes=False),
            "These are numbers, not bytes: how many bytes each number takes is the last argument.",
        ),
        Wrong(
            "a learned table formed",
            _counting(learned_formed=True),
            "You count the L vectors of a learned table as formed. They are added to the embeddings; no "
            "layer forms anything for pairs.",
        ),
    ),
    variants=(
        Variant("shapes of tensors", _by_building, "Counting tensors without memory is exact."),
        Variant(
            "a list of floats",
            lambda *args: [float(n) for n in _count(*args)],
            "A list of floats holds the same numbers.",
        ),
    ),
    hints=(
        "Write down the shape of each tensor first: one axis for each thing that has its own numbers.",
        "Three parts: look up how many numbers are trained, then the shape of what is added for all pairs in "
        "one layer, then the shape of keys and values of all layers. Multiply by the bytes at the end.",
        "A clipped table has one row for each of the offsets −k, …, 0, …, k. What is a bias has an axis for "
        "heads; what is a vector has an axis of d / heads numbers.",
    ),
)


# ---- packed_positions ----
def _row(draw: Draw, length: int, count: int, left: int = 0, right: int = 0) -> torch.Tensor:
    """``count`` documents of two tokens or more, with padding (−1) at the ends."""
    inside = length - left - right
    extra = draw.integers(0, count - 1, inside - 2 * count).tolist()
    sizes = [2 + extra.count(n) for n in range(count)]
    documents = torch.arange(count).repeat_interleave(torch.tensor(sizes))
    return torch.cat([torch.full((left,), -1), documents, torch.full((right,), -1)])


def _packed_positions_cases(draw: Draw) -> list[Case]:
    two, many, late, end = (draw.integer(*span) for span in ((6, 9), (14, 17), (10, 13), (11, 13)))
    return [
        Case((_row(draw, two, 2)[None],), _("one row of two documents")),
        Case(
            (torch.stack([_row(draw, many, n) for n in (3, 4, 5)]),), _("three rows of 3, 4 and 5 documents")
        ),
        Case(
            (torch.stack([_row(draw, late, 1, left=n) for n in (4, 0, 2)]),),
            _("rows of one document with padding at the left"),
        ),
        Case(
            (torch.stack([_row(draw, end, n, left, right) for n, left, right in ((2, 0, 3), (3, 2, 2))]),),
            _("two rows with padding at both ends"),
        ),
    ]


def _starts(documents, border_of=lambda d: d, total="cummax"):
    index = torch.arange(documents.shape[1])
    border = torch.ones_like(documents, dtype=torch.bool)
    seen = border_of(documents)
    border[:, 1:] = seen[:, 1:] != seen[:, :-1]
    marks = torch.where(border, index, 0)
    return marks.cummax(1).values if total == "cummax" else marks.cumsum(1)


def _packed_positions(documents):
    index = torch.arange(documents.shape[1])
    return torch.where(documents < 0, 0, index - _starts(documents))


def _summed_starts(documents):
    index = torch.arange(documents.shape[1])
    return torch.where(documents < 0, 0, index - _starts(documents, total="cumsum"))


def _borders_of_row_0(documents):
    index = torch.arange(documents.shape[1])
    return torch.where(documents < 0, 0, index - _starts(documents, lambda d: d[:1]))


def _as_given(documents):
    index = torch.arange(documents.shape[1])
    return torch.where(documents < 0, 0, index - _starts(documents, lambda d: d[:1], "cumsum"))


def _changes_its_input(documents):
    positions = _packed_positions(documents)
    documents[documents < 0] = 0
    return positions


def _loop(documents):
    rows = []
    for row in documents.tolist():
        seen: dict[int, int] = {}
        rows.append([])
        for number in row:
            rows[-1].append(0 if number < 0 else seen.get(number, 0))
            seen[number] = seen.get(number, 0) + 1
    return torch.tensor(rows)


PACKED_POSITIONS = Question(
    name="packed_positions",
    exercise="09",
    title="Positions of tokens in rows that hold several documents and padding.",
    returns="an int64 tensor of positions, [B, L]",
    section=BUGS,
    draw=_packed_positions_cases,
    reference=_packed_positions,
    picture="heat",
    wrong=(
        Wrong(
            "as it was given",
            _as_given,
            "Both mistakes are still there. For the first, ask for a row of three documents. For the "
            "second, ask for two rows at once that hold other documents, and for each of them alone.",
        ),
        Wrong(
            "starts are summed up",
            _summed_starts,
            "From the third document of a row on, positions are too small: what is subtracted is the sum "
            "of all starts so far. Only the latest start counts. Two documents do not show it: the first "
            "starts at 0.",
        ),
        Wrong(
            "borders of the first row for all",
            _borders_of_row_0,
            "Every row is cut where row 0 is cut. A batch of one row does not show it.",
        ),
        Wrong(
            "borders of all rows for all",
            lambda documents: torch.where(
                documents < 0,
                0,
                torch.arange(documents.shape[1])
                - torch.where(
                    _starts(documents) == torch.arange(documents.shape[1]),
                    torch.arange(documents.shape[1]),
                    0,
                )
                .amax(0)
                .cummax(0)
                .values,
            ),
            "Every row is cut wherever any row is cut. A batch of one row does not show it.",
        ),
        Wrong(
            "documents not told apart",
            lambda documents: torch.arange(documents.shape[1]).expand_as(documents).clone(),
            "Every token gets its column. A document then reads otherwise when it stands second in its "
            "row, or after padding.",
        ),
        Wrong(
            "padding left out, documents not told apart",
            lambda documents: (
                ((documents >= 0).cumsum(1) - 1).clamp(min=0).where(documents >= 0, torch.tensor(0))
            ),
            "This is the recipe for a batch of one text per row: it counts real tokens. The second "
            "document of a row goes on where the first one stopped.",
        ),
        Wrong(
            "padding counted into its neighbour",
            lambda documents: torch.where(
                documents < 0,
                0,
                torch.arange(documents.shape[1]) - _starts(documents, lambda d: d.clamp(min=0)),
            ),
            "Padding at the left is taken for the beginning of the document with the number 0: the "
            "document then does not begin at position 0.",
        ),
        Wrong(
            "padding is numbered",
            lambda documents: torch.arange(documents.shape[1]) - _starts(documents),
            "Documents are right, but padding is numbered like a document. It is no text: all of its "
            "positions should be 0.",
        ),
        Wrong(
            "padding at −1",
            lambda documents: torch.where(documents < 0, -1, _packed_positions(documents)),
            "Documents are right, but padding gets the position −1. It should be 0: a learned table has no "
            "row −1, or reads its last one.",
        ),
        Wrong(
            "counted from 1",
            lambda documents: torch.where(documents < 0, 0, _packed_positions(documents) + 1),
            "Each document begins at position 1. Position 0 exists: a learned table's row 0 would never "
            "be read by text.",
        ),
        Wrong(
            "the borders, not the positions",
            _starts,
            "These are the columns in which documents begin. A position is the way from there.",
        ),
        Wrong(
            "the input is changed",
            _changes_its_input,
            "The positions are right, but padding is overwritten in `documents` itself. The caller still "
            "needs it, for the mask.",
        ),
        Wrong(
            "places in the row",
            lambda documents: torch.where(documents < 0, 0, torch.arange(documents.shape[1])),
            "These are places in the row: no document but the first begins at 0.",
        ),
        Wrong(
            "counted on from row to row",
            lambda documents: _loop(documents.reshape(1, -1)).view_as(documents),
            "A document goes on counting where the one of the same number in the row before has stopped. "
            "Each row numbers its documents from 0.",
        ),
    ),
    variants=(
        Variant(
            "equal tokens before",
            lambda documents: (
                (documents[:, :, None] == documents[:, None, :]).tril(-1).sum(-1) * (documents >= 0)
            ),
            "Counting earlier tokens of the same document takes L² comparisons, and is right.",
        ),
        Variant("a loop", _loop, "A loop over tokens is slow and right."),
    ),
    hints=(
        "Print the result for one row of three documents, then for a batch of two rows. Where is the first "
        "wrong number?",
        "There are two mistakes. One is in how the columns in which documents begin are carried along a row, "
        "the other in which rows the borders are looked for.",
        "For each token you need the *latest* beginning at or before it. Columns grow: so the latest "
        "beginning is the largest one so far.",
    ),
)


# ---- offset_error ----
def _offset_error_cases(draw: Draw) -> list[Case]:
    cases = []
    for dtype, more, what in (
        (torch.float32, 3, _("more keys than queries")),
        (torch.float64, 0, _("as many keys as queries")),
        (torch.float32, -2, _("fewer keys than queries")),
    ):
        queries = draw.integer(6, 9)
        keys = queries + more
        offset = torch.arange(keys) - torch.arange(queries)[:, None]
        row = draw.normal(queries, 1, dtype=dtype)
        line = draw.normal(queries + keys, dtype=dtype)
        heads = [
            row.expand(-1, keys),  # softmax cancels this
            line[offset + queries] + 3 * row,  # a bias of the offset, and something of the query alone
            draw.normal(queries, keys, dtype=dtype),
            draw.normal(1, keys, dtype=dtype) + line[offset + queries] / 2,  # the key's own place
            -draw.choice([0.25, 0.5]) * offset + row,  # all steps are equal
        ]
        heads = heads[: 5 if more else 4]
        order = draw.permutation(len(heads)).tolist()
        cases.append(
            Case(
                (torch.stack([heads[n] for n in order]).to(dtype),),
                _("{what}, {queries} × {keys}, {dtype}").format(
                    what=what, queries=queries, keys=keys, dtype=str(dtype).removeprefix("torch.")
                ),
            )
        )
    return cases


def _by_offset(step, kept=lambda offset: True, sign=-1, pooled=False, weight=True):
    """``(left, total)`` of each head: squared steps that the offset does not explain, and all of them."""
    queries, keys = step.shape[-2:]
    offset = torch.arange(keys) + sign * torch.arange(queries)[:, None]
    left = torch.zeros(len(step), dtype=step.dtype)
    for n in offset.unique().tolist():
        here = step[:, offset == n]
        mean = here.mean() if pooled else here.mean(-1, keepdim=True)
        squares = (here - mean).square()
        if kept(n):
            left = left + (squares.sum(-1) if weight else squares.mean(-1))
    return left, step.square().sum((-2, -1))


def _share(left, total):
    return torch.where(total > 0, left / total.where(total > 0, torch.ones_like(total)), 0 * left)


def _offset_error(scores):
    return _share(*_by_offset(scores.diff(dim=-1)))


def _pooled(scores):
    left, total = _by_offset(scores.diff(dim=-1), pooled=True)
    return _share(left, total)


def _all_in_one(scores):
    left, total = _by_offset(scores.diff(dim=-1))
    return (left.sum() / total.sum()).expand(len(scores)).clone()


def _of_variance(scores):
    step = scores.diff(dim=-1)
    left, _right = _by_offset(step)
    total = (step - step.mean((-2, -1), keepdim=True)).square().sum((-2, -1))
    return _share(left, total.where(total > 1e-9 * step.square().sum((-2, -1)), torch.zeros_like(total)))


def _odd(steps=lambda s: s.diff(dim=-1), group=lambda i, j: j - i, centre="mean", power=2):
    """Right as it is; each option turns one thing into a mistake."""

    def answer(scores):
        step = steps(scores)
        where = group(torch.arange(step.shape[-2])[:, None], torch.arange(step.shape[-1]))
        left = torch.empty_like(step)
        for n in where.unique():
            here = step[:, where == n]
            middle = here.mean(1, keepdim=True) if centre == "mean" else here.median(1, keepdim=True).values
            left[:, where == n] = here - middle
        return _share(left.abs().pow(power).sum((1, 2)), step.abs().pow(power).sum((1, 2)))

    return answer


def _diagonals(scores):
    step = scores.diff(dim=-1)
    left = torch.zeros(len(scores), dtype=scores.dtype)
    for offset in range(-scores.shape[-2] + 1, step.shape[-1]):
        line = step.diagonal(offset, -2, -1)
        left += line.var(-1, correction=0) * line.shape[-1]
    total = step.pow(2).sum((-2, -1))
    return left / total.clamp(min=torch.finfo(scores.dtype).tiny)


def _in_numpy(scores):
    step = np.diff(scores.double().numpy(), axis=-1)
    found = []
    for head in step:
        means = np.zeros_like(head)
        for n in range(-head.shape[0] + 1, head.shape[1]):
            rows, columns = np.nonzero(
                np.subtract.outer(np.arange(head.shape[1]), np.arange(head.shape[0])).T == n
            )
            means[rows, columns] = head[rows, columns].mean()
        total = (head**2).sum()
        found.append(((head - means) ** 2).sum() / total if total else 0.0)
    return np.array(found)


OFFSET_ERROR = Question(
    name="offset_error",
    exercise="09",
    title="The share of the scores' steps from key to key that the offset does not explain.",
    returns="a tensor [H] of the dtype of the scores, numbers from 0 to 1",
    section=MEASURED,
    draw=_offset_error_cases,
    reference=_offset_error,
    picture="lines",
    axes=("head", "share not explained"),
    wrong=(
        Wrong(
            "what a query adds to all keys counts",
            lambda scores: _share(*_by_offset(scores)),
            "You measure the scores themselves, not their steps from key to key. A head whose rows are "
            "constant then looks absolute, although a softmax makes nothing of it.",
        ),
        Wrong(
            "row means taken off instead of steps",
            lambda scores: _share(*_by_offset(scores - scores.mean(-1, keepdim=True))),
            "Taking off each row's mean destroys what you want to see: the window of offsets moves from "
            "row to row, so its mean moves, too, and a pure function of the offset is none any more.",
        ),
        Wrong(
            "steps from query to query",
            lambda scores: _share(*_by_offset(scores.diff(dim=-2))),
            "These are the steps from one query to the next, down the columns. A softmax runs over the "
            "keys, so what a query adds to its whole row must drop out.",
        ),
        Wrong(
            "the other diagonals",
            lambda scores: _share(*_by_offset(scores.diff(dim=-1), sign=1)),
            "You group by j + i. Along those diagonals the offset changes by two from entry to entry.",
        ),
        Wrong(
            "one mean for all heads",
            _pooled,
            "The mean of an offset is taken over all heads at once. Each head may have another function of "
            "the offset: that is no error.",
        ),
        Wrong(
            "one number for all heads",
            _all_in_one,
            "All heads get the same number. A model may have relative and other heads side by side.",
        ),
        Wrong(
            "0 / 0 without position",
            lambda scores: (lambda left, total: left / total)(*_by_offset(scores.diff(dim=-1))),
            "A head without any steps gives NaN, because you divide 0 by 0. Return 0 there.",
        ),
        Wrong(
            "root of the share",
            lambda scores: _share(*_by_offset(scores.diff(dim=-1))).sqrt(),
            "This is the square root of the share: the two sums are of *squared* steps, and stay so.",
        ),
        Wrong(
            "what is explained",
            lambda scores: 1 - _share(*_by_offset(scores.diff(dim=-1))),
            "This is the share that the offset *does* explain: a relative head gets 1.",
        ),
        *[
            Wrong(
                f"what is explained, {how} without position",
                lambda scores, empty=empty: torch.where(
                    _by_offset(scores.diff(dim=-1))[1] > 0,
                    1 - _share(*_by_offset(scores.diff(dim=-1))),
                    empty,
                ),
                f"This is the share that the offset *does* explain: a relative head gets 1. (And a head "
                f"without steps gets {how}, because its share is 0 divided by 0.)",
            )
            for how, empty in (("0", 0.0), ("NaN", torch.nan))
        ],
        Wrong(
            "share of the variance",
            _of_variance,
            "You divide by the spread of the steps about their mean. A bias that falls by the same amount "
            "from key to key has no such spread; the question divides by the sum of all squared steps.",
        ),
        Wrong(
            "each offset counts the same",
            lambda scores: _share(
                _by_offset(scores.diff(dim=-1), weight=False)[0], _by_offset(scores.diff(dim=-1))[1]
            ),
            "Each offset gives its mean square, however many pairs have it. Then long and short diagonals "
            "count alike above the line, but not below it.",
        ),
        Wrong(
            "offsets of one side only",
            lambda scores: _share(*_by_offset(scores.diff(dim=-1), kept=lambda n: n <= 0)),
            "Above the line, only keys up to the query's own place are counted; below it, all of them. No "
            "mask hides the rest here.",
        ),
        Wrong(
            "not squared",
            _odd(power=1),
            "You add up absolute values, above the line and below. Both sums are of *squares*, so that one "
            "large step weighs more than many small ones.",
        ),
        Wrong(
            "about the median",
            _odd(centre="median"),
            "You take the median off on each diagonal. m is the mean of the steps there.",
        ),
        Wrong(
            "differences of differences",
            _odd(steps=lambda s: s.diff(n=2, dim=-1)),
            "You take differences of the steps. One difference from key to key already drops what a query "
            "adds to its row; a second one drops a steady fall, too, which is what ALiBi does.",
        ),
        Wrong(
            "grouped by the key",
            _odd(group=lambda i, j: j + 0 * i),
            "Steps are grouped by their key, so what is left is where queries differ at the same *place*. An "
            "offset is the same along a diagonal.",
        ),
        Wrong(
            "grouped by the query",
            _odd(group=lambda i, j: i + 0 * j),
            "Steps are grouped by their query: one mean for each row. An offset is the same along a "
            "diagonal.",
        ),
        Wrong(
            "both sides in one",
            _odd(group=lambda i, j: (j - i).abs()),
            "Offsets of opposite signs share a mean: three places before and three after count as one. "
            "A bias may differ on the two sides, and is a function of the offset all the same.",
        ),
        Wrong(
            "steps in a circle",
            _odd(steps=lambda s: s.roll(-1, -1) - s),
            "Each row has a step too many: from the last key back to the first. Between Lk keys there are "
            "Lk − 1 steps.",
        ),
        Wrong(
            "weights, not scores",
            _odd(steps=lambda s: s.softmax(-1).diff(dim=-1)),
            "You measure the weights, after the softmax. There a step depends on all other keys of its row, "
            "so even a pure function of the offset leaves something over.",
        ),
        Wrong(
            "keys after the query set to 0",
            _odd(steps=lambda s: s.tril().diff(dim=-1)),
            "Scores of keys after the query are set to 0, which makes steps that no encoding made. No mask "
            "hides anything here: all pairs count.",
        ),
    ),
    variants=(
        Variant("diagonals", _diagonals, "Going along the diagonals finds the same groups."),
        Variant("numpy", _in_numpy, "NumPy in float64 gives the same shares."),
    ),
    hints=(
        "A softmax does not see what is the same for all keys of a query. What do you still have when you "
        "look at the difference of neighbouring keys?",
        "Three steps: steps from key to key, [H, Lq, Lk − 1]; the mean of the steps on each diagonal; the "
        "sum of the squares of what is left over, divided by the sum of all squares.",
        "On a diagonal, j − i is constant. A loop over all of its values with a boolean matrix "
        "`offset == n` picks the entries; both corners belong to it. Mind a head whose steps are all 0.",
    ),
)


# ---- predict_and_train ----
USES = ("5 back", "first token", "induction", "copy")
ENCODINGS = ("none", "sinusoidal", "rotary", "xpos", "shaw", "t5", "alibi")
MISS, LIMIT, WORTH = 10, 0.15, 0.5
"""What a miss costs for each unit; the mean score and the mean accuracy at 64 tokens that are enough."""


def interval_score(low: float, high: float, came_out: float) -> float:
    """Its width, and ten times what it missed by (Gneiting and Raftery 2007, for 80 %), at most 1.

    >>> [round(interval_score(*each), 2) for each in ((0, 1, 0.3), (0.8, 0.9, 0.85), (0.8, 0.9, 0.77))]
    [1.0, 0.1, 0.4]
    """
    return min(1.0, high - low + MISS * max(low - came_out, came_out - high, 0.0))


@functools.lru_cache(maxsize=64)
def _run(use: str, encoding: str, seed: int) -> tuple[float, float]:
    """Train one small model; its accuracy at 16 and at 64 tokens."""
    from ...experiments import sweep, tasks  # only who trains needs these

    with sweep.threads(1):  # the same numbers, however many cores there are
        settings, cell = tasks.EXPERIMENT.presets["exercise"], {"task": use, "encoding": encoding}
        short, long = tasks.measure(settings, cell, seed, torch.device("cpu"))["accuracy"]
    return short, long


def _predict_and_train_cases(draw: Draw) -> list[Case]:
    order = draw.uniform(len(USES)).argsort().tolist()
    return [Case((USES[n],), _("the use {use!r}").format(use=USES[n])) for n in order]


def _report(encoding, short, long) -> dict:
    return {"encoding": encoding, "short": short, "long": long}


def _predict_and_train(use):
    return {
        "5 back": _report("shaw", (0.98, 1.0), (0.95, 1.0)),
        "first token": _report("alibi", (0.98, 1.0), (0.98, 1.0)),
        "induction": _report("shaw", (0.96, 1.0), (0.6, 0.8)),
        "copy": _report("alibi", (0.33, 0.43), (0.1, 0.2)),
    }[use]


def _but(**changes):
    """The model answer, with some of its entries changed by a function."""

    def answer(use):
        report = _predict_and_train(use)
        return report | {key: change(report[key]) for key, change in changes.items()}

    return answer


REPORT_FAULTS = {
    "form": 'The report needs three entries: "encoding", and a pair of numbers each for "short" and "long".',
    "encoding": "There is no such encoding here. The seven names stand in the text above, in small letters.",
    "percent": "Some number is above 1 or below 0. Accuracies are shares: 90 % is 0.9.",
    "order": "An interval is upside down: its lower end comes first.",
}
TRIAL_FAULTS = {
    "one for all": "Four customers get one and the same report. The uses ask for different things, so what "
    "an encoding can do differs, too: ask for each use what the model has to know.",
    "wide": "Your intervals are so wide that they say too little: their width alone costs more than you may "
    "spend. “Somewhere between 0 and 1” is always right, and nobody can plan with it.",
    "short, too high": "You expected more at 16 tokens, the length that was trained. Not every encoding can "
    "say what a use asks for, and what takes several steps is not learned in so short a training.",
    "short, too low": "You expected less at 16 tokens, the length that was trained. There, most encodings "
    "can say what a use asks for.",
    "long, too high": "You expected more at 64 tokens, four times what was trained. What does the encoding "
    "do at distances and places that training never showed?",
    "long, too low": "You expected less at 64 tokens, four times what was trained. Some encodings meet "
    "nothing new there: far places look to them like near ones, or fade.",
    "worth": "You knew what would happen, but your customers want models that work at 64 tokens. Taken "
    "together, the four must be right there in half of the cases.",
}


def _plain_report(report) -> tuple[str, list[list[float]]] | None:
    """Its encoding and two intervals, whatever kinds of numbers they are written in; None if they are not."""

    def number(x):
        x = x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 and not x.is_complex() else x
        return float(x) if isinstance(x, (int, float)) and not isinstance(x, bool) else None

    pairs = [report.get(key) for key in ("short", "long")] if isinstance(report, dict) else []
    if not pairs or not all(
        isinstance(one, list) or isinstance(one, torch.Tensor) and one.ndim for one in pairs
    ):
        return None
    found = [[number(x) for x in pair] for pair in pairs]
    if any(len(pair) != 2 or None in pair for pair in found):
        return None
    name = report.get("encoding")
    return (name if isinstance(name, str) else ""), found


def _report_says(report, case: Case) -> str:
    """What can be seen without a training."""
    plain = _plain_report(report)
    if plain is None:
        fault = "form"
    elif plain[0] not in ENCODINGS:
        fault = "encoding"
    elif not all(0 <= x <= 1 for pair in plain[1] for x in pair):  # NaN is no share, either
        fault = "percent"
    elif any(low > high for low, high in plain[1]):
        fault = "order"
    else:
        return ""
    return _(REPORT_FAULTS[fault])


def _trial(reports: list, cases: list[Case], seed: int) -> tuple[str, list[str]]:
    """Train what was chosen, once for each use, and hold the predictions to it.

    What comes out here is the only evidence; the seeds are none that was recorded.
    """
    plain = {case.args[0]: _plain_report(report) for report, case in zip(reports, cases, strict=True)}
    if len({repr(each) for each in plain.values()}) == 1:
        return _named("one for all"), []
    seeds = Draw(seed).integers(1000, 2**31 - 1, len(USES)).tolist()
    lines, scores, misses, widths, longs = [], [], {}, [], []
    for use, its in zip(USES, seeds, strict=True):
        encoding, (short, long) = plain[use]
        came_out = _run(use, encoding, its)
        for what, (low, high), x in zip(("short", "long"), (short, long), came_out, strict=True):
            widths.append(high - low)
            scores.append(interval_score(low, high, x))
            for how, by in (("too high", low - x), ("too low", x - high)):
                misses[f"{what}, {how}"] = misses.get(f"{what}, {how}", 0.0) + min(1.0, MISS * max(by, 0.0))
        longs.append(came_out[1])
        lines.append(
            _(
                "{use}, {encoding}: at 16 tokens {short[0]:.2f}–{short[1]:.2f}, came out {out[0]:.2f}; "
                "at 64 tokens {long[0]:.2f}–{long[1]:.2f}, came out {out[1]:.2f}."
            ).format(use=use, encoding=encoding, short=short, long=long, out=came_out)
        )
    score, worth = (round(float(np.mean(each)), 2) for each in (scores, longs))  # as it is printed
    lines.append(
        _(
            "Mean score of the eight intervals: {score:.2f} ({limit:.2f} or less passes). Mean accuracy "
            "at 64 tokens: {worth:.2f} ({enough:.2f} or more passes)."
        ).format(score=score, limit=LIMIT, worth=worth, enough=WORTH)
    )
    if np.mean(widths) > LIMIT:
        return _named("wide"), lines
    if score > LIMIT:
        return _named(max(misses, key=lambda each: misses[each])), lines
    return (_named("worth") if worth < WORTH else ""), lines


def _named(fault: str) -> str:
    return next(wrong.name for wrong in PREDICT_AND_TRAIN.wrong if wrong.says == TRIAL_FAULTS[fault])


PREDICT_AND_TRAIN = Question(
    name="predict_and_train",
    exercise="09",
    title="Choose an encoding for a use, and predict what a training will give.",
    returns='a dict with "encoding" and a pair of numbers each for "short" and "long"',
    section=GUIDE,
    draw=_predict_and_train_cases,
    reference=_predict_and_train,
    faults=_report_says,
    trial=_trial,
    wrong=(
        Wrong(
            "a prediction that cannot fail",
            _but(short=lambda x: (0.0, 1.0), long=lambda x: (0.0, 1.0)),
            TRIAL_FAULTS["wide"],
        ),
        Wrong(
            "as good at 64 tokens as at 16",
            _but(long=lambda x: (0.9, 1.0)),
            TRIAL_FAULTS["long, too high"],
        ),
        Wrong("lost at 64 tokens", _but(long=lambda x: (0.0, 0.2)), TRIAL_FAULTS["long, too low"]),
        Wrong("hopeless at 16 tokens", _but(short=lambda x: (0.0, 0.2)), TRIAL_FAULTS["short, too low"]),
        Wrong(
            "every encoding learns every use",
            lambda use: (
                _report("none", (0.98, 1.0), (0.05, 0.13))
                if use == "5 back"
                else _predict_and_train(use) | {"short": (0.98, 1.0)}
            ),
            TRIAL_FAULTS["short, too high"],
        ),
        Wrong(
            "one report for all uses", lambda use: _predict_and_train("5 back"), TRIAL_FAULTS["one for all"]
        ),
        Wrong(
            "three that are lost at 64 tokens",
            lambda use: {
                "5 back": _report("rotary", (0.98, 1.0), (0.04, 0.12)),
                "first token": _report("none", (0.98, 1.0), (0.98, 1.0)),
                "induction": _report("xpos", (0.97, 1.0), (0.05, 0.15)),
                "copy": _report("t5", (0.28, 0.4), (0.05, 0.1)),
            }[use],
            TRIAL_FAULTS["worth"],
        ),
        Wrong("percent", _but(short=lambda x: (100 * x[0], 100 * x[1])), REPORT_FAULTS["percent"]),
        Wrong("upside down", _but(short=lambda x: x[::-1], long=lambda x: x[::-1]), REPORT_FAULTS["order"]),
        Wrong("another name", _but(encoding=lambda x: "RoPE"), REPORT_FAULTS["encoding"]),
        Wrong("one number for an interval", _but(long=lambda x: x[0]), REPORT_FAULTS["form"]),
    ),
    variants=(
        Variant(
            "tensors",
            _but(short=torch.tensor, long=lambda x: [torch.tensor(each) for each in x]),
            "Tensors hold the same numbers.",
        ),
        Variant(
            "one encoding, four predictions",
            lambda use: _report(
                "t5",
                (0.3, 0.46) if use == "copy" else (0.97, 1.0),
                {"5 back": (0.88, 0.96), "first token": (0.98, 1.0), "induction": (0.46, 0.64)}.get(
                    use, (0.05, 0.1)
                ),
            ),
            "One encoding for all uses is a choice, too, as long as its prediction differs with the use.",
        ),
    ),
    hints=(
        "Ask two things of an encoding for each use: can it say what the use asks for at all, and does that "
        "still hold at distances that training never showed?",
        "The scoreboard of the notebook and its picture of the five tasks show larger models; the record "
        '`load("tasks", "exercise")` has models of this size. Two seeds differ: see by how much before you '
        "choose a width.",
        "Be narrow where all seeds agree (0.02 is enough where each of them has 1.00), and spend your width "
        "where they don't. A miss costs ten times what it is off by.",
    ),
)


# ---- which_encoding ----
def _causal(scores: torch.Tensor) -> torch.Tensor:
    return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)


def _rotary_line(draw: Draw, length: int, sign: int) -> torch.Tensor:
    """The score of two equal tokens at each distance: a sum of turned pairs, well away from a line.

    ``sign`` is that of its last step."""
    frequencies = torch.tensor([1.0, 0.4, 0.15], dtype=torch.float64)
    distance = torch.arange(length, dtype=torch.float64)
    while True:
        sizes, phases = draw.normal(3, dtype=torch.float64), 3 * draw.normal(3, dtype=torch.float64)
        line = (2 * sizes * (distance[:, None] * frequencies + phases).cos()).sum(1)
        step = line.diff()
        if step[-1].abs() > 0.1 and step[0].abs() > 0.1 and (step - step[0]).abs().max() > 0.3:
            return line * step[-1].sign() * sign


def _which_encoding_cases(draw: Draw) -> list[Case]:
    cases = []
    for what, said in (
        ("nothing", _("no position")),
        ("alibi", _("ALiBi")),
        ("clipped", _("a clipped bias")),
        ("rotary", _("RoPE")),
        ("key", _("a learned place of the key")),
        ("sinusoids", _("sinusoids")),
        ("query", _("a bias of the query alone")),
        ("m·j", _("ALiBi, written as m·j")),
        ("falling, late", _("a falling line that is clipped late")),
        ("rising, late", _("a rising line that is clipped late")),
        ("clipped at 1", _("a bias clipped at 1")),
        ("alibi, large", _("ALiBi in large numbers")),
        ("rotary, small", _("RoPE in small numbers")),
    ):
        length = draw.integer(9, 13) + 3 * ("late" in what)
        i = torch.arange(length)
        distance = (i[:, None] - i).clamp(min=0)
        content = draw.choice([-1, 1]) * draw.number(1.0, 3.0)
        content = 0.0 if "large" in what else content  # no single score may serve as their size
        slope = draw.choice([0.5, 0.25, 0.125])
        if what == "nothing":
            scores = torch.zeros(length, length, dtype=torch.float64)
        elif what == "query":
            scores = 2 * draw.normal(length, 1, dtype=torch.float64).expand(length, length)
        elif what in ("alibi", "alibi, large"):
            scores = -slope * distance.double()
        elif what == "m·j":
            scores = slope * i.double().expand(length, length)
        elif what == "clipped":
            k = draw.integer(2, length - 3)  # flat at the far end, and nowhere else
            line = torch.cumsum(
                draw.choice([-1, 1])
                * (0.3 + draw.uniform(k + 1, dtype=torch.float64))
                * torch.tensor([(-1) ** n * (n + 1.0) for n in range(k + 1)]),
                0,
            )
            line[1] = line[0]  # a first step of 0 is not "no position"
            scores = line[distance.clamp(max=k)]
        elif what == "clipped at 1":
            scores = draw.choice([-1, 1]) * draw.number(0.5, 2.0) * distance.clamp(max=1).double()
        elif "late" in what:
            scores = slope * distance.clamp(max=draw.integer(8, length - 3)).double()
            scores = scores if "rising" in what else -scores
        elif what in ("rotary", "rotary, small"):
            scores = _rotary_line(draw, length, 1 if "small" in what else -1)[distance]
        elif what == "key":
            places = 2 * draw.normal(1, length, dtype=torch.float64)
            places[:, 1] = places[:, 0]  # one query sees no step, the others do
            scores = places.expand(length, length)
        else:
            angles = i[:, None] * torch.tensor([1.0, 0.2, 0.04])
            vectors = torch.cat([angles.sin(), angles.cos()], 1).double()
            scores = vectors @ draw.normal(6, 6, dtype=torch.float64) @ vectors.T
        # Rounding, as another kernel would do it. Without position there is nothing to round.
        rounding = 2e-6 * draw.normal(length, length, dtype=torch.float64) * (what != "nothing")
        size = 1e4 if "large" in what else 1e-5 if "small" in what else 1.0
        scores = size * (scores + content + rounding)
        cases.append(
            Case((_causal(scores.float()),), _("L = {length}, {what}").format(length=length, what=said))
        )
    return cases


def _steps(scores):
    """Row i: the steps from distance 0 to 1, 1 to 2, …, i − 1 to i."""
    return [scores[i, : i + 1].flip(0).diff() for i in range(1, len(scores))]


def _small(scores):
    return 1e-4 * scores[scores.isfinite()].abs().max()


def _decide(steps, small, *, none=True, relative=True, clipped=True):
    """The questions in their order; each option leaves one out."""
    last = steps[-1]
    if none and all(bool((row.abs() <= small).all()) for row in steps):
        return "none"
    if relative and any(bool(((row - last[: len(row)]).abs() > small).any()) for row in steps):
        return "absolute"
    if bool(((last - last[0]).abs() <= small).all()):
        return "alibi"
    return "clipped" if clipped and bool(last[-1].abs() <= small) else "rotary"


def _which_encoding(scores):
    return _decide(_steps(scores), _small(scores))


def _raw_rows(scores):
    """Compares the scores of rows, not their steps."""
    small, last = _small(scores), scores[-1].flip(0)
    rows = [scores[i, : i + 1].flip(0) for i in range(len(scores))]
    if all(bool(((row - last[0]).abs() <= small).all()) for row in rows):
        return "none"
    if any(bool(((row - last[: len(row)]).abs() > small).any()) for row in rows):
        return "absolute"
    return _which_encoding(scores)


def _mask_as_zero(scores):
    filled = scores.masked_fill(scores.isinf(), 0.0)
    return _decide([filled[i].roll(-i - 1).flip(0).diff() for i in range(len(scores))], _small(scores))


def _proportional(scores):
    """Takes a score for a slope times a distance, and ignores the content."""
    found = _which_encoding(scores)
    ratios = scores[-1, :-1] / torch.arange(len(scores) - 1, 0, -1)
    linear = bool(((ratios - ratios[0]).abs() <= _small(scores)).all())
    return "rotary" if found == "alibi" and not linear else found


def _only_three(scores):
    found = _which_encoding(scores)
    return "rotary" if found in ("alibi", "clipped") else found


def _second_differences(scores):
    lower = torch.ones_like(scores, dtype=torch.bool).tril()
    step = torch.where(lower[:, :-1] & lower[:, 1:], scores.diff(dim=1), torch.nan)
    small = _small(scores).item()
    known = step[~step.isnan()]
    if known.abs().max() <= small:
        return "none"
    for offset in range(-len(scores) + 1, 0):
        line = step.diagonal(offset)
        if line.max() - line.min() > small:
            return "absolute"
    if known.max() - known.min() <= small:
        return "alibi"
    return "clipped" if abs(step[-1, 0]) <= small else "rotary"


def _with_a_table(scores):
    steps, small = _steps(scores.double()), float(_small(scores))
    table = np.full((len(steps), len(steps)), np.nan)
    for n, row in enumerate(steps):
        table[n, : len(row)] = row.numpy()
    spread = np.nanmax(table, axis=0) - np.nanmin(table, axis=0)
    if np.nanmax(np.abs(table)) <= small:
        return "none"
    if spread.max() > small:
        return "absolute"
    if np.ptp(table[-1]) <= small:
        return "alibi"
    return "clipped" if abs(table[-1, -1]) <= small else "rotary"


WHICH_ENCODING = Question(
    name="which_encoding",
    exercise="09",
    title="The encoding that made a matrix of scores.",
    returns='one of the texts "none", "absolute", "alibi", "clipped", "rotary"',
    section=MEASURED,
    bonus=True,
    draw=_which_encoding_cases,
    reference=_which_encoding,
    wrong=(
        Wrong(
            "what a query adds to all keys counts",
            _raw_rows,
            "You compare scores of different queries directly. What a query adds to all of its keys "
            "changes them, and a softmax does not see it: such a matrix holds no position at all, or is "
            "ALiBi in another form.",
            MEASURED,
        ),
        Wrong(
            "equal to the last bit",
            lambda scores: _decide(_steps(scores), 0.0),
            "You ask for numbers that are equal to the last bit. Rounding makes every diagonal vary a "
            "little, so what is relative is named absolute.",
        ),
        *[
            Wrong(
                f"a fixed tolerance of {small:g}",
                lambda scores, small=small: _decide(_steps(scores), small),
                "Your tolerance is a fixed number. Scores of 10,000 are rounded by more than it, and the "
                "steps of scores of 0.0001 are smaller than it. Let it follow the size of the scores.",
            )
            for small in (1e-3, 1e-5, 1e-6)
        ],
        Wrong(
            "no position is taken for ALiBi",
            lambda scores: _decide(_steps(scores), _small(scores), none=False),
            "Scores without position are named ALiBi: their steps are all equal, too. They are all 0.",
        ),
        Wrong(
            "only the last query",
            lambda scores: _decide(_steps(scores), _small(scores), relative=False),
            "Scores that know the place of a key are named as if the distance were all. One query does not "
            "show the difference, not even the last one: compare several queries at the same distance.",
        ),
        Wrong(
            "the clip is not looked for",
            lambda scores: _decide(_steps(scores), _small(scores), clipped=False),
            "A clipped bias is named rotary. Both depend on the distance; what does a clipped one do "
            "beyond its last offset?",
        ),
        Wrong(
            "the mask counts as scores",
            _mask_as_zero,
            "Hidden keys take part: where the mask begins there is a jump in each row that no encoding "
            "made. Only keys up to the query's own place have a score.",
        ),
        Wrong(
            "content taken for slope",
            _proportional,
            "ALiBi is recognised only if a score is a slope times a distance. Each score holds the "
            "content's part, too, which is the same for all keys here.",
        ),
        Wrong(
            "all that is relative is rotary",
            _only_three,
            "Everything that depends on the distance alone is named rotary. ALiBi and a clipped bias do "
            "so, too; look at the shape of the curve over the distance.",
        ),
    ),
    variants=(
        Variant("diagonals", _second_differences, "Going along the diagonals asks the same questions."),
        Variant("a table of steps", _with_a_table, "A table with one column for each distance does it."),
    ),
    hints=(
        "What does a softmax not see? Get rid of it first. Then the question is how what is left depends on "
        "the query, and on the distance.",
        "Take the steps from key to key where both keys are visible. Then ask four questions in this order: "
        "are there any steps? Do they differ between queries at the same distance? Are they all equal? Is "
        "the curve flat at the far end?",
        "Turn each row around, so that its entries count the distance from the query: then rows can be "
        "compared from their beginning on, up to the shorter one's length. Compare with the tolerance of the "
        "question, not with ==.",
    ),
)

QUESTIONS = (POSITION_BYTES, PACKED_POSITIONS, OFFSET_ERROR, PREDICT_AND_TRAIN, WHICH_ENCODING)
