"""What the tests of attention layers share: heads apart, heads together, and how close is close."""

import torch


def close(actual, expected, tolerance):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=0)


def heads(y, n):
    return y.unflatten(-1, (n, -1)).transpose(1, 2)


def merged(y):
    return y.transpose(1, 2).flatten(-2)
