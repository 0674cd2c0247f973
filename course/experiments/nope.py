"""No position at all: a decoder manages, an encoder does not (Haviv et al. 2022; Kazemnejad et al. 2023).

Two objectives with the same text and the same layers: *causal*, predict the next character from the
past; *masked*, predict hidden characters (15 %, each replaced by one more symbol) from both sides.
Without positions the second sees no more than a bag of characters.

Then a probe asks each layer of the model where a character stands: position is fitted to the
hidden states by linear least squares on some held-out texts, and read off others. The number is the
mean absolute error; always answering with the middle would give L/4. Layer 0 is the embedding. The same
probe reads a model before training.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.data import kjv
from tutorial_lib.encodings import build
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import cross_entropy, seeded, train

from ..verdicts import above, below, identity, within
from .record import Record
from .statistics import Interval, difference, interval
from .sweep import Experiment, Finding, in_words, spoken

ENCODINGS = ("none", "sinusoidal", "rotary")
OBJECTIVES = ("causal", "masked")
MASKED = 0.15


def hide(tokens: Tensor, symbol: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Characters replaced by ``symbol``, and what they were; −100 where nothing is hidden."""
    hidden = torch.rand(tokens.shape, generator=generator) < MASKED
    return tokens.masked_fill(hidden, symbol), tokens.masked_fill(~hidden, -100)


@torch.no_grad()
def hidden_states(model: Transformer, tokens: Tensor) -> list[Tensor]:
    """What enters each layer, and what leaves the last one: ``layers + 1`` times ``[B, L, d_model]``."""
    states = []
    hooks = [
        block.register_forward_pre_hook(lambda block, args: states.append(args[0])) for block in model.blocks
    ]
    hooks.append(model.blocks[-1].register_forward_hook(lambda block, args, out: states.append(out)))
    try:
        model(tokens.to(next(model.parameters()).device))
    finally:
        for hook in hooks:
            hook.remove()
    return [x.cpu() for x in states]


def probe(x: Tensor) -> float:
    """Mean absolute error of positions read off ``x [B, L, d]`` linearly, on the second half of the rows."""
    fit, held_out = x.double().chunk(2)
    features = [torch.cat([part, torch.ones_like(part[..., :1])], -1) for part in (fit, held_out)]
    p = torch.arange(x.shape[1], dtype=torch.float64)
    # a little ridge: in the embedding, channels of rare characters are nearly dependent
    A, y = features[0].flatten(0, 1), p.repeat(len(fit))
    w = torch.linalg.solve(A.T @ A + 1e-6 * len(A) * torch.eye(A.shape[1], dtype=A.dtype), A.T @ y)
    return (features[1] @ w - p).abs().mean().item()


def cells(settings: dict) -> list[dict]:
    return [
        {"objective": objective, "encoding": name}
        for objective in OBJECTIVES
        for name in settings["encodings"]
    ]


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    corpus, L, d_model, heads = kjv(), settings["length"], settings["d_model"], settings["heads"]
    causal, symbol = cell["objective"] == "causal", len(corpus.symbols)
    encoding = {"none": {}, "sinusoidal": {"dim": d_model}, "rotary": {"head_dim": d_model // heads}}
    config = Config(
        symbol + 1, d_model, n_layers=settings["layers"], n_heads=heads, n_out=symbol, causal=causal
    )
    model = seeded(lambda: Transformer(config, build(cell["encoding"], **encoding[cell["encoding"]])), seed)

    def batch(generator):
        tokens, targets = corpus.batch(settings["batch"], L, generator)
        return (tokens, targets) if causal else hide(tokens, symbol, generator)

    tokens, targets = corpus.windows(settings["windows"], L)
    asked = (tokens, targets) if causal else hide(tokens, symbol, torch.Generator().manual_seed(0))
    model.to(device)
    found: dict = {"untrained": [probe(x) for x in hidden_states(model, tokens)]}
    train(model, batch, settings["steps"], lr=settings["lr"], seed=seed, device=device, progress=False)
    with torch.no_grad():
        found["loss"] = cross_entropy(model(asked[0].to(device)), asked[1].to(device)).item()
    found["probe"] = [probe(x) for x in hidden_states(model, tokens)]
    return found | {"letters": letters(asked[1], corpus.train, symbol)}


def letters(targets: Tensor, text: Tensor, n: int) -> float:
    """Loss in nats of a model that knows nothing but how frequent each of the n characters is."""
    counts = torch.bincount(text, minlength=n).double() + 1
    targets = targets[targets != -100]
    return -(counts / counts.sum()).log()[targets].mean().item()


def loss(record: Record, name: str, objective: str) -> list[float]:
    return record.values("loss", encoding=name, objective=objective)


def untold(record: Record, name: str) -> Interval:
    """How far a masked model stays below the loss from frequencies alone."""
    return difference(
        record.values("letters", encoding=name, objective="masked"), loss(record, name, "masked")
    )


def figure(record: Record):
    names = record.settings["encodings"]
    fig, (*axes, probe) = plots.panels(1, 3, size=(13.8, 5))
    for ax, objective in zip(axes, OBJECTIVES, strict=True):
        runs = {spoken(name): loss(record, name, objective) for name in names}
        plots.bars(
            {name: sum(x) / len(x) for name, x in runs.items()},
            ax=ax,
            xlabel={
                "causal": _("loss on the next character (nats)"),
                "masked": _("loss on hidden characters (nats)"),
            }[objective],
            xlim=(0, 3.8),
            spread={name: (min(x), max(x)) for name, x in runs.items()},
            title={
                "causal": _("A decoder learns without"),
                "masked": _("An encoder needs positions"),
            }[objective],
            levels={
                _("frequencies alone"): record.values("letters", encoding=names[0], objective=objective)[0]
            },
        )
    label = {"causal": _("{name}, decoder"), "masked": _("{name}, encoder")}
    read = {
        label[objective].format(name=_(spoken(name))): torch.tensor(
            record.values("probe", encoding=name, objective=objective)
        )
        for name, objective in (("none", "causal"), ("none", "masked"), ("sinusoidal", "causal"))
        if name in names
    }
    read[_("no positions, untrained")] = torch.tensor(
        record.values("untrained", encoding="none", objective="causal")
    )
    plots.lines(
        range(record.settings["layers"] + 1),
        {label: x.mean(0) for label, x in read.items()},
        spread={label: (x.amin(0), x.amax(0)) for label, x in read.items()},
        ax=probe,
        markers=True,
        title=_("A decoder’s layers know the place"),
        xlabel=_("layer"),
        ylabel=_("error of a place read out (characters)"),
        levels={_("always the middle"): record.settings["length"] / 4},
        ylim=(0, record.settings["length"] / 2),
    )
    probe.texts[0].set_y(record.settings["length"] / 4 + 0.6)  # two lines lie on the level itself
    probe.set_xticks(range(record.settings["layers"] + 1))
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    none, other = (
        {objective: interval(loss(record, name, objective)).mean for objective in OBJECTIVES}
        for name in ("none", record.settings["encodings"][-1])
    )
    layers = torch.tensor(record.values("probe", encoding="none", objective="causal")).mean(0)
    return _(
        "Bars of loss: without position {none} in the decoder and {blind} in the encoder, against "
        "{causal} and {masked} with {name}. Beside them, lines: the error of a probe for position. "
        "Without position, in the decoder, it goes from {first} characters at the embedding to {best} "
        "at the best layer."
    ).format(
        none=f"{none['causal']:.2f}",
        blind=f"{none['masked']:.2f}",
        causal=f"{other['causal']:.2f}",
        masked=f"{other['masked']:.2f}",
        name=_(record.settings["encodings"][-1]),
        first=f"{layers[0]:.1f}",
        best=f"{layers.min():.1f}",
    )


NEARLY = math.log(1.05)
"""Nats: 5 % in perplexity. A loss that is higher by less is almost as good."""

CLEAR = 0.1
"""Nats: a loss that is lower by more makes a difference."""


def findings(record: Record) -> list[Finding]:
    names, L = record.settings["encodings"], record.settings["length"]
    layers, blind = (
        [list(layer) for layer in zip(*record.values("probe", encoding="none", objective=x), strict=True)]
        for x in ("causal", "masked")
    )
    best = min(layers[1:], key=sum)
    left = interval(best)
    fall = difference(layers[0], best)
    bag = untold(record, "none")
    said = [
        Finding(
            "Without position a masked language model learns little more than how frequent each symbol is",
            "Haviv et al. 2022, Table 4",
            "perplexity 147.18 without, 4.06 with learned, 4.07 with sinusoidal, 4.00 with ALiBi positions",
            f"loss of mere frequencies of characters minus this loss: {bag} nats",
            within(bag, 0.05),
            why="which characters a text has tells something: a bag is more than the frequencies of a "
            "language",
        )
    ]
    for name in (name for name in names if name != "none"):
        gap = difference(loss(record, "none", "masked"), loss(record, name, "masked"))
        said.append(
            Finding(
                f"In a masked language model {name} positions make the difference",
                "Haviv et al. 2022, Table 4",
                "perplexity 147.18 without, about 4 with" + _untried(name),
                f"loss without positions minus loss with them: {gap} nats",
                above(gap, CLEAR),
                why="the model may need more steps before it uses positions both ways",
            )
        )
    for name in (name for name in names if name != "none"):
        gap = difference(loss(record, "none", "causal"), loss(record, name, "causal"))
        said.append(
            Finding(
                f"A causal model without position is almost as good as one with {name} positions",
                "Haviv et al. 2022, Table 1",
                "perplexity at 1.3 B parameters: none 13.10, learned 13.05, sinusoidal 12.93, ALiBi 12.51; "
                "on WikiText-103 20.97, 20.42, 20.16, 19.71" + _untried(name),
                f"loss without positions minus loss with them: {gap} nats; almost means 5 % in perplexity",
                below(gap, NEARLY),
                why=f"from its best layer the probe reads a place among {L} to within {left.mean:.1f}: "
                "that may "
                "tell early from late, but not one neighbour from the next. In the paper the gaps to "
                "sinusoids and ALiBi narrow as models grow (Table 2), and this one is small",
            )
        )
    said.append(
        Finding(
            "A probe can read position from a causal model that was given none",
            "Haviv et al. 2022, Fig. 2",
            "position can be read by the fourth layer",
            f"error of a linear probe, {sum(layers[0]) / len(layers[0]):.1f} of {L} characters at the "
            "embedding, "
            f"minus that at layer {layers.index(best)}: {fall} characters",
            above(fall, L / 16),
            why="the probe here is linear, and the model has few layers",
        )
    )
    seen = interval([max(0.0, L / 4 - x) for x in min(blind[1:], key=sum)])
    said.append(
        Finding(
            "From an encoder without position no probe can",
            "Lin et al. 2022, §5.1",
            "a proof: self-attention is permutation equivariant",
            f"by how much the probe is better at its best layer than always the middle: {seen} characters",
            identity(seen, L / 40),
            why="the probe reads something from the text itself",
        )
    )
    before = [x[layers.index(best)] for x in record.values("untrained", encoding="none", objective="causal")]
    learned = difference(before, best)
    said.append(
        Finding(
            "Training brings position into a causal model; the mask alone does not",
            "",
            "",
            f"error of the probe at layer {layers.index(best)} before training minus after: {learned} "
            "characters",
            above(learned, L / 16),
            why="the mask alone may do",
        )
    )
    return said


def _untried(name: str) -> str:
    """What to say about an encoding that the paper did not test."""
    return "" if name in ("learned", "sinusoidal", "alibi") else f"; {name} positions were not tried"


SMALL = {"d_model": 64, "heads": 4, "length": 64, "batch": 16, "lr": 5e-3, "encodings": list(ENCODINGS)}

EXPERIMENT = Experiment(
    "nope",
    "No position at all",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words("L = {length} characters of the King James Bible; {training}", examples="texts"),
    presets={
        "live": SMALL | {"layers": 2, "steps": 150, "windows": 64},
        "full": SMALL | {"layers": 3, "steps": 700, "windows": 256},
        "gpu": {
            "d_model": 256,
            "layers": 8,
            "heads": 8,
            "length": 256,
            "batch": 32,
            "lr": 1e-3,
            "encodings": list(ENCODINGS),
            "steps": 1500,
            "windows": 128,
        },
    },
    seeds={"live": (0, 1, 2), "full": (0, 1, 2), "gpu": (0, 1, 2)},
)
