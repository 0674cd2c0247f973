"""Keep what a machine already has: `python -m course.setup.cloud`, before the lock is installed on it.

A hosted machine such as Google Colab's brings torch, and runs on packages that must not change under it.
This writes their versions into requirements.lock, unless pyproject.toml does not allow them; what is
missing stays as it was locked. docs/cloud.md says how it is used.
"""

import argparse
import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from . import environment

ROOT = Path(environment.ROOT)


def ranges() -> dict[str, SpecifierSet]:
    """``{package: versions that the lessons may run with}``, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + extras["experiments"] + extras["course"] + extras["models"]
    return {requirement.name: requirement.specifier for requirement in map(Requirement, needed)}


def kept(lock: str, installed: dict[str, str]) -> str:
    """The text of the lock with the pins of ``installed`` (``{package: version}``) where they are allowed."""
    allowed = ranges()

    def pin(match: re.Match) -> str:
        name, locked = match.groups()
        here = installed.get(name, locked).split("+")[0]  # 2.9.0+cu126 is a build of 2.9.0
        return f"{name}=={here if here in allowed.get(name, SpecifierSet()) else locked}"

    return re.sub(r"^([a-z0-9-]+)==([\w.]+)", pin, lock, flags=re.MULTILINE)


def main() -> None:
    here: dict[str, str] = {}
    for package in metadata.distributions():  # of two, the first is the one that is imported
        here.setdefault(canonicalize_name(package.name), package.version)
    path = ROOT / environment.LOCK
    before = path.read_text(encoding="utf-8")
    after = kept(before, here)
    path.write_text(after, encoding="utf-8")
    changed = set(after.splitlines()) - set(before.splitlines())
    print(f"{len(changed)} packages stay as they are here:", *sorted(line.split()[0] for line in changed))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
