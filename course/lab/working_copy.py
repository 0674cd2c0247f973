"""The folder in which a learner works: it follows the course, and keeps what they did.

The clone itself stays as it was given out. Otherwise the first run of a notebook would change a file that
``git pull`` wants to change as well.

A file belongs to the course only if its content is one that the desk has put there, by the record of what was
given out. Everything else is the learner's, whatever its name. A start may be stopped at any point: each file
is there as a whole or not at all, and the record knows a content before a file has it.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import platform
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from ..places import DEEPER

SERVED = ("notebooks", "exercises", "docs")
NOT_SERVED = ("docs/instructor", "docs/README")  # for teachers
STATE = ".course"
"""In the working copy, hidden from JupyterLab: fingerprints, signatures, settings, the layout of the desk."""
FIRST = "notebooks/00_start_here.ipynb"
PART = ".desk-{}.part"
"""A file that is still being written; one of a minute ago is what a kill has left."""


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def served(course: Path) -> Iterator[Path]:
    """The files of the course that a learner gets, as paths inside it."""
    for folder in SERVED:
        for path in sorted((course / folder).rglob("*")):
            name = path.relative_to(course)
            hidden = any(part.startswith((".", "__")) for part in name.parts)
            inside = name.as_posix().startswith(NOT_SERVED)
            scratch = path.suffix == ".py" and path.with_suffix(".ipynb").exists()
            if path.is_file() and not (hidden or inside or scratch):
                yield name


def inside(mine: Path, course: Path) -> bool:
    """Whether a working copy would lie among the files that it is made from."""
    served_from = [(course / folder).resolve() for folder in SERVED]
    return mine == course.resolve() or any(folder in (mine, *mine.parents) for folder in served_from)


def fitted(content: bytes, name: str) -> bytes:
    """A file as the learner gets it: a notebook has the metadata that JupyterLab would write.

    Otherwise opening a notebook changes it, and JupyterLab asks to save what nobody has touched. ValueError
    where the course's own file is not a notebook, as in an unfinished merge.
    """
    if not name.endswith(".ipynb"):
        return content
    try:
        notebook = json.loads(content)
    except ValueError as problem:
        raise ValueError(
            f"{name} of the course is not a notebook ({problem}); `git status` in the clone "
            "says what has happened to it"
        ) from None
    notebook["metadata"] |= {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {
            "codemirror_mode": {"name": "ipython", "version": 3},
            "file_extension": ".py",
            "mimetype": "text/x-python",
            "name": "python",
            "nbconvert_exporter": "python",
            "pygments_lexer": "ipython3",
            "version": platform.python_version(),
        },
    }
    for cell in notebook["cells"]:
        if cell["metadata"].get("jupyter", {}).get("outputs_hidden"):
            cell["metadata"]["collapsed"] = True
    return (json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def given_out(mine: Path) -> dict[str, dict]:
    """What the learner was given: by name, the fingerprint in the ``course`` and in the copy (``mine``).

    ``also`` lists other contents there that are the course's: one that was about to be written, and what lies
    beside a learner's own. A file that lies ``beside`` another names it. An unreadable record counts as none.
    """
    try:
        record = json.loads((mine / STATE / "given.json").read_text(encoding="utf-8"))
        return {name: entry for name, entry in record.items() if {"course", "mine"} <= entry.keys()}
    except (FileNotFoundError, ValueError, AttributeError):
        return {}


def changed(mine: Path) -> list[str]:
    """The files that the learner has changed since they were given out."""
    return [name for name, entry in sorted(given_out(mine).items()) if _theirs(mine / name, entry)]


def renew(course: Path, mine: Path) -> dict[str, str]:
    """Bring ``mine`` up to date. Returns what both the learner and the course have changed: the file, and the
    name under which the new version lies beside it.

    A file that the learner has not touched is replaced, or removed where the course has dropped it. A
    touched one stays, and the new version lies beside it, as ``06_rope.new.ipynb``; if the learner works in
    that one, it stays, too, and the next is ``06_rope.new-2.ipynb``. A file that the learner has deleted
    comes back.
    """
    given, before = given_out(mine), given_out(mine)
    sources = {name.as_posix(): course / name for name in served(course)}
    _sweep(mine, given)
    lay: dict[str, tuple[bytes, dict]] = {}
    both: dict[str, str] = {}
    for name, source in sources.items():
        content, target, entry = source.read_bytes(), mine / name, given.get(name, {})
        version = fingerprint(content)
        told = entry.get("course") == version
        if told and target.is_file() and fingerprint(target.read_bytes()) == entry["mine"]:
            continue
        content = fitted(content, name)
        laid = {"course": version, "mine": fingerprint(content)}
        if not _theirs(target, entry, content):
            lay[name] = content, laid
        elif not told:
            both[name] = next(
                path
                for path in _beside(name)
                if path not in sources and not _theirs(mine / path, given.get(path, {}), content)
            )
            lay[both[name]] = content, laid | {"beside": name}
    for name, (_, laid) in lay.items():
        given[name] = _expecting(given.get(name, {}), laid["mine"])
    if lay:
        _remember(mine, given)
    for name, (content, laid) in lay.items():
        if not _theirs(mine / name, before.get(name, {}), content):  # else: for the next start
            put(mine / name, content)
            given[name] = laid
    both = {name: path for name, path in both.items() if "also" not in given[path]}
    for name, path in both.items():
        given[name] = _expecting(given.get(name, {}), given[path]["mine"]) | {
            "course": given[path]["course"],
            "mine": "",
        }
    for name in given.keys() - sources.keys():
        entry = given[name]
        owner = entry.get("beside", name)
        beside = given.get(owner, {})
        waits = owner in sources and beside.get("course") == entry["course"] and _theirs(mine / owner, beside)
        if not waits and not _theirs(mine / name, entry):
            (mine / name).unlink(missing_ok=True)
            del given[name]
    if given != before:
        _remember(mine, given)
    return both


def meant(course: Path, name: str) -> str:
    """The notebook that ``name`` begins, such as ``06`` or ``ex06``; a lesson goes before its quests.

    ValueError lists what there is.
    """
    notebooks = [each for each in served(course) if each.suffix == ".ipynb"]
    found = [each for each in notebooks if each.stem.startswith(name)]
    found = [each for each in found if each.parent.name != DEEPER] or found
    if not name or len(found) != 1:
        raise ValueError(
            f"{name!r} is the beginning of {len(found)} notebooks, not of one; there are "
            + ", ".join(each.stem for each in notebooks)
        )
    return found[0].as_posix()


def again(course: Path, mine: Path, name: str) -> tuple[str, str]:
    """A fresh copy of the notebook :func:`meant`; returns its name, and that of the learner's own."""
    name, given = meant(course, name), given_out(mine)
    _sweep(mine, given)
    content, target = (course / name).read_bytes(), mine / name
    version, content = fingerprint(content), fitted(content, name)
    given[name] = _expecting(given.get(name, {}), fingerprint(content))
    _remember(mine, given)
    kept = _set_aside(target) if _theirs(target, given[name], content) else ""
    put(target, content)
    given[name] = {"course": version, "mine": fingerprint(content)}
    for path in [path for path, entry in given.items() if entry.get("beside") == name]:
        if not _theirs(mine / path, given[path]):
            (mine / path).unlink(missing_ok=True)
            del given[path]
    _remember(mine, given)
    return name, kept and (mine / name).with_name(kept).relative_to(mine).as_posix()


def put(path: Path, content: bytes) -> None:
    """Make ``content`` the whole content of a file, in one step; missing folders are made."""
    part = path.with_name(PART.format(secrets.token_hex(8)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        os.replace(part, path)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(problem, OSError):
            problem.filename = str(path)  # the name of the part would mean nothing to anybody
        raise


def _theirs(path: Path, entry: dict, new: bytes = b"") -> bool:
    """Whether something of the learner's is there: what the desk did not put there, by its record ``entry``.

    A file that holds just the beginning of ``new``, the course's version, is a copy that was cut short, and
    nobody's work; only in a text that was given out whole can the learner have deleted the end.
    """
    if not os.path.lexists(path):
        return False
    if not path.is_file():  # a folder; a link to a disk that is not there
        return True
    there, ours = path.read_bytes(), {entry.get("mine"), *entry.get("also", ())} - {None, ""}
    cut = new.startswith(there) and (path.suffix == ".ipynb" or not ours or not there)
    return fingerprint(there) not in ours and there != new and not cut


def _expecting(entry: dict, upcoming: str) -> dict:
    """An entry of the record that counts one more content as the course's."""
    known = {upcoming, entry.get("mine"), *entry.get("also", ())} - {None, ""}
    return {"course": "", "mine": ""} | entry | {"also": sorted(known)}


def _beside(name: str) -> Iterator[str]:
    """Where the course's version can lie when the learner keeps their own."""
    path = Path(name)
    for n in itertools.count(1):
        yield path.with_suffix(f".new{f'-{n}' * (n > 1)}{path.suffix}").as_posix()


def _set_aside(target: Path) -> str:
    """Give the learner's own another name, without overwriting anything; returns that name."""
    for n in itertools.count(1):
        aside = target.with_name(f"{target.stem}.mine-{n}{target.suffix}")
        try:
            os.link(target, aside)  # never over another file, even if two of us do it at the same moment
        except FileExistsError:
            if not (aside.is_file() and aside.read_bytes() == target.read_bytes()):  # it is there already
                continue
        except (OSError, NotImplementedError):  # a disk without links
            if os.path.lexists(aside):
                continue
            target.rename(aside)
        return aside.name
    raise AssertionError("there is always another number")


def _sweep(mine: Path, given: dict) -> None:
    """Remove what a kill has left of files that were being written."""
    for folder in {*(mine / STATE).glob("**/"), *((mine / name).parent for name in given)}:
        for part in folder.glob(PART.format("*")):
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > 60:
                    part.unlink()


def _remember(mine: Path, given: dict) -> None:
    put(mine / STATE / "given.json", json.dumps(given, indent=1, sort_keys=True).encode())
