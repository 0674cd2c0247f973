"""Causal attention with RoPE on values too: the result is turned back by the query's position."""

import torch

ABOUT = {"kind": "attend", "encoding": "rope", "layout": "half", "base": 10000.0, "values": True}
D_MODEL = 192


def spin(x, positions):
    n = x.shape[-1] // 2
    exponent = torch.arange(n).double() / n
    angle = positions.double()[:, None] * 10000.0**-exponent
    z = torch.complex(x[..., :n].double(), x[..., n:].double()) * torch.exp(1j * angle)
    return torch.cat((z.real, z.imag), -1).to(x.dtype)


def attend(q, k, v, offset=0):
    at_q = torch.arange(offset, offset + q.shape[2])
    at_k = torch.arange(k.shape[2])
    hidden = at_k[None, :] > at_q[:, None]
    q = spin(q, at_q)
    k, v = spin(k, at_k), spin(v, at_k)
    weights = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    weights = weights.masked_fill(hidden, float("-inf")).softmax(dim=-1)
    out = torch.einsum("bhqk,bhkd->bhqd", weights, v)
    out = spin(out, -at_q)
    return out
