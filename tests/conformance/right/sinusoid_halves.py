"""A sinusoidal table by an outer product: sines in the first half, cosines in the second."""

import torch

ABOUT = {"kind": "sinusoid", "layout": "half", "base": 10000.0}


def table(length, d_model):
    half = d_model // 2
    inv_freq = 1 / 10000.0 ** (torch.arange(0.0, d_model, 2.0) / d_model)
    angle = torch.outer(torch.arange(length).float(), inv_freq)
    out = torch.empty(length, d_model)
    out[:, :half] = angle.sin()
    out[:, half:] = angle.cos()
    return out
