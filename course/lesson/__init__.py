"""What every notebook shares: a warm-up, predict then reveal, your turn, claims tested, concept check,
progress, an inventory of beliefs before the course and after it, and votes of a class.

The questions stand in ``questions/NN.toml``, one file per notebook, so that a notebook's source
does not give the answers away; those of the inventory in ``inventory.toml``.
"""

from .claims import Claims
from .inventory import inventory
from .panel import progress
from .predictions import predict, reveal
from .questions import concept_check
from .turns import your_turn
from .votes import share, vote
from .warm_up import warm_up

__all__ = [
    "Claims",
    "concept_check",
    "inventory",
    "predict",
    "progress",
    "reveal",
    "share",
    "vote",
    "warm_up",
    "your_turn",
]
