"""The frequencies of RoPE and their scalings against Hugging Face's ``modeling_rope_utils``.

Its ``mscale`` and ``mscale_all_dim`` are one number in YaRN's
``attention``.
"""

import math
from dataclasses import dataclass

import pytest
import rotary_embedding_torch
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gpt_neox import modeling_gpt_neox as neox
from transformers.models.llama import modeling_llama as llama
from transformers.models.phi3 import modeling_phi3 as phi3

from tutorial_lib.encodings import (
    DynamicNTK,
    Frequencies,
    Llama3,
    LongRoPE,
    NTKAware,
    PositionInterpolation,
    Rotary,
    YaRN,
)
from tutorial_lib.encodings.scaling import Scaling

from .layers import close

F64 = torch.float64


def same_theta(actual, expected, tolerance=3e-6):
    """Relative, so that the small ones count, too; theirs are float32."""
    torch.testing.assert_close(actual, expected.double(), atol=0, rtol=tolerance)


def config(d, base=10_000.0, L=2048, **parameters):
    return llama.LlamaConfig(
        head_dim=d, max_position_embeddings=L, rope_parameters={"rope_theta": base, **parameters}
    )


def mscale(s, m):
    return 0.1 * m * math.log(s) + 1


def yarn(s, L, ramp="rounded index", alpha=1.0, beta=32.0, attention=None, **parameters):
    """What they call it, and ours."""
    theirs = {"rope_type": "yarn", "factor": s, "original_max_position_embeddings": L, **parameters}
    return theirs, YaRN(s, L=L, ramp=ramp, alpha=alpha, beta=beta, attention=attention)


def llama3(s, L, low, high, ours=None):
    theirs = {
        "rope_type": "llama3",
        "factor": s,
        "original_max_position_embeddings": L,
        "low_freq_factor": low,
        "high_freq_factor": high,
    }
    return theirs, ours or Llama3(s, L=L, low=low, high=high)


SCALINGS = {
    "linear": ({"rope_type": "linear", "factor": 4.0}, PositionInterpolation(4.0)),
    "linear 2.5": ({"rope_type": "linear", "factor": 2.5}, PositionInterpolation(2.5)),
    "yarn": yarn(16.0, 2048),
    "yarn, long": yarn(4.0, 32768),
    "yarn, short": yarn(8.0, 64),  # no pair turns 32 times
    "yarn, shorter": yarn(8.0, 5),  # no pair turns once
    "yarn, factor 1": yarn(1.0, 512),
    "yarn, other bounds": yarn(3.0, 600, beta_fast=20.0, beta_slow=2.0, alpha=2.0, beta=20.0),
    "yarn, truncate=False": yarn(32.0, 4096, "index", truncate=False),
    "yarn, truncate=False, short": yarn(32.0, 90, "index", truncate=False),
    "yarn, attention_factor": yarn(8.0, 1024, attention_factor=0.7, attention=0.7),
    "yarn, mscale": yarn(
        40.0, 4096, mscale=1.0, mscale_all_dim=0.707, attention=mscale(40.0, 1.0) / mscale(40.0, 0.707)
    ),
    "yarn, mscale alone is not read": yarn(40.0, 4096, mscale=0.5),
    "llama3": llama3(8.0, 8192, 1.0, 4.0),
    "llama3, other bounds": llama3(32.0, 1000, 2.0, 9.0),
    # YaRN as the paper has it, a ramp over the wavelength: the formula of Llama 3, and an attention factor.
    "yarn, the paper's": llama3(16.0, 2048, 1.0, 32.0, YaRN(16.0, L=2048, attention=1.0)),
}
SIZES = [(4, 4), (16, 16), (64, 64), (96, 24), (128, 128), (256, 64)]  # head_dim, channels that turn
BASES = [10_000.0, 500_000.0, 1e6, 50.0]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", SCALINGS)
def test_frequencies(name, base):
    parameters, scaling = SCALINGS[name]
    for head_dim, d in SIZES:
        cfg = config(head_dim, base, partial_rotary_factor=d / head_dim, **parameters)
        theta, factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](cfg, "cpu")
        ours = Frequencies(head_dim, base, rotary_dim=d, scaling=scaling)
        same_theta(ours.theta(), theta, 2e-5)  # at the lower end of a ramp float32 cancels
        assert ours.attention_factor == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("s", [1.0, 2.0, 8.0])
def test_frequencies_of_a_dynamic_length(s, base):
    """And NTK-aware: their formula at the length l = 2L − L/s, where the factor of the base is s."""
    for head_dim, d in SIZES:
        cfg = config(head_dim, base, 100, partial_rotary_factor=d / head_dim, rope_type="dynamic", factor=s)

        def theirs(length, cfg=cfg):
            return ROPE_INIT_FUNCTIONS["dynamic"](cfg, "cpu", length)[0]

        ours = Frequencies(head_dim, base, rotary_dim=d, scaling=DynamicNTK(100, s))
        same_theta(ours.theta(), theirs(None))
        for length in (1, 99, 100, 101, 250, 4000):
            same_theta(ours.theta(torch.tensor(length)), theirs(length))
        fixed = Frequencies(head_dim, base, rotary_dim=d, scaling=NTKAware(s))
        same_theta(fixed.theta(), theirs(200 - 100 / s))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("s", [1.0, 4.0])
def test_frequencies_of_a_share_of_the_pairs(s, base):
    """p-RoPE is their "proportional"; all its θ may be divided by a factor."""
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 1.0):
        for d in (4, 64, 128, 256):
            cfg = config(d, base, rope_type="proportional", partial_rotary_factor=share, factor=s)
            theta, _ = ROPE_INIT_FUNCTIONS["proportional"](cfg, "cpu")
            same_theta(Frequencies(d, base, p=share, scaling=PositionInterpolation(s)).theta(), theta)


@pytest.mark.parametrize("base", BASES)
def test_frequencies_without_scaling(base):
    for head_dim, d in SIZES:
        parameters = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": d / head_dim}
        cfg = neox.GPTNeoXConfig(hidden_size=head_dim, num_attention_heads=1, rope_parameters=parameters)
        theta, factor = neox.GPTNeoXRotaryEmbedding.compute_default_rope_parameters(cfg)
        ours = Frequencies(head_dim, base, rotary_dim=d)
        same_theta(ours.theta(), theta)
        assert ours.attention_factor == factor == 1


@dataclass(frozen=True)
class Listed(Scaling):
    """θ from a list: what somebody writes who needs a scaling that is not here."""

    values: torch.Tensor
    attention_factor: float = 1.0

    def theta(self, b, d, length=None, device=None):
        return self.values.to(device, F64)


def longrope(d, L=100, new=400, **parameters):
    """Theirs and ours, with two lists of factors that grow as in Phi-3."""
    short, long = ((torch.rand(d // 2) * high + 1).sort().values.tolist() for high in (0.5, 30))
    theirs = {
        "rope_type": "longrope",
        "original_max_position_embeddings": L,
        "short_factor": short,
        "long_factor": long,
        **parameters,
    }
    s, attention = parameters.get("factor", new / L), parameters.get("attention_factor")
    return theirs, LongRoPE(short, long, L, s, attention)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    "parameters", [{}, {"factor": 1.0}, {"factor": 32.0}, {"attention_factor": 1.19}], ids=str
)
def test_longrope(parameters, base):
    """Phi-3 gives the lengths, others the factor; the list for short texts serves up to L."""
    for head_dim, d in SIZES:
        theirs, scaling = longrope(d, **parameters)
        cfg = config(head_dim, base, 400, partial_rotary_factor=d / head_dim, **theirs)
        ours = Frequencies(head_dim, base, rotary_dim=d, scaling=scaling)
        for length in (None, 1, 99, 100, 101, 250, 4000):
            theta, factor = ROPE_INIT_FUNCTIONS["longrope"](cfg, "cpu", length)
            same_theta(ours.theta(None if length is None else torch.tensor(length)), theta)
            assert ours.attention_factor == pytest.approx(factor, rel=1e-12)


def test_longrope_in_phi3():
    """One module through texts that grow past L and shrink again; of a batch, it takes the longest row."""
    theirs, scaling = longrope(48)
    cfg = phi3.Phi3Config(
        hidden_size=2 * 64,
        num_attention_heads=2,
        max_position_embeddings=400,
        original_max_position_embeddings=100,
        pad_token_id=0,
        rope_parameters={"rope_theta": 1e4, "partial_rotary_factor": 0.75, **theirs},
    )
    module = phi3.Phi3RotaryEmbedding(cfg)
    ours = Rotary(64, layout="half", frequencies=Frequencies(64, rotary_dim=48, scaling=scaling))
    for length in (10, 100, 101, 250, 90, 400):
        q, k, p = *torch.randn(2, 2, 2, length, 64, dtype=F64), torch.arange(length)[None]
        expected = phi3.apply_rotary_pos_emb(q, k, *module(q, p))
        for one, other in zip(ours.rotate(q, k, p, p), expected, strict=True):
            close(one, other, 2e-4)
    q, p = torch.randn(2, 2, 60, 64, dtype=F64), torch.arange(60) * torch.tensor([[1], [5]])
    expected, _ = phi3.apply_rotary_pos_emb(q, q, *module(q, p))
    y, _ = ours.rotate(q, q, p, p)
    close(y[1], expected[1], 2e-4)
    assert (y[0] - expected[0]).abs().max() > 0.1  # ours is a short text, theirs beside a long one


@pytest.mark.parametrize("length", [100, 101])
def test_free_frequencies_as_a_scaling_of_ones_own(length):
    """Images are turned by multiples of π, at positions from −1 to 1."""
    theirs = rotary_embedding_torch.RotaryEmbedding(32, freqs_for="pixel", max_freq=length)
    q, p = torch.randn(1, 2, 20, 32, dtype=F64), torch.linspace(-1, 1, 20)
    f = Frequencies(32, scaling=Listed(torch.linspace(1, length / 2, 16) * math.pi))
    expected = rotary_embedding_torch.apply_rotary_emb(theirs(p), q)
    close(Rotary(32, frequencies=f).rotate(q, q, p, p)[0], expected, 1e-4)


# ---- scaled, and turned ----


@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=str)
@pytest.mark.parametrize("name", SCALINGS)
def test_the_scaled_rotation(name, dtype):
    """The attention factor is in their cosines and sines, too."""
    parameters, scaling = SCALINGS[name]
    q, k, p = *torch.randn(2, 2, 3, 40, 64, dtype=dtype), torch.arange(40).expand(2, -1) * 50
    theirs = llama.LlamaRotaryEmbedding(config(64, 1e4, **parameters))
    rotary = Rotary(64, layout="half", frequencies=Frequencies(64, 1e4, scaling=scaling))
    expected = llama.apply_rotary_pos_emb(q, k, *theirs(q, p))
    for ours, their in zip(rotary.rotate(q, k, p, p), expected, strict=True):
        close(ours, their, 3e-3)


def dynamic(s):
    return llama.LlamaRotaryEmbedding(config(64, 1e4, 100, rope_type="dynamic", factor=s))


@pytest.mark.parametrize("s", [1.0, 4.0])
def test_dynamic_ntk_at_several_lengths(s):
    """Each length by itself; and one module with its memory: it keeps the largest length so far, until
    a text shorter than L comes."""
    f, memory, longest = Frequencies(64, scaling=DynamicNTK(100, s)), dynamic(s), 0
    for length in (10, 100, 101, 250, 160, 1000, 100, 99, 120, 50):
        q, p = torch.randn(1, 2, length, 64, dtype=F64), torch.arange(length)[None]
        ours, _ = Rotary(64, layout="half", frequencies=f).rotate(q, q, p, p)
        close(ours, llama.apply_rotary_pos_emb(q, q, *dynamic(s)(q, p))[0], 2e-3)
        longest = length if length < 100 else max(longest, length)
        for ours, their in zip(f.cos_sin(p, torch.tensor(longest), F64), memory(q, p), strict=True):
            close(ours, their[..., :32], 5e-4)


def test_dynamic_ntk_with_rows_of_different_length():
    """They take the longest row for the whole batch, we take each row for itself."""
    f, p = Frequencies(64, scaling=DynamicNTK(100, 2.0)), torch.arange(60) * torch.tensor([[1], [5]])
    theirs = dynamic(2.0)(p.double(), p)[0][..., :32]
    ours, _ = f.cos_sin(p, f.length(p), F64)
    close(ours[1], theirs[1], 2e-4)
    assert (ours[0] - theirs[0]).abs().max() > 0.1
    close(f.cos_sin(p, f.length(p[1]), F64)[0], theirs, 2e-4)
