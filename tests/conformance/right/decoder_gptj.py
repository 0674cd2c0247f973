"""A decoder in GPT-J's style: attention and MLP side by side, RoPE of neighbours on half of each head.

Its weights come from a checkpoint for two halves, and `permute` reorders their rows for neighbours once.
"""

import torch
from torch.nn import functional as F

ABOUT = {
    "kind": "decoder",
    "encoding": "rope",
    "layout": "interleaved",
    "base": 10000.0,
    "fraction": 0.5,
    "vocabulary": 23,
    "takes": ("positions",),
}
N_EMBD, N_HEAD, HEAD, ROTARY = 48, 3, 16, 8


def permute(w):
    """[width, heads * head]: halves (0, 4), (1, 5), ... become neighbours (0, 1), (2, 3), ..."""
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7, *range(ROTARY, HEAD)])
    return w.unflatten(1, (N_HEAD, HEAD))[:, :, order].flatten(1)


def rotary(x, angles):
    turn, rest = x[..., :ROTARY], x[..., ROTARY:]
    s, c = angles.sin().repeat_interleave(2, -1), angles.cos().repeat_interleave(2, -1)
    crossed = torch.stack((-turn[..., 1::2], turn[..., ::2]), dim=-1).flatten(-2)
    return torch.cat((turn * c + crossed * s, rest), dim=-1)


class Decoder:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        random = lambda *shape: torch.randn(*shape, generator=g) / shape[0] ** 0.5  # noqa: E731
        self.wte = random(23, N_EMBD) * 5
        self.blocks = []
        for _ in range(2):
            q, k, v, o = (random(N_EMBD, N_EMBD) for _ in range(4))
            q, k = permute(q), permute(k)
            self.blocks.append((q * 1.5, k * 1.5, v, o, random(N_EMBD, 96), random(96, N_EMBD)))

    def logits(self, tokens, positions=None, cache=None):
        B, L = tokens.shape
        past = 0 if not cache else cache["seen"]
        places = torch.arange(past, past + L)
        if positions is None:
            positions = places
        inv_freq = 10000.0 ** (-torch.arange(0, ROTARY, 2) / ROTARY)
        angles = positions.float().expand(B, L)[:, None, :, None] * inv_freq
        mask = torch.arange(past + L)[None, :] > places[:, None]
        x = self.wte[tokens]
        for n, (wq, wk, wv, wo, w1, w2) in enumerate(self.blocks):
            h = F.layer_norm(x, (N_EMBD,))
            q, k, v = ((h @ w).view(B, L, N_HEAD, HEAD).transpose(1, 2) for w in (wq, wk, wv))
            q, k = rotary(q, angles), rotary(k, angles)
            if cache is not None:
                k = cache[f"k{n}"] = torch.cat((cache.get(f"k{n}", k[:, :, :0]), k), 2)
                v = cache[f"v{n}"] = torch.cat((cache.get(f"v{n}", v[:, :, :0]), v), 2)
            weights = (q @ k.mT / HEAD**0.5).masked_fill(mask, -torch.inf).softmax(-1)
            x = x + (weights @ v).transpose(1, 2).flatten(2) @ wo + F.gelu(h @ w1) @ w2
        if cache is not None:
            cache["seen"] = past + L
        return F.layer_norm(x, (N_EMBD,)) @ self.wte.T
