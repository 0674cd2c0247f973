"""Every encoding compiled: one graph, the same numbers, the same gradients."""

import pytest
import torch
from packaging.version import Version

from tutorial_lib.attention import attention
from tutorial_lib.model import Config, Transformer

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
UPSTREAM = pytest.mark.xfail(
    Version(torch.__version__) < Version("2.13"),
    strict=True,
    raises=RuntimeError,
    reason="before 2.13, PyTorch compiles no float64 gradient of its own attention without a bias, on a CPU",
)


def compiled_and_not(encoding, positions, dtype=torch.float64, **options):
    module, g = encoding.to(dtype), torch.Generator().manual_seed(1)
    shapes = (2, 5, module.token_dim(16)), *[(2, 2, 5, 8)] * 3
    data = [torch.randn(shape, generator=g, dtype=dtype) for shape in shapes]

    def call(x, q, k, v, p):
        return module.embed(x, p), attention(q, k, v, module, p, p, causal=True)

    results = []
    torch._dynamo.reset()
    for f in (call, torch.compile(call, fullgraph=True, dynamic=False, **options)):
        leaves = [y.clone().requires_grad_() for y in data]
        out = f(*leaves, positions)
        loss = sum(y.sin().sum() for y in out)
        gradients = torch.autograd.grad(loss, leaves + list(module.parameters()), allow_unused=True)
        results.append([*out, *(y for y in gradients if y is not None)])
    for plain, compiled in zip(*results, strict=True):
        torch.testing.assert_close(compiled, plain, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_in_one_graph_with_gradients(encoding, positions_for):
    """Through functionalisation and decompositions, as every back end of the compiler gets it."""
    compiled_and_not(encoding, positions_for(encoding, 5) + 3, backend="aot_eager")


# One of each way to use positions: no other asks anything of a length that none of these asks.
KINDS = (
    "none learned rotary rotary-dynamic rotary-axial xpos clipped t5 fire shaw transformer-xl tupe-relative "
    "deberta cope temperature-rotary hybrid-mlp compose-2d"
).split()


@pytest.mark.parametrize("name", KINDS)
def test_of_any_length(name, all_encodings, positions_for):
    """A whole model in one graph that holds for every length: numbers of a module are symbols, too."""
    encoding = all_encodings[name]()
    model = Transformer(Config(11, 16, n_layers=1, n_heads=2), encoding).double()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    for n in (5, 8):
        tokens, p = torch.arange(2 * n).view(2, n) % 11, positions_for(encoding, n)
        given = None if encoding.axes == 1 else p
        with torch.no_grad():
            torch.testing.assert_close(compiled(tokens, given), model(tokens, given), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("rotary", torch.float32), pytest.param("rotary", torch.float64, marks=UPSTREAM), ("t5", torch.float64)],
    ids=str,
)
def test_to_machine_code(all_encodings, name, dtype):
    """The default back end is slow to compile, so only a rotation and a bias."""
    compiled_and_not(all_encodings[name](), torch.arange(5) + 3, dtype)
