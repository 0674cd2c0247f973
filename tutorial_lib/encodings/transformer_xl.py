r"""Transformer-XL's relative scores (Dai et al. 2019, §3.3).

.. math:: A_{ij} = \underbrace{q_i^\top k_j}_{(a)} + \underbrace{q_i^\top W_{k,R} R_{i-j}}_{(b)}
          + \underbrace{u^\top k_j}_{(c)} + \underbrace{v^\top W_{k,R} R_{i-j}}_{(d)}

(a) is attention itself, (b) asks for a distance depending on content, (c) favours a content and
(d) a distance, whatever the query. R is sinusoidal and has no parameters; W_{k,R}, u and v are
learned. The released code multiplies A by 1/√d. The paper's distance i − j is query minus key,
so it is −r here. R is a function of any number: keys may stand ahead of their query, and positions
may be fractions.

Nothing of size [L, L, d] is ever formed. Tokens in a row have few different distances: a query
meets each one once, and its row is then moved to its place (Appendix B, :func:`relative_shift`).
For any other positions, the sine and cosine of a difference, with :math:`w = W_{k,R}^\top (q_i + v)`,

.. math:: w^\top R_{i-j} = \mathrm{turn}(w, i)^\top R_{-j}

So w is turned by the angles of i, as RoPE turns a query, and then meets one vector per key.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import PositionalEncoding, check_heads, check_positive, check_std
from .method import Method, Row
from .positions import Where, pair, widest_float
from .rotary import turn
from .sinusoidal import frequencies


class TransformerXL(PositionalEncoding):
    """Terms (b), (c) and (d), inside the scale: it opens ``content_bias`` only.

    The paper has a W_{k,R} per layer, so give the model one encoding per layer. It has one u and one v
    for all layers, and so does the released PyTorch code. The TensorFlow code has a switch; its run on
    WikiText-103 has them per layer, as here. To share them, set ``other.u, other.v = first.u, first.v``.

    Args:
        n_heads: heads H; ``u`` and ``v`` are ``[H, d_head]``.
        head_dim: channels per head, d_head.
        dim: width of R, even; by default H·d_head. ``W_kR`` is ``[H, d_head, dim]``, without a bias.
        std: standard deviation of the initial parameters, 0.02 in the released code.

    Raises ValueError for sizes that are not positive integers, an odd ``dim``, or a bad ``std``.
    """

    def __init__(self, n_heads: int, head_dim: int, *, dim: int | None = None, std: float = 0.02):
        super().__init__()
        check_positive(n_heads=n_heads, head_dim=head_dim)
        dim = n_heads * head_dim if dim is None else dim
        check_positive(dim=dim)
        check_std(std)
        if dim % 2:
            raise ValueError(f"dim={dim}: it must be even, R has a sine and a cosine of each frequency")
        self.n_heads, self.head_dim, self.dim, self.std = n_heads, head_dim, dim, std
        self.W_kR = nn.Parameter(torch.randn(n_heads, head_dim, dim) * std)
        self.u = nn.Parameter(torch.randn(n_heads, head_dim) * std)
        self.v = nn.Parameter(torch.randn(n_heads, head_dim) * std)

    def R(self, distances: Tensor) -> Tensor:
        """The vectors ``[*distances.shape, dim]``, float64, float32 on MPS: all sines, then all cosines.

        The order is the released code's, and so are the frequencies: 10000^(−2t/dim), those of
        :func:`sinusoidal` with the layout ``"interleaved"``, not ``"concatenated"``.
        """
        angle = widest_float(distances)[..., None] * frequencies(self.dim, device=distances.device)
        return torch.cat([angle.sin(), angle.cos()], -1)

    def _sin_cos(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
        return self.R(positions).to(dtype).chunk(2, -1)

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor:
        queries, keys = pair(self, q_positions, k_positions, q, k, offset=offset)
        check_heads(self, q, self.head_dim, self.n_heads)
        W_kR, u, v = (p.to(q.dtype) for p in (self.W_kR, self.u, self.v))
        c: Tensor = (u.unflatten(0, (k.shape[1], -1)) @ k.mT).flatten(1, 2)  # keys may serve several heads
        q = q + v[:, None]
        line = queries.line_to(keys)
        if line is not None:
            R = self.R(torch.cat([-line, -line[-1:] - 1])).to(q.dtype)  # one column more, to be skipped
            b_d = relative_shift(q @ (W_kR @ R.mT), k.shape[-2])
        else:
            sin, cos = queries.once(self._sin_cos, queries.tensor, q.dtype)
            R = self.R(-widest_float(keys.tensor)).to(q.dtype)
            R = R if R.ndim == 2 else R[:, None]
            b_d = turn(q @ W_kR, cos, sin, "half") @ R.mT
        return c[:, :, None] + b_d

    def extra_repr(self) -> str:
        return f"{self.n_heads}, {self.head_dim}, dim={self.dim}, std={self.std:g}"


def relative_shift(line: Tensor, n_k: int) -> Tensor:
    """Row i of ``line [..., Lq, Lq + Lk]``, moved left by Lq − 1 − i: ``[..., Lq, Lk]``.

    Column w belongs to the offset w of a line that starts with the last query and the first key.
    In memory the rows lie one after the other: if you read them in rows that are one number shorter,
    each starts one place later. So nothing is copied; the last column is there to be skipped.

    >>> relative_shift(torch.arange(10).view(2, 5), 3)
    tensor([[1, 2, 3],
            [5, 6, 7]])
    """
    n_q, width = line.shape[-2:]
    rows: Tensor = line.flatten(-2)[..., n_q - 1 : -1].unflatten(-1, (n_q, width - 1))
    return rows[..., :n_k]


METHODS = [
    Method(
        names={"transformer-xl": TransformerXL},
        relative=True,
        lesson="deeper/04_memory",
        title="Transformer-XL: relative scores and a memory",
        says=(
            "A score has four terms, with sinusoids of the distance in place of positions. So the "
            "last segment can be kept as a memory: a distance is the same from any segment."
        ),
        where=(
            "A_ij is the score of query q_i and key k_j, and R_{i−j} the sinusoidal vector of their distance."
        ),
        words=("transformer-xl", "transformerxl", "recurrence"),
        code=(TransformerXL.content_bias, relative_shift),
        make="TransformerXL(4, 16)",
        year=2019,
        arxiv="1901.02860",
        row=Row(
            name="Transformer-XL",
            formula=(
                r"$q_i^\top k_j+q_i^\top W_R R_{i-j}+u^\top k_j+v^\top W_R R_{i-j}$",
                "$R$: sinusoids; the last states stay as a memory",
            ),
            parameters="$d_{model}^2+2\\,d_{model}$\na layer",
            learns="a matrix and two vectors a layer",
            cost="a second product\nfor each pair",
            longer="steady; a memory across\nsegments pays",
            later="steady",
            used_by="XLNet; speech:\nWav2Vec2-Conformer",
        ),
        papers=("Transformer-XL",),
        live="recurrence",
        glossary="segment-level-recurrence",
        claims="Transformer-XL",
    ),
]
