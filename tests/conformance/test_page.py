"""The page *Is my position code right?*: its blocks run, in every language that stands here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tutorial_lib import conformance
from tutorial_lib.conformance import golden
from tutorial_lib.conformance.__main__ import main

PAGE = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    golden_lines, judged = blocks("console")
    assert main(golden_lines.split()[3:]) == 0
    return tmp_path, judged.split()[3:]


def test_the_first_report(capsys):
    names = {}
    for block in blocks("python")[:2]:
        exec(block, names)
    assert capsys.readouterr().out == blocks("text")[0]
    assert names["report"].named == {"positions from 1"}


def test_numpy(folder):
    exec(blocks("python")[3], {})
    assert main(folder[1]) == 0
    assert conformance.check("outputs.json")["rope_half"].status == "passed"


def test_javascript(folder):
    if not (node := shutil.which("node")):
        pytest.skip("nothing was run: there is no Node.js")
    subprocess.run([node, "-e", blocks("javascript")[0]], check=True)
    assert main(folder[1]) == 0
    assert conformance.check("outputs.json")["rope_interleaved"].status == "passed"


def test_c(folder):
    if not (compiler := shutil.which("cc")):
        pytest.skip("nothing was run: there is no C compiler")
    Path("golden.c").write_text(blocks("c")[0])
    subprocess.run([compiler, "-Wall", "-Werror", "golden.c", "-o", "golden_c", "-lm"], check=True)
    Path("outputs.json").write_bytes(subprocess.run(["./golden_c"], check=True, capture_output=True).stdout)
    assert main(folder[1]) == 0
    assert conformance.check("outputs.json")["rope_half"].status == "passed"


def test_what_it_says_of_itself():
    assert f"{len(golden.load())} cases" in PAGE
    assert blocks("python")[2].startswith("def test_positions(conformance):")  # test_command.py runs one
