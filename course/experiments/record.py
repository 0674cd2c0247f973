"""What a run leaves behind: a JSON record that says what was done, with what, and what came out."""

from __future__ import annotations

import functools
import json
import math
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import fastjsonschema
import torch

from tutorial_lib import __version__

SCHEMAS: dict[str, dict] = {
    "numbers": {"type": ["number", "array"], "items": {"$ref": "#/$defs/numbers"}},
    "plain": {
        "type": ["string", "number", "boolean", "null", "array", "object"],
        "items": {"$ref": "#/$defs/plain"},
        "additionalProperties": {"$ref": "#/$defs/plain"},
    },
    "table": {"type": "object", "additionalProperties": {"$ref": "#/$defs/plain"}},
    "run": {
        "type": "object",
        "additionalProperties": False,
        "required": ["cell", "seed", "values", "seconds"],
        "properties": {
            "cell": {"$ref": "#/$defs/table"},
            "seed": {"type": "integer"},
            "values": {"type": "object", "additionalProperties": {"$ref": "#/$defs/numbers"}},
            "seconds": {"type": "number", "minimum": 0},
            "versions": {"$ref": "#/$defs/versions"},
        },
    },
    "versions": {
        "type": "object",
        "required": ["python", "torch", "tutorial_lib"],
        "additionalProperties": {"type": "string"},
    },
}
SCHEMAS["record"] = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "experiment",
        "preset",
        "command",
        "settings",
        "seeds",
        "device",
        "threads",
        "versions",
        "seconds",
        "runs",
    ],
    "properties": {
        "experiment": {"type": "string"},
        "preset": {"type": "string"},
        "command": {"type": "string"},
        "settings": {"$ref": "#/$defs/table"},
        "seeds": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "uniqueItems": True},
        "device": {"type": "string"},
        "threads": {"type": "integer", "minimum": 1},
        "versions": {"$ref": "#/$defs/versions"},
        "seconds": {"type": "number", "minimum": 0},
        "runs": {"type": "array", "items": {"$ref": "#/$defs/run"}},
    },
}


@dataclass(frozen=True)
class Run:
    """One cell of a sweep with one seed: what was measured, and the seconds that it took.

    ``versions`` are those of its record, unless it was added later, with others.
    """

    cell: dict
    seed: int
    values: dict
    seconds: float
    versions: dict[str, str] | None = None

    def plain(self) -> dict:
        """As it stands in a file."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass
class Record:
    """All runs of an experiment, and all that is needed to run them again.

    Attributes:
        experiment, preset, command: what ran, and the command that does it again.
        settings: the numbers of the preset.
        seeds, device, threads, versions: with what.
        seconds: the sum over all runs, of one process each.
        runs: one :class:`Run` per cell and seed.
    """

    experiment: str
    preset: str
    command: str
    settings: dict
    seeds: list[int]
    device: str
    threads: int
    versions: dict[str, str]
    seconds: float = 0.0
    runs: list[Run] = field(default_factory=list)

    def values(self, name: str, **cell) -> list:
        """``name`` as measured in the one cell that has these entries, in the order of the seeds.

        A cell that has exactly these entries takes precedence over one that has more. But where the same was
        measured both at one learning rate for all and at its own ``rates``, the latter count;
        :meth:`at_one_rate` has the others.

        Raises KeyError when no cell or more than one fits, a seed is missing, or nothing has the name.

        >>> record = Record("x", "live", "", {}, [0, 1], "cpu", 1, {})
        >>> record.runs = [Run({"encoding": "alibi"}, seed, {"loss": 2.0 + seed}, 1.0) for seed in (0, 1)]
        >>> record.values("loss", encoding="alibi")
        [2.0, 3.0]
        """
        cells = self.cells()
        tuned = [_without_rates(one) for one in cells if "rates" in one]
        known = [one for one in cells if "rates" in one or one not in tuned]
        some = [one for one in known if cell.items() <= one.items()]
        fit = [one for one in some if _without_rates(one) == _without_rates(cell)] or some
        if len(fit) != 1:
            raise KeyError(f"{len(fit)} cells of {self.experiment!r} fit {cell}; there are {known}")
        found = {run.seed: run.values for run in self.runs if run.cell == fit[0]}
        if missing := [seed for seed in self.seeds if seed not in found]:
            raise KeyError(f"{self.experiment!r} lacks {cell} with seed {missing[0]}: finish the sweep")
        if lacking := [seed for seed in self.seeds if name not in found[seed]]:
            raise KeyError(
                f"{self.experiment!r} measured no {name!r} in {cell}: there is "
                + ", ".join(map(repr, found[lacking[0]]))
            )
        return [found[seed][name] for seed in self.seeds]

    def cells(self) -> list[dict]:
        """The different cells, in the order in which they were first run."""
        cells = []
        for run in self.runs:
            if run.cell not in cells:
                cells.append(run.cell)
        return cells

    @property
    def tuned(self) -> bool:
        """Whether something was measured both at one rate for all and at rates of its own."""
        return len({"rates" in run.cell for run in self.runs}) == 2

    def at_one_rate(self) -> Record:
        """The record without what was measured at rates of its own."""
        return replace(self, runs=[run for run in self.runs if "rates" not in run.cell])

    def made_with(self, package: str) -> str:
        """The version of a package, or all that its runs were made with: ``"2.13.0, 2.14.0"``."""
        later = [run.versions for run in self.runs if run.versions]
        return ", ".join(dict.fromkeys(found[package] for found in (self.versions, *later)))

    def plain(self) -> dict:
        """As it stands in a file."""
        return vars(self) | {"runs": [run.plain() for run in self.runs]}

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def save(self, path: Path) -> None:
        """Write the record; an existing file is replaced only once the new one is complete.

        Raises ValueError, and writes nothing, for a record that does not fit the schema.
        """
        data = checked(self.plain(), "record", path.name)
        write(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read and validate a record.

        Raises FileNotFoundError with the command that makes it, ValueError for one that is broken.
        """
        if not path.exists():
            name, _, preset = path.stem.rpartition("-")
            raise FileNotFoundError(
                f"there is no record {path.name}: `python -m course.experiments run {name} "
                f"--preset {preset}` makes it"
            )
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path.name} is no JSON: {error}") from None
        data = checked(data, "record", path.name)
        record = cls(**{**data, "runs": [Run(**run) for run in data["runs"]]})
        seen = [[run.cell, run.seed] for run in record]
        for n, run in enumerate(seen):
            if run in seen[:n] or run[1] not in record.seeds:
                raise ValueError(
                    f"{path.name} is not a valid record at $.runs[{n}]: {run} stands there "
                    f"twice, or its seed is not one of {record.seeds}"
                )
        return record


def _without_rates(cell: dict) -> dict:
    return {key: value for key, value in cell.items() if key != "rates"}


def checked(data: dict, kind: str, name: str) -> dict:
    """A ``"record"`` or ``"run"`` as JSON gives it back: no tuples. ValueError says where it does not fit."""
    try:
        data = json.loads(json.dumps(data))
    except TypeError as error:
        raise ValueError(f"{name} cannot be written as JSON: {error}") from None
    try:
        _validator(kind)(data)
    except fastjsonschema.JsonSchemaValueException as error:
        place, _, wanted = error.message.partition(" must ")
        found = "" if isinstance(error.value, (dict, list)) else f"{error.value!r} "
        raise ValueError(
            f"{name} does not fit the schema at ${place.removeprefix('data')}: {found}must {wanted}"
        ) from None
    for place, number in _not_finite(data, "$"):
        raise ValueError(f"{name} does not fit the schema at {place}: {number} is no finite number")
    return data


@functools.cache
def _validator(kind: str) -> Callable[[Any], Any]:
    return fastjsonschema.compile({"$defs": SCHEMAS, "$ref": f"#/$defs/{kind}"})


def _not_finite(data, place: str) -> Iterator[tuple[str, float]]:
    """JSON has no NaN, but Python's json reads and writes it."""
    if isinstance(data, float) and not math.isfinite(data):
        yield place, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _not_finite(value, f"{place}.{key}")
    elif isinstance(data, list):
        for n, value in enumerate(data):
            yield from _not_finite(value, f"{place}[{n}]")


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def versions() -> dict[str, str]:
    """Versions of what numbers may depend on."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": metadata.version("numpy"),
        "tutorial_lib": __version__,
    }
