"""The explorer of notebook 07: linear biases, the weights that they leave, and how far a head sees."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from ..attention import attention
from ..encodings.alibi import ALiBi, AsymmetricALiBi, slopes
from ..language import _
from .parts import Choice, Heat, Index, Lines, LiveExplorer, Scene, Steps

FORMS = {
    "penalty": "causal −m(i−j)",
    "released": "causal m·j",
    "symmetric": "both ways −m|i−j|",
    "asymmetric": "both ways, two slopes",
}
FAINT = 1e-4  # times the weight that a query gives to itself
WANTED = (100, 110)
TEXT = (  # 64 words of the King James Bible, Genesis 1
    "In the beginning God created the heaven and the earth. And the earth was without form, and void; and "
    "darkness was upon the face of the deep. And the Spirit of God moved upon the face of the waters. And "
    "God said, Let there be light: and there was light. And God saw the light, that it was good: and God "
    "divided the light"
)


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
    encoding = AsymmetricALiBi(heads) if form == "asymmetric" else ALiBi(heads, symmetric=form == "symmetric")
    alike = torch.zeros(1, heads, length, 1, dtype=torch.float64)
    _, w = attention(
        alike,
        alike,
        alike,
        encoding,
        queries,
        keys,
        causal=causal(form),
        backend="eager",
        return_weights=True,
    )
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
        "form": Choice(tuple(FORMS), "penalty", label="bias‖of a score", text=FORMS.__getitem__, menu=True),
        "query": Index("length", 48, label="query i"),
        "key": Index("length", 31, label="key j"),
    }
    challenge = (
        f"Find a head whose horizon lies between {WANTED[0]} and {WANTED[1]} tokens: so far back, "
        f"the weight has fallen to 1/{1 / FAINT:,.0f}."
    )

    @classmethod
    def constants(cls):
        return {
            "text": TEXT,
            "forms": {name: _(text) for name, text in FORMS.items()},
            "faint": FAINT,
            "wanted": WANTED,
        }

    @staticmethod
    def render(*, heads, head, length, form, query, key):
        bias, w = table(heads, length, form)
        slope, row = sides(heads, form), w[:, query]
        masked = causal(form) and key > query
        seen = query + 1 if causal(form) else length
        left = Lines(
            range(seen),
            {"bias": bias[head, query, :seen]},
            f"Bias of head {head}: {FORMS[form]}, query at {query}",
            "key j",
            "bias",
            mark=None if masked else key,
            readout=(_("query {0}, key {1}: masked") if masked else _("query {0}, key {1}: bias {2}")).format(
                query, key, f"{bias[head, query, key]:.4g}"
            ),
        )
        beside = Heat(
            row / row.amax(-1, keepdim=True),
            "Weights of all heads, each as a share of its largest",
            "key j",
            "head",
            limits=(0.0, 1.0),
            cmap="viridis",
            colorbar="weight / largest",
            mark=(head, key),
            readout=f"head {head}, key {key}: weight {row[head, key]:.4g}",
        )
        reach = _(" and ").join(
            (
                _("{0} tokens behind (slope {1})") if side == "behind" else _("{0} tokens ahead (slope {1})")
            ).format(f"{horizon(m[head]):,.0f}", f"{m[head]:.4g}")
            for side, m in slope.items()
        )
        look = (
            _("the query at {0} may not look at the key at {1}").format(query, key)
            if masked
            else _("the query at {0} has a bias of {1} and a weight of {2} for the key at {3}").format(
                query, f"{bias[head, query, key]:.4g}", f"{row[head, key]:.4g}", key
            )
        )
        same = {
            "penalty": "",
            "released": _("; the weights are those of −m(i−j), since rows differ by a constant only"),
            "symmetric": _("; a key behind and one as far ahead weigh the same"),
            "asymmetric": _("; a key behind and one as far ahead weigh differently"),
        }[form]
        return Scene(
            {"bias": left, "weights": beside},
            _(
                "Head {0} of {1}, {2}: with equal contents {3}; next to its own, weights fall to 1/{4} "
                "within "
                "{5}{6}."
            ).format(head, heads, _(FORMS[form]), look, f"{1 / FAINT:,.0f}", reach, same),
        )

    @staticmethod
    def reached(*, heads, head, form, **_rest):
        slope = sides(heads, form)["behind"][head]
        far = float(horizon(slope))
        said = _("head {0} of {1} has the slope {2} and the horizon {3}.").format(
            head, heads, f"{slope:.4f}", f"{far:.0f}"
        )
        return said if WANTED[0] <= far <= WANTED[1] else ""
