r"""xPos: RoPE whose pairs also fade with distance (Sun et al. 2022).

Besides turning, each pair i of a query shrinks with its position, and that of a key grows (ζ < 1):

.. math:: \tilde q_m = \zeta_i^{m/512}\, R_m q_m, \qquad \tilde k_n = \zeta_i^{-n/512}\, R_n k_n, \qquad
          \zeta_i = \frac{i/(d/2) + \gamma}{1 + \gamma}, \quad \gamma = 0.4

so the part of pair i in a score is multiplied by :math:`\zeta_i^{(m-n)/512} \le 1` for a key in the
past. It changes magnitudes; it does not rescale positions (that is position interpolation).

**Causal only.** For a key ahead, n > m, the factor is above 1 and grows without bound: ζ₀ = 2/7,
so 4096 positions ahead pair 0 counts 22 519 times as much. In an encoder the far future drowns the rest.

As written, :math:`\zeta_0^{-n/512}` passes the largest float16 at n ≈ 4532, with k of size 1. Only
m − n matters, so any common position c may be subtracted from both; here it is the middle between the
first query and the last key of each row. Then no factor grows with the keys that lie further back, and a
few queries may look back as far as they like. A cache must hold unturned keys. Whatever c is, the
first query and the last key have a score, too, though no query looks ahead, and it grows with the text. So
a pass over more positions than the dtype can hold must be cut into parts.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .base import check_above_0
from .method import Method, Row
from .positions import Device, Positions, Where, bounds, pair, result_dtype, widest_float
from .rotary import Angles, Rotary, turn


class XPos(Rotary):
    """Rotation and magnitude on queries and keys. Use it under a causal mask only.

    Args:
        head_dim, base, layout, frequencies: as in :class:`Rotary`; the paper's code is
            ``"interleaved"``.
        gamma: γ, above 0; larger means a slower decay.
        scale_base: the positions over which pair i fades by ζ_i, 512 in the paper.

    Raises ValueError as :class:`Rotary` does, for ``gamma`` or ``scale_base`` not above 0, and for positions
    so far apart in one call that their factors do not fit the dtype of the queries.

    >>> XPos(4).zeta()
    tensor([0.2857, 0.6429], dtype=torch.float64)
    """

    def __init__(
        self,
        head_dim: int,
        *,
        base: float | None = None,
        layout: str = "interleaved",
        frequencies: Angles | None = None,
        gamma: float = 0.4,
        scale_base: float = 512.0,
    ):
        super().__init__(head_dim, base=base, layout=layout, frequencies=frequencies)
        check_above_0(gamma=gamma, scale_base=scale_base)
        if self.axes > 1:
            raise ValueError(f"frequencies={frequencies}: xPos fades along one axis, so give Frequencies(…)")
        self.gamma, self.scale_base = gamma, scale_base

    def zeta(self, device: Device = None) -> Tensor:
        """ζ_i of each pair that turns, float64 ``[d/2]`` (float32 on MPS)."""
        d = self.frequencies.d
        i = widest_float(torch.arange(d // 2, device=device))
        return (i / (d / 2) + self.gamma) / (1 + self.gamma)

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        queries, keys = pair(self, q_positions, k_positions, q, k, offset=offset)
        turned = super().rotate(q, k, queries, keys)
        if not (len(queries) and len(keys)):
            return turned
        of_q, of_k = keys.once(self.magnitudes, queries.tensor, keys.tensor, result_dtype(q))
        grown = self._grow(turned[0], of_q), self._grow(turned[1], of_k)
        self._check_size(q, k, queries, keys, grown)
        return grown

    def _check_size(
        self, q: Tensor, k: Tensor, queries: Positions, keys: Positions, grown: tuple[Tensor, Tensor]
    ) -> None:
        """Raise ValueError unless scores of ``grown``, made of ``q`` and ``k``, fit their dtype."""
        # a score is the sum over all channels of products of two such numbers, in float32 or wider
        most = math.sqrt(torch.finfo(result_dtype(q)).max / self.head_dim)
        for x, y in zip((q, k), grown, strict=True):
            ends = bounds(y)
            if ends is not None and not max(-ends[0], ends[1]) < most and x.isfinite().all():
                far = (keys.tensor.amax(-1) - queries.tensor.amin(-1)).max().item()
                raise ValueError(
                    f"the positions of the first query and the last key are {far:,.0f} apart, too far for "
                    f"{type(self).__name__} in {y.dtype}: give fewer queries at once, together with all keys "
                    "before them (a text in parts, with a Cache), or a wider dtype"
                )

    def magnitudes(
        self, q_positions: Tensor, k_positions: Tensor, dtype: torch.dtype = torch.float32
    ) -> tuple[Tensor, ...]:
        """What each pair of each query, and of each key, is multiplied by: ``[*positions.shape, d/2]``."""
        m, n = widest_float(q_positions), widest_float(k_positions)
        c = (m.amin(-1, keepdim=True) + n.amax(-1, keepdim=True)) / 2
        zeta = self.zeta(n.device)
        return tuple((zeta ** (p[..., None] / self.scale_base)).to(dtype) for p in (m - c, c - n))

    def _grow(self, x: Tensor, magnitude: Tensor) -> Tensor:
        """Each pair made ``magnitude`` times as long, and turned by no angle."""
        return turn(x, magnitude, torch.zeros_like(magnitude), self.layout)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, gamma={self.gamma:g}, scale_base={self.scale_base:g}"


METHODS = [
    Method(
        names={"xpos": XPos},
        relative=True,
        lesson="deeper/06_xpos",
        title="xPos: RoPE that fades",
        says=(
            "RoPE that also shrinks a query with its position and lets a key grow with it, so "
            "that far keys count less. It is meant for decoders."
        ),
        where=(
            "R_m turns the query q_m at place m as RoPE does, R_n the key k_n at n; ζ_i, never "
            "above 1, is how much pair i shrinks, γ sets where ζ begins, and d is the number of "
            "channels."
        ),
        words=("xpos",),
        code=(XPos.zeta, XPos.rotate, XPos.magnitudes, XPos._grow),
        make="XPos(16, scale_base=16.0)",
        see="Waves as in RoPE, each crest below the one before.",
        year=2022,
        arxiv="2212.10554",
        row=Row(
            name="xPos",
            formula=(
                r"$\tilde q_m=\zeta_t^{\,m/512}R_m q,\qquad \tilde k_n=\zeta_t^{-n/512}R_n k$",
                r"$\zeta_t=(2t/d+0.4)\,/\,1.4$",
            ),
            parameters="0",
            cost="as RoPE, and a factor\nfor each channel",
            longer="loses half as much as\nRoPE; decoders only",
            later="loses half as much as RoPE",
            picture="fade",
        ),
        papers=("xPos",),
        glossary="xpos",
        claims="xPos",
    ),
]
