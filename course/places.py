"""Where things stand in a clone of the course: its folder, the records, the side quests."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DEEPER = "deeper"
"""The folder of the side quests, in ``notebooks``."""
RECORDS = ROOT / "results"
"""The records that come with the course."""
