"""The explorer of notebook 00: three words, their attention weights, and what they mix."""

from __future__ import annotations

import torch
from torch import Tensor

from ..attention import attention
from .parts import Choice, Explorer, Heat, Lines, Scene, Steps

VECTORS = {"the": (0.2, 0.1), "cat": (1.5, -0.5), "sleeps": (0.8, 1.2)}
SHARPNESS = (0, 0.25, 0.5, 1, 2, 4, 8)
EVEN = 1e-6


def weights(order: str, sharpness: float, mask: str) -> Tensor:
    """Attention weights ``[3, 3]`` of the words in this order; q = k = v = the word vectors."""
    x = torch.tensor([VECTORS[word] for word in order.split()], dtype=torch.float64)[None, None]
    _, w = attention(x * sharpness, x, x, causal=mask == "causal", backend="eager",
                     return_weights=True)
    return w[0, 0]


class AttentionExplorer(Explorer):
    """Left, all weights; right, where one word looks as the scores grow."""

    parameters = {
        "order": Choice(("the cat sleeps", "sleeps cat the"), "the cat sleeps", label="words"),
        "mask": Choice(("none", "causal"), "none"),
        "sharpness": Steps(SHARPNESS, 1, label="scores times"),
        "row": Steps((0, 1, 2), 2, label="word", text=("first", "second", "third").__getitem__),
    }
    challenge = "Find settings at which every word looks at all three words alike."

    @staticmethod
    def render(*, order, mask, sharpness, row):
        words, w = order.split(), weights(order, sharpness, mask)
        most = int(w[row].argmax())
        rows = dict(zip(words, torch.stack([weights(order, s, mask)[row] for s in SHARPNESS]).T,
                        strict=True))
        return Scene({
            "weights": Heat(w, "attention weights", "looks at", "word", limits=(0.0, 1.0),
                            cmap="viridis", xticks=words, yticks=words, mark=(row, most),
                            readout=f"“{words[row]}” looks most at “{words[most]}”: {w[row, most]:.3f}"),
            "row": Lines(SHARPNESS, rows, f"where “{words[row]}” looks", "scores times", "weight",
                         ylim=(-0.02, 1.02), markers=True, mark=SHARPNESS.index(sharpness)),
        }, (f"Scores times {sharpness}, mask {mask}: “{words[row]}” looks at "
            + ", ".join(f"“{word}” {share:.2f}" for word, share in zip(words, w[row], strict=True))
            + "."))

    @staticmethod
    def reached(*, order, mask, sharpness, row):
        w = weights(order, sharpness, mask)
        spread = float(w.max() - w.min())
        return f"all nine weights are {w.mean():.2f}." if spread < EVEN else ""
