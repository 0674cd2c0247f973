"""A lesson of 90 minutes on one printed page: ``python -m workshop.plans``.

    python -m workshop.plans         # every lesson, into build/plans
    python -m workshop.plans 06      # that one

``docs/instructor/plans/06.toml`` is the plan. ``read`` is set before the lesson, ``home`` is left for later.
A step has ``minutes``, a ``name``, what to ``do``, and what it uses: ``slides`` of the deck by number,
``sections`` of the notebook, predictions to ``vote`` on, ``blanks``. Who is late leaves out the steps with
``drop``, 1 first. ``question`` opens the discussion; ``split`` says which shares to expect, in percent.
Questions, answers, the drawing for the board and the axes of a ``worksheet`` come from where they are kept.
"""

from __future__ import annotations

import argparse
import html
import math
import re
import sys
import tomllib
from itertools import accumulate

import nbformat

from course.lesson import questions
from course.lesson.predictions import KINDS

from . import ROOT, slides

PLANS, OUT = ROOT / "docs" / "instructor" / "plans", ROOT / "build" / "plans"
GUIDE = ROOT / "docs" / "instructor" / "notebooks.md"
WHOLE = 90  # minutes
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}, 90 minutes</title>
<style>
@page {{ size: A4; margin: 11mm 13mm; }}
body {{ font: 9.4pt/1.3 system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif; max-width: 184mm;
  margin: auto; color: #111; background: #fff; }}
h1 {{ font-size: 15pt; margin: 0 0 1mm; }}
h2 {{ font-size: 9.4pt; margin: 0; display: inline; }}
p {{ margin: 0 0 1mm; }}
table {{ border-collapse: collapse; width: 100%; margin: 1.5mm 0; }}
td, th {{ border-top: .2mm solid #999; padding: .6mm 1.5mm .6mm 0; text-align: left; vertical-align: top; }}
td.when {{ white-space: nowrap; font-variant-numeric: tabular-nums; }}
td.where {{ width: 46mm; font-size: 8.6pt; color: #333; }}
.columns {{ display: grid; grid-template-columns: 1fr 1fr; gap: 0 6mm; margin: 2mm 0; }}
.columns > * {{ min-width: 0; }}
ul {{ margin: .5mm 0 1mm; padding-left: 4mm; }}
pre {{ font: 8pt/1.2 "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace; margin: .5mm 0; }}
.sheet {{ break-before: page; }}
.sheet svg {{ width: 100%; max-height: 104mm; }}
</style></head>
<body>
{body}
</body></html>
"""


def numbers() -> list[str]:
    """The lessons that have a plan: ``["00", "01", …]``."""
    return sorted(path.stem for path in PLANS.glob("*.toml"))


def load(number: str) -> dict:
    """The plan of a lesson. Raises KeyError, naming the plans there are, for any other."""
    if number not in numbers():
        raise KeyError(f"there is no plan of lesson {number!r}; there are {', '.join(numbers())}")
    return tomllib.loads((PLANS / f"{number}.toml").read_text(encoding="utf-8"))


def deck(number: str) -> list[dict]:
    """The slides of a lesson's deck, as they are planned."""
    return tomllib.loads((slides.PLANS / f"{number}.toml").read_text(encoding="utf-8"))["slide"]


def measured(key: str):
    """What the stored notebook measured in answer to a prediction; None where nothing is stored."""
    (path,) = (ROOT / "notebooks").glob(f"{key[:2]}_*.ipynb")
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            found = output.get("metadata", {}).get("measured", {})
            if found.get("key") == key:
                return found["value"]
    return None


def board(number: str) -> str:
    """The drawing for the board, from the guide."""
    section = GUIDE.read_text(encoding="utf-8").split(f"\n## {number} ")[1].split("\n## ")[0]
    return re.search(r"\*\*On the board\.?\*\*.*?```\n(.*?)```", section, re.DOTALL)[1]


def _text(words: str) -> str:
    """A line of a plan as HTML: ``*emphasis*`` and ``**bold**``, nothing else."""
    words = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(words, quote=False))
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", words)


def _span(numbers: list[int]) -> str:
    """``[2, 3, 4, 7]`` as ``2–4, 7``."""
    groups: list[list[int]] = []
    for n in numbers:
        if groups and n == groups[-1][-1] + 1:
            groups[-1].append(n)
        else:
            groups.append([n])
    return ", ".join(str(g[0]) if len(g) == 1 else f"{g[0]}–{g[-1]}" for g in groups)


def sections(number: str, step: dict) -> list[str]:
    """The sections of the notebook that a step is about: those of its slides, and those that it names."""
    shown = [deck(number)[n - 1]["section"] for n in step.get("slides", [])]
    return list(dict.fromkeys([*shown, *step.get("sections", [])]))


def _where(number: str, step: dict) -> str:
    parts = []
    if step.get("slides"):
        parts.append(f"slide{'s' * (len(step['slides']) > 1)} {_span(step['slides'])}")
    parts += [f"§ {name}" for name in sections(number, step) if not name.startswith(number)]
    parts += [
        f"{word} {key}"
        for word, what in (("vote", "vote"), ("blank", "blanks"))
        for key in step.get(what, [])
    ]
    return "<br>".join(html.escape(part, quote=False) for part in parts)


def _question(plan: dict) -> str:
    """The question that opens the discussion, what to expect, and what was measured."""
    key = plan["question"]
    asked = questions.find("predict", key)
    kind, answer = KINDS[asked.get("kind", "choice")], measured(key)
    names = asked.get("choices", {})
    rows = "".join(
        f"<li>{html.escape(names.get(name, name), quote=False)} <b>{share}\u00a0%</b></li>"
        for name, share in plan["split"].items()
    )
    return (
        f"<h2>The question ({key}).</h2> {asked['question']}<ul>{rows}</ul>"
        f"<p>The shares are a guess at the first vote. Measured: "
        f"<b>{html.escape(str(kind.words(asked, answer)), quote=False)}</b></p>"
    )


def _title(step: dict) -> str:
    """The name of a step as the beginning of its line."""
    return _text(step["name"] + "." * (step["name"][-1] not in "?!"))


def _late(steps: list[dict]) -> str:
    dropped = sorted((step for step in steps if "drop" in step), key=lambda step: step["drop"])
    words = "; ".join(f"{_text(step['name'])} ({step['minutes']} min)" for step in dropped)
    return f"<div><h2>Late?</h2> Leave out, in this order: {words}.</div>"


def page(number: str) -> str:
    """The plan as an HTML page that prints on one sheet of A4, and a sheet for each curve to draw."""
    plan, title = load(number), questions.questions(number)["title"]
    ends = list(accumulate(step["minutes"] for step in plan["step"]))
    rows = "".join(
        f'<tr><td class="when">{end - step["minutes"]:02}–{end:02}</td><td><b>{_title(step)}</b> '
        f'{_text(step["do"])}</td><td class="where">{_where(number, step)}</td></tr>'
        for step, end in zip(plan["step"], ends, strict=True)
    )
    reading = "; ".join(plan["read"]) + ". " if plan["read"] else ""
    body = (
        f"<h1>{html.escape(title)} · {WHOLE} minutes</h1><div><h2>Set before.</h2> {_text(reading)}"
        f"{_text(plan['before'])}</div><table>{rows}</table>{_late(plan['step'])}"
        f"<div><h2>Left for home.</h2> {html.escape('; '.join(plan['home']))}.</div>"
        f'<div class="columns"><div>{_question(plan)}</div><div><h2>Exit ticket.</h2> '
        f"{_text(plan['exit']['ask'])}<p><i>{_text(plan['exit']['answer'])}</i></p></div></div>"
        f"<h2>On the board.</h2><pre>{html.escape(board(number))}</pre>"
    )
    body += "".join(worksheet(key) for key in plan.get("worksheet", []))
    return PAGE.format(title=html.escape(title), body=body)


def worksheet(key: str) -> str:
    """A sheet with the axes of a curve that is to be drawn, twice: alone, and after the discussion."""
    asked = questions.find("predict", key)
    axes = _axes(asked)
    return (
        f'<div class="sheet"><h1>{key}</h1><p>{asked["question"]}</p>'
        f"<h2>Alone</h2>{axes}<h2>After the discussion</h2>{axes}</div>"
    )


def _axes(asked: dict) -> str:
    """Empty axes with a grid, as SVG. The points of x stand at equal distances, as on the card."""
    low, high = asked["ylim"]
    width, height, left, top = 640, 340, 70, 12
    right, bottom, parts = width - 15, height - 55, []
    step = next(step for step in (0.05, 0.1, 0.2, 0.5, 1, 2, 5) if (high - low) / step <= 10)
    for n in range(math.ceil(low / step), math.floor(high / step) + 1):
        y, value = bottom - (bottom - top) * (n * step - low) / (high - low), n * step
        parts.append(
            f'<path d="M{left} {y:g}H{right}" stroke="#bbb"/>'
            f'<text x="{left - 8}" y="{y + 5:g}" text-anchor="end">{value:.3g}</text>'
        )
    for n, x in enumerate(asked["x"]):
        at = left + (right - left) * (n + 0.5) / len(asked["x"])
        parts.append(
            f'<path d="M{at:g} {top}V{bottom}" stroke="#bbb"/>'
            f'<text x="{at:g}" y="{bottom + 20}" text-anchor="middle">{x:g}</text>'
        )
    names = html.escape(asked["xlabel"]), html.escape(asked["ylabel"])
    parts.append(
        f'<path d="M{left} {top}V{bottom}H{right}" stroke="#111" fill="none"/>'
        f'<text x="{(left + right) / 2}" y="{height - 10}" text-anchor="middle">{names[0]}</text>'
        f'<text transform="translate(16 {(top + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{names[1]}</text>"
    )
    return f'<svg viewBox="0 0 {width} {height}" font-size="14">{"".join(parts)}</svg>'


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.plans",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("numbers", nargs="*", help="lessons, such as 06 (default: all)")
    wanted = parser.parse_args(arguments).numbers or numbers()
    try:
        pages = {number: page(number) for number in wanted}
    except KeyError as problem:
        parser.error(problem.args[0])
    OUT.mkdir(parents=True, exist_ok=True)
    for number, text in pages.items():
        (OUT / f"{number}.html").write_text(text, encoding="utf-8")
    print(f"{len(pages)} plans in {OUT}: open them in a browser, and print")
    return 0


if __name__ == "__main__":
    sys.exit(main())
