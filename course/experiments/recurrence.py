"""Segment recurrence and position: who gains from a memory (Dai et al. 2019, §4.3, Table 6).

A text is read in segments of S characters. Each segment sees its own past and a memory of the M
characters before it. Two by two: trained with a memory (M = S) or without, and with one position
encoding or another. All then read with memories of 0, 1, 2, 4 and 8 S, and their loss is always on the same
characters at the end of the same texts.

To encodings that see distances, a memory is just a longer past. Absolute positions must choose: started
anew in each segment they *collide*, because a remembered character and a new one have the same position;
*counted* on, they leave the range that training has seen.

Each layer has its own parameters for Transformer-XL and for Shaw, as in their papers.
"""

from __future__ import annotations

import torch
from torch import nn

from tutorial_lib import plots
from tutorial_lib.data import kjv
from tutorial_lib.encodings import build
from tutorial_lib.language import _
from tutorial_lib.model import Config, Memory, Transformer
from tutorial_lib.training import evaluate, seeded, train

from ..verdicts import above, below
from .record import Record
from .statistics import Interval, difference
from .sweep import Experiment, Finding, in_words, spoken

ENCODINGS = ("transformer-xl", "rotary", "shaw", "sinusoidal-collide", "sinusoidal-count")


class Segments(nn.Module):
    """Reads ids ``[B, K·S]`` in segments of S tokens, each with a memory of the last M.

    The memory begins empty, and no gradient passes from a segment to the one before. With
    ``restart`` every segment has the positions 0 … S−1; otherwise they count on.
    """

    def __init__(self, model: Transformer, segment: int, memory: int, restart: bool = False):
        super().__init__()
        self.model, self.segment, self.memory, self.restart = model, segment, memory, restart

    def forward(self, tokens):
        memory, logits = Memory(self.memory), []
        for start in range(0, tokens.shape[1], self.segment):
            part = tokens[:, start : start + self.segment]
            first = 0 if self.restart else start
            positions = torch.arange(first, first + part.shape[1], device=tokens.device)
            logits.append(self.model(part, positions, memory=memory))
        return torch.cat(logits, 1)


def encodings(name: str, settings: dict):
    """One encoding for each layer, or one for all where it embeds or has no parameters."""
    heads, d_model = settings["heads"], settings["d_model"]
    if name.startswith("sinusoidal"):
        return build("sinusoidal", dim=d_model)
    if name == "rotary":
        return build("rotary", head_dim=d_model // heads)
    config = {"transformer-xl": {"n_heads": heads}, "shaw": {"max_distance": settings["segment"]}}[name]
    return [build(name, head_dim=d_model // heads, **config) for _each in range(settings["layers"])]


def cells(settings: dict) -> list[dict]:
    names = settings["encodings"]
    return [{"encoding": name, "memory": memory} for name in names for memory in (False, True)]


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    corpus, S = kjv(), settings["segment"]
    config = Config(
        len(corpus.symbols), settings["d_model"], n_layers=settings["layers"], n_heads=settings["heads"]
    )
    model = seeded(lambda: Transformer(config, encodings(cell["encoding"], settings)), seed)
    reader = Segments(model, S, S if cell["memory"] else 0, restart=cell["encoding"].endswith("collide"))
    train(
        reader,
        lambda generator: corpus.batch(settings["batch"], S * settings["segments"], generator),
        settings["steps"],
        lr=settings["lr"],
        seed=seed,
        device=device,
        progress=False,
    )
    tokens, targets = corpus.windows(settings["windows"], S * settings["read"])
    found = []
    for multiple in settings["memories"]:
        reader.memory = S * multiple
        found.append(evaluate(reader, tokens, targets)[:, -S * settings["tail"] :].mean().item())
    return {"loss": found}


def losses(record: Record, name: str, read: int, memory: bool = True) -> list[float]:
    """The loss for each seed, trained with a memory of S or without, and read with one of ``read`` S."""
    at = record.settings["memories"].index(read)
    return [values[at] for values in record.values("loss", encoding=name, memory=memory)]


def gain(record: Record, name: str, longer: int, shorter: int) -> Interval:
    """Loss when read with one memory minus that with another, both in multiples of S."""
    return difference(losses(record, name, longer), losses(record, name, shorter))


def figure(record: Record):
    fig, axes = plots.panels(1, 2, size=(12, 5), sharey=True)
    for ax, memory in zip(axes, (False, True), strict=True):
        values = {
            spoken(name): torch.tensor(record.values("loss", encoding=name, memory=memory))
            for name in record.settings["encodings"]
        }
        plots.lines(
            record.settings["memories"],
            {name: x.mean(0) for name, x in values.items()},
            spread={name: (x.amin(0), x.amax(0)) for name, x in values.items()},
            markers=True,
            ax=ax,
            legend=memory,
            xlabel=_("memory in reading / S"),
            ylabel="" if memory else _("loss (nats)"),
            title=_("trained with a memory of S") if memory else _("trained without memory"),
        )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    longest = record.settings["memories"][-1]
    gains = {name: gain(record, name, longest, 0).mean for name in record.settings["encodings"]}
    words = _(", ").join(f"{_(name)} {gains[name]:+.2f}" for name in sorted(gains, key=gains.__getitem__))
    return _(
        "Lines of loss against the memory in reading, left for models trained without memory, right "
        "with one segment. Trained with memory, the longest one, {longest} S, changes the loss by "
        "(nats): {words}."
    ).format(longest=longest, words=words)


SAME = 0.02
"""Nats: a loss that differs by less is the same. It is 2 % in perplexity."""

TITLES = {"transformer-xl": "Transformer-XL's encoding", "rotary": "RoPE", "shaw": "Shaw's encoding"}
TABLE = "Dai et al. 2019, Table 6"


def worth(record: Record, name: str) -> Interval:
    """Loss with a memory of S, in training and in reading, minus that of models that never had one."""
    return difference(losses(record, name, 1), losses(record, name, 0, memory=False))


def findings(record: Record) -> list[Finding]:
    names, longest = record.settings["encodings"], record.settings["memories"][-1]
    relative = [name for name in names if name in TITLES]
    paper = {
        "transformer-xl": "perplexity 26.77 with recurrence, 29.02 without",
        "shaw": "perplexity 27.94 with recurrence, 29.75 without",
    }
    with_memory = "loss with a memory of S, minus that of models that never had one"
    little = "what stands before a segment may say little about it to a model of this size and training"
    said = []
    for name in relative:
        x = worth(record, name)
        said.append(
            Finding(
                f"{TITLES[name]} gains from a memory of one segment",
                TABLE if name in paper else "",
                paper.get(name, ""),
                f"{with_memory}: {x} nats",
                below(x, -SAME),
                why=little,
            )
        )
    for name in relative:
        x = gain(record, name, longest, 1)
        said.append(
            Finding(
                f"{TITLES[name]} reads a memory longer than that of its training without harm",
                TABLE if name in paper else "",
                "longer attention in evaluation helps Transformer-XL's encoding only"
                if name in paper
                else "",
                f"loss with a memory of {longest} S minus loss with one of S: {x} nats",
                below(x, SAME),
                why=f"the training had distances below 2 S, and here they go up to {longest + 1} S",
            )
        )
    if "transformer-xl" in names:
        x = gain(record, "transformer-xl", longest, 1)
        said.append(
            Finding(
                "Transformer-XL's encoding gains from a memory longer than that of its training",
                TABLE,
                "26.77 at an attention length of 500; longer attention in evaluation helps this encoding "
                "only",
                f"loss with a memory of {longest} S minus loss with one of S: {x} nats",
                below(x, -SAME),
                why="characters far back may say little about the next one to a model of this size and "
                "training",
            )
        )
    if {"transformer-xl", "shaw"} <= set(names):
        x = difference(*(losses(record, name, 1) for name in ("transformer-xl", "shaw")))
        said.append(
            Finding(
                "With recurrence, Transformer-XL's encoding is better than Shaw's",
                TABLE,
                "perplexity 26.77 against 27.94",
                f"loss with a memory of S, minus that of Shaw: {x} nats",
                below(x, -SAME),
                why="a table learns each distance for itself, which a short training may favour",
            )
        )
    for name, how, theirs in (
        (
            "sinusoidal-collide",
            "start anew in each segment",
            "an argument: the model cannot tell a character from the one at its place a segment before",
        ),
        ("sinusoidal-count", "count on", ""),
    ):
        if name in names:
            x = worth(record, name)
            said.append(
                Finding(
                    f"Absolute positions that {how} get worse with a memory",
                    "Dai et al. 2019, §3.3",
                    theirs,
                    f"{with_memory}: {x} nats",
                    above(x, SAME),
                    why="what a character says does not depend on its position alone: there may be "
                    "something to "
                    "learn from it even so",
                )
            )
    return said


SMALL = {
    "d_model": 64,
    "layers": 2,
    "heads": 4,
    "segment": 16,
    "segments": 4,
    "batch": 16,
    "lr": 5e-3,
    "encodings": list(ENCODINGS),
    "memories": [0, 1, 2, 4, 8],
    "read": 20,
    "tail": 2,
}

EXPERIMENT = Experiment(
    "recurrence",
    "Memory and position",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words(
        "S = {segment} characters of the King James Bible, {segments} segments in a row; {training}",
        examples="texts",
    ),
    presets={
        "live": SMALL
        | {
            "encodings": ["transformer-xl", "rotary", "sinusoidal-collide"],
            "steps": 100,
            "windows": 32,
            "read": 12,
        },
        "full": SMALL | {"steps": 250, "windows": 128},
        "gpu": {
            "d_model": 256,
            "layers": 6,
            "heads": 8,
            "segment": 64,
            "segments": 4,
            "batch": 64,
            "lr": 1e-3,
            "encodings": list(ENCODINGS),
            "memories": [0, 1, 2, 4, 8, 16],
            "read": 40,
            "tail": 2,
            "steps": 400,
            "windows": 64,
        },
    },
    seeds={"live": (0, 1, 2), "full": (0, 1, 2), "gpu": (0, 1, 2)},
)
