r"""A learned bias for each distance that the query may choose: Inkling (2026), which turns nothing.

.. math:: \mathrm{softmax}_j\Big(\frac{q_i^\top k_j}{\sqrt{d}} + b_i(i - j)\Big), \qquad
          b_i(m) = (W_r\, q_i)^\top P_m
          \text{ for } 0 \le m < M, \text{ else } 0

P is a bank of profiles over the distance m, as many as ``rank``, shared by all heads. Shaw's key vectors, one
of full width for each offset, are the ancestor: here their table has a low rank, and ends. At distance M and
beyond nothing is added, nor for keys ahead. Inkling has 16 profiles, and M = 1024; under a window, M is its
width.

**The mix reads the query of its head**, because a door has no token vectors; the model's own W_r reads them.
The bias is added to the *scaled* scores and ``content_bias`` stands before the scale, so it is divided by
the scale here. It is linear in q: a factor on the query, such as :class:`Temperature`, sharpens it as well.
That is how Inkling does it: ``Compose(Temperature(L, steps=False), QueryBias(…))``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import PositionalEncoding, check_heads, check_positive, check_std
from .method import Method, Row
from .offsets import between_entries, integer_offsets, nan_where, offsets
from .positions import Where, pair


class QueryBias(PositionalEncoding):
    """Profiles ``P [rank, max_distance]``, and for each head what of them a query asks for.

    Args:
        n_heads: heads of the queries; ``W_r`` is ``[n_heads, head_dim, rank]``.
        head_dim: channels per head d. Set ``scale`` where it is not 1/√d; Inkling has 1/d.
        max_distance: M, the distances that have an entry: 0 … M − 1.
        rank: how many profiles there are.
        std: standard deviation of the initial P and W_r.

    Raises ValueError for sizes that are not positive, a bad ``std``, fractional offsets, or queries of other
    heads.
    """

    scale: float

    def __init__(self, n_heads: int, head_dim: int, max_distance: int, *, rank: int = 16, std: float = 0.02):
        super().__init__()
        check_positive(n_heads=n_heads, head_dim=head_dim, max_distance=max_distance, rank=rank)
        check_std(std)
        self.n_heads, self.head_dim, self.max_distance, self.rank = n_heads, head_dim, max_distance, rank
        self.std, self.scale = std, head_dim**-0.5
        self.W_r = nn.Parameter(torch.randn(n_heads, head_dim, rank) * std)
        self.P = nn.Parameter(torch.randn(rank, max_distance) * std)

    @property
    def reach(self) -> int:
        """M: from there on, and ahead, nothing is added."""
        return self.max_distance

    def by_distance(self, q: Tensor) -> Tensor:
        """b_i(m) of every query, ``[B, H, Lq, M]``."""
        return q @ self.W_r.to(q.dtype) @ self.P.to(q.dtype)

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor:
        q_positions, k_positions = pair(self, q_positions, k_positions, q, k, offset=offset)
        check_heads(self, q, self.head_dim, self.n_heads)
        r = offsets(q_positions, k_positions)
        r = r if r.ndim == 2 else r[:, None]  # room for the heads
        m = -integer_offsets(r)
        entry = m.clamp(0, self.max_distance - 1).expand(*q.shape[:-1], -1)
        b = self.by_distance(q).gather(-1, entry).masked_fill((m < 0) | (m >= self.max_distance), 0.0)
        return nan_where(between_entries(r), b / self.scale)

    def extra_repr(self) -> str:
        return f"{self.n_heads}, {self.head_dim}, {self.max_distance}, rank={self.rank}, std={self.std:g}"


METHODS = [
    Method(
        names={"query-bias": QueryBias},
        relative=True,
        compared=False,
        lesson="deeper/10_new_ways",
        title="Inkling: a bias that the query chooses",
        says=(
            "A small bank of learned profiles says what a distance is worth, and each query mixes "
            "them: one word can look three back, the next at all that is near."
        ),
        where=(
            "q_i and k_j are query and key, and d is their width; b_i is what query i adds at "
            "distance m, and W_r, which is learned, makes of the query how much it takes of each "
            "profile."
        ),
        words=("inkling", "query bias", "relative logits"),
        code=(QueryBias.by_distance, QueryBias.content_bias),
        make="QueryBias(4, 16, 32)",
        see="Each query picks its own curve, and nothing is added from 32 back.",
        year=2026,
        source="The released code of Inkling 2026; its table is that of Shaw et al. 2018, with a low rank.",
        row=Row(
            name="Inkling",
            formula=(
                r"$q_i^\top k_j/\sqrt{d}+(W_r\,q_i)^\top P_{i-j}$",
                "nothing beyond M − 1 steps back",
            ),
            parameters="(H·d + M)·rank a layer",
            learns="a few profiles, a matrix per head",
            cost="each query meets\nrank profiles",
            longer="not measured here",
            used_by="Inkling",
        ),
        claims="Inkling",
    ),
]
