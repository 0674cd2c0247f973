"""The ending of exercise 09: five implementations, some of them broken (:mod:`course.checks.suspects`)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import torch
from torch import Tensor

from tutorial_lib import conformance, plots
from tutorial_lib.language import _, joined

from ..checks import suspects
from ..checks.question import Draw
from .smollm2 import gently
from .souvenir import keep

LETTERS, TOKENS, START, LAST = "ABCDE", 32, 2000, 8


class Lineup:
    """Five implementations that belong to a number: whoever has the same number has the same five."""

    def __init__(self, number: int):
        self.number = number
        self.five = dict(zip(LETTERS, suspects.draw(number), strict=True))

    def scores(self, letter: str) -> Tensor:
        """What the suspect makes of equal tokens, ``[32, 32]``; for a bias, in its first head."""
        function, declared = self.five[letter].function, self.five[letter].declared
        x = Draw(self.number).normal(declared["head_dim"]).expand(1, 1, TOKENS, -1).contiguous()
        if function.__name__ == "bias":
            return function(TOKENS, TOKENS)[0]
        if function.__name__ == "rotate":
            turned = function(x, torch.arange(START, START + TOKENS))[0, 0]
            return turned @ turned.mT / declared["head_dim"] ** 0.5
        alone = torch.eye(declared["head_dim"])[None, None]  # the output of each query is its weights
        return function(*(x[:, :, :1].expand(-1, -1, len(alone[0, 0]), -1),) * 2, alone)[0, 0].log()[
            :TOKENS, :TOKENS
        ]

    @gently
    def look(self, offset_error: Callable, **verdicts: str) -> None:
        """Draw what the five make of equal tokens, with the learner's measure, and what they say of each.

        A verdict is ``"right"``, or the name that the tool has for the bug.
        """
        fig, axes = plots.panels(1, 5, size=(13.5, 3.8))
        marks, seen = "", []
        for ax, letter, truth in zip(axes, LETTERS, suspects.verdicts(self.number), strict=True):
            scores = self.scores(letter)
            shown = scores[None, -LAST:, : TOKENS - LAST + 1]  # no causal mask hides a key here
            measure = float(offset_error(shown.round(decimals=4))[0])  # rounding is no step
            said = verdicts.get(letter, "")
            right = said == (truth or "right")
            marks += ("🟩" if right else "🟥") if said else "⬜"
            word = (_("yes: {said}") if right else _("not {said}")).format(said=said) if said else "?"
            seen.append(f"{letter}: {measure:.2f}, {word}.")
            plots.heat(
                _by_row(scores),
                ax=ax,
                title=f"{letter}: {measure:.2f}\n{textwrap.fill(word, 15)}",
                xlabel=_("key"),
                ylabel=_("query") if letter == "A" else "",
                limits=(-2, 2),
                colorbar=_("score, in its row") if letter == "E" else None,
            )
        what = _("Five heat maps of scores over queries and keys, one for each suspect, below your measure.")
        keep(
            fig, joined([what, *seen]), _("five of {number}: {marks}").format(number=self.number, marks=marks)
        )

    def question(self, letter: str) -> conformance.Report:
        """What the conformance tool says of one of them: it is told what the weights were trained with."""
        return conformance.check(self.five[letter].function, **self.five[letter].declared)


def _by_row(scores: Tensor) -> Tensor:
    """Each row from its own mean, in units of its spread: what a softmax sees, whatever the size."""
    seen = scores.masked_fill(~scores.isfinite(), torch.nan)
    apart = seen - seen.nanmean(-1, keepdim=True)
    return apart / apart.square().nanmean().sqrt().clamp(min=1e-3)
