"""The summary page: each claim, what its paper measured, what this course measured, and why they differ."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from .. import claims, verdicts
from ..places import RECORDS
from . import EXPERIMENTS, load, scoreboard
from .statistics import interval
from .sweep import Experiment, Finding

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

**Verdicts.** *Holds*: what is asked is true in the whole interval. *Does not hold*: it is false in the whole
interval. *Not shown*: the interval contains both yes and no, or nothing here could decide. *By construction*:
it follows from definitions, and the number shows that the code does what they say. Intervals are 95 %
intervals (Student's t), over seeds unless another thing is named: they say how far another training of the
same model on the same data would come out, not another model or another text.
"""
MANY = """**Many verdicts.** {random} of the {all} verdicts on this page are about means over seeds. An
interval lies wholly on the wrong side of its limit with a chance of 2.5 % at most, so by bad luck up to
{wrong} of them are wrong, on average. {outlast} say yes or no and outlast a correction for their number
(Benjamini and Hochberg 1995: among these, at most one in twenty is wrong, on average); {weak} do not, and
are marked with a †.
"""

WHERE = {"full": "", "chinese": " (in Chinese)", "gpu": " (on a GPU)"}
"""The presets that are reported, and what the title says of each."""


def page(folder: Path = RECORDS) -> str:
    """The page as Markdown, from every record of a preset of :data:`WHERE` in the folder."""
    sections = [_section(*each, folder) for each in measured(folder)]
    outcomes = [finding.outcome for *_, pairs in sections for finding, _ in pairs]
    limit = verdicts.discoveries(outcomes)
    random = [each for each in outcomes if each.p is not None]
    decided = [each for each in random if each.verdict in (verdicts.HOLDS, verdicts.FAILS)]
    weak = [each for each in decided if each.p > limit]
    many = MANY.format(
        random=len(random), all=len(outcomes), wrong=math.ceil(0.025 * len(random)),
        outlast=len(decided) - len(weak), weak=len(weak),
    )  # fmt: skip
    parts = [HEAD, many] if outcomes else [HEAD]
    for name, top, pairs in sections:
        parts += [*top, *(_finding(one, other, one.outcome in weak, name) for one, other in pairs)]
    return "\n".join(parts)


def measured(folder: Path = RECORDS) -> list[tuple[Experiment, str]]:
    """Every experiment and preset of the page that has a record, in its order."""
    return [
        (experiment, preset)
        for experiment in EXPERIMENTS.values()
        for preset in WHERE
        if preset in experiment.presets and (folder / f"{experiment.name}-{preset}.json").exists()
    ]


def _section(experiment: Experiment, preset: str, folder: Path) -> tuple[str, list[str], list[tuple]]:
    """The name; what stands above the findings; each of these, with that at one rate for all, or None."""
    record = load(experiment.name, preset, folder)
    top = [
        f"## {experiment.title}{WHERE[preset]}\n\n`{record.command}` — {record.device}, torch "
        f"{record.made_with('torch')}, {len(record.seeds)} {experiment.over}, "
        f"{record.seconds:.0f} s.\n"
    ]
    if experiment.setup:
        top.append(f"{experiment.setup(record.settings)}.\n")
    findings = experiment.findings(record)
    at_one = experiment.findings(record.at_one_rate()) if record.tuned else [None] * len(findings)
    if experiment.table:
        top.append(experiment.table(record))
    return experiment.name, top, list(zip(findings, at_one, strict=True))


def _finding(finding: Finding, at_one: Finding | None, weak: bool, name: str) -> str:
    lines = [f"**{finding.claim}** ({finding.source or 'a question of this course'})\n"]
    if finding.theirs:
        lines.append(f"- In the paper: {finding.theirs}")
    lines.append(f"- Measured here: {finding.ours}")
    if at_one and at_one.ours != finding.ours:
        turned = f". So it would be *{at_one.verdict}*" if at_one.verdict != finding.verdict else ""
        lines.append(f"- At one rate for all: {at_one.ours}{turned}")
    lines.append(f"- Asked for: {finding.outcome.condition}")
    mark = " †" if weak else ""
    lines.append(
        f"- **{finding.verdict.capitalize()}**{mark}" + (f": {finding.reason}" if finding.reason else "")
    )
    if others := claims.also_in(name, finding.claim):
        lines.append(f"- Also judged in: {', '.join(others)}")
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
