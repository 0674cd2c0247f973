r"""The equation of :mod:`tutorial_lib.attention`, faster: chunks of queries, windows of a line, kernels.

:func:`fused_attention` goes through PyTorch's fused ``scaled_dot_product_attention``, and never holds a
term for all pairs at once. Queries do not depend on each other, so they go through in chunks, and a causal
chunk stops at the last key that it may see. And a relative bias of tokens in a row is one line of
Lq + Lk − 1 numbers: the row of query i is a window of it, which moves by one from query to query. With
the queries in reverse order that is a view of the line, not a copy.

:func:`by_reach` serves encodings whose doors stop telling keys apart beyond some offset, such as Shaw's.

:func:`flex_attention` is PyTorch's FlexAttention, in which one GPU kernel adds the bias to each score.

Queries and keys have gone through the door ``rotate`` already; shapes are those of
:func:`tutorial_lib.attention.attention`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor

from .encodings.base import PositionalEncoding, check_term, repeat_heads
from .encodings.positions import Positions
from .masks import allowed_pairs

CHUNK = 256  # queries at a time; measured: smaller costs calls, larger skips less of the future
WIDE = (torch.float32, torch.float64)  # where a softmax needs no wider type
# what scaled_dot_product_attention calls on a CPU; it returns log Σ exp(score), too
KERNEL: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    doors: Iterable[str],
    q_positions: Positions,
    k_positions: Positions,
    scale: float,
    causal: bool,
    mask: Tensor | None,
) -> Tensor:
    """For encodings that keep the door ``values`` shut."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    opened = {"content_bias", "bias"}.intersection(doors)
    if not opened and mask is None and (n_q == n_k or not causal):
        return _kernel(q, k, v, scale, is_causal=causal)
    if opened == {"bias"} and mask is None and q.device.type == "cpu":  # GPU kernels want aligned rows
        by_offset = _bias_by_offset(q, k, encoding, q_positions, k_positions)
        if by_offset is not None:
            return _by_windows(q, k, v, by_offset, scale, causal)
    parts = chunks(q, k, v, encoding, q_positions, k_positions, causal, mask)
    return joined(
        [
            _masked(*part, _added(*part[:2], encoding, *where, scale), allowed, mask, scale)
            for part, where, allowed in parts
        ]
    )


def chunks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    q_positions: Positions,
    k_positions: Positions,
    causal: bool,
    mask: Tensor | None,
) -> Iterator[tuple[tuple[Tensor, Tensor, Tensor], tuple[Positions, Positions], Tensor | None]]:
    """Some queries at a time, with the keys that they may see: (q, k, v), their positions, allowed pairs."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    size = n_q if encoding.by_place and not causal else CHUNK  # a chunk's queries are not the last keys
    mask = mask if mask is None else mask.expand(*mask.shape[:-2], n_q, n_k)
    for start, end in _steps(n_q, size):
        seen = n_k - n_q + end if causal else n_k
        part = q[:, :, start:end], k[:, :, :seen], v[:, :, :seen]
        where = q_positions.narrow(start, end - start), k_positions.narrow(0, seen)
        its_mask = None if mask is None else mask[..., start:end, :seen]
        yield part, where, allowed_pairs(*part[:2], causal, its_mask)


def has_far_keys(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    q_positions: Positions,
    k_positions: Positions,
    mask: Tensor | None,
) -> bool:
    """Whether :func:`by_reach` applies, and has something to gain."""
    return (
        mask is None
        and k.shape[-2] > CHUNK
        and encoding.reach is not None
        and k.shape[-2] > CHUNK + 2 * encoding.reach
        and KERNEL is not None
        and q.device.type == "cpu"
        and q.dtype in WIDE
        and q.shape[-1] == v.shape[-1]
        and not torch.is_grad_enabled()
        and q.numel() > 0
        and q_positions.first is not None
        and k_positions.first is not None
    )


def by_reach(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    q_positions: Positions,
    k_positions: Positions,
    scale: float,
    causal: bool,
) -> Tensor:
    """The doors see near pairs only. To a chunk of queries, all keys out of reach on one side are one key.

    They differ in content alone, so a fused kernel sums them up: log Σ exp(score) is the score of that one
    key, their mean under the softmax its value. The doors take it for the nearest of them.
    """
    k, v = repeat_heads(k, q), repeat_heads(v, q)
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    n_q, n_k, parts = q.shape[-2], k.shape[-2], []
    first_q: Any = q_positions.first  # has_far_keys has made sure that these three are known
    first_k: Any = k_positions.first
    reach: Any = encoding.reach
    shift = first_q - first_k  # key i + shift has the position of query i
    for start, end in _steps(n_q, CHUNK // 2 if causal else CHUNK):
        seen = n_k - n_q + end if causal else n_k
        low = start + shift - reach + 1  # keys before it are out of reach of the whole chunk,
        high = end + shift + reach - 1  # and so are those from here on
        if causal:  # a key that some of the queries may not see is no part of a sum
            low, high = min(low, seen - (end - start) + 1), seen
        low = min(max(low, 0), seen)
        high = min(max(high, low), seen)
        near = slice(max(low - 1, 0), min(high + 1, seen))
        part = q[:, :, start:end], k[:, :, near]
        where = (
            q_positions.narrow(start, end - start),
            k_positions.narrow(near.start, near.stop - near.start),
        )
        before, after = (
            _as_one_key(part[0], k[:, :, far], v[:, :, far], scale) for far in (slice(low), slice(high, seen))
        )
        s = torch.cat([before[0], part[0] @ k[:, :, low:high].mT * scale, after[0]], -1)
        added, allowed = _added(*part, encoding, *where, scale), allowed_pairs(*part, causal, None)
        s = s if added is None else s + added
        weights = (s if allowed is None else s.masked_fill(~allowed, float("-inf"))).softmax(-1)
        first, its, last = weights.split([before[0].shape[-1], high - low, after[0].shape[-1]], -1)
        out = its @ v[:, :, low:high]
        for weight, (_, value) in ((first, before), (last, after)):
            out = out + weight.sum(-1, keepdim=True) * value  # a sum of one weight, or of none
        values = encoding.values(weights, *where)
        parts.append(out if values is None else out + values)
    return joined(parts)


def _as_one_key(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor | float]:
    """The score ``[B, H, Lq, 1]`` and the value ``[B, H, Lq, D]`` that all these keys have together."""
    if not k.shape[-2]:  # no key, no score
        return q.new_empty(*q.shape[:-1], 0), 0.0
    value, score = KERNEL(q, k, v, scale=scale)
    return score[..., None], value


def joined(parts: list[Tensor]) -> Tensor:
    """The outputs of all chunks, one after the other."""
    return torch.cat(parts, -2) if len(parts) > 1 else parts[0]


def _steps(n: int, size: int) -> list[tuple[int, int]]:
    """(start, end) of each chunk; of nothing, one empty chunk."""
    return [(start, min(start + size, n)) for start in range(0, max(n, 1), max(size, 1))]


def _by_windows(q: Tensor, k: Tensor, v: Tensor, by_offset: Tensor, scale: float, causal: bool) -> Tensor:
    n_q, n_k = q.shape[-2], k.shape[-2]
    size = CHUNK
    if causal:
        by_offset = by_offset.masked_fill(torch.arange(by_offset.shape[-1]) >= n_k, float("-inf"))
        size = min(max((n_q + 1) // 2, CHUNK // 2), CHUNK)  # in halves, to skip a quarter of the scores
    parts = []
    for start, end in _steps(n_q, size):
        seen = n_k - n_q + end if causal else n_k
        part = q[:, :, start:end], k[:, :, :seen], v[:, :, :seen]
        parts.append(_along_offsets(*part, by_offset[:, n_q - end :], scale))
    return joined(parts)


def _along_offsets(q: Tensor, k: Tensor, v: Tensor, by_offset: Tensor, scale: float) -> Tensor:
    """With the bias ``[H, ≥ Lq + Lk − 1]``: the last query starts at 0, the one before it at 1, …"""
    its = windows(by_offset, q.shape[-2], k.shape[-2])[None].to(q.dtype)
    if its.numel() < q.numel():  # few keys and many rows: it takes less to flip the bias than the queries
        return _kernel(q, k, v, scale, attn_mask=its.flip(-2))
    return _kernel(q.flip(-2), k, v, scale, attn_mask=its).flip(-2)


def windows(x: Tensor, n: int, size: int) -> Tensor:
    """The first n windows of ``x [H, ≥ n + size − 1]``, each moved by one: ``[H, n, size]``.

    A view, unless ``x`` wants a gradient: a view's gradient is added up number by number. If you repeat ``x``
    and read it in rows that are longer by one, you get the same windows, and the gradient is a sum of rows.
    """
    if not x.requires_grad:
        return x.unfold(-1, size, 1)[:, :n]
    m = n + size - 1
    rows: Tensor = x[:, :m].repeat(1, n + 1)[:, : n * (m + 1)].unflatten(-1, (n, m + 1))
    return rows[..., :size]


def _masked(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    added: Tensor | None,
    allowed: Tensor | None,
    mask: Tensor | None,
    scale: float,
) -> Tensor:
    if added is None:
        term = allowed
    elif allowed is None:
        term = added.to(q.dtype)
    else:
        # −inf would turn a fully masked row into NaN in some fused kernels
        term = added.to(q.dtype).masked_fill(~allowed, torch.finfo(q.dtype).min)
    out = _kernel(q, k, v, scale, attn_mask=term)
    return out if mask is None or allowed is None else out.masked_fill(~allowed.any(-1, keepdim=True), 0.0)


def _kernel(q: Tensor, k: Tensor, v: Tensor, scale: float, **which: Any) -> Tensor:
    mask: Tensor | None = which.get("attn_mask")
    if mask is not None and mask.requires_grad and q.device.type == "cpu" and q.dtype in WIDE:
        # no CPU kernel differentiates a mask; PyTorch's stand-in takes longer than the equation
        weights = ((q * scale) @ repeat_heads(k, q).mT + mask).softmax(-1)
        return weights @ repeat_heads(v, q)
    grouped: dict[str, Any] = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
    out = F.scaled_dot_product_attention(q, k, v, scale=scale, **which, **grouped)
    if out.requires_grad and not torch.compiler.is_compiling():
        made_by: Any = out.grad_fn
        if "ScaledDot" in made_by.name():
            made_by.register_hook(_differentiable_once)
    return out


def _differentiable_once(gradients: Iterable[Tensor | None], _: Any) -> None:
    """With ``create_graph=True`` the gradients have gradients, but a kernel does not compute these."""
    for gradient in gradients:
        if gradient is not None and gradient.requires_grad:
            gradient.register_hook(_no_second)


def _no_second(_: Tensor) -> NoReturn:
    raise RuntimeError(
        "backend='sdpa' has no second derivative: call attention or the model with backend='eager', which has"
    )


def flex_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    q_positions: Positions,
    k_positions: Positions,
    scale: float,
    causal: bool,
    mask: Tensor | None,
) -> Tensor:
    """For encodings that open no doors but ``rotate`` and ``bias``, and without a mask."""
    shut = {"content_bias", "values"} & set(encoding.doors)
    if shut or mask is not None:
        what = "a mask" if mask is not None else f"the door {min(shut)!r} of {type(encoding).__name__}"
        raise ValueError(f"backend='flex' does not do {what}: use backend='sdpa'")
    n_q, n_k = q.shape[-2], k.shape[-2]
    if not n_q or not n_k:
        raise ValueError(
            f"backend='flex' does not do q {tuple(q.shape)}, k {tuple(k.shape)}, a length of 0: "
            "use backend='sdpa'"
        )
    by_offset = _bias_by_offset(q, k, encoding, q_positions, k_positions)
    bias = encoding.bias(q_positions, k_positions) if by_offset is None else None
    if by_offset is not None:
        by_offset = by_offset.expand(q.shape[1], -1)
    elif bias is not None:
        check_term(encoding, "bias", bias, q, k)
        bias = bias.expand(*q.shape[:-1], n_k)

    def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        if by_offset is not None:
            return score + by_offset[h, n_q - 1 - i + j]
        return score if bias is None else score + bias[b, h, i, j]

    return _flex_kernel(q.device.type)(
        q,
        k,
        v,
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
        score_mod=None if by_offset is None and bias is None else score_mod,
        block_mask=_causal_blocks(n_q, n_k, q.device) if causal else None,
    )


@functools.cache
def _flex_kernel(device_type: str) -> Callable[..., Tensor]:
    from torch.nn.attention import flex_attention as of_torch

    kernel: Any = of_torch.flex_attention
    # From the second length on, for any: one kernel for each would pass Dynamo's limit of eight, and what
    # takes over then holds all scores. `fullgraph` makes an error of that.
    return torch.compile(kernel, fullgraph=True) if device_type == "cuda" else kernel


@functools.lru_cache(maxsize=16)
def _causal_blocks(n_q: int, n_k: int, device: torch.device) -> Any:
    """The causal mask as FlexAttention wants it: by blocks, those of the future left out.

    Compiled, it never holds a number for each pair of tokens.
    """
    from torch.nn.attention.flex_attention import create_block_mask

    create: Any = torch.compile(create_block_mask) if device.type == "cuda" else create_block_mask
    return create(lambda b, h, i, j: j <= i + n_k - n_q, None, None, n_q, n_k, device=device)


def _added(
    q: Tensor,
    k: Tensor,
    encoding: PositionalEncoding,
    q_positions: Positions,
    k_positions: Positions,
    scale: float,
) -> Tensor | None:
    """Everything that the encoding adds to the scaled scores, or None."""
    content_bias = encoding.content_bias(q, k, q_positions, k_positions)
    bias = encoding.bias(q_positions, k_positions)
    for door, term in (("content_bias", content_bias), ("bias", bias)):
        check_term(encoding, door, term, q, k)
    if content_bias is None:
        return bias
    return content_bias * scale if bias is None else content_bias * scale + bias


def _bias_by_offset(
    q: Tensor, k: Tensor, encoding: PositionalEncoding, q_positions: Positions, k_positions: Positions
) -> Tensor | None:
    by_offset = k_positions.once(encoding.bias_by_offset, q_positions, k_positions)
    if by_offset is not None:
        check_term(encoding, "bias", by_offset[:, :1, None], q, k)
    return by_offset
