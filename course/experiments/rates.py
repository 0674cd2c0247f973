"""One search of learning rates for all encodings, so that none wins just by the rate that it was given.

Every encoding of an experiment is trained with each peak rate of a grid: three for the whole model, and for
each of them, where the encoding has parameters of its own, these at the same rate or at 20 times that (a
table that starts near 0 has to grow to the size of a score). It chooses whatever has the lowest loss at
the trained length, on data that are neither trained on nor reported and with seeds that no report uses;
among equally good ones, the one nearest to the rate of all. The experiment ``tuning`` is this search; the
others read its record. Then each encoding is measured twice:

- at **one rate for all**: the ``lr`` of the settings, for all parameters;
- at **its own rates**: the choice, which stands in the cell as ``"rates": [lr, position_lr]`` unless it is
  the rate of all.
"""

from __future__ import annotations

import functools
import math
import statistics
from pathlib import Path
from typing import TypedDict

from ..places import RECORDS
from .record import Record

FACTORS = (1 / 3, 1, 3)
"""Rates for the whole model, as shares of the settings' ``lr``."""

OF_POSITION = (1, 20)
"""Rates for the encoding's own parameters, as shares of the whole model's."""


def grid(lr: float, own: bool) -> list[list[float]]:
    """Every ``[lr, position_lr]`` to try; ``own``: whether the encoding has parameters of its own.

    >>> grid(0.003, own=False)
    [[0.001, 0.001], [0.003, 0.003], [0.009, 0.009]]
    """
    return [
        [float(f"{lr * factor:.3g}"), float(f"{lr * factor * times:.3g}")]
        for factor in FACTORS
        for times in (OF_POSITION if own else OF_POSITION[:1])
    ]


class Rates(TypedDict):
    """Peak learning rates of a training."""

    lr: float
    position_lr: float


def of(settings: dict, cell: dict) -> Rates:
    """The rates of a cell, as :func:`tutorial_lib.training.train` takes them."""
    lr, position_lr = cell.get("rates", [settings["lr"]] * 2)
    return {"lr": lr, "position_lr": position_lr}


def cells(name: str, settings: dict, plain: list[dict]) -> list[dict]:
    """The cells of an experiment by the settings' ``protocol``, a list of ``"one"`` and ``"own"``.

    Without a protocol there is one rate for all: nothing was searched for these settings. An encoding whose
    own rates are that one rate is trained only once, which counts for both.
    """
    protocol = settings.get("protocol", ["one"])
    own = [cell | {"rates": chosen(name, cell)} for cell in plain] if "own" in protocol else []
    if "one" not in protocol:
        return own
    return plain + [cell for cell in own if cell["rates"] != [settings["lr"]] * 2]


def chosen(name: str, cell: dict) -> list[float]:
    """``[lr, position_lr]`` by the mean losses in the record ``tuning``: see :func:`best`.

    Raises KeyError, with the command that mends it, when this cell was not searched.
    """
    path = RECORDS / "tuning-full.json"
    tried = _searched(path, path.stat().st_mtime_ns if path.exists() else 0)
    losses = tried.get(_key({"of": name} | cell))
    if not losses:
        raise KeyError(
            f"no learning rates were searched for {cell} of {name!r}: "
            "`python -m course.experiments run tuning` does it, then run this again"
        )
    return [*best(losses)]


EQUAL = 0.02
"""Nats that make no difference."""


def best(losses: dict[tuple[float, float], float]) -> tuple[float, float]:
    """The pair of rates with the lowest loss; of several equally good ones, the nearest to the rate of all.

    Within ``EQUAL`` of the lowest counts as equally good, so that chance does not choose where all rates
    solve a task.

    >>> best({(0.1, 0.1): 0.501, (0.3, 0.3): 0.502, (0.9, 0.9): 0.500})
    (0.3, 0.3)
    """
    rates = sorted({lr for lr, _ in losses})
    of_all = rates[len(rates) // 2]
    good = [pair for pair, loss in losses.items() if loss <= min(losses.values()) + EQUAL]
    return min(good, key=lambda pair: (abs(math.log(pair[0] / of_all)), pair[1] / pair[0]))


@functools.lru_cache(maxsize=1)
def _searched(path: Path, changed: int) -> dict[tuple, dict[tuple[float, float], float]]:
    """``{what names a cell: {rates: mean loss}}`` of the record in that file."""
    losses: dict[tuple, dict[tuple[float, float], list[float]]] = {}
    for run in Record.load(path):
        tried = losses.setdefault(_key(run.cell), {})
        tried.setdefault(tuple(run.cell["rates"]), []).append(run.values["loss"])
    return {
        which: {rates: statistics.fmean(found) for rates, found in tried.items()}
        for which, tried in losses.items()
    }


def _key(cell: dict) -> tuple:
    """What names a cell, without its rates; a scaling of angles comes after a training with its rates."""
    return tuple(sorted((name, value) for name, value in cell.items() if name not in ("rates", "scaling")))
