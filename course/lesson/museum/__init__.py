"""The bug museum: mistakes that people really made, each to be caught by a property that it breaks.

museum.visit("waves")   one exhibit: read it, choose a check, see what it measures
museum.gallery()        a menu of all
museum.in_front()       weights with words in front and without, of all that promise no difference
museum.tour()           every check on every exhibit
"""

from __future__ import annotations

import difflib
import html
from pathlib import Path

import anywidget
import ipywidgets as widgets
import traitlets
from IPython.display import Code

from tutorial_lib.language import _, joined, per_language
from tutorial_lib.stored_widgets import StoredBox
from tutorial_lib.training import seeded

from ...progress import read, record
from ..questions import Question
from .checks import CHECKS, Verdict
from .checks import in_front as _in_front
from .exhibits import EXHIBITS, Exhibit

__all__ = ["CHECKS", "EXHIBITS", "gallery", "in_front", "measured", "tour", "visit"]

NOTEBOOK = "09"


@per_language
def measured(name: str, check: str) -> Verdict:
    """What a check says of an exhibit; the same on every call.

    Raises KeyError, naming what there is, for an unknown exhibit or check.
    """
    return _one(CHECKS, check, "check")(_one(EXHIBITS, name, "exhibit"))


def _one(known: dict, name: str, what: str):
    if name not in known:
        raise KeyError(f"no {what} {name!r}; there are {', '.join(known)}")
    return known[name]


def _code(text: str) -> str:
    """Highlighted Python; its colours are made for a light background, so it brings one."""
    return f'<div style="color:#000">{Code(text, language="python")._repr_html_()}</div>'


def repaired_lines(exhibit: Exhibit) -> str:
    """The lines that the repair takes out, after a minus, and those that it puts in, after a plus."""
    lines = difflib.ndiff(exhibit.code.splitlines(), exhibit.repaired_code.splitlines())
    return "\n".join(line for line in lines if line[0] in "-+")


def wrong_lines(exhibit: Exhibit) -> list[int]:
    """The numbers, from 1, of the lines that the repair changes."""
    pieces = difflib.SequenceMatcher(
        None, exhibit.code.splitlines(), exhibit.repaired_code.splitlines(), autojunk=False
    ).get_opcodes()
    return [n + 1 for kind, first, end, *_rest in pieces if kind != "equal" for n in range(first, end)]


def source_link(exhibit: Exhibit) -> str:
    """Where the mistake was reported, as HTML."""
    repository, number = exhibit.source.split("#")
    return f'<a href="https://github.com/{repository}/issues/{number}">{exhibit.source}</a>'


def explained(exhibit: Exhibit) -> str:
    """What is wrong, where it was reported, and the repair, as HTML."""
    said = _("Rewritten from {source}: {said}.").format(
        source=source_link(exhibit), said=html.escape(_(exhibit.said))
    )
    if exhibit.bug:
        named = _("{tool} calls it “{name}”.").format(tool="tutorial_lib.conformance", name=exhibit.bug)
        said = joined((said, html.escape(named)))
    return (
        f"<p>{html.escape(_(exhibit.diagnosis))}</p><p>{said}</p>"
        f"<p>{_('The repair:')}</p><pre>{html.escape(repaired_lines(exhibit))}</pre>"
    )


class Visit(Question):
    """One exhibit. Each button runs a check; once one finds something, the reader names the line, and then
    the explanation opens."""

    def __init__(self, name: str):
        self.exhibit, self.name = _one(EXHIBITS, name, "exhibit"), name
        super().__init__(
            f"{NOTEBOOK}.{name}",
            "museum",
            {"question": _asked(name), "choices": {key: _(check.label) for key, check in CHECKS.items()}},
            _("Exhibit"),
        )
        self.lines = {
            n: widgets.Button(
                description=str(n), tooltip=_("line {n}").format(n=n), layout={"width": "4.5em"}
            )
            for n, line in enumerate(self.exhibit.code.splitlines(), 1)
            if line.strip()
        }
        for n, button in self.lines.items():
            button.on_click(lambda _button, n=n: self.name_line(n))
        ask = widgets.HTML(_("<b>Found.</b> Now name it: in which line does the mistake stand?"))
        numbers = widgets.HBox([*self.lines.values()], layout={"flex_flow": "row wrap"})
        self.asks_line = widgets.VBox([ask, numbers], layout={"display": "none"})
        self.told = widgets.HTML()
        self.set_trait("children", (*self.children, self.asks_line, self.told))

    def _text(self):
        code = self.exhibit.code.splitlines()
        return super()._text() + _code("\n".join(f"{n:2}  {line}" for n, line in enumerate(code, 1)))

    def choose(self, answer):
        """Run a check, as a click does."""
        verdict = measured(self.name, answer)
        self.buttons[answer].icon = "check" if verdict.found else "times"
        log = read().get(self.key, {})
        if not log.get("right"):  # what comes after the finding does not count
            record(self.key, choice=answer, right=bool(verdict.found), tried=[*log.get("tried", []), answer])
        said = _("{check}: {verdict}.").format(check=_(CHECKS[answer].label), verdict=verdict)
        self.status.value = f"<p>{html.escape(said)}</p>"
        if verdict.found:
            self.asks_line.layout.display = ""

    def name_line(self, n: int) -> None:
        """Name the line of the mistake, as a click does; then the answer is shown. The first click counts."""
        wrong = wrong_lines(self.exhibit)
        also = any(part in self.exhibit.code.splitlines()[n - 1] for part in self.exhibit.also)
        right = n in wrong or also
        self.lines[n].icon = "check" if right else "times"
        if "line" not in read().get(self.key, {}):
            record(self.key, line=n, named=right)
        where = _("line {n}") if len(wrong) == 1 else _("lines {n}")
        where = where.format(n=_(", ").join(map(str, wrong)))
        verdict = _("You have named it.")
        if not right:
            verdict = _("Not line {n}: it is {where}.").format(n=n, where=where)
        if also:
            verdict = joined((verdict, _("It can be mended there, too.")))
        self.told.value = f"<p><b>{verdict}</b></p>" + explained(self.exhibit)

    def stored(self):
        return _stored(self.name), {}


def _asked(name: str) -> str:
    title = html.escape(_(EXHIBITS[name].title))
    return _("{title}. Something is wrong here. Which check finds it?").format(title=title)


def _stored(name: str) -> dict[str, str]:
    """An exhibit without its widgets: those of all would be 3,000 messages at once, and some get lost."""
    choices = "".join(f"<li>{html.escape(_(check.label))}</li>" for check in CHECKS.values())
    label, asked, code = _("Exhibit"), _asked(name), EXHIBITS[name].code
    return {
        "text/html": f"<p><b>{label}.</b> {asked}</p><pre>{html.escape(code)}</pre><ul>{choices}</ul>",
        "text/plain": f"{label}: {asked}\n{code}",
    }


class Menu(anywidget.AnyWidget):
    """A menu of ``texts``. JupyterLab takes the arrow keys from those of ipywidgets."""

    _esm = Path(__file__).with_name("menu.js")
    texts: traitlets.List = traitlets.List().tag(sync=True)
    label = traitlets.Unicode().tag(sync=True)
    index = traitlets.Int(0).tag(sync=True)


class Gallery(StoredBox):
    """A menu of exhibits, and the one that is chosen."""

    def __init__(self, names: list[str]):
        self.names = names
        self.menu = Menu(texts=[_(EXHIBITS[name].title) for name in names], label=_("exhibit"))
        self.menu.observe(lambda change: self.show(change["new"]), "index")
        super().__init__([self.menu])
        self.show(0)

    def show(self, index: int) -> None:
        """Go to an exhibit, as the menu does."""
        self.visit = Visit(self.names[index])
        self.children = [self.menu, self.visit]

    def stored(self):
        each = [_stored(name) for name in self.names]
        return {
            "text/html": "".join(one["text/html"] for one in each),
            "text/plain": "\n\n".join(one["text/plain"] for one in each),
        }, {}


class Tour:
    """Every check on every exhibit, measured; folded until the reader opens it."""

    def rows(self) -> list[tuple[str, ...]]:
        """The title, and a cell for each check; the last row counts the findings."""
        table = [[measured(name, check) for check in CHECKS] for name in EXHIBITS]
        found = [[verdict.found for verdict in column] for column in zip(*table, strict=True)]
        return [
            *((_(e.title), *map(self.cell, row)) for e, row in zip(EXHIBITS.values(), table, strict=True)),
            (
                _("found, of those where it applies"),
                *(
                    _("{number} of {all}").format(
                        number=column.count(True), all=len(column) - column.count(None)
                    )
                    for column in found
                ),
            ),
        ]

    @staticmethod
    def cell(verdict: Verdict) -> str:
        """``✔ FOUND`` or ``sees nothing`` with the measurement; a dash where the check does not apply."""
        if verdict.found is None:
            return "–"
        said = _("✔ FOUND ({measured})") if verdict.found else _("sees nothing ({measured})")
        return said.format(measured=verdict.short)

    def _repr_html_(self):
        style = 'style="text-align:left;vertical-align:top"'
        head = "".join(
            f'<th scope="col" {style}>{html.escape(text)}</th>'
            for text in (_("Exhibit"), *(_(check.label) for check in CHECKS.values()))
        )
        body = "".join(
            f'<tr><th scope="row" {style}>{html.escape(row[0])}</th>'
            + "".join(f"<td {style}>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self.rows()
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        summary = _("Every check on every exhibit: the answers")
        return f"<details><summary>{summary}</summary>{table}</details>"

    def __repr__(self):
        return "\n".join(" | ".join(row) for row in (("Exhibit", *CHECKS), *self.rows()))


def visit(name: str) -> Visit:
    """One exhibit with its checks. Raises KeyError, naming the exhibits there are, for an unknown name."""
    return Visit(name)


def gallery(*without: str) -> Gallery:
    """A menu of all exhibits but those that are named."""
    for name in without:
        _one(EXHIBITS, name, "exhibit")
    return Gallery([name for name in EXHIBITS if name not in without])


def in_front() -> dict:
    """``{name: (late, early)}`` of all exhibits that promise that only distances count: the attention
    weights of eight words with 40 others in front of them, and without. Their difference is a shift error."""

    def weights(exhibit: Exhibit):
        return seeded(lambda: _in_front(exhibit, exhibit.broken), seed=0)

    return {name: weights(exhibit) for name, exhibit in EXHIBITS.items() if CHECKS["moved"].applies(exhibit)}


def tour() -> Tour:
    """The table of all checks on all exhibits: it gives the answers away."""
    return Tour()
