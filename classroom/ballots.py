"""Votes that were handed in as files: from the inbox into the class folder, and a report on them.

:mod:`course.lesson.votes` says what a vote is, and who writes one. It is imported late, because it
brings widgets. ``votes/`` in the class folder is laid out like a folder that a class votes into, but names
nobody.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from course import files

from . import roster

FOLDER = "votes"
NAME = re.compile(r"vote-\d\d\.\w{1,40}-[12]-[0-9a-f]{16}")  # a platform may add to both ends
MOST_ZIP_BYTES, MOST_MEMBERS = 50 * files.MEGABYTE, 1000
HIDDEN = "–"


def is_vote(name: str) -> bool:
    """Is this the name of a vote's file?

    >>> is_vote("ada_48213_77_vote-06.random-1-0123456789abcdef-1.json"), is_vote("ex06_rope.ipynb")
    (True, False)
    """
    last = name.rpartition("/")[2]
    return len(name) <= files.MOST_NAME and last.endswith(".json") and NAME.search(last) is not None


def take_in(
    found: Iterator[tuple[Path, str]], inbox: Path, root: Path, who: Callable[[str], str]
) -> tuple[int, int]:
    """Copy the votes among the files ``found`` in ``inbox`` into ``votes/`` of the class folder.

    ``found`` gives paths and kinds as `intake` does, ``who`` the student that a name in the inbox means. Of
    each student's first votes on a question the newest counts; the same goes for second votes, and for later
    runs. So the code that a student has drawn is replaced by one that is always the same for that student,
    and that only the class's secret can tell from a random one. Returns how many votes there are, and how
    many files have such a name, but hold no vote.
    """
    from course.lesson import votes

    from .marking import secret_of

    latest: dict[tuple, tuple[float, dict]] = {}
    wrong = 0
    for path, kind in found:
        for data, seconds, parts in _votes_in(path, inbox) if kind == "file" else []:
            try:
                vote = votes.parse(data)
            except ValueError:
                wrong += 1
                continue
            key = _sender(parts, who), vote["question"], vote["vote"]
            if key not in latest or latest[key][0] <= seconds:
                latest[key] = seconds, vote
    if latest:
        (folder := Path(root) / FOLDER).mkdir(exist_ok=True)
        secret = secret_of(root)
        for (student, *_), (_, vote) in latest.items():
            (folder / votes.name_of(vote)).unlink(missing_ok=True)  # earlier versions kept what was drawn
            votes.write(vote | {"code": code(secret, vote["question"], student)}, folder)
    return len(latest), wrong


def code(secret: str, question: str, student: str) -> str:
    """The code of a student's votes on a question, which only the class's secret tells from a random one."""
    text = f"vote/{question}/{student}".encode(errors="surrogatepass")
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()[:16]


def _sender(parts: tuple[str, ...], who: Callable[[str], str]) -> str:
    """Who sent it, as far as the name in the inbox tells."""
    while len(parts) > 1 and roster.CLASS.search(parts[0]) and not roster.sender(parts[0]):
        parts = parts[1:]  # what a platform has packed for the whole class
    vote = NAME.search(parts[0]) if len(parts) == 1 and not roster.sender(parts[0]) else None
    name = parts[0][: vote.start()].strip(" _-") if vote else parts[0]
    return who(name) if name else parts[0]


def _votes_in(path: Path, inbox: Path) -> Iterator[tuple[bytes, float, tuple[str, ...]]]:
    """Contents, date and place of a file with a vote's name, or of all such files in a zip file."""
    from course.lesson import votes

    parts = path.relative_to(inbox).parts
    try:
        if is_vote(path.name):
            yield *files.read_dated(path, votes.MOST_BYTES, inbox), parts
        elif path.name.lower().endswith(".zip"):
            data, seconds = files.read_dated(path, MOST_ZIP_BYTES, inbox)
            if data.count(b"PK\x01\x02") > MOST_MEMBERS:
                return
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                for member in packed.infolist():
                    if is_vote(member.filename) and member.file_size <= votes.MOST_BYTES:
                        with packed.open(member) as stream:
                            inner = tuple(member.filename.split("/"))  # of a class's archive
                            of_all = roster.sender(inner[0]) or roster.CLASS.search(path.stem)
                            whose = inner if of_all else parts
                            yield stream.read(votes.MOST_BYTES + 1), seconds, whose
    except files.Refused:
        yield b"", 0.0, parts  # not a vote: it is counted as one of those
    except Exception:  # a broken zip file raises many kinds; `intake` says what is wrong with it
        return


# ---- the report ----
def report(root: Path) -> Path:
    """Write ``report/votes.md``: for each question, how many gave each answer, first and second vote.

    It holds counts alone, and none where fewer than five have voted. Returns the path.
    """
    from course.lesson import votes

    folder = Path(root) / FOLDER
    named = {found[1] for file in folder.glob("vote-*") if (found := votes.NAME.fullmatch(file.name))}
    path = Path(root) / "report" / "votes.md"
    parts = [_section(key, votes.gather(key, folder)) for key in sorted(named) if votes.known(key)]
    text = "# What the class thought\n\n" + ("\n\n".join(parts) or "Nobody has voted.") + "\n"
    files.replace(path, text.encode())
    return path


def _section(key: str, found) -> str:
    """One question: its table, and what became of the answers of those who voted twice."""
    from course.lesson import votes
    from course.lesson.predictions import plain

    table = ["| answer | first vote | second vote |", "|---|---|---|"]
    for words, *counts, _ in votes.rows(key, found):
        first, second = (HIDDEN if count is None else count for count in counts)
        table.append(f"| {html.escape(words, quote=False)} | {first} | {second} |")
    lines = [f"## {key}", plain(votes.asked_of(key)["question"]), "\n".join(table)]
    once, twice = found.times[1], found.times[2]
    both = once.keys() & twice.keys()
    if len(both) >= votes.FEWEST:
        changed = sum(once[code]["choice"] != twice[code]["choice"] for code in both)
        lines.append(f"Voted twice: {len(both)}; changed their answer: {changed}.")
    for n, name in ((1, "first"), (2, "second")):
        known = [vote["right"] for vote in found.times[n].values() if vote["right"] is not None]
        if len(known) >= votes.FEWEST:
            lines.append(
                f"Right in the {name} vote, of those who ran the measurement before they shared: "
                f"{sum(known)} of {len(known)}."
            )
    return "\n\n".join(lines)
