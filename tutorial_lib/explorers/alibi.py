"""The explorer of notebook 07: linear biases, the weights that they leave, and how far a head sees."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from ..attention import attention
from ..encodings.alibi import ALiBi, AsymmetricALiBi, slopes
from .parts import Choice, Explorer, Heat, Index, Lines, Scene, Steps

FORMS = {"penalty": "causal −m(i−j)", "released": "causal m·j", "symmetric": "both ways −m|i−j|",
         "asymmetric": "both ways, two slopes"}
FAINT = 1e-4  # times the weight that a query gives to itself
WANTED = (100, 110)


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
    bias = encoding.bias(queries, keys)
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


class ALiBiExplorer(Explorer):
    """Left, the bias of one head; right, the weights that it leaves, or the slopes of all heads."""

    parameters = {
        "heads": Steps((3, 4, 8, 12, 16), 8),
        "head": Index("heads", 1),
        "length": Steps((8, 32, 64), 32),
        "form": Choice(tuple(FORMS), "penalty", label="bias", text=FORMS.__getitem__, menu=True),
        "view": Choice(("weights", "one query", "slopes", "horizons"), "weights", label="second view"),
        "query": Index("length", 20, label="query i", play=True),
        "key": Index("length", 12, hidden=True),
    }
    challenge = (f"Find a head whose horizon lies between {WANTED[0]} and {WANTED[1]} tokens: so far back, "
                 f"the weight has fallen to 1/{1 / FAINT:,.0f}.")

    @staticmethod
    def render(*, heads, head, length, form, view, query, key):
        bias, w = table(heads, length, form)
        slope = sides(heads, form)
        cell = f"query {query}, key {key}"
        masked = causal(form) and key > query
        seen = bias.nan_to_num()  # of all heads: their colours can be compared
        left = Heat(
            bias[head], f"Bias of head {head}: {FORMS[form]}", "key j", "query i",
            limits=(float(seen.min()), float(seen.max())), cmap="viridis", colorbar="bias",
            mark=(query, key), pick=("query", "key"),
            readout=f"{cell}: " + ("masked" if masked else f"bias {bias[head, query, key]:.4g}"))
        if view == "weights":
            beside = Heat(
                w[head] / w[head].amax(-1, keepdim=True), "Weights, each row as a share of its largest",
                "key j", "query i", limits=(0.0, 1.0), cmap="viridis", colorbar="weight / largest",
                mark=(query, key), pick=("query", "key"),
                readout=f"{cell}: weight {w[head, query, key]:.4g}")
        elif view == "one query":
            beside = Lines(
                range(length), {"weight": w[head, query]}, f"Weights of the query at {query}", "key j",
                "weight", ylim=(0, 1.15 * float(w[head, query].max())), markers=length <= 32, mark=key,
                pick="key", levels={"equal shares": 1 / (query + 1 if causal(form) else length)})
        elif view == "slopes":
            beside = Lines(range(heads), slope, f"Slopes of all {heads} heads", "head", "slope m",
                           logy=True, ylim=(0.002, 1), markers=True, mark=head, pick="head")
        else:
            beside = Lines(
                range(heads), {side: horizon(m) for side, m in slope.items()},
                f"Horizons of all {heads} heads", "head", "tokens", logy=True, ylim=(5, 5000), markers=True,
                mark=head, pick="head", levels={f"the {length} tokens shown": length})
        reach = " and ".join(f"{horizon(m[head]):,.0f} tokens {side} (slope {m[head]:.4g})"
                             for side, m in slope.items())
        look = ("may not look at" if masked else
                f"has a bias of {bias[head, query, key]:.4g} and a weight of {w[head, query, key]:.4g} for")
        same = {"penalty": "; the weights are those of m·j",
                "released": "; the weights are those of −m(i−j), since rows differ by a constant only",
                "symmetric": "; a key behind and one as far ahead weigh the same",
                "asymmetric": "; a key behind and one as far ahead weigh differently"}[form]
        return Scene({"bias": left, "beside": beside}, (
            f"Head {head} of {heads}, {FORMS[form]}: with equal contents the query at {query} {look} the key "
            f"at {key}; next to its own, weights fall to 1/{1 / FAINT:,.0f} within {reach}{same}."))

    @staticmethod
    def reached(*, heads, head, form, **_):
        slope = sides(heads, form)["behind"][head]
        far = float(horizon(slope))
        return (f"head {head} of {heads} has the slope {slope:.4f} and the horizon {far:.0f}."
                if WANTED[0] <= far <= WANTED[1] else "")
