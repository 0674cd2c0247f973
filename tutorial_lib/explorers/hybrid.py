"""The explorer of notebook 05: type a score, and see what a softmax leaves of each term."""

from __future__ import annotations

import torch

from ..encodings.sinusoidal import sinusoidal
from .parts import Choice, Index, LiveExplorer, Text, palette

WORDS = ("cat", "chases", "the", "dog")
# Row 1 meets the others in 0.4, 1, 0.7 and -0.3: the content of the worked case in notebook 05.
X = ((0.4, 0.9, -0.3, 0.2), (1.0, 0.0, 0.0, 0.0), (0.7, -0.2, 0.6, -0.4), (-0.3, 0.5, 0.4, 0.8))
W_R = (-0.6, -0.4, 0.2, 0.5, 0.3, -0.2, -0.4)  # by offset, j - i from -3 to 3
W = (1, 1, 1, 1, 2, -1, 1, -2, 1, -1, 2, 1, -1, 1, -2, 1)
START = "x_i·x_j + r_ij"
SAMPLES = (
    START,
    "x_i·x_j + w·p_i + r_ij",
    "x_i·x_j + w·[p_i; r_ij]",
    "x_i·x_j + PE_i + r_ij",
    "w·p_j",
    "-2w·p_j + r_ij",
    "p_i·p_j",
    "(w·p_i) r_ij",
    "x_j·p_i - relu(w·[p_i; r_ij]) + 0.5",
    "(x_i + p_i)·(x_j + p_j) + r_ij",
    "relu(w·p_i) + 2*r_ij",
    "-(r_ij - 3 p_i·x_i) w·[x_j; -p_i; r_ij]",
    "x_i +",
    "w·r_ij",
    "p_i·[p_j; 1]",
    "tanh(r_ij)",
    "4w·p_j - 0.5 r_ij - x_j·x_j",
    "",
    "900 r_ij r_ij 4",
)


class HybridExplorer(LiveExplorer):
    """The summands of a typed score, each with what is the same for all keys and what remains."""

    front = "hybrid"
    parameters = {
        "guess": Choice(
            ("first", "off"),
            "first",
            label="results",
            text=lambda way: {"first": "guess first", "off": "show at once"}[way],
        ),
        "query": Index(len(WORDS), 1, label="query i"),
        "score": Text(
            START,
            label="score e_ij =",
            samples=SAMPLES,
            keys=("x_i", "x_j", "p_i", "p_j", "r_ij", "w", "·", "+", "−", "[ ; ]", "relu( )"),
        ),
    }
    challenge = "Without x: make all four queries give their largest weight to the same key."

    @classmethod
    def constants(cls):
        places = sinusoidal(torch.arange(4).double(), 4).round(decimals=9)
        return {"WORDS": WORDS, "X": X, "P": places.tolist(), "W_R": W_R, "W": W, "palette": palette(64)}
