"""The linter has nothing to say of code and notebooks, and mypy nothing of the library's types."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = "tutorial_lib", "course", "classroom", "workshop", "tests"


@pytest.mark.parametrize("command", [("check", "--output-format=concise"), ("format", "--check")])
def test_ruff_is_content(command):
    line = [sys.executable, "-m", "ruff", *command, "--no-cache"]
    result = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_where_the_underscore_translates_it_is_not_thrown_away_as_well():
    found, read = [], 0
    for path in (each for room in ROOMS for each in (ROOT / room).rglob("*.py")):
        if re.search(r"language import .*\b_\b", source := path.read_text(encoding="utf-8")):
            read += 1
            found += [
                f"{path}:{node.lineno}"
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.Name)
                and node.id == "_"
                and isinstance(node.ctx, ast.Store)
                or isinstance(node, ast.arg)
                and node.arg == "_"
            ]
    assert read > 50 and not found


def mypy(*arguments):
    command = [sys.executable, "-m", "mypy", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_mypy_is_content():
    code, said = mypy()
    assert code == 0, said


def test_mypy_knows_the_names_of_the_package_where_it_is_used(tmp_path):
    """They are given lazily; a user's type checker sees what they are. A strict one, too: our own settings
    are as strict about names that a module passes on."""
    user = tmp_path / "user.py"
    user.write_text(
        """
import tutorial_lib
from tutorial_lib import ALiBi, Cache, Rotary, Transformer
reveal_type(Rotary(8, layout="half"))
reveal_type(tutorial_lib.ALiBi(8))
reveal_type(Cache().copy())
Rotary("8")
""",
        encoding="utf-8",
    )
    code, said = mypy(str(user))
    seen = re.findall(r'Revealed type is "(?:[\w.]+\.)?(\w+)"', said)
    assert seen == ["Rotary", "ALiBi", "Cache"] and code == 1
    assert said.count(" error: ") == 1 and 'Argument 1 to "Rotary" has incompatible type "str"' in said, said


def test_ruff_looks_at_every_file_of_ours():
    """A pattern without a slash leaves out every folder of that name."""
    line = [sys.executable, "-m", "ruff", "check", "--show-files", "--no-cache"]
    seen = {
        Path(each) for each in subprocess.run(line, cwd=ROOT, capture_output=True, text=True).stdout.split()
    }
    ours = {path for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    assert len(ours) > 300 and ours <= seen, ours - seen


# ---- commands ----

# These are no commands: a process that the course starts talks to them.
TALKS = {"course.checks.__main__", "classroom.runner", "classroom.hub.start"}
HELP = """
import contextlib, io, json, runpy, sys
for name in sys.argv[1:]:
    sys.argv, said = [name, "--help"], io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_module(name, run_name="__main__")
    except SystemExit as end:
        if not end.code and said.getvalue().startswith("usage: "):
            continue
    except Exception as error:
        said.write(repr(error))
    print(f"{name}: {said.getvalue()[:200]!r}")
"""


def test_a_command_that_is_asked_for_help_does_nothing_else(tmp_path):
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for room in ROOMS[:-1]
        for path in (ROOT / room).rglob("*.py")
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8") or path.name == "__main__.py"
    }
    assert names > TALKS and len(names - TALKS) > 15
    line = [sys.executable, "-c", HELP, *sorted(names - TALKS)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert not done.stdout and not done.returncode, done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
