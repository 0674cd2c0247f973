"""The explorer of notebook 08: RoPE's frequencies before and after they are scaled for longer texts."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..encodings.scaling import (
    DynamicNTK,
    Frequencies,
    Llama3,
    NTKAware,
    PositionInterpolation,
    YaRN,
)
from .parts import Choice, Index, Lines, LiveExplorer, Scene, Steps


class Trained(NamedTuple):
    """What a model was trained with: channels per head, base, and length."""

    d: int
    base: float
    L: int


MODELS = {
    "Llama 2 7B": Trained(128, 10_000, 4096),
    "Llama 3 8B": Trained(128, 500_000, 8192),
    "SmolLM2-135M": Trained(64, 100_000, 8192),
    "a small one": Trained(16, 10_000, 128),
}
METHODS = ("none", "PI", "NTK-aware", "dynamic NTK", "YaRN", "Llama 3", "larger base")
LARGER = 50  # times the base: from 10,000 to 500,000, as Xiong et al. 2023
ALIKE = 0.99  # a ratio from which on a frequency counts as left alone
FAR = 4  # times the trained length, for the challenge
RAMPS = {"YaRN": (YaRN.alpha, YaRN.beta), "Llama 3": (Llama3.low, Llama3.high)}  # in turns within L


def thetas(method: str, s: float, model: Trained, length: int) -> tuple[Tensor, Tensor, Frequencies]:
    """θ as trained, θ′ of a method with the factor ``s`` at ``length``, float64 ``[d/2]``, and its maker."""
    scaling = {
        "PI": PositionInterpolation(s), "NTK-aware": NTKAware(s), "dynamic NTK": DynamicNTK(model.L, s),
        "YaRN": YaRN(s, model.L), "Llama 3": Llama3(s, model.L)}.get(method)
    base = model.base * (LARGER if method == "larger base" else 1)
    frequencies = Frequencies(model.d, base, scaling=scaling)
    return Frequencies(model.d, model.base).theta(), frequencies.theta(torch.tensor(length)), frequencies


def unseen(theta: Tensor, new: Tensor, L: int, length: int) -> Tensor:
    """Which pairs reach an angle that they did not reach in training, ``[d/2]``.

    A pair that made a whole turn in training has seen every angle.
    """
    seen = L * theta
    return (seen < 2 * math.pi) & (length * new > seen * (1 + 1e-9))


def _pairs(params) -> int:
    return MODELS[params["model"]].d // 2


class ScalingExplorer(LiveExplorer):
    """The wavelength of each pair against two lengths, and beside it its turns, or θ′/θ."""

    front = "scaling"
    parameters = {
        "model": Choice(tuple(MODELS), "SmolLM2-135M", menu=True),
        "method": Choice(METHODS, "none", menu=True),
        "s": Steps((1, 2, 4, 8, 16, 32), 4, label="factor s"),
        "times": Steps((1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32), 4, label="length of the text",
                       text="{:g} × L".format),
        "view": Choice(("turns", "θ′/θ"), "turns", label="second view"),
        "pair": Index(_pairs, 22, label="pair t"),
    }
    challenge = (f"Read a text of {FAR} × L or more, and let no pair reach an angle that it never saw in "
                 f"training. But leave the fastest quarter of the pairs as it was (θ′/θ ≥ {ALIKE}).")

    @classmethod
    def constants(cls):
        return {"models": {name: list(model) for name, model in MODELS.items()}, "larger": LARGER,
                "ramps": RAMPS, "alike": ALIKE, "far": FAR}

    @staticmethod
    def render(*, model, method, s, times, view, pair):
        trained = MODELS[model]
        d, base, L = trained
        length = int(times * L)
        theta, new, frequencies = thetas(method, s, trained, length)
        ratio, new_to_it = new / theta, unseen(theta, new, L, length)
        waves, new_waves = 2 * math.pi / theta, 2 * math.pi / new
        turns, new_turns = L / waves, length / new_waves
        title = {"none": "no scaling", "larger base": f"base × {LARGER}"}.get(method, f"{method}, s = {s}")
        longer = {f"{times:g} L = {length:,}": length} if times > 2 else {}  # else two texts on one another
        left = Lines(
            range(d // 2), {"as trained": waves, "now": new_waves},
            f"Wavelengths, {title}; trained length L", "pair t", "positions in a turn", logy=True,
            mark=pair, levels={f"L = {L:,}": L} | longer,
            readout=f"Pair {pair}: a turn in {waves[pair]:,.1f} positions, now in {new_waves[pair]:,.1f}.")
        if view == "turns":
            beside = Lines(
                range(d // 2), {"in the trained length": turns, "in the new length": new_turns},
                "How often each pair turns", "pair t", "turns", logy=True, mark=pair,
                ylim=(0.5 * float(turns.min()), 2 * float(turns.max())), levels={"a whole turn": 1},
                readout=f"Pair {pair}: {turns[pair]:.4g} turns in training, now {new_turns[pair]:.4g}: "
                        + ("angles never seen." if new_to_it[pair] else "no angle is new."))
        else:
            beside = Lines(
                range(d // 2), {"θ′/θ": ratio}, "Frequency now / as trained", "pair t", "θ′/θ",
                ylim=(0, 1.1), mark=pair, levels={f"1/s = {1 / s:.4g}": 1 / s})
        slow = int((turns < 1).sum())
        factor = frequencies.attention_factor
        return Scene({"wavelengths": left, "beside": beside}, (
            f"{model} (d = {d}, base {base:,}, trained on {L:,} positions), {title}, read up to "
            f"{length:,}: {slow} of {d // 2} pairs make less than a whole turn in training, and "
            f"{int(new_to_it.sum())} reach angles that they never saw; θ′/θ is {ratio[0]:.3g} for the "
            f"fastest pair and {ratio[-1]:.3g} for the slowest"
            + (f"; cosines and sines are multiplied by {factor:.3f}" if factor != 1 else "") + "."))

    @staticmethod
    def reached(*, model, method, s, times, **_):
        trained = MODELS[model]
        length = int(times * trained.L)
        theta, new, _ = thetas(method, s, trained, length)
        kept = (new / theta)[: trained.d // 8].min()
        if times < FAR or unseen(theta, new, trained.L, length).any() or kept < ALIKE:
            return ""
        return (f"no new angle within {length:,} positions, and θ′/θ ≥ {kept:.2f} for the fastest "
                f"{trained.d // 8} of {trained.d // 2} pairs.")
