"""T5's buckets for a decoder, 12 of them up to distance 40: one list from distance to bucket, made once."""

import math

import torch

TABLE = torch.randn(5, 12, generator=torch.Generator().manual_seed(8))  # [heads, buckets]
ABOUT = {
    "kind": "bias",
    "encoding": "t5",
    "causal": True,
    "buckets": 12,
    "max_distance": 40,
    "table": TABLE.T,
}


def of_distance(n):
    return n if n < 6 else min(6 + int(6 * math.log(n / 6) / math.log(40 / 6)), 11)


def bias(Lq, Lk):
    buckets = torch.tensor([of_distance(n) for n in range(Lk)])
    i = torch.arange(Lk)[Lk - Lq :, None]
    back = i - torch.arange(Lk)
    return TABLE[:, buckets[back.clamp(min=0)]]
