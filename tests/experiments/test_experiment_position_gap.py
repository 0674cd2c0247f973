"""A gap in the positions of a real model: what is read where, the wavelengths, and what the record says."""

import math
from types import SimpleNamespace

import pytest
import torch

from course.experiments import position_gap
from course.experiments.record import Record, Run
from course.verdicts import FAILS, HOLDS, IDENTITY, OPEN
from tutorial_lib.data import SMOLLM2, kjv, load_smollm2
from tutorial_lib.data.pretrained import SMOLLM2_TRAININGS
from tutorial_lib.encodings import Rotary, Sinusoidal
from tutorial_lib.model import Config, Transformer
from tutorial_lib.plots import png
from tutorial_lib.training import seeded

CPU = torch.device("cpu")
TINY = {"length": 12, "scalings": list(position_gap.SCALINGS), "gaps": [0, 9000, 48_000]}


# ---- the wavelengths ----


@pytest.mark.parametrize("name", [*position_gap.SCALINGS, *position_gap.BASES])
@pytest.mark.parametrize(
    ("trainings", "fast"),
    [(((8192, 100_000.0),), 20), (((2048, 10_000.0),), 21), (((2048, 10_000.0), (8192, 100_000.0)), 21)],
)
def test_limits_are_where_an_angle_is_new(name, trainings, fast):
    new, distances = position_gap.frequencies(name).theta(), torch.arange(90_000, dtype=torch.float64)
    limits = position_gap.limits(name, trainings)
    for pair in range(64 // 2):
        seen = max(length * base ** (-pair / 32) for length, base in trainings)
        if seen >= 2 * math.pi:
            assert limits[pair] == math.inf
            continue
        beyond = (distances * new[pair] > seen * (1 + 1e-12)).nonzero()
        first = int(beyond[0]) if len(beyond) else 90_000
        assert first == 90_000 or limits[pair] <= first <= limits[pair] + 1.001
    assert limits.isinf().sum() == fast  # the next pair never made a whole turn


@pytest.mark.parametrize("name", position_gap.SCALINGS)
def test_stretch_is_how_much_later_an_angle_is_new(name):
    expected = {
        "raw": 1,
        "PI, s = 4": 4,
        "YaRN, s = 4": 4,
        "YaRN, s = 8": 8,
        "NTK-aware, s = 4": 4 ** (21 / 31),
        "NTK-aware, s = 8": 8 ** (21 / 31),
    }[name]
    assert position_gap.stretch(name) == pytest.approx(expected)


def test_the_pre_training_led_every_slow_pair_further():
    """So both trainings together have shown what the first has; makers choose a base like that."""
    both, first = (position_gap.limits("raw", each) for each in (SMOLLM2_TRAININGS, SMOLLM2_TRAININGS[:1]))
    assert torch.equal(both, first) and both.min() > SMOLLM2_TRAININGS[-1][0]


# ---- what is measured ----


@pytest.fixture
def small(monkeypatch, request):
    """A small random model in place of SmolLM2; a token is a character."""
    layers = getattr(request, "param", 2)
    model = seeded(lambda: Transformer(Config(50, 64, n_layers=layers, n_heads=1), Rotary(64, base=1e5)), 0)
    stand_in = SimpleNamespace(
        model=model.eval(), encode=lambda text: torch.tensor([[ord(symbol) % 50 for symbol in text]])
    )
    monkeypatch.setattr(position_gap, "load_smollm2", lambda: stand_in)
    return model


@torch.no_grad()
def slowly(model, tokens, positions):
    """The mean loss of all tokens but the first of the last 12, each by itself; and these logits."""
    logits = model(tokens, positions)[0, -12:]
    targets = tokens[0, -12:]
    return sum(-logits[n].log_softmax(-1)[targets[n + 1]].item() for n in range(11)) / 11, logits


@pytest.mark.parametrize("name", ["raw", "PI, s = 4", "YaRN, s = 8"])
def test_the_second_copy_is_read_behind_its_gap(name, small):
    own = small.encoding
    found = position_gap.measure(TINY, {"scaling": name}, 3, CPU)
    assert small.encoding is own and position_gap.measure(TINY, {"scaling": name}, 3, CPU) == found
    assert position_gap.measure(TINY, {"scaling": name}, 4, CPU) != found
    small.encoding = Rotary(64, frequencies=position_gap.frequencies(name))
    tokens, once = position_gap.passage(3, 12), list(range(12))
    assert found["first"] == pytest.approx(slowly(small, tokens, torch.tensor(once))[0], abs=1e-5)
    for size, loss in zip(TINY["gaps"], found["repeat"], strict=True):
        positions = torch.tensor(once + [12 + size + n for n in range(12)])
        assert loss == pytest.approx(slowly(small, tokens.repeat(1, 2), positions)[0], abs=1e-5)
    assert found["moved"] < 1e-4


@pytest.mark.parametrize("small", [1], indirect=True)
def test_a_gap_is_filled_and_the_first_copy_taken_out(small):
    """One layer, so that what the text in between is to it does not depend on the first copy."""
    tokens, between = position_gap.passage(3, 12), position_gap.passage(103, 300)
    gaps = [0, 20, 300]
    found = position_gap.measure(TINY, {"scaling": "raw", "between": "bible", "gaps": gaps}, 3, CPU)
    small.encoding = Rotary(64, frequencies=position_gap.frequencies("raw"))
    for n, size in enumerate(gaps):
        whole = torch.cat([tokens, between[:, :size], tokens], 1)
        where = torch.arange(whole.shape[1])
        assert found["repeat"][n] == pytest.approx(slowly(small, whole, where)[0], abs=1e-5)
        assert found["unseen"][n] == pytest.approx(slowly(small, whole[:, 12:], where[12:])[0], abs=1e-5)
    assert abs(found["repeat"][2] - found["unseen"][2]) > 1e-4


def test_moved_is_the_largest_change_of_a_logit(small, monkeypatch):
    absolute = Sinusoidal(64)
    monkeypatch.setattr(position_gap, "Rotary", lambda head_dim, frequencies: absolute)
    found = position_gap.measure(TINY, {"scaling": "raw"}, 0, CPU)
    small.encoding = absolute
    here, there = (slowly(small, position_gap.passage(0, 12), torch.arange(12) + by)[1] for by in (0, 48_000))
    expected = (here - there).abs().max().item()
    assert found["moved"] == pytest.approx(expected, rel=1e-4) and expected > 0.1


def test_texts_are_verses():
    model = load_smollm2()
    texts = [position_gap.passage(seed, 160) for seed in range(8)]
    assert all(text.shape == (1, 160) for text in texts)
    assert all("\n" + model.decode(text) in kjv().text for text in texts)
    assert len({tuple(text[0].tolist()) for text in texts}) == 8
    assert torch.equal(texts[1], position_gap.passage(1, 160))


@pytest.mark.parametrize(("kind", "word"), [("code", "\ndef "), ("documentation", "expression")])
def test_other_kinds_of_text(kind, word, small):
    assert word in position_gap.whole(kind) and len(position_gap.whole(kind)) > 300_000
    passages = [position_gap.passage(seed, 40, kind)[0].tolist() for seed in range(8)]
    as_ids = "".join(chr(ord(symbol) % 50) for symbol in "\n" + position_gap.whole(kind))
    begins = chr(ord("\n") % 50)
    assert all(begins + "".join(map(chr, ids)) in as_ids for ids in passages)
    assert len({tuple(ids) for ids in passages}) == 8
    bible, other = (
        position_gap.measure(TINY, {"scaling": "raw"} | text, 3, CPU) for text in ({}, {"text": kind})
    )
    assert bible["first"] != other["first"]


def test_the_real_model_loses_the_copy_and_yarn_finds_it():
    settings = {"length": 48, "gaps": [0, 9000]}
    assert SMOLLM2.head_dim == 64
    raw, yarn = (position_gap.measure(settings, {"scaling": name}, 0, CPU) for name in ("raw", "YaRN, s = 4"))
    assert raw["repeat"][0] < raw["first"] - 1.5 and raw["repeat"][1] > raw["first"] - 0.5
    assert max(yarn["repeat"]) < raw["first"] - 1.5
    assert raw["moved"] < 1e-3


# ---- what the record says ----

REACH = {
    "raw": 6500,
    "PI, s = 4": 0,
    "NTK-aware, s = 4": 16_500,
    "YaRN, s = 4": 26_500,
    "NTK-aware, s = 8": 25_000,
    "YaRN, s = 8": 52_500,
    "base 10,000": 1450,
    "base 20,000": 2200,
    "base 50,000": 4100,
}
"""Distances up to which a made record finds the copy, or one for each of three passages."""


def made(reach=REACH, first=None, moved=1e-4, preset="full") -> Record:
    def of(numbers, seed):
        return numbers[seed] if isinstance(numbers, tuple) else numbers

    settings = position_gap.EXPERIMENT.presets[preset]
    record = Record("position_gap", preset, "", settings, [0, 1, 2], "cpu", 1, {})
    for seed in record.seeds:
        for cell in position_gap.cells(settings):
            name = cell["scaling"]
            gaps = cell.get("gaps", settings["gaps"])
            losses = [0.5 if g + 160 <= of(reach[name], seed) else 3.5 for g in gaps]
            price = of((first or {"PI, s = 4": 1.0}).get(name, 0.0), seed)
            values = {
                "first": 3.4 + price + 0.01 * seed,
                "repeat": [x + 0.01 * seed for x in losses],
                "moved": moved,
            } | ({"unseen": [3.5 + 0.01 * seed] * len(gaps)} if "between" in cell else {})
            record.runs.append(Run(cell, seed, values, 0.0))
    return record


def test_reaches():
    settings = {"length": 100, "gaps": [0, 1000, 3000]}
    record = Record("position_gap", "live", "", settings, [0, 1], "cpu", 1, {})
    for name, losses in (("raw", ([0, 1, 3], [0, 4, 4])), ("PI, s = 4", ([3, 3, 3], [0, 0, 0]))):
        for seed in record.seeds:
            record.runs.append(Run({"scaling": name}, seed, {"first": 4.0, "repeat": losses[seed]}, 0.0))
    assert position_gap.reaches(record, "raw") == [2100.0, 600.0]
    assert position_gap.reaches(record, "PI, s = 4") == [0.0, 3100.0]
    assert position_gap.ratio(record, "PI, s = 4").mean == pytest.approx((0 + 3100 / 600) / 2)
    assert position_gap.left(record, "raw", 1000).values == (0.75, 0.0)
    assert position_gap.left(record, "PI, s = 4", 0).values == (0.25, 1.0)
    settings["between"] = {"bible": [0, 2000]}
    for seed, repeat in enumerate(([1.0, 2.0], [0.0, 4.0])):
        values = {"first": 4.0, "repeat": repeat, "unseen": [4.0, 5.0]}
        record.runs.append(Run({"scaling": "raw", "between": "bible", "gaps": [0, 2000]}, seed, values, 0.0))
    assert position_gap.left_in_text(record, 2000).values == (0.75, 0.2)


PI, NTK, YARN, NTK8, YARN8 = (name for name in position_gap.SCALINGS if name != "raw")
READS = "A scaling by s reads s times as far: "
WAVES = "How far a scaling carries is told by its wavelengths: "
PAPER = {
    "RoPE as trained": HOLDS,
    "Only distances": IDENTITY,
    "Without tuning, NTK-aware scaling and YaRN carry": HOLDS,
    "Without tuning, interpolation": HOLDS,
    "Without tuning, NTK-aware scaling and YaRN cost": HOLDS,
    "Without tuning, NTK-aware scaling costs": HOLDS,
    "Without tuning, YaRN costs": HOLDS,
    READS + PI: FAILS,
    READS + NTK: FAILS,
    READS + YARN: HOLDS,
    READS + NTK8: FAILS,
    READS + YARN8: HOLDS,
    "NTK-aware scaling needs": HOLDS,
    "Without tuning and at the same s": HOLDS,
    "The factor s": HOLDS,
    "A factor s": HOLDS,
    WAVES + "position": FAILS,
    WAVES + "NTK": HOLDS,
    WAVES + "YaRN": HOLDS,
    "No scaling carries": HOLDS,
    "No scaling or base": FAILS,
    "With its pre-training": HOLDS,
    "With real text in the gap": HOLDS,
}
"""How claims begin, and their verdicts on the record that is made of REACH."""


def verdicts(*args, **kwargs):
    """By claim, where they differ from those on REACH."""
    findings = position_gap.findings(made(*args, **kwargs))[: len(PAPER)]
    assert len(findings) == len(PAPER)
    assert all(f.claim.startswith(claim) for f, claim in zip(findings, PAPER, strict=True))
    return {claim: f.verdict for f, claim in zip(findings, PAPER, strict=True) if f.verdict != PAPER[claim]}


def test_findings_follow_the_numbers():
    assert verdicts() == {}
    everywhere = verdicts(dict.fromkeys(REACH, 70_000), {NTK: 1.0, YARN: 1.0}, 0.1)  # and raw itself as far
    carry, enough = "Without tuning, NTK-aware scaling and YaRN carry", "A factor s"
    hold = (carry, enough, "NTK-aware scaling needs")
    assert everywhere == {claim: FAILS for claim in PAPER if PAPER[claim] != FAILS and claim not in hold}
    assert verdicts(REACH | {NTK: 0, YARN8: 0}) == {
        carry: FAILS,
        enough: FAILS,
        READS + YARN8: FAILS,
        WAVES + "NTK": FAILS,
        WAVES + "YaRN": FAILS,
        "Without tuning and at the same s": FAILS,
    }
    assert verdicts(REACH | {NTK: 30_000}) == {
        READS + NTK: HOLDS,
        "NTK-aware scaling needs": FAILS,
        "Without tuning and at the same s": FAILS,
        WAVES + "NTK": FAILS,
        "No scaling carries": FAILS,
    }
    assert verdicts(REACH | {PI: 27_000}) == {
        "Without tuning, interpolation": FAILS,
        READS + PI: HOLDS,
        WAVES + "position": HOLDS,
    }
    assert verdicts(REACH | {NTK8: 52_000})[READS + NTK8] == HOLDS


def test_passages_that_differ_show_nothing():
    reach = dict.fromkeys(REACH, (0, 30_000, 70_000)) | dict.fromkeys((NTK, NTK8), (70_000, 30_000, 0))
    found = verdicts(reach | {"raw": (6500, 6500, 70_000)}, {NTK: (-1.0, 0.0, 1.0), YARN: (2.0, 0.0, -2.0)})
    assert found == {claim: OPEN for claim in PAPER if not claim.startswith("Only")}


def test_intervals_say_over_what_they_run():
    findings = position_gap.findings(made())
    for n, f in enumerate(findings):
        over = "one book" if n < len(PAPER) else "each kind of text"
        assert f.ours.endswith(f"(3 passages of {over}, one model)")
    assert not any("seed" in text for f in findings for text in (f.ours, f.why, f.claim))


@pytest.mark.parametrize("preset", ["live", "full"])
def test_figure_and_alt(preset):
    record = made(preset=preset)
    scaled = len(record.settings["scalings"]) - 1
    more = sum(n * (key in record.settings) for key, n in {"texts": 3, "bases": 2, "between": 1}.items())
    assert len(position_gap.findings(record)) == 15 + scaled + more
    assert len(png(position_gap.figure(record))) > 20_000
    assert "PI, s = 4: 0; NTK-aware" in position_gap.alt(
        record
    ) and "YaRN, s = 8: 74,245." in position_gap.alt(record)


def test_other_texts_are_judged_by_themselves():
    def told(of_code):
        record = made()
        for run in record.runs:
            if run.cell.get("text") == "code" and run.cell["scaling"] in of_code:
                losses = of_code[run.cell["scaling"]]
                run.values["repeat"] = [losses[run.seed]] * len(run.values["repeat"])
        return [f.verdict for f in position_gap.findings(record)[len(PAPER) :]]

    assert told({}) == [HOLDS, HOLDS, HOLDS]
    raw = {"raw": (0.5, 0.5, 0.5)}
    assert told(raw) == [FAILS, HOLDS, HOLDS]
    assert told({NTK: (3.5, 3.5, 3.5), PI: (0.5, 0.5, 0.5)}) == [HOLDS, FAILS, FAILS]
    assert told({NTK: (0.5, 3.5, 0.5), PI: (0.5, 3.5, 3.5)}) == [HOLDS, OPEN, OPEN]
