"""The summary page: each claim, what its paper measured, what this course measured, and why they differ."""

from __future__ import annotations

from pathlib import Path

from ..clone import RECORDS
from . import EXPERIMENTS, load

HEAD = """# What was claimed, and what was measured

Generated from the records in `results/` by `python -m tutorial_lib.experiments results`. The models of this
course are small: a claim that does not show here may hold at the size of its paper. Intervals are 95 %
intervals over seeds.
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
                f"{record.made_with('torch')}, {len(record.seeds)} seeds, {record.seconds:.0f} s.\n"
            )
            for finding in experiment.findings(record):
                parts.append(_finding(finding))
    return "\n".join(parts)


def _finding(finding) -> str:
    lines = [f"**{finding.claim}** ({finding.source or 'a question of this course'})\n"]
    if finding.theirs:
        lines.append(f"- There: {finding.theirs}")
    lines.append(f"- Here: {finding.ours}")
    lines.append(f"- **{finding.verdict}**" + ("" if finding.holds else f": {finding.why}"))
    return "\n".join(lines) + "\n"
