"""What a module needs besides torch: a missing package becomes one sentence that names its extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Put imports into this block. ModuleNotFoundError in one sentence if the package is missing.

    >>> with needs("experiments"):
    ...     import no_such_package
    Traceback (most recent call last):
    ModuleNotFoundError: no_such_package is missing: install it with `pip install "transformer-order[exp...]"`
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or __package__).partition(".")[0]
        if name == __package__:
            raise  # another sentence of ours, or a defect
        raise ModuleNotFoundError(
            f'{name} is missing: install it with `pip install "transformer-order[{extra}]"`'
        ) from None
