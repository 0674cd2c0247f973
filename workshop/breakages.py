"""Can the tests fail? ``python -m workshop.breakages`` breaks one line at a time, and looks.

``tests/breakages.toml`` lists the breakages: a ``file``, the ``old`` text in it, the ``new`` one, and the
``tests`` that must notice. Each is made in a copy of the course, never in the course itself; the command
prints the test that turned red, and ends with 1 if there is a breakage that none noticed.

    python -m workshop.breakages            # all of them
    python -m workshop.breakages rotary     # those whose file, texts or tests hold that word
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from . import ROOT

LIST = ROOT / "tests" / "breakages.toml"
SECONDS = 600  # for the tests of one breakage: one that loops for ever is noticed, too
PASSED = 0  # what pytest exits with
LEFT_OUT = (".git", ".venv*", "build", "*.egg-info", "__pycache__", ".*_cache", ".ipynb_checkpoints")


class Breakage(NamedTuple):
    """One line that is made wrong, and the tests (files, or names of tests) that have to turn red."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {self.old.strip()}  →  {self.new.strip()}"


def breakages(path: Path = LIST) -> list[Breakage]:
    """The list as it is committed."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["breakage"]
    return [Breakage(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def problem(breakage: Breakage, root: Path = ROOT) -> str:
    """What keeps a breakage from being made, in a sentence, or ``""``."""
    found = (root / breakage.file).read_text(encoding="utf-8").count(breakage.old)
    if found != 1:
        return f"{breakage}: the old text stands {found} times in the file; it has to stand there once"
    if breakage.old == breakage.new:
        return f"{breakage}: this changes nothing"
    missing = [test for test in breakage.tests if not (root / test.split("::")[0]).exists()]
    return f"{breakage}: there is no {missing[0]}" if missing else ""


def copy(root: Path, target: Path) -> Path:
    """The course as it is now, without what can be rebuilt; returns ``target``."""
    return shutil.copytree(root, target, ignore=shutil.ignore_patterns(*LEFT_OUT))


def noticed(breakage: Breakage, course: Path) -> str:
    """The name of the first test that turns red in ``course``, a copy; ``""`` if none does.

    Raises RuntimeError where the tests can't be run at all.
    """
    file = course / breakage.file
    whole = file.read_text(encoding="utf-8")
    own = {"PYTHONPATH": str(course), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "CI": "true"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n0", *breakage.tests]
    file.write_text(whole.replace(breakage.old, breakage.new), encoding="utf-8")
    try:
        done = subprocess.run(
            command,
            cwd=course,
            capture_output=True,
            text=True,
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"{', '.join(breakage.tests)}: not done in {SECONDS} s"
    finally:
        file.write_text(whole, encoding="utf-8")
    if done.returncode == PASSED:
        return ""
    if names := re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE):
        return names[0]
    raise RuntimeError(f"{breakage}\npytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def run(chosen: Sequence[Breakage], root: Path = ROOT, jobs: int = 2) -> list[Breakage]:
    """Try each breakage, ``jobs`` at a time, print a line for each, and return those that none noticed."""
    for wrong in filter(None, (problem(one, root) for one in chosen)):
        raise ValueError(wrong)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs) as pool:
        free = [copy(root, Path(scratch, str(n))) for n in range(jobs)]

        def one(breakage: Breakage) -> str:
            course = free.pop()  # as many copies as jobs, so there is always one
            try:
                return noticed(breakage, course)
            finally:
                free.append(course)

        unseen = []
        for breakage, red in zip(chosen, pool.map(one, chosen), strict=True):
            print(f"{'red ' if red else 'GREEN'} {breakage}\n      {red or 'no test noticed'}", flush=True)
            unseen += [] if red else [breakage]
    return unseen


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.breakages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", help="only breakages that hold all of these words")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    given = parser.parse_args(argv)
    chosen = [one for one in breakages() if all(word in "\n".join(map(str, one)) for word in given.words)]
    if not chosen:
        parser.error(f"no breakage holds {' and '.join(map(repr, given.words))}")
    unseen = run(chosen, jobs=given.jobs)
    print(f"{len(chosen) - len(unseen)} of {len(chosen)} breakages turn a test red")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
