"""The playground: small Transformers that learn in the page, and differ in how they know order.

One page without a server (:func:`page`), and a widget (:class:`Playground`). The engine, ``engine.js``, is
held to the library by tests; its numbers are the same bits in every browser. Nothing here is fetched.
"""

from __future__ import annotations

import re
from pathlib import Path

from tutorial_lib.explorers import live

HERE = Path(__file__).parent
ENGINE = ("vendor/jsep", "engine", "tasks", "formula", "run")


def _read(name: str) -> str:
    return live.lean(
        re.sub("^//# sourceMapping.*", "", (HERE / name).read_text(encoding="utf-8"), flags=re.M)
    )


def engine() -> str:
    """JavaScript of a function that gives what a page and its workers compute with; jsep reads formulas."""
    names = (
        "Model, Run, KINDS, TASKS, FormulaError, withFormula, characters, batch, rng, lengths, product, "
        "exp, log, exp2, sincos, formula"
    )
    return (
        "function engine() {\n"
        + "".join(_read(f"{name}.js") for name in ENGINE)
        + f"return {{ {names} }};\n}}\n"
    )
