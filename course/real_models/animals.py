"""The ending of exercise 01: two models that read who chases whom, one of them without positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from tutorial_lib import plots
from tutorial_lib.language import _, joined
from tutorial_lib.training import seeded, train

from .smollm2 import gently
from .souvenir import keep, missing

USUAL = 9
"""Of ten sentences on two animals, so many say that the stronger one chases the weaker one."""
WIDTH, STEPS = 16, 60


class _Reader(nn.Module):
    """One layer of attention and a mean, both the learner's; its answer is the animal that chases."""

    def __init__(self, animals: int, positions: Tensor, attend: Callable, pool: Callable):
        super().__init__()
        self.words, self.answer = nn.Embedding(animals + 1, WIDTH), nn.Linear(WIDTH, animals)
        self.into = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.positions, self.attend, self.pool = positions, attend, pool

    def forward(self, sentences: Tensor) -> Tensor:
        x = self.words(sentences)
        q, k, v = self.into(x).chunk(3, -1)  # a sentence of the batch stands where the function has a head
        x = x + self.attend(q, k, v, self.positions, self.positions)
        return self.answer(self.pool(x, torch.ones_like(sentences, dtype=torch.bool)))


@gently
def who_chases(
    animals: Sequence[str], pool_tokens: Callable, causal_attention: Callable, bag_ceiling: Callable
) -> None:
    """Train two models in a world with a pecking order, and draw what they make of "A chases B".

    ``animals``: at least two, the strongest first. In the first model all words stand at position 0, so each
    sees all others; in the second they stand where they stand, and the mask is at work.
    """
    n = len(animals)
    pairs = torch.tensor([[a, n, b] for a in range(n) for b in range(n) if a != b])
    usual = pairs[:, 0] < pairs[:, 2]
    sentences = pairs.repeat_interleave(torch.where(usual, USUAL, 10 - USUAL), 0)
    fig, axes = plots.panels(1, 2, size=(11.5, 5))
    ends = []
    models = {_("without order"): torch.zeros(3, dtype=torch.long), _("with your mask"): torch.arange(3)}
    for ax, (name, places) in zip(axes, models.items(), strict=True):
        model = seeded(partial(_Reader, n, places, causal_attention, pool_tokens), 0)
        train(model, lambda generator: (sentences, sentences[:, 0]), STEPS, lr=0.03, progress=False)
        with torch.no_grad():
            said = model(pairs).softmax(-1)
        right = (said.argmax(-1) == pairs[:, 0]).double()
        overall = torch.where(usual, USUAL, 10 - USUAL).double() @ right / len(sentences)
        ends.append(f"{name} {overall:.2f}")
        grid = torch.full((n, n), torch.nan)
        grid[pairs[:, 0], pairs[:, 2]] = said[torch.arange(len(pairs)), pairs[:, 0]]
        title = _("{name}: {overall:.0%} right,\nof the surprises {surprises:.0%}").format(
            name=name, overall=overall, surprises=right[~usual].mean()
        )
        plots.heat(
            grid,
            ax=ax,
            title=title,
            xlabel=_("who is chased"),
            ylabel=_("who chases"),
            xticks=animals,
            yticks=animals,
            limits=(0, 1),
            cmap="weights",
            values=".2f",
            colorbar=None,
        )
    if missing(bag_ceiling):
        print(_("The best that a model without order can do is left out: it waits for your `bag_ceiling`."))
    else:
        ends.append(_("your ceiling {ceiling:.2f}").format(ceiling=bag_ceiling(sentences, sentences[:, 0])))
    what = _(
        "Two heat maps, for each pair of animals the probability of the answer that the first one chases."
    )
    shared = " | ".join(ends)
    keep(fig, joined([what, f"{shared}."]), f"{' > '.join(map(_, animals))}: {shared}")
