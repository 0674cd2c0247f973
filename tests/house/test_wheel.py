"""The wheel, installed where torch alone stands: what works there, and what the rest says."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tutorial_lib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
UV = [sys.executable, "-m", "uv", "--offline", "--no-config", "--no-progress"]
SENTENCE = re.compile(r'^\w+ is missing: install it with `pip install "transformer-order\[(\w+)\]"`$')
CLONE = re.compile(r"[\w.` -]+ needs a clone of the course: get it with `git clone`, and run `make lab` .*")

IMPORT_EACH = """
import importlib, json, pkgutil, sys, tutorial_lib
said = {}
def walk(path, prefix):
    for module in pkgutil.iter_modules(path, prefix):
        try:
            package = importlib.import_module(module.name)
            said[module.name] = ""
        except Exception as error:
            package = None
            said[module.name] = f"{type(error).__name__}: {error}"
        if module.ispkg:
            walk([f"{path[0]}/{module.name.rpartition('.')[2]}"], module.name + ".")
walk(tutorial_lib.__path__, "tutorial_lib.")
print(json.dumps(said))
"""
# Llama's rotation and the scores of ALiBi, each in one line, beside ours; then both in a model.
RUN = """
import torch
from tutorial_lib.attention import attention
from tutorial_lib.encodings import ALiBi, Rotary
from tutorial_lib.model import Config, Transformer
q, k, v = torch.randn(3, 1, 2, 5, 8, dtype=torch.float64)
positions, past = torch.arange(5), torch.ones(5, 5, dtype=torch.bool).tril()
angles = torch.cat(2 * [positions[:, None] * 10000.0 ** -(torch.arange(0, 8, 2) / 8)], -1).double()
turn = lambda x: x * angles.cos() + torch.cat([-x[..., 4:], x[..., :4]], -1) * angles.sin()
far = (positions - positions[:, None]) * torch.tensor([2.0 ** -4, 2.0 ** -8])[:, None, None]
rope, alibi = turn(q) @ turn(k).mT / 8 ** 0.5, q @ k.mT / 8 ** 0.5 + far
for encoding, scores in ((Rotary(8, layout="half"), rope), (ALiBi(2), alibi)):
    expected = scores.masked_fill(~past, -torch.inf).softmax(-1) @ v
    actual = attention(q, k, v, encoding, causal=True)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)
    logits = Transformer(Config(vocab_size=7, d_model=16, n_heads=2), encoding)(torch.tensor([[1, 2, 3]]))
    assert logits.shape == (1, 3, 7) and logits.isfinite().all()
print("right")
"""


def alone(*names):
    """These distributions and all that they need."""
    found = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += [need.name for need in map(Requirement, metadata.requires(name) or [])
                        if need.marker is None or need.marker.evaluate({"extra": ""})]
    return sorted(found)


def bare(folder, *names):
    """A virtual environment in ``folder`` that sees these distributions of ours; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    library = Path(sysconfig.get_path("purelib"))
    for name in alone(*names):
        for top in {file.parts[0] for file in metadata.files(name)} - {"..", "__pycache__"}:
            if top.endswith(".dist-info"):  # uv follows no link to it
                shutil.copytree(library / top, site / top)
            else:
                (site / top).symlink_to(library / top)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """What `uv build` makes of the files of the course: a source distribution, and of that a wheel."""
    course = tmp_path_factory.mktemp("course")
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("tutorial_lib", "results"):
        shutil.copytree(ROOT / name, course / name, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, course)
    done = subprocess.run([*UV, "build", "--python", sys.executable, "--no-build-isolation"], cwd=course,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = course.glob("dist/*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of an environment with the wheel and torch alone; nothing is downloaded."""
    python = bare(tmp_path_factory.mktemp("bare") / "venv", "torch")
    done = subprocess.run([*UV, "pip", "install", "--python", python, wheel], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return python


def run(python, *command, code=0, stream="stdout"):
    done = subprocess.run([python, "-I", *command], cwd=python.parents[2], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return getattr(done, stream)


def test_it_holds_the_library_and_its_records_each_once(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if not name.startswith("transformer_order-")}
    code = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tutorial_lib").rglob("*")
            if path.is_file() and "__pycache__" not in path.parts}
    records = {f"tutorial_lib/{path.relative_to(ROOT)}" for path in (ROOT / "results").rglob("*.json")}
    assert held == code | records and len(names) == len(set(names))
    assert "tutorial_lib/results/benchmarks/cpu.json" in held and "tutorial_lib/py.typed" in held


def test_it_says_what_it_is_and_asks_for_torch_alone(python):
    program = ("from importlib import metadata as m; import tutorial_lib as t; n = 'transformer-order'; "
               "print(m.version(n) == t.__version__, [r for r in m.requires(n) if 'extra' not in r])")
    assert run(python, "-c", program).split(maxsplit=1) == ["True", str(["torch<3,>=2.6"]) + "\n"]


def test_each_module_can_be_imported_or_names_its_extra_in_one_sentence(python):
    said = json.loads(run(python, "-c", IMPORT_EACH))
    assert len(said) > 80
    fine = {name for name, text in said.items() if not text}
    core = ("attention", "device", "data", "data.corpus", "encodings", "encodings.rotary", "encodings.alibi",
            "extras", "model", "parallel", "properties", "timing")
    assert {f"tutorial_lib.{name}" for name in core} <= fine
    for name in said.keys() - fine:
        kind, _, sentence = said[name].partition(": ")
        assert kind == "ModuleNotFoundError", f"{name}: {said[name]}"
        if name.split(".")[1] in ("course", "setup", "doctor"):
            assert CLONE.fullmatch(sentence), f"{name}: {sentence}"
        else:
            (extra,) = SENTENCE.findall(sentence) or [f"{name}: {sentence}"]
            assert extra in PROJECT["optional-dependencies"]


def test_rope_and_alibi_give_what_their_papers_say(python):
    assert run(python, "-c", RUN) == "right\n"


# ---- with every extra, and no clone ----
OUTSIDE = """
import contextlib, io, pathlib, sys, tutorial_lib
from course import experiments, lesson
from course.experiments.__main__ import main
from tutorial_lib.explorers import ScoreboardExplorer
from classroom import assignments
from tutorial_lib.plots import Picture

package = pathlib.Path(tutorial_lib.__file__).parent
def files():
    return {(path, path.stat().st_mtime_ns) for path in package.rglob("*") if "__pycache__" not in path.parts}
before = files()
assert package.parent.name == "site-packages" and experiments.RESULTS == package / "results"
assert len(experiments.load("order").runs) > 10
ScoreboardExplorer()
lesson.predict("06.tries"), lesson.concept_check("06"), lesson.progress()
for command in (["results"], ["run", "decay", "--preset", "live"]):
    assert main(command) == 2
assert main(["run", "decay", "--preset", "live", "--folder", "mine"]) == 0
assert main(["show", "decay", "--preset", "live", "--folder", "mine"]) == 0 == main(["show", "decay"])
try:
    print(assignments.names())
except FileNotFoundError as error:
    print(f"error: {error}", file=sys.stderr)
assert files() == before, files() - before
"""


@pytest.fixture(scope="module")
def outside(wheel, tmp_path_factory):
    """An environment with the wheel, that sees all else that is installed here."""
    folder = tmp_path_factory.mktemp("outside") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    return folder / "bin" / "python"


def test_what_needs_a_clone_says_so_and_nothing_is_written_into_the_package(outside):
    said = re.findall("^error: (.*)", run(outside, "-c", OUTSIDE, stream="stderr"), re.M)
    assert len(said) == 3 and all(map(CLONE.fullmatch, said)), said


@pytest.mark.parametrize("module", ["course.authoring", "course.slides", "setup.cloud"])
def test_a_command_of_the_course_says_in_one_line_that_it_needs_a_clone(outside, module):
    said = run(outside, "-m", f"tutorial_lib.{module}", code=1, stream="stderr")
    assert said.count("\n") == 1 and f"tutorial_lib.{module.split('.')[0]} needs a clone" in said


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)", text, re.M)[:2] == [tutorial_lib.__version__, "0.1.0"]
