"""Open the course: its working copy, brought up to date, in JupyterLab.

    python -m course.desk                      # the first notebook, or what was open last
    python -m course.desk --front notebook     # the same in Notebook 7
    python -m course.desk again 06             # notebook 06 from the start; yours is kept beside it
    python -m course.desk teach                # the clone itself, with nbgrader's menus
    python -m course.desk --language zh        # the course in Chinese, after `make zh`

All other flags go to Jupyter (``--no-browser --port=9000``).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tutorial_lib.language import ENGLISH

from ..places import ROOT
from . import server, working_copy


def start(line: list[str], folder: Path, environment: dict[str, str]) -> int:
    """Become the server, so that signals reach it; where that cannot be, wait for it."""
    os.chdir(folder)
    if os.name == "nt":
        return subprocess.call(line, env=environment)
    os.execve(line[0], line, environment)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m course.desk", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("open", "again", "teach"), default="open")
    parser.add_argument("notebook", nargs="?", default="", help="for `again`: 06, or ex06")
    parser.add_argument("--mine", type=Path, help="the working copy (default: `mine` in the clone)")
    parser.add_argument("--front", choices=tuple(server.MODULES), default="lab")
    parser.add_argument("--language", default="", help="a language that was built, such as zh")
    given, more = parser.parse_known_args(arguments)
    course = ROOT
    mine = (given.mine or course / "-".join(filter(None, ("mine", given.language)))).resolve()
    if given.language and given.what != "teach":
        course = course / "build" / given.language
        if not (course / "notebooks").is_dir():
            parser.error(f"build/{given.language} is missing; `python -m workshop.translation "
                         f"build {given.language}` makes it")
    if given.what == "again":
        try:
            name, kept = working_copy.again(course, mine, given.notebook)
        except ValueError as problem:
            parser.error(str(problem))
        server.sign(mine)
        print(f"{name} is as the course gives it out." + (f" Yours is now {kept}." if kept else ""))
        return 0
    if given.what == "teach":
        return start(server.teachers(course, tuple(more)), course, dict(os.environ))
    for name in working_copy.renew(course, mine):
        print(f"{name}: you have changed it, and the course has a new version; it lies beside yours, as "
              f"{working_copy.fresh(Path(name)).name}.")
    server.sign(mine)
    server.lay(mine)
    line = server.command(mine, given.front, tuple(more), given.language or ENGLISH)
    return start(line, mine, server.environment())


if __name__ == "__main__":
    sys.exit(main())
