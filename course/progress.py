"""The learner's own log: a small JSON file on their disk. Several kernels may write to it at once."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

PATIENCE = 2.0  # seconds to wait for another kernel; after that we write all the same


def log_file() -> Path:
    """Where the log is: ``$TUTORIAL_PROGRESS``, or ``.tutorial_lib/progress.json`` at home."""
    given = os.environ.get("TUTORIAL_PROGRESS")
    return Path(given) if given else Path.home() / ".tutorial_lib" / "progress.json"


def read() -> dict[str, dict]:
    """The log: ``{"01.predict.swap": {"choice": …, "at": …, "right": …}, …}``.

    ``at`` is :func:`now` at the time of the choice; logs of earlier versions of the course have none.
    A missing file is an empty log. An unreadable one is set aside as ``progress.json.broken``, so
    that nothing is lost, and a new log begins.
    """
    with _alone():
        return _entries()


def record(key: str, **entry) -> None:
    """Merge ``entry`` into what stands under ``key``.

    A disk that cannot be written to loses the log, never the lesson. Raises TypeError for values
    that JSON cannot hold.
    """
    with _alone(make_folder=True):
        entries = _entries()
        _replace({**entries, key: {**entries.get(key, {}), **entry}})


def now() -> str:
    """The time (ISO 8601, UTC), for an entry; such strings sort as the times do."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def forget(prefix: str) -> int:
    """Drop all entries whose key starts with ``prefix``; returns how many were dropped."""
    with _alone():
        entries = _entries()
        kept = {key: entry for key, entry in entries.items() if not key.startswith(prefix)}
        dropped = len(entries) - len(kept)
        return dropped if dropped and _replace(kept) else 0


def _entries() -> dict[str, dict]:
    path = log_file()
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
            raise ValueError("not a log")
        return entries
    except FileNotFoundError:
        return {}
    except (ValueError, OSError, RecursionError):
        with contextlib.suppress(OSError):
            path.replace(path.with_name(path.name + ".broken"))
        return {}


def _replace(entries: dict[str, dict]) -> bool:
    """Write the file as a whole, so that a crash cannot tear it. True if that was possible."""
    path, text = log_file(), json.dumps(entries, indent=1, sort_keys=True, ensure_ascii=False)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
        return True
    except OSError:
        return False
    finally:
        if temporary:
            with contextlib.suppress(OSError):  # after a replacement it is gone
                os.unlink(temporary)


@contextlib.contextmanager
def _alone(make_folder: bool = False) -> Iterator[None]:
    """Keep other kernels out, by an OS lock on a file beside the log.

    The OS frees the lock when its holder dies. Where there is none to be had (a disk that cannot be written
    to, a file system without locks, a holder that hangs) we go on without one.
    """
    path = log_file()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, NotImplementedError):
            if make_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.is_dir():
                lock = FileLock(path.with_name(path.name + ".lock"))
                stack.enter_context(lock.acquire(PATIENCE, poll_interval=0.01))
        yield
