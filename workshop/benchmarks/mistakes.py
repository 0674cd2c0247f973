"""Mechanical mistakes in each model answer, and what the checks make of them.

``python -m workshop.benchmarks.mistakes`` breaks the model answer of every question in one place at a time
(a sign, an axis, a constant, a dropped term, a dtype, …), lets the checks judge the result, and prints how
many are refused, how many get a name, and which pass. What passes for every seed and returns the same numbers
changes nothing (``x - 0`` for ``x + 0``). What passes for some seed although it returns other numbers is a
hole: the command ends with 1. ``--pairs 40`` makes two mistakes at once, each of which has a name when it is
made alone, and counts how often both are named.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import itertools
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import nbformat
import torch

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from course.checks.near import edits, put, rounded
from course.checks.question import Question, Verdict

from .. import exercises

SEEDS = range(6)
SECONDS = 0.5  # for one call of a broken answer: some never end


class Mistake(NamedTuple):
    """One broken answer: where, what, and the function."""

    what: str
    path: tuple
    answer: Callable


# ---- model answers ----
@functools.cache
def cells_of(exercise: str) -> tuple[str, ...]:
    """The code of a solved notebook: imports, helpers and answers; no checks and no demonstrations."""
    (name,) = (each for each in exercises.names() if each.startswith(f"ex{exercise}_"))
    notebook = nbformat.read(exercises.path(name, "solutions"), as_version=4)
    return tuple(
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "code"
        and (any(tag.startswith("answer:") for tag in cell.metadata.get("tags", [])))
    )


def space_of(exercise: str) -> dict:
    """The names that the model answers of an exercise see."""
    space: dict = {}
    exec("import math\nimport torch\nimport torch.nn.functional as F", space)
    for source in cells_of(exercise):
        exec(source, space)
    return space


def tree_of(question: Question) -> ast.FunctionDef:
    """The model answer as a syntax tree, without its docstring."""
    for source in cells_of(question.exercise):
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name == question.name:
                node.body = [
                    each
                    for each in node.body
                    if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
                ]
                node.returns = None
                for argument in node.args.args:
                    argument.annotation = None
                return node
    raise KeyError(question.name)


def _compiled(tree: ast.FunctionDef, exercise: str) -> Callable:
    space = space_of(exercise)
    module = ast.fix_missing_locations(ast.Module([tree], type_ignores=[]))
    exec(compile(module, f"<{tree.name}>", "exec"), space)
    return space[tree.name]


# ---- mistakes ----
def _edits(tree: ast.FunctionDef) -> Iterator[tuple[str, tuple, ast.AST]]:
    """``(what, path, new node)`` of every mistake."""
    for path, node, new in edits(tree):
        new = ast.fix_missing_locations(new)  # an assignment is not written out without its line
        yield f"{ast.unparse(node)} → {ast.unparse(new)}", path, new


def mistakes(question: Question) -> list[Mistake]:
    """Every mechanical mistake in the model answer that can be compiled."""
    tree, found = tree_of(question), {}
    for what, path, new in _edits(tree):
        found.setdefault((what, path), _made(tree, [(path, new)], question))
    return [Mistake(what, path, answer) for (what, path), answer in found.items() if answer]


def _made(tree, edits, question) -> Callable | None:
    broken = copy.deepcopy(tree)
    for path, new in sorted(edits, key=lambda edit: -len(edit[0])):
        put(broken, path, copy.deepcopy(new))
    try:
        answer = _compiled(broken, question.exercise)
    except (SyntaxError, ValueError, TypeError):
        return None
    answer.__globals__["_rounded"] = rounded
    return answer


# ---- what the checks say ----
def verdicts(question: Question, answer: Callable, seeds=SEEDS) -> Iterator[Verdict]:
    for seed in seeds:
        inputs = [case.args for case in question.cases(seed)]
        yield judge(question, seed, collect(answer, inputs, SECONDS))


def _same_numbers(question: Question, answer: Callable, seeds=SEEDS) -> bool:
    """Does it return what the model answer does, up to the last digits?"""
    model = _compiled(tree_of(question), question.exercise)
    for seed in seeds:
        for case in question.cases(seed):
            ours, theirs = (collect(each, [case.args], SECONDS)[0] for each in (model, answer))
            if ours["kind"] != theirs["kind"] or not _near(ours.get("value"), theirs.get("value")):
                return False
    return True


def _near(a, b) -> bool:
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        # Two roundings of 16 bits are one step apart; all others agree to six digits.
        step = 1e-2 if a.dtype.itemsize == 2 else 1e-5
        return a.shape == b.shape and torch.allclose(a.double(), b.double(), step, step, equal_nan=True)
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-6 * max(1.0, abs(a))
    return a == b


def tried(question: Question, show: bool = False) -> tuple[Counter, list[str], list[tuple[Mistake, str]]]:
    """``(totals, holes, the named ones)`` of one question."""
    totals, holes, named = Counter(), [], []
    for mistake in mistakes(question):
        found = list(verdicts(question, mistake.answer))
        passed = [each.passed for each in found]
        totals["made"] += 1
        if not any(passed):
            kinds = Counter((each.kind, each.name) for each in found)
            (kind, name), often = kinds.most_common(1)[0]
            totals["refused"] += 1
            totals[kind if often == len(found) else "mixed"] += 1
            if kind == "mistake" and often == len(found):
                named.append((mistake, name))
        elif all(passed) and _same_numbers(question, mistake.answer):
            totals["changes nothing"] += 1
            if show:
                print(f"  changes nothing: {mistake.what}")
        elif all(passed) and (found[0].kind == "equivalent" or question.faults is not None):
            totals["another right form"] += 1
        else:
            totals["HOLE"] += 1
            holes.append(f"{question.name}: {mistake.what} (passes for {sum(passed)} of {len(passed)} seeds)")
    return totals, holes, named


def pairs(question: Question, named: list[tuple[Mistake, str]], count: int) -> Counter:
    """Two named mistakes in one answer, at places that do not touch: how many do the checks name?"""
    totals: Counter = Counter()
    tree = tree_of(question)
    made = {(what, path): new for what, path, new in _edits(tree)}
    apart = [
        (a, b)
        for a, b in itertools.combinations(named, 2)
        if a[1] != b[1]
        and not (a[0].path[: len(b[0].path)] == b[0].path or b[0].path[: len(a[0].path)] == a[0].path)
    ]
    for (a, first), (b, second) in random.Random(1).sample(apart, min(count, len(apart))):
        both = [(one.path, made[one.what, one.path]) for one in (a, b)]
        if answer := _made(tree, both, question):
            found = next(verdicts(question, answer, SEEDS[:1]))
            told = len({first, second} & set(found.name.split(" + ")))
            totals["pairs"] += 1
            totals[
                "passed"
                if found.passed
                else f"{told} of 2 named"
                if told
                else "another name"
                if found.name
                else "no name"
            ] += 1
    return totals


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.benchmarks.mistakes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="questions, or exercises such as 06; by default all")
    parser.add_argument("--pairs", type=int, default=0, help="pairs of named mistakes for each question")
    parser.add_argument("--list", action="store_true", help="print what changes nothing")
    given = parser.parse_args(arguments)
    chosen = [q for q in questions.everything() if not given.names or {q.name, q.exercise} & set(given.names)]
    if not chosen:
        parser.error(f"no question or exercise {', '.join(given.names)}")
    everything, holes = Counter(), []
    for question in chosen:
        totals, open_, named = tried(question, given.list)
        if given.pairs:
            totals += pairs(question, named, given.pairs)
        everything += totals
        holes += open_
        counts = ", ".join(f"{n} {kind}" for kind, n in totals.items())
        print(f"{question.exercise} {question.name}: {counts}", flush=True)
    print("all: " + ", ".join(f"{n} {kind}" for kind, n in everything.items()))
    print(*holes, sep="\n")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main())
