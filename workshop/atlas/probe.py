"""What each layer does about order, asked by experiment: every layer reads the same vectors in every run.

The model runs once as it is. In each later run a hook gives every layer what it read then, changed in one
respect: other positions, two tokens swapped, old tokens replaced. What the layer says of the last token has
changed, or it has not.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

LENGTH = 24
SHIFT, FAR, STRETCH = 100, 20_000, 3
CUTS = (1, 2, 4, 8, 16)
USED, ABSOLUTE = 1e-6, 0.02


class Layers:
    """The layers of a model, and what goes in and out of them."""

    def __init__(self, net: nn.Module):
        self.net = net
        takes = inspect.signature(net.forward).parameters
        self.takes_positions = "position_ids" in takes
        self.more: dict[str, Any] = {"use_cache": False} if "use_cache" in takes else {}
        if "attention_mask" in takes:  # without one, positions with gaps count as texts packed side by side
            self.more["attention_mask"] = torch.ones(1, LENGTH, dtype=torch.long)
        self.ids = torch.randint(3, 90, (1, LENGTH), generator=torch.Generator().manual_seed(1))
        self.layers = found(net)
        self.number = {layer: n for n, layer in enumerate(self.layers)}

    def run(self, change: Callable[[Tensor], Tensor] | None = None, ids=None, positions=None, free=False):
        """What comes out of each call of a layer, or goes in if ``free``; ``change`` is made of what it reads."""
        calls: dict[nn.Module, int] = defaultdict(int)
        outs: list[Tensor] = []
        queries: dict[int, Tensor] = {}
        now = [-1]

        def before(layer, args, kwargs):
            key, calls[layer] = (layer, calls[layer]), calls[layer] + 1
            now[0] = len(outs)
            x = args[0] if args else kwargs["hidden_states"]
            if free:
                self.inputs[key] = x
            elif x.shape == self.inputs[key].shape:
                x = self.inputs[key] if change is None else change(self.inputs[key])
            return ((x, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": x})

        def after(layer, args, kwargs, out):
            outs.append(out if isinstance(out, Tensor) else out[0])

        handles = [
            handle
            for layer in self.layers
            for handle in (
                layer.register_forward_pre_hook(before, with_kwargs=True),
                layer.register_forward_hook(after, with_kwargs=True),
            )
        ]
        code = sys.modules[type(self.net).__module__]
        eager = getattr(code, "eager_attention_forward", None)

        def noted(module, q, *args, **kwargs):
            queries.setdefault(now[0], q)
            return eager(module, q, *args, **kwargs)

        if eager:
            code.eager_attention_forward = noted
        seen = Products(lambda q: queries.setdefault(now[0], q)) if not eager else contextlib.nullcontext()
        given = {"position_ids": positions} if self.takes_positions and positions is not None else {}
        try:
            with torch.no_grad(), seen:
                torch.manual_seed(2)
                self.net(self.ids if ids is None else ids, **given, **self.more)
        finally:
            for handle in handles:
                handle.remove()
            if eager:
                code.eager_attention_forward = eager
        return outs, queries

    def first(self):
        self.inputs: dict[Any, Tensor] = {}
        return self.run(free=True)


class Products(TorchFunctionMode):
    """Notes the queries of an attention that is written out: products of one vector a token with one a token."""

    def __init__(self, note: Callable[[Tensor], Any]):
        super().__init__()
        self.note = note

    def __torch_function__(self, func, kinds, args=(), kwargs=None):
        if len(args) > 1 and all(isinstance(x, Tensor) and x.dim() >= 3 for x in args[:2]):
            q, k = args[:2]
            if q.shape[-2] == LENGTH and (q.shape[-1], LENGTH) in (k.shape[-2:], (k.shape[-1], k.shape[-2])):
                if getattr(func, "__name__", "") in (
                    "matmul",
                    "__matmul__",
                    "bmm",
                    "scaled_dot_product_attention",
                ):
                    self.note(q)
        return func(*args, **kwargs or {})


def found(net: nn.Module) -> list[nn.Module]:
    """The layers: of the lists of equal-looking parts that run, the one with the most weights."""
    lists = [part for part in net.modules() if isinstance(part, nn.ModuleList) and len(part) > 0]
    return list(max(lists, key=lambda part: sum(p.numel() for p in part.parameters())))


def axis(x: Tensor) -> int:
    """The dimension of the tokens."""
    return next(d for d in reversed(range(x.dim() - 1)) if x.shape[d] == LENGTH)


def at(x: Tensor, places) -> Tensor:
    return x.index_select(axis(x), torch.as_tensor(places))


def swapped(a: int, b: int) -> Callable[[Tensor], Tensor]:
    order = list(range(LENGTH))
    order[a], order[b] = b, a
    return lambda x: at(x, order)


def cut(width: int) -> Callable[[Tensor], Tensor]:
    """Other tokens in place of all that are older than ``width``: those that there are, the other way round."""
    n = LENGTH - width
    return lambda x: torch.cat([-1.3 * at(x, range(n)).flip(axis(x)), at(x, range(n, LENGTH))], axis(x))


def same(x: Tensor) -> Tensor:
    return at(x, [0] * LENGTH)


def probe(net: nn.Module) -> dict[str, Any]:
    its = Layers(net)
    place = torch.arange(LENGTH)[None]
    its.first()
    base, q0 = its.run(positions=place)
    size = [float((at(out, [-1 + LENGTH])).abs().max()) for out in base]

    def moved(outs: list[Tensor]) -> list[float]:
        last = [LENGTH - 1]
        return [
            float((at(a, last) - at(b, last)).abs().max()) / max(s, 1e-30)
            for a, b, s in zip(outs, base, size, strict=True)
        ]

    def told(positions):
        try:
            outs, queries = its.run(positions=positions)
            return moved(outs), queries
        except (IndexError, RuntimeError, ValueError):
            return [None] * len(base), {}

    shift, queries = told(place + SHIFT)
    stretch, _ = told(place * STRETCH)
    far, _ = told(place + FAR)
    shares = [share(q0.get(n), queries.get(n)) for n in range(len(base))]
    swap = moved(its.run(swapped(LENGTH - 2, LENGTH - 3), positions=place)[0])
    old = moved(its.run(swapped(3, 7), positions=place)[0])
    reached = [moved(its.run(cut(width), positions=place)[0]) for width in CUTS]
    sinks = [(each, each.clone()) for name, each in net.named_parameters() if "sink" in name]
    for each, _ in sinks:
        each.fill_(-1e4)
    values, state = (
        [float((at(x, [LENGTH - 1]) - at(x, [0])).abs().max() / x.abs().max()) for x in outs]
        for outs in (its.run(same, positions=where)[0] for where in (place, 0 * place))
    )
    for each, was in sinks:
        each.copy_(was)
    one = torch.full_like(its.ids, 5)
    saved, its.inputs = its.inputs, {}
    its.run(ids=one, free=True)
    entered = next(iter(its.inputs.values()))
    its.inputs = saved
    table = float((at(entered, [LENGTH - 1]) - at(entered, [0])).abs().max() / entered.abs().max())
    layers = [
        {
            "shift": shift[n],
            "stretch": stretch[n],
            "far": far[n],
            "swap": swap[n],
            "swap_old": old[n],
            "state": state[n],
            "values": values[n],
            "share": shares[n],
            "reach": next((w for w, r in zip(CUTS, reached, strict=True) if r[n] < USED), None),
        }
        for n in range(len(base))
    ]
    return {"embedding": table, "layers": layers}


def share(q: Tensor | None, turned: Tensor | None) -> float | None:
    """Of the channels of a query, those that another position changes."""
    if q is None or turned is None:
        return None
    change = (q - turned).abs().flatten(0, -2).amax(0)
    return round(float((change > 1e-9 * q.abs().max()).double().mean()), 4)
