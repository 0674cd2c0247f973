"""RoPE as in GPT-J: a quarter of the channels turns, each with its neighbour, written with strides."""

import torch

ABOUT = {"kind": "rotate", "layout": "interleaved", "base": 10000.0, "fraction": 0.25}
N_EMBD = 256


def rotate(x, positions):
    first, size = 0, x.shape[-1] // 4
    inv_freq = 10000.0 ** -(torch.arange(size // 2, dtype=torch.float32) * 2 / size)
    where = positions if positions.dim() == 2 else positions[None]
    sinusoid = where[:, None, :, None].float() * inv_freq
    sin, cos = torch.sin(sinusoid), torch.cos(sinusoid)
    out, whole = x.float().clone(), x.float()
    even, odd = whole[..., first : first + size : 2], whole[..., first + 1 : first + size : 2]
    out[..., first : first + size : 2] = even * cos - odd * sin
    out[..., first + 1 : first + size : 2] = odd * cos + even * sin
    return out.to(x.dtype)
