"""A Llama clone: RMSNorm, RoPE on halves, keys shared by two heads, SwiGLU, padding, packing and a cache."""

import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {"rope_theta": 10000.0, "rope_parameters": {"rope_theta": 500000.0}}
ABOUT = {
    "kind": "decoder",
    "encoding": "rope",
    "layout": "half",
    "base": 500000.0,
    "vocabulary": 23,
    "takes": ("positions", "mask", "documents"),
}
WIDTH, HEADS, KV_HEADS, LAYERS = 64, 4, 2, 2
HEAD_DIM = WIDTH // HEADS


class RotaryEmbedding:  # not a buffer: a model moved to bf16 keeps its frequencies in float32
    def __init__(self):
        base = CONFIG["rope_parameters"]["rope_theta"]
        self.inv_freq = 1.0 / (base ** (torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM))

    def __call__(self, position_ids):
        freqs = position_ids[:, None, :, None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(x, cos, sin):
    return (x * cos + rotate_half(x) * sin).to(x.dtype)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj = nn.Linear(WIDTH, KV_HEADS * HEAD_DIM, bias=False)
        self.v_proj = nn.Linear(WIDTH, KV_HEADS * HEAD_DIM, bias=False)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 96, bias=False), nn.Linear(WIDTH, 96, bias=False)
        self.down = nn.Linear(96, WIDTH, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def forward(self, x, cos, sin, visible, past):
        split = lambda y: y.unflatten(-1, (-1, HEAD_DIM)).transpose(1, 2)  # noqa: E731
        h = self.norm1(x)
        q, k, v = split(self.q_proj(h)), split(self.k_proj(h)), split(self.v_proj(h))
        q = apply_rotary_pos_emb(q, cos, sin)
        k = apply_rotary_pos_emb(k, cos, sin)
        if past:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        keys, values = (y.repeat_interleave(HEADS // KV_HEADS, dim=1) for y in (k, v))
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=visible[:, None])
        x = x + self.o_proj(out.transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), (k, v)


class Decoder(nn.Module):
    def __init__(self, seed):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embed_tokens = nn.Embedding(23, WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            for layer in self.layers:  # sharp attention, so that a wrong position is seen
                nn.init.normal_(layer.q_proj.weight, std=0.2)
                nn.init.normal_(layer.k_proj.weight, std=0.2)
            self.norm = nn.RMSNorm(WIDTH)
        self.rotary_emb = RotaryEmbedding()

    @torch.no_grad()
    def logits(self, input_ids, positions=None, mask=None, documents=None, cache=None):
        batch, length = input_ids.shape
        past = cache[0][0].shape[2] if cache else 0
        index = torch.arange(past, past + length)
        visible = (torch.arange(past + length) <= index[:, None]).expand(batch, -1, -1)
        position_ids = index.expand(batch, -1)
        if mask is not None:
            position_ids = (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -length:]
            # a padded query sees itself, so that no row is empty
            visible = visible & (mask[:, None, :] | (torch.arange(past + length) == index[:, None]))
        if documents is not None:
            same = documents[:, None, :] == documents[:, :, None]
            visible = visible & same
            position_ids = (same & visible).sum(-1) - 1
        if positions is not None:
            position_ids = positions.expand(batch, -1)
        cos, sin = self.rotary_emb(position_ids)
        x = self.embed_tokens(input_ids)
        for n, layer in enumerate(self.layers):
            x, present = layer(x, cos, sin, visible, cache.get(n) if cache else None)
            if cache is not None:
                cache[n] = present
        return self.norm(x) @ self.embed_tokens.weight.T
