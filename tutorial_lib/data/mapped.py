"""Unpack large files once, into a file that every later session maps into its memory.

Pages of a mapped file that nobody writes to are shared: thirty students on one machine keep one copy of a
model, not thirty. Writing is allowed, because the mapping is private (copy on write): the writer gets a copy
of those pages, and the file stays as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

LAYOUT = "1"
"""Of what is kept; another one makes every file anew."""
SPARE_BYTES = 2_000_000_000
"""No file is made where less is free: a home folder with a quota is not filled for a few seconds."""


def mapped(source: Path, unpack: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of ``unpack()``, which reads ``source``, from a file that is made the first time.

    The file lies beside the source, or in the user's cache folder where that cannot be written. Its name
    holds the SHA-256 of the source, so a new version of the source is unpacked anew; one that cannot be read
    is replaced. Where no file can be kept, the result is simply that of ``unpack()``.
    """
    with source.open("rb") as file:
        name = f"{source.stem}.{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}.{LAYOUT}.mapped"
    places = [folder / name for folder in (source.parent, cache_folder())]
    for place in places:
        if (found := _read(place)) is not None:
            return found
    made = unpack()
    for place in places:
        if _write(made, place) and (found := _read(place)) is not None:
            _remove_old(source.stem, keep=place)
            return found
    return made


def cache_folder() -> Path:
    """Where this user's programs keep files that can be made again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "transformer-order"


def _read(place: Path) -> dict[str, Any] | None:
    """The kept file, mapped; None where there is none, or a torn one."""
    try:
        return torch.load(place, mmap=True, weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError):
        return None


def _write(made: dict[str, Any], place: Path) -> bool:
    """Write aside, then rename: another process sees the whole file or none. False where that fails."""
    aside = place.with_name(f"{place.name}.{uuid.uuid4().hex}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(place.parent).free < SPARE_BYTES:
            return False
        with _removed_at_last(aside), aside.open("xb") as file:
            torch.save(made, file)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            aside.replace(place)
        return True
    except (OSError, RuntimeError):
        return False


@contextlib.contextmanager
def _removed_at_last(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _remove_old(stem: str, keep: Path) -> None:
    for old in keep.parent.glob(f"{stem}.*.mapped"):
        if old != keep:
            with contextlib.suppress(OSError):  # Windows: another process is reading it
                old.unlink()
