"""The explorer of notebook 01: which vectors change when the words change places?"""

from __future__ import annotations

import functools
import itertools

import torch
from torch import Tensor

from ..encodings import NoPosition, Sinusoidal
from ..language import _
from ..model import Config, Transformer
from ..training import seeded
from .parts import Choice, Heat, LiveExplorer, Scene, palette

WORDS = ("cat", "chases", "dog")  # 猫追狗
ORDERS = tuple(" ".join(order) for order in itertools.permutations(WORDS))
WIDTH = 6
SAME = 1e-9


@functools.cache
def _model(mask: str, layers: int, position: str) -> Transformer:
    """A small Transformer with random weights; the same ones for both masks and positions."""
    config = Config(
        vocab_size=len(WORDS), d_model=WIDTH, n_layers=layers, n_heads=2, n_out=WIDTH, causal=mask == "causal"
    )
    encoding = Sinusoidal(WIDTH) if position == "sinusoids" else NoPosition()

    def build():
        model = Transformer(config, encoding).double()
        for weight in model.parameters():
            if weight.ndim == 2:  # larger than usual, so that changes are easy to see
                torch.nn.init.normal_(weight, std=0.4)
        return model

    return seeded(build, seed=29)


@torch.no_grad()
def outputs(order: str, *, mask: str, layers: int, position: str) -> dict[str, Tensor]:
    """The output vector of each word, in the order of the sentence; two decimals are all that is drawn."""
    words = order.split()
    rows = _model(mask, layers, position)(torch.tensor([[WORDS.index(word) for word in words]]))[0]
    return dict(zip(words, rows.round(decimals=2), strict=True))


def changes(order: str, **model) -> dict[str, Tensor]:
    """Each word's vector, and their mean, minus what it is in “cat chases dog”."""
    now, before = outputs(order, **model), outputs(ORDERS[0], **model)
    change = {word: now[word] - before[word] for word in WORDS}
    return change | {"mean": sum(change.values(), torch.tensor(0.0)) / len(WORDS)}


class PermutationExplorer(LiveExplorer):
    """Left, the output vectors of a sentence; right, how they differ from “cat chases dog”."""

    front = "permutation"
    parameters = {
        "order": Choice(ORDERS, "dog chases cat", label="sentence"),
        "position": Choice(("none", "sinusoids"), "none", label="positions"),
        "mask": Choice(("none", "causal"), "none"),
        "layers": Choice((1, 2), 1),
    }
    challenge = (
        "Without positions: let “dog”, in the last place, notice that the two words before it "
        "have changed places."
    )

    @classmethod
    def constants(cls):
        numbers = {
            f"{position} {mask} {layers}": [
                [(100 * out[word]).round().int().tolist() for word in WORDS]
                for out in (outputs(order, position=position, mask=mask, layers=layers) for order in ORDERS)
            ]
            for position, mask, layers in itertools.product(
                *(cls.parameters[name].values for name in ("position", "mask", "layers"))
            )
        }
        return {"numbers": numbers, "palette": palette("signed", 32).hex()}

    @staticmethod
    def render(*, order, position, mask, layers):
        model = {"position": position, "mask": mask, "layers": layers}
        rows, change = outputs(order, **model), changes(order, **model)
        mean = sum(rows.values(), torch.tensor(0.0)) / len(WORDS)
        moved = {name: bool(vector.abs().max() > SAME) for name, vector in change.items()}
        names = {name: _("mean") if name == "mean" else name for name in moved}
        changed, same = (
            _(", ").join(names[name] for name in moved if moved[name] is is_so) or _("nothing")
            for is_so in (True, False)
        )
        features = [str(n) for n in range(WIDTH)]
        if order == ORDERS[0]:
            verdict = _("This is the sentence that the others are compared with.")
        else:
            verdict = _("Compared with “{0}”, changed: {1}; the same: {2}.").format(ORDERS[0], changed, same)
        says = (
            _("2 layers, mask {0}, positions {1}: “{2}”. {3}")
            if layers > 1
            else _("1 layer, mask {0}, positions {1}: “{2}”. {3}")
        )
        return Scene(
            {
                "output": Heat(
                    torch.stack([*rows.values(), mean]),
                    title=f"output for “{order}”",
                    xlabel="feature",
                    ylabel="",
                    limits=(-2.5, 2.5),
                    colorbar="value",
                    xticks=features,
                    yticks=[*rows, "mean"],
                ),
                "change": Heat(
                    torch.stack(list(change.values())),
                    title=f"change against “{ORDERS[0]}”",
                    xlabel="feature",
                    ylabel="",
                    limits=(-4.0, 4.0),
                    colorbar="change",
                    xticks=features,
                    yticks=list(change),
                ),
            },
            says.format(_(mask), _(position), order, verdict),
        )

    @staticmethod
    def reached(*, order, position, mask, layers):
        if position != "none" or not order.endswith("dog"):
            return ""
        change = changes(order, position=position, mask=mask, layers=layers)["dog"].abs().max()
        return _("its vector changed by {0}.").format(f"{change:.2f}") if change > SAME else ""
