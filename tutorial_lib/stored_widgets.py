"""Widgets that leave something to read where no kernel runs: on a web page, in print, on a slide."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from .optional import needs

with needs("course"):
    import ipywidgets as widgets

CELL = 'style="text-align:left;vertical-align:top"'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table, its text escaped and aligned to the left.

    >>> table(["x"], [["a < b"]])[-39:]
    'top">a &lt; b</td></tr></tbody></table>'
    """
    titles = "".join(f'<th scope="col" style="text-align:left">{html.escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td {CELL}>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


class Stored:
    """A mixin for widgets: besides the live view, their output carries what :meth:`stored` gives."""

    def stored(self) -> tuple[dict[str, str], dict]:
        """The contents by MIME type, and their metadata, as ``_repr_mimebundle_`` returns them."""
        raise NotImplementedError(f"{type(self).__name__} must give stored()")

    def _repr_mimebundle_(self, **kwargs):
        live = super()._repr_mimebundle_(**kwargs)  # a pair, a dictionary or nothing, by its version
        data, metadata = live if isinstance(live, tuple) else (live or {}, {})
        more, more_metadata = self.stored()
        return {**data, **more}, {**metadata, **more_metadata}


class StoredBox(Stored, widgets.VBox):
    """A box with an output that can be stored."""
