"""Pictures to move: one explorer per notebook, and the parts that they share."""

from .attention import AttentionExplorer
from .hybrid import HybridExplorer
from .learned import LearnedExplorer
from .permutation import PermutationExplorer
from .recurrence import RecurrenceExplorer
from .relative import RelativeBiasExplorer
from .sinusoidal import SinusoidalExplorer

__all__ = [
    "AttentionExplorer", "HybridExplorer", "LearnedExplorer", "PermutationExplorer", "RecurrenceExplorer",
    "RelativeBiasExplorer", "SinusoidalExplorer",
]
