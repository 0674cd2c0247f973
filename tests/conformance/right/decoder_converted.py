"""A decoder whose checkpoint was trained on neighbours, as Meta's; `permute` makes it one for halves."""

import torch
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

ABOUT = {
    "kind": "decoder",
    "encoding": "rope",
    "layout": "half",
    "base": 10000.0,
    "vocabulary": 23,
    "takes": ("positions",),
}
DIM, N_HEADS, N_KV_HEADS, HEAD_DIM = 32, 4, 2, 8


def permute(w, n_heads):
    return w.view(n_heads, HEAD_DIM // 2, 2, DIM).transpose(1, 2).reshape(n_heads * HEAD_DIM, DIM)


def rotate(x, cos, sin):
    a, b = x[..., : HEAD_DIM // 2], x[..., HEAD_DIM // 2 :]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Decoder:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.tok_embeddings = torch.randn(23, DIM, generator=g)
        self.layers = []
        for _ in range(2):
            wq, wo = torch.randn(2, DIM, DIM, generator=g) * 0.25
            wk, wv = torch.randn(2, N_KV_HEADS * HEAD_DIM, DIM, generator=g) * 0.25
            wq, wk = permute(wq, N_HEADS), permute(wk, N_KV_HEADS)
            self.layers.append((wq, wk, wv, wo))

    def logits(self, tokens, positions=None, cache=None):
        B, L = tokens.shape
        start = cache["start"] if cache else 0
        at = torch.arange(start, start + L)
        if positions is None:
            positions = at
        freqs = 1.0 / 10000.0 ** (torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
        angles = positions.expand(B, L)[:, None, :, None].float() * freqs
        cos, sin = angles.cos(), angles.sin()
        visible = torch.arange(start + L) <= at[:, None]
        x = self.tok_embeddings[tokens]
        for n, (wq, wk, wv, wo) in enumerate(self.layers):
            h = rms_norm(x, (DIM,))
            q, k, v = (linear(h, w).view(B, L, -1, HEAD_DIM).transpose(1, 2) for w in (wq, wk, wv))
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            if cache is not None:
                before = cache.get(n, (k[:, :, :0], v[:, :, :0]))
                k, v = cache[n] = torch.cat((before[0], k), 2), torch.cat((before[1], v), 2)
            out = scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=True)
            x = x + silu(linear(out.transpose(1, 2).flatten(2), wo))
        if cache is not None:
            cache["start"] = start + L
        return linear(rms_norm(x, (DIM,)), self.tok_embeddings)
