"""The judging process: what is expected is computed here, out of a notebook's reach.

``python -m course.checks`` reads requests on its standard input and answers on its standard
output (:mod:`.messaging`). :func:`ask` starts one for this kernel and keeps it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading

from tutorial_lib.language import ENGLISH, speaking

from . import messaging, questions
from .judge import judge

_running: subprocess.Popen[bytes] | None = None
_lock = threading.Lock()


def serve(requests, answers) -> None:
    """Answer requests until the other side has gone."""
    while True:
        try:
            request = messaging.receive(requests)
        except (
            EOFError,
            messaging.BadMessage,
        ):  # after half a message there is no telling where the next begins
            return
        try:
            question = questions.find(request["question"])
            with speaking(request.get("language", ENGLISH)):  # this process outlives a change of language
                reply: dict = {"verdict": judge(question, request["seed"], request["outcomes"]).message()}
        except Exception as problem:  # reported where the check was called
            reply = {"problem": f"{type(problem).__name__}: {problem}"}
        messaging.send(answers, reply)


def ask(request: dict) -> dict:
    """Send a request to this kernel's judging process; RuntimeError when it can't judge."""
    for attempt in (1, 2):  # the process may have been killed since the last check
        try:
            with _lock:
                process = _process()
                assert process.stdin and process.stdout  # both are pipes
                messaging.send(process.stdin, request)
                reply = messaging.receive(process.stdout)
            break
        except (OSError, EOFError, messaging.BadMessage) as problem:
            stop()
            if attempt == 2:
                raise RuntimeError(
                    f"the judging process does not answer ({type(problem).__name__}). Restart "
                    "the kernel; if it stays so, `make doctor` helps."
                ) from None
        except BaseException:  # interrupted half-way: what comes next would be the old answer
            stop()
            raise
    if "problem" in reply:
        raise RuntimeError(f"the check itself failed, this is not your mistake: {reply['problem']}")
    return reply


def _process() -> subprocess.Popen[bytes]:
    global _running
    if _running is None or _running.poll() is not None:
        environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(
                [questions.package_root(), os.environ.get("PYTHONPATH", "")]
            ).rstrip(os.pathsep),
        }
        _running = subprocess.Popen(
            [sys.executable, "-m", __package__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )  # Ctrl-C is for the kernel
    return _running


@atexit.register
def stop() -> None:
    """End the judging process of this kernel, if there is one."""
    global _running
    process, _running = _running, None
    if process is not None:
        with contextlib.suppress(OSError):
            process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()
        process.wait()
