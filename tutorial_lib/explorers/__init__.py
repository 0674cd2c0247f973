"""Pictures to move: at least one explorer for each notebook, and the parts that they share."""

from .alibi import ALiBiExplorer
from .attention import AttentionExplorer
from .crowd import CrowdExplorer
from .hybrid import HybridExplorer
from .learned import LearnedExplorer
from .permutation import PermutationExplorer
from .positions import PositionsExplorer
from .recurrence import RecurrenceExplorer
from .relative import RelativeBiasExplorer
from .rotary import RotaryExplorer
from .scaling import ScalingExplorer
from .scoreboard import ScoreboardExplorer
from .sinusoidal import SinusoidalExplorer

__all__ = [
    "ALiBiExplorer",
    "AttentionExplorer",
    "CrowdExplorer",
    "HybridExplorer",
    "LearnedExplorer",
    "PermutationExplorer",
    "PositionsExplorer",
    "RecurrenceExplorer",
    "RelativeBiasExplorer",
    "RotaryExplorer",
    "ScalingExplorer",
    "ScoreboardExplorer",
    "SinusoidalExplorer",
]
