"""How long each notebook runs: ``python -m workshop.benchmarks.notebooks``; ``03 06`` measures two alone.

All cells, in a fresh kernel of one notebook at a time: with one thread, and with as many as there are
cores. The least of all runs counts, for whatever else the machine does makes a run longer. ``--save FILE``
names the record (``results/benchmarks/notebooks.json``). Then ``… workshop.authoring sign``
writes the minutes where they are said.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import nbformat

from .. import authoring, navigation

PACKAGES = ("torch", "numpy", "matplotlib", "anywidget", "ipykernel", "nbclient")


def seconds(path: Path, count: int) -> float:
    """How long one run takes with ``count`` threads, including the start of the kernel."""
    notebook = nbformat.read(path, as_version=4)
    return authoring.execute(notebook, path.parent, {"OMP_NUM_THREADS": str(count)})


def measured(path: Path, threads: Sequence[int], rounds: int) -> dict[str, list[float]]:
    """The seconds of each round, by the number of threads; these take turns."""
    found: dict[str, list[float]] = {str(count): [] for count in threads}
    for _ in range(rounds):
        for count in threads:
            found[str(count)].append(round(seconds(path, count), 1))
    return found


def show(name: str, found: dict[str, list[float]]) -> str:
    """The result as a line of text."""
    return f"{name}: " + ", ".join(f"{min(runs):.0f} s (threads: {count})" for count, runs in found.items())


def head() -> dict:
    """What the seconds depend on, apart from the notebook."""
    cores = os.cpu_count() or 1
    return {
        "machine": f"{platform.system()} {platform.machine()}, CPU, {cores} cores",
        "cores": cores,
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.benchmarks.notebooks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("notebooks", nargs="*", help="their numbers; by default all")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is run (2)")
    parser.add_argument(
        "--threads",
        type=int,
        action="append",
        help="with how many; may be given twice (1, and as many as there are cores)",
    )
    parser.add_argument("--save", type=Path, default=navigation.RECORD, help="where the record is written")
    given = parser.parse_args(arguments)
    threads = given.threads or sorted({1, os.cpu_count() or 1})
    if given.rounds < 1 or min(threads) < 1:
        parser.error("there must be at least one round and one thread")
    try:
        paths = [authoring.find(name) for name in given.notebooks] or navigation.notebooks()
    except ValueError as problem:
        parser.error(str(problem))
    old = json.loads(given.save.read_text(encoding="utf-8")) if given.save.exists() else {}
    if given.notebooks and old and {name: old.get(name) for name in head()} != head():
        parser.error(f"{given.save.name} was measured elsewhere, or with other versions: measure all")
    seconds_of = old.get("seconds by threads", {}) if given.notebooks else {}
    given.save.parent.mkdir(parents=True, exist_ok=True)
    for path in paths:  # each is saved at once, whatever happens next
        seconds_of[path.stem] = measured(path, threads, given.rounds)
        print(show(path.stem, seconds_of[path.stem]), flush=True)
        record = {
            **head(),
            "date": datetime.now(UTC).date().isoformat(),
            "seconds by threads": dict(sorted(seconds_of.items())),
        }
        given.save.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
