"""The sinusoidal table number by number, as the paper's formula reads."""

import math

import torch

ABOUT = {"kind": "sinusoid", "layout": "interleaved", "base": 10000.0}


def entry(pos, channel, d):
    i = channel // 2
    angle = pos / 10000.0 ** (2 * i / d)
    return math.cos(angle) if channel % 2 else math.sin(angle)


def table(length, d_model):
    return torch.tensor([[entry(pos, c, d_model) for c in range(d_model)] for pos in range(length)])
