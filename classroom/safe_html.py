"""What a student wrote, as HTML that is safe to open: for feedback pages and for nbgrader's formgrader.

`markdown2html` takes the place of nbconvert's filter of that name; a class folder's
``nbgrader_config.py`` registers it, so that written answers cannot run anything in a teacher's browser.
"""

from __future__ import annotations

import base64
import functools
import html
import io
import re

from jinja2 import pass_context

from tutorial_lib.optional import needs

with needs("teach"):
    import nh3

MOST_LETTERS = 20_000  # of one cell; a longer one is shown as it was typed
MOST_SHOWN = 100_000  # letters of it
MOST_PICTURES = 5_000_000  # letters of the pictures in one cell: a page may hold a class's
MOST_FORMULAS = 100  # of one cell, and letters of one
MOST_TEX = 300
FORMULA = re.compile(r"\$\$(?P<shown>[^$]+)\$\$|\$(?P<inline>[^$\n]+)\$")
TEX = ((r"\\[bB]igg?[lr]?(?![A-Za-z])", ""), (r"\\sqrt ?(\w)", r"\\sqrt{\1}"), (r"\\tfrac", r"\\frac"))
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
    "*": {"style": r"(?is)(?!.*url)[\w\s#.,:;%()-]*"},  # no escapes; STYLES says what is kept of it
}
STYLES = {"color", "background-color", "font-style", "font-weight", "text-align", "text-decoration"}
NO_TAG = re.compile(rf"<(?![!?]|/?({'|'.join(TEXT)})(\s[^<]*|/)?>)", re.IGNORECASE)


def _allowed(tag: str, name: str, value: str) -> str | None:
    pattern = (ATTRIBUTES["*"] | ATTRIBUTES.get(tag, {}))[name]
    return value if re.fullmatch(pattern, value) else None


def clean(markup: str) -> str:
    """HTML with nothing left but text, tables, lists, code, links to other sites and embedded pictures.

    No script, handler, form, frame, SVG, id, remote picture or style that could cover the page. A tag
    that is not allowed is shown as text. TeX between dollar signs stays as it is.

    >>> clean('<b onclick="x()">bold</b> <script>x()</script> $a_1$')
    '<b>bold</b> &lt;script&gt;x()&lt;/script&gt; $a_1$'
    """
    return nh3.clean(
        NO_TAG.sub("&lt;", markup),
        tags=TEXT,
        clean_content_tags=set(),
        attribute_filter=_allowed,
        attributes={tag: set(patterns) for tag, patterns in ATTRIBUTES.items()},
        link_rel=None,
        url_schemes={"http", "https", "mailto", "data"},
        filter_style_properties=STYLES,
    )


def plain(source: str) -> str:
    """The text as it was typed, as much as anybody reads."""
    if more := len(source) - MOST_SHOWN:
        source = source[:MOST_SHOWN] + (
            f"\n… and {more} letters more, in the file itself" if more > 0 else ""
        )
    return f"<pre>{html.escape(source)}</pre>"


def render(source: str, attachments: dict | None = None) -> str:
    """Markdown as safe HTML, by nbconvert's own renderer and `clean`.

    ``attachments`` is the cell's (name → MIME type → base64). A text that would take too long to render,
    or cannot be rendered, is shown as it was typed.
    """
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    if len(source) > MOST_LETTERS:
        return plain(source)
    if sum(len(data) for bundle in (attachments or {}).values() for data in bundle.values()) > MOST_PICTURES:
        return plain(f"{source}\n… and pictures that are too large to be shown here, in the file itself")
    try:
        renderer = IPythonRenderer(escape=False, exclude_anchor_links=True, attachments=attachments or {})
        return clean(MarkdownWithMath(renderer=renderer).render(source))
    except Exception:  # a missing picture, markup nested too deeply: the teacher still has to see the answer
        return plain(source)


def page(source: str, attachments: dict | None = None) -> str:
    """`render` for a page of ours, which runs no script: formulas are pictures."""
    parts = re.split(r"(<[^<>]*>)", render(source, attachments))  # text, tag, text, …
    left, code = MOST_FORMULAS, 0

    def drawn(found: re.Match) -> str:
        nonlocal left
        left -= 1
        return _picture(html.unescape(found["shown"] or found["inline"])) if left >= 0 else found[0]

    for n, part in enumerate(parts):
        if n % 2:
            code += bool(re.match(r"<(pre|code)\b", part)) - bool(re.match(r"</(pre|code)\b", part))
        elif not code:
            parts[n] = FORMULA.sub(lambda found: drawn(found) or found[0], part)
    return "".join(parts)


@functools.lru_cache(maxsize=2000)
def _picture(tex: str) -> str:
    """A formula as a picture in the line, with its TeX for those who hear it; "" where it cannot be drawn."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.mathtext import math_to_image

    known = " ".join(tex.split())
    for pattern, instead in TEX:  # what matplotlib does not know
        known = re.sub(pattern, instead, known)
    buffer = io.BytesIO()
    try:
        if len(known) > MOST_TEX:
            return ""
        depth = math_to_image(f"${known}$", buffer, prop=FontProperties(size=16), dpi=3 * 72)
    except Exception:  # TeX of all kinds
        return ""
    png = buffer.getvalue()
    width = int.from_bytes(png[16:20], "big") / 3  # sharp, and as large as the text around it
    return (
        f'<img alt="{html.escape(tex.strip())}" src="data:image/png;base64,{base64.b64encode(png).decode()}" '
        f'width="{width:.0f}" style="vertical-align: {-depth / 16:.2f}em">'
    )


@pass_context
def markdown2html(context, source: str) -> str:
    """The Jinja filter: `render` with the attachments of the cell that the template is showing."""
    cell = context.get("cell") or {}
    return render(source, cell.get("attachments"))
