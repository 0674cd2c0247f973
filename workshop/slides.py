"""Slides of each notebook, made from its own cells: ``python -m workshop.slides``.

    python -m workshop.slides         # every deck, and build/slides/index.html that lists them
    python -m workshop.slides 06      # that one
    python -m workshop.slides --language zh   # in Chinese, after `make zh`: build/slides/zh

``workshop/decks/06.toml`` is the plan of a deck: for each slide a section of the notebook, minutes, what
to show of the section, what to ask and which answer to expect. All that a slide shows is quoted from
the notebook; the plan's own words go to the speaker notes. A quote names what it shows by its first
words:

============================  ======================================================================
``"Look for the position"``   the sentence, table row, formula, picture (by its alternative text), or line
                              of code or output that begins so
``"Look for [...] formula."``  from there to the part of the same block that ends (or begins) so
``"Look for [...]"``          from there to the end of the block: of the paragraph, list, table, cell
============================  ======================================================================

Emphasis and links do not count; formulas are quoted as they are written. ``head``, a headline, says in a
line what is seen; each number in it stands in the notebook. ``draw`` is a drawing
(:mod:`workshop.drawings`). The decks need no network: reveal.js and MathJax are copied beside them from the
packages of the ``site`` extra.

In another language a slide shows the same blocks of the translated notebook. Headlines, words of drawings,
notes, and each quote that is only a part of a paragraph or of an item, are messages of the catalog
``slides_06``. What is quoted in English is quoted there, too, to the letter.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import struct
import sys
import tomllib
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from course import playground
from course.lesson import questions
from tutorial_lib import colours
from tutorial_lib.explorers import live
from tutorial_lib.language import ENGLISH, speaking
from tutorial_lib.language import tag as web_name

from . import FONTS, ROOT, drawings
from .documents import curly
from .pieces import MARK, Say

PLANS, OUT = ROOT / "workshop" / "decks", ROOT / "build" / "slides"
LETTERS = ROOT / "workshop" / "site" / "static" / "fonts"  # those of the site
TEMPLATE = "deck"  # a folder of PLANS, in nbconvert's way
GAP = "[...]"
CLAIMS = ("Claim", "Verdict", "Say instead")  # the columns of *Claims tested* that a slide has room for
NOTES = (
    "<b>{clock}</b>, {n} minute. Open: {section}",
    "<b>{clock}</b>, {n} minutes. Open: {section}",
    "<b>Ask.</b> {text}",
    "<b>Expect.</b> {text}",
    "<b>Do.</b> {text}",
    "<b>Vote.</b> For each hand click the answer, or press its letter; Shift takes one back, 0 begins anew.",
    "<b>Vote.</b> Type the numbers that the room calls out, with spaces between them.",
    "<b>Vote.</b> Draw what the room expects, from left to right.",
)
"""What the speaker's view says."""
LIST = (
    "How Transformers know order: slides",
    "deck",
    "slides",
    "minutes (estimate)",
    "<b>S</b> opens the speaker view, with notes and clock. <b>F</b> is full screen, <b>O</b> the "
    "overview. To print, add <code>?print-pdf</code> to the address of a deck, and print the page to a "
    "file.",
)
"""What the page that lists the decks says."""
WORDS = (*NOTES, *LIST)
CATALOG, NOTE = "slides_", "of a plan"
CODE_WIDTH, CODE_HEIGHT, CODE_SIZES = 1130, 520, (30, 28, 26, 24, 22)  # in pixels
CODE_LINES = 10  # of one slide
WORDS_MOST = 60  # of running text on one slide
DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
RAW = re.compile(r"[{\[]['\"\d.-]|\w\(\[|\[\]|Error:|\b(?:True|False|None)\b")
"""What only a programmer reads: a dictionary, a list, a tensor, an error. A slide says it in words."""
VOTES = {"choice": NOTES[5], "number": NOTES[6], "sketch": NOTES[7]}


# ---- what a notebook holds ----
class Part(NamedTuple):
    """A sentence, row, line, formula or picture: ``text`` is what quotes are compared with."""

    text: str
    source: str


@dataclass(frozen=True)
class Block:
    """A paragraph, list, table, formula, code cell or output. ``cell`` is its number in the notebook.

    A quote knows where it comes from: section, number in it, first part.
    """

    kind: str
    cell: int
    parts: tuple[Part, ...]
    head: str = ""
    at: tuple[int, int, int] = field(default=(0, 0, 0), compare=False)

    def units(self) -> list[range]:
        """The parts that are translated together: those of a paragraph, of an item; else each alone."""
        inside = {"paragraph": lambda part: True, "list": lambda part: part.source.startswith(" ")}
        more = inside.get(self.kind, lambda part: False)
        starts = [n for n, part in enumerate(self.parts) if n == 0 or not more(part)]
        return [range(a, b) for a, b in zip(starts, [*starts[1:], len(self.parts)], strict=True)]


ATOM = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|`[^`]+`|\[([^\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)|\*+", re.DOTALL)
BOLD = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|`[^`]+`|\*\*.+?\*\*|\*.+?\*", re.DOTALL)
SENTENCE = re.compile(r"(?<=[.?!])[”’\")]*\s+(?=[(“‘\"]?[A-Z\u4e00-\u9fff])")
SHORT = re.compile(r"\b(?:al|eq|Fig|App|Prop|e\.g|i\.e)\.$")


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
    """Cut between sentences, never inside a formula, code or emphasis.

    >>> sentences("It is (Su et al. Eq) one. **Two. Two.** $x$ is three.")
    ['It is (Su et al. Eq) one.', '**Two. Two.**', '$x$ is three.']
    """

    def mask(match):
        inner = match[0].strip("*")
        end = "." if inner[-1] in ".?!" else "_"
        return ("A" if inner[0] in "$`" or not inner[0].islower() else "_") * (len(match[0]) - 1) + end

    masked, cuts = BOLD.sub(mask, paragraph), [0]
    for match in SENTENCE.finditer(masked):
        if not SHORT.search(masked[: match.start()]):
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
                for n, sentence in enumerate(sentences(item[len(mark) :])):
                    parts.append(Part(plain(sentence), (" " * len(mark) if n else mark) + sentence))
        else:
            kind, parts = "paragraph", [Part(plain(sentence), sentence) for sentence in sentences(chunk)]
        blocks.append(Block(kind, cell, tuple(parts), head))
    return blocks


def _of_output(cell: int, output, claims: tuple[str, ...]) -> list[Block]:
    from bs4 import BeautifulSoup

    if output.output_type == "stream":
        return [_lines("output", cell, output.text)]
    if "text/html" not in output.data:
        return [_lines("output", cell, output.data["text/plain"])]
    soup = BeautifulSoup(output.data["text/html"], "html.parser")
    for image in soup.find_all("img"):
        source = str(image)
        if own := output.metadata.get("live"):  # the picture stays where no script runs
            source = playground.place(**own, inside=source, small=True)
        return [Block("picture", cell, (Part(" ".join(image["alt"].split()), source),))]
    head, parts = "", []
    for tag in soup.find_all(("p", "li", "tr", "pre")):
        if tag.name == "tr":
            cells = tag.find_all(("th", "td"))
            if tag.find_parent("thead"):
                keep = [c.get_text() in claims for c in cells] if cells[0].get_text() == claims[0] else None
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
    """A notebook cut into blocks. ``number`` is ``"06"``; ValueError if there is none.

    ``path`` is its translation, ``claims`` are the names of columns there.
    """

    def __init__(self, number: str, path: Path | None = None, claims: tuple[str, ...] = CLAIMS):
        from . import authoring

        self.number, self.path = number, path or authoring.find(number)
        self.cells = nbformat.read(self.path, as_version=4).cells
        self.blocks: list[tuple[int, str, list[Block]]] = []  # level, heading, what stands below it
        self.asked: dict[int, str] = {}  # cell → the prediction that it asks for
        self.told: dict[int, dict] = {}  # cell → the prediction that it answers: ``key`` and ``value``
        for n, cell in enumerate(self.cells):
            if cell.cell_type == "code":
                if asked := re.search(r"lesson\.predict\(\"([\w.]+)\"\)", cell.source):
                    self.asked[n] = asked[1]
                self.blocks[-1][2].append(_lines("code", n, cell.source))
                for output in cell.outputs:
                    self.blocks[-1][2].extend(_of_output(n, output, claims))
                    if told := output.get("metadata", {}).get("measured"):
                        self.told[n] = told
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

    @cached_property
    def bare(self) -> list[tuple[int, str]]:
        """The letters of each heading and block, with its cell."""
        return [
            (block.cell, _bare(" ".join((block.head, *(part.text for part in block.parts)))))
            for _, name, blocks in self.blocks
            for block in (Block("heading", blocks[0].cell if blocks else -1, (Part(name, name),)), *blocks)
        ]

    def saying(self, text: str) -> list[int]:
        """The cells in which a stretch of words stands, whatever the signs and formulas' marks between."""
        sought = _bare(text)
        return [cell for cell, bare in self.bare if sought in bare]

    def counting(self, number: str) -> list[int]:
        """The cells in which a number stands, with all its digits and no others."""
        alone = re.compile(rf"(?<![\d.]){re.escape(number)}(?!\.?\d)")
        blocks = [block for _, _, blocks in self.blocks for block in blocks]
        return [block.cell for block in blocks if any(alone.search(part.text) for part in block.parts)]

    def section(self, heading: str) -> list[Block]:
        """The blocks below a heading, subsections included. ValueError unless it occurs exactly once.

        The section of the title ends with the first section.
        """
        at = [n for n, (_, name, _) in enumerate(self.blocks) if plain(name) == heading]
        if len(at) != 1:
            names = ", ".join(repr(plain(name)) for _, name, _ in self.blocks)
            raise ValueError(f"{self.path.name} has the section {heading!r} {len(at)} times; it has {names}")
        level, found = max(self.blocks[at[0]][0], 2), []
        for n, (below, _, blocks) in enumerate(self.blocks[at[0] :], at[0]):
            if n > at[0] and below <= level and not (at[0] == 0 and below > 2):
                break
            found += [replace(block, at=(n, m, 0)) for m, block in enumerate(blocks)]
        return found

    def heading(self, plain_name: str) -> int:
        """The number of the section with this heading."""
        return next(n for n, (_, name, _) in enumerate(self.blocks) if plain(name) == plain_name)

    def quoted(self, heading: str, quote: str) -> Block:
        """The block of a section that a quote names, cut to the parts that it names.

        Raises ValueError, naming notebook, section and quote, if it fits nothing or more than one place.
        """
        first, gap, last = (" ".join(each.split()) for each in quote.partition(GAP))
        found = [
            (block, n)
            for block in self.section(heading)
            for n, part in enumerate(block.parts)
            if first and part.text.startswith(first)
        ]
        where = f"{self.path.name}, section {heading!r}: the quote {quote!r}"
        if len(found) != 1:
            more = "lengthen it" if found else "mend it in the plan"
            raise ValueError(f"{where} fits {len(found)} places, it must fit one: {more}")
        block, start = found[0]
        end = start + 1 if not gap else len(block.parts)
        if last:
            ends = [
                n
                for n, part in enumerate(block.parts)
                if n >= start and (part.text.endswith(last) or n > start and part.text.startswith(last))
            ]
            if not ends:
                raise ValueError(f"{where} begins well, but nothing after it in its block ends with {last!r}")
            end = ends[0] + 1
        return replace(block, parts=block.parts[start:end], at=(*block.at[:2], start))


# ---- in another language ----
def quotes_of(notebook: Notebook, block: Block) -> list[tuple[range, str, str]]:
    """What a quote takes of each unit of its block: parts, bullet, and the text if it is not all of it."""
    section, n, first = block.at
    taken, found = range(first, first + len(block.parts)), []
    whole = notebook.blocks[section][2][n]
    for unit in whole.units():
        if mine := range(max(unit.start, taken.start), min(unit.stop, taken.stop)):
            texts = [whole.parts[m].source for m in mine]
            bullet = re.match(r" +|- |\d+\. ", texts[0])[0] if whole.kind == "list" else ""
            text = " ".join(each.strip() for each in [texts[0][len(bullet) :], *texts[1:]])
            found.append((mine, bullet, "" if mine == unit else text))
    return found


class Translated:
    """A notebook beside its executed translation, and what a slide shows of it."""

    def __init__(self, notebook: Notebook, path: Path, say: Say, common: Say):
        if not path.is_file():
            raise ValueError(
                f"{path.name} is not there in this language: `make zh`, or the language's own, writes it"
            )
        self.notebook, self.say, self.path = notebook, say, path
        self.other = Notebook(notebook.number, path, tuple(map(common, CLAIMS)))
        shapes = [
            [[(block.kind, block.cell) for block in blocks] for _, _, blocks in each.blocks]
            for each in (notebook, self.other)
        ]
        if shapes[0] != shapes[1]:
            raise ValueError(f"{path} has not been run, or is out of date: its blocks are others")

    def heading(self, name: str) -> str:
        return plain(self.other.blocks[self.notebook.heading(name)][1])

    def words(self, text: str) -> str:
        """What is said for words of a headline or drawing.

        ValueError if the notebook says them and its translation does not, or if own words get other numbers.
        """
        said, where = self.say(text), f"{CATALOG}{self.notebook.number}"
        if self.say.knows(text) and self.notebook.saying(text):
            if not self.other.saying(said):
                raise ValueError(f"{where}: {said!r} stands nowhere in {self.path.name}")
        elif sorted(DIGITS.findall(said)) != sorted(DIGITS.findall(text)):
            raise ValueError(f"{where}: {said!r} has other numbers than {text!r}")
        return said

    def quote(self, block: Block) -> Block:
        """The same quote in the translation. ValueError if it is not there."""
        section, n, _ = block.at
        whole, theirs = (each.blocks[section][2][n] for each in (self.notebook, self.other))
        units = dict(zip((unit.start for unit in whole.units()), theirs.units(), strict=False))
        if block.kind == "code":
            parts = _lines_of(self.notebook.cells[block.cell].source, theirs, block, self.say)
        elif len(whole.units()) != len(theirs.units()):
            raise ValueError(f"{self.path.name}: {theirs.parts[0].text!r} has other parts than in English")
        else:
            parts = []
            for mine, bullet, text in quotes_of(self.notebook, block):
                start = max(at for at in units if at <= mine.start)
                there = [theirs.parts[m] for m in units[start]]
                if not text:
                    parts += there
                    continue
                said = self.say(text)
                if not self.say.knows(text):
                    said += f" <small>{self.say(MARK)}</small>"
                elif _letters(said) not in _letters("".join(part.text for part in there)):
                    raise ValueError(
                        f"{CATALOG}{self.notebook.number}: {said!r} is not a part of "
                        f"{' '.join(part.text for part in there)!r}"
                    )
                parts.append(Part(plain(said), bullet + said))
        return Block(block.kind, block.cell, tuple(parts), theirs.head)


def _bare(text: str) -> str:
    return re.sub(r"[\W_]", "", plain(text))


def _letters(text: str) -> str:
    return re.sub(r"\s", "", plain(text))


def _lines_of(english: str, theirs: Block, block: Block, say: Say) -> list[Part]:
    """The lines of a translated cell that a quote means. A text of several lines is one line there."""
    from . import pieces

    gone = {
        row
        for text in pieces.texts(english)
        if say(pieces._spelled(text)) != pieces._spelled(text)
        for row in range(text.lineno, text.end_lineno or text.lineno)
    }  # from 0: those after its first
    kept = [n for n in range(len(english.rstrip().split("\n"))) if n not in gone]
    if len(kept) != len(theirs.parts):
        raise ValueError(f"{theirs.parts[0].text!r} and the rest of its cell have not {len(kept)} lines")
    taken = range(block.at[2], block.at[2] + len(block.parts))
    return [theirs.parts[at] for at, n in enumerate(kept) if n in taken]


# ---- a plan ----
@dataclass
class Slide:
    """One slide of a plan, and the blocks that its quotes stand for.

    ``then`` appears with a click; ``do`` says what to move in the notebook meanwhile. ``head`` says in
    a line what is seen; ``draw`` is what :mod:`workshop.drawings` draws. ``measured`` has a number and its
    words for each claim of *Claims tested*. ``dials`` says where an explorer begins, if not as in the
    notebook.
    """

    section: str
    minutes: int
    ask: str
    expect: str
    show: list[str] = field(default_factory=list)
    then: list[str] = field(default_factory=list)
    do: str = ""
    head: str = ""
    draw: dict = field(default_factory=dict)
    measured: list[list[str]] = field(default_factory=list)  # a number and its words, for each claim
    dials: dict = field(default_factory=dict)
    clock: int = 0
    vote: str = ""  # the prediction that it asks: a key of questions
    say: Say = field(default_factory=Say)
    blocks: list[list[Block]] = field(default_factory=list)  # those of ``show``, those of ``then``

    def words(self) -> list[str]:
        """The headline, what a drawing says, and what was measured for a claim."""
        said = (self.head, *drawings.words(self.draw), *(words for _, words in self.measured))
        return list(dict.fromkeys(text for text in said if text))

    @property
    def notes(self) -> str:
        """HTML: the clock at the start of the slide, its minutes, the section to open, and what to say."""
        head = (
            NOTES[self.minutes != 1],
            {"clock": f"{self.clock // 60}:{self.clock % 60:02}", "n": self.minutes, "section": self.section},
        )
        rows = [
            (name, {"text": text})
            for name, text in zip(NOTES[2:5], (self.ask, self.expect, self.do), strict=True)
            if text
        ]
        if self.vote:
            rows.append((VOTES[questions.find("predict", self.vote).get("kind", "choice")], {}))
        return "".join(
            "<p>"
            + self.say(name).format(
                **{key: html.escape(str(value), quote=False) for key, value in texts.items()}
            )
            + "</p>"
            for name, texts in (head, *rows)
        )


class Deck:
    """The plan of one notebook's slides, checked against the notebook.

    With ``language`` the slides show its translation, which is at ``path`` (default: where `make zh` writes
    it). Raises ValueError, with everything that needs mending, for a plan that does not fit.
    """

    def __init__(self, number: str, language: str = ENGLISH, path: Path | None = None):
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
                slide.blocks = [
                    [self.notebook.quoted(slide.section, quote) for quote in quotes]
                    for quotes in (slide.show, slide.then)
                ]
                self._words_are_known(slide, n, asked)
                self._results_are_asked_for(slide, n, asked)
                _readable(slide, f"{self.plan.name}, slide {n}")
            except ValueError as problem:
                problems.append(str(problem))
        if problems:
            raise ValueError("\n".join(problems))
        self.minutes, self.language, self.title = clock, language, self.notebook.title
        self.quoted = [[*slide.blocks[0], *slide.blocks[1]] for slide in self.slides]
        if language != ENGLISH:
            self._translate(path)
        for slide in self.slides:
            slide.blocks = [
                [_set_to(untitled(block) if slide.head else block, slide.dials) for block in _joined(blocks)]
                for blocks in slide.blocks
            ]

    def messages(self) -> Iterator[tuple[str, str, str]]:
        """``(text, place, note)`` of the English deck: the plan's words, and quotes of less than a block."""
        for n, (slide, blocks) in enumerate(zip(self.slides, self.quoted, strict=True), 1):
            place = f"{self.plan.name}, slide {n}"
            for block in (each for each in blocks if each.kind in ("paragraph", "list")):
                yield from ((text, place, "") for _, _, text in quotes_of(self.notebook, block) if text)
            yield from ((text, place, "") for text in slide.words())
            yield from ((text, place, NOTE) for text in (slide.ask, slide.expect, slide.do) if text)

    def _translate(self, path: Path | None) -> None:
        from . import translation

        says = translation.speakers(self.language)
        say, common = says(f"{CATALOG}{self.number}"), says(translation.LIBRARY)
        path = path or ROOT / "build" / self.language / self.notebook.path.relative_to(ROOT)
        # its code was translated by the notebook's own catalog
        there = Translated(
            self.notebook,
            path,
            Say({**(says(self.notebook.path.stem).known or {}), **(say.known or {})}, common.known),
            common,
        )
        for slide in self.slides:
            slide.blocks = [[there.quote(block) for block in blocks] for blocks in slide.blocks]
            slide.section, slide.say = there.heading(slide.section), common
            slide.ask, slide.expect, slide.do = map(say, (slide.ask, slide.expect, slide.do))
            slide.head, slide.draw = there.words(slide.head), drawings.said(slide.draw, there.words)
            slide.measured = [[number, there.words(words)] for number, words in slide.measured]
        self.title = there.other.title

    def _words_are_known(self, slide: Slide, n: int, asked: dict[str, int]) -> None:
        """ValueError for what first stands below a prediction still to come, or for an unknown number.

        Words that the notebook says are looked for as they stand, own words by the numbers of a headline,
        and of what was measured.
        """
        where, section = f"{self.plan.name}, slide {n}", self.notebook.section(slide.section)
        found = {text: self.notebook.saying(text) for text in slide.words()}
        counted = [number for number, _ in slide.measured]
        if not found.get(slide.head, True):
            counted.append(slide.head)
        found |= {number: self.notebook.counting(number) for number in DIGITS.findall(" ".join(counted))}
        for text, cells in found.items():
            if not cells and DIGITS.fullmatch(text):
                raise ValueError(f"{where}: {text} stands nowhere in {self.notebook.path.name}")
            if not cells:
                continue
            for cell in self.notebook.asked.keys() & {block.cell for block in section}:
                name = self.notebook.asked[cell]
                if name not in asked and cell < min(cells) <= section[-1].cell:
                    raise ValueError(
                        f"{where}: {text!r} stands below the prediction {name}, which nobody has asked"
                    )
        if slide.draw:
            try:
                drawings.svg(slide.draw)
            except ValueError as problem:
                raise ValueError(f"{where}: {problem}") from None

    def _results_are_asked_for(self, slide: Slide, n: int, asked: dict[str, int]) -> None:
        """What stands below a prediction in its section is shown only after the class has answered."""
        shown = [block for blocks in slide.blocks for block in blocks]
        section = {block.cell for block in self.notebook.section(slide.section)}
        for block in shown:
            for cell, name in self.notebook.asked.items():
                if cell in section and cell < block.cell and name not in asked:
                    raise ValueError(
                        f"{self.plan.name}, slide {n}: {block.parts[0].text!r} stands below the "
                        f"prediction {name}, which no slide before has asked"
                    )
        for block in shown:
            if block.cell in self.notebook.asked:
                slide.vote = self.notebook.asked[block.cell]
                asked[slide.vote] = n

    def as_notebook(self) -> nbformat.NotebookNode:
        """The deck as a notebook, its ``slideshow`` metadata as nbconvert reads them."""
        cells = []
        for slide in self.slides:
            head = f"\n\n### {slide.head.rstrip('.。')}" if slide.head else ""
            cover = slide is self.slides[0]
            said = _set(_cover(slide.section) if cover else slide.section + head)
            heading = new_markdown_cell(f"{'#' if cover else '##'} {said}")
            drawn = drawings.svg(slide.draw) if slide.draw else ""
            kind = "vote" if slide.vote else layout(slide.blocks, drawn)
            heading.metadata.slideshow = {"slide_type": "slide", "layout": kind}
            shown, later = (
                [cell for block in blocks for cell in self._cells(block, slide, kind)]
                for blocks in slide.blocks
            )
            if drawn:
                beside = () if kind == "beside" else (*shown, *later)
                drawn = drawings.svg(slide.draw, room(slide.head, beside))
                shown.append(_shown(f"<figure>{drawn}</figure>"))
            for cell in later[:1]:  # the others follow in the same fragment
                cell.metadata.slideshow = {"slide_type": "fragment"}
            notes = new_markdown_cell(slide.notes, metadata={"slideshow": {"slide_type": "notes"}})
            cells += [heading, *shown, *later, notes]
        for n, cell in enumerate(cells):
            cell.id = f"{self.number}-{n}"
        return new_notebook(
            cells=cells,
            metadata={"title": self.title, "minutes": self.minutes, "language": web_name(self.language)},
        )

    def _cells(self, block: Block, slide: Slide, kind: str) -> list[nbformat.NotebookNode]:
        if block.kind == "html" and block.cell in self.notebook.asked:
            return [_shown(_vote(self.notebook.asked[block.cell], block, self.language))]
        if block.kind == "html" and block.at[2] == 0 and (told := self.notebook.told.get(block.cell)):
            beside = [each for blocks in slide.blocks for each in blocks]
            return [_shown(_told(told, block, self.language, beside))]
        return _cells(block, slide.measured)


def _set_to(block: Block, dials: dict) -> Block:
    """An explorer with these dials; every other block as it is."""

    def dialled(found: re.Match) -> str:
        return f'data-params="{html.escape(live.compact(json.loads(html.unescape(found[1])) | dials))}"'

    parts = [
        part._replace(source=re.sub('data-params="([^"]*)"', dialled, part.source)) for part in block.parts
    ]
    return replace(block, parts=tuple(parts)) if dials else block


def _readable(slide: Slide, where: str) -> None:
    """ValueError for what cannot be read from the back of a room, or by somebody who does not program."""
    shown = [block for blocks in slide.blocks for block in blocks]
    words = sum(len(part.text.split()) for b in shown if b.kind in ("paragraph", "list") for part in b.parts)
    if words > WORDS_MOST:
        raise ValueError(f"{where} has {words} words of text; at most {WORDS_MOST} are read: quote fewer")
    for block in shown:
        lines = [part.text for part in block.parts]
        if block.kind == "code" and len(lines) > CODE_LINES:
            raise ValueError(f"{where} has {len(lines)} lines of code; at most {CODE_LINES} are read")
        if block.kind == "output" and (raw := [line for line in lines if RAW.search(line)]):
            raise ValueError(f"{where} shows the raw output {raw[0]!r}: quote the sentence that says it")


def _vote(key: str, block: Block, language: str) -> str:
    """A prediction as a slide asks it: choices that count hands, a line of numbers, a sheet to draw on."""
    question, *choices = (part.source for part in block.parts)
    *given, ask = _sentences(re.sub("^<p><b>", '<p><b class="pill">', question)[3:-4], language)
    question = f'<p class="given">{" ".join(given)}</p>' * bool(given) + f'<p class="ask">{ask}</p>'
    with speaking(language):
        asked = questions.find("predict", key)
    kind = asked.get("kind", "choice")
    name = html.escape(block.parts[0].text, quote=True)
    if kind == "choice":
        answers = "".join(
            f'<li><button type="button"><span>{choice}</span><output></output></button></li>'
            for choice in _reasoned([choice[4:-5] for choice in choices])
        )
        short = all(len(plain(choice[4:-5])) < (52 if language == ENGLISH else 26) for choice in choices)
        columns = ' class="two"' * (short and len(choices) == 4)
        inside = f"<ol{columns}>{answers}</ol>"
    elif kind == "number":
        unit = html.escape(asked["unit"], quote=False)
        inside = f'<label><input inputmode="decimal" placeholder="?" aria-label="{name}"> {unit}</label>'
        inside += f'<svg viewBox="0 0 1160 210" role="img" aria-label="{name}"></svg>'
    else:
        inside = _sheet(key, asked, name)
    return f'<div class="vote" data-vote="{key}" data-kind="{kind}">{question}{inside}</div>'


def _reasoned(choices: list[str]) -> list[str]:
    """Choices in bold; what follows a colon, a reason, stands back, unless it is what tells them apart.

    >>> _reasoned(["Rises: no mask.", "会降低：有掩码。"])
    ['<b>Rises:</b> <span class="why">no mask.</span>', '<b>会降低：</b><span class="why">有掩码。</span>']
    >>> _reasoned(["In the middle: first.", "In the middle: last."])[1]
    '<b>In the middle: last.</b>'
    """
    said = [re.match("([^<]+?(?:: |：))(.+)", choice) for choice in choices]
    heads = [parts[1] if parts else choice for choice, parts in zip(choices, said, strict=True)]
    if len(set(heads)) < len(heads):
        said = [None] * len(said)
    return [
        f'<b>{parts[1].rstrip()}</b>{" " * parts[1].endswith(" ")}<span class="why">{parts[2]}</span>'
        if parts
        else f"<b>{choice}</b>"
        for choice, parts in zip(choices, said, strict=True)
    ]


def _told(told: dict, block: Block, language: str, beside: list[Block]) -> str:
    """An answer, with how the room has voted or drawn.

    ``beside``: what else the slide shows. All choices, the right one marked, have room beside words alone; a
    picture leaves none for a curve.
    """
    with speaking(language):
        asked = questions.find("predict", told["key"])
    kinds, first = {each.kind for each in beside}, block.parts[0]
    drawn, choices = "picture" in kinds, asked.get("choices", {})
    rest = _html(replace(block, parts=block.parts[1:]))
    if asked.get("kind", "choice") == "sketch":
        return ("" if drawn else _sheet(told["key"], asked, first.text, told["value"])) + rest
    value = list(choices).index(told["value"]) if choices else told["value"]
    data = f'data-vote="{told["key"]}" data-value="{value}"'
    if choices and kinds <= {"html", "paragraph"}:
        answers = "".join(
            f"<li{' class=right' if name == told['value'] else ''}>{text}<output></output></li>"
            for name, text in choices.items()
        )
        return f'<ol class="told" {data}>{answers}</ol>{rest}'
    shown = re.sub("^<p>(.*?) ?<b>", r'<p class="measured"><small>\1</small><b>', first.source)
    if not choices:
        shown = re.sub(rf"<b>({NUMBER.pattern})", r'<b class="number">\1</b> <b>', shown)
    return f'{shown}<p class="told" {data}></p>{rest}'


def _sentences(text: str, language: str) -> list[str]:
    """Those of a question, in its language.

    >>> _sentences("<b>先预测。</b>位置都没有了。会怎样？", "zh")
    ['<b>先预测。</b>位置都没有了。', '会怎样？']
    """
    return sentences(text) if language == ENGLISH else re.split(r"(?<=[。？！])(?=[^<\s])", text)


def _sheet(key: str, asked: dict, name: str, measured: list[float] | None = None) -> str:
    """Axes for a curve that the room draws, or for the measured one beside it."""
    axes = {each: asked[each] for each in ("x", "xlabel", "ylabel", "ylim")}
    if measured:
        axes["measured"] = measured
    data = html.escape(json.dumps(axes), quote=True)
    more = f' data-vote="{key}"' if measured else ""
    return f'<svg viewBox="0 -24 1160 414" role="img" aria-label="{name}" data-axes="{data}"{more}></svg>'


def _joined(blocks: list[Block]) -> list[Block]:
    """Rows or items that follow each other in one table or list, and what was printed, as one block."""
    out = []
    for block in blocks:
        same = (
            out
            and block.kind != "paragraph"
            and (out[-1][0], out[-1][3]) == (block.kind, block.head)
            and (out[-1][1] == block.cell or block.kind == "output")
        )
        if same and block.kind != "formula":
            out[-1] = (*out[-1][:2], out[-1][2] + block.parts, *out[-1][3:])
        else:
            out.append((block.kind, block.cell, block.parts, block.head, block.at))
    return [Block(*block) for block in out]


def layout(blocks: list[list[Block]], drawn: str = "") -> str:
    """``"beside"`` for a picture that is not wide, with words next to it; else ``""``: below each other."""
    shown = [block for each in blocks for block in each]
    pictures = [block.parts[0].source for block in shown if block.kind == "picture"] + [drawn] * bool(drawn)
    words = [block for block in shown if block.kind in ("paragraph", "list", "table", "formula", "html")]
    moved = any(re.search("data-(?:live|playground)", each) for each in pictures)  # it takes the whole width
    if len(pictures) == 1 and not moved and words and len(shown) == len(words) + (not drawn):
        return "beside" if _proportion(pictures[0]) < (1.45 if drawn else 1.9) else ""
    return ""


def room(head: str, beside: Iterable[nbformat.NotebookNode]) -> float:
    """About how many pixels of a slide's height its words, code and formulas leave to a drawing.

    >>> line, two = new_markdown_cell("A line."), new_markdown_cell("Two lines. " * 8)
    >>> room("A head", []) > room("A head", [line]) > room("A head", [two]) > room("A head", [line, two])
    True
    """

    def lines(text, letters):
        wide = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in plain(text))
        return -(-wide // letters)

    left = 575 - 49 * lines(head, 50)
    for cell in beside:
        source = cell.source or "".join(output.data["text/html"] for output in cell.outputs)
        if vote := re.search('<ol(?: class="two")?>|<label|<svg', source):
            given, _, ask = source[: vote.start()].rpartition('<p class="ask">')
            left += 20 * (not head) - 41 * lines(given, 70) - 53 * lines(ask, 46) - 36
            choices = re.findall("<li>.*?</li>", source)
            two = 1 + ('<ol class="two">' in source)  # columns
            left -= (
                sum(42 + 39 * lines(each, 62 if two == 1 else 27) for each in choices) / two
                if choices
                else 108
            )
        elif 'class="told"' in source and "<li>" in source:
            left -= 66  # of all choices the right one
        elif "size" in cell.metadata:
            left -= 56 + 1.3 * cell.metadata["size"] * len(source.splitlines())
        elif "$$" in source:
            left -= 210 if "underbrace" in source else 130 if "frac" in source else 100
        else:
            left -= 24 + (76 if 'class="number"' in source else 42 * lines(source, 70))
    return max(left, 150)


def _set(text: str) -> str:
    """Text as it is printed: curly apostrophes, and no line ends between a number and its unit or in a range.

    >>> _set("RoPE's 16 L, at 1–10") == "RoPE’s 16\\u00a0L, at 1\\u2060–\\u206010"
    True
    """
    text = re.sub(r"(?<=\d) (?=(?:L|nats?|tokens?|%)(?!\w))", "\u00a0", curly(text))
    return re.sub(r"(?<=\d)–(?=\d)", "\u2060–\u2060", text)


def _cover(title: str) -> str:
    """A title that breaks, if it has to, behind its colon: what follows keeps together where a line holds it.

    >>> _cover("02 · Sinusoidal: a clock with many hands")
    '02 · Sinusoidal: a\\xa0clock\\xa0with\\xa0many\\xa0hands'
    """
    name, colon, rest = title.partition(": ")
    return f"{name}{colon}" + (rest.replace(" ", "\u00a0") if len(rest) < 30 else rest)


EDGE = 5  # pixels around what is painted over


def untitled(block: Block) -> Block:
    """A figure without its own title, which the slide's headline says. Titles of several panels stay: names.

    >>> from tutorial_lib import plots
    >>> shown = b64encode(plots.png(plots.lines([0, 1], {"": [0, 1]}, title="It rises"))).decode()
    >>> one = Block("picture", 0, (Part("A line.", f'<img src="data:image/png;base64,{shown}">'),))
    >>> _proportion(one.parts[0].source) < _proportion(untitled(one).parts[0].source)
    True
    >>> untitled(untitled(one)) == untitled(one)
    True
    """
    found = re.search(r"base64,([\w+/\s=]+)", block.parts[0].source) if block.kind == "picture" else None
    image = Image.open(BytesIO(b64decode(found[1]))) if found else None
    if not image or "Title" not in image.info:
        return block
    dpi = image.info["dpi"]
    box = [round(int(side) * dpi[0] / 100) for side in image.info["Title"].split()]
    paper = image.getpixel((0, 0))
    image.paste(paper, (box[0] - EDGE, max(box[1] - EDGE, 0), box[2] + EDGE, box[3] + 1))
    ink = np.flatnonzero((np.asarray(image) != paper).any(1))
    bare = BytesIO()
    image.crop((0, max(ink[0] - 2 * EDGE, 0), *image.size)).save(bare, "PNG", optimize=True, dpi=dpi)
    source = block.parts[0].source.replace(found[1], b64encode(bare.getvalue()).decode())
    return replace(block, parts=(Part(block.parts[0].text, source), *block.parts[1:]))


def _proportion(image: str) -> float:
    """Width by height of a drawing, or of a PNG that stands in an ``<img>``."""
    if box := re.match(r'<svg [^>]*viewBox="0 0 (\d+) (\d+)"', image):
        return int(box[1]) / int(box[2])
    head = b64decode(re.search(r"base64,([\w+/\s]{44})", image)[1])
    width, height = struct.unpack(">II", head[16:24])
    return width / height


def _cells(block: Block, measured: list[list[str]] = ()) -> list[nbformat.NotebookNode]:
    """A block, or what is left of it, as cells."""
    lines = [part.source for part in block.parts]
    if block.kind == "code":
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip("\n"))  # one empty line is enough there
        return [new_code_cell(text, metadata={"size": code_size(lines)})]
    if block.kind in ("output", "html", "picture"):
        return [_shown(_html(block, measured))]
    if block.kind == "table":
        lines.insert(0, block.head)
    if block.kind == "formula":  # to MathJax 2, a backslash within \\texttt is a character like others
        lines = [line.replace("\\texttt", "\\mathtt").replace("\\qquad ∎", "") for line in lines]
    return [new_markdown_cell(_set((" " if block.kind == "paragraph" else "\n").join(lines)))]


def code_size(lines: list[str]) -> int:
    """The largest size in pixels at which these lines fit on a slide, else the smallest."""
    wide = max(
        sum(1 if unicodedata.east_asian_width(letter) in "WF" else 0.605 for letter in line) for line in lines
    )
    high = 1.3 * len(lines)  # both in units of the size
    return next(
        (size for size in CODE_SIZES if size * wide < CODE_WIDTH and size * high < CODE_HEIGHT),
        CODE_SIZES[-1],
    )


def _shown(page: str) -> nbformat.NotebookNode:
    return new_code_cell(outputs=[new_output("display_data", {"text/html": _set(page)})])


def _html(block: Block, measured: list[list[str]] = ()) -> str:
    lines = [part.source for part in block.parts]
    if block.kind == "output":
        return _reading(lines)
    if block.kind == "picture":
        return f"<figure>{lines[0]}</figure>"
    text = re.sub(r"(?s)(?:<li>.*?</li>)+", lambda items: f"<ul>{items[0]}</ul>", "".join(lines))
    of_a_verdict = r"(<td[^>]*>)([✔✘◐◌≡])([^<:：]*)[^<]*"  # without what is half true of it
    text = re.sub(of_a_verdict, r'\1<b class="sign" data-sign="\2">\2</b>\3', text)
    kind = " class=claims" * ("data-sign" in text)
    if kind:
        for number, words in measured:
            shown = f"<b{' class=two' * ('→' in number)}>{html.escape(number)}</b> {html.escape(words)}"
            text = text.replace("</td></tr>", f'</td><td class="measured">{shown}</td> </tr>', 1)
    return re.sub(
        r"(?s)(?:<tr>.*?</tr>)+",
        lambda rows: f"<table{kind}><thead>{block.head}</thead><tbody>{rows[0]}</tbody></table>",
        text,
    )


NUMBER = re.compile(r"(?<![\w.])[-+−]?\d(?:[\d,.]*\d)?(?:e[-+]?\d+)?(?: ?[%×°](?!\w))?")


def _reading(lines: list[str]) -> str:
    """What a cell printed, as a speaker reads it out, with its numbers bold.

    >>> _reading(["as trained: 3.86 nats"])
    '<p class="reading">as trained: <b>3.86</b> nats</p>'
    """

    def bold(text):
        text = html.escape(text.strip().replace(" = ", "\u00a0=\u00a0"), quote=False)
        text = re.sub(r"(?<!\S)-(?=\d)", "−", text)
        parts = re.split(r"(?<=\d) (\([^()]*\d\))", text)  # numbers, and how far they spread
        told = rf"(?<=: ){NUMBER.pattern}" if re.search(rf": {NUMBER.pattern}", text) else NUMBER  # a result
        parts[::2] = [re.sub(told, lambda number: f"<b>{number[0]}</b>", part) for part in parts[::2]]
        parts[1::2] = [f" <small>{part}</small>" for part in parts[1::2]]
        return "".join(parts)

    return "".join(f'<p class="reading">{bold(line)}</p>' for line in lines)


# ---- files ----
def numbers() -> list[str]:
    """The notebooks that have a plan: ``["00", "01", …]``."""
    return sorted(path.stem for path in PLANS.glob("[0-9][0-9].toml"))


def _package(name: str, *below: str) -> Path:
    spec = find_spec(name)
    if spec is None:
        raise RuntimeError(
            f"the slides need the package {name.replace('_', '-')}: install the packages of "
            "the extra `site` (`make setup`, or pip with requirements.lock)"
        )
    return Path(spec.origin).parent.joinpath(*below)


def write_static(folder: Path, language: str = ENGLISH) -> None:
    """Copy reveal.js, MathJax, styles and scripts of the decks; explorers and lanes speak ``language``."""
    reveal, mathjax = (
        _package("sphinx_revealjs", "_static", "revealjs"),
        _package("jupyter_server_mathjax", "static"),
    )
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
    with speaking(language):
        live.write(folder)
        playground.write(folder)
    licence = ROOT / "LICENSES" / "Apache-2.0.txt"  # of Open Sans
    for path in (*(PLANS / TEMPLATE).glob("slides.*"), *FONTS.iterdir(), *LETTERS.iterdir(), licence):
        shutil.copyfile(path, folder / path.name)
    with (folder / "slides.css").open("a", encoding="utf-8") as sheet:
        sheet.write(colours.rules(".drawing .{}") + "\n")


def build(number: str, folder: Path = OUT, language: str = ENGLISH, path: Path | None = None) -> Deck:
    """Write ``folder/06.html``; :func:`write_static` writes what it needs beside it."""
    from nbconvert import SlidesExporter

    deck = Deck(number, language, path)
    exporter = SlidesExporter(
        template_name=TEMPLATE, extra_template_basedirs=[str(PLANS)], exclude_anchor_links=True
    )
    page, _ = exporter.from_notebook_node(deck.as_notebook())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.html").write_text(page, encoding="utf-8")
    return deck


def index(decks: list[Deck], language: str = ENGLISH) -> str:
    """The page that lists these decks."""
    from . import translation

    page = (PLANS / TEMPLATE / "list.html").read_text(encoding="utf-8")
    say = translation.speakers(language)(translation.LIBRARY) if language != ENGLISH else Say()
    for text in LIST:
        page = page.replace(f">{text}<", f">{say(text)}<")
    rows = "".join(
        f'<tr><td><a href="{deck.number}.html">{html.escape(deck.title)}</a></td>'
        f"<td>{len(deck.slides)}</td><td>{deck.minutes}</td></tr>"
        for deck in decks
    )
    return page.replace('lang="en"', f'lang="{web_name(language)}"').replace("<!-- decks -->", rows)


def spoken(language: str) -> list[str]:
    """The notebooks whose slides are said in a language, as :func:`numbers`."""
    from . import translation

    there = translation.catalogs(language) if language != ENGLISH else []
    return [number for number in numbers() if language == ENGLISH or f"{CATALOG}{number}" in there]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.slides",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("decks", nargs="*", help="numbers of notebooks; by default all")
    parser.add_argument("--folder", type=Path, help="where to write (default: build/slides, and there zh)")
    parser.add_argument("--language", default=ENGLISH, help="a language that was built, such as zh")
    given = parser.parse_args(arguments)
    there, language = spoken(given.language), given.language
    folder = given.folder or (OUT if language == ENGLISH else OUT / language)
    if unknown := set(given.decks) - set(numbers()):
        parser.error(f"no plan for {', '.join(sorted(unknown))}; there are plans for {', '.join(numbers())}")
    try:
        write_static(folder / "_static", language)
        for number in (each for each in given.decks or there if each in there):
            deck = build(number, folder, language)
            print(f"{folder / number}.html: {len(deck.slides)} slides, {deck.minutes} minutes")
        made = [Deck(number, language) for number in there if (folder / f"{number}.html").exists()]
        (folder / "index.html").write_text(index(made, language), encoding="utf-8")
    except (ValueError, RuntimeError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"{folder / 'index.html'}: open it in a browser; S opens the speaker view")
    return 0


if __name__ == "__main__":
    sys.exit(main())
