"""SmolLM2 with the learner's RoPE in it: all 30 layers, a cache of turned keys, and bugs to plant."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.attention import scores
from tutorial_lib.data import SMOLLM2, load_smollm2
from tutorial_lib.data.pretrained import SMOLLM2_BASE, SMOLLM2_TRAININGS, Pretrained
from tutorial_lib.encodings import Rotary
from tutorial_lib.encodings.rotary import Angles
from tutorial_lib.language import _, column, joined
from tutorial_lib.model import Block, Cache

from .souvenir import keep

HEADS, KV_HEADS, WIDTH = SMOLLM2.n_heads, SMOLLM2.n_kv_heads or SMOLLM2.n_heads, SMOLLM2.head_dim
TRAINED = SMOLLM2_TRAININGS[-1][0]
"""Tokens of the windows that SmolLM2 was trained on in the end."""


def gently(method):
    """A wrong function may stop the model; a sentence then says so, and nothing is raised."""

    @functools.wraps(method)
    def run(*args, **named):
        try:
            return method(*args, **named)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as problem:
            print(
                _("Your functions stop the model: {error}").format(
                    error=f"{type(problem).__name__}: {problem}"
                )
            )

    return run


# ---- bugs ----
def _turned_twice(yours, q, k, cached):
    """The keys of the cache are turned once more, each by its own position."""
    return q, k, yours.turn(cached, 0)


def _from_zero(yours, q, k, cached):
    """New tokens count from 0 again: they are turned back by what stands in the cache."""
    start = torch.full((q.shape[-2],), -cached.shape[-2])
    return *(yours.turn_by(x, start) for x in (q, k)), cached


def _other_pairs(yours, q, k, cached):
    """Channels t and t + 32 become neighbours: interleaved weights in code for halves."""
    order = torch.arange(WIDTH).view(2, -1).T.flatten()
    return q[..., order], k[..., order], cached


BUGS: dict[str, Callable] = {
    "keys turned twice": _turned_twice,
    "counted from 0": _from_zero,
    "the other layout": _other_pairs,
}
"""What :meth:`RopeInSmolLM2.talk` can plant, around the learner's own functions."""


def _who(bug: str) -> str:
    return _(bug) if bug else _("your functions")


@dataclass
class _Layer:
    """Turned keys ``[9, P, 64]`` (each of the three heads serves three queries) and their values."""

    keys: Tensor = field(default_factory=lambda: torch.zeros(HEADS, 0, WIDTH))
    values: Tensor = field(default_factory=lambda: torch.zeros(HEADS, 0, WIDTH))


class RopeInSmolLM2:
    """SmolLM2-135M, whose attention gets its scores from three functions of exercise 06.

    ``angles(positions, dim, base)``, ``rotate(x, angles, layout)``, ``scores(q, k, cached, base)``. The
    weights are laid out for interleaved pairs.
    """

    def __init__(self, angles: Callable, rotate: Callable, scores: Callable):
        self.angles, self.rotate, self.scores = angles, rotate, scores
        self.smollm2 = load_smollm2()
        self.heard: dict[str, str] = {}  # how it went on, and its loss with a cache, by the name of the bug
        self.lost: dict[str, float] = {}

    def turn_by(self, x: Tensor, positions: Tensor) -> Tensor:
        """``x [H, n, 64]``, turned by the learner's functions."""
        return self.rotate(x, self.angles(positions, WIDTH, SMOLLM2_BASE), "interleaved")

    def turn(self, x: Tensor, start: int) -> Tensor:
        return self.turn_by(x, start + torch.arange(x.shape[-2]))

    def queries_and_keys(self, text: str, layer: int = 0) -> tuple[Tensor, Tensor]:
        """Queries and keys of a layer for a text, before they are turned: ``[9, L, 64]`` each."""
        found: list = []
        self._read(self.smollm2.encode(text), self._empty(), keep=found)
        return found[layer]

    def _empty(self) -> list[_Layer]:
        return [_Layer() for _each in self.smollm2.model.blocks]

    @torch.no_grad()
    def _read(self, tokens: Tensor, cache: list[_Layer], bug: str = "", keep: list | None = None) -> Tensor:
        """Logits ``[n, vocabulary]`` of the n tokens ``[1, n]`` that follow those in the cache."""
        model = self.smollm2.model
        blocks: Any = model.blocks
        x = model.tokens(tokens[0])
        for block, past in zip(blocks, cache, strict=True):
            q, k, v = self._heads(block.attention, block.norm1(x))
            if keep is not None:
                keep.append((q, k))
            weights = self._weights(q, k, past.keys, bug)
            past.keys = torch.cat([past.keys, self._turned(k, past.keys, bug)], -2)
            past.values = torch.cat([past.values, v], -2)
            x = x + block.attention.out((weights @ past.values).transpose(0, 1).flatten(1))
            x = x + block.feed_forward(block.norm2(x))
        return model.head(model.norm(x))

    @staticmethod
    def _heads(attention, x: Tensor) -> tuple[Tensor, ...]:
        q, k, v = (
            part(x).unflatten(-1, (-1, WIDTH)).transpose(0, 1)
            for part in (attention.q, attention.k, attention.v)
        )
        return q, *(each.repeat_interleave(HEADS // KV_HEADS, 0) for each in (k, v))

    def _weights(self, q: Tensor, k: Tensor, cached: Tensor, bug: str) -> Tensor:
        if bug:
            q, k, cached = BUGS[bug](self, q, k, cached)
        scores = self.scores(q, k, cached, SMOLLM2_BASE)
        n = q.shape[-2]
        ahead = torch.ones(n, n, dtype=torch.bool).triu(1)
        hidden = torch.cat([ahead.new_zeros(n, cached.shape[-2]), ahead], 1)
        return scores.masked_fill(hidden, -torch.inf).softmax(-1)

    def _turned(self, k: Tensor, cached: Tensor, bug: str) -> Tensor:
        if bug in ("counted from 0", "the other layout"):
            _q, k, _cached = BUGS[bug](self, k, k, cached)
        return self.turn(k, cached.shape[-2])

    @gently
    def talk(self, text: str, steps: int = 12, bug: str = "") -> None:
        """Print how the model goes on: the text at once, then token by token from the cache."""
        new, cache, written = self.smollm2.encode(text), self._empty(), []
        for _step in range(steps):
            new = self._read(new, cache, bug)[-1:].argmax(-1)[None]
            written.append(new.item())
        self.heard[bug] = said = self.smollm2.decode(torch.tensor(written))
        print(_("{who}: {text} …{said}").format(who=_who(bug), text=text, said=said))

    @gently
    def read(self, text: str, at_once: int = 8, bug: str = "") -> None:
        """Print the loss of a text that is read in one go, and in pieces with a cache."""
        tokens = self.smollm2.encode(text)
        whole, pieces = (self._loss(tokens, n, bug) for n in (tokens.shape[1], at_once))
        self.lost[bug] = pieces
        print(
            _(
                "{who}: read in one go {whole:.3f}, {n} tokens at a time with a cache {pieces:.3f} nats per "
                "token"
            ).format(who=_who(bug), whole=whole, n=at_once, pieces=pieces)
        )

    def keep(self) -> None:
        """Draw what has been heard and read so far, the learner's functions beside the planted bugs."""
        names = [bug for bug in self.lost if bug in self.heard]
        if not names:
            print(_("There is nothing to keep yet: let the model talk and read first."))
            return
        labels = {bug: f"{_who(bug)}\n…{' '.join(self.heard[bug].split())}" for bug in names}
        fig = plots.bars(
            {labels[bug]: self.lost[bug] for bug in names},
            title=_("SmolLM2 with your rotation"),
            xlabel=_("loss with a cache"),
            size=(11, 1.2 + 0.9 * len(names)),
        )
        ends = " | ".join(f"{_who(bug)} {self.lost[bug]:.2f}" for bug in names)
        what = _("Bars of the loss with a cache, each beside what the model said.")
        keep(fig, joined([what, f"{ends}."]), f"…{' '.join(self.heard[names[0]].split())} | {ends}")

    def _loss(self, tokens: Tensor, at_once: int, bug: str) -> float:
        cache = self._empty()
        logits = torch.cat([self._read(piece, cache, bug) for piece in tokens.split(at_once, 1)])
        return F.cross_entropy(logits[:-1], tokens[0, 1:]).item()


# ---- one head ----
@torch.no_grad()
def queries_and_keys(smollm2: Pretrained, tokens: Tensor, layer: int, head: int) -> tuple[Tensor, Tensor]:
    """Queries and keys of a head before they are turned, ``[B, L, 64]`` each, for ``tokens [B, L]``.

    ``layer`` and ``head`` are counted from 1; three heads share their keys.
    """
    blocks: Any = smollm2.model.blocks
    attention, heard = blocks[layer - 1].attention, []
    handle = attention.q.register_forward_pre_hook(lambda _part, given: heard.append(given[0]))
    smollm2.model(tokens)
    handle.remove()
    shared = (head - 1) * KV_HEADS // HEADS
    return tuple(
        part(heard[0]).unflatten(-1, (-1, WIDTH))[:, :, n]
        for part, n in ((attention.q, head - 1), (attention.k, shared))
    )


# ---- a gap ----
class Given(Angles):
    """Frequencies that somebody has worked out: ``[d/2]``, radians per position."""

    def __init__(self, theta: Tensor):
        super().__init__(2 * len(theta), SMOLLM2_BASE)
        object.__setattr__(self, "given", theta.double())

    def theta(self, length=None, device=None):
        return self.given


@gently
@torch.no_grad()
def after_a_gap(ways: dict[str, Tensor], gap: int = 9000, length: int = 100) -> None:
    """Print the loss of a text that SmolLM2 reads twice; the second copy's positions begin ``gap`` later.

    ``ways``: the frequencies ``[32]`` of each way to stretch RoPE, by name. A model that finds the first copy
    knows every next token of the second one.
    """
    from tutorial_lib.data import kjv  # SmolLM2 alone does not need it

    smollm2 = load_smollm2()
    tokens, model = smollm2.encode(kjv().text[900_000:900_700])[:, :length], smollm2.model
    positions, usual = torch.arange(length), model.encoding
    heads = (
        (_("loss of"), 24),
        (_("the first copy"), -14),
        (_("the second, no gap"), -20),
        (_("after {gap}").format(gap=f"{gap:,}"), -14),
    )
    print(*[column([head], width)[0] for head, width in heads])
    new, found = 0.0, {}
    try:
        for name, theta in ways.items():
            model.encoding = Rotary(WIDTH, frequencies=Given(theta))
            first = Cache()
            read = [model(tokens, positions, cache=first)]
            read += [model(tokens, positions + length + n, cache=first.copy()) for n in (0, gap)]
            losses = [F.cross_entropy(logits[0, :-1], tokens[0, 1:]).item() for logits in read]
            cells = zip(heads, (name, *(f"{x:.2f}" for x in losses)), strict=True)
            print(*[column([head, cell], width)[1] for (head, width), cell in cells])
            new, found[name] = max(new, losses[0]), losses[-1]
    finally:
        model.encoding = usual
    title = _("the second copy, {gap} tokens later").format(gap=f"{gap:,}")
    fig = plots.bars(found, title=title, xlabel=_("loss"), levels={_("a text it has never seen"): new})
    ends = " | ".join(f"{_(name)} {x:.2f}" for name, x in found.items())
    keep(fig, joined([_("Bars of the loss of a copy far behind the first, for each way."), f"{ends}."]), ends)


@torch.no_grad()
def equal_words(word: str, length: int = 64) -> Tensor:
    """Scores of the last of ``length`` equal tokens, for all heads: ``[270, length]``, the farthest first.

    Attention over equal values gives the same value, whatever the weights are: so the tokens stay equal in
    all layers, one of them is enough, and what is left between the keys is RoPE alone.
    """
    pretrained, places = load_smollm2(), torch.arange(length)
    x, found = pretrained.model.tokens(pretrained.encode(word)[:, :1]), []
    for block in cast(Iterable[Block], pretrained.model.blocks):
        layer, y = block.attention, block.norm1(x)
        q, k, v = (part(y).unflatten(-1, layer.heads).transpose(1, 2) for part in (layer.q, layer.k, layer.v))
        k, v = (part.repeat_interleave(HEADS // KV_HEADS, 1) for part in (k, v))
        rope = pretrained.model.encodings[0]
        found.append(scores(q, k.expand(-1, -1, length, -1), rope, places[-1:], places)[0, :, 0])
        x = x + layer.out(v.transpose(1, 2).flatten(-2))
        x = x + block.feed_forward(block.norm2(x))
    return torch.cat(found)
