"""The summary page: each claim, what its paper measured, what this course measured, and why they differ."""

from __future__ import annotations

import statistics
from pathlib import Path

from ..places import RECORDS
from . import EXPERIMENTS, load, scoreboard
from .statistics import interval
from .sweep import Finding

HEAD = """# What was claimed, and what was measured

Generated from the records in `results/` by `python -m course.experiments results`. The models of this
course are small: a claim that does not show here may hold at the size of its paper.

**How it was measured.** Where encodings are trained and compared, each one searched the same learning rates
("A rate for each"): three for the whole model, and with each of them, where it has parameters of its own,
two for these; by its loss at the trained length, on data and with seeds that are reported nowhere. Numbers
are those of each encoding at its own rates. "At one rate for all" are those at the middle one, for all
parameters of all encodings; a claim without such a line has the same numbers there, or was measured in one
way only (the line below the command says which). Two sections have rates of their own and no such line:
"Who uses what is far?" takes a third of those of "Train short, test long", and "Does the gap close
with size?" searches its own.

**Verdicts.** *Holds*: what is asked is true in the whole interval. *Does not hold*: it is true nowhere in
it. *Not shown*: the interval has both, or nothing here could decide. *By construction*: it follows from
definitions, and the number shows that the code does what they say. Intervals are 95 % intervals (Student's
t), over seeds unless another thing is named: they say how far another training of the same model on the
same data would come out, not another model or another text.
"""


def page(folder: Path = RECORDS) -> str:
    """The page as Markdown, from every record of the preset ``full`` or ``gpu`` in the folder."""
    parts = [HEAD]
    for experiment in EXPERIMENTS.values():
        for preset in ("full", "gpu"):
            if preset not in experiment.presets or not (folder / f"{experiment.name}-{preset}.json").exists():
                continue
            record = load(experiment.name, preset, folder)
            where = " (on a GPU)" if preset == "gpu" else ""
            parts.append(
                f"## {experiment.title}{where}\n\n`{record.command}` — {record.device}, torch "
                f"{record.made_with('torch')}, {len(record.seeds)} {experiment.over}, "
                f"{record.seconds:.0f} s.\n"
            )
            if experiment.setup:
                parts.append(f"{experiment.setup(record.settings)}.\n")
            findings = experiment.findings(record)
            at_one = experiment.findings(record.at_one_rate()) if record.tuned else [None] * len(findings)
            if experiment.table:
                parts.append(experiment.table(record))
            parts += [_finding(*pair) for pair in zip(findings, at_one, strict=True)]
    return "\n".join(parts)


def _finding(finding: Finding, at_one: Finding | None = None) -> str:
    lines = [f"**{finding.claim}** ({finding.source or 'a question of this course'})\n"]
    if finding.theirs:
        lines.append(f"- There: {finding.theirs}")
    lines.append(f"- Here: {finding.ours}")
    if at_one and at_one.ours != finding.ours:
        turned = f". So it would be *{at_one.verdict}*" if at_one.verdict != finding.verdict else ""
        lines.append(f"- At one rate for all: {at_one.ours}{turned}")
    lines.append(f"- Asked: {finding.outcome.condition}")
    lines.append(f"- **{finding.verdict.capitalize()}**" + (f": {finding.reason}" if finding.reason else ""))
    return "\n".join(lines) + "\n"


def for_explorers() -> dict:
    """What explorers show of the records, in the form of :mod:`tutorial_lib.explorers.measured`."""
    tails, gap = load("lengths").values("tail", encoding="learned"), load("position_gap")
    distances = [n + gap.settings["length"] for n in gap.settings["gaps"]]
    repeat = {}
    for name in gap.settings["scalings"]:
        by_text = gap.values("repeat", scaling=name)
        repeat["none" if name == "raw" else name.replace(", s = ", " ")] = [
            distances,
            [round(statistics.fmean(at), 3) for at in zip(*by_text, strict=True)],
        ]
    board = scoreboard.board(*map(load, ("scoreboard", "lengths", "tasks")))
    return {
        "learned": [round(statistics.fmean(at), 2) for at in list(zip(*tails, strict=True))[:3]],
        "repeat": repeat,
        "first": round(interval(gap.values("first", scaling="raw")).mean, 3),
        "board": {name: row | {"doors": list(row["doors"])} for name, row in board.items()},
    }
