"""ALiBi for 10 heads: slopes in closed form, distances from a cumulative sum as one writes it for masks."""

import torch

ABOUT = {"kind": "bias", "encoding": "alibi", "heads": 10, "causal": True}


def slopes():
    first = 2.0 ** -torch.arange(1, 9)
    between = 2.0 ** -torch.arange(0.5, 2)
    return torch.cat((first, between))


def bias(Lq, Lk):
    at = torch.ones(Lk).cumsum(0) - 1
    queries = at[Lk - Lq :]
    relative = at[None, :] - queries[:, None]
    relative = relative.where(relative <= 0, 0.0)
    return torch.einsum("h,qk->hqk", slopes(), relative)
