"""The explorer of notebook 03: a learned table of positions, row against row."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ..data import load_minilm_positions
from ..encodings import Learned, sinusoidal
from ..training import seeded
from .parts import Choice, Explorer, Heat, Index, Lines, Scene, Steps

TABLES = ("MiniLM", "sinusoids", "random, std 0.02", "random, std 1")
ROWS, WIDTH = 512, 384
START = 0.02 * WIDTH**0.5  # the norm of a row of std 0.02
RATIO = 1.4


@functools.lru_cache(maxsize=4)
@torch.no_grad()
def table(name: str, length: int) -> Tensor:
    """The table, resized to ``length`` positions, float32 ``[length, 384]``."""
    std = 1.0 if name.endswith("std 1") else 0.02
    learned = seeded(lambda: Learned(ROWS, WIDTH, std=std), seed=0)
    if name == "MiniLM":
        learned.table.copy_(load_minilm_positions())
    elif name == "sinusoids":
        learned.table.copy_(sinusoidal(torch.arange(ROWS).double(), WIDTH))
    return (learned if length == ROWS else learned.resized(length)).table.detach()


@functools.lru_cache(maxsize=4)
def cosines(name: str, length: int, shown: int) -> Tensor:
    """The cosine of every two of the first ``shown`` rows, ``[shown, shown]``."""
    unit = torch.nn.functional.normalize(table(name, length)[:shown], dim=-1)
    return (unit @ unit.T).clamp(-1, 1)


class LearnedExplorer(Explorer):
    """Left, the cosine of every two rows; right, one row's cosines, the norms, or the neighbours'."""

    parameters = {
        "name": Choice(TABLES, "MiniLM", label="table", menu=True),
        "length": Steps((ROWS, 2 * ROWS, 4 * ROWS), ROWS, label="resized to"),
        "shown": Steps((32, 64, 128, 256, 512), 64, label="rows shown"),
        "view": Choice(("cosine", "norm", "neighbours"), "cosine", label="second view"),
        "position": Index("shown", 7, play=True),
        "other": Index("shown", 12, hidden=True),
    }
    challenge = (f"Find a row that is at least {RATIO} times as long as the one before it and the one after "
                 "it: the trace of a training with shorter texts, which ended there.")

    @staticmethod
    def render(*, name, length, shown, view, position, other):
        rows, cosine = table(name, length), cosines(name, length, shown)
        norms = rows[:shown].norm(dim=-1)
        heat = Heat(
            cosine, f"cosine of the rows 0 … {shown - 1}", "position", "position",
            mark=(position, other), pick=("position", "other"),
            readout=f"cos(P[{position}], P[{other}]) = {cosine[position, other]:.4f}")
        if view == "cosine":
            beside = Lines(
                range(shown), {"cosine": cosine[position]}, f"cosine of P[{position}] with each row",
                "other position", "cosine", ylim=(-1.05, 1.05), mark=other, pick="other")
            seen = f"the cosines of row {position} with all of them, down to {cosine[position].min():.2f}"
        elif view == "norm":
            beside = Lines(
                range(shown), {"norm": norms, "drawn with std 0.02": [START] * shown}, "norm of each row",
                "position", "norm", logy=True, mark=position, pick="position")
            seen = (f"the norms, {norms.min():.2f} to {norms.max():.2f}; a row drawn with std 0.02 has "
                    f"{START:.2f}")
        else:
            last = min(shown, length - 1)
            near = torch.cosine_similarity(rows[:last], rows[1: last + 1], dim=-1)
            beside = Lines(
                range(last), {"cosine": near}, "cosine of each row with the next", "position", "cosine",
                ylim=(-0.3, 1.05), mark=min(position, last - 1), pick="position")
            seen = f"the cosine of each row with the next, {near.min():.2f} to {near.max():.2f}"
        return Scene({"cosines": heat, "beside": beside}, (
            f"The table “{name}”, {length} positions × {WIDTH} numbers, the first {shown} of them: the "
            f"cosine is {cosine.diagonal(1).mean():z.2f} for neighbours and {cosine.diagonal(8).mean():z.2f} "
            f"for rows 8 apart, on average; marked is row {position}, norm {norms[position]:.2f}, and its "
            f"cosine with row {other}, {cosine[position, other]:.2f}; beside it {seen}."))

    @staticmethod
    def reached(*, name, length, position, **_):
        norms = table(name, length).norm(dim=-1)
        if not 0 < position < length - 1:
            return ""
        before, here, after = norms[position - 1: position + 2]
        if here < RATIO * max(before, after):
            return ""
        return (f"row {position} has the norm {here:.2f}, its neighbours {before:.2f} and {after:.2f}; the "
                f"median of all rows before it is {norms[:position].median():.2f}, of all after it "
                f"{norms[position + 1:].median():.2f}.")
