"""“Something wrong here?”: a link that opens an issue with the place filled in.

Where issues are kept is a setting, the variable ``ISSUES_URL``: ``https://github.com/OWNER/NAME/issues/new``,
or, for a host that names its fields otherwise, an address with ``{title}`` and ``{body}`` in their places.
Without it there is no link.
"""

from __future__ import annotations

import html
import os
from urllib.parse import quote

ASKS = "Something wrong here?"
BODY = """Where: {place}

What it says:

What it should say, and how you know:
"""


def address(place: str) -> str:
    """The address of a new issue on a place, such as ``notebooks/06_rope.ipynb``; ``""`` without a host.

    >>> import os; os.environ["ISSUES_URL"] = "https://example.org/new?name={title}"
    >>> address("docs/use.md")
    'https://example.org/new?name=docs%2Fuse.md%3A%20'
    >>> del os.environ["ISSUES_URL"]; address("docs/use.md")
    ''

    Raises ValueError for a setting that is neither a web address nor a mail address.
    """
    host = os.environ.get("ISSUES_URL", "").strip()
    if not host:
        return ""
    if not host.startswith(("https://", "http://", "mailto:")):
        raise ValueError(f"ISSUES_URL={host!r}: it must begin with https://, http:// or mailto:")
    if "{title}" not in host and "{body}" not in host:
        host += ("&" if "?" in host else "?") + "title={title}&body={body}"
    filled = {"title": f"{place}: ", "body": BODY.format(place=place)}
    for name, text in filled.items():
        host = host.replace(f"{{{name}}}", quote(text, safe=""))
    return host


def link(place: str) -> str:
    """The link as HTML, or ``""`` without a host."""
    found = address(place)
    return f'<a href="{html.escape(found)}" rel="noopener">{ASKS}</a>' if found else ""
