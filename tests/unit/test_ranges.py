"""The ranges of pyproject.toml: the lower end of each is what `make test-oldest` runs."""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [
    Requirement(text)
    for text in sum((EXTRAS[name] for name in EXTRAS if name != "peers"), PROJECT["dependencies"])
    if not text.startswith(PROJECT["name"])
]  # an extra may hold another one


@pytest.mark.parametrize("requirement", DIRECT, ids=str)
def test_what_is_installed_is_inside_its_range(requirement):
    (oldest,) = [Version(part.version) for part in requirement.specifier if part.operator == ">="]
    here = Version(metadata.version(requirement.name))
    assert requirement.specifier.contains(here)
    if Path(sys.prefix).name == ".venv-oldest" and requirement.name != "torch":
        assert here == oldest, "the lower end cannot be had, or not with the others: raise it"
