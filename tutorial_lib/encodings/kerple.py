r"""KERPLE, kernelized relative position bias (Chi et al. 2022, §4).

.. math:: \begin{aligned}
          \text{power:} \quad & b(m, n) = -r_1\,|m - n|^{r_2}, && r_1 > 0, \; 0 < r_2 \le 2 \\
          \text{log:} \quad & b(m, n) = -r_1 \log(1 + r_2\,|m - n|), && r_1, r_2 > 0
          \end{aligned}

Each head learns its two numbers. Both are conditionally positive definite kernels (corollary 1):
some constant c makes c + b a positive definite one, an inner product, and a softmax does not see c.
The power with r_2 = 1 is ALiBi with learned slopes; the logarithm falls ever more slowly.

Eq. 1 of the paper has b inside the bracket that is divided by √d. The released code adds b after that
factor, and so does this file; r_1 is learned, so only its unit differs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import check_one_of, check_positive
from .method import Method, Row
from .positions import result_dtype
from .relative import RelativeBias

VARIANTS = ("log", "power")


class KERPLE(RelativeBias):
    """−r_1·log(1 + r_2·|r|), or −r_1·|r|^r_2.

    As in the released code, a number below 0.01 counts as 0.01, r_2 of the power above 2 as 2, and
    the gradient ignores these limits, so that a number beyond one can come back. The bias is
    float32 (float64 for float64 parameters or positions), whatever the dtype of the module.

    Args:
        n_heads: heads H; ``r_1`` and ``r_2`` are ``[H]``. At the start they are uniform, as in the
            released code: r_1 in [0, 2) and r_2 in [0, 1) for the logarithm, the reverse for the power.
        variant: ``"log"`` (better in the paper, §5.2) or ``"power"``.

    Raises ValueError for an unknown ``variant`` or an ``n_heads`` that is not positive.
    """

    def __init__(self, n_heads: int, *, variant: str = "log"):
        super().__init__()
        check_positive(n_heads=n_heads)
        check_one_of(VARIANTS, variant=variant)
        self.n_heads, self.variant = n_heads, variant
        r_1_max, r_2_max = (2, 1) if variant == "log" else (1, 2)
        self.r_1 = nn.Parameter(torch.rand(n_heads) * r_1_max)
        self.r_2 = nn.Parameter(torch.rand(n_heads) * r_2_max)

    def of(self, r: Tensor) -> Tensor:
        r = r.abs().to(result_dtype(r, self.r_1))
        r_1, r_2 = (x.to(r.dtype).view(-1, *[1] * r.ndim) for x in (self.r_1, self.r_2))
        if self.variant == "log":
            return -_within(r_1, 0.01) * torch.log1p(_within(r_2, 0.01) * r)
        here = r == 0  # the slope of a power below 1 is infinite there
        power = r.masked_fill(here, 1.0) ** _within(r_2, 0.01, 2.0)
        return -_within(r_1, 0.01) * power.masked_fill(here, 0.0)

    def extra_repr(self) -> str:
        return f"{self.n_heads}, variant={self.variant!r}"


def _within(x: Tensor, low: float, high: float | None = None) -> Tensor:
    """``x`` clamped; its gradient is not."""
    return x + (x.clamp(low, high) - x).detach()


METHODS = [
    Method(
        names={"kerple": KERPLE},
        lesson="deeper/07_relatives",
        title="KERPLE: a penalty that bends",
        says=(
            "A penalty for distance like ALiBi's, but it bends: each head learns two numbers, and "
            "with a logarithm what is far away is not lost altogether."
        ),
        where=(
            "b is added to the score of a query at m and a key at n; r_1 says how much a distance "
            "costs, r_2 how the cost bends."
        ),
        words=("kerple",),
        code=(KERPLE.of, _within),
        make="KERPLE(4)",
        see="Steep at first, then ever flatter: far words are not lost.",
        year=2022,
        arxiv="2205.09921",
        row=Row(
            name="KERPLE",
            formula=(r"$q_i^\top k_j/\sqrt{d}-r_1\log(1+r_2\,|i-j|)$",),
            parameters="2·H",
            learns="two for each head",
            cost="a line of 2L – 1 numbers\na head, or a matrix",
            longer="steady",
            picture="logarithm",
        ),
        papers=("KERPLE",),
        claims="KERPLE",
    ),
]
