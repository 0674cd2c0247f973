"""Documents, files of Markdown, in another language: the README, the site's first page, pages of ``docs/``.

Their messages are blocks, as in a notebook (:mod:`pieces`). The glossary has one message for the sentence of
each term, the first page one for each title in its tables of contents, and comments in listings are messages.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tutorial_lib.encodings import registry

from . import ROOT, navigation, pieces
from .pieces import Say

README, INDEX, METHODS, GLOSSARY = "readme", "index", "methods", "glossary"
GUIDE = "instructor/"
"""The names of the guide's pages, which learners do not get, begin so."""
SITE = ROOT / "workshop" / "site"
TERM = re.compile(r'^\| (<a id="[^"]+"></a>)(.+?) \| (.+?) \| (.+?) \| \[(\d\d) (.+?)\]\((.+)\) \|$', re.M)
CAPTION = re.compile(r"^(:caption: )(.+)$", re.M)
ENTRY = re.compile(r"^(?!:)([\w/-]+)$", re.M)
LISTED = re.compile(r"^(```[^\n]*\n)(.*?)(^```$)", re.M | re.S)
ALT = re.compile(r'(<img [^>]*\balt=")([^"]+)')
COMMENT = re.compile(r"^((?:.*?\S +)?# )(.+)$", re.M)


@functools.cache
def paths() -> dict[str, Path]:
    """All documents that may be translated, by the names of their catalogs (``"instructor/hub"``)."""
    found = {README: ROOT / "README.md", INDEX: SITE / "index.md", METHODS: SITE / "methods.md"}
    docs = ROOT / "docs"
    pages = [*sorted(docs.glob("*.md")), *sorted((docs / GUIDE).glob("*.md"))]
    return found | {
        path.relative_to(docs).with_suffix("").as_posix(): path for path in pages if "." not in path.stem
    }


def read(name: str) -> str:
    return paths()[name].read_text(encoding="utf-8")


@functools.cache
def headings(name: str) -> list[str]:
    return re.findall(r"^#+ (.+?)\s*$", LISTED.sub("", read(name)), re.M)


def unclosed(formula: str) -> bool:
    """Whether a brace, or an environment, of the beginning of a formula is still open.

    >>> unclosed("c = {d"), unclosed("c = {d}")
    (True, False)
    """
    return any(formula.count(a) != formula.count(b) for a, b in (("{", "}"), (r"\begin", r"\end")))


def curly(text: str) -> str:
    """Text, HTML or JSON with the apostrophes of a printed page.

    >>> curly("I don't know T5's name")
    'I don’t know T5’s name'
    """
    return re.sub(r"(?<=[A-Za-z\d])'(?=[a-z])", "’", text)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it.

    >>> slug("One pair, by hand"), slug("Inside-or-outside-of-√d?")
    ('one-pair-by-hand', 'inside-or-outside-of-d')
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def heading(entry: str) -> str:
    """The title of what an entry in a table of contents names; of a module ``""``."""
    path = ROOT / f"{entry}.md"
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.M) if path.is_file() else None
    return found[1] if found else {"api/index": "The library"}.get(entry, "")


def contents(text: str) -> Iterator[str]:
    """The tables of contents of a page."""
    yield from (block for head, block, _ in LISTED.findall(text) if "{toctree}" in head)


def messages(name: str) -> Iterator[tuple[str, str, str]]:
    """``(text, place, note)`` of all messages of a document, in reading order."""
    text, file = read(name), paths()[name].name
    if name == GLOSSARY:
        yield from ((row[3], f"{file}#{row[0][7:-6]}", "title of a link") for row in TERM.findall(text))
        text = TERM.sub("", text)
    yield from ((each, file, "") for each in pieces.in_prose(text))
    yield from ((words, file, "alternative text") for _, words in ALT.findall(text))
    if name == METHODS:
        yield from ((each.title, f"methods/{each.page}", "") for each in registry.METHODS if each.title)
    for _, listing, _ in LISTED.findall(text):
        yield from ((words, file, "comment in code") for _, words in COMMENT.findall(listing))
    for block in contents(text):
        yield from ((words, "contents", "") for _, words in CAPTION.findall(block))
        yield from ((words, "contents", "") for entry in ENTRY.findall(block) if (words := heading(entry)))


def said(name: str, says: Callable[[str], Say], file: Path | None = None, text: str | None = None) -> str:
    """A document, or what is left of its ``text``, as its catalog has it; links are as from ``file``."""
    say, text = says(name), read(name) if text is None else text
    rows: list[str] = []
    if name == GLOSSARY:  # the other language comes first
        rows = [_row(found, says) for found in TERM.finditer(text)]
        text = TERM.sub("\0", text)
    text = LISTED.sub(
        lambda found: found[1] + COMMENT.sub(lambda line: line[1] + say(line[2]), found[2]) + found[3],
        pieces.plain(text, say),
    )
    text = CAPTION.sub(lambda line: line[1] + say(line[2]), text)
    text = ALT.sub(lambda image: image[1] + say(image[2]), text)
    for row in rows:
        text = text.replace("\0", row, 1)
    return text if file is None else moved(text, paths()[name].parent, file)


def _row(found: re.Match, says: Callable[[str], Say]) -> str:
    anchor, term, other, sentence, number, section, link = found.groups()
    say, lesson = says(GLOSSARY), Path(link.partition("#")[0]).stem
    mark = "" if say.knows(sentence) else f" <small>{say(pieces.MARK)}</small>"
    where = f"[{number} {says(lesson)(section)}]({link})"
    return f"| {anchor}{other} | {term} | {say(sentence)}{mark} | {where} |"


def moved(text: str, folder: Path, file: Path) -> str:
    """``text`` of ``folder`` with links as seen from ``file``; one to ``file`` leads to the English."""

    def link(found):
        path, _, anchor = found[2].partition("#")
        if re.match(r"\w+:", path) or not path:
            return found[0]
        target = (folder / path).resolve()
        target = folder / "README.md" if target == file else target
        return found[1] + Path(os.path.relpath(target, file.parent)).as_posix() + (anchor and f"#{anchor}")

    return re.sub(r'(\]\(|\bsrc=")([^)\s"]+)', link, text)


def term(anchor: str) -> str:
    """A term of the glossary in the other language, without what is in brackets."""
    return re.sub("（.*?）", "", navigation.terms()[anchor].chinese)
