"""The course in another language: catalogs out of notebooks and questions, and notebooks out of catalogs.

    python -m workshop.translation update zh        # workshop/locale/zh/*.po follow the English texts
    python -m workshop.translation update zh 02     # the same, and begins the catalog of 02
    python -m workshop.translation update zh setup  # the same for docs/setup.md
    python -m workshop.translation check zh         # broken or unpolished translations
    python -m workshop.translation build zh         # build/zh: the course, translated and executed

Only the catalogs are kept. A message is one block of Markdown (a heading, a paragraph, an item of a list, a
row of a table), one comment or text of a code cell, or one text of a question (:mod:`pieces`). What has no
translation, or one of an older English text (*fuzzy*), is shown in English, with a mark.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import hashlib
import io
import json
import multiprocessing
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import nbformat

from classroom import assignments
from course import atlas, experiments, playground, verdicts
from course.checks import judge, report
from course.experiments import (
    cost,
    decay,
    extension,
    fusion,
    hybrid,
    images,
    lengths,
    position_gap,
    recurrence,
    why_rope,
    word_order,
)
from course.experiments.sweep import spoken
from course.lab.working_copy import served
from course.lesson import museum, panel, predictions, questions, resume, turns
from course.lesson.claims import DECIDE
from course.lesson.inventory import Before
from course.lesson.inventory import load as beliefs
from course.lesson.warm_up import WarmUp
from course.real_models import BUGS
from tutorial_lib import conformance, readability
from tutorial_lib.data import SOURCES
from tutorial_lib.explorers import live
from tutorial_lib.language import speaking

from . import ROOT, authoring, documents, navigation, pictures, pieces, slides
from .pieces import Say

LOCALE = ROOT / "workshop" / "locale"
COURSE, SPEAKING = ROOT / "course", ("tutorial_lib", "course", "classroom")
LIBRARY = "library"
"""The catalog of what the library itself says."""
EXPLORERS = "live"
"""The catalog of what explorers say, in Python and in the browser."""
SITE = "site"
"""The catalog of what stands around the pages of the web site."""
HEADER = {
    "project": "How Transformers know order",
    "version": "1",
    "header_comment": "#",
    "fuzzy": False,
    "last_translator": "the course",
    "language_team": "the course",
    "msgid_bugs_address": "the course",
}
OF = "{number} of {all}"
WORDS = (
    pieces.MARK,
    OF,
    navigation.QUEST,
    "overview",
    "glossary",
    "exercise",
    judge.NOT_WRITTEN,
    assignments.WRITTEN,
)
"""What this module writes into a notebook, besides translations."""
PAGE = ROOT / "docs" / "translations.md"


def languages() -> list[str]:
    """The languages that have catalogs: ``["zh"]``."""
    return sorted(path.name for path in LOCALE.iterdir() if path.is_dir())


@functools.cache
def sources() -> dict[str, Path]:
    """All notebooks, side quests and exercises, by the name of their catalogs."""
    found = [
        *navigation.notebooks(ROOT),
        *resume.quests(ROOT),
        *sorted((ROOT / "exercises").glob("ex*/ex*.ipynb")),
    ]
    return {path.stem: path for path in found}


@functools.cache
def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(sources()[name], as_version=4)


# ---- what is to be translated ----
def _graded(cell: nbformat.NotebookNode) -> bool:
    """Cells that the grading of an exercise compares with the released ones."""
    return "nbgrader" in cell.metadata


def _is_strip(cell: nbformat.NotebookNode) -> bool:
    return navigation.STRIP in cell.metadata.get("tags", [])


def _asked(name: str) -> Iterator[tuple[str, str]]:
    """``(place, text)`` of the questions of a notebook or an exercise."""
    number = name.removeprefix("ex")[:2]
    if name.startswith("ex"):
        from course.checks import questions as graded

        asked = {each.name: each for each in graded.load(number)}
    elif sources()[name].parent.name == navigation.DEEPER:
        return
    else:
        yield from _flat(questions.load(number), f"{number}.toml")
        asked = turns.load(number)
    for each in asked.values():
        for place, text in turns.texts(each):
            yield f"{'check' if name.startswith('ex') else 'turn'} {each.name}: {place}", text


def _flat(value, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _flat(each, f"{place} {name}") if name not in questions.NAMES else ()
    elif isinstance(value, list):
        for each in value:
            yield from _flat(each, place)
    elif isinstance(value, str) and re.search("[A-Za-z]{2}", value):
        yield place, value


@functools.cache
def decks() -> list[str]:
    """The catalogs that slides may have: ``["slides_00", …]``."""
    return [slides.CATALOG + number for number in slides.numbers()]


@functools.cache
def messages(name: str) -> tuple[tuple[str, str, str], ...]:
    """``(text, place, note)`` of all messages of one catalog, in reading order."""
    return tuple(_messages(name))


def _messages(name: str) -> Iterator[tuple[str, str, str]]:
    if name in decks():
        yield from slides.Deck(name.removeprefix(slides.CATALOG)).messages()
        return
    if name == LIBRARY:
        yield from ((text, place, "") for text, place in _library())
        return
    if name == EXPLORERS:
        yield from ((text, place, "") for text, place in _explorers())
        return
    if name == SITE:
        yield from (
            (text, path.name, "frame")
            for path in sorted(documents.SITE.glob("*.py"))
            for text in _marked(path)
        )
        yield from ((its["why"], "atlas.json", "") for its in atlas.record()["rows"] if "why" in its)
        return
    if name in documents.paths():
        yield from documents.messages(name)
        return
    exercise, path = name.startswith("ex"), sources()[name]
    for cell in read(name).cells:
        place = f"{path.name}#{cell.id}"
        if cell.cell_type == "code":
            yield from ((text, place, note) for text, note in pieces.in_code(cell.source))
        elif cell.cell_type == "markdown" and not _graded(cell) and not _is_strip(cell):
            yield from ((text, place, "") for text in pieces.in_prose(cell.source))
    code = [cell.source for cell in read(name).cells if cell.cell_type == "code"]
    yield from ((text, f"{path.name}: figures", pieces.NAME) for text in pieces.names(code))
    yield from ((text, place, "") for place, text in _asked(name))
    inputs = f"checks/questions/q{name[2:4]}.py" if exercise else f"lesson/turns/t{name[:2]}.py"
    for file in COURSE.glob(inputs if exercise or path.parent.name != navigation.DEEPER else "none"):
        yield from ((text, f"{file.stem}: an input", "text in code") for text in _marked(file))


def _marked(file: Path) -> Iterator[str]:
    """The texts ``_("…")`` of a module of the library."""
    if "language import" in (source := file.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "_"
                and isinstance(node.args[0], ast.Constant)
            ):
                yield node.args[0].value


def _library() -> Iterator[tuple[str, str]]:
    yield from ((text, "translation.py") for text in WORDS)
    named = (
        predictions.FOLDED,
        questions.QuestionList.NOTE,
        WarmUp.RULE,
        Before.NOTE,
        turns.EMPTY,
        turns.INSTEAD,
        DECIDE,
    )
    yield from (
        (text, "lesson")
        for text in (
            *named,
            *panel.Panel.HEAD,
            panel.Panel.FOOT,
            *report.Progress.HEAD,
            *verdicts.SIGNS,
            readability.KINDS,
        )
    )
    yield from ((text, "slides.py") for text in slides.WORDS)
    yield from ((text, "card.js") for text in predictions.said())
    yield from ((text, "judge") for text in judge.HIDDEN.values())
    yield from ((text, "real models") for text in BUGS)
    for source in SOURCES.values():
        yield from ((text, "where data comes from") for text in (source.terms, source.made) if text)
    for bug in conformance.BUGS.values():
        yield from ((text, "a bug of position code") for text in (bug.says, bug.do))
    for name, asked in beliefs().items():  # its sections are headings of notebooks
        told = {key: value for key, value in asked.items() if key not in ("notebook", "section")}
        yield from ((text, place) for place, text in _flat(told, f"inventory.toml {name}"))
    for check in museum.CHECKS.values():
        yield from ((text, "a check of the museum") for text in (check.label, check.reason) if text)
    for name, each in museum.EXHIBITS.items():
        yield from ((text, f"museum: {name}") for text in (each.title, each.said, each.diagnosis))
    names = (
        *word_order.ENCODINGS,
        *hybrid.ENCODINGS,
        *why_rope.AT_L,
        *why_rope.BEYOND,
        *cost.DRAWN,
        *fusion.FUSIONS,
        *fusion.VECTORS,
        *images.ENCODINGS,
        *recurrence.ENCODINGS,
        *decay.KINDS,
        "matrix",
        *position_gap.SCALINGS,
        *extension.SCALINGS,
        *lengths.FAMILIES,
        *lengths.ENCODINGS,
        *lengths.rows(experiments.load("lengths")),
    )
    yield from ((text, "figures of records") for text in map(spoken, names) if re.search("[A-Za-z]{2}", text))
    elsewhere = {
        *COURSE.glob("checks/questions/q*.py"),
        *COURSE.glob("lesson/turns/t*.py"),
        *live.HERE.parent.rglob("*.py"),
    }
    for path in sorted({path for room in SPEAKING for path in (ROOT / room).rglob("*.py")} - elsewhere):
        place = path.stem if path.stem != "__init__" else path.parent.stem
        yield from ((text, place) for text in _marked(path))


def _explorers() -> Iterator[tuple[str, str]]:
    """First what all share; then, for each, its table and its module for the browser; then Python's own."""
    yield from ((text, "kit.js") for text in live.messages(live.KIT))
    for each in live.everyone():
        yield from ((text, each.front) for text in live.texts(each))
        yield from ((text, f"{each.front}.js") for text in live.messages(each.front))
    for path in sorted(live.HERE.parent.glob("*.py")):
        yield from ((text, path.stem) for text in _marked(path))
    yield from ((text, "playground") for text in playground.messages())


def template(name: str):
    from babel.messages.catalog import Catalog

    catalog = Catalog(charset="utf-8", **HEADER)
    for text, place, note in messages(name):
        catalog.add(text, locations=[(place, None)], auto_comments=[note] if note else [])  # type: ignore[list-item]
    return catalog


# ---- catalogs ----
def stored(name: str, language: str) -> Path:
    return LOCALE / language / f"{name}.po"


@functools.cache
def load(name: str, language: str):
    """A catalog as it is kept; an empty one where there is none."""
    from babel.messages.catalog import Catalog
    from babel.messages.pofile import read_po

    if not stored(name, language).is_file():
        return Catalog(locale=language, charset="utf-8", **HEADER)
    with stored(name, language).open("rb") as stream:
        return read_po(stream, locale=language)


def updated(name: str, language: str) -> bytes:
    """A catalog that follows the English: new messages empty, changed ones fuzzy with their old English."""
    from babel.messages.pofile import write_po

    catalog, out = copy.deepcopy(load(name, language)), io.BytesIO()
    catalog.update(template(name), update_creation_date=False)
    write_po(out, catalog, width=100, include_previous=True, ignore_obsolete=True)
    return out.getvalue()


def catalogs(language: str) -> list[str]:
    """The names of the catalogs of a language, in the order of the course."""
    names = (*sources(), *decks(), *documents.paths(), SITE, EXPLORERS, LIBRARY)
    return [name for name in names if stored(name, language).is_file()]


def stale(language: str) -> list[str]:
    """The catalogs that ``update`` would change, be it the order alone; Babel's version does not count."""

    def messages(catalog: bytes) -> bytes:
        return re.sub(rb'"Generated-By: .*', b"", catalog)

    return [
        name
        for name in catalogs(language)
        if messages(updated(name, language)) != messages(stored(name, language).read_bytes())
    ]


def known(name: str, language: str) -> dict[str, str]:
    """The translations that are valid: ``{english: translated}``."""
    return {
        each.id: each.string for each in load(name, language) if each.id and each.string and not each.fuzzy
    }


def coverage(name: str, language: str) -> tuple[int, int]:
    """How many messages are translated, of how many."""
    wanted, done = {text for text, *_ in messages(name)}, known(name, language)
    return len(wanted & done.keys()), len(wanted)


KINDS = {
    "lessons and side quests": r"\d\d_",
    "exercises": "ex",
    "slides": slides.CATALOG,
    "pages, explorers, messages": "",
}


def page() -> str:
    """``docs/translations.md``: what is translated, kind by kind, and each catalog that isn't whole."""
    from babel import Locale

    parts, heard = [], []
    for language in languages():
        left, rows, short, total = catalogs(language), [], [], 0
        for kind, begins in KINDS.items():
            names = [name for name in left if re.match(begins, name)]
            left = [name for name in left if name not in names]
            if not names:  # of a language that has just begun
                continue
            counts = [coverage(name, language) for name in names]
            done, wanted = map(sum, zip(*counts, strict=True))
            total += wanted
            share = f"{done:,} of " * (done < wanted) + f"{wanted:,}"
            rows.append(f"| {kind} | {len(names)} | {share} |")
            short += [
                f"- {language}, {name}: {has} of {of}"
                for name, (has, of) in zip(names, counts, strict=True)
                if has < of
            ]
        name = Locale.parse(language).get_display_name("en")
        said = "\n".join(["still to do:\n", *short]) if short else "everything is translated"
        parts.append(
            f"{name}: {said}{'' if short else f' ({total:,} messages).'}\n\n"
            "| what | catalogs | messages |\n|---|---:|---:|\n" + "\n".join(rows)
        )
        heard += [
            f"| **{rule['but']}** | {rule['not']} | {rule['why']} |" for rule in style(language)["rules"]
        ]
    return (
        "# What is translated\n\n" + "\n\n".join(parts) + "\n\n"
        "A message is a block of text. One without a translation, or with an older one, is shown in English, "
        "with a mark.\n\n## By ear\n\nA text that is right may still sound translated.\n\n"
        "| write | and not | why |\n|---|---|---|\n" + "\n".join(heard) + "\n\n"
        "Where a rule can be seen, `make locale LANGUAGE=zh` sees it; it also writes this page. "
        "[How to translate](contributing.md#a-translation).\n"
    )


# ---- notebooks out of catalogs ----
def strip(text: str, says: Callable[[str], Say]) -> str:
    """The line of links, with its words and the titles of notebooks translated."""
    say = says(LIBRARY)
    titles = {english: title(name, says(name)) for english, name in _titles().items()}

    def word(found):
        text = re.sub(r"^← | →$", "", found[1])
        number = re.fullmatch(r"exercise (\d\d)", text)
        said = f"{say('exercise')} {number[1]}" if number else titles.get(text) or say(text)
        return f"[{found[1].replace(text, said)}"

    quest = re.escape(navigation.QUEST).replace(re.escape("{lesson}"), r"(\[[^]]+\]\([^)]+\))")
    text = re.sub(quest, lambda found: say(navigation.QUEST).format(lesson=found[1]), text)
    text = re.sub(r"\[([^\]]+)(?=\]\()", word, text)

    def place(found):
        return f"{say('exercise')} " * bool(found[1]) + say(OF).format(number=found[2], all=found[3])

    return re.sub(r"\b(exercise )?(\d\d) of (\d\d)\b", place, text)


@functools.cache
def _titles() -> dict[str, str]:
    """The name of each notebook, by its title."""
    return {navigation.title(path): name for name, path in sources().items()}


def title(name: str, say: Say) -> str:
    """The title of a notebook as others name it: its heading up to a colon."""
    return re.split("[:：]", say(headings(name)[0]))[0].replace(" · ", " ")


@functools.cache
def headings(name: str) -> list[str]:
    prose = "\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    return re.findall(r"^#+ (.+?)\s*$", prose, re.MULTILINE)


def anchored(text: str, path: Path, says: Callable[[str], Say]) -> str:
    """``text`` of the file ``path`` with its links to headings as these are called now."""
    pages = {page: name for name, page in documents.paths().items()}

    def lab(heading):
        return heading.replace(" ", "-")

    def mend(link):
        target = (path.parent / link[1]).resolve() if link[1] else path
        if target in pages:
            name, heads, spelt = pages[target], documents.headings(pages[target]), documents.slug
        elif (name := target.stem) in sources():
            heads, spelt = headings(name), lab
        else:
            return link[0]
        now = {spelt(each): spelt(says(name)(each)) for each in heads}
        return f"]({link[1] or ''}#{now.get(link[2], link[2])}"

    return re.sub(r"\]\(([^()\s#]*\.(?:ipynb|md))?#((?:[^()\s]|\([^()\s]*\))+)", mend, text)


def translate(name: str, says: Callable[[str], Say]) -> nbformat.NotebookNode:
    """The notebook ``name`` as ``says(name)`` says it: same cells and metadata, not executed.

    In an exercise, each text that is not the English one has its fingerprint, by which marking knows it.

    Raises ValueError where the code would be another program.
    """
    notebook, path, say = copy.deepcopy(read(name)), sources()[name], says(name)
    for cell in notebook.cells:
        english = cell.source
        if cell.cell_type == "code":
            cell.source = pieces.code(english, say)
            if not pieces.same_code(english, cell.source):
                raise ValueError(f"{name}, cell {cell.id}: the translation is another program")
            cell.source = stub(cell.source, say)
        elif english == assignments.WRITTEN:
            cell.source = say(english)
        elif cell.cell_type == "markdown" and _is_strip(cell):
            cell.source = anchored(strip(english, says), path, says)
        elif cell.cell_type == "markdown" and not _graded(cell):
            cell.source = anchored(pieces.prose(english, say), path, says)
        if name.startswith("ex") and cell.source != english:
            cell.metadata[assignments.PROSE] = assignments.fingerprint(cell.source)
    return notebook


def stub(source: str, say: Say) -> str:
    """Code in whose place an answer is to be written says so in the language."""
    said = re.escape(judge.NOT_WRITTEN).replace(r"\{name\}", r"(\w+)")
    return re.sub(
        rf'(?<=raise NotImplementedError\("){said}(?="\))',
        lambda found: say(judge.NOT_WRITTEN).format(name=found[1]),
        source,
    )


def document(name: str, says: Callable[[str], Say], file: Path | None = None, text: str | None = None) -> str:
    """The document ``name`` as its catalog says it (:func:`documents.said`), its links to headings mended.

    As ``file`` it is one among English documents, and links to their English headings.
    """
    said = documents.said(name, says, file, text)
    return said if file else anchored(said, documents.paths()[name], says)


def readme(language: str) -> Path:
    """Where the README of a language is kept, the one translated file that is."""
    return PAGE.parent / f"README.{language}.md"


def readme_text(language: str) -> str:
    note = f"<!-- Made from README.md by `make locale LANGUAGE={language}`. -->\n"
    return note + document(documents.README, speakers(language), readme(language))


def speakers(language: str) -> Callable[[str], Say]:
    """For each notebook, what its catalog says; a notebook without one stays English, and unmarked.

    What several say, as titles of links to the glossary, is in the catalogs of library and glossary.
    """
    common = known(documents.GLOSSARY, language) | known(LIBRARY, language)
    there = {*catalogs(language)}
    return functools.cache(lambda name: Say(known(name, language) if name in there else None, common))


def numbers(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each code cell printed, its numbers and truth values alone: the same in every language.

    Nothing of a cell that is tagged ``trained``: another processor prints other numbers there.
    """
    return [
        re.findall(
            r"-?\d+(?:\.\d+)?|\bTrue\b|\bFalse\b", "".join(output.get("text", "") for output in cell.outputs)
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
        and {"nbval-ignore-output", "trained"}.isdisjoint(cell.metadata.get("tags", []))
    ]


class Job(NamedTuple):
    """A translated notebook to be executed in a folder, with what its kernel gets besides."""

    notebook: nbformat.NotebookNode
    name: str
    environment: Mapping[str, str]
    folder: Path


def run(jobs: list[Job]) -> Iterator[nbformat.NotebookNode]:
    """Execute translated notebooks, as many at a time as there are cores, and give them in order.

    Raises ValueError if one prints other numbers than its English notebook.
    """
    given = (
        [job.notebook for job in jobs],
        [job.folder for job in jobs],
        [job.environment for job in jobs],
    )
    if len(jobs) < 2:
        yield from map(_told, jobs, map(authoring.executed, *given))
        return
    # processes, since what draws the pictures is bound to one thread
    with ProcessPoolExecutor(
        min(len(jobs), os.cpu_count() or 1), multiprocessing.get_context("spawn")
    ) as pool:
        yield from map(_told, jobs, pool.map(authoring.executed, *given))


def _told(job: Job, notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """An executed notebook with its pictures, once its numbers are those of the English one."""
    name, environment = job.name, job.environment
    with (
        contextlib.suppress(RuntimeError),
        speaking(environment["TUTORIAL_LANG"], Path(environment["TUTORIAL_LOCALE"])),
    ):
        pictures.renew(notebook)  # without Chromium a line of text stays
    for n, (ours, theirs) in enumerate(zip(numbers(read(name)), numbers(notebook), strict=True)):
        if ours != theirs:
            raise ValueError(f"{name}, code cell {n}: it printed {ours} in English, and now {theirs}")
    return authoring.normalise(notebook)


def compile_texts(said: Mapping[str, str], folder: Path) -> None:
    """Write what the library looks up (:mod:`tutorial_lib.language`) to ``folder/texts.mo``."""
    from babel.messages.catalog import Catalog
    from babel.messages.mofile import write_mo

    catalog = Catalog(charset="utf-8")
    for text, other in said.items():
        catalog.add(text, other)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "texts.mo").open("wb") as stream:
        write_mo(stream, catalog)


def looked_up(language: str) -> dict[str, str]:
    """What the library may look up: all texts except comments and what only teachers get.

    Names in figures come first.
    """
    found: dict[str, str] = {}
    names: dict[str, str] = {}
    for name in catalogs(language):
        if name in decks() or name.startswith(documents.GUIDE):  # they have answers
            continue
        said, notes = known(name, language), {}
        for text, _place, note in messages(name):
            notes.setdefault(text, []).append(note)
        found |= {text: said[text] for text in said if {*notes.get(text, [""])} != {pieces.COMMENT}}
        names |= {text: said[text] for text in said if pieces.NAME in notes.get(text, [])}
    return found | names


def build(language: str, only: tuple[str, ...] = (), folder: Path = ROOT / "build") -> Path:
    """Write ``folder/<language>``, what a learner gets: translated notebooks executed, the rest copied.

    A notebook that was run there, and has not changed since, is not run again. With ``only`` no other
    notebook is run: one that was run earlier keeps its outputs, and the rest show the English ones.
    """
    out, says, ran = folder / language, speakers(language), _ran(folder, language)
    compile_texts(looked_up(language), out)
    waiting: list[tuple[Path, str, Job]] = []

    def write(path: Path, notebook: nbformat.NotebookNode) -> None:
        print(path, "{} of {}".format(*coverage(path.stem, language)), flush=True)
        nbformat.write(notebook, out / path)
        _record(folder, language).write_text(json.dumps(ran), encoding="utf-8")

    for path in served(ROOT):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        name = path.stem if path.suffix == ".ipynb" else ""
        if not name:
            if ROOT / path == documents.paths().get(path.stem) and says(path.stem).known is not None:
                (out / path).write_text(document(path.stem, says), encoding="utf-8")
            else:
                shutil.copy(ROOT / path, out / path)
            continue
        notebook = translate(name, says)
        if says(name).known is not None:
            notebook.metadata["language"] = language
            if not name.startswith("ex"):
                made, there = fingerprint(name, language, notebook), name in ran and (out / path).is_file()
                if there and ran[name] == made:
                    continue
                if not only or name[:2] in only:
                    spoken = {"TUTORIAL_LANG": language, "TUTORIAL_LOCALE": str(folder)}
                    waiting.append((path, made, Job(notebook, name, spoken, (out / path).parent)))
                    continue
                if there:
                    _keep_outputs(notebook, nbformat.read(out / path, as_version=4))
                    ran[name] = ""  # its turn comes in the next build of all
                else:
                    ran.pop(name, None)
            write(path, notebook)
        else:
            nbformat.write(notebook, out / path)
    for (path, made, job), notebook in zip(waiting, run([job for *_more, job in waiting]), strict=True):
        notebook.metadata["language"] = language
        ran[job.name] = made
        write(path, notebook)
    return out


def _keep_outputs(notebook: nbformat.NotebookNode, earlier: nbformat.NotebookNode) -> None:
    """Give cells of ``notebook`` their outputs of an earlier build, where they are still the same program."""
    before = {cell.id: cell for cell in earlier.cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        old = before.get(cell.id)
        if old and cell.cell_type == "code" and pieces.same_code(old.source, cell.source):
            cell.outputs = old.outputs


def _record(folder: Path, language: str) -> Path:
    return folder / f"{language}.json"


def _ran(folder: Path, language: str) -> dict[str, str]:
    """The notebooks in ``folder`` that were run, with the fingerprint of what was run."""
    file = _record(folder, language)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def fingerprint(name: str, language: str, notebook: nbformat.NotebookNode) -> str:
    """A hash of all that a translated notebook shows depends on: cells, English outputs, translations."""
    said = [known(one, language) for one in (name, LIBRARY, EXPLORERS)]
    whole = json.dumps([[cell.source for cell in notebook.cells], read(name), said], sort_keys=True)
    return hashlib.sha1(whole.encode(), usedforsecurity=False).hexdigest()


def faults(name: str, language: str) -> list[str]:
    """What is wrong with the translations of a catalog."""
    found, notes = [], {text: note for text, _, note in messages(name)}
    kinds = known(LIBRARY, language).get(readability.KINDS, "")
    for text, said in known(name, language).items():
        is_prose = not notes.get(text) and name not in (LIBRARY, EXPLORERS)
        plain = re.sub(r"\]\([^)]*\)|<[^>]+>", "", re.sub(r"([`$])[^`$]+\1", r"\1x\1", said)).strip()
        broken = [
            f"{rule}: {hit[0]!r}"
            for rule, pattern in (typography(language) | ear(name, language)).items()
            if (hit := re.search(pattern, plain))
        ]
        lacks = readability.alt_fault(said, kinds) if notes.get(text) == pieces.ALT else ""
        if lacks:
            broken.append(f"alternative text: {lacks}")
        found += [
            f"{fault}: {text[:60]!r}: {said[:60]!r}"
            for fault in (*pieces.faults(text, said, is_prose), *broken)
        ]
    return found


def typography(language: str) -> dict[str, str]:
    """The rules in ``<language>/typography.json``: by name, a pattern that no text may match."""
    file = LOCALE / language / "typography.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def style(language: str) -> dict:
    """What is in ``<language>/style.json``: how the language sounds when it is not a translation.

    ``rules``, each with a ``pattern`` that no text may match (empty where none can see it), an example, what
    to say instead, and why; and how the names of catalogs begin that nobody has read by ear yet (``unread``).
    """
    file = LOCALE / language / "style.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"rules": [], "unread": []}


def ear(name: str, language: str) -> dict[str, str]:
    """The patterns of :func:`style` that hold in a catalog, by what to say instead."""
    told = style(language)
    if name.startswith(tuple(told["unread"])):
        return {}
    return {f"say {rule['but']}": rule["pattern"] for rule in told["rules"] if rule["pattern"]}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.translation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("update", "check", "build"))
    parser.add_argument("language")
    parser.add_argument("notebooks", nargs="*", help="as for authoring: 02, ex02")
    given = parser.parse_args(arguments)
    language = given.language
    if given.command == "build":
        print(build(language, tuple(given.notebooks)))
        return 0
    started = [
        name
        for name, path in sources().items()
        if name in given.notebooks
        or name.startswith(tuple(given.notebooks) or "-")
        and path.parent.name != navigation.DEEPER
    ]
    started += [name for name in (*decks(), *documents.paths(), SITE) if name in given.notebooks]
    names = list(dict.fromkeys([*catalogs(language), *started, EXPLORERS, LIBRARY]))
    if given.command == "update":
        for name in names:
            stored(name, language).parent.mkdir(parents=True, exist_ok=True)
            stored(name, language).write_bytes(updated(name, language))
        load.cache_clear()
        PAGE.write_text(page(), encoding="utf-8")
        if documents.README in catalogs(language):
            readme(language).write_text(readme_text(language), encoding="utf-8")
        return 0
    found = [f"{name}: {fault}" for name in names for fault in faults(name, language)]
    found += [f"{name}: run `make locale LANGUAGE={language}`" for name in stale(language)]
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
