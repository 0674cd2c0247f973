"""What stands around the pages: cards of shared links, “Something wrong here?”, a 404 page, a site map."""

import functools
import html
import json
import os
import re
from pathlib import Path

import cards
import editions
import light
import methods
from sphinx import addnodes

from course.lesson.wrong import link as report_link
from tutorial_lib.language import ENGLISH, _, speaking

PICTURE = "_static/course.gif"
FONTS = """<script>for (const weight of [400, 700, 800]) {{
const href = `{root}_static/fonts/open-sans-${{weight}}.woff2`;
if (location.protocol === "file:")
new FontFace("Open Sans", `url(${{href}})`, {{ weight }}).load().then(face => document.fonts.add(face));
else document.head.append(Object.assign(document.createElement("link"), {{ rel: "preload", as: "font",
type: "font/woff2", crossOrigin: "", href }})); }}</script>
"""
"""A page asks for its letters before it knows its style sheet, so they are there when it is first drawn.
From a disk nothing can be asked for early, and waiting for letters costs nothing."""
LOST = """<!DOCTYPE html>
<html lang="{tag}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} · {project}</title>
<style>:root {{ color-scheme: light dark; font: 1.1rem/1.5 system-ui, sans-serif }}
body {{ max-width: 34em; margin: 15vh auto; padding: 0 1em }}</style>
{parts}</html>
"""
HERE_NOT = """<section lang="{tag}"><h1>{head}</h1>
<p>{moved}</p>
<ul><li><a href="{base}index.html">{first}</a></li><li><a href="{base}search.html">{search}</a></li></ul>
</section>
"""
MAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">
{places}</urlset>
"""


def plain(text: str, most: int | None = None) -> str:
    """HTML as text, for an attribute: without code, headings and menus, cut after a word.

    >>> plain("<h1>Title</h1><p>A <b>clock</b> with many hands.</p>", most=14)
    'A clock with'
    """
    text = re.sub(r"<(script|style|nav|pre|h\d).*?</\1>|<.*?>", " ", text, flags=re.S)
    text = re.sub(r"\s+", " ", html.unescape(text)).strip()
    return html.escape(text if most is None or len(text) <= most else text[:most].rsplit(" ", 1)[0])


def picture(app, name: str, title: str, body: str) -> str:
    """The address of the picture of a page's card, which is drawn here: all of the library's share one."""
    if name not in app.env.found_docs or name == "index":
        return os.environ["SITE_URL"] + PICTURE
    if name.startswith("api/"):
        name, title, body = "api", "tutorial_lib", ""
    path = Path(app.outdir) / "_static" / "cards" / f"{name.replace('/', '-')}.png"
    if name in methods.NAMES:
        figure = methods.coloured(name.removeprefix("methods/"))
    else:
        sources = {copied: source for source, (_pages, copied) in app.env.images.items()}
        figure = cards.first(body, {copied: Path(app.srcdir) / source for copied, source in sources.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cards.draw(title, app.config.project, figure, editions.LANGUAGE))
    return f"{app.config.html_baseurl}_static/cards/{path.name}"


def card(app, name, _template, context, _doctree):
    """What is shown where a link to the page is shared: title, first sentences, and the course's picture."""
    base, words = app.config.html_baseurl, plain(context.get("body", ""), 200)
    title = plain(context.get("title", ""))
    if name == "index":
        context["docstitle"] = ""  # it is the title of the page itself
    tags = {
        "description": words,
        "og:title": title,
        "og:description": words,
        "og:type": "website",
        "og:site_name": app.config.project,
    }
    if base:  # pictures of cards need full addresses
        tags |= {
            "og:url": f"{base}{name}.html",
            "og:image": html.escape(picture(app, name, html.unescape(title), context.get("body", ""))),
            "og:image:alt": title,
            "twitter:card": "summary_large_image",
        }
    root = "../" * name.count("/")
    context["metatags"] = (
        context.get("metatags", "")
        + FONTS.format(root=root)
        + "".join(
            f'<meta {"property" if key.startswith("og:") else "name"}="{key}" content="{value}">\n'
            for key, value in tags.items()
        )
    )
    if name == "search":
        app.add_js_file("search.js", defer="defer")
        app.add_js_file(None, body=f"const METHODS = {json.dumps(methods.search_words())};")


def wrong(app, name, _template, context, _doctree):
    """“Something wrong here?” at the end of each page, where the host of issues is known."""
    if "body" not in context:
        return
    place = f"{name}.html"
    if name in app.env.found_docs and not name.startswith(("api/", "methods/")):
        place = Path(app.env.doc2path(name)).relative_to(app.srcdir).as_posix()
    if link := report_link(place):
        context["body"] += f'<p class="course-note course-wrong">{link}</p>'


SIDE = re.compile(r">(\d\d) · [^<:：]+[:：]\s*(\W?\w)(?=(\w?))")
"""What each title of a side quest begins with: the head of their part says it, in any language."""
GROUP = re.compile(
    r'<p aria-level="2" class="caption" role="heading"><span class="caption-text">(.*?)</span></p>'
    r"\s*(<ul.*?</ul>)(?=\s*(?:<p aria-level|\Z))",
    re.S,
)


def groups(pages: str) -> str:
    """The list of all pages in parts that open: the part where the reader is, or else the lessons, is open.

    Above them is room for the reader's next lesson, which ``read.js`` knows.

    >>> head = '<p aria-level="2" class="caption" role="heading"><span class="caption-text">{}</span></p>'
    >>> groups(f"{head.format('Lessons')}<ul></ul>{head.format('Methods')}<ul><li>RoPE</li></ul>")[-65:]
    'group"><summary>Methods</summary><ul><li>RoPE</li></ul></details>'
    """

    def group(found: re.Match) -> str:
        here = " open" if ("current active" in found[2] if somewhere else not found.start()) else ""
        titles = side_quests(found[2]) if found.start() else found[2]
        return f'<details class="course-group"{here}><summary>{found[1]}</summary>{titles}</details>'

    somewhere = "current active" in pages
    next_one = f'<p class="course-next" hidden>{_("Next for you")}<br><a href="#"></a></p>'
    made = GROUP.sub(group, pages.strip())
    return next_one + made if made else made


def side_quests(titles: str) -> str:
    """Their list: the number of a lesson stands once, beside its first side quest.

    >>> side_quests("<a>04 · Side quest: axes</a><a>04 · Side quest: xPos</a><a>06 · Side quest: bugs</a>")
    '<a><i>04</i>Axes</a><a><i></i>xPos</a><a><i>06</i>Bugs</a>'
    """
    said = set()

    def short(found: re.Match) -> str:
        number, first, second = found.groups()
        shown = "" if number in said else number
        said.add(number)
        return f"><i>{shown}</i>{light.capital(first, second)}"

    return SIDE.sub(short, titles)


def beside(_app, _page, _template, context, _doctree):
    """The list of all pages, as the theme makes it, in :func:`groups`."""
    if "generate_toctree_html" in context:
        made = context["generate_toctree_html"]
        context["generate_toctree_html"] = lambda *args, **named: groups(str(made(*args, **named)))


@functools.cache
def parts(env) -> dict[str, str]:
    """The part of the list of all pages that each page stands in."""
    lists = env.get_doctree(env.config.root_doc).findall(addnodes.toctree)
    return {page: part["caption"] for part in lists for _title, page in part["entries"]}


def crumbs(app, name, _template, context, _doctree):
    """For ``crumbs.html``: the part that the page stands in, if no other page leads to it.

    On the first page: where each part begins.
    """
    context["part"] = parts(app.env).get(name, "")
    context["ways"] = {}
    for page, its in parts(app.env).items():
        context["ways"].setdefault(its, page)


def neighbours(_app, name, _template, context, _doctree):
    """A page of ``docs`` does not follow the last module of the library, which stands before it in the list.

    >>> context = {"prev": {"link": "../api/course.lab.html", "title": "course.lab"}, "next": None}
    >>> neighbours(None, "docs/setup", None, context, None)
    >>> context["prev"] is None
    True
    """
    for side in ("prev", "next"):
        its = context.get(side)
        if name.startswith("docs/") and its and re.search(r"\bapi/(?!index)", its["link"]):
            context[side] = None


def lost(project: str, base: str) -> str:
    """The page for lost addresses, in all languages: a server shows the same one everywhere."""
    parts = []
    for one in editions.LANGUAGES:
        with speaking(one):
            parts.append(
                HERE_NOT.format(
                    tag=editions.tag(one),
                    head=_("No token at this position"),
                    first=_("The first page"),
                    moved=_("There is no page at this address. Perhaps it has moved."),
                    search=_("Search"),
                    base=html.escape(base + ("" if one == ENGLISH else f"{one}/")),
                )
            )
    return LOST.format(tag=editions.tag(ENGLISH), title="Not here", project=project, parts="".join(parts))


def place(base: str, name: str, language: str, also: list[str]) -> str:
    """A page in the map, with the same page in other languages."""
    others = "".join(
        f'<xhtml:link rel="alternate" hreflang="{editions.tag(one)}" '
        f'href="{html.escape(base + editions.address(name, one))}"/>'
        for one in (also if len(also) > 1 else ())
    )
    return f"<url><loc>{html.escape(base + editions.address(name, language))}</loc>{others}</url>\n"


def finish(app, problem):
    """Where the site knows its own address: a page for lost addresses, and a map for search engines."""
    base, out = app.config.html_baseurl, Path(app.outdir)
    if problem or not base or app.builder.name != "html" or editions.LANGUAGE != ENGLISH:
        return
    (out / "404.html").write_text(lost(app.config.project, base), encoding="utf-8")
    found = [
        (name, [one for one in editions.LANGUAGES if editions.translated(name, one)])
        for name in sorted(app.env.found_docs)
    ]
    places = "".join(place(base, name, one, also) for name, also in found for one in also)
    (out / "sitemap.xml").write_text(MAP.format(places=places), encoding="utf-8")


def setup(app):
    app.connect("html-page-context", card)
    app.connect("html-page-context", wrong)
    app.connect("html-page-context", neighbours)
    app.connect("html-page-context", crumbs)
    app.connect("html-page-context", beside, priority=900)  # when the theme has made it
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
