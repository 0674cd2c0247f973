"""Widgets that leave something to read where no kernel runs: on a web page, in print, on a slide."""

from __future__ import annotations

import ipywidgets as widgets


class StoredBox(widgets.VBox):
    """A box whose output carries, beside the live view, what :meth:`stored` gives."""

    def stored(self) -> tuple[dict[str, str], dict]:
        """The contents by MIME type, and their metadata, as ``_repr_mimebundle_`` returns them."""
        raise NotImplementedError(f"{type(self).__name__} must give stored()")

    def _repr_mimebundle_(self, **kwargs):
        live = super()._repr_mimebundle_(**kwargs)  # a pair in some versions of ipywidgets
        data, metadata = live if isinstance(live, tuple) else (live, {})
        more, more_metadata = self.stored()
        return {**data, **more}, {**metadata, **more_metadata}
