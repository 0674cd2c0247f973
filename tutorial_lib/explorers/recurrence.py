"""The explorer of notebook 04, second part: a text read in segments, with a memory."""

from __future__ import annotations

from .parts import Index, LiveExplorer, Steps

LENGTH = 24
WIDTH = 16
MOST = 6


class RecurrenceExplorer(LiveExplorer):
    """All states that one token depends on, and what position alone does to its scores."""

    front = "recurrence"
    parameters = {
        "segment": Steps((2, 4, 8), 4, label="segment S"),
        "memory": Steps((0, 1, 2, 4, 8, 16), 4, label="memory M"),
        "layers": Steps((1, 2, 3, 4, 6), 2, label="layers"),
        "query": Index(LENGTH, 14, label="token"),
    }
    challenge = (
        f"Let the last of the {LENGTH} tokens depend on the first one, with a memory of at most "
        f"{MOST} states in all (layers × M)."
    )

    @classmethod
    def constants(cls):
        return {"length": LENGTH, "width": WIDTH, "most": MOST}
