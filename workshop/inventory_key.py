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

**For teachers: this page holds the answers.**

The {count} questions are asked twice, in
[notebook 00]({first}#What-do-you-believe-now?) and in [notebook 09]({last}#What-do-you-believe-now?). The
notebooks show the choices in this order, without letters. The right one has a ✓. Below each wrong one
stand the *belief* that leads to it, and the reason that students read after the course.
[When to give it, and how to read it](README.md#the-concept-inventory).
"""
TOPICS = {
    "shuffled": "Shuffled words",
    "decoder": "A decoder without positions",
    "constant": "One word, twelve times",
    "repeat": "When sinusoids repeat",
    "shift": "A shift is a rotation",
    "defined": "Sinusoids on longer texts",
    "rows": "Rows that no text reached",
    "llama": "What LLaMA interpolates",
    "shaw": "What Shaw learns",
    "buckets": "T5's last bucket",
    "cancels": "A number for each query",
    "decay": "RoPE and distance",
    "layouts": "The wrong layout",
    "mirror": "A sentence backwards",
    "far": "ALiBi and far words",
    "raw": "RoPE at twice the length",
    "mean": "A lower mean loss",
    "best": "The best encoding",
}


def link(number: str) -> str:
    """A notebook's address, seen from the page."""
    return f"../../notebooks/{coverage.headings(number)[0]}"


def section(n: int, name: str, asked: dict) -> str:
    """One question: its choices, what each stands for, and where it is settled."""
    lines = [f"## {n} · {TOPICS[name]}", "", asked["question"], ""]
    for letter, (choice, text) in zip(string.ascii_uppercase, asked["choices"].items(), strict=False):
        why = asked["why"][choice]
        if choice == asked["answer"]:
            said, below = f"**{letter}. {text} ✓**", why
        else:
            said, below = f"{letter}. {text}", f"*Belief: {asked['misconception'][choice]}.* {why}"
        lines += [f"{said}\\\n<small>{below}</small>", ""]
    number, where = asked["notebook"], asked["section"]
    anchor = where.replace(" ", "-")
    return "\n".join([*lines, f"Settled in [{number} {where}]({link(number)}#{anchor})."])


def page() -> str:
    """The page, as text."""
    asked = load()
    head = HEAD.format(count=len(asked), first=link("00"), last=link("09"))
    sections = (section(n, *each) for n, each in enumerate(asked.items(), 1))
    return "\n\n".join([head.rstrip(), *sections, "*Made by `python -m workshop.inventory_key`.*"]) + "\n"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
