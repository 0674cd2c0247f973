"""Train short, test long (Press et al. 2022) with the learner's own ALiBi."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tutorial_lib import plots
from tutorial_lib.data import kjv
from tutorial_lib.encodings import PositionalEncoding, Sinusoidal
from tutorial_lib.language import _, column, joined
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import evaluate, seeded, train

from .smollm2 import gently
from .souvenir import keep

SHORT, STEPS, LAST = 64, 100, 32


class _Yours(PositionalEncoding):
    """The door ``bias``, with the two functions of exercise 07 behind it."""

    def __init__(self, slopes: Callable, bias: Callable, heads: int):
        super().__init__()
        self.slopes, self.of = slopes(heads), bias

    def bias(self, q_positions, k_positions):
        return self.of(self.slopes, q_positions, k_positions)


@gently
def short_and_long(slopes: Callable, bias: Callable, lengths=(64, 256, 1024)) -> dict[str, list[float]]:
    """Train on windows of 64 characters and read longer ones; prints and returns loss by length.

    The loss is that of the last 32 characters of each text, the same ones at every length, in nats per
    character: it falls only if more context is of use. Sinusoids are trained in the same way.
    """
    corpus, config = kjv(), Config(len(kjv().symbols))
    models = {
        "your ALiBi": lambda: Transformer(config, _Yours(slopes, bias, config.n_heads)),
        "sinusoids": lambda: Transformer(config, Sinusoidal(config.d_model)),
    }
    found = {}
    head, *names = column([_("trained on {n}, read at").format(n=SHORT), _("your ALiBi"), _("sinusoids")], 26)
    print(head, *[f"{n:6}" for n in lengths])
    for said, (name, make) in zip(names, models.items(), strict=True):
        model = seeded(make, 0)
        train(model, lambda g: corpus.batch(16, SHORT, g), STEPS, lr=0.015, progress=False)
        found[name] = [_tail_loss(model, *corpus.windows(24, lengths[-1]), n) for n in lengths]
        print(said, *[f"{x:6.2f}" for x in found[name]])
    ends = " | ".join(f"{_(name)} {x[0]:.2f} → {x[-1]:.2f}" for name, x in found.items())
    fig = plots.lines(
        lengths,
        found,
        logx=2,
        border=SHORT,
        markers=True,
        xlabel=_("characters that are read"),
        ylabel=_("loss of the last {n}").format(n=LAST),
        title=_("trained on {n}").format(n=SHORT),
    )
    alt = joined(
        [_("Two lines of loss over the length that is read, from the trained length on."), f"{ends}."]
    )
    keep(fig, alt, f"{SHORT} → {lengths[-1]}: {ends}")
    return found


@torch.no_grad()
def _tail_loss(model: Transformer, tokens, targets, length: int) -> float:
    losses = evaluate(model, tokens[:, -length:], targets[:, -length:], batch_size=max(1, 4096 // length))
    return losses[:, -LAST:].mean().item()
