"""What was found: one finding for each promise, and the forms in which people and programs read them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from ..language import _
from .bugs import BUGS

PROMISES = ("golden values", "shift", "causality", "cache", "padding", "packing", "dtype")
PASSED, FAILED, OPEN = "passed", "failed", "not decided"


def words(name: str) -> str:
    """A promise, a status or what was measured, in the reader's language."""
    return {
        "golden values": _("golden values"),
        "shift": _("shift"),
        "causality": _("causality"),
        "cache": _("cache"),
        "padding": _("padding"),
        "packing": _("packing"),
        PASSED: _("passed"),
        FAILED: _("failed"),
        OPEN: _("not decided"),
        "layout": _("layout"),
        "base": _("base"),
        "positions tested up to": _("positions tested up to"),
        "channels that turn": _("channels that turn"),
    }.get(name, name)


@dataclass(frozen=True)
class Finding:
    """One promise: ``status`` is passed, failed or not decided, ``says`` is why.

    ``bugs`` are the names that explain what was seen: all of a class that no output can tell apart, joined by
    ``or``; where two bugs are made at once, ``also`` names the second. ``shown`` is the smallest input that
    shows it, ``error`` the largest difference.
    """

    promise: str
    status: str
    says: str
    bugs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    shown: str = ""
    error: float | None = None

    def lines(self) -> Iterable[str]:
        yield f"{words(self.promise)}: {words(self.status)}. {self.says}"
        if self.shown:
            yield "    " + _("smallest case: {case}").format(case=self.shown)
        for names in (self.bugs, self.also):
            word = _("bug") if len(names) == 1 else _("one of these, no output tells which")
            for name in names:
                case = _(" (as in {case})").format(case=BUGS[name].case) if BUGS[name].case else ""
                yield f"    {word}: {name} – {_(BUGS[name].says)}{case}"
                yield "        " + _("do: {what}").format(what=_(BUGS[name].do))


@dataclass
class Report:
    """What :func:`check` found. ``ok`` says that nothing failed, ``named`` holds the names of all bugs."""

    given: str
    findings: list[Finding] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.status == FAILED]

    @property
    def named(self) -> frozenset[str]:
        """The bugs of all findings, those that are only suspected included."""
        return frozenset(name for finding in self.findings for name in (*finding.bugs, *finding.also))

    def __getitem__(self, promise: str) -> Finding:
        return next(finding for finding in self.findings if finding.promise == promise)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{sum(f.status == status for f in self.findings)} {words(status)}"
            for status in (PASSED, FAILED, OPEN)
        )
        measured = "; ".join(f"{words(name)} {value}" for name, value in self.measured.items())
        head = [f"{self.given}: {counts}"]
        head += [_("measured: {values}").format(values=measured)] if measured else []
        wrapped = (
            textwrap.wrap(line, 100, subsequent_indent=" " * (len(line) - len(line.lstrip()) + 4))
            for line in [*head, *(line for finding in self.findings for line in finding.lines())]
        )
        return "\n".join(line for lines in wrapped for line in lines)

    def json(self) -> str:
        """The report as one JSON object; its ``version`` changes when a key does."""
        findings = [
            {
                "promise": f.promise,
                "status": f.status,
                "says": f.says,
                "bugs": list(f.bugs),
                "also": list(f.also),
                "shown": f.shown,
                "error": f.error,
            }
            for f in self.findings
        ]
        whole = {"version": 1, "given": self.given, "ok": self.ok, "measured": self.measured}
        return json.dumps({**whole, "findings": findings}, indent=1)

    def junit(self) -> str:
        """The report as JUnit's XML: a failed promise is a failure, an open one is skipped."""
        suite = ElementTree.Element(
            "testsuite",
            name=f"conformance of {self.given}",
            tests=str(len(self.findings)),
            failures=str(len(self.failed)),
            skipped=str(sum(f.status == OPEN for f in self.findings)),
        )
        for finding in self.findings:
            case = ElementTree.SubElement(
                suite, "testcase", classname="conformance." + self.given, name=finding.promise
            )
            if finding.status != PASSED:
                tag = "failure" if finding.status == FAILED else "skipped"
                text = "\n".join(finding.lines())
                ElementTree.SubElement(case, tag, message=finding.says).text = text
        return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode")


def passed(promise: str, says: str) -> Finding:
    return Finding(promise, PASSED, says)


def undecided(promise: str, because: str, bugs: tuple[str, ...] = ()) -> Finding:
    says = _("It cannot be decided from what you gave, because {because}").format(because=because)
    return Finding(promise, OPEN, says, bugs)
