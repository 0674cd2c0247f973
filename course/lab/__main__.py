"""Open the course: its working copy, brought up to date, in JupyterLab.

    python -m course.lab                      # the first notebook, or what was open last
    python -m course.lab --front notebook     # the same in Notebook 7
    python -m course.lab open 06              # notebook 06
    python -m course.lab again 06             # notebook 06 from the start; yours is kept beside it
    python -m course.lab teach                # the clone itself, with nbgrader's menus
    python -m course.lab --language zh        # the course in Chinese, after `make zh`

All other flags go to Jupyter (``--no-browser --port=9000``).
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from tutorial_lib.language import ENGLISH

from ..places import ROOT
from . import server, working_copy


def start(line: list[str], folder: Path, environment: dict[str, str]) -> int:
    """Become the server, so that signals reach it; where that is impossible, wait for it."""
    os.chdir(folder)
    if os.name == "nt":
        return subprocess.call(line, env=environment)
    os.execve(line[0], line, environment)


def trouble(problem: OSError | sqlite3.Error, mine: Path) -> str:
    """What keeps the desk from writing, in a sentence that says what to do."""
    where = getattr(problem, "filename", None) or mine
    what = getattr(problem, "strerror", None) or problem
    if getattr(problem, "errno", 0) in (errno.EROFS, errno.EACCES, errno.EPERM):
        return (
            f"{where} cannot be written ({what}): keep your working copy in a folder of your own, with "
            '`make lab LAB_FLAGS="--mine ~/my-course"`, or, without make, `python -m course.lab '
            "--mine ~/my-course`."
        )
    return (
        f"{where} could not be written ({what}): once that is mended, start again; nothing of yours is "
        "lost, and the desk goes on from there."
    )


def greeting(mine: Path) -> str:
    """What the start does, in two lines."""
    return (
        f"Your working copy is {mine}: write in it as you like, updates leave what you changed alone.\n"
        "JupyterLab opens it in your browser, at the place where you were; Ctrl-C twice here ends it."
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course.lab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("open", "again", "teach"), default="open")
    parser.add_argument("notebook", nargs="?", default="", help="for `open` and `again`: 06, or ex06")
    parser.add_argument("--mine", type=Path, help="the working copy (default: `mine` in the clone)")
    parser.add_argument("--front", choices=tuple(server.MODULES), default="lab")
    parser.add_argument("--language", default="", help="a language that was built, such as zh")
    given, more = parser.parse_known_args(arguments)
    course = ROOT
    mine = (given.mine or ROOT / "-".join(filter(None, ("mine", given.language)))).expanduser().resolve()
    if given.what == "teach":
        return start(server.teachers(course, tuple(more)), course, dict(os.environ))
    if given.language:
        course = course / "build" / given.language
        if not (course / "notebooks").is_dir():
            parser.error(
                f"build/{given.language} is missing; `python -m workshop.translation "
                f"build {given.language}` makes it"
            )
    if working_copy.inside(mine, ROOT) or working_copy.inside(mine, course):
        parser.error(
            f"--mine {mine}: that is the course itself, which stays as it was given out; name "
            "another folder, such as --mine ~/my-course"
        )
    try:
        if given.what == "again":
            name, kept = working_copy.again(course, mine, given.notebook)
            server.sign(mine)
            print(f"{name} is as the course gives it out." + (f" Yours is now {kept}." if kept else ""))
            return 0
        for name, beside in working_copy.renew(course, mine).items():
            print(
                f"{name}: you have changed it, and the course has a new version; it lies beside yours, as "
                f"{Path(beside).name}.",
                flush=True,
            )
        server.sign(mine)
        server.lay(mine)
        opened = working_copy.meant(course, given.notebook) if given.notebook else ""
        print(greeting(mine), flush=True)
        line = server.command(mine, given.front, tuple(more), given.language or ENGLISH, opened)
    except ValueError as problem:
        parser.error(str(problem))
    except (OSError, sqlite3.Error) as problem:
        print(trouble(problem, mine), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. Nothing of yours is lost, and the next start goes on from here.", file=sys.stderr)
        return 128 + signal.SIGINT
    return start(line, mine, server.environment())


if __name__ == "__main__":
    sys.exit(main())
