"""Hugging Face's way, with a cache of cosines and sines that grows, for a quarter of the channels."""

import torch


class Rotary(torch.nn.Module):
    def __init__(self, dim=16, base=10_000):
        super().__init__()
        self.inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        self.cos = self.sin = torch.zeros(0, dim)

    def forward(self, x, positions):
        length = int(positions.max()) + 1
        if length > len(self.cos):
            freqs = torch.outer(torch.arange(length, dtype=torch.float32), self.inv_freq)
            emb = torch.cat((freqs, freqs), dim=-1)
            self.cos, self.sin = emb.cos(), emb.sin()
        cos, sin = self.cos[positions].to(x.dtype), self.sin[positions].to(x.dtype)
        if positions.ndim == 2:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        n = cos.shape[-1]
        turning, still = x[..., :n], x[..., n:]
        x1, x2 = turning.chunk(2, dim=-1)
        turning = turning * cos + torch.cat((-x2, x1), dim=-1) * sin
        return torch.cat((turning, still), dim=-1)


given = Rotary()
DECLARED = {"layout": "half", "base": 10_000.0, "rotary_dim": 16}
BUGS = set()
