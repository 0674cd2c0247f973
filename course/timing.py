"""How long something takes beside something else, and how much memory it holds."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable

import torch


def interleaved(cases: dict[str, Callable], rounds: int, device: torch.device) -> dict[str, list[float]]:
    """Seconds of each case in each round. All cases take turns, so that a slow moment hits all alike.

    Each round has an order of its own, and each case runs twice, the second time counted: so the
    caches hold its own data and not its neighbour's, as from layer to layer of a model. One round
    before counting warms the compilers.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    order = random.Random(0)
    for number in range(rounds + 1):
        for name in order.sample(list(cases), len(cases)):
            cases[name]()
            wait(device)
            start = time.perf_counter()
            cases[name]()
            wait(device)
            if number:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def wait(device: torch.device) -> None:
    """Wait until the accelerator has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def ratio(seconds: dict[str, list[float]], slow: str, fast: str) -> float:
    """How many times as long ``slow`` takes as ``fast``: the median over the rounds of their quotient."""
    return statistics.median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True))


def peak_bytes(run: Callable, device: torch.device) -> int | None:
    """The most memory that ``run`` holds at a time beyond what was there before; None on MPS."""
    run()  # what is allocated once and kept does not count
    if device.type == "cuda":
        wait(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        wait(device)
        return torch.cuda.max_memory_allocated(device) - before
    if device.type != "cpu":
        return None
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler is chatty
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True) as profile:
        result = run()
    del result
    held = peak = 0
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak
