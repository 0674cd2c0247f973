"""Exercise 03: answers as learners write them, right and wrong, in other words than the catalogue's."""

import math

import nbformat
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from workshop import exercises

SEEDS = (4, 51, 600)


def verdicts(name, answer):
    question = questions.find(name)
    for seed in SEEDS:
        inputs = [case.args for case in question.cases(seed)]
        yield judge(question, seed, collect(answer, inputs, question.seconds))


def answers(table):
    return [pytest.param(name, answer, id=f"{name}-{answer.__name__}") for name, answer in table]


# ---- right, in other ways ----


def columns_of_texts(words, rows):
    positions = torch.tensor([rows - 1, 0, 4])
    return torch.stack([torch.tensor([5, 5, words - 1]), torch.tensor([0, words - 1, 0])]), positions


def as_numpy(words, rows):
    return np.array([[words - 1, 3, 3, 1], [2, 0, 1, 3]]), np.array([rows - 1, 2, 0, 1])


def counting_up(words, rows):
    return torch.tensor([[2, words - 1, 2, 0], [1, 0, 3, words - 1]]), torch.arange(4)


def a_single_text(words, rows):
    return [[1, words - 1, 1]], [rows - 1, 4, 0]


def never_twice(words, rows):
    return [[1, words - 1, 0], [words - 1, 1, 2]], [rows - 1, 4, 0]


def without_the_end(words, rows):
    return [[1, words - 1, 1], [0, 1, 2]], [rows - 2, 4, 0]


def beyond_the_end(words, rows):
    return [[1, words, 1], [0, 1, 2]], [rows - 1, 4, 0]


def middle_of_the_tables(words, rows):
    return [[3, 4, 3], [2, 3, 1]], [6, 3, 5]


def nothing_but_zeros(words, rows):
    return [[0, 0], [0, 0]], [0, 0]


def a_random_test(words, rows):
    g = torch.Generator().manual_seed(words * rows)
    return torch.randint(1, words - 1, (2, 4), generator=g), torch.randperm(rows - 2, generator=g)[:4] + 1


def similarity_flat(E, P):
    v, p = torch.cartesian_prod(torch.arange(len(E)), torch.arange(len(P))).T
    sums = E[v] + P[p]
    return tuple(nn.CosineSimilarity()(sums, part).mean() for part in (E[v], P[p]))


def similarity_numpy(E, P):
    E, P = E.double().numpy(), P.double().numpy()
    sums = E[:, None, :] + P[None, :, :]
    size = np.linalg.norm(sums, axis=2)
    first = (sums * E[:, None]).sum(2) / size / np.linalg.norm(E, axis=1)[:, None]
    second = (sums * P).sum(2) / size / np.linalg.norm(P, axis=1)
    return [first.mean(), second.mean()]


def untrained_by_unit_rows(start, end):
    unit = F.normalize(start, dim=1), F.normalize(end, dim=1)
    return ((unit[0] - unit[1]).norm(dim=1) < 0.04) & ~(end.norm(dim=1) > 1.001 * start.norm(dim=1))


def untrained_by_quotients(start, end):
    c = end / start
    return (c.amax(1) - c.amin(1) < 1e-3) & (c.mean(1) > 0) & (c.mean(1) < 1 + 1e-4)


def longer_by_cat(P, rows, way):
    if way == "copy":
        while len(P) < rows:
            P = torch.cat([P, P]) if len(P) * 2 <= rows else torch.cat([P, P[: rows - len(P)]])
        return P
    weights = F.interpolate(torch.eye(len(P))[None], size=rows, mode="linear", align_corners=True)[0]
    return weights.T @ P


def longer_by_numpy(P, rows, way):
    if way == "copy":
        return np.resize(P.numpy(), (rows, P.shape[1]))
    at = np.linspace(0, len(P) - 1, rows)
    return np.stack([np.interp(at, np.arange(len(P)), column) for column in P.T.numpy()], 1)


def grid_by_two_lines(P, old, new):
    grid = P[1:].T.reshape(-1, *old)
    wide = F.interpolate(grid, size=new[1], mode="linear", align_corners=True)
    high = F.interpolate(wide.transpose(1, 2), size=new[0], mode="linear", align_corners=True)
    return torch.cat([P[:1], high.permute(2, 1, 0).flatten(0, 1)])


def grid_by_sampling(P, old, new):
    y, x = torch.meshgrid(torch.linspace(-1, 1, new[0]), torch.linspace(-1, 1, new[1]), indexing="ij")
    image = P[1:].T.reshape(1, -1, *old)
    out = F.grid_sample(image, torch.stack([x, y], -1)[None], align_corners=True)
    return torch.vstack([P[0], out[0].reshape(P.shape[1], -1).T])


RIGHT = answers(
    [
        ("lookup_test", columns_of_texts),
        ("lookup_test", as_numpy),
        ("sum_similarity", similarity_flat),
        ("sum_similarity", similarity_numpy),
        ("untrained_rows", untrained_by_unit_rows),
        ("longer_table", longer_by_cat),
        ("longer_table", longer_by_numpy),
        ("resize_grid", grid_by_two_lines),
        ("resize_grid", grid_by_sampling),
    ]
)


@pytest.mark.parametrize("name, answer", RIGHT)
def test_right_in_another_way(name, answer):
    for verdict in verdicts(name, answer):
        assert verdict.passed, verdict.text


def test_quotients_of_numbers_find_the_rows_where_rounding_allows():
    for verdict in verdicts("untrained_rows", untrained_by_quotients):
        assert verdict.passed, verdict.text


# ---- catalogued misconceptions, as learners put them ----


def place_first(E, P):
    sums = (E.unsqueeze(1) + P).flatten(0, 1)
    token = F.cosine_similarity(sums, E.repeat_interleave(len(P), 0)).mean()
    place = F.cosine_similarity(sums, P.repeat(len(E), 1)).mean()
    return place, token


def zipped(E, P):
    found = [
        (F.cosine_similarity(e + p, e, dim=0), F.cosine_similarity(e + p, p, dim=0))
        for e, p in zip(E, P, strict=False)
    ]
    return [sum(one) / len(one) for one in zip(*found, strict=True)]


def inner_products(E, P):
    h = E[:, None] + P
    return torch.einsum("vpd,vd->vp", h, E).mean(), torch.einsum("vpd,pd->vp", h, P).mean()


def of_the_averages(E, P):
    e, p = E.mean(dim=0), P.mean(dim=0)
    s = e + p
    return (s @ e) / (s.norm() * e.norm()), (s @ p) / (s.norm() * p.norm())


def how_long_they_are(E, P):
    e, p = E.norm(dim=1, keepdim=True), P.norm(dim=1)
    return (e / (e + p)).mean(), (1 - e / (e + p)).mean()


def has_changed(start, end):
    return ~((start - end).abs().sum(1) > 0)


def touched(start, end):
    rows = untrained_by_unit_rows(start, end)
    return rows == 0


def only_direction(start, end):
    return torch.tensor([F.cosine_similarity(a, b, dim=0) > 0.999 for a, b in zip(start, end, strict=True)])


def any_multiple(start, end):
    cosine = (F.normalize(start) * F.normalize(end)).sum(1)
    return cosine**2 > 0.998


def list_of_rows(start, end):
    return [n for n, same in enumerate(untrained_by_unit_rows(start, end)) if same]


def tail(start, end):
    rows = untrained_by_unit_rows(start, end).tolist()
    last = max((n for n, same in enumerate(rows) if not same), default=-1)
    return [n > last for n in range(len(rows))]


def still_repeats_rows(P, rows, way):
    if way == "copy":
        return torch.stack([row for row in P for _ in range(rows // len(P))])
    return longer_by_cat(P, rows, way)


def still_short_of_the_end(P, rows, way):
    if way == "copy":
        return longer_by_cat(P, rows, way)
    made = []
    for n in range(rows):
        low, rest = divmod(n * len(P) / rows, 1)
        made.append(torch.lerp(P[int(low)], P[min(int(low) + 1, len(P) - 1)], rest))
    return torch.stack(made)


def default_corners(P, rows, way):
    if way == "copy":
        return longer_by_cat(P, rows, way)
    return F.interpolate(P.T.unsqueeze(0), rows, mode="linear").squeeze(0).T


def whole_tables_only(P, rows, way):
    if way == "copy":
        return torch.cat([P] * (rows // len(P)))
    return longer_by_cat(P, rows, way)


def padded_with_the_last(P, rows, way):
    if way == "copy":
        return torch.cat([P, P[-1].expand(rows - len(P), -1)])
    return longer_by_cat(P, rows, way)


def half_pixels(P, old, new):
    image = P[1:].T.unflatten(1, old)[None]
    out = nn.Upsample(size=new, mode="bilinear")(image)
    return torch.cat([P[:1], out[0].flatten(1).T])


def flat_line(P, old, new):
    out = nn.Upsample(size=new[0] * new[1], mode="linear", align_corners=True)(P[1:].T[None])
    return torch.cat([P[:1], out[0].T])


def no_class_token(P, old, new):
    return grid_by_two_lines(P, old, new)[1:]


def width_by_height(P, old, new):
    h, w = old
    image = P[1:].T.reshape(1, -1, w, h)
    out = F.interpolate(image, new, mode="bilinear", align_corners=True)
    return torch.cat([P[:1], out.flatten(2)[0].T])


def just_a_view(P, old, new):
    image = P[1:].view(1, -1, *old)
    out = F.interpolate(image, new, mode="bilinear", align_corners=True)
    return torch.cat([P[:1], out.reshape(-1, P.shape[1])])


NAMED = [
    ("lookup_test", counting_up, "positions in order from 0"),
    ("lookup_test", a_single_text, "one text"),
    ("lookup_test", never_twice, "no token twice"),
    ("lookup_test", without_the_end, "the last row left out"),
    ("lookup_test", beyond_the_end, "a token outside of its table"),
    ("sum_similarity", place_first, "token and position exchanged"),
    ("sum_similarity", zipped, "only token n at place n"),
    ("sum_similarity", inner_products, "dot products instead of cosines"),
    ("sum_similarity", of_the_averages, "cosine of the mean vectors"),
    ("sum_similarity", how_long_they_are, "share of the lengths"),
    ("untrained_rows", has_changed, "weight decay forgotten"),
    ("untrained_rows", touched, "the trained rows"),
    ("untrained_rows", only_direction, "longer rows included"),
    ("untrained_rows", any_multiple, "sign and length ignored"),
    ("untrained_rows", tail, "all rows behind the last trained one"),
    ("longer_table", still_repeats_rows, "copying as it was"),
    ("longer_table", still_short_of_the_end, "stretching as it was"),
    ("longer_table", default_corners, "centres instead of corners"),
    ("longer_table", whole_tables_only, "rest of the copy lost"),
    ("longer_table", padded_with_the_last, "last row again and again"),
    ("resize_grid", half_pixels, "centres instead of corners"),
    ("resize_grid", flat_line, "stretched as one line"),
    ("resize_grid", no_class_token, "class token lost"),
    ("resize_grid", width_by_height, "old grid read with height and width exchanged"),
    ("resize_grid", just_a_view, "channels not moved to the front"),
]


@pytest.mark.parametrize("name, answer, called", NAMED, ids=[f"{n}-{a.__name__}" for n, a, _ in NAMED])
def test_a_misconception_is_named(name, answer, called):
    for verdict in verdicts(name, answer):
        assert (verdict.kind, verdict.name) == ("mistake", called), verdict.text


# ---- mistakes that no catalogue holds ----


def similarity_of_difference(E, P):
    return similarity_flat(E, -P)


def similarity_median(E, P):
    h = E[:, None] + P
    return (
        F.cosine_similarity(h, E[:, None], dim=-1).median(),
        F.cosine_similarity(h, P[None], dim=-1).median(),
    )


def similarity_first_token(E, P):
    return similarity_flat(E[:1], P)


def similarity_best_pair(E, P):
    h = E[:, None] + P
    return F.cosine_similarity(h, E[:, None], dim=-1).max(), F.cosine_similarity(h, P[None], dim=-1).max()


def similarity_angles(E, P):
    a, b = similarity_flat(E, P)
    return a.acos(), b.acos()


def similarity_token_only(E, P):
    return similarity_flat(E, P)[0]


def similarity_rounded(E, P):
    return [round(float(x), 2) for x in similarity_flat(E, P)]


def untrained_strict(start, end):
    return untrained_by_unit_rows(start, end) & (end != start).any(1)


def untrained_by_first_channel(start, end):
    return end[:, 0].abs() <= start[:, 0].abs()


def untrained_same_signs(start, end):
    return (start.sign() == end.sign()).all(1) & (end.norm(dim=1) <= start.norm(dim=1))


def untrained_loose(start, end):
    return F.cosine_similarity(start, end) > 0.5


def untrained_smallest_half(start, end):
    moved = (end - start).norm(dim=1)
    return moved <= moved.median()


def untrained_by_distance(start, end):
    return (end - start).norm(dim=1) < 0.02


def untrained_all(start, end):
    return torch.ones(len(start), dtype=torch.bool)


def longer_backwards(P, rows, way):
    return longer_by_cat(P.flip(0), rows, way)


def longer_zeros(P, rows, way):
    if way == "copy":
        return torch.cat([P, torch.zeros(rows - len(P), P.shape[1])])
    return longer_by_cat(P, rows, way)


def longer_one_row_more(P, rows, way):
    return longer_by_cat(P, rows + 1, way)


def longer_keeps_the_old(P, rows, way):
    if way == "copy":
        return longer_by_cat(P, rows, way)
    return torch.cat([P, longer_by_cat(P, rows, way)[len(P) :]])


def longer_copies_end(P, rows, way):
    if way == "copy":
        return longer_by_cat(P, rows + 2, way)[2:]
    return longer_by_cat(P, rows, way)


def longer_floor(P, rows, way):
    if way == "copy":
        return longer_by_cat(P, rows, way)
    return P[np.linspace(0, len(P) - 1, rows).astype(int)]


def grid_of_zero_class(P, old, new):
    return torch.cat([torch.zeros_like(P[:1]), grid_by_two_lines(P, old, new)[1:]])


def grid_averaged_class(P, old, new):
    out = grid_by_two_lines(P, old, new)
    out[0] = out[1:].mean(0)
    return out


def grid_upside_down(P, old, new):
    out = grid_by_two_lines(P, old, new)[1:].view(*new, -1).flip(0).flatten(0, 1)
    return torch.cat([P[:1], out])


def grid_column_by_column(P, old, new):
    out = grid_by_two_lines(P, old, new)[1:].view(*new, -1).transpose(0, 1).flatten(0, 1)
    return torch.cat([P[:1], out])


def grid_area(P, old, new):
    out = F.interpolate(P[1:].T.reshape(1, -1, *old), new, mode="area")
    return torch.cat([P[:1], out[0].flatten(1).T])


def grid_class_from_patch(P, old, new):
    return grid_by_two_lines(torch.cat([P[1:2], P[1:]]), old, new)


REFUSED = answers(
    [
        *(("lookup_test", f) for f in (middle_of_the_tables, nothing_but_zeros, a_random_test)),
        *(
            ("sum_similarity", f)
            for f in (
                similarity_of_difference,
                similarity_median,
                similarity_first_token,
                similarity_best_pair,
                similarity_angles,
                similarity_token_only,
                similarity_rounded,
            )
        ),
        *(
            ("untrained_rows", f)
            for f in (
                untrained_strict,
                untrained_by_first_channel,
                untrained_same_signs,
                untrained_loose,
                untrained_smallest_half,
                untrained_by_distance,
                untrained_all,
            )
        ),
        *(
            ("longer_table", f)
            for f in (
                longer_backwards,
                longer_zeros,
                longer_one_row_more,
                longer_keeps_the_old,
                longer_copies_end,
                longer_floor,
            )
        ),
        *(
            ("resize_grid", f)
            for f in (
                grid_of_zero_class,
                grid_averaged_class,
                grid_upside_down,
                grid_column_by_column,
                grid_area,
                grid_class_from_patch,
            )
        ),
    ]
)


@pytest.mark.parametrize("name, answer", REFUSED)
def test_a_mistake_of_its_own_is_refused_and_gets_no_wrong_name(name, answer):
    for verdict in verdicts(name, answer):
        assert not verdict.passed
        assert verdict.kind != "mistake", verdict.name


# ---- what a student begins with ----
def test_the_given_code_runs_and_is_known_to_the_catalogue():
    notebook = nbformat.read(exercises.path("ex03_learnable", "exercises"), as_version=4)
    given = next(cell.source for cell in notebook.cells if "def longer_table(" in cell.source)
    room = {"torch": torch, "math": math}
    exec(given, room)
    for verdict in verdicts("longer_table", room["longer_table"]):
        assert (verdict.kind, verdict.name) == ("mistake", "nothing repaired"), verdict.text
