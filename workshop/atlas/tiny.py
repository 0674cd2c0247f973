"""Each causal model type of Transformers, with all its layers, narrow and with random weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

WINDOW = 8
LARGEST = 100_000_000
SIZES = {
    "hidden_size d_model n_embd dim": 64,
    "intermediate_size ffn_dim ffn_hidden_size expert_ffn_hidden_size": 48,
    "moe_intermediate_size shared_expert_intermediate_size": 16,
    "num_attention_heads n_head num_heads n_heads": 4,
    "encoder_attention_heads decoder_attention_heads": 4,
    "num_experts n_routed_experts num_local_experts": 4,
    "num_key_value_heads num_experts_per_tok moe_topk": 2,
    "n_group topk_group": 1,
    "mamba_d_state ssm_state_size state_size chunk_size mamba_chunk_size": 8,
    "head_dim q_lora_rank": 24,
    "kv_lora_rank v_head_dim": 16,
    "qk_rope_head_dim qk_nope_head_dim": 8,
    "vocab_size vocab_size_per_layer_input": 97,
    "max_position_embeddings": 4096,
    "sliding_window attention_chunk_size window_size attention_window_size": WINDOW,
    "is_decoder": True,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SMALL = {name: size for names, size in SIZES.items() for name in names.split()}
CUT = {"head_dim": None, "num_key_value_heads": 4}
OTHER: dict[str, dict[str, Any]] = {  # sizes that a type needs, where those above don't do; None: its own
    "axk1 axk2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa youtu hy_v4 minicpm3": CUT,
    "bailing_hybrid": {**CUT, "head_dim": 8, "n_group": 1, "num_experts_per_tok": 2},
    "longcat_flash": {**CUT, "expert_ffn_hidden_size": 16},
    "deepseek_v2": {**CUT, "num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "dots3_note_text": {"head_dim": None, "num_key_value_heads": 4, "kv_lora_rank": None, "v_head_dim": None},
    "cpmant": {"dim_ff": 48, "dim_head": 16},
    "falcon": {"head_dim": None},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8},
    "gemma3n_text": {"hidden_size_per_layer_input": 16},
    "mamba2": {"head_dim": 32, "n_groups": 1},
    "bamba granitemoehybrid": {"mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 8},
    "helium hunyuan_v1_dense hunyuan_v1_moe minimax ministral mixtral": {"head_dim": 16},
    "nemotron": {"head_dim": 16, "num_key_value_heads": 2},
    "gptj codegen": {"rotary_dim": 8},
    "jetmoe": {"kv_channels": 24},
    "lfm2_moe": {"num_dense_layers": 1},
    "gemma4_text gemma4_unified_text": {"global_head_dim": 32, "hidden_size_per_layer_input": 16},
    "jamba": {"use_mamba_kernels": False},
    "kimi_linear": {**CUT, "num_experts_per_tok": 2},
    "whisper": {"d_model": 48},
    "plbart": {"d_model": 48},
    "reformer": {"is_decoder": True},
}


def types() -> list[str]:
    """All that the pinned Transformers calls a causal language model."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def config(name: str) -> Any:
    return AutoConfig.for_model(name)


def default(name: str) -> Any:
    """What the class assumes; of a model for several media, of its text."""
    whole = config(name)
    return getattr(whole, "text_config", None) or whole


def small(name: str, leave: tuple[str, ...] = ()) -> Any:
    """The configuration of a narrow model of this type, with as many layers as its class says."""
    given = default(name).to_dict()
    own = {key: value for names, its in OTHER.items() if name in names.split() for key, value in its.items()}
    sizes = {key: size for key, size in SMALL.items() if given.get(key) is not None and key not in leave}
    sizes = {key: size for key, size in (sizes | copy.deepcopy(own)).items() if size is not None}
    return AutoConfig.for_model(given["model_type"], **sizes)


def model(config: Any) -> nn.Module:
    """With weights large enough that attention is not flat, in double precision where that runs."""
    kind = AutoModelForCausalLM if config.model_type in types() else AutoModel
    with torch.device("meta"):
        n = sum(each.numel() for each in kind.from_config(config).parameters())
    if n > LARGEST:
        raise ValueError(f"too big: {n} parameters")
    torch.manual_seed(0)
    net = kind.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for each in net.parameters():
            if each.dim() > 1:
                each.normal_(0, each.shape[-1] ** -0.5)
    return net.requires_grad_(False)
