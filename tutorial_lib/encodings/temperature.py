r"""A query that grows with its position, so that a longer text does not blur the softmax.

Over n keys of about equal scores no weight can be much more than 1/n, so the lead of a key that is to stand
out must grow with n. There are two ways to let it grow, both a factor on the query:

.. math:: \text{Llama 4:}\quad 1 + \alpha \log\!\Big(1 + \Big\lfloor \frac{n}{L} \Big\rfloor\Big), \qquad
          \text{Inkling:}\quad 1 + \alpha \log \max\!\Big(1, \frac{n}{L}\Big), \qquad
          \text{Scalable-Softmax:}\quad s \log n

with n = p + 1, the keys that a causal model sees from position p when positions count 0, 1, 2, …

**A factor on q alone is a temperature of the softmax.** (c·q)·k = c·(q·k), for all keys of a query alike:
that divides the temperature by c. It would not work on k, where every key would bring its own factor. What
other encodings add behind the scale, such as ALiBi, is not multiplied.

By themselves, these can't tell two keys apart. Put them beside an encoding that can, or into layers without
positions, as Llama 4 does: ``Compose(Rotary(64), ScalableSoftmax(8))``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import PositionalEncoding, check_above_0, check_heads, check_positive
from .method import Method
from .positions import Where, pair, result_dtype, widest_float


class Temperature(PositionalEncoding):
    """Llama 4's factor 1 + attn_scale·log(1 + ⌊(p + 1) / floor_scale⌋), a step every ``floor_scale`` tokens.

    Llama 4 applies it in the layers without RoPE (the released code, ``attn_temperature_tuning``); its makers
    speak of a scaling at inference. A position before 0 gets 1, as the first ones do.

    Args:
        floor_scale: L, how many positions a step lasts; the first step is below L, where nothing changes.
        attn_scale: α, how fast it grows.
        steps: False lets it grow with each token from L on, as in Inkling (``log_scaling_n_floor``).

    Raises ValueError, naming the argument, for a ``floor_scale`` that is not a positive integer, or an
    ``attn_scale`` that is not above 0.

    >>> Temperature().factor(torch.tensor([0, 8190, 8191, 100_000]))
    tensor([1.0000, 1.0000, 1.0693, 1.2565], dtype=torch.float64)
    """

    def __init__(self, floor_scale: int = 8192, attn_scale: float = 0.1, *, steps: bool = True):
        super().__init__()
        check_positive(floor_scale=floor_scale)
        check_above_0(attn_scale=attn_scale)
        self.floor_scale, self.attn_scale, self.steps = floor_scale, attn_scale, steps

    def factor(self, positions: Tensor) -> Tensor:
        """What a query at each position is multiplied by, float64 (float32 on MPS), in the same shape."""
        n_over_L = (widest_float(positions) + 1) / self.floor_scale
        if not self.steps:
            return 1 + self.attn_scale * n_over_L.clamp(min=1).log()
        steps = n_over_L.floor().clamp(min=0)
        return 1 + self.attn_scale * torch.log1p(steps)

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        queries, _ = pair(self, q_positions, k_positions, q, k, offset=offset)
        return _times(q, _beside_heads(self.factor(queries.tensor))), k

    def extra_repr(self) -> str:
        smooth = "" if self.steps else ", steps=False"
        return f"{self.floor_scale}, attn_scale={self.attn_scale:g}{smooth}"


class ScalableSoftmax(PositionalEncoding):
    """SSMax: the factor s·log n, n = p + 1, with a learned s for each head (Nakanishi 2025, 2501.19399).

    So a key whose score stands out by more than 1/s keeps its weight however many others there are. At n = 1
    the factor is 0, which changes nothing: there is one key to look at. A position before 0 counts as 0.

    Args:
        n_heads: heads of the queries; ``s`` is ``[n_heads]``.
        s: what all of them start from; 0.43 is that of the paper's Fig. 1.
        b: where a learned term begins that is added to each factor, s·log n + b; None for none. Mistral
            Large 4 has one.

    Raises ValueError, naming the argument, for an ``n_heads`` that is not a positive integer, an ``s`` that
    is not above 0, or queries of another number of heads.

    >>> ScalableSoftmax(1, s=0.5).factor(torch.tensor([0, 9, 99])).data
    tensor([[0.0000, 1.1513, 2.3026]], dtype=torch.float64)
    """

    def __init__(self, n_heads: int, *, s: float = 0.43, b: float | None = None):
        super().__init__()
        check_positive(n_heads=n_heads)
        check_above_0(s=s)
        self.n_heads = n_heads
        self.s = nn.Parameter(torch.full((n_heads,), float(s)))
        self.b = None if b is None else nn.Parameter(torch.full((n_heads,), float(b)))

    def factor(self, positions: Tensor) -> Tensor:
        """What the queries of each head are multiplied by, ``[…, H, L]`` for positions ``[…, L]``."""
        log_n = (widest_float(positions) + 1).clamp(min=1).log()
        factor = self.s.to(log_n.dtype)[:, None] * log_n[..., None, :]
        return factor if self.b is None else factor + self.b.to(log_n.dtype)[:, None]

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        check_heads(self, q, q.shape[-1], self.n_heads)
        queries, _ = pair(self, q_positions, k_positions, q, k, offset=offset)
        return _times(q, self.factor(queries.tensor)[..., None]), k

    def extra_repr(self) -> str:
        return f"{self.n_heads}"


def _beside_heads(factor: Tensor) -> Tensor:
    """``[L]`` or ``[B, L]`` as ``[L, 1]`` or ``[B, 1, L, 1]``."""
    return factor[..., None] if factor.ndim == 1 else factor[:, None, :, None]


def _times(q: Tensor, factor: Tensor) -> Tensor:
    dtype = result_dtype(q)
    return (q.to(dtype) * factor.to(dtype)).to(q.dtype)


METHODS = [
    Method(
        names={"temperature": Temperature, "scalable-softmax": ScalableSoftmax},
        compared=False,
        lesson="10_frontier",
        year=2025,
    ),
]
