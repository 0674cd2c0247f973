"""Who uses what is far? A text in which it pays to look back, read beyond the length of the training.

A loss that stays flat while the text gets longer may mean two things: the model still uses all of it, or it
only ever looked at what is near. This test tells them apart. In every text a passage occurs twice, word for
word, so a model that remembers the first copy knows how the second goes on. In training both lie within L
characters. Afterwards the first is near the beginning of a text of 1, 2, 4, 8 and 16 L and the second at its
end, and there are three losses, always on the same characters of the second copy:

- ``again``: the passage came before;
- ``new``: another passage came in its place, and all else is equal;
- ``cut``: as ``again``, but only the last L characters are read. This is the model limited to a window.

``new − again`` is the *use* that is made of the far passage. For a model that cannot see further than L it is
exactly 0 from 2 L on, because both texts are the same to it. ``cut − again`` is what the model gains by
reading the whole text and not just the window: it may use the far passage and still lose, because so long a
text confuses it. The first characters of the passage, by which it is recognised, do not count.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.data import Corpus, kjv
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import evaluate, seeded, train

from ..verdicts import above, all_of, below
from . import lengths, rates
from .record import Record
from .statistics import Interval, difference
from .sweep import Experiment, Finding, in_words, spoken

ENCODINGS = ("sinusoidal", "rotary", "alibi", "t5")
KNOWN = 6
"""Characters of a passage by which it is recognised."""

USE = 0.1
"""Nats for each character."""

SLOWER = 1 / 3
"""Copying is learned at slower rates than those that read a text best: at this share of them, for all."""


def texts(x: Tensor, y: Tensor) -> Tensor:
    """Windows and their next characters, both ``[size, length]``, as texts ``[size, length + 1]``."""
    return torch.cat([x, y[:, -1:]], 1)


def planted(corpus: Corpus, size: int, length: int, span: int, generator: torch.Generator) -> Tensor:
    """Training texts ``[size, length + 1]``; in each a passage of ``span`` characters occurs twice."""
    text = texts(*corpus.batch(size, length, generator))
    free = length + 2 - 2 * span  # places for the first copy
    first = torch.randint(free, (size, 1), generator=generator)
    second = first + span + (torch.rand(size, 1, generator=generator) * (free - first)).long()
    steps = torch.arange(span)
    return text.scatter(1, second + steps, text.gather(1, first + steps))


def repeated(corpus: Corpus, size: int, length: int, span: int, generator: torch.Generator) -> Tensor:
    """Training texts ``[size, length + 1]`` of one passage, over and over; it has span / 2 to ``span``
    characters. With these among the others a model learns to copy in far fewer steps."""
    text = texts(*corpus.batch(size, length, generator))
    period = torch.randint(span // 2, span + 1, (size, 1), generator=generator)
    return text.gather(1, torch.arange(length + 1) % period)


def reading(
    corpus: Corpus, count: int, length: int, span: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Held-out texts ``[count, length + 1]``: one whose last ``span`` characters also stand near its
    beginning, and the same one with another passage there."""
    text = texts(*corpus.windows(count, length))
    free = min(span, length + 2 - 2 * span)  # it ends before the second copy begins
    place = torch.randint(free, (count, 1), generator=generator) + torch.arange(span)
    again = text.scatter(1, place, text[:, -span:])
    new = text.scatter(1, place, text[:, -span:].roll(1, 0))  # the passage of another text
    return again, new


def cells(settings: dict) -> list[dict]:
    names = [{"encoding": name} for name in settings["encodings"]]
    found = rates.cells("lengths", settings, names)  # the same corpus, the same model
    for cell in found:
        if "rates" in cell:
            cell["rates"] = [float(f"{SLOWER * lr:.3g}") for lr in cell["rates"]]
    return found


def trained(settings: dict, cell: dict, seed: int, device: torch.device) -> Transformer:
    """The model of a cell."""
    corpus, L, span = kjv(), settings["length"], settings["span"]
    config = Config(
        len(corpus.symbols), settings["d_model"], n_layers=settings["layers"], n_heads=settings["heads"]
    )

    def batch(generator):
        half = settings["batch"] // 2
        text = torch.cat(
            [
                planted(corpus, settings["batch"] - half, L, span, generator),
                repeated(corpus, half, L, span, generator),
            ]
        )
        return text[:, :-1], text[:, 1:]

    model = seeded(lambda: Transformer(config, lengths.encoding(cell["encoding"], settings)), seed)
    train(
        model, batch, settings["steps"], **rates.of(settings, cell), seed=seed, device=device, progress=False
    )
    return model


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    model = trained(settings, cell, seed, device)
    found: dict[str, list[float]] = {"again": [], "new": [], "cut": []}
    for multiple in settings["multiples"]:
        generator = torch.Generator().manual_seed(1000)  # the same texts for all
        both = reading(kjv(), settings["windows"], settings["length"] * multiple, settings["span"], generator)
        for name, loss in losses(model, *both, settings["length"], settings["span"]).items():
            found[name].append(loss)
    return found


def losses(model: torch.nn.Module, again: Tensor, new: Tensor, L: int, span: int) -> dict[str, float]:
    """Mean loss in nats of the end of a passage, in texts ``[count, length + 1]`` of three kinds."""
    kinds = {"again": again, "new": new, "cut": again[:, -L - 1 :]}
    return {
        name: evaluate(model, text[:, :-1], text[:, 1:], batch_size=max(1, 4096 // text.shape[1]))[
            :, KNOWN - span :
        ]
        .mean()
        .item()
        for name, text in kinds.items()
    }


def compared(record: Record, name: str, multiple: int, what: str = "new") -> Interval:
    """Loss of ``what`` minus that of ``again``, in nats: the use of the far passage, or with ``"cut"`` the
    gain from reading the whole text."""
    at = record.settings["multiples"].index(multiple)
    return difference(*([x[at] for x in record.values(kind, encoding=name)] for kind in (what, "again")))


def figure(record: Record):
    """Loss of the second passage, and the use of the first, against the length."""
    multiples, names = record.settings["multiples"], record.settings["encodings"]
    again, new = (
        {spoken(name): torch.tensor(record.values(what, encoding=name)) for name in names}
        for what in ("again", "new")
    )
    use = {name: new[name] - again[name] for name in new}
    fig, axes = plots.panels(1, 2, size=(13, 5))
    for ax, title, values in zip(
        axes,
        (_("loss of the second passage (nats)"), _("use of the first passage (nats)")),
        (again, use),
        strict=True,
    ):
        plots.lines(
            multiples,
            {name: x.mean(0) for name, x in values.items()},
            ax=ax,
            logx=2,
            markers=True,
            spread={name: (x.amin(0), x.amax(0)) for name, x in values.items()},
            title=title,
            levels={_("window of L"): 0} if values is use else None,
            xlabel=_("length / L"),
            legend="beside" if values is use else False,
        )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    first, last = record.settings["multiples"][0], record.settings["multiples"][-1]
    uses = {
        name: [compared(record, name, n).mean for n in (first, last)] for name in record.settings["encodings"]
    }
    each = [
        _("from {near} to {far} nats for {name}").format(near=f"{near:+.2f}", far=f"{far:+.2f}", name=_(name))
        for name, (near, far) in uses.items()
    ]
    return _(
        "Two panels of lines against length: the loss on a passage that has come before, and how much "
        "the first time saves. From L to {last} L the saving goes {each}."
    ).format(last=last, each=_(", ").join(each))


def findings(record: Record) -> list[Finding]:
    names, multiples = record.settings["encodings"], record.settings["multiples"]
    second, last = multiples[1], multiples[-1]
    use = {name: {n: compared(record, name, n) for n in multiples} for name in names}

    def beyond(name):
        return (
            f"use of the passage at {second} L: {use[name][second]} nats, use of the passage at {last} L: "
            f"{use[name][last]}; loss in a window of L minus loss with all {last} L: "
            f"{compared(record, name, last, 'cut')}"
        )

    said = [
        Finding(
            "At the trained length every one of these models copies what it has read",
            "a control of this course",
            "",
            "use of the passage at L (loss on a new one minus loss on one read before): "
            + ", ".join(f"{name} {use[name][1]}" for name in names)
            + " nats",
            all_of(*(above(use[name][1], USE) for name in names)),
            why="in so short a training "
            + ", ".join(name for name in names if not use[name][1].low > USE)
            + " did not learn it",
        )
    ]
    if "alibi" in names:
        flat = difference(*([x[at] for x in record.values("new", encoding="alibi")] for at in (-1, 0)))
        said += [
            Finding(
                "ALiBi reads long texts steadily because it does not look at what is far",
                "Chi et al. 2023",
                "ALiBi is much like attention in a window",
                f"loss at {last} L minus loss at L where no passage returns: {flat} nats; " + beyond("alibi"),
                all_of(
                    below(flat, lengths.STEADY).of("the rise of the loss"),
                    below(use["alibi"][last], USE).of(f"the use at {last} L"),
                ),
                why="it does use what is far" if use["alibi"][last].low >= USE else "its loss is not steady",
            ),
            Finding(
                "ALiBi uses a text of any length",
                "a popular reading of Press et al. 2022, Fig. 1",
                "",
                beyond("alibi"),
                above(use["alibi"][last], USE),
                why="so far back, what its slopes take off leaves too little weight",
            ),
        ]
    if "rotary" in names:
        said.append(
            Finding(
                f"RoPE uses what stands {second} times as far back as its training reached",
                "",
                "",
                beyond("rotary"),
                above(use["rotary"][second], USE),
                why="it has not met these angles in training",
            )
        )
    if "t5" in names:
        said.append(
            Finding(
                "T5's last bucket lets a model find what is far by its content",
                "a popular reading of relative buckets",
                "",
                beyond("t5"),
                above(use["t5"][last], USE),
                why="all that is far shares one bias, and what is sought drowns in the rest",
            )
        )
    pays = {name: compared(record, name, last, "cut") for name in names}
    best = max(names, key=lambda name: pays[name].mean)
    said.append(
        Finding(
            f"For at least one encoding, reading {last} L pays more than a window of L",
            "",
            "",
            f"loss in a window of L minus loss with all {last} L: "
            + ", ".join(f"{name} {pays[name]}" for name in names)
            + " nats",
            above(pays[best], USE),
            why=f"even for {best} the length costs at least as much as the passage is worth",
        )
    )
    return said


def setup(settings: dict) -> str:
    """What is trained on what, in words."""
    slower = ", a third of those in “Train short, test long”" if "protocol" in settings else ""
    return (
        in_words(
            "L = {length} characters of the King James Bible, in which a passage of {span} comes "
            "twice; {training}",
            examples="texts",
        )(settings)
        + slower
    )


MULTIPLES = [1, 2, 4, 8, 16]
SMALL = {
    "d_model": 64,
    "layers": 2,
    "heads": 4,
    "length": 64,
    "span": 24,
    "batch": 16,
    "lr": 1.5e-2,
    "multiples": MULTIPLES,
    "encodings": list(ENCODINGS),
}

EXPERIMENT = Experiment(
    "long_range",
    "Who uses what is far?",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=setup,
    presets={
        "live": SMALL
        | {"encodings": ["rotary", "alibi", "t5"], "steps": 500, "windows": 16, "protocol": ["own"]},
        "full": SMALL | {"steps": 2000, "windows": 48, "protocol": ["own"]},
        "gpu": SMALL
        | {
            "d_model": 384,
            "layers": 6,
            "heads": 6,
            "length": 256,
            "span": 32,
            "batch": 32,
            "lr": 1e-3,
            "steps": 1500,
            "windows": 32,
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2, 3, 4), "gpu": (0, 1, 2)},
)
