"""The encodings that the general tests run over: those below, and all others of the registry."""

import functools

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tutorial_lib.encodings import (
    FIRE,
    KERPLE,
    REGISTRY,
    TUPE,
    Add,
    ALiBi,
    AsymmetricALiBi,
    AxialRotary,
    ClippedBias,
    Compose,
    Concatenate,
    CoPE,
    DeBERTa,
    DynamicNTK,
    Forgetting,
    Frequencies,
    HybridConcat,
    HybridSum,
    KeySide,
    Learned,
    Llama3,
    LongRoPE,
    MRoPE,
    Multiply,
    NoPosition,
    NTKAware,
    PositionalEncoding,
    PositionInterpolation,
    PositionMatrix,
    QueryBias,
    Raster,
    RelativeBias,
    Rotary,
    ScalableSoftmax,
    Shaw,
    Sinusoidal,
    Sinusoidal2D,
    SwinBias,
    T5Bias,
    TableBias,
    Temperature,
    TransformerXL,
    XPos,
    YaRN,
    fit,
    grid,
)
from tutorial_lib.encodings.registry import COMPARED, METHODS

D_MODEL, N_HEADS, HEAD_DIM, MAX_LENGTH = 16, 2, 8, 64


def offsets(q_positions, k_positions):
    """r = k − q, [Lq, Lk], or [B, 1, Lq, Lk] when a row has positions of its own."""
    r = k_positions.double()[..., None, :] - q_positions.double()[..., :, None]
    return r if r.ndim == 2 else r[:, None]


class FourDoors(PositionalEncoding):
    """Opens four doors, each by a plain formula that a loop can repeat. No real method."""

    scale = 0.3

    def __init__(self, heads=N_HEADS, head_dim=HEAD_DIM):
        super().__init__()
        self.slope = nn.Parameter(torch.linspace(0.5, 1.5, heads))
        self.mix = nn.Parameter(torch.linspace(-1, 1, head_dim))

    def embed(self, x, positions):
        return x + torch.sin(positions.double()).to(x.dtype)[..., None]

    def rotate(self, q, k, q_positions, k_positions):
        p_q, p_k = (p if p.ndim == 1 else p[:, None] for p in (q_positions.double(), k_positions.double()))
        return (q * (1 + 0.1 * p_q[..., None].sin()).to(q.dtype), k * (2 + p_k[..., None].cos()).to(k.dtype))

    def content_bias(self, q, k, q_positions, k_positions):
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        return (q * self.mix) @ k.mT * offsets(q_positions, k_positions).sin().to(q.dtype)

    def bias(self, q_positions, k_positions):
        r = offsets(q_positions, k_positions)
        return self.slope[:, None, None] * (r / 3).cos().to(self.slope.dtype)


class EveryDoor(FourDoors):
    """Opens the fifth door, too."""

    def values(self, weights, q_positions, k_positions):
        r = offsets(q_positions, k_positions)
        return (weights * r.cos().to(weights.dtype)).sum(-1, keepdim=True) * self.mix.to(weights.dtype)


def rotary(layout="half", **which):
    return Rotary(HEAD_DIM, layout=layout, frequencies=Frequencies(HEAD_DIM, **which))


def axial(d_row, d_column):
    return AxialRotary(HEAD_DIM, layout="half", frequencies=(Frequencies(d_row), Frequencies(d_column, 50.0)))


ENCODINGS = {
    "none": NoPosition,
    "sinusoidal": lambda: Sinusoidal(D_MODEL),
    "sinusoidal-concatenated": lambda: Sinusoidal(D_MODEL, layout="concatenated"),
    "learned": lambda: Learned(MAX_LENGTH, D_MODEL, std=1.0),
    "add": lambda: Add(Sinusoidal(D_MODEL), token_scale=4.0),
    "multiply": lambda: Multiply(Sinusoidal(D_MODEL)),
    "matrix": lambda: PositionMatrix(MAX_LENGTH, D_MODEL, std=1.0),
    "concatenate": lambda: Concatenate(Learned(MAX_LENGTH, 6, std=1.0)),
    "rotary": lambda: Rotary(HEAD_DIM),
    "rotary-half": lambda: Rotary(HEAD_DIM, layout="half", base=100.0),
    "rotary-partial": lambda: rotary(rotary_dim=4),
    "rotary-share": lambda: rotary(p=0.5),
    "rotary-interpolation": lambda: rotary(scaling=PositionInterpolation(4)),
    "rotary-ntk": lambda: rotary(scaling=NTKAware(4)),
    "rotary-dynamic": lambda: rotary(scaling=DynamicNTK(MAX_LENGTH)),
    "rotary-yarn": lambda: rotary(scaling=YaRN(4, L=32, beta=8)),
    "rotary-yarn-index": lambda: rotary(rotary_dim=6, scaling=YaRN(4, L=32, ramp="rounded index")),
    "rotary-llama3": lambda: rotary(scaling=Llama3(L=32)),
    "rotary-longrope": lambda: rotary(scaling=LongRoPE([1, 1.5, 2, 4], [1, 3, 9, 27], L=MAX_LENGTH, s=4)),
    "rotary-m": lambda: Rotary(HEAD_DIM, frequencies=MRoPE(HEAD_DIM, 50.0, sections=(2, 1, 1))),
    "xpos": lambda: XPos(HEAD_DIM),
    "xpos-half": lambda: XPos(HEAD_DIM, layout="half", frequencies=Frequencies(HEAD_DIM, rotary_dim=6)),
    "clipped": lambda: ClippedBias(N_HEADS, 3, std=1.0),
    "table": lambda: TableBias(N_HEADS, MAX_LENGTH, std=1.0),
    "alibi": lambda: ALiBi(N_HEADS),
    "alibi-symmetric": lambda: ALiBi(N_HEADS, symmetric=True),
    "alibi-asymmetric": lambda: AsymmetricALiBi(N_HEADS),
    "t5": lambda: T5Bias(N_HEADS, n_buckets=6, max_distance=8, std=1.0),
    "t5-bidirectional": lambda: T5Bias(N_HEADS, bidirectional=True, std=1.0),
    "shaw": lambda: Shaw(HEAD_DIM, 2),
    "hybrid-sum": lambda: HybridSum(Sinusoidal(D_MODEL), ClippedBias(N_HEADS, 3, std=1.0)),
    "hybrid-concat": lambda: HybridConcat(Sinusoidal(D_MODEL), ClippedBias(N_HEADS, 3, std=1.0)),
    "hybrid-mlp": lambda: HybridConcat(Learned(MAX_LENGTH, 6, std=1.0), ALiBi(N_HEADS), hidden=5),
    "key-side": lambda: KeySide(Learned(MAX_LENGTH, 6, std=1.0), T5Bias(N_HEADS, std=1.0)),
    "tupe": lambda: TUPE(Learned(MAX_LENGTH, 6, std=1.0), N_HEADS, HEAD_DIM),
    "tupe-relative": lambda: TUPE(
        Sinusoidal(D_MODEL), N_HEADS, HEAD_DIM, relative=T5Bias(N_HEADS, std=1.0), untie_cls=True
    ),
    "kerple": lambda: KERPLE(N_HEADS),
    "kerple-power": lambda: KERPLE(N_HEADS, variant="power"),
    "fire": lambda: FIRE(N_HEADS, hidden=5, L=4.0),
    "deberta": lambda: DeBERTa(N_HEADS, HEAD_DIM, 3, std=1.0),
    "deberta-released": lambda: DeBERTa(N_HEADS, HEAD_DIM, 3, std=1.0, released=True),
    "deberta-buckets": lambda: DeBERTa(N_HEADS, HEAD_DIM, 9, n_buckets=4, std=1.0),
    "cope": lambda: CoPE(HEAD_DIM, 4, std=1.0),
    "forgetting": lambda: Forgetting(N_HEADS, HEAD_DIM, std=0.3),
    "temperature": lambda: Temperature(3, 0.4),
    "temperature-smooth": lambda: Compose(
        Temperature(3, 0.4, steps=False), QueryBias(N_HEADS, HEAD_DIM, 4, rank=3, std=1.0)
    ),
    "query-bias": lambda: QueryBias(N_HEADS, HEAD_DIM, 4, rank=3, std=1.0),
    "temperature-rotary": lambda: Compose(Rotary(HEAD_DIM), ScalableSoftmax(N_HEADS)),
    "transformer-xl": lambda: TransformerXL(N_HEADS, HEAD_DIM, std=0.5),
    "sinusoidal-2d": lambda: Sinusoidal2D(D_MODEL),
    "concatenate-2d": lambda: Concatenate(Sinusoidal2D(6, layout="concatenated")),
    "rotary-axial": lambda: AxialRotary(HEAD_DIM),
    "rotary-axial-half": lambda: axial(4, 2),
    "swin": lambda: SwinBias(N_HEADS, (6, 5), std=1.0),
    "raster": lambda: Raster(EveryDoor(), 40),
    "every-door": EveryDoor,
    "compose": lambda: Compose(Learned(MAX_LENGTH, D_MODEL, std=1.0), Rotary(HEAD_DIM), FourDoors()),
    "compose-2d": lambda: Compose(Raster(Learned(1200, D_MODEL, std=1.0), 40), SwinBias(N_HEADS, (6, 5))),
}
ENCODINGS |= {
    name: functools.partial(fit, name, d_model=D_MODEL, n_heads=N_HEADS, length=MAX_LENGTH)
    for name in REGISTRY
    if name not in ENCODINGS
}
# Scores do not change when all positions shift (with angles of a dynamic length they do). Every bias that is
# built as a RelativeBias is among them; of others their file says it, also for forms such as rotary-half.
SAID = tuple(name for method in METHODS if method.relative for name in method.names)
RELATIVE = tuple(
    name
    for name, make in ENCODINGS.items()
    if name.startswith(SAID)
    and name not in ("rotary-dynamic", "rotary-longrope")
    or isinstance(make(), RelativeBias)
)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(params=ENCODINGS)
def encoding(request, seed):
    """Each encoding in turn."""
    return ENCODINGS[request.param]()


@pytest.fixture
def all_encodings():
    return ENCODINGS


@pytest.fixture(scope="module")
def relative_names():
    """Those among them that the lessons compare."""
    return {name for name in RELATIVE if name in COMPARED}


@pytest.fixture(params=RELATIVE)
def relative(request, seed):
    return ENCODINGS[request.param]()


@pytest.fixture
def positions_for():
    """positions_for(encoding, n): 0 … n − 1, or n places of a grid of 3 columns, or these at n times."""

    def positions(encoding, n):
        time, places = torch.arange(n), grid(n, 3)[:n]
        return {1: time, 2: places, 3: torch.cat([time[:, None], places], -1)}[encoding.axes]

    return positions


@pytest.fixture(params=[FourDoors, EveryDoor])
def open_doors(request):
    """A class of encodings with finite terms at every door: what only masks cannot show."""
    return request.param


class Largest(TorchDispatchMode):
    """The number of elements of the largest storage that any operation returns."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, torch.Tensor):
                self.elements = max(self.elements, x.untyped_storage().nbytes() // x.element_size())
        return out


@pytest.fixture
def largest():
    return Largest
