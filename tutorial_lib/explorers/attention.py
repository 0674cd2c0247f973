"""The explorer of notebook 00: three words, their attention weights, and what they mix."""

from __future__ import annotations

import torch
from torch import Tensor

from ..attention import attention
from ..language import _
from .parts import Choice, Heat, Index, LiveExplorer, Scene, Steps, Vectors

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


def words(order: str, places: dict[str, int]) -> Tensor:
    """The word vectors in this order, float64 ``[3, 2]``, from the parameters of :func:`coordinates`."""
    return torch.tensor(
        [[(places[f"{word}_{axis}"] - MIDDLE) / STEPS for axis in "xy"] for word in order.split()],
        dtype=torch.float64,
    )


def attend(order: str, sharpness: float, mask: str, **places: int) -> tuple[Tensor, Tensor]:
    """Output ``[3, 2]`` and attention weights ``[3, 3]``, with q = k = v = the word vectors."""
    x = words(order, places)[None, None]
    out, w = attention(x * sharpness, x, x, causal=mask == "causal", backend="eager", return_weights=True)
    return out[0, 0], w[0, 0]


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

    @staticmethod
    def render(*, order, mask, sharpness, row, **places):
        names, (out, w) = order.split(), attend(order, sharpness, mask, **places)
        most, mixed = int(w[row].argmax()), out[row]
        arrows = dict(zip(names, words(order, places), strict=True)) | {"output": mixed}
        return Scene(
            {
                "plane": Vectors(
                    arrows, f"The vectors, and the output of “{names[row]}”", reach=2.9, mark=row
                ),
                "weights": Heat(
                    w,
                    "attention weights",
                    "looks at",
                    "word",
                    limits=(0.0, 1.0),
                    cmap="viridis",
                    xticks=names,
                    yticks=names,
                    mark=(row, most),
                    readout=f"“{names[row]}” looks most at “{names[most]}”: {w[row, most]:.3f}",
                ),
            },
            _("Scores times {0}, mask {1}: “{2}” looks at {3}; so its output is ({4}).").format(
                sharpness,
                _(mask),
                names[row],
                _(", ").join(f"“{word}” {share:.2f}" for word, share in zip(names, w[row], strict=True)),
                f"{mixed[0]:.2f}, {mixed[1]:.2f}",
            ),
        )

    @staticmethod
    def reached(*, row, **settings):
        w = attend(**settings)[1]
        spread = float(w.max() - w.min())
        return _("all nine weights are {0}.").format(f"{w.mean():.2f}") if spread < EVEN else ""
