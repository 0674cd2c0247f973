"""A page for each method, made from what its file says (``METHODS``), the records and the reading list.

Nothing on these pages is copied by hand: equations are those of the docstrings, code is the library's own,
numbers are the scoreboard's. ``python workshop/site/methods.py rope`` prints the text of one page.
"""

import argparse
import ast
import base64
import functools
import html
import inspect
import io
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import editions
import figure
import ideas
import numpy as np
import torch
from forest import Axis, minus, signed
from PIL import Image, ImageColor

import results
from course import atlas, experiments
from course.experiments import cost as costs
from course.experiments import lengths
from course.experiments.scoreboard import LARGE, MEASURES, exact, shown
from course.experiments.statistics import Interval
from tutorial_lib import encodings
from tutorial_lib.attention import scores
from tutorial_lib.encodings.method import Method
from tutorial_lib.encodings.registry import METHODS as EVERY
from tutorial_lib.encodings.registry import doors, told
from tutorial_lib.explorers import live
from tutorial_lib.explorers.scoreboard import rows
from tutorial_lib.language import ENGLISH, _
from workshop import documents, navigation
from workshop.names import METHODS, called, on_board, short

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMES = [f"methods/{name}" for name in METHODS]
HEADS, WIDTH, SIDE = 4, 16, 6
LENGTH = SIDE**2
HIDDEN = ("t5", "alibi", "fire", "xpos", "cope", "forgetting", "query-bias")
"""Pages of what is for decoders alone, as its module says or as the page builds it: keys ahead are hidden."""

MOST, BETTER, NEAREST = 6, 2, 5
"""Claims that stand open on a page; on a phone, the next that read better, and the nearest others."""

KINDS = {
    **{"base": "none", "learned": "learned"},
    **dict.fromkeys(("sinusoidal", "fusion"), "sinusoidal"),
    **dict.fromkeys(("hybrid", "deberta"), "hybrid"),
    **dict.fromkeys(("rotary", "xpos", "scaling", "axial", "pope", "lerope"), "rope"),
    **dict.fromkeys(("alibi", "kerple", "sandwich", "forgetting"), "alibi"),
}
"""The colour of a method's marks (``--rope`` of course.css), by its module; what is not here is relative."""
TONES = dict(
    re.findall(r"--([a-z]+): light-dark\((#\w+),", (HERE / "static/course.css").read_text(encoding="utf-8"))
)
"""These colours on white."""

FAMILIES = {
    "relative": _("by distance"),
    "rope": _("turned"),
    "alibi": _("by decay"),
    "sinusoidal": _("sinusoids"),
    "learned": _("a table of positions"),
    "hybrid": _("several at once"),
    "none": _("no positions"),
}
"""What methods of one colour have in common, in two words."""

UNITS = {
    "none": _("nothing"),
    "embed": _("the token vectors"),
    "rotate": _("queries and keys"),
    "content_bias": _("the raw scores"),
    "bias": _("the scaled scores"),
    "values": _("the output"),
}
PLACES = {
    "embed": (_("Token vectors"), "x + p", "position-enters-the-token-vectors"),
    "rotate": (_("Queries and keys"), "R q · R k", "position-enters-queries-and-keys"),
    "content_bias": (_("Raw scores"), "q · k + …", "position-enters-the-raw-scores"),
    "bias": (_("Scaled scores"), "q · k / √d + b", "position-enters-the-scaled-scores"),
    "none": (_("Nowhere"), "q · k", "position-stays-out"),
}
"""The same places as headings, in the order in which attention comes to them; what is done there; anchors."""


DEPENDS = {
    "cope": "how many open gates lie between",
    "forgetting": "the distance, and the words between",
    "hybrid": "distance; the rest cancels",
}
"""What a score depends on, where more is to be said than that moving all positions changes nothing."""


def document(name: str) -> str:
    """A page of ``docs/``."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def from_here(text: str) -> str:
    """Links of a page of ``docs/``, as seen from ``workshop/site/``.

    >>> from_here("[a](../notebooks/a.ipynb), [b](glossary.md), [c](#two-axes)")
    '[a](../../notebooks/a.ipynb), [b](../../docs/glossary.md), [c](../../docs/papers.md#two-axes)'
    """
    text = re.sub(r"\]\((?!https?:|#)", "](../../docs/", text).replace("docs/../", "")
    return text.replace("](#", "](../../docs/papers.md#")


# ---- from the library ----
def code(page: Method) -> str:
    """The source of functions and methods, the latter below the line of their class."""
    parts, opened = [], None
    for source in (inspect.unwrap(each) for method in told(page) for each in method.code):
        lines = computing(inspect.getsource(source))
        owner = source.__qualname__.rpartition(".")[0]
        if owner and owner != opened:
            kind = getattr(sys.modules[source.__module__], owner)
            opening = next(line for line in inspect.getsource(kind).splitlines() if line.startswith("class "))
            lines = f"{opening}\n{lines}"
        parts.append(lines)
        opened = owner
    return "\n\n".join(parts)


def computing(source: str) -> str:
    r"""A function without documentation, and without what only checks and raises.

    >>> print(computing("def f(x):\n    'Twice.'\n    if x < 0:\n        raise ValueError\n    return 2 * x"))
    def f(x):
        return 2 * x
    """

    def needless(node: ast.AST) -> bool:
        match node:
            case ast.Expr(ast.Constant(str())) | ast.If(body=[*_, ast.Raise()], orelse=[]):
                return True
            case ast.Expr(ast.Call(ast.Name(name) | ast.Attribute(attr=name))):
                return name.lstrip("_").startswith("check")
        return False

    gone = {
        line
        for node in ast.walk(ast.parse(textwrap.dedent(source)))
        if needless(node)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    kept = "\n".join(line for n, line in enumerate(source.splitlines(), 1) if n not in gone)
    return re.sub(r"(:\n)\n+", r"\1", kept).rstrip()


def equations(page: Method) -> tuple[list[tuple[str, str]], str]:
    """The formulas of a method's docstring, the words after and before each, and the source in line 1."""
    doc = inspect.getdoc(page.equation or sys.modules[page.code[0].__module__]) or ""
    blocks = re.finditer(r"^\.\. math::((?:.*\n?)(?:[ \t]+.*(?:\n|$)|\n(?=[ \t]))*)", doc, re.M)
    source = re.search(r"\(([^()]*\b20\d\d[^()]*)\)", doc.partition("\n\n")[0])
    found = []
    for its in blocks:
        after = doc[its.end() :].lstrip().partition(".. math::")
        first, *more = after[0].strip().split("\n\n")
        leads = (
            more[-1:] if after[1] and more and more[-1].endswith((",", ":")) else []
        )  # to the next formula
        found.append((textwrap.dedent(its[1]).strip(), "\n\n".join([first, *leads])))
    return found, source[1] if source else ""


def equation(page: Method) -> str:
    """All formulas of a page with the words about them, and where they come from."""
    blocks, source = equations(page)
    source = page.source or source
    if page.formula or not blocks:
        formulas = [page.formula] if page.formula else page.row.formula
        blocks = [(line.strip("$"), "") for line in formulas]
    text, lines, where = "", [], page.where
    for block, words in blocks:
        block = re.sub(r"\\tag\{(.+?)\}", r"\\qquad (\1)", block)  # a tag would centre it
        number = re.search(r",?\s*\\qquad \(([^()]+)\)", block)  # at the right edge, beside the first line
        first, *more = in_lines(block.replace(number[0], "") if number else block)
        lines += [displayed(first, number[1] if number else ""), *map(displayed, more)]
        if words or (block, words) == blocks[-1]:
            text += '<div class="course-equation">\n\n' + "\n\n".join(lines) + "\n\n</div>\n\n"
            lines = []
            for said in filter(None, (where and f"Here {where}", words)):
                text += f"```{{eval-rst}}\n{indexed(said)}\n```\n\n"
            where = ""
    return f"{text}*{source[0].upper()}{source[1:].rstrip('.')}.* More: {api(page)}."


def indexed(words: str) -> str:
    r"""Words of a docstring with letters of formulas as they are in formulas.

    >>> indexed("here q_i, W^K and ``d_k``")
    'Here q\\ :sub:`i`\\ , W\\ :sup:`K` and ``d_k``'
    """
    words = re.sub(r"\bthis (file|class)\b", "the code below", words).replace("|", r"\|")
    parts = re.split(r"(``.+?``|`[^`]+`)", words)  # in code and formulas they stay
    parts[::2] = [
        re.sub(
            r"(?<![\w^])(\w)\^(\w)\b",
            r"\1\ :sup:`\2`\ ",
            re.sub(r"(?<![\w^])(\w{1,2}′?)_(?:\{(.+?)\}|([a-zθ\d]{1,2})\b)", r"\1\ :sub:`\2\3`\ ", part),
        )
        for part in parts[::2]
    ]
    said = re.sub(r"(:su[bp]:`[^`]+`)\\ (?=\s)", r"\1", "".join(parts))  # a space follows
    return re.sub(r"^[a-z](?=[a-z])", lambda its: its[0].upper(), said)


def displayed(line: str, number: str = "") -> str:
    r"""A formula as a block, and its number in the paper.

    >>> print(displayed("a = b", "3"))
    <div class="course-numbered">
    <BLANKLINE>
    ```{math}
    a = b
    ```
    <BLANKLINE>
    (3)
    <BLANKLINE>
    </div>
    """
    if line.startswith(r"\begin{aligned}"):
        line = rf"\hspace{{-0.3em}}{line}"  # MathJax indents a table
    if "frac{" in line:  # in a table it would be small, and lines too near
        line = re.sub(r"\\[td]?frac", r"\\dfrac", line)
        line = line if "cases" in line else line.replace(r"\\ ", r"\\[.5em] ")
    block = f"```{{math}}\n{line}\n```"
    return f'<div class="course-numbered">\n\n{block}\n\n({number})\n\n</div>' if number else block


def in_lines(block: str) -> list[str]:
    r"""The equations of a block, one to a line; one is broken where its docstring breaks it.

    >>> in_lines("a = b, \\quad\n  c = d")
    ['a = b', 'c = d']
    >>> print(*in_lines("a = b\n  + c"))
    \begin{aligned} & a = b \\ & \quad + c \end{aligned}
    """
    found = [""]
    for line in map(str.strip, block.splitlines()):
        last = found[-1]
        if documents.unclosed(last):
            found[-1] += f" {line}"
        elif not last or re.search(r"\\q?quad$", last) or re.match(r"\\q?quad", line):
            found.append(line)
        else:
            found[-1] += f"\n{line}"
    found = [re.sub(r"^\\q?quad\s*|,?(\s*\\q?quad)?$", "", line) for line in found if line]
    return [part for line in found for part in _broken(line)]


def _broken(line: str) -> list[str]:
    r"""The equations in one line of a docstring; a condition stands beside its equation, if there is room.

    >>> _broken(r"a = b \quad j < i")
    ['a = b \\qquad j < i']
    """
    if "aligned" in line:
        return [re.sub(r"\s*&&\s*", r" \\\\ & \\quad ", line)]
    parts = re.split(r",?\s*\\q?quad\b\s*(?=[^\n]*=)", line)
    parts = [re.sub(r"\s*\\q?quad\b\s*", "\n" if "\n" in part else r" \\qquad ", part) for part in parts]
    start, end, more = r"\begin{aligned} & ", r" \end{aligned}", r" \\ & \quad "
    return [start + more.join(part.split("\n")) + end if "\n" in part else part for part in parts]


def modules(page: Method) -> list[str]:
    """The modules of the code that is shown, each once."""
    names = (each.__module__.rpartition(".")[2] for method in told(page) for each in method.code)
    return list(dict.fromkeys(names))


def api(page: Method) -> str:
    return ", ".join(f"[encodings.{name}](../../tutorial_lib/encodings/{name}.py)" for name in modules(page))


LETTER = re.compile(
    r"(?<![^\W\d]|[’'`§.-])(?<!Appendix )(?<!\s\((?=\w\)))"
    r"((?!(?<=\d)B)[b-zB-HJ-ZÃ]|(?<=[a-z] )A|[α-ωΔΣ])(?![^\W²]|[’'`-]|\.\w)(′?)"
)


def letters(text: str) -> list[str]:
    """A text in pieces, of which every second is a letter of a formula.

    >>> letters("2k of the queries (b), e.g. θ′ or T5's |i − j| in a 7B")
    ['2', 'k', ' of the queries (b), e.g. ', 'θ′', " or T5's |", 'i', ' − ', 'j', '| in a 7B']
    """
    pieces, end = [], 0
    for its in LETTER.finditer(text):
        pieces += [text[end : its.start()], its[0]]
        end = its.end()
    return [*pieces, text[end:]]


# ---- from the library's words and the reading list ----
def in_a_line(text: str) -> str:
    """Words of the printed page without the breaks of its narrow columns."""
    return re.sub(r"(?<=-)\n", "", text).replace("\n", " ")


def facts(page: Method) -> str:
    """The method at a glance: a list of a few words each."""
    its, names = row(on_board(page)[0]), [door for name in on_board(page) for door in row(name)["doors"]]
    first, *more = [UNITS[door] for door in dict.fromkeys(names)] or ["nowhere"]
    places = " and ".join([first, *(each.removeprefix("the ") for each in more)])
    if len(more) > 1:
        places = f"{len(more) + 1} places, by method"
    given = {"Position enters": places}
    if page.row:
        given["Parameters"] = page.row.learns or re.sub("^0$", "none", in_a_line(page.row.parameters))
    if "shift" in its or not its["doors"]:
        depends = "where both stand" if its.get("shift", 0) > 0 else "distance alone"
        given["A score depends on"] = DEPENDS.get(page.page, depends if its["doors"] else "the tokens alone")
    if page.row:
        of, _sign, then = page.row.later.rpartition(": ")
        given[f"On {of}" if of else "Loss on longer texts"] = then or in_a_line(page.row.longer)
    items = "".join(
        f"<div><dt>{title}</dt><dd>{html.escape(text).replace('`', '')}</dd></div>"
        for title, text in given.items()
    )
    return f'```{{raw}} html\n<dl class="course-facts simple c-{kind(page.page)}">{items}</dl>\n```'


def terms(given: Iterable[tuple[str, str]]) -> str:
    """What each label stands for, as a list of two columns; what it says is Markdown."""
    parts = (f"<div><dt>{label}</dt><dd>\n\n{said}\n\n</dd></div>" for label, said in given)
    return f'<dl class="course-terms simple">\n{"".join(parts)}\n</dl>'


def cost(page: Method) -> list[tuple[str, str]]:
    """Words of the printed page, and what was measured of it: on the board, and by the kernels in use."""
    name = on_board(page)[0]
    its = row(name)
    found = [("Work", in_a_line(page.row.cost))] if page.row else []
    if "time" in its:
        said = (
            f"A pass of a small model takes {its['time']:.2f} times as long as without positions "
            f"({place_on_board('time', name)}), and holds {shown('held', its['held'])} "
            f"({place_on_board('held', name)})."
        )
        found.append(("In a model", said))
    return found + timed(name)


def timed(name: str) -> list[tuple[str, str]]:
    """What a layer of attention takes with it beside one without positions, where that was timed."""
    record = experiments.load("cost")
    if name == "none" or f"time {name}" not in record.runs[0].values:
        return []  # all others are compared with it
    first, *_more, last = record.settings["lengths"]["forward"]
    near, far = (costs.cost(record, "forward", name, length) for length in (first, last))
    heads, width = record.settings["heads"], record.settings["head_dim"]
    said = (
        f"{heads} heads of {width} channels take {near.mean:.2f} "
        f"times ({near.low:.2f} to {near.high:.2f}) as long as without positions at {first:,} tokens, and "
        f"{far.mean:.2f} times ({far.low:.2f} to {far.high:.2f}) at {last:,}, on a CPU"
    )
    if f"time {name}, dense" in record.runs[0].values:
        dense = costs.cost(record, "forward", f"{name}, dense", last)
        said += f"; handed over as a matrix, {dense.mean:.2f} times"
    said += " ([the record](../../docs/results.md#what-a-position-costs-at-run-time))."
    return [("One layer", said)]


def readings(page: Method) -> list[dict[str, str]]:
    """The entries of the reading list: what to read, to look at, what came later, where it is tested."""
    if not page.papers:
        said, link = equations(page)[1], f"[arXiv:{page.arxiv}](https://arxiv.org/abs/{page.arxiv})"
        bare = f"arXiv {page.arxiv}"
        return [{"Read": said.replace(bare, link) if bare in said else f"{said}, {link}"}]
    text = document("papers")
    entries = [
        re.search(rf"^### {re.escape(name)}\n(.*?)(?=^##)", text, re.M | re.S)[1] for name in page.papers
    ]
    return [dict(re.findall(r"^- \*\*(\w+)\*\*: (.*)$", from_here(entry), re.M)) for entry in entries]


def released(page: Method) -> list[str]:
    """What released models do with it: model, and what it does."""
    lines = re.findall(r"^\| ([^|]+) \| ([^|]+) \| .*\|$", document("released"), re.M)
    return [f"- {model}: {does}" for model, does in lines if page.released and re.search(page.released, does)]


USES = {
    "rope": ("layers turn queries and keys", {"full", "part", "both"}),
    "nope": ("some layers attend without any order", {"none", "sharp"}),
    **dict.fromkeys(
        ("learned", "sinusoidal"),
        ("positions, from a table or from sines, are added to the tokens", {"embedding"}),
    ),
    "yarn": (
        "a default scales the angles by YaRN's, Llama 3's or LongRoPE's rule",
        {"yarn", "llama3", "longrope"},
    ),
}
"""What the atlas can see of a method in a decoder: in words, and what a row of its record has then."""

KNOWN = (
    *("llama", "llama4_text", "mistral", "qwen3", "gemma3_text", "gpt_oss", "deepseek_v3", "phi3", "olmo3"),
    *("smollm3", "cohere2", "exaone4", "jamba", "gpt2", "opt", "whisper", "bart", "roberta", "bert"),
)
"""Types that are named first."""


def in_atlas(page: Method) -> str:
    """How many decoders of Transformers do it, by measurement, and which."""
    if page.page not in USES:
        return ""
    does, signs = USES[page.page]

    def seen(its: dict) -> set[str]:
        kinds = {run[1] for run in its["runs"]}
        return signs & {*kinds, *its["declared"]["scaling"], *["embedding"] * its["embedding"]}

    rows = [its for its in atlas.record()["rows"] if "runs" in its]
    names = sorted((its["type"] for its in rows if seen(its)), key=lambda name: name not in KNOWN)
    most = 12 if len(names) > 14 else 14  # nothing is folded for a name or two
    some, rest = names[:most], names[most:]
    more = results.folded(f"{len(rest)} more", ", ".join(rest)) if rest else ""
    return (
        f"In **{len(names)} of the {len(rows)}** types of decoders that [the atlas](../../docs/atlas.md) has "
        f"measured {does}: {', '.join(some)}{' …' if rest else '.'}\n\n{more}"
    ).strip()


def users(page: Method) -> list[tuple[str, str]]:
    """Who uses it: by name, by what the atlas measured, by what configurations and code say."""
    named = in_a_line(page.row.used_by) if page.row else "–"
    found = [("Used by", named)] * (named != "–")
    if measured := in_atlas(page):
        found.append(("In the atlas", measured))
    if lines := released(page):
        how = "[What released models do](../../docs/released.md), by their configuration and code:"
        found.append(("Released", "\n".join([how, "", *lines])))
    return found or [("Used by", "no released model that this course names")]


# ---- from the records ----
def ordinal(n: int) -> str:
    """
    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22, 113)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd', '113th']
    """
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def row(name: str) -> dict:
    """A row of the scoreboard; for a method that no record has yet, only what needs no training."""
    new = next((method for method in EVERY if name in method.names and not method.compared), None)
    return {"doors": doors(new)} | _exact(name) if new else rows()[name]


@functools.cache
def _exact(name: str) -> dict:
    return exact(name, experiments.load("scoreboard").settings)


def standing(column: str, name: str) -> tuple[int, int, int]:
    """How many methods of the board are better in a column, how many are worse, and how many have it."""
    sign, own = -1 if column in LARGE else 1, row(name)[column]
    more = [sign * (its[column] - own) for its in (rows() | {name: row(name)}).values() if column in its]
    return sum(x < 0 for x in more), sum(x > 0 for x in more), len(more)


def place_on_board(column: str, name: str) -> str:
    """``3rd of 31``: ties share a place."""
    better, _worse, several = standing(column, name)
    return f"{ordinal(better + 1)} of {several}"


def board(page: Method) -> str:
    """The scoreboard's numbers of a page's methods, with their places on it."""
    names = on_board(page)
    columns = [column for column in MEASURES if any(column in row(name) for name in names)]
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for column in columns:
        cells = (
            f" {shown(column, row(name)[column])} ({place_on_board(column, name)}) |"
            if column in row(name)
            else f" {shown(column, None)} |"
            for name in names
        )
        lines.append(f"| {MEASURES[column]} |{''.join(cells)}")
    how = (
        "From [the scoreboard](../../notebooks/09_which_one.ipynb#The-scoreboard), which measures all "
        "methods in the same small model; in brackets stands the place among those that have the number, "
        "with the best first. Our models are small: [how it was measured](../../docs/results.md)."
    )
    if not page.compared:
        how += " This method is newer than the lessons' comparisons, so numbers of trainings are missing."
    return f"{how}\n\n" + "\n".join(lines)


class Difference(NamedTuple):
    """How many nats more than a method another encoding loses: over seeds, with its interval."""

    name: str
    its: Interval


@functools.cache
def beside(name: str) -> dict[str, list[Difference]]:
    """All other encodings of “Train short, test long” against ``name``, the best first.

    Under ``"mean"`` at the length of training, under ``"tail"`` at 16 times that, the same last characters.
    A method that the record does not have, or not at that length, has none.
    """
    record = experiments.load("lengths")
    most, known = len(record.settings["multiples"]), record.settings["encodings"]
    known = [*known, *(f"rotary + {each}" for each in record.settings["scalings"])]

    def values(encoding: str, what: str) -> list[float]:
        runs = lengths.losses(record, encoding, what)
        return [run[0] if what == "mean" else run[-1] for run in runs if what == "mean" or len(run) == most]

    found: dict[str, list[Difference]] = {"mean": [], "tail": []}
    for what, others in found.items():
        own = values(name, what) if name in known else []
        for other in known if own else ():
            if other != name and (its := values(other, what)):
                others.append(Difference(other, lengths.difference(its, own)))
        others.sort(key=lambda one: one.its.mean)
    return found


def better(both: dict[str, list[Difference]]) -> str:
    """How many of the others surely read better, at both lengths.

    >>> rows = [Difference("a", Interval(-2, -3, -1)), Difference("b", Interval(0, -1, 1))]
    >>> better({"mean": rows, "tail": rows[1:]})
    'At the trained length L, 1 of 2 others reads better. At 16 times that length, none of 1 does.'
    """
    found = []
    for others, verbs in zip(both.values(), (("reads better", "read better"), ("does", "do")), strict=True):
        n = sum(one.its.negative for one in others)
        found.append(f"{n or 'none'} of {len(others)}{' others' * (not found)} {verbs[n > 1]}.")
    return f"At the trained length L, {found[0]} At 16 times that length, {found[1]}"


def nearby(rows: list[Difference]) -> list[Difference]:
    """Those that stand open on a phone: the next that surely read better, and the nearest of the others."""
    ahead = [one for one in rows if one.its.negative][-BETTER:]
    rest = [one for one in rows if one not in ahead]
    return ahead + sorted(rest, key=lambda one: abs(one.its.mean))[: NEAREST + BETTER - len(ahead)]


def key(known: Iterable[str] = FAMILIES) -> str:
    """What the colours mean."""
    entries = (f'<li class="c-{name}">{said}</li>' for name, said in FAMILIES.items() if name in known)
    return f'<ul class="course-key">{"".join(entries)}</ul>'


def forest(page: Method) -> str:
    """All other encodings beside the first method of a page that was trained: a table of intervals."""
    own = next((name for name in on_board(page) if beside(name)["mean"]), None)
    if own is None:
        return ""
    both, known = beside(own), {kind(one.name) for one in beside(own)["mean"]}
    switch = "".join(
        f'<label><input type="radio" name="forest" value="{what}"{checked}>{where}</label>'
        for what, checked, where in (("mean", " checked", "At L"), ("tail", "", "At 16 L"))
    )
    heads = "".join(
        f'<th scope="col" colspan="2"><b>{where}</b> <span>← better</span> <span>worse →</span></th>'
        for where in ("At the trained length L", "At 16 L")
    )
    order = sorted([*both["mean"], Difference(own, Interval(0, 0, 0))], key=lambda one: one.its.mean)
    near = {what: nearby(found) for what, found in both.items()}
    far = {name: [what for what in near if name not in {own, *dict(near[what])}] for name, _its in order}
    axes = {what: Axis.around([one.its for one in found], [0]) for what, found in both.items()}
    tail = sorted([*both["tail"], Difference(own, Interval(0, 0, 0))], key=lambda one: one.its.mean)
    place = {one.name: n for n, one in enumerate(tail)}  # its row at 16 L, where that stands alone
    lines = "".join(line(name, own, both, axes, far[name], place.get(name, 99)) for name, _its in order)
    feet = finer = ""
    for what, axis in axes.items():
        close = Axis.around([one.its for one in near[what]], [0, *(one.its.mean for one in near[what])])
        left, right = axis.at(close.low), axis.at(close.high)
        finer += f"--{what}-from:{left:.2f}%;--{what}-times:{100 / (right - left):.3f};"
        ticks = f'<span class="near">{close.ticks(2)}</span><span>{axis.ticks(2)}</span>'
        feet += f'<td class="axis">{ticks}</td><td></td>'
    return (
        f"{better(both)}\n\n```{{raw}} html\n"
        f'{key(known)}<div class="course-switch">{switch}'
        f'<label><input type="checkbox">show all {len(order) - 1}</label></div>'
        f'<table class="course-forest" style="{finer}"><thead><tr>'
        f'<th scope="col">beside {called(own)}</th>{heads}</tr>'
        f"</thead><tbody>{lines}</tbody><tfoot><tr><td></td>{feet}</tr></tfoot></table>\n```\n\n"
        f"*Loss minus that of {called(own)}, in nats per character. Lines are 95 % intervals over five seeds "
        "of one small model. The record: "
        "[Train short, test long](../../docs/results.md#train-short-test-long).*"
    )


def line(
    name: str,
    own: str,
    both: dict[str, list[Difference]],
    axes: dict[str, Axis],
    far: list[str],
    place: int,
) -> str:
    """A row of the table: for each length an interval and its mean; the method's own stands at zero.

    It says for which lengths the encoding is ``far``: none of the nearest.
    """
    cells = ""
    for what, found in both.items():
        its = Interval(0, 0, 0) if name == own else dict(found).get(name)
        mean, *ends = (signed(each, "+.2f") for each in (its.mean, its.low, its.high)) if its else ("–", "")
        title = f' title="{" to ".join(ends)}"' * (len(ends) == 2 and name != own)
        cells += f"{axes[what].track(its, tag='td')}<td{title}>{mean if name != own else 0}</td>"
    mark = " data-own" if name == own else f' data-far="{" ".join(far)}"' * bool(far)
    mark += f' style="--tail:{place}"'
    return f'<tr class="c-{kind(name)}"{mark}><th scope="row">{called(name)}</th>{cells}</tr>'


SAID = {
    "parameters": "{} parameters of its own",
    "held": "a pass holds {}",
    "time": "a pass takes {} the time of one without positions",
    "apart": "of all places it tells {} apart",
    "shift": "its scores change by {} when all positions move",
    "loss": "a loss of {} nats per character at the trained length L",
    "tail": "from L to 16 L its loss on the same last characters changes by {} nats",
    "won": "it wins {} of 5 tasks at 4 L",
}
"""The columns of the board that make a method good or bad, in words around their numbers."""


def strengths(page: Method) -> str:
    """Where the board has a page's first method among the best quarter, and where among the last."""
    name, best, last = on_board(page)[0], [], []
    for column, words in SAID.items():
        its = row(name)
        if column not in its:
            continue
        better, worse, several = standing(column, name)
        number, place = minus(shown(column, its[column])), place_on_board(column, name)
        said = f"<li><span>{words.format(number)}</span> <small>{place}</small></li>"
        if better < several / 4 < worse:
            best.append(said)
        elif worse < several / 4 and better >= several / 2:
            last.append(said)
    sides = "".join(
        f'<div data-sign="{sign}"><p>{title}</p><ul>{"".join(said)}</ul></div>'
        for title, sign, said in (("Good at", "✔", best), ("Bad at", "✘", last))
        if said
    )
    return f'```{{raw}} html\n<div class="course-sides">{sides}</div>\n```' if sides else ""


def claims(page: Method) -> str:
    """The claims that name the method in ``docs/results.md``, and their verdicts; the rest is folded."""
    found = [
        (record, claim)
        for record in results.records().values()
        for claim in record.claims
        if not claim.text.startswith(("Nor ", "From "))  # can be read without the claim before it
        and page.claims
        and re.search(page.claims, claim.text)
    ]
    if not found:
        return ""
    text = f"### Claims that were put to the test\n\n{verdict_rows(found[:MOST])}"
    if rest := found[MOST:]:
        text += "\n\n" + results.folded(f"{len(rest)} more", verdict_rows(rest))
    return text


def verdict_rows(found: list[tuple[results.Record, results.Claim]]) -> str:
    """Claims with their verdicts; those of one record stand together, beside one link to it."""
    groups = ""
    for record, group in groupby(found, lambda each: each[0]):
        rows = "".join(
            f'<li data-sign="{claim.sign}"><b>{claim.sign} {claim.verdict}</b> '
            f"<span>{html.escape(claim.text)}</span></li>"
            for _record, claim in group
        )
        link = f"../{results.FOLDER}{record.slug}.html"
        groups += f'<div><ul>{rows}</ul><a href="{link}">{html.escape(record.title)}</a></div>'
    return f'```{{raw}} html\n<div class="course-verdicts">{groups}</div>\n```'


# ---- the picture: what position alone does to the scores ----
ALONG = {
    **dict.fromkeys(("table", "position.table", "w_K", "w_V", "e"), (0,)),
    **dict.fromkeys(("b", "relative.b"), (-1,)),
    **dict.fromkeys(("P", "B_hat"), (-2, -1)),
}
"""The axes of learned tables along which places or distances lie."""


def made(page: Method):
    """The encoding of the picture, its weights drawn anew, so that what starts at 0 shows something."""
    encoding = eval(page.make, {name: getattr(encodings, name) for name in encodings.__all__})  # noqa: S307
    with torch.no_grad():
        for name, weight in encoding.named_parameters():
            drawn = torch.randn_like(weight)
            for axis in ALONG.get(name, ()):
                drawn = smooth(drawn, axis)
            weight += 0.5 * drawn
    return encoding


def smooth(x: torch.Tensor, axis: int, wide: float = 2.0) -> torch.Tensor:
    """Random numbers that are alike where they are near, and spread as they were.

    >>> line = smooth(torch.randn(999, generator=torch.manual_seed(0)), 0)
    >>> round(float(line.std()), 1), round(float((line[1:] * line[:-1]).mean()), 1)
    (1.0, 0.9)
    """
    n = torch.arange(x.shape[axis])
    near = torch.exp(-(((n[:, None] - n) / wide) ** 2))
    return (x.movedim(axis, -1) @ (near / near.norm(dim=0))).movedim(-1, axis)


@functools.cache
def equal_scores(page: Method):
    """Scores ``[H, L, L]`` of a text, or a square image, of one repeated token."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        token = torch.randn(1, 1, HEADS * WIDTH).expand(1, LENGTH, -1)
        encoding = made(page)
        p = torch.arange(LENGTH) if encoding.axes == 1 else encodings.grid(SIDE, SIDE)
        x = encoding.embed(token, p).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
        return scores(x, x, encoding, p, p)[0]


def to_see(page: Method) -> np.ndarray:
    """These scores, minus that of the query's own place: softmax sees no more of them.

    Those ahead are left out where no model reads them.
    """
    z = equal_scores(page).numpy().astype(np.float64)
    z -= np.diagonal(z, axis1=1, axis2=2)[..., None]
    if page.page in HIDDEN:
        z[:, *np.triu_indices(LENGTH, 1)] = np.nan
    return z


def picture(name: str) -> str:
    """A method's idea; else the scores of head 1 as a map, and those of the last query over the distance."""
    page = METHODS[name]
    if name in ideas.IDEAS:
        panels, said, seen = ideas.IDEAS[name]()
    else:
        z, seen = to_see(page), alt(page)
        panels = {
            "The farther a key, the lower its score": figure.shades(z[0], thumbnail(page, LENGTH)),
            "Each head falls by its own strength": figure.lines(z[:, -1, ::-1]),
        }
        said = "A score minus the query's own, for one word again and again: all you see is position."
        if any(True for _weight in made(page).parameters()):
            said += " Learned numbers are random here."
    if page.page in HIDDEN:
        more = "keys after the query are hidden from it."
        said = f"{said[:-1]}, and {more}" if said.endswith("here.") else f"{said} {more.capitalize()}"
    caption = f"<b>{page.see}</b> " * bool(page.see) + said
    return f"```{{raw}} html\n{figure.figure(panels, seen, caption, kind(name))}\n```"


def alt(page: Method) -> str:
    """What the picture shows, in a sentence."""
    z = equal_scores(page)
    flat = (z - z.mean(-1, keepdim=True)).abs().max() < 1e-4
    tilted = torch.allclose(z[:, 1:, 1:], z[:, :-1, :-1], atol=1e-4)
    seen = "along each diagonal they are the same" if tilted else "they change along the diagonals"
    seen = "position changes none of them" if flat else seen
    hidden = ", and keys after the query are left out" * (page.page in HIDDEN)
    low, high = (signed(f(to_see(page)[0]), ".2g") for f in (np.nanmin, np.nanmax))
    return (
        f"Heat map beside lines. {page.title.partition(':')[0]}, a text of {LENGTH} equal tokens: the "
        f"scores of head 1, query by key, {low} to {high} more than that of the query's own place; "
        f"{seen}{hidden}. Beside it those of the last query by distance, in {HEADS} heads."
    )


# ---- the page ----
def explorer(page: Method) -> str:
    """The live explorer, if there is one."""
    if not page.live:
        return ""
    own = next(one for one in live.everyone() if one.front == page.live)
    place = live.place(page.live, own.settings(**page.params), "<p>It moves where scripts are allowed.</p>")
    return f"```{{raw}} html\n{place}\n```"


def linked(path: str) -> str:
    """A link to a notebook, with its title."""
    return f"[{navigation.title(ROOT / path)}](../../{path})"


def go_on(page: Method) -> str:
    def entries(what):
        said = [re.sub(r" (?=[2-9]\. )", "\n", entry[what]) for entry in readings(page) if what in entry]
        return [(what, "\n\n".join(said))] if said else []

    (exercise,) = (ROOT / "exercises").glob(f"ex{page.place[0]}_*/ex*.ipynb")
    given = [
        ("Lesson", linked(f"notebooks/{page.lesson}.ipynb")),
        *entries("Tested"),
        ("Exercise", linked(exercise.relative_to(ROOT).as_posix())),
        *entries("Read"),
        *entries("Later"),
        ("Library", api(page)),
    ]
    if page.glossary:
        given.append(("In Chinese", f"[the glossary](../../docs/glossary.md#{page.glossary})"))
    return terms(given)


def text(name: str, picture: str) -> str:
    """The Markdown of a page; links are those of a file in ``workshop/site/``."""
    page = METHODS[name]
    parts = {
        "SAYS": page.says,
        "FACTS": facts(page),
        "PICTURE": explorer(page) or picture,
        "EQUATION": equation(page),
        "CODE": f"```python\n{code(page)}\n```\n\nTaken from {api(page)}: the lines that compute, "
        "without documentation and checks.",
        "USE": f"In a model with {HEADS} heads of {WIDTH} channels it is `{page.make}`; "
        "[Use an encoding in your own model](../../docs/use.md) shows where that goes.",
        "COST": terms([*cost(page), *users(page)]),
        "FOREST": forest(page),
        "STRENGTHS": strengths(page),
        "BOARD": results.folded("All its numbers on the scoreboard", board(page)),
        "CLAIMS": claims(page),
        "ON": go_on(page),
    }
    template = (HERE / "method.md").read_text(encoding="utf-8").replace("TITLE", page.title)
    return re.sub(r"^([A-Z]+)$", lambda line: parts[line[1]], template, flags=re.M)


def at(name: str) -> str:
    """Where the page of a method is: in English where this site has none."""
    here = editions.there(f"methods/{name}", editions.LANGUAGE)
    return f"/methods/{name}" if here else f"{editions.ENGLISH_SITE}methods/{name}.html"


def linked_page(name: str, title: str) -> str:
    """A link to it."""
    return f"{{doc}}`{title} <{at(name)}>`" if at(name).startswith("/") else f"[{title}]({at(name)})"


def by_place() -> dict[str, list[str]]:
    """All pages, by the door that the first method of each opens first; doors that open none are left out."""
    first = {name: next(iter(doors(page)), "none") for name, page in METHODS.items()}
    found = {door: [name for name in METHODS if first[name] == door] for door in PLACES}
    return {door: names for door, names in found.items() if names}


def by_door() -> list[tuple[str, list[str]]]:
    """The same, each with a title that can stand anywhere."""
    found = []
    for door, names in by_place().items():
        enters = _("Position enters {unit}").format(unit=UNITS[door])
        found.append((_("Position stays out") if door == "none" else enters, names))
    return found


def listed() -> str:
    """Where position can enter, as a path through attention, and a card for each page, by place."""
    groups = (
        f'<a id="{PLACES[door][2]}"></a>\n\n## {PLACES[door][0]}\n\n<div class="course-methods">\n\n'
        + "\n".join(map(method_card, names))
        + "\n</div>"
        for door, names in by_place().items()
    )
    return f"{path()}\n\n" + "\n\n".join(groups)


def path() -> str:
    """The steps of attention in which position can enter, each drawn, and what the cards show."""
    steps = "".join(
        f'<li><a href="#{anchor}"><svg viewBox="0 0 72 48" aria-hidden="true">{DRAWINGS[door]}</svg>'
        f"<b>{title}</b><code>{what}</code></a></li>"
        for door, (title, what, anchor) in PLACES.items()
        if door in by_place()
    )
    said = _(
        "On each card: what position alone does to the scores of equal tokens. A row is a query, a column a "
        "key; the more colour, the higher the score."
    )
    note = f'<p class="course-note">{said}</p>{key()}'
    return f'```{{raw}} html\n<ol class="course-path">{steps}</ol>\n{note}\n```'


def _squares(several: Iterable[tuple[int, int, str, float]]) -> str:
    return "".join(
        f'<rect x="{x}" y="{4 + 10 * y}" width="9" height="9" style="fill:var({colour})" '
        f'opacity="{shade:.2g}"/>'
        for x, y, colour, shade in several
    )


def _scores(shade: Callable[[int, int], float]) -> str:
    """Scores of four queries and the keys up to each."""
    return _squares((16 + 10 * j, i, "--mix", shade(i, j)) for i in range(4) for j in range(i + 1))


DRAWINGS = {
    "embed": _squares((20, n, "--ink", shade) for n, shade in enumerate((0.9, 0.3, 0.6, 0.8)))
    + _squares((43, n, "--mix", shade) for n, shade in enumerate((0.3, 0.9, 0.5, 0.2)))
    + '<path d="M32 24h8M36 20v8" style="stroke:var(--ink)" stroke-width="2"/>',
    "rotate": "".join(
        f'<path d="M{x} 24l{tip}" style="stroke:var({colour})" stroke-width="3" stroke-linecap="round"/>'
        f'<circle cx="{x}" cy="24" r="17" fill="none" style="stroke:var(--line)" stroke-width="1.5"/>'
        for x, tip, colour in ((18, "12.3-6.7", "--q"), (54, "-4.5-13.2", "--k"))
    ),
    "content_bias": _scores(lambda i, j: (0.9, 0.3, 0.7, 0.2, 0.5, 0.8, 0.35)[(3 * i + 2 * j) % 7]),
    "bias": _scores(lambda i, j: 0.9 - 0.25 * (i - j)),
    "none": _scores(lambda i, j: 0.35),
}
"""What a place in attention looks like: a vector and that of a place, a query and a key that turn, scores."""


def method_card(name: str) -> str:
    """A page as a card: its scores in small, its title, how it works, and who uses it."""
    page, said = METHODS[name], {}
    if editions.LANGUAGE == ENGLISH:  # these words are English everywhere
        said[""] = gist(page.says)
        if page.row and (used_by := in_a_line(page.row.used_by)) != "–":
            said["Used by: "] = used_by
    small = "".join(f"<small><i>{label}</i>{html.escape(words)}</small>" for label, words in said.items())
    return (
        f'<div class="c-{kind(name)}"><i class="map" style="--map:url({thumbnail(page)})"></i>\n\n'
        f"{linked_page(name, _(page.title))}\n\n{small}\n\n</div>\n"
    )


def gist(says: str, most: int = 115) -> str:
    """The beginning of a text, as many of its clauses as a card has room for.

    >>> gist("Each distance has a vector: Shaw's. It is learned."), gist("One, two, three.", 10)
    ("Each distance has a vector: Shaw's. It is learned.", 'One, two.')
    """
    first, *clauses = re.split("(?<=[,.:;])(?= )", says)
    for clause in clauses:
        if len(first + clause) > most:
            break
        first += clause
    return first.rstrip(",.:;") + "."


def thumbnail(page: Method, size: int = 18) -> str:
    """The scores of head 1 as a small picture that says where colour goes: much for a high score.

    >>> thumbnail(METHODS["alibi"])[:22]
    'data:image/png;base64,'
    """
    shades = Image.fromarray((255 * shares(page, size) + 0.5).astype(np.uint8))
    drawn = Image.merge("LA", (Image.new("L", shades.size), shades))
    drawn.save(stream := io.BytesIO(), "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def coloured(name: str) -> Image.Image:
    """The same in the method's colour, for the card of a shared link."""
    colour = np.array(ImageColor.getrgb(TONES[kind(name)]))
    drawn = 255 + shares(METHODS[name], LENGTH)[..., None] * (colour - 255)
    return Image.fromarray((drawn + 0.5).astype(np.uint8)).resize((12 * LENGTH, 12 * LENGTH), Image.NEAREST)


def shares(page: Method, size: int) -> np.ndarray:
    """The scores of head 1 between 0.06 and 1, of so many places; what is hidden has none.

    >>> fading = shares(METHODS["alibi"], 18)[-1]
    >>> bool((np.diff(fading) > 0).all()), len(np.unique(shares(METHODS["nope"], 18)))
    (True, 1)
    """
    z = to_see(page)[0, :: LENGTH // size, :: LENGTH // size]
    low, high = np.nanmin(z), np.nanmax(z)
    if high - low < 1e-4:
        return np.full_like(z, 0.35)
    return np.nan_to_num(0.06 + 0.94 * (z - low) / (high - low), nan=0.0)


def sidebar() -> str:
    """The lines of a table of contents: short titles, in the order of the course; English pages elsewhere."""
    return "\n".join(f"{short(name)} <{at(name).removeprefix('/')}>" for name in METHODS)


def kind(name: str) -> str:
    """The colour of an encoding of the registry, or of a page: "rope", "relative" …

    >>> kind("rotary + YaRN"), kind("tupe"), kind("shaw")
    ('rope', 'hybrid', 'relative')
    """
    page = METHODS.get(name)
    first = name.partition(" + ")[0].removesuffix("-far")  # T5 with a longer reach
    method = page or next(each for each in EVERY if first in each.names)
    return KINDS.get(method.code[0].__module__.rpartition(".")[2], "relative") if method.code else "none"


def search_words() -> dict[str, list[str]]:
    """What is typed into a search, with the lesson and the page that it asks for, in this order."""
    return {
        word: [f"notebooks/{page.lesson}", f"methods/{name}"]
        for name, page in METHODS.items()
        for word in page.words
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", choices=METHODS)
    print(text(parser.parse_args().page, ""))
