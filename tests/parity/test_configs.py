"""``from_config`` against the model of each type in Transformers, made small.

A model runs twice, with attention that only notes its queries and keys and gives out nothing, so that every
layer reads the same both times: once as it is, and once with its rotation switched off. What our encoding
makes of the second must have the scores of the first.
"""

import contextlib
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

from tutorial_lib import configs, from_config
from tutorial_lib.encodings import Learned, LongRoPE, NoPosition, Rotary, T5Bias, Temperature

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
    "esm": {"position_embedding_type": "rotary"},
    "esmc": {"num_key_value_heads": None, "head_dim": None},
    "falcon": {"head_dim": None},
    "gemma3n_text": {"num_kv_shared_layers": 0, "hidden_size_per_layer_input": 16},
    "granite_swa granitemoe_swa": {"layer_rope_theta": [1e4, 0, 1e4, 5e5]},
    "granitemoehybrid": {"position_embedding_type": "rope", "layer_types": EVERY_SECOND},
    "helium hunyuan_v1_dense hunyuan_v1_moe ministral nemotron": {"head_dim": 16},
    "gptj codegen": {"rotary_dim": 8, "n_positions": 20_001, "n_ctx": 20_001},
    "jetmoe": {"kv_channels": 24},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1},
    "llama4_text": {"floor_scale": 2},
    "gemma4_text gemma4_unified_text": {"global_head_dim": 32, "hidden_size_per_layer_input": 16},
    "glm4v_text glm_ocr_text glm4v_moe_text": {"head_dim": 16, **sections(1, 2, 1, partial_rotary_factor=0.5)},
    "qwen2_vl_text qwen2_5_vl_text": sections(4, 2, 2),
    "qwen3_vl_text qwen3_vl_moe_text": sections(4, 4, 4),
    "qwen3_5_text qwen3_5_moe_text": sections(2, 2, 2, partial_rotary_factor=0.5),
    " ".join(name for name, entry in READ.items() if "cut" in entry): {"head_dim": None},
}


def small(name, **more):
    """The configuration of a small model of this type; of its lists the last entries, one for each layer."""
    default = AutoConfig.for_model(name).to_dict()
    own = {key: value for names, its in OTHER.items() if name in names.split() for key, value in its.items()}
    sizes = {key: size for key, size in SMALL.items() if default.get(key) is not None} | own | more
    for key, value in default.items():
        if isinstance(value, list) and len(value) > LAYERS and ("layer" in key or "pattern" in key):
            sizes.setdefault(key, value[-LAYERS:])
    return AutoConfig.for_model(name, **{key: size for key, size in sizes.items() if size is not None})


def given(config, name=None):
    """As a file says it; internlm3 and others share the class of another type."""
    return config.to_dict() | ({"model_type": name} if name else {})


# ---- RoPE ----

NOTES = []


def note(module, q, k, v, mask=None, *_, scaling=None, **__):
    NOTES.append((q, k, scaling, getattr(module, "layer_idx", None)))
    return q.new_zeros(q.shape[0], q.shape[2], q.shape[1], v.shape[-1]), None


AttentionInterface.register("note", note)
AttentionMaskInterface.register("note", eager_mask)


def model(config):
    try:
        return AutoModel.from_config(config, attn_implementation="note").eval()
    except KeyError:  # of those with an attention of their own
        return AutoModel.from_config(config, attn_implementation="eager").eval()


@contextlib.contextmanager
def noting(net, still=False):
    """Attention of its own notes, too; ``still`` switches the rotation off, and Llama 4's temperature."""
    patch, code = pytest.MonkeyPatch(), sys.modules[type(net).__module__]
    patch.setattr(nn.functional, "scaled_dot_product_attention", lambda q, k, v, **_: note(None, q, k, v)[0].mT)
    for part in net.modules():
        if hasattr(part, "_attn"):
            patch.setattr(part, "_attn", lambda q, k, v, *_, part=part: (note(part, q, k, v)[0].transpose(1, 2), None))
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
    compare(small(name), name)
