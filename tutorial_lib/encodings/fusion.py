r"""How a position vector p can meet its token vector e: four forms of fusion.

==================  =====================================  ==================================
``Add``             :math:`h = s\,e + p`                   Vaswani et al. 2017, §3.4: s = √d
``Multiply``        :math:`h = e \odot p`                  rare; a zero in p deletes a feature
``PositionMatrix``  :math:`h = W_p\,e`                     one d × d matrix per position
``Concatenate``     :math:`h = [e; p]`                     tokens give up part of the width
==================  =====================================  ==================================

All of them open the same door, ``embed``, and turn tokens ``[B, L, token_dim(d_model)]`` into
``[B, L, d_model]``. The parts that are given as ``position`` must have position vectors (TypeError).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import Absolute, PositionalEncoding, check_part, check_positive, check_std, check_width, is_number
from .method import Method
from .offsets import nan_where
from .positions import Where, at


class Add(PositionalEncoding):
    """``h = token_scale · e + p``. With token_scale 1 this is what an encoding does by itself.

    Raises ValueError for a ``token_scale`` that is not a finite number.
    """

    def __init__(self, position: Absolute, *, token_scale: float = 1.0):
        super().__init__()
        check_part(self, position, Absolute)
        if not is_number(token_scale):
            raise ValueError(f"token_scale={token_scale!r}: it must be a finite number; the paper has √d")
        self.position, self.token_scale, self.axes = position, token_scale, position.axes

    def embed(self, x: Tensor, positions: Where = None, *, offset: int = 0) -> Tensor:
        return self.position.embed(self.token_scale * x, positions, offset=offset)


class Multiply(PositionalEncoding):
    """``h = e ⊙ p``, element by element."""

    def __init__(self, position: Absolute):
        super().__init__()
        check_part(self, position, Absolute)
        self.position, self.axes = position, position.axes

    def embed(self, x: Tensor, positions: Where = None, *, offset: int = 0) -> Tensor:
        check_width(self.position, x, self.position.dim)
        return x * self.position.vectors(at(self, positions, x, offset=offset)).to(x.dtype)


class Concatenate(PositionalEncoding):
    """``h = [e; p]``: the model's width is shared between token and position.

    In a model of width ``d_model`` the token vectors are only ``d_model − position.dim`` wide.
    """

    def __init__(self, position: Absolute):
        super().__init__()
        check_part(self, position, Absolute)
        self.position, self.axes = position, position.axes

    def token_dim(self, d_model: int) -> int:
        if d_model <= self.position.dim:
            raise ValueError(
                f"d_model={d_model} leaves no room for tokens beside {self.position.dim} "
                "dimensions of position: make the position vectors narrower"
            )
        return d_model - self.position.dim

    def embed(self, x: Tensor, positions: Where = None, *, offset: int = 0) -> Tensor:
        p = self.position.vectors(at(self, positions, x, offset=offset)).to(x.dtype)
        return torch.cat([x, p.expand(*x.shape[:-1], p.shape[-1])], -1)


class PositionMatrix(PositionalEncoding):
    r"""``h = W_p e``: a matrix–vector product with one learned matrix per position.

    It costs ``max_length · d²`` parameters. Every matrix starts as the identity plus noise of
    standard deviation ``std / √d``.

    Raises ValueError for sizes that are not positive, a bad ``std``, or positions other than the
    integers 0 … max_length − 1.
    """

    def __init__(self, max_length: int, dim: int, *, std: float = 0.02):
        super().__init__()
        check_positive(max_length=max_length, dim=dim)
        check_std(std)
        self.max_length, self.dim, self.std = max_length, dim, std
        noise = torch.randn(max_length, dim, dim) * std / dim**0.5
        self.matrices = nn.Parameter(torch.eye(dim) + noise)

    def embed(self, x: Tensor, positions: Where = None, *, offset: int = 0) -> Tensor:
        check_width(self, x, self.dim)
        its = at(self, positions, x, offset=offset)
        positions, ends, last, missing = its.tensor, its.bounds(), self.max_length - 1, None
        if positions.is_floating_point() or ends is not None and not 0 <= ends[0] <= ends[1] <= last:
            what = f"have dtype {positions.dtype}"
            if ends is not None and not positions.is_floating_point():
                what = f"run from {ends[0]} to {ends[1]}"
            raise ValueError(
                f"positions {what}, but there is one matrix for each integer 0 to {last}: give those"
            )
        positions = positions.long()
        if ends is None:
            missing = ((positions < 0) | (positions > last))[..., None]
            positions = positions.clamp(0, last)
        h = torch.einsum("...lij,...lj->...li", self.matrices[positions].to(x.dtype), x)
        return nan_where(missing, h)


METHODS = [
    Method(
        names={"add": Add, "multiply": Multiply, "concatenate": Concatenate, "matrix": PositionMatrix},
        lesson="02_sinusoidal",
        page="fusion",
        title="Fusion: add, multiply, concatenate, or a matrix",
        says=(
            "A token vector and a position vector have to become one. Nearly everybody adds them; "
            "one can also multiply, concatenate, or give each position a matrix."
        ),
        where=(
            "e is the vector of a token, p that of its position, and W_p a matrix of its "
            "position; h is what the first layer gets. ⊙ multiplies number by number, and [e; p] "
            "puts both side by side."
        ),
        words=("fusion", "add", "multiply", "concatenate"),
        code=(Add.embed, Multiply.embed, Concatenate.embed, PositionMatrix.embed),
        make="Multiply(Learned(64, 64, std=1.0))",
        see="Added, word and place meet one by one; multiplied, only all at once.",
        formula=(
            r"$\mathrm{add:}\ h=s\,e+p\qquad \mathrm{multiply:}\ h=e\odot p"
            r"\qquad \mathrm{concatenate:}\ h=[e;\,p]\qquad \mathrm{matrix:}\ h=W_p\,e$"
        ),
        source=(
            "Adding, with the scale s = √d of the width d, is Vaswani et al. 2017, §3.4; the others come "
            "from no one paper."
        ),
        papers=("Fusion",),
        glossary="additive-fusion",
        claims="[Ff]usion|[Mm]ultipl|[Cc]oncatenat|matrix for each position",
    ),
]
