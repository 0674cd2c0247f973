"""Exercise 05 as learners answer it: in their own words, right and wrong."""

import math

import nbformat
import numpy as np
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


def memory_changed(order=None, far=None, hidden=None, root=None, swap=False, or_first=False):
    """Term by term, with one of the steps exchanged."""
    order = order or (lambda memory, x: torch.cat([memory, x]))
    far = far or (lambda i, j: i - j)
    hidden = hidden or (lambda i, j: j > i)
    root = root or (lambda x, k: k.shape[1] ** 0.5)

    def answer(x, memory, W_Q, W_K, u, v, R):
        u, v = (v, u) if swap else (u, v)
        text = order(memory, x)
        q, k = x @ W_Q, text @ W_K
        i, j = torch.arange(len(memory), len(text)).unsqueeze(1), torch.arange(len(text))
        r = R[far(i, j).clamp(0, len(R) - 1)]
        e = q @ k.T + (q[:, None] * r).sum(-1) + k @ u + r @ v
        out = hidden(i, j) & ~((i == 0) & (j == 0)) if or_first else hidden(i, j)
        return torch.where(out, torch.full_like(e, -math.inf), e / root(x, k))

    return answer


def memory_term_by_term(*args):
    return memory_changed()(*args)


def memory_by_shifting(x, memory, W_Q, W_K, u, v, R):
    """Rows of distances, each of them turned round and cut: as the released code, without its trick."""
    text = torch.cat((memory, x), 0)
    rows, M = [], len(memory)
    for n, token in enumerate(x):
        q, seen = token @ W_Q, text[: M + n + 1] @ W_K
        e = torch.mv(seen, q + u) + torch.mv(R[: M + n + 1], q + v).flip(0)
        rows.append(torch.nn.functional.pad(e / len(u) ** 0.5, (0, len(x) - n - 1), value=-math.inf))
    return torch.stack(rows)


def moved_row_by_row(scores, term, allowed):
    term = torch.broadcast_to(term, scores.shape)
    result = []
    for head in range(len(scores)):
        moved = 0.0
        for i in range(scores.shape[1]):
            ok = allowed[i]
            old = torch.softmax(scores[head, i, ok], 0)
            new = torch.softmax(scores[head, i, ok] + term[head, i, ok], 0)
            moved = moved + torch.sum(torch.relu(old - new))
        result.append(moved / scores.shape[1])
    return torch.stack(result)


def moved_with_a_bias(scores, term, allowed):
    mask = torch.zeros(allowed.shape, dtype=scores.dtype)
    mask[~allowed] = float("-inf")
    old, new = torch.softmax(scores + mask, 2), torch.softmax(scores + mask + term, 2)
    return torch.linalg.norm(new - old, ord=1, dim=2).mean(1) * 0.5


def _stripes(n, keys, offsets):
    """Two lists of numbers from a rule for each."""
    return [keys(j) for j in range(n)], np.array([offsets(r) for r in range(-n + 1, n)])


def painted_by_rules(picture, n, high=60.0, base=math.e):
    first = [high] + [0.0] * (n - 1)
    if picture == "even":
        return _stripes(n, lambda j: -high * (j % 2), lambda r: -3 * high * (r > 0))
    if picture == "fading":
        keys = [math.log(8, base)] + [0] * (n - 1)
        return _stripes(n, keys.__getitem__, lambda r: r * math.log(2, base) if r <= 0 else -high)
    return _stripes(
        n, first.__getitem__, lambda r: {"first": 0, "two back": 2, "both": 1}[picture] * high * (r == -2)
    )


def painted_from_the_picture(picture, n):
    """Least squares on the logarithms of a softened picture: no stripe is named."""
    i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    if picture != "fading":
        return painted_by_rules(picture, n)
    logs = torch.where(j <= i, (j - i) * math.log(2) + math.log(8) * (j == 0), -50.0).double()
    rows = torch.arange(n * n)
    A = torch.zeros(n * n, 4 * n - 1, dtype=torch.float64)
    A[rows, i.flatten()] = A[rows, n + j.flatten()] = A[rows, 2 * n + (j - i + n - 1).flatten()] = 1
    past = (j <= i).flatten()
    x = torch.linalg.lstsq(A[past], logs.flatten()[past], driver="gelsd").solution
    x[3 * n :] = -50
    return x[n : 2 * n], x[2 * n :]


def concat_stacked_by_repeat(PE, r, W_o, c, W_2):
    Lq, Lk = r.shape
    stack = torch.cat([PE.repeat_interleave(Lk, 0), r.reshape(-1, 1)], 1)
    return (torch.nn.functional.linear(stack, W_o, c).clamp_min(0) * W_2).sum(1).view(Lq, Lk)


def concat_key_by_key(PE, r, W_o, c, W_2):
    columns = [torch.relu(torch.cat([PE, r[:, j : j + 1]], 1) @ W_o.T + c) @ W_2 for j in range(r.shape[1])]
    return torch.stack(columns, 1)


def tupe_with_masks(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    d = W_Q.shape[-1]
    v = torch.matmul(p @ U_Q, (p @ U_K).t()) / (2 * d) ** 0.5 + b
    cls = torch.arange(len(p)) == 0
    v = v.masked_fill(cls[None, :], theta[1].item()).masked_fill(cls[:, None], theta[0].item())
    return torch.einsum("bid,bjd->bij", x @ W_Q, x @ W_K) / (2 * d) ** 0.5 + v.unsqueeze(0)


def tupe_assembled(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    d = W_Q.shape[1]
    inner = (p[1:] @ U_Q) @ (p[1:] @ U_K).T / math.sqrt(2 * d) + b[1:, 1:]
    v = torch.nn.functional.pad(inner, (1, 0), value=float(theta[1]))
    v = torch.cat([torch.full((1, len(p)), float(theta[0]), dtype=v.dtype), v])
    return torch.stack([(text @ W_Q) @ (text @ W_K).T / math.sqrt(2 * d) + v for text in x])


RIGHT = {
    "memory_scores": (memory_term_by_term, memory_by_shifting),
    "moved_mass": (moved_row_by_row, moved_with_a_bias),
    "paint_head": (painted_by_rules, painted_from_the_picture),
    "concat_bias": (concat_stacked_by_repeat, concat_key_by_key),
    "tupe_scores": (tupe_with_masks, tupe_assembled),
}


@pytest.mark.parametrize("name, answer", [(name, answer) for name, both in RIGHT.items() for answer in both])
def test_another_style_is_right(name, answer):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert verdict.kind == "right", verdict.text


def test_whoever_leaves_out_theta_1_has_seen_the_point():
    def answer(x, p, W_Q, W_K, U_Q, U_K, b, theta):
        v = (p @ U_Q) @ (p @ U_K).T / math.sqrt(2 * W_Q.shape[1]) + b
        v = torch.where(torch.arange(len(p))[None] == 0, theta[1], v)
        v = torch.where(torch.arange(len(p))[:, None] == 0, torch.zeros_like(v), v)
        return (x @ W_Q) @ (x @ W_K).mT / math.sqrt(2 * W_Q.shape[1]) + v

    for seed in SEEDS:
        verdict = check("tupe_scores", answer, seed)
        assert verdict.kind == "equivalent" and "softmax" in verdict.text


# ---- wrong, and known ----


def moved_without_mask(scores, term, allowed):
    old, new = torch.softmax(scores, -1), torch.softmax(scores + term, -1)
    return torch.sum(torch.abs(old - new), -1).mean(-1) * 0.5


def moved_twice(scores, term, allowed):
    return 2 * moved_with_a_bias(scores, term, allowed)


def moved_masked_late(scores, term, allowed):
    old, new = scores.softmax(-1), (scores + term).softmax(-1)
    old, new = (torch.where(allowed, w, torch.zeros_like(w)) for w in (old, new))
    return ((old - new).abs() / 2).sum(2).mean(1)


def moved_at_most(scores, term, allowed):
    mask = torch.where(allowed, 0.0, -torch.inf).to(scores.dtype)
    difference = ((scores + mask).softmax(-1) - (scores + term + mask).softmax(-1)).abs()
    return difference.flatten(1).max(1).values


def painted_changed(keys=lambda s, picture: s, offsets=lambda t, picture: t, **options):
    def answer(picture, n):
        s, t = painted_by_rules(picture, n, **options)
        return keys(list(s), picture), offsets(list(t), picture)

    return answer


def painted_query_minus_key(picture, n):
    s, t = painted_by_rules(picture, n)
    return s, t[::-1].copy()


def painted_from_offset_0(picture, n):
    s, t = painted_by_rules(picture, n)
    return s, np.concatenate([t[n - 1 :], t[: n - 1]])


def painted_keys_only(picture, n):
    return painted_by_rules(picture, n)[0], [0.0] * (2 * n - 1)


def painted_with_log2(picture, n):
    return painted_by_rules(picture, n, base=2)


def painted_with_8(picture, n):
    s, t = painted_by_rules(picture, n)
    return ([8] + s[1:] if picture == "fading" else s), t


def concat_without_bend(PE, r, W_o, c, W_2):
    Lq, Lk = r.shape
    stack = torch.cat([PE[:, None].repeat(1, Lk, 1), r.unsqueeze(-1)], 2)
    return (torch.nn.functional.linear(stack, W_o) + c) @ W_2


def concat_two_layers_apart(PE, r, W_o, c, W_2):
    hidden = (PE @ W_o[:, :-1].T).clamp(min=0)[:, None] + (r[..., None] * W_o[:, -1] + c).clamp(min=0)
    return torch.einsum("ijh,h->ij", hidden, W_2)


def concat_c_on_both(PE, r, W_o, c, W_2):
    places = torch.nn.functional.linear(PE, W_o[:, :-1], c)
    offsets = torch.nn.functional.linear(r[..., None], W_o[:, -1:], c)
    return torch.relu(places[:, None, :] + offsets) @ W_2


def tupe_plain_scale(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    return _tupe_by_hand(x, p, W_Q, W_K, U_Q, U_K, b, theta, 1)


def _tupe_by_hand(x, p, W_Q, W_K, U_Q, U_K, b, theta, terms):
    root = (terms * W_Q.shape[1]) ** 0.5
    v = (p @ U_Q) @ (p @ U_K).T / root + b
    v[1:, 0] = theta[1]
    v[0, :] = theta[0]
    return (x @ W_Q) @ (x @ W_K).mT / root + v


def tupe_tied(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    return _tupe_by_hand(x, p, W_Q, W_K, W_Q, W_K, b, theta, 2)


def tupe_thetas_swapped(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    return _tupe_by_hand(x, p, W_Q, W_K, U_Q, U_K, b, theta.flip(0), 2)


def tupe_column_last(x, p, W_Q, W_K, U_Q, U_K, b, theta):
    v = (p @ U_Q) @ (p @ U_K).T / (2 * W_Q.shape[1]) ** 0.5 + b
    v[0, :] = theta[0]
    v[:, 0] = theta[1]
    return (x @ W_Q) @ (x @ W_K).mT / (2 * W_Q.shape[1]) ** 0.5 + v


KNOWN = [
    ("memory_scores", memory_changed(far=lambda i, j: i - i[0] - j), "distance without the memory"),
    (
        "memory_scores",
        memory_changed(order=lambda memory, x: torch.cat([x, memory])),
        "memory behind the segment",
    ),
    ("memory_scores", memory_changed(swap=True), "u and v exchanged"),
    (
        "memory_scores",
        memory_changed(hidden=lambda i, j: j > i - i[0]),
        "the mask of a text that begins here",
    ),
    ("memory_scores", memory_changed(root=lambda x, k: 1.0), "scale forgotten"),
    ("memory_scores", memory_changed(far=lambda i, j: i - j + 1), "one step too far"),
    ("moved_mass", moved_without_mask, "mask forgotten"),
    ("moved_mass", moved_twice, "mass counted twice"),
    ("moved_mass", moved_masked_late, "mask after the softmax"),
    ("moved_mass", moved_at_most, "largest change"),
    ("paint_head", painted_query_minus_key, "offsets turned round"),
    ("paint_head", painted_from_offset_0, "offset 0 at the beginning"),
    ("paint_head", painted_keys_only, "nothing for the offsets"),
    ("paint_head", painted_with_log2, "logarithm to the base 2"),
    ("paint_head", painted_with_8, "8 in place of its logarithm"),
    ("concat_bias", concat_without_bend, "no relu at all"),
    ("concat_bias", concat_two_layers_apart, "relu before the sum"),
    ("concat_bias", concat_c_on_both, "c added twice"),
    ("tupe_scores", tupe_plain_scale, "scaled for one term"),
    ("tupe_scores", tupe_tied, "places through the words' matrices"),
    ("tupe_scores", tupe_thetas_swapped, "the two numbers exchanged"),
    ("tupe_scores", tupe_column_last, "the corner belongs to the column"),
]


@pytest.mark.parametrize("name, answer, mistake", KNOWN)
def test_a_known_mistake_in_other_words_has_its_name(name, answer, mistake):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert (verdict.kind, verdict.name) == ("mistake", mistake), verdict.text


# ---- wrong, and in no catalogue ----


def moved_changed(
    weights=lambda e, ok: e.masked_fill(~ok, -math.inf).softmax(-1),
    end=lambda new, old: (new - old).abs().sum(-1).mean(-1) / 2,
):
    return lambda scores, term, ok: end(weights(scores + term, ok), weights(scores, ok))


def concat_changed(**changes):
    def answer(PE, r, W_o, c, W_2):
        given = dict(PE=PE, r=r, W_o=W_o, c=c, W_2=W_2)
        given |= {name: change(given) for name, change in changes.items()}
        return concat_key_by_key(**given)

    return answer


def tupe_changed(**changes):
    def answer(*args):
        names = ("x", "p", "W_Q", "W_K", "U_Q", "U_K", "b", "theta")
        given = dict(zip(names, args, strict=True))
        given |= {name: change(given) for name, change in changes.items()}
        return tupe_assembled(**given)

    return answer


UNKNOWN = {
    "memory_scores": {
        "mask one too far": memory_changed(hidden=lambda i, j: j > i + 1),
        "own place hidden": memory_changed(hidden=lambda i, j: j >= i, or_first=True),
        "distance halved": memory_changed(far=lambda i, j: (i - j) // 2),
        "newest memory only": memory_changed(hidden=lambda i, j: (j > i) | (j < i[0] - 1)),
        "divided by d_h": memory_changed(root=lambda x, k: k.shape[1]),
        "weights": lambda *args: memory_term_by_term(*args).softmax(-1),
        "nothing but the memory": memory_changed(hidden=lambda i, j: (j > i) | (j >= i[0]) & (j < i)),
    },
    "moved_mass": {
        "natural units": moved_changed(end=lambda new, old: (new * (new / old).log()).sum(-1).mean(-1)),
        "squares rooted": moved_changed(end=lambda new, old: (new - old).norm(dim=-1).mean(-1) / 2),
        "mean of heads": moved_changed(end=lambda new, old: (new - old).abs().sum(-1).mean() / 2),
        "per query": moved_changed(end=lambda new, old: (new - old).abs().sum(-1) / 2),
        "first query left out": moved_changed(
            end=lambda new, old: (new - old)[:, 1:].abs().sum(-1).mean(-1) / 2
        ),
        "sigmoid": moved_changed(lambda e, ok: e.sigmoid() * ok),
        "percent": moved_changed(end=lambda new, old: 50 * (new - old).abs().sum(-1).mean(-1)),
        "median": moved_changed(end=lambda new, old: (new - old).abs().sum(-1).median(-1).values / 2),
    },
    "paint_head": {
        "keys from the end": painted_changed(lambda s, picture: s[::-1]),
        "three back": painted_changed(offsets=lambda t, picture: t[-1:] + t[:-1]),
        "half of the length": lambda picture, n: painted_by_rules(picture, n // 2 + 1),
        "weights for scores": lambda picture, n: ([1.0] + [0.0] * (n - 1), [0.0] * (2 * n - 1)),
        "hardly any contrast": painted_changed(high=1.0),
        "not a number": painted_changed(lambda s, picture: [math.inf] * len(s)),
        "a matrix": lambda picture, n: torch.eye(n),
        "four times the first": painted_changed(
            lambda s, picture: [math.log(4)] + s[1:] if picture == "fading" else s
        ),
    },
    "concat_bias": {
        "c with another sign": concat_changed(c=lambda g: -g["c"]),
        "W_2 with another sign": concat_changed(W_2=lambda g: -g["W_2"]),
        "queries reversed": concat_changed(PE=lambda g: g["PE"].flip(0)),
        "r without sign": concat_changed(r=lambda g: g["r"].abs()),
        "first place for all": concat_changed(PE=lambda g: g["PE"].mean(0, keepdim=True).expand_as(g["PE"])),
        "weights": lambda *args: concat_key_by_key(*args).softmax(-1),
        "leaky": lambda PE, r, W_o, c, W_2: (
            torch.nn.functional.leaky_relu((PE @ W_o[:, :-1].T)[:, None] + r[..., None] * W_o[:, -1] + c, 0.1)
            @ W_2
        ),
        "r added": lambda PE, r, *rest: concat_key_by_key(PE, r, *rest) + r,
    },
    "tupe_scores": {
        "one text for all": tupe_changed(x=lambda g: g["x"][-1:].expand_as(g["x"]) * 1.01),
        "bias transposed": tupe_changed(b=lambda g: g["b"].T),
        "bias left out": tupe_changed(b=lambda g: 0 * g["b"]),
        "places left out": tupe_changed(U_Q=lambda g: 0 * g["U_Q"]),
        "one U for both": tupe_changed(U_K=lambda g: g["U_Q"]),
        "θ_2 with another sign": tupe_changed(theta=lambda g: g["theta"] * torch.tensor([1, -1])),
        "θ_2 forgotten": tupe_changed(theta=lambda g: 0 * g["theta"]),
        "weights": lambda *args: tupe_assembled(*args).softmax(-1),
        "places of the second token reset": lambda *args: tupe_assembled(
            *args[:1], args[1].roll(1, 0), *args[2:]
        ),
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
    notebook = nbformat.read(exercises.path("ex05_hybrid", "exercises"), 4)
    code = next(cell.source for cell in notebook.cells if "def concat_bias(" in cell.source)
    space = {"torch": torch, "math": math}
    exec(code, space)
    verdict = check("concat_bias", space["concat_bias"], 3)
    assert verdict.name == "relu before the sum"


@pytest.mark.parametrize("question", questions.load("05"), ids=lambda question: question.name)
def test_no_variant_is_right_because_it_raises(question):
    for variant in question.variants:
        outcomes = collect(variant.answer, [case.args for case in question.cases(2)])
        assert {outcome["kind"] for outcome in outcomes} == {"value"}, variant.name
