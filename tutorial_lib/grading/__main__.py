"""Grade a class: take in uploads, mark them, and write feedback, grades and a report.

    python -m tutorial_lib.grading take-in inbox/        # uploads → submitted/
    python -m tutorial_lib.grading grade ex06_rope       # submitted/ → marks/ and gradebook.db
    python -m tutorial_lib.grading feedback ex06_rope    # a page for each student
    python -m tutorial_lib.grading export                # exports/grades.csv
    python -m tutorial_lib.grading report ex06_rope      # what the class got wrong, and why
    python -m tutorial_lib.grading all                   # the last four for every exercise handed in

Everything stands in one class folder (``--root``, by default this one). Each command can be run again:
what is done is not done twice.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections import Counter
from pathlib import Path

from ..extras import needs
from . import assignments

with needs("teach"):
    from tqdm import tqdm


def _date(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date: write it like 2026-12-01T18:00") from None


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: give a number from 0 to 1, such as 0.1")
    return share


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tutorial_lib.grading", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--root", type=Path, default=Path(), help="the class folder (default: this one)")
    shared.add_argument("--db", help="the gradebook's database (default: gradebook.db in the class folder)")
    marking = argparse.ArgumentParser(add_help=False)
    marking.add_argument("--workers", type=int, help="processes that mark (default: one a core)")
    marking.add_argument("--scheduler", default="", help="the address of a running Dask cluster instead")
    marking.add_argument("--trusted", action="store_true",
                         help="run without a sandbox: only for notebooks that you wrote yourself")
    marking.add_argument("--again", action="store_true", help="mark what is marked already, too")
    marking.add_argument("--due", type=_date, help="when it was due, such as 2026-12-01T18:00 (local time)")
    marking.add_argument("--late-per-day", type=_share, metavar="SHARE",
                         help="share of the maximum that each day late costs, such as 0.1 (it is kept)")
    which = argparse.ArgumentParser(add_help=False)
    which.add_argument("assignments", nargs="*", metavar="ASSIGNMENT",
                       help="such as ex06_rope (default: all that were handed in)")
    commands = parser.add_subparsers(dest="command", required=True)
    take = commands.add_parser("take-in", parents=[shared], help="uploads of any layout become submissions")
    take.add_argument("inbox", type=Path, help="the folder with the uploads; nothing in it is changed")
    commands.add_parser("grade", parents=[shared, marking, which], help="mark, and keep in the gradebook")
    commands.add_parser("feedback", parents=[shared, which], help="a page for each student")
    commands.add_parser("export", parents=[shared], help="all grades as CSV")
    commands.add_parser("report", parents=[shared, which], help="questions and misconceptions of the class")
    commands.add_parser("all", parents=[shared, marking, which],
                        help="grade, feedback, export and report, one after the other")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        given.root = given.root.resolve()
        if not given.root.is_dir():
            raise ValueError(f"there is no class folder {given.root}: make it, or name it with --root")
        if "assignments" in given:
            given.assignments = _assignments(given.root, given.assignments)
        steps = ("grade", "feedback", "export", "report") if given.command == "all" else (given.command,)
        failed = False
        for step in steps:
            failed |= bool(STEPS[step](given))
        return int(failed)
    except KeyboardInterrupt:
        print("\nStopped. What is marked is kept: the same command goes on from here.", file=sys.stderr)
        return 130
    except ImportError as problem:
        print(f"{parser.prog}: {problem}. A teacher needs more packages: pip install -e '.[teach,cluster]'",
              file=sys.stderr)
        return 2
    except (ValueError, OSError, RuntimeError) as problem:
        print(f"{parser.prog}: {problem}", file=sys.stderr)
        return 2


def _assignments(root: Path, named: list[str]) -> list[str]:
    """The exercises that are meant; ValueError for a name that is none, and when there are none."""
    known = assignments.names()
    for name in named:
        if name not in known:
            raise ValueError(f"{name!r} is no exercise; there are {', '.join(known)}")
    sent = {path.name for folder in ("submitted/*", "marks") for path in root.glob(f"{folder}/ex*")}
    found = named or [name for name in known if name in sent]
    if not found:
        raise ValueError(f"nothing has been handed in yet in {root}: run `take-in INBOX` first")
    return found


def _counts(counted: Counter) -> str:
    return ", ".join(f"{counted[key]} {key}" for key in sorted(counted))


def take_in(given) -> int:
    from . import intake

    taken = intake.take_in(given.inbox, given.root, assignments.names())
    for one in taken:
        if one.reason:
            print(f"{one.student}  {one.assignment or '–'}: {one.state}. {one.reason}")
    counted = Counter(one.state for one in taken)
    print(f"{len(taken)} uploads: " + (_counts(counted) or "none"))
    return 0


def grade(given) -> int:
    from . import gradebook, marking

    if given.trusted:
        print("Without a sandbox, a notebook can read, change and send whatever you can. Go on only with "
              "notebooks that you wrote yourself.", file=sys.stderr)
    gradebook.prepare(given.root, {name: assignments.path(name) for name in given.assignments}, given.db)
    failed = 0
    for name in given.assignments:
        with tqdm(desc=name, unit="submission", total=0) as bar:
            def show(done, total=None, bar=bar):
                bar.total = total or bar.total
                bar.n = done
                bar.refresh()

            marking.mark_all(given.root, name, workers=given.workers, scheduler=given.scheduler,
                             trusted=given.trusted, again=given.again, progress=show)
        marks = gradebook.load_marks(given.root, name)
        late = _late_per_day(given.root / "marks" / name / ".late-per-day", given.late_per_day)
        gradebook.merge(given.root, name, marks, due=given.due, late_per_day=late, db=given.db)
        counted = Counter(one["state"] for one in marks.values())
        print(f"{name}: " + (_counts(counted) or "nothing yet"))
        for student, one in marks.items():
            if one["state"] == "grader error":
                failed += 1
                print(f"  {student}: {one['reason']}", file=sys.stderr)
    return failed


def _late_per_day(path: Path, given: float | None) -> float:
    """The share that is asked for, or the one that was asked for last: as the due date, it stays."""
    from . import files

    if given is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, str(given).encode())
        return given
    return float(path.read_text(encoding="utf-8")) if path.exists() else 0.0


def feedback(given) -> int:
    from . import reports

    for name in given.assignments:
        pages = reports.feedback(given.root, name, given.db)
        print(f"{name}: {len(pages)} pages in {given.root / 'feedback'}")
    return 0


def export(given) -> int:
    from . import reports

    print(reports.export(given.root, given.db))
    return 0


def report(given) -> int:
    from . import reports

    for name in given.assignments:
        print(reports.report(given.root, name))
    return 0


STEPS = {"take-in": take_in, "grade": grade, "feedback": feedback, "export": export, "report": report}

if __name__ == "__main__":
    sys.exit(main())
