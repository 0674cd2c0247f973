"""A decoder that alternates local and global layers, one token at a time, global keys slowed down by 2."""

import math

import torch

ABOUT = {
    "kind": "decoder",
    "encoding": "rope",
    "layout": "half",
    "vocabulary": 23,
    "layers": ["global", "local"],
    "base": 10000.0,
    "scaling": {"global": {"type": "linear", "factor": 2.0}},
    "window": 4,
    "takes": ("positions",),
}
N = 16


def norm(x):
    return x / x.pow(2).mean(-1, keepdim=True).sqrt()


def turned(x, position, slower):
    theta = torch.tensor([10000.0 ** (-i / (N // 2)) for i in range(N // 2)])
    angle = position[:, None] / slower * theta
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


class Decoder:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.wte = torch.randn(23, N, generator=g)
        self.layers = torch.randn(2, 4, N, N, generator=g) / math.sqrt(N)

    def step(self, token, position, cache):
        x = self.wte[token]
        for n, (wq, wk, wv, wo) in enumerate(self.layers):
            is_global = n == 0
            slower = 2.0 if is_global else 1.0
            keys, values = cache.setdefault(n, ([], []))
            keys.append(turned(norm(x) @ wk, position, slower))
            values.append(norm(x) @ wv)
            q = turned(norm(x) @ wq, position, slower)
            near = 0 if is_global else max(len(keys) - 4, 0)
            scores = torch.stack([(q * k).sum(-1) for k in keys[near:]], -1) / math.sqrt(N)
            x = x + torch.einsum("bk,kbd->bd", scores.softmax(-1), torch.stack(values[near:])) @ wo
        return norm(x) @ self.wte.T

    def logits(self, tokens, positions=None, cache=None):
        cache = {} if cache is None else cache
        seen = len(cache[0][0]) if 0 in cache else 0
        where = torch.arange(seen, seen + tokens.shape[1]) if positions is None else positions
        where = where.expand(tokens.shape).float()
        return torch.stack(
            [self.step(tokens[:, t], where[:, t], cache) for t in range(tokens.shape[1])], dim=1
        )
