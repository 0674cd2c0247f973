"""``docs/results.md`` as pages: an index with all verdicts, and a page for each record.

The file stays one, because it is read on GitHub, too; here it would be forty screens long.
"""

from __future__ import annotations

import functools
import html
import re
import statistics
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from matplotlib.ticker import MaxNLocator

from course import verdicts
from course.experiments import EXPERIMENTS
from course.experiments.statistics import Interval
from workshop import documents, navigation
from workshop.names import spoken

INDEX = "docs/results"
FOLDER = "results/"
FINDING = re.compile(r"^\*\*(?P<claim>.+?)\*\* \((?P<source>.*?)\)\n\n(?P<lines>(?:- .*\n?)+)", re.M)
MEANT = re.compile(r"\*([A-Z][a-z ]+)\*: (.+?)\.\s", re.S)
"""A verdict, and what it means."""
VERDICT = re.compile(r"^- \*\*(.+?)\*\*", re.M)
ALSO = re.compile(r"^(- Also judged in: )(.*)$", re.M)
NUMBER = r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]\d+)?"
INTERVAL = re.compile(rf"({NUMBER})(?: ± {NUMBER})? \(({NUMBER}) to ({NUMBER})\)")
TABLE = re.compile(r"(?:^\|.*\|\n?){3,}", re.M)
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
UNIT = "(?:nats|tokens|characters)"
LINES = "Measured here", "At one rate for all"
"""Of a finding: those with its intervals."""


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


@functools.cache
def about() -> dict[str, dict[str, str]]:
    """What each record asks, and what came out, in a sentence each."""
    return tomllib.loads((Path(__file__).parent / "records.toml").read_text(encoding="utf-8"))


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
            f'<p><a href="../{FOLDER}{record.slug}.html">{html.escape(record.title)}</a> '
            f"<small>{html.escape(about()[record.slug]['asks'])}</small></p>"
            f"{bar(record.findings)}<details><summary>{len(record.findings)} claims</summary>"
            f"<ul>{claims}</ul></details></li>"
        )
    entries = "\n".join(f"/{FOLDER}{slug}" for slug in records())
    top, _mark, how = text.partition("\n## ")[0].partition("\n**")
    made = re.search(r"Generated from .*?\.(?=\s)\s*", top)[0]  # for those who want to measure it themselves
    measured, meant, many = (part.partition("** ")[2] for part in f"**{how}".strip().split("\n\n"))
    several = [each for record in records().values() for each in record.findings]
    return (
        f"{top.replace(made, '')}\n"
        + f"```{{raw}} html\n{totals(several, MEANT.findall(meant))}\n"
        + f'<ul class="course-records">{"".join(lines)}</ul>\n```\n\n'
        + f"## How to read a verdict\n\n{MEANT.sub('', meant).strip()}\n\n"
        + f"{folded('How it was measured', measured)}\n\n{folded('How many verdicts may be wrong', many)}\n\n"
        + f"{made}\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    )


def totals(findings: list[tuple[str, str]], meant: list[tuple[str, str]]) -> str:
    """How many verdicts there are of each kind, as one bar, and what each of them means."""
    counts = Counter(its for _claim, its in findings)
    parts = "".join(
        f'<i data-sign="{sign}" style="--n:{counts[name]}"></i>' for name, sign in verdicts.SIGNS.items()
    )
    rows = "".join(
        f'<div data-sign="{verdicts.SIGNS[name.lower()]}"><dt>{verdicts.SIGNS[name.lower()]} '
        f"{of(counts[name.lower()], name.lower())}</dt><dd>{html.escape(said)}</dd></div>"
        for name, said in meant
    )
    return (
        f'<div class="course-totals"><p><b>{len(findings)} claims</b> in {len(records())} records</p>'
        f'<span aria-hidden="true">{parts}</span><dl class="simple">{rows}</dl></div>'
    )


def bar(findings: list[tuple[str, str]], words: bool = False) -> str:
    """How many claims have each verdict, as parts of a bar; ``words``: as words, too."""
    counts = Counter(its for _claim, its in findings)
    parts = "".join(
        f'<i data-sign="{sign}" style="--n:{n}" title="{of(n, name)}">'
        f"{sign} {of(n, name) if words else n}</i>"
        for name, sign in verdicts.SIGNS.items()
        if (n := counts[name])
    )
    return f'<span class="bar{" words" * words}">{parts}</span>'


def of(n: int, verdict: str) -> str:
    """So many claims, with their verdict.

    >>> of(1, "does not hold"), of(2, "does not hold"), of(3, "holds"), of(2, "not shown")
    ('1 does not hold', '2 do not hold', '3 hold', '2 not shown')
    """
    return f"{n} {verdict if n == 1 else verdict.replace('does', 'do').replace('holds', 'hold')}"


def said(lines: str, name: str) -> str:
    """What a line of a finding says, such as "Asked for"; "" if there is none."""
    found = re.search(rf"^- {name}: (.*)", lines, re.M)
    return found[1] if found else ""


class Line(NamedTuple):
    """An interval of a finding: the list it stands in, its name there, its numbers, its unit; as printed."""

    heading: str
    name: str
    mean: float
    low: float
    high: float
    unit: str
    text: str


def intervals(text: str) -> list[Line]:
    """All intervals of a text, each with the words around it.

    >>> for its in intervals("gain: t5 +0.5 (+0.4 to +0.6), shaw 0 (-1 to 1) nats. Far off 2 (1 to 3) (all)"):
    ...     print(*its, sep=" | ")
    gain | t5 | 0.5 | 0.4 | 0.6 | nats | +0.5 (+0.4 to +0.6)
    gain | shaw | 0.0 | -1.0 | 1.0 | nats | 0 (-1 to 1)
     | Far off (all) | 2.0 | 1.0 | 3.0 |  | 2 (1 to 3)
    """
    found = []
    for sentence in re.split(r"(?<=[\w)])\. (?=[A-Z])", text):
        hits = list(INTERVAL.finditer(sentence))
        unit = re.search(rf"\) ({UNIT})\b", sentence)
        words = INTERVAL.split(sentence)[:: INTERVAL.groups + 1]
        heading = ""
        for n, hit in enumerate(hits):
            before = words[0] if n == 0 else _parted(words[n])[1]
            before = re.sub(rf"^[\s,;(]*({UNIT}\b[\s,;(]*)?(and )?", "", before).rstrip()
            head, _colon, name = before.rstrip(":").rpartition(": ")
            heading = head or heading * (not before.endswith(":"))
            after = re.sub(rf"^\s*{UNIT}?\s*", "", _parted(words[n + 1])[0])
            if after == ")" or after.startswith("(") and n == len(hits) - 1 and len(after) > 25:
                after = ""  # the end of a bracket, or said of all of them
            name = f"{name} {'' if after[:1] in ('', '(') else '… '}{after}" if name else after
            numbers = (float(each.replace(",", "")) for each in hit.groups())
            found.append(Line(heading, name.strip(), *numbers, unit[1] if unit else "", hit[0]))
    return found


def _parted(words: str) -> tuple[str, str]:
    """What stands between two intervals: the end of what was said of the first, and what is said of the next.

    >>> _parted(" (5 back); xpos "), _parted(" nats (to t5 ")
    ((' (5 back)', 'xpos '), ('', ' nats (to t5 '))
    """
    found = re.match(r"((?:\([^)]*\)|[^;,(])*?)(?:[;,] |\.?$)(.*)", words)
    return (found[1], found[2]) if found else ("", words)


def judged(lines: str, its: str) -> tuple[list[tuple[str, float, float, float]], list[float], str] | None:
    """The intervals that a finding was judged by, each with its name; the limits; and on which side it holds.

    None where words alone were compared, or where the sentence has other numbers as well: the ground on which
    it holds is drawn only if the intervals at its beginning, set against the limit, give the verdict that
    stands there.

    >>> judged("- Measured here: gain: t5 +0.5 (+0.4 to +0.6)\\n- Asked for: above 0.2\\n", "holds")
    ([('t5', 0.5, 0.4, 0.6)], [0.2], 'above')
    """
    asked, here = said(lines, "Asked for"), said(lines, "Measured here")
    asked = re.sub(r"0 by definition, and at most (\S+) as measured", r"between -\1 and \1", asked)
    rule = re.fullmatch(rf"(above|below|between) ({NUMBER})(?: and ({NUMBER}))?", asked)
    if not (found := intervals(here)) or not rule:
        return None
    limits = [float(limit) for limit in rule.groups()[1:] if limit]
    judge = {"above": verdicts.above, "below": verdicts.below, "between": verdicts.within}[rule[1]]
    if its == verdicts.IDENTITY:
        judge = verdicts.identity
    outcomes = [judge(Interval(one.mean, one.low, one.high), limits[-1]) for one in found]
    listed = sum(one.heading == found[0].heading for one in found) if found[0].heading else 0
    clause = len(INTERVAL.findall(re.split(r"[;.] ", here)[0]))
    again = len(found) if {one.name for one in found[:listed]} == {one.name for one in found} else 0
    for n in (*range(listed, 1, -1), clause, 1, again):
        if outcomes[:n] and verdicts.all_of(*outcomes[:n]).verdict == its:
            return [one[1:5] for one in found[:n]], limits, rule[1]
    return None


def track(ground: str, mean: float, low: float, high: float, tag: str = "td") -> str:
    """A cell with an interval and its mean, in per cent of the width; ``ground`` is CSS for what is below."""
    return (
        f'<{tag} class="track" style="{ground}"><i style="left:{low:.1f}%;width:{high - low:.1f}%"></i>'
        f'<b style="left:{mean:.1f}%"></b></{tag}>'
    )


def signed(x: float, form: str = "g") -> str:
    """As it is printed, with a minus; what rounds to zero has no sign.

    >>> signed(-1.5), signed(-0.0004, ".3f")
    ('−1.5', '0.000')
    """
    return minus(format(x, form))


def minus(text: str) -> str:
    """A text whose numbers are as :func:`signed` writes them, and powers of ten as in print.

    >>> minus("-0.000 (-0.02 to +0.000), 3.8e-07")
    '0.000 (−0.02 to 0.000), 3.8 × 10⁻⁷'
    """
    text = re.sub(r"(?<=\d)e([-+]\d+)", lambda its: f" × 10{str(int(its[1])).translate(RAISED)}", text)
    return re.sub(
        r"(?<![\w`−+-])[-+](?=\d)(0\.0+(?!\d))?", lambda sign: sign[1] or sign[0].replace("-", "−"), text
    )


def ticks(low: float, high: float, at: Callable[[float], float], most: int = 3) -> str:
    """The numbers of an axis; ``at`` says where one stands, in per cent; ``most``: steps between them."""
    return "".join(
        f'<small style="--at:{at(x):.1f}%">{signed(x, ",g")}</small>'
        for x in MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high).round(9)
        if low <= x <= high
    )


def answer(lines: str, its: str) -> str:
    """In a sentence, why the verdict is what it is: the record's own words, or what its numbers say.

    >>> answer("- Measured here: t5 +0.5 (+0.4 to +0.6)\\n- Asked for: above 0.2\\n- **Holds**\\n", "holds")
    'the whole interval lies above 0.2'
    """
    if own := re.search(r"^- \*\*.+?\*\*(?: †)?: (.+)", lines, re.M):
        return own[1]
    if not (known := judged(lines, its)):
        several = intervals(said(lines, "Measured here"))
        return "each condition is met in the whole interval" if several else "as asked for"
    found, limits, side = known
    if its == verdicts.IDENTITY:
        return f"0 by definition, and as measured no farther from it than {limits[-1]:g}"
    ends = " and ".join(map(signed, limits))
    several = len(intervals(said(lines, "Measured here"))) > len(found)
    if len(found) == 1:
        which = f"{spoken(found[0][0])}: the whole interval lies" if several else "the whole interval lies"
    else:
        which = "both intervals lie" if len(found) == 2 else f"all {len(found)} intervals lie"
    return f"{which} {side} {ends}"


def picture(lines: str, its: str) -> str:
    """All intervals of a finding as lines with their means and names, those of one unit over one axis.

    Those that the verdict is about lie over the ground on which the claim would hold.
    """
    known = judged(lines, its)
    rows = []
    for title in LINES:
        text = said(lines, title)
        other = re.search(r"So it would be \*(.+?)\*", text)
        above = title * (title != LINES[0]) + (f", where the verdict would be “{other[1]}”" if other else "")
        for n, one in enumerate(intervals(text)):
            heading = ": ".join(filter(None, (above, one.heading)))
            rows.append((one._replace(heading=heading), bool(known) and n < len(known[0])))
    if not rows:
        return ""
    longest = max(len(one.name) for one, _judged in rows)
    size = " short" * (longest < 17) + " long" * (longest > 34)
    charts = (
        f'<div class="course-judged{size}"{in_units(unit)}>'
        f"{chart(list(run), *known[1:] if known else ())}</div>"
        for unit, run in groupby(rows, lambda row: row[0].unit)
    )
    return f"{''.join(charts)}\n\n"


def in_units(unit: str) -> str:
    """For course.css: what to write behind each number.

    >>> print(in_units("nats"), in_units(""), sep="|")
     style="--unit:'nats'"|
    """
    return f" style=\"--unit:'{unit}'\"" if unit else ""


def chart(rows: list[tuple[Line, bool]], limits: list[float] = [], side: str = "") -> str:  # noqa: B006
    """Intervals over one axis, as cells of three columns: name, line and numbers.

    Each comes with whether it was judged: those lie over the ground between the limits.
    """
    about = any(judged for _one, judged in rows)
    numbers = [*(limits if about else ()), *(each for one, _judged in rows for each in (one.low, one.high))]
    if any(one.text[0] in "+-" for one, _judged in rows):
        numbers.append(0)  # of a difference
    low, high = min(numbers), max(numbers)
    low, high = low - 0.08 * (high - low or 1), high + 0.08 * (high - low or 1)

    def at(x: float) -> float:
        return 100 * (x - low) / (high - low)

    left = at(limits[0]) if about and side != "below" else 0
    right = at(limits[-1]) if about and side != "above" else 100
    cells, heading, words = [], "", holds(limits, side, at) if about else ""
    for one, judged in rows:
        if one.heading != heading:
            heading = one.heading
            cells.append(f'<b class="list">{in_words(heading[:1].upper() + heading[1:])}</b>')
        ground = f"--zero:{at(0):.1f}%;" * (low < 0 < high)
        if judged:
            ground += f"--left:{left:.1f}%;--right:{right:.1f}%"
        mean, *rest = re.split(r" (?=[(±])", minus(one.text))
        cells.append(
            f'<span class="name">{in_words(one.name)}</span> '
            + words * judged
            + track(ground, *map(at, (one.mean, one.low, one.high)), tag="span")
            + f' <span class="number">{mean} <small>{" ".join(rest)}</small></span> '
        )
        words *= not judged  # once
    return f'{"".join(cells)}<span class="axis">{ticks(low, high, at)}</span>'


def in_words(name: str) -> str:
    """A name, or words with names in them, as HTML. A length stays with its unit.

    >>> in_words("read at 4 L")
    'read at 4\\xa0L'
    """
    return re.sub(r"(?<=\d) L\b", "\u00a0L", html.escape(minus(spoken(name))))


def holds(limits: list[float], side: str, at: Callable[[float], float]) -> str:
    """The words above the ground on which a claim holds."""
    ends = " to ".join(map(signed, limits))
    words = {"above": f"holds above {ends} →", "below": f"← holds below {ends}", "between": f"holds: {ends}"}
    place = sum(map(at, limits)) / len(limits)
    back = place if side == "between" else 100 * (place > 60 if side == "above" else place > 40)
    style = f"left:{place:.1f}%;translate:-{back:.1f}%"
    return f'<span class="axis top"><small style="{style}">{words[side]}</small></span>'


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


def words_of(found: re.Match, drawn: bool) -> dict[bool, str]:
    """The record's own lines of a finding as a list: False, what is read at once; True, what is ``drawn``."""
    lines = found["lines"]
    seen = LINES * drawn + ("Asked for",) * bool(judged(lines, verdict(found)))
    words = {True: "", False: ""}
    for title, text in re.findall(r"^- ([^*\n:]{5,20}): (.*)", ALSO.sub(places, lines), re.M):
        text = re.sub(r"\([+−\d.]+ to [+−\d.]+\)", lambda its: its[0].replace(" ", "\u00a0"), minus(text))
        words[title in seen] += f'- <span class="said">{title}:</span>{text}\n'
    return words


def reason(found: re.Match) -> str:
    """Why the verdict is what it is, and whether it may be bad luck."""
    doubt = " [†](../docs/results.md#how-to-read-a-verdict)" * ("** †" in found["lines"])
    return f"{minus(answer(found['lines'], verdict(found)))}{doubt}"


def card(found: re.Match) -> str:
    """A claim: its verdict in a sentence, its intervals, and the record's words; what is drawn is folded."""
    its, lines = verdict(found), found["lines"]
    drawn = picture(lines, its)
    words = words_of(found, bool(drawn))
    return (
        f'<div class="course-claim" data-sign="{verdicts.SIGNS[its]}">\n\n'
        f"**{found['claim']}**\n\n"
        f'<b class="pill">{its.capitalize()}</b> <small>{found["source"]}</small>\n\n'
        f'<span class="why">{reason(found)}</span>\n\n'
        f"{drawn}{words[False]}\n"
        f"{folded('All the numbers', words[True]) if words[True] else ''}\n\n</div>\n"
    )


# ---- claims about one quantity, over one axis ----
class One(NamedTuple):
    """A claim that one interval decides: what was measured, the interval, the limits and their side."""

    found: re.Match
    line: Line
    limits: list[float]
    side: str

    @property
    def claim(self) -> str:
        return self.found["claim"]

    @property
    def asked(self) -> str:
        """The condition, in words."""
        ends = " and ".join(map(signed, self.limits))
        return f"holds {self.side} {ends}"


def single(found: re.Match) -> One | None:
    """A finding that one interval decides, or None."""
    if (known := judged(found["lines"], verdict(found))) is None or len(known[0]) != 1:
        return None
    line = intervals(said(found["lines"], "Measured here"))[0]
    return One(found, line, *known[1:])


def quantity(line: Line) -> str:
    """What an interval measures, in the record's words."""
    return f"{line.heading}: {line.name}" if line.heading else line.name


def same(one: str, other: str) -> bool:
    """Whether two quantities are one: all that one says, between its commas, the other says, too.

    What is set against something else is another quantity.

    >>> same("loss at the ends, 16 L against L", "16 L against L"), same("2 L against L", "16 L against L")
    (True, False)
    >>> same("distance of half the help", "distance of half the help, against that of the first angle")
    False
    """
    first, second = (set(each.split(", ")) for each in (one, other))
    changed = any(re.match(r"(against|minus|as|over|less)\b", part) for part in first ^ second)
    return (first <= second or second <= first) and not changed


def families(found: list[re.Match]) -> list[list[One] | re.Match]:
    """Findings in their order; those that one interval decides stand with all others of the same quantity.

    What is left alone stands with the others of its unit.
    """
    groups: list[list[One] | re.Match] = []
    for each in found:
        if not (one := single(each)):
            groups.append(each)
            continue
        near = [group for group in groups if isinstance(group, list) and _one_quantity([*group, one])]
        if not near:
            groups.append(near_one := [])
            near = [near_one]
        near[0].append(one)
        for other in near[1:]:
            near[0].extend(other)
            groups.remove(other)
    alone = [group for group in groups if isinstance(group, list) and len(group) == 1]
    for unit in {group[0].line.unit for group in alone} - {""}:
        first, *others = [group for group in alone if group[0].line.unit == unit]
        for other in others:
            first.extend(other)
            groups.remove(other)
    return groups


def _one_quantity(ones: list[One]) -> bool:
    """Whether the last measures what one of the others does."""
    *others, last = ones
    return any(
        other.line.unit == last.line.unit and same(quantity(other.line), quantity(last.line))
        for other in others
    )


def alike(claims: list[str], least: int = 4) -> list[tuple[str, list[int]]]:
    """Claims that end, or begin, with the same words: these words, and which claims; "": stands alone.

    >>> alike(["A reads long texts as well", "B breaks", "C reads long texts as well"])
    [('… reads long texts as well', [0, 2]), ('', [1])]
    >>> alike(["A scaling by s reads far: PI", "A scaling by s reads far: YaRN"])
    [('A scaling by s reads far: …', [0, 1])]
    """
    found, left = [], list(range(len(claims)))
    while left:
        first = claims[left[0]].split()
        best = ("", left[:1])
        for sign in (-1, 1):
            for n in range(len(first) - 1, least - 1, -1):
                words = first[::sign][:n][::sign]
                group = [k for k in left if claims[k].split()[::sign][:n][::sign] == words]
                group = [k for k in group if len(claims[k].split()) <= 2 * n + 2]  # what differs is short
                if left[0] in group and len(group) > len(best[1]):
                    text = " ".join(words)
                    best = (f"… {text}" if sign < 0 else f"{text} …", group)
        found.append(best)
        left = [k for k in left if k not in best[1]]
    return found


def span(ones: list[One]) -> tuple[float, float]:
    """The ends of an axis for all intervals but those that would squeeze the others into a corner.

    >>> lines = [Line("", "", x, x - 1, x + 1, "", "+") for x in (1, 2, 3, 90)]
    >>> [round(x, 2) for x in span([One(None, line, [0.0], "above") for line in lines])]
    [-0.32, 4.96]
    """
    signs = [0.0] * any(one.line.text[0] in "+-" for one in ones)
    fixed = signs + [limit for one in ones for limit in one.limits]
    middle = statistics.median([one.line.mean for one in ones])
    kept = sorted((one.line for one in ones), key=lambda line: abs(line.mean - middle))

    def ends(lines: list[Line]) -> tuple[float, float]:
        numbers = [*fixed, *(x for line in lines for x in (line.low, line.high))]
        return min(numbers), max(numbers)

    def wide(lines: list[Line]) -> float:
        low, high = ends(lines)
        return high - low

    while len(kept) > 2 and len(kept) > 0.7 * len(ones) and wide(kept) > 4 * wide(kept[:-1]) > 0:
        kept = kept[:-1]
    low, high = ends(kept)
    least, most = ends([one.line for one in ones])
    room = 0.08 * (high - low or 1)
    return low - room * (1 + 2 * (least < low)), high + room * (1 + 2 * (most > high))  # for an arrow


def forest(ones: list[One]) -> str:
    """Claims about one quantity as rows over one axis; each row opens to the record's words."""
    low, high = span(ones)

    def at(x: float) -> float:
        return 100 * (min(max(x, low), high) - low) / (high - low)

    title = quantity(ones[0].line)
    if not all(
        _one_quantity([*ones[:k], *ones[k + 1 :], one]) for k, one in enumerate(ones) if len(ones) > 1
    ):
        title = f"differences in {ones[0].line.unit}"
    asked, rows = {one.asked for one in ones}, ""
    for words, group in sorted(alike([one.claim for one in ones]), key=lambda its: not its[0]):
        members = [ones[k] for k in group]
        shared = {one.asked for one in members}
        if words:
            condition = f" <small>{shared.pop()}</small>" if len(shared) == 1 < len(asked) else ""
            rows += f'<p class="shared"><b>{html.escape(words)}</b>{condition}</p>\n\n'
            members.sort(key=lambda one: one.line.mean)
        told = len({one.asked for one in members}) == 1 if words else len(asked) == 1
        for one in members:
            more = [part for part in quantity(one.line).split(", ") if part not in title.split(", ")]
            said = [", ".join(more), "" if told else one.asked, one.found["source"]]
            rows += entry(one, words, " · ".join(map(in_words, filter(None, said))), at)
    condition = f" · {asked.pop()}" if len(asked) == 1 else ""
    title = in_words(title[:1].upper() + title[1:])
    return (
        '<div class="course-family">\n'
        f'<p class="measured"><b>{title}</b><small>{condition}</small></p>\n\n'
        f'{rows}<div class="scale"><span class="axis">{ticks(low, high, at, 4)}</span></div>\n</div>\n\n'
    )


def entry(one: One, shared: str, said: str, at: Callable[[float], float]) -> str:
    """A row of a forest: its verdict's sign, the claim, the interval on its ground, its number."""
    its, line = verdict(one.found), one.line
    sign, claim = verdicts.SIGNS[its], html.escape(one.claim)
    bare = html.escape(shared.strip("… "))
    if shared.startswith("…"):
        claim = f'{claim.removesuffix(bare).rstrip(", ")}<span class="visually-hidden"> {bare}</span>'
    elif shared:
        rest = claim.removeprefix(bare).strip()
        claim = f'<span class="visually-hidden">{bare} </span>{rest[:1].upper()}{rest[1:]}'
    left = at(one.limits[0]) if one.side != "below" else 0
    right = at(one.limits[-1]) if one.side != "above" else 100
    ground = f"--zero:{at(0):.1f}%;" * (0 < at(0) < 100) + f"--left:{left:.1f}%;--right:{right:.1f}%"
    drawn = track(ground, *map(at, (line.mean, line.low, line.high)), tag="span")
    if (place := at(line.mean)) in (0, 100):  # beyond the axis
        arrow = f"{signed(line.mean)} →" if place else f"← {signed(line.mean)}"
        drawn = f'<span class="track" style="{ground}"><em data-end="{place:.0f}">{arrow}</em></span>'
    mean, *rest = re.split(r" (?=[(±])", minus(line.text))
    words = words_of(one.found, True)
    return (
        f'<details class="course-claim" data-sign="{sign}"><summary><b class="sign" title="{its}">{sign}</b>'
        f'<span class="what"><b>{claim}</b> <small>{said}</small></span>{drawn}'
        f'<span class="number">{mean} {line.unit} <small>{" ".join(rest)}</small></span></summary>\n\n'
        f'<b class="pill">{its.capitalize()}</b> <span>{reason(one.found)}</span>\n\n'
        f"{words[False]}{words[True]}\n</details>\n\n"
    )


def folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def table(found: re.Match) -> str:
    """A table in Markdown as HTML: what neighbouring rows have in common stands once, above them.

    Columns of one rate for all go where they repeat those before them: there was no other rate.

    >>> rows = "| n | of | x |\\n|---|---|---|\\n| 1 | t5 | 2 |\\n| 1 | shaw | 3e+09 |\\n"
    >>> re.findall("<(?:t[hd]|span)[^>]*>([^<]+)<", table(TABLE.search(rows)))
    ['of', 'x', 'n 1', 'T5 bias', '2', 'Shaw', '3 × 10⁹']
    """
    head, _line, *rows = (
        [cell.strip() for cell in line[1:-1].split("|")] for line in found[0].split("\n") if line
    )
    one = next((n for n, each in enumerate(head) if each.startswith("at one rate")), len(head))
    if all(row[one:] == row[2 * one - len(head) : one] for row in rows):
        head, rows = head[:one], [row[:one] for row in rows]
    shared = 0
    while len({tuple(row[: shared + 1]) for row in rows}) <= len(rows) / 2:
        shared += 1
    names = [f"at one rate: {each}" if n > one else each for n, each in enumerate(head)]
    bodies = []
    for values, group in groupby(rows, lambda row: row[:shared]):
        above = " · ".join(map(together, head, values))
        above = (
            f'<tr><th scope="rowgroup" colspan="{len(head) - shared}"><span>{minus(above)}</span></th></tr>'
        )
        lines = "".join(cells(row[shared:], names[shared:], same_at(row, one)) for row in group)
        bodies.append(f"<tbody>{above * bool(values)}{lines}</tbody>")
    heads = "".join(f'<th scope="col">{of_length(each)}</th>' for each in head[shared:])
    again = "<small>Without a line for one rate, the numbers are the same there.</small>"
    again *= any(same_at(row, one) for row in rows)  # on a phone
    many = " many" * (len(head) - shared > 4)
    return (
        f'```{{raw}} html\n<div class="pst-scrollable-table-container course-numbers{many}"><table><thead>'
        f"<tr>{heads}</tr></thead>{''.join(bodies)}</table>{again}</div>\n```\n"
    )


def together(head: str, value: str) -> str:
    """What a column says of a row, in words.

    >>> together("width, layers", "32, 2"), together("size", "1")
    ('width 32, layers 2', 'size 1')
    """
    pairs = list(zip(head.split(", "), value.split(", "), strict=False))
    return ", ".join(map(" ".join, pairs)) if len(pairs) == value.count(", ") + 1 else f"{head} {value}"


def of_length(head: str) -> str:
    """A column's name as HTML; an L at its end does not stand alone on a line.

    >>> of_length("loss at L")
    'loss at\\xa0L'
    """
    return re.sub(r" L$", "\u00a0L", html.escape(head))


def same_at(row: list[str], one: int) -> int:
    """How many cells at the end of a row, from ``one`` on, repeat those before them.

    >>> same_at(["t5", "2", "3", "2", "3"], 3), same_at(["t5", "2", "3", "2", "4"], 3)
    (2, 0)
    """
    more = len(row) - one
    return more if more > 0 and row[one:] == row[one - more : one] else 0


def cells(row: list[str], head: list[str], same: int = 0) -> str:
    """A row of a table: its name, and numbers whose intervals stand back; each knows its column's name.

    The last ones are the ``same`` as those before them.
    """
    name, *values = (html.escape(minus(spoken(cell))) for cell in row)
    values = [re.sub(r"(?<=\S) (?:± \S+ )?\(.+\)$", r"<small>\g<0></small>", each) for each in values]
    inner = "".join(
        f'<td data-name="{of_length(title)}"{" data-same" * (n >= len(values) - same)}>{each}</td>'
        for n, (title, each) in enumerate(zip(head[1:], values, strict=True))
    )
    return f'<tr><th scope="row">{name}</th>{inner}</tr>'


def hours(seconds: int) -> str:
    """How long a record took, as one says it.

    >>> hours(836), hours(10003)
    ('14 min', '2 h 47 min')
    """
    whole, minutes = divmod(round(seconds / 60), 60)
    return f"{whole} h {minutes} min" if whole else f"{minutes} min"


def page(slug: str) -> str:
    """One record: what was done, the claims as cards, and below them the tables and the command."""
    record = records()[slug]
    top, *claims = re.split(r"^(?=\*\*)", record.text, maxsplit=1, flags=re.M)
    command, setup, *tables = top.strip().split("\n\n", 2)
    command = re.sub(r"^`(.+?)`\s*—\s*", r"```sh\n\1\n```\n\n", command)
    command = re.sub(r"\b(\d{3,}) s\b", lambda found: hours(int(found[1])), command)

    shown = "".join(
        forest(group) if isinstance(group, list) else card(group)
        for group in families([*FINDING.finditer("".join(claims))])
    )
    how = " In each row the tinted part is where its claim would hold." * ("course-family" in shown)
    numbers = f"\n## The numbers\n\n{TABLE.sub(table, tables[0])}" if tables else ""
    return (
        f"# {record.title}\n\n{about()[slug]['found']}\n\n{bar(record.findings, words=True)}\n\n"
        f'<div class="course-note">\n\n{setup}{how} '
        "[All records](../docs/results.md) · [how to read a verdict]"
        f"(../docs/results.md#how-to-read-a-verdict)\n\n</div>\n\n{shown}"
        f"{numbers}\n## Measure it again\n\n{command}\n"
    )
