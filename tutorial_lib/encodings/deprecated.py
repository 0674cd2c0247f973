"""What version 0.2 had in place of :meth:`tutorial_lib.encodings.Positions.shared`."""

import warnings
from typing import TypeVar

T = TypeVar("T")


def one_forward(forward: T) -> T:
    """``forward`` unchanged, with a warning; version 0.4 will remove this name."""
    warnings.warn(
        "one_forward shares nothing any more: give all layers the same positions, made by "
        "Positions(n).shared() in each forward",
        FutureWarning,
        stacklevel=2,
    )
    return forward
