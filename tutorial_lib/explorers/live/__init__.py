"""The front end of the explorers: modules in this folder, joined to one text by a few lines of Python.

``kit.js`` is what all explorers share, and each explorer has a module of its own. A widget gets the kit, its
explorer and ``widget.js`` (:func:`module`); a page gets the kit, all explorers and ``page.js``
(:func:`script`). Labels, values, limits and challenges stand in Python only: :func:`table` hands them over.
How to add an explorer: ``docs/explorers.md``.
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./kit\.js";\n', re.M)
EXPORT = re.compile(r"^export (?:const|function) (\w+)", re.M)


def lean(source: str) -> str:
    """JavaScript without indentation, empty lines, and comments that have lines of their own.

    >>> lean("// why\\n  f();\\n\\n  /** what\\n   * it does */\\n  g(); // stays\\n")
    'f();\\ng(); // stays\\n'
    """
    source = re.sub(r"^[ \t]*(?://.*|/\*(?:.|\n)*?\*/[ \t]*)\n", "", source, flags=re.M)
    return re.sub(r"\n{2,}", "\n", re.sub(r"^[ \t]+", "", source, flags=re.M)).lstrip("\n")


def scope(name: str) -> str:
    """A module as a function that returns what it exports, so names of two modules cannot collide."""
    source = (HERE / f"{name}.js").read_text(encoding="utf-8")
    taken = "".join(f"const {{{names}}} = kit;\n" for names in IMPORT.findall(source))
    body = re.sub(r"^export ", "", IMPORT.sub("", source), flags=re.M)
    return f"(() => {{\n{taken}{body}return {{ {', '.join(EXPORT.findall(source))} }};\n}})()"


@functools.cache
def joined(*names: str) -> str:
    """The kit as ``kit``, and these explorers as ``explorers``, by name."""
    return lean(f"const kit = {scope('kit')};\nconst explorers = {{\n"
                + "".join(f"{name}: {scope(name)}.{name},\n" for name in names) + "};\n")


def table(explorer) -> dict[str, Any]:
    """What the browser has from Python: the table of parameters, the challenge, constants and bulk."""
    parameters: dict[str, Any] = {}
    for name, parameter in explorer.parameters.items():
        entry = parameters[name] = {"label": parameter.label or name, "start": parameter.start}
        if hasattr(parameter, "most"):
            entry |= {"most": parameter.most, "keys": list(parameter.keys)}
        elif hasattr(parameter, "size"):
            entry["size"] = None if callable(parameter.size) else parameter.size
        else:
            entry |= {"values": list(parameter.values), "texts": [*map(parameter.text, parameter.values)]}
            entry |= {"menu": True} if getattr(parameter, "menu", False) else {}
    return {"python": explorer.__name__, "parameters": parameters, "challenge": explorer.challenge,
            **explorer.constants(), **explorer.bulk()}


def compact(value) -> str:
    """JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@functools.cache
def module(explorer) -> str:
    """The module of one explorer for anywidget; it has no address that it could import from."""
    data = {explorer.front: table(explorer)}
    return (joined(explorer.front) + f"const data = {compact(data)};\n"
            + lean((HERE / "widget.js").read_text(encoding="utf-8")))


@functools.cache
def part(explorer) -> str:
    """The script of one explorer, with all that it has from Python; a page takes it when it shows it."""
    data = compact(table(explorer))
    return lean(f"(window.liveExplorers ??= {{}}).{explorer.front} = {{\n"
                f"make: kit => {scope(explorer.front)}.{explorer.front},\ndata: {data} }};\n")


def script(explorers: Iterable = ()) -> str:
    """The script of a page; plain, because browsers load no module from a disk.

    What is not among ``explorers`` is taken from its own file, beside this one, where a page shows it.
    """
    page = lean((HERE / "page.js").read_text(encoding="utf-8"))
    kit = lean(f"const kit = {scope('kit')};\n")
    return "".join(map(part, explorers)) + f'(() => {{\n"use strict";\n{kit}{page}}})();\n'


@functools.cache
def style() -> str:
    """The style sheet of all of them."""
    return re.sub(r"\s*\n\s*", "\n", (HERE / "live.css").read_text(encoding="utf-8"))


def place(name: str, params: Mapping[str, Any], inside: str = "", small: bool | str = False) -> str:
    """HTML that a page's script brings to life; ``inside`` is there without it.

    ``small=True`` fits a slide, ``small="toy"`` is an explorer's smallest form, for the opening of a page.
    """
    settings = html.escape(compact(dict(params)), quote=True)
    size = f' data-small="{small}"' if isinstance(small, str) else " data-small" * small
    return f'<div data-live="{name}" data-params="{settings}"{size}>{inside}</div>'


def write(folder: Path) -> None:
    """Write ``live.js``, ``live.css``, and a file for each explorer: all that pages need."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in everyone():
        (folder / f"live-{each.front}.js").write_text(part(each), encoding="utf-8")
    (folder / "live.js").write_text(script(), encoding="utf-8")
    (folder / "live.css").write_text(style(), encoding="utf-8")


def everyone() -> list:
    """The explorers that are live: their class names a module here."""
    from tutorial_lib import explorers

    found = (getattr(explorers, name) for name in explorers.__all__)
    return [each for each in found if getattr(each, "front", "")]
