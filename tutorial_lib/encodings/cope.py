r"""CoPE, contextual position encoding (Golovneva et al. 2024).

A query counts the keys that matter to it, back from itself, instead of all of them:

.. math:: g_{ij} = \sigma(q_i^\top k_j), \qquad p_{ij} = \sum_{l=j}^{i} g_{il}, \qquad
          a_{ij} = \mathrm{softmax}_j\big(q_i^\top (k_j + e[p_{ij}])\big)

With all gates at 1, p_ij = i − j + 1: a relative position. With gates open at full stops only, it is
a number of sentences. Between whole numbers e is interpolated; that is linear, so it is done on
the products z_i[p] = q_i · e[p]:

.. math:: z_i[p] = (p - \lfloor p \rfloor)\, z_i[\lceil p \rceil]
          + (1 - p + \lfloor p \rfloor)\, z_i[\lfloor p \rfloor]

As in the released code, q_i·k_j and z_i are both divided by √d, and so is the argument of σ.

**Causal only, and blind to positions:** a query counts back over the order of the tensor, in which
the queries are the last keys, and never ahead of itself; a key ahead has p = 0. A key between
j and i that a mask hides is counted all the same: an encoding does not see masks. Padding on the
left lies behind every j, so it changes nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import PositionalEncoding, check_heads, check_positive, check_std
from .method import Method, Row
from .positions import Where, result_dtype


class CoPE(PositionalEncoding):
    """Learned vectors e[0 … n_positions − 1] at contextual positions, shared by all heads.

    Counts above n_positions − 1 are read as that. Gates and counts are float32 (float64 for float64
    queries), whatever the dtype of the queries.

    Args:
        head_dim: channels per head d; ``e`` is ``[n_positions, d]``.
        n_positions: how far a query can count, 0 included.
        std: standard deviation of the initial vectors; 0, as in the released code, is NoPE at first.

    Raises ValueError for sizes that are not positive, a bad ``std``, or queries of another width.
    """

    by_place = True

    def __init__(self, head_dim: int, n_positions: int, *, std: float = 0.0):
        super().__init__()
        check_positive(head_dim=head_dim, n_positions=n_positions)
        check_std(std)
        self.head_dim, self.n_positions, self.std = head_dim, n_positions, std
        self.e = nn.Parameter(torch.randn(n_positions, head_dim) * std)

    def counts(self, q: Tensor, k: Tensor) -> Tensor:
        """p_ij of every pair, ``[B, H, Lq, Lk]``."""
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        gates: Tensor = (q @ k.mT * self.head_dim**-0.5).to(result_dtype(q)).sigmoid()
        gates = gates.tril(k.shape[-2] - q.shape[-2])  # the queries are the last keys
        p = gates.flip(-1).cumsum(-1).flip(-1)
        return p.clamp(max=self.n_positions - 1)

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor:
        check_heads(self, q, self.head_dim)
        p = self.counts(q, k)
        z = q @ self.e.to(q.dtype).T  # [B, H, Lq, n_positions]
        below, above = z.gather(-1, p.floor().long()), z.gather(-1, p.ceil().long())
        share = p - p.floor()
        return (share * above + (1 - share) * below).to(q.dtype)

    def extra_repr(self) -> str:
        return f"{self.head_dim}, {self.n_positions}, std={self.std:g}"


METHODS = [
    Method(
        names={"cope": CoPE},
        relative=True,
        lesson="10_frontier",
        title="CoPE: positions that count what matters",
        says=(
            "A query does not count tokens but the keys that matter to it, by a gate between 0 "
            "and 1 for each. With gates that open at full stops, it counts sentences."
        ),
        where=(
            "q_i and k_j are query and key. g_ij is the gate, which σ keeps between 0 and 1; "
            "p_ij, the sum of all gates l from key to query, is the position, e[p] a learned "
            "vector for it, and a_ij the weight."
        ),
        words=("cope", "contextual"),
        code=(CoPE.counts, CoPE.content_bias),
        make="CoPE(16, 64)",
        see="With gates at full stops, positions count sentences.",
        year=2024,
        arxiv="2405.18719",
        row=Row(
            name="CoPE",
            formula=(
                (
                    r"$q_i^\top(k_j+e[p_{ij}]),\qquad p_{ij}=\sigma(q_i^\top "
                    r"k_j)+\cdots+\sigma(q_i^\top k_i)$"
                ),
                "between whole numbers $e$ is interpolated",
            ),
            parameters="a vector of width d\nfor each count",
            learns="a vector for each count",
            cost="a count for each pair",
            longer="rises",
        ),
        papers=("CoPE",),
        claims="CoPE",
    ),
]
