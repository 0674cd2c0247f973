"""docs/instructor/plans/: lessons of 90 minutes that use what there is, and print on one sheet."""

import functools
import re
from pathlib import Path

import nbformat
import pytest

from course.lesson import questions, turns
from workshop import plans

NOTEBOOKS = {path.name[:2]: path for path in sorted((plans.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))}
NUMBERS = plans.numbers()


@functools.cache
def sections(number):
    """``{"A wish": ["06.tries"], …}``: the headings of a notebook, and the predictions below each."""
    found, here = {}, ""
    for cell in nbformat.read(NOTEBOOKS[number], as_version=4).cells:
        if cell.cell_type == "markdown":
            for here in re.findall(r"^##+ (.+)$", cell.source, re.MULTILINE):
                found[here] = []
        else:
            found.setdefault(here, []).extend(re.findall(r'lesson\.predict\("([\w.]+)"\)', cell.source))
    return found


def guide(number, part):
    """The sections that the guide links in one sentence of *Short of time*: those to keep, or the others."""
    section = plans.GUIDE.read_text(encoding="utf-8").split(f"\n## {number} ")[1].split("\n## ")[0]
    text = section.split("**Short of time.**")[1].split("\n\n")[0]
    (sentence,) = re.findall(rf"{part} (\[.*?)\.(?: |$)(?![a-z])", text)[:1] or [""]
    return set(re.findall(r"\[([^\]]+)\]\([^)]*\.ipynb#", sentence))


def test_every_lesson_has_a_plan():
    assert list(NOTEBOOKS) == NUMBERS and len(NUMBERS) == 11
    with pytest.raises(KeyError, match="no plan of lesson '11'"):
        plans.load("11")


@pytest.mark.parametrize("number", NUMBERS)
def test_the_minutes_add_up_and_are_enough_for_the_slides(number):
    plan, deck = plans.load(number), plans.deck(number)
    assert sum(step["minutes"] for step in plan["step"]) == plans.WHOLE
    shown = [n for step in plan["step"] for n in step.get("slides", [])]
    assert shown == sorted(set(shown)) and 1 <= shown[0] and shown[-1] <= len(deck)
    for step in plan["step"]:
        needed = sum(deck[n - 1]["minutes"] for n in step.get("slides", []))
        assert step["minutes"] >= needed, f"{step['name']}: the deck plans {needed} minutes"


@pytest.mark.parametrize("number", NUMBERS)
def test_what_it_names_is_there(number):
    plan, known = plans.load(number), sections(number)
    for name in plan["read"]:
        assert name[3:] in sections(name[:2]), name
    used = {name for step in plan["step"] for name in plans.sections(number, step)}
    for step in plan["step"]:
        assert set(step.get("sections", [])) <= set(known)
        below = {key for name in plans.sections(number, step) for key in known.get(name, [])}
        assert set(step.get("vote", [])) <= below, f"{step['name']}: asked in another section"
        assert {key[:2] for key in step.get("blanks", [])} <= {number}
        assert {key[3:] for key in step.get("blanks", [])} <= set(turns.load(number)), step["name"]
        assert {*step} <= {"minutes", "name", "do", "slides", "sections", "vote", "blanks", "drop"}
    assert set(plan["home"]) <= set(known) and not set(plan["home"]) & used
    for key in plan.get("worksheet", []):
        assert questions.find("predict", key)["kind"] == "sketch"
        assert any(key in step.get("vote", []) for step in plan["step"])


@pytest.mark.parametrize("number", NUMBERS)
def test_one_question_opens_the_discussion(number):
    plan = plans.load(number)
    (step,) = [
        step
        for step in plan["step"]
        if plan["question"] in step.get("vote", [])
        or "**First vote**" in step["do"]
        or "**first vote**" in step["do"]
    ]
    assert plan["question"] in step["vote"] and "**second vote**" in step["do"] and "drop" not in step
    choices = questions.find("predict", plan["question"]).get("choices")
    assert choices is None or list(plan["split"]) == list(choices)
    assert sum(plan["split"].values()) == 100 and plans.measured(plan["question"]) is not None
    assert any(
        "**In pairs**" in step["do"] or "**in pairs**" in step["do"] or "neighbour" in step["do"]
        for step in plan["step"]
        if step["name"] != "Exit ticket"
    )


@pytest.mark.parametrize("number", NUMBERS)
def test_it_ends_with_a_ticket_and_says_what_to_leave_out(number):
    plan = plans.load(number)
    assert plan["step"][-1]["name"] == "Exit ticket" and "drop" not in plan["step"][-1]
    assert "?" in plan["exit"]["ask"] and len(plan["exit"]["answer"].split()) > 5
    dropped = sorted(step["drop"] for step in plan["step"] if "drop" in step)
    assert dropped == list(range(1, len(dropped) + 1)) and len(dropped) >= 2
    kept = guide(number, "Keep")
    for step in plan["step"]:
        assert "drop" not in step or not kept & set(plans.sections(number, step)), step["name"]
    assert not kept & set(plan["home"])


def test_the_guide_is_read():
    assert guide("06", "Keep") == {"A wish", "One pair, by hand", "Two layouts"}


def test_each_prints_on_a_sheet_and_each_curve_on_another(browser, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plans, "OUT", tmp_path)
    assert plans.main([]) == 0 and "11 plans" in capsys.readouterr().out
    page = browser.new_page()
    for number in NUMBERS:
        plan = plans.load(number)
        page.goto(Path(tmp_path / f"{number}.html").as_uri())
        printed = page.pdf(prefer_css_page_size=True)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1 + len(plan.get("worksheet", [])), number
        page.set_viewport_size({"width": 700, "height": 900})  # 184 mm, as on paper
        wide = page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
        text = page.inner_text("body")
        assert not wide and plan["exit"]["answer"].split()[-1] in text and "**" not in text, number
        assert f"{plans.WHOLE - plan['step'][-1]['minutes']}–90" in text
    page.close()


def test_an_unknown_lesson_is_named(capsys):
    with pytest.raises(SystemExit):
        plans.main(["77"])
    assert "no plan of lesson '77'" in capsys.readouterr().err
