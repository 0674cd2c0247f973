"""What runs inside the sandbox: the cells of one submission, then its answers on given inputs.

Reads one message on standard input: ``cells`` (sources, in order), ``questions`` (``name``, ``inputs``,
``seconds``), ``cell_seconds``. Writes frames to the channel: first ``{"ready": True}``, before anything of
the student's runs; ``{"cell": n}`` before each cell, and ``{"cell": n, "late": True}`` after one that was
too slow; ``{"asking": name}`` and ``{"question": name, "outcomes": […]}``; finally ``{"end": True}``. It
knows no right answer and gives no marks. What it writes can be forged by the cells that it runs: the
marking reads it as data.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import linecache
import os
import re
import select
import signal
import sys
import time
import traceback
import types

from course.checks import messaging
from course.checks.answer import TooSlow, at_most, collect

from . import stub_modules

CHANNEL = 3
UNREAD: list[tuple[str, int, int]] = []  # cells that are no Python: source, line and character
# Cell magics that run the cell. Cells with other cell magics are not run, nor are shell commands.
TIMED = re.compile(r"\s*%%(?:time|capture|prun)\b.*\n")


def main() -> None:
    channel = os.fdopen(CHANNEL, "wb", buffering=0)
    message = messaging.receive(sys.stdin.buffer)
    stub_modules.install()
    messaging.send(channel, {"ready": True})
    namespace = _main_module()
    for n, source in enumerate(message["cells"]):
        messaging.send(channel, {"cell": n})
        if not run(source, n, namespace, message["cell_seconds"]):
            messaging.send(channel, {"cell": n, "late": True})
    for question in message["questions"]:
        messaging.send(channel, {"asking": question["name"]})
        messaging.send(channel, {"question": question["name"], "outcomes": ask(question, namespace)})
    messaging.send(channel, {"end": True})


def _main_module() -> dict:
    """The names that cells see: those of ``__main__``, as in a notebook.

    pickle looks there for a class that a cell has defined. If it were this file, the cell would fail, and
    with it every answer below that line.
    """
    silent = stub_modules.Nothing("course.lesson")
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, display=silent, get_ipython=lambda: silent)
    sys.modules["__main__"] = module
    return module.__dict__


def run(source: str, n: int, namespace: dict, seconds: float) -> bool:
    """Run one cell; returns False when it took too long. Whatever else goes wrong, the next one runs."""
    try:
        source = _plain(source)
        name = f"<cell {n}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        with at_most(seconds, cpu=True):
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, namespace))
            else:
                exec(code, namespace)
    except TooSlow:
        return False
    except SyntaxError as error:
        if error.filename == name:  # not from an exec of the student's own
            UNREAD.append((source, error.lineno or 0, error.offset or 0))
    except BaseException:  # also SystemExit and KeyboardInterrupt
        pass
    return True


def _plain(source: str) -> str:
    """Without magics and shell commands, as IPython writes them; those few lines do nothing here."""
    source = source[found.end() :] if (found := TIMED.match(source)) else source
    try:
        ast.parse(source)
        return source
    except (SyntaxError, ValueError):
        from IPython.core.inputtransformer2 import TransformerManager

        return TransformerManager().transform_cell(source)


def ask(question: dict, namespace: dict) -> list[dict]:
    """The outcomes of one answer, called in a process of its own: it may crash or never end."""
    function = namespace.get(question["name"])
    inputs = question["inputs"]
    if not callable(function):
        for source, line, character in UNREAD:  # of these cells, one was to define it
            if re.search(rf"^\s*def {question['name']}\b", source, re.MULTILINE):
                return _all(inputs, kind="syntax", line=str(line), message=str(character))
        return _all(inputs, kind="stub", message="there is no such function")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.close(CHANNEL)
            _answer(question, function, write)
        finally:
            os._exit(0)
    os.close(write)
    # The child's own clock counts CPU time; this one is for a child that sleeps or no longer listens.
    frame = _read(read, time.monotonic() + 4 * question["seconds"] + 20)
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    status = os.waitpid(child, 0)[1]
    if frame is None:
        return _all(inputs, kind="slow")
    try:
        return messaging.unpack(frame)
    except messaging.BadMessage:
        died = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        return _all(
            inputs, kind="raised", error="ProcessEnded", message=f"the call ended its whole process ({died})"
        )


def _all(inputs, **outcome) -> list[dict]:
    """The same outcome for all inputs."""
    return [{**outcome, "modified": [], "borrowed": []} for _ in inputs]


def _answer(question: dict, function, write: int) -> None:
    outcomes = []
    for args in question["inputs"]:
        stub_modules.called.clear()
        one = collect(function, [args], question["seconds"], cpu=True)[0]
        one["borrowed"] = sorted({*one["borrowed"], *stub_modules.called})[:20]
        outcomes.append(one)
        if one["kind"] == "slow":
            outcomes += [one] * (len(question["inputs"]) - len(outcomes))
            break
    with os.fdopen(write, "wb") as pipe:
        pipe.write(messaging.pack(outcomes))


def _read(pipe: int, until: float) -> bytes | None:
    """All bytes up to the end of the pipe; None when time runs out."""
    pieces = []
    while (left := until - time.monotonic()) > 0:
        if select.select([pipe], [], [], left)[0]:
            piece = os.read(pipe, 2**20)
            if not piece:
                os.close(pipe)
                return b"".join(pieces)
            pieces.append(piece)
    os.close(pipe)
    return None


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # threads that cells have left behind are not waited for
