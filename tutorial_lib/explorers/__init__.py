"""Pictures to move: one explorer per notebook, and the parts that they share."""

from .alibi import ALiBiExplorer
from .attention import AttentionExplorer
from .permutation import PermutationExplorer
from .rotary import RotaryExplorer
from .scaling import ScalingExplorer
from .sinusoidal import SinusoidalExplorer

__all__ = ["ALiBiExplorer", "AttentionExplorer", "PermutationExplorer", "RotaryExplorer",
           "ScalingExplorer", "SinusoidalExplorer"]
