"""The numbers of explorers are the library's: all that the browser draws, and all that it says.

For each explorer a function from a setting to the numbers of its views, and to those of its sentences, as
texts, in the order in which they are said. The words are the browser's own.
"""

import functools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch

from tutorial_lib.attention import attention
from tutorial_lib.encodings import (
    ALiBi,
    AsymmetricALiBi,
    ClippedBias,
    Learned,
    Sinusoidal,
    T5Bias,
    TableBias,
    TransformerXL,
    bucket,
)
from tutorial_lib.encodings.rotary import rotate, turn
from tutorial_lib.encodings.scaling import (
    DynamicNTK,
    Frequencies,
    Llama3,
    NTKAware,
    PositionInterpolation,
    YaRN,
)
from tutorial_lib.encodings.sinusoidal import frequencies, sinusoidal
from tutorial_lib.encodings.temperature import ScalableSoftmax, Temperature
from tutorial_lib.explorers import crowd as crowds
from tutorial_lib.explorers import learned as tables
from tutorial_lib.explorers import live
from tutorial_lib.explorers import permutation as orders
from tutorial_lib.explorers import positions as reading
from tutorial_lib.explorers import rotary as turning_pairs
from tutorial_lib.explorers import scaling as models
from tutorial_lib.explorers import scoreboard as board
from tutorial_lib.model import segment_mask
from workshop import front

SIGNED = re.compile(r"[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?")


def gathered(*values):
    """Numbers and texts in one text."""
    return " ".join(str(value) for each in values for value in (each if isinstance(each, list) else [each]))


# ---- 00 ----
def positions(positions, text, word):
    mode, rows = reading.MODES.index(positions), reading.record()[text]
    best = sorted(rows[word][2:], key=lambda guess: -guess[1 + mode])[: reading.SHOWN]
    _comes, on, off = rows[word][2]
    return {
        "text": [[row[2][1 + n] for row in rows] for n in range(2)],
        "next": [guess[1:] for guess in best],
    }, {
        "description": gathered("SmolLM2", [f"{guess[1 + mode]:.3f}" for guess in best[:2]]),
        "reached": gathered(f"{on:.3f}", f"{off:.3f}") if mode and off > on else "",
    }


def attention_of_words(order, mask, sharpness, row, **places):
    x = torch.tensor([[(places[f"{word}_{axis}"] - 20) / 10 for axis in "xy"] for word in order.split()])
    x = x.double()[None, None]
    out, w = attention(x * sharpness, x, x, causal=mask == "causal", backend="eager", return_weights=True)
    out, w = out[0, 0], w[0, 0]
    alike = float(w.max() - w.min()) < 1e-6
    return {"plane": torch.cat([x[0, 0], out[row][None]]).T, "weights": w}, {
        "description": gathered(sharpness, [f"{share:.2f}" for share in [*w[row], *out[row]]]),
        "reached": f"{w.mean():.2f}" if alike else "",
        "weights": f"{w[row].max():.3f}",
    }


# ---- 01 ----
def permutation(order, position, mask, layers):
    model = {"position": position, "mask": mask, "layers": layers}
    rows, before = orders.outputs(order, **model), orders.outputs(orders.ORDERS[0], **model)
    change = torch.stack([rows[word] - before[word] for word in orders.WORDS])
    noticed = float(change[orders.WORDS.index("dog")].abs().max())
    won = position == "none" and order.endswith("dog") and noticed > 1e-9
    output = torch.stack(list(rows.values()))
    return {
        "output": torch.cat([output, output.mean(0, keepdim=True)]),
        "change": torch.cat([change, change.mean(0, keepdim=True)]),
    }, {"description": str(layers), "reached": f"{noticed:.2f}" if won else ""}


# ---- 02 ----
def sinusoids(d_model, positions, base, layout, view, position, dimension):
    pe = sinusoidal(torch.arange(positions).double(), d_model, base=base, layout=layout)
    omega = frequencies(d_model, base=base, layout=layout)
    waves, dots = 2 * math.pi / omega, pe @ pe[position]
    beside = {
        "vector": (range(d_model), pe[position]),
        "wavelengths": (range(len(omega)), waves),
        "similarity": (range(positions), dots),
    }[view]
    told = {
        "vector": position,
        "wavelengths": gathered(f"{waves[0]:.1f}", f"{waves[-1]:,.0f}"),
        "similarity": f"{dots.max():.4g}",
    }[view]
    cosine = torch.cosine_similarity(pe[2:], pe[:1], dim=-1)
    best = int(cosine.argmax())
    top, bottom = (
        (dimension // 2 * 2, d_model)
        if layout == "interleaved"
        else (dimension % (d_model // 2), d_model // 2 - 1)
    )
    return {"table": pe, "beside": beside}, {
        "description": gathered(positions, d_model, base, "−1 +1", position, dimension, told),
        "reached": gathered(best + 2, f"{cosine[best]:.4f}") if cosine[best] >= 0.99 else "",
        "table": gathered(position, dimension, position, base, top, bottom, f"{pe[position, dimension]:.4f}"),
    }


# ---- 03 ----
def learned(name, length, shown, view, look, position, other):
    rows = table(name, length)
    unit = torch.nn.functional.normalize(rows[:shown], dim=-1)
    cosine, norms = (unit @ unit.T).clamp(-1, 1), rows.norm(dim=-1)
    every = max(1, shown // 128)
    if look == "waves":
        hands = torch.view_as_real(hand(name, length, position))
        beside = hands.T
        told = gathered("6 17 57 170 509", [f"{math.hypot(x, y):.1f}" for x, y in hands.tolist()])
    elif view == "cosine":
        beside = [range(shown), cosine[position]]
        told = gathered(position, f"{cosine[position].min():.2f}")
    elif view == "norm":
        start = 0.02 * 384**0.5
        beside = [range(shown), norms[:shown], [start] * shown]
        told = gathered(f"{norms[:shown].min():.2f}", f"{norms[:shown].max():.2f} 0.02 {start:.2f}")
    else:
        last = min(shown, length - 1)
        near = torch.cosine_similarity(rows[:last], rows[1 : last + 1], dim=-1)
        beside, told = [range(last), near], gathered(f"{near.min():.2f}", f"{near.max():.2f}")
    loss = tables.losses()[(512, 1024, 2048).index(length)]
    numbers, inside = [], 0 < position < length - 1
    if inside and norms[position] >= 1.4 * max(norms[position - 1], norms[position + 1]):
        numbers = [
            norms[position],
            norms[position - 1],
            norms[position + 1],
            norms[:position].median(),
            norms[position + 1 :].median(),
        ]
    marked = cosine[position, other]
    return {"cosines": cosine[::every, ::every], "beside": beside}, {
        "description": gathered(
            name,
            length,
            384,
            shown,
            f"{cosine.diagonal(1).mean():z.2f}",
            f"{cosine.diagonal(8).mean():z.2f}",
            "8",
            position,
            f"{norms[position]:.2f}",
            other,
            f"{marked:z.2f}",
            told,
            length // 512 if length > 512 else "",
            f"{loss:.2f}",
        ),
        "reached": gathered(position, [f"{number:.2f}" for number in numbers]) if numbers else "",
        "cosines": gathered(position, other, f"{marked:.4f}"),
    }


@functools.lru_cache(maxsize=4)
@torch.no_grad()
def table(name, length):
    """The table, resized by the library."""
    resized = Learned(512, 384).double()
    resized.table.copy_(original(name))
    return resized.vectors(torch.linspace(0, 511, length, dtype=torch.float64))


@functools.cache
def original(name):
    if name == "MiniLM":
        rows, row, column = tables.rounded()
        return torch.from_numpy(rows * np.outer(row, column))
    if name == "sinusoids":
        return sinusoidal(torch.arange(512).double(), 384)
    state, shares = 19, np.empty(512 * 384)  # xorshift, then Box and Muller
    for n in range(len(shares)):
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        shares[n] = state / 2**32
    one, two = shares.reshape(-1, 2).T
    size = (1.0 if name.endswith("std 1") else 0.02) * np.sqrt(-2 * np.log(one))
    return torch.from_numpy(
        np.stack([size * np.cos(2 * np.pi * two), size * np.sin(2 * np.pi * two)], 1).reshape(512, 384)
    )


@functools.lru_cache(maxsize=4)
def hands(name):
    """The plane of each wave, where the middle of its hands lies, and how long they are."""
    rows = original(name)[1:510]
    place = torch.arange(509).double() / 509
    waves = torch.exp(2j * math.pi * torch.tensor(tables.CYCLES).double()[:, None] * place)
    plane = waves @ rows.to(waves.dtype)
    every = rows.to(waves.dtype) @ plane.T
    return plane, every.mean(0), (every - every.mean(0)).abs().square().mean(0).sqrt()


def hand(name, length, position):
    plane, middle, size = hands(name)
    return (table(name, length)[position].to(plane.dtype) @ plane.T - middle) / size


# ---- 04 ----
@torch.no_grad()
def relative(method, tokens, size, far, sign, view, i, j):
    made = {
        "full table": lambda: TableBias(1, tokens),
        "clipped": lambda: ClippedBias(1, size),
        "T5 buckets": lambda: T5Bias(1, bidirectional=True, n_buckets=2 * size, max_distance=far),
        "ALiBi": lambda: ALiBi(8, symmetric=True),
    }[method]()
    if method == "full table":
        made.W_r[0] = torch.arange(1 - tokens, tokens) / (tokens - 1)
    elif method == "clipped":
        made.b[0] = torch.arange(-size, size + 1) / size
    elif method == "T5 buckets":
        steps = torch.linspace(0, 1, size)
        made.b[0] = torch.cat([-steps, steps])
    else:
        made.n_heads, made.m = 1, (made.m[tokens.bit_length() - 2],)
    turned, p = sign == "i − j", torch.arange(tokens)

    def at(r):
        return made.of(-r if turned else r)[0] + 0.0  # −0 would be shown

    z = made.bias(p, p)[0]
    z = z.mT if turned else z
    looks, line = z[i].double().softmax(-1), at(torch.arange(1 - tokens, tokens))
    value = f"{z[i, j] + 0.0:.2f}"
    (a, b), r = ((i, j), i - j) if turned else ((j, i), j - i)
    found = {
        "full table": f"{a} {b} {tokens - 1} {r + tokens - 1} {value}",
        "clipped": f"{a} {b} {size} {size} {max(-size, min(size, r)) + size} {value}",
        "T5 buckets": gathered(
            a,
            b,
            int(bucket(torch.tensor(r), bidirectional=True, n_buckets=2 * size, max_distance=far)),
            value,
        ),
        "ALiBi": f"{a} {b} −{Fraction(1, tokens)} {abs(r)} {value}",
    }[method]
    numbers = {"full table": 2 * tokens - 1, "clipped": 2 * size + 1, "T5 buckets": 2 * size, "ALiBi": 1}

    def bytes_(n):
        kept = 2 * n - 1 if method == "full table" else numbers[method]
        return [48 * kept, 48 * n**2, 48 * (2 * n - 1)]

    lengths = [2**n for n in range(2, 17)]
    ends = "" if method == "ALiBi" else gathered([f"{line[n]:.2f}" for n in (0, tokens - 2, tokens, -1)])
    sizes = {"clipped": size, "T5 buckets": f"{size} {far}"}.get(method, "")
    past = at(-torch.arange(tokens))
    won = tokens > 90 and past[20] == past[90] and all((past == past[n]).sum() == 1 for n in range(9))
    return {
        "bias": z,
        "beside": [p - i, looks]
        if view == "attention"
        else [lengths, *zip(*map(bytes_, lengths), strict=True)],
    }, {
        "description": gathered(
            "5" if method == "T5 buckets" else "",
            tokens,
            sizes,
            ends,
            2 * tokens - 1,
            len(line.unique()),
            i,
            j,
            found,
            f"{looks[j]:.2f}",
            12,
            [f"{n:,}" for n in bytes_(tokens)],
        ),
        "reached": gathered(numbers[method], 2 * tokens - 1, int((past == past[90]).nonzero()[0]))
        if won
        else "",
        "bias": gathered(i, j, found),
    }


def recurrence(segment, memory, layers, query):
    sees, start = segment_mask(24, segment, memory), query - query % segment
    rows = [torch.arange(24) == query]
    for _layer in range(layers):
        rows.append(sees[rows[-1]].any(0))
    kinds = torch.ones(24)
    kinds[max(0, start - memory) : start], kinds[start:] = 2, 3
    keys, first = sees[query].nonzero().flatten(), int(rows[-1].nonzero()[0])
    R, PE, index = TransformerXL(1, 16).R, Sinusoidal(16).vectors, keys % segment
    near = [R(query - keys) @ R(torch.tensor([0]))[0] / 8, PE(index) @ PE(index[-1:])[0] / 8]
    places, kept = len(index.unique()), layers * memory
    twin = int((index == index[-1]).nonzero()[0])  # of the keys, the first with the query's index
    other = "" if keys[twin] == query else gathered(int(keys[twin]), int(index[twin]))
    won = query == 23 and kept <= 6 and bool(rows[-1][0])

    return {"states": torch.stack(rows) * kinds, "scores": [keys - query, *near]}, {
        "description": gathered(
            segment,
            memory,
            layers,
            query,
            len(keys),
            int(keys[0]),
            layers,
            int(rows[-1].sum()),
            first,
            start,
            layers,
            memory,
            len(keys),
            places,
            "0",
            len(keys) - places or "",
        ),
        "reached": gathered(layers, memory, kept, query, query % segment + memory) if won else "",
        "states": gathered(query, first, query - first, layers),
        "scores": gathered(int(keys[twin]) - query, other),
    }


# ---- 06 ----
def rotary(m, n, pairs, pair, base, layout, turning, content, view):
    made = {
        "all": lambda: Frequencies(2 * pairs, base),
        "p-RoPE": lambda: Frequencies(2 * pairs, base, p=0.5),
        "partial": lambda: Frequencies(2 * pairs, base, rotary_dim=2 * (pairs // 2)),
    }[turning]()
    theta = torch.cat([made.theta(), torch.zeros(pairs - len(made.theta()))])
    a, b = channels(pair, pairs, layout, turning)
    q, k = (x[..., : 2 * pairs] for x in turning_pairs.contents())
    if content == "alike":
        k = q
    elif content != "random":  # a key that stands 8 back meets the query at the same angle
        k = rotate(q, torch.tensor([8.0]), layout=layout, frequencies=made)
    at_m, at_n = (
        rotate(x.expand(1, 1, 41, -1), torch.arange(41).double(), frequencies=made, layout=layout)[0, 0]
        for x in (q, k)
    )
    scores = at_m @ at_n[:33].T
    own = at_m[:, [a, b]] @ at_n[:33, [a, b]].T
    step = math.degrees(theta[pair])
    if view == "score":
        beside, told = [range(33), scores[m], own[m]], int(scores[m].argmax())
    elif view == "angles":
        angles = torch.outer(torch.tensor([m, n, n - m]), theta)
        waves = 2 * math.pi / theta[theta > 0]
        beside = [range(pairs), *torch.rad2deg(torch.atan2(angles.sin(), angles.cos()))]
        told = gathered(0, f"{waves[0]:.1f}", len(waves) - 1, f"{waves[-1]:,.1f}")
    else:
        eighth = math.pi / 4 * (theta > 0)[None, : made.d // 2].double()
        beside = turn(torch.eye(2 * pairs).double()[None, None, :, None], eighth.cos(), eighth.sin(), layout)[
            0, 0, :, 0
        ].T
        told = gathered(a, b)
    except_for = {
        "all": "",
        "partial": gathered(2 * (pairs // 2), 2 * pairs),
        "p-RoPE": gathered(pairs // 2, pairs),
    }[turning]
    score = f"{scores[m, n]:.4f}"
    won = m >= 30 and abs(scores[m, n] - scores[20, 12]) < 1e-9
    ends = torch.stack([at_m[m, [a, b]], at_n[n, [a, b]], q[0, 0, 0, [a, b]], k[0, 0, 0, [a, b]]])
    return {"plane": ends.T, "beside": beside}, {
        "description": gathered(
            m, n, base, except_for, pair, f"{m * step:.1f}", f"{n * step:.1f}", score, n - m, told
        ),
        "reached": gathered(score, m, n, 20, 12, n - m) if won else "",
    }


def channels(pair, pairs, layout, turning):
    """The two channels of a pair; those that stay out of a partial rotation are paired for the picture."""
    first = pairs // 2 if turning == "partial" else pairs
    if pair >= first:
        return tuple(2 * first + c for c in channels(pair - first, pairs - first, layout, "all"))
    return (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + first)


# ---- 07 ----
def alibi(heads, head, length, form, query, key):
    causal, j = form in ("penalty", "released"), torch.arange(length)
    made = AsymmetricALiBi(heads) if form == "asymmetric" else ALiBi(heads, symmetric=form == "symmetric")
    i = torch.zeros_like(j) if form == "released" else j  # the released code counts from the first token
    alike = torch.zeros(1, heads, length, 1).double()
    w = attention(alike, alike, alike, made, i, j, causal=causal, backend="eager", return_weights=True)[1]
    row, bias = w[0, :, query], made.bias(i, j)[head, query] + 0.0  # −0 prints as 0
    seen, masked = query + 1 if causal else length, causal and key > query
    slopes = (
        [made.left[head], made.right[head]]
        if form == "asymmetric"
        else [float(made.m[head])] * (1 if causal else 2)
    )
    horizons = [math.log(10_000) / m for m in slopes]
    marked = [query, key] if masked else [query, f"{bias[key]:.4g}", f"{row[head, key]:.4g}", key]
    return {"bias": [range(seen), bias[:seen]], "weights": row / row.amax(-1, keepdim=True)}, {
        "description": gathered(
            head,
            heads,
            marked,
            "1 10,000",
            [f"{far:,.0f} {m:.4g}" for far, m in zip(horizons, slopes, strict=True)],
        ),
        "reached": gathered(head, heads, f"{slopes[0]:.4f}", f"{horizons[0]:.0f}")
        if 100 <= horizons[0] <= 110
        else "",
        "bias": gathered(query, key, "" if masked else f"{bias[key]:.4g}"),
    }


# ---- 08 ----
def scaling(model, method, s, times, view, pair, loss):
    d, base, L = models.MODELS[model]
    length, larger = int(times * L), 50 if method == "larger base" else 1
    own = model == "Phi-3.5-mini"  # the factors of LongRoPE are one model's
    made = {
        "PI": PositionInterpolation(s),
        "NTK-aware": NTKAware(s),
        "dynamic NTK": DynamicNTK(L, s),
        "YaRN": YaRN(s, L),
        "Llama 3": Llama3(s, L),
        "LongRoPE": models.LONGROPE if own else None,
    }.get(method)
    scaled = Frequencies(d, base * larger, scaling=made)
    theta, new = Frequencies(d, base).theta(), scaled.theta(torch.tensor(length))
    turns, ratio = L * theta / (2 * math.pi), new / theta
    unseen = (turns < 1) & (length * new > L * theta * (1 + 1e-9))
    views = {
        "wavelengths": [range(d // 2), 2 * math.pi / theta, 2 * math.pi / new],
        "beside": [range(d // 2), turns, length * new / (2 * math.pi)]
        if view == "turns"
        else [range(d // 2), ratio],
    }
    told, curve = "", models.heard().get(method, models.heard().get(f"{method} {s:g}"))
    if loss == "shown" and model == "SmolLM2-135M" and curve:
        del views["beside"]
        xs, ys = curve
        views["loss"] = [np.array(xs) / 1000, ys]
        told = (
            gathered("SmolLM2", f"{np.interp(length, xs, ys):.2f}", f"{models.without():.2f}")
            if xs[0] <= length <= xs[-1]
            else gathered("SmolLM2", f"{xs[-1]:,}")
        )
    elif loss == "shown":
        told = "SmolLM2"
    named = {"none": "", "larger base": "50", "LongRoPE": "32" if own else "Phi-3.5-mini"}.get(
        method, gathered(method, s)
    )
    more = "" if scaled.attention_factor == 1 else f"{scaled.attention_factor:.3f}"
    kept, fast = ratio[: d // 8].min(), d // 8
    won = times >= 4 and not unseen.any() and kept >= 0.99
    return views, {
        "description": gathered(
            model,
            d,
            f"{base:,}",
            f"{L:,}",
            named,
            f"{length:,}",
            int((turns < 1).sum()),
            d // 2,
            int(unseen.sum()),
            f"{ratio[0]:.3g}",
            f"{ratio[-1]:.3g}",
            more,
            told,
        ),
        "reached": gathered(f"{length:,}", f"{kept:.2f}", fast, d // 2) if won else "",
    }


# ---- 09 ----
def scoreboard(which, sort, door, shift, longer, row, other):
    params = {"which": which, "sort": sort, "door": door, "shift": shift, "longer": longer}
    seen = board.TITLES if which == "all" else dict.fromkeys([*board.FEW, sort])
    rows, names = board.rows(), board.filtered(params)
    z = [[board.scores(key).get(name, math.nan) for key in board.TITLES] for name in names]
    numbers = [name for name in names if sort in rows[name]]

    def shown(name):
        return gathered(name, board.shown(sort, rows[name].get(sort)))

    ends = [shown(numbers[n]) for n in (0, -1)] if numbers else [""]
    marked = [shown(names[n]) for n in (row, other)] if names else [""]
    found = ""
    if names and all("loss" in rows[names[n]] for n in (row, other)):
        both = [[board.scores(key).get(names[n]) for n in (row, other)] for key in seen]
        both = [(a, b) for a, b in both if a is not None and b is not None]
        if any(a > b for a, b in both) and not any(a < b for a, b in both):
            found = gathered(names[row], names[other], sum(a > b for a, b in both), len(both))
    title = board.TITLES[sort]
    return {"board": z or [[0.0] * len(board.TITLES)]}, {
        "description": gathered(len(names), len(rows), title, *ends, *marked),
        "reached": found,
    }


# ---- 10 ----
def crowd(query, trained, lead, keys):
    def times(query, n):
        last = n.double() - 1
        if query == "Llama 4":
            return Temperature().factor(last)
        scalable = ScalableSoftmax(1).double()
        scalable.s.data.fill_(1 / math.log(trained))
        return scalable.factor(last).detach()[0] if query == "Scalable-Softmax" else torch.ones_like(last)

    n, at, which = torch.tensor(crowds.KEYS), crowds.KEYS.index(keys), crowds.QUERIES.index(query)
    every = torch.stack(
        [torch.sigmoid(times(each, n) * lead - (n.double() - 1).log()) for each in crowds.QUERIES]
    )  # e^ahead / (e^ahead + n − 1)
    mine, factor = every[which], float(times(query, n)[at])
    n = torch.arange(2, crowds.KEYS[-1] + 1)
    below = (times(query, n) * lead < (n.double() - 1).log()).nonzero()
    end = int(n[below[0, 0]]) if len(below) else 0
    again = end and bool((mine[[each > end for each in crowds.KEYS]] >= 0.5).any())
    last = f"{crowds.KEYS[-1]:,}"
    half = f"{end:,}" if again else gathered(f"{end:,}", f"{mine[-1]:.3g}", last) if end else last
    ahead = f"{lead:g}" if query == "as trained" else gathered(f"{lead:g}", two(factor), two(lead * factor))
    enough = math.log(keys - 1)
    won = query == "as trained" and keys == crowds.KEYS[-1] and lead - 0.25 < enough <= lead
    kept = f"{mine[at]:.3g}"
    return {"weights": torch.stack([every[:, at], 1 - every[:, at]], 1), "shares": [crowds.KEYS, *every]}, {
        "description": gathered(
            "4" if query == "Llama 4" else "",
            ahead,
            "" if keys == 2 else f"{keys - 1:,}",
            two(enough),
            kept,
            half,
        ),
        "reached": gathered(f"{lead:g}", f"{mine[-1]:.3f}", f"{lead - 0.25:g}", f"{keys - 1:,}", two(enough))
        if won
        else "",
        "weights": gathered("4" if query == "Llama 4" else "", f"{keys:,}", kept),
        "shares": gathered(f"{keys:,}", kept),
    }


def two(value):
    """Two decimals; a tie goes up."""
    return f"{value + 1e-9:.2f}"


NUMBERS = {
    "alibi": alibi,
    "attention": attention_of_words,
    "crowd": crowd,
    "learned": learned,
    "permutation": permutation,
    "positions": positions,
    "recurrence": recurrence,
    "relative": relative,
    "rotary": rotary,
    "scaling": scaling,
    "scoreboard": scoreboard,
    "sinusoidal": sinusoids,
}


def test_no_explorer_is_left_out():
    """A typed score is worked out in a file of its own: test_explorer_hybrid.py."""
    assert {kind.front for kind in live.everyone()} == {*NUMBERS, "hybrid"}


@pytest.mark.parametrize(
    "kind", [kind for kind in live.everyone() if kind.front in NUMBERS], ids=lambda kind: kind.front
)
def test_the_numbers_are_those_of_the_library(kind):
    won, settings = 0, front.settings(kind)
    for params, said in zip(settings, front.ask(kind, *settings), strict=True):
        views, words = NUMBERS[kind.front](**params)
        assert list(said.views) == list(views)
        for name, view in views.items():
            exact, got = np.array([np.asarray(row, dtype=float) for row in view]), said.views[name]
            assert got.shape == exact.shape, (params, name)
            gap = np.abs(got - exact) / np.maximum(1, np.abs(exact))
            if params.get("view") == "angles":
                gap = np.minimum(gap, np.abs(360 - np.abs(got - exact)))  # −180° is 180°
            assert np.array_equal(np.isnan(got), np.isnan(exact)) and np.nanmax(gap) < 1e-6, (params, name)
        spoken = {"description": said.description, "reached": said.reached, **said.readouts}
        for name, text in spoken.items():
            assert SIGNED.findall(text) == SIGNED.findall(words[name]), (params, name, text)
        won += bool(said.reached)
    assert won, "no setting of the sample meets the challenge: the evidence was not compared"
