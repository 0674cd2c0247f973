"""Run a Python program that nobody has read: bubblewrap, a filter for system calls, limits, a watch.

What the sandbox protects from
------------------------------
- **Reading what is not its own.** The program sees the operating system's programs and libraries (``/usr``),
  what `ENVIRONMENT` lists of the Python environment that marks, and the folders it is given, all
  read-only. It sees no home, no ``/etc``, no environment variables and no processes of this machine. If this
  package is installed in the Python environment, it is hidden, since it holds the reference answers.
- **Changing anything.** It can write to its own ``/tmp`` and ``/dev/shm``, which are memory of limited size
  and are gone when it ends. ``/proc`` and ``/dev`` are read-only, and file modes cannot be changed: otherwise
  a superuser's sandbox could change the kernel's settings and close ``/dev/null`` to everybody.
- **Talking to anyone.** Its network is empty; sockets other than Unix and internet ones are refused.
- **Using up the machine.** Wall time, CPU time, memory, processes, files and output are limited. A program
  that goes over is ended with all its processes, and nothing is left running.
- **More rights.** It has no capabilities and can get none: no new namespaces, mounts, tracing, keys, kernel
  programs. See `seccomp`.

What it does not protect from
-----------------------------
- **A fault in the kernel.** The kernel is shared. If you expect attackers with such means, run the grading
  in a virtual machine of its own.
- **Bursts.** Memory and processes are checked 20 times a second, so for a moment more can be used. Kernel
  memory (sockets, pipes, empty files) is limited only roughly, and shared memory that a process gives up
  without freeing it is not seen. If memory runs out, the kernel is told to end the sandbox first.
- **Slowness.** Programs share processors and caches. Two that run side by side slow each other down, so a
  time limit has to be generous.
- **Lies.** What arrives on the result channel was written by the program and may be anything. It has to be
  read as data, with a bound on its size, and compared outside.

An ordinary user should run it. A superuser's sandbox runs as the user nobody where that can be done. Where it
cannot (a container without rights), the kernel itself does not limit processes, and a program that keeps
multiplying can slow the whole machine down for minutes. `in_force` says what holds on this machine.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import platform
import re
import selectors
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from . import seccomp
from .stub_modules import ROOMS
from .watch import Tree

CHANNEL = 3  # the file descriptor on which the program sends its frames
LOOK = 0.05  # seconds between two checks of what it uses
TAIL = 8_000  # bytes of stderr that are kept
SHARED_MEMORY = 16 * 2**20  # bytes of /dev/shm
OPEN_FILES = 256
NOBODY = 65534  # the user's and the group's number
FOR_A_USER = 4096  # processes of a user, if the kernel does not count those of each sandbox
HELLO = ["-c", f"import os; os.write({CHANNEL}, bytes(8))"]  # the shortest program: one empty frame
STAGES = ("/mnt", "/media", "/srv")  # where a superuser's sandbox may find what it mounts; see _staged
CHUNK = 2**16
# What a program sees of a Python environment. Its folder may hold anything: `python -m venv .` makes it the
# course itself, with the solutions.
ENVIRONMENT = ("bin", "include", "lib", "lib32", "lib64", "pyvenv.cfg")

SETTINGS = {
    "HOME": "/tmp",
    "USER": "nobody",  # there is no /etc/passwd to look the name up in
    "PATH": "/usr/bin",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUNBUFFERED": "1",  # so that the tail of stderr is there if it is killed
}

# Runs inside, before the program: only there do limits count just this sandbox. Only the channel and the
# standard streams stay open.
FIRST = f"""\
import os, resource, sys
for pair in sys.argv[2].split():
    name, _, value = pair.partition("=")
    kind = getattr(resource, name)
    most = resource.getrlimit(kind)[1]
    value = int(value) if most == resource.RLIM_INFINITY else min(int(value), most)
    resource.setrlimit(kind, (value, value))
os.dup2(int(sys.argv[1]), {CHANNEL})
os.closerange({CHANNEL + 1}, 65536)
os.execv(sys.argv[3], sys.argv[3:])
"""

NEEDS_LINUX = (
    "Students' code runs in a sandbox that only Linux has, and this is {system}. Grade on a Linux machine, "
    "or in a virtual machine with Linux (on macOS for example with Lima or UTM, on Windows with WSL 2)."
)
NEEDS_BWRAP = (
    "Students' code runs in a sandbox made by bubblewrap, and there is no program bwrap on this machine. "
    "Install it: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)."
)
FAILED = "The sandbox does not start on this machine. {hint} What was said: {said}"
# What may forbid user namespaces: (a setting of the kernel, the value that forbids, what to do).
SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "an AppArmor profile for bwrap that has the line 'userns,' (Ubuntu: apt-get install "
        "apparmor-profiles), or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
USER_NAMESPACES = "User namespaces are switched off. As root, do: {switch}."
OTHERWISE = (
    "In a container, user namespaces have to be allowed (Docker: --security-opt seccomp=unconfined "
    "--security-opt systempaths=unconfined --security-opt apparmor=unconfined)."
)
TOO_OLD = "bubblewrap is too old: 0.7 or newer is needed."


@dataclass(frozen=True)
class Limits:
    """What a program may use. Sizes are in bytes, times in seconds.

    `start` is for its imports, up to the end of its first frame. Then `wall` and `cpu` begin: the time on the
    clock, and the CPU time of all its processes together. `processes` counts threads, too. `disk` is all that
    its files may hold, and counts as memory as well. `output` is what it may send on the channel.
    """

    wall: float = 120.0
    cpu: float = 120.0
    start: float = 120.0
    memory: int = 2 * 2**30
    processes: int = 64
    disk: int = 128 * 2**20
    output: int = 16 * 2**20

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if not (isinstance(value, int | float) and 0 < value < math.inf):
                raise ValueError(f"Limits.{field.name} has to be a number above 0, not {value!r}.")


@dataclass(frozen=True)
class Outcome:
    """How a program ended, and what it sent.

    `frames` is what it sent on the channel, up to `Limits.output` bytes; the last frame may be cut off.
    `ended` is one of

    - "done": it ended by itself, with any exit status;
    - "time", "memory", "processes", "output": it was ended because it went over that limit;
    - "killed": a signal ended it: a crash, or the kernel when the machine ran out of memory;
    - "start": anything that happened before its first frame. No student's code has run then.

    `status` is the exit status, 128 + the signal's number after a signal. `stderr` is the end of its stderr.
    """

    frames: bytes
    ended: str
    status: int
    stderr: str


def run(
    argv: Sequence[str],
    *,
    mounts: Mapping[Path, str] | None = None,
    limits: Limits | None = None,
    message: bytes = b"",
) -> Outcome:
    """Run ``python *argv`` in a sandbox and wait until it ends. Several may run at once, also in threads.

    The program reads `message` on stdin and writes frames to file descriptor 3 (`CHANNEL`): a length of 8
    bytes, little-endian, and as many bytes. The first frame says that it is ready, and is sent before it runs
    any student's code. What it prints is lost, except the end of stderr.

    Args:
        argv: the arguments of the interpreter that runs this.
        mounts: folders or files of this machine that it may read, and their paths inside. The folders are on
            its ``sys.path``.
        limits: default `Limits()`.
        message: bytes.

    Raises:
        RuntimeError: there is no bubblewrap; see `probe`.
        ValueError: a path to mount is not there, or a path inside is not absolute.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise RuntimeError(NEEDS_BWRAP)
    given = {inside: _checked(path, inside) for path, inside in (mounts or {}).items()}
    return _run(bwrap, _as_nobody(bwrap), argv, given, limits or Limits(), message)


def _run(bwrap: str, staged: bool, argv, given: dict[str, Path], limits: Limits, message: bytes) -> Outcome:
    with contextlib.ExitStack() as stack:
        ours, theirs = _pipe(stack)
        told, tells = _pipe(stack)
        rules = _filter(stack)
        before, software = [], _software()
        folders = [inside for inside, path in given.items() if path.is_dir()]
        if staged:
            given = {inside: _readable(path, stack) for inside, path in given.items()}
            before, software, given = _staged(software, given)
        flags = _flags(software, given, limits)
        flags += ["--setenv", "PYTHONPATH", ":".join(folders)] * bool(folders)
        flags += ["--seccomp", str(rules.fileno())] if rules else []
        flags += ["--info-fd", str(tells.fileno())]
        first = _first(theirs.fileno(), limits, _counts_processes(staged))
        command = [*before, bwrap, *flags, "--", *first, *argv]
        # bwrap has no environment either: its first process is PID 1 inside, and shows in /proc/1/environ.
        # Its streams are pipes: the program could change the mode of a file, even that of /dev/null.
        process = stack.enter_context(
            subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[file.fileno() for file in (theirs, tells, rules) if file],
                env={},
                cwd="/",
                start_new_session=True,  # Ctrl-C is for us; we end it
            )
        )
        theirs.close()
        tells.close()
        return _Running(Tree(process, told.fileno()), ours.fileno(), limits, message).outcome()


def probe() -> str:
    """Try the sandbox. "" if it works, else a sentence on what is missing and how to get it."""
    if sys.platform != "linux":
        system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        return NEEDS_LINUX.format(system=system)
    if shutil.which("bwrap") is None:
        return NEEDS_BWRAP
    outcome = run(HELLO)
    if _works(outcome):
        return ""
    said = outcome.stderr.strip() or f"nothing; it ended with {outcome.ended!r}, status {outcome.status}"
    return FAILED.format(hint=_hint(said), said=said)


def in_force() -> list[str]:
    """What is limited on this machine, and what is not: sentences for a report."""
    machine = platform.machine()
    filtered = f"System calls: a filter for {machine} refuses {len(seccomp.REFUSED)} and new namespaces."
    unfiltered = f"System calls: no filter, since there is none for {machine}; namespaces alone keep it in."
    looks = f"looked at every {LOOK * 1000:.0f} ms, ended when over"
    kernel = {
        "sandbox": "the kernel allows twice as many (RLIMIT_NPROC)",
        "user": f"the kernel allows this user {FOR_A_USER} in all (RLIMIT_NPROC, before Linux 5.14)",
        "": "THE KERNEL SETS NO LIMIT, since this is the superuser: grade as an ordinary user",
    }[_counts_processes(_as_nobody(shutil.which("bwrap")))]
    return [
        "Network, files, processes, environment: none of this machine's (bubblewrap).",
        filtered if seccomp.filter_for(machine) else unfiltered,
        f"Files: in memory, of limited size, and {SHARED_MEMORY >> 20} MiB of shared memory besides.",
        f"Time, CPU time, memory: {looks}; no control group.",
        f"Processes and threads: {looks}; {kernel}.",
    ]


def _works(outcome: Outcome) -> bool:
    return outcome.ended == "done" and outcome.frames == bytes(8)


def _hint(said: str) -> str:
    if "nknown option" in said:
        return TOO_OLD
    for setting, forbids, switch in SWITCHES:
        path = Path("/proc/sys", setting)
        if path.exists() and path.read_text().strip() == forbids and (os.geteuid() or "max" in setting):
            return USER_NAMESPACES.format(switch=switch)
    return OTHERWISE


# ---- the command ----


def _flags(software: dict[str, str], given: dict[str, Path], limits: Limits) -> list[str]:
    """The arguments of bwrap. A mount covers what was mounted before it, so their order matters.

    `software` and `given` are paths inside to paths here.
    """
    flags = "--unshare-all --unshare-user --uid 65534 --gid 65534 --hostname sandbox".split()
    flags += "--die-with-parent --new-session --cap-drop ALL --clearenv --ro-bind /usr /usr".split()
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            flags += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            flags += ["--ro-bind", str(path), str(path)]
    # Where libraries are, and what the processor can do.
    for path in ("/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system/cpu"):
        flags += ["--ro-bind-try", path, path]
    # Both read-only: a superuser's kernel settings are in /proc, and /dev is memory without a limit. The
    # device files themselves cannot be: they would no longer be devices. See seccomp.IGNORED.
    flags += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    flags += ["--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    flags += ["--size", str(int(limits.disk)), "--tmpfs", "/tmp"]
    for inside, outside in software.items():
        flags += ["--ro-bind", outside, inside]
    for path in _package(["/usr", *software]):
        flags += ["--tmpfs", path, "--remount-ro", path]
    for inside, path in given.items():
        flags += ["--ro-bind", str(path), inside]
    flags += ["--remount-ro", "/", "--chdir", "/tmp"]
    for name, value in SETTINGS.items():
        flags += ["--setenv", name, value]
    return flags


def _checked(path: Path, inside: str) -> Path:
    path = Path(path).absolute()
    if not path.exists():
        raise ValueError(f"{path} is to be mounted in the sandbox, but there is no such file or folder.")
    if not inside.startswith("/") or os.path.normpath(inside) != inside or inside == "/":
        raise ValueError(f"{path} is to be mounted at {inside!r}; give an absolute path, like '/course'.")
    return path


def _software() -> dict[str, str]:
    """Path inside to path here, of the Python environment and the Python below it, where not in /usr."""
    found = {}
    for prefix in (sys.prefix, sys.base_prefix):
        for inside in (os.path.abspath(prefix), os.path.realpath(prefix)):
            for name in ENVIRONMENT:
                if os.path.exists(path := os.path.join(inside, name)):
                    found[path] = os.path.realpath(path)
    found = {inside: found[inside] for inside in sorted(found, key=len) if not _below(inside, ["/usr"])}
    # python may be a link to a link; each has to lead on.
    link = os.path.abspath(sys.executable)
    for _ in range(40):
        if not _below(link, ["/usr", "/bin", *found]):
            found[link] = os.path.realpath(link)
        if not os.path.islink(link):
            break
        link = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
    return found


def _package(seen: list[str]) -> list[str]:
    """Folders of the course's packages below `seen`: installed, or a copy of them in the environment."""
    places = (Path(__file__).resolve().parents[1], *map(sysconfig.get_path, ("purelib", "platlib")))
    folders = {Path(place, room) for place in places for room in ROOMS}
    return sorted(str(folder) for folder in folders if folder.is_dir() and _below(str(folder), seen))


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _first(channel: int, limits: Limits, counts: str) -> list[str]:
    """The command inside, up to the program's arguments."""
    most = {
        "CORE": 0,
        "FSIZE": limits.disk,
        "NOFILE": OPEN_FILES,
        "MSGQUEUE": 0,
        "MEMLOCK": 8 * 2**20,
        "CPU": math.ceil(limits.start + limits.cpu),  # for each process; the watch adds them up
    }
    if counts:  # higher than the watch's limit, so that the watch, which can say why, ends it first
        most["NPROC"] = 2 * limits.processes if counts == "sandbox" else FOR_A_USER
    listed = " ".join(f"RLIMIT_{name}={int(value)}" for name, value in most.items())
    return [sys.executable, "-IS", "-c", FIRST, str(channel), listed, sys.executable]


def _counts_processes(staged: bool) -> str:
    """What RLIMIT_NPROC counts: the processes of a "sandbox", or of the "user"; "" (none) for a superuser.

    A program that multiplies gets thousands of processes between two checks, and then there is no processor
    left for our next one. So this limit matters.
    """
    if os.geteuid() == 0 and not staged:
        return ""
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    return "sandbox" if version and tuple(map(int, version.groups())) >= (5, 14) else "user"


# ---- a superuser's sandbox ----
#
# In its user namespace a sandbox has the same rights over files and processes as whoever started it. For a
# superuser that is too much, and the kernel does not limit a superuser's processes. So bubblewrap is started
# as the user nobody. That user may not enter /root, where Python may be, so everything it needs is mounted
# again where it may, in a mount namespace that no other process sees. Each command becomes the next one: the
# signal that ends bubblewrap when we end has to come from us, who may signal nobody's processes.
STAGE = """\
set -e
stage=$1; shift
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$stage"
number=0
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir "$stage/$number"; else : > "$stage/$number"; fi
    mount --rbind "$1" "$stage/$number"
    number=$((number + 1)); shift
done
shift
exec "$@"
"""


def _as_nobody(bwrap: str | None) -> bool:
    return os.geteuid() == 0 and bwrap is not None and _stage_works(bwrap)


@functools.cache
def _stage_works(bwrap: str) -> bool:
    tools = all(map(shutil.which, ("sh", "unshare", "mount", "setpriv")))
    return tools and _works(_run(bwrap, True, HELLO, {}, Limits(), b""))


def _staged(software: dict[str, str], given: dict[str, Path]):
    """The command to put before bubblewrap's, and both mappings with the paths that it then has to mount."""
    sources = sorted({*software.values(), *map(str, given.values())})
    free = [stage for stage in STAGES if not any(_below(path, [stage]) for path in sources)]
    stage = next(filter(os.path.isdir, free), STAGES[0])
    stages = {path: f"{stage}/{number}" for number, path in enumerate(sources)}
    command = [shutil.which("unshare"), "--mount", "--propagation", "slave", "--"]
    command += [shutil.which("sh"), "-c", STAGE, "sh", stage, *sources, "--"]
    command += [shutil.which("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    software = {inside: stages[path] for inside, path in software.items()}
    return command, software, {inside: stages[str(path)] for inside, path in given.items()}


def _readable(path: Path, stack: contextlib.ExitStack) -> Path:
    """`path`, or a copy if the user nobody may not read all of it; links are not followed."""
    paths = [path, *path.rglob("*")] if path.is_dir() else [path]
    if all(_open_to_all(path) for path in paths):
        return path
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory()), "copy")
    shutil.copytree(path, copy, symlinks=True) if path.is_dir() else shutil.copyfile(path, copy)
    for below in [copy, *copy.rglob("*")]:
        if not below.is_symlink():
            below.chmod(0o755)
    return copy


def _open_to_all(path: Path) -> bool:
    mode = path.lstat().st_mode
    wanted = 0o005 if stat.S_ISDIR(mode) else 0o004
    return stat.S_ISLNK(mode) or mode & wanted == wanted


# ---- while it runs ----


class _Running:
    """One program that runs: its pipes, its clock, its processes."""

    def __init__(self, tree: Tree, channel: int, limits: Limits, message: bytes):
        self.process, self.tree, self.limits = (process := tree.bwrap), tree, limits
        self.frames, self.tail = bytearray(), bytearray()
        self.message = memoryview(message)
        self.begun = self.next_look = time.monotonic()
        self.ready: float | None = None  # when its first frame was there
        self.cpu_before = 0.0
        self.selector = selectors.DefaultSelector()
        self._register(channel, selectors.EVENT_READ, self._frame)
        self._register(process.stderr.fileno(), selectors.EVENT_READ, self._stderr)
        self._register(process.stdout.fileno(), selectors.EVENT_READ, lambda data: None)
        self._register(process.stdin.fileno(), selectors.EVENT_WRITE, None)

    def outcome(self) -> Outcome:
        try:
            with self.selector:
                over = self._until_over()
                self.tree.kill()
                while any(self._exchange(wait=0)):  # what it had sent
                    pass
        finally:
            self.tree.kill()
        status = self.process.returncode
        over = "output" if len(self.frames) > self.limits.output else over
        if self.ready is None:
            ended = "start"
            self.tail += f"\nThe sandbox ended it before it was ready: {over}.".encode() if over else b""
        else:
            ended = over or ("killed" if status < 0 or 128 < status <= 192 else "done")
        frames = bytes(self.frames[: int(self.limits.output)])
        return Outcome(frames, ended, status, self.tail[-TAIL:].decode(errors="replace").strip())

    def _until_over(self) -> str:
        """The limit that it went over; "" if it ended by itself."""
        while self.process.poll() is None:
            list(self._exchange(LOOK if self.selector.get_map() else LOOK / 10))
            if len(self.frames) > self.limits.output:
                return "output"
            if time.monotonic() >= self.next_look and (over := self._look()):
                return over
        return ""

    def _look(self) -> str:
        limits, now = self.limits, time.monotonic()
        used = self.tree.look(limits.processes, limits.memory)
        if self.ready is None:
            self.cpu_before = used.cpu
            self.tree.offer()
            late = now - self.begun > limits.start
        else:
            late = now - self.ready > limits.wall or used.cpu - self.cpu_before > limits.cpu
        self.next_look = time.monotonic() + LOOK
        if used.tasks > limits.processes:
            return "processes"
        if used.memory > limits.memory:
            return "memory"
        return "time" if late else ""

    def _exchange(self, wait: float):
        """Read and write what is possible now, one chunk for each pipe; yields whether data came."""
        for key, _ in self.selector.select(wait):
            if key.data is None:
                self._write(key.fd)
                continue
            try:
                data = os.read(key.fd, CHUNK)
            except BlockingIOError:
                continue
            if data:
                key.data(data)
            else:
                self.selector.unregister(key.fd)
            yield bool(data)

    def _write(self, fd: int) -> None:
        try:
            self.message = self.message[os.write(fd, self.message[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.message = self.message[:0]
        if not self.message:
            self.selector.unregister(fd)
            self.process.stdin.close()

    def _frame(self, data: bytes) -> None:
        if len(self.frames) <= self.limits.output:
            self.frames += data
        if self.ready is None and len(self.frames) >= 8:
            if len(self.frames) >= 8 + int.from_bytes(self.frames[:8], "little"):
                self.ready = time.monotonic()
                self.tree.offer()

    def _stderr(self, data: bytes) -> None:
        self.tail += data
        del self.tail[:-TAIL]

    def _register(self, fd: int, event: int, what) -> None:
        os.set_blocking(fd, False)
        self.selector.register(fd, event, what)


def _pipe(stack: contextlib.ExitStack) -> list:
    """Both ends, to read and to write; they are closed with the stack."""
    return [stack.enter_context(open(fd, mode, 0)) for fd, mode in zip(os.pipe(), ("rb", "wb"), strict=True)]


def _filter(stack: contextlib.ExitStack):
    """A pipe from which bwrap reads the filter; None if there is none for this machine."""
    rules = seccomp.filter_for()
    if not rules:
        return None
    ours, theirs = _pipe(stack)
    theirs.write(rules)  # far less than a pipe holds
    theirs.close()
    return ours
