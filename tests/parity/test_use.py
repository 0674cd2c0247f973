"""The page *Use an encoding in your own model*: its code runs, and computes what it says."""

import dataclasses
import importlib
import json
import math
import re
from pathlib import Path

import pytest
import torch
from transformers import GPTNeoXConfig, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding

from tutorial_lib import DynamicNTK, Frequencies, LongRoPE, Rotary, XPos, encodings
from tutorial_lib.encodings import REGISTRY, fit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "use.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
BLOCKS = BLOCK.findall(PAGE)
H, L, D = 8, 7, 64


@pytest.fixture(scope="module")
def page():
    """The names of the page after all its blocks were run, in order."""
    names = {}
    torch.manual_seed(0)
    for block in BLOCKS:
        exec(block, names)
    return names


@pytest.fixture
def qkv():
    return torch.randn(3, 2, H, L, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def attended(scores, v):
    past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~past, -torch.inf).softmax(-1) @ v


def test_each_of_three_encodings_takes_ten_lines():
    for name in ("rope", "alibi", "t5"):
        (block,) = [block for block in BLOCKS if f"def {name}_attention(q, k, v):" in block]
        assert sum(bool(line.strip()) for line in block.splitlines()) <= 10


def test_rope(page, qkv):
    q, k, v = qkv
    angles = torch.arange(L)[:, None] * 10_000.0 ** -(torch.arange(0, D, 2, dtype=torch.float64) / D)

    def turned(x):
        return torch.view_as_real(
            torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(angles), angles)
        ).flatten(-2)

    expected = attended(turned(q) @ turned(k).mT / D**0.5, v)
    torch.testing.assert_close(page["rope_attention"](q, k, v), expected)
    block = BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))[1]
    assert len(block.splitlines()) <= 15
    exec(block, first := {})
    torch.testing.assert_close(first["attention"](q, k, v), expected)


def test_the_names_that_stay_are_those_of_the_library():
    there = re.findall(r"^\| `(tutorial_lib[.\w]*)` \| (.*) \|$", PAGE, re.M)
    modules = [name for name, _ in there]
    assert len(there) == 9 and modules[0] == "tutorial_lib"
    for name, names in there:
        listed, own = re.findall(r"`(\w+)`", names), importlib.import_module(name)
        assert sorted(listed) == sorted(own.__all__), name
        assert all(hasattr(own, each) for each in listed), name


def test_alibi(page, qkv):
    q, k, v = qkv
    far = torch.arange(L) - torch.arange(L)[:, None]
    slopes = torch.tensor([2.0**-h for h in range(1, H + 1)], dtype=torch.float64)[:, None, None]
    expected = attended(q @ k.mT / D**0.5 + slopes * far, v)
    torch.testing.assert_close(page["alibi_attention"](q, k, v), expected)


def test_t5_is_not_scaled_and_learns(page, qkv):
    q, k, v = qkv
    far = (torch.arange(L)[:, None] - torch.arange(L)).clamp(min=0)  # one bucket each
    out = page["t5_attention"](q, k, v)
    torch.testing.assert_close(out, attended(q @ k.mT + page["t5"].b[:, far].double(), v))
    out.sum().backward()
    assert page["t5"].b.grad.abs().sum() > 0


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
DEEPSEEK = {
    "type": "yarn",
    "beta_fast": 32,
    "beta_slow": 1,
    "factor": 40,
    "original_max_position_embeddings": 4096,
}
LLAMA_3 = {
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
FILES = {  # channels of a head, and what config.json says of the rotation
    "Mistral 7B": (128, {"rope_theta": 1e6, "rope_scaling": None}),
    "SmolLM2 135M": (64, {"rope_parameters": {"rope_theta": 1e5, "rope_type": "default"}}),
    "DeepSeek Coder": (128, {"rope_theta": 1e5, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    "Llama 3.1 8B": (128, {"rope_theta": 5e5, "rope_scaling": LLAMA_3 | {"factor": 8.0}}),
    "Llama 3.2 1B": (64, {"rope_theta": 5e5, "rope_scaling": LLAMA_3 | {"factor": 32.0}}),
    "Qwen2.5": (128, {"rope_theta": 1e6, "rope_scaling": YARN}),
    "Qwen3": (128, {"rope_parameters": YARN | {"rope_theta": 1e6}}),
    "with a factor": (128, {"rope_theta": 1e6, "rope_scaling": YARN | {"attention_factor": 1.3}}),
    "with nothing": (128, {"rope_theta": 1e6, "rope_scaling": YARN | {"attention_factor": None}}),
    "gpt-oss": (
        64,
        {
            "rope_theta": 150_000,
            "rope_scaling": {
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "factor": 32.0,
                "original_max_position_embeddings": 4096,
                "rope_type": "yarn",
                "truncate": False,
            },
        },
    ),
    "truncated": (64, {"rope_theta": 150_000, "rope_scaling": YARN | {"truncate": True}}),
    "DeepSeek V2": (
        64,
        {"rope_theta": 1e4, "rope_scaling": DEEPSEEK | {"mscale": 0.707, "mscale_all_dim": 0.707}},
    ),
    "DeepSeek V3": (
        64,
        {"rope_theta": 1e4, "rope_scaling": DEEPSEEK | {"mscale": 1.0, "mscale_all_dim": 1.0}},
    ),
    "two of them": (
        64,
        {"rope_theta": 1e4, "rope_scaling": DEEPSEEK | {"mscale": 1.0, "mscale_all_dim": 0.5}},
    ),
    "Phi-2": (80, {"rope_theta": 1e4, "partial_rotary_factor": 0.4, "rope_scaling": None}),
    "StableLM 2": (
        64,
        {"rope_parameters": {"rope_theta": 1e4, "rope_type": "default", "partial_rotary_factor": 0.25}},
    ),
    "YaRN of a part": (64, {"rope_theta": 1e4, "partial_rotary_factor": 0.5, "rope_scaling": YARN}),
    "InternLM 2": (128, {"rope_theta": 1e6, "rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    "Phi-3": (
        96,
        {
            "rope_theta": 1e4,
            "original_max_position_embeddings": 4096,
            "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48},
        },
    ),
    "Phi-3, once": (
        96,
        {
            "rope_theta": 1e4,
            "rope_scaling": {"type": "su", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48},
        },
    ),
    "Qwen2-VL": (128, {"rope_theta": 1e6, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}),
    "Gemma 4": (
        256,
        {"rope_parameters": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}},
    ),
    "Gemma 3": (
        256,
        {
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            }
        },
    ),
    "Gemma 3, once": (
        256,
        {
            "rope_theta": 1e6,
            "rope_local_base_freq": 1e4,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
    ),
    "Pythia": (64, {"rotary_emb_base": 10_000, "rotary_pct": 0.25}),
    "SmolLM3": (128, {"rope_theta": 5e6, "no_rope_layers": [1, 1, 1, 0], "rope_scaling": None}),
    "YaRN of Llama 2": (128, {"rope_theta": 1e4, "rope_scaling": YARN | {"finetuned": True}}),
    "Ministral 3": (128, {"rope_parameters": YARN | {"rope_theta": 1e6, "llama_4_scaling_beta": 0.1}}),
    "mscale alone": (64, {"rope_theta": 1e4, "rope_scaling": DEEPSEEK | {"mscale": 0.707}}),
    "no L": (64, {"rope_theta": 1e4, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}),
    "no factor": (64, {"rope_theta": 1e4, "rope_scaling": YARN | {"factor": None}}),
}
COVERED = 17  # so many of them, from the first on
ROWS = [
    (re.findall(r"`(.*?)`", says), gets)
    for says, gets in re.findall(r"^\| ([^|]*`[^|]*) \| `(.*?)`.* \|$", PAGE, re.M)
]


ORIGINAL = "original_max_position_embeddings"


class NotCovered(Exception):
    """By any row of the page's tables."""


def flat(file):
    """What a file says, wherever it says it; and the type of its scaling."""
    given = {key: value for key, value in file.items() if key not in ("rope_scaling", "rope_parameters")}
    given |= file.get("rope_scaling") or file.get("rope_parameters") or {}
    given = {key: value for key, value in given.items() if value is not None}
    return given, given.pop("rope_type", given.pop("type", "default"))


def read(head_dim, file):
    """The frequencies that somebody builds who takes the page at its word."""
    given, kind = flat(file)
    names = vars(encodings) | {"math": math, "head_dim": head_dim, "beta_slow": 1, "beta_fast": 32} | given
    names |= {"L": given[ORIGINAL]} if ORIGINAL in given else {}
    arguments, options, used = {}, {}, set()
    if f'"{kind}"' not in {says[0] for says, _ in ROWS}:
        raise NotCovered(kind)
    for says, gets in ROWS:
        keys = {key.split(":")[0] for key in says}
        if not (keys <= given.keys() or keys == {f'"{kind}"'}):
            continue
        used |= keys | {ORIGINAL if x == "L" else x for x in re.findall(r"\w+", gets)}
        if ":" in says[0] and given[says[0].split(":")[0]] != json.loads(says[0].split(": ")[1]):
            continue
        try:
            new = eval(f"dict({gets})", names)
        except NameError as missing:
            raise NotCovered(missing) from missing
        (options if {"ramp", "attention"} & new.keys() else arguments).update(new)
    if given.keys() - used:
        raise NotCovered(given.keys() - used)
    if options:
        arguments["scaling"] = dataclasses.replace(arguments["scaling"], **options)
    return Frequencies(head_dim, **arguments)


def theirs(head_dim, file):
    given, kind = flat(file)
    given["rope_type"] = kind
    if kind == "default":  # of which Llama has no part
        given.setdefault("partial_rotary_factor", 1.0)
        config = GPTNeoXConfig(hidden_size=head_dim, num_attention_heads=1, rope_parameters=given)
        return GPTNeoXRotaryEmbedding.compute_default_rope_parameters(config)
    return ROPE_INIT_FUNCTIONS[kind](LlamaConfig(head_dim=head_dim, rope_parameters=given), "cpu")


@pytest.mark.parametrize("name", list(FILES)[:COVERED])
def test_a_file_that_the_table_covers(name):
    """Is what Transformers makes of it."""
    ours, (theta, factor) = read(*FILES[name]), theirs(*FILES[name])
    torch.testing.assert_close(ours.theta(), theta.double(), atol=0, rtol=2e-5)
    assert ours.attention_factor == pytest.approx(factor)


@pytest.mark.parametrize("name", list(FILES)[COVERED:])
def test_a_file_that_the_table_does_not_cover(name):
    """Is seen to be one; and a type of scaling that is not covered is named."""
    with pytest.raises(NotCovered) as what:
        read(*FILES[name])
    assert not isinstance(what.value.args[0], str) or f"`{what.value.args[0]}`" in PAGE
    assert "**A key that is in no row is not covered.**" in PAGE


def test_the_block_has_the_numbers_of_llama_3_2(page):
    torch.testing.assert_close(page["trained"].frequencies.theta(), read(*FILES["Llama 3.2 1B"]).theta())


@pytest.mark.parametrize(
    "step, encoding",
    [
        ("rope_step", Rotary(D)),
        ("rope_step_from_unturned", Rotary(D)),
        ("rope_step_from_unturned", XPos(D)),
        ("rope_step_from_unturned", Rotary(D, frequencies=Frequencies(D, scaling=DynamicNTK(L=3)))),
    ],
)
def test_steps_with_a_cache_are_the_last_rows(page, qkv, monkeypatch, step, encoding):
    monkeypatch.setitem(page, "rope", encoding)
    keys, values = qkv[1][:, :, :0], qkv[2][:, :, :0]
    for n in range(L):
        out, keys, values = page[step](*qkv[:, :, :, n : n + 1], keys, values)
        whole = page["rope_attention"](*qkv[:, :, :, : n + 1])
        torch.testing.assert_close(out, whole[:, :, -1:])


def test_a_cache_of_turned_keys_is_wrong_where_the_page_says_so(page, qkv, monkeypatch):
    for encoding in (XPos(D), Rotary(D, frequencies=Frequencies(D, scaling=DynamicNTK(L=3)))):
        monkeypatch.setitem(page, "rope", encoding)
        keys, values = qkv[1][:, :, :0], qkv[2][:, :, :0]
        for n in range(L):
            out, keys, values = page["rope_step"](*qkv[:, :, :, n : n + 1], keys, values)
        assert (out - page["rope_attention"](*qkv)[:, :, -1:]).abs().max() > 1e-3


def test_a_query_with_a_cache_is_the_last_row(page):
    q, k, v = torch.randn(3, 1, 8, 100, 64).unbind(0)
    (block,) = [block for block in BLOCKS if "alibi.bias(1, 100)" in block]
    _made_up, calls = block.split("\n", 1)
    exec(calls, scope := page | {"q": q[:, :, -1:], "k": k, "v": v})
    torch.testing.assert_close(scope["out"], page["alibi_attention"](q, k, v)[:, :, -1:])


@pytest.mark.parametrize("name", ["rope", "alibi", "t5"])
def test_in_a_llama_padding_and_cache_change_nothing(page, name):
    encoding = page["Rotary"](16) if name == "rope" else page[name]
    llama = page["put"](encoding, page["llama"])
    tokens = torch.tensor([[0, 0, 5, 17, 3, 99]])
    padded = llama(tokens, attention_mask=(tokens > 0).long()).logits[:, 2:]
    torch.testing.assert_close(padded, llama(tokens[:, 2:]).logits)

    given = tokens[:, 2:]
    made = llama.generate(given, max_new_tokens=5, do_sample=False)
    for _ in range(5):
        given = torch.cat([given, llama(given, use_cache=False).logits[:, -1:].argmax(-1)], 1)
    assert torch.equal(made, given)


def grown(llama, tokens, *parts, **options):
    """The logits of each token, when the text comes in parts of these lengths."""
    past, made = None, []
    for part in tokens.split(parts, 1):
        out = llama(part, past_key_values=past, use_cache=True, **options)
        past = out.past_key_values
        made.append(out.logits)
    return torch.cat(made, 1)


LONG = {"dynamic": DynamicNTK(5), "longrope": LongRoPE([1.0] * 8, [2.0] * 8, L=5)}


def of_texts():
    """The registry's encodings that open a door of attention, but for those that are made of others."""
    for name in REGISTRY:
        try:
            encoding = fit(name, d_model=128, n_heads=8, length=9)
        except TypeError:
            continue
        if encoding.axes == 1 and set(encoding.doors) - {"embed"}:
            yield name


@pytest.mark.parametrize("name", [*of_texts(), *LONG])
def test_in_a_llama_a_cache_that_grows_is_one_pass_or_is_refused(page, name):
    """Two layers, and a text of more tokens than the five beyond which some angles change."""
    if name in LONG:
        encoding = Rotary(16, frequencies=Frequencies(16, scaling=LONG[name]))
    else:
        encoding = fit(name, d_model=128, n_heads=8, length=9)
    llama, tokens = page["put"](encoding, page["llama"]), torch.tensor([[5, 17, 3, 99, 42, 8, 1, 2, 3]])
    assert len(llama.model.layers) == 2
    with torch.no_grad():
        whole = llama(tokens).logits
        torch.testing.assert_close(grown(llama, tokens[:, :5], 2, 1, 2), llama(tokens[:, :5]).logits)
        if name in LONG:
            with pytest.raises(ValueError, match="use_cache=False"):
                grown(llama, tokens, 4, 5)
            with pytest.raises(ValueError, match="use_cache=False"):
                llama.generate(tokens[:, :5], max_new_tokens=3, do_sample=False)
        else:
            torch.testing.assert_close(grown(llama, tokens, 4, 1, 4), whole)
        given = tokens[:, :4]
        made = llama.generate(given, max_new_tokens=4, do_sample=False, use_cache=False)
        for _ in range(4):
            given = torch.cat([given, llama(given).logits[:, -1:].argmax(-1)], 1)
    assert torch.equal(made, given)
