"""T5's buckets for a decoder, as in Transformers, with a given table for 4 heads."""

import math

import torch

TABLE = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))  # [buckets, heads]
ABOUT = {"kind": "bias", "encoding": "t5", "causal": True, "buckets": 32, "max_distance": 128, "table": TABLE}


def bucket(relative_position, bidirectional=False, num_buckets=32, max_distance=128):
    buckets = 0
    if bidirectional:
        num_buckets //= 2
        buckets += (relative_position > 0).long() * num_buckets
        relative_position = relative_position.abs()
    else:
        relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
    max_exact = num_buckets // 2
    is_small = relative_position < max_exact
    ratio = torch.log(relative_position.float() / max_exact) / math.log(max_distance / max_exact)
    large = max_exact + (ratio * (num_buckets - max_exact)).long()
    large = large.clamp(max=num_buckets - 1)
    return buckets + torch.where(is_small, relative_position, large)


def bias(Lq, Lk):
    context_position = torch.arange(Lk - Lq, Lk)[:, None]
    memory_position = torch.arange(Lk)[None, :]
    relative_position = memory_position - context_position
    values = TABLE[bucket(relative_position)]
    return values.permute(2, 0, 1)
