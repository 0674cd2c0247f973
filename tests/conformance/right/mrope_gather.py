"""M-RoPE with a list that says which axis each pair listens to, and complex numbers on halves."""

import torch

AXIS = [0] * 2 + [1] * 3 + [2] * 3  # time, height, width
ABOUT = {"kind": "mrope", "layout": "half", "base": 1000000.0, "sections": [2, 3, 3], "dim": 16}


def rotate(x, positions):
    t = positions[AXIS].permute(1, 2, 0)  # [B, L, pairs]
    angles = t.double() * 1e6 ** (-torch.arange(8).double() / 8)
    a, b = x.double().chunk(2, dim=-1)
    z = torch.complex(a, b) * torch.exp(1j * angles)[:, None]
    return torch.cat((z.real, z.imag), dim=-1).to(x.dtype)
