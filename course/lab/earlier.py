"""A name that is not known yet: which cell of the notebook makes it.

The desk's kernel loads this as an extension of IPython. Where a cell fails because an earlier one was not
run, such as the lesson's first, it says so in a sentence, in place of a traceback.
"""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

LONGEST = 60  # letters of a cell's first line


def made(source: str) -> set[str]:
    """The names that a cell makes: imports, assignments, functions, classes, loops; none if it is no Python.

    >>> sorted(made("import math as m\\nfor x in (1, 2):\\n    y = x"))
    ['m', 'x', 'y']
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic, or an unfinished turn
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
    return found


def sentence(name: str, failed: str, cells: list[str]) -> str:
    """What to run before the cell ``failed``, if an earlier one of ``cells`` makes ``name``; else ``""``."""
    from tutorial_lib.language import _

    before = cells[: cells.index(failed)] if failed in cells else cells
    for source in before:
        if name in made(source):
            line = source.strip().split("\n")[0]
            line = line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
            return _(
                "“{name}” comes from an earlier cell that has not been run since this notebook was opened; "
                "it begins “{line}”. Run that cell first, or all cells above this one: in the menu Run, "
                "“Run All Above Selected Cell”."
            ).format(name=name, line=line)
    return ""


def _cells() -> list[str]:
    """The code cells of this kernel's notebook, as it was last saved; none where that is unknown."""
    try:
        content = json.loads(Path(os.environ["JPY_SESSION_NAME"]).read_text(encoding="utf-8"))
        return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
    except (KeyError, OSError, ValueError):
        return []


def explain(shell, kind, problem, trace, tb_offset=None):
    """Show the sentence; for a name that no cell makes, what Python says."""
    failed = (shell.user_ns.get("In") or [""])[-1].strip()
    said = sentence(problem.name or "", failed, [cell.strip() for cell in _cells()])
    if said:
        shell._showtraceback(kind, problem, [said])
    else:
        shell.showtraceback((kind, problem, trace), tb_offset=tb_offset)


def load_ipython_extension(shell) -> None:
    shell.set_custom_exc((NameError,), explain)
