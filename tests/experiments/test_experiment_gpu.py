"""The presets for a GPU, run for a few steps on a CPU: sizes that fit, and records that can be told."""

import dataclasses

import pytest
import torch

from course.experiments import EXPERIMENTS, Record, sweep, tasks
from tutorial_lib import plots
from tutorial_lib.model import Transformer

GPU = {
    name: one.presets["gpu"]
    for name, one in EXPERIMENTS.items()
    if "gpu" in one.presets and name not in ("cost", "scale")
}  # they are tested in files of their own


def changed(settings, **few):
    """The settings with these in place of their own, where they have them."""
    return settings | {name: value for name, value in few.items() if name in settings}


def test_every_experiment_that_trains_has_one():
    others = {"constants", "cost", "decay", "playground", "position_gap", "scale", "scoreboard", "tuning"}
    assert set(EXPERIMENTS) - set(GPU) == others
    assert all(256 <= settings["d_model"] <= 512 for settings in GPU.values())
    assert all(settings["layers"] in (6, 8) for name, settings in GPU.items() if name != "clipping")
    of_clipping = EXPERIMENTS["clipping"].cells(GPU["clipping"])
    assert max(cell["layers"] for cell in of_clipping) == 6 and max(cell["k"] for cell in of_clipping) == 64


def test_what_is_about_length_reads_16_times_what_it_was_trained_on():
    assert GPU["lengths"]["multiples"][-1] == GPU["extension"]["multiples"][-1] == tasks.MULTIPLES[-1] == 16
    assert GPU["recurrence"]["memories"][-1] == 16 < GPU["recurrence"]["read"]
    assert GPU["shift"]["offsets"][-1] >= 16 * GPU["shift"]["length"]


@pytest.mark.parametrize("name", GPU)
def test_a_record_with_few_steps(name, tmp_path):
    """All cells, lengths and offsets of the preset; the model is narrow and has two layers.

    Lengths of hundreds of characters are shorter, with the same multiples of them.
    """
    settings = changed(
        GPU[name],
        d_model=8 * GPU[name]["heads"],
        steps=10 if name == "fusion" else 1,
        text_steps=1,
        passkey_steps=1,
        tuning_steps=1,
        batch=4,
        test=2,
        windows=2,
        keys=2,
    )
    if name != "clipping":  # where layers are compared
        settings["layers"] = 2
    if name in ("lengths", "long_range", "extension", "recurrence"):
        settings |= changed(settings, length=64, segment=8, read=18) | {"tail": 2}
    experiment = dataclasses.replace(EXPERIMENTS[name], presets={"gpu": settings})
    path = tmp_path / "record.json"
    record = sweep.run(experiment, "gpu", seeds=(0, 1), device="cpu", out=path, progress=False)
    assert Record.load(path) == record and record.cells() == experiment.cells(GPU[name])
    assert plots.png(experiment.figure(record)).startswith(b"\x89PNG")
    assert len(experiment.alt(record).split()) > 10
    assert all(finding.ours for finding in experiment.findings(record))


@pytest.mark.parametrize("name", GPU)
def test_the_large_model_takes_a_step(name, monkeypatch):
    """The last cell of the preset with a model and a trained length as they are."""
    seen, rates, forward, adam = set(), [], Transformer.forward, torch.optim.AdamW

    def watched(model, tokens, *args, **options):
        sizes = model.config.d_model, model.config.n_layers, model.config.n_heads
        seen.add((*sizes, tokens.shape[1]))
        return forward(model, tokens, *args, **options)

    monkeypatch.setattr(Transformer, "forward", watched)
    monkeypatch.setattr(
        torch.optim,
        "AdamW",
        lambda *args, **options: (rates.append(options["lr"]), adam(*args, **options))[1],
    )
    settings = changed(
        GPU[name],
        steps=10 if name == "fusion" else 1,
        text_steps=1,
        passkey_steps=1,
        tuning_steps=1,
        batch=4 if name == "extension" else 1,
        test=1,
        windows=2,
        keys=1,
        multiples=[1],
        memories=[0],
        read=1,
    )
    experiment = EXPERIMENTS[name]
    cell = experiment.cells(settings)[-1]
    assert experiment.measure(settings, cell, 0, torch.device("cpu"))
    length = settings.get("length", settings.get("segment", {"word_order": 3, "images": 16}.get(name)))
    sizes = settings["d_model"], cell.get("layers", settings["layers"]), settings["heads"]
    assert (*sizes, length) in seen and {x[:3] for x in seen} == {sizes}
    assert max(seen)[3] == length * {"tasks": 16, "extension": 4, "images": 1.5}.get(name, 1)
    assert rates[0] == settings["lr"]
