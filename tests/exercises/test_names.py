"""Mistakes that are common have a name, in whatever words they are made; no name says what is not so."""

import math

import pytest
import torch
import torch.nn.functional as F

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge

SEEDS = (5, 61, 700)


def ours(name):
    return questions.find(name).reference


def rotate_half_with_repeat(x, angles, layout):
    f = angles.repeat_interleave(2, dim=-1)
    a, b = x.float().chunk(2, dim=-1)
    return (x.float() * f.cos() + torch.cat([-b, a], -1) * f.sin()).to(x.dtype)


def overwritten(x, angles, layout):
    if layout == "half":
        return ours("rope_rotate")(x, angles, layout)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    x[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    x[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return x


def one_sign(x, angles, layout):
    a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.chunk(2, -1)
    a, b = a * angles.cos() - b * angles.sin(), -a * angles.sin() + b * angles.cos()
    return (torch.stack([a, b], -1).flatten(-2) if layout == "interleaved" else torch.cat([a, b], -1)).to(
        x.dtype
    )


def table(change=lambda angle: angle, log=math.log, first=0):
    def answer(positions, d, base):
        omega = torch.exp(-log(base) * torch.arange(0, d, 2) / d)
        angle = change((positions + first)[:, None] * omega)
        out = torch.zeros(len(positions), d)
        out[:, 0::2], out[:, 1::2] = angle.sin(), angle.cos()[:, : d // 2]
        return out

    return answer


def without_itself(q, k, v, q_positions, k_positions):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(k_positions >= q_positions[:, None], -1e9).softmax(-1) @ v


def mean_errors(output, shuffled, order):
    return [float((shuffled - one).abs().mean() / one.abs().mean()) for one in (output[order], output)]


def mean_shift(q, k, angles, shifted):
    turn = ours("rope_rotate")
    old, new = (turn(q, f, "interleaved") @ turn(k, f, "interleaved").mT for f in (angles, shifted))
    return (new - old).abs().mean((1, 2)) / old.abs().mean((1, 2))


def shaw_clip_small(q, k, v, w_K, w_V, q_positions, k_positions):
    m = len(w_K) // 2
    row = (k_positions - q_positions[:, None]).clamp(1 - m, m - 1) + m
    weights = ((q @ k.T + (q[:, None] * w_K[row]).sum(-1)) / math.sqrt(q.shape[1])).softmax(-1)
    return weights @ v + (weights[..., None] * w_V[row]).sum(1)


def one_too_far(x):
    n_q, n_k = x.shape[-2:]
    out = torch.stack([x[..., i, :].roll(i - n_q, -1) for i in range(n_q)], -2)
    return out.masked_fill(torch.ones(n_q, n_k).triu(n_k - n_q + 1) > 0, -math.inf)


def unmasked(q, k, v, slopes):
    i, j = torch.arange(k.shape[2])[-q.shape[2] :, None], torch.arange(k.shape[2])
    return (q @ k.mT / math.sqrt(q.shape[-1]) - slopes[:, None, None] * (i - j).abs()).softmax(-1) @ v


def index_ramp(dim, base, s, L, alpha, beta):
    theta = base ** (-torch.arange(0, dim, 2).double() / dim)
    gamma = ((torch.arange(dim // 2) - alpha) / (beta - alpha)).clamp(0, 1)
    return ((1 - gamma) * theta / s + gamma * theta).float()


def explained(scores):
    share = 1 - ours("offset_error")(scores)
    return share * (scores.diff(dim=-1).abs().amax((1, 2)) > 0)


def base_times_share(dim, base, L, length):
    return (base * length / L) ** (-torch.arange(0, dim, 2).float() / dim)


NAMED = [
    ("rope_rotate", rotate_half_with_repeat, "halves swapped, angles doubled in pairs"),
    ("rope_rotate", overwritten, "written while it is read"),
    ("rope_rotate", one_sign, "minus in both lines"),
    (
        "shift_matrix",
        lambda k, d, base: torch.block_diag(
            *(
                torch.tensor([[math.cos(f), -math.sin(f)], [-math.sin(f), math.cos(f)]])
                for f in (k / base ** (2 * t / d) for t in range(d // 2))
            )
        ),
        "both sines negative",
    ),
    ("sinusoid_table", table(torch.rad2deg), "degrees"),
    ("sinusoid_table", table(torch.deg2rad), "angles taken for degrees"),
    ("sinusoid_table", table(first=1), "positions counted from 1"),
    ("sinusoid_table", table(log=math.log2), "logarithm to the base 2"),
    ("causal_attention", without_itself, "a token may not see itself, with a low number"),
    ("order_errors", mean_errors, "the mean difference by the mean size"),
    ("rope_shift_error", mean_shift, "mean change by the mean score"),
    ("shaw_attention", shaw_clip_small, "clipped one too early"),
    ("relative_shift", one_too_far, "moved by one too much, rolled"),
    ("alibi_attention", unmasked, "nothing hidden, distance to both sides"),
    ("yarn_theta", index_ramp, "ramp over the pair's number, slow first"),
    ("offset_error", explained, "what is explained, 0 without position"),
    ("dynamic_ntk_theta", base_times_share, "base times length over L"),
]


def verdicts(name, answer):
    question = questions.find(name)
    for seed in SEEDS:
        yield judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]))


@pytest.mark.parametrize("name, answer, called", NAMED, ids=[f"{name}-{called}" for name, _, called in NAMED])
def test_a_common_mistake_has_a_name(name, answer, called):
    for verdict in verdicts(name, answer):
        assert (verdict.kind, verdict.name) == ("mistake", called), (verdict.name, verdict.text)


# ---- nothing untrue ----
def twelve_by_heart(n):
    twelve = [2.0**-h for h in range(1, 9)] + [2.0 ** -(h + 0.5) for h in range(4)]
    return torch.tensor(twelve if n == 12 else [2.0 ** (-8 * h / n) for h in range(1, n + 1)])


def test_who_knows_twelve_by_heart_is_not_told_that_twelve_is_wrong():
    for verdict in verdicts("alibi_slopes", twelve_by_heart):
        assert verdict.name == "the formula for any n"
        assert "12" not in verdict.text and verdict.text.startswith("With n = ")


@pytest.mark.parametrize("small", [3e-2, 1e-3, 2e-4])
def test_a_fixed_tolerance_is_not_called_equality(small):
    def answer(scores):
        steps = [scores[i, : i + 1].flip(0).diff() for i in range(1, len(scores))]
        if all((row.abs() <= small).all() for row in steps):
            return "none"
        if any(((row - steps[-1][: len(row)]).abs() > small).any() for row in steps):
            return "absolute"
        if ((steps[-1] - steps[-1][0]).abs() <= small).all():
            return "alibi"
        return "clipped" if steps[-1][-1].abs() <= small else "rotary"

    for verdict in verdicts("which_encoding", answer):
        assert not verdict.passed and "last bit" not in verdict.text
        assert small == 3e-2 or verdict.name.startswith("a fixed tolerance")


@pytest.mark.parametrize(
    "least, most, called",
    [
        (0.99, 1.01, "one per cent allowed"),
        (0.99, 1 + 1e-5, "one per cent of turning allowed"),
        (0.999, 1.01, "one per cent of growth allowed"),
    ],
)
def test_a_per_cent_too_much_is_called_that(least, most, called):
    for verdict in verdicts(
        "untrained_rows",
        lambda start, end: (
            (F.cosine_similarity(start, end) > least) & (end.norm(dim=1) < most * start.norm(dim=1))
        ),
    ):
        assert verdict.name == called, verdict.text
