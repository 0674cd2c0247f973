"""Every encoding by its name, for experiments and notebooks."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from .alibi import ALiBi, AsymmetricALiBi
from .axial import AxialRotary, Sinusoidal2D
from .base import Compose, NoPosition, PositionalEncoding
from .cope import CoPE
from .deberta import DeBERTa
from .fire import FIRE
from .forgetting import Forgetting
from .fusion import Add, Concatenate, Multiply, PositionMatrix
from .grid import Raster
from .hybrid import TUPE, HybridConcat, HybridSum, KeySide
from .kerple import KERPLE
from .learned import Learned
from .relative import ClippedBias, TableBias
from .rotary import Rotary
from .sandwich import Sandwich
from .shaw import Shaw
from .sinusoidal import Sinusoidal
from .swin import SwinBias
from .t5 import T5Bias
from .temperature import ScalableSoftmax, Temperature
from .transformer_xl import TransformerXL
from .xpos import XPos


def _compose(*, parts):
    return Compose(*parts)


REGISTRY: dict[str, Callable[..., PositionalEncoding]] = {
    "none": NoPosition,
    "sinusoidal": Sinusoidal,
    "sinusoidal-2d": Sinusoidal2D,
    "learned": Learned,
    "add": Add,
    "multiply": Multiply,
    "matrix": PositionMatrix,
    "concatenate": Concatenate,
    "rotary": Rotary,
    "rotary-axial": AxialRotary,
    "xpos": XPos,
    "clipped": ClippedBias,
    "table": TableBias,
    "shaw": Shaw,
    "transformer-xl": TransformerXL,
    "t5": T5Bias,
    "alibi": ALiBi,
    "alibi-asymmetric": AsymmetricALiBi,
    "hybrid-sum": HybridSum,
    "hybrid-concat": HybridConcat,
    "key-side": KeySide,
    "tupe": TUPE,
    "kerple": KERPLE,
    "sandwich": Sandwich,
    "fire": FIRE,
    "deberta": DeBERTa,
    "cope": CoPE,
    "forgetting": Forgetting,
    "temperature": Temperature,
    "scalable-softmax": ScalableSoftmax,
    "swin": SwinBias,
    "raster": Raster,
    "compose": _compose,
}


def build(name: str, **config) -> PositionalEncoding:
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


def fit(name: str, *, d_model: int, n_heads: int, length: int, **config) -> PositionalEncoding:
    """The encoding ``name`` for a model of these sizes and texts of ``length`` tokens.

    What its class asks for by a usual name, it gets (:func:`usual`); ``config`` is all else.

    >>> fit("clipped", d_model=64, n_heads=4, length=512)
    ClippedBias(4, 128, std=0.02)

    Raises as :func:`build` does.
    """
    return build(name, **usual(name, d_model=d_model, n_heads=n_heads, length=length) | config)


def usual(name: str, *, d_model: int, n_heads: int, length: int) -> dict[str, int]:
    """The sizes that the class behind ``name`` can't do without, as far as their names tell.

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
    """Those that the class behind ``name`` takes, and those that have no default."""
    if name not in REGISTRY:
        raise ValueError(f"name={name!r}: it must be one of {', '.join(map(repr, REGISTRY))}")
    takes = {} if REGISTRY[name] is NoPosition else inspect.signature(REGISTRY[name]).parameters
    return [*takes], [key for key, value in takes.items() if value.default is value.empty]
