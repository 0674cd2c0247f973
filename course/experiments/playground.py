"""Does a lane of the playground learn its task, and does it hold beyond the trained length? Over many seeds.

The models are those of the page, in its own engine: a seed's numbers are what the page shows for it.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import textwrap

import torch

from tutorial_lib import plots

from .. import playground
from ..verdicts import above, all_of, fact, within
from .record import Record
from .statistics import difference, interval
from .sweep import Experiment, Finding, in_words

ENCODINGS = {
    "none": "no positions",
    "sin": "sinusoidal",
    "learned": "learned",
    "rope": "RoPE",
    "alibi": "ALiBi",
    "offset": "a bias for each offset",
    "t5": "T5’s buckets",
    "clipped": "a clipped bias",
    "shaw": "Shaw’s vectors",
    "hybrid": "sinusoidal + ALiBi",
}
TASKS = {
    "back": "the token three back",
    "nonzero": "the last token that was not 0",
    "first": "the first token",
    "before": "which came first",
    "count": "count the zeros",
    "sort": "sort a list",
    "copy": "copy a list",
    "reverse": "reverse a list",
}
SIZES = {"L": 16, "ask": 4, "k": 3, "H": 2, "N": 2, "causal": True}
TIMES = (1, 2, 4)
ORDER = ("first", "before")
"""Tasks that ask what came first."""

STUDY = """(() => { %s
const { Run } = engine();
return ([config, kinds, times]) => kinds.map(kind => {
  const run = new Run({ ...config, enc: { kind } });
  for (let s = 0; s < config.steps; s++) run.step();
  const right = run.measure(128);
  return times.map(each => right[run.at.indexOf(each * config.L)]);
}); })()"""


def script() -> str:
    """An expression in JavaScript: a function that lets lanes learn, and gives their right answers."""
    return STUDY % playground.engine()


def in_node(script: str, asked: list) -> list:
    """What a function of JavaScript answers. RuntimeError where there is no node."""
    if not (node := shutil.which("node")):
        raise RuntimeError(
            "the playground's engine is JavaScript, and no `node` was found to run it: install Node.js 18 or "
            "newer, or let it learn in the page (docs/playground.md)"
        )
    program = f"process.stdout.write(JSON.stringify({script}({json.dumps(asked)})))"
    return json.loads(subprocess.run([node, "-"], input=program, stdout=-1, text=True, check=True).stdout)


def cells(settings: dict) -> list[dict]:
    return [{"task": task} for task in settings["tasks"]]


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    """The share of right answers of each encoding, at 1, 2 and 4 times the trained length."""
    config = SIZES | cell | {"steps": settings["steps"], "seed": seed}
    found = in_node(script(), [config, settings["encodings"], TIMES])
    return dict(zip(settings["encodings"], found, strict=True))


def at(record: Record, task: str, kind: str, times: int) -> list[float]:
    """The share of right answers at so many times the trained length, for each seed."""
    return [right[TIMES.index(times)] for right in record.values(kind, task=task)]


def spread(values: list[float]) -> str:
    """
    >>> spread([0.5, 0.75, 1.0])
    '0.75 ± 0.25 (0.50 to 1.00)'
    """
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    return f"{mean:.2f} ± {deviation:.2f} ({min(values):.2f} to {max(values):.2f})"


def figure(record: Record):
    fig, axes = plots.panels(2, 4, size=(13.5, 9), sharey=True)
    for ax, task in zip(axes.flat, record.settings["tasks"], strict=False):
        plots.heat(
            [
                [statistics.fmean(at(record, task, kind, times)) for times in TIMES]
                for kind in record.settings["encodings"]
            ],
            ax=ax,
            title=textwrap.fill(TASKS[task], 20),
            xticks=[f"{times}×" for times in TIMES],
            yticks=[ENCODINGS[kind] for kind in record.settings["encodings"]],
            limits=(0, 1),
            cmap="weights",
            colorbar=None,
            values=".2f",
        )
        ax.set_aspect("auto")
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    best = []
    for task in record.settings["tasks"]:
        means = {kind: statistics.fmean(at(record, task, kind, 4)) for kind in record.settings["encodings"]}
        kind = max(means, key=means.__getitem__)
        best.append(f"{TASKS[task]}: {ENCODINGS[kind]} ({means[kind]:.2f})")
    return (
        "Tables of right answers for each task of the playground, encodings by length. Best at 4 times the "
        f"trained length: {', '.join(best)}."
    )


def table(record: Record) -> str:
    """Mean, spread and range at four times the trained length, in tasks that every encoding can be asked."""
    tasks = [task for task in TASKS if task in record.settings["tasks"]][:4]
    rows = [
        "Share of right answers at 64 tokens: mean ± standard deviation over the seeds (least to most).\n",
        "| | " + " | ".join(TASKS[task] for task in tasks) + " |",
        "|---" * (1 + len(tasks)) + "|",
    ]
    for kind in record.settings["encodings"]:
        said = [spread(at(record, task, kind, 4)) for task in tasks]
        rows.append(f"| {ENCODINGS[kind]} | " + " | ".join(said) + " |")
    return "\n".join(rows) + "\n"


RELATIVE = ("offset", "t5", "clipped", "shaw")
RIGHT = 0.85
"""The share of right answers from which on a task is solved; chance is 1 in 8, or less."""
STEADY = 0.1
"""Between the seeds with the fewest and the most right answers: less is no difference."""


def findings(record: Record) -> list[Finding]:
    def of(kind, times, task="back"):
        return interval(at(record, task, kind, times))

    def said(*kinds, times=4, task="back"):
        return "; ".join(f"{ENCODINGS[kind]} {spread(at(record, task, kind, times))}" for kind in kinds)

    rope = at(record, "back", "rope", 4)
    others = [kind for kind in record.settings["encodings"] if kind != "none"]
    sorting = {
        kind: difference(at(record, "sort", kind, 1), at(record, "sort", "none", 1)) for kind in others
    }
    lost = {task: difference(at(record, task, "none", 4), at(record, task, "rope", 4)) for task in ORDER}
    return [
        Finding(
            "Sinusoids let a model read texts longer than those it learned from",
            "Vaswani et al. 2017, §3.5: they may",
            "not measured",
            "the token three back, right answers: at four times the trained length "
            f"{spread(at(record, 'back', 'sin', 4))}; at the trained length "
            f"{spread(at(record, 'back', 'sin', 1))}",
            above(of("sin", 4), RIGHT),
            why="in training no token ever stood at a place beyond 16, and the heads go by places",
        ),
        Finding(
            "An encoding that knows the offset finds the token three back at four times the length",
            "",
            "",
            f"right answers: {said(*RELATIVE)}",
            all_of(*(above(of(kind, 4), RIGHT) for kind in RELATIVE)),
            why="one of them spreads its attention over tokens that are further away than any in training",
        ),
        Finding(
            "RoPE finds it there, too, and one run tells how well",
            "",
            "",
            f"right answers: {said('rope')}",
            fact(max(rope) - min(rope) < STEADY, f"less than {STEADY} between any two seeds"),
            why="training asks nothing of offsets beyond 15: what the heads make of them is up to the seed",
        ),
        Finding(
            "A bias that falls with distance can point at the token three back",
            "",
            "",
            f"right answers at the trained length: {said('alibi', times=1)}; without positions "
            f"{spread(at(record, 'back', 'none', 1))}",
            above(of("alibi", 1), RIGHT),
            why="its slopes favour the nearest token, and so few steps at this size found no way around "
            "that; they do not show that there is none",
        ),
        Finding(
            "Without positions a causal model knows at every length which token came first",
            "Haviv et al. 2022; Kazemnejad et al. 2023: order can be learned from the causal mask",
            "language models, and a proof that it can be",
            "right answers at four times the trained length: "
            + "; ".join(f"{TASKS[task]} {spread(at(record, task, 'none', 4))}" for task in ORDER),
            all_of(*(above(of("none", 4, task), RIGHT) for task in ORDER)),
            why="training was too short for it",
        ),
        Finding(
            "RoPE can hurt there: it loses beyond the trained length what needs no positions",
            "",
            "",
            "right answers without positions less those with RoPE, at four times the trained length: "
            + "; ".join(f"{TASKS[task]} {x}" for task, x in lost.items()),
            all_of(*(above(x, 0.05) for x in lost.values())),
            why="its heads for these tasks don’t go by position",
        ),
        Finding(
            "To sort a list no encoding is of use, since it doesn’t matter in which order it was read",
            "",
            "",
            "right answers less those without positions, at the trained length: "
            + "; ".join(f"{ENCODINGS[kind]} {x}" for kind, x in sorting.items()),
            all_of(*(within(x, 0.02) for x in sorting.values())),
            why="the answer has an order even where the list has none: knowing how far one has come helps",
        ),
    ]


EXPERIMENT = Experiment(
    "playground",
    "The lanes of the playground",
    findings=findings,
    figure=figure,
    alt=alt,
    table=table,
    cells=cells,
    measure=measure,
    setup=in_words(
        "Texts of {L} tokens, read by the page’s own engine; {N} layers of width 24 with {H} heads, "
        "causal; {steps} steps of 16 texts; one learning rate for all, 0.006, which falls",
        **SIZES,
    ),
    presets={
        "live": {"tasks": ["back"], "encodings": list(ENCODINGS), "steps": 400},
        "full": {"tasks": list(TASKS), "encodings": list(ENCODINGS), "steps": 400},
    },
    seeds={"live": (0, 1, 2), "full": tuple(range(20))},
)
