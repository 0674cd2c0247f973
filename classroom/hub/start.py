"""Bring somebody's copy of the course up to date, then become their server.

Runs as that student or teacher, in place of ``jupyterhub-singleuser``: a hub that runs as root and writes
into homes would follow the links that it finds there. The copy is that of ``make lab``: what its owner has
changed stays, and a newer version is placed beside it.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from classroom.assignments import COURSE  # noqa: E402
from course.lab import server, working_copy  # noqa: E402
from tutorial_lib.language import ENGLISH  # noqa: E402

IDLE = {
    "--MappingKernelManager.cull_idle_timeout": 30 * 60,  # seconds
    "--ServerApp.shutdown_no_activity_timeout": 60 * 60,
}
# Not as a login shell, which is the default here: that one begins with the PATH of /etc/profile.
TERMINAL = {"--ServerApp.terminado_settings": {"shell_command": [os.environ.get("SHELL", "/bin/bash")]}}


def student(mine: Path, language: str = "") -> tuple[dict, list[Path], Path]:
    """The flags of a student's server, its settings folders (the first takes precedence), and where it runs.

    It is the JupyterLab of ``make lab``, with nbgrader's list of assignments.
    """
    flags = dict(flag.split("=", 1) for flag in server.command(mine, language=language or ENGLISH)[3:])
    extensions = {f"nbgrader.server_extensions.{name}": name == "assignment_list" for name in server.NBGRADER}
    flags["--ServerApp.jpserver_extensions"] = extensions
    return flags | IDLE | TERMINAL, [HERE / "students", HERE / "config", server.HERE / "config"], mine


def teacher(home: Path) -> tuple[dict, list[Path], Path]:
    """The same for a teacher, whose server sees the whole home, with formgrader for its class folder."""
    folder = home / "class"
    if not (folder / "nbgrader_config.py").exists():
        from classroom import gradebook

        gradebook.prepare(folder, {})  # formgrader reads its settings once, and is safe only with them
    flags = dict(flag.split("=", 1) for flag in server.teachers(home)[3:])
    return flags | IDLE | TERMINAL, [HERE / "config"], folder


def main():
    mine, language = Path.home() / COURSE, os.environ.get("HUB_LANGUAGE", "")
    course = ROOT / "build" / language if language else ROOT
    for name in working_copy.renew(course, mine):
        print(f"{name} was changed by both; the new version lies beside theirs", flush=True)
    server.sign(mine)
    server.lay(mine)
    teaches = os.environ["JUPYTERHUB_USER"] in os.environ.get("HUB_TEACHERS", "").split()
    flags, settings, folder = teacher(Path.home()) if teaches else student(mine, language)
    os.chdir(folder)
    line = [sys.executable, "-m", "jupyterhub.singleuser"]
    line += [f"{name}={value}" for name, value in flags.items()] + sys.argv[1:]
    paths = {
        "JUPYTER_CONFIG_PATH": os.pathsep.join(map(str, settings)),
        "JUPYTER_PATH": server.environment()["JUPYTER_PATH"],
    }
    os.execve(line[0], line, os.environ | paths)


if __name__ == "__main__":
    main()
