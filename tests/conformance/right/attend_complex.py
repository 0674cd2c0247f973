"""Causal attention with RoPE in complex numbers, one table for all positions, and the fused kernel."""

import torch
from torch.nn.functional import scaled_dot_product_attention

ABOUT = {"kind": "attend", "encoding": "rope", "layout": "interleaved", "base": 10000.0}
DIM = 128  # the model's


def precompute(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: dim // 2].float() / dim))
    t = torch.arange(end)
    angles = torch.outer(t.float(), freqs)
    return torch.polar(torch.ones_like(angles), angles)


def rotary(x, cis):
    return (
        torch.view_as_real(torch.view_as_complex(x.float().unflatten(-1, (-1, 2))) * cis)
        .flatten(-2)
        .type_as(x)
    )


def attend(q, k, v, offset=0):
    Lq, Lk = q.size(2), k.size(2)
    cis = precompute(q.size(-1), max(offset + Lq, Lk))
    rows = slice(offset, offset + Lq)
    q, k = rotary(q, cis[rows]), rotary(k, cis[:Lk])
    mask = torch.arange(Lk) <= torch.arange(offset, offset + Lq)[:, None]
    return scaled_dot_product_attention(q, k, v, attn_mask=mask)
