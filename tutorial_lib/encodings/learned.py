r"""Learned position embedding: a table of parameters, one row per position.

.. math:: h_i = e_i + P_i, \qquad P \in \mathbb{R}^{L_{\max} \times d}

Gehring et al. 2017; BERT (Devlin et al. 2018, §3) and GPT-1/2 use it. GPT-2 initialises the table
with standard deviation 0.01, BERT with 0.02.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import Absolute, check_positive, check_std
from .method import Method, Row
from .offsets import nan_where
from .positions import Where, at, widest_float


class Learned(Absolute):
    """Adds row ``P[position]`` to the token vectors.

    A fractional position lies on the straight line between its two neighbouring rows. A position
    outside ``0 … max_length − 1`` has no row: it raises ValueError, and never wraps around.

    Args:
        max_length: number of rows, that is, of positions that exist.
        dim: width of the token vectors.
        std: standard deviation of the initial rows. Next to token vectors of std 0.02, std 1
            drowns the token.

    Raises ValueError for sizes that are not positive, or a bad ``std``.
    """

    def __init__(self, max_length: int, dim: int, *, std: float = 0.02):
        super().__init__()
        check_positive(max_length=max_length, dim=dim)
        check_std(std)
        self.max_length, self.dim, self.std = max_length, dim, std
        self.table = nn.Parameter(torch.randn(max_length, dim) * std)

    def vectors(self, positions: Where, *, offset: int = 0) -> Tensor:
        its, last, missing = at(self, positions, offset=offset), self.max_length - 1, None
        p, ends = its.tensor.to(self.table.device), its.bounds()
        if ends is None:  # a NaN is neither above nor below
            p = widest_float(p) if p.is_floating_point() else p
            missing = ~((p >= 0) & (p <= last))[..., None]
            p = p.clamp(0, last).nan_to_num()
        elif not 0 <= ends[0] <= ends[1] <= last:
            raise ValueError(
                f"positions run from {ends[0]} to {ends[1]}, but this learned table has rows "
                f"0 to {last}: build it with a larger max_length, or stretch it with resized(new_length)"
            )
        return nan_where(missing, self._rows(p))

    def _rows(self, positions: Tensor) -> Tensor:
        if not positions.is_floating_point():
            return F.embedding(positions.long(), self.table)
        below = positions.floor().long()
        above = (below + 1).clamp(max=self.max_length - 1)
        return torch.lerp(
            F.embedding(below, self.table),
            F.embedding(above, self.table),
            (positions - below)[..., None].to(self.table.dtype),
        )

    def resized(self, new_length: int) -> Learned:
        """The same table stretched over ``new_length`` rows by linear interpolation.

        The first and the last row stay at the two ends, so new row ``i`` is old position
        ``i · (max_length − 1) / (new_length − 1)``.
        """
        check_positive(new_length=new_length)
        other = Learned(new_length, self.dim, std=self.std).to(self.table)
        old = torch.linspace(0, self.max_length - 1, new_length, dtype=torch.float32)
        with torch.no_grad():
            other.table.copy_(self.vectors(old.clamp(max=self.max_length - 1)))
        return other

    def extra_repr(self) -> str:
        return f"{self.max_length}, {self.dim}, std={self.std:g}"


METHODS = [
    Method(
        names={"learned": Learned},
        lesson="03_learnable",
        title="Learned position table",
        says=(
            "Each position owns a row of a table, trained like a word embedding and added to the "
            "token vectors. It can learn any pattern, and it ends at its last row."
        ),
        where=(
            "e_i is the vector of the token at place i and h_i what the first layer gets. P is "
            "the table: L_{max} rows of d numbers."
        ),
        words=("learned", "learnable", "table", "embedding"),
        code=(Learned.__init__, Learned._rows, Absolute.embed),
        make="Learned(64, 64)",
        year=2017,
        arxiv="1705.03122",
        source="Gehring et al. 2017, §3.1; BERT: Devlin et al. 2018, §3.",
        row=Row(
            name="Learned table",
            formula=(r"$h_i=e_i+P_i,\qquad P\in\mathbb{R}^{L_{\max}\times d}$",),
            parameters=r"$L_{\max}\cdot d$",
            learns="a vector for each place",
            cost="a look-up and an\naddition, once",
            longer="no row, or a row that\nnothing has trained",
            later="ends at its last row",
            used_by="BERT, GPT-1 to GPT-3,\nOPT, ViT",
            picture="table",
        ),
        papers=("Learned",),
        live="learned",
        glossary="learned-position-embedding",
        claims="[Ll]earned (table|position)|[Tt]able",
    ),
]
