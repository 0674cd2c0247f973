r"""Sinusoidal positional encoding (Vaswani et al. 2017, §3.5).

.. math:: PE_{(p,\,2t)} = \sin(p\,\omega_t), \qquad PE_{(p,\,2t+1)} = \cos(p\,\omega_t), \qquad
          \omega_t = 10000^{-2t/d}, \quad t = 0 \dots d/2 - 1

That is the layout ``"interleaved"`` of the paper. The code that was released with it
(tensor2tensor, later fairseq) has the layout ``"concatenated"``: all sines first, then all
cosines, and frequencies spaced so that the last one is exactly 1/10000,

.. math:: \omega_t = 10000^{-t/(d/2 - 1)}

Odd ``d``: interleaved, the last frequency keeps its sine and loses its cosine; concatenated, the
last column is zero. Both as the released implementations that accept odd ``d`` do it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .base import Absolute, check_one_of, check_positive, is_number
from .method import Method, Row
from .positions import Device, Where, at, result_dtype, widest_float

LAYOUTS = ("interleaved", "concatenated")


def frequencies(
    dim: int, *, base: float = 10_000.0, layout: str = "interleaved", device: Device = None
) -> Tensor:
    r"""The angular frequencies :math:`\omega_t` in radians per position, highest first.

    Returns float64 ``[ceil(dim/2)]`` for ``"interleaved"``, ``[dim // 2]`` for ``"concatenated"``
    (float32 on MPS, which has no float64).

    Raises ValueError for a ``dim`` that is not a positive integer, a ``base`` that is not a finite
    number above 0, or an unknown ``layout``.

    >>> frequencies(4)
    tensor([1.0000, 0.0100], dtype=torch.float64)
    >>> frequencies(4, layout="concatenated")
    tensor([1.0000e+00, 1.0000e-04], dtype=torch.float64)
    """
    check_positive(dim=dim)
    if not (is_number(base) and base > 0):
        raise ValueError(f"base={base!r}: it must be a finite number above 0; the paper has 10000")
    check_one_of(LAYOUTS, layout=layout)
    if layout == "interleaved":
        return float(base) ** (-2 * widest_float(torch.arange((dim + 1) // 2, device=device)) / dim)
    return float(base) ** (-widest_float(torch.arange(dim // 2, device=device)) / max(dim // 2 - 1, 1))


def sinusoidal(positions: Tensor, dim: int, *, base: float = 10_000.0, layout: str = "interleaved") -> Tensor:
    r"""The vectors PE of any positions: integers, fractions, negative ones.

    ``positions`` of any shape ``[...]``; returns ``[..., dim]`` with entries in [−1, 1].
    Angles are float64 (float32 on MPS), the result is float32, or float64 when the positions are.

    Raises ValueError as :func:`frequencies` does.

    >>> sinusoidal(torch.arange(2), 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    p = torch.as_tensor(positions)
    angle = widest_float(p)[..., None] * frequencies(dim, base=base, layout=layout, device=p.device)
    sin, cos = (f.to(result_dtype(p)) for f in (angle.sin(), angle.cos()))
    if layout == "interleaved":
        return torch.stack([sin, cos], -1).flatten(-2)[..., :dim]
    return torch.cat([sin, cos, sin.new_zeros(*p.shape, dim % 2)], -1)


class Sinusoidal(Absolute):
    """Adds :func:`sinusoidal` vectors to the token vectors. No parameters, no length limit.

    Args:
        dim: width of the token vectors.
        base: 10000 in the paper; larger means longer wavelengths.
        layout: ``"interleaved"`` (paper) or ``"concatenated"`` (released code).

    Raises ValueError as :func:`frequencies` does.
    """

    def __init__(self, dim: int, *, base: float = 10_000.0, layout: str = "interleaved"):
        super().__init__()
        frequencies(dim, base=base, layout=layout)
        self.dim, self.base, self.layout = dim, base, layout

    def vectors(self, positions: Where, *, offset: int = 0) -> Tensor:
        p = at(self, positions, offset=offset).tensor
        return sinusoidal(p, self.dim, base=self.base, layout=self.layout)

    def extra_repr(self) -> str:
        return f"{self.dim}, base={self.base:g}, layout={self.layout!r}"


METHODS = [
    Method(
        names={"sinusoidal": Sinusoidal},
        lesson="02_sinusoidal",
        title="Sinusoidal positions",
        says=(
            "Every position gets a vector of sines and cosines, a clock with fast and slow hands, "
            "which is added to the token vectors. Nothing is learned, and a shift is one fixed "
            "rotation."
        ),
        where=("p is a position, d the width of its vector, and ω_t how fast its pair t turns."),
        words=("sinusoidal", "sinusoid", "sine"),
        code=(frequencies, sinusoidal),
        make="Sinusoidal(64)",
        year=2017,
        arxiv="1706.03762",
        row=Row(
            name="Sinusoidal",
            formula=(
                r"$PE_{p,2t}=\sin(p\,\omega_t),\quad PE_{p,2t+1}=\cos(p\,\omega_t)$",
                r"$\omega_t=10000^{-2t/d},\qquad h_p=e_p+PE_p$",
            ),
            parameters="0",
            cost="L·d additions, once",
            longer="defined, but the\nloss soon rises",
            used_by="the first Transformer",
            picture="waves",
        ),
        papers=("Sinusoidal",),
        live="sinusoidal",
        glossary="sinusoidal-position-encoding",
        claims="[Ss]inusoid",
    ),
]
