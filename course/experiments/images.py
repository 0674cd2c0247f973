"""Real images as 4 × 4 patches, read with one axis or two, and then shown differently than in training."""

from __future__ import annotations

import statistics

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib import plots
from tutorial_lib.data import digits, patches
from tutorial_lib.data.images import LEVELS, pixels
from tutorial_lib.encodings import (
    AxialRotary,
    NoPosition,
    Raster,
    Rotary,
    Sinusoidal,
    Sinusoidal2D,
    SwinBias,
    TableBias,
    grid,
)
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import accuracy, cross_entropy, seeded, train

from ..verdicts import above, all_of, below, identity
from . import rates
from .record import Record
from .statistics import difference, interval
from .sweep import Experiment, Finding, in_words, spoken

SIDE, WIDE, TRAIN, KEPT = 4, 6, 1347, 200
SIZES = {"d_model": 64, "layers": 2, "heads": 4, "lr": 9e-3}
"""Where a preset does not say otherwise."""

# the biases have entries for the wider canvas from the start; training never asks for those
ENCODINGS = {
    "none": lambda d_model, heads: Raster(NoPosition(), SIDE),
    "sinusoidal 1-D": lambda d_model, heads: Raster(Sinusoidal(d_model), SIDE),
    "sinusoidal 2-D": lambda d_model, heads: Sinusoidal2D(d_model),
    "bias 1-D": lambda d_model, heads: Raster(TableBias(heads, SIDE * WIDE), SIDE),
    "bias 2-D (Swin)": lambda d_model, heads: SwinBias(heads, (SIDE, WIDE)),
    "rotary 1-D": lambda d_model, heads: Raster(Rotary(d_model // heads), SIDE),
    "rotary 2-D (axial)": lambda d_model, heads: AxialRotary(d_model // heads),
}
PAIRS = {
    two: one
    for one, two in (
        ("sinusoidal 1-D", "sinusoidal 2-D"),
        ("bias 1-D", "bias 2-D (Swin)"),
        ("rotary 1-D", "rotary 2-D (axial)"),
    )
}
KINDS = {"sinusoidal 2-D": "sinusoids", "bias 2-D (Swin)": "a relative bias", "rotary 2-D (axial)": "RoPE"}
VIEWS = ("test", "shuffled", "rolled", "wider")

MARGIN = 0.02
"""Accuracy: 9 of the 450 images."""


class Patches(nn.Module):
    """Embeds a patch by its four pixels, in place of a table with 17⁴ rows."""

    def __init__(self, d_model: int):
        super().__init__()
        self.linear = nn.Linear(4, d_model)

    def forward(self, ids):
        return self.linear(pixels(ids).float() * 2 / (LEVELS - 1) - 1)


class Classifier(nn.Module):
    """A pooled encoder that reads ids ``[B, 4·width]`` as an image of 4 rows of patches."""

    def __init__(self, name: str, *, d_model: int, layers: int, heads: int):
        super().__init__()
        config = Config(LEVELS, d_model, n_heads=heads, n_layers=layers, n_out=10, causal=False, pool="mean")
        self.model = Transformer(config, ENCODINGS[name](d_model, heads))
        self.model.tokens = Patches(d_model)  # type: ignore[assignment]  # ids of patches, embedded differently

    def forward(self, ids):
        width = ids.shape[1] // SIDE
        if isinstance(self.model.encoding, Raster):
            self.model.encoding.width = width
        return self.model(ids, grid(SIDE, width, device=ids.device))


def views(images):
    """The images ``[N, 8, 8]`` as ids: the way training shows them, and in ways it never does."""
    ids = patches(images)
    order = torch.randperm(ids.shape[1], generator=torch.Generator().manual_seed(0))
    blank = 2 * (WIDE - SIDE)
    return {
        "test": ids,
        "shuffled": ids[:, order],
        "rolled": patches(images.roll(2, 2)),
        "wider": patches(F.pad(images, (0, blank))),
    }


def cells(settings: dict) -> list[dict]:
    return rates.cells("images", SIZES | settings, [{"encoding": name} for name in settings["encodings"]])


def encoding(name: str, settings: dict):
    """The encoding ``name`` for a model as in the settings."""
    return ENCODINGS[name](settings["d_model"], settings["heads"])


def parts() -> tuple[torch.Tensor, ...]:
    """Places of the images to train on, of ``KEPT`` to choose settings by, and of those to report on.

    They are the same for all seeds, so no seed reports on an image that settings were chosen by.
    """
    order = torch.randperm(len(digits()[0]), generator=torch.Generator().manual_seed(0))
    return order[: TRAIN - KEPT], order[TRAIN - KEPT : TRAIN], order[TRAIN:]


def trained(settings: dict, cell: dict, seed: int, device: torch.device) -> Classifier:
    """The model of a cell."""
    settings = SIZES | settings
    sizes = {name: settings[name] for name in ("d_model", "layers", "heads")}
    images, labels = digits()
    seen = parts()[0]
    ids, names = patches(images[seen]), labels[seen]

    def batch(generator):
        at = torch.randint(len(ids), (settings["batch"],), generator=generator)
        return ids[at], names[at]

    model = seeded(lambda: Classifier(cell["encoding"], **sizes), seed)
    train(
        model, batch, settings["steps"], **rates.of(settings, cell), seed=seed, device=device, progress=False
    )
    return model


@torch.no_grad()
def validation(model: Classifier, settings: dict, cell: dict, seed: int) -> float:
    """Loss on images that are neither trained on nor reported."""
    images, labels = digits()
    kept, device = parts()[1], next(model.parameters()).device
    return cross_entropy(model(patches(images[kept]).to(device)), labels[kept].to(device)).item()


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    model = trained(settings, cell, seed, device)
    images, labels = digits()
    unseen = parts()[2]
    return {name: accuracy(model, view, labels[unseen]) for name, view in views(images[unseen]).items()}


def figure(record: Record):
    names = record.settings["encodings"]
    z = [[statistics.fmean(record.values(view, encoding=name)) for view in VIEWS] for name in names]
    ticks = [_("as in\ntraining"), _("patches\nshuffled"), _("rolled by\none patch"), _("on a wider\ncanvas")]
    fig, ax = plots.panels(size=(9, 6))
    plots.heat(
        z,
        ax=ax,
        title=_("On a wider canvas one axis fails"),
        xlabel=_("accuracy on unseen digits"),
        xticks=ticks,
        yticks=list(map(spoken, names)),
        limits=(0, 1),
        cmap="weights",
        colorbar=None,
        values=".2f",
    )
    ax.set_aspect("auto")
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""

    def mean(view, name):
        return statistics.fmean(record.values(view, encoding=name))

    rows = _("; ").join(
        _(name) + " " + _(", ").join(f"{mean(view, name):.2f}" for view in VIEWS)
        for name in record.settings["encodings"]
    )
    return _(
        "A table of accuracy on images as in training, with shuffled patches, rolled by one patch, and "
        "on a wider canvas: {rows}."
    ).format(rows=rows)


def findings(record: Record) -> list[Finding]:
    def gain(view, two, one):
        return difference(record.values(view, encoding=two), record.values(view, encoding=one))

    def lost(view, name):
        return [
            x - y
            for x, y in zip(
                record.values("test", encoding=name), record.values(view, encoding=name), strict=True
            )
        ]

    blind = interval(lost("shuffled", "none"))
    ordered = {name: gain("test", name, "none") for pair in PAIRS.items() for name in pair}
    tokens = "Dosovitskiy et al. 2021, §D.4: no gain from 2-D-aware position embeddings"
    return [
        Finding(
            "Without positions an image is a bag of patches",
            "permutation equivariance",
            "",
            f"accuracy lost when patches are shuffled: {blind}",
            identity(blind, 0.01),
            why="the mean of the patches does not depend on their order: the run is broken",
        ),
        Finding(
            "Positions help to classify images",
            "Liu et al. 2021, Table 4",
            "ImageNet 80.1 without, 81.3 with a relative bias; windows and merged patches tell that model "
            "about order",
            f"accuracy gained by an encoding: {_list(ordered)}",
            all_of(*(above(x, MARGIN) for x in ordered.values())),
            why="an encoding here did not learn more than the bag in these steps",
        ),
        *(
            Finding(
                f"With {KINDS[two]}, two axes are better than one on images like those of the training",
                "a popular argument for 2-D",
                tokens if two == "sinusoidal 2-D" else "",
                f"accuracy gained: {x}",
                above(x, MARGIN),
                why="on one fixed grid of 16 patches the index may say enough of row and column",
            )
            for two, one in PAIRS.items()
            for x in [gain("test", two, one)]
        ),
        *(
            Finding(
                f"With {KINDS[two]}, two axes are better than one when the width of the grid changes",
                "a popular argument for 2-D",
                "",
                f"accuracy gained on a wider canvas: {x}",
                above(x, MARGIN),
                why="blank patches that training never had may disturb as much as a wrong index",
            )
            for two, one in PAIRS.items()
            for x in [gain("wider", two, one)]
        ),
        *(
            Finding(
                f"With {KINDS[two]} on two axes, a wider canvas is read as well as that of the training",
                "",
                "",
                f"accuracy lost on a wider canvas: {x}",
                below(x, MARGIN),
                why="blank patches, and columns that are further apart than in training, may disturb",
            )
            for two in PAIRS
            for x in [interval(lost("wider", two))]
        ),
        *(
            Finding(
                f"With {KINDS[two]} on two axes, less is lost than with sinusoids when the image is rolled",
                "a popular argument for relative positions",
                "",
                f"accuracy lost when rolled, with sinusoids on two axes minus here: {x}",
                above(x, MARGIN),
                why="what leaves on the right comes back on the left, so offsets change as well as places",
            )
            for two in list(PAIRS)[1:]
            for x in [difference(lost("rolled", "sinusoidal 2-D"), lost("rolled", two))]
        ),
    ]


def _list(intervals) -> str:
    return ", ".join(f"{name} {x}" for name, x in intervals.items())


EXPERIMENT = Experiment(
    "images",
    "Positions in images",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words("Handwritten digits in 16 patches; {training}", examples="images", **SIZES),
    presets={
        "live": {"encodings": list(ENCODINGS), "steps": 150, "batch": 64, "protocol": ["own"]},
        "full": {"encodings": list(ENCODINGS), "steps": 320, "batch": 64, "protocol": ["one", "own"]},
        "gpu": {
            "d_model": 256,
            "layers": 6,
            "heads": 8,
            "lr": 1e-3,
            "encodings": list(ENCODINGS),
            "steps": 1000,
            "batch": 128,
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2, 3, 4), "gpu": (0, 1, 2)},
)
