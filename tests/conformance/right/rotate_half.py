"""RoPE as in Transformers: two halves, `rotate_half`, and tables of cos and sin that grow when needed."""

import torch

CONFIG = {"hidden_size": 256, "rope_theta": 10000.0, "rope_parameters": {"rope_theta": 500000.0}}
ABOUT = {"kind": "rotate", "layout": "half", "base": 500000.0}


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class RotaryEmbedding:
    def __init__(self, dim):
        base = CONFIG["rope_parameters"]["rope_theta"]
        self.inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        self.grow(64)

    def grow(self, length):
        self.length = length
        t = torch.arange(length, dtype=torch.float32)
        freqs = torch.outer(t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.cos, self.sin = emb.cos(), emb.sin()

    def __call__(self, x, position_ids):
        if position_ids.max() >= self.length:
            self.grow(int(position_ids.max()) + 1)
        cos, sin = self.cos[position_ids], self.sin[position_ids]
        if position_ids.dim() == 2:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return (x * cos + rotate_half(x) * sin).to(x.dtype)


def rotate(x, positions):
    return RotaryEmbedding(x.shape[-1])(x, positions)
