"""A decoder in Gemma 3's style: local layers have base 10000, global ones 1000000 and are slowed by 8."""

import torch
from torch import nn
from torch.nn import functional as F

ABOUT = {
    "kind": "decoder",
    "encoding": "rope",
    "layout": "half",
    "vocabulary": 23,
    "layers": ["local", "global", "local"],
    "base": {"local": 10000.0, "global": 1000000.0},
    "scaling": {"global": {"type": "linear", "factor": 8.0}},
    "window": 6,
    "takes": ("positions",),
}
D, H, HEAD = 32, 2, 16
LAYER_TYPES = ["local", "global", "local"]


def inv_freq(kind):
    theta, factor = (10000.0, 1.0) if kind == "local" else (1000000.0, 8.0)
    return 1.0 / (theta ** (torch.arange(0, HEAD, 2, dtype=torch.float32) / HEAD)) / factor


def rope(x, angles):
    first, second = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).type_as(x)


class Layer(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.qkv, self.o = nn.Linear(D, 3 * H * HEAD, bias=False), nn.Linear(H * HEAD, D, bias=False)
        self.q_norm, self.k_norm, self.norm = nn.RMSNorm(HEAD), nn.RMSNorm(HEAD), nn.RMSNorm(D)
        self.mlp = nn.Sequential(nn.RMSNorm(D), nn.Linear(D, 64), nn.GELU(), nn.Linear(64, D))

    def forward(self, x, positions, past):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, H, HEAD)).permute(2, 0, 3, 1, 4)
        angles = positions[:, None, :, None].float() * inv_freq(self.kind)
        q, k = rope(self.q_norm(q) * 2, angles), rope(self.k_norm(k), angles)
        if past:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        behind = torch.arange(k.size(2) - x.size(1), k.size(2))[:, None] - torch.arange(k.size(2))
        mask = (behind >= 0) & (behind < 6) if self.kind == "local" else behind >= 0
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))
        return x + self.mlp(x), (k, v)


class Decoder(nn.Module):
    def __init__(self, seed):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embed = nn.Embedding(23, D)
            self.layers = nn.ModuleList(Layer(kind) for kind in LAYER_TYPES)

    @torch.no_grad()
    def logits(self, tokens, positions=None, cache=None):
        x = self.embed(tokens)
        if positions is None:
            seen = cache[0][0].size(2) if cache else 0
            positions = torch.arange(tokens.size(1)) + seen
        positions = positions.expand(tokens.shape)
        for i, layer in enumerate(self.layers):
            x, keys_values = layer(x, positions, None if not cache else cache.get(i))
            if cache is not None:
                cache[i] = keys_values
        return F.rms_norm(x, (D,)) @ self.embed.weight.T
