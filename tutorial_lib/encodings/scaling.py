r"""Other θ for RoPE: scaled for longer texts, or for a part of the channels.

The scalings stretch a model that was trained up to length L to longer texts:
:class:`PositionInterpolation`, :class:`NTKAware`, :class:`DynamicNTK`, :class:`YaRN`, :class:`Llama3`,
:class:`LongRoPE`.
:class:`Frequencies` uses them, and the options of partial rotation, in place of RoPE's own θ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .base import (
    check_above_0,
    check_one_of,
    check_pairs,
    check_positive,
    constant,
    is_number,
)
from .method import Method, Row
from .positions import Device, widest_float
from .rotary import Angles, plain_theta

RAMPS = ("wavelength", "index", "rounded index")


class Scaling:
    """A change of θ, so that a model trained up to length L can read further.

    A subclass gives ``theta(b, d, length, device)``: float64 ``[d/2]`` from the base ``b`` and the
    number ``d`` of channels that turn. Cosines and sines are multiplied by ``attention_factor``.
    """

    dynamic: bool = False
    """Whether θ depends on the current ``length``."""

    @property
    def attention_factor(self) -> float:
        return 1.0

    def theta(self, b: float, d: int, length: Tensor | None = None, device: Device = None) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must give theta(b, d, length, device)")


def _at_least(low: float, **values: float) -> None:
    for name, value in values.items():
        if not (is_number(value) and value >= low):
            raise ValueError(f"{name}={value!r}: it must be a finite number, at least {low}")


def _ordered(**values: float) -> None:
    (low, a), (high, b) = values.items()
    if not (is_number(a) and is_number(b) and 0 < a < b):
        raise ValueError(f"{low}={a!r}, {high}={b!r}: both must be finite, and 0 < {low} < {high}")


@dataclass(frozen=True)
class PositionInterpolation(Scaling):
    r"""Linear scaling (Chen et al. 2023, §2.3; kaiokendev 2023): position m is read as m·L/L′.

    With :math:`s = L'/L`, the new length over the trained one, every angle is divided by s.

    >>> Frequencies(4, scaling=PositionInterpolation(2)).theta()
    tensor([0.5000, 0.0050], dtype=torch.float64)
    """

    s: float

    def __post_init__(self) -> None:
        _at_least(1, s=self.s)

    def theta(self, b: float, d: int, length: Tensor | None = None, device: Device = None) -> Tensor:
        return plain_theta(d, b, device) / self.s


def ntk(b: float, d: int, s: float | Tensor, device: Device = None) -> Tensor:
    r"""θ of the base :math:`b' = b\,s^{d/(d-2)}`; ``s`` is a number, or a tensor ``[...]``.

    .. math:: b'^{-2t/d} = \theta_t\, s^{-2t/(d-2)}

    The highest frequency stays; the lowest is divided by s, as interpolation divides all of them.
    """
    if d < 4:
        raise ValueError(f"rotary_dim={d}: the exponent d/(d − 2) of NTK-aware scaling needs at least 4")
    theta = plain_theta(d, b, device)
    t = widest_float(torch.arange(d // 2, device=device))
    s = s[..., None] if isinstance(s, Tensor) else s
    return theta * s ** (-2 * t / (d - 2))


@dataclass(frozen=True)
class NTKAware(Scaling):
    r"""A larger base (bloc97 2023; Peng et al. 2023, §3.1): :math:`b' = b\,s^{d/(d-2)}`."""

    s: float

    def __post_init__(self) -> None:
        _at_least(1, s=self.s)

    def theta(self, b: float, d: int, length: Tensor | None = None, device: Device = None) -> Tensor:
        return ntk(b, d, self.s, device)


@dataclass(frozen=True)
class DynamicNTK(Scaling):
    r"""NTK-aware with a factor that grows with the current length l (Peng et al. 2023, §3.3).

    .. math:: b' = b\,\big(s\,l/L - (s - 1)\big)^{d/(d-2)}, \qquad l \ge L

    That is the convention of Hugging Face; ``s = 1`` leaves :math:`l/L`, as in the paper. Up to L
    nothing changes. l is the highest position of a row, plus one: each row of a batch has its own
    (Hugging Face takes one for the whole batch, and keeps the largest so far until a text shorter
    than L comes). All keys of a call turn by the θ of that call, so a cache must hold keys that are
    not yet turned. That is enough for one layer. The layers above it cache what they made of texts that
    were shorter, so beyond L no cache gives the same numbers as reading the text at once, and
    :class:`tutorial_lib.model.Transformer` refuses it. Scores change when all positions shift.

    L comes first here, and s first in :class:`YaRN`: give both by name.
    """

    L: int
    s: float = 1.0
    dynamic = True

    def __post_init__(self) -> None:
        check_positive(L=self.L)
        _at_least(1, s=self.s)

    def theta(self, b: float, d: int, length: Tensor | None = None, device: Device = None) -> Tensor:
        l_over_L = 1.0 if length is None else (widest_float(length) / self.L).clamp(min=1)
        return ntk(b, d, self.s * l_over_L - (self.s - 1), device)


def by_parts(theta: Tensor, s: float, gamma: Tensor) -> Tensor:
    r""":math:`(1 - \gamma)\,\theta/s + \gamma\,\theta`: at γ = 1 as trained, at γ = 0 interpolated."""
    return (1 - gamma) * theta / s + gamma * theta


def wavelength_ramp(theta: Tensor, L: float, low: float, high: float) -> Tensor:
    r""":math:`\gamma(r) = (r - low)/(high - low)` within 0 … 1; :math:`r = L/\lambda` turns in L."""
    r = L * theta / (2 * math.pi)
    return ((r - low) / (high - low)).clamp(0, 1)


@dataclass(frozen=True)
class YaRN(Scaling):
    r"""NTK-by-parts with an attention factor (Peng et al. 2023, §3.2 and §3.4).

    .. math:: \theta'_t = (1 - \gamma)\,\theta_t/s + \gamma\,\theta_t, \qquad
              \sqrt{1/\tau} = 0.1 \ln s + 1

    A pair that turns more than β = 32 times within the trained length L stays (γ = 1), one that turns less
    than α = 1 times is interpolated (γ = 0); between them γ is a ramp. Llama 3 has the ramp without τ.

    **Paper and released code differ there**:

    - ``ramp="wavelength"``, the paper: linear in the number of turns :math:`r = L/\lambda_t`;
    - ``ramp="rounded index"``, the released code and Hugging Face: linear in the index t, between
      the indices with β and α turns, rounded outwards; models in use were tuned with this one;
    - ``ramp="index"``: the same without rounding (Hugging Face's ``truncate=False``).

    The temperature τ of the softmax (the paper's t) enters through the rotation: cosines and sines, so the
    turned channels of q and k alike, are multiplied by √(1/τ), and their part of a score by 1/τ.
    ``attention`` puts another number in its place.
    """

    s: float
    L: int
    alpha: float = 1.0
    beta: float = 32.0
    ramp: str = "wavelength"
    attention: float | None = None

    def __post_init__(self) -> None:
        check_positive(L=self.L)
        _at_least(1, s=self.s)
        _ordered(alpha=self.alpha, beta=self.beta)
        check_one_of(RAMPS, ramp=self.ramp)
        if self.attention is not None:
            _at_least(0, attention=self.attention)

    @property
    def attention_factor(self) -> float:
        return 0.1 * math.log(self.s) + 1 if self.attention is None else self.attention

    def theta(self, b: float, d: int, length: Tensor | None = None, device: Device = None) -> Tensor:
        theta = plain_theta(d, b, device)
        if self.ramp == "wavelength":
            return by_parts(theta, self.s, wavelength_ramp(theta, self.L, self.alpha, self.beta))
        return by_parts(theta, self.s, self._index_ramp(b, d, device))

    def _index_ramp(self, b: float, d: int, device: Device) -> Tensor:
        if b <= 1:
            raise ValueError(f"base={b!r}: a ramp over the index needs a base above 1")

        def index(r: float) -> float:  # where L·θ_t = 2π·r
            return d * math.log(self.L / (2 * math.pi * r)) / (2 * math.log(b))

        first, last = index(self.beta), index(self.alpha)
        if self.ramp == "rounded index":
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, d - 1)
        last += 0.001 if first == last else 0  # as the released code avoids 0/0
        t = widest_float(torch.arange(d // 2, device=device))
        return 1 - ((t - first) / (last - first)).clamp(0, 1)


@dataclass(frozen=True)
class Llama3(Scaling):
    r"""The scaling of Llama 3.1 (its released code, ``apply_scaling``).

    .. math:: \theta'_t = (1 - \gamma)\,\theta_t/s + \gamma\,\theta_t, \qquad
              \gamma = \frac{L/\lambda_t - low}{high - low} \text{ within } 0 \dots 1

    Its formula is YaRN's ramp over the wavelength, with other bounds and no attention factor.

    Args:
        s: the factor, 8 in Llama 3.1, 32 in the small models of Llama 3.2.
        L: the original length.
        low, high: pairs that turn less than ``low`` times within L are divided by s, those that
            turn more than ``high`` times stay (``low_freq_factor``, ``high_freq_factor``).
    """

    s: float = 8.0
    L: int = 8192
    low: float = 1.0
    high: float = 4.0

    def __post_init__(self) -> None:
        check_positive(L=self.L)
        _at_least(1, s=self.s)
        _ordered(low=self.low, high=self.high)

    def theta(self, b: float, d: int, length: Tensor | None = None, device: Device = None) -> Tensor:
        theta = plain_theta(d, b, device)
        return by_parts(theta, self.s, wavelength_ramp(theta, self.L, self.low, self.high))


@dataclass(frozen=True)
class LongRoPE(Scaling):
    r"""A factor for each pair, found by a search (Ding et al. 2024, §3; the released code of Phi-3).

    .. math:: \theta'_t = \theta_t / \lambda_t, \qquad
              \text{attention factor} = \sqrt{1 + \ln s / \ln L}

    There are two lists of λ, ``short`` for texts up to the trained length L and ``long`` beyond, so the θ
    of a text change when it grows past L, and what :class:`DynamicNTK` says about caches holds here, too.
    Each row of a batch has its own length (Hugging Face takes one for the whole batch). The paper also leaves
    the first tokens of a text as they are; no released model does.

    Args:
        short, long: λ, one for each pair that turns (``short_factor``, ``long_factor``).
        L: the original length, at least 2.
        s: the new length over L, for the attention factor.
        attention: another number in place of that factor.

    Raises ValueError, naming the argument, for lists without one λ for each pair, or a value out
    of range.

    >>> Frequencies(4, scaling=LongRoPE((1.0, 1.0), (1.0, 4.0), L=4096, s=32)).theta(torch.tensor(5000))
    tensor([1.0000, 0.0025], dtype=torch.float64)
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    L: int
    s: float = 1.0
    attention: float | None = None
    dynamic = True

    def __post_init__(self) -> None:
        check_positive(L=self.L)
        _at_least(2, L=self.L)
        _at_least(1, s=self.s)
        if self.attention is not None:
            _at_least(0, attention=self.attention)
        for name in ("short", "long"):
            factors = getattr(self, name)
            if isinstance(factors, str) or not isinstance(factors, Sequence):
                raise ValueError(f"{name}={factors!r}: give a list with one factor for each pair that turns")
            object.__setattr__(self, name, tuple(factors))
            check_above_0(**{f"{name}[{t}]": factor for t, factor in enumerate(factors)})

    @property
    def attention_factor(self) -> float:
        factor = math.sqrt(1 + math.log(self.s) / math.log(self.L))
        return factor if self.attention is None else self.attention

    def theta(self, b: float, d: int, length: Tensor | None = None, device: Device = None) -> Tensor:
        for name in ("short", "long"):
            n = len(getattr(self, name))
            if n != d // 2:
                raise ValueError(f"{name} has {n} factors, but {d // 2} pairs turn: give one for each")
        factors = constant(self.short, device)
        if length is not None:
            factors = torch.where((length > self.L)[..., None], constant(self.long, device), factors)
        return plain_theta(d, b, device) / factors


@dataclass(frozen=True)
class Frequencies(Angles):
    r"""Which angles: one θ_t in radians per position for each pair of channels, highest first.

    Args:
        head_dim: channels per head.
        base: 10000 in the paper; a larger one means longer wavelengths (500000 in Llama 3;
            Xiong et al. 2023 call that adjusted base frequency).
        rotary_dim: only this many channels turn, the first; the rest stay as they are (partial
            rotation, GPT-NeoX and GPT-J); then :math:`d` = ``rotary_dim`` in every formula.
        scaling: one of the scalings above.
        p: only this share of the pairs turns, those with the highest frequencies; the others get
            θ = 0 (p-RoPE, Barbero et al. 2024). Unlike with ``rotary_dim`` the remaining
            θ keep their values. ``p=0`` switches the rotation off.

    Raises ValueError, naming the argument, for an odd number of channels or a value out of range.

    >>> Frequencies(8, rotary_dim=4).theta()
    tensor([1.0000, 0.0100], dtype=torch.float64)
    >>> Frequencies(8, p=0.5).theta()
    tensor([1.0000, 0.1000, 0.0000, 0.0000], dtype=torch.float64)
    """

    rotary_dim: int | None = None
    scaling: Scaling | None = None
    p: float = 1.0

    def __post_init__(self) -> None:
        check_above_0(base=self.base)
        check_pairs(self.head_dim, self.rotary_dim)
        if not isinstance(self.scaling, Scaling | None):
            raise ValueError(
                f"scaling={self.scaling!r}: it must be None or a Scaling, for instance YaRN(4, L=2048)"
            )
        if not (is_number(self.p) and 0 <= self.p <= 1):
            raise ValueError(f"p={self.p!r}: it must be a share, from 0 to 1")
        self.theta(device="cpu")  # each scaling checks what it can scale

    @property
    def d(self) -> int:
        return self.head_dim if self.rotary_dim is None else self.rotary_dim

    @property
    def attention_factor(self) -> float:
        return 1.0 if self.scaling is None else self.scaling.attention_factor

    def length(self, *positions: Tensor) -> Tensor | None:
        if self.scaling is None or not self.scaling.dynamic:
            return None
        longest = [pad(widest_float(p), (0, 1)).amax(-1) for p in positions]  # plus a zero: rows may be empty
        return torch.stack(torch.broadcast_tensors(*longest)).amax(0) + 1

    def theta(self, length: Tensor | None = None, device: Device = None) -> Tensor:
        if self.scaling is None:
            theta = plain_theta(self.d, self.base, device)
        else:
            theta = self.scaling.theta(self.base, self.d, length, device)
        turning = math.floor(self.p * self.d / 2)
        return pad(theta[..., :turning], (0, self.d // 2 - turning))


METHODS = [
    Method(
        lesson="08_long_context",
        page="position-interpolation",
        title="Position interpolation",
        says=(
            "To read a text s times as long as those in training, every position is divided by s. "
            "No angle is new, but neighbours move closer together, so a short tuning has to "
            "follow."
        ),
        where=(
            "θ_t is the angle by which pair t turns from place to place, θ′_t the same after "
            "scaling by s; L is the trained length, L′ that of the new text."
        ),
        words=("interpolation", "pi", "linear"),
        code=(PositionInterpolation.theta, plain_theta),
        make="Rotary(16, frequencies=Frequencies(16, scaling=PositionInterpolation(4)))",
        year=2023,
        arxiv="2306.15595",
        equation=PositionInterpolation,
        row=Row(
            name="Position\ninterpolation",
            formula=(r"$\theta^\prime_t=\theta_t/s,\qquad s=L^\prime/L$",),
            parameters="0",
            cost="as RoPE, and a tuning",
            longer="after a tuning up to $s\\,L$;\nneighbours blur",
            later="works after a tuning",
            used_by="Gemma 3, from 4B on\n(s = 8, global layers)",
            picture="interpolation",
        ),
        variants=("rotary + PI",),
        papers=("Position interpolation",),
        live="scaling",
        params={"method": "PI"},
        glossary="position-interpolation",
        claims=r"[Ii]nterpolat|\bPI\b",
    ),
    Method(
        lesson="08_long_context",
        page="ntk",
        title="NTK-aware scaling: a larger base for RoPE",
        says=(
            "Instead of dividing all angles, the base of RoPE grows. This slows the slowest pairs "
            "by the whole factor, and leaves the fastest, which tell neighbours apart, as they "
            "are."
        ),
        where=(
            "b is the base of RoPE, 10,000 at first, b′ the larger one; s is how many times as "
            "long texts may become, d the number of channels, and θ′_t the angle by which pair t "
            "now turns from place to place."
        ),
        words=("ntk", "base", "dynamic"),
        code=(ntk, NTKAware.theta, DynamicNTK.theta),
        make="Rotary(16, frequencies=Frequencies(16, scaling=NTKAware(4)))",
        year=2023,
        arxiv="2309.00071",
        equation=NTKAware,
        row=Row(
            name="NTK-aware,\nlarger base",
            formula=(r"$\theta^\prime_t=b^{\prime\,-2t/d},\qquad b^\prime=b\,s^{d/(d-2)}$",),
            parameters="0",
            cost="as RoPE",
            longer="works at once; set s\nabove the stretch",
            later="untuned, but not its full factor",
            used_by="Code Llama (tuned,\nbase 1,000,000)",
            picture="ntk",
        ),
        variants=("rotary + NTK-aware",),
        papers=("NTK-aware scaling",),
        live="scaling",
        params={"method": "NTK-aware", "times": 2},
        glossary="ntk-aware-scaling",
        claims="NTK|[Ll]arger base",
        released="^base|larger base",
    ),
    Method(
        lesson="08_long_context",
        page="yarn",
        title="YaRN, Llama 3 and LongRoPE: to each pair what it needs",
        says=(
            "Fast pairs have seen every angle in training and stay as they are; slow pairs are "
            "slowed down, and a ramp joins them. LongRoPE searches a factor for each pair."
        ),
        where=(
            "θ_t is the angle by which pair t turns from place to place, θ′_t the same after "
            "scaling; s is how many times as long texts may become. τ is a temperature: queries "
            "and keys are multiplied by √(1/τ), which sharpens the softmax."
        ),
        words=("yarn", "llama3", "longrope"),
        code=(wavelength_ramp, by_parts, YaRN.theta, YaRN._index_ramp),
        make="Rotary(16, frequencies=Frequencies(16, scaling=YaRN(4, L=512)))",
        year=2023,
        arxiv="2309.00071",
        equation=YaRN,
        row=Row(
            name="YaRN",
            formula=(
                (
                    r"$\theta^\prime_t=(1-\gamma_t)\,\theta_t/s+\gamma_t\,\theta_t,\quad "
                    r"\gamma_t$: a ramp over $L/\lambda_t$"
                ),
                r"$q$ and $k$ times $0.1\ln s+1$",
            ),
            parameters="0",
            cost="as RoPE",
            longer="works at once, better\nafter a little tuning",
            later="works without tuning",
            used_by="gpt-oss (s = 32);\nSmolLM3",
            picture="yarn",
        ),
        variants=("rotary + YaRN",),
        papers=("YaRN", "LongRoPE"),
        live="scaling",
        params={"method": "YaRN", "s": 2, "times": 2},
        glossary="yarn",
        claims="YaRN",
        released="YaRN|LongRoPE|scaling",
    ),
]
