"""Grade a class: take in uploads, mark them, and write feedback, grades and a report.

    python -m classroom take-in inbox/        # uploads → submitted/
    python -m classroom grade ex06_rope       # submitted/ → marks/ and gradebook.db
    python -m classroom feedback ex06_rope    # a page for each student
    python -m classroom export                # exports/grades.csv, canvas.csv, moodle.csv
    python -m classroom report ex06_rope      # what the class got wrong, and why; the trend
    python -m classroom all                   # the last four for every exercise handed in
    python -m classroom written ex06_rope     # written answers beside their rubric, to mark
    python -m classroom alike ex06_rope       # submissions that resemble each other
    python -m classroom replay ex06_rope ada  # one student's verdicts once more, with all inputs
    python -m classroom inventory logs/       # the concept inventory, before and after
    python -m classroom certificate ada       # a page to print: exercises, points, a code of this class
    python -m classroom appeal ex06_rope ada rope_angles --answer "…"  # one mark, looked at again
    python -m classroom gradescope ex06_rope  # an autograder to upload to Gradescope
    python -m classroom merge old ada         # one student under two names becomes one
    python -m classroom forget ada            # all that a student sent, and their marks, go

Everything stands in one class folder (``--root``, by default this one). Each command can be run again:
what is done is not done twice.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import shlex
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tutorial_lib.optional import needs

from . import assignments, clock, roster, rules
from .rules import PARTS

with needs("teach"):
    from tqdm import tqdm


def _date(text: str) -> datetime.datetime:
    try:
        found = datetime.datetime.fromisoformat(text)
        if not 2000 <= found.year <= 2200:
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no date of our days: write it like 2026-12-01T18:00"
        ) from None
    return found


def _zone(text: str) -> str:
    try:
        clock.zone(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    return text


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: give a number from 0 to 1, such as 0.1")
    return share


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m classroom", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--root", type=Path, default=Path(), help="the class folder (default: this one)")
    shared.add_argument("--db", help="the gradebook's database (default: gradebook.db in the class folder)")
    marking = argparse.ArgumentParser(add_help=False)
    marking.add_argument("--workers", type=int, help="processes that mark (default: one a core)")
    marking.add_argument("--scheduler", default="", help="the address of a running Dask cluster instead")
    marking.add_argument(
        "--trusted",
        action="store_true",
        help="run without a sandbox: only for notebooks that you wrote yourself",
    )
    marking.add_argument("--again", action="store_true", help="mark what is marked already, too")
    marking.add_argument(
        "--due", type=_date, help="when it was due, such as 2026-12-01T18:00 (in the class's zone)"
    )
    marking.add_argument(
        "--zone",
        type=_zone,
        metavar="ZONE",
        help="the class's zone, such as Europe/Berlin, which is kept for all exercises "
        "(default: this machine's)",
    )
    kept = marking.add_argument_group("rules of one exercise, which are kept for later runs")
    kept.add_argument(
        "--late-per-day",
        type=_share,
        metavar="SHARE",
        help="share of the maximum that each day late costs, such as 0.1",
    )
    kept.add_argument(
        "--part-of-day",
        choices=list(PARTS),
        help="what a part of a day counts: a whole day (the default), its share, or none",
    )
    kept.add_argument(
        "--extend",
        nargs=2,
        action="append",
        default=[],
        metavar=("STUDENT", "TIME"),
        help="more time for one student, such as: --extend ben 3d",
    )
    kept.add_argument(
        "--drop", action="append", default=[], metavar="QUESTION", help="let it count for nobody"
    )
    kept.add_argument(
        "--give", action="append", default=[], metavar="QUESTION", help="give its points to everybody"
    )
    kept.add_argument(
        "--restore", action="append", default=[], metavar="QUESTION", help="let it count as usual again"
    )
    which = argparse.ArgumentParser(add_help=False)
    which.add_argument(
        "assignments",
        nargs="*",
        metavar="ASSIGNMENT",
        help="such as ex06_rope (default: all that were handed in)",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    take = commands.add_parser("take-in", parents=[shared], help="uploads of any layout become submissions")
    take.add_argument("inbox", type=Path, help="the folder with the uploads; nothing in it is changed")
    mark = commands.add_parser(
        "grade", parents=[shared, marking, which], help="mark, and keep in the gradebook"
    )
    mark.add_argument(
        "--preview",
        action="store_true",
        help="say whose points would change, and by how much, and keep nothing",
    )
    commands.add_parser("feedback", parents=[shared, which], help="a page for each student")
    out = commands.add_parser(
        "export", parents=[shared], help="all grades as CSV, and as Canvas and Moodle import them"
    )
    out.add_argument(
        "--questions", action="store_true", help="a column for each question in Canvas's file, too"
    )
    commands.add_parser("report", parents=[shared, which], help="questions and misconceptions of the class")
    words = commands.add_parser(
        "written",
        parents=[shared, which],
        help="written answers beside rubric and samples, and a table for their marks",
    )
    words.add_argument("--enter", action="store_true", help="enter what was filled into the table")
    commands.add_parser(
        "alike",
        parents=[shared, which],
        help="submissions that resemble each other, to look at: no proof of anything",
    )
    replayed = commands.add_parser(
        "replay", parents=[shared], help="one student's verdicts once more, with inputs and errors; for you"
    )
    replayed.add_argument("assignment", metavar="ASSIGNMENT", help="such as ex06_rope")
    replayed.add_argument("student", metavar="STUDENT", help="the id, as in the gradebook")
    replayed.add_argument("questions", nargs="*", metavar="QUESTION", help="show these only (default: all)")
    replayed.add_argument("--seed", type=int, help="with these inputs (default: those it was marked with)")
    replayed.add_argument("--trusted", action="store_true", help="without a sandbox")
    believed = commands.add_parser(
        "inventory", parents=[shared], help="what the class believed before the course and after it"
    )
    believed.add_argument("logs", type=Path, help="a folder with students' progress.json, under any names")
    printed = commands.add_parser(
        "certificate", parents=[shared], help="a page to print: a student's exercises, points and a code"
    )
    printed.add_argument("student", nargs="?", metavar="STUDENT", help="the id, as in the gradebook")
    printed.add_argument(
        "--check", type=Path, metavar="FILE", help="is this one of this class, and unchanged?"
    )
    asked = commands.add_parser(
        "appeal", parents=[shared], help="answer a student who doubts one mark, and change it if you do, too"
    )
    asked.add_argument("assignment", metavar="ASSIGNMENT", help="such as ex06_rope")
    asked.add_argument("student", metavar="STUDENT", help="the id, as in the gradebook")
    asked.add_argument("question", metavar="QUESTION", help="as in questions.csv")
    asked.add_argument("--says", default="", metavar="TEXT", help="what the student says")
    asked.add_argument("--answer", required=True, metavar="TEXT", help="what you answer, for their page")
    asked.add_argument("--points", type=float, help="the new mark (default: it stays)")
    packed = commands.add_parser(
        "gradescope", parents=[shared], help="an autograder that runs this course's checks on Gradescope"
    )
    packed.add_argument("assignment", metavar="ASSIGNMENT", help="such as ex06_rope")
    packed.add_argument(
        "--trusted", action="store_true", help="mark there without a sandbox, if there is none"
    )
    one = commands.add_parser("merge", parents=[shared], help="one student under two names becomes one")
    one.add_argument("old", metavar="OLD", help="the name that goes")
    one.add_argument("new", metavar="ID", help="the id that stays")
    gone = commands.add_parser("forget", parents=[shared], help="remove a student, and all that they sent")
    gone.add_argument("student", metavar="STUDENT", help="the id, as in the gradebook")
    for parser_of in (one, gone):
        parser_of.add_argument("--yes", action="store_true", help="do it (without it, this only says what)")
    commands.add_parser(
        "all",
        parents=[shared, marking, which],
        help="grade, feedback, export and report, one after the other",
    )
    return parser


WINDOWS = (
    "grading needs Linux, and this is Windows. Set the course up in WSL 2 (`wsl --install`) and run "
    "the same command there, or grade on the machine of your JupyterHub"
)


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        if sys.platform == "win32":
            raise RuntimeError(WINDOWS)
        given.root = given.root.resolve()
        if not given.root.is_dir():
            raise ValueError(f"there is no class folder {given.root}: make it, or name it with --root")
        if "assignments" in given:
            given.assignments = _assignments(given.root, given.assignments)
        steps = ("grade", "feedback", "export", "report") if given.command == "all" else (given.command,)
        failed = False
        _note(given, "")
        for step in steps:
            failed |= bool(STEPS[step](given))
        _note(given, _asked(sys.argv[1:] if arguments is None else arguments))
        return int(failed)
    except KeyboardInterrupt:
        print("\nStopped. What is marked is kept: the same command goes on from here.", file=sys.stderr)
        return 130
    except ImportError as problem:
        print(
            f"{parser.prog}: {problem}. A teacher needs more packages: pip install -e '.[teach,cluster]'",
            file=sys.stderr,
        )
        return 2
    except (ValueError, OSError, RuntimeError) as problem:
        print(f"{parser.prog}: {problem}", file=sys.stderr)
        return 2


def _asked(arguments: list[str]) -> str:
    """A command as it was given, without the class folder."""
    rest = list(arguments)
    if "--root" in rest:
        del rest[rest.index("--root") : rest.index("--root") + 2]
    return shlex.join(rest)


def _note(given, why: str) -> None:
    """Keep who changed which marks, before a command begins (by other ways) and after it."""
    only_says = getattr(given, "preview", False) or not getattr(given, "yes", True)
    aside = given.command in (
        "take-in",
        "report",
        "alike",
        "replay",
        "inventory",
        "certificate",
        "gradescope",
    )
    if not (only_says or aside):
        from . import history

        if (count := history.note(given.root, why or history.ELSEWHERE, given.db)) and why:
            print(f"{count} changes of marks are in {given.root / history.FILE}")


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


def _say(taken) -> None:
    from .intake import printable

    for one in taken:
        if one.reason:
            text = f"{one.student or '–'}  {one.assignment or '–'}: {one.state}. {one.reason}"
            print(printable(text))


def take_in(given) -> int:
    from . import ballots, intake

    taken = intake.take_in(given.inbox, given.root, assignments.names())
    _say(taken)
    counted = Counter(one.state for one in taken)
    print(f"{len(taken)} uploads: " + (_counts(counted) or "none"))
    voted, odd = intake.take_in_votes(given.inbox, given.root)
    if voted or odd:
        print(f"{voted} votes, and {odd} files that only look like one: {ballots.report(given.root)}")
    _compare(given.root, roster.read(given.root), {one.student for one in taken if one.student})
    return 0


def _compare(root: Path, listed: roster.Roster, sent: set[str]) -> None:
    """Say who is not in the class list, who in it has sent nothing, and who is left from earlier."""
    if strangers := sorted(sent - set(listed.people)) if listed else []:
        print(
            f"Not in {roster.FILE}: {', '.join(strangers)}. Add them there, or give what they sent to the id "
            f"that they have there: `merge {strangers[0]} ID`."
        )
    from .gradebook import students

    if ghosts := sorted(set(students(root)) - set(listed.people) - sent) if listed else []:
        print(
            f"Neither in {roster.FILE} nor in the inbox, but in the tables: {', '.join(ghosts)}. "
            f"`merge {ghosts[0]} ID` gives what they have to an id, `forget {ghosts[0]}` removes it."
        )
    if missing := sorted(set(listed.people) - sent):
        print(f"Nothing in the inbox from {len(missing)} of {len(listed.people)}: {', '.join(missing)}")


def grade(given) -> int:
    from . import gradebook, intake, marking

    if given.trusted:
        print(
            "Without a sandbox, a notebook can read, change and send whatever you can. Go on only with "
            "notebooks that you wrote yourself.",
            file=sys.stderr,
        )
    gradebook.prepare(given.root, {name: assignments.path(name) for name in given.assignments}, given.db)
    preview, failed = getattr(given, "preview", False), 0
    zone, dates = rules.dates(given.root, assignments.names())
    if zone and given.zone not in (None, zone):
        raise ValueError(f"{rules.DUE} says that the zone is {zone}: change it there, or leave out --zone")
    given.zone = zone or given.zone
    for name in given.assignments:
        for question, (theirs, ours) in gradebook.other_points(given.root, name).items():
            print(
                f"{name}: {question} gives {theirs:g} points, as its notebook says; in the course, {ours:g}."
            )
        own = dates.get(name, {})
        if own and given.due:
            raise ValueError(f"{rules.DUE} says when {name} is due: change it there, or leave out --due")
        asked, due = _rules(given, name, own), own.get("", given.due)
        _say(intake.adopt(given.root, name))  # what nbgrader collected, as it was sent
        with tqdm(desc=name, unit="submission", total=0) as bar:

            def show(done, total=None, bar=bar):
                bar.total = total or bar.total
                bar.n = done
                bar.refresh()

            fresh = marking.mark_all(
                given.root,
                name,
                workers=given.workers,
                scheduler=given.scheduler,
                trusted=given.trusted,
                again=given.again,
                preview=preview,
                progress=show,
            )
        if old := sum(one["checks_version"] not in ("", marking.version(name)) for one in fresh):
            print(
                f"{name}: {old} of {len(fresh)} were marked by another version of the checks; these marks "
                "stay. `--again` marks all by this one; with `--preview`, it says what would change."
            )
        marks = gradebook.load_marks(given.root, name) | {one["student"]: one for one in fresh}
        changed = gradebook.changes(given.root, name, marks, asked, due=due, db=given.db)
        _say_changes(name, changed)
        if preview:
            print(f"{name}: nothing was entered. Without --preview, the same command enters it.")
            continue
        rules.save(given.root, name, asked)
        for student, reason in gradebook.merge(
            given.root, name, marks, due=due, rules=asked, db=given.db
        ).items():
            marks[student] |= {"state": "grader error", "reason": reason}
        counted = Counter(one["state"] for one in marks.values())
        counted["not handed in"] = len(set(roster.read(given.root).people) - set(marks))
        print(f"{name}: " + (_counts(+counted) or "nothing yet"))
        if late := [one for one in marks if gradebook.unseen(given.root, name, one)]:
            new = ", ".join(gradebook.added(given.root, name))
            print(
                f"{name}: {new} came later than the notebook of {', '.join(late)}. No 0 is entered there: it "
                "waits for your mark."
            )
        pages = [row for row in changed if (given.root / "feedback" / row["student"] / name).exists()]
        if pages and given.command != "all":
            print(
                f"{name}: {len(pages)} pages in feedback/ show the points from before: run `feedback {name}`"
            )
        failed += _say_errors(marks)
    return failed


def _say_errors(marks: Mapping[str, Mapping]) -> int:
    """Name those whose marks are missing through no fault of theirs; returns how many there are."""
    errors = {student: one["reason"] for student, one in marks.items() if one["state"] == "grader error"}
    for student, reason in errors.items():
        print(f"  {student}: {reason}", file=sys.stderr)
    return len(errors)


def _rules(given, name: str, dates: Mapping[str, datetime.datetime]) -> rules.Rules:
    """The rules of an exercise with what is asked for now; ValueError for what does not fit.

    Its dates are said as they were understood.
    """
    from . import gradebook

    kept = rules.load(given.root, name)
    if (given.extend or given.drop or given.give or given.restore) and len(given.assignments) != 1:
        raise ValueError(
            "--extend, --drop, --give and --restore are for one exercise: name it, as in "
            f"`grade {name} --extend ben 3d`. Who always has more time has it in {roster.FILE}"
        )
    for student, time in given.extend:
        known = gradebook.students(given.root)
        if student not in known:
            near = " or ".join(difflib.get_close_matches(student, known, 3, 0.4))
            raise ValueError(
                f"there is no student {student!r}"
                + (f"; is it {near}?" if near else f" among those who have handed in, nor in {roster.FILE}")
            )
        clock.length(time)  # or it says what is allowed
        kept = replace(kept, extensions={**kept.extensions, student: time})
    if given.zone:
        kept = replace(kept, zone=given.zone)
    groups = {group: when.isoformat() for group, when in dates.items() if group}
    kept = replace(kept, groups=groups)
    if strangers := sorted(groups.keys() - {one.group for one in roster.read(given.root).people.values()}):
        raise ValueError(
            f"{rules.DUE}: {name} names the group {strangers[0]!r}, which {roster.FILE} does not"
        )
    for group, when in ({"": given.due} if given.due else dates).items():
        said = clock.words(clock.utc(when, clock.zone(kept.zone)), kept.zone)
        print(f"{name}{f', group {group}' if group else ''} is due on {said}.")
    if given.late_per_day is not None:
        kept = replace(kept, late_per_day=given.late_per_day)
    if given.part_of_day:
        kept = replace(kept, part_of_day=given.part_of_day)
    known = gradebook.coded_questions(given.root, name)
    return kept.with_questions(known, given.drop, given.give, given.restore)


def _say_changes(name: str, changed: list[dict]) -> None:
    """Whose points change, and why, before anything is entered."""
    from .reports import points

    if changed:
        print(f"{name}: points that stand in the gradebook change for {len(changed)}:")
    for row in changed:
        why = ", ".join(
            f"{what} {points(old)} → {points(new)}" for what, (old, new) in row["because"].items()
        )
        print(f"  {row['student']}: {points(row['before'])} → {points(row['after'])} ({why})")


def feedback(given) -> int:
    from . import gradebook, reports

    for name in given.assignments:
        _say_errors(gradebook.load_marks(given.root, name))
        pages = reports.feedback(given.root, name, given.db)
        print(f"{name}: {len(pages)} pages in {given.root / 'feedback'}")
        for path, count in reports.archives(given.root, name, pages).items():
            print(f"{path}: {count} of them, to be uploaded as it is")
    return 0


def export(given) -> int:
    from . import reports

    path = reports.export(given.root, given.db, getattr(given, "questions", False))
    beside = sorted(each.name for each in path.parent.glob("*.csv") if each != path)
    print(f"{path}, and beside it {', '.join(beside)}")
    return 0


def report(given) -> int:
    from . import gradebook, overview, reports

    for name in given.assignments:
        _say_errors(gradebook.load_marks(given.root, name))
        print(reports.report(given.root, name, given.db))
        if (given.root / "nbgrader_config.py").exists():  # before, there are marks alone
            print(overview.write(given.root, name, given.db))
    marked = [name for name in assignments.names() if (given.root / "marks" / name).is_dir()]
    print(reports.trend(given.root, marked))
    return 0


def written(given) -> int:
    from . import written as answers

    for name in given.assignments:
        if given.enter:
            print(f"{name}: {len(answers.enter(given.root, name, given.db))} marks and comments were entered")
        for line in answers.outdated(given.root, name, given.db):
            print(f"{name}: {line}")
        *pages, table = answers.write(given.root, name, given.db)
        print(f"{table}, and beside it {', '.join(page.name for page in pages)}")
    return 0


def alike(given) -> int:
    from . import reports

    for name in given.assignments:
        print(reports.alike(given.root, name))
    return 0


def replay(given) -> int:
    from . import intake, marking

    (name,) = _assignments(given.root, [given.assignment])
    known = [question.name for question in marking.questions.load(assignments.number(name))]
    if strangers := sorted(set(given.questions) - set(known)):
        raise ValueError(f"{strangers[0]!r} is no coded question of {name}; there are {', '.join(known)}")
    seeds, marks = marking.replay(given.root, name, given.student, given.seed, given.trusted)
    print(f"{name}, {given.student}: {marks['state']}. {marks['reason']}".strip())
    for question in given.questions or known:
        found = marks["questions"].get(question, {"kind": "none", "text": "No verdict."})
        text = f"  {question} (seed {seeds[question]}): {found['kind']}. {found['text']}"
        print(intake.printable(text))
    return 0


def appeal(given) -> int:
    from . import history
    from .reports import points

    _assignments(given.root, [given.assignment])
    asked = given.assignment, given.student, given.question
    before, after = history.appeal(
        given.root, *asked, given.answer, given.says, points=given.points, db=given.db
    )
    print(f"{given.student}, {given.question}: {points(before)} → {points(after)}. Run feedback and export.")
    return 0


def gradescope(given) -> int:
    from . import gradescope as autograder

    (name,) = _assignments(given.root, [given.assignment])
    print(f"{autograder.write(given.root, name, given.trusted)}: upload it as it is.")
    return 0


def merge(given) -> int:
    from . import people

    lines = people.merge(given.root, given.old, given.new, given.yes, given.db)
    return _say_plan(given, lines, "grade, feedback and export show it.")


def forget(given) -> int:
    from . import people

    lines = people.forget(given.root, given.student, given.yes, given.db)
    beside = (
        "What lies in the inbox is yours to remove; exports, reports and pages follow when they are made."
    )
    return _say_plan(given, lines, beside)


def _say_plan(given, lines: list[str], afterwards: str) -> int:
    print("\n".join(f"  {line}" for line in lines))
    print(f"This was done. {afterwards}" if given.yes else "Nothing was done. With --yes, this is done.")
    return 0


def inventory(given) -> int:
    from . import reports

    print(reports.inventory(given.root, given.logs))
    return 0


def certificate(given) -> int:
    from course import certificate as made

    from . import gradebook, marking, reports

    if given.check:
        wrong = made.altered(given.check, marking.secret_of(given.root))
        print("\n".join(wrong) or f"{given.check} was made by this class, and is unchanged.")
        return int(bool(wrong))
    if given.student not in gradebook.students(given.root):
        raise ValueError(f"there is no student {given.student!r}; `certificate STUDENT` needs the id")
    print(f"{reports.certify(given.root, given.student, given.db)}: open it in a browser, and print it.")
    return 0


STEPS = {
    "take-in": take_in,
    "grade": grade,
    "feedback": feedback,
    "export": export,
    "report": report,
    "written": written,
    "alike": alike,
    "replay": replay,
    "inventory": inventory,
    "certificate": certificate,
    "appeal": appeal,
    "gradescope": gradescope,
    "merge": merge,
    "forget": forget,
}

if __name__ == "__main__":
    sys.exit(main())
