"""Small tasks with a known answer, drawn at random, that show what order is good for."""

from __future__ import annotations

from collections import Counter, defaultdict

import torch
from torch import Tensor

ANIMALS = ("cat", "dog", "mouse", "bird", "fish", "horse")
VERBS = ("chases", "sees", "hears", "follows")
WORDS = ANIMALS + VERBS
"""The vocabulary of :func:`order_task`: id n is ``WORDS[n]``; the animals come first."""


def order_task(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Who does it? Sentences "cat chases dog": ids ``[size, 3]``, label = the first animal ``[size]``.

    The two animals differ. The same three words in the other order have the other answer.
    """
    draw = torch.rand(size, len(ANIMALS), generator=generator).argsort(1)[:, :2]
    verb = torch.randint(len(ANIMALS), len(WORDS), (size,), generator=generator)
    return torch.stack([draw[:, 0], verb, draw[:, 1]], 1), draw[:, 0].clone()


def set_task(
    size: int, generator: torch.Generator, *, length: int = 8, n_values: int = 10,
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


def bag_of_words_ceiling(tokens: Tensor, labels: Tensor) -> float:
    """The best accuracy on ``tokens [N, L]`` of any model that sees only *which* words occur.

    Such a model must give all sentences with the same words the same answer, so the best that it
    can do is the most frequent label of each bag.

    >>> sentences = torch.tensor([[0, 6, 1], [1, 6, 0]])    # cat chases dog, dog chases cat
    >>> bag_of_words_ceiling(sentences, sentences[:, 0])
    0.5
    """
    bags = defaultdict(Counter)
    for bag, label in zip(tokens.sort(1).values.tolist(), labels.tolist(), strict=True):
        bags[tuple(bag)][label] += 1
    return sum(max(counts.values()) for counts in bags.values()) / len(labels)
