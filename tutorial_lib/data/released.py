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

FILE = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Layer:
    """One layer. ``sees``: how many tokens back, None for all; ``base`` of its RoPE, None for no positions;
    ``share`` of the pairs or channels that turn; ``recurrent``: no attention at all."""

    sees: int | None = None
    base: float | None = None
    share: float = 1.0
    recurrent: bool = False


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
