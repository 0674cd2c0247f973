"""The explorer of notebook 10: what a softmax leaves to one right key as the crowd of the others grows."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from ..encodings.temperature import ScalableSoftmax, Temperature
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
            torch.stack([now, 1 - now], 1), f"A weight of 1, dealt out to {keys:,} keys", "goes to", "query",
            limits=(0.0, 1.0), cmap="viridis", colorbar="weight", xticks=("the right key", "all others"),
            yticks=QUERIES, mark=(which, 0), readout=f"{query}, {keys:,} keys: {now[which]:.3g}")
        beside = Lines(
            KEYS, dict(zip(QUERIES, all_of_them, strict=True)),
            f"What the right key keeps, with a lead of {lead:g}", "keys n", "share of the weight", logx=True,
            ylim=(-0.03, 1.03), levels={"half": 0.5}, mark=at,
            readout=f"{keys:,} keys: {now[which]:.3g}")
        ahead = f"{lead:g}" if query == "as trained" else f"{lead:g} × {two(times)} = {two(lead * times)}"
        end = loses(lead, query, trained)
        far = f"{all_of_them[which, -1]:.3g} at {KEYS[-1]:,}"
        half = (f"from {end:,} keys on it has less than half, and {far}" if end else
                f"up to {KEYS[-1]:,} keys it keeps at least half")
        if end and (all_of_them[which, [n > end for n in KEYS]] >= 0.5).any():
            half = f"at {end:,} keys it falls below half for the first time"
        others = "one other" if keys == 2 else f"{keys - 1:,} others"
        return Scene({"weights": left, "shares": beside}, (
            f"Query: {query}. The right key's score leads by {ahead}, and against {others} half of the "
            f"weight takes {two(math.log(keys - 1))}. So it keeps {now[which]:.3g} of the weight; {half}."))

    @staticmethod
    def reached(*, query, trained, lead, keys):
        enough = math.log(keys - 1)
        if query != "as trained" or keys < KEYS[-1] or not lead - 0.25 < enough <= lead:
            return ""
        return (f"{lead:g} leaves it {curves(lead, trained)[0, -1]:.3f}, and {lead - 0.25:g} would not do: "
                f"log({keys - 1:,}) is {two(enough)}.")
