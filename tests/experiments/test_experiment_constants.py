"""The search of constants: one rule for all, other seeds and text than reported, and never at an edge."""

import math
import random

import pytest
import torch

from course.experiments import constants, lengths, load, rates
from course.experiments.record import Record, Run
from course.verdicts import FAILS, HOLDS, OPEN
from tutorial_lib.training import DECAY, _groups, position_parameters

CPU = torch.device("cpu")
FULL = constants.EXPERIMENT.presets["full"]
TINY = FULL | {"steps": 2, "windows": 6, "length": 32, "multiples": [1, 2], "trials": 7, "d_model": 16}


def near(point, own=True):
    return constants.neighbours(point, constants.SEARCHED["alibi"], own)


# ---- the walk ----
@pytest.mark.parametrize("seed", range(40))
def test_it_ends_where_no_step_helps_or_says_that_the_trials_are_used_up(seed):
    draw = random.Random(seed)
    lowest = draw.randint(-4, 4), draw.randint(-2, 2), draw.randint(-3, 3)
    trials, steep = draw.randint(6, 30), draw.uniform(0.03, 1.0)
    bottom = 2.0 ** lowest[0], 0.01 * 3.0 ** lowest[1], 5.0 ** lowest[2]

    def bowl(point):
        return steep * sum(abs(math.log(x / y)) for x, y in zip(point, bottom, strict=True))

    starts = [(value, 0.01, 1.0) for value in constants.FACTORS]
    tried, best, left = constants.walk(starts, near, bowl, trials)
    assert len(tried) <= trials and best in tried
    around = {constants._rounded(point) for axis in near(best) for point in axis}
    assert left == len(around - set(tried))
    if not left:
        assert all(tried[point] >= tried[best] - rates.EQUAL for point in around)
        if steep > 0.1:
            assert best == pytest.approx(bottom, rel=1e-4)


@pytest.mark.parametrize("name", constants.SEARCHED)
def test_the_usual_constant_is_that_of_the_other_experiments_and_all_can_be_built(name):
    constant, L = constants.SEARCHED[name], FULL["length"]
    assert (
        constant.usual in constant.values
        and len(constant.values) == 5
        and min(constant.values) > constant.least
    )
    built = {value: constant.build(name, value, FULL) for value in constant.values}
    torch.manual_seed(0)
    ours = constant.build(name, constant.usual, FULL)
    torch.manual_seed(0)
    theirs = lengths.encoding(name, FULL)
    x, positions = torch.randn(1, 4, L, 16), torch.arange(L)
    tokens = torch.randn(1, L, FULL["d_model"])

    def gives(encoding):
        if "embed" in encoding.doors:
            return encoding.embed(tokens, positions)
        if "rotate" in encoding.doors:
            return torch.stack(encoding.rotate(x, x, positions, positions))
        if "bias" in encoding.doors:
            return encoding.bias(positions, positions).tril()
        return encoding.content_bias(x, x, positions, positions)

    assert torch.allclose(gives(ours), gives(theirs), atol=1e-6)
    other = next(value for value in constant.values if value != constant.usual)
    assert gives(built[other]).shape != gives(ours).shape or not torch.equal(gives(built[other]), gives(ours))


def test_it_searches_with_seeds_and_text_that_are_not_reported(monkeypatch):
    seeds, asked = [], []
    trained, corpus = lengths.trained, constants.kjv()

    def watched(settings, cell, seed, *more, **named):
        seeds.append(seed)
        return trained(settings, cell, seed, *more, **named)

    class Watched:
        def windows(self, count, length, between=False):
            asked.append((len(seeds), between))
            return corpus.windows(count, length, between=between)

    monkeypatch.setattr(lengths, "trained", watched)
    monkeypatch.setattr(constants, "kjv", Watched)
    monkeypatch.setattr(rates, "chosen", lambda *_what: [0.01, 0.2])
    values = constants.measure(TINY, {"encoding": "t5"}, 3, CPU)
    searched = len(values["losses"])
    assert seeds == [103] * searched + [3] * 3 and searched <= TINY["trials"]
    assert [between for _n, between in asked] == [True] * searched + [False]
    assert values["undecayed"] != values["found"] and len(values["found"]) == len(TINY["multiples"])


def test_tables_decay_as_all_else_does_unless_they_are_told_otherwise():
    model = lengths.trained(TINY | {"steps": 1}, {"encoding": "t5"}, 0, CPU)
    plain = torch.optim.AdamW(_groups(model, 0.2, None), weight_decay=DECAY).param_groups
    assert [(group["lr"], group["weight_decay"]) for group in plain] == [(1e-3, DECAY), (0.2, DECAY)]
    without = torch.optim.AdamW(_groups(model, None, 0.0), weight_decay=DECAY).param_groups
    assert [(group["lr"], group["weight_decay"]) for group in without] == [(1e-3, DECAY), (1e-3, 0.0)]
    assert {*without[1]["params"]} == {*position_parameters(model)}


# ---- what is said ----
def made(encodings, seeds=(0, 1, 2)):
    """A record; ``encodings``: ``{name: (usual, found, open)}``, losses at L and far."""
    record = Record("constants", "full", "", FULL | {"encodings": [*encodings]}, [*seeds], "cpu", 1, {})
    record.runs = [
        Run(
            {"encoding": name},
            seed,
            {
                "best": [constants.SEARCHED[name].usual, 0.01, 1.0],
                "losses": [2.0] * 9,
                "open": left,
                "usual": [loss + seed / 1000 for loss in usual],
                "found": [loss + seed / 1000 for loss in found],
            },
            1.0,
        )
        for name, (usual, found, left) in encodings.items()
        for seed in seeds
    ]
    return record


def verdicts(record):
    return [finding.verdict for finding in constants.findings(record)]


def test_each_verdict_turns():
    rope, alibi = ((1.8, 3.2), (1.8, 1.81), 0), ((1.9, 1.9), (1.9, 1.9), 0)
    assert verdicts(made({"rotary": rope, "alibi": alibi})) == [HOLDS, HOLDS, FAILS, HOLDS]
    level = ((1.9, 1.9), (1.9, 1.9), 0)  # nobody could say which of two such is better
    assert verdicts(made({"fire": level, "alibi": level})) == [OPEN, HOLDS]
    same = ((1.8, 3.2), (1.8, 3.2), 1)
    assert verdicts(made({"rotary": same, "alibi": alibi})) == [FAILS, FAILS, HOLDS, FAILS]
    (_a, _b, order, _c) = constants.findings(made({"rotary": rope, "alibi": alibi}))
    assert "1 in another order (rotary before alibi at 16 L)" in order.ours


# ---- the record ----
def test_no_reported_optimum_lies_at_an_edge():
    record = load("constants")
    for run in record:
        constant, values = constants.SEARCHED[run.cell["encoding"]], run.values
        points = zip(values["constants"], values["lrs"], values["times"], strict=True)
        tried = dict(zip(points, values["losses"], strict=True))
        best, own = tuple(values["best"]), len({*values["times"]}) > 1
        around = [constants._rounded(p) for axis in constants.neighbours(best, constant, own) for p in axis]
        assert sum(point not in tried for point in around) == values["open"], run.cell
        assert all(tried[point] >= tried[best] - rates.EQUAL for point in around if point in tried)
        assert len(tried) <= record.settings["trials"]
