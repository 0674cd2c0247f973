"""A longer context for a model with RoPE: raw, PI, NTK-aware, dynamic NTK, YaRN, with and without tuning.

A model is trained on windows of L. Then its angles are scaled for 4 L (Chen et al. 2023; bloc97 2023;
Peng et al. 2023), and it reads 1, 2, 4 and 8 L: at once, and after a few steps of training at 4 L with
these angles. Two models, two questions:

- ``text``: a language model of characters, and its loss on the last characters of each text, the same
  ones for each length;
- ``passkey``: somewhere early among random letters comes a mark, followed by the key, a letter like any
  other; at the end the mark comes again. What comes next? In training the mark and its key appear in
  several places.

One cell trains one model, and measures all scalings with it.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.data import kjv
from tutorial_lib.encodings import DynamicNTK, Frequencies, NTKAware, PositionInterpolation, Rotary, YaRN
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import accuracy, evaluate, seeded, train

from ..verdicts import above, below, identity
from .record import Record
from .statistics import Interval, difference, interval
from .sweep import Experiment, Finding, in_words, spoken

S = 4
SCALINGS = {
    "raw": lambda L: None,
    "PI": lambda L: PositionInterpolation(S),
    "NTK-aware": lambda L: NTKAware(S),
    "dynamic NTK": lambda L: DynamicNTK(L),
    # Llama's β = 32 turns within L mean a wavelength of 2 at L = 64: no pair has it
    "YaRN": lambda L: YaRN(S, L=L, alpha=0.5, beta=4.0),
}
LETTERS = 16
"""Letters of the passkey texts have the ids 0 … 15; the mark is the id 16."""


def passkey(
    size: int, length: int, generator: torch.Generator, *, marks: int = 8, within: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Texts ``[size, length]`` of random letters, marks with the same key after each, and a mark at the end.

    The first share ``within`` of the text holds ``marks`` of them. Labels have the same shape: the key at
    the last place and at every mark but the first, −100 elsewhere.
    """
    tokens = torch.randint(LETTERS, (size, length), generator=generator)
    slots = max(marks, int(within * (length - 2)) // 2)
    places = 2 * torch.rand(size, slots, generator=generator).argsort(1)[:, :marks].sort(1).values
    key = torch.randint(LETTERS, (size, 1), generator=generator)
    tokens.scatter_(1, places, LETTERS).scatter_(1, places + 1, key.expand(-1, marks))
    tokens[:, -1] = LETTERS
    labels = torch.full_like(tokens, -100).scatter_(1, places[:, 1:], key.expand(-1, marks - 1))
    labels[:, -1:] = key
    return tokens, labels


def cells(settings: dict) -> list[dict]:
    return [{"task": "text"}, {"task": "passkey"}]


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    L, text = settings["length"], cell["task"] == "text"
    lengths = [L * n for n in settings["multiples"]]
    corpus = kjv()
    d_model, heads = settings["d_model"], settings["heads"]
    config = Config(
        len(corpus.symbols) if text else LETTERS + 1, d_model, n_layers=settings["layers"], n_heads=heads
    )
    model = seeded(lambda: Transformer(config, Rotary(d_model // heads)), seed)

    def batch(length, size):
        if text:
            return lambda generator: corpus.batch(size, length, generator)
        return lambda generator: passkey(size, length, generator)

    def quality(model):
        """At each length: loss of the last characters, or share of keys that were found."""
        found = []
        for n in lengths:
            if text:
                losses = evaluate(model, *corpus.windows(settings["windows"], n), batch_size=16)
                found.append(losses[:, -settings["tail"] :].mean().item())
            else:
                generator = torch.Generator().manual_seed(1000)
                asked = passkey(settings["keys"], n, generator, marks=1, within=0.25)
                found.append(accuracy(model, *asked))
        return found

    steps, size = settings["text_steps" if text else "passkey_steps"], settings["batch"]
    train(model, batch(L, size), steps, lr=settings["lr"], seed=seed, device=device, progress=False)
    found = {}
    for name, scaling in SCALINGS.items():
        tuned = copy.deepcopy(model)
        frequencies = Frequencies(d_model // heads, scaling=scaling(L))
        tuned.encoding = Rotary(d_model // heads, frequencies=frequencies)
        found[f"{name}, at once"] = quality(tuned)
        # as many characters a step as before
        train(
            tuned,
            batch(S * L, max(1, size // S)),
            settings["tuning_steps"],
            lr=settings["lr"] / 3,
            seed=seed + 100,
            device=device,
            progress=False,
        )
        found[f"{name}, tuned"] = quality(tuned)
    return found


def values(record: Record, task: str, name: str, at: int) -> list[float]:
    """What was measured with a scaling at a multiple of L; ``name`` as in ``"PI, tuned"``."""
    which = record.settings["multiples"].index(at)
    return [x[which] for x in record.values(name, task=task)]


def gap(record: Record, a: str, b: str, at: int = S, b_at: int | None = None, task: str = "text") -> Interval:
    return difference(values(record, task, a, at), values(record, task, b, at if b_at is None else b_at))


def figure(record: Record):
    multiples = record.settings["multiples"]
    fig, axes = plots.panels(2, 2, size=(13, 9), sharex=True, sharey="row")
    for row, (task, ylabel) in zip(
        axes, (("text", _("loss of the last characters (nats)")), ("passkey", _("keys found"))), strict=True
    ):
        for ax, when in zip(row, ("at once", "tuned"), strict=True):
            runs = {
                spoken(name): torch.tensor(record.values(f"{name}, {when}", task=task)) for name in SCALINGS
            }
            plots.lines(
                multiples,
                {name: x.mean(0) for name, x in runs.items()},
                spread={name: (x.amin(0), x.amax(0)) for name, x in runs.items()},
                markers=True,
                logx=2,
                mark_x=S,
                ax=ax,
                ylabel=ylabel if when == "at once" else "",
                xlabel=_("length / L") if task == "passkey" else "",
                title={"at once": _("at once"), "tuned": _("after a short training at {n} L").format(n=S)}[
                    when
                ]
                if task == "text"
                else "",
            )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""

    def listed(task, when):
        means = {name: interval(values(record, task, f"{name}, {when}", S)).mean for name in SCALINGS}
        return _(", ").join(f"{_(name)} {means[name]:.2f}" for name in sorted(means, key=means.__getitem__))

    text, keys = ([listed(task, when) for when in ("at once", "tuned")] for task in ("text", "passkey"))
    return _(
        "Lines against length for five scalings of RoPE. Loss at {n} L, at once: {loss}; tuned: "
        "{tuned}. Keys found at {n} L, at once: {keys}; tuned: {found}."
    ).format(n=S, loss=text[0], tuned=text[1], keys=keys[0], found=keys[1])


BETTER = 0.05
"""Nats: a loss that is lower by less is no better. It is 5 % in perplexity."""

BROKEN = 0.5
"""Nats: a loss that is higher by more has lost what the model could do, or much of it."""

FOUND, LOST = 0.9, 0.1
"""Shares of the keys: where more are found, keys are found; where as many fewer are, keys are lost."""


def findings(record: Record) -> list[Finding]:
    steps = record.settings["tuning_steps"]
    pairs = record.settings["d_model"] // record.settings["heads"] // 2
    few = f"{steps} steps of tuning may be too few for angles that are a quarter of those of the training"
    small = (
        f"a head has {pairs} pairs of channels here, so there may be few between the fast ones and the "
        "slow ones"
    )
    table = "Peng et al. 2023, Table 1"

    def compared(claim, source, theirs, a, b, when, why, *, worse=False, at=S, note=""):
        """``a`` has a lower loss than ``b``, or with ``worse`` a higher one."""
        x = gap(record, f"{a}, {when}", f"{b}, {when}", at)
        tuned = f"tuned at {S} L" if when == "tuned" else "without tuning"
        return Finding(
            claim,
            source,
            theirs,
            f"loss read at {at} L, {tuned}: {a} minus {'no scaling' if b == 'raw' else b} {x} nats{note}",
            above(x, BETTER) if worse else below(x, -BETTER),
            why=why,
        )

    raw = gap(record, "raw, at once", "raw, at once", S, 1)
    free = gap(record, "PI, at once", "raw, at once", 1)
    behind = gap(record, "PI, at once", "NTK-aware, at once", 1)
    whole = gap(record, "PI, tuned", "raw, at once", S, 1)
    dynamic = gap(record, "dynamic NTK, at once", "raw, at once", 1)
    lost = gap(record, "raw, at once", "raw, at once", S, 1, task="passkey")
    found = {name: interval(values(record, "passkey", f"{name}, tuned", S)) for name in SCALINGS}
    return [
        Finding(
            "RoPE as trained breaks beyond its length",
            "Chen et al. 2023, Table 1",
            "LLaMA 7B, perplexity 7.20 at 2048 as trained, over 1000 at 4096",
            f"loss at {S} L minus loss at L: {raw} nats",
            above(raw, BROKEN),
            why="the model may use position little",
        ),
        Finding(
            "Without tuning, interpolation costs at the trained length",
            "Chen et al. 2023, Table 3",
            "only for the new lengths, perplexity without tuning: 16.10 at 8192, 112.13 at 16384",
            f"loss read at L, without tuning: PI minus no scaling {free} nats",
            above(free, BETTER),
            why="the model may use position little",
        ),
        compared(
            "Without tuning, interpolation is better than nothing at the new length",
            "Chen et al. 2023, Tables 1 and 3",
            "interpolated for 8192 16.10, against over 1000",
            "PI",
            "raw",
            "at once",
            "neighbouring characters may matter most here: a quarter of each angle tells them apart badly, "
            "and raw angles keep them right at any length",
        ),
        compared(
            "Without tuning, NTK-aware scaling is better than interpolation",
            "bloc97 2023; Peng et al. 2023, §3.1",
            "",
            "NTK-aware",
            "PI",
            "at once",
            small,
        ),
        compared(
            "Without tuning, YaRN is better than NTK-aware scaling",
            "Peng et al. 2023, §3.2",
            "said of YaRN without its factor on the scores (“NTK-by-parts”), with and without tuning",
            "YaRN",
            "NTK-aware",
            "at once",
            small,
        ),
        Finding(
            "Dynamic scaling costs nothing up to the trained length",
            "Peng et al. 2023, §3.3",
            "a definition: the factor is 1 up to there",
            f"loss read at L, without tuning: dynamic NTK minus no scaling {dynamic} nats",
            identity(dynamic, 1e-6),
            why="up to L its angles are those of the training: the run is broken",
        ),
        compared(
            "Without tuning, dynamic scaling is better than nothing at the new length",
            "Peng et al. 2023, §3.3",
            "“works exceptionally well” without any tuning",
            "dynamic NTK",
            "raw",
            "at once",
            small,
        ),
        Finding(
            "After a short tuning, interpolation is as good at the new length as the model was at the old",
            "Chen et al. 2023, Table 1",
            "perplexity 6.95 at 8192, against 7.20 at 2048 before",
            f"loss of tuned PI at {S} L minus loss at L as trained: {whole} nats",
            below(whole, BETTER),
            why=few,
        ),
        compared(
            "Tuning with interpolation is better than tuning alone",
            "Chen et al. 2023, Table 1",
            "perplexity at 8192: 6.95 with, 7.69 without",
            "PI",
            "raw",
            "tuned",
            few,
        ),
        compared("Tuning with YaRN is better than tuning alone", "", "", "YaRN", "raw", "tuned", small),
        compared(
            "After tuning, YaRN is better than interpolation at the length of the tuning",
            table,
            "tuned for 8k, perplexity at 8k: YaRN 3.35, PI 3.34, so no better there",
            "YaRN",
            "PI",
            "tuned",
            "tuning may level what the two are before it, as in the paper's table",
        ),
        compared(
            "After tuning, NTK-aware scaling is worse than interpolation at the length of the tuning",
            f"{table}, and §3.1",
            "tuned for 8k, perplexity at 8k: NTK-aware 3.59, PI 3.34",
            "NTK-aware",
            "PI",
            "tuned",
            f"before tuning, at L, PI is {behind} nats behind NTK-aware scaling, and {steps} steps may not "
            "level that",
            worse=True,
        ),
        compared(
            "After tuning, YaRN is better than NTK-aware scaling at the length of the tuning",
            table,
            "tuned for 8k, perplexity at 8k: YaRN 3.35, NTK-aware 3.59",
            "YaRN",
            "NTK-aware",
            "tuned",
            small,
        ),
        compared(
            "Beyond the length of the tuning, YaRN is better than interpolation",
            table,
            "tuned for 8k, perplexity at 10k, 1.25 times the length of the tuning: YaRN 6.04, PI 8.07",
            "YaRN",
            "PI",
            "tuned",
            "the slow pairs, which meet new angles beyond the length of the tuning, are scaled alike in both",
            at=2 * S,
            note=". That is 2 times the length of the tuning",
        ),
        Finding(
            "RoPE as trained loses keys beyond its length",
            "Chen et al. 2023, Table 4",
            "trained to 2048, and found up to 2560 even after 10000 steps of tuning without interpolation",
            f"share of keys found at {S} L minus share at L: {lost}",
            below(lost, -LOST),
            why="a key may be found by what it is, without position",
        ),
        Finding(
            "After a short tuning with interpolation, keys are found at the new length",
            "Chen et al. 2023, Table 4",
            "with interpolation after 200 steps",
            f"share of keys found at {S} L: {found['PI']}; with the other scalings that change angles: "
            + "; ".join(f"{name} {x}" for name, x in found.items() if name not in ("raw", "PI")),
            above(found["PI"], FOUND),
            why=few,
        ),
        Finding(
            "Tuned without interpolation, the model does not find keys at the new length",
            "Chen et al. 2023, Table 4",
            "after 10000 steps found up to 2560",
            f"share of keys found at {S} L: {found['raw']}",
            below(found["raw"], FOUND),
            why="the key stands right behind its mark, a distance that the training had, and the new angles "
            f"of a few slow pairs may be learned in {steps} steps",
        ),
    ]


SMALL = {
    "d_model": 64,
    "layers": 2,
    "heads": 4,
    "length": 64,
    "batch": 16,
    "lr": 5e-3,
    "multiples": [1, 2, 4, 8],
    "tail": 32,
}

EXPERIMENT = Experiment(
    "extension",
    "A longer context",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words(
        "L = {length} characters of the King James Bible, or random letters and a key among them; "
        "{model}; {text_steps:,} and {passkey_steps:,} steps of {batch} texts; "
        "tuning is {tuning_steps} more at 4 L"
    ),
    presets={
        "live": SMALL
        | {"text_steps": 150, "passkey_steps": 200, "tuning_steps": 15, "windows": 16, "keys": 64},
        "full": SMALL
        | {"text_steps": 500, "passkey_steps": 300, "tuning_steps": 50, "windows": 64, "keys": 256},
        "gpu": {
            "d_model": 384,
            "layers": 6,
            "heads": 6,
            "length": 256,
            "batch": 64,
            "lr": 1e-3,
            "multiples": [1, 2, 4, 8, 16],
            "tail": 128,
            "text_steps": 1000,
            "passkey_steps": 1000,
            "tuning_steps": 100,
            "windows": 32,
            "keys": 128,
        },
    },
    seeds={"live": (0, 1, 2), "full": (0, 1, 2, 3, 4), "gpu": (0, 1, 2)},
)
