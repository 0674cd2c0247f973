"""A task that needs an absolute slot and a relative offset: which hybrids have both? (Ke et al. 2021)"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tutorial_lib import plots
from tutorial_lib.data import slot_or_back
from tutorial_lib.encodings import (
    TUPE,
    Compose,
    HybridConcat,
    HybridSum,
    KeySide,
    Learned,
    NoPosition,
    Rotary,
    Shaw,
    Sinusoidal,
    T5Bias,
)
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import accuracy, cross_entropy, seeded, train

from ..verdicts import above, all_of, below, identity, unmeasured, within
from . import rates
from .record import Record
from .statistics import difference, interval
from .sweep import Experiment, Finding, in_words, spoken

VALUES = 8
SIZES = {"d_model": 64, "layers": 1, "heads": 4, "length": 24, "lr": 9e-3}
"""Where a preset does not say otherwise."""

MARGIN = 0.1
"""Nats; a hybrid that works gains about 1."""

ROUNDING = 0.01
"""Nats that rounding may make of one function, trained twice: a difference grows from step to step."""

BOTH = 0.9
"""Accuracy on the harder question, from which on both count as answered."""


@dataclass(frozen=True)
class Parts:
    """What encodings of one model and one length are made of."""

    d_model: int
    heads: int
    length: int

    @property
    def head_dim(self) -> int:
        return self.d_model // self.heads

    def relative(self) -> T5Bias:
        return T5Bias(self.heads, bidirectional=True, max_distance=64, std=1.0)

    def learned(self, std: float = 1.0) -> Learned:
        return Learned(self.length, self.d_model, std=std)

    def rotary(self) -> Rotary:
        return Rotary(self.head_dim)

    def hybrid(self, kind, *sizes, **options) -> HybridSum | HybridConcat | TUPE:
        """The relative bias is drawn first, so that it is the same in every hybrid."""
        r = self.relative()
        return kind(self.learned(), *sizes, relative=r, **options)


ENCODINGS = {
    "none": lambda make: NoPosition(),
    "sinusoidal": lambda make: Sinusoidal(make.d_model),
    "learned": lambda make: make.learned(),
    "learned, std 0.02": lambda make: make.learned(std=0.02),
    "t5": lambda make: make.relative(),
    "rotary": lambda make: make.rotary(),
    "shaw": lambda make: Shaw(make.head_dim, 8),
    "sum": lambda make: make.hybrid(HybridSum),
    "concat": lambda make: make.hybrid(HybridConcat),
    "concat, non-linear": lambda make: make.hybrid(HybridConcat, hidden=64),
    "key side": lambda make: make.hybrid(KeySide),
    "tupe": lambda make: make.hybrid(TUPE, make.heads, make.head_dim),
    "learned + t5": lambda make: Compose(make.relative(), make.learned()),
    "learned + rotary": lambda make: Compose(make.learned(), make.rotary()),
}
WORKING = {"key side": "t5", "tupe": "t5", "learned + t5": "t5", "learned + rotary": "rotary"}
"""Hybrids that do not cancel, and the relative part of each alone."""
RELATIVE, ABSOLUTE = ("t5", "rotary", "shaw"), ("sinusoidal", "learned", "learned, std 0.02")


def encoding(name: str, settings: dict):
    """The encoding ``name`` for a model and a length as in the settings."""
    return ENCODINGS[name](Parts(*(settings[size] for size in ("d_model", "heads", "length"))))


def cells(settings: dict) -> list[dict]:
    return rates.cells("hybrid", SIZES | settings, [{"encoding": name} for name in settings["encodings"]])


def trained(settings: dict, cell: dict, seed: int, device: torch.device) -> Transformer:
    """The model of a cell."""
    settings = SIZES | settings
    config = Config(
        2 * VALUES,
        settings["d_model"],
        n_heads=settings["heads"],
        n_layers=settings["layers"],
        n_out=VALUES,
        causal=False,
    )
    # drawn separately: all methods begin with the same weights, all hybrids with the same relative bias
    model = seeded(lambda: Transformer(config), seed)
    model.encoding = seeded(lambda: encoding(cell["encoding"], settings), seed)
    train(
        model,
        lambda generator: draw(settings, settings["batch"], generator),
        settings["steps"],
        **rates.of(settings, cell),
        seed=seed,
        device=device,
        progress=False,
    )
    return model


def draw(settings: dict, size: int, generator: torch.Generator):
    """Ids and labels of a batch."""
    return slot_or_back(size, generator, length=(SIZES | settings)["length"], n_values=VALUES)


@torch.no_grad()
def loss(model: Transformer, tokens: torch.Tensor, targets: torch.Tensor) -> float:
    device = next(model.parameters()).device
    return cross_entropy(model(tokens.to(device)), targets.to(device)).item()


def validation(model: Transformer, settings: dict, cell: dict, seed: int) -> float:
    """Loss on sequences that are neither trained on nor reported."""
    return loss(model, *draw(settings, settings["test"], torch.Generator().manual_seed(2000 + seed)))


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    model = trained(settings, cell, seed, device)
    tokens, targets = draw(settings, settings["test"], torch.Generator().manual_seed(1000 + seed))
    back = tokens >= VALUES
    return {
        "slot": accuracy(model, tokens, targets.masked_fill(back, -100)),
        "back": accuracy(model, tokens, targets.masked_fill(~back, -100)),
        "loss": loss(model, tokens, targets),
    }


def figure(record: Record):
    fig, axes = plots.panels(1, 2, size=(13, 7), sharey=True)
    for ax, part, title in zip(axes, ("slot", "back"), (_("the absolute slot"), _("two back")), strict=True):
        got = {spoken(name): record.values(part, encoding=name) for name in record.settings["encodings"]}
        plots.bars(
            {name: sum(values) / len(values) for name, values in got.items()},
            spread={name: (min(values), max(values)) for name, values in got.items()},
            ax=ax,
            title=title,
            xlabel=_("accuracy"),
            xlim=(0, 1),
        )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    names = record.settings["encodings"]
    mean = {
        (name, part): interval(record.values(part, encoding=name)).mean
        for name in names
        for part in ("slot", "back")
    }
    both = [spoken(name) for name in names if min(mean[name, "slot"], mean[name, "back"]) > BOTH]
    return _(
        "Bars of accuracy on two kinds of question for {n} encodings. Above {high} on both: {both}. The "
        "sum has {sum} on the slot, the relative bias alone {alone}."
    ).format(
        n=len(names),
        high=BOTH,
        both=_(", ").join(map(_, both)) or _("none"),
        sum=f"{mean['sum', 'slot']:.2f}",
        alone=f"{mean['t5', 'slot']:.2f}",
    )


def findings(record: Record) -> list[Finding]:
    def lower(name, than="t5", of=record):
        """By how much the loss of ``name`` is lower."""
        return difference(of.values("loss", encoding=than), of.values("loss", encoding=name))

    def weaker(name):
        """The accuracy on the harder question, seed by seed."""
        return [
            min(x)
            for x in zip(*(record.values(part, encoding=name) for part in ("slot", "back")), strict=True)
        ]

    # at their own rates the two may be trained differently, and then they are not the same
    alike = record.at_one_rate()
    total, words = (lower("sum", of=alike), ", at one rate for all") if alike.runs else (lower("sum"), "")
    concat, non_linear = lower("concat"), lower("concat, non-linear")
    over_relative = {name: lower(name, relative) for name, relative in WORKING.items()}
    over_table = {name: lower(name, "learned") for name in WORKING}
    left_to_table = interval(record.values("loss", encoding="learned"))
    relative, absolute = ({name: interval(weaker(name)) for name in names} for names in (RELATIVE, ABSOLUTE))
    length = (SIZES | record.settings)["length"]
    few = "the training may be too short"
    return [
        Finding(
            "PE_i + r_ij gives the loss of the relative bias alone",
            "algebra: what is the same for all keys cancels in a softmax",
            "",
            f"loss of the bias alone minus loss of both: {total} nats{words}",
            identity(total, ROUNDING),
            why="the function is the same; the two may have been trained at different rates",
        ),
        Finding(
            "W_o [PE_i; r_ij] gives the loss of the relative bias alone after training",
            "algebra: PE_i cancels, and W_r r_ij is a relative bias again",
            "",
            f"loss of the bias alone minus loss of both: {concat} nats",
            within(concat, MARGIN),
            why="it can be the same function, but W_r r_ij is trained along another path than r_ij",
        ),
        Finding(
            "A hybrid that does not cancel is better than its relative part alone, where a task asks for a "
            "place too",
            "a popular claim; Shaw et al. 2018, §4.2; Liu et al. 2021, Table 4",
            "on other tasks, no gain. Shaw: none in translation from sinusoids beside relative vectors. "
            "Swin, relative alone and both: ImageNet 81.3 and 81.3, COCO 50.5 and 50.2, ADE20K 46.1 and 44.0",
            f"loss of the relative part alone minus loss of both: {_list(over_relative)} nats",
            all_of(*(above(x, MARGIN) for x in over_relative.values())),
            why=few,
        ),
        Finding(
            "A hybrid that does not cancel is better than the learned table alone",
            "Ke et al. 2021, Table 1",
            "GLUE average: absolute alone 82.96 (BERT-A), both 83.66 (BERT-R); untied 84.47 (TUPE-A), both "
            "85.04 (TUPE-R). Relative positions alone were not tried",
            f"loss of the table alone minus loss of both: {_list(over_table)} nats",
            all_of(*(above(x, MARGIN) for x in over_table.values()))
            if above(left_to_table, MARGIN).holds
            else unmeasured("a task that the table alone leaves unsolved"),
            why="what the table lacks, the other part lacks, too",
            open_why=f"the table alone has a loss of {left_to_table.mean:.3f} nats, so nothing can gain "
            f"{MARGIN} on it",
        ),
        Finding(
            "A hidden layer over [PE_i; r_ij] brings the absolute place back",
            "algebra: what a non-linear layer mixes does not cancel",
            "",
            f"loss of the bias alone minus loss of both: {non_linear} nats",
            above(non_linear, MARGIN),
            why="it has to learn for each query apart where the place is; the training may be too short",
        ),
        Finding(
            "No relative encoding alone answers both questions",
            "the motive of hybrids",
            "",
            f"accuracy on the harder question: {_list(relative)}",
            all_of(*(below(x, BOTH) for x in relative.values())),
            why=f"{_above(relative)} did",
        ),
        Finding(
            "No absolute encoding alone answers both questions",
            "the motive of hybrids",
            "",
            f"accuracy on the harder question: {_list(absolute)}",
            all_of(*(below(x, BOTH) for x in absolute.values())),
            why=f"{_above(absolute)} did: with one vector for each of {length} places a model can learn an "
            "offset as well, once for each place",
        ),
    ]


def _above(intervals) -> str:
    return " and ".join(name for name, x in intervals.items() if x.low >= BOTH)


def _list(intervals) -> str:
    return ", ".join(f"{name} {x}" for name, x in intervals.items())


EXPERIMENT = Experiment(
    "hybrid",
    "Hybrids of absolute and relative",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words("Sequences of {length} random tokens; {training}", **SIZES),
    presets={
        "live": {"encodings": list(ENCODINGS), "steps": 150, "batch": 32, "test": 256, "protocol": ["own"]},
        "full": {
            "encodings": list(ENCODINGS),
            "steps": 400,
            "batch": 32,
            "test": 512,
            "protocol": ["one", "own"],
        },
        "gpu": {
            "d_model": 256,
            "layers": 6,
            "heads": 8,
            "length": 64,
            "lr": 1e-3,
            "encodings": list(ENCODINGS),
            "steps": 1000,
            "batch": 64,
            "test": 1024,
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2, 3, 4), "gpu": (0, 1, 2)},
)
