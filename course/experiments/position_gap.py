r"""A gap in the position ids of a real model: how far back does it still find a text?

SmolLM2-135M, a RoPE model extended to windows of 8192 tokens, reads a text and then the same text
again, with position ids that begin a gap later. A score depends only on the distance between two tokens, so
a few hundred tokens can stand in for many thousands; what a long text would hold in between is left
out, except in one cell, which reads it ("between"). A model that finds the first copy knows every next token
of the second one.

Angles are scaled as they are in :mod:`tutorial_lib.encodings.scaling`, and nothing is tuned. One cell
is one scaling, or another base; a seed chooses a passage of the King James Bible, or of another kind of
``text``: source code and documentation, both of the Python that runs this.
"""

from __future__ import annotations

import copy
import functools
import importlib
import math
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.data import SMOLLM2, kjv, load_smollm2
from tutorial_lib.data.pretrained import SMOLLM2_BASE, SMOLLM2_TRAININGS
from tutorial_lib.data.sources import SOURCES
from tutorial_lib.encodings import Frequencies, NTKAware, PositionInterpolation, Rotary, YaRN
from tutorial_lib.language import _
from tutorial_lib.model import Cache

from ..verdicts import above, all_of, below, identity, within
from .record import Record
from .statistics import Interval, difference, interval
from .sweep import Experiment, Finding, in_words, spoken

TRAINED = SMOLLM2_TRAININGS[-1][0]
SCALINGS = {
    "raw": None,
    "PI, s = 4": PositionInterpolation(4),
    "NTK-aware, s = 4": NTKAware(4),  # the base is 418,000 now
    "YaRN, s = 4": YaRN(4, L=TRAINED),
    "NTK-aware, s = 8": NTKAware(8),
    "YaRN, s = 8": YaRN(8, L=TRAINED),
}
BASES = {f"base {base:,}": base for base in (10_000, 20_000, 50_000)}
"""From the base of the pre-training on: with these, hands leave the ground of the last training early."""
COMPARED = ("raw", "PI, s = 4", "NTK-aware, s = 4", "YaRN, s = 4")
"""The scalings that other kinds of text are read with."""

BEYOND, FAR = 9000, 48_000
"""Two of the gaps: just beyond the trained length, and between 4 and 8 times as far."""


def frequencies(name: str) -> Frequencies:
    return Frequencies(SMOLLM2.head_dim, BASES.get(name, SMOLLM2_BASE), scaling=SCALINGS.get(name))


def limits(name: str, trainings=SMOLLM2_TRAININGS) -> Tensor:
    """The distance from which each pair has an angle that it never had in these trainings, ``[d/2]``.

    A pair that made a whole turn in one of them has seen every angle: infinity.
    """
    seen = torch.stack(
        [length * Frequencies(SMOLLM2.head_dim, base).theta() for length, base in trainings]
    ).amax(0)
    return torch.where(seen < 2 * math.pi, seen / frequencies(name).theta(), math.inf)


def stretch(name: str) -> float:
    """How many times as far as raw before the first new angle: s for PI, less for NTK-aware."""
    return (limits(name).min() / limits("raw").min()).item()


MODULES = ("argparse", "ast", "dataclasses", "ipaddress", "pdb", "tarfile", "textwrap", "typing")
"""Of the standard library, to be read as source code."""


@functools.cache
def whole(text: str) -> str:
    """The whole text of that kind."""
    if text == "code":
        files = [Path(importlib.import_module(name).__file__ or "") for name in MODULES]
        return "\n".join(file.read_text(encoding="utf-8") for file in files)
    return "\n".join(topics[name] for name in sorted(topics)) if text == "documentation" else kjv().text


def passage(seed: int, length: int, text: str = "bible") -> Tensor:
    """Ids ``[1, length]`` from the beginning of a line (in the Bible, of a verse) somewhere in the text."""
    lines = whole(text)
    at = int(torch.randint(len(lines) * 99 // 100, (1,), generator=torch.Generator().manual_seed(seed)))
    at = lines.index("\n", at) + 1
    return load_smollm2().encode(lines[at : at + 20 * length])[:, :length]


def cells(settings: dict) -> list[dict]:
    others = [{"scaling": name, "text": text} for text in settings.get("texts", []) for name in COMPARED]
    bases = [{"scaling": name, "gaps": gaps} for name, gaps in settings.get("bases", {}).items()]
    real = [
        {"scaling": "raw", "between": kind, "gaps": gaps}
        for kind, gaps in settings.get("between", {}).items()
    ]
    return [{"scaling": name} for name in settings["scalings"]] + others + bases + real


@torch.no_grad()
def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    length = settings["length"]
    tokens = passage(seed, length, cell.get("text", "bible")).to(device)
    positions = torch.arange(length, device=device)
    gaps = cell.get("gaps", settings["gaps"])
    model = copy.deepcopy(load_smollm2().model).to(device)
    model.encoding = Rotary(SMOLLM2.head_dim, frequencies=frequencies(cell["scaling"]))

    def loss(logits):  # the same targets in both copies
        return F.cross_entropy(logits[0, :-1], tokens[0, 1:]).item()

    seen = Cache()
    logits = model(tokens, positions, cache=seen)
    moved = model(tokens, positions + gaps[-1])
    repeats, unseen = [], []
    between = passage(seed + 100, gaps[-1], cell["between"]).to(device) if "between" in cell else None
    for gap in gaps:
        second = positions + length + gap
        if between is not None:
            for part in between[:, len(seen) - length : gap].split(256, 1):
                model(part, torch.arange(len(seen), len(seen) + part.shape[1], device=device), cache=seen)
            keys, values = ([x[:, :, length:] for x in each] for each in (seen.keys, seen.values))
            without = Cache(keys, values, torch.arange(length, length + gap, device=device))
            unseen.append(loss(model(tokens, second, cache=without)))
        repeats.append(loss(model(tokens, second, cache=seen.copy())))
    found = {"first": loss(logits), "repeat": repeats, "moved": (moved - logits).abs().max().item()}
    return found | ({"unseen": unseen} if unseen else {})


def repeats(record: Record, name: str, gap: int, **cell: str) -> list[float]:
    """The loss on the second copy after a gap.

    ``text="code"`` for another text than the Bible, ``between="bible"`` for a gap that is filled.
    """
    gaps = record.settings["between"][cell["between"]] if "between" in cell else record.settings["gaps"]
    return [x[gaps.index(gap)] for x in record.values("repeat", scaling=name, **cell)]


def reaches(record: Record, name: str) -> list[float]:
    """The distance where half of the copy's help is lost, in each text, interpolated between two gaps.

    Half is half of the help for the model as trained, without a gap. The result is 0 where that much help
    was never there, and the largest distance where it is never lost.
    """
    gaps = record.settings.get("bases", {}).get(name, record.settings["gaps"])
    length, found = record.settings["length"], []
    for losses, start, none in zip(
        record.values("repeat", scaling=name),
        repeats(record, "raw", 0),
        record.values("first", scaling="raw"),
        strict=True,
    ):
        half = (start + none) / 2
        at = next((n for n, x in enumerate(losses) if x > half), None)
        if at:
            share = (half - losses[at - 1]) / (losses[at] - losses[at - 1])
            found.append(length + gaps[at - 1] + share * (gaps[at] - gaps[at - 1]))
        else:
            found.append(0.0 if at == 0 else length + gaps[-1])
    return found


def ratio(record: Record, name: str) -> Interval:
    """How many times as far as raw a scaling carries."""
    return interval([a / b for a, b in zip(reaches(record, name), reaches(record, "raw"), strict=True)])


def shares(record: Record, name: str, trainings=SMOLLM2_TRAININGS) -> Interval:
    """How much of the way to the first angle that is new after these trainings a scaling carries."""
    first = limits(name, trainings).min().item()
    return interval([x / first for x in reaches(record, name)])


def spreads(shares: dict[str, Interval]) -> list[float]:
    """For each text, the largest share over the smallest one, of all that find the copy at all."""
    by_text = zip(*(each.values for each in shares.values()), strict=True)
    found = [[share for share in text if share > 0] or [1.0] for text in by_text]
    return [max(text) / min(text) for text in found]


def figure(record: Record):
    gaps, names = record.settings["gaps"], record.settings["scalings"]
    fig, (left, right) = plots.panels(1, 2, size=(13.5, 6))
    losses = {
        spoken(name): torch.tensor([repeats(record, name, gap) for gap in gaps]).mean(1) for name in names
    }
    none = interval(record.values("first", scaling="raw")).mean
    plots.lines(
        [gap / 1000 for gap in gaps],
        losses,
        ax=left,
        markers=True,
        border=TRAINED / 1000,
        levels={_("no copy"): none},
        levels_end=True,
        title=_("The copy helps, up to a cliff"),
        ylim=(0, None),
        xlabel=_("gap before the second copy (thousands of positions)"),
        ylabel=_("loss on the second copy (nats)"),
    )
    x, drawn = torch.arange(0, gaps[-1] + 1, 50), {}
    for name in names:  # of those whose hands leave known ground together the last has a line, with all names
        same = [other for other in names if torch.allclose(limits(name), limits(other))]
        share = (limits(name) < x[:, None]).double().mean(1)
        last = name == same[-1]
        drawn["\n".join(map(_, map(spoken, same))) if last else name] = share if last else share * math.nan
    plots.lines(
        x / 1000,
        drawn,
        ax=right,
        title=_("New angles begin later than the cliffs"),
        xlabel=_("distance (thousands of positions)"),
        ylabel=_("share of pairs at new angles"),
    )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    names = record.settings["scalings"]
    lost, new = (
        _("; ").join(
            _("{name}: {distance}").format(name=_(name), distance=f"{distance(name):,.0f}") for name in names
        )
        for distance in (
            lambda name: interval(reaches(record, name)).mean,
            lambda name: limits(name).min().item(),
        )
    )
    return _(
        "Lines. Left, loss on a second copy against the gap before it, for {n} scalings of RoPE; half "
        "of the first copy's help is lost at these distances: {lost}. Right, the share of pairs with "
        "angles never seen in training, which leaves 0 at these: {new}."
    ).format(n=len(names), lost=lost, new=new)


def left(record: Record, name: str, gap: int, **text: str) -> Interval:
    """The share of the copy's help that is left after a gap; 1 is the help for raw without a gap."""
    losses = (
        record.values("first", scaling="raw", **text),
        repeats(record, "raw", 0, **text),
        repeats(record, name, gap, **text),
    )
    return interval([(none - far) / (none - near) for none, near, far in zip(*losses, strict=True)])


def left_in_text(record: Record, gap: int) -> Interval:
    """The share of the copy's help that is left after a gap filled with real text.

    1 is the help without a gap. "No copy" is the loss at the same place, after the same text, with the first
    copy taken out of the cache.
    """
    cell = {"scaling": "raw", "between": "bible"}
    none = [x[record.settings["between"]["bible"].index(gap)] for x in record.values("unseen", **cell)]
    losses = none, *(repeats(record, "raw", n, between="bible") for n in (0, gap))
    return interval([(none - far) / (none - near) for none, near, far in zip(*losses, strict=True)])


HALF = 0.5
"""Of the copy's help: where less is left, the copy is lost."""

HELPS = 0.5
"""Nats: a copy that lowers the loss by less helps too little to tell where it is lost."""

COSTS = 0.05
"""Nats: a loss on the first copy that rises by less is no cost. It is 5 % in perplexity."""

TENTH = 0.1
"""Of a distance: a share that is less is no difference."""


def findings(record: Record) -> list[Finding]:
    names, length = record.settings["scalings"], record.settings["length"]
    scaled = [name for name in names if name != "raw"]
    kinds = {"PI": "position interpolation", "NTK-aware": "NTK-aware scaling", "YaRN": "YaRN"}
    reach = {name: interval(reaches(record, name)) for name in names}
    ratios = {name: ratio(record, name) for name in scaled}
    off = {name: interval([x / stretch(name) - 1 for x in ratios[name].values]) for name in scaled}
    everywhere = [*names, *record.settings.get("bases", {})]
    bounds, last = (
        {name: shares(record, name, trainings) for name in everywhere}
        for trainings in (SMOLLM2_TRAININGS, SMOLLM2_TRAININGS[-1:])
    )

    def price(name, than="raw"):
        """What reading the first copy costs."""
        return difference(*(record.values("first", scaling=which) for which in (name, than)))

    def listed(found, form=".2f"):
        called = {"raw": "as trained"}
        return "; ".join(f"{called.get(name, name)} {words(x, form)}" for name, x in found.items())

    near = difference(repeats(record, "raw", 0), record.values("first", scaling="raw"))
    moved = interval(record.values("moved", scaling="raw"))
    kept = {name: left(record, name, BEYOND) for name in ("raw", "NTK-aware, s = 4", "YaRN, s = 4")}
    beyond, carried = kept.pop("raw"), kept
    pi = left(record, "PI, s = 4", 0)
    short, enough = (left(record, f"YaRN, s = {s}", FAR) for s in (4, 8))
    cheaper = {name: price(name, "PI, s = 4") for name in carried}
    further = {
        f"s = {s}": difference(*(ratios[f"{kind}, s = {s}"].values for kind in ("YaRN", "NTK-aware")))
        for s in (4, 8)
        if f"NTK-aware, s = {s}" in names
    }
    there = f"after a gap of {FAR:,}, {(FAR + length) / TRAINED:.1f} times the trained length"
    read = "a model may read some angles that are new"
    said = [
        Finding(
            "RoPE as trained loses what lies beyond its length",
            "Chen et al. 2023, Table 1",
            "LLaMA 7B, perplexity 7.20 at 2048 as trained, over 1000 at 4096",
            f"loss on a text read again without a gap, minus that without a copy: {near} nats. Share of "
            f"this help that is left after a gap of {BEYOND:,}: {words(beyond, '.2f')}. Half is lost at a "
            f"distance of {words(reach['raw'], ',.0f')} tokens; the windows had {TRAINED:,} in the end, "
            "and few pairs of tokens are nearly as far apart as that",
            all_of(below(near, -HELPS).of("the loss without a gap"), below(beyond, HALF).of("the share")),
            why="the copy may be found by what it says",
        ),
        Finding(
            "Only distances count: all positions moved by the same number change nothing",
            "Su et al. 2021, eq. 16",
            "a proof",
            f"largest change of a logit when all ids grow by {record.settings['gaps'][-1]:,}: "
            + words(moved, ".1e"),
            identity(moved, 1e-3),
            why="angles of large positions are not exact enough",
        ),
        Finding(
            "Without tuning, NTK-aware scaling and YaRN carry further",
            "bloc97 2023; Peng et al. 2023, §3",
            "",
            f"share of the help that is left after a gap of {BEYOND:,}: {listed(carried)}. Half of it is "
            f"lost at a distance of: {listed(reach, ',.0f')} tokens",
            all_of(*(above(x, HALF) for x in carried.values())),
            why="without tuning, the model may not read the changed angles",
        ),
        Finding(
            "Without tuning, interpolation does not carry: it loses the copy even without a gap",
            "Chen et al. 2023, Table 3",
            "only for the new length: perplexity without tuning 16.10 at 8192",
            f"share of the help that is left without a gap: {words(pi, '.2f')}. No angle is new up to "
            f"{limits('PI, s = 4').min():,.0f}, but neighbours differ by a quarter of the angle that "
            "the model knows",
            below(pi, HALF),
            why="the model may need neighbours less exactly",
        ),
        Finding(
            "Without tuning, NTK-aware scaling and YaRN cost less than interpolation on a short text",
            "Peng et al. 2023, §3.1–3.2",
            "",
            f"loss on the first copy, {length} tokens, minus that with PI: {listed(cheaper, '+.3f')} nats",
            all_of(*(below(x, -COSTS) for x in cheaper.values())),
            why="the model may need neighbours less exactly",
        ),
        *(
            Finding(
                f"Without tuning, {kinds[name.split(',')[0]]} costs nothing on a short text",
                "",
                "",
                f"loss on the first copy, {length} tokens, with {name}, minus loss as trained: "
                f"{price(name)} nats",
                below(price(name), COSTS),
                why="it changes angles or scores that the model was trained with",
            )
            for name in carried
        ),
        *(
            Finding(
                f"A scaling by s reads s times as far: {name}",
                "Peng et al. 2023, §2.3",
                "s is the new length over the trained one",
                f"distance of half the help over that as trained: {words(ratios[name], '.2f')}; up to a "
                "tenth less than s counts as s",
                above(ratios[name], (1 - TENTH) * factor),
                why=f"its first angle is new at {stretch(name):.2f} times the distance of raw's"
                + (", and the copy is lost before" if ratios[name].high < stretch(name) else ""),
            )
            for name, factor in ((name, float(name.split("= ")[1])) for name in scaled)
        ),
        Finding(
            "NTK-aware scaling needs an s above the stretch that is wanted",
            "Peng et al. 2023, §3.1",
            "some pairs leave their range, so s has to be set higher",
            f"at s = 4 it carries {words(ratios['NTK-aware, s = 4'], '.2f')} times as far as the model as "
            f"trained; no angle is new up to {stretch('NTK-aware, s = 4'):.2f} times as far as there",
            below(ratios["NTK-aware, s = 4"], (1 - TENTH) * 4),
            why=read,
        ),
        Finding(
            "Without tuning and at the same s, YaRN carries further than NTK-aware scaling",
            "Peng et al. 2023, §3.2",
            "said of YaRN without its factor on the scores (“NTK-by-parts”)",
            f"distance of half the help minus that of NTK-aware scaling, over that as trained: "
            f"{listed(further)}",
            all_of(*(above(x, TENTH) for x in further.values())),
            why=read,
        ),
        Finding(
            "The factor s must be at least the distance over the trained length",
            "Peng et al. 2023, §2.3",
            "s is defined as that",
            f"share of the help that is left {there}, with YaRN, s = 4: {words(short, '.2f')}",
            below(short, HALF),
            why=read,
        ),
        Finding(
            "A factor s above the distance over the trained length is enough",
            "Peng et al. 2023, §2.3",
            "s is defined as that",
            f"share of the help that is left {there}, with YaRN, s = 8: {words(enough, '.2f')}",
            above(enough, HALF),
            why=f"as trained, the model loses half of the help at {reach['raw'].mean / TRAINED:.2f} of its "
            "length; s may stretch that distance, not the length",
        ),
    ]
    for kind, title in kinds.items():
        which = [name for name in scaled if name.startswith(kind)]
        said.append(
            Finding(
                f"How far a scaling carries is told by its wavelengths: {title}",
                "Peng et al. 2023, §3.1–3.2",
                "pairs that turn less than once in training must not leave their range",
                "distance of half the help over that as trained, against how much later the first angle is "
                "new: "
                + "; ".join(
                    f"{name} ({ratios[name].mean:.2f} against {stretch(name):.2f}), as a share "
                    + words(off[name], "+.2f")
                    for name in which
                ),
                all_of(*(within(off[name], TENTH) for name in which)),
                why="where every pair keeps its range, the angles between neighbours may still be other ones",
            )
        )
    said.append(
        Finding(
            "No scaling carries beyond its first new angle",
            "",
            "",
            f"distance of half the help over that of the first new angle, of which pre-training counts, too: "
            f"{listed(bounds)}",
            all_of(*(below(x, 1) for x in bounds.values())),
            why=read,
        )
    )
    if "bases" in record.settings:
        uneven = [interval(spreads(each)) for each in (last, bounds)]
        said += [
            Finding(
                "No scaling or base carries beyond the angles of the last training alone",
                "",
                "",
                "distance of half the help over that of the first angle that is new to "
                f"{TRAINED:,} tokens at base {SMOLLM2_BASE:,.0f}: {listed(last)}",
                all_of(*(below(x, 1) for x in last.values())),
                why="the pre-training, 2,048 tokens at base 10,000, had led the slow pairs further, and the "
                "model has not forgotten it",
            ),
            Finding(
                "With its pre-training, a model's dial foretells better where a copy is lost",
                "",
                "",
                "among all that find a copy, the largest of these shares over the smallest: "
                f"by the last training {words(uneven[0], '.2f')}; by both {words(uneven[1], '.2f')}",
                above(difference(*(each.values for each in uneven)), TENTH),
                why="the last training may have overwritten it",
            ),
        ]
    if "between" in record.settings:
        inside, outside = (left_in_text(record, gap) for gap in (6000, 7000))
        said.append(
            Finding(
                "With real text in the gap, the copy is lost in the same place",
                "",
                "",
                f"share of the help that is left after real text of 6,000 tokens: {words(inside, '.2f')}; "
                f"share of the help that is left after 7,000: {words(outside, '.2f')}",
                all_of(above(inside, HALF), below(outside, HALF)),
                why="the text in between draws attention, too",
            )
        )
    over = f" ({len(record.seeds)} passages of one book, one model)"
    return [replace(finding, ours=finding.ours + over) for finding in said] + other_texts(record)


def other_texts(record: Record) -> list[Finding]:
    """What the record says about texts that are not the Bible."""
    kinds = record.settings.get("texts", [])
    if not kinds:
        return []

    def kept(names, gap):
        called = {"raw": "as trained"}
        return {
            f"{kind}, {called.get(name, name)}": left(record, name, gap, text=kind)
            for kind in kinds
            for name in names
        }

    said = [
        (
            "RoPE as trained loses what lies beyond its length",
            "Chen et al. 2023, Table 1",
            kept(["raw"], BEYOND),
            below,
            BEYOND,
            "the copy may be found by what it says",
        ),
        (
            "Without tuning, NTK-aware scaling and YaRN carry further",
            "bloc97 2023; Peng et al. 2023, §3",
            kept(["NTK-aware, s = 4", "YaRN, s = 4"], BEYOND),
            above,
            BEYOND,
            "the model may not read the changed angles in this kind of text",
        ),
        (
            "Without tuning, interpolation does not carry: it loses the copy even without a gap",
            "Chen et al. 2023, Table 3",
            kept(["PI, s = 4"], 0),
            below,
            0,
            "what is said may be found without exact neighbours",
        ),
    ]
    return [
        Finding(
            f"{claim}: {' and '.join(kinds)}, too",
            source,
            "",
            f"share of the copy's help that is left {f'after a gap of {gap:,}' if gap else 'without a gap'}: "
            + "; ".join(f"{name} {words(x, '.2f')}" for name, x in shares.items())
            + f" ({len(record.seeds)} passages of each kind of text, one model)",
            all_of(*(asked(x, HALF) for x in shares.values())),
            why=why,
        )
        for claim, source, shares, asked, gap, why in said
    ]


def words(x: Interval, form: str) -> str:
    return f"{x.mean:{form}} ({x.low:{form}} to {x.high:{form}})"


EXPERIMENT = Experiment(
    "position_gap",
    "A gap in the positions of a real model",
    findings=findings,
    over="texts",
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words(
        "SmolLM2-135M-Instruct reads passages of {length} tokens twice; nothing is trained here. The model: "
        "{history}",
        history=SOURCES["smollm2"].history,
    ),
    presets={
        "live": {
            "length": 96,
            "scalings": ["raw", "PI, s = 4", "NTK-aware, s = 4", "YaRN, s = 4", "YaRN, s = 8"],
            "gaps": [0, 6000, BEYOND, 24_000, FAR],
        },
        "full": {
            "length": 160,
            "scalings": list(SCALINGS),
            "texts": ["code", "documentation"],
            "bases": {
                name: [0, 500, 1000, 1250, 1500, 1750, 2000, 2500, 3000, 3500, 4000, 5000] for name in BASES
            },
            "between": {"bible": [0, 2000, 4000, 6000, 7000, 8000, BEYOND]},
            "gaps": [
                0,
                4000,
                6000,
                7000,
                BEYOND,
                12_000,
                14_000,
                16_000,
                20_000,
                24_000,
                28_000,
                32_000,
                40_000,
                FAR,
                64_000,
            ],
        },
    },
    seeds={"live": (0, 1, 2), "full": tuple(range(8))},
)
