r"""Hybrids: absolute and relative position in one score.

Two forms are popular (Q, K of token i and j, absolute vector PE_i, relative part r_ij):

.. math:: e_{ij} = \frac{Q_i K_j^\top}{\sqrt{d}} + PE_i + r_{ij}, \qquad
          e_{ij} = \frac{Q_i K_j^\top}{\sqrt{d}} + W_o\,[PE_i;\, r_{ij}]

As written, the first adds a vector to a number. :class:`HybridSum` and :class:`HybridConcat` let
each head read the vector first. But whatever number a head reads from PE_i is the same for all keys,
and it cancels. With s_ij the content term,

.. math:: \begin{aligned}
          \text{sum:} \quad & e_{ij} = s_{ij} + a_i + r_{ij}, && a_i = w \cdot PE_i \\
          \text{concat:} \quad & e_{ij} = s_{ij} + a_i + W_r\,r_{ij}, && a_i = W_a\,PE_i,
          \quad W_o = [W_a\; W_r] \\
          \text{both:} \quad & \frac{\exp(e_{ij})}{\sum_l \exp(e_{il})}
          = \frac{\exp(a_i)\,\exp(e_{ij} - a_i)}{\exp(a_i) \sum_l \exp(e_{il} - a_i)}
          && \text{and } \exp(a_i) \text{ cancels,} \end{aligned}

so both equal the relative bias alone, and nothing absolute is ever learned.

What does work:

- absolute vectors on the input, beside a relative bias: that is ``Compose(Learned(512, 64), bias)``
  and needs no class;
- the vector of the *key* (:class:`KeySide`), which differs from key to key;
- a non-linear layer over [PE_i; r_ij] (:class:`HybridConcat` with ``hidden``);
- queries and keys made of positions (:class:`TUPE`, Ke, He & Liu 2021).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import Absolute, PositionalEncoding, check_part, check_positive, common_axes
from .method import Method, Row
from .positions import Where, pair
from .relative import RelativeBias


class HybridSum(PositionalEncoding):
    """``w_h · PE_i + r_ij``: each head reads PE_i with a vector w_h. Equal to ``relative`` alone.

    The case N = 4, i = 1, j = 2, with one head and a table of 2N − 1 relative scalars:

    >>> from tutorial_lib.encodings import Sinusoidal, TableBias, sinusoidal
    >>> hybrid = HybridSum(Sinusoidal(8), TableBias(n_heads=1, length=4))
    >>> PE_1, r_12 = sinusoidal(torch.tensor(1), 8), hybrid.relative.W_r[0, 2 - 1 + 4 - 1]
    >>> p = torch.arange(4)
    >>> torch.allclose(hybrid.bias(p, p)[0, 1, 2], hybrid.w(PE_1) + r_12)
    True
    >>> torch.allclose(hybrid.bias(p, p).softmax(-1), hybrid.relative.bias(p, p).softmax(-1))
    True

    Args:
        position: gives PE, such as ``Sinusoidal(64)`` or ``Learned(512, 64)``.
        relative: gives r, such as ``TableBias(8, 512)``, and the number of heads.

    Raises TypeError for parts of another kind.
    """

    def __init__(self, position: Absolute, relative: RelativeBias):
        super().__init__()
        check_part(self, position, Absolute)
        check_part(self, relative, RelativeBias)
        self.position, self.relative, self.scale = position, relative, relative.scale
        self.axes = common_axes((position, relative))
        self.w = nn.Linear(position.dim, relative.n_heads, bias=False)

    def read(self, positions: Where) -> Tensor:
        """``w_h · PE`` of each position: ``[H, L]``, or ``[B, H, L]`` if rows have their own."""
        read: Tensor = self.w(self.position.vectors(positions).to(self.w.weight.dtype))
        return read.mT

    def bias(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor:
        q_positions, k_positions = pair(self, q_positions, k_positions, offset=offset)
        return self.read(q_positions)[..., :, None] + self.relative.bias(q_positions, k_positions)


class KeySide(HybridSum):
    """``w_h · PE_j + r_ij``: the sum with the vector of the key, which does not cancel.

    A head can prefer places ("the first token") whatever the query. Arguments as in
    :class:`HybridSum`.
    """

    def bias(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor:
        q_positions, k_positions = pair(self, q_positions, k_positions, offset=offset)
        return self.read(k_positions)[..., None, :] + self.relative.bias(q_positions, k_positions)


class HybridConcat(PositionalEncoding):
    """``W_o [PE_i; r_ij]``; with ``hidden`` a small network, ``W_2 relu(W_o [PE_i; r_ij] + b)``.

    Here r_ij is the vector of the numbers that ``relative`` has for the pair, one per head, so W_o
    may mix them. W_o [PE_i; r_ij] is computed as W_a PE_i + W_r r_ij: one vector per query, not per
    pair. Without ``hidden`` this equals the bias W_r r_ij alone. With it, PE_i decides which hidden
    units a pair reaches; that costs ``hidden`` numbers per pair.

    Args:
        position, relative: as in :class:`HybridSum`.
        hidden: width of the hidden layer; None for the linear form.

    Raises TypeError for parts of another kind, ValueError for a ``hidden`` that is not positive.
    """

    def __init__(self, position: Absolute, relative: RelativeBias, *, hidden: int | None = None):
        super().__init__()
        check_part(self, position, Absolute)
        check_part(self, relative, RelativeBias)
        if hidden is not None:
            check_positive(hidden=hidden)
        self.position, self.relative, self.scale = position, relative, relative.scale
        self.axes = common_axes((position, relative))
        self.hidden, n_heads = hidden, relative.n_heads
        self.W_o = nn.Linear(position.dim + n_heads, hidden or n_heads, bias=hidden is not None)
        self.W_2 = nn.Linear(hidden, n_heads, bias=False) if hidden is not None else None

    def bias(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor:
        q_positions, k_positions = pair(self, q_positions, k_positions, offset=offset)
        W_a, W_r = self.W_o.weight.tensor_split([self.position.dim], dim=1)
        PE = self.position.vectors(q_positions).to(W_a.dtype)
        r = self.relative.bias(q_positions, k_positions).movedim(-3, -1).to(W_r.dtype)  # [.., Lq, Lk, H]
        e = F.linear(PE, W_a, self.W_o.bias)[..., None, :] + F.linear(r, W_r)
        if self.W_2 is not None:
            e = self.W_2(e.relu())
        return e.movedim(-1, -3)

    def extra_repr(self) -> str:
        return f"hidden={self.hidden}"


class TUPE(PositionalEncoding):
    r"""Untied positional encoding: positions have queries and keys of their own (Ke et al. 2021, §3).

    .. math:: \alpha_{ij} = \tfrac{1}{\sqrt{2d}} (x_i W^Q)(x_j W^K)^\top
              + \tfrac{1}{\sqrt{2d}} (p_i U^Q)(p_j U^K)^\top + b_{j-i} \tag{7, 8}

    Eq. 7 is without b, eq. 8 with it. Tokens and positions never meet in one product. All layers
    share U. The factor 1/√(2d) of both terms is the attribute ``scale``. As in the released code, p
    goes through a LayerNorm first; that code also has biases in U^Q and U^K, the paper and this class do
    not.

    ``untie_cls`` treats position 0 as a [CLS] token, which should see the whole sentence:

    .. math:: \mathrm{reset}_\theta(v, i, j) =
              \begin{cases} v_{ij} & i \ne 1,\ j \ne 1 \\
              \theta_1 & i = 1 \\ \theta_2 & i \ne 1,\ j = 1 \end{cases} \qquad (9)

    Here v is the two position terms (eq. 10, 11; the paper counts from 1). θ_1 is the same for all keys
    of [CLS], so a softmax does not see it; here it is 0. θ_2 is one learned number per head, 0 at
    the start.

    Args:
        position: gives p, the same for all heads.
        n_heads, head_dim: heads H and channels per head d; U^Q and U^K map p to H·d channels.
        relative: gives b ("TUPE-R"); None for "TUPE-A". Its own ``scale`` is not used.
        untie_cls: whether to reset the terms of position 0.

    Raises TypeError for parts of another kind, ValueError for sizes that are not positive or a
    ``relative`` with another number of heads.
    """

    scale: float

    def __init__(
        self,
        position: Absolute,
        n_heads: int,
        head_dim: int,
        *,
        relative: RelativeBias | None = None,
        untie_cls: bool = False,
    ):
        super().__init__()
        check_part(self, position, Absolute)
        check_positive(n_heads=n_heads, head_dim=head_dim)
        if relative is not None:
            check_part(self, relative, RelativeBias)
            if relative.n_heads != n_heads:
                raise ValueError(f"n_heads={n_heads}, but relative={relative}: they must agree")
        self.axes = common_axes(part for part in (position, relative) if part is not None)
        if untie_cls and self.axes > 1:
            raise ValueError(
                f"untie_cls=True: [CLS] is position 0, and among positions of {self.axes} axes there is none"
            )
        self.position, self.relative, self.untie_cls = position, relative, untie_cls
        self.n_heads, self.head_dim, self.scale = n_heads, head_dim, (2 * head_dim) ** -0.5
        self.norm = nn.LayerNorm(position.dim)
        self.U_Q = nn.Linear(position.dim, n_heads * head_dim, bias=False)
        self.U_K = nn.Linear(position.dim, n_heads * head_dim, bias=False)
        self.theta_2 = nn.Parameter(torch.zeros(n_heads)) if untie_cls else None

    def project(self, positions: Where, U: nn.Linear) -> Tensor:
        """``p U`` of each position and head: ``[H, L, d]`` or ``[B, H, L, d]``."""
        p = self.norm(self.position.vectors(positions).to(U.weight.dtype))
        projected: Tensor = U(p).unflatten(-1, (self.n_heads, self.head_dim))
        return projected.transpose(-2, -3)

    def bias(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor:
        q_positions, k_positions = pair(self, q_positions, k_positions, offset=offset)
        v = self.project(q_positions, self.U_Q) @ self.project(k_positions, self.U_K).mT * self.scale
        if self.relative is not None:
            v = v + self.relative.bias(q_positions, k_positions)
        if self.theta_2 is not None:
            to_cls = (k_positions.tensor == 0)[..., None, None, :]
            from_cls = (q_positions.tensor == 0)[..., None, :, None]
            v = torch.where(to_cls, self.theta_2[:, None, None].to(v.dtype), v).masked_fill(from_cls, 0.0)
        return v

    def extra_repr(self) -> str:
        return f"{self.n_heads}, {self.head_dim}, untie_cls={self.untie_cls}"


METHODS = [
    Method(
        names={"hybrid-sum": HybridSum, "hybrid-concat": HybridConcat, "key-side": KeySide},
        lesson="05_hybrid",
        page="hybrid",
        title="Hybrids: absolute and relative at once",
        says=(
            "Absolute and relative positions can be combined, but the popular formula cancels: "
            "what is the same for all keys changes no weight. Absolute vectors on the input do "
            "work."
        ),
        where=(
            "Q_i and K_j are the query at i and the key at j, d is their width, e_ij their score; "
            "PE_i is the vector of place i, r_ij belongs to the distance, and W_o is learned."
        ),
        words=("hybrid", "hybrids"),
        code=(HybridSum.read, HybridSum.bias, KeySide.bias, HybridConcat.bias),
        make="KeySide(Learned(64, 64), T5Bias(4))",
        source=(
            "The two popular formulas come from no paper that we found; what works is Ke, He & Liu 2021."
        ),
        papers=("TUPE and other hybrids",),
        live="hybrid",
        glossary="hybrid-position-encoding",
        claims="[Hh]ybrid|both questions",
    ),
    Method(
        names={"tupe": TUPE},
        lesson="05_hybrid",
        title="TUPE: positions with queries and keys of their own",
        says=(
            "Words and places are never multiplied with each other: a position has a query and a "
            "key of its own, made once for all layers, and their product is added to the score."
        ),
        where=(
            "α_ij is the score of query i and key j: x_i is the token at place i, p_i the vector "
            "of that place. W makes queries and keys of tokens, U of places; d is their width, "
            "and b a relative bias."
        ),
        words=("tupe",),
        code=(TUPE.project, TUPE.bias),
        make="TUPE(Sinusoidal(64), 4, 16)",
        see="Words ask words, places ask places, and the two never meet.",
        year=2021,
        arxiv="2006.15595",
        equation=TUPE,
        row=Row(
            name="TUPE",
            formula=(
                r"$\frac{1}{\sqrt{2d}}(x_iW^Q)(x_jW^K)^\top+\frac{1}{\sqrt{2d}}(p_iU^Q)(p_jU^K)^\top+b_{j-i}$",
                "absolute and relative, words and places untied",
            ),
            parameters="two matrices for all\nlayers; those of p and b",
            learns="two matrices for all layers",
            cost="one product of\npositions for all layers",
            longer="the absolute part\ncan break",
            used_by="TUPE-R, a BERT",
        ),
        papers=("TUPE and other hybrids",),
        glossary="hybrid-position-encoding",
        claims="TUPE",
    ),
]
