"""The page *Use an encoding in your own model*: its code runs, and computes what it says."""

import re
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from tutorial_lib import DynamicNTK, Frequencies, Rotary, XPos

PAGE = (Path(__file__).parents[2] / "docs" / "use.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
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
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(
            torch.ones_like(angles), angles)).flatten(-2)

    expected = attended(turned(q) @ turned(k).mT / D**0.5, v)
    torch.testing.assert_close(page["rope_attention"](q, k, v), expected)


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


CONFIGS = {
    "llama3": {"factor": 32.0, "original_max_position_embeddings": 8192, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 32768, "beta_slow": 1.0, "beta_fast": 32.0},
    "linear": {"factor": 4.0},
}


def test_scalings_of_released_weights(page):
    """The block has Llama 3.2's numbers, and each row of the table is what Transformers makes of them."""
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+\(.*?\))`", PAGE, re.M))
    assert rows.keys() == CONFIGS.keys()
    for kind, given in CONFIGS.items():
        config = LlamaConfig(head_dim=64, rope_parameters={"rope_theta": 5e5, "rope_type": kind, **given})
        theta, factor = ROPE_INIT_FUNCTIONS[kind](config, "cpu")
        scaling = eval(rows[kind], page | given | {"L": given.get("original_max_position_embeddings")})
        of_row = Frequencies(64, 5e5, scaling=scaling)
        for ours in (of_row, page["trained"].frequencies) if kind == "llama3" else (of_row,):
            torch.testing.assert_close(ours.theta(), theta.double(), atol=0, rtol=2e-5)
            assert ours.attention_factor == pytest.approx(factor)


@pytest.mark.parametrize("step, encoding", [
    ("rope_step", Rotary(D)), ("rope_step_from_unturned", Rotary(D)), ("rope_step_from_unturned", XPos(D)),
    ("rope_step_from_unturned", Rotary(D, frequencies=Frequencies(D, scaling=DynamicNTK(L=3)))),
])
def test_steps_with_a_cache_are_the_last_rows(page, qkv, monkeypatch, step, encoding):
    monkeypatch.setitem(page, "rope", encoding)
    keys, values = qkv[1][:, :, :0], qkv[2][:, :, :0]
    for n in range(L):
        out, keys, values = page[step](*qkv[:, :, :, n:n + 1], keys, values)
        whole = page["rope_attention"](*qkv[:, :, :, :n + 1])
        torch.testing.assert_close(out, whole[:, :, -1:])


def test_a_cache_of_turned_keys_is_wrong_where_the_page_says_so(page, qkv, monkeypatch):
    for encoding in (XPos(D), Rotary(D, frequencies=Frequencies(D, scaling=DynamicNTK(L=3)))):
        monkeypatch.setitem(page, "rope", encoding)
        keys, values = qkv[1][:, :, :0], qkv[2][:, :, :0]
        for n in range(L):
            out, keys, values = page["rope_step"](*qkv[:, :, :, n:n + 1], keys, values)
        assert (out - page["rope_attention"](*qkv)[:, :, -1:]).abs().max() > 1e-3


def test_a_query_with_a_cache_is_the_last_row(page):
    q, k, v = torch.randn(3, 1, 8, 100, 64).unbind(0)
    (block,) = [block for block in BLOCKS if "torch.tensor([99])" in block]
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
