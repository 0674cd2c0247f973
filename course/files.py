"""Files that somebody else has put there: opened without following links, and replaced as a whole."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEGABYTE = 1_000_000
MOST_NAME = 255  # letters of a name in a zip file, folders included: no disk allows a longer file name


class Refused(ValueError):
    """A file that is not read; the message says why, in words for the person who sent it."""


def _component(name: str, folder: int | None, flags: int) -> int:
    """Open one component of a path; a link is refused by name."""
    try:
        flags |= os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=folder)
    except OSError as problem:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
                raise Refused("It is a link to another place. Send the file itself.") from None
        raise Refused(f"It cannot be opened: {problem.strerror}.") from None


@contextlib.contextmanager
def opened(path: Path, root: Path | None = None) -> Iterator[int]:
    """A file descriptor for reading the regular file ``path``.

    No link is followed below ``root`` (default: the folder that holds ``path``); ``root`` itself is
    trusted. Opening never waits, not even for a FIFO. Raises Refused for whatever is not a regular
    file, and ValueError where ``path`` does not lie below ``root``.
    """
    root = path.parent if root is None else root
    parts = path.relative_to(root).parts
    if not parts or ".." in parts:
        raise ValueError(f"{path} is not below {root}: give a path inside of the folder that is trusted")
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for n, part in enumerate(parts):
            below = _component(part, at, 0 if n == len(parts) - 1 else os.O_DIRECTORY)
            os.close(at)
            at = below
        kind = os.fstat(at).st_mode
        if not stat.S_ISREG(kind):
            what = "a folder" if stat.S_ISDIR(kind) else "a pipe, a device or a socket"
            raise Refused(f"It is {what}, not a file.")
        yield at
    finally:
        os.close(at)


def read_dated(path: Path, most_bytes: int, root: Path | None = None) -> tuple[bytes, float]:
    """The content of a regular file, and when it was last changed (seconds since 1970).

    Follows no link below ``root`` (see `opened`). Raises Refused, with a sentence that says why, for a
    link, a folder, a pipe, a device, and for a file of more than ``most_bytes`` bytes.
    """
    with opened(path, root) as file:
        found = os.fstat(file)
        pieces, left = [], most_bytes + 1
        if found.st_size <= most_bytes:
            while left and (piece := os.read(file, min(left, MEGABYTE))):
                pieces.append(piece)
                left -= len(piece)
        if found.st_size > most_bytes or not left:
            raise Refused(
                f"It is larger than {most_bytes / MEGABYTE:g} MB. "
                "Clear the outputs (Edit → Clear Outputs of All Cells) and send it again."
            )
        return b"".join(pieces), found.st_mtime


def read(path: Path, most_bytes: int, root: Path | None = None) -> bytes:
    """The content of a regular file; as `read_dated`, without the date."""
    return read_dated(path, most_bytes, root)[0]


def replace(path: Path, data: bytes, mode: int = 0o644) -> bool:
    """Make ``data`` the whole content of ``path``, in one step; False where it already was.

    Missing folders are made. A reader sees the old file or the new one, never a part. Whatever is at
    ``path`` is replaced and not written through, so a link there does no harm.
    """
    try:
        if read(path, len(data)) == data:
            return False
    except (Refused, OSError):
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    file, new = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
    return True
