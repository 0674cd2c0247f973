"""The turns of notebook 01: two words change places, and what follows from that."""

from __future__ import annotations

import torch

from tutorial_lib.language import _

from ...checks.question import Case, Draw, Question, Wrong


def _order(draw: Draw, n: int) -> torch.Tensor:
    """An order that moves every row, and differs from its own inverse if n > 2."""
    places = draw.permutation(n)
    order = torch.empty_like(places)
    order[places] = places.roll(1)
    return order


# ---- swap_rows ----
def _swap_rows_cases(draw: Draw) -> list[Case]:
    return [
        Case((draw.normal(n, d), i, j), _("{n} words, rows {i} and {j}").format(n=n, i=i, j=j))
        for n, d, i, j in ((3, 4, 0, 2), (5, 6, 1, 2), (6, 6, 4, 0))
    ]


def swap_rows(X, i, j):
    Y = X.clone()
    Y[i] = X[j]
    Y[j] = X[i]
    return Y


def _in_a_copy(X, i, j):
    Y = X.clone()
    Y[i], Y[j] = Y[j], Y[i]
    return Y


def _in_place(X, i, j):
    X[i], X[j] = X[j], X[i]
    return X


def _swap_columns(X, i, j):
    return swap_rows(X.T, i, j).T


SWAP_ROWS = Question(
    name="swap_rows",
    exercise="01",
    title="The sentence with two of its words in each other's place.",
    returns="a tensor [L, d], like X",
    section='01, section "Attention in three lines"',
    draw=_swap_rows_cases,
    reference=swap_rows,
    picture="heat",
    wrong=(
        Wrong(
            "one row twice",
            _in_a_copy,
            "Rows i and j now hold the same word, and the other word is lost. A row of a tensor is a view: "
            "by the time you read it for the second assignment, the first one has already changed it.",
        ),
        Wrong(
            "one row twice, in the sentence itself",
            _in_place,
            "Two things happen at once. Rows i and j hold the same word, because a row is a view and has "
            "changed before you read it the second time. And the sentence that you were given is gone.",
        ),
        Wrong(
            "columns instead of rows",
            _swap_columns,
            "Two columns have changed places. A column is one feature of all words; a word is a row.",
        ),
        Wrong(
            "everything back to front",
            lambda X, i, j: X.flip(0),
            "The whole sentence runs backwards. With three words that looks right, but with five the "
            "words that nobody mentioned should stay where they are.",
        ),
    ),
    hints=(
        "Only two rows change. What would happen if you read a row after you had written over it?",
        "Make a copy of the sentence, change two rows of the copy, and return it.",
        "Take both new rows from the old sentence X, and write them into the copy.",
    ),
)


# ---- shuffled_scores ----
def _shuffled_scores_cases(draw: Draw) -> list[Case]:
    return [Case((draw.normal(n, n), _order(draw, n)), _("{n} words").format(n=n)) for n in (3, 5, 6)]


def shuffled_scores(S, order):
    return S[order][:, order]


SHUFFLED_SCORES = Question(
    name="shuffled_scores",
    exercise="01",
    title="The scores of a shuffled sentence, made of the old scores alone.",
    returns="a tensor [L, L]",
    section='01, section "Equivariant, not invariant"',
    draw=_shuffled_scores_cases,
    reference=shuffled_scores,
    picture="heat",
    wrong=(
        Wrong(
            "queries only",
            lambda S, order: S[order],
            "You moved the rows, so the queries stand in their new places. The keys belong to the same "
            "words. Have they stayed at home?",
        ),
        Wrong(
            "keys only",
            lambda S, order: S[:, order],
            "You moved the columns, so the keys stand in their new places. The queries belong to the same "
            "words. Have they stayed at home?",
        ),
        Wrong(
            "a diagonal",
            lambda S, order: S[order, order],
            "You get one number for each word: the score of each word with itself. Two index lists side by "
            "side are walked through in step, so PyTorch picks pairs (i, i) and leaves out the rest.",
        ),
        Wrong(
            "the order backwards",
            lambda S, order: S[order.argsort()][:, order.argsort()],
            "Rows and columns both move, but the other way round: this undoes the shuffle. X[order] puts "
            "word order[0] first; your scores should have its row first, too.",
        ),
        Wrong(
            "queries and keys exchanged",
            lambda S, order: S.T[order][:, order],
            "The order is right, but row i now holds what the others ask of word i. A row belongs to the "
            "word that asks.",
        ),
    ),
    hints=(
        "A row of S belongs to a query, a column to a key. The words move, so which of the two move along?",
        "S[order] puts the rows into the new order. Something is still missing.",
        "Index twice, one axis after the other; a colon leaves an axis as it is.",
    ),
)


# ---- running_mean ----
def _running_mean_cases(draw: Draw) -> list[Case]:
    return [
        Case((draw.normal(n, d),), _("{n} words of {d} numbers").format(n=n, d=d))
        for n, d in ((3, 3), (6, 2), (5, 7))
    ]


def running_mean(X):
    count = torch.arange(1, len(X) + 1)
    return X.cumsum(0) / count[:, None]


RUNNING_MEAN = Question(
    name="running_mean",
    exercise="01",
    title="Each word becomes the mean of itself and all words before it.",
    returns="a tensor [L, d], like X",
    section='01, section "The leak, by hand"',
    draw=_running_mean_cases,
    reference=running_mean,
    picture="heat",
    wrong=(
        Wrong(
            "counted from 0",
            lambda X: X.cumsum(0) / torch.arange(len(X))[:, None],
            "The sums are right, but the first word is divided by 0. Row 0 is a mean of one word, row 1 of "
            "two.",
        ),
        Wrong(
            "not divided",
            lambda X: X.cumsum(0),
            "These are running sums. The weights of a softmax add up to 1, so a mean is wanted: each row "
            "has its own number of words.",
        ),
        Wrong(
            "divided by the length",
            lambda X: X.cumsum(0) / len(X),
            "Every row is divided by the length of the sentence. Row 0 sees one word only, so it should "
            "still be that word.",
        ),
        Wrong(
            "no mask",
            lambda X: X.mean(0).expand_as(X),
            "Every row is the mean of the whole sentence. The first word has seen its future: that is an "
            "encoder, without a mask.",
        ),
        Wrong(
            "the future",
            lambda X: X.flip(0).cumsum(0).flip(0) / torch.arange(len(X), 0, -1)[:, None],
            "Each word averages itself and what comes after it. The mask is turned round.",
        ),
        Wrong(
            "without itself",
            lambda X: torch.stack([X[:n].mean(0) for n in range(len(X))]),
            "Each word averages the words before it and leaves itself out. The first one then averages "
            "nothing at all, which gives NaN.",
        ),
        Wrong(
            "over the features",
            lambda X: X.cumsum(1) / torch.arange(1, X.shape[1] + 1),
            "The mean runs along the features of each word. It should run along the words: down the rows.",
        ),
    ),
    hints=(
        "Row 0 stays as it is, row 1 is the mean of two rows, and so on. Running sums come first.",
        "X.cumsum(0) adds up the rows from the top. Divide each of its rows by how many words are in it.",
        "The counts 1, 2, …, L must be a column, [L, 1], to divide the rows and not the features.",
    ),
)


# ---- repaired ----
def _repaired_cases(draw: Draw) -> list[Case]:
    sizes = (3, 5, 2, 8), (4, 4, 3, 6), (2, 6, 5, 9)
    return [
        Case(
            (draw.normal(batch, n, d), draw.normal(most, d)),
            _("{batch} sentences of {n} words").format(batch=batch, n=n),
        )
        for batch, n, d, most in sizes
    ]


def repaired(x, table):
    return x + table[: x.shape[1]]


REPAIRED = Question(
    name="repaired",
    exercise="01",
    title="Each word gets the vector of its place, in every sentence of the batch.",
    returns="a tensor [batch, length, d]",
    section='01, section "Find the bug"',
    draw=_repaired_cases,
    reference=repaired,
    wrong=(
        Wrong(
            "as it was",
            lambda x, table: x + table[: x.shape[0]].unsqueeze(1),
            "This is still the old code. Print what the first sentence gets if x is all zeros: do two of "
            "its words differ?",
        ),
        Wrong(
            "the right axis, the wrong shape",
            lambda x, table: x + table[: x.shape[1]].unsqueeze(1),
            "The table is now cut where it should be, but its rows still lie along the batch: unsqueeze(1) "
            "gives [length, 1, d], and the sentences are [batch, length, d].",
        ),
        Wrong(
            "the right shape, the wrong axis",
            lambda x, table: x + table[: x.shape[0]],
            "The shape of the table is right now, but you take as many rows as there are sentences. You "
            "need one for each word of a sentence.",
        ),
        Wrong(
            "one row for all",
            lambda x, table: x + table[x.shape[1]],
            "This takes a single row of the table, so all words get the same vector. A colon makes it the "
            "rows up to there.",
        ),
    ),
    hints=(
        "Which axis of x counts the words of a sentence?",
        "Broadcasting lines up shapes from the right: [batch, length, d] and [length, d] fit as they are.",
        "Cut the table to the length of a sentence, and leave it two-dimensional.",
    ),
)

QUESTIONS = (SWAP_ROWS, SHUFFLED_SCORES, RUNNING_MEAN, REPAIRED)
