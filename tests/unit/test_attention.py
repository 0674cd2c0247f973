"""The attention core against a loop over batch, heads, queries and keys, with every door open."""

import copy
import functools
import math

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.utils._python_dispatch import TorchDispatchMode

import tutorial_lib.fast_attention
from tutorial_lib.attention import attention, scores
from tutorial_lib.encodings import (
    TUPE,
    ALiBi,
    ClippedBias,
    Compose,
    CoPE,
    Forgetting,
    Learned,
    NoPosition,
    PositionalEncoding,
    Raster,
    Rotary,
    Shaw,
    T5Bias,
    grid,
)

BACKENDS = ("eager", "sdpa")
D = 8


def close(actual, expected, tolerance=1e-10):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


@torch.no_grad()
def slow(q, k, v, encoding, q_positions, k_positions, causal=False, mask=None):
    """Output and weights, one pair of tokens at a time, in float64."""
    (batch, heads, n_q, d), (kv_heads, n_k) = q.shape, k.shape[1:3]
    doors = encoding.doors if encoding else ()
    out, all_weights = q.new_zeros(batch, heads, n_q, v.shape[-1]), q.new_zeros(batch, heads, n_q, n_k)
    for b in range(batch):
        p_q, p_k = (p if p.ndim == 1 else p[b] for p in (q_positions, k_positions))
        for h in range(heads):
            kv = h * kv_heads // heads
            for i in range(n_q):
                seen, logits = [], []
                for j in range(n_k):
                    if causal and j > i + n_k - n_q:
                        continue
                    if mask is not None and not mask.expand(batch, heads, n_q, n_k)[b, h, i, j]:
                        continue
                    x, y, r = q[b, h, i], k[b, kv, j], float(p_k[j] - p_q[i])
                    score, after, scale = 0.0, 0.0, d**-0.5
                    if doors:
                        x = x * (1 + 0.1 * math.sin(p_q[i]))
                        y = y * (2 + math.cos(p_k[j]))
                        scale = 0.3
                    if "content_bias" in doors:
                        score = (x * encoding.mix * y).sum() * math.sin(r)
                    if "bias" in doors:
                        after = encoding.slope[h] * math.cos(r / 3)
                    seen.append((j, r))
                    logits.append(((x * y).sum() + score) * scale + after)
                total = sum(math.exp(s) for s in logits)
                for (j, r), s in zip(seen, logits, strict=True):
                    w = math.exp(s) / total
                    all_weights[b, h, i, j] = w
                    out[b, h, i] += w * v[b, kv, j]
                    if "values" in doors:
                        out[b, h, i] += w * math.cos(r) * encoding.mix
    return out, all_weights


def tensors(n_q, n_k, heads=4, kv_heads=4, batch=2, dtype=torch.float64):
    q = torch.randn(batch, heads, n_q, D).to(dtype)
    return q, *(torch.randn(batch, kv_heads, n_k, D).to(dtype) for _ in "kv")


def a_mask(kind, n_q, n_k):
    return {
        "none": None,
        "keys": torch.rand(2, 1, 1, n_k) < 0.7,
        "pairs": torch.rand(n_q, n_k) < 0.7,
        "all": torch.rand(2, 4, n_q, n_k) < 0.5,  # some rows see nothing
    }[kind]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mask", ["none", "keys", "pairs", "all"])
@pytest.mark.parametrize(
    "n_q, n_k, causal",
    [
        (5, 5, True),
        (5, 5, False),
        (2, 5, True),
        (1, 5, True),
        (2, 5, False),
        (5, 3, False),
    ],
)
def test_open_doors_against_the_loop(open_doors, n_q, n_k, causal, mask, backend):
    q, k, v = tensors(n_q, n_k)
    encoding, mask = open_doors(4, D).double(), a_mask(mask, n_q, n_k)
    q_positions, k_positions = torch.rand(n_q).double() * 9, torch.rand(2, n_k).double() * 9
    actual = attention(q, k, v, encoding, q_positions, k_positions, causal=causal, mask=mask, backend=backend)
    close(actual, slow(q, k, v, encoding, q_positions, k_positions, causal, mask)[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("shut", [("bias",), ("content_bias",), ("bias", "content_bias")])
def test_some_doors_open(open_doors, shut, causal, backend):
    some = type("Some", (open_doors,), {door: getattr(PositionalEncoding, door) for door in shut})
    q, k, v = tensors(3, 5)
    encoding, p = some(4, D).double(), torch.arange(5).double()
    actual = attention(q, k, v, encoding, p[2:], p, causal=causal, backend=backend)
    close(actual, slow(q, k, v, encoding, p[2:], p, causal)[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mask", ["none", "keys", "pairs", "all"])
@pytest.mark.parametrize("n_q, n_k, causal", [(5, 5, True), (5, 5, False), (2, 5, True), (2, 5, False)])
def test_shut_doors_against_the_loop(n_q, n_k, causal, mask, backend):
    q, k, v = tensors(n_q, n_k)
    mask, p = a_mask(mask, n_q, n_k), torch.arange(5)
    actual = attention(q, k, v, causal=causal, mask=mask, backend=backend)
    close(actual, slow(q, k, v, None, p, p, causal, mask)[0])
    close(attention(q, k, v, NoPosition(), causal=causal, mask=mask, backend=backend), actual, 0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_grouped_heads(open_doors, kv_heads, backend):
    """Heads 0 and 1 share the first head of keys, 2 and 3 the second."""
    q, k, v = tensors(3, 5, kv_heads=kv_heads)
    p = torch.arange(5).double()
    for encoding in (None, open_doors(4, D).double()):
        actual = attention(q, k, v, encoding, p[2:], p, causal=True, backend=backend)
        close(actual, slow(q, k, v, encoding, p[2:], p, causal=True)[0])


def test_weights_and_scores(open_doors):
    q, k, v = tensors(3, 5, kv_heads=2)
    encoding, p = open_doors(4, D).double(), torch.arange(5).double()
    _, weights = attention(q, k, v, encoding, p[2:], p, causal=True, backend="eager", return_weights=True)
    close(weights, slow(q, k, v, encoding, p[2:], p, causal=True)[1])
    free = slow(q, k, v, encoding, p[2:], p)[1]
    close(scores(q, k, encoding, p[2:], p).softmax(-1), free)
    close(scores(q, k[:, :1])[:, :, 0, 0], (q[:, :, 0] * k[:, :1, 0]).sum(-1) / D**0.5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_default_positions_are_the_last_ones(backend):
    q, k, v = tensors(2, 5)
    p = torch.arange(5)
    close(
        attention(q, k, v, Rotary(D), causal=True, backend=backend),
        attention(q, k, v, Rotary(D), p[3:], p, causal=True, backend=backend),
        0,
    )
    close(
        attention(q, k, v, Rotary(D), k_positions=p + 7, backend=backend),
        attention(q, k, v, Rotary(D), p[3:] + 7, p + 7, backend=backend),
        0,
    )
    close(scores(q, k, Rotary(D)), scores(q, k, Rotary(D), p[3:], p), 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_causal_goes_by_the_tensor_and_not_by_positions(backend):
    q, k, v = tensors(4, 4)
    backwards = torch.arange(4).flip(0)
    out = attention(q, k, v, Rotary(D), backwards, backwards, causal=True, backend=backend)
    close(out[:, :, 0], v[:, :, 0])


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_query_that_sees_nothing_gives_zeros(open_doors, backend, dtype, causal, values):
    """And gradients stay finite: 0/0 in a softmax would poison every weight of a model."""
    for encoding in (None, open_doors(4, D).to(dtype)):
        q, k, v = (x.requires_grad_() for x in tensors(4, 4, dtype=dtype))
        mask = torch.ones(2, 1, 4, 4, dtype=torch.bool)
        mask[0, 0, 1] = False
        mask[1, 0, :, 0] = False  # with causal, the first query of row 1 is left with nothing
        out = attention(q, k, v, encoding, causal=causal, mask=mask, backend=backend)
        assert (out[0, :, 1] == 0).all() and out.isfinite().all()
        assert causal == bool((out[1, :, 0] == 0).all())
        out.square().sum().backward()
        for x in (q, k, v):
            assert x.grad.isfinite().all()
        assert (q.grad[0, :, 1] == 0).all() and (q.grad[0, :, 2] != 0).any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_nan_is_not_hidden(backend):
    """Only a query that sees nothing gives zeros; a broken one must be seen."""
    q, k, v = tensors(3, 3)
    q[0, 0, 1] = math.nan
    out = attention(q, k, v, mask=torch.ones(3, 3, dtype=torch.bool), backend=backend)
    assert out[0, 0, 1].isnan().all() and out.isnan().sum() == D


@pytest.mark.parametrize("mask", ["none", "all"])
@pytest.mark.parametrize("n_q, causal", [(5, True), (5, False), (2, True)])
def test_gradients_agree(open_doors, n_q, causal, mask):
    """Also those of a learned bias, where SDPA takes another path than in evaluation."""
    encoding, mask = open_doors(4, D).double(), a_mask(mask, n_q, 5)
    data, gradients = tensors(n_q, 5, kv_heads=2), []
    for backend in BACKENDS:
        leaves = [x.clone().requires_grad_() for x in data]
        out = attention(*leaves, encoding, causal=causal, mask=mask, backend=backend)
        gradients.append(torch.autograd.grad(out.square().sum(), [*leaves, *encoding.parameters()]))
    for eager, sdpa in zip(*gradients, strict=True):
        assert eager.abs().max() > 1e-3
        close(sdpa, eager)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("causal, masked", [(True, False), (False, True), (True, True)])
def test_gradcheck(open_doors, backend, causal, masked):
    encoding, p = open_doors(2, D).double(), torch.arange(3).double()
    q, k, v = (x.requires_grad_() for x in tensors(2, 3, heads=2, kv_heads=1, batch=1))
    mask = torch.tensor([[True, False, True], [False, False, False]]) if masked else None

    def call(q, k, v, *parameters):
        return attention(q, k, v, encoding, p[1:], p, causal=causal, mask=mask, backend=backend)

    assert torch.autograd.gradcheck(call, (q, k, v, *encoding.parameters()))


@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.03), (torch.float16, 0.004)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_half_precision(open_doors, backend, dtype, tolerance):
    q, k, v = tensors(4, 6, dtype=dtype)
    for encoding in (NoPosition(), open_doors(4, D).to(dtype), Rotary(D)):
        exact = attention(
            *(x.double() for x in (q, k, v)), copy.deepcopy(encoding).double(), causal=True, backend="eager"
        )
        out = attention(q, k, v, encoding, causal=True, backend=backend)
        assert out.dtype == dtype
        close(out.double(), exact, tolerance)


def test_half_precision_softmax_is_done_in_float32():
    q, k, v = tensors(3, 3, dtype=torch.bfloat16)
    _, weights = attention(q, k, v, backend="eager", return_weights=True)
    close(weights.sum(-1), torch.ones(2, 4, 3), 1e-6)
    assert weights.dtype == torch.float32


class Bias(PositionalEncoding):
    """A fixed bias of any broadcastable shape."""

    def __init__(self, bias):
        super().__init__()
        self.fixed = bias

    def bias(self, q_positions, k_positions):
        return self.fixed


@pytest.mark.parametrize("shape", [(5,), (5, 5), (4, 1, 1), (4, 5, 5), (1, 4, 5, 5), (2, 1, 1, 5), ()])
@pytest.mark.parametrize("masked", [False, True])
def test_a_bias_may_have_any_shape_that_broadcasts(shape, masked):
    q, k, v = tensors(5, 5)
    encoding, mask = Bias(torch.randn(shape, dtype=torch.float64)), torch.rand(2, 1, 5, 5) < 0.8
    eager, sdpa = (
        attention(q, k, v, encoding, causal=True, mask=mask if masked else None, backend=b) for b in BACKENDS
    )
    close(sdpa, eager)


def test_values_may_be_wider_than_keys():
    q, k, _ = tensors(3, 5)
    v = torch.randn(2, 4, 5, 3, dtype=torch.float64)
    for backend in BACKENDS:
        out = attention(q, k, v, causal=True, backend=backend)
        close(out, slow(q, k, v, None, torch.arange(3), torch.arange(5), causal=True)[0])


@pytest.mark.parametrize("mask", ["none", "keys", "pairs", "all"])
@pytest.mark.parametrize(
    "n_q, n_k, causal",
    [
        (7, 7, True),
        (7, 7, False),
        (5, 7, True),
        (5, 8, False),
        (1, 7, True),
    ],
)
def test_chunks_of_queries_change_nothing(open_doors, n_q, n_k, causal, mask, monkeypatch):
    q, k, v = tensors(n_q, n_k, kv_heads=2)
    encoding, mask = open_doors(4, D).double(), a_mask(mask, n_q, n_k)
    expected = slow(q, k, v, encoding, torch.arange(n_k - n_q, n_k), torch.arange(n_k), causal, mask)[0]
    for size in (1, 2, 3, 5):
        monkeypatch.setattr(tutorial_lib.fast_attention, "CHUNK", size)
        close(attention(q, k, v, encoding, causal=causal, mask=mask), expected)


@pytest.mark.parametrize(
    "encoding",
    [
        CoPE(D, 4, std=1.0),
        Compose(NoPosition(), CoPE(D, 4, std=1.0)),
        Raster(CoPE(D, 4, std=1.0), 7),
        Forgetting(4, D, std=1.0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_goes_by_place_is_not_cut(encoding, monkeypatch):
    """Only in a causal call are the queries of a chunk the last keys that it may see."""
    monkeypatch.setattr(tutorial_lib.fast_attention, "CHUNK", 2)
    (q, k, v), p = tensors(7, 7), torch.arange(7) if encoding.axes == 1 else grid(1, 7)
    for causal in (True, False):
        eager, sdpa = (attention(q, k, v, encoding, p, p, causal=causal, backend=b) for b in BACKENDS)
        close(sdpa, eager)


def content_free(head_dim):
    return {
        "none": NoPosition(),
        "rotary": Rotary(head_dim),
        "alibi": ALiBi(4),
        "one head": ALiBi(1),
        "t5": T5Bias(4, std=1.0),
        "compose": Compose(Rotary(head_dim), T5Bias(4, std=1.0), ALiBi(4, symmetric=True)),
    }


CONTENT_FREE = content_free(D)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", CONTENT_FREE)
@pytest.mark.parametrize("n_q, n_k, causal", [(7, 7, True), (7, 7, False), (3, 7, True), (1, 7, True)])
@pytest.mark.parametrize("consecutive", [True, False])
def test_flex_agrees(name, n_q, n_k, causal, consecutive):
    q, k, v = (x.float() for x in tensors(n_q, n_k, kv_heads=2))
    p = torch.arange(n_k) if consecutive else torch.randint(9, (2, n_k))
    places = p[..., n_k - n_q :], p
    with torch.no_grad():
        close(
            *(
                attention(q, k, v, CONTENT_FREE[name], *places, causal=causal, backend=backend)
                for backend in ("flex", "eager")
            ),
            1e-5,
        )


def test_flex_is_compiled_for_any_length(monkeypatch):
    """Not once for each: past eight, PyTorch goes on without the kernel, and holds the scores of all."""
    counter = CompileCounter()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=counter))
    kernel = tutorial_lib.fast_attention._flex_kernel.__wrapped__("cuda")
    monkeypatch.setattr(tutorial_lib.fast_attention, "_flex_kernel", lambda _: kernel)
    torch.compiler.reset()
    for n in range(128, 1409, 128):
        q = torch.randn(1, 2, n, 16)
        for encoding in (None, ALiBi(2)):
            both = (attention(q, q, q, encoding, causal=True, backend=one) for one in ("flex", "eager"))
            close(*both, 1e-5)
    assert 2 <= counter.frame_count <= 4


ON_A_GPU = pytest.param(
    "cuda",
    marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")],
)


@pytest.mark.parametrize("device", ["cpu", ON_A_GPU])
@pytest.mark.parametrize("name", CONTENT_FREE)
def test_flex_agrees_in_its_gradients(name, device):
    """With its compiled kernel, also in those of a learned bias. On a CPU, where flex has no gradients, the
    equation takes its place: so what is asked of a GPU is known to fit together before it meets one."""
    encoding, gradients = content_free(64)[name].to(device), []
    data = [torch.randn(2, 4, 300, 64, device=device) for _ in "qkv"]
    for backend in ("flex" if device == "cuda" else "eager", "sdpa"):
        leaves = [x.clone().requires_grad_() for x in data]
        out = attention(*leaves, encoding, causal=True, backend=backend)
        gradients.append([out, *torch.autograd.grad(out.sin().sum(), [*leaves, *encoding.parameters()])])
    for one, other in zip(*gradients, strict=True):
        close(one, other, 2e-2)


@pytest.mark.parametrize("encoding", [ALiBi(4), T5Bias(4), Compose(T5Bias(4), ALiBi(4))], ids=str)
@pytest.mark.parametrize("causal", [True, False])
def test_a_relative_bias_is_never_written_for_all_pairs(encoding, causal, largest, monkeypatch):
    """Not even for the pairs of one chunk: what is largest has the size of q."""
    q, k, v = (x.float() for x in tensors(64, 64, batch=1))
    monkeypatch.setattr(tutorial_lib.fast_attention, "CHUNK", 16)
    with torch.no_grad(), largest() as made:
        attention(q, k, v, encoding, causal=causal)
    assert made.elements == q.numel() < 16 * 64 * 4


@pytest.mark.parametrize("n, size, more", [(1, 1, 0), (1, 5, 0), (5, 1, 0), (3, 4, 0), (4, 3, 2), (7, 7, 1)])
def test_windows_have_the_gradient_of_a_view(n, size, more):
    x = torch.randn(2, n + size - 1 + more, dtype=torch.float64, requires_grad=True)
    view, ours = x.unfold(-1, size, 1)[:, :n], tutorial_lib.fast_attention.windows(x, n, size)
    close(ours, view, 0)
    for one, other in zip(*(torch.autograd.grad((w**3).sum(), x) for w in (ours, view)), strict=True):
        close(one, other)
    assert torch.autograd.gradgradcheck(lambda x: tutorial_lib.fast_attention.windows(x, n, size) ** 2, x)


@pytest.mark.parametrize("causal", [True, False])
def test_the_gradient_of_a_bias_is_not_added_up_number_by_number(causal):
    """PyTorch's gradient of a view of windows took as long as all the rest."""
    called = []

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            called.append(func.overloadpacket)
            return func(*args, **(kwargs or {}))

    q, k, v = (torch.randn(1, 4, 9, 8, requires_grad=True) for _ in "qkv")
    with Calls():
        attention(q, k, v, T5Bias(4), causal=causal).sum().backward()
    assert torch.ops.aten._softmax_backward_data in called
    assert torch.ops.aten.unfold_backward not in called


@pytest.mark.parametrize(
    "n_q, sizes", [(100, [100]), (255, [128, 127]), (400, [200, 200]), (600, [256, 256, 88])]
)
def test_short_texts_go_in_halves(n_q, sizes, monkeypatch):
    """So that the first half never meets the second."""
    q, k, v = tensors(n_q, n_q, batch=1)
    seen, along = [], tutorial_lib.fast_attention._along_offsets
    monkeypatch.setattr(
        tutorial_lib.fast_attention,
        "_along_offsets",
        lambda q, k, *rest: (seen.append((q.shape[-2], k.shape[-2])), along(q, k, *rest))[1],
    )
    attention(q, k, v, ALiBi(4), causal=True)
    assert seen == [(size, sum(sizes[: n + 1])) for n, size in enumerate(sizes)]


def test_no_pair_of_all_is_written_for_shaw(largest, monkeypatch):
    q, k, v = tensors(64, 64, batch=1)
    monkeypatch.setattr(tutorial_lib.fast_attention, "CHUNK", 8)
    with torch.no_grad(), largest() as made:
        attention(q, k, v, Shaw(D, 2).double(), causal=True)
    assert made.elements <= 4 * 8 * 64


def transforms():
    """Derivatives that no fused kernel has, each of a function of q ``[B, H, L, D]`` that gives as much."""
    from torch.autograd import forward_ad

    def forward(f, q):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(q, torch.ones_like(q)))).tangent

    func = torch.func
    return {
        "vmap": lambda f, q: func.vmap(f)(torch.stack([q, -q])),
        "grad": lambda f, q: func.grad(lambda q: f(q).sin().sum())(q),
        "grad of grad": lambda f, q: func.grad(
            lambda q: func.grad(lambda q: f(q).sin().sum())(q).sin().sum()
        )(q),
        "jvp": lambda f, q: func.jvp(f, (q,), (torch.ones_like(q),))[1],
        "hessian": lambda f, q: func.hessian(lambda q: f(q).sin().sum())(q),
        "forward mode": forward,
    }


@pytest.mark.parametrize("transform", transforms())
@pytest.mark.parametrize(
    "encoding",
    [
        NoPosition(),
        Rotary(8),
        ALiBi(2),
        T5Bias(2),
        Shaw(8, 2),
        Learned(9, 8),
    ],
    ids=lambda encoding: type(encoding).__name__,
)
def test_transforms_of_functions(encoding, transform):
    """The back end that can do it is found without asking."""
    q, derive = torch.randn(1, 2, 3, 8), transforms()[transform]
    eager, sdpa = (
        derive(lambda q, b=b: attention(q, q, q, encoding, causal=True, backend=b), q)
        for b in ("eager", "sdpa")
    )
    close(sdpa, eager, 1e-5)


def test_a_second_derivative_is_found_or_told():
    """Nobody knows in a first pass that a second will come, so the error says what to do; one is no harm."""
    q = torch.randn(1, 2, 3, 8, requires_grad=True)

    def first(backend, encoding=None):
        out = attention(q, q, q, encoding, causal=True, backend=backend)
        return torch.autograd.grad(out.sin().sum(), q, create_graph=True)[0]

    close(first("sdpa"), first("eager"), 1e-6)
    assert torch.autograd.grad(first("eager").sin().sum(), q)[0].abs().max() > 1e-3
    for encoding in (None, Rotary(8), ALiBi(2)):
        with pytest.raises(RuntimeError, match="backend='sdpa' has no second derivative.*backend='eager'"):
            torch.autograd.grad(first("sdpa", encoding).sin().sum(), q)


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_terms_of_the_scores_by_hand(backend):
    """What stands before the scale is multiplied by it, what stands after it is not."""
    untied = TUPE(Learned(9, 6, std=1.0), 4, D, relative=T5Bias(4, std=1.0))
    encoding, (q, k, v), p = Compose(Shaw(D, 2), untied).double(), tensors(5, 5), torch.arange(5)
    shaw, untied = encoding.parts
    inner = q @ k.mT + shaw.content_bias(q, k, p, p)
    weights = (inner / math.sqrt(2 * D) + untied.bias(p, p)).softmax(-1)
    close(attention(q, k, v, encoding, backend=backend), weights @ v + shaw.values(weights, p, p))
    no_values = Compose(CoPE(D, 4, std=1.0), untied).double()
    inner = q @ k.mT + no_values.parts[0].content_bias(q, k, p, p)
    weights = (inner / math.sqrt(2 * D) + untied.bias(p, p)).softmax(-1)
    close(attention(q, k, v, no_values, backend=backend), weights @ v)


Q, K = torch.zeros(2, 4, 3, 8), torch.zeros(2, 2, 5, 8)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: attention(Q, K, K, backend="flash"), "backend='flash'.*'eager', 'sdpa'"),
        (lambda: attention(Q, K, K, return_weights=True), "backend='sdpa' never forms.*backend='eager'"),
        (lambda: attention(Q, K, K, mask=torch.ones(3, 5) > 0, backend="flex"), "flex.*mask.*backend='sdpa'"),
        (lambda: attention(Q, K, K, Shaw(8, 2), backend="flex"), "content_bias.*Shaw.*backend='sdpa'"),
        (lambda: attention(Q[0], K, K), r"q \(4, 3, 8\).*"),
        (lambda: attention(Q[:1], K, K), "share batch and channels"),
        (lambda: attention(Q[..., :4], K, K), "share batch and channels"),
        (lambda: attention(Q, K, K[:, :, :4]), "k and v share all but channels"),
        (lambda: attention(Q[:, :3], K, K), r"q \(2, 3, 3, 8\).*multiple"),
        (lambda: attention(torch.zeros(2, 2, 6, 8), K, K, causal=True), "causal=True"),
        (lambda: attention(Q, K, K, mask=torch.ones(3, 5)), "mask has dtype torch.float32.*booleans"),
        (lambda: attention(Q, K, K, mask=torch.ones(3, 4) > 0), r"mask has shape \(3, 4\).*\(2, 4, 3, 5\)"),
        (lambda: attention(Q[:1], K[:1], K[:1], mask=torch.ones(2, 1, 3, 5) > 0), r"mask has shape \(2, 1"),
        (lambda: attention(Q, K, K, q_positions=torch.arange(1)), r"q_positions have shape \(1,\).*length 3"),
        (lambda: attention(Q, K, K, k_positions=torch.arange(4)), r"k_positions have shape \(4,\).*length 5"),
        (lambda: attention(torch.zeros(2, 2, 6, 8), K, K), "q has 6 tokens and k 5.*give q_positions"),
        (lambda: scores(Q, K, q_positions=torch.tensor(3)), r"q_positions have shape \(\)"),
        (lambda: scores(Q[0], K), r"\[batch, heads, length, channels\], not q \(4, 3, 8\)"),
        (lambda: attention(Q[:, :0], K, K), r"q \(2, 0, 3, 8\).*at least one head"),
        (lambda: attention(Q, K[:, :0], K[:, :0]), r"k \(2, 0, 5, 8\).*at least one head"),
        (lambda: attention(Q[..., :0], K[..., :0], K), "at least one head and one channel"),
        (lambda: scores(Q[..., :0], K[..., :0]), "at least one head and one channel"),
        (lambda: attention(Q[:, :, :0], K, K, backend="flex"), r"flex.*q \(2, 4, 0, 8\).*backend='sdpa'"),
        (
            lambda: attention(Q, K[:, :, :0], K[:, :, :0], None, torch.arange(3), backend="flex"),
            r"flex.*k \(2, 2, 0, 8\)",
        ),
    ],
)
def test_errors_name_what_does_not_fit(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: attention(Q, K, K, ALiBi), r"encoding is the class ALiBi.*ALiBi\(\.\.\.\)"),
        (lambda: attention(Q, K, K, "alibi"), "encoding is a str.*PositionalEncoding"),
        (lambda: attention(Q, K, K, torch.nn.Identity()), "encoding is a Identity.*PositionalEncoding"),
        (lambda: scores(Q, K, ALiBi), "encoding is the class ALiBi"),
        (lambda: attention(Q.numpy(), K, K), "q is a ndarray.*tensor"),
        (lambda: attention(Q, K.tolist(), K), "k is a list.*tensor"),
        (lambda: attention(Q, K, None), "v is a NoneType.*tensor"),
        (lambda: scores(Q, K.numpy()), "k is a ndarray.*tensor"),
        (lambda: attention(Q, K, K, mask=[[True] * 5] * 3), "mask is a list.*tensor of booleans"),
    ],
)
def test_errors_name_what_is_of_another_type(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("consecutive", [False, True])
def test_a_bias_that_learns_in_float32(causal, consecutive):
    """A path of its own on a CPU: with a scale, with grouped heads, with its gradient."""
    encoding = ClippedBias(4, 3, std=1.0)
    q, k, v = (torch.randn(2, heads, 9, 8, requires_grad=True) for heads in (4, 2, 2))
    p = torch.arange(9) * (1 if consecutive else 2)
    leaves, found = (q, k, v, encoding.b), {}
    for backend in ("eager", "sdpa"):
        out = attention(q, k, v, encoding, p, p, causal=causal, backend=backend)
        found[backend] = out, *torch.autograd.grad(out.square().sum(), leaves)
    for ours, expected in zip(found["sdpa"], found["eager"], strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)


def test_errors_name_the_argument_that_was_given():
    q, k = torch.randn(1, 1, 6, 4), torch.randn(1, 1, 3, 4)
    with pytest.raises(ValueError, match="q has 6 tokens and k 3: .* give q_positions"):
        attention(q, k, k)
    with pytest.raises(ValueError, match="q is on cpu, k on meta, v on meta"):
        attention(q, q.to("meta"), q.to("meta"))
    with pytest.raises(ValueError, match="mask is on meta, but q is on cpu"):
        attention(q, q, q, mask=torch.ones(6, 6, dtype=torch.bool, device="meta"))
