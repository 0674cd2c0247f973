"""Positional encodings, each a choice of where position enters attention.

``PositionalEncoding`` names the five doors; a method overrides those that it uses; ``Compose``
puts several together; ``build`` makes one by its name. Classes in the registry are exported
even if they are not named below, so a new encoding is one file.
"""

from .alibi import ALiBi, AsymmetricALiBi, slopes
from .axial import AxialFrequencies, AxialRotary, Sinusoidal2D
from .base import DOORS, Absolute, Compose, NoPosition, PositionalEncoding
from .cope import CoPE
from .deberta import DeBERTa
from .fire import FIRE
from .forgetting import Forgetting
from .fusion import Add, Concatenate, Multiply, PositionMatrix
from .grid import Raster, grid
from .hybrid import TUPE, HybridConcat, HybridSum, KeySide
from .kerple import KERPLE
from .learned import Learned
from .mrope import MRoPE
from .positions import Positions
from .registry import REGISTRY, build, fit
from .relative import ClippedBias, RelativeBias, TableBias
from .rotary import Rotary, permute_projection
from .sandwich import Sandwich
from .scaling import DynamicNTK, Frequencies, Llama3, LongRoPE, NTKAware, PositionInterpolation, YaRN
from .shaw import Shaw
from .sinusoidal import Sinusoidal, frequencies, sinusoidal
from .swin import SwinBias, window_index
from .t5 import T5Bias, bucket
from .temperature import ScalableSoftmax, Temperature
from .transformer_xl import TransformerXL
from .xpos import XPos

__all__ = [
    "ALiBi",
    "Absolute",
    "Add",
    "AsymmetricALiBi",
    "AxialFrequencies",
    "AxialRotary",
    "ClippedBias",
    "CoPE",
    "Compose",
    "Concatenate",
    "DOORS",
    "DeBERTa",
    "DynamicNTK",
    "FIRE",
    "Forgetting",
    "Frequencies",
    "HybridConcat",
    "HybridSum",
    "KERPLE",
    "KeySide",
    "Learned",
    "Llama3",
    "LongRoPE",
    "MRoPE",
    "Multiply",
    "NTKAware",
    "NoPosition",
    "PositionInterpolation",
    "PositionMatrix",
    "PositionalEncoding",
    "Positions",
    "REGISTRY",
    "Raster",
    "RelativeBias",
    "Rotary",
    "Sandwich",
    "ScalableSoftmax",
    "Shaw",
    "Sinusoidal",
    "Sinusoidal2D",
    "SwinBias",
    "T5Bias",
    "TUPE",
    "TableBias",
    "Temperature",
    "TransformerXL",
    "XPos",
    "YaRN",
    "bucket",
    "build",
    "fit",
    "frequencies",
    "grid",
    "permute_projection",
    "sinusoidal",
    "slopes",
    "window_index",
]

_new = {kind.__name__: kind for kind in REGISTRY.values() if isinstance(kind, type)}
globals().update(_new)
__all__ += sorted(_new.keys() - set(__all__))
