"""The search of learning rates: what each encoding is given to choose from, and what it chooses.

For every encoding of the experiments that compare trained encodings, and every pair of rates of the grid of
:mod:`rates`, one training as in the experiment, and one number: ``loss`` in nats, at the trained length, on
data that are neither trained on nor reported.
"""

from __future__ import annotations

import statistics

import torch

from tutorial_lib import plots
from tutorial_lib.training import position_parameters

from ..verdicts import fact
from . import hybrid, images, lengths, rates, shift, tasks
from .record import Record
from .sweep import Experiment, Finding, spoken

MODULES = {module.EXPERIMENT.name: module for module in (lengths, shift, tasks, hybrid, images)}
DIVERGED = 100.0
"""The loss of a training that ended in no number."""


def settings_of(name: str, preset: str, **changes) -> dict:
    """The complete settings of an experiment, without what does not matter here."""
    module = MODULES[name]
    settings = getattr(module, "SIZES", {}) | module.EXPERIMENT.presets[preset] | changes
    return {key: value for key, value in settings.items() if key not in ("protocol", "scalings")}


def cells(settings: dict) -> list[dict]:
    found = []
    for name, one in settings.items():
        for cell in MODULES[name].cells(one):
            made = MODULES[name].encoding(cell["encoding"], one)
            found += [
                {"of": name} | cell | {"rates": pair}
                for pair in rates.grid(one["lr"], own=bool(position_parameters(made)))
            ]
    return found


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    module, one = MODULES[cell["of"]], settings[cell["of"]]
    try:
        model = module.trained(one, cell, seed, device)
    except FloatingPointError:
        return {"loss": DIVERGED}
    return {"loss": min(DIVERGED, module.validation(model, one, cell, seed))}


def searched(record: Record) -> dict[str, dict[str, dict[tuple[float, float], float]]]:
    """``{experiment: {encoding, with its task if there are several: {rates: mean loss}}}``."""
    found: dict = {}
    for cell in record.cells():
        label = " · ".join(str(cell[key]) for key in ("task", "encoding") if key in cell)
        loss = statistics.fmean(run.values["loss"] for run in record if run.cell == cell)
        found.setdefault(cell["of"], {}).setdefault(label, {})[tuple(cell["rates"])] = loss
    return found


def at_one_rate(settings: dict, name: str) -> tuple[float, float]:
    """The pair of rates that all encodings of an experiment share in the other protocol."""
    return (settings[name]["lr"],) * 2


def figure(record: Record):
    """For the encodings of the first experiment, how much of its loss one rate for all costs each."""
    name, found = next(iter(searched(record).items()))
    lost = {
        spoken(label): losses[at_one_rate(record.settings, name)] - min(losses.values())
        for label, losses in found.items()
    }
    return plots.bars(
        dict(sorted(lost.items(), key=lambda pair: -pair[1])),
        title="What one learning rate for all costs",
        xlabel="nats at the trained length",
        size=(9, 1.5 + 0.42 * len(lost)),
    )


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    every = searched(record)
    chosen = [rates.best(losses) for found in every.values() for losses in found.values()]
    faster = sum(own > lr for lr, own in chosen)
    return (
        f"Bars: for each encoding of {next(iter(every))}, by how much its loss is higher at one learning "
        f"rate for all than at its best. In {faster} of {len(chosen)} searches, each for an encoding in "
        "one experiment or task, a faster rate is chosen for its own parameters."
    )


def findings(record: Record) -> list[Finding]:
    every = searched(record)
    saved = {
        f"{name}: {label}": losses[at_one_rate(record.settings, name)] - min(losses.values())
        for name, found in every.items()
        for label, losses in found.items()
    }
    worst = sorted(saved, key=saved.__getitem__, reverse=True)
    differ = [name for name in worst if saved[name] > rates.EQUAL]
    slowest, fastest = at_the_edges(every)
    _lowest, of_position = at_the_edges(beside(every))
    return [
        Finding(
            "One learning rate for all encodings is a fair comparison",
            "what most comparisons do",
            "",
            f"in {len(differ)} of {len(worst)} searches, each for an encoding in one experiment or task, "
            f"rates of its own lower the loss at the trained length by more than {rates.EQUAL} nats. Most: "
            + "; ".join(f"{name} {saved[name]:.3f}" for name in worst[:5])
            + f". Means of {len(record.seeds)} seeds",
            fact(not differ, f"none of {len(worst)} differs by more than {rates.EQUAL} nats"),
            why="parameters of position that start near 0 have far to go, and an encoding that makes a task "
            "easy can do with a slower rate",
        ),
        Finding(
            "The grid is wide enough: no encoding would gain from a rate outside of it",
            "",
            "",
            f"of {len(worst)} searches, {len(slowest)} were best at the slowest rate and {len(fastest)} at "
            f"the fastest; of those with two rates for an encoding's own parameters, {len(of_position)} at "
            f"the faster one. Those best at the slowest rate ({len(slowest)}): {together(slowest)}. At the "
            f"fastest ({len(fastest)}): {together(fastest)}. For their own parameters, the faster one is "
            f"best for {len(of_position)}: {together(of_position)}",
            fact(
                not slowest and not fastest and not of_position,
                f"none is best at the edge, counting those by more than {rates.EQUAL} nats",
            ),
            why="where an encoding is best at the edge, another step might still have helped it; "
            "`constants` goes on from there, until no step helps",
        ),
    ]


def together(names: list[str]) -> str:
    """Those of one experiment behind its name.

    >>> together(["tasks: copy · t5", "tasks: reverse · t5", "hybrid: sum"])
    'tasks (copy · t5, reverse · t5); hybrid (sum)'
    """
    found: dict[str, list[str]] = {}
    for experiment, label in (name.split(": ", 1) for name in names):
        found.setdefault(experiment, []).append(label)
    return "; ".join(f"{experiment} ({', '.join(labels)})" for experiment, labels in found.items()) or "none"


def beside(every: dict) -> dict:
    """The same losses by the rate of the encoding's own parameters, as a multiple of the model's."""
    return {
        name: {
            label: {(round(own / lr), lr): loss for (lr, own), loss in losses.items()}
            for label, losses in found.items()
            if len(losses) > len({lr for lr, _ in losses})
        }
        for name, found in every.items()
    }


def at_the_edges(every: dict) -> tuple[list[str], list[str]]:
    """Those that do better, by more than ``rates.EQUAL``, at the model's slowest rate than at any faster one,
    and those that do so at the fastest than at any slower one."""
    edges: tuple[list[str], list[str]] = ([], [])
    for name, found in every.items():
        for label, losses in found.items():
            for edge, names in zip((min, max), edges, strict=True):
                last = edge(lr for lr, _ in losses)
                there = min(loss for (lr, _), loss in losses.items() if lr == last)
                elsewhere = [loss for (lr, _), loss in losses.items() if lr != last]
                if elsewhere and there < min(elsewhere) - rates.EQUAL:
                    names.append(f"{name}: {label}")
    return edges


EXPERIMENT = Experiment(
    "tuning",
    "A rate for each",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=lambda settings: (
        "Models, texts and steps are those of "
        + "; ".join(f"“{MODULES[name].EXPERIMENT.title}”" for name in settings)
    ),
    presets={
        "live": {"lengths": settings_of("lengths", "live", encodings=["rotary", "clipped"])},
        "full": {name: settings_of(name, "full") for name in MODULES},
    },
    # seeds that no experiment uses, so nothing that is reported there was used to choose here
    seeds={"live": (100,), "full": (100, 101)},
)
