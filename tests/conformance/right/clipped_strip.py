"""A learned bias per clipped distance for 2 heads: a strip of all distances, and windows of it as rows."""

import torch

M = 6
TABLE = torch.randn(2, 2 * M + 1, generator=torch.Generator().manual_seed(6))  # [heads, distances -M ... M]
ABOUT = {"kind": "bias", "encoding": "clipped", "causal": False, "clip": M, "table": TABLE}


def bias(Lq, Lk):
    distances = torch.arange(-(Lk - 1), Lk)
    strip = TABLE[:, distances.clamp(-M, M).add(M)]
    rows = []
    for row in range(Lq):
        i = Lk - Lq + row
        start = Lk - 1 - i
        rows.append(strip[:, start : start + Lk])
    return torch.stack(rows, dim=1)
