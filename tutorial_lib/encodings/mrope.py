r"""M-RoPE: one list of θ, divided among time, row and column (Wang et al. 2024, Qwen2-VL, §2.1).

A token stands at three numbers p = (time, row, column), and each pair of a head reads one of them:

.. math:: \text{angle}_t = p_{a(t)}\,\theta_t, \qquad a(t) = \begin{cases}
          0 \dots 0,\; 1 \dots 1,\; 2 \dots 2 & \text{chunked (Qwen2-VL)} \\
          0,\, 1,\, 2,\; 0,\, 1,\, 2,\; \dots,\; 0,\, 0,\, \dots & \text{interleaved (Qwen3-VL)}
          \end{cases}

``sections`` says how many pairs each axis has: (16, 24, 24) of 64 in Qwen2-VL. Chunked, time has all of the
fast pairs, and the column none; interleaved, each axis has some of every speed. Axial RoPE, in contrast,
gives each axis a full list of θ, from the fastest on (:class:`tutorial_lib.encodings.AxialFrequencies`).

A token of a text has the same number three times, (p, p, p): M-RoPE is then RoPE.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from .base import check_one_of, check_positive, constant
from .method import Method
from .positions import widest_float
from .scaling import Frequencies

ORDERS = ("chunked", "interleaved")


@dataclass(frozen=True)
class MRoPE(Frequencies):
    """What a :class:`Rotary` turns by for positions of several axes: ``Rotary(d, frequencies=MRoPE(d, …))``.

    Args:
        head_dim, base, rotary_dim, scaling, p: as in :class:`Frequencies`. A scaling that depends on the
            length takes the largest number of all axes.
        sections: how many pairs read each axis, one number per axis, in the order of the positions.
        order: ``"chunked"`` (Qwen2-VL, Qwen2.5-VL) or ``"interleaved"`` (Qwen3-VL). Not to be mixed up
            with the layout: both models are ``layout="half"``.

    Raises ValueError for sections that do not add up to all pairs or can't be interleaved, and as
    :class:`Frequencies` does.

    >>> MRoPE(16, sections=(4, 2, 2)).reads()
    [0, 0, 0, 0, 1, 1, 2, 2]
    >>> MRoPE(16, sections=(4, 2, 2), order="interleaved").reads()
    [0, 1, 2, 0, 1, 2, 0, 0]
    """

    sections: tuple[int, ...] = field(kw_only=True)
    order: str = field(default="chunked", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(ORDERS, order=self.order)
        if not isinstance(self.sections, (tuple, list)) or len(self.sections) < 2:
            raise ValueError(f"sections={self.sections!r}: give the pairs of each axis, such as (16, 24, 24)")
        object.__setattr__(self, "sections", tuple(self.sections))
        check_positive(**{f"sections[{axis}]": n for axis, n in enumerate(self.sections)})
        if sum(self.sections) != self.d // 2:
            raise ValueError(f"sections={self.sections}: their sum must be the {self.d // 2} pairs that turn")
        if any(self.reads().count(axis) != n for axis, n in enumerate(self.sections)):
            raise ValueError(
                f"sections={self.sections} can't be interleaved: no axis may have many more pairs than the "
                "others but the first, which has those that are left"
            )

    @property
    def axes(self) -> int:
        return len(self.sections)

    def reads(self) -> list[int]:
        """a(t), the axis that each pair reads."""
        n = self.axes
        if self.order == "chunked":
            return [axis for axis, pairs in enumerate(self.sections) for _ in range(pairs)]
        return [t % n if t < n * self.sections[t % n] else 0 for t in range(self.d // 2)]

    def length(self, *positions: Tensor) -> Tensor | None:
        return super().length(*(p.amax(-1) for p in positions))

    def angle(self, positions: Tensor, length: Tensor | None = None) -> Tensor:
        theta, reads = self.theta(length, positions.device), constant(self.reads(), positions.device).long()
        return widest_float(positions)[..., reads] * (theta if theta.ndim == 1 else theta[:, None])


METHODS = [
    Method(joins="two-axes", code=(MRoPE.reads, MRoPE.angle)),
]
