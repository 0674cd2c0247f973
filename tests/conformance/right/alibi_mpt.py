"""ALiBi for 6 heads as in MPT and BLOOM: a row says how near the end a key is, softmax does the rest."""

import math

import torch

N_HEADS = 6
ABOUT = {"kind": "bias", "encoding": "alibi", "heads": N_HEADS, "causal": True, "rows": "up to a constant"}


def gen_slopes(n_heads, alibi_bias_max=8):
    n = 2 ** math.ceil(math.log2(n_heads))
    m = torch.arange(1, n + 1).float() * alibi_bias_max / n
    slopes = 1.0 / torch.pow(2, m)
    if n != n_heads:
        slopes = torch.cat([slopes[1::2], slopes[::2]])[:n_heads]
    return slopes.view(n_heads, 1, 1)


def bias(Lq, Lk):
    near = torch.arange(1 - Lk, 1).view(1, 1, Lk)
    return (gen_slopes(N_HEADS) * near).expand(-1, Lq, -1)
