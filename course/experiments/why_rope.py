"""Why do nearly all models use RoPE, when biases read longer texts? What five records say, in one picture.

Each panel is one answer that people give, measured: quality at the trained length, what a scaling and a
short tuning do beyond it, whether the gap closes with size, whether a flat loss means that what is far is
used, and what a position costs at run time. The numbers with their intervals stand in ``docs/results.md``.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import torch

from tutorial_lib import plots
from tutorial_lib.language import _, joined

from . import cost, lengths, scale
from .record import Record
from .sweep import spoken

RECORDS = ("lengths", "scale", "long_range", "cost")
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
    for ax in axes.flat[len(draw) :]:
        ax.set_axis_off()
    return fig


def alt(records: Mapping[str, Record]) -> str:
    """What each panel shows, with its numbers; a sentence for each record that is there."""
    return joined(words(records[name]) for name, words in SAID.items() if name in records)


def at_length(record: Record, name: str) -> float:
    """Mean loss at L over the seeds."""
    return statistics.fmean(x[0] for x in lengths.losses(record, name, "mean"))


@plots.styled
def _at_L(records, ax):
    """Dots, not bars: what matters is a fifth of a nat, far from 0."""
    record = records["lengths"]
    names = sorted(
        (name for name in AT_L if name in record.settings["encodings"]),
        key=lambda name: at_length(record, name),
    )
    own, of_all = (
        [[x[0] for x in lengths.losses(one, name, "mean")] for name in names]
        for one in (record, record.at_one_rate())
    )
    rows = range(len(names))
    ax.hlines(rows, [min(x) for x in own], [max(x) for x in own], color="#0072B2", linewidth=4)
    ax.plot(
        [statistics.fmean(x) for x in of_all],
        rows,
        "o",
        color="black",
        markerfacecolor="white",
        markersize=8,
        label=_("one rate for all"),
    )
    ax.plot(
        [statistics.fmean(x) for x in own], rows, "D", color="#0072B2", markersize=8, label=_("its own rates")
    )
    ax.set_yticks(
        rows, [f"{_(spoken(name))}  {statistics.fmean(x):.2f}" for name, x in zip(names, own, strict=True)]
    )
    ax.yaxis.set_inverted(True)
    ax.set_title(_("Trained and read at L"))
    ax.set_xlabel(_("loss in nats"))
    ax.legend(loc="upper right", fontsize=12)


def _beyond(records, ax):
    record = records["lengths"]
    names = [name for name in BEYOND if name in lengths.rows(record)]
    _lines(
        ax,
        record.settings["multiples"],
        {name: torch.tensor(lengths.losses(record, name, "tail")) for name in names},
        title=_("Read beyond L, the same characters"),
        xlabel=_("length / L"),
        ylabel=_("loss in nats"),
        logx=2,
    )


def _gaps(record):
    """The loss at L minus that of RoPE, ``[seeds, sizes]``."""
    sizes = range(len(record.settings["sizes"]))
    losses = {
        name: torch.tensor([scale.at_length(record, n, name) for n in sizes]).T
        for name in BEYOND
        if name in record.settings["encodings"]
    }
    return {name: x - losses["rotary"] for name, x in losses.items()}


def _with_size(records, ax):
    record = records["scale"]
    _lines(
        ax,
        [10**x for x in scale.decades(record)],
        _gaps(record),
        logx=True,
        title=_("Loss at L minus that of RoPE"),
        xlabel=_("parameters × characters of training"),
        ylabel=_("nats"),
    )


def _used(record):
    """By how much a passage that is read again is cheaper than a new one, ``[seeds, lengths]``."""
    return {
        name: torch.tensor(record.values("new", encoding=name))
        - torch.tensor(record.values("again", encoding=name))
        for name in BEYOND
        if name in record.settings["encodings"]
    }


def _far(records, ax):
    record = records["long_range"]
    _lines(
        ax,
        record.settings["multiples"],
        _used(record),
        logx=2,
        xlabel=_("length / L"),
        title=_("Use made of a passage that far back"),
        ylabel=_("nats; a window of L has 0"),
    )


def _decoding(records, ax):
    _of_cost(records["cost"], ax, "decode", "time", _("A decoding step"), _("times as long as no position"))


def _memory(records, ax):
    _of_cost(records["cost"], ax, "forward", "held", _("Memory of a forward pass"), "MiB", logy=True)


def _of_cost(record, ax, doing, what, title, ylabel, **options):
    at = sorted(record.settings["lengths"][doing])
    ways = sorted(
        (way for way in cost.DRAWN if cost.lengths(record, doing, way)),
        key=lambda way: BEYOND.index(way) if way in BEYOND else len(BEYOND),
    )
    curves = {spoken(way): [cost.mean(record, what, doing, way, n) for n in at] for way in ways}
    plots.lines(
        at,
        curves,
        ax=ax,
        title=title,
        xlabel=_("length in tokens"),
        ylabel=ylabel,
        logx=2,
        markers=True,
        **options,
    )


def _lines(ax, x, values, **options):
    """Means of ``[seeds, points]``, with the range of the seeds."""
    plots.lines(
        x,
        {spoken(name): y.mean(0) for name, y in values.items()},
        ax=ax,
        markers=True,
        spread={spoken(name): (y.amin(0), y.amax(0)) for name, y in values.items()},
        **options,
    )


def _said_lengths(record):
    own, of_all = (
        {name: at_length(one, name) for name in AT_L if name in one.settings["encodings"]}
        for one in (record, record.at_one_rate())
    )
    order = sorted(own, key=own.__getitem__)
    moved = max(order, key=lambda name: of_all[name] - own[name])
    tails = _means(
        {name: lengths.losses(record, name, "tail") for name in BEYOND if name in lengths.rows(record)}
    )
    first, last = order[0], order[-1]
    return _(
        "Two dots for each encoding, the loss at the trained length. Full dots, at its own rates: lowest for "
        "{first}, {lowest}, highest for {last}, {highest}. Hollow dots, at one rate for all: {moved} moves "
        "most, to {there}. Beside them lines of the loss on longer texts, from L to {n} L: {each}."
    ).format(
        first=_(spoken(first)),
        lowest=f"{own[first]:.2f}",
        last=_(spoken(last)),
        highest=f"{own[last]:.2f}",
        moved=_(spoken(moved)),
        there=f"{of_all[moved]:.2f}",
        n=record.settings["multiples"][-1],
        each=_ends(tails),
    )


def _said_scale(record):
    others = {name: gap for name, gap in _means(_gaps(record)).items() if name != "rotary"}
    return _("Lines of the loss at L minus that of RoPE as model and training grow: {each}.").format(
        each=_ends(others, "+.2f")
    )


def _said_far(record):
    return _("Lines of the use that is made of a passage 1 to {n} L back, in nats: {each}.").format(
        n=record.settings["multiples"][-1], each=_ends(_means(_used(record)))
    )


def _said_cost(record):
    at = sorted(record.settings["lengths"]["decode"])
    ways = [way for way in cost.DRAWN if cost.lengths(record, "decode", way)]
    times = {
        spoken(way): [cost.mean(record, "time", "decode", way, n) for n in (at[0], at[-1])] for way in ways
    }
    return _(
        "Lines of the time of a decoding step with {few} to {many} keys, beside no position: {each}; "
        "and of the memory of a forward pass."
    ).format(few=f"{at[0]:,}", many=f"{at[-1]:,}", each=_ends(times))


def _means(values):
    return {name: torch.as_tensor(x).mean(0).tolist() for name, x in values.items()}


def _ends(lines, form=".2f"):
    """The first and the last number of each line."""
    return _(", ").join(
        _("{name} from {first} to {last}").format(
            name=_(spoken(name)), first=format(line[0], form), last=format(line[-1], form)
        )
        for name, line in lines.items()
    )


SAID = {"lengths": _said_lengths, "scale": _said_scale, "long_range": _said_far, "cost": _said_cost}
PANELS = {
    "lengths": (_at_L, _beyond),
    "scale": (_with_size,),
    "long_range": (_far,),
    "cost": (_decoding, _memory),
}
