"""What is left of an ending: one picture to keep, and a line to share."""

from __future__ import annotations

from matplotlib.figure import Figure

from tutorial_lib import plots
from tutorial_lib.language import _


def keep(fig: Figure, alt: str, line: str) -> None:
    """Show the picture, and below it the line, short enough for a chat and with nothing given away."""
    plots.show(fig, alt)
    print(_("To share: {line}").format(line=line))
