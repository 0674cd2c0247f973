"""T5's buckets for a decoder with 16 of them up to distance 64, one distance at a time, in whole numbers."""

import torch

TABLE = torch.randn(16, 2, generator=torch.Generator().manual_seed(2))  # [buckets, heads]
ABOUT = {"kind": "bias", "encoding": "t5", "causal": True, "buckets": 16, "max_distance": 64, "table": TABLE}


def bucket(i, j):
    n = max(i - j, 0)
    if n < 8:
        return n
    step = 0  # the largest one with 8 * 8 ** (step / 8) <= n
    while step < 7 and 8 ** (8 + step + 1) <= n**8:
        step += 1
    return 8 + step


def bias(Lq, Lk):
    start = Lk - Lq
    rows = [[bucket(start + q, k) for k in range(Lk)] for q in range(Lq)]
    return TABLE[torch.tensor(rows)].movedim(-1, 0)
