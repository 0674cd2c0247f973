# ruff: noqa: E501
"""Wrong answers as students write them: one place of a model answer, and what stands there instead.

``python -m workshop.benchmarks.slips`` lets the checks judge all of them, and counts what comes back: a name
(mistake, or near: the right answer but for one change), a symptom (only the numbers say what is wrong), the own
words of a question, a message about a kind, a shape or an error, or, in a hole, a pass.
``--show`` prints every text, to be read by a person.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator

from course.checks import questions

from .mistakes import cells_of, space_of, verdicts

SEEDS = (1, 20)

#: question: (what the model answer says, what the slip says); several places of one answer stand behind " ;; "
SLIPS: dict[str, tuple[tuple[str, str], ...]] = {
    "pool_tokens": (
        ("weight.sum(dim=1)", "h.shape[1]"),
        ("dim=1) / weight", "dim=0) / weight"),
        ("weight.sum(dim=1)", "weight.sum()"),
        ("(h * weight).sum(dim=1) / weight.sum(dim=1)", "h.mean(dim=1)"),
        ("(h * weight).sum(dim=1) / weight.sum(dim=1)", "(h * weight).mean(dim=1)"),
        ("/ weight.sum(dim=1)", "/ (weight.sum(dim=1) - 1)"),
        ("is_token[..., None]", "(~is_token)[..., None]"),
        (
            "(h * weight).sum(dim=1) / weight.sum(dim=1)",
            "h.masked_fill(~is_token[..., None], -9e9).amax(dim=1)",
        ),
    ),
    "causal_attention": (
        (" > q_positions", " >= q_positions"),
        (" > q_positions", " < q_positions"),
        ("/ q.shape[-1] ** 0.5", ""),
        ("/ q.shape[-1] ** 0.5", "/ q.shape[-1]"),
        ("/ q.shape[-1] ** 0.5", "/ q.shape[0] ** 0.5"),
        ("softmax(dim=-1)", "softmax(dim=1)"),
        ('scores.masked_fill(future, float("-inf"))', "scores"),
        ('float("-inf")', "0"),
        ('float("-inf")', "-1"),
        ('float("-inf")', 'float("inf")'),
        ('/ q.shape[-1] ** 0.5 ;; scores.masked_fill(future, float("-inf"))', " ;; scores"),
        ("/ q.shape[-1] ** 0.5 ;;  > q_positions", " ;;  >= q_positions"),
        ("k_positions[None, :] > q_positions[:, None]", "k_positions[None, :] > q_positions[:, None] + 1"),
    ),
    "order_errors": (
        ("output[order]", "output[order.argsort()]"),
        (
            "relative(shuffled, output[order]), relative(shuffled, output)",
            "relative(shuffled, output), relative(shuffled, output[order])",
        ),
        (" / expected.abs().max()", ""),
        (".abs().max() /", ".abs().mean() /"),
        (" / expected.abs().max()", " / actual.abs().max()"),
        ("(actual - expected).abs().max()", "(actual - expected).max()"),
        (
            "(actual - expected).abs().max() / expected.abs().max()",
            "((actual - expected) / expected).abs().max()",
        ),
        ("output[order]", "output[:, order]"),
        ("output[order]", "output @ order"),
        ("actual - expected", "actual + expected"),
        (
            "(actual - expected).abs().max() / expected.abs().max()",
            "(actual - expected).norm() / expected.norm()",
        ),
    ),
    "mask_shares": (
        ("dim=1, keepdim=True", "dim=1"),
        ("dim=1, keepdim=True", "dim=0"),
        ("range(layers)", "range(layers - 1)"),
        ("range(layers)", "range(layers + 1)"),
        ("residual * shares + (1 - residual)", "(1 - residual) * shares + residual"),
        ("(1 - residual) * ", ""),
        ("residual * shares + (1 - residual) * ", ""),
        (
            "allowed.float() / allowed.sum(dim=1, keepdim=True)",
            "(allowed | torch.eye(len(allowed)).bool()).float() / (allowed | torch.eye(len(allowed)).bool()).sum(dim=1, keepdim=True)",
        ),
        ("weights = allowed", "allowed |= torch.eye(len(allowed), dtype=torch.bool); weights = allowed"),
        ("allowed.float() /", "allowed.tril().float() /"),
        ("return shares", "return shares.T"),
        ("residual * shares", "residual * torch.eye(len(allowed))"),
        ("allowed.float() / allowed.sum(dim=1, keepdim=True)", "allowed.float().softmax(1)"),
    ),
    "bag_ceiling": (
        ("tuple(sorted(words))", "tuple(words)"),
        ("tuple(sorted(words))", "tuple(sorted(set(words)))"),
        ("max(of_bag.values())", "min(of_bag.values())"),
        ("/ len(answers)", ""),
        ("/ len(answers)", "/ len(counts)"),
        ("tuple(sorted(words))", "sum(words)"),
        ("max(of_bag.values())", "len(of_bag)"),
    ),
    "sinusoid_table": (
        (
            "torch.arange(0, d, 2, dtype=torch.float32) / d",
            "2 * torch.arange(0, d, 2, dtype=torch.float32) / d",
        ),
        (
            "base ** (-torch.arange(0, d, 2, dtype=torch.float32) / d)",
            "base ** -2 * torch.arange(0, d, 2) / d",
        ),
        ("-torch.arange(0, d, 2", "torch.arange(0, d, 2"),
        ("positions[:, None]", "torch.arange(len(positions))[:, None]"),
        ("angle.sin()", "angle.cos()"),
        ("angle.sin() ;; angle[:, : d // 2].cos()", "angle.cos() ;; angle[:, : d // 2].sin()"),
        ("angle = positions[:, None] * omega", "angle = torch.rad2deg(positions[:, None] * omega)"),
        ("positions[:, None]", "(positions[:, None] + 1)"),
        ("positions[:, None]", "positions.half()[:, None]"),
        ("base **", "10000 **"),
    ),
    "sinusoid_add": (
        ("positions.to(exact)", "(positions + 1).to(exact)"),
        ("exact = torch.float32", "exact = x.dtype"),
        (".to(x.dtype)", ""),
        ("10000 **", "1000 **"),
        ("10000 **", "10000 ** 2 *"),
        ("[angle.sin(), angle.cos()]", "[angle.cos(), angle.sin()]"),
        ("+ pe", "* pe"),
        ("flatten(1)", "transpose(1, 2).flatten(1)"),
    ),
    "shift_matrix": (
        ("M[even, even + 1] = angle.sin()", "M[even, even + 1] = -angle.sin()"),
        ("k * base", "base"),
        ("k * base", "-k * base"),
        ("angle.sin()\n", "angle.cos()\n"),
        ("M[even + 1, even] = -angle.sin()", "M[even + 1, even] = angle.sin()"),
        ("-torch.arange(0, d, 2, dtype=torch.float32) / d", "-torch.arange(d // 2) / d"),
        ("M[even, even] = M[even + 1, even + 1] = angle.cos()", "M[even, even] = angle.cos()"),
    ),
    "offset_profile": (
        ("scores.diagonal(r).mean()", "scores.diagonal(r).sum()"),
        ("scores.diagonal(r)", "scores.diagonal(-r)"),
        ("range(1 - n_queries, n_keys)", "range(-n_queries, n_keys)"),
        ("range(1 - n_queries, n_keys)", "range(1 - n_queries, n_keys - 1)"),
        ("range(1 - n_queries, n_keys)", "range(1 - n_keys, n_queries)"),
        ("range(1 - n_queries, n_keys)", "range(n_keys)"),
        ("scores.diagonal(r).mean()", "scores.diagonal(r).sum() / n_keys"),
    ),
    "sinusoid_concat": (
        ("half - 1", "half"),
        ("torch.zeros(len(positions), d % 2)", "torch.ones(len(positions), d % 2)"),
        ("angle.sin(), angle.cos()", "angle.cos(), angle.sin()"),
        ("positions[:, None]", "(positions + 1)[:, None]"),
        ("max(half - 1, 1)", "(half + 1)"),
    ),
    "sum_similarity": (
        (
            "return with_token.mean().item(), with_place.mean().item()",
            "return with_place.mean().item(), with_token.mean().item()",
        ),
        ("sums = E[:, None] + P", "sums = E[:, None] * P"),
        ("with_token.mean()", "with_token.max()"),
        ("with_token.mean()", "with_token.abs().mean()"),
        ("dim=-1)", "dim=0)"),
        ("with_token.mean().item()", "with_token.sum().item()"),
    ),
    "untrained_rows": (
        (" & not_longer", ""),
        ("> 0.999", "< 0.999"),
        ("same_direction & not_longer", "not_longer"),
        ("return same_direction & not_longer", "return ~(same_direction & not_longer)"),
        ("return same_direction & not_longer", "return (start == end).all(1)"),
        ("return same_direction & not_longer", "return F.cosine_similarity(start, end, dim=1).abs() > 0.999"),
    ),
    "longer_table": (
        ("(len(P) - 1) / (rows - 1)", "len(P) / rows"),
        ("(len(P) - 1) / (rows - 1)", "(len(P) - 1) / rows"),
        ("torch.arange(rows) % len(P)", "torch.arange(rows).clamp(max=len(P) - 1)"),
        ("torch.arange(rows) % len(P)", "torch.arange(rows) * len(P) // rows"),
        ("(1 - share) * P[low] + share *", "share * P[low] + (1 - share) *"),
        ("where.long()", "where.round().long()"),
    ),
    "resize_grid": (
        ("align_corners=True", "align_corners=False"),
        ("P[1:].reshape", "P[:-1].reshape"),
        ("size=new", "size=new[::-1]"),
        ("reshape(*old, -1)", "reshape(*old[::-1], -1)"),
        ('mode="bilinear", align_corners=True', 'mode="nearest"'),
        ("torch.cat([P[:1], larger.flatten(1).T])", "larger.flatten(1).T"),
        ("torch.cat([P[:1], larger.flatten(1).T])", "torch.cat([larger.flatten(1).T, P[:1]])"),
        ("flatten(1).T", "transpose(1, 2).flatten(1).T"),
    ),
    "t5_bucket": (
        ("first = (r > 0)", "first = (r < 0)"),
        ("first = (r > 0)", "first = (r >= 0)"),
        ("(-r).clamp(min=0)", "-r"),
        ("(-r).clamp(min=0)", "r.clamp(min=0)"),
        (".clamp(max=n_buckets - 1)", ""),
        (".clamp(max=n_buckets - 1)", ".clamp(max=n_buckets)"),
        ("exact = n_buckets // 2", "exact = n_buckets // 4"),
        ("n_buckets //= 2", "pass"),
        ("(grown * (n_buckets - exact)).long()", "(grown * (n_buckets - exact)).round().long()"),
        ("torch.log(n / exact)", "torch.log((n - 1) / exact)"),
    ),
    "shaw_attention": (
        ("k_positions[None, :] - q_positions[:, None]", "q_positions[:, None] - k_positions[None, :]"),
        ("/ math.sqrt(q.shape[1])", ""),
        ("(e / math.sqrt(q.shape[1]))", "e"),
        ("clamp(-m, m) + m", "clamp(-m, m)"),
        ("e = q @ k.T + torch.einsum", "e = q @ k.T + math.sqrt(q.shape[1]) * torch.einsum"),
        ('alpha @ v + torch.einsum("ij,ijd->id", alpha, w_V[row])', "alpha @ v"),
        ('q @ k.T + torch.einsum("id,ijd->ij", q, w_K[row])', "q @ k.T"),
        ("q, w_K[row]", "q, w_V[row]"),
        ("softmax(-1)", "softmax(0)"),
        ("len(w_K) // 2", "len(w_K) // 2 - 1"),
        ('id,ijd->ij", q', 'jd,ijd->ij", k'),
    ),
    "offset_mass": (
        ("[None, :] - (patch // width)[:, None]", "[:, None] - (patch // width)[None, :]"),
        ("patch // width", "patch // height"),
        ("(total / pairs)", "total"),
        ("down + height - 1", "down + height"),
        ("(2 * width - 1) + right", "(2 * height - 1) + right"),
        ("(total / pairs)", "(total / len(patch))"),
    ),
    "relative_shift": (
        ("n_k - n_q + i + 1", "n_k - n_q + i"),
        ("n_k - n_q + i + 1", "i + 1"),
        ('torch.full_like(x, float("-inf"))', "torch.zeros_like(x)"),
        ("n_k - visible:", ":visible"),
        ("x[..., i, n_k - visible:]", "x[..., i, n_k - visible:].flip(-1)"),
        ("n_k - n_q + i + 1", "n_k - i"),
    ),
    "memory_scores": (
        ('(q + u) @ k.T + torch.einsum("id,ijd->ij", q + v, vectors)', "q @ k.T"),
        (
            '(q + u) @ k.T + torch.einsum("id,ijd->ij", q + v, vectors)',
            'q @ k.T + torch.einsum("id,ijd->ij", q, vectors)',
        ),
        ("(q + u) @ k.T", "q @ k.T"),
        ("i - j", "j - i"),
        ("R[distance.clamp(min=0)] ;; distance < 0", "R[(-distance).clamp(min=0)] ;; distance < 0"),
        ("(q + u) @ k.T", "q @ k.T + (q @ u)[:, None]"),
        ("(q + u)", "(q + v)"),
        ("distance < 0", "distance <= 0"),
        (".masked_fill(distance < 0, -math.inf)", ""),
        ("-math.inf", "0"),
        ("/ math.sqrt(q.shape[1])", ""),
        ("q.shape[1]", "x.shape[1]"),
        ("[memory, x]", "[x, memory]"),
        ("q + v, vectors", "q, vectors"),
        ("i = j[len(memory):, None]", "i = j[:len(x), None]"),
    ),
    "moved_mass": (
        (" / 2", ""),
        (".masked_fill(~allowed, -math.inf)", ""),
        ("~allowed", "allowed"),
        (".sum(-1).mean(-1)", ".mean(-1).mean(-1)"),
        (".abs()", ""),
        (".abs()", ".square()"),
        ("softmax(-1)", "softmax(-2)"),
        ("weights(scores + term) - weights(scores)", "weights(term) - weights(scores)"),
        ("-math.inf", "-1"),
    ),
    "paint_head": (
        ("offset > 0", "offset >= 0"),
        ("t[offset > 0] = -80", "pass"),
        ("s[0] = math.log(8)", "s[0] = 8"),
        ("offset == -2", "offset == 2"),
        ("s[::2] = 40", "s[1::2] = 40"),
        ('80 if picture == "two back" else 40', "40"),
        ('80 if picture == "two back" else 40', "80"),
        ("s, t = torch.zeros(n), torch.zeros(2 * n - 1)", "s, t = torch.zeros(n), torch.zeros(n)"),
        ("return s, t", "return t, s"),
        ("offset * math.log(2)", "offset * 1.0"),
        ("offset * math.log(2)", "-offset * math.log(2)"),
        ("s[::2] = 40", "s[0:9:2] = 40"),
        ("s[::2] = 40", "s[::2] = 4"),
    ),
    "concat_bias": (
        ("torch.relu(places[:, None] + offsets + c)", "(places[:, None] + offsets + c)"),
        ("places[:, None] + offsets + c", "places[:, None] + offsets"),
        ("W_o[:, :-1].T", "W_o[:, 1:].T"),
        ("r[..., None] * W_o[:, -1]", "r[..., None] * W_o[:, 0]"),
        (
            "torch.relu(places[:, None] + offsets + c)",
            "(torch.relu(places)[:, None] + torch.relu(offsets + c))",
        ),
        ("torch.relu(places[:, None] + offsets + c)", "torch.relu(offsets + c)"),
        ("+ c)", "+ 2 * c)"),
    ),
    "tupe_scores": (
        ("2 * W_Q.shape[1]", "W_Q.shape[1]"),
        ("2 * W_Q.shape[1]", "2 * W_Q.shape[0]"),
        ("* scale + b", "* scale"),
        ("places[:, 0] = theta[1]", "pass"),
        ("= theta[1] ;; [0] = theta[0]", "= theta[0] ;; [0] = theta[1]"),
        (
            "places[:, 0] = theta[1]\n    places[0] = theta[0]",
            "places[0] = theta[0]\n    places[:, 0] = theta[1]",
        ),
        ("return words + places", "return words"),
        ("* scale + b", "* scale - b"),
        ("(p @ U_Q) @ (p @ U_K).T", "(p @ U_K) @ (p @ U_Q).T"),
    ),
    "rope_angles": (
        ("torch.arange(0, dim, 2)", "torch.arange(dim // 2)"),
        (
            "base ** (-torch.arange(0, dim, 2).float() / dim)",
            "base ** -2 * torch.arange(dim // 2).float() / dim",
        ),
        ("-torch.arange", "torch.arange"),
        ("positions[:, None].float() * theta", "torch.rad2deg(positions[:, None].float() * theta)"),
        ("positions[:, None]", "torch.arange(1, len(positions) + 1)[:, None]"),
        ("positions[:, None]", "(positions - positions[0])[:, None]"),
        (".float() * theta", ".half() * theta"),
        ("torch.arange(0, dim, 2)", "torch.arange(1, dim, 2)"),
        ("base **", "10000.0 **"),
        ("base **", "math.e **"),
    ),
    "rope_rotate": (
        ("a * cos - b * sin, a * sin + b * cos", "a * cos + b * sin, b * cos - a * sin"),
        (
            "[a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)",
            "[a * cos + b * sin, b * cos - a * sin], -1).flatten(-2)",
        ),
        ('layout == "half"', "True"),
        ('layout == "half"', "False"),
        ('layout == "half"', 'layout != "half"'),
        (".to(x.dtype)", ""),
        ("angles.cos(), angles.sin()", "angles.sin(), angles.cos()"),
        ("-1).flatten(-2)", "-2).flatten(-2)"),
        ("angles.cos(), angles.sin()", "angles.to(x.dtype).cos(), angles.to(x.dtype).sin()"),
    ),
    "rope_shift_error": (
        (
            '"interleaved") @ rope_rotate(k, angles, "interleaved")',
            '"interleaved") @ rope_rotate(k, angles, "half")',
        ),
        (".abs().amax((-2, -1)) /", ".abs().mean((-2, -1)) /"),
        (" / old.abs().amax((-2, -1))", ""),
        ("/ old.abs()", "/ new.abs()"),
        ("amax((-2, -1))", "amax()"),
        ("(new - old).abs()", "(new - old)"),
        ('rope_rotate(k, angles, "interleaved").mT', "k.mT"),
    ),
    "cached_scores": (
        ("cached.shape[-2] + torch", "torch"),
        ("[cached, turn(k)]", "[turn(cached), turn(k)]"),
        ("[cached, turn(k)]", "[cached, k]"),
        ("[cached, turn(k)]", "[turn(k), cached]"),
        (" / math.sqrt(q.shape[-1])", ""),
        ("turn(q) @", "q @"),
        ("cached.shape[-2] + torch", "cached.shape[-2] + 1 + torch"),
        ("cached.shape[-2] + torch", "cached.shape[-2] - 1 + torch"),
        ('base), "interleaved"', 'base), "half"'),
        ("rope_angles(positions, x.shape[-1], base)", "rope_angles(positions, x.shape[-1], 10000.0)"),
    ),
    "rope_sort_rows": (
        ('target == "half"', 'target != "half"'),
        ("order += range(rotary_dim, head_dim)", "pass"),
        ("channels[0::2] + channels[1::2]", "channels[1::2] + channels[0::2]"),
        ("range(rotary_dim))", "range(head_dim))"),
        ("half = rotary_dim // 2", "half = head_dim // 2"),
        ("unflatten(0, (-1, head_dim))[:, order]", "unflatten(0, (head_dim, -1))[order]"),
    ),
    "alibi_slopes": (
        ("-8 * h / n", "-8 / h"),
        ("-8 * h / n", "-h / n"),
        ("range(1, n + 1)", "range(n)"),
        ("[::2][:missing]", "[:missing]"),
        ("[::2][:missing]", "[1::2][:missing]"),
        ("2 ** (-8 * h / n)", "2 ** (8 * h / n)"),
        ("2 * lower <= n_heads", "2 * lower < n_heads"),
        ("power_of_two(lower) + power_of_two(2 * lower)[::2][:missing]", "power_of_two(n_heads)"),
    ),
    "alibi_bias": (
        ("-slopes", "slopes"),
        ("behind < 0", "behind <= 0"),
        ("behind < 0", "behind > 0"),
        (".masked_fill(behind < 0, -math.inf)", ""),
        ("-math.inf", "0"),
        (
            "q_positions[:, None] - k_positions",
            "torch.arange(len(q_positions))[:, None] - torch.arange(len(k_positions))",
        ),
        ("-slopes[:, None, None] * behind", "-slopes[:, None, None] * behind.abs().log()"),
        ("-math.inf", "-1e4"),
    ),
    "alibi_attention": (
        ("q @ k.mT / math.sqrt(q.shape[-1]) + bias", "(q @ k.mT + bias) / math.sqrt(q.shape[-1])"),
        (" / math.sqrt(q.shape[-1])", ""),
        ("positions[-q.shape[-2]:]", "positions[:q.shape[-2]]"),
        (" + bias", ""),
        (" + bias", " - bias"),
        ("softmax(-1)", "softmax(-2)"),
        (
            "(q @ k.mT / math.sqrt(q.shape[-1]) + bias).softmax(-1)",
            "((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) + bias)",
        ),
        ("return (q", "return 0 / torch.tensor(0.0) * (q"),
    ),
    "mirror_gap": (
        ("dims=(1, 2)", "dims=(1,)"),
        ("dims=(1, 2)", "dims=(0, 1, 2)"),
        ("torch.flip(weights, dims=(1, 2))", "weights.mT"),
        (".max(dim=1).values", ".mean(dim=1)"),
        ("bias.softmax(dim=-1)", "bias"),
        ("bias.softmax(dim=-1)", "bias.softmax(dim=1)"),
        (".flatten(1).max(dim=1).values", ".flatten(1).sum(dim=1)"),
    ),
    "xpos_scores": (
        (
            "x[..., 0::2], x[..., 1::2] ;; torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1) ;; [..., None]).flatten(-2)",
            "x.chunk(2, -1) ;; torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1) ;; .repeat(1, 2))",
        ),
        ("(2 * t / d + gamma)", "(2 * t / d)"),
        ("sign * place / scale_base", "sign * place"),
        ("base ** (-2 * t / d)", "base ** (-t / d)"),
        ("(2 * t / d + gamma)", "(t / d + gamma)"),
        (" / (1 + gamma)", ""),
        ("k_positions[-1]", "0"),
        ("positions - k_positions[-1]", "positions.double()"),
        ("k_positions[-1]", "positions[0]"),
        ("q_positions, 1) ;; k_positions, -1)", "q_positions, -1) ;; k_positions, 1)"),
        ("sized(k, k_positions, -1)", "sized(k, k_positions, 1)"),
        (" / d ** 0.5", ""),
        (".masked_fill(k_positions > q_positions[:, None], -math.inf)", ""),
        ("k_positions > q_positions", "k_positions >= q_positions"),
        ("a * cos - b * sin, a * sin + b * cos", "a * cos + b * sin, b * cos - a * sin"),
        ("base ** (-2 * t / d)", "base ** -2 * t / d"),
        ("(2 * t / d + gamma) / (1 + gamma)", "2 * t / d + gamma / (1 + gamma)"),
        ("place / scale_base", "place / 512"),
    ),
    "axis_angles": (
        ("positions / stretch", "positions.half() / stretch.half()"),
        ("positions / stretch", "positions * stretch"),
        ("positions / stretch", "positions.float()"),
        ("fractions = positions / stretch", "positions -= positions.min(); fractions = positions / stretch"),
        (
            "fractions = positions / stretch",
            "positions *= 1; stretch /= stretch[0]; fractions = positions / stretch",
        ),
        ("dim // (2 * positions.shape[1])", "dim // positions.shape[1]"),
        ("-torch.arange(pairs) / pairs", "-2 * torch.arange(pairs) / pairs"),
        ("-torch.arange(pairs) / pairs", "-torch.arange(pairs) / dim"),
        ("base ** (-torch", "base ** (torch"),
        ("fractions[:, :, None] * theta).flatten(1)", "fractions[:, None] * theta[:, None]).flatten(1)"),
        ("positions / stretch", "positions // stretch"),
        ("base ** (-torch.arange(pairs) / pairs)", "base ** -1 * torch.arange(pairs) / pairs"),
    ),
    "dynamic_ntk_theta": (
        ("max(length / L, 1.0)", "length / L"),
        ("dim / (dim - 2)", "dim / (dim + 2)"),
        ("s ** (dim / (dim - 2))", "s"),
        ("length / L", "L / length"),
        ("-torch.arange(0, dim, 2) / dim", "-torch.arange(dim // 2) / dim"),
        ("-torch.arange(0, dim, 2)", "torch.arange(0, dim, 2)"),
        ("base * s", "base / s"),
        ("stretched_base **", "1 / s * base **"),
    ),
    "dynamic_scores": (
        ("angles[-1]", "angles[0]"),
        ("base, L, n_tokens)", "base, L, L)"),
        (" / math.sqrt(dim)", ""),
        ("angles[-1]", "angles[-1] + now"),
        ("n_tokens)\n", "n_tokens - 1)\n"),
        ("turn(q, angles[-1])", "q"),
    ),
    "yarn_theta": (
        (" / (2 * math.pi)", ""),
        ("(1 - gamma) * theta / s + gamma * theta", "gamma * theta / s + (1 - gamma) * theta"),
        ("torch.clamp((r - alpha) / (beta - alpha), 0, 1)", "(r - alpha) / (beta - alpha)"),
        ("theta / s", "theta * s"),
        ("(r - alpha) / (beta - alpha)", "(r - beta) / (alpha - beta)"),
        ("(r - alpha)", "(r - beta)"),
        ("L * theta", "L / theta"),
    ),
    "ntk_factor": (
        ("< 2 * math.pi", "< 1"),
        ("range(1, dim // 2)", "range(1, dim // 2 - 1)"),
        ("(dim - 2) / (2 * t)", "dim / (2 * t)"),
        ("(new_L / L) ** ((dim - 2) / (2 * t))", "new_L / L"),
        ("max(smallest, (new_L", "min(smallest, (new_L"),
        ("-2 * t / dim", "-t / dim"),
        ("smallest = 1.0", "smallest = 0.0"),
    ),
    "forget_bias": (
        ("gates.log()", "gates.clamp(min=1e-4).log()"),
        ("gates.log()", "gates.clamp(min=1e-6).log()"),
        ("-math.inf", "-1e9"),
        ("-math.inf", "-100"),
        ("gates.log()", "gates.log().half()"),
        ("gates.log()", "(gates + 1e-7).log()"),
        ("gates.log()", "gates.log2()"),
        ("gates.log()", "gates"),
        ("gates.log()", "torch.log1p(gates)"),
        (
            "so_far[:, keys - queries:, None] - so_far[:, None, :]",
            "so_far[:, None, :] - so_far[:, keys - queries:, None]",
        ),
        ("torch.arange(keys - queries, keys)", "torch.arange(queries)"),
        ("gates.log().cumsum(dim=1)", "gates.cumprod(dim=1).log()"),
        ("cumsum(dim=1)", "cumsum(dim=0)"),
        ("> torch.arange(keys - queries", ">= torch.arange(keys - queries"),
        ("-math.inf", "0"),
        ("so_far = gates.log().cumsum(dim=1)", "so_far = gates.log_().cumsum(dim=1)"),
    ),
    "tempered_queries": (
        ("[layer] == 1", "[layer] == 0"),
        ("(positions + 1)", "positions"),
        ("(positions + 1)", "(positions.bfloat16() + 1)"),
        ("(positions + 1)", "(positions.to(q.dtype) + 1)"),
        ("[:, None, :, None]", "[0][:, None]"),
        ("torch.log(1 + steps)", "torch.log(steps)"),
        ("1 + config", "config"),
        (".floor()", ""),
        (".floor()", ".ceil()"),
        ("torch.log(", "torch.log2("),
        (".to(q.dtype)", ""),
        ("q * factor", "q / factor"),
        (' or not config["attn_temperature_tuning"]', ""),
        ("[layer] == 1", "[layer - 1] == 1"),
        ("[layer] == 1 ;; (positions + 1)", "[layer] == 0 ;; positions"),
        ("(positions + 1) ;; [:, None, :, None]", "positions ;; [:1, None, :, None]"),
        ("return (q * factor)", "return (q.mul_(factor))"),
    ),
    "layer_dials": (
        ("rows.append([window, 0, 0.0])", "rows.append([0, 0, 0.0])"),
        (
            'round(head_dim * rope.get("partial_rotary_factor", 1.0))',
            'head_dim // int(1 / rope.get("partial_rotary_factor", 1.0))',
        ),
        ("(i + 1) % n", "i % n"),
        ("(turning - 2) / d", "turning / d"),
        ("2 * math.pi * rope", "rope"),
        ("d = head_dim if rope", "d = turning if rope"),
        ("turning // 2, 2", "turning, 2"),
        ('"sliding_attention" else 0', '"full_attention" else 0'),
        ('config["layer_types"] or ', ""),
        ("(turning - 2) / d", "-(turning - 2) / d"),
        ("(turning - 2) / d", "(turning // 2 - 1) / d"),
        ('.get("partial_rotary_factor", 1.0)', '.get("rope_theta_share", 1.0)'),
        ('config["rope_parameters"][kind]', 'config["rope_parameters"]["full_attention"]'),
    ),
    "grid_angles": (
        ("if interleaved:", "if not interleaved:"),
        ("positions[:, reads]", "positions.half()[:, reads]"),
        ("t // axes < sections[t % axes] else 0", "t // axes < sections[t % axes] else axes - 1"),
        ("t % axes if t // axes < sections[t % axes] else 0", "t % axes"),
        ("-torch.arange(pairs) / pairs", "-torch.arange(pairs) / (2 * pairs)"),
        ("-torch.arange(pairs) / pairs", "-2 * torch.arange(pairs) / pairs"),
        ("base ** (-torch", "base ** (torch"),
        ("-torch.arange(pairs) / pairs", "-torch.arange(1, pairs + 1) / pairs"),
        ("base ** (-torch.arange(pairs) / pairs)", "base ** -2 * torch.arange(pairs) / (2 * pairs)"),
        ("positions[:, reads] *", "positions.sum(1, keepdim=True) *"),
        ("if interleaved:", "if True:"),
        ("if interleaved:", "if False:"),
    ),
    "sink_attention": (
        (
            "[..., :keys] @ v",
            "[..., :keys].div(torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :keys].sum(-1, keepdim=True)) @ v",
        ),
        ("sink = sinks[:, None, None]", "sink = -sinks[:, None, None]"),
        (
            "return torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :keys] @ v",
            "w = (scores - scores.amax(-1, keepdim=True)).exp(); return w @ v / (w.sum(-1, keepdim=True) + sinks[:, None, None].exp())",
        ),
        ("sink = sinks[:, None, None]", "sink = sinks[:, None, None].exp()"),
        ("sink = sinks[:, None, None]", "sink = sinks[:, None, None] / math.sqrt(q.shape[3])"),
        (" / math.sqrt(q.shape[3])", ""),
        ("back >= (window or keys)", "back > (window or keys)"),
        ("back >= (window or keys)", "back >= keys"),
        ("back >= (window or keys)", "back >= window"),
        ("repeat_interleave(shared, dim=1), v", "repeat(1, shared, 1, 1), v"),
        ("(back < 0) | ", ""),
        ("torch.arange(keys - q.shape[2], keys)", "torch.arange(q.shape[2])"),
        ("[scores, sink] ;; [..., :keys]", "[sink, scores] ;; [..., :keys]"),
        ("-math.inf", "0"),
        ("back < 0", "back <= 0"),
        ("torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :keys]", "scores.softmax(dim=-1)"),
        (
            "torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :keys]",
            "(scores + sinks[:, None, None]).softmax(dim=-1)",
        ),
    ),
}


def model(question) -> str:
    """The source of a model answer, without its docstring and the broken code that students get."""
    source = re.sub(r'    """.*?"""\n', "", _cell(question), flags=re.DOTALL)
    return re.sub(r"^ *#.*\n", "", source, flags=re.MULTILINE)


def _cell(question) -> str:
    return next(cell for cell in cells_of(question.exercise) if f"def {question.name}(" in cell)


def docstring(question) -> str:
    """The text that a learner reads above the blank, on one line."""
    return " ".join(_cell(question).split(f"def {question.name}(")[1].split('"""')[1].split())


def slips(question, changes=None) -> Iterator[tuple[str, Callable]]:
    """What was changed, and the answer that came of it; ValueError where the model answer reads otherwise."""
    for old, new in SLIPS.get(question.name, ()) if changes is None else changes:
        source = model(question)
        for before, after in zip(old.split(" ;; "), new.split(" ;; "), strict=True):
            if before not in source:
                raise ValueError(f"{question.name}: the model answer has no {before!r}")
            source = source.replace(before, after)
        space = space_of(question.exercise)
        exec(source, space)
        yield f"{old} → {new}", space[question.name]


def _told(question, verdict) -> str:
    """The kind of a verdict; where a question has words of its own for what is wrong, they are no mere numbers."""
    return "own words" if verdict.kind == "symptom" and question.faults else verdict.kind


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m workshop.benchmarks.slips", description=__doc__)
    parser.add_argument("names", nargs="*", help="questions, or exercises such as 06; by default all")
    parser.add_argument("--show", action="store_true", help="print every text")
    given = parser.parse_args(arguments)
    totals: Counter = Counter()
    for question in questions.everything():
        if given.names and not {question.name, question.exercise} & set(given.names):
            continue
        for what, answer in slips(question):
            found = list(verdicts(question, answer, SEEDS))
            kinds = {"PASSED" if each.passed else _told(question, each) for each in found}
            kind = kinds.pop() if len(kinds) == 1 else "mixed"
            totals[kind] += 1
            if given.show or kind in ("PASSED", "mixed"):
                print(f"{question.name}: {what}\n    {kind} {found[0].name!r}: {found[0].text}", flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in totals.most_common()), f"of {totals.total()}")
    return 1 if totals["PASSED"] or totals["mixed"] else 0


if __name__ == "__main__":
    sys.exit(main())
