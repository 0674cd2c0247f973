"""The small Transformer, with every encoding: the same answer by every way of asking."""

import copy
import itertools
import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tutorial_lib.encodings import (
    KERPLE,
    AxialRotary,
    Compose,
    Concatenate,
    DynamicNTK,
    Frequencies,
    HybridSum,
    Learned,
    LongRoPE,
    MRoPE,
    NoPosition,
    Raster,
    Rotary,
    Sinusoidal,
    T5Bias,
    TableBias,
    XPos,
    grid,
)
from tutorial_lib.model import AttentionInputs, Cache, Config, Memory, Transformer, attention_weights

VOCAB, LENGTH = 11, 9
LLAMA = {"norm": "rms", "mlp": "swiglu", "n_kv_heads": 1}


class OnAGrid(Transformer):
    """Gives several axes what they have no default for: token n stands at place n of a grid of 3 columns, and
    of three axes at time n."""

    def forward(self, tokens, positions=None, *, keep=None, cache=None, **kwargs):
        if positions is None and self.encodings[0].axes > 1:
            known = None if cache is None else cache.keep
            past = torch.ones(len(tokens), 0 if cache is None else len(cache)) if known is None else known
            n = torch.cat([past, torch.ones_like(tokens) if keep is None else keep], 1).long().cumsum(1) - 1
            n = n[:, past.shape[1] :].clamp(min=0)
            n = n[0] if keep is None and known is None else n
            positions = torch.cat([n[..., None], grid(60, 3)[n]], -1)[..., -self.encodings[0].axes :]
        return super().forward(tokens, positions, keep=keep, cache=cache, **kwargs)


def build(encoding, **options):
    """A model in float64, so that a difference is a mistake and not a rounding."""
    torch.manual_seed(0)
    config = Config(VOCAB, d_model=16, n_heads=2, **options)
    return OnAGrid(config, encoding).double().eval()


def draw(rows=2, length=LENGTH):
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(1))


def close(actual, expected, tolerance=1e-9, of=""):
    torch.testing.assert_close(
        actual, expected, atol=tolerance, rtol=tolerance, msg=lambda said: f"{of} {said}"
    )


def cut(positions, part, axes):
    return positions[..., part] if axes == 1 else positions[..., part, :]


def decode(model, tokens, chunks, positions=None, keep=None, **kwargs):
    """The logits of all tokens, read chunk by chunk through a cache."""
    cache, out, start = Cache(), [], 0
    for size in chunks:
        part = slice(start, start + size)
        out.append(
            model(
                tokens[:, part],
                None if positions is None else cut(positions, part, model.encoding.axes),
                keep=None if keep is None else keep[:, part],
                cache=cache,
                **kwargs,
            )
        )
        start += size
        assert len(cache) == start
    return torch.cat(out, 1)


@pytest.mark.parametrize("options", [{}, LLAMA], ids=["gpt", "llama"])
def test_decoding_equals_the_full_pass(encoding, options):
    model, tokens = build(encoding, **options), draw()
    full = model(tokens)
    for backend, chunks in itertools.product(("sdpa", "eager"), ([1] * LENGTH, [4, 1, 3, 1])):
        close(decode(model, tokens, chunks, backend=backend), full, of=(backend, chunks))


@pytest.mark.parametrize("per_row", [False, True])
def test_decoding_with_positions_of_ones_own(encoding, positions_for, per_row):
    model, tokens = build(encoding), draw()
    p = positions_for(encoding, LENGTH) * 2 + 5
    p = torch.stack([p, p + 20]) if per_row else p
    full = model(tokens, p)
    close(decode(model, tokens, [3, 1, 5], p), full)
    if encoding.axes > 1:
        return
    cache = Cache()
    model(tokens[:, :4], p[..., :4], cache=cache)  # the next one counts on from the last
    close(
        model(tokens[:, 4:5], cache=cache),
        model(tokens[:, :5], torch.cat([p[..., :4], p[..., 3:4] + 1], -1))[:, 4:],
    )


def test_left_padding_changes_nothing(encoding):
    model, tokens, pad = build(encoding), draw(), 4
    keep = torch.ones(2, LENGTH, dtype=torch.bool)
    keep[1, :pad] = False
    padded, alone = model(tokens, keep=keep), model(tokens[1:, pad:])
    close(padded[1:, pad:], alone)
    close(padded[:1], model(tokens[:1]))
    for chunks in ([5, 1, 3], [2, 1, 6], [1] * LENGTH):  # also: the first chunk is all padding
        close(decode(model, tokens, chunks, keep=keep)[keep], padded[keep])


def test_padding_at_first_and_none_later(encoding):
    """And the other way round: the cache remembers who was padding."""
    model, tokens = build(encoding), draw()
    keep = torch.ones(2, LENGTH, dtype=torch.bool)
    keep[1, :2] = False
    full = model(tokens, keep=keep)
    cache = Cache()
    model(tokens[:, :4], keep=keep[:, :4], cache=cache)
    close(model(tokens[:, 4:], cache=cache), full[:, 4:])
    keep[:] = True
    keep[1, 4:6] = False
    full, cache = model(tokens, keep=keep), Cache()
    model(tokens[:, :4], cache=cache)
    close(model(tokens[:, 4:], keep=keep[:, 4:], cache=cache)[keep[:, 4:]], full[:, 4:][keep[:, 4:]])


def test_rows_are_independent(encoding):
    model, tokens = build(encoding), draw()
    other = tokens.clone()
    other[1] = (other[1] + 1) % VOCAB
    close(model(other)[0], model(tokens)[0], 0)
    close(model(tokens[1:]), model(tokens)[1:])


@pytest.mark.parametrize("causal", [True, False])
def test_who_sees_whom(encoding, causal):
    model, tokens = build(encoding, causal=causal), draw()
    other = tokens.clone()
    other[:, 5] = (other[:, 5] + 1) % VOCAB
    changed = (model(other) - model(tokens)).abs().amax((0, 2)) > 1e-9
    assert changed.tolist() == [not causal or n >= 5 for n in range(LENGTH)]


def test_order_matters_with_an_encoding_and_only_then(encoding):
    model, tokens = build(encoding, causal=False), draw(1)
    order = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(2))
    same = torch.allclose(model(tokens)[:, order], model(tokens[:, order]), atol=1e-9)
    assert same == (not encoding.doors)


def test_back_ends_agree(encoding):
    tokens, keep = draw(), torch.ones(2, LENGTH, dtype=torch.bool)
    keep[0, :3] = False
    for causal in (True, False):
        model = build(encoding, causal=causal)
        close(model(tokens, keep=keep, backend="eager"), model(tokens, keep=keep, backend="sdpa"))


def test_relative_methods_do_not_shift(relative, positions_for):
    model, tokens = build(relative), draw()
    p = positions_for(relative, LENGTH)
    close(model(tokens, p + 10_000), model(tokens))


@pytest.mark.parametrize("encoding", [Rotary(8), [Rotary(8)]], ids=["one", "per layer"])
def test_a_compiled_model(encoding):
    """In one graph, with gradients; each encoding by itself is compiled in test_compiled.py."""
    model, tokens = build(encoding, n_layers=1), draw()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=False)
    close(compiled(tokens), model(tokens))
    p = torch.arange(LENGTH) + 3
    one, other = (
        torch.autograd.grad(m(tokens, p).square().sum(), list(model.parameters())) for m in (model, compiled)
    )
    close(one, other)


def test_every_parameter_learns(encoding):
    """But for one, which a softmax does not see: the popular sum of absolute and relative."""
    model, tokens = build(encoding), draw()
    model(tokens).square().sum().backward()
    blind = {"encoding.w.weight"} if type(encoding) is HybridSum else set()
    for name, parameter in model.named_parameters():
        learns = parameter.grad is not None and parameter.grad.abs().max() > 1e-9
        assert learns == (name not in blind), name


def test_half_precision_stays_near(encoding):
    model, tokens = build(encoding), draw()
    exact = model(tokens)
    out = model.to(torch.bfloat16)(tokens)
    assert out.dtype == torch.bfloat16
    assert (out - exact).abs().max() < 0.15 * exact.abs().max()


def test_saved_at_one_length_and_loaded_at_another(request, encoding, all_encodings, tmp_path):
    """Nothing that is stored knows a length, but for what a table has rows for."""
    name = request.node.callspec.params["encoding"]
    model, long = build(encoding), draw(length=18 if encoding.axes > 1 else 40)
    model(draw())
    torch.save(model.state_dict(), tmp_path / "model.pt")
    other = OnAGrid(model.config, all_encodings[name]()).double()
    other.load_state_dict(torch.load(tmp_path / "model.pt"))
    close(other(long), model(long), 0)


def test_a_learned_table_is_stretched_to_a_new_length():
    model = build(Learned(LENGTH, 16))
    with pytest.raises(ValueError, match="rows 0 to 8.*resized"):
        model(draw(length=LENGTH + 1))
    with pytest.raises(RuntimeError, match="size mismatch"):
        build(Learned(40, 16)).load_state_dict(model.state_dict())
    model.encoding = model.encoding.resized(40)
    assert model(draw(length=40)).isfinite().all()
    assert model.state_dict()["encoding.table"].shape == (40, 16)


def test_encodings_can_be_exchanged():
    model, tokens = build(Sinusoidal(16)), draw()
    before = model(tokens)
    model.encoding = Rotary(8)
    rotary = model(tokens)
    close(rotary, build(Rotary(8))(tokens), 0)
    assert not torch.allclose(rotary, before)
    model.encoding = Sinusoidal(16)
    close(model(tokens), before, 0)


def test_every_layer_may_have_its_own_encoding():
    encodings, tokens, p = (Concatenate(Sinusoidal(6)), Rotary(8), T5Bias(2)), draw(), torch.arange(LENGTH)
    model = build(encodings, n_layers=3)
    assert isinstance(model.encoding, torch.nn.ModuleList) and model.encodings == list(encodings)
    x = encodings[0].embed(model.tokens(tokens), p)
    for block, encoding in zip(model.blocks, encodings, strict=True):
        x = block(x, AttentionInputs(encoding, p, p))
    close(model(tokens), model.head(model.norm(x)))
    close(decode(model, tokens, [4, 1, 3, 1]), model(tokens))
    assert "encoding.2.b" in model.state_dict()
    model(tokens).square().sum().backward()
    assert encodings[2].b.grad.abs().max() > 0


def test_one_encoding_and_one_per_layer_can_be_exchanged():
    model, tokens = build(Rotary(8)), draw()
    before = model(tokens)
    model.encoding = [Rotary(8), NoPosition()]
    mixed = model(tokens)
    close(mixed, build([Rotary(8), NoPosition()])(tokens), 0)
    model.encoding = torch.nn.ModuleList([NoPosition(), Rotary(8)])
    assert not any(torch.allclose(x, y) for x, y in ((before, mixed), (mixed, model(tokens))))
    model.encoding = [Rotary(8)] * 2
    close(model(tokens), before, 0)
    model.encoding = None
    assert isinstance(model.encoding, NoPosition)
    with pytest.raises(ValueError, match="n_layers=2"):
        model.encoding = [Rotary(8)]
    assert isinstance(model.encoding, NoPosition)


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_a_mask_says_who_may_look(encoding, backend):
    """Beside the causal mask and padding, in each of their forms; and with a cache."""
    past = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    near, tokens, model = past.triu(-3), draw(), build(encoding)
    other, keep = build(encoding, causal=False), torch.ones(2, LENGTH, dtype=torch.bool)
    keep[1, :2] = False
    full = model(tokens, mask=near, backend=backend)
    close(other(tokens, mask=near, backend=backend), full)
    close(model(tokens, mask=near.triu(-3) | ~past, backend=backend), full)
    close(model(tokens, mask=near.expand(2, 1, -1, -1), backend=backend), full)
    assert encoding.doors == () or not torch.allclose(full, model(tokens, backend=backend))
    both = keep[:, None, None] & near
    close(
        model(tokens, keep=keep, mask=near, backend=backend)[keep],
        other(tokens, keep=keep, mask=both, backend=backend)[keep],
    )
    close(
        model(tokens, keep=keep, mask=near, backend=backend)[1:, 2:],
        model(tokens[1:, 2:], mask=near[2:, 2:], backend=backend),
    )
    cache = Cache()
    parts = [
        model(tokens[:, a:b], mask=near[a:b, :b], cache=cache, backend=backend)
        for a, b in ((0, 4), (4, 5), (5, LENGTH))
    ]
    close(torch.cat(parts, 1), full)


def rotary(**which):
    return Rotary(8, frequencies=Frequencies(8, **which))


DYNAMIC = {  # angles that change when the text grows past 5 tokens
    "ntk": lambda: rotary(scaling=DynamicNTK(5)),
    "longrope": lambda: rotary(scaling=LongRoPE([1.0] * 4, [2.0] * 4, L=5)),
    "xpos": lambda: XPos(8, frequencies=Frequencies(8, scaling=DynamicNTK(5, 2.0))),
    "compose": lambda: Compose(Learned(20, 16), rotary(scaling=DynamicNTK(5)), T5Bias(2)),
    "axial": lambda: AxialRotary(8, frequencies=(Frequencies(4), Frequencies(4, scaling=DynamicNTK(5)))),
    "m": lambda: Rotary(8, frequencies=MRoPE(8, sections=(2, 1, 1), scaling=DynamicNTK(5))),
    "raster": lambda: Raster(rotary(scaling=DynamicNTK(5)), 3),
}


def places(encoding, n):
    """Positions of which the sixth is the first beyond 4, in each of its numbers, or as a raster counts."""
    p = torch.arange(n)
    if isinstance(encoding, Raster):
        return torch.stack([p // 3, p % 3], -1)
    return p if encoding.axes == 1 else p[:, None].expand(-1, encoding.axes)


def in_parts(model, tokens, *ends, **past):
    """Logits of a text that is read up to each of the ends."""
    p = places(model.encodings[0], LENGTH)
    return torch.cat([model(tokens[:, a:b], p[a:b], **past) for a, b in itertools.pairwise((0, *ends))], 1)


@pytest.mark.parametrize("make", DYNAMIC.values(), ids=DYNAMIC)
@pytest.mark.parametrize("readable", [True, False])
def test_a_past_is_refused_when_its_angles_change(make, readable, monkeypatch):
    """What the layers above the first keep was made with angles that the whole text does not have."""
    if not readable:
        # a CPU that is treated as a GPU
        monkeypatch.setattr("tutorial_lib.encodings.positions.WITHOUT_WAITING", ())
    model, tokens = build(make()), draw()
    p = places(model.encoding, LENGTH)
    for past in (Cache(), Memory(LENGTH)):
        give = {type(past).__name__.lower(): past}
        close(in_parts(model, tokens, 3, 5, **give), model(tokens[:, :5], p[:5]))
        before = held(past)
        with pytest.raises(ValueError, match=f"the {[*give][0]} holds 5 tokens.*in one call"):
            model(tokens[:, 5:], p[5:], **give)
        assert held(past) == before
    if model.encoding.axes == 1:
        keep = torch.tensor([[True] * 5, [False] * 2 + [True] * 3])
        for padded in (None, keep, keep[1:].expand(2, 5)):
            with pytest.raises(ValueError, match="the cache holds . tokens.*in one call"):
                model.generate(tokens[:, :5], 5, keep=padded)
        assert model.generate(tokens[:, :5], 1).shape == (2, 6)


@pytest.mark.parametrize("make", DYNAMIC.values(), ids=DYNAMIC)
def test_a_past_is_right_where_no_layer_was_made_with_other_angles(make):
    """One layer, or the last one alone; and LongRoPE changes but once. The last part is that of one pass."""
    tokens, encoding = draw(), make()
    models = [build(encoding, n_layers=1)]
    if encoding.axes == 1 and "embed" not in encoding.doors:
        models.append(build([NoPosition(), encoding]))
    for model in models:
        parts = in_parts(model, tokens, 3, 6, 7, 9, cache=Cache())
        close(parts[:, 7:], model(tokens, places(encoding, LENGTH))[:, 7:])
    if make is DYNAMIC["longrope"]:
        model = build(encoding)
        close(in_parts(model, tokens, 6, 7, 9, cache=Cache()), model(tokens))


def test_a_past_whose_angles_change_gives_nan_where_nobody_can_ask():
    model, tokens, cache = build(DYNAMIC["ntk"]()), draw(), Cache()
    model(tokens[:, :3], cache=cache)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    close(compiled(tokens[:, 3:5], torch.arange(3, 5), cache=cache.copy()), model(tokens[:, :5])[:, 3:])
    assert compiled(tokens[:, 3:6], torch.arange(3, 6), cache=cache).isnan().all()


def held(past):
    """What a cache or a memory holds, as plain numbers."""
    return {
        name: [x.tolist() for x in value]
        if isinstance(value, list)
        else value.tolist()
        if isinstance(value, torch.Tensor)
        else value
        for name, value in vars(past).items()
    }


@pytest.mark.parametrize(
    "encoding, size",
    [
        (Learned(8, 16), 1),
        (TableBias(2, 8), 1),
        (TableBias(2, 8), 3),
        ([Rotary(8), TableBias(2, 8)], 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("padded", [False, True])
def test_an_error_leaves_the_cache_as_it_was(encoding, size, padded):
    """Tables of 8 positions, and a text of 9: the error comes before a layer, in the first, in the last."""
    model, tokens, cache = build(encoding), draw(), Cache()
    keep = torch.tensor([[True] * 6, [False] + [True] * 5]) if padded else None
    model(tokens[:, :6], torch.arange(6), keep=keep, cache=cache)
    before, kept = held(cache), None if keep is None else torch.ones(2, 3, dtype=torch.bool)
    for _ in range(2):
        with pytest.raises(ValueError, match="build it with a larger"):
            model(
                tokens[:, 6 : 6 + size],
                torch.arange(6, 6 + size) + 3 - size,
                cache=cache,
                keep=None if kept is None else kept[:, :size],
            )
        assert held(cache) == before and len(cache) == 6
    whole = None if keep is None else torch.cat([keep, kept[:, :2]], 1)
    close(
        model(tokens[:, 6:8], torch.arange(6, 8), cache=cache),
        model(tokens[:, :8], torch.arange(8), keep=whole)[:, 6:],
    )


@pytest.mark.parametrize("place", ["blocks.0.attention", "blocks.1.attention", "blocks.1", "norm", "head"])
@pytest.mark.parametrize("past", [Cache(), Memory(4)], ids=lambda past: type(past).__name__)
def test_an_interruption_leaves_the_past_as_it_was(past, place):
    """Ctrl-C comes anywhere: in a first call, and in a later one."""
    model, tokens, past = build(T5Bias(2)), draw(), copy.deepcopy(past)
    which = {"cache" if isinstance(past, Cache) else "memory": past}

    def stop(*_):
        raise KeyboardInterrupt

    for part in (tokens[:, :4], tokens[:, 4:]):
        before = held(past)
        hook = model.get_submodule(place).register_forward_hook(stop)
        with pytest.raises(KeyboardInterrupt):
            model(part, **which)
        hook.remove()
        assert held(past) == before
        out = model(part, **which)
        assert len(past) == len(held(past)["positions"]) > 0
    if "cache" in which:
        close(out, model(tokens)[:, 4:])


def test_decoding_copies_the_past_once():
    """An exact account: one new token, and each layer's keys and values are written one time."""
    model, tokens, cache, made = build(Rotary(8)), draw(length=200), Cache(), []

    class Written(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if func.overloadpacket in (torch.ops.aten.cat, torch.ops.aten.clone, torch.ops.aten.copy_):
                made.append(out.shape)
            return out

    model(tokens[:, :199], cache=cache)
    with Written():
        model(tokens[:, 199:], cache=cache)
    assert sum(shape[-2:] == (200, 8) for shape in made) == 4


def test_generation_is_repeated_argmax(encoding):
    model, tokens = build(encoding), draw(length=4)
    expected = tokens
    for _ in range(5):
        expected = torch.cat([expected, model(expected)[:, -1].argmax(-1, keepdim=True)], 1)
    assert torch.equal(model.generate(tokens, 5), expected)
    assert torch.equal(model.generate(tokens, 0), tokens)


def by_numpy(positions, times):
    positions.numpy()[:] *= times


def by_data(positions, times):
    positions.data *= times


@pytest.mark.parametrize("change", [by_numpy, by_data, torch.Tensor.mul_])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_past_whose_positions_were_changed_is_read_as_it_is(change, mode):
    model, tokens = build(KERPLE(2), n_layers=2).eval(), draw(1)
    with mode():
        one, other = Cache(), Cache()
        for cache in (one, other):
            model(tokens[:, :6], cache=cache)
        change(one.positions, 3)
        other.positions = torch.arange(6) * 3
        close(model(tokens[:, 6:], cache=one), model(tokens[:, 6:], cache=other))
        assert one.positions.tolist() == [0, 3, 6, 9, 12, 15, 16, 17, 18]


def test_a_past_of_other_axes_is_refused():
    model, cache = build(Rotary(8)), Cache()
    model(draw(), cache=cache)
    model.encoding = AxialRotary(8)
    with pytest.raises(ValueError, match="cache has positions of 1 axes on cpu, but the encoding reads 2"):
        model(draw(), grid(3, 3), cache=cache)
    with pytest.raises(ValueError, match="tokens are on meta: begin a new text"):
        build(Rotary(8)).to("meta")(draw().to("meta"), cache=cache)


def test_generation_with_one_mask_for_all_and_at_nearly_no_temperature():
    model, tokens = build(Rotary(8)).eval(), draw()
    greedy = model.generate(tokens, 3)
    assert torch.equal(model.generate(tokens, 3, keep=torch.tensor(True)), greedy)
    assert torch.equal(model.generate(tokens, 3, temperature=1e-40), greedy)


def test_generation_from_other_positions():
    model, tokens = build(Sinusoidal(16)), draw(length=4)
    p, expected = torch.arange(4) + 100, tokens
    for n in range(5):
        logits = model(expected, torch.arange(4 + n) + 100)
        expected = torch.cat([expected, logits[:, -1].argmax(-1, keepdim=True)], 1)
    assert torch.equal(model.generate(tokens, 5, positions=p), expected)
    assert not torch.equal(model.generate(tokens, 5), expected)


def test_a_padded_batch_continues_as_each_prompt_alone(encoding):
    """Prompts of 5, 2 and 4 tokens, with padding on the left."""
    model, tokens = build(encoding), draw(3, 5)
    keep = torch.tensor([[True] * 5, [False] * 3 + [True] * 2, [False] + [True] * 4])
    together = model.generate(tokens, 4, keep=keep)
    assert torch.equal(together[:, :5], tokens)
    for row, kept in enumerate(keep):
        alone = model.generate(tokens[row : row + 1, kept], 4)
        assert torch.equal(together[row : row + 1, 5:], alone[:, int(kept.sum()) :])


@pytest.mark.parametrize("shape", [(5,), (1, 5)])
def test_padding_may_be_told_once_for_all_rows(shape):
    model, tokens, keep = build(Learned(20, 16)), draw(2, 5), torch.tensor([False, False, True, True, True])
    close(model(tokens, keep=keep.view(shape)), model(tokens, keep=keep.expand(2, 5)))
    assert torch.equal(
        model.generate(tokens, 3, keep=keep.view(shape)), model.generate(tokens, 3, keep=keep.expand(2, 5))
    )


def test_sampling_follows_the_generator_and_the_temperature():
    model, tokens = build(NoPosition()), draw(200, 2)

    def sample(seed, temperature):
        return model.generate(
            tokens, 1, temperature=temperature, generator=torch.Generator().manual_seed(seed)
        )

    assert torch.equal(sample(0, 1.0), sample(0, 1.0))
    assert not torch.equal(sample(0, 1.0), sample(1, 1.0))
    assert torch.equal(sample(0, 1e-4), model.generate(tokens, 1))
    likely = model(tokens)[:, -1].softmax(-1).gather(1, sample(0, 1.0)[:, -1:]).mean()
    anything = model(tokens)[:, -1].softmax(-1).gather(1, sample(0, 1e4)[:, -1:]).mean()
    assert likely > 1.2 * anything


def test_pooling_averages_what_is_kept(encoding):
    model, tokens = build(encoding, causal=False, pool="mean", n_out=3), draw()
    assert model(tokens).shape == (2, 3)
    keep = torch.ones(2, LENGTH, dtype=torch.bool)
    keep[1, :4] = False
    close(model(tokens, keep=keep)[1:], model(tokens[1:, 4:]))
    keep[1] = False
    assert model(tokens, keep=keep).isfinite().all()


def test_pooling_is_the_mean_of_the_tokens():
    pooled = build(Sinusoidal(16), causal=False, pool="mean")
    plain = build(Sinusoidal(16), causal=False)
    close(pooled(draw()), plain(draw()).mean(1))


def test_token_vectors_leave_room_for_concatenated_positions():
    model = build(Concatenate(Sinusoidal(6)))
    assert model.tokens.weight.shape == (VOCAB, 10)


def test_the_block_is_what_its_options_say():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 16, dtype=torch.float64)
    gpt = build(None).blocks[0]
    close(gpt.feed_forward(x), gpt.feed_forward.down(torch.nn.functional.gelu(gpt.feed_forward.up(x))), 0)
    assert gpt.feed_forward.up.weight.shape == (64, 16) and isinstance(gpt.norm1, torch.nn.LayerNorm)
    model = build(None, d_ff=40, norm_eps=0.5, **LLAMA)
    llama, f = model.blocks[0], model.blocks[0].feed_forward
    gate = f.gate(x)
    close(f(x), f.down(gate * gate.sigmoid() * f.up(x)))
    for norm in (llama.norm1, llama.norm2, model.norm):
        close(norm(x), x / (x.square().mean(-1, keepdim=True) + 0.5).sqrt())
    assert f.up.weight.shape == (40, 16) and llama.attention.k.weight.shape == (8, 16)
    inputs = AttentionInputs(NoPosition(), *[torch.arange(3)] * 2, backend="eager")
    y = x + llama.attention(llama.norm1(x), inputs)
    close(llama(x, inputs), y + f(llama.norm2(y)))


KEEP = torch.ones(2, LENGTH, dtype=torch.bool)


def filled(model):
    cache = Cache()
    model(draw(), cache=cache)
    return cache


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: build("rotary"), "encoding is a str.*PositionalEncoding"),
        (lambda: build(Rotary), r"encoding is the class Rotary.*Rotary\(\.\.\.\)"),
        (lambda: build([NoPosition(), None]), r"encoding\[1\] is a NoneType"),
        (lambda: build([Rotary(8), "rotary"]), r"encoding\[1\] is a str"),
        (lambda: build(torch.nn.Identity()), "encoding is a Identity"),
        (lambda: build(None)([[1, 2]]), "tokens are a list.*tensor of ids"),
        (lambda: build(None).generate([[1, 2]], 1), "tokens are a list.*tensor of ids"),
        (lambda: build(None)(draw(), keep=[[True] * LENGTH] * 2), "keep is a list.*tensor of booleans"),
        (lambda: build(None)(draw(), mask=[[True] * LENGTH] * LENGTH), "mask is a list.*tensor of booleans"),
    ],
)
def test_errors_name_what_is_of_another_type(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Config(11, d_model=10, n_heads=4), "d_model=10 is not a multiple of n_heads=4"),
        (lambda: Config(11, n_heads=0), "n_heads=0.*positive"),
        (lambda: Config(0), "vocab_size=0.*positive"),
        (lambda: Config(11, n_out=0), "n_out=0.*positive"),
        (lambda: Config(11, n_layers=-1), "n_layers=-1.*positive"),
        (lambda: Config(11, norm_eps=-1.0), "norm_eps=-1.0.*above 0"),
        (lambda: Config(11, n_kv_heads=0), "n_kv_heads=0.*positive"),
        (lambda: Config(11, n_heads=4, n_kv_heads=3), "n_heads=4 is not a multiple of n_kv_heads=3"),
        (lambda: Config(11, pool="max"), r"pool='max'.*\(None, 'mean'\)"),
        (lambda: Config(11, norm="batch"), "norm='batch'.*'layer', 'rms'"),
        (lambda: Config(11, mlp="relu"), "mlp='relu'.*'gelu', 'swiglu'"),
        (lambda: build(None)(torch.arange(3)), r"tokens have shape \(3,\).*\[batch, length\]"),
        (lambda: build(None)(draw().float()), "tokens have dtype torch.float32.*integers"),
        (lambda: build(None, causal=False)(draw(), cache=Cache()), "cache needs a causal model"),
        (lambda: build(None)(draw(), keep=torch.ones(2, LENGTH)), "booleans"),
        (lambda: build(Sinusoidal(8))(draw()), r"Sinusoidal.*width 8.*\(2, 9, 16\)"),
        (lambda: build(Rotary(16))(draw()), "head_dim=16"),
        (lambda: build(None)(draw(), torch.arange(4)), r"positions have shape \(4,\).*length 9"),
        (lambda: build(None)(draw(), backend="fast"), "backend='fast'"),
        (lambda: build(None)(draw(), mask=torch.ones(LENGTH, LENGTH)), "mask has dtype.*booleans"),
        (lambda: build(None)(draw(), keep=KEEP.float(), mask=KEEP[0]), "keep has dtype.*booleans"),
        (lambda: build(None)(draw(), keep=KEEP[:, 1:]), r"keep has shape \(2, 8\).*\(2, 9\)"),
        (lambda: build(None)(draw(), keep=KEEP[None]), r"keep has shape \(1, 2, 9\)"),
        (
            lambda: build(None)(draw(), keep=KEEP, mask=KEEP[:, 1:]),
            r"mask has shape \(2, 8\).*\(2, 2, 9, 9\)",
        ),
        (lambda: build(None).generate(draw(), -1), "steps=-1.*0 or more"),
        (lambda: build(None).generate(draw(), 1.5), "steps=1.5.*integer"),
        *(
            (
                lambda t=t: build(None).generate(draw(), 1, temperature=t),
                f"temperature={t}.*finite.*0 or more",
            )
            for t in (-1, math.nan, math.inf)
        ),
        (lambda: build(None).generate(draw(), 1, temperature="hot"), "temperature='hot'"),
        (lambda: build(None).generate(draw(length=0), 1), r"tokens have shape \(2, 0\).*at least one"),
        (lambda: build(None).generate(draw()[0], 1), r"tokens have shape \(9,\).*\[batch, length\]"),
        (
            lambda: build(None).generate(draw(), 1, keep=KEEP.flip(1) & (torch.arange(LENGTH) < 8)),
            "keep is False for the last token of rows \\[0, 1\\].*left",
        ),
        (lambda: build(None).generate(draw(), 1, keep=KEEP[:, 1:]), r"keep has shape \(2, 8\)"),
        (lambda: build(None, causal=False).generate(draw(), 1), "generate needs a causal model"),
        (lambda: build(None, pool="mean").generate(draw(), 1), "generate needs.*pool='mean'"),
        (
            lambda: build(None)(draw(1), cache=filled(build(None))),
            r"cache holds keys of \(2, 2, 9, 8\) for 2 layers.*1 rows.*new Cache",
        ),
        (
            lambda: build(None, n_layers=3)(draw(), cache=filled(build(None))),
            "for 2 layers.*3 layers.*new Cache",
        ),
        (lambda: build(None, n_kv_heads=1)(draw(), cache=filled(build(None))), "1 heads.*new Cache"),
        (lambda: build([Rotary(8)]), "encoding has 1 modules.*n_layers=2.*one per layer"),
        (lambda: build([]), "encoding has 0 modules.*n_layers=2"),
        (lambda: build([NoPosition(), Sinusoidal(16)]), r"encoding\[1\] is Sinusoidal\(16.*without.*'embed'"),
    ],
)
def test_errors_say_what_is_allowed(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("causal", [True, False])
def test_the_weights_of_a_layer_are_those_it_mixes_values_with(causal):
    model, tokens = (
        build([Learned(20, 16), T5Bias(2, n_buckets=4, max_distance=8)], causal=causal, n_layers=2),
        draw(),
    )
    where = torch.arange(LENGTH) + 7
    states = []
    hook = model.blocks[1].attention.register_forward_hook(
        lambda module, given, out: states.append((given[0], out))
    )
    model(tokens, where)
    hook.remove()
    [(x, out)] = states
    weights = attention_weights(model, tokens, where, layer=-1)
    attend = model.blocks[1].attention
    values = attend.v(x).unflatten(-1, attend.heads).transpose(1, 2)
    mixed = attend.out((weights @ values).transpose(1, 2).flatten(-2))
    torch.testing.assert_close(mixed, out)
    assert (weights.triu(1) == 0).all() == causal
    with pytest.raises(IndexError, match="layer is 2: the model has 2, counted from 0"):
        attention_weights(model, tokens, layer=2)
