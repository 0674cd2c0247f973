"""The folder in which a learner works: it follows the course, and keeps what they did.

The clone itself stays as it was given out. Otherwise the first run of a notebook changes a file that
``git pull`` wants to change as well.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from pathlib import Path

from ..places import DEEPER

SERVED = ("notebooks", "exercises", "docs")
NOT_SERVED = ("docs/instructor", "docs/README")  # for teachers
STATE = ".course"
"""In the working copy, hidden from JupyterLab: fingerprints, signatures, settings, the layout of the desk."""
FIRST = "notebooks/00_start_here.ipynb"


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


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


def fitted(source: Path) -> bytes:
    """A file as the learner gets it: a notebook has the metadata that JupyterLab would write.

    Otherwise opening a notebook changes it, and JupyterLab asks to save what nobody has touched.
    """
    if source.suffix != ".ipynb":
        return source.read_bytes()
    notebook = json.loads(source.read_text(encoding="utf-8"))
    notebook["metadata"] |= {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py",
                          "mimetype": "text/x-python", "name": "python", "nbconvert_exporter": "python",
                          "pygments_lexer": "ipython3", "version": platform.python_version()}}
    for cell in notebook["cells"]:
        if cell["metadata"].get("jupyter", {}).get("outputs_hidden"):
            cell["metadata"]["collapsed"] = True
    return (json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def given_out(mine: Path) -> dict[str, dict[str, str]]:
    """What the learner was given: by name, the fingerprint in the ``course`` and in the copy (``mine``)."""
    record = mine / STATE / "given.json"
    return json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}


def changed(mine: Path) -> list[str]:
    """The files that the learner has changed since they were given out."""
    return [name for name, given in sorted(given_out(mine).items())
            if (mine / name).exists() and fingerprint(mine / name) != given["mine"]]


def renew(course: Path, mine: Path) -> list[str]:
    """Bring ``mine`` up to date; returns the files that both the learner and the course have changed.

    A file that the learner has not touched is replaced, or removed where the course has dropped it. A
    touched one stays, and the new version lies beside it, as ``06_rope.new.ipynb``. A file that the
    learner has deleted comes back.
    """
    given, both = given_out(mine), []
    touched = set(changed(mine))
    names = [name.as_posix() for name in served(course)]
    for name in names:
        new, old, target = fingerprint(course / name), given.get(name), mine / name
        if target.exists() and old and old["course"] == new:
            continue
        if name in touched or target.exists() and not old:  # theirs, or there before the desk was
            both.append(name)
            _write(fresh(target), fitted(course / name))
            given[name] = {"course": new, "mine": old["mine"] if old else ""}
        else:
            _write(target, fitted(course / name))
            given[name] = {"course": new, "mine": fingerprint(target)}
    for name in given.keys() - set(names):
        if name not in touched:
            (mine / name).unlink(missing_ok=True)
        del given[name]
    _remember(mine, given)
    return both


def again(course: Path, mine: Path, name: str) -> tuple[str, str]:
    """A fresh copy of one notebook; returns its name, and the name that the learner's own now has.

    ``name`` is the beginning of a file name, such as ``06`` or ``ex06``; a lesson goes before its quests.
    ValueError lists what there is.
    """
    notebooks = [each for each in served(course) if each.suffix == ".ipynb"]
    meant = [each for each in notebooks if each.stem.startswith(name)]
    found = [each.as_posix() for each in [each for each in meant if each.parent.name != DEEPER] or meant]
    if not name or len(found) != 1:
        raise ValueError(f"{name!r} is the beginning of {len(found)} notebooks, not of one; there are "
                         + ", ".join(each.stem for each in notebooks))
    target = mine / found[0]
    kept = ""
    if target.exists() and fingerprint(target) != given_out(mine).get(found[0], {}).get("mine"):
        aside = next(path for n in range(1, 1000)
                     if not (path := target.with_name(f"{target.stem}.mine-{n}{target.suffix}")).exists())
        target.rename(aside)
        kept = aside.relative_to(mine).as_posix()
    fresh(target).unlink(missing_ok=True)
    _write(target, fitted(course / found[0]))
    _remember(mine, given_out(mine) | {
        found[0]: {"course": fingerprint(course / found[0]), "mine": fingerprint(target)}})
    return found[0], kept


def fresh(target: Path) -> Path:
    """Where the course's version lies when the learner keeps their own."""
    return target.with_suffix(f".new{target.suffix}")


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _remember(mine: Path, given: dict) -> None:
    _write(mine / STATE / "given.json", json.dumps(given, indent=1, sort_keys=True).encode())
