"""What every notebook shares: predict then reveal, claims tested, concept check, progress.

The questions stand in ``questions/NN.toml``, one file per notebook, so that a notebook's source
does not give the answers away.
"""

from .claims import Claims
from .panel import progress
from .questions import concept_check, predict, reveal

__all__ = ["Claims", "concept_check", "predict", "progress", "reveal"]
