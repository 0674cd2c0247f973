"""Five tasks, trained short and tested long: the best encoding changes from task to task.

Accuracy is that of the last 8 answers of a sequence, at each length.
"""

from __future__ import annotations

import statistics

import torch

from .. import plots
from ..data import copying, first_token, induction, steps_back
from ..encodings import build
from ..model import Config, Transformer
from ..training import accuracy, cross_entropy, seeded, train
from . import rates
from .record import Record
from .statistics import difference, interval
from .sweep import Experiment, Finding

VALUES, LAST = 16, 8
MULTIPLES = (1, 2, 4, 16)
SIZES = {"d_model": 64, "layers": 2, "heads": 4, "length": 16, "lr": 9e-3}
"""Where a preset does not say otherwise."""

ENCODINGS = {
    "none": lambda d_model, heads, L: build("none"),
    "sinusoidal": lambda d_model, heads, L: build("sinusoidal", dim=d_model),
    "rotary": lambda d_model, heads, L: build("rotary", head_dim=d_model // heads),
    "xpos": lambda d_model, heads, L: build("xpos", head_dim=d_model // heads),
    "shaw": lambda d_model, heads, L: build("shaw", head_dim=d_model // heads, max_distance=L // 2),
    "t5": lambda d_model, heads, L: build("t5", n_heads=heads, n_buckets=16, max_distance=3 * L // 4),
    "alibi": lambda d_model, heads, L: build("alibi", n_heads=heads),
}
TASKS = ("5 back", "first token", "induction", "copy", "reverse")


def draw(task: str, size: int, generator: torch.Generator, *, length: int = 16, training: bool = False):
    """Ids and labels of a batch: ``length`` tokens, of them half a list to copy.

    In training, the lists have 1 to ``length / 2`` tokens.
    """
    if task in ("copy", "reverse"):
        n = length // 2
        return copying(size, generator, longest=n, shortest=1 if training else n, reverse=task == "reverse",
                       n_values=VALUES)
    options = {"length": length, "n_values": VALUES}
    if task == "5 back":
        return steps_back(size, generator, k=5, **options)
    return {"first token": first_token, "induction": induction}[task](size, generator, **options)


def cells(settings: dict) -> list[dict]:
    return rates.cells("tasks", SIZES | settings, [
        {"task": task, "encoding": name} for task in TASKS for name in settings["encodings"]])


def encoding(name: str, settings: dict):
    """The encoding ``name`` for a model and a length as in the settings."""
    return ENCODINGS[name](*(settings[x] for x in ("d_model", "heads", "length")))


def trained(settings: dict, cell: dict, seed: int, device: torch.device) -> Transformer:
    """The model of a cell."""
    settings = SIZES | settings
    config = Config(VALUES + 1, settings["d_model"], n_heads=settings["heads"], n_layers=settings["layers"],
                    n_out=VALUES)
    model = seeded(lambda: Transformer(config, encoding(cell["encoding"], settings)), seed)
    options = {"length": settings["length"], "training": True}
    train(model, lambda generator: draw(cell["task"], settings["batch"], generator, **options),
          settings["steps"], **rates.of(settings, cell), seed=seed, device=device, progress=False)
    return model


@torch.no_grad()
def validation(model: Transformer, settings: dict, cell: dict, seed: int) -> float:
    """Loss at the trained length of sequences that are neither trained on nor reported."""
    generator = torch.Generator().manual_seed(2000 + seed)
    tokens, targets = draw(cell["task"], settings["test"], generator, length=(SIZES | settings)["length"])
    device = next(model.parameters()).device
    return cross_entropy(model(tokens.to(device)), targets.to(device)).item()


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    model, L = trained(settings, cell, seed, device), (SIZES | settings)["length"]
    test = torch.Generator().manual_seed(1000 + seed)
    return {"accuracy": [last_accuracy(model, *draw(cell["task"], settings["test"], test, length=L * m))
                         for m in MULTIPLES]}


def last_accuracy(model, tokens, targets) -> float:
    """Accuracy of the last 8 places."""
    earlier = torch.arange(targets.shape[1]) < targets.shape[1] - LAST
    return accuracy(model, tokens, targets.masked_fill(earlier, -100))


def figure(record: Record):
    fig, axes = plots.panels(2, 3, size=(13.5, 8.5), sharey=True)
    for ax, task in zip(axes.flat, TASKS, strict=False):
        got = {name: record.values("accuracy", task=task, encoding=name)
               for name in record.settings["encodings"]}
        z = [[statistics.fmean(x) for x in zip(*values, strict=True)] for values in got.values()]
        plots.heat(z, ax=ax, title=task, xticks=[f"{m}×" for m in MULTIPLES], yticks=list(got), limits=(0, 1),
                   cmap="viridis", colorbar=None, values=".2f")
        ax.set_aspect("auto")
    axes.flat[-1].axis("off")
    return fig


def _at(record: Record, task: str, name: str, times: int) -> list[float]:
    column = MULTIPLES.index(times)
    return [values[column] for values in record.values("accuracy", task=task, encoding=name)]


def winners(record: Record, task: str, times: int = 4) -> list[str]:
    """The encoding with the best mean, and all that are not surely worse; best first."""
    names = record.settings["encodings"]
    order = sorted(names, key=lambda name: -interval(_at(record, task, name, times)).mean)
    best = _at(record, task, order[0], times)
    return [name for name in order if not difference(best, _at(record, task, name, times)).positive]


def reciprocal_ranks(record: Record, times: int = 2) -> dict[str, list[float]]:
    """1 / rank by accuracy, as a mean over tasks, for each seed; equal accuracies share their ranks."""
    names = record.settings["encodings"]
    got: dict[str, list[list[float]]] = {name: [[] for _ in record.seeds] for name in names}
    for task in TASKS:
        accuracy = {name: _at(record, task, name, times) for name in names}
        for n in range(len(record.seeds)):
            for name in names:
                above = sum(accuracy[other][n] > accuracy[name][n] for other in names)
                equal = sum(accuracy[other][n] == accuracy[name][n] for other in names)
                got[name][n].append(1 / (above + (equal + 1) / 2))
    return {name: [statistics.fmean(ranks) for ranks in seeds] for name, seeds in got.items()}


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    best = ", ".join(
        f"{task}: {(name := winners(record, task)[0])} ({interval(_at(record, task, name, 4)).mean:.2f})"
        for task in TASKS)
    return ("A table of accuracy for each of five tasks, encodings by length. Best at 4 times the trained "
            f"length: {best}.")


def findings(record: Record) -> list[Finding]:
    won = {task: winners(record, task) for task in TASKS}
    always = [name for name in record.settings["encodings"] if all(name in names for names in won.values())]
    ranks = reciprocal_ranks(record)
    means = {name: interval(values).mean for name, values in ranks.items()}
    ahead = {name: difference(ranks["none"], values) for name, values in ranks.items() if name != "none"}
    listed = "; ".join(f"{task}: {', '.join(names)}" for task, names in won.items())
    return [
        Finding(
            "No encoding is best on every task at unseen lengths",
            "Kazemnejad et al. 2023, Figure 1",
            "mean reciprocal rank over tasks: NoPE 0.69, T5 0.55, ALiBi 0.50, rotary 0.33, absolute 0.22; "
            "1 would be best everywhere",
            f"best, or not surely worse than the best, at 4 times the trained length: {listed}",
            holds=not always,
            why=f"{', '.join(always)} cannot be told from the best on any of the tasks with so few seeds",
        ),
        Finding(
            "A decoder without positional encoding generalises best to longer inputs",
            "Kazemnejad et al. 2023, Figure 1",
            "mean reciprocal rank: NoPE 0.69, T5 0.55, ALiBi 0.50, rotary 0.33, absolute 0.22",
            "mean reciprocal rank over five tasks at twice the trained length: "
            + ", ".join(f"{name} {mean:.2f}" for name, mean in sorted(means.items(), key=lambda x: -x[1])),
            holds=all(x.positive for x in ahead.values()),
            why="two small layers, a short training, and other tasks: here a model without positions often "
                "has not learned the task at the trained length",
        ),
    ]


EXPERIMENT = Experiment(
    "tasks", "Tasks at unseen lengths", findings=findings, figure=figure, alt=alt, cells=cells,
    measure=measure,
    presets={
        "live": {"encodings": ["none", "sinusoidal", "rotary", "t5", "alibi"], "steps": 120, "batch": 32,
                 "test": 64, "protocol": ["own"]},
        "full": {"encodings": list(ENCODINGS), "steps": 400, "batch": 64, "test": 128,
                 "protocol": ["one", "own"]},
        "gpu": {"d_model": 256, "layers": 6, "heads": 8, "length": 32, "lr": 1e-3,
                "encodings": list(ENCODINGS), "steps": 500, "batch": 128, "test": 256},
    },
    seeds={"live": (0, 1), "full": (0, 1, 2, 3, 4), "gpu": (0, 1, 2)},
)
