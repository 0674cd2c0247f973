"""A learned bias per clipped distance for 3 heads (as Shaw and others clip it): index, shift, read."""

import torch

K = 5
TABLE = torch.randn(3, 2 * K + 1, generator=torch.Generator().manual_seed(4))  # [heads, distances -K ... K]
ABOUT = {"kind": "bias", "encoding": "clipped", "causal": False, "clip": K, "table": TABLE}


def bias(Lq, Lk):
    i = torch.arange(Lk - Lq, Lk)
    j = torch.arange(Lk)
    distance = j[None, :] - i[:, None]
    index = distance.clamp(-K, K) + K
    return TABLE[:, index]
