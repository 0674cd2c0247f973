"""One board for all: every encoding that the lessons compare, in the same small model.

Nothing is trained here. All encodings are built for the same model and the same longest text, their
weights are drawn at random, and each is asked the same questions:

- ``parameters``, and the ``stored`` bytes of a checkpoint;
- ``held``: the bytes that a pass over the longest text holds at its peak, all activations together;
- ``time``: how many times as long this pass takes as one without positions, measured in turns;
- ``apart``: among equal tokens, how many places the last query tells apart;
- ``shift``: the most that an attention weight changes when all positions move by half the length;
- ``toeplitz``: the share in the scores of equal tokens that the offset does not explain, as far as a
  softmax sees them: their differences from key to key. (Texts only: images have two offsets.)

``time`` depends on the machine, and ``held`` on its backend. All else is exact for a seed.
"""

from __future__ import annotations

import math
import statistics

import torch
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings import PositionalEncoding, fit, grid
from tutorial_lib.encodings.registry import COMPARED
from tutorial_lib.explorers.scoreboard import LARGE as LARGE
from tutorial_lib.explorers.scoreboard import ranks as ranks
from tutorial_lib.explorers.scoreboard import rows
from tutorial_lib.explorers.scoreboard import shown as shown
from tutorial_lib.model import Config, Transformer
from tutorial_lib.properties import parameters, toeplitz_error
from tutorial_lib.training import seeded

from ..timing import interleaved, peak_bytes, ratio
from ..verdicts import above, below
from . import lengths, tasks
from .record import Record
from .statistics import Interval, interval
from .sweep import Experiment, Finding, in_words, spoken

ENCODINGS = tuple(sorted(COMPARED, key=[*rows(), *COMPARED].index))
"""Those that are on the board stay in their order, so that it prints as it did; new ones follow."""

TOLERANCE = 1e-9
"""Below it a difference of float64 numbers is rounding."""

MEASURES = {
    "parameters": "parameters",
    "stored": "bytes stored",
    "held": "bytes held",
    "time": "times as long as no position",
    "apart": "places told apart",
    "shift": "shift error",
    "toeplitz": "Toeplitz error",
    "loss": "nats per character at L",
    "mean": "nats, all characters, 16 L − L",
    "tail": "nats, the same last characters, 16 L − L",
    "won": "tasks won at 4 L, of 5",
}
"""The columns of the board, and what their numbers are."""


def encoding(name: str, settings: dict) -> PositionalEncoding:
    """The encoding ``name`` for a model and a longest text as in the settings."""
    if name in lengths.ENCODINGS:
        return lengths.encoding(name, settings)
    L, d_model = settings["length"], settings["d_model"]
    side = math.isqrt(L)

    def fitted(name, **config):
        return fit(name, d_model=d_model, n_heads=settings["heads"], length=L, **config)

    def both():
        return {"position": fitted("learned"), "relative": fitted("t5", max_distance=L)}

    special = {
        "add": lambda: fitted("add", position=fitted("sinusoidal"), token_scale=d_model**0.5),
        "multiply": lambda: fitted("multiply", position=fitted("learned")),
        "concatenate": lambda: fitted("concatenate", position=fitted("learned", dim=d_model // 4)),
        "hybrid-sum": lambda: fitted("hybrid-sum", **both()),
        "hybrid-concat": lambda: fitted("hybrid-concat", **both()),
        "key-side": lambda: fitted("key-side", **both()),
        "compose": lambda: fitted("compose", parts=[*both().values()]),
        "swin": lambda: fitted("swin", window=(side, side)),
        "raster": lambda: fitted("raster", encoding=fitted("table"), width=side),
    }
    return special.get(name, lambda: fitted(name))()


def drawn(name: str, settings: dict, seed: int) -> PositionalEncoding:
    """The encoding with weights as after some training, float64, so that what starts at 0 counts, too."""

    def build_it():
        made = encoding(name, settings).double()
        with torch.no_grad():
            for weight in made.parameters():
                weight += 0.5 * torch.randn_like(weight)
        return made

    return seeded(build_it, seed).requires_grad_(False)


def places(made: PositionalEncoding, length: int) -> Tensor:
    """Positions of a text of ``length`` tokens, or of a square image of as many."""
    side = math.isqrt(length)
    return torch.arange(length) if made.axes == 1 else grid(side, side)


def heads_of(x: Tensor, settings: dict, seed: int) -> tuple[Tensor, Tensor]:
    """Queries and keys ``[1, H, L, D]`` of token vectors ``[1, L, d_model]``, by random projections."""
    d_model, generator = settings["d_model"], torch.Generator().manual_seed(seed)
    W = torch.randn(2, d_model, d_model, generator=generator, dtype=torch.float64) / d_model**0.5
    q, k = (x @ w for w in W)
    return tuple(y.unflatten(-1, (settings["heads"], -1)).transpose(1, 2) for y in (q, k))


def tokens_of(made: PositionalEncoding, settings: dict, length: int, seed: int, equal: bool) -> Tensor:
    """Random token vectors ``[1, length, width]``; ``equal``: one, repeated."""
    generator = torch.Generator().manual_seed(1000 + seed)
    width = made.token_dim(settings["d_model"])
    x = torch.randn(1, 1 if equal else length, width, generator=generator, dtype=torch.float64)
    return x.expand(1, length, width)


def apart(made: PositionalEncoding, settings: dict, seed: int) -> int:
    """How many of the keys, all made of one token, get different scores from the last query."""
    p = places(made, settings["length"])
    x = tokens_of(made, settings, len(p), seed, equal=True)
    q, k = heads_of(made.embed(x, p), settings, seed)
    seen = scores(q[:, :, -1:], k, made, p[-1:], p)[0, :, 0].T  # [L, H]
    near = torch.cdist(seen, seen, compute_mode="donot_use_mm_for_euclid_dist")
    known = (near <= TOLERANCE * seen.abs().max()).tril(-1).any(1)
    return int((~known).sum())


def step(made: PositionalEncoding, settings: dict) -> int:
    """Half the longest text; in an image half its side, down and to the right."""
    return settings["length"] // 2 if made.axes == 1 else math.isqrt(settings["length"]) // 2


def shift_error(made: PositionalEncoding, settings: dict, seed: int) -> float:
    """The largest change of a weight of a causal attention when all positions move by a step."""
    p = places(made, settings["length"] // 4)
    x = tokens_of(made, settings, len(p), seed, equal=False)

    def weights(p):
        q, k = heads_of(made.embed(x, p), settings, seed)
        return attention(q, k, k, made, p, p, causal=True, backend="eager", return_weights=True)[1]

    error = (weights(p + step(made, settings)) - weights(p)).abs().max().item()
    return error if error > TOLERANCE else 0.0


def offset_error(made: PositionalEncoding, settings: dict, seed: int) -> float:
    """Toeplitz error of the differences of the scores from key to key, tokens being equal; mean of heads."""
    p = places(made, settings["length"] // 4) + step(made, settings)
    x = tokens_of(made, settings, len(p), seed, equal=True)
    s = scores(*heads_of(made.embed(x, p), settings, seed), made, p, p)[0]
    s = (s.diff(dim=-1) / s.abs().max())[:, :-1]
    varies = (s - s.mean((-2, -1), keepdim=True)).abs().amax((-2, -1)) > TOLERANCE
    errors = [toeplitz_error(head) if moves else 0.0 for head, moves in zip(s, varies, strict=True)]
    return round(statistics.fmean(errors), 9)


def cells(settings: dict) -> list[dict]:
    return [{"encoding": name} for name in settings["encodings"]]


@torch.no_grad()
def exact(name: str, settings: dict, seed: int = 0) -> dict:
    """What does not depend on the machine: parameters, apart, shift and, for texts, toeplitz."""
    made = drawn(name, settings, seed)
    found = {
        "parameters": parameters(encoding(name, settings)),
        "apart": apart(made, settings, seed),
        "shift": shift_error(made, settings, seed),
    }
    return found | ({"toeplitz": offset_error(made, settings, seed)} if made.axes == 1 else {})


@torch.no_grad()
def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    name, L = cell["encoding"], settings["length"]
    config = Config(64, settings["d_model"], n_layers=settings["layers"], n_heads=settings["heads"])

    def model(key):
        return seeded(lambda: Transformer(config, encoding(key, settings)), seed).to(device)

    models = {key: model(key) for key in ("none", name)}
    ids = torch.randint(64, (1, L), generator=torch.Generator().manual_seed(seed)).to(device)

    def passing(model):
        p = places(model.encoding, L).to(device)
        return lambda: model(ids, p)

    runs = {key: passing(model) for key, model in models.items()}
    held, made = peak_bytes(runs[name], device), models[name].encoding
    seconds = interleaved(runs, settings["rounds"], device)
    found = {
        "stored": sum(x.nbytes for x in made.state_dict().values()),
        "time": ratio(seconds, name, "none"),
    }
    return exact(name, settings, seed) | found | ({} if held is None else {"held": held})


# ---- the board ----
def board(record: Record, lengths_record: Record, tasks_record: Record) -> dict[str, dict]:
    """For each encoding a row: its ``doors``, ``axes`` and every column of ``MEASURES`` that it has.

    A number that depends on the seed is the mean. ``loss``, ``mean`` and ``tail`` come from the record
    ``lengths``, ``won`` from ``tasks``: encodings that were not trained there have none of these. Both count
    each encoding at its own learning rates; give ``Record.at_one_rate()`` for one rate for all. RoPE with
    scaled angles has rows of its own, with what ``lengths`` measured; in all else it is RoPE.
    """
    wins = [tasks.winners(tasks_record, task) for task in tasks.TASKS]
    rows = {}
    for name in record.settings["encodings"]:
        made = encoding(name, record.settings)
        first = next(run.values for run in record if run.cell["encoding"] == name)
        row = {"doors": made.doors, "axes": made.axes}
        row |= {key: statistics.fmean(record.values(key, encoding=name)) for key in MEASURES if key in first}
        if name in lengths_record.settings["encodings"]:
            row |= _read(lengths_record, name)
        if name in tasks_record.settings["encodings"]:
            row["won"] = sum(name in names for names in wins)
        rows[name] = row
    for name in lengths.rows(lengths_record):
        if " + " in name:
            rows[name] = {key: rows[name.split(" + ")[0]][key] for key in ("doors", "axes")}
            rows[name] |= _read(lengths_record, name)
    return rows


def _read(record: Record, name: str) -> dict[str, float]:
    """What a row of the board takes from ``lengths``; a table that ends at L has no rise."""
    at_L = {"loss": statistics.fmean(x[0] for x in lengths.losses(record, name, "mean"))}
    if len(lengths.losses(record, name, "tail")[0]) == 1:
        return at_L
    return at_L | {what: lengths.rise(record, name, what).mean for what in ("mean", "tail")}


def figure(record: Record):
    """What only this experiment measures: cost on the left, what positions do on the right."""
    names = record.settings["encodings"]
    fig, axes = plots.panels(1, 3, size=(13.5, 0.36 * len(names) + 1.5), sharey=True)
    for ax, key in zip(axes, ("time", "apart", "shift"), strict=True):
        values = {spoken(name): record.values(key, encoding=name) for name in names}
        plots.forest(
            {name: statistics.fmean(x) for name, x in values.items()},
            ax=ax,
            xlabel=MEASURES[key],
            spread={name: (min(x), max(x)) for name, x in values.items()},
            values=".2f" if key != "apart" else ".0f",
        )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence; nothing in it depends on the machine."""
    names = record.settings["encodings"]
    still = [name for name in names if not any(record.values("shift", encoding=name))]
    return (
        f"Three panels of marks on lines for {len(names)} encodings: time beside no position, places told "
        "apart of "
        f"{record.settings['length']}, and shift error, which is 0 for {len(still)} of them."
    )


FEW = 1.05
"""Times as long: up to here it costs a few per cent."""


def cost(record: Record, name: str, than: str = "none") -> Interval:
    """How many times as long a pass takes as one with another encoding."""
    times = record.values("time", encoding=name)
    return interval(
        times
        if than == "none"
        else [a / b for a, b in zip(times, record.values("time", encoding=than), strict=True)]
    )


def findings(record: Record) -> list[Finding]:
    def words(x):
        return f"{x.mean:.2f} ({x.low:.2f} to {x.high:.2f})"

    rotary, alibi, t5, shaw = (cost(record, name) for name in ("rotary", "alibi", "t5", "shaw"))
    beside, length = cost(record, "t5", "sinusoidal"), record.settings["length"]
    here = "time of a pass over that of one without positions"
    added = "one number more is added to every score, which may take more than that of so small a model"
    return [
        Finding(
            "RoPE costs a few per cent of a pass",
            "EleutherAI 2021, blog on rotary embeddings",
            "1 to 3 % more time when fused; about 43 % in a slow version (Press et al. 2022, Table 1: 20.0 "
            "against 28.5 thousand words a second)",
            f"{here}: {words(rotary)}",
            below(rotary, FEW),
            why="the rotation is not fused here, as in the slow version there",
        ),
        Finding(
            "ALiBi costs a few per cent of a pass",
            "",
            "",
            f"{here}: {words(alibi)}",
            below(alibi, FEW),
            why=added,
        ),
        Finding(
            "T5's bias takes more than three times as long as sinusoids",
            "Press et al. 2022, Table 1",
            "training at 3072 tokens: 4.3 against 15.3 thousand words a second",
            f"time of a pass at {length} tokens over that of one with sinusoids: {words(beside)}",
            above(beside, 3),
            why=f"there a step of training at 3072 tokens was timed, here a pass at {length}, which looks up "
            "one number for each offset, not for each pair",
        ),
        Finding(
            "T5's bias costs a few per cent of a pass",
            "",
            "",
            f"{here}: {words(t5)}",
            below(t5, FEW),
            why=added,
        ),
        Finding(
            "Relative vectors in keys and values cost 7 % of speed",
            "Shaw et al. 2018, §3.3",
            "7 % fewer steps a second",
            f"{here}: {words(shaw)}",
            below(shaw, 1.1),
            why="without positions one fused kernel does all, and never holds the weights; the pass with "
            f"vectors forms those of all keys within their reach{_held(record)}",
        ),
    ]


def _held(record: Record) -> str:
    """How much more memory Shaw's pass holds, where that was measured."""
    held = {run.cell["encoding"]: run.values["held"] for run in record if "held" in run.values}
    if not {"shaw", "none"} <= set(held):
        return ""
    return f", and holds {held['shaw'] / held['none']:.1f} times as many bytes"


EXPERIMENT = Experiment(
    "scoreboard",
    "The scoreboard",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words("{model}, with random weights; texts of {length:,} tokens; nothing is trained"),
    presets={
        "live": {
            "d_model": 64,
            "layers": 2,
            "heads": 4,
            "length": 256,
            "rounds": 3,
            "encodings": list(ENCODINGS),
        },
        "full": {
            "d_model": 64,
            "layers": 2,
            "heads": 4,
            "length": 1024,
            "rounds": 25,
            "encodings": list(ENCODINGS),
        },
    },
    seeds={"live": (0, 1), "full": (0, 1, 2, 3, 4)},
)
