# ruff: noqa: F811, E501, E731, B023
# mypy: ignore-errors
"""Wrong answers as students might write them, from the released notebooks alone, in any style.

They are those of 377 for which no check had a name when they were written. ``workshop.benchmarks.slips`` tries them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import torch
import torch.nn.functional as F

#: question: wrong answers, each with a line that says what is wrong
WRONG: dict[str, list[Callable]] = defaultdict(list)


def wrong(answer: Callable) -> Callable:
    """Put an answer into the list of its question."""
    WRONG[answer.__name__].append(answer)
    return answer


BIG = 30.0


@wrong
def pool_tokens(h, is_token):
    """first token of each sentence ([CLS] habit)"""
    return h[torch.arange(len(h)), is_token.int().argmax(1)]


@wrong
def pool_tokens(h, is_token):
    """in place"""
    h[~is_token] = 0
    return h.sum(1) / is_token.sum(1, keepdim=True)


@wrong
def pool_tokens(h, is_token):
    """nonzero entries counted"""
    h = h * is_token[..., None]
    return (
        h.sum(1)
        / is_token.sum(1)[:, None].clamp(min=1).float()
        * is_token.shape[1]
        / is_token.shape[1] ** 0.5
    )


@wrong
def causal_attention(q, k, v, q_positions, k_positions):
    """scale by the value's width"""
    scores = q @ k.transpose(-2, -1) / v.shape[-1] ** 0.5
    return scores.masked_fill(k_positions[None] > q_positions[:, None], -torch.inf).softmax(-1) @ v


@wrong
def mask_shares(allowed, layers, residual):
    """elementwise power"""
    A = allowed.float() / allowed.float().sum(1, keepdim=True)
    M = residual * torch.eye(len(A)) + (1 - residual) * A
    return M**layers


@wrong
def sinusoid_table(positions, d, base):
    """precedence: base ** -2 * t / d"""
    t = torch.arange((d + 1) // 2).double()
    a = positions.double()[:, None] * (base**-2 * t / d)
    out = torch.zeros(len(positions), d, dtype=torch.double)
    out[:, 0::2] = a.sin()
    out[:, 1::2] = a.cos()[:, : d // 2]
    return out.float()


@wrong
def sinusoid_table(positions, d, base):
    """pairs numbered from 1"""
    t = torch.arange(1, (d + 1) // 2 + 1).double()
    a = positions.double()[:, None] * base ** (-2 * t / d)
    out = torch.zeros(len(positions), d, dtype=torch.double)
    out[:, 0::2] = a.sin()
    out[:, 1::2] = a.cos()[:, : d // 2]
    return out.float()


@wrong
def sinusoid_add(x, positions):
    """in place"""
    d = x.shape[-1]
    omega = 10000 ** (-torch.arange(0, d, 2, dtype=torch.float32) / d)
    angle = positions.float()[:, None] * omega
    x += torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(x.dtype)
    return x


@wrong
def sinusoid_add(x, positions):
    """positions % 256"""
    d = x.shape[-1]
    omega = 10000 ** (-torch.arange(0, d, 2, dtype=torch.float32) / d)
    angle = (positions % 256).float()[:, None] * omega
    return x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(x.dtype)


@wrong
def offset_profile(scores):
    """query minus key"""
    n, m = scores.shape
    return torch.stack([scores.diagonal(-o).mean() for o in range(1 - n, m)])


@wrong
def offset_profile(scores):
    """off by one range: ends at m - 2"""
    n, m = scores.shape
    return torch.stack([scores.diagonal(o).mean() for o in range(1 - n, m - 1)])


@wrong
def sinusoid_concat(positions, d):
    """odd: cosines padded by an extra sine rather than zeros"""
    h = d // 2
    w = 10000.0 ** (-torch.arange(h).double() / max(h - 1, 1))
    a = positions.double()[:, None] * w
    out = torch.cat([a.sin(), a.cos()], 1).float()
    return torch.cat([out, out[:, :1]], 1) if d % 2 else out


@wrong
def lookup_test(words, rows):
    """what most people write"""
    return [[0, 1, 2, 3]], [0, 1, 2, 3]


@wrong
def sum_similarity(E, P):
    """normalised first"""
    E, P = F.normalize(E, dim=-1), F.normalize(P, dim=-1)
    s = E[:, None] + P[None]
    return F.cosine_similarity(s, E[:, None], dim=-1).mean(), F.cosine_similarity(s, P[None], dim=-1).mean()


@wrong
def untrained_rows(start, end):
    """trained rows"""
    return F.cosine_similarity(start, end, dim=1) <= 0.999


@wrong
def untrained_rows(start, end):
    """one c for the whole table"""
    c = (start * end).sum() / (start * start).sum()
    return torch.isclose(end, c * start, atol=1e-3).all(1)


@wrong
def untrained_rows(start, end):
    """all rows beyond the last trained one"""
    c = F.cosine_similarity(start, end, dim=1) > 0.999
    last = (~c).nonzero().max() if (~c).any() else -1
    return torch.arange(len(c)) > last


@wrong
def longer_table(P, rows, way):
    """interpolate: (L - 1) / rows"""
    if way == "copy":
        return P[torch.arange(rows) % len(P)]
    where = torch.arange(rows) * (len(P) - 1) / rows
    low = where.long()
    share = (where - low)[:, None]
    return (1 - share) * P[low] + share * P[(low + 1).clamp(max=len(P) - 1)]


@wrong
def longer_table(P, rows, way):
    """copy: mirrored"""
    if way == "copy":
        n = torch.arange(rows) % (2 * len(P))
        return P[torch.where(n < len(P), n, 2 * len(P) - 1 - n)]
    return F.interpolate(P.T[None], size=rows, mode="linear", align_corners=True)[0].T


@wrong
def resize_grid(P, old, new):
    """class token resized with the rest: row 0 kept but grid taken from row 0"""
    h, w = old
    g = P[: h * w].reshape(1, h, w, -1).permute(0, 3, 1, 2)
    g = F.interpolate(g, size=new, mode="bilinear", align_corners=True)
    return torch.cat([P[:1], g.flatten(2)[0].T])


@wrong
def resize_grid(P, old, new):
    """view(1, d, h, w) without permute"""
    h, w = old
    g = P[1:].reshape(1, -1, h, w)
    g = F.interpolate(g, size=new, mode="bilinear", align_corners=True)
    return torch.cat([P[:1], g.flatten(2)[0].T])


@wrong
def bias_test(k):
    """the naive"""
    return [0, 1, 2], [0, 1, 2, 3, 4]


@wrong
def bias_test(k):
    """a decoder's last token: no future"""
    return [2 * k + 2, 3 * k], [0, k + 2, 2 * k, 2 * k + 1]


@wrong
def bias_test(k):
    """one query"""
    return [k], [2 * k + 5, 0, k, k + 1]


@wrong
def shaw_attention(q, k, v, w_K, w_V, q_positions, k_positions):
    """causal habit"""
    m = len(w_K) // 2
    off = k_positions[None] - q_positions[:, None]
    r = off.clamp(-m, m) + m
    e = torch.einsum("id,ijd->ij", q, k[None] + w_K[r]) / q.shape[-1] ** 0.5
    a = e.masked_fill(off > 0, -1e9).softmax(-1)
    return torch.einsum("ij,ijd->id", a, v[None] + w_V[r])


@wrong
def shaw_attention(q, k, v, w_K, w_V, q_positions, k_positions):
    """m from len: (len - 1) wrong"""
    m = len(w_K) // 2 - 1
    r = (k_positions[None] - q_positions[:, None]).clamp(-m, m) + m
    a = (torch.einsum("id,ijd->ij", q, k[None] + w_K[r]) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("ij,ijd->id", a, v[None] + w_V[r])


@wrong
def offset_mass(alpha, height, width):
    """divmod by height"""
    out = torch.zeros(2 * height - 1, 2 * width - 1, dtype=alpha.dtype)
    n = torch.zeros_like(out)
    for i in range(height * width):
        for j in range(height * width):
            a, b = (
                (j // height - i // height + height - 1) % (2 * height - 1),
                (j % height - i % height + width - 1) % (2 * width - 1),
            )
            out[a, b] += alpha[i, j]
            n[a, b] += 1
    return out / n.clamp(min=1)


@wrong
def offset_mass(alpha, height, width):
    """abs offsets"""
    out = torch.zeros(2 * height - 1, 2 * width - 1, dtype=alpha.dtype)
    n = torch.zeros_like(out)
    for i in range(height * width):
        for j in range(height * width):
            a, b = abs(j // width - i // width) + height - 1, abs(j % width - i % width) + width - 1
            out[a, b] += alpha[i, j]
            n[a, b] += 1
    return out / n.clamp(min=1)


@wrong
def relative_shift(x):
    """square mask: tril without diagonal"""
    *b, n, m = x.shape
    y = F.pad(x, (1, 0)).reshape(*b, m + 1, n)[..., 1:, :].reshape(*b, n, m)
    return y.masked_fill(torch.ones(n, m).triu(1).bool(), -math.inf)


@wrong
def relative_shift(x):
    """distance i - j, memory forgotten"""
    n, m = x.shape[-2:]
    i, j = torch.arange(n)[:, None], torch.arange(m)
    d = i - j
    return x.gather(-1, (m - 1 - d).clamp(0, m - 1).expand(x.shape)).masked_fill(d < 0, -math.inf)


def _mem(x, memory, W_Q, W_K, u, v, R, M=None):
    M, L = len(memory), len(x)
    keys = torch.cat([memory, x]) @ W_K
    q = x @ W_Q
    d = torch.arange(L)[:, None] + M - torch.arange(M + L)
    return q, keys, d, R[d.clamp(min=0)]


@wrong
def memory_scores(x, memory, W_Q, W_K, u, v, R):
    """key minus query with negative index"""
    q, k, d, r = _mem(x, memory, W_Q, W_K, u, v, R)
    e = (q + u) @ k.T + torch.einsum("id,ijd->ij", q + v, R[-d.clamp(min=0)])
    return (e / q.shape[-1] ** 0.5).masked_fill(d < 0, -math.inf)


@wrong
def memory_scores(x, memory, W_Q, W_K, u, v, R):
    """hidden before scale with a finite number"""
    q, k, d, r = _mem(x, memory, W_Q, W_K, u, v, R)
    e = (q + u) @ k.T + torch.einsum("id,ijd->ij", q + v, r)
    return (e / q.shape[-1] ** 0.5).masked_fill(d < 0, -1e9)


@wrong
def moved_mass(scores, term, allowed):
    """one number"""
    a = scores.masked_fill(~allowed, -math.inf).softmax(-1)
    b = (scores + term).masked_fill(~allowed, -math.inf).softmax(-1)
    return 0.5 * (a - b).abs().sum(-1).mean()


@wrong
def moved_mass(scores, term, allowed):
    """mask as bool reversed"""
    a = scores.masked_fill(allowed, -math.inf).softmax(-1).nan_to_num()
    b = (scores + term).masked_fill(allowed, -math.inf).softmax(-1).nan_to_num()
    return 0.5 * (a - b).abs().sum(-1).mean(-1)


@wrong
def moved_mass(scores, term, allowed):
    """max over queries"""
    a = scores.masked_fill(~allowed, -math.inf).softmax(-1)
    b = (scores + term).masked_fill(~allowed, -math.inf).softmax(-1)
    return 0.5 * (a - b).abs().sum(-1).amax(-1)


@wrong
def moved_mass(scores, term, allowed):
    """in place"""
    scores.masked_fill_(~allowed, -math.inf)
    a = scores.softmax(-1)
    scores += term
    return 0.5 * (scores.softmax(-1) - a).abs().sum(-1).mean(-1)


def _paint(picture, n, **changes):
    s, t = torch.zeros(n), torch.zeros(2 * n - 1)
    o = torch.arange(-(n - 1), n)
    if picture == "first":
        s[0] = BIG
    elif picture == "two back":
        t[o == -2] = BIG
        s[0] = BIG / 2
    elif picture == "both":
        s[0], t = BIG, t.masked_fill(o == -2, BIG)
        s[0] = BIG
    elif picture == "even":
        s[0::2] = BIG
        t[o > 0] = -2 * BIG
    else:
        t = o.float() * math.log(2)
        t[o > 0] = -2 * BIG
        s[0] = math.log(8)
    return s, t


@wrong
def paint_head(picture, n):
    """weights instead of scores"""
    s, t = torch.zeros(n), torch.zeros(2 * n - 1)
    o = torch.arange(-(n - 1), n)
    if picture == "first":
        s[0] = 1
    elif picture == "two back":
        t[o == -2] = 1
    elif picture == "both":
        s[0], t[o == -2] = 1, 1
    elif picture == "even":
        s[::2] = 1
    else:
        t = torch.where(o <= 0, 0.5 ** (-o.float()), 0)
        s[0] = 8
    return s, t


@wrong
def paint_head(picture, n):
    """infinities: -inf everywhere for first"""
    s, t = torch.full((n,), -math.inf), torch.full((2 * n - 1,), -math.inf)
    o = torch.arange(-(n - 1), n)
    if picture == "first":
        s[0], t[:] = 0, 0
    elif picture == "two back":
        s[:] = 0
        t[o == -2] = 0
    elif picture == "both":
        s[:], t[:] = -BIG, -BIG
        s[0], t[o == -2] = 0, 0
    elif picture == "even":
        s[::2] = 0
        t[o <= 0] = 0
    else:
        s[:] = 0
        s[0] = math.log(8)
        t[o <= 0] = o[o <= 0].float() * math.log(2)
    return s, t


@wrong
def paint_head(picture, n):
    """t has n numbers"""
    s, t = _paint(picture, n)
    return s, t[:n]


@wrong
def concat_bias(PE, r, W_o, c, W_2):
    """PE per key via broadcasting of relu outputs: product"""
    places = torch.relu(PE @ W_o[:, :-1].T)
    offsets = torch.relu(r[..., None] * W_o[:, -1] + c)
    return (places[:, None] * offsets) @ W_2


@wrong
def rope_shift_error(q, k, angles, shifted):
    """one number for all heads"""
    old = rope_ok(q, angles) @ rope_ok(k, angles).mT
    new = rope_ok(q, shifted) @ rope_ok(k, shifted).mT
    return (new - old).abs().max() / old.abs().amax((-1, -2))


@wrong
def rope_shift_error(q, k, angles, shifted):
    """max without abs in denominator"""
    old = rope_ok(q, angles) @ rope_ok(k, angles).mT
    new = rope_ok(q, shifted) @ rope_ok(k, shifted).mT
    return (new - old).abs().amax((-1, -2)) / old.amax((-1, -2))


@wrong
def rope_shift_error(q, k, angles, shifted):
    """old scores unturned"""
    old = q @ k.mT
    new = rope_ok(q, shifted) @ rope_ok(k, shifted).mT
    return (new - old).abs().amax((-1, -2)) / old.abs().amax((-1, -2))


def rope_ok(x, angles):
    c, s = angles.cos(), angles.sin()
    a, b = x[..., ::2].float(), x[..., 1::2].float()
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2).to(x.dtype)


def angles_ok(positions, dim, base):
    t = torch.arange(0, dim, 2).double()
    return (positions.double()[:, None] * base ** (-t / dim)).float()


@wrong
def cached_scores(q, k, cached, base):
    """float32 returned"""
    n, P = q.shape[-2], cached.shape[-2]
    a = angles_ok(torch.arange(P, P + n), q.shape[-1], base)
    keys = torch.cat([cached, rope_ok(k, a)], -2).float()
    return rope_ok(q, a).float() @ keys.mT / math.sqrt(q.shape[-1])


@wrong
def rope_sort_rows(weight, head_dim, rotary_dim, target):
    """columns sorted"""
    i = torch.arange(weight.shape[-1])
    r = torch.arange(min(rotary_dim, len(i)) // 2 * 2)
    i[: len(r)] = torch.cat([r[::2], r[1::2]])
    return weight[..., i]


@wrong
def alibi_slopes(n_heads):
    """bit_length off: next lower strictly lower"""
    n = 2 ** (math.ceil(math.log2(n_heads)) - 1) if n_heads > 1 else 1
    a = [2 ** (-8 * h / n) for h in range(1, n + 1)]
    b = [2 ** (-8 * h / (2 * n)) for h in range(1, 2 * n + 1)]
    return torch.tensor(a + b[0::2][: n_heads - n])


@wrong
def alibi_bias(slopes, q_positions, k_positions):
    """slopes over queries via wrong view"""
    d = (q_positions[:, None] - k_positions).to(slopes.dtype)
    return (-slopes.flip(0)[:, None, None] * d).masked_fill(d < 0, -math.inf)


@wrong
def alibi_bias(slopes, q_positions, k_positions):
    """float64 lost"""
    d = (q_positions[:, None] - k_positions).float()
    return (-slopes.float()[:, None, None] * d).masked_fill(d < 0, -math.inf)


@wrong
def alibi_bias(slopes, q_positions, k_positions):
    """sqrt"""
    d = (q_positions[:, None] - k_positions).to(slopes.dtype)
    return (-slopes[:, None, None] * torch.log1p(d.clamp(min=0))).masked_fill(d < 0, -math.inf)


@wrong
def alibi_attention(q, k, v, slopes):
    """own slopes instead of given"""
    n, m = q.shape[-2], k.shape[-2]
    H = q.shape[1]
    sl = 2.0 ** (-8 * torch.arange(1, H + 1) / H)
    i, j = torch.arange(n)[:, None] + m - n, torch.arange(m)
    s = q @ k.mT / math.sqrt(q.shape[-1]) - sl[:, None, None] * (i - j)
    return s.masked_fill(j > i, -math.inf).softmax(-1) @ v


def _xpos(
    q,
    k,
    q_positions,
    k_positions,
    base,
    gamma,
    scale_base,
    *,
    layout="i",
    w=None,
    zeta=None,
    power=None,
    scale=True,
    mask=True,
):
    d = q.shape[-1]
    t = torch.arange(d // 2).double()
    w = base ** (-2 * t / d) if w is None else w(t, d)
    z = (2 * t / d + gamma) / (1 + gamma) if zeta is None else zeta(t, d)
    delta = (q_positions[:, None] - k_positions).double()
    q, k = q.double(), k.double()
    if layout == "i":
        qa, qb, ka, kb = q[..., ::2], q[..., 1::2], k[..., ::2], k[..., 1::2]
    else:
        (qa, qb), (ka, kb) = q.chunk(2, -1), k.chunk(2, -1)
    dots = qa[:, :, None] * ka[:, None] + qb[:, :, None] * kb[:, None]
    cross = qa[:, :, None] * kb[:, None] - qb[:, :, None] * ka[:, None]
    ang = delta[..., None] * w
    fade = z ** (delta[..., None] / scale_base if power is None else power(delta[..., None]))
    s = ((dots * ang.cos() + cross * ang.sin()) * fade).sum(-1)
    if scale:
        s = s / d**0.5
    if mask:
        s = s.masked_fill(delta < 0, -math.inf)
    return s.float()


@wrong
def xpos_scores(q, k, q_positions, k_positions, base, gamma, scale_base):
    """halves from the first query"""
    d = q.shape[-1]
    t = torch.arange(0, d, 2).double() / d
    w, z = base**-t, (t + gamma) / (1 + gamma)
    o = q_positions[0]

    def f(x, p, sgn):
        p = (p - o).double()[:, None]
        return rope_ok(x, (p * w)).double() * (z ** (sgn * p / scale_base)).repeat_interleave(2, -1)

    s = f(q, q_positions, 1).float() @ f(k, k_positions, -1).float().mT / d**0.5
    return s.masked_fill(k_positions > q_positions[:, None], -math.inf)


@wrong
def xpos_scores(q, k, q_positions, k_positions, base, gamma, scale_base):
    """gamma fixed 0.4"""
    return _xpos(q, k, q_positions, k_positions, base, 0.4, scale_base)


@wrong
def axis_angles(positions, dim, base, stretch):
    """input changed"""
    A = positions.shape[1]
    N = dim // (2 * A)
    w = base ** (-torch.arange(N) / N)
    stretch.reciprocal_()
    return ((positions * stretch)[..., None] * w).flatten(1).float()


@wrong
def dynamic_ntk_theta(dim, base, L, length):
    """HF: s * l / L - (s - 1)"""
    s = max(1, length / L)
    b = base * (s * length / L - (s - 1)) ** (dim / (dim - 2)) if s > 1 else base
    return b ** (-torch.arange(0, dim, 2) / dim)


@wrong
def dynamic_ntk_theta(dim, base, L, length):
    """(base * s) ** exponent"""
    s = max(1, length / L)
    b = (base * s) ** (dim / (dim - 2))
    return b ** (-torch.arange(0, dim, 2) / dim)


def _yarn(dim, base, s, L, alpha, beta, *, theta=None, r=None, clamp=True, mix=None):
    th = base ** (-torch.arange(0, dim, 2).double() / dim) if theta is None else theta
    turns = L * th / (2 * math.pi) if r is None else r(th)
    g = (turns - alpha) / (beta - alpha)
    if clamp:
        g = g.clamp(0, 1)
    return ((1 - g) * th / s + g * th if mix is None else mix(g, th)).float()


@wrong
def yarn_theta(dim, base, s, L, alpha, beta):
    """HF linear in pair index"""
    dimof = lambda rot: dim * math.log(L / (rot * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(math.floor(dimof(beta)), 0), min(math.ceil(dimof(alpha)), dim - 1)
    ramp = ((torch.arange(dim // 2).double() - low) / (high - low)).clamp(0, 1)
    th = base ** (-torch.arange(0, dim, 2).double() / dim)
    return ((1 - ramp) * th + ramp * th / s).float()


@wrong
def yarn_theta(dim, base, s, L, alpha, beta):
    """turns of the shortened: wavelength instead of turns"""
    return _yarn(dim, base, s, L, alpha, beta, r=lambda th: 2 * math.pi / th)


@wrong
def ntk_factor(dim, base, L, new_L):
    """exponent for last pair only"""
    return (new_L / L) ** ((dim - 2) / dim)


def _bytes(encoding, length, dim, heads, kv_heads, layers, k, bytes_each, **over):
    dh = dim // heads
    stored = {
        "learned": length * dim,
        "rotary": 0,
        "alibi": 0,
        "clipped": (2 * k + 1) * heads * layers,
        "t5": k * heads,
        "shaw": 2 * (2 * k + 1) * dh * layers,
    }
    formed = {
        "learned": 0,
        "rotary": 0,
        "alibi": heads * length**2,
        "clipped": heads * length**2,
        "t5": heads * length**2,
        "shaw": 2 * dh * length**2,
    }
    cache = 2 * layers * length * kv_heads * dh
    stored.update(over.get("stored", {}))
    formed.update(over.get("formed", {}))
    cache = over.get("cache", cache)
    return stored[encoding] * bytes_each, formed[encoding] * bytes_each, cache * bytes_each


@wrong
def position_bytes(encoding, length, dim, heads, kv_heads, layers, k, bytes_each):
    """learned formed L·d"""
    return _bytes(
        encoding, length, dim, heads, kv_heads, layers, k, bytes_each, formed={"learned": length * dim}
    )


@wrong
def packed_positions(documents):
    """position in the row"""
    index = torch.arange(documents.shape[1]).expand(documents.shape)
    return torch.where(documents < 0, 0, index)


@wrong
def packed_positions(documents):
    """counts only document number 0.. by dictionary across rows"""
    out = torch.zeros_like(documents)
    seen = {}
    for b in range(documents.shape[0]):
        for i in range(documents.shape[1]):
            n = documents[b, i].item()
            if n >= 0:
                out[b, i] = seen.get(n, 0)
                seen[n] = seen.get(n, 0) + 1
    return out


def _oe(scores, *, D=None, group="offset", ratio=True, squares=True):
    D = scores.diff(dim=-1) if D is None else D
    H, n, m = D.shape
    o = torch.arange(m) - torch.arange(n)[:, None]
    fit = torch.zeros_like(D)
    for r in range(1 - n, m):
        at = o == r
        fit[:, at] = D[:, at].mean(-1, keepdim=True)
    rest = (D - fit).square().sum((-1, -2))
    total = D.square().sum((-1, -2))
    return torch.where(total > 0, rest / total.clamp(min=1e-30), 0)


@wrong
def offset_error(scores):
    """variance in the denominator"""
    D = scores.diff(dim=-1)
    e = _oe(scores)
    tot = D.square().sum((-1, -2))
    var = (D - D.mean((-1, -2), keepdim=True)).square().sum((-1, -2))
    return torch.where(var > 0, e * tot / var.clamp(min=1e-30), 0)


def _which(scores, *, rows=True, order=("none", "absolute", "alibi", "clipped")):
    L = len(scores)
    tol = 1e-4 * scores[scores.isfinite()].abs().max()
    i, j = torch.tril_indices(L, L)
    s = scores - scores.diagonal()[:, None] if rows else scores
    low = [s.diagonal(-o) for o in range(L)]
    relative = all((x.max() - x.min()) <= 2 * tol for x in low)
    profile = torch.stack([x[0] for x in low])
    tests = {
        "none": s[i, j].max() - s[i, j].min() <= tol,
        "absolute": not relative,
        "alibi": (profile.diff().max() - profile.diff().min()) <= tol * 3,
        "clipped": (profile[-3:].max() - profile[-3:].min()) <= tol,
    }
    for name in order:
        if tests[name]:
            return name
    return "rotary"


@wrong
def which_encoding(scores):
    """clipped before alibi / none last"""
    return _which(scores, order=("clipped", "alibi", "absolute", "none"))


@wrong
def which_encoding(scores):
    """always rotary"""
    return "rotary"


@wrong
def which_encoding(scores):
    """no test of absolute"""
    return _which(scores, order=("none", "alibi", "clipped"))


@wrong
def which_encoding(scores):
    """uses last row only"""
    row = scores[-1]
    d = row.diff()
    t = 1e-4 * row.abs().max()
    if d.abs().max() < t:
        return "none"
    if (d - d.mean()).abs().max() < t:
        return "alibi"
    if d[:2].abs().max() < t:
        return "clipped"
    return "rotary"


@wrong
def which_encoding(scores):
    """capital names"""
    return {"none": "NoPE", "absolute": "absolute", "alibi": "ALiBi", "clipped": "clipped", "rotary": "RoPE"}[
        _which(scores)
    ]


@wrong
def forget_bias(gates, queries):
    """log of 1 - f"""
    c = (1 - gates.double()).log().cumsum(-1)
    m = gates.shape[1]
    D = (c[:, -queries:, None] - c[:, None]).to(gates.dtype)
    return D.masked_fill(torch.arange(m) > torch.arange(m - queries, m)[:, None], -math.inf)


def _grid(positions, sections, base, axes):
    n = sum(sections)
    w = base ** (-torch.arange(n).double() / n)
    return (positions.double()[:, axes] * w).float()


@wrong
def grid_angles(positions, sections, base, interleaved):
    """three axes only"""
    n = sum(sections)
    if interleaved:
        axes = [0] * n
        for a in (1, 2):
            if a < len(sections):
                for c in range(sections[a]):
                    axes[a + 3 * c if a + 3 * c < n else -1] = a
    else:
        axes = [a for a, s in enumerate(sections) for _ in range(s)]
    return _grid(positions, sections, base, axes)


def _sink(q, k, v, sinks, window, *, share="repeat_interleave", mode="right", scale=True, edge=0):
    B, H, n, d = q.shape
    m, g = k.shape[2], H // k.shape[1]
    k, v = (
        x.repeat_interleave(g, 1) if share == "repeat_interleave" else x.repeat(1, g, 1, 1) for x in (k, v)
    )
    i, j = torch.arange(m - n, m)[:, None], torch.arange(m)
    hidden = j > i
    if window:
        hidden = hidden | (j <= i - window + edge)
    s = q @ k.mT / (d**0.5 if scale else 1)
    s = s.masked_fill(hidden, -math.inf)
    sink = sinks.view(1, H, 1, 1).expand(B, H, n, 1)
    if mode == "right":
        return torch.cat([s, sink], -1).softmax(-1)[..., :-1] @ v
    if mode == "renorm":
        w = torch.cat([s, sink], -1).softmax(-1)[..., :-1]
        return w / w.sum(-1, keepdim=True) @ v
    if mode == "shifted":
        e = (s - s.amax(-1, keepdim=True)).exp()
        return e / (e.sum(-1, keepdim=True) + sink.exp()) @ v
    if mode == "sign":
        return torch.cat([s, -sink], -1).softmax(-1)[..., :-1] @ v
    if mode == "scaled":
        return torch.cat([s, sink / d**0.5], -1).softmax(-1)[..., :-1] @ v
    if mode == "one":
        e = s.exp()
        return e / (e.sum(-1, keepdim=True) + 1) @ v
    if mode == "none":
        return s.softmax(-1) @ v
    if mode == "overflow":
        e = s.exp()
        return e / (e.sum(-1, keepdim=True) + sink.exp()) @ v
    if mode == "raw":
        e = s.exp()
        return e / (e.sum(-1, keepdim=True) + sink) @ v
    if mode == "added":
        return (s + sink).softmax(-1) @ v


@wrong
def sink_attention(q, k, v, sinks, window):
    return _sink(q, k, v, sinks, window, mode="renorm")


@wrong
def sink_attention(q, k, v, sinks, window):
    return _sink(q, k, v, sinks, window, mode="one")


@wrong
def sink_attention(q, k, v, sinks, window):
    return _sink(q, k, v, sinks, window, mode="overflow")


@wrong
def sink_attention(q, k, v, sinks, window):
    return _sink(q, k, v, sinks, window, mode="raw")


@wrong
def sink_attention(q, k, v, sinks, window):
    """window 0 hides all"""
    B, H, n, d = q.shape
    return _sink(q, k, v, sinks, window or 1)
