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
from tutorial_lib.language import _
from tutorial_lib.model import Transformer
from tutorial_lib.training import evaluate, position_parameters

from ..verdicts import OPEN, Outcome, above, all_of, below, fact, within
from . import lengths, rates, tuning
from .record import Record
from .statistics import Interval, difference
from .sweep import TRAINING, Experiment, Finding, in_words, spoken

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
    """For each seed, the loss over the last characters at one multiple of L, in the reading ``which``."""
    return [values[at] for values in record.values(which, encoding=name)]


def rise(record: Record, name: str, which: str) -> Interval:
    """By how much the loss at the longest text is above that at L."""
    return difference(tail(record, name, which), tail(record, name, which, 0))


def gain(record: Record, name: str, at: int = -1, which: str = "found", since: str = "usual") -> Interval:
    """The loss of one reading minus that of another: by default, what was found minus the usual constant."""
    return difference(tail(record, name, which, at), tail(record, name, since, at))


def best(record: Record, name: str) -> list[Point]:
    """What was found, by seed."""
    return [tuple(point) for point in record.values("best", encoding=name)]


def ahead(record: Record, which: str, at: int) -> set[tuple[str, str]]:
    """Pairs of encodings of which the first has the lower loss, everywhere in the interval."""
    names = record.settings["encodings"]
    return {
        (a, b)
        for a, b in itertools.permutations(names, 2)
        if difference(tail(record, a, which, at), tail(record, b, which, at)).negative
    }


def ranked(record: Record, which: str, at: int) -> list[str]:
    """The encodings, the one with the lowest mean loss first."""
    return sorted(
        record.settings["encodings"], key=lambda name: statistics.fmean(tail(record, name, which, at))
    )


def figure(record: Record):
    names, far = record.settings["encodings"], record.settings["multiples"][-1]
    fig, axes = plots.panels(1, 2, size=(12, 1.5 + 0.42 * len(names)))
    for ax, at, where in zip(axes, (0, -1), ("L", f"{far} L"), strict=True):
        gains = {spoken(name): gain(record, name, at) for name in names}
        plots.bars(
            {name: -each.mean for name, each in gains.items()},
            spread={name: (-each.high, -each.low) for name, each in gains.items()},
            title=_("At {where}: what a constant of its own is worth").format(where=where),
            xlabel="nats",
            ax=ax,
        )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    gains = {name: -gain(record, name).mean for name in record.settings["encodings"]}
    most = sorted(gains, key=gains.__getitem__, reverse=True)
    return _(
        "Bars with intervals, at L and at {far} L: for each encoding, by how much its loss falls when its "
        "constant is searched. On the longest texts most for {first} ({gain}) and {second} ({next}), least "
        "for {last} ({least})."
    ).format(
        far=record.settings["multiples"][-1],
        first=_(most[0]),
        gain=f"{gains[most[0]]:.2f}",
        second=_(most[1]),
        next=f"{gains[most[1]]:.2f}",
        last=_(most[-1]),
        least=f"{gains[most[-1]]:.2f}",
    )


def table(record: Record) -> str:
    """Usual and found constants, and the losses with them, as Markdown."""
    far = record.settings["multiples"][-1]
    rows = [
        [
            "encoding",
            "constant",
            "usual",
            "found",
            "loss at L",
            "found",
            f"loss at {far} L",
            "found",
            "trials",
        ],
        ["---"] * 4 + ["---:"] * 5,
    ]
    for name in record.settings["encodings"]:
        found = ", ".join(f"{value:g}" for value, *_rates in best(record, name))
        losses = [
            f"{statistics.fmean(tail(record, name, which, at)):.3f}"
            for at in (0, -1)
            for which in ("usual", "found")
        ]
        trials = [len(tried) for tried in record.values("losses", encoding=name)]
        rows.append(
            [
                name,
                SEARCHED[name].name,
                f"{SEARCHED[name].usual:g}",
                found,
                *losses,
                f"{min(trials)}" + f" to {max(trials)}" * (min(trials) < max(trials)),
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def findings(record: Record) -> list[Finding]:
    names, far = record.settings["encodings"], record.settings["multiples"][-1]
    said = []
    if "rotary" in names:
        usual, found = (rise(record, "rotary", which) for which in ("usual", "found"))
        bases = ", ".join(f"{base:g}" for base, *_rates in best(record, "rotary"))
        less = difference(list(usual.values), list(found.values))
        said += [
            Finding(
                "A part of what RoPE loses beyond its length is the base of 10,000",
                "",
                "",
                f"rise of the loss from L to {far} L, with 10,000 minus with the base that each seed finds: "
                f"{less} nats. The rise: with 10,000 {usual}, with its base ({bases}) {found} nats",
                above(less, lengths.STEADY),
                why="no other base was better",
            ),
            Finding(
                f"With a base of its own, RoPE reads {far} L as well as L",
                "",
                "",
                f"loss at {far} L minus loss at L: {found} nats",
                below(found, lengths.STEADY),
                why="a small base leaves fewer angles that training never showed, and takes away the hands "
                "that tell far places apart",
            ),
        ]
    told, turned, changed = 0, [], []
    for at, where in ((0, "L"), (-1, f"{far} L")):
        before, after = (ahead(record, which, at) for which in ("usual", "found"))
        told += len(before & after)
        changed += [f"{b} before {a} at {where}" for a, b in sorted(before) if (b, a) in after]
        first, then = (ranked(record, which, at) for which in ("usual", "found"))
        turned += [
            f"{b} before {a} at {where}"
            for a, b in itertools.combinations(first, 2)
            if then.index(b) < then.index(a)
        ]
    pairs = len(names) * (len(names) - 1)
    said.append(
        Finding(
            "Which encoding reads better does not depend on constants that the papers leave open",
            "what most comparisons take for granted, ours too",
            "",
            f"of {pairs} pairs ({len(names)} encodings, at L and at {far} L), {told} are told apart in the "
            f"same order with both constants, {len(changed)} in another order"
            + (f" ({'; '.join(changed)})" if changed else "")
            + f". In the means alone {len(turned)} change their order: {'; '.join(turned) or 'none'}",
            fact(not changed, "all pairs told apart, in the same order")
            if changed or told == pairs
            else Outcome(OPEN, "all pairs told apart, in the same order"),
            why="such constants set how far an encoding looks, and each has a length that suits it",
            open_why=f"{len(record.seeds)} seeds do not tell the others apart",
        )
    )
    runs = {(run.cell["encoding"], run.seed): run.values for run in record}
    left = [f"{name} with seed {seed}" for (name, seed), values in runs.items() if values["open"]]
    bound = sorted(
        {
            name
            for (name, _seed), values in runs.items()
            if values["best"][0] / STEP <= SEARCHED[name].least < values["best"][0]
        }
    )
    said.append(
        Finding(
            "No best constant and no best rate lies at the edge of what was tried",
            "",
            "",
            f"one step up and one step down each axis was tried for {len(runs) - len(left)} of {len(runs)} "
            f"searches, and no step was better by more than {rates.EQUAL} nats"
            + (f"; not for {'; '.join(left)}" if left else "")
            + (f". The smallest that can be is the best for {', '.join(bound)}" if bound else ""),
            fact(not left, f"{len(runs)} of {len(runs)} searches"),
            why=f"{record.settings['trials']} trainings did not suffice",
        )
    )
    decays = {
        name: gain(record, name, 0, "undecayed", "found")
        for name in names
        if "undecayed" in runs[name, record.seeds[0]]
    }
    if decays:
        most = max(decays, key=lambda name: abs(decays[name].mean))
        said.append(
            Finding(
                "Weight decay of an encoding's own parameters makes no difference",
                "",
                "",
                f"without it, the loss at L changes most for {most}: {decays[most]} nats, of "
                f"{', '.join(decays)}. AdamW decays tables of positions like all else here, by a share of "
                "rate × 0.01 a step",
                all_of(*(within(each, rates.EQUAL) for each in decays.values())),
                why="a table at a high rate is pulled towards 0",
            )
        )
    return said


EXPERIMENT = Experiment(
    "constants",
    "A constant for each",
    findings=findings,
    figure=figure,
    alt=alt,
    table=table,
    cells=cells,
    measure=measure,
    setup=in_words(
        f"L = {{length}} characters of the King James Bible; {TRAINING}, searched together with one constant",
        examples="texts",
        protocol=["own"],
    ),
    presets={
        "live": tuning.settings_of("lengths", "live", encodings=["alibi"], trials=6),
        "full": tuning.settings_of("lengths", "full", encodings=list(SEARCHED), trials=14),
    },
    seeds={"live": (0, 1), "full": (0, 1, 2)},
)
