"""What all explorers share: three data views, the widgets that move them, and :class:`Explorer`.

An explorer is a table of parameters and a pure function from them to a :class:`Scene`::

    class Waves(Explorer):
        parameters = {
            "period": Steps((4, 8, 16), 8),
            "shape": Choice(("sine", "cosine"), "sine"),
            "x": Index(32, 0, play=True),
        }

        @staticmethod
        def render(*, period, shape, x):
            ...
            return Scene({"wave": Lines(xs, {shape: ys}, mark=x, pick="x")}, "A sine of period 8.")

The class makes the controls, redraws when one moves, tells the reader what fails, makes the same
scene as a matplotlib figure, and stores that as the picture for devices without a kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from .. import plots
from ..extras import needs
from ..fallback import Stored, StoredBox
from . import live

with needs("course"):
    import anywidget
    import ipywidgets as widgets
    import matplotlib
    import numpy as np
    import traitlets
    from matplotlib.figure import Figure

HERE = Path(__file__).parent


# ---- views: data to look at, nothing else ----
@dataclass(frozen=True, eq=False)
class Heat:
    """A heat map of ``z``, shape ``[rows, columns]``, row 0 at the top; a cell that is NaN stays empty.

    ``mark`` is the framed ``(row, column)``. ``pick`` names the two parameters that a click sets
    to the row and column clicked. ``readout`` says in words what stands at the mark.
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
    pick: tuple[str, str] | None = None
    readout: str = ""
    kind: ClassVar[str] = "heat map"

    def array(self) -> np.ndarray:
        """What is drawn, float32 ``[rows, columns]``."""
        return np.ascontiguousarray(self.z, dtype=np.float32)

    def spec(self) -> dict:
        """What the browser needs beside :meth:`array`."""
        return {"kind": "heat", "limits": list(self.limits), "colorbar": self.colorbar,
                "xticks": self.xticks, "yticks": self.yticks}

    def draw(self, ax) -> None:
        plots.heat(self.z, title=self.title, xlabel=self.xlabel, ylabel=self.ylabel,
                   limits=self.limits, cmap=self.cmap, colorbar=self.colorbar, xticks=self.xticks,
                   yticks=self.yticks, mark_row=self.mark and self.mark[0], mark_cell=self.mark,
                   ax=ax)


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines over a common ``x``; ``ys`` maps a label to its values (one line: no legend).

    ``mark`` is the index into ``x`` of the point that is pointed at; ``pick`` names the parameter
    that a click sets to the index clicked. ``levels`` maps a text to the height of a dotted line.
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
    pick: str | None = None
    readout: str = ""
    cmap: ClassVar[str] = "signed"
    kind: ClassVar[str] = "lines"

    def array(self) -> np.ndarray:
        """``x`` and below it each of ``ys``, float32 ``[1 + lines, points]``."""
        return np.array([self.x, *self.ys.values()], dtype=np.float32)

    def spec(self) -> dict:
        """What the browser needs beside :meth:`array`."""
        return {"kind": "lines", "labels": list(self.ys), "logx": self.logx, "logy": self.logy,
                "ylim": self.ylim and list(self.ylim), "markers": self.markers,
                "levels": {text: float(level) for text, level in self.levels.items()}}

    def draw(self, ax) -> None:
        plots.lines(self.x, self.ys, title=self.title, xlabel=self.xlabel, ylabel=self.ylabel,
                    logx=self.logx, logy=self.logy, ylim=self.ylim, markers=self.markers,
                    levels=self.levels, mark_x=None if self.mark is None else self.x[self.mark],
                    ax=ax)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Arrows in the plane, from the origin; ``ends`` maps a label to the point ``(x, y)`` of its arrow.

    The unit circle is drawn, and the same scale on both axes: at least from −``reach`` to ``reach``
    (``None``: as far as the arrows go). ``mark`` is the index of the arrow that is pointed at;
    ``pick`` names the parameter that a click sets to the index clicked.
    """

    ends: Mapping[str, Any]
    title: str = ""
    xlabel: str = "x"
    ylabel: str = "y"
    reach: float | None = None
    mark: int | None = None
    pick: str | None = None
    readout: str = ""
    cmap: ClassVar[str] = "signed"
    kind: ClassVar[str] = "arrows"

    def array(self) -> np.ndarray:
        """All x and below them all y, float32 ``[2, arrows]``."""
        return np.array([[float(x), float(y)] for x, y in self.ends.values()], dtype=np.float32).T

    def spec(self) -> dict:
        """What the browser needs beside :meth:`array`."""
        return {"kind": "vectors", "labels": list(self.ends), "reach": self.reach}

    def draw(self, ax) -> None:
        plots.vectors(self.ends, title=self.title, xlabel=self.xlabel, ylabel=self.ylabel,
                      reach=self.reach, mark=self.mark, ax=ax)


class Scene(NamedTuple):
    """All that one setting of the parameters shows: named views, and one sentence about them.

    The names are the same in every scene of an explorer; the kind of a view may change.
    """

    views: dict[str, Heat | Lines | Vectors]
    description: str


def _cells(mark) -> list[int]:
    """A mark as the browser has it: a list of indices, empty for none."""
    return [] if mark is None else [int(i) for i in np.atleast_1d(mark)]


class View(anywidget.AnyWidget):
    """One view, live in the browser. ``picked`` is the cell that the reader points at."""

    _esm = HERE / "view.js"
    _css = HERE / "parts.css"
    spec = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    palette = traitlets.Bytes().tag(sync=True)
    picked: traitlets.List = traitlets.List().tag(sync=True)

    def show(self, view: Heat | Lines | Vectors, alt: str = "") -> None:
        """Draw ``view``. Array and shape travel in one message, so no frame is torn."""
        array, mark = view.array(), _cells(view.mark)
        with self.hold_sync():
            self.data = array.tobytes()
            self.palette = palette(view.cmap)
            self.spec = view.spec() | {
                "shape": list(array.shape), "title": view.title, "xlabel": view.xlabel,
                "ylabel": view.ylabel, "readout": view.readout, "mark": mark,
                "follows": view.pick is not None, "alt": alt}
            self.picked = mark


@functools.cache
def palette(cmap: str, count: int = 256) -> bytes:
    """Red, green and blue of ``count`` colours, from the lowest value to the highest."""
    colours = matplotlib.colormaps[cmap](np.linspace(0, 1, count))[:, :3]
    return (colours * 255).round().astype(np.uint8).tobytes()


# ---- parameters: what may be chosen, and the control that chooses it ----
class Control(anywidget.AnyWidget):
    """A labelled native slider over ``count`` steps, or a menu of ``texts``.

    ipywidgets' own sliders have no name for a screen reader, and JupyterLab takes the arrow keys
    from its menus. ``play`` adds play, pause and speed to a slider.
    """

    _esm = HERE / "control.js"
    _css = HERE / "parts.css"
    label = traitlets.Unicode().tag(sync=True)
    texts: traitlets.List = traitlets.List().tag(sync=True)  # one for each step; none: the number of the step
    count = traitlets.Int(1).tag(sync=True)
    index = traitlets.Int(0).tag(sync=True)
    play = traitlets.Bool(False).tag(sync=True)
    menu = traitlets.Bool(False).tag(sync=True)


@dataclass(frozen=True)
class Listed:
    """One of the listed ``values``, each shown as its ``text``."""

    values: tuple
    start: Any
    label: str = ""
    text: Callable[[Any], str] = str
    hidden: ClassVar[bool] = False

    def allowed(self, _params: Mapping) -> Sequence:
        return self.values

    def _options(self) -> tuple[list[str], int]:
        """All texts, and the index of the one at the start."""
        return [self.text(value) for value in self.values], self.values.index(self.start)


@dataclass(frozen=True)
class Choice(Listed):
    """One of a few named values: buttons, or a menu with ``menu=True``."""

    menu: bool = False

    def control(self, label: str):
        texts, index = self._options()
        if self.menu:
            return Control(label=label, texts=texts, count=len(texts), index=index, menu=True)
        return widgets.ToggleButtons(options=texts, index=index, description=label,
                                     style={"description_width": "initial", "button_width": "auto"})


@dataclass(frozen=True)
class Steps(Listed):
    """A slider over listed values, evenly spaced or not."""

    play: bool = False

    def control(self, label: str):
        texts, index = self._options()
        return Control(label=label, texts=texts, count=len(texts), index=index, play=self.play)


@dataclass(frozen=True)
class Index:
    """A slider over 0 … ``size`` − 1: a number, an earlier parameter's name, or a function of those.

    ``hidden=True`` leaves the slider away: only a click in a picture sets the value.
    """

    size: int | str | Callable[[Mapping], int]
    start: int = 0
    label: str = ""
    play: bool = False
    hidden: bool = False

    def allowed(self, params: Mapping) -> Sequence:
        return range(self.size(params) if callable(self.size) else params.get(self.size, self.size))

    def control(self, label: str):
        return Control(label=label, count=self.start + 1, index=self.start, play=self.play)


Parameter = Choice | Steps | Index


# ---- the explorer ----
class Status(anywidget.AnyWidget):
    """What an explorer says in words."""

    _esm = HERE / "status.js"
    _css = HERE / "parts.css"
    description = traitlets.Unicode().tag(sync=True)
    challenge = traitlets.Unicode().tag(sync=True)
    error = traitlets.Unicode().tag(sync=True)


class Explorable:
    """What an explorer knows without a front end: parameters, scenes, figures, its challenge.

    ``challenge`` is a target in words; ``reached(**params)`` then measures whether the settings
    meet it, and returns the evidence in words, or ``""``.

    Raises ValueError for an unknown parameter or a value that it may not have.
    """

    params: Any  # the values of the moment, by name

    parameters: ClassVar[Mapping[str, Parameter]] = {}
    challenge: ClassVar[str] = ""

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
            raise ValueError(f"{cls.__name__} has no parameter {', '.join(sorted(unknown))}; "
                             f"it has {', '.join(cls.parameters)}")
        params: dict[str, Any] = {}
        for name, parameter in cls.parameters.items():
            allowed = parameter.allowed(params)
            value = some.get(name, others[name])
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
        return f"Challenge: {self.challenge} " + (f"✔ Reached: {evidence}" if evidence else
                                                  "Not reached yet.")

    def stored(self):
        """The picture of the present settings, and its kind and description."""
        scene = self.render(**self.params)
        kinds = [view.kind for view in scene.views.values()]
        kinds = f"two {kinds[0]}s" if kinds == ["heat map"] * 2 else " beside ".join(kinds)
        alt = f"{kinds.capitalize()}. {scene.description}"
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


class Explorer(Explorable, StoredBox):
    """Controls over a pure ``render``. A subclass writes ``parameters`` and ``render``."""

    def __init__(self, **some):
        params = self.settings(**some)
        self.controls = {name: parameter.control(parameter.label or name)
                         for name, parameter in self.parameters.items()}
        self.status = Status()
        scene = self.render(**params)
        self.views = {name: View() for name in scene.views}
        self._settling = False
        self.move(**params)
        for control in self.controls.values():
            control.observe(self._moved, "index")
        for name, view in self.views.items():
            view.observe(lambda _change, name=name: self._picked(name), "picked")
        shown = [self.controls[name] for name, parameter in self.parameters.items()
                 if not parameter.hidden]
        rows = [_row("order-controls", shown), _row("order-views", self.views.values()), self.status]
        super().__init__(rows)
        self.add_class("order-explorer")

    @property
    def params(self) -> dict[str, Any]:
        """The values that the controls have now."""
        params: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            allowed = parameter.allowed(params)
            params[name] = allowed[min(self.controls[name].index, len(allowed) - 1)]
        return params

    def move(self, **some) -> None:
        """Set some parameters, as the controls do, and redraw once."""
        self._settle(self._complete(some, self.params))

    def _moved(self, _change) -> None:
        if not self._settling:
            self._settle(self.params)

    def _picked(self, name: str) -> None:
        """A click, or an arrow key, in a picture."""
        if self._settling:
            return
        pick = self._scene.views[name].pick
        names = (pick,) if isinstance(pick, str) else pick or ()
        if names and self.views[name].picked:
            self.move(**dict(zip(names, self.views[name].picked, strict=True)))

    def _settle(self, params: dict[str, Any]) -> None:
        """Bring controls, pictures and words in line with ``params``.

        What fails is shown to the reader, and raised: in a notebook it reaches the log.
        """
        self._settling = True
        try:
            for name, parameter in self.parameters.items():
                control, allowed = self.controls[name], parameter.allowed(params)
                with control.hold_sync():
                    if isinstance(control, Control):
                        control.count = len(allowed)
                    control.index = allowed.index(params[name])
            self._scene = self.render(**params)
            for name, view in self._scene.views.items():
                self.views[name].show(view, self._scene.description)
            self.status.description = self._scene.description
            self.status.challenge = self.verdict
            self.status.error = ""
        except Exception as problem:
            settings = ", ".join(f"{name}={value!r}" for name, value in params.items())
            self.status.error = f"{type(problem).__name__}: {problem} (at {settings})"
            raise
        finally:
            self._settling = False


def _row(name: str, children) -> widgets.Box:
    box = widgets.Box(list(children))
    box.add_class(name)
    return box


def _listed(allowed: Sequence) -> str:
    if isinstance(allowed, range):
        return f"the whole numbers 0 … {allowed[-1]}"
    return ", ".join(map(repr, allowed))


def _samples(parameter: Parameter, allowed: Sequence) -> Sequence:
    return list(dict.fromkeys([allowed[0], allowed[-1]])) if isinstance(parameter, Index) else allowed
