"""A page for each method, made from what its file says (``METHODS``), the records and the reading list.

Nothing on these pages is copied by hand: equations are those of the docstrings, code is the library's own,
numbers are the scoreboard's. ``python workshop/site/methods.py rope`` prints the text of one page.
"""

import argparse
import ast
import functools
import inspect
import io
import json
import re
import sys
import textwrap
from pathlib import Path

import editions
import light
import torch
from PIL import Image

from course import experiments
from course.experiments.scoreboard import LARGE, MEASURES, exact, shown
from tutorial_lib import encodings, plots
from tutorial_lib.attention import scores
from tutorial_lib.encodings.method import Method
from tutorial_lib.encodings.registry import METHODS as EVERY
from tutorial_lib.encodings.registry import doors, told
from tutorial_lib.explorers import live
from tutorial_lib.explorers.scoreboard import rows
from tutorial_lib.language import _

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
METHODS = {method.page: method for method in EVERY if method.page}
NAMES = [f"methods/{name}" for name in METHODS]
FOLDER = "methods"
"""Of the pictures, among the static files."""

HEADS, WIDTH, SIDE = 4, 16, 6
LENGTH = SIDE**2
COLOURS = 128
"""Of a picture: a quarter of the bytes."""

MOST = 6
"""Claims that stand open on a page."""

UNITS = {
    "none": _("nothing"),
    "embed": _("the token vectors"),
    "rotate": _("queries and keys"),
    "content_bias": _("the raw scores"),
    "bias": _("the scaled scores"),
    "values": _("the output"),
}


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
def without_docstring(source: str) -> list[str]:
    """The lines of a function, without its docstring and the empty lines at its ends."""
    lines, node = source.splitlines(), ast.parse(textwrap.dedent(source)).body[0]
    if ast.get_docstring(node) is not None:
        first = node.body[0]
        del lines[first.lineno - 1 : first.end_lineno]
    return lines


def code(page: Method) -> str:
    """The source of functions and methods, the latter below the line that opens their class."""
    parts, opened = [], None
    for source in (inspect.unwrap(each) for method in told(page) for each in method.code):
        lines = without_docstring(inspect.getsource(source))
        owner = source.__qualname__.rpartition(".")[0]
        if owner and owner != opened:
            kind = getattr(sys.modules[source.__module__], owner)
            opening = next(line for line in inspect.getsource(kind).splitlines() if line.startswith("class "))
            lines = [opening, *lines]
        parts.append("\n".join(lines))
        opened = owner
    return "\n\n".join(parts)


def equations(page: Method) -> tuple[list[str], str]:
    """The formulas of a method's docstring, and the paper and equation that its first line names."""
    doc = inspect.getdoc(page.equation or sys.modules[page.code[0].__module__]) or ""
    blocks = re.findall(r"^\.\. math::((?:.*\n?)(?:[ \t]+.*(?:\n|$)|\n(?=[ \t]))*)", doc, re.M)
    source = re.search(r"\(([^()]*\b20\d\d[^()]*)\)", doc.partition("\n\n")[0])
    return [textwrap.dedent(block).strip() for block in blocks], source[1] if source else ""


def equation(page: Method) -> str:
    """All formulas of a page, and where they come from."""
    blocks, source = equations(page)
    source = page.source or source
    if page.formula or not blocks:
        given = [page.formula] if page.formula else page.row.formula
        blocks = [line.strip("$") for line in given]
    text = "\n\n".join(f"```{{math}}\n{block}\n```" for block in blocks)
    return f"{text}\n\n*{source[0].upper()}{source[1:].rstrip('.')}.* The words around it: {api(page)}."


def modules(page: Method) -> list[str]:
    """The modules of the code that is shown, each once."""
    names = (each.__module__.rpartition(".")[2] for method in told(page) for each in method.code)
    return list(dict.fromkeys(names))


def api(page: Method) -> str:
    return ", ".join(f"[encodings.{name}](../../tutorial_lib/encodings/{name}.py)" for name in modules(page))


# ---- from the library's words and the reading list ----
def in_a_line(text: str) -> str:
    """Words of the printed page without the breaks of its narrow columns."""
    return re.sub(r"(?<=-)\n", "", text).replace("\n", " ")


def opened(page: Method) -> str:
    """Where the methods of a page enter attention."""
    names = dict.fromkeys(door for name in on_board(page) for door in row(name)["doors"])
    return " and ".join(f"{UNITS[door]} (`{door}`)" for door in names) or "nothing"


def cost(page: Method) -> str:
    lines = [f"- **Position enters**: {opened(page)}"]
    if its := page.row:
        given = {"Parameters": its.parameters, "Work": its.cost, "Longer texts": its.longer}
        lines += [f"- **{title}**: {in_a_line(text)}" for title, text in given.items()]
    return "\n".join(lines)


def readings(page: Method) -> list[dict[str, str]]:
    """The entries of the reading list: what to read, to look at, what came later, where it is tested."""
    if not page.papers:
        link = f"[arXiv:{page.arxiv}](https://arxiv.org/abs/{page.arxiv})"
        return [{"Read": f"{equations(page)[1]}, {link}"}]
    text = document("papers")
    entries = [
        re.search(rf"^### {re.escape(name)}\n(.*?)(?=^##)", text, re.M | re.S)[1] for name in page.papers
    ]
    return [dict(re.findall(r"^- \*\*(\w+)\*\*: (.*)$", from_here(entry), re.M)) for entry in entries]


def released(page: Method) -> list[str]:
    """What released models do with it: model, and what it does."""
    lines = re.findall(r"^\| ([^|]+) \| ([^|]+) \| .*\|$", document("released"), re.M)
    return [f"- {model}: {does}" for model, does in lines if page.released and re.search(page.released, does)]


def users(page: Method) -> str:
    named = in_a_line(page.row.used_by) if page.row else "–"
    lines = released(page)
    text = [] if named == "–" else [f"Used by {named}."]
    if lines:
        text += [
            "[What released models do](../../docs/released.md), read from their configuration and code:",
            "\n".join(lines),
        ]
    return "\n\n".join(text) or "This course names no released model that uses it."


# ---- from the records ----
def ordinal(n: int) -> str:
    """
    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22, 113)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd', '113th']
    """
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def on_board(page: Method) -> list[str]:
    """The names of a page's methods, as the scoreboard has them."""
    return [name for method in told(page) for name in (*method.names, *method.variants)]


def row(name: str) -> dict:
    """A row of the scoreboard; for a method that no record has yet, only what needs no training."""
    new = next((method for method in EVERY if name in method.names and not method.compared), None)
    return {"doors": doors(new)} | _exact(name) if new else rows()[name]


@functools.cache
def _exact(name: str) -> dict:
    return exact(name, experiments.load("scoreboard").settings)


def place_on_board(column: str, name: str) -> str:
    """``3rd of 31``: ties share a place."""
    values = {other: its[column] for other, its in (rows() | {name: row(name)}).items() if column in its}
    own = values[name]
    before = sum(value > own if column in LARGE else value < own for value in values.values())
    return f"{ordinal(before + 1)} of {len(values)}"


def board(page: Method) -> str:
    """The scoreboard's numbers of a page's methods, with their places on it."""
    names = on_board(page)
    columns = [column for column in MEASURES if any(column in row(name) for name in names)]
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for column in columns:
        cells = [
            f"{shown(column, row(name).get(column))}"
            + (f" ({place_on_board(column, name)})" if column in row(name) else "")
            for name in names
        ]
        lines.append(f"| {MEASURES[column]} | {' | '.join(cells)} |")
    how = (
        "From [the scoreboard](../../notebooks/09_which_one.ipynb#The-scoreboard), which measures all "
        "methods in the same small model; in brackets stands the place among those that have the number, "
        "with the best first. Our models are small: [how it was measured](../../docs/results.md)."
    )
    if not page.compared:
        how += (
            " This one is newer than the lessons' comparisons, so it has only the numbers that need no "
            "training."
        )
    return f"{how}\n\n" + "\n".join(lines)


def claims(page: Method) -> str:
    """The claims that name the method in ``docs/results.md``, and their verdicts; the rest is folded."""
    if not page.claims:
        return ""
    lines = []
    for part in re.split(r"^## ", document("results"), flags=re.M)[1:]:
        title = part.partition("\n")[0]
        for claim, rest in re.findall(r"^\*\*(.+?)\*\*(.*?)(?=^\*\*|\Z)", part, re.M | re.S):
            verdict = re.search(r"^- \*\*(.+?)\*\*", rest, re.M)
            alone = not claim.startswith(("Nor ", "From "))  # can be read without the claim before it
            if verdict and alone and re.search(page.claims, claim):
                link = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
                lines.append(f"- {claim}: **{verdict[1].lower()}** ([{title}](../../docs/results.md#{link}))")
    if not lines:
        return ""
    text = "Claims that were put to the test:\n\n" + "\n".join(lines[:MOST])
    if rest := lines[MOST:]:
        folded = f"<details><summary>{len(rest)} more</summary>\n\n" + "\n".join(rest)
        text += f"\n\n{folded}\n\n</details>"
    return text


# ---- the picture: what position alone does to the scores ----
def made(page: Method):
    """The encoding of the picture, its weights drawn anew, so that what starts at 0 shows something."""
    encoding = eval(page.make, {name: getattr(encodings, name) for name in encodings.__all__})  # noqa: S307
    with torch.no_grad():
        for weight in encoding.parameters():
            weight += 0.5 * torch.randn_like(weight)
    return encoding


def equal_scores(page: Method):
    """Scores ``[H, L, L]`` of a text, or a square image, of one repeated token."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        token = torch.randn(1, 1, HEADS * WIDTH).expand(1, LENGTH, -1)
        encoding = made(page)
        p = torch.arange(LENGTH) if encoding.axes == 1 else encodings.grid(SIDE, SIDE)
        x = encoding.embed(token, p).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
        return scores(x, x, encoding, p, p)[0]


def picture(page: Method):
    """The scores of the first head as a heat map, and those of the last query in each head as lines."""
    z = equal_scores(page)
    fig, axes = plots.panels(1, 2, size=(10.5, 3.9))
    plots.heat(z[0], limits=None, cmap="viridis", xlabel="key", ylabel="query", title="head 1", ax=axes[0])
    r = torch.arange(1 - LENGTH, 1)
    plots.lines(
        r,
        {f"head {h}": line for h, line in enumerate(z[:, -1], 1)},
        xlabel="key − last query",
        ylabel="score",
        title="the last query",
        ax=axes[1],
    )
    return fig


def alt(page: Method) -> str:
    """What the picture shows, in a sentence."""
    z = equal_scores(page)
    flat = (z - z.mean(-1, keepdim=True)).abs().max() < 1e-4
    tilted = torch.allclose(z[:, 1:, 1:], z[:, :-1, :-1], atol=1e-4)
    seen = (
        "position changes none of them"
        if flat
        else "along each diagonal they are the same"
        if tilted
        else "they change along the diagonals"
    )
    return (
        f"Heat map beside lines. {page.title.partition(':')[0]}, a text of {LENGTH} equal tokens: the "
        f"scores of head 1, query by key; {seen}. Beside it those of the last query, in {HEADS} heads."
    )


def draw(folder: Path) -> None:
    """The pictures of all pages of this site, as static files."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, page in METHODS.items():
        if not editions.there(f"methods/{name}", editions.LANGUAGE):
            continue
        drawn = Image.open(io.BytesIO(plots.png(picture(page)))).convert("RGB")
        drawn.quantize(COLOURS).save(folder / FOLDER / f"{name}.png", optimize=True)


def image(name: str, folder: Path) -> str:
    """The picture as HTML, with its size, so that nothing moves when it comes."""
    width, height = light.size((folder / FOLDER / f"{name}.png").read_bytes())
    text = plots.html.escape(alt(METHODS[name]), quote=True)
    return (
        f'```{{raw}} html\n<figure class="course-picture"><img src="../_static/{FOLDER}/{name}.png" '
        f'width="{width}" height="{height}" fetchpriority="high" alt="{text}">'
        "<figcaption>What position alone does to the scores: every token is the same word, "
        "so all that you see comes from the places.</figcaption></figure>\n```"
    )


# ---- the page ----
def explorer(page: Method) -> str:
    """The live explorer, if there is one; without a script a link to its lesson stays."""
    if not page.live:
        return ""
    own = next(one for one in live.everyone() if one.front == page.live)
    params = own.settings(**page.params)
    place = live.place(page.live, params, "<p>It moves where scripts are allowed.</p>")
    return f"## Move it\n\n```{{raw}} html\n{place}\n```"


def linked(path: str) -> str:
    """A link to a notebook, with its title."""
    stored = json.loads((ROOT / path).read_text(encoding="utf-8"))
    sources = ("".join(cell["source"]) for cell in stored["cells"] if cell["cell_type"] == "markdown")
    title = next(match[1] for source in sources if (match := re.search(r"^# (.+)$", source, re.M)))
    return f"[{title}](../../{path})"


def go_on(page: Method) -> str:
    def entries(what):
        return [f"- **{what}**: {entry[what]}" for entry in readings(page) if what in entry]

    lines = [f"- **Lesson**: {linked(f'notebooks/{page.lesson}.ipynb')}", *entries("Tested")]
    (exercise,) = (ROOT / "exercises").glob(f"ex{page.place[0]}_*/ex*.ipynb")
    lines.append(f"- **Exercise**: {linked(exercise.relative_to(ROOT).as_posix())}")
    lines += entries("Read") + entries("Later")
    lines.append(f"- **Library**: {api(page)}")
    if page.glossary:
        lines.append(f"- **In Chinese**: [the glossary](../../docs/glossary.md#{page.glossary})")
    return "\n".join(lines)


def text(name: str, picture: str) -> str:
    """The Markdown of a page; links are those of a file in ``workshop/site/``."""
    page = METHODS[name]
    use = (
        f"In a model with {HEADS} heads of {WIDTH} channels it is `{page.make}`; "
        "[Use an encoding in your own model](../../docs/use.md) shows where that goes."
    )
    listing = (
        f"```python\n{code(page)}\n```\n\nTaken from {api(page)}: the lines that compute, "
        "without documentation."
    )
    parts = {
        "TITLE": page.title,
        "SAYS": page.says,
        "PICTURE": picture,
        "EQUATION": equation(page),
        "CODE": listing,
        "USE": use,
        "LIVE": explorer(page),
        "COST": cost(page),
        "USERS": users(page),
        "BOARD": board(page),
        "CLAIMS": claims(page),
        "ON": go_on(page),
    }
    template = (HERE / "method.md").read_text(encoding="utf-8")
    return re.sub(
        r"^([A-Z]+)$|^# TITLE$",
        lambda line: parts[line[1]] if line[1] else f"# {page.title}",
        template,
        flags=re.M,
    )


def linked_page(name: str, title: str) -> str:
    """A link to the page of a method, in English where this site has none."""
    if editions.there(f"methods/{name}", editions.LANGUAGE):
        return f"{{doc}}`{title} </methods/{name}>`"
    return f"[{title}]({editions.ENGLISH_SITE}methods/{name}.html)"


def listed() -> str:
    """The list of all pages, by the door that the first method of each opens first."""
    first = {name: next(iter(doors(page)), "none") for name, page in METHODS.items()}
    parts = []
    for door, unit in [*list(UNITS.items())[1:], ("none", UNITS["none"])]:
        lines = [
            f"- {linked_page(name, _(page.title))}" for name, page in METHODS.items() if first[name] == door
        ]
        title = _("Position stays out") if door == "none" else _("Position enters {unit}").format(unit=unit)
        parts.append(f"## {title}\n\n" + "\n".join(lines) if lines else "")
    return "\n\n".join(parts)


def sidebar() -> str:
    """The lines of a table of contents: short titles, in the order of the course; English pages elsewhere."""
    places = {
        name: f"methods/{name}"
        if editions.there(f"methods/{name}", editions.LANGUAGE)
        else f"{editions.ENGLISH_SITE}methods/{name}.html"
        for name in METHODS
    }
    return "\n".join(
        f"{re.split('[:：]', _(page.title))[0]} <{places[name]}>" for name, page in METHODS.items()
    )


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
