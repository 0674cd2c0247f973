"""T5's buckets for an encoder as in Mesh TensorFlow: n = i - j, the far half of the table for keys ahead."""

import math

import torch

TABLE = torch.randn(20, 4, generator=torch.Generator().manual_seed(3))  # [buckets, heads]
ABOUT = {"kind": "bias", "encoding": "t5", "causal": False, "buckets": 20, "max_distance": 50, "table": TABLE}


def bias(Lq, Lk):
    q, k = torch.arange(Lq) + Lk - Lq, torch.arange(Lk)
    n = q[:, None] - k
    half, exact = 10, 5
    ahead = torch.where(n < 0, half, 0)
    n = n.abs()
    far = exact + torch.floor(torch.log(n.clamp(min=1) / exact) / math.log(50 / exact) * (half - exact))
    far = far.clamp(max=half - 1).long()
    return torch.nn.functional.embedding(ahead + torch.where(n < exact, n, far), TABLE).permute(2, 0, 1)
