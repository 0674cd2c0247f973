"""Does the gap close with size? Encodings at several sizes of model and training, each at rates of its own.

At the size of this course a bias for each distance has a lower loss at the trained length than RoPE, and yet
nearly all large models rotate. Here the same comparison is made again and again while models grow.
Parameters are those of the layers, 12 · layers · d_model², without embeddings, norms and biases.

In the presets for a CPU the model and its training grow *together*, over two orders of magnitude of
parameters × characters: which of the two does what, such a record can't tell. In the preset ``gpu`` they vary
*apart*: each size with each length of the training, and a slope for each of the two.

The search of rates is part of the record. Every encoding is trained at every size with each pair of rates of
a grid whose middle goes down with d_model, because a wider model wants a slower rate. What is reported of a
seed is measured at the rates that have the lowest loss with all *other* seeds, on a text that is neither
trained on nor reported. So no number was chosen by how well it came out itself. With the grid of
:mod:`rates`, rates that are as good give way to the middle ones, as in all other experiments; there a verdict
has to be the same without this rule. The preset ``gpu`` has no such rule, and searches RoPE's base, too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from tutorial_lib import plots
from tutorial_lib.data import kjv
from tutorial_lib.training import position_parameters

from ..verdicts import OPEN, Outcome, above, all_of, below, fact
from . import lengths, rates, tuning
from .record import Record
from .statistics import Interval, difference, interval, t_975
from .sweep import Experiment, Finding, in_words, spoken

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
    return one | {"heads": one["d_model"] // one["head_dim"], "lr": one["lr"] * WIDTH / one["d_model"]}


def parameters(settings: dict, size: int) -> int:
    """Those of the layers."""
    one = sized(settings, size)
    return 12 * one["layers"] * one["d_model"] ** 2


def characters(settings: dict, size: int) -> int:
    """Those of the training."""
    one = sized(settings, size)
    return one["steps"] * one["batch"] * one["length"]


def scale(settings: dict, size: int) -> int:
    """Parameters of the layers × characters of the training."""
    return parameters(settings, size) * characters(settings, size)


def tries(one: dict, name: str) -> list[dict]:
    """What is searched for an encoding, of the settings of one size: parts of cells.

    Rates for the model; with each, where the settings name them, rates for the encoding's own parameters or
    bases of RoPE. They go by no width: a bias has the size of a score, whatever the model is.
    """
    own = bool(position_parameters(lengths.encoding(name, one)))
    if "factors" not in one:
        return [{"rates": pair} for pair in rates.grid(one["lr"], own)]
    lrs = [float(f"{one['lr'] * factor:.3g}") for factor in one["factors"]]
    if own:
        return [{"rates": [lr, position_lr]} for lr in lrs for position_lr in one["position_lr"]]
    bases = [{"base": base} for base in one["bases"]] if name == "rotary" else [{}]
    return [{"rates": [lr, lr]} | base for lr in lrs for base in bases]


def cells(settings: dict) -> list[dict]:
    return [
        {"size": size, "encoding": name} | tried
        for size in range(len(settings["sizes"]))
        for name in settings["encodings"]
        for tried in tries(sized(settings, size), name)
    ]


@contextmanager
def matmul(precision: str) -> Iterator[None]:
    """Multiply matrices of float32 like this: ``"high"`` is TF32 on a GPU."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    """Losses in nats: at L to choose by, and at L and ``FAR`` L to report, as in :mod:`lengths`."""
    one = sized(settings, cell["size"]) | {"base": cell.get("base")}
    L = one["length"]
    with matmul(one.get("matmul", "highest")):
        try:
            model = lengths.trained(one, cell, seed, device)
        except FloatingPointError:
            lost = [tuning.DIVERGED] * 2
            return {"validation": tuning.DIVERGED, "mean": lost, "tail": lost}
        reported = lengths.read(model, *kjv().windows(one["windows"], FAR * L), [L, FAR * L], one["tail"])
        return {"validation": lengths.validation(model, one, cell, seed)} | reported


# ---- what is read off a record ----
def trial(cell: dict) -> tuple[float, float]:
    """What is searched: the model's rate, and that of the encoding's own parameters or the base of RoPE."""
    lr, position_lr = cell["rates"]
    return lr, cell.get("base", position_lr)


def searched(record: Record, size: int, name: str, without: int | None = None) -> dict[tuple, float]:
    """``{trial: mean loss}`` in the text to choose by, over all seeds but one."""
    losses: dict[tuple, list[float]] = {}
    for run in record:
        if (run.cell["size"], run.cell["encoding"]) == (size, name) and run.seed != without:
            losses.setdefault(trial(run.cell), []).append(run.values["validation"])
    return {tried: statistics.fmean(found) for tried, found in losses.items()}


def chosen(record: Record, size: int, name: str, without: int | None = None) -> tuple:
    """The trial that the mean losses over all seeds but one choose."""
    losses = searched(record, size, name, without)
    return min(losses, key=losses.__getitem__) if "factors" in record.settings else rates.best(losses)


def at_lowest(record: Record) -> Record:
    """The same runs, read at the lowest losses, however near the next ones are."""
    return replace(record, settings=record.settings | {"factors": rates.FACTORS})


def reported(record: Record, size: int, name: str, what: str = "mean") -> list[list[float]]:
    """For each seed ``[loss at L, loss at FAR · L]``, as tried by the choice of the other seeds."""
    found = {
        (trial(run.cell), run.seed): run.values[what]
        for run in record
        if (run.cell["size"], run.cell["encoding"]) == (size, name)
    }
    return [found[chosen(record, size, name, without=seed), seed] for seed in record.seeds]


def best_bias(record: Record, size: int, without: int | None = None) -> str:
    """Which bias all seeds but one find better, each at its best rates."""
    return min(biases_in(record), key=lambda name: min(searched(record, size, name, without).values()))


def biases_in(record: Record) -> list[str]:
    return [name for name in BIASES if name in record.settings["encodings"]]


def at_length(record: Record, size: int, name: str) -> list[float]:
    """The loss at L, for each seed."""
    return [x[0] for x in reported(record, size, name)]


def gap(record: Record, size: int, bias: str | None = None) -> Interval:
    """Loss of RoPE minus that of a bias, at L; by default of the better one, which the other seeds choose."""
    of_bias = []
    for n, seed in enumerate(record.seeds):
        of_bias.append(at_length(record, size, bias or best_bias(record, size, seed))[n])
    return difference(at_length(record, size, "rotary"), of_bias)


def rise(record: Record, size: int, name: str = "rotary") -> Interval:
    """How much higher the loss of the same last characters is at ``FAR`` L than at L."""
    return interval([far - near for near, far in reported(record, size, name, "tail")])


def apart(record: Record) -> bool:
    """Whether size and training vary apart: each model is trained for each number of steps."""
    sizes = record.settings["sizes"]
    models, steps = {(size["d_model"], size["layers"]) for size in sizes}, {size["steps"] for size in sizes}
    return min(len(models), len(steps)) > 1 and len(sizes) == len(models) * len(steps)


def slopes(measured: list[Interval], *x: list[float]) -> list[Interval]:
    """By how much what was measured changes with each of ``x``: a plane (least squares) for each seed."""
    given = torch.tensor([[1.0] * len(measured), *x], dtype=torch.float64).T
    wanted = torch.tensor([one.values for one in measured], dtype=torch.float64)
    return [interval(slope) for slope in torch.linalg.lstsq(given, wanted).solution[1:].tolist()]


def per_decade(record: Record, measured: list[Interval]) -> Interval:
    """The change of what was measured at each size when parameters × characters grow by 10."""
    return slopes(measured, decades(record))[0]


def decades(record: Record, what: Callable[[dict, int], int] = scale) -> list[float]:
    return [math.log10(what(record.settings, n)) for n in range(len(record.settings["sizes"]))]


def of_each(record: Record, measured: list[Interval]) -> list[Interval]:
    """The change when parameters grow by 10, and that when characters do, where they vary apart."""
    return slopes(measured, decades(record, parameters), decades(record, characters))


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
    if apart(record):
        return _gaps_apart(record)
    names, sizes = record.settings["encodings"], range(len(record.settings["sizes"]))
    losses = {spoken(name): torch.tensor([at_length(record, n, name) for n in sizes]) for name in names}
    rises = {spoken(name): torch.tensor([rise(record, n, name).values for n in sizes]) for name in names}
    gaps = {name: x - losses[spoken("rotary")] for name, x in losses.items()}
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


def _gaps_apart(record):
    """The gaps from RoPE to the better bias and to each, against parameters; a line for each training."""
    sizes = range(len(record.settings["sizes"]))
    trainings: dict[str, list[int]] = {}
    for n in sizes:
        trainings.setdefault(f"{characters(record.settings, n) / 1e6:.1f} M characters", []).append(n)
    models = [parameters(record.settings, n) for n in next(iter(trainings.values()))]
    shown = {"the better bias": None} | {name: name for name in biases_in(record)}
    fig, axes = plots.panels(len(shown), 1, size=(9, 4 * len(shown)), sharex=True)
    for ax, (title, bias) in zip(axes, shown.items(), strict=True):
        values = {
            label: torch.tensor([gap(record, n, bias).values for n in its])
            for label, its in trainings.items()
        }
        plots.lines(
            models,
            {label: x.mean(1) for label, x in values.items()},
            ax=ax,
            markers=True,
            logx=True,
            spread={label: (x.amin(1), x.amax(1)) for label, x in values.items()},
            title=f"loss of RoPE minus that of {title}, at L (nats)",
            legend=ax is axes[0],
            xlabel="parameters" if ax is axes[-1] else "",
        )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    last = len(record.settings["sizes"]) - 1
    small, large = gap(record, 0), gap(record, last)
    if apart(record):
        by_size, by_training = of_each(record, [gap(record, n) for n in range(last + 1)])
        return (
            "Panels of lines against parameters, one line for each training: by how much the loss of "
            "RoPE at L exceeds that of the better bias, and of each bias. The better bias is ahead by "
            f"{small.mean:+.3f} nats with the smallest model and training and by {large.mean:+.3f} with "
            f"the largest; {by_size.mean:+.3f} for each factor of 10 in parameters, "
            f"{by_training.mean:+.3f} in characters."
        )
    return (
        f"Three panels of lines against parameters × characters at {last + 1} sizes: the loss at L, its "
        f"distance from that of RoPE, and its rise from L to {FAR} L. The gap from RoPE to the better "
        f"bias goes from {small.mean:+.3f} nats at the smallest size to {large.mean:+.3f} at the "
        f"largest, the rise of RoPE from {rise(record, 0).mean:+.2f} to {rise(record, last).mean:+.2f}."
    )


def table(record: Record) -> str:
    """Every size and encoding: what all seeds choose, loss at L, rise; where size and training vary apart,
    the gap from RoPE, too. As Markdown."""
    more = " loss of RoPE minus this |" if apart(record) else ""
    lines = [
        "| size | width, layers, steps | parameters × characters | encoding | rates (model; position) "
        f"| loss at L | rise to {FAR} L |{more}",
        "|---" * (8 if more else 7) + "|",
    ]
    for n, size in enumerate(record.settings["sizes"]):
        for name in record.settings["encodings"]:
            lr, own = chosen(record, n, name)
            second = f"base {own:g}" if name == "rotary" and "bases" in record.settings else f"{own:g}"
            ahead = f" {gap(record, n, name) if name in BIASES else ''} |" if more else ""
            lines.append(
                f"| {n + 1} | {size['d_model']}, {size['layers']}, {size['steps']} | "
                f"{scale(record.settings, n):.1e} | {name} | {lr:g}; {second} | "
                f"{statistics.fmean(at_length(record, n, name)):.3f} | {rise(record, n, name)} |{ahead}"
            )
    return "\n".join(lines) + "\n"


ELSEWHERE = (
    "with 1.4 B parameters, perplexity 9.393 with a learned table, 9.234 with T5's bias, 8.784 with "
    "RoPE: T5's bias is behind by 0.050 nats. One size, one training, no ALiBi (EleutherAI 2021)"
)


def findings(record: Record) -> list[Finding]:
    """What the record says. Where rates that are as good give way to the middle ones, this rule decides
    nothing: a verdict that is another one at the lowest losses is not shown."""
    said = _said(record)
    if "factors" in record.settings:
        return said
    return [
        one
        if one.verdict == other.verdict
        else replace(
            one,
            outcome=Outcome(OPEN, one.outcome.condition),
            open_why="it depends on the choice of rates",
            ours=f"{one.ours}. At the rates of the lowest loss, however near the next one is: {other.ours}",
        )
        for one, other in zip(said, _said(at_lowest(record)), strict=True)
    ]


def _said(record: Record) -> list[Finding]:
    sizes = range(len(record.settings["sizes"]))
    gaps = [gap(record, n) for n in sizes]
    biases = " or ".join(biases_in(record))
    said = [
        Finding(
            "At every size, after a short training and a long one, a bias for each distance has a lower loss "
            "at the trained length than RoPE"
            if apart(record)
            else "At every size a bias for each distance has a lower loss at the trained length than RoPE",
            "",
            ELSEWHERE,
            f"loss of RoPE minus that of the better of {biases} at L: {_each(record, gaps)} nats",
            all_of(*(above(one, 0) for one in gaps)),
            why="at some size RoPE is as good or better",
        )
    ]
    said += (_each_alone if apart(record) else _together)(record, gaps)
    if "sinusoidal" in record.settings["encodings"]:
        ahead = [
            difference(at_length(record, n, "sinusoidal"), at_length(record, n, "rotary")) for n in sizes
        ]
        said.append(
            Finding(
                "RoPE has a lower loss than sinusoidal positions at every size",
                "Su et al. 2021, Table 1",
                "BLEU 27.5 in place of 27.3 in translation",
                f"loss of sinusoidal positions minus that of RoPE at L: {_each(record, ahead)} nats",
                all_of(*(above(one, 0) for one in ahead)),
                why="at some size the sums are as good",
            )
        )
    return [*said, _wide_enough(record)]


def _together(record, gaps):
    """Size and training grow together: what changes with both."""
    rises = [rise(record, n) for n in range(len(gaps))]
    closing, reading = per_decade(record, gaps), per_decade(record, rises)
    biases = " or ".join(biases_in(record))
    return [
        Finding(
            "Where model and training grow together, the gap from RoPE to the biases shrinks",
            "",
            "",
            f"loss of RoPE minus that of the better of {biases} at L: {_change(gaps)}; for each factor of 10 "
            f"in parameters × characters {closing} nats{_further(record, gaps)}",
            all_of(
                above(gaps[0], 0).of("the gap at the smallest size"),
                below(closing, 0).of("its change for each factor of 10"),
            ),
            why="at the smallest size there is no gap that could close"
            if gaps[0].high <= 0
            else "over these sizes it does not shrink",
        ),
        Finding(
            "A bigger model that is trained for longer reads further with RoPE",
            "",
            "",
            f"rise of the loss from L to {FAR} L, for each factor of 10: {reading} nats. The rise: "
            f"{_change(rises)} nats{_further(record, rises)}",
            below(reading, 0),
            why="a model learns about the distances that it is trained on and about no others, and a bigger "
            "one has more to lose",
        ),
    ]


def _each_alone(record, gaps):
    """Size and training vary apart: what changes with each, the other as it is."""
    sizes, seeds = range(len(gaps)), len(record.seeds)
    by_size, by_training = of_each(record, gaps)
    reading, _ = of_each(record, [rise(record, n) for n in sizes])
    alone = {name: of_each(record, [gap(record, n, name) for n in sizes]) for name in biases_in(record)}
    middle = interval([statistics.fmean(its) for its in zip(*(one.values for one in gaps), strict=True)])
    few = (
        f"the interval of {seeds} seeds reaches over the limit; another seed costs "
        f"{record.seconds / seeds / 60:.0f} minutes of process time on this device"
    )

    def closes(what, of_what, which, source, theirs):
        each = "; ".join(f"to {name} alone {found[which]}" for name, found in alone.items())
        slope = (by_size, by_training)[which]
        return Finding(
            f"The gap from RoPE to the biases closes with {what}",
            source,
            theirs,
            f"loss of RoPE minus that of the better bias at L, for each factor of 10 in {of_what} {slope} "
            f"nats ({each}); mean of all sizes and trainings {middle}",
            all_of(
                above(middle, 0).of("the gap"),
                below(slope, 0).of(f"its change for each factor of 10 in {of_what}"),
            ),
            why="there is no gap that could close"
            if middle.high <= 0
            else f"with more {of_what} it does not shrink",
            open_why=few,
        )

    return [
        closes(
            "size", "parameters", 0, "what the use of RoPE in nearly all large models suggests", ELSEWHERE
        ),
        closes("training", "characters", 1, "", ""),
        Finding(
            "A bigger model reads further with RoPE",
            "",
            "",
            f"rise of the loss from L to {FAR} L, for each factor of 10 in parameters: {reading} nats",
            below(reading, 0),
            why="a bigger model learns no more about distances that it never met",
            open_why=few,
        ),
    ]


def _wide_enough(record):
    """Whether a choice lies at the edge of what was tried: of rates, or of what was searched beside them."""
    sizes, names = range(len(record.settings["sizes"])), record.settings["encodings"]
    every = {f"size {n + 1}": {name: searched(record, n, name) for name in names} for n in sizes}
    slowest, fastest = tuning.at_the_edges(every)
    ours = (
        f"of {len(sizes) * len(names)} choices, best at the slowest rate: "
        f"{'; '.join(slowest) or 'none'}; at the fastest: {'; '.join(fastest) or 'none'}"
    )
    claim = "The grids are wide enough: no encoding would gain from a rate outside of them"
    edges = slowest + fastest
    if "bases" in record.settings:
        claim = "The grids of rates and bases are wide enough: no encoding would gain from another step"
        turned = {
            size: {
                name: {(second, lr): loss for (lr, second), loss in losses.items()}
                for name, losses in found.items()
                if len(losses) > len({lr for lr, _ in losses})
            }
            for size, found in every.items()
        }
        lowest, highest = tuning.at_the_edges(turned)
        ours += (
            f"; at the lowest rate of a bias or base of RoPE: {'; '.join(lowest) or 'none'}; at the "
            f"highest: {'; '.join(highest) or 'none'}"
        )
        edges += lowest + highest
    elif faster := tuning.at_the_edges(tuning.beside(every))[1]:
        ours += f"; at the faster of two rates for the encoding's own parameters: {'; '.join(faster)}"
        edges += faster
    return Finding(
        claim,
        "",
        "",
        ours,
        fact(not edges, f"none is best at the edge by more than {rates.EQUAL} nats"),
        why="where an encoding is best at the edge, another step might still have helped it",
    )


def _each(record: Record, measured: list[Interval]) -> str:
    settings, said = record.settings, []
    for n, one in enumerate(measured):
        many = parameters(settings, n)
        many = round(many, 1 - int(math.log10(many)))
        said.append(f"{many:,} parameters, {settings['sizes'][n]['steps']:,} steps {one}")
    return "; ".join(said)


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

SETUP = in_words(
    "L = {length} characters of the King James Bible; steps of {batch} texts; each encoding "
    "at learning rates of its own, searched here at each size"
)

EXPERIMENT = Experiment(
    "scale",
    "Does the gap close with size?",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    table=table,
    setup=lambda settings: (
        SETUP(settings)
        + ("; RoPE at a base of its own, too; matrices are multiplied in TF32" if "bases" in settings else "")
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
        # size and training apart, with less text than there is: no character is read twice. Five seeds are
        # what one H200 finished in 24 minutes, 16 processes side by side
        "gpu": {
            "head_dim": 32,
            "length": 256,
            "batch": 16,
            "windows": 32,
            "tail": 128,
            "matmul": "high",
            "encodings": ["rotary", *BIASES],
            "factors": [0.5, 1, 2],
            "position_lr": [0.1, 0.4, 1.6],
            "bases": [10, 100, 10000],
            "sizes": [
                {"d_model": d_model, "layers": layers, "lr": lr, "steps": steps}
                for steps in (225, 900)
                for d_model, layers, lr in (
                    (64, 2, 1.5e-2),
                    (128, 3, 1.5e-2),
                    (256, 4, 1.1e-2),
                    (384, 4, 1.1e-2),
                )
            ],
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2), "gpu": (0, 1, 2, 3, 4)},
)
