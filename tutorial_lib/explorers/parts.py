"""What all explorers share: the data of their views, their parameters, and :class:`LiveExplorer`.

An explorer is a table of parameters and a pure function from them to a :class:`Scene`::

    class Waves(LiveExplorer):
        front = "waves"  # live/waves.js draws it
        parameters = {
            "period": Steps((4, 8, 16), 8),
            "shape": Choice(("sine", "cosine"), "sine"),
            "x": Index(32, 0),
        }

        @staticmethod
        def render(*, period, shape, x):
            ...
            return Scene({"wave": Lines(xs, {shape: ys}, mark=x)}, "A sine of period 8.")

The class checks settings, makes the scene as a matplotlib figure, and stores that as the picture for
devices that run no script.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from .. import plots
from ..language import _, joined
from ..optional import needs
from ..stored_widgets import Stored
from . import live

with needs("course"):
    import anywidget
    import matplotlib
    import numpy as np
    import traitlets
    from matplotlib.figure import Figure


# ---- views: data to look at, nothing else ----
@dataclass(frozen=True, eq=False)
class Heat:
    """A heat map of ``z``, shape ``[rows, columns]``, row 0 at the top; a cell that is NaN stays empty.

    ``mark`` is the framed ``(row, column)``; ``readout`` says in words what stands there.
    """

    z: Any
    title: str = ""
    xlabel: str = "column"
    ylabel: str = "row"
    limits: tuple[float, float] = (-1.0, 1.0)
    cmap: str = "signed"
    colorbar: str = ""
    xticks: Sequence[str] | None = None
    yticks: Sequence[str] | None = None
    mark: tuple[int, int] | None = None
    readout: str = ""
    kind: ClassVar[str] = "heat map"

    def array(self) -> np.ndarray:
        """What is drawn, float32 ``[rows, columns]``."""
        return np.ascontiguousarray(self.z, dtype=np.float32)

    def draw(self, ax) -> None:
        plots.heat(
            self.z,
            title=self.title,
            xlabel=self.xlabel,
            ylabel=self.ylabel,
            limits=self.limits,
            cmap=self.cmap,
            colorbar=self.colorbar,
            xticks=self.xticks,
            yticks=self.yticks,
            mark_row=self.mark and self.mark[0],
            mark_cell=self.mark,
            ax=ax,
        )
        if np.isnan(self.array()).any():  # not white, which is a value, nor what is behind the picture
            ax.patch.set(facecolor="0.9", hatch="///", edgecolor="0.65")


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines over a common ``x``; ``ys`` maps a label to its values (one line: no legend).

    ``mark`` is the index into ``x`` of the point that is pointed at. ``levels`` maps a text to the
    height of a dotted line.
    """

    x: Any
    ys: Mapping[str, Any]
    title: str = ""
    xlabel: str = "x"
    ylabel: str = ""
    logx: bool = False
    logy: bool = False
    ylim: tuple[float, float] | None = None
    markers: bool = False
    levels: Mapping[str, float] = field(default_factory=dict)
    mark: int | None = None
    readout: str = ""
    cmap: ClassVar[str] = "signed"
    kind: ClassVar[str] = "lines"

    def array(self) -> np.ndarray:
        """``x`` and below it each of ``ys``, float32 ``[1 + lines, points]``."""
        return np.array([self.x, *self.ys.values()], dtype=np.float32)

    def draw(self, ax) -> None:
        plots.lines(
            self.x,
            self.ys,
            title=self.title,
            xlabel=self.xlabel,
            ylabel=self.ylabel,
            logx=self.logx,
            logy=self.logy,
            ylim=self.ylim,
            markers=self.markers,
            levels=self.levels,
            mark_x=None if self.mark is None else self.x[self.mark],
            ax=ax,
        )


@dataclass(frozen=True, eq=False)
class Vectors:
    """Arrows in the plane, from the origin; ``ends`` maps a label to the point ``(x, y)`` of its arrow.

    The unit circle is drawn, and the same scale on both axes: at least from −``reach`` to ``reach``
    (``None``: as far as the arrows go). ``mark`` is the index of the arrow that is pointed at.
    """

    ends: Mapping[str, Any]
    title: str = ""
    xlabel: str = "x"
    ylabel: str = "y"
    reach: float | None = None
    mark: int | None = None
    readout: str = ""
    cmap: ClassVar[str] = "signed"
    kind: ClassVar[str] = "arrows"

    def array(self) -> np.ndarray:
        """All x and below them all y, float32 ``[2, arrows]``."""
        return np.array([[float(x), float(y)] for x, y in self.ends.values()], dtype=np.float32).T

    def draw(self, ax) -> None:
        plots.vectors(
            self.ends,
            title=self.title,
            xlabel=self.xlabel,
            ylabel=self.ylabel,
            reach=self.reach,
            mark=self.mark,
            ax=ax,
        )


KINDS = {
    ("heat map",): "Heat map.",
    ("heat map", "heat map"): "Two heat maps.",
    ("lines", "lines"): "Lines beside lines.",
    ("heat map", "lines"): "Heat map beside lines.",
    ("lines", "heat map"): "Lines beside heat map.",
    ("arrows", "lines"): "Arrows beside lines.",
    ("arrows", "heat map"): "Arrows beside heat map.",
    ("heat map", "arrows"): "Heat map beside arrows.",
}
"""How an alternative text names the views of a scene."""


class Scene(NamedTuple):
    """All that one setting of the parameters shows: named views, and one sentence about them.

    The names are the same in every scene of an explorer; the kind of a view may change.
    """

    views: dict[str, Heat | Lines | Vectors]
    description: str


@functools.cache
def palette(cmap: str, count: int = 256) -> bytes:
    """Red, green and blue of ``count`` colours, from the lowest value to the highest."""
    colours = matplotlib.colormaps[cmap](np.linspace(0, 1, count))[:, :3]
    return (colours * 255).round().astype(np.uint8).tobytes()


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
    """A line to be typed, of at most ``most`` characters; what it means is the scene's to say.

    ``keys`` are buttons that write for those who have no such key; ``samples`` stand for all texts in tests.
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
class Explorable:
    """What an explorer knows without a front end: parameters, scenes, figures, its challenge.

    ``challenge`` is a target in words; ``reached(**params)`` then measures whether the settings
    meet it, and returns the evidence in words, or ``""``.

    Raises ValueError for an unknown parameter or a value that it may not have.
    """

    params: Any  # the values of the moment, by name

    parameters: ClassVar[Mapping[str, Parameter]] = {}
    challenge: ClassVar[str] = ""
    said: ClassVar[Sequence[str]] = ()
    """Texts of its constants that a reader sees."""

    @staticmethod
    def render(**params) -> Scene:
        raise NotImplementedError

    @staticmethod
    def reached(**params) -> str:
        return ""

    # -- without a widget --
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

    @classmethod
    def scene(cls, **some) -> Scene:
        """What is to be seen at these settings."""
        return cls.render(**cls.settings(**some))

    @classmethod
    def figure(cls, **some) -> Figure:
        """The scene as a static figure, its views side by side."""
        views = cls.scene(**some).views.values()
        names = max(len(getattr(view, "yticks", None) or ()) for view in views)  # each needs a line of type
        size = (6.2 * len(views), max(4.6, 0.26 * names + 1))
        fig, axes = plots.panels(1, len(views), size=size, squeeze=False)
        for view, ax in zip(views, axes[0], strict=True):
            plots.styled(view.draw)(ax)
        return fig

    # -- the settings of the moment --
    @property
    def verdict(self) -> str:
        """The challenge, and whether it is reached now."""
        if not self.challenge:
            return ""
        evidence = self.reached(**self.params)
        how = _("✔ Reached: {0}").format(evidence) if evidence else _("Not reached yet.")
        return _("Challenge: {0} {1}").format(_(self.challenge), how)

    def stored(self):
        """The picture of the present settings, and its kind and description."""
        scene = self.render(**self.params)
        alt = joined([_(KINDS[tuple(view.kind for view in scene.views.values())]), scene.description])
        picture = plots.Picture(self.figure(**self.params), alt)
        return picture._repr_mimebundle_(), {"image/png": {"alt": picture.alt}}


class LiveExplorer(Explorable, Stored, anywidget.AnyWidget):
    """An explorer that draws itself in the browser: ``live/<front>.js`` (`docs/explorers.md`).

    The browser has the numbers, held to :meth:`scene` by tests, and draws without a kernel. Python
    sees ``params`` when they come to rest, and may set them (:meth:`move`). A stored output names
    the explorer and its settings, and a page that has the script brings it to life again.
    """

    front: ClassVar[str] = ""
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
        """More of them, so much that a page takes it from a file of its own."""
        return {}

    def __init__(self, **some):
        super().__init__(params=self.settings(**some))

    @traitlets.validate("params")
    def _checked(self, proposal) -> dict[str, Any]:
        try:
            return self.settings(**proposal["value"])
        except ValueError as problem:  # of a TraitError, ipywidgets takes back what the browser has sent
            raise traitlets.TraitError(str(problem)) from problem

    def move(self, **some) -> None:
        """Set some parameters; the picture glides there."""
        self.params = self._complete(some, self.params)

    def stored(self):
        data, metadata = super().stored()
        return data, metadata | {"live": {"name": self.front, "params": self.params}}


def _listed(allowed: Sequence) -> str:
    if isinstance(allowed, range):
        return f"the whole numbers 0 … {allowed[-1]}"
    return ", ".join(map(repr, allowed))


def _samples(parameter: Parameter, allowed: Sequence) -> Sequence:
    return list(dict.fromkeys([allowed[0], allowed[-1]])) if isinstance(parameter, Index) else allowed
