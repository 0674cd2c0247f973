r"""Relative position bias: one learned number per head and offset, added to the scaled scores.

.. math:: e_{ij} = \frac{q_i^\top k_j}{\sqrt{d}} + b_h(r), \qquad r = j - i

There are two tables. The clipped one (the clipping of Shaw et al. 2018, §3.2, with scalars for
vectors) treats everything farther away than k alike; the full one has an entry for every offset
that a sequence of N tokens can have,

.. math:: b_h(r) = b_{h,\,\mathrm{clip}(r,\,k)}, \qquad \mathrm{clip}(r, k) = \max(-k, \min(k, r))

.. math:: b_h(r) = W_r[\,j - i + N - 1\,], \qquad 2N - 1 \text{ entries per head}

The bias comes after the factor 1/√d. Before it (inside the bracket) it would shrink by √d.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import PositionalEncoding, check_not_negative, check_positive, check_std
from .method import Method, Row
from .offsets import between_entries, integer_offsets, nan_where
from .positions import Where, bounds, pair


class RelativeBias(PositionalEncoding):
    """A bias that depends on r = k_position − q_position only. A subclass gives ``of(r)``."""

    n_heads: int
    in_words = "a relative bias, such as ClippedBias(8, 16) or ALiBi(8)"

    def of(self, r: Tensor) -> Tensor:
        """The bias ``[H, *r.shape]`` of offsets ``r`` of any shape; of ``[…, axes]`` it is ``[H, …]``."""
        raise NotImplementedError(f"{type(self).__name__} must give of(r)")

    def dense(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor:
        """``of`` for every pair: ``[H, Lq, Lk]``, or ``[B, H, Lq, Lk]`` if rows have their own."""
        queries, keys = pair(self, q_positions, k_positions, offset=offset)
        bias = self.of(queries.offsets_to(keys))
        return bias if bias.ndim == 3 else bias.movedim(0, 1)

    def bias_by_offset(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor | None:
        queries, keys = pair(self, q_positions, k_positions, offset=offset)
        line = queries.line_to(keys)
        return None if line is None else self.of(line)

    def bias(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor:
        """As ``dense``; for positions that count up by 1, ``of`` computes each offset only once.

        Every row of the matrix is then a window of those numbers, moved by one from row to row.
        """
        queries, keys = pair(self, q_positions, k_positions, offset=offset)
        by_offset = self.bias_by_offset(queries, keys)
        if by_offset is None:
            return self.dense(queries, keys)
        return by_offset.unfold(-1, keys.length, 1).flip(-2)  # window 0 belongs to the last query


class ClippedBias(RelativeBias):
    """``b_clip(r)``: 2k + 1 scalars per head; beyond ``max_distance`` = k, each side has one for all.

    Args:
        n_heads: heads H; the table ``b`` is ``[H, 2k + 1]``, its middle column the offset 0.
        max_distance: k. With 0, all offsets share one scalar, which a softmax does not see.
        std: standard deviation of the initial scalars. Std 1 would be noise as large as the scores.

    Raises ValueError for a size out of range, a bad ``std``, or fractional offsets.
    """

    def __init__(self, n_heads: int, max_distance: int, *, std: float = 0.02):
        super().__init__()
        check_positive(n_heads=n_heads)
        check_not_negative(max_distance=max_distance)
        check_std(std)
        self.n_heads, self.max_distance, self.std = n_heads, max_distance, std
        self.b = nn.Parameter(torch.randn(n_heads, 2 * max_distance + 1) * std)

    def of(self, r: Tensor) -> Tensor:
        k = self.max_distance
        return nan_where(between_entries(r), look_up(self.b, integer_offsets(r).clamp(-k, k) + k))

    def extra_repr(self) -> str:
        return f"{self.n_heads}, {self.max_distance}, std={self.std:g}"


class TableBias(RelativeBias):
    """``W_r[j − i + N − 1]``: 2N − 1 scalars per head, none for a longer input.

    An offset outside −(N − 1) … N − 1 has no entry and raises ValueError; plain indexing would wrap
    ``W_r[-2]`` around to another offset.

    >>> table = TableBias(n_heads=1, length=4)
    >>> table.W_r.shape[-1]
    7
    >>> i, j = torch.tensor([0, 0, 2, 2]), torch.tensor([0, 1, 1, 3])
    >>> j - i + 4 - 1
    tensor([3, 4, 2, 4])
    >>> torch.equal(table.of(j - i), table.W_r[:, [3, 4, 2, 4]])
    True

    Args:
        n_heads: heads H; the table ``W_r`` is ``[H, 2N − 1]``.
        length: N, the longest input.
        std: standard deviation of the initial scalars.

    Raises ValueError also for sizes that are not positive, a bad ``std``, or fractional offsets.
    """

    def __init__(self, n_heads: int, length: int, *, std: float = 0.02):
        super().__init__()
        check_positive(n_heads=n_heads, length=length)
        check_std(std)
        self.n_heads, self.length, self.std = n_heads, length, std
        self.W_r = nn.Parameter(torch.randn(n_heads, 2 * length - 1) * std)

    def of(self, r: Tensor) -> Tensor:
        N, index, ends = self.length, integer_offsets(r), bounds(r)
        if ends is None:
            entries = look_up(self.W_r, index.clamp(1 - N, N - 1) + N - 1)
            return nan_where(between_entries(r), nan_where(index.abs() >= N, entries))
        self._check_offsets(*ends)
        return look_up(self.W_r, index + N - 1)

    def bias_by_offset(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor | None:
        queries, keys = pair(self, q_positions, k_positions, offset=offset)
        if queries.first is not None and keys.first is not None:  # known without asking a GPU
            lowest = keys.first - queries.first - len(queries) + 1
            self._check_offsets(lowest, lowest + len(queries) + len(keys) - 2)
        return super().bias_by_offset(queries, keys)

    def _check_offsets(self, lowest: float, highest: float) -> None:
        N = self.length
        if not 1 - N <= lowest <= highest <= N - 1:
            raise ValueError(
                f"offsets run from {lowest} to {highest}, but this table was built for length={N} "
                f"and has entries for {1 - N} to {N - 1}: build it with a larger length"
            )

    def extra_repr(self) -> str:
        return f"{self.n_heads}, {self.length}, std={self.std:g}"


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """``table[:, index]``, so ``[H, n]`` and any shape give ``[H, *index.shape]``; no wrapping."""
    return table.index_select(1, index.reshape(-1)).view(len(table), *index.shape)


METHODS = [
    Method(
        names={"clipped": ClippedBias, "table": TableBias},
        lesson="04_relative",
        page="relative-bias",
        title="Relative position bias: one number for each offset",
        says=(
            "A learned number is added to every score, and all pairs at the same distance share "
            "it. A full table ends at the longest text; the clipped one treats all far distances "
            "alike."
        ),
        where=(
            "q_i and k_j are the query at place i and the key at j, d is the width of a head, "
            "e_ij their score; b_h(r) is what head h adds for the offset r."
        ),
        words=("relative", "bias", "clipped"),
        code=(ClippedBias.of, look_up, RelativeBias.dense),
        make="ClippedBias(4, 12)",
        year=2018,
        arxiv="1803.02155",
        source="Clipping as in Shaw et al. 2018, §3.2, with numbers for vectors.",
        row=Row(
            name="Table, clipped",
            formula=(r"$q_i^\top k_j/\sqrt{d}+W_r[\,j-i+N-1\,]$", r"clipped: $b_{clip(j-i,\,k)}$"),
            parameters="(2N – 1)·H a layer\nclipped: (2k + 1)·H",
            learns="one per head and distance",
            cost="a line of 2L – 1 numbers\na head, or a matrix",
            longer="the table ends;\nclipped: steady",
            picture="clip",
        ),
        papers=("T5",),
        live="relative",
        params={"method": "clipped", "i": 16, "j": 12},
        glossary="relative-position-bias",
        claims="[Cc]lip|relative bias",
    ),
]
