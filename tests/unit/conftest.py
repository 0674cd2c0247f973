"""The encodings that the general tests run over: a new method joins by one line in ENCODINGS."""

import pytest
import torch
from torch import nn

from tutorial_lib.encodings import (
    Add,
    ALiBi,
    AsymmetricALiBi,
    ClippedBias,
    Compose,
    Concatenate,
    Learned,
    Multiply,
    NoPosition,
    PositionalEncoding,
    PositionMatrix,
    Rotary,
    Shaw,
    Sinusoidal,
    T5Bias,
    TableBias,
)

D_MODEL, N_HEADS, HEAD_DIM, MAX_LENGTH = 16, 2, 8, 64


def offsets(q_positions, k_positions, dtype):
    """r = k − q, [Lq, Lk], or [B, 1, Lq, Lk] when a row has positions of its own."""
    r = (k_positions[..., None, :] - q_positions[..., :, None]).to(dtype)
    return r if r.ndim == 2 else r[:, None]


class FourDoors(PositionalEncoding):
    """Opens four doors, each by a plain formula that a loop can repeat. No real method."""

    scale = 0.3

    def __init__(self, heads=N_HEADS, head_dim=HEAD_DIM):
        super().__init__()
        self.slope = nn.Parameter(torch.linspace(0.5, 1.5, heads))
        self.mix = nn.Parameter(torch.linspace(-1, 1, head_dim))

    def embed(self, x, positions):
        return x + torch.sin(positions.to(x.dtype))[..., None]

    def rotate(self, q, k, q_positions, k_positions):
        p_q, p_k = q_positions.to(q.dtype), k_positions.to(k.dtype)
        p_q, p_k = (p if p.ndim == 1 else p[:, None] for p in (p_q, p_k))
        return q * (1 + 0.1 * p_q[..., None].sin()), k * (2 + p_k[..., None].cos())

    def content_bias(self, q, k, q_positions, k_positions):
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        return (q * self.mix) @ k.mT * offsets(q_positions, k_positions, q.dtype).sin()

    def bias(self, q_positions, k_positions):
        r = offsets(q_positions, k_positions, self.slope.dtype)
        return self.slope[:, None, None] * (r / 3).cos()


class EveryDoor(FourDoors):
    """Opens the fifth door, too."""

    def values(self, weights, q_positions, k_positions):
        r = offsets(q_positions, k_positions, weights.dtype)
        return (weights * r.cos()).sum(-1, keepdim=True) * self.mix.to(weights.dtype)


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
    "clipped": lambda: ClippedBias(N_HEADS, 3, std=1.0),
    "table": lambda: TableBias(N_HEADS, MAX_LENGTH, std=1.0),
    "alibi": lambda: ALiBi(N_HEADS),
    "alibi-symmetric": lambda: ALiBi(N_HEADS, symmetric=True),
    "alibi-asymmetric": lambda: AsymmetricALiBi(N_HEADS),
    "t5": lambda: T5Bias(N_HEADS, n_buckets=6, max_distance=8, std=1.0),
    "t5-bidirectional": lambda: T5Bias(N_HEADS, bidirectional=True, std=1.0),
    "shaw": lambda: Shaw(HEAD_DIM, 2),
    "every-door": EveryDoor,
    "compose": lambda: Compose(Learned(MAX_LENGTH, D_MODEL, std=1.0), Rotary(HEAD_DIM), FourDoors()),
}
RELATIVE = (  # scores do not change when all positions shift
    "none", "rotary", "rotary-half", "clipped", "table", "alibi", "alibi-symmetric", "alibi-asymmetric",
    "t5", "t5-bidirectional", "shaw",
)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(params=ENCODINGS)
def encoding(request, seed):
    """Each encoding in turn."""
    return ENCODINGS[request.param]()


@pytest.fixture(params=RELATIVE)
def relative(request, seed):
    return ENCODINGS[request.param]()


@pytest.fixture(params=[FourDoors, EveryDoor])
def open_doors(request):
    """A class of encodings with finite terms at every door: what only masks cannot show."""
    return request.param
