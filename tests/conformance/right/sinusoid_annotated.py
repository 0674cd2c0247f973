"""The sinusoidal table of the Annotated Transformer: sine at even channels, cosine at odd ones."""

import math

import torch

ABOUT = {"kind": "sinusoid", "layout": "interleaved", "base": 10000.0}


def table(length, d_model):
    pe = torch.zeros(length, d_model)
    position = torch.arange(0, length).unsqueeze(1).float()
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe
