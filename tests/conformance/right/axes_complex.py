"""RoPE in two dimensions: half of the pairs turn by the row, half by the column. Positions are [L, 2]."""

import torch

ABOUT = {"kind": "rotate_2d", "layout": "interleaved", "base": 100.0, "order": "row, column"}


def rotate(x, positions):
    y, xs = positions[:, 0].float(), positions[:, 1].float()
    quarter = x.shape[-1] // 4
    freqs = 1.0 / (100.0 ** (torch.arange(quarter).float() / quarter))
    angles = torch.cat([torch.outer(y, freqs), torch.outer(xs, freqs)], dim=-1)
    cis = torch.polar(torch.ones_like(angles), angles)
    z = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * cis).flatten(-2).to(x.dtype)
