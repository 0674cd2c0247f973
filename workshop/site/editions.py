"""The site in several languages: what each holds, the switch between them, links from one into another.

Each language but English has a folder of its own, with the same names of pages. All notebooks and exercises
are there, translated or not; of everything else only what has a catalog in ``workshop/locale/``. The rest
is linked to.
"""

import functools
import html
import os
import re
from itertools import pairwise
from pathlib import Path

from babel import Locale
from sphinx import __file__ as sphinx_file
from sphinx import application
from sphinx.search.en import SearchEnglish

from tutorial_lib.language import ENGLISH, _, folder, language, speaking, tag, territory
from workshop import ROOT, documents, translation

LANGUAGE = language()
"""Of the site that is being made."""
LANGUAGES = os.environ.get("SITE_LANGUAGES", LANGUAGE).split()
"""Of all sites: `make.py` names them."""
ENGLISH_SITE = "https://english.invalid/"
"""Stands for the English site in a source, until the pages are written."""
NAMES = {documents.INDEX: "index", documents.METHODS: "methods/index"}


def setting(language: str) -> str:
    """A language as Sphinx names it: with its usual country, where Sphinx tells countries apart."""
    whole = territory(language)
    return whole if (Path(sphinx_file).parent / "locale" / whole).is_dir() else language


def name(language: str) -> str:
    """What a language calls itself."""
    return Locale.parse(language).get_display_name(language)


# ---- what there is ----
@functools.cache
def documents_of(language: str) -> dict[str, str]:
    """The pages that are no notebooks, with the names of their catalogs."""
    there = {*translation.catalogs(language)}
    found = {
        NAMES.get(one, f"docs/{one}"): one
        for one in documents.paths()
        if one in there and one != documents.README
    }
    return found


def there(page: str, language: str) -> bool:
    """Does the site of a language have this page?"""
    return (
        language == ENGLISH
        or page == "search"
        or page.startswith(("notebooks/", "exercises/"))
        or page in documents_of(language)
    )


def translated(page: str, language: str) -> bool:
    """Is the page written in the language?"""
    lesson = page.startswith(("notebooks/", "exercises/"))
    return there(page, language) and (
        language == ENGLISH or not lesson or page.rpartition("/")[2] in translation.catalogs(language)
    )


def address(page: str, language: str, start: str = "") -> str:
    """A page of the site of a language: its address from the page ``start``, or from the top."""
    up = "../" * (start.count("/") + (LANGUAGE != ENGLISH)) if start else ""
    return f"{up}{'' if language == ENGLISH else f'{language}/'}{page}.html"


# ---- sources ----
def source(page: str, path: Path, text: str, leave_out: re.Pattern | None = None) -> str:
    """The source of a page in the language of this site."""
    if LANGUAGE == ENGLISH:
        return leave_out.sub("", text) if leave_out else text
    if path.suffix == ".ipynb":
        made = folder() / LANGUAGE / path.relative_to(ROOT)
        return made.read_text(encoding="utf-8") if path.is_relative_to(ROOT) and made.is_file() else text
    if page not in documents_of(LANGUAGE):
        return text
    if leave_out:
        text = leave_out.sub("", text)
    return translation.document(documents_of(LANGUAGE)[page], translation.speakers(LANGUAGE), text=text)


def abroad(text: str, folder: str, known, moved) -> str:
    """``text`` of a page in ``folder``, with links to what only the English site has; ours has ``known``."""
    if LANGUAGE == ENGLISH:
        return text

    def link(found):
        path = os.path.normpath(f"{folder}/{found[1]}")
        page = moved.get(path.rpartition(".")[0], path.rpartition(".")[0])
        return found[0] if page in known else f"]({ENGLISH_SITE}{page}.html{found[2] or ''}"

    def entry(found):
        page = moved.get(found[1], found[1])
        title = documents.heading(found[1])
        if page in known or not title:
            return found[0]
        title = _("{title} (in English)").format(title=translation.speakers(LANGUAGE)(documents.INDEX)(title))
        return f"{title} <{ENGLISH_SITE}{page}.html>"

    text = re.sub(r"\]\(([^()\s#:]+\.(?:md|rst|ipynb))(#[^()\s]*)?", link, text)
    return re.sub(
        r"^```\{toctree\}\n.*?^```$",
        lambda block: documents.ENTRY.sub(entry, block[0]),
        text,
        flags=re.M | re.S,
    )


# ---- pages ----
def around(app, page, _template, context, _doctree):
    """The switch, and what tells search engines of the other languages."""
    base = os.environ.get("SITE_URL", "")
    context["editions"] = [
        {
            "href": address(page if there(page, other) else "index", other, page),
            "tag": tag(other),
            "name": name(other),
            "note": ""
            if there(page, other)
            else _("This page is there in English only; to the first page of the other language."),
        }
        for other in LANGUAGES
        if other != LANGUAGE
    ]
    also = [other for other in LANGUAGES if translated(page, other)]
    if LANGUAGE in also and len(also) > 1:
        context["metatags"] = context.get("metatags", "") + "".join(
            f'<link rel="alternate" hreflang="{tag(other)}" '
            f'href="{html.escape(base + address(page, other) if base else address(page, other, page))}">\n'
            for other in also
        )
    if LANGUAGE not in also and "body" in context:  # an English text in the frame of another language
        note = _("This lesson has not been translated yet; here it is in English.")
        context["body"] = f'<p class="course-note">{note}</p>\n' + context["body"].replace(
            "<section ", f'<section lang="{ENGLISH}" ', 1
        )
        if base:
            context["pageurl"] = base + address(page, ENGLISH)


def arrive(app, problem):
    """Links into the English site, once the pages are written, and sources to download in this language."""
    if problem or app.builder.name != "html" or LANGUAGE == ENGLISH:
        return
    out = Path(app.outdir)
    for path in out.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if ENGLISH_SITE in text:
            up = "../" * len(path.relative_to(out).parts)
            path.write_text(text.replace(ENGLISH_SITE, up), encoding="utf-8")
    index = out / "searchindex.js"  # a character as itself has 3 bytes, and as \u5916 it has 6
    text = index.read_text(encoding="utf-8")
    text = re.sub(r"\\u([3-9][0-9a-f]{3})", lambda code: chr(int(code[1], 16)), text)
    index.write_text(text, encoding="utf-8")
    for path in (out / "_sources").rglob("*.ipynb"):
        name = path.relative_to(out / "_sources")
        made, page = folder() / LANGUAGE / name, out / name.with_suffix(".html")
        if not translated(name.with_suffix("").as_posix(), LANGUAGE):  # the English one is there already
            path.unlink()
            text = page.read_text(encoding="utf-8")
            text = re.sub(r'href="((?:\.\./)*)_sources/', r'href="\1../_sources/', text)
            page.write_text(text, encoding="utf-8")
        elif made.is_file():
            path.write_bytes(made.read_bytes())


class Pairs(SearchEnglish):
    """What has no spaces between words is found by pairs of neighbouring characters, the rest as English.

    A list of words cuts one word in two ways, as its neighbours are, and does not know the words of a field.
    Pairs with a character that only joins others are left out, a fifth of the index. `scorer.js` cuts what
    is asked for in the same way.

    >>> Pairs({}).split("RoPE的外推能力，桶")
    ['RoPE', '外推', '推能', '能力', '桶']
    """

    lang = ""
    JOINS = {*"的了是在它这那就也都和与或"}
    RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+|[^\W\u3040-\u30ff\u3400-\u9fff]+")

    def split(self, text: str) -> list[str]:
        found = []
        for run in self.RUN.findall(text):
            whole = run[0] < "\u3040" or len(run) == 1
            found += [run] if whole else ["".join(two) for two in pairwise(run) if not self.JOINS & {*two}]
        return found


def every(text: str) -> dict[str, str]:
    """A text in each language of the site, by the language's tag."""
    said = {}
    for one in LANGUAGES:
        with speaking(one):
            said[tag(one)] = _(text)
    return said


def setup(app: application.Sphinx):
    for written_without_spaces in ("zh", "ja"):
        app.add_search_language(type("Search", (Pairs,), {"lang": written_without_spaces}))
    app.connect("html-page-context", around)
    app.connect("build-finished", arrive, priority=400)  # before the pages are made light
    return {"parallel_read_safe": True, "parallel_write_safe": True}
