"""Pages to look something up, laid out: released models, glossary, reading list, the visual language.

Their tables stay tables in ``docs``, for tests and for GitHub; here they get groups, letters and samples.
"""

import ast
import functools
import html
import itertools
import re

import atlas
from matplotlib import colormaps
from matplotlib.colors import to_hex

from course import atlas as record
from tutorial_lib import plots  # noqa: F401  (it registers the colour maps)
from tutorial_lib.explorers import RotaryExplorer, live
from tutorial_lib.language import _

CHIP = r'<code class="literal">\1</code>'

# ---- what released models do ----
STATED = re.compile(r"^\| model \| what it does \| what shows it \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", re.M)
FITS = 42
"""Letters that stand side by side on a phone."""
SOURCE = re.compile(r"`(\w+/\w+\.py)`: `(.*)`")


def worded(value: object) -> str:
    """A value of a configuration, for readers.

    >>> worded(["sliding_attention"] * 3 + ["full_attention"]), worded(500_000.0), worded({"full_attention"})
    ('3 × sliding_attention, full_attention', '500,000', 'full_attention in all')
    """
    if isinstance(value, set):
        return f"{worded(next(iter(value)))} in all"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        runs = [(each, len(list(run))) for each, run in itertools.groupby(value)]
        return ", ".join(each if n == 1 else f"{n} × {each}" for each, n in runs)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.10g}"


def _path(node: ast.expr) -> list[str]:
    """The names that lead to a value, without the class and without ``rope_parameters`` before others."""
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Slice):
            *names, last = _path(node.value)
            return [*names, f"{last}[{ast.unparse(node.slice)}]"]
        names = _path(node.value)
        within = [] if names == ["rope_parameters"] else names
        return [*within, eval(ast.unparse(node.slice), {})]  # a name, or two that are added
    return []


def _pairs(left: ast.expr, right: ast.expr) -> list[tuple[str, str]]:
    """What one comparison says, as names and values."""
    if isinstance(left, ast.Tuple):
        assert isinstance(right, ast.Tuple)
        return [pair for its in zip(left.elts, right.elts, strict=True) for pair in _pairs(*its)]
    if isinstance(left, ast.ListComp):
        (over,) = left.generators
        assert isinstance(right, ast.List) and isinstance(over.iter, ast.Tuple)
        name, found = ast.unparse(over.target), []
        for each, value in zip(over.iter.elts, right.elts, strict=True):
            own = re.sub(rf"\b{name}\b", ast.unparse(each), ast.unparse(left.elt))
            found += _pairs(ast.parse(own, mode="eval").body, value)
        return found
    if isinstance(left, ast.SetComp):
        left = left.elt
    if isinstance(left, ast.Call):
        assert isinstance(left.func, ast.Name)
        if left.func.id == "hasattr":
            return [(ast.literal_eval(left.args[1]), "none")]
        left = left.args[0]
    value, name = eval(ast.unparse(right), {}), ".".join(_path(left))
    if isinstance(value, dict):
        return [(f"{kind}.{key}", worded(its)) for kind, inner in value.items() for key, its in inner.items()]
    if isinstance(value, list) and len(value) > 8:
        return [(name, ast.unparse(right).replace("*", "×"))]
    return [(name, worded(value))]


def shown(expression: str) -> list[tuple[str, str]]:
    """An expression that a test finds true, as short names and values.

    >>> shown("Llama4TextConfig().no_rope_layers[:4] == [1, 1, 1, 0] and LlamaConfig().chunk == 8_192")
    [('no_rope_layers[:4]', '[1, 1, 1, 0]'), ('chunk', '8,192')]
    >>> shown('[AConfig().rope_parameters[k + "_a"]["theta"] for k in ("near", "far")] == [10, 20]')
    [('near_a.theta', '10'), ('far_a.theta', '20')]
    >>> shown('hasattr(AConfig(), "rope") is False'), shown("(AConfig().a, AConfig().b) == (1, 0.5)")
    ([('rope', 'none')], [('a', '1'), ('b', '0.5')])
    """
    body = ast.parse(expression, mode="eval").body
    parts = body.values if isinstance(body, ast.BoolOp) else [body]
    return [pair for part in parts for pair in _pairs(part.left, *part.comparators)]  # type: ignore[attr-defined]


@functools.cache
def _types() -> dict[str, str]:
    """The model types of the atlas, by the names of their configurations in small letters."""
    return {its["type"].replace("_", ""): its["type"] for its in record.record()["rows"] if "runs" in its}


def striped(evidence: str) -> str:
    """The model type whose layers a row states a pattern of, if the atlas has it.

    >>> striped("`Cohere2Config().layer_types[:4] == 0`"), striped("`Cohere2Config().sliding_window == 4096`")
    ('cohere2', '')
    """
    found = re.search(r"\b(\w+)Config\(\)\.(?:layer_types|no_rope_layers)", evidence)
    return _types().get(found[1].lower(), "") if found else ""


def _statement(says: str, evidence: str, strip: str) -> str:
    """One statement about a model, and below it what shows it."""
    words = re.sub("`([^`]+)`", CHIP, html.escape(says, quote=False))
    if line := SOURCE.fullmatch(evidence):
        code = re.sub(r"(?<=[\w\])])(?=[.(\[])", "<wbr>", html.escape(line[2], quote=False))
        below = f"<p><small>{line[1]}</small><br><code>{code}</code></p>"
    else:
        pairs = []
        for name, value in shown(evidence.strip("`")):
            whole = ' class="course-whole"' if len(name + value) <= FITS else ""
            pairs.append(f"<code{whole}>{name} = <b>{value.replace(' × ', '&nbsp;×&nbsp;')}</b></code>")
        below = f"<p>{' '.join(pairs)}</p>"
    return f"<li>{words}{strip}{below}</li>"


def models(rows: list[tuple[str, str, str]]) -> str:
    """The rows of a table with each model named once, and its layers where a row states their pattern."""
    made = []
    for name, group in itertools.groupby(rows, key=lambda row: row[0]):
        its = list(group)
        types = [striped(evidence) for _name, _says, evidence in its]
        first = next((n for n, kind in enumerate(types) if kind), -1)
        lines = [
            _statement(says, evidence, atlas.strip(types[n]) if n == first else "")
            for n, (_name, says, evidence) in enumerate(its)
        ]
        config = next((found[1] for row in its if (found := re.search(r"\b(\w+)Config\(", row[2]))), "")
        own = f"<small>{config}<wbr>Config</small>" if config else ""
        made.append(f"<div><p><b>{name}</b>{own}</p><ul>{''.join(lines)}</ul></div>")
    return f'<div class="course-models" data-atlas>{"".join(made)}</div>\n'


def released(text: str) -> str:
    """``docs/released.md`` with its rows by model, and what the letters of layers mean."""
    tables = [
        [tuple(line.strip("| ").split(" | ")) for line in one.splitlines()] for one in STATED.findall(text)
    ]
    assert tables and all(len(row) == 3 for rows in tables for row in rows)
    types = [kind for rows in tables for row in rows if (kind := striped(row[2]))]
    told = "A strip has a layer after the other, the first at the left; one with a window is half as high."
    key = f'<div data-atlas><p class="course-note">{told}</p>{atlas.key(types)}</div>\n\n'
    every = iter(tables)
    return STATED.sub(lambda _found: models(next(every)), text).replace("\n## ", f"\n{key}## ", 1)


# ---- the visual language of explorers ----
SAID = re.compile(r"^\| thing \| how it looks \|\n\|---\|---\|\n((?:\|.*\n)+)", re.M)
MARKS = {
    "circle": '<circle cx="8" cy="8" r="5.5"/>',
    "square": '<path d="M3 3h10v10H3z"/>',
    "diamond": '<path d="M8 1.5 14.5 8 8 14.5 1.5 8z"/>',
    "triangle": '<path d="M8 2 14.5 14h-13z"/>',
}
ARROW = '<path class="{0}" d="M{1} 32H{2}"/><path class="{0} tip" d="m{2} 32-7-5v10z"/>'
DIAL = '<circle class="thin" cx="60" cy="22" r="19"/><path class="thin" d="M60 22h19"/>'
SAMPLES = {
    "query": '<path class="q" d="M14 34 92 12"/><path class="q tip" d="m100 10-10-2 3 9z"/>',
    "key": '<path class="k" d="M14 34 92 22"/><path class="k tip" d="m100 21-9-4 1 9z"/>',
    "what stands between": '<path class="q" d="M18 36 84 6"/><path class="k" d="M18 36h78"/>'
    '<path class="mix" d="M62 36a44 44 0 0 0-4-18"/>',
    "before": '<path class="q pale" d="M22 36 86 30"/><path class="q" d="M22 36 78 8"/>',
    "positions": '<path class="thin" d="M10 22h100"/>'
    + "".join(
        f'<circle class="{kind}" cx="{x}" cy="22" r="5"/>' for x, kind in ((32, "k tip"), (88, "q tip"))
    )
    + '<path class="mix" d="M40 22h40"/><text x="29" y="42">k</text><text x="85" y="42">q</text>',
    "an angle": f'{DIAL}<path class="q" d="M60 22 72 7"/><path class="mix" d="M70 22a10 10 0 0 0-4-8"/>',
    "a sum": '<path class="q" d="M14 18h34"/><path class="k" d="M53 18h22"/><path class="mix" d="M14 33h61"/>'
    '<text x="23" y="12">+3</text><text x="56" y="12">+2</text><text x="84" y="37">+5</text>',
    "the target": f'{DIAL}<path class="mix dash" d="M60 22 76 13"/><path class="q" d="M60 22 66 5"/>',
    "what is chosen": '<rect class="mix" x="14" y="8" width="38" height="28" rx="5"/>'
    '<rect class="thin dash" x="68" y="8" width="38" height="28" rx="5"/>',
}
"""A drawing for each row, by the words that it begins with, in a box of 120 × 44."""
MAPS = {"values": "signed", "weights": "weights"}
"""Rows that are about a colour map of ``tutorial_lib.colours``."""


def ramp(name: str) -> str:
    """A colour map as a bar.

    >>> ramp("weights").count("<rect")
    24
    """
    n = 24
    parts = [to_hex(colormaps[name](k / (n - 1))) for k in range(n)]
    return "".join(
        f'<rect x="{10 + k * 100 / n:.1f}" y="12" width="{100 / n + 0.4:.1f}" height="20" fill="{part}"/>'
        for k, part in enumerate(parts)
    )


def sample(thing: str) -> str:
    """The drawing beside a row of the visual language; a row without one is an error."""
    inside = next((drawn for begin, drawn in SAMPLES.items() if thing.startswith(begin)), "")
    inside = inside or ramp(next(name for begin, name in MAPS.items() if thing.startswith(begin)))
    return f'<svg viewBox="0 0 120 44" aria-hidden="true">{inside}</svg>'


def language(text: str) -> str:
    """``docs/explorers.md`` with what its tables speak of, drawn."""

    def rows(found: re.Match) -> str:
        lines = []
        for line in found[1].splitlines():
            thing, looks = (
                re.sub("`([^`]+)`", CHIP, html.escape(its, quote=False))
                for its in line.strip("| ").split(" | ")
            )
            lines.append(f"<li>{sample(thing)}<p><b>{thing}</b><br>{looks}</p></li>")
        return f'<ul class="course-samples">{"".join(lines)}</ul>\n'

    def mark(found: re.Match) -> str:
        drawn = f'<svg class="course-mark c-{found[2]}" viewBox="0 0 16 16">{MARKS[found[3]]}</svg>'
        return f'{found[1]}<span class="course-whole">{drawn} {found[3]}</span> |'

    kinds = "|".join(MARKS)
    rotary = live.place("rotary", RotaryExplorer.settings(), "<p>It moves where scripts are allowed.</p>")
    text = re.sub("<div data-explorer>.*?</div>", lambda _found: rotary, text)
    return re.sub(rf"^(\| (\w+) \|.*\| )({kinds}) \|$", mark, SAID.sub(rows, text), flags=re.M)


# ---- the glossary ----
TERM = re.compile(r'^\| <a id="(\w)[^"]*"></a>.*\|$', re.M)


def glossary(text: str) -> str:
    """The table of terms with a row for each letter of their English names, and above it a row of letters.

    >>> rows = [f'| <a id="{name}"></a>{name} | it |' for name in ("alibi", "base", "bucket")]
    >>> made = glossary("| term | what |\\n|---|---|\\n" + "\\n".join(rows))
    >>> re.findall('href="([^"]+)|course-letter" id="([^"]+)', made)
    [('#letter-a', ''), ('#letter-b', ''), ('', 'letter-a'), ('', 'letter-b')]
    """
    seen: list[str] = []

    def row(found: re.Match) -> str:
        letter = found[1].upper()
        if letter in seen:
            return found[0]
        seen.append(letter)
        rest = " |" * found[0].count(" | ")
        return f'| <b class="course-letter" id="letter-{found[1]}">{letter}</b> |{rest}\n{found[0]}'

    text = TERM.sub(row, text)
    if not seen:
        return text
    links = "".join(f'<a href="#letter-{letter.lower()}">{letter}</a>' for letter in seen)
    find, none = _("Find a term"), _("Nothing found")
    jump = f'<nav class="course-letters" aria-label="A–Z" data-term="{find}" data-none="{none}">{links}</nav>'
    return re.sub(r"^\| (?!<)", lambda head: f"{jump}\n\n{head[0]}", text, count=1, flags=re.M)


# ---- what to read ----
ENTRY = re.compile(r"^- \*\*(\w+)\*\*: (.*)\n", re.M)


def papers(text: str) -> str:
    """What is said of a method as rows: a name, and its text beside it; papers to read are a list.

    >>> print(papers("- **Read**: 1. One, §3. 2. Two.\\n- **Library**: `shaw`\\n"))
    <div class="course-entry">
    <BLANKLINE>
    <p>Read</p><div>
    <BLANKLINE>
    1. One, §3.
    2. Two.
    <BLANKLINE>
    </div>
    <BLANKLINE>
    <p>Library</p><div>
    <BLANKLINE>
    `shaw`
    <BLANKLINE>
    </div>
    <BLANKLINE>
    </div>
    <BLANKLINE>
    """

    def row(found: re.Match) -> str:
        said = re.sub(r"(?<=\.) (?=\d\. [A-Z])", "\n", found[2]) if found[2].startswith("1. ") else found[2]
        return f"<p>{found[1]}</p><div>\n\n{said}\n\n</div>\n\n"

    def entry(found: re.Match) -> str:
        return f'<div class="course-entry">\n\n{ENTRY.sub(row, found[0])}</div>\n'

    return re.sub(f"(?:{ENTRY.pattern})+", entry, text, flags=re.M)


# ---- what the tool says, and what stands on the board ----
def told(text: str) -> str:
    """The first report of a page: its verdicts and the bug can be seen, and long lines hang.

    >>> print(told("```text\\nvalues: failed. A\\n    bug: from 1 – from\\n        1\\n```\\n"))
    <pre class="course-told"><span style="--in:0ch">values: <b>failed</b>. A
    </span><span style="--in:4ch">    <b>bug: from 1</b> – from 1
    </span></pre>
    <BLANKLINE>
    """

    def line(its: str) -> str:
        said = re.sub(r"^([^:]+: )failed(?=\.)", r"\1<b>failed</b>", html.escape(its, quote=False))
        said = re.sub(r"^([^:]+: )passed(?=\.)", r"\1<i>passed</i>", said)
        said = re.sub(r"\b([1-9]\d* failed)\b", r"<b>\1</b>", said)
        said = re.sub(r"^( +)(bug: .*?)(?= – |$)", r"\1<b>\2</b>", said)
        return f'<span style="--in:{len(its) - len(its.lstrip())}ch">{said}\n</span>'

    def report(found: re.Match) -> str:
        joined = re.sub(r"\n +(?! |\w+(?: \w+)?: )", " ", found[1])  # a line that was broken
        return f'<pre class="course-told">{"".join(map(line, joined.splitlines()))}</pre>\n'

    return re.sub(r"^```text\n(.*?)^```\n", report, text, count=1, flags=re.M | re.S)


def board(text: str) -> str:
    """What a teacher draws, as on a board.

    >>> board("\\n```\\na < b\\n```\\n")
    '\\n<pre class="course-board">a &lt; b\\n</pre>\\n'
    """

    def drawn(found: re.Match) -> str:
        return f'<pre class="course-board">{html.escape(found[1], quote=False)}</pre>\n'

    return re.sub(r"^```\n(.*?)^```\n", drawn, text, flags=re.M | re.S)


LAID = {
    "docs/conformance": told,
    "docs/instructor/notebooks": board,
    "docs/released": released,
    "docs/explorers": language,
    "docs/glossary": glossary,
    "docs/papers": papers,
}
"""The pages, each with what lays it out."""
