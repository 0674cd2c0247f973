r"""T5's relative position bias: buckets of offsets that widen with distance (Raffel et al. 2019, §2.1).

.. math:: e_{ij} = q_i^\top k_j + b_{h,\,\mathrm{bucket}(j - i)}

There is no factor 1/√d; T5 absorbs it in its initial weights. The paper describes the buckets in
words (32 of them, widening up to a distance of 128, one for all beyond); this is the formula of the
released code. With n = i − j and E = n_buckets / 2,

.. math:: \mathrm{bucket} =
          \begin{cases} n & n < E \\ \min(E + \lfloor u \rfloor,\, n\_buckets - 1) & \text{else} \end{cases},
          \qquad u = \frac{\ln(n/E)}{\ln(D/E)}\,(n\_buckets - E)

with D = max_distance. Causal: keys ahead share bucket 0. Bidirectional: half of the buckets are
for n = |i − j| of keys behind, the other half for keys ahead. The last bucket begins before D: at
113 (causal) and 91 (bidirectional) for 32 buckets and D = 128. Bidirectional, the bucket
n_buckets / 2 would be "ahead by 0" and is never used.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .base import check_positive, check_std
from .method import Method, Row
from .offsets import between_entries, integer_offsets, nan_where
from .relative import RelativeBias, look_up


def bucket(r: Tensor, *, bidirectional: bool = False, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """The bucket, 0 … n_buckets − 1, of each whole offset r = k_position − q_position.

    >>> bucket(torch.tensor([3, 0, -1, -15, -16, -112, -113, -10**6]))
    tensor([ 0,  0,  1, 15, 16, 30, 31, 31])
    >>> bucket(torch.tensor([1, 0, -1, -90, -91, 91]), bidirectional=True)
    tensor([17,  0,  1, 14, 15, 31])

    Raises ValueError for fewer than 2 buckets on a side, or a ``max_distance`` that does not
    exceed the exact buckets.
    """
    side, max_exact = _sizes(bidirectional, n_buckets, max_distance)
    r = integer_offsets(r)
    n = r.abs() if bidirectional else (-r).clamp(min=0)
    widening = torch.log(n.clamp(min=max_exact).float() / max_exact) / math.log(max_distance / max_exact)
    far = (max_exact + (widening * (side - max_exact)).long()).clamp(max=side - 1)
    ahead = side * (r > 0) if bidirectional else 0
    return ahead + torch.where(n < max_exact, n, far)


class T5Bias(RelativeBias):
    """One learned scalar per head and bucket. Scores are not scaled: ``scale`` is 1.

    Args:
        n_heads: heads H; the table ``b`` is ``[H, n_buckets]`` (transposed in T5's checkpoints).
        bidirectional: True in T5's encoder, False in its decoder.
        n_buckets: at least 2, bidirectional at least 4.
        max_distance: larger than the number of exact buckets of a side.
        std: standard deviation of the initial scalars. T5 itself uses 1/√d_model.

    Raises ValueError as :func:`bucket` does, and for an ``n_heads`` or ``std`` out of range.
    """

    scale = 1.0

    def __init__(
        self,
        n_heads: int,
        *,
        bidirectional: bool = False,
        n_buckets: int = 32,
        max_distance: int = 128,
        std: float = 0.02,
    ):
        super().__init__()
        check_positive(n_heads=n_heads)
        check_std(std)
        _sizes(bidirectional, n_buckets, max_distance)
        self.n_heads, self.bidirectional, self.std = n_heads, bidirectional, std
        self.n_buckets, self.max_distance = n_buckets, max_distance
        self.b = nn.Parameter(torch.randn(n_heads, n_buckets) * std)

    def of(self, r: Tensor) -> Tensor:
        options = {"n_buckets": self.n_buckets, "max_distance": self.max_distance}
        entries = look_up(self.b, bucket(r, bidirectional=self.bidirectional, **options))
        return nan_where(between_entries(r), entries)

    def extra_repr(self) -> str:
        return (
            f"{self.n_heads}, bidirectional={self.bidirectional}, n_buckets={self.n_buckets}, "
            f"max_distance={self.max_distance}, std={self.std:g}"
        )


def _sizes(bidirectional: bool, n_buckets: int, max_distance: int) -> tuple[int, int]:
    """Buckets of one side, and how many of them are exact; ValueError if the formula breaks."""
    check_positive(n_buckets=n_buckets, max_distance=max_distance)
    side = n_buckets // 2 if bidirectional else n_buckets
    max_exact = side // 2
    if max_exact < 1:
        raise ValueError(
            f"n_buckets={n_buckets}: it must be at least {4 if bidirectional else 2} "
            f"with bidirectional={bidirectional}"
        )
    if max_distance <= max_exact:
        raise ValueError(
            f"max_distance={max_distance}: it must exceed the {max_exact} exact buckets of a side "
            f"(n_buckets={n_buckets}, bidirectional={bidirectional})"
        )
    return side, max_exact


METHODS = [
    Method(
        names={"t5": T5Bias},
        lesson="04_relative",
        title="T5 bias: buckets of distance",
        says=(
            "One learned number for each head and bucket is added to the score. Near offsets have "
            "buckets of their own, far ones share wider and wider buckets."
        ),
        where=(
            "e_ij is the score of query q_i and key k_j, and b_h a learned number for each bucket of head h."
        ),
        words=("t5", "bucket", "buckets"),
        code=(bucket, T5Bias.of),
        make="T5Bias(4)",
        year=2019,
        arxiv="1910.10683",
        row=Row(
            name="T5",
            formula=(
                r"$q_i^\top k_j+b_{h,\,bucket(j-i)},\qquad$ no $1/\sqrt{d}$",
                "32 buckets, wider and wider up to 128",
            ),
            parameters="32·H in all",
            learns="32 for each head",
            cost="a line of 2L – 1 numbers\na head, or a matrix",
            longer="slowly worse, if all\nbuckets were trained",
            later="slowly worse",
            used_by="T5",
            picture="buckets",
        ),
        papers=("T5",),
        live="relative",
        params={"method": "T5 buckets", "i": 16, "j": 12},
        glossary="bucket",
        claims="T5",
    ),
]
