"""The turns of notebook 01: scores that are shuffled, a model that sees no order, a mask by hand, a bug."""

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
            "nothing moved",
            lambda S, order: S,
            "You hand back the table as it was, so row 0 still belongs to the word that stood first. Another "
            "word stands there now.",
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


# ---- from_memory ----
def from_memory(sentences, answers):
    """Learn the answers [N] to the sentences [N, L] by heart, bag by bag; then answer each sentence.

    Of several answers to one bag, keep the last. Returns the answers [N] of your model.
    """
    memory = {}
    for sentence, answer in zip(sentences, answers, strict=True):
        memory[tuple(sorted(sentence.tolist()))] = answer
    return torch.stack([memory[tuple(sorted(sentence.tolist()))] for sentence in sentences])


def _memory_case(draw: Draw, length: int) -> Case:
    """Bags in several orders, with other answers each; some share a set of words, some a sum."""
    a, b, c, d, *others = (draw.permutation(9) + 1).tolist()
    rows = [(a, b, c), (c, b, a), (b, a, c), (a, a, b), (a, b, a), (a, b, b), (b, b, a), (c, d, a), (d, c, a)]
    rows += [(a + 30, b, c), (a, c, b + 30), (a, b, c)]
    order = _order(draw, len(rows))
    sentences = torch.tensor([[*row, *others[: length - 3]] for row in rows])[order]
    what = _("{n} sentences of {length} words").format(n=len(rows), length=length)
    return Case((sentences, draw.integers(0, 9, len(rows)) + 10 * order), what)


def _memory_cases(draw: Draw) -> list[Case]:
    return [_memory_case(draw, length) for length in (3, 4, 5)]


def _remember(key, keep=lambda old, new: new):
    def answer(sentences, answers):
        memory = {}
        for sentence, said in zip(sentences.tolist(), answers.tolist(), strict=True):
            memory[key(sentence)] = keep(memory.get(key(sentence), said), said)
        return torch.tensor([memory[key(sentence)] for sentence in sentences.tolist()])

    return answer


def _as_it_is_read(sentences, answers):
    memory, said = {}, []
    for sentence, answer in zip(sentences.tolist(), answers.tolist(), strict=True):
        memory[tuple(sorted(sentence))] = answer
        said.append(memory[tuple(sorted(sentence))])
    return torch.tensor(said)


FROM_MEMORY = Question(
    name="from_memory",
    exercise="01",
    title="A model that has learned every answer by heart, and sees no order.",
    returns="a tensor [N], like answers",
    section='01, section "Build: the best model that sees no order"',
    draw=_memory_cases,
    reference=from_memory,
    wrong=(
        Wrong(
            "it sees order",
            _remember(tuple),
            "Your keys keep the order of the words, so your model tells “cat chases dog” from “dog chases "
            "cat”. It is right every time, and it has cheated: both are one bag.",
        ),
        Wrong(
            "sets, not bags",
            _remember(frozenset),
            "A set counts each word once, so “a a b” and “a b b” are one key. A bag knows how often a word "
            "occurs: sort the words instead.",
        ),
        Wrong(
            "sums",
            _remember(sum),
            "You add up the numbers of the words. Other words may have the same sum, and then two bags "
            "become one.",
        ),
        Wrong(
            "the first word",
            _remember(lambda sentence: sentence[0]),
            "Your key is the first word. To know which word is first is to know order, and that is what this "
            "model must not see.",
        ),
        Wrong(
            "the first answer",
            _remember(lambda sentence: tuple(sorted(sentence)), lambda old, new: old),
            "Your model keeps the first answer that it has seen to a bag. It should keep the last: simply "
            "write over the old one.",
        ),
        Wrong(
            "answered too early",
            _as_it_is_read,
            "Every answer comes out as it went in. Your model answers while it is still learning, before a "
            "bag comes back with another answer. Go through all sentences first, then through them again.",
        ),
        Wrong(
            "one answer for all",
            lambda sentences, answers: answers[-1].expand(len(answers)),
            "Every sentence gets the last answer of all. Each bag should have a memory of its own.",
        ),
    ),
    hints=(
        "Two loops: the first one fills a dictionary, the second one reads from it.",
        "The key must be the same for all orders of the same words. What happens to a list when you sort it?",
        "sentence.tolist() is a list of numbers. A list can't be a key, but tuple(sorted(…)) of it can. "
        "torch.stack or torch.tensor makes one tensor of the answers.",
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
            "counts along the features",
            lambda X: X.cumsum(0) / torch.arange(1, len(X) + 1),
            "The counts lie along a row: they divide column 0 by 1, column 1 by 2, and so on, and fit at all "
            "only where there are as many features as words. Each row wants one count: [:, None] makes them "
            "a column.",
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

QUESTIONS = (SHUFFLED_SCORES, FROM_MEMORY, RUNNING_MEAN, REPAIRED)
