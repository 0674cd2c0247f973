"""The linter has nothing to say of code and notebooks, and mypy nothing of the library's types."""

import ast
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
