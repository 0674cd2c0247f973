"""The concept inventory with its key, for the teacher: ``python -m workshop.inventory_key``.

Reads ``lesson/inventory.toml`` and writes ``docs/instructor/inventory.md``.
"""

from __future__ import annotations

import argparse
import string

from course.lesson.inventory import load

from . import ROOT, coverage

PAGE = ROOT / "docs" / "instructor" / "inventory.md"
HEAD = """# The concept inventory, with its key

**For teachers: this page holds the answers.** The {count} questions are asked twice, in
[notebook 00]({first}#What-do-you-believe-now?) and in [notebook 09]({last}#What-do-you-believe-now?). The
notebooks show the choices in this order, without letters. The right one is in bold. With each wrong one
stand the *belief* that leads to it, and the reason that students read after the course.
[When to give it, and how to read it](README.md#the-concept-inventory).

*Made by `python -m workshop.inventory_key`.*
"""


def link(number: str) -> str:
    """A notebook's address, seen from the page."""
    return f"../../notebooks/{coverage.headings(number)[0]}"


def section(n: int, asked: dict) -> str:
    """One question: its choices, what each stands for, and where it is settled."""
    lines = [f"## Question {n}", "", asked["question"], ""]
    for letter, (name, text) in zip(string.ascii_uppercase, asked["choices"].items(), strict=False):
        why = asked["why"][name]
        if name == asked["answer"]:
            lines.append(f"- **{letter}. {text}** {why}")
        else:
            lines.append(f"- {letter}. {text} *Belief: {asked['misconception'][name]}.* {why}")
    number, where = asked["notebook"], asked["section"]
    anchor = where.replace(" ", "-")
    return "\n".join([*lines, "", f"Settled in [{number} {where}]({link(number)}#{anchor})."])


def page() -> str:
    """The page, as text."""
    asked = load()
    head = HEAD.format(count=len(asked), first=link("00"), last=link("09"))
    return "\n\n".join([head.rstrip(), *(section(n, q) for n, q in enumerate(asked.values(), 1))]) + "\n"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
