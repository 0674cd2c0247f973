"""A release, of a course of four files: its parts, its sums, and that nothing else gets in."""

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from workshop import release

ROOT = Path(__file__).parents[2]
FILES = {
    "notebooks/01_x.ipynb": "{}",
    "exercises/ex01/ex01.ipynb": "{}",
    "solutions/ex01/ex01.ipynb": "{}",
    "docs/use.md": "# Use",
    "docs/instructor/inventory.md": "the key",
    "CHANGELOG.md": "# Changelog\n\n## 7.1\n\n**New**\n- A page.\n\n## 7.0\n\nOld.\n",
    "tutorial_lib/__init__.py": '__version__ = "7.1"\n',
}


@pytest.fixture
def course(tmp_path):
    """A repository of one commit, and a file that is not committed."""
    folder = tmp_path / "course"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    (folder / "notebooks/secret.ipynb").write_text("{}", encoding="utf-8")
    return folder


def test_parts_of_a_release(course, tmp_path, capsys):
    out = tmp_path / "out"
    assert release.main(["--only", "zip,changes,sums", "--source", str(course), "--out", str(out)]) == 0
    folder = out / "7.1"
    stem = "transformer-order-7.1"
    assert {path.name for path in folder.iterdir()} == {
        f"{stem}-course.zip",
        f"{stem}-changes.md",
        "SHA256SUMS",
    }
    assert (folder / f"{stem}-changes.md").read_text(encoding="utf-8") == "## 7.1\n\n**New**\n- A page.\n"
    with zipfile.ZipFile(folder / f"{stem}-course.zip") as archive:
        assert archive.namelist() == [
            f"{stem}-course/{name}"
            for name in ("docs/use.md", "exercises/ex01/ex01.ipynb", "notebooks/01_x.ipynb")
        ]
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert "not committed" in capsys.readouterr().err


def test_it_is_the_same_from_run_to_run(course, tmp_path):
    first, again = (release.release(course, tmp_path / name, ["zip", "sums"]) for name in "ab")
    assert (first / "SHA256SUMS").read_bytes() == (again / "SHA256SUMS").read_bytes()


def test_each_part_is_made_in_the_clone_and_the_sums_last(course, tmp_path, monkeypatch):
    made = []

    def note(part):
        def make(clone, out, stem):
            assert clone != course and out == tmp_path / "out" / "7.1" and stem == "transformer-order-7.1"
            assert (clone / "notebooks/01_x.ipynb").exists()
            assert not (clone / "notebooks/secret.ipynb").exists()
            made.append(part)

        return make

    monkeypatch.setattr(release, "MAKE", {part: note(part) for part in release.PARTS})
    monkeypatch.chdir(tmp_path)
    release.release(course, Path("out"))
    assert made == ["wheel", "zip", "site", "slides", "changes", "sums"]


def test_a_version_that_the_changelog_does_not_know_is_not_released(course, tmp_path, capsys):
    (course / "tutorial_lib/__init__.py").write_text('__version__ = "8.0"\n', encoding="utf-8")
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qam", "8"],
        cwd=course,
        check=True,
    )
    assert release.main(["--only", "changes", "--source", str(course), "--out", str(tmp_path / "out")]) == 1
    assert "says nothing of 8.0" in capsys.readouterr().err


def test_an_unknown_part_is_named(course):
    with pytest.raises(SystemExit):
        release.main(["--only", "tarball", "--source", str(course)])


def test_this_version_stands_in_the_changelog():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release.entry(text, release.version(ROOT)).startswith(f"## {release.version(ROOT)}")
