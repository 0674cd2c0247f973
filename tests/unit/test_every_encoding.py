"""What every encoding keeps, by every way of computing it: one list of methods, and no exceptions by name."""

import copy
import inspect
import math
import re

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import tutorial_lib.fast_attention
from tutorial_lib.attention import attention
from tutorial_lib.encodings import REGISTRY, Absolute, ALiBi, PositionalEncoding, Rotary
from tutorial_lib.model import Cache, Config, Transformer

F64 = torch.float64
HALF = [torch.bfloat16, torch.float16]


def close(actual, expected, tolerance, of=""):
    torch.testing.assert_close(
        actual, expected, atol=tolerance, rtol=tolerance, msg=lambda said: f"{of} {said}"
    )


def draw(encoding, n_q, n_k, dtype=F64, kv_heads=2):
    """Token vectors, queries, keys and values of two rows."""
    g = torch.Generator().manual_seed(1)
    shapes = (2, n_k, encoding.token_dim(16)), (2, 2, n_q, 8), *[(2, kv_heads, n_k, 8)] * 2
    return [torch.randn(shape, generator=g, dtype=F64).to(dtype) for shape in shapes]


def last(positions, n, axes):
    return positions[..., -n:] if axes == 1 else positions[..., -n:, :]


def far_from(encoding, positions):
    """Where half precision holds no whole numbers any more; with a table, as far as it goes."""
    for start in (4001, 40, 0):
        try:
            encoding.embed(torch.zeros(1, len(positions), encoding.token_dim(16)), positions + start)
            encoding.bias(positions + start, positions + start)
        except ValueError:
            continue
        return positions + start


def test_the_list_has_all_of_the_registry(all_encodings):
    assert set(REGISTRY) <= set(all_encodings)
    for name, kind in REGISTRY.items():
        assert not isinstance(kind, type) or type(all_encodings[name]()) is kind


# ---- wrong calls ----


@pytest.mark.parametrize(
    "name", [name for name, make in REGISTRY.items() if isinstance(make, type) and "__init__" in vars(make)]
)
def test_what_a_class_does_not_take_is_named_with_what_it_takes(name):
    make = REGISTRY[name]
    takes = inspect.signature(make).parameters
    first = re.escape(f"it is {make.__name__}({next(iter(takes)).replace('parts', '*parts')}")
    with pytest.raises(TypeError, match=rf"{make.__name__}\(bse=3\).*{first}"):
        make(bse=3)
    if not any(each.kind is each.VAR_POSITIONAL for each in takes.values()):
        with pytest.raises(TypeError, match=f"too many positional.*{first}"):
            make(*[8] * 12)
    if any(each.default is each.empty and each.kind is not each.VAR_POSITIONAL for each in takes.values()):
        with pytest.raises(TypeError, match=rf"{make.__name__}\(\): missing.*{first}"):
            make()


def test_what_a_door_does_not_take_is_named_with_what_it_takes(encoding):
    for door in encoding.doors:
        call = f"{type(encoding).__name__}.{door}"
        for given in ((), range(9)):
            with pytest.raises(TypeError, match=rf"{re.escape(call)}\(.*: .*argument.*; it is {call}\("):
                getattr(encoding, door)(*given)
        if door != "bias" and type(encoding).__module__.startswith("tutorial_lib"):
            with pytest.raises(TypeError, match=f" of {call} is a list: give a tensor .B, "):
                getattr(encoding, door)(*[[[1.0]]] * (1 if door in ("embed", "values") else 2))


def test_an_error_that_is_about_no_argument_stays_as_it_is():
    class Own(PositionalEncoding):
        def bias(self, q_positions, k_positions):
            raise TypeError("nothing about arguments")

    with pytest.raises(TypeError, match="^nothing about arguments$"):
        Own().bias(3, 3)


# ---- every path ----

MASKS = {
    "none": lambda n_q, n_k: None,
    "keys": lambda n_q, n_k: torch.arange(n_k) >= torch.tensor([0, 2]).view(2, 1, 1, 1),
    "pairs": lambda n_q, n_k: (torch.arange(n_q)[:, None] + torch.arange(n_k)) % 3 > 0,
    "nobody": lambda n_q, n_k: (torch.arange(n_q) != 1)[:, None].expand(2, 2, n_q, n_k),
}


@pytest.mark.parametrize("n_q, n_k, causal", [(7, 7, True), (7, 7, False), (4, 7, True), (5, 7, False)])
def test_every_path_gives_the_same_numbers(encoding, positions_for, n_q, n_k, causal, monkeypatch):
    """Output and gradients. The reference is dense and float64: positions given row by row take no short way.
    The others are the short way, chunks of queries, and both in float32."""
    monkeypatch.setattr(tutorial_lib.fast_attention, "CHUNK", 3)
    p = positions_for(encoding, n_k)
    for kind, make in MASKS.items():
        mask, results = make(n_q, n_k), []
        for backend, positions, dtype in (
            ("eager", p.expand(2, *p.shape), F64),
            ("eager", p, F64),
            ("sdpa", p, F64),
            ("sdpa", p.expand(2, *p.shape), F64),
            ("sdpa", p, torch.float32),
        ):
            module = copy.deepcopy(encoding).to(dtype)
            data = [x.requires_grad_() for x in draw(encoding, n_q, n_k, dtype)]
            x, q, k, v = data
            out = attention(
                q,
                k,
                v,
                module,
                last(positions, n_q, module.axes),
                positions,
                causal=causal,
                mask=mask,
                backend=backend,
            )
            embedded = module.embed(x, positions)
            parameters = list(module.parameters())
            gradients = torch.autograd.grad(
                out.sin().sum() + embedded.sin().sum(), data + parameters, allow_unused=True
            )
            assert kind != "nobody" or (out[:, :, 1] == 0).all()
            results.append((dtype, [out, embedded, *gradients]))
        for dtype, result in results[1:]:
            for one, other in zip(result, results[0][1], strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    close(one.double(), other, 1e-10 if dtype is F64 else 2e-4)


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_empty_and_single(encoding, positions_for, backend):
    """No tokens, no queries, no rows; and one of each."""
    p = positions_for(encoding, 3)
    for n_q, n_k in ((0, 0), (0, 3), (1, 3), (1, 1)):
        x, q, k, v = draw(encoding, n_q, n_k, torch.float32)
        places = last(p[:n_k], n_q, encoding.axes) if n_q else p[:0], p[:n_k]
        assert encoding.embed(x, p[:n_k]).shape == (2, n_k, 16)
        for causal in (True, False):
            out = attention(q, k, v, encoding, *places, causal=causal, backend=backend)
            assert out.shape == (2, 2, n_q, 8) and out.isfinite().all()
    _, q, k, v = draw(encoding, 3, 3, torch.float32)
    assert attention(q[:0], k[:0], v[:0], encoding, p, p, backend=backend).shape == (0, 2, 3, 8)


# ---- dtypes ----


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_half_precision_keeps_positions_apart(encoding, positions_for, dtype):
    """Against the same rounded parameters in float64: what differs is rounding, not a position."""
    module = encoding.to(dtype)
    exact = copy.deepcopy(module).double()
    p = far_from(exact, positions_for(encoding, 6))
    x, q, k, v = draw(encoding, 6, 6, dtype)
    precise = attention(q.double(), k.double(), v.double(), exact, p, p, causal=True, backend="eager")
    tolerance = 0.05 if dtype is torch.bfloat16 else 0.01
    close(module.embed(x, p).double(), exact.embed(x.double(), p), tolerance)
    for backend in ("eager", "sdpa"):
        close(attention(q, k, v, module, p, p, causal=True, backend=backend).double(), precise, tolerance)


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_there_and_back_again(encoding, positions_for, dtype):
    """A module that was in half precision, was called there, and got its float32 parameters back."""
    p, weights = positions_for(encoding, 6), copy.deepcopy(encoding.state_dict())

    def call(dtype):
        x, q, k, v = draw(encoding, 6, 6, dtype)
        return encoding.embed(x, p), attention(q, k, v, encoding, p, p, causal=True)

    before = call(torch.float32)
    encoding.to(dtype)
    call(dtype)
    encoding.to(torch.float32).load_state_dict(weights)
    for one, other in zip(call(torch.float32), before, strict=True):
        close(one, other, 0)


def test_autocast_and_copies_give_the_same(encoding, positions_for):
    p = far_from(encoding, positions_for(encoding, 6))
    x, q, k, v = draw(encoding, 6, 6, torch.float32)

    def call(module):
        return module.embed(x, p), attention(q, k, v, module, p, p, causal=True)

    before = call(encoding)
    for one, other in zip(call(copy.deepcopy(encoding)), before, strict=True):
        close(one, other, 0)
    with torch.autocast("cpu", torch.bfloat16):
        rough = call(encoding)
    for one, other in zip(rough, before, strict=True):
        close(one.float(), other, 0.05)


def test_positions_may_have_any_number_type(encoding, positions_for):
    """Whole numbers that each of them holds; a matrix per position wants integers."""
    p = positions_for(encoding, 6)
    x, q, k, v = draw(encoding, 6, 6)
    module = encoding.double()

    def call(p):
        return module.embed(x, p), attention(q, k, v, module, p, p, causal=True)

    expected = call(p)
    for dtype in (torch.int32, torch.int16, torch.int8, torch.uint8, torch.float32, F64):
        try:
            results = call(p.to(dtype))
        except ValueError as error:
            assert dtype.is_floating_point and "integer" in str(error), dtype
            continue
        for one, other in zip(results, expected, strict=True):
            close(one, other, 2e-5, dtype)


# ---- derivatives ----


def test_second_derivatives_and_transforms(encoding, positions_for):
    """Eager attention by three ways: backward twice, transforms of torch.func, and both of them mixed."""
    module, p = encoding.double(), positions_for(encoding, 4)
    _, q, k, v = draw(encoding, 4, 4)
    towards = torch.randn(q.shape, generator=torch.Generator().manual_seed(2), dtype=F64)

    def loss(q):
        return attention(q, k, v, module, p, p, causal=True, backend="eager").sin().sum()

    x = q.clone().requires_grad_()
    (first,) = torch.autograd.grad(loss(x), x, create_graph=True)
    (second,) = torch.autograd.grad((first * towards).sum(), x)
    slope, curved = torch.func.jvp(torch.func.grad(loss), (q,), (towards,))
    close(slope, first.detach(), 1e-10)
    close(curved, second, 1e-10)
    mixed = torch.func.grad(lambda q: torch.func.jvp(loss, (q,), (towards,))[1])(q)
    close(mixed, second, 1e-10)
    rows = torch.stack([q, -q])
    close(torch.vmap(loss)(rows), torch.stack([loss(q) for q in rows]), 1e-10)


# ---- wrong inputs: the message names the argument, the value and what is allowed ----

WRONG = {
    "too short": (lambda p: p[:-1], r"k_positions have shape \(5.*2 rows of length 6"),
    "another shape": (lambda p: p[None, None], r"k_positions have shape \(1, 1, 6"),
    "a mask": (lambda p: p > 0, "k_positions have dtype torch.bool.*integers or floats"),
    "complex": (lambda p: p * 1j, "k_positions have dtype torch.complex64.*integers or floats"),
    "not a number": (lambda p: p * math.nan, "k_positions are not all finite"),
    "infinite": (lambda p: p + math.inf, "k_positions are not all finite"),
    "a list": (lambda p: p.tolist(), "k_positions are a list.*tensor"),
    "elsewhere": (lambda p: p.to("meta"), "k_positions are on meta.*cpu"),
    "bfloat16": (lambda p: p.bfloat16(), "k_positions have dtype torch.bfloat16.*arange.*32 or 64 bits"),
    "float16": (lambda p: p.half(), "k_positions have dtype torch.float16.*integers.*32 or 64 bits"),
    "float8": (lambda p: p.to(torch.float8_e5m2), "k_positions have dtype torch.float8_e5m2.*32 or 64 bits"),
    "beyond float32": (lambda p: p.float() + 2**24, "k_positions reach 1.*torch.float32.*16777216.*integers"),
}


def test_positions_that_are_none(encoding, positions_for):
    p = positions_for(encoding, 6)
    _, q, k, v = draw(encoding, 6, 6, torch.float32)
    for make, words in WRONG.values():
        with pytest.raises((ValueError, TypeError), match=words):
            attention(q, k, v, encoding, p, make(p))
        with pytest.raises((ValueError, TypeError), match=words.replace("k_", "q_")):
            attention(q, k, v, encoding, make(p), p)


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_positions_that_their_dtype_cannot_hold(encoding, positions_for, dtype):
    """At every door: that of a model, and those of an encoding that is used by hand."""
    p, tokens = positions_for(encoding, 6).to(dtype), torch.zeros(2, 6, dtype=torch.long)
    words = f"positions have dtype {dtype}.*32 or 64 bits"
    with pytest.raises(ValueError, match=words):
        model_with(encoding)(tokens, p)
    for part in encoding.modules():
        if isinstance(part, Absolute):
            with pytest.raises(ValueError, match=words):
                part.vectors(p)


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_a_dtype_is_refused_where_numbers_cannot_be_asked_for(dtype, every_question_waits):
    q, p = torch.randn(1, 1, 6, 8), torch.arange(6).to(dtype)
    for call in (attention, torch.compile(attention, backend="eager")):
        torch._dynamo.reset()
        with pytest.raises(Exception, match=f"positions have dtype {dtype}.*32 or 64 bits"):
            call(q, q, q, Rotary(8), p, p)
    with pytest.raises(ValueError, match=f"positions have dtype {dtype}"):
        attention(*[q.to("meta")] * 3, Rotary(8), *[p.to("meta")] * 2)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16], ids=str)
def test_positions_that_have_wrapped_around(dtype):
    """More tokens than the dtype counts; at the last one, the next is not counted on from the first."""
    last = torch.iinfo(dtype).max
    wrapped, q = torch.arange(last + 2).to(dtype), torch.randn(1, 1, last + 2, 2)
    assert wrapped[-1] <= 0
    with pytest.raises(ValueError, match=rf"k_positions are {last + 2} numbers of .*{dtype}.*{last}.*int64"):
        attention(q[:, :, -1:], q, q, ALiBi(1), torch.tensor([last + 1]), wrapped)
    attention(q[:, :, -1:], q[:, :, 1:], q[:, :, 1:], ALiBi(1), torch.tensor([last]), wrapped[:-1])
    model, tokens = model_with(Rotary(8)).eval(), torch.tensor([[1, 2, 3], [4, 5, 6]])
    few = torch.arange(last - 2, last + 1).expand(2, 3)
    with torch.no_grad():
        assert torch.equal(
            model.generate(tokens, 4, positions=few.to(dtype)), model.generate(tokens, 4, positions=few)
        )
        cache, other = Cache(), Cache()
        for numbers, into in ((few.to(dtype), cache), (few, other)):
            model(tokens, numbers, cache=into)
            model(tokens, cache=into)
        assert torch.equal(cache.positions, other.positions)


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_another_number_of_heads(encoding, positions_for, backend):
    """Where a term has heads, it is refused; it is never spread over more heads than there are."""
    p = positions_for(encoding, 6)
    for n_heads in (1, 3):
        q = torch.randn(2, n_heads, 6, 8)
        try:
            out = attention(q, q, q, encoding, p, p, backend=backend)
        except ValueError as error:
            assert "heads" in str(error) and str(tuple(q.shape)) in str(error)
        else:
            assert out.shape == q.shape


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_queries_and_keys_of_other_dtypes(encoding, positions_for, backend):
    p, (_, q, k, v) = positions_for(encoding, 6), draw(encoding, 6, 6)
    for wrong in ((q.float(), k, v), (q, k.half(), v), (q, k, v.float()), [x.long() for x in (q, k, v)]):
        with pytest.raises(ValueError, match="q torch.*one floating-point dtype"):
            attention(*wrong, encoding, p, p, backend=backend)


# ---- where numbers can't be asked for ----


def model_with(encoding, **options):
    return Transformer(Config(11, d_model=16, n_heads=2, **options), encoding)


def test_shapes_without_numbers(encoding, positions_for):
    """What tools that plan a model's memory do: each step of a forward, but none of its numbers."""
    model, p = model_with(encoding), positions_for(encoding, 7)
    tokens = torch.zeros(2, 7, dtype=torch.long)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        for positions in [mode.from_tensor(p), None][: 3 - encoding.axes]:
            assert model(mode.from_tensor(tokens), positions).shape == (2, 7, 11)


class Questions(TorchDispatchMode):
    """Which operations ask for numbers: on a GPU, each waits for all work that is under way."""

    ASK = tuple(
        getattr(torch.ops.aten, name)
        for name in (
            "_local_scalar_dense",
            "equal",
            "is_nonzero",
            "nonzero",
            "masked_select",
            "_unique2",
            "allclose",
        )
    )

    def __init__(self):
        super().__init__()
        self.asked = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in self.ASK:
            self.asked.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def every_question_waits(monkeypatch):
    """A CPU that is treated as a GPU."""
    monkeypatch.setattr("tutorial_lib.encodings.positions.WITHOUT_WAITING", ())


def calls_of(model, tokens, p):
    """A forward, one with positions row by row, with padding, and the two of a text read in two parts."""
    keep = torch.arange(7, device=tokens.device) > 2 * torch.arange(2, device=tokens.device)[:, None]
    cache, axes = Cache(), model.encoding.axes
    given = None if axes == 1 else p
    yield lambda: model(tokens, given)
    yield lambda: model(tokens, p.expand(2, *p.shape))
    yield lambda: model(tokens, given, keep=keep)
    yield lambda: model(tokens[:, :4], None if axes == 1 else p[:4], cache=cache)
    yield lambda: model(tokens[:, 4:], None if axes == 1 else p[4:], cache=cache)


def test_a_forward_asks_a_device_for_nothing(encoding, positions_for, every_question_waits):
    """Nor does the answer change; one question is allowed for positions that somebody gives. Whether angles
    change when a text goes on is asked of a number that never was on a device, so it is not counted."""
    model, p, tokens = model_with(encoding), positions_for(encoding, 7), torch.arange(14).view(2, 7) % 11
    for number, call in enumerate(calls_of(model, tokens, p)):
        with Questions() as questions:
            call()
        goes_on = number == 4 and encoding.changes(p, p) is not None
        assert questions.asked == ["_local_scalar_dense"] * goes_on
    for given, allowed in ((p, 2), (p.double(), 1)):
        with Questions() as questions:
            try:
                model(tokens, given)
            except ValueError as error:
                assert "integer" in str(error)
        assert len(questions.asked) <= allowed


def test_positions_that_count_up_are_known_to(every_question_waits, monkeypatch):
    """So a bias is computed once for each offset on a GPU, too; but not after somebody has changed them."""
    model, cache, tokens, asked_for = model_with(ALiBi(2)), Cache(), torch.zeros(1, 7, dtype=torch.long), []
    monkeypatch.setattr(
        ALiBi, "of", lambda self, r, of=ALiBi.of: (asked_for.append(tuple(r.shape)), of(self, r))[1]
    )
    model(tokens)
    model(tokens, torch.arange(7) + 3)
    model(tokens[:, :4], cache=cache)
    model(tokens[:, 4:], cache=cache)
    assert asked_for == [(13,), (13,), (7,), (9,)]
    cache.positions[2] = 100
    asked_for.clear()
    model(tokens[:, :1], cache=cache)
    assert asked_for == [(1, 8)] * 2


def test_a_device_that_is_not_asked_gives_the_same(encoding, positions_for, monkeypatch):
    model, p, tokens = model_with(encoding), positions_for(encoding, 7), torch.arange(14).view(2, 7) % 11
    expected = [call() for call in calls_of(model, tokens, p)]
    monkeypatch.setattr("tutorial_lib.encodings.positions.WITHOUT_WAITING", ())
    for call, wanted in zip(calls_of(model, tokens, p), expected, strict=True):
        close(call(), wanted, 1e-5)


def test_a_forward_stays_on_its_device(encoding, positions_for):
    """On one without numbers, which takes nothing from another: the calls that a GPU gets below."""
    tokens = torch.zeros(2, 7, dtype=torch.long, device="meta")
    model, p = model_with(encoding).to("meta"), positions_for(encoding, 7).to("meta")
    for call in (lambda: model(tokens, p), *calls_of(model, tokens, p)):
        out = call()
        assert out.device.type == "meta" and out.shape in [(2, 7, 11), (2, 4, 11), (2, 3, 11)]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_forward_never_waits_for_a_gpu(encoding, positions_for):
    p, tokens = positions_for(encoding, 7).cuda(), (torch.arange(14).view(2, 7) % 11).cuda()
    model = model_with(encoding).cuda()
    for call in calls_of(model, tokens, p):
        call()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for call in calls_of(model, tokens, p):
            call()
    finally:
        torch.cuda.set_sync_debug_mode("default")


ODD = {"before 0": lambda p: p - 1, "beyond the last": lambda p: p * 500, "between two": lambda p: p / 2}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("how", ["another device", "compiled"])
def test_what_is_refused_is_never_another_entry(encoding, positions_for, kind, how, monkeypatch):
    """A table has nothing for such positions. Where a ValueError can't say so, NaN does."""
    p, (x, q, k, v) = ODD[kind](positions_for(encoding, 6)), draw(encoding, 6, 6)
    module = encoding.double()

    def embed(x, p):
        return module.embed(x, p)

    def attend(q, p):
        return attention(q, k, v, module, p, p)

    for call, data in ((embed, x), (attend, q)):
        try:
            expected = call(data, p)
        except ValueError as error:
            expected = error
        if how == "compiled":
            if not isinstance(expected, ValueError):
                continue  # tests/unit/test_compiled.py
            torch._dynamo.reset()
            call = torch.compile(call, backend="eager", fullgraph=True, dynamic=False)
        with monkeypatch.context() as patch:
            patch.setattr("tutorial_lib.encodings.positions.WITHOUT_WAITING", ())
            try:
                actual = call(data, p)
            except Exception as error:
                assert "integer" in str(error) and isinstance(expected, ValueError)
                continue
        if isinstance(expected, ValueError):
            assert actual.isnan().any()
        else:
            close(actual, expected, 1e-9)
