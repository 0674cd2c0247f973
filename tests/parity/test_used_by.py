"""What the course says of released models, against the defaults of their configurations.

A default is that of the model that the configuration is named after. (The factor of 8 in Gemma 3 stands in
the files of the models from 4B on, not in a default.)
"""

import pytest

transformers = pytest.importorskip("transformers", reason="one of the peers")


def rope(config, kind=None):
    parameters = config.rope_parameters
    return parameters[kind] if kind else parameters


def test_yarn_in_gpt_oss():
    scaling = rope(transformers.GptOssConfig())
    assert (scaling["rope_type"], scaling["factor"], scaling["truncate"]) == ("yarn", 32.0, False)


def test_a_quarter_of_the_pairs_turns_in_the_global_layers_of_gemma_4():
    scaling = rope(transformers.Gemma4TextConfig(), "full_attention")
    assert scaling == {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}


def test_encoders_turn_too():
    config = transformers.ModernBertConfig()
    bases = [rope(config, f"{kind}_attention")["rope_theta"] for kind in ("full", "sliding")]
    assert bases == [160_000, 10_000]
    for name in ("EuroBert", "NomicBert"):
        assert rope(getattr(transformers, f"{name}Config")())["rope_theta"] > 0


@pytest.mark.parametrize(
    "name, kind",
    [
        ("Wav2Vec2Bert", "relative_key"),
        ("SeamlessM4Tv2", "relative_key"),  # Shaw's
        ("Wav2Vec2Conformer", "relative"),  # Transformer-XL's
    ],
)
def test_relative_vectors_in_speech(name, kind):
    assert getattr(transformers, f"{name}Config")().position_embeddings_type == kind


def test_some_layers_of_llama_4_and_smollm3_do_not_turn():
    for config in (transformers.Llama4TextConfig(), transformers.SmolLM3Config()):
        assert 0 < sum(config.no_rope_layers) < len(config.no_rope_layers) == config.num_hidden_layers
