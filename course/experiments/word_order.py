"""Who does it? Order of three words, with and without position (Lin et al. 2022, §5.1; Haviv et al. 2022)."""

from __future__ import annotations

import torch

from tutorial_lib import plots
from tutorial_lib.data import bag_of_words_ceiling, order_sentences, order_task
from tutorial_lib.data.tasks import ANIMALS, WORDS
from tutorial_lib.encodings import build
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import accuracy, seeded, train

from ..verdicts import above, all_of, below, identity
from .record import Record
from .statistics import difference, interval
from .sweep import Experiment, Finding, in_words, spoken

SIZES = {"d_model": 32, "layers": 2, "heads": 4, "lr": 3e-3}
"""Where a preset does not say otherwise."""

ENCODINGS = {
    "none": lambda d_model, heads: build("none"),
    "sinusoidal": lambda d_model, heads: build("sinusoidal", dim=d_model),
    "learned": lambda d_model, heads: build("learned", max_length=3, dim=d_model),
    "rotary": lambda d_model, heads: build("rotary", head_dim=d_model // heads),
    "t5": lambda d_model, heads: build("t5", n_heads=heads, bidirectional=True, max_distance=64),
    "alibi-symmetric": lambda d_model, heads: build("alibi", n_heads=heads, symmetric=True),
    "alibi-asymmetric": lambda d_model, heads: build("alibi-asymmetric", n_heads=heads),
}
DIRECTED = ("t5", "alibi-asymmetric")
"""Relative biases that differ between before and after."""

KNOWS = 0.2
"""Accuracy above the ceiling of 0.5, which only a model that sees order can have."""

SENTENCE = 0.01
"""The share of one sentence, rounded up: rounding may decide between two equal scores."""


def cells(settings: dict) -> list[dict]:
    names = settings["encodings"]
    return [{"encoding": name, "causal": causal} for causal in (False, True) for name in names]


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    settings = SIZES | settings
    d_model, heads = settings["d_model"], settings["heads"]
    config = Config(
        len(WORDS),
        d_model,
        n_heads=heads,
        n_layers=settings["layers"],
        n_out=len(ANIMALS),
        causal=cell["causal"],
        pool="mean",
    )
    model = seeded(lambda: Transformer(config, ENCODINGS[cell["encoding"]](d_model, heads)), seed)
    history = train(
        model,
        lambda generator: order_task(settings["batch"], generator),
        settings["steps"],
        lr=settings["lr"],
        seed=seed,
        device=device,
        progress=False,
    )
    return {"accuracy": accuracy(model, *order_sentences()), "loss": history.final}


def ceiling() -> float:
    """What a model that sees no order can reach at best."""
    return bag_of_words_ceiling(*order_sentences())


def figure(record: Record):
    names = record.settings["encodings"]
    means = [
        [interval(record.values("accuracy", encoding=name, causal=causal)).mean for name in names]
        for causal in (False, True)
    ]
    return plots.heat(
        means,
        limits=(ceiling(), 1),
        cmap="weights",
        values=".2f",
        colorbar=_("accuracy"),
        xticks=[name.replace("-", "\n") for name in map(_, map(spoken, names))],
        yticks=[_("encoder"), _("decoder (causal)")],
        title=_("With a causal mask, every one learns who does it"),
        size=(11, 3.4),
    )


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    means = {
        (name, causal): interval(record.values("accuracy", encoding=name, causal=causal)).mean
        for name in record.settings["encodings"]
        for causal in (False, True)
    }
    blind = [name for name in record.settings["encodings"] if means[name, False] < 0.75]
    lowest = min(means[name, True] for name in record.settings["encodings"])
    return _(
        "Heat map of accuracy on a task of word order. In the encoder, {blind} stay near the bag-of-words "
        "ceiling of {ceiling:.2f}, the others are higher; in the decoder the lowest accuracy is "
        "{lowest:.2f}."
    ).format(blind=_(" and ").join(map(_, blind)) or _("none"), ceiling=ceiling(), lowest=lowest)


def findings(record: Record) -> list[Finding]:
    def more(name, causal):
        """Accuracy above the ceiling, as an interval over seeds."""
        return interval([x - ceiling() for x in record.values("accuracy", encoding=name, causal=causal)])

    none = interval(
        [max(0.0, x - ceiling()) for x in record.values("accuracy", encoding="none", causal=False)]
    )
    decoder, mirror = more("none", True), more("alibi-symmetric", False)
    directed = {name: more(name, False) for name in DIRECTED}
    with_position = {
        name: difference(
            record.values("accuracy", encoding=name, causal=True),
            record.values("accuracy", encoding="none", causal=True),
        )
        for name in record.settings["encodings"]
        if name != "none"
    }
    best = max(with_position, key=lambda name: with_position[name].high)
    few = "the training may be too short"
    return [
        Finding(
            "Without a positional encoding an encoder cannot tell who does it",
            "Lin et al. 2022, §5.1",
            "a proof: self-attention is permutation equivariant",
            f"accuracy beyond the ceiling of a bag of words, {ceiling():.2f}: {none}",
            identity(none, SENTENCE),
            why="a model of this kind cannot exceed the ceiling: the run is broken",
        ),
        Finding(
            "A decoder without positional encoding knows order",
            "Haviv et al. 2022, Table 1",
            "perplexity 13.10 without, 13.05 with learned positions (1.3 B parameters)",
            f"accuracy above a bag of words: {decoder}",
            above(decoder, KNOWS),
            why=few,
        ),
        Finding(
            "In a decoder no positional encoding is better than none at the order of three words",
            "",
            "",
            f"accuracy gained by the best encoding: {best} {with_position[best]}",
            all_of(*(below(x, 0.05) for x in with_position.values())),
            why="in these steps a model without positions may not have learned all of it",
        ),
        Finding(
            "A relative bias that tells before from after gives an encoder order",
            "a popular claim for relative positions",
            "",
            "accuracy above a bag of words: " + ", ".join(f"{name} {x}" for name, x in directed.items()),
            all_of(*(above(x, KNOWS) for x in directed.values())),
            why=few,
        ),
        Finding(
            "ALiBi with |i − j| gives an encoder order",
            "a popular form for encoders, from issue 5 in the authors' repository",
            "",
            f"accuracy above a bag of words: {mirror}",
            above(mirror, KNOWS),
            why="with −m·|i − j| a sentence and its reversal pool to the same vector: no direction",
        ),
    ]


EXPERIMENT = Experiment(
    "word_order",
    "Word order",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words("Sentences of 3 words; {training}", examples="sentences", **SIZES),
    presets={
        "live": {"encodings": list(ENCODINGS), "steps": 100, "batch": 64},
        "full": {"encodings": list(ENCODINGS), "steps": 300, "batch": 64},
        "gpu": {
            "d_model": 256,
            "layers": 6,
            "heads": 8,
            "lr": 1e-3,
            "encodings": list(ENCODINGS),
            "steps": 500,
            "batch": 256,
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2, 3, 4), "gpu": (0, 1, 2, 3, 4)},
)
