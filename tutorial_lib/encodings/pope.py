r"""PoPE, polar coordinate position embedding (Gopalakrishnan et al. 2025).

In RoPE, the angle between a pair of a query and one of a key mixes what they say with where they stand.
Here each channel c is a length and an angle: the length, never below 0, says what; the angle says where.

.. math:: q_m^\top k_n \;\to\; \sum_{c=0}^{d-1} \mu(q_{m,c})\, \mu(k_{n,c})\,
          \cos\big((n - m)\,\theta_c + \delta_c\big), \qquad
          \mu = \mathrm{softplus}, \quad \theta_c = 10000^{-c/d}

There are d frequencies, not d/2, and for each a head learns a δ_c between −2π and 0: which distance it likes
best. All δ start at 0.

**It is RoPE on heads twice as wide**, all of whose pairs begin at the angle 0: channel c becomes the pair
(μ, 0), which is turned by p·θ_c. So behind the door a query and a key have 2d channels; a score is divided by
√d all the same. Published code turns keys by n·θ + δ. Queries by m·θ − δ give the same scores, and a key that
several heads share then needs no δ of its own.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import PositionalEncoding, check_heads, check_positive
from .method import Method, Row
from .positions import Where, pair, result_dtype
from .rotary import Rotary


class PoPE(PositionalEncoding):
    """Lengths that say what, angles that say where; ``delta`` is learned, ``[n_heads, head_dim]``.

    Args:
        n_heads: heads of the queries.
        head_dim: channels per head d; it may be odd.
        base: of the frequencies.

    Raises ValueError for sizes that are not positive, a ``base`` not above 0, and queries of other heads.

    >>> q = torch.zeros(1, 1, 2, 3)
    >>> q, k = PoPE(n_heads=1, head_dim=3)(q, q)
    >>> q.shape, k.shape
    (torch.Size([1, 1, 2, 6]), torch.Size([1, 1, 2, 6]))
    """

    def __init__(self, n_heads: int, head_dim: int, *, base: float = 10_000.0):
        super().__init__()
        check_positive(n_heads=n_heads, head_dim=head_dim)
        self.n_heads, self.head_dim, self.base = n_heads, head_dim, base
        self.scale = head_dim**-0.5
        self.rotary = Rotary(2 * head_dim, base=base, layout="half")
        self.delta = nn.Parameter(torch.zeros(n_heads, head_dim))

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        check_heads(self, q, self.head_dim, self.n_heads)
        queries, keys = pair(self, q_positions, k_positions, q, k, offset=offset)
        delta = self.delta.to(result_dtype(q)).clamp(-2 * math.pi, 0)[:, None]
        of_q, of_k = (F.softplus(x.to(result_dtype(x))) for x in (q, k))
        polar_q = torch.cat([of_q * delta.cos(), -of_q * delta.sin()], -1)
        polar_k = torch.cat([of_k, torch.zeros_like(of_k)], -1)
        turned_q, turned_k = self.rotary.rotate(polar_q, polar_k, queries, keys)
        return turned_q.to(q.dtype), turned_k.to(k.dtype)

    def extra_repr(self) -> str:
        return f"{self.n_heads}, {self.head_dim}, base={self.base:g}"


METHODS = [
    Method(
        names={"pope": PoPE},
        relative=True,
        compared=False,
        lesson="10_frontier",
        title="PoPE: what and where, apart",
        says=(
            "Each channel of a query or a key becomes a length and an angle. The length says what "
            "the token is, the angle where it stands; in RoPE the two mix."
        ),
        where=(
            "q_{m,c} is channel c of the query at place m, k_{n,c} that of the key at n, and d "
            "the number of channels; μ makes any number positive, and θ_c is the speed at which "
            "channel c turns."
        ),
        words=("pope", "polar"),
        code=(PoPE.__init__, PoPE.rotate),
        make="PoPE(4, 16)",
        see="What a word is no longer moves the distance that a head likes.",
        year=2025,
        arxiv="2509.10534",
        row=Row(
            name="PoPE",
            formula=(
                r"$\Sigma_c\,\mu(q_{m,c})\,\mu(k_{n,c})\,\cos((n-m)\,\theta_c+\delta_c)$",
                r"$\mu=\mathrm{softplus},\qquad \theta_c=10000^{-c/d}$",
            ),
            parameters="H·d a layer",
            learns="one per head and channel",
            cost="as RoPE, and scores of\ntwice as many channels",
            longer="not measured here",
        ),
    )
]
