"""The explorer of notebook 00: what a real model expects next, with and without its positions."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import torch

from .parts import Choice, LiveExplorer, Steps

RECORD = Path(__file__).with_suffix(".json")
TEXTS = {
    "cat → dog": "The cat chased the dog, and the dog ran away from the cat",
    "dog → cat": "The dog chased the cat, and the cat ran away from the dog",
}
MODES = ("as trained", "switched off")
LENGTH, SHOWN = 14, 6  # tokens in a text; guesses shown


def measure() -> dict[str, list]:
    """What SmolLM2 expects after each token but the last, for both texts, with and without positions.

    ``{text: [[token, next, [guess, with, without], …], …]}``: the probabilities of the token that does
    come next, and of each that is among the most likely ones in either mode.
    """
    from ..data import load_smollm2  # late: showing the record does not need it
    from ..encodings import NoPosition

    smollm = load_smollm2()
    rope, found = smollm.model.encoding, {}
    for name, text in TEXTS.items():
        tokens, both = smollm.encode(text), []
        try:
            for encoding in (rope, NoPosition()):
                smollm.model.encoding = encoding
                with torch.no_grad():
                    both.append(smollm.model(tokens)[0].softmax(-1))
        finally:
            smollm.model.encoding = rope
        words = [smollm.decode(token).strip() for token in tokens[0]]
        found[name] = [
            [words[n], words[n + 1]]
            + [
                [smollm.decode(torch.tensor([token])).strip(), *(round(float(p[n, token]), 3) for p in both)]
                for token in _likely(both, n, int(tokens[0, n + 1]))
            ]
            for n in range(len(words) - 1)
        ]
    return found


def _likely(both, n: int, comes: int) -> list[int]:
    """The token that comes next, and :data:`SHOWN` of the most likely ones of each mode."""
    tops = [token for p in both for token in p[n].topk(SHOWN).indices.tolist()]
    return list(dict.fromkeys([comes, *tops]))


@functools.cache
def record() -> dict[str, list]:
    """What :func:`measure` found, and :func:`write` has written."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def write() -> None:
    """Measure, and keep the record."""
    found = json.dumps(measure(), ensure_ascii=False, separators=(",", ":"))
    RECORD.write_text(found + "\n", encoding="utf-8")


class PositionsExplorer(LiveExplorer):
    """Above, a sentence with the probability that each word had; below, what the model expects next."""

    front = "positions"
    parameters = {
        "positions": Choice(MODES, MODES[0]),
        "text": Choice(tuple(TEXTS), "cat → dog"),
        "word": Steps(tuple(range(LENGTH - 1)), LENGTH - 2, label="read up to word"),
    }
    challenge = "Find a word that the model guesses better with its positions switched off."

    @classmethod
    def constants(cls):
        return {"record": record(), "shown": SHOWN}
