"""The explorer of notebook 06: queries and keys that turn, pair by pair."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from ..encodings.rotary import LAYOUTS, rotate, turn
from ..encodings.scaling import Frequencies
from ..language import _
from .parts import Choice, Heat, Index, Lines, LiveExplorer, Scene, Steps, Vectors

QUERIES, KEYS = 41, 33  # how many positions each may take
START = {"m": 20, "n": 12}
BACK = START["m"] - START["n"]
CONTENTS = ("random", "alike", f"best {BACK} back")
TURNING = {"all": "every pair", "partial": "half of the channels", "p-RoPE": "the fast half of the pairs"}
LATE = 30
SAME = 1e-9


def frequencies(pairs: int, base: int, turning: str = "all") -> Frequencies:
    """The angles of ``2·pairs`` channels; ``turning`` is one of :data:`TURNING`."""
    if turning == "partial":
        return Frequencies(2 * pairs, base, rotary_dim=2 * (pairs // 2))
    return Frequencies(2 * pairs, base, p=0.5 if turning == "p-RoPE" else 1.0)


def thetas(pairs: int, base: int, turning: str = "all") -> Tensor:
    """θ of each pair, 0 for one that does not turn, float64 ``[pairs]``.

    >>> thetas(4, 10_000, "partial").tolist(), thetas(4, 10_000, "p-RoPE").tolist()
    ([1.0, 0.01, 0.0, 0.0], [1.0, 0.1, 0.0, 0.0])
    """
    theta = frequencies(pairs, base, turning).theta()
    return torch.cat([theta, theta.new_zeros(pairs - len(theta))])


def channels(pair: int, pairs: int, layout: str, turning: str = "all") -> tuple[int, int]:
    """The two channels of a pair. Channels that stay out of a partial rotation are paired for the picture.

    >>> channels(3, 8, "interleaved"), channels(3, 8, "half"), channels(3, 8, "half", "partial")
    ((6, 7), (3, 11), (3, 7))
    """
    if turning == "partial":
        first = pairs // 2  # so many pairs turn
        if pair >= first:
            a, b = channels(pair - first, pairs - first, layout)
            return 2 * first + a, 2 * first + b
        pairs = first
    return (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + pairs)


@functools.lru_cache(maxsize=8)
def contents(content: str, pairs: int, base: int, layout: str, turning: str = "all") -> tuple[Tensor, Tensor]:
    """q and k before they are turned, each float64 ``[1, 1, 1, 2·pairs]``."""
    dice = torch.Generator().manual_seed(6)
    size = 0.5 + 0.5 * torch.rand(2, 64, generator=dice, dtype=torch.float64)
    sign = torch.randint(0, 2, (2, 64), generator=dice) * 2 - 1
    q, k = (size * sign)[:, None, None, None, : 2 * pairs]
    if content == "alike":
        k = q
    elif content != "random":  # a key that stands BACK before the query meets it at the same angle
        k = rotate(
            q, torch.tensor([float(BACK)]), layout=layout, frequencies=frequencies(pairs, base, turning)
        )
    return q, k


@functools.lru_cache(maxsize=8)
def turned(content: str, pairs: int, base: int, layout: str, turning: str = "all") -> tuple[Tensor, Tensor]:
    """q at each of its positions and k at each of its own, ``[41, 2·pairs]`` and ``[33, 2·pairs]``."""
    q, k = contents(content, pairs, base, layout, turning)
    angles = frequencies(pairs, base, turning)
    q, k = (
        rotate(x.expand(1, 1, count, -1), torch.arange(count).double(), frequencies=angles, layout=layout)[
            0, 0
        ]
        for x, count in ((q, QUERIES), (k, KEYS))
    )
    return q, k


@functools.lru_cache(maxsize=8)
def scores(pair: int | None = None, **model) -> Tensor:
    """q·k of every query position with every key position, ``[41, 33]``; of one pair only if it is given."""
    q, k = turned(**model)
    if pair is not None:
        own = list(channels(pair, model["pairs"], model["layout"], model["turning"]))
        q, k = q[:, own], k[:, own]
    return q @ k.T


def degrees(angle: Tensor) -> Tensor:
    """Radians as degrees from −180 to 180."""
    return torch.rad2deg(torch.atan2(angle.sin(), angle.cos()))


def exception(pairs: int, turning: str) -> str:
    """What does not turn, in words; nothing where all pairs turn."""
    return {
        "all": "",
        "partial": _(", only the first {0} of {1} channels turn").format(2 * (pairs // 2), 2 * pairs),
        "p-RoPE": _(", only the fastest {0} of {1} pairs turn").format(pairs // 2, pairs),
    }[turning]


class RotaryExplorer(LiveExplorer):
    """One pair of q and k in the plane, and beside it the score, all angles, or the layout."""

    front = "rotary"
    parameters = {
        "m": Index(QUERIES, START["m"], label="query position m"),
        "n": Index(KEYS, START["n"], label="key position n"),
        "pairs": Steps((2, 4, 16), 4, label="channels d", text=lambda pairs: str(2 * pairs)),
        "pair": Index("pairs", 1, label="pair t"),
        "base": Steps((10, 1000, 10_000), 1000, text="{:,}".format),
        "layout": Choice(LAYOUTS, "interleaved"),
        "turning": Choice(tuple(TURNING), "all", label="what turns", text=TURNING.__getitem__, menu=True),
        "content": Choice(CONTENTS, "random", label="q and k", menu=True),
        "view": Choice(("score", "angles", "channels"), "score", label="second view"),
    }
    challenge = (
        f"Move the query to position {LATE} or later, and find the place of the key where the score "
        f"is what it was with m = {START['m']} and n = {START['n']}."
    )

    @classmethod
    def constants(cls):
        q, k = contents("random", max(cls.parameters["pairs"].values), 10_000, "interleaved")
        return {
            "q": q.flatten().tolist(),
            "k": k.flatten().tolist(),
            "start": START,
            "late": LATE,
            "same": SAME,
        }

    @staticmethod
    def render(*, m, n, pairs, pair, base, layout, turning, content, view):
        model = {"content": content, "pairs": pairs, "base": base, "layout": layout, "turning": turning}
        theta = thetas(pairs, base, turning)
        a, b = channels(pair, pairs, layout, turning)
        (q, k), (q_turned, k_turned) = contents(**model), turned(**model)
        all_pairs, this_pair = scores(**model), scores(pair, **model)
        step = math.degrees(theta[pair])
        ends = {
            "q, turned": q_turned[m, [a, b]],
            "k, turned": k_turned[n, [a, b]],
            "q": q[0, 0, 0, [a, b]],
            "k": k[0, 0, 0, [a, b]],
        }
        plane = Vectors(
            ends,
            f"Pair {pair}: q turned by {m}·{step:.4g}°, k by {n}·{step:.4g}°",
            f"channel {a}",
            f"channel {b}",
            reach=1.5,
            readout=f"q·k of pair {pair}: {this_pair[m, n]:.4f}; of all {pairs} pairs: {all_pairs[m, n]:.4f}",
        )
        if view == "score":
            both = torch.stack([all_pairs, this_pair])
            low, high = float(both.min()), float(both.max())  # the axis stands still when positions move
            room = 0.1 * (high - low)
            beside = Lines(
                range(KEYS),
                {f"all {pairs} pairs": all_pairs[m], f"pair {pair}": this_pair[m]},
                f"q·k of the query at {m} with a key at n",
                "key position n",
                "score",
                ylim=(low - room, high + room),
                markers=True,
                mark=n,
            )
            seen = _("the scores with all keys; the largest is at n = {0}").format(int(all_pairs[m].argmax()))
        elif view == "angles":
            turns = {
                "q: m·θ": degrees(m * theta),
                "k: n·θ": degrees(n * theta),
                "k − q": degrees((n - m) * theta),
            }
            beside = Lines(
                range(pairs),
                turns,
                f"All pairs, turned to m = {m} and n = {n}",
                "pair t",
                "angle in degrees",
                ylim=(-190, 190),
                markers=True,
                mark=pair,
            )
            waves = 2 * math.pi / theta[theta > 0]
            seen = _("the angles of all pairs; pair 0 makes a turn in {0} positions, pair {1} in {2}").format(
                f"{waves[0]:.1f}", len(waves) - 1, f"{waves[-1]:,.1f}"
            )
        else:
            eighth = math.pi / 4 * (theta > 0)[None, : frequencies(pairs, base, turning).d // 2].double()
            matrix = turn(
                torch.eye(2 * pairs, dtype=torch.float64)[None, None, :, None],
                eighth.cos(),
                eighth.sin(),
                layout,
            )
            beside = Heat(
                matrix[0, 0, :, 0].T,
                f"Channels that turn together: {layout}",
                "channel before",
                "channel after",
                colorbar="weight, all turned by 45°",
                mark=(a, b),
                readout=f"Pair {pair} is made of the channels {a} and {b}.",
            )
            seen = (
                _("the rotation as a matrix, in which channels {0} and {1} are mixed")
                if theta[pair]
                else _("the rotation as a matrix, in which channels {0} and {1} stay as they are")
            ).format(a, b)
        return Scene(
            {"plane": plane, "beside": beside},
            _(
                "Query at {0}, key at {1}, {2} layout, base {3}{4}: in pair {5} q has turned by {6}° and k "
                "by "
                "{7}°, lengths stay as they are; the score of all pairs is {8}, and would be at any two "
                "positions with n − m = {9}; beside it {10}."
            ).format(
                m,
                n,
                _(layout),
                base,
                exception(pairs, turning),
                pair,
                f"{m * step:.1f}",
                f"{n * step:.1f}",
                f"{all_pairs[m, n]:.4f}",
                n - m,
                seen,
            ),
        )

    @staticmethod
    def reached(*, m, n, view, pair, **model):
        score, before = scores(**model)[m, n], scores(**model)[START["m"], START["n"]]
        if m < LATE or abs(score - before) > SAME:
            return ""
        return _(
            "q·k is {0} with m = {1} and n = {2}, as with m = {3} and n = {4}: n − m is {5} both times."
        ).format(f"{score:.4f}", m, n, *START.values(), n - m)
