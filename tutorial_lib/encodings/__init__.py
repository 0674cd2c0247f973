"""Positional encodings, each a choice of where position enters attention.

``PositionalEncoding`` names the five doors; a method overrides those that it uses; ``Compose``
puts several together.
"""

from .base import DOORS, Absolute, Compose, NoPosition, PositionalEncoding
from .fusion import Add, Concatenate, Multiply, PositionMatrix
from .learned import Learned
from .rotary import Rotary, permute_projection
from .scaling import DynamicNTK, Frequencies, Llama3, NTKAware, PositionInterpolation, YaRN
from .sinusoidal import Sinusoidal, frequencies, sinusoidal
from .xpos import XPos

__all__ = [
    "DOORS", "Absolute", "Add", "Compose", "Concatenate", "DynamicNTK", "Frequencies", "Learned",
    "Llama3", "Multiply", "NTKAware", "NoPosition", "PositionInterpolation", "PositionMatrix",
    "PositionalEncoding", "Rotary", "Sinusoidal", "XPos", "YaRN", "frequencies", "permute_projection",
    "sinusoidal",
]
