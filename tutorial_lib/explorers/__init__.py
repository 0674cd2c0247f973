"""Pictures to move: one explorer per notebook, and the parts that they share."""

from .sinusoidal import SinusoidalExplorer

__all__ = ["SinusoidalExplorer"]
