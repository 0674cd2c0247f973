"""A streaming decoder: two first tokens and the last five stay; keys are kept unturned, turned by place."""

import torch
from torch.nn import functional as F

ABOUT = {
    "kind": "streaming",
    "encoding": "rope",
    "layout": "half",
    "base": 10000.0,
    "vocabulary": 23,
    "sinks": 2,
    "recent": 5,
}
C, SINKS, RECENT = 16, 2, 5


def rope(x, positions):
    angle = positions[:, None] * 10000.0 ** (-torch.arange(C // 2) / (C // 2))
    a, b = x[..., : C // 2], x[..., C // 2 :]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def evict(kept):
    return kept if kept.shape[1] <= SINKS + RECENT else torch.cat((kept[:, :SINKS], kept[:, -RECENT:]), 1)


class Decoder:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.embed = torch.randn(23, C, generator=g)
        self.w = torch.randn(2, 4, C, C, generator=g) * C**-0.5

    def step(self, token, cache):
        """Logits [B, vocabulary] after one more token [B]; ``cache`` is a dict, empty at the start."""
        x = self.embed[token][:, None]
        for n, (wq, wk, wv, wo) in enumerate(self.w):
            h = F.rms_norm(x, (C,))
            k, v = h @ wk, h @ wv
            k = evict(torch.cat((cache.get(("k", n), k[:, :0]), k), 1))
            v = evict(torch.cat((cache.get(("v", n), v[:, :0]), v), 1))
            cache["k", n], cache["v", n] = k, v
            places = torch.arange(k.shape[1])
            keys = rope(k, places)
            q = rope(h @ wq, places[-1:])
            x = x + (q @ keys.mT * C**-0.5).softmax(-1) @ v @ wo
        return (F.rms_norm(x, (C,)) @ self.embed.T)[:, 0]

    def logits(self, tokens, cache=None):
        cache = {} if cache is None else cache
        return torch.stack([self.step(token, cache) for token in tokens.T], dim=1)
