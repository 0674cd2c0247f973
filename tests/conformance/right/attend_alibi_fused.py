"""Causal attention with ALiBi as the mask of the fused kernel, with the slopes of MPT."""

import math

import torch
from torch.nn import functional as F

ABOUT = {"kind": "attend", "encoding": "alibi"}


def gen_slopes(n_heads):
    n = 2 ** math.ceil(math.log2(n_heads))
    m = torch.arange(1, n + 1).mul(8.0 / n)
    slopes = torch.pow(2.0, -m)
    return slopes if n == n_heads else torch.cat((slopes[1::2], slopes[::2]))[:n_heads]


def attend(q, k, v, offset=0):
    behind = torch.arange(offset, offset + q.size(2)).unsqueeze(1) - torch.arange(k.size(2))
    distance = behind.float()
    attn_bias = -gen_slopes(q.size(1))[:, None, None] * distance
    attn_bias = attn_bias.masked_fill(behind < 0, -torch.inf).to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_bias)
