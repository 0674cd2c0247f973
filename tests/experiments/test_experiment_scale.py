"""Does the gap close with size? Who chooses which rates, what a line says, and findings that can turn."""

import dataclasses

import pytest
import torch

from course.experiments import lengths, rates, scale, sweep, tuning
from course.experiments.record import Record, Run
from course.verdicts import FAILS, HOLDS, OPEN
from tutorial_lib import plots
from tutorial_lib.data import Corpus, kjv
from tutorial_lib.model import Config, Transformer

CPU = torch.device("cpu")
PRESETS = scale.EXPERIMENT.presets


def narrow(settings):
    """As many sizes and cells, and next to nothing to compute."""
    few = {"head_dim": 8, "length": 32, "batch": 2, "windows": 2, "tail": 8}
    return (
        settings
        | few
        | {
            "sizes": [
                {"d_model": 8 * (n + 1), "layers": 1, "steps": 1} for n in range(len(settings["sizes"]))
            ]
        }
    )


# ---- the presets ----
def test_the_sizes_span_two_orders_of_magnitude():
    for preset in ("full", "gpu"):
        settings = PRESETS[preset]
        scales = [scale.scale(settings, n) for n in range(len(settings["sizes"]))]
        assert len(scales) >= 4 and scales == sorted(scales) and scales[-1] >= 100 * scales[0]
        for size in settings["sizes"]:  # no character is learned by heart
            assert size["d_model"] % settings["head_dim"] == 0
            assert size["steps"] * settings["batch"] * settings["length"] < len(kjv().train)


@pytest.mark.parametrize("preset, size", [("full", 0), ("full", 3), ("gpu", 3)])
def test_the_parameters_that_are_counted_are_those_of_the_layers(preset, size):
    one = scale.sized(PRESETS[preset], size)
    with torch.device("meta"):
        model = Transformer(Config(65, one["d_model"], n_layers=one["layers"], n_heads=one["heads"]))
    real = sum(p.numel() for p in model.parameters() if p.ndim == 2) - 2 * 65 * one["d_model"]
    characters = one["steps"] * one["batch"] * one["length"]
    assert scale.scale(PRESETS[preset], size) == pytest.approx(real * characters, rel=1e-6)
    assert preset == "full" or real > 100e6


@pytest.mark.parametrize("preset", PRESETS)
def test_every_encoding_has_the_same_grid_at_every_size_and_wider_models_slower_rates(preset):
    settings, cells = PRESETS[preset], scale.cells(PRESETS[preset])
    for n, size in enumerate(settings["sizes"]):
        middle = settings["lr"] * 64 / size["d_model"]
        for name in settings["encodings"]:
            tried = [c["rates"] for c in cells if (c["size"], c["encoding"]) == (n, name)]
            assert tried == rates.grid(middle, own=name == "t5")
    assert len(cells) == len(settings["sizes"]) * sum(6 if x == "t5" else 3 for x in settings["encodings"])


@pytest.mark.parametrize("preset", PRESETS)
def test_a_record_with_few_steps(preset, tmp_path, monkeypatch):
    short = Corpus.of(kjv().text[:40000])
    for module in (scale, lengths):
        monkeypatch.setattr(module, "kjv", lambda: short)
    experiment = dataclasses.replace(scale.EXPERIMENT, presets={preset: narrow(PRESETS[preset])})
    path = tmp_path / "record.json"
    record = sweep.run(experiment, preset, seeds=(0, 1), device="cpu", out=path, progress=False)
    assert Record.load(path) == record and len(record.runs) == 2 * len(scale.cells(PRESETS[preset]))
    assert all(
        len(run.values[what]) == 2 and min(run.values[what]) > 2
        for run in record
        for what in ("mean", "tail")
    )
    assert plots.png(experiment.figure(record)).startswith(b"\x89PNG")
    assert len(experiment.alt(record).split()) > 10
    assert all(finding.ours for finding in experiment.findings(record))
    rows = experiment.table(record).splitlines()[2:]
    assert len(rows) == len(record.settings["sizes"]) * len(record.settings["encodings"])
    again = experiment.measure(record.settings, record.runs[4].cell, 0, CPU)
    assert again == record.runs[4].values


def test_what_diverges_can_be_stored_and_is_not_chosen(monkeypatch):
    def diverges(*_):
        raise FloatingPointError("the loss is nan")

    monkeypatch.setattr(lengths, "trained", diverges)
    lost = scale.measure(PRESETS["full"], scale.cells(PRESETS["full"])[0], 0, CPU)
    assert lost["validation"] == tuning.DIVERGED and lost["mean"] == lost["tail"] == [tuning.DIVERGED] * 2


# ---- what is read off ----
def made(loss, rise=lambda name, n, seed: 0.0, sizes=4, seeds=(0, 1, 2, 3)) -> Record:
    """A record with ``loss(name, size, seed)`` at the middle rates, and 0.5 more at the others."""
    settings = PRESETS["full"] | {"sizes": PRESETS["full"]["sizes"][:sizes]}
    record = Record("scale", "full", "", settings, list(seeds), "cpu", 1, {})
    for seed in seeds:
        for cell in scale.cells(settings):
            name, n, (lr, own) = cell["encoding"], cell["size"], cell["rates"]
            middle = lr == rates.grid(scale.sized(settings, n)["lr"], own=False)[1][0] and own == lr
            x = loss(name, n, seed) + (0 if middle else 0.5)
            values = {"validation": x, "mean": [x, x], "tail": [x, x + rise(name, n, seed)]}
            record.runs.append(Run(cell, seed, values, 1.0))
    return record


def level(name, n, seed):
    """RoPE is 0.1 behind T5, and 0.05 behind ALiBi; sinusoidal positions are last."""
    return {"sinusoidal": 2.2, "rotary": 2.0, "alibi": 1.95, "t5": 1.9}[name] - 0.1 * n + 0.01 * seed


def test_the_rates_of_a_seed_are_chosen_by_the_others():
    record = made(level)
    fast = rates.grid(scale.sized(record.settings, 0)["lr"], own=False)[2]
    for run in record:  # of seed 0 alone, the fastest rate is by far the best
        if (run.cell["size"], run.cell["encoding"], run.cell["rates"]) == (0, "rotary", fast):
            run.values["validation"] = -90.0 if run.seed == 0 else 9.0
            run.values["mean"][0] = -9.0
    assert scale.chosen(record, 0, "rotary", without=1) == scale.chosen(record, 0, "rotary") == tuple(fast)
    assert scale.chosen(record, 0, "rotary", without=0) != tuple(fast)
    assert scale.at_length(record, 0, "rotary") == pytest.approx([2.0, -9.0, -9.0, -9.0])


def test_so_is_the_better_bias():
    record = made(level)
    for run in record:
        if run.cell["encoding"] == "alibi" and run.seed == 2:
            run.values["validation"] -= 0.5  # by this seed alone ALiBi would be the better one
    assert [scale.best_bias(record, 1, seed) for seed in record.seeds] == ["alibi", "alibi", "t5", "alibi"]
    assert scale.gap(record, 1).values == pytest.approx([0.05, 0.05, 0.1, 0.05])


def test_the_loss_that_chooses_is_not_the_one_that_is_reported():
    record = made(level)
    for run in record:
        run.values["mean"] = [7.0, 8.0]
    assert scale.reported(record, 2, "t5") == [[7.0, 8.0]] * 4


def test_a_slope_for_each_seed():
    record = made(level)
    x = scale.decades(record)
    measured = [scale.interval([3 + 0.5 * a, 4 - 0.25 * a]) for a in x]
    assert scale.per_decade(record, measured).values == pytest.approx((0.5, -0.25))


def test_a_prediction_by_hand():
    """y = −2/3 + 1.5 x; s² = 1/6, t(1) = 12.706."""
    found = scale.predicted([1, 2, 3], [1, 2, 4], 4)
    assert found.mean == pytest.approx(16 / 3)
    assert found.high - found.mean == pytest.approx(12.706 * (1 / 6 * (1 + 1 / 3 + 4 / 2)) ** 0.5)
    exact = scale.predicted([1, 2, 3, 4], [2, 4, 6, 8], 10)
    assert (exact.low, exact.high) == pytest.approx((20, 20))


# ---- what is said ----
def told(*args, **options):
    return {finding.claim: finding for finding in scale.findings(made(*args, **options))}


def verdict(start, *args, **options):
    (found,) = [f for claim, f in told(*args, **options).items() if claim.startswith(start)]
    assert found.verdict == HOLDS or found.reason
    return found.verdict


def with_gap(of_size, noise=0.0):
    return lambda name, n, seed: 2 + (of_size[n] + noise * (-1) ** seed * n if name == "rotary" else 0.0)


def test_who_is_ahead_at_every_size():
    start = "At every size a bias"
    assert verdict(start, with_gap([0.1, 0.1, 0.1, 0.1])) == HOLDS
    assert verdict(start, with_gap([0.1, 0.1, 0.1, -0.1])) == FAILS
    assert verdict(start, with_gap([0.1] * 4, noise=0.1)) == OPEN


def test_whether_the_gap_closes():
    start = "The gap from RoPE"
    assert verdict(start, with_gap([0.4, 0.3, 0.2, 0.1])) == HOLDS
    assert verdict(start, with_gap([0.1, 0.2, 0.3, 0.4])) == FAILS
    assert verdict(start, with_gap([0.4, 0.3, 0.2, 0.1], noise=0.2)) == OPEN
    assert verdict(start, with_gap([-0.1, -0.2, -0.3, -0.4])) == FAILS
    finding = told(with_gap([-0.1, -0.2, -0.3, -0.4]))["The gap from RoPE to the biases closes with size"]
    assert "no gap that could close" in finding.why and "thousand times the largest" in finding.ours


def test_whether_a_bigger_model_reads_further():
    def rises(step, noise=0.0):
        return lambda name, n, seed: 1 + (step + noise * (-1) ** seed) * n

    start = "A bigger model reads further"
    assert verdict(start, level, rises(-0.2)) == HOLDS
    assert verdict(start, level, rises(0.2)) == FAILS
    assert verdict(start, level, rises(-0.1, noise=0.4)) == OPEN


def test_whether_rope_is_ahead_of_the_sums():
    start = "RoPE has a lower loss"
    assert verdict(start, level) == HOLDS
    assert verdict(start, with_gap([0.1] * 4)) == FAILS
    noisy = made(lambda name, n, seed: 2 + (name == "sinusoidal") * (0.1 + 0.2 * (-1) ** seed))
    assert [f.verdict for f in scale.findings(noisy) if f.claim.startswith(start)] == [OPEN]


def test_choices_at_the_edge_are_told():
    start = "The grids are wide enough"
    assert verdict(start, level) == HOLDS
    record = made(level)
    for run in record:
        n, (lr, _) = run.cell["size"], run.cell["rates"]
        if (n, run.cell["encoding"]) == (2, "rotary") and lr > 2 * scale.sized(record.settings, n)["lr"]:
            run.values["validation"] -= 1.0
    (finding,) = [f for f in scale.findings(record) if f.claim.startswith(start)]
    assert finding.verdict == FAILS and "slowest rate: none; at the fastest: size 3: rotary" in finding.ours


def test_two_sizes_make_no_prediction():
    assert not any("thousand times" in finding.ours for finding in scale.findings(made(level, sizes=2)))
