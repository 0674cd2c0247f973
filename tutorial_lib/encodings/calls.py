"""A call that does not fit says what was given, and what fits. A call that fits costs nothing extra."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

SHAPES = {
    "x": "[B, L, d_model]",
    "q": "[B, H, Lq, d_head]",
    "k": "[B, H_kv, Lk, d_head]",
    "weights": "[B, H, Lq, Lk]",
}
"""The arguments of doors that are tensors, as :class:`.base.PositionalEncoding` has them."""


def explained(method: Callable[..., Any], owner: str) -> Callable[..., Any]:
    """``method`` of the class ``owner``; if it fails on arguments that do not fit, the error names them."""

    @functools.wraps(method)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except (TypeError, ValueError, AttributeError):
            check_call(method, owner, arguments, named)
            raise

    return called


def check_call(
    method: Callable[..., Any], owner: str, arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> None:
    """Raise TypeError unless ``method`` takes these arguments, and gets tensors where it needs them."""
    signature = inspect.signature(method)
    its = [each.replace(annotation=signature.empty) for each in signature.parameters.values()]
    made = method.__name__ == "__init__"
    call = owner if made else f"{type(arguments[0]).__name__}.{method.__name__}"
    try:
        bound = signature.bind(*arguments, **named).arguments
    except TypeError as error:
        given = [*map(_shown, arguments[1:]), *(f"{name}={_shown(x)}" for name, x in named.items())]
        takes = signature.replace(parameters=its[1:], return_annotation=signature.empty)
        by_name = ", with what stands behind the * by name" if "*, " in str(takes) else ""
        raise TypeError(f"{call}({', '.join(given)}): {error}; it is {call}{takes}{by_name}") from None
    for name, shape in SHAPES.items():
        if not made and not isinstance(bound.get(name, Tensor()), Tensor):
            raise TypeError(
                f"{name} of {call} is a {type(bound[name]).__name__}: give a tensor {shape}"
            ) from None


def _shown(given: object) -> str:
    if isinstance(given, Tensor):
        return f"tensor {list(given.shape)}"
    text = repr(given)
    return text if len(text) <= 40 else f"{text[:37]}…"
