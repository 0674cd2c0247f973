r"""Sinusoid and rotation for positions of several axes: each axis has channels of its own.

.. math:: PE_{(r,\,c)} = [\,PE_r;\ PE_c\,] \qquad \text{each of width } d/2

This is the sinusoid of DETR (Carion et al. 2020, §A.4) and MAE (released code). Axial RoPE (Heo et al.
2024, RoPE-Axial) turns half of the pairs of a head by the row, half by the column. With d channels per
head and t = 0 … d/4 − 1,

.. math:: \tilde q_{(r,\,c)} = \mathrm{diag}\big(R(r\theta_0), R(r\theta_1), \dots,
          R(c\theta_0), R(c\theta_1), \dots\big)\, q, \qquad \theta_t = 100^{-t/(d/4)}

so a score depends on the two differences of rows and of columns only. The base is 100 and not 10000,
because an image has far fewer rows than a text has words. Fractional positions are allowed in both:
an image of twice the resolution may be read at grid(2·h, 2·w) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .base import check_positive
from .method import Method
from .positions import Where, at
from .rotary import Angles, Rotary
from .scaling import Frequencies
from .sinusoidal import Sinusoidal, sinusoidal


class Sinusoidal2D(Sinusoidal):
    """Adds the sinusoid of the row, beside that of the column, to the token vectors.

    Args:
        dim: width of the token vectors, even; each axis has ``dim / 2``.
        base, layout: as in :class:`Sinusoidal`, for each axis.

    The layout ``"interleaved"`` gives DETR's channels. DETR itself counts rows and columns from 1,
    divides them by the last one, and multiplies by 2π: give it such positions. MAE has the same
    channels in another order: the column before the row, and within each all sines before all cosines.
    """

    axes = 2

    def __init__(self, dim: int, *, base: float = 10_000.0, layout: str = "interleaved"):
        super().__init__(dim, base=base, layout=layout)
        if dim % 2:
            raise ValueError(f"dim={dim}: it must be even, half for the row and half for the column")

    def vectors(self, positions: Where, *, offset: int = 0) -> Tensor:
        axes = at(self, positions, offset=offset).tensor.unbind(-1)
        return torch.cat([sinusoidal(p, self.dim // 2, base=self.base, layout=self.layout) for p in axes], -1)


@dataclass(frozen=True)
class AxialFrequencies:
    """One :class:`Frequencies` per axis; a :class:`Rotary` uses them as it would a single one.

    The pairs of a head are dealt to the axes in order: the first ``frequencies[0].d / 2`` pairs turn
    by the first axis, and so on; leftover pairs do not turn.
    """

    head_dim: int
    frequencies: tuple[Angles, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(f, Angles) and f.axes == 1 for f in self.frequencies):
            raise ValueError(f"frequencies={self.frequencies}: give one Frequencies(…) per axis")
        channels = [f.d for f in self.frequencies]
        if len(channels) < 2:
            raise ValueError(f"frequencies={self.frequencies}: give one per axis; one axis is Rotary's")
        if sum(channels) > self.head_dim:
            raise ValueError(
                f"frequencies turn {' + '.join(map(str, channels))} channels, but there are only "
                f"head_dim={self.head_dim}: give each axis a share, for instance Frequencies(head_dim // 2)"
            )

    @property
    def axes(self) -> int:
        return len(self.frequencies)

    def length(self, *positions: Tensor) -> tuple[Tensor | None, ...] | None:
        """The current length of each axis, as :meth:`Frequencies.length`; None when no axis has one."""
        axes = zip(*(p.unbind(-1) for p in positions), strict=True)
        lengths = tuple(f.length(*axis) for f, axis in zip(self.frequencies, axes, strict=True))
        return None if all(of_axis is None for of_axis in lengths) else lengths

    def cos_sin(
        self, positions: Tensor, length: tuple[Tensor | None, ...] | None, dtype: torch.dtype = torch.float32
    ) -> tuple[Tensor, Tensor]:
        """The cosines and sines of all axes side by side: ``[L, pairs]`` or ``[B, L, pairs]``."""
        length = (None,) * self.axes if length is None else length
        axes = zip(self.frequencies, positions.unbind(-1), length, strict=True)
        turns = [f.cos_sin(p, of_axis, dtype) for f, p, of_axis in axes]
        rows = torch.broadcast_shapes(*(cos.shape[:-1] for cos, _ in turns))  # a dynamic axis has them
        cos, sin = (torch.cat([x.expand(*rows, -1) for x in each], -1) for each in zip(*turns, strict=True))
        return cos, sin


class AxialRotary(Rotary):
    """RoPE on queries and keys where each axis turns its own pairs.

    Args:
        head_dim: channels per head; for two axes a multiple of 4.
        base: of both axes; 100 if it is not given.
        layout: ``"interleaved"`` or ``"half"``. Pairs are numbered across the whole head, so with
            ``"half"`` channel t belongs to t + d/2, not to its neighbour within the axis.
        frequencies: one :class:`Frequencies` per axis, in place of ``base``. Their number is the number
            of axes: three, say, for (time, row, column). Their channels may be unequal, and fewer than
            ``head_dim``.

    RoPE-ViT deals the pairs to column and row in turn in the paper; its released code has all of the
    column first, and is ``"interleaved"``: give it ``positions.flip(-1)``. Qwen2-VL's image encoder is
    ``"half"``, row first, base 10000. (M-RoPE in its language model is another method: it divides one
    list of θ among the axes, :mod:`tutorial_lib.encodings.mrope`.)

    Raises ValueError as :class:`Rotary` does, for channels that can't be shared, and for both a
    ``base`` and ``frequencies``.
    """

    def __init__(
        self,
        head_dim: int,
        *,
        base: float | None = None,
        layout: str = "interleaved",
        frequencies: tuple[Angles, ...] | None = None,
    ):
        check_positive(head_dim=head_dim)
        if frequencies is None:
            if head_dim % 4:
                raise ValueError(f"head_dim={head_dim}: two axes need a multiple of 4, or frequencies")
            frequencies, base = (Frequencies(head_dim // 2, 100.0 if base is None else base),) * 2, None
        if not isinstance(frequencies, (tuple, list)):
            raise ValueError(f"frequencies={frequencies!r}: give a tuple, one Frequencies(…) per axis")
        axial: Any = AxialFrequencies(head_dim, tuple(frequencies))  # used in place of Angles
        super().__init__(head_dim, base=base, layout=layout, frequencies=axial)

    def extra_repr(self) -> str:
        its: Any = self.frequencies
        return f"{self.head_dim}, frequencies={its.frequencies}, layout={self.layout!r}"


METHODS = [
    Method(
        names={"rotary-axial": AxialRotary},
        relative=True,
        lesson="deeper/10_pictures",
        page="two-axes",
        title="Two axes and more: positions in images and video",
        says=(
            "A patch of an image has a row and a column, and each axis gets channels of its own. "
            "For video, M-RoPE deals the pairs to time, row and column."
        ),
        where=(
            "PE_r and PE_c are the sinusoids of row r and column c, side by side; d is the width of both."
        ),
        words=("axial", "axes", "image", "mrope", "m-rope", "2d"),
        code=(Sinusoidal2D.vectors, AxialFrequencies.cos_sin),
        make="AxialRotary(16)",
        see="One hand turns with the row, one with the column.",
        year=2020,
        arxiv="2010.11929",
        source=(
            "Sinusoids: Carion et al. 2020, §A.4; axial RoPE: Heo et al. 2024; M-RoPE: Wang "
            "et al. 2024, §2.1."
        ),
        papers=("Two axes and more",),
        claims="axes",
        released="M-RoPE",
    ),
    Method(names={"sinusoidal-2d": Sinusoidal2D}, joins="two-axes"),
]
