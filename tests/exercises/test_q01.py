"""Exercise 01, with answers as learners write them: refused, named, or passed."""

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


# ---- mask_shares ----
def shares(layer=None, mix=None, times=lambda n: n, end=lambda x: x):
    """Words through layers, one layer at a time."""
    layer = layer or (lambda allowed: allowed / allowed.sum(1, keepdim=True))
    mix = mix or (lambda x, new, rho: rho * x + (1 - rho) * new)

    def answer(allowed, layers, residual):
        x = torch.eye(len(allowed))
        for _ in range(times(layers)):
            x = mix(x, layer(allowed.float()) @ x, residual)
        return end(x)

    return answer


def shares_of_places(allowed, layers, residual):
    """All queries see as many words as there are before them, whatever the mask is."""
    return shares(lambda a: a / torch.arange(1, len(a) + 1)[:, None])(allowed, layers, residual)


def shares_by_eigenvalues(allowed, layers, residual):
    weights = allowed.double() / allowed.sum(1, keepdim=True)
    weights = residual * torch.eye(len(allowed)).double() + (1 - residual) * weights
    found = torch.eye(len(allowed)).double()
    while layers:
        found = found @ weights if layers % 2 else found
        weights, layers = weights @ weights, layers // 2
    return found.float()


# ---- pool_tokens ----
def pool_count_rounded(h, is_token):
    weight = is_token.float().softmax(1)
    return (h * weight[:, :, None].to(h.dtype)).sum(1)


def pool_drops_first(h, is_token):
    return torch.stack([row[mask][1:].mean(0) for row, mask in zip(h, is_token, strict=True)])


def pool_one_more(h, is_token):
    return (h * is_token[..., None]).sum(1) / (is_token.sum(1, keepdim=True) + 1)


def pool_median(h, is_token):
    return torch.stack([row[mask].median(0).values for row, mask in zip(h, is_token, strict=True)])


def pool_normalised(h, is_token):
    total = (h * is_token[..., None]).sum(1)
    return total / total.norm(dim=1, keepdim=True)


def pool_root(h, is_token):
    return (h * is_token[..., None]).sum(1) / is_token.sum(1, keepdim=True).to(h.dtype).sqrt()


def pool_from_first_to_last_row(h, is_token):
    return torch.stack([row[mask][[0, -1]].mean(0) for row, mask in zip(h, is_token, strict=True)])


def pool_features(h, is_token):
    return h.mean(-1)


def pool_nonzero_product(h, is_token):
    kept = h * is_token.unsqueeze(-1)
    return kept.sum(dim=1) / (kept != 0).sum().clamp(min=1)


def pool_everything(h, is_token):
    return torch.einsum("bld->bd", h) / h.size(1)


def pool_zeroed(h, is_token):
    return torch.where(is_token[..., None], h, torch.zeros_like(h)).mean(1)


def pool_total(h, is_token):
    return torch.bmm(is_token[:, None].to(h.dtype), h).squeeze(1)


def pool_right(h, is_token):
    lengths = is_token.sum(-1)
    return torch.stack([h[n, : lengths[n]].sum(0) / lengths[n] for n in range(h.size(0))])


def pool_cls(h, is_token):
    return h.select(1, 0)


def pool_max(h, is_token):
    return torch.where(is_token[..., None], h, -1e30).max(dim=1).values


# ---- causal_attention ----
def scores_of(q, k):
    return torch.matmul(q, k.transpose(1, 2)) / math.sqrt(k.shape[2])


def causal_only_own(q, k, v, p, r):
    return scores_of(q, k).masked_fill(r[None] != p[:, None], -math.inf).softmax(-1) @ v


def causal_one_too_far(q, k, v, p, r):
    return scores_of(q, k).masked_fill(r[None] > p[:, None] + 1, -math.inf).softmax(-1) @ v


def causal_window(q, k, v, p, r):
    hidden = (r[None] > p[:, None]) | (r[None] < p[:, None] - 2)
    return scores_of(q, k).masked_fill(hidden, -math.inf).softmax(-1) @ v


def causal_values_only(q, k, v, p, r):
    seen = [(v / 2).masked_fill((r > position)[:, None], 0) for position in p]
    return torch.cat([scores_of(q, k)[:, i : i + 1].softmax(-1) @ one for i, one in enumerate(seen)], 1)


def causal_not_enough(q, k, v, p, r):
    return (scores_of(q, k) - 3.0 * (r[None] > p[:, None])).softmax(-1) @ v


def causal_keys_sorted(q, k, v, p, r):
    return scores_of(q, k[:, r.argsort()]).masked_fill(r[None] > p[:, None], -math.inf).softmax(-1) @ v


def causal_first_query(q, k, v, p, r):
    return scores_of(q, k).masked_fill(r[None] > p[0], -math.inf).softmax(-1) @ v


def causal_last_query(q, k, v, p, r):
    return scores_of(q, k).masked_fill(r[None] > p.max(), -math.inf).softmax(-1) @ v


def causal_triu_late(q, k, v, p, r):
    future = torch.gt(r.view(1, -1), p.view(-1, 1))
    return torch.matmul(F.softmax(scores_of(q, k), -1).masked_fill(future, 0.0), v)


def causal_is_causal(q, k, v, p, r):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def causal_offset_triangle(q, k, v, p, r):
    lq, lk = q.size(1), k.size(1)
    hidden = torch.triu(torch.ones(lq, lk), lk - lq + 1) == 1
    return scores_of(q, k).masked_fill(hidden, -math.inf).softmax(-1) @ v


def causal_strict(q, k, v, p, r):
    bias = torch.zeros(len(p), len(r), dtype=q.dtype).masked_fill(r[None] >= p[:, None], -math.inf)
    return torch.softmax(scores_of(q, k) + bias, -1) @ v


def causal_zeroed(q, k, v, p, r):
    return torch.softmax(scores_of(q, k).masked_fill(r[None] > p[:, None], 0), -1) @ v


def causal_full(q, k, v, p, r):
    return F.scaled_dot_product_attention(q, k, v)


def causal_backwards(q, k, v, p, r):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=r.view(1, -1) >= p.view(-1, 1))


# ---- order_errors ----
def errors_only_first(output, shuffled, order):
    error = ((shuffled - output[order]).abs().max() / output.abs().max()).item()
    return error, error


def errors_sum(output, shuffled, order):
    return tuple(((shuffled - one).abs().sum() / one.abs().sum()).item() for one in (output[order], output))


def errors_squared(output, shuffled, order):
    return tuple(
        ((shuffled - one).square().max() / one.square().max()).item() for one in (output[order], output)
    )


def errors_cosine(output, shuffled, order):
    return tuple(
        1 - F.cosine_similarity(shuffled.flatten(), one.flatten(), dim=0).item()
        for one in (output[order], output)
    )


def errors_row_zero(output, shuffled, order):
    return tuple(
        ((shuffled[0] - one[0]).abs().max() / one[0].abs().max()).item() for one in (output[order], output)
    )


def errors_worst_row_mean(output, shuffled, order):
    return tuple(
        ((shuffled - one).abs().mean(1).max() / one.abs().max()).item() for one in (output[order], output)
    )


def errors_as_tensors(output, shuffled, order):
    return shuffled - output[order], shuffled - output


def errors_absolute(output, shuffled, order):
    return torch.dist(shuffled, output[order], math.inf), torch.dist(shuffled, output, math.inf)


def errors_norm(output, shuffled, order):
    return torch.stack(
        [torch.linalg.norm(shuffled - one) / torch.linalg.norm(output) for one in (output[order], output)]
    )


def errors_inverse(output, shuffled, order):
    back = torch.empty_like(output)
    back[order] = output
    top = output.abs().max()
    return (shuffled - back).abs().max() / top, (shuffled - output).abs().max() / top


def errors_exchanged(output, shuffled, order):
    top = output.abs().max()
    return (shuffled - output).abs().max() / top, (shuffled - output[order]).abs().max() / top


def errors_signed(output, shuffled, order):
    return [((shuffled - one).max() / output.max()).item() for one in (output[order], output)]


# ---- bag_ceiling ----
def tally(sentences, answers, key):
    found = {}
    for row, answer in zip(sentences.tolist(), answers.tolist(), strict=True):
        found.setdefault(key(row), []).append(answer)
    return found


def ceiling(key):
    def answer(sentences, answers):
        found = tally(sentences, answers, key)
        return sum(max(one.count(a) for a in one) for one in found.values()) / answers.numel()

    return answer


def ceiling_number_of_bags(sentences, answers):
    found = tally(sentences, answers, lambda row: tuple(sorted(row)))
    return len(found) / len(set(map(tuple, sentences.tolist())))


def ceiling_smallest_answer(sentences, answers):
    found = tally(sentences, answers, lambda row: tuple(sorted(row)))
    return sum(one.count(min(one)) - 0.5 for one in found.values()) / len(answers)


def ceiling_half(sentences, answers):
    return 0.5


def ceiling_rare(sentences, answers):
    found = tally(sentences, answers, lambda row: tuple(sorted(row)))
    return sum(min(one.count(a) for a in one) for one in found.values()) / len(answers)


def ceiling_overwritten(sentences, answers):
    bags = [tuple(sorted(row)) for row in sentences.tolist()]
    kept = dict(zip(bags, answers, strict=True))
    return sum(kept[bag] == answer for bag, answer in zip(bags, answers, strict=True)) / len(bags)


def ceiling_majority(sentences, answers):
    return answers.bincount().max().item() / len(answers)


def ceiling_average(sentences, answers):
    found = tally(sentences, answers, lambda row: tuple(sorted(row)))
    shares = [max(one.count(a) for a in one) / len(one) for one in found.values()]
    return torch.tensor(shares, dtype=torch.float64).mean()


REFUSED = {
    "mask_shares": [
        shares_of_places,
        shares(mix=lambda x, new, rho: x.maximum(new)),
        shares(times=lambda n: n + 2),
        shares(end=lambda x: x.softmax(-1)),
        shares(end=lambda x: x.flip(1)),
        shares(end=lambda x: x.cumsum(1)),
        shares(mix=lambda x, new, rho: rho**2 * x + (1 - rho**2) * new),
        shares(layer=lambda a: a.tril() / a.tril().sum(1, keepdim=True).clamp(min=1)),
    ],
    "pool_tokens": [
        pool_count_rounded,
        pool_drops_first,
        pool_one_more,
        pool_median,
        pool_normalised,
        pool_root,
        pool_from_first_to_last_row,
        pool_features,
        pool_nonzero_product,
    ],
    "causal_attention": [
        causal_only_own,
        causal_window,
        causal_values_only,
        causal_not_enough,
        causal_keys_sorted,
        causal_first_query,
        causal_last_query,
    ],
    "order_errors": [
        errors_only_first,
        errors_squared,
        errors_cosine,
        errors_row_zero,
        errors_worst_row_mean,
        errors_as_tensors,
    ],
    "bag_ceiling": [
        ceiling(lambda row: len(set(row))),
        ceiling(lambda row: row[0]),
        ceiling(lambda row: row[-1]),
        ceiling(max),
        ceiling(lambda row: tuple(sorted(row)[:2])),
        ceiling_number_of_bags,
        ceiling_smallest_answer,
        ceiling_half,
        ceiling_rare,
    ],
}
NAMED = {
    "mask_shares": [
        (shares(layer=lambda a: a / a.sum(0)), "columns add up to 1"),
        (shares(layer=lambda a: a / len(a)), "divided by L"),
        (shares(mix=lambda x, new, rho: new), "no residual"),
        (shares(mix=lambda x, new, rho: (1 - rho) * x + rho * new), "residual and layer exchanged"),
        (shares(times=lambda n: n - 1), "one layer short"),
        (shares(end=lambda x: x.mT), "transposed"),
    ],
    "pool_tokens": [
        (pool_everything, "padding is averaged, too"),
        (pool_zeroed, "divided by L"),
        (pool_total, "a sum, not a mean"),
        (pool_cls, "the first row"),
        (pool_right, "padding is taken to be on the right"),
        (pool_max, "the largest number instead of the mean"),
    ],
    "causal_attention": [
        (causal_triu_late, "mask after the softmax"),
        (causal_is_causal, "row numbers instead of positions"),
        (causal_offset_triangle, "rows counted from the end"),
        (causal_strict, "a token may not see itself"),
        (causal_zeroed, "zero instead of minus infinity"),
        (causal_full, "no mask"),
        (causal_backwards, "past and future exchanged"),
        (causal_one_too_far, "one key too many"),
    ],
    "order_errors": [
        (errors_sum, "the mean difference by the mean size"),
        (errors_absolute, "not relative"),
        (errors_inverse, "shuffled back the wrong way"),
        (errors_norm, "lengths instead of largest numbers"),
        (errors_exchanged, "the two are exchanged"),
        (errors_signed, "the sign is kept"),
    ],
    "bag_ceiling": [
        (ceiling(str), "order is kept"),
        (ceiling(lambda row: tuple(sorted(set(row)))), "sets instead of bags"),
        (ceiling(lambda row: sum(row) / len(row)), "words are added up"),
        (ceiling_overwritten, "the last answer of a bag"),
        (ceiling_majority, "one answer for everything"),
        (ceiling_average, "mean over bags"),
    ],
}


def pool_loop(h, is_token):
    out = []
    for b in range(len(h)):
        rows = [h[b, i] for i in range(h.size(1)) if is_token[b, i]]
        out.append(sum(rows) / len(rows))
    return torch.stack(out)


def pool_softmax(h, is_token):
    weight = torch.zeros_like(h[..., 0]).masked_fill(is_token.logical_not(), -math.inf).softmax(1)
    return (weight.unsqueeze(1) @ h).squeeze(1)


def causal_with_sdpa(q, k, v, p, r):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=p.view(-1, 1) >= r)


def causal_by_head(q, k, v, p, r):
    bias = torch.zeros(len(p), len(r), dtype=q.dtype)
    bias[p[:, None] < r] = -math.inf
    return torch.stack(
        [torch.softmax(a @ b.T * a.size(-1) ** -0.5 + bias, 1) @ c for a, b, c in zip(q, k, v, strict=True)]
    )


def errors_with_numpy(output, shuffled, order):
    a, b = output.numpy(), shuffled.numpy()
    moved = a[order.numpy()]
    return abs(b - moved).max() / abs(moved).max(), abs(b - a).max() / abs(a).max()


def errors_with_matrix(output, shuffled, order):
    P = torch.eye(len(order), dtype=output.dtype)[order]
    top = output.abs().amax()
    return [float((shuffled - M @ output).abs().amax() / top) for M in (P, torch.eye(len(P), dtype=P.dtype))]


def ceiling_quadratic(sentences, answers):
    rows, right = sentences.sort(1).values, 0
    same = (rows[:, None] == rows[None]).all(-1)
    for n in range(len(rows)):
        votes = answers[same[n]].bincount()
        right += (votes.max() / same[n].sum()).item()
    return right / len(rows)


def ceiling_as_tensor(sentences, answers):
    return torch.tensor(ceiling(lambda row: tuple(sorted(row)))(sentences, answers))


RIGHT = {
    "mask_shares": [shares(), shares_by_eigenvalues],
    "pool_tokens": [pool_loop, pool_softmax],
    "causal_attention": [causal_with_sdpa, causal_by_head],
    "order_errors": [errors_with_numpy, errors_with_matrix],
    "bag_ceiling": [ceiling_quadratic, ceiling_as_tensor],
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
