"""The Jupyter server of the desk: settings of its own, and nothing written into the learner's folders."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tutorial_lib.language import ENGLISH, territory

from .working_copy import FIRST, STATE, fingerprint, given_out, put

HERE = Path(__file__).parent
NBGRADER = ("assignment_list", "course_list", "formgrader", "validate_assignment")
MODULES = {"lab": "jupyterlab", "notebook": "notebook"}
APPS = {"lab": "LabApp", "notebook": "JupyterNotebookApp"}
PACKS = "jupyterlab.languagepack"
"""What packages with a translation of JupyterLab register themselves as."""
IDLE = 2 * 60 * 60  # seconds after which a kernel that nobody looks at is stopped


def sign(mine: Path) -> None:
    """Trust the notebooks as they were given out, in a store of signatures of this desk alone."""
    import nbformat
    from nbformat.sign import NotebookNotary

    notary = NotebookNotary(data_dir=str(mine / STATE))
    for name, given in given_out(mine).items():
        path = mine / name
        content = path.read_bytes() if path.suffix == ".ipynb" and path.is_file() else b""
        if fingerprint(content) == given["mine"]:
            notary.sign(nbformat.reads(content.decode(), as_version=4))


def lay(mine: Path) -> None:
    """On the first start: notebook 00 in the middle, and its contents at the left, wide enough for its lines.

    Later the desk is as the learner left it.
    """
    folder = mine / STATE / "workspaces"
    from jupyterlab_server.workspaces_handler import WORKSPACE_EXTENSION, slugify

    if any(path.stat().st_size for path in folder.glob(f"*{WORKSPACE_EXTENSION}")):
        return
    panel = f"notebook:{FIRST}"
    path = folder / (slugify("default") + WORKSPACE_EXTENSION)
    put(
        path,
        json.dumps(
            {
                "metadata": {"id": "default"},
                "data": {
                    "layout-restorer:data": {
                        "main": {
                            "dock": {"type": "tab-area", "currentIndex": 0, "widgets": [panel]},
                            "current": panel,
                        },
                        "down": {"size": 0, "widgets": []},
                        "left": {
                            "collapsed": False,
                            "visible": True,
                            "current": "table-of-contents",
                            "widgets": ["filebrowser", "jp-running-sessions", "table-of-contents"],
                        },
                        "right": {"collapsed": True, "visible": False, "widgets": []},
                        "relativeSizes": [0.24, 0.76, 0],
                    },
                    panel: {"data": {"path": FIRST, "factory": "Notebook"}},
                },
            }
        ).encode(),
    )


def menus(language: str) -> str:
    """The installed translation of JupyterLab's own menus for a language, as ``"zh_CN"``; ``""`` for none."""
    if language == ENGLISH:
        return ""
    own, there = territory(language), sorted(pack.name for pack in entry_points(group=PACKS))
    return next(
        (name for name in (own, *there) if name in there and name.split("_")[0] == own.split("_")[0]), ""
    )


def settings(mine: Path, language: str = ENGLISH) -> Path:
    """The folder of the desk's settings; those of another language are in the working copy's own state."""
    if not (locale := menus(language)):
        return HERE / "settings"
    folder = mine / STATE / "menus"
    ours = json.loads((HERE / "settings" / "overrides.json").read_text(encoding="utf-8"))
    ours["@jupyterlab/translation-extension:plugin"] = {"locale": locale}
    put(folder / "overrides.json", json.dumps(ours, indent=2).encode())
    return folder


def command(
    mine: Path,
    front: str = "lab",
    more: tuple[str, ...] = (),
    language: str = ENGLISH,
    opened: str = "",
) -> list[str]:
    """The command that starts the desk in JupyterLab (``lab``) or in Notebook 7 (``notebook``).

    It opens as it was left, or with the notebook ``opened``.
    """
    app, state, ours = APPS[front], mine / STATE, settings(mine, language)
    loaded = {f"nbgrader.server_extensions.{name}": False for name in NBGRADER} | {"course.lab.desk": True}
    address = {
        "lab": f"/lab/tree/{opened}" if opened else "/lab",
        "notebook": f"/notebooks/{opened or FIRST}",
    }
    return [
        sys.executable,
        "-m",
        MODULES[front],
        f"--ServerApp.root_dir={mine}",
        f"--ServerApp.jpserver_extensions={loaded}",
        f"--{app}.default_url={address[front]}",
        f"--NotebookNotary.data_dir={state}",
        "--ServerApp.log_level=WARN",  # what we say at the start can be read
        f"--{app}.log_level=WARN",
        f"--MappingKernelManager.cull_idle_timeout={IDLE}",
        f"--LabServerApp.app_settings_dir={ours}",
        f"--{app}.app_settings_dir={ours}",
        f"--{app}.user_settings_dir={state / 'settings'}",
        f"--{app}.workspaces_dir={state / 'workspaces'}",
        *more,
    ]


def teachers(course: Path, more: tuple[str, ...] = ()) -> list[str]:
    """The command that opens the clone itself, with nbgrader's tools."""
    ours = settings(course)
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={course}",
        f"--LabServerApp.app_settings_dir={ours}",
        f"--LabApp.app_settings_dir={ours}",
        *more,
    ]


def environment() -> dict[str, str]:
    """The environment of the desk's server. Notebook 7 finds the list of what is switched off, and our
    extension, only by these two paths; JupyterLab finds them there, too.

    PyTorch's threads wait for each other by going round in a loop, 300,000 times before they sleep. Where
    something else takes a core, a second notebook for one, they so keep it from the thread they wait for,
    and a training takes 3 to 30 times as long. At 10,000 an idle machine is as fast as before.
    """
    added = {"JUPYTER_CONFIG_PATH": HERE / "config", "JUPYTER_PATH": HERE / "data"}
    paths = {
        name: os.pathsep.join(filter(None, [str(folder), os.environ.get(name)]))
        for name, folder in added.items()
    }
    return {"GOMP_SPINCOUNT": "10000"} | os.environ | paths
