"""A grid read row by row: its positions (row, column), and encodings of one axis on it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from .base import PositionalEncoding, check_positive
from .method import Method
from .offsets import nan_where
from .positions import Device, Positions, Where, at, pair, readable


def grid(height: int, width: int, *, device: Device = None) -> Tensor:
    """The positions (row, column) of ``height`` × ``width`` tokens, row by row: int64 ``[L, 2]``.

    >>> grid(2, 3).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    check_positive(height=height, width=width)
    return torch.cartesian_prod(torch.arange(height, device=device), torch.arange(width, device=device))


class Raster(PositionalEncoding):
    r"""An encoding of one axis on an image: (row, column) is read as row · width + column.

    This is how ViT numbers its patches (Dosovitskiy et al. 2021, §D.4: "raster order"). On a window of 7 × 7,
    "abs.+rel. pos." (Liu et al. 2021, Table 4) is
    ``Compose(Raster(Learned(49, d), 7), SwinBias(H, (7, 7)))``.

    Args:
        encoding: any encoding with ``axes`` 1; its doors are opened with the new positions.
        width: columns of the grid.

    Positions must be whole numbers with columns 0 … width − 1: otherwise two tokens could share an index,
    or one could lie between the end of a row and the start of the next. Raises ValueError for others.

    >>> from tutorial_lib.encodings import ALiBi
    >>> Raster(ALiBi(8), width=3).index(grid(2, 3))
    tensor([0, 1, 2, 3, 4, 5])
    """

    axes = 2

    def __init__(self, encoding: PositionalEncoding, width: int):
        super().__init__()
        if not isinstance(encoding, PositionalEncoding) or encoding.axes != 1:
            raise TypeError(
                f"Raster takes an encoding of 1 axis, such as Learned(49, 64), not {encoding!r}: "
                "one of 2 axes reads a grid by itself"
            )
        check_positive(width=width)
        self.encoding, self.width = encoding, width
        self.scale, self.by_place = encoding.scale, encoding.by_place

    def index(self, positions: Where, *, offset: int = 0) -> Tensor:
        """row · width + column: int64 ``[L]`` or ``[B, L]``."""
        p = at(self, positions, offset=offset).tensor
        row, column = p.long().unbind(-1)
        if readable(p) and self._outside(p).any():
            raise ValueError(
                f"positions have columns from {p[..., 1].min():g} to {p[..., 1].max():g}, but a raster of "
                f"width={self.width} reads whole rows and columns 0 to {self.width - 1}: give it the width "
                "of the grid. Between two tokens only an encoding of 2 axes can read, such as "
                "Sinusoidal2D(64)"
            )
        return row * self.width + column

    def _outside(self, positions: Tensor) -> Tensor:
        column = positions[..., 1]
        return (positions != positions.long()).any(-1) | (column < 0) | (column >= self.width)

    def _missing(self, positions: Positions) -> Tensor | None:
        """Tokens that have no index, where that can't be checked: ``[L, 1]`` or ``[B, L, 1]``, or None."""
        return None if readable(positions.tensor) else self._outside(positions.tensor)[..., None]

    def _read(self, positions: Positions) -> Positions:
        """As positions of one axis."""
        return positions.once(self._row_by_row, positions)

    def _row_by_row(self, positions: Positions) -> Positions:
        return Positions(self.index(positions)).shared()

    def _pair(
        self,
        q_positions: Where,
        k_positions: Where,
        q: Tensor | None = None,
        k: Tensor | None = None,
        offset: int = 0,
    ) -> Iterator[Positions]:
        return map(self._read, pair(self, q_positions, k_positions, q, k, offset=offset))

    def embed(self, x: Tensor, positions: Where = None, *, offset: int = 0) -> Tensor:
        positions = at(self, positions, x, offset=offset)
        return nan_where(self._missing(positions), self.encoding.embed(x, self._read(positions)))

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        where = pair(self, q_positions, k_positions, q, k, offset=offset)
        turned = self.encoding.rotate(q, k, *map(self._read, where))
        missing = (m if m is None or m.ndim == 2 else m[:, None] for m in map(self._missing, where))
        q, k = (nan_where(m, x) for m, x in zip(missing, turned, strict=True))
        return q, k

    def content_bias(
        self, q: Tensor, k: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor | None:
        return self.encoding.content_bias(q, k, *self._pair(q_positions, k_positions, q, k, offset))

    def bias(self, q_positions: Where, k_positions: Where, *, offset: int = 0) -> Tensor | None:
        return self.encoding.bias(*self._pair(q_positions, k_positions, offset=offset))

    def values(
        self, weights: Tensor, q_positions: Where = None, k_positions: Where = None, *, offset: int = 0
    ) -> Tensor | None:
        where = self._pair(q_positions, k_positions, weights, weights.mT, offset)
        return self.encoding.values(weights, *where)

    def changes(self, before: Where, now: Where) -> Tensor | None:
        return self.encoding.changes(*(self._read(at(self, p)) for p in (before, now)))

    def token_dim(self, d_model: int) -> int:
        return self.encoding.token_dim(d_model)

    @property
    def doors(self) -> tuple[str, ...]:
        return self.encoding.doors

    def extra_repr(self) -> str:
        return f"width={self.width}"


METHODS = [
    Method(names={"raster": Raster}, joins="two-axes"),
]
