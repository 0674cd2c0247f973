"""One short training for exercise 09: an encoding, a use, a seed, and the two numbers that come out."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tutorial_lib.language import _

from ..checks.questions.q09 import USES
from ..experiments import tasks
from ..progress import record
from .smollm2 import gently


def trial(use: str, encoding: str, seed: int) -> tuple[float, float]:
    """Train one small model and measure it; prints and returns its accuracy at 16 and at 64 tokens.

    ``use`` is one of the five tasks of ``course.experiments.tasks``, ``encoding`` one of its
    seven. Sizes and steps are those of the recorded experiment. About ten seconds on two cores.
    """
    settings = tasks.EXPERIMENT.presets["full"]
    measured = tasks.measure(settings, {"task": use, "encoding": encoding}, seed, torch.device("cpu"))
    short, _twice, long, _far = measured["accuracy"]
    record(f"09.trial.{use}.{encoding}.{seed}", accuracy=[short, long])
    print(
        _("{use}, {encoding}, seed {seed}: accuracy {short:.2f} at 16 tokens, {long:.2f} at 64").format(
            use=use, encoding=encoding, seed=seed, short=short, long=long
        )
    )
    return round(short, 2), round(long, 2)


@gently
def trials(report: Callable, seed: int) -> None:
    """A :func:`trial` for each use, of the encoding that ``report(use)["encoding"]`` chooses."""
    for use in USES:
        choice = report(use)
        encoding = choice.get("encoding") if isinstance(choice, dict) else None
        if encoding not in tasks.ENCODINGS:
            print(
                _("{use}: no encoding chosen yet; there are {names}").format(
                    use=use, names=_(", ").join(tasks.ENCODINGS)
                )
            )
            continue
        trial(use, encoding, seed)
