"""Four ways in which a position vector meets its token, and the scale of a learned table (3 steps back)."""

from __future__ import annotations

import statistics

import torch

from tutorial_lib import plots
from tutorial_lib.data import steps_back
from tutorial_lib.encodings import Add, Concatenate, Learned, Multiply, PositionMatrix, Sinusoidal, sinusoidal
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import accuracy, evaluate, seeded, train

from ..verdicts import above, all_of, below, identity, within
from .record import Record
from .statistics import difference, interval
from .sweep import Experiment, Finding, in_words, spoken

VALUES, K = 16, 3
SIZES = {"d_model": 64, "layers": 2, "heads": 4, "length": 16, "lr": 3e-3}
"""Where a preset does not say otherwise."""

TARGET = 0.5
"""A run has learned the task when its loss, a mean over 10 steps, falls below this (nats)."""

SHARE = 0.15
"""A share of all steps: whoever needs that many more is slower."""

WORSE = 0.1
"""Nats: a token with a loss that is higher by more is predicted worse."""

VECTORS = {
    "sinusoidal": lambda length, dim: Sinusoidal(dim),
    "learned, std 1": lambda length, dim: Learned(length, dim, std=1.0),
    "learned, std 0.02": lambda length, dim: Learned(length, dim, std=0.02),
}
FUSIONS = {
    "add": lambda vectors, length, d_model: Add(vectors(length, d_model)),
    "multiply": lambda vectors, length, d_model: Multiply(vectors(length, d_model)),
    "concat": lambda vectors, length, d_model: Concatenate(vectors(length, d_model // 2)),
}
MATRICES = {"learned, std 1": 1.0, "learned, std 0.02": 0.02}


def cells(settings: dict) -> list[dict]:
    pairs = [(fusion, vectors) for fusion in FUSIONS for vectors in VECTORS]
    pairs += [("matrix", vectors) for vectors in MATRICES]
    return [{"fusion": fusion, "vectors": vectors} for fusion, vectors in pairs]


def encoding(fusion: str, vectors: str, length: int, d_model: int):
    """The encoding of a cell."""
    if fusion == "matrix":
        return PositionMatrix(length, d_model, std=MATRICES[vectors])
    return FUSIONS[fusion](VECTORS[vectors], length, d_model)


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    settings = SIZES | settings
    L, d_model = settings["length"], settings["d_model"]
    config = Config(VALUES, d_model, n_heads=settings["heads"], n_layers=settings["layers"])
    model = seeded(lambda: Transformer(config, encoding(**cell, length=L, d_model=d_model)), seed)
    options = {"k": K, "length": L, "n_values": VALUES}
    history = train(
        model,
        lambda generator: steps_back(settings["batch"], generator, **options),
        settings["steps"],
        lr=settings["lr"],
        seed=seed,
        device=device,
        progress=False,
    )
    tokens, targets = steps_back(settings["test"], torch.Generator().manual_seed(1000 + seed), **options)
    by_place = evaluate(model, tokens, targets.clamp(min=0)).mean(0)[K:]
    return {
        "steps": steps_to(history.losses),
        "loss": by_place.mean().item(),
        "accuracy": accuracy(model, tokens, targets),
        # entry n: the token of place n has to be predicted at place n + K
        "by_place": by_place.tolist(),
    }


def steps_to(losses: list[float], target: float = TARGET) -> int:
    """Steps until the mean of 10 losses is below ``target``; all steps if it never is."""
    means = torch.tensor(losses).unfold(0, 10, 1).mean(1)
    below = (means < target).nonzero()
    return int(below[0]) + 10 if len(below) else len(losses)


def zeros(dim: int) -> int:
    """How many channels of a token the sinusoid of position 0 deletes when it is multiplied."""
    return int((sinusoidal(torch.tensor(0), dim) == 0).sum())


def figure(record: Record):
    """How soon each form learns: a panel for each kind of vectors, a row for each operator."""
    fig, axes = plots.panels(1, len(VECTORS), size=(13.5, 4), sharex=True, sharey=True)
    steps, ends, operators = _steps(record), record.settings["steps"], [*FUSIONS, "matrix"]
    for ax, vectors in zip(axes, VECTORS, strict=True):
        got = {spoken(of): steps[of, vectors] for of in operators if (of, vectors) in steps}
        plots.bars(
            {of: statistics.fmean(each) for of, each in got.items()},
            spread={of: (min(each), max(each)) for of, each in got.items()},
            colour=vectors,
            ax=ax,
            title=_(vectors),
            xlabel=_("steps to a loss of {loss}").format(loss=TARGET),
            levels={_("{ends}: not learned").format(ends=ends): ends},
            values=".0f",
            xlim=(0, 1.25 * ends),
        )
    axes[0].set_ylim(len(operators) - 0.4, -0.6)
    return fig


def _steps(record: Record) -> dict[tuple[str, str], list[float]]:
    return {(each["fusion"], each["vectors"]): record.values("steps", **each) for each in record.cells()}


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    steps, ends = _steps(record), record.settings["steps"]
    said = []
    for (fusion, vectors), each in sorted(steps.items(), key=lambda x: statistics.fmean(x[1])):
        if min(each) < ends:
            mean = f"{statistics.fmean(each):.0f}"  # a lower bound if one of the runs did not get there
            label = _("{fusion}: {vectors}").format(fusion=_(fusion), vectors=_(vectors))
            said.append(f"{label} " + (_("at least {n}").format(n=mean) if max(each) >= ends else mean))
    learned = _(", ").join(said)
    return _(
        "Bars for {n} forms of fusion. Steps until the loss is below {target}: {learned}; the others do "
        "not get there in {ends} steps."
    ).format(n=len(steps), target=TARGET, ends=ends, learned=learned or _("none"))


def findings(record: Record) -> list[Finding]:
    def of(name, fusion, vectors):
        return record.values(name, fusion=fusion, vectors=vectors)

    def slower(a, b):
        return difference(of("steps", *a), of("steps", *b))

    def words(more, *runs):
        """``more`` steps; a lower bound if some of the ``runs`` were ended before they got there."""
        ended = sum(steps >= cap for steps in of("steps", *runs))
        late = f"at least {more} ({ended} of {len(record.seeds)} runs did not get there in {cap})"
        return late if ended else str(more)

    d_model, cap = (SIZES | record.settings)["d_model"], record.settings["steps"]
    margin, one, small = SHARE * cap, "learned, std 1", "learned, std 0.02"
    multiplied = {vectors: slower(("multiply", vectors), ("add", vectors)) for vectors in ("sinusoidal", one)}
    concat = {vectors: slower(("concat", vectors), ("add", vectors)) for vectors in ("sinusoidal", one)}
    matrix = slower(("matrix", one), ("add", one))
    first = interval(
        [places[0] - statistics.fmean(places[1:]) for places in of("by_place", "multiply", "sinusoidal")]
    )
    scale = slower(("add", small), ("add", one))
    added = {fusion: slower(("add", small), (fusion, small)) for fusion in ("multiply", "matrix")}
    # the cost of the scale less that of the operator: their common starting point cancels
    more = difference(of("steps", "add", small), of("steps", "multiply", one))
    listed = "; ".join(f"joined to {vectors} {x}" for vectors, x in concat.items())
    later = f"more steps until the loss is {TARGET}"
    ways = {"multiply": "multiplying", "matrix": "a matrix for each place"}
    easy = f"only {K + 1} tokens are seen where token 0 has to be predicted, which may make it easier"
    return [
        *(
            Finding(
                f"Multiplying tokens by {what} is slower than adding them",
                "a popular list of fusions",
                "",
                f"{later} than by adding: multiplied {words(multiplied[vectors], 'multiply', vectors)}",
                above(multiplied[vectors], margin),
                why="both learn the task within much the same number of steps",
            )
            for vectors, what in (("sinusoidal", "sinusoids"), (one, "a learned table (std 1)"))
        ),
        Finding(
            "Multiplied by the sinusoid of position 0, a token loses half of its channels",
            "algebra: sin 0 = 0",
            "",
            f"{zeros(d_model)} of {d_model} channels of token 0 become 0",
            identity(zeros(d_model) - d_model / 2, 0),
            why="the code does not do what the formula says",
        ),
        Finding(
            "Multiplied by sinusoids, token 0 is predicted worse than others",
            "",
            "",
            f"the loss where token 0 has to be predicted is higher than elsewhere by {first} nats",
            above(first, WORSE),
            why=f"the half that is left may tell {VALUES} tokens apart; and {easy}",
            open_why=f"the interval reaches over the limit; and {easy}",
        ),
        Finding(
            "Concatenation learns as fast as addition",
            "a popular list of fusions",
            "",
            f"{later} than by adding: {listed}",
            all_of(*(within(x, margin) for x in concat.values())),
            why="tokens and positions have half of the width each",
        ),
        Finding(
            "A matrix for each place, the richest of the four, learns faster than addition (both at std 1)",
            "a popular list of fusions",
            "",
            f"{later} than by adding: a matrix for each place {words(matrix, 'matrix', one)}",
            below(matrix, -margin),
            why=f"each place has {d_model}² numbers to learn and not {d_model}, which may take longer",
        ),
        Finding(
            "Started small (std 0.02), what multiplies a token is learned faster than what is added",
            "",
            "",
            f"{later} when it is added: "
            + "; ".join(f"than by {ways[fusion]} {words(x, 'add', small)}" for fusion, x in added.items()),
            all_of(*(above(x, margin) for x in added.values())),
            why="the size of what multiplies a token may matter as well",
        ),
        Finding(
            "The scale of a table that is added matters more than adding or multiplying",
            "",
            "",
            f"{later} than by adding with std 1, at one learning rate for all: multiplied "
            f"{words(multiplied[one], 'multiply', one)}; added with std 0.02 {words(scale, 'add', small)}",
            above(more, margin),
            why="with these steps the operator costs as much",
        ),
    ]


EXPERIMENT = Experiment(
    "fusion",
    "Fusion",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words("Sequences of {length} random tokens; {training}", **SIZES),
    presets={
        "live": {"steps": 120, "batch": 32, "test": 128},
        "full": {"steps": 300, "batch": 32, "test": 512},
        "gpu": {
            "d_model": 256,
            "layers": 6,
            "heads": 8,
            "length": 64,
            "lr": 1e-3,
            "steps": 1000,
            "batch": 64,
            "test": 1024,
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2), "gpu": (0, 1, 2)},
)
