"""Slides of each notebook, made from its own cells: ``python -m tutorial_lib.course.slides``.

    python -m tutorial_lib.course.slides         # every deck, and build/slides/index.html that lists them
    python -m tutorial_lib.course.slides 06      # that one

``docs/slides/06.toml`` is the plan of a deck: for each slide a section of the notebook, minutes, what
to show of the section, what to ask and which answer to expect. All that a slide shows is quoted from
the notebook; the plan's own words go to the speaker notes. A quote names what it shows by its first
words:

============================  ======================================================================
``"Look for the position"``   the sentence, table row, formula, picture (by its alternative text), or line
                              of code or output that begins so
``"Look for [...] formula."``  from there to the part of the same block that ends (or begins) so
``"Look for [...]"``          from there to the end of the block: of the paragraph, list, table, cell
============================  ======================================================================

Emphasis and links do not count; formulas are quoted as they are written. The decks need no network:
reveal.js and MathJax are copied beside them from the packages of the ``site`` extra.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import struct
import sys
import tomllib
from base64 import b64decode
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from ..explorers import live
from . import ROOT

PLANS, OUT = ROOT / "docs" / "slides", ROOT / "build" / "slides"
TEMPLATE = "deck"  # a folder of PLANS, in nbconvert's way
GAP = "[...]"
CLAIMS = ("Claim", "Verdict", "Say instead")  # the columns of *Claims tested* that a slide has room for
CODE_WIDTH, CODE_HEIGHT, CODE_SIZES = 1130, 520, (28, 26, 24, 22, 20, 19, 18)  # in pixels


# ---- what a notebook holds ----
class Part(NamedTuple):
    """A sentence, row, line, formula or picture: ``text`` is what quotes are held against."""

    text: str
    source: str


@dataclass(frozen=True)
class Block:
    """A paragraph, list, table, formula, code cell or output. ``cell`` is its number in the notebook."""

    kind: str
    cell: int
    parts: tuple[Part, ...]
    head: str = ""


ATOM = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|`[^`]+`|\[([^\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)|\*+", re.DOTALL)
BOLD = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|`[^`]+`|\*\*.+?\*\*|\*.+?\*", re.DOTALL)
SENTENCE = re.compile(r"(?<=[.?!])[”’\")]*\s+(?=[(“‘\"]?[A-Z\u4e00-\u9fff])")
SHORT = re.compile(r"(?:al|eq|Fig|App|Prop|e\.g|i\.e)\.$")


def unlinked(markdown: str) -> str:
    """The same markdown with the words of its links in their places."""
    return ATOM.sub(lambda m: m[0] if m[1] is None else m[1], markdown)


def plain(markdown: str) -> str:
    """Without links and emphasis, in one line.

    >>> plain("**Bold** and [a *link*](x.ipynb 'no'), $a*b$")
    "Bold and [a link](x.ipynb 'no'), $a*b$"
    >>> plain('its [bias](../docs/glossary.md#bias "a number") counts')
    'its bias counts'
    """
    text = ATOM.sub(lambda m: "" if m[0][0] == "*" else m[0], unlinked(markdown))
    return " ".join(text.replace("`", "").split())


def sentences(paragraph: str) -> list[str]:
    """Cut between sentences, never inside of a formula, code or emphasis.

    >>> sentences("It is (Su et al. Eq) one. **Two. Two.** $x$ is three.")
    ['It is (Su et al. Eq) one.', '**Two. Two.**', '$x$ is three.']
    """
    def mask(match):
        inner = match[0].strip("*")
        end = "." if inner[-1] in ".?!" else "_"
        return ("A" if inner[0] in "$`" or not inner[0].islower() else "_") * (len(match[0]) - 1) + end

    masked, cuts = BOLD.sub(mask, paragraph), [0]
    for match in SENTENCE.finditer(masked):
        if not SHORT.search(masked[:match.start()]):
            cuts.append(match.end())
    return [paragraph[a:b].strip() for a, b in zip(cuts, [*cuts[1:], None], strict=True)]


ITEM = re.compile(r"(?:- |\d+\. )")


def _of_markdown(cell: int, source: str) -> list[Block]:
    blocks = []
    for chunk in re.split(r"\n\s*\n", unlinked(source).strip()):
        head, lines = "", chunk.split("\n")
        if lines[0].startswith("$$"):
            kind, parts = "formula", [Part(plain(chunk), chunk)]
        elif lines[0].startswith("|"):
            kind, head = "table", "\n".join(lines[:2])
            parts = [Part(plain(row.strip("| ")), row) for row in lines[2:]]
        elif ITEM.match(lines[0]):
            kind, parts = "list", []
            for item in re.split(rf"\n(?={ITEM.pattern})", chunk):
                mark = ITEM.match(item)[0]
                for n, sentence in enumerate(sentences(item[len(mark):])):
                    parts.append(Part(plain(sentence), (" " * len(mark) if n else mark) + sentence))
        else:
            kind, parts = "paragraph", [Part(plain(sentence), sentence) for sentence in sentences(chunk)]
        blocks.append(Block(kind, cell, tuple(parts), head))
    return blocks


def _of_output(cell: int, output) -> list[Block]:
    from bs4 import BeautifulSoup

    if output.output_type == "stream":
        return [_lines("output", cell, output.text)]
    if "text/html" not in output.data:
        return [_lines("output", cell, output.data["text/plain"])]
    soup = BeautifulSoup(output.data["text/html"], "html.parser")
    for image in soup.find_all("img"):
        source = str(image)
        if own := output.metadata.get("live"):  # the picture stays where no script runs
            source = live.place(own["name"], own["params"], source, small=True)
        return [Block("picture", cell, (Part(" ".join(image["alt"].split()), source),))]
    head, parts = "", []
    for tag in soup.find_all(("p", "li", "tr", "pre")):
        if tag.name == "tr":
            cells = tag.find_all(("th", "td"))
            if tag.find_parent("thead"):
                keep = [c.get_text() in CLAIMS for c in cells] if cells[0].get_text() == CLAIMS[0] else None
            for each, kept in zip(cells, keep or [], strict=False):
                each.attrs.pop("style", None)
                if not kept:
                    each.decompose()
            if tag.find_parent("thead"):
                head = str(tag)
                continue
        parts.append(Part(" ".join(tag.get_text(" " if tag.name == "tr" else "").split()), str(tag)))
    return [Block("html", cell, tuple(parts), head)]


def _lines(kind: str, cell: int, text: str) -> Block:
    return Block(kind, cell, tuple(Part(" ".join(line.split()), line) for line in text.rstrip().split("\n")))


class Notebook:
    """A notebook cut into blocks. ``number`` is ``"06"``; ValueError if there is none."""

    def __init__(self, number: str):
        from . import authoring

        self.number, self.path = number, authoring.find(number)
        self.cells = nbformat.read(self.path, as_version=4).cells
        self.blocks: list[tuple[int, str, list[Block]]] = []  # level, heading, what stands below it
        self.asked: dict[int, str] = {}  # cell → the prediction that it asks for
        for n, cell in enumerate(self.cells):
            if cell.cell_type == "code":
                if asked := re.search(r"lesson\.predict\(\"([\w.]+)\"\)", cell.source):
                    self.asked[n] = asked[1]
                self.blocks[-1][2].append(_lines("code", n, cell.source))
                for output in cell.outputs:
                    self.blocks[-1][2].extend(_of_output(n, output))
                continue
            for text in re.split(r"^(?=#+ )", cell.source, flags=re.MULTILINE):
                if text.startswith("#"):
                    heading, _, text = text.partition("\n")
                    marks, _, name = heading.partition(" ")
                    self.blocks.append((len(marks), name.strip(), []))
                if text.strip():
                    self.blocks[-1][2].extend(_of_markdown(n, text))

    @property
    def title(self) -> str:
        return self.blocks[0][1]

    def section(self, heading: str) -> list[Block]:
        """The blocks below a heading, those of its subsections with them. ValueError if it is not there once.

        The section of the title ends with the first section.
        """
        at = [n for n, (_, name, _) in enumerate(self.blocks) if plain(name) == heading]
        if len(at) != 1:
            names = ", ".join(repr(plain(name)) for _, name, _ in self.blocks)
            raise ValueError(f"{self.path.name} has the section {heading!r} {len(at)} times; it has {names}")
        level, found = max(self.blocks[at[0]][0], 2), list(self.blocks[at[0]][2])
        for below, _, blocks in self.blocks[at[0] + 1:]:
            if below <= level and not (at[0] == 0 and below > 2):
                break
            found += blocks
        return found

    def quoted(self, heading: str, quote: str) -> Block:
        """The block of a section that a quote names, cut to the parts that it names.

        Raises ValueError, naming notebook, section and quote, if it fits nothing or more than one place.
        """
        first, gap, last = (" ".join(each.split()) for each in quote.partition(GAP))
        found = [(block, n) for block in self.section(heading) for n, part in enumerate(block.parts)
                 if first and part.text.startswith(first)]
        where = f"{self.path.name}, section {heading!r}: the quote {quote!r}"
        if len(found) != 1:
            more = "lengthen it" if found else "mend it in the plan"
            raise ValueError(f"{where} fits {len(found)} places, it must fit one: {more}")
        block, start = found[0]
        end = start + 1 if not gap else len(block.parts)
        if last:
            ends = [n for n, part in enumerate(block.parts) if n >= start
                    and (part.text.endswith(last) or n > start and part.text.startswith(last))]
            if not ends:
                raise ValueError(f"{where} begins well, but nothing after it in its block ends with {last!r}")
            end = ends[0] + 1
        return Block(block.kind, block.cell, block.parts[start:end], block.head)


# ---- a plan ----
@dataclass
class Slide:
    """One slide of a plan, and the blocks that its quotes stand for.

    ``then`` appears with a click; ``do`` says what to move in the notebook meanwhile.
    """

    section: str
    minutes: int
    ask: str
    expect: str
    show: list[str] = field(default_factory=list)
    then: list[str] = field(default_factory=list)
    do: str = ""
    clock: int = 0
    blocks: list[list[Block]] = field(default_factory=list)  # those of ``show``, those of ``then``

    @property
    def notes(self) -> str:
        """HTML: the clock at the start of the slide, its minutes, the section to open, and what to say."""
        unit = "minute" if self.minutes == 1 else "minutes"
        head = f"<p><b>{self.clock // 60}:{self.clock % 60:02}</b>, {self.minutes} {unit}. Open: "
        rows = [("Ask", self.ask), ("Expect", self.expect), ("Do", self.do)]
        return head + html.escape(self.section, quote=False) + "</p>" + "".join(
            f"<p><b>{name}.</b> {html.escape(text, quote=False)}</p>" for name, text in rows if text)


class Deck:
    """The plan of one notebook's slides, held against the notebook.

    Raises ValueError, with all that is to be mended, for a plan that does not fit.
    """

    def __init__(self, number: str):
        self.notebook, self.number = Notebook(number), number
        self.plan = PLANS / f"{number}.toml"
        self.slides, asked, problems, clock = [], {}, [], 0
        for n, entry in enumerate(tomllib.loads(self.plan.read_text(encoding="utf-8"))["slide"], 1):
            try:
                slide = Slide(**entry)
            except TypeError as problem:
                raise ValueError(f"{self.plan.name}, slide {n}: {problem}") from None
            if not (isinstance(slide.minutes, int) and slide.minutes > 0 and slide.ask and slide.expect):
                raise ValueError(f"{self.plan.name}, slide {n}: it needs minutes (1 or more), ask and expect")
            slide.clock, clock = clock, clock + slide.minutes
            self.slides.append(slide)
            try:
                slide.blocks = [_joined([self.notebook.quoted(slide.section, quote) for quote in quotes])
                                for quotes in (slide.show, slide.then)]
                self._results_are_asked_for(slide, n, asked)
            except ValueError as problem:
                problems.append(str(problem))
        if problems:
            raise ValueError("\n".join(problems))
        self.minutes = clock

    def _results_are_asked_for(self, slide: Slide, n: int, asked: dict[str, int]) -> None:
        """What stands below a prediction in its section is shown only after the class has answered."""
        shown = [block for blocks in slide.blocks for block in blocks]
        section = {block.cell for block in self.notebook.section(slide.section)}
        for block in shown:
            for cell, name in self.notebook.asked.items():
                if cell in section and cell < block.cell and name not in asked:
                    raise ValueError(f"{self.plan.name}, slide {n}: {block.parts[0].text!r} stands below the "
                                     f"prediction {name}, which no slide before has asked")
        for block in shown:
            if block.cell in self.notebook.asked:
                asked[self.notebook.asked[block.cell]] = n

    def as_notebook(self) -> nbformat.NotebookNode:
        """The deck as a notebook, its ``slideshow`` metadata as nbconvert reads them."""
        cells = []
        for slide in self.slides:
            heading = new_markdown_cell(f"{'#' if slide is self.slides[0] else '##'} {slide.section}")
            heading.metadata.slideshow = {"slide_type": "slide", "layout": layout(slide.blocks)}
            shown, later = ([cell for block in blocks for cell in _cells(block)] for blocks in slide.blocks)
            for cell in later[:1]:  # the others follow in the same fragment
                cell.metadata.slideshow = {"slide_type": "fragment"}
            notes = new_markdown_cell(slide.notes, metadata={"slideshow": {"slide_type": "notes"}})
            cells += [heading, *shown, *later, notes]
        for n, cell in enumerate(cells):
            cell.id = f"{self.number}-{n}"
        return new_notebook(cells=cells, metadata={"title": self.notebook.title, "minutes": self.minutes})


def _joined(blocks: list[Block]) -> list[Block]:
    """Rows, items or lines that follow each other and are of one table, list or output: as one block."""
    out = []
    for block in blocks:
        same = out and block.kind != "paragraph" and out[-1][:3] == (block.kind, block.cell, block.head)
        if same and block.kind != "formula":
            out[-1] = (*out[-1][:3], out[-1][3] + block.parts)
        else:
            out.append((block.kind, block.cell, block.head, block.parts))
    return [Block(kind, cell, parts, head) for kind, cell, head, parts in out]


def layout(blocks: list[list[Block]]) -> str:
    """``"beside"`` for a picture that is not wide, with words next to it; else ``""``: below each other."""
    shown = [block for each in blocks for block in each]
    pictures = [block for block in shown if block.kind == "picture"]
    words = [block for block in shown if block.kind in ("paragraph", "list", "table", "formula")]
    if len(pictures) == 1 and words and len(shown) == len(words) + 1:
        return "beside" if _proportion(pictures[0].parts[0].source) < (1.45 if len(words) < 3 else 2) else ""
    return ""


def _proportion(image: str) -> float:
    """Width by height of a PNG that stands in an ``<img>``."""
    head = b64decode(re.search(r"base64,([\w+/\s]{44})", image)[1])
    width, height = struct.unpack(">II", head[16:24])
    return width / height


def _cells(block: Block) -> list[nbformat.NotebookNode]:
    """A block, or what is left of it, as cells."""
    lines = [part.source for part in block.parts]
    if block.kind == "code":
        return [new_code_cell("\n".join(lines).strip("\n"), metadata={"size": code_size(lines)})]
    if block.kind in ("output", "html", "picture"):
        return [new_code_cell(outputs=[new_output("display_data", {"text/html": _html(block)})])]
    if block.kind == "table":
        lines.insert(0, block.head)
    if block.kind == "formula":  # to MathJax 2, a backslash within \\texttt is a character like others
        lines = [line.replace("\\texttt", "\\mathtt") for line in lines]
    return [new_markdown_cell((" " if block.kind == "paragraph" else "\n").join(lines))]


def code_size(lines: list[str]) -> int:
    """The largest size in pixels at which these lines fit on a slide, else the smallest."""
    wide, high = 0.605 * max(map(len, lines)), 1.3 * len(lines)  # in units of the size
    return next((size for size in CODE_SIZES if size * wide < CODE_WIDTH and size * high < CODE_HEIGHT),
                CODE_SIZES[-1])


def _html(block: Block) -> str:
    lines = [part.source for part in block.parts]
    if block.kind == "output":
        # A single line may be wrapped; of several, the columns may mean something.
        kind, size = ("output wrapped", 26) if len(lines) == 1 else ("output", code_size(lines))
        return (f'<pre class="{kind}" style="font-size:{size}px">'
                + html.escape("\n".join(lines), quote=False) + "</pre>")
    if block.kind == "picture":
        return f"<figure>{lines[0]}</figure>"
    text = re.sub(r"(?s)(?:<li>.*?</li>)+", lambda items: f"<ul>{items[0]}</ul>", "".join(lines))
    return re.sub(r"(?s)(?:<tr>.*?</tr>)+", lambda rows: (
        f"<table><thead>{block.head}</thead><tbody>{rows[0]}</tbody></table>"), text)


# ---- files ----
def numbers() -> list[str]:
    """The notebooks that have a plan: ``["00", "01", …]``."""
    return sorted(path.stem for path in PLANS.glob("[0-9][0-9].toml"))


def _package(name: str, *below: str) -> Path:
    spec = find_spec(name)
    if spec is None:
        raise RuntimeError(f"the slides need the package {name.replace('_', '-')}: install the packages of "
                           "the extra `site` (`make setup`, or pip with requirements.lock)")
    return Path(spec.origin).parent.joinpath(*below)


def write_static(folder: Path) -> None:
    """Copy reveal.js, MathJax, and the style and script of the decks."""
    reveal, mathjax = (_package("sphinx_revealjs", "_static", "revealjs"),
                       _package("jupyter_server_mathjax", "static"))
    for name in ("dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js", "LICENSE"):
        (folder / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(reveal / name, folder / "reveal" / name)
    for name in ("MathJax.js", "config", "extensions", "fonts", "jax", "LICENSE"):
        target, source = folder / "mathjax" / name, mathjax / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("SVG"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    live.write(folder)
    for path in (PLANS / TEMPLATE).glob("slides.*"):
        shutil.copyfile(path, folder / path.name)


def build(number: str, folder: Path = OUT) -> Deck:
    """Write ``folder/06.html``; :func:`write_static` writes what it needs beside it."""
    from nbconvert import SlidesExporter

    deck = Deck(number)
    exporter = SlidesExporter(template_name=TEMPLATE, extra_template_basedirs=[str(PLANS)],
                              exclude_anchor_links=True)
    page, _ = exporter.from_notebook_node(deck.as_notebook())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.html").write_text(page, encoding="utf-8")
    return deck


def index(decks: list[Deck]) -> str:
    """The page that lists these decks."""
    rows = "".join(f'<tr><td><a href="{deck.number}.html">{html.escape(deck.notebook.title)}</a></td>'
                   f"<td>{len(deck.slides)}</td><td>{deck.minutes}</td></tr>" for deck in decks)
    return (PLANS / TEMPLATE / "list.html").read_text(encoding="utf-8").replace("<!-- decks -->", rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tutorial_lib.course.slides", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("decks", nargs="*", help="numbers of notebooks; by default all")
    parser.add_argument("--folder", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    if unknown := set(given.decks) - set(numbers()):
        parser.error(f"no plan for {', '.join(sorted(unknown))}; there are plans for {', '.join(numbers())}")
    try:
        write_static(given.folder / "_static")
        for number in given.decks or numbers():
            deck = build(number, given.folder)
            print(f"{given.folder / number}.html: {len(deck.slides)} slides, {deck.minutes} minutes")
        there = [Deck(number) for number in numbers() if (given.folder / f"{number}.html").exists()]
        (given.folder / "index.html").write_text(index(there), encoding="utf-8")
    except (ValueError, RuntimeError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"{given.folder / 'index.html'}: open it in a browser; S opens the speaker view")
    return 0


if __name__ == "__main__":
    sys.exit(main())
