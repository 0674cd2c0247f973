"""How a case is timed, how its memory is measured, and on what machine."""

from __future__ import annotations

import platform

import torch

from course.timing import interleaved, peak_bytes, ratio, wait

__all__ = ["interleaved", "machine", "peak_bytes", "ratio", "wait"]


def machine(device: torch.device | None = None) -> str:
    """The device in words; the CPU if there is none."""
    device = device or torch.device("cpu")
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    kind = "MPS" if device.type == "mps" else f"CPU, {torch.get_num_threads()} threads"
    return f"{platform.system()} {platform.machine()}, {kind}"
