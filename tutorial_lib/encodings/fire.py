r"""FIRE, functional interpolation for relative positions (Li et al. 2023).

.. math:: b(i, j) = f_\theta\!\left(\frac{\psi(i - j)}{\psi(\max\{L, i\})}\right), \qquad
          \psi(x) = \log(c\,x + 1)

f_θ is a small network with one output per head; c and the threshold L are learned. For keys in the
past the argument of f_θ lies between 0 and 1 at any length, so f_θ is never asked for a distance
that it has not met ("progressive interpolation"): the distance is measured by the query's own
position, from L on.

**Not shift-invariant:** b needs i itself, counted from 0. **Causal only:** ψ is not defined for a
key ahead; here, as in implementations, |i − j| takes its place.

The bias of one layer costs ``hidden`` numbers per pair.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import PositionalEncoding, check_above_0, check_positive
from .method import Method, Row
from .positions import Where, pair, result_dtype


class FIRE(PositionalEncoding):
    """``f_θ(ψ(i − j) / ψ(max(L, i)))`` with f_θ(x) = W_2 relu(W_1 x + b_1). Use it causally.

    f_θ ends without a constant: one per head is the same for all keys, and a softmax does not see it.
    |c| and |L| stand for c and L, and 10⁻⁶ is added to the denominator, as implementations do
    (McLeish et al. 2024). Everything up to f_θ's output is float32 (float64 for float64 parameters
    or positions), whatever the dtype of the module.

    Args:
        n_heads: heads H.
        hidden: width of f_θ's hidden layer.
        c, L: c and L at the start. L is learned by way of ``L_multiplier``, which starts at 1.

    Raises ValueError for an ``n_heads`` or ``hidden`` that is not positive, a ``c`` or ``L`` that is
    not above 0, or positions of other shapes than [L] and [B, L].
    """

    def __init__(self, n_heads: int, *, hidden: int = 32, c: float = 0.1, L: float = 512.0):
        super().__init__()
        check_positive(n_heads=n_heads, hidden=hidden)
        check_above_0(c=c, L=L)
        self.n_heads, self.hidden, self.L = n_heads, hidden, L
        self.c = nn.Parameter(torch.tensor(float(c)))
        self.L_multiplier = nn.Parameter(torch.tensor(1.0))
        self.W_1 = nn.Linear(1, hidden)
        self.W_2 = nn.Linear(hidden, n_heads, bias=False)

    def bias(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor:
        queries, keys = pair(self, q_positions, k_positions, offset=offset)
        distance = queries.offsets_to(keys).abs()
        dtype = result_dtype(distance, self.c)
        c, W_1, b_1, W_2 = (
            p.to(dtype) for p in (self.c.abs(), self.W_1.weight[:, 0], self.W_1.bias, self.W_2.weight)
        )
        threshold = (self.L_multiplier.to(dtype) * self.L).abs()
        i = torch.maximum(queries.tensor.to(dtype), threshold)[..., :, None]
        x = torch.log1p(c * distance.to(dtype)) / (torch.log1p(c * i) + 1e-6)
        return torch.einsum("hw,...qkw->...hqk", W_2, (x[..., None] * W_1 + b_1).relu())

    def extra_repr(self) -> str:
        return f"{self.n_heads}, hidden={self.hidden}, c={self.c.item():.3g}, L={self.L:g}"


METHODS = [
    Method(
        names={"fire": FIRE},
        lesson="deeper/07_relatives",
        title="FIRE: distance as a share of the text",
        says=(
            "A small network turns a distance into a number for each head. It is given the "
            "distance as a share of the text so far, between 0 and 1 at any length."
        ),
        where=(
            "b is added to the score of query i and key j; ψ(x), a logarithm, gives near distances more room."
        ),
        words=("fire",),
        code=(FIRE.bias,),
        make="FIRE(4)",
        see="A distance counts as a share of the text: one curve for all lengths.",
        year=2023,
        arxiv="2310.04418",
        row=Row(
            name="FIRE",
            formula=(
                r"$q_i^\top k_j/\sqrt{d}+f_\theta\left(\psi(i-j)\,/\,\psi(\max\{L,i\})\right)$",
                r"$\psi(x)=\log(cx+1),\quad f_\theta$: a small network",
            ),
            parameters=r"of $f_\theta$, and c and L",
            learns="a small network, two numbers",
            cost="a pass of the small\nnetwork for each pair",
            longer="rises",
        ),
        papers=("FIRE",),
        claims="FIRE",
    ),
]
