"""Who uses what is far? A text in which it pays to look back, read beyond the length of the training.

A loss that stays flat as the text gets longer may mean two things: the model still uses all of it, or it
looks at what is near and never did otherwise. This test tells them apart. In every text a passage comes
again, word for word, later on: whoever remembers the first time knows how the second one goes on. In
training the two stand anywhere within L characters. Then the first stands near the beginning of a text of
1, 2, 4, 8 and 16 L, and the second at its end. Three losses, always of the same characters of the second:

- ``again``: the passage stood before;
- ``new``: another passage stood there in its place, all else being equal;
- ``cut``: as ``again``, but only the last L characters are read: a model that cannot see further.

``cut − again`` is what the far text is worth to the model. The first characters of the passage, by which it
is recognised, do not count.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import plots
from ..data import Corpus, kjv
from ..model import Config, Transformer
from ..training import evaluate, seeded, train
from ..verdicts import above, all_of, below
from . import lengths, rates
from .record import Record
from .statistics import Interval, difference, interval
from .sweep import Experiment, Finding

ENCODINGS = ("none", "sinusoidal", "rotary", "xpos", "alibi", "kerple", "t5", "shaw")
KNOWN = 8
"""Characters of a passage by which it is recognised."""

USE = 0.2
"""Nats; a passage that is copied letter by letter is worth about 2."""


def planted(corpus: Corpus, size: int, length: int, span: int, generator: torch.Generator) -> Tensor:
    """Training texts ``[size, length + 1]``; in each a passage of ``span`` characters comes twice."""
    x, y = corpus.batch(size, length, generator)
    text = torch.cat([x, y[:, -1:]], 1)
    first = torch.randint(length + 1 - 2 * span, (size, 1), generator=generator)
    free = length + 1 - 2 * span - first
    second = first + span + (torch.rand(size, 1, generator=generator) * (free + 1)).long()
    steps = torch.arange(span)
    return text.scatter(1, second + steps, text.gather(1, first + steps))


def reading(corpus: Corpus, count: int, length: int, span: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Held-out texts ``[count, length + 1]``: one where the last ``span`` characters stood near the beginning,
    and the same one with another passage there."""
    x, y = corpus.windows(count, length)
    text = torch.cat([x, y[:, -1:]], 1)
    first = torch.randint(span, (count, 1), generator=generator)
    place = first + torch.arange(span)
    again = text.scatter(1, place, text[:, -span:])
    new = text.scatter(1, place, text[:, -span:].roll(1, 0))  # the passage of another text
    return again, new


def cells(settings: dict) -> list[dict]:
    names = [{"encoding": name} for name in settings["encodings"]]
    return rates.cells("lengths", settings, names)  # the same text, the same model


def trained(settings: dict, cell: dict, seed: int, device: torch.device) -> Transformer:
    """The model of a cell."""
    corpus, L, span = kjv(), settings["length"], settings["span"]
    config = Config(len(corpus.symbols), settings["d_model"], n_layers=settings["layers"],
                    n_heads=settings["heads"])

    def batch(generator):
        text = planted(corpus, settings["batch"], L, span, generator)
        return text[:, :-1], text[:, 1:]

    model = seeded(lambda: Transformer(config, lengths.encoding(cell["encoding"], settings)), seed)
    train(model, batch, settings["steps"], **rates.of(settings, cell), seed=seed, device=device,
          progress=False)
    return model


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    model, L, span = trained(settings, cell, seed, device), settings["length"], settings["span"]
    found: dict[str, list[float]] = {"again": [], "new": [], "cut": []}
    for multiple in settings["multiples"]:
        generator = torch.Generator().manual_seed(1000)
        again, new = reading(kjv(), settings["windows"], L * multiple, span, generator)
        for name, text in (("again", again), ("new", new), ("cut", again[:, -L - 1:])):
            size = max(1, 4096 // text.shape[1])
            losses = evaluate(model, text[:, :-1], text[:, 1:], batch_size=size)
            found[name].append(losses[:, KNOWN - span:].mean().item())
    return found


def worth(record: Record, name: str, multiple: int, than: str = "cut") -> Interval:
    """What the far passage is worth at a multiple of L, in nats."""
    at = record.settings["multiples"].index(multiple)
    return difference(*([x[at] for x in record.values(what, encoding=name)] for what in (than, "again")))


def figure(record: Record):
    multiples, names = record.settings["multiples"], record.settings["encodings"]
    fig, axes = plots.panels(1, 2, size=(12, 5))
    for ax, title, pick in (
        (axes[0], "loss of the second passage (nats)", lambda name: record.values("again", encoding=name)),
        (axes[1], "what the far passage is worth (nats)", lambda name: [
            [cut - again for cut, again in zip(*pair, strict=True)] for pair in
            zip(record.values("cut", encoding=name), record.values("again", encoding=name), strict=True)]),
    ):
        values = {name: torch.tensor(pick(name)) for name in names}
        plots.lines(multiples, {name: x.mean(0) for name, x in values.items()}, ax=ax, logx=2, markers=True,
                    spread={name: (x.amin(0), x.amax(0)) for name, x in values.items()}, title=title,
                    xlabel="length / L", legend=ax is axes[1])
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    last = record.settings["multiples"][-1]
    gains = {name: worth(record, name, last).mean for name in record.settings["encodings"]}
    order = sorted(gains, key=gains.__getitem__, reverse=True)
    return ("Two panels of lines against length: the loss of a passage that stood before, and what that is worth. "
            f"At {last} L it is worth most to {order[0]} ({gains[order[0]]:+.2f} nats) and least to {order[-1]} "
            f"({gains[order[-1]]:+.2f}).")


def findings(record: Record) -> list[Finding]:
    multiples, names = record.settings["multiples"], record.settings["encodings"]
    last, said = multiples[-1], []

    def at(name, multiple):
        return worth(record, name, multiple)

    learned = [name for name in names if worth(record, name, 1, "new").low > USE]
    said.append(Finding(
        "Within the trained length a decoder with any of these positions copies what it has read",
        "Olsson et al. 2022: induction heads", "",
        "a passage that stood before is worth, at L: "
        + ", ".join(f"{name} {worth(record, name, 1, 'new').mean:+.2f}" for name in names) + " nats",
        all_of(*(above(worth(record, name, 1, "new"), USE) for name in names)),
        why=f"{', '.join(name for name in names if name not in learned)} did not learn it in this training",
    ))
    if "alibi" in names:
        flat = difference(*([x[at_] for x in record.values("new", encoding="alibi")] for at_ in (-1, 0)))
        said.append(Finding(
            "ALiBi reads long texts steadily because it does not look far", "Chi et al. 2022 (Sandwich), §3",
            "ALiBi's bias acts as a window",
            f"loss without the passage, {last} L against L: {flat} nats; what the passage is worth at {last} L: "
            f"{at('alibi', last)} nats",
            all_of(below(flat, lengths.STEADY), below(at("alibi", last), USE)),
            why="it still uses what is far, or its loss is not steady",
        ))
        said.append(Finding(
            "ALiBi uses a text of any length", "a popular reading of Press et al. 2022, Fig. 1", "",
            f"worth at {multiples[1]} L: {at('alibi', multiples[1])}; at {last} L: {at('alibi', last)} nats",
            above(at("alibi", last), USE),
            why="at that distance all but its flattest head give weights near 0",
        ))
    if "rotary" in names:
        said.append(Finding(
            "RoPE uses what stands beyond the trained length", "", "",
            f"worth at {multiples[1]} L: {at('rotary', multiples[1])}; at {last} L: {at('rotary', last)} nats",
            above(at("rotary", multiples[1]), USE), why="its angles are new there",
        ))
    if "t5" in names:
        said.append(Finding(
            "T5's last bucket lets a model find what is far by what it is", "a reading of the buckets", "",
            f"worth at {multiples[1]} L: {at('t5', multiples[1])}; at {last} L: {at('t5', last)} nats",
            above(at("t5", last), USE), why="all that is far shares one bias: what is sought drowns in it",
        ))
    best = max(names, key=lambda name: interval(at(name, last).values).mean)
    said.append(Finding(
        f"Some encoding uses what is {last} times as far as its training", "a question of this course", "",
        f"most: {best} {at(best, last)} nats", above(at(best, last), USE),
        why="none of these, in a model of this size",
    ))
    return said


MULTIPLES = [1, 2, 4, 8, 16]
SMALL = {"d_model": 64, "layers": 2, "heads": 4, "length": 128, "span": 32, "batch": 16, "lr": 1.5e-2,
         "multiples": MULTIPLES, "encodings": list(ENCODINGS)}

EXPERIMENT = Experiment(
    "far", "Who uses what is far", findings=findings, figure=figure, alt=alt, cells=cells, measure=measure,
    presets={
        "live": SMALL | {"encodings": ["rotary", "alibi", "t5"], "steps": 300, "windows": 16,
                         "protocol": ["own"]},
        "full": SMALL | {"steps": 800, "windows": 48, "protocol": ["own"]},
        "gpu": SMALL | {"d_model": 384, "layers": 6, "heads": 6, "length": 512, "span": 64, "batch": 32,
                        "lr": 1e-3, "steps": 1500, "windows": 32},
    },
    seeds={"live": (0, 1), "full": (0, 1, 2, 3, 4), "gpu": (0, 1, 2)},
)
