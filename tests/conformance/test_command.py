"""The command, the forms of its report, and the plugin of pytest."""

import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tutorial_lib.conformance import BUGS
from tutorial_lib.conformance.__main__ import main

ROOT = Path(__file__).parents[2]
CODE = """
import torch

def rotate(x, positions, first=1):
    angles = (positions[..., None] + first) * 10_000.0 ** (-torch.arange(0, 64, 2) / 64)
    angles = angles[:, None] if angles.ndim == 3 else angles
    (a, b), cos, sin = x.chunk(2, -1), angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1).to(x.dtype)

def right():
    return lambda x, positions: rotate(x, positions, 0)
"""


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


def test_exit_codes_and_a_report_to_read(code, capsys):
    assert main([f"{code}:right()", "layout=half", "--axes", "bhld", "base=1e4"]) == 0
    assert "7 passed, 0 failed" in capsys.readouterr().out
    assert main([f"{code}:rotate", "layout=half"]) == 1
    said = capsys.readouterr().out
    assert "bug: positions from 1" in said and "do: the first token stands at 0" in said
    assert all(len(line) <= 100 for line in said.splitlines())


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["nothing"], "it must be FILE.py:NAME, MODULE:NAME"),
        (["none.py:rotate"], "none.py"),
        (["no_such_module:f"], "no_such_module"),
        (["torch:no_such_name"], "no_such_name"),
        (["torch:sin", "half"], "it must be NAME=VALUE"),
        (["torch:sin", "basis=3", "--kind", "rotate"], "basis: unknown here; you may declare head_dim, base"),
        (["mine.json"], "mine.json"),
    ],
)
def test_what_can_not_be_asked_ends_with_2(arguments, says, capsys):
    assert main(arguments) == 2
    assert says in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2


def test_json_and_junit(code, tmp_path, capsys):
    assert main([f"{code}:rotate", "--json", "--junit", str(tmp_path / "junit.xml")]) == 1
    report = json.loads(capsys.readouterr().out)
    golden = report["findings"][0]
    assert (report["version"], report["ok"]) == (1, False)
    assert (golden["status"], golden["bugs"]) == ("failed", ["positions from 1"])
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("tests") == "7" and suite.get("failures") == "1"
    (failure,) = suite.iter("failure")
    assert "positions from 1" in failure.text


def test_bugs_and_golden_vectors_can_be_had(tmp_path, capsys):
    assert main(["--bugs"]) == 0
    assert "layout: the channels are paired in the other layout" in capsys.readouterr().out
    assert main(["--golden", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"golden.json", "golden.safetensors"}


def test_every_bug_with_a_name_is_found_in_some_test():
    folder = Path(__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    assert len(BUGS) > 60 and not [name for name in BUGS if f'"{name}"' not in text]
    for bug in BUGS.values():
        assert not bug.case or re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", bug.case)


def test_as_a_program_in_five_seconds(code):
    start = time.perf_counter()
    command = [sys.executable, "-m", "tutorial_lib.conformance", f"{code}:rotate"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "positions from 1" in done.stdout, done.stderr
    assert time.perf_counter() - start < 30  # other programs may use all cores


def test_the_plugin(code):
    (code.parent / "test_it.py").write_text(
        "from mine import right, rotate\n"
        "def test_wrong(conformance): conformance.check(rotate)\n"
        "def test_right(conformance): assert conformance.check(right()).ok\n"
        "def test_light(conformance): pass\n"
    )
    command = "-m pytest -q -p tutorial_lib.pytest_conformance -p no:cacheprovider test_it.py".split()
    # Without the others: where the library is installed, its entry point would load this one again.
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{code.parent}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [sys.executable, *command], cwd=code.parent, env=environment, capture_output=True, text=True
    )
    assert "1 failed, 2 passed" in done.stdout and "bug: positions from 1" in done.stdout, done.stdout
    light = "import sys, tutorial_lib.pytest_conformance; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", light], cwd=ROOT, capture_output=True, text=True).stdout
        == "False\n"
    )
