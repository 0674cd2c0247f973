"""JupyterLab in headless Chromium, driven from Python: for tests, timings and pictures.

    with Lab(folder) as lab:
        page = lab.open("notebooks/00_start_here.ipynb")
        page.run()
        assert not page.problems()

Needs the packages of the ``test`` extra and a Chromium (:func:`chromium` says which it takes).
The browser, the server and the notebooks' progress are separate from your own, and nothing outside this
machine is reached.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import nbformat

# The first has no windows: it shows the same, and needs less of the processor.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SETTINGS = {  # a reader's, without what would disturb us: news, and files written while we look
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none", "kernelShutdown": False},
}
# In the page: the notebook's panel, once it is ready, and what its kernel reports as failed; an error in a
# callback shows up in no output, only on this channel.
WATCH = """window.__watch = async panel => {
    window.__panel = panel;
    await panel.context.ready; await panel.sessionContext.ready; await panel.revealed;
    const failed = window.__failed = [];
    panel.sessionContext.iopubMessage.connect((_, message) => {
        if (message.header.msg_type === 'error')
            failed.push(`${message.content.ename}: ${message.content.evalue}`);
    });
};"""
#: The visible notebook, where a page has several.
SEEN = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
# Messages of the front end itself, about nothing that a reader would miss; the last two are Notebook 7's.
HARMLESS = ("favicon", "ResizeObserver loop", "reading 'schema'", "'filebrowser:open-path' not registered")


@functools.cache
def driver():
    """Playwright's driver, which a process can have once only. It stops when the process ends."""
    from playwright.sync_api import sync_playwright

    started = sync_playwright().start()
    atexit.register(started.stop)
    return started


def chromium() -> str:
    """The path of a Chromium: ``$CHROMIUM``, one on the ``PATH``, or Playwright's own.

    Raises RuntimeError, saying how to get one, when there is none.
    """
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        found = driver().chromium.executable_path
    if not Path(found).exists():
        raise RuntimeError(
            "no Chromium was found: on Debian or Ubuntu run `sudo apt-get install chromium`, elsewhere "
            f"`{Path(sys.executable).name} -m playwright install chromium`, or set CHROMIUM to its path"
        )
    return found


def launch():
    """A new headless Chromium; a context manager that closes it. Raises as :func:`chromium` does."""
    return driver().chromium.launch(executable_path=chromium(), args=FLAGS)


def write(path: Path, sources: list[str]) -> None:
    """A new notebook of these code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def own_folders(scratch: Path) -> dict[str, str]:
    """What a server's environment says so that it leaves a person's own settings alone."""
    names = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
        "JUPYTERLAB_SETTINGS_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
    )
    return {name: str(scratch / name) for name in names}


class Lab:
    """A JupyterLab server for ``folder`` and a browser beside it; a context manager."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 720):
        self.folder, self.size = Path(folder).resolve(), {"width": width, "height": height}

    def __enter__(self) -> Lab:
        self.scratch = Path(tempfile.mkdtemp(prefix="course-lab-"))
        try:
            self._serve()
            self.browser = launch()
            self.context = self.browser.new_context(viewport=self.size)
            self.refused: list[str] = []
            self.context.route("**/*", self._route)
        except BaseException:
            self.__exit__()
            raise
        return self

    def command(self) -> list[str]:
        """The command that starts the server, without its address."""
        return [
            sys.executable,
            "-m",
            "jupyterlab",
            f"--ServerApp.root_dir={self.folder}",
            f"--LabServerApp.app_settings_dir={self.scratch}",
            f"--LabApp.app_settings_dir={self.scratch}",
            "--LabApp.extension_manager=readonly",
        ]

    def _serve(self) -> None:
        """Start the server, and wait until it answers."""
        (self.scratch / "overrides.json").write_text(json.dumps(SETTINGS))
        (self.scratch / "page_config.json").write_text('{"buildCheck": false}')  # nothing is built here
        port, self.progress = free_port(), self.scratch / "progress.json"
        self.url, self.token = f"http://127.0.0.1:{port}", secrets.token_hex(16)
        environment = os.environ | own_folders(self.scratch)
        environment["TUTORIAL_PROGRESS"] = str(self.progress)
        # Notebooks here show progress bars and choose their figures' back end, as they do for a reader.
        for name in ("TQDM_DISABLE", "MPLBACKEND"):
            environment.pop(name, None)
        self.log = self.scratch / "lab.log"
        with open(self.log, "wb") as log:
            self.server = subprocess.Popen(
                [
                    *self.command(),
                    "--no-browser",
                    "--allow-root",
                    f"--port={port}",
                    "--ServerApp.ip=127.0.0.1",
                    "--ServerApp.port_retries=0",
                    f"--IdentityProvider.token={self.token}",
                    "--expose-app-in-browser",
                    "--JupyterNotebookApp.expose_app_in_browser=True",
                ],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + 300
        while time.monotonic() < end and self.server.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/api/status?token={self.token}", timeout=5).close()
                return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError(f"JupyterLab does not answer:\n{self.log.read_text(errors='replace')[-3000:]}")

    def _route(self, route) -> None:
        url = route.request.url
        if url.startswith((self.url, "data:", "blob:")):
            route.continue_()
        else:
            self.refused.append(url)
            route.abort()

    def __exit__(self, *_exception) -> None:
        if hasattr(self, "browser"):
            self.browser.close()
        for how, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.server.pid, how)  # the group of this server, kernels included
                self.server.wait(seconds)
                break
            except (ProcessLookupError, AttributeError):
                break
            except subprocess.TimeoutExpired:
                pass
        shutil.rmtree(self.scratch, ignore_errors=True)

    def open(self, path: str, front: str = "lab", dark: bool = False) -> Notebook:
        """The notebook ``path`` in a page of its own; ``front`` is ``"lab"`` or ``"notebook"``."""
        return Notebook(self, path, front, dark)


class Notebook:
    """One notebook in one page. ``page`` is Playwright's page; close() stops the kernel too."""

    def __init__(self, lab: Lab, path: str, front: str = "lab", dark: bool = False, seconds: float = 300):
        self.lab, self.noticed = lab, []
        self.page = lab.context.new_page()
        self.page.set_default_timeout(90e3)  # other programs may use all cores
        self.page.add_init_script(WATCH)
        self.page.on("pageerror", lambda error: self._notice(f"script: {error}"))
        self.page.on(
            "console", lambda message: message.type == "error" and self._notice(f"console: {message.text}")
        )
        self.already_refused = len(lab.refused)
        place = f"doc/tree/{path}" if front == "lab" else f"notebooks/{path}"
        self.page.goto(
            f"{lab.url}/{place}?token={lab.token}{'&reset' * (front == 'lab')}", wait_until="domcontentloaded"
        )
        self.page.wait_for_function("() => window.jupyterapp?.started", timeout=seconds * 1e3)
        # A kernel that cannot start opens a dialog and never gets ready: say what it says.
        self.page.evaluate(
            """async ms => {
            await jupyterapp.restored;
            const late = new Promise((_, no) => setTimeout(() => no(new Error('no kernel: ' +
                [...document.querySelectorAll('.jp-Dialog')].map(d => d.innerText).join(' | '))), ms));
            const begin = async () => {
                while (!jupyterapp.shell.currentWidget?.sessionContext)
                    await new Promise(wake => setTimeout(wake, 50));
                await __watch(jupyterapp.shell.currentWidget);
            };
            await Promise.race([late, begin()]);
        }""",
            seconds * 1e3,
        )
        self.idle(seconds)
        self.theme(dark)

    def _notice(self, text: str) -> None:
        if not any(words in text for words in HARMLESS):
            self.noticed.append(text)

    def turn(self, path: str, seconds: float = 300) -> None:
        """Go on to the notebook ``path`` in this page, on the same kernel; none of its cells is run."""
        self.noticed.clear()
        self.already_refused = len(self.lab.refused)
        self.page.evaluate(
            """async path => {
            const before = __panel, kernel = before.sessionContext.session.kernel.model;
            await __watch(await jupyterapp.commands.execute('docmanager:open',
                                                            { path, factory: 'Notebook', kernel }));
            window.__first ??= before;  // the widgets' messages come through it
            if (before !== __first) before.dispose();  // a page of many notebooks gets slow
        }""",
            path,
        )
        self.page.locator(f"{SEEN} .jp-Cell").first.wait_for()
        self.idle(seconds)

    def theme(self, dark: bool) -> None:
        """JupyterLab's dark or light theme."""
        self.page.evaluate(
            """async name => {
            if (document.body.dataset.jpThemeName !== name)
                await jupyterapp.commands.execute('apputils:change-theme', { theme: name });
        }""",
            f"JupyterLab {'Dark' if dark else 'Light'}",
        )
        self.page.wait_for_function("dark => document.body.dataset.jpThemeLight === String(!dark)", arg=dark)

    def idle(self, seconds: float = 300) -> None:
        """Wait until the kernel has nothing to do."""
        self.page.wait_for_function(
            "() => __panel.sessionContext.session?.kernel?.status === 'idle'",
            timeout=seconds * 1e3,
            polling=50,
        )

    def run(self, seconds: float = 300) -> float:
        """Run all cells, up to the first that fails; returns the seconds."""
        start = time.perf_counter()
        self.begin()
        self.finish(seconds)
        return time.perf_counter() - start

    def begin(self) -> None:
        """Begin to run all cells."""
        self.page.evaluate("() => { window.__run = jupyterapp.commands.execute('notebook:run-all-cells'); }")

    def finish(self, seconds: float = 300) -> None:
        """Wait for what :meth:`begin` began."""
        self.page.evaluate(
            """async ms => {
            const late = new Promise((_, no) => setTimeout(() => no(new Error('it runs too long')), ms));
            await Promise.race([window.__run, late]);
        }""",
            seconds * 1e3,
        )
        self.idle(seconds)

    def run_cell(self, number: int, seconds: float = 300) -> None:
        """Run the cell ``number`` (from 0) alone."""
        self.page.evaluate(
            """n => {
            __panel.content.activeCellIndex = n;
            window.__run = jupyterapp.commands.execute('notebook:run-cell'); }""",
            number,
        )
        self.finish(seconds)

    def cells(self) -> list[dict]:
        """The notebook's cells as they are now, outputs included."""
        return self.page.evaluate("() => __panel.content.model.toJSON().cells")

    def problems(self) -> list[str]:
        """All that went wrong so far: in cells, in callbacks, in widgets, in the page, on the net."""
        found = []
        for n, cell in enumerate(self.cells()):
            if cell["cell_type"] == "code" and cell["source"] and not cell["execution_count"]:
                found.append(f"cell {n} did not run")
            for output in cell.get("outputs", []):
                if output["output_type"] == "error":
                    found.append(f"cell {n}: {output['ename']}: {output['evalue']}")
                if output.get("name") == "stderr":
                    found.append(f"cell {n}, stderr: {''.join(output['text'])}")
        found += [f"kernel: {text}" for text in self.page.evaluate("() => window.__failed")]
        for what in (".jupyter-widgets-error-widget", ".jupyter-widgets-disconnected"):
            found += [
                f"widget: {text[:300]}" for text in self.page.locator(f"{SEEN} :is({what})").all_inner_texts()
            ]
        return found + self.noticed + [f"refused: {url}" for url in self.lab.refused[self.already_refused :]]

    def cell(self, number: int):
        """The cell ``number`` (from 0) as a locator."""
        return self.page.locator(f"{SEEN} .jp-Cell").nth(number)

    def close(self) -> None:
        """Stop the kernel and close the page."""
        self.page.evaluate("async () => { await __panel.sessionContext.shutdown(); }")
        self.page.close()
