r"""Relative position bias in a window of an image (Liu et al. 2021, Swin Transformer, eq. 4).

.. math:: \mathrm{Attention}(Q, K, V)
          = \mathrm{SoftMax}\big(QK^\top/\sqrt{d} + B\big)V

B has an entry for each pair of the M² tokens of a window, but it depends on their offset only. Along
each axis the offset runs from −(M − 1) to M − 1, so B is taken from a smaller table
:math:`\hat B \in \mathbb{R}^{(2M-1) \times (2M-1)}`, one per head. For a window of M_h rows and M_w
columns and the offset (Δ_r, Δ_c) = key − query,

.. math:: B_{ij} = \hat B[\,\Delta_r + M_h - 1,\; \Delta_c + M_w - 1\,]

so the middle of the table is the token itself, and a key to its right is to the right of the middle.

The released code has the opposite offset, query − key, so its table is ours turned by 180°;
:meth:`SwinBias.from_released` does that. Shifted windows need nothing new: the tokens of a
window have the positions of a window, and a mask keeps apart those that only the shift made neighbours.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import check_positive, check_std
from .method import Method, Row
from .offsets import between_entries, integer_offsets, nan_where
from .positions import readable
from .relative import RelativeBias, look_up


def window_index(r: Tensor, window: tuple[int, int]) -> Tensor:
    r"""The place of each offset r = (Δr, Δc) in the table, read row by row: ``[…, 2]`` gives ``[…]``.

    .. math:: (\Delta_r + M_h - 1)(2M_w - 1) + \Delta_c + M_w - 1

    Swin's map of a window, ``relative_position_index``, is its transpose (query − key).

    >>> from tutorial_lib.encodings import grid
    >>> from tutorial_lib.encodings.offsets import offsets
    >>> window_index(offsets(grid(2, 2), grid(2, 2), axes=2), (2, 2))
    tensor([[4, 5, 7, 8],
            [3, 4, 6, 7],
            [1, 2, 4, 5],
            [0, 1, 3, 4]])
    """
    (M_h, M_w), (row, column) = window, r.unbind(-1)
    return (row + M_h - 1) * (2 * M_w - 1) + column + M_w - 1


class SwinBias(RelativeBias):
    """B of a window, from a table ``B_hat`` of (2·M_h − 1)(2·M_w − 1) scalars per head.

    Args:
        n_heads: heads H; ``B_hat`` is ``[H, 2·M_h − 1, 2·M_w − 1]``.
        window: (M_h, M_w), its rows and columns; (7, 7) in the paper.
        std: standard deviation of the initial scalars, drawn from a normal distribution that is cut
            off at −2 and 2, as in the released code.

    An offset that no two tokens of one window can have has no entry and raises ValueError; a flat index
    would find the entry of another offset.

    Raises ValueError also for a size out of range, a bad ``std``, or fractional offsets.
    """

    axes = 2

    def __init__(self, n_heads: int, window: tuple[int, int], *, std: float = 0.02):
        super().__init__()
        check_positive(n_heads=n_heads)
        check_std(std)
        self.n_heads, self.window, self.std = n_heads, _checked(window), std
        self.B_hat = nn.Parameter(torch.zeros(n_heads, *(2 * M - 1 for M in self.window)))
        if std:
            nn.init.trunc_normal_(self.B_hat, std=std)

    def of(self, r: Tensor) -> Tensor:
        between, known = between_entries(r), readable(r)
        r, (M_h, M_w) = integer_offsets(r), self.window
        inside = (r[..., 0].abs() < M_h) & (r[..., 1].abs() < M_w)
        if known and not inside.all():
            low, high = (tuple(end.tolist()) for end in r.reshape(-1, 2).aminmax(dim=0))
            raise ValueError(
                f"offsets run from {low} to {high}, but a window={self.window} has entries for "
                f"{(1 - M_h, 1 - M_w)} to {(M_h - 1, M_w - 1)}: give each window positions of its own, "
                "or build the bias with a larger window"
            )
        entries = look_up(self.B_hat.flatten(1), torch.where(inside, window_index(r, self.window), 0))
        missing = None if known else ~inside if between is None else ~inside | between.any(-1)
        return nan_where(missing, entries)

    def resized(self, window: tuple[int, int]) -> SwinBias:
        """The same table for another window, by bicubic interpolation as in the released code.

        Along each axis the new offset r is read at the old one r·(2M − 1)/(2M′ − 1), so the offset 0
        stays; the same window gives an exact copy.
        """
        other = SwinBias(self.n_heads, window, std=self.std).to(self.B_hat)
        with torch.no_grad():
            other.B_hat.copy_(F.interpolate(self.B_hat[None], other.B_hat.shape[1:], mode="bicubic")[0])
        return other

    @classmethod
    def from_released(cls, table: Tensor, window: tuple[int, int]) -> SwinBias:
        """From ``relative_position_bias_table`` of a checkpoint, ``[(2·M_h − 1)(2·M_w − 1), H]``.

        Its row for query − key = (a, b) becomes our entry of key − query = (−a, −b).
        """
        M_h, M_w = _checked(window)
        if table.ndim != 2 or len(table) != (2 * M_h - 1) * (2 * M_w - 1):
            raise ValueError(
                f"table has shape {tuple(table.shape)}: for window={window} it must be "
                f"[{(2 * M_h - 1) * (2 * M_w - 1)}, heads]"
            )
        bias = cls(table.shape[1], window).to(table)
        with torch.no_grad():
            bias.B_hat.copy_(table.T.unflatten(1, bias.B_hat.shape[1:]).flip(1, 2))
        return bias

    def extra_repr(self) -> str:
        return f"{self.n_heads}, {self.window}, std={self.std:g}"


def _checked(window: tuple[int, int]) -> tuple[int, int]:
    try:
        M_h, M_w = window
        check_positive(M_h=M_h, M_w=M_w)
    except (TypeError, ValueError) as error:
        raise ValueError(f"window={window!r}: it must be two positive integers (rows, columns)") from error
    return M_h, M_w


METHODS = [
    Method(
        names={"swin": SwinBias},
        lesson="deeper/04_axes",
        title="Swin: a bias for two axes",
        says=(
            "Inside a window of an image an offset has two parts, rows and columns, and each pair "
            "of them has a learned number for each head."
        ),
        where=(
            "Q, K and V are the queries, keys and values of a window, d is the width of a head, "
            "and B is the bias."
        ),
        words=("swin",),
        code=(window_index, SwinBias.of),
        make="SwinBias(4, (6, 6))",
        see="One table of steps in rows and columns serves every patch.",
        year=2021,
        arxiv="2103.14030",
        row=Row(
            name="Swin",
            formula=(
                r"$QK^\top/\sqrt{d}+B,\quad B_{ij}=\hat B[\Delta_r+M-1,\,\Delta_c+M-1]$",
                r"in windows of $M\times M$ patches",
            ),
            parameters=r"$(2M-1)^2\cdot H$ a layer",
            learns="one per head and offset",
            cost="a number for each pair\nof a window",
            longer="wider image: offsets\nthat it never learned",
            later="larger images: untrained offsets",
            used_by="Swin",
            picture="window",
        ),
        papers=("Swin",),
        glossary="swins-two-axis-bias",
        claims="relative bias.*ax[ei]s|Swin",
    ),
]
