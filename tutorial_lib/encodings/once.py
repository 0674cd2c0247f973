"""What all layers of a model need is computed once in a forward: angles, for instance.

Nothing is remembered from one forward to the next. Positions can be changed where no counter of a tensor
tells (by NumPy, by ``.data``), and so can what a scaling computes its θ from; within one forward nobody
changes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar

import torch
from torch import Tensor

_results: ContextVar[dict | None] = ContextVar("results", default=None)


def one_forward(forward: Callable) -> Callable:
    """A decorator: what :func:`once` computes in a call of ``forward`` is kept until that call ends.

    :class:`tutorial_lib.model.Transformer` has it; a model of your own gets it by one line:

    >>> @one_forward
    ... def forward(rotary, q, k, positions, layers=12):
    ...     for _ in range(layers):
    ...         q, k = rotary.rotate(q, k, positions, positions)  # angles are computed in the first layer

    While it runs, positions and encodings must not be changed in place.
    """
    @functools.wraps(forward)
    def keeping(*args, **kwargs):
        if torch.compiler.is_compiling():  # a compiler finds by itself what is computed twice
            return forward(*args, **kwargs)
        before = _results.set({})
        try:
            return forward(*args, **kwargs)
        finally:
            _results.reset(before)

    return keeping


def once(compute: Callable, *arguments):
    """``compute(*arguments)``, or what a call with these very objects gave before in :func:`one_forward`.

    A result that takes part in a gradient is computed anew each time: a checkpoint that runs one layer
    again has no other layer to take it from.
    """
    results = None if torch.compiler.is_compiling() else _results.get()
    if results is None:
        return compute(*arguments)
    key = (compute, *map(id, arguments), torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    if key not in results:
        result = compute(*arguments)
        parts = result if isinstance(result, tuple) else (result,)
        if any(isinstance(x, Tensor) and x.requires_grad for x in parts):
            return result
        results[key] = result, arguments  # which stay alive: no other object gets the id of one
    return results[key][0]
