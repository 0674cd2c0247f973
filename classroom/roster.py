"""The class list: who is in the class, and under which names the platforms know them.

``roster.csv`` is in the class folder. It is the teacher's own file, and is only read. With it, students who
have handed in nothing have a row in every table too, and uploads with the file names of Canvas and Moodle
find their student.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from . import clock

FILE = "roster.csv"
CLASS = re.compile(
    r"(?<![a-z])submissions?(?![a-z])|-\d{3,}( \(\d+\))?$", re.I
)  # an archive: Canvas's, Moodle's
# Exports of the platforms: their columns, without capitals, are these of ours; the others are not looked at.
EXPORTS = {
    "Canvas": {
        "student": "name",
        "id": "canvas_id",
        "sis_user_id": "sis_id",
        "sis_login_id": "login",
        "section": "group",
    },
    "Moodle": {
        "first_name": "first",
        "last_name": "last",
        "surname": "last",
        "full_name": "name",
        "email_address": "email",
        "id_number": "moodle_id",
        "username": "login",
        "groups": "group",
    },
}
NUMBERS = ("canvas_id", "sis_id", "login", "moodle_id")
SPREAD = re.compile(r"\d(?:[.,]\d+)?E[+-]?\d+")  # a long number, as a spreadsheet shows it
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
# ContentZipper#get_filename (lib/content_zipper.rb of instructure/canvas-lms): the sortable name in lower
# case, with nothing but letters and their signs, "LATE", the user's number, the file's number, the
# file's name. Python's \w leaves out the signs, which are vowels in Hindi or Thai.
# Text that was typed, and an address, have no number of a file: add_text_or_url, in the same place.
CANVAS = re.compile(
    r"(?s)(?P<name>[^\W_][\w\x80-\U0010ffff]*?)_(?:LATE_)?(?P<number>[0-9]+)"
    r"_(?:[0-9]+_.+|(?P<typed>text|link)\.html)"
)
# mod_assign\downloader (mod/assign/classes/downloader.php of moodle/moodle): the full name, a number that
# differs in each assignment, the plugin; then, where folders are switched off, the file's name.
MOODLE = re.compile(
    r"(?s)(?P<name>[^_].*?)_(?P<number>[0-9]+)_assignsubmission_"
    r"(?P<kind>file|onlinetext)(?:_.*)?"
)


@dataclass(frozen=True)
class Person:
    """One row of the class list. All but ``id`` may be empty."""

    id: str  # the folder's name in submitted/, and the id in the gradebook
    name: str = ""
    email: str = ""
    group: str = ""
    canvas_id: str = ""  # "ID" in Canvas's own export
    sis_id: str = ""  # "SIS User ID" there
    login: str = ""  # "SIS Login ID" there; Moodle's user name
    moodle_id: str = ""  # "ID number" in Moodle's export
    extension: str = ""  # for every exercise, such as 3d


@dataclass(frozen=True)
class Sender:
    """Whose file it is, as a platform wrote it into the name; ``online``: text that was typed there."""

    platform: str
    name: str
    number: str
    online: bool = False

    @property
    def stable(self) -> str:
        """A name that stays the same from exercise to exercise: Canvas's number does, Moodle's does not."""
        return f"{self.name}_{self.number}" if self.platform == "canvas" else self.name


def sender(name: str) -> Sender | None:
    """What the name of a file or folder says about its sender, if Canvas or Moodle wrote it.

    >>> sender("fischerlena_LATE_48213_1190442_ex06_rope-1.ipynb").stable
    'fischerlena_48213'
    >>> sender("Zoe-Muller_5530121_assignsubmission_file").stable
    'Zoe-Muller'
    >>> sender("ex06_rope_ada.ipynb")
    """
    if found := MOODLE.fullmatch(name):
        return Sender("moodle", found["name"], found["number"], found["kind"] == "onlinetext")
    if found := CANVAS.fullmatch(name):
        return Sender("canvas", found["name"], found["number"], bool(found["typed"]))
    return None


def is_id(name: str) -> bool:
    """May this be a student's id? nbgrader ignores folders of some names.

    >>> is_id("wang1"), is_id("feedback"), is_id("x.pyc"), is_id("Zoë")
    (True, False, False, False)
    """
    reserved = name in ("feedback", "__pycache__") or name.endswith((".pyc", "."))
    return bool(ID.fullmatch(name)) and not reserved


def spelled(name: str) -> str:
    """A name in the form in which names are compared: accents composed, and nothing invisible.

    >>> spelled("Zoe\\u0308") == "Zoë", spelled("\\u0dc1\\u0dca\\u200d\\u0dbb\\u0dd3")
    (True, 'ශ්රී')
    """
    seen = (
        each
        for each in name
        if unicodedata.category(each) != "Cf"
        and not unicodedata.name(each, "").startswith("VARIATION SELECTOR")
    )
    return unicodedata.normalize("NFC", "".join(seen))


def _plain(text: str, accents: bool = True) -> str:
    """A name without case, reduced to letters, digits and their signs.

    Without ``accents``, Latin and Greek letters lose theirs. In other scripts a sign counts like a letter:
    without it, रमा would be राम.

    >>> _plain("Müller-Lüdenscheidt, Zoë", accents=False), _plain("王小明")
    ('mullerludenscheidtzoe', '王小明')
    """
    kept, bare = [], False
    for each in unicodedata.normalize("NFKD", spelled(text)).casefold():
        if each.isalnum():
            bare = not accents and unicodedata.name(each, "").startswith(("LATIN", "GREEK"))
            kept.append(each)
        elif unicodedata.category(each)[0] == "M" and not bare:
            kept.append(each)
    return "".join(kept)


def _orders(name: str, accents: bool = True) -> set[str]:
    """A name with each of its words first: "Lena Fischer" is "Fischer, Lena", too."""
    words = [word for part in re.split(r"[\s,]+", name) if (word := _plain(part, accents))]
    return {"".join(words[n:] + words[:n]) for n in range(len(words))}


class Roster:
    """The class list of a class folder; empty where there is none."""

    def __init__(self, people: Mapping[str, Person]):
        self.people = dict(people)
        self._known: dict[str, set[str]] = {}
        for person in self.people.values():
            keys = {person.email, *(getattr(person, name) for name in NUMBERS)}
            short = {f"#{key.lstrip('0')}" for key in {person.id, *keys} if re.fullmatch(r"[0-9]+", key)}
            whole, bare = _orders(person.name), _orders(person.name, accents=False)
            unaccented = {f"~{key}" for key in bare} if whole == bare else set()
            for key in (
                {f"={spelled(key).casefold()}" for key in keys if key} | whole | bare | unaccented | short
            ):
                self._known.setdefault(key, set()).add(person.id)

    def __bool__(self) -> bool:
        return bool(self.people)

    def _one(self, *keys: str) -> str | None:
        """The id that the first known key belongs to; None if none is known, or several students share it."""
        found = next((self._known[key] for key in keys if key in self._known), set())
        return next(iter(found)) if len(found) == 1 else None

    @staticmethod
    def _keys(name: str) -> tuple[str, str]:
        """The keys for a full name: a platform, or the list, may have left out all accents.

        A name with other accents is another name: Hoa is not Hoà.
        """
        return _plain(name), f"~{_plain(name, accents=False)}"

    def find(self, name: str, given: Sender | None = None) -> str | None:
        """The id of the student that an upload's name means; None where that is not certain."""
        if given and given.platform == "canvas":
            numbers = {person.canvas_id: person.id for person in self.people.values() if person.canvas_id}
            named = self._one(*self._keys(given.name))
            return numbers.get(given.number) or (None if named in numbers.values() else named)
        if name in self.people:
            return name
        # Excel makes 7 of 0007, in the list or in a name
        number = [f"#{name.lstrip('0')}"] if re.fullmatch(r"[0-9]+", name) else []
        return self._one(f"={spelled(name).casefold()}", *number, *self._keys(name))

    def group(self, student: str) -> str:
        """The group of a student; "" for none."""
        return self.people[student].group if student in self.people else ""

    def extension(self, student: str) -> str:
        """The extra time that a student has for every exercise, such as 3d; "" for none."""
        return self.people[student].extension if student in self.people else ""


def read(root: Path) -> Roster:
    """The class list in ``root``; empty where there is no ``roster.csv``.

    It is a table with a line of column names, those of `Person`, of which only ``id`` is required; separated
    by commas, semicolons or tabs. Canvas's and Moodle's own exports will do: a login, a number or the
    beginning of an address becomes the id. ValueError says which line is wrong, and what is allowed there.
    """
    path = Path(root) / FILE
    if not path.exists():
        return Roster({})
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(
            f"{FILE} is not stored as UTF-8, so names would be damaged. In Excel, save it as “CSV UTF-8”."
        ) from None
    first = text.split("\n", 1)[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    try:
        table = [(rows.line_num, row) for row in rows]
    except csv.Error as problem:
        raise ValueError(
            f"{FILE}, line {rows.line_num}: a quotation mark is not closed, there or above ({problem})."
        ) from None
    names, export = _columns(table[0][1] if table else [])
    found = []
    for line, row in table[1:]:
        if not any(cell.strip() for cell in row):
            continue
        if any(cell.strip() for cell in row[len(names) :]) or any("\n" in cell for cell in row):
            raise ValueError(
                f"{FILE}, line {line}: it does not fit the {len(names)} columns of the first line. Is there "
                "a quotation mark too many, or a separator in a name?"
            )
        cells = {name: _cell(name, cell, line) for name, cell in zip(names, row, strict=False) if name}
        if export == "Canvas" and (not cells.get("canvas_id") or cells["name"] == "Student, Test"):
            continue  # points possible, the test student
        if "first" in cells or "last" in cells:
            cells["name"] = f"{cells.pop('first', '')} {cells.pop('last', '')}".strip()
        found.append((line, cells))
    if export:
        _with_ids([cells for _, cells in found], export)
    people: dict[str, Person] = {}
    seen: dict[tuple[str, str], int] = {}
    for line, cells in found:
        person = _person(cells, line)
        for name in ("id", "email", *NUMBERS):
            value = getattr(person, name).casefold()
            if value and (first_line := seen.setdefault((name, value), line)) != line:
                raise ValueError(
                    f"{FILE}, line {line}: the {name} {getattr(person, name)!r} is there twice, first in "
                    f"line {first_line}. Each student needs one of their own."
                )
        people[person.id] = person
    return Roster(people)


def _cell(name: str, cell: str, line: int) -> str:
    """A cell, without the .0 that a spreadsheet puts behind a number."""
    cell = cell.strip()
    if name in ("id", *NUMBERS):
        if SPREAD.fullmatch(cell):
            raise ValueError(
                f"{FILE}, line {line}: {cell} in {name!r} is what a spreadsheet shows of a long number, and "
                "its last digits are lost. Format the column as text, and fill it in again."
            )
        cell = re.sub(r"^([0-9]+)[.,]0+$", r"\1", cell)
    return cell


def _with_ids(rows: list[dict[str, str]], export: str) -> None:
    """Give each row of an export an id: the first of its columns that has a usable one for everybody."""
    for row in rows:
        row["mail_name"] = row.get("email", "").partition("@")[0]
    for name in ("login", "sis_id", "moodle_id", "mail_name", "canvas_id"):
        values = [row.get(name, "") for row in rows]
        if all(map(is_id, values)) and len({value.casefold() for value in values}) == len(values):
            for row, value in zip(rows, values, strict=True):
                row["id"] = value
                del row["mail_name"]
            return
    raise ValueError(
        f"{FILE} is an export of {export}, and none of its columns names every student in a way that can be "
        f"an id. Write a list with these columns instead: {_allowed()}."
    )


def _allowed() -> str:
    return ", ".join(field.name for field in fields(Person))


def _columns(first: list[str]) -> tuple[list[str], str]:
    """The columns as we name them, "" for one that is not looked at; and the platform whose export it is."""
    plain = [re.sub(r"[\s-]+", "_", name.strip().lower()) for name in first]
    export = ""
    if "sis_login_id" in plain or {"student", "id", "section"} <= set(plain):
        export = "Canvas"
    elif "email_address" in plain:
        export = "Moodle"
    if export:
        return [EXPORTS[export].get(name, "") for name in plain], export
    allowed = {field.name for field in fields(Person)}
    names = [{"e_mail": "email", "mail": "email"}.get(name, name) for name in plain]
    if "id" not in names:
        raise ValueError(
            f"{FILE} has no column 'id' in its first line, which holds {', '.join(map(repr, first))}. Its "
            f"columns may be: {_allowed()}. Canvas's and Moodle's own lists are read in English alone: take "
            "one in English, or rename its columns."
        )
    if strange := [name for name, ours in zip(first, names, strict=True) if ours not in allowed]:
        raise ValueError(
            f"{FILE} has the column {strange[0]!r}. Columns may be: {_allowed()}. Rename it, or take it out."
        )
    if double := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{FILE} has the column {double[0]!r} more than once. Keep one of them.")
    return names, ""


def _person(row: dict[str, str], line: int) -> Person:
    if not is_id(row.get("id", "")):
        raise ValueError(
            f"{FILE}, line {line}: {row.get('id', '')!r} cannot be an id. Take letters a–z, "
            "digits, “_”, “.” and “-”, at most 60 of them: a user name, or a number; not “feedback”, "
            "nor what ends in “.pyc” or a dot."
        )
    try:
        clock.length(row.get("extension") or "0")
    except ValueError as problem:
        raise ValueError(f"{FILE}, line {line}: {problem}") from None
    return Person(**row)
