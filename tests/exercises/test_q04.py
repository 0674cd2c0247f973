"""Exercise 04: answers as learners write them, right and wrong, in other words than the catalogue's."""

import math

import nbformat
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from workshop import exercises

SEEDS = (4, 51, 600)
HIDE = float("-inf")


def verdicts(name, answer):
    question = questions.find(name)
    for seed in SEEDS:
        inputs = [case.args for case in question.cases(seed)]
        yield judge(question, seed, collect(answer, inputs, question.seconds))


def answers(table):
    return [pytest.param(name, answer, id=f"{name}-{answer.__name__}") for name, answer in table]


# ---- right, in other ways ----
def of_a_full_cache(k):
    """Keys as they stand in a cache that was used again, and its last two queries."""
    return [9 + k, 8 + k], (8 + 3 * k, 10 + k, 8)


def as_numpy(k):
    return np.array([5 * k, 5 * k + 2]), np.array([5 * k + 1, 4 * k, 7 * k + 3, 5 * k + 2])


def bucket_like_the_released_code(r, n_buckets, max_distance, bidirectional):
    """Written after the released code, with its n = query − key."""
    ret, n = 0, -r
    if bidirectional:
        n_buckets //= 2
        ret = ret + (n < 0).long() * n_buckets
        n = torch.abs(n)
    else:
        n = torch.max(n, torch.zeros_like(n))
    max_exact = n_buckets // 2
    val = (
        max_exact
        + (
            torch.log(n.float() / max_exact) / math.log(max_distance / max_exact) * (n_buckets - max_exact)
        ).long()
    )
    val = torch.min(val, torch.full_like(val, n_buckets - 1))
    return ret + torch.where(n < max_exact, n, val)


def bucket_numpy(r, n_buckets, max_distance, bidirectional):
    r = r.numpy()
    side = n_buckets // 2 if bidirectional else n_buckets
    exact = side // 2
    n = np.abs(r) if bidirectional else np.maximum(-r, 0)
    grown = np.log10(np.maximum(n, 1) / exact) / np.log10(max_distance / exact)
    far = exact + np.floor(grown * (side - exact))
    out = np.where(n < exact, n, np.minimum(far, side - 1)).astype(int)
    return out + (side * (r > 0) if bidirectional else 0)


def shaw_pair_by_pair(q, k, v, w_K, w_V, q_positions, k_positions):
    m = (w_K.size(0) - 1) // 2
    index = torch.clamp(k_positions - q_positions.unsqueeze(1), -m, m) + m
    keys, values = k + w_K[index], v + w_V[index]
    weights = torch.softmax((keys @ q.unsqueeze(-1)).squeeze(-1) / math.sqrt(q.size(-1)), dim=1)
    return (weights.unsqueeze(1) @ values).squeeze(1)


def shaw_scaled_query(q, k, v, w_K, w_V, q_positions, k_positions):
    m, d = len(w_K) // 2, q.shape[1]
    out = []
    for n in range(len(q)):
        rows = (k_positions - q_positions[n]).clamp(-m, m) + m
        weights = F.softmax((k + w_K[rows]) @ (q[n] * d**-0.5), dim=0)
        out.append(weights @ (v + w_V[rows]))
    return torch.vstack(out)


def mass_with_a_dict(alpha, height, width):
    found = {}
    for i in range(height * width):
        for j in range(height * width):
            place = j // width - i // width + height - 1, j % width - i % width + width - 1
            found.setdefault(place, []).append(alpha[i, j].item())
    table = [[0.0] * (2 * width - 1) for _ in range(2 * height - 1)]
    for (a, b), weights in found.items():
        table[a][b] = sum(weights) / len(weights)
    return torch.tensor(table, dtype=alpha.dtype)


def places_of_pairs(height, width):
    at = torch.cartesian_prod(torch.arange(height), torch.arange(width))
    return tuple((at[None] - at[:, None] + torch.tensor([height - 1, width - 1])).unbind(-1))


def mass_with_accumulate(alpha, height, width):
    total = torch.zeros(2 * height - 1, 2 * width - 1, dtype=alpha.dtype)
    pairs = torch.zeros_like(total)
    total.index_put_(places_of_pairs(height, width), alpha, accumulate=True)
    pairs.index_put_(places_of_pairs(height, width), torch.ones_like(alpha), accumulate=True)
    return total / pairs


def shift_with_strides(x):
    *rest, n_q, n_k = x.shape
    padded = torch.cat([x, x.new_full((*rest, n_q, n_q), HIDE)], -1)
    flat = padded.flatten(-2)
    starts = torch.arange(n_q) * (n_k + n_q) + n_q - 1 - torch.arange(n_q)
    return flat[..., starts[:, None] + torch.arange(n_k)]


def shift_entry_by_entry(x, column=lambda distance, n_k: n_k - 1 - distance):
    n_q, n_k = x.shape[-2:]
    out = torch.full_like(x, HIDE)
    for i in range(n_q):
        for j in range(n_k - n_q + i + 1):
            out[..., i, j] = x[..., i, column(n_k - n_q + i - j, n_k)]
    return out


RIGHT = answers(
    [
        ("bias_test", of_a_full_cache),
        ("bias_test", as_numpy),
        ("t5_bucket", bucket_like_the_released_code),
        ("t5_bucket", bucket_numpy),
        ("shaw_attention", shaw_pair_by_pair),
        ("shaw_attention", shaw_scaled_query),
        ("offset_mass", mass_with_a_dict),
        ("offset_mass", mass_with_accumulate),
        ("relative_shift", shift_with_strides),
        ("relative_shift", shift_entry_by_entry),
    ]
)


@pytest.mark.parametrize("name, answer", RIGHT)
def test_right_in_another_way(name, answer):
    for verdict in verdicts(name, answer):
        assert verdict.passed, verdict.text


# ---- catalogued misconceptions, as learners put them ----
def whole_text(k):
    return torch.arange(3), torch.arange(5)


def one_step_of_writing(k):
    return [2 * k + 3], [k + 4, k + 3, 9 * k]


def an_encoder_from_the_end(k):
    return [k + 1, k + 2], [2, k + 3, 2 * k + 4]


def a_decoder(k):
    return [5 * k + 1, 5 * k + 3], [4 * k + 2, 4 * k + 1, 0]


def only_far_and_near(k):
    return [k + 2, k + 3], [k + 4, 1, 3 * k + 5]


def beyond_the_last_position(k):
    return [1000, 999], [999, 1000 - k, 3]


def buckets(r, n_buckets, max_distance, bidirectional, *, sides=True, floor=True, end=True):
    """The broken code, partly repaired."""
    first = 0
    if bidirectional:
        n_buckets = n_buckets // 2
        first = torch.where(r > 0 if sides else r < 0, n_buckets, 0)
        n = r.abs()
    else:
        n = torch.relu(-r) if floor else -r
    exact = n_buckets // 2
    log = torch.log(n.clamp(min=1) / exact) / math.log(max_distance / exact)
    far = exact + (log * (n_buckets - exact)).long()
    return first + torch.where(n < exact, n, far.clamp(max=n_buckets - 1) if end else far)


def bucket_sides_wrong(*args):
    return buckets(*args, sides=False)


def bucket_without_end(*args):
    return buckets(*args, end=False)


def bucket_negative(*args):
    return buckets(*args, floor=False)


def bucket_only_end(*args):
    return buckets(*args, sides=False, floor=False)


def bucket_abs(r, n_buckets, max_distance, bidirectional):
    return buckets(r if bidirectional else -r.abs(), n_buckets, max_distance, bidirectional)


def bucket_turned(r, n_buckets, max_distance, bidirectional):
    return bucket_numpy(r.neg(), n_buckets, max_distance, bidirectional)


def shaw_keys_only(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q, k, v, w_K, torch.zeros_like(w_V), q_positions, k_positions)


def shaw_values_only(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q, k, v, 0 * w_K, w_V, q_positions, k_positions)


def shaw_i_minus_j(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q, k, v, w_K, w_V, -q_positions, -k_positions)


def shaw_sharp(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q * math.sqrt(q.shape[1]), k, v, w_K, w_V, q_positions, k_positions)


def shaw_outside(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q, k, v, w_K * math.sqrt(q.shape[1]), w_V, q_positions, k_positions)


def shaw_counts(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q, k, v, w_K, w_V, torch.arange(q.shape[0]), torch.arange(k.shape[0]))


def mass_summed(alpha, height, width):
    total = torch.zeros(2 * height - 1, 2 * width - 1, dtype=alpha.dtype)
    return total.index_put(places_of_pairs(height, width), alpha, accumulate=True)


def mass_of_queries(alpha, height, width):
    return mass_with_a_dict(alpha.T, height, width)


def mass_per_query(alpha, height, width):
    return mass_summed(alpha, height, width) / (height * width)


def mass_plus_equals(alpha, height, width):
    total = torch.zeros(2 * height - 1, 2 * width - 1, dtype=alpha.dtype)
    total[places_of_pairs(height, width)] += alpha
    return total


def mass_transposed(alpha, height, width):
    return mass_with_a_dict(alpha, height, width).transpose(0, 1)


def mass_columns_first(alpha, height, width):
    order = torch.arange(height * width).view(width, height).T.flatten()
    return mass_with_accumulate(alpha[order][:, order], height, width)


def shift_only_masked(x):
    n_q, n_k = x.shape[-2:]
    ahead = torch.arange(n_k) > torch.arange(n_k - n_q, n_k)[:, None]
    return x.masked_fill(ahead, HIDE)


def shift_folded(x):
    n_q, n_k = x.shape[-2:]
    x = torch.cat([torch.zeros_like(x[..., :1]), x], dim=-1)
    return x.reshape(*x.shape[:-2], n_k + 1, n_q)[..., 1:, :].reshape(*x.shape[:-2], n_q, n_k)


def shift_zero_ahead(x):
    y = shift_entry_by_entry(x)
    return y.masked_fill(y == HIDE, 0)


def shift_rolled(x):
    n_q = x.shape[-2]
    rows = [torch.roll(x[..., n, :], -(n_q - 1 - n), dims=-1) for n in range(n_q)]
    return torch.stack(rows, dim=-2)


def shift_near_to_far(x):
    return shift_entry_by_entry(x, lambda distance, n_k: distance)


def shift_hides_itself(x):
    out = shift_entry_by_entry(x)
    for i in range(x.shape[-2]):
        out[..., i, x.shape[-1] - x.shape[-2] + i] = HIDE
    return out


NAMED = [
    ("bias_test", an_encoder_from_the_end, "keys in order"),
    ("bias_test", one_step_of_writing, "one query"),
    ("bias_test", a_decoder, "nothing ahead"),
    ("bias_test", only_far_and_near, "nothing exactly k behind"),
    ("bias_test", beyond_the_last_position, "positions that do not exist"),
    ("t5_bucket", bucket_sides_wrong, "sides exchanged"),
    ("t5_bucket", bucket_without_end, "no end"),
    ("t5_bucket", bucket_negative, "keys ahead of a decoder"),
    ("t5_bucket", bucket_only_end, "only the end repaired"),
    ("t5_bucket", bucket_abs, "distance in a decoder"),
    ("t5_bucket", bucket_turned, "future instead of past"),
    ("shaw_attention", shaw_keys_only, "value vectors forgotten"),
    ("shaw_attention", shaw_values_only, "key vectors forgotten"),
    ("shaw_attention", shaw_i_minus_j, "query minus key"),
    ("shaw_attention", shaw_sharp, "no root"),
    ("shaw_attention", shaw_outside, "key vectors outside of the root"),
    ("shaw_attention", lambda *args: shaw_clipped_nearer(*args), "clipped one too early"),
    ("shaw_attention", shaw_counts, "row numbers instead of positions"),
    ("offset_mass", mass_summed, "sum instead of mean"),
    ("offset_mass", mass_of_queries, "query minus key"),
    ("offset_mass", mass_per_query, "mean over the queries"),
    ("offset_mass", mass_plus_equals, "equal offsets overwritten"),
    ("offset_mass", mass_transposed, "rows and columns of the table exchanged"),
    ("offset_mass", mass_columns_first, "patches counted column by column"),
    ("relative_shift", shift_only_masked, "nothing moved"),
    ("relative_shift", shift_folded, "keys ahead not hidden"),
    ("relative_shift", shift_zero_ahead, "zero for keys ahead"),
    ("relative_shift", shift_rolled, "keys ahead not hidden, rows rolled"),
    ("relative_shift", shift_near_to_far, "columns from near to far"),
    ("relative_shift", shift_hides_itself, "the token itself hidden"),
]


@pytest.mark.parametrize("name, answer, called", NAMED, ids=[f"{n}-{a.__name__}" for n, a, _ in NAMED])
def test_a_misconception_is_named(name, answer, called):
    for verdict in verdicts(name, answer):
        assert (verdict.kind, verdict.name) == ("mistake", called), verdict.text


# ---- mistakes that no catalogue holds ----
def all_the_same(k):
    return [5, 5], [5, 6, 7]


def a_random_sample(k):
    generator = torch.Generator().manual_seed(k)
    return tuple(torch.randperm(12 * k, generator=generator)[:n] + 50 * k for n in (2, 3))


def bucket_begins_late(r, n_buckets, max_distance, bidirectional):
    return bucket_numpy(r - r.sign() * (r.abs() > 1), n_buckets, max_distance, bidirectional)


def bucket_plain_clip(r, n_buckets, max_distance, bidirectional):
    side = n_buckets // 2 if bidirectional else n_buckets
    n = r.abs() if bidirectional else (-r).clamp(min=0)
    return n.clamp(max=side - 1) + (r > 0) * (side if bidirectional else 0)


def bucket_linear(r, n_buckets, max_distance, bidirectional):
    side = n_buckets // 2 if bidirectional else n_buckets
    n = r.abs() if bidirectional else (-r).clamp(min=0)
    return (n * side // max_distance).clamp(max=side - 1) + (r > 0) * (side if bidirectional else 0)


def bucket_always_decoder(r, n_buckets, max_distance, bidirectional):
    return bucket_numpy(r, n_buckets, max_distance, False)


def bucket_for_128(r, n_buckets, max_distance, bidirectional):
    return bucket_numpy(r, n_buckets, 128, bidirectional)


def bucket_as_float(r, n_buckets, max_distance, bidirectional):
    return torch.as_tensor(bucket_numpy(r, n_buckets, max_distance, bidirectional)).float()


def bucket_of_itself_wrong(r, n_buckets, max_distance, bidirectional):
    out = torch.as_tensor(bucket_numpy(r, n_buckets, max_distance, bidirectional))
    return torch.where(r == 0, out + 1, out)


def shaw_keys_turned(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q, k, v, w_K.flip(0), w_V, q_positions, k_positions)


def shaw_values_turned(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q, k, v, w_K, w_V.flip(0), q_positions, k_positions)


def shaw_divided_by_d(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q / math.sqrt(q.shape[1]), k, v, w_K, w_V, q_positions, k_positions)


def shaw_clipped_nearer(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q, k, v, w_K[1:-1], w_V[1:-1], q_positions, k_positions)


def shaw_query_vector(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(q + w_K[len(w_K) // 2], k, v, w_K, w_V, q_positions, k_positions)


def shaw_returns_weights(q, k, v, w_K, w_V, q_positions, k_positions):
    return shaw_pair_by_pair(
        q,
        k,
        torch.eye(len(k), dtype=q.dtype),
        w_K,
        torch.zeros(len(w_V), len(k), dtype=q.dtype),
        q_positions,
        k_positions,
    )


def mass_symmetric(alpha, height, width):
    return mass_with_a_dict((alpha + alpha.T) / 2, height, width)


def mass_maximum(alpha, height, width):
    out = torch.zeros(2 * height - 1, 2 * width - 1, dtype=alpha.dtype)
    for i in range(len(alpha)):
        for j in range(len(alpha)):
            a, b = j // width - i // width + height - 1, j % width - i % width + width - 1
            out[a, b] = max(out[a, b], alpha[i, j])
    return out


def mass_left_for_right(alpha, height, width):
    return mass_with_a_dict(alpha, height, width).flip(1)


def mass_without_self(alpha, height, width):
    return mass_with_a_dict(alpha - alpha.diagonal().diag(), height, width)


def mass_of_softmax(alpha, height, width):
    return mass_with_a_dict(alpha.softmax(-1), height, width)


def mass_of_the_first_query(alpha, height, width):
    return F.pad(alpha[0].view(height, width), (width - 1, 0, height - 1, 0))


def shift_all_the_same(x):
    return shift_only_masked(x.roll(1 - x.shape[-2], -1))


def shift_twice(x):
    return shift_only_masked(shift_rolled(shift_rolled(x)))


def shift_hides_the_past(x):
    return shift_rolled(x).masked_fill(torch.ones_like(x, dtype=torch.bool).tril(-1), HIDE)


def shift_minus_a_billion(x):
    return shift_entry_by_entry(x).clamp(min=-1e9)


def shift_keeps_first_row(x):
    out = shift_entry_by_entry(x)
    out[..., 0, :] = x[..., 0, :]
    return out


def shift_mirrored(x):
    return shift_entry_by_entry(x).flip(-1)


REFUSED = answers(
    [
        *(("bias_test", f) for f in (whole_text, all_the_same, a_random_sample)),
        *(
            ("t5_bucket", f)
            for f in (
                bucket_begins_late,
                bucket_plain_clip,
                bucket_linear,
                bucket_always_decoder,
                bucket_for_128,
                bucket_as_float,
                bucket_of_itself_wrong,
            )
        ),
        *(
            ("shaw_attention", f)
            for f in (
                shaw_keys_turned,
                shaw_values_turned,
                shaw_divided_by_d,
                shaw_query_vector,
                shaw_returns_weights,
            )
        ),
        *(
            ("offset_mass", f)
            for f in (
                mass_symmetric,
                mass_maximum,
                mass_left_for_right,
                mass_without_self,
                mass_of_softmax,
                mass_of_the_first_query,
            )
        ),
        *(
            ("relative_shift", f)
            for f in (
                shift_all_the_same,
                shift_twice,
                shift_hides_the_past,
                shift_minus_a_billion,
                shift_keeps_first_row,
                shift_mirrored,
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
    notebook = nbformat.read(exercises.path("ex04_relative", "exercises"), as_version=4)
    given = next(cell.source for cell in notebook.cells if "def t5_bucket(" in cell.source)
    room = {"torch": torch, "math": math}
    exec(given, room)
    for verdict in verdicts("t5_bucket", room["t5_bucket"]):
        assert (verdict.kind, verdict.name) == ("mistake", "nothing repaired"), verdict.text
