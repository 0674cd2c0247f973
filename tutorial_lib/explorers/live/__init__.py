"""The front end of the explorers: modules in this folder, joined into one text by a few lines of Python.

``kit.js`` is what all explorers share, and each explorer has a module of its own. A widget gets the kit, its
explorer and ``widget.js`` (:func:`module`); a page gets the kit, all explorers and ``page.js``
(:func:`script`). Labels, values, limits and challenges are in Python only: :func:`table` hands them over.
How to add an explorer: ``docs/explorers.md``.

All of it speaks the reader's language (:func:`tutorial_lib.language.language`): a page in another one
needs only ``with speaking("…"): live.write(folder)``. A module writes its texts as templates with the tag
``speak``, which looks them up by the text itself, with ``{0}``, ``{1}`` … for its values (:func:`said`);
:func:`dictionary` says which texts of a page have a translation.
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...language import _, per_language

HERE = Path(__file__).parent
KIT = "kit"
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


# ---- the texts of a module ----
def said(source: str) -> list[str]:
    """The texts ``speak`…``` of a module, with ``{0}``, ``{1}`` … for the values in them.

    Raises ValueError for a use of ``speak`` that it cannot read: such a text would stay English unnoticed.

    >>> said("f(speak`Pair ${t} of ${many > 1 ? speak`all ${many}` : `one`}`)")
    ['Pair {0} of {1}', 'all {0}']
    """
    found = []
    for use in re.finditer(r"\bspeak\b", source):
        before = source[source.rfind("\n", 0, use.start()) + 1 : use.start()]
        if before.lstrip().startswith(("import {", "export function", "//", "*", "/**")) or (
            re.search(r"import \{[^}]*$", source[: use.start()])
        ):
            continue
        if source[use.end() : use.end() + 1] != "`":
            raise ValueError(f"speak is no tag of a text in {source[use.start() - 20 : use.end() + 20]!r}")
        text, _end = _template(source, use.end() + 1)
        if re.search(r"[\\\n]", text) or not text.strip():
            raise ValueError(f"a text must stand in one line, without backslashes: {text!r}")
        found.append(text)
    return found


def _template(source: str, at: int) -> tuple[str, int]:
    """The template whose text begins at ``at``, its values as ``{n}``, and where it ends."""
    text, count = "", 0
    while at < len(source) and source[at] != "`":
        if source.startswith("${", at):
            at, text, count = _value(source, at + 2), text + f"{{{count}}}", count + 1
            continue
        if source[at] in "{}":
            raise ValueError(f"a text has no braces of its own: {text + source[at : at + 20]!r}")
        text, at = text + source[at : at + 1 + (source[at] == "\\")], at + 1 + (source[at] == "\\")
    if at >= len(source):
        raise ValueError(f"a text does not end: {text[:60]!r}")
    return text, at + 1


def _value(source: str, at: int) -> int:
    """Where the value that begins at ``at`` ends: behind its closing brace."""
    depth = 1
    while at < len(source):
        sign = source[at]
        if sign == "`":
            at = _plain(source, at + 1)
            continue
        if sign in "\"'":
            close = re.compile(rf"(?:[^{sign}\\\n]|\\.)*{sign}").match(source, at + 1)
            if not close:
                break
            at = close.end()
            continue
        depth += (sign == "{") - (sign == "}")
        at += 1
        if not depth:
            return at
    raise ValueError(f"a value does not end: {source[max(0, at - 40) : at]!r}")


def _plain(source: str, at: int) -> int:
    """Where a template inside a value ends; it may hold any characters."""
    while at < len(source) and source[at] != "`":
        at = _value(source, at + 2) if source.startswith("${", at) else at + 1 + (source[at] == "\\")
    return at + 1


@functools.cache
def messages(name: str) -> tuple[str, ...]:
    """The texts of one module, such as ``"kit"``."""
    return tuple(dict.fromkeys(said((HERE / f"{name}.js").read_text(encoding="utf-8"))))


def texts(explorer) -> Iterator[str]:
    """The texts of an explorer that the browser gets from Python: labels, choices, challenge, and others."""
    for name, parameter in explorer.parameters.items():
        yield parameter.label or name
        for each in map(parameter.text, parameter.values) if hasattr(parameter, "values") else ():
            if re.search("[A-Za-z]{2}", each):
                yield each
    yield explorer.challenge


def translations(texts: Iterable[str]) -> dict[str, str]:
    """Those of ``texts`` that have a translation in the reader's language, with it."""
    return {text: other for text in texts if (other := _(text)) != text}


def dictionary(*names: str) -> dict[str, str]:
    """The texts of the modules ``names`` that have a translation in the reader's language."""
    return translations(text for name in names for text in messages(name))


def learned(*names: str) -> str:
    """JavaScript that tells the kit this dictionary; nothing in English."""
    known = dictionary(*names)
    return f"kit.learn({compact(known)});\n" if known else ""


# ---- what a widget and a page get ----
def joined(*names: str) -> str:
    """The kit as ``kit``, and these explorers as ``explorers``, by name."""
    return lean(
        f"const kit = {scope(KIT)};\n{learned(KIT, *names)}const explorers = {{\n"
        + "".join(f"{name}: {scope(name)}.{name},\n" for name in names)
        + "};\n"
    )


def shown(text: str) -> str:
    """A text in the reader's language; what stands after ‖ is a note for translators."""
    return text.partition("‖")[0] if (said := _(text)) == text else said


def table(explorer) -> dict[str, Any]:
    """What the browser gets from Python: the table of parameters, the challenge, constants and bulk."""
    parameters: dict[str, Any] = {}
    for name, parameter in explorer.parameters.items():
        entry = parameters[name] = {"label": shown(parameter.label or name), "start": parameter.start}
        if hasattr(parameter, "most"):
            entry |= {"most": parameter.most, "keys": list(parameter.keys)}
        elif hasattr(parameter, "size"):
            entry["size"] = None if callable(parameter.size) else parameter.size
        else:
            entry |= {
                "values": list(parameter.values),
                "texts": [_(parameter.text(value)) for value in parameter.values],
            }
            entry |= {"menu": True} if getattr(parameter, "menu", False) else {}
    return {
        "python": explorer.__name__,
        "parameters": parameters,
        "challenge": _(explorer.challenge),
        **explorer.constants(),
        **explorer.bulk(),
    }


def compact(value) -> str:
    """JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@per_language
def module(explorer) -> str:
    """The module of one explorer for anywidget; it has no address that it could import from."""
    data = {explorer.front: table(explorer)}
    return (
        joined(explorer.front)
        + f"const data = {compact(data)};\n"
        + lean((HERE / "widget.js").read_text(encoding="utf-8"))
    )


@per_language
def part(explorer) -> str:
    """The script of one explorer, with all that it gets from Python; a page loads it when it shows it."""
    data, known = compact(table(explorer)), dictionary(explorer.front)
    told = f",\ntexts: {compact(known)}" if known else ""
    return lean(
        f"(window.liveExplorers ??= {{}}).{explorer.front} = {{\n"
        f"make: kit => {scope(explorer.front)}.{explorer.front},\ndata: {data}{told} }};\n"
    )


def script(explorers: Iterable = ()) -> str:
    """The script of a page; plain, because browsers load no module from a disk.

    An explorer that is not among ``explorers`` is loaded from its own file, beside this one, when shown.
    """
    page = lean((HERE / "page.js").read_text(encoding="utf-8"))
    kit = lean(f"const kit = {scope(KIT)};\n{learned(KIT)}")
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
    """The live explorers: those whose class names a module here."""
    from ... import explorers

    found = (getattr(explorers, name) for name in explorers.__all__)
    return [each for each in found if getattr(each, "front", "")]
