"""The layers of released models: what each sees, and how it knows positions.

The table, ``released.json``, is made from the configuration classes of Transformers, which the course does
not need: ``tests/parity/test_released.py`` makes it again and compares. Defaults are those of the model
that a class is named after; other sizes in its family may differ.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import plots
from ..language import _
from ..optional import needs

with needs("experiments"):
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

FILE = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Layer:
    """One layer. ``sees``: how many tokens back, None for all; ``base`` of its RoPE, None for no positions;
    ``share`` of the pairs or channels that turn; ``recurrent``: no attention at all."""

    sees: int | None = None
    base: float | None = None
    share: float = 1.0
    recurrent: bool = False

    @property
    def kind(self) -> str:
        """In words, as the figure names it."""
        if self.recurrent:
            return "recurrent"
        if self.base is None:
            return "attention without positions"
        return "RoPE, sees all" if self.sees is None else "RoPE, sees a window"


@dataclass(frozen=True)
class Released:
    """A model, as the defaults of its configuration class describe it."""

    name: str
    config: str
    layers: tuple[Layer, ...]

    @property
    def without(self) -> int:
        """How many of its attention layers have no positions."""
        return sum(layer.base is None and not layer.recurrent for layer in self.layers)


@functools.cache
def load() -> dict[str, Released]:
    """All models of the table, by name.

    >>> llama = load()["Llama 4"]
    >>> [layer.base for layer in llama.layers[:4]], llama.without
    ([500000.0, 500000.0, 500000.0, None], 12)
    """
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    models = {}
    for name, entry in stored.items():
        kinds = {key: Layer(**kind) for key, kind in entry["kinds"].items()}
        models[name] = Released(name, entry["config"], tuple(kinds[key] for key in entry["layers"]))
    return models


LOOKS: dict[str, Any] = {
    "RoPE, sees all": {"facecolor": plots.QUERY},
    "RoPE, sees a window": {"facecolor": "#9ecae8"},
    "attention without positions": {"facecolor": "white"},
    "recurrent": {"facecolor": "0.8", "hatch": "////"},
}


@plots.styled
def figure(models: dict[str, Released]) -> Figure:
    """Each model as a strip of layers, the first on the left."""
    fig, ax = plots.panels(size=(10, 0.55 * len(models) + 1.6))
    for row, model in enumerate(models.values()):
        for n, layer in enumerate(model.layers):
            ax.add_patch(Rectangle((n, row - 0.36), 0.88, 0.72, edgecolor="0.35", **LOOKS[layer.kind]))
    ax.set(
        xlim=(-0.5, max(len(model.layers) for model in models.values())),
        xlabel=_("layer"),
        ylim=(len(models) - 0.4, -0.6),
    )
    ax.set_yticks(range(len(models)), list(models))
    ax.grid(False)
    shown = {layer.kind for model in models.values() for layer in model.layers}
    ax.legend(
        handles=[
            Patch(edgecolor="0.35", label=_(kind), **look) for kind, look in LOOKS.items() if kind in shown
        ],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=2,
    )
    return fig
