"""Who uses what is far? Texts against slow definitions, readers of known reach, findings that can turn."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from course.experiments import long_range, rates, sweep
from course.experiments.record import Record, Run
from course.verdicts import FAILS, HOLDS, OPEN
from tutorial_lib import plots
from tutorial_lib.data import Corpus, kjv

PRESETS = long_range.EXPERIMENT.presets


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def places(text, span):
    """Where a passage of ``span`` characters comes twice without an overlap, as pairs."""
    starts = range(len(text) - span + 1)
    return [
        (i, j) for i in starts for j in starts if j >= i + span and text[i : i + span] == text[j : j + span]
    ]


# ---- the texts ----
def test_in_a_training_text_one_passage_comes_twice_and_all_else_is_the_corpus():
    size, length, span = 200, 40, 12
    drawn = long_range.texts(*kjv().batch(size, length, seeded()))
    made = long_range.planted(kjv(), size, length, span, seeded())
    firsts, seconds = set(), set()
    for before, after in zip(drawn.tolist(), made.tolist(), strict=True):
        (i, j), *_ = [
            (i, j)
            for i, j in places(after, span)
            if after == before[:j] + before[i : i + span] + before[j + span :]
        ]
        firsts.add(i)
        seconds.add(j)
    assert min(firsts) == 0 and max(firsts) >= length - 2 * span - 3
    assert min(seconds) <= span + 3 and max(seconds) == length + 1 - span


def test_the_smallest_text_has_room_for_both():
    made = long_range.planted(kjv(), 50, 23, 12, seeded())
    assert made.shape == (50, 24) and torch.equal(made[:, :12], made[:, 12:])


def test_a_text_of_one_passage_has_its_period():
    drawn = long_range.texts(*kjv().batch(100, 40, seeded()))
    periods = set()
    made = long_range.repeated(kjv(), 100, 40, 12, seeded())
    for before, after in zip(drawn.tolist(), made.tolist(), strict=True):
        fit = [p for p in range(6, 13) if after == [before[n % p] for n in range(41)]]
        assert fit
        periods.add(fit[0])
    assert periods == set(range(6, 13))


@pytest.mark.parametrize("multiple", [1, 2, 8])
def test_what_is_read_differs_in_the_first_passage_alone(multiple):
    count, L, span = 30, 40, 15
    length = multiple * L
    again, new = long_range.reading(kjv(), count, length, span, seeded())
    drawn, found = long_range.texts(*kjv().windows(count, length)), set()
    for n, (text, first, second) in enumerate(zip(drawn.tolist(), again.tolist(), new.tolist(), strict=True)):
        passage, other = text[-span:], drawn[n - 1, -span:].tolist()
        assert first[-span:] == second[-span:] == passage
        i = next(i for i in range(span) if first == text[:i] + passage + text[i + span :])
        assert second == text[:i] + other + text[i + span :]
        assert i + span <= length + 1 - span
        found.add(i)
    assert len(found) > 5
    if multiple > 1:  # a window of L sees no difference
        assert torch.equal(again[:, -L - 1 :], new[:, -L - 1 :])


def test_every_preset_leaves_the_first_passage_outside_of_the_window():
    for settings in PRESETS.values():
        assert 2 * settings["span"] <= settings["length"] + 1 and long_range.KNOWN < settings["span"] / 2
        assert settings["multiples"][0] == 1 and settings["batch"] % 2 == 0


# ---- readers whose reach is known ----
class Copyist(nn.Module):
    """Predicts what followed when these three tokens last stood there, at most ``reach`` tokens back."""

    def __init__(self, reach):
        super().__init__()
        self.weight, self.reach, self.read = nn.Parameter(torch.zeros(())), reach, []

    def forward(self, tokens):
        self.read.append(tokens.shape[1])
        logits = torch.zeros(*tokens.shape, 65)
        for row, text in enumerate(tokens.tolist()):
            for i in range(3, len(text)):
                for j in range(i - 1, max(2, i - self.reach), -1):
                    if text[j - 2 : j + 1] == text[i - 2 : i + 1]:
                        logits[row, i, text[j + 1]] = 30.0
                        break
        return logits


def drawn(length, span):
    """Random letters of 65 with a passage again, and with another one."""
    texts = torch.randint(65, (2, 4, length + 1), generator=seeded(3))
    again, new = texts[0], texts[0].clone()
    again[:, 2 : 2 + span], new[:, 2 : 2 + span] = again[:, -span:], texts[1][:, :span]
    return again, new


def test_who_sees_all_uses_the_passage_and_the_window_does_not():
    L, span, nothing = 32, 12, math.log(65)
    for length, reach, again, cut in ((32, 99, 0, 0), (96, 99, 0, nothing), (96, 32, nothing, nothing)):
        model = Copyist(reach)
        found = long_range.losses(model, *drawn(length, span), L, span)
        assert model.read == [length, length, L]
        assert found == pytest.approx({"again": again, "new": nothing, "cut": cut}, abs=0.01)
        if reach <= L:
            assert found["again"] == found["new"] == found["cut"]


def test_the_characters_by_which_it_is_recognised_do_not_count(monkeypatch):
    monkeypatch.setattr(long_range, "KNOWN", 2)  # three are needed
    found = long_range.losses(Copyist(99), *drawn(96, 12), 32, 12)
    assert found["again"] == pytest.approx(math.log(65) / 10, abs=0.01)


# ---- a record ----
@pytest.mark.parametrize("preset", PRESETS)
def test_a_record_with_few_steps(preset, tmp_path, monkeypatch):
    """All cells and multiples; the model is narrow and has one layer, and L is short."""
    asked, short = [], Corpus.of(kjv().text[:60000])
    monkeypatch.setattr(long_range, "kjv", lambda: short)
    monkeypatch.setattr(rates, "chosen", lambda *of: asked.append(of) or [0.015, 0.3])
    few = {
        "d_model": 8 * PRESETS[preset]["heads"],
        "layers": 1,
        "length": 24,
        "span": 12,
        "steps": 1,
        "batch": 4,
        "windows": 3,
    }
    experiment = dataclasses.replace(long_range.EXPERIMENT, presets={preset: PRESETS[preset] | few})
    path = tmp_path / "record.json"
    record = sweep.run(experiment, preset, seeds=(0, 1), device="cpu", out=path, progress=False)
    assert Record.load(path) == record
    assert [cell["encoding"] for cell in record.cells()] == PRESETS[preset]["encodings"]
    found = [cell["rates"] for cell in record.cells() if "rates" in cell]
    assert found == [[0.005, 0.1]] * len(found) and bool(found) == bool(asked)
    assert bool(asked) == ("protocol" in PRESETS[preset]) and all(of[0] == "lengths" for of in asked)
    for run in record:
        assert all(len(found) == 5 and min(found) > 2 for found in run.values.values())
        assert run.values["cut"][0] == run.values["again"][0]
    assert plots.png(experiment.figure(record)).startswith(b"\x89PNG")
    assert "From L to 16 L" in experiment.alt(record)
    assert all(finding.ours for finding in experiment.findings(record))
    first = record.runs[0]
    assert experiment.measure(record.settings, first.cell, first.seed, torch.device("cpu")) == first.values


def made(use, flat=0.0, pays=None, noise=0.0) -> Record:
    """A record of ``{encoding: [use at each multiple]}``; from seed to seed they differ by ``noise``."""
    settings = {"encodings": [*use], "multiples": long_range.MULTIPLES}
    record = Record("long_range", "full", "", settings, [0, 1, 2], "cpu", 1, {})
    for seed in record.seeds:
        for name, uses in use.items():
            new = [2.0 + flat * n / 4 for n in range(5)]
            again = [x - u - noise * (seed - 1) for x, u in zip(new, uses, strict=True)]
            paid = uses if pays is None else [pays] * 5
            values = {"new": new, "again": again, "cut": [x + p for x, p in zip(again, paid, strict=True)]}
            record.runs.append(Run({"encoding": name}, seed, values, 1.0))
    return record


def verdict(start, *args, **options):
    (found,) = [f for f in long_range.findings(made(*args, **options)) if f.claim.startswith(start)]
    assert found.verdict == HOLDS or found.reason
    return found.verdict


NEAR, ALL, NONE = [1.0, 0.0, 0.0, 0.0, 0.0], [1.0] * 5, [0.0] * 5


def test_who_did_not_learn_to_copy_is_named():
    start = "At the trained length"
    assert verdict(start, {"rotary": NEAR, "alibi": NEAR}) == HOLDS
    assert verdict(start, {"rotary": NEAR, "alibi": NONE}) == FAILS
    assert verdict(start, {"rotary": NEAR, "alibi": NEAR}, noise=1.0) == OPEN
    (finding,) = [
        f for f in long_range.findings(made({"rotary": NEAR, "alibi": NONE})) if f.claim.startswith(start)
    ]
    assert "alibi did not learn it" in finding.why and "rotary" not in finding.why


def test_steady_and_deaf_are_told_apart():
    deaf, uses = "ALiBi reads long texts steadily because", "ALiBi uses a text of any length"
    assert [verdict(x, {"alibi": NEAR}) for x in (deaf, uses)] == [HOLDS, FAILS]
    assert [verdict(x, {"alibi": ALL}) for x in (deaf, uses)] == [FAILS, HOLDS]
    assert [verdict(x, {"alibi": NEAR}, flat=1.0) for x in (deaf, uses)] == [FAILS, FAILS]
    assert [verdict(x, {"alibi": NEAR}, noise=1.0) for x in (deaf, uses)] == [OPEN, OPEN]


@pytest.mark.parametrize(
    "start, name, at", [("RoPE uses what stands 2", "rotary", 1), ("T5's last bucket", "t5", 4)]
)
def test_what_is_beyond_the_trained_length(start, name, at):
    only = [1.0, *(float(n == at) for n in range(1, 5))]
    assert verdict(start, {name: only}) == HOLDS
    assert verdict(start, {name: [1 - x for x in only]}) == FAILS
    assert verdict(start, {name: only}, noise=1.0) == OPEN


def test_a_use_that_does_not_pay_is_none():
    start = "For at least one encoding, reading 16 L"
    assert verdict(start, {"t5": ALL, "alibi": NONE}) == HOLDS
    assert verdict(start, {"t5": ALL, "alibi": NONE}, pays=-0.5) == FAILS
    record = made({"t5": ALL})
    for run in record:
        run.values["cut"] = [x + run.seed - 1 for x in run.values["again"]]
    (found,) = [f for f in long_range.findings(record) if f.claim.startswith(start)]
    assert found.verdict == OPEN
