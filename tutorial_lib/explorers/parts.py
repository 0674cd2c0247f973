"""What all explorers share: their parameters, and :class:`LiveExplorer`.

An explorer is a table of parameters, a challenge, and numbers from the library that a browser can't compute::

    class Waves(LiveExplorer):
        front = "waves"  # live/waves.js draws it, and says what is to be seen
        parameters = {
            "period": Steps((4, 8, 16), 8),
            "shape": Choice(("sine", "cosine"), "sine"),
            "x": Index(32, 0),
        }
        challenge = "Find a place where both shapes have the same height."
"""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..language import _
from ..optional import needs
from ..plots import SIGNED
from ..stored_widgets import Stored
from . import live

with needs("course"):
    import anywidget
    import numpy as np
    import traitlets


@functools.cache
def palette(count: int) -> str:
    """``count`` colours from −1 to 1, each as six hexadecimal digits."""
    return (SIGNED(np.linspace(0, 1, count))[:, :3] * 255).round().astype(np.uint8).tobytes().hex()


# ---- parameters: what may be chosen ----
@dataclass(frozen=True)
class Listed:
    """One of the listed ``values``, each shown as its ``text``."""

    values: tuple
    start: Any
    label: str = ""
    text: Callable[[Any], str] = str

    def allowed(self, _params: Mapping) -> Sequence:
        return self.values


@dataclass(frozen=True)
class Choice(Listed):
    """One of a few named values: buttons, or a menu with ``menu=True``."""

    menu: bool = False


@dataclass(frozen=True)
class Steps(Listed):
    """A slider over listed values, evenly spaced or not."""


@dataclass(frozen=True)
class Index:
    """A slider over 0 … ``size`` − 1: a number, an earlier parameter's name, or a function of those."""

    size: int | str | Callable[[Mapping], int]
    start: int = 0
    label: str = ""

    def allowed(self, params: Mapping) -> Sequence:
        return range(self.size(params) if callable(self.size) else params.get(self.size, self.size))


@dataclass(frozen=True)
class Text:
    """A line to type, of at most ``most`` characters; the browser decides what it means.

    ``keys`` are buttons that type what a keyboard may lack; ``samples`` stand for all texts in tests.
    """

    start: str
    label: str = ""
    most: int = 120
    samples: Sequence[str] = ()
    keys: Sequence[str] = ()

    def allowed(self, _params: Mapping) -> Sequence:
        return self.samples

    def takes(self, value) -> bool:
        return isinstance(value, str) and len(value) <= self.most


Parameter = Choice | Steps | Index | Text


# ---- the explorer ----
FIGURE = '<!-- Run the cell to see the figure. -->\n<figure class="explorer">{}</figure>'
"""HTML of a stored output, whose first line JupyterLab shows where an output has not been opened yet."""


class LiveExplorer(Stored, anywidget.AnyWidget):
    """An explorer that draws itself in the browser: ``live/<front>.js`` (`docs/explorers.md`).

    The browser has the words and the live numbers, which tests check against the library; it needs no kernel.
    Python sees ``params`` when they come to rest, and may set them (:meth:`move`). A stored output names
    the explorer and its settings, and a page that has the script brings it to life again.

    Raises ValueError for an unknown parameter or a value that it may not have.
    """

    front: ClassVar[str] = ""
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    challenge: ClassVar[str] = ""
    """A target in words; the browser measures whether the settings meet it."""
    params = traitlets.Dict().tag(sync=True)
    _css = live.style()

    @property
    def _esm(self) -> str:
        return live.module(type(self))

    @classmethod
    def constants(cls) -> dict[str, Any]:
        """What the browser needs and cannot compute: numbers, texts and lists of them."""
        return {}

    @classmethod
    def bulk(cls) -> dict[str, Any]:
        """More of these, so large that a page loads them from a file of their own."""
        return {}

    # -- settings --
    @classmethod
    def settings(cls, **some) -> dict[str, Any]:
        """All parameters: ``some`` checked, the others as they stand at the start."""
        return cls._complete(some, {name: p.start for name, p in cls.parameters.items()})

    @classmethod
    def _complete(cls, some: Mapping, others: Mapping) -> dict[str, Any]:
        if unknown := some.keys() - cls.parameters.keys():
            raise ValueError(
                f"{cls.__name__} has no parameter {', '.join(sorted(unknown))}; "
                f"it has {', '.join(cls.parameters)}"
            )
        params: dict[str, Any] = {}
        for name, parameter in cls.parameters.items():
            allowed = parameter.allowed(params)
            value = some.get(name, others[name])
            if isinstance(parameter, Text):
                if not parameter.takes(value):
                    raise ValueError(
                        f"{name}={value!r}: it must be a text of at most {parameter.most} characters"
                    )
                params[name] = value
                continue
            if value not in allowed:
                if name in some:
                    raise ValueError(f"{name}={value!r}: it must be one of {_listed(allowed)}")
                value = allowed[-1]  # an index past the end of what has become shorter
            params[name] = allowed[allowed.index(value)]  # 64.0 comes back as 64
        return params

    @classmethod
    def grid(cls) -> Iterator[dict[str, Any]]:
        """Every combination of values; of an index, the first and the last."""
        settings: list[dict[str, Any]] = [{}]
        for name, parameter in cls.parameters.items():
            settings = [
                {**params, name: value}
                for params in settings
                for value in _samples(parameter, parameter.allowed(params))
            ]
        return iter(settings)

    # -- the widget --
    def __init__(self, **some):
        super().__init__(params=self.settings(**some))

    @traitlets.validate("params")
    def _checked(self, proposal) -> dict[str, Any]:
        try:
            return self.settings(**proposal["value"])
        except ValueError as problem:  # on a TraitError, ipywidgets takes back what the browser sent
            raise traitlets.TraitError(str(problem)) from problem

    def move(self, **some) -> None:
        """Set some parameters; the picture glides there."""
        self.params = self._complete(some, self.params)

    def __repr__(self) -> str:
        """The line of Python that shows this."""
        given = (
            f"{name}={value!r}" for name, value in self.params.items() if value != self.parameters[name].start
        )
        return f"{type(self).__name__}({', '.join(given)})"

    def stored(self):
        words = _("A browser draws this explorer: run its cell in JupyterLab, and it moves.")
        return {"text/html": FIGURE.format(html.escape(words))}, {
            "live": {"name": self.front, "params": self.params}
        }


def _listed(allowed: Sequence) -> str:
    if isinstance(allowed, range):
        return f"the whole numbers 0 … {allowed[-1]}"
    return ", ".join(map(repr, allowed))


def _samples(parameter: Parameter, allowed: Sequence) -> Sequence:
    return list(dict.fromkeys([allowed[0], allowed[-1]])) if isinstance(parameter, Index) else allowed
