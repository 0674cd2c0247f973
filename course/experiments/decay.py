r"""Does RoPE make scores decay with distance? Nothing is trained here; a seed draws queries and keys.

With the pairs of channels as complex numbers, the score of a key at distance s is

.. math:: \mathrm{score}(s) = \mathrm{Re} \sum_t q_t\, \bar k_t\, e^{\mathrm{i} s \theta_t}

It is given as a share of |q||k|, so 1 is the largest possible.
"""

from __future__ import annotations

import statistics

import torch
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.encodings import Frequencies
from tutorial_lib.language import _

from ..verdicts import above, all_of, below, identity, within
from .record import Record
from .statistics import interval
from .sweep import Experiment, Finding, in_words

HEAD_DIM, PEAK, FAR, TOP = 64, 37, 512, 4096
DISTANCES = sorted({round(2 ** (n / 4)) for n in range(49)} | {0, PEAK - 1, PEAK, PEAK + 1})
"""0, 1, 2, … 4096, wider and wider."""

KINDS = {
    "aligned": "the key is the query",
    "gaussian": "independent normal numbers",
    "constructed": f"the key is the query, turned by {PEAK} places",
    "high": "aligned, in the faster half of the pairs",
    "low": "aligned, in the slower half of the pairs",
    "low, p = 0.5": "the same where only the faster half turns",
}


def scores(q: Tensor, k: Tensor, distances: Tensor, frequencies: Frequencies) -> Tensor:
    """Scores ``[N, len(distances)]`` of N queries and keys ``[N, d]``, as a share of |q||k|."""
    a, b = (torch.view_as_complex(x.double().unflatten(-1, (-1, 2))) for x in (q, k))
    turns = torch.outer(frequencies.theta(), distances.double())
    products = (a * b.conj()) @ torch.polar(torch.ones_like(turns), turns)
    return products.real / (q.double().norm(dim=-1) * k.double().norm(dim=-1))[:, None]


def vectors(kind: str, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Frequencies]:
    """N queries and keys ``[N, d]`` of a kind, and the frequencies that turn them."""
    q = torch.randn(n, HEAD_DIM, generator=generator, dtype=torch.float64)
    frequencies = Frequencies(HEAD_DIM, p=0.5 if kind.endswith("0.5") else 1.0)
    half = HEAD_DIM // 2
    if kind.startswith(("high", "low")):
        q[:, slice(half, None) if kind == "high" else slice(half)] = 0.0
    k = q
    if kind == "gaussian":
        k = torch.randn(n, HEAD_DIM, generator=generator, dtype=torch.float64)
    if kind == "constructed":
        turned = torch.view_as_complex(q.unflatten(-1, (-1, 2)))
        turned = turned * torch.polar(torch.ones_like(frequencies.theta()), PEAK * frequencies.theta())
        k = torch.view_as_real(turned).flatten(-2)
    return q, k, frequencies


def cells(settings: dict) -> list[dict]:
    return [{"vectors": kind} for kind in KINDS]


def measure(settings: dict, cell: dict, seed: int, device: torch.device) -> dict:
    q, k, frequencies = vectors(cell["vectors"], settings["pairs"], torch.Generator().manual_seed(seed))
    every = scores(q, k, torch.arange(TOP + 1), frequencies)
    mean = every.mean(0)
    below = (mean < 0.5).nonzero()
    return {
        "mean": mean[DISTANCES].tolist(),
        "spread": every.std(0)[DISTANCES].tolist(),
        # the first distance where half is lost; TOP if that never happens
        "reach": int(below[0]) if len(below) else TOP,
        "far": mean[FAR:].mean().item(),
        "far_spread": (
            every[:, FAR:].std() / every[:, :FAR].std()
            if cell["vectors"] == "gaussian"
            else every[:, FAR:].std()
        ).item(),
        "at_peak": (every.argmax(-1) == PEAK).double().mean().item(),
    }


def figure(record: Record):
    fig, axes = plots.panels(1, 3, size=(13.8, 4.5), sharey=True)
    x = [max(s, 0.5) for s in DISTANCES]  # 0 has no place on a logarithmic axis

    def mean(name, kind):
        return [statistics.fmean(values) for values in zip(*record.values(name, vectors=kind), strict=True)]

    for ax, kinds, title in zip(
        axes,
        (("aligned", "gaussian"), ("constructed",), ("high", "low", "low, p = 0.5")),
        (
            _("aligned and independent"),
            _("a key made for distance {n}").format(n=PEAK),
            _("fast and slow pairs, aligned"),
        ),
        strict=True,
    ):
        curves = {kind: mean("mean", kind) for kind in kinds}
        spread = {
            kind: (
                [m - s for m, s in zip(curves[kind], mean("spread", kind), strict=True)],
                [m + s for m, s in zip(curves[kind], mean("spread", kind), strict=True)],
            )
            for kind in kinds
            if kind == "gaussian"
        }
        plots.lines(
            x,
            curves,
            ax=ax,
            title=title,
            xlabel=_("distance in tokens"),
            logx=True,
            spread=spread,
            ylabel=_("score / |q||k|") if ax is axes[0] else "",
            mark_x=PEAK if kinds == ("constructed",) else None,
            ylim=(-0.5, 1.1),
        )
    return fig


def alt(record: Record) -> str:
    """What the figure shows, in a sentence."""
    far = {kind: interval(record.values("far", vectors=kind)).mean for kind in KINDS}
    reach = {kind: interval(record.values("reach", vectors=kind)).mean for kind in KINDS}
    return _(
        "Three panels of lines, scores over distance. Aligned vectors fall from 1 to {aligned} on "
        "average beyond {far} tokens, independent ones stay around {gaussian} with the same spread; a "
        "constructed key peaks at {peak}; aligned fast pairs lose half after {high} tokens, slow ones "
        "after {low}, and those that do not turn keep {still}."
    ).format(
        aligned=f"{far['aligned']:.2f}",
        far=FAR,
        gaussian=f"{abs(far['gaussian']):.2f}",
        peak=PEAK,
        high=f"{reach['high']:.0f}",
        low=f"{reach['low']:.0f}",
        still=f"{far['low, p = 0.5']:.2f}",
    )


def findings(record: Record) -> list[Finding]:
    def of(name, kind):
        return interval(record.values(name, vectors=kind))

    aligned, gaussian = of("far", "aligned"), of("far", "gaussian")
    steady = interval([x - 1 for x in record.values("far_spread", vectors="gaussian")])
    elsewhere = interval([1 - x for x in record.values("at_peak", vectors="constructed")])
    high, low = of("reach", "high"), of("reach", "low")
    ratio = interval(
        [
            b / a
            for a, b in zip(
                record.values("reach", vectors="high"), record.values("reach", vectors="low"), strict=True
            )
        ]
    )
    kept = interval([x - 1 for x in record.values("far", vectors="low, p = 0.5")])
    return [
        Finding(
            "Scores of aligned queries and keys decay with distance",
            "Su et al. 2021, §3.4.3",
            "an upper bound that falls with distance",
            f"mean score beyond {FAR} tokens (at distance 0 it is 1): {aligned}",
            below(aligned, 0.5),
            why="the angles of slow pairs are still small there",
        ),
        Finding(
            "RoPE makes the scores of any queries and keys decay with distance",
            "a popular reading of Su et al. 2021, §3.4.3",
            "an upper bound, not the scores",
            f"spread of the scores of independent Gaussian vectors beyond {FAR} tokens over that nearer, "
            f"minus 1: {steady}",
            below(steady, -0.5),
            why="scores of independent vectors are spread as widely far away as nearby",
        ),
        Finding(
            "RoPE itself does not make scores decay: for independent Gaussian vectors nothing changes",
            "Barbero et al. 2024, Proposition 3.2",
            "a proof: the expected score is 0 at every distance",
            f"mean score beyond {FAR} tokens {gaussian}; spread there over that nearer, minus 1: {steady}",
            all_of(within(gaussian, 0.02).of("the mean score"), within(steady, 0.05).of("the spread less 1")),
            why="too few pairs were drawn",
        ),
        Finding(
            "For any query and any distance there is a key whose score is largest at that distance",
            "Barbero et al. 2024, Proposition 3.1",
            "a proof",
            f"share of {record.settings['pairs']} random queries whose key, constructed for distance {PEAK}, "
            f"peaks at another one among 0 to {TOP}: {elsewhere}",
            identity(elsewhere, 0),
            why="another distance has the same angles, up to rounding",
        ),
        Finding(
            "Scores of fast pairs change within a few tokens",
            "Barbero et al. 2024, §4–6",
            "Gemma 7B uses the fastest for positional heads",
            f"aligned vectors in the faster half of the pairs lose half of their score after {high} tokens",
            below(high, 10),
            why="at this base the faster half has slow pairs as well",
        ),
        Finding(
            "Scores of slow pairs hold for at least ten times as long",
            "Barbero et al. 2024, §4–6",
            "Gemma 7B uses the slowest as semantic channels",
            f"in the slower half it takes {low.mean:.0f} tokens, {ratio} times as many. That is the formula; "
            "a real model is opened in notebook 06",
            above(ratio, 10),
            why="the two halves are nearly alike at this base",
        ),
        Finding(
            "Pairs that do not turn lose nothing at any distance",
            "Barbero et al. 2024, §6",
            "Gemma 2B trained on Wikipedia, perplexity: all pairs turn 4.4627, the fastest 75 % 4.4414, none "
            "4.8594",
            f"mean score of aligned vectors in such pairs beyond {FAR} tokens, less 1: {kept}",
            identity(kept, 1e-6),
            why="these pairs turn: the run is broken",
        ),
    ]


EXPERIMENT = Experiment(
    "decay",
    "Decay and RoPE",
    findings=findings,
    figure=figure,
    alt=alt,
    cells=cells,
    measure=measure,
    setup=in_words(
        "{pairs:,} random queries of {channels} channels, and keys made for them; nothing is trained",
        channels=HEAD_DIM,
    ),
    presets={"live": {"pairs": 256}, "full": {"pairs": 2048}},
    seeds={"live": (0, 1, 2), "full": (0, 1, 2, 3, 4)},
)
