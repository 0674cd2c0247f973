"""What a position costs: all ways compute the same attention, a record is whole, and findings turn."""

import dataclasses

import pytest
import torch

from course.experiments import Record, cost, sweep
from course.experiments.record import Run
from course.verdicts import FAILS, HOLDS, OPEN
from tutorial_lib import plots
from tutorial_lib.attention import attention
from tutorial_lib.encodings import ALiBi
from tutorial_lib.encodings.positions import Positions

CPU = torch.device("cpu")
FEW = {
    "batch": 1,
    "heads": 2,
    "head_dim": 8,
    "rounds": {"forward": 1, "decode": 1},
    "lengths": {"forward": [16, 32, 64], "decode": [16, 64]},
    "dense_up_to": 32,
}
PLAIN = {"none", "rotary", "alibi", "t5"}
FLEX = {f"{name}, flex" for name in ("none", "alibi", "t5")}


def settings(preset, **changed):
    return cost.EXPERIMENT.presets[preset] | FEW | changed


@pytest.fixture
def outputs():
    def of(doing, length=32):
        cases = cost.ways(settings("gpu", dtype="float32"), {"doing": doing, "length": length}, 3, CPU)
        with torch.no_grad():
            return {name: case.run() for name, case in cases.items()}

    return of


def test_all_ways_of_a_position_give_the_same_attention(outputs):
    """Speed alone is nothing."""
    done, step = outputs("forward"), outputs("decode")
    assert set(done) == PLAIN | {"alibi, dense", "t5, dense"} | FLEX
    assert set(step) == PLAIN | {"rotary, all keys"} | FLEX
    for name in ("alibi", "t5"):
        for other in (done[f"{name}, dense"], done[f"{name}, flex"]):
            torch.testing.assert_close(other, done[name], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(step[f"{name}, flex"], step[name], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(step["rotary, all keys"], step["rotary"], atol=1e-5, rtol=1e-4)
    for found in (done, step):
        torch.testing.assert_close(found["none, flex"], found["none"], atol=1e-5, rtol=1e-4)
        for a, b in (("none", "rotary"), ("none", "alibi"), ("alibi", "t5"), ("rotary", "alibi")):
            assert (found[a] - found[b]).abs().max() > 1e-3


def test_they_are_the_attention_of_the_equation():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 16, 8)
    made = cost.forward(settings("live"), q, k, v)
    expected = attention(q, k, v, ALiBi(2), causal=True, backend="eager")
    torch.testing.assert_close(made["alibi, dense"].run(), expected, atol=1e-5, rtol=1e-4)
    step = cost.decode(settings("live"), q[:, :, -1:], k, v)
    torch.testing.assert_close(step["alibi"].run(), expected[:, :, -1:], atol=1e-5, rtol=1e-4)


def test_a_matrix_is_counted_as_held_and_has_no_future():
    mask = cost.matrix(ALiBi(2), Positions(16), torch.float32)
    assert mask.shape == (1, 2, 16, 16) and mask.is_contiguous()
    assert torch.equal(mask[0, 0].isinf(), torch.ones(16, 16).triu(1).bool())
    found = cost.measure(settings("live"), {"doing": "forward", "length": 32}, 0, CPU)
    assert found["held alibi, dense"] - found["held none"] >= 2 * 32 * 32 * 4 > found["held alibi"] / 2
    assert found["time none"] == 1 and all(value > 0 for value in found.values())


def test_a_matrix_is_made_up_to_a_length_only():
    assert set(cost.ways(settings("live"), {"doing": "forward", "length": 64}, 0, CPU)) == PLAIN


@pytest.mark.parametrize("preset", ["live", "full", "gpu"])
def test_a_record_of_each_preset(preset, tmp_path):
    """Its own dtype and ways, on tiny lengths."""
    experiment = dataclasses.replace(cost.EXPERIMENT, presets={preset: settings(preset)})
    path = tmp_path / "record.json"
    record = sweep.run(experiment, preset, seeds=(0, 1), device="cpu", out=path, progress=False)
    assert Record.load(path) == record and len(record.cells()) == 5
    assert plots.png(experiment.figure(record)).startswith(b"\x89PNG")
    assert len(experiment.alt(record).split()) > 10
    assert all(finding.ours for finding in experiment.findings(record))
    text = experiment.table(record)
    assert text.count("| RoPE |") == 3 and text.count("| RoPE, all keys turned again |") == 1
    assert "| ALiBi as a matrix |" in text
    assert ("| T5's bias in FlexAttention |" in text) == (preset == "gpu")
    assert text.count("| – |") == 4  # neither matrix at the longest length: time and memory


def made(times=(), held=(), flex=False):
    """A record in which each way takes 1.2 times as long as none and holds L numbers, but for these."""
    given = settings("gpu" if flex else "live", dense_up_to=64)
    runs = []
    for cell in cost.cells(given):
        names = ["none", "rotary", "alibi", "t5"]
        names += ["alibi, dense", "t5, dense"] if cell["doing"] == "forward" else ["rotary, all keys"]
        names += sorted(FLEX) if flex else []
        for seed in (0, 1, 2):
            values = {f"time {name}": 1.0 if name.startswith("none") else 1.2 for name in names}
            values |= {
                f"time {name}": x for (doing, name), x in dict(times).items() if doing == cell["doing"]
            }
            values |= {f"held {name}": cell["length"] ** dict(held).get(name, 1.0) for name in names}
            values = {key: x(cell["length"]) if callable(x) else x for key, x in values.items()}
            runs.append(Run(cell, seed, values, 0.0))
    return Record("cost", "full", "", given, [0, 1, 2], "cpu", 1, {}, runs=runs)


def verdict(claim, **numbers):
    (finding,) = [one for one in cost.findings(made(**numbers)) if claim in one.claim]
    return finding.verdict


@pytest.mark.parametrize(
    "claim, holds, fails",
    [
        ("On a long text, RoPE", {"times": {("forward", "rotary"): 1.02}}, {}),
        (
            "RoPE's share falls",
            {"times": {("forward", "rotary"): lambda n: 1 + 1 / n}},
            {"times": {("forward", "rotary"): lambda n: 1 + n / 1000}},
        ),
        (
            "handed over as a matrix",
            {"times": {("forward", "alibi, dense"): 1.6, ("forward", "t5, dense"): 1.5}},
            {"times": {("forward", "alibi, dense"): 1.6}},
        ),
        (
            "memory of a bias as a matrix",
            {"held": {"alibi, dense": 2, "t5, dense": 1.9}},
            {"held": {"alibi, dense": 2}},
        ),
        ("Without the matrix, the memory", {}, {"held": {"t5": 2}}),
        (
            "Without the matrix, a bias costs",
            {"times": {("forward", "alibi"): 1.01, ("forward", "t5"): 1.02}},
            {"times": {("forward", "alibi"): 1.01}},
        ),
        ("In decoding, RoPE", {"times": {("decode", "rotary"): 1.01}}, {}),
        ("Turning all cached keys", {"times": {("decode", "rotary, all keys"): 3.0}}, {}),
        (
            "In decoding, a bias",
            {"times": {("decode", "alibi"): 1.01, ("decode", "t5"): 1.0}},
            {"times": {("decode", "t5"): 1.0}},
        ),
        (
            "FlexAttention",
            {"flex": True, "times": {("forward", f"{x}, flex"): 1.05 for x in ("alibi", "t5")}},
            {"flex": True, "times": {("forward", "alibi, flex"): 1.05}},
        ),
    ],
)
def test_findings_turn_with_the_numbers(claim, holds, fails):
    assert (verdict(claim, **holds), verdict(claim, **fails)) == (HOLDS, FAILS)


def test_what_was_not_measured_stays_open():
    record = made()
    assert {one.claim.split()[0]: one.verdict for one in cost.findings(record)}["Inside"] == OPEN
    for run in record:
        for name in [name for name in run.values if name.startswith("held")]:
            del run.values[name]
    assert sum(one.ours == "not measured" and one.verdict == OPEN for one in cost.findings(record)) == 3


def test_an_interval_over_the_limit_stays_open():
    record = made()
    for run, x in zip(
        [run for run in record if run.cell == {"doing": "decode", "length": 64}],
        (1.0, 1.05, 1.1),
        strict=True,
    ):
        run.values["time rotary"] = x
    (finding,) = [one for one in cost.findings(record) if one.claim.startswith("In decoding, RoPE")]
    assert finding.verdict == OPEN and "1.05 (" in finding.ours


def test_every_kernel_says_where_it_was_seen():
    names = [kernel["name"] for kernel in cost.KERNELS]
    assert len(names) == len(set(names)) >= 10
    for kernel in cost.KERNELS:
        assert set(kernel) == {"name", "rotation", "bias", "version", "source"} and all(kernel.values())
        assert kernel["source"].startswith("https://") and "/main/" not in kernel["source"]
        if "github.com" in kernel["source"]:  # a state that does not change
            state = kernel["source"].split("/")[6]
            assert any(state.startswith(word.strip(",")) for word in kernel["version"].split()), kernel
        assert f"| {kernel['name']} |" in cost.kernels()
    assert cost.kernels().count("\n") == len(names) + 2
