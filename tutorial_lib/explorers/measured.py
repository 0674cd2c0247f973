"""What the course measured and its explorers show: numbers from the records, kept beside the explorers."""

import functools
import json
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")


@functools.cache
def measured() -> dict:
    """``learned``: loss in nats of a learned table as trained, and stretched; ``repeat`` and ``first``: that
    of SmolLM2 on a text that it reads again (by scaling: distances and losses), and for the first time;
    ``board``: a row for each encoding. ``python -m course.experiments results`` writes them.
    """
    return json.loads(FILE.read_text(encoding="utf-8"))
