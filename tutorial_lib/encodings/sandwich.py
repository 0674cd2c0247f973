r"""Sandwich, what sinusoids know of a distance (Chi, Fan, Rudnicky & Ramadge 2022).

A sinusoid added to a token gives a score of four terms, two of which mix words and places. Sandwich keeps
the term of the words alone and, of the places, their inner product, which depends on the offset only:

.. math:: b_h(r) = \frac{1}{c_h}\, p_i^\top p_j
          = \frac{1}{c_h} \sum_{t=0}^{\bar d/2 - 1} \cos(r\,\omega_t),
          \qquad \omega_t = 10000^{-2t/\bar d}, \quad r = j - i

The sinusoidal vectors p are those of Vaswani et al. 2017, with a width of their own, and each head has a
compression ratio, c_h = 8h/H for h = 1 … H. The bias falls in waves, roughly like the logarithm of the
distance: it is KERPLE with nothing to learn.

Of the public implementations, one counts t from 0, as the vectors of 2017 and this file do, another
from 1; one subtracts d̄/2 from the sum, and so does this file. A softmax does not see that constant,
but near keys then have a bias near 0, where half precision is finest.

**A mirror:** the cosine does not tell a key behind from one ahead. In an encoder a sentence and its
reversal look alike, as with the symmetric ALiBi.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .base import check_positive
from .method import Method, Row
from .positions import Where, pair, result_dtype, widest_float
from .relative import RelativeBias
from .sinusoidal import frequencies, sinusoidal


class Sandwich(RelativeBias):
    """``(p_i · p_j − d̄/2) / c_h``: 0 for the query's own place, below 0 elsewhere. No parameters.

    Angles are float64 (float32 on MPS), so far places stay apart; the bias is float32 (float64 for
    float64 positions), whatever the dtype of the module.

    Args:
        n_heads: heads H.
        dim: d̄, the width of the vectors p, even; 128 in the paper, whatever the width of the model.

    Raises ValueError for sizes that are not positive integers, or an odd ``dim``.

    >>> Sandwich(2, dim=4).of(torch.tensor([0, -1, -100]))[0]
    tensor([ 0.0000, -0.1149, -0.1493])
    """

    def __init__(self, n_heads: int, *, dim: int = 128):
        super().__init__()
        check_positive(n_heads=n_heads, dim=dim)
        if dim % 2:
            raise ValueError(f"dim={dim}: it must be even, a cosine needs a sine and a cosine")
        self.n_heads, self.dim = n_heads, dim

    def of(self, r: Tensor) -> Tensor:
        angle = widest_float(r)[..., None] * frequencies(self.dim, device=r.device)
        return self._compressed(angle.cos().sum(-1), result_dtype(r))

    def dense(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor:
        """The product itself: it needs a vector for each place, where ``of`` needs one for each pair."""
        i, j = (p.tensor for p in pair(self, q_positions, k_positions, offset=offset))
        p_i, p_j = (sinusoidal(widest_float(p), self.dim) for p in (i, j))
        bias = self._compressed(p_i @ p_j.mT, result_dtype(i, j))
        return bias if bias.ndim == 3 else bias.movedim(0, 1)

    def _compressed(self, product: Tensor, dtype: torch.dtype) -> Tensor:
        """``[H, …]`` of inner products ``[…]``."""
        c = 8 * torch.arange(1, self.n_heads + 1, dtype=product.dtype, device=product.device) / self.n_heads
        return ((product - self.dim / 2) / c.view(-1, *[1] * product.ndim)).to(dtype)

    def extra_repr(self) -> str:
        return f"{self.n_heads}, dim={self.dim}"


METHODS = [
    Method(
        names={"sandwich": Sandwich},
        lesson="deeper/07_relatives",
        title="Sandwich: what sinusoids know of a distance",
        says=(
            "The product of two sinusoidal vectors depends on their distance alone, and falls "
            "with it in waves. Sandwich adds that number to the score, and learns nothing."
        ),
        where=(
            "b_h(r) is what head h adds for a query at i and a key at j; p_i is the sinusoidal "
            r"vector of place i, :math:`\bar d` its width, and ω_t how fast its pair t turns."
        ),
        words=("sandwich",),
        code=(Sandwich.of, Sandwich._compressed),
        make="Sandwich(4)",
        see="A fall in waves, in each head with its own strength.",
        year=2022,
        arxiv="2212.10356",
        row=Row(
            name="Sandwich",
            formula=(
                (
                    r"$q_i^\top k_j/\sqrt{d}+\frac{H}{8h}\,p_i^\top p_j,\qquad p_i^\top "
                    r"p_j=\Sigma_t\,\cos((i-j)\,\omega_t)$"
                ),
                r"$p$: sinusoids of width 128, in head $h=1\ldots H$",
            ),
            parameters="0",
            cost="a line of 2L – 1 numbers\na head, or a matrix",
            longer="nearly steady",
            picture="waves_summed",
        ),
        papers=("Sandwich",),
        claims="Sandwich",
    ),
]
