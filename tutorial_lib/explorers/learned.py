"""The explorer of notebook 03: a learned table of positions, row against row."""

from __future__ import annotations

import functools
import math
from base64 import b64encode

import torch
from torch import Tensor

from ..data import load_minilm_positions
from ..encodings import Learned, sinusoidal
from ..language import _
from ..optional import needs
from .measured import measured
from .parts import Choice, Heat, Index, Lines, LiveExplorer, Scene, Steps, Vectors, palette

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
TURNING = range(1, 510)  # the rows that they are measured on
LENGTHS = (ROWS, 2 * ROWS, 4 * ROWS)
PERIODS = tuple(round(len(TURNING) / cycles) for cycles in CYCLES)


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


def drawn(std: float) -> Tensor:
    """Random rows, float64 ``[512, 384]``, by xorshift and Box and Muller: the browser draws the same."""
    state, shares = SEED, np.empty(ROWS * WIDTH)
    for n in range(ROWS * WIDTH):
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        shares[n] = state / 2**32
    one, two = shares.reshape(-1, 2).T
    size = std * np.sqrt(-2 * np.log(one))
    rows = np.stack([size * np.cos(2 * np.pi * two), size * np.sin(2 * np.pi * two)], 1)
    return torch.from_numpy(rows.reshape(ROWS, WIDTH))


@functools.lru_cache(maxsize=4)
def original(name: str) -> Tensor:
    """The table as it is, float64 ``[512, 384]``."""
    if name == "MiniLM":
        table, row, column = rounded()
        return torch.from_numpy(table * np.outer(row, column))
    if name == "sinusoids":
        return sinusoidal(torch.arange(ROWS).double(), WIDTH)
    return drawn(1.0 if name.endswith("std 1") else 0.02)


@functools.lru_cache(maxsize=4)
@torch.no_grad()
def table(name: str, length: int) -> Tensor:
    """The table, resized to ``length`` positions, float64 ``[length, 384]``."""
    if length == ROWS:
        return original(name)
    learned = Learned(ROWS, WIDTH).double()
    learned.table.copy_(original(name))
    return learned.vectors(torch.linspace(0, ROWS - 1, length, dtype=torch.float64))


@functools.lru_cache(maxsize=4)
def cosines(name: str, length: int, shown: int) -> Tensor:
    """The cosine of every two of the first ``shown`` rows, ``[shown, shown]``."""
    unit = torch.nn.functional.normalize(table(name, length)[:shown], dim=-1)
    return (unit @ unit.T).clamp(-1, 1)


@functools.lru_cache(maxsize=4)
def planes(name: str) -> tuple[Tensor, Tensor, Tensor]:
    """The plane of each wave, complex ``[5, 384]``, where the middle of its hands lies, and their length."""
    rows = original(name)[TURNING[0] : TURNING[-1] + 1]
    place = torch.arange(len(TURNING)).double() / len(TURNING)
    waves = torch.exp(2j * math.pi * torch.tensor(CYCLES).double()[:, None] * place)
    plane = waves @ rows.to(waves.dtype)
    hand = rows.to(waves.dtype) @ plane.T
    middle = hand.mean(0)
    return plane, middle, (hand - middle).abs().square().mean(0).sqrt()


@functools.lru_cache(maxsize=4)
def hands(name: str, length: int) -> Tensor:
    """Where the hand of each wave points at each row, complex ``[length, 5]``; about 1 long."""
    plane, middle, size = planes(name)
    return (table(name, length).to(plane.dtype) @ plane.T - middle) / size


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
        "position": Index("shown", 7, label="row p"),
        "other": Index("shown", 12, label="other row o"),
    }
    challenge = (
        f"Find a row that is at least {RATIO} times as long as the one before it and the one after "
        "it: the trace of a training with shorter texts, which ended there."
    )

    @classmethod
    def constants(cls):
        return {
            "palette": palette("signed", 64).hex(),
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

    @staticmethod
    def render(*, name, length, shown, view, look, position, other):
        rows, cosine = table(name, length), cosines(name, length, shown)
        loss = losses()[LENGTHS.index(length)]
        norms = rows[:shown].norm(dim=-1)
        every = max(1, shown // CELLS)
        title, ticks = f"cosine of the rows 0 … {shown - 1}", None
        if every > 1:
            title += f", every {every}{'nd' if every == 2 else 'th'}"
            ticks = [str(i) if i % (16 * every) == 0 else "" for i in range(0, shown, every)]
        heat = Heat(
            cosine[::every, ::every],
            title,
            "position",
            "position",
            xticks=ticks,
            yticks=ticks,
            mark=(position // every, other // every),
            readout=f"cos(P[{position}], P[{other}]) = {cosine[position, other]:.4f}",
        )
        if look == "waves":
            points = torch.view_as_real(hands(name, length)[position])
            beside = Vectors(
                {f"{period} rows": point.tolist() for period, point in zip(PERIODS, points, strict=True)},
                f"hands of five waves at row {position}",
            )
            seen = _("five hands, for waves of {0} rows, of the lengths {1}").format(
                ", ".join(map(str, PERIODS)), ", ".join(f"{math.hypot(x, y):.1f}" for x, y in points.tolist())
            )
        elif view == "cosine":
            beside = Lines(
                range(shown),
                {"cosine": cosine[position]},
                f"cosine of P[{position}] with each row",
                "other position",
                "cosine",
                ylim=(-1.05, 1.05),
                mark=other,
            )
            seen = _("the cosines of row {0} with all of them, down to {1}").format(
                position, f"{cosine[position].min():.2f}"
            )
        elif view == "norm":
            beside = Lines(
                range(shown),
                {"norm": norms, "drawn with std 0.02": [START] * shown},
                "norm of each row",
                "position",
                "norm",
                logy=True,
                mark=position,
                ylim=(0.8 * float(norms.min()), 1.25 * float(norms.max())),
            )
            seen = _("the norms, {0} to {1}; a row drawn with std 0.02 has {2}").format(
                f"{norms.min():.2f}", f"{norms.max():.2f}", f"{START:.2f}"
            )
        else:
            last = min(shown, length - 1)
            near = torch.cosine_similarity(rows[:last], rows[1 : last + 1], dim=-1)
            beside = Lines(
                range(last),
                {"cosine": near},
                "cosine of each row with the next",
                "position",
                "cosine",
                ylim=(-0.3, 1.05),
                mark=min(position, last - 1),
            )
            seen = _("the cosine of each row with the next, {0} to {1}").format(
                f"{near.min():.2f}", f"{near.max():.2f}"
            )
        lost = (
            _("A small language model of ours, its table stretched {0} times: loss {1} nats.").format(
                length // ROWS, f"{loss:.2f}"
            )
            if length > ROWS
            else _("A small language model of ours, its table as trained: loss {0} nats.").format(
                f"{loss:.2f}"
            )
        )
        return Scene(
            {"cosines": heat, "beside": beside},
            _(
                "The table “{0}”, {1} positions × {2} numbers, the first {3} of them: the cosine is {4} for "
                "neighbours and {5} for rows 8 apart, on average; marked is row {6}, norm {7}, and its "
                "cosine "
                "with row {8}, {9}; beside it {10}. {11}"
            ).format(
                _(name),
                length,
                WIDTH,
                shown,
                f"{cosine.diagonal(1).mean():z.2f}",
                f"{cosine.diagonal(8).mean():z.2f}",
                position,
                f"{norms[position]:.2f}",
                other,
                f"{cosine[position, other]:z.2f}",
                seen,
                lost,
            ),
        )

    @staticmethod
    def reached(*, name, length, position, **_rest):
        norms = table(name, length).norm(dim=-1)
        if not 0 < position < length - 1:
            return ""
        before, here, after = norms[position - 1 : position + 2]
        if here < RATIO * max(before, after):
            return ""
        numbers = here, before, after, norms[:position].median(), norms[position + 1 :].median()
        return _(
            "row {0} has the norm {1}, its neighbours {2} and {3}; the median of all rows before it is "
            "{4}, of all after it {5}."
        ).format(position, *(f"{number:.2f}" for number in numbers))
