"""RoPE as in DeepSeek's latent attention: a head is [content | turned], and its last channels turn."""

import torch

ABOUT = {"kind": "rotate", "layout": "half", "base": 10000.0, "fraction": 0.5, "part": "last"}


def rotate(x, positions):
    nope = x.shape[-1] // 2
    part = slice(nope, None)
    dim = x[..., part].shape[-1]
    inv_freq = torch.exp(torch.linspace(0, 1 - 2 / dim, dim // 2) * -torch.log(torch.tensor(10000.0)))
    phase = positions.float()[..., None, :, None] * inv_freq
    real, imag = x[..., part].float().chunk(2, dim=-1)
    spun = torch.complex(real, imag) * torch.exp(1j * phase)
    out = x.clone()
    out[..., part] = torch.cat((spun.real, spun.imag), dim=-1).to(x.dtype)
    return out
