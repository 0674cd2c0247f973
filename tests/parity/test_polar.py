"""PoPE: scores as two public implementations have them, and as its equation says, one pair at a time."""

import math

import pytest
import torch
import torch.nn.functional as F
from PoPE_pytorch import PoPE as Theirs
from x_transformers import x_transformers

from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings.pope import PoPE

from .layers import close

F64 = torch.float64
H, D, L = 3, 10, 12


def drawn(kv_heads=H):
    q, k, v = (torch.randn(2, n, L, D, dtype=F64) for n in (H, kv_heads, kv_heads))
    ours = PoPE(H, D).double()
    ours.delta.data.uniform_(-2.5 * math.pi, 0.5 * math.pi)  # beyond both ends, too
    return ours, q, k, v


def of_the_package(ours, q, k):
    theirs = Theirs(D, heads=H, theta=ours.base)
    theirs.bias.data = ours.delta.data
    theirs.inv_freqs = 10_000.0 ** -(torch.arange(D, dtype=F64) / D)
    return theirs.apply_pope_to_qk(theirs(L), q, k)


def of_x_transformers(ours, q, k):
    """It computes in float32."""
    theirs = x_transformers.PolarEmbedding(D, H)
    theirs.learned_bias.data = ours.delta.data[:, None]
    angles, bias = theirs(torch.arange(L))
    turn = x_transformers.apply_polar_pos_emb
    return turn(q, angles), turn(k, angles + bias)


@torch.no_grad()
@pytest.mark.parametrize("theirs, tolerance", [(of_the_package, 1e-12), (of_x_transformers, 1e-5)])
def test_scores(theirs, tolerance):
    ours, q, k, _ = drawn()
    their_q, their_k = theirs(ours, q, k)
    close(scores(q, k, ours), their_q @ their_k.mT / D**0.5, tolerance)


@torch.no_grad()
def test_the_equation_one_pair_at_a_time():
    """With two heads' worth of queries on one key, and positions from elsewhere."""
    ours, q, k, v = drawn(kv_heads=1)
    p, delta = torch.arange(L) + 1000, ours.delta.clamp(-2 * math.pi, 0)
    theta = 10_000.0 ** -(torch.arange(D, dtype=F64) / D)
    got, out = scores(q, k, ours, p, p), attention(q, k, v, ours, p, p, causal=True)
    for h in range(H):
        for m in range(L):
            expected = []
            for n in range(L):
                lengths = F.softplus(q[0, h, m]) * F.softplus(k[0, 0, n])
                expected.append((lengths * torch.cos((n - m) * theta + delta[h])).sum() / D**0.5)
            expected = torch.stack(expected)
            close(got[0, h, m], expected, 1e-10)
            close(out[0, h, m], expected[: m + 1].softmax(-1) @ v[0, 0, : m + 1], 1e-10)
