"""Real pretrained models out of installed packages."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..encodings import Rotary
from ..model import Config, Transformer
from ..optional import needs
from .mapped import mapped
from .sources import SOURCES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SMOLLM2 = Config(
    vocab_size=49152,
    d_model=576,
    n_layers=30,
    n_heads=9,
    n_kv_heads=3,
    d_ff=1536,
    norm="rms",
    mlp="swiglu",
)
"""SmolLM2-135M (Allal et al. 2025): a Llama with grouped keys and values."""

SMOLLM2_TRAININGS = ((2048, 10_000.0), (8192, 100_000.0))
"""The length of its windows, and RoPE's base: in pre-training, and after the extension
(:attr:`tutorial_lib.data.sources.Source.history` has the sources)."""

SMOLLM2_BASE = SMOLLM2_TRAININGS[-1][1]


def load_minilm_positions() -> Tensor:
    """The learned position table of MiniLM, a BERT: float32 ``[512, 384]``, row = position.

    all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0).

    Raises FileNotFoundError, with the command that fixes it, when its package is not installed.
    """
    with needs("experiments"):
        from safetensors import safe_open

    with safe_open(SOURCES["minilm"].path(), framework="pt") as file:
        return file.get_tensor("embeddings.position_embeddings.weight").float()


@dataclass
class Pretrained:
    """A model with its tokenizer."""

    model: Transformer
    tokenizer: Tokenizer
    licence: str

    def encode(self, text: str) -> Tensor:
        """Token ids ``[1, L]``."""
        return torch.tensor([self.tokenizer.encode(text).ids], dtype=torch.long)

    def decode(self, ids: Tensor) -> str:
        """The text of ids ``[L]`` or ``[1, L]``."""
        return self.tokenizer.decode(ids.flatten().tolist())

    @torch.no_grad()
    def losses(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Loss of each next token in nats, ``[B, L − 1]``, for ids ``[B, L]``."""
        logits = self.model(tokens, positions)[:, :-1]
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view(
            tokens.shape[0], -1
        )

    def continue_text(self, text: str, steps: int = 20) -> str:
        """The most likely next ``steps`` tokens, as text."""
        ids = self.encode(text)
        return self.decode(self.model.generate(ids, steps)[0, ids.shape[1] :])


@functools.cache
def load_smollm2() -> Pretrained:
    """SmolLM2-135M-Instruct with its RoPE, in float32 on the CPU; 540 MB, shared by all who have it open.

    The weights are stored in 4 bits (GGUF, Q4_1). The first time, they are unpacked into a file, in about ten
    seconds; after that, they are mapped from there (``tutorial_lib.data.mapped``), in less than one. GGUF
    keeps Llama weights for *interleaved* pairs; the base is 100000.

    Raises FileNotFoundError, with the command that fixes it, when its package is not installed.
    """
    with needs("experiments"):
        from tokenizers import Tokenizer

    source = SOURCES["smollm2"]
    path = source.path()
    with torch.device("meta"), _NoRandomStart():
        model = Transformer(SMOLLM2, Rotary(SMOLLM2.head_dim, base=SMOLLM2_BASE, layout="interleaved"))
    unpacked = mapped(path, lambda: _unpack(path))
    weights = unpacked["weights"]
    model.load_state_dict(weights | {"head.weight": weights["tokens.weight"]}, assign=True)
    model.head.weight = model.tokens.weight  # one table for both, as it was trained
    model.requires_grad_(False)
    return Pretrained(model.eval(), Tokenizer.from_str(unpacked["tokenizer"]), source.licence)


class _NoRandomStart(TorchFunctionMode):
    """Skip the random initialization of weights: on the device "meta" it imports PyTorch's compiler."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__module__", "") == "torch.nn.init":
            return kwargs["tensor"] if kwargs else args[0]
        return func(*args, **(kwargs or {}))


def _unpack(path: Path) -> dict[str, Any]:
    """The weights of a GGUF file by our names, in float32, and its tokenizer as JSON."""
    with needs("experiments"):
        import gguf

    reader = gguf.GGUFReader(path)
    weights = {_name(t.name): _tensor(t, gguf) for t in reader.tensors}
    return {"weights": weights, "tokenizer": _tokenizer(reader).to_str()}


def _tensor(stored, gguf) -> Tensor:
    return torch.tensor(gguf.quants.dequantize(stored.data, stored.tensor_type))


def _name(gguf_name: str) -> str:
    """GGUF's name of a Llama weight → ours: ``blk.3.attn_q.weight`` → ``blocks.3.attention.q.weight``."""
    for theirs, ours in (
        ("token_embd", "tokens"),
        ("output_norm", "norm"),
        ("blk.", "blocks."),
        ("attn_norm", "norm1"),
        ("ffn_norm", "norm2"),
        ("attn_output", "attention.out"),
        ("attn_", "attention."),
        ("ffn_", "feed_forward."),
    ):
        gguf_name = gguf_name.replace(theirs, ours)
    return gguf_name


def _tokenizer(reader):
    """The byte-level BPE that the GGUF file itself contains."""
    with needs("experiments"):
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    def field(name):
        return reader.fields[f"tokenizer.ggml.{name}"].contents()

    tokens, kinds = field("tokens"), field("token_type")
    merges = [tuple(pair.split(" ")) for pair in field("merges")]
    tokenizer = Tokenizer(models.BPE({token: n for n, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # GGUF's token type of <|im_start|> and its like
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True) for t, kind in zip(tokens, kinds, strict=True) if kind == control]
    )
    return tokenizer
