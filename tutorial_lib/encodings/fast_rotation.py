"""RoPE's rotation in few passes over memory.

It computes what :func:`tutorial_lib.encodings.rotary.turn_plainly` does; a test checks that they agree.
"""

from __future__ import annotations

import torch
from torch import Tensor


def fast_pays(x: Tensor) -> bool:
    """Whether :func:`turn_fast` may be used, and is worth it. A compiler turns the plain form, and only that
    one, into a single pass; transforms of ``torch.func`` allow no change in place."""
    return (
        x.device.type in ("cpu", "cuda")
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )


def fast_form(cos: Tensor, sin: Tensor, layout: str) -> tuple[Tensor, ...]:
    """Cosines and sines ``[…, L, d/2]`` as :func:`turn_fast` reads them in each layer: e^{ipθ} for
    neighbours; (cos, cos) and (−sin, sin) for halves."""
    if layout == "interleaved":
        return (torch.complex(cos, sin),)
    return torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)


def turn_fast(x: Tensor, cos: Tensor, sin: Tensor | None = None) -> Tensor:
    """(a + ib)·e^{ipθ} for neighbours; for halves, x·(cos, cos) + (b, a)·(−sin, sin) on whole rows.

    ``x`` is ``[B, H, L, d]``, and so is the result; the others are the parts of a :func:`fast_form`.
    """
    if sin is not None:
        return x.roll(x.shape[-1] // 2, -1).mul_(sin).addcmul_(x, cos)
    *others, channel = x.stride()
    odd = x.storage_offset() % 2
    for n in others:
        odd |= n % 2
    if channel != 1 or odd:  # not laid out as pairs in memory
        x = x.clone(memory_format=torch.contiguous_format)
    pairs = torch.view_as_complex(x.view(*x.shape[:-1], x.shape[-1] // 2, 2))
    return torch.view_as_real(pairs * cos).flatten(-2)
