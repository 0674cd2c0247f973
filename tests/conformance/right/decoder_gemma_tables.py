"""A decoder with two kinds of layers: local RoPE as trained, global RoPE slowed by 4, in complex numbers."""

import torch
from torch.nn import functional as F

ABOUT = {
    "kind": "decoder",
    "encoding": "rope",
    "layout": "interleaved",
    "vocabulary": 23,
    "layers": ["local", "local", "global"],
    "base": 10000.0,
    "scaling": {"global": {"type": "linear", "factor": 4.0}},
    "window": 5,
    "takes": ("positions",),
}
WIDTH, HEAD, FACTOR = 32, 16, 4.0
LOCAL = [True, True, False]


def phases(positions):
    theta = 10000.0 ** (-torch.arange(HEAD // 2) / (HEAD // 2))
    plain = torch.exp(1j * positions[..., None].float() * theta)
    slowed = torch.exp(1j * (positions / FACTOR)[..., None].float() * theta)
    return plain[:, None], slowed[:, None]


def times(x, cis):
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * cis).flatten(-2)


class Decoder:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.embedding = torch.randn(23, WIDTH, generator=g)
        self.weights = [torch.randn(4, WIDTH, WIDTH, generator=g) / WIDTH**0.5 for _ in LOCAL]

    def logits(self, tokens, positions=None, cache=None):
        B, L = tokens.shape
        begin = cache["length"] if cache else 0
        if positions is None:
            positions = torch.arange(begin, begin + L)
        plain, slowed = phases(positions.expand(B, L))
        x = self.embedding[tokens]
        gap = torch.arange(begin, begin + L).unsqueeze(1) - torch.arange(begin + L)
        for n, (w, local) in enumerate(zip(self.weights, LOCAL, strict=True)):
            h = F.rms_norm(x, (WIDTH,))
            q, k, v = ((h @ part).view(B, L, 2, HEAD).transpose(1, 2) for part in w[:3])
            cis = plain if local else slowed
            q, k = times(q, cis), times(k, cis)
            if cache is not None:
                k, v = (torch.cat((*cache.get((n, s), ()), y), 2) for s, y in (("k", k), ("v", v)))
                cache[n, "k"], cache[n, "v"] = (k,), (v,)
            seen = (gap >= 0) & (gap < 5) if local else gap >= 0
            att = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
            x = x + F.silu(att.transpose(1, 2).flatten(2) @ w[3])
        if cache is not None:
            cache["length"] = begin + L
        return F.rms_norm(x, (WIDTH,)) @ self.embedding.T
