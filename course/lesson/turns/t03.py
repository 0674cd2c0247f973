"""The turns of notebook 03: a table in a model, rows compared; of its side quests: untrained rows, a bill."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

from tutorial_lib.language import _

from ...checks.question import Case, Draw, Question, Wrong

BUILD = '03, section "Build: a table in a model"'
XRAY = '03, section "An X-ray of a real table"'
TRAINED = 'deeper/03_tables, section "Rows that nothing has trained"'
COST = 'deeper/03_cost, section "Table, gradient, averages, buffer"'


# ---- Table ----
class Table(torch.nn.Module):
    """A learned table of positions, added to the token vectors."""

    def __init__(self, rows, d):
        super().__init__()
        self.P = torch.nn.Parameter(torch.randn(rows, d))

    def forward(self, x, positions):
        """Token vectors x [B, L, d], each with the row of its position; positions is [L] or [B, L]."""
        return x + F.embedding(positions, self.P)


def used(table: type):
    """What a class of tables does: its trainable numbers, whether they start with std 1, x with the rows.

    Before the last, the table gets numbers that depend on its size alone, so that answers can be compared.
    What raises an IndexError gives that word; what trains anything but rows × d numbers gives no sums.
    """

    @functools.wraps(table, updated=())
    def use(rows, d, x, positions):
        module = table(rows, d)
        numbers = list(module.parameters())
        trained = sum(each.numel() for each in numbers)
        spread = max((each.std().item() for each in numbers), default=0.0)
        if fits := trained == rows * d:
            known = iter(Draw(rows).normal(trained).split([each.numel() for each in numbers]))
            for each in numbers:
                each.data = next(known).view(each.shape)
        try:
            sums = module(x, positions)
        except IndexError:
            sums = "IndexError"
        if sums is None:
            return None
        return {"trained": trained, "std near 1": int(0.5 < spread < 2), "sums": sums if fits else ""}

    return use


def _table_cases(draw: Draw) -> list[Case]:
    rows, start = draw.integer(12, 20), draw.integer(3, 6)

    def case(positions, what):
        L = positions.shape[-1]
        return Case((rows, 6, draw.normal(2, L, 6), positions), what)

    return [
        case(torch.arange(4), _("a text that begins at 0")),
        case(torch.arange(start, start + 5), _("a text that begins at {start}").format(start=start)),
        case(torch.arange(4) + torch.tensor([[0], [start]]), _("two texts, each with its own positions")),
        case(torch.arange(rows - 2, rows + 2), _("a text that runs past the last row")),
        case(torch.arange(-1, 3), _("a text with the position −1")),
    ]


def _start(rows, d):
    return torch.nn.Parameter(torch.randn(rows, d))


def _slip(forward=lambda x, p, P: x + F.embedding(p, P), start=_start):
    class Slip(torch.nn.Module):
        def __init__(self, rows, d):
            super().__init__()
            self.P = start(rows, d)

        def forward(self, x, positions):
            return forward(x, positions, self.P)

    return used(Slip)


TABLE = Question(
    name="Table",
    exercise="03",
    title="A learned table of positions.",
    returns="token vectors [B, L, d] from its forward",
    section=BUILD,
    draw=_table_cases,
    reference=used(Table),
    use=used,
    wrong=(
        Wrong(
            "not trained",
            _slip(start=torch.randn),
            "Your encoding has no parameters: nothing in it will be trained. A plain tensor stays what it "
            "was.",
        ),
        Wrong(
            "another start",
            _slip(start=lambda rows, d: torch.nn.Parameter(0.02 * torch.randn(rows, d))),
            "Your numbers don't start with a standard deviation of 1, as the token vectors do: one of the "
            "two will be lost in the sum.",
        ),
        Wrong(
            "always from row 0",
            _slip(lambda x, p, P: x + P[: x.shape[1]]),
            "Every text gets the rows from 0 on. Look them up by position, not by place in the text.",
        ),
        Wrong(
            "one text for all",
            _slip(lambda x, p, P: x + F.embedding(p.view(-1, p.shape[-1])[0], P)),
            "All texts of a batch get the rows of the first one. With positions [B, L], each has its own.",
        ),
        Wrong(
            "rows from the end",
            _slip(lambda x, p, P: x + P[p]),
            "At position −1 you give the last row. Python counts from the end without a word; the table has "
            "no such row, and should say so.",
        ),
        Wrong(
            "kept inside",
            _slip(lambda x, p, P: x + F.embedding(p.clamp(0, len(P) - 1), P)),
            "A position outside of the table gets the nearest row. Nobody will notice that the row is wrong.",
        ),
        Wrong(
            "begun again",
            _slip(lambda x, p, P: x + F.embedding(p % len(P), P)),
            "A position outside of the table begins again at row 0. Nobody will notice that the row is "
            "wrong.",
        ),
        Wrong(
            "rows without the tokens",
            _slip(lambda x, p, P: F.embedding(p, P).expand_as(x)),
            "These are the right rows, but the tokens have got lost on the way.",
        ),
        Wrong(
            "multiplied",
            _slip(lambda x, p, P: x * F.embedding(p, P)),
            "Token and row are multiplied. The equation adds them.",
        ),
    ),
    hints=(
        "__init__ needs one line: rows × d random numbers, kept in self. Wrapped in torch.nn.Parameter, they "
        "are trained with the model. torch.randn draws with a standard deviation of 1.",
        "forward needs one line: the rows of the positions, added to x. Indexing reads many rows at once, "
        "for positions of any shape; but P[-1] is the last row.",
        "F.embedding(positions, table) looks the rows up, and raises an IndexError where there is none. The "
        "puzzle uses it.",
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
        cases.append(
            Case(
                (sizes * (draw.normal(L, d) + 0.5), r),
                _("{L} rows of {d} numbers, r = {r}").format(L=L, d=d, r=r),
            )
        )
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

QUESTIONS = (TABLE, ALIKE, UNTOUCHED, MEGABYTES)
