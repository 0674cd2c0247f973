"""``docs/results.md`` as pages: an index with all verdicts, and a page for each record.

The file stays one, because it is read on GitHub, too; here it would be forty screens long.
"""

from __future__ import annotations

import functools
import html
import math
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from forest import Axis, minus, signed

from course import verdicts
from course.experiments import EXPERIMENTS, tuning
from course.experiments.rates import EQUAL
from course.experiments.record import Record as SweepRecord
from course.experiments.statistics import Interval
from workshop import documents, navigation
from workshop.names import spoken

INDEX = "docs/results"
FOLDER = "results/"
FINDING = re.compile(r"^\*\*(?P<claim>.+?)\*\* \((?P<source>.*?)\)\n\n(?P<lines>(?:- .*\n?)+)", re.M)
MEANT = re.compile(r"\*([A-Z][a-z ]+)\*:\s(.+?)\.\s", re.S)
"""A verdict, and what it means."""
SHORT = {
    verdicts.HOLDS: "true",
    verdicts.FAILS: "false",
    verdicts.OPEN: "too close to call",
    verdicts.IDENTITY: "true by definition",
}
"""The same in a word, below the bar of all."""
VERDICT = re.compile(r"^- \*\*(.+?)\*\*", re.M)
ALSO = re.compile(r"^(- Also judged in: )(.*)$", re.M)
NUMBER = r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]\d+)?"
INTERVAL = re.compile(rf"({NUMBER})(?: ± {NUMBER})? \(({NUMBER}) to ({NUMBER})\)")
TABLE = re.compile(r"(?:^\|.*\|\n?){3,}", re.M)
UNIT = "(?:nats|tokens|characters)"
MEASURES = {
    "accuracy": "accuracy|right answers|keys found",
    "mean reciprocal rank": "mean reciprocal rank",
    "steps of training": r"\bsteps\b",
    "time, in multiples": "^time of",
    "share of the help that is left": "share of .* help",
    "scores far away, beside those nearby": r"mean score|spread",
    "distance, in multiples": "distance of half|times as far",
}
"""What numbers without a unit measure, by the words around them."""
SAID = {
    "nats": "differences in loss (nats)",
    "steps of training": "more steps of training",
    "characters": "how many characters the position is off",
}
OURS = "a question of this course"
GROUPS = {
    "Longer texts": (
        "train-short-test-long",
        "train-short-test-long-in-chinese",
        "a-longer-context",
        "a-constant-for-each",
        "who-uses-what-is-far",
        "memory-and-position",
        "moved-sentences",
        "tasks-at-unseen-lengths",
    ),
    "Order and distance": (
        "word-order",
        "no-position-at-all",
        "clipping-distance",
        "decay-and-rope",
        "the-lanes-of-the-playground",
    ),
    "How positions are built in": ("hybrids-of-absolute-and-relative", "fusion", "positions-in-images"),
    "Bigger and real models": (
        "a-gap-in-the-positions-of-a-real-model",
        "does-the-gap-close-with-size",
        "does-the-gap-close-with-size-on-a-gpu",
    ),
    "Cost and training": ("what-a-position-costs-at-run-time", "the-scoreboard", "a-rate-for-each"),
}
"""All records, as the index lists them: the fullest first."""
LETTER = re.compile(r"(?:(?<=\b[rW])|(?<=\bPE))_([ijor]+)\b")
"""The index of a letter, as claims write it."""
LOWERED = str.maketrans("ijor", "ᵢⱼₒᵣ")


class Line(NamedTuple):
    """An interval of a claim: the list it stands in, its name there, its numbers, its unit; as printed."""

    heading: str
    name: str
    mean: float
    low: float
    high: float
    unit: str
    text: str

    @property
    def quantity(self) -> str:
        """What it measures, in the record's words."""
        return ": ".join(filter(None, (self.heading, self.name)))

    @property
    def measure(self) -> str:
        """What numbers on one axis have in common: a unit, a kind, or else the quantity itself."""
        kinds = (kind for kind, words in MEASURES.items() if re.search(words, self.quantity, re.I))
        return self.unit or next(kinds, self.heading or self.quantity)


class Rule(NamedTuple):
    """A condition: its side, and its limits."""

    side: str
    limits: tuple[float, ...]

    def __str__(self) -> str:
        """
        >>> print(Rule("between", (-0.1, 0.1)), Rule("below", (-0.5,)), Rule("between", (0, 0)))
        true\xa0within\xa00.1\xa0of\xa00 true\xa0below\xa0−0.5 true\xa0at\xa00
        """
        low, high = self.limits[0], self.limits[-1]
        words = f"{self.side} {' and '.join(map(signed, self.limits))}"
        if self.side == "between" and low == -high:
            words = f"within {signed(high)} of 0" if high else "at 0"
        return f"true {words}".replace(" ", "\u00a0")

    @property
    def ground(self) -> tuple[float, float]:
        """The numbers for which it is met."""
        ends = {"above": (self.limits[0], math.inf), "below": (-math.inf, self.limits[0])}
        return ends.get(self.side, (self.limits[0], self.limits[-1]))

    def judge(self, line: Line, its: str) -> verdicts.Outcome:
        """What an interval says of it; ``its`` is the verdict of the claim."""
        judges = {"above": verdicts.above, "below": verdicts.below, "between": verdicts.within}
        judge = verdicts.identity if its == verdicts.IDENTITY else judges[self.side]
        return judge(Interval(line.mean, line.low, line.high), self.limits[-1])


@dataclass(frozen=True)
class Claim:
    """A claim of a record, its source, and its lines there."""

    text: str
    source: str
    lines: str

    @property
    def verdict(self) -> str:
        """As ``verdicts.SIGNS`` has it."""
        return VERDICT.search(self.lines)[1].lower()

    @property
    def sign(self) -> str:
        return verdicts.SIGNS[self.verdict]

    def said(self, name: str) -> str:
        """What one of its lines says, such as "Asked for"; "" if there is none."""
        found = re.search(rf"^- {name}: (.*)", self.lines, re.M)
        return found[1] if found else ""

    @property
    def rules(self) -> list[Rule]:
        """Its conditions; none where words alone were compared.

        >>> for rule in Claim("", "", "- Asked for: the gap above 0, and its change below -1\\n").rules:
        ...     print(*rule)
        above (0.0,)
        below (-1.0,)
        """
        ends = r"0 by definition, and at most (\S+) as measured"
        parts = re.sub(ends, r"between -\1 and \1", self.said("Asked for")).split(", and ")
        rule = rf".*?\b(above|below|between) ({NUMBER})(?: and ({NUMBER}))?"
        found = [re.fullmatch(rule, part) for part in parts]
        if not all(found):
            return []
        return [Rule(its[1], tuple(float(x) for x in its.groups()[1:] if x)) for its in found]

    @functools.cached_property
    def judged(self) -> list[tuple[Line, Rule | None]]:
        """What was measured, with the conditions; one that decides alone stands alone.

        An interval has its condition only if all that have one give the verdict that stands there.

        >>> lines = "- Measured here: gain: t5 2 (1 to 3), shaw 0 (-1 to 1)\\n- Asked for: above 0\\n"
        >>> print(*Claim("", "", f"{lines}- **Not shown**\\n").judged[1][1:])
        true\xa0above\xa00
        """
        here = self.said("Measured here")
        found = intervals(here)
        for rules in _in_turn(found, self.rules, here):
            pairs = list(zip(found, rules, strict=True))
            outcomes = [rule.judge(line, self.verdict) for line, rule in pairs if rule]
            if outcomes and verdicts.all_of(*outcomes).verdict == self.verdict:
                return [pair for pair in pairs if pair[1]] if len(outcomes) == 1 else pairs
        return [(line, None) for line in found]

    @property
    def lone(self) -> bool:
        """Does one interval decide it?"""
        return len(self.judged) == 1 and self.judged[0][1] is not None

    @property
    def drawn(self) -> bool:
        """Does the ground of a condition stand behind an interval?"""
        return any(rule for _line, rule in self.judged)

    @property
    def measure(self) -> str:
        """Of all that was measured; "" if there was nothing, or more than one."""
        found = {line.measure for line, _rule in self.judged}
        return found.pop() if len(found) == 1 else ""

    @property
    def quantity(self) -> str:
        """Of all that was measured, in the record's words; "" if each line has its own."""
        heads = {line.heading for line, _rule in self.judged}
        if len(heads) == 1 and "" not in heads:
            return heads.pop()
        return self.judged[0][0].quantity if self.lone else ""

    def like(self, other: Claim) -> bool:
        """Does it measure what the other does?"""
        known = self.quantity and other.quantity and self.measure == other.measure
        return bool(known) and same(self.quantity.lower(), other.quantity.lower())

    @property
    def condition(self) -> str:
        """What is asked for, in words."""
        asked = self.said("Asked for")
        return str(self.rules[0]) if len(self.rules) == 1 else f"asked for: {minus(asked)}" * bool(asked)

    @property
    def start(self) -> str:
        """What is said before a long list that no interval draws, or how it begins; "" if there is none.

        >>> Claim("", "", "- Measured here: of 8 pairs 5: a; b; c; d; e\\n").start
        'of 8 pairs 5: a; b …'
        >>> Claim("", "", "- Measured here: 5 of 8 pairs. The pairs: a; b; c; d; e\\n").start
        '5 of 8 pairs'
        """
        first, *more = re.split(r"\. (?=[A-Z])", self.said("Measured here"))
        if more and not self.judged and first.count("; ") < 3:
            return first
        listed = self.said("Measured here").split("; ")
        return f"{'; '.join(listed[:2])} …" * (len(listed) > 4 and not self.judged)

    @property
    def words(self) -> str:
        """Its verdict, in the record's words why, and its lines there as a list."""
        why = re.search(r"^- \*\*.+?\*\*(?: †)?: (.+)", self.lines, re.M)
        doubt = " [†](../docs/results.md#how-to-read-a-verdict)" * ("** †" in self.lines)
        text = f'<b class="pill">{self.verdict.capitalize()}</b> {minus(why[1]) if why else ""}{doubt}\n\n'
        for title, words in re.findall(r"^- ([^*\n:]{5,20}): (.*)", ALSO.sub(places, self.lines), re.M):
            if title == "Asked for" and len(self.rules) != 1 and not self.drawn:
                continue  # its row has these very words
            ends = re.compile(r"\([+−\d.]+ to [+−\d.]+\)")
            words = ends.sub(lambda its: its[0].replace(" ", "\u00a0"), minus(words))
            text += f'- <span class="said">{title}:</span>{words}\n'
        return text


def _in_turn(found: list[Line], rules: list[Rule], here: str) -> list[list[Rule | None]]:
    """Which intervals a condition may be about: those of the first list or clause, or the first, or all.

    Several conditions have one each; one more interval is an aside.
    """
    if not found or len(rules) != 1:
        more = len(found) - len(rules)
        return [rules + [None] * more] if rules and more in (0, 1) else []
    listed = sum(one.heading == found[0].heading for one in found) if found[0].heading else 0
    clause = len(INTERVAL.findall(re.split(r"[;.] ", here)[0]))
    several = (*range(listed, 1, -1), clause, 1, len(found))
    return [rules * n + [None] * (len(found) - n) for n in several]


@dataclass(frozen=True)
class Record:
    """A section of the file: its title, its anchor there, which is its page here, and its text."""

    title: str
    slug: str
    text: str

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """What it judges, in the order of the file."""
        found = FINDING.findall(LETTER.sub(lambda its: its[1].translate(LOWERED), self.text))
        return [Claim(*its) for its in found]


@functools.cache
def records() -> dict[str, Record]:
    """All sections by their anchors, in the order of the file."""
    text = (documents.ROOT / f"{INDEX}.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)\n", text, flags=re.M)
    found = zip(parts[1::2], map(documents.slug, parts[1::2]), parts[2::2], strict=True)
    return {slug: Record(title, slug, body) for title, slug, body in found}


@functools.cache
def about() -> dict[str, dict[str, str]]:
    """What each record asks, and what came out, in a sentence each."""
    return tomllib.loads((Path(__file__).parent / "records.toml").read_text(encoding="utf-8"))


def linked(text: str) -> str:
    """``text`` with links to a section of the file as links to its page.

    >>> linked("[it](../docs/results.md#word-order), [all](results.md)")
    '{doc}`it </results/word-order>`, [all](results.md)'
    """
    known = rf"\[([^][`]+)\]\((?:\.\./)*(?:docs/)?results\.md#({'|'.join(records())})\)"
    return re.sub(known, rf"{{doc}}`\1 </{FOLDER}\2>`", text)


def index(text: str) -> str:
    """The file's first part, and a row for each record: what came out, and how many claims hold."""
    several = [claim for record in records().values() for claim in record.claims]
    entries = "\n".join(f"/{FOLDER}{slug}" for group in GROUPS.values() for slug in group)
    top, _mark, how = text.partition("\n## ")[0].partition("\n**")
    made = re.search(r"Generated from .*?\.(?=\s)\s*", top)[0]  # for those who want to measure it themselves
    measured, meant, many = (part.partition("** ")[2] for part in f"**{how}".strip().split("\n\n"))
    signs = "\n".join(
        f"- **{verdicts.SIGNS[name.lower()]} {name}**: {said}." for name, said in MEANT.findall(meant)
    )
    groups = "".join(
        f"## {title}\n\n```{{raw}} html\n"
        f'<ul class="course-records">{"".join(map(listing, slugs))}</ul>\n```\n\n'
        for title, slugs in GROUPS.items()
    )
    return (
        f"{top.replace(made, '')}\n\n```{{raw}} html\n{totals(several)}\n```\n\n{groups}"
        + f"## How to read a verdict\n\n{signs}\n\n{MEANT.sub('', meant).strip()}\n\n"
        + f"{folded('How it was measured', measured)}\n\n{folded('How many verdicts may be wrong', many)}\n\n"
        + f"{made}\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    )


def listing(slug: str) -> str:
    """A record in the index: what came out, a square for each claim, and how many of each verdict."""
    record = records()[slug]
    return (
        f'<li><a id="{slug}"></a><p><a href="../{FOLDER}{slug}.html">{html.escape(record.title)}</a> '
        f"<small>{html.escape(about()[slug]['found'])}</small></p>"
        f"{parts(record.claims)}{bar(record.claims)}</li>"
    )


def totals(claims: list[Claim]) -> str:
    """How many verdicts there are of each kind, as one bar, and what each of them means."""
    rows = "".join(
        f'<div data-sign="{sign}" style="--n:{n}"><dt>{sign} {of(n, name)}</dt><dd>{SHORT[name]}</dd></div>'
        for name, sign, n in tally(claims)
    )
    return (
        f'<div class="course-totals"><p><b>{len(claims)} claims</b> in {len(records())} records. '
        f"Below, beside what came out of a record, stands a square for each of its claims.</p>"
        f'{parts(claims)}<dl class="simple">{rows}</dl></div>'
    )


def tally(claims: list[Claim]) -> list[tuple[str, str, int]]:
    """Each verdict that a claim has, its sign, and how many have it."""
    counts = Counter(claim.verdict for claim in claims)
    return [(name, sign, counts[name]) for name, sign in verdicts.SIGNS.items() if counts[name]]


def parts(claims: list[Claim]) -> str:
    """How many claims have each verdict, as lengths."""
    drawn = (f'<i data-sign="{sign}" style="--n:{n}"></i>' for _name, sign, n in tally(claims))
    return f'<span class="parts" aria-hidden="true">{"".join(drawn)}</span>'


def bar(claims: list[Claim], words: bool = False) -> str:
    """How many claims have each verdict; ``words``: in words, too."""
    shown = ""
    for name, sign, n in tally(claims):
        said = of(n, name)
        shown += f'<i data-sign="{sign}" title="{said}">{sign} {said if words else n}</i>'
    return f'<span class="bar{" words" * words}">{shown}</span>'


def of(n: int, verdict: str) -> str:
    """So many claims, with their verdict.

    >>> of(1, "does not hold"), of(2, "does not hold"), of(3, "holds"), of(2, "not shown")
    ('1 does not hold', '2 do not hold', '3 hold', '2 not shown')
    """
    return f"{n} {verdict if n == 1 else verdict.replace('does', 'do').replace('holds', 'hold')}"


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
            found.append(Line(heading, name.strip(" ,"), *numbers, unit[1] if unit else "", hit[0]))
    return found


def _parted(words: str) -> tuple[str, str]:
    """What stands between two intervals: the end of what was said of the first, and what is said of the next.

    >>> _parted(" (5 back); xpos "), _parted(" nats (to t5 ")
    ((' (5 back)', 'xpos '), ('', ' nats (to t5 '))
    """
    found = re.match(r"((?:\([^)]*\)|[^;,(])*?)(?:[;,] |\.?$)(.*)", words)
    return (found[1], found[2]) if found else ("", words)


def in_words(text: str) -> str:
    """A name, or words with names in them, as HTML; a number stays with the word it belongs to.

    >>> in_words("read at 4 L, at distance 0")
    'read at\\xa04\\xa0L, at distance\\xa00'
    """
    return bound(html.escape(minus(spoken(text))))


def bound(text: str) -> str:
    """The same, with what a line does not tear apart."""
    return re.sub(r" (?=L\b|=)|(?<=[a-z=]) (?=\d)", "\u00a0", text.replace("NTK-a", "NTK\u2011a"))


def places(found: re.Match) -> str:
    """Names of lessons, side quests and records as links with their titles."""

    def link(name: str) -> str:
        if name in EXPERIMENTS:
            title = EXPERIMENTS[name].title
            return f"{{doc}}`{title} </{FOLDER}{documents.slug(title)}>`"
        pattern = f"{name}_*.ipynb" if name.isdigit() else f"deeper/{name}.ipynb"
        path = next((documents.ROOT / "notebooks").glob(pattern))
        return f"[{navigation.title(path)}](../{path.relative_to(documents.ROOT)})"

    return f"{found[1]}{', '.join(map(link, found[2].split(', ')))}"


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


class Family(NamedTuple):
    """Claims about one quantity, or about several of one kind; what they are called; their axis."""

    claims: list[Claim]
    title: str
    axis: Axis | None = None


def families(claims: list[Claim]) -> list[Family]:
    """Claims in their order, those about one quantity together, and what is left alone by its kind.

    All of a kind have one axis; what would be too small to be read there has a finer one.
    """
    groups: list[list[Claim]] = []
    for claim in claims:
        near = [group for group in groups if any(map(claim.like, group))]
        joined = [*(other for group in near for other in group), claim]
        place = groups.index(near[0]) if near else len(groups)
        groups[place : place + 1] = [joined]
        groups = [group for group in groups if not any(group is other for other in near)]
    found = []
    for measure in dict.fromkeys(group[0].measure for group in groups):
        several, fine = [group for group in groups if group[0].measure == measure], ""
        if not measure:
            found += [Family(group, "") for group in several]
            continue
        while several:
            axis = scale([claim for group in several for claim in group])
            small = [group for group in several if 6 * spread(group, axis) < axis.high - axis.low]
            small = small if len(small) < len(several) else []
            large = [group for group in several if not any(group is other for other in small)]
            axis = scale([claim for group in large for claim in group])
            alone = [claim for group in large if len(group) == 1 for claim in group]
            if len(alone) > 1:
                large = [group for group in large if len(group) > 1] + [alone]
            found += [Family(group, called(group, measure) + fine, axis) for group in large]
            several, fine = small, " · finer scale"
    return sorted(found, key=lambda its: not any(claim.judged for claim in its.claims))


def spread(group: list[Claim], axis: Axis) -> float:
    """How much of an axis a group needs; from zero on, where that is on it."""
    its = scale(group)
    ends = [its.low, its.high, *([0.0] if axis.low < 0 < axis.high else [])]
    return max(ends) - min(ends)


def called(group: list[Claim], measure: str) -> str:
    """What all claims of a group measure, as far as their words agree; else their kind."""
    first, *others = [claim.quantity.split(", ") for claim in group]
    shared = [part for part in first if all(part.lower() in map(str.lower, its) for its in others)]
    if not shared and all(map(group[0].like, group[1:])):
        shared = [part for part in first if any(part in its for its in others)]
    title = ", ".join(shared) or SAID.get(measure, measure)
    line = group[0].judged[0][0]
    return title.replace("…", figures(line, [line])[0]) if len(group) == 1 else title


def family(its: Family) -> str:
    """Its claims as rows over its axis; each row opens to the record's words."""
    rows, most = "".join(row(claim, its) for claim in its.claims), its.axis and its.axis.most()
    if not its.axis:
        return f'<div class="course-family">\n{rows}</div>\n\n'
    return (
        f'<div class="course-family" style="{its.axis.grid(most)}">\n<div class="measured">'
        f"<span>{in_words(its.title)}</span> "
        f'<span class="axis" data-above>{its.axis.ticks(most)}</span></div>\n\n{rows}</div>\n\n'
    )


def row(claim: Claim, its: Family) -> str:
    """A claim's row: its sign, its words, and each of its intervals on its ground, with its numbers.

    The axis is that of its family; a claim of several kinds has one for each. On a phone it stands below.
    """
    readings, heading, rule_before = "", claim.quantity * (not claim.lone), None
    beside = [line for other in its.claims for line, _rule in other.judged] if its.axis else []
    for _measure, run in groupby(claim.judged, lambda pair: pair[0].measure):
        pairs = list(run)
        axis = its.axis or scale([claim], pairs)
        ticks = axis.ticks(axis.most())
        above = f'<span class="reading"><span class="axis" data-above>{ticks}</span></span>'
        above *= not its.axis
        for line, rule in pairs:
            mean, ends = figures(line, beside or [line for line, _rule in pairs])
            if line.heading != heading:
                heading = line.heading
                readings += f'<b class="list">{in_words(heading)}</b>' * (not claim.lone)
            readings, above = readings + above, ""
            name = f'<span class="name">{in_words(line.name)}</span> ' * (not claim.lone)
            said = in_words(str(rule)) if rule and rule != rule_before else ""
            rule_before = rule
            drawn = axis.track(line, rule and rule.ground, said=said)
            readings += (
                f'<span class="reading{" told" * bool(said)}">{name}{drawn} '
                f'<span class="number">{mean} {line.unit} <small>{ends}</small></span></span> '
            )
        readings += f'<span class="axis near">{ticks}</span>' * bool(its.axis)
    kept = [part for part in claim.quantity.split(", ") if part.lower() not in its.title.lower()]
    kept = [] if claim.lone and "…" in claim.quantity else kept
    opened = " open" * (not claim.judged and not claim.start)
    other = re.search(r"So it would be \*(.+?)\*", claim.said("At one rate for all"))
    asked = "" if claim.drawn else claim.condition
    below = [
        ", ".join(kept) or claim.start,
        " · ".join(filter(None, (asked, claim.source * (claim.source != OURS)))),
    ]
    below = map(in_words, filter(None, (*below, other and f"At one rate for all: {other[1]}")))
    return (
        f'<details class="course-row" data-sign="{claim.sign}"{opened}><summary>'
        f'<b class="sign" title="{claim.verdict}">{claim.sign}</b>'
        f'<span class="what{" whole" * (not claim.lone)}"><b>{bound(html.escape(claim.text))}</b> '
        f"<small>{'</small> <small>'.join(below)}</small></span>{readings}</summary>\n\n"
        f"{claim.words}\n</details>\n\n"
    )


def scale(claims: list[Claim], pairs: list[tuple[Line, Rule | None]] = ()) -> Axis:
    """The axis of all intervals of claims, or of these ``pairs`` alone, with their conditions.

    Zero is on it where they are differences; an interval of several in a claim does not lie beyond it.
    """
    pairs = pairs or [pair for claim in claims for pair in claim.judged]
    lines = [line for line, _rule in pairs]
    kept = (
        lines if len(claims) == 1 else [line for its in claims if not its.lone for line, _rule in its.judged]
    )
    fixed = [0.0] * any(line.text[0] in "+-" for line in lines)  # a difference
    fixed += [x for line in kept for x in (line.low, line.high)]
    return Axis.around(lines, fixed + [x for _line, rule in pairs if rule for x in rule.limits])


def key(drawn: str, more: str) -> str:
    """What the marks of a page mean, as far as it has them, and what else is said there once."""
    axis = Axis(0, 1)
    marks = {
        "<u": (axis.track(None, (0.05, 1)), "shaded: the claim is true here"),
        "<i style": (axis.track(Interval(0.5, 0.15, 0.85)), "mean and its 95 % interval"),
        "<em": (axis.track(Interval(2, 0, 3)), "beyond the scale"),
    }
    found = [f"<li>{mark} {said}</li>" for sign, (mark, said) in marks.items() if sign in drawn]
    found += [f"<li><span>{more}</span></li>"] * bool(more)
    return f'<ul class="course-marks">{"".join(found)}</ul>\n\n' * bool(found)


def figures(line: Line, beside: list[Line]) -> tuple[str, str]:
    """The mean and the ends of an interval in three figures; a plus only where others are negative.

    >>> one = Line("", "", 98.9, 95.761, 102.039, "", "+98.900 (+95.761 to +102.039)")
    >>> figures(one, [one]), figures(one, [one._replace(low=-1)])
    (('98.9', '95.8 to 102.0'), ('+98.9', '+95.8 to +102.0'))
    """
    printed = [len(each.partition(".")[2]) for each in INTERVAL.search(line.text).groups()]
    largest = max(abs(line.mean), 1e-9) if line.mean else max(abs(line.low), abs(line.high), 1e-9)
    places = min(max(0, 2 - math.floor(math.log10(largest))), *printed)
    sign = "+" * (line.text[0] in "+-" and min(each.low for each in beside) < 0)
    form = ".2g" if "e" in line.text else f",.{places}f"
    mean, low, high = (signed(x, f"{sign}{form}") for x in (line.mean, line.low, line.high))
    if line.low == line.high:
        return signed(line.mean + 0.0, ",g"), "alike in all seeds"
    return mean, f"{low} to {high}"


def folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def table(found: re.Match) -> str:
    """A table in Markdown as HTML: what neighbouring rows have in common stands once, above them.

    Columns of one rate for all go where they repeat those before them: there was no other rate.

    >>> rows = "| n | of | x |\\n|---|---|---|\\n| 1 | t5 | 2 |\\n| 1 | shaw | 3e+09 |\\n"
    >>> re.findall("<(?:t[hd]|span)[^>]*>([^<]+)<", table(TABLE.search(rows)))
    ['of', 'x', 'n 1', 'T5 bias', '2', 'Shaw', '3\xa0×\xa010⁹']
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
    heads = "".join(f'<th scope="col">{in_words(each)}</th>' for each in head[shared:])
    again = "<small>Without a line for one rate, the numbers are the same there.</small>"
    again *= any(same_at(row, one) for row in rows)  # on a phone
    many = " many" * (len(head) - shared > 4)
    if len(head) - shared == 5 and all(len(cell) < 9 for row in rows for cell in row[shared + 1 :]):
        many = " few"  # short numbers: on a phone, too, they stand below each other
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
        f'<td data-name="{in_words(title)}"{" data-same" * (n >= len(values) - same)}>{each}</td>'
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


def letter(setup: str) -> str:
    """What L or S is, where a record counts in it.

    >>> letter("L = 64 characters of the King James Bible; 2 layers")
    '<b>L</b>: the length of training, 64 characters'
    """
    found = re.match(r"([LS]) = (\d+ \w+)", setup)
    what = {"L": "the length of training", "S": "the length of a segment"}
    return f"<b>{found[1]}</b>: {what[found[1]]}, {found[2]}" if found else ""


def gains() -> str:
    """By how much rates of its own lower the loss of each encoding: a dot for each search."""
    every = tuning.searched(tuned := SweepRecord.load(documents.ROOT / "results/tuning-full.json"))
    saved = {
        name: [its[tuning.at_one_rate(tuned.settings, name)] - min(its.values()) for its in found.values()]
        for name, found in every.items()
    }
    axis = Axis.over([0, *(x for several in saved.values() for x in several)])
    rows = ""
    for n, (name, several) in enumerate(saved.items()):
        dots = "".join(f'<b style="--at:{axis.at(x):.1f}%"></b>' for x in several)
        said = "" if n else f"no gain: {EQUAL} or less"
        drawn = axis.track(None, (-math.inf, EQUAL), said=said).replace("</u>", f"</u>{dots}")
        more = sum(x > EQUAL for x in several)
        rows += (
            f'<div class="course-dots{" told" * bool(said)}">'
            f'<span class="name">{EXPERIMENTS[name].title}</span> '
            f'{drawn} <span class="number">{more} of {len(several)} <small>gain more</small></span></div>'
        )
    return (
        f'<div class="course-family" style="{axis.grid(6)}"><div class="measured"><span>By how much rates of '
        "its own lower an encoding’s loss (nats), a dot for each search</span> "
        f'<span class="axis" data-above>{axis.ticks(6)}</span></div>{rows}'
        f'<div class="course-dots near"><span class="axis">{axis.ticks(6)}</span></div></div>\n\n'
    )


PICTURES = {"a-rate-for-each": gains}


def page(slug: str) -> str:
    """One record: what was asked, what came out, the claims as rows, the tables, and how it was run."""
    record = records()[slug]
    top, *_claims = re.split(r"^(?=\*\*)", record.text, maxsplit=1, flags=re.M)
    command, setup, *tables = top.strip().split("\n\n", 2)
    command = re.sub(r"\b(\d{3,}) s\b", lambda found: hours(int(found[1])), command)
    again, where = re.fullmatch(r"`(.+?)`\s*—\s*(.+)", command, re.S).groups()
    shown = "".join(map(family, families(record.claims)))
    numbers = f"\n## The numbers\n\n{TABLE.sub(table, tables[0])}" if tables else ""
    ours = " A claim without a source is a question of this course."
    ours *= any(its.source == OURS for its in record.claims)
    picture = PICTURES[slug]() if slug in PICTURES else ""
    return (
        f'# {record.title}\n\n<span class="course-asked">{about()[slug]["asks"]}</span> '
        f"{about()[slug]['found']}\n\n{bar(record.claims, words=True)} "
        f"[How to read a verdict](../docs/results.md#how-to-read-a-verdict)\n\n"
        f"{picture}{key(shown, letter(setup))}{shown}{numbers}\n"
        f'## How it was run\n\n<div class="course-note">\n\n{setup}{ours}\n\n</div>\n\n'
        f"```sh\n{again}\n```\n\n"
        f'<div class="course-note">\n\n{where} [All records](../docs/results.md)\n\n</div>\n'
    )
