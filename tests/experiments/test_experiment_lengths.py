"""Train short, test long: which characters are compared, and what the record says."""

import re

import pytest
import torch
from torch import nn

from course.experiments import lengths
from course.experiments.record import Record, Run
from course.experiments.sweep import run
from course.verdicts import FAILS, HOLDS, OPEN
from tutorial_lib.data import Corpus, kjv
from tutorial_lib.encodings import Learned
from tutorial_lib.encodings.registry import COMPARED
from tutorial_lib.plots import png

TINY = {
    "d_model": 16,
    "layers": 1,
    "heads": 2,
    "length": 32,
    "batch": 4,
    "lr": 3e-3,
    "multiples": [1, 2, 4],
    "encodings": list(lengths.ENCODINGS),
    "steps": 2,
    "windows": 3,
    "tail": 8,
}


class Counter(nn.Module):
    """Its loss on a target is the number of tokens that it sees before it, plus a share of the target."""

    def __init__(self):
        super().__init__()
        self.weight, self.encoding, self.seen = nn.Parameter(torch.zeros(())), None, []

    def forward(self, tokens):
        # two ids: a logit of x for id 1 makes a loss of about x on targets 0
        self.seen.append(tokens)
        x = 100.0 + torch.arange(1.0, tokens.shape[1] + 1).expand(tokens.shape)
        return torch.stack([torch.zeros_like(x), x], -1)


def test_all_lengths_read_the_same_characters():
    text = torch.arange(2 * 16).view(2, 16)
    model = Counter()
    found = lengths.read(model, text, torch.zeros_like(text), [4, 8, 16], tail=2)
    assert found["mean"] == pytest.approx([102.5, 104.5, 108.5])
    assert found["tail"] == pytest.approx([103.5, 107.5, 115.5])
    assert all(torch.equal(tokens.flatten(), text.flatten()) for tokens in model.seen)


def test_the_tail_is_the_end_of_each_text():
    targets = torch.zeros(2, 8, dtype=torch.long)
    targets[:, -3:] = 1  # loss 0 there
    assert lengths.read(Counter(), targets, targets, [2, 4, 8], tail=3)["tail"] == pytest.approx([0, 0, 0])
    found = lengths.read(Counter(), targets, targets, [2, 4, 8], tail=4)
    assert found["tail"] == pytest.approx([25.25, 25.25, 26.25])


def test_a_learned_table_is_stretched_for_each_length_and_left_as_it_was():
    sizes = []

    class Watcher(Counter):
        def forward(self, tokens):
            sizes.append(len(self.encoding.table))
            return super().forward(tokens)

    model, table = Watcher(), Learned(4, 8)
    model.encoding = table
    text = torch.zeros(1, 16, dtype=torch.long)
    lengths.read(model, text, text, [4, 16], tail=2)
    assert sizes == [4, 16]


def test_a_preset_reads_the_bytes_of_a_chinese_text():
    chinese = lengths.corpus(lengths.EXPERIMENT.presets["chinese"])
    said = chinese.text.encode("latin-1").decode("utf-8")
    assert said.startswith("第一回甄士隐") and said.count("\n") == 20 and len(chinese.symbols) < 80
    assert set(re.sub("[\u3400-\u9fff]", "", said)) == {"\n"}, "punctuation is of later editors"
    assert lengths.corpus(TINY) is kjv()


def test_every_encoding_of_the_registry_is_here_or_named_elsewhere():
    assert {*lengths.ENCODINGS, *lengths.ELSEWHERE} - {"t5-far"} == set(COMPARED)
    assert not set(lengths.ENCODINGS) & set(lengths.ELSEWHERE)


@pytest.fixture(scope="module")
def record():
    mp = pytest.MonkeyPatch()
    short = Corpus.of(kjv().text[:20000])
    mp.setattr(lengths, "kjv", lambda: short)
    mp.setitem(lengths.EXPERIMENT.presets, "live", TINY)
    yield run(lengths.EXPERIMENT, "live", seeds=(0, 1), device="cpu", progress=False)
    mp.undo()


def test_a_sweep(record):
    assert len(record.runs) == 2 * len(lengths.ENCODINGS)
    for one in record:
        for what in ("mean", "tail"):
            assert len(one.values[what]) == (1 if one.cell["encoding"] == "table" else 3)
            assert all(2.5 < loss < 6 for loss in one.values[what])
    assert len(png(lengths.figure(record))) > 20_000
    assert "16 L" not in lengths.alt(record) and "4 L" in lengths.alt(record)
    assert len(lengths.findings(record)) == 13


def test_the_same_arguments_give_the_same_numbers(record):
    first = record.runs[0]
    short = Corpus.of(kjv().text[:20000])
    with pytest.MonkeyPatch.context() as mp:
        mp.setattr(lengths, "kjv", lambda: short)
        assert lengths.measure(TINY, first.cell, first.seed, torch.device("cpu")) == first.values


def made(rises: dict, mean=0.0) -> Record:
    """A record in which the tail rises by the given number from L to the last length."""
    record = Record("lengths", "live", "", TINY | {"encodings": list(rises)}, [0, 1, 2], "cpu", 1, {})
    for name, rise in rises.items():
        for seed in record.seeds:
            start = 2.0 + seed / 10
            noise = [0.001 * seed * n for n in range(3)]
            tail = [start + rise * n / 2 + noise[n] for n in range(3)]
            values = {"tail": tail, "mean": [start, start + mean, start + mean]}
            record.runs.append(Run({"encoding": name}, seed, values, 0.0))
    return record


ONE = {
    "Sinusoidal positions do not": ("sinusoidal", 1.0, 0.0),
    "Nor does RoPE": ("rotary", 1.0, 0.0),
    "A learned table that is": ("learned", 1.0, 0.0),
    "ALiBi reads": ("alibi", 0.0, 1.0),
    "xPos reads": ("xpos", 0.0, 1.0),
    "KERPLE reads": ("kerple", 0.0, 1.0),
    "Sandwich reads": ("sandwich", 0.0, 1.0),
    "FIRE reads": ("fire", 0.0, 1.0),
    "T5's bias carries": ("t5", 0.0, 1.0),
    "With all its buckets": ("t5", 0.0, 1.0),
}
"""The beginning of a claim: whom it is about, and rises of the loss by which it holds and does not hold."""


@pytest.mark.parametrize("claim", ONE)
def test_a_claim_about_one_encoding_holds_fails_and_stays_open(claim):
    name, good, bad = ONE[claim]
    for rise, verdict in ((good, HOLDS), (bad, FAILS)):
        (found,) = [f for f in lengths.findings(made({name: rise})) if f.claim.startswith(claim)]
        assert found.verdict == verdict
    record = made({name: good})
    for one in record.runs:  # what one seed says, the next one does not
        one.values["tail"] = [2.0, 2.0 + 0.3 * one.seed, 2.0 + 0.3 * one.seed]
    (found,) = [f for f in lengths.findings(record) if f.claim.startswith(claim)]
    assert found.verdict == OPEN and found.reason


def test_claims_that_compare_two():
    def verdict(record, start):
        (found,) = [f.verdict for f in lengths.findings(record) if f.claim.startswith(start)]
        return found

    gain = "What ALiBi gains"
    assert verdict(made({"alibi": 0.0}, mean=-0.1), gain) == HOLDS
    assert verdict(made({"alibi": 0.0}, mean=0.1), gain) == FAILS
    assert verdict(made({"alibi": -0.2}, mean=-0.1), gain) == FAILS
    filled = "Buckets that training never fills"
    assert verdict(made({"t5": 0.0, "t5-far": 0.5}), filled) == HOLDS
    assert verdict(made({"t5": 0.5, "t5-far": 0.4}), filled) == FAILS
    alike = "At the trained length"
    worse = made({"rotary": 0.5, "alibi": 0.0})
    assert verdict(worse, alike) == HOLDS
    for one in worse.runs:
        one.values["mean"][0] += 0.1 * (one.cell["encoding"] == "alibi")
    assert verdict(worse, alike) == FAILS


# ---- RoPE with a scaling ----


def test_a_scaled_model_spends_its_last_steps_on_longer_windows(monkeypatch):
    asked, rates = [], []
    corpus = Corpus.of(kjv().text[:20000])

    class Watched:
        symbols = corpus.symbols

        def batch(self, size, length, generator):
            asked.append((size, length))
            return corpus.batch(size, length, generator)

    real = lengths.train
    monkeypatch.setattr(lengths, "kjv", Watched)
    monkeypatch.setattr(
        lengths,
        "train",
        lambda *args, **options: (
            rates.append((args[2], options["lr"], options["seed"])),
            real(*args, **options),
        )[1],
    )
    settings = TINY | {"steps": 20}
    cpu = torch.device("cpu")
    plain = lengths.trained(settings, {"encoding": "rotary"}, 3, cpu)
    assert set(asked) == {(4, 32)} and len(asked) == 20 and rates == [(20, 3e-3, 3)]
    asked.clear(), rates.clear()
    scaled = lengths.trained(settings, {"encoding": "rotary", "scaling": "PI", "rates": [6e-3, 6e-3]}, 3, cpu)
    assert asked == [(4, 32)] * 18 + [(1, 128)] * 2
    assert rates == [(18, 6e-3, 3), (2, 2e-3, 103)]
    theta, before = (model.encoding.frequencies.theta() for model in (scaled, plain))
    assert torch.allclose(theta, before / 4)


def with_scalings(loss: dict) -> Record:
    """A record with ``{name: (tail loss at L, at 4 L)}``, or these of each of three seeds."""
    settings = TINY | {"encodings": ["rotary", "alibi"], "scalings": ["PI", "YaRN"]}
    record = Record("lengths", "live", "", settings, [0, 1, 2], "cpu", 1, {})
    for cell in lengths.cells(settings):
        for seed in record.seeds:
            at = loss[cell.get("scaling", cell["encoding"])]
            at = at[seed] if isinstance(at, list) else at
            record.runs.append(Run(cell, seed, {"tail": [at[0], 0.0, at[1]], "mean": [at[0]] * 3}, 0.0))
    return record


def test_what_is_said_of_scaled_models():
    def told(**loss):
        record = with_scalings({"rotary": (2.0, 3.0), "alibi": (1.9, 1.9)} | loss)
        assert lengths.rows(record) == ["rotary", "alibi", "rotary + PI", "rotary + YaRN"]
        assert "| rotary + PI |" in lengths.table(record) and len(png(lengths.figure(record))) > 20_000
        return [f.verdict for f in lengths.findings(record)[-3:]]

    assert told(PI=(2.0, 1.9), YaRN=(2.0, 1.8)) == [HOLDS, HOLDS, HOLDS]
    assert told(PI=(2.0, 2.0), YaRN=(2.0, 1.8)) == [HOLDS, FAILS, HOLDS]
    assert told(PI=(1.8, 1.9), YaRN=(1.8, 2.0)) == [FAILS, HOLDS, FAILS]
    unsteady = [(2.0, 1.8), (2.0, 2.4), (2.0, 1.8)]
    assert told(PI=unsteady, YaRN=(2.0, 1.8)) == [OPEN, OPEN, HOLDS]
