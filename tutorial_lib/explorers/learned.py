"""The explorer of notebook 03: a learned table of positions, row against row."""

from __future__ import annotations

import functools
from base64 import b64encode

from ..data import load_minilm_positions
from ..optional import needs
from .measured import measured
from .parts import Choice, Index, LiveExplorer, Steps, palette

with needs("experiments"):
    import numpy as np

TABLES = ("MiniLM", "sinusoids", "random, std 0.02", "random, std 1")
ROWS, WIDTH = 512, 384
START = 0.02 * WIDTH**0.5  # the norm of a row of std 0.02
RATIO = 1.4
CELLS = 128  # rows and columns of the heat map, at most
SEED = 19
CYCLES = (90, 30, 9, 3, 1)
"""The strongest waves of MiniLM's rows 1 … 509, by their number of turns."""
LENGTHS = (ROWS, 2 * ROWS, 4 * ROWS)


@functools.cache
def rounded() -> tuple[np.ndarray, list[float], list[float]]:
    """MiniLM's table in 8 bits, as the browser has it: int8 ``[512, 384]``, factors of its rows and columns.

    A cosine of two rows is off by 0.0025 at most, a norm by 0.2 %.
    """
    table = load_minilm_positions().double().numpy()
    column = np.sqrt(np.sqrt((table**2).mean(0)))  # one column is ten times as large as the others
    row = np.abs(table / column).max(1) / 127
    row, column = ([float(f"{x:.6g}") for x in factors] for factors in (row, column))
    return np.round(table / np.outer(row, column)).astype(np.int8), row, column


def losses() -> list[float]:
    """Loss in nats of a language model of the course, its table as trained, and stretched 2 and 4 times."""
    return measured()["learned"]


class LearnedExplorer(LiveExplorer):
    """The cosine of every two rows; beside it one row's cosines, the norms, the neighbours', or waves."""

    front = "learned"
    parameters = {
        "name": Choice(TABLES, "MiniLM", label="table", menu=True),
        "length": Steps(LENGTHS, ROWS, label="resized to"),
        "shown": Steps((32, 64, 128, 256, 512), 64, label="rows shown"),
        "view": Choice(("cosine", "norm", "neighbours"), "cosine", label="second view"),
        "look": Choice(("rows", "waves"), "rows", label="beside it"),
        "position": Index("shown", 31, label="row p"),
        "other": Index("shown", 40, label="other row o"),
    }
    challenge = (
        f"Find a row that is at least {RATIO} times as long as the one before it and the one after "
        "it: the trace of a training with shorter texts, which ended there."
    )

    @classmethod
    def constants(cls):
        return {
            "palette": palette(64),
            "ratio": RATIO,
            "cells": CELLS,
            "start": START,
            "rows": ROWS,
            "width": WIDTH,
            "seed": SEED,
            "cycles": CYCLES,
            "losses": losses(),
        }

    @classmethod
    def bulk(cls):
        rows, row, column = rounded()
        return {"minilm": b64encode(rows.tobytes()).decode(), "row": row, "column": column}
