"""``python -m course.experiments list | run NAME | show NAME | check | results``"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import random
import statistics
import sys
import traceback
from pathlib import Path

import torch

from tutorial_lib import plots
from tutorial_lib.explorers import measured

from .. import places
from . import EXPERIMENTS, RESULTS, find, load, run
from .report import for_explorers, page
from .sweep import PRESETS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m course.experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="every experiment and its presets")
    for name, text in (("run", "measure, and write a record"), ("show", "print what a record says")):
        command = commands.add_parser(name, help=text)
        command.add_argument("name", help="see `list`" + ("; `all` runs every one" if name == "run" else ""))
        command.add_argument("--preset", choices=PRESETS, default="full")
        command.add_argument("--folder", type=Path, help="where the records stand (default: the course's)")
        if name == "show":
            command.add_argument("--figure", type=Path, help="also draw the figure to this PNG file")
            continue
        command.add_argument("--seeds", type=_seeds, help="for instance 0,1,2; by default the preset's")
        command.add_argument("--device", default="auto")
        command.add_argument("--again", action="store_true", help="all anew, not only what the record lacks")
        command.add_argument("--scheduler", help="address of a Dask cluster, or `local` to start one")
    some = commands.add_parser("check", help="measure some runs of the records again, drawn by chance")
    some.add_argument(
        "--runs", type=int, default=10, help="how many (10), each of another experiment if it can be"
    )
    some.add_argument("--seed", type=int, default=0, help="of the draw")
    some.add_argument("--longest", type=float, default=60, help="seconds that a run may have taken (60)")
    some.add_argument("--folder", type=Path, default=RESULTS, help="where the records stand")
    report = commands.add_parser("results", help="write the summary page from the records")
    report.add_argument("--folder", type=Path, default=RESULTS, help="where the records stand")
    report.add_argument("file", type=Path, nargs="?", help="default: docs/results.md")
    given = parser.parse_args(arguments)
    try:
        return {"list": _list, "run": _run, "show": _show, "check": _check, "results": _results}[
            given.command
        ](given)
    except Exception as error:
        if hasattr(error, "__notes__") or not isinstance(error, (ValueError, KeyError, OSError, ImportError)):
            traceback.print_exc()  # from a measurement, or a bug: whoever fixes it needs the place
            return 1
        print(f"error: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: give integers with commas, for instance 0,1,2") from None


def _list(given) -> int:
    for experiment in EXPERIMENTS.values():
        presets = ", ".join(
            f"{name} ({len(experiment.cells(settings))} cells × {len(experiment.seeds[name])} seeds)"
            for name, settings in experiment.presets.items()
        )
        print(f"{experiment.name:12} {experiment.title}: {presets}")
    return 0


def _run(given) -> int:
    if given.name == "all":
        names = [name for name, experiment in EXPERIMENTS.items() if given.preset in experiment.presets]
        if not names:
            raise ValueError(f"no experiment has the preset {given.preset!r}")
    else:
        names = [find(given.name).name]
    folder = given.folder or places.ROOT / "results"
    for name in names:
        path = folder / f"{name}-{given.preset}.json"
        record = run(
            name,
            given.preset,
            seeds=given.seeds,
            device=given.device,
            out=path,
            scheduler=given.scheduler,
            again=given.again,
        )
        wanted = len(EXPERIMENTS[name].cells(record.settings)) * len(record.seeds)
        if len(record.runs) < wanted:
            print("The same command goes on from here.")
            return 130
        if not int(os.environ.get("RANK", 0)):
            print(f"{path}: {wanted} runs, {record.seconds:.0f} s")
    return 0


def _show(given) -> int:
    record, experiment = load(given.name, given.preset, given.folder or RESULTS), find(given.name)
    print(
        f"{experiment.title}: {record.command}\n{record.device}, torch {record.made_with('torch')}, "
        f"{record.seconds:.0f} s, seeds {record.seeds}\n"
    )
    for cell in record.cells():
        runs = [run.values for run in record if run.cell == cell]
        means = {key: _mean([values[key] for values in runs]) for key in runs[0]}
        print(
            "  "
            + ", ".join(f"{key}={value}" for key, value in cell.items())
            + ": "
            + ", ".join(f"{key} {mean}" for key, mean in means.items() if mean)
        )
    for finding in experiment.findings(record):
        print(f"\n{finding.verdict.capitalize()}: {finding.claim}\n  here: {finding.ours}")
    if given.figure:
        given.figure.write_bytes(plots.png(experiment.figure(record)))
    return 0


def _check(given) -> int:
    """Whether what a record says comes out again, but for what a clock says.

    Another processor rounds otherwise, and a training makes that grow.
    """
    draw, records = random.Random(given.seed), {}
    for name in EXPERIMENTS:
        with contextlib.suppress(FileNotFoundError):
            record = load(name, "full", given.folder)
            short = [run for run in record if run.seconds <= given.longest]
            if record.device == "cpu" and short:
                records[name] = record, draw.sample(short, len(short))
    order = draw.sample([*records], len(records))
    rounds = itertools.zip_longest(*([(name, run) for run in records[name][1]] for name in order))
    drawn = itertools.islice(filter(None, itertools.chain.from_iterable(rounds)), given.runs)
    worst = 0.0
    for name, one in drawn:
        record = records[name][0]
        torch.set_num_threads(record.threads)
        anew = find(name).measure(record.settings, one.cell, one.seed, torch.device("cpu"))
        far, most = max((_apart(one.values[key], anew[key]), key) for key in one.values if key != "time")
        worst = max(worst, far)
        what = ", ".join(f"{key} {value}" for key, value in one.cell.items())
        print(
            f"{name} (library {record.made_with('tutorial_lib')}), {what}, seed {one.seed}: "
            f"{'the same' if far == 0 else f'{most} apart by {far:.1g}'}",
            flush=True,
        )
    print(f"The largest difference: {worst:.1g}, as a share of the number, or of 1 where that is more.")
    return 0


def _apart(then, now) -> float:
    """The largest difference between numbers, or lists of them, as a share of the number or of 1."""
    if isinstance(then, list):
        if len(then) != len(now):
            return math.inf
        return max((_apart(*pair) for pair in zip(then, now, strict=True)), default=0.0)
    return abs(then - now) / max(1.0, abs(then))


def _mean(values: list) -> str:
    """The mean over seeds of a number, or of each number of a short list; ``""`` for a long one."""
    if not isinstance(values[0], list):
        return f"{statistics.fmean(values):.3f}"
    if len(values[0]) > 8 or any(isinstance(x, list) for x in values[0]):
        return ""
    return " ".join(_mean(list(place)) for place in zip(*values, strict=True))


def _results(given) -> int:
    file = given.file or places.ROOT / "docs" / "results.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(given.folder), encoding="utf-8")
    print(file)
    if given.file is None:  # the explorers show them, too
        plain = json.dumps(for_explorers(), ensure_ascii=False, indent=1)
        measured.FILE.write_text(plain + "\n", encoding="utf-8")
        print(measured.FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
