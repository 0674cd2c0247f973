r"""Forgetting attention: a decay that the text sets (Lin et al. 2025, Forgetting Transformer).

Each token says how much of what lies behind it is kept, by a forget gate f between 0 and 1, and a key fades
by every gate between it and the query (arXiv 2503.02130):

.. math:: f_l = \sigma(w^\top x_l + b), \qquad D_{ij} = \sum_{l=j+1}^{i} \log f_l, \qquad
          \mathrm{softmax}\big(q_i^\top k_j / \sqrt{d} + D_{ij}\big)

The query's own gate counts, the key's does not: D_ii = 0. With w = 0 all gates are σ(b), and D_ij is
log σ(b)·(i − j): ALiBi with the slope m = −log σ(b). What is new is that a gate may open or close with the
word: at f near 1 nothing is forgotten, and one gate near 0 closes a door behind all that came before.

**The gate reads the key of its head**, w·k_l + b, because a door has no token vectors. Without RoPE the key
is a linear function of x_l itself, so this is a gate on x_l that looks through W_k. The paper's gates read
x_l by weights of their own. Behind a :class:`Rotary` (put first in a ``Compose``) it reads the turned key.

The paper adds D to the *scaled* scores, and ``content_bias`` stands before the scale. So D is divided by the
scale here, and the encoding insists on the usual one, 1/√d.

**Causal only, and blind to positions:** it goes by the order of the tensor, in which the queries are the
last keys. A key ahead of the query gets 0. A key between j and i that a mask hides forgets all the same: an
encoding does not see masks. Padding on the left lies behind every j, so it changes nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from .base import PositionalEncoding, check_heads, check_positive, check_std
from .method import Method, Row
from .positions import Where, result_dtype


class Forgetting(PositionalEncoding):
    """A forget gate for each head, ``w [n_heads, head_dim]`` and ``b [n_heads]``.

    At first the gates are near 1/2, as in the released code: w is small and random, b is 0. Gates and their
    sums are float32 (float64 for float64 keys), whatever the dtype of the keys.

    Args:
        n_heads: heads of the queries. Where some share a key, each has a gate of its own on it.
        head_dim: channels per head d.
        std: standard deviation of the initial w.

    Raises ValueError for sizes that are not positive, a bad ``std``, queries of other heads, and more queries
    than keys.

    >>> gate = Forgetting(n_heads=1, head_dim=4, std=0)
    >>> k = torch.zeros(1, 1, 3, 4)
    >>> (gate.content_bias(k, k) * gate.scale)[0, 0].data  # log ½ for each step back
    tensor([[ 0.0000,  0.0000,  0.0000],
            [-0.6931,  0.0000,  0.0000],
            [-1.3863, -0.6931,  0.0000]])
    """

    by_place = True
    scale: float

    def __init__(self, n_heads: int, head_dim: int, *, std: float = 0.02):
        super().__init__()
        check_positive(n_heads=n_heads, head_dim=head_dim)
        check_std(std)
        self.n_heads, self.head_dim, self.std = n_heads, head_dim, std
        self.scale = head_dim**-0.5
        self.w = nn.Parameter(torch.randn(n_heads, head_dim) * std)
        self.b = nn.Parameter(torch.zeros(n_heads))

    def log_gates(self, k: Tensor) -> Tensor:
        """log f of each key and head, ``[B, H, Lk]``; ``k`` is ``[B, H_kv, Lk, D]``."""
        k = k.repeat_interleave(self.n_heads // k.shape[1], 1)
        dtype = result_dtype(k)
        w, b = self.w.to(dtype)[:, None], self.b.to(dtype)[:, None]
        return logsigmoid((k.to(dtype) * w).sum(-1) + b)

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor:
        check_heads(self, q, self.head_dim, self.n_heads)
        ahead = k.shape[-2] - q.shape[-2]
        if ahead < 0:
            raise ValueError(
                f"{type(self).__name__} takes the queries for the last keys, but q has {q.shape[-2]} tokens "
                f"and k {k.shape[-2]}: give it at least as many keys"
            )
        total = self.log_gates(k).cumsum(-1)
        D = (total[..., ahead:, None] - total[..., None, :]).tril(ahead)  # Σ up to i minus Σ up to j
        return (D / self.scale).to(q.dtype)

    def extra_repr(self) -> str:
        return f"{self.n_heads}, {self.head_dim}, std={self.std:g}"


METHODS = [
    Method(
        names={"forgetting": Forgetting},
        relative=True,
        lesson="10_frontier",
        title="Forgetting attention: a decay that the text sets",
        says=(
            "Each token says, by a gate between 0 and 1, how much of what lies behind it is kept. "
            "A key fades by every gate between it and the query."
        ),
        where=(
            "f_l is the gate of token x_l: w and b are learned, and σ keeps it between 0 and 1. "
            "D_ij is added to the score of query q_i and key k_j; d is the width of a head."
        ),
        words=("forgetting", "forget", "gate"),
        code=(Forgetting.log_gates, Forgetting.content_bias),
        make="Forgetting(4, 16)",
        see="One gate that closes makes all before it fade.",
        year=2025,
        arxiv="2503.02130",
        row=Row(
            name="Forgetting",
            formula=(
                (r"$q_i^\top k_j/\sqrt{d}+\log f_{j+1}+\cdots+\log f_i,\qquad f_l=\sigma(w^\top " "x_l+b)$"),
                "gates that read nothing are ALiBi",
            ),
            parameters="(d + 1)·H a layer",
            learns="a vector and a number per head",
            cost="a gate for each key,\na number for each pair",
            longer="steady",
        ),
        papers=("Forgetting",),
        claims="[Ff]orget",
    ),
]
