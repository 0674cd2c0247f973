"""What models of 2024 to 2026 do, against their own code in Transformers: gates, temperatures, bases, layers.

``docs/released.md`` states which models these are; the test at the end checks each of its lines.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest
import torch
import transformers
from transformers.models.cohere2 import modeling_cohere2 as cohere2
from transformers.models.exaone4 import modeling_exaone4 as exaone4
from transformers.models.gemma3 import modeling_gemma3 as gemma3
from transformers.models.gemma4 import modeling_gemma4 as gemma4
from transformers.models.gpt_oss import modeling_gpt_oss as gpt_oss
from transformers.models.granitemoehybrid import modeling_granitemoehybrid as granite
from transformers.models.llama4 import modeling_llama4 as llama4
from transformers.models.ministral3 import modeling_ministral3 as ministral3
from transformers.models.modernbert import modeling_modernbert as modernbert
from transformers.models.nemotron_h import modeling_nemotron_h as nemotron
from transformers.models.olmo3 import modeling_olmo3 as olmo3
from transformers.models.qwen3_next import modeling_qwen3_next as qwen3_next
from transformers.models.smollm3 import modeling_smollm3 as smollm3
from x_transformers.x_transformers import DataDependentAlibi

from tutorial_lib.attention import attention
from tutorial_lib.encodings import (
    Forgetting,
    Frequencies,
    NoPosition,
    PositionInterpolation,
    Rotary,
    Temperature,
    YaRN,
)

from .layers import close, heads, merged

F64 = torch.float64
L, D, H, H_KV = 12, 8, 4, 2
SIZES = {
    "hidden_size": H * D,
    "num_attention_heads": H,
    "num_key_value_heads": H_KV,
    "head_dim": D,
    "num_hidden_layers": 8,
    "pad_token_id": 0,
    "attn_implementation": "eager",
}


# ---- a gate that forgets ----


def test_the_forget_gate_of_x_transformers():
    """Its gates read x, ours the head's key: here by a square matrix, which can be undone."""
    theirs = DataDependentAlibi(D, H).double()
    W_k, x = torch.randn(H, D, D, dtype=F64), torch.randn(2, L, D, dtype=F64)
    k = torch.einsum("hde,ble->bhld", W_k, x)
    ours = Forgetting(H, D).double()
    ours.w.data = torch.linalg.solve(W_k.mT, theirs.to_forget_gates[0].weight.data)
    ours.b.data = theirs.to_forget_gates[0].bias.data
    with torch.no_grad():
        close(ours.content_bias(k, k, None, None) * ours.scale, theirs(x).tril(), 1e-10)


# ---- attention layers: which of them turn, and what they do to the query ----

MASK = torch.full((L, L), -torch.inf, dtype=F64).triu(1)[None, None]


def noise(module):
    """Every parameter drawn at random."""
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module


def layer_of(module, name, config, layer):
    """Theirs in float64 with random weights, and what makes queries, keys and values of x."""
    attend = noise(getattr(module, f"{name}Attention")(config, layer_idx=layer)).double().eval()

    def project(x):
        return [heads(f(x), n) for f, n in ((attend.q_proj, H), (attend.k_proj, H_KV), (attend.v_proj, H_KV))]

    return attend, project


def with_norm(attend, project):
    """EXAONE 4 and Qwen3-Next divide queries and keys by their length first."""

    def normed(x):
        q, k, v = project(x)
        return attend.q_norm(q), attend.k_norm(k), v

    return normed


def agree(attend, project, encoding, angles, shift=0, **more):
    x, p = torch.randn(2, L, H * D, dtype=F64), torch.arange(L) + shift
    with torch.no_grad():
        theirs = attend(x, position_embeddings=angles(x, p[None]), attention_mask=MASK, **more)[0]
        q, k, v = project(x)
        return (attend.o_proj(merged(attention(q, k, v, encoding, p, p, causal=True))) - theirs).abs().max()


def rope(layout, base, **other):
    return (
        Rotary(D, layout=layout, base=base)
        if not other
        else Rotary(D, layout=layout, frequencies=Frequencies(D, base, **other))
    )


@pytest.mark.parametrize("layer", range(8))
def test_the_layers_of_llama_4(layer):
    """RoPE in three of four; in the fourth no positions, and a query that grows with its place."""
    config = transformers.Llama4TextConfig(**SIZES, floor_scale=3, attn_scale=0.5, use_qk_norm=False)
    attend, project = layer_of(llama4, "Llama4Text", config, layer)
    angles = llama4.Llama4TextRotaryEmbedding(config)
    turns, warms = rope("interleaved", config.rope_parameters["rope_theta"]), Temperature(3, 0.5)
    right, wrong = (warms, turns) if layer % 4 == 3 else (turns, warms)
    assert agree(attend, project, right, angles) < 1e-5 < 1e-3 < agree(attend, project, wrong, angles)
    assert bool(config.no_rope_layers[layer]) is (layer % 4 != 3)


def test_the_temperature_of_ministral_3():
    """In every layer, behind RoPE, and a position later than in Llama 4: theirs is ⌊p / L⌋."""
    p, q = torch.arange(40_000), torch.randn(1, 2, 40_000, 4, dtype=F64)
    theirs = q * ministral3.get_llama_4_attn_scale(p[None], 0.1, 16384)
    ours, _ = Temperature(16384, 0.1).rotate(q, q, p - 1, p)
    close(ours, theirs, 1e-6)
    assert (Temperature(16384, 0.1).rotate(q, q, p, p)[0] - theirs).abs().max() > 1e-3


SKIPPING = {  # module, name of its layers, of its configuration, layout, whether it has norms of q and k
    "SmolLM3": (smollm3, "SmolLM3", "SmolLM3Config", "half", False),
    "EXAONE 4": (exaone4, "Exaone4", "Exaone4Config", "half", True),
    "Command R7B": (cohere2, "Cohere2", "Cohere2Config", "interleaved", False),
}


@pytest.mark.parametrize("layer", range(8))
@pytest.mark.parametrize("model", SKIPPING)
def test_every_fourth_layer_has_no_positions(model, layer):
    """And sees everything, where there is a window: the others turn, and see what is near."""
    module, name, of, layout, normed = SKIPPING[model]
    config = getattr(transformers, of)(**SIZES)
    attend, project = layer_of(module, name, config, layer)
    project = with_norm(attend, project) if normed else project
    angles = getattr(module, f"{name}RotaryEmbedding")(config)
    turns, stays = rope(layout, config.rope_parameters["rope_theta"]), NoPosition()
    right, wrong = (stays, turns) if layer % 4 == 3 else (turns, stays)
    assert agree(attend, project, right, angles) < 1e-5 < 1e-3 < agree(attend, project, wrong, angles)
    if model != "SmolLM3":
        assert config.layer_types[layer] == ("full_attention" if layer % 4 == 3 else "sliding_attention")


# ---- attention between recurrent layers ----


def test_the_attention_of_granite_4_has_no_positions():
    """Unless its configuration says "rope"; by default it says nothing, and no angles are made."""
    config = transformers.GraniteMoeHybridConfig(**SIZES, attention_multiplier=D**-0.5, mamba_n_heads=4)
    attend, project = layer_of(granite, "GraniteMoeHybrid", config, 0)
    assert config.position_embedding_type is None
    assert agree(attend, project, NoPosition(), lambda x, p: None) < 1e-5


def test_the_attention_of_nemotron_h_has_no_positions():
    """It is not even told where it is."""
    config = transformers.NemotronHConfig(**{k: v for k, v in SIZES.items() if k != "num_hidden_layers"})
    attend, project = layer_of(nemotron, "NemotronH", config, 0)
    assert not [name for name in inspect.signature(attend.forward).parameters if "position" in name]
    assert agree(attend, project, NoPosition(), lambda x, p: None) < 1e-5


def test_the_attention_of_qwen3_next_turns_a_quarter_of_its_channels():
    config = transformers.Qwen3NextConfig(**SIZES | {"head_dim": 4 * D, "hidden_size": 4 * H * D})
    angles, f = (
        qwen3_next.Qwen3NextRotaryEmbedding(config),
        Frequencies(4 * D, config.rope_parameters["rope_theta"], rotary_dim=D),
    )
    q, k, p = *torch.randn(2, 1, H, L, 4 * D, dtype=F64), torch.arange(L)
    expected = qwen3_next.apply_rotary_pos_emb(q, k, *angles(q, p[None]))
    for ours, theirs in zip(
        Rotary(4 * D, layout="half", frequencies=f).rotate(q, k, p, p), expected, strict=True
    ):
        close(ours, theirs, 1e-5)


# ---- a base for each kind of layer ----

YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "rope_theta": 5e5}


@pytest.mark.parametrize(
    "module, name, given, kind, ours",
    [
        (gemma3, "Gemma3", {}, "sliding_attention", {"base": 10_000.0}),
        (gemma3, "Gemma3", {}, "full_attention", {"base": 1e6}),
        (
            gemma3,
            "Gemma3",
            {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
            "sliding_attention",
            {"base": 10_000.0},
        ),
        (
            gemma3,
            "Gemma3",
            {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
            "full_attention",
            {"base": 1e6, "scaling": PositionInterpolation(8.0)},
        ),
        (gemma4, "Gemma4Text", {}, "sliding_attention", {"base": 10_000.0}),
        (gemma4, "Gemma4Text", {}, "full_attention", {"base": 1e6, "p": 0.25}),
        (modernbert, "ModernBert", {}, "sliding_attention", {"base": 10_000.0}),
        (modernbert, "ModernBert", {}, "full_attention", {"base": 160_000.0}),
        (olmo3, "Olmo3", {}, "sliding_attention", {"base": 5e5}),
        (olmo3, "Olmo3", {"rope_scaling": YARN}, "sliding_attention", {"base": 5e5}),
        (
            olmo3,
            "Olmo3",
            {"rope_scaling": YARN},
            "full_attention",
            {"base": 5e5, "scaling": YaRN(8.0, L=64, ramp="rounded index")},
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_the_angles_of_each_kind_of_layer(module, name, given, kind, ours):
    """A scaling that is given goes to the layers that see everything, in Gemma 3 and Olmo 3."""
    of = {"Gemma3": "Gemma3TextConfig", "Gemma4Text": "Gemma4TextConfig"}.get(name, f"{name}Config")
    config = getattr(transformers, of)(
        **{
            k: v
            for k, v in SIZES.items()
            if name != "ModernBert" or k in ("hidden_size", "num_attention_heads", "pad_token_id")
        },
        **given,
    )
    d = D
    if name == "Gemma4Text":
        d = config.per_layer_config[kind].head_dim
    angles = getattr(module, f"{name}RotaryEmbedding")(config)
    x, p = torch.zeros(1, dtype=F64), torch.arange(300)[None]
    f = Frequencies(d, **ours)
    for actual, theirs in zip(f.cos_sin(p, dtype=F64), angles(x, p, kind), strict=True):
        close(actual, theirs[..., : d // 2].double(), 1e-4)


def test_gpt_oss_turns_by_yarn_and_has_a_sink():
    """A sink is one more key: its score is a learned number, its value is nothing."""
    config = transformers.GptOssConfig(**SIZES)
    attend, project = layer_of(gpt_oss, "GptOss", config, 1)
    s = config.rope_parameters
    turns = rope(
        "half",
        s["rope_theta"],
        scaling=YaRN(s["factor"], L=s["original_max_position_embeddings"], ramp="index"),
    )
    x, p = torch.randn(1, L, H * D, dtype=F64), torch.arange(L)
    with torch.no_grad():
        theirs = attend(
            x, position_embeddings=gpt_oss.GptOssRotaryEmbedding(config)(x, p[None]), attention_mask=MASK
        )[0]
        q, k, v = project(x)
        q, k = turns.rotate(q, k, p, p)
        k, v = (y.repeat_interleave(H // H_KV, 1) for y in (k, v))
        s = (q @ k.mT * D**-0.5 + MASK).exp()
        weights = s / (s.sum(-1, keepdim=True) + attend.sinks.exp().view(-1, 1, 1))
        close(attend.o_proj(merged(weights @ v)), theirs, 1e-5)


# ---- what docs/released.md states ----

TABLE = (Path(__file__).parents[2] / "docs" / "released.md").read_text(encoding="utf-8")
ROWS = [row for row in re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", TABLE, re.MULTILINE) if row[0] != "model"]
LINES = {row: found.groups() for row in ROWS if (found := re.fullmatch(r"`(\w+/\w+)\.py`: `(.*)`", row[2]))}
DEFAULTS = [row for row in ROWS if row not in LINES]


@pytest.mark.parametrize("model, statement, shown", DEFAULTS)
def test_a_default_is_as_stated(model, statement, shown):
    expression = re.fullmatch("`(.*)`", shown)[1]
    names = set(re.findall(r"\w+Config\b", expression))
    assert len(names) == 1 and eval(expression, {name: getattr(transformers, name) for name in names}) is True


@pytest.mark.parametrize("model, statement, shown", LINES)
def test_a_line_of_code_stands_where_it_is_stated(model, statement, shown):
    path, line = LINES[model, statement, shown]
    module = importlib.import_module(f"transformers.models.{path.replace('/', '.')}")
    assert line in inspect.getsource(module)


def test_the_tables_are_read_whole():
    rows = [line for line in TABLE.splitlines() if line.startswith("|")]
    assert len(ROWS) == len(rows) - 2 * TABLE.count("|---|---|---|") > 25 and len(LINES) > 5
