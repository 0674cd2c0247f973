"""The ending of exercise 04: a small model is trained with the learner's buckets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from tutorial_lib import plots
from tutorial_lib.data import steps_back
from tutorial_lib.encodings import PositionalEncoding
from tutorial_lib.language import _, joined
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import accuracy, seeded, train

from .smollm2 import gently
from .souvenir import keep

BUCKETS, FARTHEST, LENGTH, VALUES, STEPS = 16, 64, 48, 16, 80


class _Buckets(PositionalEncoding):
    """The door ``bias``, with a number for each of the learner's buckets."""

    def __init__(self, t5_bucket: Callable):
        super().__init__()
        self.of, self.numbers = t5_bucket, nn.Parameter(torch.zeros(1, BUCKETS))

    def bias(self, q_positions, k_positions):
        r = k_positions[..., None, :] - q_positions[..., :, None]
        return self.numbers[:, self.of(r, BUCKETS, FARTHEST, False)]


@gently
def trained_buckets(steps: tuple[int, ...], t5_bucket: Callable, offset_mass: Callable) -> None:
    """For each number of steps, train a layer to say what stood so far back, and draw where it looks.

    Sequences have 48 tokens of 16 kinds; the 16 buckets reach to 64. The curves are the learner's
    ``offset_mass`` of the weights that the buckets alone would give, up to 30 tokens back.
    """
    config = Config(VALUES, 32, n_layers=1, n_heads=1)
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    curves, shared = {}, []
    for k in steps:
        task = partial(steps_back, k=k, length=LENGTH, n_values=VALUES)
        model = seeded(lambda: Transformer(config, _Buckets(t5_bucket)), 0)
        train(
            model,
            partial(task, 16),
            STEPS,
            lr=0.01,
            position_lr=0.3,
            progress=False,
        )
        tokens, targets = task(64, torch.Generator().manual_seed(1))
        right = accuracy(model, tokens, targets)
        here = torch.arange(LENGTH)
        bias = model.encoding.bias(here, here)[0].detach()
        mass = offset_mass(bias.masked_fill(hidden, -torch.inf).softmax(-1), 1, LENGTH)[0]
        curves[_("{k} back").format(k=k)] = mass[LENGTH - 31 : LENGTH]
        of = t5_bucket(-here, BUCKETS, FARTHEST, False)
        together = (of == of[k]).sum()
        shared.append(_("{k} back {right:.2f} (bucket of {n})").format(k=k, right=right, n=together))
    fig = plots.lines(
        range(-30, 1),
        curves,
        size=(11, 4.2),
        xlabel=_("offset r"),
        ylabel=_("mean weight"),
        title=_("Where the buckets look"),
        legend="beside",
    )
    what = _("Lines of the mean weight over the offset, from 30 back to 0, one for each task.")
    ends = " | ".join(shared)
    keep(fig, joined([what, f"{ends}."]), ends)
