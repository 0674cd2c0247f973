"""What the processes of a sandbox use, seen from outside; and their end.

The processes are those below bubblewrap in ``/proc``, found by their parents. A process whose parent ends
becomes a child of the sandbox's first process, so none can leave this tree.

psutil reads the same files, and is not used here for two reasons. It takes five times as long for each check
(2.7 ms instead of 0.5 ms with 108 processes on the machine), 20 times a second for each sandbox, because it
reads every process of the machine each time. And it can't give memory without the pages of files on disk,
which torch's libraries fill, nor with those of shared memory: `RssShmem`, `VmSwap`, `Pss_Anon`, `Pss_Shmem`.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 120  # seconds for the kernel to end what was killed
AFRESH = 20  # after this many checks, processes known to be outside are read again: their ids may be reused
INODE = 1024  # bytes of kernel memory that an empty file takes, about
TMPFS = ("tmp", "dev/shm")


@dataclass(frozen=True)
class Use:
    """What a tree of processes uses: tasks (processes and threads), bytes of memory, seconds of CPU time."""

    tasks: int = 0
    memory: int = 0
    cpu: float = 0.0


@dataclass(frozen=True)
class _Process:
    parent: int
    threads: int
    cpu: float
    began: int  # tells it from a later process with the same id
    ended: bool  # and all that were in its namespace, if it was the first there


class Tree:
    """The processes below `bwrap`: bubblewrap's second, which is the first in the namespace, and others.

    `told` is the reading end of the pipe that bubblewrap got as ``--info-fd``: there it names the first
    process in the namespace, before that one does anything.
    """

    def __init__(self, bwrap: subprocess.Popen, told: int):
        self.bwrap = bwrap
        self.first = 0  # PID of the first process in the namespace; 0 until bubblewrap has told it
        self._began: int | None = None
        self._pipe, self._told = told, b""
        os.set_blocking(told, False)
        self._outside: set[int] = set()
        self._looks = 0

    def look(self, most: int, memory: int) -> Use:
        """What is used now. `most` tasks and `memory` bytes are what is allowed.

        With more tasks, the memory is not added up; if a quick upper bound is within `memory`, you get that
        bound.
        """
        inside = self._inside()
        tasks = max(0, sum(process.threads for process in inside.values()) - 1)  # less bubblewrap's
        cpu = sum(process.cpu for process in inside.values())
        if tasks > most:
            return Use(tasks, 0, cpu)
        files = self._files()
        used = files + sum(map(_upper_bound, inside))
        if used > memory:  # pages that processes share were counted once for each
            used = files + sum(map(_share, inside))
        return Use(tasks, used, cpu)

    def offer(self) -> None:
        """Let the kernel end the sandbox first if memory runs out. Inside, /proc is read-only."""
        for pid in self._inside():
            try:
                Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
            except OSError:
                pass  # it has ended, or this kernel does not let us: the limit of memory is still watched

    def kill(self) -> None:
        """End all, and return when all have ended.

        When the first process of a PID namespace ends, so do all others in it, and it is gone only when they
        are. So we let bubblewrap end by itself. If the program ended by itself, bubblewrap does not wait for
        them: the kernel then ends the first process, and we wait for that.

        Raises:
            subprocess.TimeoutExpired: the kernel did not end them within two minutes.
        """
        begun = time.monotonic()
        while self.bwrap.poll() is None or self._remains():
            if self.bwrap.returncode is None:
                first = self._first()
                if first is not None and first.parent == self.bwrap.pid:  # no other process has its id
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self.first, signal.SIGKILL)
                elif time.monotonic() - begun > 2:
                    self.bwrap.kill()  # it never got as far as a namespace
            if time.monotonic() - begun > PATIENCE:
                raise subprocess.TimeoutExpired(self.bwrap.args, PATIENCE)
            time.sleep(0.005)

    def _remains(self) -> bool:
        """Whether anything is left in the namespace."""
        first = self._first()
        return first is not None and first.began == self._began and not first.ended

    def _first(self) -> _Process | None:
        """The first process in the namespace; None before bubblewrap has told it, and after its end."""
        if not self.first:
            with contextlib.suppress(BlockingIOError):
                self._told += os.read(self._pipe, 4096)
            if found := re.search(rb'"child-pid": (\d+)\D', self._told):
                self.first = int(found[1])
                process = _read(self.first)
                self._began = process and process.began
                return process
        return _read(self.first) if self.first else None

    def _inside(self) -> dict[int, _Process]:
        """PID to process, of all below bubblewrap."""
        self._looks += 1
        if self._looks % AFRESH == 0:
            self._outside.clear()
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        self._outside &= pids
        fresh = {pid: process for pid in pids - self._outside if (process := _read(pid))}
        inside = {}
        for pid in fresh:
            top = pid
            while top in fresh and top != self.bwrap.pid:
                top = fresh[top].parent
            if top == self.bwrap.pid:
                inside[pid] = fresh[pid]
            elif top == 0 or top in self._outside:
                self._outside.add(pid)
            # else a parent came or went while we read: the next look decides
        inside.pop(self.bwrap.pid, None)
        self._first()
        return inside

    def _files(self) -> int:
        """Bytes in the sandbox's file systems in memory; 0 if we may not look: their size is limited, too."""
        total = 0
        for name in TMPFS:
            try:  # opened once: between two looks the root may change, and with it the folder
                place = os.open(f"/proc/{self.first}/root/{name}", os.O_PATH)
            except OSError:
                continue
            try:
                found, device = os.statvfs(place), os.fstat(place).st_dev
            finally:
                os.close(place)
            if device != _device(name):
                total += (found.f_blocks - found.f_bfree) * found.f_frsize
                total += (found.f_files - found.f_ffree) * INODE
        return total


def _device(name: str) -> int | None:
    """The device of our own folder of that name, which is what we see until bubblewrap has made another."""
    try:
        return os.stat(f"/{name}").st_dev
    except OSError:
        return None


def _read(pid: int) -> _Process | None:
    """None if it has ended."""
    try:
        # The name, in brackets, may hold anything, brackets too. Fields: proc_pid_stat(5), from the third on.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20:
        return None
    ticks = sum(map(int, fields[11:15]))  # utime, stime, and those of children that have ended
    began, ended = int(fields[19]), fields[0] in b"ZX"
    return _Process(int(fields[1]), int(fields[17]), ticks / os.sysconf("SC_CLK_TCK"), began, ended)


def _sizes(pid: int, name: str, wanted: tuple[str, ...]) -> dict[str, int]:
    """Lines such as ``VmSwap:  12 kB`` of a file in /proc/<pid>, in bytes."""
    found = {}
    try:
        for line in Path(f"/proc/{pid}/{name}").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key in wanted:
                found[key] = int(value.split()[0]) * 1024
    except OSError:
        pass
    return found


def _upper_bound(pid: int) -> int:
    """Memory of a process, with pages that it shares with others but without files on disk; quick."""
    return sum(_sizes(pid, "status", ("RssAnon", "RssShmem", "VmSwap")).values())


def _share(pid: int) -> int:
    """Memory of a process, with its part of shared pages (proportional set size)."""
    sizes = _sizes(pid, "smaps_rollup", ("Pss", "Pss_Anon", "Pss_Shmem", "SwapPss"))
    if "Pss_Anon" in sizes:
        sizes.pop("Pss")
    return sum(sizes.values()) if sizes else _upper_bound(pid)
