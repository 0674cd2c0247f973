"""Exercise 07 as learners answer it: in their own words, right and wrong."""

import math

import nbformat
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tutorial_lib.checks import questions
from tutorial_lib.checks.answer import collect
from tutorial_lib.checks.judge import judge
from tutorial_lib.course import exercises

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


# ---- window ----
def window_by_diagonals(weights, share):
    heads, queries, keys = weights.shape
    mass, found = torch.zeros(heads, dtype=torch.float64), torch.zeros(heads, dtype=torch.long)
    for distance in range(keys):
        mass += weights.diagonal(keys - queries - distance, 1, 2).sum(-1).double() / queries
        found[(found == 0) & (mass >= share)] = distance + 1
    return found


def window_with_scatter(weights, share):
    heads, queries, keys = weights.shape
    behind = torch.arange(queries)[:, None] + keys - queries - torch.arange(keys)
    by_distance = weights.new_zeros(heads, keys).index_add(
        1, behind.clamp(min=0).flatten(), (weights * (behind >= 0)).flatten(1))
    return torch.searchsorted((by_distance / queries).cumsum(1), torch.full((heads, 1), share,
                              dtype=weights.dtype))[:, 0] + 1


def window_of_last_columns(weights, share):
    w, mean = [], weights.mean(1)
    for head in mean:
        n = 1
        while head[-n:].sum() < share:
            n += 1
        w.append(n)
    return torch.tensor(w)


def window_of_the_strongest(weights, share):
    ordered = weights.topk(weights.size(2), -1)[0].cumsum(-1).mean(-2)
    return (ordered < share).int().sum(-1) + 1


def window_as_distance(weights, share):
    return window_by_diagonals(weights, share) - 1


RIGHT = {
    "alibi_slopes": (slopes_by_halving, slopes_with_numpy),
    "alibi_bias": (bias_by_broadcasting, bias_with_einsum, bias_of_the_first_key),
    "alibi_attention": (attention_with_offset, attention_query_by_query),
    "mirror_gap": (mirror_by_index, mirror_with_numpy),
    "attention_window": (window_by_diagonals, window_with_scatter),
}

NAMED = {
    "alibi_slopes": {plain: "the formula for any n", with_e: "natural base",
                     filled_with_odd_ones: "slopes twice", zero_based: "counted from 0"},
    "alibi_bias": {bias_from_shapes: "rows counted from 0", bias_rewards_the_past: "sign turned",
                   bias_of_an_encoder: "distance to both sides, nothing hidden",
                   bias_diagonal_too: "own key hidden"},
    "alibi_attention": {attention_bias_in_the_bracket: "bias inside of the scale",
                        attention_row_is_place: "queries counted from 0",
                        attention_never_scaled: "scores not scaled"},
    "mirror_gap": {mirror_by_transposing: "transposed", mirror_of_the_bias: "biases compared",
                   mirror_averaged: "mean, not largest"},
    "attention_window": {window_of_last_columns: "same columns for all queries",
                         window_of_the_strongest: "largest weights instead of nearest",
                         window_as_distance: "own key not counted"},
}


def places(q, k):
    return torch.arange(k.shape[2] - q.shape[2], k.shape[2]), torch.arange(k.shape[2])


def attended(q, k, v, slopes, change):
    bias = change(bias_by_broadcasting(slopes, *places(q, k)))
    return (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1) @ v


#: Wrong, and in no catalogue.
OTHER = {
    "alibi_slopes": {
        "next power of two, evenly picked": lambda n: plain(2 ** math.ceil(math.log2(n)))[
            torch.linspace(0, 2 ** math.ceil(math.log2(n)) - 1, n).long()],
        "from 1/n": lambda n: 1 / torch.arange(2, n + 2),
        "12 instead of 8": lambda n: 2.0 ** (-12 * torch.arange(1, n + 1) / n),
        "missing ones are 0": lambda n: F.pad(slopes_by_halving(n)[:2 ** (n.bit_length() - 1)],
                                              (0, n - 2 ** (n.bit_length() - 1))),
        "reversed": lambda n: slopes_by_halving(n).flip(0),
        "negative": lambda n: -slopes_by_halving(n),
        "logarithms": lambda n: slopes_by_halving(n).log2(),
        "only powers of two": lambda n: plain(n) if n & (n - 1) == 0 else 1 / 0,
    },
    "alibi_bias": {
        "logarithm of the distance": lambda m, q, k: torch.where(
            q[:, None] >= k, -m[:, None, None] * (q[:, None] - k).clamp(0).log1p().to(m.dtype), -math.inf),
        "distance limited to 3": lambda m, q, k: torch.where(
            q[:, None] >= k, -m[:, None, None] * (q[:, None] - k).clamp(max=3), -math.inf),
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
        "sigmoid": lambda q, k, v, m: (q @ k.mT / q.shape[-1] ** 0.5
                                       + bias_by_broadcasting(m, *places(q, k))).sigmoid() @ v,
        "bias on the values": lambda q, k, v, m: attention_with_offset(
            q, k, v - m[:, None, None] * torch.arange(k.shape[2])[:, None], m),
    },
    "mirror_gap": {
        "smallest": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).abs().amin((-1, -2)) + 1,
        "squares": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).square().amax((-1, -2)),
        "sum": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).abs().sum((-1, -2)),
        "first query only": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2))[:, 0].abs().amax(-1),
        "exp without a sum": lambda b: (b.exp() - b.exp().flip(-1, -2)).abs().amax((-1, -2)),
        "rolled": lambda b: (b.softmax(-1) - b.softmax(-1).roll((1, 1), (-1, -2))).abs().amax((-1, -2)),
        "diagonals": lambda b: (b.softmax(-1).diagonal(1, 1, 2).mean(-1)
                                - b.softmax(-1).diagonal(-1, 1, 2).mean(-1)).abs(),
        "per query": lambda b: (b.softmax(-1) - b.softmax(-1).flip(-1, -2)).abs().amax(-1),
    },
    "attention_window": {
        "number of keys": lambda w, s: torch.full((len(w),), w.shape[2]),
        "share of the keys": lambda w, s: torch.full((len(w),), round(s * w.shape[2])),
        "mean distance": lambda w, s: (w.mean(1) * torch.arange(w.shape[2]).flip(0)).sum(-1).round().long(),
        "sum over queries": lambda w, s: window_by_diagonals(w * w.shape[1], s),
        "first query": lambda w, s: window_by_diagonals(w[:, :1, :w.shape[2] - w.shape[1] + 1], s),
        "twice": lambda w, s: 2 * window_by_diagonals(w, s),
        "from a slope": lambda w, s: (-math.log(1 - s) / (w[:, -1, -1] - w[:, -1, -2]).abs()).ceil().long(),
        "widest head for all": lambda w, s: window_by_diagonals(w, s).max().repeat(len(w)),
    },
}


def entries(table):
    return [pytest.param(name, *entry, id=f"{name}-{getattr(entry[0], '__name__', entry[0])}")
            for name, each in table.items() for entry in (each.items() if isinstance(each, dict)
                                                          else ((one,) for one in each))]


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
    code = next(cell.source for cell in notebook.cells
                if "answer:alibi_attention" in cell.metadata.get("tags", []))
    space = {"torch": torch, "math": math}
    exec(code, space)
    for seed in SEEDS:
        assert check("alibi_attention", space["alibi_attention"], seed).name == "as it was given"
