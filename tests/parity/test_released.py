"""released.json against the configuration classes that it was made from."""

import dataclasses
import json

import pytest

from tutorial_lib.data import released
from tutorial_lib.data.released import Layer

transformers = pytest.importorskip("transformers", reason="one of the peers")


def each(config, layer):
    return [layer(config, n) for n in range(config.num_hidden_layers)]


def one_rope(config, n):
    """RoPE of one base, in the layers that ``no_rope_layers`` names with a 1."""
    sees = config.attention_chunk_size if config.layer_types[n] == "chunked_attention" else None
    return Layer(sees, config.rope_parameters["rope_theta"] if config.no_rope_layers[n] else None)


def window_alone(config, n):
    """RoPE under a window, nothing where all is seen: a line of modeling_cohere2.py and of EXAONE's."""
    near = config.layer_types[n] == "sliding_attention"
    return Layer(config.sliding_window, config.rope_parameters["rope_theta"]) if near else Layer()


def two_ropes(config, n, window=None):
    """RoPE everywhere, with parameters for each kind of layer."""
    near = config.layer_types[n] == "sliding_attention"
    rope = config.rope_parameters
    rope = rope[config.layer_types[n]] if "full_attention" in rope else rope
    return Layer(
        (window or config.sliding_window) if near else None,
        rope["rope_theta"],
        rope.get("partial_rotary_factor", 1.0),
    )


def hybrid(config, n):
    """Recurrent layers with attention between them."""
    if config.layer_types[n] == "linear_attention":
        return Layer(recurrent=True)
    rope = getattr(config, "rope_parameters", None) or {}
    return Layer(None, rope.get("rope_theta"), rope.get("partial_rotary_factor", 1.0))


MODELS = {
    "Llama 4": ("Llama4TextConfig", one_rope),
    "SmolLM3": ("SmolLM3Config", one_rope),
    "Command R7B": ("Cohere2Config", window_alone),
    "EXAONE 4": ("Exaone4Config", window_alone),
    "Gemma 3": ("Gemma3TextConfig", two_ropes),
    "Gemma 4": ("Gemma4TextConfig", two_ropes),
    "ModernBERT": ("ModernBertConfig", lambda config, n: two_ropes(config, n, config.local_attention)),
    "Olmo 3": ("Olmo3Config", two_ropes),
    "gpt-oss": ("GptOssConfig", two_ropes),
    "Qwen3-Next": ("Qwen3NextConfig", hybrid),
}


def made(name):
    """One entry of the table: kinds of layers by letter, and a letter for each layer."""
    config, layer = MODELS[name]
    layers = each(getattr(transformers, config)(), layer)
    kinds = list(dict.fromkeys(layers))
    letters = dict(zip(kinds, "abc", strict=False))
    return {
        "config": config,
        "kinds": {letters[kind]: dataclasses.asdict(kind) for kind in kinds},
        "layers": "".join(letters[layer] for layer in layers),
    }


@pytest.mark.parametrize("name", MODELS)
def test_a_strip_is_that_of_the_configuration(name):
    assert json.loads(released.FILE.read_text(encoding="utf-8"))[name] == made(name)


def test_no_other_model_is_in_the_table():
    assert list(released.load()) == list(MODELS)


def test_what_the_lesson_says_of_the_strips():
    models = released.load()
    assert models["Llama 4"].without == 12 and models["SmolLM3"].without == 9
    assert models["Command R7B"].without == 10 and models["EXAONE 4"].without == 8
    assert models["Gemma 3"].without == 0
    assert {(layer.recurrent, layer.sees) for layer in models["Qwen3-Next"].layers} == {
        (True, None),
        (False, None),
    }
