"""The turns of notebook 03: rows added and compared, untrained rows, rows between rows, a bill."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ...checks.question import Case, Draw, Question, Wrong

TABLE = '03, section "A table of parameters"'
XRAY = '03, section "An X-ray of a real table"'
TRAINED = '03, section "Which rows get trained?"'
WALL = '03, section "Beyond the wall"'
COST = '03, section "What does a table cost?"'


# ---- add_rows ----
def add_rows(e, P, start):
    """Token vectors e [L, d] plus their rows of the table P; the first token stands at position start."""
    return e + P[start : start + len(e)]


def _add_rows_cases(draw: Draw) -> list[Case]:
    cases = []
    for L, d, start, what in (
        (3, 4, 0, "a text that begins at 0"),
        (5, 3, draw.integer(2, 6), "a text that begins later"),
        (4, 6, draw.integer(7, 11), "another one"),
    ):
        cases.append(
            Case((draw.normal(L, d), draw.normal(16, d), start), f"{what}, {L} tokens, start = {start}")
        )
    return cases


ADD_ROWS = Question(
    name="add_rows",
    exercise="03",
    title="Each token with the row of its position.",
    returns="a tensor [L, d]",
    section=TABLE,
    draw=_add_rows_cases,
    reference=add_rows,
    wrong=(
        Wrong(
            "always from row 0",
            lambda e, P, start: e + P[: len(e)],
            "Every text gets the rows from 0 on, wherever it begins.",
        ),
        Wrong(
            "one row for the whole text",
            lambda e, P, start: e + P[start],
            "All tokens get the row of the first one, so they can't be told apart by their places.",
        ),
        Wrong(
            "counted from one",
            lambda e, P, start: e + P[start + 1 : start + 1 + len(e)],
            "Each token gets the row after its own. The first one stands at start itself.",
        ),
        Wrong(
            "rows without the tokens",
            lambda e, P, start: P[start : start + len(e)],
            "These are the right rows, but the tokens have got lost on the way.",
        ),
        Wrong(
            "multiplied",
            lambda e, P, start: e * P[start : start + len(e)],
            "Token and row are multiplied. The equation adds them.",
        ),
        Wrong(
            "rows for one token only",
            lambda e, P, start: torch.cat([e[:1] + P[start], e[1:]]),
            "Only the first token gets a row. Each of the others needs one, too.",
        ),
    ),
    hints=(
        "A slice of the table has one row for each token. Where does it begin, and where does it end?",
        "The text has len(e) tokens, so its last one stands at start + len(e) - 1. A slice stops before its "
        "second number.",
        "Add e and the rows of P from start up to, but not including, start + len(e).",
    ),
)


# ---- alike ----
def alike(table, r):
    """The mean cosine of all pairs of rows of table [L, d] that stand r places apart, r ≥ 1."""
    return F.cosine_similarity(table[:-r], table[r:], dim=1).mean()


def _alike_cases(draw: Draw) -> list[Case]:
    cases = []
    for L, d, r in ((8, 5, 1), (12, 4, 3), (9, 7, draw.integer(4, 6))):
        sizes = draw.uniform(L, 1, low=0.3, high=3.0)
        cases.append(Case((sizes * (draw.normal(L, d) + 0.5), r), f"{L} rows of {d} numbers, r = {r}"))
    return cases


def _apart(table, r):
    return table[:-r], table[r:]


def _cosines(table, r, dim):
    first, second = _apart(table, r)
    return F.cosine_similarity(first, second, dim=dim)


ALIKE = Question(
    name="alike",
    exercise="03",
    title="How alike rows are that stand r places apart.",
    returns="one number",
    section=XRAY,
    draw=_alike_cases,
    reference=alike,
    wrong=(
        Wrong("neighbours only", lambda table, r: alike(table, 1), "You compare neighbours, whatever r is."),
        Wrong(
            "round the end",
            lambda table, r: F.cosine_similarity(table, table.roll(-r, 0), dim=1).mean(),
            "The last rows are compared with the first ones, as if the table were a ring. Those pairs "
            "stand far apart.",
        ),
        Wrong(
            "along the columns",
            lambda table, r: _cosines(table, r, 0).mean(),
            "Your cosine runs down the columns. One cosine belongs to one pair of rows, so it runs along "
            "the d numbers of a row.",
        ),
        Wrong(
            "dot products",
            lambda table, r: (table[:-r] * table[r:]).sum(1).mean(),
            "These are dot products, which grow with the lengths of the rows. A cosine leaves the lengths "
            "out.",
        ),
        Wrong(
            "first row only",
            lambda table, r: F.cosine_similarity(table[0], table[r], dim=0),
            "That is one pair: row 0 and row r. All pairs of rows that stand r apart count.",
        ),
        Wrong(
            "added up",
            lambda table, r: _cosines(table, r, 1).sum(),
            "The cosines are added up. The mean is wanted, so that it never leaves −1 … 1.",
        ),
        Wrong(
            "one row too far", lambda table, r: alike(table, r + 1), "Your pairs stand r + 1 places apart."
        ),
    ),
    hints=(
        "Write down the pairs for r = 3: rows 0 and 3, rows 1 and 4, and so on. Which rows come "
        "first in these pairs, and which come second?",
        "The first ones are the table without its last r rows, the second ones the table without its first "
        "r.",
        "Give F.cosine_similarity the two, with dim=1, and take the mean.",
    ),
)


# ---- untouched ----
def untouched(before, after):
    """From the lengths of all rows before and after training: True where nothing has trained the row."""
    kept = after / before
    return (kept - kept[-1]).abs() < 1e-5


def _untouched_cases(draw: Draw) -> list[Case]:
    cases = []
    for rows, size, decay in ((12, 1.0, 0.9), (17, 8.0, 0.97), (15, 0.4, 0.8)):
        before = size * draw.uniform(rows, low=0.6, high=1.5, dtype=torch.float64)
        after = before * decay * draw.uniform(rows, low=1.02, high=1.4, dtype=torch.float64)
        order = draw.permutation(rows - 1)
        same, shorter, moved, long = order[:4], order[4:6], order[6], order[7]
        after[same] = decay * before[same]
        after[-1] = decay * before[-1]
        after[shorter] = 0.9 * decay * before[shorter]
        after[moved] = before[moved] - before[-1] * (1 - decay)  # the same loss, of another length
        after[long] = after[-1]
        before[long] = 1.3 * before[-1]
        cases.append(Case((before, after), f"{rows} rows, of which five are untouched"))
    return cases


def _share(before, after):
    return after / before


UNTOUCHED = Question(
    name="untouched",
    exercise="03",
    title="Which rows nothing has trained, from their lengths alone.",
    returns="True or False for each row: a bool tensor [rows]",
    section=TRAINED,
    draw=_untouched_cases,
    reference=untouched,
    wrong=(
        Wrong(
            "same length as before",
            lambda before, after: (after - before).abs() < 1e-5,
            "You look for rows that have kept their length. Weight decay has shortened all of them.",
        ),
        Wrong(
            "as long as the last row",
            lambda before, after: (after - after[-1]).abs() < 1e-5,
            "You look for rows that are as long as the last one. They did not begin with the same length.",
        ),
        Wrong(
            "lost as much as the last row",
            lambda before, after: ((before - after) - (before - after)[-1]).abs() < 1e-5,
            "You compare how much each row has lost. A longer row loses more: weight decay takes the same "
            "share of each.",
        ),
        Wrong(
            "shorter than before",
            lambda before, after: after < before,
            "Every shorter row counts as untouched. Training can shorten a row, too.",
        ),
        Wrong(
            "the trained rows",
            lambda before, after: (_share(before, after) - _share(before, after)[-1]).abs() >= 1e-5,
            "True and False have changed places: these are the rows that were trained.",
        ),
        Wrong(
            "size of the difference forgotten",
            lambda before, after: _share(before, after) - _share(before, after)[-1] < 1e-5,
            "Rows that have kept a smaller share than the last one count, too. The difference may have "
            "either sign.",
        ),
        Wrong(
            "shares",
            lambda before, after: _share(before, after),
            "These are the shares that the rows have kept. Compare each with that of the last row, and "
            "answer True or False.",
        ),
    ),
    hints=(
        "The last row was certainly never reached. What has become of its length?",
        "Weight decay multiplies every row by the same number. So after / before is that number, for each "
        "row that nothing else has moved.",
        "Compare after / before with its last entry. Rounding leaves a small difference: less than 0.00001 "
        "counts as none.",
    ),
)


# ---- between ----
def between(P, p):
    """The vector at position p of the table P [rows, d]; p runs from 0 to rows - 1 and need not be whole."""
    low = int(p)
    high = min(low + 1, len(P) - 1)
    return (1 - (p - low)) * P[low] + (p - low) * P[high]


def _between_cases(draw: Draw) -> list[Case]:
    P = draw.normal(8, 4)
    return [
        Case((P, draw.integer(0, 5) + 0.5), "halfway between two rows"),
        Case((P, draw.integer(1, 5) + 0.25), "a quarter of the way"),
        Case((P, draw.integer(1, 5) + 0.7), "seven tenths of the way"),
        Case((P, float(draw.integer(1, 6))), "a whole position"),
        Case((P, 7.0), "the last row"),
    ]


def _rows(P, p):
    return P[int(p)], P[min(int(p) + 1, len(P) - 1)], p - int(p)


def _mix(f):
    return lambda P, p: f(*_rows(P, p))


BETWEEN = Question(
    name="between",
    exercise="03",
    title="The vector at a position between two rows.",
    returns="a tensor [d]",
    section=WALL,
    draw=_between_cases,
    reference=between,
    wrong=(
        Wrong("row before", lambda P, p: P[int(p)], "That is the row before p. What about the one after it?"),
        Wrong(
            "nearest row",
            lambda P, p: P[min(int(p + 0.5), len(P) - 1)],
            "That is the nearest row, so neighbouring positions become twins.",
        ),
        Wrong(
            "shares exchanged",
            _mix(lambda low, high, share: share * low + (1 - share) * high),
            "The two rows are right, but their shares are exchanged: the nearer row counts more.",
        ),
        Wrong(
            "always halfway",
            _mix(lambda low, high, share: (low + high) / 2),
            "You take the middle of the two rows, wherever p stands between them.",
        ),
        Wrong(
            "a step too many",
            _mix(lambda low, high, share: low + share * high),
            "The whole earlier row is still there when the later one comes in. The two shares add up to 1.",
        ),
        Wrong(
            "difference left out",
            _mix(lambda low, high, share: low + share * (low - high)),
            "You go from the earlier row away from the later one. The sign of the step is wrong.",
        ),
        Wrong(
            "row times position",
            lambda P, p: P[int(p)] * (p - int(p)),
            "You scale one row. The vector lies on the straight line between two rows.",
        ),
    ),
    hints=(
        "At position 2.5 the vector lies halfway between rows 2 and 3, and at 2.25 a quarter of the way.",
        "int(p) is the row before p. p - int(p) says how far p is on its way to the row after it. The last "
        "row has none after it: use the last row itself.",
        "Two shares that add up to 1, each with its row. The share of the later row is p - int(p); its "
        "number is min(int(p) + 1, len(P) - 1).",
    ),
)


# ---- megabytes ----
def megabytes(length, d):
    """Millions of bytes that a table of length × d numbers, 4 bytes each, occupies while it is trained."""
    return 4 * length * d * 4 / 1e6


def _megabytes_cases(draw: Draw) -> list[Case]:
    return [
        Case((512, 768), "512 positions, d = 768"),
        Case((draw.integer(1000, 3000), 1024), "d = 1024"),
        Case((draw.integer(10_000, 90_000), 64), "a long and narrow table"),
    ]


MEGABYTES = Question(
    name="megabytes",
    exercise="03",
    title="What a table occupies while it is trained.",
    returns="a number, in millions of bytes",
    section=COST,
    draw=_megabytes_cases,
    reference=megabytes,
    wrong=(
        Wrong(
            "the table alone",
            lambda length, d: 4 * length * d / 1e6,
            "That is the table itself. In training each of its numbers has three companions.",
        ),
        Wrong(
            "companions alone",
            lambda length, d: 3 * length * d * 4 / 1e6,
            "These are the gradient and the two averages. The table itself is there, too.",
        ),
        Wrong(
            "averages forgotten",
            lambda length, d: 2 * length * d * 4 / 1e6,
            "You count two numbers for each entry. There are the entry, its gradient and two averages.",
        ),
        Wrong(
            "numbers, not bytes",
            lambda length, d: 4 * length * d * 1.0,
            "That counts numbers. Each of them takes 4 bytes, and the answer is in millions of bytes.",
        ),
        Wrong("bytes", lambda length, d: 4 * length * d * 4.0, "These are bytes. Divide by a million."),
        Wrong(
            "one row",
            lambda length, d: 4 * d * 4 / 1e6,
            "That is a single row. The table has one for each position.",
        ),
    ),
    hints=(
        "How many numbers does the table have, and how many companions does each of them have while it "
        "is trained?",
        "Four numbers for each entry: itself, its gradient and two averages. Four bytes for each number.",
        "Multiply all that, and divide by 1e6.",
    ),
)

QUESTIONS = (ADD_ROWS, ALIKE, UNTOUCHED, BETWEEN, MEGABYTES)
