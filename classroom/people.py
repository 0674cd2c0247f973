"""One student under two names becomes one, and one who leaves is forgotten: in all places that know a name.

Each function returns what it does as lines to read; only with ``do`` it does it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from course import files

from . import ballots, clock, gradebook, history, intake, kept, rules, written

MERGED = "merged.json"


def merge(root: Path, old: str, new: str, do: bool = False, db: str | None = None) -> list[str]:
    """All that ``old`` has becomes ``new``'s: uploads, marks by hand, comments, extensions.

    Of two uploads for one exercise the newer counts, and the other is kept beside it. What a person gave to
    ``new`` stays; where the text is another one than that which was marked, it is to be marked again. From
    now on `take-in` gives to ``new`` what comes under the name of ``old``.
    """
    for student in (old, new):
        _known(root, student)
    if old == new:
        raise ValueError(f"{old!r} and {new!r} are one already")
    lines = _in_tables(root, old, new, do, db)
    for name in _exercises(root, old):
        own, other = root / "submitted" / old / name, root / "submitted" / new / name
        when = [intake.record(root, name, one).get("seconds_of_upload", -1.0) for one in (old, new)]
        counts = own.exists() and (not other.exists() or when[0] > when[1])
        sent = clock.words(clock.moment(when[0]), rules.load(root, name).zone) if when[0] > 0 else ""
        if own.exists():
            what = f"counts for {new}" if counts else f"is older than that of {new}, and is kept beside it"
            lines.append(f"{name}: what {old} sent{f' on {sent}' if sent else ''} {what}")
        if do and counts:
            if other.exists():
                earlier = (other / f"{name}.ipynb").read_bytes()
                files.replace(own / f"{name}.ipynb.earlier", earlier)
                shutil.rmtree(other)
            other.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(own, other)
            for path in _notes(root, name, old):
                path.replace(path.with_name(new + path.suffix))
            (root / "marks" / name / f"{new}.json").unlink(missing_ok=True)  # the inputs depend on the name
        elif do and own.exists():
            files.replace(other / f"{name}.ipynb.earlier", (own / f"{name}.ipynb").read_bytes())
        asked = rules.load(root, name)
        if old in asked.extensions:
            lines.append(f"{name}: the extension of {old} holds for {new}, if there is no other")
            if do:
                rules.save(root, name, asked.renamed(old, new))
    lines += _hand_marks(root, old, new, do, db)
    if do:
        merged = {**kept.load(root / MERGED, "What was merged comes back under its own name."), old: new}
        files.replace(root / MERGED, (json.dumps(merged, indent=1, sort_keys=True) + "\n").encode())
        history.rename(root, old, new)
        forget(root, old, True, db)
    return [*lines, f"the row of {old} goes; what comes under that name later is {new}'s"]


def _hand_marks(root: Path, old: str, new: str, do: bool, db: str | None) -> list[str]:
    """Move what a person gave, as far as the other one has nothing there."""
    lines = []
    if not (root / "nbgrader_config.py").exists():
        return lines
    with gradebook.alone(root), gradebook.gradebook(root, db) as book:
        for exercise in book.assignments:
            if not (before := next((s for s in exercise.submissions if s.student_id == old), None)):
                continue
            (theirs,) = before.notebooks
            given = {
                one.name: one for one in theirs.grades if one.manual_score is not None or one.extra_credit
            }
            said = {one.name: one.manual_comment for one in theirs.comments if one.manual_comment}
            if not given and not said:
                continue
            lines.append(
                f"{exercise.name}: {len(given)} marks by hand and {len(said)} comments become {new}'s"
            )
            if not do:
                continue
            book.update_or_create_student(new)
            with book.db.no_autoflush:
                (notebook,) = book.update_or_create_submission(exercise.name, new).notebooks
            texts = [kept.load(path, "") for path in _entered(root, exercise.name, (old, new))]
            for grade in notebook.grades:
                if (one := given.get(grade.name)) and grade.manual_score is None:
                    grade.manual_score, grade.extra_credit = one.manual_score, one.extra_credit
                    same = not texts[0] or texts[0].get(grade.name) == texts[1].get(grade.name)
                    grade.needs_manual_grade = one.needs_manual_grade or not same
            for comment in notebook.comments:
                comment.manual_comment = comment.manual_comment or said.get(comment.name)
            book.db.commit()
    return lines


def _in_tables(root: Path, old: str, new: str, do: bool, db: str | None) -> list[str]:
    """The tables of written answers, in which a name that is gone would stop everybody's marks."""
    counts = {
        path.parent.name: written.rename(root, path.parent.name, old, new, do, db)
        for path in sorted(root.glob(f"written/*/{written.TABLE}"))
    }
    return [
        f"{name}: {count} lines of {written.TABLE} {f'become {new}’s' if new else 'go'}, and pages that name "
        f"{old}: `written` makes them anew"
        for name, count in counts.items()
        if count
    ]


def forget(root: Path, student: str, do: bool = False, db: str | None = None) -> list[str]:
    """Remove a student from the gradebook and all that they sent from the class folder."""
    _known(root, student)
    from nbgrader.api import MissingEntry

    from .marking import secret_of

    lines = _in_tables(root, student, "", do, db)
    for name in _exercises(root, student):
        lines.append(f"{name}: what they sent, its marks and its feedback")
        asked = rules.load(root, name)
        if do and student in asked.extensions:
            rules.save(root, name, asked.renamed(student, ""))
        for path in [*_notes(root, name, student), root / "marks" / name / f"{student}.json"] if do else ():
            path.unlink(missing_ok=True)
    for folder in ("submitted", "autograded", "feedback") if do else ():
        shutil.rmtree(root / folder / student, ignore_errors=True)
    if do:
        (root / "marks" / intake.UNKNOWN / f"{student}.json").unlink(missing_ok=True)
        history.rename(root, student, "")
        people = intake.Students(root)
        people.names.pop(student, None)
        people.save()
        for path in (root / ballots.FOLDER).glob("vote-*"):
            question = path.name.removeprefix("vote-")[:-24]
            if path.stem.endswith(ballots.code(secret_of(root), question, student)):
                path.unlink()
        if (root / "nbgrader_config.py").exists():
            with gradebook.alone(root), gradebook.gradebook(root, db) as book:
                try:
                    book.remove_student(student)
                except MissingEntry:
                    pass
    return [*lines, "their row in the gradebook, and their votes"]


def _known(root: Path, student: str) -> None:
    known = gradebook.students(root)
    if student not in known and student not in intake.names(root):
        raise ValueError(f"there is no student {student!r}; there are {', '.join(known) or 'none'}")


def _exercises(root: Path, student: str) -> list[str]:
    """The exercises for which there is anything of a student."""
    found = {path.name for path in (root / "submitted" / student).glob("ex*")}
    return sorted(found | {path.parent.name for path in root.glob(f"marks/ex*/{student}.json")})


def _entered(root: Path, name: str, students) -> Iterator[Path]:
    return (root / "marks" / name / ".entered" / f"{student}.json" for student in students)


def _notes(root: Path, name: str, student: str) -> list[Path]:
    """What these commands have noted about an upload."""
    places = [root / "taken" / name / f"{student}.json", intake.address(root, name, student)]
    places += _entered(root, name, [student])
    places.append(root / "marks" / name / ".preview" / f"{student}.json")
    return [path for path in places if path.exists()]
