"""The measures themselves, on cases whose value is known."""

import math

import pytest
import torch
from torch import nn

from tutorial_lib.attention import scores
from tutorial_lib.encodings import Learned, Rotary, sinusoidal
from tutorial_lib.properties import (
    equivariance_error,
    invariance_error,
    parameters,
    relative_error,
    shift_error,
    toeplitz_error,
)

X, ORDER = torch.randn(6, 3, dtype=torch.float64), torch.tensor([2, 0, 1, 5, 3, 4])


def test_relative_error():
    a, zero = torch.tensor([1.0, -4.0]), torch.zeros(2)
    assert relative_error(a, a) == 0
    assert relative_error(torch.tensor([1.0, -2.0]), a) == 0.5
    assert relative_error(torch.tensor([0.0, -4.0]), a) == 0.25
    assert relative_error(torch.tensor([0.0, 3.0]), zero) == 3 and relative_error(zero, zero) == 0
    assert math.isnan(relative_error(a, torch.tensor([math.nan, 1])))
    with pytest.raises(ValueError, match=r"shapes differ: \(2,\) and \(1,\)"):
        relative_error(a, zero[:1])


def test_equivariance_and_invariance_are_told_apart():
    assert equivariance_error(lambda x: x.square(), X, ORDER) == 0
    assert equivariance_error(lambda x: x.cumsum(0), X, ORDER) > 0.1
    assert invariance_error(lambda x: x.amax(0), X, ORDER) == 0
    assert invariance_error(lambda x: x.square(), X, ORDER) > 0.1
    assert invariance_error(lambda x: x[0], X, ORDER) > 0.1


def test_shift_error_by_hand():
    assert shift_error(lambda p: p[:, None] - p, 4, 10) == 0
    assert shift_error(lambda p: 1.0 * p[:, None] + p, 4, 3) == 1  # 6 more, and 6 is the largest
    assert shift_error(lambda p: p[None, :] * 1.0, 5, 0.5) == 0.125


def test_shift_error_of_encodings():
    q, k = torch.randn(2, 1, 2, 8, 16, dtype=torch.float64)
    assert shift_error(lambda p: scores(q, k, Rotary(16), p, p), 8, 1000) < 1e-12
    table = Learned(30, 16, std=1.0).double()
    assert shift_error(lambda p: table.vectors(p) @ table.vectors(p).T, 8, 5) > 0.1


def test_toeplitz_error_by_hand():
    i = torch.arange(5.0)
    assert toeplitz_error(i - i[:, None]) == 0
    assert toeplitz_error(torch.ones(3, 3)) == 0
    # diagonal 0, 2 (mean 1), off diagonal 1, 1: all variance lies within one diagonal
    assert toeplitz_error(torch.tensor([[0.0, 1], [1, 2]])) == 1
    # diagonal 0, 2; upper 4; lower −2: variances 2/4 within and 20/4 in total
    assert toeplitz_error(torch.tensor([[0.0, 4], [-2, 2]])) == pytest.approx(0.1)
    assert toeplitz_error(torch.randn(60, 60)) > 0.9
    with pytest.raises(ValueError, match=r"square matrix \[L, L\], not \(2, 3\)"):
        toeplitz_error(torch.zeros(2, 3))


def test_sinusoids_are_toeplitz_until_weights_stand_between():
    p = sinusoidal(torch.arange(64, dtype=torch.float64), 32)
    assert toeplitz_error(p @ p.T) < 1e-12
    w = torch.randn(32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert toeplitz_error(p @ w @ p.T) > 0.3


def test_parameters_counts_what_is_trained():
    layer = nn.Linear(3, 4)
    assert parameters(layer) == 16 and parameters(Rotary(8)) == 0
    layer.bias.requires_grad_(False)
    assert parameters(layer) == 12
