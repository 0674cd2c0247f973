"""The page *Use an encoding in your own model*: its code runs, and computes what it says."""

import importlib
import re
from pathlib import Path

import pytest
import torch

from tutorial_lib import DynamicNTK, Frequencies, LongRoPE, Rotary, XPos
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


def test_the_block_of_a_file(page):
    """Says the same as the block by hand, and shows what an error says."""
    assert {*page["layers"]} == {page["layers"][0]} and len(page["layers"]) == 16
    torch.testing.assert_close(page["layers"][0].frequencies.theta(), page["trained"].frequencies.theta())


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
