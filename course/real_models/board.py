"""The ending of exercise 10: a small model whose layers have the clocks that its designer gave them."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.encodings import Compose, PositionalEncoding, RelativeBias, Rotary
from tutorial_lib.language import _, joined

from ..progress import record as enter
from .smollm2 import Given, gently
from .souvenir import keep

USES = ("5 back", "induction")
STEPS = 180
"""Of the learner's design: enough for its place on the board, and less to wait for than the 300 on record."""


class _Window(RelativeBias):
    """Keys farther back than the window are hidden."""

    def __init__(self, size: int):
        super().__init__()
        self.n_heads, self.size = 1, size

    def of(self, r):
        return torch.where(r > -self.size, 0.0, -torch.inf)[None]


def clocks(dials: Tensor, head_dim: int) -> list[PositionalEncoding]:
    """Of each layer: its window, how many pairs turn (the fastest by a radian), the slowest one's wave."""
    layers: list[PositionalEncoding] = []
    for window, pairs, wave in dials.tolist():
        speed = 2 * torch.pi / wave if pairs else 0.0
        theta = torch.zeros(head_dim // 2)
        theta[: int(pairs)] = torch.logspace(0, 1, int(pairs), base=speed) if pairs > 1 else speed
        turn = Rotary(head_dim, frequencies=Given(theta))
        layers.append(Compose(turn, _Window(int(window))) if window else turn)
    return layers


@gently
def two_clocks(design: dict, layer_dials: Callable) -> None:
    """Train the design for two uses of exercise 09, and put it on the board among what was recorded there."""
    from ..experiments import load, tasks  # only who trains needs these

    record, seed = load("tasks", "exercise"), 100
    settings = tasks.SIZES | record.settings
    heads, dials = settings["d_model"] // design["head_dim"], torch.as_tensor(layer_dials(design))
    settings |= {"layers": len(dials), "heads": heads, "steps": STEPS}
    fig, axes = plots.panels(1, 2, size=(11, 4.2))
    came_out = {}
    for ax, use in zip(axes, USES, strict=True):
        model = tasks.trained(
            settings, {"task": use}, seed, torch.device("cpu"), clocks(dials, design["head_dim"])
        )
        draw = torch.Generator().manual_seed(1000 + seed)
        came_out[use] = tasks.last_accuracy(model, *tasks.draw(use, settings["test"], draw, length=64))
        board = {
            _(each): statistics.fmean(
                long for _short, long in record.values("accuracy", task=use, encoding=each)
            )
            for each in record.settings["encodings"]
        }
        board = dict(sorted((board | {_("yours"): came_out[use]}).items(), key=lambda entry: -entry[1]))
        plots.bars(board, ax=ax, title=use, xlabel=_("accuracy at 64 tokens"), xlim=(0, 1.15))
    said = ", ".join(f"{use} {x:.2f}" for use, x in came_out.items())
    what = _("Two panels of bars, accuracy at 64 tokens of seven encodings and of your design.")
    layers = " ".join(f"{window:.0f}/{pairs:.0f}/{wave:.0f}" for window, pairs, wave in dials.tolist())
    line = _("two clocks {layers}: {came_out}").format(layers=layers, came_out=said)
    keep(fig, joined([what, f"{said}."]), line)
    entry = [*dials.flatten().tolist(), *came_out.values()]
    enter("10.share.two_clocks", choice=[round(x, 4) for x in entry])
