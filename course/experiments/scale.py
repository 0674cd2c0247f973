"""Does the gap close with size? Encodings at several sizes of model and training, each at rates of its own.

At the size of this course a bias for each distance has a lower loss at the trained length than RoPE, and yet
nearly all large models rotate. Here the same comparison is made again and again while the model and its
training grow together, over two orders of magnitude of parameters × characters. Parameters are those of the
layers, 12 · layers · d_model², without embeddings, norms and biases.

The search of rates is part of the record. Every encoding is trained at every size with each pair of rates of
the grid of :mod:`rates`, whose middle goes as 1 / d_model, because a wider model wants a slower rate. What
is reported for a seed is measured at the rates that have the lowest loss with all *other* seeds, on a text
that is neither trained on nor reported. So no number was chosen because it came out well itself.
"""

from __future__ import annotations

import math
import statistics

import torch

from tutorial_lib import plots
from tutorial_lib.data import kjv
from tutorial_lib.training import position_parameters

from ..verdicts import above, all_of, below, fact
from . import lengths, rates, tuning
from .record import Record
from .statistics import Interval, difference, interval, t_975
from .sweep import Experiment, Finding, in_words

ENCODINGS = ("sinusoidal", "rotary", "alibi", "t5")
BIASES = ("alibi", "t5")

WIDTH = 64
"""The d_model at which the settings' ``lr`` is the middle of the grid."""

FAR = 8
"""The longer texts are of so many times the trained length."""


# ---- what is measured ----
def sized(settings: dict, size: int) -> dict:
    """The settings of one size, as :mod:`lengths` takes them."""
    one = settings | settings["sizes"][size]
    return one | {"heads": one["d_model"] // one["head_dim"], "lr": settings["lr"] * WIDTH / one["d_model"]}


def scale(settings: dict, size: int) -> float:
    """Parameters of the layers × characters of the training."""
    one = sized(settings, size)
    return 12 * one["layers"] * one["d_model"] ** 2 * one["steps"] * one["batch"] * one["length"]


def cells(settings: dict) -> list[dict]:
    found = []
    for size in range(len(settings["sizes"])):
        one = sized(settings, size)
        for name in settings["encodings"]:
            own = bool(position_parameters(lengths.encoding(name, one)))
            found += [{"size": size, "encoding": name, "rates": pair} for pair in rates.grid(one["lr"], own)]
    return found


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    """Losses in nats: at L to choose by, and at L and ``FAR`` L to report, as in :mod:`lengths`."""
    one = sized(settings, cell["size"])
    L = one["length"]
    try:
        model = lengths.trained(one, cell, seed, device)
    except FloatingPointError:
        lost = [tuning.DIVERGED] * 2
        return {"validation": tuning.DIVERGED, "mean": lost, "tail": lost}
    reported = lengths.read(model, *kjv().windows(one["windows"], FAR * L), [L, FAR * L], one["tail"])
    return {"validation": lengths.validation(model, one, cell, seed)} | reported


# ---- what is read off a record ----
def searched(record: Record, size: int, name: str, without: int | None = None) -> dict[tuple, float]:
    """``{rates: mean loss}`` in the text to choose by, over all seeds but one."""
    losses: dict[tuple, list[float]] = {}
    for run in record:
        if (run.cell["size"], run.cell["encoding"]) == (size, name) and run.seed != without:
            losses.setdefault(tuple(run.cell["rates"]), []).append(run.values["validation"])
    return {pair: statistics.fmean(found) for pair, found in losses.items()}


def chosen(record: Record, size: int, name: str, without: int | None = None) -> tuple:
    """The rates ``(lr, position_lr)`` by the mean losses over all seeds but one."""
    return rates.best(searched(record, size, name, without))


def reported(record: Record, size: int, name: str, what: str = "mean") -> list[list[float]]:
    """For each seed ``[loss at L, loss at FAR · L]``, at the rates that the other seeds choose."""
    tried: dict[tuple, list] = {}
    found = []
    for n, seed in enumerate(record.seeds):
        pair = chosen(record, size, name, without=seed)
        if pair not in tried:
            tried[pair] = record.values(what, size=size, encoding=name, rates=list(pair))
        found.append(tried[pair][n])
    return found


def best_bias(record: Record, size: int, without: int | None = None) -> str:
    """Which bias all seeds but one find better, each at its best rates."""
    biases = [name for name in BIASES if name in record.settings["encodings"]]
    return min(biases, key=lambda name: min(searched(record, size, name, without).values()))


def at_length(record: Record, size: int, name: str) -> list[float]:
    """The loss at L, for each seed."""
    return [x[0] for x in reported(record, size, name)]


def gap(record: Record, size: int) -> Interval:
    """Loss of RoPE minus that of the better bias, at L; the other seeds say which one that is."""
    of_bias = []
    for n, seed in enumerate(record.seeds):
        of_bias.append(at_length(record, size, best_bias(record, size, seed))[n])
    return difference(at_length(record, size, "rotary"), of_bias)


def rise(record: Record, size: int, name: str = "rotary") -> Interval:
    """How much higher the loss of the same last characters is at ``FAR`` L than at L."""
    return interval([far - near for near, far in reported(record, size, name, "tail")])


def per_decade(record: Record, measured: list[Interval]) -> Interval:
    """How much what was measured at each size changes when parameters × characters grow by 10: the slope of
    a straight line (least squares) for each seed."""
    x = decades(record)
    return interval(
        [
            statistics.linear_regression(x, y).slope
            for y in zip(*(one.values for one in measured), strict=True)
        ]
    )


def decades(record: Record) -> list[float]:
    return [math.log10(scale(record.settings, n)) for n in range(len(record.settings["sizes"]))]


def predicted(x: list[float], y: list[float], at: float) -> Interval:
    """The 95 % prediction interval of a straight line through the points: it allows for a bad fit.

    y ± t · s · √(1 + 1/n + (at − x̄)² / Σ(x − x̄)²), s² the squared residuals / (n − 2).
    """
    n, line, middle = len(x), statistics.linear_regression(x, y), statistics.fmean(x)
    residuals = [b - line.intercept - line.slope * a for a, b in zip(x, y, strict=True)]
    s = math.sqrt(sum(r * r for r in residuals) / (n - 2))
    spread = sum((a - middle) ** 2 for a in x)
    mean = line.intercept + line.slope * at
    half = t_975(n - 2) * s * math.sqrt(1 + 1 / n + (at - middle) ** 2 / spread)
    return Interval(mean, mean - half, mean + half)


# ---- figure, table, findings ----
def figure(record: Record):
    """Loss at L, its gap to RoPE, and the rise beyond L, against parameters × characters."""
    names, sizes = record.settings["encodings"], range(len(record.settings["sizes"]))
    losses = {name: torch.tensor([at_length(record, n, name) for n in sizes]) for name in names}
    rises = {name: torch.tensor([rise(record, n, name).values for n in sizes]) for name in names}
    gaps = {name: x - losses["rotary"] for name, x in losses.items()}
    shown = {
        "loss at L (nats)": losses,
        "loss at L minus that of RoPE (nats)": gaps,
        f"rise from L to {FAR} L (nats)": rises,
    }
    fig, axes = plots.panels(3, 1, size=(9, 12), sharex=True)
    for ax, (title, values) in zip(axes, shown.items(), strict=True):
        plots.lines(
            [10**x for x in decades(record)],
            {name: x.mean(1) for name, x in values.items()},
            ax=ax,
            spread={name: (x.amin(1), x.amax(1)) for name, x in values.items()},
            markers=True,
            logx=True,
            title=title,
            legend="beside" if ax is axes[0] else False,
            xlabel="parameters × characters of training" if ax is axes[-1] else "",
        )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    last = len(record.settings["sizes"]) - 1
    small, large = gap(record, 0), gap(record, last)
    return (
        f"Three panels of lines against parameters × characters at {last + 1} sizes: the loss at L, its "
        f"distance from that of RoPE, and its rise from L to {FAR} L. The gap from RoPE to the better "
        f"bias goes from {small.mean:+.3f} nats at the smallest size to {large.mean:+.3f} at the "
        f"largest, the rise of RoPE from {rise(record, 0).mean:+.2f} to {rise(record, last).mean:+.2f}."
    )


def table(record: Record) -> str:
    """Every size and encoding: rates that all seeds choose, loss at L, rise, as Markdown."""
    lines = [
        "| size | d_model, layers, steps | parameters × characters | encoding | rates (model; position) "
        f"| loss at L | rise to {FAR} L |",
        "|---|---|---|---|---|---|---|",
    ]
    for n, size in enumerate(record.settings["sizes"]):
        for name in record.settings["encodings"]:
            lr, own = chosen(record, n, name)
            lines.append(
                f"| {n + 1} | {size['d_model']}, {size['layers']}, {size['steps']} | "
                f"{scale(record.settings, n):.1e} | {name} | {lr:g}; {own:g} | "
                f"{statistics.fmean(at_length(record, n, name)):.3f} | {rise(record, n, name)} |"
            )
    return "\n".join(lines) + "\n"


def findings(record: Record) -> list[Finding]:
    sizes = range(len(record.settings["sizes"]))
    gaps, rises = [gap(record, n) for n in sizes], [rise(record, n) for n in sizes]
    closing, reading = per_decade(record, gaps), per_decade(record, rises)
    biases = " or ".join(name for name in BIASES if name in record.settings["encodings"])
    said = [
        Finding(
            "At every size a bias for each distance has a lower loss at the trained length than RoPE",
            "Press et al. 2022, §4",
            "with 247 M parameters and L = 3072, perplexity 17.60 with ALiBi, 18.57 with RoPE: 0.054 nats",
            f"loss of RoPE minus that of the better of {biases} at L: {_each(gaps)} nats",
            all_of(*(above(one, 0) for one in gaps)),
            why="at some size RoPE is as good or better",
        ),
        Finding(
            "The gap from RoPE to the biases closes with size",
            "what the use of RoPE in nearly all large models suggests",
            "",
            f"loss of RoPE minus that of the better of {biases} at L, {_change(gaps)}; for each factor of 10 "
            f"in parameters × characters {closing} nats{_further(record, gaps)}",
            all_of(
                above(gaps[0], 0).of("the gap at the smallest size"),
                below(closing, 0).of("its change for each factor of 10"),
            ),
            why="at the smallest size there is no gap that could close"
            if gaps[0].high <= 0
            else "over these sizes it does not shrink, so the reason for RoPE in large models is another one",
        ),
        Finding(
            "A bigger model reads further with RoPE",
            "a question of this course",
            "",
            f"rise of the loss from L to {FAR} L, {_change(rises)}; for each factor of 10 {reading} "
            f"nats{_further(record, rises)}",
            below(reading, 0),
            why="a model learns about the distances that it is trained on and about no others, and a bigger "
            "one has more to lose",
        ),
    ]
    if "sinusoidal" in record.settings["encodings"]:
        ahead = [
            difference(at_length(record, n, "sinusoidal"), at_length(record, n, "rotary")) for n in sizes
        ]
        said.append(
            Finding(
                "RoPE has a lower loss than sinusoidal positions at every size",
                "Su et al. 2021, Table 1",
                "BLEU 27.5 in place of 27.3 in translation",
                f"sinusoidal minus RoPE at L: {_each(ahead)} nats",
                all_of(*(above(one, 0) for one in ahead)),
                why="at some size the sums are as good",
            )
        )
    slowest, fastest = tuning.at_the_edges(
        {
            f"size {n + 1}": {name: searched(record, n, name) for name in record.settings["encodings"]}
            for n in sizes
        }
    )
    said.append(
        Finding(
            "The grids are wide enough: no encoding would gain from a rate outside of them",
            "",
            "",
            f"of {len(sizes) * len(record.settings['encodings'])} choices, best at the slowest rate: "
            f"{'; '.join(slowest) or 'none'}; at the fastest: {'; '.join(fastest) or 'none'}",
            fact(not slowest and not fastest, f"none is best at the edge by more than {rates.EQUAL} nats"),
            why="where an encoding is best at the edge, another step might still have helped it",
        )
    )
    return said


def _each(measured: list[Interval]) -> str:
    return ", ".join(map(str, measured))


def _change(measured: list[Interval]) -> str:
    return f"at the smallest size {measured[0]}, at the largest {measured[-1]}"


def _further(record: Record, measured: list[Interval]) -> str:
    """What a straight line would mean at a thousand times the largest scale; empty with two sizes."""
    x = decades(record)
    if len(x) < 3:
        return ""
    there = predicted(x, [one.mean for one in measured], x[-1] + 3)
    return (
        f". A straight line through all sizes would lead to {there} nats at a thousand times the "
        "largest; whether it stays straight, nothing here shows"
    )


SMALL = {"head_dim": 16, "length": 64, "batch": 16, "lr": 1.5e-2, "windows": 32, "tail": 32}

EXPERIMENT = Experiment(
    "scale",
    "Does the gap close with size?",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    table=table,
    setup=in_words(
        "L = {length} characters of the King James Bible; steps of {batch} texts; each encoding "
        "at learning rates of its own, searched here at each size"
    ),
    presets={
        "live": SMALL
        | {
            "encodings": ["rotary", "alibi"],
            "windows": 12,
            "sizes": [
                {"d_model": 16, "layers": 1, "steps": 50},
                {"d_model": 32, "layers": 2, "steps": 100},
                {"d_model": 48, "layers": 2, "steps": 150},
            ],
        },
        "full": SMALL
        | {
            "encodings": list(ENCODINGS),
            "sizes": [
                {"d_model": 32, "layers": 2, "steps": 150},
                {"d_model": 48, "layers": 2, "steps": 300},
                {"d_model": 64, "layers": 3, "steps": 450},
                {"d_model": 96, "layers": 3, "steps": 1120},
            ],
        },
        # up to 116 million parameters, and less text than there is; an estimated (not timed) hour and a half
        # on one GPU: larger models than in other presets of this name, and a search of their rates
        "gpu": SMALL
        | {
            "head_dim": 64,
            "length": 512,
            "batch": 32,
            "lr": 6e-3,
            "tail": 256,
            "encodings": list(ENCODINGS),
            "sizes": [
                {"d_model": 128, "layers": 4, "steps": 50},
                {"d_model": 256, "layers": 6, "steps": 100},
                {"d_model": 512, "layers": 8, "steps": 150},
                {"d_model": 896, "layers": 12, "steps": 200},
            ],
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2), "gpu": (0, 1, 2)},
)
