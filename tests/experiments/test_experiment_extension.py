"""A longer context: the passkey texts, what is scaled and tuned, and what the record says."""

import pytest
import torch

from course.experiments import extension
from course.experiments.record import Record, Run
from course.experiments.sweep import run
from course.verdicts import FAILS, HOLDS, IDENTITY, OPEN
from tutorial_lib.data import Corpus, kjv
from tutorial_lib.plots import png

TINY = {
    "d_model": 16,
    "layers": 1,
    "heads": 2,
    "length": 16,
    "batch": 4,
    "lr": 3e-3,
    "multiples": [1, 2, 4, 8],
    "tail": 4,
    "text_steps": 2,
    "passkey_steps": 2,
    "tuning_steps": 1,
    "windows": 3,
    "keys": 16,
}


@pytest.mark.parametrize("length, marks, within", [(64, 8, 1.0), (64, 1, 0.25), (512, 1, 0.25), (16, 7, 1.0)])
def test_passkey_texts(length, marks, within):
    generator = torch.Generator().manual_seed(0)
    tokens, labels = extension.passkey(500, length, generator, marks=marks, within=within)
    assert tokens.shape == labels.shape == (500, length) and tokens.max() == extension.LETTERS
    starts = []
    for text, label in zip(tokens.tolist(), labels.tolist(), strict=True):
        places = [n for n, token in enumerate(text) if token == extension.LETTERS]
        key = text[places[0] + 1]
        assert len(places) == marks + 1 and places[-1] == length - 1
        assert places[-2] + 1 < max(within * length, 2 * marks)
        assert all(text[n + 1] == key for n in places[:-1])
        assert [n for n, answer in enumerate(label) if answer != -100] == places[1:]
        assert all(label[n] == key for n in places[1:])
        starts.append(places[0])
    assert min(starts) == 0 and (marks > 1 or max(starts) >= within * length - 6)
    assert len(set(labels[:, -1].tolist())) == extension.LETTERS


def test_the_scalings_are_for_four_times_the_length():
    thetas = {name: extension.Frequencies(16, scaling=make(64)) for name, make in extension.SCALINGS.items()}
    raw = thetas["raw"].theta()
    torch.testing.assert_close(thetas["PI"].theta(), raw / 4)
    torch.testing.assert_close(thetas["dynamic NTK"].theta(torch.tensor(64)), raw)
    torch.testing.assert_close(thetas["dynamic NTK"].theta(torch.tensor(256)), thetas["NTK-aware"].theta())
    torch.testing.assert_close(thetas["YaRN"].theta()[[0, -1]], raw[[0, -1]] / torch.tensor([1.0, 4.0]))


@pytest.fixture(scope="module")
def record():
    with pytest.MonkeyPatch.context() as mp:
        short = Corpus.of(kjv().text[:20000])
        mp.setattr(extension, "kjv", lambda: short)
        mp.setitem(extension.EXPERIMENT.presets, "live", TINY)
        yield run(extension.EXPERIMENT, "live", seeds=(0, 1), device="cpu", progress=False)


def test_a_sweep(record):
    assert len(record.runs) == 4
    for one in record:
        assert len(one.values) == 2 * len(extension.SCALINGS)
        assert all(len(x) == 4 for x in one.values.values())
        assert one.values["raw, at once"] != one.values["raw, tuned"] or one.cell["task"] == "passkey"
        assert one.values["dynamic NTK, at once"][0] == one.values["raw, at once"][0]
        assert one.cell["task"] == "passkey" or one.values["PI, at once"][0] != one.values["raw, at once"][0]
    assert len(png(extension.figure(record))) > 20_000
    assert len(extension.findings(record)) == 17


@pytest.mark.parametrize("task", ["text", "passkey"])
def test_what_is_trained_on_and_what_is_asked(task, record, monkeypatch):
    trained, asked = [], []
    monkeypatch.setattr(
        extension,
        "train",
        lambda model, batch, steps, **kwargs: trained.append(
            (batch(torch.Generator().manual_seed(0))[0].shape, steps, kwargs["lr"], model)
        ),
    )
    monkeypatch.setattr(
        extension,
        "evaluate",
        lambda model, tokens, targets, **kwargs: (
            asked.append((tokens, targets)),
            torch.arange(float(targets.shape[1])).expand(targets.shape),
        )[1],
    )
    monkeypatch.setattr(
        extension, "accuracy", lambda model, tokens, labels: (asked.append((tokens, labels)), 0.5)[1]
    )
    found = extension.measure(TINY, {"task": task}, 0, torch.device("cpu"))
    assert [shape for shape, *_ in trained] == [(4, 16)] + [(1, 64)] * 5
    assert [steps for _, steps, *_ in trained] == [2] + [1] * 5
    assert len({id(model) for *_, model in trained}) == 6  # each scaling begins with the same model
    assert [tokens.shape[1] for tokens, _ in asked] == [16, 32, 64, 128] * 10
    if task == "text":  # the same last characters for each length
        assert all(torch.equal(targets[:, -4:], asked[0][1][:, -4:]) for _, targets in asked)
        assert found["PI, tuned"] == [n - 2.5 for n in (16, 32, 64, 128)]
    else:
        assert found["PI, tuned"] == [0.5] * 4
        assert all(((labels != -100).sum(1) == 1).all() for _, labels in asked)


PAPER = {  # loss and keys found at 1, 2, 4, 8 L
    "raw, at once": ([2.0, 3, 4, 4], [1, 0.5, 0.1, 0]),
    "raw, tuned": ([2.1, 2.2, 2.3, 4], [1, 1, 0.5, 0]),
    "PI, at once": ([2.5, 2.6, 2.7, 3], [0.5] * 4),
    "PI, tuned": ([2.0, 2.0, 1.9, 3], [1, 1, 1, 0.5]),
    "NTK-aware, at once": ([2.0, 2.1, 2.4, 3], [1] * 4),
    "NTK-aware, tuned": ([2.0, 2.0, 2.1, 3], [1] * 4),
    "dynamic NTK, at once": ([2.0, 2.1, 2.4, 3], [1] * 4),
    "dynamic NTK, tuned": ([2.0, 2.0, 2.0, 3], [1] * 4),
    "YaRN, at once": ([2.1, 2.1, 2.1, 3], [1] * 4),
    "YaRN, tuned": ([2.0, 2.0, 1.8, 2.5], [1] * 4),
}


def made(change=lambda task, x: x, spread=0.0) -> Record:
    """The numbers of PAPER; ``change`` turns a loss or a share around, ``spread`` sets seeds apart."""
    record = Record("extension", "live", "", TINY, [0, 1, 2], "cpu", 1, {})
    for which, task in enumerate(("text", "passkey")):
        for seed in record.seeds:
            values = {
                name: [
                    change(task, x) + 0.001 * seed * n + spread * (seed - 1) * (n + 5 * row)
                    for n, x in enumerate(both[which])
                ]
                for row, (name, both) in enumerate(PAPER.items())
            }
            values["dynamic NTK, at once"][0] = values["raw, at once"][0]
            record.runs.append(Run({"task": task}, seed, values, 0.0))
    return record


def verdicts(record):
    return [finding.verdict for finding in extension.findings(record)]


def test_findings_follow_the_numbers():
    dynamic = 5  # what costs nothing costs nothing in any world
    assert verdicts(made()) == [HOLDS] * dynamic + [IDENTITY] + [HOLDS] * 11
    turned = made(lambda task, x: 6 - x if task == "text" else 1.45 - x)
    assert verdicts(turned) == [FAILS] * dynamic + [IDENTITY] + [FAILS] * 11
    assert verdicts(made(spread=1.0)) == [OPEN] * dynamic + [IDENTITY] + [OPEN] * 11
    broken = made()
    for one in broken.runs:
        one.values["dynamic NTK, at once"][0] += 0.1
    assert verdicts(broken) == [HOLDS] * dynamic + [FAILS] + [HOLDS] * 11
    assert "Loss at 4 L, at once: YaRN 2.10" in extension.alt(made())


@pytest.mark.parametrize(
    "name, claim",
    [
        ("YaRN", "After tuning, YaRN is better than interpolation"),
        ("NTK-aware", "After tuning, NTK-aware scaling is worse"),
    ],
)
def test_a_loss_that_differs_by_little_is_no_difference(name, claim):
    record = made()
    for one in record.runs:
        one.values[f"{name}, tuned"] = [x + 0.01 for x in one.values["PI, tuned"]]
    assert next(f for f in extension.findings(record) if f.claim.startswith(claim)).verdict == FAILS


def test_what_is_beyond_the_tuning_says_how_far_beyond():
    far = next(f for f in extension.findings(made()) if f.claim.startswith("Beyond"))
    assert "1.25 times" in far.theirs and "read at 8 L" in far.ours and "2 times" in far.ours
