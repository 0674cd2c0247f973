"""Named experiments: a configuration, a run, a JSON record, a figure, and what the record says.

``python -m course.experiments list`` shows them. In a notebook: ``run("word_order")`` measures now,
``load("word_order")`` reads the larger record that comes with the course.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from tutorial_lib import plots
from tutorial_lib.language import _

from ..places import RECORDS as RESULTS
from . import (
    clipping,
    constants,
    cost,
    decay,
    extension,
    fusion,
    hybrid,
    images,
    lengths,
    long_range,
    nope,
    playground,
    position_gap,
    recurrence,
    scale,
    scoreboard,
    shift,
    sweep,
    tasks,
    tuning,
    word_order,
)
from .record import Record
from .statistics import Interval, difference, interval
from .sweep import Experiment, Finding

MODULES = (
    tuning,
    word_order,
    lengths,
    constants,
    long_range,
    scale,
    shift,
    tasks,
    hybrid,
    fusion,
    extension,
    position_gap,
    clipping,
    recurrence,
    nope,
    decay,
    images,
    playground,
    scoreboard,
    cost,
)
EXPERIMENTS = {module.EXPERIMENT.name: module.EXPERIMENT for module in MODULES}
"""Every experiment by its name."""
RENAMED = {"order": "word_order", "far": "long_range", "gap": "position_gap"}
"""Names of version 0.2, which a notebook that a learner has changed may go on to use, until 0.4."""


def find(name: str) -> Experiment:
    """The experiment ``name``; ValueError lists the known ones."""
    if name in RENAMED:
        warnings.warn(
            f"the experiment {name!r} is {RENAMED[name]!r} now; the old name goes with version 0.4",
            FutureWarning,
            stacklevel=3,
        )
        name = RENAMED[name]
    if name not in EXPERIMENTS:
        raise ValueError(f"name={name!r}: it must be one of {', '.join(map(repr, EXPERIMENTS))}")
    return EXPERIMENTS[name]


def run(name: str, preset: str = "live", **options) -> Record:
    """Run an experiment by its name; the options are those of :func:`sweep.run`."""
    return sweep.run(find(name), preset, **options)


def load(name: str, preset: str = "full", folder: Path = RESULTS) -> Record:
    """The record that comes with the course.

    Raises FileNotFoundError with the command that makes it, ValueError for a broken file.
    """
    name = find(name).name
    path = folder / f"{name}-{preset}.json"
    record = Record.load(path)
    if (record.experiment, record.preset) != (name, preset):
        raise ValueError(f"{path.name} holds {record.experiment!r} with the preset {record.preset!r}")
    return record


def show(record: Record) -> None:
    """Show a record's figure in a notebook, with a line that says where its numbers come from."""
    experiment = find(record.experiment)
    plots.show(experiment.figure(record), experiment.alt(record))
    print(
        _(
            "Recorded: {runs} runs with {seeds} seeds each cell, {device}, torch {version}; again with: "
            "{command}"
        ).format(
            runs=len(record.runs),
            seeds=len(record.seeds),
            device=record.device,
            version=record.made_with("torch"),
            command=record.command,
        )
    )


__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Finding",
    "Interval",
    "RESULTS",
    "Record",
    "difference",
    "find",
    "interval",
    "load",
    "run",
    "show",
]
