"""Which clocks does a decoder with RoPE hear? Its weights are unknown, and its logits tell all the same.

Two tokens stand r apart. Whatever layers and heads make of them, the logits are some smooth function of the
angles r·θ_t. So if the θ are the declared ones, the logits at some distances foretell those at others: they
are interpolated on the torus of these angles. With the θ of a bug that works badly, unless it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .report import FAILED, Finding, undecided
from .rope import BASES, Rope, mutations

N, NEAR, FAR = 400, 300, 2500
CLEAR = 2.0  # times as badly must other θ foretell to be told apart
WORST = 0.5  # of the variance may stay open under θ that are called the right ones


def check_clocks(ask: Callable[[Tensor, Tensor], Tensor], vocab: int, rope: Rope) -> tuple[Finding, bool]:
    """The finding on ``ask(tokens [B, 2], positions [B, 2])``, the logits of the second token.

    And whether the declared θ foretell these clearly better than those of any bug.
    """
    generator = torch.Generator().manual_seed(0)
    near, far = (torch.randperm(n, generator=generator)[: N // 2] for n in (NEAR, FAR - NEAR))
    r = torch.cat([near, NEAR + far])[torch.randperm(N, generator=generator)]
    positions, heard = torch.stack([torch.zeros_like(r), r], -1), []
    for pair in torch.randint(vocab, (6, 2), generator=generator):
        y = ask(pair.expand(N, 2), positions)
        heard.append((y - y[:1]).double())
    y = torch.cat(heard, 1)
    if not bool(y.any()):
        one, other = (ask(pair[None], positions[i : i + 1]) for i in (0, 1))
        if not torch.equal(one, other):
            because = "all rows of a batch have the logits of the first one's positions"
            return undecided("golden values", because), False
        empty = ("inv_freq never filled", "no position")
        says = "Logits are the same at all distances."
        return Finding("golden values", FAILED, says, empty, shown=f"2 tokens, up to {FAR} apart"), False
    right, others = rope.turn(rope.base or BASES[0], "half").theta, dict[str, float]()
    left = _left_open(y, r, right)
    for name, theta in _wrong(rope, right):
        others[name] = min(others.get(name, torch.inf), _left_open(y, r, theta))
    best = min(others.values())
    if best > WORST or left < CLEAR * best:
        because = "layout and signs belong to weights that nobody knows: give its rotation, or a reference"
        if left < WORST:
            because = f"no bug's θ foretell the logits clearly better than the declared ones, but {because}"
        return undecided("golden values", because), left < WORST and best >= CLEAR * left
    names = tuple(name for name in others if others[name] <= 1.2 * best)
    says = (
        f"Logits follow other θ than the declared ones, which foretell them {left / best:.1f} times as badly."
    )
    return Finding("golden values", FAILED, says, names, shown=f"2 tokens, up to {FAR} apart"), False


def _left_open(y: Tensor, r: Tensor, theta: Tensor) -> float:
    """The share of the variance that an interpolation on the torus of these θ leaves open."""
    angles, seen = r[:, None] * theta, N * 3 // 4
    hands = torch.cat([angles.cos(), angles.sin()], -1)
    k = (hands @ hands.T - len(theta)).exp()  # exp Σ (cos (r − r')θ − 1)
    inner = k[:seen, :seen] + 1e-4 * torch.eye(seen, dtype=k.dtype)
    known, asked = y[:seen] - y.mean(0), y[seen:] - y.mean(0)
    off = k[seen:, :seen] @ torch.linalg.solve(inner, known) - asked
    return float((off**2).sum() / (asked**2).sum())


def _wrong(rope: Rope, right: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The θ of each bug that leaves as many clocks as there are."""
    turn = rope.turn(rope.base or BASES[0], "half")
    for name, changes in mutations(turn, rope, bases=BASES if rope.base is not None else ()):
        if changes.keys() & {"theta", "times"} and changes.keys() <= {"theta", "times", "factor"}:
            theta = changes.get("theta", right) * changes.get("times", 1.0)
            if len(theta.unique()) == len(right) and not theta.sort()[0].allclose(right.sort()[0]):
                yield name, theta
