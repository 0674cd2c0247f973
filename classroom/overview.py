"""One page for a class and an exercise, to begin the next lesson with: what failed, how, and for whom.

It names students, so it is for the teacher alone. `reports.report` has such numbers without names.
"""

from __future__ import annotations

import ast
import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from course import files

from . import assignments, ballots, gradebook, items, reports

EMPTY = ("stub", "none", "missing")  # kinds of verdicts on what was not answered
STYLE = """<style>
body { max-width: 72rem }
.lead { font-size: 1.15rem; padding-left: 1.2rem }
.lead li { margin: .4rem 0 }
.bars { display: grid; grid-template-columns: max-content 1fr; gap: .5rem .8rem; align-items: center }
.bar { display: flex; min-width: 0; border: 1px solid #767676; border-radius: 4px; overflow: hidden }
.bar span { flex: 1 1 0; min-width: 1.6rem; padding: .15rem .4rem; font-size: .85rem; line-height: 1.3;
  overflow: hidden; overflow-wrap: anywhere; border-right: 2px solid #fff }
.right { background: #0a6b4f; color: #fff } .known { background: #f6c9a8 } .other { background: #e3e3e3 }
.empty { background: repeating-linear-gradient(45deg, #fff 0 6px, #ececec 6px 8px) }
.who td { text-align: center; white-space: nowrap } .who { display: block; overflow-x: auto }
.who th[scope="row"] { white-space: nowrap }
.vote { box-sizing: border-box; padding: 0 .4rem; min-width: 5rem; font-size: .85rem }
.some { background: #cfe8df } .first { background: #9db8d2 } .second { background: #0b3d5c; color: #fff }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem }
pre { border-left: 4px solid #767676; padding-left: 1rem; font-size: .9rem }
@media (max-width: 40rem) {
  .bars { grid-template-columns: 1fr } .bars > .bar { margin-bottom: .5rem; flex-wrap: wrap }
  .bar span { min-width: 6rem } }
</style>"""


def write(root: Path, assignment: str, db: str | None = None) -> Path:
    """Write ``report/<assignment>/class.html``, and ``class.csv`` beside it; returns the path of the page."""
    root = Path(root)
    with gradebook.gradebook(root, db) as book:
        rows = [row for row in reports._rows(root, book) if row["assignment"] == assignment]
    verdicts = items._graded(gradebook.load_marks(root, assignment))
    asked = gradebook.coded_questions(root, assignment)
    folder = root / "report" / assignment
    names = list(dict.fromkeys(name for row in rows for name in row["answers"]))
    table = [row | {name: row["answers"].get(name, (None, 0))[0] for name in names} for row in rows]
    columns = ("student", "name", "group", "state", *names, "late penalty", "total", "max")
    files.replace(folder / "class.csv", reports.table(columns, table).encode("utf-8-sig"))
    body = [
        STYLE,
        f"<h1>{html.escape(assignment)}: the class</h1>",
        "<p>This page names students: it is for you.</p>",
        "<h2>Three sentences to begin with</h2>",
        _list(list(sentences(asked, verdicts, len(rows)))[:3]),
        "<h2>What went wrong, and how</h2>",
        f'<div class="bars">{"".join(_bar(name, verdicts) for name in asked)}</div>',
        *_worth_showing(root, assignment, asked, verdicts),
        *_votes(root, assignments.number(assignment)),
        "<h2>Who has what</h2>",
        _who(rows, names),
        "<p>As tables: class.csv, questions.csv, written.csv and misconceptions.csv, beside this page.</p>",
    ]
    page = reports.PAGE.format(title=html.escape(f"{assignment}: the class"), body="\n".join(body))
    files.replace(folder / "class.html", page.encode("utf-8", "replace"))
    return folder / "class.html"


def sentences(asked: Sequence[str], verdicts: Mapping[str, Mapping], students: int) -> Iterator[str]:
    """What to say first: what went well, the mistake that most share, and what stayed empty."""
    marked = {name: [own[name] for own in verdicts.values() if name in own] for name in asked}
    counted = {name: sum(bool(one.get("passed")) for one in found) for name, found in marked.items() if found}
    if not counted:
        yield "Nothing has been marked yet."
        return
    best = max(counted, key=lambda name: (counted[name] / len(marked[name]), -asked.index(name)))
    worst = min(counted, key=lambda name: (counted[name] / len(marked[name]), asked.index(name)))
    if counted[best]:
        yield f"{counted[best]} of {len(marked[best])} have {best} right: begin with what went well."
    if held := items.beliefs(
        {student: {"state": "graded", "questions": own} for student, own in verdicts.items()}
    ):
        first = held[0]
        again = Counter(
            str(one["reread"])
            for own in verdicts.values()
            for one in own.values()
            if one.get("name") == first["misconception"] and one.get("reread")
        )
        where = f" Read again: {again.most_common(1)[0][0]}." if again else ""
        share = "shares" if first["students"] == 1 else "share"
        said = f"“{first['misconception']}”, in {first['question']}"
        yield f"{first['students']} {share} a mistake: {said}.{where}"
    if counted[worst] < len(marked[worst]) and worst != best:
        found = f"{counted[worst]} of {len(marked[worst])} have it right"
        yield f"{worst} is the hardest: {found}. Do it at the board."
    left = Counter({name: sum(one.get("kind") in EMPTY for one in found) for name, found in marked.items()})
    if +left:
        name, count = left.most_common(1)[0]
        yield f"{count} left {name} empty. Ask what kept them: time, or the first step?"
    if students > len(verdicts):
        yield f"{students - len(verdicts)} of {students} have nothing that could be marked."


def _list(texts: Sequence[str]) -> str:
    return f'<ol class="lead">{"".join(f"<li>{html.escape(text)}</li>" for text in texts)}</ol>'


def _bar(question: str, verdicts: Mapping[str, Mapping]) -> str:
    """A question as a bar: right, each mistake by its name, other mistakes, no answer."""
    found = [own[question] for own in verdicts.values() if question in own]
    right = sum(bool(one.get("passed")) for one in found)
    wrong = [one for one in found if not one.get("passed")]
    named = Counter(str(one["name"]) for one in wrong if one.get("name"))
    empty = sum(one.get("kind") in EMPTY for one in wrong if not one.get("name"))
    parts = [("right", right, "right"), *(("known", count, name) for name, count in named.most_common())]
    parts += [("other", len(wrong) - empty - named.total(), "wrong otherwise"), ("empty", empty, "no answer")]
    pieces = "".join(
        f'<span class="{kind}" style="flex-grow: {count}">{count} {html.escape(said)}</span>'
        for kind, count, said in parts
        if count
    )
    return (
        f'<div>{html.escape(question)}</div><div class="bar">{pieces or "<span>nothing marked</span>"}</div>'
    )


def _worth_showing(
    root: Path, assignment: str, asked: Sequence[str], verdicts: Mapping[str, Mapping]
) -> Iterator[str]:
    """Two answers to one question, without names: one with the mistake that most made, and a right one."""
    pairs = Counter(
        (name, str(own[name]["name"]))
        for name in asked
        for own in verdicts.values()
        if name in own and own[name].get("name") and not own[name].get("passed")
    )
    for (question, mistake), _count in pairs.most_common():
        theirs = {student: own[question] for student, own in verdicts.items() if question in own}
        made = [student for student, one in theirs.items() if one.get("name") == mistake]
        wrong = _shortest(root, assignment, question, made)
        right = _shortest(root, assignment, question, [one for one in theirs if theirs[one].get("passed")])
        if wrong and right and wrong != right:
            yield f"<h2>Two answers worth showing: {html.escape(question)}</h2>"
            yield "<p>Without names and comments. Let the class find which one is right, and why.</p>"
            yield f'<div class="pair"><div><h3>A</h3><pre>{html.escape(wrong)}</pre></div>'
            yield f"<div><h3>B</h3><pre>{html.escape(right)}</pre></div></div>"
            yield f"<details><summary>Which?</summary><p>B is right. A: {html.escape(mistake)}.</p></details>"
            return


def _shortest(root: Path, assignment: str, question: str, students: Sequence[str]) -> str:
    """The shortest of the students' answers, without comments and the task's text; "" where there is none."""
    found = []
    for student in students:
        shown = gradebook.marked_copy(root, assignment, student, {"state": "graded"})
        code = next((one.source for one in shown.cells if gradebook._id(one) == question), "")
        found.append(_bare(code))
    return min(filter(None, found), key=lambda code: (len(code), code), default="")


def _bare(code: str) -> str:
    """Code without comments and docstrings; as it is where Python can't read it."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _votes(root: Path, number: str) -> Iterator[str]:
    """What the class thought before, of the lesson's predictions: both votes side by side."""
    from course.lesson import questions, votes
    from course.lesson.predictions import plain

    folder = root / ballots.FOLDER
    keys = {match[1] for file in folder.glob("vote-*") if (match := votes.NAME.fullmatch(file.name))}
    own = [key for key in sorted(keys) if key.startswith(f"{number}.") and votes.known(key)]
    if own:
        yield "<h2>What they thought before</h2>"
    for key in own:
        yield f"<p>{html.escape(plain(questions.find('predict', key)['question']))}</p>"
        yield '<div class="bars">'
        shown = votes.rows(key, votes.gather(key, folder))
        most = max((count for row in shown for count in row[1:3] if count), default=1)
        for words, *counts, _ in shown:
            bars = "".join(
                f'<div class="vote {kind}" style="width: {100 * count / most:.0f}%">{count} {kind}</div>'
                for kind, count in zip(("first", "second"), counts, strict=True)
                if count
            )
            yield f"<div>{html.escape(words)}</div><div>{bars or '–'}</div>"
        yield "</div>"


def _who(rows: Sequence[Mapping], names: Sequence[str]) -> str:
    """A row for each student, a cell for each question."""

    def cell(score: float | None, most: float) -> str:
        share = None if score is None else score / most if most else float(bool(score))
        kind = "empty" if share is None else "right" if share >= 1 else "some" if share > 0 else "known"
        return f'<td class="{kind}">{reports.points(score)}</td>'

    titles = ("", *(name.removeprefix("explain_").replace("_", "_<wbr>") for name in names), "total")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    lines = []
    for row in rows:
        cells = "".join(cell(*row["answers"].get(name, (None, 0))) for name in names)
        total = f"{reports.points(row['total'])} of {reports.points(row['max'])}"
        note = "" if row["state"] == "graded" else f" ({html.escape(row['state'])})"
        lines.append(f'<tr><th scope="row">{html.escape(row["name"])}{note}</th>{cells}<td>{total}</td></tr>')
    return f'<table class="who"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
