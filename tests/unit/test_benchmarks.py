"""The benchmarks: cases that compute the same, times and bytes that are what they say."""

import json
import re
import time

import pytest
import torch

from benchmarks import __main__ as command
from benchmarks import cases, latency
from benchmarks.cases import Table, Target
from benchmarks.measure import interleaved, peak_bytes, ratio

CPU = torch.device("cpu")


@pytest.fixture
def plain_compile(monkeypatch):
    """The real compiler is slow to start; what is compared here is the numbers."""
    monkeypatch.setattr(torch, "compile", lambda function: function)


@pytest.mark.parametrize("table", [
    lambda: cases.rotary(CPU, torch.float32, train=False, shape=(1, 2, 12, 8)),
    lambda: cases.rotary(CPU, torch.float32, train=True, shape=(1, 2, 12, 8)),
    lambda: cases.biases(CPU, torch.float32, length=40, train=False, heads=2, d=8),
    lambda: cases.biases(CPU, torch.float32, length=40, train=True, heads=2, d=8),
    lambda: cases.shaw(CPU, torch.float32, length=20, k=3, heads=2, d=8),
], ids=["rotary", "rotary-train", "biases", "biases-train", "shaw"])
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


def test_rounds_are_interleaved_and_the_first_is_not_counted():
    order = []
    seconds = interleaved({name: lambda name=name: order.append(name) for name in "abc"}, 9, CPU)
    assert order[0::2] == order[1::2]  # each runs twice
    rounds = [tuple(order[n: n + 6: 2]) for n in range(0, len(order), 6)]
    assert {tuple(sorted(names)) for names in rounds} == {("a", "b", "c")} and len(set(rounds)) > 3
    assert [len(x) for x in seconds.values()] == [9, 9, 9]


def test_a_ratio_is_the_median_of_the_rounds():
    """A slow moment that hits a whole round does not count."""
    assert ratio({"slow": [2.0, 20.0, 2.0], "fast": [1.0, 10.0, 1.0]}, "slow", "fast") == 2.0


def test_peak_bytes():
    x = torch.zeros(1000, 1000)
    assert 4_000_000 <= peak_bytes(lambda: (x + 1).sum(), CPU) < 4_001_000
    assert 8_000_000 <= peak_bytes(lambda: ((x + 1) * 2).sum(), CPU) < 8_001_000


def test_a_result_says_what_was_met():
    def sleeps(seconds):
        return lambda: time.sleep(seconds)

    table = Table("sleep", {"long": sleeps(0.02), "short": sleeps(0.002)}, unit="short",
                  targets=[Target("long", "short", 2), Target("short", "long", 1)])
    result = command.measured(table, 3, CPU)
    assert result["rows"]["short"]["ratio"] == 1 and 3 < result["rows"]["long"]["ratio"] < 12
    text = command.show(result)
    assert "met" in text and "MISSED" in text and "long: at least 2 times as long as short" in text


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


def test_latency_targets_are_held_against_what_was_measured(monkeypatch):
    times = {latency.OURS: [50.0, 60.0, 40.0], latency.IPYMPL: [100.0, 240.0, 100.0],
             latency.INLINE: [100.0, 240.0, 100.0]}
    monkeypatch.setattr(latency, "peers", lambda lab, rounds: times)
    monkeypatch.setattr(latency, "controls", lambda lab, rounds: {
        "A": {"x": [30.0, 90.0, 40.0]}, "B": {"y": [110.0, 120.0, 10.0], "z": [1.0, 1.0, 1.0]}})
    result = latency.measured(None, 3)
    assert [(t["most"], t["measured"]) for t in result["targets"]] == [
        (60, 50), (100, 110), (0.5, 0.4), (0.2, 0.4)]
    assert result["controls"] == {"A": {"x": 40}, "B": {"y": 110, "z": 1}}
    assert "B, y" in result["targets"][1]["target"]
    text = latency.show(result)
    assert text.count("MISSED") == 2 and text.count("met   ") == 2 and "A, x" in text
