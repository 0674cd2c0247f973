"""The explorer of notebook 08: RoPE's frequencies before and after they are scaled for longer texts."""

from __future__ import annotations

from typing import NamedTuple

from ..encodings.scaling import (
    Llama3,
    LongRoPE,
    YaRN,
)
from .measured import measured
from .parts import Choice, Index, LiveExplorer, Steps


class Trained(NamedTuple):
    """What a model was trained with: channels per head, base, and length."""

    d: int
    base: float
    L: int


MODELS = {
    "Llama 2 7B": Trained(128, 10_000, 4096),
    "Llama 3 8B": Trained(128, 500_000, 8192),
    "SmolLM2-135M": Trained(64, 100_000, 8192),
    "Phi-3.5-mini": Trained(96, 10_000, 4096),
    "a small one": Trained(16, 10_000, 128),
}
METHODS = ("none", "PI", "NTK-aware", "dynamic NTK", "YaRN", "Llama 3", "LongRoPE", "larger base")
SEARCHED = "Phi-3.5-mini"
"""The model for which we have LongRoPE's factors: they are the result of a search, for one model only."""
LONGROPE = LongRoPE(  # rope_scaling of microsoft/Phi-3.5-mini-instruct, config.json
    short=(
        1.0,
        1.02,
        1.03,
        1.03,
        1.05,
        1.05,
        1.05,
        1.05,
        1.05,
        1.07,
        1.1,
        1.11,
        1.16,
        1.16,
        1.17,
        1.29,
        1.34,
        1.68,
        1.79,
        1.82,
        1.85,
        1.88,
        1.91,
        1.94,
        1.99,
        2.02,
        2.02,
        2.02,
        2.02,
        2.02,
        2.02,
        2.03,
        2.03,
        2.03,
        2.03,
        2.03,
        2.03,
        2.03,
        2.03,
        2.03,
        2.08,
        2.09,
        2.19,
        2.22,
        2.59,
        2.73,
        2.75,
        2.84,
    ),
    long=(
        1.08,
        1.11,
        1.14,
        1.34,
        1.59,
        1.6,
        1.62,
        2.62,
        3.23,
        3.23,
        4.79,
        7.4,
        7.7,
        9.09,
        12.2,
        17.67,
        24.46,
        28.57,
        30.42,
        30.84,
        32.59,
        32.93,
        42.32,
        44.96,
        50.34,
        50.45,
        57.55,
        57.93,
        58.21,
        60.14,
        62.61,
        62.62,
        62.71,
        63.14,
        63.14,
        63.77,
        63.93,
        63.96,
        63.97,
        64.03,
        64.07,
        64.08,
        64.12,
        64.41,
        64.48,
        64.51,
        64.53,
        64.84,
    ),
    L=4096,
    s=32,
)
LARGER = 50  # times the base: from 10,000 to 500,000, as Xiong et al. 2023
ALIKE = 0.99  # from this ratio on, a frequency counts as left alone
FAR = 4  # times the trained length, for the challenge
HEARD = "SmolLM2-135M"
"""The model whose loss on a text that it reads again is recorded, for some of the methods and factors."""
RAMPS = {"YaRN": (YaRN.alpha, YaRN.beta), "Llama 3": (Llama3.low, Llama3.high)}  # in turns within L


def heard() -> dict[str, tuple[list[float], list[float]]]:
    """Distances, and SmolLM2's mean loss on a text it read that far back: by ``"YaRN 4"``, ``"none"``."""
    return measured()["repeat"]


def without() -> float:
    """SmolLM2's mean loss on these texts when it reads them for the first time."""
    return measured()["first"]


def _pairs(params) -> int:
    return MODELS[params["model"]].d // 2


class ScalingExplorer(LiveExplorer):
    """The wavelength of each pair against two lengths, and beside it its turns, or θ′/θ."""

    front = "scaling"
    parameters = {
        "model": Choice(tuple(MODELS), "SmolLM2-135M", menu=True),
        "method": Choice(METHODS, "none", menu=True),
        "s": Steps((1, 2, 4, 8, 16, 32), 4, label="factor s"),
        "times": Steps(
            (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32), 4, label="length of the text", text="{:g} × L".format
        ),
        "view": Choice(("turns", "θ′/θ"), "turns", label="second view"),
        "pair": Index(_pairs, 22, label="pair t"),
        "loss": Choice(("hidden", "shown"), "hidden", label="SmolLM2's loss"),
    }
    challenge = (
        f"At {FAR} × L or more: no new angle in any pair, the fastest quarter as it was (θ′/θ ≥ {ALIKE})."
    )

    @classmethod
    def constants(cls):
        return {
            "models": {name: list(model) for name, model in MODELS.items()},
            "larger": LARGER,
            "ramps": RAMPS,
            "alike": ALIKE,
            "far": FAR,
            "listens": HEARD,
            "heard": {name: list(both) for name, both in heard().items()},
            "without": without(),
            "longrope": {
                "model": SEARCHED,
                "short": list(LONGROPE.short),
                "long": list(LONGROPE.long),
                "factor": LONGROPE.attention_factor,
            },
        }
