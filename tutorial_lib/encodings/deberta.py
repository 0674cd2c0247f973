r"""DeBERTa's disentangled attention (He et al. 2020, §3.1).

.. math:: \delta(i, j) = \begin{cases} 0 & i - j \le -k \\ 2k - 1 & i - j \ge k \\
          i - j + k & \text{else} \end{cases} \qquad (3)

.. math:: \tilde A_{ij} = Q^c_i K^{c\top}_j + Q^c_i K^{r\top}_{\delta(i,j)}
          + K^c_j Q^{r\top}_{\delta(j,i)}, \qquad Q_r = P W_{q,r}, \quad K_r = P W_{k,r} \tag{4}

The softmax is of Ã/√(3d). The second term asks what the query thinks of a distance, the third what
the key thinks of it; P has one vector for each of 2k distances. The paper counts i − j, so
δ(i, j) = clip(k − r) with r = j − i, and δ(j, i) = clip(k + r).

Only 2k different vectors exist, so a query (or key) meets each of them once, and the product of a
pair is looked up (§3.1.1): nothing of size [L, L, d] is ever formed.

DeBERTa-v2 and v3 have **logarithmic buckets** of distances, so that 2k vectors reach farther (He et al.
2021, released code). With n = |i − j|, B buckets on a side, m = B/2 and a largest distance D,

.. math:: \mathrm{bucket} = \mathrm{sign}(i - j) \cdot
          \begin{cases} n & n \le m \\
          m + \Big\lceil \frac{\ln(n/m)}{\ln((D-1)/m)}\,(m - 1) \Big\rceil & \text{else} \end{cases}

The bucket takes the place of i − j, and B that of k.

The released code takes the row δ(i, j) in the third term as well, though the paper explains why it
should be δ(j, i). ``released=True`` does as the code, and its checkpoints, do.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import PositionalEncoding, check_heads, check_positive, check_std
from .method import Method
from .offsets import between_entries, integer_offsets, nan_where
from .positions import Where, pair


def log_bucket(r: Tensor, n_buckets: int, max_distance: int) -> Tensor:
    """The bucket of each whole offset, with its sign: exact up to ``n_buckets // 2``, wider beyond.

    >>> log_bucket(torch.tensor([0, -3, 4, 5, 6, 30, -31, 100]), n_buckets=8, max_distance=32)
    tensor([ 0, -3,  4,  5,  5,  7, -7,  9])
    """
    mid, n = n_buckets // 2, r.abs()
    widest = torch.full((), (max_distance - 1) / mid, device=r.device, dtype=torch.float32).log()
    far = mid + ((n.clamp(min=mid).float() / mid).log() / widest * (mid - 1)).ceil().long()
    return torch.where(n <= mid, r, r.sign() * far)


class DeBERTa(PositionalEncoding):
    """Content-to-position and position-to-content terms, inside the factor 1/√(3d).

    The paper shares P over all layers; the released code has the two projections once per layer. Here
    one encoding serves all layers, projections included.

    Args:
        n_heads, head_dim: heads H and channels per head d. P is ``[2k, H·d]``, with buckets ``[2B, H·d]``.
        max_distance: k, 512 in the paper; with buckets D; soon beyond it, all distances share one.
        n_buckets: B, 256 in DeBERTa-v2 and v3 (``position_buckets``); None for no buckets, as in the paper.
        released: the third term as in the released code.
        std: standard deviation of the initial P.

    Raises ValueError for sizes that are not positive, a ``max_distance`` that exact buckets reach already, a
    bad ``std``, fractional offsets, or queries of another shape.
    """

    def __init__(
        self,
        n_heads: int,
        head_dim: int,
        max_distance: int,
        *,
        n_buckets: int | None = None,
        released: bool = False,
        std: float = 0.02,
    ):
        super().__init__()
        check_positive(n_heads=n_heads, head_dim=head_dim, max_distance=max_distance)
        check_std(std)
        if n_buckets is not None:
            check_positive(n_buckets=n_buckets)
            if not 1 <= n_buckets // 2 < max_distance - 1:
                raise ValueError(
                    f"n_buckets={n_buckets}, max_distance={max_distance}: give at least 2 buckets, and a "
                    f"distance above {n_buckets // 2 + 1}, since half of the buckets are exact"
                )
        self.n_heads, self.head_dim, self.max_distance = n_heads, head_dim, max_distance
        self.n_buckets, self.span = n_buckets, max_distance if n_buckets is None else n_buckets
        self.released, self.std, self.scale = released, std, (3 * head_dim) ** -0.5
        self.P = nn.Parameter(torch.randn(2 * self.span, n_heads * head_dim) * std)
        self.W_qr = nn.Linear(n_heads * head_dim, n_heads * head_dim, bias=False)
        self.W_kr = nn.Linear(n_heads * head_dim, n_heads * head_dim, bias=False)

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor:
        queries, keys = pair(self, q_positions, k_positions, q, k, offset=offset)
        H, d, span = self.n_heads, self.head_dim, self.span
        check_heads(self, q, d, H)
        Q_r, K_r = (
            W(self.P).unflatten(-1, (H, d)).transpose(0, 1).to(q.dtype) for W in (self.W_qr, self.W_kr)
        )
        r = queries.offsets_to(keys)
        r = r if r.ndim == 2 else r[:, None]
        missing, r = between_entries(r), integer_offsets(r)
        r = r if self.n_buckets is None else log_bucket(r, self.n_buckets, self.max_distance)
        delta_ij = (span - r).clamp(0, 2 * span - 1)
        delta_ji = delta_ij if self.released else (span + r).clamp(0, 2 * span - 1)

        k = k.repeat_interleave(H // k.shape[1], 1)
        c2p, p2c = q @ K_r.mT, (k @ Q_r.mT).mT  # [B, H, Lq, 2k] and [B, H, 2k, Lk]
        pairs = (*q.shape[:-1], k.shape[-2])
        c2p, p2c = c2p.gather(-1, delta_ij.expand(pairs)), p2c.gather(-2, delta_ji.expand(pairs))
        return nan_where(missing, c2p + p2c)

    def extra_repr(self) -> str:
        buckets = "" if self.n_buckets is None else f"n_buckets={self.n_buckets}, "
        return (
            f"{self.n_heads}, {self.head_dim}, {self.max_distance}, {buckets}released={self.released}, "
            f"std={self.std:g}"
        )


METHODS = [
    Method(
        names={"deberta": DeBERTa},
        relative=True,
        lesson="deeper/05_evidence",
        title="DeBERTa: disentangled attention",
        says=(
            "A score gets two more terms: what the query thinks of the distance, and what the key "
            "thinks of it. Both read one table of distances."
        ),
        where=(
            "Q^c and K^c are queries and keys of the words, Q^r and K^r those of the distances, "
            "which the matrices W_{q,r} and W_{k,r} make of a learned table P. Ã_ij is the score of "
            "query i and key j; δ(i, j) is the row of the table for them, and k the distance from "
            "where all are one."
        ),
        words=("deberta", "disentangled"),
        code=(DeBERTa.content_bias,),
        make="DeBERTa(4, 16, 12)",
        see="One term follows the query along its row, the other the key down its column.",
        year=2020,
        arxiv="2006.03654",
        papers=("DeBERTa",),
        claims="DeBERTa",
    ),
]
