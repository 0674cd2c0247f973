"""The explorer of notebook 01: which vectors change when the words change places?"""

from __future__ import annotations

import functools
import itertools

import torch
from torch import Tensor

from ..encodings import NoPosition, Sinusoidal
from ..model import Config, Transformer
from ..training import seeded
from .parts import Choice, LiveExplorer, palette

WORDS = ("cat", "chases", "dog")  # 猫追狗
ORDERS = tuple(" ".join(order) for order in itertools.permutations(WORDS))
WIDTH = 6


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
        return {"numbers": numbers, "palette": palette(32)}
