"""Pictures to move: one explorer per notebook, and the parts that they share."""

from .attention import AttentionExplorer
from .permutation import PermutationExplorer
from .sinusoidal import SinusoidalExplorer

__all__ = ["AttentionExplorer", "PermutationExplorer", "SinusoidalExplorer"]
