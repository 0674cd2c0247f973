"""The golden vectors: made anew they are the same, others agree, a file of outputs is judged."""

import json
import os
import re

os.environ["HF_HUB_OFFLINE"] = "1"  # set before Hugging Face is imported

import pytest
import rotary_embedding_torch
import safetensors
import safetensors.torch
import torch
from PoPE_pytorch import PoPE
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen
from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3
from transformers.models.roformer import modeling_roformer as roformer
from transformers.models.t5 import modeling_t5 as t5
from x_transformers import x_transformers

from tutorial_lib import conformance
from tutorial_lib.conformance import golden

CASES = golden.load()
NEAR = 2e-4  # theirs is float32
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def close(name, theirs, tolerance=NEAR):
    torch.testing.assert_close(theirs.double(), CASES[name]["y"].double(), atol=tolerance, rtol=0)


def test_the_files_are_what_this_code_makes(tmp_path):
    """To the letter, but for the last bits of a float64: processors of another kind round them otherwise."""
    golden.write(tmp_path)
    texts = [(folder / "golden.json").read_text(encoding="utf-8") for folder in (tmp_path, golden.FOLDER)]
    packs = [
        golden.unpacked((folder / "golden.safetensors").read_bytes()) for folder in (tmp_path, golden.FOLDER)
    ]
    numbers = [[float(each) for each in NUMBER.findall(text)] for text in texts]
    assert NUMBER.sub("", texts[0]) == NUMBER.sub("", texts[1]), "write() them anew"
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-13, abs=1e-14), "write() them anew"
    assert packs[0][1] == packs[1][1] and packs[0][0].keys() == packs[1][0].keys(), "write() them anew"
    torch.testing.assert_close(packs[0][0], packs[1][0], rtol=1e-13, atol=1e-14)
    assert sum(path.stat().st_size for path in golden.FOLDER.iterdir()) < 400_000


def test_the_package_safetensors_reads_them():
    path = golden.FOLDER / "golden.safetensors"
    tensors = safetensors.torch.load_file(path)
    assert all(tensors[f"{name}/y"].equal(case["y"]) for name, case in CASES.items())
    with safetensors.safe_open(path, "pt") as file:
        described = json.loads(file.metadata()["cases"])
    assert described.keys() == CASES.keys() and described["rope_half"]["tolerance"]["float64"] == 1e-9
    packed = safetensors.torch.save({"a": torch.randn(2, 3).bfloat16()})
    assert golden.unpacked(packed)[0]["a"].equal(safetensors.torch.load(packed)["a"])


# ---- other code bases ----
def of_llama(name):
    its = CASES[name]["parameters"]
    scaling = {"rope_type": "default", **its.get("scaling", {})}
    config = llama.LlamaConfig(head_dim=16, rope_parameters={"rope_theta": its["base"], **scaling})
    x, p = CASES[name]["x"][None, None], CASES[name]["positions"][None]
    return llama.apply_rotary_pos_emb(x, x, *llama.LlamaRotaryEmbedding(config)(x, p))[0][0, 0]


@pytest.mark.parametrize(
    "name",
    ["rope_half", "rope_base_500000", "rope_linear", "rope_llama3", "rope_yarn", "rope_yarn_not_truncated"],
)
def test_rope_of_llama(name):
    close(name, of_llama(name))


def test_interleaved_rope_of_four():
    x, p = CASES["rope_interleaved"]["x"], CASES["rope_interleaved"]["positions"]
    sin, cos = gptj.create_sinusoidal_positions(400, 16)[p].to(x.dtype).chunk(2, -1)
    close("rope_interleaved", gptj.apply_rotary_pos_emb(x[None, :, None], sin[None], cos[None])[0, :, 0])
    table = roformer.RoFormerSinusoidalPositionalEmbedding(400, 16).create_weight()[p].to(x.dtype)
    turn = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings
    close("rope_interleaved", turn(table[None, None], x[None, None], x[None, None])[0][0, 0])
    angles, _ = x_transformers.RotaryEmbedding(16)(p)
    close("rope_interleaved", x_transformers.apply_rotary_pos_emb(x[None, None], angles)[0, 0])
    theirs = rotary_embedding_torch.RotaryEmbedding(16)
    rows = [
        theirs.rotate_queries_or_keys(row[None, None, None], offset=i)[0, 0, 0]
        for i, row in zip(p.tolist(), x, strict=True)
    ]
    close("rope_interleaved", torch.stack(rows))


@pytest.mark.parametrize("order", ["chunked", "interleaved"])
def test_the_sections_of_qwen(order):
    case = CASES[f"mrope_{order}"]
    parameters = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": case["parameters"]["sections"]}
    if order == "chunked":
        config = qwen.Qwen2VLTextConfig(hidden_size=16, num_attention_heads=1, rope_parameters=parameters)
        theirs = qwen.Qwen2VLRotaryEmbedding(config)
    else:
        theirs = qwen3.Qwen3VLTextRotaryEmbedding(
            qwen3.Qwen3VLTextConfig(head_dim=16, rope_parameters=parameters)
        )
    x, p = case["x"][None, None], case["positions"].T[:, None]
    close(f"mrope_{order}", llama.apply_rotary_pos_emb(x, x, *theirs(x, p))[0][0, 0])


def test_alibi_of_bloom_and_x_transformers():
    p = torch.arange(7)
    for n in (4, 6):
        want = CASES[f"alibi_{n}_heads"]["y"].tril()
        theirs = bloom.build_alibi_tensor(torch.ones(1, 7).long(), n, torch.float32)[:, 0, None]
        theirs = (theirs - theirs.expand(n, 7, 7).diagonal(dim1=-2, dim2=-1)[..., None]).tril()
        torch.testing.assert_close(theirs.double(), want, atol=1e-6, rtol=0)
        torch.testing.assert_close(
            x_transformers.AlibiPositionalBias(n)(len(p), len(p)).tril().double(), want, atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("both", [False, True])
def test_buckets_of_t5_and_x_transformers(both):
    name = f"t5_buckets_{'bidirectional' if both else 'causal'}"
    r = CASES[name]["r"]
    close(name, t5.T5Attention._relative_position_bucket(r, both, 32, 128), 0)
    close(name, x_transformers.RelativePositionBias._relative_position_bucket(r, not both, 32, 128), 0)


@torch.no_grad()
def test_pope_of_its_package():
    case = CASES["attention_pope"]
    q, k, v = (case[name][None] for name in "qkv")
    theirs = PoPE(16, heads=2, theta=1e4)
    theirs.bias.data = torch.zeros(2, 16, dtype=torch.float64)
    theirs.inv_freqs = 1e4 ** -(torch.arange(16, dtype=torch.float64) / 16)
    q, k = theirs.apply_pope_to_qk(theirs(6), q, k)
    seen = torch.ones(6, 6).tril().bool()
    y = (q @ k.mT / 4).masked_fill(~seen, -torch.inf).softmax(-1) @ v
    close("attention_pope", y[0], 1e-9)


# ---- outputs of others ----
def outputs(**changed):
    return {name: case["y"].tolist() for name, case in CASES.items()} | changed


def judged(tmp_path, written):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(written))
    return conformance.check(path)


def test_right_outputs_pass_and_missing_ones_are_not_decided(tmp_path):
    assert {finding.status for finding in judged(tmp_path, outputs()).findings} == {"passed"}
    report = judged(tmp_path, {"rope_half": CASES["rope_half"]["y"].float().tolist(), "dtype": "float32"})
    assert report.ok and report["alibi_4_heads"].status == "not decided"
    path = tmp_path / "mine.safetensors"
    low = {name: case["y"].bfloat16() for name, case in CASES.items() if case["y"].is_floating_point()}
    safetensors.torch.save_file(low, path)
    assert conformance.check(path).ok


WRONG = {
    "layout": ("rope_half", lambda: CASES["rope_interleaved"]["y"]),
    "base": ("rope_base_500000", lambda: CASES["rope_half"]["y"]),
    "scaling missing": ("rope_linear", lambda: CASES["rope_half"]["y"]),
    "ramp not truncated": ("rope_yarn", lambda: CASES["rope_yarn_not_truncated"]["y"]),
    "whole head turned": ("rope_partial", lambda: CASES["rope_half"]["y"]),
    "sections": ("mrope_chunked", lambda: CASES["mrope_interleaved"]["y"]),
    "bias sign": ("alibi_4_heads", lambda: -CASES["alibi_4_heads"]["y"]),
    "slopes": (
        "alibi_6_heads",
        lambda: (
            (torch.arange(7) - torch.arange(7)[:, None]) * 2.0 ** (-8 * torch.arange(1, 7) / 6)[:, None, None]
        ),
    ),
    "bidirectional buckets": ("t5_buckets_causal", lambda: CASES["t5_buckets_bidirectional"]["y"]),
    "cosine for sine": (
        "sinusoidal",
        lambda: CASES["sinusoidal"]["y"].unflatten(-1, (-1, 2)).flip(-1).flatten(-2),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_output_is_called_by_its_name(tmp_path, name):
    case, y = WRONG[name]
    report = judged(tmp_path, outputs(**{case: y().tolist()}))
    assert [finding.promise for finding in report.failed] == [case] and name in report[case].bugs, report


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    with pytest.raises(ValueError, match="give some of sinusoidal, rope_half"):
        judged(tmp_path, {"rope": [1]})
    with pytest.raises(ValueError, match="dtype='int4'"):
        judged(tmp_path, outputs(dtype="int4"))
    assert "must have" in judged(tmp_path, outputs(sinusoidal=[1.0]))["sinusoidal"].says
    with pytest.raises(ValueError, match="a is F8"):
        golden.unpacked(b"\x31" + b"\0" * 7 + b'{"a":{"dtype":"F8","shape":[],"data_offsets":[]}}')
