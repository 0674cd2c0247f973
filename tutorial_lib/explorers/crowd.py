"""The explorer of notebook 10: what a softmax leaves for the one right key as the crowd around it grows."""

from __future__ import annotations

from ..encodings.temperature import Temperature
from .parts import Choice, LiveExplorer, Steps

QUERIES = ("as trained", "Llama 4", "Scalable-Softmax")
KEYS = tuple(2**power for power in range(1, 18))
LEADS = tuple(quarters / 4 for quarters in range(57))
TRAINED = (16, 8192)  # the two copies of eight words in the lesson; where Llama 4 takes its first step


class CrowdExplorer(LiveExplorer):
    """A weight of 1 for all keys: how much of it one key keeps, as trained and with two longer queries."""

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
