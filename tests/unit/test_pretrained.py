"""The two real models: they are what they claim to be, and SmolLM2 needs its positions."""

import pytest
import torch

from tutorial_lib.data import SMOLLM2, load_minilm_positions, load_smollm2
from tutorial_lib.encodings import NoPosition, Rotary
from tutorial_lib.properties import parameters

PLAIN_ENGLISH = (
    "The sun rises in the east and sets in the west. In the morning people go to work, and in the "
    "evening they come home, eat dinner with their family, and talk about what happened during the "
    "day. When the children are tired, they brush their teeth and go to bed."
)


@pytest.fixture(scope="module")
def smollm2():
    return load_smollm2()


@pytest.fixture(scope="module")
def measured(smollm2):
    """Tokens, positions, and the loss of each token."""
    tokens = smollm2.encode(PLAIN_ENGLISH)
    return tokens, torch.arange(tokens.shape[1]), smollm2.losses(tokens)


@pytest.mark.parametrize(
    "text",
    [
        "It was 1 of 365 days.",
        "猫追狗 means “cat chases dog”",
        "naïve café — ☕👩‍🔬",
        "  two\n\n\tlines ",
        "",
    ],
)
def test_the_tokenizer_gives_back_what_it_got(smollm2, text):
    ids = smollm2.encode(text)
    assert ids.dtype == torch.int64 and ids.shape[0] == 1
    assert smollm2.decode(ids) == text


def test_the_tokenizer_cuts_as_the_model_learned_it(smollm2):
    ids = smollm2.encode("In 2026<|im_start|>user")[0]
    cut = [smollm2.tokenizer.id_to_token(i) for i in ids.tolist()]
    assert cut == ["In", "Ġ", "2", "0", "2", "6", "<|im_start|>", "user"]


def test_it_continues_a_sentence(smollm2):
    assert smollm2.continue_text("The capital of France is", 1) == " Paris"
    assert len(smollm2.encode(smollm2.continue_text("Once upon a time", 8))[0]) == 8


def test_it_reads_plain_english(measured):
    tokens, _, losses = measured
    assert losses.shape == (1, tokens.shape[1] - 1)
    assert losses.mean() < 2.4


def test_losses_are_those_of_the_next_token(smollm2, measured):
    tokens, _, losses = measured
    log_p = smollm2.model(tokens[:, :11])[0, 10].log_softmax(-1)
    torch.testing.assert_close(losses[0, 10], -log_p[tokens[0, 11]], atol=1e-4, rtol=1e-4)


def test_it_only_knows_distances(smollm2, measured):
    tokens, positions, losses = measured
    assert (smollm2.losses(tokens, positions + 1000) - losses).abs().max() < 1e-3


@pytest.mark.parametrize(
    "change, worse",
    [
        ("no position", 1.2),
        ("reversed", 0.8),
        ("the other pairs", 0.7),
        ("the other base", 0.03),
    ],
)
def test_it_needs_its_own_positions(smollm2, measured, change, worse):
    (tokens, positions, losses), own = measured, smollm2.model.encoding
    smollm2.model.encoding = {
        "no position": NoPosition(),
        "the other pairs": Rotary(SMOLLM2.head_dim, base=100_000.0, layout="half"),
        "the other base": Rotary(SMOLLM2.head_dim, base=10_000.0),
    }.get(change, own)
    try:
        changed = smollm2.losses(tokens, positions.flip(0) if change == "reversed" else positions)
    finally:
        smollm2.model.encoding = own
    assert changed.mean() > losses.mean() + worse


def test_decoding_equals_the_full_pass(smollm2, measured):
    tokens = measured[0][:, :12]
    with torch.no_grad():
        expected = torch.cat([tokens, smollm2.model(tokens)[:, -1:].argmax(-1)], 1)
        expected = torch.cat([expected, smollm2.model(expected)[:, -1:].argmax(-1)], 1)
    assert torch.equal(smollm2.model.generate(tokens, 2), expected)


def test_it_is_loaded_once_frozen_and_ready(smollm2):
    assert load_smollm2() is smollm2 and "Apache-2.0" in smollm2.licence
    assert not smollm2.model.training and parameters(smollm2.model) == 0
    weights = smollm2.model.state_dict()
    assert weights["head.weight"].data_ptr() == weights["tokens.weight"].data_ptr()
    size = sum(p.numel() for p in smollm2.model.parameters())  # the shared table counted once
    assert size == 134_515_008 and all(p.dtype == torch.float32 for p in weights.values())


# ---- MiniLM's learned table ----


def test_minilm_positions_are_like_their_neighbours():
    table = load_minilm_positions()
    assert table.shape == (512, 384) and table.dtype == torch.float32
    unit = torch.nn.functional.normalize(table, dim=1)
    cosine = unit @ unit.T
    at = {d: cosine.diagonal(d).mean().item() for d in (1, 2, 8, 16, 128)}
    assert at == pytest.approx({1: 0.85, 2: 0.59, 8: 0.29, 16: 0.43, 128: 0.08}, abs=0.01)
    nearest = (cosine - 2 * torch.eye(512)).argmax(1)
    assert ((nearest - torch.arange(512)).abs() == 1).float().mean() > 0.99
    assert table[0].norm() > 4 * table[1:].norm(dim=1).mean()
