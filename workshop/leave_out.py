"""A course with a lesson less, for a teacher's own branch.

    python -m workshop.leave_out 05

removes the lesson's notebook, side quests, exercise, questions, plan and slides. Links to it become plain
words everywhere, also in the translations; each such line is printed, because a sentence may still speak of
the lesson, and so is each line that names it without a link. Rows of tables that begin with such a link go.
The other lessons keep their numbers.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat

from . import ROOT, authoring, exercises, navigation

LOCALE = ROOT / "workshop" / "locale"
BELONGS = (
    "notebooks/{}_*.ipynb",
    "notebooks/deeper/{}_*.ipynb",
    "exercises/ex{}_*",
    "solutions/ex{}_*",
    "course/lesson/questions/{}.toml",
    "course/lesson/turns/t{}.py",
    "course/checks/questions/q{}.py",
    "docs/instructor/plans/{}.toml",
    "workshop/decks/{}.toml",
    "workshop/locale/*/{}_*.po",
    "workshop/locale/*/ex{}_*.po",
    "workshop/locale/*/slides_{}.po",
)


def leave_out(number: str) -> Iterator[str]:
    """Remove lesson ``number`` from the clone; yields each line that named it or still does, as it reads now.

    ValueError where there is no such lesson.
    """
    going = [path for pattern in BELONGS for path in ROOT.glob(pattern.format(number))]
    names = [path.name for path in going if path.suffix == ".ipynb"]
    names += [f"{path.name}.ipynb" for path in going if path.parent.name == "solutions"]
    if number == "00" or not any((ROOT / "notebooks" / name).exists() for name in names):
        raise ValueError(f"there is no lesson {number!r} that could be left out")
    for path in going:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    named = re.compile(rf"\[([^\]]*)\]\((?:[\w./-]*/)?(?:{'|'.join(map(re.escape, names))})(?:#[^)\s]*)?\)")

    def plain(text: str) -> str:
        lines = (line for line in text.split("\n") if not named.match(line.removeprefix("| ")))
        return named.sub(r"\1", "\n".join(lines))

    to_release = []
    for path in authoring.known():
        notebook = nbformat.read(path, as_version=4)
        stored = [cell.source for cell in notebook.cells]
        for cell in navigation.unsign(notebook).cells:
            if cell.cell_type == "markdown":
                before, cell.source = cell.source, plain(cell.source)
                yield from _changed(path, before, cell.source)
        unasked = nbformat.writes(navigation.sign(notebook, path))
        asked = nbformat.writes(authoring.ask(notebook))  # a warm-up was a question of that lesson
        if asked != unasked or [cell.source for cell in notebook.cells] != stored:
            nbformat.write(authoring.normalise(notebook), path)
            to_release += [path.stem] * navigation.is_exercise(path)
    exercises.release(to_release)
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = path.read_text(encoding="utf-8")
        if (after := plain(before)) != before:
            path.write_text(after, encoding="utf-8")
            yield from _changed(path, before, after)
    for path in sorted(LOCALE.rglob("*.po")):
        _translated(path, plain)
    yield from _mentions(re.compile(rf"\b(?:lesson|notebook|exercise) {number}\b|[\"']{number}, section"))


def _mentions(named: re.Pattern) -> Iterator[str]:
    """What still speaks of the lesson, in what learners and teachers read."""
    for path in authoring.known():
        for cell in nbformat.read(path, as_version=4).cells:
            yield from (_line(path, line) for line in cell.source.split("\n") if named.search(line))
    texts = ("docs/**/*.md", "course/**/*.toml", "course/checks/questions/*.py", "workshop/decks/*.toml")
    for path in (path for pattern in texts for path in sorted(ROOT.glob(pattern))):
        lines = path.read_text(encoding="utf-8").split("\n")
        yield from (_line(path, line) for line in lines if named.search(line))


def _line(path: Path, line: str) -> str:
    return f"{path.relative_to(ROOT).as_posix()}: {line.strip()}"


def _changed(path: Path, before: str, after: str) -> Iterator[str]:
    old = before.split("\n")
    yield from (_line(path, line) for line in after.split("\n") if line not in old)


def _translated(path: Path, plain) -> None:
    """The same in a catalog, so that translations stay those of their English."""
    from babel.messages.pofile import read_po, write_po

    with path.open("rb") as stream:
        catalog = read_po(stream, locale=path.relative_to(LOCALE).parts[0])
    changed = [message for message in catalog if message.id and plain(message.id) != message.id]
    for message in changed:
        catalog.delete(message.id)
        if new := plain(message.id):
            catalog.add(new, plain(message.string), message.locations, message.flags)
    if changed:
        with path.open("wb") as stream:
            write_po(stream, catalog, width=100, include_previous=True, ignore_obsolete=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.leave_out",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("lesson", help="its number, such as 05")
    try:
        lines = list(leave_out(parser.parse_args(arguments).lesson))
    except ValueError as problem:
        parser.error(str(problem))
    print("\n".join(lines))
    print(f"{len(lines)} lines name it, and link to it no more: read whether they still say what you mean.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
