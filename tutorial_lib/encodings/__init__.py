"""Positional encodings, each a choice of where position enters attention.

``PositionalEncoding`` names the five doors; a method overrides those that it uses; ``Compose``
puts several together; ``build`` makes one by its name.
"""

from .alibi import ALiBi, AsymmetricALiBi, slopes
from .base import DOORS, Absolute, Compose, NoPosition, PositionalEncoding
from .fusion import Add, Concatenate, Multiply, PositionMatrix
from .learned import Learned
from .registry import REGISTRY, build
from .relative import ClippedBias, RelativeBias, TableBias
from .rotary import Rotary
from .shaw import Shaw
from .sinusoidal import Sinusoidal, frequencies, sinusoidal
from .t5 import T5Bias, bucket

__all__ = [
    "ALiBi", "Absolute", "Add", "AsymmetricALiBi", "ClippedBias", "Compose", "Concatenate", "DOORS",
    "Learned", "Multiply", "NoPosition", "PositionMatrix", "PositionalEncoding", "REGISTRY",
    "RelativeBias", "Rotary", "Shaw", "Sinusoidal", "T5Bias", "TableBias", "bucket", "build",
    "frequencies", "sinusoidal", "slopes",
]
