"""Binder and Colab install by the same lines as the page on the set-up, and Colab keeps its own torch."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from course.setup import cloud

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cloud.md").read_text(encoding="utf-8")
POST_BUILD = ROOT / ".binder" / "postBuild"
LOCK = "torch==2.13.0             # via x\nipython==9.18.1\npywinpty==3.1.2 ; os_name == 'nt'  # via y\n"


def install_lines():
    """The way with pip alone, up to the doctor."""
    page = (ROOT / "docs" / "setup.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"## With pip alone\n.*?```\n(.*?)```", page, re.S)
    lines = block.splitlines()
    return lines[: lines.index("python -m course.doctor") + 1]


def cell():
    """The cell for Colab, as a shell would get it."""
    (block,) = re.findall(r"```\n(!git clone .*?)```", PAGE, re.S)
    return [line.lstrip("!%") for line in block.splitlines()]


def test_both_install_by_the_lines_of_the_set_up():
    lines = install_lines()
    assert len(lines) == 4
    assert cell()[-4:] == POST_BUILD.read_text(encoding="utf-8").splitlines()[-4:] == lines


def test_binder_finds_its_files():
    """Where .binder exists, Binder reads nothing else. Without -e, postBuild would go on after an error."""
    python = (ROOT / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert python in SpecifierSet(project["requires-python"])
    assert os.access(POST_BUILD, os.X_OK) and not (ROOT / "binder").exists()
    shebang, *rest = POST_BUILD.read_text(encoding="utf-8").splitlines()
    assert shebang == "#!/bin/bash" and "set -e" in rest
    subprocess.run(["bash", "-n", POST_BUILD], check=True)


def test_the_container_is_set_up_by_the_makefile():
    container = json.loads((ROOT / ".devcontainer.json").read_text(encoding="utf-8"))
    command, target, _ = container["postCreateCommand"].split()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert command == "make" and re.search(rf"^{target}:", makefile, re.M)
    python = container["image"].rpartition(":")[2]
    assert (ROOT / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip() == f"python-{python}"


def test_the_page_says_what_it_does_not_know():
    assert "<address of the repository>" in cell()[0] and "None has been tried in its cloud." in PAGE


@pytest.mark.parametrize(
    ("here", "pin"), [("2.9.0+cu126", "2.9.0"), ("2.6.0", "2.6.0"), ("2.5.1", "2.13.0"), ("3.0.0", "2.13.0")]
)
def test_a_torch_that_is_there_and_allowed_stays(here, pin):
    assert cloud.kept(LOCK, {"torch": here}) == LOCK.replace("2.13.0", pin)


def test_what_the_machine_runs_on_stays_and_what_is_missing_comes_from_the_lock():
    assert cloud.kept(LOCK, {"ipython": "7.34.0", "other": "1"}) == LOCK.replace("9.18.1", "7.34.0")
    assert cloud.kept(LOCK, {"pywinpty": "2.0"}) == LOCK.replace("3.1.2 ;", "2.0 ;")


def test_the_lock_itself_is_rewritten(tmp_path, monkeypatch, capsys):
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(cloud, "ROOT", tmp_path)
    lock = (tmp_path / "requirements.lock").read_text(encoding="utf-8")
    (tmp_path / "requirements.lock").write_text(re.sub(r"^tqdm==\S+", "tqdm==4.66.1", lock, flags=re.M))
    cloud.main()
    assert (tmp_path / "requirements.lock").read_text(encoding="utf-8") == lock
    assert re.fullmatch(r"1 packages stay as they are here: tqdm==\S+\n", capsys.readouterr().out)
