"""The cases of the benchmarks: ours and the public implementations compute the same."""

import json
import re

import pytest
import torch

from workshop.benchmarks import __main__ as command
from workshop.benchmarks import cases

CPU = torch.device("cpu")


@pytest.fixture
def plain_compile(monkeypatch):
    """The real compiler is slow to start; what is compared here is the numbers."""
    monkeypatch.setattr(torch, "compile", lambda function: function)


@pytest.mark.parametrize(
    "table",
    [
        lambda: cases.rotary(CPU, torch.float32, train=False, shape=(1, 2, 12, 8)),
        lambda: cases.rotary(CPU, torch.float32, train=True, shape=(1, 2, 12, 8)),
        lambda: cases.rotary_step(CPU, torch.float32, heads=2, d=8, times=2),
        lambda: cases.biases(CPU, torch.float32, length=40, train=False, heads=2, d=8),
        lambda: cases.biases(CPU, torch.float32, length=40, train=True, heads=2, d=8),
        lambda: cases.shaw(CPU, torch.float32, length=20, k=3, heads=2, d=8),
    ],
    ids=["rotary", "rotary-train", "rotary-step", "biases", "biases-train", "shaw"],
)
def test_cases_that_should_be_alike_are(table, plain_compile):
    torch.manual_seed(0)
    table = table()
    command.check(table, torch.float32)
    assert table.unit in table.cases and table.targets and table.alike
    assert all({target.slow, target.fast} <= set(table.cases) for target in table.targets)
    first, second, *_ = table.alike[-1]
    right = table.cases[second]
    table.cases[second] = lambda: torch.utils._pytree.tree_map(lambda x: x + 0.1, right())
    with pytest.raises(AssertionError, match=re.escape(f"{second} is not {first}")):
        command.check(table, torch.float32)


def test_the_command_prints_and_saves(monkeypatch, capsys, tmp_path):
    small = {"shaw": lambda: cases.shaw(CPU, torch.float32, length=16, k=2, heads=1, d=4)}
    monkeypatch.setattr(command, "tables", lambda device, dtype: small)
    command.main(["--rounds", "2", "--device", "cpu", "--save", str(tmp_path / "new" / "record.json")])
    assert "Shaw, B 1, H 1, L 16" in capsys.readouterr().out
    record = json.loads((tmp_path / "new" / "record.json").read_text())
    assert record["versions"]["torch"] == torch.__version__ and record["tables"][0]["name"] == "shaw"
    for wrong in (["rope"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            command.main(wrong)
    assert "no table rope: choose from shaw" in capsys.readouterr().err
