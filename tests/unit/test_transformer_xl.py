"""Transformer-XL: its four terms, written the slow way in float64, and segment recurrence."""

import math
from dataclasses import replace

import pytest
import torch

from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings import Learned, NoPosition, Rotary, Sinusoidal, TransformerXL, sinusoidal
from tutorial_lib.encodings.transformer_xl import relative_shift
from tutorial_lib.model import Cache, Config, Memory, Transformer, segment_mask

F64 = torch.float64


def close(actual, expected, tolerance=1e-10):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


# ---- the four terms ----

POSITIONS = {
    "square": (torch.arange(5), torch.arange(5)),
    "decode": (torch.arange(6, 7), torch.arange(7)),
    "one": (torch.arange(1), torch.arange(1)),
    "one key": (torch.arange(3), torch.arange(2, 3)),
    "segment": (torch.arange(4, 7), torch.arange(1, 7)),
    "more queries": (torch.arange(7), torch.arange(3)),
    "far": (torch.arange(3) + 10**6, torch.arange(4) + 10**6 + 3),
    "long": (torch.arange(3) + 10**6, torch.arange(4)),
    "long ahead": (torch.arange(3) - 10**6, torch.arange(4)),
    "gaps": (torch.tensor([3, 4, 9]), torch.tensor([0, 1, 2, 20])),
    "rows": (torch.tensor([[0, 1, 2], [0, 0, 1]]), torch.tensor([[0, 1, 2], [5, 7, 10**6]])),
    "rows of keys": (torch.arange(2), torch.tensor([[0, 1, 2], [5, 7, 9]])),
    "rows of queries": (torch.tensor([[0, 1], [5, 9]]), torch.arange(3)),
    "fractions": (torch.tensor([0.5, 2.25]), torch.tensor([-1.0, 0.0, 1000.1], dtype=F64)),
    "uint8": (torch.arange(2, dtype=torch.uint8), torch.arange(3, 6, dtype=torch.uint8)),
    "uint8 gaps": (torch.tensor([0, 2], dtype=torch.uint8), torch.tensor([1, 200], dtype=torch.uint8)),
}


def by_loop(e, q, k, q_positions, k_positions):
    """(a) and (b) + (c) + (d) of §3.3, one pair and one frequency at a time."""
    p_q, p_k = (p.expand(len(q), -1).tolist() for p in (q_positions, k_positions))
    a = torch.zeros(*q.shape[:3], k.shape[2], dtype=F64)
    bcd, group = a.clone(), q.shape[1] // k.shape[1]
    for b, h, i, j in (
        (b, h, i, j)
        for b in range(len(q))
        for h in range(q.shape[1])
        for i in range(q.shape[2])
        for j in range(k.shape[2])
    ):
        n, key = p_q[b][i] - p_k[b][j], k[b, h // group, j]
        angles = [n * 10_000 ** (-2 * t / e.dim) for t in range(e.dim // 2)]
        R = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=F64)
        a[b, h, i, j] = q[b, h, i] @ key
        bcd[b, h, i, j] = q[b, h, i] @ e.W_kR[h] @ R + e.u[h] @ key + e.v[h] @ e.W_kR[h] @ R
    return a, bcd


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("positions", POSITIONS)
@torch.no_grad()
def test_the_scores_are_the_equation(positions, kv_heads):
    e, (p_q, p_k) = TransformerXL(4, 6, dim=10, std=1.0).double(), POSITIONS[positions]
    q, k = (torch.randn(2, h, p.shape[-1], 6, dtype=F64) for h, p in ((4, p_q), (kv_heads, p_k)))
    a, bcd = by_loop(e, q, k, p_q, p_k)
    close(e.content_bias(q, k, p_q, p_k), bcd, 1e-8)
    close(scores(q, k, e, p_q, p_k), (a + bcd) / math.sqrt(6), 1e-8)
    assert e.doors == ("content_bias",)


def naive(q, k, v, e, p_q, p_k, causal):
    """With the vector W_kR R of every pair written out, [..., H, Lq, Lk, d]."""
    r = p_k[..., None, :] - p_q[..., :, None]
    R = sinusoidal(-r.double(), e.dim)
    R = torch.cat([R[..., ::2], R[..., 1::2]], -1)  # the paper's order of channels to the code's
    WR = torch.einsum("hdn, ...ijn -> ...hijd", e.W_kR, R)
    A = ((q + e.u[:, None])[..., None, :] * k[..., None, :, :]).sum(-1)
    A = (A + ((q + e.v[:, None])[..., None, :] * WR).sum(-1)) / q.shape[-1] ** 0.5
    r = r if r.ndim == 2 else r[:, None]
    return (A.masked_fill(r > 0, -math.inf) if causal else A).softmax(-1) @ v


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("n_q", [6, 2, 1])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_attention_and_its_gradients(backend, causal, n_q, rows):
    """Both ways: positions that count up by 1, and rows of their own."""
    e = TransformerXL(3, 8, std=0.5).double()
    q, k, v = (torch.randn(2, 3, n, 8, dtype=F64, requires_grad=True) for n in (n_q, 6, 6))
    p = torch.arange(6) + 3
    p = torch.stack([p, p * 2]) if rows else p
    leaves, upstream = (q, k, v, *e.parameters()), torch.randn(2, 3, n_q, 8, dtype=F64)
    results = []
    for out in (
        attention(q, k, v, e, p[..., 6 - n_q :], p, causal=causal, backend=backend),
        naive(q, k, v, e, p[..., 6 - n_q :], p, causal),
    ):
        results.append([out, *torch.autograd.grad((out * upstream).sum(), leaves)])
    for ours, slow in zip(*results, strict=True):
        close(ours, slow)
    assert len(leaves) == 6 and all(grad.abs().max() > 1e-3 for grad in results[0])


@pytest.mark.parametrize("rows", [False, True])
def test_no_vector_per_pair_is_formed(rows, largest):
    L, d = 96, 64
    e, p = TransformerXL(2, d).double(), torch.arange(L)[None] if rows else torch.arange(L)
    q, k, v = (torch.randn(1, 2, L, d, dtype=F64, requires_grad=True) for _ in "qkv")
    with largest() as ours:
        attention(q, k, v, e, p, p, causal=True).sum().backward()
    with largest() as slow:
        naive(q, k, v, e, p, p, True)
    assert ours.elements <= 2 * L * 2 * L  # a number per head, query and different offset
    assert slow.elements >= 2 * L * L * d


def test_a_query_meets_each_distance_once():
    e, asked, p = TransformerXL(2, 8), [], torch.arange(5)
    q, plain = torch.randn(1, 2, 5, 8), e.R
    e.R = lambda distances: asked.append(distances.tolist()) or plain(distances)
    e.content_bias(q[:, :, 2:], q, p[2:], p)
    assert asked == [[4, 3, 2, 1, 0, -1, -2, -3]]  # i − j, and the one that is skipped
    asked.clear()
    e.content_bias(q, q, p * 2, p)
    assert asked == [[0, 2, 4, 6, 8], [0, -1, -2, -3, -4]]


@pytest.mark.parametrize("n_q, n_k", [(1, 1), (1, 4), (4, 1), (3, 5), (5, 3)])
def test_the_relative_shift_is_a_view(n_q, n_k):
    line = torch.randn(2, n_q, n_q + n_k)
    out = relative_shift(line, n_k)
    assert out.untyped_storage().data_ptr() == line.untyped_storage().data_ptr()
    for i in range(n_q):
        close(out[:, i], line[:, i, n_q - 1 - i : n_q - 1 - i + n_k], 0)


@pytest.mark.parametrize("gap", [0, 1])
def test_angles_stay_exact(gap):
    """Both ways: in float32, an angle of 1e6 radians would be off by 0.03."""
    e = TransformerXL(2, 8, std=1.0)
    q, k = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 4, 8)
    p_q, p_k = torch.tensor([0, 1, 2 + gap]) + 10**6, torch.arange(4)
    near = e.content_bias(q, k, p_q - 10**6, p_k)
    far = e.content_bias(q, k, p_q, p_k)
    exact = e.double().content_bias(q.double(), k.double(), p_q, p_k)
    close(far.double(), exact, 2e-5)
    assert far.dtype == torch.float32 and (far - near).abs().max() > 0.1
    shifted = e.content_bias(q.double(), k.double(), p_q, p_k + 10**6)
    close(shifted, e.content_bias(q.double(), k.double(), p_q - 10**6, p_k), 1e-8)


def test_R_is_sinusoidal_with_the_frequencies_of_the_paper():
    p, R = torch.arange(-3, 9).double() / 2, TransformerXL(2, 5).R(torch.arange(-3, 9) / 2)
    close(R[:, :5], sinusoidal(p, 10)[:, ::2], 1e-15)
    close(R[:, 5:], sinusoidal(p, 10)[:, 1::2], 1e-15)
    assert (R - sinusoidal(p, 10, layout="concatenated")).abs().max() > 0.1


def test_its_parameters():
    e = TransformerXL(4, 16)
    assert sum(p.numel() for p in e.parameters()) == 64**2 + 2 * 64 and not list(e.buffers())
    assert [tuple(p.shape) for p in (e.W_kR, e.u, e.v)] == [(4, 16, 64), (4, 16), (4, 16)]
    wide = TransformerXL(50, 40)
    for p in wide.parameters():
        close(p.std().item(), 0.02, 0.001)
    for p in TransformerXL(50, 40, std=0.5).parameters():
        close(p.std().item(), 0.5, 0.025)
    assert repr(TransformerXL(4, 16, dim=6)) == "TransformerXL(4, 16, dim=6, std=0.02)"


def test_u_and_v_can_be_shared():
    first, other = TransformerXL(2, 8), TransformerXL(2, 8)
    other.u, other.v = first.u, first.v
    model = Transformer(Config(11, d_model=16, n_heads=2), [first, other])
    model(torch.arange(5)[None]).square().sum().backward()
    names = [name for name, _ in model.named_parameters() if name.startswith("encoding")]
    assert names == ["encoding.0.W_kR", "encoding.0.u", "encoding.0.v", "encoding.1.W_kR"]


# ---- segment recurrence ----

VOCAB, LENGTH = 12, 11


def build(encoding, n_layers=3, **options):
    torch.manual_seed(0)
    config = Config(VOCAB, d_model=16, n_heads=2, n_layers=n_layers, **options)
    return Transformer(config, encoding).double()


def draw(rows=2, length=LENGTH):
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(1))


def read(model, tokens, segment, memory, positions=None, keep=None, **options):
    """The logits of all tokens, read segment by segment."""
    memory, out = Memory(memory), []
    along = -1 if model.encodings[0].axes == 1 else -2
    for start in range(0, tokens.shape[1], segment):
        part = slice(start, start + segment)
        now = tokens[:, part]
        places = None if positions is None else positions.narrow(along, start, now.shape[1])
        out.append(model(now, places, keep=None if keep is None else keep[:, part], memory=memory, **options))
    return torch.cat(out, 1)


def two_segments(first, memory):
    """The mask of a segment of length ``first`` and one of all the rest, in a causal model."""
    i = torch.arange(LENGTH)
    return (i >= first - memory) | (i < first)[:, None]


@pytest.mark.parametrize(
    "segment, memory",
    [
        (3, 0),
        (3, 2),
        (3, 3),
        (3, 7),
        (4, 5),
        (1, 4),
        (20, 5),
        (5, 20),
    ],
)
def test_who_sees_whom(segment, memory):
    mask = segment_mask(LENGTH, segment, memory)
    assert mask.dtype == torch.bool
    for i in range(LENGTH):
        first = i // segment * segment
        assert mask[i].nonzero().flatten().tolist() == list(range(max(0, first - memory), i + 1))


@pytest.mark.parametrize("segment, memory", [(3, 2), (3, 3), (3, 7), (4, 5), (1, 20)])
def test_segments_equal_one_pass_with_their_mask(relative, positions_for, segment, memory):
    model, tokens, p = build(relative), draw(), positions_for(relative, LENGTH)
    full = model(tokens, p, mask=segment_mask(LENGTH, segment, memory))
    close(read(model, tokens, segment, memory, positions=p if relative.axes > 1 else None), full)
    assert memory >= LENGTH or not torch.allclose(full, model(tokens, p))


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
@pytest.mark.parametrize("options", [{}, {"norm": "rms", "n_kv_heads": 1}], ids=["gpt", "llama"])
def test_segments_in_every_model(options, backend):
    encodings = [TransformerXL(2, 8, std=0.5), Rotary(8), NoPosition()]
    model, tokens = build(encodings, **options), draw()
    full = model(tokens, mask=segment_mask(LENGTH, 4, 6), backend=backend)
    close(read(model, tokens, 4, 6, backend=backend), full)


def test_token_by_token_with_a_memory_of_everything():
    model, tokens = build([TransformerXL(2, 8, std=0.5) for _ in range(3)]), draw()
    cache = Cache()
    cached = torch.cat([model(t, cache=cache) for t in tokens.split(1, 1)], 1)
    close(cached, model(tokens))
    close(read(model, tokens, 1, LENGTH - 1), model(tokens))
    assert not torch.allclose(read(model, tokens, 1, LENGTH - 2), model(tokens))


def test_why_recurrence_goes_with_relative_positions():
    """Positions that start again in each segment collide; counted on, they are longer than a segment."""
    tokens, again = draw(), torch.arange(LENGTH) % 4
    model = build(Sinusoidal(16))
    full = model(tokens, mask=segment_mask(LENGTH, 4, 4))
    close(read(model, tokens, 4, 4), full)
    assert (read(model, tokens, 4, 4, again) - full).abs().max() > 0.1 * full.abs().max()
    with pytest.raises(ValueError, match="rows 0 to 3"):
        read(build(Learned(4, 16)), tokens, 4, 4)


@pytest.mark.parametrize("per_row", [False, True])
def test_positions_of_ones_own(per_row):
    model, tokens = build(TransformerXL(2, 8, std=0.5)), draw()
    p = torch.arange(LENGTH) * 1.5 + 5
    p = torch.stack([p, p * 2]) if per_row else p
    close(read(model, tokens, 4, 5, p), model(tokens, p, mask=segment_mask(LENGTH, 4, 5)))
    memory = Memory(3)
    model(tokens[:, :4], p[..., :4], memory=memory)  # the next ones count on from the last
    now = model(tokens[:, 4:], memory=memory)
    counted = torch.cat([p[..., :4], p[..., 3:4] + torch.arange(1, LENGTH - 3)], -1)
    close(now, model(tokens, counted, mask=two_segments(4, 3))[:, 4:])


@pytest.mark.parametrize("segment, memory", [(2, 2), (3, 2), (4, 20)])
def test_padding_is_remembered_as_padding(segment, memory):
    model, tokens = build(TransformerXL(2, 8, std=0.5)), draw(3)
    keep = torch.ones(3, LENGTH, dtype=torch.bool)
    keep[1, :5] = keep[2, 4:6] = False
    mask = segment_mask(LENGTH, segment, memory)
    full = model(tokens, keep=keep, mask=mask)
    close(read(model, tokens, segment, memory, keep=keep)[keep], full[keep])
    close(full[1:2, 5:], model(tokens[1:2, 5:], mask=mask[5:, 5:]))
    keep[1] = True  # padding for one segment, none before and after
    halves, m = [], Memory(20)
    for part, k in ((slice(0, 4), None), (slice(4, 6), keep[:, 4:6]), (slice(6, None), None)):
        halves.append(model(tokens[:, part], keep=k, memory=m))
    expected = model(tokens, keep=keep, mask=torch.ones(LENGTH, LENGTH, dtype=torch.bool))
    close(torch.cat(halves, 1)[keep], expected[keep])


def test_no_gradient_reaches_an_older_segment_but_its_states_teach():
    model, tokens = build([TransformerXL(2, 8, std=0.5) for _ in range(3)]), draw()
    old, new = tokens[:, :5] % 6, tokens[:, 5:] % 6 + 6  # no id in common
    tokens, memory = torch.cat([old, new], 1), Memory(4)
    model(old, memory=memory)
    last = model.blocks[-1]
    weights = [
        model.tokens.weight,
        last.attention.k.weight,
        last.attention.v.weight,
        last.norm1.weight,
        model.blocks[0].attention.k.weight,
    ]
    upstream = torch.randn(2, LENGTH - 5, VOCAB, dtype=F64)

    def gradients(logits):
        return torch.autograd.grad((logits * upstream).sum(), weights)

    through = gradients(model(new, memory=memory))
    alone = gradients(model(new))
    whole = gradients(model(tokens, mask=two_segments(5, 4))[:, 5:])
    assert through[0][:6].abs().max() == 0 and whole[0][:6].abs().max() > 1e-3
    # the last layer's states do not depend on its own weights: nothing is cut for these
    for ours, full, without in zip(through[1:4], whole[1:4], alone[1:4], strict=True):
        close(ours, full)
        assert (ours - without).abs().max() > 1e-3
    assert (through[4] - whole[4]).abs().max() > 1e-3  # but for those of the first layer


def test_the_gradient_holds_the_remembered_states_fixed():
    model, tokens, memory = build([TransformerXL(2, 8, std=0.5), Rotary(8)], 2), draw(), Memory(4)
    model(tokens[:, :5], memory=memory)
    names, parameters = zip(*model.named_parameters(), strict=True)

    def logits(*parameters):
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(model, given, tokens[:, 5:], {"memory": replace(memory)})

    assert torch.autograd.gradcheck(logits, parameters, fast_mode=True)


def test_training_over_segments_holds_no_graph():
    model, tokens, memory = build(TransformerXL(2, 8)), draw(length=20), Memory(6)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n, part in enumerate(tokens.split(4, 1), 1):
        optimizer.zero_grad()
        model(part, memory=memory).square().mean().backward()  # a second time through a graph would raise
        optimizer.step()
        assert len(memory) == min(6, 4 * n) and len(memory.states) == 3
        for state in memory.states:
            assert state.shape == (2, len(memory), 16) and not state.requires_grad
            assert state.untyped_storage().nbytes() == 8 * state.numel()
    assert memory.positions.tolist() == list(range(14, 20))


def test_states_are_what_enters_a_layer():
    model, tokens, memory, entered = build(TransformerXL(2, 8)), draw(), Memory(4), []
    for block in model.blocks:
        block.register_forward_pre_hook(lambda _, inputs: entered.append(inputs[0]))
    model(tokens, memory=memory)
    for state, x in zip(memory.states, entered, strict=True):
        close(state, x[:, -4:], 0)


def test_a_memory_of_nothing():
    model, tokens, memory = build(Sinusoidal(16)), draw(), Memory(0)
    for part in tokens.split(4, 1):
        close(model(part, memory=memory), model(part))
        close(model(part, keep=torch.ones_like(part, dtype=torch.bool), memory=memory), model(part))
    assert len(memory) == 0


def test_an_error_leaves_the_memory_as_it_was():
    model, tokens, memory = build(Rotary(8)), draw(), Memory(6)
    model(tokens[:, :5], memory=memory)
    model.encoding = [Rotary(8), Rotary(8), Rotary(4)]
    with pytest.raises(ValueError, match="head_dim=4"):
        model(tokens[:, 5:], memory=memory)
    model.encoding = Rotary(8)
    assert memory.positions.tolist() == list(range(5))
    close(model(tokens[:, 5:], memory=memory), model(tokens)[:, 5:])


# ---- wrong inputs ----


def remembered(rows=2, n_layers=3):
    memory = Memory(3)
    build(None, n_layers)(draw(rows), memory=memory)
    return memory


Q, P = torch.zeros(2, 2, 3, 4), torch.arange(3)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: TransformerXL(0, 8), "n_heads=0.*positive"),
        (lambda: TransformerXL(2, 1.5), "head_dim=1.5.*positive"),
        (lambda: TransformerXL(2, 8, dim=0), "dim=0.*positive"),
        (lambda: TransformerXL(3, 3), "dim=9.*even"),
        (lambda: TransformerXL(2, 8, std=-1), "std=-1"),
        (lambda: TransformerXL(2, 8).content_bias(Q, Q, P, P), r"n_heads=2 and head_dim=8.*\(2, 2, 3, 4\)"),
        (lambda: TransformerXL(4, 4).content_bias(Q, Q, P, P), r"n_heads=4 and head_dim=4.*\(2, 2, 3, 4\)"),
        (lambda: Memory(-1), "length=-1.*0 or more"),
        (lambda: segment_mask(5, 0, 2), "segment=0.*positive"),
        (lambda: segment_mask(5, 2, -1), "memory=-1.*0 or more"),
        (lambda: segment_mask(-5, 2, 1), "length=-5.*0 or more"),
        (lambda: build(None)(draw(), cache=Cache(), memory=Memory(3)), "cache or a memory, not both"),
        (lambda: build(None, causal=False)(draw(), memory=Memory(3)), "memory needs a causal model"),
        (lambda: build(None)(draw(1), memory=remembered()), r"\(2, 3, 16\) for 3 layers.*1 rows.*new Memory"),
        (lambda: build(None, 2)(draw(), memory=remembered()), r"for 3 layers.*2 layers.*new Memory"),
        (
            lambda: build(None)(draw(), mask=segment_mask(LENGTH, 4, 3), memory=remembered()),
            r"mask has shape \(11, 11\).*\(2, 2, 11, 14\)",
        ),
    ],
)
def test_errors_say_what_is_allowed(call, words):
    with pytest.raises(ValueError, match=words):
        call()
