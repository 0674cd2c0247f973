"""A decoder with ALiBi in six heads, in MPT's style, with a cache that is a list of keys and values."""

import math

import torch
from torch import nn

ABOUT = {"kind": "decoder", "encoding": "alibi", "vocabulary": 23, "heads": 6, "takes": ("positions",)}
D_MODEL, N_HEADS = 48, 6


def gen_slopes():
    n = 2 ** math.ceil(math.log2(N_HEADS))
    slopes = 2.0 ** -(torch.arange(1, n + 1) * 8 / n)
    slopes = torch.cat([slopes[1::2], slopes[::2]])[:N_HEADS]
    return slopes.view(1, -1, 1, 1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D_MODEL)
        self.Wqkv = nn.Linear(D_MODEL, 3 * D_MODEL, bias=False)
        self.out_proj = nn.Linear(D_MODEL, D_MODEL, bias=False)
        self.ffn = nn.Sequential(
            nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, 96), nn.GELU(), nn.Linear(96, D_MODEL)
        )

    def forward(self, x, bias, hidden, past):
        q, k, v = self.Wqkv(self.norm(x)).unflatten(-1, (3, N_HEADS, -1)).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        scores = torch.matmul(q, k.transpose(-1, -2)) * q.size(-1) ** -0.5
        scores = scores + bias
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        x = x + self.out_proj((weights @ v).transpose(1, 2).flatten(2))
        return x + self.ffn(x), (k, v)


class Decoder(nn.Module):
    def __init__(self, seed):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.wte = nn.Embedding(23, D_MODEL)
            self.blocks = nn.ModuleList(Block() for _ in range(2))
            for block in self.blocks:
                nn.init.normal_(block.Wqkv.weight, std=0.2)
            self.norm_f = nn.LayerNorm(D_MODEL)

    @torch.no_grad()
    def logits(self, tokens, positions=None, cache=None):
        B, S = tokens.shape
        past = cache["k and v"][0][0].size(2) if cache else 0
        here = torch.arange(past, past + S) if positions is None else positions
        here = here.expand(B, S)
        before = cache["positions"] if cache else here[:, :0]
        everywhere = torch.cat((before, here), dim=1)
        distance = here[:, None, :, None] - everywhere[:, None, None, :]
        bias = -gen_slopes() * distance
        hidden = torch.ones(S, past + S, dtype=torch.bool).triu(past + 1)
        x = self.wte(tokens)
        kept = []
        for n, block in enumerate(self.blocks):
            x, present = block(x, bias, hidden, cache["k and v"][n] if cache else None)
            kept.append(present)
        if cache is not None:
            cache["k and v"], cache["positions"] = kept, everywhere
        return nn.functional.linear(self.norm_f(x), self.wte.weight)
