"""The explorer of notebook 04, second part: a text read in segments, with a memory."""

from __future__ import annotations

import torch
from torch import Tensor

from ..encodings import Sinusoidal, TransformerXL
from ..language import _
from ..model import segment_mask
from .parts import Heat, Index, Lines, LiveExplorer, Scene, Steps

LENGTH = 24
WIDTH = 16
COUNTED = {
    thing: (f"1 {thing}", f"{{0}} {thing}s", f"no {thing}s")
    for thing in ("layer", "key", "token", "offset", "position", "collision", "state")
}
R, PE = TransformerXL(1, WIDTH).R, Sinusoidal(WIDTH).vectors
MOST = 6


def reach(segment: int, memory: int, layers: int, query: int) -> Tensor:
    """The states that the last layer's state of ``query`` is made of: booleans ``[layers + 1, LENGTH]``.

    Row n holds the states after n layers; row 0 the token vectors.
    """
    sees = segment_mask(LENGTH, segment, memory)
    rows = [torch.arange(LENGTH) == query]
    for _layer in range(layers):
        rows.append(sees[rows[-1]].any(0))
    return torch.stack(rows[::-1])


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

    @staticmethod
    def render(*, segment, memory, layers, query):
        reached, start = reach(segment, memory, layers, query), query - query % segment
        kinds = torch.ones(LENGTH)
        kinds[max(0, start - memory) : start], kinds[start:] = 2, 3
        seen = reached[0].nonzero().flatten()
        first = int(seen.min())
        states = Heat(
            (reached * kinds).flip(0),
            f"what token {query} depends on",
            "position (dark to light: older, memory, segment)",
            "",
            limits=(0.0, 3.0),
            cmap="viridis",
            mark=(layers, first),
            yticks=[f"layer {n}" for n in range(layers, 0, -1)] + ["tokens"],
            readout=_("token {0} depends on token {1}, {2} places back, through {3}").format(
                query, first, query - first, _count(layers, "layer")
            ),
        )

        keys = segment_mask(LENGTH, segment, memory)[query].nonzero().flatten()
        index = keys % segment  # where each segment counts from 0 anew
        relative = R(query - keys) @ R(torch.tensor(0)) / (WIDTH / 2)
        restarted = PE(index) @ PE(index)[-1] / (WIDTH / 2)  # the query is the last of its keys
        twins = len(keys) - len(PE(index).unique(dim=0))
        twin = int((index == index[-1]).nonzero()[0])
        says = (
            _("key {0} has the index {1} that the query has: a collision").format(keys[twin], index[twin])
            if keys[twin] != query
            else _("no key has the index of the query but itself")
        )
        scores = Lines(
            keys - query,
            {"relative": relative, "restarted in each segment": restarted},
            f"how near token {query} its keys seem",
            "offset r = j − i",
            "1: in the same place",
            ylim=(0.0, 1.05),
            markers=True,
            mark=twin,
            readout=f"r = {keys[twin] - query}: {says}",
        )
        depth = _count(layers, "layer")
        return Scene(
            {"states": states, "scores": scores},
            _(
                "Segments of {0} tokens, a memory of {1}, {2}: token {3} looks at {4}, from {5} on, and "
                "through "
                "{6} depends on {7}, from {8} on, of which those from {9} on pass gradients; {10} × {11} "
                "states "
                "are kept; the keys have {12}, but {13} if each segment counts from 0 anew: {14}."
            ).format(
                segment,
                memory,
                depth,
                query,
                _count(len(keys), "key"),
                keys[0],
                depth,
                _count(len(seen), "token"),
                first,
                start,
                layers,
                memory,
                _count(len(keys), "offset"),
                _count(len(keys) - twins, "position"),
                _count(twins, "collision"),
            ),
        )

    @staticmethod
    def reached(*, segment, memory, layers, query):
        kept = layers * memory
        if query < LENGTH - 1 or kept > MOST or not reach(segment, memory, layers, query)[0, 0]:
            return ""
        return _(
            "{0} × {1} = {2}, and a token {3} places back is reached, though each layer looks back {4} "
            "places at most."
        ).format(layers, memory, _count(kept, "state"), query, query % segment + memory)


def _count(n: int, thing: str) -> str:
    one, many, none = COUNTED[thing]
    return _(one) if n == 1 else _(many).format(n) if n else _(none)
