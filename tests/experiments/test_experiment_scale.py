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
    widths = sorted({size["d_model"] for size in settings["sizes"]})
    first = settings["sizes"][0]["steps"]
    return (
        settings
        | few
        | {
            "sizes": [
                size
                | {
                    "d_model": 8 * (widths.index(size["d_model"]) + 1),
                    "layers": 1,
                    "steps": 1 + (size["steps"] > first),
                }
                for size in settings["sizes"]
            ]
        }
    )


# ---- the presets ----
def test_the_sizes_span_two_orders_of_magnitude():
    for preset in ("full", "gpu"):
        settings = PRESETS[preset]
        scales = [scale.scale(settings, n) for n in range(len(settings["sizes"]))]
        assert len(scales) >= 4 and max(scales) >= 100 * min(scales)
        for n, size in enumerate(settings["sizes"]):  # no character is learned by heart
            assert size["d_model"] % settings["head_dim"] == 0
            assert scale.characters(settings, n) < len(kjv().train)


def test_on_a_gpu_size_and_training_vary_apart():
    full, gpu = (made(level, preset=preset) for preset in ("full", "gpu"))
    assert not scale.apart(full) and scale.apart(gpu)
    sizes = range(len(gpu.settings["sizes"]))
    models = {scale.parameters(gpu.settings, n) for n in sizes}
    trainings = {scale.characters(gpu.settings, n) for n in sizes}
    assert len(models) >= 4 and max(models) > 50 * min(models) and len(trainings) >= 2
    assert not scale.apart(made(level, sizes=2)) and not scale.apart(made(level, sizes=4, preset="gpu"))


@pytest.mark.parametrize("preset, size", [("full", 0), ("full", 3), ("gpu", 3)])
def test_the_parameters_that_are_counted_are_those_of_the_layers(preset, size):
    one = scale.sized(PRESETS[preset], size)
    with torch.device("meta"):
        model = Transformer(Config(65, one["d_model"], n_layers=one["layers"], n_heads=one["heads"]))
    real = sum(p.numel() for p in model.parameters() if p.ndim == 2) - 2 * 65 * one["d_model"]
    assert scale.parameters(PRESETS[preset], size) == real
    assert scale.characters(PRESETS[preset], size) == one["steps"] * one["batch"] * one["length"]
    assert scale.scale(PRESETS[preset], size) == real * scale.characters(PRESETS[preset], size)


@pytest.mark.parametrize("preset", ["live", "full"])
def test_every_encoding_has_the_same_grid_at_every_size_and_wider_models_slower_rates(preset):
    settings, cells = PRESETS[preset], scale.cells(PRESETS[preset])
    for n, size in enumerate(settings["sizes"]):
        middle = settings["lr"] * 64 / size["d_model"]
        for name in settings["encodings"]:
            tried = [c["rates"] for c in cells if (c["size"], c["encoding"]) == (n, name)]
            assert tried == rates.grid(middle, own=name == "t5")
    assert len(cells) == len(settings["sizes"]) * sum(6 if x == "t5" else 3 for x in settings["encodings"])


def test_where_a_bias_has_rates_of_its_own_to_try_rope_has_as_many_bases():
    settings, cells = PRESETS["gpu"], scale.cells(PRESETS["gpu"])
    for n in range(len(settings["sizes"])):
        tried = {
            name: [scale.trial(c) for c in cells if (c["size"], c["encoding"]) == (n, name)]
            for name in settings["encodings"]
        }
        lrs = [{lr for lr, _ in found} for found in tried.values()]
        assert lrs[0] == lrs[1] == lrs[2] and len(tried["rotary"]) == len(tried["t5"]) == 9
        assert {base for _, base in tried["rotary"]} == {10, 100, 10000}
        assert {own for _, own in tried["t5"]} == {0.1, 0.4, 1.6}


def test_the_base_that_is_tried_is_that_of_the_model(monkeypatch):
    seen = []

    def watched(settings, cell, seed, device):
        seen.append(lengths.encoding(cell["encoding"], settings).frequencies.base)
        raise FloatingPointError

    monkeypatch.setattr(lengths, "trained", watched)
    for preset in ("gpu", "full"):
        cells = [c for c in scale.cells(PRESETS[preset]) if (c["size"], c["encoding"]) == (0, "rotary")]
        for cell in cells[:3]:
            scale.measure(PRESETS[preset], cell, 0, CPU)
    assert seen == [10, 100, 10000] + [10000] * 3


def test_how_matrices_are_multiplied_is_said_and_left_as_it_was(monkeypatch):
    seen = []

    def watched(*_):
        seen.append(torch.get_float32_matmul_precision())
        raise FloatingPointError

    monkeypatch.setattr(lengths, "trained", watched)
    for preset in ("gpu", "full"):
        scale.measure(PRESETS[preset], scale.cells(PRESETS[preset])[0], 0, CPU)
        assert torch.get_float32_matmul_precision() == "highest"
        assert ("TF32" in scale.EXPERIMENT.setup(PRESETS[preset])) == (preset == "gpu")
    assert seen == ["high", "highest"]


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
def made(loss, rise=lambda name, n, seed: 0.0, sizes=None, seeds=(0, 1, 2, 3), preset="full") -> Record:
    """A record with ``loss(name, size, seed)`` in the middle of what is tried, and 0.5 more elsewhere."""
    settings = PRESETS[preset] | {"sizes": PRESETS[preset]["sizes"][:sizes]}
    record = Record("scale", preset, "", settings, list(seeds), "cpu", 1, {})
    for seed in seeds:
        for cell in scale.cells(settings):
            name, n = cell["encoding"], cell["size"]
            tried = scale.tries(scale.sized(settings, n), name)
            middle = {"size": n, "encoding": name} | tried[(len(tried) - 1) // 2] == cell
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


def test_ties_give_way_to_the_middle_only_where_all_experiments_have_the_grid():
    record = made(level)
    _, middle, fast = rates.grid(scale.sized(record.settings, 0)["lr"], own=False)
    for run in record:
        if (run.cell["size"], run.cell["encoding"], run.cell["rates"]) == (0, "rotary", fast):
            run.values["validation"] = 2.0 - 0.01 + 0.01 * run.seed
    assert scale.chosen(record, 0, "rotary") == tuple(middle)
    assert scale.chosen(scale.at_lowest(record), 0, "rotary") == tuple(fast)
    assert record.settings == PRESETS["full"]


def test_a_slope_for_each_seed():
    record = made(level)
    x = scale.decades(record)
    measured = [scale.interval([3 + 0.5 * a, 4 - 0.25 * a]) for a in x]
    assert scale.per_decade(record, measured).values == pytest.approx((0.5, -0.25))


def test_slopes_of_size_and_training_are_told_apart():
    record = made(level, preset="gpu")
    both = zip(scale.decades(record, scale.parameters), scale.decades(record, scale.characters), strict=True)
    measured = [scale.interval([1 + 0.5 * p - 0.1 * c, 2 - 0.25 * p + 0.3 * c]) for p, c in both]
    by_size, by_training = scale.of_each(record, measured)
    assert by_size.values == pytest.approx((0.5, -0.25)) and by_training.values == pytest.approx((-0.1, 0.3))


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


def test_whether_the_gap_shrinks_where_all_grows():
    start = "Where model and training grow together, the gap"
    assert verdict(start, with_gap([0.4, 0.3, 0.2, 0.1])) == HOLDS
    assert verdict(start, with_gap([0.1, 0.2, 0.3, 0.4])) == FAILS
    assert verdict(start, with_gap([0.4, 0.3, 0.2, 0.1], noise=0.2)) == OPEN
    assert verdict(start, with_gap([-0.1, -0.2, -0.3, -0.4])) == FAILS
    said = told(with_gap([-0.1, -0.2, -0.3, -0.4]))
    (finding,) = [f for claim, f in said.items() if claim.startswith(start)]
    assert "no gap that could close" in finding.why and "thousand times the largest" in finding.ours


def apart(of_size=0.0, of_training=0.0, noise=0.0, start=0.5):
    """RoPE is behind by so much, and by so much more with each model and with the longer training."""
    models = len(PRESETS["gpu"]["sizes"]) // 2

    def loss(name, n, seed):
        gap = start + of_size * (n % models) + of_training * (n // models)
        return 2 + (gap + noise * (-1) ** seed * n if name == "rotary" else 0.0)

    return loss


@pytest.mark.parametrize("what, other", [("size", "training"), ("training", "size")])
def test_whether_the_gap_closes(what, other):
    claim = f"The gap from RoPE to the biases closes with {what}"

    def found(preset="gpu", noise=0.0, start=0.5, **steps):
        loss = apart(**{f"of_{key}": step for key, step in steps.items()}, noise=noise, start=start)
        return told(loss, preset=preset).get(claim)

    assert found(**{what: -0.05}).verdict == HOLDS
    assert found(**{what: 0.05}).verdict == FAILS
    assert found(**{what: -0.05, other: 0.3}).verdict == HOLDS  # the other one changes nothing
    assert found(**{what: 0.05, other: -0.3}).verdict == FAILS
    undecided = found(**{what: -0.05}, noise=0.2)
    assert undecided.verdict == OPEN and "another seed costs" in undecided.reason
    ahead = found(**{what: -0.05}, start=-0.5)
    assert ahead.verdict == FAILS and "no gap" in ahead.reason
    assert found("full", **{what: -0.05}) is None  # a record where both grow can't tell


def test_a_verdict_that_hangs_on_the_choice_among_ties_is_not_shown():
    def record(tie):
        found = made(with_gap([0.4, 0.3, 0.2, 0.1]))
        for run in found:
            n, one = run.cell["size"], scale.sized(found.settings, run.cell["size"])
            fast = rates.grid(one["lr"], own=False)[2]
            if tie and (n, run.cell["encoding"], run.cell["rates"]) == (0, "rotary", fast):
                run.values["validation"], run.values["mean"] = 2.39, [1.9, 1.9]  # by 0.01 the lower one
        return {f.claim: f for f in scale.findings(found)}

    for claim, before in record(False).items():
        after = record(True)[claim]
        if "shrinks" in claim or "At every size" in claim:
            assert before.verdict == HOLDS and after.verdict == OPEN
            assert "the choice of rates" in after.reason and "lowest loss" in after.ours
        else:
            assert (before.verdict, before.reason) == (after.verdict, after.reason)


def test_whether_a_bigger_model_reads_further():
    def rises(step, noise=0.0):
        return lambda name, n, seed: 1 + (step + noise * (-1) ** seed) * n

    for start, preset in (
        ("A bigger model that is trained for longer", "full"),
        ("A bigger model reads further", "gpu"),
    ):
        assert verdict(start, level, rises(-0.2), preset=preset) == HOLDS
        assert verdict(start, level, rises(0.2), preset=preset) == FAILS
        assert verdict(start, level, rises(-0.1, noise=0.4), preset=preset) == OPEN


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
    record = made(level)
    for run in record:
        if run.cell["encoding"] == "t5" and run.cell["rates"][1] > 2 * run.cell["rates"][0]:
            run.values["validation"] -= 1.0
    (finding,) = [f for f in scale.findings(record) if f.claim.startswith(start)]
    assert finding.verdict == FAILS and "own parameters: size 1: t5; size 2: t5" in finding.ours


def test_so_are_bases_and_rates_of_a_bias_at_the_edge():
    start = "The grids of rates and bases"
    assert verdict(start, level, preset="gpu") == HOLDS
    record = made(level, preset="gpu")
    for run in record:
        n, name, (_, second) = run.cell["size"], run.cell["encoding"], scale.trial(run.cell)
        if (n, name, second) in ((1, "rotary", 10), (2, "t5", 1.6)):
            run.values["validation"] -= 1.0
    (finding,) = [f for f in scale.findings(record) if f.claim.startswith(start)]
    assert finding.verdict == FAILS and finding.ours.endswith(
        "lowest rate of a bias or base of RoPE: size 2: rotary; at the highest: size 3: t5"
    )


def test_no_claim_is_judged_twice():
    """Neither in one record, nor by a record where all grows and again by one where they vary apart."""
    claims = [f.claim for preset in ("full", "gpu") for f in scale.findings(made(level, preset=preset))]
    assert len(set(claims)) == len(claims)


def test_two_sizes_make_no_prediction():
    assert not any("thousand times" in finding.ours for finding in scale.findings(made(level, sizes=2)))
