"""Exercise 10 as learners answer it: in their own words, right and wrong."""

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

SEEDS = (4, 50)


def check(name, answer, seed):
    question = questions.find(name)
    return judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]))


# ---- gates ----
def bias_by_einsum(gates, queries):
    """A table of ones where a gate stands between key and query."""
    n = gates.size(1)
    i, j, token = (torch.arange(n).view(shape) for shape in ((-1, 1, 1), (1, -1, 1), (1, 1, -1)))
    between = ((token > j) & (token <= i)).to(gates.dtype)
    return (
        torch.einsum("hl,ijl->hij", torch.log(gates), between)
        + torch.full((n, n), -math.inf).triu(1).to(gates.dtype)
    )[:, n - queries :]


def bias_with_numpy(gates, queries):
    total = np.log(gates.numpy()).cumsum(1)
    bias = total[:, -queries:, None] - total[:, None]
    n = gates.shape[1]
    bias[:, np.arange(n)[None] > np.arange(n - queries, n)[:, None]] = -np.inf
    return torch.from_numpy(bias)


def bias_key_included(gates, queries):
    total = F.pad(gates.log().cumsum(1), (1, 0))
    n = gates.shape[1]
    bias = total[:, n - queries + 1 :, None] - total[:, None, :-1]
    return bias + torch.full((queries, n), -math.inf).triu(n - queries + 1)


def bias_by_products(gates, queries):
    p, n = torch.cumprod(gates, 1), gates.shape[1]
    bias = torch.log(p[:, n - queries :, None] / p[:, None])
    return torch.where(torch.ones(queries, n).tril(n - queries) > 0, bias, -math.inf)


def bias_not_masked(gates, queries):
    total = gates.log().cumsum(1)
    return total[:, -queries:, None] - total[:, None]


# ---- temperature ----
def tempered_in_float64(q, positions, layer, config):
    alpha = config["attn_scale"] if config["attn_temperature_tuning"] else 0.0
    alpha = alpha * (1 - config["no_rope_layers"][layer])
    c = 1 + alpha * torch.log1p((positions.double() + 1) // config["floor_scale"])
    return torch.einsum("bhld,bl->bhld", q.double(), c).to(q.dtype)


def tempered_by_the_name(q, positions, layer, config):
    skip = bool(config["no_rope_layers"][layer])
    if not (skip and config["attn_temperature_tuning"]):
        return q
    c = 1 + config["attn_scale"] * ((positions + 1) // config["floor_scale"]).float().log1p()
    return (q * c.unsqueeze(1).unsqueeze(-1)).type_as(q)


def tempered_off_by_one(q, positions, layer, config):
    return tempered_in_float64(q, positions - 1, layer, config)


def tempered_a_layer_late(q, positions, layer, config):
    return tempered_in_float64(q, positions, layer - 1, config)


def tempered_downwards(q, positions, layer, config):
    c = tempered_in_float64(torch.ones_like(q, dtype=torch.float64), positions, layer, config)
    return (q.double() / c).to(q.dtype)


# ---- dials ----
def dials_by_pairs(config):
    out = torch.zeros(config["num_hidden_layers"], 3)
    for n in range(len(out)):
        listed = config["layer_types"]
        last = (n + 1) % config["sliding_window_pattern"] == 0
        kind = listed[n] if listed else "full_attention" if last else "sliding_attention"
        out[n, 0] = config["sliding_window"] * (kind == "sliding_attention")
        if (rope := config["rope_parameters"][kind]) is None:
            continue
        pairs = int(rope.get("partial_rotary_factor", 1) * config["head_dim"] / 2)
        of = config["head_dim"] / 2 if rope["rope_type"] == "proportional" else pairs
        out[n, 1], out[n, 2] = pairs, 2 * torch.pi * rope["rope_theta"] ** ((pairs - 1) / of)
    return out


def dials_of_partial_heads(config):
    """Whatever the type, what turns is a head of its own."""
    changed = {
        kind: rope and rope | {"rope_type": "default"} for kind, rope in config["rope_parameters"].items()
    }
    return dials_by_pairs(config | {"rope_parameters": changed})


def dials_from_zero(config):
    every = config["sliding_window_pattern"]
    kinds = config["layer_types"] or [
        "sliding_attention" if n % every else "full_attention" for n in range(config["num_hidden_layers"])
    ]
    return dials_by_pairs(config | {"layer_types": kinds})


# ---- axes ----
def angles_by_dealing(positions, sections, base, interleaved):
    left, order = list(sections), []
    while sum(left):
        for axis in range(len(left)):
            take = min(1 if interleaved else left[axis], left[axis])
            order += [axis] * take
            left[axis] -= take
    theta = torch.tensor([base ** (-t / len(order)) for t in range(len(order))])
    return torch.stack([positions[:, axis] * theta[t] for t, axis in enumerate(order)], -1)


def angles_with_a_mask(positions, sections, base, interleaved):
    n, pairs = len(sections), sum(sections)
    t = torch.arange(pairs)
    if interleaved:
        axis = torch.where(t < n * torch.tensor(sections)[t % n], t % n, 0)
    else:
        axis = torch.repeat_interleave(torch.arange(n), torch.tensor(sections))
    return positions.double().gather(1, axis.expand(len(positions), -1)) / base ** (2 * t / (2 * pairs))


def angles_axial(positions, sections, base, interleaved):
    parts = [positions[:, axis, None] * base ** (-torch.arange(n) / n) for axis, n in enumerate(sections)]
    if not interleaved:
        return torch.cat(parts, 1)
    taken, out = [0] * len(sections), []
    for t in range(sum(sections)):
        axis = t % len(sections)
        axis = axis if taken[axis] < sections[axis] else 0
        out.append(parts[axis][:, taken[axis]])
        taken[axis] += 1
    return torch.stack(out, 1)


def angles_in_blocks(positions, sections, base, interleaved):
    return angles_by_dealing(positions, sections, base, False)


# ---- a sink ----
def sink_by_gate(q, k, v, sinks, window):
    G = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(G, 1), v.repeat_interleave(G, 1)
    j = torch.arange(k.shape[2])
    i = j[k.shape[2] - q.shape[2] :, None]
    seen = (j <= i) & (i - j < (window if window else 10**9))
    s = torch.where(seen, torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5, -torch.inf)
    share = torch.sigmoid(torch.logsumexp(s, -1) - sinks[:, None])
    return torch.einsum("bhqk,bhkd->bhqd", torch.softmax(s, -1), v) * share[..., None]


def sink_turned(q, k, v, sinks, window):
    return sink_by_gate(q, k, v, -sinks, window)


def sink_grouped(q, k, v, sinks, window):
    """The groups as an axis of their own."""
    B, H, n, d = q.shape
    q = q.view(B, k.shape[1], -1, n, d)
    s = q @ k[:, :, None].mT / math.sqrt(d)
    far = torch.arange(k.shape[2] - n, k.shape[2])[:, None] - torch.arange(k.shape[2])
    s = s.masked_fill((far < 0) | ((far >= window) & (window > 0)), -torch.inf)
    s = torch.cat([sinks.view(k.shape[1], -1, 1, 1).expand(B, -1, -1, n, 1), s], -1)
    return (s.softmax(-1)[..., 1:] @ v[:, :, None]).reshape(B, H, n, d)


def sink_scaled_too(q, k, v, sinks, window):
    return sink_by_gate(q, k, v, sinks / q.shape[-1] ** 0.5, window)


def sink_tiled(q, k, v, sinks, window):
    times = q.shape[1] // k.shape[1]
    return sink_by_gate(q, k.tile(1, times, 1, 1), v.tile(1, times, 1, 1), sinks, window)


def sink_off_by_one(q, k, v, sinks, window):
    return sink_by_gate(q, k, v, torch.zeros_like(sinks), window)


RIGHT = {
    "forget_bias": (bias_by_einsum, bias_with_numpy),
    "tempered_queries": (tempered_in_float64,),
    "layer_dials": (dials_by_pairs,),
    "grid_angles": (angles_with_a_mask,),
    "sink_attention": (sink_by_gate, sink_grouped),
}

NAMED = {
    "forget_bias": {
        bias_key_included: "the key's own gate counts",
        bias_by_products: "a quotient of products",
        bias_not_masked: "future not hidden",
    },
    "tempered_queries": {
        tempered_by_the_name: "the flag read by its name",
        tempered_off_by_one: "a position late",
        tempered_a_layer_late: "layers counted from 1",
        tempered_downwards: "divided, not multiplied",
    },
    "layer_dials": {
        dials_of_partial_heads: "p-RoPE taken for partial rotation",
        dials_from_zero: "pattern counted from 0",
    },
    "grid_angles": {
        angles_axial: "fast pairs for each axis anew",
        angles_in_blocks: "chunked in both",
        angles_by_dealing: "a finished axis is skipped",
    },
    "sink_attention": {
        sink_scaled_too: "the sink is scaled",
        sink_tiled: "grouped heads tiled",
        sink_off_by_one: "a sink of 0 for all",
        sink_turned: "the sign of the sink",
    },
}

#: Wrong, and in no catalogue.
OTHER = {
    "forget_bias": {
        "half of it": lambda g, n: bias_with_numpy(g.sqrt(), n),
        "limited to five steps": lambda g, n: (
            bias_with_numpy(g, n).clamp(min=-5).where(bias_with_numpy(g, n).isfinite(), -math.inf)
        ),
        "heads in reverse order": lambda g, n: bias_with_numpy(g.flip(0), n),
        "text in reverse order": lambda g, n: bias_with_numpy(g.flip(1), n),
    },
    "tempered_queries": {
        "a step too high": lambda q, p, n, c: tempered_in_float64(q, p + c["floor_scale"], n, c),
        "squared": lambda q, p, n, c: tempered_in_float64(tempered_in_float64(q, p, n, c), p, n, c),
        "first channel only": lambda q, p, n, c: torch.cat(
            [tempered_in_float64(q, p, n, c)[..., :1], q[..., 1:]], -1
        ),
        "the mean position": lambda q, p, n, c: tempered_in_float64(
            q, p.float().mean(1, keepdim=True).long().expand_as(p), n, c
        ),
    },
    "layer_dials": {
        "half of the window": lambda c: dials_by_pairs(c) * torch.tensor([0.5, 1, 1]),
        "half of the pairs": lambda c: dials_by_pairs(c) * torch.tensor([1, 0.5, 1]),
        "columns swapped": lambda c: dials_by_pairs(c)[:, [1, 0, 2]],
        "layers in reverse order": lambda c: dials_by_pairs(c).flip(0),
    },
    "grid_angles": {
        "degrees": lambda *x: angles_by_dealing(*x) * 180 / math.pi,
        "positions from 0": lambda p, *x: angles_by_dealing(p - p.amin(0), *x),
        "a turn at most": lambda *x: angles_by_dealing(*x) % (2 * math.pi),
        "next axis": lambda p, *x: angles_by_dealing(p.roll(1, 1), *x),
    },
    "sink_attention": {
        "twice the sink": lambda q, k, v, s, w: sink_by_gate(q, k, v, 2 * s, w),
        "keys for values": lambda q, k, v, s, w: sink_by_gate(q, k, k, s, w),
        "window twice as wide": lambda q, k, v, s, w: sink_by_gate(q, k, v, s, 2 * w),
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
    """Whether the query's own gate counts, no softmax sees."""

    def without_it(gates, queries):
        return bias_with_numpy(gates, queries) - gates.log()[:, -queries:, None]

    verdict = check("forget_bias", without_it, 3)
    assert verdict.kind == "equivalent" and "the query's own gate" in verdict.text


def test_the_broken_code_that_students_get_is_named():
    notebook = nbformat.read(exercises.path("ex10_frontier", "exercises"), as_version=4)
    code = next(
        cell.source for cell in notebook.cells if "answer:tempered_queries" in cell.metadata.get("tags", [])
    )
    space = {"torch": torch, "math": math}
    exec(code, space)
    for seed in SEEDS:
        assert check("tempered_queries", space["tempered_queries"], seed).name == "as it was given"
