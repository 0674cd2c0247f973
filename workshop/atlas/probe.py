"""What each layer does about order, asked by experiment: every layer reads the same vectors in every run.

A batch holds the same text many times. The model runs once as it is; then a hook gives every layer what it
read then, and each row changes it in one respect: other positions, two tokens swapped, old tokens replaced.
What the layer says of the last token differs from the first row, which changes nothing, or it does not.
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
        self.net, self.layers = net, found(net)
        takes = inspect.signature(net.forward).parameters
        ids = torch.randint(3, 90, (1, LENGTH), generator=torch.Generator().manual_seed(1))
        self.ids = ids.expand(len(ROWS), -1)
        self.alike = self.ids.clone()  # some layers look their tokens up again
        self.alike[[NUMBER["values"], NUMBER["state"]]] = ids[0, 0]
        self.more: dict[str, Any] = {"use_cache": False} if "use_cache" in takes else {}
        if "attention_mask" in takes:  # without one, positions with gaps count as texts packed side by side
            self.more["attention_mask"] = torch.ones_like(self.ids)
        self.takes_positions = "position_ids" in takes
        self.inputs: dict[Any, Tensor] = {}
        self.run(self.ids, places(), free=True)

    def run(
        self, ids: Tensor, positions: Tensor, free: bool = False
    ) -> tuple[list[Tensor], dict[int, Tensor]]:
        """What comes out of each call of a layer, and its queries; each reads what it read when ``free``."""
        calls: dict[nn.Module, int] = defaultdict(int)
        outs: list[Tensor] = []
        queries: dict[int, Tensor] = {}

        def before(layer, args, kwargs):
            key, calls[layer] = (layer, calls[layer]), calls[layer] + 1
            x = args[0] if args else kwargs["hidden_states"]
            if free:
                self.inputs[key] = x
            elif x.shape == self.inputs[key].shape:
                x = changed(self.inputs[key])
            return ((x, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": x})

        def after(layer, args, out):
            outs.append(out if isinstance(out, Tensor) else out[0])

        def note(q):
            queries.setdefault(len(outs), q)

        code = sys.modules[type(self.net).__module__]
        eager = getattr(code, "eager_attention_forward", None)

        def noted(module, q, *args, **kwargs):
            note(q)
            return eager(module, q, *args, **kwargs)

        handles = [each.register_forward_pre_hook(before, with_kwargs=True) for each in self.layers]
        handles += [each.register_forward_hook(after) for each in self.layers]
        if eager:
            code.eager_attention_forward = noted
        try:
            with torch.no_grad(), contextlib.nullcontext() if eager else Products(note):
                torch.manual_seed(2)
                self.net(ids, **({"position_ids": positions} if self.takes_positions else {}), **self.more)
        finally:
            for handle in handles:
                handle.remove()
            if eager:
                code.eager_attention_forward = eager
        return outs, queries


class Products(TorchFunctionMode):
    """Notes the queries of an attention that is written out: the first product of tokens with tokens."""

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
    """The dimension of the tokens; that of the rows is the one before it."""
    return next(d for d in range(1, x.dim()) if x.shape[d] == LENGTH and x.shape[d - 1] == len(ROWS))


def swapped(x: Tensor) -> Tensor:
    """Two neighbours, shortly before the last token, change places."""
    order = [*range(LENGTH - 3), LENGTH - 2, LENGTH - 3, LENGTH - 1]
    return x.index_select(0, torch.tensor(order))


def cut(width: int) -> Callable[[Tensor], Tensor]:
    """Other vectors in place of all that are older than ``width``."""
    n = LENGTH - width
    return lambda x: torch.cat([-1.3 * x[:n].flip(0), x[n:]])


def same(x: Tensor) -> Tensor:
    return x[:1].expand_as(x)


PLACE = torch.arange(LENGTH)
ROWS: dict[str, tuple[Tensor, Callable[[Tensor], Tensor]]] = {  # positions, and what becomes of the vectors
    "plain": (PLACE, lambda x: x),
    "shift": (PLACE + SHIFT, lambda x: x),
    "stretch": (PLACE * STRETCH, lambda x: x),
    "swap": (PLACE, swapped),
    **{f"cut{width}": (PLACE, cut(width)) for width in CUTS},
    "values": (PLACE, same),
    "state": (0 * PLACE, same),
}
NUMBER = {name: n for n, name in enumerate(ROWS)}


def places() -> Tensor:
    return PLACE.repeat(len(ROWS), 1)


def changed(x: Tensor) -> Tensor:
    """Each row of what a layer reads, changed as ``ROWS`` says."""
    rows = x.movedim((axis(x) - 1, axis(x)), (0, 1))
    new = torch.stack([change(row) for row, (_places, change) in zip(rows, ROWS.values(), strict=True)])
    return new.movedim((0, 1), (axis(x) - 1, axis(x))).contiguous()


def tokens(x: Tensor, row: str) -> Tensor:
    """One vector for each token of a row."""
    return x.movedim((axis(x) - 1, axis(x)), (0, 1))[NUMBER[row]].flatten(1)


def apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / a.abs().max().clamp(min=1e-30))


def probe(net: nn.Module) -> dict[str, Any]:
    """What every layer does about order, in numbers; changes are parts of the largest value."""
    its = Layers(net)
    moves = torch.stack([where for where, _change in ROWS.values()])
    outs, queries = its.run(its.alike, moves)
    try:
        far, _ = its.run(its.ids, places() + FAR)
    except (IndexError, RuntimeError, ValueError):  # a table of positions ends before
        far = [None] * len(outs)
    with sinks_off(net) as there:
        equal = its.run(its.alike, moves)[0] if there else outs
    layers = []
    for n, (out, away, alike) in enumerate(zip(outs, far, equal, strict=True)):
        last = {name: tokens(out, name)[-1] for name in ROWS}
        moved = {name: apart(last["plain"], one) for name, one in last.items()}
        piled = {name: apart(*tokens(alike, name)[[-1, 0]]) for name in ("values", "state")}
        layers.append(
            {key: moved[key] for key in ("shift", "stretch", "swap")}
            | piled
            | {
                "far": None if away is None else apart(last["plain"], tokens(away, "plain")[-1]),
                "share": share(queries.get(n)),
                "reach": next((width for width in CUTS if moved[f"cut{width}"] < USED), None),
            }
        )
    its.run(torch.full_like(its.ids, 5), places(), free=True)
    entered = tokens(next(iter(its.inputs.values())), "plain")
    return {"embedding": apart(entered[-1], entered[0]), "layers": layers}


@contextlib.contextmanager
def sinks_off(net: nn.Module):
    """Sinks take a share of the mean that falls with the length: equal tokens would look piled up."""
    kept = [(each, each.clone()) for name, each in net.named_parameters() if "sink" in name]
    for each, _was in kept:
        each.fill_(-1e4)
    yield kept
    for each, was in kept:
        each.copy_(was)


def share(q: Tensor | None) -> float | None:
    """Of the channels of a query, those that another position changes."""
    if q is None or q.shape[0] != len(ROWS):
        return None
    change = (q[NUMBER["plain"]] - q[NUMBER["shift"]]).abs().flatten(0, -2).amax(0)
    return round(float((change > 1e-9 * q.abs().max()).double().mean()), 4)
