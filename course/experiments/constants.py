"""The constants that a paper leaves to its user: searched for every encoding by one rule, then compared.

RoPE's base, ALiBi's slopes, the reach of T5's buckets: ``lengths`` takes them as the papers give them, or
from L. Such a constant may be the reason for a failure that we report of an encoding. So each encoding has
one of its own searched here, with its learning rates, in at most ``trials`` trainings:

- five values of the constant, all over its range, at the rates of ``lengths``;
- from the best of them, one step up or down one axis after the other (the constant, the rate of the
  encoding's own parameters, that of the model), and on while the loss falls by more than
  :data:`rates.EQUAL`.

The loss is the mean of those at L and at ``FAR`` L, on text that is not reported, of a model with a seed that
is not reported: who doubts a constant because long texts are read badly looks at long texts. Then the usual
constant and the one that was found are trained with another seed, and read as in ``lengths``. Each seed makes
its own search, so the intervals hold what a search is worth, too.

Where nothing better was found one step up and one step down every axis, the best lies inside of what was
tried. ``open`` counts the neighbours that the trials did not suffice for.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tutorial_lib import plots
from tutorial_lib.data import kjv
from tutorial_lib.encodings import AsymmetricALiBi, PositionalEncoding, fit
from tutorial_lib.encodings.alibi import slopes
from tutorial_lib.model import Transformer
from tutorial_lib.training import evaluate, position_parameters

from ..verdicts import above, below, fact
from . import lengths, rates, tuning
from .record import Record
from .statistics import Interval, difference
from .sweep import Experiment, Finding, in_words

FAR = 8
"""The longer texts of the search are of so many times L: the longest that leave those reported alone."""

STEP, RATES, OF_POSITION = 2, 3, 5
"""A step along the axis of the constant, of the model's rate, and of that of the encoding's parameters."""


@dataclass(frozen=True)
class Constant:
    """What is searched of an encoding.

    Attributes:
        name: what it is called.
        values: those to begin with; the usual one is among them.
        usual: that of ``lengths``.
        build: makes the encoding.
        least: it must be more than this.
    """

    name: str
    values: tuple[float, ...]
    usual: float
    build: Callable[[str, float, dict], PositionalEncoding]
    least: float = 0.0


def _argument(name: str, kind: Callable[[float], Any] = float):
    def build(encoding: str, value: float, settings: dict) -> PositionalEncoding:
        sizes = {"d_model": settings["d_model"], "n_heads": settings["heads"], "length": settings["length"]}
        return fit(encoding, **sizes, **{name: kind(value)})

    return build


def _steeper(encoding: str, times: float, settings: dict) -> PositionalEncoding:
    """ALiBi with other slopes; what is to the right is hidden by the causal mask."""
    return AsymmetricALiBi(settings["heads"], left=[times * float(m) for m in slopes(settings["heads"])])


def _from(encoding: str, times: float, settings: dict) -> PositionalEncoding:
    made = lengths.encoding(encoding, settings)
    with torch.no_grad():
        made.r_1 *= times
    return made


BASES = (2.0, 8.0, 50.0, 500.0, 10_000.0)
DISTANCES = (4.0, 8.0, 16.0, 32.0, 63.0)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
SEARCHED = {
    "sinusoidal": Constant("base", BASES, 10_000, _argument("base"), least=1),
    "rotary": Constant("base", BASES, 10_000, _argument("base"), least=1),
    "xpos": Constant(
        "scale_base", (512.0, 1024.0, 2048.0, 4096.0, 8192.0), 512, _argument("scale_base"), 511
    ),
    "alibi": Constant("times the slopes", FACTORS, 1, _steeper),
    "t5": Constant(
        "max_distance", (20.0, 32.0, 64.0, 128.0, 256.0), 64, _argument("max_distance", round), 16
    ),
    "clipped": Constant("max_distance", DISTANCES, 16, _argument("max_distance", round)),
    "kerple": Constant("times r_1 at the start", FACTORS, 1, _from),
    "fire": Constant("L", (4.0, 8.0, 16.0, 32.0, 64.0), 16, _argument("L")),
    "shaw": Constant("max_distance", DISTANCES, 16, _argument("max_distance", round)),
}
"""One constant of each encoding, for L = 64. A base must lie above 1, T5's distance above half of its
32 buckets, and below 512 xPos cannot read 16 L at once in float32."""


def cells(settings: dict) -> list[dict]:
    return [{"encoding": name} for name in settings["encodings"]]


Point = tuple[float, float, float]
"""A constant, the model's rate, and that of the encoding's own parameters as a multiple of it."""


def neighbours(point: Point, constant: Constant, own: bool) -> list[list[Point]]:
    """One step up and one step down each axis; what the encoding does not allow is left out."""
    value, lr, times = point
    axes = [[(value * float(STEP) ** n, lr, times) for n in (1, -1)]]
    if own:
        axes.append([(value, lr, times * float(OF_POSITION) ** n) for n in (1, -1)])
    axes.append([(value, lr * float(RATES) ** n, times) for n in (1, -1)])
    return [[near for near in axis if near[0] > constant.least] for axis in axes]


def walk(
    starts: Sequence[Point],
    near: Callable[[Point], list[list[Point]]],
    loss: Callable[[Point], float],
    trials: int,
):
    """``({point: loss}, best, open)``: from the best of ``starts`` one axis after the other, while it pays.

    >>> bowl = lambda point: abs(point[0] - 8) / 10
    >>> line = lambda point: [[(point[0] * 2, 1, 1), (point[0] / 2, 1, 1)]]
    >>> tried, best, open = walk([(1, 1, 1), (2, 1, 1)], line, bowl, trials=9)
    >>> best, open, [point[0] for point in tried]
    ((8.0, 1.0, 1.0), 0, [1.0, 2.0, 4.0, 8.0, 16.0])
    """
    tried = {point: loss(point) for point in map(_rounded, starts)}
    best, before = min(tried, key=tried.__getitem__), None

    def better(point: Point) -> bool:
        if point not in tried and len(tried) < trials:
            tried[point] = loss(point)
        return tried.get(point, math.inf) < tried[best] - rates.EQUAL

    while best != before:
        before = best
        for axis, direction in itertools.product(range(len(near(best))), (0, -1)):
            while better(point := _rounded(near(best)[axis][direction])):
                best = point
    left = {_rounded(point) for axis in near(best) for point in axis} - set(tried)
    return tried, best, len(left)


def _rounded(point: Point) -> Point:
    """To a number that is the same, whichever way led there."""
    constant, lr, times = (float(f"{x:.6g}") for x in point)
    return constant, lr, times


def trained(
    settings: dict, name: str, point: Point, seed: int, device, decay: float | None = None
) -> Transformer:
    value, lr, times = point
    return lengths.trained(
        settings | {"position_decay": decay},
        {"encoding": name, "rates": [lr, lr * times]},
        seed,
        device,
        build=lambda name, settings: SEARCHED[name].build(name, value, settings),
    )


def chosen_on(model: Transformer, settings: dict) -> float:
    """The mean of the losses at L and at ``FAR`` L, on a text that is neither trained on nor reported."""
    L = settings["length"]
    tokens, targets = kjv().windows(settings["windows"], FAR * L, between=True)
    return statistics.fmean(
        evaluate(model, tokens.reshape(-1, n), targets.reshape(-1, n), batch_size=max(1, 4096 // n))
        .mean()
        .item()
        for n in (L, FAR * L)
    )


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    name, L = cell["encoding"], settings["length"]
    constant, own = SEARCHED[name], bool(position_parameters(lengths.encoding(name, settings)))
    lr, position_lr = rates.chosen("lengths", cell)

    def loss(point: Point) -> float:
        try:
            # another seed than the one that is reported
            return chosen_on(trained(settings, name, point, seed + 100, device), settings)
        except FloatingPointError:
            return tuning.DIVERGED

    starts = [(value, lr, position_lr / lr) for value in constant.values]
    tried, best, open = walk(starts, lambda point: neighbours(point, constant, own), loss, settings["trials"])
    windows = kjv().windows(settings["windows"], L * settings["multiples"][-1])
    far = [L * n for n in settings["multiples"]]

    def reported(point: Point, decay: float | None = None) -> dict:
        return lengths.read(
            trained(settings, name, point, seed, device, decay), *windows, far, settings["tail"]
        )

    usual, found = reported((constant.usual, lr, position_lr / lr)), reported(best)
    return {
        "constants": [point[0] for point in tried],
        "lrs": [point[1] for point in tried],
        "times": [point[2] for point in tried],
        "losses": list(tried.values()),
        "best": [*best],
        "open": open,
        "usual": usual["tail"],
        "usual_mean": usual["mean"],
        "found": found["tail"],
        "found_mean": found["mean"],
    } | ({"undecayed": reported(best, 0.0)["tail"]} if own else {})


# ---- what is read off a record ----
def tail(record: Record, name: str, which: str, at: int = -1) -> list[float]:
    """For each seed, the loss over the last characters at one multiple of L."""
    return [values[at] for values in record.values(which, encoding=name)]


def rise(record: Record, name: str, which: str) -> Interval:
    """By how much the loss at the longest text is above that at L."""
    return difference(tail(record, name, which), tail(record, name, which, 0))


def gain(record: Record, name: str, at: int = -1) -> Interval:
    """The loss with the constant that was found minus that with the usual one."""
    return difference(tail(record, name, "found", at), tail(record, name, "usual", at))


def figure(record: Record):
    return plots.bars(
        {name: max(0.0, -gain(record, name).mean) for name in record.settings["encodings"]},
        title="What a constant of its own is worth",
        xlabel=f"nats at {record.settings['multiples'][-1]} L",
        size=(9, 1.5 + 0.42 * len(record.settings["encodings"])),
    )


EXPERIMENT = Experiment(
    "constants",
    "A constant for each",
    findings=lambda record: [],
    figure=figure,
    alt=lambda record: "",
    cells=cells,
    measure=measure,
    setup=in_words("{training} from the King James Bible", examples="texts"),
    presets={
        "live": {
            **{
                k: v
                for k, v in lengths.EXPERIMENT.presets["live"].items()
                if k not in ("protocol", "scalings")
            },
            "encodings": ["alibi"],
            "trials": 3,
        },
        "full": {
            **{
                k: v
                for k, v in lengths.EXPERIMENT.presets["full"].items()
                if k not in ("protocol", "scalings")
            },
            "encodings": list(SEARCHED),
            "trials": 14,
        },
    },
    seeds={"live": (0,), "full": (0, 1, 2)},
)
