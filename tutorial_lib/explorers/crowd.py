"""The explorer of notebook 10: what a softmax leaves to one right key as the crowd of the others grows."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from ..encodings.temperature import ScalableSoftmax, Temperature
from ..language import _
from .parts import Choice, Heat, Lines, LiveExplorer, Scene, Steps

QUERIES = ("as trained", "Llama 4", "Scalable-Softmax")
KEYS = tuple(2**power for power in range(1, 18))
LEADS = tuple(quarters / 4 for quarters in range(57))
TRAINED = (16, 8192)  # the two copies of eight words in the lesson; where Llama 4 takes its first step


def factor(query: str, keys: Tensor, trained: int) -> Tensor:
    """What a query that sees so many keys is multiplied by, float64; Scalable-Softmax: 1 at ``trained``."""
    last = keys.double() - 1  # the position of a query that sees them all
    if query == "Llama 4":
        return Temperature().factor(last)
    if query == "Scalable-Softmax":
        scalable = ScalableSoftmax(1).double()
        scalable.s.data.fill_(1 / math.log(trained))
        return scalable.factor(last).detach()[0]
    return torch.ones_like(last)


def shares(lead: float, query: str, keys: Tensor, trained: int) -> Tensor:
    """The weight of a key that leads by ``lead`` before the factor; the ``keys`` − 1 others are all alike."""
    ahead = factor(query, keys, trained) * lead
    return torch.sigmoid(ahead - (keys.double() - 1).log())  # e^ahead / (e^ahead + n − 1)


@functools.lru_cache(maxsize=1024)
def loses(lead: float, query: str, trained: int) -> int:
    """The least number of keys at which the right one has less than half of the weight; 0: there is none."""
    keys = torch.arange(KEYS[0], KEYS[-1] + 1)
    below = (factor(query, keys, trained) * lead < (keys.double() - 1).log()).nonzero()
    return int(keys[below[0, 0]]) if len(below) else 0


@functools.lru_cache(maxsize=128)
def curves(lead: float, trained: int) -> Tensor:
    """The shares for all of ``QUERIES`` and ``KEYS``."""
    return torch.stack([shares(lead, query, torch.tensor(KEYS), trained) for query in QUERIES])


def two(value: float) -> str:
    """Two decimals; a tie goes up, in the browser as well."""
    return f"{value + 1e-9:.2f}"


class CrowdExplorer(LiveExplorer):
    """A weight of 1 for all keys: what one of them keeps of it, as trained and with two longer queries."""

    front = "crowd"
    parameters = {
        "query": Choice(QUERIES, "as trained"),
        "trained": Choice(TRAINED, 16, label="keys in training", text="{:,}".format),
        "lead": Steps(LEADS, 2.75, label="lead Δ", text="{:g}".format),
        "keys": Steps(KEYS, 64, label="keys n", text="{:,}".format),
    }
    challenge = f"As trained, among {KEYS[-1]:,} keys: find the smallest lead that keeps half of the weight."

    @classmethod
    def constants(cls):
        llama = Temperature()
        return {"floor": llama.floor_scale, "scale": llama.attn_scale}

    @staticmethod
    def render(*, query, trained, lead, keys):
        all_of_them, at, which = curves(lead, trained), KEYS.index(keys), QUERIES.index(query)
        now = all_of_them[:, at]
        times = float(factor(query, torch.tensor([keys]), trained)[0])
        left = Heat(
            torch.stack([now, 1 - now], 1),
            f"A weight of 1, dealt out to {keys:,} keys",
            "goes to",
            "query",
            limits=(0.0, 1.0),
            cmap="viridis",
            colorbar="weight",
            xticks=("the right key", "all others"),
            yticks=QUERIES,
            mark=(which, 0),
            readout=_("{0}, {1} keys: {2}").format(_(query), f"{keys:,}", f"{now[which]:.3g}"),
        )
        beside = Lines(
            KEYS,
            dict(zip(QUERIES, all_of_them, strict=True)),
            f"What the right key keeps, with a lead of {lead:g}",
            "keys n",
            "share of the weight",
            logx=True,
            ylim=(-0.03, 1.03),
            levels={"half": 0.5},
            mark=at,
            readout=_("{0} keys: {1}").format(f"{keys:,}", f"{now[which]:.3g}"),
        )
        ahead = f"{lead:g}" if query == "as trained" else f"{lead:g} × {two(times)} = {two(lead * times)}"
        end = loses(lead, query, trained)
        half = (
            _("from {0} keys on it has less than half, and {1} at {2}")
            if end
            else _("up to {0} keys it keeps at least half")
        ).format(*((f"{end:,}", f"{all_of_them[which, -1]:.3g}") if end else ()), f"{KEYS[-1]:,}")
        if end and (all_of_them[which, [n > end for n in KEYS]] >= 0.5).any():
            half = _("at {0} keys it falls below half for the first time").format(f"{end:,}")
        others = _("one other") if keys == 2 else _("{0} others").format(f"{keys - 1:,}")
        return Scene(
            {"weights": left, "shares": beside},
            _(
                "Query: {0}. The right key's score leads by {1}, and against {2} half of the weight takes "
                "{3}. "
                "So it keeps {4} of the weight; {5}."
            ).format(_(query), ahead, others, two(math.log(keys - 1)), f"{now[which]:.3g}", half),
        )

    @staticmethod
    def reached(*, query, trained, lead, keys):
        enough = math.log(keys - 1)
        if query != "as trained" or keys < KEYS[-1] or not lead - 0.25 < enough <= lead:
            return ""
        return _("{0} leaves it {1}, and {2} would not do: log({3}) is {4}.").format(
            f"{lead:g}",
            f"{curves(lead, trained)[0, -1]:.3f}",
            f"{lead - 0.25:g}",
            f"{keys - 1:,}",
            two(enough),
        )
