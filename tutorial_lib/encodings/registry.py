"""Every encoding by its name, and every method: what the modules of this package say in their ``METHODS``."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

from . import __path__
from .base import NoPosition, PositionalEncoding, doors_of
from .method import Method


def _found() -> tuple[Method, ...]:
    """In the order of the course; a method that joins the page of another one comes after it."""
    found: list[Method] = []
    for name in sorted(each.name for each in pkgutil.iter_modules(__path__)):
        if name != __name__.rpartition(".")[2]:
            found += getattr(importlib.import_module(f".{name}", __package__), "METHODS", ())
    places = {method.page: method.place for method in found if method.page}
    return tuple(sorted(found, key=lambda each: (places.get(each.joins, each.place), bool(each.joins))))


METHODS = _found()
REGISTRY: dict[str, Callable[..., PositionalEncoding]] = {
    name: make for method in METHODS for name, make in method.names.items()
}
COMPARED = {name: REGISTRY[name] for method in METHODS if method.compared for name in method.names}
"""Those that the records of the lessons have."""


def doors(method: Method) -> tuple[str, ...]:
    """The doors that its first class opens; a variant opens those of the method that it varies."""
    first = next(iter(method.names), None) or method.variants[0].partition(" + ")[0]
    kind: Any = REGISTRY[first]
    return doors_of(kind)


def told(method: Method) -> list[Method]:
    """The method, and those that join its page."""
    return [method, *(each for each in METHODS if method.page and each.joins == method.page)]


def build(name: str, **config: Any) -> PositionalEncoding:
    """The encoding ``name`` with the arguments ``config`` of its class.

    >>> build("rotary", head_dim=8)
    Rotary(8, base=10000, layout='interleaved')
    >>> build("compose", parts=[build("learned", max_length=9, dim=4), build("alibi", n_heads=2)]).doors
    ('embed', 'bias')

    Raises:
        ValueError: an unknown name; the message lists the known ones.
        TypeError: an argument too many or too few; the message lists what the encoding takes.
    """
    takes, needed = _arguments(name)
    unknown, missing = sorted(config.keys() - set(takes)), sorted(set(needed) - config.keys())
    if unknown or missing:
        wrong = [f"no argument {key!r}" for key in unknown] + [f"a value for {key!r}" for key in missing]
        allowed = ", ".join(takes) or "nothing"
        raise TypeError(f"build({name!r}) needs {' and '.join(wrong)}: it takes {allowed}")
    return REGISTRY[name](**config)


def fit(name: str, *, d_model: int, n_heads: int, length: int, **config: Any) -> PositionalEncoding:
    """The encoding ``name`` for a model of these sizes and texts of ``length`` tokens.

    Arguments with a usual name are filled in (:func:`usual`); ``config`` holds all others.

    >>> fit("clipped", d_model=64, n_heads=4, length=512)
    ClippedBias(4, 128, std=0.02)

    Raises as :func:`build` does.
    """
    return build(name, **usual(name, d_model=d_model, n_heads=n_heads, length=length) | config)


def usual(name: str, *, d_model: int, n_heads: int, length: int) -> dict[str, int]:
    """The sizes that the class behind ``name`` requires, as far as their names tell.

    >>> usual("shaw", d_model=64, n_heads=4, length=512)
    {'head_dim': 16, 'max_distance': 128}
    """
    sizes = {
        "dim": d_model,
        "n_heads": n_heads,
        "head_dim": d_model // n_heads,
        "max_length": length,
        "length": length,
        "n_positions": length,
        "max_distance": length // 4,
    }
    return {key: sizes[key] for key in _arguments(name)[1] if key in sizes}


def _arguments(name: str) -> tuple[list[str], list[str]]:
    """The arguments that the class behind ``name`` takes, and those that have no default."""
    if name not in REGISTRY:
        raise ValueError(f"name={name!r}: it must be one of {', '.join(map(repr, REGISTRY))}")
    takes = {} if REGISTRY[name] is NoPosition else inspect.signature(REGISTRY[name]).parameters
    return [*takes], [key for key, value in takes.items() if value.default is value.empty]
