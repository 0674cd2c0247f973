"""The search of learning rates: the same for all, on other data than those reported, and its choice used."""

import os

import pytest
import torch

from course.experiments import EXPERIMENTS, images, lengths, rates, sweep, tuning
from course.experiments.record import Record, Run
from course.verdicts import FAILS, HOLDS
from tutorial_lib import plots
from tutorial_lib.data import Corpus, kjv
from tutorial_lib.training import position_parameters

CPU = torch.device("cpu")
FULL = tuning.EXPERIMENT.presets["full"]


def searched(losses: dict, of="lengths", base=0.005, seeds=(100, 101)) -> Record:
    """A record of ``{encoding: {rates: loss of each seed}}``."""
    encodings = list(losses)
    record = Record(
        "tuning",
        "full",
        "",
        {of: {"lr": base, "encodings": encodings}},
        list(seeds),
        "cpu",
        1,
        {"python": "3", "torch": "2", "tutorial_lib": "0"},
    )
    record.runs = [
        Run({"of": of, "encoding": name, "rates": list(pair)}, seed, {"loss": loss}, 1.0)
        for name, tried in losses.items()
        for pair, found in tried.items()
        for seed, loss in zip(seeds, found, strict=True)
    ]
    return record


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """``shipped(losses)``: the record of the course says this."""
    monkeypatch.setattr(rates, "RECORDS", tmp_path)
    return lambda losses, **options: searched(losses, **options).save(tmp_path / "tuning-full.json")


# ---- the search ----
def test_every_trained_encoding_has_the_same_grid_and_the_rate_of_all_is_in_it():
    cells = tuning.cells(FULL)
    for name, settings in FULL.items():
        plain = EXPERIMENTS[name].cells(settings)
        assert plain and not [cell for cell in plain if "rates" in cell]
        for cell in plain:
            tried = [one["rates"] for one in cells if one == {"of": name} | cell | {"rates": one["rates"]}]
            made = tuning.MODULES[name].encoding(cell["encoding"], settings)
            own = bool(list(made.parameters()))
            assert tried == rates.grid(settings["lr"], own) and len(tried) == (6 if own else 3)
            assert list(tuning.at_one_rate(FULL, name)) in tried
            assert len({lr for lr, _ in tried}) == 3


def test_seeds_and_settings_are_those_of_the_experiments_but_no_seed_is_shared():
    for name, settings in FULL.items():
        experiment = EXPERIMENTS[name]
        full = experiment.presets["full"]
        assert {**settings, **full} == settings | {
            key: full[key] for key in ("protocol", "scalings") if key in full
        }
        assert not set(experiment.seeds["full"]) & set(tuning.EXPERIMENT.seeds["full"])


def test_the_rates_of_a_cell_reach_the_training(monkeypatch):
    made, adam = [], torch.optim.AdamW

    def watched(groups, **options):
        made.append((options["lr"], {p: group.get("lr") for group in groups for p in group["params"]}))
        return adam(groups, **options)

    monkeypatch.setattr(torch.optim, "AdamW", watched)
    for name, settings in FULL.items():
        few = settings | {"steps": 1, "batch": 2}
        cell = EXPERIMENTS[name].cells(few)[-1] | {"encoding": "sinusoidal 1-D" if name == "images" else "t5"}
        if name == "images":
            cell["encoding"] = "bias 2-D (Swin)"
        model = tuning.MODULES[name].trained(few, cell | {"rates": [0.25, 0.5]}, 0, CPU)
        lr, of = made.pop()
        own = position_parameters(model)
        assert lr == 0.25 and own and {of[p] for p in own} == {0.5}, name
        assert {rate for p, rate in of.items() if p not in own} == {None}
        tuning.MODULES[name].trained(few, cell, 0, CPU)
        assert made[0][0] == settings["lr"] and set(made.pop()[1].values()) == {None, settings["lr"]}


def test_no_data_that_are_reported_choose_a_rate():
    text = kjv()
    numbered = Corpus(text.text, text.symbols, text.train, torch.arange(len(text.test)))
    settings = FULL["lengths"]
    reported = numbered.windows(settings["windows"], settings["length"] * settings["multiples"][-1])
    chosen = numbered.windows(settings["windows"], 8 * settings["length"], between=True)
    reported, chosen = (set(torch.cat([x.flatten(), y.flatten()]).tolist()) for x, y in (reported, chosen))
    assert chosen and not reported & chosen
    train, kept, unseen = (set(part.tolist()) for part in images.parts())
    assert len(kept) == 200 and len(unseen) == 450 and len(train | kept | unseen) == 1797


def test_windows_between_others_must_not_reach_them():
    corpus = Corpus.of("abcdefghij" * 40)  # 40 characters are held out
    x, y = corpus.windows(3, 4, between=True)
    assert x.shape == y.shape == (3, 4)
    assert corpus.windows(3, 4)[0].tolist() != x.tolist()
    with pytest.raises(ValueError, match="between others need 4 × 2 × 6 held-out"):
        corpus.windows(3, 5, between=True)


def test_what_diverges_is_not_chosen(monkeypatch):
    def diverges(*_):
        raise FloatingPointError("the loss is nan")

    monkeypatch.setattr(lengths, "trained", diverges)
    cell = tuning.cells(FULL)[0]
    assert cell["of"] == "lengths" and tuning.measure(FULL, cell, 0, CPU) == {"loss": tuning.DIVERGED}


def test_a_tiny_search_can_be_made_drawn_and_told(tmp_path):
    tiny = {
        "tasks": FULL["tasks"] | {"encodings": ["none", "t5"], "steps": 1, "batch": 2, "test": 2},
        "images": FULL["images"] | {"encodings": ["none", "bias 2-D (Swin)"], "steps": 1, "batch": 2},
    }
    experiment = sweep.replace(tuning.EXPERIMENT, presets={"live": tiny})
    record = sweep.run(experiment, seeds=(100, 101), device="cpu", out=tmp_path / "x.json", progress=False)
    assert len(record.runs) == 2 * (5 * (3 + 6) + 3 + 6) == 2 * len(tuning.cells(tiny))
    assert plots.png(tuning.figure(record)).startswith(b"\x89PNG")
    assert "of 12 searches" in tuning.alt(record)


# ---- its choice ----
def test_the_lowest_mean_over_the_seeds_is_chosen(shipped):
    shipped({"t5": {(0.005, 0.005): (2.0, 2.0), (0.005, 0.1): (1.0, 2.9), (0.015, 0.3): (1.0, 3.1)}})
    assert rates.chosen("lengths", {"encoding": "t5"}) == [0.005, 0.1]
    os.utime(rates.RECORDS / "tuning-full.json", ns=(1, 1))
    shipped({"t5": {(0.005, 0.005): (1.0, 2.0), (0.005, 0.1): (1.0, 2.9)}})  # it is read anew
    assert rates.chosen("lengths", {"encoding": "t5"}) == [0.005, 0.005]


def test_where_rates_are_as_good_the_nearest_to_that_of_all_is_chosen():
    losses = {(0.1, 0.1): 0.5, (0.1, 2.0): 0.5, (0.3, 0.3): 0.515, (0.3, 6.0): 0.4999, (0.9, 0.9): 0.499}
    assert rates.best(losses) == (0.3, 0.3)
    assert rates.best(losses | {(0.3, 0.3): 0.53}) == (0.3, 6.0)
    assert rates.best(losses | {(0.3, 0.3): 0.53, (0.3, 6.0): 0.53}) == (0.1, 0.1)
    assert rates.best(losses | {(0.9, 0.9): 0.4}) == (0.9, 0.9)


def test_what_was_not_searched_says_how(shipped):
    with pytest.raises(FileNotFoundError, match="run tuning --preset full"):
        rates.chosen("lengths", {"encoding": "t5"})
    shipped({"t5": {(0.005, 0.005): (2.0, 2.0)}})
    with pytest.raises(KeyError, match="no learning rates were searched for .*'alibi'.*run tuning"):
        rates.chosen("lengths", {"encoding": "alibi"})


def test_each_encoding_is_measured_at_both_and_its_own_counts(shipped):
    shipped({name: {(0.005, 0.005): (2.0, 2.0), (0.005, 0.1): (1.0, 1.0)} for name in ("t5", "alibi")})
    settings = FULL["lengths"] | {"lr": 0.005, "encodings": ["t5", "alibi"], "protocol": ["one", "own"]}
    cells = lengths.cells(settings)
    own = {"rates": [0.005, 0.1]}
    assert cells == [
        {"encoding": "t5"},
        {"encoding": "alibi"},
        {"encoding": "t5"} | own,
        {"encoding": "alibi"} | own,
    ]
    assert lengths.cells(settings | {"protocol": ["own"]}) == cells[2:]
    assert rates.of(settings, cells[2]) == {"lr": 0.005, "position_lr": 0.1}
    assert rates.of(settings, cells[0]) == {"lr": 0.005, "position_lr": 0.005}
    record = Record("lengths", "full", "", settings, [0], "cpu", 1, {})
    record.runs = [Run(cell, 0, {"n": n}, 1.0) for n, cell in enumerate(cells)]
    assert record.values("n", encoding="t5") == [2]
    assert record.at_one_rate().values("n", encoding="t5") == [0]
    assert record.values("n", encoding="alibi", rates=[0.005, 0.1]) == [3]


def test_whose_own_rate_is_that_of_all_is_trained_once_and_counts_for_both(shipped):
    one, own = (0.005, 0.005), (0.005, 0.1)
    shipped({"alibi": {one: (1.0, 1.0)}, "t5": {one: (2.0, 2.0), own: (1.0, 1.0)}})
    settings = FULL["lengths"] | {"lr": 0.005, "encodings": ["alibi", "t5"], "protocol": ["one", "own"]}
    cells = lengths.cells(settings)
    assert cells == [{"encoding": "alibi"}, {"encoding": "t5"}, {"encoding": "t5", "rates": [0.005, 0.1]}]
    assert lengths.cells(settings | {"protocol": ["own"]})[0] == {"encoding": "alibi", "rates": [*one]}
    record = Record("lengths", "full", "", settings, [0], "cpu", 1, {})
    record.runs = [Run(cell, 0, {"n": n}, 1.0) for n, cell in enumerate(cells)]
    for some, alibi, t5 in ((record, 0, 2), (record.at_one_rate(), 0, 1)):
        assert (some.values("n", encoding="alibi"), some.values("n", encoding="t5")) == ([alibi], [t5])


def test_what_is_said_of_the_search_turns_with_the_numbers():
    same = {(0.001, 0.001): (2.5, 2.5), (0.005, 0.005): (2.0, 2.0), (0.015, 0.015): (2.5, 2.5)}
    better = same | {(0.005, 0.1): (1.9, 1.9)}
    slower = same | {(0.001, 0.001): (1.0, 1.0)}

    def told(**losses):
        return tuning.findings(searched(losses))

    assert [f.verdict for f in told(rotary=same)] == [HOLDS, HOLDS]
    fair, wide = told(rotary=same, t5=better)
    assert (fair.verdict, wide.verdict) == (FAILS, FAILS)
    assert "the faster one is best for 1: lengths (t5)" in wide.ours
    assert "in 1 of 2 searches" in fair.ours and "lengths: t5 0.100" in fair.ours
    fair, wide = told(rotary=slower, t5=better)
    assert (fair.verdict, wide.verdict) == (FAILS, FAILS)
    assert "best at the slowest rate (1): lengths (rotary). At the fastest (0): none" in wide.ours
