"""The explorer of notebook 05: the terms of a hybrid score, and which of them the softmax ignores."""

from __future__ import annotations

import copy
import functools

import torch
from torch import Tensor

from ..attention import scores
from ..encodings import TUPE, HybridConcat, HybridSum, KeySide, Learned, Sinusoidal, TableBias
from ..training import seeded
from .parts import Choice, Heat, Index, LiveExplorer, Scene, palette

N, WIDTH = 4, 8
MARK = (1, 2)
MIXED = {"content": "q·k", "query": "PE_i", "relative": "r_ij", "concat": "W_o[PE_i; r_ij]",
         "key": "PE_j", "tupe": "TUPE", "mlp": "MLP[PE_i; r_ij]"}
HALVES = {"concat_half": "PE_i in W_o[PE_i; r_ij]", "mlp_half": "PE_i in MLP[PE_i; r_ij]"}
NAMES = MIXED | HALVES
MOST = 4
LIMITS = (4, 8, 16, 32, 64)
SEED = 428  # of random weights in which every term is large enough to be seen


@functools.cache
@torch.no_grad()
def terms() -> dict[str, Tensor]:
    """Every term of the score of 4 tokens, one head, float64 ``[4, 4]``; weights are random.

    The halves are what PE_i adds to a concatenation: all of it minus what is left with PE_i = 0.
    """
    p = torch.arange(N)

    def drawn(encoding):
        for weight in encoding.double().parameters():
            if weight.ndim == 2:  # larger than usual, so that changes are easy to see
                torch.nn.init.normal_(weight, std=0.5)
        return encoding

    def half(encoding):
        without = copy.deepcopy(encoding)
        without.position = Learned(N, WIDTH, std=0.0).double()
        return (encoding.bias(p, p) - without.bias(p, p))[0]

    def build():
        PE, r = Sinusoidal(WIDTH), drawn(TableBias(1, N))
        parts = {"relative": r, "query": HybridSum(PE, r), "concat": HybridConcat(PE, r),
                 "key": KeySide(PE, r), "tupe": TUPE(PE, 1, WIDTH), "mlp": HybridConcat(PE, r, hidden=8)}
        for part in parts.values():
            drawn(part)
        found = {name: part.bias(p, p)[0] for name, part in parts.items()}
        for name in ("query", "key"):
            found[name] = found[name] - found["relative"]
        q, k = torch.randn(2, 1, 1, N, WIDTH, dtype=torch.float64)
        return found | {"content": scores(q, k)[0, 0], "concat_half": half(parts["concat"]),
                        "mlp_half": half(parts["mlp"])}

    return seeded(build, seed=SEED)


def logits(scales: dict[str, int]) -> Tensor:
    """The sum of the terms, each times its scale, ``[4, 4]``."""
    return sum((scales[name] * terms()[name] for name in MIXED), torch.zeros(N, N, dtype=torch.float64))


def share(without: str, scales: dict[str, int]) -> Tensor:
    """What is taken out of the logits: a term, or its half, at the scale of the term."""
    return scales[without.removesuffix("_half")] * terms()[without]


def weights_change(without: str, scales: dict[str, int]) -> Tensor:
    """The weights minus those without the chosen term, to 12 digits."""
    e = logits(scales)
    return (e.softmax(-1) - (e - share(without, scales)).softmax(-1)).round(decimals=12)


class HybridExplorer(LiveExplorer):
    """The logits that the faders mix, and what one chosen term changes in the weights."""

    front = "hybrid"
    parameters = {name: Index(MOST + 1, int(name in ("content", "query", "relative")), label=f"{text} ×")
                  for name, text in MIXED.items()} | {
        "without": Choice(tuple(NAMES), "query", label="without", text=NAMES.__getitem__, menu=True)}
    challenge = "Find a term, and a scale, that change every logit by more than 1 and no weight."

    @classmethod
    def constants(cls):
        return {"terms": {name: term.round(decimals=9).tolist() for name, term in terms().items()},
                "names": NAMES, "limits": LIMITS, "palette": palette("signed", 64).hex()}

    @staticmethod
    def render(*, without, **scales):
        e, taken, change = logits(scales), share(without, scales), weights_change(without, scales)
        size, name, places = taken.abs(), NAMES[without], [str(n) for n in range(N)]
        mixed = {term: scale for term, scale in scales.items() if scale}
        said = " + ".join(f"{scale}·{MIXED[term]}" if scale > 1 else MIXED[term]
                          for term, scale in mixed.items()) or "0"
        numbers = " + ".join(f"{scale * terms()[term][MARK]:.2f}" for term, scale in mixed.items()) or "0"
        numbers = numbers.replace("+ -", "- ")
        limit = next(limit for limit in LIMITS if e.abs().max() <= limit)
        at, weight = e[MARK], e.softmax(-1)[MARK]
        if not taken.any():
            seen = f"{name} is off"
        else:
            seen = f"{name} changes the logits by {size.min():.2f} to {size.max():.2f} and " + (
                f"the weights by up to {change.abs().max():.2f}" if change.any() else
                "no weight: the softmax does not see it")
        return Scene({
            "logits": Heat(
                e, "logits e_ij", "key j", "query i", limits=(-limit, limit), xticks=places, yticks=places,
                mark=MARK, readout=f"i = 1, j = 2: {said} = {numbers} = {at:.2f}"),
            "change": Heat(
                change, f"change of the weights by {name}", "key j", "query i", xticks=places,
                yticks=places, mark=MARK,
                readout=f"i = 1, j = 2: weight {weight:.4f}, without {weight - change[MARK]:.4f}"),
        }, (f"Logits of {N} tokens, e_ij = {said}; {seen}; marked is i = 1, j = 2, with the logit {at:.2f} "
            f"and the weight {weight:.2f}."))

    @staticmethod
    def reached(*, without, **scales):
        least = share(without, scales).abs().min()
        if least <= 1 or weights_change(without, scales).any():
            return ""
        return (f"{NAMES[without]} changes every logit by {least:.2f} or more, and no weight by more than "
                "one part in 10¹².")
