"""Five tasks, trained short and tested long: the best encoding changes from task to task.

Accuracy is that of the last 8 answers of a sequence, at each length.
"""

from __future__ import annotations

import statistics

import torch

from tutorial_lib import plots
from tutorial_lib.data import copying, first_token, induction, steps_back
from tutorial_lib.encodings import build
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import accuracy, cross_entropy, seeded, train

from ..verdicts import above, all_of
from . import rates
from .record import Record
from .statistics import Interval, difference, interval
from .sweep import Experiment, Finding, in_words, spoken

VALUES, LAST = 16, 8
MULTIPLES = (1, 2, 4, 16)

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
SIZES = {"d_model": 64, "layers": 2, "heads": 4, "length": 16, "lr": 9e-3}
COMPARED = {"tasks": TASKS, "multiples": MULTIPLES}
"""Where a preset does not say otherwise."""


def draw(task: str, size: int, generator: torch.Generator, *, length: int = 16, training: bool = False):
    """Ids and labels of a batch: ``length`` tokens; for copying, half of them are the list.

    In training, the lists have 1 to ``length / 2`` tokens.
    """
    if task in ("copy", "reverse"):
        n = length // 2
        return copying(
            size,
            generator,
            longest=n,
            shortest=1 if training else n,
            reverse=task == "reverse",
            n_values=VALUES,
        )
    options = {"length": length, "n_values": VALUES}
    if task == "5 back":
        return steps_back(size, generator, k=5, **options)
    return {"first token": first_token, "induction": induction}[task](size, generator, **options)


def cells(settings: dict) -> list[dict]:
    settings = SIZES | COMPARED | settings
    return rates.cells(
        "tasks",
        settings,
        [{"task": task, "encoding": name} for task in settings["tasks"] for name in settings["encodings"]],
    )


def of(record: Record, what: str) -> list:
    """The ``"tasks"`` or the ``"multiples"`` of the trained length that a record has."""
    return list((COMPARED | record.settings)[what])


def encoding(name: str, settings: dict):
    """The encoding ``name`` for a model and a length as in the settings."""
    return ENCODINGS[name](*(settings[x] for x in ("d_model", "heads", "length")))


def trained(settings: dict, cell: dict, seed: int, device: torch.device, its=None) -> Transformer:
    """The model of a cell, or for its task one with other encodings (``its``)."""
    settings = SIZES | settings
    config = Config(
        VALUES + 1, settings["d_model"], n_heads=settings["heads"], n_layers=settings["layers"], n_out=VALUES
    )
    model = seeded(lambda: Transformer(config, its or encoding(cell["encoding"], settings)), seed)
    options = {"length": settings["length"], "training": True}
    train(
        model,
        lambda generator: draw(cell["task"], settings["batch"], generator, **options),
        settings["steps"],
        **rates.of(settings, cell),
        seed=seed,
        device=device,
        progress=False,
    )
    return model


@torch.no_grad()
def validation(model: Transformer, settings: dict, cell: dict, seed: int) -> float:
    """Loss at the trained length on sequences that are neither trained on nor reported."""
    generator = torch.Generator().manual_seed(2000 + seed)
    tokens, targets = draw(cell["task"], settings["test"], generator, length=(SIZES | settings)["length"])
    device = next(model.parameters()).device
    return cross_entropy(model(tokens.to(device)), targets.to(device)).item()


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    model, sizes = trained(settings, cell, seed, device), SIZES | COMPARED | settings
    test = torch.Generator().manual_seed(1000 + seed)
    return {
        "accuracy": [
            last_accuracy(model, *draw(cell["task"], settings["test"], test, length=sizes["length"] * times))
            for times in sizes["multiples"]
        ]
    }


def last_accuracy(model, tokens, targets) -> float:
    """Accuracy of the last 8 places."""
    earlier = torch.arange(targets.shape[1]) < targets.shape[1] - LAST
    return accuracy(model, tokens, targets.masked_fill(earlier, -100))


def figure(record: Record):
    fig, axes = plots.panels(2, 3, size=(13.5, 8.5), sharey=True)
    for ax, task in zip(axes.flat, of(record, "tasks"), strict=False):
        got = {
            spoken(name): record.values("accuracy", task=task, encoding=name)
            for name in record.settings["encodings"]
        }
        z = [[statistics.fmean(x) for x in zip(*values, strict=True)] for values in got.values()]
        plots.heat(
            z,
            ax=ax,
            title=task,
            xticks=[f"{m}×" for m in of(record, "multiples")],
            yticks=list(got),
            limits=(0, 1),
            cmap="weights",
            colorbar=None,
            values=".2f",
        )
        ax.set_aspect("auto")
    for ax in axes.flat[len(of(record, "tasks")) :]:
        ax.axis("off")
    return fig


def _at(record: Record, task: str, name: str, times: int) -> list[float]:
    column = of(record, "multiples").index(times)
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
        for task in of(record, "tasks")
    )
    return (
        "A table of accuracy for each of five tasks, encodings by length. Best at 4 times the trained "
        f"length: {best}."
    )


CLEAR = 0.05
"""Of accuracy, or of a mean reciprocal rank: less is no difference."""

LEARNED = 0.9
"""Accuracy at the trained length, from which on a task is learned."""


def farthest_behind(record: Record, name: str, times: int = 4) -> tuple[str, Interval]:
    """The task in which an encoding is most clearly behind the best one, and by how much accuracy.

    Tasks where it is surely behind come first; among equals, the one where it may be furthest behind.
    """
    behind = {
        task: difference(
            _at(record, task, winners(record, task, times)[0], times), _at(record, task, name, times)
        )
        for task in of(record, "tasks")
    }
    return max(behind.items(), key=lambda x: (x[1].positive, x[1].high))


def findings(record: Record) -> list[Finding]:
    if of(record, "tasks") != [*TASKS]:  # the claims are about all of them
        return []
    names = record.settings["encodings"]
    behind = {name: farthest_behind(record, name) for name in names}
    steady = [name for name, (_, x) in behind.items() if x.high <= 0]
    ranks = reciprocal_ranks(record)
    means = {name: interval(values).mean for name, values in ranks.items()}
    order = sorted(means, key=lambda name: -means[name])
    ahead = {name: difference(ranks["none"], ranks[name]) for name in order if name != "none"}
    learned = {task: statistics.fmean(_at(record, task, "none", 1)) for task in TASKS}
    missing = ", ".join(f"{task} {x:.2f}" for task, x in learned.items() if x < LEARNED)
    theirs = "mean reciprocal rank: NoPE 0.69, T5 0.55, ALiBi 0.50, rotary 0.33, absolute 0.22"
    why = "the model is small, its training short, and most of the tasks are other ones"
    if missing:
        why = f"without positions some tasks are not learned at the trained length (accuracy: {missing})"
    said = [
        Finding(
            "No encoding is best on every task at unseen lengths",
            "Kazemnejad et al. 2023, Figure 1",
            f"{theirs}; 1 would be best everywhere",
            "accuracy behind the best encoding at 4 times the trained length, in the task where that is "
            "clearest: " + "; ".join(f"{name} {x} ({task})" for name, (task, x) in behind.items()),
            all_of(*(above(x, 0) for _, x in behind.values())),
            why=f"{', '.join(steady)}: nowhere behind",
        ),
        Finding(
            "A decoder without positional encoding generalises best to longer inputs",
            "Kazemnejad et al. 2023, Figure 1",
            theirs,
            "mean reciprocal rank over five tasks at twice the trained length: "
            + ", ".join(f"{name} {means[name]:.2f}" for name in order)
            + ". Mean reciprocal rank without an encoding minus rank with it: "
            + "; ".join(f"{name} {x}" for name, x in ahead.items()),
            all_of(*(above(x, CLEAR) for x in ahead.values())),
            why=why,
        ),
    ]
    for name, title in (("rotary", "with RoPE"), ("sinusoidal", "with sinusoids")):
        if name in ahead:
            said.append(
                Finding(
                    f"A decoder without positional encoding generalises better than one {title}",
                    "Kazemnejad et al. 2023, Figure 1",
                    theirs,
                    f"mean reciprocal rank without an encoding minus rank with it: {name} {ahead[name]}",
                    above(ahead[name], CLEAR),
                    why=why,
                )
            )
    return said


EXPERIMENT = Experiment(
    "tasks",
    "Tasks at unseen lengths",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words("Sequences of {length} random tokens; {training}", **SIZES),
    presets={
        "live": {
            "encodings": ["none", "sinusoidal", "rotary", "t5", "alibi"],
            "steps": 120,
            "batch": 32,
            "test": 64,
            "protocol": ["own"],
        },
        "full": {
            "encodings": list(ENCODINGS),
            "steps": 400,
            "batch": 64,
            "test": 128,
            "protocol": ["one", "own"],
        },
        "exercise": {  # what exercise 09 trains, in a second or two each
            "tasks": ["5 back", "first token", "induction", "copy"],
            "multiples": [1, 4],
            "d_model": 32,
            "lr": 2e-2,
            "encodings": list(ENCODINGS),
            "steps": 300,
            "batch": 32,
            "test": 128,
        },
        "gpu": {
            "d_model": 256,
            "layers": 6,
            "heads": 8,
            "length": 32,
            "lr": 1e-3,
            "encodings": list(ENCODINGS),
            "steps": 500,
            "batch": 128,
            "test": 256,
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2, 3, 4), "gpu": (0, 1, 2), "exercise": tuple(range(12))},
)
