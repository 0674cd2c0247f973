r"""LeRoPE: RoPE whose frequencies are learned (2026, arXiv 2607.10134; in Mistral Large 4).

.. math:: \theta'_t = \theta_t\, e^{\alpha_t}, \qquad \theta_t = 10000^{-2t/d}

One α for each pair, shared by all heads and layers that share the encoding. All begin at 0, which is RoPE;
θ′ can become neither 0 nor negative. Weights and positions learn together: the base is a starting point and
no choice any more.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .method import Method, Row
from .rotary import Angles, Rotary, cos_sin


class LeRoPE(Rotary):
    """A :class:`Rotary` with a parameter ``alpha``, one for each pair that turns.

    Args:
        head_dim, base, layout, frequencies: as in :class:`Rotary`; they say where θ′ begins. Mistral Large 4
            has ``Frequencies(64, scaling=YaRN(…))`` there.

    Raises ValueError as :class:`Rotary` does.

    >>> LeRoPE(4, base=100).theta().data
    tensor([1.0000, 0.1000], dtype=torch.float64)
    """

    def __init__(
        self,
        head_dim: int,
        *,
        base: float | None = None,
        layout: str = "interleaved",
        frequencies: Angles | None = None,
    ):
        super().__init__(head_dim, base=base, layout=layout, frequencies=frequencies)
        self.alpha = nn.Parameter(torch.zeros(self.frequencies.d // 2))

    def theta(self) -> Tensor:
        """θ′ as it is now, float64 ``[d/2]``."""
        theta = self.frequencies.theta(device=self.alpha.device)
        return theta * self.alpha.to(theta.dtype).exp()

    def _cos_sin(self, p: Tensor, length: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        angle = self.frequencies.angle(p, length)
        return cos_sin(angle * self.alpha.to(angle.dtype).exp(), dtype, self.frequencies.attention_factor)


METHODS = [
    Method(
        names={"lerope": LeRoPE},
        relative=True,
        compared=False,
        lesson="deeper/10_new_ways",
        title="LeRoPE: frequencies that are learned",
        says=(
            "RoPE with one learned number for each pair of channels: it starts as RoPE, and "
            "training moves each hand of the clock to the speed that the task needs."
        ),
        where=(
            "θ_t is the angle by which RoPE turns pair t from place to place, θ′_t the learned "
            "one; e^α is always above 0, and d is the width of a head."
        ),
        words=("lerope", "learned rope", "learned frequencies"),
        code=(LeRoPE.theta, LeRoPE._cos_sin),
        make="LeRoPE(16)",
        see="Each pair of channels finds its own speed.",
        year=2026,
        arxiv="2607.10134",
        row=Row(
            name="LeRoPE",
            formula=(r"$\theta'_t=\theta_t\,e^{\alpha_t}$", "it turns as RoPE does"),
            parameters="d/2, for all heads",
            learns="one for each pair of channels",
            cost="as RoPE",
            longer="not measured here",
            used_by="Mistral Large 4",
        ),
        claims="LeRoPE",
    ),
]
