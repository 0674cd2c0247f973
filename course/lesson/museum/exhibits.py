"""The exhibits: short implementations, each with a mistake that was really made, and its repair.

A class has one of three forms, for L words, H heads and D channels:

- ``embed(x)`` adds vectors of position to ``x [B, L, D]``;
- ``rotate(x, start)`` turns queries or keys ``[H, L, D]`` that stand at start, start + 1, …;
- ``scores(q, k)`` gives the scores ``[H, Lq, Lk]``; the queries are the last keys.

``step(q, k)`` takes one more word, where keeping keys is itself the subject. What is wrong stands in
:data:`EXHIBITS` at the end, never in the code.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutorial_lib import attention
from tutorial_lib.encodings import ALiBi as LibraryALiBi
from tutorial_lib.encodings import DynamicNTK, Frequencies, NoPosition, Rotary, Shaw, T5Bias, YaRN, sinusoidal


# ---- sines, cosines, and a learned table ----
class PositionalEncoder(nn.Module):
    def __init__(self, d_model=16, length=512):
        super().__init__()
        pe = torch.zeros(length, d_model)
        for pos in range(length):
            for i in range(0, d_model, 2):
                pe[pos, i] = math.sin(pos / 10000 ** (2 * i / d_model))
                pe[pos, i + 1] = math.cos(pos / 10000 ** (2 * (i + 1) / d_model))
        self.register_buffer("pe", pe, persistent=False)

    def embed(self, x):
        return x + self.pe[: x.shape[1]]


class PositionalEncoding(nn.Module):
    def __init__(self, d_model=16, max_len=512):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def embed(self, x):
        return x + self.pe[: x.shape[1]]


class GPT2Embedding(nn.Module):
    def __init__(self, d_model=16, n_positions=512):
        super().__init__()
        self.wpe = nn.Embedding(n_positions, d_model)

    def embed(self, x, attention_mask):
        position_ids = torch.arange(x.shape[1]).expand(x.shape[:2])
        return x + self.wpe(position_ids)


class PackedEmbedding(nn.Module):
    def __init__(self, d_model=16, max_positions=512):
        super().__init__()
        self.embed_positions = nn.Embedding(max_positions, d_model)

    def embed(self, x, documents):
        text = documents > 0
        positions = (text.cumsum(-1) - 1).clamp(min=0)
        return x + self.embed_positions(positions)


# ---- relative vectors and biases ----
class RelativeKeys(nn.Module):
    def __init__(self, head_dim=16, max_distance=256):
        super().__init__()
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.randn(max_distance + 1, head_dim))

    def scores(self, q, k):
        i = torch.arange(k.shape[1] - q.shape[1], k.shape[1])
        j = torch.arange(k.shape[1])
        offset = (j - i[:, None]).clamp(max=0)
        a = self.table[offset + self.max_distance]
        return (q @ k.mT + torch.einsum("hid,ijd->hij", q, a)) / q.shape[-1] ** 0.5


class RelativeBuckets(nn.Module):
    def __init__(self, n_heads=4, num_buckets=32, max_distance=128):
        super().__init__()
        self.half, self.exact, self.max_distance = num_buckets // 2, num_buckets // 4, max_distance
        self.table = nn.Parameter(torch.randn(num_buckets, n_heads))

    def scores(self, q, k):
        r = torch.arange(k.shape[1]) - torch.arange(q.shape[1])[:, None]
        n, scale = r.abs(), math.log(self.max_distance / self.exact)
        far = self.exact + (torch.log(n.clamp(min=1) / self.exact) / scale * (self.half - self.exact)).long()
        ahead = self.half + torch.where(n < self.exact, n, far.clamp(max=self.half - 1))
        behind = torch.where(n < self.exact, n, far)
        return q @ k.mT + self.table[torch.where(r > 0, ahead, behind)].permute(2, 0, 1)


class RelativeAttention(nn.Module):
    def rel_shift(self, x):
        h, n, m = x.shape
        x = F.pad(x, (1, 0)).reshape(h, m + 1, n)
        return x[:, 1:].reshape(h, n, m)

    def scores(self, q, k):
        n = k.shape[1]
        distance = torch.arange(n - 1, -1, -1)
        r = sinusoidal(distance, q.shape[-1]).to(q.dtype)
        return (q @ k.mT + self.rel_shift(q @ r.mT)[..., :n]) / q.shape[-1] ** 0.5


class WindowBias(nn.Module):
    def __init__(self, window=(2, 3, 4), n_heads=4):
        super().__init__()
        depth, height, width = window
        self.table = nn.Parameter(torch.randn((2 * depth - 1) * (2 * height - 1) * (2 * width - 1), n_heads))
        place = torch.cartesian_prod(*map(torch.arange, window))
        r = place[:, None] - place + torch.tensor(window) - 1
        plane, row = 3 * height - 1, 2 * height - 1
        self.index = r[..., 0] * plane + r[..., 1] * row + r[..., 2]

    def scores(self, q, k):
        return q @ k.mT / q.shape[-1] ** 0.5 + self.table[self.index].permute(2, 0, 1)


# ---- RoPE ----
class RotaryPositions(nn.Module):
    def rotate(self, x, start=0):
        d = x.shape[-1]
        position = torch.arange(start, start + x.shape[1])
        angle = torch.outer(position, 10000.0 ** (-torch.arange(0, d, 2) / d))
        angle = angle.repeat_interleave(2, dim=-1)
        x1, x2 = x[..., : d // 2], x[..., d // 2 :]
        rotated = torch.cat([-x2, x1], dim=-1)
        return x * angle.cos() + rotated * angle.sin()


class RotaryAttention(nn.Module):
    def rotate(self, x):
        position = torch.arange(x.shape[-2])
        angle = position[..., None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        x1, x2 = x[..., 0::2], x[..., 1::2]
        return torch.stack(
            [x1 * angle.cos() - x2 * angle.sin(), x1 * angle.sin() + x2 * angle.cos()], dim=-1).flatten(-2)

    def scores(self, q, k):
        q, k = self.rotate(q.transpose(0, 1)), self.rotate(k.transpose(0, 1))
        return torch.einsum("ihd,jhd->hij", q, k) / q.shape[-1] ** 0.5


class CachedRotary(nn.Module):
    def __init__(self, head_dim=16):
        super().__init__()
        self.theta, self.cache = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim), {}

    def rotate(self, x, start=0):
        length = x.shape[1]
        key = f"angles:{length}"
        if key not in self.cache:
            angle = torch.outer(torch.arange(start, start + length), self.theta)
            self.cache[key] = torch.cat([angle, angle], dim=-1)
        angle, (x1, x2) = self.cache[key], x.chunk(2, dim=-1)
        return x * angle.cos() + torch.cat([-x2, x1], dim=-1) * angle.sin()


class RotaryEmbedding(nn.Module):
    def __init__(self, head_dim=16, base=10000.0):
        super().__init__()
        inv_freq = 1.0 / base ** (torch.arange(0, head_dim, 2) / head_dim)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def rotate(self, x, start=0):
        t = torch.arange(start, start + x.shape[1]).type_as(self.inv_freq)
        freqs = torch.outer(t, self.inv_freq)
        emb = torch.cat([freqs, freqs], dim=-1)
        x1, x2 = x.chunk(2, dim=-1)
        return x * emb.cos() + torch.cat([-x2, x1], dim=-1) * emb.sin()


class ConfiguredRotary(nn.Module):
    config = {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}

    def rotate(self, x, start=0):
        d, base = x.shape[-1], self.config.get("rope_theta", 10000.0)
        angle = torch.outer(torch.arange(start, start + x.shape[1]), base ** (-torch.arange(0, d, 2) / d))
        angle, (x1, x2) = torch.cat([angle, angle], dim=-1), x.chunk(2, dim=-1)
        return x * angle.cos() + torch.cat([-x2, x1], dim=-1) * angle.sin()


class LoadedRotary(nn.Module):
    def __init__(self, head_dim=16, base=10000.0):
        super().__init__()
        inv_freq = base ** (-torch.arange(0, head_dim, 2, device="meta") / head_dim)
        self.inv_freq = torch.zeros_like(inv_freq, device="cpu")

    def rotate(self, x, start=0):
        angle = torch.outer(torch.arange(start, start + x.shape[1]), self.inv_freq)
        angle, (x1, x2) = torch.cat([angle, angle], dim=-1), x.chunk(2, dim=-1)
        return x * angle.cos() + torch.cat([-x2, x1], dim=-1) * angle.sin()


class GemmaRotary(nn.Module):
    def __init__(self, is_local=True, factor=8.0):
        super().__init__()
        self.base, self.factor = 10000.0 if is_local else 1000000.0, factor

    def rotate(self, x, start=0):
        d, position = x.shape[-1], torch.arange(start, start + x.shape[1]) / self.factor
        angle = torch.outer(position, self.base ** (-torch.arange(0, d, 2) / d))
        angle, (x1, x2) = torch.cat([angle, angle], dim=-1), x.chunk(2, dim=-1)
        return x * angle.cos() + torch.cat([-x2, x1], dim=-1) * angle.sin()


class SparseIndexer(nn.Module):
    def rotate(self, x, start=0):
        d = x.shape[-1]
        angle = torch.outer(torch.arange(start, start + x.shape[1]), 10000.0 ** (-torch.arange(0, d, 2) / d))
        cos, sin = angle.cos(), angle.sin()
        x1, x2 = x[..., 0::2], x[..., 1::2]
        return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1).flatten(-2)


class DynamicRotary(nn.Module):
    def __init__(self, trained_length=16, base=10000.0):
        super().__init__()
        self.trained_length, self.base, self.keys = trained_length, base, []

    def rotate(self, x, start=0, length=1):
        d = x.shape[-1]
        base = self.base * max(1.0, length / self.trained_length) ** (d / (d - 2))
        angle = torch.outer(torch.arange(start, start + x.shape[1]), base ** (-torch.arange(0, d, 2) / d))
        angle, (x1, x2) = torch.cat([angle, angle], dim=-1), x.chunk(2, dim=-1)
        return x * angle.cos() + torch.cat([-x2, x1], dim=-1) * angle.sin()

    def scores(self, q, k):
        n = k.shape[1]
        return self.rotate(q, n - q.shape[1], n) @ self.rotate(k, 0, n).mT / q.shape[-1] ** 0.5

    def step(self, q, k):
        n = len(self.keys) + 1
        self.keys.append(self.rotate(k, n - 1, n))
        return self.rotate(q, n - 1, n) @ torch.cat(self.keys, dim=1).mT / q.shape[-1] ** 0.5


class StreamingRotary(nn.Module):
    sinks, window, keys = 2, 6, torch.empty(4, 0, 16)

    def rotate(self, x, start=0):
        d = x.shape[-1]
        angle = torch.outer(torch.arange(start, start + x.shape[1]), 10000.0 ** (-torch.arange(0, d, 2) / d))
        angle, (x1, x2) = torch.cat([angle, angle], dim=-1), x.chunk(2, dim=-1)
        return x * angle.cos() + torch.cat([-x2, x1], dim=-1) * angle.sin()

    def kept(self, k):
        return torch.cat([k[:, : self.sinks], k[:, self.sinks :][:, -self.window :]], dim=1)

    def scores(self, q, k):
        k = self.kept(k)
        return self.rotate(q[:, -1:], k.shape[1] - 1) @ self.rotate(k).mT / q.shape[-1] ** 0.5

    def step(self, q, k):
        place = min(self.keys.shape[1], self.sinks + self.window - 1)
        self.keys = self.kept(torch.cat([self.keys, self.rotate(k, place)], dim=1))
        return self.rotate(q, place) @ self.keys.mT / q.shape[-1] ** 0.5


class YarnAttention(nn.Module):
    def __init__(self, head_dim=16, max_seq_len=4096, original_seq_len=4096, factor=40.0):
        super().__init__()
        yarn = YaRN(factor, original_seq_len, ramp="rounded index", attention=1.0)
        self.rotary = Rotary(head_dim, layout="interleaved", frequencies=Frequencies(head_dim, scaling=yarn))
        self.softmax_scale = head_dim**-0.5
        if max_seq_len > original_seq_len:
            mscale = 0.1 * math.log(factor) + 1
            self.softmax_scale *= mscale * mscale

    def scores(self, q, k):
        q, k = self.rotary.rotate(q[None], k[None])
        return q[0] @ k[0].mT * self.softmax_scale


class ConvertedAttention(nn.Module):
    def __init__(self, head_dim=16, file_type="nvfp4"):
        super().__init__()
        self.register_buffer("trained", torch.randn(head_dim, head_dim) / 4)
        w = self.permute(self.trained) if file_type in ("f16", "q8_0") else self.trained
        self.register_buffer("w", w)

    def permute(self, w):
        return w.unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1)

    def rotate(self, x, start=0):
        d = x.shape[-1]
        angle = torch.outer(torch.arange(start, start + x.shape[1]), 10000.0 ** (-torch.arange(0, d, 2) / d))
        cos, sin, x1, x2 = angle.cos(), angle.sin(), x[..., 0::2], x[..., 1::2]
        return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1).flatten(-2)

    def scores(self, q, k):
        q, k = self.rotate(q @ self.w.mT, k.shape[1] - q.shape[1]), self.rotate(k @ self.w.mT)
        return q @ k.mT / q.shape[-1] ** 0.5


# ---- ALiBi, and a mask ----
class ALiBi(nn.Module):
    def __init__(self, num_heads=6):
        super().__init__()
        x = (2**8) ** (1 / num_heads)
        self.slopes = [x**-h for h in range(1, num_heads + 1)]

    def scores(self, q, k):
        i = torch.arange(k.shape[1] - q.shape[1], k.shape[1])
        j = torch.arange(k.shape[1])
        bias = torch.tensor(self.slopes)[:, None, None] * (j - i[:, None])
        return q @ k.mT / q.shape[-1] ** 0.5 + bias


class LinearBias(nn.Module):
    def scores(self, q, k):
        H, q_len, kv_len = q.shape[0], q.shape[1], k.shape[1]
        h = torch.arange(H)[:, None, None]
        q_idx = torch.arange(kv_len - q_len, kv_len)[:, None]
        kv_idx = torch.arange(kv_len)
        scale = torch.exp2(-((h + 1) * 8.0 / H))
        bias = (q_idx - kv_idx) * scale
        return q @ k.mT / q.shape[-1] ** 0.5 + bias


class EncoderBias(nn.Module):
    def scores(self, q, k):
        slopes = 2.0 ** (-8 * torch.arange(1, q.shape[0] + 1) / q.shape[0])
        context_position = torch.arange(q.shape[1])[:, None]
        memory_position = torch.arange(k.shape[1])[None, :]
        relative_position = memory_position - context_position
        distance = torch.abs(relative_position)
        return q @ k.mT / q.shape[-1] ** 0.5 - slopes[:, None, None] * distance


class CausalAttention(nn.Module):
    def scores(self, q, k):
        mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril()
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(~mask, float("-inf"))


# ---- what they should compute: the library's equations, in float64 ----
def _added(vectors: Callable) -> Callable:
    def equation(subject, q, k):
        p = vectors(subject, q.shape[1])
        return (q + p) @ (k + p).mT / q.shape[-1] ** 0.5
    return equation


def _sines(_subject, length):
    return sinusoidal(torch.arange(length).double(), 16)


def _library(encoding: Callable) -> Callable:
    """The scores of an encoding of this course; ``encoding`` may take its table from the subject."""
    return lambda subject, q, k: attention.scores(q[None], k[None], encoding(subject).double())[0]


def _shaw(subject):
    encoding, rows = Shaw(16, subject.max_distance), len(subject.table)
    encoding.w_K.data[:rows] = subject.table.data
    return encoding


def _t5(subject):
    encoding = T5Bias(4, bidirectional=True)
    encoding.b.data = subject.table.data.T
    return encoding


def _streaming(subject, q, k):
    return _library(lambda _: Rotary(16, layout="half"))(subject, q[:, -1:], subject.kept(k))


def _converted(subject, q, k):
    w = subject.trained.double()
    return _library(lambda _: Rotary(16, layout="half"))(subject, q @ w.mT, k @ w.mT)


def _transformer_xl(_subject, q, k):
    n = q.shape[1]
    met = q @ sinusoidal(torch.arange(1 - n, n).double(), q.shape[-1]).mT
    distance = torch.arange(n)[:, None] - torch.arange(n)
    return (q @ k.mT + met.gather(-1, (distance + n - 1).expand(len(q), -1, -1))) / q.shape[-1] ** 0.5


def _window(subject, q, k):
    place = torch.tensor([(z, y, x) for z in range(2) for y in range(3) for x in range(4)])
    z, y, x = (place[:, None] - place).unbind(-1)
    bias = subject.table.data.double().view(3, 5, 7, 4)[z + 1, y + 2, x + 3]
    return q @ k.mT / q.shape[-1] ** 0.5 + bias.permute(2, 0, 1)


@dataclass(frozen=True)
class Exhibit:
    """A broken class, where its mistake was reported, and the lines that repair it.

    ``equation(subject, q, k)`` gives the scores of the paper, float64; None if there is none.
    ``relative`` promises that only distances count; ``decodes`` says that words come one by one, under
    a causal mask. ``also`` are parts of other lines in which it could be mended as well. ``bug`` is the name
    that `tutorial_lib.conformance` has for it; "" if it looks for no such thing.
    """

    broken: type[nn.Module]
    title: str
    source: str
    said: str
    diagnosis: str
    repair: tuple[tuple[str, str], ...]
    equation: Callable[[nn.Module, Tensor, Tensor], Tensor] | None
    relative: bool = True
    decodes: bool = False
    heads: int = 4
    length: int = 512
    also: tuple[str, ...] = ()
    bug: str = ""

    @functools.cached_property
    def code(self) -> str:
        """The source of the broken class; to find it, Python reads the whole module."""
        return inspect.getsource(self.broken).rstrip()

    @property
    def repaired_code(self) -> str:
        code = self.code
        for old, new in self.repair:
            if code.count(old) != 1:
                name = self.broken.__name__
                raise ValueError(f"{old!r} stands {code.count(old)} times in {name}, not once")
            code = code.replace(old, new)
        return code

    @property
    def repaired(self) -> type[nn.Module]:
        """The class with its repair in place."""
        names = dict(globals())
        exec(self.repaired_code, names)
        return names[self.broken.__name__]


EXHIBITS = {
    "waves": Exhibit(
        PositionalEncoder, "Sines and cosines", "SamLynnEvans/Transformer#25",
        "the cosine of a pair has a different exponent from its sine",
        "sin(pω) and cos(pω) of the same ω turn together, so PE_i·PE_j depends on j − i alone. Here each "
        "cosine has a frequency of its own, and the dot product depends on both places.",
        (("(2 * i / d_model)", "(i / d_model)"), ("(2 * (i + 1) / d_model)", "(i / d_model)")),
        _added(_sines)),
    "table": Exhibit(
        PositionalEncoding, "A table of sines and cosines", "espnet/espnet#1060",
        "with register_buffer, pe is saved; loading fails when max_len differs from that in training",
        "A buffer is part of the checkpoint unless it is registered with persistent=False. The table can be "
        "computed, so there is nothing to save.",
        (('("pe", pe)', '("pe", pe, persistent=False)'),), _added(_sines)),
    "gpt2": Exhibit(
        GPT2Embedding, "GPT-2's positions", "ndif-team/nnsight#672",
        "left-padded batches silently mispredict every prompt that is shorter than the longest",
        "The positions count the padding too, so the first word of a short text gets row 5 in place of "
        "row 0. The mask says where the text begins.",
        (("torch.arange(x.shape[1]).expand(x.shape[:2])", "(attention_mask.cumsum(-1) - 1).clamp(min=0)"),),
        _added(lambda subject, n: subject.wpe.weight.data[:n].double()), relative=False,
        bug="left padding counted"),
    "packed": Exhibit(
        PackedEmbedding, "Learned positions for packed texts", "facebookresearch/metaseq#104",
        "positions begin anew with each document of a row, so that packed ones train as they do alone",
        "Padding is left out of the count, but a second text counts on from the first: its first word gets "
        "row 5 in place of row 0, however well a mask keeps the two apart. Count within each text.",
        (("text = documents > 0", "text = (documents[:, :, None] == documents[:, None]).tril()"),
         ("(text.cumsum(-1) - 1).clamp(min=0)", "text.sum(-1) - 1")),
        _added(lambda subject, n: subject.embed_positions.weight.data[:n].double()), relative=False,
        bug="packing"),
    "keys": Exhibit(
        RelativeKeys, "Relative keys, as Shaw has them", "huggingface/transformers#9164",
        "without clipping, inputs longer than the table fail (in the reported code, nn.Embedding raises an "
        "error)",
        "An offset beyond the table gives a negative index, and Python counts that from the end: the word "
        "257 back is read as the word itself. Nothing fails; an error would be better. Clip it.",
        ((".clamp(max=0)", ".clamp(-self.max_distance, 0)"),), _library(_shaw), decodes=True),
    "buckets": Exhibit(
        RelativeBuckets, "T5's buckets", "huggingface/candle#1312",
        "the minimum was missing, so that buckets are wrong in some cases",
        "From 128 words back, the bucket runs past the last one of its side, into those for words "
        "ahead. The last one must take all of them.",
        (("n, far)", "n, far.clamp(max=self.half - 1))"),), _library(_t5), also=("far = self.exact",),
        bug="bucket overflow"),
    "shift": Exhibit(
        RelativeAttention, "Transformer-XL's shift in an encoder", "ZhengkunTian/OpenTransformer#25",
        "the shift of Transformer-XL, a decoder, is wrong in an encoder without a triangular mask",
        "The trick of the shift fills the upper triangle with values of the next query's row. A causal "
        "mask hides them; an encoder reads them. It needs the distances below 0 too.",
        (("torch.arange(n - 1, -1, -1)", "torch.arange(n - 1, -n, -1)"),), _transformer_xl),
    "window": Exhibit(
        WindowBias, "A window of an image in three dimensions", "282857341/nnFormer#88",
        "the factors that make one index of three offsets are wrong",
        "Each factor must be the number of entries below it, (2·height − 1)(2·width − 1) and 2·width − 1. "
        "Here different offsets share an entry, and much of the table is never read.",
        (("3 * height - 1, 2 * height - 1", "(2 * height - 1) * (2 * width - 1), 2 * width - 1"),),
        _window, relative=False, length=24),
    "halves": Exhibit(
        RotaryPositions, "RoPE with rotated halves", "raiyanyahya/how-to-train-your-gpt#6",
        "the angles are laid out for neighbours, the rotation pairs the two halves",
        "Channels 0 and 8 form a pair, but get different angles: that is no rotation any more. Lay both "
        "out the same way.",
        (("torch.cat([-x2, x1], dim=-1)", "torch.stack([-x2, x1], dim=-1).flatten(-2)"),
         ("x[..., : d // 2], x[..., d // 2 :]", "x[..., 0::2], x[..., 1::2]")),
        _library(lambda _: Rotary(16, layout="interleaved")), decodes=True, also=("repeat_interleave",),
        bug="mixed layouts"),
    "kernel": Exhibit(
        RotaryAttention, "RoPE in the layout of a fast kernel", "mlfoundations/open_lm#4",
        "the rotation is applied along the heads, not along the sequence",
        "q and k are [length, heads, channels] here, so the axis −2 counts heads. All words are turned "
        "alike: the model has no positions, and a test of relative shifts is content with that.",
        (("torch.arange(x.shape[-2])", "torch.arange(x.shape[0])[:, None]"),),
        _library(lambda _: Rotary(16, layout="interleaved")), also=("q, k = self.rotate(",),
        bug="along the heads"),
    "memory": Exhibit(
        CachedRotary, "RoPE with remembered angles", "lucidrains/rotary-embedding-torch#11",
        "the offset is not part of the cache's key, so every offset gets the angles of the first",
        "When words come one by one, each query has length 1, and the angles of word 0 are taken for all.",
        (('f"angles:{length}"', 'f"angles:{length}:{start}"'),),
        _library(lambda _: Rotary(16, layout="half")), decodes=True, bug="stale angles"),
    "angles": Exhibit(
        RotaryEmbedding, "RoPE's angles", "EleutherAI/gpt-neox#1003",
        "the tables are computed in the model's precision, and are wildly wrong for some positions",
        "A buffer follows model.bfloat16(), and type_as takes the positions along; beyond 256 bfloat16 "
        "does not hold every integer. Angles must stay in float32. (On a GPU, bring them to x.device: "
        "a plain attribute does not move with the model.)",
        (('self.register_buffer("inv_freq", inv_freq, persistent=False)', "self.inv_freq = inv_freq"),),
        _library(lambda _: Rotary(16, layout="half")), decodes=True, bug="angles in half precision"),
    "stretch": Exhibit(
        DynamicRotary, "RoPE that stretches with the text", "huggingface/transformers#25104",
        "with a cache, keys keep the rotation base of the time when they came",
        "Dynamic NTK changes all angles when the text grows, but the keys in the cache are turned by the "
        "old ones. Keep them unturned.",
        (("self.keys.append(self.rotate(k, n - 1, n))", "self.keys.append(k)"),
         ("@ torch.cat(self.keys, dim=1).mT", "@ self.rotate(torch.cat(self.keys, dim=1), 0, n).mT")),
        _library(lambda _: Rotary(16, layout="half", frequencies=Frequencies(16, scaling=DynamicNTK(16)))),
        relative=False, decodes=True),
    "streaming": Exhibit(
        StreamingRotary, "A cache that drops old words", "mit-han-lab/streaming-llm#53",
        "places are counted within the cache, so keys are kept unturned and turned anew at each step",
        "When a word leaves, those behind it move up, but their keys keep the angle of the place that they "
        "came to. In a full cache that is the last one, so all look as near as the query itself.",
        (("torch.cat([self.keys, self.rotate(k, place)], dim=1)", "torch.cat([self.keys, k], dim=1)"),
         ("@ self.keys.mT", "@ self.rotate(self.keys).mT")),
        _streaming, relative=False, decodes=True, bug="keys not turned"),
    "yarn": Exhibit(
        YarnAttention, "YaRN, trained further on 4,096 words", "pytorch/torchtitan#4117",
        "once max_seq_len is the length in training, guards switch off YaRN's angles and mscale in silence",
        "Here it is mscale, by which the softmax gets 1.87 times as sharp. Nobody switched it off: the guard "
        "looks at the size of a table, which had shrunk to what training needs. Look at the factor.",
        (("max_seq_len > original_seq_len", "factor > 1"),),
        _library(lambda _: Rotary(16, layout="interleaved", frequencies=Frequencies(
            16, scaling=YaRN(40.0, 4096, ramp="rounded index")))),
        decodes=True, bug="attention factor forgotten"),
    "converted": Exhibit(
        ConvertedAttention, "RoPE for neighbours, weights for halves", "ggml-org/llama.cpp#22611",
        "packing to NVFP4 goes around the permutation of W_q and W_k: a perplexity of 4419 in place of 44",
        "The weights pair halves and this code pairs neighbours, so the rows of W need a new order, whatever "
        "the type of file. One type had a path of its own, and nobody permuted there.",
        (('("f16", "q8_0")', '("f16", "q8_0", "nvfp4")'),), _converted, decodes=True, bug="layout"),
    "config": Exhibit(
        ConfiguredRotary, "RoPE as a config asks for it", "vllm-project/vllm#28542",
        "in Transformers 5 rope_theta lives inside of rope_parameters, and has to be read there",
        "The base has moved, and .get() in the old place answers with its default. Every angle but the first "
        "pair's is wrong, and nothing fails. Read it where it is, without a default.",
        (('.get("rope_theta", 10000.0)', '["rope_parameters"]["rope_theta"]'),),
        _library(lambda _: Rotary(16, layout="half", frequencies=Frequencies(16, 500000.0))),
        decodes=True, bug="base"),
    "loaded": Exhibit(
        LoadedRotary, "RoPE in a model that is loaded fast", "huggingface/transformers#45902",
        "made on the device meta and given memory by to_empty, inv_freq holds whatever that memory held",
        "On meta a tensor has a shape and no numbers. A checkpoint brings the weights but not inv_freq, "
        "which is not saved: it must be computed again. Here the memory holds zeros, so no word has a place.",
        ((', device="meta")', ")"), ('torch.zeros_like(inv_freq, device="cpu")', "inv_freq")),
        _library(lambda _: Rotary(16, layout="half")), bug="inv_freq never filled"),
    "local": Exhibit(
        GemmaRotary, "RoPE in a local layer of Gemma 3", "ggml-org/llama.cpp#14367",
        "sliding layers must not share the scale of the others, which Transformers keeps apart",
        "Gemma 3 slows down its global layers by 8, for long texts. A local layer never looks far, and was "
        "trained without. To it, the word 8 back now looks like the one before.",
        ((", factor\n", ", 1.0 if is_local else factor\n"),),
        _library(lambda _: Rotary(16, layout="half")), decodes=True, bug="scaling unexpected"),
    "indexer": Exhibit(
        SparseIndexer, "An indexer, whose weights pair halves", "vllm-project/vllm#28968",
        "RoPE in the indexer should not be interleaved, though that of the attention is",
        "The indexer of sparse attention chooses the keys that the attention may see. Its own weights pair "
        "channel t with t + d/2. Turned as neighbours, they choose others, and answers get a little worse.",
        (("x[..., 0::2], x[..., 1::2]", "x.chunk(2, dim=-1)"),
         ("torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1).flatten(-2)",
          "torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)")),
        _library(lambda _: Rotary(16, layout="half")), decodes=True, bug="layout"),
    "slopes": Exhibit(
        ALiBi, "ALiBi for six heads", "ml-explore/mlx#3071",
        "the formula for the slopes was right only for a power of two",
        "For 6 heads the released code takes the slopes of 4, then every second one of 8. Weights trained "
        "with those slopes do not fit any others, and only the equation can tell; no property does.",
        (("x = (2**8) ** (1 / num_heads)", "n = 2 ** int(math.log2(num_heads))"),
         ("[x**-h for h in range(1, num_heads + 1)]",
          "[2 ** (-8 * h / n) for h in range(1, n + 1)]\n"
          "        self.slopes += [2 ** (-4 * h / n) for h in range(1, 2 * (num_heads - n), 2)]")),
        _library(lambda _: LibraryALiBi(6)), decodes=True, heads=6, bug="slopes"),
    "sign": Exhibit(
        LinearBias, "ALiBi as a function of indices", "meta-pytorch/attention-gym#86",
        "the fix turns q_idx − kv_idx around",
        "A key in the past has kv_idx < q_idx, so the farther one gets the larger score. It must be a "
        "penalty.",
        (("(q_idx - kv_idx)", "(kv_idx - q_idx)"),), _library(lambda _: LibraryALiBi(4)), decodes=True,
        bug="bias sign"),
    "encoder": Exhibit(
        EncoderBias, "ALiBi for an encoder", "ofirpress/attention_with_linear_biases#5",
        "the decoder's bias does not fit an encoder; the first suggestion is the absolute distance",
        "A key 3 to the left and one 3 to the right get the same bias: read backwards, the text has the "
        "same weights, mirrored. Give left and right different slopes.",
        (("torch.abs(relative_position)",
          "torch.where(relative_position > 0, 2 * relative_position, -relative_position)"),), None,
        bug="bias is a mirror"),
    "mask": Exhibit(
        CausalAttention, "A causal mask", "pytorch/pytorch#103082",
        "with a cache of keys, is_causal lets the one query see only the first key",
        "The triangle starts at the first query and the first key. A query that comes later is the last "
        "word, not the first: the triangle must end in the lower right corner.",
        ((".tril()", ".tril(k.shape[1] - q.shape[1])"),), _library(lambda _: NoPosition()), decodes=True,
        bug="mask starts at the top"),
}
