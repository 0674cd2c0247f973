r"""Relative position vectors for keys and values (Shaw, Uszkoreit & Vaswani 2018, eq. 3–5).

.. math:: z_i = \sum_j \alpha_{ij}\,(x_j W^V + a^V_{ij}) \tag{3}

.. math:: e_{ij} = \frac{x_i W^Q (x_j W^K + a^K_{ij})^\top}{\sqrt{d_z}} \tag{4}

.. math:: a^K_{ij} = w^K_{\mathrm{clip}(j-i,\,k)}, \quad a^V_{ij} = w^V_{\mathrm{clip}(j-i,\,k)}, \quad
          \mathrm{clip}(r, k) = \max(-k, \min(k, r))

Eq. 5 splits eq. 4 into the score of the contents and that of the offset. Here it goes one step
further: there are only 2k + 1 different vectors, so a query meets each of them once, and the score of a
pair is looked up; the weights of all keys with the same vector are summed before they meet it.
Nothing of size [L, L, d] is ever formed.

What ``reach`` speeds up is in :mod:`tutorial_lib.fast_attention`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import PositionalEncoding, check_heads, check_not_negative, check_positive, check_std
from .method import Method, Row
from .offsets import between_entries, integer_offsets, nan_where, offsets
from .positions import Positions, Where, pair


class Shaw(PositionalEncoding):
    """Learned vectors w^K and w^V for each clipped offset, shared by all heads.

    It opens two doors: ``content_bias`` (eq. 4, inside the scale) and ``values`` (eq. 3).

    Args:
        head_dim: channels per head d; both tables are ``[2k + 1, d]``, the middle row offset 0.
        max_distance: k; 16 in the paper's base model, 8 in the big one. 0 is allowed, and blind.
        std: standard deviation of the initial vectors; by default 1/√d, so each has length about 1.

    Raises ValueError for a size out of range, a bad ``std``, fractional offsets, or queries of another
    width.
    """

    def __init__(self, head_dim: int, max_distance: int, *, std: float | None = None):
        super().__init__()
        check_positive(head_dim=head_dim)
        std = head_dim**-0.5 if std is None else std
        check_not_negative(max_distance=max_distance)
        check_std(std)
        self.head_dim, self.max_distance, self.std = head_dim, max_distance, std
        self.w_K = nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * std)
        self.w_V = nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * std)

    @property
    def reach(self) -> int | None:
        """k: from there on, keys get the same vectors. None in a subclass whose ``bias`` tells them apart."""
        return None if "bias" in self.doors else self.max_distance

    def clipped(self, q_positions: Tensor | Positions, k_positions: Tensor | Positions) -> Tensor:
        """clip(r, k) + k, the row of each pair: ``[Lq, Lk]`` or ``[B, 1, Lq, Lk]``."""
        k = self.max_distance
        row = integer_offsets(offsets(q_positions, k_positions)).clamp(-k, k) + k
        return row if row.ndim == 2 else row[:, None]

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor:
        q_positions, k_positions = pair(self, q_positions, k_positions, q, k, offset=offset)
        check_heads(self, q, self.head_dim)
        row = self.clipped(q_positions, k_positions)
        met = q @ self.w_K.to(q.dtype).T  # [B, H, Lq, 2k + 1]
        missing = between_entries(offsets(q_positions, k_positions))
        missing = missing if missing is None or missing.ndim == 2 else missing[:, None]
        return nan_where(missing, met.gather(-1, row.expand(*q.shape[:-1], -1)))

    def values(
        self, weights: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor:
        q_positions, k_positions = pair(self, q_positions, k_positions, weights, weights.mT, offset=offset)
        row = self.clipped(q_positions, k_positions)
        summed = weights.new_zeros(*weights.shape[:-1], len(self.w_V))  # [B, H, Lq, 2k + 1]
        summed = summed.scatter_add(-1, row.expand_as(weights), weights)
        return summed @ self.w_V.to(weights.dtype)

    def extra_repr(self) -> str:
        return f"{self.head_dim}, {self.max_distance}, std={self.std:g}"


METHODS = [
    Method(
        names={"shaw": Shaw},
        relative=True,
        lesson="deeper/04_vectors",
        title="Shaw: relative vectors in keys and values",
        says=(
            "Each distance has two learned vectors. One joins the keys, so a query can ask for a "
            "distance; the other joins the values, so the output knows the distance."
        ),
        where=(
            "x_i and x_j are the tokens at i and j, W^Q, W^K and W^V make query, key and value of "
            "them, and d_z is their width; e_ij is a score, α_ij its weight after the softmax, "
            "z_i the output. w^K and w^V are the learned tables: a row for each offset r, and "
            "beyond k the same one."
        ),
        words=("shaw",),
        code=(Shaw.clipped, Shaw.content_bias, Shaw.values),
        make="Shaw(16, 12)",
        see="Keys and values both know how far. From 12 back, all distances are one.",
        year=2018,
        arxiv="1803.02155",
        row=Row(
            name="Shaw",
            formula=(
                (r"$z_i=\Sigma_j\,\alpha_{ij}\,(x_jW^V+a^V_{ij}),\qquad " r"a_{ij}=w_{clip(j-i,\,k)}$"),
                r"$e_{ij}=x_iW^Q\,(x_jW^K+a^K_{ij})^\top/\sqrt{d}$",
            ),
            parameters="2·(2k + 1)·d a layer,\nshared by heads",
            learns="two vectors for each distance",
            cost="each query meets\n2k + 1 vectors",
            longer="far offsets share a\nvector; slowly worse",
            later="slowly worse",
            used_by="speech: Wav2Vec2-\nBERT, SeamlessM4T v2",
            picture="clip",
        ),
        papers=("Shaw",),
        glossary="relative-position-encoding",
        claims="[Ss]haw|[Rr]elative vectors",
    ),
]
