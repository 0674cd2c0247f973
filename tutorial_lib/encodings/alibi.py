r"""ALiBi, attention with linear biases (Press, Smith & Lewis 2022, §3).

.. math:: \mathrm{softmax}\big(q_i K^\top / \sqrt{d}
          + m_h \cdot [-(i-1), \dots, -2, -1, 0]\big)

so a key loses m_h for every token that it lies further back; m_h is fixed, not learned, and the
bias is not multiplied by the factor 1/√d. For n heads, n a power of two, the slopes are

.. math:: m_h = 2^{-8h/n}, \qquad h = 1 \dots n

and for other n the released code takes those of the next lower power of two, and then every
second one of the next higher. It writes the bias as the positive m·j, which differs from
−m·(i − j) by a constant per query: a softmax does not see it.

The paper is causal; for encoders its authors discuss other forms, in issue 5 of their repository
(ofirpress/attention_with_linear_biases). With −m·|i − j| it is a mirror: a sentence and its reversal get
mirrored outputs, and equal ones after pooling. Slopes that differ to the left and to the right
break the mirror.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .base import check_positive
from .method import Method, Row
from .positions import result_dtype
from .relative import RelativeBias


def slopes(n_heads: int) -> Tensor:
    """The official slopes m of any number of heads, float64 ``[n_heads]``.

    >>> slopes(8).tolist() == [1 / 2**h for h in range(1, 9)]
    True
    >>> slopes(3)
    tensor([0.0625, 0.0039, 0.2500], dtype=torch.float64)
    """
    return torch.tensor(_slopes(n_heads), dtype=torch.float64, device="cpu")


def _slopes(n: int) -> list[float]:
    check_positive(n_heads=n)
    lower = 2 ** (n.bit_length() - 1)  # the largest power of two up to n
    if n == lower:
        return [2 ** (-8 * h / n) for h in range(1, n + 1)]
    return _slopes(lower) + _slopes(2 * lower)[0::2][: n - lower]


def _per_head(m: Sequence[float], r: Tensor) -> Tensor:
    """The slopes as ``[H, 1, …, 1]`` beside offsets ``r``."""
    its = torch.tensor(m, dtype=r.dtype, device="cpu").to(r.device, non_blocking=True)  # a GPU need not wait
    return its.view(-1, *[1] * r.ndim)


class ALiBi(RelativeBias):
    """−m·(i − j); with ``symmetric=True`` −m·|i − j|. No parameters, no length limit.

    The first form is for causal attention: without a mask it would reward keys far ahead. The
    bias is float32 (float64 for float64 positions), whatever the dtype of the module.

    >>> ALiBi(8).bias(3, 3)[0]
    tensor([[ 0.0000,  0.5000,  1.0000],
            [-0.5000,  0.0000,  0.5000],
            [-1.0000, -0.5000,  0.0000]])
    """

    def __init__(self, n_heads: int, *, symmetric: bool = False):
        super().__init__()
        self.n_heads, self.symmetric = n_heads, symmetric
        self.m = tuple(_slopes(n_heads))

    def of(self, r: Tensor) -> Tensor:
        r = r.to(result_dtype(r))
        return _per_head(self.m, r) * (-r.abs() if self.symmetric else r)

    def extra_repr(self) -> str:
        return f"{self.n_heads}, symmetric={self.symmetric}"


class AsymmetricALiBi(RelativeBias):
    """−left·(i − j) for keys behind, −right·(j − i) for keys ahead: ALiBi for an encoder.

    The paper has no such form; how the slopes are dealt out is this course's choice. By default those of
    2·n_heads heads, largest first, go to left and right in turn, so the two sides differ in every head. You
    may also give ``left`` and ``right``, one slope per head.

    Raises ValueError for an ``n_heads`` that is not positive, or slopes that are not finite, below 0, or
    not one per head.
    """

    def __init__(
        self, n_heads: int, *, left: Sequence[float] | None = None, right: Sequence[float] | None = None
    ):
        super().__init__()
        check_positive(n_heads=n_heads)
        deal = sorted(_slopes(2 * n_heads), reverse=True)
        self.n_heads = n_heads
        self.left = _checked("left", left, n_heads) if left is not None else tuple(deal[0::2])
        self.right = _checked("right", right, n_heads) if right is not None else tuple(deal[1::2])

    def of(self, r: Tensor) -> Tensor:
        r = r.to(result_dtype(r))
        return _per_head(self.left, r) * r.clamp(max=0) - _per_head(self.right, r) * r.clamp(min=0)

    def extra_repr(self) -> str:
        return f"{self.n_heads}, left={self.left}, right={self.right}"


def _checked(name: str, m: Sequence[float], n_heads: int) -> tuple[float, ...]:
    try:
        m = tuple(float(x) for x in m)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={m!r}: it must be {n_heads} finite slopes, one per head") from error
    if len(m) != n_heads or not all(math.isfinite(x) and x >= 0 for x in m):
        raise ValueError(f"{name}={m}: it must be {n_heads} finite slopes, 0 or more, one per head")
    return m


METHODS = [
    Method(
        names={"alibi": ALiBi, "alibi-asymmetric": AsymmetricALiBi},
        lesson="07_alibi",
        title="ALiBi: attention with linear biases",
        says=(
            "A key loses a fixed amount for each token that it lies further back, steeply in some "
            "heads and gently in others. Texts may be longer than in training."
        ),
        where=(
            "q_i is the query at place i, K has the keys up to it, d is the width of a head; m_h "
            "is the slope of head h."
        ),
        words=("alibi",),
        code=(slopes, _slopes, ALiBi.of, _per_head),
        make="ALiBi(4)",
        year=2022,
        arxiv="2108.12409",
        row=Row(
            name="ALiBi",
            formula=(
                r"$q_iK^\top/\sqrt{d}+m_h\cdot[-(i-1),\ldots,-2,-1,0]$",
                r"$m_h=2^{-8h/H},\qquad h=1\ldots H$",
            ),
            parameters="0",
            cost="a line of 2L – 1 numbers\na head, or a matrix",
            longer="no harm; hardly any\nuse of what is far",
            later="steady; far words hardly count",
            used_by="BLOOM, MPT, Baichuan-\n13B; DNABERT-2",
            picture="slopes",
        ),
        papers=("ALiBi",),
        live="alibi",
        glossary="alibi",
        claims="ALiBi",
    ),
]
