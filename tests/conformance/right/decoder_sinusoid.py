"""A decoder with fixed sinusoids added to its tokens, without classes of layers, with a cache of tuples."""

import math

import torch
from torch.nn import functional as F

ABOUT = {
    "kind": "decoder",
    "encoding": "sinusoid",
    "vocabulary": 23,
    "takes": ("positions", "mask", "documents"),
}


def sinusoids(positions, d):
    rates = torch.exp(-math.log(10000.0) * torch.arange(0, d, 2) / d)
    angles = positions.float().unsqueeze(-1) * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


class Decoder:
    def __init__(self, seed, d=32, heads=4, layers=2):
        g = torch.Generator().manual_seed(seed)
        self.d, self.heads = d, heads
        self.tokens = torch.randn(23, d, generator=g)
        self.layers = [
            {name: torch.randn(shape, generator=g) / shape[0] ** 0.5 for name, shape in shapes.items()}
            for shapes in [{"qkv": (d, 3 * d), "out": (d, d), "up": (d, 2 * d), "down": (2 * d, d)}] * layers
        ]

    def logits(self, tokens, positions=None, mask=None, documents=None, cache=None):
        B, L = tokens.shape
        start = cache[0][0].shape[2] if cache else 0
        if positions is None:
            positions = torch.arange(start, start + L).expand(B, L)
            if mask is not None:
                pads = (~mask).sum(1, keepdim=True)
                positions = (positions - pads).clamp(min=0)
            if documents is not None:
                new = documents != documents.roll(1, dims=1)
                new[:, 0] = True
                begin = torch.where(new, torch.arange(L), 0).cummax(dim=1).values
                positions = positions - begin
        allowed = torch.ones(L, start + L, dtype=torch.bool).tril(start).expand(B, L, -1)
        if mask is not None:
            allowed = allowed & mask[:, None]
        if documents is not None:
            allowed = allowed & documents.unsqueeze(2).eq(documents.unsqueeze(1))
        x = self.tokens[tokens] + sinusoids(positions, self.d)
        past = cache if cache else {}
        for n, w in enumerate(self.layers):
            q, k, v = (
                (F.layer_norm(x, (self.d,)) @ w["qkv"]).view(B, L, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            )
            if n in past:
                k, v = torch.cat((past[n][0], k), 2), torch.cat((past[n][1], v), 2)
            if cache is not None:
                cache[n] = (k, v)
            s = (q @ k.mT / math.sqrt(k.shape[-1])).masked_fill(~allowed.unsqueeze(1), -1e9)
            x = x + (s.softmax(-1) @ v).transpose(1, 2).reshape(B, L, self.d) @ w["out"]
            x = x + F.gelu(F.layer_norm(x, (self.d,)) @ w["up"]) @ w["down"]
        return F.layer_norm(x, (self.d,)) @ self.tokens.T
