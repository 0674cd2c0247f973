"""However a run of the marking ends, nothing of it goes on."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid

import nbformat
import psutil
import pytest

from classroom import assignments, marking, sandbox

NAME = "ex06_rope"
MISSING = sandbox.probe()
RUN = f"""
import sys
from pathlib import Path
from classroom import marking

marking.self_test = lambda *args: None
if __name__ == "__main__":
    marking.mark_all(Path(sys.argv[1]), "{NAME}", workers=1, trusted=sys.argv[2] == "trusted")
"""


def running(word):
    """Processes that were given this word."""
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if word in (process.info["cmdline"] or [])]


@pytest.fixture
def klass(tmp_path):
    """A class of two, whose notebooks start a program that takes five minutes; and the program's name."""
    word = f"sleeper-{uuid.uuid4().hex}"
    notebook = json.loads(assignments.path(NAME, "exercises").read_bytes())
    notebook["cells"].append(
        nbformat.v4.new_code_cell(
            f"import subprocess\nsubprocess.run(['{word}', '300'], executable='/usr/bin/sleep')"
        )
    )
    for student in "ab":
        path = tmp_path / "submitted" / student / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    yield tmp_path, word
    for process in running(word):
        process.kill()


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize(
    ("how", "mode"), [("Ctrl-C", "contained"), ("kill -9", "contained"), ("kill -9", "trusted")]
)
def test_nothing_goes_on(how, mode, klass, tmp_path):
    root, word = klass
    (tmp_path / "run.py").write_text(RUN)
    # A session of its own, as a terminal's; a shell's background jobs ignore Ctrl-C.
    process = subprocess.Popen(
        [sys.executable, tmp_path / "run.py", root, mode],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    below, end = [], time.monotonic() + 300
    try:
        while not running(word):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end, "it did not begin"
            time.sleep(0.1)
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) > 2
        if how == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
        else:
            process.kill()
        _, left = psutil.wait_procs(below, timeout=20)
        assert not left and not running(word)
        said = process.communicate(timeout=20)[1]
        assert said.count("Traceback") == (how == "Ctrl-C"), said  # of no worker
    finally:
        for one in [process, *below]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    with marking._alone(root):  # a new run may begin
        assert not list((root / "marks").glob("*/*.json"))
