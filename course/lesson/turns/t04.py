"""The turns of notebook 04: the table of offsets, buckets; and of its side quests: a sign mended, clipping,
the places of remembered tokens."""

from __future__ import annotations

import torch

from ...checks.question import Case, Draw, Question, Wrong

OFFSETS = '04, section "From places to offsets"'
SIGN = 'deeper/04_signs, section "Which way round?"'
CLIPPING = 'deeper/04_clipping, section "Beyond the table: clipping"'
BUCKETS = '04, section "Build: an encoding with buckets"'
MEMORY = 'deeper/04_memory, section "Why it needs relative positions"'


# ---- offset_table ----
def offset_table(N):
    """r = j − i for query i (row) and key j (column): a tensor [N, N]."""
    i = torch.arange(N)[:, None]
    j = torch.arange(N)
    return j - i


def _offset_table_cases(draw: Draw) -> list[Case]:
    return [Case((4,), "N = 4"), Case((2,), "N = 2"), Case((draw.integer(5, 12),), "a longer text")]


def _places(N):
    return torch.arange(N)[:, None], torch.arange(N)


def _query_minus_key(N):
    i, j = _places(N)
    return i - j


def _without_sign(N):
    i, j = _places(N)
    return (j - i).abs()


def _counted_from_0(N):
    i, j = _places(N)
    return j - i + N - 1


def _keys_alone(N):
    return torch.arange(N).repeat(N, 1)


def _one_row(N):
    return torch.arange(N)


OFFSET_TABLE = Question(
    name="offset_table",
    exercise="04",
    title="The offset of every pair.",
    returns="a tensor [N, N] of whole numbers",
    section=OFFSETS,
    draw=_offset_table_cases,
    reference=offset_table,
    picture="heat",
    wrong=(
        Wrong(
            "query minus key",
            _query_minus_key,
            "Past and future have changed places: in your table the token before has the offset +1. Key "
            "minus query makes the past negative.",
        ),
        Wrong(
            "sign lost",
            _without_sign,
            "These are distances. They don't say on which side a key stands, so a token before and a token "
            "after look alike.",
        ),
        Wrong(
            "index of a table",
            _counted_from_0,
            "You have added N − 1 already. That makes an index of a table; the offset of a token to itself "
            "is 0.",
        ),
        Wrong(
            "places of the keys",
            _keys_alone,
            "Every row is the same: these are the places of the keys. What does each query subtract?",
        ),
        Wrong(
            "one row",
            _one_row,
            "That is a list of N places. For every pair you need a table with a row for each query.",
        ),
    ),
    hints=(
        "Row i belongs to the query at place i. Going one column to the right, the offset grows by one.",
        "torch.arange(N) are the places. As a column, torch.arange(N)[:, None], they change from row to row.",
        "Subtract a column of query places from a row of key places; PyTorch fills in the rest of the table.",
    ),
)


# ---- mended ----
def mended(table):
    """A table [heads, 2N − 1] that was learned with i − j, in the order that j − i asks for."""
    return table.flip(-1)


def _mended_cases(draw: Draw) -> list[Case]:
    return [
        Case((draw.normal(heads, 2 * N - 1),), f"{heads} heads, N = {N}")
        for heads, N in ((2, 4), (4, 3), (3, draw.integer(5, 9)))
    ]


MENDED = Question(
    name="mended",
    exercise="04",
    title="A table that was learned with the other sign.",
    returns="a tensor [heads, 2N − 1]",
    section=SIGN,
    draw=_mended_cases,
    reference=mended,
    picture="heat",
    wrong=(
        Wrong(
            "numbers negated",
            lambda table: -table,
            "You have changed the sign of the numbers. What was liked would now be avoided; but each "
            "number is right, it only stands at the wrong offset.",
        ),
        Wrong(
            "heads reversed",
            lambda table: table.flip(0),
            "You have put the heads in reverse order. The offsets run along the other axis.",
        ),
        Wrong(
            "both axes reversed",
            lambda table: table.flip(0, 1),
            "The offsets are right, but you have reversed the heads as well.",
        ),
        Wrong(
            "shifted",
            lambda table: table.roll(1, -1),
            "You have pushed the numbers along by one place. The entry of r has to go to that of −r, and "
            "the middle one stays where it is.",
        ),
        Wrong(
            "halves swapped",
            lambda table: table.roll(table.shape[-1] // 2, -1),
            "You have moved the halves as they are, so −1 lands far from +1. And where is offset 0?",
        ),
        Wrong(
            "transposed",
            lambda table: table.T,
            "You have exchanged heads and offsets. The shape should stay what it was.",
        ),
    ),
    hints=(
        "Write the offsets of a small table in a row: −2 −1 0 1 2. Which entry has to move where?",
        "The first entry becomes the last one, as in a mirror: the axis of the offsets is reversed.",
        "Tensors have a method flip, which takes an axis. The last axis has the number −1.",
    ),
)


# ---- place ----
def place(r, k):
    """Where the number of offset r (a tensor) stands in a table that ends at ±k."""
    return r.clamp(-k, k) + k


def _place_cases(draw: Draw) -> list[Case]:
    return [
        Case((torch.arange(-6, 7), 2), "offsets −6 … 6, k = 2"),
        Case((draw.integers(-9, 9, 4, 4), 3), "a table of offsets, k = 3"),
        Case((torch.arange(-3, 4), 8), "a text that is shorter than the table, k = 8"),
        Case((torch.tensor([-500, -1, 0, 1, 500]), draw.integer(4, 16)), "far away on both sides"),
    ]


def _wrapped(r, k):
    return r % (2 * k + 1)


PLACE = Question(
    name="place",
    exercise="04",
    title="Where a clipped offset stands in its table.",
    returns="a tensor of whole numbers from 0 to 2k, of the shape of r",
    section=CLIPPING,
    draw=_place_cases,
    reference=place,
    wrong=(
        Wrong(
            "not counted from 0",
            lambda r, k: r.clamp(-k, k),
            "You have clipped, but the result runs from −k to k. A table is counted from 0, and Python "
            "reads negative numbers from its end.",
        ),
        Wrong(
            "not clipped",
            lambda r, k: r + k,
            "Offsets beyond k leave the table: on the left the index is negative, on the right it is too "
            "large.",
        ),
        Wrong(
            "past cut off",
            lambda r, k: r.clamp(0, k) + k,
            "The past has gone: all negative offsets get the same place. They need k places of their own.",
        ),
        Wrong(
            "sign lost",
            lambda r, k: r.abs().clamp(max=k),
            "You have clipped the distance, so past and future share their numbers.",
        ),
        Wrong(
            "clipped after the shift",
            lambda r, k: (r + k).clamp(-k, k),
            "You have clipped after adding k, so the limits are in the wrong place. What is the largest "
            "index of the table?",
        ),
        Wrong(
            "reverse order",
            lambda r, k: k - r.clamp(-k, k),
            "Your table stands in reverse order: it begins with the far future. The smallest offset, −k, "
            "belongs at place 0.",
        ),
        Wrong(
            "wrapped around",
            _wrapped,
            "With % an offset that leaves the table on one side comes in on the other: the far past would "
            "meet the near future. It should stop at the end.",
        ),
    ),
    hints=(
        "Two steps: bring r into the range −k … k, and then count from 0.",
        "Tensors have a method clamp, which takes the lowest and the highest value.",
        "The smallest offset, −k, has to land on 0. What do you add?",
    ),
)


# ---- bucket ----
def bucket(n):
    """The bucket of a distance n ≥ 0 (a tensor): 0 1 2 3 | 4–7 | 8–15 | 16–31 | all the rest."""
    far = 4 + torch.log2(n.clamp(min=4) / 4).floor().long()
    far = far.clamp(max=7)
    return torch.where(n < 4, n, far)


def _bucket_cases(draw: Draw) -> list[Case]:
    return [
        Case((torch.arange(0, 40),), "distances 0 … 39"),
        Case((torch.tensor([3, 4, 7, 8, 15, 16, 31, 32]),), "the edges of the buckets"),
        Case((draw.integers(33, 5000, 6),), "far away"),
        Case((draw.integers(0, 60, 3, 5),), "a table of distances"),
    ]


def _bucket_of(near=4, first=4, last=7, rounded=torch.floor, start=4):
    def answer(n):
        far = first + rounded(torch.log2(n.clamp(min=1) / start)).long()
        return torch.where(n < near, n, far.clamp(max=last))

    return answer


def _equal_widths(n):
    return torch.where(n < 4, n, (4 + (n - 4) // 4).clamp(max=7))


BUCKET = Question(
    name="bucket",
    exercise="04",
    title="Near distances one by one, far ones together.",
    returns="a tensor of whole numbers from 0 to 7, of the shape of n",
    section=BUCKETS,
    draw=_bucket_cases,
    reference=bucket,
    picture="lines",
    wrong=(
        Wrong(
            "never ends",
            _bucket_of(last=99),
            "Your buckets go on and on. All distances from 32 on belong in the last one, number 7.",
        ),
        Wrong(
            "equal widths",
            _equal_widths,
            "Your buckets are all 4 wide. Each should be twice as wide as the one before.",
        ),
        Wrong(
            "near ones share, too",
            _bucket_of(near=0, start=1, first=0),
            "Near distances should have a bucket each. With the logarithm alone, 2 and 3 share one.",
        ),
        Wrong(
            "rounded to the nearest",
            _bucket_of(rounded=torch.round),
            "You round to the nearest whole number, so a distance of 6 falls into the next bucket. A "
            "bucket begins at its edge and reaches up to the next one.",
        ),
        Wrong(
            "one bucket late",
            _bucket_of(first=5),
            "Bucket 4 stays empty: the distances from 4 to 7 come out as 5. What is log2 of 4 / 4?",
        ),
        Wrong(
            "logarithm of the distance",
            _bucket_of(start=1),
            "You take the logarithm of n itself, so bucket 4, which should follow 3, is skipped. Count the "
            "doublings from 4 on.",
        ),
    ),
    hints=(
        "Treat near and far apart. Near: the distance is its own bucket. Far: how many doublings of 4 fit "
        "into n?",
        "torch.log2(n / 4) counts doublings; floor() rounds down, long() makes whole numbers. "
        "torch.where(condition, a, b) picks one of two.",
        "Far is 4 plus the doublings, at most 7. Use n.clamp(min=4) inside of the logarithm: log2 of 0 is "
        "−infinity.",
    ),
)


# ---- key_places ----
def key_places(start, S, M):
    """The places of M remembered keys and of the S own ones; queries stand at start … start + S − 1."""
    return torch.arange(start - M, start + S)


def _key_places_cases(draw: Draw) -> list[Case]:
    S = draw.integer(3, 6)
    return [
        Case((S, S, S), f"the second segment of {S} tokens, a memory as long"),
        Case((12, 4, 2), "S = 4, a memory of 2, queries from 12 on"),
        Case((16, 8, 12), "a memory that is longer than the segment"),
    ]


KEY_PLACES = Question(
    name="key_places",
    exercise="04",
    title="The places of remembered tokens.",
    returns="a tensor [M + S] of whole numbers",
    section=MEMORY,
    draw=_key_places_cases,
    reference=key_places,
    wrong=(
        Wrong(
            "restarted",
            lambda start, S, M: torch.cat([torch.arange(M) % S, torch.arange(S)]),
            "You count from 0 in each segment. Then two keys have the same place, and a remembered token "
            "may seem to be the query itself.",
        ),
        Wrong(
            "memory after the segment",
            lambda start, S, M: torch.arange(start, start + M + S),
            "You put the memory where the segment begins, so its own tokens seem to lie ahead of their "
            "queries. Remembered tokens are the past.",
        ),
        Wrong(
            "memory from 0 on",
            lambda start, S, M: torch.cat([torch.arange(M), start + torch.arange(S)]),
            "The memory holds the last M tokens, those right before the segment. You have numbered them "
            "from the beginning of the text.",
        ),
        Wrong(
            "memory backwards",
            lambda start, S, M: torch.cat(
                [torch.arange(start - 1, start - 1 - M, -1), start + torch.arange(S)]
            ),
            "You number the memory backwards. It is kept in reading order: the oldest token comes first.",
        ),
        Wrong(
            "own keys forgotten",
            lambda start, S, M: torch.arange(start - M, start),
            "Those are the remembered keys. The segment has keys of its own, and they come after.",
        ),
    ),
    hints=(
        "Nothing needs to be invented: each remembered token has a place in the text, where it was read.",
        "The last remembered token stands right before the segment. Where does the first one stand?",
        "One torch.arange covers both, from the oldest remembered token to the last of the segment.",
    ),
)

QUESTIONS = (OFFSET_TABLE, MENDED, PLACE, BUCKET, KEY_PLACES)
