"""The explorer of notebook 07: linear biases, the weights that they leave, and how far a head sees."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from ..attention import attention
from ..encodings.alibi import ALiBi, AsymmetricALiBi, slopes
from .parts import Choice, Heat, Index, Lines, LiveExplorer, Scene, Steps

FORMS = {"penalty": "causal −m(i−j)", "released": "causal m·j", "symmetric": "both ways −m|i−j|",
         "asymmetric": "both ways, two slopes"}
FAINT = 1e-4  # times the weight that a query gives to itself
WANTED = (100, 110)
TEXT = (  # 64 words of the King James Bible, Genesis 1
    "In the beginning God created the heaven and the earth. And the earth was without form, and void; and "
    "darkness was upon the face of the deep. And the Spirit of God moved upon the face of the waters. And "
    "God said, Let there be light: and there was light. And God saw the light, that it was good: and God "
    "divided the light")


def causal(form: str) -> bool:
    """Whether a query sees only the keys up to its own place."""
    return form in ("penalty", "released")


@functools.lru_cache(maxsize=8)
def table(heads: int, length: int, form: str) -> tuple[Tensor, Tensor]:
    """Bias and attention weights where all contents are alike, float64 ``[heads, length, length]``.

    The bias is NaN where a query may not look.
    """
    keys = torch.arange(length).double()
    # the released code counts from the first token, whichever the query
    queries = torch.zeros_like(keys) if form == "released" else keys
    encoding = (AsymmetricALiBi(heads) if form == "asymmetric"
                else ALiBi(heads, symmetric=form == "symmetric"))
    alike = torch.zeros(1, heads, length, 1, dtype=torch.float64)
    _, w = attention(alike, alike, alike, encoding, queries, keys, causal=causal(form), backend="eager",
                     return_weights=True)
    bias = encoding.bias(queries, keys) + 0.0  # −0 prints as 0
    if causal(form):
        bias = bias.masked_fill(torch.ones(length, length).triu(1).bool(), math.nan)
    return bias, w[0]


def sides(heads: int, form: str) -> dict[str, Tensor]:
    """The slopes of all heads, ``[heads]``, for keys behind and keys ahead, as far as they are seen."""
    if form == "asymmetric":
        encoding = AsymmetricALiBi(heads)
        return {"behind": torch.tensor(encoding.left), "ahead": torch.tensor(encoding.right)}
    return {"behind": slopes(heads)} | ({} if causal(form) else {"ahead": slopes(heads)})


def horizon(slope: Tensor) -> Tensor:
    """The distance at which e^(−slope·distance) has fallen to 1/10,000."""
    return math.log(1 / FAINT) / slope


class ALiBiExplorer(LiveExplorer):
    """A text whose words fade with distance: the bias of one query, and the weights in all heads."""

    front = "alibi"
    parameters = {
        "heads": Steps((3, 4, 8, 12, 16), 8),
        "head": Index("heads", 1),
        "length": Steps((8, 32, 64), 64, label="words"),
        "form": Choice(tuple(FORMS), "penalty", label="bias", text=FORMS.__getitem__, menu=True),
        "query": Index("length", 48, label="query i"),
        "key": Index("length", 31, label="key j"),
    }
    challenge = (f"Find a head whose horizon lies between {WANTED[0]} and {WANTED[1]} tokens: so far back, "
                 f"the weight has fallen to 1/{1 / FAINT:,.0f}.")

    @classmethod
    def constants(cls):
        return {"text": TEXT, "forms": FORMS, "faint": FAINT, "wanted": WANTED}

    @staticmethod
    def render(*, heads, head, length, form, query, key):
        bias, w = table(heads, length, form)
        slope, row = sides(heads, form), w[:, query]
        masked = causal(form) and key > query
        seen = query + 1 if causal(form) else length
        left = Lines(
            range(seen), {"bias": bias[head, query, :seen]},
            f"Bias of head {head}: {FORMS[form]}, query at {query}", "key j", "bias",
            mark=None if masked else key,
            readout=f"query {query}, key {key}: "
                    + ("masked" if masked else f"bias {bias[head, query, key]:.4g}"))
        beside = Heat(
            row / row.amax(-1, keepdim=True), "Weights of all heads, each as a share of its largest", "key j",
            "head", limits=(0.0, 1.0), cmap="viridis", colorbar="weight / largest", mark=(head, key),
            readout=f"head {head}, key {key}: weight {row[head, key]:.4g}")
        reach = " and ".join(f"{horizon(m[head]):,.0f} tokens {side} (slope {m[head]:.4g})"
                             for side, m in slope.items())
        look = ("may not look at" if masked else
                f"has a bias of {bias[head, query, key]:.4g} and a weight of {row[head, key]:.4g} for")
        same = {"penalty": "",
                "released": "; the weights are those of −m(i−j), since rows differ by a constant only",
                "symmetric": "; a key behind and one as far ahead weigh the same",
                "asymmetric": "; a key behind and one as far ahead weigh differently"}[form]
        return Scene({"bias": left, "weights": beside}, (
            f"Head {head} of {heads}, {FORMS[form]}: with equal contents the query at {query} {look} the key "
            f"at {key}; next to its own, weights fall to 1/{1 / FAINT:,.0f} within {reach}{same}."))

    @staticmethod
    def reached(*, heads, head, form, **_):
        slope = sides(heads, form)["behind"][head]
        far = float(horizon(slope))
        return (f"head {head} of {heads} has the slope {slope:.4f} and the horizon {far:.0f}."
                if WANTED[0] <= far <= WANTED[1] else "")
