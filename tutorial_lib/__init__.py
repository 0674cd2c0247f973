"""Positional encodings for Transformers, and the course *How Transformers know order* that is built on them.

The names you need most are here: everything in :mod:`tutorial_lib.encodings`, the model and what it keeps
between calls, and each module by its name. Everything is imported on first use, torch included.

>>> import tutorial_lib
>>> tutorial_lib.slopes(2).tolist()
[0.0625, 0.00390625]
>>> tutorial_lib.attention.attention is tutorial_lib.model.attention
True
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from . import moved

__version__ = "0.3.0"
HOMES = {**dict.fromkeys(("Cache", "Config", "Memory", "Transformer"), ".model"), "from_config": ".configs"}
"""Where the names are that are not of ``.encodings``."""
moved.install()

if TYPE_CHECKING:  # what __getattr__ finds, for editors and type checkers
    from .configs import from_config as from_config
    from .encodings import *  # noqa: F403
    from .model import Cache as Cache
    from .model import Config as Config
    from .model import Memory as Memory
    from .model import Transformer as Transformer


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*importlib.import_module(".encodings", __name__).__all__, *HOMES]
    if not name.startswith("_"):
        if importlib.util.find_spec(f"{__name__}.{name}"):
            return importlib.import_module(f".{name}", __name__)
        home = importlib.import_module(HOMES.get(name, ".encodings"), __name__)
        if name in HOMES or name in home.__all__:
            globals()[name] = getattr(home, name)  # later look-ups no longer come here
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
