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
    LongRoPE,
    NTKAware,
    PositionInterpolation,
    YaRN,
)
from ..language import _
from .measured import measured
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
ALIKE = 0.99  # a ratio from which on a frequency counts as left alone
FAR = 4  # times the trained length, for the challenge
HEARD = "SmolLM2-135M"
"""The model whose loss on a text that it reads again is recorded, for some of the methods and factors."""
RAMPS = {"YaRN": (YaRN.alpha, YaRN.beta), "Llama 3": (Llama3.low, Llama3.high)}  # in turns within L


def thetas(method: str, s: float, model: Trained, length: int) -> tuple[Tensor, Tensor, Frequencies]:
    """θ as trained, θ′ of a method with the factor ``s`` at ``length``, float64 ``[d/2]``, and its maker."""
    scaling = {
        "PI": PositionInterpolation(s),
        "NTK-aware": NTKAware(s),
        "dynamic NTK": DynamicNTK(model.L, s),
        "YaRN": YaRN(s, model.L),
        "Llama 3": Llama3(s, model.L),
        "LongRoPE": LONGROPE if model == MODELS[SEARCHED] else None,
    }.get(method)
    base = model.base * (LARGER if method == "larger base" else 1)
    frequencies = Frequencies(model.d, base, scaling=scaling)
    return Frequencies(model.d, model.base).theta(), frequencies.theta(torch.tensor(length)), frequencies


def unseen(theta: Tensor, new: Tensor, L: int, length: int) -> Tensor:
    """Which pairs reach an angle that they did not reach in training, ``[d/2]``.

    A pair that made a whole turn in training has seen every angle.
    """
    seen = L * theta
    return (seen < 2 * math.pi) & (length * new > seen * (1 + 1e-9))


def heard() -> dict[str, tuple[list[float], list[float]]]:
    """Distances, and SmolLM2's mean loss on a text that it read so far back: by ``"YaRN 4"``, ``"none"``."""
    return measured()["repeat"]


def without() -> float:
    """SmolLM2's mean loss on these texts when it reads them for the first time."""
    return measured()["first"]


def curve(model: str, method: str, s: float) -> tuple[list[float], list[float]] | None:
    """What of :func:`heard` belongs to these settings."""
    if model != HEARD:
        return None
    return heard().get(method, heard().get(f"{method} {s:g}"))


def loss_at(distance: float, measured: tuple[list[float], list[float]]) -> float | None:
    """The loss at a distance, on a straight line between two that were measured; None beyond the last."""
    xs, ys = measured
    if not xs[0] <= distance <= xs[-1]:
        return None
    n = next(n for n in range(1, len(xs)) if distance <= xs[n])
    return ys[n - 1] + (distance - xs[n - 1]) / (xs[n] - xs[n - 1]) * (ys[n] - ys[n - 1])


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
        f"Read a text of {FAR} × L or more, and let no pair reach an angle that it never saw in "
        f"training. But leave the fastest quarter of the pairs as it was (θ′/θ ≥ {ALIKE})."
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

    @staticmethod
    def render(*, model, method, s, times, view, pair, loss):
        trained = MODELS[model]
        d, base, L = trained
        length = int(times * L)
        theta, new, frequencies = thetas(method, s, trained, length)
        ratio, new_to_it = new / theta, unseen(theta, new, L, length)
        waves, new_waves = 2 * math.pi / theta, 2 * math.pi / new
        turns, new_turns = L / waves, length / new_waves
        title = {
            "none": _("no scaling"),
            "larger base": _("base × {0}").format(LARGER),
            "LongRoPE": (
                "LongRoPE, s = 32"
                if model == SEARCHED
                else _("LongRoPE (searched for {0} only)").format(SEARCHED)
            ),
        }.get(method, f"{_(method)}, s = {s}")
        longer = {f"{times:g} L = {length:,}": length} if times > 2 else {}  # else two texts on one another
        left = Lines(
            range(d // 2),
            {"as trained": waves, "now": new_waves},
            f"Wavelengths, {title}; trained length L",
            "pair t",
            "positions in a turn",
            logy=True,
            mark=pair,
            levels={f"L = {L:,}": L} | longer,
            readout=f"Pair {pair}: a turn in {waves[pair]:,.1f} positions, now in {new_waves[pair]:,.1f}.",
        )
        if view == "turns":
            beside = Lines(
                range(d // 2),
                {"in the trained length": turns, "in the new length": new_turns},
                "How often each pair turns",
                "pair t",
                "turns",
                logy=True,
                mark=pair,
                ylim=(0.5 * float(turns.min()), 2 * float(turns.max())),
                levels={"a whole turn": 1},
                readout=f"Pair {pair}: {turns[pair]:.4g} turns in training, now {new_turns[pair]:.4g}: "
                + ("angles never seen." if new_to_it[pair] else "no angle is new."),
            )
        else:
            beside = Lines(
                range(d // 2),
                {"θ′/θ": ratio},
                "Frequency now / as trained",
                "pair t",
                "θ′/θ",
                ylim=(0, 1.1),
                mark=pair,
                levels={f"1/s = {1 / s:.4g}": 1 / s},
            )
        slow = int((turns < 1).sum())
        factor = frequencies.attention_factor
        views, said, measured = {"wavelengths": left, "beside": beside}, "", curve(model, method, s)
        if loss == "shown" and measured:
            at = loss_at(length, measured)
            del views["beside"]  # the stored picture has room for two
            views["loss"] = Lines(
                [x / 1000 for x in measured[0]],
                {"": measured[1]},
                "SmolLM2 reads a text again",
                "distance of the first copy (thousands)",
                "loss (nats)",
                levels={"no copy": without()},
            )
            said = _(" SmolLM2's loss is measured up to {0} positions.").format(f"{measured[0][-1]:,}")
            if at is not None:
                said = _(
                    " SmolLM2 reads a text again: loss {0} at this distance, {1} without a first copy."
                ).format(f"{at:.2f}", f"{without():.2f}")
        elif loss == "shown":
            said = _(" SmolLM2's loss is not measured here.")
        more = _("; cosines and sines are multiplied by {0}").format(f"{factor:.3f}") if factor != 1 else ""
        return Scene(
            views,
            _(
                "{0} (d = {1}, base {2}, trained on {3} positions), {4}, read up to {5}: {6} of {7} pairs "
                "make "
                "less than a whole turn in training, and {8} reach angles that they never saw; θ′/θ is {9} "
                "for "
                "the fastest pair and {10} for the slowest{11}.{12}"
            ).format(
                _(model),
                d,
                f"{base:,}",
                f"{L:,}",
                title,
                f"{length:,}",
                slow,
                d // 2,
                int(new_to_it.sum()),
                f"{ratio[0]:.3g}",
                f"{ratio[-1]:.3g}",
                more,
                said,
            ),
        )

    @staticmethod
    def reached(*, model, method, s, times, **_rest):
        trained = MODELS[model]
        length = int(times * trained.L)
        theta, new, _made = thetas(method, s, trained, length)
        kept = (new / theta)[: trained.d // 8].min()
        if times < FAR or unseen(theta, new, trained.L, length).any() or kept < ALIKE:
            return ""
        return _(
            "no new angle within {0} positions, and θ′/θ ≥ {1} for the fastest {2} of {3} pairs."
        ).format(f"{length:,}", f"{kept:.2f}", trained.d // 8, trained.d // 2)
