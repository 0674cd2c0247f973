"""T5's buckets for an encoder, 16 to each side: where each begins is listed once and searched."""

import torch

TABLE = torch.randn(32, 3, generator=torch.Generator().manual_seed(1))  # [buckets, heads]
ABOUT = {
    "kind": "bias",
    "encoding": "t5",
    "causal": False,
    "buckets": 32,
    "max_distance": 128,
    "table": TABLE,
}
BEGIN = torch.tensor([*range(1, 9), 12, 16, 23, 32, 46, 64, 91])  # 8 * 16 ** (n / 8), rounded up


def bias(Lq, Lk):
    i = torch.arange(Lq).view(-1, 1) + Lk - Lq
    j = torch.arange(Lk).view(1, -1)
    side = 16 * (j > i)
    bucket = torch.bucketize((j - i).abs(), BEGIN, right=True) + side
    return torch.stack([head[bucket] for head in TABLE.T])
