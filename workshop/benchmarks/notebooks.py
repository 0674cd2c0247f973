"""What each notebook costs to run: ``python -m workshop.benchmarks.notebooks``; ``03 ex06`` measures two.

All cells, in a fresh kernel of one notebook at a time, with one thread. What counts are the seconds of the
processor, since two cores need no longer. A machine is faster at one hour than at another: where one notebook
is measured again, its cells that are as they were tell by how much, and all its seconds are written at the
speed of the record; ``--again`` writes them as they are. At the end stand the cells that cost most.
``--save FILE`` names the record (``results/benchmarks/notebooks.json``); then
``… workshop.authoring sign`` writes what follows from it into the notebooks. :data:`CELL`, :data:`NOTEBOOK`,
:data:`EXERCISE` and :data:`MEAN` are what may be recorded: a test reads the record.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import nbformat
import psutil

from .. import authoring, navigation

PACKAGES = ("torch", "numpy", "matplotlib", "anywidget", "ipykernel", "nbclient")
CELL, NOTEBOOK, EXERCISE, MEAN = 10, 60, 40, 11.7
"""Seconds of the processor that a cell, a lesson, an exercise may cost, and any of them on average."""
SLOWEST = 10


def code(notebook: nbformat.NotebookNode) -> str:
    """A fingerprint of the code cells: other code has to be measured anew."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha1("\n\n".join(cells).encode()).hexdigest()[:10]


def measured(path: Path) -> dict:
    """The processor's seconds of a whole run, kernel included, and of each cell above a second."""
    notebook = nbformat.read(path, as_version=4)
    spent = [0.0]
    cells: dict[str, float] = {}

    def after(cell, kernel: int) -> None:
        # user and system, its own and its children's, ended or not; what comes after them is waiting
        process = psutil.Process(kernel)
        alive = [child.cpu_times()[:4] for child in process.children(recursive=True)]
        spent.append(sum(map(sum, [process.cpu_times()[:4], *alive])))
        if spent[-1] - spent[-2] >= 1:
            cells[cell.id] = round(spent[-1] - spent[-2], 1)

    authoring.execute(notebook, path.parent, after=after)
    return {"code": code(notebook), "seconds": round(spent[-1], 1), "cells": cells}


def at_speed(new: dict, old: dict) -> dict:
    """What was measured now, at the speed that the record was measured at: cells that are the same tell it.

    >>> at_speed({"seconds": 9.0, "cells": {"a": 4.0, "c": 2.0}}, {"cells": {"a": 2.0, "b": 3.0}})
    {'seconds': 4.5, 'cells': {'a': 2.0, 'c': 1.0}}
    """
    same = new["cells"].keys() & old.get("cells", {}).keys()
    speed = sum(old["cells"][cell] for cell in same) / sum(new["cells"][cell] for cell in same) if same else 1
    cells = {cell: round(seconds * speed, 1) for cell, seconds in new["cells"].items()}
    return new | {"seconds": round(new["seconds"] * speed, 1), "cells": cells}


def slowest(found: dict[str, dict]) -> list[str]:
    """The cells that cost most, a line of text for each."""
    cells = [(seconds, name, cell) for name, one in found.items() for cell, seconds in one["cells"].items()]
    return [
        f"{seconds:5.1f} s  {name}, cell {cell}" for seconds, name, cell in sorted(cells)[: -SLOWEST - 1 : -1]
    ]


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
    parser.add_argument(
        "notebooks", nargs="*", help="their numbers; by default all, side quests and exercises too"
    )
    parser.add_argument("--again", action="store_true", help="whatever the record says of cells as they were")
    parser.add_argument("--save", type=Path, default=navigation.RECORD, help="where the record is written")
    given = parser.parse_args(arguments)
    try:
        paths = [authoring.find(name) for name in given.notebooks] or authoring.known()
    except ValueError as problem:
        parser.error(str(problem))
    old = json.loads(given.save.read_text(encoding="utf-8")) if given.save.exists() else {}
    if given.notebooks and old and {name: old.get(name) for name in head()} != head():
        parser.error(f"{given.save.name} was measured elsewhere, or with other versions: measure all")
    found = old.get("notebooks", {}) if given.notebooks else {}
    given.save.parent.mkdir(parents=True, exist_ok=True)
    for path in paths:  # what is measured stays, whatever comes next
        found[path.stem] = at_speed(measured(path), {} if given.again else found.get(path.stem, {}))
        print(f"{found[path.stem]['seconds']:5.1f} s  {path.stem}", flush=True)
        date = datetime.now(UTC).date().isoformat()
        record = {**head(), "date": date, "notebooks": dict(sorted(found.items()))}
        given.save.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    total = sum(one["seconds"] for one in found.values())
    print(f"{total:5.1f} s  all {len(found)}\n\nThe slowest cells:", *slowest(found), sep="\n")


if __name__ == "__main__":
    main()
