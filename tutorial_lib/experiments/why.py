"""Why do nearly all models use RoPE, when biases read longer texts? What five records say, in one picture.

Each panel is one answer that people give, measured: quality at the trained length, what a scaling and a
short tuning do beyond it, whether the gap closes with size, whether a flat loss means that what is far is
used, and what a position costs at run time. The numbers with their intervals stand in ``docs/results.md``.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import torch

from .. import plots
from . import cost, lengths, scale
from .record import Record

RECORDS = ("lengths", "scale", "far", "cost")
"""The experiments whose records are shown, as far as they are given."""

AT_L = ("table", "clipped", "t5", "kerple", "rotary", "alibi", "sinusoidal", "learned", "none")
BEYOND = ("rotary", "alibi", "t5", "sinusoidal", "rotary + YaRN")
"""In this order everywhere: so an encoding has one colour in all panels."""


def figure(records: Mapping[str, Record]):
    """One panel for each answer that the records hold; two in a row."""
    draw = [panel for name in RECORDS if name in records for panel in PANELS[name]]
    rows = -(-len(draw) // 2)
    fig, axes = plots.panels(rows, 2, size=(13, 5 * rows), squeeze=False)
    for ax, panel in zip(axes.flat, draw, strict=False):
        panel(records, ax)
    for ax in axes.flat[len(draw):]:
        ax.set_axis_off()
    return fig


def alt(records: Mapping[str, Record]) -> str:
    """What the figure shows, in a sentence; only panels that are there."""
    said = ["dots for the loss at the trained length", "lines of the loss of longer texts"]
    said += ["lines of the distance from RoPE's loss as model and training grow"] * ("scale" in records)
    said += ["lines of the use that is made of a far passage"] * ("far" in records)
    said += ["time of a decoding step and memory of a forward pass against the length"] * ("cost" in records)
    read = records["lengths"]
    order = sorted((name for name in AT_L if name in read.settings["encodings"]),
                   key=lambda name: at_length(read, name))
    return (f"Panels: {'; '.join(said)}. At the trained length the loss is lowest for {order[0]} and highest "
            f"for {order[-1]}.")


def at_length(record: Record, name: str) -> float:
    """Mean loss at L over the seeds."""
    return statistics.fmean(x[0] for x in lengths.losses(record, name, "mean"))


@plots.styled
def _at_L(records, ax):
    """Dots, not bars: what matters is a fifth of a nat, far from 0."""
    record = records["lengths"]
    names = sorted((name for name in AT_L if name in record.settings["encodings"]),
                   key=lambda name: at_length(record, name))
    own, of_all = ([[x[0] for x in lengths.losses(one, name, "mean")] for name in names]
                   for one in (record, record.at_one_rate()))
    rows = range(len(names))
    ax.hlines(rows, [min(x) for x in own], [max(x) for x in own], color="#0072B2", linewidth=4)
    ax.plot([statistics.fmean(x) for x in of_all], rows, "o", color="black", markerfacecolor="white",
            markersize=8, label="one rate for all")
    ax.plot([statistics.fmean(x) for x in own], rows, "D", color="#0072B2", markersize=8,
            label="its own rates")
    ax.set_yticks(rows, [f"{name}  {statistics.fmean(x):.2f}" for name, x in zip(names, own, strict=True)])
    ax.yaxis.set_inverted(True)
    ax.set_title("Trained and read at L")
    ax.set_xlabel("loss in nats")
    ax.legend(loc="lower left", fontsize=12)


def _beyond(records, ax):
    record = records["lengths"]
    names = [name for name in BEYOND if name in lengths.rows(record)]
    _lines(ax, record.settings["multiples"],
           {name: torch.tensor(lengths.losses(record, name, "tail")) for name in names},
           title="Read beyond L, the same characters", xlabel="length / L", ylabel="loss in nats", logx=2)


def _with_size(records, ax):
    record = records["scale"]
    sizes = range(len(record.settings["sizes"]))
    losses = {name: torch.tensor([scale.at_length(record, n, name) for n in sizes]).T
              for name in BEYOND if name in record.settings["encodings"]}
    _lines(ax, [10**x for x in scale.decades(record)],
           {name: x - losses["rotary"] for name, x in losses.items()}, logx=True,
           title="Loss at L minus that of RoPE", xlabel="parameters × characters of training", ylabel="nats")


def _far(records, ax):
    record = records["far"]
    used = {name: torch.tensor(record.values("new", encoding=name))
            - torch.tensor(record.values("again", encoding=name))
            for name in BEYOND if name in record.settings["encodings"]}
    _lines(ax, record.settings["multiples"], used, logx=2, title="Use made of a passage that far back",
           xlabel="length / L", ylabel="nats; a window of L has 0")


def _decoding(records, ax):
    _of_cost(records["cost"], ax, "decode", "time", "A decoding step", "times as long as no position")


def _memory(records, ax):
    _of_cost(records["cost"], ax, "forward", "held", "Memory of a forward pass", "MiB", logy=True)


def _of_cost(record, ax, doing, what, title, ylabel, **options):
    at = sorted(record.settings["lengths"][doing])
    ways = [way for way in cost.DRAWN if cost.lengths(record, doing, way)]
    curves = {way: [cost.mean(record, what, doing, way, n) for n in at] for way in ways}
    plots.lines(at, curves, ax=ax, title=title, xlabel="length in tokens", ylabel=ylabel, logx=2,
                markers=True, **options)


def _lines(ax, x, values, **options):
    """Means of ``[seeds, points]``, with the range of the seeds."""
    plots.lines(x, {name: y.mean(0) for name, y in values.items()}, ax=ax, markers=True,
                spread={name: (y.amin(0), y.amax(0)) for name, y in values.items()}, **options)


PANELS = {"lengths": (_at_L, _beyond), "scale": (_with_size,), "far": (_far,), "cost": (_decoding, _memory)}
