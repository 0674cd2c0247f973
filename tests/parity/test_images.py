"""Positions of two axes: Swin's bias, and sinusoids and rotations with channels for each axis."""

import functools

import pytest
import rotary_embedding_torch
import torch
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen
from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3
from transformers.models.swin import modeling_swin as swin
from transformers.models.vit_mae import modeling_vit_mae as vit_mae

from tutorial_lib.attention import attention
from tutorial_lib.encodings import AxialRotary, Frequencies, MRoPE, Rotary, Sinusoidal2D, SwinBias, grid
from tutorial_lib.encodings.offsets import offsets
from tutorial_lib.encodings.rotary import rotate
from tutorial_lib.encodings.swin import window_index

from .layers import close, heads, merged

F64 = torch.float64


# ---- Swin ----


@pytest.mark.parametrize("window", [(1, 1), (2, 2), (2, 3), (5, 1), (4, 7), (7, 7)])
def test_the_bias_of_a_window(window):
    """Theirs counts query − key: its map is our transpose, its table ours turned by half a turn."""
    theirs, p = swin.SwinRelativePositionBias(3, window), grid(*window)
    index = window_index(offsets(p, p, axes=2), window)
    assert theirs.relative_position_index.view(len(p), len(p)).equal(index.T)
    table = torch.nn.init.normal_(theirs.relative_position_bias_table.data)
    close(SwinBias.from_released(table, window).bias(p, p), theirs()[0], 0)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-6), (F64, 1e-6)], ids=str)
@pytest.mark.parametrize(
    "height, width, window, shift",
    [
        (6, 6, 3, 1),
        (4, 8, 4, 2),
        (6, 9, 3, 0),
        (14, 7, 7, 3),
        (4, 10, 2, 1),
    ],
)
def test_a_layer_of_shifted_windows(height, width, window, shift, dtype, tolerance):
    """Its mask is −100 between tokens that are no neighbours: in the image, a window apart or more."""
    config = swin.SwinConfig(window_size=window, attn_implementation="eager")
    layer = swin.SwinLayer(config, 24, (height, width), 3, shift_size=shift).to(dtype).eval()
    table = torch.nn.init.normal_(layer.attention.relative_position_bias.relative_position_bias_table.data)
    seen = []
    layer.attention.register_forward_hook(lambda module, given, out: seen.append((given[0], out[0])))
    with torch.no_grad():
        layer(torch.randn(2, height * width, 24, dtype=dtype), (height, width))
        (x, theirs), a = seen[0], layer.attention
        q, k, v = (heads(f(x), 3) for f in (a.q_proj, a.k_proj, a.v_proj))
        place = grid(height, width).view(1, height, width, 2).roll((-layer.shift_size,) * 2, (1, 2))
        place = swin.window_partition(place, window).flatten(1, 2)
        mask = (offsets(place, place, axes=2).abs() < window).all(-1).repeat(2, 1, 1)[:, None]
        assert mask.all() == (layer.shift_size == 0)
        bias, p = SwinBias.from_released(table, (window, window)), grid(window, window)
        for backend in ("eager", "sdpa"):
            ours = attention(q, k, v, bias, p, p, mask=mask, backend=backend)
            close(a.o_proj(merged(ours)), theirs, tolerance)


# ---- sinusoids ----


@pytest.mark.parametrize("height, width, d", [(2, 3, 8), (14, 14, 64), (5, 1, 12)])
def test_the_sinusoid_of_vit_mae(height, width, d):
    """Theirs: all sines of an axis before all its cosines. The row is first; in MAE's own code the column."""
    ours = Sinusoidal2D(d).vectors(grid(height, width).double()).unflatten(-1, (2, -1, 2)).mT.flatten(-3)
    close(ours, vit_mae.build_2d_sinusoidal_position_embedding(height, width, d, dtype=F64), 1e-12)


# ---- rotations ----


@pytest.mark.parametrize("base", [10_000.0, 100.0])
@pytest.mark.parametrize("head_dim", [8, 16, 80])
def test_the_image_encoder_of_qwen2_vl(head_dim, base):
    """A layer over two images of different sizes; each image attends to itself."""
    config = qwen.Qwen2VLVisionConfig(
        embed_dim=3 * head_dim, num_heads=3, rope_parameters={"rope_type": "axial", "rope_theta": base}
    )
    config._attn_implementation = "eager"
    layer = qwen.VisionAttention(config).double().eval()
    images = grid(4, 6), grid(3, 5) * 7
    p, ends = torch.cat(images), torch.tensor([0, 24, 39])
    x = torch.randn(len(p), 3 * head_dim, dtype=F64)
    encoding = AxialRotary(head_dim, base=base, layout="half")
    with torch.no_grad():
        theirs = layer(x, ends, position_embeddings=qwen.Qwen2VLVisionRotaryEmbedding(config)(x, p))
        for which, part in zip(images, (slice(0, 24), slice(24, 39)), strict=True):
            q, k, v = (heads(y, 3) for y in layer.qkv(x[None, part]).chunk(3, -1))
            ours = merged(attention(q, k, v, encoding, which, which))
            close(layer.proj(ours)[0], theirs[part], 1e-5)  # they turn in float32


@pytest.mark.parametrize("base", [10_000.0, 50.0])
@pytest.mark.parametrize("sizes", [(3, 5), (2, 3, 4)])
def test_axial_frequencies_of_rotary_embedding_torch(sizes, base):
    """No conversion: neighbouring channels are pairs there too, and the first axis has the first ones."""
    d, axes = 12, len(sizes)
    theirs = rotary_embedding_torch.RotaryEmbedding(d, theta=base)
    angles = theirs.get_axial_freqs(*sizes).flatten(0, axes - 1)
    p = torch.cartesian_prod(*(torch.arange(n) for n in sizes))
    q = torch.randn(2, 3, len(p), axes * d + 4, dtype=F64)  # four channels stay
    ours = AxialRotary(q.shape[-1], frequencies=[Frequencies(d, base)] * axes).rotate(q, q, p, p)[0]
    close(ours, rotary_embedding_torch.apply_rotary_emb(angles, q), 3e-6)
    one = rotary_embedding_torch.apply_rotary_emb(theirs(p[:, 0]), q[..., :d])
    close(ours[..., :d], one, 3e-6)
    close(ours[..., :d], rotate(q[..., :d], p[:, 0], base=base, layout="interleaved"), 1e-12)


# ---- time, row, column ----


@functools.cache
def of_qwen2(base, sections):
    config = qwen.Qwen2VLTextConfig(
        hidden_size=4 * sum(sections),
        num_attention_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": base, "mrope_section": list(sections)},
    )
    return qwen.Qwen2VLRotaryEmbedding(config), qwen.apply_rotary_pos_emb


@functools.cache
def of_qwen3(base, sections):
    config = qwen3.Qwen3VLTextConfig(
        head_dim=2 * sum(sections),
        rope_parameters={"rope_type": "default", "rope_theta": base, "mrope_section": list(sections)},
    )
    return qwen3.Qwen3VLTextRotaryEmbedding(config), qwen3.apply_rotary_pos_emb


def a_text_with_an_image(length, shift=0):
    """Words before and behind an image of 3 × 4 at one time; words have their number three times."""
    before, after = (torch.arange(*ends)[:, None].expand(-1, 3) for ends in ((0, 5), (9, length - 8)))
    image = torch.cat([torch.zeros(12, 1, dtype=torch.long), grid(3, 4)], -1) + 5
    return torch.cat([before, image, after]) + shift


@pytest.mark.parametrize("base", [1e6, 10_000.0])
@pytest.mark.parametrize(
    "theirs, order, sections",
    [
        (of_qwen2, "chunked", (16, 24, 24)),
        (of_qwen2, "chunked", (2, 1, 1)),
        (of_qwen2, "chunked", (1, 5, 10)),
        (of_qwen3, "interleaved", (24, 20, 20)),
        (of_qwen3, "interleaved", (2, 1, 1)),
        (of_qwen3, "interleaved", (6, 5, 5)),
        (of_qwen3, "interleaved", (3, 3, 2)),
    ],
)
def test_m_rope_of_the_language_models_of_qwen(theirs, order, sections, base):
    """Their axes stand first, [3, B, L]; ours last, [B, L, 3]."""
    d, p = 2 * sum(sections), torch.stack([a_text_with_an_image(30), a_text_with_an_image(30, 7)])
    q, k = torch.randn(2, 4, 30, d, dtype=F64), torch.randn(2, 2, 30, d, dtype=F64)
    module, turn = theirs(base, sections)
    expected = turn(q, k, *module(q, p.movedim(-1, 0)))
    ours = Rotary(d, layout="half", frequencies=MRoPE(d, base, sections=sections, order=order))
    for one, other in zip(ours.rotate(q, k, p, p), expected, strict=True):
        close(one, other, 1e-5)
