"""RoPE's rotation in few passes over memory.

What it does is said by :func:`tutorial_lib.encodings.rotary.turn_plainly`; a test holds both together.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .once import once


def fast_pays(x: Tensor) -> bool:
    """Whether :func:`turn_fast` may be used, and is worth it. A compiler makes one pass of the plain form,
    and of that form only; transforms of ``torch.func`` allow no change in place."""
    return (x.device.type in ("cpu", "cuda") and not torch.compiler.is_compiling()
            and not torch._C._are_functorch_transforms_active())


def turn_fast(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """(a + ib)·e^{ipθ} for neighbours; for halves, x·(cos, cos) + (b, a)·(−sin, sin) on whole rows.

    ``x`` is ``[B, H, L, d]``, and so is the result; ``cos`` and ``sin`` are ``[L, d/2]`` or ``[B, L, d/2]``.
    """
    if layout == "interleaved":
        cis = once(torch.complex, cos, sin)
        return torch.view_as_real(_as_complex(x) * with_heads(cis)).flatten(-2)
    cos, sin = once(_for_both_halves, cos, sin)
    a, b = x.chunk(2, -1)
    turned = torch.cat([b, a], -1).mul_(with_heads(sin))
    return turned.addcmul_(x, with_heads(cos))


def with_heads(x: Tensor) -> Tensor:
    """``[B, L, d/2]`` with room for the heads; ``[L, d/2]`` has it."""
    return x[:, None] if x.ndim == 3 else x


def _for_both_halves(cos, sin):
    return torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)


def _as_complex(x: Tensor) -> Tensor:
    """Channels (0, 1), (2, 3), … as a + ib; a copy only where memory does not hold them as pairs."""
    pairs = x.unflatten(-1, (-1, 2))
    if pairs.storage_offset() % 2 or pairs.stride(-1) != 1 or any(n % 2 for n in pairs.stride()[:-1]):
        pairs = pairs.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(pairs)
