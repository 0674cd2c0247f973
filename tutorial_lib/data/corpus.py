"""A real text as characters: the King James Bible, 4.1 million of them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

import torch
from torch import Tensor

from .sources import SOURCES


@dataclass(frozen=True)
class Corpus:
    """A text as integers, with a train and a held-out part that do not overlap.

    Attributes:
        text: the whole text.
        symbols: the alphabet; id n stands for ``symbols[n]``.
        train, test: ids, int64 ``[N]``; ``test`` is the last tenth of the text.
    """

    text: str
    symbols: str
    train: Tensor
    test: Tensor

    @classmethod
    def of(cls, text: str) -> Corpus:
        """Number the characters of ``text``; needs at least 20 of them."""
        if len(text) < 20:
            raise ValueError(f"a corpus of {len(text)} characters is too short to be split: give more text")
        symbols = "".join(sorted(set(text)))
        number = torch.zeros(ord(symbols[-1]) + 1, dtype=torch.int64)
        number[[ord(symbol) for symbol in symbols]] = torch.arange(len(symbols))
        # all characters at once: one by one, the Bible takes three times as long
        codes = bytearray(text.encode("utf-32-le", "surrogatepass"))
        ids = number[torch.frombuffer(codes, dtype=torch.int32)]
        cut = len(ids) * 9 // 10
        return cls(text, symbols, ids[:cut], ids[cut:])

    def encode(self, text: str) -> Tensor:
        """Ids ``[N]`` of a text; ValueError names a character that the corpus does not have."""
        try:
            return torch.tensor([self.symbols.index(symbol) for symbol in text], dtype=torch.long)
        except ValueError:
            unknown = sorted(set(text) - set(self.symbols))
            raise ValueError(f"the corpus has no {unknown}; it has {self.symbols!r}") from None

    def decode(self, ids: Tensor) -> str:
        """The text of ids ``[N]``."""
        return "".join(self.symbols[n] for n in ids.tolist())

    def batch(self, size: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random training windows and their next characters, both ``[size, length]``."""
        if not 0 < length < len(self.train):
            raise ValueError(f"length={length}: windows have 1 to {len(self.train) - 1} characters")
        start = torch.randint(len(self.train) - length, (size, 1), generator=generator)
        windows = self.train[start + torch.arange(length + 1)]
        return windows[:, :-1], windows[:, 1:]

    def windows(self, count: int, length: int, *, between: bool = False) -> tuple[Tensor, Tensor]:
        """Held-out windows and their next characters, both ``[count, length]``.

        The windows *end* at the same ``count`` places for every length, so that losses at two
        lengths can be compared on the same targets. With ``between`` they end halfway between each of
        these places and the one before. That is text to choose settings on, and it stays separate from
        the text that is reported as long as a window is at most half the distance between two places.
        """
        first = len(self.test) // (count + 1)
        if length + 1 > first:
            raise ValueError(
                f"{count} windows of length {length} need {count + 1} × {length + 1} held-out "
                f"characters, but there are {len(self.test)}: ask for fewer or shorter windows"
            )
        ends = torch.linspace(first, len(self.test), count).long()
        if between:
            if 2 * (length + 1) > first:
                raise ValueError(
                    f"{count} windows of length {length} between others need {count + 1} × 2 × {length + 1} "
                    f"held-out characters, but there are {len(self.test)}: ask for fewer or shorter windows"
                )
            ends = ends - first // 2
        windows = self.test[ends[:, None] - torch.arange(length + 1, 0, -1)]
        return windows[:, :-1], windows[:, 1:]


@functools.cache
def kjv() -> Corpus:
    """The King James Bible, one verse a line: 4.1 million characters, 65 symbols.

    Raises FileNotFoundError, with the command that fixes it, when its package is not installed.
    """
    with SOURCES["kjv"].path().open(encoding="utf-8") as file:
        return Corpus.of("\n".join(json.loads(line)["text"] for line in file))
