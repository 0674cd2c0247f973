"""Exercise 06 as learners answer it: in their own words, right and wrong."""

import math

import nbformat
import pytest
import torch

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from workshop import exercises

SEEDS = (4, 50)


def check(name, answer, seed):
    question = questions.find(name)
    return judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]))


# ---- right, in another style ----
def angles_with_einsum(positions, dim, base):
    inverse = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))
    return torch.einsum("l,t->lt", positions.float(), inverse)


def angles_pair_by_pair(positions, dim, base):
    columns = [positions.to(torch.float32) / base ** (2 * t / dim) for t in range(dim // 2)]
    return torch.stack(columns, dim=1)


def rotate_by_matrices(x, angles, layout):
    d = x.shape[-1]
    order = torch.arange(d).view(-1, 2) if layout == "interleaved" else torch.arange(d).view(2, -1).T
    out = torch.zeros(x.shape)
    for t, (first, second) in enumerate(order.tolist()):
        cos, sin = torch.cos(angles[:, t]), torch.sin(angles[:, t])
        out[..., first] = cos * x[..., first] - sin * x[..., second]
        out[..., second] = sin * x[..., first] + cos * x[..., second]
    return out.to(x.dtype)


def rotate_like_llama(x, angles, layout):
    if layout == "half":
        cos, sin = (torch.cat([f, f], -1) for f in (angles.cos(), angles.sin()))
        a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return (x.float() * cos + torch.cat((-b, a), -1).float() * sin).type_as(x)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.exp(1j * angles)).flatten(-2).type_as(x)


def shift_error_with_pairs(q, k, angles, shifted):
    def e(f):
        a, b = rotate_by_matrices(q, f, "interleaved"), rotate_by_matrices(k, f, "interleaved")
        return torch.einsum("hid,hjd->hij", a, b)

    change = torch.abs(e(shifted) - e(angles)).flatten(1).max(1).values
    return change / torch.abs(e(angles)).flatten(1).max(1).values


def shift_error_by_offsets(q, k, angles, shifted):
    """From the angle between a query and a key: nothing is turned on its own."""

    def e(f):
        between = f[:, None] - f[None]
        a, b = q.unflatten(-1, (-1, 2)), k.unflatten(-1, (-1, 2))
        same = (a[:, :, None] * b[:, None]).sum(-1)
        cross = a[:, :, None, :, 0] * b[:, None, :, :, 1] - a[:, :, None, :, 1] * b[:, None, :, :, 0]
        return (same * between.cos() + cross * between.sin()).sum(-1)

    return (e(shifted) - e(angles)).abs().amax((1, 2)) / e(angles).abs().amax((1, 2))


def scores_of_one_after_the_other(q, k, cached, base):
    past, d = cached.shape[1], q.shape[2]
    place = torch.arange(past, past + q.shape[1])
    f = angles_with_einsum(place, d, base)
    q, k = rotate_like_llama(q, f, "interleaved"), rotate_like_llama(k, f, "interleaved")
    to_cache = torch.einsum("hnd,hpd->hnp", q, cached)
    return torch.cat([to_cache, torch.einsum("hnd,hmd->hnm", q, k)], 2) * d**-0.5


def scores_with_a_long_table(q, k, cached, base):
    f = angles_pair_by_pair(torch.arange(512), q.shape[-1], base)
    rows = f.narrow(0, cached.shape[-2], k.shape[-2])
    keys = torch.cat((cached, rotate_by_matrices(k, rows, "interleaved")), 1)
    q = rotate_by_matrices(q, rows, "interleaved") / math.sqrt(q.shape[-1])
    return torch.matmul(q, keys.transpose(1, 2))


def sort_like_the_converter(weight, head_dim, rotary_dim, target):
    heads = []
    for head in weight.reshape(-1, head_dim, *weight.shape[1:]):
        turned, rest = head[:rotary_dim], head[rotary_dim:]
        if target == "half":
            turned = torch.cat([turned[::2], turned[1::2]])
        else:
            turned = torch.stack(turned.chunk(2), 1).flatten(0, 1)
        heads += [turned, rest]
    return torch.cat(heads)


def sort_row_by_row(weight, head_dim, rotary_dim, target):
    out = weight.clone()
    for start in range(0, len(weight), head_dim):
        for t in range(rotary_dim // 2):
            pair, halves = (start + 2 * t, start + 2 * t + 1), (start + t, start + t + rotary_dim // 2)
            old, new = (pair, halves) if target == "half" else (halves, pair)
            out[new[0]], out[new[1]] = weight[old[0]], weight[old[1]]
    return out


RIGHT = {
    "rope_angles": (angles_with_einsum, angles_pair_by_pair),
    "rope_rotate": (rotate_by_matrices, rotate_like_llama),
    "rope_shift_error": (shift_error_with_pairs, shift_error_by_offsets),
    "cached_scores": (scores_of_one_after_the_other, scores_with_a_long_table),
    "rope_sort_rows": (sort_like_the_converter, sort_row_by_row),
}


@pytest.mark.parametrize("name, answer", [(name, answer) for name, both in RIGHT.items() for answer in both])
def test_another_style_is_right(name, answer):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert verdict.kind == "right", verdict.text


# ---- wrong, and known ----
def angles_t_over_d(positions, dim, base):
    return torch.outer(positions.float(), base ** -(torch.arange(dim // 2) / dim))


def angles_of_rows(positions, dim, base):
    return angles_pair_by_pair(torch.arange(positions.shape[0]), dim, base)


def angles_without_log(positions, dim, base):
    return positions[:, None] * torch.exp(torch.arange(0, dim, 2) * -1 / dim)


def angles_of_neox(positions, dim, base):
    f = angles_with_einsum(positions, dim, base)
    return torch.cat((f, f), dim=-1)


def rotate_backwards(x, angles, layout):
    return rotate_by_matrices(x, 2 * math.pi - angles, layout)


def rotate_always_like_hugging_face(x, angles, layout):
    return rotate_like_llama(x, angles, "half")


def rotate_and_leave_sorted(x, angles, layout):
    turned = rotate_by_matrices(x, angles, layout)
    return turned if layout == "half" else torch.cat([turned[..., ::2], turned[..., 1::2]], -1)


def rotate_in_the_dtype_of_x(x, angles, layout):
    return rotate_by_matrices(x, angles.to(x.dtype).to(torch.float32), layout)


def rotate_with_the_new_a(x, angles, layout):
    a, b = (x[..., ::2], x[..., 1::2]) if layout == "interleaved" else x.float().chunk(2, -1)
    a = a * torch.cos(angles) - b * torch.sin(angles)
    b = b * torch.cos(angles) + a * torch.sin(angles)
    pairs = torch.stack([a, b], -1)
    return (pairs.flatten(-2) if layout == "interleaved" else pairs.transpose(-1, -2).flatten(-2)).to(x.dtype)


def shift_of_queries(q, k, angles, shifted):
    keys = rotate_by_matrices(k, angles, "interleaved").transpose(1, 2)
    old, new = (rotate_by_matrices(q, f, "interleaved") @ keys for f in (angles, shifted))
    return (old - new).abs().flatten(1).max(-1).values / old.abs().flatten(1).max(-1).values


def shift_against_each_other(q, k, angles, shifted):
    old, new = (
        rotate_by_matrices(q, f, "interleaved") @ rotate_by_matrices(k, -f, "interleaved").mT
        for f in (angles, shifted)
    )
    return (old - new).abs().amax((1, 2)) / old.abs().amax((1, 2))


def shift_as_it_is(q, k, angles, shifted):
    e = [
        rotate_like_llama(q, f, "interleaved") @ rotate_like_llama(k, f, "interleaved").mT
        for f in (angles, shifted)
    ]
    return torch.stack([(one - two).abs().max() for one, two in zip(*e, strict=True)])


def shift_on_the_diagonal(q, k, angles, shifted):
    old, new = (
        torch.einsum(
            "hld,hld->hl", rotate_like_llama(q, f, "interleaved"), rotate_like_llama(k, f, "interleaved")
        )
        for f in (angles, shifted)
    )
    return (old - new).abs().amax(1) / old.abs().amax(1)


def given_scores(q, k, cached, base, first=0, dtype=None, again=True):
    d, past = q.shape[-1], cached.shape[-2]
    dtype = q.dtype if dtype is None else dtype

    def turn(x, positions):
        angle = angles_with_einsum(positions, d, base).to(dtype)
        a, b = x[..., 0::2], x[..., 1::2]
        pair = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
        return torch.stack(pair, -1).flatten(-2).to(x.dtype)

    keys = torch.cat([cached, k], dim=-2)
    turned = turn(keys, torch.arange(keys.shape[-2]))
    if not again:
        turned = torch.cat([cached, turned[..., past:, :]], -2)
    return turn(q, torch.arange(q.shape[-2]) + first * past) @ turned.mT / math.sqrt(d)


def scores_still_rounded(q, k, cached, base):
    return given_scores(q, k, cached, base, first=1, again=False)


def scores_with_the_cache_turned_again(q, k, cached, base):
    return given_scores(q, k, cached, base, first=1, dtype=torch.float32)


def scores_of_row_zero(q, k, cached, base):
    return given_scores(q, k, cached, base, dtype=torch.float32, again=False)


def scores_of_the_length(q, k, cached, base):
    f = angles_with_einsum(torch.full((q.shape[1],), cached.shape[1] + q.shape[1] - 1), q.shape[-1], base)
    keys = torch.cat([cached, rotate_like_llama(k, f, "interleaved")], 1)
    return rotate_like_llama(q, f, "interleaved") @ keys.mT / q.shape[-1] ** 0.5


def scores_with_all_keys_late(q, k, cached, base):
    q_angles, k_angles = (
        angles_with_einsum(torch.arange(n) + cached.shape[1], q.shape[2], base)
        for n in (q.shape[1], cached.shape[1] + k.shape[1])
    )
    keys = rotate_like_llama(torch.cat([cached, k], 1), k_angles, "interleaved")
    return rotate_like_llama(q, q_angles, "interleaved") @ keys.mT / q.shape[2] ** 0.5


def sort_back(weight, head_dim, rotary_dim, target):
    return sort_like_the_converter(weight, head_dim, rotary_dim, {"half": "interleaved"}.get(target, "half"))


def sort_all_rows_at_once(weight, head_dim, rotary_dim, target):
    return sort_like_the_converter(weight, len(weight), len(weight), target)


def sort_whole_heads(weight, head_dim, rotary_dim, target):
    return sort_row_by_row(weight, head_dim, head_dim, target)


def sort_and_forget_the_rest(weight, head_dim, rotary_dim, target):
    return torch.cat(
        [sort_row_by_row(head, head_dim, rotary_dim, target)[:rotary_dim] for head in weight.split(head_dim)]
    )


KNOWN = [
    ("rope_angles", angles_t_over_d, "exponent counts pairs, not channels"),
    ("rope_angles", angles_of_rows, "row number instead of position"),
    ("rope_angles", angles_without_log, "e in place of the base"),
    ("rope_angles", angles_of_neox, "a column for each channel, in halves"),
    ("rope_rotate", rotate_backwards, "clockwise"),
    ("rope_rotate", rotate_always_like_hugging_face, "always half"),
    ("rope_rotate", rotate_and_leave_sorted, "pairs not put back"),
    ("rope_rotate", rotate_in_the_dtype_of_x, "angles rounded"),
    ("rope_rotate", rotate_with_the_new_a, "the new first channel used for the second"),
    ("rope_shift_error", shift_of_queries, "only the queries move"),
    ("rope_shift_error", shift_against_each_other, "keys turned backwards"),
    ("rope_shift_error", shift_as_it_is, "not a share"),
    ("rope_shift_error", shift_on_the_diagonal, "each query with its own key only"),
    ("cached_scores", given_scores, "as given"),
    ("cached_scores", scores_still_rounded, "angles in the dtype of q"),
    ("cached_scores", scores_with_the_cache_turned_again, "the cache turned twice"),
    ("cached_scores", scores_of_row_zero, "queries counted from 0"),
    ("cached_scores", scores_of_the_length, "all at the last position"),
    ("cached_scores", scores_with_all_keys_late, "the cache turned twice and queries counted from 0"),
    ("rope_sort_rows", sort_back, "the other direction"),
    ("rope_sort_rows", sort_all_rows_at_once, "across the heads"),
    ("rope_sort_rows", sort_whole_heads, "unturned channels sorted, too"),
    ("rope_sort_rows", sort_and_forget_the_rest, "unturned channels dropped"),
]


@pytest.mark.parametrize("name, answer, mistake", KNOWN)
def test_a_known_mistake_in_other_words_has_its_name(name, answer, mistake):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert (verdict.kind, verdict.name) == ("mistake", mistake), verdict.text


# ---- wrong, and in no catalogue ----
def angles_changed(change=lambda f: f, place=lambda p: p, width=lambda d: d, root=lambda base: base):
    def answer(positions, dim, base):
        theta = root(base) ** (-torch.arange(0, dim, 2).float() / width(dim))
        return change(place(positions)[:, None].float() * theta)

    return answer


def rotate_changed(before=lambda x: x, angles=lambda f: f, after=lambda x: x):
    return lambda x, f, layout: after(rotate_like_llama(before(x), angles(f), layout))


def share(new, old):
    return (new - old).abs().amax((1, 2)) / old.abs().amax((1, 2))


def shift_changed(before=lambda x: x, end=share, old=lambda f: f, new=lambda f: f):
    def answer(q, k, angles, shifted):
        e = [
            rotate_like_llama(before(q), f, "interleaved") @ rotate_like_llama(k, f, "interleaved").mT
            for f in (new(shifted), old(angles))
        ]
        return end(*e)

    return answer


def cached_changed(q=lambda q: q, k=lambda k: k, cached=lambda c: c, base=lambda b: b, after=lambda e: e):
    return lambda *given: after(
        scores_of_one_after_the_other(
            *(change(one) for change, one in zip((q, k, cached, base), given, strict=True))
        )
    )


def sort_changed(before=lambda w: w, after=lambda w: w, rotary=lambda r: r, head=lambda d: d):
    return lambda weight, head_dim, rotary_dim, target: after(
        sort_like_the_converter(before(weight), head(head_dim), rotary(rotary_dim), target)
    )


UNKNOWN = {
    "rope_angles": {
        "two positions per step": angles_changed(place=lambda p: 2 * p),
        "whole frequencies": angles_changed(change=torch.floor),
        "pairs in reverse": angles_changed(change=lambda f: f.flip(-1)),
        "one channel too many": angles_changed(width=lambda d: d + 1),
        "cosine of the angle": angles_changed(change=torch.cos),
        "counted from the end": angles_changed(place=lambda p: p.max() - p),
        "base's fourth root": angles_changed(root=lambda base: base**0.25),
        "logarithm of the position": angles_changed(place=lambda p: (p + 1).float().log()),
        "clipped at 100": angles_changed(place=lambda p: p.clamp(max=100)),
    },
    "rope_rotate": {
        "a quarter turn more": rotate_changed(angles=lambda f: f + math.pi / 2),
        "half of the angle": rotate_changed(angles=lambda f: f / 2),
        "speeds in reverse": rotate_changed(angles=lambda f: f.flip(-1)),
        "tokens in reverse": rotate_changed(angles=lambda f: f.flip(0) if len(f) > 1 else f + 1),
        "normalised": rotate_changed(after=lambda x: x / x.norm(dim=-1, keepdim=True)),
        "added to x": lambda x, f, layout: x + rotate_like_llama(x, f, layout),
        "only the first pair": rotate_changed(angles=lambda f: f * (torch.arange(f.shape[-1]) == 0)),
        "float32 always": rotate_changed(before=lambda x: x.float()),
        "channels shifted": rotate_changed(after=lambda x: x.roll(1, -1)),
    },
    "rope_shift_error": {
        "squared": shift_changed(end=lambda n, o: (n - o).square().amax((1, 2)) / o.square().amax((1, 2))),
        "norms": shift_changed(end=lambda n, o: (n - o).flatten(1).norm(dim=1) / o.flatten(1).norm(dim=1)),
        "last query": shift_changed(end=lambda n, o: (n - o)[:, -1].abs().amax(1) / o.abs().amax((1, 2))),
        "share of the mean score": shift_changed(
            end=lambda n, o: (n - o).abs().amax((1, 2)) / o.abs().mean((1, 2))
        ),
        "per query": shift_changed(end=lambda n, o: (n - o).abs().amax(2) / o.abs().amax(2)),
        "against no turn": shift_changed(old=torch.zeros_like),
        "twice shifted": shift_changed(new=lambda f: f * 1.5),
        "normalised queries": shift_changed(
            before=lambda q: q / q.norm(dim=-1, keepdim=True), end=lambda n, o: (n - o).abs().amax((1, 2))
        ),
    },
    "cached_scores": {
        "mask": cached_changed(after=lambda e: e.tril(e.shape[2] - e.shape[1] - 1)),
        "weights": cached_changed(after=lambda e: e.softmax(-1)),
        "other base": cached_changed(base=lambda b: 10_000.0),
        "cache reversed": cached_changed(cached=lambda c: c.flip(1)),
        "no cache": cached_changed(cached=torch.zeros_like),
        "heads mixed": cached_changed(k=lambda k: k.flip(0)),
        "divided by d": cached_changed(after=lambda e: e / 2),
        "new tokens reversed": cached_changed(q=lambda q: q.flip(1) * 1.01),
        "float32 always": cached_changed(after=lambda e: e.float()),
    },
    "rope_sort_rows": {
        "rows in reverse": sort_changed(after=lambda w: w.flip(0)),
        "one pair short": sort_changed(rotary=lambda r: r - 2),
        "columns reversed": sort_changed(after=lambda w: w.flip(-1)),
        "heads in reverse": lambda w, d, r, target: torch.cat(
            sort_like_the_converter(w, d, r, target).split(d)[::-1]
        ),
        "float32": sort_changed(before=lambda w: w.float() * 1.001),
        "signs of the second channels": lambda w, d, r, target: (
            sort_like_the_converter(w, d, r, target)
            * torch.where(torch.arange(len(w)) % 2 == 0, 1, -1).view(-1, *[1] * (w.ndim - 1)).to(w.dtype)
        ),
        "rotated rows": sort_changed(after=lambda w: w.roll(1, 0)),
        "zeros": sort_changed(after=torch.zeros_like),
    },
}


@pytest.mark.parametrize("name, what", [(name, what) for name, wrong in UNKNOWN.items() for what in wrong])
def test_an_unknown_mistake_is_refused(name, what):
    for seed in SEEDS:
        verdict = check(name, UNKNOWN[name][what], seed)
        assert not verdict.passed, f"{verdict.kind}: {verdict.text}"
        assert verdict.kind != "mistake", f"it is called {verdict.name!r}"


# ---- the notebook ----
def test_what_is_given_for_repair_has_its_name():
    notebook = nbformat.read(exercises.path("ex06_rope", "exercises"), 4)
    code = next(cell.source for cell in notebook.cells if "def cached_scores(" in cell.source)
    space = {
        "torch": torch,
        "math": math,
        "rope_angles": angles_with_einsum,
        "rope_rotate": rotate_by_matrices,
    }
    exec(code, space)
    verdict = check("cached_scores", space["cached_scores"], 3)
    assert verdict.name == "as given"


@pytest.mark.parametrize("question", questions.load("06"), ids=lambda question: question.name)
def test_no_variant_is_right_because_it_raises(question):
    for variant in question.variants:
        outcomes = collect(variant.answer, [case.args for case in question.cases(2)])
        assert {outcome["kind"] for outcome in outcomes} == {"value"}, variant.name
