"""A release of the course: ``make release`` packs it from a clean clone, into ``build/release``.

    python -m workshop.release                    # everything; a few minutes
    python -m workshop.release --only zip,changes,sums

- ``wheel``: the library with its records;
- ``zip``: what a learner works in, notebooks, exercises and pages, to be opened beside an installed wheel;
- ``site``: the web site, for students: without answers and the guide for teachers;
- ``slides``: the decks;
- ``changes``: what the changelog says of this version;
- ``sums``: ``SHA256SUMS`` of all these, for ``sha256sum --check``.

The clone is made of the last commit, so nothing gets in that is not part of the course. Archives are the same
from run to run: their files are sorted, and have the date of the commit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path

from course.lab.working_copy import served

from . import ROOT

NAME = "transformer-order"
OUT = ROOT / "build" / "release"
PARTS = ("wheel", "zip", "site", "slides", "changes", "sums")


def run(*command: str | Path, at: Path, **environment: str) -> str:
    """What a command prints. RuntimeError, with the end of its errors, if it fails."""
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip()


def clone(source: Path, folder: Path) -> Path:
    """A clean clone of the last commit of ``source``."""
    run("git", "clone", "--quiet", "--depth", "1", source.resolve().as_uri(), folder, at=source)
    return folder


def version(course: Path) -> str:
    text = (course / "tutorial_lib" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.M)[1]  # type: ignore[index]


def entry(changelog: str, version: str) -> str:
    """What the changelog says of a version. ValueError if it says nothing.

    >>> entry("# Changelog\\n\\n## 0.2\\n\\nNew.\\n\\n## 0.1\\n\\nFirst.\\n", "0.1")
    '## 0.1\\n\\nFirst.\\n'
    """
    found = re.search(rf"^## {re.escape(version)}\b.*?(?=^## |\Z)", changelog, re.M | re.S)
    if found is None or not found[0].partition("\n")[2].strip():
        raise ValueError(f"CHANGELOG.md says nothing of {version}: write what changed first")
    return found[0].rstrip() + "\n"


def pack(archive: Path, course: Path, folder: Path, names: Iterable[Path]) -> Path:
    """A zip of files of ``folder``, below a folder with the archive's name."""
    seconds = int(run("git", "log", "-1", "--format=%ct", at=course))
    date = time.gmtime(max(seconds, 315_532_800))[:6]  # a zip knows no year before 1980
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(names):
            info = zipfile.ZipInfo(f"{archive.stem}/{name.as_posix()}", date)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(info, (folder / name).read_bytes())
    return archive


def inside(folder: Path) -> list[Path]:
    """All files of a folder, as paths inside it."""
    return [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]


def sums(folder: Path) -> str:
    """The lines of ``SHA256SUMS`` for the files of a folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def wheel(course: Path, out: Path, _stem: str) -> None:
    run(
        sys.executable,
        "-m",
        "uv",
        "build",
        "--wheel",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        out,
        at=course,
    )
    (out / ".gitignore").unlink(missing_ok=True)


def zipped(course: Path, out: Path, stem: str) -> None:
    pack(out / f"{stem}-course.zip", course, course, served(course))


def site(course: Path, out: Path, stem: str) -> None:
    run(
        "make",
        "-o",
        "setup",
        "site",
        f"BIN={sys.executable}",
        "STUDENTS=1",
        at=course,
        STUDENTS="1",
        PYTHONPATH=str(course),
    )
    pack(out / f"{stem}-site.zip", course, course / "build" / "site", inside(course / "build" / "site"))


def slides(course: Path, out: Path, stem: str) -> None:
    folder = course / "build" / "slides"
    run(sys.executable, "-m", "workshop.slides", "--folder", folder, at=course, PYTHONPATH=str(course))
    pack(out / f"{stem}-slides.zip", course, folder, inside(folder))


def changes(course: Path, out: Path, stem: str) -> None:
    text = (course / "CHANGELOG.md").read_text(encoding="utf-8")
    (out / f"{stem}-changes.md").write_text(entry(text, version(course)), encoding="utf-8")


def summed(_course: Path, out: Path, _stem: str) -> None:
    (out / "SHA256SUMS").write_text(sums(out), encoding="utf-8")


MAKE = dict(zip(PARTS, (wheel, zipped, site, slides, changes, summed), strict=True))


def release(source: Path, out: Path, parts: Iterable[str] = PARTS) -> Path:
    """Pack these parts of the last commit of ``source`` into a folder of its version in ``out``."""
    with tempfile.TemporaryDirectory() as scratch:
        course = clone(source, Path(scratch) / "course")
        folder = out.resolve() / version(course)  # commands run in the clone
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:  # the sums come last
            if part in parts:
                MAKE[part](course, folder, f"{NAME}-{version(course)}")
    return folder


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    parser.add_argument("--source", type=Path, default=ROOT, help="the clone that is released")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    parts = given.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    try:
        if run("git", "status", "--porcelain", at=given.source):
            print("Some changes are not committed: they are not in the release.", file=sys.stderr)
        folder = release(given.source, given.out, parts)
    except (RuntimeError, ValueError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
