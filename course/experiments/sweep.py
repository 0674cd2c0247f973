"""Running an experiment: every cell with every seed, here or on a cluster, without losing any."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from matplotlib.figure import Figure
from tqdm.auto import tqdm

from tutorial_lib import parallel
from tutorial_lib.device import pick_device
from tutorial_lib.training import all_or_nothing
from tutorial_lib.workers import ignoring_ctrl_c

from .. import verdicts
from ..verdicts import Outcome
from .record import Record, Run, checked, versions, write

PRESETS = ("live", "full", "chinese", "gpu", "exercise")
LISTS = ("bases", "between", "encodings", "protocol", "scalings", "texts")
"""Settings that only list cells: one more on the list leaves what was measured for the others as it is."""

NAMES = {
    "none": "no positions",
    "rotary": "RoPE",
    "raw": "RoPE as trained",
    "alibi": "ALiBi",
    "xpos": "xPos",
    "t5": "T5",
    "shaw": "Shaw",
    "deberta": "DeBERTa",
    "transformer-xl": "Transformer-XL",
    "tupe": "TUPE",
    "cope": "CoPE",
    "kerple": "KERPLE",
    "fire": "FIRE",
    "sandwich": "Sandwich",
    "forgetting": "Forgetting",
    "concat": "concatenate",
}
"""What figures call an encoding; in records it is named as in the registry."""

PATIENCE = 20  # seconds to wait for a cluster to answer


def spoken(name: str) -> str:
    """What a figure calls it.

    >>> [spoken(name) for name in ("rotary + YaRN", "alibi-symmetric", "table")]
    ['RoPE + YaRN', 'ALiBi-symmetric', 'table']
    """
    return re.sub(rf"\b({'|'.join(NAMES)})\b(?! \()", lambda word: NAMES[word[0]], name)


@dataclass(frozen=True)
class Finding:
    """A claim beside what was measured.

    Attributes:
        claim: the sentence, as the paper or people say it.
        source: paper with table or section; empty for a question of our own.
        theirs: what the paper measured, with its numbers; empty when it measured nothing.
        ours: what this record shows, with numbers and intervals.
        outcome: the verdict on these numbers, and its condition (:mod:`course.verdicts`).
        why: the reason why it does not hold; needed in that case, and shown only then.
        open_why: the reason why the numbers do not decide, where there is more to it than their interval.
    """

    claim: str
    source: str
    theirs: str
    ours: str
    outcome: Outcome
    why: str = ""
    open_why: str = "the interval reaches over the limit"

    def __post_init__(self):
        if self.verdict == verdicts.FAILS and not self.why:
            raise ValueError(f"{self.claim!r} does not hold: say why that may be")

    @property
    def verdict(self) -> str:
        return self.outcome.verdict

    @property
    def reason(self) -> str:
        """Why it does not hold, or is not shown; empty for what holds."""
        return {verdicts.FAILS: self.why, verdicts.OPEN: self.open_why}.get(self.verdict, "")


TRAINING = "{model}; {steps:,} steps of {batch} {examples}; {rates}"


def in_words(template: str, **sizes) -> Callable[[dict], str]:
    """A sentence with the settings of a preset in its braces, or ``sizes`` where the preset says nothing.

    ``{model}`` are layers and width, ``{rates}`` how learning rates were chosen, ``{training}`` all of it.

    >>> in_words("{model}; {rates}", layers=1, d_model=8)({"lr": 0.01, "protocol": ["own"]})
    '1 layer of width 8; each encoding at its own learning rates'
    """

    def filled(settings: dict) -> str:
        known: dict = {"examples": "sequences"} | sizes | settings
        if "layers" in known:
            layers = known["layers"] if isinstance(known["layers"], list) else [known["layers"]]
            known["model"] = (
                f"{' or '.join(map(str, layers))} layer{'s' if layers[-1] > 1 else ''} "
                f"of width {known['d_model']}"
            )
        if "lr" in known:
            said = {
                "one": f"one learning rate for all, {known['lr']:g}",
                "own": "each encoding at its own learning rates",
            }
            known["rates"] = ", and at ".join(said[each] for each in reversed(known.get("protocol", ["one"])))
        return template.replace("{training}", TRAINING).format(**known)

    return filled


@dataclass(frozen=True)
class Experiment:
    """A named experiment.

    Attributes:
        name, title: for the command line, and for people.
        presets: settings for ``"live"`` (a minute on two cores), ``"full"`` (the shipped record),
            ``"chinese"`` (the same in a Chinese text), ``"gpu"`` (larger models, and up to 16 times the
            trained length or more: an estimated (not timed) ten minutes on one GPU) and ``"exercise"``
            (what a graded exercise trains).
        seeds: for each preset.
        cells: from settings to the cells of the sweep, dictionaries that JSON can hold.
        measure: ``measure(settings, cell, seed, device)`` gives numbers, or lists of them, by name.
        figure: draws a record.
        alt: one sentence on what the figure of a record shows.
        findings: what a record says about which claims.
        over: what differs from one seed to the next, where it is not the training.
        table: what was measured, as Markdown for the page of results; None where its sentences say it all.
        setup: what is trained on what, from settings to a sentence for that page (:func:`in_words`).
    """

    name: str
    title: str
    presets: dict[str, dict]
    seeds: dict[str, tuple[int, ...]]
    cells: Callable[[dict], list[dict]]
    measure: Callable[[dict, dict, int, torch.device], dict]
    figure: Callable[[Record], Figure]
    alt: Callable[[Record], str]
    findings: Callable[[Record], list[Finding]] = field(default=lambda record: [])
    over: str = "seeds"
    table: Callable[[Record], str] | None = None
    setup: Callable[[dict], str] | None = None


def run(
    experiment: Experiment,
    preset: str = "live",
    *,
    seeds: tuple[int, ...] | None = None,
    device: str = "auto",
    out: Path | None = None,
    scheduler: str | None = None,
    progress: bool = True,
    again: bool = False,
) -> Record:
    """Measure every cell with every seed, or only what an existing record lacks.

    Args:
        experiment, preset: what to run.
        seeds: in place of the preset's.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, …
        out: write the record to this file. What it already holds is kept as it is, and the cells and seeds
            that it lacks are measured, on the same number of threads. Until it is complete, finished runs
            are kept in a file beside it, and a second call continues there. None: write nothing.
        scheduler: None runs here; the address of a Dask cluster, or ``"local"`` for one that is
            started for this run: one process for each core. A worker computes on one thread.
        progress: show a bar.
        again: measure everything again, whatever the file holds.

    Interrupting the kernel (or Ctrl-C) ends the sweep; the record returned, or the file, holds what
    is finished. Under ``torchrun`` every process takes part in each run, and the first one writes.

    Raises:
        ValueError: an unknown preset, no seeds, measured values that are not finite numbers, or a
            record in the file that was made with other settings or on another device.
        ImportError, ConnectionError: no Dask here, or no cluster at that address.
        RuntimeError: workers that died again and again, always in the same run.
        BlockingIOError: another process is measuring for the same file.

    Whatever a measurement raises is passed on, with a note on where it happened; finished runs are kept.
    """
    if preset not in experiment.presets:
        known = ", ".join(map(repr, experiment.presets))
        raise ValueError(f"preset={preset!r}: {experiment.name!r} has {known}")
    seeds = tuple(seeds) if seeds is not None else experiment.seeds[preset]
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds={seeds}: give at least one, each once")
    with parallel.process_group(pick_device(device)) as where:
        if scheduler is not None and parallel.size() > 1:
            raise ValueError(f"scheduler={scheduler!r}: a sweep runs on Dask or under torchrun, not both")
        with _alone(out):
            old = Record.load(out) if out and not again and parallel.rank() == 0 and out.exists() else None
            old = parallel.agreed(old)
            if old is not None:
                seeds = tuple(dict.fromkeys((*old.seeds, *seeds)))
            record = Record(
                experiment.name,
                preset,
                _command(experiment, preset, seeds, device),
                plain(experiment.presets[preset]),
                list(seeds),
                _words(where),
                torch.get_num_threads() if scheduler is None else 1,
                versions(),
            )
            if out and old is not None:
                there = [(run.cell, run.seed) for run in old]
                if old.settings == record.settings and there == _wanted(experiment, record):
                    if parallel.rank() == 0:
                        print(f"{out.name} is there already, and lacks nothing; `--again` measures all anew")
                    return old
                _take_over(old, record, out.name)
            with threads(record.threads if scheduler is None else torch.get_num_threads()):
                _fill(record, experiment, where, out, scheduler, progress)
    return record


def _wanted(experiment: Experiment, record: Record) -> list[tuple[dict, int]]:
    """Every run of a complete record, seed by seed: after an interruption all cells have the first ones."""
    return [(cell, seed) for seed in record.seeds for cell in plain(experiment.cells(record.settings))]


def _take_over(old: Record, record: Record, name: str) -> None:
    """Give ``record`` the runs of the one in the file, if what it lacks may stand beside them."""
    for what, then, now in (
        ("settings", _common(old), _common(record)),
        ("device", old.device, record.device),
    ):
        if then != now:
            raise ValueError(
                f"{name} was measured with {what} {then}, and would go on with {now}: these numbers do not "
                "belong in one record. Measure all anew with `--again`, or elsewhere with `--folder`"
            )
    record.runs, record.threads, record.versions = old.runs, old.threads, old.versions


def _common(record: Record) -> dict:
    """The settings that every measurement depends on."""
    return _without_lists(record.settings)


def _without_lists(settings: dict) -> dict:
    return {
        name: _without_lists(value) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name not in LISTS
    }


@contextlib.contextmanager
def threads(n: int) -> Iterator[None]:
    """So many for PyTorch in this block."""
    if (before := torch.get_num_threads()) == n:
        yield
        return
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _alone(out: Path | None) -> Iterator[None]:
    """Keep out a second sweep for this file: all would be measured twice. The lock ends with its process."""
    if out is None or parallel.rank():
        yield
        return
    path = out.with_suffix(".partial.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(path).acquire(timeout=0)
    except Timeout:
        raise BlockingIOError(
            f"another process is measuring for {out.name}: wait until it is done, or end "
            "it; what is finished is kept"
        ) from None
    with held:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows can't remove an open file
                path.unlink()


def _fill(record, experiment, device, out, scheduler, progress):
    wanted, first, here = _wanted(experiment, record), parallel.rank() == 0, versions()
    journal = Journal(None if out is None or not first else out.with_suffix(".partial.jsonl"), record)
    done = {_key(run.cell, run.seed): run for run in [*record.runs, *parallel.agreed(journal.runs)]}
    missing = [(cell, seed) for cell, seed in wanted if _key(cell, seed) not in done]

    quiet = not progress or not first or bool(os.environ.get("TQDM_DISABLE"))
    bar = tqdm(total=len(wanted), initial=len(wanted) - len(missing), desc=experiment.title, disable=quiet)
    source = _here if scheduler is None else _on_dask
    stopped = False
    try:
        # closing ends the cluster at once, not when the generator happens to be collected
        with contextlib.closing(source(experiment, record.settings, missing, device, scheduler)) as runs:
            for run in runs:
                run = run if here == record.versions else replace(run, versions=here)
                journal.add(run)
                done[_key(run.cell, run.seed)] = run
                bar.update()
    except KeyboardInterrupt:
        stopped = True
    finally:
        bar.close()
    record.runs = [done[_key(*which)] for which in wanted if _key(*which) in done]
    record.seconds = round(sum(run.seconds for run in record.runs), 2)
    if stopped and first:
        print(f"Stopped after {len(record.runs)} of {len(wanted)} runs; what is finished is kept.")
    if out is not None and first and len(record.runs) == len(wanted):
        record.save(out)
        journal.close()


def _lines(path: Path) -> list[dict]:
    """Those of a journal down to the first that is broken: a crash may have torn the last one."""
    lines: list[dict] = []
    if path.exists():
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
                lines.append(checked(line, "run", path.name) if lines else line)
            except ValueError:
                break
    return lines


class Journal:
    """The finished runs of a sweep that is not complete yet, one a line; the first line says of what."""

    def __init__(self, path: Path | None, record: Record):
        self.path = path
        self.runs: list[Run] = []
        if path is None:
            return
        # seeds and cells may be added; anything else gives other numbers
        fixed = ("experiment", "preset", "device", "threads", "versions")
        head = plain({name: getattr(record, name) for name in fixed} | {"settings": _common(record)})
        found, *runs = _lines(path) or [{}]
        if found == head:
            self.runs = [Run(**run) for run in runs]
        elif path.exists():
            free = (path.with_suffix(f".old{n}") for n in itertools.count(1))
            old = path.replace(next(name for name in free if not name.exists()))
            print(f"{path.name} was made with other settings, versions or threads: kept as {old.name}")
        lines = [head, *map(Run.plain, self.runs)]
        write(path, "".join(json.dumps(line) + "\n" for line in lines))

    def add(self, run: Run) -> None:
        """Write it down at once."""
        self.runs.append(run)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run.plain()) + "\n")

    def close(self) -> None:
        """The record is complete, so the journal is no longer needed."""
        if self.path is not None:
            self.path.unlink()


def one(measure: Callable, settings: dict, cell: dict, seed: int, device: torch.device) -> Run:
    """One run: a pure function of its arguments."""
    start = time.perf_counter()
    try:
        with all_or_nothing():
            values = measure(settings, cell, seed, device)
        run = {"cell": cell, "seed": seed, "values": values, "seconds": round(time.perf_counter() - start, 2)}
        return Run(**checked(run, "run", "what was measured"))
    except Exception as error:
        error.add_note(f"This happened in {cell} with seed {seed}.")
        raise


def _here(experiment, settings, missing, device, scheduler) -> Iterator[Run]:
    for cell, seed in missing:
        yield one(experiment.measure, settings, cell, seed, device)


def _by_worker(measure, settings, cell, seed, device, here) -> Run:
    if (there := versions()) != here:
        raise RuntimeError(f"a worker has {there}, this process {here}: install the same everywhere")
    torch.set_num_threads(1)
    return one(measure, settings, cell, seed, torch.device(device))


def _on_dask(experiment, settings, missing, device, scheduler) -> Iterator[Run]:
    try:
        import dask
        from distributed import Client, KilledWorker, LocalCluster, as_completed
    except ImportError:
        raise ImportError(
            "a scheduler needs Dask: `python -m pip install --no-deps -r requirements.lock`, or leave "
            "--scheduler away"
        ) from None
    with contextlib.ExitStack() as stack:
        if scheduler == "local":
            # Dask's own setting gives freed memory back at once; a training asks for it again at each step
            trim = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**32}
            with ignoring_ctrl_c(), dask.config.set(trim):
                cluster = LocalCluster(threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL")
            address = stack.enter_context(cluster)
        else:
            address = scheduler
        try:
            client = stack.enter_context(Client(address, timeout=PATIENCE))
            client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise ConnectionError(
                f"scheduler={scheduler!r}: no Dask cluster with a worker answers there within {PATIENCE} s "
                f"({error}); give an address such as tcp://host:8786, or 'local' to start one"
            ) from None
        # a worker that dies takes its run with it: Dask gives it to another one
        futures = {
            client.submit(
                _by_worker, experiment.measure, settings, cell, seed, str(device), versions(), pure=False
            ): (cell, seed)
            for cell, seed in missing
        }
        for future in as_completed(futures):
            try:
                yield future.result()
            except KilledWorker as error:
                cell, seed = futures[future]
                raise RuntimeError(
                    f"several workers died in {cell} with seed {seed}: is there enough memory? ({error})"
                ) from None


def plain(data):
    """As JSON gives it back: a tuple is a list right away, not only once it was read from a file."""
    return json.loads(json.dumps(data))


def _key(cell: dict, seed: int) -> str:
    return json.dumps([cell, seed], sort_keys=True)


def _command(experiment, preset, seeds, device) -> str:
    """What to type to get these numbers again."""
    start = "python" if parallel.size() == 1 else f"torchrun --nproc-per-node {parallel.size()}"
    command = f"{start} -m course.experiments run {experiment.name} --preset {preset}"
    if seeds != tuple(experiment.seeds[preset]):
        command += " --seeds " + ",".join(map(str, seeds))
    return command if device == "auto" else f"{command} --device {device}"


def _words(device: torch.device) -> str:
    words = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return words if parallel.size() == 1 else f"{words}, {parallel.size()} processes"
