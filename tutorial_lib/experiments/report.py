"""The summary page: each claim, what its paper measured, what this course measured, and why they differ."""

from __future__ import annotations

from pathlib import Path

from ..clone import RECORDS
from . import EXPERIMENTS, load
from .sweep import Finding

HEAD = """# What was claimed, and what was measured

Generated from the records in `results/` by `python -m tutorial_lib.experiments results`. The models of this
course are small: a claim that does not show here may hold at the size of its paper.

**How it was measured.** All encodings of an experiment are trained with the same settings, on the same
batches. One setting is not the same for all: in "Train short, test long", "Moved sentences", "Tasks at
unseen lengths", "Hybrids of absolute and relative" and "Positions in images" the tables of relative biases
learn at 20 times the rate of all other parameters. They start near 0 and have to grow to the size of a
score. Other encodings were given no rate of their own, and no rates were searched: so these entries do not
say which encoding is best at its best rate.

**Verdicts.** *Holds*: what is asked is true in the whole interval. *Does not hold*: it is true nowhere in
it. *Not shown*: the interval has both, or nothing here could decide. *By construction*: it follows from
definitions, and the number shows that the code does what they say. Intervals are 95 % intervals (Student's
t), over seeds unless another thing is named. They say where another training of the same model on the same
data would come out, not another model or another text.
"""


def page(folder: Path = RECORDS) -> str:
    """The page as Markdown, from every record of the preset ``full`` or ``gpu`` in the folder."""
    parts = [HEAD]
    for experiment in EXPERIMENTS.values():
        for preset in ("full", "gpu"):
            if preset not in experiment.presets or not (folder / f"{experiment.name}-{preset}.json").exists():
                continue
            record = load(experiment.name, preset, folder)
            parts.append(
                f"## {experiment.title}\n\n`{record.command}` — {record.device}, torch "
                f"{record.made_with('torch')}, {len(record.seeds)} {experiment.over}, "
                f"{record.seconds:.0f} s.\n"
            )
            parts += map(_finding, experiment.findings(record))
    return "\n".join(parts)


def _finding(finding: Finding) -> str:
    lines = [f"**{finding.claim}** ({finding.source or 'a question of this course'})\n"]
    if finding.theirs:
        lines.append(f"- There: {finding.theirs}")
    lines.append(f"- Here: {finding.ours}")
    lines.append(f"- Asked: {finding.outcome.condition}")
    lines.append(f"- **{finding.verdict.capitalize()}**" + (f": {finding.reason}" if finding.reason else ""))
    return "\n".join(lines) + "\n"
