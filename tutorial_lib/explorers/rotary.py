"""The explorer of notebook 06: queries and keys that turn, pair by pair."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ..encodings.rotary import LAYOUTS
from .parts import Choice, Index, LiveExplorer, Steps

QUERIES, KEYS = 41, 33  # how many positions each may take
START = {"m": 20, "n": 12}
BACK = START["m"] - START["n"]
PAIRS = (2, 4, 16)
CONTENTS = ("random", "alike", f"best {BACK} back")
TURNING = {"all": "every pair", "partial": "half of the channels", "p-RoPE": "the fast half of the pairs"}
LATE = 30
SAME = 1e-9


@functools.cache
def contents() -> tuple[Tensor, Tensor]:
    """The random q and k before they are turned, each float64 ``[1, 1, 1, 32]``."""
    dice = torch.Generator().manual_seed(6)
    size = 0.5 + 0.5 * torch.rand(2, 64, generator=dice, dtype=torch.float64)
    sign = torch.randint(0, 2, (2, 64), generator=dice) * 2 - 1
    q, k = (size * sign)[:, None, None, None, : 2 * max(PAIRS)]
    return q, k


class RotaryExplorer(LiveExplorer):
    """One pair of q and k in the plane, and beside it the score, all angles, or the layout."""

    front = "rotary"
    parameters = {
        "m": Index(QUERIES, START["m"], label="query position m"),
        "n": Index(KEYS, START["n"], label="key position n"),
        "pairs": Steps(PAIRS, 4, label="channels d", text=lambda pairs: str(2 * pairs)),
        "pair": Index("pairs", 1, label="pair t"),
        "base": Steps((10, 1000, 10_000), 1000, text="{:,}".format),
        "layout": Choice(LAYOUTS, "interleaved"),
        "turning": Choice(tuple(TURNING), "all", label="what turns", text=TURNING.__getitem__, menu=True),
        "content": Choice(CONTENTS, "random", label="q and k", menu=True),
        "view": Choice(("score", "angles", "channels"), "score", label="second view"),
    }
    challenge = (
        f"With the query at position {LATE} or later, find a key whose score is that of "
        f"m = {START['m']}, n = {START['n']}."
    )

    @classmethod
    def constants(cls):
        q, k = contents()
        return {
            "q": q.flatten().tolist(),
            "k": k.flatten().tolist(),
            "start": START,
            "late": LATE,
            "same": SAME,
        }
