"""Sparse attention with one function and a flag, as in vLLM: attention and indexer agree on it."""

import torch

ABOUT = {"kind": "indexer", "layout": "interleaved", "base": 10000.0}


def apply_rope(x, positions, is_neox_style):
    pairs = x.shape[-1] // 2
    freqs_cis = torch.exp(1j * positions.float()[..., None, :, None] * 1e4 ** (-torch.arange(pairs) / pairs))
    shape = (2, pairs) if is_neox_style else (pairs, 2)
    axis = -2 if is_neox_style else -1
    a, b = x.float().unflatten(-1, shape).unbind(axis)
    z = torch.complex(a, b) * freqs_cis
    return torch.stack((z.real, z.imag), dim=axis).flatten(-2).to(x.dtype)


def rotate(x, positions):
    return apply_rope(x, positions, is_neox_style=False)


def index_rotate(x, positions):
    return apply_rope(x, positions, False)
