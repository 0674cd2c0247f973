"""What a student wrote, as HTML that is safe to open: for feedback pages and for nbgrader's formgrader.

`markdown2html` takes the place of nbconvert's filter of that name; a class folder's
``nbgrader_config.py`` registers it, so that written answers cannot run anything in a teacher's browser.
"""

from __future__ import annotations

import functools
import html
import re

from jinja2 import pass_context

MOST_LETTERS = 20_000  # of one cell; a longer one is shown as it was typed
MOST_TAGS = 2_000  # the same: thousands of tags inside each other take minutes
TEXT = frozenset(
    "p br hr em strong b i u s del ins sub sup small mark kbd code pre span div blockquote "
    "ul ol li dl dt dd h1 h2 h3 h4 h5 h6 table caption thead tbody tfoot tr th td a img".split()
)
ATTRIBUTES = {
    "a": {"href": r"(?i)(https?://|mailto:|#)\S*", "title": r"(?s).*"},
    "img": {"src": r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=]+", "alt": r"(?s).*", "title": r"(?s).*"},
    "ol": {"start": r"\d{1,6}"},
    "td": {"colspan": r"\d{1,2}", "rowspan": r"\d{1,2}"},
    "th": {"colspan": r"\d{1,2}", "rowspan": r"\d{1,2}"},
    # the colours of highlighted code; any other class might be one of the page's own, such as a fixed bar
    "div": {"class": r"highlight"},
    "span": {"class": r"[a-z]{1,2}\d?"},
}
STYLES = ("color", "background-color", "font-style", "font-weight", "text-align", "text-decoration")


def _allowed(tag: str, name: str, value: str) -> bool:
    if name == "style":
        return True  # what of it stays is said by STYLES
    pattern = ATTRIBUTES.get(tag, {}).get(name)
    return pattern is not None and re.fullmatch(pattern, value) is not None


@functools.cache
def _cleaner():
    import bleach
    from bleach.css_sanitizer import CSSSanitizer

    styles = CSSSanitizer(allowed_css_properties=STYLES, allowed_svg_properties=[])
    return bleach.Cleaner(
        tags=TEXT, attributes=_allowed, css_sanitizer=styles, protocols={"http", "https", "mailto", "data"}
    )


def clean(markup: str) -> str:
    """HTML with nothing left but text, tables, lists, code, links to other sites and embedded pictures.

    No script, handler, form, frame, SVG, id, remote picture or style that could cover the page. A tag
    that is not allowed is shown as text. TeX between dollar signs stays as it is.

    >>> clean('<b onclick="x()">bold</b> <script>x()</script> $a_1$')
    '<b>bold</b> &lt;script&gt;x()&lt;/script&gt; $a_1$'
    """
    return _cleaner().clean(markup)


def plain(source: str) -> str:
    """The text as it was typed."""
    return f"<pre>{html.escape(source)}</pre>"


def render(source: str, attachments: dict | None = None) -> str:
    """Markdown as safe HTML, by nbconvert's own renderer and `clean`.

    ``attachments`` is the cell's (name → MIME type → base64). What is too long to render in good time,
    or cannot be rendered, is shown as it was typed.
    """
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    if len(source) > MOST_LETTERS or source.count("<") > MOST_TAGS:
        return plain(source)
    try:
        renderer = IPythonRenderer(escape=False, exclude_anchor_links=True, attachments=attachments or {})
        return clean(MarkdownWithMath(renderer=renderer).render(source))
    except Exception:  # a missing picture, markup nested too deeply: the teacher still has to see the answer
        return plain(source)


@pass_context
def markdown2html(context, source: str) -> str:
    """The Jinja filter: `render` with the attachments of the cell that the template is at."""
    cell = context.get("cell") or {}
    return render(source, cell.get("attachments"))
