"""The files of the course: no trace of the machine that made them, and a README that holds."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

from workshop import pictures

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = "\n".join(
    block or span for block, span in re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", README, re.DOTALL)
)
TARGETS = re.findall(r"^([a-z-]+):.*?##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)

# Written so that this file does not match itself.
MACHINE = re.compile(
    r"(?<![\w.:/}>])/(?:(?:root|work|opt|tmp)/|(?:home|Users)/\w)|[A-Z]:\\Users\\\w"
    r"|\b(?:pypi|pythonhosted|npmjs|download\.pytorch|debian|anaconda)[.](?:org|com)\b"
)


def files():
    """Every text file that git tracks, or would if it were added now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in sorted(set(filter(None, names.split("\0")))):
        path = ROOT / name
        if path.is_file() and b"\0" not in (data := path.read_bytes()):
            yield name, data.decode("utf-8")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git clone")
def test_no_file_names_a_machine_path_or_a_package_registry():
    found = [f"{name}: {match.group()}" for name, text in files() for match in MACHINE.finditer(text)]
    assert not found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git clone")
def test_windows_gets_the_same_bytes():
    """Git would give it other line ends; exercises are compared to the byte."""
    command = ["git", "check-attr", "eol", "--", *(name for name, _text in files())]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.splitlines()
    assert said and not [line for line in said if not line.endswith(": eol: lf")]


@pytest.mark.parametrize(
    "text", ["see /" + "root/.cache", "C:\\" + "Users\\me", "pypi." + "org", '"/' + 'home/me"']
)
def test_the_search_finds(text):
    assert MACHINE.search(text)


@pytest.mark.parametrize(
    "text", ["https://example.org/home/page", "notebooks/work/x", "a/tmp/b", "the root/home"]
)
def test_the_search_leaves_alone(text):
    assert not MACHINE.search(text)


def test_one_screen_of_the_readme_answers_everything():
    """What it is, for whom, how to start, test, read, teach and contribute."""
    screen = README.split("\n## ")[0]
    assert len(screen.split()) < 300
    for word in ("For", "Start", "[![Test](", "Read", "Teach", "Contribute"):
        assert screen.count(f"**{word}") == 1, word


def test_the_picture_of_the_readme_moves():
    """It is light, sharp at its width, goes on without an end, and its words and its command are there."""
    ((name, width, alt),) = re.findall(r'<img src="([^"]+)" width="(\d+)" alt="([^"]{50,})">', README)
    path, width = ROOT / name, int(width)
    assert path.stat().st_size < 0.4e6
    with Image.open(path) as picture:
        assert picture.format == "GIF" and picture.info["loop"] == 0 and picture.width >= 1.5 * width
        frames = [
            (frame.convert("RGB").tobytes(), frame.info["duration"])
            for frame in ImageSequence.Iterator(picture)
        ]
    assert len({data for data, _ in frames}) > 20, "it stands still"
    assert 4000 < sum(duration for _, duration in frames) < 9000
    words = {"Transformers", "bias", "offset", "diagonal", "attention", "positions"}
    assert alt.endswith(".") and words <= set(re.findall(r"\w+", alt))
    guide = (ROOT / "docs/contributing.md").read_text(encoding="utf-8")
    assert f"`{name}`" in guide and "`python -m workshop.pictures docs`" in guide
    assert path.name == pictures.FILE


def test_each_make_command_of_the_readme_exists():
    named = set(re.findall(r"\bmake ([a-z-]+)", CODE))
    assert {"lab", "test", "doctor"} <= named <= set(TARGETS)


def test_each_module_of_the_readme_exists():
    for module in re.findall(r"-m (tutorial_lib\.[\w.]+)", CODE):
        assert importlib.util.find_spec(module), module


def test_each_file_that_the_readme_names_exists():
    badge = "](../../actions/workflows/"  # of whatever copy a host shows
    assert README.count(badge) == 2 and (ROOT / ".github/workflows/test.yml").is_file()
    named = re.findall(
        r"[\w./-]+\.(?:py|yml|toml|lock|ipynb)\b", README.replace(badge, "](.github/workflows/")
    )
    missing = [name for name in named if "/" in name and not (ROOT / name).exists()]
    assert named and not missing


def test_make_alone_shows_every_command():
    result = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [line.split()[1] for line in result.stdout.splitlines()] == TARGETS
