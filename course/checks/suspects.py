"""Five implementations from a seed, some of them broken: which ones, and what is wrong with them?

    five = suspects.draw(7)        # functions without a source, and what their weights were trained with
    conformance.check(five[0].function, **five[0].declared)
    suspects.verdicts(7)           # for whoever judges: the name of each one's bug, "" if it is right

Each bug is one change in one line of right code. The tool `tutorial_lib.conformance` has a name for it,
and no second one that would fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .question import Draw

RIGHT = {
    "halves": """
def rotate(x, positions):
    theta = BASE ** (-torch.arange(0, D, 2) / D)
    angle = positions[..., None] * theta
    angle = angle[:, None] if angle.ndim == 3 else angle
    (a, b), cos, sin = x.chunk(2, -1), angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1).to(x.dtype)
""",
    "neighbours": """
def rotate(x, positions):
    angle = positions[..., None] * BASE ** (-torch.arange(0, D, 2) / D)
    turn = torch.polar(torch.ones_like(angle), angle)
    turn = turn[:, None] if turn.ndim == 3 else turn
    z = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * turn).flatten(-2).to(x.dtype)
""",
    "bias": """
def bias(Lq, Lk):
    n = 2 ** int(math.log2(H))
    m = [2 ** (-8 * h / n) for h in range(1, n + 1)]
    m += [2 ** (-4 * h / n) for h in range(1, 2 * (H - n), 2)]
    ahead = torch.arange(Lk) - torch.arange(Lk - Lq, Lk)[:, None]
    return torch.tensor(m)[:, None, None] * ahead
""",
    "attention": """
def attend(q, k, v):
    def turn(x, start):
        angle = torch.arange(start, start + x.shape[-2])[:, None] * BASE ** (-torch.arange(0, D, 2) / D)
        (a, b), cos, sin = x.chunk(2, -1), angle.cos(), angle.sin()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    Lq, Lk = q.shape[-2], k.shape[-2]
    s = turn(q, Lk - Lq) @ turn(k, 0).mT / D**0.5
    hidden = torch.ones(Lq, Lk).triu(Lk - Lq + 1).bool()
    return s.masked_fill(hidden, -torch.inf).softmax(-1).to(v.dtype) @ v
""",
}

BUGS = (  # kind, the tool's name, what stands there once, what stands there instead
    ("halves", "sign", "angle.sin()", "-angle.sin()"),
    ("halves", "minus lost", "a * cos - b * sin", "a * cos + b * sin"),
    ("halves", "cosine for sine", "angle.cos(), angle.sin()", "angle.sin(), angle.cos()"),
    ("halves", "base", "BASE", "10_000.0"),
    ("halves", "positions from 1", "positions[..., None]", "(positions[..., None] + 1)"),
    ("halves", "angles in half precision", "* theta", "* theta.half()"),
    ("halves", "rows share positions", "angle[:, None]", "angle[:1, None]"),
    ("neighbours", "permuted channels", "(-1, 2)).contiguous()", "(2, -1)).mT.contiguous()"),
    (
        "neighbours",
        "frequencies reversed",
        "(-torch.arange(0, D, 2) / D)",
        "(-torch.arange(0, D, 2) / D).flip(0)",
    ),
    ("neighbours", "positions in bf16", "positions[..., None]", "positions[..., None].bfloat16()"),
    ("neighbours", "positions restart", "positions[..., None]", "torch.arange(x.shape[-2])[:, None]"),
    ("neighbours", "one position for the chunk", "positions[..., None]", "positions[..., -1:, None]"),
    (
        "neighbours",
        "packing",
        "positions[..., None]",
        "(positions[..., :1] + torch.arange(x.shape[-2]))[..., None]",
    ),
    ("bias", "bias before the scale", "* ahead", "* ahead / D**0.5"),
    ("bias", "slopes", "2 ** int(math.log2(H))", "H"),
    ("attention", "only queries turned", "turn(k, 0)", "k"),
    ("attention", "only keys turned", "turn(q, Lk - Lq)", "q"),
    ("attention", "values turned", "@ v", "@ turn(v, 0)"),
    ("attention", "scale missing", " / D**0.5", ""),
    ("attention", "scale twice", "D**0.5", "D"),
    ("attention", "mask starts at the top", "triu(Lk - Lq + 1)", "triu(1)"),
    ("attention", "own token hidden", "triu(Lk - Lq + 1)", "triu(Lk - Lq)"),
    ("attention", "future seen", "triu(Lk - Lq + 1)", "triu(Lk)"),
)


@dataclass(frozen=True)
class Suspect:
    """A function, and what its weights were trained with: what ``conformance.check`` wants to be told."""

    function: Callable[..., Any]
    declared: dict[str, Any]


def made(kind: str, old: str, new: str, **sizes: float) -> Suspect:
    """Right code of a kind with ``old`` replaced by ``new``, for the sizes ``D``, ``H`` and ``BASE``."""
    names: dict[str, Any] = {"torch": torch, "math": math, **sizes}
    exec(compile(RIGHT[kind].replace(old, new), "<suspect>", "exec"), names)
    *_, function = names.values()
    if kind == "bias":
        return Suspect(function, {"bias_kind": "alibi", "head_dim": sizes["D"]})
    layout = "interleaved" if kind == "neighbours" else "half"
    heads = {"encoding": "rope", "n_heads": sizes["H"]} if kind == "attention" else {}
    return Suspect(function, {"head_dim": sizes["D"], "layout": layout, "base": sizes["BASE"], **heads})


def _drawn(seed: int) -> list[tuple[Suspect, str]]:
    draw = Draw(seed)
    broken = [BUGS[i] for i in draw.permutation(len(BUGS))[: draw.integer(2, 4)].tolist()]
    right = [(draw.choice([*RIGHT]), "", "", "") for _ in range(5 - len(broken))]
    sizes = [
        {"D": draw.choice((32, 64)), "H": draw.choice((6, 12)), "BASE": draw.choice((5e5, 5e6))}
        for _ in range(5)
    ]
    five = [
        (made(kind, old, new, **its), name)
        for (kind, name, old, new), its in zip([*broken, *right], sizes, strict=True)
    ]
    return [five[i] for i in draw.permutation(5).tolist()]


def draw(seed: int) -> list[Suspect]:
    """Five of them, two to four of which are broken, each in another way."""
    return [suspect for suspect, _ in _drawn(seed)]


def verdicts(seed: int) -> list[str]:
    """What is wrong with the five of this seed: names that the tool has, and "" for what is right."""
    return [name for _, name in _drawn(seed)]
