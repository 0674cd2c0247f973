"""Answers that are one step away from the right one, made by rule.

A question's catalogue lists the mistakes that have a story. Many others are a slip in one place, or the right
answer to another input. They are too many to list, so they are made here when no entry of a catalogue fits:

* :func:`as_if`: the reference gets other arguments, such as positions that are one larger;
* :func:`one_place`: one operator, number, name or call in the reference is another one.

What is said of them is what was done, so it is true whenever the numbers agree.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import operator
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tutorial_lib.language import ENGLISH, _, speaking

from .question import Question, Wrong


class Near(NamedTuple):
    """A function, and the words for what is different about it, which are put together when it fits."""

    answer: Callable
    says: Callable[[], str]

    def wrong(self) -> Wrong:
        """As an entry of a catalogue, with a name in English."""
        with speaking(ENGLISH):
            name = self.says().split(": ", 1)[1].rstrip(".")
        return Wrong(name, self.answer, self.says())


# ---- another input ----
def _how(key: str) -> str:
    """What is done to an argument, as a learner reads it."""
    return {
        "one more": _("{name} is one larger"),
        "one less": _("{name} is one smaller"),
        "from the first": _("{name} is counted from its own first number"),
        "from the smallest": _("{name} is counted from its smallest number"),
        "rows": _("the numbers 0, 1, 2, … stand for {name}"),
        "sorted": _("{name} is sorted first"),
        "negative": _("{name} has the other sign"),
        "sizes": _("{name} is taken without its sign"),
        "clamped": _("{name} is never taken below 0"),
        "whole": _("{name} is cut to whole numbers"),
        "bfloat16": _("{name} is rounded to bfloat16"),
        "float16": _("{name} is rounded to float16"),
        "zeros": _("{name} is 0 everywhere"),
        "ones": _("{name} is 1 everywhere"),
        "inverted": _("True and False change places in {name}"),
        "below": _("nothing above the diagonal of {name} counts"),
        "diagonal": _("the diagonal of {name} is True"),
        "reversed": _("{name} is read in reverse order, along axis {axis}"),
        "backwards": _("{name} is read in reverse order"),
        "first": _("the first entry of {name}, along axis {axis}, is taken for all"),
        "transposed": _("{name} is transposed"),
        "twice": _("{name} is twice as large"),
        "half": _("{name} is half as large"),
        "squared": _("{name} is squared"),
        "root": _("{name} is replaced by its root"),
        "upside down": _("{name} is replaced by 1 / {name}"),
        "the rest": _("{name} is replaced by 1 − {name}"),
        "always": _("{name} is always {value}"),
        "exchanged": _("{name} and {other} change places"),
        "copied": _("{other} stands for {name}"),
    }[key]


def _floats(x: torch.Tensor) -> Iterator[tuple[str, Any]]:
    yield from (("negative", -x), ("sizes", x.abs()), ("whole", x.trunc()), ("zeros", 0 * x))
    yield from (("ones", x * 0 + 1), ("twice", 2 * x), ("half", x / 2), ("squared", x * x))
    yield from (("bfloat16", x.bfloat16().to(x.dtype)), ("float16", x.half().to(x.dtype)))


def _integers(x: torch.Tensor) -> Iterator[tuple[str, Any]]:
    yield from (("one more", x + 1), ("one less", x - 1), ("negative", -x), ("sizes", x.abs()))
    yield from (("clamped", x.clamp(min=0)), ("zeros", 0 * x))
    yield from (("bfloat16", x.bfloat16().long()), ("float16", x.half().float().long()))
    if x.numel():
        yield "from the smallest", x - x.min()
        yield "from the first", x - (x[..., :1] if x.ndim else x)
    if x.ndim:
        yield "rows", torch.arange(x.shape[0]).view(-1, *[1] * (x.ndim - 1)).expand_as(x).clone()
        yield "sorted", x.sort(-1).values


def _booleans(x: torch.Tensor) -> Iterator[tuple[str, Any]]:
    yield from (("inverted", ~x), ("ones", x | True))
    if x.ndim == 2:
        yield "below", x.tril()
        yield "diagonal", x | torch.eye(*x.shape, dtype=torch.bool)


def _orders(x: torch.Tensor) -> Iterator[tuple[str, Any]]:
    for axis in range(x.ndim):
        yield f"reversed {axis}", x.flip(axis)
        yield f"first {axis}", x.narrow(axis, 0, min(1, x.shape[axis])).expand_as(x).clone()
    if x.ndim >= 2:
        yield "transposed", x.mT


def _numbers(x: float) -> Iterator[tuple[str, Any]]:
    yield from (("one more", x + 1), ("one less", x - 1), ("twice", 2 * x), ("squared", x * x))
    yield "half", x // 2 if isinstance(x, int) else x / 2
    if isinstance(x, float):
        yield from (("negative", -x), ("the rest", 1 - x), ("whole", float(int(x))), ("sizes", abs(x)))
        if x > 0:
            yield from (("root", x**0.5), ("upside down", 1 / x))


def _others(value: Any) -> dict[str, Any]:
    """The same argument, changed in each of the ways that its kind allows."""
    if isinstance(value, torch.Tensor):
        kinds = (
            _booleans if value.dtype == torch.bool else _floats if value.is_floating_point() else _integers
        )
        return dict([*kinds(value), *_orders(value)])
    if isinstance(value, bool):
        return {"inverted": not value}
    if isinstance(value, (int, float)):
        return dict(_numbers(value))
    if isinstance(value, (list, tuple)):
        return {"backwards": value[::-1]}
    return {}


def as_if(question: Question, inputs: list[tuple]) -> Iterator[Near]:
    """The right answer, given other arguments than those in ``inputs``."""
    names = list(inspect.signature(question.reference).parameters)
    for place, name in enumerate(names[: len(inputs[0])]):
        values = [args[place] for args in inputs]
        if isinstance(values[0], dict):
            for key, one in values[0].items():
                yield from _as_if(question, [one], f'{name}["{key}"]', (place, key))
        else:
            yield from _as_if(question, values, name, (place,))
    for a, b in itertools.permutations(range(len(inputs[0])), 2):
        if all(type(args[a]) is type(args[b]) and _size(args[a]) == _size(args[b]) for args in inputs):
            given = {"name": f"`{names[a]}`", "other": f"`{names[b]}`"}
            yield Near(_given(question, (a,), operator.itemgetter(b)), _said("copied", given))
            if a < b:
                yield Near(_exchanged(question, a, b), _said("exchanged", given))


#: Numbers that an answer has instead of an argument, besides those of the other inputs.
USUAL: dict[type, tuple] = {int: (1,), float: (1.0, 10_000.0)}


def _as_if(question: Question, values: list, name: str, way: tuple) -> Iterator[Near]:
    for key in dict.fromkeys(key for value in values for key in _others(value)):
        kind, axis = (key[:-2], key[-1]) if key[-2:-1] == " " else (key, "")
        change = functools.partial(_changed, way=way, key=key)
        yield Near(_given(question, way, change), _said(kind, {"name": f"`{name}`", "axis": axis}))
    if isinstance(values[0], (bool, int, float, str)):
        for value in dict.fromkeys([*values, *USUAL.get(type(values[0]), ())]):
            said = _said("always", {"name": f"`{name}`", "value": repr(value)})
            yield Near(_given(question, way, functools.partial(_always, value)), said)


def _always(value: Any, _args: tuple):
    return value


def _changed(args: tuple, way: tuple, key: str):
    """The argument at ``way``, changed; ValueError where it can't be."""
    value = args[way[0]] if len(way) == 1 else args[way[0]][way[1]]
    changed = _others(value)
    if key not in changed:
        raise ValueError(key)
    return changed[key]


def _given(question: Question, way: tuple, change: Callable[[tuple], Any]) -> Callable:
    def answer(*args):
        value = change(args)
        if len(way) == 2:
            value = args[way[0]] | {way[1]: value}
        return question.reference(*args[: way[0]], value, *args[way[0] + 1 :])

    return answer


def _exchanged(question: Question, a: int, b: int) -> Callable:
    def answer(*args):
        given = list(args)
        given[a], given[b] = args[b], args[a]
        return question.reference(*given)

    return answer


def _size(value: Any):
    return (value.shape, value.is_floating_point()) if isinstance(value, torch.Tensor) else None


def _said(key: str, given: dict) -> Callable[[], str]:
    return lambda: _("These are the right numbers for another input: {change}.").format(
        change=_how(key).format(**given)
    )


# ---- one place of the reference ----
OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
NAMES = {
    "sin": ("cos",),
    "cos": ("sin",),
    "amax": ("amin", "mean", "sum"),
    "max": ("min",),
    "min": ("max",),
    "mean": ("sum", "amax"),
    "sum": ("mean",),
    "log": ("log2",),
    "sqrt": ("square",),
    "abs": ("square",),
    "clamp": ("fmod",),
    "floor": ("ceil", "round"),
    "float": ("half", "bfloat16"),
    "float32": ("float16", "bfloat16"),
    "float64": ("float32",),
    "cummax": ("cummin",),
    "argmax": ("argmin",),
    "chunk": ("split",),
    "zeros": ("ones",),
    "zeros_like": ("ones_like",),
    "ones_like": ("zeros_like",),
    "all": ("any",),
    "any": ("all",),
    "ones": ("zeros",),
    "softmax": ("log_softmax",),
    "long": ("float",),
    "flip": ("roll",),
}
#: Methods that may be forgotten: ``x.abs()`` becomes ``x``.
FORGOTTEN = {
    "abs",
    "float",
    "to",
    "clamp",
    "softmax",
    "mean",
    "sum",
    "masked_fill",
    "long",
    "flip",
    "flatten",
    "item",
    "transpose",
    "permute",
    "where",
    "norm",
    "mT",
    "T",
    "square",
    "sorted",
    "sort",
    "roll",
    "cos",
    "sin",
    "max",
    "amax",
    "min",
    "all",
    "any",
}


# ---- ways to break a node ----
def _broken(node: ast.AST, names: list[str]) -> Iterator[ast.AST]:
    """Other nodes that a slip could have put in the place of this one."""
    if isinstance(node, ast.BinOp):
        yield from (_with(node, op=other()) for other in OPERATORS.get(type(node.op), ()))
        if isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult, ast.Pow, ast.FloorDiv)):
            yield _with(node, left=node.right, right=node.left)
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from (_with(node, ops=[other()]) for other in COMPARISONS.get(type(node.ops[0]), ()))
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.IfExp):
        yield from (_with(node, body=node.orelse, orelse=node.body), node.body, node.orelse)
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node.value)
    elif isinstance(node, ast.Call):
        yield from _other_calls(node)
    elif isinstance(node, ast.Attribute) or isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _other_names(node, names)
    elif isinstance(node, ast.Slice):
        yield from (_with(node, **{field: None}) for field, end in ast.iter_fields(node) if end is not None)
    elif isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 2:
        yield _with(node, elts=node.elts[::-1])
    elif isinstance(node, ast.Assign) and len(node.targets) == 2:
        yield from (_with(node, targets=[target]) for target in node.targets)
    elif isinstance(node, ast.Return) and node.value:
        for dtype in ("float16", "bfloat16"):
            given: list[ast.expr] = [node.value, ast.Constant(dtype)]
            yield ast.Return(ast.Call(ast.Name("_rounded", ast.Load()), given, []))


def _with(node, **fields):
    """The same node with other parts."""
    return type(node)(**dict(ast.iter_fields(node)) | fields)


def _other_names(node: ast.Attribute | ast.Name, names: list[str]) -> Iterator[ast.AST]:
    if isinstance(node, ast.Attribute):
        yield from (_with(node, attr=other) for other in NAMES.get(node.attr, ()))
        if node.attr in ("T", "mT"):
            yield node.value
    else:
        others = [name for name in names if name != node.id] if node.id in names else []
        yield from (_with(node, id=other) for other in (*NAMES.get(node.id, ()), *others))


def _other_constants(value) -> Iterator[ast.Constant]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, (int, float)):
        others = [value + 1, value - 1, -value, 2 * value]
        if isinstance(value, float):
            others = [value * 1.01, -value, value * 10, value / 10, 0.0]
        yield from (ast.Constant(other) for other in dict.fromkeys(others) if other != value)


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Attribute) and node.func.attr in FORGOTTEN:
        yield node.func.value
    if len(node.args) == 2:
        yield ast.Call(node.func, node.args[::-1], node.keywords)
    if isinstance(node.func, ast.Name) and node.args and node.func.id in FORGOTTEN:
        yield node.args[0]
    for n in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, node.keywords[:n] + node.keywords[n + 1 :])


def _places(node, path=()) -> Iterator[tuple[tuple, ast.AST]]:
    """Every node below, with the way to it."""
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield (*path, field), value
            yield from _places(value, (*path, field))
        elif isinstance(value, list):
            for n, one in enumerate(value):
                if isinstance(one, ast.AST):
                    yield (*path, (field, n)), one
                    yield from _places(one, (*path, (field, n)))


def put(tree, path, new) -> None:
    """Replace the node at ``path``."""
    *way, last = path
    for step in way:
        tree = getattr(tree, step) if isinstance(step, str) else getattr(tree, step[0])[step[1]]
    if isinstance(last, str):
        setattr(tree, last, new)
    else:
        getattr(tree, last[0])[last[1]] = new


def edits(tree: ast.FunctionDef | ast.Assign) -> Iterator[tuple[tuple, ast.AST, ast.AST]]:
    """``(path, node, what could stand there instead)`` for every place of a function, but for its arguments.

    The defaults of a function that builds another one do count: they are a part of what it builds.
    """
    names = [argument.arg for argument in tree.args.args] if isinstance(tree, ast.FunctionDef) else []
    for path, node in _places(tree):
        if path[0] in ("args", "returns") and path[1:2] and path[1][0] not in ("defaults", "kw_defaults"):
            continue
        if not isinstance(node, ast.expr_context):
            yield from ((path, node, new) for new in _broken(node, names))


def rounded(value, dtype):
    """Numbers that passed through 16 bits."""
    if isinstance(value, (tuple, list)):
        return type(value)(rounded(one, dtype) for one in value)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(getattr(torch, dtype)).to(value.dtype)
    return torch.tensor(value).to(getattr(torch, dtype)).item() if isinstance(value, float) else value


#: What can be told without the names of arguments: a function, or a minus.
NAMED = ast.Call, ast.Attribute, ast.Name, ast.UnaryOp


@functools.lru_cache(maxsize=5)  # an exercise has five questions; each keeps about a thousand functions
def one_place(question: Question) -> list[Near]:
    """Right answers and what they call, with one place changed; compiled when it is tried."""
    found = []
    asked = tuple(inspect.signature(question.reference).parameters)
    for right in (question.reference, *(variant.answer for variant in question.variants)):
        if not isinstance(right, types.FunctionType) or right.__name__ == "<lambda>" or right.__closure__:
            continue
        parts = _parts(right)
        if any(_endless(node) for part in parts.values() for node in ast.walk(part)):
            continue
        for name, tree in parts.items():
            known = _meant(parts, name, right, asked)
            around = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
            for path, node, new in edits(tree):
                within = node if isinstance(node, ast.BinOp) else around[node]
                near = sorted({one.id for one in ast.walk(within) if isinstance(one, ast.Name)} & known)
                if near or isinstance(node, NAMED):  # a change that has no name at all says nothing
                    said = functools.partial(_said_of, node, new, tuple(near), frozenset(known))
                    found.append(Near(_Changed(right, parts, name, path, node, new), said))
    return found


def _endless(node: ast.AST) -> bool:
    """May this not come to an end, or grow without one, when something in it is changed?

    So it is with a loop that repeats a step, and with ``matrix_exp`` of huge numbers.
    """
    if isinstance(node, ast.For):
        return isinstance(node.target, ast.Name) and node.target.id.startswith("_")
    return isinstance(node, ast.While) or isinstance(node, ast.Attribute) and node.attr.startswith("matrix_")


def _meant(parts: dict[str, Any], name: str, right: Callable, asked: tuple[str, ...]) -> set[str]:
    """The names in one part that are arguments of the question there, too."""
    tree = parts[name]
    given = {one for each in ast.walk(tree) if isinstance(each, ast.arguments) for one in _names(each)}
    if name == right.__name__ or any(
        _names(each)[: len(asked)] == list(asked)
        for each in ast.walk(tree)
        if isinstance(each, ast.arguments)
    ):
        return given & {*asked}
    calls = [
        call
        for part in parts.values()
        for call in ast.walk(part)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name
    ]
    own = _names(tree.args) if isinstance(tree, ast.FunctionDef) else []
    same = (
        {
            one
            for one, value in zip(own, call.args, strict=False)
            if isinstance(value, ast.Name) and value.id == one
        }
        for call in calls
    )
    return set(asked).intersection(*same) if calls else set()


def _names(arguments: ast.arguments) -> list[str]:
    return [each.arg for each in arguments.args]


class _Changed:
    """The reference with one place changed."""

    def __init__(self, reference: Callable, parts: dict[str, ast.stmt], name: str, path, node, new):
        self.given = reference, parts, name, path, node, new

    def __call__(self, *args):
        return self.made(*args)

    @functools.cached_property
    def made(self) -> Callable:
        reference, parts, name, path, node, new = self.given
        put(parts[name], path, new)
        try:
            module = ast.fix_missing_locations(ast.Module([parts[name]], type_ignores=[]))
            changed = compile(module, "<near>", "exec")
        finally:
            put(parts[name], path, node)
        space = dict(reference.__globals__) | {"_rounded": rounded}
        for other, code in _compiled(reference).items():
            exec(changed if other == name else code, space)
        return space[reference.__name__]


@functools.cache
def _compiled(reference: Callable) -> dict[str, types.CodeType]:
    return {
        name: compile(ast.Module([part], type_ignores=[]), "<near>", "exec")
        for name, part in _parts(reference).items()
    }


@functools.cache
def _parts(reference: Callable) -> dict[str, Any]:
    """The function and all that it needs of its own module, in the order in which they stand there."""
    named = _statements(reference.__module__)
    needed, ahead = set(), [reference.__name__]
    while ahead:
        name = ahead.pop()
        if name in named and name not in needed:
            needed.add(name)
            ahead += [one.id for one in ast.walk(named[name]) if isinstance(one, ast.Name)]
    return {name: part for name, part in named.items() if name in needed}


@functools.cache
def _statements(module: str) -> dict[str, Any]:
    """The functions of a module, and what it makes by calling one, by their names."""
    written = ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")).body
    return {_name(part): part for part in written if _name(part)}


def _name(part: ast.stmt) -> str:
    """What a statement of a module defines; "" where that is no function, and not made by calling one."""
    if isinstance(part, ast.FunctionDef):
        return part.name
    if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call):
        (target,) = part.targets
        return target.id if isinstance(target, ast.Name) else ""
    return ""


def _said_of(node: ast.AST, new: ast.AST, near: tuple[str, ...], known: frozenset[str]) -> str:
    where = _(" (next to {names})").format(names=", ".join(f"`{name}`" for name in near)) if near else ""
    return _("A right answer gives your numbers when one place in it is changed: {change}.").format(
        change=_change(node, new, known) + where
    )


def _change(node: Any, new: Any, known: frozenset[str]) -> str:
    """What was done to one place, in words; ``known`` are the names that the learner knows."""
    if any(new is each for each in ast.walk(node)):
        return _left_out(node, new, known)
    if isinstance(node, ast.BinOp) and type(node.op) is type(new.op):
        return _("the two sides of {what} change places").format(what=_operation(node.op))
    if isinstance(node, ast.IfExp):
        return _("the two cases of a condition change places")
    if isinstance(node, (ast.Tuple, ast.List)):
        return _("two values change places")
    if isinstance(node, ast.Assign):
        return _("an assignment is left out")
    if isinstance(node, ast.Slice):
        return _("an end of a slice is left out")
    if isinstance(node, ast.Return):
        return _("what is returned passes through {dtype}").format(dtype=new.value.args[1].value)
    if isinstance(node, ast.Call):
        left = {each.arg for each in node.keywords} - {each.arg for each in new.keywords}
        if left:
            return _("{what} is left out").format(what=f"`{left.pop()}`")
        return _("the arguments of {what} change places").format(what=f"`{_called(node)}`")
    old, other = (_written(each) for each in (node, new))
    return _("{new} stands where {old} belongs").format(new=other, old=old)


def _left_out(node: Any, new: ast.AST, known: frozenset[str]) -> str:
    if isinstance(node, ast.BinOp):
        lost = node.right if new is node.left else node.left
        if isinstance(lost, ast.Constant) or isinstance(lost, ast.Name) and lost.id in known:
            return _("{part} is left out of {what}").format(
                part=f"`{ast.unparse(lost)}`", what=_operation(node.op)
            )
        return _("one side of {what} is left out").format(what=_operation(node.op))
    if isinstance(node, ast.IfExp):
        return _("one case of a condition is taken for both")
    if isinstance(node, ast.UnaryOp):
        what = _("a minus") if isinstance(node.op, ast.USub) else _("a negation")
    else:
        what = f"`{_called(node) if isinstance(node, ast.Call) else node.attr}`"
    return _("{what} is left out").format(what=what)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)


def _written(node: Any) -> str:
    """A name, a number or an operation as a reader knows it."""
    if isinstance(node, ast.BinOp):
        return _operation(node.op)
    if isinstance(node, ast.Compare):
        return {"Lt": "<", "LtE": "≤", "Gt": ">", "GtE": "≥", "Eq": "=", "NotEq": "≠"}[
            type(node.ops[0]).__name__
        ]
    if isinstance(node, ast.BoolOp):
        return _("an `and`") if isinstance(node.op, ast.And) else _("an `or`")
    return f"`{node.attr}`" if isinstance(node, ast.Attribute) else f"`{ast.unparse(node)}`"


def _operation(operator: ast.operator) -> str:
    return {
        "Add": _("a sum"),
        "Sub": _("a difference"),
        "Mult": _("a product"),
        "Div": _("a quotient"),
        "FloorDiv": _("a whole quotient"),
        "Mod": _("a remainder"),
        "Pow": _("a power"),
        "MatMult": _("a matrix product"),
        "BitAnd": _("an `and`"),
        "BitOr": _("an `or`"),
    }[type(operator).__name__]
