"""The explorer of notebook 02: the sinusoidal encoding, cell by cell."""

from __future__ import annotations

from ..encodings.sinusoidal import LAYOUTS
from .parts import Choice, Index, LiveExplorer, Steps, palette

BASES = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
NEAR = 0.99  # from this cosine on, two vectors are nearly the same


class SinusoidalExplorer(LiveExplorer):
    """Positions × dimensions of PE, and beside it one vector, the wavelengths or similarities."""

    front = "sinusoidal"
    parameters = {
        "d_model": Steps((4, 8, 16, 32, 64, 128), 16),
        "positions": Steps((20, 32, 64, 128, 256, 512), 64),
        "base": Steps(BASES, 10_000, text="{:,}".format),
        "layout": Choice(LAYOUTS, "interleaved"),
        "view": Choice(("vector", "wavelengths", "similarity"), "vector", label="second view"),
        "position": Index("positions", 20),
        "dimension": Index("d_model", 4),
    }
    challenge = f"Find settings at which a position from 2 on looks like position 0 (cosine ≥ {NEAR})."

    @classmethod
    def constants(cls):
        return {"palette": palette(64), "near": NEAR}
