"""What is compared: each function gives one :class:`Table` of cases that compute the same thing."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import attention
from tutorial_lib.encodings import ALiBi, ClippedBias, Rotary, Shaw, T5Bias, TableBias
from tutorial_lib.encodings.fast_rotation import fast_pays
from tutorial_lib.encodings.rotary import Turn
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import seeded, train


@dataclass(frozen=True)
class Target:
    """``slow`` is to take at least ``least`` times as much ``of`` (time or memory) as ``fast``."""

    slow: str
    fast: str
    least: float
    of: str = "time"

    def __str__(self):
        word = {"time": "as long", "memory": "as much memory"}[self.of]
        return f"{self.slow}: at least {self.least:.3g} times {word} as {self.fast}"


@dataclass
class Table:
    """Cases under one title; ``alike`` names groups that must give the same numbers."""

    title: str
    cases: dict[str, Callable]
    unit: str
    """The case whose time is 1 in the table."""
    targets: list[Target] = field(default_factory=list)
    alike: list[tuple[str, ...]] = field(default_factory=list)


def training(call: Callable, inputs: list[torch.Tensor], seed: int = 0) -> Callable:
    """``call(*inputs)`` forward and backward, with one fixed gradient of the output."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    gradients = None

    def run():
        nonlocal gradients
        out = call(*leaves)
        out = out if isinstance(out, (tuple, list)) else (out,)
        if gradients is None:
            generator = torch.Generator(out[0].device).manual_seed(seed)
            gradients = [torch.randn(x.shape, generator=generator, device=x.device).to(x.dtype) for x in out]
        for leaf in leaves:
            leaf.grad = None
        torch.autograd.backward(out, gradients)
        return tuple(leaf.grad for leaf in leaves)

    return run


def inference(call: Callable, inputs: list[torch.Tensor]) -> Callable:
    def run():
        with torch.no_grad():
            return call(*inputs)

    return run


def rotary(device, dtype, *, train: bool, shape=(2, 8, 2048, 64)) -> Table:
    """RoPE on q and k. Each gets its cosines and sines ready-made and in its own form, like the layers of a
    model that share them."""
    from rotary_embedding_torch import RotaryEmbedding
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama
    from x_transformers.x_transformers import apply_rotary_pos_emb as x_transformers

    length, d = shape[-2:]
    q, k = (torch.randn(shape, device=device, dtype=dtype) for _ in range(2))
    p = torch.arange(length, device=device)
    angles_of = Rotary(d).frequencies
    cos, sin = angles_of.cos_sin(p)
    cis = torch.complex(cos, sin)
    angles = torch.cat([p[:, None] * angles_of.theta(device=device).float()] * 2, -1)
    pairs = angles[:, : d // 2].repeat_interleave(2, -1)
    wide_cos, wide_sin = (torch.cat([x, x], -1)[None].to(dtype) for x in (cos, sin))
    ret = RotaryEmbedding(d, cache_if_possible=True).to(device)

    def complex_multiply(x):  # as in Meta's Llama
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * cis).flatten(3).type_as(x)

    def ours(layout):
        ready, compiled = (Turn(cos, sin, layout, fast) for fast in (fast_pays(q), False))

        def turned(q, k):
            turn = compiled if torch.compiler.is_compiling() else ready
            return turn(q), turn(k)

        return turned

    calls = {
        "clone of q and k (memory limit)": lambda q, k: (q.clone(), k.clone()),
        "complex multiply (Meta)": lambda q, k: (complex_multiply(q), complex_multiply(k)),
        "Llama (Transformers)": lambda q, k: llama(q, k, wide_cos, wide_sin),
        "Llama (Transformers), compiled": torch.compile(lambda q, k: llama(q, k, wide_cos, wide_sin)),
        "GPT-J (Transformers)": lambda q, k: tuple(
            gptj(x.transpose(1, 2), sin[None].to(dtype), cos[None].to(dtype)).transpose(1, 2) for x in (q, k)
        ),
        "x-transformers": lambda q, k: (x_transformers(q, pairs[None]), x_transformers(k, pairs[None])),
        "rotary-embedding-torch": lambda q, k: (ret.rotate_queries_or_keys(q), ret.rotate_queries_or_keys(k)),
        "interleaved": ours("interleaved"),
        "half": ours("half"),
        "half, compiled": torch.compile(ours("half")),
    }
    wrap = training if train else inference
    hf, clone = "Llama (Transformers)", "clone of q and k (memory limit)"
    return Table(
        f"RoPE on q and k {list(shape)}, {_name(dtype)}, {'forward and backward' if train else 'forward'}",
        {name: wrap(call, [q, k]) for name, call in calls.items()},
        unit=hf,
        targets=[
            Target(hf, "interleaved", 4),
            Target("complex multiply (Meta)", "interleaved", 0.95),
            Target(hf, "half", 1.5),
            Target(hf, "half, compiled", 4),
            Target(clone, "interleaved", 0.7),
            Target(clone, "half, compiled", 0.7),
        ],
        alike=[
            (
                "interleaved",
                "complex multiply (Meta)",
                "GPT-J (Transformers)",
                "x-transformers",
                "rotary-embedding-torch",
            ),
            ("half", "half, compiled", hf, "Llama (Transformers), compiled"),
        ],
    )


def rotary_step(device, dtype, *, heads: int = 8, d: int = 64, times: int = 50) -> Table:
    """RoPE on the q and k of one decoded token, ``times`` over, each with cosines and sines of its own."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    q, k = (torch.randn(1, heads, 1, d, device=device, dtype=dtype) for _ in range(2))
    here = torch.tensor([1000], device=device)
    of_positions = LlamaRotaryEmbedding(
        LlamaConfig(hidden_size=heads * d, num_attention_heads=heads, head_dim=d)
    ).to(device)

    def repeated(call):
        def run():
            for _ in range(times - 1):
                call()
            return call()

        return inference(run, [])

    hf, layouts = "Llama (Transformers)", ("half", "interleaved")
    calls = {hf: lambda: apply_rotary_pos_emb(q, k, *of_positions(q, here[None]))}
    for layout in layouts:
        calls[layout] = functools.partial(Rotary(d, layout=layout).rotate, q, k, here, here)
    return Table(
        f"RoPE on q and k {list(q.shape)}, {_name(dtype)}, {times} tokens one by one",
        {name: repeated(call) for name, call in calls.items()},
        unit=hf,
        targets=[Target(hf, layout, 1 / 1.2) for layout in layouts],
        alike=[(hf, "half")],
    )


def biases(device, dtype, *, length: int, train: bool, heads: int = 8, d: int = 64) -> Table:
    """Causal attention with a relative bias, beside none, a dense one made beforehand, and T5's own."""
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    q, k, v = (torch.randn(1, heads, length, d, device=device, dtype=dtype) for _ in range(3))
    alibi, t5 = ALiBi(heads), T5Bias(heads).to(device)
    clipped, table = ClippedBias(heads, 16).to(device), TableBias(heads, length).to(device)
    config = T5Config(d_model=heads * d, d_kv=d, num_heads=heads, is_decoder=True)
    hf = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).to(device)
    hf.relative_attention_bias.weight.data = t5.b.detach().T.clone()
    p = torch.arange(length, device=device)
    past = torch.ones(length, length, dtype=torch.bool, device=device).tril()

    def dense(encoding):
        return encoding.dense(p, p)[None].detach().to(dtype).masked_fill(~past, float("-inf"))

    prebuilt = {"ALiBi": dense(alibi), "T5": dense(t5)}
    learned = prebuilt["T5"].clone().requires_grad_(train)

    def ours(encoding):
        return lambda q, k, v: attention(q, k, v, encoding, causal=True)

    def flex(encoding):
        return lambda q, k, v: attention(q, k, v, encoding, causal=True, backend="flex")

    def made_before(name, scale):
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, prebuilt[name], scale=scale)

    def dense_that_learns(q, k, v):
        learned.grad = None
        return F.scaled_dot_product_attention(q, k, v, learned, scale=1.0)

    def t5_transformers(q, k, v):  # what stands between the projections of T5Attention
        bias = hf.compute_bias(length, length, device=device).to(dtype)
        scores = q @ k.mT + bias.masked_fill(~past, torch.finfo(dtype).min)
        return scores.float().softmax(-1).type_as(scores) @ v

    calls = {
        "no bias": ours(None),
        "ALiBi": ours(alibi),
        "T5": ours(t5),
        "clipped": ours(clipped),
        "table": ours(table),
        "ALiBi, dense mask made before": made_before("ALiBi", None),
        "T5, dense mask made before": made_before("T5", 1.0),
        "T5, dense mask that learns": dense_that_learns,
        "T5 (Transformers)": t5_transformers,
    }
    if q.device.type == "cuda":  # the kernel of FlexAttention adds the bias; on a CPU it would be slow
        calls |= {
            f"{name}, flex": flex(encoding)
            for name, encoding in (("ALiBi", alibi), ("T5", t5), ("clipped", clipped), ("table", table))
        }
    if train:
        targets = [
            Target("ALiBi, dense mask made before", "ALiBi", 1),
            *(
                Target("T5, dense mask that learns", name, least, of)
                for name in ("T5", "clipped", "table")
                for least, of in ((1, "time"), (2, "memory"))
            ),
        ]
    else:
        targets = [Target("T5 (Transformers)", name, 4) for name in ("ALiBi", "T5")]
        targets += [Target("no bias", name, 1 / 1.6) for name in ("ALiBi", "T5")]
    wrap = training if train else inference
    return Table(
        f"causal attention, B 1, H {heads}, L {length}, D {d}, {_name(dtype)}, "
        f"{'forward and backward' if train else 'forward'}",
        {name: wrap(call, [q, k, v]) for name, call in calls.items()},
        unit="no bias",
        targets=targets,
        alike=[
            ("ALiBi", "ALiBi, dense mask made before"),
            ("T5", "T5, dense mask made before", "T5 (Transformers)"),
        ],
    )


def shaw(device, dtype, *, length: int = 2048, k: int = 16, heads: int = 8, d: int = 64) -> Table:
    """Shaw's vectors on keys and values, beside the textbook form with a vector for every pair."""
    q, keys, v = (torch.randn(1, heads, length, d, device=device, dtype=dtype) for _ in range(3))
    encoding = Shaw(d, k).to(device, dtype)
    p = torch.arange(length, device=device)

    def textbook(q, keys, v):
        row = encoding.clipped(p, p)
        a_K, a_V = encoding.w_K[row], encoding.w_V[row]  # [L, L, d] each
        scores = (q @ keys.mT + torch.einsum("bhid,ijd->bhij", q, a_K)) * d**-0.5
        weights = scores.softmax(-1)
        return weights @ v + torch.einsum("bhij,ijd->bhid", weights, a_V)

    calls = {
        "no position": lambda q, k, v: attention(q, k, v),
        "textbook form": textbook,
        "Shaw": lambda q, k, v: attention(q, k, v, encoding),
    }
    return Table(
        f"Shaw, B 1, H {heads}, L {length}, D {d}, k {k}, {_name(dtype)}, forward",
        {name: inference(call, [q, keys, v]) for name, call in calls.items()},
        unit="no position",
        targets=[
            Target("textbook form", "Shaw", 4),
            Target("textbook form", "Shaw", 4.5, of="memory"),
            Target("no position", "Shaw", 1 / 1.9),
        ],
        alike=[("textbook form", "Shaw")],
    )


class PlainBlock(nn.Module):
    """Pre-norm block as textbooks write it: all scores, a dense bias, a dense mask, a softmax."""

    def __init__(self, d: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.out = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x, past, bias, turn, scale):
        B, L, d = x.shape
        y = self.norm1(x)
        q, k, v = (w(y).view(B, L, self.heads, -1).transpose(1, 2) for w in (self.q, self.k, self.v))
        if turn is not None:
            q, k = turn(q), turn(k)
        scores = q @ k.transpose(-2, -1) * scale
        if bias is not None:
            scores = scores + bias
        weights = scores.masked_fill(~past, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(B, L, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Plain(nn.Module):
    """A decoder in plain eager PyTorch. Mask, ALiBi and RoPE's tables are made once, T5's bias per call."""

    def __init__(self, vocab_size: int, d: int, layers: int, heads: int, length: int, position: str):
        super().__init__()
        self.position, self.heads = position, heads
        self.tokens = nn.Embedding(vocab_size, d)
        self.blocks = nn.ModuleList(PlainBlock(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab_size, bias=False)
        self.scale = 1.0 if position == "t5" else (d // heads) ** -0.5
        p = torch.arange(length)
        distance = p[:, None] - p
        self.register_buffer("past", distance >= 0)
        if position == "alibi":
            slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
            self.register_buffer("slopes_times_distance", -slopes[:, None, None] * distance)
        elif position == "t5":
            self.relative_attention_bias = nn.Embedding(32, heads)
            self.register_buffer("distance", distance.clamp(min=0))
        else:
            channels = torch.arange(0, d // heads, 2) / (d // heads)
            angles = (p[:, None] * 10000.0**-channels).repeat_interleave(2, -1)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())

    def turn(self, x):
        turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return x * self.cos + turned * self.sin

    def bias(self):
        if self.position == "alibi":
            return self.slopes_times_distance
        if self.position == "rotary":
            return None
        # T5's buckets of a decoder: 16 exact ones, then 16 on a logarithmic scale up to 128
        far = 16 + (torch.log(self.distance.clamp(min=1) / 16) / math.log(128 / 16) * 16).long()
        bucket = torch.where(self.distance < 16, self.distance, far.clamp(max=31))
        return self.relative_attention_bias(bucket).permute(2, 0, 1)

    def forward(self, tokens):
        x = self.tokens(tokens)
        bias, turn = self.bias(), self.turn if self.position == "rotary" else None
        for block in self.blocks:
            x = block(x, self.past, bias, turn, self.scale)
        return self.head(self.norm(x))

    def load(self, ours: Transformer) -> None:
        """The weights of our model, so that both compute the same."""
        theirs = {
            name.replace(".attention.", ".").replace(".feed_forward.", "."): weight
            for name, weight in ours.state_dict().items()
            if not name.startswith("encoding")
        }
        if self.position == "t5":
            theirs["relative_attention_bias.weight"] = ours.encoding.b.T
        lacking = self.load_state_dict(theirs, strict=False)
        assert not lacking.unexpected_keys and not set(lacking.missing_keys) & set(
            dict(self.named_parameters())
        )


def plain_train(model, batch, steps: int, device) -> list[float]:
    """The loop as people write it, with the same rates and clipping as ours."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min(n + 1, 0.5 + 0.5 * math.cos(math.pi * max(0, n - 1) / steps))
    )
    generator, losses = torch.Generator().manual_seed(0), []
    for _ in range(steps):
        tokens, targets = (x.to(device) for x in batch(generator))
        logits = model(tokens)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def train_steps(device, *, size: int, length: int, d=64, layers=2, heads=4, steps=4) -> Table:
    """Steps of training a small language model, beside the same model in plain eager PyTorch."""
    vocabulary = 65

    def batch(generator):
        ids = torch.randint(vocabulary, (size, length + 1), generator=generator)
        return ids[:, :-1], ids[:, 1:]

    cases = {}
    for name, encoding in (("alibi", ALiBi(heads)), ("t5", T5Bias(heads)), ("rotary", Rotary(d // heads))):
        config = Config(vocabulary, d, n_layers=layers, n_heads=heads)
        ours = seeded(lambda c=config, e=encoding: Transformer(c, e), 0).to(device)
        plain = Plain(vocabulary, d, layers, heads, length, name).to(device)
        plain.load(ours)
        cases[f"plain, {name}"] = lambda model=plain: torch.tensor(plain_train(model, batch, steps, device))
        cases[f"ours, {name}"] = lambda model=ours: torch.tensor(
            train(model, batch, steps, progress=False).losses
        )
    return Table(
        f"{steps} steps of training, d {d}, {layers} layers, {heads} heads, batch {size} × {length}, float32",
        cases,
        unit="plain, alibi",
        targets=[
            Target(f"plain, {name}", f"ours, {name}", 1.15 if length < 256 else 1.3)
            for name in ("alibi", "t5", "rotary")
        ],
        alike=[(f"plain, {name}", f"ours, {name}") for name in ("alibi", "t5", "rotary")],
    )


def _name(dtype):
    return str(dtype).removeprefix("torch.")


def tables(device: torch.device, dtype: torch.dtype) -> dict[str, Callable[[], Table]]:
    """Every table by its name; it is built when called, and can be dropped after."""
    return {
        "rotary": lambda: rotary(device, dtype, train=False),
        "rotary-train": lambda: rotary(device, dtype, train=True),
        "rotary-step": lambda: rotary_step(device, dtype),
        "bias-1024": lambda: biases(device, dtype, length=1024, train=False),
        "bias-2048": lambda: biases(device, dtype, length=2048, train=False),
        "bias-train": lambda: biases(device, dtype, length=1024, train=True),
        "shaw": lambda: shaw(device, dtype),
        "train-64": lambda: train_steps(device, size=32, length=64),
        "train-256": lambda: train_steps(device, size=8, length=256),
        "train-512": lambda: train_steps(device, size=4, length=512),
    }
