"""``from_config`` against the model of each type in Transformers, made small.

A model runs twice, with attention that only notes its queries and keys and gives out nothing, so that every
layer reads the same both times: once as it is, and once with its rotation switched off. What our encoding
makes of the second must have the scores of the first.
"""

import contextlib
import copy
import inspect
import json
import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, AutoConfig, AutoModel
from transformers.masking_utils import eager_mask
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tutorial_lib import Config, Transformer, configs, from_config
from tutorial_lib.encodings import Learned, NoPosition, Rotary, T5Bias

READ, REFUSED = configs.known()["read"], configs.known()["refused"]
FAMILY = {name: entry.get("family", "rope") for name, entry in READ.items()}
LAYERS = 4
SIZES = {
    "hidden_size d_model n_embd dim": 64,
    "intermediate_size ffn_dim": 48,
    "moe_intermediate_size shared_expert_intermediate_size": 16,
    "num_attention_heads n_head num_heads n_heads num_experts n_routed_experts num_local_experts": 4,
    "num_hidden_layers n_layer n_layers num_layers": LAYERS,
    "num_key_value_heads num_experts_per_tok moe_topk": 2,
    "n_group topk_group": 1,
    "head_dim q_lora_rank": 24,
    "kv_lora_rank v_head_dim": 16,
    "qk_rope_head_dim qk_nope_head_dim": 8,
    "vocab_size vocab_size_per_layer_input": 97,
    "max_position_embeddings": 4096,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SMALL = {name: size for names, size in SIZES.items() for name in names.split()}


def sections(*numbers, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": numbers, **more}}


EVERY_SECOND = ["linear_attention", "full_attention"] * 2
OTHER = {  # sizes that a type needs, where those above don't do; None leaves it to the type
    "bailing_hybrid": {"head_dim": None, "n_group": 1, "num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "esm": {"position_embedding_type": "rotary", "vocab_size": 97},
    "esmc": {"num_key_value_heads": None, "head_dim": None},
    "falcon": {"head_dim": None},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8},
    "gemma3n_text": {"num_kv_shared_layers": 0, "hidden_size_per_layer_input": 16},
    "granite_swa granitemoe_swa": {"layer_rope_theta": [1e4, 0, 1e4, 5e5]},
    "granitemoehybrid": {
        "position_embedding_type": "rope",
        "layer_types": EVERY_SECOND,
        "mamba_n_heads": 4,
        "mamba_d_head": 32,
        "mamba_d_state": 8,
    },
    "helium hunyuan_v1_dense hunyuan_v1_moe minimax ministral mixtral": {"head_dim": 16},
    "nemotron": {"head_dim": 16, "num_key_value_heads": 2},
    "gptj codegen": {"rotary_dim": 8, "n_positions": 20_001, "n_ctx": 20_001},
    "jetmoe": {"kv_channels": 24},
    "laguna mellum": {"layer_types": ["sliding_attention", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1},
    "llama4_text": {"floor_scale": 2},
    "gemma4_text gemma4_unified_text": {"global_head_dim": 32, "hidden_size_per_layer_input": 16},
    "glm4v_text glm_ocr_text glm4v_moe_text": {
        "head_dim": 16,
        **sections(1, 2, 1, partial_rotary_factor=0.5),
    },
    "qwen2_vl qwen2_5_vl qwen2_vl_text qwen2_5_vl_text": sections(4, 2, 2),
    "qwen3_vl_text qwen3_vl_moe_text": sections(4, 4, 4),
    "qwen3_5_text qwen3_5_moe_text": sections(2, 2, 2, partial_rotary_factor=0.5),
    " ".join(name for name, entry in READ.items() if "cut" in entry): {"head_dim": None},
}


def small(name, **more):
    """The configuration of a small model of this type; of its lists the last entries, one for each layer."""
    default = AutoConfig.for_model(name).to_dict()
    default = default.get("text_config", default)
    more = copy.deepcopy(more)  # the classes write into what they are given
    own = {key: value for names, its in OTHER.items() if name in names.split() for key, value in its.items()}
    sizes = {key: size for key, size in SMALL.items() if default.get(key) is not None} | own
    for key, value in default.items():
        if isinstance(value, list) and len(value) > LAYERS and ("layer" in key or "pattern" in key):
            sizes.setdefault(key, value[-LAYERS:])
    sizes = {key: size for key, size in sizes.items() if size is not None} | more
    config = AutoConfig.for_model(name, **sizes)
    return getattr(config, "text_config", config)


def given(config, name=None):
    """As a file says it; internlm3 and others share the class of another type."""
    return config.to_dict() | ({"model_type": name} if name else {})


# ---- RoPE ----

YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}
LLAMA3 = YARN | {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONG = {"short_factor": [1.0 + t / 9 for t in range(12)], "long_factor": [2.0 + t for t in range(12)]}
LONG["original_max_position_embeddings"] = 64
PHI3 = {"type": "longrope", **{key: LONG[key][:8] for key in ("short_factor", "long_factor")}}
MSCALES = {"mscale": 1.0, "mscale_all_dim": 0.7}

NOTES = []


def note(module, q, k, v, mask=None, *_, scaling=None, **__):
    NOTES.append((q, k, scaling, getattr(module, "layer_idx", None)))
    return q.new_zeros(q.shape[0], q.shape[2], q.shape[1], v.shape[-1]), None


def alone(module, q, k, v, *_):
    """As the models return it that have an attention of their own: ``[B, H, L, D]``."""
    return note(module, q, k, v)[0].transpose(1, 2).contiguous()


AttentionInterface.register("note", note)
AttentionMaskInterface.register("note", eager_mask)


def model(config):
    for attention in ("note", "sdpa", "eager"):  # the last two for those with an attention of their own
        try:
            return AutoModel.from_config(config, attn_implementation=attention).eval()
        except (KeyError, ValueError):
            if attention == "eager":
                raise


@contextlib.contextmanager
def noting(net, still=False):
    """Attention of its own notes, too; ``still`` switches the rotation off, and Llama 4's temperature."""
    patch, code = pytest.MonkeyPatch(), sys.modules[type(net).__module__]
    patch.setattr(nn.functional, "scaled_dot_product_attention", lambda q, k, v, **_: alone(None, q, k, v))
    for part in net.modules():
        if hasattr(part, "_attn"):
            patch.setattr(part, "_attn", lambda *qkv, part=part: (alone(part, *qkv), None))
        if still and hasattr(part, "attn_temperature_tuning"):
            patch.setattr(part, "attn_temperature_tuning", False)
    for name, turn in vars(code).items() if still else ():
        if callable(turn) and name.startswith("apply_rotary") and "vision" not in name:
            both = list(inspect.signature(turn).parameters)[1] in ("k", "xk")
            same = (lambda q, k, *_, **__: (q, k)) if both else (lambda x, *_, **__: x)
            patch.setattr(code, name, same)
    NOTES.clear()
    try:
        yield
    finally:
        patch.undo()


def noted(net, positions, still=False):
    with noting(net, still), torch.no_grad():
        ids = torch.arange(3, 11)[None]
        takes = "position_ids" in inspect.signature(net.forward).parameters
        net(ids, **({"position_ids": positions} if takes else {}))
    return list(NOTES)


def scores(q, k):
    return q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT


FAR = 20_000
PLACES = torch.tensor([[0, 1, 2, 5, 9, 30, 77, FAR]])


def compare(config, name=None, layers=None):
    """Every layer's scores, those at a far position with the error that their float32 angles have there."""
    torch.manual_seed(0)
    ours, net = from_config(given(config, name)) if layers is None else layers, model(config)
    at = PLACES if name != "llama4_text" else torch.arange(8)[None]  # which counts by itself
    theirs = at
    if max(each.axes for each in ours) == 3:
        theirs = torch.stack([at, at // 2, at // 3])
        at = theirs.movedim(0, -1)
    turned, plain = noted(net, theirs), noted(net, theirs, still=True)
    assert len(turned) == len(plain) > 0
    turning = set()
    for n, ((q, k, scale, number), (q0, k0, *_)) in enumerate(zip(turned, plain, strict=True)):
        number = n if number is None else number
        encoding = ours[number]
        if isinstance(encoding, Rotary):
            turning.add(number)
            if encoding.scale is not None:  # of a cut head, whose last channels turn
                assert scale == pytest.approx(encoding.scale)
                q, k, q0, k0 = (x[..., -encoding.head_dim :] for x in (q, k, q0, k0))
        got, wanted = scores(*encoding.rotate(q0, k0, at, at)), scores(q, k)
        unit = wanted.abs().max()
        assert (got - wanted)[..., :7, :7].abs().max() < 2e-5 * unit
        assert (got - wanted).abs().max() < 5e-3 * unit
        if isinstance(encoding, Rotary):
            assert (scores(q0, k0) - wanted).abs().max() > 0.1 * unit  # it does turn
    assert turning == {n for n, encoding in enumerate(ours) if isinstance(encoding, Rotary)}
    return ours


def of(family):
    return [name for name, its in FAMILY.items() if its == family]


@pytest.mark.parametrize("name", of("rope"))
def test_each_layer_turns_as_in_the_model(name):
    """With the parameters that its class assumes, and with YaRN in their place where the type knows it."""
    config = small(name)
    compare(config, name)
    if "yarn" in READ[name].get("types", configs.TYPES):
        parameters = given(config)["rope_parameters"]
        kept = ("rope_theta", "mrope_section", *(["partial_rotary_factor"] if "part" in READ[name] else []))

        def yarn(its):
            return its and {key: its[key] for key in kept if key in its} | YARN | MSCALES

        by_kind = "by_kind" in READ[name]
        more = {kind: yarn(its) for kind, its in parameters.items()} if by_kind else yarn(parameters)
        compare(small(name, rope_parameters=more), name)


OLDER = [  # what older files say, most of them with the base at the top
    ("llama", {"rope_theta": 5e5}),
    ("llama", {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    ("llama", {"rope_theta": 5e5, "rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    ("llama", {"rope_theta": 5e5, "rope_scaling": LLAMA3}),
    ("llama", {"rope_theta": 5e5, "rope_scaling": YARN}),
    ("llama", {"rope_theta": 5e5, "rope_scaling": YARN | MSCALES}),
    ("llama", {"rope_theta": 5e5, "rope_scaling": YARN | MSCALES | {"attention_factor": 0.9}}),
    (
        "llama",
        {"rope_theta": 5e5, "rope_scaling": YARN | {"truncate": False, "beta_fast": 20, "beta_slow": 2}},
    ),
    ("llama", {"rope_theta": 5e5, "rope_scaling": LONG | {"type": "longrope", "factor": 4.0}}),
    ("llama", {"rope_theta": 5e5, "rope_scaling": LONG | {"type": "longrope", "attention_factor": 1.2}}),
    (
        "llama",
        {"rope_parameters": {"rope_theta": 1e4, "rope_type": "proportional", "partial_rotary_factor": 0.5}},
    ),
    ("qwen2", {"rope_theta": 1e6, "use_mrope": False, "rope_scaling": None}),
    ("gpt_neox", {"rotary_pct": 0.5, "rotary_emb_base": 5e5}),
    ("phi", {"rope_theta": 1e4, "partial_rotary_factor": 0.25, "rope_scaling": YARN}),
    ("phi3", {"rope_theta": 1e4, "original_max_position_embeddings": 64, "rope_scaling": PHI3}),
    (
        "phi3",
        {"rope_theta": 1e4, "rope_scaling": PHI3 | {"type": "su", "original_max_position_embeddings": 4096}},
    ),
    ("minimax_m2", {"rope_theta": 1e4, "rotary_dim": 12}),
    ("deepseek_v3", {"rope_theta": 1e4, "rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}}),
    ("deepseek_v3", {"rope_theta": 1e4, "rope_scaling": YARN | MSCALES, "rope_interleave": False}),
    (
        "hunyuan_v1_dense",
        {"rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "alpha": 10.0, "factor": 1.0}},
    ),
    ("qwen2_vl", {"rope_theta": 1e6, "rope_scaling": {"type": "mrope", "mrope_section": [4, 2, 2]}}),
    (
        "gemma3_text",
        {
            "rope_theta": 1e6,
            "rope_local_base_freq": 1e4,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
    ),
    ("gemma3n_text", {"rope_theta": 1e6, "rope_local_base_freq": 5e4}),
    (
        "modernbert",
        {
            "global_rope_theta": 1e5,
            "local_rope_theta": 2e4,
            "global_attn_every_n_layers": 2,
            "layer_types": None,
        },
    ),
    ("cohere2", {"rope_theta": 1e4, "sliding_window_pattern": 2, "layer_types": None}),
    ("olmo3", {"rope_theta": 5e5, "rope_scaling": YARN}),
    ("smollm3", {"rope_theta": 5e6, "no_rope_layers": [0, 1, 1, 0]}),
    ("smollm3", {"rope_theta": 5e6, "no_rope_layers": None, "no_rope_layer_interval": 2}),
    ("granitemoehybrid", {"position_embedding_type": None}),
    ("exaone4", {"rope_theta": 1e4, "sliding_window": None, "layer_types": ["full_attention"] * 4}),
]


@pytest.mark.parametrize("name, keys", OLDER, ids=lambda value: value if isinstance(value, str) else "")
def test_an_older_file_says_the_same(name, keys):
    """What our reader makes of the file is what the class makes of it."""
    config = small(name, **keys)
    file = given(config, name) | {"rope_parameters": None} | keys
    compare(config, layers=from_config(json.loads(json.dumps(file))))


# ---- the other families ----


@pytest.mark.parametrize("name", of("none"))
def test_no_layer_minds_where_its_tokens_stand(name):
    net = model(small(name, **NONE[name]))
    near, far = noted(net, PLACES), noted(net, PLACES + 100)
    assert len(near) == len(far) > 0
    for (q, k, *_), (q_far, k_far, *_) in zip(near, far, strict=True):
        assert torch.equal(q, q_far) and torch.equal(k, k_far)
    ours = from_config(given(net.config, name))
    assert len(ours) == LAYERS and {type(encoding) for encoding in ours} == {NoPosition}


NONE = {
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
    "kimi_linear": {"layer_types": EVERY_SECOND, "head_dim": None, "num_experts_per_tok": 2},
    "nemotron_h": {"layers_block_type": ["linear_attention", "full_attention", "moe", "full_attention"]},
}
TABLE = re.compile(r"(wpe|position_embeddings|embed_positions|positions_embed)$")


@pytest.mark.parametrize("name", of("learned"))
def test_the_last_rows_of_the_table_are_those_that_are_added(name):
    config = small(name, n_positions=24, max_position_embeddings=24)
    net = model(config)
    ours = from_config(given(config, name))
    assert isinstance(ours[0], Learned) and len(ours) == LAYERS and {*map(type, ours[1:])} == {NoPosition}
    ((_, table),) = [(n, part) for n, part in net.named_modules() if TABLE.search(n)]
    seen = []
    table.register_forward_hook(lambda _, __, out: seen.append(out))
    rows = ours[0].max_length
    with torch.no_grad():
        ours[0].table.copy_(table.weight[-rows:])
        net(torch.full((1, rows), 5))
    torch.testing.assert_close(ours[0].vectors(rows), seen[0].view(rows, -1))


@pytest.mark.parametrize("heads", [4, 6])
@pytest.mark.parametrize("name", of("alibi"))
def test_the_slopes(name, heads):
    """They leave out what is the same for all keys of a query."""
    config = small(name, n_head=heads, n_heads=heads, hidden_size=48, d_model=48)
    net = model(config)
    build = getattr(net, "build_alibi_tensor", None)
    args = (torch.ones(1, 9), heads, torch.float32) if build else (heads, 9)
    theirs = (build or net.build_mpt_alibi_tensor)(*args).view(heads, 1, 9)
    (ours,) = {*from_config(given(config))}
    assert len(from_config(given(config))) == LAYERS
    bias = ours.bias(9, 9)
    torch.testing.assert_close(bias - bias[..., :1], (theirs - theirs[..., :1]).expand(-1, 9, -1))


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize("name", of("t5"))
def test_the_buckets(name, stack):
    more = {"num_decoder_layers": 3, "relative_attention_max_distance": 20}
    config = small(name, relative_attention_num_buckets=8, d_kv=16, **more)
    layers = from_config(given(config), stack=stack)
    net = AutoModel.from_config(config)
    attentions = [block.layer[0].SelfAttention for block in getattr(net, stack).block]
    assert len(layers) == len(attentions) == (LAYERS if stack == "encoder" else 3)
    first = next(part for part in attentions if part.has_relative_attention_bias)
    for ours, theirs in zip(layers, attentions, strict=True):
        if not theirs.has_relative_attention_bias:
            assert ours is layers[0]
            theirs = first
        assert isinstance(ours, T5Bias)
        with torch.no_grad():
            ours.b.copy_(theirs.relative_attention_bias.weight.T)
            torch.testing.assert_close(ours.bias(30, 30), theirs.compute_bias(30, 30)[0])
    assert len({*layers}) == sum(part.has_relative_attention_bias for part in attentions)


# ---- what is refused ----

LLAMA = {"model_type": "llama", "num_hidden_layers": 2, "head_dim": 16, "rope_theta": 1e4}


@pytest.mark.parametrize(
    "keys, says",
    [
        ({"model_type": "nanochat"}, "it turns the other way round"),
        ({"model_type": "my_llama"}, "model_type='my_llama' can't be read"),
        ({"model_type": None}, "model_type=None can't be read"),
        ({"rope_theta": None}, "rope_theta is missing, and nothing is assumed"),
        ({"num_hidden_layers": None}, "num_hidden_layers or n_layer"),
        (
            {"rope_parameters": {"rope_theta": 5e5}},
            "at the top and rope_theta=500000.0 in rope_",
        ),
        ({"rope_scaling": {"type": "linear", "rope_type": "yarn"}}, "contradict each other"),
        ({"alibi": True}, "alibi=True at the top is not known as a key of this type"),
        ({"rope_local_base_freq": 1e4}, "rope_local_base_freq"),
        ({"no_rope_layers": [1, 0]}, "no_rope_layers"),
        ({"use_dynamic_ntk": True}, "use_dynamic_ntk"),
        ({"model_type": "qwen2", "use_mrope": True}, "use_mrope=True, but"),
        ({"dual_chunk_attention_config": {"chunk_size": 9}}, "dual_chunk_attention_config"),
        ({"layer_types": 2}, "layer_types=2: it must be a list"),
        (
            {
                "model_type": "gemma3_text",
                "layer_types": ["full_attention"] * 2,
                "rope_parameters": {"full_attention": {"rope_theta": 1e4}},
                "rope_scaling": {"rope_type": "linear", "factor": 8.0},
            },
            "and rope_scaling: give the first alone",
        ),
        (
            {"model_type": "gemma4_text", "layer_types": ["full_attention"] * 2},
            "global_head_dim or per_layer_config is missing",
        ),
        (
            {"model_type": "mpt", "n_heads": 4, "attn_config": {"alibi": False}},
            "alibi=False: only True is known",
        ),
        ({"rope_ratio": 2}, "rope_ratio"),
        ({"rope_interleaved": True}, "the layout 'half'"),
        ({"partial_rotary_factor": 0.5}, "turns all 16 channels"),
        ({"layer_types": ["full_attention", "mamba"]}, "'mamba' in layer_types"),
        ({"layer_types": ["full_attention"]}, "the kind of each of 2 layers"),
        ({"rope_scaling": {"type": "linear"}}, "factor is missing"),
        ({"rope_scaling": {"type": "linear", "factor": 0.5}}, "s=0.5"),
        ({"rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 32}}, "beta_fast=32 in rope_scaling"),
        ({"rope_scaling": {"type": "spiral", "factor": 2}}, "rope_type='spiral'"),
        ({"rope_scaling": YARN | {"finetuned": True}}, "finetuned=True in rope_scaling"),
        ({"rope_scaling": YARN | {"mscale": 0.7}}, "mscale=0.7 and mscale_all_dim=None: give both"),
        ({"rope_scaling": YARN | {"llama_4_scaling_beta": 0.1}}, "llama_4_scaling_beta"),
        (
            {"rope_scaling": YARN | {"original_max_position_embeddings": None}},
            "original_max_position_embeddings",
        ),
        ({"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}, "rope_type='mrope'"),
        ({"rope_parameters": {"mrope_section": [2, 3, 3]}}, "mrope_section=.* in rope_parameters"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}, "give one set for all layers"),
        ({"rope_parameters": 1e4}, "rope_parameters=10000.0: it must be a dict"),
        ({"head_dim": "64"}, "head_dim is '64'"),
        ({"text_config": {"model_type": "llama"}}, "beside text_config"),
        ({"model_type": "gemma"} | {"head_dim": None}, "head_dim is missing"),
        ({"model_type": "gpt_neox"}, "partial_rotary_factor or rotary_dim is missing"),
        (
            {"model_type": "gpt_neox", "rotary_pct": 0.5, "partial_rotary_factor": 0.25},
            "contradict each other",
        ),
        ({"model_type": "cohere2"}, "layer_types is missing"),
        ({"model_type": "smollm3"}, "no_rope_layer_interval is missing"),
        (
            {"model_type": "gemma3_text", "layer_types": ["sliding_attention"] * 2},
            "rope_local_base_freq is missing",
        ),
        ({"model_type": "falcon", "alibi": True}, "alibi=True: only False is known"),
        (
            {"model_type": "qwen3_vl_text", "rope_scaling": {"mrope_section": [2, 4, 2]}},
            "can't be interleaved",
        ),
        (
            {
                "model_type": "qwen3_vl_text",
                "rope_scaling": {"mrope_section": [4, 2, 2], "mrope_interleaved": False},
            },
            "mrope_interleaved=False",
        ),
        (
            {"model_type": "bert", "position_embedding_type": "relative_key"},
            "position_embedding_type='relative_key'",
        ),
        ({"model_type": "t5"}, "stack=None: it must be 'encoder' or 'decoder'"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(keys, says):
    with pytest.raises(ValueError, match=says):
        from_config(LLAMA | keys)


def test_a_thing_that_is_no_file():
    for config in ("config.json", None, AutoConfig):
        with pytest.raises(TypeError, match="give config.json as a dict"):
            from_config(config)
    with pytest.raises(ValueError, match="stack='encoder'"):
        from_config(LLAMA, stack="encoder")


def test_objects_files_and_the_text_model_of_a_larger_one_are_read_alike():
    text = small("qwen3")
    assert repr(from_config(text)) == repr(from_config(json.loads(text.to_json_string())))
    assert repr(from_config({"model_type": "got_ocr2", "text_config": given(text)})) == repr(
        from_config(text)
    )


@pytest.mark.parametrize("name", ["gemma3_text", "llama4_text", "qwen3_5_text", "gpt2", "bloom"])
def test_our_own_model_takes_the_list(name):
    layers = from_config(small(name))
    head_dim = max(getattr(encoding, "head_dim", 16) for encoding in layers)
    ours = Transformer(Config(vocab_size=11, d_model=4 * head_dim, n_layers=LAYERS, n_heads=4), layers)
    axes = layers[-1].axes
    positions = torch.arange(7) if axes == 1 else torch.arange(7)[:, None].expand(7, axes)
    assert ours(torch.arange(7)[None], positions).isfinite().all()


def test_layers_that_are_equal_share_one_encoding():
    assert len({*from_config(small("llama"))}) == 1
    assert len({*from_config(small("gemma3_text"))}) == 2
    assert len({*from_config(small("olmo3"))}) == 1  # two sets of parameters that say the same


# ---- what the table says, and the page says of it ----


@pytest.mark.parametrize("name", of("rope"))
def test_what_a_class_assumes_a_file_has_to_say(name):
    """Where a class puts another number than the usual in the place of a missing one, the key is needed."""
    entry, default = READ[name], AutoConfig.for_model(name).to_dict()
    if isinstance(default.get("head_dim"), int) and "cut" not in entry and name != "esmc":
        derived = AutoConfig.for_model(
            name, **{k: v for k, v in SMALL.items() if k in default and k != "head_dim"}
        )
        assert ("head_dim" in entry.get("needs", ())) is (derived.to_dict()["head_dim"] != 16)
    if "part" in entry and "rope_parameters" in default:
        sets = default["rope_parameters"]
        sets = sets.values() if all(isinstance(its, dict) for its in sets.values()) else [sets]
        assert (entry["part"] == "needed") is any(its.get("partial_rotary_factor", 1) != 1 for its in sets)


def test_every_decoder_of_transformers_is_read_or_refused():
    assert not READ.keys() & REFUSED.keys()
    for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys() - READ.keys() - REFUSED.keys():
        assert "text_config" in AutoConfig.for_model(name).to_dict(), f"{name}: read it, or say why not"


MOST_USED = """
    llama mistral mixtral qwen2 qwen2_moe qwen3 qwen3_moe gemma gemma2 gemma3_text phi phi3 gpt2
    gpt_neox gptj gpt_oss opt bloom falcon deepseek_v3 llama4_text cohere olmo2 granite starcoder2 bert
    roberta t5
""".split()
KINDS = {  # the rows of the page's table: which entries belong there, the first that fits
    "ALiBi": lambda its: its.get("family") == "alibi",
    "T5's biases": lambda its: its.get("family") == "t5",
    "a learned table": lambda its: its.get("family") == "learned",
    "no positions": lambda its: its.get("family") == "none",
    "M-RoPE": lambda its: "order" in its,
    "RoPE on a part of each head that is cut off for it": lambda its: "cut" in its,
    "RoPE in some layers, none in others": lambda its: "turns" in its,
    "RoPE, each kind of layer with a base of its own": lambda its: "by_kind" in its,
    "RoPE in the layers of attention, none in the recurrent ones": lambda its: "recurrent" in its,
    "RoPE": lambda its: True,
}


def rows():
    """The page's tables, in Markdown."""
    read = {}
    for name, its in sorted(READ.items()):
        kind = next(kind for kind, fits in KINDS.items() if fits(its))
        layout = f', `"{its["layout"]}"`' if "layout" in its else ""
        read.setdefault(kind + layout, []).append(name)
    refused = {}
    for name, why in sorted(REFUSED.items()):
        refused.setdefault(why, []).append(name)
    yield from ("| the layers have | `model_type` |", "|---|---|")
    order = [
        f"{kind}{layout}" for kind in reversed(KINDS) for layout in (', `"half"`', ', `"interleaved"`', "")
    ]
    for kind in order:
        if kind in read:
            yield f"| {kind} | {', '.join(read[kind])} |"
    yield from ("", "These decoders of Transformers are refused, and the error says why:", "")
    yield from ("| `model_type` | because |", "|---|---|")
    for why, names in refused.items():
        yield f"| {', '.join(names)} | {why} |"


def test_the_page_lists_the_types():
    page = (Path(configs.FILE).parents[1] / "docs/use.md").read_text(encoding="utf-8")
    listed = "\n".join(rows())
    assert listed in page, f"docs/use.md must say\n\n{listed}"
    assert len(READ) >= 60 and {*MOST_USED} <= READ.keys()
