"""``docs/results.md`` as pages: an index with all verdicts, and a page for each record.

The file stays one, because it is read on GitHub, too; here it would be forty screens long.
"""

from __future__ import annotations

import functools
import html
import re
from collections import Counter
from dataclasses import dataclass

from course import verdicts
from workshop import documents

INDEX = "docs/results"
FOLDER = "results/"
FINDING = re.compile(r"^\*\*(?P<claim>.+?)\*\* \((?P<source>.*?)\)\n\n(?P<lines>(?:- .*\n?)+)", re.M)
VERDICT = re.compile(r"^- \*\*(.+?)\*\*", re.M)


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
        counts = Counter(its for _claim, its in record.findings)
        bar = "".join(
            f'<i data-sign="{sign}" style="flex-grow:{n}" title="{n} {name}">{sign} {n}</i>'
            for name, sign in verdicts.SIGNS.items()
            if (n := counts[name])
        )
        claims = "".join(
            f'<li data-sign="{verdicts.SIGNS[its]}">{html.escape(claim)}</li>'
            for claim, its in record.findings
        )
        lines.append(
            f'<li><a id="{record.slug}"></a>'
            f'<a href="../{FOLDER}{record.slug}.html">{html.escape(record.title)}</a>'
            f'<span class="bar">{bar}</span><details><summary>{len(record.findings)} claims</summary>'
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


def page(slug: str) -> str:
    """One record: its claims as cards, its tables as they are."""
    record = records()[slug]

    def card(found: re.Match) -> str:
        sign = verdicts.SIGNS[verdict(found)]
        return (
            f'<div class="course-claim" data-sign="{sign}">\n\n**{found["claim"]}** ({found["source"]})\n\n'
            f"{found['lines'].rstrip()}\n\n</div>\n"
        )

    body = FINDING.sub(card, record.text)
    return f"# {record.title}\n\n[All records](../docs/results.md), and how to read a verdict\n{body}"
