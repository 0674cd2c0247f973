"""One command, one table: ``python -m workshop.benchmarks``; ``--save FILE`` keeps a record beside it."""

from __future__ import annotations

import argparse
import json
import statistics
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import torch

from tutorial_lib.device import pick_device

from .cases import Table, tables
from .measure import interleaved, machine, peak_bytes, ratio

PACKAGES = ("torch", "transformers", "x-transformers", "rotary-embedding-torch")
TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}


def check(table: Table, dtype: torch.dtype) -> None:
    """Raise AssertionError unless the cases that should compute the same do; speed alone proves nothing."""
    for first, *others in table.alike:
        expected = table.cases[first]()
        for name in others:
            torch.testing.assert_close(
                table.cases[name](),
                expected,
                atol=TOLERANCE[dtype],
                rtol=TOLERANCE[dtype],
                msg=lambda text, name=name, first=first: f"{table.title}: {name} is not {first}: {text}",
            )


def measured(table: Table, rounds: int, device: torch.device) -> dict:
    """Milliseconds, ratios to ``table.unit``, MiB, and what became of each target."""
    seconds = interleaved(table.cases, rounds, device)
    peaks = {name: peak_bytes(run, device) for name, run in table.cases.items()}
    rows = {
        name: {
            "ms": 1e3 * statistics.median(seconds[name]),
            "ratio": ratio(seconds, name, table.unit),
            "MiB": None if peaks[name] is None else peaks[name] / 2**20,
        }
        for name in table.cases
    }
    targets = []
    for target in table.targets:
        if target.of == "time":
            got = ratio(seconds, target.slow, target.fast)
        elif peaks[target.fast] is None:
            continue
        else:
            got = peaks[target.slow] / peaks[target.fast]
        targets.append({"target": str(target), "least": target.least, "measured": got})
    return {"title": table.title, "rounds": rounds, "unit": table.unit, "rows": rows, "targets": targets}


def show(result: dict) -> str:
    """The result as lines of text."""
    width = max(map(len, result["rows"]))
    lines = [result["title"], f"  {'':{width}} {'median ms':>10} {'ratio':>7} {'peak MiB':>9}"]
    for name, row in result["rows"].items():
        mib = "" if row["MiB"] is None else f"{row['MiB']:.1f}"
        lines.append(f"  {name:{width}} {row['ms']:10.2f} {row['ratio']:7.2f} {mib:>9}")
    for target in result["targets"]:
        met = "met   " if target["measured"] >= target["least"] else "MISSED"
        lines.append(f"  {met} {target['measured']:6.2f}  {target['target']}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m workshop.benchmarks", description=__doc__)
    parser.add_argument("tables", nargs="*", help="some of them; by default all")
    parser.add_argument("--rounds", type=int, default=15, help="how often each case is timed (15)")
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--dtype",
        choices=["float32", "bfloat16", "float16"],
        help="by default bfloat16 on CUDA, float32 elsewhere",
    )
    parser.add_argument("--save", type=Path, help="also write a JSON record to this file")
    given = parser.parse_args(arguments)
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds}: it must be at least 1")
    device = pick_device(given.device)
    dtype = getattr(torch, given.dtype or ("bfloat16" if device.type == "cuda" else "float32"))
    known = tables(device, dtype)
    if unknown := set(given.tables) - set(known):
        parser.error(f"no table {', '.join(sorted(unknown))}: choose from {', '.join(known)}")

    print(
        f"{machine(device)}; median of {given.rounds} interleaved rounds; "
        "ratio: time beside the case at 1.00\n",
        flush=True,
    )
    results = []
    for name in given.tables or known:
        torch.manual_seed(0)
        table = known[name]()
        check(table, dtype)
        results.append({"name": name, **measured(table, given.rounds, device)})
        print(show(results[-1]), flush=True)
    if given.save:
        record = {
            "machine": machine(device),
            "threads": torch.get_num_threads(),
            "dtype": str(dtype),
            "versions": {name: metadata.version(name) for name in PACKAGES},
            "date": datetime.now(UTC).date().isoformat(),
            "tables": results,
        }
        given.save.parent.mkdir(parents=True, exist_ok=True)
        given.save.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
