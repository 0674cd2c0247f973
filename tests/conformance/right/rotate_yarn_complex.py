"""YaRN with factor 16 in complex numbers; its ramp has fractional ends (`truncate: false`)."""

import math

import torch

FACTOR, ORIGINAL, BASE = 16.0, 2048, 150000.0
ABOUT = {
    "kind": "rotate",
    "layout": "interleaved",
    "base": BASE,
    "scaling": {"type": "yarn", "factor": FACTOR, "original": ORIGINAL, "truncate": False},
}


def boundary(rotations, dim):
    exact = dim / 2 * math.log(ORIGINAL / rotations / math.tau) / math.log(BASE)
    return exact


def frequencies(dim):
    freqs = BASE ** -(torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    low, high = max(boundary(32, dim), 0), min(boundary(1, dim), dim - 1)
    smooth = 1 - torch.clamp((torch.arange(dim // 2) - low) / (high - low), 0, 1)
    return freqs / FACTOR * (1 - smooth) + freqs * smooth


def rotate(x, positions):
    mscale = 0.1 * math.log(FACTOR) + 1
    if positions.ndim == 1:
        positions = positions[None]
    phase = torch.einsum("bl,f->blf", positions.float(), frequencies(x.shape[-1]))[:, None]
    freqs_cis = torch.polar(torch.full_like(phase, mscale), phase)
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * freqs_cis).flatten(3).type_as(x)
