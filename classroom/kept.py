"""Files that these commands keep for themselves. A damaged one is named and set aside; the rest goes on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def load(path: Path, without: str) -> dict:
    """The JSON object in ``path``; empty where there is none.

    A file that cannot be read is kept as ``….damaged``, and the teacher is told its name and what happens
    ``without`` it.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
        problem: Exception = ValueError("it holds something else")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as found_problem:
        problem = found_problem
    aside = path.with_name(f"{path.name}.damaged")
    os.replace(path, aside)
    print(f"{path} is damaged ({problem}). {without} It is kept as {aside.name}.", file=sys.stderr)
    return {}
