"""The explorer of notebook 00: three words, their attention weights, and what they mix."""

from __future__ import annotations

from .parts import Choice, Index, LiveExplorer, Steps

VECTORS = {"the": (0.2, 0.1), "cat": (1.5, -0.5), "sleeps": (0.8, 1.2)}
MIDDLE, STEPS = 20, 10  # a coordinate of n is (n − 20) / 10: from −2 to 2
SHARPNESS = (0, 0.25, 0.5, 1, 2, 4, 8)
EVEN = 1e-6


def coordinates() -> dict[str, Index]:
    """Parameters for x and y of each word, which start at :data:`VECTORS`."""
    count = 2 * MIDDLE + 1
    return {
        f"{word}_{axis}": Index(count, round(value * STEPS) + MIDDLE, label=f"{axis} of “{word}”")
        for word, vector in VECTORS.items()
        for axis, value in zip("xy", vector, strict=True)
    }


class AttentionExplorer(LiveExplorer):
    """Left, the word vectors and the output of one word, a mixture; right, all weights."""

    front = "attention"
    parameters = {
        "order": Choice(("the cat sleeps", "sleeps cat the"), "the cat sleeps", label="words"),
        "mask": Choice(("none", "causal"), "none"),
        "sharpness": Steps(SHARPNESS, 1, label="scores times"),
        "row": Index(3, 2, label="word"),
        **coordinates(),
    }
    challenge = "Find settings at which every word looks at all three words alike."

    @classmethod
    def constants(cls):
        return {"even": EVEN}
