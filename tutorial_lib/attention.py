r"""The one attention core of the course. It knows the five doors, and no method by name.

.. math:: \mathrm{softmax}\big((q' k'^\top + \text{content\_bias})\cdot\text{scale}
          + \text{bias} + \text{mask}\big)\, v + \text{values}

:func:`scores` gives what the softmax gets, without the mask; :func:`equation` is the whole formula, from the
turned q′ and k′ on. :mod:`tutorial_lib.fast_attention` has faster ways to the same numbers; a test checks
that they agree.
"""

from __future__ import annotations

from typing import Literal, overload

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .encodings import NoPosition, PositionalEncoding
from .encodings.base import check_encoding, check_term, repeat_heads
from .encodings.positions import Positions, Where, pair
from .fast_attention import by_reach, chunks, flex_attention, fused_attention, has_far_keys, joined
from .masks import allowed_pairs, check_mask

__all__ = ["attention", "equation", "scores"]

BACKENDS = ("eager", "sdpa", "flex")


def equation(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    q_positions: Positions,
    k_positions: Positions,
    scale: float,
    allowed: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Output ``[B, H, Lq, D]`` and weights ``[B, H, Lq, Lk]``, line by line.

    ``q`` and ``k`` have gone through the door ``rotate``; they, ``v`` and the positions have the shapes of
    :func:`attention`. ``scale`` is a number; ``allowed`` are booleans, broadcastable to the weights, or None
    where everybody sees everything.
    """
    weights = _softmax(_scores(q, k, encoding, q_positions, k_positions, scale), allowed)
    out = weights @ repeat_heads(v, q).to(weights.dtype)
    values = encoding.values(weights, q_positions, k_positions)
    return (out if values is None else out + values).to(v.dtype), weights


def _scores(
    q: Tensor,
    k: Tensor,
    encoding: PositionalEncoding,
    q_positions: Positions,
    k_positions: Positions,
    scale: float,
) -> Tensor:
    content_bias = encoding.content_bias(q, k, q_positions, k_positions)
    bias = encoding.bias(q_positions, k_positions)
    for door, term in (("content_bias", content_bias), ("bias", bias)):
        check_term(encoding, door, term, q, k)
    s = q @ repeat_heads(k, q).mT
    s = (s if content_bias is None else s + content_bias) * scale
    return s if bias is None else s + bias


def _softmax(s: Tensor, allowed: Tensor | None) -> Tensor:
    s = s.float() if s.dtype in (torch.float16, torch.bfloat16) else s
    if allowed is None:
        return s.softmax(-1)
    weights = s.masked_fill(~allowed, float("-inf")).softmax(-1)
    return weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding | None = None,
    q_positions: Where = None,
    k_positions: Where = None,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    backend: str = "sdpa",
    return_weights: Literal[False] = False,
) -> Tensor: ...


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding | None = None,
    q_positions: Where = None,
    k_positions: Where = None,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    backend: str = "sdpa",
    return_weights: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding | None = None,
    q_positions: Where = None,
    k_positions: Where = None,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    backend: str = "sdpa",
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention with a positional encoding.

    Args:
        q: queries ``[B, H, Lq, D]``.
        k, v: keys and values ``[B, H_kv, Lk, D]``; H must be a multiple of H_kv
            (grouped-query attention).
        encoding: any :class:`PositionalEncoding`; its door ``embed`` belongs to the model.
        q_positions, k_positions: ``[L]`` or ``[B, L]``, or :class:`Positions` that all layers share; by
            default keys count 0 … Lk−1 and the queries are the last Lq of them. An encoding of several axes
            takes ``[L, axes]`` or ``[B, L, axes]``, and has no default for the keys.
        causal: query i sees the keys up to its own place in the *order of the tensor*, not in the
            numbering of positions. With Lq < Lk the queries are the last ones (KV cache).
        mask: booleans broadcastable to ``[B, H, Lq, Lk]``, True where a query may look.
        backend: ``"sdpa"``, ``"eager"``, or ``"flex"`` (content-free biases, no mask; made for
            CUDA, elsewhere slow and for inference only). ``"sdpa"`` has first derivatives; under
            ``torch.func`` and forward-mode differentiation it gives way to ``"eager"`` by itself. For a
            second derivative with ``create_graph=True``, ask for ``"eager"``: it can't be foreseen here.
        return_weights: also return the weights ``[B, H, Lq, Lk]`` (eager only).

    Returns:
        ``[B, H, Lq, D]`` in the dtype of ``v``. A query that may look nowhere gives zeros.

    Raises:
        ValueError: shapes, dtypes, devices or heads that do not fit, positions that have no default,
            a mask that is not boolean, an unknown back end, or one that never forms the weights asked
            for, or cannot do what the encoding needs.
        TypeError: anything but tensors, or an ``encoding`` that is not one.
    """
    encoding = encoding if encoding is not None else NoPosition()
    _check(q, k, v, encoding, causal, mask, backend, return_weights)
    where = pair(encoding, q_positions, k_positions, q, k)
    q, k = encoding.rotate(q, k, *where)
    scale = encoding.scale if encoding.scale is not None else q.shape[-1] ** -0.5

    if (
        backend == "sdpa"
        and not torch.compiler.is_compiling()
        and (torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0)
    ):
        backend = "eager"  # no fused kernel supports torch.func or forward-mode differentiation
    if backend == "flex":
        return flex_attention(q, k, v, encoding, *where, scale, causal, mask)
    if backend == "sdpa" and has_far_keys(q, k, v, encoding, *where, mask):
        return by_reach(q, k, v, encoding, *where, scale, causal)
    doors = encoding.doors
    if backend == "sdpa" and "values" not in doors:
        return fused_attention(q, k, v, encoding, doors, *where, scale, causal, mask)
    if backend == "sdpa":  # no fused kernel returns its weights
        parts = chunks(q, k, v, encoding, *where, causal, mask)
        return joined([equation(*part, encoding, *its, scale, allowed)[0] for part, its, allowed in parts])
    out, weights = equation(q, k, v, encoding, *where, scale, allowed_pairs(q, k, causal, mask))
    return (out, weights) if return_weights else out


def scores(
    q: Tensor,
    k: Tensor,
    encoding: PositionalEncoding | None = None,
    q_positions: Where = None,
    k_positions: Where = None,
) -> Tensor:
    """The scores before mask and softmax, scaled and with the bias: ``[B, H, Lq, Lk]``."""
    encoding = encoding if encoding is not None else NoPosition()
    _check(q, k, k, encoding)
    where = pair(encoding, q_positions, k_positions, q, k)
    q, k = encoding.rotate(q, k, *where)
    scale = encoding.scale if encoding.scale is not None else q.shape[-1] ** -0.5
    return _scores(q, k, encoding, *where, scale)


def _check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    causal: bool = False,
    mask: Tensor | None = None,
    backend: str = "eager",
    return_weights: bool = False,
) -> None:
    if not isinstance(encoding, PositionalEncoding):
        check_encoding(encoding)
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} is a {type(x).__name__}: give a tensor [batch, heads, length, channels]")
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}: it must be one of {', '.join(map(repr, BACKENDS))}")
    if return_weights and backend != "eager":
        raise ValueError(f"backend={backend!r} never forms the weights: ask with backend='eager'")
    if not q.device == k.device == v.device:
        raise ValueError(f"q is on {q.device}, k on {k.device}, v on {v.device}: move them to one device")
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(f"attention takes [batch, heads, length, channels], not {shapes}")
    if 0 in (q.shape[1], k.shape[1], q.shape[-1]):
        raise ValueError(f"{shapes}: there must be at least one head and one channel")
    if (q.shape[0], q.shape[-1]) != (k.shape[0], k.shape[-1]) or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            f"{shapes} do not fit: q and k share batch and channels, k and v share all but channels"
        )
    if not (q.is_floating_point() and q.dtype == k.dtype == v.dtype):
        raise ValueError(f"q {q.dtype}, k {k.dtype}, v {v.dtype}: give all three in one floating-point dtype")
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{shapes}: the heads of q must be a multiple of the heads of k")
    if causal and q.shape[-2] > k.shape[-2]:
        raise ValueError(f"{shapes}: with causal=True the queries are the last keys, not more of them")
    if mask is not None:
        check_mask(mask, (*q.shape[:-1], k.shape[-2]))
        if mask.device != q.device:
            raise ValueError(f"mask is on {mask.device}, but q is on {q.device}: move it there")
