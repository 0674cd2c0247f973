"""``docs/results.md`` as pages: an index with all verdicts, and a page for each record.

The file stays one, because it is read on GitHub, too; here it would be forty screens long.
"""

from __future__ import annotations

import functools
import html
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from course import verdicts
from course.experiments import EXPERIMENTS
from course.experiments.statistics import Interval
from workshop import documents, navigation

INDEX = "docs/results"
FOLDER = "results/"
FINDING = re.compile(r"^\*\*(?P<claim>.+?)\*\* \((?P<source>.*?)\)\n\n(?P<lines>(?:- .*\n?)+)", re.M)
VERDICT = re.compile(r"^- \*\*(.+?)\*\*", re.M)
ALSO = re.compile(r"^(- Also judged in: )(.*)$", re.M)
NUMBER = r"[-+]?[\d.]+\d|[-+]?\d"


def verdict(found: re.Match) -> str:
    """Of a finding, as ``verdicts.SIGNS`` has it."""
    return VERDICT.search(found["lines"])[1].lower()


@dataclass(frozen=True)
class Record:
    """A section of the file: its title, its anchor there, which is its page here, and its text."""

    title: str
    slug: str
    text: str

    @property
    def findings(self) -> list[tuple[str, str]]:
        """Each claim, and its verdict."""
        return [(found["claim"], verdict(found)) for found in FINDING.finditer(self.text)]


@functools.cache
def records() -> dict[str, Record]:
    """All sections by their anchors, in the order of the file."""
    text = (documents.ROOT / f"{INDEX}.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)\n", text, flags=re.M)
    found = [
        Record(title, documents.slug(title), body)
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    ]
    return {record.slug: record for record in found}


def linked(text: str) -> str:
    """``text`` with links to a section of the file as links to its page.

    >>> linked("[it](../docs/results.md#word-order), [all](results.md)")
    '{doc}`it </results/word-order>`, [all](results.md)'
    """

    def link(found: re.Match) -> str:
        return f"{{doc}}`{found[1]} </{FOLDER}{found[2]}>`" if found[2] in records() else found[0]

    return re.sub(r"\[([^][`]+)\]\((?:\.\./)*(?:docs/)?results\.md#([\w-]+)\)", link, text)


def index(text: str) -> str:
    """The file's first part, and a line for each record: how many claims hold, and which."""
    lines = []
    for record in records().values():
        claims = "".join(
            f'<li data-sign="{verdicts.SIGNS[its]}">{html.escape(claim)}</li>'
            for claim, its in record.findings
        )
        lines.append(
            f'<li><a id="{record.slug}"></a>'
            f'<a href="../{FOLDER}{record.slug}.html">{html.escape(record.title)}</a>'
            f"{bar(record)}<details><summary>{len(record.findings)} claims</summary>"
            f"<ul>{claims}</ul></details></li>"
        )
    key = ", ".join(f"{sign} {name}" for name, sign in verdicts.SIGNS.items())
    entries = "\n".join(f"/{FOLDER}{slug}" for slug in records())
    top, _mark, how = text.partition("\n## ")[0].partition("\n**")
    return (
        f"{top}\nA bar counts verdicts: {key}.\n\n"
        + f'```{{raw}} html\n<ul class="course-records">{"".join(lines)}</ul>\n```\n\n'
        + f"## How to read a verdict\n\n**{how}\n\n"
        + f"```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    )


def bar(record: Record, words: bool = False) -> str:
    """How many claims of a record have each verdict; ``words``: and which."""
    counts = Counter(its for _claim, its in record.findings)
    parts = "".join(
        f'<i data-sign="{sign}" style="flex-grow:{n}" title="{n} {name}">{sign} {n}{f" {name}" * words}</i>'
        for name, sign in verdicts.SIGNS.items()
        if (n := counts[name])
    )
    return f'<span class="bar">{parts}</span>'


def said(lines: str, name: str) -> str:
    """What a line of a finding says, such as "Asked for"; "" if there is none."""
    found = re.search(rf"^- {name}: (.*)", lines, re.M)
    return found[1] if found else ""


def judged(lines: str, its: str) -> tuple[list[tuple[str, float, float, float]], list[float], str] | None:
    """The intervals that a finding was judged by, each with its name; the limits; and on which side it holds.

    None where words alone were compared, or where the sentence has other numbers as well: a picture is drawn
    only if the intervals at its beginning, set against the limit, give the verdict that stands there.

    >>> judged("- Measured here: gain: t5 +0.5 (+0.4 to +0.6)\\n- Asked for: above 0.2\\n", "holds")
    ([('t5', 0.5, 0.4, 0.6)], [0.2], 'above')
    """
    here = said(lines, "Measured here")
    rule = re.fullmatch(rf"(above|below|between) ({NUMBER})(?: and ({NUMBER}))?", said(lines, "Asked for"))
    if not here or not rule:
        return None
    limits = [float(limit) for limit in rule.groups()[1:] if limit]
    judge = {"above": verdicts.above, "below": verdicts.below, "between": verdicts.within}[rule[1]]
    first = re.split(r"[;.] ", here)[0]
    found = [
        (one["name"].strip(" ,:").rpartition(": ")[2], *map(float, one.groups()[1:]))
        for one in re.finditer(rf"(?P<name>.*?)({NUMBER}) \(({NUMBER}) to ({NUMBER})\)", first)
    ]
    outcomes = [judge(Interval(*ends), limits[-1]) for _name, *ends in found]
    for n in (len(found), 1):
        if outcomes[:n] and verdicts.all_of(*outcomes[:n]).verdict == its:
            return found[:n], limits, rule[1]
    return None


def track(ground: str, mean: float, low: float, high: float) -> str:
    """A cell with an interval and its mean, in per cent of the width; ``ground`` is CSS for what is below."""
    return (
        f'<td class="track" style="{ground}"><i style="left:{low:.1f}%;width:{high - low:.1f}%"></i>'
        f'<b style="left:{mean:.1f}%"></b></td>'
    )


def signed(x: float, form: str = "g") -> str:
    """As it is printed, with a minus; what rounds to zero has no sign.

    >>> signed(-1.5), signed(-0.0004, ".3f")
    ('−1.5', '0.000')
    """
    return minus(format(x, form))


def minus(text: str) -> str:
    """A text whose numbers are as :func:`signed` writes them.

    >>> minus("-0.000 (-0.02 to +0.000), 1e-07")
    '0.000 (−0.02 to 0.000), 1e-07'
    """
    return re.sub(
        r"(?<![\w`−+-])[-+](?=\d)(0\.0+(?!\d))?", lambda sign: sign[1] or sign[0].replace("-", "−"), text
    )


def ticks(low: float, high: float, at: Callable[[float], float], most: int = 3) -> str:
    """The numbers of an axis; ``at`` says where one stands, in per cent; ``most``: steps between them."""
    return "".join(
        f'<small style="left:{at(x):.1f}%;translate:-{at(x):.1f}%">{signed(x)}</small>'
        for x in MaxNLocator(most).tick_values(low, high).round(9)
        if low <= x <= high
    )


def picture(lines: str, its: str) -> str:
    """The intervals as lines with their means, over the ground where the claim would hold, and their axis."""
    if not (known := judged(lines, its)):
        return ""
    found, limits, side = known
    places = max(len(one.partition(".")[2]) for one in re.findall(NUMBER, said(lines, "Measured here")))
    numbers = [*limits, *(each for _name, *ends in found for each in ends)]
    low, high = min(numbers), max(numbers)
    low, high = low - 0.12 * (high - low or 1), high + 0.12 * (high - low or 1)

    def at(x: float) -> float:
        return 100 * (x - low) / (high - low)

    left, right = (at(limits[0]) if side != "below" else 0), (at(limits[-1]) if side != "above" else 100)
    rows = "".join(
        f"<tr><td>{html.escape(name) if len(found) > 1 else ''}</td>"
        + track(f"--left:{left:.1f}%;--right:{right:.1f}%", *map(at, (mean, start, end)))
        + f"<td>{signed(mean, f'.{places}f')}</td></tr>"
        for name, mean, start, end in found
    )
    ends = " to ".join(map(signed, limits))
    words = {"above": f"holds above {ends} →", "below": f"← holds below {ends}", "between": f"holds: {ends}"}
    place = (left + right) / 2 if side == "between" else at(limits[0])
    back = place if side == "between" else 100 * (place > 60 if side == "above" else place > 40)
    return (
        '<table class="course-judged" role="presentation">'
        f'<tr><td></td><td><small style="left:{place:.1f}%;translate:-{back:.1f}%">{words[side]}</small>'
        "</td><td></td></tr>"
        f'{rows}<tr class="axis"><td></td><td>{ticks(low, high, at)}</td><td></td></tr></table>\n\n'
    )


def places(found: re.Match) -> str:
    """Names of lessons, side quests and records as links with their titles."""

    def link(name: str) -> str:
        if name in EXPERIMENTS:
            return linked(
                f"[{EXPERIMENTS[name].title}](results.md#{documents.slug(EXPERIMENTS[name].title)})"
            )
        pattern = f"{name}_*.ipynb" if name.isdigit() else f"deeper/{name}.ipynb"
        path = next((documents.ROOT / "notebooks").glob(pattern))
        return f"[{navigation.title(path)}](../{path.relative_to(documents.ROOT)})"

    return f"{found[1]}{', '.join(map(link, found[2].split(', ')))}"


def page(slug: str) -> str:
    """One record: what was done, the claims as cards, and below them the tables and the command."""
    record = records()[slug]
    top, *claims = re.split(r"^(?=\*\*)", record.text, maxsplit=1, flags=re.M)
    command, setup, *tables = top.strip().split("\n\n", 2)

    def card(found: re.Match) -> str:
        sign = verdicts.SIGNS[verdict(found)]
        lines = minus(ALSO.sub(places, found["lines"].rstrip()))
        lines = re.sub(r"^- ([^*\n:]{5,20}:) ?", r'- <span class="said">\1</span>', lines, flags=re.M)
        lines = re.sub(r"^- (\*\*.+?\*\*):", r"- \1", lines, flags=re.M)
        lines = re.sub(r"\([+−\d.]+ to [+−\d.]+\)", lambda its: its[0].replace(" ", "\u00a0"), lines)
        return (
            f'<div class="course-claim" data-sign="{sign}">\n\n**{found["claim"]}** ({found["source"]})\n\n'
            f"{picture(found['lines'], verdict(found))}{lines}\n\n</div>\n"
        )

    cards = FINDING.sub(card, "".join(claims))
    numbers = f"\n## The numbers\n\n{minus(tables[0])}" if tables else ""
    return (
        f"# {record.title}\n\n[All records](../docs/results.md), and [how to read a verdict]"
        f"(../docs/results.md#how-to-read-a-verdict)\n\n{setup}\n\n{bar(record, words=True)}\n\n{cards}"
        f"{numbers}\n## Measure it again\n\n{command}\n"
    )
