"""Ways of 2024 to 2026 around RoPE, against the code of the models: Inkling, DeepSeek, Mistral Large 4, Kimi.

What is no encoding stands in the side quest *Five rules, broken*, and latent attention in lesson 10: the
functions are taken from there.
"""

import ast
from pathlib import Path

import nbformat
import pytest
import torch
import transformers
from transformers.models.deepseek_v2 import modeling_deepseek_v2 as deepseek_v2
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek_v3
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as deepseek_v4
from transformers.models.inkling import modeling_inkling as inkling
from transformers.models.kimi_linear import modeling_kimi_linear as kimi
from transformers.models.mistral_large4 import modeling_mistral_large4 as mistral

from course.lesson.turns import t10
from tutorial_lib.attention import attention
from tutorial_lib.encodings import (
    Compose,
    Frequencies,
    LeRoPE,
    QueryBias,
    ScalableSoftmax,
    Temperature,
    YaRN,
)
from tutorial_lib.encodings.rotary import rotate

from .layers import close, heads, merged

F64 = torch.float64
L, D, H = 12, 8, 4
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "deeper" / "10_new_ways.ipynb"


def of_the_notebook(name):
    """A function that the side quest defines, with what the library calls the same there."""
    space = {"torch": torch, "attention": attention, "rotate": rotate}
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else []:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                exec(compile(ast.Module([node], []), NOTEBOOK.name, "exec"), space)
    return space[name]


def noise(module):
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module.double().eval()


def causal(n=L):
    return torch.full((n, n), -torch.inf, dtype=F64).triu(1)[None, None]


# ---- Inkling ----


@torch.no_grad()
@pytest.mark.parametrize("layer, sharper", [("hybrid", True), ("hybrid", False), ("hybrid_sliding", True)])
def test_a_layer_of_inkling(layer, sharper):
    """Its W_r reads token vectors, ours queries: so a query carries what theirs makes of the token, in
    channels where keys are 0. Under a window of the same width nothing is sharpened."""
    config = transformers.models.inkling.InklingTextConfig(
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=H,
        num_key_value_heads=2,
        head_dim=D,
        swa_num_attention_heads=H,
        swa_num_key_value_heads=2,
        swa_head_dim=D,
        d_rel=3,
        rel_extent=5,
        sliding_window_size=5,
        log_scaling_n_floor=4 if sharper else None,
        log_scaling_alpha=0.7,
        layer_types=[layer],
        attn_implementation="eager",
    )
    theirs, x = noise(inkling.InklingAttention(config, 0)), torch.randn(2, L, 24, dtype=F64)
    q = theirs.q_norm(heads(theirs.q_proj(x), H))
    k = theirs.k_norm(heads(theirs.k_sconv(theirs.k_proj(x)), 2))
    v = heads(theirs.v_sconv(theirs.v_proj(x)), 2)
    q = torch.cat([q, heads(theirs.r_proj(x), H)], -1)
    k, v = (torch.nn.functional.pad(each, (0, 3)) for each in (k, v))
    ours = QueryBias(H, D + 3, 5, rank=3).double()
    ours.scale = theirs.scaling
    ours.P.copy_(theirs.rel_logits_proj.proj)
    ours.W_r.copy_(torch.eye(D + 3, dtype=F64)[:, D:])
    if sharper and layer == "hybrid":
        ours = Compose(Temperature(4, 0.7, steps=False), ours)
    window = torch.ones(L, L).tril().triu(-4).bool() if layer == "hybrid_sliding" else None
    mask = causal() if window is None else torch.zeros(L, L, dtype=F64).masked_fill(~window, -torch.inf)
    expected = theirs(x, attention_mask=mask.view(1, 1, L, L))[0]
    got = attention(q, k, v, ours, causal=True, mask=window)[..., :D]
    close(theirs.o_proj(merged(got)), expected, 1e-6)  # their short convolutions and τ are float32


# ---- values that turn, too ----


@torch.no_grad()
@pytest.mark.parametrize("shift", [0, 1000])
def test_the_window_layers_of_deepseek_v4(shift):
    """Keys are values: turned in, and turned back behind. Their last channels turn."""
    config = transformers.DeepseekV4Config(
        hidden_size=24,
        num_attention_heads=H,
        head_dim=16,
        q_lora_rank=12,
        o_groups=2,
        o_lora_rank=6,
        partial_rotary_factor=0.25,
        num_hidden_layers=1,
        layer_types=["sliding_attention"],
        sliding_window=L,
        attn_implementation="eager",
    )
    theirs, x = noise(deepseek_v4.DeepseekV4Attention(config, 0)), torch.randn(2, L, 24, dtype=F64)
    theirs.sinks.fill_(-torch.inf)
    p = torch.arange(L) + shift
    angles = deepseek_v4.DeepseekV4RotaryEmbedding(config)
    both = {kind: angles(x, p[None], layer_type=kind) for kind in ("main", "compress")}
    expected, _ = theirs(x, both, p[None], causal())
    q = theirs.q_b_norm(heads(theirs.q_b_proj(theirs.q_a_norm(theirs.q_a_proj(x))), H))
    kv = theirs.kv_norm(theirs.kv_proj(x))[:, None]
    turn_values = of_the_notebook("turn_values")
    first = lambda y: torch.cat([y[..., 12:], y[..., :12]], -1)  # noqa: E731
    out = turn_values(first(q), first(kv), p, Frequencies(16, rotary_dim=4), back=True)
    out = torch.cat([out[..., 4:], out[..., :4]], -1)
    grouped = theirs.o_a_proj(merged(out).unflatten(-1, (2, -1))).flatten(2)
    close(theirs.o_b_proj(grouped), expected, 1e-4 * expected.abs().max())  # their angles are float32


# ---- a rotation beside a compressed key ----


@torch.no_grad()
@pytest.mark.parametrize("version", ["V2", "V3"])
def test_the_latent_attention_of_deepseek(version):
    """From what their cache holds, with W_UK and W_UV taken into queries and outputs."""
    module = {"V2": deepseek_v2, "V3": deepseek_v3}[version]
    config = getattr(transformers, f"Deepseek{version}Config")(
        hidden_size=24,
        num_attention_heads=H,
        num_key_value_heads=H,
        q_lora_rank=12,
        kv_lora_rank=10,
        qk_nope_head_dim=6,
        qk_rope_head_dim=4,
        v_head_dim=5,
        attn_implementation="eager",
    )
    theirs = noise(getattr(module, f"Deepseek{version}Attention")(config, 0))
    x, p = torch.randn(2, L, 24, dtype=F64), torch.arange(L) + 50
    angles = getattr(module, f"Deepseek{version}RotaryEmbedding")(config)(x, p[None])
    expected = theirs(x, position_embeddings=angles, attention_mask=causal())[0]

    q = heads(theirs.q_b_proj(theirs.q_a_layernorm(theirs.q_a_proj(x))), H)
    c, k_turns = theirs.kv_a_proj_with_mqa(x).split([10, 4], -1)
    W_UK, W_UV = theirs.kv_b_proj.weight.view(H, 11, 10).split([6, 5], 1)
    q_turned, k_turned = (rotate(y, p, layout="interleaved") for y in (q[..., 6:], k_turns[:, None]))
    got = t10.latent_attention(
        q[..., :6], q_turned, theirs.kv_a_layernorm(c), k_turned, W_UK, W_UV, causal()[0, 0] == 0
    )
    close(theirs.o_proj(merged(got)), expected, 1e-4 * expected.abs().max())


# ---- frequencies that are learned ----


@torch.no_grad()
def test_the_rotation_and_the_temperature_of_mistral_large_4():
    config = mistral.MistralLarge4TextConfig(num_attention_heads=H, qk_rope_head_dim=16)
    angles = mistral.MistralLarge4TextRotaryEmbedding(config)
    ours = LeRoPE(
        16,
        frequencies=Frequencies(16, 10_000.0, scaling=YaRN(2048.0, 512, ramp="rounded index", attention=1.0)),
    )
    ours.alpha.normal_()
    angles.alpha.copy_(ours.alpha)
    q, k, p = torch.randn(2, H, L, 16, dtype=F64), torch.randn(2, 1, L, 16, dtype=F64), torch.arange(L) + 700
    their_q, their_k = mistral.apply_rotary_pos_emb_interleave(q, k, *angles(q, p[None]))
    our_q, our_k = ours.rotate(q, k, p, p)
    close(our_q @ our_k.mT, their_q @ their_k.mT, 1e-3)  # their angles are float32

    theirs, sharper = noise(mistral.MistralLarge4TextSoftmaxScaling(H)), ScalableSoftmax(H, b=1.0).double()
    sharper.s.copy_(theirs.scale)
    sharper.b.copy_(theirs.bias)
    close(sharper.rotate(q, k, p, p)[0], theirs(q, p[None], True), 1e-6)
    silent = [n for n, turns in enumerate(mistral.MistralLarge4TextConfig().no_rope_layers) if not turns]
    assert (len(silent), silent[0]) == (18, 3)


# ---- a recurrence that knows order ----


@torch.no_grad()
def test_the_recurrence_of_kimi_linear():
    q, k, v = torch.randn(3, L, D)
    decay, write = torch.rand(L, D), torch.rand(L)
    theirs, _ = kimi.recurrent_kimi_delta_attention(
        *(y[None, :, None] for y in (q, k, v, decay.log())), write[None, :, None], None, False
    )
    close(of_the_notebook("recurrence")(q, k, v, decay, write, corrects=True) / D**0.5, theirs[0, :, 0], 1e-5)
