"""A nanoGPT clone with a learned table of positions, left padding, packed documents and a cache."""

import torch
from torch import nn

ABOUT = {
    "kind": "decoder",
    "encoding": "learned",
    "vocabulary": 23,
    "takes": ("positions", "mask", "documents"),
}


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x, visible, cache):
        q, k, v = (
            part.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for part in self.c_attn(self.ln_1(x)).chunk(3, dim=-1)
        )
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat((cache["k"], k), dim=2), torch.cat((cache["v"], v), dim=2)
            cache["k"], cache["v"] = k, v
        att = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
        att = att.masked_fill(~visible[:, None], -1e9).softmax(dim=-1)
        x = x + self.c_proj((att @ v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln_2(x))


class Decoder(nn.Module):
    def __init__(self, seed, n_embd=32, n_head=2, n_layer=2, block_size=256):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.wte, self.wpe = nn.Embedding(23, n_embd), nn.Embedding(block_size, n_embd)
            self.h = nn.ModuleList(Block(n_embd, n_head) for _ in range(n_layer))
            self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, 23, bias=False)

    @torch.no_grad()
    def logits(self, idx, positions=None, mask=None, documents=None, cache=None):
        """``mask`` [B, past + L] is False at padding; ``documents`` [B, L] numbers a row's packed texts."""
        b, t = idx.size()
        past = cache["length"] if cache else 0
        place = torch.arange(past, past + t)
        visible = (torch.arange(past + t) <= place[:, None]).expand(b, -1, -1)
        pos = place.expand(b, t)
        if documents is not None:
            visible = visible & (documents[:, :, None] == documents[:, None, :])
            first = (documents[:, :, None] == documents[:, None, :]).int().argmax(-1)
            pos = pos - first
        if mask is not None:
            visible = visible & mask[:, None, :]
            pos = (mask.long().cumsum(-1) - 1).clamp(min=0)[:, past:]
        if positions is not None:
            pos = positions.expand(b, t)
        x = self.wte(idx) + self.wpe(pos)
        if cache is not None:
            cache["length"] = past + t
        for number, block in enumerate(self.h):
            x = block(x, visible, None if cache is None else cache.setdefault(number, {}))
        return self.lm_head(self.ln_f(x))
