"""What is said of a decoder, by its logits alone and by the rotary modules inside of it."""

import os
import time

os.environ["HF_HUB_OFFLINE"] = "1"  # set before Hugging Face is imported

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from tutorial_lib import conformance
from tutorial_lib.encodings import ALiBi, Learned, Rotary
from tutorial_lib.model import Cache, Config, Transformer

from .rotations import rope

TURN = rope("interleaved")


class Small(nn.Module):
    """Two layers of attention, of which each step can be another one."""

    def __init__(
        self, count=lambda a, n: torch.arange(a, a + n), turn_k=TURN, values=None, ahead=0, table=None
    ):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Embedding(50, 64), nn.Linear(64, 50)
        self.maps = nn.ModuleList(nn.Linear(64, 192) for _ in range(2))
        self.count, self.turn_k, self.values, self.ahead, self.table = count, turn_k, values, ahead, table

    def forward(self, tokens, positions=None, attention_mask=None, past=None):
        start = 0 if past is None else past[0][0].shape[-2]
        n = tokens.shape[1]
        p = self.count(start, n) if positions is None else positions
        x, new = self.embed(tokens), []
        if self.table is not None:
            x = x + self.table[p]
        for layer, each in enumerate(self.maps):
            q, k, v = each(x)[:, None].chunk(3, -1)
            if self.table is None:
                q, k = TURN(q, p), self.turn_k(k, p)
            v = v if self.values is None else self.values(v, p)
            if past is not None:
                k, v = (torch.cat(pair, -2) for pair in zip(past[layer], (k, v), strict=True))
            new.append((k, v))
            seen = torch.ones(n, start + n).tril(start + self.ahead).bool()
            if attention_mask is not None and attention_mask.ndim == 4:
                seen = seen & (attention_mask[0, 0] == 0)
            if attention_mask is not None and attention_mask.ndim == 2:
                seen = seen & attention_mask[:, None, None].bool()
            s = (3 * q @ k.mT / 8).masked_fill(~seen, -1e9)
            x = x + (s.softmax(-1) @ v)[:, 0]
        return self.head(x), new


SINE = torch.randn(400, 64, generator=torch.Generator().manual_seed(0))
BROKEN = {
    "positions restart": ({"count": lambda a, n: torch.arange(n)}, "cache"),
    "positions lag by one": ({"count": lambda a, n: torch.arange(a, a + n) - int(a > 0)}, "cache"),
    "one position for the chunk": (
        {"count": lambda a, n: torch.full((n,), a + n - 1) if a else torch.arange(n)},
        "cache",
    ),
    "future seen": ({"ahead": 1}, "causality"),
    "values turned": ({"values": TURN}, "shift"),
    "queries against keys": ({"turn_k": lambda x, p: TURN(x, -p)}, "shift"),
    "angles in half precision": ({"turn_k": rope("interleaved", positions=lambda p: p.bfloat16())}, "shift"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bug_is_called_by_its_name(name):
    options, promise = BROKEN[name]
    report = conformance.check(Small(**options), kind="logits", vocab=50, relative=True)
    assert name in report[promise].bugs and report[promise].status == "failed", report


def test_padding_that_is_counted_or_seen():
    counted = lambda tokens, attention_mask=None: Small(table=SINE)(tokens, None, attention_mask)[0]  # noqa: E731
    assert conformance.check(counted, vocab=50)["padding"].bugs == ("left padding counted",)
    seen = lambda tokens, attention_mask=None: Small()(tokens)[0]  # noqa: E731
    assert conformance.check(seen, vocab=50)["padding"].bugs == ("padding seen",)


def test_documents_that_count_on():
    def counting(tokens, positions=None, attention_mask=None):
        p = None if positions is None else positions[:, :1] + torch.arange(tokens.shape[1])
        return Small(table=SINE)(tokens, p, attention_mask)[0]

    assert conformance.check(counting, vocab=50)["packing"].bugs == ("packing",)
    assert conformance.check(Small(table=SINE), kind="logits", vocab=50)["packing"].status == "passed"


@pytest.mark.parametrize("name", ["documents seen", "packing", None])
def test_documents_that_are_numbered(name):
    def packed(tokens, documents=None):
        if documents is None:
            return Small(table=SINE)(tokens)[0]
        same = documents[:, :, None] == documents[:, None]
        p = None if name == "packing" else same.tril().sum(-1) - 1
        mask = None if name == "documents seen" else (~same)[:, None].float()
        return Small(table=SINE)(tokens, p, mask)[0]

    found = conformance.check(packed, vocab=50)["packing"]
    assert found.bugs == ((name,) if name else ()) and found.status == ("failed" if name else "passed")


def test_positions_that_must_be_given():
    report = conformance.check(
        lambda tokens, positions: Small()(tokens, positions)[0], vocab=50, relative=True
    )
    assert report.ok and report["shift"].status == "passed", report
    assert "it takes no cache" in report["cache"].says


def test_right_ones_of_ours():
    for encoding, relative in ((Rotary(16), True), (ALiBi(4), True), (Learned(400, 64), None), (None, True)):
        torch.manual_seed(0)
        model = Transformer(Config(vocab_size=50, d_model=64, n_heads=4), encoding)
        report = conformance.check(model, relative=relative, cache=Cache)
        assert report.ok and report.named == (set() if encoding else {"no position", "inv_freq never filled"})
    report = conformance.check(Small(), kind="logits", vocab=50, relative=True)
    assert report.ok and report["cache"].status == report["shift"].status == "passed", report


def tiny(name, **more):
    sizes = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **sizes | heads | more))


GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e4}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64, "rope_theta": 5e5}
LLAMA3 |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
FAMILIES = {
    "llama": {"rope_parameters": LLAMA3},
    "mistral": {},
    "qwen2": {"rope_parameters": YARN},
    "qwen3": {"head_dim": 8},
    "gemma3_text": {"head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]},
    "gpt_neox": {},
    "phi": {},
    "cohere": {},
    "olmo2": {},
    "gpt_oss": {"head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1},
    "deepseek_v3": {"num_key_value_heads": 4},
    "falcon": {},
}
ABSOLUTE = {
    "gpt2": GPT,
    "gptj": GPT | {"rotary_dim": 4},
    "opt": {"word_embed_proj_dim": 32, "ffn_dim": 48},
    "bloom": {"n_layer": 2, "n_head": 4},
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4},
}


@pytest.mark.parametrize("name", FAMILIES | ABSOLUTE)
def test_no_alarm_for_transformers(name):
    model = tiny(name, **(FAMILIES | ABSOLUTE)[name])
    start = time.process_time()
    report = conformance.check(model)
    assert time.process_time() - start < 10
    assert report.ok and not report.named, report
    for promise in ("causality", "cache", "padding"):
        assert report[promise].status == "passed", report
    if name in FAMILIES:
        assert {finding.status for finding in report.findings} == {"passed"}, report


@pytest.mark.parametrize("base, sharp", [(1e4, 1), (1e4, 12), (5e5, 12)])
def test_the_clocks_of_a_decoder_that_shows_its_logits_alone(base, sharp):
    """What weights make of the angles is unknown, but not which angles they are."""
    model = tiny("llama")
    assert model.config.rope_parameters["rope_theta"] == 1e4
    for layer in model.model.layers:
        layer.self_attn.q_proj.weight.data *= sharp

    def logits(tokens, position_ids=None):
        return model(tokens, position_ids=position_ids).logits

    golden = conformance.check(logits, head_dim=8, base=base)["golden values"]
    assert (golden.status, golden.bugs) == (("not decided", ()) if base == 1e4 else ("failed", ("base",))), (
        golden
    )
    if base == 1e4 and sharp == 12:
        assert "no bug's θ foretell the logits clearly better than the declared ones" in golden.says


def rotary(model):
    return model.model.rotary_emb


def halved(model):
    its = rotary(model)
    its.inv_freq = its.inv_freq.bfloat16()


def exchanged(model):
    its = rotary(model)
    for key in ("inv_freq", "attention_scaling"):
        one, two = f"sliding_attention_{key}", f"full_attention_{key}"
        a, b = getattr(its, one), getattr(its, two)
        setattr(its, one, b)
        setattr(its, two, a)


INSIDE = {
    "inv_freq never filled": ("mistral", lambda model: rotary(model).inv_freq.uniform_(0, 9)),
    "base": ("llama", lambda model: rotary(model).inv_freq.copy_(1e4 ** (-torch.arange(0, 8, 2) / 8))),
    "scaling missing": (
        "qwen2",
        lambda model: rotary(model).inv_freq.copy_(1e4 ** (-torch.arange(0, 8, 2) / 8)),
    ),
    "attention factor forgotten": ("qwen2", lambda model: setattr(rotary(model), "attention_scaling", 1.0)),
    "angles in half precision": ("mistral", halved),
    "scaling in the wrong layers": ("gemma3_text", exchanged),
}


@pytest.mark.parametrize("empty", [0.0, torch.nan])
def test_frequencies_that_are_empty(empty):
    model = tiny("mistral")
    rotary(model).inv_freq.fill_(empty)
    report = conformance.check(model)
    assert report["golden values"].bugs[0] == "inv_freq never filled", report
    assert not report.failed[1:], report


@pytest.mark.parametrize("name", INSIDE)
def test_a_bug_inside_of_a_model_of_transformers(name):
    family, spoil = INSIDE[name]
    model = tiny(family, **FAMILIES[family])
    spoil(model)
    report = conformance.check(model)
    assert name in report["golden values"].bugs or name == "base" and not report.ok, report
