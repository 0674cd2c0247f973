"""A decoder in OPT's style: learned positions behind an offset of 2, norms after the sums."""

import torch
from torch import nn

ABOUT = {
    "kind": "decoder",
    "encoding": "learned",
    "vocabulary": 23,
    "takes": ("positions", "mask", "documents"),
}


class Positions(nn.Embedding):
    def forward(self, positions):
        return super().forward(positions + 2)


class Decoder(nn.Module):
    def __init__(self, seed, width=32):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embed_tokens, self.embed_positions = nn.Embedding(23, width), Positions(258, width)
            self.attention = nn.ModuleList(
                nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(2)
            )
            self.fc1 = nn.ModuleList(nn.Linear(width, 64) for _ in range(2))
            self.fc2 = nn.ModuleList(nn.Linear(64, width) for _ in range(2))
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))

    @torch.no_grad()
    def logits(self, tokens, positions=None, mask=None, documents=None, cache=None):
        B, L = tokens.shape
        past = cache["inputs"][0].shape[1] if cache else 0
        rows = torch.arange(past, past + L)
        if positions is None and mask is not None:
            positions = mask.cumsum(1)[:, past:] * mask[:, past:] - 1
            positions = positions.clamp(min=0)
        elif positions is None and documents is not None:
            lengths = [torch.unique_consecutive(row, return_counts=True)[1].tolist() for row in documents]
            positions = torch.stack([torch.cat([torch.arange(n) for n in each]) for each in lengths])
        elif positions is None:
            positions = rows
        ahead = (torch.arange(past + L) > rows[:, None]).expand(B, -1, -1)
        if mask is not None:
            ahead = ahead | (~mask[:, None, :] & (torch.arange(past + L) != rows[:, None]))
        if documents is not None:
            ahead = ahead | (documents[:, None, :] != documents[:, :, None])
        x = self.embed_tokens(tokens) + self.embed_positions(positions.expand(B, L))
        inputs = []
        for n, attention in enumerate(self.attention):
            seen = torch.cat((cache["inputs"][n], x), dim=1) if cache else x
            inputs.append(seen)
            mixed, _ = attention(x, seen, seen, attn_mask=ahead.repeat_interleave(4, dim=0))
            x = self.norms[2 * n](x + mixed)
            x = self.norms[2 * n + 1](x + self.fc2[n](self.fc1[n](x).relu()))
        if cache is not None:
            cache["inputs"] = inputs
        return x @ self.embed_tokens.weight.T
