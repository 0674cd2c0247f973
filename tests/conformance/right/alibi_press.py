"""ALiBi for 12 heads, with the slopes of its authors' code; keys ahead get 0 and are masked later."""

import math

import torch

HEADS = 12
ABOUT = {"kind": "bias", "encoding": "alibi", "heads": HEADS, "causal": True}


def get_slopes(n):
    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_2(closest) + get_slopes(2 * closest)[0::2][: n - closest]


def bias(Lq, Lk):
    query = torch.arange(Lq) + (Lk - Lq)
    key = torch.arange(Lk)
    distance = query[:, None] - key[None, :]
    slopes = torch.tensor(get_slopes(HEADS))
    return -slopes[:, None, None] * distance.clamp(min=0)
