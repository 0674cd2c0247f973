"""Train short, test long: a language model beyond the length of its training (Press et al. 2022, Fig. 1).

A model of characters is trained on windows of L, and reads the same held-out text at 1, 2, 4, 8 and
16 L, in windows that do not overlap. Two numbers for each length, always on the same characters:

- ``mean``, over all of them, as in the paper. A longer window has fewer characters near its beginning,
  where there is little to go by, so this number falls even for a model that never looks back further
  ("early token curse", Press et al. 2022, App. B).
- ``tail``, over the last ones of the text only. The longer the window, the more characters come before
  them, so this number falls only if the longer context is of use.

Offsets that a table does not have cannot be tested, so ``table`` is measured at 1 L only. A learned table of
positions is stretched (``resized``). All layers share one encoding.

Nobody reads long texts with RoPE as it was trained, so RoPE also comes with a ``scaling``: the last tenth of
the same number of steps is spent on windows of 4 L, with angles that are scaled for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from tutorial_lib import plots
from tutorial_lib.data import kjv
from tutorial_lib.data.corpus import Corpus
from tutorial_lib.encodings import Frequencies, Rotary, fit
from tutorial_lib.encodings.base import doors_of
from tutorial_lib.encodings.registry import COMPARED
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import evaluate, seeded, train

from ..texts import honglou
from ..verdicts import above, all_of, below, within
from . import rates
from .extension import SCALINGS, S
from .record import Record
from .statistics import Interval, difference, interval
from .sweep import Experiment, Finding, in_words, spoken

FAMILIES = {
    "position in the tokens": ("none", "sinusoidal", "learned"),
    "rotation": ("rotary", "xpos"),
    "a number for each distance": ("table", "clipped", "t5", "t5-far"),
    "a decay, a function": ("alibi", "kerple", "fire", "forgetting"),
    "vectors for each distance": ("shaw", "transformer-xl", "deberta", "cope", "tupe"),
}
BY_DOOR = {
    "embed": "position in the tokens",
    "rotate": "rotation",
    "bias": "a decay, a function",
    "content_bias": "vectors for each distance",
    "values": "vectors for each distance",
}
"""Where a method of the registry stands that is named nowhere here."""

MAIN = ("none", "sinusoidal", "rotary", "xpos", "alibi", "t5", "t5-far", "shaw")
ELSEWHERE = {
    "add": "fusion",
    "multiply": "fusion",
    "matrix": "fusion",
    "concatenate": "fusion",
    "hybrid-sum": "hybrid",
    "hybrid-concat": "hybrid",
    "key-side": "hybrid",
    "compose": "hybrid",
    "alibi-asymmetric": "under a causal mask it is ALiBi with other slopes",
    "swin": "images",
    "sinusoidal-2d": "images",
    "rotary-axial": "images",
    "raster": "images",
}
"""What else the lessons compare, and where, or why it is not tested here."""


def families(registry: dict) -> dict[str, tuple[str, ...]]:
    """``FAMILIES``, with every other class of the registry that reads positions of a text."""
    named = {*ELSEWHERE, *(name for names in FAMILIES.values() for name in names)}
    new = {
        name: BY_DOOR[doors_of(kind)[0]]
        for name, kind in registry.items()
        if name not in named and getattr(kind, "axes", 0) == 1
    }  # a function has no axes
    return {
        title: names + tuple(name for name in new if new[name] == title) for title, names in FAMILIES.items()
    }


ENCODINGS = tuple(name for names in families(COMPARED).values() for name in names)


def encoding(name: str, settings: dict):
    """The encoding ``name`` for a model and a length L as in the settings."""
    L = settings["length"]

    def fitted(name, **config):
        return fit(name, d_model=settings["d_model"], n_heads=settings["heads"], length=L, **config)

    special = {
        # as large as the tokens at the start: they would drown a table of std 0.02 (notebook 03)
        "learned": lambda: fitted("learned", std=1.0),
        "rotary": lambda: fitted("rotary", base=settings.get("base")),
        # with D = L the last bucket begins before L; with D = 2 L some are never met in training
        "t5": lambda: fitted("t5", max_distance=L),
        "t5-far": lambda: fitted("t5", max_distance=2 * L),
        "fire": lambda: fitted("fire", L=L / 4),
        "tupe": lambda: fitted("tupe", position=fitted("sinusoidal"), relative=fitted("t5", max_distance=L)),
    }
    return special.get(name, lambda: fitted(name))()


def corpus(settings: dict) -> Corpus:
    return honglou() if settings.get("text") == "honglou" else kjv()


def cells(settings: dict) -> list[dict]:
    plain = [{"encoding": name} for name in settings["encodings"]]
    scaled = [{"encoding": "rotary", "scaling": name} for name in settings.get("scalings", [])]
    return rates.cells("lengths", settings, plain + scaled)


TUNING = 0.1
"""Share of the steps that a model with a scaling spends at ``S`` times L."""


def trained(
    settings: dict, cell: dict, seed: int, device: torch.device, build: Callable | None = None
) -> Transformer:
    """The model of a cell; ``build`` makes its encoding in place of :func:`encoding`."""
    text, L, size, steps = corpus(settings), settings["length"], settings["batch"], settings["steps"]
    config = Config(
        len(text.symbols), settings["d_model"], n_layers=settings["layers"], n_heads=settings["heads"]
    )
    model = seeded(lambda: Transformer(config, (build or encoding)(cell["encoding"], settings)), seed)
    of_cell, late = rates.of(settings, cell), round(TUNING * steps) if "scaling" in cell else 0
    decay = settings.get("position_decay")

    def windows(length):  # as many characters a step, whatever the length
        return lambda generator: text.batch(max(1, size * L // length), length, generator)

    train(
        model,
        windows(L),
        steps - late,
        **of_cell,
        position_decay=decay,
        seed=seed,
        device=device,
        progress=False,
    )
    if late:
        head_dim = config.head_dim
        model.encoding = Rotary(
            head_dim, frequencies=Frequencies(head_dim, scaling=SCALINGS[cell["scaling"]](L))
        )
        train(
            model, windows(S * L), late, lr=of_cell["lr"] / 3, seed=seed + 100, device=device, progress=False
        )
    return model


def validation(model: Transformer, settings: dict, cell: dict, seed: int) -> float:
    """Loss at L on a text that is neither trained on nor reported."""
    tokens, targets = corpus(settings).windows(settings["windows"], 8 * settings["length"], between=True)
    shape = -1, settings["length"]
    return evaluate(model, tokens.reshape(shape), targets.reshape(shape)).mean().item()


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    model, L, multiples = trained(settings, cell, seed, device), settings["length"], settings["multiples"]
    lengths = [L * n for n in (multiples if cell["encoding"] != "table" else multiples[:1])]
    texts = corpus(settings).windows(settings["windows"], L * multiples[-1])
    return read(model, *texts, lengths, settings["tail"])


def read(model: Transformer, tokens, targets, lengths: list[int], tail: int) -> dict:
    """Mean and tail loss of texts ``[N, T]``, cut into windows of each length, a divisor of T."""
    found: dict[str, list[float]] = {"mean": [], "tail": []}
    trained = model.encoding
    for n in lengths:
        model.encoding = trained.resized(n) if hasattr(trained, "resized") else trained
        losses = evaluate(model, tokens.reshape(-1, n), targets.reshape(-1, n), batch_size=max(1, 4096 // n))
        losses = losses.view(targets.shape)
        found["mean"].append(losses.mean().item())
        found["tail"].append(losses[:, -tail:].mean().item())
    return found


def losses(record: Record, name: str, what: str) -> list[list[float]]:
    """For each seed, the ``"mean"`` or ``"tail"`` at every length; ``name`` may be ``"rotary + YaRN"``."""
    encoding, *scaling = name.split(" + ")
    return record.values(what, encoding=encoding, **({"scaling": scaling[0]} if scaling else {}))


def rise(record: Record, name: str, what: str = "tail", at: int = -1, since: int = 0) -> Interval:
    """How much the loss at one multiple of L exceeds that at another; by default, at the longest and at L."""
    values = losses(record, name, what)
    return difference([x[at] for x in values], [x[since] for x in values])


def between(record: Record, a: str, b: str, what: str, at: int) -> Interval:
    """The loss of ``a`` minus that of ``b`` at one multiple of L."""
    return difference(*([x[at] for x in losses(record, name, what)] for name in (a, b)))


def rows(record: Record) -> list[str]:
    """What was measured, as names: encodings, and RoPE with each of its scalings."""
    return record.settings["encodings"] + [f"rotary + {name}" for name in record.settings.get("scalings", [])]


def figure(record: Record):
    multiples = record.settings["multiples"]
    shown = {
        title: [name for name in rows(record) if name.split(" + ")[0] in names]
        for title, names in families(COMPARED).items()
    }
    shown = {title: names for title, names in shown.items() if names}
    fig, axes = plots.panels(
        len(shown), 2, size=(11, 1 + 2.8 * len(shown)), sharex=True, sharey=True, squeeze=False
    )
    first, last = next(iter(shown)), next(reversed(shown))
    for row, (title, names) in zip(axes, shown.items(), strict=True):
        for ax, what in zip(row, ("mean", "tail"), strict=True):
            values = {name: losses(record, name, what) for name in names}
            # a table ends at 1 L: beyond there is nothing to draw
            values = {
                name: [x + [float("nan")] * (len(multiples) - len(x)) for x in runs]
                for name, runs in values.items()
            }
            plots.lines(
                multiples,
                {spoken(name): torch.tensor(runs).mean(0) for name, runs in values.items()},
                spread={
                    spoken(name): (torch.tensor(runs).amin(0), torch.tensor(runs).amax(0))
                    for name, runs in values.items()
                },
                ax=ax,
                logx=2,
                markers=True,
                legend=what == "tail",
                title={"mean": _("all characters (nats)"), "tail": _("the same last ones (nats)")}[what]
                if title == first
                else "",
                xlabel=_("length / L") if title == last else "",
                ylabel="" if what == "tail" else title if len(names) > 1 else spoken(names[0]),
            )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    last = record.settings["multiples"][-1]
    rises = {
        name: interval([x[-1] - x[0] for x in record.values("tail", encoding=name)]).mean
        for name in record.settings["encodings"]
        if name != "table"
    }
    order = sorted(rises, key=rises.__getitem__)
    return _(
        "Lines of loss against length, from the trained length L to {last} L, one panel for each "
        "family of encodings, left over all characters, right over the same last ones. From L to "
        "{last} L the lines on the right change least for {calm} ({least} nats) and most for {wild} "
        "({most})."
    ).format(
        last=last,
        calm=_(order[0]),
        least=f"{rises[order[0]]:+.2f}",
        wild=_(order[-1]),
        most=f"{rises[order[-1]]:+.2f}",
    )


STEADY = 0.05
"""Nats: a loss that rises by less with the length is called steady."""

RISES = "the loss rises with length here"
MADE_FOR_LENGTH = {
    "xpos": (
        "xPos",
        "Sun et al. 2022",
        "A Length-Extrapolatable Transformer",
        RISES + "; their code reads long texts in blocks, and nothing is cut here",
    ),
    "kerple": (
        "KERPLE",
        "Chi et al. 2022, KERPLE",
        "KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation",
        RISES,
    ),
    "sandwich": (
        "Sandwich",
        "Chi et al. 2023",
        "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis",
        RISES,
    ),
    "fire": (
        "FIRE",
        "Li et al. 2023",
        "Functional Interpolation for Relative Positions Improves Long Context Transformers",
        RISES,
    ),
}
"""Encodings whose papers have the length in their titles: name, source, title, and why it may not hold."""


def findings(record: Record) -> list[Finding]:
    names, last = set(record.settings["encodings"]), record.settings["multiples"][-1]
    little = "a short training makes little use of position, and what is not used does no harm"
    said = []
    for name, claim, theirs in (
        (
            "sinusoidal",
            "Sinusoidal positions do not carry a model beyond its training length",
            "perplexity 20.05 at 512 as trained, 24.86 at 712, 43.54 at 1012, 406 at 15512",
        ),
        ("rotary", "Nor does RoPE", "perplexity 20.07 at 512, 31.6 at 2512"),
    ):
        if name in names:
            gap = rise(record, name)
            said.append(
                Finding(
                    claim,
                    "Press et al. 2022, Table 2",
                    theirs,
                    f"loss at {last} L minus loss at L, both at the ends of texts: {gap} nats",
                    above(gap, STEADY),
                    why=little,
                )
            )
    if "learned" in names:
        gap = rise(record, "learned")
        said.append(
            Finding(
                "A learned table that is stretched does not carry either",
                "",
                "",
                f"loss at {last} L minus loss at L, all rows interpolated: {gap} nats",
                above(gap, STEADY),
                why=little,
            )
        )
    if "alibi" in names:
        tail, mean = rise(record, "alibi"), rise(record, "alibi", "mean")
        said.append(
            Finding(
                "ALiBi reads texts of any length as well as short ones",
                "Press et al. 2022, Fig. 1",
                "trained at 512, flat or better to 16 times the length; at 1.3 B parameters best near 2 L",
                f"loss at {last} L minus loss at L: {tail} nats",
                below(tail, STEADY),
                why=RISES,
            )
        )
        said.append(
            Finding(
                "What ALiBi gains from longer windows is fewer characters at a beginning, not longer context",
                "Press et al. 2022, App. B",
                "with a sliding window, so a full context for each token, 17.98 at 512 and 18.3 at the "
                "longest",
                f"over all characters {mean} nats, over the same last ones {tail}",
                all_of(below(mean, 0).of("over all characters"), within(tail, 0.03).of("over the last ones")),
                why="over all characters the loss does not fall, or over the last ones it changes, too",
            )
        )
    for name, (short, source, title, why) in MADE_FOR_LENGTH.items():
        if name in names:
            gap = rise(record, name)
            said.append(
                Finding(
                    f"{short} reads texts of any length as well as short ones",
                    source,
                    f"the paper's title: “{title}”",
                    f"loss at {last} L minus loss at L: {gap} nats",
                    below(gap, STEADY),
                    why=why,
                )
            )
    if {"rotary", "alibi"} <= names:
        gap = between(record, "rotary", "alibi", "mean", 0)
        said.append(
            Finding(
                "At the trained length ALiBi is as good as RoPE or better",
                "Press et al. 2022, §4",
                "perplexity 17.60 against 18.57 at L = 3072",
                f"loss of RoPE minus that of ALiBi at L: {gap} nats",
                above(gap, -0.02),
                why="the model is small and its text short; notebook 07 trains the slopes, and the "
                "loss falls",
            )
        )
    if "t5" in names:
        gap, far = rise(record, "t5", at=1), rise(record, "t5")
        said.append(
            Finding(
                "T5's bias carries to about twice the trained length",
                "Press et al. 2022, Table 2",
                "perplexity 19.65 at 512, 18.77 at 1112, 20.41 at 2512, 64.9 at 12512",
                f"loss at 2 L minus loss at L: {gap} nats",
                below(gap, STEADY),
                why="the loss rises within twice the length",
            )
        )
        said.append(
            Finding(
                "With all its buckets filled, T5's bias reads texts of any length as well as short ones",
                "a popular reading of relative buckets",
                "64.9 at 12512, see above",
                f"loss at {last} L minus loss at L: {far} nats",
                below(far, STEADY),
                why="the last bucket stands for all that is far: the longer the text, the more shares it",
            )
        )
    if {"t5", "t5-far"} <= names:
        far = between(record, "t5-far", "t5", "tail", -1)
        said.append(
            Finding(
                "Buckets that training never fills make T5's bias worse beyond its length",
                "a reading of the released code: the last of 32 buckets begins a little before max_distance",
                "",
                f"loss with a max_distance of 2 L minus loss with one of L, both at {last} L: {far} nats",
                above(far, STEADY),
                why="the empty buckets start near 0, as a middle between those that were learned",
            )
        )
    if {"rotary + YaRN", "alibi", "rotary"} <= {*rows(record)}:
        said += scaled(record)
    if "text" in record.settings:  # a claim has one verdict, but on another text it is another claim
        said = [replace(finding, claim=f"{finding.claim}, in Chinese") for finding in said]
    return said


def scaled(record: Record) -> list[Finding]:
    """What the record says about RoPE whose last steps are spent on longer texts."""
    at = record.settings["multiples"].index(S)
    names = [f"rotary + {name}" for name in record.settings["scalings"]]
    here = {name: rise(record, name, at=at) for name in names}
    late = f"{TUNING:.0%} of the same steps at {S} L"
    said = [
        Finding(
            f"RoPE that is scaled and tuned for {S} L reads {S} L as well as L",
            "Peng et al. 2023, Table 1",
            "Llama 2 7B tuned for 8k: perplexity 3.92 at 2k and 3.35 at 8k with YaRN",
            f"{late}; loss at {S} L minus at L: "
            + "; ".join(f"{name} {x}" for name, x in here.items())
            + f"; as trained {rise(record, 'rotary', at=at)} nats",
            all_of(*(below(x, STEADY) for x in here.values())),
            why="so few steps may not be enough",
        )
    ]
    for name in names:
        beside, price = between(record, name, "alibi", "tail", at), between(record, name, "rotary", "tail", 0)
        said.append(
            Finding(
                f"Scaled with {name.split(' + ')[1]} and tuned for {S} L, RoPE reads {S} L as well as "
                "ALiBi does",
                "a question of this course",
                "",
                f"{late}; loss minus that of ALiBi, both at {S} L: {beside}; at L it is {price} nats above "
                "that "
                "of RoPE as trained",
                below(beside, STEADY),
                why="these angles are another model's at first, and few steps are left to learn them",
            )
        )
    return said


def table(record: Record) -> str:
    """Loss at L and its rise, for each encoding at its own rates and at one rate for all, as Markdown."""
    last, one_rate = record.settings["multiples"][-1], [record.settings["lr"]] * 2
    lines = [
        f"| encoding | rates (model; position) | loss at L | rise to {last} L | at one rate: loss at L "
        "| rise |",
        "|---|---|---|---|---|---|",
    ]
    for name in rows(record):
        cells = []
        for one in (record, record.at_one_rate()):
            at = interval([x[0] for x in losses(one, name, "mean")])
            far = len(losses(one, name, "tail")[0]) > 1
            cells += [f"{at.mean:.3f}", f"{rise(one, name)}" if far else "–"]
        lr, own = next(
            (
                cell["rates"]
                for cell in record.cells()
                if cell["encoding"] == name.split(" + ")[0] and "rates" in cell
            ),
            one_rate,
        )
        lines.append(f"| {name} | {lr:g}; {own:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


MULTIPLES = [1, 2, 4, 8, 16]
SMALL = {
    "d_model": 64,
    "layers": 2,
    "heads": 4,
    "length": 64,
    "batch": 16,
    "lr": 1.5e-2,
    "multiples": MULTIPLES,
}

EXPERIMENT = Experiment(
    "lengths",
    "Train short, test long",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    table=table,
    setup=in_words(
        "L = {length} {units}; {training}", examples="texts", units="characters of the King James Bible"
    ),
    presets={
        "live": SMALL
        | {"encodings": list(MAIN), "steps": 100, "windows": 12, "tail": 32, "protocol": ["own"]},
        "full": SMALL
        | {
            "encodings": list(ENCODINGS),
            "steps": 300,
            "windows": 48,
            "tail": 32,
            "scalings": ["PI", "NTK-aware", "YaRN"],
            "protocol": ["one", "own"],
        },
        "chinese": SMALL
        | {
            "text": "honglou",
            "units": "bytes of Dream of the Red Chamber, three to a Chinese character",
            "encodings": ["none", "sinusoidal", "learned", "rotary", "alibi", "t5"],
            "steps": 300,
            "windows": 24,
            "tail": 32,
        },
        "gpu": {
            "d_model": 384,
            "layers": 6,
            "heads": 6,
            "length": 512,
            "batch": 32,
            "lr": 1e-3,
            "multiples": MULTIPLES,
            "encodings": list(MAIN),
            "steps": 400,
            "windows": 32,
            "tail": 256,
        },
    },
    seeds={"live": (0, 1, 2), "full": (0, 1, 2, 3, 4), "chinese": (0, 1, 2, 3, 4), "gpu": (0, 1, 2)},
)
