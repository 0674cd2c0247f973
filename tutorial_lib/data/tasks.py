"""Small tasks with a known answer, drawn at random, that show what order is good for."""

from __future__ import annotations

from collections import Counter, defaultdict

import torch
from torch import Tensor

ANIMALS = ("cat", "dog", "mouse", "bird", "fish", "horse")
VERBS = ("chases", "sees", "hears", "follows")
WORDS = ANIMALS + VERBS
"""The vocabulary of :func:`order_task`: id n is ``WORDS[n]``; the animals come first."""


def order_sentences() -> tuple[Tensor, Tensor]:
    """All 120 sentences of :func:`order_task`, ids ``[120, 3]``, and their answers ``[120]``."""
    grid = torch.cartesian_prod(
        torch.arange(len(ANIMALS)), torch.arange(len(ANIMALS), len(WORDS)), torch.arange(len(ANIMALS))
    )
    sentences = grid[grid[:, 0] != grid[:, 2]]
    return sentences, sentences[:, 0].clone()


def order_task(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Who does it? Sentences "cat chases dog": ids ``[size, 3]``, label = the first animal ``[size]``.

    The two animals differ. The same three words in reverse have the other animal as their answer.
    """
    draw = torch.rand(size, len(ANIMALS), generator=generator).argsort(1)[:, :2]
    verb = torch.randint(len(ANIMALS), len(WORDS), (size,), generator=generator)
    return torch.stack([draw[:, 0], verb, draw[:, 1]], 1), draw[:, 0].clone()


def set_task(
    size: int,
    generator: torch.Generator,
    *,
    length: int = 8,
    n_values: int = 10,
    ascending: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest number of a list: ids ``[size, length]``, label = the maximum ``[size]``.

    The answer belongs to the *set* and not to its order; ``ascending`` lists tempt a model that
    knows order to read off the last place.
    """
    largest = torch.randint(n_values, (size, 1), generator=generator)
    numbers = (torch.rand(size, length, generator=generator) * (largest + 1)).long()
    numbers[:, :1] = largest
    shuffle = torch.rand(size, length, generator=generator).argsort(1)
    numbers = numbers.gather(1, shuffle)
    return (numbers.sort(1).values if ascending else numbers), largest[:, 0]


def steps_back(
    size: int, generator: torch.Generator, *, k: int = 3, length: int = 16, n_values: int = 16
) -> tuple[Tensor, Tensor]:
    """Repeat the token of k steps ago: ids ``[size, length]``, labels of the same shape.

    The first k labels are −100: there is nothing to repeat yet.
    """
    tokens = torch.randint(n_values, (size, length), generator=generator)
    labels = torch.full_like(tokens, -100)
    labels[:, k:] = tokens[:, : length - k]
    return tokens, labels


def slot_or_back(
    size: int, generator: torch.Generator, *, slot: int = 7, k: int = 2, length: int = 24, n_values: int = 8
) -> tuple[Tensor, Tensor]:
    """Two questions, one of place and one of distance: ids and labels ``[size, length]``.

    Every token has a value and asks a question. Ids below ``n_values`` ask for the value in place
    ``slot``; the others, value + ``n_values``, for the value k steps ago. Labels are values;
    a token that asks for a value from before the start has −100.

    >>> ids, values = slot_or_back(1, torch.Generator().manual_seed(3), slot=0, k=1, length=5, n_values=10)
    >>> ids.tolist(), values.tolist()
    ([[6, 8, 17, 17, 10]], [[6, 6, 8, 7, 7]])
    """
    values = torch.randint(n_values, (size, length), generator=generator)
    back = torch.randint(2, (size, length), generator=generator)
    ago = torch.full_like(values, -100)
    ago[:, k:] = values[:, : length - k]
    return values + n_values * back, torch.where(back == 1, ago, values[:, slot : slot + 1])


def first_token(
    size: int, generator: torch.Generator, *, length: int = 16, n_values: int = 16
) -> tuple[Tensor, Tensor]:
    """Repeat the first token, at every place: ids and labels ``[size, length]``; the first label is −100."""
    tokens = torch.randint(n_values, (size, length), generator=generator)
    labels = tokens[:, :1].repeat(1, length)
    labels[:, 0] = -100
    return tokens, labels


def induction(
    size: int, generator: torch.Generator, *, length: int = 16, n_values: int = 16
) -> tuple[Tensor, Tensor]:
    """What followed when this token last occurred? Ids and labels ``[size, length]``.

    The label of a token that occurs for the first time is −100.

    >>> ids, labels = induction(1, torch.Generator().manual_seed(1), length=7, n_values=4)
    >>> ids.tolist(), labels.tolist()
    ([[1, 3, 0, 0, 3, 1, 3]], [[-100, -100, -100, 0, 0, 3, 1]])
    """
    tokens = torch.randint(n_values, (size, length), generator=generator)
    i = torch.arange(length)
    same = (tokens[:, :, None] == tokens[:, None, :]) & (i < i[:, None])  # [size, now, before]
    last = torch.where(same, i, -1).amax(-1)
    labels = tokens.gather(1, (last + 1).clamp(max=length - 1))
    return tokens, labels.masked_fill(last < 0, -100)


def copying(
    size: int,
    generator: torch.Generator,
    *,
    longest: int = 8,
    shortest: int = 1,
    reverse: bool = False,
    n_values: int = 16,
) -> tuple[Tensor, Tensor]:
    """A list, a sign, and the list again, in which each token is to be predicted.

    Ids and labels ``[size, 2n]``: n values, the sign ``n_values``, the first n − 1 values of the answer.
    The first n labels are −100, the others the answer: the list, or with ``reverse`` the list backwards.
    One n for the whole batch is drawn from ``shortest`` … ``longest``.

    >>> ids, labels = copying(1, torch.Generator().manual_seed(0), longest=3, shortest=3, reverse=True)
    >>> ids.tolist(), labels.tolist()
    ([[15, 5, 0, 16, 0, 5]], [[-100, -100, -100, 0, 5, 15]])
    """
    n = int(torch.randint(shortest, longest + 1, (), generator=generator))
    values = torch.randint(n_values, (size, n), generator=generator)
    answer = values.flip(1) if reverse else values
    sign = torch.full_like(values[:, :1], n_values)
    return torch.cat([values, sign, answer[:, :-1]], 1), torch.cat([torch.full_like(values, -100), answer], 1)


def translation(
    size: int, generator: torch.Generator, *, length: int = 16, n_values: int = 16
) -> tuple[Tensor, Tensor]:
    """Translate into a language where the noun comes before its adjective: ids and labels ``[size, length]``.

    Ids below ``n_values / 2`` are adjectives, the others nouns. An adjective right before a noun swaps
    places with it; every other word stays.

    >>> ids, labels = translation(1, torch.Generator().manual_seed(0), length=8, n_values=4)
    >>> ids.tolist(), labels.tolist()
    ([[0, 3, 1, 0, 3, 3, 3, 3]], [[3, 0, 1, 3, 0, 3, 3, 3]])
    """
    tokens = torch.randint(n_values, (size, length), generator=generator)
    adjective = tokens < n_values / 2
    first = adjective & ~torch.cat([adjective[:, 1:], torch.ones_like(adjective[:, :1])], 1)
    labels = torch.where(first, tokens.roll(-1, 1), tokens)
    return tokens, torch.where(first.roll(1, 1), tokens.roll(1, 1), labels)


def bag_of_words_ceiling(tokens: Tensor, labels: Tensor) -> float:
    """The best accuracy on ``tokens [N, L]`` of any model that sees only *which* words occur.

    Such a model must give all sentences with the same words the same answer, so the best that it
    can do is the most frequent label of each bag.

    >>> sentences = torch.tensor([[0, 6, 1], [1, 6, 0]])    # cat chases dog, dog chases cat
    >>> bag_of_words_ceiling(sentences, sentences[:, 0])
    0.5
    """
    bags: defaultdict[tuple, Counter] = defaultdict(Counter)
    for bag, label in zip(tokens.sort(1).values.tolist(), labels.tolist(), strict=True):
        bags[tuple(bag)][label] += 1
    return sum(max(counts.values()) for counts in bags.values()) / len(labels)
