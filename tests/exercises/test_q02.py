"""Exercise 02, with answers as learners write them: refused, named, or passed."""

import math

import pytest
import torch
import torch.nn.functional as F

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge

SEEDS = (4, 51, 603)


def verdicts(name, answer):
    question = questions.find(name)
    for seed in SEEDS:
        inputs = [case.args for case in question.cases(seed)]
        yield judge(question, seed, collect(answer, inputs, question.seconds))


# ---- sinusoid_table ----
def rates(d, base):
    """One frequency per pair, as 1 / base^(2t/d)."""
    return torch.tensor([1 / base ** (c / d) for c in range(0, d, 2)])


def filled(angle, d, even=torch.sin, odd=torch.cos):
    out = torch.zeros(angle.shape[0], d)
    out[:, ::2] = even(angle)
    out[:, 1::2] = odd(angle[:, : out[:, 1::2].shape[1]])
    return out


def table_degrees(positions, d, base):
    return filled(positions.view(-1, 1) * rates(d, base) * math.pi / 180, d)


def table_reversed(positions, d, base):
    return filled(positions.view(-1, 1) * rates(d, base).flip(0), d)


def table_from_one(positions, d, base):
    return filled((positions.view(-1, 1) + 1) * rates(d, base), d)


def table_linear(positions, d, base):
    return filled(positions.view(-1, 1) * torch.linspace(1, 1 / base, (d + 1) // 2), d)


def table_scaled(positions, d, base):
    return filled(positions.view(-1, 1) * rates(d, base), d) / math.sqrt(d)


def table_relative(positions, d, base):
    return filled((positions - positions.min()).view(-1, 1) * rates(d, base), d)


def table_square(positions, d, base):
    return filled(positions.view(-1, 1) * rates(d, base), d, odd=lambda a: 1 - a.sin() ** 2)


def table_transposed(positions, d, base):
    return filled(positions.view(-1, 1) * rates(d, base), d).T


def table_powers_of_two(positions, d, base):
    return filled(positions.view(-1, 1) * 0.5 ** torch.arange((d + 1) // 2), d)


def table_all_t(positions, d, base):
    t = torch.arange((d + 1) // 2)
    return filled(positions.float().outer(1 / torch.pow(base, t / d)), d)


def table_growing(positions, d, base):
    return filled(positions.view(-1, 1) * torch.pow(base, torch.arange(0, d, 2) / d), d)


def table_cat(positions, d, base):
    angle = positions.view(-1, 1) * rates(d, base)
    return torch.cat((torch.sin(angle), torch.cos(angle[:, : d // 2])), dim=-1)


def table_cos_first(positions, d, base):
    return filled(positions.view(-1, 1) * rates(d, base), d, torch.cos, torch.sin)


def table_enumerated(positions, d, base):
    return filled(torch.arange(positions.numel()).view(-1, 1) * rates(d, base), d)


def table_paper_base(positions, d, base):
    return filled(positions.view(-1, 1) * torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d)), d)


def table_tutorial(positions, d, base):
    """The code of many tutorials, which knows even widths only."""
    pe = torch.zeros(len(positions), d)
    div_term = torch.exp(torch.arange(0, d, 2) * (-math.log(base) / d))
    pe[:, 0::2] = torch.sin(positions.unsqueeze(1) * div_term)
    pe[:, 1::2] = torch.cos(positions.unsqueeze(1) * div_term)
    return pe


# ---- sinusoid_add ----
def encoded(positions, d):
    return filled(positions.float()[:, None] * rates(d, 10000.0), d)


def add_half_inside(x, positions):
    d = x.size(-1)
    omega = rates(d, 10000.0).half()
    return (x + filled(positions.half()[:, None] * omega, d)).to(x.dtype)


def add_modulo(x, positions):
    return (x.float() + encoded(positions % 256, x.size(-1))).to(x.dtype)


def add_shifted(x, positions):
    return (x.float() + encoded(positions - positions[0], x.size(-1)).roll(1, 0)).to(x.dtype)


def add_normalised(x, positions):
    return (x.float() + encoded(positions, x.size(-1)) / x.size(-1) ** 0.5).to(x.dtype)


def add_twice(x, positions):
    return (x.float() + 2 * encoded(positions, x.size(-1))).to(x.dtype)


def add_minus(x, positions):
    return (x.float() - encoded(positions, x.size(-1))).to(x.dtype)


def add_first_sentence(x, positions):
    out = x.clone()
    out[0] += encoded(positions, x.size(-1)).to(x.dtype)
    return out


def add_multiplied(x, positions):
    return (x.float() * encoded(positions, x.size(-1))).to(x.dtype)


def add_always_bfloat16(x, positions):
    return (x.float() + encoded(positions, x.size(-1))).bfloat16()


def add_float32_out(x, positions):
    return x.float() + encoded(positions, x.size(-1))


def add_only_omega_exact(x, positions):
    p = positions.to(x.dtype)[:, None]
    return x + filled(p * rates(x.size(-1), 10000.0), x.size(-1)).to(x.dtype)


def add_angle_rounded(x, positions):
    angle = (positions.float()[:, None] * rates(x.size(-1), 10000.0)).type_as(x)
    return x + filled(angle.float(), x.size(-1)).type_as(x)


def add_arange(x, positions):
    return x + encoded(torch.arange(x.size(1)), x.size(-1)).to(x.dtype)


def add_nothing_of_x(x, positions):
    return encoded(positions, x.size(-1)).to(x.dtype).repeat(x.size(0), 1, 1)


def add_scaled_tokens(x, positions):
    return (math.sqrt(x.size(-1)) * x.float() + encoded(positions, x.size(-1))).type_as(x)


# ---- shift_matrix ----
def block_matrix(k, d, base, block):
    out = torch.zeros(d, d)
    for t, w in enumerate(rates(d, base).tolist()):
        out[2 * t : 2 * t + 2, 2 * t : 2 * t + 2] = torch.tensor(block(k * w))
    return out


def turn_inverse(k, d, base):
    return block_matrix(k, d, base, lambda a: [[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])


def turn_plus_plus(k, d, base):
    return block_matrix(k, d, base, lambda a: [[math.cos(a), math.sin(a)], [math.sin(a), math.cos(a)]])


def turn_diagonal(k, d, base):
    return torch.diag(torch.cos(k * rates(d, base)).repeat_interleave(2))


def turn_same_angle(k, d, base):
    block = torch.tensor([[math.cos(k), math.sin(k)], [-math.sin(k), math.cos(k)]])
    return torch.kron(torch.eye(d // 2), block)


def turn_halves(k, d, base):
    angle = k * rates(d, base)
    c, s = torch.diag(angle.cos()), torch.diag(angle.sin())
    return torch.vstack([torch.hstack([c, s]), torch.hstack([-s, c])])


def turn_int(k, d, base):
    return block_matrix(int(k), d, base, lambda a: [[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])


def turn_small_angles(k, d, base):
    return block_matrix(k, d, base, lambda a: [[1.0, a], [-a, 1.0]])


def turn_half_angle(k, d, base):
    return block_matrix(k / 2, d, base, lambda a: [[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])


def turn_dense(k, d, base):
    row = sin_row = torch.sin(k * rates(d, base)).repeat_interleave(2)
    return torch.outer(row, sin_row)


def turn_reversed_pairs(k, d, base):
    return turn_inverse(-k, d, base).flip(0).flip(1).T


def turn_one_row(k, d, base):
    return turn_inverse(-k, d, base)[0]


def turn_identity(k, d, base):
    return torch.eye(d)


def turn_absolute(k, d, base):
    return turn_inverse(-abs(k), d, base)


def turn_next_pair(k, d, base):
    return turn_inverse(-k, d, base).roll((2, 2), (0, 1))


# ---- offset_profile ----
def profile_median(scores):
    lq, lk = scores.shape
    return torch.stack([scores.diagonal(r).median() for r in range(1 - lq, lk)])


def profile_max(scores):
    lq, lk = scores.shape
    return torch.stack([scores.diagonal(r).amax() for r in range(1 - lq, lk)])


def profile_last(scores):
    lq, lk = scores.shape
    return torch.stack([scores.diagonal(r)[-1] for r in range(1 - lq, lk)])


def profile_off_by_one(scores):
    lq, lk = scores.shape
    return torch.stack([scores.diagonal(r).mean() for r in range(-lq, lk - 1)])


def profile_without_ends(scores):
    lq, lk = scores.shape
    return torch.stack([scores.diagonal(r).mean() for r in range(2 - lq, lk - 1)])


def profile_softmax(scores):
    return profile_right(scores.softmax(-1))


def profile_centred(scores):
    return profile_right(scores - scores.mean())


def profile_by_total(scores):
    lq, lk = scores.shape
    return torch.stack([scores.diagonal(r).sum() / (lq * lk) for r in range(1 - lq, lk)])


def profile_right(scores):
    lq, lk = scores.shape
    return torch.stack([scores.diagonal(r).mean() for r in range(1 - lq, lk)])


def profile_backwards(scores):
    lq, lk = scores.shape
    return torch.stack([torch.diagonal(scores, -r).mean() for r in range(1 - lk, lq)])


def profile_sum(scores):
    lq, lk = scores.shape
    return torch.stack(
        [sum(scores[i, i + r] for i in range(lq) if 0 <= i + r < lk) for r in range(1 - lq, lk)]
    )


def profile_anti(scores):
    lq, lk = scores.shape
    return torch.stack([scores.flip(1).diagonal(lk - 1 - s).mean() for s in range(lq + lk - 1)])


def profile_over_lq(scores):
    padded = F.pad(scores, (len(scores) - 1, len(scores) - 1))
    width = scores.shape[1] + len(scores) - 1
    return torch.stack([padded[i, i : i + width] for i in range(len(scores))]).mean(0).roll(0)


def profile_future(scores):
    return torch.stack([scores.diagonal(r).mean() for r in range(scores.shape[1])])


def profile_distance(scores):
    lq, lk = scores.shape
    distance = (torch.arange(lk) - torch.arange(lq)[:, None]).abs()
    return torch.stack([scores[distance == r].mean() for r in range(max(lq, lk))])


# ---- sinusoid_concat ----
def released(d):
    h = d // 2
    return torch.tensor([1.0]) if h == 1 else torch.logspace(0, -4, h)


def joined(positions, omega, d):
    angle = positions[:, None] * omega
    return F.pad(torch.cat([angle.sin(), angle.cos()], -1), (0, d - 2 * len(omega)))


def concat_without_its_last_step(positions, d):
    return joined(positions, torch.logspace(0, -4, d // 2 + 1)[:-1], d)


def concat_between_the_ends(positions, d):
    return joined(positions, torch.logspace(0, -4, d // 2 + 2)[1:-1], d)


def concat_linear(positions, d):
    return joined(positions, torch.linspace(1, 1e-4, d // 2), d)


def concat_flipped(positions, d):
    return joined(positions, released(d).flip(0), d)


def concat_ones(positions, d):
    table = joined(positions, released(d), d)
    table[:, 2 * (d // 2) :] = 1
    return table


def concat_sines_twice(positions, d):
    angle = positions[:, None] * released(d)
    return F.pad(torch.cat([angle.sin(), angle.sin()], -1), (0, d % 2))


def concat_from_one(positions, d):
    return joined(positions + 1, released(d), d)


def concat_base_1000(positions, d):
    return joined(positions, released(d) ** 0.75, d)


def concat_cos_mirrored(positions, d):
    angle = positions[:, None] * released(d)
    return F.pad(torch.cat([angle.sin(), angle.cos().flip(-1)], -1), (0, d % 2))


def concat_paper(positions, d):
    return joined(positions, torch.tensor([10000 ** (-2 * t / d) for t in range(d // 2)]), d)


def concat_nan(positions, d):
    h = d // 2
    return joined(positions, torch.exp(-math.log(10000) * torch.arange(h) / torch.tensor(h - 1)), d)


def concat_zero_division(positions, d):
    h = d // 2
    return joined(positions, torch.exp(torch.arange(h) * -(math.log(10000) / (h - 1))), d)


def concat_short(positions, d):
    return joined(positions, released(d), d)[:, : 2 * (d // 2)]


def concat_alternating(positions, d):
    angle = positions[:, None] * released(d)
    out = torch.zeros(len(positions), d)
    out[:, 0 : 2 * (d // 2) : 2], out[:, 1 : 2 * (d // 2) : 2] = angle.sin(), angle.cos()
    return out


def concat_cos_sin(positions, d):
    angle = positions[:, None] * released(d)
    return F.pad(torch.cat([angle.cos(), angle.sin()], -1), (0, d % 2))


REFUSED = {
    "sinusoid_table": [
        table_reversed,
        table_linear,
        table_scaled,
        table_relative,
        table_square,
        table_transposed,
        table_powers_of_two,
    ],
    "sinusoid_add": [
        add_half_inside,
        add_modulo,
        add_shifted,
        add_normalised,
        add_twice,
        add_minus,
        add_first_sentence,
        add_multiplied,
        add_always_bfloat16,
    ],
    "shift_matrix": [
        turn_small_angles,
        turn_half_angle,
        turn_dense,
        turn_reversed_pairs,
        turn_one_row,
        turn_identity,
        turn_next_pair,
    ],
    "offset_profile": [
        profile_median,
        profile_max,
        profile_last,
        profile_off_by_one,
        profile_without_ends,
        profile_softmax,
        profile_centred,
        profile_by_total,
    ],
    "sinusoid_concat": [
        concat_between_the_ends,
        concat_flipped,
        concat_ones,
        concat_sines_twice,
        concat_from_one,
        concat_base_1000,
        concat_cos_mirrored,
    ],
}
NAMED = {
    "sinusoid_table": [
        (table_degrees, "angles taken for degrees"),
        (table_from_one, "positions counted from 1"),
        (table_all_t, "exponent counts pairs, not columns"),
        (table_growing, "frequencies rise"),
        (table_cat, "all sines first"),
        (table_cos_first, "cosine before sine"),
        (table_enumerated, "row number instead of position"),
        (table_paper_base, "base fixed at 10000"),
        (table_tutorial, "even widths only"),
    ],
    "sinusoid_add": [
        (add_float32_out, "the result has another dtype"),
        (add_only_omega_exact, "only the positions are rounded"),
        (add_angle_rounded, "the angles are rounded"),
        (add_arange, "row number instead of position"),
        (add_nothing_of_x, "the token is lost"),
        (add_scaled_tokens, "tokens scaled"),
    ],
    "shift_matrix": [
        (turn_inverse, "turned the other way"),
        (turn_plus_plus, "no minus sign"),
        (turn_diagonal, "cosines only"),
        (turn_same_angle, "one angle for all pairs"),
        (turn_halves, "for all sines first"),
        (turn_int, "whole steps only"),
        (turn_absolute, "turned the other way"),
    ],
    "offset_profile": [
        (profile_backwards, "query minus key"),
        (profile_sum, "sums, not means"),
        (profile_anti, "sums of positions"),
        (profile_future, "keys behind the query only"),
        (profile_distance, "before and after taken together"),
    ],
    "sinusoid_concat": [
        (concat_paper, "the paper's frequencies"),
        (concat_nan, "divided by zero, NaN"),
        (concat_linear, "frequencies spaced by a difference"),
        (concat_zero_division, "divided by zero"),
        (concat_short, "odd width, one column missing"),
        (concat_alternating, "sine and cosine alternate"),
        (concat_cos_sin, "cosines first"),
        (concat_without_its_last_step, "the paper's frequencies, counted in halves"),
    ],
}


def table_sine_only(positions, d, base):
    """A cosine is a sine that is a quarter turn ahead."""
    c = torch.arange(d)
    angle = positions.float().unsqueeze(-1) * torch.pow(torch.tensor(base), -(c - c % 2) / d)
    return torch.sin(angle + c % 2 * (math.pi / 2))


def table_appended(positions, d, base):
    columns = []
    for w in rates(d, base):
        columns += [torch.sin(positions * w), torch.cos(positions * w)]
    return torch.stack(columns[:d], dim=1)


def add_without_sum_in_float(x, positions):
    return torch.stack([one + encoded(positions, x.size(2)).type(x.dtype) for one in x])


def add_numpy(x, positions):
    d = x.size(-1)
    angle = positions.double().numpy()[:, None] / 10000 ** (torch.arange(0, d, 2).numpy() / d)
    return x.add(filled(torch.from_numpy(angle), d).to(x.dtype))


def turn_complex(k, d, base):
    """Column c is what the rotation makes of the unit vector c."""
    unit = torch.eye(d).unflatten(1, (d // 2, 2)).contiguous()
    turned = torch.view_as_complex(unit) * torch.polar(torch.ones(d // 2), -k * rates(d, base))
    return torch.view_as_real(turned).flatten(1).T


def turn_solved(k, d, base):
    """The matrix that takes d rows of the table to the rows k steps on, by least squares."""
    p = torch.cat([torch.arange(4 * d), 5000 * torch.arange(4 * d)]).double()
    omega = torch.tensor([base ** (-c / d) for c in range(0, d, 2)], dtype=torch.float64)

    def table(p):
        return torch.stack([(p[:, None] * omega).sin(), (p[:, None] * omega).cos()], -1).flatten(1)

    return torch.linalg.lstsq(table(p), table(p + k)).solution.T.float()


def profile_by_hand(scores):
    total = {}
    for i in range(scores.size(0)):
        for j in range(scores.size(1)):
            total.setdefault(j - i, []).append(scores[i, j].item())
    return [sum(total[r]) / len(total[r]) for r in sorted(total)]


def profile_masked(scores):
    r = torch.arange(scores.size(1)) - torch.arange(scores.size(0)).unsqueeze(1)
    return torch.stack([scores[r == one].mean() for one in r.unique()])


def concat_by_fairseq(positions, d):
    half = d // 2
    step = math.log(10000) / (half - 1) if half > 1 else 0.0
    angle = positions.unsqueeze(1) * torch.exp(torch.arange(half) * -step).unsqueeze(0)
    table = torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)
    return torch.cat([table, torch.zeros(len(positions), 1)], dim=1) if d % 2 else table


def concat_filled(positions, d):
    out, h = torch.zeros(len(positions), d), d // 2
    for t, w in enumerate(released(d)):
        out[:, t], out[:, h + t] = torch.sin(positions * w), torch.cos(positions * w)
    return out


RIGHT = {
    "sinusoid_table": [table_sine_only, table_appended],
    "sinusoid_add": [add_without_sum_in_float, add_numpy],
    "shift_matrix": [turn_complex, turn_solved],
    "offset_profile": [profile_by_hand, profile_masked],
    "sinusoid_concat": [concat_by_fairseq, concat_filled],
}


def each(table):
    return [
        pytest.param(name, entry, id=f"{name}-{n}")
        for name, entries in table.items()
        for n, entry in enumerate(entries)
    ]


@pytest.mark.parametrize("name, answer", each(REFUSED))
def test_a_wrong_answer_of_no_catalogue_is_refused(name, answer):
    for verdict in verdicts(name, answer):
        assert not verdict.passed and verdict.kind != "mistake", verdict.text


@pytest.mark.parametrize("name, entry", each(NAMED))
def test_a_learners_mistake_gets_its_name(name, entry):
    answer, mistake = entry
    for verdict in verdicts(name, answer):
        assert (verdict.kind, verdict.name) == ("mistake", mistake), verdict.text


@pytest.mark.parametrize("name, answer", each(RIGHT))
def test_a_right_answer_of_another_style_passes(name, answer):
    for verdict in verdicts(name, answer):
        assert verdict.passed, verdict.text
