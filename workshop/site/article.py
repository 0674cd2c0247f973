"""A notebook as an article: what its cells are for somebody who reads and does not run them.

The notebook stays the only source. What a cell is follows from its tags, its code and its outputs
(:func:`part`), and decides whether its code is shown, folded below what it gives, or left out.
"""

import ast
import html
import json
import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course.lesson.claims import VERDICTS
from course.verdicts import HOLDS, IDENTITY
from tutorial_lib.language import _

CALLS = {
    "question": r"(?:lesson\.(?:predict|concept_check|warm_up|inventory)|museum\.(?:visit|gallery))\(",
    "turn": r"lesson\.your_turn\(",
    "check": r"(?:check\.\w+|lesson\.progress)\(",
}

WORTH = re.compile(r"^(## \S+ · .*\S) ?[(（]([^()（）]*\d[^()（）]*)[)）]$", re.M)
"""The heading of an exercise's question, and what it is worth."""
DEFINED = re.compile(r"^(?:def|class) (\w+)", re.M)


def part(cell: dict) -> str:
    """What a code cell is for a reader:

    - ``toy``: an explorer, or lanes that learn. ``question``: a prediction, a warm-up, a concept check, the
      inventory, an exhibit of the bug museum. They speak for themselves, so their code says nothing.
    - ``answer``: what is measured after a prediction. ``claims``: the table of verdicts. ``figure``: it
      draws, and defines nothing that later text is about. What they give comes first, then their code.
    - ``tools``, more than three imports, and ``conditions``: what the lesson, or its claims, need; folded
      below what their first line calls them.
    - ``turn``: a blank, or what is to be repaired. ``check``: a call that judges what stands there, in an
      exercise, or tells what the reader has done.
    - ``trial``: long code of an exercise that prints; what it prints is seen in the notebook alone.
    - ``code``: to be read as it stands, but for lines at its end that draw (:func:`apart`).
    """
    source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
    outputs = cell.get("outputs", [])
    if "reveal" in tags:
        return "answer"
    if any("live" in output.get("metadata", {}) for output in outputs):
        return "toy"
    if any(tag.startswith("answer:") for tag in tags):
        return "turn"
    for name, call in CALLS.items():
        if re.search(rf"^(?:\w+ = )?{call}", source, re.M):
            return name
    drawn = _drawn(cell)
    if "hide-input" in tags or "lesson.Claims(" in source:
        if any("<table" in _html(output) for output in outputs):
            return "claims"
        return "conditions" if "lesson.Claims(" in source else "figure" if drawn else "tools"
    if len(re.findall(r"^(?:import|from) ", source, re.M)) > 3 or "import checks as check" in source:
        return "tools"
    if not outputs and source.count("\n") > 4 and re.search(r"^ *print\(", source, re.M):
        return "trial"
    return "figure" if drawn and not DEFINED.search(source) else "code"


def worth(source: str) -> str:
    """What a question is worth stands below its heading, and not in it, nor in the list of contents.

    >>> print(worth("## 1 · Slopes (★, 4 points)"))
    ## 1 · Slopes
    <BLANKLINE>
    <p class="course-worth">★, 4 points</p>
    """
    return WORTH.sub(r'\1\n\n<p class="course-worth">\2</p>', source)


def put_below(cells: list[dict]) -> None:
    """In a side quest a picture comes first: what defines and draws it is folded, and what only trains.

    Not if the text above speaks of the code.

    >>> cells = [{"source": text, "cell_type": kind, "metadata": {}, "outputs": []} for kind, text in (
    ...     ("markdown", "Here is a task."), ("code", "def learned():\\n    train(1)"), ("code", "learned()"),
    ...     ("markdown", "Her class:"), ("code", "class Hers:\\n    rate = train(2)"))]
    >>> put_below(cells)
    >>> [cell["metadata"].get("tags") for cell in cells]
    [None, ['hide-input'], None, None, None]
    """
    for before, cell, after in zip(cells, cells[1:], [*cells[2:], {}], strict=False):
        source, above = ("".join(each["source"]) for each in (cell, before))
        if cell["cell_type"] != "code" or not DEFINED.search(source) or above.endswith((":", "：")):
            continue
        only = not cell["outputs"] and ("train(" in source or _drawn(after))
        if part(cell) == "code" and (only or _drawn(cell)):
            cell["metadata"].setdefault("tags", []).append("hide-input")


def fit(cell: dict) -> None:
    """Change a code cell of a notebook in place: what is folded, and code that goes below."""
    kind, source = part(cell), "".join(cell["source"])
    tags, options = (
        cell["metadata"].setdefault(name, empty) for name, empty in (("tags", []), ("mystnb", {}))
    )
    cell["source"] = re.sub("\n{3,}", "\n\n", source)
    named = re.match("# (.+)[:：]", source)  # what the cell is, and that it is to be run or opened
    first = source.split("\n")[0]
    more = re.sub("^# [^:：]*[:：] ?(.)", lambda found: found[1].upper(), first).rstrip("。.")
    asked = (_("Show the answer"), _("Hide it again"))
    folded = {
        "answer": asked if "reveal(" in source else (more, more),
        "tools": (named[1] if named else _("Set-up code"),) * 2,
        "conditions": (_("The conditions of the claims"),) * 2,
        "trial": (_("To run in the notebook"),) * 2,
    }
    if kind in folded:
        options["code_prompt_show"], options["code_prompt_hide"] = folded[kind]
    if kind == "turn":  # the call that looks at the reader's code says nothing here
        cell["source"] = re.sub(r"^\w+ = lesson\.your_turn\(.*\n?", "", cell["source"], flags=re.M).strip()
        tags.append("course-turn")
    if kind == "check":
        tags.append("remove-input")
        says = checked(source)
        cell["outputs"] = [
            {"output_type": "display_data", "metadata": {}, "data": {"text/html": says}}
        ] * bool(says)
    if kind == "answer":
        tags.append("hide-cell")  # one thing to open
    elif kind in folded and "hide-input" not in tags:
        tags.append("hide-input")
    for output in cell.get("outputs", []):
        if kind == "claims" and "<table" in _html(output):
            output["data"] = {"text/html": claims(_html(output))}
        if kind == "turn" and _html(output):  # it says what became of the reader's code; here there is none
            output["data"]["text/html"] = re.sub("^<p>.*?</p>", "", _html(output))
    if kind in ("toy", "question", "answer", "claims", "figure"):
        tags[:] = [tag for tag in tags if tag != "hide-input"] + ["remove-input"]
    if kind == "code" and _drawn(cell):
        cell["source"], source = apart(cell["source"])
        kind = "figure" if source else kind
    if kind in ("answer", "claims", "figure"):
        data = {"text/html": below(source, kind)}
        cell["outputs"].append({"output_type": "display_data", "metadata": {}, "data": data})


def apart(source: str) -> tuple[str, str]:
    """What a cell computes, and the lines at its end that draw it and say it, if it has both.

    >>> apart("x = 2\\n\\nfig = plots.lines([1], {'': [x]})\\nplots.show(fig, 'A line.')")
    ('x = 2', "fig = plots.lines([1], {'': [x]})\\nplots.show(fig, 'A line.')")
    >>> apart("print(2)")
    ('print(2)', '')
    """
    lines, starts = source.split("\n"), [node.lineno - 1 for node in ast.parse(source).body]
    first = next((n for n in starts if re.match(r"(?:[\w, ()]+ = )?plots\.", lines[n])), 0)
    drawn = "\n".join(lines[first:])
    if not first or DEFINED.search(drawn):
        return source, ""
    return "\n".join(lines[:first]).rstrip(), drawn


def checked(source: str) -> str:
    """What a page says where a notebook has the check of an answer; nothing of its progress."""
    if "check.progress(" in source:
        return ""
    if "check.model_answer(" in source:
        says = _("In the notebook: a model answer to compare with")
    elif "lesson.progress(" in source:
        says = _("In the notebook: a table of what you have done")
    else:
        says = _("The notebook checks this cell.")
    return f'<p class="course-note">{says}</p>'


def below(source: str, kind: str) -> str:
    """Code to be opened; a first line that says to run it says nothing here."""
    says = {
        "answer": _("The code that measures it"),
        "claims": _("The code that judges"),
        "figure": _("The code of this figure"),
    }
    source = re.sub(r"^#.*\n", "", source) if kind != "figure" else source
    return f'<details class="course-code"><summary>{says[kind]}</summary>{coloured(source)}</details>'


def coloured(source: str) -> str:
    """Python as Sphinx has it, for light.py."""
    return f'<div class="highlight-python">{highlight(source, PythonLexer(), HtmlFormatter())}</div>'


def claims(table: str) -> str:
    """The table of claims as cards: it is too wide for a phone, and a card has room for its sentence."""
    heads = re.findall("<th[^>]*>(.*?)</th>", table)
    cards = []
    for row in re.findall("<tr>(.*?)</tr>", table, re.S)[1:]:
        claim, verdict, *rest = re.findall("<td[^>]*>(.*?)</td>", row, re.S)
        sign, word = html.unescape(verdict).partition(":")[0].split(" ", 1)
        word = HOLDS if word in (IDENTITY, _(IDENTITY)) else word
        more = "".join(
            f"<p><b>{head}:</b> {text}</p>"
            for head, text in zip(heads[2:], rest, strict=True)
            if text.strip()
        )
        found = f'<p class="verdict">{verdict}</p>{more}'
        asked = {
            "question": claim,
            # a lesson that did not run in the page's language has its verdicts in English
            "choices": [[_(each), _(each), word in (each, _(each)), found] for each in VERDICTS],
        }
        cards.append(
            f'<div class="course-claim" data-sign="{sign}" data-key="claim {claim}"'
            f' data-check="{html.escape(json.dumps(asked, ensure_ascii=False))}">'
            f'<p class="claim">{claim}</p>{found}</div>'
        )
    return f'<div class="course-claims">{"".join(cards)}</div>'


def _drawn(cell: dict) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


def _html(output: dict) -> str:
    return "".join(output.get("data", {}).get("text/html", ""))
