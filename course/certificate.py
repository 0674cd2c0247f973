"""A certificate to print: a name, the lessons, the day, and a code that is made of them.

    python -m course.certificate "Ada Lovelace"            # certificate.html, from your own progress
    python -m course.certificate --check certificate.html  # is it as it was made? With --log: by this log?

A lesson is counted once all of its predictions were made and all of its questions answered; side quests don't
count. The log is a file on the learner's own disk, so a certificate says what the log says, and no more:
``python -m classroom certificate`` makes one that only a class's teacher can make.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import hmac
import html
import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tutorial_lib.language import ENGLISH, _, language, speaking, tag

from . import progress
from .checks import questions as graded
from .lesson import questions, resume
from .places import DEEPER

FACTS = re.compile(r'<script type="application/json" id="facts">(.*?)</script>', re.S)
PAGE = """<!DOCTYPE html>
<html lang="{tag}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
@page {{ size: A4 landscape; margin: 12mm }}
:root {{ color-scheme: light }}
* {{ box-sizing: border-box; print-color-adjust: exact; -webkit-print-color-adjust: exact }}
body {{ margin: 0; background: #f3f1ec; color: #1d2b36;
  font: 1rem/1.5 "Source Sans 3", system-ui, sans-serif }}
main {{ max-width: 68rem; margin: 2rem auto; background: #fff; padding: clamp(1.25rem, 4vw, 3.5rem);
  border-top: 10px solid #0b3d5c; border-radius: 3px }}
header {{ color: #0b3d5c; font-weight: 600 }}
h1 {{ font-size: clamp(1.9rem, 5vw, 3.2rem); line-height: 1.1; margin: 1.4rem 0 .3rem;
  overflow-wrap: anywhere }}
.did {{ font-size: 1.15rem; margin: 0 0 1.6rem; max-width: 44rem }}
ul {{ list-style: none; margin: 0; padding: 0; display: grid; gap: 1rem .75rem;
  grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)) }}
li {{ display: grid; grid-template-columns: 3.2rem 1fr; gap: .6rem; align-items: center; line-height: 1.25 }}
li span {{ color: #51606b; display: block; text-wrap: balance; font-weight: 400; font-size: .88rem }}
li.part b {{ font-weight: 400 }}
svg {{ width: 3.2rem; height: 3.2rem }}
footer {{ border-top: 1px solid #c9ced2; margin-top: 2rem; padding-top: .9rem; color: #51606b;
  font-size: .88rem; display: flex; flex-wrap: wrap; gap: .3rem 2.5rem }}
footer p {{ margin: 0 }}
code {{ font: .95em ui-monospace, monospace; color: #1d2b36; overflow-wrap: anywhere }}
.sign {{ flex: 1 1 14rem; align-self: end; border-top: 1px solid #1d2b36; margin-top: 2.6rem }}
.means {{ flex: 1 1 100% }}
@media print {{ body {{ background: none }} main {{ margin: 0; max-width: none; padding: 8mm 10mm;
  min-height: 180mm; display: flex; flex-direction: column }} footer {{ margin-top: auto }} }}
</style>
</head>
<body>
<main>
<header>{course}</header>
{name}
{did}
<ul>
{rows}
</ul>
<footer>
<p>{date}</p>
<p>{code}</p>
{sign}<p class="means">{means}</p>
</footer>
</main>
<script type="application/json" id="facts">{facts}</script>
</body>
</html>
"""


def dial(share: float) -> str:
    """A dial whose hand has turned by ``share`` of a round: an angle is an arc, as in the lessons."""
    turn = 2 * math.pi * min(max(share, 0.0), 0.9999)
    x, y = 24 + 19 * math.sin(turn), 24 - 19 * math.cos(turn)
    arc = f"M24 5A19 19 0 {int(share > 0.5)} 1 {x:.2f} {y:.2f}"
    colour = "#0b3d5c" if share >= 1 else "#5d8aa8"
    return (
        '<svg viewBox="0 0 48 48" aria-hidden="true"><circle cx="24" cy="24" r="19" fill="none" '
        f'stroke="#d5dadd" stroke-width="5"/><path d="{arc}" fill="none" stroke="{colour}" stroke-width="5"/>'
        f'<path d="M24 24L{x:.2f} {y:.2f}" stroke="{colour}" stroke-width="2.5" stroke-linecap="round"/>'
        '<circle cx="24" cy="24" r="3" fill="#b84a06"/></svg>'
    )


def digest(facts: Mapping, key: str = "") -> str:
    """The code of facts, 32 hex digits in groups of 4; with a ``key``, who lacks it cannot make one."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
    code = hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]
    return " ".join(code[i : i + 4] for i in range(0, 32, 4))


def shown(facts: Mapping, seal: str) -> list[str]:
    """What a certificate shows of its facts, piece by piece, as HTML."""
    rows = [
        f"<li{'' if share >= 1 else ' class=part'}>{dial(share)}<b>{html.escape(title)}"
        f"<span>{html.escape(done)}</span></b></li>"
        for title, done, share in facts["rows"]
    ]
    return [
        f"<h1>{html.escape(facts['name'])}</h1>",
        f'<p class="did">{html.escape(facts["did"])}</p>',
        f"<time>{html.escape(facts['date'])}</time>",
        f"<code>{seal}</code>",
        *rows,
    ]


def page(facts: Mapping, seal: str, means: str, sign: bool = False) -> str:
    """The certificate as HTML: what it is made of (``name``, ``date``, ``did``, what that person did, and
    ``rows``, each ``[title, what was done, share]``), its code, what that means, and room for a signature."""
    name, did, date, code, *rows = shown(facts, seal)
    return PAGE.format(
        tag=tag(language()),
        title=html.escape(f"{_('Certificate')}: {facts['name']}"),
        course=_("How Transformers know order"),
        name=name,
        did=did,
        rows="\n".join(rows),
        date=f"{_('Date')}: {date}",
        code=f"{_('Code')}: {code}",
        sign=f'<p class="sign">{_("Signature")}</p>\n' if sign else "",
        means=html.escape(means),
        facts=json.dumps({"facts": facts, "seal": seal}, ensure_ascii=False).replace("<", "\\u003c"),
    )


def stored(path: Path) -> tuple[dict, str]:
    """The facts and the code that a certificate holds. ValueError where it is none."""
    found = FACTS.search(path.read_text(encoding="utf-8", errors="replace"))
    try:
        kept = json.loads(found[1]) if found else {}
        return dict(kept["facts"]), str(kept["seal"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{path} is no certificate of this course, or has lost what it was made of"
        ) from None


def altered(path: Path, key: str = "") -> list[str]:
    """What tells that a certificate is not as it was made; an empty list if nothing does."""
    facts, seal = stored(path)
    found = [] if digest(facts, key) == seal else ["Its code is not made of what it says."]
    text = path.read_text(encoding="utf-8").partition('<script type="application/json"')[0]
    if text.count("<li") != len(facts["rows"]) or any(text.count(piece) != 1 for piece in shown(facts, seal)):
        found.append("It shows something else than it is made of.")
    return found


# ---- from the learner's own log ----
def lessons(log: Mapping[str, Mapping]) -> list[list]:
    """``[title, what was done, share]`` of each lesson in which anything was done."""
    core = [place.key for place in resume.places() if not place.file.startswith(f"{DEEPER}/")]
    rows: list[list] = []
    for number in questions.notebooks():
        asked = [key for key in core if key.startswith(f"{number}.")]
        done = sum("choice" in log.get(key, {}) for key in asked)
        said = _("{number} of {all}").format(number=done, all=len(asked))
        passed = _exercise(number, log)
        if done or passed:
            title = _(questions.questions(number)["title"])
            rows.append([title, f"{said}{f'; {passed}' if passed else ''}", done / len(asked)])
    return rows


def _exercise(number: str, log: Mapping[str, Mapping]) -> str:
    """How much of the lesson's graded exercise passed; ``""`` where nothing did."""
    try:
        asked = [question for question in graded.load(number) if not question.bonus]
    except KeyError:
        return ""
    passed = sum(log.get(f"{number}.exercise.{each.name}", {}).get("passed") is True for each in asked)
    return _("exercise {number} of {all}").format(number=passed, all=len(asked)) if passed else ""


def own(name: str, log: Mapping[str, Mapping]) -> str:
    """The certificate of a log, as HTML. ValueError where the log has nothing to certify."""
    rows = lessons(log)
    if not any(share for _title, _done, share in rows):
        raise ValueError(
            f"{progress.log_file()} has no answer to any question: work through a lesson first, or name "
            "another log with --log"
        )
    complete = sum(share >= 1 for _title, _done, share in rows)
    did = _("has worked through {number} of {all} lessons on positional encoding in Transformers.").format(
        number=complete, all=len(questions.notebooks())
    )
    means = _(
        "Counted are predictions and questions, answered rightly or wrongly, by the log on the learner's own "
        "computer. The code is made of all that stands here, so a change can be seen. It does not prove who "
        "answered."
    )
    facts = {"name": name, "date": datetime.date.today().isoformat(), "did": did, "rows": rows}
    return page(facts, digest(facts), means)


def check(path: Path, log: Mapping[str, Mapping] | None) -> list[str]:
    """What speaks against a certificate, of what can be known from it, and from the log if there is one."""
    found = altered(path)
    if log is not None and stored(path)[0]["rows"] != lessons(log):
        found.append("The log says something else: it has gone on since, or is another one.")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course.certificate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", default="", help="whose name stands on it")
    parser.add_argument("--check", type=Path, metavar="FILE", help="look at a certificate instead")
    parser.add_argument("--log", type=Path, help="the log (default: your own, ~/.tutorial_lib/progress.json)")
    parser.add_argument("--out", type=Path, default=Path("certificate.html"), help="where it is written")
    parser.add_argument("--language", default=ENGLISH, help="of the page, such as zh (after `make zh`)")
    given = parser.parse_args(arguments)
    try:
        log = json.loads(given.log.read_text(encoding="utf-8")) if given.log else None
        if log is not None and not (isinstance(log, dict) and all(isinstance(e, dict) for e in log.values())):
            raise ValueError(f"{given.log} is no log of the course")
        with speaking(given.language):
            if given.check:
                wrong = check(given.check, log)
                print(
                    "\n".join(wrong) or f"{given.check} is as it was made" + (", by this log" if log else "")
                )
                return int(bool(wrong))
            if not given.name.strip():
                parser.error('say whose name stands on it: python -m course.certificate "Ada Lovelace"')
            text = own(given.name.strip(), progress.read() if log is None else log)
        given.out.write_text(text, encoding="utf-8")
    except (ValueError, OSError) as problem:
        print(f"{parser.prog}: {problem}", file=sys.stderr)
        return 2
    print(f"{given.out}: open it in a browser, and print it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
