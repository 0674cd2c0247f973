# ruff: noqa: E501  (a mutation is a line)
"""Right position code in many styles (`right/`), and the bugs of position code as changes of one line each.

Written without a look at what shall find them. `right()` yields the right modules, `mutants()` the broken ones;
`EQUIVALENT` names the changes that no output shows, `CLASSES` the bugs that look the same from outside.

What a module offers, by the `kind` in its `ABOUT` (which says what an honest user would tell):

| kind | the module has |
|---|---|
| `rotate` | `rotate(x, positions)`, x [B, H, L, D], positions [L] or [B, L] |
| `rotate_2d` | the same, positions [L, 2] of rows and columns |
| `mrope` | the same, positions [3, B, L] of time, height and width |
| `indexer` | `rotate` of the attention, `index_rotate` of the indexer beside it |
| `bias` | `bias(Lq, Lk)` -> [H, Lq, Lk]; the queries are the last ones |
| `attend` | `attend(q, k, v, offset=0)`, causal; keys from 0, queries from `offset` |
| `decoder` | `Decoder(seed).logits(tokens, positions=None, cache=None)`, for some also `mask`, `documents` |
| `streaming` | `Decoder(seed).logits(tokens, cache=None)`; the cache evicts |
| `sinusoid` | `table(length, d_model)` |
| `resize` | `resize(table, size)`, from [rows, columns, d] to [*size, d] |

A cache is a dict of the caller, empty at first.
"""

from pathlib import Path
from types import ModuleType

RIGHT = Path(__file__).parent / "right"

BUGS = {  # slug: the bug as the list of bugs says it
    "pairs-interleaved-for-half": "interleaved for half",
    "pairs-half-for-interleaved": "(interleaved for half and) reverse",
    "tables-of-the-other-layout": "interleaved for half and reverse: in cos and sin alone, x is paired rightly",
    "pairs-after-permuted-weights": "pairs by i and i+1 after permuted weights",
    "sign-of-rotation": "sign of the rotation turned",
    "sign-of-bias": "sign of the bias turned",
    "k-turned-and-q-not": "k turned and q not",
    "turned-twice": "turned twice",
    "positions-doubled": "(turned twice and) positions doubled",
    "values-turned": "values turned and not undone",
    "positions-from-1": "positions from 1",
    "cache-restart": "positions restart with a cache",
    "cache-lag": "positions lag by one with a cache",
    "last-position-for-chunk": "position of the last token used for the whole chunk",
    "left-padding-counted": "left padding counted",
    "packing-runs-on": "packed sequences running on",
    "evicted-keys-turned-anew": "keys turned anew after eviction",
    "evicted-keys-not-turned": "keys (turned anew after eviction, or) not",
    "angles-in-half": "angles in half precision",
    "positions-in-bf16": "integer positions in bf16",
    "inv-freq-never-filled": "inv_freq made on meta and never filled",
    "base-from-wrong-place": "base from the wrong place of the config",
    "scaling-in-wrong-layers": "scaling in the wrong layers (local for global)",
    "factor-twice": "factor applied twice",
    "attention-factor-forgotten": "attention factor forgotten",
    "attention-factor-squared": "attention factor squared",
    "yarn-ramp-truncation": "YaRN's ramp truncated or not",
    "partial-wrong-part": "partial rotation of the wrong part",
    "head-dim-for-model-dim": "dimension of the head for the model's",
    "bias-before-scale": "bias before the scale",
    "bias-absolute-distance": "bias with |i-j| in a causal model",
    "bias-unsigned": "bias unsigned in a bidirectional model",
    "slopes-not-power-of-two": "slopes for heads not a power of two",
    "t5-buckets-one-off": "T5 buckets one off",
    "t5-bidirectional-for-causal": "T5 buckets bidirectional for causal",
    "clip-after-shift": "clip before or after the shift",
    "table-read-i-minus-j": "table read i-j",
    "sinusoid-half-d": "sinusoid's frequencies with d/2 for d",
    "table-broadcast-over-batch": "table broadcast over batch",
    "axes-swapped": "2-D axes swapped",
    "align-corners": "interpolated wrongly (align_corners)",
    "mrope-sections-order": "M-RoPE sections in the wrong order",
    "indexer-other-layout": "an indexer with another layout than its attention",
}

CLASSES = [  # bugs that no output tells apart, and where that is so
    ({"turned-twice", "positions-doubled"}, "RoPE: R(m) R(m) = R(2m)"),
    ({"sign-of-bias", "table-read-i-minus-j"}, "a bias that is odd in i-j, as ALiBi's -m (i-j)"),
    ({"pairs-interleaved-for-half", "pairs-after-permuted-weights"}, "the same code; only the weights' history differs"),
    (
        {"head-dim-for-model-dim", "base-from-wrong-place"},
        "base ** (-2i / model) = (base ** (head / model)) ** (-2i / head), unless the bases in question are known",
    ),
    (
        {"sinusoid-half-d", "base-from-wrong-place"},
        "base ** (-2i / (d/2)) = (base ** 2) ** (-2i / d), unless the bases in question are known",
    ),
    ({"inv-freq-never-filled", "partial-wrong-part"}, "zeros turn nothing, as channels do that are left out by mistake"),
]

ROPE_IS_RELATIVE = "RoPE: scores know differences alone, and all positions of one text moved alike"
AHEAD_IS_MASKED = "|i-j| is i-j for every key that a causal mask shows"
ROW_CONSTANT = "ALiBi: a row's bias moves by a constant, and softmax takes it"
EQUIVALENT = {  # (implementation, slug): why no output shows it
    ("attend_half", "positions-from-1"): ROPE_IS_RELATIVE,
    ("attend_complex", "positions-from-1"): ROPE_IS_RELATIVE,
    ("attend_values", "positions-from-1"): ROPE_IS_RELATIVE + "; values turn back by the same",
    ("decoder_llama", "positions-from-1"): ROPE_IS_RELATIVE,
    ("decoder_llama", "left-padding-counted"): ROPE_IS_RELATIVE,
    ("decoder_llama", "packing-runs-on"): ROPE_IS_RELATIVE,
    ("decoder_gptj", "positions-from-1"): ROPE_IS_RELATIVE,
    ("decoder_gemma", "positions-from-1"): ROPE_IS_RELATIVE,
    ("attend_alibi", "bias-absolute-distance"): AHEAD_IS_MASKED,
    ("attend_alibi_fused", "bias-absolute-distance"): AHEAD_IS_MASKED,
    ("attend_alibi", "cache-lag"): ROW_CONSTANT,
    ("attend_alibi", "cache-restart"): ROW_CONSTANT,
    ("attend_alibi", "last-position-for-chunk"): ROW_CONSTANT,
    ("attend_alibi_fused", "cache-restart"): ROW_CONSTANT,
    ("attend_alibi_loop", "cache-lag"): ROW_CONSTANT,
    ("decoder_mpt", "positions-from-1"): "ALiBi knows differences alone",
}

HARMLESS = {  # (implementation, slug): seen in the bias, and in no attention
    ("alibi_press", "bias-absolute-distance"): AHEAD_IS_MASKED,
    ("alibi_loop", "bias-absolute-distance"): AHEAD_IS_MASKED,
    ("alibi_ten", "bias-absolute-distance"): AHEAD_IS_MASKED,
    ("t5_causal", "bias-absolute-distance"): AHEAD_IS_MASKED,
    ("t5_loop", "bias-absolute-distance"): AHEAD_IS_MASKED,
    ("alibi_press", "last-position-for-chunk"): ROW_CONSTANT,
    ("alibi_loop", "last-position-for-chunk"): ROW_CONSTANT,
}

MUTATIONS = {  # implementation: (slug, text of the right code that stands there once, what is there instead)
    "rotate_complex": [
        (
            "pairs-half-for-interleaved",
            "torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)",
            "torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (2, -1)).mT.contiguous()) * turn).mT.flatten(-2)",
        ),
        ("sign-of-rotation", "torch.ones_like(angles), angles)", "torch.ones_like(angles), -angles)"),
        ("turned-twice", "spin(x.float(), torch.polar(torch.ones_like(angles), angles))", "spin(spin(x.float(), t := torch.polar(torch.ones_like(angles), angles)), t)"),
        ("positions-doubled", "positions[..., None].float()", "2 * positions[..., None].float()"),
        ("positions-from-1", "positions[..., None].float()", "(positions[..., None] + 1).float()"),
        ("last-position-for-chunk", "positions[..., None].float()", "positions[..., -1:, None].float()"),
        ("angles-in-half", "positions[..., None].float() * inv_freq", "(positions[..., None].half() * inv_freq.half()).float()"),
        ("positions-in-bf16", "positions[..., None].float()", "positions[..., None].to(torch.bfloat16).float()"),
        ("inv-freq-never-filled", "inv_freq = frequencies(x.shape[-1])", "inv_freq = torch.zeros(x.shape[-1] // 2)"),
        ("base-from-wrong-place", "base=10000.0)", "base=500000.0)"),
        ("head-dim-for-model-dim", "torch.arange(0, dim, 2).float() / dim", "torch.arange(0, dim, 2).float() / MODEL_DIM"),
        ("table-broadcast-over-batch", "angles[:, None]", "angles[:1, None]"),
    ],
    "rotate_half": [
        (
            "pairs-interleaved-for-half",
            "(x * cos + rotate_half(x) * sin)",
            "(x * cos.view(*cos.shape[:-1], 2, -1).mT.flatten(-2) + torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2) * sin.view(*sin.shape[:-1], 2, -1).mT.flatten(-2))",
        ),
        ("tables-of-the-other-layout", "emb = torch.cat((freqs, freqs), dim=-1)", "emb = freqs.repeat_interleave(2, dim=-1)"),
        ("sign-of-rotation", "return torch.cat((-x2, x1), dim=-1)", "return torch.cat((x2, -x1), dim=-1)"),
        ("turned-twice", "return RotaryEmbedding(x.shape[-1])(x, positions)", "rope = RotaryEmbedding(x.shape[-1]); return rope(rope(x, positions), positions)"),
        ("positions-doubled", "t = torch.arange(length, dtype=torch.float32)", "t = 2 * torch.arange(length, dtype=torch.float32)"),
        ("positions-from-1", "t = torch.arange(length, dtype=torch.float32)", "t = torch.arange(1, length + 1, dtype=torch.float32)"),
        ("last-position-for-chunk", "self.cos[position_ids], self.sin[position_ids]", "self.cos[position_ids[..., -1:]], self.sin[position_ids[..., -1:]]"),
        ("angles-in-half", "freqs = torch.outer(t, self.inv_freq)", "freqs = torch.outer(t.bfloat16(), self.inv_freq.bfloat16()).float()"),
        ("positions-in-bf16", "t = torch.arange(length, dtype=torch.float32)", "t = torch.arange(length).bfloat16().float()"),
        ("inv-freq-never-filled", "self.grow(64)", "self.inv_freq = torch.empty_like(self.inv_freq).zero_(); self.grow(64)"),
        ("base-from-wrong-place", 'CONFIG["rope_parameters"]["rope_theta"]', 'CONFIG["rope_theta"]'),
        ("head-dim-for-model-dim", "dtype=torch.int64).float() / dim", 'dtype=torch.int64).float() / CONFIG["hidden_size"]'),
        ("table-broadcast-over-batch", "cos.unsqueeze(1), sin.unsqueeze(1)", "cos[:1].unsqueeze(1), sin[:1].unsqueeze(1)"),
    ],
    "rotate_matrices": [
        (
            "pairs-half-for-interleaved",
            "pairs = x.to(torch.float64).unflatten(-1, (-1, 2))",
            "pairs = x.to(torch.float64).unflatten(-1, (2, -1)).mT",
        ),
        ("sign-of-rotation", "[torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)]", "[torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)]"),
        ("turned-twice", 'torch.einsum("blpij,bhlpj->bhlpi", turn, pairs)', 'torch.einsum("blpij,bhlpj->bhlpi", turn @ turn, pairs)'),
        ("positions-doubled", "m = positions.to(torch.float64)", "m = positions.to(torch.float64) * 2"),
        ("positions-from-1", "m = positions.to(torch.float64)", "m = positions.to(torch.float64) + 1"),
        ("last-position-for-chunk", "m = positions.to(torch.float64)", "m = positions[..., -1:].to(torch.float64).expand(positions.shape)"),
        ("angles-in-half", "cos, sin = torch.cos(angle), torch.sin(angle)", "cos, sin = torch.cos(angle.half().double()), torch.sin(angle.half().double())"),
        ("positions-in-bf16", "turn = matrices(positions, x.shape[-1])", "turn = matrices(positions.to(x.dtype), x.shape[-1])"),
        ("inv-freq-never-filled", "theta = torch.tensor([10000.0 ** (-2 * i / dim) for i in range(dim // 2)]", "theta = torch.tensor([1e-38 for i in range(dim // 2)]"),
        ("base-from-wrong-place", "10000.0 ** (-2 * i / dim)", "1000000.0 ** (-2 * i / dim)"),
        ("head-dim-for-model-dim", "10000.0 ** (-2 * i / dim)", "10000.0 ** (-2 * i / EMBED)"),
        ("table-broadcast-over-batch", "turn = matrices(positions, x.shape[-1])", "turn = matrices(positions[:1].expand_as(positions), x.shape[-1])"),
    ],
    "rotate_partial": [
        (
            "pairs-interleaved-for-half",
            "return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)",
            "a, b = x[..., ::2], x[..., 1::2]; return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)",
        ),
        ("sign-of-rotation", "[a * cos - b * sin, b * cos + a * sin]", "[a * cos + b * sin, b * cos - a * sin]"),
        ("turned-twice", "turned(x[..., part].float(), angles.cos(), angles.sin())", "turned(turned(x[..., part].float(), angles.cos(), angles.sin()), angles.cos(), angles.sin())"),
        ("positions-doubled", "positions.float().unsqueeze(-1)", "positions.float().unsqueeze(-1) * 2"),
        ("positions-from-1", "positions.float().unsqueeze(-1)", "(positions.float() + 1).unsqueeze(-1)"),
        ("last-position-for-chunk", "positions.float().unsqueeze(-1)", "positions[..., -1:].float().unsqueeze(-1)"),
        ("angles-in-half", "angles.cos(), angles.sin())", "angles.half().float().cos(), angles.half().float().sin())"),
        ("positions-in-bf16", "positions.float().unsqueeze(-1)", "positions.to(torch.bfloat16).float().unsqueeze(-1)"),
        ("inv-freq-never-filled", "torch.pow(10000.0, -exponents)", "torch.zeros_like(exponents)"),
        ("base-from-wrong-place", "torch.pow(10000.0, -exponents)", "torch.pow(25000.0, -exponents)"),
        ("head-dim-for-model-dim", "dtype=torch.float32) / rotary", "dtype=torch.float32) / HIDDEN"),
        ("partial-wrong-part", "part = slice(0, rotary)", "part = slice(rotary, None)"),
        ("table-broadcast-over-batch", "angles = angles.unsqueeze(1)", "angles = angles[:1].unsqueeze(1)"),
    ],
    "rotate_partial_gptj": [
        ("pairs-half-for-interleaved", "even, odd = whole[..., first : first + size : 2], whole[..., first + 1 : first + size : 2]", "even, odd = whole[..., first : first + size].chunk(2, -1)"),
        ("sign-of-rotation", "sin, cos = torch.sin(sinusoid), torch.cos(sinusoid)", "sin, cos = -torch.sin(sinusoid), torch.cos(sinusoid)"),
        ("turned-twice", "return out.to(x.dtype)", "x = out; out, whole = x.clone(), x; even, odd = whole[..., first : first + size : 2], whole[..., first + 1 : first + size : 2]; out[..., first : first + size : 2] = even * cos - odd * sin; out[..., first + 1 : first + size : 2] = odd * cos + even * sin; return out.to(x.dtype)"),
        ("positions-from-1", "where[:, None, :, None].float()", "(1 + where)[:, None, :, None].float()"),
        ("positions-doubled", "where[:, None, :, None].float()", "(where + where)[:, None, :, None].float()"),
        ("angles-in-half", "where[:, None, :, None].float() * inv_freq", "(where[:, None, :, None].float() * inv_freq).bfloat16().float()"),
        ("positions-in-bf16", "where[:, None, :, None].float()", "where[:, None, :, None].to(x.dtype).float()"),
        ("inv-freq-never-filled", "inv_freq = 10000.0 **", "inv_freq = 0.0 * 10000.0 **"),
        ("base-from-wrong-place", "inv_freq = 10000.0 **", "inv_freq = 100000.0 **"),
        ("head-dim-for-model-dim", "* 2 / size)", "* 2 / N_EMBD)"),
        ("partial-wrong-part", "first, size = 0, x.shape[-1] // 4", "first, size = x.shape[-1] * 3 // 4, x.shape[-1] // 4"),
        ("last-position-for-chunk", "where[:, None, :, None].float()", "where[:, None, -1:, None].float()"),
        ("table-broadcast-over-batch", "where[:, None, :, None].float()", "where[:1, None, :, None].float()"),
    ],
    "rotate_partial_tail": [
        ("partial-wrong-part", "part = slice(nope, None)", "part = slice(0, nope)"),
        ("pairs-interleaved-for-half", "x[..., part].float().chunk(2, dim=-1)", "x[..., part].float().unflatten(-1, (-1, 2)).unbind(-1)"),
        ("sign-of-rotation", "torch.exp(1j * phase)", "torch.exp(-1j * phase)"),
        ("turned-twice", "* torch.exp(1j * phase)", "* torch.exp(1j * phase) * torch.exp(1j * phase)"),
        ("inv-freq-never-filled", "* inv_freq", "* torch.zeros_like(inv_freq)"),
        ("angles-in-half", "positions.float()[..., None, :, None] * inv_freq", "(positions.float()[..., None, :, None] * inv_freq).to(x.dtype).float()"),
    ],
    "rotate_linear": [
        ("pairs-interleaved-for-half", "u, v = x.double().unflatten(-1, (2, half)).unbind(-2)", "u, v = x.double().unflatten(-1, (half, 2)).unbind(-1)"),
        ("table-broadcast-over-batch", "t = positions.double() / FACTOR", "t = (positions[0] if positions.dim() == 2 else positions).double() / FACTOR"),
        ("sign-of-rotation", "(u * c - v * s, u * s + v * c)", "(u * c + v * s, v * c - u * s)"),
        ("turned-twice", "c, s = angles.cos(), angles.sin()", "c, s = angles.cos() ** 2 - angles.sin() ** 2, 2 * angles.sin() * angles.cos()"),
        ("positions-from-1", "t = positions.double() / FACTOR", "t = (positions.double() + 1) / FACTOR"),
        ("last-position-for-chunk", "t = positions.double() / FACTOR", "t = positions[..., -1:].double() / FACTOR"),
        ("angles-in-half", "c, s = angles.cos(), angles.sin()", "c, s = angles.half().cos(), angles.half().sin()"),
        ("positions-in-bf16", "t = positions.double() / FACTOR", "t = positions.bfloat16() / FACTOR"),
        ("inv-freq-never-filled", "inv_freq).unsqueeze(-3)", "torch.zeros_like(inv_freq)).unsqueeze(-3)"),
        ("base-from-wrong-place", "inv_freq = 10000.0 **", "inv_freq = 500000.0 **"),
        ("factor-twice", "inv_freq).unsqueeze(-3)", "inv_freq / FACTOR).unsqueeze(-3)"),
        ("head-dim-for-model-dim", "dtype=torch.float64) / half)", "dtype=torch.float64) / (D_MODEL // 2))"),
    ],
    "rotate_yarn": [
        ("factor-twice", "positions.float()[..., None, :, None]", '(positions.float() / SCALING["factor"])[..., None, :, None]'),
        ("attention-factor-forgotten", 'attention_factor = 0.1 * math.log(SCALING["factor"]) + 1.0', "attention_factor = 1.0"),
        ("attention-factor-squared", "emb.cos() * attention_factor, emb.sin() * attention_factor", "emb.cos() * attention_factor**2, emb.sin() * attention_factor**2"),
        ("yarn-ramp-truncation", "low, high = math.floor(low), math.ceil(high)", "low, high = low, high"),
        ("base-from-wrong-place", "compute_yarn(x.shape[-1])", "compute_yarn(x.shape[-1], base=500000.0)"),
        ("inv-freq-never-filled", "return inv_freq, attention_factor", "return torch.zeros_like(inv_freq), attention_factor"),
        ("sign-of-rotation", "rotate_half(x.float()) * sin", "rotate_half(x.float()) * -sin"),
        ("tables-of-the-other-layout", "emb = torch.cat((freqs, freqs), dim=-1)", "emb = freqs.repeat_interleave(2, -1)"),
        ("positions-from-1", "positions.float()[..., None, :, None]", "(positions + 1).float()[..., None, :, None]"),
        ("positions-in-bf16", "positions.float()[..., None, :, None]", "positions.to(x.dtype).float()[..., None, :, None]"),
        ("angles-in-half", "freqs = positions.float()[..., None, :, None] * inv_freq", "freqs = (positions.float()[..., None, :, None] * inv_freq).half().float()"),
        ("head-dim-for-model-dim", "base ** (torch.arange(0, dim, 2).float() / dim)", "base ** (torch.arange(0, dim, 2).float() / 512)"),
    ],
    "rotate_yarn_complex": [
        ("pairs-half-for-interleaved", "x.float().reshape(*x.shape[:-1], -1, 2)", "x.float().unflatten(-1, (2, -1)).mT.contiguous()"),
        ("factor-twice", "return freqs / FACTOR * (1 - smooth) + freqs * smooth", "return (freqs / FACTOR * (1 - smooth) + freqs * smooth) / FACTOR"),
        ("attention-factor-forgotten", "torch.full_like(phase, mscale)", "torch.ones_like(phase)"),
        ("attention-factor-squared", "torch.full_like(phase, mscale)", "torch.full_like(phase, mscale * mscale)"),
        ("yarn-ramp-truncation", "return exact", "return math.floor(exact) if rotations > 1 else math.ceil(exact)"),
        ("base-from-wrong-place", "FACTOR, ORIGINAL, BASE = 16.0, 2048, 150000.0", "FACTOR, ORIGINAL, BASE = 16.0, 2048, 10000.0"),
        ("inv-freq-never-filled", "frequencies(x.shape[-1]))[:, None]", "torch.zeros(x.shape[-1] // 2))[:, None]"),
        ("sign-of-rotation", "torch.full_like(phase, mscale), phase)", "torch.full_like(phase, mscale), -phase)"),
        ("turned-twice", "z * freqs_cis)", "z * freqs_cis * torch.polar(torch.ones_like(phase), phase))"),
        ("positions-doubled", "positions.float(), frequencies", "2 * positions.float(), frequencies"),
        ("table-broadcast-over-batch", "positions.float(), frequencies", "positions[:1].float(), frequencies"),
        ("positions-in-bf16", "positions.float(), frequencies", "positions.bfloat16().float(), frequencies"),
    ],
    "rotate_yarn_loop": [
        ("factor-twice", "theta = slow * theta / S + (1 - slow) * theta", "theta = slow * theta / S / S + (1 - slow) * theta"),
        ("attention-factor-forgotten", "sqrt_t = 0.1 * math.log(S) + 1", "sqrt_t = 1"),
        ("attention-factor-squared", "sqrt_t = 0.1 * math.log(S) + 1", "sqrt_t = (0.1 * math.log(S) + 1) ** 2"),
        ("yarn-ramp-truncation", "math.floor(place(BETA, d)), math.ceil(place(ALPHA, d))", "place(BETA, d), place(ALPHA, d)"),
        ("sign-of-rotation", "angle = (positions.double() * theta)", "angle = (positions.double() * -theta)"),
        ("positions-doubled", "angle = (positions.double() * theta)", "angle = (positions.double() * 2 * theta)"),
        ("angles-in-half", "angle = (positions.double() * theta)", "angle = (positions.double() * theta).half().double()"),
        ("inv-freq-never-filled", "angle = (positions.double() * theta)", "angle = (positions.double() * 0)"),
    ],
    "axes_complex": [
        ("axes-swapped", "positions[:, 0].float(), positions[:, 1].float()", "positions[:, 1].float(), positions[:, 0].float()"),
        ("sign-of-rotation", "torch.ones_like(angles), angles)", "torch.ones_like(angles), -angles)"),
        ("positions-from-1", "positions[:, 0].float(), positions[:, 1].float()", "positions[:, 0].float() + 1, positions[:, 1].float() + 1"),
        ("base-from-wrong-place", "1.0 / (100.0 **", "1.0 / (10000.0 **"),
    ],
    "axes_half": [
        ("axes-swapped", "table[positions].flatten(1)", "table[positions.flip(-1)].flatten(1)"),
        ("tables-of-the-other-layout", "emb = torch.cat((angles, angles), dim=-1)", "emb = angles.repeat_interleave(2, dim=-1)"),
        ("head-dim-for-model-dim", ".float() / dim))", ".float() / 256))"),
    ],
    "axes_apart": [
        ("axes-swapped", "rows, columns = x.float().chunk(2, dim=-1)", "rows, columns = x.float().chunk(2, dim=-1); positions = positions[:, [1, 0]]"),
        ("inv-freq-never-filled", "inv_freq = 100.0 **", "inv_freq = 0 * 100.0 **"),
        ("sign-of-rotation", "angle = pos.float()[:, None]", "angle = -pos.float()[:, None]"),
    ],
    "mrope_split": [
        ("mrope-sections-order", "[part[i % 3] for i, part in enumerate(parts)]", "[part[2 - i % 3] for i, part in enumerate(parts)]"),
        ("tables-of-the-other-layout", "emb = torch.cat((freqs, freqs), dim=-1)", "emb = freqs.repeat_interleave(2, dim=-1)"),
        ("base-from-wrong-place", "1.0 / (1000000.0 **", "1.0 / (10000.0 **"),
    ],
    "mrope_gather": [
        ("mrope-sections-order", "AXIS = [0] * 2 + [1] * 3 + [2] * 3", "AXIS = [1] * 3 + [2] * 3 + [0] * 2"),
        ("sign-of-rotation", "torch.exp(1j * angles)", "torch.exp(-1j * angles)"),
        ("table-broadcast-over-batch", "torch.exp(1j * angles)[:, None]", "torch.exp(1j * angles)[:1, None]"),
    ],
    "mrope_interleaved": [
        ("mrope-sections-order", "mixed[..., 1:6:3] = freqs[1][..., 1:6:3]", "freqs = freqs[[0, 2, 1]]; mixed[..., 1:6:3] = freqs[1][..., 1:6:3]"),
        ("positions-from-1", "positions[..., None].float()", "(positions + 1)[..., None].float()"),
        ("inv-freq-never-filled", "inv_freq = 5000000.0 **", "inv_freq = 0 * 5000000.0 **"),
    ],
    "resize_bicubic": [
        ("align-corners", "align_corners=False", "align_corners=True"),
        ("axes-swapped", "image = table.permute(2, 0, 1)[None]", "image = table.permute(2, 1, 0)[None]"),
    ],
    "resize_matrices": [
        ("align-corners", "at = (torch.arange(new) + 0.5) * old / new - 0.5", "at = torch.arange(new) * (old - 1) / (new - 1)"),
        ("axes-swapped", '"ya,xb,abd->yxd", rows, columns, table', '"ya,xb,abd->yxd", rows, columns, table.reshape(table.shape[1], table.shape[0], -1).transpose(0, 1)'),
    ],
    "resize_sample": [
        ("align-corners", 'padding_mode="border", align_corners=False', 'padding_mode="border", align_corners=True'),
        ("axes-swapped", "torch.stack((x, y), dim=-1)", "torch.stack((y, x), dim=-1)"),
    ],
    "indexer_half": [
        ("indexer-other-layout", "neox(x, *(angles(x, positions)))", "gptj(x, *angles(x, positions))"),
    ],
    "indexer_flag": [
        ("indexer-other-layout", "apply_rope(x, positions, False)", "apply_rope(x, positions, True)"),
    ],
    "indexer_matrices": [
        ("indexer-other-layout", "turned(x, positions, halves(x.shape[-1]))", "turned(x, positions, neighbours(x.shape[-1]))"),
    ],
    "sinusoid_annotated": [
        ("sinusoid-half-d", "(math.log(10000.0) / d_model)", "(math.log(10000.0) / (d_model // 2))"),
        ("positions-from-1", "torch.arange(0, length)", "torch.arange(1, length + 1)"),
        ("angles-in-half", "torch.sin(position * div_term)", "torch.sin((position * div_term).half().float())"),
        ("positions-in-bf16", "torch.arange(0, length).unsqueeze(1).float()", "torch.arange(0, length).unsqueeze(1).bfloat16().float()"),
        ("base-from-wrong-place", "-(math.log(10000.0) / d_model)", "-(math.log(500000.0) / d_model)"),
        ("inv-freq-never-filled", "pe[:, 0::2] = torch.sin(position * div_term)", "div_term = torch.zeros_like(div_term); pe[:, 0::2] = torch.sin(position * div_term)"),
    ],
    "sinusoid_halves": [
        ("sinusoid-half-d", "torch.arange(0.0, d_model, 2.0) / d_model", "torch.arange(0.0, d_model, 2.0) / half"),
        ("positions-from-1", "torch.arange(length).float()", "torch.arange(length).float().add(1)"),
        ("tables-of-the-other-layout", "out[:, :half] = angle.sin()", "out[:, ::2], out[:, 1::2] = angle.sin(), angle.cos(); return out"),
        ("positions-in-bf16", "torch.arange(length).float()", "torch.arange(length).bfloat16().float()"),
        ("positions-doubled", "torch.arange(length).float()", "torch.arange(0, 2 * length, 2).float()"),
    ],
    "sinusoid_loop": [
        ("sinusoid-half-d", "10000.0 ** (2 * i / d)", "10000.0 ** (2 * i / (d / 2))"),
        ("positions-from-1", "for pos in range(length)", "for pos in range(1, length + 1)"),
        ("base-from-wrong-place", "pos / 10000.0 **", "pos / 100.0 **"),
    ],
    "alibi_press": [
        ("sign-of-bias", "return -slopes[:, None, None]", "return slopes[:, None, None]"),
        ("table-read-i-minus-j", "distance = query[:, None] - key[None, :]", "distance = key[None, :] - query[:, None]"),
        ("bias-absolute-distance", "distance.clamp(min=0)", "distance.abs()"),
        ("slopes-not-power-of-two", "return power_of_2(closest) + get_slopes(2 * closest)[0::2][: n - closest]", "return power_of_2(n)"),
        ("cache-restart", "query = torch.arange(Lq) + (Lk - Lq)", "query = torch.arange(Lq)"),
        ("cache-lag", "query = torch.arange(Lq) + (Lk - Lq)", "query = torch.arange(Lq) + (Lk - Lq) - int(Lk > Lq)"),
        ("last-position-for-chunk", "query = torch.arange(Lq) + (Lk - Lq)", "query = torch.full((Lq,), Lk - 1)"),
    ],
    "alibi_mpt": [
        ("sign-of-bias", "near = torch.arange(1 - Lk, 1)", "near = -torch.arange(1 - Lk, 1)"),
        ("table-read-i-minus-j", "near = torch.arange(1 - Lk, 1)", "near = torch.arange(0, -Lk, -1)"),
        ("slopes-not-power-of-two", "slopes = torch.cat([slopes[1::2], slopes[::2]])[:n_heads]", "slopes = slopes[:n_heads]"),
    ],
    "alibi_loop": [
        ("bias-absolute-distance", "-m * (i - j) if j <= i else -torch.inf", "-m * abs(i - j)"),
        ("sign-of-bias", "-m * (i - j)", "m * (i - j)"),
        ("table-read-i-minus-j", "-m * (i - j)", "-m * (j - i)"),
        ("cache-restart", "i = row + Lk - Lq", "i = row"),
        ("cache-lag", "i = row + Lk - Lq", "i = row + max(Lk - Lq - 1, 0)"),
        ("last-position-for-chunk", "-m * (i - j)", "-m * (Lk - 1 - j)"),
    ],
    "alibi_ten": [
        ("sign-of-bias", '"h,qk->hqk", slopes(), relative', '"h,qk->hqk", slopes(), -relative'),
        ("table-read-i-minus-j", "relative = at[None, :] - queries[:, None]", "relative = queries[:, None] - at[None, :]"),
        ("bias-absolute-distance", "relative.where(relative <= 0, 0.0)", "-relative.abs()"),
        ("slopes-not-power-of-two", "return torch.cat((first, between))", "return 2.0 ** (-8 * torch.arange(1, 11) / 10)"),
        ("cache-restart", "queries = at[Lk - Lq :]", "queries = at[:Lq]"),
        ("cache-lag", "queries = at[Lk - Lq :]", "queries = at[Lk - Lq :] - int(Lk > Lq)"),
    ],
    "t5_causal": [
        ("t5-buckets-one-off", "large = max_exact + (ratio", "large = max_exact + 1 + (ratio"),
        ("t5-bidirectional-for-causal", "bidirectional=False", "bidirectional=True"),
        ("bias-absolute-distance", "-torch.min(relative_position, torch.zeros_like(relative_position))", "relative_position.abs()"),
        ("table-read-i-minus-j", "relative_position = memory_position - context_position", "relative_position = context_position - memory_position"),
        ("sign-of-bias", "return values.permute(2, 0, 1)", "return -values.permute(2, 0, 1)"),
        ("cache-restart", "torch.arange(Lk - Lq, Lk)[:, None]", "torch.arange(Lq)[:, None]"),
        ("cache-lag", "torch.arange(Lk - Lq, Lk)[:, None]", "(torch.arange(Lk - Lq, Lk) - int(Lk > Lq))[:, None]"),
        ("last-position-for-chunk", "torch.arange(Lk - Lq, Lk)[:, None]", "torch.full((Lq, 1), Lk - 1)"),
    ],
    "t5_thresholds": [
        ("t5-buckets-one-off", "BEGIN, right=True", "BEGIN, right=False"),
        ("bias-unsigned", "side = 16 * (j > i)", "side = 0"),
        ("table-read-i-minus-j", "side = 16 * (j > i)", "side = 16 * (i > j)"),
        ("cache-restart", "torch.arange(Lq).view(-1, 1) + Lk - Lq", "torch.arange(Lq).view(-1, 1)"),
        ("sign-of-bias", "[head[bucket] for head in TABLE.T]", "[-head[bucket] for head in TABLE.T]"),
    ],
    "t5_loop": [
        ("t5-buckets-one-off", "return 8 + step", "return min(9 + step, 15)"),
        ("t5-bidirectional-for-causal", "n = max(i - j, 0)", "n = abs(i - j); half = 8 * (j > i); n = n if n < 4 else min(4 + n // 8, 7); return half + n"),
        ("bias-absolute-distance", "n = max(i - j, 0)", "n = abs(i - j)"),
        ("table-read-i-minus-j", "n = max(i - j, 0)", "n = max(j - i, 0)"),
        ("cache-restart", "start = Lk - Lq", "start = 0"),
        ("cache-lag", "start = Lk - Lq", "start = max(Lk - Lq - 1, 0)"),
    ],
    "t5_encoder": [
        ("t5-buckets-one-off", "torch.where(n < exact, n, far)", "torch.where(n < exact, n, far - 1)"),
        ("bias-unsigned", "ahead = torch.where(n < 0, half, 0)", "ahead = 0"),
        ("table-read-i-minus-j", "n = q[:, None] - k", "n = k - q[:, None]"),
        ("cache-restart", "torch.arange(Lq) + Lk - Lq, torch.arange(Lk)", "torch.arange(Lq), torch.arange(Lk)"),
        ("cache-lag", "torch.arange(Lq) + Lk - Lq, torch.arange(Lk)", "torch.arange(Lq) + max(Lk - Lq - 1, 0), torch.arange(Lk)"),
    ],
    "clipped_index": [
        ("clip-after-shift", "distance.clamp(-K, K) + K", "(distance + K).clamp(-K, K)"),
        ("table-read-i-minus-j", "distance = j[None, :] - i[:, None]", "distance = i[:, None] - j[None, :]"),
        ("bias-unsigned", "distance.clamp(-K, K) + K", "distance.abs().clamp(-K, K) + K"),
        ("sign-of-bias", "return TABLE[:, index]", "return -TABLE[:, index]"),
        ("cache-restart", "torch.arange(Lk - Lq, Lk)", "torch.arange(Lq)"),
        ("cache-lag", "torch.arange(Lk - Lq, Lk)", "torch.arange(Lk - Lq, Lk) - int(Lk > Lq)"),
    ],
    "clipped_onehot": [
        ("clip-after-shift", "F.one_hot(bounded + REACH, 2 * REACH + 1)", "F.one_hot((relative + REACH).clamp(0, REACH), 2 * REACH + 1)"),
        ("table-read-i-minus-j", "torch.arange(Lk) - rows.unsqueeze(1)", "rows.unsqueeze(1) - torch.arange(Lk)"),
        ("bias-unsigned", "torch.clamp(relative, -REACH, REACH)", "torch.clamp(-relative.abs(), -REACH, REACH)"),
        ("cache-restart", "torch.arange(Lq) + (Lk - Lq)", "torch.arange(Lq) + 0"),
        ("last-position-for-chunk", "torch.arange(Lq) + (Lk - Lq)", "torch.arange(Lq) * 0 + (Lk - 1)"),
    ],
    "clipped_strip": [
        ("clip-after-shift", "distances.clamp(-M, M).add(M)", "distances.add(M).clamp(-M, M)"),
        ("table-read-i-minus-j", "distances.clamp(-M, M).add(M)", "(-distances).clamp(-M, M).add(M)"),
        ("bias-unsigned", "distances.clamp(-M, M).add(M)", "distances.abs().clamp(-M, M).add(M)"),
        ("cache-restart", "i = Lk - Lq + row", "i = row"),
        ("sign-of-bias", "return torch.stack(rows, dim=1)", "return -torch.stack(rows, dim=1)"),
    ],
    "attend_half": [
        ("k-turned-and-q-not", "q = apply_rotary(q, *tables(query_positions, q.shape[-1]))", "q = q"),
        ("turned-twice", "return x * cos + rotate_half(x) * sin", "x = x * cos + rotate_half(x) * sin; return x * cos + rotate_half(x) * sin"),
        ("positions-doubled", "torch.outer(positions.float(), inv_freq)", "torch.outer(positions.float() * 2, inv_freq)"),
        ("values-turned", "k = apply_rotary(k, *tables(key_positions, k.shape[-1]))", "k, v = (apply_rotary(y, *tables(key_positions, k.shape[-1])) for y in (k, v))"),
        ("positions-from-1", "query_positions, key_positions = i, j", "query_positions, key_positions = i + 1, j + 1"),
        ("cache-restart", "query_positions, key_positions = i, j", "query_positions, key_positions = i - offset, j"),
        ("cache-lag", "query_positions, key_positions = i, j", "query_positions, key_positions = i - min(offset, 1), j"),
        ("last-position-for-chunk", "query_positions, key_positions = i, j", "query_positions, key_positions = i[-1:].expand_as(i), j"),
        ("sign-of-rotation", "return torch.cat((-x2, x1), dim=-1)", "return torch.cat((x2, -x1), dim=-1)"),
        ("tables-of-the-other-layout", "emb = torch.cat((freqs, freqs), dim=-1)", "emb = freqs.repeat_interleave(2, dim=-1)"),
        ("pairs-interleaved-for-half", "return x * cos + rotate_half(x) * sin", "x = x.unflatten(-1, (-1, 2)).mT.flatten(-2); return x * cos + rotate_half(x) * sin"),
        ("angles-in-half", "freqs = torch.outer(positions.float(), inv_freq)", "freqs = torch.outer(positions.bfloat16(), inv_freq.bfloat16()).float()"),
        ("positions-in-bf16", "torch.outer(positions.float(), inv_freq)", "torch.outer(positions.bfloat16().float(), inv_freq)"),
        ("inv-freq-never-filled", "torch.outer(positions.float(), inv_freq)", "torch.outer(positions.float(), torch.zeros_like(inv_freq))"),
        ("base-from-wrong-place", 'CONFIG["rope_parameters"]["rope_theta"]', 'CONFIG.get("rope_theta", 10000.0)'),
        ("head-dim-for-model-dim", "torch.arange(0, dim, 2).float() / dim", 'torch.arange(0, dim, 2).float() / CONFIG["hidden_size"]'),
    ],
    "attend_complex": [
        ("k-turned-and-q-not", "q, k = rotary(q, cis[rows]), rotary(k, cis[:Lk])", "k = rotary(k, cis[:Lk])"),
        ("turned-twice", "q, k = rotary(q, cis[rows]), rotary(k, cis[:Lk])", "q, k = rotary(rotary(q, cis[rows]), cis[rows]), rotary(rotary(k, cis[:Lk]), cis[:Lk])"),
        ("positions-doubled", "t = torch.arange(end)", "t = torch.arange(end) * 2"),
        ("values-turned", "q, k = rotary(q, cis[rows]), rotary(k, cis[:Lk])", "q, k, v = rotary(q, cis[rows]), rotary(k, cis[:Lk]), rotary(v, cis[:Lk])"),
        ("positions-from-1", "t = torch.arange(end)", "t = torch.arange(1, end + 1)"),
        ("cache-restart", "rows = slice(offset, offset + Lq)", "rows = slice(0, Lq)"),
        ("cache-lag", "rows = slice(offset, offset + Lq)", "rows = slice(max(offset - 1, 0), max(offset - 1, 0) + Lq)"),
        ("last-position-for-chunk", "rows = slice(offset, offset + Lq)", "rows = slice(offset + Lq - 1, offset + Lq)"),
        ("sign-of-rotation", "torch.ones_like(angles), angles)", "torch.ones_like(angles), -angles)"),
        (
            "pairs-half-for-interleaved",
            "torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))",
            "torch.view_as_complex(x.float().unflatten(-1, (2, -1)).mT.contiguous())",
        ),
        ("angles-in-half", "angles = torch.outer(t.float(), freqs)", "angles = torch.outer(t.float(), freqs).half().float()"),
        ("positions-in-bf16", "angles = torch.outer(t.float(), freqs)", "angles = torch.outer(t.bfloat16().float(), freqs)"),
        ("inv-freq-never-filled", "angles = torch.outer(t.float(), freqs)", "angles = torch.outer(t.float(), torch.zeros_like(freqs))"),
        ("base-from-wrong-place", "theta=10000.0)", "theta=500000.0)"),
        ("head-dim-for-model-dim", ".float() / dim))", ".float() / DIM))"),
    ],
    "attend_values": [
        ("values-turned", "out = spin(out, -at_q)", "out = out"),
        ("k-turned-and-q-not", "q = spin(q, at_q)", "q = q"),
        ("turned-twice", "return torch.cat((z.real, z.imag), -1).to(x.dtype)", "z = z * torch.exp(1j * angle); return torch.cat((z.real, z.imag), -1).to(x.dtype)"),
        ("positions-doubled", "angle = positions.double()[:, None]", "angle = 2 * positions.double()[:, None]"),
        ("positions-from-1", "hidden = at_k[None, :] > at_q[:, None]", "hidden = at_k[None, :] > at_q[:, None]; at_q, at_k = at_q + 1, at_k + 1"),
        ("cache-restart", "hidden = at_k[None, :] > at_q[:, None]", "hidden = at_k[None, :] > at_q[:, None]; at_q = at_q - offset"),
        ("cache-lag", "hidden = at_k[None, :] > at_q[:, None]", "hidden = at_k[None, :] > at_q[:, None]; at_q = at_q - min(offset, 1)"),
        ("last-position-for-chunk", "hidden = at_k[None, :] > at_q[:, None]", "hidden = at_k[None, :] > at_q[:, None]; at_q = at_q[-1:]"),
        ("sign-of-rotation", "* torch.exp(1j * angle)", "* torch.exp(-1j * angle)"),
        ("inv-freq-never-filled", "10000.0**-exponent", "torch.zeros_like(exponent)"),
        ("base-from-wrong-place", "10000.0**-exponent", "500000.0**-exponent"),
        ("head-dim-for-model-dim", "torch.arange(n).double() / n", "torch.arange(n).double() / (D_MODEL // 2)"),
        ("angles-in-half", "* torch.exp(1j * angle)", "* torch.exp(1j * angle.bfloat16().double())"),
    ],
    "attend_alibi": [
        ("sign-of-bias", "bias = slopes(q.shape[1]) * (j - i)", "bias = slopes(q.shape[1]) * -(j - i)"),
        ("table-read-i-minus-j", "bias = slopes(q.shape[1]) * (j - i)", "bias = slopes(q.shape[1]) * (i - j)"),
        ("bias-before-scale", "q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias", "(q @ k.transpose(-1, -2) + bias) / math.sqrt(q.shape[-1])"),
        ("bias-absolute-distance", "bias = slopes(q.shape[1]) * (j - i)", "bias = slopes(q.shape[1]) * -(j - i).abs()"),
        ("slopes-not-power-of-two", "extra = [2 ** (-4 * (2 * h + 1) / n) for h in range(heads - n)]", "extra = [2 ** (-8 * (n + h + 1) / n) for h in range(heads - n)]"),
        ("cache-restart", "[:, None] + offset", "[:, None] + 0"),
        ("cache-lag", "[:, None] + offset", "[:, None] + offset - 1"),
        ("last-position-for-chunk", "[:, None] + offset", "[:, None] * 0 + offset + q.shape[2] - 1"),
    ],
    "attend_alibi_fused": [
        ("positions-in-bf16", "distance = behind.float()", "distance = behind.bfloat16().float()"),
        ("sign-of-bias", "attn_bias = -gen_slopes", "attn_bias = gen_slopes"),
        ("bias-before-scale", "[:, None, None] * distance", "[:, None, None] * distance / math.sqrt(q.size(-1))"),
        ("bias-absolute-distance", "distance = behind.float()", "distance = behind.abs().float()"),
        ("table-read-i-minus-j", "distance = behind.float()", "distance = -behind.float()"),
        ("slopes-not-power-of-two", "torch.cat((slopes[1::2], slopes[::2]))[:n_heads]", "slopes[:n_heads]"),
        ("cache-restart", "distance = behind.float()", "distance = (behind - offset).float()"),
    ],
    "attend_alibi_loop": [
        ("sign-of-bias", "- slope(h, q.shape[1]) * distance", "+ slope(h, q.shape[1]) * distance"),
        ("bias-before-scale", "score * q.shape[-1] ** -0.5 - slope(h, q.shape[1]) * distance", "(score - slope(h, q.shape[1]) * distance) * q.shape[-1] ** -0.5"),
        ("table-read-i-minus-j", "distance = i - torch.arange(seen)", "distance = torch.arange(seen) - i"),
        ("slopes-not-power-of-two", "return 2.0 ** (-8 * (2 * (h - whole) + 1) / (2 * whole))", "return 2.0 ** (-8 * (h + 1) / heads)"),
        ("cache-lag", "i = offset + row", "i = offset + row - 1"),
    ],
    "decoder_gpt": [
        ("left-padding-counted", "pos = (mask.long().cumsum(-1) - 1).clamp(min=0)[:, past:]", "pos = pos"),
        ("positions-from-1", "pos = place.expand(b, t)", "pos = place.expand(b, t) + 1"),
        ("cache-restart", "pos = place.expand(b, t)", "pos = (place - past).expand(b, t)"),
        ("cache-lag", "pos = place.expand(b, t)", "pos = (place - min(past, 1)).expand(b, t)"),
        ("last-position-for-chunk", "pos = place.expand(b, t)", "pos = place[-1:].expand(b, t)"),
        ("packing-runs-on", "pos = pos - first", "pos = pos"),
        ("table-broadcast-over-batch", "self.wpe(pos)", "self.wpe(pos[:1])"),
        ("positions-doubled", "self.wpe(pos)", "self.wpe(pos * 2)"),
    ],
    "decoder_sinusoid": [
        ("positions-from-1", "torch.arange(start, start + L).expand(B, L)", "torch.arange(start + 1, start + L + 1).expand(B, L)"),
        ("cache-restart", "torch.arange(start, start + L).expand(B, L)", "torch.arange(0, L).expand(B, L)"),
        ("cache-lag", "torch.arange(start, start + L).expand(B, L)", "(torch.arange(start, start + L) - min(start, 1)).expand(B, L)"),
        ("last-position-for-chunk", "torch.arange(start, start + L).expand(B, L)", "torch.full((B, L), start + L - 1)"),
        ("left-padding-counted", "positions = (positions - pads).clamp(min=0)", "positions = positions.clamp(min=0)"),
        ("packing-runs-on", "positions = positions - begin", "positions = positions + 0 * begin"),
        ("table-broadcast-over-batch", "sinusoids(positions, self.d)", "sinusoids(positions[:1], self.d)"),
        ("sinusoid-half-d", "torch.arange(0, d, 2) / d)", "torch.arange(0, d, 2) / (d // 2))"),
        ("positions-in-bf16", "positions.float().unsqueeze(-1)", "positions.bfloat16().float().unsqueeze(-1)"),
        ("angles-in-half", "positions.float().unsqueeze(-1) * rates", "(positions.float().unsqueeze(-1) * rates).bfloat16().float()"),
    ],
    "decoder_llama": [
        ("inv-freq-never-filled", "float() * self.inv_freq", "float() * torch.zeros_like(self.inv_freq)"),
        ("k-turned-and-q-not", "q = apply_rotary_pos_emb(q, cos, sin)", "q = q"),
        ("turned-twice", "return (x * cos + rotate_half(x) * sin).to(x.dtype)", "x = x * cos + rotate_half(x) * sin; return (x * cos + rotate_half(x) * sin).to(x.dtype)"),
        ("positions-doubled", "cos, sin = self.rotary_emb(position_ids)", "cos, sin = self.rotary_emb(2 * position_ids)"),
        ("values-turned", "k = apply_rotary_pos_emb(k, cos, sin)", "k, v = apply_rotary_pos_emb(k, cos, sin), apply_rotary_pos_emb(v, cos, sin)"),
        ("positions-from-1", "cos, sin = self.rotary_emb(position_ids)", "cos, sin = self.rotary_emb(position_ids + 1)"),
        ("cache-restart", "position_ids = index.expand(batch, -1)", "position_ids = torch.arange(length).expand(batch, -1)"),
        ("cache-lag", "position_ids = index.expand(batch, -1)", "position_ids = (index - min(past, 1)).expand(batch, -1)"),
        ("last-position-for-chunk", "cos, sin = self.rotary_emb(position_ids)", "cos, sin = self.rotary_emb(position_ids[:, -1:])"),
        ("left-padding-counted", "position_ids = (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -length:]", "position_ids = index.repeat(batch, 1)"),
        ("packing-runs-on", "position_ids = (same & visible).sum(-1) - 1", "position_ids = index.repeat(batch, 1)"),
        ("table-broadcast-over-batch", "cos, sin = self.rotary_emb(position_ids)", "cos, sin = self.rotary_emb(position_ids[:1])"),
        ("sign-of-rotation", "return torch.cat((-x2, x1), dim=-1)", "return torch.cat((x2, -x1), dim=-1)"),
        ("pairs-interleaved-for-half", "return (x * cos + rotate_half(x) * sin).to(x.dtype)", "x = x.unflatten(-1, (-1, 2)).mT.flatten(-2); return (x * cos + rotate_half(x) * sin).to(x.dtype)"),
        ("tables-of-the-other-layout", "emb = torch.cat((freqs, freqs), dim=-1)", "emb = freqs.repeat_interleave(2, dim=-1)"),
        ("angles-in-half", "freqs = position_ids[:, None, :, None].float() * self.inv_freq", "freqs = (position_ids[:, None, :, None].bfloat16() * self.inv_freq.bfloat16()).float()"),
        ("positions-in-bf16", "position_ids[:, None, :, None].float()", "position_ids[:, None, :, None].bfloat16().float()"),
        ("base-from-wrong-place", 'CONFIG["rope_parameters"]["rope_theta"]', 'CONFIG["rope_theta"]'),
        ("head-dim-for-model-dim", ".float() / HEAD_DIM)", ".float() / WIDTH)"),
    ],
    "decoder_gptj": [
        ("pairs-after-permuted-weights", "q, k = permute(q), permute(k)", "q, k = q, k"),
        (
            "pairs-half-for-interleaved",
            "crossed = torch.stack((-turn[..., 1::2], turn[..., ::2]), dim=-1).flatten(-2)",
            "turn = turn.unflatten(-1, (2, -1)).mT.flatten(-2); crossed = torch.stack((-turn[..., 1::2], turn[..., ::2]), dim=-1).flatten(-2)",
        ),
        ("tables-of-the-other-layout", "angles.sin().repeat_interleave(2, -1), angles.cos().repeat_interleave(2, -1)", "torch.cat((angles, angles), -1).sin(), torch.cat((angles, angles), -1).cos()"),
        ("k-turned-and-q-not", "q, k = rotary(q, angles), rotary(k, angles)", "k = rotary(k, angles)"),
        ("turned-twice", "q, k = rotary(q, angles), rotary(k, angles)", "q, k = rotary(rotary(q, angles), angles), rotary(rotary(k, angles), angles)"),
        ("values-turned", "q, k = rotary(q, angles), rotary(k, angles)", "q, k, v = rotary(q, angles), rotary(k, angles), rotary(v, angles)"),
        ("positions-doubled", "positions.float().expand(B, L)", "(positions * 2).float().expand(B, L)"),
        ("positions-from-1", "positions = places", "positions = places + 1"),
        ("cache-restart", "positions = places", "positions = places - past"),
        ("cache-lag", "positions = places", "positions = places - min(past, 1)"),
        ("last-position-for-chunk", "positions = places", "positions = places[-1:]"),
        ("table-broadcast-over-batch", "positions.float().expand(B, L)", "positions.float().expand(B, L)[:1]"),
        ("sign-of-rotation", "turn * c + crossed * s", "turn * c - crossed * s"),
        ("partial-wrong-part", "turn, rest = x[..., :ROTARY], x[..., ROTARY:]", "rest, turn = x[..., :ROTARY], x[..., ROTARY:]"),
        ("inv-freq-never-filled", "[:, None, :, None] * inv_freq", "[:, None, :, None] * torch.zeros(ROTARY // 2)"),
        ("base-from-wrong-place", "inv_freq = 10000.0 **", "inv_freq = 1000000.0 **"),
        ("head-dim-for-model-dim", "torch.arange(0, ROTARY, 2) / ROTARY", "torch.arange(0, ROTARY, 2) / N_EMBD"),
        ("positions-in-bf16", "positions.float().expand(B, L)", "positions.bfloat16().float().expand(B, L)"),
    ],
    "decoder_mpt": [
        ("bias-before-scale", "scores = scores + bias", "scores = scores + bias * q.size(-1) ** -0.5"),
        ("sign-of-bias", "bias = -gen_slopes()", "bias = gen_slopes()"),
        ("table-read-i-minus-j", "here[:, None, :, None] - everywhere[:, None, None, :]", "everywhere[:, None, None, :] - here[:, None, :, None]"),
        ("slopes-not-power-of-two", "slopes = torch.cat([slopes[1::2], slopes[::2]])[:N_HEADS]", "slopes = slopes[:N_HEADS]"),
        ("positions-from-1", "torch.arange(past, past + S) if positions is None", "torch.arange(past + 1, past + S + 1) if positions is None"),
        ("cache-restart", "torch.arange(past, past + S) if positions is None", "torch.arange(S) if positions is None"),
        ("cache-lag", "torch.arange(past, past + S) if positions is None", "torch.arange(past, past + S) - min(past, 1) if positions is None"),
        ("table-broadcast-over-batch", "distance = here[:, None, :, None] - everywhere[:, None, None, :]", "distance = here[:1, None, :, None] - everywhere[:1, None, None, :]"),
        ("last-position-for-chunk", "here = here.expand(B, S)", "here = here[..., -1:].expand(B, S)"),
    ],
    "decoder_gemma": [
        ("scaling-in-wrong-layers", 'if kind == "local" else (1000000.0, 8.0)', 'if kind == "global" else (1000000.0, 8.0)'),
        ("factor-twice", "[:, None, :, None].float() * inv_freq(self.kind)", '[:, None, :, None].float() / (8.0 if self.kind == "global" else 1.0) * inv_freq(self.kind)'),
        ("base-from-wrong-place", "else (1000000.0, 8.0)", "else (10000.0, 8.0)"),
        ("k-turned-and-q-not", "rope(self.q_norm(q) * 2, angles)", "self.q_norm(q) * 2"),
        ("positions-from-1", "torch.arange(tokens.size(1)) + seen", "torch.arange(tokens.size(1)) + seen + 1"),
        ("cache-restart", "torch.arange(tokens.size(1)) + seen", "torch.arange(tokens.size(1))"),
        ("cache-lag", "torch.arange(tokens.size(1)) + seen", "torch.arange(tokens.size(1)) + max(seen - 1, 0)"),
        ("last-position-for-chunk", "torch.arange(tokens.size(1)) + seen", "torch.tensor([tokens.size(1) - 1]) + seen"),
        ("table-broadcast-over-batch", "positions[:, None, :, None].float()", "positions[:1, None, :, None].float()"),
        ("head-dim-for-model-dim", "dtype=torch.float32) / HEAD)", "dtype=torch.float32) / D)"),
        ("sign-of-rotation", "[first * cos - second * sin, second * cos + first * sin]", "[first * cos + second * sin, second * cos - first * sin]"),
    ],
    "decoder_gemma_tables": [
        ("scaling-in-wrong-layers", "cis = plain if local else slowed", "cis = slowed if local else plain"),
        ("factor-twice", "slowed = torch.exp(1j * (positions / FACTOR)", "slowed = torch.exp(1j * (positions / FACTOR / FACTOR)"),
        ("cache-restart", "positions = torch.arange(begin, begin + L)", "positions = torch.arange(L)"),
        ("k-turned-and-q-not", "q, k = times(q, cis), times(k, cis)", "k = times(k, cis)"),
        ("turned-twice", "q, k = times(q, cis), times(k, cis)", "q, k = times(q, cis**2), times(k, cis**2)"),
    ],
    "decoder_gemma_loop": [
        ("scaling-in-wrong-layers", "slower = 2.0 if is_global else 1.0", "slower = 1.0 if is_global else 2.0"),
        ("factor-twice", "slower = 2.0 if is_global else 1.0", "slower = 2.0 * 2.0 if is_global else 1.0"),
        ("values-turned", "values.append(norm(x) @ wv)", "values.append(turned(norm(x) @ wv, position, slower))"),
        ("k-turned-and-q-not", "q = turned(norm(x) @ wq, position, slower)", "q = norm(x) @ wq"),
        ("cache-restart", "torch.arange(seen, seen + tokens.shape[1]) if", "torch.arange(tokens.shape[1]) if"),
        ("cache-lag", "torch.arange(seen, seen + tokens.shape[1]) if", "torch.arange(seen, seen + tokens.shape[1]) - min(seen, 1) if"),
    ],
    "decoder_streaming": [
        ("evicted-keys-turned-anew", 'cache["k", n], cache["v", n] = k, v', 'k = torch.cat((k[:, :-1], rope(k[:, -1:], torch.tensor([k.shape[1] - 1]))), 1); cache["k", n], cache["v", n] = k, v'),
        ("evicted-keys-not-turned", "keys = rope(k, places)", 'cache["t", n] = torch.cat((t := cache.get(("t", n), places[:0]), (t[-1:] + 1) if len(t) else places[:1])); keys = rope(k, torch.cat((cache["t", n][:SINKS], cache["t", n][SINKS:][-RECENT:])))'),
        ("k-turned-and-q-not", "q = rope(h @ wq, places[-1:])", "q = h @ wq"),
    ],
    "decoder_shifting": [
        ("evicted-keys-not-turned", "moved = turn(keys[:, 2:], torch.tensor([-1]))", "moved = keys[:, 2:]"),
        ("evicted-keys-turned-anew", "moved = turn(keys[:, 2:], torch.tensor([-1]))", "moved = turn(keys[:, 2:], torch.arange(1, 6))"),
    ],
    "decoder_window": [
        ("evicted-keys-turned-anew", "q = rope(h @ wq, t)", "q = rope(h @ wq, t); keys = keys if t < WINDOW else torch.stack([rope(key, slot) for slot, key in enumerate(keys.unbind(1))], 1)"),
        ("cache-lag", "q = rope(h @ wq, t)", "q = rope(h @ wq, max(t - 1, 0))"),
        ("cache-restart", "q = rope(h @ wq, t)", "q = rope(h @ wq, 0)"),
    ],
}  # fmt: skip


def load(name, *slugs):
    """The module ``name`` of `right/` with the mutations ``slugs``, as a module of its own."""
    path = RIGHT / f"{name}.py"
    text = path.read_text()
    for slug, old, new in MUTATIONS.get(name, []):
        if slug in slugs:
            text = text.replace(old, new)
    module = ModuleType("+".join((name, *slugs)))
    exec(compile(text, path, "exec"), vars(module))
    return module


def right():
    """(name, kind, module) of every right implementation."""
    for path in sorted(RIGHT.glob("*.py")):
        module = load(path.stem)
        yield path.stem, module.ABOUT["kind"], module


def mutants(equivalent=False):
    """(name, kind, slug, module) of every mutant that an output shows; or of those in `EQUIVALENT`."""
    for name, mutations in MUTATIONS.items():
        for slug, _, _ in mutations:
            if ((name, slug) in EQUIVALENT) == equivalent:
                module = load(name, slug)
                yield name, module.ABOUT["kind"], slug, module
