"""What a notebook says about itself that no author types: its place, its minutes, terms, what is folded.

:func:`sign` writes these, and ``python -m workshop.authoring build`` and ``sign`` call it:

- the strip, one line of links at the top and at the end (a cell with the tag ``strip``);
- *Time: about … minutes. Running: …* in the first cell, by :func:`minutes` and :func:`running`;
- the title of each link to ``docs/glossary.md``, which is shown when the mouse is over the link;
- cells with the tag ``reveal`` are folded, code and output, and their first line says what running them does.

:func:`unsign` takes strips and titles off again, so that authors see plain links.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import nbformat

from course.lesson.resume import notebooks, title
from course.places import DEEPER

from . import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
GUIDE = ROOT / "docs" / "instructor" / "notebooks.md"
RECORD = ROOT / "results" / "benchmarks" / "notebooks.json"
STRIP = "strip"
QUEST = "**a side quest** of {lesson}"
FOLDED = {"source_hidden": True, "outputs_hidden": True}
MEASURES = "# Run this cell: it measures the answer."
"""The first line of a folded cell that measures: JupyterLab shows it in place of the cell."""
TERM = re.compile(r'\]\(((?:\.\./)+docs/glossary\.md)#([^\s)"]+)(?: "[^"]*")?\)')

WORDS = 150
"""Words a minute."""
EFFORT = {
    "predictions": 1.0,
    "turns": 1.5,
    "builds": 12.0,
    "figures": 3.5,
    "claims": 0.5,
    "toys": 5.5,
    "formulas": 1.5,
}
"""Minutes for one of each, on top of reading it: :func:`minutes` says where they come from."""
CALLS = {
    "predictions": r"\blesson\.predict\(",
    "turns": r"\blesson\.your_turn\((?!.*build=True)",
    "builds": r"\blesson\.your_turn\(.*build=True",
    "figures": r"\bplots\.show\(|\bmuseum\.visit\(",
    "claims": r"\bclaims\.test\(",
    "toys": r"\w+Explorer\(|^Playground\((?!.*small=True)",
}
SIDE = "side"
"""The tag of a heading whose section is extra: the head names it, with minutes of its own."""


def sign(notebook: nbformat.NotebookNode, path: Path) -> nbformat.NotebookNode:
    """Write strip, minutes and titles into ``notebook``, in place; ``path`` is where it is stored.

    An exercise gets a strip at its end, and no more. Raises KeyError for a term that is not in
    the glossary.
    """
    unsign(notebook)
    line, last = strip(path), len(notebook.cells) + 1
    if is_exercise(path):
        notebook.cells.append(_cell(line, path.stem))
        return notebook
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = TERM.sub(_titled, cell.source)
        elif "reveal" in cell.metadata.get("tags", []):
            cell.metadata.jupyter = nbformat.from_dict(FOLDED)
            if not cell.source.startswith("# Run this cell"):
                cell.source = f"{MEASURES}\n{cell.source}"
    notebook.cells[0].source = timed(notebook.cells[0].source, path, notebook)
    notebook.cells.insert(1, _cell(line, f"{path.stem}, top"))
    notebook.cells.insert(last, _cell(line, path.stem))
    return notebook


def unsign(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Take off strips and titles, in place, so that the notebook can be edited as text."""
    notebook.cells = [cell for cell in notebook.cells if not _is_strip(cell)]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = TERM.sub(r"](\1#\2)", cell.source)
    return notebook


def stale(notebook: nbformat.NotebookNode, path: Path) -> list[str]:
    """What :func:`sign` would change: some of ``["strip", "minutes", "glossary", "folding"]``."""
    new = sign(nbformat.from_dict(notebook), path)

    def parts(of):
        strips = [(n, cell.source) for n, cell in enumerate(of.cells) if _is_strip(cell)]
        rest = "\n".join(cell.source for cell in of.cells if not _is_strip(cell))
        reveals = [
            (cell.source.split("\n")[0], cell.metadata.get("jupyter"))
            for cell in of.cells
            if "reveal" in cell.metadata.get("tags", [])
        ]
        return {
            "strip": strips,
            "minutes": of.cells[0].source,
            "folding": reveals,
            "glossary": [link.group() for link in TERM.finditer(rest)],
        }

    old, new = parts(notebook), parts(new)
    return [name for name in old if old[name] != new[name]]


# ---- the strip ----
def is_exercise(path: Path) -> bool:
    return path.stem.startswith("ex")


def strip(path: Path) -> str:
    """One line of links: before, this one's place, after, and what belongs to it.

    Made from the files beside ``path``, which is ``notebooks/NN_….ipynb``, ``notebooks/deeper/NN_….ipynb`` or
    ``solutions/exNN_…/exNN_….ipynb``; the links hold in ``exercises/`` as well.
    """
    exercise, quest = is_exercise(path), path.parent.name == DEEPER
    root = path.parents[2 if exercise or quest else 1]
    series = sorted(path.parents[1].glob("ex*/ex*.ipynb")) if exercise else notebooks(root)
    if path not in series and not quest:  # it is still only text
        series = sorted([*series, path])

    def link(text: str, target: Path, section: str = "") -> str:
        return f"[{text}]({Path(os.path.relpath(target, path.parent)).as_posix()}{section})"

    if quest:
        home = next(other for other in series if other.stem[:2] == path.stem[:2])
        return " · ".join(
            [
                QUEST.format(lesson=link(title(home), home)),
                link("overview", series[0], "#The-map"),
                link("glossary", root / "docs" / "glossary.md"),
            ]
        )

    number, place = path.stem.removeprefix("ex")[:2], series.index(path)

    def name(other: Path) -> str:
        return f"exercise {other.stem[2:4]}" if exercise else title(other)

    here = f"**{'exercise ' * exercise}{number} of {series[-1].stem.removeprefix('ex')[:2]}**"
    parts = [link(f"← {name(other)}", other) for other in series[:place][-1:]]
    parts += [here] + [link(f"{name(other)} →", other) for other in series[place + 1 :][:1]]
    if exercise:
        parts += [link(title(other), other) for other in (root / "notebooks").glob(f"{number}_*.ipynb")]
    else:
        parts += [
            link(f"exercise {number}", other)
            for other in (root / "exercises").glob(f"ex{number}_*/ex{number}_*.ipynb")
        ]
        parts += [link("overview", other, "#The-map") for other in notebooks(root)[:1]]
    parts += [link("glossary", root / "docs" / "glossary.md")]
    return " · ".join(parts)


def _cell(line: str, seed: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(
        line, id=hashlib.sha1(seed.encode()).hexdigest()[:10], metadata={"tags": [STRIP]}
    )


def _is_strip(cell: nbformat.NotebookNode) -> bool:
    return STRIP in cell.metadata.get("tags", [])


# ---- the minutes ----
def prose(notebook: nbformat.NotebookNode) -> str:
    """What there is to read: no strips, addresses, displayed formulas, references or index."""
    text = "\n".join(
        cell.source for cell in notebook.cells if cell.cell_type == "markdown" and not _is_strip(cell)
    )
    text = re.split(r"^#+ (?:References|Where to find what)", text, flags=re.MULTILINE)[0]
    return re.sub(r"\$\$.*?\$\$", "", re.sub(r"\]\([^)]*\)", "]", text), flags=re.DOTALL)


def words(notebook: nbformat.NotebookNode) -> int:
    """Words of its :func:`prose`; a word has two letters, or is *a* or *I*."""
    return len([word for word in prose(notebook).split() if re.search("[A-Za-z]{2}|^[aI]$", word)])


def core(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without its side parts: sections whose heading stands in a cell with the tag ``side``."""
    kept, side = [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.match("#{1,2} ", cell.source):
            side = SIDE in cell.metadata.get("tags", [])
        if not side:
            kept.append(cell)
    return nbformat.v4.new_notebook(cells=kept)


def counted(notebook: nbformat.NotebookNode) -> dict[str, int]:
    """What takes time in a notebook: its words, hidden ones too, and how many of each of ``EFFORT``.

    Of a notebook with side parts, the rest.
    """
    notebook = core(notebook)
    code, text = (
        "\n".join(cell.source for cell in notebook.cells if cell.cell_type == kind)
        for kind in ("code", "markdown")
    )
    found = {name: len(re.findall(call, code, re.MULTILINE)) for name, call in CALLS.items()}
    return {"words": words(notebook), **found, "formulas": text.count("$$") // 2}


def minutes(found: Mapping[str, int]) -> float:
    """Minutes to work through a notebook in which :func:`counted` has found this.

    The numbers were set once, in November 2026, to agree with what one reader, who opened everything, judged
    honest for the eleven lessons of the first edition; ``tests/house/test_navigation.py`` has the table. They
    are round ones, and at most 5.2 minutes from the middle of what was said, where the best of any size are
    5.0. They are no causes: a figure stands for the experiment around it, an explorer for all that is tried
    with it. Lines of code, and small lanes that learn, explained nothing more. No lesson of the first edition
    had a build; its twelve minutes are what it is meant to take.
    They are not fitted again: a lesson that gets shorter has to get shorter.
    """
    return found["words"] / WORDS + sum(each * found[name] for name, each in EFFORT.items())


def running(seconds: float) -> str:
    """The time to run all cells, in words, rounded up.

    >>> running(24), running(45), running(61)
    ('under half a minute', 'under a minute', 'under 2 minutes')
    """
    if seconds < 60:
        return "under half a minute" if seconds < 30 else "under a minute"
    return f"under {int(seconds // 60) + 1} minutes"


def recorded(path: Path) -> str | None:
    """How long a notebook runs, in words, from the recorded seconds of the processor; None without any."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    found = record.get("notebooks", {}).get(path.stem)
    if found is None:
        return None
    cores = {1: "one core", 2: "two cores"}.get(record["cores"], f"{record['cores']} cores")
    return f"{running(found['seconds'])} on {cores}"


def rounded(notebook: nbformat.NotebookNode) -> int:
    """The minutes of a notebook, to five."""
    return max(5, 5 * round(minutes(counted(notebook)) / 5))


def timed(text: str, path: Path, notebook: nbformat.NotebookNode) -> str:
    """``text`` with the right minutes, where it says how long a notebook takes.

    Without a record, the time to run it stays as it is.
    """
    text = re.sub(r"(?:Reading|Time): about \d+ minutes", f"Time: about {rounded(notebook)} minutes", text)
    measured = recorded(path)
    return text if measured is None else re.sub(r"Running: [^.;\n]*", f"Running: {measured}", text)


def facts(path: Path, notebook: nbformat.NotebookNode) -> list[str]:
    """What a teacher wants to know first of a notebook: its minutes, how long it runs, its exercise."""
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    extras = re.search(r"\*Time: .*?, and (\d+) more for", prose)
    exercise = re.search(r"^Graded exercise: \[(\w+)\]", prose, re.M)
    measured = recorded(path)
    return [
        f"{rounded(notebook)} min",
        *([f"{extras[1]} more for extras"] if extras else []),
        *([f"runs in {measured.partition(' on ')[0]}"] if measured else []),
        f"exercise `{exercise[1]}`" if exercise else "no exercise",
    ]


def guide() -> str:
    """The instructor's guide, with what ``facts`` finds: in its table, and at the head of each section."""
    text = GUIDE.read_text(encoding="utf-8")
    for path in notebooks():
        found, number = facts(path, nbformat.read(path, as_version=4)), path.stem[:2]
        row, head = rf"^(\| \[{number} [^|]*\|)[^|]*\|", rf"^(\[Notebook {number}\]\([^)]*\)).*$"
        text = re.sub(row, lambda its, found=found: f"{its[1]} {found[0].split()[0]} |", text, flags=re.M)
        text = re.sub(head, lambda its, found=found: " · ".join([its[1], *found]), text, flags=re.M)
    return text


# ---- the glossary ----
class Term(NamedTuple):
    """A row of the glossary; ``notebook`` is the number of the one that explains it."""

    anchor: str
    name: str
    chinese: str
    sentence: str
    notebook: str


@functools.cache
def terms() -> dict[str, Term]:
    """The glossary, by anchor."""
    rows = re.findall(
        r'^\| <a id="([^"]+)"></a>(.+?) \| (.+?) \| (.+?) \| \[?(\d\d) .*\|$',
        GLOSSARY.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return {row[0]: Term(*row) for row in rows}


def _titled(link: re.Match) -> str:
    if link[2] not in terms():
        raise KeyError(f"the glossary has no #{link[2]}; it has {', '.join(terms())}")
    term = terms()[link[2]]
    return f']({link[1]}#{term.anchor} "{term.chinese}: {term.sentence}")'
