"""The reader's own log: a small JSON file on their disk."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path


def log_file() -> Path:
    """Where the log is: ``$TUTORIAL_PROGRESS``, or ``.tutorial_lib/progress.json`` at home."""
    given = os.environ.get("TUTORIAL_PROGRESS")
    return Path(given) if given else Path.home() / ".tutorial_lib" / "progress.json"


def read() -> dict[str, dict]:
    """The log: ``{"01.predict.swap": {"choice": …, "right": …}, …}``.

    A missing file is an empty log. An unreadable one is set aside as ``progress.json.broken``, so
    that nothing is lost, and a new log begins.
    """
    path = log_file()
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
            raise ValueError("not a log")
        return entries
    except FileNotFoundError:
        return {}
    except (ValueError, OSError):
        with contextlib.suppress(OSError):
            path.replace(path.with_name(path.name + ".broken"))
        return {}


def record(key: str, **entry) -> None:
    """Write one entry. The file is replaced as a whole, so that a crash cannot tear it.

    A disk that cannot be written to loses the log, never the lesson.
    """
    path = log_file()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        entries = read()
        entries[key] = {**entries.get(key, {}), **entry}
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(entries, file, indent=1, sort_keys=True, ensure_ascii=False)
        os.replace(temporary, path)
