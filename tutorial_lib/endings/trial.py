"""One short training for exercise 09: an encoding, a use, a seed, and the two numbers that come out."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..checks.questions.q09 import USES
from ..experiments import tasks
from ..progress import record
from .smollm2 import gently


def trial(use: str, encoding: str, seed: int) -> tuple[float, float]:
    """Train one small model and measure it; prints and returns its accuracy at 16 and at 64 tokens.

    ``use`` is one of the five tasks of ``tutorial_lib.experiments.tasks``, ``encoding`` one of its
    seven. Sizes and steps are those of the recorded experiment. About ten seconds on two cores.
    """
    settings = tasks.EXPERIMENT.presets["full"]
    measured = tasks.measure(settings, {"task": use, "encoding": encoding}, seed, torch.device("cpu"))
    short, _, long, _ = measured["accuracy"]
    record(f"09.trial.{use}.{encoding}.{seed}", accuracy=[short, long])
    print(f"{use}, {encoding}, seed {seed}: accuracy {short:.2f} at 16 tokens, {long:.2f} at 64")
    return round(short, 2), round(long, 2)


@gently
def trials(report: Callable, seed: int) -> None:
    """A :func:`trial` for each use, of the encoding that ``report(use)["encoding"]`` chooses."""
    for use in USES:
        choice = report(use)
        encoding = choice.get("encoding") if isinstance(choice, dict) else None
        if encoding not in tasks.ENCODINGS:
            print(f"{use}: no encoding chosen yet; there are {', '.join(tasks.ENCODINGS)}")
            continue
        trial(use, encoding, seed)
