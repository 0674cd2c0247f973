"""`make lab` for real: its server hands out a working copy, and a kernel begins the first notebook."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import pytest
import websocket

from workshop.browser import free_port, own_folders

ROOT = Path(__file__).parents[2]
NOTEBOOK = "notebooks/00_start_here.ipynb"
TOKEN = uuid.uuid4().hex


class Server:
    """JupyterLab, started by `make lab`."""

    def __init__(self, folder):
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        flags = [
            f"--mine={folder / 'mine'}",
            "--allow-root",
            f"--port={port}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={TOKEN}",
        ]
        environment = own_folders(folder)
        environment["BROWSER"] = "true"  # the command that "opens" the page: it does nothing
        self.folder, self.log = folder, folder / "lab.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [
                    "make",
                    "lab",
                    f"PYTHON={sys.executable}",
                    f"VENV={sys.prefix}",
                    "LAB_FLAGS=" + " ".join(flags),
                ],
                cwd=ROOT,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ask(self, path, method="GET", /, **body):
        request = urllib.request.Request(
            f"http://{self.address}/{path}",
            method=method,
            data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"token {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()

    def wait(self, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return json.loads(self.ask("api/status"))
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        raise AssertionError("`make lab` does not answer:\n" + self.log.read_text())

    def stop(self):
        for how, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.process.pid, how)  # the group of this `make` alone
                self.process.wait(seconds)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    if not (shutil.which("make") and Path(sys.prefix, "setup.stamp").exists()):
        pytest.skip("these tests do not run in the environment of `make`")
    server = Server(tmp_path_factory.mktemp("lab"))
    try:
        server.wait()
        yield server
    finally:
        server.stop()


def run_cell(connection, code, seconds=300):
    """Run `code` in the kernel; return its errors as readable text."""
    message = {
        "header": {
            "msg_id": uuid.uuid4().hex,
            "msg_type": "execute_request",
            "version": "5.3",
            "username": "",
            "session": "test",
        },
        "parent_header": {},
        "metadata": {},
        "channel": "shell",
        "buffers": [],
        "content": {
            "code": code,
            "silent": False,
            "store_history": True,
            "allow_stdin": False,
            "stop_on_error": True,
        },
    }
    connection.settimeout(seconds)
    connection.send(json.dumps(message))
    errors, waiting_for = [], {"execute_reply", "idle"}
    while waiting_for:
        frame = connection.recv()
        if isinstance(frame, bytes):  # binary buffers follow: a widget's, of no interest here
            first = int.from_bytes(frame[4:8], "big")
            second = int.from_bytes(frame[8:12], "big")
            frame = frame[first:second]
        answer = json.loads(frame)
        if answer["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        if answer["msg_type"] == "error":
            errors.append("\n".join(answer["content"]["traceback"]))
        if answer["msg_type"] == "status":
            waiting_for.discard(answer["content"]["execution_state"])
        waiting_for.discard(answer["msg_type"])
    return errors


def test_the_first_notebook_is_what_opens(lab):
    said = lab.log.read_text().split("Your working copy is ")[1].splitlines()
    assert "updates leave what you changed alone" in said[0] and "Ctrl-C twice" in said[1], "in two lines"
    pages = [page.read_text() for page in lab.folder.rglob("*open.html")]
    assert any("/lab?" in page for page in pages)
    assert "JupyterLab" in lab.ask("lab")
    layout = json.loads(lab.ask("lab/api/workspaces/default"))["data"]
    assert layout["layout-restorer:data"]["main"]["dock"]["widgets"] == [f"notebook:{NOTEBOOK}"]


def test_it_is_a_copy(lab):
    """The clone stays as it is, whatever a learner does."""
    assert (lab.folder / "mine" / NOTEBOOK).exists()
    assert lab.ask("api/contents/docs/glossary.md") and not (lab.folder / "mine" / "solutions").exists()


def test_a_kernel_begins_the_first_notebook(lab):
    notebook = json.loads(lab.ask(f"api/contents/{NOTEBOOK}"))
    assert notebook["type"] == "notebook"
    first = next(
        cell["source"] for cell in notebook["content"]["cells"] if "doctor.report()" in cell["source"]
    )
    session = json.loads(
        lab.ask("api/sessions", "POST", path=NOTEBOOK, name="", type="notebook", kernel={"name": "python3"})
    )
    connection = websocket.create_connection(
        f"ws://{lab.address}/api/kernels/{session['kernel']['id']}/channels?token={TOKEN}", timeout=180
    )
    try:
        assert run_cell(connection, "1 / 0"), "an error must be seen"
        assert not (errors := run_cell(connection, first)), errors[0]
        short = "import os; assert 0 < int(os.environ['GOMP_SPINCOUNT']) <= 20_000"  # see server.environment
        assert not run_cell(connection, short)
    finally:
        connection.close()
        lab.ask(f"api/sessions/{session['id']}", "DELETE")
