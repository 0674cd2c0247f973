"""The wheel: the library alone, installed where torch alone stands, and what has moved out of it."""

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
            waiting += [
                need.name
                for need in map(Requirement, metadata.requires(name) or [])
                if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
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
    for name in ("tutorial_lib", "course", "classroom", "workshop", "results"):
        shutil.copytree(ROOT / name, course / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, course)
    done = subprocess.run(
        [*UV, "build", "--python", sys.executable, "--no-build-isolation"],
        cwd=course,
        capture_output=True,
        text=True,
    )
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


HELD = re.compile(
    r"""tutorial_lib/(?:
    (?:(?:conformance|data|encodings|explorers)/)?[a-z0-9_]+[.]py     # code
    |explorers/live/(?:__init__[.]py|[a-z]+[.](?:js|css))             # the browser's half of the explorers
    |data/released[.]json|explorers/(?:positions|measured)[.]json     # numbers that are shown
    |conformance/golden/golden[.](?:json|safetensors)                 # the golden vectors
    |configs[.]json                                                   # what no config.json says
    |course[.]mplstyle|fonts/OpenSans-course[.]ttf|py[.]typed)""",
    re.X,
)


def test_it_holds_the_library_alone_and_is_light(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if not name.startswith("transformer_order-")}
    code = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tutorial_lib").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == code and len(names) == len(set(names))
    assert not [name for name in held if not HELD.fullmatch(name)]
    assert wheel.stat().st_size < 1e6, "a library, and no course"
    (top,) = [name for name in names if name.endswith("top_level.txt")]
    assert zipfile.ZipFile(wheel).read(top) == b"tutorial_lib\n"
    (points,) = [name for name in names if name.endswith("entry_points.txt")]
    command = b"[console_scripts]\nposition-check = tutorial_lib.conformance.__main__:main\n\n"
    plugin = b"[pytest11]\nconformance = tutorial_lib.pytest_conformance\n"
    assert zipfile.ZipFile(wheel).read(points) == command + plugin


def test_it_says_what_it_is_and_asks_for_torch_alone(python):
    program = (
        "from importlib import metadata as m; import tutorial_lib as t; n = 'transformer-order'; "
        "print(m.version(n) == t.__version__, [r for r in m.requires(n) if 'extra' not in r])"
    )
    assert run(python, "-c", program).split(maxsplit=1) == ["True", str(["torch<3,>=2.6"]) + "\n"]


def test_each_module_can_be_imported_or_names_its_extra_in_one_sentence(python):
    said = json.loads(run(python, "-c", IMPORT_EACH))
    assert len(said) > 60
    fine = {name for name, text in said.items() if not text}
    core = (
        "attention",
        "device",
        "data",
        "data.corpus",
        "encodings",
        "encodings.rotary",
        "encodings.alibi",
        "model",
        "optional",
        "parallel",
        "properties",
    )
    assert {f"tutorial_lib.{name}" for name in core} <= fine
    for name in said.keys() - fine:
        kind, _, sentence = said[name].partition(": ")
        assert kind == "ModuleNotFoundError", f"{name}: {said[name]}"
        (extra,) = SENTENCE.findall(sentence) or [f"{name}: {sentence}"]
        assert extra in PROJECT["optional-dependencies"]


def test_rope_and_alibi_give_what_their_papers_say(python):
    assert run(python, "-c", RUN) == "right\n"


# ---- what has moved ----
OLD = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from tutorial_lib import checks as check, lesson, plots
    from tutorial_lib.experiments.lengths import rise
    from tutorial_lib.grading import assignments
    import tutorial_lib.lesson.votes
    from course import endings, experiments
    from course.experiments import gap
    from tutorial_lib.experiments import why
    from tutorial_lib.extras import needs
    from tutorial_lib.explorers import formula
    assert len(formula.W_R) == 7  # lesson 05 reads it
    assert experiments.load("gap").experiment == experiments.load("position_gap").experiment
import course.real_models, course.experiments.position_gap, course.experiments.why_rope, tutorial_lib.optional
assert (endings, gap) == (course.real_models, course.experiments.position_gap)
assert (why, needs) == (course.experiments.why_rope, tutorial_lib.optional.needs)
import classroom.assignments, course.checks, course.experiments.lengths, course.lesson.votes
assert (check, lesson, rise) == (course.checks, course.lesson, course.experiments.lengths.rise)
assert tutorial_lib.lesson.votes is course.lesson.votes and assignments is classroom.assignments
assert course.lesson.__spec__.name == "course.lesson"
print(*[str(each.message).partition(" ")[0] for each in said if each.category is FutureWarning])
"""


def test_a_notebook_of_version_0_2_imports_what_it_did():
    """A learner's own copy keeps its cells; each old name says the new one, once."""
    done = subprocess.run([sys.executable, "-c", OLD], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    named = {
        "tutorial_lib.checks",
        "tutorial_lib.lesson",
        "tutorial_lib.experiments",
        "course.endings",
        "course.experiments.gap",
        "course.experiments.why",
        "tutorial_lib.extras",
    }
    assert named <= set(done.stdout.split())


def test_without_the_course_an_old_name_says_what_it_needs(python):
    said = run(python, "-c", "from tutorial_lib import lesson", code=1, stream="stderr")
    assert said.splitlines()[-1] == (
        "ModuleNotFoundError: tutorial_lib.lesson has moved to course.lesson, which needs a clone of the "
        "course: get it with `git clone`, and run `make lab` in its folder"
    )


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)", text, re.M)[:2] == [tutorial_lib.__version__, "0.2.1"]
