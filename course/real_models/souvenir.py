"""What an ending waits for, and what is left of it: one picture to keep, and a line to share."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from tutorial_lib import plots
from tutorial_lib.language import _

from ..checks import questions
from ..checks.answer import collect


def missing(*functions: Callable) -> str:
    """What keeps these answers from running, in a sentence; "" when each of them returns something."""
    for function in functions:
        name = getattr(function, "__name__", "")
        try:
            first = questions.find(name).cases(0)[0]
        except KeyError:  # a helper of the learner's
            continue
        outcome = collect(function, [first.args])[0]
        if outcome["kind"] in ("stub", "none"):
            return _("This ending waits for your `{name}`: write it first, then run this cell again.").format(
                name=name
            )
        if outcome["kind"] != "value":
            return _(
                "This ending needs a `{name}` that returns something; its check says what is wrong now."
            ).format(name=name)
    return ""


def ready(*functions: Callable) -> bool:
    """Can these answers be called? If not, one sentence is printed that says which one is missing."""
    text = missing(*functions)
    if text:
        print(text)
    return not text


def keep(fig: Figure, alt: str, line: str) -> None:
    """Show the picture, and below it the line, short enough for a chat and with nothing given away."""
    plots.show(fig, alt)
    print(_("To share: {line}").format(line=line))
