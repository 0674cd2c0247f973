"""A decoder with a rolling cache as in Mistral: slot t % 6 is written over, keys keep their first turn."""

import torch
from torch.nn import functional as F

ABOUT = {
    "kind": "streaming",
    "encoding": "rope",
    "layout": "half",
    "base": 10000.0,
    "vocabulary": 23,
    "window": 6,
}
DIM, WINDOW = 16, 6


def rope(x, position):
    angle = position * 10000.0 ** (-torch.arange(0, DIM, 2) / DIM)
    return torch.cat(
        (
            x[..., : DIM // 2] * angle.cos() - x[..., DIM // 2 :] * angle.sin(),
            x[..., DIM // 2 :] * angle.cos() + x[..., : DIM // 2] * angle.sin(),
        ),
        -1,
    )


class Decoder:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.emb = torch.randn(23, DIM, generator=g)
        self.blocks = torch.randn(2, 4, DIM, DIM, generator=g) / 4

    def step(self, token, cache):
        t = cache["t"] = cache.get("t", -1) + 1
        x = self.emb[token]
        for n, (wq, wk, wv, wo) in enumerate(self.blocks):
            h = F.rms_norm(x, (DIM,))
            if n not in cache:
                cache[n] = torch.zeros(2, len(token), WINDOW, DIM)
            cache[n][:, :, t % WINDOW] = torch.stack((rope(h @ wk, t), h @ wv))
            keys, values = cache[n][:, :, : t + 1]
            q = rope(h @ wq, t)
            scores = torch.einsum("bd,bkd->bk", q, keys) / DIM**0.5
            x = x + torch.einsum("bk,bkd->bd", scores.softmax(-1), values) @ wo
        return F.rms_norm(x, (DIM,)) @ self.emb.T

    def logits(self, tokens, cache=None):
        cache = {} if cache is None else cache
        return torch.stack([self.step(token, cache) for token in tokens.T], 1)
