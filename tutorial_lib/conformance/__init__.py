"""Is my position code right? Give it, and the bug in it is called by its name.

>>> import torch
>>> from tutorial_lib import conformance
>>> def rotate(x, positions):  # counts from 1
...     angles = (positions[:, None] + 1) * 10_000.0 ** (-torch.arange(0, 64, 2) / 64)
...     (a, b), cos, sin = x.chunk(2, -1), angles.cos(), angles.sin()
...     return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
>>> report = conformance.check(rotate, layout="half")
>>> report.ok, sorted(report.named)
(False, ['positions from 1'])

``print(report)`` says which promises hold, and why; ``python -m tutorial_lib.conformance`` does the same from
a terminal. What is given is compared with predictions in float64, of right code and of code with a known bug
in it: a bug is named if its prediction fits and no right one does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import nn

from .attend import check_attend
from .bias import Bias as Bias
from .bias import check_bias
from .bugs import BUGS as BUGS
from .bugs import Bug as Bug
from .decoder import check_decoder
from .golden import check_outputs
from .report import Finding as Finding
from .report import Report as Report
from .resize import check_resize
from .rope import Rope as Rope
from .rotation import as_rotation, check_indexer, check_pair, check_rotation

GIVEN = ("rotate", "table", "bias", "attend", "logits", "resize", "outputs")


def check(given: Any, *, kind: str | None = None, axes: str | None = None, **declared: Any) -> Report:
    """What is right and wrong about an implementation of positions.

    Args:
        given: one of the following; which one is seen from the names of its parameters, or said by ``kind``.
            ``rotate(x, positions)``, or ``rotate(q, k, positions)`` for both at once; ``table(positions)``,
            sines and cosines ``[L, d]``; ``bias(Lq, Lk)``; ``attend(q, k, v)``; a decoder
            ``logits(tokens, positions, …)`` or a model of Transformers; ``resize(table, size)`` for an
            image's ``[rows, columns, d]``; the path of a file with your outputs on the golden inputs.
        kind: one of :data:`GIVEN`.
        axes: the order of axes that a rotation takes, ``"bhld"``, ``"blhd"``, ``"bld"`` or ``"ld"``; if it
            is not given, the first that raises no error.
        declared: what the weights were trained with: the arguments of :class:`Rope`, with ``indexer``, the
            rotation of sparse attention's indexer, and ``indexer_layout``; for an attention also
            ``encoding``, ``n_heads``, ``causal`` and ``values`` (turned, and undone on the output); those of
            :class:`Bias` for a bias (``kind`` is ``bias_kind`` here); for a decoder, if all its layers have
            one RoPE, and those of :func:`check_decoder`; ``mode`` and ``antialias`` for resizing.

    Raises ValueError, saying what it takes, for anything else.
    """
    kind = kind or kind_of(given)
    if kind == "bias":
        if "bias_kind" in declared:
            declared["kind"] = declared.pop("bias_kind")
        return check_bias(given, _declared(Bias, declared))
    if kind == "outputs":
        return check_outputs(given, **declared)
    if kind == "table":
        report = check_rotation(as_rotation(given, declared.get("layout")), _declared(Rope, declared), "bhld")
        report.given = "table(positions)"
        return report
    if kind == "logits":
        its = {field.name: declared.pop(field.name) for field in fields(Rope) if field.name in declared}
        return check_decoder(given, **declared, rope=Rope(**its) if its else None)
    if kind == "resize":
        return check_resize(given, **declared)
    if kind == "attend":
        options = {
            name: declared.pop(name, default)
            for name, default in (("encoding", None), ("n_heads", 6), ("causal", True), ("values", False))
        }
        return check_attend(given, _declared(Rope, declared), **options)
    if kind == "rotate":
        indexer, layout = declared.pop("indexer", None), declared.pop("indexer_layout", None)
        rope = _declared(Rope, declared)
        if indexer is not None:
            return check_indexer(given, indexer, rope, layout, axes)
        if len(_parameters(given)) >= 3:
            return check_pair(given, rope, axes)
        return check_rotation(given, rope, axes)
    raise ValueError(f"kind={kind!r}: it must be one of {', '.join(map(repr, GIVEN))}")


def kind_of(given: Any) -> str:
    """What was given, from the names of its parameters."""
    if isinstance(given, (str, Path)):
        return "outputs"
    if not callable(given):
        raise ValueError(f"{given!r} can't be called: give a function, or say kind=…")
    if isinstance(given, nn.Module) and hasattr(given, "config"):
        return "logits"
    names = [name.lower() for name in _parameters(given)]
    if names and names[0] in ("tokens", "input_ids", "ids", "idx"):
        return "logits"
    if len(names) == 2 and all(
        "len" in name or name in ("lq", "lk", "n", "m", "q", "k", "i", "j") for name in names
    ):
        return "bias"
    if len(names) == 1 and names[0].startswith("pos"):
        return "table"
    if len(names) == 2 and names[1] in ("size", "shape", "new_size"):
        return "resize"
    if len(names) >= 3 and names[2][0] == "v":
        return "attend"
    if len(names) in (1, 2, 3):
        return "rotate"
    raise ValueError(f"what is a function of ({', '.join(names)})? Say kind=…, one of {', '.join(GIVEN)}")


def _parameters(given: Callable[..., Any]) -> list[str]:
    """The names of the parameters that must be given."""
    function = getattr(given, "forward", given)
    try:
        its = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["x", "positions"]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in its if p.kind in kinds and p.default is inspect.Parameter.empty]


def _declared(cls: Any, declared: dict[str, Any]) -> Any:
    known = [field.name for field in fields(cls)]
    if unknown := sorted(declared.keys() - set(known)):
        raise ValueError(f"{', '.join(unknown)}: unknown here; you may declare {', '.join(known)}")
    return cls(**declared)
