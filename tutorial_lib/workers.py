"""Processes that end with the one that started them, whatever ends it: Ctrl-C and SIGKILL, too."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection


@contextlib.contextmanager
def pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """``count`` worker processes. Leaving the block waits for what was submitted; an exception in it ends all
    workers at once, whatever they are doing, and is raised again when they have ended.

    Each worker holds one end of a pipe, and only this process the other: whatever closes it ends the worker.
    Their temporary files go with them, unless this process is killed by SIGKILL.
    """
    context = multiprocessing.get_context("spawn")
    life, ours = context.Pipe(duplex=False)
    with (
        tempfile.TemporaryDirectory(prefix="workers-", ignore_cleanup_errors=True) as scratch,
        life,
        ours,
        ProcessPoolExecutor(count, context, _begin, (life, scratch)) as workers,
    ):
        try:
            yield workers
        except BaseException:
            ours.close()
            workers.shutdown(cancel_futures=True)
            raise


def _begin(life: Connection, scratch: str) -> None:
    """In a worker, before its first job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    tempfile.tempdir = scratch
    threading.Thread(target=_end_with, args=(life,), daemon=True).start()


def _end_with(life: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        life.recv_bytes()  # nothing is ever sent
    os._exit(1)


@functools.cache  # one thread is enough
def end_with_parent(parent: int, end: Callable[[], None] = lambda: os._exit(1)) -> None:
    """``end`` this process when its parent, whose process id ``parent`` is, is gone (POSIX)."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        end()

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def ignoring_ctrl_c() -> Iterator[None]:
    """Processes that are started in this block ignore Ctrl-C: it ends this process, which ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
