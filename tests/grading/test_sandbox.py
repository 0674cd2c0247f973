"""The sandbox holds: programs that try to get out of it, or to use it up, and one that does neither."""

import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from classroom import sandbox, seccomp, watch
from classroom.sandbox import Limits, Outcome

MISSING = sandbox.probe()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

GENEROUS = Limits(wall=60, cpu=60, start=60, memory=2**29, disk=2**23)

# What every program here starts with. `refused` gives what an expression raised, "allowed" if nothing.
BEGIN = """
import json, os, signal, sys, time

def send(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    data = len(data).to_bytes(8, "little") + data
    while data:
        data = data[os.write(3, data):]

def refused(function, *args):
    try:
        function(*args)
    except Exception as error:
        return type(error).__name__
    return "allowed"

def call(*args):
    import ctypes
    code = ctypes.CDLL(None, use_errno=True).syscall(*args)
    return ctypes.get_errno() if code == -1 else 0

send("ready")
"""


def frames(data: bytes) -> list[bytes]:
    """The whole frames in `data`."""
    found = []
    while len(data) >= 8 and len(data) >= 8 + (size := struct.unpack("<Q", data[:8])[0]):
        found.append(data[8 : 8 + size])
        data = data[8 + size :]
    return found


def play(program: str, limits: Limits = GENEROUS, **more) -> Outcome:
    """Run a program and see that nothing of it is left: no process, no file, no open descriptor of ours."""
    mark = f"mark-{uuid.uuid4()}"
    before = set(os.listdir("/proc/self/fd"))
    outcome = sandbox.run(["-c", BEGIN + program, mark], limits=limits, **more)
    assert not running(mark)
    if threading.active_count() == 1:
        assert set(os.listdir("/proc/self/fd")) == before
    return outcome


def running(mark: str) -> list[bytes]:
    """The command lines that hold `mark`, of all processes of the machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [line] if mark.encode() in (line := path.read_bytes()) else []
        except OSError:
            pass
    return found


def said(program: str, **more) -> object:
    """What a program that ends well sends after "ready"."""
    import json

    outcome = play(program, **more)
    assert (outcome.ended, outcome.status) == ("done", 0), outcome
    first, answer = frames(outcome.frames)
    assert first == b'"ready"'
    return json.loads(answer)


# ---- a program that does no harm ----


def test_a_program_answers(tmp_path):
    """It reads the message, imports what is mounted, writes to its folder; its prints are no frames."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "helper_of_mine.py").write_text("VALUE = 7\n")
    program = """
import helper_of_mine
print("noise")
print("last words", file=sys.stderr)
open("file", "w").write("x" * 1000)
send([helper_of_mine.VALUE, sys.stdin.read(), os.path.getsize("file"), os.environ["OMP_NUM_THREADS"]])
"""
    message = "a long message " * 20_000
    outcome = play(program, mounts={tmp_path / "given": "/course"}, message=message.encode())
    assert outcome.ended == "done" and outcome.stderr == "last words"
    assert frames(outcome.frames)[1].decode() == f'[7, "{message}", 1000, "1"]'


def test_torch_works_inside():
    assert said("import torch; send((torch.ones(64, 64) @ torch.ones(64, 64)).sum().item())") == 64.0**3


def test_the_message_may_stay_unread():
    assert play("", message=bytes(2**20)).ended == "done"


def test_several_at_once():
    """Each gets its own answer; what one does, another doesn't see."""
    program = "open('mine', 'x').write(sys.stdin.read()); time.sleep(0.3); send(open('mine').read())"
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: said(program, message=b"%d" % i), range(6)))
    assert results == [str(i) for i in range(6)]


def test_no_temporary_file_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (given := tmp_path / "given").mkdir(mode=0o700)  # which a superuser's sandbox has to copy
    (given / "file").write_text("x")
    assert said("open('file', 'w').write('x'); send(os.listdir('/course'))", mounts={given: "/course"}) == [
        "file"
    ]
    assert play("while True: pass", Limits(wall=0.3)).ended == "time"
    assert list(tmp_path.iterdir()) == [given]


def test_bad_arguments_are_named(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        sandbox.run(["-c", ""], mounts={tmp_path / "none": "/course"})
    with pytest.raises(ValueError, match="absolute path"):
        sandbox.run(["-c", ""], mounts={tmp_path: "../course"})
    with pytest.raises(ValueError, match="Limits.wall"):
        Limits(wall=-1)


# ---- reading and changing what is not its own ----


def test_no_network():
    program = """
import socket
def connect(address): socket.create_connection(address, timeout=5)
send([refused(connect, ("192.0.2.1", 80)), refused(connect, ("127.0.0.1", int(sys.stdin.read()))),
      refused(socket.getaddrinfo, "example.org", 80), refused(socket.socket, 40, 1), socket.gethostname()])
"""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        answer = said(program, message=str(server.getsockname()[1]).encode())
    assert answer == ["OSError", "ConnectionRefusedError", "gaierror", "OSError", "sandbox"]


def test_no_files_of_the_machine(tmp_path):
    """Neither the home, nor the repository, nor a file beside what is mounted, nor the system's settings."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "given").mkdir(mode=0o700)  # which a superuser's sandbox has to copy
    (tmp_path / "given" / "link").symlink_to(tmp_path / "secret")
    paths = ["/etc/passwd", "/etc/hostname", "/var/log", "/run", str(tmp_path / "secret"), "/course/link"]
    paths += [str(Path(__file__)), str(Path(sandbox.__file__)), "/course/../secret"]
    program = f"""
home = {str(Path.home())!r}
names = os.listdir(home) if os.path.isdir(home) else []
send([[path for path in {paths!r} if os.path.exists(path)], names, os.listdir("/etc"), os.listdir(".")])
"""
    seen, home, settings, here = said(program, mounts={tmp_path / "given": "/course"})
    assert seen == [] and set(here) <= set(Path(sys.prefix).parts)  # a way to the environment, no more
    used = [os.path.relpath(folder, Path.home()).split("/")[0] for folder in sandbox._software()]
    assert set(home) <= set(used)  # a Python that lies in the home is seen, and nothing beside it
    assert set(settings) <= {"ld.so.cache", "alternatives"}


def test_of_an_environment_in_the_checkout_only_python_is_seen(tmp_path):
    """`python -m venv .` makes the course's own folder the environment."""
    checkout = tmp_path / "checkout"
    (checkout / "solutions").mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", checkout], check=True)
    asked = f"import os; os.write(3, bytes(8)); os.write(3, ' '.join(os.listdir({str(checkout)!r})).encode())"
    program = f"from classroom import sandbox; print(sandbox.run(['-c', {asked!r}]))"
    done = subprocess.run(
        [checkout / "bin" / "python", "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(sandbox.__file__).parents[1])},
    )
    assert "ended='done'" in done.stdout and "pyvenv.cfg" in done.stdout, done
    assert "solutions" not in done.stdout


def test_this_package_is_covered_where_it_is_installed(tmp_path, monkeypatch):
    """It holds the answers. Here the Python environment is a folder with a copy of it."""
    package = tmp_path / "lib" / "tutorial_lib"
    package.mkdir(parents=True)
    tmp_path.chmod(0o755)  # as a Python environment's folder is
    (package / "answers.py").write_text("")
    (package.parent / "other.py").write_text("")
    software = sandbox._software()
    monkeypatch.setattr(sandbox, "_software", lambda: {**software, str(tmp_path): str(tmp_path)})
    monkeypatch.setattr(sandbox.sysconfig, "get_path", lambda kind: str(package.parent))
    program = f"send([os.listdir({str(package)!r}), os.listdir({str(package.parent)!r})])"
    covered, beside = said(program)
    assert covered == [] and sorted(beside) == ["other.py", "tutorial_lib"]


def test_no_environment_of_the_machine(monkeypatch):
    monkeypatch.setenv("COURSE_SECRET", "hidden-value")
    program = """
import glob
found = [name for name, value in os.environ.items() if "hidden-value" in value or name == "COURSE_SECRET"]
for path in glob.glob("/proc/*/environ"):
    try:
        found += [path] * (b"hidden-value" in open(path, "rb").read())
    except OSError:
        pass
send([found, len(glob.glob("/proc/[0-9]*")), os.getuid(), sorted(os.listdir("/proc/self/fd"))])
"""
    found, processes, uid, descriptors = said(program)
    assert found == [] and uid == 65534
    assert processes <= 3  # bubblewrap's own, and this one
    assert descriptors == ["0", "1", "2", "3", "4"]  # 4 is the listing itself


@pytest.mark.parametrize("staged", [True, False])
def test_nothing_can_be_written_but_its_own_folder(staged, monkeypatch):
    """Nor where a superuser's sandbox cannot be nobody's."""
    if not staged:
        monkeypatch.setattr(sandbox, "_stage_works", lambda bwrap: False)
    paths = ["/file", "/dev/file", "/usr/file", "/proc/sys/kernel/core_pattern", "/proc/1/mem"]
    paths += ["/proc/self/oom_score_adj", "/proc/sys/vm/overcommit_memory", "/etc/file"]
    ours = Path(sys.prefix, "file")
    if not ours.is_relative_to("/tmp"):  # the sandbox has a /tmp of its own, which ends with it
        paths.append(str(ours))
    program = f"""
def write(path): os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
free = [path for path in {paths!r} if refused(write, path) == "allowed"]
open("/dev/null", "w").write("x")
own = [refused(write, "own-file"), refused(write, "/dev/shm/file")]
for path in ("/dev/null", "/dev/zero"): os.chmod(path, 0o667)  # the machine's own; one bit that does no harm
send([free, own])
"""
    modes = [os.stat(path).st_mode for path in ("/dev/null", "/dev/zero")]
    assert said(program) == [[], ["allowed", "allowed"]] and not ours.exists()
    assert [os.stat(path).st_mode for path in ("/dev/null", "/dev/zero")] == modes


@pytest.mark.skipif(not seccomp.filter_for(), reason=f"no filter of system calls for {platform.machine()}")
def test_system_calls_are_refused():
    column = seccomp.MACHINES[platform.machine()][0]
    numbers = {name: both[column] for name, both in seccomp.REFUSED.items() if both[column] is not None}
    new_user = 0x10000000
    program = f"""
send([[name for name, number in {numbers!r}.items() if call(number, 0, 0, 0, 0, 0) != {seccomp.EPERM}],
      call({seccomp.CLONE3[column]}, 0, 0), call({seccomp.CLONE[column]}, {new_user} | 17, 0, 0, 0, 0),
      call({seccomp.IOCTL[column]}, 0, 0x5412, b"x"), call({seccomp.SOCKET[column]}, 40, 1, 0)])
"""
    expected = [[], seccomp.ENOSYS, seccomp.EPERM, seccomp.EPERM, seccomp.EAFNOSUPPORT]
    assert said(program) == expected


# ---- using the machine up ----


def test_endless_loop_that_ignores_signals():
    program = """
for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGXCPU"): signal.signal(getattr(signal, name), signal.SIG_IGN)
send("before")
while True: pass
"""
    outcome = play(program, Limits(wall=300, cpu=1))  # its own time: "before" is sent on a busy machine, too
    assert outcome.ended == "time"
    assert frames(outcome.frames) == [b'"ready"', b'"before"']


def test_cpu_time_of_all_processes_counts():
    outcome = play("os.fork()\nwhile True: pass", Limits(wall=300, cpu=0.5))
    assert outcome.ended == "time"


def test_a_sleeper_is_ended():
    assert (
        play("os.close(0); os.close(1); os.close(2); os.close(3); time.sleep(1000)", Limits(wall=0.5)).ended
        == "time"
    )


def test_imports_have_their_own_clock():
    """The student's time begins with the first frame; what fails before is no student's fault."""
    outcome = sandbox.run(["-c", "import time; time.sleep(5)" + BEGIN], limits=Limits(wall=4, start=60))
    assert outcome.ended == "done"
    outcome = sandbox.run(["-c", "import time; time.sleep(1000)"], limits=Limits(start=0.5))
    assert (outcome.ended, outcome.frames) == ("start", b"") and "time" in outcome.stderr
    outcome = sandbox.run(["-c", "import os, nothing_of_that_name"])
    assert (outcome.ended, outcome.status) == ("start", 1) and "nothing_of_that_name" in outcome.stderr
    half = "import os; os.write(3, (100).to_bytes(8, 'little') + b'only a part'); os._exit(0)"
    assert sandbox.run(["-c", half]).ended == "start"


def test_fork_bomb():
    """It doubles eight times, and again, where the kernel has a limit for what comes between two looks."""
    staged = sandbox._as_nobody(shutil.which("bwrap"))
    rounds = "iter(int, 1)" if sandbox._counts_processes(staged) == "sandbox" else "range(8)"
    program = f"""
for _ in {rounds}:
    try: os.fork()
    except OSError: pass
time.sleep(1000)
"""
    outcome = play(program, Limits(wall=20, cpu=100, processes=20))
    assert outcome.ended == "processes"


def test_threads_count_as_processes():
    program = """
import threading
for _ in range(30): threading.Thread(target=time.sleep, args=(1000,)).start()
"""
    assert play(program, Limits(wall=20, processes=20)).ended == "processes"


def test_memory_hog():
    program = """
import mmap
NO_RESERVE = 0x4000  # no kernel may refuse to promise so much
memory = mmap.mmap(-1, 100 * 2**30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
send("before")
for at in range(0, 2**32, 2**20):
    memory[at : at + 2**20] = bytes(2**20)
    time.sleep(0.002)
"""
    outcome = play(program, Limits(memory=2**27))
    assert outcome.ended == "memory"
    assert frames(outcome.frames)[-1] == b'"before"'


def test_memory_that_several_share_is_counted_once():
    """A parent's 64 MiB, seen by 8 children, are 64 MiB; 8 times 64 MiB of their own are too much."""
    program = """
data = bytearray(os.urandom(2**20)) * 64
for _ in range(8):
    if not os.fork():
        {own}
        time.sleep(1)
        os._exit(0)
for _ in range(8): os.wait()
send("after")
"""
    limits = Limits(memory=2**28)
    assert frames(play(program.format(own=""), limits).frames)[-1] == b'"after"'
    assert play(program.format(own="data = bytearray(data); time.sleep(1000)"), limits).ended == "memory"


def test_files_count_as_memory():
    program = "open('file', 'wb').write(bytes(2**26)); time.sleep(1000)"
    assert play(program, Limits(memory=2**26, disk=2**27)).ended == "memory"


def test_disk_is_limited():
    program = """
def fill(pattern, size):
    total = 0
    try:
        for i in range(size // 2**20):
            with open(pattern % (i // 4), "ab") as file: total += file.write(bytes(2**20))
    except OSError: pass
    return total
send([fill("%d", 20 * 2**30), fill("/dev/shm/%d", 20 * 2**30), refused(os.truncate, "0", 2**40)])
"""
    disk, shared, sparse = said(program)
    assert 0 < disk <= GENEROUS.disk and 0 < shared <= sandbox.SHARED_MEMORY
    assert sparse == "OSError"


def test_flood_on_stdout_and_stderr():
    """Hundreds of megabytes go nowhere and hold nothing up; the result arrives."""
    program = """
line = b"flood" * 20_000
for _ in range(3000): os.write(1, line)
for _ in range(200): os.write(2, line)
os.write(2, b"the end")
send("after")
"""
    outcome = play(program)
    assert outcome.ended == "done" and frames(outcome.frames)[-1] == b'"after"'
    assert outcome.stderr.endswith("the end") and len(outcome.stderr) <= sandbox.TAIL


def test_flood_on_the_channel():
    outcome = play("while True: send(bytes(10**6))", Limits(output=2**22))
    assert outcome.ended == "output"
    assert len(outcome.frames) == 2**22
    assert play("send(bytes(2**20))", Limits(output=1000)).ended == "output"  # and has ended by then


# ---- its end ----


@pytest.mark.parametrize(
    "how, ended, status",
    [
        ("os._exit(0)", "done", 0),
        ("os._exit(7)", "done", 7),
        ("raise SystemError('oh')", "done", 1),
        ("import ctypes; ctypes.string_at(0)", "killed", 128 + 11),
        ("os.abort()", "killed", 128 + 6),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed", 128 + 9),
    ],
)
def test_what_was_sent_before_the_end_arrives(how, ended, status):
    outcome = play(f"send('before'); {how}; send('after')")
    assert (outcome.ended, outcome.status) == (ended, status)
    assert frames(outcome.frames) == [b'"ready"', b'"before"']


def test_processes_that_stay_behind_are_ended():
    program = """
if not os.fork():
    os.setsid()
    if not os.fork():
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP): signal.signal(number, signal.SIG_IGN)
        send("daemon")
        time.sleep(1000)
    os._exit(0)
os.wait()
time.sleep(0.3)
"""
    outcome = play(program)  # which looks for them
    assert outcome.ended == "done" and b'"daemon"' in frames(outcome.frames)


def test_they_are_gone_when_it_returns(monkeypatch):
    """A program that ends by itself may leave some that are slow to end: their memory is given back."""
    trees, made = [], sandbox.Tree
    monkeypatch.setattr(sandbox, "Tree", lambda *given: trees.append(made(*given)) or trees[-1])
    program = """
if not os.fork():
    held = bytearray(300 * 2**20)
    held[::4096] = bytes([1]) * len(held[::4096])
    send("held")
    time.sleep(1000)
time.sleep(1)
"""
    for _ in range(4):
        outcome = sandbox.run(["-c", BEGIN + program], limits=GENEROUS)
        stat = Path(f"/proc/{trees[-1].first}/stat")
        state = stat.read_text().rpartition(")")[2].split()[0] if stat.exists() else "gone"
        assert state in ("Z", "gone")  # whatever was in its namespace ended before
        assert outcome.ended == "done" and b'"held"' in frames(outcome.frames)


def test_the_sandbox_ends_with_the_process_that_started_it():
    mark = f"mark-{uuid.uuid4()}"
    inner = "import os, time; os.write(3, bytes(8)); time.sleep(1000)"
    outer = f"from classroom import sandbox; sandbox.run(['-c', {inner!r}, {mark!r}])"
    path = os.pathsep.join([str(Path(sandbox.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen([sys.executable, "-c", outer], env={**os.environ, "PYTHONPATH": path})
    program = b"\0".join(os.fsencode(part) for part in (sys.executable, "-c", inner, mark, ""))
    wait_for(lambda: any(line == program for line in running(mark)))
    process.kill()
    process.wait()
    wait_for(lambda: not running(mark))


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.05)


# ---- the filter, for processors that are not this one ----


def decide(program: bytes, arch: int, number: int, *args: int) -> int:
    """What a filter says to a system call: an interpreter of the instructions that `seccomp` uses."""
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *(*args, *[0] * (6 - len(args))))
    lines = list(struct.iter_unpack("<HBBI", program))
    at = loaded = 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == seccomp.LOAD:
            loaded = struct.unpack_from("<I", data, value)[0]
        elif code == seccomp.RETURN:
            return value
        else:
            tests = {seccomp.EQUAL: loaded == value, seccomp.AT_LEAST: loaded >= value}
            at += yes if {**tests, seccomp.ANY_BIT: bool(loaded & value)}[code] else no


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_filter_decides(machine):
    column, arch = seccomp.MACHINES[machine]
    program = seccomp.filter_for(machine)

    def verdict(number, *args):
        return decide(program, arch, number, *args)

    for names, expected in (
        (seccomp.REFUSED, seccomp.ERROR | seccomp.EPERM),
        (seccomp.IGNORED, seccomp.ERROR),
    ):
        for numbers in names.values():
            assert numbers[column] is None or verdict(numbers[column]) == expected
    assert verdict(seccomp.CLONE3[column]) == seccomp.ERROR | seccomp.ENOSYS
    assert verdict(seccomp.CLONE[column], 17) == seccomp.ALLOW
    assert verdict(seccomp.CLONE[column], 0x10000000 | 17) == seccomp.ERROR | seccomp.EPERM
    assert verdict(seccomp.IOCTL[column], 0, 0x5401) == seccomp.ALLOW  # TCGETS
    assert verdict(seccomp.IOCTL[column], 0, 0x5412 | 1 << 40) == seccomp.ERROR | seccomp.EPERM
    assert [verdict(seccomp.SOCKET[column], family) == seccomp.ALLOW for family in (1, 2, 10)] == [True] * 3
    assert verdict(seccomp.SOCKET[column], 40) == seccomp.ERROR | seccomp.EAFNOSUPPORT
    assert verdict({"x86_64": 1, "aarch64": 64}[machine]) == seccomp.ALLOW  # write
    assert decide(program, 0x40000003, 1) == seccomp.KILL  # a 32-bit program
    if machine == "x86_64":
        assert verdict(0x40000000 | 101) == seccomp.ERROR | seccomp.ENOSYS


def test_no_filter_is_said(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert any("no filter" in line and "riscv64" in line for line in sandbox.in_force())
    assert play("send(1)").ended == "done"


def test_in_force_says_what_binds_this_user(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-18-amd64")
    assert "RLIMIT_NPROC" in sandbox.in_force()[-1]
    monkeypatch.setattr(platform, "release", lambda: "5.4.0")
    assert "this user" in sandbox.in_force()[-1]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sandbox, "_stage_works", lambda bwrap: False)
    assert "NO LIMIT" in sandbox.in_force()[-1]


# ---- a machine on which it does not work ----


def fake_bwrap(folder, monkeypatch, says, status=1):
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {status}\n")
    path.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(path))


@pytest.mark.parametrize("system, name", [("darwin", "macOS"), ("win32", "Windows")])
def test_probe_on_another_system(monkeypatch, system, name):
    monkeypatch.setattr(sys, "platform", system)
    assert name in sandbox.probe() and "Linux" in sandbox.probe()


def test_probe_without_bubblewrap(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "apt-get install bubblewrap" in sandbox.probe()
    with pytest.raises(RuntimeError, match="apt-get install bubblewrap"):
        sandbox.run(["-c", ""])


def test_probe_where_bubblewrap_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "SWITCHES", ())
    fake_bwrap(tmp_path, monkeypatch, "bwrap: No permissions to create new namespace")
    assert "No permissions to create new namespace" in sandbox.probe() and "Docker" in sandbox.probe()
    fake_bwrap(tmp_path, monkeypatch, "bwrap: Unknown option --size")
    assert "too old" in sandbox.probe()
    fake_bwrap(tmp_path, monkeypatch, "", status=0)  # it starts nothing, and says nothing
    assert "does not start" in sandbox.probe() and "'start'" in sandbox.probe()


def test_probe_names_the_switch(tmp_path, monkeypatch):
    """A setting that forbids, here one that has the value on any machine."""
    value = Path("/proc/sys/kernel/ostype").read_text().strip()
    monkeypatch.setattr(sandbox, "SWITCHES", (("kernel/ostype", value, "sysctl -w some.switch=1"),))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    fake_bwrap(tmp_path, monkeypatch, "bwrap: Creating new namespace failed")
    assert "sysctl -w some.switch=1" in sandbox.probe()


def test_a_look_while_a_sandbox_changes_its_root_counts_no_disk(monkeypatch):
    """Bubblewrap's first process begins in our own root: that disk is no memory of the sandbox."""
    told, telling = os.pipe()
    try:
        tree = watch.Tree(None, told)
        tree.first = os.getpid()
        real = os.stat

        def moved(path, **options):  # by then it has a root of its own
            away = str(path).startswith("/proc/")
            return os.stat_result([0] * 10) if away else real(path, **options)

        monkeypatch.setattr(os, "stat", moved)
        assert tree._files() == 0
    finally:
        os.close(told), os.close(telling)
