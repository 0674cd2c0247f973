"""Causal attention with RoPE on halves. Keys stand at 0, 1, ...; the first query stands at `offset`."""

import math

import torch

CONFIG = {"hidden_size": 256, "rope_theta": 10000.0, "rope_parameters": {"rope_theta": 500000.0}}
ABOUT = {"kind": "attend", "encoding": "rope", "layout": "half", "base": 500000.0}


def tables(positions, dim):
    base = CONFIG["rope_parameters"]["rope_theta"]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
    freqs = torch.outer(positions.float(), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    return emb.cos(), emb.sin()


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(x, cos, sin):
    return x * cos + rotate_half(x) * sin


def attend(q, k, v, offset=0):
    i = torch.arange(q.shape[-2]) + offset
    j = torch.arange(k.shape[-2])
    visible = j <= i[:, None]
    query_positions, key_positions = i, j
    q = apply_rotary(q, *tables(query_positions, q.shape[-1]))
    k = apply_rotary(k, *tables(key_positions, k.shape[-1]))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~visible, -torch.inf).softmax(-1) @ v
