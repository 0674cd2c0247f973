"""Four rooms, and imports that point one way: library, course, classroom; the workshop sees all three."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEES = {
    "tutorial_lib": {"tutorial_lib"},
    "course": {"tutorial_lib", "course"},
    "classroom": {"tutorial_lib", "course", "classroom"},
    "workshop": {"tutorial_lib", "course", "classroom", "workshop"},
}
ENCODINGS = ROOT / "tutorial_lib" / "encodings"


def imported(path, root=ROOT):
    """The full name of everything that a file imports anywhere in it, also inside of a function."""
    package = path.relative_to(root).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = node.args[0]
            if isinstance(named, ast.Constant) and not str(named.value).startswith("."):
                yield named.value


def up(room, root=ROOT):
    """The imports of a room that reach into one that it must not see."""
    return [
        f"{path.relative_to(root)}: {name}"
        for path in sorted((root / room).rglob("*.py"))
        for name in imported(path, root)
        if name.partition(".")[0] in SEES.keys() - SEES[room]
    ]


@pytest.mark.parametrize("room", SEES)
def test_imports_point_one_way(room):
    assert up(room) == []


def test_the_encodings_import_nothing_else_of_the_library():
    assert [
        f"{path.name}: {name}"
        for path in sorted(ENCODINGS.glob("*.py"))
        for name in imported(path)
        if name.startswith("tutorial_lib.") and not name.startswith("tutorial_lib.encodings")
    ] == []


def test_an_import_that_points_up_is_found(tmp_path):
    """Wherever it stands, and however it is written."""
    (tmp_path / "course" / "lesson").mkdir(parents=True)
    (tmp_path / "course" / "lesson" / "a.py").write_text(
        "from .. import b\nfrom ...classroom import votes\n\ndef late():\n    import workshop.slides\n"
        "    import importlib\n    importlib.import_module('classroom.x')\n"
    )
    assert [line.partition(": ")[2] for line in up("course", tmp_path)] == [
        "classroom.votes",
        "workshop.slides",
        "classroom.x",
    ]


def test_the_top_of_the_tree_is_seen_in_one_look():
    """At most 18 entries beside those that hosts read by name, each in the table of docs/contributing.md."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    top = {name.split("/")[0] + "/" * ("/" in name) for name in names if (ROOT / name).exists()}
    seen = {name for name in top if not name.startswith(".")}
    assert len(seen - {"LICENSE", "LICENSES/", "REUSE.toml", "CITATION.cff"}) <= 18
    guide = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    table = guide.partition("## The folders")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([^`]+)`", "\n".join(re.findall(r"^\| ([^|]+) \|", table, re.M)))) >= seen
