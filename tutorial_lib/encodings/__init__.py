"""Positional encodings, each a choice of where position enters attention.

``PositionalEncoding`` names the five doors; a method overrides those that it uses; ``Compose``
puts several together.
"""

from .base import DOORS, Absolute, Compose, NoPosition, PositionalEncoding
from .fusion import Add, Concatenate, Multiply, PositionMatrix
from .learned import Learned
from .rotary import Rotary
from .sinusoidal import Sinusoidal, frequencies, sinusoidal

__all__ = [
    "DOORS", "Absolute", "Add", "Compose", "Concatenate", "Learned", "Multiply", "NoPosition",
    "PositionMatrix", "PositionalEncoding", "Rotary", "Sinusoidal", "frequencies", "sinusoidal",
]
