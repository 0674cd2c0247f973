"""Meta's way: pairs of neighbours are complex numbers, and the table is made beforehand."""

import torch

ANGLES = torch.outer(torch.arange(8192).float(), 1.0 / (500_000.0 ** (torch.arange(0, 128, 2).float() / 128)))
FREQS_CIS = torch.polar(torch.ones_like(ANGLES), ANGLES)


def given(x, positions):
    freqs_cis = FREQS_CIS[positions]
    if freqs_cis.ndim == 3:
        freqs_cis = freqs_cis[:, None]
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(x_ * freqs_cis).flatten(-2).type_as(x)


DECLARED = {"head_dim": 128, "layout": "interleaved", "base": 500_000.0}
BUGS = set()
