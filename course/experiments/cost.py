"""What a position costs at run time: a rotation and a bias, beside attention without positions.

Nothing is trained here. Queries, keys and values are drawn at random, and go through one layer of attention:

- ``forward``: all queries of a text at once, causal, as when a prompt is read;
- ``decode``: one query against all keys of a cache, as when a token is written.

A *rotation* touches each query and each key once, so its share falls as the text grows. A *bias* adds a
number to every score. Handed to a kernel as a matrix (``dense``), it has L² numbers for each head. Our own
path reads windows of one line of 2L − 1 numbers instead, and FlexAttention (``flex``) computes each number
inside the kernel. In decoding, the row of the one query is all that a bias needs. A cache may hold its keys
turned, so that only the newest is turned in each step, or as they came, as :class:`tutorial_lib.model.Cache`
does: then all are turned again.

All ways take turns in one run. Times leave out what the layers of a model share, such as angles and
masks. Memory includes it: ``held`` is the most that one pass holds, with its tables and its mask.

:data:`KERNELS` lists what released kernels take, with the source for each.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.attention import attention
from tutorial_lib.encodings import ALiBi, PositionalEncoding, RelativeBias, Rotary, T5Bias
from tutorial_lib.encodings.fast_rotation import fast_pays
from tutorial_lib.encodings.positions import Positions
from tutorial_lib.encodings.rotary import Turn
from tutorial_lib.training import seeded

from ..timing import interleaved, peak_bytes, ratio
from ..verdicts import Outcome, above, all_of, below, unmeasured
from .record import Record
from .statistics import Interval, interval
from .sweep import Experiment, Finding, in_words

KERNELS: list[dict[str, str]] = tomllib.loads(
    (Path(__file__).parent / "kernels.toml").read_text(encoding="utf-8")
)["kernel"]
"""Released kernels: ``name``, what they do with a ``rotation`` and a ``bias``, ``source`` and ``version``."""

MEASURES = {"time": "times as long as no position", "held": "MiB held"}


@dataclass(frozen=True)
class Case:
    """One way through attention, and the ``ready`` tensors that are made beforehand and kept."""

    run: Callable[[], Tensor]
    ready: tuple[Tensor, ...] = ()
    first: Callable | None = None  # as in the first layer, which makes what all layers share


def shared(run: Callable, *where: Positions) -> Case:
    """``run(*where)``, as in a later layer of a model."""
    return Case(
        functools.partial(run, *(p.shared() for p in where)), first=lambda: run(*(p.shared() for p in where))
    )


def built(settings: dict, device: torch.device) -> tuple[Rotary, dict[str, RelativeBias]]:
    """The rotation, and the biases by their names."""
    heads = settings["heads"]
    return Rotary(settings["head_dim"]), {"alibi": ALiBi(heads), "t5": T5Bias(heads).to(device)}


def scale_of(encoding: PositionalEncoding, q: Tensor) -> float:
    return q.shape[-1] ** -0.5 if encoding.scale is None else encoding.scale


def matrix(encoding: RelativeBias, p: Positions, dtype: torch.dtype) -> Tensor:
    """The bias of all pairs ``[1, H, L, L]`` with −inf for the future, as kernels with a mask take it."""
    n = len(p)
    line: Any = encoding.bias_by_offset(p, p)
    line = line.to(dtype)  # offsets 1 − L … L − 1
    line = line.masked_fill(torch.arange(2 * n - 1, device=line.device) >= n, -math.inf)
    return line.unfold(-1, n, 1).flip(-2)[None]


def forward(settings: dict, q: Tensor, k: Tensor, v: Tensor) -> dict[str, Case]:
    """Every way for ``q``, ``k`` and ``v`` ``[B, H, L, D]``."""
    p = Positions(q.shape[-2], device=q.device)
    rotary, biases = built(settings, q.device)

    def through(encoding, backend="sdpa"):
        return shared(lambda p: attention(q, k, v, encoding, p, p, causal=True, backend=backend), p)

    def masked(encoding):
        mask = matrix(encoding, p, q.dtype)
        return Case(
            functools.partial(F.scaled_dot_product_attention, q, k, v, mask, scale=scale_of(encoding, q)),
            (mask,),
        )

    cases = {"none": through(None), "rotary": through(rotary)}
    cases |= {name: through(bias) for name, bias in biases.items()}
    if len(p) <= settings["dense_up_to"]:
        cases |= {f"{name}, dense": masked(bias) for name, bias in biases.items()}
    return cases | _flex(settings, through, biases)


def decode(settings: dict, q: Tensor, k: Tensor, v: Tensor) -> dict[str, Case]:
    """Every way for one query ``q`` ``[B, H, 1, D]`` and a cache ``k``, ``v`` ``[B, H, L, D]``.

    The kernel is called directly, because the checks of our own functions would show in so short a step.
    Only ``rotary, all keys`` and ``flex`` go through them.
    """
    n = k.shape[-2]
    p, here = Positions(n, device=k.device), Positions(1, offset=n - 1, device=k.device)
    rotary, biases = built(settings, q.device)
    kernel = F.scaled_dot_product_attention
    angles, turned = rotary.frequencies.cos_sin(here.tensor), rotary.rotate(q, k, here, p)[1]
    turn = Turn(*angles, rotary.layout, fast_pays(q))

    def step():  # the newest key is turned on its way into the cache
        turn(k[:, :, -1:])
        return kernel(turn(q), turned, v)

    def with_row(bias):
        row = bias.bias(here, p)[None].to(q.dtype)
        return Case(functools.partial(kernel, q, k, v, row, scale=scale_of(bias, q)), (row,))

    def through(encoding, backend="sdpa"):
        return shared(lambda here, p: attention(q, k, v, encoding, here, p, backend=backend), here, p)

    cases = {
        "none": Case(functools.partial(kernel, q, k, v)),
        "rotary": Case(step, angles),
        "rotary, all keys": through(rotary),
    }
    return cases | {name: with_row(bias) for name, bias in biases.items()} | _flex(settings, through, biases)


def _flex(settings, through, biases):
    if not settings["flex"]:
        return {}
    named = {"none": None} | biases
    return {f"{name}, flex": through(encoding, "flex") for name, encoding in named.items()}


def ways(settings: dict, cell: dict, seed: int, device: torch.device) -> dict[str, Case]:
    """All cases of a cell, with the queries, keys and values of a seed."""
    heads, length = settings["heads"], cell["length"]
    generator = torch.Generator().manual_seed(seed)

    def drawn(n):
        x = torch.randn(settings["batch"], heads, n, settings["head_dim"], generator=generator)
        return x.to(device, getattr(torch, settings["dtype"]))

    q, k, v = drawn(1 if cell["doing"] == "decode" else length), drawn(length), drawn(length)
    build = {"forward": forward, "decode": decode}[cell["doing"]]
    return seeded(lambda: build(settings, q, k, v), seed)


def cells(settings: dict) -> list[dict]:
    return [
        {"doing": doing, "length": length}
        for doing, lengths in settings["lengths"].items()
        for length in lengths
    ]


@torch.no_grad()
def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    torch.compiler.reset()  # a kernel for this length alone, as in a run in which it never changes
    cases = ways(settings, cell, seed, device)
    found = {}
    for name, case in cases.items():
        peak = peak_bytes(case.first or case.run, device)  # with the tables, made anew in each call
        if peak is not None:
            found[f"held {name}"] = peak + sum(x.nbytes for x in case.ready)
    runs = {name: case.run for name, case in cases.items()}
    # as in all layers but the first: what they share is there
    seconds = interleaved(runs, settings["rounds"][cell["doing"]], device)
    return found | {f"time {name}": ratio(seconds, name, "none") for name in cases}


# ---- what a record says ----
def lengths(record: Record, doing: str, way: str) -> list[int]:
    """The lengths at which a way was measured, shortest first."""
    return sorted(
        {run.cell["length"] for run in record if run.cell["doing"] == doing and f"time {way}" in run.values}
    )


def cost(record: Record, doing: str, way: str, length: int | None = None, than: str = "none") -> Interval:
    """How many times as long one way takes as another, at one length: by default the longest."""
    length = length or lengths(record, doing, way)[-1]
    a, b = (record.values(f"time {name}", doing=doing, length=length) for name in (way, than))
    return interval([x / y for x, y in zip(a, b, strict=True)])


def growth(record: Record, way: str) -> Interval | None:
    """The power of the length with which a forward's memory grows, from the shortest to the longest; None if
    not measured."""
    first, *_, last = lengths(record, "forward", way)
    if not any(f"held {way}" in run.values for run in record):
        return None
    a, b = (record.values(f"held {way}", doing="forward", length=n) for n in (first, last))
    return interval([math.log(y / x) / math.log(last / first) for x, y in zip(a, b, strict=True)])


NAMES = {"none": "no position", "rotary": "RoPE", "alibi": "ALiBi", "t5": "T5's bias"}
HOW = {
    "": "{}",
    "dense": "{} as a matrix",
    "flex": "{} in FlexAttention",
    "all keys": "{}, all keys turned again",
}


def words(way: str) -> str:
    """What readers call it.

    >>> words("rotary"), words("alibi, dense")
    ('RoPE', 'ALiBi as a matrix')
    """
    name, _comma, how = way.partition(", ")
    return HOW[how].format(NAMES[name])


DRAWN = ("none", "rotary", "rotary, all keys", "alibi", "t5", "alibi, dense", "alibi, flex")
"""What the figure shows: with T5's bias, ``dense`` and ``flex`` do what they do with ALiBi's."""


def figure(record: Record):
    """Time of a forward and of a step of decoding; memory of a forward on the right."""
    fig, axes = plots.panels(1, 3, size=(13.8, 4.6))
    measured = {*_names(record, "forward"), *_names(record, "decode")}
    names = [name for name in DRAWN if name in measured]
    plans = (
        ("forward", "time", "a forward"),
        ("decode", "time", "a step of decoding"),
        ("forward", "held", "memory of a forward"),
    )
    for ax, (doing, what, title) in zip(axes, plans, strict=True):
        x = sorted(record.settings["lengths"][doing])
        curves = {words(name): [mean(record, what, doing, name, n) for n in x] for name in names}
        plots.lines(
            x,
            curves,
            ax=ax,
            title=title,
            xlabel="length in tokens",
            ylabel=MEASURES[what],
            logx=2,
            logy=what == "held",
            markers=True,
            legend="beside" if ax is axes[2] else False,
        )
    return fig


def _names(record, doing):
    """The ways of a forward or a step, in order."""
    found = [
        key.removeprefix("time ")
        for run in record
        if run.cell["doing"] == doing
        for key in run.values
        if key.startswith("time ")
    ]
    return list(dict.fromkeys(found))


def mean(record, what, doing, name, length):
    """The mean over the seeds, in the unit of ``MEASURES``; NaN where it was not measured."""
    key = f"{what} {name}"
    found = [
        run.values[key]
        for run in record
        if run.cell == {"doing": doing, "length": length} and key in run.values
    ]
    unit = 2**20 if what == "held" else 1
    return sum(found) / len(found) / unit if found else math.nan


def alt(record: Record) -> str:
    """What the figure shows, in a sentence; nothing in it depends on the machine."""
    first, *_, last = sorted(record.settings["lengths"]["forward"])
    return (
        f"Three panels of lines over the length of the text, {first:,} to {last:,} tokens for a forward: "
        "time of each way beside no position in a forward and in a step of decoding, and memory held in "
        "a forward, on logarithmic axes."
    )


def table(record: Record) -> str:
    """Times relative to no position, and the MiB that a forward holds, as Markdown."""
    parts = []
    for doing, what in (("forward", "time"), ("forward", "held"), ("decode", "time")):
        x = sorted(record.settings["lengths"][doing])
        rows = [[f"{doing}: {MEASURES[what]}", *(f"L = {n:,}" for n in x)], ["---", *("---:" for _ in x)]]
        for name in _names(record, doing):
            means = [mean(record, what, doing, name, n) for n in x]
            rows.append([words(name), *("–" if math.isnan(m) else f"{m:,.2f}" for m in means)])
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n")
    return "\n".join(parts)


def kernels() -> str:
    """:data:`KERNELS` as a table in Markdown."""
    rows = [["kernel", "a rotation", "a bias", "seen in"], ["---"] * 4]
    rows += [
        [
            *(kernel[what] for what in ("name", "rotation", "bias")),
            f"[{kernel['version']}]({kernel['source']})",
        ]
        for kernel in KERNELS
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


FEW = 1.05
"""Times as long: up to here it costs a few per cent."""


def findings(record: Record) -> list[Finding]:
    first, *_, last = lengths(record, "forward", "rotary")
    end, wide = lengths(record, "decode", "rotary")[-1], lengths(record, "forward", "alibi, dense")[-1]
    rotary, before = cost(record, "forward", "rotary"), cost(record, "forward", "rotary", first)
    shrinks = interval([b - a for a, b in zip(before.values, rotary.values, strict=True)])
    dense = {name: cost(record, "forward", f"{name}, dense", wide, "rotary") for name in ("alibi", "t5")}
    own = {name: cost(record, "forward", name) for name in ("alibi", "t5")}
    step, again = cost(record, "decode", "rotary"), cost(record, "decode", "rotary, all keys")
    rows = {name: cost(record, "decode", name) for name in ("alibi", "t5")}
    return [
        Finding(
            "On a long text, RoPE costs a few per cent of attention",
            "EleutherAI 2021, blog on rotary embeddings",
            "1 to 3 % more time for a model, when fused",
            f"time of a forward pass at {last:,} tokens over that without positions: {_interval(rotary)}",
            below(rotary, FEW),
            why="the rotation is a pass of its own over queries and keys here",
        ),
        Finding(
            "RoPE's share falls as the text grows",
            "",
            "",
            f"time over that without positions, at {last:,} tokens minus at {first:,}: {shrinks}",
            below(shrinks, 0),
            why="at these lengths it is too small a share for its fall to be seen",
        ),
        Finding(
            "A bias handed over as a matrix takes at least 10 % longer than a rotation",
            "",
            "",
            f"time of a forward pass at {wide:,} tokens over that of RoPE: {_both(dense)}",
            all_of(*(above(x, 1.1) for x in dense.values())),
            why="reading one number for each score takes little beside the scores themselves on this device",
        ),
        _memory(
            record,
            "The memory of a bias as a matrix grows with the square of the length",
            ("alibi, dense", "t5, dense"),
            lambda x: above(x, 1.8),
            "at these lengths the matrix is not yet most of what is held",
        ),
        _memory(
            record,
            "Without the matrix, the memory of a bias grows in step with the length, as with a rotation",
            ("rotary", "alibi", "t5"),
            lambda x: below(x, 1.2),
            "this device's path holds a term for more pairs than one line has",
        ),
        Finding(
            "Without the matrix, a bias costs a few per cent of a forward, too",
            "",
            "",
            f"time of a forward pass at {last:,} tokens over that without positions: {_both(own)}",
            all_of(*(below(x, FEW) for x in own.values())),
            why="even then one number is added to every score, by a kernel that reads a mask",
        ),
        Finding(
            "In decoding, RoPE costs a few per cent where the cache holds keys that are turned already",
            "",
            "",
            f"time of a step with {end:,} keys over that without positions: {_interval(step)}",
            below(step, FEW),
            why="two short calls for the rotation take a share of so short a step",
        ),
        Finding(
            "Turning all cached keys again in each step makes it take at least half as long again",
            "",
            "",
            f"time of a step with {end:,} keys over that without positions: {_interval(again)}",
            above(again, 1.5),
            why="attention itself takes longer than turning the keys on this device",
        ),
        Finding(
            "In decoding, a bias costs a few per cent",
            "",
            "",
            f"time of a step with {end:,} keys over that without positions: {_both(rows)}",
            all_of(*(below(x, FEW) for x in rows.values())),
            why="the kernel takes another path as soon as it gets a mask",
        ),
        _flex_finding(record),
    ]


def _interval(x: Interval) -> str:
    return f"{x.mean:.2f} ({x.low:.2f} to {x.high:.2f})"


def _both(found: dict[str, Interval]) -> str:
    return ", ".join(f"{words(name)} {_interval(x)}" for name, x in found.items())


def _memory(
    record, claim: str, names: tuple[str, ...], asked: Callable[[Interval], Outcome], why: str
) -> Finding:
    found = {name: x for name in names if (x := growth(record, name)) is not None}
    if not found:
        return Finding(
            claim,
            "",
            "",
            "not measured",
            unmeasured("a device that tells what is held"),
            open_why="this device does not tell what is held",
        )
    return Finding(
        claim,
        "",
        "",
        f"power of the length by which it grows: {_both(found)}",
        all_of(*map(asked, found.values())),
        why=why,
    )


def _flex_finding(record) -> Finding:
    claim = "Inside FlexAttention's kernel, a bias takes at most 10 % longer than none"
    source = "He et al. 2024, PyTorch blog on FlexAttention"
    theirs = "no extra memory, and a speed near that of kernels written by hand"
    if not lengths(record, "forward", "alibi, flex"):
        return Finding(
            claim,
            source,
            theirs,
            "not measured",
            unmeasured("FlexAttention on a GPU"),
            open_why="on a CPU our FlexAttention is not compiled, so its time would say nothing",
        )
    found = {name: cost(record, "forward", f"{name}, flex", than="none, flex") for name in ("alibi", "t5")}
    return Finding(
        claim,
        source,
        theirs,
        f"time of a forward pass over that of FlexAttention alone: {_both(found)}",
        all_of(*(below(x, 1.1) for x in found.values())),
        why="looking up a number for each score takes its time inside the kernel, too",
    )


EXPERIMENT = Experiment(
    "cost",
    "What a position costs at run time",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    table=table,
    over="draws of queries, keys and values",
    setup=in_words(
        "One layer of attention, {heads} heads of {head_dim} channels, {dtype}; nothing is trained"
    ),
    presets={
        "live": {
            "batch": 1,
            "heads": 4,
            "head_dim": 64,
            "dtype": "float32",
            "flex": False,
            "dense_up_to": 1024,
            "lengths": {"forward": [256, 512, 1024], "decode": [1024, 4096]},
            "rounds": {"forward": 5, "decode": 20},
        },
        "full": {
            "batch": 1,
            "heads": 4,
            "head_dim": 64,
            "dtype": "float32",
            "flex": False,
            "dense_up_to": 8192,
            "lengths": {"forward": [1024, 2048, 4096, 8192], "decode": [1024, 4096, 16384, 65536]},
            "rounds": {"forward": 4, "decode": 30},
        },
        "gpu": {
            "batch": 1,
            "heads": 16,
            "head_dim": 128,
            "dtype": "bfloat16",
            "flex": True,
            "dense_up_to": 16384,
            "lengths": {"forward": [1024, 4096, 16384, 65536], "decode": [1024, 4096, 16384, 65536]},
            "rounds": {"forward": 10, "decode": 50},
        },
    },
    seeds={"live": (0, 1, 2), "full": (0, 1, 2), "gpu": (0, 1, 2)},
)
