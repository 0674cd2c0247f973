"""The explorer of notebook 04: how a relative bias is built, where it looks, and what it costs."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import torch

from ..encodings import ALiBi, ClippedBias, RelativeBias, T5Bias, TableBias, bucket
from ..language import _
from .parts import Choice, Heat, Index, Lines, LiveExplorer, Scene, Steps, palette

METHODS = ("full table", "clipped", "T5 buckets", "ALiBi")
SIGNS = ("j − i", "i − j")
HEADS, BYTES = 12, 4
SIZES, REACHES = (4, 8, 16), (16, 128)
LENGTHS = tuple(2**n for n in range(2, 17))
FAR = (20, 90)
NEAR = 8


@functools.lru_cache(maxsize=8)
@torch.no_grad()
def bias(method: str, tokens: int, size: int, far: int) -> RelativeBias:
    """One head, learned with r = j − i: entries below 0 for the past, above 0 for the future.

    They grow evenly with the number of the entry. ALiBi has no entries: its slope is 1 / tokens.
    """
    made: Any
    if method == "full table":
        made = TableBias(1, tokens)
        made.W_r[0] = torch.arange(1 - tokens, tokens) / (tokens - 1)
    elif method == "clipped":
        made = ClippedBias(1, size)
        made.b[0] = torch.arange(-size, size + 1) / size
    elif method == "T5 buckets":
        made = T5Bias(1, bidirectional=True, n_buckets=2 * size, max_distance=far)
        steps = torch.linspace(0, 1, size)
        made.b[0] = torch.cat([-steps, steps])
    else:
        made = ALiBi(8, symmetric=True)
        made.n_heads, made.m = 1, (made.m[tokens.bit_length() - 2],)
    return made


def values(method, tokens, size, far, sign, r) -> torch.Tensor:
    """What a key at the offset r = j − i gets, if the table is asked with this sign."""
    found = bias(method, tokens, size, far).of(r if sign == SIGNS[0] else -r)[0].detach()
    return found + 0.0  # −0 would be shown


def computation(method, tokens, size, far, sign, i, j) -> str:
    """How one cell is found, in numbers.

    >>> computation("full table", 4, 8, 32, "j − i", 1, 2)
    'W_r[2 − 1 + 3] = W_r[4] = 0.33'
    >>> computation("clipped", 4, 2, 32, "i − j", 3, 0)
    'b[clip(3 − 0, 2) + 2] = b[4] = 1.00'
    """
    (a, b), r = ((j, i), j - i) if sign == SIGNS[0] else ((i, j), i - j)
    value = f"{values(method, tokens, size, far, sign, torch.tensor(j - i)):.2f}"
    if method == "full table":
        return f"W_r[{a} − {b} + {tokens - 1}] = W_r[{r + tokens - 1}] = {value}"
    if method == "clipped":
        return f"b[clip({a} − {b}, {size}) + {size}] = b[{max(-size, min(size, r)) + size}] = {value}"
    if method == "T5 buckets":
        n = bucket(torch.tensor(r), bidirectional=True, n_buckets=2 * size, max_distance=far)
        return f"b[bucket({a} − {b})] = b[{n}] = {value}"
    return f"−m·|{a} − {b}| = −{Fraction(1, tokens)} · {abs(r)} = {value}"


def entries(method: str, length: int, size: int) -> int:
    """Numbers kept per head for texts of this length; ALiBi keeps a slope."""
    return {"full table": 2 * length - 1, "clipped": 2 * size + 1, "T5 buckets": 2 * size, "ALiBi": 1}[method]


def costs(method: str, length: int, size: int) -> dict[str, int]:
    """Bytes for 12 heads in float32: what is kept, the tensor for all pairs, the line of offsets."""
    kept = "slopes" if method == "ALiBi" else "table"
    numbers = {kept: entries(method, length, size), "[H, N, N]": length**2, "line": 2 * length - 1}
    return {name: HEADS * BYTES * n for name, n in numbers.items()}


@functools.cache
def edges(size: int, far: int) -> list[int]:
    """The first distance of each T5 bucket from 1 on; two are the same where a bucket stays empty.

    >>> edges(8, 16)
    [1, 2, 3, 4, 6, 8, 12]
    """
    reached = bucket(-torch.arange(2 * far), bidirectional=True, n_buckets=2 * size, max_distance=far)
    return [int((reached >= n).nonzero()[0]) for n in range(1, size)]


class RelativeBiasExplorer(LiveExplorer):
    """The bias of every pair; beside it where the query looks with it alone, or the bytes that it costs."""

    front = "relative"
    parameters = {
        "method": Choice(METHODS, "T5 buckets"),
        "tokens": Steps((4, 8, 16, 32, 128), 32, label="tokens N"),
        "size": Steps(SIZES, 8, label="k, or buckets a side"),
        "far": Steps(REACHES, 128, label="max distance"),
        "sign": Choice(SIGNS, "j − i", label="read at"),
        "view": Choice(("attention", "memory"), "attention", label="beside it"),
        "i": Index("tokens", 1),
        "j": Index("tokens", 2),
    }
    challenge = (
        f"Find settings at which the distances {FAR[0]} and {FAR[1]} share a number, while each "
        f"of 0 … {NEAR} has one of its own."
    )

    @classmethod
    def constants(cls):
        return {
            "edges": {f"{size} {far}": edges(size, far) for size in SIZES for far in REACHES},
            "palette": palette("signed", 64).hex(),
            "shared": FAR,
            "near": NEAR,
        }

    @staticmethod
    def render(*, method, tokens, size, far, sign, view, i, j):
        setting, p = (method, tokens, size, far, sign), torch.arange(tokens)
        one = bias(method, tokens, size, far)
        z = (one.bias(p, p) if sign == SIGNS[0] else one.bias(p, p).mT)[0].detach()
        r = torch.arange(1 - tokens, tokens)
        line, found = values(*setting, r), computation(*setting, i, j)
        looks = z[i].double().softmax(-1)
        side = _("the token itself") if i == j else _("past") if j < i else _("future")
        places = [str(n) for n in range(tokens)] if tokens <= 16 else None
        heat = Heat(
            z,
            f"bias of {method}, read at {sign}",
            "key j",
            "query i",
            mark=(i, j),
            xticks=places,
            yticks=places,
            colorbar="" if method == "ALiBi" else "learned for: − past, + future",
            readout=f"i = {i}, j = {j} ({side}): {found}",
        )
        bytes_ = costs(method, tokens, size)
        cost = _(", ").join(f"{name if '[' in name else _(name)} {bytes_[name]:,}" for name in bytes_)
        if view == "attention":
            beside = Lines(
                p - i,
                {"weight": looks},
                f"where token {i} looks, by the bias alone",
                "offset r = j − i",
                "attention",
                ylim=(0.0, 1.05),
                markers=tokens <= 32,
                mark=j,
                readout=f"r = {j - i}: key {j} gets {looks[j]:.2f}",
            )
        else:
            each = [costs(method, length, size) for length in LENGTHS]
            beside = Lines(
                LENGTHS,
                {name: [row[name] for row in each] for name in bytes_},
                f"bytes for {HEADS} heads, float32",
                "length N",
                "bytes",
                logx=True,
                logy=True,
                mark=LENGTHS.index(tokens),
                readout=f"N = {tokens}, bytes: {cost}",
            )
        past, future = line[: tokens - 1], line[tokens:]
        if method == "ALiBi":
            told = _("a mirror: past and future get the same")
        else:
            ends = [f"{part[n]:.2f}" for part in (past, future) for n in (0, -1)]
            told = (
                _("keys of the past get {0} to {1}, those of the future {2} to {3}")
                if sign == SIGNS[0]
                else _(
                    "keys of the past get {0} to {1}, those of the future {2} to {3}, each the numbers "
                    "learned for the other"
                )
            ).format(*ends)
        return Scene(
            {"bias": heat, "beside": beside},
            _(
                "{0}, {1} tokens{2}, read at {3}: {4}; the {5} offsets have {6} different numbers; marked "
                "is i "
                "= {7}, j = {8}: {9}; by the bias alone that key gets {10} of the attention; bytes for {11} "
                "heads: {12}."
            ).format(
                _(method),
                tokens,
                _sizes(method, size, far),
                sign,
                told,
                2 * tokens - 1,
                len(line.unique()),
                i,
                j,
                found,
                f"{looks[j]:.2f}",
                HEADS,
                cost,
            ),
        )

    @staticmethod
    def reached(*, method, tokens, size, far, sign, **_rest):
        if tokens <= max(FAR):
            return ""
        past = values(method, tokens, size, far, sign, -torch.arange(tokens))
        alike = int((past == past[FAR[1]]).nonzero()[0])  # the first distance that has this number
        own = len(past[: NEAR + 1].unique()) > NEAR and alike > NEAR
        if not own or alike > FAR[0]:
            return ""
        return _("{0} numbers serve {1} offsets; from distance {2} on, they all share one.").format(
            entries(method, tokens, size), 2 * tokens - 1, alike
        )


def _sizes(method, size, far):
    return {
        "clipped": _(", clipped at {0}").format(size),
        "T5 buckets": _(", {0} buckets a side up to the distance {1}").format(size, far),
    }.get(method, "")
