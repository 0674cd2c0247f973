"""The language in which the library speaks to a reader: English, unless there is a catalog for another one.

``_("Right.")`` is the text in the reader's language. The environment variable ``TUTORIAL_LANG`` names that
language, or else the metadata of the running notebook; the language of the computer does not matter. Without
a catalog, or for a text that has no translation, you get the English one.

``python -m workshop.translation build`` writes the catalogs, ``build/<language>/texts.mo``.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import gettext
import json
import os
import re
import unicodedata
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from .optional import needs

ENGLISH = "en"
_chosen: contextvars.ContextVar[str] = contextvars.ContextVar("language", default="")
_catalogs: contextvars.ContextVar[Path | None] = contextvars.ContextVar("catalogs", default=None)
T = TypeVar("T")
NAMES = ("answer", "kind")
"""Keys of a question whose values are names in the code, and no texts."""


def language() -> str:
    """The reader's language, such as ``"en"``."""
    asked = _chosen.get() or os.environ.get("TUTORIAL_LANG")
    return asked or _of_notebook(os.environ.get("JPY_SESSION_NAME", ""))


@contextlib.contextmanager
def speaking(language: str, catalogs: Path | None = None) -> Iterator[None]:
    """In this block the library speaks this language, whatever the computer and the notebook say.

    ``catalogs`` is the folder that has a folder with ``texts.mo`` for each language, if not the usual one.
    """
    before, elsewhere = _chosen.set(language), _catalogs.set(catalogs or _catalogs.get())
    try:
        yield
    finally:
        _chosen.reset(before)
        _catalogs.reset(elsewhere)


def per_language(function: Callable[..., T]) -> Callable[..., T]:
    """``function``, with its results kept separately for each language that it is called in."""

    @functools.cache
    def kept(_language: str, *given: Hashable) -> T:
        return function(*given)

    @functools.wraps(function)
    def called(*given: Hashable) -> T:
        return kept(language(), *given)

    return called


@functools.cache
def _of_notebook(path: str) -> str:
    """What a notebook says of its language; Jupyter's server tells the kernel which file it runs."""
    try:
        return of_notebook(Path(path).read_bytes())
    except OSError:
        return ENGLISH


def of_notebook(content: bytes) -> str:
    """The language that a notebook's file names; English if it names none, or is no notebook."""
    try:
        found = json.loads(content)["metadata"]["language"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ENGLISH
    return found if re.fullmatch(r"[A-Za-z]+([_-][A-Za-z]+)*", str(found)) else ENGLISH


def folder() -> Path:
    """Where the catalogs are: a folder for each language."""
    return _catalogs.get() or Path(os.environ.get("TUTORIAL_LOCALE") or Path(__file__).parents[1] / "build")


@functools.cache
def _catalog(file: Path) -> gettext.NullTranslations:
    if not file.is_file():
        return gettext.NullTranslations()
    try:
        with file.open("rb") as stream:
            return gettext.GNUTranslations(stream)
    except Exception as problem:  # a damaged catalog raises many kinds
        warnings.warn(
            f"{file} is damaged ({problem}), so you read English; "
            f"`python -m workshop.translation build {file.parent.name}` makes it again",
            stacklevel=2,
        )
        return gettext.NullTranslations()


def _(text: str) -> str:
    """``text`` in the reader's language."""
    if not text or language() == ENGLISH:
        return text
    return _catalog(folder() / language() / "texts.mo").gettext(text)


def translated(value, key: str = ""):
    """A question as it is shown: each text in it in the reader's language, names and numbers as they are."""
    if isinstance(value, dict):
        return {name: translated(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [translated(each, key) for each in value]
    return _(value) if isinstance(value, str) and key not in NAMES else value


def joined(sentences: Iterable[str]) -> str:
    """Sentences as one text: a space between two, but none beside full-width punctuation."""
    text = ""
    for each in filter(None, sentences):
        wide = (
            text
            and unicodedata.east_asian_width(text[-1]) in "WF"
            or unicodedata.east_asian_width(each[0]) == "F"
        )
        text += each if wide or not text else f" {each}"
    return text


def column(texts: Sequence[str], width: int) -> list[str]:
    r"""The texts of a printed column, one below the other; a negative width aligns them to the right.

    All get as many wide characters, because fonts disagree on how many narrow ones are as wide as one.

    >>> column(["loss", "0.25"], 6), column(["损失", "0.25"], -6)
    (['loss  ', '0.25  '], ['  损失', '\u3000\u30000.25'])
    """
    wide = [sum(unicodedata.east_asian_width(letter) in "WF" for letter in text) for text in texts]
    most = max(wide)
    spaces = [
        "\u3000" * (most - n) + " " * (abs(width) - len(text) + n - 2 * most)
        for text, n in zip(texts, wide, strict=True)
    ]
    return [space + text if width < 0 else text + space for text, space in zip(texts, spaces, strict=True)]


def words(text: str) -> int:
    """How many words a text has. Chinese puts no spaces between them: two characters count as one."""
    return len(re.findall(r"[㐀-鿿]{2}|[^\s㐀-鿿\u3000-\u303f\uff00-\uffef]+", text))


def territory(language: str) -> str:
    """A language with the country that it is most likely from, as packages name their translations.

    >>> territory("zh"), territory("pt_BR"), territory("en")
    ('zh_CN', 'pt_BR', 'en_US')
    """
    with needs("course"):
        from babel.core import get_global

    own = language.replace("-", "_")
    likely = get_global("likely_subtags").get(own, own).split("_")
    return own if "_" in own else "_".join((likely[0], *(each for each in likely[1:] if len(each) == 2)))


def tag(language: str) -> str:
    """A language as a web page names it: ``"en"``, ``"zh-CN"``."""
    return language if language == ENGLISH else territory(language).replace("_", "-")
