"""The playground: small Transformers that learn in the page, and differ in how they know order.

One page without a server (:func:`page`), and a widget (:class:`Playground`). The engine, ``engine.js``, is
held to the library by tests; its numbers are the same bits in every browser. Nothing here is fetched.
"""

from __future__ import annotations

import functools
import html
import json
import re
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from tutorial_lib import colours
from tutorial_lib.explorers import live
from tutorial_lib.explorers.parts import FIGURE
from tutorial_lib.language import _, joined, language, per_language
from tutorial_lib.stored_widgets import Stored

from ..places import RECORDS

HERE = Path(__file__).parent
NAME = "playground"
RECORD = RECORDS / "playground-full.json"
ENGINE = ("vendor/jsep", "engine", "tasks", "formula", "run")
GIVEN = "Model, Run, KINDS, TASKS, FormulaError, withFormula, characters, batch, rng, lengths, formula"


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@functools.cache
def engine() -> str:
    """JavaScript of a function that gives what a page and its workers compute with; jsep reads formulas."""
    parts = "".join(_read(f"{name}.js") for name in ENGINE)
    return f"function engine() {{\n{_bare(parts)}return {{ {GIVEN} }};\n}}\n"


TOKENS = re.compile(
    r""""(?:[^"\\\n]|\\.)*"|(?<=[=(,:])[ ]*/(?![/*])(?:\\.|\[(?:[^\]\\]|\\.)*\]|[^/\\\n])+/[a-z]*|`"""
)
SPACE = re.compile(
    r"""(?<=[;{},(])\n | [\n;\s]+(?=}) | (?<=[^\w$+\-\s])[ ]+ | [ ]+(?=[^\w$+\-\s])
    | (?<=[\w$)\]])[ ](?=[+-]=?[ ][\w$([.]) | (?<=[\w$)\]][ ][+-])[ ](?=[\w$([.])""",
    re.X,
)


def _bare(source: str) -> str:
    r"""Lean, also without spaces that say nothing, comments behind a line's code, and the address of a map.

    >>> _bare('const a = { b: x - -1 + y }; // why\n  return f("a + b", `${ a } b`);\n')
    'const a={b:x - -1+y};return f("a + b",`${ a } b`);'
    """
    source = live.lean(re.sub(r"^//# sourceMapping.*|(?<=[;{},)]) +// .*", "", source, flags=re.M))
    source = source.replace('" +\n"', "")  # a long text in short lines
    parts, at = [], 0
    while found := TOKENS.search(source, at):  # a text stays as it is
        end = live._plain(source, found.end()) if found[0] == "`" else found.end()
        parts += [SPACE.sub("", source[at : found.start()]), source[found.start() : end]]
        at = end
    made = "".join(parts) + SPACE.sub("", source[at:])
    return re.sub(r'(?<=") \+ (?=[\w$])|(?<=[\w$)]) \+ (?=")', "+", made)


@functools.cache
def messages() -> tuple[str, ...]:
    """The texts of the page, as a translation has them."""
    return tuple(dict.fromkeys(live.said(_read("page.js"))))


def script() -> str:
    """What page and widget share, and the words of the reader's language."""
    front, words = re.sub("^export ", "", _read("page.js"), flags=re.M), live.translations(messages())
    return (
        f"{engine()}const SEEDS = {live.compact(seeds())};\n"
        f"{_bare(_read('worker.js') + front)}const words = {live.compact(words)};\n"
    )


@functools.cache
def seeds() -> dict[str, list[int]]:
    """For each task the least and the most right answers of many seeds, in percent, encoding by encoding."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    found: dict[str, list[int]] = {}
    for task in record["settings"]["tasks"]:
        runs = [run["values"] for run in record["runs"] if run["cell"]["task"] == task]
        for kind in record["settings"]["encodings"]:
            shares = [run[kind][-1] for run in runs]
            found.setdefault(task, []).extend(round(100 * share) for share in (min(shares), max(shares)))
    return found


@functools.cache
def style() -> str:
    """The style sheet, with the colours of :mod:`tutorial_lib.colours`."""
    page = _read("page.css").replace("NONE", colours.ENCODINGS["none"].css)
    page = page.replace(".pg-encodings { }", colours.rules())
    return re.sub(r"\s*;?\s*([{};,>])\s*|(?<=:) ", r"\1", re.sub(r"/\*.*\*/", "", page))


START = """const known = () => location.hash.slice(1);
for (const place of document.querySelectorAll("[data-playground]")) {
const { settings, playground: title } = place.dataset, alone = settings === undefined;
let asked = alone && known().includes("lane=");
place.live = playground(place, { words, title, settings: asked ? known() : settings,
change: text => { if (asked) history.replaceState(null, "", "#" + text); asked = alone; } });
if (alone) addEventListener("hashchange", () => { if (known().includes("lane=")) place.live.set(known()); });
}
"""
"""Lanes that come with settings leave the address to their page: to its headings, or a slide's number."""
PAGE = """<!DOCTYPE html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>
:root{{color-scheme:light dark;--ground:light-dark(#fdfdfb,#0f1218)}}
body{{margin:0;background:var(--ground)}}
main{{max-width:1216px;margin:0 auto;padding:28px clamp(12px,4vw,48px) 64px}}
{style}</style></head>
<body><main data-playground="{title}"></main><script>
{script}</script></body></html>
"""


@per_language
def page() -> str:
    """The whole page, in the reader's language: one file, which needs no server."""
    title = _("Watch Transformers learn order")
    return PAGE.format(language=language(), title=title, style=style(), script=started())


def started() -> str:
    """The script of a page that has places for it; what ``data-playground`` says becomes a title."""
    return script() + _bare(START)


def write(folder: Path) -> None:
    """Write script and style for pages that have a place for it."""
    own = f'(() => {{\n"use strict";\n{started()}}})();\n'
    (folder / "playground.js").write_text(own, encoding="utf-8")
    (folder / "playground.css").write_text(style(), encoding="utf-8")


def place(name: str, params: dict, inside: str = "", small: bool = False) -> str:
    """HTML that the script of a page brings to life: lanes, or with another name an explorer.

    ``inside`` is there without it; ``small=True`` fits a slide.
    """
    if name != NAME:
        return live.place(name, params, inside, small)
    size = ' class="pg-small"' * (small or params["small"])
    return f'<div data-playground{size} data-settings="{html.escape(params["settings"])}">{inside}</div>'


def alt(said: str) -> str:
    """Of a picture of lanes; ``said`` is what the page says then: two sentences, before *Start* nothing."""
    waiting = _("Not started: the last bar of each is to be guessed.")
    told = re.split(r"(?<=[.。])\s*", said, maxsplit=1)[-1] or waiting
    return joined([_("Attention maps, and bars by length."), told])


WIDGET = """export default {{
render({{ model, el }}) {{
const place = document.createElement("div");
el.append(place);
if (model.get("small")) place.className = "pg-small";
place.live = playground(place, {{ words, settings: model.get("settings"),
copy: {{ label: {label}, text: text => "Playground(" + JSON.stringify(text) + ")" }},
change: text => {{ model.set("settings", text); model.save_changes(); }} }});
const moved = () => place.live.set(model.get("settings"));
model.on("change:settings", moved);
return () => {{ model.off("change:settings", moved); place.live.destroy(); }};
}},
}};
"""


class Playground(Stored, anywidget.AnyWidget):
    """The playground in a notebook. ``settings`` is what stands behind the ``#`` of a link to the page.

    ``small`` leaves out the task and its dials; with ``guess`` its stored picture is one from before *Start*.

    >>> Playground("task=back&k=2&lane=none&lane=rope,base:100")
    Playground('task=back&k=2&lane=none&lane=rope,base:100')
    """

    settings = traitlets.Unicode().tag(sync=True)
    small = traitlets.Bool().tag(sync=True)
    _css = style()

    @property
    def _esm(self) -> str:
        return script() + WIDGET.format(label=live.compact(_("Copy a line of Python that shows this")))

    def __init__(self, settings: str = "", small: bool = False, guess: bool = False, **options: Any):
        super().__init__(settings=settings, small=small, **options)
        self.guess = guess

    def __repr__(self) -> str:
        return f"Playground({self.settings!r}{', small=True' * self.small}{', guess=True' * self.guess})"

    def stored(self):
        words = _("A browser runs this: run its cell in JupyterLab, and Transformers learn in the page.")
        params: dict[str, Any] = {"settings": self.settings, "small": self.small}
        if self.guess:
            params["guess"] = True
        return {"text/html": FIGURE.format(words)}, {"live": {"name": NAME, "params": params}}
