"""The explorer of notebook 02: the sinusoidal encoding, cell by cell."""

from __future__ import annotations

import functools
import math

import torch

from ..encodings.sinusoidal import LAYOUTS, frequencies, sinusoidal
from ..language import _
from .parts import Choice, Heat, Index, Lines, LiveExplorer, Scene, Steps, palette

BASES = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
NEAR = 0.99  # a cosine from which on two vectors are nearly the same


@functools.lru_cache(maxsize=4)  # one setting asks for it three times
def table(positions: int, d_model: int, base: int, layout: str) -> torch.Tensor:
    """PE of the positions 0 … ``positions`` − 1, float64 ``[positions, d_model]``."""
    return sinusoidal(torch.arange(positions).double(), d_model, base=base, layout=layout)


def formula(position: int, dimension: int, d_model: int, base: int, layout: str) -> str:
    """How one cell is computed, with the numbers put in (``d_model`` even).

    >>> formula(7, 12, 64, 10_000, "interleaved")
    'PE(7, 12) = sin(7 / 10000^(12/64))'
    >>> formula(7, 44, 64, 10_000, "concatenated")
    'PE(7, 44) = cos(7 / 10000^(12/31))'
    """
    if layout == "interleaved":
        wave, exponent = ("sin", "cos")[dimension % 2], f"{dimension // 2 * 2}/{d_model}"
    else:
        half = d_model // 2
        wave, exponent = ("sin", "cos")[dimension // half], f"{dimension % half}/{half - 1}"
    return f"PE({position}, {dimension}) = {wave}({position} / {base}^({exponent}))"


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
    challenge = (
        f"Find settings at which a position from 2 on has nearly the same vector as "
        f"position 0 (cosine ≥ {NEAR})."
    )

    @classmethod
    def constants(cls):
        return {"palette": palette("signed", 64).hex(), "near": NEAR}

    @staticmethod
    def render(*, d_model, positions, base, layout, view, position, dimension):
        pe = table(positions, d_model, base, layout)
        heat = Heat(
            pe,
            f"PE: {positions} positions × {d_model} dimensions",
            "dimension",
            "position",
            mark=(position, dimension),
            readout=f"{formula(position, dimension, d_model, base, layout)} = {pe[position, dimension]:.4f}",
        )
        omega = frequencies(d_model, base=base, layout=layout)
        if view == "vector":
            beside = Lines(
                range(d_model),
                {"PE": pe[position]},
                f"The vector PE({position})",
                "dimension",
                "value",
                ylim=(-1.05, 1.05),
                markers=d_model <= 64,
                mark=dimension,
            )
            seen = _("the vector PE({0})").format(position)
        elif view == "wavelengths":
            waves = 2 * math.pi / omega
            pair = dimension // 2 if layout == "interleaved" else dimension % len(omega)
            beside = Lines(
                range(len(omega)),
                {"wavelength": waves},
                "Wavelength of each sin/cos pair",
                "pair",
                "positions",
                logy=True,
                markers=True,
                mark=pair,
                levels={f"the {positions} positions shown": positions},
            )
            seen = _("wavelengths from {0} to {1} positions").format(f"{waves[0]:.1f}", f"{waves[-1]:,.0f}")
        else:
            dots = pe @ pe[position]
            beside = Lines(
                range(positions),
                {"dot product": dots},
                f"PE({position}) · PE(other)",
                "other position",
                "dot product",
                mark=position,
                levels={f"{NEAR} of the largest": NEAR * float(dots[position])},
            )
            seen = _("its dot products with all others, at most {0} (with itself)").format(
                f"{dots.max():.4g}"
            )
        return Scene(
            {"table": heat, "beside": beside},
            _(
                "PE of {0} positions × {1} dimensions, base {2}, {3} layout, from −1 (dark blue) to +1 "
                "(light "
                "yellow); marked is position {4}, dimension {5}; beside it {6}."
            ).format(positions, d_model, base, _(layout), position, dimension, seen),
        )

    @staticmethod
    def reached(*, d_model, positions, base, layout, **_rest):
        pe = table(positions, d_model, base, layout)
        cosine = torch.cosine_similarity(pe[2:], pe[:1], dim=-1)
        best = int(cosine.argmax())
        said = _("position {0}, cosine {1}.").format(best + 2, f"{cosine[best]:.4f}")
        return said if cosine[best] >= NEAR else ""
