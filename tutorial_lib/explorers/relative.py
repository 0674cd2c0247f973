"""The explorer of notebook 04: how a relative bias is built, where it looks, and what it costs."""

from __future__ import annotations

import functools

import torch

from ..encodings import bucket
from .parts import Choice, Index, LiveExplorer, Steps, palette

METHODS = ("full table", "clipped", "T5 buckets", "ALiBi")
SIGNS = ("j − i", "i − j")
SIZES, REACHES = (4, 8, 16), (16, 128)
FAR = (20, 90)
NEAR = 8


@functools.cache
def edges(size: int, far: int) -> list[int]:
    """The first distance of each T5 bucket from 1 on; two are the same where a bucket stays empty.

    >>> edges(8, 16)
    [1, 2, 3, 4, 6, 8, 12]
    """
    reached = bucket(-torch.arange(2 * far), bidirectional=True, n_buckets=2 * size, max_distance=far)
    return [int((reached >= n).nonzero()[0]) for n in range(1, size)]


class RelativeBiasExplorer(LiveExplorer):
    """The bias of every pair; beside it where the query looks with it alone, or the bytes that it costs."""

    front = "relative"
    parameters = {
        "method": Choice(METHODS, "T5 buckets"),
        "tokens": Steps((4, 8, 16, 32, 128), 32, label="tokens N"),
        "size": Steps(SIZES, 8, label="k, or buckets a side"),
        "far": Steps(REACHES, 128, label="max distance"),
        "sign": Choice(SIGNS, "j − i", label="read at"),
        "view": Choice(("attention", "memory"), "attention", label="beside it"),
        "i": Index("tokens", 1),
        "j": Index("tokens", 2),
    }
    challenge = (
        f"Find settings at which the distances {FAR[0]} and {FAR[1]} share a number, while each "
        f"of 0 … {NEAR} has one of its own."
    )

    @classmethod
    def constants(cls):
        return {
            "edges": {f"{size} {far}": edges(size, far) for size in SIZES for far in REACHES},
            "palette": palette(64),
            "shared": FAR,
            "near": NEAR,
        }
