"""Memory and position: what a segment sees, which characters are compared, and what the record says."""

import pytest
import torch

from course.experiments import recurrence
from course.experiments.record import Record, Run
from course.experiments.recurrence import Segments
from course.experiments.sweep import run
from course.verdicts import FAILS, HOLDS, OPEN
from tutorial_lib.data import Corpus, kjv
from tutorial_lib.encodings import build
from tutorial_lib.model import Config, Transformer, segment_mask
from tutorial_lib.plots import png

TINY = {
    "d_model": 16,
    "layers": 2,
    "heads": 2,
    "segment": 4,
    "segments": 3,
    "batch": 2,
    "lr": 3e-3,
    "encodings": list(recurrence.ENCODINGS),
    "memories": [0, 1, 2],
    "read": 6,
    "tail": 2,
    "steps": 2,
    "windows": 4,
}
CONFIG = Config(9, d_model=16, n_layers=2, n_heads=2)


@pytest.mark.parametrize("memory", [0, 3, 4, 8])
@pytest.mark.parametrize("name", ["transformer-xl", "rotary", "sinusoidal-count"])
def test_reading_in_segments_is_reading_with_a_mask(name, memory):
    torch.manual_seed(0)
    model = Transformer(CONFIG, recurrence.encodings(name, TINY)).double()
    tokens = torch.randint(9, (2, 14))
    whole = model(tokens, mask=segment_mask(14, segment=4, memory=memory))
    torch.testing.assert_close(Segments(model, 4, memory)(tokens), whole)


def test_positions_that_start_anew_collide():
    torch.manual_seed(0)
    model, seen = Transformer(CONFIG, build("sinusoidal", dim=16)), []
    model.register_forward_pre_hook(lambda module, args: seen.append(args[1].tolist()))
    tokens = torch.randint(9, (1, 8))
    alone = Segments(model, 4, 0, restart=True)(tokens)
    assert seen == [[0, 1, 2, 3]] * 2
    torch.testing.assert_close(alone[:, 4:], model(tokens[:, 4:], torch.arange(4)))
    assert not torch.allclose(Segments(model, 4, 4, restart=True)(tokens)[:, 4:], alone[:, 4:])


def test_each_layer_has_an_encoding_of_its_own():
    for name in ("transformer-xl", "shaw"):
        first, second = recurrence.encodings(name, TINY)
        assert first is not second


@pytest.fixture(scope="module")
def record():
    with pytest.MonkeyPatch.context() as mp:
        short = Corpus.of(kjv().text[:20000])
        mp.setattr(recurrence, "kjv", lambda: short)
        mp.setitem(recurrence.EXPERIMENT.presets, "live", TINY)
        yield run(recurrence.EXPERIMENT, "live", seeds=(0, 1), device="cpu", progress=False)


def test_a_sweep(record):
    assert len(record.runs) == 2 * 2 * len(recurrence.ENCODINGS)
    assert all(len(one.values["loss"]) == 3 and 2.5 < min(one.values["loss"]) for one in record)
    assert len(png(recurrence.figure(record))) > 20_000
    assert "2 S" in recurrence.alt(record)
    assert len(recurrence.findings(record)) == 10


def test_the_same_characters_for_every_memory(record, monkeypatch):
    """A model that sees no past loses the same with any memory; and only the tail counts."""
    asked = []
    monkeypatch.setattr(recurrence, "train", lambda *args, **kwargs: None)
    monkeypatch.setattr(
        recurrence,
        "evaluate",
        lambda reader, tokens, targets: (
            asked.append((reader.memory, tokens, targets)),
            torch.arange(24.0).expand(4, 24),
        )[1],
    )
    found = recurrence.measure(TINY, {"encoding": "rotary", "memory": True}, 0, torch.device("cpu"))
    assert found["loss"] == [19.5] * 3  # the mean of 16 … 23
    assert [memory for memory, _, _ in asked] == [0, 4, 8]
    assert all(torch.equal(targets, asked[0][2]) and tokens.shape == (4, 24) for _, tokens, targets in asked)


@pytest.mark.parametrize("with_memory", [False, True])
def test_training_has_the_memory_that_the_cell_says(with_memory, record, monkeypatch):
    seen = []
    monkeypatch.setattr(
        recurrence, "train", lambda reader, *args, **kwargs: seen.append((reader.memory, reader.restart))
    )
    for name in ("shaw", "sinusoidal-collide"):
        recurrence.measure(TINY, {"encoding": name, "memory": with_memory}, 0, torch.device("cpu"))
    assert seen == [(4 * with_memory, False), (4 * with_memory, True)]


def made(sign=1.0, spread=0.0) -> Record:
    """Relative encodings gain from memory, absolute ones lose; with −1 the other way round."""
    record = Record("recurrence", "live", "", TINY, [0, 1, 2], "cpu", 1, {})
    slope = {
        "transformer-xl": -0.3,
        "rotary": -0.2,
        "shaw": -0.1,
        "sinusoidal-collide": 0.3,
        "sinusoidal-count": 0.2,
    }
    for row, (name, up) in enumerate(slope.items()):
        for seed in record.seeds:
            apart = spread * (seed - 1) * (row + 1)
            loss = [2.0 + seed / 10 + (sign * up + 0.001 * seed + apart) * n for n in range(3)]
            never = [2 + seed / 10] * 3
            record.runs += [
                Run({"encoding": name, "memory": True}, seed, {"loss": loss}, 0.0),
                Run({"encoding": name, "memory": False}, seed, {"loss": never}, 0.0),
            ]
    return record


def verdicts(record):
    return [finding.verdict for finding in recurrence.findings(record)]


@pytest.mark.parametrize("record, verdict", [(made(), HOLDS), (made(-1), FAILS), (made(spread=1.0), OPEN)])
def test_findings_follow_the_numbers(record, verdict):
    assert verdicts(record) == [verdict] * 10


def test_the_figure_is_told():
    assert "transformer-xl -0.60" in recurrence.alt(made())


def test_a_longer_memory_may_do_no_harm_and_no_good():
    record = made()
    for one in record.runs:
        one.values["loss"][2] = one.values["loss"][1] + 0.01
    assert verdicts(record)[3:7] == [HOLDS] * 3 + [FAILS]


def test_what_a_memory_is_worth_is_told_by_models_that_never_had_one():
    """A model that was trained with a memory misses it; that alone is no gain."""
    record = made()
    for one in record.runs:
        if not one.cell["memory"]:
            never = {"shaw": 1.0, "sinusoidal-count": 3.0}.get(one.cell["encoding"])
            one.values["loss"] = one.values["loss"] if never is None else [never] * 3
    assert [f.claim for f in recurrence.findings(record) if f.verdict == FAILS] == [
        "Shaw's encoding gains from a memory of one segment",
        "Absolute positions that count on get worse with a memory",
    ]


def test_encodings_are_compared_with_the_memory_that_they_were_trained_with():
    record = made()
    for one in record.runs:
        one.values["loss"][2] += 9.0 * (one.cell["encoding"] == "transformer-xl")
    better = next(f for f in recurrence.findings(record) if f.claim.startswith("With recurrence"))
    assert better.verdict == HOLDS
