"""The page *Use an encoding in your own model*: its code runs, and computes what it says."""

import re
from pathlib import Path

import pytest
import torch

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
    for name, block in zip(("rope", "alibi", "t5"), BLOCKS, strict=False):
        assert f"def {name}_attention(q, k, v):" in block
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
