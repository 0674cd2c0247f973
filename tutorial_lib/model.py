"""A small Transformer, encoder or decoder, that takes any positional encoding.

The same class is the model that a learner trains in half a minute and, with the options of the
Llama family, the pretrained one: ``tutorial_lib.data.load_smollm2`` fills it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import attention
from .encodings import NoPosition, PositionalEncoding
from .encodings.base import (
    check_above_0,
    check_encoding,
    check_not_negative,
    check_positive,
    common_axes,
    is_number,
)
from .encodings.offsets import nan_where
from .encodings.positions import Positions, Where, at, readable
from .masks import check_mask

__all__ = ["Cache", "Config", "Memory", "Transformer", "attention_weights", "segment_mask"]


@dataclass(frozen=True)
class Config:
    """Sizes and options of a :class:`Transformer`.

    Args:
        vocab_size: number of token ids.
        d_model: width of the residual stream.
        n_layers, n_heads: depth, and attention heads per layer.
        n_kv_heads: heads of keys and values; by default n_heads.
        d_ff: width of the feed-forward layer; by default 4·d_model.
        n_out: size of the output; by default vocab_size.
        causal: decoder (each token sees its past) or encoder (each sees all).
        pool: ``"mean"`` averages the tokens before the output: one answer per sequence.
        norm: ``"layer"`` (LayerNorm) or ``"rms"`` (RMSNorm).
        mlp: ``"gelu"`` or ``"swiglu"``.
        norm_eps: epsilon of the norms.
    """

    vocab_size: int
    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int | None = None
    d_ff: int | None = None
    n_out: int | None = None
    causal: bool = True
    pool: str | None = None
    norm: str = "layer"
    mlp: str = "gelu"
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("n_kv_heads", "d_ff", "n_out")}
        check_above_0(norm_eps=self.norm_eps)
        check_positive(
            vocab_size=self.vocab_size,
            d_model=self.d_model,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            **{name: size for name, size in given.items() if size is not None},
        )
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model={self.d_model} is not a multiple of n_heads={self.n_heads}: "
                "each head gets d_model / n_heads channels"
            )
        if self.n_kv_heads is not None and self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_heads={self.n_heads} is not a multiple of n_kv_heads={self.n_kv_heads}: "
                "each head of keys serves the same number of query heads"
            )
        for name, allowed in (
            ("pool", (None, "mean")),
            ("norm", ("layer", "rms")),
            ("mlp", ("gelu", "swiglu")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r}: it must be one of {allowed}")

    @property
    def head_dim(self) -> int:
        return self.d_model // self.n_heads


class _Past:
    """What a cache and a memory have in common: where their tokens stand."""

    positions: Tensor | None
    keep: Tensor | None
    axes: int
    _known: tuple[Positions, int | None] | None = None  # those of the last forward, with their version

    def __len__(self) -> int:
        return 0 if self.positions is None else self.positions.shape[-1 if self.axes == 1 else -2]

    def where(self) -> Positions | None:
        """The positions. Somebody may have changed them, which can be checked at no cost only on a CPU."""
        if self.positions is None:
            return None
        if self._known is not None and not readable(self.positions):
            where, version = self._known
            if where.tensor is self.positions and version == _version(where.tensor):
                return where
        return Positions(self.positions, self.axes)

    def stand_at(self, where: Positions) -> None:
        where = where.copy()
        self.positions, self.axes, self._known = where.tensor, where.axes, (where, _version(where.tensor))


def _version(x: Tensor) -> int | None:
    return None if torch.compiler.is_compiling() or x.is_inference() else x._version


@dataclass
class Cache(_Past):
    """Keys and values of past tokens, not yet rotated, with their positions.

    A call of the model that an error or Ctrl-C cuts short leaves it as it was.

    Args:
        keys, values: those of each layer, ``[B, H_kv, L, D]``.
        positions: of the L tokens: ``[L]`` or ``[B, L]``, with several axes ``[L, axes]`` or
            ``[B, L, axes]``; None as long as there are none.
        keep: booleans ``[B, L]``, False for padding; None where nothing was padded.
        axes: how many numbers make up a position.
    """

    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    positions: Tensor | None = None
    keep: Tensor | None = None
    axes: int = 1

    def copy(self) -> Cache:
        """Another cache with the same tensors; appending to one does not change the other."""
        other = copy.copy(self)
        other.keys, other.values = list(self.keys), list(self.values)
        return other

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append to one layer; returns all keys and values of that layer."""
        if layer == len(self.keys):
            self.keys.append(k)
            self.values.append(v)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], k], -2)
            self.values[layer] = torch.cat([self.values[layer], v], -2)
        return self.keys[layer], self.values[layer]


@dataclass
class Memory(_Past):
    r"""Segment recurrence: the hidden states of the last ``length`` = M tokens (Dai et al. 2019, §3.2).

    .. math:: \tilde h^{n-1}_\tau = [\mathrm{SG}(m^{n-1}_\tau) \circ h^{n-1}_\tau], \qquad
              q = W_q h^{n-1}_\tau, \quad k = W_k \tilde h^{n-1}_\tau, \quad v = W_v \tilde h^{n-1}_\tau

    SG stops the gradient. ``states[n − 1]`` is m^{n−1}, ``[B, M, d_model]``: what entered layer n,
    before its norm. Keys and values are computed from it again, so that their weights learn from older
    segments, too; a :class:`Cache` holds the keys and values themselves. In the paper M is the length of
    a segment in training, and longer in evaluation. 0 remembers nothing: each segment stands alone.

    Positions count on from segment to segment. If they started again in every segment, a remembered token
    and a new one would share a position; since they count on, absolute ones leave the range that training
    has seen. So recurrence goes with relative encodings (§3.3).

    Raises ValueError for a ``length`` that is not an integer, 0 or more.
    """

    length: int
    states: list[Tensor] = field(default_factory=list)
    positions: Tensor | None = None
    keep: Tensor | None = None
    axes: int = 1

    def __post_init__(self) -> None:
        check_not_negative(length=self.length)

    def copy(self) -> Memory:
        """Another memory with the same tensors."""
        return copy.copy(self)

    def update(self, states: list[Tensor], positions: Positions, keep: Tensor | None) -> None:
        """Keep the last M of the states ``[B, L, d_model]`` of each layer, their positions and padding."""
        n = states[0].shape[1]
        first = max(0, n - self.length)
        self.states = [x[:, first:].detach().clone() for x in states]
        self.stand_at(positions.narrow(first, n - first))
        self.keep = None if keep is None else keep[:, first:]


def segment_mask(length: int, segment: int, memory: int) -> Tensor:
    """Who sees whom when a text is read in segments with a :class:`Memory`: ``[length, length]``.

    Booleans, True where query i may look at key j: the ``memory`` = M tokens before its segment, and
    its segment's past. With S = ``segment``, S·⌊i/S⌋ − M ≤ j ≤ i. A model that reads the whole text
    with this mask gives the logits of one that reads it segment by segment.

    >>> segment_mask(5, segment=2, memory=1).int()
    tensor([[1, 0, 0, 0, 0],
            [1, 1, 0, 0, 0],
            [0, 1, 1, 0, 0],
            [0, 1, 1, 1, 0],
            [0, 0, 0, 1, 1]], dtype=torch.int32)

    Raises ValueError for a ``segment`` below 1, a ``length`` or ``memory`` below 0.
    """
    check_positive(segment=segment)
    check_not_negative(length=length, memory=memory)
    j = torch.arange(length)
    i = j[:, None]
    return (i - i % segment - memory <= j) & (j <= i)


@dataclass(frozen=True)
class AttentionInputs:
    """What the attention of one layer needs besides the tokens.

    Args:
        encoding: that of the layer; it is handed in, so that layers can share one.
        q_positions: of the tokens that are read now.
        k_positions: of all keys, those of the past included.
        mask: booleans, broadcastable to ``[B, H, L, Lk]``, True where a query may look, beside the causal
            mask; None for everywhere.
        cache: keys and values of the past, in which this layer has the number ``layer``.
        backend: that of :func:`tutorial_lib.attention.attention`.
    """

    encoding: PositionalEncoding
    q_positions: Positions
    k_positions: Positions
    mask: Tensor | None = None
    cache: Cache | None = None
    layer: int = 0
    backend: str = "sdpa"


class Attention(nn.Module):
    """Multi-head attention, from ``x [B, L, d_model]`` to the same shape.

    Queries come from ``x``, keys and values from ``context [B, Lk, d_model]``, which is ``x`` by default.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config, self.heads = config, (-1, config.head_dim)
        kv = (config.n_kv_heads or config.n_heads) * config.head_dim
        self.q = nn.Linear(config.d_model, config.d_model, bias=False)
        self.k = nn.Linear(config.d_model, kv, bias=False)
        self.v = nn.Linear(config.d_model, kv, bias=False)
        self.out = nn.Linear(config.d_model, config.d_model, bias=False)

    def forward(self, x: Tensor, inputs: AttentionInputs, context: Tensor | None = None) -> Tensor:
        q, k, v = self.heads_of(x, context)
        if inputs.cache is not None:
            k, v = inputs.cache.update(inputs.layer, k, v)
        y = attention(
            q,
            k,
            v,
            inputs.encoding,
            inputs.q_positions,
            inputs.k_positions,
            causal=self.config.causal,
            mask=inputs.mask,
            backend=inputs.backend,
        )
        out: Tensor = self.out(y.transpose(1, 2).flatten(-2))
        return out

    def heads_of(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries ``[B, H, L, D]``, and keys and values ``[B, H_kv, Lk, D]``, before any position."""
        context = x if context is None else context
        q, k, v = (
            project(states).unflatten(-1, self.heads).transpose(1, 2)
            for project, states in ((self.q, x), (self.k, context), (self.v, context))
        )
        return q, k, v


class FeedForward(nn.Module):
    """Two matrices with GELU between them, or SwiGLU, without biases; the shape stays ``[B, L, d_model]``."""

    def __init__(self, config: Config):
        super().__init__()
        d, d_ff = config.d_model, config.d_ff or 4 * config.d_model
        self.up = nn.Linear(d, d_ff, bias=False)
        self.gate = nn.Linear(d, d_ff, bias=False) if config.mlp == "swiglu" else None
        self.down = nn.Linear(d_ff, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.gelu(self.up(x)) if self.gate is None else F.silu(self.gate(x)) * self.up(x)
        out: Tensor = self.down(hidden)
        return out


class Block(nn.Module):
    """One layer: attention, then the feed-forward part; each reads normed states and adds to the stream.

    ``x`` is ``[B, L, d_model]`` before and after. ``context [B, Lk, d_model]`` is what keys and values
    are computed from, before its norm; by default ``x``.
    """

    def __init__(self, config: Config):
        super().__init__()
        norm = nn.LayerNorm if config.norm == "layer" else nn.RMSNorm
        self.norm1 = norm(config.d_model, eps=config.norm_eps)
        self.attention = Attention(config)
        self.norm2 = norm(config.d_model, eps=config.norm_eps)
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, inputs: AttentionInputs, context: Tensor | None = None) -> Tensor:
        context = None if context is None else self.norm1(context)
        x = x + self.attention(self.norm1(x), inputs, context)
        out: Tensor = x + self.feed_forward(self.norm2(x))
        return out


class Transformer(nn.Module):
    """Pre-norm Transformer with a positional encoding of your choice.

    Args:
        config: sizes and options.
        encoding: any :class:`PositionalEncoding` for all layers, or a sequence with one per layer,
            the first of which embeds the tokens; by default none. It can be replaced later
            (``model.encoding = …``): the weights do not know it.

    ``model(tokens)`` maps ids ``[B, L]`` to logits ``[B, L, n_out]``, or ``[B, n_out]`` with
    pooling.

    Raises ValueError for a number of encodings other than ``n_layers``, or a later one that opens
    the door ``embed``; TypeError for anything but encodings.
    """

    encoding: Any  # a PositionalEncoding, or an nn.ModuleList with one per layer

    def __init__(
        self, config: Config, encoding: PositionalEncoding | Sequence[PositionalEncoding] | None = None
    ):
        super().__init__()
        if not isinstance(config, Config):
            raise TypeError(
                f"config is {config!r}: give a Config, such as Config(vocab_size=100, d_model=64)"
            )
        self.config = config
        self.encoding = encoding
        # unit variance: token and position vectors meet on one scale
        self.tokens = nn.Embedding(config.vocab_size, self.encodings[0].token_dim(config.d_model))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        norm = nn.LayerNorm if config.norm == "layer" else nn.RMSNorm
        self.norm = norm(config.d_model, eps=config.norm_eps)
        self.head = nn.Linear(config.d_model, config.n_out or config.vocab_size, bias=False)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, self._encoding(value) if name == "encoding" else value)

    def _encoding(self, value: Any) -> PositionalEncoding | nn.ModuleList:
        """One encoding as it is, one per layer as an ``nn.ModuleList``."""
        value = NoPosition() if value is None else value
        per_layer = isinstance(value, (Sequence, nn.ModuleList)) and not isinstance(value, str)
        encodings = list(value) if per_layer else [value]
        for layer, encoding in enumerate(encodings):
            check_encoding(encoding, f"encoding[{layer}]" if per_layer else "encoding")
            if layer and "embed" in encoding.doors:
                raise ValueError(
                    f"encoding[{layer}] is {encoding}, but only encoding[0] embeds the tokens: "
                    "give the other layers encodings without the door 'embed'"
                )
        if per_layer and len(encodings) != self.config.n_layers:
            raise ValueError(
                f"encoding has {len(encodings)} modules, but the model has n_layers={self.config.n_layers}: "
                "give one for all layers, or a sequence with one per layer"
            )
        common_axes(encodings)
        return nn.ModuleList(encodings) if per_layer else value

    @property
    def encodings(self) -> list[PositionalEncoding]:
        """The encoding of each layer, in order."""
        one = not isinstance(self.encoding, nn.ModuleList)
        return [self.encoding] * self.config.n_layers if one else list(self.encoding)

    def forward(
        self,
        tokens: Tensor,
        positions: Where = None,
        *,
        keep: Tensor | None = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        memory: Memory | None = None,
        backend: str = "sdpa",
    ) -> Tensor:
        """Logits for a batch of token ids.

        Args:
            tokens: ids ``[B, L]``.
            positions: ``[L]`` or ``[B, L]``, any numbers that the encoding takes; by default
                0 … L−1, or counted on from the last one in the cache or memory. An encoding of
                several axes takes ``[L, axes]`` or ``[B, L, axes]``, and has no default.
            keep: booleans, broadcastable to ``[B, L]``, False for padding. Without ``positions``, each
                row then counts its kept tokens from 0, so that left padding changes nothing.
            mask: booleans broadcastable to ``[B, H, L, Lk]``, True where a query may look. A causal
                model never looks ahead, and none looks at padding. Lk counts what is cached or remembered.
            cache: past keys and values; afterwards it holds those of these tokens, too.
            memory: hidden states of the segment before; afterwards it holds those of this one.
            backend: that of :func:`tutorial_lib.attention.attention`.

        Raises ValueError for ids, positions, masks, a cache or a memory that do not fit, a cache together
        with a memory, either of them in an encoder, and one whose tokens would get other angles (beyond L
        with ``DynamicNTK``, past L with ``LongRoPE``) after a layer has read them.
        """
        self._check_tokens(tokens)
        if cache is not None and memory is not None:
            raise ValueError("give a cache or a memory, not both: each of them is the whole past")
        past = cache if memory is None else memory
        if past is not None and not self.config.causal:
            name = "cache" if memory is None else "memory"
            raise ValueError(f"a {name} needs a causal model: an encoder's past depends on its future")
        self._check(tokens, keep, mask, past)
        keep = None if keep is None else keep.expand_as(tokens)
        grown: Any = None if past is None else past.copy()  # the past itself changes at the end, all at once
        encodings, before = self.encodings, None if past is None else past.where()
        q_positions = self._positions(encodings[0], tokens, positions, keep, past, before).shared()
        k_positions = q_positions if before is None else before.followed_by(q_positions).shared()
        x = encodings[0].embed(self.tokens(tokens), q_positions)
        if past is not None:
            self._keep(grown, tokens, keep)
            x = self._unchanged(x, past, before, k_positions)
        kept = keep if grown is None else grown.keep
        kept = None if kept is None else kept[:, None, None]
        mask = kept if mask is None else mask if kept is None else mask & kept

        states, context = [], None
        for layer, (block, encoding) in enumerate(zip(self.blocks, encodings, strict=True)):
            if memory is not None:
                context = torch.cat([memory.states[layer], x], 1) if memory.states else x
                states.append(context)
            x = block(
                x,
                AttentionInputs(
                    encoding, q_positions, k_positions, mask, None if cache is None else grown, layer, backend
                ),
                context,
            )
        if memory is not None:
            grown.update(states, k_positions, grown.keep)
        x = self.norm(x)
        if self.config.pool == "mean":
            weight = torch.ones_like(tokens, dtype=x.dtype) if keep is None else keep.to(x.dtype)
            x = (x * weight[..., None]).sum(1) / weight.sum(1, keepdim=True).clamp(min=1)
        logits: Tensor = self.head(x)
        if past is not None:
            if memory is None:
                grown.stand_at(k_positions)
            vars(past).update(vars(grown))  # one step of the interpreter: Ctrl-C comes before it or after
        return logits

    @staticmethod
    def _check_tokens(tokens: Tensor) -> None:
        if not isinstance(tokens, Tensor):
            raise TypeError(f"tokens are a {type(tokens).__name__}: give a tensor of ids [batch, length]")
        if tokens.ndim != 2:
            raise ValueError(f"tokens have shape {tuple(tokens.shape)}: give ids [batch, length]")
        if tokens.is_floating_point() or tokens.dtype == torch.bool:
            raise ValueError(f"tokens have dtype {tokens.dtype}: ids are integers")

    def _check(
        self, tokens: Tensor, keep: Tensor | None, mask: Tensor | None, past: Cache | Memory | None
    ) -> None:
        rows, length = tokens.shape
        if keep is not None:
            check_mask(keep, (rows, length), "keep")
        if mask is not None:
            n_k = length + (0 if past is None else len(past))
            check_mask(mask, (rows, self.config.n_heads, length, n_k))
        if past is not None and past.positions is not None:
            axes, device = self.encodings[0].axes, past.positions.device
            if past.axes != axes or device != tokens.device:
                raise ValueError(
                    f"the {type(past).__name__.lower()} has positions of {past.axes} axes on {device}, but "
                    f"the encoding reads {axes} axes, and the tokens are on {tokens.device}: begin a new "
                    f"text with a new {type(past).__name__}"
                )
        if isinstance(past, Cache) and past.keys:
            layers, heads = len(self.blocks), self.config.n_kv_heads or self.config.n_heads
            shape, fits = tuple(past.keys[0].shape), (rows, heads, len(past), self.config.head_dim)
            if len(past.keys) != layers or shape != fits:
                raise ValueError(
                    f"the cache holds keys of {shape} for {len(past.keys)} layers, but there are {rows} rows "
                    f"of tokens, {heads} heads of width {self.config.head_dim} and {layers} layers: begin a "
                    "new text with a new Cache"
                )
        states = past.states if isinstance(past, Memory) else []
        for x in states:
            if len(states) != len(self.blocks) or x.shape[::2] != (rows, self.config.d_model):
                raise ValueError(
                    f"the memory holds {tuple(x.shape)} for {len(states)} layers, but there are {rows} "
                    f"rows of tokens, width {self.config.d_model} and {len(self.blocks)} layers: begin a "
                    "new text with a new Memory"
                )

    @staticmethod
    def _positions(
        encoding: PositionalEncoding,
        tokens: Tensor,
        positions: Where,
        keep: Tensor | None,
        past: Cache | Memory | None,
        before: Positions | None,
    ) -> Positions:
        length, device = tokens.shape[1], tokens.device
        if positions is not None:
            if not isinstance(positions, Positions):
                positions = Positions(torch.as_tensor(positions, device=device), encoding.axes, wait=True)
            return at(encoding, positions, tokens[..., None])
        n = 0 if before is None else len(before)
        first = before.first if before is not None and n else 0
        counted = at(encoding, None, tokens[..., None], offset=0 if first is None else first + n)
        kept = None if past is None else past.keep
        if first is not None and keep is None and kept is None:
            return counted
        start: Any = before.tensor[..., -1:] + 1 if before is not None and n else 0
        if kept is not None:
            start = start * kept.any(1, keepdim=True)  # a row of nothing but padding is at 0
        if keep is not None:
            return Positions((start + keep.long().cumsum(1) - 1).clamp(min=0))
        return Positions(start + torch.arange(length, device=device))

    @staticmethod
    def _keep(past: Cache | Memory, tokens: Tensor, keep: Tensor | None) -> None:
        """Write padding into the past."""
        if keep is not None or past.keep is not None:
            now = keep if keep is not None else torch.ones_like(tokens, dtype=torch.bool)
            before = past.keep if past.keep is not None else now.new_ones(now.shape[0], len(past))
            past.keep = torch.cat([before, now], 1)

    def _unchanged(self, x: Tensor, past: Cache | Memory, before: Positions | None, now: Positions) -> Tensor:
        """``x``, unless what the layers above the first keep was made with angles that change now: that is a
        ValueError, or NaN where we can't check."""
        if before is None or not len(before):
            return x
        first, its = before.first, now.first
        if first is not None and its is not None:  # the last number will do, and needs no GPU
            before, now = (
                Positions(1, offset=last, device="cpu")
                for last in (first + len(before) - 1, its + len(now) - 1)
            )
        for encoding in dict.fromkeys(self.encodings[:-1]):  # once, also where all layers share it
            changed = encoding.changes(before, now)
            if changed is not None and not readable(changed, wait=True):
                x = nan_where(changed.view(-1, 1, 1), x)
            elif changed is not None and changed.any():
                name = type(past).__name__.lower()
                raise ValueError(
                    f"the {name} holds {len(past)} tokens that layers have read, but now that the text is "
                    f"longer, the angles of {type(encoding).__name__} change for all of them: give the whole "
                    f"text in one call, without a {name}"
                )
        return x

    @torch.no_grad()
    def generate(
        self,
        tokens: Tensor,
        steps: int,
        *,
        positions: Where = None,
        keep: Tensor | None = None,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Continue ``tokens [B, L]`` by ``steps`` ids; returns ``[B, L + steps]``.

        Args:
            tokens: the prompts, with at least one token.
            steps: how many ids to add.
            positions: those of the given tokens; new tokens count on from the last one (positions of
                several axes can't).
            keep: booleans, broadcastable to ``[B, L]``, False for padding. Prompts of different lengths
                are padded on the left, and each continues as it would alone.
            temperature: 0 takes the most likely token, 1 draws by the model's probabilities; above that
                unlikely tokens come more often.
            generator: what to draw with.

        Raises ValueError for arguments out of range, padding on the right, a model that is not causal or
        pools, and a text whose angles change as it grows (:meth:`forward`).
        """
        check_not_negative(steps=steps)
        self._check_tokens(tokens)
        if not (is_number(temperature) and temperature >= 0):
            raise ValueError(f"temperature={temperature!r}: it must be a finite number, 0 or more")
        if tokens.shape[1] == 0:
            raise ValueError(f"tokens have shape {tuple(tokens.shape)}: a prompt has at least one token")
        if not self.config.causal or self.config.pool is not None:
            has = f"pool={self.config.pool!r}" if self.config.causal else "causal=False"
            raise ValueError(f"generate needs a causal model without pooling, and this one has {has}")
        if keep is not None:
            check_mask(keep, tuple(tokens.shape), "keep")
            keep = keep.expand_as(tokens)
            if not keep[:, -1].all():
                rows = (~keep[:, -1]).nonzero()[:, 0].tolist()
                raise ValueError(
                    f"keep is False for the last token of rows {rows}, but a text goes on from its last "
                    "token: pad on the left"
                )
        cache, new = Cache(), tokens
        for _ in range(steps):
            logits = self(new, positions, keep=keep, cache=cache)[:, -1]
            if temperature > 0:
                p = ((logits - logits.amax(-1, keepdim=True)) / temperature).softmax(-1)
                new = torch.multinomial(p, 1, generator=generator)
            else:
                new = logits.argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, new], 1)
            positions = keep = None  # the cache remembers both
        return tokens


@torch.no_grad()
def attention_weights(model: Transformer, tokens: Tensor, positions: Where = None, layer: int = 0) -> Tensor:
    """Weights ``[B, H, L, L]``, query by key, of one layer in ``model(tokens, positions)``.

    ``tokens`` and ``positions`` are those of :meth:`Transformer.forward`; ``layer`` counts from 0, negative
    ones from the end. Raises IndexError for a layer that the model lacks, and what the model raises.
    """
    n = len(model.blocks)
    if not -n <= layer < n:
        raise IndexError(f"layer is {layer}: the model has {n}, counted from 0")
    attend = cast(Block, model.blocks[layer]).attention
    seen: list[tuple[Tensor, AttentionInputs]] = []
    hook = attend.register_forward_pre_hook(lambda module, given: seen.append(given[:2]))
    try:
        model(tokens, positions)
    finally:
        hook.remove()
    [(x, given)] = seen
    weights: Tensor = attention(
        *attend.heads_of(x),
        given.encoding,
        given.q_positions,
        given.k_positions,
        causal=model.config.causal,
        backend="eager",
        return_weights=True,
    )[1]
    return weights
