"""Exercise 07 as learners answer it: in their own words, right and wrong."""

import math

import nbformat
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from tutorial_lib.encodings import XPos
from workshop import exercises

SEEDS = (4, 50)


def check(name, answer, seed):
    question = questions.find(name)
    return judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]))


# ---- slopes ----
def slopes_by_halving(n):
    size, found = 2 ** (n.bit_length() - 1), []
    for h in range(size):
        found.append(256 ** (-(h + 1) / size))
    h = 0
    while len(found) < n:  # every second one of twice as many
        found.append(256 ** (-(2 * h + 1) / (2 * size)))
        h += 1
    return torch.tensor(found, dtype=torch.float32)


def slopes_with_numpy(n):
    low = 2 ** int(np.floor(np.log2(n)))
    first = 2.0 ** (-8 * np.arange(1, low + 1) / low)
    second = 2.0 ** (-4 * np.arange(1, 2 * low + 1) / low)
    return np.concatenate([first, second[::2][: n - low]]).astype(np.float32)


def plain(n):
    return torch.pow(2, -8 / n * torch.arange(1, n + 1))


def with_e(n):
    return torch.exp(torch.arange(1, n + 1) * (-8 / n))


def filled_with_odd_ones(n):
    low = 2 ** int(math.log2(n))
    return torch.cat([plain(low), plain(2 * low)[1::2][: n - low]])


def zero_based(n):
    return (2 ** (-8 / n)) ** torch.arange(n)


# ---- bias ----
def bias_by_broadcasting(slopes, q, k):
    distance = (q.view(1, -1, 1) - k.view(1, 1, -1)).to(slopes.dtype)
    return torch.where(distance >= 0, -distance * slopes.view(-1, 1, 1), torch.full_like(distance, -math.inf))


def bias_with_einsum(slopes, q, k):
    offsets = (k[None] - q[:, None]).to(slopes.dtype)
    mask = torch.zeros(len(q), len(k), dtype=slopes.dtype)
    mask[k[None] > q[:, None]] = float("-inf")
    return torch.einsum("h,qk->hqk", slopes, offsets) + mask


def bias_of_the_first_key(slopes, q, k):
    """As in the released code, from the first key on."""
    row = slopes[:, None, None] * (k - k[0])
    return row.repeat(1, len(q), 1).masked_fill(q[:, None] < k, torch.finfo(slopes.dtype).min)


def bias_from_shapes(slopes, q, k):
    i, j = torch.meshgrid(torch.arange(q.numel()), torch.arange(k.numel()), indexing="ij")
    return torch.where(j <= i, -(i - j) * slopes[:, None, None], -math.inf).to(slopes.dtype)


def bias_rewards_the_past(slopes, q, k):
    d = q[:, None] - k[None, :]
    return torch.einsum("h,qk->hqk", slopes, d.to(slopes.dtype)).masked_fill(d < 0, -torch.inf)


def bias_of_an_encoder(slopes, q, k):
    return torch.einsum("h,qk->hqk", -slopes, (q[:, None] - k).abs().to(slopes.dtype))


def bias_diagonal_too(slopes, q, k):
    d = q[:, None] - k
    return bias_by_broadcasting(slopes, q, k).masked_fill(d == 0, -math.inf)


# ---- attention ----
def attention_with_offset(q, k, v, slopes):
    past = k.size(2) - q.size(2)
    rows = torch.arange(q.size(2)) + past
    bias = bias_by_broadcasting(slopes, rows, torch.arange(k.size(2)))
    weights = F.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) * q.size(-1) ** -0.5 + bias, dim=-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v)


def attention_query_by_query(q, k, v, slopes):
    out, past = torch.empty_like(q), k.shape[2] - q.shape[2]
    for n in range(q.shape[2]):
        seen = past + n + 1
        scores = (k[:, :, :seen] @ q[:, :, n, :, None])[..., 0] / q.shape[-1] ** 0.5
        scores = scores + slopes[:, None] * torch.arange(seen)
        out[:, :, n] = (scores.softmax(-1)[..., None] * v[:, :, :seen]).sum(2)
    return out


def attention_bias_in_the_bracket(q, k, v, slopes):
    past = k.size(2) - q.size(2)
    bias = bias_by_broadcasting(slopes, torch.arange(q.size(2)) + past, torch.arange(k.size(2)))
    return F.softmax((q @ k.transpose(2, 3) + bias) / q.size(-1) ** 0.5, -1) @ v


def attention_row_is_place(q, k, v, slopes):
    bias = bias_by_broadcasting(slopes, torch.arange(q.size(2)), torch.arange(k.size(2)))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(q.size(0), -1, -1, -1))


def attention_never_scaled(q, k, v, slopes):
    return attention_with_offset(q * q.size(-1) ** 0.5, k, v, slopes)


# ---- mirror ----
def mirror_by_index(bias):
    order = torch.arange(bias.size(1) - 1, -1, -1)
    a = torch.softmax(bias, 2)
    return (a - a[:, order][:, :, order]).abs().reshape(len(bias), -1).max(-1)[0]


def mirror_with_numpy(bias):
    e = np.exp(bias.numpy())
    a = e / e.sum(2, keepdims=True)
    return np.abs(a - a[:, ::-1, ::-1]).max(axis=(1, 2))


def mirror_by_transposing(bias):
    a = torch.softmax(bias, 2)
    return torch.amax(torch.abs(a - a.permute(0, 2, 1)), dim=[1, 2])


def mirror_of_the_bias(bias):
    order = torch.arange(bias.size(1) - 1, -1, -1)
    return torch.amax(torch.abs(bias - bias[:, order][:, :, order]), dim=[1, 2])


def mirror_averaged(bias):
    a = torch.softmax(bias, 2)
    return torch.abs(a - a.rot90(2, (1, 2))).flatten(1).mean(1)


# ---- xPos ----
def xpos_changed(fade=lambda z, r: z**r, turn=1, first=0, share=lambda x, gamma: (x + gamma) / (1 + gamma)):
    """One pair of channels after the other, by offsets, with one of the steps exchanged."""

    def answer(q, k, q_positions, k_positions, base, gamma, scale_base):
        r = (q_positions[:, None] - k_positions).double()
        d, out = q.shape[-1], 0
        for t in range(d // 2):
            a, b = q[..., 2 * t].double(), q[..., 2 * t + 1].double()
            x, y = k[..., 2 * t].double(), k[..., 2 * t + 1].double()
            same = a[..., None] * x[:, None] + b[..., None] * y[:, None]
            cross = a[..., None] * y[:, None] - b[..., None] * x[:, None]
            angle = turn * r * base ** (-2 * t / d)
            z = torch.tensor(share((t + first) / (d / 2), gamma)).double()
            out = out + fade(z, r / scale_base) * (same * angle.cos() + cross * angle.sin())
        return torch.where(r < 0, -torch.inf, out / d**0.5).float()

    return answer


def xpos_pair_by_pair(*args):
    return xpos_changed()(*args)


def _sizes(x, places, base, gamma, scale_base, sign):
    d = x.shape[-1]
    t = np.arange(d // 2)
    z = ((2 * t / d + gamma) / (1 + gamma)) ** (sign * places[:, None] / scale_base)
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * z * np.exp(1j * places[:, None] * base ** (-2 * t / d))
    return np.concatenate([turned.real, turned.imag], -1)


def xpos_with_numpy(q, k, q_positions, k_positions, base, gamma, scale_base):
    last = int(q_positions.max())
    a, b = (
        _sizes(x.double().numpy(), (p - last).double().numpy(), base, gamma, scale_base, sign)
        for x, p, sign in ((q, q_positions, 1), (k, k_positions, -1))
    )
    e = torch.from_numpy(a @ b.swapaxes(1, 2) / q.shape[-1] ** 0.5).float()
    return e.masked_fill(k_positions > q_positions[:, None], -torch.inf)


def xpos_of_itself(q, k, q_positions, k_positions, base, gamma, scale_base):
    """Each side by its own position, in float32: right near the beginning."""
    t = torch.arange(q.shape[-1] // 2)
    zeta = (2 * t / q.shape[-1] + gamma) / (1 + gamma)

    def sized(x, p, sign):
        f = p[:, None] * base ** (-2 * t / x.shape[-1])
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = torch.stack([a * f.cos() - b * f.sin(), a * f.sin() + b * f.cos()], -1)
        return (pairs * (zeta ** (sign * p[:, None] / scale_base))[..., None]).flatten(-2)

    scores = sized(q, q_positions, 1) @ sized(k, k_positions, -1).mT / q.shape[-1] ** 0.5
    return scores.masked_fill(k_positions > q_positions[:, None], -math.inf)


RIGHT = {
    "alibi_slopes": (slopes_by_halving, slopes_with_numpy),
    "alibi_bias": (bias_by_broadcasting, bias_with_einsum, bias_of_the_first_key),
    "alibi_attention": (attention_with_offset, attention_query_by_query),
    "mirror_gap": (mirror_by_index, mirror_with_numpy),
    "xpos_scores": (xpos_pair_by_pair, xpos_with_numpy),
}

NAMED = {
    "alibi_slopes": {
        plain: "the formula for any n",
        with_e: "natural base",
        filled_with_odd_ones: "slopes twice",
        zero_based: "counted from 0",
    },
    "alibi_bias": {
        bias_from_shapes: "rows counted from 0",
        bias_rewards_the_past: "sign turned",
        bias_of_an_encoder: "distance to both sides, nothing hidden",
        bias_diagonal_too: "own key hidden",
    },
    "alibi_attention": {
        attention_bias_in_the_bracket: "bias inside of the scale",
        attention_row_is_place: "queries counted from 0",
        attention_never_scaled: "scores not scaled",
    },
    "mirror_gap": {
        mirror_by_transposing: "transposed",
        mirror_of_the_bias: "biases compared",
        mirror_averaged: "mean, not largest",
    },
    "xpos_scores": {
        xpos_changed(fade=lambda z, r: 1 + 0 * z * r): "no fading",
        xpos_changed(fade=lambda z, r: z**-r): "growing with the distance",
        xpos_changed(first=1): "pairs counted from 1",
        xpos_changed(turn=0): "not turned",
        xpos_changed(share=lambda x, gamma: x + gamma): "not divided by 1 + γ",
        xpos_of_itself: "sizes by absolute positions",
    },
}


def places(q, k):
    return torch.arange(k.shape[2] - q.shape[2], k.shape[2]), torch.arange(k.shape[2])


def attended(q, k, v, slopes, change):
    bias = change(bias_by_broadcasting(slopes, *places(q, k)))
    return (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1) @ v


#: Wrong, and in no catalogue.
OTHER = {
    "alibi_slopes": {
        "from 1/n": lambda n: 1 / torch.arange(2, n + 2),
        "12 instead of 8": lambda n: 2.0 ** (-12 * torch.arange(1, n + 1) / n),
        "reversed": lambda n: slopes_by_halving(n).flip(0),
        "negative": lambda n: -slopes_by_halving(n),
        "logarithms": lambda n: slopes_by_halving(n).log2(),
        "only powers of two": lambda n: plain(n) if n & (n - 1) == 0 else 1 / 0,
    },
    "alibi_bias": {
        "logarithm of the distance": lambda m, q, k: torch.where(
            q[:, None] >= k, -m[:, None, None] * (q[:, None] - k).clamp(0).log1p().to(m.dtype), -math.inf
        ),
        "distance limited to 3": lambda m, q, k: torch.where(
            q[:, None] >= k, -m[:, None, None] * (q[:, None] - k).clamp(max=3), -math.inf
        ),
        "slopes in reverse order": lambda m, q, k: bias_by_broadcasting(m.flip(0), q, k),
        "half of it": lambda m, q, k: bias_by_broadcasting(m / 2, q, k),
        "constant per column": lambda m, q, k: bias_by_broadcasting(m, q, k) + torch.arange(len(k)) % 3,
        "relative to the middle": lambda m, q, k: bias_by_broadcasting(m, q, k + k[len(k) // 2]),
        "one more for the future": lambda m, q, k: bias_by_broadcasting(m, q + 1, k),
        "float32 always": lambda m, q, k: bias_by_broadcasting(m, q, k).half(),
    },
    "alibi_attention": {
        "bias twice": lambda *x: attended(*x, lambda b: 2 * b),
        "slopes in reverse order": lambda q, k, v, m: attention_with_offset(q, k, v, m.flip(0)),
        "one slope": lambda q, k, v, m: attention_with_offset(q, k, v, m.mean().expand(len(m))),
        "values averaged over all": lambda q, k, v, m: v.mean(2, keepdim=True).expand_as(q),
        "keys for values": lambda q, k, v, m: attention_with_offset(q, k, k, m),
        "last query only": lambda q, k, v, m: attention_with_offset(q, k, v, m)[:, :, -1:].expand_as(q),
        "sigmoid": lambda q, k, v, m: (
            (q @ k.mT / q.shape[-1] ** 0.5 + bias_by_broadcasting(m, *places(q, k))).sigmoid() @ v
        ),
        "bias on the values": lambda q, k, v, m: attention_with_offset(
            q, k, v - m[:, None, None] * torch.arange(k.shape[2])[:, None], m
        ),
    },
    "mirror_gap": {
        "smallest": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).abs().amin((-1, -2)) + 1,
        "squares": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).square().amax((-1, -2)),
        "sum": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).abs().sum((-1, -2)),
        "first query only": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2))[:, 0].abs().amax(-1),
        "exp without a sum": lambda b: (b.exp() - b.exp().flip(-1, -2)).abs().amax((-1, -2)),
        "rolled": lambda b: (b.softmax(-1) - b.softmax(-1).roll((1, 1), (-1, -2))).abs().amax((-1, -2)),
        "diagonals": lambda b: (
            b.softmax(-1).diagonal(1, 1, 2).mean(-1) - b.softmax(-1).diagonal(-1, 1, 2).mean(-1)
        ).abs(),
        "per query": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).abs().amax(-1),
    },
    "xpos_scores": {
        "one slope for all": xpos_changed(fade=lambda z, r: 0.6**r + 0 * z),
        "linear": xpos_changed(fade=lambda z, r: 1 - (1 - z) * r),
        "faded twice": xpos_changed(fade=lambda z, r: z ** (2 * r)),
        "γ as a factor": xpos_changed(share=lambda x, gamma: (x * gamma + 0.4) / 1.4),
        "root of ζ": xpos_changed(fade=lambda z, r: z ** (r / 2)),
        "half as fast": xpos_changed(turn=0.5),
        "weights": lambda *x: xpos_pair_by_pair(*x).softmax(-1),
        "whole steps": xpos_changed(fade=lambda z, r: z ** r.floor()),
    },
}


def entries(table):
    return [
        pytest.param(name, *entry, id=f"{name}-{getattr(entry[0], '__name__', entry[0])}")
        for name, each in table.items()
        for entry in (each.items() if isinstance(each, dict) else ((one,) for one in each))
    ]


@pytest.mark.parametrize("name, answer", entries(RIGHT))
def test_a_right_answer_passes_in_any_style(name, answer):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert verdict.passed, verdict.text


@pytest.mark.parametrize("name, answer, mistake", entries(NAMED))
def test_a_misconception_is_recognised_in_other_words(name, answer, mistake):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert (verdict.passed, verdict.kind, verdict.name) == (False, "mistake", mistake), verdict.text


@pytest.mark.parametrize("name, what, answer", entries(OTHER))
def test_a_mistake_without_a_name_is_refused_and_not_misnamed(name, what, answer):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert not verdict.passed and verdict.kind != "mistake", (verdict.kind, verdict.name)
        assert verdict.text


def test_a_constant_per_query_is_accepted_and_said():
    """The positive form of the released code passes, and the learner reads why."""
    verdict = check("alibi_bias", bias_of_the_first_key, 3)
    assert verdict.kind == "equivalent" and "constant per query" in verdict.text


def test_a_constant_per_key_is_no_such_constant():
    def per_key(slopes, q, k):
        return bias_by_broadcasting(slopes, q, k) + 0.01 * k

    assert not check("alibi_bias", per_key, 3).passed


def test_the_broken_code_that_students_get_is_named():
    notebook = nbformat.read(exercises.path("ex07_alibi", "exercises"), as_version=4)
    code = next(
        cell.source for cell in notebook.cells if "answer:alibi_attention" in cell.metadata.get("tags", [])
    )
    space = {"torch": torch, "math": math}
    exec(code, space)
    for seed in SEEDS:
        assert check("alibi_attention", space["alibi_attention"], seed).name == "as it was given"


def test_xpos_agrees_with_the_library():
    question = questions.find("xpos_scores")
    for case in question.cases(3):
        q, k, i, j, base, gamma, scale_base = case.args
        if j.max() - i.min() > 400:
            continue  # for the library that is too far, and it says so
        encoding = XPos(q.shape[-1], base=base, gamma=gamma, scale_base=scale_base).double()
        a, b = encoding.rotate(q[None].double(), k[None].double(), i, j)
        ours = (a @ b.mT)[0] / q.shape[-1] ** 0.5
        seen = (j <= i[:, None]).expand(len(q), -1, -1)
        theirs = question.reference(*case.args)[seen].double()
        torch.testing.assert_close(theirs, ours[seen], rtol=1e-4, atol=1e-5)
