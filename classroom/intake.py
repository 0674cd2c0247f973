"""From a folder of uploads, in whatever layout, to one plain notebook per student and exercise.

`take_in` reads ``inbox/`` and never changes it. It writes ``submitted/<student>/<assignment>/``, beside it
``taken/<assignment>/<student>.json``, and, for what cannot be read, ``marks/<assignment>/<student>.json``
with the state "rejected". `adopt` does the same for what lies in ``submitted/`` already, as `nbgrader
collect` leaves it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import hashlib
import json
import math
import os
import re
import stat
import tempfile
import time
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from course import files
from course.files import MEGABYTE, Refused
from tutorial_lib.language import ENGLISH, of_notebook
from tutorial_lib.optional import needs

from . import assignments as exercises
from . import ballots, kept, roster

with needs("teach"):
    import charset_normalizer

MOST_UPLOAD = 100 * MEGABYTE  # of one notebook as it was sent, with its outputs
MOST_BYTES = 20 * MEGABYTE  # of one notebook without them
MOST_CELLS = 2000
MOST_PARTS = 1_000_000  # lists and dictionaries in one notebook: they cost far more memory than their text
MOST_ZIP_BYTES = 50 * MEGABYTE
MOST_UNPACKED_BYTES = 100 * MEGABYTE  # of all notebooks in one zip file
MOST_MEMBERS = 1000
MOST_CLASS_BYTES, MOST_CLASS_MEMBERS = 8000 * MEGABYTE, 20_000  # of an archive for a whole class
MOST_RATIO = 300  # unpacked to packed, for a member of more than 1 MB
MOST_FILES, MOST_DEPTH, MOST_TRIED = 500, 8, 20  # of one student
MOST_NAMED = 5  # files that one line names
UNKNOWN = "_unknown"  # the folder in marks/ for an upload that names no exercise
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
GRADE_ID = re.compile(rb'"grade_id"\s*:\s*"([\w-]{1,128})"')
TYPED = "It was typed into {}'s text field. Hand in the notebook itself, as a file (.ipynb)."
ARCHIVES = re.compile(r"\.(zip|rar|7z|tgz|tar(\.\w{2,3})?)$", re.I)
CONFLICT = re.compile(
    r"\([^()]{0,99}(?:conflicted copy|case conflict)[^()]{0,99}\)|\.sync-conflict-[\w-]{1,99}", re.I
)
"""What a folder that is kept in step with another machine writes into a name."""
KINDS = (  # how a file begins that is no text: what it is
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip file, or a document of an office program"),
    (b"\xd0\xcf\x11\xe0", "a document of an office program"),
    (b"Rar!", "a RAR archive, which is not opened here"),
    (b"7z\xbc\xaf", "a 7z archive, which is not opened here"),
    (b"\x1f\x8b", "a gzip archive, which is not opened here"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
)
ENCODINGS = ("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "gb18030", "big5", "cp932", "cp949", "koi8_r")
BLANK = "Nothing is answered in it; the notebook that was sent before had answers, and it counts no more."
NOT_UTF8 = "The file was not stored as UTF-8."
MOST_TELLING = 100_000  # bytes that decide which of them it is
IMAGES = ("image/png", "image/jpeg", "image/gif")
JOINERS = "\u200c\u200d"  # they cannot be seen, and names in Persian or Sinhala cannot do without them


@dataclass(frozen=True)
class Taken:
    """The outcome of one student's uploads for one exercise.

    ``state`` is "taken", "rejected", or "left": not read and not counted, only named. ``reason`` says why it
    was rejected, or holds remarks, in words for the student. ``path`` is the notebook that counts (None when
    rejected), ``sha256`` that of its bytes (when rejected: of the upload, "" where it could not be read).
    ``student`` is the safe id, "" for a file that is nobody's; ``assignment`` is "" where the upload names no
    exercise.
    """

    student: str
    assignment: str
    state: str
    reason: str
    path: Path | None
    sha256: str
    seconds_of_upload: float


@dataclass(frozen=True)
class Upload:
    """One file that may be a submission; ``load`` reads it and may raise Refused."""

    student: str
    assignment: str  # "" if its name names no exercise
    label: str
    seconds: float  # since 1970
    load: Callable[[], bytes]
    notebook: bool = True  # by its name
    inside: tuple = ()  # of a zip file: date and depth, for the order among its members
    remark: str = ""
    sender: roster.Sender | None = None  # where the platform wrote its owner into the name
    back: str = ""  # the name that the platform gave: feedback goes back under it

    @property
    def aside(self) -> bool:
        """Is it neither a notebook nor named like an exercise? Then it counts where there is nothing else."""
        return not self.notebook and not self.assignment

    @property
    def order(self) -> tuple:
        """A newer upload is greater; the rest only makes the choice repeatable."""
        return self.seconds, self.inside, self.label


# ---- names ----


def _one_copy(name: str) -> str:
    """Without what a sync has written into it: `Ann (conflicted copy 2031-01-02)` is Ann's."""
    found = CONFLICT.search(name)
    return name[: found.start()].rstrip(" _-") + name[found.end() :] if found else name


def printable(text: str) -> str:
    """A text without the letters that a terminal obeys."""
    return "".join(letter if letter.isprintable() or letter in JOINERS else "�" for letter in text)


def shown(name: str) -> str:
    """A file's name as it may stand in a sentence: printable, on one line, not too long."""
    text = printable(os.fsencode(name).decode("utf-8", "replace"))
    return text if len(text) <= 80 else f"{text[:60]}…{text[-18:]}"


def safe_id(name: str) -> str:
    """A student's name as a folder name and an nbgrader id: ASCII letters, digits, ``_ . -``.

    A name that is safe already stays as it is; any other gets a few digits of its hash, so that two
    names never share an id.

    >>> safe_id("s1234567"), safe_id("Zoë Müller"), safe_id("$(id)")
    ('s1234567', 'Zoe-Muller-d6e575', 'id-d7d54e')
    """
    if roster.is_id(name):
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", plain)[:40].strip("-_")
    return f"{plain or 'student'}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:6]}"


def names(root: Path) -> dict[str, str]:
    """Id to name, of all who have sent something."""
    return kept.load(root / "students.json", "The names are made anew from what `take-in` finds.")


class Students:
    """The ids of a class: ``students.json`` maps each id to its name.

    An id is that of the class list if the upload's name matches somebody there, else the name made safe.
    """

    def __init__(self, root: Path):
        self.path = root / "students.json"
        self.names: dict[str, str] = names(root)
        self.roster = roster.read(root)
        self.merged = kept.load(root / "merged.json", "What was merged comes back under its own name.")

    def id(self, name: str, sender: roster.Sender | None = None) -> str:
        """The id that a name means; of those that `people.merge` made one, the one that stayed."""
        own, seen = self._id(name, sender), set()
        while own in self.merged and own not in seen:
            seen.add(own)
            self.names.pop(own, None)
            own = self.merged[own]
            self.names.setdefault(own, own)
        return own

    def _id(self, name: str, sender: roster.Sender | None) -> str:
        name = unicodedata.normalize("NFC", name)
        if listed := self.roster.find(name, sender):
            self.names[listed] = self.roster.people[listed].name or listed
            return listed
        spelled = roster.spelled(name)
        wanted = safe_id(spelled)
        while roster.spelled(self.names.setdefault(wanted, name)) != spelled:  # another one's id
            wanted = f"{wanted[:50]}-{hashlib.sha256(os.fsencode(wanted + spelled)).hexdigest()[:6]}"
        return wanted

    def save(self) -> None:
        # ASCII: a name need not be valid Unicode
        files.replace(self.path, (json.dumps(self.names, indent=1, sort_keys=True) + "\n").encode())


# ".ipynb", ".json", ".txt", " (1)", "-copy2" and " Kopie", as often as they occur: backwards, so that each
# letter is looked at once.
COPY = re.compile(r"(?:bnypi\.|nosj\.|txt\.|\)\d+\([ _-]*|\d*[ _-]?(?:ypoc|eipok)[ _-]+)*", re.I)


def _stem(name: str) -> str:
    """A file's name without its ending and without what a browser or JupyterLab adds to a copy."""
    return name[: len(name) - COPY.match(name[::-1]).end()].strip()


def _bare(name: str) -> str:
    """A file's name without the ending of an archive, a document or a picture; `match` knows a notebook's."""
    return name if ".ipynb" in name.lower() else re.sub(r"\.[A-Za-z]\w{1,4}$", "", ARCHIVES.sub("", name))


def match(name: str, assignments: Sequence[str]) -> tuple[str, str]:
    """``(assignment, what else the name says)``; ``("", the stem)`` where it names no exercise.

    >>> known = ["ex06_rope", "ex07_alibi"]
    >>> match("ex06_rope (1).ipynb", known), match("EX06_rope_li.ipynb", known), match("ex07.ipynb", known)
    (('ex06_rope', ''), ('ex06_rope', 'li'), ('ex07_alibi', ''))
    >>> match("homework.ipynb", known)
    ('', 'homework')
    """
    stem = _stem(_one_copy(name))
    short = {
        key: [a for a in assignments if a.split("_")[0] == key]
        for key in {a.split("_")[0] for a in assignments}
    }
    keys = {a: a for a in assignments} | {key: found[0] for key, found in short.items() if len(found) == 1}
    for key in sorted(keys, key=len, reverse=True):
        pattern = re.escape(key).replace("_", "[ _-]")
        if found := re.search(rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])", stem, re.I):
            rest = [stem[: found.start()].strip(" _-"), stem[found.end() :].lstrip(" _-")]
            return keys[key], "_".join(part for part in rest if part)
    return "", stem


# ---- what lies in the inbox ----


def _hidden(name: str) -> bool:
    return name.startswith(".") or name in ("__MACOSX", "Thumbs.db", "desktop.ini")


def _of_the_system(entry: os.DirEntry) -> bool:
    """What an operating system or a program left in the inbox; a student may be called ``.li``."""
    if not _hidden(entry.name) or entry.name.startswith("._"):
        return _hidden(entry.name)
    if not entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
        return ".ipynb" not in entry.name.lower()
    if entry.name in (".git", ".ipynb_checkpoints", ".Trashes"):
        return True
    return not any(
        kind == "file" and path.suffix.lower() in (".ipynb", ".zip")
        for path, kind in _below(Path(entry.path))
    )


def _refusing(reason: str) -> Callable[[], bytes]:
    def load() -> bytes:
        raise Refused(reason)

    return load


def _below(folder: Path, depth: int = 0) -> Iterator[tuple[Path, str]]:
    """``(path, kind)`` of everything in a folder, following no links: kind "file", "link" or a complaint."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as problem:
        yield folder, f"The folder cannot be opened: {problem.strerror}."
        return
    for entry in entries:
        path = folder / entry.name
        if _hidden(entry.name):
            continue
        if entry.is_symlink():
            yield path, "link"
        elif not entry.is_dir(follow_symlinks=False):
            yield path, "file"
        elif depth < MOST_DEPTH:
            yield from _below(path, depth + 1)
        else:
            yield path, f"Folders lie inside of folders, more than {MOST_DEPTH} deep."


def _seconds(path: Path) -> float:
    try:
        return _sane(os.lstat(path).st_mtime)
    except OSError:
        return 0.0


def _sane(seconds: float) -> float:
    """A plausible time since 1970: a file may claim the year 9999, or one before 1970."""
    return min(max(0.0, seconds), time.time())


def _of_file(path: Path, kind: str, inbox: Path, student: str, assignments) -> Iterator[Upload]:
    """The uploads that one path stands for: one, or those in a zip file."""
    parts = path.relative_to(inbox).parts
    label = shown("/".join(parts[1:]) or parts[0])
    found = [match(part, assignments)[0] for part in (parts[-1], *reversed(parts[1:-1]))]
    assignment = next((name for name in found if name), "")
    seconds = _seconds(path)
    if kind == "file" and path.name.lower().endswith(".zip"):
        yield from _of_zip(path, inbox, student, assignment, label, seconds, assignments)
        return
    if kind == "file":

        def load():
            return files.read(path, MOST_UPLOAD, inbox)
    else:
        load = _refusing("It is a link to another place. Send the file itself." if kind == "link" else kind)
    yield Upload(student, assignment, label, seconds, load, kind != "file" or ".ipynb" in path.name.lower())


def _of_zip(path, inbox, student, assignment, label, seconds, assignments) -> Iterator[Upload]:
    """The notebooks in a zip file. The zip's own date counts; those inside only say which is newer."""

    def refused(reason: str) -> Upload:
        return Upload(student, assignment, label, seconds, _refusing(reason))

    try:
        members = _members(path, inbox, MOST_ZIP_BYTES, MOST_MEMBERS)
    except Refused as problem:
        yield refused(str(problem))
        return
    except Exception:  # zipfile raises many kinds for a broken file
        yield refused("The zip file is damaged. Send the notebook itself.")
        return
    sent = [
        m
        for m in members
        if not m.is_dir() and not any(_hidden(part) for part in m.filename.split("/") if part != "..")
    ]
    notebooks = [m for m in sent if ".ipynb" in m.filename.lower()]
    others = [m.filename for m in sent if m not in notebooks and not ballots.is_vote(m.filename)]
    named = _some([f"'{shown(name)}'" for name in others])
    budget = MOST_UNPACKED_BYTES
    for member in notebooks:
        if (letters := len(member.filename)) > files.MOST_NAME:  # before anything else reads the name
            why = (
                f"Its name in the zip file has {letters} letters; at most {files.MOST_NAME} are read. "
                "Rename it, or send the notebook itself."
            )
            yield Upload(
                student,
                assignment,
                f"{label}/{shown(member.filename)}",
                seconds,
                _refusing(why),
                inside=(member.date_time, 0),
            )
            continue
        parts = [part for part in member.filename.split("/") if part]
        found = [match(part, assignments)[0] for part in reversed(parts)]
        budget -= member.file_size
        yield Upload(
            student,
            next((name for name in found if name), assignment),
            f"{label}/{shown(member.filename)}",
            seconds,
            _member(path, inbox, member, budget),
            inside=(member.date_time, -len(parts)),
        )
    if notebooks and others:
        yield Upload(student, "", f"{label}: {named}", seconds, _refusing("No notebook."), notebook=False)
    elif not notebooks and (others or not any(ballots.is_vote(member.filename) for member in members)):
        yield refused("The zip file holds no notebook (.ipynb)" + (f", but {named}." if named else "."))


@contextlib.contextmanager
def _opened(path: Path, inbox: Path) -> Iterator[IO[bytes]]:
    with files.opened(path, inbox) as file, open(os.dup(file), "rb") as stream:
        yield stream


def _members(path: Path, inbox: Path, most_bytes: int, most: int) -> list[zipfile.ZipInfo]:
    """What a zip file says that it holds. Refused where that is too much. It is never in memory."""
    with _opened(path, inbox) as stream:
        if os.fstat(stream.fileno()).st_size > most_bytes:
            raise Refused(f"It is larger than {most_bytes / MEGABYTE:g} MB. Send the notebook alone.")
        count = sum(piece.count(b"PK\x01\x02") for piece in iter(lambda: stream.read(MEGABYTE), b""))
        if count > most:  # counted before the list is built
            raise Refused(f"The zip file holds more than {most} files. Send the notebook alone.")
        return zipfile.ZipFile(stream).infolist()


def _member(path: Path, inbox: Path, member: zipfile.ZipInfo, budget: int) -> Callable[[], bytes]:
    """How a notebook in a zip file is read, or why it is not. Its name is never used as a path."""
    if ".." in member.filename.split("/") or member.filename.startswith(("/", "\\")):
        return _refusing("Its name in the zip file leads out of the zip file.")
    if stat.S_ISLNK(member.external_attr >> 16):
        return _refusing("It is a link to another place. Send the file itself.")
    if member.flag_bits & 1:
        return _refusing("The zip file is locked with a password.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return _refusing("The zip file is packed in an unusual way. Send the notebook itself.")
    bomb = member.file_size > MEGABYTE and member.file_size > MOST_RATIO * max(1, member.compress_size)
    if bomb or member.file_size > MOST_UPLOAD or budget < 0:
        return _refusing("It is too large when unpacked. Clear the outputs and send the notebook itself.")

    def load() -> bytes:
        try:
            with _opened(path, inbox) as file, zipfile.ZipFile(file) as packed, packed.open(member) as stream:
                data = stream.read(MOST_UPLOAD + 1)  # the size that the zip file claims may be a lie
        except Exception:
            raise Refused("The zip file is damaged. Send the notebook itself.") from None
        if len(data) > MOST_UPLOAD:
            raise Refused("It is too large when unpacked. Clear the outputs and send the notebook itself.")
        return data

    return load


def _of_a_class(names: Iterable[str], listed: roster.Roster, assignments) -> bool:
    """Does an archive with these names at its top hold a whole class: a platform's names, or the list's?"""
    senders = {name: roster.sender(name) for name in names}
    known = [sender for sender in senders.values() if sender]
    if known and len(known) == len(senders):
        return len({one.number for one in known}) > 1 or known[0].platform == "moodle"
    found = {listed.find(match(_bare(name), assignments)[1]) for name in senders}
    return len(found - {None}) > 1


def _name(member: zipfile.ZipInfo) -> str:
    """A member's name. Where a zip file does not say that names are UTF-8, they often are all the same."""
    if not member.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            return member.filename.encode("cp437").decode("utf-8")
    return member.filename


def _top(path: Path, inbox: Path) -> dict[tuple[str, ...], zipfile.ZipInfo]:
    """The members of an archive that may be a whole class's, by their names; {} where it cannot be read."""
    try:
        members = _members(path, inbox, MOST_CLASS_BYTES, MOST_CLASS_MEMBERS)
    except Exception:  # `_of_zip` says what is wrong with it
        return {}
    named = {tuple(_name(one).split("/")): one for one in members if len(_name(one)) <= files.MOST_NAME}
    return {
        parts: one
        for parts, one in named.items()
        if not one.is_dir() and not any(_hidden(part) or part in ("", "..") for part in parts)
    }


def _unpacked(path: Path, inbox: Path, members: dict, scratch: Path) -> Path:
    """A folder with what an archive for a whole class holds.

    A member that cannot be read leaves an empty file, so that its owner is not lost. Its date is in no zone,
    so that of the archive, which is the download's, is the latest.
    """
    folder = Path(tempfile.mkdtemp(dir=scratch))
    for parts, member in members.items():
        target, data, seconds = folder.joinpath(*parts), b"", _seconds(path)
        with contextlib.suppress(Refused):
            data = _member(path, inbox, member, 0)()
        with contextlib.suppress(ValueError, OverflowError):  # a month 13
            seconds = min(seconds, _sane(datetime.datetime(*member.date_time).timestamp()))
        with contextlib.suppress(OSError):  # a name that is a file's and a folder's
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            os.utime(target, (seconds, seconds))
    return folder


def _uploads(
    inbox: Path, assignments: Sequence[str], listed: roster.Roster, scratch: Path
) -> Iterator[Upload]:
    """All that lies in the inbox, student by student.

    What a platform has packed for the whole class is unpacked into ``scratch``, if its name says so: a
    student's own archive must not hand in for others.
    """
    for entry in sorted(os.scandir(inbox), key=lambda entry: entry.name):
        if _of_the_system(entry) or ballots.is_vote(entry.name):
            continue
        path, sender, name = inbox / entry.name, roster.sender(entry.name), _bare(entry.name)
        label, assignment, student = shown(entry.name), *match(name, assignments)
        folder, members = entry.is_dir(follow_symlinks=False), {}
        if folder:
            inner = {one for one in os.listdir(path) if not _hidden(one)}
        else:
            members = _top(path, inbox) if entry.name.lower().endswith(".zip") else {}
            inner = {parts[0] for parts in members}
        if not sender and inner and not listed.find(student) and _of_a_class(inner, listed, assignments):
            if roster.CLASS.search(name) or assignment and not student:
                said = "read as what a whole class has handed in"
                yield Upload("", "", label, _seconds(path), _refusing(said), notebook=False, remark=said)
                whole = path if folder else _unpacked(path, inbox, members, scratch)
                yield from _uploads(whole, assignments, listed, scratch)
                continue
            if not folder:
                why = (
                    "It looks like an archive for a whole class. If it is, call it submissions.zip; if it is "
                    "one student's, unpack it, and put only the notebook into the inbox."
                )
                yield Upload(student, assignment, label, _seconds(path), _refusing(why))
                continue
        if folder:
            back = entry.name if sender else ""
            of_folder = _of_folder(path, inbox, assignments)
            yield from (replace(upload, sender=sender, back=back) for upload in of_folder)
        elif entry.is_symlink() and entry.is_dir():
            why = "It is a link to another folder. Put the folder itself into the inbox."
            yield Upload(entry.name, "", label, _seconds(path), _refusing(why))
        else:
            yield from _of_loose(path, inbox, "link" if entry.is_symlink() else "file", sender, assignments)


def _of_loose(
    path: Path, inbox: Path, kind: str, sender: roster.Sender | None, assignments
) -> Iterator[Upload]:
    """The uploads of a file that lies in no folder of a student."""
    packed = ARCHIVES.search(path.name)
    assignment, student = match(_bare(path.name), assignments)
    if sender and not match(sender.name, assignments)[0]:
        for upload in _of_file(path, kind, inbox, sender.stable, assignments):
            yield replace(upload, sender=sender, back=path.name)
    elif not (packed or assignment or ".ipynb" in path.name.lower()):
        yield Upload("", "", shown(path.name), _seconds(path), _refusing(""), notebook=False)
    elif not student and kind == "file":
        why = "The file name does not say whose it is. Name it <exercise>_<student>.ipynb."
        yield Upload("", assignment, shown(path.name), _seconds(path), _refusing(why))
    else:
        yield from _of_file(path, kind, inbox, student, assignments)


def _of_folder(folder: Path, inbox: Path, assignments) -> Iterator[Upload]:
    """The uploads of one student's folder; at least one, so that nobody is lost."""
    found: list[Upload] = []
    sent = ((path, kind) for path, kind in _below(folder) if not ballots.is_vote(path.name))
    for n, (path, kind) in enumerate(sent):
        if n == MOST_FILES:
            why = f"The folder holds more than {MOST_FILES} files. Send the notebook alone."
            found.append(Upload(folder.name, "", "the folder", _seconds(folder), _refusing(why)))
            break
        found += _of_file(path, kind, inbox, folder.name, assignments)
    if not found and next(_below(folder), None):
        return  # votes, but no homework
    empty = Upload(folder.name, "", "the folder", _seconds(folder), _refusing("The folder is empty."))
    yield from (replace(one, student=_one_copy(one.student)) for one in found or [empty])


# ---- reading one notebook ----


def decode(data: bytes) -> tuple[str, list[str]]:
    """The text of an upload, and remarks on how it was encoded. Raises Refused for anything but text."""
    if not data.strip():
        raise Refused("The file is empty.")
    for mark, encoding in (
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
        (b"{\0", "utf-16-le"),
        (b"\0{", "utf-16-be"),
    ):
        if data.startswith(mark):
            try:
                return data.decode(encoding), ["The file was stored as UTF-16; it was read all the same."]
            except UnicodeDecodeError:
                raise Refused("The file is no notebook: its text is damaged.") from None
    if data.startswith(b"\xef\xbb\xbf"):
        data, remarks = data[3:], ["The file began with a byte order mark; it was read all the same."]
    else:
        remarks = []
    what = next((words for begins, words in KINDS if data.startswith(begins)), "")
    if what or b"\0" in data:
        raise Refused(
            f"The file is no notebook: it is binary ({what or 'neither text nor a known kind'}). "
            "Send the .ipynb file."
        )
    try:
        return data.decode("utf-8"), remarks
    except UnicodeDecodeError:
        if not data.lstrip().startswith(b"{"):
            raise Refused("The file is no notebook: it is binary. Send the .ipynb file.") from None
        text, encoding = by_evidence(data)
        what = f"It was read as {encoding}" if encoding else "Its damaged letters are shown as �"
        return text, [f"{NOT_UTF8} {what}; look whether its words are as you wrote them."]


def by_evidence(data: bytes) -> tuple[str, str]:
    """The text of bytes that are not UTF-8, and the encoding that they speak for; "" for damaged UTF-8.

    >>> by_evidence("Die Länge bleibt, größer".encode() + b"\\xff")[1]
    ''
    >>> by_evidence("Поворот сохраняет длину".encode("cp1251"))[1]
    'cp1251'
    """
    mended = data.decode("utf-8", "replace")
    damaged = mended.count("�")
    if sum(letter > "\x7f" for letter in mended) - damaged > damaged:
        return mended, ""
    words = b"\n".join(text for text in data.split(b'"') if not text.isascii())[:MOST_TELLING]
    found = {one.encoding: one for one in charset_normalizer.from_bytes(words, cp_isolation=list(ENCODINGS))}
    best = min(
        (name for name in ENCODINGS if name in found),  # of equals the first
        key=lambda name: (found[name].chaos, -found[name].coherence),
        default=ENCODINGS[0],
    )
    return data.decode(best, "replace"), best


def parse(text: str) -> dict:
    """The notebook's JSON. Raises Refused, saying what is wrong with it."""
    if text.count("[") + text.count("{") > MOST_PARTS:
        raise Refused(f"The file has more than {MOST_PARTS} parts. Clear the outputs and send it again.")
    try:
        found = json.loads(text)
    except RecursionError:
        raise Refused("The file is nested too deeply to be a notebook.") from None
    except ValueError as problem:
        if re.search(r"^(<{7} |>{7} )", text, re.M):
            raise Refused(
                "The file holds merge conflict markers (<<<<<<< and >>>>>>>) from git. "
                "Resolve the conflict, open the notebook once in Jupyter, and send it again."
            ) from None
        if re.match(r"\s*[A-Za-z<#]", text):
            raise Refused(
                "The file is no notebook: it is text of another kind (a web page, or a program, perhaps). "
                "Send the .ipynb file."
            ) from None
        at = getattr(problem, "pos", 0)
        cut = at >= len(text.rstrip()) - 1 or str(problem).startswith("Unterminated string")
        if text.lstrip().startswith("{") and cut:
            raise Refused(
                "The file is truncated: it ends in the middle. Save the notebook and send it again."
            ) from None
        line = text.count("\n", 0, at) + 1
        raise Refused(
            f"The file is no notebook: its JSON is damaged in line {line}. "
            "Open it in Jupyter to see whether it still opens."
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("cells", found.get("worksheets")), list):
        raise Refused("The file is no notebook: it is JSON, but it has no cells.")
    return found


def _text(source) -> str:
    """A cell's source as one valid string; Refused for anything but a string or a list of strings."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise Refused("One of its cells holds no text.")
    return source.replace("\0", "�").encode("utf-8", "replace").decode()  # lone surrogates


def _old_cells(found: dict) -> list:
    """The cells of a notebook in format 3, in today's form."""
    cells = []
    for sheet in found["worksheets"]:
        for cell in sheet.get("cells", []) if isinstance(sheet, dict) else []:
            cell = dict(cell) if isinstance(cell, dict) else {}
            if cell.get("cell_type") == "code":
                cell["source"] = cell.get("input", "")
            elif cell.get("cell_type") == "heading":
                level = cell.get("level") if cell.get("level") in range(1, 7) else 1
                cell |= {"cell_type": "markdown", "source": f"{'#' * level} {_text(cell.get('source', ''))}"}
            elif cell.get("cell_type") == "html":
                cell["cell_type"] = "markdown"
            cells.append(cell)
    return cells


def _attachments(cell: dict) -> dict:
    """Pictures that were pasted into a written answer: PNG, JPEG and GIF, and nothing else."""
    kept, given = {}, cell.get("attachments")
    for name, bundle in given.items() if isinstance(given, dict) else ():
        for mime in IMAGES:
            content = bundle.get(mime) if isinstance(bundle, dict) else None
            if isinstance(content, str):
                try:
                    content = base64.b64encode(base64.b64decode(re.sub(r"\s", "", content), validate=True))
                except (binascii.Error, ValueError):
                    continue
                kept.setdefault(_text(name), {})[mime] = content.decode()
    return kept


def _grade_id(cell: dict) -> str:
    """The id that nbgrader gave the cell. Its points, locks and tags come from the teacher's copy instead."""
    metadata = cell.get("metadata")
    given = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = given.get("grade_id") if isinstance(given, dict) else None
    return name if isinstance(name, str) and re.fullmatch(r"[\w-]{1,128}", name, re.A) else ""


def _cell(cell, seen: set[str]) -> dict:
    """One cell in its plain form: source, a valid and unique id, nbgrader's id, pictures."""
    kind = cell.get("cell_type") if isinstance(cell, dict) else None
    if kind not in ("code", "markdown", "raw"):
        raise Refused("One of its cells is neither code nor text.")
    source, name = _text(cell.get("source", "")), cell.get("id")
    if not isinstance(name, str) or not re.fullmatch(r"[\w-]{1,64}", name, re.A) or name in seen:
        name = hashlib.sha256(f"{len(seen)}{source}".encode()).hexdigest()[:10]
    seen.add(name)
    graded = _grade_id(cell)
    plain = {
        "cell_type": kind,
        "id": name,
        "metadata": {"nbgrader": {"grade_id": graded}} if graded else {},
        "source": source,
    }
    given = cell.get("metadata")
    if isinstance(given, dict) and given.get(exercises.PROSE) == exercises.fingerprint(source):
        plain["metadata"][exercises.PROSE] = given[exercises.PROSE]  # what was given out in another language
    if kind == "code":
        plain |= {"execution_count": None, "outputs": []}
    elif pictures := _attachments(cell):
        plain["attachments"] = pictures
    return plain


def normalise(data: bytes) -> tuple[bytes, list[str]]:
    """An upload as a plain notebook (format 4.5, sources only), and remarks for the student.

    Outputs, widgets, tags and all other metadata are dropped; they are the student's and prove nothing. What
    stays is the language of another edition, in which the student reads the feedback.
    Raises Refused with the reason for what cannot be read.
    """
    text, remarks = decode(data)
    found = parse(text)
    version = found.get("nbformat", 4)
    if "cells" in found and version not in (4, 5):
        raise Refused(
            f"The notebook is stored in format {str(version)[:20]}, which is unknown here. "
            "Save it with JupyterLab and send it again."
        )
    if "cells" not in found:
        remarks.append("The notebook was stored in the old format 3; it was converted.")
    cells = found["cells"] if "cells" in found else _old_cells(found)
    if not cells:
        raise Refused("The notebook has no cells.")
    if len(cells) > MOST_CELLS:
        raise Refused(f"The notebook has {len(cells)} cells; at most {MOST_CELLS} are read.")
    seen: set[str] = set()
    plain = [_cell(cell, seen) for cell in cells]
    metadata = found.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    if isinstance(kernel, dict) and kernel.get("name") not in (None, "python3"):
        remarks.append(
            f"The notebook names the kernel '{shown(_text(str(kernel['name'])))}'; it is run with Python 3."
        )
    kept = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    if (spoken := of_notebook(json.dumps({"metadata": metadata}).encode())[:20]) != ENGLISH:
        kept["language"] = spoken
    notebook = {
        "cells": plain,
        "metadata": kept,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    result = (json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    if len(result) > MOST_BYTES:
        raise Refused(
            f"Its cells hold {len(result) / MEGABYTE:.0f} MB even without outputs; at most "
            f"{MOST_BYTES / MEGABYTE:g} MB are read."
        )
    return result, remarks


# ---- taking in ----


def take_in(inbox: Path, root: Path, assignments: Sequence[str]) -> list[Taken]:
    """Take in every upload in ``inbox`` for the exercises named in ``assignments``.

    Layouts: ``<student>/<exercise>.ipynb``, with any folders between and browsers' copies such as
    ``<exercise> (1).ipynb``; ``<exercise>_<student>.ipynb``; zip files of either name. Of several uploads
    the newest that can be read counts, by the date of the file. A newer one replaces the notebook that
    was taken before, which is kept as ``….ipynb.earlier``. A second run changes nothing.

    Returns one Taken per student and exercise, sorted. Raises FileNotFoundError without an inbox.
    """
    inbox, root = Path(inbox), Path(root)
    if not inbox.is_dir():
        raise FileNotFoundError(f"there is no folder {inbox}: put the students' uploads there")
    students, groups = Students(root), {}
    ids = {name: _ids(root, name) for name in assignments}
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".take-in-", dir=root) as scratch:  # /tmp may be memory
        found = list(_uploads(inbox, assignments, students.roster, Path(scratch)))
        for upload in _of_senders([_by_its_cells(upload, ids) for upload in found]):
            nobody = upload.aside and not upload.student
            student = "" if nobody else students.id(upload.student or "unnamed", upload.sender)
            groups.setdefault((student, upload.assignment), []).append(upload)
        students.save()
        left = _left(groups)
        for path in (root / "marks" / UNKNOWN).glob("*.json"):
            if (path.stem, "") not in groups:
                path.unlink()  # it has been renamed, or removed
        return left + [
            _settle(root, student, assignment, uploads, assignments)
            for (student, assignment), uploads in sorted(groups.items())
        ]


def _some(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _left(groups: dict[tuple[str, str], list[Upload]]) -> list[Taken]:
    """Take out what is no notebook where its owner has sent one, too, and what is nobody's: only named."""
    sent = {student for (student, _), uploads in groups.items() if not all(one.aside for one in uploads)}
    left = []
    for student in sorted({student for student, _ in groups}):
        uploads = groups.get((student, ""), [])
        aside = [one for one in uploads if one.aside and (student in sent or not student)]
        if not aside:
            continue
        if rest := [one for one in uploads if one not in aside]:
            groups[student, ""] = rest
        else:
            del groups[student, ""]
        unread = [one.label if ": " in one.label else f"'{one.label}'" for one in aside if not one.remark]
        why = "no notebook, so not read" if student else "it names neither an exercise nor a student"
        said = [f"'{one.label}': {one.remark}." for one in aside if one.remark]
        said += [f"{_some(unread)}: {why}."] * bool(unread)
        left.append(Taken(student, "", "left", " ".join(said), None, "", aside[0].seconds))
    return left


def _of_senders(uploads: list[Upload]) -> Iterator[Upload]:
    """Uploads under the name that the platform gives to their sender.

    Moodle's numbers change with each exercise, so there only the name counts, unless two people of the same
    name have handed in the same exercise: then nobody can tell whose is whose.
    """
    numbers: dict[tuple, set[str]] = {}
    for upload in uploads:
        if upload.sender and upload.assignment:
            key = roster.spelled(upload.sender.stable), upload.assignment
            numbers.setdefault(key, set()).add(upload.sender.number)
    for upload in uploads:
        if not (whose := upload.sender):
            yield upload
        elif whose.online and not upload.notebook:
            yield replace(upload, student=whose.stable, load=_refusing(TYPED.format(whose.platform.title())))
        elif len(numbers.get((roster.spelled(whose.stable), upload.assignment), ())) > 1:
            who = f"{whose.name} {whose.number}"
            said = f"More than one {whose.name} has handed in, so it counts for '{who}'."
            yield replace(upload, student=who, sender=None, remark=f"{upload.remark} {said}".strip())
        else:
            yield replace(upload, student=whose.stable)


def _given(root: Path, assignment: str) -> bytes:
    """An exercise as students got it: what was released here, else the course's; b"" where there is none."""
    path = root / "release" / assignment / f"{assignment}.ipynb"
    try:
        return (path if path.exists() else exercises.path(assignment, "exercises")).read_bytes()
    except OSError:
        return b""


def _ids(root: Path, assignment: str) -> set[str]:
    """nbgrader's ids in an exercise."""
    return set(GRADE_ID.findall(_given(root, assignment)))


def _is_of(root: Path, assignment: str, data: bytes) -> bool:
    """Does a plain notebook hold cells of this exercise? By nbgrader's ids or, if all are lost, by texts."""
    ids, own = _ids(root, assignment), set(GRADE_ID.findall(data))
    if not ids or own:
        return not ids or bool(ids & own)
    ours, theirs = (
        {_text(cell["source"]).strip() for cell in json.loads(one)["cells"]}
        for one in (_given(root, assignment), data)
    )
    return bool(ours & theirs - {""})


def _untouched(root: Path, assignment: str, data: bytes) -> bool:
    """Does a plain notebook hold nothing but what was given out, or nothing that can be read?"""
    try:
        ours, theirs = (json.loads(one)["cells"] for one in (_given(root, assignment), data))
        given = {_text(cell["source"]).strip() for cell in ours} | {""}
        return all(cell["source"].strip() in given or exercises.PROSE in cell["metadata"] for cell in theirs)
    except (ValueError, KeyError, TypeError, AttributeError):
        return True


def _by_its_cells(upload: Upload, ids: dict[str, set]) -> Upload:
    """The upload under the exercise that its cells belong to, where its name says another one, or none.

    Cells decide only where they leave no doubt: all are of one exercise, and none of the one in the name.
    """
    if not upload.notebook:
        return upload
    try:
        found = set(GRADE_ID.findall(upload.load()))
    except (Refused, OSError):
        return upload
    shared = {name for name in ids if found & ids[name]}
    if len(shared) != 1 or upload.assignment in shared:
        return upload
    (assignment,) = shared
    named = f"for {upload.assignment}" if upload.assignment else "no exercise"
    return replace(
        upload,
        assignment=assignment,
        remark=(
            f"By its name '{upload.label}' is {named}, its cells are those of {assignment}: it counts there."
        ),
    )


def _settle(root: Path, student: str, assignment: str, uploads: list[Upload], assignments) -> Taken:
    """Choose among the uploads of one student for one exercise, and write down the outcome."""
    uploads = sorted(uploads, key=lambda upload: upload.order, reverse=True)
    refusals, raw = [], b""
    for n, upload in enumerate(uploads[:MOST_TRIED]):
        try:
            if not assignment:
                known = ", ".join(f"{name}.ipynb" for name in assignments) or "none"
                normalise(upload.load())  # if it can't be read, that reason comes first
                raise Refused(f"The file name is that of no exercise. The exercises are: {known}.")
            raw = upload.load()
            data, remarks = normalise(raw)
            remarks += [upload.remark] * bool(upload.remark)
        except Refused as problem:
            refusals.append((upload, str(problem)))
            continue
        except Exception as problem:  # one upload must not stop the class
            refusals.append((upload, f"The file could not be read ({type(problem).__name__})."))
            continue
        others = [f"'{other.label}' could not be used: {why}" for other, why in refusals]
        others += [f"'{other.label}' is older and was not used." for other in uploads[n + 1 :]]
        if others:
            remarks.append(f"Several files were sent; '{upload.label}' counts. {' '.join(others)}")
        taken = _take(root, student, assignment, upload, data, remarks)
        if taken.sha256 == hashlib.sha256(data).hexdigest() and any(NOT_UTF8 in one for one in remarks):
            files.replace(taken.path.with_suffix(".ipynb.sent"), raw)  # whoever reads it better has the bytes
        return taken
    newest = refusals[0][0]
    if assignment:
        _address(root, assignment, student, newest.back)
    reason = " ".join(f"'{upload.label}': {why}" for upload, why in refusals[:MOST_NAMED])
    if len(uploads) > MOST_NAMED:
        reason += f" And {len(uploads) - MOST_NAMED} more files."
    return _reject(root, student, assignment, reason, raw, newest.seconds)


def record(root: Path, assignment: str, student: str) -> dict:
    """The notes on the submission that counts: ``sha256``, ``seconds_of_upload``, ``from`` (its name),
    ``remarks``; ``{}`` where there is none.

    It is kept outside ``submitted/``, which may hold a student's own files.
    """
    try:
        found = json.loads(_noted(root, assignment, student).read_text(encoding="utf-8"))
        ok = (
            isinstance(found["sha256"], str)
            and isinstance(found["remarks"], list)
            and math.isfinite(found["seconds_of_upload"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if ok else {}


def _noted(root: Path, assignment: str, student: str) -> Path:
    return Path(root) / "taken" / assignment / f"{student}.json"


def address(root: Path, assignment: str, student: str) -> Path:
    """The file with the name under which a platform takes feedback back, where one has sent the upload."""
    return _noted(root, assignment, student).with_name(f"{student}.back")


def _address(root: Path, assignment: str, student: str, back: str) -> None:
    if back:  # what comes by mail later changes nothing on the platform
        files.replace(address(root, assignment, student), back.encode("utf-8", "surrogateescape"))


def _take(root: Path, student: str, assignment: str, upload: Upload, data: bytes, remarks) -> Taken:
    path = root / "submitted" / student / assignment / f"{assignment}.ipynb"
    sha, earlier = hashlib.sha256(data).hexdigest(), record(root, assignment, student)
    seconds = upload.seconds
    _address(root, assignment, student, upload.back)
    if path.exists() and earlier:
        if earlier["sha256"] == sha:  # sent again unchanged: the first time counts
            seconds, remarks = earlier["seconds_of_upload"], earlier["remarks"]
        elif earlier["seconds_of_upload"] > seconds:
            return Taken(
                student,
                assignment,
                "taken",
                " ".join(earlier["remarks"]),
                path,
                earlier["sha256"],
                earlier["seconds_of_upload"],
            )
        else:
            files.replace(path.with_suffix(".ipynb.earlier"), path.read_bytes())
            if _untouched(root, assignment, data) and not _untouched(root, assignment, path.read_bytes()):
                remarks = [*remarks, BLANK]
    taken = Taken(student, assignment, "taken", " ".join(remarks), path, sha, seconds)
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    files.replace(path, data)
    files.replace(path.with_name("timestamp.txt"), f"{when:%Y-%m-%d %H:%M:%S.%f} UTC".encode())  # nbgrader's
    files.replace(
        _noted(root, assignment, student),
        json.dumps(
            {"sha256": sha, "seconds_of_upload": seconds, "from": upload.label, "remarks": remarks}, indent=1
        ).encode(),
    )
    marks = root / "marks" / assignment / f"{student}.json"
    if kept.load(marks, "`grade` marks it again.").get("state") == "rejected":
        marks.unlink()  # it was about an upload that no longer counts
    return taken


def _reject(root: Path, student: str, assignment: str, reason: str, raw: bytes, seconds: float) -> Taken:
    path = root / "submitted" / student / assignment / f"{assignment}.ipynb"
    earlier = record(root, assignment, student) if assignment and path.exists() else {}
    if earlier:  # what was taken before still counts
        return Taken(
            student,
            assignment,
            "taken",
            f"A newer upload could not be used; the earlier one counts. {reason}",
            path,
            earlier["sha256"],
            earlier["seconds_of_upload"],
        )
    taken = Taken(
        student, assignment, "rejected", reason, None, hashlib.sha256(raw).hexdigest() if raw else "", seconds
    )
    marks = {
        key: value
        for key, value in asdict(taken).items()
        if key in ("student", "assignment", "state", "reason", "sha256")
    }
    marks |= {"checks_version": "", "questions": {}, "written": [], "remarks": []}
    files.replace(
        root / "marks" / (assignment or UNKNOWN) / f"{student}.json",
        (json.dumps(marks, indent=1) + "\n").encode(),
    )
    return taken


def take_in_votes(inbox: Path, root: Path) -> tuple[int, int]:
    """Take in the votes beside the homework; returns how many there are, and how many files were none."""
    students = Students(root)

    def who(name: str) -> str:
        sender = roster.sender(name)
        loose = match(_bare(_one_copy(name)), exercises.names())[1]
        return students.id(sender.stable if sender else loose or name, sender)

    return ballots.take_in(_below(Path(inbox)), Path(inbox), Path(root), who)


# ---- what was collected elsewhere ----


def adopt(root: Path, assignment: str) -> list[Taken]:
    """Take in what is in ``submitted/`` and did not come through `take_in`: what `nbgrader collect` wrote.

    Each notebook is brought into its plain form in place; what was sent is kept as
    ``….ipynb.collected``. ``timestamp.txt`` says when it was sent. What cannot be read is rejected like any
    upload, and set aside as ``….ipynb.refused``. A notebook of this exercise under another name is renamed;
    `record` has that name as "from". Returns one Taken for each notebook that was new.
    """
    root = Path(root)
    submitted = root / "submitted"
    found, names = _renamed(root, assignment)
    for path in sorted(submitted.glob(f"*/{assignment}/{assignment}.ipynb")):
        student = path.parts[-3]
        raw = b""
        try:
            raw, modified = files.read_dated(path, MOST_UPLOAD, submitted)
            if record(root, assignment, student).get("sha256") == hashlib.sha256(raw).hexdigest():
                continue
            seconds = _collected_at(path, modified)
            data, remarks = normalise(raw)
            if not _is_of(root, assignment, data):
                raise Refused(f"None of its cells is one of {assignment}: it is another notebook.")
        except Exception as problem:  # one submission must not stop the class
            why = (
                str(problem)
                if isinstance(problem, Refused)
                else (f"The file could not be read ({type(problem).__name__}).")
            )
            _noted(root, assignment, student).unlink(missing_ok=True)  # it was about what was there before
            if path.parent.resolve() == submitted.resolve() / student / assignment:  # no link leads elsewhere
                os.replace(path, path.with_suffix(".ipynb.refused"))
            found.append(_reject(root, student, assignment, f"'{path.name}': {why}", raw, _seconds(path)))
            continue
        files.replace(path.with_suffix(".ipynb.collected"), raw)
        _noted(root, assignment, student).unlink(missing_ok=True)  # what is here now is what counts
        upload = Upload(student, assignment, names.get(student, path.name), seconds, lambda: b"")
        found.append(_take(root, student, assignment, upload, data, remarks))
    return found


def _renamed(root: Path, assignment: str) -> tuple[list[Taken], dict[str, str]]:
    """Give the exercise's name to what was collected under another one; reject whoever sent no notebook.

    Returns the rejected, and the earlier names by student.
    """
    submitted, rejected, names = root / "submitted", [], {}
    ids = _ids(root, assignment)
    for folder in sorted(submitted.glob(f"*/{assignment}")):
        path, student = folder / f"{assignment}.ipynb", folder.parent.name
        elsewhere = folder.resolve() != submitted.resolve() / student / assignment
        if elsewhere or os.path.lexists(path) or record(root, assignment, student):
            continue
        fitting = []
        for other in sorted(folder.glob("*.ipynb")):
            try:
                raw, seconds = files.read_dated(other, MOST_UPLOAD, submitted)
            except (Refused, OSError):
                continue
            if ids & set(GRADE_ID.findall(raw)):
                fitting.append((seconds, other))
        if fitting:
            names[student] = max(fitting)[1].name
            os.replace(folder / names[student], path)
        elif not (root / "marks" / assignment / f"{student}.json").exists():
            why = f"No notebook named {assignment}.ipynb was handed in, and none that holds its cells."
            rejected.append(_reject(root, student, assignment, why, b"", _seconds(folder)))
    return rejected, names


def _collected_at(path: Path, modified: float) -> float:
    """When a collected submission was sent: nbgrader notes it beside the notebook."""
    from nbgrader.utils import parse_utc

    try:
        said = parse_utc(files.read(path.with_name("timestamp.txt"), 200, path.parent).decode().strip())
        return _sane(said.replace(tzinfo=datetime.UTC).timestamp())
    except (ValueError, OverflowError, OSError, TypeError):
        return _sane(modified)
