"""The ending of exercise 02: a number that is told by eight clocks, and read from them again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from matplotlib.patches import Circle
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.language import _, joined

from .smollm2 import gently
from .souvenir import keep

FACES = "🕛🕐🕑🕒🕓🕔🕕🕖🕗🕘🕙🕚"
WIDTH, BASE, NUMBERS = 16, 10_000.0, 10_000
HAND = "#0072B2"


def _hours(rows: Tensor) -> Tensor:
    """The full hour that is nearest to each hand, ``[…, 8]``; a hand's tip is at (sine, cosine)."""
    pairs = rows.detach().double().unflatten(-1, (-1, 2))
    return torch.atan2(pairs[..., 0], pairs[..., 1]).mul(6 / torch.pi).round().long() % 12


@gently
@plots.styled
def clocks(number: float, steps: float, sinusoid_table: Callable, shift_matrix: Callable) -> None:
    """Draw the row of ``number`` as eight clocks (light), and the row that the matrix makes of it (full).

    The line has the full hands, each at the nearest full hour.
    """
    before = torch.as_tensor(sinusoid_table(torch.tensor([number]), WIDTH, BASE))[0]
    after = torch.as_tensor(shift_matrix(steps, WIDTH, BASE)) @ before
    fig, axes = plots.panels(1, WIDTH // 2, size=(13, 2.3))
    for t, ax in enumerate(axes):
        ax.add_patch(Circle((0, 0), 1, fill=False, edgecolor="0.35", linewidth=1.5))
        for hour in torch.arange(12).mul(torch.pi / 6):
            ax.plot(
                *(torch.tensor([0.9, 1]) * x for x in (hour.sin(), hour.cos())),
                color="0.35",
                linewidth=1,
                linestyle="-",
            )
        for row, alpha in ((before, 0.35), (after, 1)):
            sine, cosine = row[2 * t : 2 * t + 2].tolist()
            ax.plot([0, sine], [0, cosine], color=HAND, alpha=alpha, linewidth=4, linestyle="-")
        wave = 2 * torch.pi * BASE ** (2 * t / WIDTH)
        ax.set(title=f"{round(wave)}", aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
        ax.set_axis_off()
    fig.suptitle(
        _("steps of one round; light: {number}, full: {steps:g} more").format(number=number, steps=steps)
    )
    line = "".join(FACES[hour] for hour in _hours(after))
    what = _("Eight dials with a light and a full hand, drawn as lines; the first turns fastest.")
    keep(fig, joined([what, _("The full hands: {line}.").format(line=line)]), line)


@gently
def read_clocks(line: str, sinusoid_table: Callable) -> None:
    """Print the numbers below 10,000 whose row shows these eight clocks."""
    faces = [FACES.index(each) for each in line if each in FACES]
    if len(faces) != WIDTH // 2:
        print(_("A line has {n} clocks; this one has {given}.").format(n=WIDTH // 2, given=len(faces)))
        return
    rows = torch.as_tensor(sinusoid_table(torch.arange(NUMBERS), WIDTH, BASE))
    found = (_hours(rows) == torch.tensor(faces)).all(-1).nonzero().flatten().tolist()
    print(", ".join(map(str, found)) or _("No number below {n} has these clocks.").format(n=f"{NUMBERS:,}"))
