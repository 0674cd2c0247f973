"""YaRN with factor 8 as in Transformers: ramp between whole dimensions, attention factor in cos and sin."""

import math

import torch

SCALING = {"rope_type": "yarn", "factor": 8.0, "original": 4096, "beta_fast": 32, "beta_slow": 1}
ABOUT = {
    "kind": "rotate",
    "layout": "half",
    "base": 10000.0,
    "scaling": {"type": "yarn", "factor": 8.0, "original": 4096, "truncate": True},
}


def find_correction_dim(num_rotations, dim, base):
    return dim * math.log(SCALING["original"] / (num_rotations * 2 * math.pi)) / (2 * math.log(base))


def find_correction_range(dim, base):
    low = find_correction_dim(SCALING["beta_fast"], dim, base)
    high = find_correction_dim(SCALING["beta_slow"], dim, base)
    low, high = math.floor(low), math.ceil(high)
    return max(low, 0), min(high, dim - 1)


def compute_yarn(dim, base=10000.0):
    pos_freqs = base ** (torch.arange(0, dim, 2).float() / dim)
    extrapolation = 1.0 / pos_freqs
    interpolation = 1.0 / (SCALING["factor"] * pos_freqs)
    low, high = find_correction_range(dim, base)
    ramp = ((torch.arange(dim // 2).float() - low) / max(high - low, 0.001)).clamp(0, 1)
    inv_freq = interpolation * ramp + extrapolation * (1 - ramp)
    attention_factor = 0.1 * math.log(SCALING["factor"]) + 1.0
    return inv_freq, attention_factor


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)


def rotate(x, positions):
    inv_freq, attention_factor = compute_yarn(x.shape[-1])
    freqs = positions.float()[..., None, :, None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    cos, sin = emb.cos() * attention_factor, emb.sin() * attention_factor
    return (x.float() * cos + rotate_half(x.float()) * sin).to(x.dtype)
